"""Passes in batches: threads share the visits at one w; the steps follow sequentially."""

import numpy as np

from ._team cimport MOST_PIECES, Shared, Team, ss_seconds

from ..utils.arrays import aligned_zeros

# Visits between a fetch and its use.
cdef Py_ssize_t AHEAD = 2

cdef enum:
    # Batches that measure the gain of threads: one thread makes every second one.
    TRIALS = 16
    # ... and after this many, measure again.
    PERIOD = 2000

# Seconds of a visit that are long compared with the cost of sharing it.
cdef double LONG = 2e-4


cdef class BatchLoop(Shared):
    """Base of the loops over examples.

    A batch has three parts: threads share the visits at the initial w; one thread takes the steps;
    the remaining work of each example waits for the next batch, where threads share it with the
    visits.  The result depends on the batches, not on the number of threads.

    So one thread may work alone if sharing would be slower: some batches are timed both ways, and
    the others use the faster way.
    """

    def __cinit__(self, *args, **kwargs):
        self.taken = None

    def reserve(self, Py_ssize_t n, Py_ssize_t threads, Py_ssize_t batch):
        """Allocate memory for these numbers of examples, threads, and visits of a batch.

        Parameters
        ----------
        n : int
        threads : int
        batch : int
        """
        if not 1 <= batch <= MOST_PIECES:
            raise ValueError(f"batch is {batch}, expected 1 to {MOST_PIECES}")
        if self.taken is None or self.taken.shape[0] < n + 1:
            self.taken = np.zeros(n + 1, dtype=np.int8)
        if 2 * batch > self.n_slots:
            owners = []
            self.examples = <Py_ssize_t*>doubles(2 * batch, owners)
            self.sizes = <Py_ssize_t*>doubles(2 * batch, owners)
            self.turns = <Py_ssize_t*>doubles(batch, owners)
            self.slot_owners, self.n_slots = owners, 2 * batch
        self.now, self.last = 0, batch

    cdef int visit_all(self, const int64_t[::1] order, Py_ssize_t batch, Team team) except -1:
        cdef Py_ssize_t k = 0, n
        cdef Trial* trial = &self.trials[self.cheap]
        cdef bint alone
        cdef double begun
        if team is not None and team.work is not self:
            raise ValueError("the team was made for another loop")
        self.damped = batch > 1
        try:
            with nogil:
                while k < order.shape[0]:
                    if batch == 1 and k + AHEAD < order.shape[0]:
                        self.expect(order[k + AHEAD])
                    n = min(batch, order.shape[0] - k)
                    if team is None or team.size == 1:
                        k += self._batch(&order[k], n, None)
                        continue
                    alone, begun = self._alone(trial), ss_seconds()
                    n = self._batch(&order[k], n, None) if alone else (
                        self._batch(&order[k], n, team))
                    trial.seconds[not alone] += ss_seconds() - begun
                    trial.visits[not alone] += n
                    trial.batches += 1
                    k += n
                self._batch(NULL, 0, team)
        except BaseException:
            self._break_off()
            raise
        return 0

    cdef bint _alone(self, Trial* trial) noexcept nogil:
        """Return whether one thread makes the next batch."""
        cdef Py_ssize_t way
        if trial.batches >= PERIOD:
            trial.batches = 0
            for way in range(2):
                trial.seconds[way] = trial.visits[way] = 0
        # Long visits are always shared: trials by one thread would be expensive.
        if trial.seconds[1] >= LONG * trial.visits[1]:
            return False
        if trial.batches < TRIALS:
            return trial.batches & 1
        return (trial.seconds[0] * trial.visits[1]) < (trial.seconds[1] * trial.visits[0])

    cdef Py_ssize_t _batch(self, const int64_t* order, Py_ssize_t most, Team team) except -1 nogil:
        """Visit the first examples of ``order``; return their number.

        A repeated example ends the batch, also one of the previous batch, whose visit is not
        finished.  The batch may then be empty.
        """
        cdef Py_ssize_t n = 0, j, k
        cdef Py_ssize_t* examples = self.examples + self.now
        cdef Py_ssize_t* sizes = self.sizes + self.now
        while n < most and not self.taken[order[n]]:
            self.taken[order[n]] = 1
            examples[n] = order[n]
            n += 1
        # Long examples first, so threads end together.
        for k in range(n):
            sizes[k] = self.size_of(examples[k])
            j = k
            while j > 0 and sizes[self.turns[j - 1]] < sizes[k]:
                self.turns[j] = self.turns[j - 1]
                j -= 1
            self.turns[j] = k
        self.n_now = n
        if team is not None:
            team.share(max(n, self.n_last))
        else:
            for k in range(max(n, self.n_last)):
                self.piece(k, 0)
        for k in range(self.n_last):
            self.close(self.last + k, self.examples[self.last + k])
            self.taken[self.examples[self.last + k]] = 0
        self.n_last = 0
        for k in range(n):
            self.take(self.now + k, examples[k])
        self.now, self.last = self.last, self.now
        self.n_last, self.n_now = n, 0
        return n

    cdef int piece(self, Py_ssize_t k, Py_ssize_t thread) except -1 nogil:
        cdef Py_ssize_t slot
        if k < self.n_last:
            slot = self.last + k
            self.finish(slot, self.examples[slot], thread)
        if k < self.n_now:
            slot = self.now + self.turns[k]
            self.propose(slot, self.examples[slot], thread)
        return 0

    def _break_off(self):
        """Finish the steps taken, and drop the proposals, after a failed visit."""
        cdef Py_ssize_t slot
        for slot in range(self.last, self.last + self.n_last):
            self.finish(slot, self.examples[slot], 0)
            self.close(slot, self.examples[slot])
        for slot in range(self.now, self.now + self.n_now):
            self.give_up(slot, self.examples[slot])
        self.n_last = self.n_now = 0
        self.taken[:] = 0

    cdef int propose(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement propose()")

    cdef int take(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement take()")

    cdef int finish(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil:
        return 0

    cdef int close(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil:
        return 0

    cdef int give_up(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil:
        return 0

    cdef Py_ssize_t size_of(self, Py_ssize_t i) noexcept nogil:
        return 1

    cdef void expect(self, Py_ssize_t i) noexcept nogil:
        pass


cdef double* doubles(Py_ssize_t n, list owners) except NULL:
    """Return zeroed memory on its own cache lines, which lives as long as ``owners``."""
    cdef double[::1] memory = aligned_zeros(n + 8)
    owners.append(memory)
    return &memory[0]


cdef int* integers(Py_ssize_t n, list owners) except NULL:
    return <int*>doubles(n // 2 + 1, owners)
