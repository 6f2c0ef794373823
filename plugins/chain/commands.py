"""The shell's options of CoNLL data, scores of spans, demo and bench; imports little."""

from __future__ import annotations

import argparse
from typing import Any

from structsolve.cli.options import UsageError, refuse

#: Options that set the reader's parameters of these names.
OWN = ("features", "window", "label_column", "comment")
#: Options of ``bench``.
BENCH = {
    "words": 2000,
    "length": 8,
    "features": 128,
    "states": 26,
    "passes": 5,
    "n-jobs": 1,
    "seed": 0,
}


def add_options(group: Any) -> None:
    """Add the options of :data:`OWN`.

    Parameters
    ----------
    group : argument group of argparse
    """
    group.add_argument("--label-column", type=int, default=-1, help="of conll data")
    group.add_argument("--comment", metavar="PREFIX", help="lines to skip before a sentence")
    group.add_argument(
        "--features",
        choices=("template", "columns", "attrs"),
        default="template",
        help="of conll data: the chunking template (default), each column, or columns "
        "that are CRFsuite attributes, name[:value]",
    )
    group.add_argument("--window", type=int, default=2, help="tokens on either side")


def check(args: argparse.Namespace) -> None:
    """Refuse impossible values, before data are read.

    Parameters
    ----------
    args : Namespace
        Options of ``fit``.

    Raises
    ------
    UsageError
        The message names the option.
    """
    if args.window < 0:
        raise UsageError(f"--window {args.window}: expected 0 or more tokens on either side")
    if args.features != "template" and "window" in args.given:
        raise UsageError(
            f"--window: window is {args.window}, which is for features 'template'; found features "
            f"{args.features!r}: leave one of them out"
        )


def add_score_options(parser: Any) -> None:
    """Add the options of spans.

    Parameters
    ----------
    parser : ArgumentParser
    """
    text = "scheme of spans: conll, IOB2, IOBES, ..."
    parser.add_argument("--scheme", default="conll", help=text)
    parser.add_argument("--suffix", action="store_true", help="tags end in the mark, PER-B")
    text = "list the first N errors of sequences in their contexts"
    parser.add_argument("--errors", type=_count, default=0, metavar="N", help=text)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a whole number from 0 up")
    return int(text)


def figures(
    model: Any, data: Any, truth: list[Any], guess: list[Any], args: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Return the scores of spans, if all labels are chunk tags, and the errors.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
        What the shell has read.
    truth, guess : list of list
        Labels of sequences.
    args : Namespace
        Options of ``score``.

    Returns
    -------
    report : dict
        With ``spans`` and ``errors``, or empty.
    lines : list of str
        The same as text.
    """
    from structsolve.evaluation.metrics import token_report  # heavy
    from structsolve.evaluation.report import FIGURES, ErrorList  # heavy
    from structsolve.plugins.chain.metrics import span_f1  # heavy
    from structsolve.plugins.chain.tag_schemes import MARKS  # heavy

    names = {str(label) for labels in (*truth, *guess) for label in labels}
    dash, mark = (-2, -1) if args.suffix else (1, 0)
    others = {name for name in names if name[dash:][:1] != "-" or name[mark] not in MARKS} - {"O"}
    spans = len(names) > 1 and not others
    if others:
        such = "PER-B" if args.suffix else "B-PER"
        text = f" is for chunk tags such as {such}; found the label {min(others)}; leave it out"
        refuse(args, text, "suffix", "scheme")
    answer: dict[str, Any] = {}
    lines: list[str] = []
    if spans:
        answer["spans"] = report = span_f1(truth, guess, scheme=args.scheme, suffix=args.suffix)
        told = "  ".join(f"{name} {report[name]:.4f}" for name in FIGURES)
        lines = [f"spans ({args.scheme}): {told}", "", str(report)]
    if args.errors > 0 and not data.sequences:
        raise UsageError("--errors lists errors of sequences; the examples of this file are rows")
    if args.errors > 0:
        source = answer["spans"] if spans else token_report(truth, guess)
        errors = source.errors(getattr(data.reader, "tokens", None))
        answer["errors"] = [error._asdict() for error in errors[: args.errors]]
        lines += ["", f"errors: {len(errors)}", str(ErrorList(errors[: args.errors]))]
    return answer, lines


def add_demo(parser: Any) -> Any:
    """Train on real images, against a model without structure.

    Parameters
    ----------
    parser : ArgumentParser

    Returns
    -------
    callable
        Runs the command.
    """
    parser.add_argument("--output", default="structsolve-demo", metavar="DIR")
    parser.add_argument("--seed", type=_count, default=0)
    parser.add_argument("--quick", action="store_true", help="less data, a few seconds")
    return demo


def demo(args: argparse.Namespace) -> None:
    """Train on real images, with structure and without.

    Parameters
    ----------
    args : Namespace
    """
    from structsolve.plugins.chain.demo import run_demo  # heavy

    run_demo(args.output, seed=args.seed, quick=args.quick)


def add_bench(parser: Any) -> Any:
    """Time training and decoding on synthetic sequences.

    Parameters
    ----------
    parser : ArgumentParser

    Returns
    -------
    callable
        Runs the command.
    """
    for name, default in BENCH.items():
        kind = _count if name == "seed" else int
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--dense", action="store_true", help="dense features instead of CSR")
    return bench


def bench(args: argparse.Namespace) -> None:
    """Time training and decoding on synthetic sequences.

    Parameters
    ----------
    args : Namespace
    """
    from structsolve.plugins.chain.bench import run_bench  # heavy

    names = [*(name.replace("-", "_") for name in BENCH), "dense"]
    run_bench(**{name: getattr(args, name) for name in names})
