# The base of the dual solvers' inner loops: the iterate, its average, the scalars of the state.
from libc.stdint cimport int64_t

from ..part_layout cimport PartLayout
from ..potentials.linear cimport LinearPotentials
from ..surrogates.base cimport Surrogate
from ._batches cimport BatchLoop


# The address of the first true label; example i's is layout.label_offsets[i] behind it.  Raises
# ValueError for labels, weights of examples or weights w that do not fit.
cdef const int* first_label(LinearPotentials potentials, Surrogate surrogate, labels,
                            weights=*, w=*) except? NULL

# Raises ValueError unless the examples to visit are from 0 to n - 1.
cdef int check_order(const int64_t[::1] order, Py_ssize_t n) except -1


cdef class DualLoop(BatchLoop):
    cdef readonly LinearPotentials potentials
    cdef readonly Surrogate surrogate
    cdef readonly object w, average, gaps
    cdef readonly object moved          # 1 where the last visit moved an example's dual variable
    cdef double[::1] w_view, average_view, gaps_view
    cdef const double[::1] weights
    cdef const int[::1] labels
    cdef const int* truths
    cdef char[::1] moved_view
    cdef Py_ssize_t max_cuts
    # Sum of the rises of the dual in steps; constraints on w change it more.
    cdef public double rise
    cdef public double alpha, b_total, average_mass
    cdef public long steps_done

    cdef const int* truth(self, Py_ssize_t i) noexcept nogil


cdef class ExactLoop(DualLoop):
    cdef long visit(self, Py_ssize_t i, bint full, double min_gain) except -1 nogil
    cdef void fetch(self, const int64_t* order, Py_ssize_t left) noexcept nogil


cdef struct Entry:
    double value        # of the dual variable
    double b
    int index

cdef struct Block:
    Entry* entries
    int count, capacity, truth
    double base, norm, share        # b of the truth; <x, x>; u_i / alpha


# ExactLoop with a list of each example's entries.
cdef class ListLoop(ExactLoop):
    cdef Block* blocks
    cdef Py_ssize_t n
    cdef tuple names    # of values and of indices in checkpoints

    cdef int make_room(self, Py_ssize_t i, Py_ssize_t wanted) except -1 nogil
