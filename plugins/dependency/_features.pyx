"""First-order features of arcs, hashed, for all candidate arcs of many sentences."""

import numpy as np

from structsolve.utils.arrays import check_offsets

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    PLAIN = 24      # templates without tags in between
    BETWEEN = 32    # kinds of tags in between, at most
    MOST = 56       # features of an arc, at most

cdef enum:
    ROOT
    BEFORE
    AFTER


cdef inline int _bucket(Py_ssize_t distance) noexcept nogil:
    if distance <= 5:
        return <int>distance
    return 6 if distance <= 10 else 7


cdef inline int _ones(uint32_t x) noexcept nogil:
    cdef int count = 0
    while x:
        x &= x - 1
        count += 1
    return count


cdef inline uint64_t _mix(uint64_t h, uint64_t x) noexcept nogil:
    h = (h ^ x) * <uint64_t>0x9E3779B97F4A7C15
    return h ^ (h >> 29)


cdef inline void _add(int32_t* row, Py_ssize_t* size, uint64_t h, int shift) noexcept nogil:
    # Insert a column; columns rise and do not repeat.
    cdef int32_t index = <int32_t>((h * <uint64_t>0xBF58476D1CE4E5B9) >> shift)
    cdef Py_ssize_t k = size[0]
    while k and row[k - 1] > index:
        k -= 1
    if k and row[k - 1] == index:
        return
    cdef Py_ssize_t j = size[0]
    while j > k:
        row[j] = row[j - 1]
        j -= 1
    row[k] = index
    size[0] += 1


cdef Py_ssize_t _arc(Py_ssize_t n, Py_ssize_t h, Py_ssize_t m, const uint32_t* word,
                     const uint32_t* tag, uint32_t between, int shift, int32_t* row) noexcept nogil:
    """Features of the arc from h to m, words from 1; 0, also in the arrays, is the root."""
    cdef Py_ssize_t size = 0
    cdef uint64_t where = 2 * _bucket(h - m if h > m else m - h) + (h > m), way = h > m
    cdef uint64_t hw = word[h], mw = word[m], ht = tag[h], mt = tag[m], base, k
    cdef uint64_t hb = tag[h - 1] if h > 1 else BEFORE, ha = tag[h + 1] if h < n else AFTER
    cdef uint64_t mb = tag[m - 1] if m > 1 else BEFORE, ma = tag[m + 1] if m < n else AFTER
    cdef uint64_t heads = _mix(_mix(1, hw), ht), mods = _mix(_mix(2, mw), mt)
    cdef uint64_t tags = _mix(_mix(3, ht), mt)
    if h == 0:
        hb = ha = ROOT
        where = way = 1000
    base = _mix(0, where)
    # Features of one word, two words, and the tags around them; with direction and distance.
    _add(row, &size, base, shift)
    _add(row, &size, _mix(base, heads), shift)
    _add(row, &size, _mix(_mix(base, 10), hw), shift)
    _add(row, &size, _mix(_mix(base, 11), ht), shift)
    _add(row, &size, _mix(base, mods), shift)
    _add(row, &size, _mix(_mix(base, 12), mw), shift)
    _add(row, &size, _mix(_mix(base, 13), mt), shift)
    _add(row, &size, _mix(base, tags), shift)
    _add(row, &size, _mix(_mix(base, heads), mt), shift)
    _add(row, &size, _mix(_mix(base, mods), ht), shift)
    _add(row, &size, _mix(_mix(_mix(base, 14), hw), mw), shift)
    _add(row, &size, _mix(_mix(_mix(base, tags), ha), mb), shift)
    _add(row, &size, _mix(_mix(_mix(_mix(base, 15), tags), hb), mb), shift)
    _add(row, &size, _mix(_mix(_mix(_mix(base, 16), tags), ha), ma), shift)
    _add(row, &size, _mix(_mix(_mix(_mix(base, 17), tags), hb), ma), shift)
    # With direction alone.
    base = _mix(20, way)
    _add(row, &size, _mix(_mix(base, heads), mods), shift)
    _add(row, &size, _mix(_mix(base, heads), mt), shift)
    _add(row, &size, _mix(_mix(base, mods), ht), shift)
    _add(row, &size, _mix(_mix(_mix(base, 14), hw), mw), shift)
    _add(row, &size, _mix(base, tags), shift)
    _add(row, &size, _mix(_mix(_mix(base, tags), hb), ha), shift)
    _add(row, &size, _mix(_mix(_mix(_mix(base, 18), tags), mb), ma), shift)
    _add(row, &size, _mix(_mix(_mix(_mix(_mix(base, 19), tags), ha), mb), hb), shift)
    _add(row, &size, _mix(_mix(_mix(_mix(_mix(base, 21), tags), ha), mb), ma), shift)
    base = _mix(_mix(30, way), tags)
    for k in range(BETWEEN):
        if between >> k & 1:
            _add(row, &size, _mix(base, k), shift)
    return size


