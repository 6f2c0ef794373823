"""Small training problems in two forms: packed for the solvers, and explicit for reference code."""

from dataclasses import dataclass

import numpy as np
import pytest
from reference.chains import enumerate_examples
from reference.objectives import optimum, primal
from scipy import sparse

import structsolve
from structsolve.solvers.problem import Problem
from structsolve.solvers.run import Start, relative_gap
from structsolve.utils import container

K = 3
COSTS = np.array([[0, 1, 4], [2, 0, 0.5], [1, 3, 0]])


@dataclass
class Case:
    """A problem, its enumeration, and the penalised coordinates of the latter."""

    problem: Problem
    written: list
    blocks: tuple
    penalized: np.ndarray | None

    def flat(self, w):
        """Return the weights in the order of the enumeration."""
        layout = self.problem.space.layout
        return np.concatenate([layout.view(w, name).ravel() for name in self.blocks])

    def optimum(self, alpha, **constraints):
        return optimum(self.written, alpha, self.problem.weights, self.penalized, **constraints)


def zero_one(truth, labels):
    return float(np.any(np.asarray(truth) != labels))


def costs(truth, labels):
    return float(COSTS[np.asarray(truth), np.asarray(labels)].sum())


LOSSES = {
    "hamming": ("hamming", None),
    "zero-one": ("zero-one", zero_one),
    "costs": (structsolve.CostMatrix(COSTS), costs),
}


