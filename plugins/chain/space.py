"""Chains: label sequences with node scores, transitions, start and end scores.

Compiled modules are imported where operators are made: listing structures needs none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.structure.labelings import LabelingSpace, LabelingStructure


class ChainSpace(LabelingSpace):
    """Chains over given classes and features.

    Parameters
    ----------
    structure : ChainStructure
    classes : ndarray of shape (K,)
        Sorted.
    n_features : int
        Of a node.
    n_edge_features : int or None
        None: edges have no features.
    intercept : bool
        Nodes get a constant feature.
    """

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return masks of scores that forbid labels and pairs of labels.

        Parameters
        ----------
        examples : Examples
        allowed : list, optional
            Per example a list with the allowed labels of each node; None for all.
        forbidden : list, optional
            Pairs (label, next label).

        Returns
        -------
        dict of str to ndarray
            0 and -inf: of shape (nodes, K) for "node", of shape (K, K) for "transition".

        Raises
        ------
        ValueError
            For labels that are not known, and for pairs where there are no transitions.
        """
        return self.transition_masks(examples, allowed, forbidden, "(label, next label)")

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return chains of given lengths, without features.

        Parameters
        ----------
        sizes : sequence of int
            Lengths.
        **topology
            None.

        Returns
        -------
        Examples
        """
        packing.no_topology(topology)
        examples = Examples(packing.size_offsets(sizes, "lengths"))
        if self.layout.edge is not None:
            examples.edge_offsets = examples.offsets - np.arange(examples.n + 1)
        return examples

    def make_oracle(self) -> Any:
        """Return what binds the oracle, an exact dynamic program."""
        from structsolve.plugins.chain._oracle import ChainOracle

        return ChainOracle

    def make_parts(self) -> Any:
        """Return what binds the parts: states of nodes and pairs of states."""
        from structsolve.plugins.chain._shape import ChainParts

        return ChainParts

    def make_power(self, name: str) -> Any:
        """Return what binds a power of the oracle."""
        from structsolve.plugins.chain._oracle import ChainCounts, ChainKBest, ChainMaxMarginals

        powers = {"kbest": ChainKBest, "max-marginals": ChainMaxMarginals, "counts": ChainCounts}
        return powers.get(name)

    def make_projection(self, regularizer: str) -> Any:
        """Return what binds the marginals, for "entropy"."""
        from structsolve.plugins.chain._projections import ChainSumProduct

        return ChainSumProduct if regularizer == "entropy" else None

    def make_polytopes(self, examples: Examples) -> Any:
        """Return the local polytopes, which are exact."""
        from structsolve.plugins.chain.polytope import ChainPolytopes

        return ChainPolytopes(self.layout, examples.offsets)


class ChainStructure(LabelingStructure):
    """First-order label sequences of any length from 1 up.

    Parameters
    ----------
    start_end : bool, default=True
        Learn a score per class for the first and for the last position.
    transitions : bool, default=True
        Learn one score per pair of neighbouring classes, shared by all positions.

    Notes
    -----
    X is a list of feature matrices of shape (length, n_features), dense or CSR, or a
    :class:`structsolve.Sequences`.  With edge features, each element is a pair
    ``(node_features, edge_features)`` with edge features of shape (length - 1, n_edge_features);
    they score each pair of neighbouring classes on top of the shared transitions.
    Y is a list of label sequences, strings or integers.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]]]
    >>> model = StructuredSVM("chain").fit(X, [["a", "b"], ["b"]])
    >>> [y.tolist() for y in model.predict(X)]
    [['a', 'b'], ['b']]
    """

    name = "chain"
    space_type = ChainSpace

    def __init__(self, start_end: bool = True, transitions: bool = True):
        self.start_end = start_end
        self.transitions = transitions

    def stack(
        self, X: Any, n_features: int | None = None, n_edge_features: int | None = None
    ) -> Examples:
        """Return packed chains without labels."""
        return stack_chains(X, n_features, n_edge_features)

    def ends(self) -> tuple[str, ...]:
        """Return the names of the blocks of both ends."""
        return ("start", "end") if self.start_end else ()

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return small random chains."""
        rng = np.random.default_rng(random_state)
        lengths = rng.integers(1, size + 1, n)
        X = [rng.integers(-2, 3, (length, 3)).astype(float) for length in lengths]
        return X, [rng.integers(0, 3, length) for length in lengths]


def stack_chains(
    X: Any, n_features: int | None = None, n_edge_features: int | None = None
) -> Examples:
    """Stack chains, with or without edge features, into packed examples.

    Parameters
    ----------
    X : list
        As :class:`ChainStructure` describes it.
    n_features, n_edge_features : int, optional
        Expected numbers of columns, once they are known: no ``n_edge_features`` then means that
        edges have no features.

    Returns
    -------
    Examples
        Without labels.

    Raises
    ------
    ValueError
        For rows of edge features that do not fit the nodes, or the training data.
    """
    if not isinstance(X, (list, tuple)) or not X or not isinstance(X[0], tuple):
        if n_edge_features is not None:
            raise ValueError(
                "this chain was trained with edge features: expected pairs (node_features, "
                "edge_features)"
            )
        nodes, offsets = packing.stack_rows(X, n_features, compress=True)
        return Examples(offsets, nodes)
    if n_features is not None and n_edge_features is None:
        raise ValueError(
            "X holds pairs (node_features, edge_features), but the chain was trained without "
            "edge features"
        )
    for i, pair in enumerate(X):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(
                f"X, example {i}: expected a pair (node_features, edge_features) as in the first "
                "example"
            )
    nodes, offsets = packing.stack_rows([p[0] for p in X], n_features, compress=True)
    edges, edge_offsets = packing.stack_rows(
        [p[1] for p in X], n_edge_features, "edge features", min_rows=0, compress=True
    )
    wrong = np.flatnonzero(np.diff(edge_offsets) != np.diff(offsets) - 1)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"X, example {i}: {np.diff(edge_offsets)[i]} rows of edge features for "
            f"{np.diff(offsets)[i]} nodes, expected one row less than nodes"
        )
    return Examples(offsets, nodes, edge_offsets=edge_offsets, edges=edges)
