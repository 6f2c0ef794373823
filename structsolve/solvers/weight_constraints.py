"""Linear constraints on named blocks of weights, for solvers that support them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..utils.arrays import real_array
from ..utils.params import Params
from ..utils.sparse import refuse_broken
from ._polyhedron import Polyhedron, TooManyRows
from .qp import Contradiction


class LinearConstraint(Params):
    """``lower <= <coefficients, w> <= upper``, one row or several, over named blocks of weights.

    Parameters
    ----------
    coefficients : dict
        Block name to coefficients: an array of the block's shape (that of ``coef_[name]``, the
        intercept as last row of the node block) for one row, the same with a leading axis for
        several rows, or a sparse matrix with one row per constraint and the block's entries in
        C order as columns.  Blocks left out have coefficients 0.
    upper, lower : float or array of shape (rows,), optional
        None leaves that side open; equal values give an equation.

    Notes
    -----
    Nonzero coefficients of weights that no part reads are refused, because such a weight could
    satisfy the row alone.  Undirected tables of ``"mrf"`` read only ``coef_["pair"][a, b]`` with
    ``a <= b``.

    Examples
    --------
    Two classes whose transitions to each other score at least as much as those to themselves:

    >>> from structsolve.solvers import LinearConstraint
    >>> row = LinearConstraint({"transition": [[1.0, -1.0], [-1.0, 1.0]]}, upper=0.0)
    >>> row
    LinearConstraint(coefficients={'transition': <2 x 2, ...>}, upper=0.0, lower=None)
    """

    def __init__(self, coefficients: dict[str, Any], upper: Any = None, lower: Any = None):
        self.coefficients = coefficients
        self.upper = upper
        self.lower = lower

    def rows(self, layout: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the constraints as rows over the flat w.

        Parameters
        ----------
        layout : WeightLayout

        Returns
        -------
        rows : scipy.sparse CSR of shape (rows, dim)
        lower, upper : ndarray of shape (rows,)
            Infinite if a side is open.

        Raises
        ------
        ValueError
            If shapes do not fit the blocks, or a weight with a coefficient is read by no part.
        """
        import scipy.sparse as sp  # heavy

        if not isinstance(self.coefficients, dict) or not self.coefficients:
            raise ValueError(
                f"LinearConstraint: coefficients is {self.coefficients!r}, expected a dict of "
                f"block name to array; blocks: {[b.name for b in layout.blocks]}"
            )
        parts = []
        for name, given in self.coefficients.items():
            positions, shape = _positions(layout, name)
            if sp.issparse(given):
                refuse_broken(given, f"LinearConstraint: {name!r}")
                part = sp.csr_matrix(given, dtype=np.float64)
                if part.shape[1] != positions.size:
                    raise ValueError(
                        f"LinearConstraint: {name!r} has {part.shape[1]} columns, expected "
                        f"{positions.size} for the block of shape {shape}"
                    )
            else:
                array = real_array(given, f"LinearConstraint: {name!r}")
                if array.shape == shape:
                    array = array[None]
                if array.shape[1:] != shape:
                    raise ValueError(
                        f"LinearConstraint: {name!r} has shape {array.shape}, expected {shape}, or "
                        f"(rows, {', '.join(map(str, shape))}) for several rows"
                    )
                part = sp.csr_matrix(array.reshape(len(array), -1))
            _refuse_unread(part, name, layout)
            parts.append(part @ _unit_rows(positions, layout.dim))
        if len({part.shape[0] for part in parts}) > 1:
            raise ValueError(
                "LinearConstraint: the blocks have different numbers of rows: "
                f"{ {n: p.shape[0] for n, p in zip(self.coefficients, parts)} }"
            )
        total = sp.csr_matrix(sum(parts[1:], parts[0]))
        ends = (
            _ends(self.lower, -np.inf, (total.shape[0],), "LinearConstraint: lower"),
            _ends(self.upper, np.inf, (total.shape[0],), "LinearConstraint: upper"),
        )
        return total, *ends

    def __repr__(self) -> str:
        shown = {name: _Abbreviated(array) for name, array in dict(self.coefficients).items()}
        upper, lower = _Abbreviated(self.upper), _Abbreviated(self.lower)
        return f"LinearConstraint(coefficients={shown}, upper={upper!r}, lower={lower!r})"


