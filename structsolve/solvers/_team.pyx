# build: glue
"""Threads that share the pieces of a batch: thousands of batches a second, a few pieces each.

The pieces of a batch are counted in one word, its *ticket*, from which every thread takes the next
number.  The thread that shares a batch takes pieces like the others, and waits only for pieces that
were taken: without a spare core the helpers sleep, and no thread waits for them.  Threads without a
piece spin for some microseconds, then sleep on a lock of the interpreter's.
"""

import threading
import time

import numpy as np

from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock,
    WAIT_LOCK)

# Spins before a thread sleeps: about the time of falling asleep and waking.
cdef enum:
    LOOKS = 2000
    # A cache line, in words.
    LINE = 8
    MOST = 0xffff   # threads, as many as a ticket counts pieces

# Places among the words.
cdef enum:
    TICKET = 0              # batch << 32 | pieces << 16 | next piece
    DONE = LINE
    STOP = 2 * LINE
    FAILED = 2 * LINE + 1   # pieces of this batch

ctypedef int (*Attempt)(Shared work, Py_ssize_t k, Py_ssize_t thread) noexcept nogil


cdef class Shared:
    """What a team works on."""

    cdef int piece(self, Py_ssize_t k, Py_ssize_t thread) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement piece()")


cdef int _piece(Shared work, Py_ssize_t k, Py_ssize_t thread) except -1 nogil:
    return work.piece(k, thread)


cdef int _pending() except -1:
    """Return the value of a function that has set an error."""
    return -1


cdef inline int64_t _left(int64_t ticket) noexcept nogil:
    """Number of pieces not taken."""
    return ((ticket >> 16) & 0xffff) - (ticket & 0xffff)


cdef class Team:
    """Threads that share the pieces of batches while the team is entered (``with``).

    The thread that shares a batch is one of them.  Outside ``with``, and in teams of one, it does
    all pieces.

    Parameters
    ----------
    work : Shared
        Does a piece.
    size : int
        Threads, from 1 to 65535.

    Attributes
    ----------
    seconds : list of float
        CPU seconds of each helper so far, including spinning.
    """

    def __cinit__(self, Shared work not None, Py_ssize_t size):
        if not 1 <= size <= MOST:
            raise ValueError(f"size is {size}, expected 1 to {MOST} threads")
        self.size, self.work = size, work
        # numpy's own memory is freed with it, after the locks.
        self.owner = np.zeros((size + 4) * LINE, dtype=np.int64)
        cdef int64_t[::1] memory = self.owner
        cdef Py_ssize_t first = (64 - <size_t>&memory[0] % 64) % 64 // 8, k
        self.words = &memory[first]
        self.beds = <Bed*>(self.words + 3 * LINE)
        self.threads, self.errors, self.seconds = [], {}, [0.0] * (size - 1)
        for k in range(size if size > 1 else 0):
            self.beds[k].lock = PyThread_allocate_lock()
            if self.beds[k].lock == NULL:
                raise MemoryError("no lock for a thread")
            PyThread_acquire_lock(self.beds[k].lock, WAIT_LOCK)

    def __dealloc__(self):
        cdef Py_ssize_t k
        if self.beds != NULL:
            for k in range(self.size):
                if self.beds[k].lock != NULL:
                    PyThread_release_lock(self.beds[k].lock)
                    PyThread_free_lock(self.beds[k].lock)

    def __enter__(self):
        self.words[STOP] = 0
        try:
            for k in range(1, self.size):
                thread = threading.Thread(target=self._thread, args=(k,), daemon=True)
                self.threads.append(thread)
                thread.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.working = self.size > 1
        return self

    def __exit__(self, kind, error, trace):
        cdef Py_ssize_t k
        self.working = False
        ss_store(&self.words[STOP], 1)
        for k in range(1, self.size):
            self._wake(k)
        for thread in self.threads:
            if thread.ident is not None:
                thread.join()
        self.threads.clear()

    def _thread(self, Py_ssize_t thread):
        with nogil:
            self._help(thread)
        # A thread lives from __enter__ to __exit__.
        self.seconds[thread - 1] += time.thread_time()

    cdef int share(self, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t k
        cdef int64_t ticket, looks = 0
        if not self.working or n < 2:
            for k in range(n):
                self.work.piece(k, 0)
            return 0
        self.batch = (self.batch + 1) & 0x7fffffff
        self.words[DONE] = self.words[FAILED] = 0
        ss_store(&self.words[TICKET], self.batch << 32 | <int64_t>n << 16)
        for k in range(1, min(n, self.size)):
            self._wake(k)
        while True:
            ticket = ss_load(&self.words[TICKET])
            if _left(ticket) == 0:
                break
            if ss_swap(&self.words[TICKET], ticket, ticket + 1):
                self._do(ticket & 0xffff, 0)
                ss_add(&self.words[DONE], 1)
        while ss_load(&self.words[DONE]) < n:
            looks += 1
            if looks < LOOKS:
                ss_relax()
            else:
                self._sleep(0, n)
        if ss_load(&self.words[FAILED]):
            with gil:
                error = self.errors[min(self.errors)]
                self.errors.clear()
                raise error
        return 0

    cdef void _do(self, Py_ssize_t k, Py_ssize_t thread) noexcept nogil:
        """Do piece k; record an error."""
        if (<Attempt>_piece)(self.work, k, thread) < 0:
            with gil:
                try:
                    _pending()
                except BaseException as error:
                    self.errors[k] = error
            ss_add(&self.words[FAILED], 1)

    cdef void _help(self, Py_ssize_t thread) noexcept nogil:
        """Take pieces until the team is left."""
        cdef int64_t ticket, looks = 0
        while True:
            ticket = ss_load(&self.words[TICKET])
            if _left(ticket) > 0:
                if ss_swap(&self.words[TICKET], ticket, ticket + 1):
                    self._do(ticket & 0xffff, thread)
                    if ss_add(&self.words[DONE], 1) == (ticket >> 16) & 0xffff:
                        self._wake(0)
                looks = 0
            elif ss_load(&self.words[STOP]):
                return
            else:
                looks += 1
                if looks < LOOKS:
                    ss_relax()
                else:
                    self._sleep(thread, 0)
                    looks = 0

    cdef bint _idle(self, Py_ssize_t thread, int64_t n) noexcept nogil:
        """Whether to wait: thread 0 until n pieces are done, others until there is a batch."""
        if thread == 0:
            return ss_load(&self.words[DONE]) < n
        return _left(ss_load(&self.words[TICKET])) == 0 and not ss_load(&self.words[STOP])

    cdef void _sleep(self, Py_ssize_t thread, int64_t n) noexcept nogil:
        """Sleep until another thread wakes this one, unless there is work."""
        cdef int64_t* asleep = &self.beds[thread].asleep
        ss_store(asleep, 1)
        # The waker reads `asleep` after changing the word, so one thread sees the other's change.
        if not self._idle(thread, n) and ss_swap(asleep, 1, 0):
            return
        PyThread_acquire_lock(self.beds[thread].lock, WAIT_LOCK)

    cdef void _wake(self, Py_ssize_t thread) noexcept nogil:
        cdef int64_t* asleep = &self.beds[thread].asleep
        if ss_load(asleep) and ss_swap(asleep, 1, 0):
            PyThread_release_lock(self.beds[thread].lock)
