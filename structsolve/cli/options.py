# Options that several commands of the shell share.
from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from structsolve.io import FORMATS
from structsolve.io._text import number_of
from structsolve.registry.arguments import value_of

# Options of outputs that are archives, which cannot be written to a pipe.
_SAVED = ("--model", "--checkpoint", "--out")


class UsageError(ValueError):
    """An invalid command line."""


def kernel_params(given: Sequence[str] | None) -> dict[str, Any] | None:
    """Read ``name=value`` pairs; values are integers, floats or words.

    Parameters
    ----------
    given : sequence of str, optional

    Returns
    -------
    dict of str to int, float or str, or None
        None if none are given.

    Raises
    ------
    UsageError
        For anything but such a pair.
    """
    if not given:
        return None
    params: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise UsageError(f"--kernel-param {pair!r}: expected NAME=VALUE, such as gamma=0.1")
        params[name] = text
        for kind in (float, int):  # the last that parses
            with contextlib.suppress(ValueError):
                params[name] = kind(text)
    return params


def class_weight(given: Sequence[str] | Mapping[Any, float] | None, y: Any = None) -> Any:
    """Read ``--class-weight``: "balanced", or ``class=weight`` pairs.

    Parameters
    ----------
    given : sequence of str, optional
        Or a dict that was read before.
    y : object, optional
        The labels of the data: if the first is a text, so is the name of every class.

    Returns
    -------
    None, "balanced" or dict
        Classes that parse as integers become integers, unless `y` has texts.

    Raises
    ------
    UsageError
        For anything but such a pair, and for a repeated class.
    """
    if not given:
        return None
    if isinstance(given, Mapping):
        return given
    if list(given) == ["balanced"]:
        return "balanced"
    while not isinstance(y, str) and hasattr(y, "__len__") and len(y):
        y = next(iter(y))
    weights: dict[Any, float] = {}
    for pair in given:
        word, _, text = pair.rpartition("=")
        name: Any = word
        if not isinstance(y, str):
            with contextlib.suppress(ValueError):
                name = number_of(word, int)
        try:
            weight = number_of(text)
        except ValueError:
            weight = -1.0
        if not word or not weight >= 0:
            raise UsageError(
                f"--class-weight {pair!r}: expected CLASS=WEIGHT, such as rare=5, or balanced alone"
            )
        if name in weights:
            raise UsageError(f"--class-weight {pair!r}: {word} is given twice")
        weights[name] = weight
    return weights


def data_options(group: Any) -> None:
    """Add the options for the contents of data files.

    Parameters
    ----------
    group : ArgumentParser, or a group of one
    """
    group.add_argument(
        "--format",
        metavar="NAME",
        help=f"{', '.join(FORMATS)}, or a plugin's: conll, csv, ...; default: guessed",
    )
    group.add_argument("--target", metavar="NAME", help="the labels: an array, columns, or a file")
    group.add_argument("--split", metavar="NAME", help="train, test, ... of a file with several")
    group.add_argument("--where", metavar="NAME=VALUE", help="only these examples, = or !=")
    group.add_argument("--rows", metavar="N or A:B", help="only these examples, numbered from 0")
    group.add_argument(
        "--option", metavar="NAME=VALUE", action="append", help="other reader parameters"
    )


def reader_options(args: Any) -> dict[str, Any]:
    """Collect the options for the contents of data files.

    Parameters
    ----------
    args : Namespace
        With ``target``, ``split``, ``where``, ``rows`` and ``option``.

    Returns
    -------
    dict
        Parameters of a reader by name; None if not given.

    Raises
    ------
    UsageError
        For an option that is no ``NAME=VALUE``, and for a repeated one.
    """
    given = {name: getattr(args, name) for name in ("target", "split", "where", "rows")}
    for text in args.option or ():
        name, equals, word = text.partition("=")
        if not equals or not name.isidentifier() or not word:
            raise UsageError(f"--option {text!r}: expected NAME=VALUE, such as group=3")
        if name in args.given:
            flag = name.replace("_", "-")
            raise UsageError(f"--{flag} and --option {name}: expected one of them")
        if given.get(name) is not None:
            raise UsageError(f"--option {text!r}: {name} is given twice")
        given[name] = value_of(word)
    return given


