"""SGD against the same steps in plain form: scaling, averages, projection, free weights."""

import numpy as np
import pytest
from checks import refused
from reference.objectives import margins, primal
from solver_cases import begin, make_case, move_over

from structsolve import StructuredSVM
from structsolve.solvers import SGD
from structsolve.solvers.driver import drive
from structsolve.solvers.problem import Problem
from structsolve.surrogates import ProbLoss

WEIGHTS = np.array([0, 1, 2, 0.5, 3, 1, 1, 0.1])


def plain(case, solver, alpha, order, w=None, radius=np.inf):
    """Return last iterate and averages after the examples of `order`, one dense step at a time."""
    u = case.problem.weights
    size = case.written[0][0].shape[1]
    inside = np.ones(size, bool) if case.penalized is None else case.penalized
    w = np.zeros(size) if w is None else w.copy()
    t0 = 10 * len(u) if w.any() and not solver.t0 else solver.t0
    sums, mass = {"weighted": 0.0, "uniform": 0.0}, {"weighted": 0.0, "uniform": 0.0}
    for t, i in enumerate(order, 1):
        differences, losses = case.written[i]
        move = len(u) * u[i] * differences[np.argmax(losses - differences @ w)]
        tau = t + t0
        w[inside] = (1 - 1 / tau) * w[inside] + move[inside] / (alpha * tau)
        w[~inside] += move[~inside] / np.sqrt(tau)
        norm = np.linalg.norm(w[inside])
        if norm > radius:
            w[inside] *= radius / norm
        for name, weight in (("weighted", t**solver.power), ("uniform", 1)):
            sums[name] = sums[name] + weight * w
            mass[name] += weight
    return w, {name: sums[name] / mass[name] for name in sums}


