"""structsolve.utils.progress: output by verbosity, on a terminal and elsewhere."""

import io
import logging
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from structsolve.cli.main import main
from structsolve.utils import progress
from structsolve.utils.progress import Progress
from structsolve.utils.remaining import Remaining

RECORD = {
    "primal": 2.0,
    "dual": 1.5,
    "gap": 0.5,
    "certified": False,
    "oracle_calls": 626,
    "seconds": 0.01,
}
LINE = "bcfw pass 1/3: primal 2, dual 1.5, gap ~0.5 (25 %), oracle_calls 626, seconds 0.01"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(monkeypatch, stream, verbose, passes=3, handlers=(), **options):
    """Return the output on stderr without pytest's log handlers, which would count as a console."""
    monkeypatch.setattr(sys, "stderr", stream)
    root = logging.getLogger()
    before, root.handlers = root.handlers, list(handlers)
    try:
        with Progress(verbose, 3, "bcfw", **options) as bar:
            for _ in range(passes):
                bar.update(RECORD)
    finally:
        root.handlers = before
    return stream.getvalue()


def console(stream, level=logging.INFO, kind=logging.StreamHandler):
    handler = kind(stream)
    handler.setFormatter(logging.Formatter("LOG %(message)s"))
    handler.setLevel(level)
    return handler


@pytest.fixture
def info(monkeypatch):
    """Like after ``logging.basicConfig(level=logging.INFO)``, without its handler."""
    monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
    logging.getLogger("structsolve.solvers").manager._clear_cache()
    yield
    monkeypatch.undo()
    logging.getLogger("structsolve.solvers").manager._clear_cache()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_silent(monkeypatch, stream):
    assert run(monkeypatch, stream(), 0) == ""


def test_a_line_each_pass(monkeypatch):
    lines = run(monkeypatch, Terminal(), 2).splitlines()
    assert lines[0] == LINE and len(lines) == 3 and lines[2].startswith("bcfw pass 3/3")


