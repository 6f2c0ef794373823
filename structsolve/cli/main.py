# The shell: structsolve demo | fit | predict | score | prune | plugins | bench.
from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NoReturn

import structsolve
from structsolve import registry
from structsolve.cli import extreme, output
from structsolve.cli.formats import check_format, guess
from structsolve.cli.options import UsageError, check_folder
from structsolve.io import FORMATS
from structsolve.io._text import atomic_write


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError, instead of printing the usage and leaving.

        Parameters
        ----------
        message : str
        """
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        The exit status: 0, 2 for an error, 130 after Ctrl-C.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    verbose = any(arg in ("-v", "--verbose") for arg in argv)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            args = make_parser().parse_args(_joined(argv))
            for name in getattr(args, "without_plugin", ()):
                registry.switch_off(name)
            args.run(args)
            sys.stdout.flush()
            return 0
        except SystemExit as done:  # --help and --version
            return done.code if isinstance(done.code, int) else 0
        except KeyboardInterrupt:
            print("structsolve: interrupted", file=sys.stderr)
            return 130
        except BrokenPipeError:  # the reader of our output, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            if verbose:
                traceback.print_exc()
            print(f"structsolve: error: {output.one_line(error)}", file=sys.stderr)
            return 2


def _joined(argv: list[str]) -> list[str]:
    """Make one word of the command's two in ``fit extreme``."""
    for i, pair in enumerate(pairwise(argv)):
        if pair == ("fit", "extreme"):
            return [*argv[:i], "fit extreme", *argv[i + 2 :]]
    return argv


ORACLE = "lp, ilp or cvxpy:SOLVER in place of the structure's own decoder"


def make_parser() -> Parser:
    """Make the parser of the command line; cheap, so that --help is.

    Returns
    -------
    Parser
    """
    common = Parser(add_help=False)
    common.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show progress, and the traceback of an error",
    )
    common.add_argument(
        "--without-plugin",
        metavar="NAME",
        action="append",
        default=argparse.SUPPRESS,
        help="leave out an installed plugin, by its name or distribution; may be repeated",
    )
    parser = Parser(
        prog="structsolve",
        description="Train and run predictors of sequences, classes and other structures.",
        parents=[common],
    )
    parser.set_defaults(verbose=False)
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Any, text: str) -> Any:
        sub = commands.add_parser(name, help=text, description=text, parents=[common])
        sub.set_defaults(run=run)
        return sub

    sub = command("demo", _demo, "Train on real images, against a model without structure.")
    sub.add_argument("--output", default="structsolve-demo", metavar="DIR")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--quick", action="store_true", help="less data, a few seconds")

    sub = command("fit", _fit, "Train a model on a file and save it.")
    sub.add_argument("data", help="training data; '-' is standard input")
    sub.add_argument("--model", required=True, metavar="FILE", help="where to save the model")
    group = sub.add_argument_group("model")
    group.add_argument(
        "--structure",
        metavar="NAME[:KEY=VALUE,...]",
        help="default: chain for sequences, else multiclass",
    )
    group.add_argument("--hierarchy", metavar="FILE", help="of labels: .json, .gml, or edge lines")
    group.add_argument("--labels", choices=("closed", "leaf-union", "single-leaf"), help="of it")
    group.add_argument("--close", action="store_true", help="add ancestors that labels lack")
    group.add_argument(
        "--normalization", metavar="RULE", help="HierarchicalSVM: rho:2, maxmin, ..."
    )
    group.add_argument(
        "--n-hidden", type=int, metavar="N", help="LatentSVM: N hidden states in every class"
    )
    group.add_argument("--network", metavar="FILE", help="with demands: .json, .gml, .graphml")
    group.add_argument(
        "--estimator", choices=("margin", "risk"), default="margin", help="risk: ECRM, kernel ridge"
    )
    group.add_argument("--loss", help="default: hamming")
    group.add_argument("--surrogate", default="margin")
    group.add_argument("--solver", default="bcfw")
    group.add_argument("--oracle", help=ORACLE)
    group.add_argument("--alpha", type=float, help="regularisation, 1/(C n); default: 1e-3")
    group.add_argument(
        "--alphas", type=float, nargs="+", metavar="A", help="risk: the best of these, held out"
    )
    group.add_argument("--cv", type=int, metavar="K", help="risk: of --alphas by K folds")
    group.add_argument("--max-iter", type=int, default=100, help="passes over the data")
    group.add_argument("--tol", type=float, default=1e-3, help="stop at this relative gap")
    group.add_argument("--no-intercept", action="store_true", help="no bias for each label")
    group.add_argument("--kernel", metavar="NAME", help="rbf, poly, ...: compares nodes")
    group.add_argument(
        "--kernel-param", metavar="NAME=VALUE", action="append", help="gamma=0.1; once for each"
    )
    group.add_argument("--cache-size", type=float, default=200, help="MB of the kernel matrix")
    group.add_argument(
        "--feature-map", metavar="NAME:N", help="risk: N features for the kernel, nystroem or rff"
    )
    group.add_argument(
        "--joint-kernel", action="store_true", help="risk: neighbours in --hierarchy learn together"
    )
    group.add_argument("--early-stopping", action="store_true")
    group.add_argument("--validation", metavar="FILE", help="data to score, and to stop early on")
    group.add_argument("--checkpoint", metavar="FILE", help="state from which a run continues")
    group.add_argument("--history", metavar="FILE", help="the passes, as .csv or .json")
    group.add_argument("--n-jobs", type=int, default=1)
    group.add_argument("--random-state", type=int, default=0)
    group = sub.add_argument_group("data")
    _data_options(group)
    group.add_argument("--label-column", type=int, default=-1, help="of conll data")
    group.add_argument("--comment", metavar="PREFIX", help="lines to skip before a sentence")
    group.add_argument(
        "--features",
        choices=("template", "columns", "attrs"),
        help="of conll data: the chunking template (default), each column as it is, or columns "
        "that are CRFsuite attributes, name[:value]",
    )
    group.add_argument("--window", type=int, default=2, help="of the template")
    group.add_argument("--zero-based", action="store_true", help="svmlight columns count from 0")

    extreme.add_commands(command)

    sub = command("predict", _predict, "Label a file with a saved model.")
    sub.add_argument("model")
    sub.add_argument("data", help="with or without labels; '-' is standard input")
    sub.add_argument("--output", metavar="FILE", help="default: standard output")
    what = sub.add_mutually_exclusive_group()
    what.add_argument("--marginals", action="store_true", help="add label:probability columns")
    what.add_argument("--kbest", type=int, metavar="K", help="the K best labelings and scores")
    what.add_argument("--top", type=int, metavar="K", help="of very many classes: the K best")
    what.add_argument("--columns", action="store_true", help="repeat the columns of conll data")
    _data_options(sub)
    sub.add_argument("--oracle", help=ORACLE + "; default: that of training")
    sub.add_argument("--n-jobs", type=int)

    sub = command("score", _score, "Compare a saved model's predictions with a file's labels.")
    sub.add_argument("model")
    sub.add_argument("data")
    sub.add_argument("--scheme", default="conll", help="of the spans: conll, IOB2, IOBES, ...")
    sub.add_argument("--json", action="store_true", help="print JSON")
    _data_options(sub)
    sub.add_argument("--oracle", help=ORACLE + "; default: that of training")
    sub.add_argument("--n-jobs", type=int)

    command("plugins", _plugins, "List what is installed, and where it comes from.")

    sub = command("bench", _bench, "Time training and decoding on made-up sequences.")
    for name, default in (
        ("words", 2000),
        ("length", 8),
        ("features", 128),
        ("states", 26),
        ("passes", 5),
        ("n-jobs", 1),
        ("seed", 0),
    ):
        sub.add_argument(f"--{name}", type=int, default=default)
    sub.add_argument("--dense", action="store_true", help="dense features instead of CSR")
    return parser


