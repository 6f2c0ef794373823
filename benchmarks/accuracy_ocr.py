"""Test letter error over training time: ours against every algorithm of python-crfsuite.

Trains on nine OCR folds and tests on the held-out one.  Both sides see the 128 pixels, a bias and
word ends: an intercept and start/end tables on our side, the attributes "bias", "BOS" and "EOS" on
theirs.  Their data is converted and appended before the clock starts; ours is given as
structsolve.Sequences and packed while the clock runs.  A point of a curve is a separate training
run with that many iterations.  Prints the time of each to an error of --target and the ratio, and
draws pictures/accuracy_ocr.png (not with --only or --quick).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import Clock, header, picture, ratio, structsolve_or_none, table
from datasets import Words, ocr_split
from ours import chain_svm, plain_bcfw
from peers import Crfsuite

# algorithm, its parameters, iterations of the points of its curve
PEERS = {
    "lbfgs c2=1": ("lbfgs", {"c2": 1.0}, (10, 20, 40, 60, 80, 100, 150)),
    "lbfgs c2=10": ("lbfgs", {"c2": 10.0}, (10, 20, 40, 60, 80)),
    "ap": ("ap", {}, (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)),
    "pa": ("pa", {}, (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)),
    "l2sgd c2=1": ("l2sgd", {"c2": 1.0}, (1, 2, 5, 10, 20)),
    "l2sgd c2=.1": ("l2sgd", {"c2": 0.1}, (1, 2, 5, 10, 20)),
}
# solver, C = 1 / (alpha n), passes of the points of our curve
OURS: dict[str, tuple[Any, float, tuple[int, ...]]] = {
    "ours, plain bcfw C=.1": (plain_bcfw, 0.1, (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40)),
    "ours, plain bcfw C=1": (plain_bcfw, 1.0, (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40)),
    "ours, bcfw C=.1": ("bcfw", 0.1, (1, 2, 3, 4, 5, 6, 8, 10, 15)),
    "ours, bcfw C=.3": ("bcfw", 0.3, (1, 2, 3, 4, 5, 6, 8, 10, 15)),
    "ours, sgd C=.3": ("sgd", 0.3, (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40)),
    "ours, sgd C=1": ("sgd", 1.0, (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40)),
}
LONG = 40.0  # curves that take more CPU seconds run once
Curve = list[tuple[int, float, float, float]]  # iterations, CPU s, wall s, test error


def letter_error(predicted: list, truth: np.ndarray) -> float:
    return float(np.mean(np.concatenate([np.asarray(p) for p in predicted]) != truth))


def crfsuite_curve(name: str, train: Words, test: Words, quick: bool) -> Curve:
    algorithm, parameters, iterations = PEERS[name]
    peer = Crfsuite(train.crfsuite_items(), train.y_list())
    prepared = peer.prepare(test.crfsuite_items())
    curve = []
    for count in iterations[:4] if quick else iterations:
        clock = peer.train(algorithm, **parameters, max_iterations=count)
        predicted = [[int(label) for label in word] for word in peer.predict(prepared)]
        curve.append((count, clock.cpu, clock.wall, letter_error(predicted, test.labels)))
    return curve


def our_curve(structsolve: Any, name: str, train: Words, test: Words, quick: bool) -> Curve:
    solver, c, passes = OURS[name]
    x, y, xt = train.x_list("packed"), train.y_list(), test.x_list("packed")
    curve = []
    for count in passes[:4] if quick else passes:
        alpha = 1.0 / (c * train.n_words)
        made = solver() if callable(solver) else solver
        model = chain_svm(structsolve, alpha, count, ends=True, solver=made)
        with Clock() as clock:
            model.fit(x, y)
        curve.append((count, clock.cpu, clock.wall, letter_error(model.predict(xt), test.labels)))
    return curve


def time_to(curve: Curve, target: float) -> float | None:
    """CPU seconds of the cheapest run that reached `target`."""
    return min((cpu for _, cpu, _, error in curve if error <= target), default=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=float, default=0.12)
    parser.add_argument("--fold", type=int, default=0, help="the fold to test on")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each short curve (median)")
    parser.add_argument("--quick", action="store_true", help="four points of each curve")
    parser.add_argument("--only", help="curves whose name contains this text")
    args = parser.parse_args()
    header("OCR letters, nine folds: test letter error over training time")
    train, test = ocr_split(args.fold, "nine")
    structsolve = structsolve_or_none()
    names = [*PEERS, *(OURS if structsolve else ())]
    curves: dict[str, Curve] = {}
    for name in names:
        if args.only and args.only not in name:
            continue
        repeats: list[Curve] = []
        while len(repeats) < args.repeat:
            if name in PEERS:
                repeats.append(crfsuite_curve(name, train, test, args.quick))
            else:
                repeats.append(our_curve(structsolve, name, train, test, args.quick))
            if sum(cpu for _, cpu, *_ in repeats[0]) > LONG:
                break
        median = np.median(np.array(repeats), axis=0)
        curves[name] = [(int(n), float(c), float(w), float(e)) for n, c, w, e in median]
        print(
            f"{name}: " + "; ".join(f"{n} it {c:.2f} s {e:.4f}" for n, c, _, e in curves[name]),
            flush=True,
        )
    rows = []
    for name, curve in curves.items():
        best = min(curve, key=lambda point: point[3])
        rows.append([name, time_to(curve, args.target), best[3], best[1], best[0]])
    print()
    print(
        table(
            ["learner", f"CPU s to {args.target:g}", "best error", "its CPU s", "its iterations"],
            rows,
        )
    )
    times = {name: time_to(curve, args.target) for name, curve in curves.items()}
    peers = [t for name, t in times.items() if t and name in PEERS]
    ours = [t for name, t in times.items() if t and name in OURS]
    if peers:
        print(f"fastest crfsuite to {args.target:g}: {min(peers):.3f} s")
    if ours and peers:
        print(f"ours: {min(ours):.3f} s, ratio {ratio(min(peers), min(ours))} (target: 5x)")
    print()
    if args.only or args.quick:
        return
    with picture("accuracy_ocr", "OCR letters, nine folds: test error over training time") as ax:
        for name, curve in curves.items():
            ax.plot(
                [c for _, c, _, _ in curve],
                [e for *_, e in curve],
                "o-" if name in OURS else ".--",
                label=name,
                linewidth=2 if name in OURS else 1,
            )
        ax.axhline(args.target, color="0.7", linewidth=0.8)
        ax.axhline(0.1157, color="0.7", linewidth=0.8, linestyle=":")
        ax.set(
            xscale="log",
            xlabel="training CPU seconds",
            ylabel="test letter error",
            ylim=(0.1, 0.25),
        )
        ax.legend(fontsize=8)


if __name__ == "__main__":
    main()
