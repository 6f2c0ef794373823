"""Loops for rivals by hashes: signs packed into words, and the nearest codes of a query."""

import numpy as np

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset


cdef inline int ones(uint64_t x) noexcept nogil:
    # Count bits by pairs, fours and bytes, and sum the bytes: portable and fast enough.
    x -= (x >> 1) & <uint64_t>0x5555555555555555ULL
    x = (x & <uint64_t>0x3333333333333333ULL) + ((x >> 2) & <uint64_t>0x3333333333333333ULL)
    x = (x + (x >> 4)) & <uint64_t>0x0f0f0f0f0f0f0f0fULL
    return <int>((x * <uint64_t>0x0101010101010101ULL) >> 56)


def packed(const float[:, ::1] values not None):
    """Pack the signs of numbers into words of 64 bits.

    Parameters
    ----------
    values : ndarray of float32 of shape (n, bits)

    Returns
    -------
    ndarray of uint64 of shape (n, ceil(bits / 64))
        Bit j of a row is 1 where value j is above 0.
    """
    cdef Py_ssize_t n = values.shape[0], bits = values.shape[1], i, j
    codes = np.zeros((n, (bits + 63) // 64), np.uint64)
    cdef uint64_t[:, ::1] code = codes
    with nogil:
        for i in range(n):
            for j in range(bits):
                if values[i, j] > 0:
                    code[i, j >> 6] |= <uint64_t>1 << (j & 63)
    return codes


def nearest(const uint64_t[:, ::1] queries not None, const uint64_t[:, ::1] codes not None,
            const int32_t[::1] exclude not None, int32_t[:, ::1] ids not None):
    """Find for each query the codes that differ in the fewest bits.

    Parameters
    ----------
    queries : ndarray of uint64 of shape (n, words)
    codes : ndarray of uint64 of shape (n_classes, words)
    exclude : ndarray of int32 of shape (n,)
        A code to exclude for each query, -1 for none.
    ids : ndarray of int32 of shape (n, m)
        Overwritten with ascending numbers of codes; ties go to lower numbers.  -1 if there are
        fewer.

    Raises
    ------
    ValueError
        If sizes do not fit, or an excluded code does not exist.
    """
    cdef Py_ssize_t n = queries.shape[0], words = queries.shape[1], C = codes.shape[0]
    cdef Py_ssize_t m = ids.shape[1], i, c, w, size
    if codes.shape[1] != words or exclude.shape[0] != n or ids.shape[0] != n or words > 2**20:
        raise ValueError(
            f"queries: found {n} of {words} words; codes have {codes.shape[1]}, exclude and ids are "
            f"of {exclude.shape[0]} and {ids.shape[0]}: expected the same sizes"
        )
    if n and np.max(exclude) >= C:
        raise ValueError(f"exclude has entries of {C} or more, the number of codes")
    cdef int most = 64 * <int>words, d, last
    cdef Py_ssize_t kept, room
    counts_of, distances = np.zeros(most + 1, np.int32), np.zeros(max(C, 1), np.int32)
    cdef int32_t[::1] counts = counts_of, distance = distances
    with nogil:
        for i in range(n):
            memset(&counts[0], 0, (most + 1) * sizeof(int32_t))
            for c in range(C):
                d = 0
                for w in range(words):
                    d += ones(queries[i, w] ^ codes[c, w])
                distance[c] = d
                counts[d] += 1
            if exclude[i] >= 0:
                counts[distance[exclude[i]]] -= 1
                distance[exclude[i]] = most + 1
            # Keep all codes nearer than `last`, and codes at `last` while there is room.
            kept, last = 0, 0
            while last < most and kept + counts[last] < m:
                kept += counts[last]
                last += 1
            room, size = m - kept, 0
            for c in range(C):
                if distance[c] > last or size == m:
                    continue
                if distance[c] == last:
                    if room == 0:
                        continue
                    room -= 1
                ids[i, size] = <int32_t>c
                size += 1
            for c in range(size, m):
                ids[i, c] = -1
