# Words and candidate arcs of sentences: the offsets of arcs' scores.
from libc.stdint cimport int32_t, int64_t
from structsolve.part_layout cimport PartLayout


cdef class ArcShape:
    cdef readonly Py_ssize_t n, max_words, max_arcs
    cdef readonly bint complete         # every word may head every other
    # An arc has a row of `stride` scores, of which `classes` are those of its relations; a label
    # holds head * classes + class of each word.
    cdef readonly Py_ssize_t classes, stride
    cdef const int64_t* words           # first word of each example
    cdef const int64_t* arcs            # first arc of each example
    cdef const int64_t* starts          # first arc of each word, where not complete
    cdef const int32_t* heads           # of each arc, rising within a word
    cdef object owners                  # not the layout, which holds this shape
    cdef int read_candidates(self, object starts, object heads) except -1
    cdef Py_ssize_t n_words(self, Py_ssize_t i) noexcept nogil
    # Labels that can be predicted.
    cdef Py_ssize_t n_states(self) noexcept nogil
    cdef int maxima(self, Py_ssize_t i, const double* theta, double* tops) except -1 nogil
    # Number of the arc from word `head` (0: the root) to word m (0: the first), or -1.
    cdef Py_ssize_t arc(self, Py_ssize_t i, Py_ssize_t m, Py_ssize_t head) noexcept nogil
    # Head of a word with a label; a true label may have a relation unseen in training.
    cdef Py_ssize_t head(self, Py_ssize_t i, Py_ssize_t label) noexcept nogil
    # Index in theta_i of the part of word m and its label, or -1.
    cdef Py_ssize_t part(self, Py_ssize_t i, Py_ssize_t m, Py_ssize_t label) noexcept nogil
    # table[m, head] <- the number of the arc, -inf if there is none; rows of n_words + 1.
    cdef int load(self, Py_ssize_t i, const double* arcs, double* table) except -1 nogil
    # table[m, head] <- the best score of the arc's relations.  `room` holds max_arcs doubles.
    cdef int load_best(self, Py_ssize_t i, const double* theta, double* room,
                       double* table) except -1 nogil
    # table[m, head] <- the log of the sum over relations; shares <- the probability of each
    # relation given its arc, in theta's layout, where there are several.
    cdef int load_sums(self, Py_ssize_t i, const double* theta, double* shares, double* room,
                       double* table) except -1 nogil
    # arcs <- table[m, head] of each arc.
    cdef void store(self, Py_ssize_t i, const double* table, double* arcs) noexcept nogil
    cdef int impossible(self, Py_ssize_t i) except -1 nogil


# The shape of a layout, made at the first call.
cdef ArcShape arc_shape(PartLayout layout)
