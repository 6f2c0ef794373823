"""The smoothed margin: its cuts, its certificates, and when the default takes it."""

import functools
import itertools

import numpy as np
import pytest
from checks import refused, same_run, stopped_after
from hypothesis import given, settings
from hypothesis import strategies as st
from python_structures import py_chain
from random_cases import random_cases
from reference.objectives import primal
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_digits, make_classification
from solver_cases import COSTS, begin, check_continued, check_rising, follow, make_case

import structsolve
from structsolve import CostMatrix, Problem, StructuredSVM
from structsolve.potentials.calls import score
from structsolve.solvers import BCFW, Auto, Smoothing, choose, choose_solver
from structsolve.solvers.passes import surrogate_bounds
from structsolve.solvers.run import relative_gap
from structsolve.solvers.smoothing import soft_margin
from structsolve.structure.calls import encode, loss_value
from structsolve.surrogates._soft_margin import SoftMargin
from structsolve.surrogates.calls import cut


def mixed(n=600, seed=0, classes=4, apart=0.3):
    """Rows of classes that no model separates."""
    return make_classification(
        n, 8, n_informative=8, n_redundant=0, n_classes=classes, class_sep=apart, random_state=seed
    )


def posed(X, y, **more):
    return Problem(*structsolve.get_structure("multiclass").make_space(X, y), **more)


def noisy(n=200, classes=3, noise=3.0, seed=0, length=5):
    """Sequences of labels that no model fits, but for a small noise."""
    rng = np.random.default_rng(seed)
    means = np.linalg.qr(rng.normal(size=(6, 6)))[0][:classes]
    Y = [rng.integers(classes, size=int(rng.integers(1, length + 1))) for _ in range(n)]
    return [3 * means[y] + noise * rng.normal(size=(len(y), 6)) for y in Y], Y


def chains(n=200, **more):
    X, Y = noisy(n, **more)
    return Problem(*structsolve.get_structure("chain").make_space(X, Y))


# -- one cut -------------------------------------------------------------------------------------


@functools.cache
def small(structure, costs):
    """Return a problem of few nodes and three classes, and the labels of each example."""
    rng = np.random.default_rng(0)
    sizes = [1] * 3 if structure == "multiclass" else [1, 2, 3, 4]
    X = [rng.normal(size=(n, 2)) for n in sizes]
    Y = [np.arange(n) % 3 for n in sizes]
    if structure == "multiclass":
        X, Y = np.concatenate(X), np.arange(3)
    if structure == "tree":
        X = [(x, np.maximum(np.arange(len(x)) - 2, -1)) for x in X]
        X = [(x, np.where(np.arange(len(x)) > 0, np.maximum(p, 0), -1)) for x, p in X]
    loss = CostMatrix(COSTS) if costs else "hamming"
    space, examples = structsolve.get_structure(structure).make_space(X, Y)
    every = [np.array(list(itertools.product(range(3), repeat=n)), np.int32) for n in sizes]
    return Problem(space, examples, loss=loss), every


@random_cases(
    1500,
    structure=["multiclass", "chain", "tree"],
    tau=[1e-9, 1e-3, 0.1, 1.0, 50.0],
    size=[0.0, 1.0, 1e4],
    costs=[False, True],
)
def test_a_cut_is_the_tangent_of_the_smooth_function(structure, tau, size, seed, costs):
    rng = np.random.default_rng(seed)
    problem, every = small(structure, costs)
    soft = soft_margin(problem)
    soft.temperature = tau
    i = int(rng.integers(problem.n))
    labels, dim = every[i], len(score(problem.potentials, i, np.zeros(problem.dim)))
    truth = labels[rng.integers(len(labels))]
    theta = size * rng.integers(-3, 4, dim) / 2

    def parts(label):
        dense, (index, value) = np.zeros(dim), encode(problem.parts, i, label)
        np.add.at(dense, index, value)
        return dense

    points = np.array([parts(label) for label in labels]) - parts(truth)
    b = np.array([loss_value(problem.loss, i, truth, label) for label in labels])
    values, rounding = b + points @ theta, 1e-11 * (1 + size)
    told, p = cut(soft, i, theta, truth), softmax(values / tau)
    assert told.bound == pytest.approx(tau * logsumexp(values / tau), rel=1e-12, abs=rounding)
    assert values.max() - rounding <= told.bound
    assert told.bound <= values.max() + tau * np.log(len(labels)) + rounding
    # Where values differ by less than rounding, any mixture of these labels will do.
    if tau >= 1e-3 or size == 0:
        assert told.b == pytest.approx(float(p @ b), rel=1e-6, abs=1e-9)
    dense = np.zeros(dim)
    np.add.at(dense, told.index, told.value)
    if tau >= 1e-3 or size == 0:
        np.testing.assert_allclose(dense, -(p @ points), atol=1e-6)
    # A mixture of cuts lies below the margin everywhere.
    other = rng.normal(size=dim)
    assert told.b - other @ dense <= (b + points @ other).max() + 1e-9


