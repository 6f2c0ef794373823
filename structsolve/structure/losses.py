"""Losses given by numbers: a cost matrix, and Hamming with a weight per class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..examples.given import check_named
from ..examples.kinds import joined, one_kind
from ..utils.arrays import real_array
from ..utils.memory import refuse_too_large
from ..utils.params import Params


class CostMatrix(Params):
    """Cost of each predicted class for each true class, summed over the nodes of a label.

    Parameters
    ----------
    matrix : array of shape (K, K)
        ``matrix[a][b]`` is the loss of predicting class b for true class a, in the order of
        ``classes``; non-negative, zero on the diagonal. A data frame has them in that order, too.
    classes : sequence, optional
        Order of rows and columns; the sorted classes by default.
    normalized : bool, default=False
        Divide by the number of nodes.

    Examples
    --------
    >>> from structsolve import CostMatrix, StructuredSVM
    >>> loss = CostMatrix([[0, 1], [5, 0]], classes=["ok", "fault"])
    >>> X, y = [[0.0], [1.0]], ["ok", "fault"]
    >>> StructuredSVM("multiclass", loss=loss).fit(X, y).predict(X).tolist()
    ['ok', 'fault']
    """

    def __init__(self, matrix: Any, classes: Any = None, normalized: bool = False):
        self.matrix = matrix
        self.classes = classes
        self.normalized = normalized

    def cost(self, classes: np.ndarray) -> np.ndarray:
        """Return the matrix in the order of ``classes``.

        Parameters
        ----------
        classes : ndarray of shape (K,)

        Returns
        -------
        ndarray of float64 of shape (K, K)

        Raises
        ------
        ValueError
            If the matrix is no matrix of costs, or lacks one of ``classes``.
        """
        K = len(classes)
        own = classes if self.classes is None else self.classes
        check_named(self.matrix, own, own, "CostMatrix: matrix")
        matrix = real_array(self.matrix, "CostMatrix: matrix")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"CostMatrix: matrix has shape {matrix.shape}, expected a square")
        if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diag(matrix).any():
            raise ValueError(
                "CostMatrix: expected finite costs of at least 0, and 0 on the diagonal"
            )
        if self.classes is None:
            if matrix.shape != (K, K):
                raise ValueError(
                    f"CostMatrix: matrix has shape {matrix.shape}, expected ({K}, {K}) for the "
                    f"{K} classes of y; name its rows with classes= if y lacks some of them"
                )
            return matrix
        names = one_kind(self.classes, "CostMatrix: classes")
        order = {c: j for j, c in enumerate(names.tolist())}
        if len(order) != matrix.shape[0]:
            raise ValueError(
                f"CostMatrix: {len(order)} distinct classes for a matrix of {matrix.shape[0]} rows"
            )
        missing = [c for c in classes.tolist() if c not in order]
        if missing:
            raise ValueError(f"CostMatrix: no costs for the classes {missing} of y")
        pick = [order[c] for c in classes.tolist()]
        return matrix[np.ix_(pick, pick)]


class ClassWeights(Params):
    """Hamming loss in which errors on a node are multiplied by the weight of its true class.

    Parameters
    ----------
    weights : dict
        Weight per class; 1 for those left out.
    normalized : bool, default=False
        Divide by the number of nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import ClassWeights
    >>> ClassWeights({"rare": 3.0}).cost(np.array(["common", "rare"])).tolist()
    [[0.0, 1.0], [3.0, 0.0]]
    >>> ClassWeights.balanced([["rare", "common"], ["common", "common"]]).weights
    {'common': 0.6666666666666666, 'rare': 2.0}
    """

    @classmethod
    def balanced(cls, Y: Any, normalized: bool = False) -> ClassWeights:
        """Return weights that give all classes of the labels the same total weight.

        Each is the number of nodes over the number of classes times the frequency of the class, as
        in scikit-learn's ``class_weight="balanced"``.  With ``surrogate="slack"`` weights are
        factors of errors, as there; with "margin" they are required margins.

        Parameters
        ----------
        Y : sequence of labels, or of label sequences
            Labels of the training examples.
        normalized : bool, default=False

        Returns
        -------
        ClassWeights

        Raises
        ------
        ValueError
            If there are no labels.
        """
        flat = joined(Y, "ClassWeights.balanced: Y")
        if not len(flat):
            raise ValueError("ClassWeights.balanced: found no labels in Y")
        names, counts = np.unique(flat, return_counts=True)
        weights = counts.sum() / (len(names) * counts)
        return cls(dict(zip(names.tolist(), weights.tolist())), normalized)

    def __init__(self, weights: dict[Any, float], normalized: bool = False):
        self.weights = weights
        self.normalized = normalized

    def cost(self, classes: np.ndarray) -> np.ndarray:
        """Return the cost matrix in the order of ``classes``.

        Parameters
        ----------
        classes : ndarray of shape (K,)

        Returns
        -------
        ndarray of float64 of shape (K, K)

        Raises
        ------
        ValueError
            If a weight is negative or not finite, or a name is no class.
        """
        if not isinstance(self.weights, dict):
            raise ValueError(
                f"ClassWeights: weights is {self.weights!r}, expected a dict of class to weight"
            )
        known = classes.tolist()
        strange = [c for c in self.weights if c not in known]
        if strange:
            raise ValueError(f"ClassWeights: unknown classes {strange}; known: {known}")
        weights = np.array([float(self.weights.get(c, 1.0)) for c in known])
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("ClassWeights: expected finite weights of at least 0")
        return weights[:, None] * (1 - np.eye(len(known)))


class LabelCount(Params):
    """The count ``|y| + |y_i|`` that the micro-F1 surrogate divides by; it is no loss.

    ``|y|`` is the number of nodes that are not background, or of labels in a set.

    Parameters
    ----------
    background : str or int, optional
        The class that does not count; not needed for label sets.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.structure.losses import LabelCount
    >>> LabelCount("O").cost(np.array(["B", "O"])).tolist()
    [[2.0, 1.0], [1.0, 0.0]]
    """

    def __init__(self, background: Any = None):
        self.background = background

    def cost(self, classes: np.ndarray) -> np.ndarray:
        """Return ``[a counts] + [b counts]`` for each pair of classes.

        Parameters
        ----------
        classes : ndarray of shape (K,)

        Returns
        -------
        ndarray of float64 of shape (K, K)

        Raises
        ------
        ValueError
            If ``background`` is no class.
        """
        known = classes.tolist()
        if self.background not in known:
            raise ValueError(
                f"micro-f1: background is {self.background!r}, expected the class that does not "
                f"count, one of {known[:12]}"
            )
        counts = np.array([float(c != self.background) for c in known])
        return counts[:, None] + counts


def refuse_costs(K: int) -> None:
    """Refuse costs of all pairs of classes that do not fit memory, before their allocation.

    Parameters
    ----------
    K : int
        Number of classes.
    """
    advice = "train on fewer classes; ExtremeSVM is for very many, one a row"
    refuse_too_large(16.0 * K * K, f"y: the costs of pairs of {K} classes", advice)
