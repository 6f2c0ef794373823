# Very many classes in the shell: fit extreme, prune, and predict and score with such models.
from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import structsolve
from structsolve.cli import messages
from structsolve.cli.options import UsageError, check_outputs, refuse, verbosity
from structsolve.cli.outside import refuse_scores
from structsolve.examples.given import is_sparse
from structsolve.io._text import atomic_write, no_examples
from structsolve.utils.suggest import a_type

# Rows that `predict` prints and `score` compares at a time.
BEST = 5
_FORMATS = ("extreme", "svmlight")
# Options of readers that it does without.
_SELECTING = ("target", "split", "where", "rows", "option")
_WHOLE = ": an ExtremeSVM reads files of rows whole, without options; leave it out"


def add_fit(parser: argparse.ArgumentParser) -> Any:
    """Train a classifier of very many classes and save it.

    Parameters
    ----------
    parser : ArgumentParser

    Returns
    -------
    callable
        Runs the command.
    """
    parser.add_argument(
        "data", help="svmlight, or with a header 'rows features labels'; '-' is stdin"
    )
    parser.add_argument("--model", required=True, metavar="FILE", help="where to save the model")
    group = parser.add_argument_group("model")
    group.add_argument("--alpha", type=float, help="regularisation, 1/(C n); default: C = 1")
    group.add_argument("--surrogate", default="auto", help="squared-hinge, margin, crf, ...")
    group.add_argument("--penalty", choices=("l2", "l1"), default="l2")
    solvers = "choice, one-vs-some, one-vs-rest, softmax, dual or memoir"
    group.add_argument("--solver", default="auto", help=solvers)
    group.add_argument(
        "--rivals", default="auto", help="exact, certified:EPS, random:K, lsh:BITS, or a plugin's"
    )
    group.add_argument("--max-iter", type=int, default=20, help="passes over the data")
    group.add_argument("--tol", type=float, default=1e-2, help="stop at this relative gap")
    group.add_argument("--max-memory", type=float, metavar="MB", help="beside the data")
    group.add_argument("--checkpoint", metavar="FILE", help="training state, to resume from")
    group.add_argument("--history", metavar="FILE", help="the passes, as .csv or .json")
    group.add_argument("--n-jobs", type=int, default=1)
    group.add_argument("--random-state", type=int, default=0)
    group.add_argument("--float16", action="store_true", help="half the size of the file")
    group = parser.add_argument_group("data")
    group.add_argument(
        "--labels",
        choices=("each", "one"),
        default="each",
        help="lines of several labels: a row for each label, or an error",
    )
    group.add_argument("--zero-based", action="store_true", help="column numbers start at 0")
    group.add_argument("--n-features", type=int, help="columns; default: as in the file")
    return fit


def add_prune(parser: argparse.ArgumentParser) -> Any:
    """Make a saved model of very many classes smaller.

    Parameters
    ----------
    parser : ArgumentParser

    Returns
    -------
    callable
        Runs the command.
    """
    parser.add_argument("model")
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="where to save the smaller model"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--mb", type=float, help="maximum size of the file in megabytes")
    what.add_argument("--error", type=float, help="maximum rise of the error on --data")
    parser.add_argument("--data", metavar="FILE", help="held-out examples, for --error")
    parser.add_argument("--float16", action="store_true", help="weights of two bytes")
    parser.add_argument("--n-jobs", type=int, default=1)
    return prune