def test_lines_without_a_terminal_are_thinned(monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    lines = run(monkeypatch, io.StringIO(), 1).splitlines()
    assert [line[:13] for line in lines] == ["bcfw pass 1/3", "bcfw pass 3/3"]

    def later():
        seconds[0] += progress._LINE_EVERY
        return seconds[0]

    monkeypatch.setattr(progress.time, "monotonic", later)
    assert len(run(monkeypatch, io.StringIO(), 1).splitlines()) == 3


def test_bar(monkeypatch):
    pytest.importorskip("tqdm")
    text = run(monkeypatch, Terminal(), 1)
    last = text.split("\r")[-1]
    assert "bcfw: 100%" in last and "3/3" in last
    assert "primal 2, dual 1.5, gap ~0.5 (25 %)" in last and "oracle_calls" not in text


def test_continued_run(monkeypatch):
    pytest.importorskip("tqdm")
    assert "bcfw pass 3/3" in run(monkeypatch, io.StringIO(), 2, passes=1, initial=2)
    assert "3/3" in run(monkeypatch, Terminal(), 1, passes=1, initial=2).split("\r")[-1]


def test_without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    lines = run(monkeypatch, Terminal(), 1).splitlines()
    assert lines[0] == LINE and lines[-1].startswith("bcfw pass 3/3")


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_log_records_carry_the_numbers(monkeypatch, info, verbose):
    seen = []
    handler = logging.Handler()
    handler.emit = seen.append
    assert run(monkeypatch, io.StringIO(), verbose, handlers=[handler]) == ""  # never twice
    assert [record.name for record in seen] == ["structsolve.solvers"] * 3
    assert seen[0].getMessage() == LINE and seen[0].record == RECORD
    assert {record.levelno for record in seen} == {logging.INFO}


def test_log_lines_do_not_break_the_bar(monkeypatch, info):
    pytest.importorskip("tqdm")
    stream = Terminal()
    text = run(monkeypatch, stream, 1, handlers=[console(stream)])
    lines = re.findall(r"LOG .*", text)
    assert len(lines) == 3 and lines[0] == f"LOG {LINE}"
    # Each starts on a cleared line, and the bar is drawn again after it.
    assert all(before.endswith("\r") for before in text.split("LOG ")[:-1])
    assert all("bcfw:" in after.split("\n", 1)[1] for after in text.split("LOG ")[1:])


def test_callbacks_may_write(monkeypatch):
    pytest.importorskip("tqdm")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(1, 3, "bcfw") as bar:
        bar.update(RECORD)
        with pytest.raises(RuntimeError), bar.aside():
            stream.write("hello\n")
            raise RuntimeError
        bar.update(RECORD)
    assert "\rhello\n" in stream.getvalue() and "2/3" in stream.getvalue()


@pytest.mark.parametrize("handler", ["file", "errors only", "nothing"])
def test_verbose_shows_lines_that_logging_would_not(monkeypatch, info, tmp_path, handler):
    other = io.StringIO()
    if handler == "file":
        made = console(tmp_path / "log", kind=logging.FileHandler)
    elif handler == "errors only":
        made = console(other, logging.ERROR)
    else:
        made = logging.NullHandler()
    try:
        assert run(monkeypatch, io.StringIO(), 2, handlers=[made]).splitlines()[0] == LINE
    finally:
        made.close()
    assert other.getvalue() == ""
    if handler == "file":
        assert len((tmp_path / "log").read_text().splitlines()) == 3


def test_handler_of_the_library_logger(monkeypatch, info):
    stream, solvers = io.StringIO(), logging.getLogger("structsolve.solvers")
    monkeypatch.setattr(solvers, "propagate", False)
    # The root's handler cannot be reached.
    assert LINE in run(monkeypatch, io.StringIO(), 2, handlers=[console(io.StringIO())])
    monkeypatch.setattr(solvers, "handlers", [logging.StreamHandler(stream)])
    assert run(monkeypatch, io.StringIO(), 2) == "" and LINE in stream.getvalue()


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_no_stderr_is_no_error(monkeypatch, verbose):
    closed = Terminal()
    closed.close()

    class Broken(Terminal):
        def write(self, text):
            raise BrokenPipeError

    for stream in (None, closed, Broken()):
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress(verbose, None, "sgd") as bar:
            bar.update({})
            with bar.aside():
                pass


def test_an_interrupt_closes_the_bar_and_goes_on(monkeypatch):
    pytest.importorskip("tqdm")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(KeyboardInterrupt), Progress(1, 3, "bcfw") as bar:
        bar.update(RECORD)
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize(
    "record, text",
    [
        ({}, ""),
        ({"primal": None, "dual": 1}, "dual 1"),
        ({"gap": 0.1}, "gap 0.1"),
        ({"primal": 0.0, "gap": 0.0}, "primal 0, gap 0"),
        ({"primal": float("nan"), "gap": 1e-9}, "primal nan, gap 1e-09 (nan %)"),
        ({"primal": -2, "gap": 1, "certified": True}, "primal -2, gap 1 (50 %)"),
        ({"note": "restart", "validation": 1 / 3}, "note restart, validation 0.33333"),
    ],
)
def test_words(record, text):
    bar = Progress(0, None, "sgd")
    bar.update(record)
    assert bar.line == f"sgd pass 1: {text}"


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_on_a_real_terminal():
    pytest.importorskip("tqdm")
    code = (
        "import logging; logging.basicConfig(level=logging.INFO)\n"
        "from structsolve.utils.progress import Progress\n"
        "with Progress(1, 3, 'bcfw') as bar:\n"
        "    for _ in range(3): bar.update({'primal': 2.0, 'gap': 0.5})"
    )
    root = str(Path(progress.__file__).parents[2])  # of the package itself
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    leader, follower = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=follower,
        stdin=follower,
        env={**os.environ, "PYTHONPATH": paths, "TERM": "xterm"},
    ) as process:
        os.close(follower)
        text = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:  # Linux says EIO where others say end of file
                break
            if not piece:
                break
            text += piece
    os.close(leader)
    assert process.returncode == 0
    # This terminal does not report its width, as is usual in containers.
    assert text.count(b"\rINFO:structsolve.solvers:bcfw pass") == 3
    assert b"bcfw: 100%" in text and b"gap 0.5 (25 %)" in text


