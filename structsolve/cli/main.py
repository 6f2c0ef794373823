# The shell: demo | fit | predict | score | info | decode | convert | prune | plugins | bench.
from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from structsolve import registry
from structsolve.cli import messages, outside
from structsolve.cli.options import UsageError
from structsolve.cli.parser import Parser, make_parser


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
    with _own_output(), warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            status = _run(argv)
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            print("structsolve: interrupted", file=sys.stderr)
            return 130
        except BrokenPipeError:  # the reader of our output, such as head, has closed the pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            if verbose:
                traceback.print_exc()
            told = messages.one_line(error)
            if not isinstance(error, (ValueError, OSError)):  # a fault of whom?
                owner = registry.default().raised_by(error) or outside.owner_of(error)
                kind = f"{type(error).__name__}: "
                told = told if owner is None else f"{owner} raised {kind}{told.removeprefix(kind)}"
            print(f"structsolve: error: {told}", file=sys.stderr)
            return 2


def _run(argv: list[str]) -> int:
    """Run a command; return the exit status."""
    try:
        off = _left_out(argv)
        outside.leave_out(off)
        args = _parsed(argv)
        for name in off:
            try:
                registry.switch_off(name)
            except ValueError:  # it may have commands only
                if not outside.has(name):
                    raise
        with messages.own_output():
            args.run(args)
    except SystemExit as done:  # --help and --version; a command may give a text, as in a script
        if done.code is None or isinstance(done.code, int):
            return done.code or 0
        raise UsageError(str(done.code)) from done
    return 0


@contextlib.contextmanager
def _own_output() -> Iterator[None]:
    """Reserve standard output for the shell; libraries print to standard error."""
    own: Any = sys.stdout
    try:
        given: Any = sys.__stdout__
        real = own is given and given.fileno() == 1
        kept = os.dup(1) if real else -1
        if real:
            own.flush()
            os.dup2(2, 1)
    except (AttributeError, OSError, ValueError):  # closed, or no file
        real = False
    if own is None:  # closed: nobody reads
        with open(os.devnull, "w") as sys.stdout:
            yield
        sys.stdout = own
        return
    if not real:
        yield
        return
    encoding, errors = own.encoding, own.errors
    sys.stdout = open(kept, "w", encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # main() has reported it
            sys.stdout.close()
        sys.stdout = own
        os.dup2(kept, 1)
        os.close(kept)


def _parsed(argv: list[str]) -> Any:
    """Return the options, with the words of a command such as ``fit extreme`` as one."""
    first = next((i for i in range(len(argv)) if _is_command(argv, i)), None)
    if first is None:
        return make_parser().parse_args(argv)
    words = " ".join(argv[first : first + 2])
    if " " not in words or words not in outside.names():
        return make_parser(argv[first]).parse_args(argv)
    parser, joined = make_parser(words), [*argv[:first], words, *argv[first + 2 :]]
    if os.path.exists(argv[first + 1]):  # the data of ``fit``, where no others follow
        with contextlib.suppress(UsageError):
            return parser.parse_args(joined)
        return make_parser(argv[first]).parse_args(argv)
    return parser.parse_args(joined)


def _left_out(argv: list[str]) -> list[str]:
    """Return the names after ``--without-plugin``, which commands need before they are parsed."""
    option = Parser(prog="structsolve", add_help=False)
    option.add_argument("--without-plugin", action="append", default=[])
    return option.parse_known_args(argv)[0].without_plugin


def _is_command(argv: list[str], i: int) -> bool:
    return not argv[i].startswith("-") and argv[i - 1 : i] != ["--without-plugin"]


def _show_warning(message: Any, category: Any, *_: Any) -> None:
    print(f"structsolve: warning: {messages.one_line(message)}", file=sys.stderr)