@pytest.mark.parametrize("order", ["permutation", "uniform"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"t0": 20.5, "power": 1},
        {"projection": True},
        {"averaging": "uniform", "projection": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("penalize", [True, False])
@pytest.mark.parametrize("kind", ["chain", "edges"])
def test_every_step(kind, penalize, options, order):
    alpha, passes = 0.05, 7
    case = make_case(kind, weights=WEIGHTS, penalize=penalize)
    solver = SGD(order=order, certify_every=1000, **options)
    run = begin(solver, case.problem, alpha, seed=5)
    rng = np.random.default_rng(5)
    n = case.problem.n
    orders = [
        rng.permutation(n) if order == "permutation" else rng.integers(0, n, n)
        for _ in range(passes)
    ]
    radius = np.inf
    if options.get("projection"):
        size = case.written[0][0].shape[1]
        radius = np.sqrt(case.problem.weights @ margins(np.zeros(size), case.written) / alpha)
        best = case.optimum(alpha).w
        assert np.linalg.norm(best if penalize else best[case.penalized]) < radius
    estimates = [run.step()["primal"] for _ in range(passes)]
    w, averages = plain(case, solver, alpha, np.concatenate(orders), radius=radius)
    np.testing.assert_allclose(case.flat(run.loop.last()), w, atol=1e-11)
    np.testing.assert_allclose(
        case.flat(run.loop.averaged()), averages[solver.averaging], atol=1e-11
    )
    assert run.loop.t == n * passes and np.isfinite(estimates).all()
    record = run.certify()
    values = [
        primal(v, case.written, alpha, case.problem.weights, case.penalized)
        for v in (w, averages[solver.averaging], 0 * w)
    ]
    assert record["primal"] == pytest.approx(min(values), rel=1e-12)
    expected = [w, averages[solver.averaging], 0 * w][int(np.argmin(values))]
    np.testing.assert_allclose(case.flat(run.weights()), expected, atol=1e-11)


def test_projection_keeps_the_ball():
    case = make_case(weights=WEIGHTS)
    run = begin(SGD(projection=True, averaging="none"), case.problem, 1e-4)
    assert run.step()["oracle_calls"] == 2 * 8 - 1  # with the sweep at 0; a weight of 0 needs none
    assert np.linalg.norm(run.loop.last()) <= run.radius * (1 + 1e-12)
    far = begin(SGD(averaging="none"), case.problem, 1e-4)
    far.step()
    assert np.linalg.norm(far.loop.last()) > 2 * run.radius


def test_a_small_scale_is_folded_in():
    """Restart from the same w with a scale that the next steps move below the threshold."""
    case = make_case(penalize=False)
    runs = [begin(SGD(), case.problem, 0.1, tol=0) for _ in range(2)]
    for run in runs:
        for _ in range(3):
            run.step()
    meta, arrays = runs[0].state()
    factor = meta["scale"] / 1.01e-6
    meta = {**meta, "scale": meta["scale"] / factor, "scale_sum": meta["scale_sum"] / factor}
    runs[0].restore(meta, {**arrays, "v": arrays["v"] * factor})
    for run in runs:
        run.step()
    assert runs[0].state()[0]["scale"] > 0.5 > runs[1].state()[0]["scale"]
    for a, b in ((r.loop.last(), r.loop.averaged()) for r in runs[1:]):
        np.testing.assert_allclose(runs[0].loop.last(), a, atol=1e-11)
        np.testing.assert_allclose(runs[0].loop.averaged(), b, atol=1e-11)


def test_starts_from_weights():
    case = make_case()
    w = np.random.default_rng(0).normal(size=case.problem.dim)
    layout = case.problem.space.layout
    stored = np.zeros_like(w)
    for block in layout.blocks:
        layout.view(stored, block.name)[...] = layout.view(w, block.name)
    run = begin(SGD(), case.problem, 0.1, seed=2, w=stored)
    run.step()
    order = np.random.default_rng(2).permutation(8)
    expected, _ = plain(case, SGD(), 0.1, order, case.flat(stored))
    np.testing.assert_allclose(case.flat(run.loop.last()), expected, atol=1e-12)


def test_moves_on_to_other_examples():
    """Batch after batch: t, the iterate and its average continue; the best weights start afresh."""
    alpha = 0.05
    batches = [make_case(seed=seed, n=n) for seed, n in ((0, 8), (1, 3), (2, 11))]
    run = begin(SGD(), batches[0].problem, alpha, seed=3)
    joined, order = move_over(run, batches, np.random.default_rng(3))
    last, averages = plain(joined, SGD(), alpha, order)
    np.testing.assert_allclose(joined.flat(run.loop.last()), last, atol=1e-11)
    np.testing.assert_allclose(joined.flat(run.loop.averaged()), averages["weighted"], atol=1e-11)
    assert run.loop.t == 22
    refused("the new examples have .* weights, the run", run.move_to, make_case("edges").problem)


@pytest.mark.parametrize(
    "options",
    [{}, {"averaging": "none"}, {"t0": 30.5}, {"projection": True}, {"certify_every": 3}],
    ids=str,
)
@pytest.mark.parametrize("kind", ["chain", "edges", "ties", "classes"])
def test_the_dual_is_a_bound(kind, options):
    """Dual, optimum and primal are in this order at every pass, and the gap closes."""
    solver = SGD(**{"certify_every": 1, **options})
    for seed, alpha, loss in ((0, 1.0, "hamming"), (1, 0.1, "costs"), (2, 0.01, "zero-one")):
        weights = WEIGHTS if seed else None
        case = make_case(kind, seed=seed, loss=loss, weights=weights)
        best = case.optimum(alpha).value
        w = np.random.default_rng(seed).normal(size=case.problem.dim) if seed == 1 else None
        run = begin(solver, case.problem, alpha, seed=seed, w=w)
        duals, primals = [0.0], []
        for _ in range(60):
            record = run.step()
            if not record["certified"]:
                assert record["dual"] is None and record["gap"] is None
                continue
            assert record["dual"] <= best * (1 + 1e-6) + 1e-9
            assert record["primal"] >= best * (1 - 1e-6)
            assert record["gap"] == record["primal"] - record["dual"]
            duals.append(record["dual"])
            primals.append(record["primal"])
        assert np.diff(duals).min() > -1e-12 and np.diff(primals).max() <= 0
        if alpha == 1.0 and not options.get("projection"):
            assert record["gap"] <= 0.05 * record["primal"]


@pytest.mark.parametrize("kind", ["chain", "classes"])
def test_tol_is_met_where_training_converges(kind):
    for tol in (0.1, 0.01):
        case = make_case(kind, n=12)
        run = begin(SGD(), case.problem, 0.3, tol=tol)
        outcome = drive(run, 3000, tol)
        best = case.optimum(0.3).value
        assert outcome.reason == "converged" and outcome.history[-1]["certified"]
        assert best * (1 - 1e-6) <= outcome.history[-1]["primal"] <= best / (1 - tol)


@pytest.mark.parametrize("how", ["free intercept", "uniform", "not convex"])
def test_without_a_dual_no_row_is_certified(how):
    case = make_case(n=12, penalize=how != "free intercept")
    problem, solver = case.problem, SGD(order="uniform" if how == "uniform" else "permutation")
    if how == "not convex":
        problem = Problem(problem.space, problem.examples, surrogate=ProbLoss(convex=False))
    outcome = drive(begin(solver, problem, 0.3, tol=0.01), 3000, 0.01)
    assert outcome.reason == "settled"
    assert all(r["dual"] is None and not r["certified"] for r in outcome.history)
    if how != "not convex":
        best = case.optimum(0.3).value
        assert best * (1 - 1e-6) <= outcome.history[-1]["primal"] <= best * 1.02
    endless = begin(SGD(order="uniform", patience=1, certify_every=1), case.problem, 0.3, tol=0)
    assert not any(endless.step()["settled"] and not endless.present for _ in range(5))


@pytest.mark.parametrize("alpha", [1e-8, 1e-30])
def test_steps_back_where_zero_weights_are_better(alpha):
    case = make_case(n=12)
    zero = case.problem.primal(np.zeros(case.problem.dim), alpha)[0]
    run = begin(SGD(certify_every=2), case.problem, alpha)
    history = [run.step() for _ in range(200)]
    assert run.weights().any() == (run.best_primal < zero)
    assert history[1]["primal"] == zero and history[1]["stepped_back"]
    assert sum("stepped_back" in r for r in history) < 50
    assert all(r["primal"] <= zero for r in history if r["certified"])
    # Each time steps become a tenth, until they are small enough.
    assert run.best_primal <= run.present <= 1.01 * zero
    assert np.isfinite(run.weights()).all()


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_large_features_are_learned_too(scale):
    """Steps for small features stay above zero weights on large ones for hundreds of passes."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    X = scale * (rng.normal(size=(400, 12)) + 2 * np.eye(12)[y])
    model = StructuredSVM("multiclass", solver="sgd", alpha=1e-3, random_state=0)
    model.fit(X, y)
    exact = StructuredSVM("multiclass", alpha=1e-3).fit(X, y)
    zero = 1.0  # every class but the true one is violated by 1
    assert exact.history_[-1]["dual"] < model.history_[-1]["primal"] < 0.6 * zero
    assert any(row.get("stepped_back") for row in model.history_) == (scale > 1)
    assert model.score(X, y) > exact.score(X, y) - 0.05


def test_after_steps_back_a_run_is_not_settled_at_once():
    """Steps are then tiny, and passes gain little, however far the optimum is."""
    case = make_case("classes", n=2, penalize=False)
    run = begin(SGD(certify_every=1), case.problem, 1e-5, tol=0.01)
    history = [run.step() for _ in range(25)]
    assert any("stepped_back" in r for r in history[:5])
    assert run.best_primal > 5 * case.optimum(1e-5).value
    assert not any(r["settled"] for r in history)


def test_cost_of_a_step_does_not_grow_with_the_features():
    """With a million columns, 20 000 steps would take an hour if each touched all of them."""
    import scipy.sparse as sp

    import structsolve
    from structsolve.solvers.problem import Problem

    rng = np.random.default_rng(0)
    n, d = 1000, 1_000_000
    X = sp.csr_matrix(
        (np.ones(2 * n), rng.integers(0, d, 2 * n), np.arange(0, 2 * n + 1, 2)), shape=(n, d)
    )
    X.sum_duplicates()
    y = rng.integers(0, 2, n)
    items = structsolve.Sequences(X, np.ones(n, int))
    space, _ = structsolve.get_structure("chain").make_space(items, y[:, None])
    run = begin(SGD(certify_every=1000), Problem(space, space.pack(items, y[:, None])), 1e-3)
    for _ in range(20):
        record = run.step()
    assert record["steps"] == 20 * n
