"""CRF, SparseMAP, max-min: values, cuts, and one optimum for all solvers."""

import functools

import numpy as np
import pytest
from checks import refused, same
from reference import fenchel_young as reference
from solver_cases import begin, check_sums
from surrogate_cases import COSTS, MAKERS, SURROGATES, Case, chain, classes

import structsolve
from structsolve import CostMatrix, StructuredSVM
from structsolve.solvers import BCFW, GBCFW, SDCA, SGD, CuttingPlane
from structsolve.solvers.problem import Problem
from structsolve.surrogates import CRF, MaxMin, SparseMAP
from structsolve.surrogates import calls as surrogate_calls

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# Structures without exact marginals have no CRF.
NO_CRF = ("pairs", "ranks", "ranks_hamming", "matchings")
KINDS = [(kind, name) for kind in ("sparsemap", "max-min", "crf") for name in MAKERS
         if not (kind == "crf" and name in NO_CRF)]  # fmt: skip


@functools.cache
def solved(kind, name):
    """Return (case, its optimum at alpha = 0.1): the same for all solvers."""
    case = Case(kind, name)
    return case, case.optimum(0.1)


@pytest.mark.parametrize("kind, name", KINDS)
def test_values_and_cuts(kind, name):
    rng = np.random.default_rng(1)
    case = Case(kind, name)
    surrogate = case.problem.surrogate
    # Mirror prox over assignments is the slowest of all.
    few = 1 if kind == "max-min" and name in ("ranks", "ranks_hamming") else 3
    for i in range(min(case.problem.n, few)):
        thetas = list(case.thetas(i, rng))
        values = [case.value(i, theta) for theta in thetas]
        for theta, value in zip(thetas, values):
            cut = surrogate_calls.cut(surrogate, i, theta, case.truth(i))
            # Mirror prox converges like 1/T; its bounds always hold.
            slack = 1e-6 * (1 + abs(value))
            error = slack if kind != "max-min" or surrogate.exact else 1000 * slack
            assert value - slack <= cut.bound <= value + error
            # The cut touches here, and lies below everywhere.
            touches = cut.b - theta[cut.index] @ cut.value
            assert value - error <= touches <= value + slack
            for other, above in zip(thetas, values):
                assert cut.b - other[cut.index] @ cut.value <= above + 1e-6 * (1 + abs(above))


@pytest.mark.parametrize(
    "kind, name",
    [("crf", "chain"), ("sparsemap", "classes"), ("sparsemap", "chain"), ("sparsemap", "pairs"),
     ("sparsemap", "thresholds"), ("max-min", "loose_chain")],
)  # fmt: skip
def test_cuts_of_any_truth(kind, name):
    """For any label as the truth: values, and its own offsets."""
    rng = np.random.default_rng(3)
    case = Case(kind, name)
    for i in range(3):
        for theta in case.thetas(i, rng):
            case.truths[i] = int(rng.integers(len(case.labels[i])))
            truth = np.ascontiguousarray(case.labels[i][case.truths[i]], dtype=np.int32)
            cut = surrogate_calls.cut(case.problem.surrogate, i, theta, truth)
            value = case.value(i, theta)
            assert cut.bound == pytest.approx(value, abs=1e-6 * (1 + abs(value)))


def test_max_min_without_labels_needs_a_closed_form():
    from dataclasses import replace

    from structsolve.surrogates.task import Task

    for maker, raises in ((classes, False), (chain, True)):
        structure, X, Y, loss = maker(np.random.default_rng(0))
        space, examples = structsolve.get_structure(structure).make_space(X, Y)
        task = Task(space, replace(examples, labels=None), loss)
        if raises:
            refused("needs true labels", MaxMin().bind, task)
        else:
            assert MaxMin().bind(task).exact


@pytest.mark.parametrize("geometry", ["labels", "euclidean"])
@pytest.mark.parametrize("name", ["classes", "ordered", "loose_chain", "sets"])
def test_closed_forms_are_chosen_and_agree_with_searches(name, geometry):
    rng = np.random.default_rng(2)
    closed = Case("max-min", name).problem
    prox = MaxMin(geometry=geometry, max_iter=5000, tol=1e-8, closed_form=False)
    other = Case("max-min", name, surrogate=prox).problem
    assert closed.surrogate.exact and not other.surrogate.exact
    case = Case("max-min", name)
    for i in range(closed.n):
        for theta in case.thetas(i, rng):
            exact, searched = (
                surrogate_calls.cut(closed.surrogate, i, theta, case.truth(i)),
                surrogate_calls.cut(other.surrogate, i, theta, case.truth(i)),
            )
            assert searched.bound >= exact.bound - 1e-9
            assert searched.bound == pytest.approx(exact.bound, abs=1e-3)
            assert searched.b - theta[searched.index] @ searched.value <= exact.bound + 1e-9


