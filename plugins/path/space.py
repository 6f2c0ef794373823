"""Paths from a source to a sink: one score per node, and one per edge if edges have features."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.part_layout import PartLayout
from structsolve.plugins.mrf.tables.graphs import check_edges
from structsolve.plugins.path.graphs import grid_steps, stack_paths, stack_topology
from structsolve.plugins.path.labels import Graph, encode_paths
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure
from structsolve.utils.params import check_choice, parameters


@parameters
class PathStructure(Structure):
    """Paths from a source to a sink, through grids of cells or through graphs.

    Parameters
    ----------
    neighbours : {4, 8}, default=8
        Steps on grids: to the cells beside a cell, or to those at its corners too.
    monotone : bool, default=False
        On grids only steps to the right, down, and (8 neighbours) both at once: these grids have no
        cycles.
    node_features, edge_features : str or list of str, default="features"
        Attributes of networkx graphs that hold features: numbers or vectors.

    Notes
    -----
    X is a list with one example each:

    * a grid, an array of shape (height, width, features), or (height, width); from its first cell
      to its last, or a dict with it as ``"cells"`` and ``"source"`` and ``"sink"``, pairs of row
      and column;
    * a dict with ``"edges"``, an array of shape (m, 2) of pairs (from, to), and if wanted
      ``"node_features"``, ``"edge_features"``, ``"source"`` and ``"sink"`` (by default the first
      and the last node);
    * a networkx graph, whose ``graph["source"]`` and ``graph["sink"]`` name two nodes; an edge of
      an undirected graph leads both ways.

    Y is a list of paths: lists of nodes in order (cells are pairs of row and column); predictions
    are such lists.  Also accepted are, for each example, an array of bool with one entry per edge,
    and for a grid an array of shape (height, width) that is not 0 at the path's cells.

    A score is a negative cost: the path of largest score is the path of least cost.  Every node of
    the path counts, both ends too.

    Graphs without cycles (of edges that lie between source and sink) have everything, for scores of
    any sign, in time linear in the edges: k best, marginals, samples, linear programs.  In other
    graphs the best path is found if no cycle has a negative cost.  Else negative costs count as 0
    in the search, and its bound allows for them, so training ends with a larger gap;
    ``predict_kbest`` refuses.  There are no sums over paths.  Costs stay at least 0 with features
    of at least 0, ``fit_intercept=False``, ``loss="missed"``, and
    ``CuttingPlane(constraints=[WeightBounds("node", upper=0.0)])`` as solver.

    Losses: "hamming" (nodes on only one of both paths), "edge-hamming" (the same of edges, if these
    have features), "missed" (nodes of the true path that the other one misses), "regret" (the cost
    beyond that of the true path, of examples that are dicts with ``"costs"`` of their nodes, whose
    path of least cost y must be), "zero-one".

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.path import PathStructure
    >>> wet = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    >>> dry = [(0, 0), (1, 0), (2, 1), (2, 2)]
    >>> model = StructuredSVM(PathStructure(monotone=True), alpha=0.01).fit([wet], [dry])
    >>> model.predict([wet.T])
    [[(0, 0), (0, 1), (1, 2), (2, 2)]]
    """

    name = "path"
    layouts = {"neighbours": (8, 4)}

    neighbours: int = 8
    monotone: bool = False
    node_features: Any = "features"
    edge_features: Any = "features"

    def check_params(self) -> None:
        """Refuse parameters that do not fit."""
        check_choice("neighbours", self.neighbours, (4, 8))
        if not isinstance(self.monotone, (bool, np.bool_)):
            raise ValueError(f"monotone is {self.monotone!r}, expected True or False")

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[PathSpace, Examples]:
        """Learn the space from training data, and pack these.

        See :meth:`structsolve.Structure.make_space`. ``classes`` has to be None: paths have none.
        """
        self.check_params()
        if classes is not None:
            raise ValueError("classes: paths have none")
        examples = stack_paths(X, self)
        n_edge = None if examples.edges is None else examples.edges.shape[1]
        costs = "costs" in examples.topology
        space = PathSpace(self, examples.nodes.shape[1], n_edge, fit_intercept, costs)
        return space, space.label(examples, Y)

    def score_space(self, classes: Any = None, edge: bool = False) -> PathSpace:
        """Return a space without features; see :meth:`structsolve.Structure.score_space`."""
        self.check_params()
        if classes is not None:
            raise ValueError("classes: paths have none")
        return PathSpace(self, 0, 0 if edge else None, False, False)

    def space_from_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> PathSpace:
        """Rebuild a space from what its ``state()`` returned."""
        names = "n_features", "n_edge_features", "intercept", "costs"
        return PathSpace(self, *(state[name] for name in names))

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return n small random graphs without cycles, with a path of each."""
        rng = np.random.default_rng(random_state)
        X: list[Any] = []
        for _ in range(n):
            V = int(rng.integers(2, size + 3))
            place = rng.permutation(V)
            pairs = [(u, v) for u in range(V) for v in range(u + 1, V)]
            kept = [p for p in pairs if rng.random() < 0.6 or p == (0, V - 1)]
            edges = place[np.array(kept)]
            edges = edges[rng.permutation(len(edges))]
            x = {"edges": edges, "node_features": rng.integers(-2, 3, (V, 2)).astype(float)}
            x["edge_features"] = rng.integers(-2, 3, (len(edges), 1)).astype(float)
            X.append({**x, "source": int(place[0]), "sink": int(place[-1])})
        examples = stack_paths(X, self)
        graphs = [Graph(examples, i) for i in range(n)]
        return X, [graph.nodes(_draw_path(graph, rng)) for graph in graphs]


