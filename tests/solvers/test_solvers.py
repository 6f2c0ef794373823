"""All solvers: one optimum, that of a general solver on the explicit problem; certificates."""

import re

import numpy as np
import pytest
from checks import refused
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference.objectives import primal
from solver_cases import LOSSES, begin, check, check_sums, follow, make_case, through_file

from structsolve import StructuredSVM
from structsolve.potentials.linear import LinearPotentials
from structsolve.solvers import BCFW, SGD, CuttingPlane

WEIGHTS = np.array([0, 1, 2, 0.5, 3, 1, 1, 0.1])
EXACT = {
    "bcfw": BCFW(),
    "bcfw-uniform": BCFW(sampling="uniform"),
    "bcfw-gap": BCFW(sampling="gap", averaging=False),
    "one-slack": CuttingPlane("one"),
    "n-slack": CuttingPlane("n"),
}


@pytest.mark.parametrize("alpha", [0.3, 0.01])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["chain", "ties", "edges", "classes"])
def test_one_optimum(kind, loss, weights, alpha):
    case = make_case(kind, loss=loss, weights=weights)
    best = case.optimum(alpha)
    assert best.value == pytest.approx(best.dual_value, rel=1e-8)
    for solver in EXACT.values():
        run = begin(solver, case.problem, alpha)
        check(case, run, follow(run), best, alpha)


@pytest.mark.parametrize("alpha", [0.3, 0.01])
@pytest.mark.parametrize("kind", ["chain", "ties", "classes"])
def test_unpenalised_intercept(kind, alpha):
    case = make_case(kind, weights=WEIGHTS, penalize=False)
    best = case.optimum(alpha)
    assert best.value < make_case(kind, weights=WEIGHTS).optimum(alpha).value
    for slack in ("one", "n"):
        run = begin(CuttingPlane(slack), case.problem, alpha)
        check(case, run, follow(run), best, alpha)
    refused("unpenalised; use solver='sgd' or 'cutting-plane'", begin, BCFW(), case.problem, alpha)


@pytest.mark.parametrize(
    "kind, loss, alpha, passes",
    [
        ("chain", "hamming", 1.0, 40_000),
        ("ties", "costs", 1.0, 40_000),
        ("edges", "zero-one", 3.0, 50_000),
        ("classes", "hamming", 1.0, 40_000),
    ],
)
def test_sgd_reaches_it_too(kind, loss, alpha, passes):
    """Its error falls like 1 / (alpha t), not faster: this many steps reach 1e-6."""
    case = make_case(kind, n=12, loss=loss, seed=1)
    best = case.optimum(alpha)
    run = begin(SGD(certify_every=10**6), case.problem, alpha)
    for _ in range(passes):
        record = run.step()
    assert record["dual"] is None and record["gap"] is None and not record["certified"]
    record = run.certify()
    value = primal(case.flat(run.weights()), case.written, alpha)
    assert record["dual"] <= best.value * (1 + 1e-9)
    assert record["certified"] and record["primal"] == pytest.approx(value, rel=1e-9)
    assert best.value * (1 - 1e-9) <= value <= best.value * (1 + 1e-6)


@pytest.mark.parametrize("averaging", ["weighted", "uniform", "none"])
def test_sgd_comes_near_where_regularisation_is_weak(averaging):
    case = make_case(weights=WEIGHTS)
    run = begin(SGD(averaging=averaging), case.problem, 0.01, tol=0)
    history = follow(run, passes=8000)
    best = case.optimum(0.01).value
    assert best * (1 - 1e-9) <= history[-1]["primal"] <= best * 1.01
    certified = [record["primal"] for record in history if record["certified"]]
    assert len(certified) == 1600 and certified == sorted(certified, reverse=True)


@pytest.mark.parametrize("kind", ["chain", "ties", "edges"])
def test_kept_gram_matrices_change_nothing(kind):
    """Products of cuts from the features themselves, and from Gram matrices of the nodes."""
    case = make_case(kind, n=6)
    problem, given = case.problem, case.problem.examples
    ends = []
    for budget in (0, 10**6):
        problem.potentials = LinearPotentials(given, problem.space.layout, budget)
        assert problem.potentials.has_gram == (budget > 0)
        # Blocks are solved to the end, since on the way rounding decides between equal slopes.
        loop = begin(BCFW(steps="pairwise"), problem, 0.05).loop
        for _ in range(6):
            loop.run(np.arange(problem.n), 1, inner_tol=0.0, max_steps=20_000)
        ends.append(loop.w.copy())
    assert ends[0].any()
    np.testing.assert_allclose(*ends, atol=1e-12)


