"""Mercer kernels ``k(x, x')`` on rows of node features: parameters, values, checks of values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ..examples.given import is_sparse, refuse_infinite, within
from ..utils.arrays import n_rows

PRECOMPUTED = "precomputed"
# Products of larger kernel values overflow.
MOST = 1e200
# Kernels that are positive semi-definite for all data, unless gamma is negative.
ALWAYS_DEFINITE = ("linear", "rbf", "laplacian", "cosine")
# Kernels of distances or products, whose gamma follows the spread of the features.
SCALED = ("rbf", "poly", "polynomial", "sigmoid", "laplacian")
# Up to this many nodes the whole kernel matrix is checked; beyond, that of random nodes.
CHECKED_NODES = 500
LANCZOS_STEPS = 40
# Eigenvalues below minus this share of the largest are not rounding errors.
NEGATIVE = 1e-6
# Differences up to this share of the largest value are rounding errors, even of float32.
ASYMMETRIC = 1e-5
# Bytes of the Gram block that one call computes.  It does not depend on the size of the cache: rows
# that are computed together decide the last bits of each other.  It is small, because with a short
# cache most rows of a block are not used; if it were smaller, calls would cost more than values.
BLOCK_BYTES = 1 << 17
# Rows of a Gaussian kernel are computed one by one for at most so many features, none of them
# larger than the other number.
FEW_FEATURES, SQUARABLE = 64, 1e100
# Deviations up to this share of the largest entry are rounding errors of equal ones.
ROUNDING = 1e-12
# Nodes of neighbouring examples whose Gram blocks are computed in one call.
TOGETHER = 128

# Steps use only some nodes if these are at most this share, and their kernel values take at most
# so many bytes.  This does not depend on the size of the cache, which would change the rounding.
FOCUS_SHARE = 0.8
FOCUS_BYTES = 1 << 27


def refuse_own_features(space: Any) -> None:
    """Refuse a space that makes features from those of X: kernels would compare the former.

    Parameters
    ----------
    space : Space

    Raises
    ------
    ValueError
        If the space has ``row_axes``.
    """
    axes = getattr(space, "row_axes", {})
    if axes:
        raise ValueError(
            f"structure {space.structure.name!r} makes features of its own from X, for each "
            f"{' and '.join(axes)}, which a kernel would compare in place of X; choose "
            "parameters of the structure with weights for the features of X, such as the default"
        )


class Kernel:
    """A Mercer kernel with its parameters: ``kernel=`` and ``kernel_params=`` of the estimator.

    Parameters
    ----------
    kernel : str or callable
        A name of ``sklearn.metrics.pairwise.pairwise_kernels``, "precomputed", or a function
        ``k(X, Y, **params)`` that returns a matrix of shape (rows of X, rows of Y).
    params : dict, optional
        Named arguments of the kernel. ``gamma`` may also be "scale" or "auto": see :meth:`fitted`.
    cache_size : float, default=200
        Megabytes of rows of the kernel matrix that training may keep.

    Attributes
    ----------
    gamma : float or None
        What :meth:`fitted` computed, None before it and where it computes none.

    Raises
    ------
    ValueError
        For an unknown kernel, or parameters of the wrong kind.

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
            known = [*_kernel_names(), PRECOMPUTED]
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
        if params and isinstance(kernel, str) and set(params) - {*_kernel_names()[kernel]}:
            takes = _kernel_names()[kernel]
            raise ValueError(
                f"kernel {kernel!r} with kernel_params {params}: expected "
                + (f"some of {takes}" if takes else "none: this kernel has no parameters")
            )
        gamma = (params or {}).get("gamma")
        if isinstance(kernel, str) and isinstance(gamma, str):
            words = ("scale", "auto") if kernel in SCALED else ()
            if gamma not in words:
                expected = " or ".join(["a number", *map(repr, words)])
                raise ValueError(f"kernel_params: gamma is {gamma!r}, expected {expected}")
        number = isinstance(cache_size, (int, float, np.integer, np.floating))
        if not number or not np.isfinite(cache_size) or cache_size < 0:
            raise ValueError(f"cache_size is {cache_size!r}, expected megabytes >= 0")
        self.kernel, self.params = kernel, dict(params or {})
        self.cache_bytes = int(min(cache_size * 1e6, 2**62))
        self.gamma: float | None = None

    def __repr__(self) -> str:
        return f"Kernel({self.name!r}, {self.params!r})"

    @property
    def name(self) -> str:
        """The kernel's name; for a callable, module and name of the function."""
        if isinstance(self.kernel, str):
            return self.kernel
        function = getattr(self.kernel, "__qualname__", type(self.kernel).__qualname__)
        return f"{getattr(self.kernel, '__module__', '?')}:{function}"

    @property
    def precomputed(self) -> bool:
        """Whether X already holds rows of the kernel matrix."""
        return self.kernel == PRECOMPUTED

    def fitted(self, X: Any) -> Kernel:
        """Return the kernel with the gamma that suits the spread of training features.

        "scale", or no gamma, is ``1 / (n_features X.var())``, as in :class:`sklearn.svm.SVC`: the
        kernel then does not depend on the unit of X. "auto" is ``1 / n_features``. (The Laplacian
        kernel, of absolute differences, takes the standard deviation for the variance.) A number,
        and None, stay, as do kernels without gamma, "chi2", "precomputed" and functions.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_rows, n_features)

        Returns
        -------
        Kernel

        Examples
        --------
        >>> Kernel("rbf").fitted(np.array([[0.0, 4.0]])).gamma
        0.125
        """
        given = self.params.get("gamma", "scale")
        if self.kernel not in SCALED or not isinstance(given, str) or 0 in X.shape:
            return self
        spread = 1.0 if given == "auto" else _deviation(X)
        spread **= 1 if self.kernel == "laplacian" else 2
        return self.with_gamma(1.0 / (X.shape[1] * spread))

    def with_gamma(self, gamma: float) -> Kernel:
        """Return the kernel with a gamma that :meth:`fitted` computed, as from a model's file.

        Parameters
        ----------
        gamma : float

        Returns
        -------
        Kernel
        """
        kernel = copy.copy(self)
        kernel.params, kernel.gamma = {**self.params, "gamma": gamma}, gamma
        return kernel

    def rows(self, X: Any, offsets: np.ndarray, dense: bool) -> Any:
        """Return packed node features in the form for the kernel.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_nodes, n_features)
            Packed; dense features may have become sparse there.
        offsets : ndarray of int64 of shape (n + 1,)
            First node of each example.
        dense : bool
            Whether the user's features were dense.

        Returns
        -------
        ndarray or CSR of float64 of shape (n_nodes, n_features)

        Raises
        ------
        ValueError
            The message names the first example with NaN, infinity or a feature too large.
        """
        refuse_infinite(X, offsets)
        if is_sparse(X):
            X = X.tocsr()
            return np.ascontiguousarray(X.toarray(), np.float64) if dense else X.astype(np.float64)
        return np.ascontiguousarray(X, dtype=np.float64)

    def gaussian(self, X: Any) -> float | None:
        """Return gamma of a Gaussian kernel whose rows are computed fastest one by one.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_nodes, n_features)
            From :meth:`rows`.

        Returns
        -------
        float or None
            None for other kernels, sparse and many features, and values whose squares overflow.
        """
        gamma = self.params.get("gamma")
        if self.kernel != "rbf" or self.params.keys() - {"gamma"} or is_sparse(X):
            return None
        if not 0 < X.shape[1] <= FEW_FEATURES or not np.abs(X).max(initial=0) <= SQUARABLE:
            return None
        if gamma is None:
            return 1.0 / X.shape[1]
        return float(gamma) if isinstance(gamma, (int, float)) and 0 <= gamma < np.inf else None

    def matrix(
        self,
        X: Any,
        Y: Any,
        name_row: Callable[[int], str] = "row {}".format,
        name_column: Callable[[int], str] = "row {}".format,
    ) -> np.ndarray:
        """Return the kernel values of the rows of X with those of Y, checked.

        Parameters
        ----------
        X : array or CSR of shape (n, n_features)
        Y : array or CSR of shape (m, n_features)
        name_row, name_column : callable, optional
            Name row number v of X, or of Y, in errors.

        Returns
        -------
        ndarray of float64 of shape (n, m)

        Raises
        ------
        ValueError
            If the kernel returns a wrong shape, anything but numbers, NaN or infinity; the message
            names the rows.
        """
        if callable(self.kernel):
            K = np.asarray(self.kernel(X, Y, **self.params))
        else:
            K = self._named(X, Y)
        shape = (n_rows(X), n_rows(Y))
        if K.shape != shape or K.dtype.kind not in "fiub":
            raise ValueError(
                f"kernel {self.name!r} gave an array of shape {K.shape} and dtype "
                f"{K.dtype} for {shape[0]} and {shape[1]} rows, expected real numbers of "
                f"shape {shape}: one per pair of rows"
            )
        K = np.ascontiguousarray(K, dtype=np.float64)
        if not within(K, MOST):
            i, j = np.argwhere(~(np.abs(K) <= MOST))[0].tolist()
            raise ValueError(
                f"kernel {self.name!r} gave {K[i, j]} for {name_row(i)} with {name_column(j)}; "
                f"kernel values must be finite, up to {MOST:g}: scale the features"
            )
        return K

    def _named(self, X: Any, Y: Any) -> np.ndarray:
        if np.shape(X)[1] == 0:
            raise ValueError(f"kernel {self.kernel!r}: X has nodes without features to compare")
        if self.kernel == "rbf" and self.params.keys() <= {"gamma"}:
            gamma = self.params.get("gamma")
            if gamma is None or (isinstance(gamma, (int, float)) and 0 <= gamma < np.inf):
                return _rbf(X, Y, gamma)
        from sklearn import config_context  # heavy
        from sklearn.metrics.pairwise import pairwise_kernels  # heavy

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

        Up to 500 nodes the whole kernel matrix is checked.  Beyond, a random sample of nodes is
        checked, and a precomputed matrix also on a Krylov space: a refused kernel is indefinite,
        but some indefinite ones pass.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_nodes, n_features)
            From :meth:`rows`; "precomputed": the kernel matrix.
        offsets : ndarray of int64 of shape (n + 1,)
            First node of each example.

        Raises
        ------
        ValueError
            The message names the nodes, if known.
        """
        gamma, n = self.params.get("gamma"), X.shape[0]
        if self.precomputed:
            self._check_square(X)
            self._check_symmetric(X, offsets)
        elif self.kernel in ALWAYS_DEFINITE and (gamma or 0) >= 0:
            return
        nodes = np.arange(n)
        if n > CHECKED_NODES:
            nodes = np.sort(np.random.default_rng(0).choice(n, CHECKED_NODES, replace=False))
        name = node_namer(offsets, nodes)
        if self.precomputed:
            K = X[np.ix_(nodes, nodes)]
            self.refuse_negative_diagonal(X.diagonal(), node_namer(offsets, range(n)))
        else:
            K = self.matrix(X[nodes], X[nodes], name, name)
            self._refuse_asymmetric(K, K.T, name, name)
            self.refuse_negative_diagonal(K.diagonal(), name)
        self._refuse_negative(np.linalg.eigvalsh(K))
        if self.precomputed and n > CHECKED_NODES:
            self._refuse_negative(_ritz_values(X, LANCZOS_STEPS))

    def refuse_negative_diagonal(self, diagonal: np.ndarray, name: Callable[[int], str]) -> None:
        """Refuse a negative kernel value of a node with itself.

        Parameters
        ----------
        diagonal : ndarray of shape (n,)
            Kernel values of nodes with themselves.
        name : callable
            Names node number v of the n.

        Raises
        ------
        ValueError
            The message names the node.
        """
        if (diagonal < 0).any():
            v = int(np.argmin(diagonal))
            raise ValueError(
                f"{self._called()} gives {diagonal[v]:g} for {name(v)} with itself, expected at "
                "least 0: it is not positive semi-definite"
            )

    def _called(self) -> str:
        return "the precomputed kernel" if self.precomputed else f"kernel {self.name!r}"

    def _check_square(self, X: Any) -> None:
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X: found {X.shape[0]} rows of {X.shape[1]} kernel values, expected a square "
                f"matrix over all training nodes, ({X.shape[0]}, {X.shape[0]})"
            )

    def _check_symmetric(self, K: np.ndarray, offsets: np.ndarray) -> None:
        name_column = node_namer(offsets, range(len(K)))
        for first in range(0, len(K), CHECKED_NODES):
            rows = range(len(K))[first : first + CHECKED_NODES]
            part, transposed = K[first : rows.stop], K[:, first : rows.stop].T
            self._refuse_asymmetric(part, transposed, node_namer(offsets, rows), name_column)

    def _refuse_asymmetric(
        self,
        K: Any,
        transposed: Any,
        name_row: Callable[[int], str],
        name_column: Callable[[int], str],
    ) -> None:
        difference = np.abs(K - transposed)
        if difference.max(initial=0) > ASYMMETRIC * np.abs(K).max(initial=0):
            i, j = map(int, np.unravel_index(int(difference.argmax()), difference.shape))
            raise ValueError(
                f"{self._called()} is not symmetric: {K[i, j]:g} for {name_row(i)} with "
                f"{name_column(j)}, {transposed[i, j]:g} the other way round; use (K + K.T) / 2"
            )

    def _refuse_negative(self, eigenvalues: np.ndarray) -> None:
        least, most = float(eigenvalues.min()), float(np.abs(eigenvalues).max())
        if least < -NEGATIVE * most:
            raise ValueError(
                f"{self._called()} is not positive semi-definite: found an eigenvalue of at most "
                f"{least:g} beside one of {float(eigenvalues.max()):g}; training has no optimum "
                "then: clip the spectrum or use another kernel"
            )


def _rbf(X: Any, Y: Any, gamma: float | None = None) -> np.ndarray:
    """Return ``exp(-gamma ||x - y||^2)``.

    For few rows the checks of scikit-learn's function cost more than the values.

    >>> _rbf(np.eye(2), np.eye(2), 0.5).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """
    X, Y = (x if is_sparse(x) else np.asarray(x, dtype=np.float64) for x in (X, Y))
    K = X @ Y.T
    K = K.toarray() if is_sparse(K) else K
    K *= -2
    K += _squares(X)[:, None]
    K += _squares(Y)
    np.maximum(K, 0, out=K)
    K *= -(1.0 / X.shape[1] if gamma is None else gamma)
    return np.exp(K, out=K)


def _deviation(X: Any) -> float:
    """Return the standard deviation of all entries; 1 if they are equal or squares overflow."""
    values = X.data if is_sparse(X) else X
    largest = float(np.abs(values).max(initial=0))
    if not 0 < largest <= SQUARABLE:
        return 1.0
    size = X.shape[0] * X.shape[1]
    shares = np.asarray(values, dtype=np.float64) / largest
    mean = float(shares.sum()) / size
    squares = float(((shares - mean) ** 2).sum()) + (size - shares.size) * mean**2
    deviation = float(np.sqrt(squares / size))
    return largest * deviation if deviation > ROUNDING else 1.0


def _squares(X: Any) -> np.ndarray:
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _kernel_names() -> dict[str, list[str]]:
    """Return the names of scikit-learn's kernels, and the arguments of each."""
    from sklearn.metrics.pairwise import KERNEL_PARAMS, kernel_metrics  # heavy

    return {name: sorted(KERNEL_PARAMS[name]) for name in sorted(kernel_metrics())}


