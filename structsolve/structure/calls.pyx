"""Python faces of the native operators, for tests, scripts and the conformance kit.

Every function checks types, sizes and label values before native code sees them.  What belongs to
an example is asked of the operator's ``limits(i)``, a Python method that returns (doubles in
theta, nodes of a label, states of a node) and refuses an unknown example; of an operator without
it only types, signs and the sizes given can be checked.
"""

from time import perf_counter

import numpy as np

from ..utils.arrays import aligned_zeros, checked_array, padded

from ..operators cimport Cone, Loss, Operator, Oracle, Parts, Projection


def _limits(operator, i):
    """(theta size, label size, states) of example i, None where the operator does not tell."""
    if not isinstance(operator, Operator):
        raise ValueError(f"found {type(operator).__name__}, expected a native operator")
    if i < 0:
        raise ValueError(f"example {i}: expected a number of at least 0")
    told = getattr(operator, "limits", None)
    return (None, None, None) if told is None else told(i)


def scores_of(operator, i, theta):
    """Return theta; refuse part scores that do not fit example ``i``."""
    return checked_array(theta, np.float64, "theta", _limits(operator, i)[0])


def _label(operator, i, label, str what="label"):
    _, size, states = _limits(operator, i)
    label = checked_array(label, np.int32, what, size)
    if label.min() < 0 or (states is not None and label.max() >= states):
        raise ValueError(
            f"{what}: states from {label.min()} to {label.max()}, expected 0 to "
            f"{'K' if states is None else states} - 1"
        )
    return label


def _label_size(operator, i, label_size):
    size = _limits(operator, i)[1]
    if label_size < 1 or (size is not None and label_size != size):
        raise ValueError(
            f"label_size is {label_size}, expected {'at least 1' if size is None else size}"
        )
    return int(label_size)


def work_for(Operator operator not None):
    """Scratch memory for one operator: zeros, on a cache line."""
    return _work(operator.work_bytes)