def hashed_arcs(const uint32_t[::1] words not None, const uint32_t[::1] tags not None,
                const uint32_t[::1] coarse not None, const int64_t[::1] offsets not None, int bits):
    """Return the columns of the features of all arcs, as CSR arrays.

    Parameters
    ----------
    words, tags : ndarray of uint32
        Numbers of words and of tags, tags from 3, of all sentences.
    coarse : ndarray of uint32
        Numbers of tags below 32, whose sets between the ends of an arc are features.
    offsets : ndarray of int64 of shape (n + 1,)
        First word of each sentence.
    bits : int
        Columns are below 2^bits.

    Returns
    -------
    indices, indptr : ndarray of int32
        Rows by sentence, modifier, head, without arcs from a word to itself.
    """
    cdef Py_ssize_t i, m, h, n, row = 0, used = 0
    cdef int64_t k
    cdef int shift = 64 - bits
    if not 1 <= bits <= 30:
        raise ValueError(f"bits is {bits}, expected 1 to 30")
    total = words.shape[0]
    check_offsets(offsets, total, 1, "words")
    sizes = np.diff(offsets)
    if not sizes.size or tags.shape[0] != total or (
            coarse.shape[0] != total or np.asarray(coarse).max() >= BETWEEN):
        raise ValueError("words, tags, coarse and offsets have inconsistent sizes")
    cdef int32_t[::1] pointers
    cdef int32_t[::1] out
    cdef uint32_t[::1] word = np.zeros(int(sizes.max()) + 2, dtype=np.uint32)
    cdef uint32_t[::1] tag = np.zeros(int(sizes.max()) + 2, dtype=np.uint32)
    cdef uint32_t[::1] between = np.zeros(int(sizes.max()) + 2, dtype=np.uint32)
    cdef uint32_t seen
    arcs = int((sizes * sizes).sum())
    # A first pass counts the tags in between, to allocate memory once.
    cdef int64_t wanted = PLAIN * <int64_t>arcs
    with nogil:
        for i in range(offsets.shape[0] - 1):
            n = offsets[i + 1] - offsets[i]
            for h in range(n + 1):
                seen = 0
                for m in range(h + 2, n + 1):
                    seen |= <uint32_t>1 << coarse[offsets[i] + m - 2]
                    k = _ones(seen)
                    wanted += 2 * k if h else k
    if wanted >= 2**31 - 1:
        raise ValueError(
            f"{arcs} arcs have about {wanted} features, at most 2^31 - 1 are supported in one "
            "matrix; leave out the longest sentences"
        )
    indices = np.empty(wanted + MOST, dtype=np.int32)
    indptr = np.zeros(arcs + 1, dtype=np.int32)
    out, pointers = indices, indptr
    with nogil:
        for i in range(offsets.shape[0] - 1):
            n = offsets[i + 1] - offsets[i]
            for m in range(n):
                word[m + 1] = words[offsets[i] + m]
                tag[m + 1] = tags[offsets[i] + m]
            for m in range(1, n + 1):
                # Tags of the words between h and m: the sets grow with the distance.
                seen = 0
                for h in range(m - 1, -1, -1):
                    between[h] = seen
                    if h:
                        seen |= <uint32_t>1 << coarse[offsets[i] + h - 1]
                seen = 0
                for h in range(m + 1, n + 1):
                    between[h] = seen
                    seen |= <uint32_t>1 << coarse[offsets[i] + h - 1]
                for h in range(n + 1):
                    if h != m:
                        used += _arc(n, h, m, &word[0], &tag[0], between[h], shift, &out[used])
                        row += 1
                        pointers[row] = <int32_t>used
    return indices[:used], indptr
