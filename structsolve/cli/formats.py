# The formats that the shell reads: those of structsolve.io, and those of plugins.
from __future__ import annotations

import contextlib
import errno
import inspect
import json
import os
from collections.abc import Iterator
from reprlib import repr as brief
from typing import Any

import numpy as np

from structsolve import registry
from structsolve.cli.options import UsageError
from structsolve.io import FORMATS, endings, guess_format
from structsolve.io._text import open_binary
from structsolve.io.select import parse_rows, parse_where
from structsolve.utils.arrays import n_rows


def check_format(name: str | None) -> None:
    """Refuse an unknown format.

    Parameters
    ----------
    name : str or None
        As given to ``--format``.

    Raises
    ------
    UsageError
        Listing the formats.
    """
    if name is None or name in FORMATS:
        return
    try:
        registry.default().find("readers", name)
    except ValueError as error:
        raise UsageError(f"--format: {', '.join(FORMATS)}, or a plugin's; {error}") from None


# Parameters of readers that choose examples of one file; models do not keep them.
SELECTING = ("split", "where", "rows")


def _readers() -> dict[str, Any]:
    known = registry.default()
    return {name: known.class_of("readers", name) for name in known.names("readers")}


def reads(name: str) -> Any:
    """Return the factory of a format's readers.

    Parameters
    ----------
    name : str

    Returns
    -------
    callable or None
        None if the shell reads the format without a plugin.
    """
    known = registry.default()
    if name not in known.names("readers") or (name in FORMATS and name != "npz"):
        return None
    return known.class_of("readers", name)


def guess(path: str) -> str:
    """Guess the format of a file by its contents, then by the longest known ending.

    Parameters
    ----------
    path : str

    Returns
    -------
    str

    Raises
    ------
    ValueError
        For an unknown ending with unknown contents.
    """
    readers = _readers()
    if os.path.isdir(path):
        for one, factory in readers.items():
            if getattr(factory, "folders", False):
                return one
    stem = path.lower().removesuffix(".gz")
    known = any(stem.endswith(end) for ends in endings().values() for end in ends)
    # For text files and unknown endings, the contents decide first.
    if stem.endswith(".txt") or not known:
        head = _head(path)
        for one, factory in readers.items():
            if head and getattr(factory, "sniff", lambda *_: False)(path, head):
                return one
        if path != "-" and "." not in os.path.basename(path) and not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return guess_format(path)


def _head(path: str) -> bytes:
    """The start of a file; empty if the file cannot be read twice."""
    if not os.path.isfile(path):
        return b""
    try:
        with open_binary(path) as handle:
            return handle.read(4096)
    except (OSError, EOFError, ValueError):  # the reader raises the error
        return b""


def settings(
    format: str, given: dict[str, Any] | None, kept: dict[str, Any] | None = None
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the parameters of a format's reader, and those that choose examples.

    Parameters
    ----------
    format : str
    given : dict, optional
        From the options of a command; None means not given.
    kept : dict, optional
        Parameters of training.

    Returns
    -------
    params : dict or None
        None if the shell reads the format without a plugin.
    selecting : dict

    Raises
    ------
    UsageError
        For parameters that the format does not take.
    """
    given = {key: value for key, value in (given or {}).items() if value is not None}
    factory = reads(format)
    known = parameters(factory)
    for key in given:
        if key not in known and key != "rows":
            takes = ", ".join({**dict.fromkeys(known), "rows": None})
            raise UsageError(f"option {key}: unknown for {format} data, which take {takes}")
    selecting = {key: given.pop(key) for key in SELECTING if key in given}
    parse_rows(selecting.get("rows"))
    if selecting.get("where") is not None:
        parse_where(selecting["where"])
    return None if factory is None else {**(kept or {}), **given}, selecting


def parameters(factory: Any) -> list[str]:
    """Return the names of a reader's parameters.

    Parameters
    ----------
    factory : callable or None
        None if the shell reads the format without a plugin.

    Returns
    -------
    list of str
    """
    return [] if factory is None else [*inspect.signature(factory).parameters]


def read_with_plugin(
    name: str, params: dict[str, Any] | None, path: str, fit: bool, steps: Any = None
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Read a file by a plugin's reader.

    Parameters
    ----------
    name : str
        Name of the format.
    params : dict, optional
        Parameters of the reader from training.
    path : str
    fit : bool
        Whether these are training data.
    steps : Steps, optional
        Of a pipeline, which get what is written in the file.

    Returns
    -------
    X, y
    reader : Reader
    params : dict
        Its parameters, afterwards.

    Raises
    ------
    ValueError
        If no plugin reads the format, and for malformed files; it names the plugin.
    TypeError
        If the reader returns anything but X and y, or learns parameters that JSON cannot hold.
    """
    params = dict(params or {})
    late = None if "rows" in parameters(reads(name)) else params.pop("rows", None)
    reader = registry.default().make("readers", name, **params)
    owner = registry.default().owner_of("readers", name)
    with _in_file(reader, path), registry.default().blame("structsolve_readers", owner):
        if steps is not None and hasattr(reader, "raw"):
            answer = steps.read(reader, path)
        else:
            answer = (reader.fit if fit else reader.read)(path)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TypeError(f"the reader of {name!r} returned {answer!r}, expected (X, y)")
        learned = reader.get_params(deep=False)
        learned = {key: value for key, value in learned.items() if key not in SELECTING}
        try:
            learned = json.loads(json.dumps(learned))
        except TypeError as error:
            raise TypeError(f"the reader of {name!r} has parameters {learned}: {error}") from None
    if fit:
        _refuse_replaced(path, params, learned)
    X, y = answer[0] if steps is not None else _arrays(answer[0]), answer[1]
    if late is not None:
        rows = parse_rows(late)
        X, y = X[rows], y if y is None else y[rows]
    if params.get("rows", late) and not n_rows(X):
        raise ValueError(f"{path}: found no examples left by rows={params.get('rows', late)}")
    return X, y, reader, learned


def _refuse_replaced(path: str, given: dict[str, Any], learned: dict[str, Any]) -> None:
    """Refuse parameters that were given and that the reader has learned otherwise."""
    for name, value in given.items():
        if value is not None and learned.get(name, value) not in (value, str(value)):
            own = brief(learned[name])
            raise UsageError(
                f"--option {name}={value}: found {name}={own} in {path}, where the reader learns "
                "it; leave it out"
            )


@contextlib.contextmanager
def _in_file(reader: Any, path: str) -> Iterator[None]:
    """Put the file, and the line if the reader gives it, in front of an error."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.filename is not None:  # not the reader's fault
            raise cause from None
        if path in str(error):
            raise
        kind = next(k for k in (ValueError, TypeError, RuntimeError) if isinstance(error, k))
        place = reader.place(path) if hasattr(reader, "place") else path
        raise kind(f"{place}: {error}") from error


def _arrays(X: Any) -> Any:
    """Make a matrix of rows of numbers, matrices of lists of such rows; leave others unchanged."""
    if not isinstance(X, list) or not X or isinstance(X[0], tuple):  # graphs are tuples
        return X
    try:
        if not hasattr(X[0], "shape") and np.ndim(X[0]) == 1:
            rows = np.asarray(X)
            return X if rows.dtype.kind in "US" else rows  # sequences of symbols
        return [np.asarray(x) if isinstance(x, list) else x for x in X]
    except ValueError:  # ragged: the structure refuses it by its example
        return X
