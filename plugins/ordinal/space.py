"""Ordinal: one of K ordered classes for every row of features.

With one score per class it differs from structsolve.plugins.multiclass only in losses and labels;
the operators are the same.
"""

from __future__ import annotations

from reprlib import repr as brief
from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.packed import Examples
from structsolve.plugins.multiclass.space import RowSpace, ScoredClasses
from structsolve.plugins.ordinal.labels import learn_order, told_order
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Structure


class OrdinalStructure(Structure):
    """One of K ordered classes for every row of X.

    Parameters
    ----------
    thresholds : bool, default=False
        False: one score per class, ``w_k . x``, as in "multiclass".  True: one direction w shared
        by all classes, and K - 1 thresholds b on it: class k scores
        ``k w . x - (b_1 + ... + b_k)``, so that with rising thresholds the best class is the number
        of thresholds below ``w . x``.
    classes : sequence, optional
        All classes from the lowest to the highest; needed for strings, and for integers with gaps
        or if y may lack some, unless y is an ordered pandas Categorical, which has its order.

    Notes
    -----
    X is a plain 2-D array, CSR matrix or data frame, y a 1-D array.  Without ``classes`` integers
    are ordered by value and must leave no gap.  Beside the losses of classes there are "absolute",
    the number of classes between truth and prediction, and "normalized-absolute", divided by K - 1.

    Thresholds need not increase: prediction maximises the score for any order of them.  A
    threshold below the previous one means that the class between them is never predicted.
    There is no intercept beside the thresholds.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.ordinal import OrdinalStructure
    >>> X, y = [[-2.0], [-1.0], [0.0], [1.0], [2.0]], [1, 1, 2, 3, 3]
    >>> model = StructuredSVM(OrdinalStructure(thresholds=True), loss="absolute", alpha=0.01)
    >>> model.fit(X, y).predict([[-5.0], [0.0], [5.0]]).tolist()
    [1, 2, 3]
    >>> model.coef_["threshold"].shape, model.coef_["node"].shape
    ((2,), (1, 1))
    """

    name = "ordinal"
    single_node = True

    def __init__(self, thresholds: bool = False, classes: Any = None):
        self.thresholds = thresholds
        self.classes = classes

    @property
    def takes_marginals(self) -> bool:
        """Whether y may hold a probability of each class, from the lowest."""
        return not self.thresholds

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[OrdinalSpace | ThresholdSpace, Examples]:
        """Learn the order of the classes, and pack the training data.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, n_features)
        Y : array of shape (n,)
        classes : sequence, optional
            All classes in any order, including those that do not occur in Y.
        fit_intercept : bool
            Rows get a constant feature; ignored with thresholds.

        Returns
        -------
        space : OrdinalSpace or ThresholdSpace
        examples : Examples
            X and Y, packed.

        Raises
        ------
        ValueError
            For classes of unknown order, and integers with gaps.
        """
        nodes, offsets = packing.single_rows(X, compress=True)
        flat = labels.flatten_rows(Y, nodes.shape[0])
        if self.classes is None and classes is not None:
            # The classes of partial_fit() come in any order.
            order = learn_order(labels.learn_classes(flat, classes), None, gaps=True)
            learn_order(flat, order)
        else:
            told = told_order(Y)
            order = learn_order(flat, told if self.classes is None else self.classes)
            both = [] if told is None else [told[np.isin(told, order)], order[np.isin(order, told)]]
            if both and both[0].tolist() != both[1].tolist():
                raise ValueError(
                    f"y: found ordered categories {both[0].tolist()[:12]}, expected them in the "
                    f"order of OrdinalStructure(classes={order.tolist()[:12]})"
                )
        space: OrdinalSpace | ThresholdSpace
        if self.thresholds:
            space = ThresholdSpace(self, order, nodes.shape[1])
        else:
            space = OrdinalSpace(self, order, nodes.shape[1], fit_intercept)
        return space, Examples(offsets, nodes, space.encode(flat, offsets))

    def score_space(self, classes: Any = None, edge: bool = False) -> OrdinalSpace | ThresholdSpace:
        """Return a space without features, of a number of classes or of their ordered names."""
        packing.no_edges(edge, self.name)
        given = self.classes if classes is None else classes
        order = labels.class_names(given, self.name, ordered=False)
        if self.classes is not None and not np.array_equal(order, self.classes):
            raise ValueError(
                f"classes: found {brief(order.tolist())}, expected {brief(list(self.classes))}"
            )
        if self.thresholds:
            return ThresholdSpace(self, order, 0)
        return OrdinalSpace(self, order, 0, False)

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> OrdinalSpace | ThresholdSpace:
        """Rebuild a space from what its ``state()`` returned."""
        if self.thresholds:
            return ThresholdSpace(self, arrays["classes"], state["n_features"])
        return OrdinalSpace(self, arrays["classes"], state["n_features"], state["intercept"])

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return random rows of features and classes without gaps."""
        rng = np.random.default_rng(random_state)
        y = rng.permutation(np.arange(n) % max(min(size, n), 1))
        return rng.integers(-2, 3, (n, 3)).astype(float), y


class OrderedLabels(RowSpace):
    """The base of both kinds of spaces: ``classes_`` are in their order, not sorted."""

    def encode(self, flat: np.ndarray, offsets: np.ndarray, unseen: str = "error") -> np.ndarray:
        """Return flat labels as numbers of classes in their order."""
        K = len(self.classes_)
        order = np.argsort(self.classes_, kind="stable")
        extra = None if unseen == "error" else K
        ranks = labels.encode(flat, self.classes_[order], offsets, extra)
        return np.append(order, K).astype(np.int32)[ranks]


class OrdinalSpace(OrderedLabels, ScoredClasses):
    """Ordered classes with one score each.

    Parameters
    ----------
    structure : Structure
    classes : ndarray of shape (K,)
        From the lowest to the highest.
    n_features : int
    intercept : bool
        Rows of X get a constant feature.
    """


class ThresholdSpace(OrderedLabels):
    """Ordered classes on one direction: thresholds in a shared block, the direction in "node".

    Parameters
    ----------
    structure : Structure
    classes : ndarray of shape (K,)
        From the lowest to the highest.
    n_features : int
    """

    steps = True

    def __init__(self, structure: Structure, classes: np.ndarray, n_features: int):
        blocks = [Block("node", "node", (1,), ("direction",))]
        if len(classes) > 1:
            blocks.insert(0, Block("threshold", "shared", (len(classes) - 1,), ("step",)))
        super().__init__(structure, WeightLayout(blocks, n_features, 0, False), classes)
        #: The projections' states hold this many probabilities of classes.
        self.state_rows = len(classes)

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Refuse constraints; see :meth:`structsolve.Space.mask`.

        Returns
        -------
        dict
            Empty.

        Raises
        ------
        ValueError
            If either is given.
        """
        if allowed is not None:
            raise ValueError(
                "allowed: ordinal classes on thresholds have no separate scores to "
                "forbid; use OrdinalStructure(thresholds=False)"
            )
        return super().mask(examples, allowed, forbidden)
