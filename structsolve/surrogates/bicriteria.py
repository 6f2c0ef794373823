"""BiCriteria: a psi, a search and their settings, bound to the examples of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..search import check_search, make_search
from ..search.check import check_psi
from ..search.exact import Counting
from ..search.plane import LabelPlane
from ..search.psi import BetaPsi, GeneralizedPsi, LogPsi, ProbLossPsi, Psi, PythonPsi, RatioPsi
from ..utils.params import Params
from ..utils.positional import positional_deprecated
from ._bicriteria import BiCriteriaSurrogate
from .checks import pick_relaxation, refuse_wrong_truths

# These are known to satisfy the searches' conditions.
OURS = (GeneralizedPsi, BetaPsi, LogPsi, ProbLossPsi, RatioPsi)


class BiCriteria(Params):
    """``max_y psi(h(y), g(y))`` with the margin error h and the loss g (Choi 2018).

    ``h(y) = <theta_i, mu(y) - mu(y_i)>`` and ``g(y) = L(y, y_i)``.  The oracle of margin rescaling
    suffices: it finds ``argmax h + lam g``, a few times per example.

    Parameters
    ----------
    psi : object
        Has ``value(h, g)`` and ``partials(h, g)``, which returns both partial derivatives; a
        compiled :class:`structsolve.search.psi.Psi` is called without Python.  Where psi is
        positive it must grow with h and g and be quasi-concave.  This is checked on a grid of
        points, up to the largest loss that a label of the training data can have.  ``affine``
        and ``convex`` declare these properties in h (False if missing): affine ones have a dual and
        train with every solver, convex ones with cutting planes and SGD, others with SGD.
    search : str or Search, default="auto"
        "convex-hull" (any psi), "exact" (structures that count, such as chains), and for slack
        rescaling "angular", "bisecting", "binary" and "sarawagi".  "auto" is "convex-hull", and
        falls back to "exact" if that leaves the best label open and structure and loss can count.
    relaxed : bool, optional
        False: the maximum over labels.  True: the maximum over the convex hull of the labels'
        points (h, g), which a mixture of two labels may attain; it is larger, and the convex hull
        search finds it exactly.  Default: False, unless the structure's oracle solves a relaxation,
        whose points are mixtures themselves.
    warm_start : bool, default=True
        Start each search of an example from the labels at which its last search ended.
    max_calls : int, default=50
        Maximum oracle calls per search.
    max_kbest : int, default=32
        Number of best labels to list with a k-best oracle, if the convex hull leaves open which
        label is best and the oracle cannot count.
    tol : float, optional
        Relative accuracy of a search; every gap includes its possible error.

    Examples
    --------
    A custom psi:

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

    @positional_deprecated
    def __init__(
        self,
        psi: Any,
        search: Any = "auto",
        *,
        relaxed: bool | None = None,
        warm_start: bool = True,
        max_calls: int = 50,
        max_kbest: int = 32,
        tol: float | None = None,
    ):
        self.psi, self.search, self.relaxed, self.warm_start = psi, search, relaxed, warm_start
        self.max_calls, self.max_kbest, self.tol = max_calls, max_kbest, tol

    def make_psi(self) -> Any:
        """Return the native psi; custom ones are checked.

        Returns
        -------
        structsolve.search.psi.Psi

        Raises
        ------
        ValueError
            If psi is not increasing and quasi-concave, or its parameters are no numbers.
        """
        psi = self._psi()
        if type(psi) not in OURS:
            check_psi(psi)
        return psi

    def _psi(self) -> Any:
        if type(self.psi) in OURS and not isinstance(self.psi, RatioPsi):
            return self.psi
        if isinstance(self.psi, RatioPsi):
            raise ValueError(
                "psi 'micro-f1' is a ratio of counts and 0 for every loss; use surrogate='micro-f1'"
            )
        return self.psi if isinstance(self.psi, Psi) else PythonPsi(self.psi)

    def _axes(self, task: Any) -> dict[str, Any]:
        # Parts of h and g: "g_loss", and "h_loss" and "sign" if needed.
        return {"g_loss": task.loss}

    def bind(self, task: Any) -> Any:
        """Bind psi and search to the operators of a task.

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
            If psi, search, loss and the structure's oracle are incompatible.
        """
        if self.max_kbest < 0:
            raise ValueError(
                f"surrogate {self.name!r}: max_kbest is {self.max_kbest!r}, expected >= 0"
            )
        psi, axes = self._psi(), self._axes(task)
        auto = isinstance(self.search, str) and self.search == "auto"
        search = make_search("convex-hull" if auto else self.search, self.max_calls, self.tol)
        losses = [axes["g_loss"], axes.get("h_loss")]
        decomposes = all(loss is None or loss.decomposes for loss in losses)
        if search.constrained and not decomposes:
            raise ValueError(
                f"search {search.name!r} needs a loss that decomposes over the parts, which "
                f"{type(axes['g_loss']).__name__} does not; use search='convex-hull'"
            )
        cones = task.power("cones") if search.constrained else None
        counts = task.power("counts") if search.counting and decomposes else None
        # The 0-1 loss counts to one: the two best labels suffice.
        able = task.power("kbest") if counts is None and axes["g_loss"].zero_one else counts
        check_search(search, psi, cones, able, task.space.structure.name)
        relaxation = pick_relaxation(None, task) if search.fractional and decomposes else None
        relaxed = relaxation is not None if self.relaxed is None else bool(self.relaxed)
        if relaxed and not search.fractional:
            raise ValueError(
                f"surrogate {self.name!r}: search {search.name!r} maximises over labels, not over "
                "their hull; use relaxed=False, or search='convex-hull'"
            )
        refuse_wrong_truths(task)
        closer = None
        if auto and not relaxed and _counts(task, axes):
            closer, counts = Counting(), task.power("counts")
        powers = {"cones": cones, "counts": counts, "relaxation": relaxation if relaxed else None}
        plane = _plane(task, axes, **powers)
        if type(psi) not in OURS:
            _check_over(psi, 0.0 if task.labels is None else plane.largest_loss(task.labels))
        return BiCriteriaSurrogate(
            plane,
            psi,
            search,
            relaxed,
            warm_start=bool(self.warm_start),
            max_kbest=0 if relaxed else int(self.max_kbest),
            labels=task.labels,
            closer=closer,
        )


def _check_over(psi: Any, most: float) -> None:
    """Check a psi on the losses that the data can have, and on margins of that size."""
    if not 0 < most < np.inf:
        check_psi(psi)
        return
    shares = np.concatenate([np.linspace(0, 1, 11), [0.01, 0.05, 0.25]])
    losses = np.concatenate([most * shares, np.arange(11.0)[np.arange(11.0) <= most]])
    size = max(1.0, most / 10)
    margins = np.concatenate([size * np.linspace(-10, 10, 21), [-0.3, 0.3]])
    check_psi(psi, margins, np.unique(losses))


def _plane(task: Any, axes: dict[str, Any], **powers: Any) -> Any:
    return LabelPlane(
        task.layout,
        task.oracle,
        task.parts,
        axes["g_loss"],
        axes.get("h_loss"),
        kbest=task.power("kbest"),
        augmented=task.power("augmented"),
        sign=axes.get("sign", 1.0),
        **powers,
    )


def _counts(task: Any, axes: dict[str, Any]) -> bool:
    """Return whether the oracle answers for every count, and the loss is a count."""
    counts = task.power("counts")
    if counts is None or not axes["g_loss"].decomposes:
        return False
    try:
        Counting().extra_bytes(_plane(task, axes, counts=counts), task.labels)
    except ValueError:
        return False
    return True
