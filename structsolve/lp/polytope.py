"""What a structure says of its polytope: sparse rows, bounds, and the parts that variables are."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Polytope:
    """``{x : low <= A x <= high, lower <= x <= upper}``, a bounded set that holds every label.

    A variable is a part of the label, or helps to say which labels there are. The part scores of an
    example make its objective: ``<theta, mu> = sum_j theta[parts[j]] x[j]``.

    Parameters
    ----------
    A : scipy.sparse matrix of shape (m, n)
    low, high : ndarray of float64 of shape (m,)
        Bounds of the rows; equal where a row is an equation, infinite where there is none.
    parts : ndarray of int64 of shape (n,)
        Where in ``theta_i`` (flat, as :class:`~structsolve.blocks.Layout` says) the score of each
        variable is; -1 where it has none. Several variables may share a part (pooled tables).
    decode : callable
        Makes the encoded label (int32) of a vertex ``x`` whose entries are integers.
    lower, upper : ndarray of float64 of shape (n,), optional
        Bounds of the variables, finite; 0 and 1 by default.
    integer : ndarray of bool of shape (n,), optional
        Variables that an integer program keeps integral; all by default.

    Raises
    ------
    ValueError
        When sizes do not fit each other, or a bound of a variable is not finite.

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
        m, n = self.A.shape
        for name, default in (("lower", 0.0), ("upper", 1.0)):
            given = getattr(self, name)
            filled = np.full(n, default) if given is None else np.asarray(given, dtype=np.float64)
            object.__setattr__(self, name, filled)
        if self.integer is None:
            object.__setattr__(self, "integer", np.ones(n, dtype=bool))
        object.__setattr__(self, "A", self.A.tocsr())
        object.__setattr__(self, "parts", np.asarray(self.parts, dtype=np.int64))
        sizes = {"low": m, "high": m, "parts": n, "lower": n, "upper": n, "integer": n}
        for name, size in sizes.items():
            shape = np.shape(getattr(self, name))
            if shape != (size,):
                raise ValueError(
                    f"{name} has the shape {shape}, expected ({size},): A has {m} rows and {n} "
                    "columns"
                )
        for name in ("lower", "upper"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} is not finite; a polytope of labels is bounded")

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """Return the objective of the variables for part scores ``theta``."""
        found = np.zeros(len(self.parts))
        own = self.parts >= 0
        found[own] = theta[self.parts[own]]
        return found

    def marginals(self, x: np.ndarray, size: int) -> np.ndarray:
        """Return what ``x`` says of the parts, an array of the size of ``theta``."""
        own = self.parts >= 0
        return np.bincount(self.parts[own], weights=x[own], minlength=size)


class Polytopes:
    """The polytope of every example: what the hook ``structsolve_polytope`` returns.

    Subclasses give :meth:`build`, and :meth:`key` where examples share a polytope, so that one
    program is put together for them and solved again and again, warm.

    Attributes
    ----------
    exact : bool
        Whether every vertex is a label, so that the linear program is the oracle.
    note : str
        Why, in a line: "totally unimodular: ...", or what a fractional vertex looks like.
    """

    exact: bool = False
    note: str = ""

    def build(self, i: int) -> Polytope:
        """Return the polytope of example ``i``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement build()")

    def key(self, i: int) -> Hashable:
        """Return what examples of the same polytope have in common; ``i`` by default."""
        return i
