"""Trees and forests as users give them, checked: every node's parent, parents before children."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.given import is_sparse
from structsolve.examples.packed import Examples
from structsolve.plugins.mrf.tables.graphs import check_edges
from structsolve.plugins.mrf.tables.networks import from_networkx, is_network, name_nodes
from structsolve.utils.suggest import a_type

FORMS = "(node_features, tree) or (node_features, tree, edge_features), or a networkx graph"


def root_tree(edges: Any, n_nodes: int, roots: Any = ()) -> np.ndarray:
    """Return the parents of a forest whose edges have no direction.

    Parameters
    ----------
    edges : array of int of shape (m, 2)
        The nodes that each edge joins.
    n_nodes : int
    roots : sequence of int, optional
        At most one node of each tree; by default a tree's first node.

    Returns
    -------
    ndarray of int32 of shape (n_nodes,)
        The parent of every node, -1 at roots.

    Raises
    ------
    ValueError
        If the edges close a cycle, or two roots are in one tree.

    Examples
    --------
    >>> from structsolve.plugins.tree import root_tree
    >>> root_tree([[0, 1], [2, 1], [3, 4]], 5, roots=[1]).tolist()
    [1, -1, 1, -1, 3]
    """
    return _root_tree(check_edges(edges, n_nodes, "edges"), n_nodes, roots, "edges")


def _root_tree(pairs: np.ndarray, n_nodes: int, roots: Any, where: str) -> np.ndarray:
    from scipy import sparse  # heavy
    from scipy.sparse import csgraph

    one = np.ones(len(pairs), dtype=np.int8)
    graph = sparse.csr_matrix((one, (pairs[:, 0], pairs[:, 1])), shape=(n_nodes, n_nodes))
    n_trees, tree = csgraph.connected_components(graph, directed=False)
    if len(pairs) != n_nodes - n_trees:
        import networkx  # heavy

        cycle = [u for u, _ in networkx.find_cycle(networkx.Graph(pairs.tolist()))]
        raise ValueError(
            f"{where}: the edges close a cycle of {len(cycle)} nodes ({cycle[:12]}), expected a "
            "tree or a forest; graphs with cycles are for structure 'mrf'"
        )
    top = np.unique(tree, return_index=True)[1]
    given = np.asarray(roots, dtype=np.int64).reshape(-1)
    if given.size:
        if given.min() < 0 or given.max() >= n_nodes:
            raise ValueError(f"roots: found {given.tolist()}, expected nodes 0 to {n_nodes - 1}")
        if len(np.unique(tree[given])) < len(given):
            raise ValueError(
                f"roots: two of {given.tolist()} are in one tree, expected at most one of each"
            )
        top[tree[given]] = given
    # One search for all trees, from a node above their roots.
    ends = np.concatenate([pairs, np.column_stack([np.full(n_trees, n_nodes), top])])
    above = sparse.csr_matrix(
        (np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])),
        shape=(n_nodes + 1, n_nodes + 1),
    )
    parents = csgraph.breadth_first_order(above, n_nodes, directed=False)[1][:n_nodes]
    return np.where(parents == n_nodes, -1, parents).astype(np.int32)


def _check_parents(tree: Any, n_nodes: int, where: str) -> np.ndarray:
    """Return parents as int32 of shape (n_nodes,), not checked for cycles."""
    parents = np.asarray(tree)
    if parents.dtype.kind == "f" and np.isfinite(parents).all() and (parents % 1 == 0).all():
        parents = parents.astype(np.int64)
    if parents.ndim != 1 or parents.dtype.kind not in "iu":
        raise ValueError(
            f"{where}: found an array of {parents.dtype}, shape {parents.shape}, expected the "
            "parent of every node (integers, -1 at roots), or edges (parent, child) of shape "
            "(edges, 2)"
        )
    if len(parents) != n_nodes:
        raise ValueError(
            f"{where}: found {len(parents)} parents for {n_nodes} nodes, expected one per node, "
            "-1 at roots"
        )
    beyond = np.flatnonzero((parents < -1) | (parents >= n_nodes))
    if beyond.size:
        v = int(beyond[0])
        raise ValueError(
            f"{where}: node {v} has the parent {parents[v]}, expected -1 (a root) or a node from 0 "
            f"to {n_nodes - 1}"
        )
    return parents.astype(np.int32)


def _parents_of_edges(edges: np.ndarray, n_nodes: int, where: str) -> np.ndarray:
    """Return the parents of all nodes from checked edges (parent, child)."""
    parents = np.full(n_nodes, -1, dtype=np.int32)
    parents[edges[:, 1]] = edges[:, 0]
    twice = np.flatnonzero(np.bincount(edges[:, 1], minlength=n_nodes) > 1)
    if twice.size:
        v = int(twice[0])
        first, second = np.flatnonzero(edges[:, 1] == v)[:2].tolist()
        raise ValueError(
            f"{where}: node {v} has two parents, {edges[first, 0]} (edge {first}) and "
            f"{edges[second, 0]} (edge {second}); expected pairs (parent, child); "
            "structsolve.plugins.tree.root_tree() directs edges that have no direction"
        )
    return parents


def _one_tree(x: Any, i: int, structure: Any) -> dict[str, Any]:
    """Return node features, the tree's description, and edge features or None, of one example."""
    if is_network(x):
        given = structure.edge_features
        names = {given} if isinstance(given, str) else set(given)
        with_features = any(names & data.keys() for *_, data in x.edges(data=True))
        return {**from_networkx(x, i, structure, with_features), "directed": x.is_directed()}
    if not isinstance(x, (tuple, list)) or len(x) not in (2, 3):
        given = f"{len(x)} of them" if isinstance(x, (tuple, list)) else type(x).__name__
        raise ValueError(f"X, example {i}: found {given}, expected {FORMS}")
    return {
        "node_features": x[0],
        "edges": x[1],
        "directed": True,
        "edge_features": x[2] if len(x) == 3 else None,
    }


