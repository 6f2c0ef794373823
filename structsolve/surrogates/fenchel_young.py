"""CRF, SparseMAP and the max-min margin: surrogates defined by a projection."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..projections.choose import euclidean_projection, max_min_projection
from ..utils.params import Params, check_count, parameters
from ._fenchel_young import FenchelYoung
from .given_marginals import given_parts, holds_marginals


class Projected(Params):
    """``max_mu G(mu) + <theta_i, mu - mu(y_i)>`` with the G of a projection.

    Subclasses return the projection from ``_projection(task)``.
    """

    name = "projected"
    #: Whether the surrogate depends on the task loss.
    reads_loss = True
    #: Whether marginals may stand for labels.
    takes_marginals = False
    #: Distance in which G is strongly concave, for solvers that use it.
    concave = ""

    def _projection(self, task: Any) -> Any:
        # Bound to the task's examples.
        raise NotImplementedError(f"{type(self).__name__} does not implement _projection()")

    def _at_truth(self, projection: Any) -> str:
        # The formula of -G(mu(y_i)), an argument of FenchelYoung.
        return "zero"

    def bind(self, task: Any) -> Any:
        """Bind the projection to the operators of a task.

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
            If the structure has no such projection.
        """
        projection = self._projection(task)
        return FenchelYoung(
            projection,
            given_parts(task) if holds_marginals(task.examples) else task.parts,
            self._at_truth(projection),
            self.concave,
            getattr(task.space, "state_rows", 0) if projection.has_state else 0,
        )


def _check_accuracy(surrogate: Any) -> None:
    # max_iter and tol are checked even if a closed form needs neither.
    number = (int, float, np.integer, np.floating)
    name, tol = surrogate.name, surrogate.tol
    check_count(f"surrogate {name!r}: max_iter", surrogate.max_iter)
    if isinstance(tol, bool) or not isinstance(tol, number) or not 0 <= tol < 1:
        raise ValueError(
            f"surrogate {name!r}: tol is {tol!r}, expected a number of at least 0 and below 1"
        )


class CRF(Projected):
    """Conditional random field: ``log sum_y exp <theta, mu(y)> - <theta, mu(y_i)>``.

    It does not depend on the loss.  G is the entropy of the distribution of labels, so the
    structure must have exact marginals; permutations do not (they are #P-hard).  On wide graphs
    with cycles, G is an upper bound of the entropy, and the marginals are relaxed.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X, y = [[-1.0], [1.0], [2.0]], ["a", "b", "b"]
    >>> model = StructuredSVM("multiclass", surrogate="crf", alpha=0.01).fit(X, y)
    >>> model.predict_marginals([[3.0]]).round(2).tolist()
    [[0.0, 1.0]]
    """

    name = "crf"
    reads_loss = False
    takes_marginals = True
    concave = "entropy"

    def _projection(self, task: Any) -> Any:
        try:
            projection = task.projection("entropy")
        except ValueError as error:
            raise ValueError(
                f"surrogate 'crf' needs exact marginals: {error}; use surrogate='sparsemap', "
                "'max-min' or 'margin'"
            ) from None
        if not projection.gibbs:
            raise ValueError(
                f"surrogate 'crf' needs exact marginals, which structure "
                f"{task.space.structure.name!r} does not have (its entropy is that of the "
                "marginals, not of labels); use surrogate='sparsemap', 'max-min' or 'margin'"
            )
        return projection


class SparseMAP(Projected):
    """SparseMAP: ``max_mu <theta, mu - mu(y_i)> - (||mu||^2 - ||mu(y_i)||^2) / 2`` (Niculae 2018).

    The squares are those of the node parts.  For ordered classes on thresholds, whose parts are
    sums of the class probabilities, they are the squares of these probabilities.  Its marginals
    are sparse: most labels have probability zero.  It does not depend on the loss.

    Parameters
    ----------
    max_iter : int, default=100
        Maximum oracle calls per answer, for structures without a native projection.
    tol : float, default=1e-9
        Accuracy of such an answer, relative to the square.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X, y = [[-1.0], [1.0], [2.0]], ["a", "b", "b"]
    >>> model = StructuredSVM("multiclass", surrogate="sparsemap", alpha=0.01).fit(X, y)
    >>> model.predict_marginals([[3.0]], projection="euclidean").tolist()
    [[0.0, 1.0]]
    """

    name = "sparsemap"
    reads_loss = False
    takes_marginals = True
    concave = "euclidean"

    def __init__(self, max_iter: int = 100, tol: float = 1e-9):
        self.max_iter = max_iter
        self.tol = tol

    def _projection(self, task: Any) -> Any:
        _check_accuracy(self)
        return euclidean_projection(task, int(self.max_iter), float(self.tol))

    def _at_truth(self, projection: Any) -> str:
        return "state" if projection.has_state and projection.has_term else "squares"


@parameters
class MaxMin(Projected):
    """Max-min margin: ``max_mu min_nu nu' A mu + <theta, mu - mu(y_i)>`` (Nowak-Vila et al. 2020).

    The loss is ``L(y, y') = mu(y)' A mu(y')``, both mu and nu are in the marginal polytope.  Unlike
    the margin it is consistent: with enough data the minimiser predicts optimally.

    Closed forms are used where they exist: 0-1 loss on classes, the absolute loss on ordered
    classes, the Hamming loss on nodes without pairs.  Elsewhere the saddle point is computed over
    mixtures of labels that the structure's oracle finds, or by mirror prox over its projection;
    every gap includes the error.

    Parameters
    ----------
    geometry : {"auto", "labels", "entropy", "euclidean"}
        How to compute it. "auto" is "labels": solve the game between the labels found so far, and
        add better ones from the oracle until none is left.  The other methods are geometries of
        mirror prox; every iteration projects mu and nu twice.
    max_iter : int, default=10
        Maximum oracle calls, or iterations of mirror prox, per answer.
    tol : float, default=1e-4
        Stop an answer when its certificate is below this share of the surrogate's value.  Training
        may use a larger share while the example's dual variable is far from optimal.
    warm_start : bool, default=True
        Start each answer from the example's last one.
    closed_form : bool, default=True
        False: compute the saddle point iteratively even where a closed form exists.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X, y = [[-1.0], [1.0], [2.0]], ["a", "b", "b"]
    >>> model = StructuredSVM("multiclass", surrogate="max-min", alpha=0.01).fit(X, y)
    >>> model.predict([[3.0]]).tolist()
    ['b']
    """

    name = "max-min"

    geometry: str = "auto"
    max_iter: int = 10
    tol: float = 1e-4
    warm_start: bool = True
    closed_form: bool = True

    def _projection(self, task: Any) -> Any:
        _check_accuracy(self)
        return max_min_projection(task, self)
