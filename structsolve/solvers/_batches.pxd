# Passes in batches: visits at one w, which threads share, and their steps one after the other.
from libc.stdint cimport int64_t
from ._team cimport Shared, Team


# What batches of one kind have cost: by the threads of a team [1], by one thread alone [0].
cdef struct Trial:
    Py_ssize_t batches
    double[2] seconds
    double[2] visits


cdef class BatchLoop(Shared):
    cdef Py_ssize_t* examples       # of each slot: those of a batch, and of the one before
    cdef Py_ssize_t* sizes
    cdef Py_ssize_t* turns          # slots of the batch in the order in which threads take them
    cdef Py_ssize_t n_slots, now, last, n_now, n_last
    cdef char[::1] taken            # 1 for the examples of the slots
    cdef bint damped                # other steps may come between a proposal and its own
    cdef object slot_owners
    cdef Trial[2] trials            # visits that call the oracle, cheap ones
    cdef bint cheap                 # the present ones are

    # What the loops give.  Visit example i at the present w, which stays; any thread.
    cdef int propose(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil
    # Take the step: move w.  One thread, in the order of the examples.
    cdef int take(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil
    # What is left to do for the example, when its step is known; any thread.
    cdef int finish(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil
    # Add up what finish() found; one thread, in the order of the examples.
    cdef int close(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil
    # Forget a proposal.
    cdef int give_up(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil
    cdef Py_ssize_t size_of(self, Py_ssize_t i) noexcept nogil
    # A visit of the example is near: what it reads may be fetched.
    cdef void expect(self, Py_ssize_t i) noexcept nogil

    # Visit all of `order`.
    cdef int visit_all(self, const int64_t[::1] order, Py_ssize_t batch, Team team) except -1
    cdef bint _alone(self, Trial* trial) noexcept nogil
    cdef Py_ssize_t _batch(self, const int64_t* order, Py_ssize_t most, Team team) except -1 nogil


# Memory of zeros for as long as the list lives, on cache lines of its own.
cdef double* doubles(Py_ssize_t n, list owners) except NULL
cdef int* integers(Py_ssize_t n, list owners) except NULL