SOLVERS = {
    "gbcfw": GBCFW(),
    "harmonic": GBCFW(step="harmonic"),
    "bcfw": BCFW(),
    "pairwise": BCFW(steps="pairwise"),
    "sdca": SDCA(),
    "cutting-plane": CuttingPlane(),
}
# Gaps as a share of the optimum, for solvers whose gap falls like 1/t.
SLOW = {
    ("sparsemap", "harmonic"): 1e-3,
    ("sparsemap", "gbcfw"): 1e-3,
    ("sparsemap", "sdca"): 1e-3,
    ("max-min", "harmonic"): 1e-2,
    ("max-min", "gbcfw"): 5e-3,
    ("crf", "harmonic"): 1e-4,
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "kind, name",
    [("crf", "classes"), ("crf", "chain"), ("crf", "sets"), ("sparsemap", "classes"),
     ("sparsemap", "chain"), ("sparsemap", "pairs"), ("max-min", "classes"),
     ("max-min", "ordered"), ("max-min", "loose_chain"), ("max-min", "sets"),
     ("crf", "thresholds"), ("sparsemap", "thresholds"), ("sparsemap", "ranks"),
     ("sparsemap", "matchings"), ("max-min", "ordinal")],
)  # fmt: skip
def test_every_solver_finds_the_optimum(kind, name, solver):
    if solver == "sdca" and kind == "max-min":
        pytest.skip("refused, see below")
    case, best = solved(kind, name)
    model = StructuredSVM(
        case.structure, surrogate=SURROGATES[kind], loss=case.loss, solver=SOLVERS[solver],
        alpha=0.1, tol=1e-7, max_iter=400,
    ).fit(case.X, case.Y)  # fmt: skip
    last = model.history_[-1]
    tol = SLOW.get((kind, solver), 1e-6)
    assert last["certified"]
    assert last["dual"] <= best + 1e-7
    assert last["primal"] >= best - 1e-7
    assert last["gap"] <= 1.01 * tol * last["primal"]


@pytest.mark.parametrize("geometry", ["labels", "euclidean", "entropy"])
@pytest.mark.parametrize("name", ["chain", "costly", "pairs", "matchings", "thresholds"])
def test_saddle_points_inside_training(name, geometry):
    if geometry == "entropy" and name != "chain":
        pytest.skip("not of all structures, and slower")
    case, best = solved("max-min", name)
    model = StructuredSVM(
        case.structure, surrogate=MaxMin(geometry=geometry, max_iter=200, tol=1e-6),
        loss=case.loss, alpha=0.1, tol=1e-4, max_iter=200,
    ).fit(case.X, case.Y)  # fmt: skip
    last = model.history_[-1]
    assert last["dual"] <= best + 1e-7 and last["primal"] >= best - 1e-7
    assert last["gap"] <= 2e-3 * last["primal"]
    assert 1 <= last["calls_per_search"] <= 200


@pytest.mark.parametrize(
    "kind, name, solver",
    [("crf", "chain", "gbcfw"), ("sparsemap", "chain", "gbcfw"),
     ("max-min", "loose_chain", "gbcfw"), ("crf", "many_classes", "sdca"),
     ("sparsemap", "many_classes", "sdca"),
     ("crf", "chain", "sdca"), ("sparsemap", "ranks", "sdca")],
)  # fmt: skip
def test_the_dual_never_falls(kind, name, solver):
    case = Case(kind, name, seed=3)
    step = "search" if solver == "gbcfw" else "curvature"
    run = begin((GBCFW if solver == "gbcfw" else SDCA)(averaging=False), case.problem, 0.05)
    before = run.dual
    for _ in range(30):
        for i in range(case.problem.n):
            run.loop.run(np.array([i]), step, 0, False)
            assert run.dual >= before - 1e-12
            before = run.dual
    check_sums(run, atol=1e-10)


def test_the_average_is_that_of_the_iterates():
    case = Case("crf", "chain")
    run = begin(GBCFW(), case.problem, 0.05)
    total, mass = 0, 0
    for t in range(1, 20):
        run.loop.run(np.array([t % case.problem.n]), "search", 0, True)
        total, mass = total + t * run.loop.w, mass + t
    average = run.loop.w - run.loop.average / run.loop.average_mass
    np.testing.assert_allclose(average, total / mass, atol=1e-12)


