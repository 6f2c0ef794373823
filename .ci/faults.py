"""Plant faults in the compiled files, one at a time, and see whether the tests notice.

A fault of ``faults.json`` is an old text, unique in its file, and the new one.  Each job works on
a copy of the checkout with what is compiled already; imports of the copy go before those of the
editable install.  A fault whose old text is gone is reported: ``--generate`` makes new ones.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LIST, NEAREST = HERE / "faults.json", HERE / "faults_nearest.json"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MARKS = "<!-- begin faults -->", "<!-- end faults -->"
# Process groups under way, and the folders of the copies.
running: set[int] = set()
folders: list[str] = []
# What was noticed, and what was not.
KILLED, CRASH, TIMEOUT = "noticed", "crash", "hangs"
NOTICED = KILLED, CRASH, TIMEOUT
SURVIVED, GONE, NO_BUILD = "SURVIVED", "OLD TEXT GONE", "DOES NOT BUILD"

# Runs setup.py itself with the extension of one source alone: flags stand in one place.
BUILD = """
import runpy, sys
import Cython.Build
source, translate = sys.argv[1], Cython.Build.cythonize
def one(extensions, **options):
    chosen = [e for e in extensions if source in e.sources]
    if not chosen:
        raise SystemExit(f"setup.py has no extension of {source}")
    return translate(chosen, **{**options, "nthreads": 0})
Cython.Build.cythonize = one
sys.argv = ["setup.py", "-q", "build_ext", "--inplace"]
runpy.run_path("setup.py", run_name="__main__")
"""


@dataclass
class Fault:
    """One fault: ``old``, which is in the file once, becomes ``new``."""

    id: str
    file: str
    kind: str
    old: str
    new: str
    tests: str = ""
    reason: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same fault, in whatever folder the file lies."""
        return Path(self.file).name, self.old, self.new

    def fits(self, root: Path) -> bool:
        """Whether the old text is once in the file, below the root of a checkout."""
        path = root / self.file
        return path.exists() and path.read_text().count(self.old) == 1

    def line(self) -> tuple[str, str]:
        """The line that differs, before and after."""
        for a, b in zip(self.old.splitlines(), self.new.splitlines()):
            if a != b:
                return a.strip(), b.strip()
        return self.old, self.new


@dataclass
class Verdict:
    """What became of a fault."""

    fault: Fault
    word: str
    by: str = ""
    seconds: float = 0.0

    @property
    def bad(self) -> bool:
        """Whether this needs a test, a reason, or a new fault."""
        return self.word in (GONE, NO_BUILD) or (self.word == SURVIVED and not self.fault.reason)


def load() -> list[Fault]:
    """Read the list."""
    rows = json.loads(LIST.read_text())
    for row in rows:
        row["old"], row["new"] = "\n".join(row["old"]), "\n".join(row["new"])
    return [Fault(**row) for row in rows]


def save(faults: list[Fault]) -> None:
    """Write the list, texts as lists of lines."""
    rows = []
    for fault in sorted(faults, key=lambda f: f.id):
        row = {k: v for k, v in vars(fault).items() if v}
        row["old"], row["new"] = fault.old.split("\n"), fault.new.split("\n")
        rows.append(row)
    LIST.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


def nearest(fault: Fault) -> list[str]:
    """Tests to run, nearest first: those of the longest path in ``faults_nearest.json`` that fits.

    A value is a string of pytest's arguments, or several to be run in turn.  ``{plugin}`` stands
    for the name of a plugin's folder.
    """
    if fault.tests:
        return [fault.tests]
    table = json.loads(NEAREST.read_text())
    fits = [path for path in table if fault.file.startswith(path)]
    rounds = table[max(fits, key=len)]
    rounds = [rounds] if isinstance(rounds, str) else rounds
    name = Path(fault.file).parts[1]
    filled = []
    for arguments in rounds:
        words = []
        for word in arguments.replace("{plugin}", name).split():
            matches = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob(word.split("::")[0]))
            words += matches if "*" in word else [word] if matches or "/" not in word else []
        if words:
            filled.append(" ".join(words))
    return filled


