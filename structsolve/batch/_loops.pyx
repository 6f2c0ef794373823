"""Threaded loops over the examples of a batch for surrogates, oracles and projections."""

import numpy as np

cimport numpy as cnp
from libc.math cimport NAN, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memset
from ..operators cimport KBest, Oracle, Projection
from ..part_layout cimport PartLayout
from ..structure.answer_checks cimport check_answer, check_numbers
from ..surrogates._fenchel_young cimport FenchelYoung
from ..surrogates.base cimport Cut, Surrogate
from ..utils.alignment cimport align
from ._abreast cimport Abreast, Block, abreast_of
from ._passes cimport Pass, Room, by_size, data_of, number_of
from ._sheets cimport Sheet

from ._passes import in_rooms, over_ranges


cnp.import_array()


def check_labels(PartLayout layout not None, cnp.ndarray given not None, Py_ssize_t n_states):
    """Refuse true labels with numbers out of range.

    Parameters
    ----------
    layout : PartLayout
    given : ndarray of int32
        Labels of all examples, concatenated.
    n_states : int
        0 if there is no limit.

    Raises
    ------
    ValueError
        The message names the example.
    """
    cdef Py_ssize_t i, v, end = layout.label_offsets[layout.n]
    cdef unsigned int top = <unsigned int>min(n_states, 0x7fffffff) if n_states else 0x7fffffff
    cdef unsigned int wrong = 0
    if given.size != end:
        raise ValueError(
            f"labels: found {given.size} numbers, expected {end}, one after the other for all "
            f"{layout.n} examples"
        )
    cdef const int* labels = <const int*>data_of(given, cnp.NPY_INT32, end, False)
    for v in range(end):
        wrong |= <unsigned int>labels[v] >= top     # negative ones are large, too
    if not wrong:
        return
    for i in range(layout.n):
        for v in range(layout.label_offsets[i], layout.label_offsets[i + 1]):
            if <unsigned int>labels[v] >= top:
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


