"""Projections onto the simplex: Euclidean, the exact block step of a flat output space; softmax."""

import numpy as np

from libc.math cimport INFINITY, log
from structsolve.simd.loops cimport ss_loop_table


cdef double simplex_threshold(Py_ssize_t n, const double* q) noexcept nogil:
    # Michelot 1986: any subset of the entries gives a threshold that is too low or right, so
    # entries at or below it can be dropped, until there are none.
    cdef Py_ssize_t j, kept, before = n + 1
    cdef double top = q[0], total, tau
    for j in range(1, n):
        top = q[j] if q[j] > top else top
    tau = top - 1           # not lower, or the largest entry alone would exceed 1
    if n == 2:              # the most frequent case by far, same result as the loop
        total = (q[0] - top) + (q[1] - top)
        return top + (total - 1) / 2 if total > -1 else tau
    while True:
        kept = 0
        total = 0
        for j in range(n):
            kept += q[j] > tau
            total += q[j] - top if q[j] > tau else 0.0
        # More entries than before: one equals tau up to rounding.  None: 1 is below the spacing of
        # numbers near `top`.
        if kept >= before or kept == 0:
            return tau
        tau = top + (total - 1) / kept
        before = kept


cdef int _impossible(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: every class is forbidden (its score is -inf or NaN), so there are no "
        "marginals; allow at least one class, and check that the weights are finite"
    )


cdef int softmax(Py_ssize_t i, Py_ssize_t K, Py_ssize_t stride, const ss_loop_table* loops,
                 const double* scores, double* p, double* value) except -1 nogil:
    cdef double low, top, total = 0
    cdef Py_ssize_t s
    loops.range(1, scores, stride, K, 0, &low, &top)
    loops.exp_rows(1, scores, stride, K, top, p)
    for s in range(K):
        total += p[s]
    if not (top > -INFINITY and total > 0):     # the sum of NaN is NaN
        _impossible(i)
    for s in range(K):
        p[s] /= total
    value[0] = top + log(total)
    return 0


cdef int sparsemax(Py_ssize_t i, Py_ssize_t K, Py_ssize_t stride, const double* scores, double* p,
                   double* value) except -1 nogil:
    cdef double top = -INFINITY, tau, total = 0
    cdef Py_ssize_t s, n = 0
    for s in range(K):
        if not scores[s] < INFINITY:             # also catches NaN
            _impossible(i)
        top = scores[s] if scores[s] > top else top
    if top == -INFINITY:
        _impossible(i)
    # The scores of allowed classes, shifted to a maximum of 0, in place of the answer.  Scores
    # more than 1 below the top get probability 0.
    for s in range(K):
        if scores[s] - top > -1:
            p[n] = scores[s] - top
            n += 1
    tau = simplex_threshold(n, p)
    for s in range(K):
        p[s] = scores[s] - top - tau if scores[s] - top > tau else 0.0
        total += p[s]
    value[0] = 0
    for s in range(K):
        p[s] /= total
        # Forbidden classes score -inf and get probability 0.
        value[0] += p[s] * (scores[s] - top - p[s] / 2) if p[s] > 0 else 0.0
    value[0] += top
    for s in range(K, stride):
        p[s] = 0
    return 0


cdef double square_term(Py_ssize_t K, const double* p) noexcept nogil:
    cdef Py_ssize_t s
    cdef double total = 0
    for s in range(K):
        total += p[s] * p[s]
    return -total / 2


cdef double square_slope(Py_ssize_t K, const double* a, const double* b,
                         double gamma) noexcept nogil:
    cdef Py_ssize_t s
    cdef double total = 0
    for s in range(K):
        total -= ((1 - gamma) * a[s] + gamma * b[s]) * (b[s] - a[s])
    return total


def project_simplex(q):
    """Return the point of the simplex nearest to ``q``.

    Parameters
    ----------
    q : array of float64 of shape (n,)
        At least one number; finite.

    Returns
    -------
    p : ndarray of float64 of shape (n,)
        ``argmin ||p - q||`` over p >= 0 with sum 1 (Michelot 1986).

    Raises
    ------
    ValueError
        If q is empty, not 1-D or not finite.

    Examples
    --------
    >>> from structsolve.algorithms.simplex_projection import project_simplex
    >>> project_simplex([2.0, 1.5, 0.0]).tolist()
    [0.75, 0.25, 0.0]
    """
    q = np.asarray(q, dtype=np.float64)
    if q.ndim != 1 or q.size == 0 or not np.isfinite(q).all():
        raise ValueError(f"q has shape {q.shape}, expected at least one finite number in 1-D")
    copy = q - q.max()
    cdef const double[::1] view = copy
    p = np.maximum(copy - simplex_threshold(copy.shape[0], &view[0]), 0.0)
    return p / p.sum()