def test_steps_of_mirror_prox_over_an_inexact_projection_stay_long():
    """An inexact projection is no sign that a step was too long."""
    surrogate = MaxMin(geometry="euclidean", max_iter=200, tol=0)
    case = Case("max-min", "ranks_hamming", surrogate=surrogate)
    rng = np.random.default_rng(1)
    surrogate = case.problem.surrogate
    for i in range(case.problem.n):
        for theta in case.thetas(i, rng):
            surrogate_calls.cut(surrogate, i, theta, case.truth(i))
            assert surrogate.memory_of_examples()["steps"][i] > 0.05


@pytest.mark.parametrize("geometry", ["entropy", "euclidean"])
def test_mirror_prox_gains_by_its_last_answer_while_scores_move(geometry):
    gaps = {}
    for warm in (True, False):
        surrogate = MaxMin(geometry=geometry, max_iter=20, tol=0, warm_start=warm)
        case, gaps[warm] = Case("max-min", "chain", surrogate=surrogate), 0.0
        rng = np.random.default_rng(0)
        for i in range(case.problem.n):
            for theta in case.thetas(i, rng):
                for _ in range(10):
                    theta = theta + 0.05 * rng.normal(size=theta.size)
                    answer = surrogate_calls.cut(case.problem.surrogate, i, theta, case.truth(i))
                    value = answer.b - theta[answer.index] @ answer.value
                    gaps[warm] += answer.bound - value
    assert gaps[True] < 0.7 * gaps[False]


@pytest.mark.parametrize("geometry", ["labels", "euclidean"])
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-7, 2.0**20])
def test_the_unit_of_a_loss_does_not_matter(unit, geometry):
    def changed(rng):
        return *classes(rng)[:3], CostMatrix(unit * COSTS)

    MAKERS["changed"] = changed
    surrogate = MaxMin(geometry=geometry, max_iter=20)
    rng = np.random.default_rng(0)
    one = Case("max-min", "costly", surrogate=surrogate)
    try:
        other = Case("max-min", "changed", surrogate=surrogate)
    finally:
        del MAKERS["changed"]
    for i in range(3):
        for theta in one.thetas(i, rng):
            expected = surrogate_calls.cut(one.problem.surrogate, i, theta, one.truth(i))
            scaled = surrogate_calls.cut(other.problem.surrogate, i, unit * theta, one.truth(i))
            assert scaled.bound == pytest.approx(unit * expected.bound, rel=1e-12)
            assert scaled.b == pytest.approx(unit * expected.b, rel=1e-12)


@pytest.mark.parametrize("gram", [True, False])
def test_gram_matrices_or_none(gram):
    structure, X, Y, loss = chain(np.random.default_rng(0))
    problem = Problem(
        *structsolve.get_structure(structure).make_space(X, Y), loss, "crf", gram=gram
    )
    run = begin(GBCFW(), problem, 0.1)
    for _ in range(60):
        run.step()
    record = run.certify()
    assert record["gap"] <= 1e-6


def test_a_third_witness():
    """scipy's L-BFGS on the enumerated conditional likelihood."""
    from scipy.optimize import minimize

    case = Case("crf", "chain", seed=5)
    features, alpha = case.features(), 0.05

    def objective(w):
        value, slope = alpha / 2 * w @ w, alpha * w
        for F, truth in zip(features, case.truths):
            scores = (F - F[truth]) @ w
            p = np.exp(scores - reference.crf_value(scores))
            value += reference.crf_value(scores) / len(features)
            slope = slope + (p @ F - F[truth]) / len(features)
        return value, slope

    best = minimize(objective, np.zeros(features[0].shape[1]), jac=True, method="L-BFGS-B",
                    options={"ftol": 1e-14, "gtol": 1e-10})  # fmt: skip
    for solver in (GBCFW(), SDCA(), BCFW(), CuttingPlane()):
        model = StructuredSVM(
            "chain", surrogate="crf", solver=solver, alpha=alpha, tol=1e-8, max_iter=500
        ).fit(case.X, case.Y)
        assert model.history_[-1]["primal"] == pytest.approx(best.fun, rel=1e-7)


