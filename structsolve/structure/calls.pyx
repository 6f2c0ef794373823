# build: glue
"""Native operators called from Python, for tests, scripts and single examples.

Every function checks types, sizes and label values before native code gets them: against the layout
that the operator is bound to, and against its ``n_states`` if nonzero.

``room`` allocates memory for an operator to write to, see ``call_arguments``.
Every function raises ValueError when an argument does not fit the example, or the operator returns
an invalid number.
"""

from time import perf_counter

import numpy as np

from libc.math cimport NAN

from .call_arguments import count_of, label_of, memory, scores_of, sizes_of
from ..utils.arrays import aligned_zeros, checked_array, padded

from ..operators cimport (
    AugmentedOracle, Cone, ConeOracle, CountOracle, KBest, Loss, MaxMarginals, Operator, Oracle,
    Parts, Projection, Relaxation,
)


cdef object _label_memory(room, operator, i):
    return memory(room, "label", sizes_of(operator, i)[1], np.int32)


def work_for(Operator operator not None):
    """Return scratch memory for calls of an operator.

    Parameters
    ----------
    operator : Operator

    Returns
    -------
    ndarray of float64
        Zeros; it begins on a cache line.
    """
    return aligned_zeros(operator.work_bytes // 8 + 8)


def argmax(Oracle oracle not None, Py_ssize_t i, theta, room=None):
    """Return the best label of example ``i`` for the part scores ``theta``.

    Parameters
    ----------
    oracle : Oracle
    i : int
    theta : ndarray of float64
        Flat, in the layout of the space (``WeightLayout.theta_views`` names its pieces).
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    label : ndarray of int32
    value : float
        The score of the label.
    bound : float
        Upper bound of all scores; the value, if the oracle is exact.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.lp import ask_oracle
    >>> from structsolve.structure.ask import make_layout
    >>> from structsolve.structure.calls import argmax
    >>> space, _ = structsolve.get_structure("multiclass").make_space([[0.0]] * 3, ["a", "b", "c"])
    >>> oracle = ask_oracle(space)(make_layout(space, space.pack([[0.0]])))
    >>> label, value, bound = argmax(oracle, 0, np.array([1.0, 3.0, 2.0, 0.0]))
    >>> label.tolist(), value, bound
    ([1], 3.0, 3.0)
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    label = _label_memory(room, oracle, i)
    cdef int[::1] out = label
    cdef char[::1] work = memory(room, "work", oracle.work_bytes, np.int8)
    cdef double value = NAN, bound = NAN
    with nogil:
        oracle.argmax(i, &scores[0], &out[0], &value, &bound, &work[0])
    return label[:oracle.layout.label_size(i)], value, bound


def repeat_argmax(Oracle oracle not None, Py_ssize_t i, theta, label, double value, int repeats,
                  room=None):
    """Repeat a call without the GIL, until an answer differs from ``label`` and ``value``.

    Parameters
    ----------
    oracle : Oracle
    i : int
    theta : ndarray of float64
    label : ndarray of int32
    value : float
        The expected answer.
    repeats : int
        Largest number of calls.
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    tuple of (ndarray of int32, float), or None
        The other label and its value.
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    cdef const int[::1] expected = label_of(oracle, i, label)
    cdef Py_ssize_t size = oracle.layout.label_size(i), j
    other = _label_memory(room, oracle, i)
    cdef int[::1] out = other
    cdef char[::1] work = memory(room, "work", oracle.work_bytes, np.int8)
    cdef double now = NAN, bound = NAN
    cdef bint same = True
    with nogil:
        for _ in range(repeats):
            oracle.argmax(i, &scores[0], &out[0], &now, &bound, &work[0])
            same = now == value
            for j in range(size):
                same = same and out[j] == expected[j]
            if not same:
                break
    return None if same else (other[:size], now)


def kbest(KBest oracle not None, Py_ssize_t i, theta, Py_ssize_t k, banned=(), room=None):
    """Return the ``k`` best labels of example ``i``, best first.

    Parameters
    ----------
    oracle : KBest
    i : int
    theta : ndarray of float64
        Part scores; -inf forbids a part.
    k : int
        At least 1; fewer labels are returned if fewer exist.
    banned : iterable of label
        Encoded labels to leave out, as labels of value -inf are.  The oracle lists ``k`` plus
        their number of labels, since all of them may be among the best; too slow for thousands.
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    labels : ndarray of int32 of shape (count, size of a label)
    values : ndarray of float64 of shape (count,)

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.structure.ask import ask_power, make_layout
    >>> from structsolve.structure.calls import kbest
    >>> space, _ = structsolve.get_structure("multiclass").make_space([[0.0]] * 3, ["a", "b", "c"])
    >>> best = ask_power(space, "kbest")(make_layout(space, space.pack([[0.0]])))
    >>> theta = np.array([1.0, 3.0, 2.0, 0.0])      # rows of three are padded to four
    >>> kbest(best, 0, theta, 2, banned=[[1]])[0].tolist()
    [[2], [0]]
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    size = sizes_of(oracle, i)[1]
    left_out = _banned(banned, size)
    wanted, k = k, k + len(left_out)
    labels = memory(room, "labels", k * size, np.int32)
    values = memory(room, "values", k, np.float64)
    cdef int[::1] out = labels
    cdef double[::1] value_view = values
    cdef char[::1] work = memory(room, "work", oracle.bytes_for(k), np.int8)
    cdef Py_ssize_t count
    with nogil:
        count = oracle.kbest(i, &scores[0], k, &out[0], &value_view[0], &work[0])
    count_of(oracle, "kbest", count, 0, k)
    labels, values = labels[:k * size].reshape(k, size), values[:k]
    if not left_out:
        return labels[:count], values[:count]
    keep = [
        row
        for row in range(count)
        if values[row] > -np.inf and tuple(labels[row].tolist()) not in left_out
    ][:wanted]
    return labels[keep], values[keep]


def _banned(banned, size):
    left_out = set()
    for label in banned:
        given = np.asarray(label)
        if given.shape != (size,) or given.dtype.kind not in "iu":
            raise ValueError(f"banned: found {label!r}, expected a label of {size} integers")
        left_out.add(tuple(given.tolist()))
    return left_out


def max_marginals(MaxMarginals operator not None, Py_ssize_t i, theta, Py_ssize_t n_states,
                  room=None):
    """Return the best value of a label in which node v takes state s, for all v and s.

    Parameters
    ----------
    operator : MaxMarginals
    i : int
    theta : ndarray of float64
    n_states : int
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    ndarray of float64 of shape (n_nodes, n_states)
    """
    cdef const double[::1] scores = scores_of(operator, i, theta)
    if n_states < 1 or operator.n_states not in (0, n_states):
        raise ValueError(f"n_states is {n_states}, expected {operator.n_states or 'at least 1'}")
    cdef Py_ssize_t n_nodes = operator.layout.nodes_of(i), stride = padded(n_states)
    out = memory(room, "out", n_nodes * stride, np.float64)
    cdef double[::1] view = out
    cdef char[::1] work = memory(room, "work", operator.work_bytes, np.int8)
    with nogil:
        operator.max_marginals(i, &scores[0], &view[0], &work[0])
    return out[:n_nodes * stride].reshape(n_nodes, stride)[:, :n_states]


def argmax_augmented(AugmentedOracle oracle not None, Py_ssize_t i, theta, truth, room=None):
    """Return the most violated label of example ``i``, by an oracle that includes the loss.

    Parameters
    ----------
    oracle : AugmentedOracle
    i : int
    theta : ndarray of float64
    truth : ndarray of int32
        The true label, encoded.
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    label : ndarray of int32
    value, loss : float
        Score plus loss of the label, and its loss.
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    cdef const int[::1] true_label = label_of(oracle, i, truth, "truth")
    label = _label_memory(room, oracle, i)
    cdef int[::1] out = label
    cdef char[::1] work = memory(room, "work", oracle.work_bytes, np.int8)
    cdef double value = NAN, loss = NAN
    with nogil:
        oracle.argmax(i, &scores[0], &true_label[0], &out[0], &value, &loss, &work[0])
    return label[:oracle.layout.label_size(i)], value, loss


def relax(Relaxation operator not None, Py_ssize_t i, theta, room=None):
    """Return the maximiser of example ``i`` over a relaxation of the marginal polytope.

    Parameters
    ----------
    operator : Relaxation
    i : int
    theta : ndarray of float64
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    mu : ndarray
        Flat, in the layout of ``theta``.
    label : ndarray of int32, or None
        The label whose parts equal mu, if there is one.
    value, bound : float
        The score of mu; an upper bound of the maximum.
    """
    cdef const double[::1] scores = scores_of(operator, i, theta)
    label = _label_memory(room, operator, i)
    mu = memory(room, "mu", theta.size, np.float64)
    cdef int[::1] out = label
    cdef double[::1] mu_view = mu
    cdef char[::1] work = memory(room, "work", operator.work_bytes, np.int8)
    cdef double value = NAN, bound = NAN
    cdef int integral
    with nogil:
        integral = operator.relax(i, &scores[0], &mu_view[0], &out[0], &value, &bound, &work[0])
    count_of(operator, "relax", integral, 0, 1)
    label = label[:operator.layout.label_size(i)]
    return mu[:theta.size], label if integral else None, value, bound


def argmax_in_cone(ConeOracle oracle not None, Py_ssize_t i, theta, cost, cone, room=None):
    """Return the best point of example ``i`` in a cone of the label plane.

    Parameters
    ----------
    oracle : ConeOracle
    i : int
    theta, cost : ndarray of float64
        ``h = <theta, mu> + h0`` and ``g = <cost, mu> + g0``.
    cone : ConePair
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    tuple of (ndarray of float64 or None, ndarray of int32 or None, float), or None
        None if the cone is empty; otherwise mu (None for an integral answer), label (None for a
        fractional one), and the largest ``h + lam g``.
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta), costs = scores_of(oracle, i, cost)
    label = _label_memory(room, oracle, i)
    mu = memory(room, "mu", theta.size, np.float64)
    cdef int[::1] out = label
    cdef double[::1] mu_view = mu
    cdef char[::1] work = memory(room, "work", oracle.work_bytes, np.int8)
    cdef double value = NAN
    cdef Cone given
    cdef int kind
    given.h0, given.g0, given.lam, given.alpha, given.beta, given.twin = cone
    if not (given.alpha >= 0 and given.beta >= 0 and np.isfinite([*cone[:3], given.beta]).all()):
        raise ValueError(
            f"cone is {cone}, expected finite numbers, 0 <= beta, and alpha finite or infinite"
        )
    with nogil:
        kind = oracle.argmax_in_cone(i, &scores[0], &costs[0], &given, &mu_view[0], &out[0],
                                     &value, &work[0])
    count_of(oracle, "argmax_in_cone", kind, 0, 2)
    if kind == 0:
        return None
    label = label[:oracle.layout.label_size(i)]
    return (None, label, value) if kind == 1 else (mu[:theta.size], None, value)


def argmax_counts(CountOracle oracle not None, Py_ssize_t i, theta, cost, Py_ssize_t most,
                  room=None):
    """Return the best label of example ``i`` for each value 0 .. ``most`` of an integer cost.

    Parameters
    ----------
    oracle : CountOracle
    i : int
    theta, cost : ndarray of float64
        Part scores, and integer costs of node parts.
    most : int
        At least 0.
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    labels : ndarray of int32 of shape (most + 1, size of a label)
    values : ndarray of float64 of shape (most + 1,)
        -inf if no label has that cost.
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta), costs = scores_of(oracle, i, cost)
    if most < 0:
        raise ValueError(f"most is {most}, expected at least 0")
    if not (np.isfinite(cost).all() and (cost == np.floor(cost)).all() and (cost >= 0).all()):
        raise ValueError("cost: found values that are no counts, expected integers of at least 0")
    cdef Py_ssize_t size = sizes_of(oracle, i)[1]
    labels = memory(room, "labels", (most + 1) * size, np.int32)
    values = memory(room, "values", most + 1, np.float64)
    cdef int[::1] out = labels
    cdef double[::1] value_view = values
    cdef char[::1] work = memory(room, "work", oracle.bytes_for(most), np.int8)
    with nogil:
        oracle.argmax_counts(i, &scores[0], &costs[0], most, &out[0], &value_view[0], &work[0])
    return labels[:(most + 1) * size].reshape(most + 1, size), values[:most + 1]


