"""Refusal of masked arrays, whose masks are not supported."""

from __future__ import annotations

from typing import Any

import numpy as np


def refuse_masked(given: Any, name: str, advice: str) -> None:
    """Refuse data with masked entries, whose values would be read as data.

    Parameters
    ----------
    given : object
        As users give X or y: an array, or a sequence of arrays, of tuples of them, or of objects
        whose attribute ``labels`` is one.
    name : str
        Name of the argument.
    advice : str
        The advice in the message.

    Raises
    ------
    ValueError
        The message names the argument and the example.

    Examples
    --------
    >>> refuse_masked([np.ma.masked_equal([0, 7], 7)], "X", "give x.filled(0)")
    Traceback (most recent call last):
        ...
    ValueError: X, example 0: found a masked array with 1 masked entry, which would count as ...
    """
    kind = np.ma.MaskedArray
    if isinstance(given, kind):
        _refuse(given, name, advice)
    elif isinstance(given, (list, tuple)):
        for i, entry in enumerate(given):
            for part in entry if isinstance(entry, tuple) else (entry,):
                part = getattr(part, "labels", part)
                if isinstance(part, kind):
                    _refuse(part, f"{name}, example {i}", advice)


def _refuse(array: Any, where: str, advice: str) -> None:
    masked = int(np.ma.count_masked(array))
    if masked:
        entries = "entry" if masked == 1 else "entries"
        raise ValueError(
            f"{where}: found a masked array with {masked} masked {entries}, which would count as "
            f"data: {advice}"
        )
