"""Bi-criteria surrogates, as users name them: slack rescaling and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..params import Params
from .margin_loss import use_relaxation


class BiCriteria(Params):
    """``max_y psi(h(y), g(y))`` with the margin error h and the loss g (FORMULAS.md section 2).

    ``h(y) = <theta_i, mu(y) - mu(y_i)>`` and ``g(y) = L(y, y_i)``.  It is found with the oracle of
    margin rescaling alone, asked for ``argmax h + lam g`` a few times per example.

    Parameters
    ----------
    psi : object
        With ``value(h, g)`` and ``partials(h, g)``, which returns both partial derivatives; a
        compiled :class:`structsolve.search.psi.Psi` is called without Python.  Where it is
        positive it must grow with h and g and be quasi-concave, which is checked.  ``affine``
        and ``convex`` say what it is in h (False where missing): affine ones have a dual and
        train with every solver, convex ones with cutting planes and SGD, others with SGD.
    search : str or Search, default="auto"
        "convex-hull" (any psi), "exact" (structures that count, such as chains), and for slack
        rescaling "angular", "bisecting", "binary" and "sarawagi".  "auto" is "convex-hull", and
        with ``relaxed=False`` "exact" where structure and loss can count.
    relaxed : bool, optional
        True: the maximum over the convex hull of the labels' points (h, g), which a mixture of
        two labels may attain.  False: the maximum over labels.  The first is larger, and the
        convex hull search finds it exactly; it is its default, labels are that of the others.
    warm_start : bool, default=True
        Begin each search of an example at the labels where its last one ended.
    max_calls : int, default=50
        Oracle calls per search at most.
    max_kbest : int, default=32
        With ``relaxed=False``, where the convex hull leaves it open which label is best: ask for
        up to so many of the best labels, of an oracle with k-best.
    tol : float, optional
        Relative accuracy of a search; what it may have missed is part of every gap.

    Examples
    --------
    A psi of one's own:

    >>> from structsolve import StructuredSVM
    >>> from structsolve.surrogates import BiCriteria
    >>> class Half:
    ...     affine = True
    ...     def value(self, h, g):
    ...         return (h / 2 + 1) * g
    ...     def partials(self, h, g):
    ...         return g / 2, h / 2 + 1
    >>> model = StructuredSVM("multiclass", surrogate=BiCriteria(Half()))
    >>> model.fit([[-1.0], [1.0]], ["a", "b"]).predict([[2.0]]).tolist()
    ['b']
    """

    name = "bi-criteria"

    def __init__(
        self,
        psi: Any,
        search: Any = "auto",
        relaxed: bool | None = None,
        warm_start: bool = True,
        max_calls: int = 50,
        max_kbest: int = 32,
        tol: float | None = None,
    ):
        self.psi = psi
        self._settings(search, relaxed, warm_start, max_calls, max_kbest, tol)

    def _settings(self, search, relaxed, warm_start, max_calls, max_kbest, tol) -> None:
        self.search = search
        self.relaxed = relaxed
        self.warm_start = warm_start
        self.max_calls = max_calls
        self.max_kbest = max_kbest
        self.tol = tol

    def make_psi(self) -> Any:
        """Return the native psi, checked where it is not one of ours."""
        from ..search import check, psi

        if type(self.psi) in (psi.Generalized, psi.Beta, psi.Log, psi.ProbLoss):
            return self.psi
        if isinstance(self.psi, psi.Ratio):
            raise ValueError(
                "psi 'micro-f1' is a ratio of counts and 0 for every loss; use surrogate='micro-f1'"
            )
        native = self.psi if isinstance(self.psi, psi.Psi) else psi.PythonPsi(self.psi)
        check.check_psi(native)
        return native

    def axes(self, problem: Any) -> dict[str, Any]:
        """Return what h and g are made of: ``g_loss``, and ``h_loss`` and ``sign`` if need be."""
        return {"g_loss": problem.loss}

    def bind(self, problem: Any) -> Any:
        """Return the native surrogate on a problem's examples."""
        from ..search import check_search, make_search
        from ..search.plane import LabelPlane
        from .bicriteria import BiCriteriaSurrogate

        structure = problem.space.structure.name
        psi = self.make_psi()
        axes = self.axes(problem)
        name = self.search
        if isinstance(name, str) and name == "auto":
            exact = self.relaxed is not None and not self.relaxed and _counts(problem, axes)
            name = "exact" if exact else "convex-hull"
        search = make_search(name, self.max_calls, self.tol)
        check_search(search, psi, problem.oracle, structure)
        relaxed = search.fractional if self.relaxed is None else bool(self.relaxed)
        if relaxed and not search.fractional:
            raise ValueError(
                f"surrogate {self.name!r}: search {search.name!r} maximises over labels, not over "
                "their hull; use relaxed=False, or search='convex-hull'"
            )
        losses = [axes["g_loss"], axes.get("h_loss")]
        decomposes = all(loss is None or loss.decomposes for loss in losses)
        refuse_wrong_truths(problem)
        use = (
            relaxed and decomposes and use_relaxation(None, problem.oracle, problem.loss, structure)
        )
        examples = problem.examples
        plane = LabelPlane(
            problem.potentials,
            problem.oracle,
            problem.parts,
            labels=examples.labels,
            label_offsets=examples.label_offsets,
            relaxed=use,
            **axes,
        )
        return BiCriteriaSurrogate(
            plane,
            psi,
            search,
            relaxed,
            examples.label_offsets,
            bool(self.warm_start),
            0 if relaxed else int(self.max_kbest),
        )


