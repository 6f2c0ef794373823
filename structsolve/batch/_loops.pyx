"""Threaded loops over the examples of a batch for surrogates, oracles and projections."""

import numpy as np

from libc.math cimport NAN, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memset
from ..operators cimport KBest, Oracle, Parts, Projection
from ..part_layout cimport PartLayout
from ..surrogates._fenchel_young cimport FenchelYoung
from ..surrogates.base cimport Cut, Surrogate
from ..utils.alignment cimport align
from ._sheets cimport Sheet

from ..utils.arrays import aligned_zeros
from ..utils.parallel import NODES_PER_CALL, native_calls, over_examples


cdef enum:
    KEPT_BYTES = 1 << 22    # larger memory is not cached: its use takes longer than mapping it


cdef class Room:
    """Memory of one thread: part scores, a vector like them, entries of a cut, scratch.

    Parameters
    ----------
    layout : PartLayout
    work_bytes : int
        Scratch memory of the operator.
    entries : int, default=0
    smaller : Room, optional
        The new one is as large, too, so that batches in turn do not replace it.
    """

    cdef double[::1] theta, dense, value
    cdef int[::1] index
    cdef char[::1] work

    def __init__(self, PartLayout layout not None, Py_ssize_t work_bytes, Py_ssize_t entries=0,
                 Room smaller=None):
        cdef Py_ssize_t size = layout.max_theta + 8, words = work_bytes // 8 + 16
        entries += 1
        if smaller is not None:
            size = max(size, smaller.theta.shape[0])
            words = max(words, smaller.work.shape[0] // 8)
            entries = max(entries, smaller.index.shape[0])
        self.theta, self.dense = aligned_zeros(size), aligned_zeros(size)
        self.value, self.index = aligned_zeros(entries), np.zeros(entries, np.int32)
        self.work = aligned_zeros(words).view(np.int8)

    cdef bint holds(self, PartLayout layout, Py_ssize_t work_bytes, Py_ssize_t entries):
        """Whether it is large enough; as of ``__init__``."""
        return (self.theta.shape[0] >= layout.max_theta + 8
                and self.work.shape[0] >= work_bytes // 8 * 8 + 128
                and self.index.shape[0] > entries)


def check_labels(PartLayout layout not None, const int[::1] labels not None, Py_ssize_t n_states):
    """Refuse true labels with numbers out of range.

    Parameters
    ----------
    layout : PartLayout
    labels : ndarray of int32
        Labels of all examples, concatenated.
    n_states : int
        0 if there is no limit.

    Raises
    ------
    ValueError
        The message names the example.
    """
    cdef Py_ssize_t i, v, end = layout.label_offsets[layout.n]
    cdef int top = <int>min(n_states, 0x7fffffff) if n_states else 0x7fffffff
    cdef bint fits = labels.shape[0] == end
    if not fits:
        raise ValueError(
            f"labels: found {labels.shape[0]} numbers, expected {end}, one after the other for all "
            f"{layout.n} examples"
        )
    for v in range(end):
        fits &= 0 <= labels[v] < top
    if fits:
        return
    for i in range(layout.n):
        for v in range(layout.label_offsets[i], layout.label_offsets[i + 1]):
            if not 0 <= labels[v] < top:
                states = f"0 to {n_states - 1}" if n_states else "0 or more"
                raise ValueError(
                    f"example {i}: its label holds {labels[v]} at {v - layout.label_offsets[i]}, "
                    f"expected {states}"
                )


def _bad_cut(surrogate, Py_ssize_t i, Py_ssize_t nnz, Py_ssize_t most):
    raise ValueError(
        f"example {i}: {type(surrogate).__name__}: cut() gave {nnz} entries, expected 0 to {most} "
        "(max_entries)"
    )


cdef class _Gradients:
    """Shared by the threads of one pass: gradients of rows, sums of the shared blocks.

    Of a surrogate: of one that has a projection, by it.  Or a projection's Jacobian times
    directions.
    """

    cdef Sheet scores, out, directions
    cdef Surrogate surrogate
    cdef FenchelYoung fenchel
    cdef Projection projection
    cdef const int* labels
    cdef const double* weights
    cdef double* values

    cdef int run(self, Py_ssize_t first, Py_ssize_t last, double* sums, Room room) except -1 nogil:
        cdef double* theta = &room.theta[0]
        cdef double* dense = &room.dense[0]
        cdef Py_ssize_t i, j, shared = self.scores.layout.shared_size
        cdef double weight = 1
        for i in range(first, last):
            self.scores.read(i, theta)
            if self.projection is not None:
                self.directions.read(i, &room.value[0])
                self.projection.derivative(i, theta, &room.value[0], dense, align(&room.work[0]))
            elif self.fenchel is not None:
                self.project(i, theta, dense, room)
            else:
                self.cut(i, theta, dense, room)
            if self.weights != NULL:
                weight = self.weights[i]
            self.out.write(i, dense, weight)
            if self.out.shared_step:  # each example has its own shared blocks
                for j in range(shared):
                    self.out.shared[i * self.out.shared_step + j] = weight * dense[j]
            else:
                for j in range(shared):
                    sums[j] += weight * dense[j]
        return 0

    cdef int cut(self, Py_ssize_t i, const double* theta, double* dense, Room room) except -1 nogil:
        cdef Cut cut
        cdef Py_ssize_t k
        cut.index, cut.value = &room.index[0], &room.value[0]
        cut.nnz = cut.calls = 0
        cut.key, cut.b, cut.bound = 0, NAN, NAN
        self.surrogate.cut(i, theta, self.labels + self.surrogate.layout.label_offsets[i], &cut,
                           &room.work[0])
        if not 0 <= cut.nnz <= self.surrogate.max_entries:
            with gil:
                _bad_cut(self.surrogate, i, cut.nnz, self.surrogate.max_entries)
        memset(dense, 0, self.scores.layout.theta_size(i) * sizeof(double))
        for k in range(cut.nnz):
            dense[cut.index[k]] -= cut.value[k]
        self.values[i] = cut.bound
        return 0

    cdef int project(self, Py_ssize_t i, const double* theta, double* dense,
                     Room room) except -1 nogil:
        # For a Fenchel-Young surrogate, whose gradient is dense; no cut is written.
        cdef const int* truth = self.labels + self.fenchel.layout.label_offsets[i]
        cdef int* index = &room.index[0]
        cdef double* value = &room.value[0]
        cdef char* work = &room.work[0]
        cdef double bound, ignored
        cdef Py_ssize_t k, n = self.fenchel.parts.encode(i, truth, index, value)
        cdef double total = self.fenchel.encoded_offset(i, truth, n, index, value, work)
        self.fenchel.projection.project(i, theta, dense, &ignored, &bound,
                                        align(work + self.fenchel.vector_bytes))
        total += bound
        for k in range(n):
            dense[index[k]] -= value[k]
            total -= value[k] * theta[index[k]]
        self.values[i] = total
        return 0


cdef int _over_ranges(_Gradients shared, const int64_t[::1] bounds, n_jobs, list rooms,
                      Py_ssize_t work_bytes, Py_ssize_t entries) except -1:
    """Run a pass.  Each range of examples has its own sum, so threads do not change the result."""
    cdef PartLayout layout = shared.scores.layout
    cdef Py_ssize_t k, j, size = layout.shared_size, n = bounds.shape[0] - 1, many = NODES_PER_CALL
    cdef double[:, ::1] sums = np.zeros((n + 1, size + 1))
    offsets = layout.examples.offsets

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t k, a, z
        if layout.offsets[bounds[last]] - layout.offsets[bounds[first]] <= many:
            with nogil:
                for k in range(first, last):
                    shared.run(bounds[k], bounds[k + 1], &sums[k, 0], room)
            return
        for k in range(first, last):
            for a, z in native_calls(offsets, bounds[k], bounds[k + 1]):
                with nogil:
                    shared.run(a, z, &sums[k, 0], room)

    in_rooms(piece, offsets[np.asarray(bounds)], n_jobs, rooms, layout, work_bytes, entries=entries)
    if shared.out.shared_step:
        shared.out.store(shared.out.shared)
        return 0
    for k in range(n):
        for j in range(size):
            sums[n, j] += sums[k, j]
    shared.out.store(&sums[n, 0])
    return 0


def gradients(Sheet scores not None, Sheet out not None, Surrogate surrogate not None,
              const int[::1] labels not None, *, const double[::1] weights,
              double[::1] values not None,
              const int64_t[::1] bounds not None, n_jobs, list rooms):
    """Compute values of a surrogate, and its gradients with respect to the scores.

    Parameters
    ----------
    scores, out : Sheet
        Read, and written.
    surrogate : Surrogate
        Bound to the same examples.
    labels : ndarray of int32
        True labels, checked.
    weights : ndarray of shape (n,), or None
    values : ndarray of shape (n,)
        Written.
    bounds : ndarray of int64 of shape (ranges + 1,)
        First example of each range with its own sum of shared gradients, and the end.
    n_jobs : int or None
    rooms : list
        Free memory; the call may add more.

    Raises
    ------
    ValueError
        If a value is not a number; the message names the example.
    """
    cdef _Gradients shared = _Gradients()
    cdef Py_ssize_t i
    shared.scores, shared.out, shared.surrogate = scores, out, surrogate
    if type(surrogate) is FenchelYoung:
        shared.fenchel = surrogate
    shared.labels = &labels[0] if labels.shape[0] else NULL
    shared.weights = NULL if weights is None else &weights[0]
    shared.values = &values[0] if values.shape[0] else NULL
    _over_ranges(shared, bounds, n_jobs, rooms, surrogate.work_bytes, surrogate.max_entries)
    for i in range(scores.layout.n):
        if not isfinite(values[i]):
            raise ValueError(
                f"example {i}: the surrogate is {values[i]}, expected a number: a score of -inf "
                "forbids its true label, or scores are too large"
            )


def derivatives(Sheet scores not None, Sheet directions not None, Sheet out not None,
                Projection projection not None, *, const double[::1] weights,
                const int64_t[::1] bounds not None, n_jobs, list rooms):
    """Multiply the Jacobian of a projection, which is symmetric, by a direction for each example.

    Parameters
    ----------
    scores, directions, out : Sheet
        The last is overwritten.
    projection : Projection
        Must have derivatives; bound to the same examples.
    weights : ndarray of shape (n,), or None
        Factors of the examples.
    bounds, n_jobs, rooms
        See :func:`gradients`.
    """
    cdef _Gradients shared = _Gradients()
    shared.scores, shared.directions, shared.out = scores, directions, out
    shared.projection = projection
    shared.weights = NULL if weights is None else &weights[0]
    _over_ranges(shared, bounds, n_jobs, rooms, projection.derivative_bytes(),
                 scores.layout.max_theta + 8)


def in_rooms(piece, offsets, n_jobs, list rooms, PartLayout layout not None, Py_ssize_t work_bytes,
             *, Py_ssize_t entries=0):
    """Run a piece of work over examples, in cached memory.

    Parameters
    ----------
    piece, offsets, n_jobs
        See :func:`structsolve.utils.parallel.over_examples`.
    rooms : list
        Free memory; the call may add more.
    layout, work_bytes, entries
        See :class:`Room`.
    """
    cdef list used = []
    cdef Py_ssize_t size = 16 * layout.max_theta + work_bytes + 12 * entries

    def take():
        try:
            room = rooms.pop()
        except IndexError:  # another thread may have taken the last one
            room = None
        if room is None or not (<Room?>room).holds(layout, work_bytes, entries=entries):
            room = Room(layout, work_bytes, entries, room)
        used.append(room)
        return room

    over_examples(piece, offsets, n_jobs, take)
    if size <= KEPT_BYTES:
        rooms.extend(used)


def labels_of(Sheet scores not None, Oracle oracle not None, int[::1] labels not None,
              double[::1] values not None,
              double[::1] bounds not None, *, n_jobs, list rooms):
    """Compute the best label of every example, its score, and an upper bound of all scores.

    Parameters
    ----------
    scores : Sheet
    oracle : Oracle
        Bound to the same examples.
    labels : ndarray of int32
        Labels of all examples; overwritten, like `values` and `bounds`.
    values, bounds : ndarray of shape (n,)
    n_jobs, rooms
        See :func:`gradients`.
    """
    cdef PartLayout layout = scores.layout
    cdef int* out = &labels[0] if labels.shape[0] else NULL

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i
        with nogil:
            for i in range(first, last):
                scores.read(i, &room.theta[0])
                oracle.argmax(i, &room.theta[0], out + layout.label_offsets[i], &values[i],
                              &bounds[i], &room.work[0])

    in_rooms(piece, layout.examples.offsets, n_jobs, rooms, layout, oracle.work_bytes)


def marginals_of(Sheet scores not None, Sheet out not None, Projection projection not None,
                 double[::1] values not None, n_jobs, list rooms):
    """Compute the maximiser of a projection for every example, and an upper bound of its value.

    Parameters
    ----------
    scores, out : Sheet
        ``out`` is overwritten; it has separate shared blocks for each example.
    projection : Projection
        Bound to the same examples.
    values : ndarray of shape (n,)
        Written.
    n_jobs, rooms
        See :func:`gradients`.
    """
    cdef PartLayout layout = scores.layout

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i, j
        cdef double ignored
        with nogil:
            for i in range(first, last):
                scores.read(i, &room.theta[0])
                projection.project(i, &room.theta[0], &room.dense[0], &ignored, &values[i],
                                   &room.work[0])
                out.write(i, &room.dense[0], 1)
                for j in range(layout.shared_size):
                    out.shared[i * out.shared_step + j] = room.dense[j]

    in_rooms(piece, layout.examples.offsets, n_jobs, rooms, layout, projection.work_bytes)
    out.store(out.shared)


def best_of(Sheet scores not None, KBest kbest not None, Py_ssize_t k, n_jobs, list rooms):
    """Return the k best labels of every example, best first, and their scores.

    Parameters
    ----------
    scores : Sheet
    kbest : KBest
        Bound to the same examples.
    k : int
    n_jobs, rooms
        See :func:`gradients`.

    Returns
    -------
    labels : list of ndarray of int32 of shape (count, size of the label)
    values : list of ndarray
    """
    cdef PartLayout layout = scores.layout
    cdef Py_ssize_t longest = max(layout.max_label, 1)
    labels, values = [None] * layout.n, [None] * layout.n

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i, many, size
        cdef int[::1] out = np.empty(longest * k, dtype=np.int32)
        cdef double[::1] own = np.empty(k)
        for i in range(first, last):
            with nogil:
                scores.read(i, &room.theta[0])
                many = kbest.kbest(i, &room.theta[0], k, &out[0], &own[0], &room.work[0])
                size = layout.label_size(i)
            labels[i] = np.array(out[:many * size]).reshape(many, size)
            values[i] = np.array(own[:many])

    in_rooms(piece, layout.examples.offsets, n_jobs, rooms, layout, kbest.bytes_for(k))
    return labels, values


def drawn(Sheet scores not None, Projection projection not None, Py_ssize_t n, seed, n_jobs,
          list rooms):
    """Draw labels of every example from ``p(y) ~ exp <theta, mu(y)>``.

    Every example has its own random numbers, which do not depend on threads.

    Parameters
    ----------
    scores : Sheet
    projection : Projection
        Must have samples; bound to the same examples.
    n : int
        Labels per example.
    seed : int
    n_jobs, rooms
        See :func:`gradients`.

    Returns
    -------
    ndarray of int32 of shape (n, size of all labels)
    """
    cdef PartLayout layout = scores.layout
    cdef Py_ssize_t total = layout.label_offsets[layout.n], longest = max(layout.max_label, 1)
    labels = np.zeros((n, total), dtype=np.int32)

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i, size
        cdef double[::1] uniforms
        cdef int[::1] out = np.empty(n * longest, dtype=np.int32)
        for i in range(first, last):
            size = layout.label_size(i)
            uniforms = np.random.default_rng([seed, i]).random(max(n * size, 1))
            with nogil:
                scores.read(i, &room.theta[0])
                projection.sample(i, &room.theta[0], n, &uniforms[0], &out[0], &room.work[0])
            labels[:, layout.label_offsets[i]:layout.label_offsets[i + 1]] = (
                np.asarray(out)[:n * size].reshape(n, size))

    in_rooms(piece, layout.examples.offsets, n_jobs, rooms, layout, projection.work_bytes)
    return labels
