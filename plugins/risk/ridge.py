"""Ridge regression of any number of outputs: one factorisation for every lambda and every x."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np

# Eigenvalues below this share of the largest, or below n units in its last place, are rounding.
ROUNDING = 1e-14

AnySmoother = TypeVar("AnySmoother", bound="_Smoother")


def _proper(values: np.ndarray) -> np.ndarray:
    """Return rising eigenvalues, with 0 for those that are only rounding."""
    least = max(ROUNDING, len(values) * np.finfo(float).eps) * max(values[-1], 0)
    return np.where(values > least, values, 0.0)


class _Smoother:
    """Weights ``w_i(x)`` of the training examples, linear in their outputs, for any lambda.

    ``alpha`` is lambda, > 0.  Rows of x are kernel values with the training examples in
    :class:`KernelSmoother`, and features in :class:`FeatureSmoother`.
    """

    #: Arrays of a model file; the first has a row per training example.
    _ARRAYS: tuple[str, ...]
    n: int
    fit_intercept: bool
    values: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of_arrays(
        cls: type[AnySmoother], arrays: dict[str, np.ndarray], fit_intercept: bool
    ) -> AnySmoother:
        """Return the smoother of :meth:`to_arrays`.

        Parameters
        ----------
        arrays : dict of str to ndarray
        fit_intercept : bool

        Returns
        -------
        KernelSmoother or FeatureSmoother

        Raises
        ------
        ValueError
            If the arrays do not fit together.
        """
        made = cls.__new__(cls)
        for name in cls._ARRAYS:
            setattr(made, name, arrays[name])
        made.n, made.fit_intercept = len(arrays[cls._ARRAYS[0]]), bool(fit_intercept)
        for name, expected in made._shapes().items():
            if arrays[name].shape != expected:
                raise ValueError(
                    f"{name} of the factorisation have the shape {arrays[name].shape}, expected "
                    f"{expected}"
                )
        return made

    def one_factorisation(self) -> AbstractContextManager[None]:
        """Keep what all values of lambda share, while several are tried."""
        return nullcontext()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for a model file.

        Returns
        -------
        dict of str to ndarray
        """
        return {name: getattr(self, name) for name in self._ARRAYS}

    def weights(self, x: np.ndarray, alpha: float) -> np.ndarray:
        """Return the weights of the training examples at new ones.

        Parameters
        ----------
        x : ndarray of shape (t, n) or (t, d)
            Kernel values or features.
        alpha : float

        Returns
        -------
        ndarray of shape (t, n)
        """
        return self.weights_at(self.projected(x), alpha)

    def averages(self, x: np.ndarray, targets: Any, alpha: float) -> np.ndarray:
        """Return ``sum_i w_i(x) t_i``; the weights are never formed.

        Parameters
        ----------
        x : ndarray of shape (t, n) or (t, d)
            Kernel values or features.
        targets : ndarray or sparse matrix of shape (n, q)
        alpha : float

        Returns
        -------
        ndarray of shape (t, q)
        """
        return self.averages_at(self.projected(x), self.outputs(targets), alpha)

    def projected(self, x: np.ndarray) -> np.ndarray:
        """Return rows of x in terms of the eigenvectors: the same for every lambda.

        Parameters
        ----------
        x : ndarray of shape (t, n) or (t, d)
            Kernel values or features.

        Returns
        -------
        ndarray of shape (t, number of eigenvectors)
        """
        return self._centred(x) @ self.vectors

    def weights_at(self, projected: np.ndarray, alpha: float) -> np.ndarray:
        """Return :meth:`weights` of projected rows.

        Parameters
        ----------
        projected : ndarray
            From :meth:`projected`.
        alpha : float

        Returns
        -------
        ndarray of shape (t, n)
        """
        w = (projected * self._shrunken(alpha)) @ self._duals().T
        if self.fit_intercept:
            # Centred rows sum to 0 up to rounding.
            w += 1.0 / self.n - w.mean(axis=1, keepdims=True)
        return w

    def outputs(self, targets: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return targets in terms of the eigenvectors, and their sums.

        Parameters
        ----------
        targets : ndarray or sparse matrix of shape (n, q)

        Returns
        -------
        tuple of ndarray
            For :meth:`averages_at`.
        """
        return self._products(targets), np.asarray(targets.sum(axis=0)).ravel()

    def averages_at(self, projected: np.ndarray, outputs: Any, alpha: float) -> np.ndarray:
        """Return :meth:`averages` of projected rows.

        Parameters
        ----------
        projected : ndarray
            From :meth:`projected`.
        outputs : tuple of ndarray
            From :meth:`outputs`.
        alpha : float

        Returns
        -------
        ndarray of shape (t, q)
        """
        shrunk = projected * self._shrunken(alpha)
        averages = shrunk @ outputs[0]
        if self.fit_intercept:
            rest = 1.0 - shrunk @ self._products(np.ones(self.n))
            averages += np.multiply.outer(rest / self.n, outputs[1])
        return averages

    def left_out(self, alpha: float, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the weights of the other examples at each training example, which is left out.

        Row i holds the weights at ``x_i`` of training without example i, with the penalty
        ``n alpha``: ``S_ij / (1 - S_ii)`` of the smoothing matrix S, 0 at i.

        Parameters
        ----------
        alpha : float
        rows : ndarray of int of shape (t,), optional
            Some of the training examples; all by default.

        Returns
        -------
        ndarray of shape (t, n)
        """
        own = np.arange(self.n) if rows is None else rows
        S = self.weights_at(self._training_rows(own), alpha)
        diagonal = np.arange(len(own)), own
        rest = np.maximum(1 - S[diagonal], ROUNDING)
        S[diagonal] = 0.0
        return S / rest[:, None]

    def _shrunken(self, alpha: float) -> np.ndarray:
        """Return ``1 / (eigenvalue + n alpha)``, 0 in the null space, which has no data."""
        zeros = np.zeros_like(self.values)
        return np.divide(1.0, self.values + self.n * alpha, out=zeros, where=self.values > 0)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes that arrays of a file must have."""
        raise NotImplementedError

    def _centred(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _duals(self) -> np.ndarray:
        """Return the directions of the eigenvectors as weights of the training examples."""
        raise NotImplementedError

    def _products(self, targets: Any) -> np.ndarray:
        """Return ``_duals().T @ targets``."""
        raise NotImplementedError

    def _training_rows(self, own: np.ndarray) -> np.ndarray:
        """Return the projected rows of some training examples."""
        raise NotImplementedError


class KernelSmoother(_Smoother):
    """``w(x) = (K + n lambda I)^{-1} k(x)`` for every x and lambda, from one eigendecomposition.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of the training examples, symmetric and positive semi-definite.
    fit_intercept : bool
        Centre the kernel in its feature space; the mean of the outputs is then not penalised
        (supplement B of Goh and Jaillet 2017), and the weights sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> smoother = KernelSmoother(np.eye(2), fit_intercept=False)
    >>> smoother.weights(np.array([[1.0, 0.0]]), 0.5).tolist()
    [[0.5, 0.0]]
    """

    _ARRAYS = ("column_means", "values", "vectors")
    column_means: np.ndarray

    def __init__(self, K: np.ndarray, fit_intercept: bool):
        from scipy.linalg import eigh  # heavy

        self.n, self.fit_intercept = len(K), bool(fit_intercept)
        self.column_means = K.mean(axis=0) if fit_intercept else np.zeros(self.n)
        values, self.vectors = eigh(self._centred(K))
        self.values = _proper(values)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"vectors": (self.n, self.n), "values": (self.n,), "column_means": (self.n,)}

    def _centred(self, x: np.ndarray) -> np.ndarray:
        """Return rows of kernel values as inner products of centred features."""
        if not self.fit_intercept:
            return x
        return x - x.mean(axis=1, keepdims=True) - self.column_means + self.column_means.mean()

    def _duals(self) -> np.ndarray:
        return self.vectors

    def _products(self, targets: Any) -> np.ndarray:
        return np.asarray((targets.T @ self.vectors).T)

    def _training_rows(self, own: np.ndarray) -> np.ndarray:
        return self.vectors[own] * self.values


class FeatureSmoother(_Smoother):
    """The same weights, computed from features; the cost grows with their number, not with n^2.

    ``sum_i w_i(x) t_i = t-bar + z(x)' (Z'Z + n lambda I)^{-1} Z' T``.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Features of the training examples.
    fit_intercept : bool
        Centre them.
    """

    _ARRAYS = ("Z", "mean", "values", "vectors")
    Z: np.ndarray
    mean: np.ndarray
    _kept: np.ndarray | None = None

    def __init__(self, Z: np.ndarray, fit_intercept: bool):
        from scipy.linalg import eigh, svd  # heavy

        self.n, self.fit_intercept = len(Z), bool(fit_intercept)
        self.mean = Z.mean(axis=0) if fit_intercept else np.zeros(Z.shape[1])
        self.Z = Z - self.mean
        if Z.shape[1] <= self.n:
            values, self.vectors = eigh(self.Z.T @ self.Z)
            self.values = _proper(values)
        else:
            # Directions orthogonal to all examples have no weight.
            _, singular, rows = svd(self.Z, full_matrices=False)
            self.values, self.vectors = _proper(singular[::-1])[::-1] ** 2, rows.T

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        d, rank = self.Z.shape[1], min(self.Z.shape)
        return {"vectors": (d, rank), "values": (rank,), "mean": (d,)}

    def _centred(self, x: np.ndarray) -> np.ndarray:
        return x - self.mean

    def _duals(self) -> np.ndarray:
        return self.Z @ self.vectors if self._kept is None else self._kept

    @contextmanager
    def one_factorisation(self) -> Iterator[None]:
        """Keep a product as large as Z, which all values of lambda share."""
        self._kept = self._duals()
        try:
            yield
        finally:
            self._kept = None

    def _products(self, targets: Any) -> np.ndarray:
        return self.vectors.T @ np.asarray((targets.T @ self.Z).T)

    def _training_rows(self, own: np.ndarray) -> np.ndarray:
        return self._duals()[own]


class JointSmoother:
    """Multi-task ridge regression with the kernel ``k(x, x') B[j, j']`` over inputs and outputs.

    The additive model of Goh and Jaillet (2017), section 5: it minimises
    ``sum_ij (f_j(x_i) - t_ij)^2 + n lambda ||f||^2``. With ``B = I`` outputs are learned
    independently, as by :class:`KernelSmoother`.

    Parameters
    ----------
    smoother : KernelSmoother
    B : ndarray of shape (q, q)
        Positive semi-definite.
    """

    def __init__(self, smoother: KernelSmoother, B: np.ndarray):
        from scipy.linalg import eigh  # heavy

        self.smoother, self.B = smoother, np.array(B)  # files keep B
        self.values, self.vectors = eigh(B)
        self.values = np.maximum(self.values, 0.0)

    def of_fold(self, smoother: KernelSmoother) -> JointSmoother:
        """Return the smoother for other examples, with the same factorised kernel over outputs.

        Parameters
        ----------
        smoother : KernelSmoother
            The smoother of these examples.

        Returns
        -------
        JointSmoother
        """
        made = JointSmoother.__new__(JointSmoother)
        made.__dict__ |= self.__dict__ | {"smoother": smoother}
        return made

    def averages(self, k: np.ndarray, targets: np.ndarray, alpha: float) -> np.ndarray:
        """Return f at new examples.

        Parameters
        ----------
        k : ndarray of shape (t, n)
            Kernel values with the training examples.
        targets : ndarray of shape (n, q)
        alpha : float
            lambda, > 0.

        Returns
        -------
        ndarray of shape (t, q)
        """
        inner = self.smoother
        mean = targets.mean(axis=0) if inner.fit_intercept else np.zeros(targets.shape[1])
        T = inner.vectors.T @ (targets - mean) @ self.vectors
        T *= self.values / (inner.values[:, None] * self.values + inner.n * alpha)
        return inner.projected(k) @ T @ self.vectors.T + mean
