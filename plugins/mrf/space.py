"""Labelings of graphs: one state per node, tables of scores for pairs of neighbouring states."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.packed import Examples
from structsolve.plugins.mrf.decoders import check_name
from structsolve.plugins.mrf.graph_operators import NO_POWERS, common_graphs, unpacked_oracle
from structsolve.plugins.mrf.node_labels import NodeLabels, read_labels, refuse_all_void, void_names
from structsolve.plugins.mrf.tables.graphs import (
    check_edges,
    check_states,
    drop_nodes,
    every_labeling,
    refuse_states,
    stack_graphs,
    state_names,
)
from structsolve.plugins.mrf.tables.networks import by_node, by_node_one, check_attributes, in_order
from structsolve.plugins.mrf.tables.unread import unread_pairs
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Structure, inherits
from structsolve.structure.node_space import NodeSpace
from structsolve.structure.weighted_labels import weigh_nodes
from structsolve.utils.params import check_choice, check_count, parameters

TABLES = ("shared", "per-edge", "features")


def check_decoding(structure: Any) -> None:
    """Refuse parameters of decoding and of labels that a structure of graphs cannot have.

    Parameters
    ----------
    structure : Structure
        With ``oracle``, ``predict_oracle``, ``max_iter`` and ``void``.

    Raises
    ------
    ValueError
    """
    check_count("max_iter", structure.max_iter)
    check_name(structure.oracle)
    if structure.predict_oracle is not None:
        check_name(structure.predict_oracle, "predict_oracle")
    void_names(structure.void)


def needs_features(edge: bool, structure: Any, advice: str) -> None:
    """Refuse scores of single edges, if all edges have the same table.

    Parameters
    ----------
    edge : bool
        See ``score_space()``.
    structure : Structure
        With ``tables``.
    advice : str
        The parameter that makes tables differ.

    Raises
    ------
    ValueError
    """
    if edge and structure.tables != "features":
        raise ValueError(
            f"edge is True, but tables of structure {structure.name!r} do not differ from edge to "
            f"edge; give it {advice}"
        )


@parameters
class MRFStructure(Structure):
    """Labelings of graphs: a Markov random field with scores of nodes and of edges.

    Parameters
    ----------
    edges : array of int of shape (m, 2), optional
        The graph of all examples.  By default each example has a graph in X.
    tables : {"shared", "per-edge", "features"}, default="shared"
        Scores of the states at both ends of an edge: one table of weights for all edges; a table
        for each edge of the one graph; or tables that are linear in the features of the edge.
    directed : bool, default=False
        Edge (u, v) has another table than (v, u): its first axis is u's state.  If False, the
        weight of states a and b is also the weight of b and a (``coef_["pair"]`` holds it where
        a <= b); the tables of "per-edge" belong to the edges as given.
    n_states : int or sequence of int, optional
        Number of states, of all nodes or of each node of the one graph; labels are then integers
        from 0.  By default the labels are the classes of the training data, for every node.
    oracle : str, default="auto"
        Decoder.  "exact": always the best labeling (forests by dynamic programming, small graphs by
        enumeration, narrow ones by elimination, others by best-first search or as integer
        programs).  "mincut": super-modular tables (:class:`~structsolve.solvers.SuperModular`), the
        best labeling by one minimum cut; it refuses others.  "roof-duality": two states, the
        linear relaxation by one maximum flow; "trws": any number of states, dual block-coordinate
        ascent; "expansion": the same, then alpha-expansions; "lp": the linear relaxation by HiGHS;
        "cvxpy:SOLVER": the same by another solver.  These five round, search locally, and report
        a bound of their error.  "auto": "exact" where that is cheap; else "mincut" where
        tables of at most 4 states are super-modular; else "roof-duality" or "expansion".
    predict_oracle : str, optional
        The oracle for prediction; by default ``oracle``.
    max_iter : int, default=100
        Maximum number of iterations of TRW-S, for "trws", "expansion" and "auto".
    void : label or list of labels, optional
        Labels of nodes to ignore: training leaves these nodes and their edges out,
        scores ignore them, and predictions label them like any other node.  A list may hold None
        and NaN.  By default no label is void, and -1 beside other labels is refused, as it often
        marks void nodes; ``()`` accepts it as a class.

    node_features, edge_features : str or list of str, default="features"
        Attributes of networkx graphs that hold features: numbers or vectors.  Several
        attributes are concatenated.
    node_labels : str, default="label"
        Attribute that holds the labels of nodes, if y is a list of networkx graphs.

    Notes
    -----
    X is a list with one graph per example: a pair ``(node_features, edges)``; a triple with
    ``edge_features`` of shape (edges, n_edge_features) for ``tables="features"``; or a networkx
    graph, with nodes in the order of ``graph.nodes`` and edges in that of ``graph.edges``.  Its
    labels may be dicts by node, or the graph itself (``node_labels``), and predictions are dicts.
    Several edges may join the same nodes: their scores add up.  With ``edges=``, X is a list
    of node features (or an array of shape (n, nodes, n_features)), or of pairs ``(node_features,
    edge_features)``.  Y is a list of label sequences, strings or integers, one label per node;
    entries may be :class:`~structsolve.WeightedLabels`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.mrf import MRFStructure
    >>> square = [[0, 1], [1, 2], [2, 3], [3, 0]]
    >>> X = [np.array([[1.0], [0.5], [-0.1], [0.2]]), np.array([[-1.0], [-0.5], [0.1], [-0.2]])]
    >>> Y = [["on"] * 4, ["off"] * 4]
    >>> model = StructuredSVM(MRFStructure(edges=square), alpha=0.01).fit(X, Y)
    >>> [y.tolist() for y in model.predict(X)]
    [['on', 'on', 'on', 'on'], ['off', 'off', 'off', 'off']]
    """

    name = "mrf"

    #: What :meth:`solve_instance` solves without training, for the shell.
    instances = ("graph",)
    layouts = {
        "edges": (None, [[0, 1], [1, 2], [2, 0], [3, 2]]),
        "tables": TABLES,
        "directed": (False, True),
    }

    edges: Any = None
    tables: str = "shared"
    directed: bool = False
    _: KW_ONLY
    n_states: Any = None
    oracle: str = "auto"
    predict_oracle: Any = None
    max_iter: int = 100
    void: Any = None
    node_features: Any = "features"
    edge_features: Any = "features"
    node_labels: str = "label"

    @staticmethod
    def solve_instance(
        unary: Any,
        edges: Any,
        pair: Any,
        *,
        weights: Any = None,
        oracle: str = "auto",
        max_iter: int = 100,
        time_limit: float | None = None,
    ) -> tuple[Any, float, float]:
        """Find the best labels of one graph with scores, for the shell.

        Parameters
        ----------
        unary : array of shape (nodes, K), or list of arrays
        edges : array of int of shape (m, 2)
        pair : array of shape (K, K) or (m, K, K), or list of arrays
        weights : array of shape (m,), optional
        oracle : str, default="auto"
        max_iter : int, default=100
        time_limit : float, optional
            See :func:`~structsolve.plugins.mrf.decode`.

        Returns
        -------
        labels : ndarray of int of shape (nodes,)
        value, bound : float
        """
        from structsolve.plugins.mrf.decode import decode  # compiled, and it imports this file

        best = decode(
            unary, edges, pair, False, oracle, max_iter, weights=weights, time_limit=time_limit
        )
        return best.label, float(best.value), float(best.bound)

    def check_params(self) -> None:
        """Refuse parameters that do not fit."""
        check_choice("tables", self.tables, TABLES)
        if self.tables == "per-edge" and self.edges is None:
            raise ValueError(
                "tables is 'per-edge', which needs one graph for all examples: give edges="
            )
        if self.tables == "per-edge" and void_names(self.void):
            raise ValueError(
                f"void is {self.void!r}, which takes edges out of graphs, and tables='per-edge' "
                "counts them: use tables 'shared' or 'features'"
            )
        check_decoding(self)
        check_attributes(self)

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[MRFSpace, Examples]:
        """Learn the space from training data, and pack these.

        See :meth:`structsolve.Structure.make_space`.
        """
        self.check_params()
        one = self.edges is not None
        examples = stack_graphs(X, one, self.tables == "features", structure=self)
        Y = in_order(Y, examples, self.node_labels)
        edges = None
        if self.edges is not None:
            edges = check_edges(self.edges, int(examples.offsets[1]), "edges", parallel=True)
        states = check_states(self.n_states, None if edges is None else int(examples.offsets[1]))
        given = read_labels(Y, examples.offsets, self.void, classes)
        if states is None:
            names = labels.learn_classes(given.flat, classes)
        else:
            names = state_names(states, classes)
        n_edge = examples.edges.shape[1] if self.tables == "features" else 0
        n_nodes = None if edges is None else int(examples.offsets[1])
        columns = examples.nodes.shape[1], n_edge, fit_intercept
        space = MRFSpace(self, names, edges, states, n_nodes, columns)
        return space, space.label(examples, given)

    def score_space(self, classes: Any = None, edge: bool = False) -> MRFSpace:
        """Return a space without features; see :meth:`structsolve.Structure.score_space`.

        Parameters
        ----------
        classes : int or sequence, optional
            The number of states, or their sorted names; not needed with
            ``n_states``.
        edge : bool
            Each edge has a separate table of scores: for ``tables="features"``.

        Raises
        ------
        ValueError
            If parameters and arguments do not match.
        """
        self.check_params()
        needs_features(edge, self, "tables='features'")
        listed = np.ndim(self.n_states) == 1
        n_nodes = len(self.n_states) if listed else None
        edges = None
        if self.edges is not None:
            most = int(np.max(self.edges, initial=-1)) + 1 if n_nodes is None else n_nodes
            edges = check_edges(self.edges, most, "edges", parallel=True)
        states = check_states(self.n_states, n_nodes)
        if states is None or classes is not None:
            names = classes = labels.class_names(classes, self.name)
        if states is not None:
            names = state_names(states, classes)
        return MRFSpace(self, names, edges, states, n_nodes, (0, 0, False))

    def space_from_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> MRFSpace:
        """Rebuild a space from what its ``state()`` returned."""
        return MRFSpace(
            self,
            arrays["classes"],
            arrays.get("edges"),
            arrays.get("states"),
            state["n_nodes"],
            (state["n_features"], state["n_edge_features"], state["intercept"]),
        )

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return n small random examples that fit the parameters."""
        self.check_params()
        if self.edges is None:
            check_states(self.n_states, None)
        rng = np.random.default_rng(random_state)
        one = None if self.edges is None else np.asarray(self.edges).reshape(-1, 2)
        states = np.asarray(3 if self.n_states is None else self.n_states)
        if self.oracle == "roof-duality":
            states = np.minimum(states, 2)
        X: list[Any] = []
        Y = []
        for _ in range(n):
            if one is not None:
                V = states.size if states.ndim else int(one.max(initial=0)) + 1
                edges = one
            else:
                V = int(rng.integers(1, size + 2))
                edges = np.argwhere(np.triu(rng.random((V, V)) < 0.7, 1))
            nodes = rng.integers(-2, 3, (V, 2)).astype(float)
            parts = [nodes] if one is not None else [nodes, edges]
            if self.tables == "features":
                parts.append(rng.integers(-2, 3, (len(edges), 2)).astype(float))
            X.append(nodes if len(parts) == 1 else tuple(parts))
            Y.append(rng.integers(0, np.broadcast_to(states, V)))
        return X, Y


