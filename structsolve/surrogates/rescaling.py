"""The surrogates of the table by name: slack rescaling and its relatives."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..search.psi import BetaPsi, GeneralizedPsi, LogPsi, ProbLossPsi, RatioPsi
from ..structure.ask import ask_loss, loss_advice
from ..structure.losses import LabelCount
from .bicriteria import BiCriteria


def _real(name: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, expected a number")
    return float(value)


@dataclass(repr=False, eq=False)
class _Named(BiCriteria):
    """A row of the table: its arguments, then the keywords of the search."""

    _: KW_ONLY
    search: Any = "auto"
    relaxed: bool | None = None
    warm_start: bool = True
    max_calls: int = 50
    max_kbest: int = 32
    tol: float | None = None


@dataclass(repr=False, eq=False)
class Slack(_Named):
    """Slack rescaling: ``max_y (1 + h) g``, invariant to the scale of the loss.

    Parameters
    ----------
    search, relaxed, warm_start, max_calls, max_kbest, tol : optional
        Settings of the search, as for :class:`BiCriteria`; by keyword.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.surrogates import Slack
    >>> X, Y = [[[1.0], [-1.0]], [[-1.0]]], [["a", "b"], ["b"]]
    >>> model = StructuredSVM("chain", surrogate=Slack(search="exact")).fit(X, Y)
    >>> model.history_[-1]["calls_per_search"]
    1.0
    """

    name = "slack"

    def _psi(self) -> Any:
        return GeneralizedPsi(1, 1)


@dataclass(repr=False, eq=False)
class Generalized(_Named):
    """Generalised scaling: ``max_y h g^beta + g^alpha``; (1, 0) is margin, (1, 1) slack rescaling.

    Parameters
    ----------
    alpha, beta : float
        ``alpha > 0``, ``beta >= 0``, ``0 <= alpha - beta <= 1``.
    search, relaxed, warm_start, max_calls, max_kbest, tol : optional
        Settings of the search, as for :class:`BiCriteria`; by keyword.

    Examples
    --------
    >>> from structsolve.surrogates import Generalized
    >>> Generalized(1, 0.5).make_psi()(2.0, 4.0)
    8.0
    """

    name = "generalized"
    alpha: float = 1.0
    beta: float = 0.5

    def _psi(self) -> Any:
        return GeneralizedPsi(_real("alpha", self.alpha), _real("beta", self.beta))


@dataclass(repr=False, eq=False)
class Beta(_Named):
    """Beta scaling: ``max_y h g^beta + g``; 1/4, 1/2 and 3/4 won Choi's multi-label table (2018).

    Parameters
    ----------
    beta : float, default=0.5
        From 0 (margin rescaling) to 1 (slack rescaling).
    search, relaxed, warm_start, max_calls, max_kbest, tol : optional
        Settings of the search, as for :class:`BiCriteria`; by keyword.

    Examples
    --------
    >>> from structsolve.surrogates import Beta
    >>> Beta(0.5).make_psi()(1.0, 4.0)
    6.0
    """

    name = "beta"
    beta: float = 0.5

    def _psi(self) -> Any:
        return BetaPsi(_real("beta", self.beta))


@dataclass(repr=False, eq=False)
class Log(_Named):
    """Loss-scaled log loss: ``max_y g log(exp(h) + 1)``; with the solvers "sgd", "cutting-plane".

    At h = 0 it is .69 g: divide by log 2 for an upper bound of the loss.

    Parameters
    ----------
    search, relaxed, warm_start, max_calls, max_kbest, tol : optional
        Settings of the search, as for :class:`BiCriteria`; by keyword.

    Examples
    --------
    >>> from structsolve.surrogates import Log
    >>> round(Log().make_psi()(0.0, 2.0), 3)
    1.386
    """

    name = "log"

    def _psi(self) -> Any:
        return LogPsi()


@dataclass(repr=False, eq=False)
class ProbLoss(_Named):
    """ProbLoss: ``2 g NormalCDF(h; 0, 2g/pi)`` for h <= 0, then its tangent ``g + sqrt(g) h``.

    For the Hamming loss; with the solvers "sgd" and "cutting-plane".

    Parameters
    ----------
    convex : bool, default=True
        False uses the first formula for h > 0 too, which is not convex; needs solver "sgd".
    search, relaxed, warm_start, max_calls, max_kbest, tol : optional
        Settings of the search, as for :class:`BiCriteria`; by keyword.

    Examples
    --------
    >>> from structsolve.surrogates import ProbLoss
    >>> ProbLoss().make_psi()(0.0, 3.0)
    3.0
    """

    name = "probloss"
    convex: bool = True

    def _psi(self) -> Any:
        return ProbLossPsi(bool(self.convex))

    def _axes(self, task: Any) -> dict[str, Any]:
        if task.loss.averaged:
            raise ValueError(
                "surrogate 'probloss' is made for a loss that is a sum over nodes; "
                f"{loss_advice(task.space, task.layout, lambda one: not one.averaged)}"
            )
        return super()._axes(task)


@dataclass(repr=False, eq=False)
class MicroF1(_Named):
    """Micro-F1: ``max_y (Hamming + h) / (|y| + |y_i|)``; without margin it is 1 - F1.

    ``|y|`` counts the labels of a set, or the nodes of a labeling that are not background.  The
    estimator's loss is not used.

    Parameters
    ----------
    background : str or int, optional
        The background class, such as "O"; not needed for label sets.
    search, relaxed, warm_start, max_calls, max_kbest, tol : optional
        Settings of the search, as for :class:`BiCriteria`; by keyword.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.surrogates import MicroF1
    >>> X, Y = [[[1.0], [-1.0]], [[-1.0]]], [["B", "O"], ["O"]]
    >>> model = StructuredSVM("chain", surrogate=MicroF1("O")).fit(X, Y)
    >>> [y.tolist() for y in model.predict(X)]
    [['B', 'O'], ['O']]
    """

    name = "micro-f1"
    background: Any = None

    def _psi(self) -> Any:
        return RatioPsi()

    def _axes(self, task: Any) -> dict[str, Any]:
        space = task.space
        try:
            count = ask_loss(space, LabelCount(self.background))(task.layout)
            hamming = ask_loss(space, "hamming")(task.layout)
        except ValueError as error:
            if not str(error).startswith("unknown loss"):
                raise
            raise ValueError(
                "surrogate 'micro-f1' counts the labels of nodes or of a set, which structure "
                f"{space.structure.name!r} does not have"
            ) from None
        if task.labels is not None:
            count.check_truths(task.labels)
            hamming.check_truths(task.labels)
        return {"g_loss": count, "h_loss": hamming, "sign": -1.0}