def fit(args: argparse.Namespace) -> None:
    """Train and save.

    Parameters
    ----------
    args : Namespace

    Raises
    ------
    ValueError
        For malformed data and invalid settings.
    """
    # Heavy: scikit-learn, and all solvers.
    from structsolve.plugins.extreme.reader import read_extreme
    from structsolve.plugins.extreme.training import judged

    if args.history and not args.history.endswith((".csv", ".json")):
        raise UsageError(f"--history: found {args.history!r}; expected an ending .csv or .json")
    outputs = {f"--{name}": getattr(args, name) for name in ("model", "history", "checkpoint")}
    check_outputs({"the data": args.data}, outputs)
    model = structsolve.ExtremeSVM(
        surrogate=args.surrogate,
        penalty=args.penalty,
        rivals=args.rivals,
        solver=args.solver,
        alpha="auto" if args.alpha is None else args.alpha,
        tol=args.tol,
        max_iter=args.max_iter,
        max_memory=None if args.max_memory is None else 1e6 * args.max_memory,
        checkpoint=args.checkpoint,
        n_jobs=args.n_jobs,
        random_state=args.random_state,
        verbose=verbosity(args),
    )
    start = time.perf_counter()
    X, y, zero_based = read_extreme(
        args.data, args.n_features, args.zero_based or None, args.labels, return_zero_based=True
    )
    text = f"{X.shape[0]} rows, {X.shape[1]} features, {len(np.unique(y))} classes"
    messages.say("read", text, start)
    start = time.perf_counter()
    model.fit(X, y)
    passes = messages.passes_text(model.history_)
    if (own := judged(model.history_[-1])) is not model.history_[-1]:
        share = messages.relative_gap(own) or 0.0
        passes += f" ({100 * share:.2g} % before small weights are left out)"
    messages.say("trained", f"{model.solver_.name}: {passes}, {model.stop_reason_}", start)
    model.metadata_ = {"shell": {"format": "extreme", "zero_based": zero_based}}
    model.save(args.model, dtype="float16" if args.float16 else None)
    if args.history:
        messages.write_history(args.history, model.history_)
    messages.say("saved", file_text(model, args.model))


def predict(model: Any, args: argparse.Namespace) -> None:
    """Print or write the best labels of each row, some thousands of rows at a time.

    Parameters
    ----------
    model : ExtremeSVM
        Fitted.
    args : Namespace
        Of ``predict``.

    Raises
    ------
    ValueError
        For malformed data.
    """
    # Heavy: scipy.
    from structsolve.plugins.extreme.label_sets import as_form
    from structsolve.plugins.extreme.predictions import prediction_lines

    if args.top is not None and args.top < 1:
        raise UsageError(f"--top: found {args.top}; expected at least 1")
    refuse(
        args, ": an ExtremeSVM has none; --top K gives the K best", "marginals", "kbest", "columns"
    )
    refuse(args, _WHOLE, *_SELECTING)

    def lines() -> Iterator[str]:
        X = None
        for X, _ in _chunks(model, args, "ignore"):
            if args.top is None:
                labels = model.predict(X)
                if is_sparse(labels):
                    labels = as_form(labels, "lists", model.classes_)
                yield from prediction_lines(labels)
            else:
                yield from prediction_lines(
                    *model.predict_topk(X, min(args.top, len(model.classes_)))
                )
        if X is None:
            raise no_examples(args.data, "lines 'label column:value ...'")

    if args.output is None:
        messages.out().writelines(lines())
        return
    with atomic_write(args.output) as handle:
        handle.writelines(lines())


def score(model: Any, args: argparse.Namespace) -> None:
    """Print the error of the best and of the best five labels, and macro-F1.

    Rows of several labels count once for each; macro-F1 is over the labels of the file.

    Parameters
    ----------
    model : ExtremeSVM
        Fitted.
    args : Namespace
        Of ``score``.

    Raises
    ------
    ValueError
        For malformed data, and files without labels.
    """
    text = ": an ExtremeSVM prints only errors and macro-F1"
    refuse(args, text, "metric")
    refuse_scores(args, text)
    refuse(args, _WHOLE, *_SELECTING)
    k = min(BEST, len(model.classes_))
    truth, best, hits = [], [], 0
    for X, y in _chunks(model, args, "each"):
        labels = model.predict_topk(X, k)[0]
        y = _labels(model, y)
        truth.append(y)
        best.append(labels[:, 0])
        hits += int((labels == y[:, None]).any(axis=1).sum())
    if not truth:
        raise ValueError(f"{args.data}: found no labels; expected some to compare with")
    y, first = np.concatenate(truth), np.concatenate(best)
    _refuse_others(model, y, args.data)
    report = {
        "error": float(np.mean(first != y)),
        f"error_top{k}": 1 - hits / len(y),
        "macro_f1": macro_f1(y, first),
        "rows": len(y),
    }
    if args.json:
        print(json.dumps(report, indent=2), file=messages.out())
        return
    print(
        f"error {report['error']:.4f}, of the best {k} {report[f'error_top{k}']:.4f}, "
        f"macro-F1 {report['macro_f1']:.4f}, of {len(y)} rows",
        file=messages.out(),
    )


