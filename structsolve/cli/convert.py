# `convert` of the shell: from any format to one for other programs or faster loading.
from __future__ import annotations

import argparse
from itertools import pairwise
from typing import Any

import numpy as np

from structsolve import registry
from structsolve.cli import messages
from structsolve.cli.formats import check_format, guess, settings
from structsolve.cli.options import UsageError, check_outputs, data_options, reader_options
from structsolve.io._text import atomic_write
from structsolve.io.reader import Reader
from structsolve.io.tables import TableReader

# Endings of outputs with numbers; plugins write named features.
OUTPUTS = (".npz", ".svmlight")


def add_commands(command: Any) -> None:
    """Add the parser of `convert`.

    Parameters
    ----------
    command : callable
        Makes a parser from a name, the function that runs it, and a text.
    """
    sub = command("convert", convert, "Write a data file in another format.")
    sub.add_argument("data")
    sub.add_argument("output", help=f"ends in {', '.join(OUTPUTS)}, or as a plugin's writer")
    data_options(sub)


def convert(args: argparse.Namespace) -> None:
    """Read a file in any format, and write it in the format of the output's ending.

    Parameters
    ----------
    args : Namespace
        Options of ``convert``.

    Raises
    ------
    ValueError
        For malformed data, and data that the output cannot hold.
    """
    from structsolve.cli.data import Recipe  # heavy
    from structsolve.io.npz import write_npz  # heavy

    ending = next((end for end in OUTPUTS if args.output.lower().endswith(end)), None)
    writers = {end: name for name, one in _readers_with("write") for end in one.endings}
    written = next((end for end in writers if args.output.lower().endswith(end)), None)
    if ending is None and written is None:
        ends = ", ".join([*OUTPUTS, *writers])
        raise UsageError(f"{args.output}: expected an ending of {ends}")
    check_format(args.format)
    check_outputs({"the data": args.data}, {"output": args.output})
    format = args.format or guess(args.data)
    params, selecting = settings(format, reader_options(args))
    known = registry.default()
    if written is not None:
        named = [name for name, _ in _readers_with("names")]
        if format not in named:
            told = " or ".join(named) or "a plugin's"
            raise UsageError(f"{args.output}: only {told} data have names; found {format}")
        X, y = known.make("readers", format, **{**(params or {}), **selecting}).names(args.data)
        known.make("readers", writers[written]).write(args.output, X, y)
        messages.say("saved", f"{args.output}: {len(y)} sequences")
        return
    data = Recipe(format, reader=params, selecting=selecting, missing="keep").fit(args.data)
    X, y = data.X, data.y
    if ending == ".npz":
        write_npz(args.output, X, y)
    else:
        ranks = isinstance(data.reader, TableReader) and data.reader.ranks
        _write_svmlight(args.output, X, y, ranks)
    messages.say("saved", f"{args.output}: {messages.size_text(data)}")


def _readers_with(method: str) -> list[tuple[str, Any]]:
    """Return the readers of plugins that have a method of their own, by name."""
    known = registry.default()
    readers = [(name, known.class_of("readers", name)) for name in known.names("readers")]
    base = getattr(Reader, method)
    return [(name, one) for name, one in readers if getattr(one, method, base) is not base]


def _write_svmlight(path: str, X: Any, y: Any, ranks: bool) -> None:
    from scipy import sparse  # heavy

    if isinstance(X, list) or y is None:
        raise UsageError(f"{path}: svmlight holds labelled rows; found sequences or no labels")
    y = np.asarray(y)
    if y.dtype.kind not in "biuf":
        raise UsageError(f"{path}: svmlight labels are numbers; found {y[0]!r}")
    if ranks or (y.ndim == 2 and not np.isin(y, (0, 1)).all()):
        raise UsageError(f"{path}: svmlight holds a number a row or label sets; found {y[0]}")
    sets = y.ndim == 2
    labels = [",".join(map(str, np.flatnonzero(row))) if sets else _exact(row) for row in y]
    rows = sparse.csr_matrix(X)
    rows.sum_duplicates()
    if np.isnan(rows.data).any():
        raise UsageError(f"{path}: svmlight holds no missing features; .npz does")
    with atomic_write(path) as handle:
        for label, (a, b) in zip(labels, pairwise(rows.indptr.tolist()), strict=True):
            cells = zip((rows.indices[a:b] + 1).tolist(), rows.data[a:b], strict=True)
            texts = [f"{column}:{_exact(value)}" for column, value in cells]
            # A blank line is no example.
            handle.write(" ".join([label, *(texts or ["1:0"] * (not label))]) + "\n")


def _exact(number: Any) -> str:
    return str(number.item() + 0).removesuffix(".0")  # Booleans are 0 and 1
