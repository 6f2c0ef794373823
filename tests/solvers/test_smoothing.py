"""The smoothed margin of classes: its cuts, its certificates, and when the default takes it."""

import functools

import numpy as np
import pytest
from checks import refused, same_run, stopped_after
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.chains import enumerate_examples
from reference.objectives import primal
from scipy.special import logsumexp, softmax
from sklearn.datasets import make_classification
from solver_cases import COSTS, LOSSES, Case, begin, check_continued, check_rising, follow

import structsolve
from structsolve import CostMatrix, Problem, StructuredSVM
from structsolve.solvers import BCFW, Auto, Smoothing, choose, choose_solver
from structsolve.solvers.run import relative_gap
from structsolve.surrogates._soft_margin import SoftMargin
from structsolve.surrogates.calls import cut


def mixed(n=600, seed=0, classes=4, apart=0.3):
    """Rows of classes that no model separates."""
    return make_classification(
        n, 8, n_informative=8, n_redundant=0, n_classes=classes, class_sep=apart, random_state=seed
    )


def posed(X, y, **more):
    return Problem(*structsolve.get_structure("multiclass").make_space(X, y), **more)


# -- one cut -------------------------------------------------------------------------------------


@functools.cache
def rows_of_each_class(K, costs):
    """Return a problem with a row of each class, and its table of losses."""
    table = np.random.default_rng(K).integers(0, 4, (K, K)) / 2 if costs else np.ones((K, K))
    table *= 1 - np.eye(K)
    return posed(np.ones((K, 1)), np.arange(K), loss=CostMatrix(table)), table


@settings(max_examples=1500)
@given(
    K=st.integers(2, 9),
    tau=st.sampled_from([1e-9, 1e-3, 0.1, 1.0, 50.0]),
    size=st.sampled_from([0.0, 1.0, 1e4]),
    seed=st.integers(0, 10_000),
    costs=st.booleans(),
)
def test_a_cut_is_the_tangent_of_the_smooth_function(K, tau, size, seed, costs):
    rng = np.random.default_rng(seed)
    problem, table = rows_of_each_class(K, costs)
    soft = SoftMargin(problem.surrogate, K)
    soft.temperature = tau
    y, theta = int(rng.integers(K)), np.zeros(problem.surrogate.layout.max_theta)
    theta[:K] = size * rng.integers(-3, 4, K) / 2
    b = table[y]
    values = b + theta[:K] - theta[y]
    told, p = cut(soft, y, theta, np.array([y], np.int32)), softmax(values / tau)
    assert told.bound == pytest.approx(tau * logsumexp(values / tau), rel=1e-12, abs=1e-12)
    assert values.max() - 1e-9 * (1 + size) <= told.bound
    assert told.bound <= values.max() + tau * np.log(K) + 1e-9 * (1 + size)
    assert told.b == pytest.approx(float(p @ b), rel=1e-9, abs=1e-12)
    dense = np.zeros(K)
    np.add.at(dense, told.index, told.value)
    np.testing.assert_allclose(dense, np.eye(K)[y] - p, atol=1e-12)
    # A mixture of cuts lies below the margin everywhere.
    other = rng.normal(size=K)
    assert told.b - other @ dense <= (b + other - other[y]).max() + 1e-9


def test_other_surrogates_have_no_losses_of_labels():
    space, examples = structsolve.get_structure("chain").make_space([[[1.0]] * 2] * 2, [[0, 1]] * 2)
    refused("share no parts", SoftMargin, Problem(space, examples).surrogate, 2)
    refused("n_labels is 0", SoftMargin, posed([[1.0], [2.0]], [0, 1]).surrogate, 0)


# -- certificates --------------------------------------------------------------------------------


