"""MEMOIR's Table 3 and Figure 2: inexact margins beside one-vs-rest, PD-Sparse and others.

    python benchmarks/extreme_inexact.py --sets small mid
    python benchmarks/extreme_inexact.py --sets lshtc --systems "MEMOIR l2, corrected" PD-Sparse

Sets come from ``extreme_data.py``; lshtc has the shape of the paper's LSHTC1.  Every system runs in
its own process with one thread, ``--jobs`` at a time, peers in an environment of their own
(``environments.py``); PD-Sparse is compiled from its authors' repository.  Published: the
algorithms and numbers of the paper (Table 4), with a certified scan in place of nmslib's graph.
Divided: the same with steps divided by the batch.
Corrected: also batch, first step (over the batch) and alpha are better ones.  Where there is a
choice, settings are those of least top-1 error on a tenth of the training rows of ``--choose``.

MEMOIR stops as in the paper, when macro-F1 on held-out rows (4 % of the training rows) has not
risen in a pass, 5 to 9 of its iterations.  "liblinear, sampled" trains the machines of some random
classes and multiplies.  Seconds are CPU seconds, those of prediction for all test rows.  Figures
are kept in ``inexact.jsonl`` below ``--folder`` and not measured again while it is there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from common import append, in_processes, machine
from environments import peers_of, ready
from extreme import FOLDER, HERE, MOST, data, figures
from extreme_data import ExtremeSet
from extreme_peers import HELD_OUT, TOP, PDSparse, Peer, errors, held_out, measure

PROGRAMS = "https://github.com/a061105/ExtremeMulticlass"
#: Figures of earlier runs below the folder; a table can be made in parts.  Delete it to begin anew.
KEPT = "inexact.jsonl"
CHOOSING = 0.1
MOST_PASSES = 30
#: Settings to choose from; those of the paper stand first.
COSTS = ({"C": 10.0}, {"C": 1.0})
STEPS = tuple({"alpha": a, "first": f} for a in (1e-5, 1e-6) for f in (1.0, 0.3, 0.1))
L1 = tuple({"alpha": alpha} for alpha in (1e-6, 1e-7, 1e-5))


def memoir(n: int, n_classes: int, kind: str, rivals: str = "certified:.05", **given: float) -> Any:
    """ExtremeSVM with MEMOIR's steps: published, divided, or corrected, for l1 or l2."""
    from structsolve import ExtremeSVM
    from structsolve.plugins.extreme.solvers.memoir import Memoir

    penalty, steps = kind.split()
    alpha = given.get("alpha", {"l1": 1e-6, "l2": 1.0}[penalty])
    if steps == "published":
        solver = Memoir("printed", batch=100.0)
    elif steps == "divided":
        solver = Memoir(batch=100.0, eta0=0.1, eta_step=0.02)
    elif penalty == "l1":
        solver = Memoir(batch=100.0)
    else:
        first = given["first"] * 10 * math.sqrt(n_classes)
        solver = Memoir(batch=10.0, eta0=first, eta_step=0.002)
    # A new seed for each pass: a number would draw the same batches again.
    seed = np.random.RandomState(0)
    return ExtremeSVM(solver=solver, penalty=penalty, rivals=rivals, alpha=alpha, random_state=seed)


def rest(n: int, n_classes: int, C: float) -> Any:
    """One-vs-rest with liblinear's objective and a certified gap."""
    from structsolve import ExtremeSVM
    from structsolve.plugins.extreme.solvers.one_vs_rest import OneVsRest

    return ExtremeSVM(solver=OneVsRest(cost=1.0, bias=1.0), alpha=1 / (C * n), tol=1e-3)


def pairs(n: int, n_classes: int, C: float) -> Any:
    """Crammer and Singer's machine to a certified gap of 1 %."""
    from structsolve import ExtremeSVM

    return ExtremeSVM(solver="dual", surrogate="margin", alpha=1 / (C * n), max_iter=100)


def default(n: int, n_classes: int) -> Any:
    from structsolve import ExtremeSVM

    return ExtremeSVM()


def of(kind: str, rivals: str = "certified:.05") -> tuple[Any, ...]:
    return memoir, kind, rivals


