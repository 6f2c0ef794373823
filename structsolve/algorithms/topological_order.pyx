# build: glue
"""Linear-time walks over a hierarchy: topological order, ancestors, shares of the root's weight."""

import numpy as np

from ..utils.arrays import check_numbers, check_rows


def compressed(Py_ssize_t M, tails, heads):
    """Return edges as compressed rows: the heads of each tail, in the order given.

    Parameters
    ----------
    M : int
        Number of nodes.
    tails, heads : array of int of shape (m,)

    Returns
    -------
    first : ndarray of int32 of shape (M + 1,)
        Row v is ``entry[first[v] : first[v + 1]]``.
    entry : ndarray of int32 of shape (m,)
    """
    cdef const int[::1] a = np.ascontiguousarray(tails, dtype=np.int32)
    cdef const int[::1] b = np.ascontiguousarray(heads, dtype=np.int32)
    check_numbers(a, M, "tails")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"found {a.shape[0]} tails and {b.shape[0]} heads")
    first_array, entry_array = np.zeros(M + 1, np.int32), np.empty(len(a), np.int32)
    cdef int[::1] first = first_array, entry = entry_array
    cdef int[::1] next_entry = np.zeros(M + 1, np.int32)
    cdef Py_ssize_t e, v
    for e in range(a.shape[0]):
        first[a[e] + 1] += 1
    for v in range(M):
        first[v + 1] += first[v]
        next_entry[v] = first[v]
    for e in range(a.shape[0]):
        entry[next_entry[a[e]]] = b[e]
        next_entry[a[e]] += 1
    return first_array, entry_array


def topological_order(const int[::1] first not None, const int[::1] child not None, n_parents):
    """Return nodes, parents before children.

    Parameters
    ----------
    first, child : ndarray of int32
        The children of each node, in compressed rows.
    n_parents : array of int of shape (M,)

    Returns
    -------
    ndarray of int32
        Fewer than M nodes if there are cycles, because nodes on or below a cycle are left out.
    """
    cdef Py_ssize_t M = first.shape[0] - 1, begin = 0, size = 0, v, k
    cdef int[::1] left = np.array(n_parents, dtype=np.int32)
    check_rows(first, child, M, M, "children")
    if not np.array_equal(left, np.bincount(child, minlength=M)):
        raise ValueError("n_parents: found other numbers than the children have")
    nodes = np.empty(M, dtype=np.int32)
    cdef int[::1] order = nodes
    for v in range(M):
        if left[v] == 0:
            order[size] = <int>v
            size += 1
    while begin < size:
        v = order[begin]
        begin += 1
        for k in range(first[v], first[v + 1]):
            left[child[k]] -= 1
            if left[child[k]] == 0:
                order[size] = child[k]
                size += 1
    return nodes[:size].copy()


def leaf_lines(const int[::1] up_first not None, const int[::1] up not None,
               const int[::1] rank not None, const int[::1] leaves not None):
    """Return each leaf with all its ancestors, by descending rank, as compressed rows.

    Parameters
    ----------
    up_first, up : ndarray of int32
        The parents of each node, in compressed rows.
    rank : ndarray of int32 of shape (M,)
        Position of each node in topological order.
    leaves : ndarray of int32

    Returns
    -------
    first, line : ndarray of int32
        One row per leaf.

    Raises
    ------
    ValueError
        If the rows have 2**31 entries or more in total.
    """
    cdef Py_ssize_t M = up_first.shape[0] - 1, j, k, size, begin, v
    visited, place = np.empty(M, np.int32), np.asarray(rank)
    check_rows(up_first, up, M, M, "parents")
    check_numbers(leaves, M, "leaves")
    if len(place) != M:
        raise ValueError(f"rank: found {len(place)} numbers, expected {M}")
    cdef int[::1] seen = np.full(M, -1, np.int32), queue = visited
    rows, counts = [], [0]
    for j in range(leaves.shape[0]):
        queue[0], size, begin = leaves[j], 1, 0
        seen[leaves[j]] = <int>j
        while begin < size:
            v = queue[begin]
            begin += 1
            for k in range(up_first[v], up_first[v + 1]):
                if seen[up[k]] != j:
                    seen[up[k]] = <int>j
                    queue[size] = up[k]
                    size += 1
        row = visited[:size]
        rows.append(row[np.argsort(-place[row], kind="stable")].copy())
        counts.append(size)
    total = np.cumsum(counts)
    most = int(total.max())
    if most > 2**31 - 1:
        raise ValueError(
            f"hierarchy: its leaves have {most} ancestors in all, expected fewer than 2**31"
        )
    return total.astype(np.int32), np.concatenate(rows)