def test_what_has_no_smoothed_margin():
    X, Y = noisy(5)
    for structure, more in (("chain", {"loss": "zero-one"}), ("chain", {"surrogate": "crf"})):
        space, examples = structsolve.get_structure(structure).make_space(X, Y)
        assert soft_margin(Problem(space, examples, **more)) is None
    space, examples = structsolve.get_structure("permutation").make_space(
        np.eye(3), [[0, 1, 2], [1, 0, 2], [2, 1, 0]]
    )
    problem = Problem(space, examples)
    assert soft_margin(problem) is None  # sums over permutations are #P-hard
    task = chains(5).task
    refused(
        "exact marginals", SoftMargin, problem.task.projection("entropy"), task.parts, task.loss
    )


# -- certificates --------------------------------------------------------------------------------


@settings(max_examples=120)
@given(
    kind=st.sampled_from(["classes", "chain", "ties", "edges"]),
    loss=st.sampled_from(["hamming", "costs"]),
    n=st.integers(1, 9),
    alpha=st.sampled_from([10.0, 1.0, 0.1, 0.01]),
    memory=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
def test_every_record_holds_against_the_optimum(kind, loss, n, alpha, memory, seed):
    weights = np.random.default_rng(seed).integers(0, 3, n).astype(float)
    weights[0] = 1.0
    case = make_case(kind, seed, n, loss, weights)
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
    structure = structsolve.get_structure("alignment", kind="many-to-one")
    for seed in range(2, 6):  # of pairs without a rival
        model = StructuredSVM(structure, solver="smoothing", loss="normalized-hamming")
        model.fit(*structure.sample(seed, n=2))
        assert (model.stop_reason_, model.history_[-1]["primal"]) == ("converged", 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_ends_no_worse_than_it_began():
    model = StructuredSVM("multiclass", solver="smoothing", alpha=1e-3, warm_start=True)
    primal = model.fit(*mixed()).history_[-1]["primal"]
    assert model.set_params(max_iter=1).fit(*mixed()).history_[-1]["primal"] <= primal


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
            "exact marginals.*use solver='bcfw'",
            StructuredSVM("multiclass", solver="smoothing", **more).fit, X, y,
        )  # fmt: skip
    refused("kernel", StructuredSVM("multiclass", solver="smoothing", kernel="rbf").fit, X, y)
    sequences = noisy(5)
    for more in ({"loss": "zero-one"}, {"oracle": "cvxpy:HIGHS"}):
        model = StructuredSVM("chain", solver="smoothing", **more)
        refused("found 'margin', the loss .* structure 'chain'; use", model.fit, *sequences)
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


def test_classes_that_weights_may_fit_keep_exact_steps(monkeypatch):
    """A sweep at a weak alpha leaves all labels within the margin of rows that a model fits too."""
    X, y = load_digits(return_X_y=True)
    fitted = posed(X / 16, y)
    assert choose._swept(fitted, 1e-5, 1)[1]["cuts"] >= 0.5 * 9 * len(y)
    assert taken(fitted, 1e-5) == "bcfw"
    problem = posed(*mixed())
    sweep = choose._swept(problem, 1e-3, 1)[0]
    *_, average = sweep.candidates()
    every = problem.n // choose.ASKED
    left = [
        problem.weights @ surrogate_bounds(problem, times * average, 1, every=every)[0]
        for times in (0.0, 0.3, 1.0)
    ]
    share = min(left) / left[0]
    for least, name in ((share - 1e-9, "smoothing"), (share + 1e-9, "bcfw")):
        monkeypatch.setattr(choose, "LEFT", least)
        assert taken(problem) == name
    monkeypatch.setattr(choose, "TALL", problem.n / problem.dim)
    assert taken(problem) == "smoothing"  # as many rows for each weight take long passes


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


@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_the_default_takes_it_for_sequences_and_trees_that_no_model_fits(structure):
    X, Y = noisy(300)
    if structure == "tree":
        X = [(x, np.arange(len(x)) - 1) for x in X]
    ours, other = (
        StructuredSVM(structure, solver=solver, alpha=1e-3, max_iter=1000).fit(X, Y)
        for solver in ("auto", "bcfw")
    )
    assert ours.solver_.name == "smoothing"
    assert ours.stop_reason_ == other.stop_reason_ == "converged"
    mine, theirs = ours.history_[-1], other.history_[-1]
    assert mine["dual"] <= theirs["primal"] and theirs["dual"] <= mine["primal"]
    again = StructuredSVM(structure, solver=ours.solver_, alpha=1e-3).fit(X, Y)
    np.testing.assert_array_equal(again.coef_["node"], ours.coef_["node"])


def test_what_a_sweep_leaves_decides(monkeypatch):
    assert taken(chains()) == "smoothing"
    in_python = Problem(*py_chain().make_space(*noisy()))  # whose calls take all the time
    assert soft_margin(in_python) is not None
    for other in (chains(noise=0.3), chains(99, length=12), in_python):
        assert taken(other) != "smoothing"
    assert taken(chains(100, length=12)) == "smoothing"
    assert taken(chains(), alpha=1.0) == "bcfw"
    assert choose_solver(Auto(), chains(), 1e-3, even=True).name != "smoothing"
    assert choose_solver(Auto(), chains(), 1e-3, n_jobs=3).name == "smoothing"
    problem = chains()
    ratio = choose._bend(problem, 1e-3, 1)
    soft = soft_margin(problem)
    wide = (soft.projection.work_bytes - choose.SPARE) / (8 * soft.layout.max_theta)
    tall = problem.n_nodes / problem.dim
    sweep = begin(BCFW(cached_passes=0), problem, 1e-3)
    proved = sweep.step()["dual"] / float(problem.weights @ problem.bounds(0 * sweep.loop.w)[0])
    for name, least, sign in (
        ("BENT_SOFT", ratio, 1),
        ("WIDE", wide, -1),
        ("NODES_A_WEIGHT", tall, 1),
        ("PROVED", proved, -1),
    ):
        for factor in (1 - sign * 1e-9, 1 + sign * 1e-9):
            with monkeypatch.context() as patch:
                patch.setattr(choose, name, least * factor)
                assert (taken(problem) == "smoothing") == (factor == 1 - sign * 1e-9)


def test_graphs_with_cycles_take_cuts():
    """Marginals of a square have four numbers for each score, those of wider pictures more."""
    rng = np.random.default_rng(0)
    for side, taken_ in ((2, True), (6, False)):
        Y = rng.integers(2, size=(150, side, side))
        X = np.eye(2)[Y] + 3 * rng.normal(size=(150, side, side, 2))
        problem = Problem(*structsolve.get_structure("grid").make_space(list(X), list(Y)))
        assert soft_margin(problem) is not None
        assert (taken(problem, 1e-5) == "smoothing") == taken_


def test_the_share_that_is_left_is_that_of_a_sample(monkeypatch):
    problem = chains(1000)
    every = surrogate_bounds(problem, np.zeros(problem.dim), 1, every=3)[0]
    whole = problem.bounds(np.zeros(problem.dim))[0]
    np.testing.assert_array_equal(every, np.where(np.arange(1000) % 3 == 0, whole, 0))
    sweep = choose._swept(problem, 1e-3, 1)[0]
    for asked in (100, 1000):
        monkeypatch.setattr(choose, "ASKED", asked)
        monkeypatch.setattr(choose, "LEFT", 0.45)
        assert choose._fits_badly(problem, 1, sweep)[0]
        monkeypatch.setattr(choose, "LEFT", 1.0 + 1e-9)
        assert not choose._fits_badly(problem, 1, sweep)[0]
