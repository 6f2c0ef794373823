# Threads that share the pieces of a batch, thousands of batches a second.
from libc.stdint cimport int64_t

cdef extern from "structsolve/solvers/team.h" nogil:
    int64_t ss_load(int64_t* place) noexcept nogil
    void ss_store(int64_t* place, int64_t value) noexcept nogil
    int64_t ss_add(int64_t* place, int64_t value) noexcept nogil
    bint ss_swap(int64_t* place, int64_t old, int64_t fresh) noexcept nogil
    void ss_relax() noexcept nogil
    double ss_seconds() noexcept nogil

cdef enum:
    MOST_PIECES = 0x7fff    # of a batch; the numbers of two share a word with that of the batch


cdef class Shared:
    # Do piece k, with the memory of thread `thread`; the thread that shares is number 0.
    cdef int piece(self, Py_ssize_t k, Py_ssize_t thread) except -1 nogil


# One thread's lock for sleeping, on its own cache line.
cdef struct Bed:
    int64_t asleep
    void* lock
    int64_t[6] padding


cdef class Team:
    cdef readonly Py_ssize_t size       # threads, with the one that shares
    cdef readonly list seconds
    cdef Shared work
    cdef Bed* beds
    cdef int64_t* words                 # ticket, done, stop, each on a cache line of its own
    cdef int64_t batch
    cdef bint working
    cdef object threads, errors, owner

    # Do the pieces 0 .. n - 1 of the work, and return when all are done.  Raises the error of the
    # first failed piece.
    cdef int share(self, Py_ssize_t n) except -1 nogil
    cdef void _do(self, Py_ssize_t k, Py_ssize_t thread) noexcept nogil
    cdef void _help(self, Py_ssize_t thread) noexcept nogil
    cdef void _sleep(self, Py_ssize_t thread, int64_t n) noexcept nogil
    cdef void _wake(self, Py_ssize_t thread) noexcept nogil
    cdef bint _idle(self, Py_ssize_t thread, int64_t n) noexcept nogil
