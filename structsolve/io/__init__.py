"""Data files: svmlight, NumPy archives, and what plugins read.

`read_examples` guesses the format from the file's ending.  Malformed files raise a ValueError that
names the file and the line, what was found and what was expected.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from .. import registry

__all__ = ["FORMATS", "guess_format", "read_examples"]

#: File endings by format name, for guessing (``.gz`` may follow); plugins' readers have others.
FORMATS: dict[str, tuple[str, ...]] = {
    "svmlight": (".svmlight", ".svm", ".libsvm"),
    "npz": (".npz",),
}


def endings() -> dict[str, tuple[str, ...]]:
    """Return the endings of all formats, those of plugins first.

    Returns
    -------
    dict of str to tuple of str
    """
    known = registry.default()
    names = [name for name in known.names("readers") if name not in FORMATS]
    others = {name: getattr(known.class_of("readers", name), "endings", ()) for name in names}
    return {**{name: ends for name, ends in others.items() if ends}, **FORMATS}


def guess_format(path: str | os.PathLike[str]) -> str:
    """Name the format of a file by its ending.

    Parameters
    ----------
    path : path-like
        Upper or lower case; a final ``.gz`` is ignored.

    Returns
    -------
    str
        A key of `FORMATS`, or the name of a plugin's reader.

    Raises
    ------
    ValueError
        For an unknown ending.

    Examples
    --------
    >>> guess_format("train.conll.gz")
    'conll'
    """
    stem = os.fspath(path).lower().removesuffix(".gz")
    known = endings()
    fitting = [
        (len(e), name in FORMATS, name)
        for name, ends in known.items()
        for e in ends
        if stem.endswith(e)
    ]
    if fitting:
        return max(fitting)[-1]
    told = "; ".join(f"{name}: {' '.join(ends)}" for name, ends in known.items())
    raise ValueError(f"{path}: found no known ending; give the format, or use one of {told}")


def read_examples(
    path: str | os.PathLike[str], format: str | None = None, **options: Any
) -> tuple[Any, Any]:
    """Read examples and their labels.

    Parameters
    ----------
    path : path-like
        The file; ``"-"`` is standard input (not for npz).
    format : {"svmlight", "npz"} or str, optional
        Or the name of a plugin's reader, such as "conll". By default guessed from the ending.
    **options
        Passed on to the format's reader, e.g. ``label_column`` to
        `structsolve.plugins.chain.conll.read_conll`.

    Returns
    -------
    X, y
        In the form of `read_svmlight`, `read_npz`, or of the plugin's reader: of its ``function``,
        such as `read_conll`, if it has one.

    Raises
    ------
    ValueError
        For an unknown format or ending, and for malformed files; it names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.txt"
    >>> _ = path.write_text("a X\\nb Y\\n")
    >>> read_examples(path)
    ([[['a'], ['b']]], [['X', 'Y']])
    """
    name = guess_format(path) if format is None else format
    if name in FORMATS:
        reader = getattr(import_module(f"structsolve.io.{name}"), f"read_{name}")
        return reader(path, **options)
    known = registry.default()
    others = [other for other in known.names("readers") if other not in FORMATS]
    if name not in others:
        raise ValueError(
            f"format: found {name!r}; expected one of {', '.join([*FORMATS, *others])}"
        )
    function = getattr(known.class_of("readers", name), "function", None)
    if function is not None:
        return function(path, **options)
    return known.make("readers", name, **options).fit(path)