def _work(bytes_needed):
    return aligned_zeros(bytes_needed // 8 + 8)


def argmax(Oracle oracle not None, Py_ssize_t i, theta, label_size):
    """Best label of example ``i`` at the part scores ``theta``.

    Parameters
    ----------
    oracle : Oracle
    i : int
    theta : ndarray of float64
        Flat, in the layout of the space (``Layout.theta_views`` names its pieces).
    label_size : int
        Nodes of the label.

    Returns
    -------
    label : ndarray of int32 of shape (label_size,)
    value : float
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    label = np.zeros(_label_size(oracle, i, label_size), dtype=np.int32)
    cdef int[::1] out = label
    cdef double[::1] work = _work(oracle.work_bytes)
    cdef double value = 0
    with nogil:
        oracle.argmax(i, &scores[0], &out[0], &value, <char*>&work[0])
    return label, value


def _banned(banned, label_size):
    """The set of banned labels, as tuples."""
    left_out = set()
    for label in banned:
        array = np.asarray(label)
        if array.shape != (label_size,) or array.dtype.kind not in "iu":
            raise ValueError(
                f"banned: found {label!r}, expected labels of {label_size} encoded states"
            )
        left_out.add(tuple(array.tolist()))
    return left_out


def kbest(Oracle oracle not None, Py_ssize_t i, theta, Py_ssize_t k, label_size, banned=()):
    """Best ``k`` labels of example ``i``, best first.

    Parameters
    ----------
    oracle : Oracle
        With k-best power.
    i : int
    theta : ndarray of float64
        Part scores; -inf forbids a part.
    k : int
        Fewer labels are returned where fewer exist.
    label_size : int
        Nodes of a label.
    banned : iterable of label
        Encoded labels to leave out; labels of value -inf are then left out too.  Every one of them
        may be among the best, so ``k`` plus their number are asked for: meant for lists, not for
        thousands.

    Returns
    -------
    labels : ndarray of int32 of shape (count, label_size)
    values : ndarray of float64 of shape (count,)

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.structure.calls import kbest
    >>> from structsolve.lp.ask import ask_oracle
    >>> space = structsolve.get_structure("multiclass").make_space([[0.0]] * 3, ["a", "b", "c"])
    >>> oracle = ask_oracle(space, space.pack([[0.0]]))
    >>> theta = np.array([1.0, 3.0, 2.0, 0.0])      # rows of three are padded to four
    >>> kbest(oracle, 0, theta, 2, 1, banned=[[1]])[0].tolist()
    [[2], [0]]
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    if not oracle.has_kbest:
        raise ValueError(f"{type(oracle).__name__} has no k-best power (has_kbest is False)")
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    left_out = _banned(banned, label_size)
    wanted, k = k, k + len(left_out)
    labels = np.zeros((k, _label_size(oracle, i, label_size)), dtype=np.int32)
    values = np.zeros(k)
    cdef int[:, ::1] out = labels
    cdef double[::1] value_view = values, work = _work(oracle.kbest_bytes(k))
    cdef Py_ssize_t found
    with nogil:
        found = oracle.kbest(i, &scores[0], k, &out[0, 0], &value_view[0], <char*>&work[0])
    if not left_out:
        return labels[:found], values[:found]
    keep = [
        row
        for row in range(found)
        if values[row] > -np.inf and tuple(labels[row].tolist()) not in left_out
    ][:wanted]
    return labels[keep], values[keep]


def max_marginals(Oracle oracle not None, Py_ssize_t i, theta, n_nodes, n_states):
    """Best value of a label in which node v takes state s, for all of them.

    Returns
    -------
    ndarray of shape (n_nodes, n_states)
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    _, size, states = _limits(oracle, i)
    if n_nodes < 1 or n_states < 1 or (size not in (None, n_nodes)) or (
            states not in (None, n_states)):
        raise ValueError(
            f"n_nodes and n_states are {n_nodes} and {n_states}, expected {size} and {states}"
        )
    out = np.zeros((n_nodes, padded(n_states)))
    cdef double[:, ::1] view = out
    cdef double[::1] work = _work(oracle.work_bytes)
    with nogil:
        oracle.max_marginals(i, &scores[0], &view[0, 0], <char*>&work[0])
    return out[:, :n_states]


def argmax_augmented(Oracle oracle not None, Py_ssize_t i, theta, label_size):
    """Most violated label of example ``i``, by an oracle that knows the loss.

    Returns
    -------
    label : ndarray of int32
    value, loss : float
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    label = np.zeros(_label_size(oracle, i, label_size), dtype=np.int32)
    cdef int[::1] out = label
    cdef double[::1] work = _work(oracle.work_bytes)
    cdef double value = 0, loss = 0
    with nogil:
        oracle.argmax_augmented(i, &scores[0], &out[0], &value, &loss, <char*>&work[0])
    return label, value, loss


def argmax_bounded(Oracle oracle not None, Py_ssize_t i, theta, label_size):
    """A good label of example ``i``, and an upper bound of the best value.

    Returns
    -------
    label : ndarray of int32
    value, bound : float
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    label = np.zeros(_label_size(oracle, i, label_size), dtype=np.int32)
    cdef int[::1] out = label
    cdef double[::1] work = _work(oracle.work_bytes)
    cdef double value = 0, bound = 0
    with nogil:
        oracle.argmax_bounded(i, &scores[0], &out[0], &value, &bound, <char*>&work[0])
    return label, value, bound


def relax(Oracle oracle not None, Py_ssize_t i, theta, label_size):
    """Maximiser of example ``i`` over the oracle's relaxation of the marginal polytope.

    Returns
    -------
    mu : ndarray
        Flat, in the layout of ``theta``.
    label : ndarray of int32, or None
        Where mu is that of a label.
    value : float
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta)
    label = np.zeros(_label_size(oracle, i, label_size), dtype=np.int32)
    mu = np.zeros(max(theta.size, 1))
    cdef int[::1] out = label
    cdef double[::1] mu_view = mu, work = _work(oracle.work_bytes)
    cdef double value = 0
    cdef int integral
    with nogil:
        integral = oracle.relax(i, &scores[0], &mu_view[0], &out[0], &value, <char*>&work[0])
    return mu[:theta.size], label if integral else None, value