def test_dual_of_bcfw_never_falls():
    for sampling in ("permutation", "uniform", "gap"):
        run = begin(BCFW(sampling=sampling, certify_every=3), make_case("ties").problem, 0.02)
        duals = []
        for _ in range(60):
            run.step()
            duals.append(run.dual)
        assert all(b >= a - 1e-13 for a, b in zip(duals, duals[1:]))


@example(
    seed=188,
    kind="edges",
    loss="hamming",
    steps="frank-wolfe",
    sampling="permutation",
    max_cuts=2,
    max_age=0,
    max_steps=1,
    cached_passes=0,
    averaging=False,
    alpha=0.05,
)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["chain", "ties", "edges", "classes"]),
    loss=st.sampled_from(list(LOSSES)),
    steps=st.sampled_from(["pairwise", "frank-wolfe"]),
    sampling=st.sampled_from(["permutation", "uniform", "gap"]),
    max_cuts=st.sampled_from([2, 3, 50]),
    max_age=st.sampled_from([0, 1, 10]),
    max_steps=st.sampled_from([1, 5, 100]),
    cached_passes=st.sampled_from([0, 3, 10]),
    averaging=st.booleans(),
    alpha=st.sampled_from([0.5, 0.05]),
)
def test_bcfw_whatever_it_keeps(seed, kind, loss, alpha, **options):
    """Small caches, Frank-Wolfe steps, any order: the dual rises to the optimum."""
    case = make_case(kind, seed, n=5, loss=loss)
    best = case.optimum(alpha).value
    run = begin(BCFW(certify_every=7, **options), case.problem, alpha, seed)
    # Steps towards single cuts, and caches that forget, converge like 1 / t.
    slow = options["max_cuts"] < 50 or options["steps"] == "frank-wolfe"
    tol = 1e-2 if slow else 2e-3
    history = follow(run, tol=tol, passes=20_000 if slow else 4000)
    last = history[-1]
    assert last["certified"] and last["gap"] <= tol * last["primal"]
    duals = [record["dual"] for record in history]
    assert all(b >= a - 1e-12 for a, b in zip(duals, duals[1:]))
    assert duals[-1] <= best * (1 + 1e-9) and best * (1 - 1e-9) <= last["primal"] <= best * (
        1 + tol
    )
    check_sums(run, atol=1e-11)


def test_long_chain_of_two_states_in_bcfw():
    """Sums over a cut pass through zero repeatedly: entries are not listed twice."""
    import structsolve
    from structsolve.solvers.problem import Problem

    length = 300
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 1)) for _ in range(3)]
    Y = [np.arange(length) % 2, 1 - np.arange(length) % 2, rng.integers(0, 2, length)]
    problem = Problem(*structsolve.get_structure("chain").make_space(X, Y))
    run = begin(BCFW(max_cuts=2), problem, 10.0)
    follow(run, passes=10)
    check_sums(run, atol=1e-11)


ALL = {
    **EXACT,
    "sgd": SGD(certify_every=3),
    "sgd-projected": SGD("uniform", projection=True),
    "frank-wolfe": BCFW("frank-wolfe", max_cuts=3, max_age=1),
}


@pytest.mark.parametrize("name", ALL)
def test_checkpoint_continues_bit_for_bit(name, tmp_path):
    solver, alpha = ALL[name], 0.02
    case = make_case("ties", n=12)
    plain = begin(solver, case.problem, alpha, tol=0)
    whole = [plain.step() for _ in range(14)]
    for stop in (0, 1, 6, 9):
        run = begin(solver, case.problem, alpha, tol=0)
        parts = [run.step() for _ in range(stop)]
        fresh = begin(solver, make_case("ties", n=12).problem, alpha, seed=99, tol=0)
        run = through_file(run, fresh, tmp_path / "checkpoint")
        parts += [run.step() for _ in range(14 - stop)]
        np.testing.assert_array_equal(run.weights(), plain.weights())
        for a, b in zip(whole, parts):
            assert {k: v for k, v in a.items() if k != "qp_seconds"} == {
                k: v for k, v in b.items() if k != "qp_seconds"
            }


@pytest.mark.parametrize("name", ALL)
def test_same_twice_and_in_threads(name):
    case = make_case("chain", n=20)
    runs = [begin(ALL[name], case.problem, 0.05, n_jobs=jobs) for jobs in (1, 1, 2, 3)]
    for run in runs:
        follow(run, passes=12)
        np.testing.assert_array_equal(run.weights(), runs[0].weights())