class GraphLabelings(NodeSpace):
    """States of the nodes of graphs: the base of :class:`MRFSpace` and structsolve.plugins.grid.

    Parameters and attributes are those of :class:`MRFSpace`.
    """

    no_powers = NO_POWERS
    #: Name of the nodes in messages.
    nodes_name = "nodes"

    def __init__(
        self,
        structure: Any,
        classes: np.ndarray,
        edges: np.ndarray | None,
        states: np.ndarray | None,
        n_nodes: int | None,
        columns: tuple[int, int, bool],
    ):
        K = len(classes)
        axes = ("class", "class")
        blocks = [Block("node", "node", (K,), ("class",))]
        if structure.tables == "shared":
            same = not structure.directed
            unread = unread_pairs(edges, states, K, same)
            blocks.insert(0, Block("pair", "shared", (K, K), axes, same, unread))
        elif structure.tables == "features":
            same = not structure.directed
            unread = unread_pairs(edges, states, K, same)
            blocks.append(Block("pair", "edge", (K, K), axes, same, unread))
        elif edges is not None and len(edges):
            shape = (len(edges), K, K)
            unread = None if states is None else unread_pairs(edges, states, K, each=True)
            blocks.insert(0, Block("pair", "shared", shape, ("edge", *axes), unread=unread))
        # Features of nodes and of edges, and the intercept.
        super().__init__(structure, WeightLayout(blocks, *columns), classes)
        self.edges_, self.states_, self.n_nodes = edges, states, n_nodes

    @property
    def free_nodes(self) -> bool:
        """Whether every node may take all of ``classes_``."""
        own = inherits(self, GraphLabelings, "enumerate_labels", "contains")
        return own and (self.states_ is None or bool((self.states_ == len(self.classes_)).all()))

    def stack(self, X: Any) -> Examples:
        """Return packed examples without labels."""
        return stack_graphs(
            X,
            self.edges_ is not None,
            self.structure.tables == "features",
            n_features=self.layout.n_features,
            n_edge_features=self.layout.n_edge_features,
            edges=self.edges_,
            n_nodes=self.n_nodes,
            structure=self.structure,
        )

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return graphs of given numbers of nodes, without features.

        See :meth:`structsolve.Space.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of int
            Nodes of each graph.
        **topology
            ``edges``: the edges of each example, as in X; not if all examples share a graph.

        Returns
        -------
        Examples
            Rows of scores of edges are in the order of the edges.
        """
        packing.no_topology({*topology} - ({"edges"} if self.edges_ is None else set()))
        nodes = np.diff(packing.size_offsets(sizes)).tolist()
        graphs: Any = topology.get("edges") if self.edges_ is None else [self.edges_] * len(nodes)
        if not hasattr(graphs, "__len__") or len(graphs) != len(nodes):
            given = f"{len(graphs)} of them" if hasattr(graphs, "__len__") else repr(graphs)
            raise ValueError(f"edges: found {given}, expected those of each of {len(nodes)} graphs")
        least = int(np.max(self.edges_, initial=-1)) + 1 if self.edges_ is not None else 1
        if min(nodes) < least:
            raise ValueError(f"sizes: found {min(nodes)} nodes, expected {least} as edges= says")
        with_features = self.layout.edge is not None
        X: list[Any] = []
        for size, edges in zip(nodes, graphs):
            parts = [np.zeros((size, 1)), *([edges] if self.edges_ is None else [])]
            if with_features:
                if not hasattr(edges, "__len__"):
                    raise ValueError(f"edges, example {len(X)}: found {edges!r}, expected pairs")
                parts.append(np.zeros((len(edges), 1)))
            X.append(tuple(parts) if len(parts) > 1 else parts[0])
        one = self.edges_ is not None
        examples = stack_graphs(X, one, with_features, edges=self.edges_, n_nodes=self.n_nodes)
        examples.nodes = examples.edges = None
        return examples

    def read(self, Y: Any, examples: Examples) -> NodeLabels:
        """Return the labels of packed examples, not encoded.

        Parameters
        ----------
        Y : labels as users give them
        examples : Examples

        Returns
        -------
        NodeLabels
        """
        Y = in_order(Y, examples, self.structure.node_labels)
        return read_labels(Y, examples.offsets, self.structure.void, self.classes_)

    def unpack(self, flat: np.ndarray, examples: Examples) -> Any:
        """Return the labels of all nodes, by node for examples that came as networkx graphs."""
        return by_node(super().unpack(flat, examples), examples)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> Any:
        """Return one label, as :meth:`unpack`."""
        return by_node_one(super().unpack_one(label, examples, i), examples, i)

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Pack X and Y; see :meth:`structsolve.Space.pack`.

        With ``unseen="error"``, for training, void nodes are left out of the graphs; with "extra",
        for scores, they get weight 0.
        """
        examples = self.stack(X)
        return examples if Y is None else self.label(examples, self.read(Y, examples), unseen)

    def label(self, examples: Examples, given: NodeLabels, unseen: str = "error") -> Examples:
        """Return packed examples with labels, with void nodes left out or without weight.

        Parameters
        ----------
        examples : Examples
            Without labels.
        given : NodeLabels
        unseen : {"error", "extra"}
            See :meth:`pack`.

        Returns
        -------
        Examples

        Raises
        ------
        ValueError
            The message names the example whose labels are unknown, or all void.
        """
        encoded = self.encode(given.flat, examples.offsets, unseen, given.counted)
        weights, counted = given.weights, given.counted
        if counted is not None and unseen == "error":
            refuse_all_void(counted, examples.offsets, self.nodes_name)
            examples = drop_nodes(examples, counted, self.shared_edges(examples), self.states_)
            encoded = encoded[counted]
            weights = None if weights is None else weights[counted]
        elif counted is not None:
            weights = np.where(counted, 1.0 if weights is None else weights, 0.0)
        examples.labels = encoded
        weigh_nodes(examples, weights)
        return examples

    def encode(
        self,
        flat: np.ndarray,
        offsets: np.ndarray,
        unseen: str = "error",
        counted: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return flat labels as numbers of classes, each below the number of its node's states.

        See :meth:`NodeSpace.encode`. ``flat``: labels of all nodes, as users give them.
        ``offsets``: first node of each example. ``counted``: False at void nodes, which are encoded
        as 0.

        Raises
        ------
        ValueError
            The message names the example and the node.
        """
        encoded = super().encode(flat, offsets, unseen)
        if counted is not None:
            encoded[~counted] = 0
        if unseen == "error":
            refuse_states(encoded, self.states_, offsets)
        return encoded

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse states that a node does not have."""
        if "states" not in examples.topology:  # otherwise nodes were left out
            refuse_states(flat, self.states_, examples.offsets)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        layout = self.layout
        meta = {
            "n_nodes": self.n_nodes,
            "n_features": layout.n_features,
            "n_edge_features": layout.n_edge_features,
            "intercept": layout.intercept,
        }
        arrays = {"classes": self.classes_}
        if self.edges_ is not None:
            arrays["edges"] = self.edges_
        if self.states_ is not None:
            arrays["states"] = self.states_
        return meta, arrays

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every label of a small example."""
        size = int(examples.offsets[i + 1] - examples.offsets[i])
        return every_labeling(size, len(self.classes_), self.states_)

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return masks from ``allowed`` labels per node and ``forbidden`` pairs along edges.

        See :meth:`structsolve.Space.mask`. ``allowed``: per example a list with the allowed labels
        of each node, None for all. ``forbidden``: needs ``tables="shared"``.
        """
        masks: dict[str, Any] = {}
        if allowed is not None:
            masks["node"] = self.allowed_mask(allowed, examples)
        if forbidden is not None:
            if self.structure.tables != "shared":
                raise ValueError("forbidden pairs need tables='shared', which this mrf has not")
            table = np.zeros((len(self.classes_),) * 2)
            index = {c: k for k, c in enumerate(self.classes_.tolist())}
            for pair in forbidden:
                try:
                    a, b = (index[c] for c in pair)
                except (KeyError, TypeError, ValueError):
                    raise ValueError(
                        f"forbidden: found {pair!r}, expected pairs of known classes "
                        f"{self.classes_.tolist()[:12]}"
                    ) from None
                if not self.structure.directed:
                    a, b = min(a, b), max(a, b)
                table[a, b] = -np.inf
            masks["pair"] = table
        return masks

    def graphs(self, layout: Any) -> Any:
        """Return the native description of the graphs of packed examples, made once per layout.

        Parameters
        ----------
        layout : PartLayout

        Returns
        -------
        GraphShape
        """
        topology, edges = layout.examples.topology, self.shared_edges(layout.examples)
        states = len(self.classes_) if self.states_ is None else self.states_
        return common_graphs(
            layout,
            topology["ends"] if edges is None else edges,
            topology.get("states", states),
            one_graph=edges is not None,
            symmetric=not self.structure.directed and self.structure.tables != "per-edge",
        )

    def shared_edges(self, examples: Examples) -> np.ndarray | None:
        """Return the edges of the one graph of all examples; None if each has its own.

        Parameters
        ----------
        examples : Examples

        Returns
        -------
        ndarray of int32 of shape (m, 2), or None
        """
        return None if "ends" in examples.topology else self.edges_


class MRFSpace(GraphLabelings):
    """Graphs over given classes and features.

    Attributes
    ----------
    edges_ : ndarray of int32 of shape (m, 2), or None
        The graph that all examples share.
    states_ : ndarray of int32 of shape (nodes,) or (1,), or None
        Number of ``classes_`` that each node of that graph may take.
    """

    def unpacked_oracle(self, bind: Any) -> Any:
        own = inherits(self, MRFSpace, "pack", "stack", "unpack", "graphs")
        shared = self.structure.tables == "shared" and self.edges_ is None
        return unpacked_oracle(self, bind) if own and shared and self.free_nodes else None