@pytest.mark.parametrize("seed", range(40))
def test_the_time_left_follows_the_course_of_the_gap(seed):
    rng = random.Random(seed)
    tol, rate, power = 10 ** rng.uniform(-4, -1), rng.uniform(0.6, 0.95), rng.uniform(0.7, 2.0)
    for gap in (lambda k: rate**k, lambda k: k**-power):
        end = next(k for k in range(1, 10**7) if gap(k) <= tol)
        remaining = Remaining(tol)
        seen = rng.randint(3, 30)
        for k in range(1, seen + 1):
            remaining.see(k, gap(k), certified=True)
            remaining.see(k, 5.0, certified=False)  # estimates, which certificates outdo
        left = max(end - seen, 0)
        assert remaining.passes(seen) == pytest.approx(left, abs=1 + 0.01 * left)
        assert Remaining(tol, 10).passes(4) is None


def test_the_time_left_ends_at_max_iter():
    remaining = Remaining(1e-3, max_iter=50)
    for k in range(1, 6):
        remaining.see(k, 0.5, certified=True)  # does not fall
        remaining.see(k, float("nan"), certified=True)
        remaining.see(k, None, certified=True)
    assert remaining.passes(5) == 45 and remaining.passes(60) == 0
    unending = Remaining(0.0)
    for k in range(1, 6):
        unending.see(k, 0.5**k, certified=False)
    assert unending.passes(5) is None
    slow = Remaining(1e-300)
    for k in range(1, 6):
        slow.see(k, 0.5 - 1e-9 * k, certified=True)
    assert slow.passes(5) is None or slow.passes(5) > 1e6


def test_lines_tell_the_time_left(monkeypatch):
    clock = iter(range(0, 1000, 30))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with Progress(2, 100, "bcfw", tol=1e-3) as bar:
        for k in range(1, 6):
            bar.update({"primal": 2.0, "gap": 2.0 * 0.5**k, "certified": True})
    lines = stream.getvalue().splitlines()
    assert "left" not in lines[1] and re.search(r", about \d+ min left$", lines[-1])


def test_stages(monkeypatch, capsys):
    from structsolve import StructuredSVM

    X, y = [[0.0], [1.0]], [0, 1]
    StructuredSVM("multiclass").fit(X, y)
    assert capsys.readouterr().err == ""
    model = StructuredSVM("multiclass", verbose=2).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "StructuredSVM: packing the examples"
    assert lines[1] == "StructuredSVM: features, Gram matrices and oracles of 2 examples"
    assert lines[2].startswith(f"StructuredSVM: alpha='auto' is {model.alpha_:.3g} by")
    assert lines[3] == "StructuredSVM: solver='auto' takes 'bcfw'"
    assert lines[4].startswith("multiclass pass 1/100")


@pytest.mark.parametrize(
    ("stream", "options", "seen"),
    [(Terminal, [], True), (Terminal, ["--quiet"], False), (io.StringIO, [], False)],
)
def test_the_shell_draws_a_bar_on_terminals_unless_told(
    monkeypatch, tmp_path, stream, options, seen
):
    data = tmp_path / "train.svm"
    data.write_text("0 1:1\n1 1:-1\n0 1:2\n")
    told = stream()
    monkeypatch.setattr(sys, "stderr", told)
    assert main(["fit", str(data), "--model", str(tmp_path / "m"), *options]) in (0, None)
    assert ("pass" in told.getvalue()) == seen


def test_the_shell_takes_lists_as_arguments_of_structures(tmp_path):
    import numpy as np

    from structsolve import load
    from structsolve.io.npz import write_npz

    rng = np.random.default_rng(0)
    pictures = [rng.normal(size=(3, 3, 2)) for _ in range(4)]
    labels = [(x[..., 0] > 0).astype(int) for x in pictures]
    labels[0][0, 0] = 255
    write_npz(tmp_path / "train.npz", pictures, labels)
    arguments = ["--structure", "grid:void=[-1,255]", "--model", str(tmp_path / "m")]
    assert main(["fit", str(tmp_path / "train.npz"), *arguments, "--max-iter", "3"]) in (0, None)
    assert list(load(tmp_path / "m").space_.structure.void) == [-1, 255]