def encode(Parts parts not None, Py_ssize_t i, label, room=None):
    """Return the parts of a label.

    Parameters
    ----------
    parts : Parts
    i : int
    label : ndarray of int32
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    index : ndarray of int32
        Positions in ``theta``; one may appear more than once.
    value : ndarray of float64
    """
    return _entries(parts, i, label_of(parts, i, label), None, room)


cdef _entries(Parts parts, Py_ssize_t i, const int[::1] first, const int[::1] second, room):
    # The parts of a label, or the difference of two.
    index = memory(room, "index", parts.max_entries, np.int32)
    value = memory(room, "value", parts.max_entries, np.float64)
    cdef int[::1] index_view = index
    cdef double[::1] value_view = value
    cdef bint one = second is None
    cdef Py_ssize_t n
    with nogil:
        if one:
            n = parts.encode(i, &first[0], &index_view[0], &value_view[0])
        else:
            n = parts.difference(i, &first[0], &second[0], &index_view[0], &value_view[0])
    count_of(parts, "encode" if one else "difference", n, 0, parts.max_entries)
    return index[:n], value[:n]


def check_label(Parts parts not None, Py_ssize_t i, label):
    """Raise ValueError for a label, for example from a file, with parts outside of theta.

    Parameters
    ----------
    parts : Parts
    i : int
    label : ndarray of int32
        Encoded.
    """
    size = sizes_of(parts, i)[0]
    index, _ = encode(parts, i, np.ascontiguousarray(label))
    if index.size and not 0 <= index.min() <= index.max() < size:
        raise ValueError(
            f"example {i}: found a label with parts from {index.min()} to {index.max()}, expected "
            f"0 to {size - 1}"
        )


