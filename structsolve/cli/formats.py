# The formats that the shell reads: those of structsolve.io, and those of plugins.
from __future__ import annotations

import json
from typing import Any

import numpy as np

from structsolve import registry
from structsolve.cli.options import UsageError
from structsolve.io import FORMATS, guess_format


def check_format(name: str | None) -> None:
    """Refuse a format that nobody reads.

    Parameters
    ----------
    name : str or None
        As given to ``--format``.

    Raises
    ------
    UsageError
        It lists the formats.
    """
    if name is None or name in FORMATS:
        return
    try:
        registry.default().find("readers", name)
    except ValueError as error:
        raise UsageError(f"--format: {', '.join(FORMATS)}, or a plugin's; {error}") from None


def guess(path: str) -> str:
    """Name the format of a file by its ending; the longest ending that is known decides.

    Parameters
    ----------
    path : str

    Returns
    -------
    str

    Raises
    ------
    ValueError
        For an unknown ending.
    """
    known = registry.default()
    readers = {name: known.find("readers", name).factory for name in known.names("readers")}
    stem = path.lower().removesuffix(".gz")
    fitting = [
        (len(ending), name)
        for name, factory in readers.items()
        for ending in getattr(factory, "endings", ())
        if stem.endswith(ending)
    ]
    if not fitting:
        return guess_format(path)
    length, name = max(fitting)
    ours = (len(e) for endings in FORMATS.values() for e in endings if stem.endswith(e))
    return guess_format(path) if max(ours, default=0) >= length else name


def read_with_plugin(
    name: str, params: dict[str, Any] | None, path: str, fit: bool
) -> tuple[Any, Any, dict[str, Any]]:
    """Read a file by a plugin's reader.

    Parameters
    ----------
    name : str
        Of the format.
    params : dict, optional
        Of the reader, as training left them.
    path : str
    fit : bool
        Whether these are training data.

    Returns
    -------
    X, y
    params : dict
        Of the reader, afterwards.

    Raises
    ------
    ValueError
        When no plugin reads the format, and for malformed files; it names the plugin.
    TypeError
        When the reader returns something else than X and y, or learns what JSON cannot hold.
    """
    reader = registry.default().make("readers", name, **(params or {}))
    with registry.default().blame("structsolve_readers"):
        answer = (reader.fit if fit else reader.read)(path)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TypeError(f"the reader of {name!r} returned {answer!r}, expected (X, y)")
        learned = reader.get_params(deep=False)
        try:
            learned = json.loads(json.dumps(learned))
        except TypeError as error:
            raise TypeError(f"the reader of {name!r} has parameters {learned}: {error}") from None
    return _arrays(answer[0]), answer[1], learned


def _arrays(X: Any) -> Any:
    """Rows of numbers as a matrix, lists of such rows as matrices; all else as it is."""
    if not isinstance(X, list) or not X:
        return X
    if not hasattr(X[0], "shape") and np.ndim(X[0]) == 1:
        return np.asarray(X)
    return [np.asarray(x) if isinstance(x, list) else x for x in X]
