"""Progress: passes and oracle calls to a given gap, so that a change that only slows is noticed.

Counts of today, with fixed seeds, stand in ``passes_needed.json``; a tenth more and one are
allowed, for other roundings elsewhere.  ``python tests/solvers/test_passes_needed.py``
writes the file anew: do that where a change makes training quicker, or for a reason that
the commit gives.  With ``--also`` a larger count of the file stays: instruction sets round
differently, so the file has the largest of the default, ``STRUCTSOLVE_SIMD=avx2`` and ``plain``.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from checks import refused
from solver_cases import begin

from structsolve import Problem, get_structure
from structsolve.solvers import BCFW, GBCFW, SDCA, SGD, ConsensusADMM, CuttingPlane
from structsolve.solvers.run import relative_gap
from structsolve.surrogates import Slack

FILE = Path(__file__).with_name("passes_needed.json")
ALPHA, TOL, MOST = 0.05, 1e-3, 600
# These fall like 1 / t: a tenth of the accuracy takes a tenth of the passes.
SLOW = ("bcfw-frank-wolfe", "bcfw-original", "gbcfw-harmonic", "sgd-uniform", "sgd-last")
# The primal of stochastic subgradients must come this close to its minimum.
NEAR = 0.005
SOLVERS = {
    "bcfw": BCFW(certify_every=1),
    "bcfw-frank-wolfe": BCFW(steps="frank-wolfe", certify_every=1),
    "bcfw-original": BCFW(
        steps="frank-wolfe", max_steps=1, cached_passes=0, averaging=False, certify_every=1
    ),
    "bcfw-pairwise": BCFW(steps="pairwise", cached_passes=0, certify_every=1),
    "bcfw-last": BCFW(averaging=False, certify_every=1),
    "bcfw-uniform": BCFW(sampling="uniform", certify_every=1),
    "bcfw-gap": BCFW(sampling="gap", certify_every=1),
    "gbcfw": GBCFW(certify_every=1),
    "gbcfw-harmonic": GBCFW(step="harmonic", certify_every=1),
    "gbcfw-last": GBCFW(averaging=False, certify_every=1),
    "sdca": SDCA(certify_every=1),
    "admm": ConsensusADMM(certify_every=1),
    "admm-spectral": ConsensusADMM(metric="spectral", certify_every=1),
    "one-slack": CuttingPlane("one"),
    "one-slack-plain": CuttingPlane("one", step=1.0),
    "n-slack": CuttingPlane("n"),
    "sgd": SGD(certify_every=1, patience=MOST),
    "sgd-uniform": SGD(averaging="uniform", certify_every=1, patience=MOST),
    "sgd-last": SGD(averaging="none", projection=True, certify_every=1, patience=MOST),
}
SURROGATES = (
    "margin",
    "lp",
    "unit-margin",
    "slack",
    "slack relaxed",
    "generalized:1.5,0.5",
    "beta:0.5",
    "log",
    "probloss",
    "micro-f1:0",
    "max-min",
    "crf",
    "sparsemap",
)
# Solvers that are not variants of others run on all surrogates; variants on some.
VARIED = ("margin", "slack relaxed", "crf", "max-min")
CASES = [
    (structure, surrogate, solver)
    for structure in ("chain", "multiclass")
    for surrogate in SURROGATES
    for solver in SOLVERS
    if surrogate in VARIED or solver in ("bcfw", "gbcfw", "sdca", "one-slack", "n-slack", "sgd")
]


def make_problem(structure, surrogate):
    """Noisy labels of a linear model: 30 short sequences, or 60 rows."""
    rng = np.random.default_rng(7)
    if structure == "chain":
        X = [rng.normal(size=(length, 4)) for length in rng.integers(2, 6, 30)]
        W = rng.normal(size=(4, 3))
        Y = [np.argmax(x @ W + rng.normal(size=(len(x), 3)), 1) for x in X]
    else:
        X, W = rng.normal(size=(60, 4)), rng.normal(size=(4, 5))
        Y = np.argmax(X @ W + rng.normal(size=(60, 5)), 1)
    named = Slack(relaxed=True) if surrogate == "slack relaxed" else surrogate
    return Problem(*get_structure(structure).make_space(X, Y), surrogate=named)


def needed(structure, surrogate, solver, most_passes, least=None):
    """Return passes, oracle calls, and the primal when the goal is met or after ``most_passes``."""
    problem = make_problem(structure, surrogate)
    more = 10 if solver in SLOW else 1
    run = begin(SOLVERS[solver], problem, ALPHA, tol=TOL)
    passes = calls = 0
    while passes < most_passes:
        record = run.step()
        passes, calls = passes + 1, calls + record["oracle_calls"]
        assert record["certified"]
        # Its dual converges more slowly than its primal, which counts there.
        gap = None if isinstance(SOLVERS[solver], SGD) else relative_gap(record)
        met = (
            gap <= more * TOL if gap is not None else record["primal"] <= least * (1 + more * NEAR)
        )
        if met:
            return passes, calls, record["primal"]
    return passes + 1, calls, record["primal"]


def least_value(structure, surrogate):
    """Return a lower bound of the optimum, or, without convexity, of the reachable value."""
    if surrogate.startswith("micro-f1"):
        run = begin(SOLVERS["sgd"], make_problem(structure, surrogate), ALPHA)
        return min(run.step()["primal"] for _ in range(MOST))
    run = begin(CuttingPlane("n"), make_problem(structure, surrogate), ALPHA, tol=1e-5)
    return max(run.step()["dual"] for _ in range(25))


def with_margin(count):
    return count + count // 10 + 1


@pytest.mark.parametrize("structure, surrogate, solver", CASES)
def test_passes_and_oracle_calls_to_a_gap(structure, surrogate, solver):
    counts = json.loads(FILE.read_text())[structure][surrogate]
    if solver not in counts:
        refused("use (solver|steps)=", needed, structure, surrogate, solver, 1)
        return
    passes, calls = counts[solver]
    most = with_margin(passes)
    spent = needed(structure, surrogate, solver, most, counts.get("least"))
    assert spent[0] <= most, f"{passes} passes were enough"
    assert spent[1] <= with_margin(calls)


def write(also):
    """Count anew; ``also``: keep what is larger."""
    table, before = {}, json.loads(FILE.read_text()) if also else {}
    for structure, surrogate, solver in CASES:
        counts = table.setdefault(structure, {}).setdefault(surrogate, {})
        if not counts:
            counts["least"] = round(least_value(structure, surrogate), 7)
        try:
            passes, calls, _ = needed(structure, surrogate, solver, MOST, counts["least"])
        except ValueError as refusal:
            print(structure, surrogate, solver, refusal)
            continue
        if passes > MOST:
            print("NOT THERE", structure, surrogate, solver)
        former = before.get(structure, {}).get(surrogate, {}).get(solver, [0, 0])
        counts[solver] = [max(passes, former[0]), max(calls, former[1])]
    parts = []
    for structure, rows in table.items():
        lines = [f'  "{surrogate}": {json.dumps(counts)}' for surrogate, counts in rows.items()]
        parts.append(f'"{structure}": {{\n' + ",\n".join(lines) + "\n}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    write("--also" in sys.argv)
