"""Surrogates in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.params import Params
from .python_surrogate import PythonSurrogate


class CutSurrogate(Params):
    """A surrogate loss in plain Python, given by its cuts.

    Subclasses store their constructor arguments unmodified and implement :meth:`cut`.
    :mod:`structsolve.structure.calls` calls the structure's operators of a task, compiled or not.

    Attributes
    ----------
    affine : bool, default=True
        ``H_i`` is the largest of finitely many cuts: "bcfw" has a dual.
    convex : bool, default=True
        Every cut lies below ``H_i`` everywhere: cutting planes have a lower bound.
    exact : bool, default=True
        ``H_i(theta)`` is the cut's value.  If False, ``cut`` also returns an upper bound.

    Examples
    --------
    Margin rescaling with a weighted loss:

    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.structure import calls
    >>> from structsolve.surrogates import CutSurrogate
    >>> class WideMargin(CutSurrogate):
    ...     name = "wide-margin"
    ...     def __init__(self, width=2.0):
    ...         self.width = width
    ...     def cut(self, task, i, theta, truth):
    ...         scores = theta.copy()
    ...         calls.augment(task.loss, i, truth, self.width, scores)
    ...         label, _, _ = calls.argmax(task.oracle, i, scores)
    ...         index, value = calls.difference(task.parts, i, truth, label)
    ...         return index, value, self.width * calls.loss_value(task.loss, i, truth, label)
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "b"]
    >>> StructuredSVM("multiclass", surrogate=WideMargin()).fit(X, y).stop_reason_
    'converged'
    """

    affine = True
    convex = True
    exact = True

    def cut(self, task: Any, i: int, theta: np.ndarray, truth: np.ndarray) -> tuple[Any, ...]:
        """Return the largest cut ``H_i(w) >= b - <theta_i(w), p>`` at theta, valid for all w.

        Parameters
        ----------
        task : structsolve.surrogates.task.Task
            Oracle, parts, loss and powers of the structure, bound to the examples.
        i : int
            Number of the example.
        theta : ndarray of float64
            Its part scores, flat; read-only.
        truth : ndarray of int32
            Its true label, encoded.

        Returns
        -------
        index : array of int
            Positions in ``theta`` of the entries of p, in any order; others are 0.
        value : array of float
        b : float
        bound : float
            An upper bound of ``H_i`` at these scores; only if ``exact`` is False.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement cut()")

    def bind(self, task: Any) -> PythonSurrogate:
        """Bind the surrogate to the operators of a task.

        Parameters
        ----------
        task : structsolve.surrogates.task.Task

        Returns
        -------
        Surrogate
            Native.
        """
        return PythonSurrogate(self, task)