CORRECTED = "MEMOIR l2, corrected"
#: Ours: what makes the model, and the settings to choose from.
OURS: dict[str, tuple[tuple[Any, ...], tuple[dict[str, float], ...]]] = {
    "MEMOIR l2, published": (of("l2 published"), ({},)),
    "MEMOIR l1, published": (of("l1 published"), ({},)),
    "MEMOIR LSH, published": (of("l2 published", "lsh:64"), ({},)),
    "MEMOIR l2, divided": (of("l2 divided"), ({},)),
    CORRECTED: (of("l2 corrected"), STEPS),
    "the same, exact rivals": (of("l2 corrected", "exact"), ()),
    "the same, LSH": (of("l2 corrected", "lsh:64"), ()),
    "the same, random rivals": (of("l2 corrected", "random:1"), ()),
    "MEMOIR l1, corrected": (of("l1 corrected"), L1),
    "one-vs-rest, ours": ((rest,), COSTS),
    "Crammer and Singer, ours": ((pairs,), COSTS),
    "ExtremeSVM": ((default,), ({},)),
}
PEERS: dict[str, tuple[float, ...]] = {
    "liblinear, sampled": (),
    "LinearSVC": (),
    "pecos, one-vs-rest": (1.0, 10.0),
    "PD-Sparse": (0.01, 0.1),
    "RecallTree": (),
}
COLUMNS = ("system", "setting", "error", "macro-F1", "train s", "predict s", "ms a row", "MB")
COLUMNS = (*COLUMNS, "peak MB", "stopped by", "the paper: accuracy, macro-F1; s; memory")
#: Its dense weights take 117 MB on small, 4.6 GB on mid.
SMALL_ONLY = ("LinearSVC",)
#: Table 3, LSHTC1: accuracy and macro-F1 in per cent; training and prediction s; memory.
PAPER = {
    "MEMOIR l2, published": "34.5, 24.4; 1673, 18; 119 MB",
    "MEMOIR l1, published": "31.9, 23.6; 2204, 6; 46 MB",
    "MEMOIR LSH, published": "34.6, 24.8; 655, 12; 218 MB",
    "liblinear, sampled": "44.1, 27.4; 23056, 328; 40.3 GB",
    "Crammer and Singer, ours": "36.4, 18.8; 48313, 314; 40.3 GB",
    "PD-Sparse": "45.7, 27.7; 5105, 67; 10.5 GB",
    "RecallTree": "18.1, 3.8; 701, 21; 122 MB",
}


class Ours(Peer):
    """One of `OURS`."""

    name: str
    setting: Any

    def fit(self, X, y, n_classes):
        make, *kind = OURS[self.name][0]
        self.model = make(len(y), n_classes, *kind, **self.setting)
        if make is memoir:
            self.stop = until_held_out(self.model, X, y, n_classes)
        else:
            self.model.fit(X, y)
            last = self.model.history_[-1]
            gap = last.get("machines_gap", last["gap"])
            self.stop = f"gap {gap / last['primal']:.2%}" if make in (rest, pairs) else ""
        self.model.save(f"{self.folder}/model", dtype="float16")

    def predict(self, X):
        return self.model.predict_topk(X, TOP)[0]


def until_held_out(model: Any, X: Any, y: np.ndarray, n_classes: int) -> str:
    """Train by passes until macro-F1 on held-out rows does not rise."""
    held, best = held_out(len(y), HELD_OUT), -1.0
    for done in range(1, MOST_PASSES + 1):
        model.partial_fit(X[~held], y[~held], classes=np.unique(y) if done == 1 else None)
        ids = model.predict_topk(X[held], 1)[0]
        macro = 1 - errors(ids, y[held], n_classes)["macro"]
        if macro <= best:
            return f"held-out rows, {done} passes"
        best = macro
    return f"{done} passes"