class WeightBounds(Params):
    """``lower <= w <= upper`` for every weight of a block that some part reads.

    Parameters
    ----------
    block : str
        Name of the block.
    lower, upper : float or array of the block's shape, optional
        None leaves that side open.  The last row of ``"node"`` is the intercept's: an array with an
        infinite last row leaves it free.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import CuttingPlane, WeightBounds
    >>> solver = CuttingPlane(constraints=[WeightBounds("transition", lower=0.0)])
    >>> X, Y = [[[0.0], [1.0]], [[1.0], [0.0]]], [["a", "b"], ["b", "a"]]
    >>> bool(StructuredSVM("chain", solver=solver).fit(X, Y).coef_["transition"].min() > -1e-9)
    True
    """

    def __init__(self, block: str, lower: Any = None, upper: Any = None):
        self.block = block
        self.lower = lower
        self.upper = upper

    def rows(self, layout: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the constraints as rows over the flat w.

        Parameters
        ----------
        layout : WeightLayout

        Returns
        -------
        rows : scipy.sparse CSR of shape (rows, dim)
        lower, upper : ndarray of shape (rows,)
            Infinite if a side is open.

        Raises
        ------
        ValueError
            If shapes do not fit the blocks.
        """
        positions, shape = _positions(layout, self.block)
        lower = _ends(self.lower, -np.inf, shape, f"WeightBounds({self.block!r}): lower").ravel()
        upper = _ends(self.upper, np.inf, shape, f"WeightBounds({self.block!r}): upper").ravel()
        read = ~layout.unread(self.block).ravel()
        return _unit_rows(positions[read], layout.dim), lower[read], upper[read]

    def __repr__(self) -> str:
        lower, upper = _Abbreviated(self.lower), _Abbreviated(self.upper)
        return f"WeightBounds({self.block!r}, lower={lower!r}, upper={upper!r})"


@dataclass
class Rows:
    """``A w <= c``, and ``A w = c`` where ``equal``.

    Parameters
    ----------
    A : scipy.sparse CSR of shape (r, dim)
        Every row has norm 1.
    c : ndarray of shape (r,)
    equal : ndarray of bool of shape (r,)
    """

    A: Any
    c: np.ndarray
    equal: np.ndarray

    def violation(self, w: np.ndarray) -> float:
        """Return the largest violation of a row at w.

        Parameters
        ----------
        w : ndarray of shape (dim,)

        Returns
        -------
        float
            At least 0.
        """
        if not len(self.c):
            return 0.0
        excess = self.A @ w - self.c
        return float(np.where(self.equal, np.abs(excess), excess).max(initial=0))

    def polyhedron(self, strict: bool = True) -> Polyhedron | None:
        """Return the projection of weights onto the rows, or None without rows.

        Parameters
        ----------
        strict : bool, default=True
            Raise if there are too many rows to project onto; False returns None then.

        Returns
        -------
        Polyhedron or None

        Raises
        ------
        Contradiction
            If no weights satisfy all rows.
        TooManyRows
            If ``strict`` and there are too many rows.
        """
        if not len(self.c):
            return None
        try:
            made = Polyhedron(self.A, self.c, self.equal)
        except TooManyRows:
            if strict:
                raise
            return None
        if self.violation(made.nearest(np.zeros(self.A.shape[1]))) > 1e-9 * max(
            1.0, float(np.abs(self.c).max())
        ):
            raise Contradiction("constraints contradict each other: no weights satisfy them all")
        return made


def _listed(constraints: Any) -> Any:
    if constraints is None or isinstance(constraints, (list, tuple)):
        return constraints or ()
    return [constraints]


def check_examples(constraints: Any, layout: Any, examples: Any) -> None:
    """Refuse examples for which constraint rows lose their meaning.

    Parameters
    ----------
    constraints : list or None
        Only constraints with ``check_examples(layout, examples)`` are checked.
    layout : WeightLayout
    examples : Examples

    Raises
    ------
    ValueError
        If a constraint refuses the examples.
    """
    for constraint in _listed(constraints):
        if hasattr(constraint, "check_examples"):
            constraint.check_examples(layout, examples)


def assemble(constraints: Any, layout: Any, examples: Any = None) -> Rows:
    """Join constraints into one-sided rows over the flat w.

    Parameters
    ----------
    constraints : list or None
        Objects with ``rows(layout)``, as :meth:`LinearConstraint.rows`.  Those whose rows hold only
        for some features also have ``check_examples(layout, examples)``.
    layout : WeightLayout
    examples : Examples, optional
        Training data.

    Returns
    -------
    Rows

    Raises
    ------
    TypeError, ValueError
        If an object has no ``rows``, or no w can satisfy a row.
    """
    import scipy.sparse as sp  # heavy

    parts, ends, equal = [sp.csr_matrix((0, layout.dim))], [np.zeros(0)], [np.zeros(0, bool)]
    if not _listed(constraints):
        return Rows(parts[0], ends[0], equal[0])
    for constraint in _listed(constraints):
        if not hasattr(constraint, "rows"):
            raise TypeError(
                f"constraints holds {constraint!r}, expected LinearConstraint or WeightBounds, "
                "or SuperModular"
            )
        rows, lower, upper = constraint.rows(layout)
        crossed = np.flatnonzero(lower > upper)
        if crossed.size:
            raise ValueError(
                f"{constraint!r}: lower is {lower[crossed[0]]} and upper {upper[crossed[0]]}; "
                "expected lower <= upper"
            )
        same = lower == upper
        for sign, end, pick in ((1, upper, same | (upper < np.inf)), (-1, lower, lower > -np.inf)):
            pick = pick & ~same if sign < 0 else pick
            parts.append(sign * rows[pick])
            ends.append(sign * end[pick])
            equal.append(same[pick])
    if examples is not None:
        check_examples(constraints, layout, examples)
    A, c, same = sp.vstack(parts, format="csr"), np.concatenate(ends), np.concatenate(equal)
    norm = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
    empty = norm == 0
    if (empty & (np.where(same, -np.abs(c), c) < 0)).any():
        raise ValueError("constraints has a row without coefficients that no weights satisfy")
    A, c, same, norm = A[~empty], c[~empty], same[~empty], norm[~empty]
    return Rows(sp.csr_matrix(sp.diags_array(1 / norm) @ A), c / norm, same)


def _positions(layout: Any, name: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the positions in w of a block's entries, in C order, and the block's shape."""
    positions = layout.view(np.arange(layout.dim), name)
    return positions.ravel(), positions.shape


def _refuse_unread(part: Any, name: str, layout: Any) -> None:
    """Refuse coefficients of weights that no part reads, naming the first."""
    mask = layout.unread(name)
    entries = part.tocoo()
    wrong = np.flatnonzero((entries.data != 0) & mask.ravel()[entries.col])
    if not wrong.size:
        return
    place = np.unravel_index(int(entries.col[wrong[0]]), mask.shape)
    cell = [int(k) for k in place]
    why = "no node or edge has these states"
    if layout.block(name).symmetric and cell[-2] > cell[-1]:
        other = [*cell[:-2], cell[-1], cell[-2]]
        why = f"the tables are symmetric, and {other} is the weight of both; add it there"
    raise ValueError(
        f"LinearConstraint: {name!r} has the coefficient {entries.data[wrong[0]]:g} at {cell}, a "
        f"weight that no part reads, which would satisfy the row alone; {why}"
    )


def _unit_rows(positions: np.ndarray, dim: int) -> Any:
    """Return one row per position, with 1 at the position and 0 elsewhere."""
    import scipy.sparse as sp  # heavy

    n = len(positions)
    return sp.csr_matrix((np.ones(n), (np.arange(n), positions)), shape=(n, dim))


def _ends(given: Any, default: float, shape: tuple[int, ...], what: str) -> np.ndarray:
    values = real_array(default if given is None else given, what)
    try:
        values = np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(
            f"{what} has shape {values.shape}, expected one number or {shape}"
        ) from None
    if np.isnan(values).any() or (values == -default).any():
        raise ValueError(f"{what} has NaN or {-default}, expected numbers")
    return values


class _Abbreviated:
    """An array in a repr: its shape and a checksum, which distinguish constraints."""

    def __init__(self, value: Any):
        self.value = value

    def __repr__(self) -> str:
        if self.value is None or np.isscalar(self.value):
            return repr(self.value)
        if hasattr(self.value, "tocsr"):
            csr = self.value.tocsr()
            code = zlib.crc32(csr.indptr.tobytes() + csr.indices.tobytes() + csr.data.tobytes())
        else:
            code = zlib.crc32(np.ascontiguousarray(self.value, dtype=np.float64).tobytes())
        shape = " x ".join(map(str, np.shape(self.value)))
        return f"<{shape}, {code:08x}>"