def _data_options(group: Any) -> None:
    group.add_argument(
        "--format",
        metavar="NAME",
        help=f"{', '.join(FORMATS)}, or a plugin's; default: guessed from the ending",
    )


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"structsolve {structsolve.__version__}")
        parser.exit()


def _demo(args: argparse.Namespace) -> None:
    from structsolve.cli.demo import run_demo  # heavy

    run_demo(args.output, seed=args.seed, quick=args.quick)


def _bench(args: argparse.Namespace) -> None:
    from structsolve.cli.bench import run_bench  # heavy

    options = {
        name: value
        for name, value in vars(args).items()
        if name not in ("run", "verbose", "without_plugin")
    }
    run_bench(**options)


def _fit(args: argparse.Namespace) -> None:
    # Heavy: scikit-learn, and all plugins.
    from structsolve.cli.data import Recipe
    from structsolve.cli.models import check_options, make_model, make_structure, settle_labels

    check_format(args.format)
    check_options(args)
    chosen = make_structure(args)
    format = args.format or getattr(chosen, "file_format", None) or guess(args.data)
    if format != "conll" and args.features is not None:
        raise UsageError(f"--features is for conll data; found {format}")
    if args.history and not args.history.endswith((".csv", ".json")):
        raise UsageError(f"--history: found {args.history!r}; expected an ending .csv or .json")
    check_folder(args.model, args.history, args.checkpoint)
    recipe = Recipe(
        format,
        features=(args.features or "template") if format == "conll" else None,
        window=args.window,
        label_column=args.label_column,
        comment=args.comment,
        zero_based=args.zero_based,
        flat=getattr(chosen, "single_node", False),
        label_sets=getattr(chosen, "label_sets", False),
        structure=args.structure if format == "conllu" else None,
        named=args.hierarchy is not None,
        pictures=getattr(chosen, "label_axes", 1) == 2,
    )
    start = time.perf_counter()
    data = recipe.fit(args.data)
    if chosen is None:
        chosen = "chain" if data.sequences else "multiclass"
    settle_labels(chosen, data.y, args)
    recipe.label_sets = getattr(chosen, "label_sets", False)
    output.say("read", output.size_text(data), start)

    options: dict[str, Any] = {}
    if args.validation:
        if args.estimator == "risk" or args.normalization == "learned":
            raise UsageError("--validation: found an estimator that trains without; use score")
        held_out = recipe.read(args.validation)
        if held_out.y is None:
            raise ValueError(f"{args.validation}: found no labels; expected some to validate with")
        options["validation"] = held_out.X, held_out.y
    if args.estimator == "risk" and data.weights is not None:
        if any(weight != 1 for weight in data.weights):
            raise UsageError(f"{args.data}: found weights, which --estimator risk does not take")
    elif data.weights is not None:
        options["sample_weight"] = data.weights
    start = time.perf_counter()
    model = make_model(args, chosen).fit(data.X, data.y, **options)
    name = getattr(chosen, "name", chosen)
    if args.estimator == "risk":
        losses = getattr(model, "cv_losses_", None)
        told = "" if losses is None else f", held-out loss {losses.min():.4g}"
        output.say("trained", f"{name}, conditional risk: alpha {model.alpha_:g}{told}", start)
    else:
        output.say(
            "trained",
            f"{name}, {args.surrogate}, {args.solver}: {output.passes_text(model.history_)}, "
            f"{model.stop_reason_}",
            start,
        )
    model.metadata_ = recipe.metadata()
    model.save(args.model)
    if args.history:
        output.write_history(args.history, model.history_)
    if args.validation:
        score = model.score(*options["validation"])
        output.say("validated", f"score {score:.4f} on {args.validation}")
    output.say("saved", args.model)


