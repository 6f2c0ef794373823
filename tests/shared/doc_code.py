"""Find the code in README.md and docs/, and run shell sessions as printed."""

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path

from structsolve.cli.main import main

SHARED = Path(__file__).resolve().parent
ROOT = SHARED.parents[1]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

# Files used by the shell sessions of the README and docs/cli.rst.
TRAIN = "He PRP B-NP\nreckons VBZ B-VP\nthe DT B-NP\ndeficit NN I-NP\n\nIt PRP B-NP\nran VBD B-VP\n"
NEW = "He PRP\nran VBD\nthe DT\ndeficit NN\n"
COSTS = "3\n4 1 3\n2 0 5\n3 2 2\n"
TABLE = "legs,colour,class\n2,red,bird\n4,grey,cat\n?,grey,cat\n"
ANIMALS = "1 11    # birds: owls\n1 12    # ducks\n2 21    # mammals: cats\n2 22    # dogs\n"
LEAVES = "11 1:1 2:1\n12 1:1 2:-1\n21 1:-1 2:1\n22 1:-1 2:-1\n"
ROADS = (
    '{"x": {"edges": [[0, 1], [1, 3], [0, 2], [2, 3]], '
    '"edge_features": [[5], [4], [3], [8]]}, "y": [0, 1, 3]}\n'
)
COINS = '{"x": "hhtht"}\n{"x": "tthtt"}\n'

# Folders that need an extra.
EXTRAS = {"torch": "torch", "jax": "jax", "dask": "dask"}


def is_installed(name):
    """Return whether our module or name can be imported: extras may be missing."""
    folder = name.split(".")[1:2]
    return not folder or folder[0] not in EXTRAS or find_spec(EXTRAS[folder[0]]) is not None


def fenced(path, language):
    """Return code blocks of a Markdown file in one language, with their first lines' numbers."""
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text[: match.start()].count("\n") + 2, match.group(1)


def directives(path, language):
    """Return code blocks of an .rst file in one language: (line, caption, code)."""
    text = path.read_text(encoding="utf-8")
    pattern = rf"^\.\. code-block:: {language}\n((?:    :.*\n)*)\n((?:(?:    .*)?\n)+)"
    for match in re.finditer(pattern, text, re.MULTILINE):
        caption = re.search(r":caption: (.*)", match.group(1))
        line = text[: match.start(2)].count("\n") + 1
        yield line, caption and caption.group(1), textwrap.dedent(match.group(2)).rstrip() + "\n"


def run_session(session, folder, where, run=None):
    """Run the ``$ commands`` of a printed session; their output must equal the printed one."""
    for entry in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, expected = entry.partition("\n")
        status, out, err = (run or in_a_shell)(command, folder)
        assert status == 0, f"{where}: $ {command}\n{out}{err}"
        if expected.strip():
            same = doctest.OutputChecker().check_output(textwrap.dedent(expected), out, OPTIONS)
            assert same, f"{where}: $ {command}\nexpected:\n{expected}\nfound:\n{out}"


def in_a_shell(command, folder):
    """Run a command like a user: return its exit status, output and messages."""
    scripts = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "80",
    }
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    return done.returncode, done.stdout, done.stderr


def in_this_process(command, folder):
    """The same without a new Python process if possible; `folder` is the working directory."""
    program, *arguments = shlex.split(command)
    if program != "structsolve" or set("|&;<>$") & set(command):
        return in_a_shell(command, folder)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(arguments)
    return status, out.getvalue(), err.getvalue()
