"""Multiclass: one of K classes for every row of features.

Compiled modules are imported where operators are made: listing structures needs none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.packed import Examples
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import NodeSpace, Structure


class MulticlassStructure(Structure):
    """One of K classes for every row of X (Crammer and Singer's multi-class SVM).

    Notes
    -----
    X is a plain 2-D array, CSR matrix or data frame, y a 1-D array of strings or integers.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> model = StructuredSVM("multiclass").fit([[-1.0], [0.0], [1.0]], ["low", "mid", "high"])
    >>> model.predict([[-2.0], [3.0]]).tolist()
    ['low', 'high']
    """

    name = "multiclass"
    single_node = True

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[MulticlassSpace, Examples]:
        nodes, offsets = packing.single_rows(X)
        flat = labels.flatten_rows(Y, nodes.shape[0])
        names = labels.learn_classes(flat, classes)
        space = MulticlassSpace(self, names, nodes.shape[1], fit_intercept)
        return space, Examples(offsets, nodes, space.encode(flat, offsets))

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> MulticlassSpace:
        return MulticlassSpace(self, arrays["classes"], state["n_features"], state["intercept"])

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        rng = np.random.default_rng(random_state)
        return rng.integers(-2, 3, (n, 3)).astype(float), rng.integers(0, size, n)


class MulticlassSpace(NodeSpace):
    """Classes and number of features."""

    def __init__(self, structure: Structure, classes: np.ndarray, n_features: int, intercept: bool):
        block = Block("node", "node", (len(classes),), ("class",))
        super().__init__(structure, WeightLayout([block], n_features, 0, intercept), classes)

    def stack(self, X: Any) -> Examples:
        nodes, offsets = packing.single_rows(X, self.layout.n_features)
        return Examples(offsets, nodes)

    def flatten(self, Y: Any, offsets: np.ndarray) -> np.ndarray:
        return labels.flatten_rows(Y, len(offsets) - 1)

    def unpack(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        return self.classes_[flat]

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        return flat

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        meta = {"n_features": self.layout.n_features, "intercept": self.layout.intercept}
        return meta, {"classes": self.classes_}

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Mask from ``allowed``: per row a list of classes, or None for all."""
        if forbidden is not None:
            raise ValueError("forbidden transitions: multiclass has none; use allowed")
        if allowed is None:
            return {}
        rows = [None if names is None else [names] for names in allowed]
        return {"node": self.allowed_mask(rows, examples)}

    def make_oracle(self) -> Any:
        from structsolve.plugins.multiclass._oracle import MulticlassOracle

        return MulticlassOracle

    def make_parts(self) -> Any:
        from structsolve.plugins.multiclass._oracle import MulticlassParts

        return MulticlassParts

    def make_power(self, name: str) -> Any:
        from structsolve.plugins.multiclass import _oracle

        powers = {
            "kbest": _oracle.MulticlassKBest,
            "max-marginals": _oracle.MulticlassMaxMarginals,
            "relaxation": _oracle.MulticlassRelaxation,
            "cones": _oracle.MulticlassCones,
            "counts": _oracle.MulticlassCounts,
        }
        return powers.get(name)

    def make_projection(self, regularizer: str) -> Any:
        from structsolve.plugins.multiclass._projections import Softmax, Sparsemax

        return {"entropy": Softmax, "euclidean": Sparsemax}.get(regularizer)

    def make_polytopes(self, examples: Examples) -> Any:
        from structsolve.plugins.multiclass.polytope import Simplex

        return Simplex(self.layout)
