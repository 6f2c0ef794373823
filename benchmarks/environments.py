"""Environments of peers that are no requirement of ours, made below ``build/peers`` when needed.

    python benchmarks/environments.py              # makes all of them; prints what installs
    python benchmarks/environments.py pystruct

Most see the packages of the present environment, too, so that both sides run in one process.
Others have an older NumPy or Python, and the peer runs in a process of its own.  What does not
install is named with pip's reason, there and in the sections of the scripts that would use it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "build" / "peers"


@dataclass(frozen=True)
class Environment:
    """Calls of ``pip install`` in order; whether our packages are seen; a version of Python."""

    packages: tuple[str, ...]
    beside: bool = True
    python: str = ""


ENVIRONMENTS = {
    "assignment": Environment(("lap==0.5.13", "lapjv==1.3.29")),
    "dask": Environment(("dask==2026.8.0 distributed==2026.8.0",)),
    # libpecos' own requirements bring torch, which its linear model does not use.
    "extreme": Environment(
        (
            "numpy==1.26.4 scipy==1.13.1 scikit-learn==1.5.2",
            "omikuji==0.5.2",
            "napkinxc==0.7.2",
            "vowpalwabbit==9.11.9",
            "--no-deps libpecos==1.2.8",
        ),
        beside=False,
    ),
    "hmmlearn": Environment(("hmmlearn==0.3.3",)),
    "layers": Environment(
        (
            "torch==2.13.0",
            "torch-struct==0.5",
            "pytorch-crf==0.7.2",
            "jax==0.10.2",
            "synjax @ git+https://github.com/google-deepmind/synjax@6de574af85658c1e5608739b958ab20f06050a1b",
        )
    ),
    "lp": Environment(("ecos==2.0.14", "ortools==9.15.6755", "cvxopt==1.3.3", "pyscipopt==6.3.0")),
    "nmslib": Environment(("nmslib==2.1.2",)),
    "pgmpy": Environment(("pgmpy==1.1.2",), beside=False),
    "pot": Environment(("pot==0.9.7.post1",)),
    # Its C files do not compile for Python 3.7 and later.
    "pystruct": Environment(
        (
            "pip==21.3.1 wheel==0.37.1",
            "numpy==1.19.5 scipy==1.5.4 scikit-learn==0.22.2.post1 cvxopt==1.3.0 future==1.0.0",
            "Cython==0.29.37",
            "--no-build-isolation --no-deps ad3==2.2.1",
            "--no-build-isolation --no-deps pystruct==0.3.2",
        ),
        beside=False,
        python="3.6",
    ),
    # Its setup.py loads setuptools_scm without the requirements that this has since version 10.
    "seqeval": Environment(
        (
            "setuptools==80.9.0 wheel==0.45.1 setuptools_scm==8.3.1",
            "--no-build-isolation --no-deps seqeval==1.2.2",
        )
    ),
    "sklearn-crfsuite": Environment(("sklearn-crfsuite==0.5.0",)),
    "udpipe": Environment(("ufal.udpipe==1.4.0.1",)),
    "vowpalwabbit": Environment(("vowpalwabbit==9.11.9",)),
}


def interpreter(version: str) -> str | None:
    """The Python of a version, ours for none, and None if there is no such Python."""
    if not version:
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    paths = [str(path) for path in sorted(root.glob(f"{version}.*/bin/python"))]
    return paths[-1] if paths else shutil.which(f"python{version}")


def reason(told: str) -> str:
    """The first line of an installer's output that names an error."""
    lines = re.findall(r"(?im)^.*?\b(?:error|fatal):\s*(.*)$", told)
    lines = [line for line in lines if "exited-with-error" not in line]
    return (lines or ["it failed without a message"])[0].strip()[:150]


def ready(name: str) -> Path:
    """The Python of an environment, made if it is not there; what failed is kept in a file."""
    folder, made = FOLDER / name, ENVIRONMENTS[name]
    python, failed = folder / "bin" / "python", folder / "failed.txt"
    if failed.exists():
        return python
    folder.mkdir(parents=True, exist_ok=True)
    base = interpreter(made.python)
    if base is None:
        failed.write_text(f"{name}: there is no Python {made.python}\n")
        return python
    subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=True)
    if made.beside:
        path = "import sysconfig; print(sysconfig.get_path('purelib'))"
        own = subprocess.run([python, "-c", path], check=True, capture_output=True, text=True)
        ours = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})"
        Path(own.stdout.strip(), "beside.pth").write_text(ours)
    lines = []
    for packages in made.packages:
        words = [packages] if " @ " in packages else packages.split()
        call = [str(python), "-m", "pip", "install", "-q", *words]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode:
            lines.append(f"{words[-1].partition(' @ ')[0]}: {reason(done.stdout + done.stderr)}\n")
    failed.write_text("".join(lines))
    return python


def missing(name: str) -> str:
    """Lines that name what did not install, and why; nothing if all did."""
    path = FOLDER / name / "failed.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return "".join(f"(not installed: {line})\n\n" for line in lines)


def peers_of(name: str) -> str:
    """Lines that name the versions of an environment, and what did not install."""
    words = " ".join(ENVIRONMENTS[name].packages).split()
    pinned = ", ".join(word.replace("==", " ") for word in words if "==" in word)
    return f"Peers: {pinned}\n\n{missing(name)}"


def enter(name: str) -> None:
    """Restart the script in an environment that sees our packages, unless it runs there."""
    python = ready(name)
    if Path(sys.prefix).resolve() != (FOLDER / name).resolve():
        os.execv(python, [str(python), *sys.orig_argv[1:]])


def main() -> None:
    from common import header, table

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=", ".join(ENVIRONMENTS))
    names = parser.parse_args().names or list(ENVIRONMENTS)
    header("Peers in environments of their own")
    rows = []
    for name in names:
        ready(name)
        made = ENVIRONMENTS[name]
        words = " ".join(made.packages).replace(" @ git+", "@").split()
        packages = ", ".join(word.partition("@https")[0] for word in words if word[:2] != "--")
        told = missing(name).replace("(not installed: ", "").replace(")\n\n", "; ")
        rows.append([name, made.python or "ours", packages, told.rstrip("; ") or "all"])
    print(table(["environment", "Python", "packages", "installed"], rows))


if __name__ == "__main__":
    main()