def _draw_path(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """Return an encoded path of a graph without cycles; every one may come."""
    leads = np.zeros(graph.size, dtype=bool)  # to the sink
    leads[graph.sink] = True
    for _ in range(graph.size):
        leads[graph.tails[leads[graph.heads]]] = True
    label, v = np.zeros(graph.size, dtype=np.int32), graph.source
    while v != graph.sink:
        e = int(rng.choice(np.flatnonzero((graph.tails == v) & leads[graph.heads])))
        label[v], v = e + 1, int(graph.heads[e])
    return label


def all_paths(examples: Examples, i: int) -> np.ndarray:
    """Return every simple path of a small graph, encoded.

    Parameters
    ----------
    examples : Examples
    i : int

    Returns
    -------
    ndarray of int32 of shape (paths, nodes)
    """
    graph, labels = Graph(examples, i), []

    def walk(v: int, label: np.ndarray) -> None:
        if v == graph.sink:
            labels.append(label)
            return
        for e in np.flatnonzero(graph.tails == v):
            u = int(graph.heads[e])
            if label[u] == 0 and u != v:
                more = label.copy()
                more[v] = e + 1
                walk(u, more)

    walk(graph.source, np.zeros(graph.size, dtype=np.int32))
    return np.array(labels, dtype=np.int32).reshape(-1, graph.size)


class PathSpace(Space):
    """Blocks "node" and, if edges have features, "edge", of one score each.

    Parameters
    ----------
    structure : PathStructure
    n_features : int
    n_edge_features : int or None
        None if edges have no scores.
    intercept : bool
    costs : bool
        Training examples have costs of their nodes, for the loss "regret".
    """

    structure: PathStructure

    def __init__(
        self,
        structure: PathStructure,
        n_features: int,
        n_edge_features: int | None,
        intercept: bool,
        costs: bool,
    ):
        blocks = [Block("node", "node", (1,), ("score",))]
        if n_edge_features is not None:
            blocks.append(Block("edge", "edge", (1,), ("score",)))
        layout = WeightLayout(blocks, n_features, n_edge_features or 0, intercept)
        super().__init__(structure, layout)
        self.n_edge_features, self.costs = n_edge_features, costs

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        state, arrays = super().state()
        return {**state, "n_edge_features": self.n_edge_features, "costs": self.costs}, arrays

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Check and stack graphs and paths; see :meth:`structsolve.Space.pack`."""
        layout = self.layout
        examples = stack_paths(X, self.structure, layout.n_features, self.n_edge_features)
        return examples if Y is None else self.label(examples, Y)

    def label(self, examples: Examples, Y: Any) -> Examples:
        """Return packed examples with labels.

        Parameters
        ----------
        examples : Examples
        Y : labels as users give them

        Returns
        -------
        Examples
            ``examples`` itself, changed.
        """
        PartLayout(self.layout, examples).common(*self._graphs())  # an error if no way leads on
        examples.labels = encode_paths(Y, examples)
        return examples

    def encode(self, Y: Any, examples: Examples) -> np.ndarray:
        """Return encoded labels, for layers of networks.

        Parameters
        ----------
        Y : list of paths
            As users give them.
        examples : Examples
            A result of :meth:`pack_sizes`.

        Returns
        -------
        ndarray of int32 of shape (number of nodes,)
            For each node of a path 1 and the number of the edge that leaves it, else 0.
        """
        return encode_paths(Y, examples)

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return grids, or graphs, of given sizes, without features.

        See :meth:`structsolve.Space.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of (int, int), or of int
            Height and width of each grid; numbers of nodes, where there are ``edges``.
        **topology
            ``edges``: the edges of each example, as in X.  ``ends``: source and sink of each
            example, numbers of nodes; by default the first and the last.

        Returns
        -------
        Examples
        """
        packing.no_topology({*topology} - {"edges", "ends"})
        edges = topology.get("edges")
        if edges is None:
            shapes = packing.size_pairs(sizes, "height and width")
            graphs = [self._grid(*shape) for shape in shapes.tolist()]
        else:
            counts = np.diff(packing.size_offsets(sizes)).tolist()
            if not hasattr(edges, "__len__") or len(edges) != len(counts):
                raise ValueError(f"edges: expected those of each of {len(counts)} graphs")
            pairs = [
                check_edges(one, n, f"edges, example {i}", parallel=True)
                for i, (one, n) in enumerate(zip(edges, counts))
            ]
            graphs = [
                {"shape": None, "size": n, "tails": one[:, 0], "heads": one[:, 1]}
                for one, n in zip(pairs, counts)
            ]
        ends = topology.get("ends")
        if ends is None:
            ends = [(0, graph["size"] - 1) for graph in graphs]
        ends = np.asarray(ends)
        if ends.shape != (len(graphs), 2) or ends.dtype.kind not in "iu":
            raise ValueError(
                f"ends: found {ends.dtype} of shape {ends.shape}, expected integers "
                f"({len(graphs)}, 2): source and sink of each example"
            )
        for graph, (source, sink) in zip(graphs, ends.tolist()):
            graph.update(source=source, sink=sink)
        examples = stack_topology(graphs)
        PartLayout(self.layout, examples).common(*self._graphs())
        return examples

    def _grid(self, height: int, width: int) -> dict[str, Any]:
        structure = self.structure
        tails, heads = grid_steps(height, width, structure.neighbours, bool(structure.monotone))
        return {"shape": (height, width), "size": height * width, "tails": tails, "heads": heads}

    @staticmethod
    def _graphs() -> tuple[Any, Any]:
        from structsolve.plugins.path._shape import PathShape  # compiled: not to list structures

        return PathShape, PathShape

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse labels that are no paths."""
        PartLayout(self.layout, examples).common(*self._graphs()).check(flat)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> list[Any]:
        """Return one path as the list of its nodes."""
        graph = Graph(examples, i)
        return [graph.name(v) for v in graph.nodes(label)]

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> list[np.ndarray]:
        """Return scores or marginals of nodes, in the shape of grids."""
        flat = np.asarray(flat).reshape(-1)
        pieces = np.split(flat, examples.offsets[1:-1])
        shapes = examples.topology["shapes"]
        return [p.reshape(shape) if shape[0] else p for p, shape in zip(pieces, shapes)]

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every label of a small example."""
        return all_paths(examples, i)