def _counts(problem: Any, axes: dict[str, Any]) -> bool:
    """Tell whether the oracle answers for every count, and the loss is one."""
    from ..search.exact import Counting
    from ..search.plane import LabelPlane

    if not problem.oracle.has_counts or not axes["g_loss"].decomposes:
        return False
    examples = problem.examples
    plane = LabelPlane(
        problem.potentials,
        problem.oracle,
        problem.parts,
        labels=examples.labels,
        label_offsets=examples.label_offsets,
        **axes,
    )
    try:
        Counting().extra_bytes(plane)
    except ValueError:
        return False
    return True


def _real(name: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, expected a number")
    return float(value)


def refuse_wrong_truths(problem: Any) -> None:
    """Refuse a task loss that is not 0 at the truth."""
    from ..sweep import losses

    examples = problem.examples
    found = losses(problem.loss, examples.labels, examples.label_offsets)
    wrong = np.flatnonzero(found != 0)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"example {i}: the loss of the true label is {found[i]:g}, expected 0; a bi-criteria "
            "surrogate weighs losses that are 0 at the truth and positive elsewhere"
        )


class _Named(BiCriteria):
    """A row of the table: parameters are those of the search."""

    def __init__(
        self,
        search: Any = "auto",
        relaxed: bool | None = None,
        warm_start: bool = True,
        max_calls: int = 50,
        max_kbest: int = 32,
        tol: float | None = None,
    ):
        self._settings(search, relaxed, warm_start, max_calls, max_kbest, tol)