def difference(Parts parts not None, Py_ssize_t i, truth, label, room=None):
    """Return the parts of ``truth`` minus those of ``label``.

    Parameters
    ----------
    parts : Parts
    i : int
    truth, label : ndarray of int32
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    index : ndarray of int32
    value : ndarray of float64
    """
    first = label_of(parts, i, truth, "truth")
    return _entries(parts, i, first, label_of(parts, i, label), room)


def _truth(Loss loss not None, i, truth):
    if not loss.takes_unseen:
        return label_of(loss, i, truth, "truth")
    true_label = checked_array(truth, np.int32, "truth", sizes_of(loss, i)[1])
    if true_label.min() < 0 or (loss.n_states and true_label.max() > loss.n_states):
        raise ValueError(
            f"truth: states from {true_label.min()} to {true_label.max()}, expected 0 to "
            f"{loss.n_states}, where {loss.n_states} is a label that training did not see"
        )
    return true_label


def loss_value(Loss loss not None, Py_ssize_t i, truth, label):
    """Return the loss of ``label`` if ``truth`` is the true label.

    Parameters
    ----------
    loss : Loss
    i : int
    truth, label : ndarray of int32

    Returns
    -------
    float
    """
    cdef const int[::1] true_label = _truth(loss, i, truth), view = label_of(loss, i, label)
    cdef double value
    with nogil:
        value = loss.value(i, &true_label[0], &view[0])
    return value


