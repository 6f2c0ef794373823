"""Programs in forks of one process: each imports structsolve afresh, but not scikit-learn.

That and SciPy take five times as long to import as all that is tested, and know nothing of it.
"""

import json
import os
import subprocess
import sys
import traceback
from types import ModuleType

import numpy as np


class Programs:
    """Runs programs one after another; the context manager stops them.

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
        self.python, self.folder = python, folder
        self.environ = {**os.environ, **environ}
        self.server = None

    def run(self, code, **environ):
        """Run code; return its output."""
        if hasattr(os, "fork"):
            status, out, error = self._fork(code, environ)
        else:
            done = subprocess.run(
                [self.python, "-c", code],
                capture_output=True,
                text=True,
                cwd=self.folder,
                env={**self.environ, **environ},
            )
            status, out, error = done.returncode, done.stdout, done.stderr
        assert status == 0, error[-3000:]
        return out

    def _fork(self, code, environ):
        if self.server is None:
            self.server = subprocess.Popen(
                [self.python, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=self.folder,
                env=self.environ,
            )
        self.server.stdin.write(json.dumps([code, environ]) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.server is not None:
            self.server.stdin.close()
            self.server.stdout.close()
            self.server.wait()


def by_instructions(file, folder, versions):
    """Return the arrays that a file, as a script, writes with each instruction set, by its name."""
    paths = {version: folder / f"{version}.npz" for version in versions}
    with Programs(sys.executable, folder, PYTHONPATH=os.pathsep.join(sys.path)) as programs:
        for version, path in paths.items():
            run = f"sys.argv = {[file, str(path)]}; runpy.run_path({file!r}, run_name='__main__')"
            programs.run(f"import runpy, sys; {run}", STRUCTSOLVE_SIMD=version)
    return {version: dict(np.load(path)) for version, path in paths.items()}


def serve():
    """Fork for each program on standard input; answer with its status and output."""
    import tempfile

    import sklearn.feature_extraction  # noqa: F401

    assert not any(name.partition(".")[0] == "structsolve" for name in sys.modules)
    sys.path[0] = ""  # the folder of programs, not this file's
    answers = os.dup(1)
    for line in sys.stdin:
        code, environ = json.loads(line)
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(error.fileno(), 2)
                os._exit(execute(code, environ))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            error.seek(0)
            answer = json.dumps([status, out.read(), error.read()]) + "\n"
        os.write(answers, answer.encode())


def execute(code, environ):
    """Run a program like ``python -c``; return its status."""
    os.environ.update(environ)
    sys.argv = ["-c"]
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