class Slack(_Named):
    """Slack rescaling: ``max_y (1 + h) g``, invariant to the scale of the loss.

    Parameters
    ----------
    search : str, default="auto"
    relaxed : bool, optional
    warm_start : bool, default=True
    max_calls : int, default=50
    max_kbest : int, default=32
    tol : float, optional
        As for :class:`BiCriteria`.

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

    def make_psi(self) -> Any:
        from ..search import psi

        return psi.Generalized(1, 1)


class Generalized(_Named):
    """Generalised scaling: ``max_y h g^beta + g^alpha``; (1, 0) is margin, (1, 1) slack rescaling.

    Parameters
    ----------
    alpha, beta : float
        ``alpha > 0``, ``beta >= 0``, ``0 <= alpha - beta <= 1``.
    search : str, default="auto"
    relaxed : bool, optional
    warm_start : bool, default=True
    max_calls : int, default=50
    max_kbest : int, default=32
    tol : float, optional
        As for :class:`BiCriteria`.

    Examples
    --------
    >>> from structsolve.surrogates import Generalized
    >>> Generalized(1, 0.5).make_psi().at(2.0, 4.0)
    8.0
    """

    name = "generalized"

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 0.5,
        search: Any = "auto",
        relaxed: bool | None = None,
        warm_start: bool = True,
        max_calls: int = 50,
        max_kbest: int = 32,
        tol: float | None = None,
    ):
        self.alpha = alpha
        self.beta = beta
        self._settings(search, relaxed, warm_start, max_calls, max_kbest, tol)

    def make_psi(self) -> Any:
        from ..search import psi

        return psi.Generalized(_real("alpha", self.alpha), _real("beta", self.beta))


class Beta(_Named):
    """Beta scaling: ``max_y h g^beta + g``; 1/4, 1/2 and 3/4 won the thesis' multi-label table.

    Parameters
    ----------
    beta : float, default=0.5
        From 0 (margin rescaling) to 1 (slack rescaling).
    search : str, default="auto"
    relaxed : bool, optional
    warm_start : bool, default=True
    max_calls : int, default=50
    max_kbest : int, default=32
    tol : float, optional
        As for :class:`BiCriteria`.

    Examples
    --------
    >>> from structsolve.surrogates import Beta
    >>> Beta(0.5).make_psi().at(1.0, 4.0)
    6.0
    """

    name = "beta"

    def __init__(
        self,
        beta: float = 0.5,
        search: Any = "auto",
        relaxed: bool | None = None,
        warm_start: bool = True,
        max_calls: int = 50,
        max_kbest: int = 32,
        tol: float | None = None,
    ):
        self.beta = beta
        self._settings(search, relaxed, warm_start, max_calls, max_kbest, tol)

    def make_psi(self) -> Any:
        from ..search import psi

        return psi.Beta(_real("beta", self.beta))


class Log(_Named):
    """Loss-scaled log loss: ``max_y g log(exp(h) + 1)``; with the solvers "sgd", "cutting-plane".

    At h = 0 it is .69 g: divide by log 2 for an upper bound of the loss.

    Parameters
    ----------
    search : str, default="auto"
    relaxed : bool, optional
    warm_start : bool, default=True
    max_calls : int, default=50
    max_kbest : int, default=32
    tol : float, optional
        As for :class:`BiCriteria`.

    Examples
    --------
    >>> from structsolve.surrogates import Log
    >>> round(Log().make_psi().at(0.0, 2.0), 3)
    1.386
    """

    name = "log"

    def make_psi(self) -> Any:
        from ..search import psi

        return psi.Log()


class ProbLoss(_Named):
    """ProbLoss: ``2 g NormalCDF(h; 0, 2g/pi)`` for h <= 0, then its tangent ``g + sqrt(g) h``.

    For the Hamming loss; with the solvers "sgd" and "cutting-plane".

    Parameters
    ----------
    convex : bool, default=True
        False goes on with the first formula, which is not convex: solver "sgd".
    search : str, default="auto"
    relaxed : bool, optional
    warm_start : bool, default=True
    max_calls : int, default=50
    max_kbest : int, default=32
    tol : float, optional
        As for :class:`BiCriteria`.

    Examples
    --------
    >>> from structsolve.surrogates import ProbLoss
    >>> ProbLoss().make_psi().at(0.0, 3.0)
    3.0
    """

    name = "probloss"

    def __init__(
        self,
        convex: bool = True,
        search: Any = "auto",
        relaxed: bool | None = None,
        warm_start: bool = True,
        max_calls: int = 50,
        max_kbest: int = 32,
        tol: float | None = None,
    ):
        self.convex = convex
        self._settings(search, relaxed, warm_start, max_calls, max_kbest, tol)

    def make_psi(self) -> Any:
        from ..search import psi

        return psi.ProbLoss(bool(self.convex))

    def axes(self, problem: Any) -> dict[str, Any]:
        if problem.loss.averaged:
            raise ValueError(
                "surrogate 'probloss' is made for the Hamming loss, a sum over nodes; use "
                "loss='hamming'"
            )
        return super().axes(problem)


class MicroF1(_Named):
    """Micro-F1: ``max_y (Hamming + h) / (|y| + |y_i|)``; without margin it is 1 - F1.

    ``|y|`` counts the labels of a set, or the nodes of a labeling that are not background.  The
    loss of the estimator plays no part in it.

    Parameters
    ----------
    background : str or int, optional
        The class that does not count, such as "O"; label sets need none.
    search : str, default="auto"
    relaxed : bool, optional
    warm_start : bool, default=True
    max_calls : int, default=50
    max_kbest : int, default=32
    tol : float, optional
        As for :class:`BiCriteria`.

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

    def __init__(
        self,
        background: Any = None,
        search: Any = "auto",
        relaxed: bool | None = None,
        warm_start: bool = True,
        max_calls: int = 50,
        max_kbest: int = 32,
        tol: float | None = None,
    ):
        self.background = background
        self._settings(search, relaxed, warm_start, max_calls, max_kbest, tol)

    def make_psi(self) -> Any:
        from ..search import psi

        return psi.Ratio()

    def axes(self, problem: Any) -> dict[str, Any]:
        from ..losses import LabelCount
        from ..problem import ask_loss

        space, examples = problem.space, problem.examples
        return {
            "g_loss": ask_loss(space, examples, LabelCount(self.background)),
            "h_loss": ask_loss(space, examples, "hamming"),
            "sign": -1.0,
        }
