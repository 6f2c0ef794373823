"""Cost of the build: seconds of Cython and of the C compiler, lines of C, modules.

Translates a copy of the current checkout with the checkout's setup.py, and compiles each module
separately with the commands of setuptools.  Seconds are CPU seconds, user and system; no compiler
cache is used.  ``--command`` runs the README's first command as well, in a new copy with an
environment of its own, and tells the seconds that a user waits (150 are asked).

    python benchmarks/build_seconds.py --command
    python benchmarks/build_seconds.py --only plugins.mrf --flags=-O1 --top 5
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from common import machine, table

# Runs setup.py up to its call of setup(), which gets the modules as C; prints them and the
# compiler's command as JSON.  Cython's messages go to stderr.
TRANSLATE = """
import json, os, runpy, sys
import setuptools
from distutils.ccompiler import new_compiler
from distutils.sysconfig import customize_compiler, get_python_inc
keep, sys.stdout = sys.stdout, sys.stderr
sys.path.insert(0, os.getcwd())
sys.argv = ["setup.py", "build_ext"]
given = {}
setuptools.setup = given.update
runpy.run_path("setup.py", run_name="__main__")
compiler = new_compiler()
customize_compiler(compiler)
extensions = [
    dict(name=e.name, sources=e.sources, include_dirs=[*e.include_dirs, get_python_inc()],
         macros=e.define_macros, flags=e.extra_compile_args)
    for e in given["ext_modules"]
]
json.dump({"command": compiler.compiler_so, "extensions": extensions}, keep)
"""


class Compiled(NamedTuple):
    """One module: seconds of the C compiler, lines of C as Cython wrote them, bytes of code."""

    name: str
    seconds: float
    lines: int
    object_bytes: int


def copied(root: Path, folder: Path) -> None:
    """Copy the files that the build reads, without compiled modules and generated C."""
    for name in ("structsolve", "plugins", ".ci"):
        ignored = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
        shutil.copytree(root / name, folder / name, ignore=ignored)
    for path in [*root.glob("*.py"), *root.glob("*.md"), *root.glob("*.toml"), root / "LICENSE"]:
        shutil.copy(path, folder)


def commanded(root: Path) -> float:
    """Seconds of the README's first command, from a copy of the sources to the end of the demo."""
    command = (root / "README.md").read_text().split("```sh\n")[1].split("```")[0]
    # As on a bare machine: neither the benchmark's environment nor a compiler cache.
    own = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "CC")
    bare = {name: value for name, value in os.environ.items() if name not in own}
    if "VIRTUAL_ENV" in os.environ:
        inside = str(Path(os.environ["VIRTUAL_ENV"], "bin"))
        bare["PATH"] = os.pathsep.join(p for p in bare["PATH"].split(os.pathsep) if p != inside)
    with tempfile.TemporaryDirectory(prefix="structsolve-bench-") as folder:
        copied(root, Path(folder))
        start = time.perf_counter()
        ended = subprocess.run(["bash", "-c", command], cwd=folder, env=bare, capture_output=True)
        if ended.returncode:
            raise SystemExit(f"{command.strip()}: {ended.stderr.decode()[-2000:]}")
        return time.perf_counter() - start


def waited(process: subprocess.Popen[Any]) -> float:
    """CPU seconds of a process and of the children that it waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{process.args[:2]} ... ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def translated(folder: Path) -> tuple[float, list[str], list[dict[str, Any]]]:
    """Seconds of Cython, the compiler's command, and the modules as C."""
    environment = {name: value for name, value in os.environ.items() if name != "CC"}
    answer, messages = folder / "extensions.json", folder / "cython.log"
    with answer.open("w") as out, messages.open("w") as log:
        command = [sys.executable, "-c", TRANSLATE]
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=log, env=environment)
        try:
            seconds = waited(process)
        except SystemExit:
            sys.stderr.write(messages.read_text()[-2000:])
            raise
    made = json.loads(answer.read_text())
    return seconds, made["command"], made["extensions"]


def compiled(
    folder: Path, command: Sequence[str], extension: dict[str, Any], flags: Sequence[str], runs: int
) -> Compiled:
    """Compile one module and keep the fastest of ``runs``."""
    (source,) = extension["sources"]
    target = folder / f"{extension['name']}.o"
    macros = [f"-D{name}" + ("" if v is None else f"={v}") for name, v in extension["macros"]]
    includes = [f"-I{path}" for path in extension["include_dirs"]]
    call = [*command, *macros, *includes, *extension["flags"], *flags]
    call += ["-c", source, "-o", str(target)]
    seconds = min(
        waited(subprocess.Popen(call, cwd=folder, stderr=subprocess.DEVNULL)) for _ in range(runs)
    )
    with open(folder / source, "rb") as text:
        lines = sum(1 for _ in text)
    return Compiled(extension["name"], seconds, lines, target.stat().st_size)


def by_folder(modules: Sequence[Compiled]) -> Iterator[list[object]]:
    """Modules, lines and seconds of each package."""
    folders: dict[str, list[Compiled]] = {}
    for module in modules:
        folders.setdefault(module.name.rpartition(".")[0], []).append(module)
    for name in sorted(folders, key=lambda name: -sum(m.seconds for m in folders[name])):
        part = folders[name]
        yield [name, len(part), sum(m.lines for m in part), sum(m.seconds for m in part)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression of modules to compile")
    parser.add_argument("--flags", nargs="+", default=[], help="given to the compiler at the end")
    parser.add_argument("--processes", type=int, default=2, help="modules compiled at once")
    parser.add_argument("--runs", type=int, default=1, help="runs of each; the fastest counts")
    parser.add_argument("--command", action="store_true", help="also the README's first command")
    parser.add_argument("--top", type=int, default=15, help="modules shown; 0 for all")
    parser.add_argument("--json", type=Path, help="file to write every module's figures to")
    parser.add_argument("--keep", type=Path, help="new folder to translate in, which is kept")
    args = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix="structsolve-bench-") as temporary:
        folder = args.keep or Path(temporary)
        copied(root, folder)
        cython, command, extensions = translated(folder)
        # A compiler cache would skip the compilation.
        command = [word for word in command if Path(word).stem not in ("ccache", "sccache")]
        wanted = [e for e in extensions if re.search(args.only, e["name"])]

        def job(extension: dict[str, Any]) -> Compiled:
            return compiled(folder, command, extension, args.flags, args.runs)

        with ThreadPoolExecutor(args.processes) as pool:
            modules = sorted(pool.map(job, wanted), key=lambda m: -m.seconds)
    if args.json:
        args.json.write_text(json.dumps([m._asdict() for m in modules], indent=1))
    print(f"## Build time\n\n{machine()}\n")
    total = sum(m.seconds for m in modules)
    rows: list[list[object]] = [
        ["Cython, all modules [CPU s]", cython],
        ["C compiler [CPU s]", total],
        ["lines of C", sum(m.lines for m in modules)],
        ["modules", len(modules)],
    ]
    if args.command:
        rows.append(["the README's first command [s]", commanded(root)])
    print(table(["", "measured"], rows))
    print(table(["package", "modules", "lines of C", "compiler [CPU s]"], by_folder(modules)))
    shown: list[list[object]] = [
        [m.name, m.lines, m.object_bytes // 1000, m.seconds] for m in modules[: args.top or None]
    ]
    print(table(["module", "lines of C", "object [kB]", "compiler [CPU s]"], shown))


if __name__ == "__main__":
    main()
