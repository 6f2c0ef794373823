"""Programs in forks of one process: each imports structsolve afresh, but not scikit-learn.

That and SciPy take five times as long to import as all that is tested, and know nothing of it.
"""

import atexit
import importlib.util
import json
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from types import ModuleType

import numpy as np

SHARED = os.path.dirname(os.path.abspath(__file__))
SERVERS: dict = {}  # of this process, by interpreter


class Programs:
    """Runs programs one after another, by the one server of an interpreter.

    Parameters
    ----------
    python : str
        The interpreter, whose packages they see.
    folder : path
        Where they run.
    **environ : str
        Changes to the environment.
    """

    def __init__(self, python, folder, **environ):
        self.python, self.folder, self.environ = python, str(folder), environ

    def run(self, code, *arguments, **environ):
        """Run code; return its output."""
        status, out, error = self.ended(code, *arguments, **environ)
        assert status == 0, error[-3000:]
        return out

    def ended(self, code, *arguments, **environ):
        """Run code; return its status, output and messages."""
        environ = {**os.environ, **self.environ, **environ}
        if hasattr(os, "fork"):
            return self._fork(code, [*map(str, arguments)], environ)
        done = subprocess.run(
            [self.python, "-c", code, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=environ,
        )
        return done.returncode, done.stdout, done.stderr

    def _fork(self, code, arguments, environ):
        if self.python not in SERVERS:
            server = SERVERS[self.python] = subprocess.Popen(
                [self.python, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=SHARED,
                env={**os.environ, "PYTHONPATH": ""},
            )
            atexit.register(lambda: (server.stdin.close(), server.wait()))
        server = SERVERS[self.python]
        server.stdin.write(json.dumps([code, arguments, self.folder, environ]) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())


def in_fork(code, *arguments, folder=".", **environ):
    """Run a program with this interpreter; return its status, output and messages."""
    return Programs(sys.executable, os.path.abspath(folder), **environ).ended(code, *arguments)


def installed(folder, packages):
    """Install packages, given as folders of files, beside each other; return programs with them."""
    import pytest  # the server has none

    # Not imported: setuptools wants to come before distutils.
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")
    for package in packages:
        (folder / package.name).mkdir()
        for path in filter(Path.is_file, package.iterdir()):
            (folder / package.name / path.name).write_bytes(path.read_bytes())
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--no-build-isolation", "--disable-pip-version-check", "--target", "site"]
    install += [f"./{package.name}" for package in packages]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return Programs(sys.executable, folder, PYTHONPATH=str(folder / "site"))


def fuzzed(work):
    """Run cases of the fuzzer; return target, number of cases and of refused ones for each."""
    script, shared = f"from fuzz.worker import report; exit(report({work!r}))", SHARED
    told = in_fork(script, folder=shared, PYTHONPATH=shared, OMP_NUM_THREADS="1")
    status, out, error = told
    assert status == 0, out + error[-2000:]
    told = re.findall(r"^(\w+) (\d+) (\d+)$", out, re.M)
    return [(target, int(count), int(refused)) for target, count, refused in told]


def by_instructions(file, folder, versions):
    """Return the arrays that a file, as a script, writes with each instruction set, by its name."""
    paths = {version: folder / f"{version}.npz" for version in versions}
    programs = Programs(sys.executable, folder, PYTHONPATH=os.pathsep.join(sys.path))
    for version, path in paths.items():
        run = f"sys.argv = {[file, str(path)]}; runpy.run_path({file!r}, run_name='__main__')"
        programs.run(f"import runpy, sys; {run}", STRUCTSOLVE_SIMD=version)
    return {version: dict(np.load(path)) for version, path in paths.items()}


def serve():
    """Fork for each program on standard input; answer with its status and output."""
    import tempfile

    import sklearn.feature_extraction  # noqa: F401

    assert not any(name.partition(".")[0] == "structsolve" for name in sys.modules)
    del sys.path[0]  # this file's folder
    answers = os.dup(1)
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
            child = os.fork()
            if child == 0:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(error.fileno(), 2)
                os._exit(execute(*json.loads(line)))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            error.seek(0)
            answer = json.dumps([status, out.read(), error.read()]) + "\n"
        os.write(answers, answer.encode())


def execute(code, arguments, folder, environ):
    """Run a program like ``python -c``; return its status."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["-c", *arguments]
    sys.path[:0] = ["", *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    main = sys.modules["__main__"] = ModuleType("__main__")
    status = 0
    try:
        exec(compile(code, "<string>", "exec"), vars(main))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    serve()