def macro_f1(y: np.ndarray, guess: np.ndarray) -> float:
    """Return the mean of F1 over the labels that occur.

    Parameters
    ----------
    y, guess : ndarray of shape (n,)

    Returns
    -------
    float

    Examples
    --------
    >>> round(macro_f1(np.array([3, 3, 5]), np.array([3, 5, 7])), 3)
    0.333
    """
    names, numbers = np.unique(y, return_inverse=True)
    place = np.minimum(np.searchsorted(names, guess), len(names) - 1)
    known = names[place] == guess
    true = np.bincount(numbers, minlength=len(names))
    told = np.bincount(place[known], minlength=len(names))
    right = np.bincount(numbers[guess == y], minlength=len(names))
    return float(np.mean(2 * right / (true + told)))


def prune(args: argparse.Namespace) -> None:
    """Drop small weights of a saved model, and save it.

    Parameters
    ----------
    args : Namespace

    Raises
    ------
    ValueError
        For other models, and options that exclude each other.
    """
    check_outputs({"--data": args.data}, {"--out": args.out})
    model = structsolve.load(args.model)
    if not isinstance(model, structsolve.ExtremeSVM):
        raise UsageError(f"{args.model}: found {a_type(model)}; expected an ExtremeSVM")
    if args.mb is None and args.error is None and not args.float16:
        raise UsageError("expected --mb, --error or --float16")
    if (args.error is None) != (args.data is None):
        raise UsageError("--error and --data: expected both, or none of them")
    dtype = "float16" if args.float16 else None
    before = file_text(model, args.model)
    held_out = {}
    if args.data is not None:
        held_out = dict(zip(("X", "y"), _all_rows(model, args), strict=True))
    model.set_params(n_jobs=args.n_jobs).sparsify(
        mb=args.mb, error=args.error, dtype=dtype, **held_out
    )
    model.save(args.out)
    messages.say("read", before)
    messages.say("saved", file_text(model, args.out))


def file_text(model: Any, path: str) -> str:
    """Return the size of a saved model, in words.

    Parameters
    ----------
    model : ExtremeSVM
        Fitted.
    path : str
        Its file.

    Returns
    -------
    str
    """
    size = os.path.getsize(path) / 1e6
    return f"{path}: {len(model.classes_)} classes, {model.n_features_in_} features, {size:.2f} MB"


def _reading(model: Any) -> dict[str, Any]:
    """The settings of reading training data; for models from Python, svmlight's defaults."""
    saved = (model.metadata_ or {}).get("shell")
    saved = saved if isinstance(saved, dict) else {}
    return {"n_features": model.n_features_in_, "zero_based": saved.get("zero_based") or None}


def _chunks(model: Any, args: argparse.Namespace, labels: str) -> Iterator[tuple[Any, np.ndarray]]:
    from structsolve.plugins.extreme.reader import read_svmlight_chunks  # heavy

    if args.format not in (None, *_FORMATS):
        expected = " or ".join(_FORMATS)
        raise UsageError(f"--format: found {args.format}; an ExtremeSVM takes {expected}")
    return read_svmlight_chunks(args.data, labels=labels, **_reading(model))


def _all_rows(model: Any, args: argparse.Namespace) -> tuple[Any, np.ndarray]:
    from structsolve.plugins.extreme.reader import read_extreme  # heavy

    X, y = read_extreme(args.data, **_reading(model))
    y = _labels(model, y)
    _refuse_others(model, y, args.data)
    return X, y


def _labels(model: Any, y: np.ndarray) -> np.ndarray:
    """Numbers of a file as the model has its classes."""
    return y.astype(str) if model.classes_.dtype.kind == "U" else y


def _refuse_others(model: Any, y: np.ndarray, path: str) -> None:
    """Refuse the numbers of a file whose model has names that are none of them."""
    if len(y) and model.classes_.dtype.kind == "U" and not np.isin(y, model.classes_).any():
        raise ValueError(
            f"{path}: found labels such as {y[0]}, none of which the model has, whose classes are "
            f"names such as {model.classes_[0]!r}: compare in Python, model.score(X, y)"
        )