def argmax_constrained(Oracle oracle not None, Py_ssize_t i, theta, cost, cone, label_size):
    """Best point of example ``i`` in a cone of the label plane.

    Parameters
    ----------
    oracle : Oracle
    i : int
    theta, cost : ndarray of float64
        ``h = <theta, mu> + h0`` and ``g = <cost, mu> + g0``.
    cone : ConePair
    label_size : int

    Returns
    -------
    None where the cone is empty, else a tuple: mu (None for an integral answer), label (None for a
    fractional one), and the largest ``h + lam g``.
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta), costs = scores_of(oracle, i, cost)
    label = np.zeros(_label_size(oracle, i, label_size), dtype=np.int32)
    mu = np.zeros(max(theta.size, 1))
    cdef int[::1] out = label
    cdef double[::1] mu_view = mu, work = _work(oracle.work_bytes)
    cdef double value = 0
    cdef Cone given
    cdef int kind
    given.h0, given.g0, given.lam, given.alpha, given.beta, given.twin = cone
    if not (given.alpha >= 0 and given.beta >= 0 and np.isfinite([*cone[:3], given.beta]).all()):
        raise ValueError(
            f"cone is {cone}, expected finite numbers, 0 <= beta, and alpha finite or infinite"
        )
    with nogil:
        kind = oracle.argmax_constrained(i, &scores[0], &costs[0], &given, &mu_view[0], &out[0],
                                         &value, <char*>&work[0])
    if kind == 0:
        return None
    return (None, label, value) if kind == 1 else (mu[:theta.size], None, value)


def argmax_counts(Oracle oracle not None, Py_ssize_t i, theta, cost, Py_ssize_t most, label_size):
    """Best label of example ``i`` for each value 0 .. ``most`` of an integer cost.

    Returns
    -------
    labels : ndarray of int32 of shape (most + 1, label_size)
    values : ndarray of shape (most + 1,)
        -inf where no label has that cost.
    """
    cdef const double[::1] scores = scores_of(oracle, i, theta), costs = scores_of(oracle, i, cost)
    if most < 0:
        raise ValueError(f"most is {most}, expected at least 0")
    if not (np.isfinite(cost).all() and (cost == np.floor(cost)).all() and (cost >= 0).all()):
        raise ValueError("cost: found values that are no counts, expected integers of at least 0")
    labels = np.zeros((most + 1, _label_size(oracle, i, label_size)), dtype=np.int32)
    values = np.zeros(most + 1)
    cdef int[:, ::1] out = labels
    cdef double[::1] value_view = values, work = _work(oracle.counts_bytes(most))
    with nogil:
        oracle.argmax_counts(i, &scores[0], &costs[0], most, &out[0, 0], &value_view[0],
                             <char*>&work[0])
    return labels, values


def encode(Parts parts not None, Py_ssize_t i, label):
    """Parts of a label.

    Returns
    -------
    index : ndarray of int32
        Positions in ``theta``; one may appear more than once.
    value : ndarray of float64
    """
    cdef const int[::1] view = _label(parts, i, label)
    index = np.zeros(parts.max_entries + 1, dtype=np.int32)
    value = np.zeros(parts.max_entries + 1)
    cdef int[::1] index_view = index
    cdef double[::1] value_view = value
    cdef Py_ssize_t n
    with nogil:
        n = parts.encode(i, &view[0], &index_view[0], &value_view[0])
    return index[:n], value[:n]


def difference(Parts parts not None, Py_ssize_t i, truth, label):
    """Parts of ``truth`` less those of ``label``, as (index, value)."""
    cdef const int[::1] first = _label(parts, i, truth, "truth")
    cdef const int[::1] second = _label(parts, i, label)
    if first.shape[0] != second.shape[0]:
        raise ValueError(f"truth has {first.shape[0]} nodes, label {second.shape[0]}")
    index = np.zeros(parts.max_entries + 1, dtype=np.int32)
    value = np.zeros(parts.max_entries + 1)
    cdef int[::1] index_view = index
    cdef double[::1] value_view = value
    cdef Py_ssize_t n
    with nogil:
        n = parts.difference(i, &first[0], &second[0], &index_view[0], &value_view[0])
    return index[:n], value[:n]


def loss_value(Loss loss not None, Py_ssize_t i, label):
    """Loss of ``label`` against the true label of example ``i``."""
    cdef const int[::1] view = _label(loss, i, label)
    cdef double value
    with nogil:
        value = loss.value(i, &view[0])
    return value


def augment(Loss loss not None, Py_ssize_t i, double scale, theta):
    """Add ``scale`` times the loss to the part scores ``theta``, in place.

    Returns
    -------
    float
        The part of the loss that no part of the label carries, times ``scale``.
    """
    # A loss over nodes knows where their scores end, not what follows them.
    needed = _limits(loss, i)[0]
    cdef double[::1] view = checked_array(theta, np.float64, "theta", writable=True)
    cdef double constant
    if needed is not None and theta.size < needed:
        raise ValueError(f"theta: found {theta.size} entries, expected at least {needed}")
    if not loss.decomposes:
        raise ValueError(f"{type(loss).__name__} does not decompose over the parts")
    with nogil:
        constant = loss.augment(i, scale, &view[0])
    return constant


def project(Projection projection not None, Py_ssize_t i, theta, work=None):
    """Regularised maximiser of example ``i`` (entropy: the marginals).

    Parameters
    ----------
    projection : Projection
    i : int
    theta : ndarray of float64
        Flat part scores.
    work : ndarray of float64, optional
        From :func:`work_for`; training loops keep theirs from one example to the next.

    Returns
    -------
    marginals : ndarray
        Flat, in the layout of ``theta``.
    value : float
        The maximum (entropy: the log-partition).
    """
    cdef const double[::1] scores = scores_of(projection, i, theta)
    marginals = np.zeros_like(theta)
    cdef double[::1] out = marginals if marginals.size else np.zeros(1)
    cdef double[::1] memory = work_for(projection)
    if work is not None:
        memory = checked_array(work, np.float64, "work", memory.shape[0], writable=True)
        if work.ctypes.data % 64:
            raise ValueError("work: not 64-byte aligned; make it with calls.work_for()")
    cdef double value = 0
    with nogil:
        projection.project(i, &scores[0], &out[0], &value, <char*>&memory[0])
    return marginals, value


def seconds_per_call(Operator operator not None, Py_ssize_t i, theta, label_size, int repeat=1000,
                     Py_ssize_t k=0):
    """Seconds that native code takes for one answer, the way from Python to it left out.

    Parameters
    ----------
    operator : Oracle or Projection
        ``argmax`` (``kbest`` where k > 0) or ``project`` is timed.
    """
    cdef const double[::1] scores = scores_of(operator, i, theta)
    cdef Oracle oracle = operator if isinstance(operator, Oracle) else None
    cdef Projection projection = operator if isinstance(operator, Projection) else None
    if oracle is None and projection is None:
        raise ValueError(f"found {type(operator).__name__}, expected an oracle or a projection")
    cdef int[::1] label = np.zeros(_label_size(operator, i, label_size) * max(k, 1), np.int32)
    cdef Py_ssize_t needed = operator.work_bytes
    if oracle is not None and k > 0:
        needed = max(needed, oracle.kbest_bytes(k))
    cdef double[::1] work = _work(needed), values = np.zeros(max(k, 1))
    cdef double[::1] marginals = aligned_zeros(scores.shape[0])
    started = perf_counter()
    with nogil:
        for _ in range(repeat):
            if projection is not None:
                projection.project(i, &scores[0], &marginals[0], &values[0], <char*>&work[0])
            elif k > 0:
                oracle.kbest(i, &scores[0], k, &label[0], &values[0], <char*>&work[0])
            else:
                oracle.argmax(i, &scores[0], &label[0], &values[0], <char*>&work[0])
    return (perf_counter() - started) / repeat
