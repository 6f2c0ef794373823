# build: glue
"""An order of the nodes of forests in which parents come before their children."""

import numpy as np

from libc.stdint cimport int64_t


def order_nodes(const int[::1] parents not None, const int64_t[::1] offsets not None):
    """Return an order of every example's nodes, parents first; None where they are in one.

    Parameters
    ----------
    parents : ndarray of int32
        Of the nodes of all examples; nodes count from 0 in every example, -1 at roots.
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example.

    Returns
    -------
    ndarray of int32, or None

    Raises
    ------
    ValueError
        Where a node is its own ancestor, naming the example and nodes of the cycle.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.tree._topology import order_nodes
    >>> order_nodes(np.array([1, 2, -1], dtype=np.int32), np.array([0, 3])).tolist()
    [2, 1, 0]
    """
    cdef Py_ssize_t i, v, w, first, n, tail
    cdef bint sorted_already = True
    cdef int[::1] order, pending
    if offsets.shape[0] < 1 or offsets[0] != 0 or offsets[offsets.shape[0] - 1] != parents.shape[0]:
        raise ValueError(f"offsets: expected 0 to {parents.shape[0]}, the number of parents")
    for i in range(offsets.shape[0] - 1):
        n = offsets[i + 1] - offsets[i]
        for v in range(n):
            w = parents[offsets[i] + v]
            if not -1 <= w < n:
                raise ValueError(f"example {i}, node {v}: the parent is {w}, expected -1 to {n - 1}")
            sorted_already = sorted_already and w < v
    if sorted_already:
        return None
    found = np.empty(parents.shape[0], dtype=np.int32)
    # Children that are still to come; -1 once the node has its place.
    order, pending = found, np.zeros(parents.shape[0], dtype=np.int32)
    for i in range(offsets.shape[0] - 1):
        first = offsets[i]
        tail = n = offsets[i + 1] - first
        for v in range(n):
            if parents[first + v] >= 0:
                pending[first + parents[first + v]] += 1
        # From the end: leaves, and up from them as far as all children have their places.
        for v in range(n - 1, -1, -1):
            w = v
            while w >= 0 and pending[first + w] == 0:
                tail -= 1
                order[first + tail] = <int>w
                pending[first + w] = -1
                w = parents[first + w]
                if w >= 0:
                    pending[first + w] -= 1
        if tail:
            _refuse(i, np.asarray(parents[first:first + n]), np.asarray(pending[first:first + n]))
    return found


def _refuse(i, parents, pending):
    # Parents of what is left lead onto a cycle.
    v = int(np.flatnonzero(pending >= 0)[0])
    for _ in range(len(parents)):
        v = int(parents[v])
    path, w = [v], int(parents[v])
    while w != v and len(path) < 12:
        path.append(w)
        w = int(parents[w])
    named = ", ".join(map(str, path)) + (", ..." if w != v else "")
    raise ValueError(
        f"X, example {i}: node {v} is its own ancestor: the nodes {named} form a cycle (each the "
        "child of the next); expected a tree or a forest"
    )