def make_copy(folder: Path) -> None:
    """Copy the checkout, with its compiled modules, to an empty folder."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    compiled = [
        p.relative_to(ROOT).as_posix() for d in ("structsolve", "plugins") for p in built(d)
    ]
    for name in filter(None, [*listed, *compiled]):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    if not compiled:
        raise SystemExit("nothing is compiled: pip install -e . --no-build-isolation --no-deps")
    # Without the editable install's finder, plugins are where their name says.
    (folder / "structsolve" / "plugins").symlink_to("../plugins")


def built(folder: str) -> list[Path]:
    """Compiled modules of the checkout."""
    return sorted((ROOT / folder).rglob(f"*{SUFFIX}"))


def run(command: list[str], copy: Path, seconds: float) -> tuple[int | None, str]:
    """Run a command in a copy; the status is None when it took too long."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "STRUCTSOLVE_OPTIMIZE": "-O1",
    }
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    running.add(process.pid)
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    finally:
        running.discard(process.pid)
    return process.returncode, out


def stop(*_: object) -> None:
    """End what runs in the copies, then this script."""
    for group in list(running):
        os.killpg(group, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(130)


@contextmanager
def planted(fault: Fault, copy: Path) -> Iterator[Verdict | None]:
    """Plant a fault in a copy and build its module; take it out at the end.

    Gives a verdict where it could not be planted or built, else None.
    """
    path = copy / fault.file
    if not fault.fits(copy):
        yield Verdict(fault, GONE)
        return
    clean = path.read_text()
    kept = {m: m.read_bytes() for m in path.parent.glob(f"{path.stem}{SUFFIX}")}
    try:
        path.write_text(clean.replace(fault.old, fault.new))
        trouble = None
        if path.suffix == ".pyx":
            status, out = run([sys.executable, "-c", BUILD, fault.file], copy, 600)
            if status != 0:
                tail = (out.strip().splitlines() or ["took too long"])[-1]
                trouble = Verdict(fault, NO_BUILD, tail[:200])
        yield trouble
    finally:
        path.write_text(clean)
        for module, content in kept.items():
            # A new file: the old one may still be mapped by a process that is going down.
            module.unlink(missing_ok=True)
            module.write_bytes(content)


def judge(fault: Fault, copy: Path, limit: float) -> Verdict:
    """Plant one fault in a copy and run its tests."""
    begun = time.monotonic()
    with planted(fault, copy) as trouble:
        verdict = trouble or Verdict(fault, SURVIVED)
        for arguments in nearest(fault) if trouble is None else ():
            verdict = Verdict(fault, *tested(arguments, copy, limit))
            if verdict.word != SURVIVED:
                break
    verdict.seconds = time.monotonic() - begun
    return verdict


def tested(arguments: str, copy: Path, limit: float) -> tuple[str, str]:
    """Run tests until one fails."""
    options = ["-xq", "--no-header", "--tb=line", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    command = [sys.executable, "-m", "pytest", *options, "-m", "not slow", *arguments.split()]
    status, out = run(command, copy, limit)
    if status is None:
        return TIMEOUT, arguments
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", out, re.MULTILINE)
    if status == 0:
        return SURVIVED, ""
    if status in (1, 2) and failed:
        return KILLED, failed[1][:120]
    if status < 0 or status > 5:
        return CRASH, f"{arguments.split()[0]}: signal {abs(status)}"
    return NO_BUILD, "pytest: " + (out.strip().splitlines() or [""])[-1][:150]


def sound(copy: Path, faults: list[Fault], limit: float) -> None:
    """Stop where the tests fail with no fault planted: they would prove nothing."""
    place = "import structsolve as s, structsolve.plugins.chain as c; print(s.__file__, c.__file__)"
    status, out = run([sys.executable, "-c", place], copy, 100)
    if status != 0 or out.count(str(copy)) != 2:
        raise SystemExit(f"the copy is not what is imported: {out}")
    for arguments in sorted({a for fault in faults for a in nearest(fault)}):
        word, by = tested(arguments, copy, limit)
        if word != SURVIVED:
            raise SystemExit(f"with no fault planted, {arguments}: {word} {by}")


def logged(path: Path | None) -> dict[tuple[str, ...], tuple[str, str]]:
    """What an earlier run noticed: word and test by the key of a fault."""
    if path is None or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {tuple(key): (word, by) for *key, word, by in rows if word in NOTICED}


def table(verdicts: list[Verdict]) -> str:
    """The table for people."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.word] = counts.get(verdict.word, 0) + 1
    lines = [
        f"{len(verdicts)} faults in {len({v.fault.file for v in verdicts})} files: "
        + ", ".join(f"{n} {word}" for word, n in sorted(counts.items())),
        "",
        "| fault | kind | was | planted | what became of it |",
        "| --- | --- | --- | --- | --- |",
    ]
    for verdict in sorted(verdicts, key=lambda v: v.fault.id):
        fault = verdict.fault
        told = f"{verdict.word}: {verdict.by}" if verdict.by else verdict.word
        if verdict.word == SURVIVED and fault.reason:
            told = f"not noticed, for a reason: {fault.reason}"
        cells = [f"`{cell}`".replace("|", "\\|") for cell in fault.line()]
        lines.append(f"| {fault.id} | {fault.kind} | {cells[0]} | {cells[1]} | {told} |")
    return "\n".join(lines)


def write_table(text: str, path: Path) -> None:
    """Put the table between its marks in a file, or at its end."""
    content = path.read_text()
    head = f"`.ci/faults`, {time.strftime('%Y-%m-%d %H:%M')}\n\n## Planted faults"
    section = f"{MARKS[0]}\n{head}\n\n{text}\n{MARKS[1]}"
    if MARKS[0] in content:
        before, after = content.split(MARKS[0])[0], content.split(MARKS[1])[1]
        content = before + section + after
    else:
        content = content.rstrip("\n") + "\n\n" + section + "\n"
    path.write_text(content)


def main() -> int:
    """Plant, build, test, print; the status is 1 where something needs work."""
    parser = argparse.ArgumentParser(prog=".ci/faults", description=__doc__.split("\n")[0])
    parser.add_argument("only", nargs="*", help="ids or files, with * and ?; by default all")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="copies to work on at once")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one round of tests")
    parser.add_argument(
        "--list",
        action="store_true",
        help="say what would be planted, and leave; status 1 if an old text is gone",
    )
    parser.add_argument("--trust", action="store_true", help="no run of the tests without a fault")
    parser.add_argument("--results", type=Path, help="a file to write the table into")
    parser.add_argument(
        "--log", type=Path, help="keep verdicts there; what was noticed is not tried again"
    )
    parser.add_argument("--generate", action="store_true", help="renew the list where it is stale")
    options = parser.parse_args()
    if options.generate:
        from faults_rules import renewed

        with tempfile.TemporaryDirectory(prefix="faults.") as folder:
            make_copy(Path(folder))

            def compiles(fault: Fault) -> bool:
                with planted(fault, Path(folder)) as trouble:
                    print(fault.id, fault.kind, trouble.word if trouble else "", flush=True)
                    return trouble is None

            save(renewed(load() if LIST.exists() else [], ROOT, Fault, compiles))
        return 0
    faults = [
        fault
        for fault in load()
        if not options.only
        or any(fnmatch.fnmatch(name, p) for p in options.only for name in (fault.id, fault.file))
    ]
    if not faults:
        parser.error(f"no fault's id or file matches {options.only}; --list shows them")
    if options.list:
        gone = [fault for fault in faults if not fault.fits(ROOT)]
        for fault in faults:
            state = [GONE] if fault in gone else []
            print(fault.id, *state, fault.kind, *fault.line(), nearest(fault), sep=" | ")
        return 1 if gone else 0
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory(prefix="faults.") as folder:
        folders.append(folder)
        copies: SimpleQueue[Path] = SimpleQueue()
        for k in range(min(options.jobs, len(faults))):
            copy = Path(folder, str(k))
            make_copy(copy)
            copies.put(copy)
        if not options.trust:
            sound(Path(folder, "0"), faults, options.limit)

        known = logged(options.log)

        def work(fault: Fault) -> Verdict:
            if fault.key in known:
                return Verdict(fault, *known[fault.key])
            copy = copies.get()
            try:
                verdict = judge(fault, copy, options.limit)
            finally:
                copies.put(copy)
            if options.log:
                row = [*fault.key, verdict.word, verdict.by]
                with options.log.open("a") as log:
                    log.write(json.dumps(row) + "\n")
            told = f"{verdict.word:14s} {fault.id}  {verdict.seconds:.0f} s  {verdict.by}"
            print(told, file=sys.stderr, flush=True)
            return verdict

        with ThreadPoolExecutor(options.jobs) as pool:
            verdicts = list(pool.map(work, faults))
    text = table(verdicts)
    print(text)
    if options.results:
        write_table(text, options.results)
    bad = [verdict.fault.id for verdict in verdicts if verdict.bad]
    if bad:
        print("\nwant a test, a reason or a new fault:", *bad, sep="\n  ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