def augment(Loss loss not None, Py_ssize_t i, truth, double scale, theta):
    """Add ``scale`` times the loss to the part scores ``theta``, in place.

    Parameters
    ----------
    loss : Loss
        A loss that decomposes over the parts.
    i : int
    truth : ndarray of int32
    scale : float
    theta : ndarray of float64

    Returns
    -------
    float
        ``scale`` times the constant of the loss, which belongs to no part.
    """
    cdef const int[::1] true_label = _truth(loss, i, truth)
    cdef double[::1] view = checked_array(
        theta, np.float64, "theta", sizes_of(loss, i)[0], writable=True)
    cdef double constant
    if not loss.decomposes:
        raise ValueError(f"{loss} does not decompose over the parts")
    with nogil:
        constant = loss.augment(i, &true_label[0], scale, &view[0])
    return constant


def project(Projection projection not None, Py_ssize_t i, theta, work=None, room=None):
    """Return the regularised maximiser of example ``i`` (entropy: the marginals).

    Parameters
    ----------
    projection : Projection
    i : int
    theta : ndarray of float64
        Flat part scores.
    work : ndarray of float64, optional
        From :func:`work_for`; can be reused for further examples.
    room : callable, optional
        Gives the memory to write to.

    Returns
    -------
    marginals : ndarray
        Flat, in the layout of ``theta``.
    value : float
        The maximum (entropy: the log-partition).
    bound : float
        An upper bound of the maximum; the value, if the projection is exact.
    """
    cdef const double[::1] scores = scores_of(projection, i, theta)
    marginals = memory(room, "marginals", theta.size, np.float64)
    cdef double[::1] out = marginals
    cdef char[::1] scratch
    if work is None:
        scratch = memory(room, "work", projection.work_bytes, np.int8)
    else:
        size = projection.work_bytes // 8 + 8
        scratch = checked_array(work, np.float64, "work", size, writable=True).view(np.int8)
        if work.ctypes.data % 64:
            raise ValueError("work: not 64-byte aligned; make it with calls.work_for()")
    cdef double value = NAN, bound = NAN
    with nogil:
        projection.project(i, &scores[0], &out[0], &value, &bound, &scratch[0])
    return marginals[:theta.size], value, bound


