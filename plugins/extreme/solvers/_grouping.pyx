"""Counting sorts: pairs of classes and examples by class, weights by feature."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from structsolve.utils.arrays import check_numbers, check_offsets


def pair_lists(const int64_t[::1] start not None, const int32_t[::1] labels not None,
               const int32_t[:, ::1] rivals not None, Py_ssize_t n_classes,
               const unsigned char[::1] wanted not None):
    """List for each class the examples that belong to it or have it as a rival.

    Parameters
    ----------
    start : ndarray of int64 of shape (n + 1,)
        First of the labels of each example, and the end.
    labels : ndarray of int32
        Classes of the examples.
    rivals : ndarray of int32 of shape (n, k)
        Negative entries, an example's own classes and duplicates are ignored.
    n_classes : int
    wanted : ndarray of uint8 of shape (n,)
        Marks the examples to use.

    Returns
    -------
    begin : ndarray of int64 of shape (n_classes + 1,)
    rows : ndarray of int32
        Ascending within each class.
    own : ndarray of uint8
        Whether the example is of the class.

    Raises
    ------
    ValueError
        If a class is n_classes or more, or lengths differ.
    """
    cdef int64_t i, j, c, n = start.shape[0] - 1, k = rivals.shape[1]
    cdef bint counting
    if rivals.shape[0] != n or wanted.shape[0] != n or not 0 <= n_classes < 2**31:
        raise ValueError(
            f"rivals and wanted are of {rivals.shape[0]} and {wanted.shape[0]} examples, n_classes "
            f"is {n_classes}: expected {n} examples, and classes that 32 bits can number"
        )
    check_offsets(np.asarray(start), labels.shape[0], 0, "start of the examples' labels")
    begin, last = np.zeros(n_classes + 1, np.int64), np.full(n_classes, -1, np.int64)
    check_numbers(labels, n_classes, "labels")
    if n and k and np.max(rivals) >= n_classes:
        raise ValueError(f"rivals has entries of {n_classes} or more")
    cdef int64_t[::1] begin_view = begin, last_view = last
    cdef int32_t[::1] rows_view = np.empty(0, np.int32)
    cdef unsigned char[::1] own_view = np.empty(0, np.uint8)
    # Count first, then fill; `last` is the last example added to each class's list.
    for counting in (True, False):
        if not counting:
            np.cumsum(begin, out=begin)
            rows, own = np.empty(begin[n_classes], np.int32), np.empty(begin[n_classes], np.uint8)
            rows_view, own_view = rows, own
            last[:] = -1
            begin[1:] = begin[:n_classes]
            begin[0] = 0
        with nogil:
            for i in range(n):
                if not wanted[i]:
                    continue
                for j in range(start[i] - start[i + 1], k):
                    c = labels[start[i + 1] + j] if j < 0 else rivals[i, j]
                    if c < 0 or last_view[c] == i:
                        continue
                    last_view[c] = i
                    if not counting:
                        rows_view[begin_view[c + 1]] = <int32_t>i
                        own_view[begin_view[c + 1]] = j < 0
                    begin_view[c + 1] += 1
    return begin, rows, own


def scatter(const int32_t[::1] features not None, const int32_t[::1] values not None,
            int64_t[::1] place not None, int32_t[::1] out not None):
    """Write ``out[place[f]] = value`` for each entry in order, and advance ``place[f]`` by one.

    Parameters
    ----------
    features, values : ndarray of int32 of shape (m,)
        Values may be any 4-byte numbers, viewed as int32.
    place : ndarray of int64 of shape (n_features,)
        Overwritten.
    out : ndarray of int32

    Raises
    ------
    ValueError
        If a feature or its place does not exist; the entries before it are written.
    """
    cdef int64_t j, m = features.shape[0]
    cdef int32_t f
    if values.shape[0] != m:
        raise ValueError(f"values has {values.shape[0]} entries, expected {m} as features")
    with nogil:
        for j in range(m):
            f = features[j]
            if not (0 <= f < place.shape[0] and 0 <= place[f] < out.shape[0]):
                with gil:
                    raise ValueError(f"features, entry {j}: found {f}, which has no place in out")
            out[place[f]] = values[j]
            place[f] += 1