def make_case(kind="chain", seed=0, n=8, loss="hamming", weights=None, penalize=True):
    """A case.

    `kind`: chain; ties (few distinct integer features, examples repeated); edges (with features of
    the edges); classes (single nodes, no tables of transitions).
    """
    rng = np.random.default_rng(seed)
    lengths = np.ones(n, int) if kind == "classes" else rng.integers(1, 4, n)
    X = [rng.normal(size=(length, 2)) for length in lengths]
    if kind == "ties":
        X = [rng.integers(-1, 2, x.shape).astype(float) for x in X]
        X = [X[i % -(-n // 2)] for i in range(n)]
    Y = [rng.integers(0, K, len(x)) for x in X]
    if kind == "ties":
        Y = [Y[i % -(-n // 2)] for i in range(n)]
    edge_x = [rng.normal(size=(len(x) - 1, 2)) for x in X] if kind == "edges" else None
    given = list(zip(X, edge_x)) if edge_x else X
    tables = kind != "classes"
    structure = structsolve.get_structure("chain", transitions=tables, start_end=tables)
    space, _ = structure.make_space(given, Y, classes=np.arange(K), fit_intercept=True)
    packed = space.pack(given, Y)
    packed.sample_weight = None if weights is None else np.asarray(weights, dtype=np.float64)
    problem = Problem(space, packed, loss=LOSSES[loss][0], penalize_intercept=penalize)
    blocks = tuple(block.name for block in space.layout.blocks)
    ones = [np.hstack([x, np.ones((len(x), 1))]) for x in X]
    written = enumerate_examples(ones, Y, K, blocks, LOSSES[loss][1], edge_x)
    case = Case(problem, written, blocks, None)
    if not penalize:
        case.penalized = case.flat(problem.penalty) > 0
    return case


def narrow():
    """Return few features of very different variance, in rows of one of five classes."""
    rng = np.random.default_rng(0)
    spread = np.geomspace(5, 0.2, 8)
    X = rng.normal(size=(400, 8)) * spread
    scores = (X / spread) @ rng.normal(size=(8, 5))
    y = np.argmax(scores + 1.5 * rng.normal(size=scores.shape), axis=1)
    return Problem(*structsolve.get_structure("multiclass").make_space(X, y))


def begin(solver, problem, alpha, seed=0, tol=1e-8, n_jobs=1, w=None):
    return solver.start(Start(problem, alpha, np.random.default_rng(seed), n_jobs, w, tol))


def follow(run, tol=1e-8, passes=2000):
    """Return the records of the passes until the certified gap is below tol."""
    history = []
    while len(history) < passes:
        history.append(run.step())
        gap = relative_gap(history[-1])
        if history[-1]["certified"] and gap is not None and gap <= tol:
            break
    return history


def check_rising(history, close=1e-12):
    """Check that the dual never falls."""
    duals = [record["dual"] for record in history]
    assert all(b >= a - close for a, b in zip(duals, duals[1:]))


def check_sums(run, atol):
    """Check that incremental state equals the sums over cuts and their weights."""
    w, total = run.loop.w.copy(), run.loop.b_total
    run.loop.resynchronise()
    np.testing.assert_allclose(run.loop.w, w, atol=atol)
    assert run.loop.b_total == pytest.approx(total, rel=1e-12, abs=atol)


def check_bounds(history, best, estimates=False):
    """Check bounds by the last record of another run; `estimates`: only certified primal values."""
    for record in history:
        assert record["dual"] <= best["primal"] * (1 + 1e-9)
        if record["certified"] or not estimates:
            assert record["primal"] >= best["dual"] * (1 - 1e-9)


def check_threads(start, passes, jobs=(1, 2, 3, 8)):
    """Check that runs from `start(n_jobs)` are the same to the last bit."""
    outcomes = []
    for n_jobs in jobs:
        run = start(n_jobs)
        records = [run.step() for _ in range(passes)]
        outcomes.append((run.weights().tobytes(), [(r["primal"], r["dual"]) for r in records]))
    assert all(outcome == outcomes[0] for outcome in outcomes[1:])


def check_continued(start, passes, cut, path):
    """Check that a run from `start(seed)` goes on from a file, whatever the seed after it.

    Returns the whole run with its records, the run of `cut` passes, and the one that went on.
    """
    whole, first = start(0), start(0)
    expected = [whole.step() for _ in range(passes)]
    records = [first.step() for _ in range(cut)]
    rest = through_file(first, start(7), path)
    assert records + [rest.step() for _ in range(passes - cut)] == expected
    assert np.array_equal(rest.weights(), whole.weights())
    return whole, expected, first, rest


def move_over(run, batches, rng):
    """Make a pass over each batch; return their union, and the order of all visits."""
    written, order = [], []
    for batch in batches:
        run.move_to(batch.problem)
        run.step()
        order.append(len(written) + rng.permutation(batch.problem.n))
        written += batch.written
    joined = batches[0]
    joined.written = written
    joined.problem.weights = np.full(len(written), 1 / len(written))
    return joined, np.concatenate(order)


def through_file(run, fresh, path):
    """Return `fresh` in the state of `run`, restored from a checkpoint file."""
    container.write(path, "checkpoint", *run.state())
    fresh.restore(*container.read(path, "checkpoint"))
    return fresh


def word_data(structure, n=24, n_features=90, states=3, seed=0, values="ones"):
    """Return X and Y whose rows have three of many features each, rare and frequent ones."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, n_features + 1)
    X, Y = [], []
    for _ in range(n):
        length = 1 if structure == "multiclass" else int(rng.integers(1, 5))
        rows = np.zeros((length, n_features))
        for row in rows:
            chosen = rng.choice(n_features, 3, replace=False, p=shares / shares.sum())
            row[chosen] = 1.0 if values == "ones" else rng.normal(size=3)
        X.append(rows)
        Y.append(rng.integers(0, states, length))
    if structure == "multiclass":
        return sparse.csr_matrix(np.vstack(X)), np.concatenate(Y)
    return [sparse.csr_matrix(x) for x in X], Y


def check(case, run, history, best, alpha, rel=1e-6):
    """The records are valid for the optimum, and the weights reach it."""
    value = primal(
        case.flat(run.weights()), case.written, alpha, case.problem.weights, case.penalized
    )
    last = history[-1]
    assert last["primal"] == pytest.approx(value, rel=1e-9)
    assert best.value * (1 - 1e-9) <= value <= best.value * (1 + rel)
    for record in history:
        if record["certified"]:
            assert record["dual"] <= best.value * (1 + 1e-9)
            assert record["dual"] <= record["primal"]
            assert record["gap"] == pytest.approx(record["primal"] - record["dual"], abs=1e-15)
            assert record["primal"] >= best.value * (1 - 1e-9)
    assert last["certified"] and last["gap"] <= 1e-8 * last["primal"]
