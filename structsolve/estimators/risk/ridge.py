"""Ridge regression of any number of outputs at once: one factorisation for all of lambda and x."""

from __future__ import annotations

from typing import Any

import numpy as np

# Eigenvalues below this share of the largest are rounding, or below n units in its last place.
ROUNDING = 1e-14


def _proper(values: np.ndarray) -> np.ndarray:
    """Eigenvalues, rising, and 0 in place of what is rounding alone."""
    least = max(ROUNDING, len(values) * np.finfo(float).eps) * max(values[-1], 0)
    return np.where(values > least, values, 0.0)


def _shrunken(values: np.ndarray, ridge: float) -> np.ndarray:
    """Return ``1 / (value + ridge)``, 0 where the value is: nothing is known of that direction."""
    return np.divide(1.0, values + ridge, out=np.zeros_like(values), where=values > 0)


class KernelSmoother:
    """``w(x) = (K + n lambda I)^{-1} k(x)`` for every x and lambda, from one eigendecomposition.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of the training examples, symmetric and positive semi-definite.
    fit_intercept : bool
        Centre the kernel in its feature space and let the mean of the outputs stand for what is
        unpenalised (supplement B of Goh and Jaillet 2017). The weights then sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> smoother = KernelSmoother(np.eye(2), fit_intercept=False)
    >>> smoother.weights(np.array([[1.0, 0.0]]), 0.5).tolist()
    [[0.5, 0.0]]
    """

    def __init__(self, K: np.ndarray, fit_intercept: bool):
        from scipy.linalg import eigh

        self.n, self.fit_intercept = len(K), bool(fit_intercept)
        self.column_means = K.mean(axis=0) if fit_intercept else np.zeros(self.n)
        values, self.vectors = eigh(self.centred(K) if fit_intercept else K)
        self.values = _proper(values)

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray], fit_intercept: bool) -> KernelSmoother:
        """Rebuild a smoother from :meth:`to_arrays`."""
        made = cls.__new__(cls)
        made.values, made.vectors = arrays["values"], arrays["vectors"]
        made.column_means = arrays["column_means"]
        made.n, made.fit_intercept = len(made.values), bool(fit_intercept)
        if made.vectors.shape != (made.n, made.n) or made.column_means.shape != (made.n,):
            raise ValueError(
                f"eigenvectors have the shape {made.vectors.shape}, expected {(made.n, made.n)}"
            )
        return made

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for a model file."""
        return {
            "values": self.values,
            "vectors": self.vectors,
            "column_means": self.column_means,
        }

    def centred(self, k: np.ndarray) -> np.ndarray:
        """Return rows of kernel values as inner products of centred features."""
        if not self.fit_intercept:
            return k
        return k - k.mean(axis=1, keepdims=True) - self.column_means + self.column_means.mean()

    def shrunken(self, alpha: float) -> np.ndarray:
        """Return ``1 / (eigenvalue + n alpha)``, 0 in the kernel's null space."""
        return _shrunken(self.values, self.n * alpha)

    def weights(self, k: np.ndarray, alpha: float) -> np.ndarray:
        """Return the weights of the training examples, one row per row of kernel values.

        Parameters
        ----------
        k : ndarray of shape (t, n)
            Kernel values of new examples with the training examples.
        alpha : float
            lambda, > 0.
        """
        return self.weights_at(self.projected(k), alpha)

    def projected(self, k: np.ndarray) -> np.ndarray:
        """Return rows of kernel values in terms of the eigenvectors: the same for every lambda."""
        return self.centred(k) @ self.vectors

    def weights_at(self, projected: np.ndarray, alpha: float) -> np.ndarray:
        """Return :meth:`weights` of projected rows."""
        w = (projected * self.shrunken(alpha)) @ self.vectors.T
        if self.fit_intercept:
            # Centred rows leave sums of 0 up to rounding.
            w += 1.0 / self.n - w.mean(axis=1, keepdims=True)
        return w

    def outputs(self, targets: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return targets, dense or sparse, one row per training example, for averages."""
        return np.asarray((targets.T @ self.vectors).T), np.asarray(targets.sum(axis=0)).ravel()

    def averages_at(self, projected: np.ndarray, outputs: Any, alpha: float) -> np.ndarray:
        """Return ``sum_i w_i(x) t_i`` of projected rows, never forming the weights."""
        shrunk = projected * self.shrunken(alpha)
        found = shrunk @ outputs[0]
        if self.fit_intercept:
            rest = 1.0 - shrunk @ self.vectors.sum(axis=0)
            found += np.multiply.outer(rest / self.n, outputs[1])
        return found

    def left_out(self, alpha: float) -> np.ndarray:
        """Return the weights of the other examples for each training example, itself left out.

        Row i holds the weights that training without example i gives at ``x_i``, the penalty
        ``n alpha`` kept: ``S_ij / (1 - S_ii)`` of the smoother S, 0 at i.
        """
        S = (self.vectors * (self.values * self.shrunken(alpha))) @ self.vectors.T
        if self.fit_intercept:
            S += 1.0 / self.n
        own = S.diagonal().copy()
        np.fill_diagonal(S, 0.0)
        return S / np.maximum(1 - own, ROUNDING)[:, None]


class FeatureSmoother:
    """The same in features: cost in the number of features, not in that of pairs of examples.

    ``sum_i w_i(x) t_i = t-bar + z(x)' (Z'Z + n lambda I)^{-1} Z' T``.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Features of the training examples.
    fit_intercept : bool
        Centre them.
    """

    def __init__(self, Z: np.ndarray, fit_intercept: bool):
        from scipy.linalg import eigh, svd

        self.n, self.fit_intercept = len(Z), bool(fit_intercept)
        self.mean = Z.mean(axis=0) if fit_intercept else np.zeros(Z.shape[1])
        self.Z = Z - self.mean
        if Z.shape[1] <= self.n:
            values, self.vectors = eigh(self.Z.T @ self.Z)
            self.values = _proper(values)
        else:
            # What is orthogonal to all examples has no weight.
            _, singular, rows = svd(self.Z, full_matrices=False)
            self.values, self.vectors = _proper(singular[::-1])[::-1] ** 2, rows.T

    def weights(self, z: np.ndarray, alpha: float) -> np.ndarray:
        """Return the weights of the training examples, one row per row of features."""
        return self.weights_at(self.projected(z), alpha)

    def averages(self, z: np.ndarray, targets: Any, alpha: float) -> np.ndarray:
        """Return ``sum_i w_i(x) t_i``, never forming the weights."""
        return self.averages_at(self.projected(z), self.outputs(targets), alpha)

    def projected(self, z: np.ndarray) -> np.ndarray:
        """Return rows of features in terms of the singular vectors: the same for every lambda."""
        return (z - self.mean) @ self.vectors

    def weights_at(self, projected: np.ndarray, alpha: float) -> np.ndarray:
        """Return :meth:`weights` of projected rows."""
        found = (projected * self.shrunken(alpha)) @ (self.Z @ self.vectors).T
        return found + self._constant()

    def outputs(self, targets: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return targets, dense or sparse, one row per training example, for averages."""
        means = np.asarray(targets.mean(axis=0)).ravel()
        return self.vectors.T @ np.asarray((targets.T @ self.Z).T), means

    def averages_at(self, projected: np.ndarray, outputs: Any, alpha: float) -> np.ndarray:
        """Return :meth:`averages` of projected rows and of what :meth:`outputs` returned."""
        found = (projected * self.shrunken(alpha)) @ outputs[0]
        return found + outputs[1] if self.fit_intercept else found

    def shrunken(self, alpha: float) -> np.ndarray:
        """Return ``1 / (squared singular value + n alpha)``, 0 where there are no features."""
        return _shrunken(self.values, self.n * alpha)

    def left_out(self, alpha: float) -> np.ndarray:
        """Return the weights of the other examples; see :meth:`KernelSmoother.left_out`."""
        projected = self.Z @ self.vectors
        S = (projected * self.shrunken(alpha)) @ projected.T + self._constant()
        own = S.diagonal().copy()
        np.fill_diagonal(S, 0.0)
        return S / np.maximum(1 - own, ROUNDING)[:, None]

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray], fit_intercept: bool) -> FeatureSmoother:
        """Rebuild a smoother from :meth:`to_arrays`."""
        made = cls.__new__(cls)
        made.Z, made.mean = arrays["Z"], arrays["mean"]
        made.values, made.vectors = arrays["values"], arrays["vectors"]
        made.n, made.fit_intercept = len(made.Z), bool(fit_intercept)
        expected = (made.Z.shape[1], min(made.Z.shape))
        if made.vectors.shape != expected or made.values.shape != expected[1:]:
            raise ValueError(
                f"eigenvectors have the shape {made.vectors.shape}, expected {expected}"
            )
        return made

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for a model file."""
        return {"Z": self.Z, "mean": self.mean, "values": self.values, "vectors": self.vectors}

    def _constant(self) -> float:
        return 1.0 / self.n if self.fit_intercept else 0.0


class JointSmoother:
    """Multi-task ridge regression with the kernel ``k(x, x') B[j, j']`` over inputs and outputs.

    The additive model of Goh and Jaillet (2017), section 5: minimises
    ``sum_ij (f_j(x_i) - t_ij)^2 + n lambda ||f||^2``. With ``B = I`` outputs are apart, and it is
    :class:`KernelSmoother`.

    Parameters
    ----------
    smoother : KernelSmoother
    B : ndarray of shape (q, q)
        Positive semi-definite.
    """

    def __init__(self, smoother: KernelSmoother, B: np.ndarray):
        from scipy.linalg import eigh

        self.smoother = smoother
        self.values, self.vectors = eigh(B)
        self.values = np.maximum(self.values, 0.0)

    def of_fold(self, smoother: KernelSmoother) -> JointSmoother:
        """Return the same for other examples; the kernel over outputs stays factorised."""
        made = JointSmoother.__new__(JointSmoother)
        made.smoother, made.values, made.vectors = smoother, self.values, self.vectors
        return made

    def averages(self, k: np.ndarray, targets: np.ndarray, alpha: float) -> np.ndarray:
        """Return f at new examples, one row per row of kernel values."""
        inner = self.smoother
        mean = targets.mean(axis=0) if inner.fit_intercept else np.zeros(targets.shape[1])
        T = inner.vectors.T @ (targets - mean) @ self.vectors
        T *= self.values / (inner.values[:, None] * self.values + inner.n * alpha)
        return (inner.centred(k) @ inner.vectors) @ T @ self.vectors.T + mean
