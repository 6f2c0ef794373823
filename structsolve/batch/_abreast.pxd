# Chains side by side, in float32: see abreast.h.
from libc.stdint cimport int64_t, uint32_t
from ._sheets cimport Sheet


cdef extern from "structsolve/batch/abreast.h" nogil:
    enum:
        ABREAST_MOST
    ctypedef struct Block "abreast":
        Py_ssize_t n, K, L
        Py_ssize_t length[16]
        const float* rows[16]
        const float* start
        const float* end
        const float* factors
        const float* turned
        float* scores
        float* ahead
        float* alpha
        float* pairs
        double tops[16]
        double logs[16]
        double mean[16]
        uint32_t bad, forbidden
    ctypedef struct abreast_loops:
        Py_ssize_t lanes
        void (*weigh)(Block*) noexcept nogil
        void (*forward)(Block*) noexcept nogil
        void (*partition)(Block*) noexcept nogil
        void (*backward)(Block*, int) noexcept nogil
        void (*outer)(Block*) noexcept nogil
        void (*mean_pairs)(const Block*, const float*, double*) noexcept nogil
        void (*slope)(Block*, const float*, float*) noexcept nogil
        void (*scatter)(const Block*, const float*, Py_ssize_t, int, float* const*) noexcept nogil


# The scores of a batch of chains for these loops; shared by threads.
cdef class Abreast:
    cdef const abreast_loops* loops
    cdef Sheet sheet
    cdef readonly Py_ssize_t K, count, bytes
    cdef Py_ssize_t rows, stride, transition, start, end
    cdef bint even                  # chains of one length
    cdef const int64_t[::1] all     # the order of these
    cdef bint forbids               # some pair is forbidden
    cdef double top                 # the largest score of a pair
    cdef double end_tops            # of the first state, and of the last: the largest, added
    # Pairs' scores less the largest, 0 where forbidden, (K, K); their exponentials; transposed; the
    # scores of the first state, and of the last, less the largest.
    cdef object tables, exponentials
    cdef const float* scores

    # The order of the examples of a range: the longest first, so that those of a block are about
    # as long.
    cdef const int64_t[::1] order(self, Py_ssize_t first, Py_ssize_t last)
    # Places n chains in memory of `bytes`, 64-byte aligned; open() weighs their scores, too.
    cdef void place(self, Block* b, const int64_t* chains, Py_ssize_t n,
                    char* memory) noexcept nogil
    cdef void open(self, Block* b, const int64_t* chains, Py_ssize_t n,
                   char* memory) noexcept nogil
    # Forward and backward: marginals of nodes to b.scores, of pairs to b.pairs, means to b.mean.
    cdef void sums(self, Block* b, bint nodes, bint pairs) noexcept nogil
    # Rows behind the memory of open().
    cdef float* spare(self, Block* b) noexcept nogil
    # After sums(): rows of nodes of `out` <- marginals.
    cdef void write(self, const Block* b, const int64_t* chains, Sheet out) noexcept nogil
    # Marginals of pairs, to out.each or else to spare memory: (K, K) for each lane.
    cdef float* pairs(self, Block* b, const int64_t* chains, Sheet out) noexcept nogil
    # The vector of example i times a factor: what write() and pairs() wrote, and shared blocks;
    # then of its label.
    cdef void weigh(self, const Block* b, Py_ssize_t lane, Py_ssize_t i, const float* pairs,
                    double factor, Sheet out, double* shared) noexcept nogil
    cdef void add_label(self, const Block* b, Py_ssize_t lane, Py_ssize_t i, const int* label,
                        double factor, Sheet out, double* shared) noexcept nogil
    # For an example that other loops wrote: out.each from its shared blocks.
    cdef void to_each(self, Py_ssize_t i, Sheet out) noexcept nogil
    # b.scores, b.pairs -= those of another block, which keep() has copied from here.
    cdef void keep(self, Block* b) noexcept nogil
    cdef void subtract_kept(self, Block* b) noexcept nogil
    # out <- expectations of rows of nodes and of the table of slope(); b.scores, b.pairs <-
    # covariances with them.  The rows: those of spare(b), or the scores, if `own`, less spare(b),
    # if `less`.
    cdef void covariances(self, Block* b, bint own, bint less, const float* table,
                          double* out) noexcept nogil
    # After outer(): out <- expectations of rows of nodes, from b.mean, and of a table of pairs.
    cdef void add_means(self, const Block* b, const float* table, double* out) noexcept nogil
    # After forward() or partition().
    cdef double log_partition(self, const Block* b, Py_ssize_t lane) noexcept nogil
    cdef double log_proba(self, const Block* b, Py_ssize_t lane, const int* label) noexcept nogil
    # Expectations of the scores, and of those of another block: of the difference if
    # `divergence`, with its table.
    cdef void means(self, Block* b, double* out) noexcept nogil
    cdef void means_of(self, Block* b, Block* second, bint divergence, const float* table,
                       double* out) noexcept nogil


# None if the loops do not fit.  The memory is that of `own`, of the same sheet's last scores.
cdef Abreast abreast_of(projection, Sheet sheet, Abreast own=*)