cdef class _Gradients(Pass):
    """Gradients of a surrogate, of one that has a projection by it; or a Jacobian times vectors."""

    cdef Sheet directions
    cdef Surrogate surrogate
    cdef FenchelYoung fenchel
    cdef Projection projection
    cdef const int* labels
    cdef double* values
    cdef bint sized

    cdef int vector(self, Py_ssize_t i, const double* theta, double* dense,
                    Room room) except -1 nogil:
        if self.projection is not None:
            self.directions.read(i, &room.value[0])
            self.projection.derivative(number_of(self.scores.layout, i, self.sized), theta,
                                       &room.value[0], dense, align(&room.work[0]))
            check_numbers(self.projection, i, self.scores.layout.theta_size(i), dense)
        elif self.fenchel is not None:
            self.project(i, theta, dense, room)
        else:
            self.cut(i, theta, dense, room)
        return 0

    cdef int cut(self, Py_ssize_t i, const double* theta, double* dense, Room room) except -1 nogil:
        cdef Cut cut
        cdef Py_ssize_t k, number = number_of(self.scores.layout, i, self.sized)
        cut.index, cut.value = &room.index[0], &room.value[0]
        cut.nnz = cut.calls = 0
        cut.key, cut.b, cut.bound = 0, NAN, NAN
        self.surrogate.cut(number, theta, self.labels + self.scores.layout.label_offsets[i], &cut,
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
        cdef const int* truth = self.labels + self.scores.layout.label_offsets[i]
        cdef int* index = &room.index[0]
        cdef double* value = &room.value[0]
        cdef char* work = &room.work[0]
        cdef double bound, ignored
        cdef Py_ssize_t number = number_of(self.scores.layout, i, self.sized)
        cdef Py_ssize_t k, n = self.fenchel.parts.encode(number, truth, index, value)
        cdef double total = self.fenchel.encoded_offset(number, truth, n, index, value, work)
        self.fenchel.projection.project(number, theta, dense, &ignored, &bound,
                                        align(work + self.fenchel.vector_bytes))
        check_numbers(self.fenchel.projection, i, self.scores.layout.theta_size(i), dense)
        total += bound
        for k in range(n):
            dense[index[k]] -= value[k]
            total -= value[k] * theta[index[k]]
        self.values[i] = total
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
    shared.sized = by_size(surrogate)
    if type(surrogate) is FenchelYoung:
        shared.fenchel = surrogate
    shared.labels = &labels[0] if labels.shape[0] else NULL
    shared.weights = NULL if weights is None else &weights[0]
    shared.values = &values[0] if values.shape[0] else NULL
    over_ranges(shared, bounds, n_jobs, rooms, work_bytes=surrogate.work_bytes,
                entries=surrogate.max_entries)
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
    shared.projection, shared.sized = projection, by_size(projection)
    shared.weights = NULL if weights is None else &weights[0]
    over_ranges(shared, bounds, n_jobs, rooms, work_bytes=projection.derivative_bytes(),
                entries=scores.layout.max_theta + 8)


def labels_of(Sheet scores not None, Oracle oracle not None, cnp.ndarray labels not None,
              cnp.ndarray values not None, cnp.ndarray bounds not None, n_jobs, list rooms):
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
    cdef int* out = <int*>data_of(labels, cnp.NPY_INT32, layout.label_offsets[layout.n])
    cdef double* value = <double*>data_of(values, cnp.NPY_DOUBLE, layout.n)
    cdef double* bound = <double*>data_of(bounds, cnp.NPY_DOUBLE, layout.n)
    cdef bint sized = by_size(oracle)

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i
        with nogil:
            for i in range(first, last):
                if i == first or scores.shared_step:
                    scores.read(i, &room.theta[0])
                else:
                    scores.read_rows(i, &room.theta[0])
                oracle.argmax(number_of(layout, i, sized), &room.theta[0],
                              out + layout.label_offsets[i], value + i, bound + i, &room.work[0])

    in_rooms(piece, layout.examples.offsets, n_jobs, rooms, layout, oracle.work_bytes)


cdef int _marginals(Py_ssize_t i, Sheet scores, Sheet out, Projection projection, double* value,
                    Room room) except -1 nogil:
    cdef double ignored
    cdef Py_ssize_t j
    scores.read(i, &room.theta[0])
    projection.project(i, &room.theta[0], &room.dense[0], &ignored, value, &room.work[0])
    check_numbers(projection, i, scores.layout.theta_size(i), &room.dense[0])
    out.write(i, &room.dense[0], 1)
    for j in range(scores.layout.shared_size):
        out.shared[i * out.shared_step + j] = room.dense[j]
    return 0


cdef int _marginals_abreast(Abreast lanes, const int64_t* chains, Py_ssize_t many, Sheet out,
                            Projection projection, double* values, Py_ssize_t bytes,
                            Room room) except -1 nogil:
    cdef Block block
    cdef const float* pairs
    cdef Py_ssize_t i, k, n
    while many > 0:
        n = min(lanes.count, many)
        lanes.open(&block, chains, n, align(&room.work[0] + bytes))
        lanes.sums(&block, True, True)
        lanes.write(&block, chains, out)
        pairs = lanes.pairs(&block, chains, out)
        for k in range(n):
            i = chains[k]
            if block.bad >> k & 1:
                _marginals(i, lanes.sheet, out, projection, &values[i], room)
                lanes.to_each(i, out)
                continue
            values[i] = lanes.log_partition(&block, k)
            lanes.weigh(&block, k, i, pairs, 1, out, out.shared + i * out.shared_step)
        chains += n
        many -= n
    return 0


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
    cdef Abreast lanes = abreast_of(projection, scores)
    cdef Py_ssize_t bytes = projection.work_bytes

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t i
        cdef const int64_t[::1] order
        if lanes is not None:
            order = lanes.order(first, last)
            with nogil:
                _marginals_abreast(lanes, &order[0], last - first, out, projection, &values[0],
                                   bytes, room)
            return
        with nogil:
            for i in range(first, last):
                _marginals(i, scores, out, projection, &values[i], room)

    more = 0
    if lanes is not None:
        more = lanes.bytes + 64
        out.open_each(lanes.transition)
    in_rooms(piece, layout.examples.offsets, n_jobs, rooms, layout, bytes + more)
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

    Every example has its own part of one stream of random numbers, whatever the threads.

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
        cdef Py_ssize_t i, k, size
        cdef double[::1] uniforms
        cdef int[::1] out = np.empty(n * longest, dtype=np.int32)
        stream = np.random.Generator(np.random.PCG64(seed).advance(n * layout.label_offsets[first]))
        for i in range(first, last):
            size = layout.label_size(i)
            uniforms = stream.random(n * size) if size else np.empty(1)
            with nogil:
                scores.read(i, &room.theta[0])
                projection.sample(i, &room.theta[0], n, &uniforms[0], &out[0], &room.work[0])
                for k in range(n):
                    check_answer(projection, i, &out[0] + k * size, projection.n_states)
            labels[:, layout.label_offsets[i]:layout.label_offsets[i + 1]] = (
                np.asarray(out)[:n * size].reshape(n, size))

    in_rooms(piece, layout.examples.offsets, n_jobs, rooms, layout, projection.work_bytes)
    return labels
