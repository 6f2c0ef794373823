"""Batches of cases, each in a separate process: the parent sees where it died."""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .base import Fault, generator
from .targets import TARGETS

#: Seconds on the clock, for what waits for ever; other work on the machine counts as well.
WAIT = 600
# Case, passed, refused, faults.
_NUMBERS = struct.Struct("qqqq")
_TEXT = 1000


@dataclass
class Tally:
    """The results of a target's cases."""

    target: str
    cases: int = 0
    refused: int = 0
    crashes: int = 0
    others: int = 0
    lines: list[str] = field(default_factory=list)


def run_cases(target: str, cases: range, note: Any = None) -> Tally:
    """Run cases in this process; return their tally.

    Parameters
    ----------
    target : str
    cases : range
    note : callable, optional
        Given the tally, the number and the text of a case before and after it.
    """
    tally = Tally(target)
    folder = tempfile.mkdtemp(prefix="structsolve-fuzz-")
    try:
        made = TARGETS[target](folder)
        for case in cases:
            tally.cases += 1
            made.say = (lambda text, c=case: note(tally, c, text)) if note else (lambda text: None)
            made.say("")
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    made.run(generator(target, case))
            except Fault as fault:
                tally.others += 1
                tally.lines.append(f"{target}, case {case}: {fault}")
            except made.refusals:
                tally.refused += 1
            except Exception as error:
                tally.others += 1
                tally.lines.append(f"{target}, case {case}: {type(error).__name__}: {error}")
        return tally
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def again(line: str) -> str:
    """Return the line that replays a case, below its report; nothing below other lines."""
    told = re.match(r"(\w+), case (\d+): ", line)
    return (
        f"\n    again: cd tests/shared && python -m fuzz --replay {told[1]} {told[2]}"
        if told
        else ""
    )


def prepare(target: str) -> None:
    """Make once what all batches share, in the parent of their processes."""
    TARGETS[target](tempfile.gettempdir())


def around(target: str, case: int) -> range:
    """Return the cases from the first of a case's batch to the case itself."""
    return range(case - case % TARGETS[target].batch, case + 1)


def work(target: str, first: int, seconds: float) -> Tally:
    """Run batches in child processes, in turn, for this number of seconds; at least one."""
    total, end, size = Tally(target), time.monotonic() + seconds, TARGETS[target].batch
    batch = range(first - first % size, first - first % size + size)
    while not total.cases or time.monotonic() < end:
        one = run_batch(target, batch)
        for name in ("cases", "refused", "crashes", "others"):
            setattr(total, name, getattr(total, name) + getattr(one, name))
        for line in one.lines:
            print(line + again(line), flush=True)
        total.lines += one.lines
        batch = range(batch.stop, batch.stop + size)
    return total


def run_batch(target: str, cases: range) -> Tally:
    """Run cases in a child process; a crash ends them, and is reported with the case."""
    with mmap.mmap(-1, _NUMBERS.size + _TEXT) as state, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            _child(target, cases, state, errors)
        status = os.waitpid(child, 0)[1]
        case, refused, others, count = _NUMBERS.unpack_from(state)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
        lines = [line for line in text.splitlines() if line.startswith("FAULT ")]
        tally = Tally(target, count, refused, 0, others, [x.removeprefix("FAULT ") for x in lines])
        if status:
            tally.crashes = 1
            name = signal.Signals(status).name if status < 64 else f"status {status}"
            last = state[_NUMBERS.size :].rstrip(b"\0").decode(errors="replace")
            told = [line for line in text.splitlines() if line.strip() and line not in lines]
            told = [line for line in told if not line.startswith("Extension modules:")]
            tally.lines += [f"{target}, case {case}: {name}: {last}"]
            tally.lines += [f"    {line}" for line in told[:14]]
        return tally


def _child(target: str, cases: range, state: Any, errors: Any) -> None:
    status = 3
    try:
        os.dup2(errors.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        faulthandler.enable()
        if "asan" not in os.environ.get("LD_PRELOAD", ""):
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)

        def note(tally: Tally, case: int, text: str) -> None:
            _NUMBERS.pack_into(state, 0, case, tally.refused, tally.others, tally.cases)
            state[_NUMBERS.size :] = text.encode()[:_TEXT].ljust(_TEXT, b"\0")
            signal.setitimer(signal.ITIMER_PROF, TARGETS[target].limit)
            signal.setitimer(signal.ITIMER_REAL, WAIT)

        tally = run_cases(target, cases, note)
        note(tally, cases.stop - 1, "")
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        for line in tally.lines:
            print("FAULT", line.replace("\n", " ")[:700], file=sys.__stderr__, flush=True)
        status = 0
    except BaseException as error:
        with contextlib.suppress(Exception):
            print(f"{type(error).__name__}: {error}", file=sys.__stderr__, flush=True)
    finally:
        os._exit(status)


def report(work: list[tuple[str, range]]) -> int:
    """Run cases, print a line per target and the faults; return the number of faults."""
    faults = 0
    for target, cases in work:
        prepare(target)
        count, refused, size = 0, 0, TARGETS[target].batch
        for first in range(cases.start, cases.stop, size):
            tally = run_batch(target, range(first, min(first + size, cases.stop)))
            print(*(line + again(line) for line in tally.lines), sep="\n")
            count, refused = count + tally.cases, refused + tally.refused
            faults += tally.crashes + tally.others
        print(target, count, refused, flush=True)
    return faults