def enumerated(loss, n, weights, seed):
    """Return rows of classes with few distinct features, and their enumeration."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, (n, 2)).astype(float), rng.integers(0, 3, n)
    structure = structsolve.get_structure("multiclass")
    space, _ = structure.make_space(X, y, classes=np.arange(3), fit_intercept=True)
    packed = space.pack(X, y)
    packed.sample_weight = weights
    rows = [np.append(x, 1.0)[None] for x in X]
    written = enumerate_examples(rows, y[:, None], 3, ("node",), LOSSES[loss][1], None)
    return Case(Problem(space, packed, loss=LOSSES[loss][0]), written, ("node",), None)


@settings(max_examples=120)
@given(
    loss=st.sampled_from(["hamming", "costs"]),
    n=st.integers(1, 9),
    alpha=st.sampled_from([10.0, 1.0, 0.1, 0.01]),
    memory=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
def test_every_record_holds_against_the_optimum(loss, n, alpha, memory, seed):
    weights = np.random.default_rng(seed).integers(0, 3, n).astype(float)
    weights[0] = 1.0
    case = enumerated(loss, n, weights, seed)
    best = case.optimum(alpha)
    run = begin(Smoothing(memory), case.problem, alpha, seed, tol=1e-4)
    history = follow(run, 1e-4, 500)
    for record in history:
        assert record["certified"]
        assert record["dual"] <= best.value * (1 + 1e-7) + 1e-12
        assert record["primal"] >= best.value * (1 - 1e-7)
    check_rising(history)
    temperatures = [record["temperature"] for record in history]
    assert temperatures == sorted(temperatures, reverse=True)
    assert relative_gap(history[-1]) <= 1e-4 or history[-1].get("failed")
    value = primal(case.flat(run.weights()), case.written, alpha, case.problem.weights, None)
    assert value == pytest.approx(history[-1]["primal"], rel=1e-9)


@pytest.mark.parametrize(
    ("apart", "alpha"), [(1e-3, 1e-5), (1e-3, 1.0), (0.3, 1e-3), (3.0, 1e-3), (3.0, 1.0)]
)
def test_it_reaches_the_optimum_of_bcfw(apart, alpha):
    X, y = mixed(apart=apart)
    ours, other = (
        StructuredSVM("multiclass", solver=solver, alpha=alpha, tol=1e-3, max_iter=1000).fit(X, y)
        for solver in ("smoothing", BCFW())
    )
    assert ours.stop_reason_ == other.stop_reason_ == "converged"
    mine, theirs = ours.history_[-1], other.history_[-1]
    assert mine["dual"] <= theirs["primal"] * (1 + 1e-9)
    assert theirs["dual"] <= mine["primal"] * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_losses_of_any_size_have_temperatures_of_theirs(scale):
    """Losses times a factor and alpha by it: the optimum times it, too."""
    X, y = mixed(300, classes=3)
    plain, scaled = (
        StructuredSVM(
            "multiclass",
            loss=CostMatrix(COSTS * factor),
            solver="smoothing",
            alpha=0.01 / factor,
            tol=1e-4,
        ).fit(X, y)
        for factor in (1.0, scale)
    )
    assert plain.stop_reason_ == scaled.stop_reason_ == "converged"
    mine, theirs = plain.history_[-1], scaled.history_[-1]
    assert scale * mine["dual"] <= theirs["primal"] and theirs["dual"] <= scale * mine["primal"]
    assert len(scaled.history_) <= len(plain.history_) + 3


def test_nothing_to_learn():
    for X, y in (([[0.0]] * 3, ["a"] * 3), (np.zeros((4, 2)), [0, 1, 0, 1])):
        model = StructuredSVM("multiclass", solver="smoothing", fit_intercept=False).fit(X, y)
        assert np.isfinite(model.coef_["node"]).all() and model.stop_reason_ == "converged"


def test_rounding_ends_a_run_that_cannot_converge():
    model = StructuredSVM("multiclass", solver="smoothing", alpha=1e-3, tol=0, max_iter=100_000)
    model.fit(*mixed(60))
    assert model.stop_reason_ == "failed" or model.history_[-1]["gap"] <= 0
    assert model.history_[-1]["gap"] <= 1e-6


# -- threads, checkpoints, paths -----------------------------------------------------------------


def test_threads_change_no_bit():
    problem, outcomes = posed(*mixed()), []
    for n_jobs in (1, 2, 3):
        run = begin(Smoothing(), problem, 1e-3, n_jobs=n_jobs)
        outcomes.append(([run.step() for _ in range(8)], run.weights().tobytes()))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("cut_at", [1, 3, 6])
def test_a_checkpoint_continues_to_the_last_bit(cut_at, tmp_path):
    problem = posed(*mixed())
    _, records, _, _ = check_continued(
        lambda seed: begin(Smoothing(), problem, 1e-3, seed), 10, cut_at, tmp_path / "run"
    )
    assert records[0]["temperature"] > records[-1]["temperature"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_killed_fit_goes_on(tmp_path):
    X, y = mixed()
    model = StructuredSVM("multiclass", solver="smoothing", alpha=1e-3, tol=0, max_iter=7)
    whole = model.fit(X, y)
    given = model.get_params(deep=False) | {"checkpoint": tmp_path / "run"}
    with pytest.raises(RuntimeError):
        StructuredSVM(**given | {"callbacks": [stopped_after(4)]}).fit(X, y)
    same_run(StructuredSVM(**given).fit(X, y), whole)


def test_a_damaged_temperature_is_refused():
    problem = posed(*mixed())
    run = begin(Smoothing(), problem, 1e-3)
    run.step()
    meta, arrays = run.state()
    refused("temperature is 0.0", run.restore, meta | {"temperature": 0.0}, arrays)


def test_another_alpha_goes_on_from_the_same_weights():
    X, y = mixed()
    problem = posed(X, y)
    run = begin(Smoothing(), problem, 0.1, tol=1e-3)
    follow(run, 1e-3)
    run.continue_at(1e-3)
    warm = follow(run, 1e-3)
    cold = follow(begin(Smoothing(), problem, 1e-3, tol=1e-3), 1e-3)
    assert relative_gap(warm[-1]) <= 1e-3
    assert warm[-1]["dual"] <= cold[-1]["primal"] and cold[-1]["dual"] <= warm[-1]["primal"]
    model = StructuredSVM("multiclass", solver="smoothing", tol=1e-3, warm_start=True)
    for alpha in (0.1, 1e-3):
        model.set_params(alpha=alpha).fit(X, y)
    assert model.stop_reason_ == "converged"


def test_what_has_no_such_margin_is_refused():
    X, y = mixed(60)
    refused("memory is 0", StructuredSVM("multiclass", solver=Smoothing(0)).fit, X, y)
    for more in ({"surrogate": "slack"}, {"surrogate": "crf"}, {"surrogate": "sparsemap"}):
        refused(
            "share no parts.*use solver='bcfw'",
            StructuredSVM("multiclass", solver="smoothing", **more).fit, X, y,
        )  # fmt: skip
    refused("kernel", StructuredSVM("multiclass", solver="smoothing", kernel="rbf").fit, X, y)
    chains = StructuredSVM("chain", solver="smoothing")
    refused("found 'chain', 'margin'", chains.fit, [X[:3], X[3:5]], [y[:3], y[3:5]])
    free = StructuredSVM("multiclass", solver="smoothing", penalize_intercept=False)
    refused("intercept", free.fit, X, y)


# -- the default ---------------------------------------------------------------------------------


def taken(problem, alpha=1e-3, solver=None):
    return choose_solver(solver or Auto(), problem, alpha).name


def test_the_default_takes_it_for_classes_that_no_model_separates():
    X, y = mixed()
    assert taken(posed(X, y)) == "smoothing"
    assert taken(posed(*mixed(apart=6.0))) == "bcfw"
    assert taken(posed(X[:499], y[:499])) == "bcfw"  # few rows
    assert taken(posed(X[:500], y[:500])) == "smoothing"
    assert taken(posed(X, y), solver=BCFW()) == "bcfw"
    assert taken(posed(X, y, surrogate="slack")) == "bcfw"
    assert taken(posed(X, y, penalize_intercept=False)) == "bcfw"
    assert taken(posed(X, y, surrogate="crf")) != "smoothing"
    wide = np.hstack([X, np.zeros((600, 8))])
    assert taken(posed(wide[:, :8], y)) == "smoothing"
    model = StructuredSVM("multiclass").fit(X, y)
    assert (model.solver, model.solver_.name) == ("auto", "smoothing")


def share_after_a_sweep(problem):
    run = begin(BCFW(cached_passes=0), problem, 1e-3)
    return run.step()["cuts"] / (600 * 3)  # of the dual variables of wrong classes


def test_it_needs_half_of_the_labels_after_a_sweep(monkeypatch):
    problem = posed(*mixed())
    share = share_after_a_sweep(problem)
    for full, name in ((share, "smoothing"), (share + 1e-9, "bcfw")):
        monkeypatch.setattr(choose, "FULL", full)
        assert taken(problem) == name


def test_less_is_enough_with_many_rows_for_each_weight(monkeypatch):
    problem = posed(*mixed())
    share = share_after_a_sweep(problem)
    monkeypatch.setattr(choose, "FULL", 1.1)
    rows = problem.n / problem.dim
    for full, tall, name in (
        (share, rows, "smoothing"),
        (share, rows * (1 + 1e-9), "bcfw"),
        (share + 1e-9, rows, "bcfw"),
    ):
        monkeypatch.setattr(choose, "FULL_TALL", full)
        monkeypatch.setattr(choose, "TALL", tall)
        assert taken(problem) == name


def test_vectors_as_long_as_the_weights_are_short_beside_the_features(monkeypatch):
    problem = posed(*mixed())
    most = problem.potentials.nbytes / (8 * problem.dim)
    for numbers, name in ((most, "smoothing"), (most * (1 + 1e-9), "bcfw")):
        monkeypatch.setattr(choose, "PAST_NUMBERS", numbers)
        assert taken(problem) == name
