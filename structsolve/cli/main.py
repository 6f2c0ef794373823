# The shell: structsolve demo | fit | predict | score | decode | convert | prune | plugins | bench.
from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from structsolve import registry
from structsolve.cli.messages import one_line
from structsolve.cli.parser import make_parser


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
            print(f"structsolve: error: {one_line(error)}", file=sys.stderr)
            return 2


def _joined(argv: list[str]) -> list[str]:
    """Make one word of the command's two in ``fit extreme``."""
    for i, pair in enumerate(pairwise(argv)):
        if pair == ("fit", "extreme"):
            return [*argv[:i], "fit extreme", *argv[i + 2 :]]
    return argv


def _show_warning(message: Any, category: Any, *_: Any) -> None:
    print(f"structsolve: warning: {one_line(message)}", file=sys.stderr)
