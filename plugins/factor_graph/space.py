"""Labelings of factor graphs: scores of nodes, and of the states of several nodes together."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.packed import Examples
from structsolve.plugins.factor_graph.graphs import LARGEST, Scope
from structsolve.plugins.factor_graph.scopes import check_scopes, split_scopes, stack_factors
from structsolve.plugins.mrf.graph_operators import NO_POWERS
from structsolve.plugins.mrf.space import check_decoding
from structsolve.plugins.mrf.tables.graphs import (
    check_states,
    every_labeling,
    refuse_states,
    state_names,
)
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Structure
from structsolve.structure.node_space import NodeSpace
from structsolve.structure.weighted_labels import split_weights, weigh_nodes
from structsolve.utils.params import check_choice, parameters

TABLES = ("shared", "per-factor")


@parameters
class FactorGraphStructure(Structure):
    """Labelings of factor graphs: a Markov random field whose factors join any number of nodes.

    Parameters
    ----------
    factors : list of tuple of int, optional
        The nodes of each factor, the same for all examples.  By default each example has its
        factors in X.
    tables : {"shared", "per-factor"}, default="shared"
        A table of weights for all factors over the same number of nodes, or one for each factor,
        which needs ``factors``.  The axes of a table are the nodes in the order of the factor.
    n_states : int or sequence of int, optional
        Number of states, of all nodes, or with ``factors`` of each node; labels are then integers
        from 0.  By default the labels are the classes of the training data, for every node.
    oracle : str, default="auto"
        Decoder of the graph in which each factor over three or more nodes is a node of its own,
        whose states are the factor's entries; see :class:`~structsolve.plugins.mrf.MRFStructure`.
    predict_oracle : str, optional
        The oracle for prediction; by default ``oracle``.
    max_iter : int, default=100
        Maximum number of iterations of TRW-S, for "trws", "expansion" and "auto".

    Notes
    -----
    X is a list with a pair ``(node_features, factors)`` per example; with ``factors=``, a list of
    node features, or an array of shape (n, nodes, n_features).  Y is a list of label sequences, one
    label per node.  A factor within the nodes of a larger one is added to that one's table, as
    :func:`~structsolve.plugins.mrf.uai.read_uai` does.  Where the graph is narrow, everything is
    exact; the marginals of wide ones are relaxed, as those of structure "mrf".

    Examples
    --------
    Whether three switches have an odd number of ones, which no scores of pairs can tell:

    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.factor_graph import FactorGraphStructure
    >>> Y = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]]
    >>> X = [np.array([[a - 0.4], [b - 0.4], [0.1]]) for a, b, _ in Y]
    >>> model = StructuredSVM(FactorGraphStructure([(0, 1, 2)]), alpha=0.01).fit(X, Y)
    >>> [y.tolist() for y in model.predict(X)]
    [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]]
    """

    name = "factor-graph"
    takes_marginals = True
    void = None
    layouts = {"factors": (None, [(0, 1, 2), (2, 3), (3,), (1, 2)]), "tables": TABLES}

    factors: Any = None
    tables: str = "shared"
    _: KW_ONLY
    n_states: Any = None
    oracle: str = "auto"
    predict_oracle: Any = None
    max_iter: int = 100

    def check_params(self) -> None:
        """Refuse parameters that do not fit."""
        check_choice("tables", self.tables, TABLES)
        if self.factors is None and self.tables == "per-factor":
            raise ValueError(
                "tables is 'per-factor', which needs the same factors in all examples: give "
                "factors="
            )
        if self.factors is None and np.ndim(self.n_states):
            raise ValueError(
                "n_states is a list, which needs the same factors in all examples: give factors="
            )
        check_decoding(self)

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[FactorGraphSpace, Examples]:
        """Learn the space from training data, and pack these.

        See :meth:`structsolve.Structure.make_space`.
        """
        self.check_params()
        examples = stack_factors(X, self.factors is not None)
        n_nodes = int(examples.offsets[1])
        scopes = None
        if self.factors is not None:
            scopes = check_scopes(self.factors, n_nodes, "factors")
            arities = {len(scope) for scope in scopes}
        else:
            arities = set(np.diff(examples.topology["member_at"]).tolist())
        states = check_states(self.n_states, None if scopes is None else n_nodes)
        Y, weights = split_weights(Y, examples.offsets)
        flat = labels.flatten(Y, examples.offsets)
        if states is None:
            names = labels.learn_classes(flat, classes)
        else:
            names = state_names(states, classes)
        columns = examples.nodes.shape[1], fit_intercept
        space = FactorGraphSpace(
            self, names, scopes, states, n_nodes, columns, arities=sorted(arities)
        )
        weigh_nodes(examples, weights)
        return space, space.label(examples, Y, flat)

    def score_space(self, classes: Any = None, edge: bool = False) -> FactorGraphSpace:
        """Return a space without features; see :meth:`structsolve.Structure.score_space`."""
        self.check_params()
        packing.no_edges(edge, self.name)
        if self.factors is None:
            raise ValueError(
                f"structure {self.name!r} without features needs the factors of all examples: give "
                "factors="
            )
        n_nodes = len(self.n_states) if np.ndim(self.n_states) else None
        scopes = check_scopes(self.factors, n_nodes, "factors")
        if n_nodes is None:
            n_nodes = max(map(max, scopes), default=0) + 1
        states = check_states(self.n_states, n_nodes)
        if states is None or classes is not None:
            names = classes = labels.class_names(classes, self.name)
        if states is not None:
            names = state_names(states, classes)
        arities = sorted({len(scope) for scope in scopes})
        return FactorGraphSpace(self, names, scopes, states, n_nodes, (0, False), arities=arities)

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> FactorGraphSpace:
        """Rebuild a space from what its ``state()`` returned."""
        scopes = None
        if "members" in arrays:
            scopes = split_scopes(arrays["members"], arrays["member_at"])
        columns = state["n_features"], state["intercept"]
        return FactorGraphSpace(
            self, arrays["classes"], scopes, arrays.get("states"), state["n_nodes"], columns,
            arities=arrays["arities"].tolist(),
        )  # fmt: skip

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return n small random examples that fit the parameters."""
        self.check_params()
        rng = np.random.default_rng(random_state)
        states = np.asarray(2 if self.n_states is None else self.n_states)
        X: list[Any] = []
        Y = []
        for _ in range(n):
            if self.factors is None:
                V = int(rng.integers(1, size + 2))
                sizes = rng.integers(1, 4, V).tolist()
                scopes = [tuple(rng.permutation(V)[:k].tolist()) for k in sizes]
            else:
                V = states.size if states.ndim else max(map(max, self.factors), default=0) + 1
            nodes = rng.integers(-2, 3, (V, 2)).astype(float)
            X.append((nodes, scopes) if self.factors is None else nodes)
            Y.append(rng.integers(0, np.broadcast_to(states, V)))
        return X, Y


