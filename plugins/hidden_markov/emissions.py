"""Distributions of observations given the state: a table of symbols, or independent Gaussians."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.given import is_sparse, refuse_infinite
from structsolve.utils.suggest import a_type

RAGGED = "lists of unequal lengths"
# Squares of numbers up to it, and sums of many, are finite.
LARGEST = 1e140


class Categorical:
    """A probability for each state and symbol.

    Parameters
    ----------
    smoothing : float
        Added to every count.

    Attributes
    ----------
    symbols : ndarray of shape (V,)
    table : ndarray of shape (K, V)
    """

    names = ("symbols", "table")

    def __init__(self, smoothing: float):
        self.smoothing = smoothing

    def read(self, X: Any, learn: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the symbols of all sequences, and the offsets of the sequences.

        Parameters
        ----------
        X : list of sequences of str or int
        learn : bool
            Take the symbols of X; else refuse others than the known ones.

        Returns
        -------
        flat : ndarray of int
        offsets : ndarray of int64

        Raises
        ------
        ValueError
            The message names the example.
        """
        table = isinstance(X, (str, bytes, dict)) or hasattr(X, "columns") or hasattr(X, "tocsr")
        if table or not hasattr(X, "__len__") or len(X) == 0:
            told = a_type(X) if table or not hasattr(X, "__len__") else "no examples"
            raise ValueError(
                f"X: expected a list with a sequence of symbols of each example, found {told}"
            )
        rows = []
        for i, x in enumerate(X):
            try:
                row, ragged = np.asarray(list(x) if isinstance(x, str) else x), False
            except ValueError:
                row, ragged = np.empty(0), True
            if row.shape == (0,) and not ragged:
                raise ValueError(f"X, example {i}: found no symbols, expected at least one")
            if row.ndim != 1 or row.dtype.kind not in "iuUSOTb" or ragged:
                told = RAGGED if ragged else f"{row.dtype} of shape {row.shape}"
                raise ValueError(
                    f"X, example {i}: found {told}, expected a sequence of symbols (strings or "
                    "integers); emission='gaussian' takes numbers"
                )
            rows.append(row)
        _refuse_mixed(X, rows)
        rows = [np.asarray(row.tolist()) if row.dtype.kind in "OT" else row for row in rows]
        flat = np.concatenate(rows)
        offsets = packing.size_offsets([len(row) for row in rows])
        if flat.dtype.kind in "Of":  # which integers of different sizes become together
            i = next((i for i, row in enumerate(rows) if row.dtype.kind == "O"), 0)
            raise ValueError(
                f"X, example {i}: found integers beyond 64 bits, or signed and unsigned ones of 64 "
                "bits together, expected integers that one type holds; pass strings"
            )
        if learn:
            self.symbols, numbers = np.unique(flat, return_inverse=True)
            return numbers.ravel(), offsets
        if (flat.dtype.kind in "iub") != (self.symbols.dtype.kind in "iub"):
            place = np.zeros(len(flat), dtype=np.int64)
            unknown = np.ones(len(flat), dtype=bool)
        else:
            place = np.minimum(np.searchsorted(self.symbols, flat), len(self.symbols) - 1)
            unknown = self.symbols[place] != flat
        if unknown.any():
            first = int(unknown.argmax())
            i = int(np.searchsorted(offsets, first, side="right")) - 1
            raise ValueError(
                f"X, example {i}, position {first - offsets[i]}: found the symbol "
                f"{flat.tolist()[first]!r}, which is unknown; expected some of "
                f"{self.symbols.tolist()[:12]}"
            )
        return place, offsets

    def start(self, flat: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
        """Return first probabilities of the states of all observations.

        Parameters
        ----------
        flat : ndarray
        K : int
        rng : Generator

        Returns
        -------
        ndarray of shape (n, K)
        """
        # Equal symbols have equal states: a random table.
        return rng.dirichlet(np.ones(K), size=len(self.symbols))[flat]

    def fit(self, flat: np.ndarray, weight: np.ndarray) -> None:
        """Set the most likely table; states without weight keep theirs.

        Parameters
        ----------
        flat : ndarray
        weight : ndarray of shape (n, K)
            Probabilities of the states.
        """
        counts = np.array([np.bincount(flat, w, len(self.symbols)) for w in weight.T])
        self.table = normalized(counts + self.smoothing, getattr(self, "table", None))

    def log_scores(self, flat: np.ndarray) -> np.ndarray:
        """Return the log-probability of all observations in every state.

        Parameters
        ----------
        flat : ndarray

        Returns
        -------
        ndarray of shape (n, K)
        """
        return np.ascontiguousarray(log(self.table).T[flat])

    def prior(self) -> float:
        """Return what smoothing adds to the log-likelihood.

        Returns
        -------
        float
        """
        return self.smoothing * float(log(self.table).sum()) if self.smoothing else 0.0

    def drawer(self, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that draws a symbol for each state of a sequence.

        Parameters
        ----------
        rng : Generator

        Returns
        -------
        callable
        """
        below = cumulated(self.table)

        def draw(states: np.ndarray) -> np.ndarray:
            numbers = zip(states.tolist(), rng.random(len(states)).tolist())
            drawn = [bisect(below[s], number) for s, number in numbers]
            return np.asarray(self.symbols[np.array(drawn, dtype=np.int64)])

        return draw


class Gaussian:
    """A mean and a variance for each state and feature.

    Parameters
    ----------
    least_variance : float

    Attributes
    ----------
    means, variances : ndarray of shape (K, d)
    """

    names = ("means", "variances")

    def __init__(self, least_variance: float):
        self.least_variance = least_variance

    def read(self, X: Any, learn: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of all sequences, and the offsets of the sequences.

        Parameters
        ----------
        X : list of arrays of shape (length, d)
        learn : bool
            Take any number of columns.

        Returns
        -------
        flat : ndarray of shape (n, d)
        offsets : ndarray of int64

        Raises
        ------
        ValueError
            The message names the example.
        """
        flat, offsets = packing.stack_rows(X, None if learn else self.means.shape[1])
        if not flat.shape[1]:
            raise ValueError("X: found rows of no columns, expected at least one number in each")
        if is_sparse(flat):
            flat = flat.toarray()
        refuse_infinite(flat, offsets, most=LARGEST)
        return np.asarray(flat, dtype=np.float64), offsets

    def start(self, flat: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
        """Return first states, by k-means.

        Parameters
        ----------
        flat : ndarray
        K : int
        rng : Generator

        Returns
        -------
        ndarray of shape (n, K)
        """
        from sklearn.cluster import KMeans  # heavy

        if len(flat) < K:
            raise ValueError(f"X has {len(flat)} rows of numbers, expected at least n_states={K}")
        clusters = KMeans(K, n_init=1, random_state=int(rng.integers(2**31)))
        # By a power of 2, which changes no digit: squares of tiny numbers would be 0.
        return np.eye(K)[clusters.fit_predict(np.ldexp(flat, -np.frexp(np.abs(flat).max())[1]))]

    def fit(self, flat: np.ndarray, weight: np.ndarray) -> None:
        """Set the most likely means and variances; states without weight keep theirs.

        Parameters
        ----------
        flat : ndarray
        weight : ndarray of shape (n, K)
            Probabilities of the states.

        Raises
        ------
        ValueError
            If such a state has none.
        """
        total = weight.sum(axis=0)
        kept = total <= 1e-300
        if kept.any() and not hasattr(self, "means"):
            raise ValueError(
                f"state {int(kept.argmax())} has no observation, so it has no mean; give fewer "
                "states than there are different observations, or init="
            )
        scale = np.where(kept, 1, total)[:, None]
        means = weight.T @ flat / scale
        # By differences: sums of squares lose digits.
        spread = [w @ (flat - mean) ** 2 for w, mean in zip(weight.T, means)]
        variances = np.maximum(np.array(spread) / scale, self.least_variance)
        if kept.any():
            means[kept], variances[kept] = self.means[kept], self.variances[kept]
        self.means: np.ndarray = means
        self.variances: np.ndarray = variances

    def log_scores(self, flat: np.ndarray) -> np.ndarray:
        """Return the log-density of all observations in every state.

        Parameters
        ----------
        flat : ndarray

        Returns
        -------
        ndarray of shape (n, K)
        """
        scores = [
            -0.5 * (((flat - m) ** 2 / v).sum(axis=1) + np.log(2 * np.pi * v).sum())
            for m, v in zip(self.means, self.variances)
        ]
        return np.ascontiguousarray(np.transpose(scores))

    def prior(self) -> float:
        """Return 0: nothing is smoothed.

        Returns
        -------
        float
        """
        return 0.0

    def drawer(self, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that draws a row for each state of a sequence.

        Parameters
        ----------
        rng : Generator

        Returns
        -------
        callable
        """
        return lambda states: rng.normal(self.means[states], np.sqrt(self.variances[states]))


def cumulated(table: np.ndarray) -> list[list[float]]:
    """Return for each row the probability of at most each entry, as ``rng.choice(p=row)`` does.

    Parameters
    ----------
    table : ndarray of shape (K, V)

    Returns
    -------
    list of list of float

    Examples
    --------
    >>> cumulated(np.array([[0.25, 0.75], [1.0, 0.0]]))
    [[0.25, 1.0], [1.0, 1.0]]
    """
    sums = table.cumsum(axis=1)
    return (sums / sums[:, -1:]).tolist()


def _refuse_mixed(X: Any, rows: list[np.ndarray]) -> None:
    """Refuse sequences of strings and integers together, which arrays turn into strings."""
    first = None
    for i, (x, row) in enumerate(zip(X, rows)):
        kinds = {"integers" if row.dtype.kind in "iub" else "strings"}
        if row.dtype.kind == "O" or (
            row.dtype.kind == "U" and not isinstance(x, (str, np.ndarray))
        ):
            kinds = {_kind(v) for v in x}
        first = first or sorted(kinds)[0]
        if kinds != {first} or first not in ("strings", "integers"):
            raise ValueError(
                f"X, example {i}: found {' and '.join(sorted(kinds))}, expected symbols that are "
                "all strings or all integers, in all examples"
            )


def _kind(symbol: Any) -> str:
    if isinstance(symbol, str):
        return "strings"
    whole = isinstance(symbol, (int, np.integer, np.bool_))
    return "integers" if whole else a_type(symbol)


def log(table: np.ndarray) -> np.ndarray:
    """Return logarithms, -inf of 0.

    Parameters
    ----------
    table : ndarray
        At least 0.

    Returns
    -------
    ndarray
    """
    with np.errstate(divide="ignore"):
        logs: np.ndarray = np.log(table)
    return logs


def normalized(counts: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    """Return rows that sum to 1; rows without counts as before.

    Parameters
    ----------
    counts : ndarray of shape (rows, n)
    before : ndarray of the same shape, or None

    Returns
    -------
    ndarray
        Rows of 0 stay 0 if there is nothing before.
    """
    total = counts.sum(axis=1, keepdims=True)
    rows: np.ndarray = counts / np.where(total > 0, total, 1)
    if before is not None:
        rows = np.where(total > 0, rows, before)
    return rows
