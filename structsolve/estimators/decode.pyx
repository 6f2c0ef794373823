# build: glue
"""Prediction over many examples, in threads: labels, k best, samples, marginals of the nodes."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np

from libc.math cimport INFINITY, NAN, fabs
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc, free
from ..lp.oracle cimport ProgramOracle
from ..operators cimport KBest, Loss, MaxMarginals, Operator, Oracle, Projection
from ..part_layout cimport PartLayout
from ..potentials.linear cimport LinearPotentials
from ..structure.answer_checks cimport check_answer, check_numbers

from ..utils.arrays import aligned_zeros, check_numbers as known_labels, padded
from ..lp.oracle import empty
from ..utils.parallel import effective_jobs, over_examples


cdef enum:
    LINE = 64       # bytes of a cache line


cdef class Room:
    """Memory of one thread: part scores of an example, and work space of an operator."""

    cdef double* theta
    cdef char* work
    cdef void* _block

    def __cinit__(self, LinearPotentials potentials not None, Py_ssize_t work_bytes):
        if work_bytes < 0:
            raise ValueError(f"work_bytes is {work_bytes}, expected at least 0")
        cdef size_t scores = ((potentials.max_theta + 8) * sizeof(double) + LINE - 1) // LINE * LINE
        self._block = calloc(scores + work_bytes + 3 * LINE, 1)
        if self._block == NULL:
            raise MemoryError(
                f"no memory for {work_bytes} bytes of scratch and {potentials.max_theta} part scores "
                "of the largest example, for each thread: ask for fewer labels (k), give smaller "
                "examples, or fewer n_jobs"
            )
        self.theta = <double*>((<uintptr_t>self._block + LINE - 1) // LINE * LINE)
        self.work = <char*>self.theta + scores

    def __dealloc__(self):
        free(self._block)


cdef class Masks:
    """Additive masks of scores (0 and -inf) for the shared blocks and the stacked node rows.

    An entry of inf in a node's row forces a part that is on or off: its score exceeds the sum of
    all other scores of the example.
    """

    cdef double[::1] shared
    cdef double[:, ::1] nodes
    cdef readonly bint has_shared, has_nodes, forces

    def __init__(self, layout, masks):
        shared = np.zeros(max(layout.shared_size, 1))
        for name, mask in masks.items():
            if layout.node is not None and name == layout.node.name:
                self.nodes = np.ascontiguousarray(mask, dtype=np.float64)
                self.has_nodes = True
                self.forces = bool(np.isposinf(self.nodes).any())
            else:
                layout.view(shared, name)[...] = mask
                self.has_shared = True
        self.shared = shared

    def check(self, LinearPotentials potentials not None):
        """Check that there is one row per node of the examples."""
        shape = potentials.offsets[potentials.n], potentials.node_size
        if self.has_nodes and (self.nodes.shape[0], self.nodes.shape[1] <= shape[1]) != (
                shape[0], True):
            raise ValueError(
                f"masks: found rows of shape {(self.nodes.shape[0], self.nodes.shape[1])}, "
                f"expected {shape}"
            )
        if self.has_shared and self.shared.shape[0] < potentials.shared_size:
            raise ValueError(f"masks: found {self.shared.shape[0]} shared scores, expected "
                             f"{potentials.shared_size}")

    cdef void apply(self, LinearPotentials potentials, Py_ssize_t i, double* theta) noexcept nogil:
        cdef Py_ssize_t j, v, s
        cdef double* row = theta + potentials.shared_size
        cdef double most = 1
        if self.forces:
            for j in range(potentials.theta_size(i)):
                most += 2 * fabs(theta[j])
        if self.has_shared:
            for j in range(potentials.shared_size):
                theta[j] += self.shared[j]
        if self.has_nodes:
            for v in range(potentials.offsets[i], potentials.offsets[i + 1]):
                for s in range(self.nodes.shape[1]):
                    row[s] += most if self.nodes[v, s] == INFINITY else self.nodes[v, s]
                row += potentials.node_size


cdef PartLayout _bound(LinearPotentials potentials, Operator operator, const double[::1] w,
                       Masks mask=None):
    """Check that an operator and arrays fit the examples; return the operator's layout."""
    cdef PartLayout layout = operator.layout
    if layout is None or layout.n != potentials.n or layout.max_theta > potentials.max_theta:
        raise ValueError(
            f"{type(operator).__name__} is not bound to the {potentials.n} examples of the "
            "potentials"
        )
    if w.shape[0] != potentials.dim:
        raise ValueError(f"w: found {w.shape[0]} entries, expected {potentials.dim}")
    if mask is not None:
        mask.check(potentials)
    return layout


