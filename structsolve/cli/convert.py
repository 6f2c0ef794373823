# `convert` of the shell: from any format to one for other programs or faster loading.
from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from structsolve.cli import messages
from structsolve.cli.formats import check_format, guess, settings
from structsolve.cli.options import UsageError, check_folder, data_options, reader_options

# Endings of outputs, and their contents.
OUTPUTS = (".npz", ".crfsuite", ".svmlight")


def add_commands(command: Any) -> None:
    """Add the parser of `convert`.

    Parameters
    ----------
    command : callable
        Makes a parser from a name, the function that runs it, and a text.
    """
    sub = command("convert", convert, "Write a data file in another format.")
    sub.add_argument("data")
    sub.add_argument("output", help=f"ends in {', '.join(OUTPUTS)}")
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
    from structsolve.io.conll import read_conll, split_labels  # heavy
    from structsolve.io.crfsuite import write_crfsuite  # heavy
    from structsolve.io.npz import write_npz  # heavy
    from structsolve.io.select import parse_rows  # heavy

    ending = next((end for end in OUTPUTS if args.output.lower().endswith(end)), None)
    if ending is None:
        raise UsageError(f"{args.output}: expected an ending of {', '.join(OUTPUTS)}")
    check_format(args.format)
    check_folder(args.output)
    format = args.format or guess(args.data)
    params, selecting = settings(format, reader_options(args))
    if format in ("conllu", "extreme"):
        raise UsageError(f"{args.data}: {format} data cannot be converted")
    if ending == ".crfsuite":
        if format != "conll":
            raise UsageError(f"{args.output}: only conll data have names; found {format}")
        sentences = read_conll(args.data, label_column=None)[0][parse_rows(selecting.get("rows"))]
        labels = split_labels(sentences, -1)
        attributes = [[[f"c{j}={v}" for j, v in enumerate(t)] for t in s] for s in sentences]
        write_crfsuite(args.output, attributes, labels)
        messages.say("saved", f"{args.output}: {len(labels)} sequences")
        return
    recipe = Recipe(format, reader=params, selecting=selecting)
    recipe.features = "columns" if format == "conll" else None
    data = recipe.fit(args.data)
    X, y = data.X, data.y
    if ending == ".npz":
        write_npz(args.output, X, y)
    else:
        _write_svmlight(args.output, X, y)
    messages.say("saved", f"{args.output}: {messages.size_text(data)}")


def _write_svmlight(path: str, X: Any, y: Any) -> None:
    from sklearn.datasets import dump_svmlight_file  # heavy

    if isinstance(X, list) or y is None:
        raise UsageError(f"{path}: svmlight holds labelled rows; found sequences or no labels")
    y = np.asarray(y)
    if y.dtype.kind not in "biuf":
        raise UsageError(f"{path}: svmlight labels are numbers; found {y[0]!r}")
    dump_svmlight_file(X, y, path, zero_based=False, multilabel=y.ndim == 2)