class FactorGraphSpace(NodeSpace):
    """Factor graphs over given classes and features.

    Parameters
    ----------
    structure : FactorGraphStructure
    classes : ndarray
        Sorted.
    scopes : list of tuple of int, or None
        The factors of all examples; None if each has its own.
    states : ndarray of int32 of shape (nodes,) or (1,), or None
        Number of ``classes`` that each node may take.
    n_nodes : int
        Number of nodes, with ``scopes``.
    columns : (int, bool)
        Features of a node, and whether it has an intercept.
    arities : list of int
        Numbers of nodes of the factors in training.

    Attributes
    ----------
    scopes_, states_
        The parameters of these names.
    """

    no_powers = NO_POWERS
    structure: FactorGraphStructure

    def __init__(
        self,
        structure: FactorGraphStructure,
        classes: np.ndarray,
        scopes: list[Scope] | None,
        states: np.ndarray | None,
        n_nodes: int,
        columns: tuple[int, bool],
        *,
        arities: list[int],
    ):
        self.scopes_, self.states_, self.arities, self.n_nodes = scopes, states, arities, n_nodes
        K = len(classes)
        blocks = []
        if structure.tables == "shared":
            for arity in arities:
                shape = (K,) * arity
                self._refuse_large(K**arity, f"tables of {arity} nodes of {K} states")
                blocks.append(Block(f"factors of {arity}", "shared", shape, ("class",) * arity))
        for f, scope in enumerate(scopes or () if structure.tables == "per-factor" else ()):
            most = [K] * len(scope) if states is None else np.resize(states, n_nodes)[list(scope)]
            shape = tuple(int(k) for k in most)
            self._refuse_large(float(np.prod(shape, dtype=float)), f"factors: factor {f}, {scope},")
            blocks.append(Block(f"factor {f}", "shared", shape, ("state",) * len(shape)))
        blocks.append(Block("node", "node", (K,), ("class",)))
        super().__init__(structure, WeightLayout(blocks, columns[0], intercept=columns[1]), classes)

    @staticmethod
    def _refuse_large(entries: float, what: str) -> None:
        if entries > LARGEST:
            raise ValueError(f"{what} has {entries:.0f} entries, expected at most {LARGEST}")

    def block_of(self, f: int, scope: Scope) -> str:
        """Return the name of the block with a factor's table.

        Parameters
        ----------
        f : int
            Its number in its example.
        scope : tuple of int

        Returns
        -------
        str
        """
        shared = self.structure.tables == "shared"
        return f"factors of {len(scope)}" if shared else f"factor {f}"

    def entries(self, scope: Scope) -> int:
        """Return the number of entries of a factor.

        Parameters
        ----------
        scope : tuple of int

        Returns
        -------
        int
        """
        if self.states_ is None or len(self.states_) == 1:
            return len(self.classes_) ** len(scope)
        return int(np.prod(self.states_[list(scope)]))

    def scopes_of(self, examples: Examples) -> list[list[Scope]]:
        """Return the factors of each of packed examples, which have their own.

        Parameters
        ----------
        examples : Examples

        Returns
        -------
        list of list of tuple of int
        """
        topology = examples.topology
        flat = split_scopes(topology["members"], topology["member_at"])
        starts = topology["factor_at"].tolist()
        return [flat[first:last] for first, last in zip(starts, starts[1:])]

    def stack(self, X: Any) -> Examples:
        """Return packed examples without labels."""
        fixed = self.scopes_ is not None
        n_nodes = self.n_nodes if fixed else None
        examples = stack_factors(X, fixed, self.layout.n_features, n_nodes)
        if not fixed:
            arity = np.diff(examples.topology["member_at"])
            unknown = np.flatnonzero(~np.isin(arity, self.arities))
            if unknown.size:
                f = int(unknown[0])
                i = int(np.searchsorted(examples.topology["factor_at"], f, side="right")) - 1
                raise ValueError(
                    f"X, example {i}: found a factor over {arity[f]} nodes, expected one of "
                    f"{self.arities}, as in training"
                )
        return examples

    def label(self, examples: Examples, Y: Any, flat: np.ndarray | None = None) -> Examples:
        """Return packed training examples with labels.

        Parameters
        ----------
        examples : Examples
        Y : labels as users give them
        flat : ndarray, optional
            The same, concatenated.

        Returns
        -------
        Examples
            ``examples`` itself, changed.
        """
        flat = self.flatten(Y, examples.offsets) if flat is None else flat
        examples.labels = self.encode(flat, examples.offsets)
        return examples

    def encode(self, flat: np.ndarray, offsets: np.ndarray, unseen: str = "error") -> np.ndarray:
        """Return flat labels as numbers of classes, each below the number of its node's states.

        See :meth:`NodeSpace.encode`.

        Raises
        ------
        ValueError
            The message names the example and the node.
        """
        encoded = super().encode(flat, offsets, unseen)
        if unseen == "error":
            refuse_states(encoded, self.states_, offsets)
        return encoded

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse states that a node does not have."""
        refuse_states(flat, self.states_, examples.offsets)

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return examples of given numbers of nodes, without features.

        See :meth:`structsolve.Space.pack_sizes`. ``sizes``: all equal to the nodes of ``factors``.
        """
        packing.no_topology(topology)
        offsets = packing.size_offsets(sizes)
        if self.scopes_ is None or (np.diff(offsets) != self.n_nodes).any():
            raise ValueError(
                f"sizes: found {np.unique(np.diff(offsets)).tolist()}, expected {self.n_nodes} "
                "nodes in each example, and factors="
            )
        return Examples(offsets)

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return masks from ``allowed`` labels per node; see :meth:`structsolve.Space.mask`."""
        if forbidden is not None:
            raise ValueError(f"forbidden: structure {self.structure.name!r} has no such pairs")
        return {} if allowed is None else {"node": self.allowed_mask(allowed, examples)}

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every label of a small example."""
        size = int(examples.offsets[i + 1] - examples.offsets[i])
        return every_labeling(size, len(self.classes_), self.states_)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        meta, arrays = super().state()
        arrays["arities"] = np.array(self.arities, dtype=np.int64)
        if self.scopes_ is not None:
            arrays["members"] = np.array([v for s in self.scopes_ for v in s], dtype=np.int32)
            arrays["member_at"] = np.cumsum([0, *map(len, self.scopes_)]).astype(np.int64)
        if self.states_ is not None:
            arrays["states"] = self.states_
        return {**meta, "n_nodes": self.n_nodes}, arrays
