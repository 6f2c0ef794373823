"""Margin rescaling and its variants, for users."""

from __future__ import annotations

from typing import Any

from ..search.hull import ConvexHull
from ..search.plane import LabelPlane
from ..search.psi import GeneralizedPsi
from ..utils.params import Params
from ._bicriteria import BiCriteriaSurrogate
from ._margin import MarginRescaling
from ._unit_margin import UnitMarginRescaling
from .checks import pick_relaxation, refuse_wrong_truths


class Margin(Params):
    """Margin rescaling: ``max_y L(y, y_i) + <theta_i, mu(y) - mu(y_i)>``.

    Parameters
    ----------
    relaxed : bool, optional
        Maximise over the relaxation that the structure's oracle solves, whose answers may be
        fractional, instead of over labels.  By default only if the oracle is exact over the
        relaxation but not over labels.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.surrogates import Margin
    >>> StructuredSVM("multiclass", surrogate=Margin()).get_params()["surrogate"]
    Margin(relaxed=None)
    """

    name = "margin"
    #: Of parts that share nothing, it is the sum of the surrogates of each.
    adds_up = True

    def __init__(self, relaxed: bool | None = None):
        self.relaxed = relaxed

    def bind(self, task: Any) -> Any:
        """Bind the surrogate to the operators of a task.

        Parameters
        ----------
        task : structsolve.surrogates.task.Task

        Returns
        -------
        Surrogate
            Native.

        Raises
        ------
        ValueError
            If no oracle call can maximise the score plus this loss.
        """
        relaxation = pick_relaxation(self.relaxed, task)
        if relaxation is not None:
            plane = LabelPlane(
                task.layout, task.oracle, task.parts, task.loss, relaxation=relaxation
            )
            # h + g: the tangent has lam = 1 everywhere, so that one call is a search.
            search = ConvexHull(max_calls=1)
            return BiCriteriaSurrogate(plane, GeneralizedPsi(1, 0), search, True, warm_start=False)
        return MarginRescaling(
            task.layout,
            task.oracle,
            task.parts,
            task.loss,
            None if task.loss.decomposes else task.power("kbest"),
            task.power("augmented"),
        )


class LP(Margin):
    """Margin rescaling over the linear relaxation: labels by linear programs.

    The loss-augmented scores are maximised over the polytope that the structure's oracle solves
    (``oracle="lp"`` for any structure that declares one).  Answers may be fractional.  The
    objective is an upper bound of the objective of "margin", and its minimum is found even where
    the best label is hard to find.  If all vertices are labels, it equals "margin".

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> Y = [[1, 0, 1], [0, 1, 1], [1, 1, 0]]
    >>> model = StructuredSVM("multilabel", surrogate="lp", oracle="lp", alpha=0.1)
    >>> model.fit([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], Y).stop_reason_
    'converged'
    """

    name = "lp"

    def __init__(self) -> None:
        super().__init__(relaxed=True)


class UnitMargin(Params):
    """A margin of 1 in units of the loss: ``max(0, max_y 1 + h(y) / L(y, y_i))``.

    ``h(y)`` is the score of y less the score of the truth.  The loss of
    :class:`~structsolve.HierarchicalSVM` for single leaves is the length of the difference of two
    labels; with it, this is the variant of that machine whose features are divided by their length.

    It needs an exact oracle and a loss that decomposes and is positive for every wrong label.  A
    cut costs a few oracle calls.

    Examples
    --------
    >>> from structsolve import HierarchicalSVM
    >>> animals = {"bird": ["owl", "duck"], "mammal": ["cat"]}
    >>> model = HierarchicalSVM(animals, surrogate="unit-margin", alpha=0.01)
    >>> X = [[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]]
    >>> model.fit(X, ["owl", "duck", "cat"]).stop_reason_
    'converged'
    """

    name = "unit-margin"

    def bind(self, task: Any) -> Any:
        """Bind the surrogate to the operators of a task.

        Parameters
        ----------
        task : structsolve.surrogates.task.Task

        Returns
        -------
        Surrogate
            Native.

        Raises
        ------
        ValueError
            If the oracle may miss the best label, or the loss does not decompose or is not 0 at
            the truth.
        """
        refuse_wrong_truths(task)
        return UnitMarginRescaling(task.layout, task.oracle, task.parts, task.loss)