def test_a_path_over_alpha():
    case = make_case()
    for name in ("bcfw", "one-slack", "n-slack"):
        run = begin(EXACT[name], case.problem, 0.3)
        follow(run)
        for alpha in (0.1, 0.02, 0.3):
            run.continue_at(alpha)
            check(case, run, follow(run), case.optimum(alpha), alpha)


def test_warm_start_from_weights():
    case = make_case()
    run = begin(CuttingPlane(), case.problem, 0.05)
    cold = len(follow(run))
    warm = begin(CuttingPlane(), case.problem, 0.05, w=run.weights())
    assert len(follow(warm)) < cold
    assert (
        follow(begin(SGD(), case.problem, 0.05, w=run.weights(), tol=0), passes=10)[-1]["primal"]
        < 1.5 * run.best_primal
    )


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: BCFW(steps="away"), r"steps is 'away', expected one of \['auto', 'pairwise'"),
        (lambda: BCFW(sampling="all"), "sampling is 'all'"),
        (lambda: BCFW(max_cuts=1), "max_cuts is 1, expected an integer >= 2"),
        (lambda: BCFW(max_steps=2.5), "max_steps is 2.5"),
        (lambda: SGD(averaging="suffix"), "averaging is 'suffix'"),
        (lambda: SGD(order=3), "order is 3"),
        (lambda: SGD(certify_every=0), "certify_every is 0, expected an integer >= 1"),
        (lambda: SGD(t0=-1), "t0 is -1, expected a number >= 0"),
        (lambda: CuttingPlane("two"), r"slack is 'two', expected one of \['one', 'n'\]"),
        (lambda: CuttingPlane(step=0), "step is 0, expected 0 < step <= 1"),
        (lambda: CuttingPlane(inactive=0), "inactive is 0, expected an integer >= 1"),
    ],
)
def test_refused_parameters(make, message):
    refused(message, begin, make(), make_case(n=2).problem, 0.1)


def test_checkpoint_of_another_problem_is_refused(tmp_path):
    for solver, message in (
        (BCFW(), r"best_w has shape \(\d+,\)"),
        (BCFW(max_cuts=60), r"best_w has shape \(\d+,\)"),
        (SGD(), r"has shape \(\d+,\)"),
    ):
        run = begin(solver, make_case().problem, 0.1)
        run.step()
        other = begin(solver, make_case("edges", n=7).problem, 0.1)
        refused(message, through_file, run, other, tmp_path / "checkpoint")
    run = begin(BCFW(max_cuts=60, max_age=1000), make_case("ties").problem, 0.001)
    follow(run, passes=20)
    small = begin(BCFW(max_cuts=2), make_case("ties").problem, 0.001)
    refused("max_cuts is 2", through_file, run, small, tmp_path / "checkpoint")
    meta, arrays = run.state()
    for name, bad in (
        ("cuts_nnz", arrays["cuts_nnz"] + 1),
        ("cuts_counts", arrays["cuts_counts"][1:]),
        ("cuts_index", arrays["cuts_index"] + 10**6),
    ):
        refused(
            "do not fit|do not add up|another example|examples",
            run.restore,
            meta,
            {**arrays, name: bad},
        )


@pytest.mark.filterwarnings("ignore")  # of few passes
@pytest.mark.parametrize("kernel, penalized", [(None, True), (None, False), ("rbf", True)])
@pytest.mark.parametrize("surrogate", ["margin", "slack", "log", "probloss:0"])
def test_solvers_that_a_refusal_names_take_the_problem(surrogate, kernel, penalized):
    def said(**changed):
        given = {"surrogate": surrogate, "kernel": kernel, "penalize_intercept": penalized}
        model = StructuredSVM("multiclass", max_iter=1, alpha=1.0, **(given | changed))
        try:
            return model.fit(np.eye(3), [0, 1, 2]) and ""
        except ValueError as error:
            return str(error)

    for solver in ("bcfw", "gbcfw", "sdca", "admm", "lbfgs", "cutting-plane"):
        advice = said(solver=solver).partition("solver=")[2].partition(",")[0]
        *names, last = re.findall("'([^']*)'", advice) or [""]
        margin = {"surrogate": last} if "surrogate=" in advice else {}
        for name in names if margin else filter(None, [*names, last]):
            refusal = said(solver=name, **margin)
            assert not refusal or (kernel and "use solver='bcfw' and surrogate" in refusal)
