# Spans of sentences, and charts over them: best scores, sums, marginals and their derivatives.
from libc.stdint cimport int32_t, int64_t
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.cky._linear cimport Linear


cdef class SpanShape:
    cdef readonly Py_ssize_t n, max_words, max_rows, classes, stride, shared
    # Of the chart: the classes and rules, or one of each without a grammar.
    cdef readonly Py_ssize_t states, rules
    cdef readonly bint grammar
    cdef const int64_t* rows            # first row of each example
    cdef const int64_t* labels          # first integer of each label: 2 n - 1 for n words
    cdef const int32_t* first           # first rule of each state, which are sorted by parent
    cdef const int32_t* parent
    cdef const int32_t* left
    cdef const int32_t* right
    cdef const int32_t* where           # its index in theta
    cdef object owners
    cdef Py_ssize_t n_words(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t n_rows(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t n_states(self) noexcept nogil
    # Index in theta_i of a label's integer, -1 for a class unseen in training.
    cdef Py_ssize_t part(self, Py_ssize_t i, Py_ssize_t code) noexcept nogil
    cdef int check(self, Py_ssize_t i, const double* theta) except -1 nogil
    cdef int impossible(self, Py_ssize_t i) except -1 nogil


cdef struct Chart:
    Py_ssize_t n, states, rules
    const int32_t* first
    const int32_t* parent
    const int32_t* left
    const int32_t* right
    double* weight      # of each rule
    double* score       # of each row and state: the span's own
    double* inner       # without the span's own score
    double* beta        # with it
    double* terms       # of the rules of one state, and a vector more
    double* shares
    Linear linear       # for sums, if there is a grammar


cdef SpanShape span_shape(PartLayout layout, object rules)
cdef void span_of(Py_ssize_t n, Py_ssize_t row, Py_ssize_t* i, Py_ssize_t* j) noexcept nogil
cdef Py_ssize_t chart_bytes(SpanShape shape) noexcept nogil
cdef Chart chart_in(SpanShape shape, Py_ssize_t i, char* memory) noexcept nogil
# score and weight <- theta; without a grammar the best class, or the log of the sum over classes,
# whose probabilities are then in `shares`, in theta's layout.
cdef void load(SpanShape shape, Py_ssize_t i, const double* theta, bint best, double* shares,
               const Chart* chart) noexcept nogil
# Fills the chart; returns the best score of a tree, or the log of the sum over trees.
cdef double fill(const Chart* chart, bint best) noexcept nogil
# codes <- row * states + state of each span of the best tree, or of one drawn with a number from
# [0, 1) for each span.
cdef void trace(const Chart* chart, double total, const double* uniforms, int* codes) noexcept nogil
# mass, of_rules <- marginals.  With `moved`, a chart whose weight and score are a direction, also
# their derivatives in `dmass` and `of_moved`.
cdef void spread(const Chart* chart, double total, double* mass, double* of_rules,
                 const Chart* moved, double* dmass, double* of_moved) noexcept nogil