def decode(LinearPotentials potentials not None, Oracle oracle not None,
           const double[::1] w not None, masks, n_jobs=1, bounds=None):
    """Return the best label of every example, concatenated, and its score.

    Parameters
    ----------
    potentials : LinearPotentials
    oracle : Oracle
        Bound to the same examples.
    w : ndarray of float64 of shape (dim,)
    masks : dict of str to ndarray
        Added to the part scores, by block name.
    n_jobs : int or None, default=1
    bounds : ndarray of float64 of shape (n,), optional
        Filled with the oracle's upper bound of the score of any label of an example.

    Returns
    -------
    labels : ndarray of int32
    scores : ndarray of float64 of shape (n,)
    """
    cdef Masks mask = Masks(potentials.layout, masks) if masks else None
    cdef PartLayout layout = _bound(potentials, oracle, w, mask)
    cdef Py_ssize_t total = layout.label_offsets[layout.n]
    labels = np.zeros(total + 1, dtype=np.int32)  # spare entry: the last examples may be empty
    scores = np.empty(layout.n)
    if bounds is not None and np.shape(bounds) != (layout.n,):
        raise ValueError(f"bounds: found shape {np.shape(bounds)}, expected ({layout.n},)")
    cdef int[::1] out = labels
    cdef double[::1] score_view = scores
    cdef double[::1] bound_view = bounds

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i
        cdef double bound
        with nogil:
            for i in range(first, last):
                potentials.score(i, &w[0], 1.0, room.theta)
                if mask is not None:
                    mask.apply(potentials, i, room.theta)
                oracle.argmax(i, room.theta, &out[layout.label_offsets[i]], &score_view[i],
                              &bound if bound_view is None else &bound_view[i], room.work)

    over_examples(piece, layout.examples.offsets, n_jobs,
                  lambda: Room(potentials, oracle.work_bytes))
    return labels[:total], scores


def sample_labels(LinearPotentials potentials not None, Oracle oracle not None, Loss loss not None,
                  const double[::1] w not None, numbers, const int[::1] truths not None):
    """Return the best labels of some examples, and the sum of their losses.

    Parameters
    ----------
    potentials : LinearPotentials
    oracle : Oracle
    loss : Loss
        Both bound to the same examples.
    w : ndarray of float64 of shape (dim,)
    numbers : array of int
        Numbers of the examples.
    truths : ndarray of int32
        Their true labels, concatenated.

    Returns
    -------
    labels : ndarray of int32
        Concatenated.
    loss : float
    """
    cdef PartLayout layout = _bound(potentials, oracle, w)
    _bound(potentials, loss, w)
    chosen = np.ascontiguousarray(numbers, dtype=np.int64)
    if chosen.ndim != 1 or chosen.size and not 0 <= chosen.min() <= chosen.max() < layout.n:
        raise ValueError(f"numbers: found {numbers}, expected numbers from 0 to {layout.n - 1}")
    cdef const int64_t[::1] order = chosen
    cdef Py_ssize_t k, i, start = 0, size = 0
    for k in range(order.shape[0]):
        size += layout.label_size(order[k])
    if truths.shape[0] != size:
        raise ValueError(f"truths: found {truths.shape[0]} entries, expected {size}")
    states = loss.n_states or 2**31 - 1
    known_labels(truths, states + loss.takes_unseen, "truths")
    labels = np.zeros(size + 1, dtype=np.int32)  # spare entry: the last examples may be empty
    if size == 0:
        return labels[:0], 0.0
    cdef int[::1] out = labels
    cdef Room room = Room(potentials, oracle.work_bytes)
    cdef double total = 0, value = NAN, bound = NAN
    with nogil:
        for k in range(order.shape[0]):
            i = order[k]
            potentials.score(i, &w[0], 1.0, room.theta)
            oracle.argmax(i, room.theta, &out[start], &value, &bound, room.work)
            check_answer(oracle, i, &out[start], loss.n_states)
            total += loss.value(i, &truths[start], &out[start])
            start += layout.label_size(i)
    return labels[:start], total


def refuse_impossible(const double[::1] scores not None):
    """Refuse scores of examples without an allowed label.

    Parameters
    ----------
    scores : ndarray of float64 of shape (n,)
        -inf if no label is allowed.

    Raises
    ------
    ValueError
        The message names the first of them.
    """
    cdef Py_ssize_t i
    for i in range(scores.shape[0]):
        if scores[i] == -INFINITY:
            raise ValueError(f"example {i}: the constraints leave no label at all; allow more")


