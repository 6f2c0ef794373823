# What several commands of the shell read from their options.
from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any


class UsageError(ValueError):
    """A command line that cannot be understood."""


def kernel_params(given: Sequence[str] | None) -> dict[str, Any] | None:
    """Read ``name=value`` pairs: whole numbers, numbers, else words.

    Parameters
    ----------
    given : sequence of str, optional

    Returns
    -------
    dict of str to int, float or str, or None
        None where none are given.

    Raises
    ------
    UsageError
        For what is no such pair.
    """
    if not given:
        return None
    params: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise UsageError(f"--kernel-param {pair!r}: expected NAME=VALUE, such as gamma=0.1")
        params[name] = text
        for kind in (float, int):  # the last that fits
            with contextlib.suppress(ValueError):
                params[name] = kind(text)
    return params


def check_folder(*paths: str | None) -> None:
    """Refuse outputs that cannot be written, before hours of training.

    Parameters
    ----------
    *paths : str or None

    Raises
    ------
    ValueError
        It names the folder.
    """
    for path in filter(None, paths):
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise ValueError(f"{path}: found no folder {folder}; expected one to write to")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"{path}: the folder {folder} cannot be written to")
