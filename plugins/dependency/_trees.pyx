"""What is wrong with heads that are no tree, or not one of the kind asked for."""

import numpy as np

from libc.stdint cimport int64_t

cdef enum Fault:
    NONE
    CYCLE
    ROOTS
    CROSSING


cdef Fault _look(Py_ssize_t n, const int* heads, bint single, bint projective, int* seen,
                 Py_ssize_t* at) noexcept nogil:
    cdef Py_ssize_t m, v, low, high, other_low, other_high, roots = 0
    for m in range(n):
        seen[m] = -1
        if heads[m] == 0:
            roots += 1
            if roots == 2 and single:
                at[0] = m
                return ROOTS
    for m in range(n):
        v = m
        while v >= 0 and seen[v] < 0:
            seen[v] = <int>m
            v = heads[v] - 1
        if v >= 0 and seen[v] == m:
            at[0] = v
            return CYCLE
    if not projective:
        return NONE
    for m in range(n):
        low, high = heads[m], m + 1
        if low > high:
            low, high = high, low
        for v in range(m):
            other_low, other_high = heads[v], v + 1
            if other_low > other_high:
                other_low, other_high = other_high, other_low
            if low < other_low < high < other_high or other_low < low < other_high < high:
                at[0] = m
                return CROSSING
    return NONE


def first_fault(const int[::1] heads, const int64_t[::1] offsets, bint single, bint projective):
    """The first sentence whose heads are no tree of the kind asked for.

    Parameters
    ----------
    heads : ndarray of int32
        Of all words, each from 0 (the root) to the number of words of its sentence.
    offsets : ndarray of int64 of shape (n + 1,)
    single, projective : bool
        One child of the root; no crossing arcs.

    Returns
    -------
    None, or tuple (sentence, word, fault)
        The fault is "cycle", "roots" or "crossing"; words count from 0.
    """
    cdef Py_ssize_t i, m, n, at = 0
    cdef Fault fault = NONE
    sizes = np.diff(offsets)
    if heads.shape[0] != offsets[offsets.shape[0] - 1] or (sizes < 1).any():
        raise ValueError("heads and offsets do not fit each other")
    limit = np.repeat(sizes, sizes)
    if ((np.asarray(heads) < 0) | (np.asarray(heads) > limit)).any():
        raise ValueError("heads: expected 0 to the number of words")
    cdef int[::1] seen = np.empty(int(sizes.max()), dtype=np.int32)
    with nogil:
        for i in range(offsets.shape[0] - 1):
            n = offsets[i + 1] - offsets[i]
            fault = _look(n, &heads[offsets[i]], single, projective, &seen[0], &at)
            if fault != NONE:
                break
    if fault == NONE:
        return None
    return i, at, {CYCLE: "cycle", ROOTS: "roots", CROSSING: "crossing"}[fault]