def add_ancestors(int[:, ::1] Y not None, const int[::1] order not None,
                  const int[::1] up_first not None, const int[::1] up not None):
    """Turn on every node that has a child which is on, in place.

    Parameters
    ----------
    Y : ndarray of int32 of shape (n, M)
        Indicators.
    order : ndarray of int32 of shape (M,)
        Parents before their children.
    up_first, up : ndarray of int32
        The parents of each node, in compressed rows.
    """
    cdef Py_ssize_t i, j, k, v, M = order.shape[0]
    _check_walk(order, up_first, up, Y.shape[1])
    with nogil:
        for i in range(Y.shape[0]):
            for j in range(M - 1, -1, -1):
                v = order[j]
                if Y[i, v]:
                    for k in range(up_first[v], up_first[v + 1]):
                        Y[i, up[k]] = 1


def first_open(const int[:, ::1] Y not None, const int[::1] order not None,
               const int[::1] up_first not None, const int[::1] up not None):
    """Return the first node that is on while one of its parents is off.

    Parameters
    ----------
    Y : ndarray of int32 of shape (n, M)
        Indicators.
    order : ndarray of int32 of shape (M,)
    up_first, up : ndarray of int32
        The parents of each node, in compressed rows.

    Returns
    -------
    tuple of (int, int, int), or None
        Row, node and parent.
    """
    cdef Py_ssize_t i, v, k, M = order.shape[0], row = -1, node = 0, parent = 0
    _check_walk(order, up_first, up, Y.shape[1])
    with nogil:
        for i in range(Y.shape[0]):
            for v in range(M):
                if Y[i, v]:
                    for k in range(up_first[v], up_first[v + 1]):
                        if not Y[i, up[k]]:
                            row, node, parent = i, v, up[k]
                            break
                if row >= 0:
                    break
            if row >= 0:
                break
    return None if row < 0 else (row, node, parent)


def first_barren(const int[:, ::1] Y not None, const int[::1] child_first not None,
                 const int[::1] child not None):
    """Return the first inner node that is on while all its children are off.

    Parameters
    ----------
    Y : ndarray of int32 of shape (n, M)
        Indicators.
    child_first, child : ndarray of int32
        The children of each node, in compressed rows.

    Returns
    -------
    tuple of (int, int), or None
        Row and node.
    """
    cdef Py_ssize_t i, v, k, M = child_first.shape[0] - 1
    cdef bint on
    check_rows(child_first, child, M, M, "children")
    if Y.shape[1] != M:
        raise ValueError(f"Y: found {Y.shape[1]} columns, expected {M}")
    for i in range(Y.shape[0]):
        for v in range(M):
            if Y[i, v] and child_first[v] < child_first[v + 1]:
                on = False
                for k in range(child_first[v], child_first[v + 1]):
                    on = on or Y[i, child[k]]
                if not on:
                    return i, v
    return None


def share_out(const int[::1] order not None, const int[::1] up_first not None,
              const int[::1] up not None, const int[::1] child_first not None):
    """Share 1 equally among the roots, and each node's share equally among its children.

    Parameters
    ----------
    order : ndarray of int32 of shape (M,)
        Parents before their children.
    up_first, up : ndarray of int32
        The parents of each node, in compressed rows.
    child_first : ndarray of int32 of shape (M + 1,)
        Start of the children of each node.

    Returns
    -------
    ndarray of float64 of shape (M,)
        A node with several parents gets the sum of their shares.
    """
    cdef Py_ssize_t j, k, v, p, M = order.shape[0], roots = 0
    _check_walk(order, up_first, up, M)
    check_rows(child_first, np.zeros(len(up)), M, 1, "children")
    if (np.diff(child_first) != np.bincount(up, minlength=M)).any():
        raise ValueError("child_first: found other numbers of children than the parents have")
    shares = np.zeros(M)
    cdef double[::1] share = shares
    for v in range(M):
        roots += up_first[v] == up_first[v + 1]
    for j in range(M):
        v = order[j]
        if up_first[v] == up_first[v + 1]:
            share[v] = 1.0 / roots
        for k in range(up_first[v], up_first[v + 1]):
            p = up[k]
            share[v] += share[p] / (child_first[p + 1] - child_first[p])
    return shares


def _check_walk(order, up_first, up, Py_ssize_t M):
    # Check a hierarchy's arrays, and the number of columns of Y.
    if len(order) != M:
        raise ValueError(f"order: found {len(order)} nodes, expected {M}")
    check_numbers(order, M, "order")
    check_rows(up_first, up, M, M, "parents")