def made_pd_sparse() -> bool:
    """Compile PD-Sparse if it is not there; where that fails, print why."""
    folder = PDSparse.program
    try:
        if not folder.exists():
            subprocess.run(["git", "clone", "-q", PROGRAMS, str(folder)], check=True)
        if not (folder / "multiPred").exists():
            subprocess.run(["make", "-C", str(folder)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"PD-Sparse is not in the tables, as it could not be made from {PROGRAMS}: {error}\n")
        return False
    return True


def split(folder: Path, name: str) -> Path:
    """A set of nine tenths of the training rows, with the others as test rows."""
    path = folder / f"{name}-choosing.npz"
    if not path.exists():
        whole = ExtremeSet.load(data(folder, name))
        held = held_out(len(whole.y), CHOOSING)
        parts = whole.X[~held], whole.y[~held], whole.X[held], whole.y[held]
        ExtremeSet(*parts).save(path)
    return path


def run(folder: Path, name: str, path: Path, setting: Any) -> dict[str, Any] | None:
    """The figures of a system, from the file of those that earlier runs left if they are there."""
    key, kept = [name, path.stem, setting], folder / KEPT
    for line in kept.read_text().splitlines() if kept.exists() else ():
        if json.loads(line)[0] == key:
            return json.loads(line)[1]
    if name in OURS:
        call = [sys.executable, __file__, "--ours", name, str(path), json.dumps(setting)]
    else:
        call = [str(ready("extreme")), str(HERE / "extreme_peers.py"), name, str(path)]
        call += [] if setting is None else ["--setting", str(setting)]
    told = figures(call)
    if told is not None:
        append(kept, [key, told])
    return told


def choose(folder: Path, name: str, system: str, given: tuple[Any, ...], jobs: int) -> Any:
    """The setting of least error on held-out training rows; all are printed."""
    if len(given) < 2:
        return given[0] if given else None
    path = split(folder, name)
    done = in_processes(jobs, run, [(folder, system, path, setting) for setting in given])
    told = [1.0 if one is None else one["error"] for one in done]
    words = ", ".join(f"{shown(setting)}: {error:.4f}" for setting, error in zip(given, told))
    print(f"* {system}: {words}", flush=True)
    return given[int(np.argmin(told))]


def shown(setting: Any) -> str:
    if isinstance(setting, dict):
        return " ".join(f"{name} {value:g}" for name, value in setting.items())
    return "" if setting is None else f"{setting:g}"


def row(system: str, setting: Any, told: dict[str, Any] | None) -> str:
    if told is None:
        return f"| {system} | {shown(setting)} | failed |" + " |" * (len(COLUMNS) - 3)
    if told["error"] is None:
        cells = ["", "", f"{told['fit']:.0f} ({told['spread']:.0f})", *[""] * 4, told["stop"]]
    else:
        seconds = told["ms"] * told["rows"] / 1e3
        cells = [f"{told['error']:.4f}", f"{1 - told['macro']:.4f}", f"{told['fit']:.1f}"]
        cells += [f"{seconds:.2f}", f"{told['ms']:.3f}", f"{told['mb']:.1f}"]
        cells += [f"{told['peak']:.0f}", told["stop"]]
    return "| " + " | ".join([system, shown(setting), *cells, PAPER.get(system, "")]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where sets are, or are made")
    parser.add_argument("--sets", nargs="+", default=["small", "mid"])
    parser.add_argument("--choose", default="small", help="the set that chooses for all")
    parser.add_argument("--systems", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--ours", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ours:
        default(1, 2)  # Its import is not training.
        Ours.name, path, setting = options.ours
        print(json.dumps(measure(lambda into: Ours(into, json.loads(setting)), path, MOST)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    print("## Inexact margins and one-vs-rest\n")
    print(f"{machine()}\n")
    if set(options.systems) & set(PEERS):
        if "PD-Sparse" in options.systems and not made_pd_sparse():
            options.systems.remove("PD-Sparse")
        ready("extreme")
    print(f"{peers_of('extreme')}Error on held-out training rows of {options.choose}:\n")
    chosen = {}
    for system in options.systems:
        like = CORRECTED if system.startswith("the same") else system
        if like not in chosen:
            given = OURS[like][1] if like in OURS else PEERS[like]
            chosen[like] = choose(options.folder, options.choose, like, given, options.jobs)
        chosen[system] = chosen[like]
    for name in options.sets:
        path = data(options.folder, name)
        print(f"\n### {name}\n\n{ExtremeSet.load(path)}\n")
        print("| " + " | ".join(COLUMNS) + " |")
        print("|" + " --- |" * len(COLUMNS))
        systems = [one for one in options.systems if one not in SMALL_ONLY or name == "small"]
        tasks = [(options.folder, system, path, chosen[system]) for system in systems]
        for system, told in zip(systems, in_processes(options.jobs, run, tasks), strict=True):
            print(row(system, chosen[system], told), flush=True)


if __name__ == "__main__":
    main()
