"""The generalisation bound of conditional risk minimisation, with the terms it is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RiskBound:
    """Theorem 4.2 of Goh and Jaillet (2017), equation (12), with its terms apart.

    With probability at least ``1 - delta`` over the training set,

        risk <= surrogate + 4 L nu / (rho n) + L (8 nu / rho + 1) sqrt(ln(1/delta) / (2 n)),

    ``nu = kappa/lambda + (kappa/lambda)^{3/2}``.

    Parameters
    ----------
    surrogate : float
        Mean of ``L^rho`` (10) over the training set; at least the mean training loss.
    training_loss : float
    stability, confidence : float
        The second and the third term.
    rho, delta, kappa, max_loss, alpha : float
    n : int
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


def risk_bound(
    surrogate: np.ndarray,
    losses: np.ndarray,
    rho: float,
    delta: float,
    kappa: float,
    max_loss: float,
    alpha: float,
) -> RiskBound:
    """Put the terms of equation (12) together.

    Examples
    --------
    >>> import numpy as np
    >>> found = risk_bound(np.zeros(100), np.zeros(100), 1.0, 0.5, 1.0, 1.0, 1.0)
    >>> round(found.stability, 3), round(found.bound, 3)
    (0.08, 1.081)
    """
    n = len(surrogate)
    ratio = kappa / alpha
    nu = ratio + ratio**1.5
    return RiskBound(
        surrogate=float(np.mean(surrogate)),
        training_loss=float(np.mean(losses)),
        stability=4 * max_loss * nu / (rho * n),
        confidence=max_loss * (8 * nu / rho + 1) * np.sqrt(np.log(1 / delta) / (2 * n)),
        rho=rho,
        delta=delta,
        kappa=kappa,
        max_loss=max_loss,
        alpha=alpha,
        n=n,
    )


def check_bound_arguments(rho: float, delta: float) -> None:
    """Refuse rho and delta for which equation (12) says nothing."""
    if not rho > 0 or not np.isfinite(rho):
        raise ValueError(f"rho is {rho!r}, expected a finite number > 0")
    if not 0 < delta < 1:
        raise ValueError(f"delta is {delta!r}, expected a number between 0 and 1")
