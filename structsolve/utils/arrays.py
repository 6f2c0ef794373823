"""Arrays for compiled loops: aligned, padded, checked."""

from __future__ import annotations

from typing import Any

import numpy as np


def padded(width: int) -> int:
    """Return the storage width of a row of ``width`` states.

    Rows of more than four states are padded to whole cache lines (8 doubles), so vector loops have
    no remainder.

    Parameters
    ----------
    width : int

    Returns
    -------
    int
        At least `width`.

    Examples
    --------
    >>> [padded(k) for k in (1, 2, 3, 5, 26)]
    [1, 2, 4, 8, 32]
    """
    if width <= 2:
        return width
    return 4 if width <= 4 else -(-width // 8) * 8


def aligned_zeros(size: int) -> np.ndarray:
    """Return zeros of float64 that start on a cache line (64 bytes).

    Parameters
    ----------
    size : int

    Returns
    -------
    ndarray of float64, shape (size,)
    """
    buffer = np.zeros(size + 8)
    start = (-buffer.__array_interface__["data"][0] % 64) // 8
    return buffer[start : start + size]


def check_numbers(numbers: Any, end: int, what: str) -> None:
    """Raise ValueError unless all numbers are from 0 to ``end - 1``.

    Parameters
    ----------
    numbers : array of int
    end : int
    what : str
        Their name in the message.
    """
    numbers = np.asarray(numbers)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < end:
        raise ValueError(
            f"{what}: found numbers from {numbers.min()} to {numbers.max()}, expected 0 to "
            f"{end - 1}"
        )


def check_rows(first: Any, entries: Any, rows: int, end: int, what: str) -> None:
    """Raise ValueError unless arrays are compressed rows of numbers from 0 to ``end - 1``.

    Parameters
    ----------
    first : array of int of shape (rows + 1,)
        Start of each row in ``entries``, and the end.
    entries : array of int
    rows, end : int
    what : str
        Their name in the message.
    """
    first, entries = np.asarray(first), np.asarray(entries)
    if (
        first.shape != (rows + 1,)
        or first[0] != 0
        or first[-1] != len(entries)
        or ((first[1:] < first[:-1]).any())
    ):
        raise ValueError(
            f"{what}: found rows that begin at {first[:3].tolist()} ..., expected {rows + 1} "
            f"numbers that rise from 0 to {len(entries)}"
        )
    check_numbers(entries, end, what)


def check_blocks(offsets: Any, starts: Any, size: int, rows: int) -> None:
    """Raise ValueError unless the square blocks of ranges of rows fit into an array.

    Parameters
    ----------
    offsets : array of int of shape (n + 1,)
        First row of each range.
    starts : array of int of shape (n + 1,)
        First entry of each block.
    size : int
        Entries of the array.
    rows : int
        Number of rows.
    """
    lengths = np.diff(offsets)
    if (
        len(offsets) < 1
        or len(starts) != len(offsets)
        or (offsets[0] < 0 or offsets[-1] > rows or (lengths < 0).any())
    ):
        raise ValueError(f"offsets, starts: expected ranges of {rows} rows, and a start of each")
    blocks = np.diff(starts)
    if (
        starts[0] < 0
        or starts[-1] > size
        or (blocks < 0).any()
        or ((blocks.astype(np.float64) != lengths.astype(np.float64) ** 2).any())
    ):
        raise ValueError(f"starts: found no places of square blocks within {size} entries")


def check_offsets(offsets: Any, total: int, least: int, what: str) -> None:
    """Raise ValueError unless offsets rise from 0 to ``total``, by ``least`` at a time or more.

    Parameters
    ----------
    offsets : array of int
    total, least : int
    what : str
        Their name in the message.
    """
    offsets = np.asarray(offsets)
    if (
        not len(offsets)
        or offsets[0] != 0
        or offsets[-1] != total
        or (offsets[1:] < offsets[:-1] + least).any()
    ):
        raise ValueError(f"{what} and offsets do not fit each other")


def check_counts(counts: Any, total: int, what: str) -> None:
    """Raise ValueError unless counts are of at least 0, and add up to ``total``.

    Parameters
    ----------
    counts : array of int
    total : int
    what : str
        Their name in the message.
    """
    counts = np.asarray(counts)
    # Check each one first: a sum of huge ones may overflow.
    sound = counts.ndim == 1 and counts.dtype.kind in "iu"
    if sound and counts.size:
        sound = counts.min() >= 0 and counts.max() <= total
    if not sound or int(counts.sum()) != total:
        raise ValueError(f"{what}: found counts that do not add up to {total}")


def check_finite(arrays: dict[str, Any]) -> None:
    """Raise ValueError if an array of numbers holds NaN or infinity.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Arrays by their name in messages.
    """
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name}: found NaN or infinity, expected finite numbers")


