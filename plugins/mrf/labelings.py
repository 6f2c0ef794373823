"""The space of labelings of graphs: packing, labels, masks, blocks of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.plugins.mrf.graph_operators import NO_POWERS, common_graphs
from structsolve.plugins.mrf.node_labels import NodeLabels, read_labels, refuse_all_void
from structsolve.plugins.mrf.tables.graphs import every_labeling, refuse_states
from structsolve.plugins.mrf.tables.networks import by_node, by_node_one, in_order
from structsolve.plugins.mrf.tables.stacking import drop_nodes, stack_graphs
from structsolve.plugins.mrf.tables.unread import unread_pairs
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import inherits
from structsolve.structure.node_space import NodeSpace
from structsolve.structure.weighted_labels import weigh_nodes


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
        meta, arrays = super().state()
        meta |= {"n_nodes": self.n_nodes, "n_edge_features": self.layout.n_edge_features}
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
