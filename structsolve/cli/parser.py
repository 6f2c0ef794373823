# Commands and options of the shell; imports little, so --help is fast.
from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import structsolve
from structsolve.cli import commands, convert, outside
from structsolve.cli.options import UsageError, data_options
from structsolve.utils.suggest import ELSEWHERE, did_you_mean

ORACLE = "lp, ilp or cvxpy:SOLVER replaces the structure's decoder"


class _Store(argparse._StoreAction):
    """Stores a value and that it was given, at its default, too."""

    def __call__(self, parser: Any, namespace: Any, *given: Any) -> None:
        super().__call__(parser, namespace, *given)
        namespace.given = {*namespace.given, self.dest}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in (None, "store"):
            self.register("action", name, _Store)
        self.set_defaults(given=frozenset())

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError; do not print the usage and exit.

        Parameters
        ----------
        message : str
        """
        raise UsageError(f"{message}{self._meant(message)} (see {self.prog} --help)")

    def _meant(self, message: str) -> str:
        """Suggest a known option for an unknown one."""
        given = message.removeprefix("unrecognized arguments: --").partition(" ")[0]
        if given == message.partition(" ")[0] or self._subparsers is None:
            return ""
        name = given.partition("=")[0].replace("-", "_")
        choices: Any = [a.choices for a in self._subparsers._group_actions]
        commands = {name: p for named in choices for name, p in (named or {}).items()}
        option = "--" + given.partition("=")[0]
        if owners := [c for c, p in commands.items() if option in p._option_string_actions]:
            return f" (an option of {', '.join(owners)})"
        known = {o for p in commands.values() for o in p._option_string_actions if o[:2] == "--"}
        ours = ELSEWHERE.get(name, "")
        if "--" + ours.partition(" ")[0].replace("_", "-") in known:
            return f" (take --{ours.replace('_', '-')})"
        return did_you_mean(f"--{name}", known)


def _number_or(word: str) -> Callable[[str], float | str]:
    def read(text: str) -> float | str:
        try:
            return text if text == word else float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"found {text!r}, expected a number or {word}"
            ) from None

    return read


def make_parser(chosen: str | None = None) -> Parser:
    """Make the parser of the command line, with few imports.

    Parameters
    ----------
    chosen : str, optional
        The command that is run: those of other packages are not imported.

    Returns
    -------
    Parser
    """
    common = _common_options()
    parser = Parser(
        prog="structsolve",
        description="Train and run predictors of sequences, classes and other structures.",
        parents=[_common_options()],  # its defaults must not reach those of commands
    )
    parser.set_defaults(verbose=False, quiet=False)
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Any, text: str) -> Any:
        sub = subparsers.add_parser(name, help=text, description=text, parents=[common])
        sub.set_defaults(run=run)
        return sub

    _add_fit(command, chosen)
    convert.add_commands(command)
    _add_predict(command)

    sub = command(
        "score", commands.score, "Compare a saved model's predictions with a file's labels."
    )
    sub.add_argument("model")
    sub.add_argument("data")
    if chosen in (None, "score"):
        own = outside.add_options(outside.SCORE, sub, name="add_score_options")
        sub.set_defaults(of_scores=own)
    sub.add_argument("--metric", help="only this one, as name or name:arguments")
    sub.add_argument("--json", action="store_true", help="print JSON")
    _use_options(sub)

    sub = command("info", commands.info, "Print the largest weights of a saved model by name.")
    sub.add_argument("model")
    sub.add_argument("--top", type=int, default=20, help="as many of each sign; 0: all weights")
    sub.add_argument("--json", action="store_true", help="print JSON")

    command("plugins", commands.plugins, "List the installed plugins and their sources.")

    outside.add_commands(command, subparsers.choices, chosen)
    return parser


def _common_options() -> Parser:
    common = Parser(add_help=False)
    common.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show progress, and the traceback of an error",
    )
    common.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        default=argparse.SUPPRESS,
        help="no progress bar on terminals",
    )
    common.add_argument(
        "--without-plugin",
        metavar="NAME",
        action="append",
        default=argparse.SUPPRESS,
        help="leave out an installed plugin, by its name or distribution; may be repeated",
    )
    return common


# (command, run, text) -> parser
_Command = Callable[[str, Any, str], Any]


def _add_fit(command: _Command, chosen: str | None) -> None:
    sub = command("fit", commands.fit, "Train a model on a file and save it.")
    sub.add_argument("data", help="training data; '-' is standard input")
    sub.add_argument("--model", required=True, metavar="FILE", help="where to save the model")
    group = sub.add_argument_group("model")
    _add_kinds(group)
    _add_numbers(group)
    if chosen in (None, "fit"):
        outside.add_options(outside.FIT, sub, group)
    group.add_argument("--early-stopping", action="store_true")
    group.add_argument("--validation", metavar="FILE", help="data for scores and early stopping")
    group.add_argument("--validation-split", metavar="NAME", help="in --validation, or in the data")
    group.add_argument("--checkpoint", metavar="FILE", help="training state, to resume from")
    group.add_argument("--history", metavar="FILE", help="the passes, as .csv or .json")
    group.add_argument("--n-jobs", type=int, default=1)
    group.add_argument("--random-state", type=int, default=0)
    group = sub.add_argument_group("data")
    data_options(group)
    group.add_argument(
        "--missing", choices=("mean", "zero"), help="replace missing features; default: refuse them"
    )
    if chosen in (None, "fit"):
        outside.add_options(outside.FORMATS, sub, group)
    group.add_argument("--zero-based", action="store_true", help="svmlight columns start at 0")
    sub.set_defaults(default_of=sub.get_default)


def _add_kinds(group: Any) -> None:
    """Add what is trained: structure, estimator, loss, surrogate, solver."""
    group.add_argument(
        "--structure",
        metavar="NAME[:KEY=VALUE,...]",
        help="default: chain for sequences, else multiclass",
    )
    group.add_argument("--hierarchy", metavar="FILE", help="of labels: .json, .gml, or edge lines")
    group.add_argument("--labels", choices=("closed", "leaf-union", "single-leaf"), help="of it")
    group.add_argument("--close", action="store_true", help="add missing ancestors to labels")
    group.add_argument("--network", metavar="FILE", help="with demands: .json, .gml, .graphml")
    group.add_argument(
        "--estimator",
        default="margin",
        metavar="NAME",
        help="margin (default), hierarchical, latent, risk, or a class, NAME[:KEY=VALUE,...]",
    )
    group.add_argument("--loss", help="default: that of the structure")
    group.add_argument(
        "--class-weight", nargs="+", metavar="CLASS=WEIGHT", help="weights of classes; or: balanced"
    )
    group.add_argument("--surrogate", default="margin")
    group.add_argument("--solver", default="auto")
    group.add_argument("--oracle", help=ORACLE)


def _add_numbers(group: Any) -> None:
    """Add how it is trained: regularisation, passes, features."""
    group.add_argument(
        "--alpha",
        type=_number_or("auto"),
        help="regularisation, 1/(C n); default: auto, by the scale of the data",
    )
    group.add_argument(
        "--alphas",
        type=_number_or("path"),
        nargs="+",
        metavar="A",
        help="choose the best of these; or: path",
    )
    group.add_argument("--cv", type=int, metavar="K", help="choose among --alphas by K folds")
    group.add_argument("--scoring", metavar="NAME", help="score for choosing among --alphas")
    group.add_argument(
        "--scale-features",
        nargs="?",
        const=True,
        default="auto",
        choices=("auto", "std", "max-abs"),
        help="train on scaled columns; prediction takes unscaled ones; default: auto",
    )
    group.add_argument(
        "--no-scale-features", dest="scale_features", action="store_const", const=False
    )
    group.add_argument("--max-iter", type=int, default=100, help="passes over the data")
    group.add_argument("--tol", type=float, help="stop at this relative gap")
    group.add_argument("--no-intercept", action="store_true", help="no bias per label")
    group.add_argument("--kernel", metavar="NAME", help="rbf, poly, ...: compares nodes")
    group.add_argument(
        "--kernel-param", metavar="NAME=VALUE", action="append", help="gamma=0.1; may be repeated"
    )
    group.add_argument("--cache-size", type=float, default=200, help="MB for the kernel matrix")


def _add_predict(command: _Command) -> None:
    sub = command("predict", commands.predict, "Label a file with a saved model.")
    sub.add_argument("model")
    sub.add_argument("data", help="with or without labels; '-' is standard input")
    sub.add_argument("--output", metavar="FILE", help="default: standard output")
    what = sub.add_mutually_exclusive_group()
    what.add_argument("--marginals", action="store_true", help="add label:probability columns")
    what.add_argument("--kbest", type=int, metavar="K", help="the K best labelings and scores")
    what.add_argument("--top", type=int, metavar="K", help="very many classes: the K best")
    what.add_argument("--columns", action="store_true", help="repeat the columns of the data")
    _use_options(sub)


def _use_options(sub: Any) -> None:
    """Add the options of commands that use a saved model."""
    data_options(sub)
    sub.add_argument("--oracle", help=ORACLE + "; default: that of training")
    sub.add_argument("--n-jobs", type=int)
    sub.set_defaults(default_of=sub.get_default)


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"structsolve {structsolve.__version__}")
        parser.exit()