def real_array(values: Any, what: str, single: bool = False) -> np.ndarray:
    """Return an array of float64; refuse what holds other things than real numbers.

    Parameters
    ----------
    values : array-like
    what : str
        Their name in the message.
    single : bool, default=False
        Leave float32 as it is.

    Returns
    -------
    ndarray
        ``values`` itself where its type fits.

    Raises
    ------
    ValueError
        For complex numbers, text (that of numbers, too), dates, and lists that are no array.

    Examples
    --------
    >>> real_array([1, 2], "weights")
    array([1., 2.])
    >>> real_array([1j], "weights")
    Traceback (most recent call last):
    ...
    ValueError: weights: found no array of numbers (Complex data not supported)
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        mixed = array.ravel() if array.dtype == object else ()
        if array.dtype.kind in "USmM" or any(isinstance(one, (str, bytes)) for one in mixed):
            raise ValueError("text or dates; convert them first")
        left = single and array.dtype == np.float32
        return array if left else array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what}: found no array of numbers ({error})") from None


def checked_array(
    x: Any, dtype: Any, what: str, size: int | None = None, writable: bool = False
) -> np.ndarray:
    """Return x; refuse anything but a flat contiguous array of ``dtype`` (and ``size`` entries).

    Parameters
    ----------
    x : ndarray
    dtype : dtype
    what : str
        Its name in messages.
    size : int, optional
        Number of entries.
    writable : bool, default=False
        Whether a loop writes to it.

    Returns
    -------
    ndarray
        `x`; if empty, an array of one spare entry, which has an address.

    Raises
    ------
    ValueError
        For another type, shape or size, and for memory that is not contiguous or read-only.
    """
    if not isinstance(x, np.ndarray) or x.dtype != dtype or x.ndim != 1:
        kind = f"{x.dtype}, {x.ndim}-D" if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(f"{what}: found {kind}, expected a 1-D array of {np.dtype(dtype)}")
    if not x.flags.c_contiguous or not x.flags.aligned:
        raise ValueError(f"{what}: not contiguous; pass np.ascontiguousarray({what})")
    if writable and not x.flags.writeable:
        raise ValueError(f"{what}: read-only, expected an array that can be written to")
    if size is not None and x.size != size:
        raise ValueError(f"{what}: found {x.size} entries, expected {size}")
    return x if x.size else np.zeros(1, dtype)


def plain_numbers(values: np.ndarray) -> np.ndarray:
    """Return numbers that are objects, as data frames of several or nullable types give them.

    Parameters
    ----------
    values : ndarray

    Returns
    -------
    ndarray
        Of numbers if all entries are, else `values`.

    Examples
    --------
    >>> plain_numbers(np.array([[True, 1], [0, 1]], dtype=object)).tolist()
    [[1, 1], [0, 1]]
    """
    if values.dtype != object:
        return values
    try:
        numbers = np.array(values.tolist())
    except ValueError:  # rows of several lengths
        return values
    return numbers if numbers.dtype.kind in "biuf" else values


def n_rows(values: Any) -> int:
    """Return the number of rows of an array, a sparse matrix or a sequence.

    Parameters
    ----------
    values : array, sparse matrix or sequence

    Returns
    -------
    int
    """
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


def part_of(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with ``prefix``, named without it.

    Parameters
    ----------
    arrays : dict of str to ndarray
    prefix : str

    Returns
    -------
    dict of str to ndarray
    """
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
