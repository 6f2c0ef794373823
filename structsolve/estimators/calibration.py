"""Probabilities of the best classes, fitted on held-out data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

#: Default number of best classes per example with a probability of their own.
KEPT = 20


@dataclass(frozen=True)
class Calibration:
    """Probabilities of the ``kept`` best classes of an example, and of all others together.

    With the scores ``s_1 >= ... >= s_k`` of the kept classes, the probability of class j is
    proportional to ``exp(factor s_j)``, and that of all other classes together to
    ``exp(factor s_k + rest)``: none of them scores more than the last one that is kept.

    Parameters
    ----------
    factor : float
        One over the temperature of the softmax, > 0.
    rest : float
        At most the logarithm of the number of other classes; -inf if there are none.
    kept : int
    """

    factor: float
    rest: float
    kept: int

    def probabilities(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities of kept classes, and the total of the others.

        Parameters
        ----------
        scores : ndarray of shape (n, kept)
            Best first.

        Returns
        -------
        kept : ndarray of float64 of shape (n, kept)
        rest : ndarray of float64 of shape (n,)
        """
        # Differences first: large scores would swallow the rest.
        own = self.factor * (scores.astype(np.float64) - scores[:, :1])
        logits = np.column_stack([own, own[:, -1] + self.rest])
        shares = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        return shares[:, :-1], shares[:, -1]


def fit_calibration(
    scores: np.ndarray, places: np.ndarray, n_classes: int, sample_weight: np.ndarray
) -> Calibration:
    """Fit factor and rest by maximum likelihood on held-out examples: a convex problem.

    Parameters
    ----------
    scores : ndarray of shape (n, kept)
        Scores of the best classes of each example, best first.
    places : ndarray of int of shape (n,)
        Rank of the true class among them; ``kept`` if it is another class.
    n_classes : int
    sample_weight : ndarray of shape (n,)
        Weights with a sum above zero.

    Returns
    -------
    Calibration
    """
    n, kept = scores.shape
    # The factor is fitted in units of the differences to the best score.
    scores = scores.astype(np.float64) - scores[:, :1]
    scale = float(np.abs(scores).mean()) or 1.0
    scores /= scale
    share = sample_weight / sample_weight.sum()
    others = n_classes - kept
    own = np.column_stack([scores, scores[:, -1]])
    outside = np.zeros(kept + 1)
    outside[kept] = 1.0
    if others == 0:
        own, outside = scores, outside[:kept]
    chosen = own[np.arange(n), places]

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        logits = x[0] * own + x[1] * outside
        norm = logsumexp(logits, axis=1)
        shares = np.exp(logits - norm[:, None])
        value = share @ (norm - x[0] * chosen - x[1] * (places == kept))
        slope = share @ ((shares * own).sum(1) - chosen)
        return value, np.array([slope, share @ (shares @ outside - (places == kept))])

    # Scores that never err would have a factor without bound, and a rest of minus infinity.
    most = np.log(others) if others else 0.0
    answer = minimize(
        loss,
        x0=[1.0, min(0.0, most)],
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-3, 1e3), (-30.0 if others else 0.0, most)],
    )
    return Calibration(float(answer.x[0]) / scale, float(answer.x[1]) if others else -np.inf, kept)
