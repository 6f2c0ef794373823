"""Flows in a network: one flow per row of features, whole for training by margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.plugins.flow.continuous import FlowTargets
from structsolve.plugins.flow.network import Network
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure

CONTINUOUS = ("absolute", "squared")


class FlowStructure(Structure):
    """A flow in a network for every row of X, with one score ``w_a . x`` per unit on arc a.

    Parameters
    ----------
    network : networkx.DiGraph
        Node attribute "demand" (0 by default): inflow less outflow, as in networkx. It is
        **negative at sources** and positive at sinks. Arc attribute "capacity" (none by
        default). All examples share the network.

    Notes
    -----
    X is a plain 2-D array, CSR matrix or data frame, y an array of shape (n, n_arcs) whose columns
    are the arcs in the order of ``network.edges``.

    For :class:`~structsolve.StructuredSVM` flows, demands and capacities are whole numbers, and
    losses ("hamming", "absolute", "zero-one") need arcs that carry at most 1: paths, disjoint
    paths, assignments. :class:`~structsolve.ConditionalRiskMinimizer` takes any flows with the
    losses "absolute" and "squared".

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.flow import FlowStructure
    >>> network = nx.DiGraph([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t")])
    >>> network.add_node("s", demand=-1)
    >>> network.add_node("t", demand=1)
    >>> X = np.array([[0.0], [1.0]])
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 1]])     # through a, through b
    >>> model = StructuredSVM(FlowStructure(network), alpha=0.01).fit(X, Y)
    >>> model.predict([[-1.0], [2.0]]).tolist()
    [[1, 0, 1, 0], [0, 1, 0, 1]]
    """

    name = "flow"
    label_rows = True
    file_params = ("network",)
    continuous_losses = CONTINUOUS

    def __init__(self, network: Any = None):
        self.network = network

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[FlowSpace, Examples]:
        """Learn the space from training data, and pack these.

        See :meth:`structsolve.Structure.make_space`. ``classes`` are ignored: flows have none.
        """
        nodes, offsets = packing.single_rows(X, compress=True)
        space = FlowSpace(self, Network.of_graph(self.network), nodes.shape[1], fit_intercept)
        return space, space._examples(nodes, offsets, Y)

    def score_space(self, classes: Any = None, edge: bool = False) -> FlowSpace:
        """Return a space of the network without features: one score per arc."""
        packing.no_edges(edge, self.name)
        if classes is not None:
            raise ValueError("classes: flows have none")
        return FlowSpace(self, Network.of_graph(self.network), 0, False)

    def space_from_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> FlowSpace:
        """Rebuild a space from what its ``state()`` returned."""
        return FlowSpace(
            self, Network.of_graph(self.network), state["n_features"], state["intercept"]
        )

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return n small random examples; flows are optimal for random costs."""
        from scipy.optimize import linprog  # heavy

        rng = np.random.default_rng(random_state)
        network = Network.of_graph(self.network)
        bounds = np.column_stack([np.zeros(network.m), network.upper])
        Y = [
            linprog(c, A_eq=network.incidence(), b_eq=network.demand, bounds=bounds).x
            for c in rng.normal(size=(n, network.m))
        ]
        return rng.integers(-2, 3, (n, 3)).astype(float), np.rint(Y).astype(np.int64)


class FlowSpace(Space):
    """A network and the number of features.

    Attributes
    ----------
    network : Network
    """

    def __init__(
        self, structure: FlowStructure, network: Network, n_features: int, intercept: bool
    ):
        block = Block("node", "node", (network.m,), ("arc",))
        super().__init__(structure, WeightLayout([block], n_features, 0, intercept))
        self.network = network

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Check X and Y and pack them; see :meth:`structsolve.Space.pack`."""
        nodes, offsets = packing.single_rows(X, self.layout.n_features, compress=True)
        examples = self._examples(nodes, offsets, Y)
        return examples

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse labels that are not flows."""
        self.network.check_flows(flat.reshape(examples.n, self.network.m), examples.n)

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return this many examples without features."""
        return self._examples(None, packing.row_offsets(sizes, topology), None)

    def _examples(self, nodes: Any, offsets: np.ndarray, Y: Any) -> Examples:
        """Combine checked rows and the whole flows of Y."""
        examples = Examples(offsets, nodes, label_offsets=self.network.m * offsets)
        if Y is not None:
            network = self.network.integral()
            flows = network.check_flows(Y, examples.n)
            wrong = np.argwhere(flows != np.rint(flows))
            if len(wrong):
                i, a = wrong[0].tolist()
                raise ValueError(
                    f"example {i}, arc {network.name(a)}: y holds {flows[i, a]}, expected a whole "
                    "number; ConditionalRiskMinimizer with loss 'absolute' or 'squared' takes any"
                )
            examples.labels = flows.astype(np.int32).ravel()
        return examples

    def unpack(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return encoded labels in the form users give Y."""
        return flat.reshape(examples.n, self.network.m).astype(np.int64)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> np.ndarray:
        """Return one encoded label in the form users give it."""
        return label.astype(np.int64)

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return scores or marginals of the rows in a form like that of Y."""
        return flat

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every label of a small example."""
        network = self.network.integral()
        sizes = tuple(int(u) + 1 for u in network.upper)
        every = np.indices(sizes, dtype=np.int32).reshape(network.m, -1).T
        kept = (every @ network.incidence().T == network.demand).all(axis=1)
        return np.ascontiguousarray(every[kept])

    # -- conditional risk minimisation ----------------------------------------------------------

    def risk_targets(self, examples: Examples, Y: Any, loss: Any) -> Any:
        """Return the targets that :class:`~structsolve.ConditionalRiskMinimizer` averages.

        Parameters
        ----------
        examples : Examples
            Packed training data; without labels for a loss of ``continuous_losses``.
        Y : list or array
            As users give it.
        loss : str or object

        Returns
        -------
        FlowTargets or None
            None for losses of the parts of integral flows.
        """
        if loss in CONTINUOUS:
            return FlowTargets(self.network, self.network.check_flows(Y, examples.n), loss)
        return None

    def targets_from_state(
        self, loss: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Any:
        """Rebuild what :meth:`risk_targets` returned, from a model file.

        Parameters
        ----------
        loss : str or object
        meta : dict
        arrays : dict of str to ndarray

        Returns
        -------
        FlowTargets or None
        """
        if loss in CONTINUOUS:
            return FlowTargets(self.network, arrays["flows"], loss)
        return None
