# Charts of projective trees over spans (Eisner): best scores, weights or their logs, marginals.
from structsolve.plugins.dependency._semiring cimport Semiring


cdef struct Chart:
    Semiring kind
    Py_ssize_t n, width, first      # nodes first .. n; the root is node 0, if it takes part
    bint single
    # Squares of `width`.  right: complete spans headed by their left end, [left, right]; left: by
    # their right end; arc_right: spans whose ends are joined by an arc from left to right.
    # The others are transposed: [right, left].
    double* right
    double* right_t
    double* left
    double* left_t
    double* arc_right
    double* arc_left_t
    double* joined


# Bytes of one chart for sentences of at most n words.
cdef Py_ssize_t chart_bytes(Py_ssize_t n) noexcept nogil
cdef Chart chart_in(Semiring kind, Py_ssize_t n, bint single, char* memory) noexcept nogil
# Fills the chart from table[m, head]; returns the sum over all trees.
cdef double fill(const Chart* chart, const double* table) noexcept nogil
# heads <- the best tree, or one drawn with `uniforms`, a number per word (or NULL).
cdef void trace(const Chart* chart, const double* uniforms, int* heads) noexcept nogil
# table[m, head] <- marginals; `memory` for a second chart.
cdef void spread(const Chart* chart, double total, double* table, char* memory) noexcept nogil
