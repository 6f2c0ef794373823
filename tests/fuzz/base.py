"""Inputs that should be refused: cases by number, each made of its target's name and that number.

A target is a class with ``name``, ``refusals`` (exceptions that are answers), and ``run(rng)``,
which makes one case.  Targets are made anew for every batch of ``batch`` cases, so that what one
case leaves behind is the same when a batch is run again::

    python -m fuzz 60                          # every target, for a minute
    python -m fuzz --replay natives 1234       # one case, and what stands before it in its batch
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np


class Target:
    """What targets share: ``say(text)`` tells what a case is before it runs."""

    name: str
    refusals: tuple[type[Exception], ...] = (ValueError,)
    batch = 250
    listed = True  # among those of a run that names none
    say: Callable[[str], None]


class Fault(AssertionError):
    """Neither an answer nor a refusal that tells what is wrong."""


def generator(target: str, case: int) -> np.random.Generator:
    """Return the source of all that is random in a case."""
    return np.random.default_rng([zlib.crc32(target.encode()), case])


def short(value: object, width: int = 200) -> str:
    """Return a value's text, cut."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: {error}>"
    return text if len(text) <= width else f"{text[:width]}..."
