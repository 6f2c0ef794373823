"""Inputs that should be refused: cases by number, each made of its target's name and that number.

A target is a class with ``name``, ``refusals`` (exceptions that are answers), and ``run(rng)``,
which makes one case, its warnings ignored.  Targets are made anew for every batch of ``batch``
cases, so that what one case leaves behind is the same when a batch is run again::

    python -m fuzz 60                          # every target, for a minute
    python -m fuzz --replay natives 1234       # one case, and what stands before it in its batch
"""

from __future__ import annotations

import re
import traceback
import zlib
from collections.abc import Callable

import numpy as np


class Target:
    """The base of targets: ``say(text)`` describes a case before it runs."""

    name: str
    refusals: tuple[type[Exception], ...] = (ValueError,)
    batch = 250
    limit = 20  # seconds of processor time of a case: the process is killed afterwards
    listed = True  # among those of a run that names none
    say: Callable[[str], None]


class Fault(AssertionError):
    """Neither an answer nor an error that says what is wrong."""


def generator(target: str, case: int) -> np.random.Generator:
    """Return the random generator of a case."""
    return np.random.default_rng([zlib.crc32(target.encode()), case])


#: What Python, NumPy and Cython say of a value, which names no argument of ours.
_BARE = re.compile(
    r"unsupported operand|bad operand|'\w+' object |'[<>=!]+' not supported|object of type '"
    r"|(int|float|len|complex)\(\) argument|cannot unpack|can't multiply|only integer scalar"
    r"|only length-1 arrays|\w+\(\) (missing|got an|takes)|must be real number|Cannot convert"
    r"|Cannot cast ufunc|ufunc '|unhashable|Argument '\w+' has incorrect type|list indices"
    r"|string indices|a bytes-like object|an integer is required|Expected \w+, got"
    r"|expected (str|bytes|string)|descriptor|can only concatenate|sequence item|not all arguments"
)


def judged(error: TypeError) -> TypeError:
    """Return a TypeError that says what is wrong; raise a fault for an internal one."""
    if _BARE.match(str(error)):
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise Fault(f"TypeError at {where.name}, line {where.lineno}: {error}") from error
    return error


def short(value: object, width: int = 200) -> str:
    """Return a value's text, shortened."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: {error}>"
    return text if len(text) <= width else f"{text[:width]}..."
