"""The polytope of a structure: sparse rows, bounds, and the part of each variable."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..utils.sparse import as_csr


@dataclass(frozen=True, eq=False)
class Polytope:
    """``{x : low <= A x <= high, lower <= x <= upper}``, a bounded set that contains every label.

    A variable is a part of the label, or helps to describe the set of labels. The part scores of an
    example make its objective: ``<theta, mu> = sum_j theta[parts[j]] x[j]``.

    Parameters
    ----------
    A : scipy.sparse matrix of shape (m, n)
    low, high : ndarray of float64 of shape (m,)
        Bounds of the rows; equal if a row is an equation, infinite if there is no bound.
    parts : ndarray of int64 of shape (n,) or (n, p)
        Index in ``theta_i`` (flat, see :class:`~structsolve.part_layout.PartLayout`) of the score
        of each variable; -1 for none.  Several variables may share a part (pooled
        tables), and a variable may have several parts (a table's entry, and that of edge features).
    decode : callable
        Returns the encoded label (int32) of an integral ``x``.
    lower, upper : ndarray of float64 of shape (n,), optional
        Bounds of the variables, finite; 0 and 1 by default.
    integer : ndarray of bool of shape (n,), optional
        Variables that an integer program keeps integral; all by default.

    Raises
    ------
    ValueError
        If sizes do not match, or a bound of a variable is not finite.

    Examples
    --------
    One class of three:

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.lp import Polytope
    >>> one = np.ones(1)
    >>> simplex = Polytope(sparse.csr_matrix(np.ones((1, 3))), one, one, np.arange(3),
    ...                    lambda x: np.array([x.argmax()], dtype=np.int32))
    >>> simplex.scores(np.array([5.0, 6.0, 7.0, 0.0])).tolist()
    [5.0, 6.0, 7.0]
    """

    A: Any
    low: np.ndarray
    high: np.ndarray
    parts: np.ndarray
    decode: Callable[[np.ndarray], np.ndarray]
    lower: Any = None
    upper: Any = None
    integer: Any = None

    def __post_init__(self) -> None:
        if not hasattr(self.A, "tocsr"):
            raise ValueError(f"A is {type(self.A).__name__}, expected a scipy.sparse matrix")
        m, n = self.A.shape
        defaults = {"lower": 0.0, "upper": 1.0, "low": np.nan, "high": np.nan}
        for name, default in defaults.items():
            given = getattr(self, name)
            filled = np.full(n, default) if given is None else np.asarray(given, dtype=np.float64)
            object.__setattr__(self, name, filled)
        integer = np.ones(n) if self.integer is None else self.integer
        object.__setattr__(self, "integer", np.asarray(integer, dtype=bool))
        object.__setattr__(self, "A", as_csr(self.A, "A"))
        parts = np.asarray(self.parts, dtype=np.int64)
        object.__setattr__(self, "parts", parts[:, None] if parts.ndim == 1 else parts)
        sizes = {"low": m, "high": m, "lower": n, "upper": n, "integer": n}
        for name, size in sizes.items():
            shape = np.shape(getattr(self, name))
            if shape != (size,):
                raise ValueError(
                    f"{name} has the shape {shape}, expected ({size},): A has {m} rows and {n} "
                    "columns"
                )
        if self.parts.ndim != 2 or len(self.parts) != n:
            raise ValueError(f"parts has the shape {parts.shape}, expected ({n},) or ({n}, p)")
        for name in ("lower", "upper"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} is not finite; a polytope of labels is bounded")
        if not np.isfinite(self.A.data).all() or np.isnan([self.low, self.high]).any():
            raise ValueError("A, low or high holds NaN, or A an infinite number; expected numbers")
        if self.parts.min(initial=0) < -1:
            raise ValueError(
                f"parts holds {self.parts.min()}, expected places in theta, or -1 for none"
            )

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.A.shape[1]

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """Return the objective of the variables for part scores.

        Parameters
        ----------
        theta : ndarray of shape (theta_size,)

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If ``theta`` is too short for ``parts``.
        """
        if self.parts.max(initial=-1) >= len(theta):
            raise ValueError(
                f"parts holds {self.parts.max()}, expected places in theta, which has {len(theta)}"
            )
        c = np.zeros(self.size)
        for parts in self.parts.T:
            own = parts >= 0
            c[own] += theta[parts[own]]
        return c

    def marginals(self, x: np.ndarray, size: int) -> np.ndarray:
        """Return the parts of ``x``.

        Parameters
        ----------
        x : ndarray of shape (n,)
        size : int
            Size of ``theta``.

        Returns
        -------
        mu : ndarray of shape (size,)
        """
        mu = np.zeros(size)
        for parts in self.parts.T:
            own = parts >= 0
            mu += np.bincount(parts[own], weights=x[own], minlength=size)
        return mu


class Polytopes:
    """The polytope of every example, returned by the hook ``structsolve_polytope``.

    Subclasses define :meth:`build`, and :meth:`key` if examples share a polytope, so that one
    program is built for them and solved repeatedly, with warm starts.

    Attributes
    ----------
    exact : bool
        Whether every vertex is a label, so that the linear program is the oracle.
    note : str
        The reason in a line: "totally unimodular: ...", or an example of a fractional vertex.
    """

    exact: bool = False
    note: str = ""

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example.

        Parameters
        ----------
        i : int

        Returns
        -------
        Polytope
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement build()")

    def key(self, i: int) -> Hashable:
        """Return the key that examples of the same polytope share; ``i`` by default.

        Parameters
        ----------
        i : int

        Returns
        -------
        hashable
        """
        return i


# Powers of two, up and down, of coefficients of moderate size.
MODERATE = 10


def built(polytopes: Polytopes, i: int) -> tuple[Polytope, np.ndarray]:
    """Return the polytope of an example; rows of very small or large numbers are divided by one.

    Solvers' tolerances are absolute: they would ignore a row of small numbers.

    Parameters
    ----------
    polytopes : Polytopes
    i : int

    Returns
    -------
    polytope : Polytope
    units : ndarray of shape (m,)
        By what the rows are divided.

    Raises
    ------
    TypeError
        If ``build()`` returned anything else.
    """
    polytope = polytopes.build(i)
    if not isinstance(polytope, Polytope):
        raise TypeError(
            f"example {i}: {type(polytopes).__name__}.build() returned {reprlib.repr(polytope)}, "
            "expected a Polytope"
        )
    A = polytope.A
    m, own = A.shape[0], np.flatnonzero(A.data)
    powers = np.log2(np.abs(A.data[own]))
    if np.abs(powers).max(initial=0) <= MODERATE:
        return polytope, np.ones(m)
    rows = np.repeat(np.arange(m), np.diff(A.indptr))[own]
    least, most = np.full(m, np.inf), np.full(m, -np.inf)
    np.minimum.at(least, rows, powers)
    np.maximum.at(most, rows, powers)
    # A row of both would lose the small ones.
    far = ((least < -MODERATE) | (most > MODERATE)) & (most - least <= 2 * MODERATE)
    units = np.ones(m)
    units[far] = np.exp2(np.round((least[far] + most[far]) / 2))
    A = A.copy()
    A.data /= np.repeat(units, np.diff(A.indptr))
    return replace(polytope, A=A, low=polytope.low / units, high=polytope.high / units), units


def bound_of(rows: Any, c: np.ndarray, dual: np.ndarray, upper: Any = None) -> float:
    """Return an upper bound of ``c x`` over a polytope from row duals, whatever their quality.

    ``c x = y A x + (c - y A) x``, where each row and each variable is at one of its bounds at most.

    Parameters
    ----------
    rows : object with A, low, high, lower and upper
    c : ndarray of shape (n,)
    dual : ndarray of shape (m,)
        An entry whose row has no bound on its side counts as 0.
    upper : ndarray of shape (n,), optional
        Replaces the variables' upper bounds.

    Returns
    -------
    float
    """
    upper = rows.upper if upper is None else upper
    side = np.where(dual > 0, rows.high, rows.low)
    y = np.where(np.isfinite(side), dual, 0.0)
    rest = c - rows.A.T @ y
    return float(y @ np.where(np.isfinite(side), side, 0.0)) + float(
        np.where(rest > 0, rest * upper, rest * rows.lower).sum()
    )


def block_diagonal(polytopes: Sequence[Polytope]) -> Polytope:
    """Return the product of polytopes, their variables one after the other.

    Parameters
    ----------
    polytopes : sequence of Polytope

    Returns
    -------
    Polytope
        Without parts (all -1); ``decode`` raises ValueError.
    """
    from scipy import sparse  # heavy

    def refuse(x: np.ndarray) -> np.ndarray:
        raise ValueError("a product of polytopes has no label of its own")

    A = sparse.block_diag([p.A for p in polytopes], format="csr")
    low, high, lower, upper, integer = (
        np.concatenate([getattr(p, name) for p in polytopes])
        for name in ("low", "high", "lower", "upper", "integer")
    )
    bounds = {"lower": lower, "upper": upper, "integer": integer}
    return Polytope(A, low, high, np.full(A.shape[1], -1), refuse, **bounds)
