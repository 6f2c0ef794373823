"""Euclidean projection onto the simplex, the exact block step of a flat output space."""

import numpy as np


cdef double simplex_threshold(Py_ssize_t n, const double* q) noexcept nogil:
    # Michelot 1986: any subset of the entries gives a threshold that is too low or right, so
    # whatever lies at or below it can go, until nothing more does.
    cdef Py_ssize_t j, kept, before = n + 1
    cdef double top = q[0], total, tau
    for j in range(1, n):
        top = q[j] if q[j] > top else top
    tau = top - 1           # no lower: the largest entry alone would exceed 1
    if n == 2:              # by far the most frequent: what the loop gives, without a look back
        total = (q[0] - top) + (q[1] - top)
        return top + (total - 1) / 2 if total > -1 else tau
    while True:
        kept = 0
        total = 0
        for j in range(n):
            kept += q[j] > tau
            total += q[j] - top if q[j] > tau else 0.0
        # More than before: an entry equal to tau but for rounding.  None: 1 is below the spacing
        # of numbers near `top`.
        if kept >= before or kept == 0:
            return tau
        tau = top + (total - 1) / kept
        before = kept


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
        When q is empty, not 1-D or not finite.

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
