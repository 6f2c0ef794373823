"""Plant faults in plugins, and compare the kits' messages: a table for each language.

``python tests/shared/kit_faults.py`` runs those in Python, ``--compiled`` builds those in Cython
too (all in one module), ``--write`` puts the tables into ``benchmarks/results/checks.md``.  The
status is 1 where a kit says nothing, or something else than the fault's message.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from wrong_compiled import COMPILED, LOSSES, SURROGATES, structure_with, surrogate_with
from wrong_kits import KITS
from wrong_projections import PROJECTIONS
from wrong_spaces import SPACES
from wrong_structures import SLOW, WRONG

import structsolve
from structsolve.testing import BrokenPromise, check_loss, check_structure, check_surrogate

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "benchmarks" / "results" / "checks.md"
MARKS = "<!-- begin kit faults -->", "<!-- end kit faults -->"
NOTHING = "NOTHING"


def said(kit, *args, **options):
    """Return the kit's message: its error, or its warning."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            kit(*args, **options)
        except BrokenPromise as broken:
            return " ".join(str(broken).split())
    slow = [w for w in told if w.category.__name__ == "SlowOperator"]
    return f"SlowOperator: {slow[0].message}" if slow else NOTHING


def in_python():
    """Yield faults in Python: kit, name, its message, and the expected message."""
    for param in WRONG + PROJECTIONS + SPACES + SLOW:
        structure_class, message = param.values
        counted = {"clock": structure_class.clock} if hasattr(structure_class, "clock") else {}
        text = said(check_structure, structure_class(), n_cases=2, solvers=(), **counted)
        yield "check_structure", param.id, text, message
    for kit, name, make, args, options, message in KITS:
        yield kit.__name__, name, said(kit, make(), *args, **options), message


def compiled(folder):
    """Yield faults in Cython, built in one module in ``folder``."""
    native = build(folder)
    for kind, fault, message in COMPILED:
        loss = "wrong" if kind == "LOSS" else "hamming"
        structure = structure_with(native, kind, fault)
        options = {"n_cases": 2, "solvers": (), "clock": native.clock}
        text = said(check_structure, structure, loss, **options)
        yield "check_structure", f"{kind.lower()}: {fault}", text, message
    for fault, message in SURROGATES:
        text = said(check_surrogate, surrogate_with(native, fault))
        yield "check_surrogate", f"surrogate: {fault}", text, message
    for fault, message in LOSSES:
        text = said(check_loss, "wrong", structure_with(native, "LOSS", fault))
        yield "check_loss", f"loss: {fault}", text, message


def build(folder):
    """Compile ``wrong_native.pyx`` and import it."""
    source = Path(folder, "wrong_native.pyx")
    source.write_bytes((HERE / "wrong_native.pyx").read_bytes())
    code = (
        "from setuptools import setup\nfrom Cython.Build import cythonize\n"
        f"setup(ext_modules=cythonize('wrong_native.pyx', quiet=True, include_path=["
        f"{structsolve.get_include()!r}]))\n"
    )
    Path(folder, "setup.py").write_text(code)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, check=True)
    path = next(Path(folder).glob("wrong_native.*.so"))
    spec = importlib.util.spec_from_file_location("wrong_native", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(rows):
    """Return the faults as a Markdown table, and the undetected ones."""
    lines, missed = ["| fault | kit | what it said |", "| --- | --- | --- |"], []
    for kit, name, text, message in rows:
        if not re.search(message, text):
            missed.append(f"{name}: {text}\n    expected {message}")
            print(f"MISSED {missed[-1]}", file=sys.stderr)
        # Keep the part after "breaks a promise:", without the case.
        short = re.sub(r"^.*?: (?=[\w.`]+.* breaks a promise)", "", text)
        short = re.sub(r" \(case .*?\)(?=\.)|\. To see it again.*", "", short)
        short = short.replace(" breaks a promise: it", "").replace("|", "\\|")
        lines.append(f"| {name} | {kit} | {short[:160]} |")
    return lines, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiled", action="store_true", help="faults in Cython too")
    parser.add_argument("--write", action="store_true", help="tables into benchmarks/results")
    args = parser.parse_args()
    begun = time.process_time()
    parts, missed = [], []
    with tempfile.TemporaryDirectory() as folder:
        kinds = [("Python", in_python())]
        if args.compiled:
            kinds.append(("Cython", compiled(folder)))
        for language, rows in kinds:
            lines, unnoticed = table(rows)
            told = len(lines) - 2 - len(unnoticed)
            parts += [f"### In {language}: {told} of {len(lines) - 2}", "", *lines, ""]
            missed += unnoticed
    text = "\n".join(parts)
    print(text)
    print(f"{time.process_time() - begun:.0f} CPU seconds", file=sys.stderr)
    if args.write:
        old = RESULTS.read_text(encoding="utf-8")
        before, after = old.split(MARKS[0])[0], old.split(MARKS[1])[1]
        RESULTS.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
