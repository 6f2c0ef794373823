"""Cutting planes: constraints on the weights, dropped cuts, free weights, threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from constraint_cases import CONSTRAINTS, rows_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference.objectives import primal
from solver_cases import LOSSES, begin, check_rising, follow, make_case, through_file

from structsolve import StructuredSVM
from structsolve.solvers import CuttingPlane, LinearConstraint, WeightBounds, qp, qp_forms
from structsolve.solvers.passes import subgradient
from structsolve.solvers.run import contradicts

BOTH = pytest.mark.parametrize("slack", ["one", "n"])


@BOTH
@pytest.mark.parametrize("penalize", [True, False])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_linear_constraints(name, penalize, slack):
    alpha = 0.02
    case = make_case(seed=4, n=10, penalize=penalize)
    A, b = rows_of(case, CONSTRAINTS[name])
    best = case.optimum(alpha, A=A, b=b)
    assert best.value > case.optimum(alpha).value * (1 + 1e-6)
    run = begin(CuttingPlane(slack, constraints=CONSTRAINTS[name]), case.problem, alpha)
    history = follow(run, passes=500)
    assert history[-1]["gap"] <= 1e-8 * history[-1]["primal"]
    w = case.flat(run.weights())
    assert (A @ w <= b + 1e-8).all()
    value = primal(w, case.written, alpha, None, case.penalized)
    assert value == pytest.approx(best.value, rel=1e-6)
    assert all(r["dual"] <= best.value * (1 + 1e-8) for r in history)


@BOTH
def test_constraints_that_do_not_bind_change_nothing(slack):
    case = make_case()
    run = begin(CuttingPlane(slack, constraints=WeightBounds("node", -99, 99)), case.problem, 0.05)
    follow(run)
    assert run.best_primal == pytest.approx(case.optimum(0.05).value, rel=1e-7)


@BOTH
def test_contradictions_and_mistakes(slack):
    problem = make_case(n=3).problem

    def refuse(constraints, error, message):
        with pytest.raises(error, match=message):
            begin(CuttingPlane(slack, constraints=constraints), problem, 0.1).step()

    refuse(
        [WeightBounds("start", lower=1), LinearConstraint({"start": [1, 0, 0]}, upper=0)],
        ValueError,
        "constraints contradict each other",
    )
    refuse([WeightBounds("start", lower=2, upper=1)], ValueError, "expected lower <= upper")
    refuse([WeightBounds("begin", lower=2)], ValueError, "unknown block 'begin'; known: .*'start'")
    refuse([WeightBounds("start", lower=1j)], ValueError, "lower: found no array of numbers")
    refuse([WeightBounds("start", lower=[1, 2])], ValueError, r"lower has shape \(2,\), expected")
    refuse([WeightBounds("start", lower=np.nan)], ValueError, "lower has NaN or inf")
    refuse([LinearConstraint({"start": [1, 2]}, 0)], ValueError, r"expected \(3,\), or \(rows, 3\)")
    refuse([LinearConstraint({"start": sp.eye(4)}, 0)], ValueError, "4 columns, expected 3")
    refuse(
        [LinearConstraint({"start": np.eye(3), "end": np.ones(3)}, 0)],
        ValueError,
        "different numbers of rows",
    )
    refuse([LinearConstraint({}, 0)], ValueError, "expected a dict of block name")
    refuse([LinearConstraint({"start": np.zeros(3)}, -1)], ValueError, "without coefficients")
    refuse([np.eye(3)], TypeError, "expected LinearConstraint or WeightBounds")


def test_constraints_have_telling_names_and_can_be_cloned():
    from sklearn.base import clone

    a, b = (LinearConstraint({"node": np.full(3, v)}, upper=np.ones(2000)) for v in (1.0, 2.0))
    assert repr(a) == repr(clone(a)) != repr(b)
    solver = CuttingPlane(constraints=[a, WeightBounds("end", lower=0)])
    assert repr(clone(solver)) == repr(solver) and "lower=0" in repr(solver)


@BOTH
def test_every_cut_holds_everywhere(slack):
    """Cuts and duals are lower bounds of the objective at any w."""
    case = make_case("ties", loss="costs")
    run = begin(CuttingPlane(slack), case.problem, 0.05)
    follow(run, passes=15)
    rng = np.random.default_rng(0)
    layout = case.problem.space.layout
    for _ in range(20):
        w = np.zeros(case.problem.dim)
        for name in case.blocks:
            view = layout.view(w, name)
            view[...] = rng.normal(size=view.shape)
        model = run.model()
        mean = primal(case.flat(w), case.written, 0.0)
        assert float(model.caps @ model.slacks(w)) <= mean + 1e-12
        assert run.best_dual <= mean + 0.025 * w @ w + 1e-12


@settings(max_examples=40, deadline=None)
@example(3647, "classes", "hamming", False, 10.0, "one", None, None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["chain", "ties", "edges", "classes"]),
    loss=st.sampled_from(list(LOSSES)),
    penalize=st.booleans(),
    alpha=st.sampled_from([10.0, 0.5, 0.05, 1e-3]),
    slack=st.sampled_from(["one", "n"]),
    step=st.sampled_from([None, 1.0, 0.5, 0.1]),
    inactive=st.sampled_from([None, 1, 3]),
)
def test_whatever_the_parameters(seed, kind, loss, penalize, alpha, slack, step, inactive):
    case = make_case(kind, seed, n=5, loss=loss, penalize=penalize)
    best = case.optimum(alpha)
    run = begin(CuttingPlane(slack, step, inactive), case.problem, alpha)
    history = follow(run, tol=1e-6, passes=1500)
    scale = max(best.value, 1e-9)
    assert history[-1]["gap"] <= 1e-6 * max(history[-1]["primal"], 1e-9)
    # The reference is solved to 1e-11, which matters if the optimum is 0.
    assert best.dual_value - 1e-7 * scale - 1e-11 <= run.best_primal <= best.value + 1e-6 * scale
    assert all(r["dual"] <= best.value + 1e-7 * scale for r in history)
    check_rising(history, 1e-12 * scale)


def test_cuts_are_dropped():
    case = make_case(n=30)
    sizes = {}
    for inactive in (2, 10_000):
        run = begin(CuttingPlane(inactive=inactive), case.problem, 0.01)
        history = follow(run, tol=1e-6)
        assert history[-1]["gap"] <= 1e-6 * history[-1]["primal"]
        sizes[inactive] = max(r["cuts"] for r in history), len(history)
    assert sizes[2][0] < sizes[10_000][0] == sizes[10_000][1]


def test_free_weights_beyond_the_first_box():
    """A bias of about -1000 is needed, 100 times the first box; the box leaves no trace."""
    from structsolve import CostMatrix, Problem, get_structure

    x = np.array([[1000.0], [1001.0], [1002.0], [1003.0]])
    y = [[0], [0], [1], [1]]
    structure = get_structure("chain", transitions=False, start_end=False)
    space, examples = structure.make_space(x[:, None], y)
    problem = Problem(space, examples, penalize_intercept=False, loss=CostMatrix([[0, 3], [3, 0]]))
    for slack in ("one", "n"):
        run = begin(CuttingPlane(slack), problem, 1e-4)
        history = follow(run, tol=1e-6)
        assert history[-1]["gap"] <= 1e-6 * history[-1]["primal"]
        # Between the two classes: the margin of 3 is met at 1001 and at 1002.
        w = space.layout.view(run.weights(), "node")
        np.testing.assert_allclose(w[0], [-3, 3], rtol=1e-3)
        assert w[1, 0] - w[1, 1] == pytest.approx(6 * 1001.5, rel=1e-3)
        assert run.best_primal == pytest.approx(1e-4 / 2 * 18, rel=1e-6)


@BOTH
def test_zero_is_optimal(slack):
    """Nothing to learn: all losses are zero, or alpha is very large."""
    run = begin(CuttingPlane(slack), make_case("classes", n=2, seed=3).problem, 1e9)
    assert follow(run)[-1]["gap"] <= 1e-8 * run.best_primal
    from structsolve import CostMatrix, Problem, get_structure

    structure = get_structure("chain")
    X, Y = [np.ones((2, 1))], [[0, 1]]
    run = begin(
        CuttingPlane(slack), Problem(*structure.make_space(X, Y), CostMatrix(np.zeros((2, 2)))), 0.1
    )
    record = run.step()
    assert record["primal"] == record["dual"] == record["gap"] == 0 and not run.weights().any()


@pytest.mark.parametrize("slack", ["one", "n"])
@pytest.mark.parametrize("surrogate", ["margin", "slack", "beta:0.5"])
@pytest.mark.parametrize("on", [[0, 0, 0], [1, 0, 1]])
def test_free_intercepts_that_decide_all_labels_converge(slack, surrogate, on):
    """The optimum is 0: there is no gap relative to it."""
    X, Y = np.random.default_rng(0).normal(size=(7, 3)), np.tile(on, (7, 1))
    settings = {"solver": CuttingPlane(slack=slack), "penalize_intercept": False, "alpha": 0.01}
    model = StructuredSVM("multilabel", surrogate=surrogate, **settings).fit(X, Y)
    last = model.history_[-1]
    assert model.stop_reason_ == "converged" and last["certified"] and last["primal"] < 1e-12


def test_threads_add_up_to_the_same_bits():
    case = make_case(n=300)
    w = np.random.default_rng(0).normal(size=case.problem.dim)
    g, b, bounds, calls = subgradient(case.problem, w, 1)
    for jobs in (2, 5):
        again = subgradient(case.problem, w, jobs)
        np.testing.assert_array_equal(again[0], g)
        np.testing.assert_array_equal(again[2], bounds)
        assert again[1] == b and again[3] == calls == 300
    weights = []
    for jobs in (1, 2):
        for slack in ("one", "n"):
            run = begin(CuttingPlane(slack), case.problem, 0.05, n_jobs=jobs)
            follow(run, passes=8)
            weights.append(run.weights())
    np.testing.assert_array_equal(weights[0], weights[2])
    np.testing.assert_array_equal(weights[1], weights[3])


def test_records_say_what_was_done():
    case = make_case()
    run = begin(CuttingPlane("n"), case.problem, 0.05)
    record = run.step()
    assert record["oracle_calls"] == 8 and record["cuts"] <= 8 and record["certified"]
    assert (
        record["qp_seconds"] >= 0
        and record["primal"] == case.problem.primal(np.zeros(case.problem.dim), 0.05)[0]
    )
    assert run.certify()["oracle_calls"] == 0
    assert run.certify()["gap"] == record["gap"]


def test_in_the_estimator():
    from structsolve import StructuredSVM

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 2)) for _ in range(20)]
    Y = [["ab"[int(v > 0)] for v in x[:, 0]] for x in X]
    solver = CuttingPlane(constraints=[WeightBounds("transition", 0, 0)])
    model = StructuredSVM("chain", solver=solver, alpha=0.01, tol=1e-5).fit(X, Y)
    assert np.abs(model.coef_["transition"]).max() <= 1e-9
    assert (
        model.score(X, Y) > 0.9 and model.history_[-1]["gap"] <= 1e-5 * model.history_[-1]["primal"]
    )
    assert isinstance(qp.Contradiction("x"), ValueError)


def wide_problem(n=24, length=3, features=40, classes=4, seed=0):
    """Many normal features and few sequences, which are separable; above 100 columns."""
    from structsolve import Problem, get_structure

    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, features)) for _ in range(n)]
    W = rng.normal(size=(features, classes))
    Y = [np.argmax(x @ W, 1) for x in X]
    return Problem(*get_structure("chain").make_space(X, Y))


BOUNDS = WeightBounds("transition", 0, 0.05)


def out_of_bounds(problem, w):
    table = problem.space.layout.view(w, "transition")
    return max(-table.min(), table.max() - 0.05)


@pytest.mark.parametrize("constraints", [None, BOUNDS], ids=["free", "bounds"])
@pytest.mark.parametrize("n, length, groups", [(24, 3, 24), (90, 2, 90)])
def test_one_slack_splits_the_mean_where_one_cut_per_pass_is_too_few(
    n, length, groups, constraints
):
    """Separable sequences: their mean has kinks in more directions than there are passes."""
    problem = wide_problem(n, length)
    run = begin(CuttingPlane("one", constraints=constraints), problem, 0.003, tol=1e-3)
    history = follow(run, tol=1e-3, passes=80)
    assert history[-1]["gap"] <= 1e-3 * history[-1]["primal"]
    seen = [record["groups"] for record in history]
    # Thirty passes show how fast the gap falls; later ones have cuts of each group.
    assert seen == sorted(seen) and set(seen) == {1, groups} and seen.count(1) > 30
    assert all(record["oracle_calls"] == n for record in history)
    best = begin(CuttingPlane("n", constraints=constraints), problem, 0.003, tol=1e-8)
    best = follow(best, tol=1e-8)[-1]["primal"]
    assert all(record["dual"] <= best * (1 + 1e-8) for record in history)
    assert best * (1 - 1e-8) <= history[-1]["primal"] <= best * (1 + 1e-3)
    if constraints is not None:
        assert out_of_bounds(problem, run.weights()) <= 1e-9


def test_a_mean_in_groups_continues_from_a_checkpoint(tmp_path):
    problem, solver = wide_problem(), CuttingPlane("one", constraints=BOUNDS)
    ends = []
    for stop in (None, 12, 51, 54):
        run = begin(solver, problem, 0.003, tol=1e-3)
        for k in range(56):
            if k == stop:
                run = through_file(run, begin(solver, problem, 0.003, tol=1e-3), tmp_path / "c")
            last = run.step()
        ends.append((last["primal"], last["dual"], last["groups"], last["cuts"]))
    assert ends[0][2] == 24 and len(set(ends)) == 1


def test_a_mean_in_groups_is_the_same_in_threads():
    problem, ends = wide_problem(90, 2), []
    for jobs in (1, 3):
        run = begin(CuttingPlane("one"), problem, 0.003, tol=1e-3, n_jobs=jobs)
        assert follow(run, passes=44)[-1]["groups"] == 90
        ends.append(run.next)
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("penalize", [True, False])
def test_the_gram_matrix_kept_is_that_of_constraints_and_cuts(penalize):
    """This form solves programs above 100 columns: a wrong sign makes weights leave bounds."""
    problem = wide_problem(n=6)
    problem.penalty = None
    if not penalize:
        problem.penalty = np.ones(problem.dim)
        problem.space.layout.view(problem.penalty, "node")[-1] = 0
    run = begin(CuttingPlane("one", inactive=3, constraints=BOUNDS), problem, 0.01)
    for k in range(12):
        run.step()
        if k == 8:
            run._split()
        model = run.model()
        rows = np.vstack([-model.A.toarray(), model.cuts])
        rows[:, model.free] = 0
        np.testing.assert_allclose(model.gram, rows @ rows.T, atol=1e-12)
        assert problem.dim > qp_forms.FEW_COLUMNS
        # The program's tolerance, relative to weights of size 4.
        assert out_of_bounds(problem, run.w) <= 1e-7
        assert out_of_bounds(problem, run.weights()) <= 1e-7
    assert len(model.b) > 3 and np.abs(model.gram[: model.rows, model.rows :]).max() > 1e-3


def test_a_dual_above_the_primal_is_told():
    run = begin(CuttingPlane(), make_case().problem, 0.05)
    run.step()
    run.best_dual = run.best_primal * (1 + 1e-9)
    assert run.certify()["gap"] == 0
    run.best_dual = 1.5 * run.best_primal
    assert contradicts(run.certify())


def test_the_next_point_lies_a_share_of_the_way_to_the_minimiser_of_the_model():
    run = begin(CuttingPlane(step=0.3), make_case().problem, 0.05)
    went = 0
    for _ in range(8):
        run.step()
        assert run.best_w.shape == run.w.shape
        if np.array_equal(run.next, run.w):
            continue  # the model held at its minimiser already
        np.testing.assert_allclose(run.next, 0.7 * run.best_w + 0.3 * run.w, atol=1e-15)
        went += np.abs(run.best_w - run.w).max() > 1e-3
    assert went >= 5


@pytest.mark.parametrize(
    ("structure", "alpha", "quick"), [("multiclass", 0.01, 0.2), ("multilabel", 1.0, 1.0)]
)
def test_the_default_step_is_about_as_quick_as_the_better_fixed_one(structure, alpha, quick):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    Y = X @ rng.normal(size=(6, 5)) + 0.5 * rng.normal(size=(150, 5))
    Y = (Y > 0).astype(int) if structure == "multilabel" else Y.argmax(axis=1)
    passes = {}
    for step in (None, 0.2, 1.0):
        solver = CuttingPlane(step=step)
        settings = {"loss": "hamming", "tol": 1e-3, "max_iter": 500}
        model = StructuredSVM(structure, alpha=alpha, solver=solver, **settings)
        passes[step] = model.fit(X, Y).n_iter_
        assert model.stop_reason_ == "converged"
    slow = {0.2: 1.0, 1.0: 0.2}[quick]
    assert 1.2 * passes[quick] < passes[slow], passes
    assert passes[None] <= 1.1 * passes[quick], passes


def test_the_step_follows_what_the_model_promised():
    run = begin(CuttingPlane(), make_case().problem, 0.05)
    for fall, promised, share in [
        (1.0, 1.1, 0.3),
        (1.0, 5.0, 0.3),  # less than promised, but a fall
        (2.0, 1.0, 0.45),
        (0.8, 1.0, 0.675),
        (0.8, 1.0, 1.0),
        (0.8, 1.0, 1.0),
        (0.0, 1.0, 0.2),
        (0.8, 1.0, 0.3),
        (-3.0, 1.0, 0.2),
        (-1.0, 0.0, 0.2),
    ]:
        run._adapt_step(fall, promised)
        assert run.share == pytest.approx(share)
    for fixed in (CuttingPlane(step=0.2), CuttingPlane("n")):
        run = begin(fixed, make_case().problem, 0.05)
        before = run.share
        follow(run, passes=5)
        assert run.share == before
