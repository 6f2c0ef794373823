"""Very many classes: error, time and size of ExtremeSVM beside pecos, omikuji, napkinXC and others.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/extreme.py --sets small mid bibtex words

Sets come from ``extreme_data.py``.  Peers have a separate environment, made at the
first run.  Every system runs in its own process with one thread and its defaults; ours has
one default for all sets, chosen without test labels.  Seconds are CPU seconds, macro is
1 - macro-F1, peak is memory in MB including the data.

The slower option of docs/extreme.rst: ``--settings '{"softmax": {"passes": 9, "block": 512,
"rounding": 0.1, "dense_from": 30}}'``.

``--keep FILE`` writes rows of peers as JSON lines and does not measure rows in the file again, so
that a long table can be made in parts; each kept row is printed with machine and time.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from common import machine
from environments import peers_of, ready

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "extreme"
SETS = ("small", "mid", "lshtc", "words", "bibtex", "rcv1-topics", "odp")
PEERS = ("class means", "pecos", "omikuji", "omikuji, 3 trees", "napkinXC", "RecallTree")
#: One-vs-rest keeps dense weights: 117 MB here, 17 GB on lshtc.
DENSE = {"small": ("LinearSVC",)}
COLUMNS = ("error", "error5", "macro", "fit", "ms", "mb", "peak")
MOST = 20_000
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)


def data(folder: Path, name: str) -> Path:
    path = folder / f"{name}.npz"
    if not path.exists():
        subprocess.run([sys.executable, str(HERE / "extreme_data.py"), name, str(path)], check=True)
    return path


def figures(command: list[str]) -> dict[str, float] | None:
    """The last line a process printed; if it failed, None, with its error on stderr."""
    alone = os.environ | ONE_THREAD
    done = subprocess.run(command, capture_output=True, text=True, env=alone)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(path: str, settings: dict[str, object]) -> None:
    """Measure ExtremeSVM like the peers, in a separate process."""
    from extreme_peers import TOP, Peer, measure

    from structsolve import ExtremeSVM
    from structsolve.plugins.extreme.solvers.choice import SelfChoice
    from structsolve.plugins.extreme.solvers.softmax import SampledSoftmax

    if "softmax" in settings:
        softmax = SampledSoftmax(**settings.pop("softmax"))  # type: ignore[arg-type]
        settings["solver"] = SelfChoice(softmax=softmax)

    class Ours(Peer):
        def fit(self, X, y, n_classes):
            self.model = ExtremeSVM(random_state=0, n_jobs=1, **settings).fit(X, y)
            self.model.save(f"{self.folder}/model", dtype="float16")

        def predict(self, X):
            labels, _ = self.model.predict_topk(X, TOP)
            return labels

    print(json.dumps(measure(Ours, path, MOST)))


def threads(path: str, jobs: list[int], settings: dict[str, object]) -> None:
    """Print wall seconds of a fit by number of threads, and whether the weights are the same."""
    from extreme_peers import load

    from structsolve import ExtremeSVM

    X, y, _, _ = load(path)
    print("\n| threads | fit, wall s | speed-up | same weights |\n| --- | --- | --- | --- |")
    alone: tuple[float, bytes] | None = None
    for n_jobs in jobs:
        begun = time.perf_counter()
        model = ExtremeSVM(random_state=0, n_jobs=n_jobs, **settings).fit(X, y)
        spent, weights = time.perf_counter() - begun, model.coef_.data.tobytes()
        alone = alone or (spent, weights)
        same = "yes" if weights == alone[1] else "NO"
        print(f"| {n_jobs} | {spent:.1f} | {alone[0] / spent:.2f} | {same} |", flush=True)


def kept(path: Path | None, name: str, peer: str) -> dict[str, object] | None:
    """The last line of `path` for a set and a peer."""
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    same = [r for r in map(json.loads, lines) if (r["set"], r["system"]) == (name, peer)]
    return same[-1] if same else None


def row(name: str, told: dict[str, float] | None) -> str:
    if told is None:
        return f"| {name} | failed " + "| " * len(COLUMNS) + "|"
    error = " | ".join(f"{told[key]:.4f}" for key in COLUMNS[:3])
    return (
        f"| {name} | {error} | {told['fit']:.1f} | {told['ms']:.3f} | {told['mb']:.1f} | "
        f"{told['peak']:.0f} |"
    )


def compare(name: str, told: dict[str, dict[str, float] | None]) -> None:
    """Print ours relative to the best, or the fastest, of the others."""
    mine = told.pop("structsolve")
    others = {peer: f for peer, f in told.items() if f is not None and peer not in ("class means",)}
    if mine is None or not others:
        return
    words = []
    for key, title in (("error", "top-1 error"), ("error5", "top-5 error")):
        peer = min(others, key=lambda k: others[k][key])
        words.append(f"{title} {mine[key] / others[peer][key]:.3f} of {peer}'s, the best")
    peer = min(others, key=lambda k: others[k]["fit"])
    words.append(f"fit {mine['fit'] / others[peer]['fit']:.2f} of {peer}'s, the fastest")
    pecos = others.get("pecos")
    if pecos:
        part = {k: mine[k] / pecos[k] for k in ("error", "fit", "ms", "mb")}
        words.append(
            f"of pecos': error {part['error']:.3f}, fit {part['fit']:.2f}, prediction "
            f"{part['ms']:.3f}, file {part['mb']:.2f}"
        )
    print(f"\n{name}: " + "; ".join(words) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", choices=SETS, default=SETS[:-1])
    parser.add_argument("--peers", nargs="*", default=list(PEERS), help="none: ours alone")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument(
        "--settings", type=json.loads, default={}, help="of ExtremeSVM (or its softmax), as JSON"
    )
    parser.add_argument("--keep", type=Path, help="file of peers' rows, read and added to")
    parser.add_argument("--jobs", type=int, nargs="*", help="wall seconds of ours, no peers")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ours:
        ours(args.ours, args.settings)
        return 0
    args.folder.mkdir(parents=True, exist_ok=True)
    python = str(ready("extreme")) if args.peers and not args.jobs else ""
    print(f"## Very many classes\n\n{machine()}\n\n{peers_of('extreme')}")
    for name in args.sets:
        path = str(data(args.folder, name))
        print(f"\n### {name}")
        if args.jobs:
            threads(path, args.jobs, args.settings)
            continue
        print("\n| system | top-1 | top-5 | macro | fit s | ms a row | MB | peak |")
        print("|" + " --- |" * (len(COLUMNS) + 1))
        told: dict[str, dict[str, float] | None] = {}
        notes: list[str] = []
        for peer in (*args.peers, *(DENSE.get(name, ()) if args.peers else ())):
            old = kept(args.keep, name, peer)
            if old is not None:
                told[peer] = old["figures"]
                notes.append(f"{peer}: measured {old['when']}, {old['machine']}")
            else:
                told[peer] = figures([python, str(HERE / "extreme_peers.py"), peer, path])
                if args.keep is not None and told[peer] is not None:
                    line = {
                        "set": name,
                        "system": peer,
                        "when": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
                        "machine": machine(),
                        "figures": told[peer],
                    }
                    with open(args.keep, "a") as out:
                        out.write(json.dumps(line) + "\n")
            print(row(peer, told[peer]), flush=True)
        own = [sys.executable, __file__, "--ours", path, "--settings", json.dumps(args.settings)]
        told["structsolve"] = figures(own)
        print(row("structsolve", told["structsolve"]), flush=True)
        compare(name, told)
        if notes:
            print("\nNot of this run: " + "; ".join(notes) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