def node_name(offsets: np.ndarray, row: int) -> str:
    """Return the name of a stacked row, for errors.

    Parameters
    ----------
    offsets : ndarray of int64 of shape (n + 1,)
        First row of each example.
    row : int

    Returns
    -------
    str

    Examples
    --------
    >>> node_name(np.array([0, 2, 5]), 3)
    'example 1, node 1'
    """
    i = int(np.searchsorted(offsets, row, side="right")) - 1
    return f"example {i}, node {row - int(offsets[i])}"


def node_namer(offsets: np.ndarray, rows: Any) -> Callable[[int], str]:
    """Return a function of v that names stacked row ``rows[v]``; see :func:`node_name`.

    Parameters
    ----------
    offsets : ndarray of int64 of shape (n + 1,)
        First row of each example.
    rows : sequence of int

    Returns
    -------
    callable
    """
    return lambda v: node_name(offsets, int(rows[v]))


def given_dense(X: Any) -> bool:
    """Return whether users gave dense features.

    Parameters
    ----------
    X : Sequences, array, data frame, sparse matrix, or list of these or of tuples of these

    Returns
    -------
    bool
    """
    if hasattr(X, "features"):
        X = X.features
    elif isinstance(X, (list, tuple)) and len(X):
        X = X[0][0] if isinstance(X[0], tuple) and len(X[0]) else X[0]
    return not is_sparse(X)


def _ritz_values(K: np.ndarray, steps: int) -> np.ndarray:
    """Return Rayleigh-Ritz values of a symmetric K on a Krylov space with a random start.

    All lie between the smallest and the largest eigenvalue; the outer ones come close to them.

    >>> bool(_ritz_values(np.diag([3.0, 2.0, -1.0]), 3).min().round(6) == -1)
    True
    """
    n = len(K)
    basis = np.zeros((n, min(steps, n)))
    images = np.zeros_like(basis)
    v = np.random.default_rng(0).normal(size=n)
    for k in range(basis.shape[1]):
        for _ in range(2):  # after one pass rounding leaves v not orthogonal
            v = v - basis[:, :k] @ (basis[:, :k].T @ v)
        size = np.linalg.norm(v)
        if size == 0:
            return np.linalg.eigvalsh(basis[:, :k].T @ images[:, :k])
        basis[:, k] = v / size
        images[:, k] = v = K @ basis[:, k]
    projected = basis.T @ images
    return np.linalg.eigvalsh((projected + projected.T) / 2)
