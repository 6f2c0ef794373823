"""Multiclass: one of K classes for every row of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.packed import Examples
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Structure, inherits
from structsolve.structure.node_space import NodeSpace


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
    takes_marginals = True
    single_node = True

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[MulticlassSpace, Examples]:
        """Learn classes and the number of features, and pack the training data.

        See :meth:`structsolve.Structure.make_space`. ``X``: array, CSR matrix or data frame of
        shape (n, n_features). ``Y``: array of shape (n,).

        Raises
        ------
        ValueError
            If X and Y do not match, or a label is not in ``classes``.
        """
        nodes, offsets = packing.single_rows(X, compress=True)
        flat = labels.flatten_rows(Y, nodes.shape[0])
        names = labels.learn_classes(flat, classes)
        space = MulticlassSpace(self, names, nodes.shape[1], fit_intercept)
        return space, Examples(offsets, nodes, space.encode(flat, offsets))

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> MulticlassSpace:
        """Rebuild a space from what its ``state()`` returned."""
        return MulticlassSpace(self, arrays["classes"], state["n_features"], state["intercept"])

    def score_space(self, classes: Any = None, edge: bool = False) -> MulticlassSpace:
        """Return a space without features, of a number of classes or of their sorted names."""
        packing.no_edges(edge, self.name)
        return MulticlassSpace(self, labels.class_names(classes, self.name), 0, False)

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return random rows of features and classes."""
        rng = np.random.default_rng(random_state)
        return rng.integers(-2, 3, (n, 3)).astype(float), rng.integers(0, size, n)


class RowSpace(NodeSpace):
    """The base of structures that give one of K classes to every row of X.

    Plugins define the parts; subclasses define whether each class has a score.
    """

    #: Whether class scores consist of thresholds and one direction (algorithms.class_operators).
    steps = False

    @property
    def plain_rows(self) -> bool:  # type: ignore[override]
        """Whether no subclass reads X, or writes labels, in another way."""
        return inherits(self, RowSpace, "pack", "stack", "unpack")

    def stack(self, X: Any) -> Examples:
        """Return packed rows without labels."""
        nodes, offsets = packing.single_rows(X, self.layout.n_features, compress=True)
        return Examples(offsets, nodes)

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return this many examples without features."""
        return Examples(packing.row_offsets(sizes, topology))

    def flatten(self, Y: Any, offsets: np.ndarray) -> np.ndarray:
        """Return labels as users name them."""
        return labels.flatten_rows(Y, len(offsets) - 1)

    def unpack(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return classes by name."""
        return self.classes_[flat]

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return scores or marginals as they are."""
        return flat


class ScoredClasses(RowSpace):
    """Classes with one score each, in any order.

    Parameters
    ----------
    structure : Structure
    classes : ndarray of shape (K,)
    n_features : int
    intercept : bool
        Rows of X get a constant feature.
    """

    def __init__(self, structure: Structure, classes: np.ndarray, n_features: int, intercept: bool):
        block = Block("node", "node", (len(classes),), ("class",))
        super().__init__(structure, WeightLayout([block], n_features, 0, intercept), classes)

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return a mask of scores that forbids all but the allowed classes.

        Parameters
        ----------
        examples : Examples
        allowed : list, optional
            Per row a list of classes, or None for all.
        forbidden : None
            There are no transitions.

        Returns
        -------
        dict of str to ndarray
            0 and -inf of shape (n, K), for the block "node".

        Raises
        ------
        ValueError
            If forbidden transitions are given, or a row has no allowed class.
        """
        if forbidden is not None:
            name = self.structure.name
            raise ValueError(f"forbidden transitions: {name} has none; use allowed")
        if allowed is None:
            return {}
        rows = [None if names is None else [names] for names in allowed]
        return {"node": self.allowed_mask(rows, examples)}


class MulticlassSpace(ScoredClasses):
    """Classes and number of features.

    Parameters
    ----------
    structure : Structure
    classes : ndarray of shape (K,)
    n_features : int
    intercept : bool
        Rows of X get a constant feature.
    """