def _parents(tree: dict[str, Any], n_nodes: int, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the parent of every node, and the lower node of every edge, in the given order."""
    given = tree["edges"]
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"X, example {i}, tree: not an array ({error})") from None
    if array.ndim == 1 and array.size:
        parents = _check_parents(array, n_nodes, f"X, example {i}, tree")
        return parents, np.flatnonzero(parents >= 0)
    where = f"X, example {i}, edges"
    edges = check_edges(array, n_nodes, where)
    if tree["directed"]:
        return _parents_of_edges(edges, n_nodes, where), edges[:, 1]
    parents = _root_tree(edges, n_nodes, (), where)
    down = parents[edges[:, 1]] == edges[:, 0]
    return parents, np.where(down, edges[:, 1], edges[:, 0])


def stack_trees(
    X: Any, structure: Any, n_features: int | None = None, n_edge_features: int | None = None
) -> Examples:
    """Stack trees with their features into packed examples.

    Parameters
    ----------
    X : list of trees
        See :class:`~structsolve.plugins.tree.TreeStructure`.
    structure : TreeStructure
    n_features, n_edge_features : int, optional
        Expected numbers of columns, if known; no ``n_edge_features`` then means that edges have no
        features.

    Returns
    -------
    Examples
        With ``topology["parents"]``, and ``topology["order"]`` (parents before their children)
        unless the nodes are already in such an order; edges are in the order of their lower
        nodes.

    Raises
    ------
    ValueError
        For graphs that are not forests, and for feature rows that do not fit them or the training
        data.
    """
    from structsolve.plugins.tree._shape import order_nodes  # compiled: not to list structures

    if not isinstance(X, (list, tuple)) or len(X) == 0:
        given = "empty" if isinstance(X, (list, tuple)) else a_type(X)
        raise ValueError(f"X is {given}, expected a list with {FORMS} of each example; one: [x]")
    trees = [_one_tree(x, i, structure) for i, x in enumerate(X)]
    nodes, offsets = packing.stack_rows(
        [t["node_features"] for t in trees], n_features, compress=True
    )
    sizes = np.diff(offsets).tolist()
    rooted = [_parents(tree, sizes[i], i) for i, tree in enumerate(trees)]
    examples = Examples(offsets, nodes)
    name_nodes(examples, [tree.get("names") for tree in trees])
    parents = np.concatenate([p for p, _ in rooted])
    examples.topology["parents"] = parents
    order = order_nodes(parents, offsets)
    if order is not None:
        examples.topology["order"] = order
    bounds = np.zeros(len(offsets), dtype=np.int64)
    np.cumsum([len(children) for _, children in rooted], out=bounds[1:])
    examples.edge_offsets = bounds
    # The digest of training data covers features and labels; this adds the trees.
    digest = hashlib.sha256(parents.tobytes() + offsets.tobytes())
    examples.topology["identity"] = digest.hexdigest()
    have = [tree.get("edge_features") is not None for tree in trees]
    wanted = any(have) if n_features is None else n_edge_features is not None
    if not wanted and any(have):
        raise ValueError(
            f"X, example {have.index(True)}: found edge features, but the model was trained "
            "without them"
        )
    if wanted:
        rows = [
            _edge_rows(tree, children, i, n_edge_features, trees)
            for i, (tree, (_, children)) in enumerate(zip(trees, rooted))
        ]
        examples.edges, _ = packing.stack_rows(
            rows, n_edge_features, "edge features", min_rows=0, compress=True
        )
    return examples


def _edge_rows(
    tree: dict[str, Any], children: np.ndarray, i: int, n_columns: int | None, trees: Any
) -> Any:
    """Return edge features in the order of the edges' lower nodes."""
    rows: Any = tree.get("edge_features")
    size = 0 if rows is None else rows.shape[0] if is_sparse(rows) else len(rows)
    if size != len(children):
        given = "no edge features" if rows is None else f"{size} rows of edge features"
        raise ValueError(
            f"X, example {i}: {given} for {len(children)} edges; expected one row per edge, as in "
            "the other examples"
        )
    if size == 0:
        # An empty list has no columns: the other examples give the number.
        if n_columns is None:
            shapes = [
                np.shape(t["edge_features"]) for t in trees if t.get("edge_features") is not None
            ]
            n_columns = next((s[1] for s in shapes if len(s) == 2), 1)
        return np.zeros((0, n_columns))
    if (np.diff(children) > 0).all():
        return rows
    rows = rows.tocsr() if is_sparse(rows) else np.asarray(rows)
    return rows[np.argsort(children)]
