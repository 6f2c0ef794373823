"""Display of a running solver: a progress bar or lines, and a log record for each pass.

The record goes to the logger ``structsolve.solvers`` at level INFO for any `verbose`, so
``logging.basicConfig(level=logging.INFO)`` suffices to follow a run.  The bar is hidden for each
line; solvers run callbacks inside `Progress.aside`, since they may log too.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, final

from .remaining import Remaining, duration

__all__ = ["Progress", "stage"]

_LOGGER = logging.getLogger("structsolve.solvers")
_SHOWN = ("primal", "dual", "gap")
# Seconds between lines at verbose=1 without a terminal.
_LINE_EVERY = 1.0


@final
class Progress:
    """
    Report the passes of a solver; a context manager.

    Parameters
    ----------
    verbose : int
        0 shows nothing.  1 draws a bar on stderr (with tqdm, if installed); where stderr is not a
        terminal it writes a line about once a second, and the last one.  2 or more writes a line
        every pass.  Lines go through `logging`; where that is not set up to show them, to stderr.
    max_iter : int or None
        Maximum number of passes, if known.
    description : str
        Name of the run, such as ``"bcfw"``.
    initial : int, default=0
        Passes done before, by the run that is continued.
    tol : float, optional
        Relative gap at which the run ends: the time to it is estimated from the gaps seen.

    Examples
    --------
    >>> from structsolve.utils.progress import Progress
    >>> with Progress(verbose=0, max_iter=10, description="bcfw") as progress:
    ...     progress.update({"primal": 1.5, "dual": 1.0, "gap": 0.5, "certified": True})
    >>> progress.line
    'bcfw pass 1/10: primal 1.5, dual 1, gap 0.5 (33 %)'
    """

    def __init__(
        self,
        verbose: int,
        max_iter: int | None,
        description: str = "fit",
        initial: int = 0,
        tol: float | None = None,
    ) -> None:
        self.verbose = int(verbose)
        self.max_iter = max_iter
        self.description = description
        self.done = int(initial)
        self._record: Mapping[str, Any] | None = None
        self._remaining = None if tol is None else Remaining(tol, max_iter)
        self._begun, self._before = time.monotonic(), self.done
        self._bar: Any = None
        self._unwritten = False
        self._last_line = -math.inf

    def __enter__(self) -> Progress:
        if self.verbose == 1 and _is_terminal(sys.stderr):
            with contextlib.suppress(ImportError, OSError, ValueError):
                from tqdm import tqdm  # optional, and only for terminals

                sized = _columns(sys.stderr) > 0
                self._bar = tqdm(
                    total=self.max_iter,
                    initial=self.done,
                    desc=self.description,
                    unit="pass",
                    file=sys.stderr,
                    dynamic_ncols=sized,
                    **({} if sized else {"ncols": 100, "nrows": 20}),
                )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            with contextlib.suppress(OSError, ValueError):
                self._bar.close()
            self._bar = None
        elif self._unwritten:
            self._write()

    @property
    def line(self) -> str:
        """What is told of the last pass; an empty string before the first."""
        return "" if self._record is None else self._describe(self._record) + self._time_left()

    def update(self, record: Mapping[str, Any]) -> None:
        """
        Report one pass.

        Parameters
        ----------
        record : mapping
            An entry of ``history_``.  ``primal``, ``dual``, ``gap`` (marked ``~`` unless
            ``certified``) are shown in the bar, everything else in lines only; what is None is
            left out.
        """
        self.done += 1
        self._record = record
        gap, primal = record.get("gap"), record.get("primal")
        if self._remaining is not None and gap is not None and primal:
            self._remaining.see(self.done, gap / abs(primal), record.get("certified", True))
        if logged := _LOGGER.isEnabledFor(logging.INFO):
            with self.aside():
                _LOGGER.info("%s", self.line, extra={"record": dict(record)})
        if self._bar is not None:
            # A closed terminal must not end training.
            with contextlib.suppress(OSError, ValueError):
                self._bar.set_postfix_str(
                    ", ".join(_figures(record, bar=True)) + self._time_left(), refresh=False
                )
                self._bar.update()
        elif self.verbose > 0 and not (logged and _reaches_console(_LOGGER)):
            self._unwritten = True
            if self.verbose > 1 or time.monotonic() - self._last_line >= _LINE_EVERY:
                self._write()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """
        Hide the bar while other code may write to the screen.

        Yields
        ------
        None
        """
        # Not tqdm's external_write_mode: it holds tqdm's lock meanwhile, and what runs here may
        # wait for threads that draw bars of their own.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._bar.clear()
        try:
            yield
        finally:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                self._bar.refresh()

    def _time_left(self) -> str:
        """Return the end of a line: the estimated time left, if known."""
        if self._remaining is None:
            return ""
        left = self._remaining.passes(self.done)
        made = self.done - self._before
        if not left or made < 1:
            return ""
        return f", about {duration(left * (time.monotonic() - self._begun) / made)} left"

    def _write(self) -> None:
        self._unwritten, self._last_line = False, time.monotonic()
        _to_stderr(self.line)

    def _describe(self, record: Mapping[str, Any]) -> str:
        total = "" if self.max_iter is None else f"/{self.max_iter}"
        return f"{self.description} pass {self.done}{total}: {', '.join(_figures(record))}"


def stage(verbose: int, description: str, text: str) -> None:
    """
    Report a step of training before its passes, at ``verbose >= 1`` and to the logger.

    Parameters
    ----------
    verbose : int
        As of `Progress`.
    description : str
        Name of the run.
    text : str
        The current step.

    Examples
    --------
    >>> from structsolve.utils.progress import stage
    >>> stage(0, "chain", "packing 10 examples")
    """
    line = f"{description}: {text}"
    if logged := _LOGGER.isEnabledFor(logging.INFO):
        _LOGGER.info("%s", line)
    if verbose > 0 and not (logged and _reaches_console(_LOGGER)):
        _to_stderr(line)


def _to_stderr(line: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def _figures(record: Mapping[str, Any], bar: bool = False) -> Iterator[str]:
    """The words for a record: the objective first, and a share next to the gap."""
    names = [*_SHOWN, *(() if bar else (name for name in record if name not in _SHOWN))]
    for name in names:
        value = record.get(name)
        if value is None or name in ("certified", "pass"):
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            yield f"{name} {value}"
            continue
        if name != "gap":
            yield f"{name} {number:.5g}"
            continue
        primal = record.get("primal")
        share = f" ({100 * number / abs(primal):.2g} %)" if primal else ""
        yield f"gap {'' if record.get('certified', True) else '~'}{number:.2g}{share}"


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # None under pythonw; closed
        return False


def _columns(stream: Any) -> int:
    """Width of the terminal; 0 if it does not tell, as in containers, where tqdm draws nothing."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return 0


def _reaches_console(logger: logging.Logger) -> bool:
    """Return whether a handler shows this logger's INFO records, not only in a file."""
    walk: logging.Logger | None = logger
    while walk is not None:
        for handler in walk.handlers:
            if handler.level <= logging.INFO and not isinstance(
                handler, (logging.NullHandler, logging.FileHandler)
            ):
                return True
        walk = walk.parent if walk.propagate else None
    return False