def decode_kbest(LinearPotentials potentials not None, KBest kbest not None,
                 const double[::1] w not None, masks, Py_ssize_t k, n_jobs=1):
    """Return the k best labels of every example, best first.

    Parameters
    ----------
    potentials, masks
        See :func:`decode`.
    kbest : KBest
        Bound to the same examples.
    w : ndarray of float64 of shape (dim,)
    k : int
    n_jobs : int or None, default=1

    Returns
    -------
    labels : list of ndarray of int32 of shape (count, size of the label)
    scores : list of ndarray of float64
    """
    cdef Masks mask = Masks(potentials.layout, masks) if masks else None
    cdef PartLayout layout = _bound(potentials, kbest, w, mask)
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    cdef Py_ssize_t longest = max(layout.max_label, 1)
    labels, scores = [None] * layout.n, [None] * layout.n

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i, many, size
        cdef int[::1] out = np.empty(longest * k, dtype=np.int32)
        cdef double[::1] values = np.empty(k)
        for i in range(first, last):
            with nogil:
                potentials.score(i, &w[0], 1.0, room.theta)
                if mask is not None:
                    mask.apply(potentials, i, room.theta)
                many = kbest.kbest(i, room.theta, k, &out[0], &values[0], room.work)
                size = layout.label_size(i)
            labels[i] = np.array(out[:many * size]).reshape(many, size)
            scores[i] = np.array(values[:many])

    over_examples(piece, layout.examples.offsets, n_jobs,
                  lambda: Room(potentials, kbest.bytes_for(k)))
    return labels, scores


def draw(LinearPotentials potentials not None, Projection projection not None,
         const double[::1] w not None, Py_ssize_t n, *, double scale, seed, n_jobs=1):
    """Draw labels of every example from ``p(y) ~ exp(scale <theta, mu(y)>)``.

    Every example has its own random numbers, so they do not depend on ``n_jobs``.

    Parameters
    ----------
    potentials
        See :func:`decode`.
    projection : Projection
        Must have samples.
    w : ndarray of float64 of shape (dim,)
    n : int
        Labels per example.
    scale : float
        Factor of all scores.
    seed : int
    n_jobs : int or None, default=1

    Returns
    -------
    labels : ndarray of int32 of shape (n, size of all labels)
    """
    cdef PartLayout layout = _bound(potentials, projection, w)
    if n < 1:
        raise ValueError(f"n is {n}, expected at least 1")
    cdef Py_ssize_t total = layout.label_offsets[layout.n]
    labels = np.zeros((n, max(total, 1)), dtype=np.int32)
    longest = max(layout.max_label, 1)

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i, k, size
        cdef double[::1] uniforms
        cdef int[::1] out = np.empty(n * longest, dtype=np.int32)
        for i in range(first, last):
            size = layout.label_size(i)
            uniforms = np.random.default_rng([seed, i]).random(max(n * size, 1))
            with nogil:
                potentials.score(i, &w[0], scale, room.theta)
                projection.sample(i, room.theta, n, &uniforms[0], &out[0], room.work)
                for k in range(n):
                    check_answer(projection, i, &out[0] + k * size, projection.n_states)
            labels[:, layout.label_offsets[i]:layout.label_offsets[i + 1]] = (
                np.asarray(out)[:n * size].reshape(n, size))

    work_bytes = projection.work_bytes
    over_examples(piece, layout.examples.offsets, n_jobs, lambda: Room(potentials, work_bytes))
    return labels[:, :total]


def node_rows(LinearPotentials potentials not None, Operator operator not None,
              const double[::1] w not None, masks, *, double scale=1.0, n_jobs=1,
              Py_ssize_t state_rows=0):
    """Return node rows of an operator's result: max-marginals, or marginals of a projection.

    Parameters
    ----------
    potentials, masks
        See :func:`decode`.
    operator : MaxMarginals or Projection
    w : ndarray of float64 of shape (dim,)
    scale : float, default=1.0
        Factor of all scores.
    n_jobs : int or None, default=1
    state_rows : int, default=0
        If above 0, return the first rows of the projection's states, with this many probabilities
        per node, instead of the marginals of the node block.

    Returns
    -------
    rows : ndarray of float64 of shape (n_nodes, states)
        A row of several axes is returned flat, with its padding.
    values : ndarray of float64 of shape (n,)
        Value of each projection (log-partition); zeros for max-marginals.
    """
    cdef Masks mask = Masks(potentials.layout, masks) if masks else None
    cdef PartLayout layout = _bound(potentials, operator, w, mask)
    cdef MaxMarginals best = operator if isinstance(operator, MaxMarginals) else None
    cdef Projection projection = None if best is not None else operator
    cdef Py_ssize_t states = potentials.node_size, stride = potentials.node_size
    cdef Py_ssize_t largest = potentials.max_theta
    if len(potentials.layout.node.shape) == 1:
        states = potentials.layout.node.shape[0]
    if best is not None and (state_rows or padded(best.n_states) > stride):
        raise ValueError(
            f"{type(operator).__name__} has {best.n_states} states, expected as many as the rows "
            "of the node block, and no states of a projection"
        )
    if state_rows and not projection.has_state:
        raise ValueError(f"{type(operator).__name__} has no states")
    if state_rows:
        states, stride = state_rows, padded(state_rows)
        largest = max([projection.state_size(i) for i in range(layout.n)], default=0)
    rows = np.empty((max(layout.offsets[layout.n], 1), states))
    values = np.zeros(layout.n)
    cdef double[:, ::1] out = rows
    cdef double[::1] value_view = values

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i, v, s
        cdef double[::1] mu = aligned_zeros(largest + 8)
        cdef const double* row
        cdef double bound
        with nogil:
            for i in range(first, last):
                potentials.score(i, &w[0], scale, room.theta)
                if mask is not None:
                    mask.apply(potentials, i, room.theta)
                if best is not None:
                    best.max_marginals(i, room.theta, &mu[0], room.work)
                    row = &mu[0]
                elif state_rows:
                    projection.project_state(i, room.theta, &mu[0], &value_view[i], &bound,
                                             room.work)
                    row = &mu[0]
                else:
                    projection.project(i, room.theta, &mu[0], &value_view[i], &bound, room.work)
                    row = &mu[0] + potentials.shared_size
                if best is None:
                    check_numbers(projection, i, stride * layout.nodes_of(i), row)
                for v in range(layout.offsets[i], layout.offsets[i + 1]):
                    for s in range(states):
                        out[v, s] = row[s]
                    row += stride

    work_bytes = operator.work_bytes
    over_examples(piece, layout.examples.offsets, n_jobs, lambda: Room(potentials, work_bytes))
    return rows[:layout.offsets[layout.n]], values


