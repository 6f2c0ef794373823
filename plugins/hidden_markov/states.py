"""States and initial probabilities as users give them."""

from __future__ import annotations

from numbers import Number, Real
from typing import Any

import numpy as np

from structsolve.utils.arrays import real_array

# Types of a state.
STATES = (str, Real, np.generic)


def flat_states(y: Any, offsets: np.ndarray) -> list[Any]:
    """Return the states of all sequences, None for hidden ones, checked against their lengths.

    Parameters
    ----------
    y : list
        Of each sequence its states, or None.
    offsets : ndarray of int64 of shape (n + 1,)

    Returns
    -------
    list

    Raises
    ------
    ValueError
        The message names the example.
    """
    sizes = np.diff(offsets).tolist()
    if isinstance(y, (str, bytes, dict)) or not hasattr(y, "__len__") or len(y) != len(sizes):
        raise ValueError(f"y: expected the states, or None, of each of {len(sizes)} sequences")
    flat: list[Any] = []
    named: bool | None = None  # whether states are strings
    for i, (labels, size) in enumerate(zip(y, sizes)):
        if labels is not None and not np.iterable(labels):
            raise ValueError(f"y, example {i}: found {labels!r}, expected {size} states, or None")
        labels = [None] * size if labels is None else [*labels]
        if len(labels) != size:
            raise ValueError(f"y, example {i}: found {len(labels)} states, expected {size}")
        kinds = {*map(type, labels)} - {type(None)}
        texts = {issubclass(kind, str) for kind in kinds}
        if named is not None:
            texts.add(named)
        if len(texts) > 1 or not all(issubclass(kind, STATES) for kind in kinds):
            first = next(label for label in labels if label is not None)
            named = isinstance(first, str) if named is None else named
            wrong = next(
                label
                for label in labels
                if label is not None
                and (isinstance(label, str) != named or not isinstance(label, STATES))
            )
            raise ValueError(
                f"y, example {i}: found the state {wrong!r}, expected all strings or all numbers"
            )
        named = texts.pop() if texts else None
        wrong = [one for one in labels if isinstance(one, Number) and not _is_plain(one)]
        if wrong:
            raise ValueError(
                f"y, example {i}: found the state {wrong[0]!r}, expected strings, or finite "
                "numbers below 2**63; None where a state is hidden"
            )
        flat += labels
    return flat


def _is_plain(number: Any) -> bool:
    """Return whether a number is real and finite, and its type one of NumPy."""
    return isinstance(number, Real) and abs(float(number)) < 2.0**63  # not of NaN


def checked_init(name: str, value: Any, shapes: dict[str, tuple[int, ...]]) -> np.ndarray:
    """Return parameters of ``init`` as an array.

    Parameters
    ----------
    name : str
        Key of ``init``.
    value : array
    shapes : dict of str to tuple
        Expected, of all names.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ValueError
        If they are no probabilities, or no variances, of that shape.
    """
    if name not in shapes:
        raise ValueError(f"init: found {name!r}, expected names among {[*shapes]}")
    value = real_array(value, f"init: {name!r}").copy()
    if value.shape != shapes[name]:
        raise ValueError(f"init: {name!r} has the shape {value.shape}, expected {shapes[name]}")
    if not np.isfinite(value).all():
        raise ValueError(f"init: {name!r} has numbers that are not finite, expected finite ones")
    if name == "variances" and value.min() <= 0:
        raise ValueError(f"init: {name!r} has the number {value.min():g}, expected all above 0")
    if name in ("start", "transition", "table"):
        if value.min() < 0:
            raise ValueError(f"init: {name!r} has the number {value.min():g}, expected all >= 0")
        totals = np.atleast_1d(value.sum(axis=-1))
        row = int(abs(totals - 1).argmax())
        if abs(totals[row] - 1) > 1e-6:
            raise ValueError(
                f"init: row {row} of {name!r} sums to {totals[row]:g}, expected probabilities, "
                "which sum to 1"
            )
    return value


def pair_counts(states: np.ndarray, offsets: np.ndarray, K: int) -> np.ndarray:
    """Return counts of pairs of known states.

    Parameters
    ----------
    states : ndarray of int
        Of all sequences, -1 where unknown.
    offsets : ndarray of int64 of shape (n + 1,)
    K : int
        Number of states.

    Returns
    -------
    ndarray of float64 of shape (K, K)
    """
    tails, heads = states[:-1], states[1:]
    kept = (tails >= 0) & (heads >= 0)
    kept[offsets[1:-1] - 1] = False  # from one sequence to the next
    return np.bincount(tails[kept] * K + heads[kept], minlength=K * K).reshape(K, K).astype(float)