def verbosity(args: Any) -> int:
    """Return the estimator's ``verbose``: terminals get a bar, unless ``--quiet`` is given.

    Parameters
    ----------
    args : Namespace
        With ``verbose`` and ``quiet``.

    Returns
    -------
    int
    """
    if args.quiet:
        return 0
    return int(args.verbose or (sys.stderr is not None and sys.stderr.isatty()))


def svm_settings(args: Any) -> dict[str, Any]:
    """Return the parameters of StructuredSVM that every estimator of its kind takes.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Returns
    -------
    dict
    """
    return {
        "surrogate": args.surrogate,
        "solver": args.solver,
        "oracle": args.oracle,
        "alpha": "auto" if args.alpha is None else args.alpha,
        "max_iter": args.max_iter,
        **({} if args.tol is None else {"tol": args.tol}),  # defaults of estimators differ
        "fit_intercept": not args.no_intercept,
        "checkpoint": args.checkpoint,
        "n_jobs": args.n_jobs,
        "random_state": args.random_state,
        "verbose": verbosity(args),
    }


def path_settings(args: Any) -> dict[str, Any]:
    """Return the parameters of StructuredSVM or, where ``--alphas`` is given, StructuredSVMCV.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Returns
    -------
    dict
    """
    settings = svm_settings(args) | {
        "loss": args.loss or "auto",
        "kernel": args.kernel,
        "kernel_params": kernel_params(args.kernel_param),
        "cache_size": args.cache_size,
        "early_stopping": args.early_stopping,
        "scale_features": args.scale_features,
        "class_weight": class_weight(args.class_weight),
    }
    if args.alphas is not None:
        del settings["alpha"]
        settings |= {"cv": args.cv, "scoring": args.scoring}
        settings["alphas"] = "path" if args.alphas == ["path"] else args.alphas
    return settings


def check_outputs(inputs: Mapping[str, Any], outputs: Mapping[str, str | None]) -> None:
    """Refuse outputs that cannot be written, that are one file, or that replace an input.

    Devices and pipes take texts, but no models.

    Parameters
    ----------
    inputs, outputs : mapping of str to (str or None)
        Paths, by the name of their option.

    Raises
    ------
    ValueError
        The message names the folder, or both options.
    OSError
        For names that the system refuses.
    """
    taken = {os.path.realpath(path): name for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        special = os.path.exists(path) and not os.path.isfile(path)
        what = ""
        if path in ("-", "/dev/stdout"):
            what = "a standard stream"
        elif not path:
            what = "no text"
        elif os.path.isdir(path):
            what = "a folder"
        elif special and name in _SAVED:
            what = "a device or a pipe"
        if what:
            raise ValueError(
                f"{name} {path}".rstrip() + f": found {what}; expected the path of a file"
            )
        if special:
            continue
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(path)  # too long names, and links in circles
        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(folder):
            raise ValueError(f"{path}: found no folder {folder}; expected an existing folder")
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            what = f"the folder {folder} cannot be written to ({error.strerror})"
            raise ValueError(f"{path}: {what}") from None
        other = taken.setdefault(os.path.realpath(path), name)
        if other != name:
            raise UsageError(f"{name} {path}: found the file of {other}; expected another")


def refuse(args: Any, text: str, *names: str) -> None:
    """Refuse options that are given.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.
    text : str
        What follows the option in the message.
    *names : str
        Names of parameters, with underscores.

    Raises
    ------
    UsageError
        The message names the first one.
    """
    for name in names:
        if name in args.given or getattr(args, name) != args.default_of(name):
            raise UsageError(f"--{name.replace('_', '-')}{text}")
