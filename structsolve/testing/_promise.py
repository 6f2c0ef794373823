"""The error of a broken promise, and the words and comparisons of its message."""

from __future__ import annotations

from typing import Any

import numpy as np

# Tolerance for rounding of sums of parts.
TOLERANCE = 1e-9


class BrokenPromise(AssertionError):
    """A structure, or a plugin's operator for it, violates its declaration.

    Parameters
    ----------
    message : str
    structure : object, optional
        The structure that was checked.
    example : int, optional
        Number of the example, if any.
    theta : ndarray, optional
        Scores of the operator's last call.
    case : Case, optional
        The data set: ``X``, ``Y``, ``space``, ``examples``, and the operators bound to them.

    Examples
    --------
    An oracle's answer can be reproduced::

        from structsolve.structure import calls

        try:
            check_structure(MyStructure())
        except BrokenPromise as broken:
            calls.argmax(broken.case.oracle, broken.example, broken.theta)
    """

    def __init__(
        self,
        message: str,
        structure: Any = None,
        example: int | None = None,
        theta: np.ndarray | None = None,
        case: Any = None,
    ):
        super().__init__(message)
        self.structure, self.example, self.theta, self.case = structure, example, theta, case


def agree(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Compare like ``np.allclose``, which is several times slower on a few numbers."""
    same = actual == expected
    if same.all():
        return True
    with np.errstate(invalid="ignore"):
        close = np.abs(actual - expected) <= tolerance * (1 + np.abs(expected))
    return bool((same | (close & np.isfinite(expected))).all())


def kind_of(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    of = f" of {dtype}" if dtype is not None else ""
    return f"type {type(value).__module__}.{type(value).__qualname__}{of}"


def short(value: Any) -> str:
    """Return a value's text in messages."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 400 else f"{text[:400]}..."