cdef class Batches(Oracle):
    """Stand-in for a :class:`ProgramOracle` that decodes examples of one key together.

    Batches depend only on the order of the examples, not on the threads.

    Parameters
    ----------
    oracle : ProgramOracle
    run : callable
        ``run(function, batches)``: the built-in ``map``, or a pool's.
    wave : int
        Number of batches to gather before they are run.
    """

    cdef ProgramOracle oracle
    cdef readonly object answers
    cdef object waiting, full, run, wave

    def __init__(self, ProgramOracle oracle not None, run, wave):
        super().__init__(oracle.layout)
        self.oracle, self.run, self.wave = oracle, run, wave
        self.waiting, self.full = {}, []
        self.answers = [None] * oracle.layout.n

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        with gil:
            decoder = self.oracle.decoder
            key = decoder.polytopes.key(i)
            # Size of a batch, and the waiting examples.
            if key not in self.waiting:
                self.waiting[key] = decoder.copies(i), []
            copies, entries = self.waiting[key]
            entries.append((i, self.oracle.flat(i, theta)))
            if len(entries) == copies:
                self._close(copies, entries)
                if len(self.full) >= self.wave:
                    self._solve()
            value[0] = bound[0] = 0
        return 0

    def _close(self, copies, entries):
        self.full.append((copies, list(entries)))
        entries.clear()

    def _solve(self):
        def decoded(batch):
            copies, entries = batch
            indices, thetas = zip(*entries)
            answers = self.oracle.decoder.decode_alike(indices, thetas, copies)
            for i, theta, answer in zip(indices, thetas, answers):
                # Masks may leave no label; prediction raises the error.
                if answer is None and not np.isneginf(theta).any():
                    raise ValueError(empty(self.oracle.decoder, self.oracle.structure, i))
            return indices, answers

        for indices, answers in self.run(decoded, self.full):
            for i, answer in zip(indices, answers):
                self.answers[i] = answer
        self.full.clear()

    def finish(self):
        """Decode the remaining examples."""
        for _, entries in self.waiting.values():
            if entries:
                self._close(len(entries), entries)
        self._solve()


def decode_in_batches(LinearPotentials potentials not None, ProgramOracle oracle not None, w, masks,
                      n_jobs=1):
    """Return the best label of every example like :func:`decode`, many at once.

    Parameters
    ----------
    potentials, masks
        See :func:`decode`.
    oracle : ProgramOracle
        Must solve several programs together.
    w : ndarray of float64 of shape (dim,)
    n_jobs : int or None, default=1
        Threads that share the programs.

    Returns
    -------
    labels : ndarray of int32
    scores : ndarray of float64 of shape (n,)
        -inf if no label is allowed.

    Raises
    ------
    ValueError
        If all labels of an example are forbidden, or its program fails; names the first example.
    """
    cdef PartLayout layout = oracle.layout
    jobs = effective_jobs(n_jobs)
    # Each thread keeps the programs that it has built.
    with ThreadPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        batches = Batches(oracle, map if pool is None else pool.map, 4 * jobs)
        labels, scores = decode(potentials, batches, w, masks)
        batches.finish()
    for i, answer in enumerate(batches.answers):
        scores[i] = -np.inf
        if answer is not None:
            labels[layout.label_offsets[i]:layout.label_offsets[i + 1]] = answer[0]
            scores[i] = answer[1]
    return labels, scores
