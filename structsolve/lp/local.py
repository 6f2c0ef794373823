"""The local polytope of a graph: marginals of edges agree with those of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .polytope import Polytope, Polytopes


def local_rows(states: np.ndarray, ends: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return ``A`` and ``b`` of ``A x = b, x >= 0``, the local polytope of a graph.

    ``sum_s mu_v(s) = 1``, ``sum_t mu_e(s, t) = mu_u(s)``, ``sum_s mu_e(s, t) = mu_v(t)``.  The
    variables are the states of all nodes, then the tables of all edges, row by row.

    Parameters
    ----------
    states : ndarray of int of shape (n,)
        Number of states of each node.
    ends : ndarray of int of shape (m, 2)
        Nodes u and v of each edge.

    Returns
    -------
    A : scipy.sparse.csr_matrix
        One row per node, then one per (edge, end, state); a column per variable.
    b : ndarray of shape (rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.lp import local_rows
    >>> A, b = local_rows(np.array([2, 2]), np.array([[0, 1]]))
    >>> A.toarray().astype(int).tolist()[2], b.tolist()
    ([-1, 0, 0, 0, 1, 1, 0, 0], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    """
    from scipy import sparse  # heavy

    states, ends = np.asarray(states, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    n, m, shapes = len(states), len(ends), states[ends].reshape(-1, 2)
    unary_start = np.concatenate([[0], np.cumsum(states)])
    pair_start = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])
    U, P = int(unary_start[-1]), int(pair_start[-1])
    edge_of = np.repeat(np.arange(m), shapes.prod(axis=1))
    within = np.arange(P) - pair_start[:-1][edge_of]
    s, t = np.divmod(within, shapes[edge_of, 1] if m else 1)
    first = n + np.concatenate([[0], np.cumsum(shapes.sum(axis=1))])
    row_s = first[edge_of] + s
    row_t = first[edge_of] + (shapes[edge_of, 0] if m else 0) + t
    # Each (edge, end, state) row has one node variable.
    end_of = np.repeat(ends.ravel(), shapes.ravel())
    starts = np.cumsum(shapes.ravel()) - shapes.ravel()
    state = np.arange(len(end_of)) - np.repeat(starts, shapes.ravel())
    pair = U + np.arange(P)
    rows = [np.repeat(np.arange(n), states), row_s, row_t, n + np.arange(len(end_of))]
    columns = [np.arange(U), pair, pair, unary_start[end_of] + state]
    values = np.concatenate([np.ones(U + 2 * P), -np.ones(len(end_of))])
    shape = (n + len(end_of), U + P)
    A = sparse.csr_matrix((values, (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    return A, np.concatenate([np.ones(n), np.zeros(len(end_of))])


def label_parts(layout: Any, n: int, m: int, single: dict[str, Any]) -> np.ndarray:
    """Return the parts of all states and pairs of states of a graph whose nodes have K classes.

    Parameters
    ----------
    layout : WeightLayout
        Has a node block of shape (K,), and perhaps a shared block "transition" and an edge block of
        shape (K, K).
    n, m : int
        Nodes and edges.
    single : dict of str to array of int
        Shared blocks of shape (K,), if any, and the nodes that they score.

    Returns
    -------
    ndarray of int of shape (n K + m K K, p)
        :attr:`Polytope.parts` of the variables of :func:`local_rows`.
    """
    K, stride = layout.node.shape[0], layout.node.stride
    states, table = np.arange(K), stride * np.arange(K)[:, None] + np.arange(K)
    width = max(2, 1 + len(single))
    nodes, edges = np.full((n, K, width), -1), np.full((m, K, K, width), -1)
    nodes[..., 0] = layout.shared_size + layout.node_size * np.arange(n)[:, None] + states
    for column, (name, scored) in enumerate(single.items(), 1):
        if name in layout.starts:
            nodes[scored, :, column] = layout.starts[name] + states
    if "transition" in layout.starts:
        edges[..., 0] = layout.starts["transition"] + table
    if layout.edge is not None:
        first = layout.shared_size + n * layout.node_size
        edges[..., 1] = (first + layout.edge_size * np.arange(m))[:, None, None] + table
    return np.concatenate([nodes.reshape(-1, width), edges.reshape(-1, width)])


class LocalPolytopes(Polytopes):
    """Polytopes of labelings of graphs; subclasses give the graphs, and offsets of parts.

    Parameters
    ----------
    exact : bool
        All graphs are forests.
    """

    def __init__(self, exact: bool):
        self.exact = exact
        self.note = (
            "exact: the local polytope of a forest has no other vertices than labelings"
            if exact
            else "relaxed: on a cycle, vertices of the local polytope may be fractional"
        )

    def graph(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the graph of an example.

        Parameters
        ----------
        i : int

        Returns
        -------
        states, ends : ndarray of int
            Arguments of :func:`local_rows`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement graph()")

    def parts(self, i: int) -> np.ndarray:
        """Return the index in theta of each variable's score.

        Parameters
        ----------
        i : int

        Returns
        -------
        ndarray of int64
            :attr:`Polytope.parts`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement parts()")

    def build(self, i: int) -> Polytope:
        """Return the local polytope of an example's graph."""
        states, ends = self.graph(i)
        A, b = local_rows(states, ends)
        bounds = np.concatenate([[0], np.cumsum(states)])

        def decode(x: np.ndarray) -> np.ndarray:
            rows = (x[a:b].argmax() for a, b in zip(bounds[:-1], bounds[1:]))
            return np.fromiter(rows, dtype=np.int32, count=len(states))

        return Polytope(A, b, b, self.parts(i), decode)
