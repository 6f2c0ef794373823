"""A kernel on rows of node features: name and parameters, its matrix, checks of what it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..examples.packing import is_sparse, refuse_infinite

PRECOMPUTED = "precomputed"
# Positive semi-definite whatever the data, unless gamma is negative.
SAFE = ("linear", "rbf", "laplacian", "cosine")
# Nodes whose part of the matrix is looked at as a whole; beyond, a random choice of them.
CHECKED_NODES = 500
LANCZOS_STEPS = 40
# Eigenvalues below minus this share of the largest are not rounding.
NEGATIVE = 1e-6
# Differences of this share of the largest value are rounding, also that of float32.
ASYMMETRIC = 1e-5
# Bytes of kernel rows that are computed in one call.  The same whatever the size of the cache: what
# is computed together decides the last bits.  Small: where the cache is short most rows of a block
# are computed for nothing.  Not smaller: or calls would cost more than values.
BLOCK_BYTES = 1 << 17
# Nodes of neighbouring examples whose own kernel values are computed together.
TOGETHER = 128


class Kernel:
    """What ``kernel=`` and ``kernel_params=`` of the estimator mean.

    Parameters
    ----------
    kernel : str or callable
        A name of ``sklearn.metrics.pairwise.pairwise_kernels``, "precomputed", or a function
        ``k(X, Y, **params)`` that returns a matrix of shape (rows of X, rows of Y).
    params : dict, optional
        Named arguments of the kernel.
    cache_size : float, default=200
        Megabytes of rows of the kernel matrix that training may keep.

    Examples
    --------
    >>> Kernel("rbf", {"gamma": 1.0}).matrix([[0.0], [1.0]], [[0.0]]).round(3).tolist()
    [[1.0], [0.368]]
    """

    def __init__(
        self,
        kernel: str | Callable[..., Any],
        params: dict[str, Any] | None = None,
        cache_size: float = 200.0,
    ):
        if isinstance(kernel, str):
            known = [*kernel_names(), PRECOMPUTED]
            if kernel not in known:
                raise ValueError(f"kernel is {kernel!r}, expected a callable or one of {known}")
        elif not callable(kernel):
            raise ValueError(f"kernel is {kernel!r}, expected a name, a callable or None")
        if params is not None and not (
            isinstance(params, dict) and all(isinstance(k, str) for k in params)
        ):
            raise ValueError(f"kernel_params is {params!r}, expected a dict of named arguments")
        if kernel == PRECOMPUTED and params:
            raise ValueError("kernel_params: a precomputed kernel takes none; leave them out")
        number = isinstance(cache_size, (int, float, np.integer, np.floating))
        if not number or not np.isfinite(cache_size) or cache_size < 0:
            raise ValueError(f"cache_size is {cache_size!r}, expected megabytes >= 0")
        self.kernel, self.params = kernel, dict(params or {})
        self.cache_bytes = int(min(cache_size * 1e6, 2**62))

    def __repr__(self) -> str:
        return f"Kernel({self.name!r}, {self.params!r})"

    @property
    def name(self) -> str:
        """The name, for a callable that of the function."""
        if isinstance(self.kernel, str):
            return self.kernel
        function = getattr(self.kernel, "__qualname__", type(self.kernel).__qualname__)
        return f"{getattr(self.kernel, '__module__', '?')}:{function}"

    @property
    def precomputed(self) -> bool:
        """Whether X already holds rows of the kernel matrix."""
        return self.kernel == PRECOMPUTED

    def rows(self, X: Any, offsets: np.ndarray, dense: bool) -> Any:
        """Return packed node features as the kernel is to see them.

        Parameters
        ----------
        X : ndarray or CSR
            Packed; dense features may have become sparse there.
        offsets : ndarray
            First node of each example.
        dense : bool
            Whether they were dense when the user gave them.
        """
        refuse_infinite_rows(X, offsets)
        if is_sparse(X):
            return np.ascontiguousarray(X.toarray(), np.float64) if dense else X.astype(np.float64)
        return np.ascontiguousarray(X, dtype=np.float64)

    def matrix(
        self,
        X: Any,
        Y: Any,
        name_row: Callable[[int], str] = "row {}".format,
        name_column: Callable[[int], str] = "row {}".format,
    ) -> np.ndarray:
        """Return the kernel values of the rows of X with those of Y, checked.

        Raises
        ------
        ValueError
            When the kernel gives another shape, other than numbers, NaN or infinity; it names
            the rows.
        """
        if callable(self.kernel):
            found = np.asarray(self.kernel(X, Y, **self.params))
        else:
            found = self._named(X, Y)
        shape = (_n_rows(X), _n_rows(Y))
        if found.shape != shape or found.dtype.kind not in "fiub":
            raise ValueError(
                f"kernel {self.name!r} gave an array of shape {found.shape} and dtype "
                f"{found.dtype} for {shape[0]} and {shape[1]} rows, expected real numbers of "
                f"shape {shape}: one per pair of rows"
            )
        found = np.ascontiguousarray(found, dtype=np.float64)
        if not np.isfinite(found).all():
            i, j = np.argwhere(~np.isfinite(found))[0].tolist()
            raise ValueError(
                f"kernel {self.name!r} gave {found[i, j]} for {name_row(i)} with {name_column(j)}; "
                "kernel values must be finite"
            )
        return found

    def _named(self, X: Any, Y: Any) -> np.ndarray:
        if self.kernel == "rbf" and self.params.keys() <= {"gamma"}:
            gamma = self.params.get("gamma")
            if gamma is None or (isinstance(gamma, (int, float)) and 0 <= gamma < np.inf):
                return rbf(X, Y, gamma)
        from sklearn import config_context
        from sklearn.metrics.pairwise import pairwise_kernels

        try:
            with config_context(assume_finite=True):
                return np.asarray(pairwise_kernels(X, Y, metric=self.kernel, **self.params))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"kernel {self.kernel!r} with kernel_params {self.params!r}: {error}"
            ) from error

    # -- checks before training -----------------------------------------------------------------

    def check(self, X: Any, offsets: np.ndarray) -> None:
        """Refuse a kernel that is not symmetric or has a clearly negative eigenvalue.

        Up to 500 nodes this is the whole truth.  Beyond, a random choice of nodes is looked at, and
        a precomputed matrix also through a Krylov space: what is found negative there is negative
        in the whole matrix, but something may be missed.
        """
        gamma = self.params.get("gamma")
        if isinstance(self.kernel, str) and isinstance(gamma, str):
            raise ValueError(f"kernel_params: gamma is {gamma!r}, expected a number")
        if self.precomputed:
            self._check_square(X)
            self._check_symmetric(X, offsets)
        elif self.kernel in SAFE and (self.params.get("gamma") or 0) >= 0:
            return
        n = X.shape[0]
        picked = np.arange(n)
        if n > CHECKED_NODES:
            picked = np.sort(np.random.default_rng(0).choice(n, CHECKED_NODES, replace=False))

        def name(v: int) -> str:
            return node_name(offsets, int(picked[v]))

        if self.precomputed:
            some = X[np.ix_(picked, picked)]
        else:
            some = self.matrix(X[picked], X[picked], name, name)
            self._refuse_asymmetric(some, some.T, name, name)
        diagonal = np.asarray(X).diagonal() if self.precomputed else some.diagonal()
        if (diagonal < 0).any():
            v = int(np.argmin(diagonal))
            where = node_name(offsets, v) if self.precomputed else name(v)
            raise ValueError(
                f"{self._called()} gives {diagonal[v]:g} for {where} with itself, expected at "
                "least 0: it is not positive semi-definite"
            )
        self._refuse_negative(np.linalg.eigvalsh(some))
        if self.precomputed and n > CHECKED_NODES:
            self._refuse_negative(ritz_values(X, LANCZOS_STEPS))

    def _called(self) -> str:
        return "the precomputed kernel" if self.precomputed else f"kernel {self.name!r}"

    def _check_square(self, X: Any) -> None:
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X: found {X.shape[0]} rows of {X.shape[1]} kernel values, expected a square "
                f"matrix over all training nodes, ({X.shape[0]}, {X.shape[0]})"
            )

    def _check_symmetric(self, K: np.ndarray, offsets: np.ndarray) -> None:
        for first in range(0, len(K), CHECKED_NODES):
            part = K[first : first + CHECKED_NODES]

            def row(v: int, first: int = first) -> str:
                return node_name(offsets, first + v)

            self._refuse_asymmetric(
                part, K[:, first : first + len(part)].T, row, lambda v: node_name(offsets, v)
            )

    def _refuse_asymmetric(
        self, K: Any, transposed: Any, row: Callable[[int], str], column: Callable[[int], str]
    ) -> None:
        apart = np.abs(K - transposed)
        if apart.max(initial=0) > ASYMMETRIC * np.abs(K).max(initial=0):
            i, j = np.unravel_index(int(apart.argmax()), apart.shape)
            raise ValueError(
                f"{self._called()} is not symmetric: {K[i, j]:g} for {row(int(i))} with "
                f"{column(int(j))}, {transposed[i, j]:g} the other way round; use (K + K.T) / 2"
            )

    def _refuse_negative(self, eigenvalues: np.ndarray) -> None:
        least, most = float(eigenvalues.min()), float(np.abs(eigenvalues).max())
        if least < -NEGATIVE * most:
            raise ValueError(
                f"{self._called()} is not positive semi-definite: found an eigenvalue of at most "
                f"{least:g} beside one of {float(eigenvalues.max()):g}; training has no optimum "
                "then: clip the spectrum or use another kernel"
            )


def rbf(X: Any, Y: Any, gamma: float | None = None) -> np.ndarray:
    """Return ``exp(-gamma ||x - y||^2)``; scikit-learn's checks cost more than few rows do.

    Examples
    --------
    >>> rbf(np.eye(2), np.eye(2), 0.5).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """
    X, Y = (x if is_sparse(x) else np.asarray(x, dtype=np.float64) for x in (X, Y))
    found = X @ Y.T
    found = found.toarray() if is_sparse(found) else found
    found *= -2
    found += _squares(X)[:, None]
    found += _squares(Y)
    np.maximum(found, 0, out=found)
    found *= -(1.0 / X.shape[1] if gamma is None else gamma)
    return np.exp(found, out=found)


def _squares(X: Any) -> np.ndarray:
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def kernel_names() -> list[str]:
    """Return the kernels that scikit-learn knows by name."""
    from sklearn.metrics.pairwise import kernel_metrics

    return sorted(kernel_metrics())


def node_name(offsets: np.ndarray, row: int) -> str:
    """Name a stacked row by its example: ``example 3, node 0``."""
    i = int(np.searchsorted(offsets, row, side="right")) - 1
    return f"example {i}, node {row - int(offsets[i])}"


def refuse_infinite_rows(X: Any, offsets: np.ndarray) -> None:
    """Refuse features with NaN or infinity, naming the example."""
    data = X.data if is_sparse(X) else X
    # Sums of what is finite may overflow, then each value is looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(data.sum(dtype=np.float64)) and not np.isfinite(data).all():
            refuse_infinite(X, offsets)


def given_dense(X: Any) -> bool:
    """Tell whether users gave dense features: an array, a frame, or a list of arrays."""
    if hasattr(X, "features"):
        X = X.features
    elif isinstance(X, (list, tuple)) and len(X):
        X = X[0][0] if isinstance(X[0], tuple) and len(X[0]) else X[0]
    return not is_sparse(X)


def ritz_values(K: np.ndarray, steps: int) -> np.ndarray:
    """Return Rayleigh-Ritz values of a symmetric K on a Krylov space with a random start.

    All lie between the smallest and the largest eigenvalue, and the outer ones come near them.

    Examples
    --------
    >>> bool(ritz_values(np.diag([3.0, 2.0, -1.0]), 3).min().round(6) == -1)
    True
    """
    n = len(K)
    basis = np.zeros((n, min(steps, n)))
    images = np.zeros_like(basis)
    v = np.random.default_rng(0).normal(size=n)
    for k in range(basis.shape[1]):
        for _ in range(2):  # once is not enough to stay orthogonal
            v = v - basis[:, :k] @ (basis[:, :k].T @ v)
        size = np.linalg.norm(v)
        if size == 0:
            return np.linalg.eigvalsh(basis[:, :k].T @ images[:, :k])
        basis[:, k] = v / size
        images[:, k] = v = K @ basis[:, k]
    small = basis.T @ images
    return np.linalg.eigvalsh((small + small.T) / 2)


def _n_rows(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)
