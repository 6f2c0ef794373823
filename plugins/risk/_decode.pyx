# build: glue
"""Loops of conditional risk minimisation: labels of least estimated risk, and the surrogate."""

import numpy as np

from structsolve.operators cimport Loss, Operator, Oracle, Parts
from structsolve.part_layout cimport PartLayout

from structsolve.utils.arrays import aligned_zeros, check_numbers
from structsolve.utils.parallel import over_examples


cdef class _Scratch:
    # Memory of one thread.
    cdef double[::1] theta, value
    cdef int[::1] index, label
    cdef char[::1] work

    def __init__(self, Py_ssize_t size, Py_ssize_t label_size, Py_ssize_t work_bytes,
                 Py_ssize_t entries=1):
        self.theta = aligned_zeros(size + 8)
        self.value = np.zeros(entries + 1)
        self.index = np.zeros(entries + 1, dtype=np.int32)
        self.label = np.zeros(label_size + 1, dtype=np.int32)
        self.work = aligned_zeros(work_bytes // 8 + 16).view(np.int8)


def risk_scores(Loss loss not None, const double[:, ::1] nu not None,
                const double[::1] sums not None):
    """Return part scores whose best label has the least weighted loss.

    ``sum_i w_i L(y, y_i) = constant - <theta, mu(y)>`` with ``nu = sum_i w_i mu(y_i)``.  A loss may
    be affine in nu: its constants are then multiplied with the sum of the weights.

    Parameters
    ----------
    loss : Loss
        Must have costs; bound to examples of one shape.
    nu : ndarray of shape (t, size of theta)
    sums : ndarray of shape (t,)
        Sums of the weights.

    Returns
    -------
    theta : ndarray of shape (t, size of theta)
    constants : ndarray of shape (t,)
    """
    cdef Py_ssize_t t, j, size = nu.shape[1]
    if not loss.has_costs:
        raise ValueError(f"{type(loss).__name__} has no costs")
    if sums.shape[0] != nu.shape[0]:
        raise ValueError(f"found {sums.shape[0]} sums for {nu.shape[0]} rows of nu")
    _check_width(loss, size)
    theta = aligned_zeros(nu.shape[0] * size + 8)
    constants = np.zeros(nu.shape[0])
    cdef double[::1] base = aligned_zeros(size + 8), zero = aligned_zeros(size + 8)
    cdef double[::1] row = theta, constant = constants
    cdef double fixed, own
    with nogil:
        fixed = loss.costs(0, &zero[0], False, -1.0, &base[0])
        for t in range(nu.shape[0]):
            for j in range(size):
                row[t * size + j] = (sums[t] - 1) * base[j]
            own = loss.costs(0, &nu[t, 0], False, -1.0, &row[t * size])
            constant[t] = -own - (sums[t] - 1) * fixed
    return theta[:nu.shape[0] * size].reshape(-1, size), constants


def decode_scores(Oracle oracle not None, const double[:, ::1] theta not None, Py_ssize_t start=0,
                  n_jobs=1):
    """Return the best label for each row of part scores, and its score.

    Parameters
    ----------
    oracle : Oracle
    theta : ndarray of shape (t, at least the size of theta)
        Part scores; row t belongs to example ``start + t``.
    start : int, default=0
        Number of the first example.
    n_jobs : int or None, default=1
        Threads.

    Returns
    -------
    labels : ndarray of int32
        One after the other.
    scores : ndarray of shape (t,)
    """
    cdef PartLayout layout = oracle.layout
    cdef Py_ssize_t rows = theta.shape[0]
    if start < 0 or start + rows > layout.n:
        raise ValueError(f"found {rows} rows of scores from {start} on, {layout.n} examples")
    _check_width(oracle, theta.shape[1])
    cdef Py_ssize_t origin = layout.label_offsets[start], end = layout.label_offsets[start + rows]
    labels, scores = np.zeros(end - origin + 1, dtype=np.int32), np.zeros(rows)
    cdef int[::1] out = labels
    cdef double[::1] score_view = scores

    def piece(Py_ssize_t first, Py_ssize_t last, _Scratch scratch):
        cdef Py_ssize_t t
        cdef double bound
        with nogil:
            for t in range(first, last):
                oracle.argmax(start + t, &theta[t, 0],
                              &out[layout.label_offsets[start + t] - origin], &score_view[t],
                              &bound, &scratch.work[0])

    offsets = layout.examples.offsets[start:start + rows + 1]
    over_examples(piece, offsets - offsets[0], n_jobs, lambda: _Scratch(1, 1, oracle.work_bytes))
    return labels[:end - origin], scores


def label_scores(Parts parts not None, const double[:, ::1] theta not None,
                 const int[::1] labels not None):
    """Return the score of a given label of every example: ``<theta_i, mu(y_i)>``.

    Parameters
    ----------
    parts : Parts
    theta : ndarray of shape (n, size of theta)
    labels : ndarray of int32
        One after the other.

    Returns
    -------
    ndarray of shape (n,)
    """
    cdef PartLayout layout = parts.layout
    _check_rows(layout, theta.shape[0])
    _check_labels(layout, labels, parts.n_states)
    _check_width(parts, theta.shape[1])
    cdef _Scratch scratch = _Scratch(1, 1, 0, parts.max_entries)
    cdef Py_ssize_t i, j, n
    scores = np.zeros(theta.shape[0])
    cdef double[::1] score_view = scores
    with nogil:
        for i in range(theta.shape[0]):
            n = parts.encode(i, &labels[layout.label_offsets[i]], &scratch.index[0],
                             &scratch.value[0])
            for j in range(n):
                score_view[i] += theta[i, scratch.index[j]] * scratch.value[j]
    return scores


def encoded(Parts parts not None, const int[::1] labels not None):
    """Return ``mu(y_i)`` of all examples as CSR rows.

    Parameters
    ----------
    parts : Parts
    labels : ndarray of int32
        One after the other.

    Returns
    -------
    data : ndarray of float64
    indices : ndarray of int32
    indptr : ndarray of int64
    """
    cdef PartLayout layout = parts.layout
    _check_labels(layout, labels, parts.n_states)
    cdef Py_ssize_t i, n, total = 0, room = max(16, layout.n * min(parts.max_entries, 64))
    cdef _Scratch scratch = _Scratch(1, 1, 0, parts.max_entries)
    data, indices = np.zeros(room), np.zeros(room, dtype=np.int32)
    indptr = np.zeros(layout.n + 1, dtype=np.int64)
    for i in range(layout.n):
        with nogil:
            n = parts.encode(i, &labels[layout.label_offsets[i]], &scratch.index[0],
                             &scratch.value[0])
        if total + n > data.size:
            data, indices = np.resize(data, 2 * (total + n)), np.resize(indices, 2 * (total + n))
        data[total:total + n] = scratch.value[:n]
        indices[total:total + n] = scratch.index[:n]
        total += n
        indptr[i + 1] = total
    return data[:total], indices[:total], indptr


def label_costs(Loss loss not None, const int[::1] truths not None, Py_ssize_t size):
    """Return ``c_i`` and ``const_i`` of the losses ``<c_i, mu(y)> + const_i`` of all examples.

    Parameters
    ----------
    loss : Loss
    truths : ndarray of int32
        True labels, concatenated.
    size : int
        Size of theta.

    Returns
    -------
    costs : ndarray of shape (n, size)
    constants : ndarray of shape (n,)
    """
    cdef PartLayout layout = loss.layout
    if not loss.decomposes:
        raise ValueError(f"{loss} does not decompose over the parts")
    _check_width(loss, size)
    _check_labels(layout, truths, loss.n_states + loss.takes_unseen if loss.n_states else 0)
    rows = aligned_zeros(layout.n * size + 8)
    constants = np.zeros(layout.n)
    cdef double[::1] out = rows, constant = constants
    cdef Py_ssize_t i, n = layout.n
    with nogil:
        for i in range(n):
            constant[i] = loss.augment(i, &truths[layout.label_offsets[i]], 1.0, &out[i * size])
    return rows[:n * size].reshape(n, size), constants


def surrogates(Oracle oracle not None, Loss loss not None, const double[:, ::1] theta not None,
               double inverse_rho, const int[::1] truths not None, n_jobs=1):
    """Return ``max_y' L(y', y_i) + (min R - R(y')) / rho`` and ``L(y^, y_i)`` of every example.

    Parameters
    ----------
    oracle : Oracle
    loss : Loss
        Bound to the same examples.
    theta : ndarray of shape (n, size of theta)
        From :func:`risk_scores`.
    inverse_rho : float
    truths : ndarray of int32
        True labels, concatenated.

    Returns
    -------
    values, losses : ndarray of shape (n,)
        The surrogate (Goh and Jaillet 2017, eq. 10) before clipping, and the loss of the label of
        least risk.
    """
    cdef PartLayout layout = oracle.layout
    cdef Py_ssize_t size = theta.shape[1]
    if not loss.decomposes:
        raise ValueError(f"{loss} does not decompose over the parts")
    _check_rows(layout, theta.shape[0])
    _check_labels(layout, truths, loss.n_states + loss.takes_unseen if loss.n_states else 0)
    _check_width(oracle, size)
    _check_width(loss, size)
    _check_rows(loss.layout, theta.shape[0])
    values, losses = np.zeros(theta.shape[0]), np.zeros(theta.shape[0])
    cdef double[::1] value_view = values, loss_view = losses
    label_size = max(layout.max_label, 1)

    def piece(Py_ssize_t first, Py_ssize_t last, _Scratch scratch):
        cdef Py_ssize_t i, j
        cdef double best, worst, constant, bound
        cdef const int* truth
        with nogil:
            for i in range(first, last):
                for j in range(size):
                    scratch.theta[j] = theta[i, j]
                truth = &truths[layout.label_offsets[i]]
                oracle.argmax(i, &scratch.theta[0], &scratch.label[0], &best, &bound,
                              &scratch.work[0])
                loss_view[i] = loss.value(i, truth, &scratch.label[0])
                for j in range(size):
                    scratch.theta[j] = inverse_rho * theta[i, j]
                constant = loss.augment(i, truth, 1.0, &scratch.theta[0])
                oracle.argmax(i, &scratch.theta[0], &scratch.label[0], &worst, &bound,
                              &scratch.work[0])
                value_view[i] = constant + worst - inverse_rho * best

    over_examples(piece, layout.examples.offsets, n_jobs,
                  lambda: _Scratch(size, label_size, oracle.work_bytes))
    return values, losses


cdef int _check_width(Operator operator, Py_ssize_t width) except -1:
    if operator.layout.max_theta > width:
        raise ValueError(
            f"found {width} scores per example, expected at least {operator.layout.max_theta}"
        )
    return 0


cdef int _check_rows(PartLayout layout, Py_ssize_t rows) except -1:
    if layout.n != rows:
        raise ValueError(f"found {rows} rows of scores for {layout.n} examples")
    return 0


cdef int _check_labels(PartLayout layout, const int[::1] labels, int states) except -1:
    if labels.shape[0] != layout.label_offsets[layout.n]:
        raise ValueError(
            f"found labels of {labels.shape[0]} integers, expected "
            f"{layout.label_offsets[layout.n]}"
        )
    check_numbers(labels, states or 2**31 - 1, "labels")
    return 0
