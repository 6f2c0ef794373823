"""The generalisation bound of conditional risk minimisation, and its terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structsolve.estimators.common import EstimatorMixin
from structsolve.plugins.risk._decode import surrogates
from structsolve.plugins.risk.targets import PartTargets
from structsolve.structure.ask import make_layout
from structsolve.structure.pack import pack


@dataclass(frozen=True)
class RiskBound:
    """The bound of Goh and Jaillet (2017), Theorem 4.2, equation (12), term by term.

    With probability at least ``1 - delta`` over the training set,

        risk <= surrogate + 4 L nu / (rho n) + L (8 nu / rho + 1) sqrt(ln(1/delta) / (2 n)),

    ``nu = kappa/lambda + (kappa/lambda)^{3/2}``.

    Parameters
    ----------
    surrogate : float
        Mean of ``L^rho`` (10) over the training set; at least the mean training loss.
    training_loss : float
        Mean loss over the training set.
    stability, confidence : float
        The second and the third term.
    rho, delta, kappa, max_loss, alpha : float
        Values used for the bound; alpha is lambda.
    n : int
        Training examples.
    """

    surrogate: float
    training_loss: float
    stability: float
    confidence: float
    rho: float
    delta: float
    kappa: float
    max_loss: float
    alpha: float
    n: int

    @property
    def bound(self) -> float:
        """The right-hand side of (12)."""
        return self.surrogate + self.stability + self.confidence


def _check_bound_arguments(rho: float, delta: float) -> None:
    """Refuse rho and delta for which equation (12) does not hold."""
    if not rho > 0 or not np.isfinite(rho):
        raise ValueError(f"rho is {rho!r}, expected a finite number > 0")
    if not 0 < delta < 1:
        raise ValueError(f"delta is {delta!r}, expected a number between 0 and 1")


class RiskDiagnostics(EstimatorMixin):
    """Mixin: the surrogate of the loss, and the generalisation bound, of a fitted minimiser."""

    alpha_: float
    kernel_bound_: float
    space_: Any
    kernel: Any
    loss: Any
    alphas: Any
    fit_intercept: bool
    n_jobs: int | None
    _targets: Any
    _joint: Any
    _new_rows: Any
    _is_mapped: Any
    _scores: Any

    # -- diagnostics ----------------------------------------------------------------------------

    def surrogate_loss(
        self, X: Any, y: Any, rho: float, max_loss: float | None = None
    ) -> np.ndarray:
        """Return the surrogate ``L^rho(x_i, y_i)`` of equation (10), an upper bound of the loss.

        ``min(max_y' L(y', y_i) + (min R(.|x_i) - R(y'|x_i)) / rho, max_loss)``: as rho tends to 0,
        it tends to the loss of the prediction (of the worst one, if several have least risk).

        Parameters
        ----------
        X, y : as for ``fit``
        rho : float
            Positive.
        max_loss : float, optional
            Larger values are clipped to it; by default none are.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If rho is not positive, or labels are continuous.
        """
        _check_bound_arguments(rho, 0.5)
        values, _ = self._surrogates(X, y, rho)
        return values if max_loss is None else np.minimum(values, max_loss)

    def risk_bound(
        self,
        X: Any,
        y: Any,
        rho: float = 1.0,
        delta: float = 0.05,
        max_loss: float | None = None,
        kappa: float | None = None,
    ) -> RiskBound:
        """Return the generalisation bound of Theorem 4.2, equation (12), with its terms.

        Parameters
        ----------
        X, y : the training data, as given to ``fit``
        rho : float, default=1.0
            Chosen before seeing the data. A large rho loosens the surrogate and shrinks the other
            terms.
        delta : float, default=0.05
            The bound holds with probability at least ``1 - delta``.
        max_loss : float, optional
            An upper bound of the loss of any two labels. The default is the largest loss of any
            label against a training label; other labels may have larger ones.
        kappa : float, optional
            An upper bound of ``k(x, x)``. The default is its maximum over the training set, which
            is valid everywhere for kernels with constant ``k(x, x)``, such as "rbf".

        Returns
        -------
        RiskBound

        Raises
        ------
        ValueError
            For models that the theorem does not cover (with an intercept, a joint kernel, or alpha
            chosen from the data), when X is not the training set, or when rho or delta is out of
            range.
        """
        check_is_fitted(self, "space_")
        _check_bound_arguments(rho, delta)
        if self.fit_intercept or self._joint is not None or self.alphas is not None:
            raise ValueError(
                "risk_bound: Theorem 4.2 covers only fit_intercept=False, joint_kernel=None and a "
                "fixed alpha; surrogate_loss bounds the loss of any model"
            )
        values, losses = self._surrogates(X, y, rho)
        if len(values) != self._targets.n:
            raise ValueError(
                f"X: found {len(values)} examples, expected the {self._targets.n} of training"
            )
        if max_loss is None:
            max_loss = float(self._surrogates(X, y, np.inf)[0].max())
        if kappa is None:
            exact = self.kernel is not None and not self._is_mapped()
            kappa = self.kernel_bound_ if exact else self._feature_bound(X)
        n, ratio = len(values), kappa / self.alpha_
        nu = ratio + ratio**1.5
        confidence = max_loss * (8 * nu / rho + 1) * np.sqrt(np.log(1 / delta) / (2 * n))
        return RiskBound(
            surrogate=float(np.minimum(values, max_loss).mean()),
            training_loss=float(losses.mean()),
            stability=4 * max_loss * nu / (rho * n),
            confidence=float(confidence),
            rho=rho,
            delta=delta,
            kappa=kappa,
            max_loss=max_loss,
            alpha=self.alpha_,
            n=n,
        )

    def _surrogates(self, X: Any, y: Any, rho: float) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(getattr(self, "_targets", None), (PartTargets, type(None))):
            raise ValueError("the surrogate of continuous labels has no oracle: not available")
        examples, features = self._new_rows(X)
        labelled = pack(self.space_, X, y)
        theta, _ = self._scores(features, self.alpha_)
        layout = make_layout(self.space_, replace(examples, labels=None))
        oracle = self._asked("oracle")(layout)
        loss = self._asked("loss", self._targets.loss_given)(layout)
        loss.check_truths(labelled.labels)
        return surrogates(oracle, loss, theta, 1.0 / rho, labelled.labels, self.n_jobs)

    def _feature_bound(self, X: Any) -> float:
        _, features = self._new_rows(X)
        return float((features**2).sum(axis=1).max())
