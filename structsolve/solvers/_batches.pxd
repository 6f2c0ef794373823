# Passes in batches: threads share the visits at one w; the steps follow sequentially.
from libc.stdint cimport int64_t
from ._team cimport Shared, Team


# Cost of batches of one kind: with the threads of a team [1], with one thread [0].
cdef struct Trial:
    Py_ssize_t batches
    double[2] seconds
    double[2] visits


cdef class BatchLoop(Shared):
    cdef Py_ssize_t* examples       # per slot: those of a batch, and of the one before
    cdef Py_ssize_t* sizes
    cdef Py_ssize_t* turns          # slots of the batch in the order of the threads
    cdef Py_ssize_t n_slots, now, last, n_now, n_last
    cdef char[::1] taken            # 1 for the examples of the slots
    cdef bint damped                # other steps may come between a proposal and its own
    cdef object slot_owners
    cdef Trial[2] trials            # visits that call the oracle, cheap ones
    cdef bint cheap                 # the present ones are

    # Methods of the loops.  Visit example i at the current, fixed w; any thread.
    cdef int propose(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil
    # Take the step: move w.  One thread, in the order of the examples.
    cdef int take(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil
    # Complete the example after its step is known; any thread.
    cdef int finish(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil
    # Add up the results of finish(); one thread, in the order of the examples.
    cdef int close(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil
    # Drop a proposal.
    cdef int give_up(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil
    cdef Py_ssize_t size_of(self, Py_ssize_t i) noexcept nogil
    # A visit of the example follows soon: prefetch its data.
    cdef void expect(self, Py_ssize_t i) noexcept nogil

    # Visit all of `order`.
    cdef int visit_all(self, const int64_t[::1] order, Py_ssize_t batch, Team team) except -1
    cdef bint _alone(self, Trial* trial) noexcept nogil
    cdef Py_ssize_t _batch(self, const int64_t* order, Py_ssize_t most, Team team) except -1 nogil


# Zeroed memory that lives as long as the list, on its own cache lines.
cdef double* doubles(Py_ssize_t n, list owners) except NULL
cdef int* integers(Py_ssize_t n, list owners) except NULL