@pytest.mark.parametrize(
    "surrogate",
    [CRF(), SparseMAP(), MaxMin(max_iter=20), MaxMin(geometry="euclidean", max_iter=20)],
)
def test_jobs_and_repetition_change_nothing(surrogate):
    _, X, Y, _ = chain(np.random.default_rng(4))
    X, Y = X * 5, Y * 5
    settings = {"surrogate": surrogate, "alpha": 0.1, "tol": 1e-3, "max_iter": 12}
    one = StructuredSVM("chain", **settings).fit(X, Y)
    for other in (StructuredSVM("chain", **settings).fit(X, Y), one.fit(X, Y),
                  StructuredSVM("chain", n_jobs=2, **settings).fit(X, Y)):  # fmt: skip
        same(dict(other.coef_), dict(one.coef_))


@pytest.mark.parametrize(
    "surrogate", [CRF(), MaxMin(max_iter=5), MaxMin(geometry="euclidean", max_iter=5)]
)
@pytest.mark.parametrize("solver", [GBCFW(), GBCFW(step="harmonic")])
def test_checkpoints_continue_bit_for_bit(tmp_path, surrogate, solver):
    _, X, Y, _ = chain(np.random.default_rng(4))
    settings = {"surrogate": surrogate, "solver": solver, "alpha": 0.01, "tol": 0.0}
    whole = StructuredSVM("chain", max_iter=8, **settings).fit(X, Y)
    path = tmp_path / "c.checkpoint"
    stop = [lambda record: record["pass"] == 3]
    StructuredSVM("chain", max_iter=8, checkpoint=path, callbacks=stop, **settings).fit(X, Y)
    again = StructuredSVM("chain", max_iter=8, checkpoint=path, **settings).fit(X, Y)
    np.testing.assert_array_equal(again.coef_["node"], whole.coef_["node"])
    assert [r["dual"] for r in again.history_] == [r["dual"] for r in whole.history_]


@pytest.mark.parametrize(
    "surrogate, settings, message",
    [
        ("max-min", {"loss": "zero-one"}, "linear in the parts of either label"),
        ("max-min", {"solver": "sdca"}, "strongly concave G"),
        ("margin", {"solver": "gbcfw"}, "made of a projection"),
        ("margin", {"solver": "sdca"}, "made of a projection"),
        (MaxMin(geometry="flat"), {}, "geometry is 'flat'"),
        (MaxMin(max_iter=0), {}, "max_iter is 0"),
        (MaxMin(tol=1), {}, "tol is 1"),
        (MaxMin(max_iter=1.5), {}, "max_iter is 1.5, expected an integer"),
        (MaxMin(max_iter="a"), {"structure": "closed"}, "max_iter is 'a', expected an integer"),
        (MaxMin(tol=np.nan), {"structure": "closed"}, "tol is nan"),
        (SparseMAP(max_iter=0), {}, "max_iter is 0"),
        (SparseMAP(tol="a"), {}, "tol is 'a'"),
        (CRF(), {"solver": GBCFW(step="long")}, "step is 'long'"),
        (CRF(), {"solver": GBCFW(certify_every=0)}, "certify_every is 0"),
        (CRF(), {"solver": SDCA(sampling="none")}, "sampling is 'none'"),
    ],
)
def test_refusals(surrogate, settings, message):
    rng = np.random.default_rng(0)
    settings = dict(settings)
    structure = settings.pop("structure", "chain")
    X, Y = chain(rng)[1:3]
    if structure == "closed":
        structure, X, Y = classes(rng)[:3]
    refused(message, StructuredSVM(structure, surrogate=surrogate, **settings).fit, X, Y)


def test_zero_one_loss_of_classes_has_a_max_min_margin():
    structure, X, y, _ = classes(np.random.default_rng(0))
    fit = [StructuredSVM(structure, surrogate="max-min", loss=loss, alpha=0.1).fit(X, y)
           for loss in ("zero-one", "hamming")]  # fmt: skip
    assert fit[0].history_[-1]["primal"] == fit[1].history_[-1]["primal"]
    assert fit[0].score(X, y) == fit[1].score(X, y)
    assert fit[0].score(X, y + 7) == 0


def test_sgd_takes_them_too():
    case = Case("crf", "classes")
    settings = {"alpha": 0.1, "tol": 1e-3, "max_iter": 300}
    model = StructuredSVM("multiclass", surrogate="crf", solver=SGD(), **settings)
    best = case.optimum(0.1)
    model.fit(case.X, case.Y)
    assert model.history_[-1]["primal"] == pytest.approx(best, rel=1e-3)
