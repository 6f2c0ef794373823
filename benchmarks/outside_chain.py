"""Oracles of plugins over the C interface: time of a cut against that of our chain.

Builds the packages of docs/examples with setuptools in a temporary folder: `fastchain`, a chain on
the declared vector loops, and `ring_native`, sequences around a ring, with one Viterbi for
each first label.  Also builds `textbook_chain.pyx`, a simple loop over pairs of states.  A cut
is that of the margin surrogate: scores of one feature, the loss added, the oracle,
the difference of parts.  All take turns; the time of each is the least of its rounds.  If the
chains do not agree to the last bit, the script ends.

    taskset -c 2 python benchmarks/outside_chain.py
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "docs" / "examples"
ALLOWED = 1.5  # limit as a multiple of our chain, and for a ring of K states times K


def build(folder: Path) -> None:
    """Compile the three packages, and make them importable."""
    setup = (EXAMPLES / "fastchain" / "setup.py").read_text()
    textbook = folder / "textbook_chain"
    (textbook / "textbook_chain").mkdir(parents=True)
    (textbook / "setup.py").write_text(setup.replace("structsolve_fastchain", "textbook_chain"))
    (textbook / "textbook_chain" / "__init__.py").touch()
    shutil.copyfile(HERE / "textbook_chain.pyx", textbook / "textbook_chain" / "_oracle.pyx")
    for name in ("fastchain", "ring_native"):
        shutil.copytree(EXAMPLES / name, folder / name)
    for name in ("fastchain", "ring_native", "textbook_chain"):
        done = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
            cwd=folder / name,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{name}: {done.stdout}{done.stderr}")
        sys.path.insert(0, str(folder / name))


def problem(structure: Any, plugins: list[ModuleType], words: int, length: int, K: int) -> Any:
    """Random sequences of one feature as a training problem under some plugins' hooks."""
    from structsolve import Problem, registry

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 1)) for _ in range(words)]
    Y = [rng.integers(0, K, length) for _ in X]
    for plugin in plugins:
        registry.default().register(plugin)
    space, examples = structure.make_space(X, Y, classes=np.arange(K))
    made = Problem(space, examples)
    for plugin in plugins:
        registry.default().unregister(plugin)
    return made


def hook_of(oracle: Any) -> ModuleType:
    """A plugin that returns one oracle for every space."""
    from structsolve import hookimpl

    plugin = ModuleType(f"plugin_of_{oracle.__name__}")
    plugin.structsolve_oracle = hookimpl(lambda space: oracle)
    return plugin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=500)
    parser.add_argument("--length", type=int, default=8)
    parser.add_argument("--states", type=int, nargs="+", default=[4, 10, 26, 60])
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    header("Oracles of plugins: µs a cut")
    if structsolve_or_none() is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        report(args)


def report(args: argparse.Namespace) -> None:
    from structsolve import get_structure
    from structsolve.solvers.passes import surrogate_bounds

    fast = importlib.import_module("structsolve_fastchain._oracle").FastChain
    textbook = importlib.import_module("textbook_chain._oracle").TextbookChain
    ring = importlib.import_module("ring_native")
    ring_structure = importlib.import_module("ring_native.ring").RingStructure()
    rows = []
    for K in args.states:
        make = partial(problem, words=args.words, length=args.length, K=K)
        chain = get_structure("chain")
        problems = [
            make(chain, []),
            make(chain, [hook_of(fast)]),
            make(chain, [hook_of(textbook)]),
            make(ring_structure, [ring]),
        ]
        ws = [np.random.default_rng(1).normal(size=each.dim) for each in problems]
        bounds = [surrogate_bounds(each, w)[0] for each, w in zip(problems, ws, strict=True)]
        for other in bounds[1:3]:
            np.testing.assert_array_equal(bounds[0], other)
        best = np.full(len(problems), np.inf)
        for _ in range(args.rounds):
            for j, (each, w) in enumerate(zip(problems, ws, strict=True)):
                with Clock() as clock:
                    surrogate_bounds(each, w)
                best[j] = min(best[j], 1e6 * clock.cpu / args.words)
        ours, outside, plain, closed = best.tolist()
        times_k = closed / (K * ours)
        good = outside <= ALLOWED * ours and times_k <= ALLOWED
        rows.append(
            [K, ours, outside, outside / ours, plain, plain / ours, closed, times_k]
            + ["yes" if good else "NO"]
        )
    columns = ("states", "our chain", "outside", "/ ours", "textbook", "/ ours")
    columns += ("ring", "/ (states x ours)", f"both below {ALLOWED}")
    print(f"{args.words} sequences of {args.length} positions; cuts of the margin surrogate.\n")
    print(table(columns, rows))


if __name__ == "__main__":
    main()
