"""Labelings of graphs: one state per node, tables of scores for pairs of neighbouring states."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from structsolve.examples import labels
from structsolve.examples.packed import Examples
from structsolve.plugins.mrf.decoders import check_name
from structsolve.plugins.mrf.graph_operators import unpacked_oracle
from structsolve.plugins.mrf.labelings import GraphLabelings
from structsolve.plugins.mrf.node_labels import read_labels, void_names
from structsolve.plugins.mrf.tables.graphs import check_edges, check_states, state_names
from structsolve.plugins.mrf.tables.networks import check_attributes, in_order
from structsolve.plugins.mrf.tables.stacking import stack_graphs
from structsolve.structure.base import Structure, inherits
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
    takes_marginals = True

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
