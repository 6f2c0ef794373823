"""Surrogates on the scores of the true class and k rivals, as problems of k + 1 classes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.registry import default, get_structure
from structsolve.surrogates.calls import cut
from structsolve.surrogates.task import Task
from structsolve.utils.arrays import padded
from structsolve.utils.params import check_types


class KRivals:
    """Values and subgradients of a surrogate on the scores of the true class and its rivals.

    Parameters
    ----------
    surrogate : str or object
        "margin" and "squared-hinge" use the best rival only; other surrogates of the package,
        given by name or as an object, use all rivals.

    Raises
    ------
    ValueError, TypeError
        If the argument is not a surrogate.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.extreme.solvers.k_rivals import KRivals
    >>> values, steps = KRivals("margin").evaluate(np.array([[0.2, 0.5, 0.1]]))
    >>> values.tolist(), steps.tolist()
    ([1.3], [[1.0, -1.0, 0.0]])
    """

    def __init__(self, surrogate: Any):
        if surrogate != "squared-hinge":
            surrogate = default().object_of("surrogates", surrogate)
            check_types(surrogate, f"surrogate {getattr(surrogate, 'name', '')!r}: ")
        if getattr(surrogate, "warm_start", False):
            # A search that starts from the previous row's answer would depend on that row.
            surrogate = copy.copy(surrogate)
            surrogate.warm_start = False
        self.surrogate = surrogate
        self.name = surrogate if isinstance(surrogate, str) else getattr(surrogate, "name", "")
        self._bound: dict[int, Any] = {}

    def evaluate(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values of the surrogate and the step for each class.

        Parameters
        ----------
        scores : ndarray of float of shape (n, k + 1)
            Scores of the true class, then of its rivals, best first; -inf if there is no rival.

        Returns
        -------
        values : ndarray of float64 of shape (n,)
            At least the surrogate of these classes.
        steps : ndarray of float64 of shape (n, k + 1)
            Negative subgradient with respect to the scores.
        """
        scores = np.asarray(scores, dtype=np.float64)
        if self.name in ("margin", "squared-hinge"):
            return _hinge(scores, self.name == "squared-hinge")
        values, steps = np.zeros(len(scores)), np.zeros(scores.shape)
        truth = np.zeros(1, np.int32)
        kept = np.isfinite(scores).sum(1)
        theta = np.zeros(padded(scores.shape[1]))
        for i in np.flatnonzero(kept > 1):
            theta[: kept[i]], theta[kept[i] :] = scores[i, : kept[i]], 0
            answer = cut(self._of(kept[i]), 0, theta[: padded(kept[i])], truth=truth)
            values[i] = answer.bound
            np.add.at(steps[i], answer.index, answer.value)
        return values, steps

    def _of(self, n_classes: int) -> Any:
        if n_classes not in self._bound:
            classes = list(range(n_classes))
            space, _ = get_structure("multiclass").make_space([[0.0]] * n_classes, classes)
            task = Task(space, Examples(np.array([0, 1])))
            self._bound[n_classes] = self.surrogate.bind(task)
        return self._bound[n_classes]


def _hinge(scores: np.ndarray, squared: bool) -> tuple[np.ndarray, np.ndarray]:
    best = 1 + scores[:, 1:].argmax(1)  # the first of equals
    rows = np.arange(len(scores))
    values = np.maximum(0, 1 + scores[rows, best] - scores[:, 0])
    size = 2 * values if squared else (values > 0).astype(float)
    steps = np.zeros(scores.shape)
    steps[:, 0], steps[rows, best] = size, -size
    return (values**2 if squared else values), steps