def _predict(args: argparse.Namespace) -> None:
    model = _load(args)
    if extreme.is_extreme(model):
        extreme.predict(model, args)
        return
    if args.top is not None:
        raise UsageError(f"--top: a {type(model).__name__} has none; --kbest K gives the K best")
    recipe = _recipe(model, args)
    for option, given, method in (
        ("--kbest", args.kbest is not None, "predict_kbest"),
        ("--marginals", args.marginals, "predict_marginals"),
    ):
        if given and not hasattr(model, method):
            raise UsageError(f"{option}: a {type(model).__name__} has none")
    if args.kbest is not None and args.kbest < 1:
        raise UsageError(f"--kbest: found {args.kbest}; expected at least 1")
    if args.columns and recipe.format != "conll":
        raise UsageError(f"--columns is for conll data; found {recipe.format}")
    data = recipe.read(args.data)
    if args.kbest:
        blocks = output.kbest_text(model, data, args.kbest)
    else:
        blocks = output.labels_text(model, data, args)
    if args.output is None:
        sys.stdout.writelines(blocks)
        return
    with atomic_write(args.output) as handle:
        handle.writelines(blocks)


def _score(args: argparse.Namespace) -> None:
    from structsolve.evaluation.metrics import sequence_error, span_f1, token_report  # heavy

    model = _load(args)
    if extreme.is_extreme(model):
        extreme.score(model, args)
        return
    data = _recipe(model, args).read(args.data)
    if data.y is None:
        raise ValueError(f"{args.data}: found no labels; expected some to compare with")
    if getattr(model.space_.structure, "label_sets", False):
        truth = output.as_matrix(model, data)
        report = output.label_set_report(truth, model.predict(data.X), model.classes_)
        print(output.report_text(report, args))
        return
    if output.is_continuous(model):
        print(output.mean_loss_text(model, data, args))
        return
    guess = output.predictions(model, data)
    if data.sentences is not None:
        print(output.trees_text(output.as_lists(data.y), guess, args))
        return
    whole = data.sequences or getattr(model.space_.structure, "label_rows", False)
    truth = output.as_lists(data.y if whole else data.split(data.y))
    truth, guess = output.without_void(model, data, truth, guess)
    report = token_report(truth, guess)
    if whole or data.lengths:
        report["sequence_error"] = sequence_error(truth, guess)
    names = [str(name) for name in report["per_class"]]
    if all(name == "O" or name[1:2] == "-" for name in names) and len(names) > 1:
        report["spans"] = span_f1(truth, guess, scheme=args.scheme)
    print(output.report_text(report, args))


def _plugins(args: argparse.Namespace) -> None:
    print(output.plugins_text(structsolve.list_plugins()))


def _load(args: argparse.Namespace) -> Any:
    check_format(args.format)
    model = structsolve.load(args.model, mmap=True)
    if args.n_jobs is not None:
        model.set_params(n_jobs=args.n_jobs)
    if args.oracle is not None:
        if "oracle" not in model.get_params():
            raise UsageError(f"--oracle: a {type(model).__name__} has none")
        model.set_params(oracle=args.oracle)
    return model


def _recipe(model: Any, args: argparse.Namespace) -> Any:
    from structsolve.cli.data import Recipe  # heavy

    return Recipe.of_model(model, args.data, args.format)


def _show_warning(message: Any, category: Any, *_: Any) -> None:
    print(f"structsolve: warning: {output.one_line(message)}", file=sys.stderr)