def seconds_per_call(Operator operator not None, Py_ssize_t i, theta, int repeat=1000,
                     Py_ssize_t k=1):
    """Return the seconds of native code for one answer, without the call from Python.

    Parameters
    ----------
    operator : Oracle, KBest or Projection
        ``argmax``, ``kbest`` or ``project`` is timed.
    i : int
    theta : ndarray of float64
        Flat part scores.
    repeat : int, default=1000
        Number of answers; the result is their mean time.
    k : int, default=1
        Number of labels of ``kbest``.

    Returns
    -------
    float
        Seconds.
    """
    cdef const double[::1] scores = scores_of(operator, i, theta)
    cdef Oracle oracle = operator if isinstance(operator, Oracle) else None
    cdef KBest best = operator if isinstance(operator, KBest) else None
    cdef Projection projection = operator if isinstance(operator, Projection) else None
    if oracle is None and projection is None and best is None:
        raise ValueError(
            f"found {type(operator).__name__}, expected an oracle, k best or a projection"
        )
    if k < 1 or repeat < 1:
        raise ValueError(f"k is {k} and repeat {repeat}, expected at least 1")
    cdef int[::1] label = np.zeros(max(sizes_of(operator, i)[1], 1) * k, np.int32)
    needed = operator.work_bytes if best is None else best.bytes_for(k)
    cdef double[::1] work = aligned_zeros(needed // 8 + 8), values = np.zeros(k)
    cdef double[::1] marginals = aligned_zeros(scores.shape[0])
    cdef double bound = 0
    started = perf_counter()
    with nogil:
        for _ in range(repeat):
            if projection is not None:
                projection.project(i, &scores[0], &marginals[0], &values[0], &bound,
                                   <char*>&work[0])
            elif best is not None:
                best.kbest(i, &scores[0], k, &label[0], &values[0], <char*>&work[0])
            else:
                oracle.argmax(i, &scores[0], &label[0], &values[0], &bound, <char*>&work[0])
    return (perf_counter() - started) / repeat
