"""Tables of pairs of states whose scores are functions of the distance of the states.

Messages across them take O(K) instead of O(K^2) operations.
"""

import numpy as np

from libc.math cimport INFINITY, fabs

from structsolve.plugins.mrf.tables._model cimport Model

# Scores that differ by less, in units of the table's largest, are equal up to rounding.
cdef double SAME = 1e-15


cdef bint one_table(const Model* model) noexcept nogil:
    cdef Py_ssize_t e
    cdef int u, v
    for e in range(1, model.m):
        if model.pair_at[e] != model.pair_at[0]:
            return False
        for u in range(2):
            v = model.states[model.ends[2 * e + u]]
            if v != model.states[model.ends[u]]:
                return False
    return model.m > 0


cdef mrf_table table_kind(const double* table, int rows, int columns) noexcept nogil:
    cdef mrf_table kind
    cdef int s, t, d, p
    cdef double largest = fabs(table[0]), slack, loss
    kind.kind, kind.straight, kind.turned = MRF_GENERAL, -1, -1
    kind.same, kind.slope, kind.cut = table[0], 0, 0
    if rows != columns or rows < 2:
        return kind
    # The first row has all distances.
    for t in range(columns):
        if not fabs(table[t]) < INFINITY:
            return kind
        largest = max(largest, fabs(table[t]))
        kind.cut = max(kind.cut, table[0] - table[t])
    slack = SAME * largest
    kind.slope = table[0] - table[1]
    if kind.slope < 0:
        return kind
    for p in range(1, 3):
        for t in range(columns):
            loss = min(kind.slope * (t if p == 1 else t * t), kind.cut)
            if fabs(table[0] - table[t] - loss) > slack:
                break
        else:
            break
    else:
        return kind
    for s in range(1, rows):
        for t in range(columns):
            d = s - t if s > t else t - s
            if not fabs(table[s * columns + t] - table[d]) <= slack:
                return kind
    kind.kind = MRF_LINEAR if p == 1 else MRF_QUADRATIC
    if kind.slope == kind.cut:
        kind.kind = MRF_POTTS
    return kind


def recognize(table):
    """Return the kind of a table and its ``(same, slope, cut)``.

    Parameters
    ----------
    table : array of shape (K, L)
        K and L are at least 1.

    Returns
    -------
    kind : {"general", "potts", "linear", "quadratic"}
        States s, t score ``same - min(slope |s - t|^p, cut)``, p = 1 or 2, unless the table is
        general; Potts tables have ``slope = cut``.
    parameters : tuple of float

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from structsolve.plugins.mrf.tables._table_kinds import recognize
    >>> recognize([[1, -1], [-1, 1]])
    ('potts', (1.0, 2.0, 2.0))
    >>> recognize([[0, -1, -2, -2], [-1, 0, -1, -2], [-2, -1, 0, -1], [-2, -2, -1, 0]])
    ('linear', (0.0, 1.0, 2.0))
    """
    cdef const double[:, ::1] view = np.ascontiguousarray(table, dtype=np.float64)
    if not (view.shape[0] and view.shape[1]):
        raise ValueError(f"table: found shape {np.shape(table)}, expected at least one state")
    cdef mrf_table kind = table_kind(&view[0, 0], view.shape[0], view.shape[1])
    name = ("general", "potts", "linear", "quadratic")[kind.kind]
    return name, (kind.same, kind.slope, kind.cut)
