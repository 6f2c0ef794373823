"""The default solver: what it takes, what it says, and rounds of shards that BCFW finishes."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, same_run
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.objectives import primal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from solver_cases import begin, check_bounds, check_threads, follow, make_case, through_file

import structsolve
from structsolve import Problem, StructuredSVM, make_strips
from structsolve.solvers import BCFW, Auto, ConsensusADMM, WeightBounds, choose, choose_solver
from structsolve.solvers import relay as relays
from structsolve.solvers.passes import subgradient
from structsolve.solvers.relay import merged_duals
from structsolve.solvers.run import Start, relative_gap

WEAK, STRONG = 1e-4, 1.0


def problem_of(name, n=18, parameters=None, **more):
    structure = structsolve.get_structure(name, **(parameters or {}))
    return Problem(*structure.make_space(*structure.sample(0, n=n)), **more)


@pytest.fixture(scope="module")
def strips():
    train, _ = make_strips(600, 1)
    return train.pixels, train.labels


@pytest.fixture(scope="module")
def posed(strips):
    return Problem(*structsolve.get_structure("chain").make_space(*strips))


# -- rounds, and BCFW after them ----------------------------------------------------------------


@settings(max_examples=40)
@given(
    kind=st.sampled_from(["chain", "ties", "edges", "classes"]),
    loss=st.sampled_from(["hamming", "zero-one", "costs"]),
    n=st.integers(1, 9),
    n_shards=st.integers(1, 4),
    alpha=st.sampled_from([1.0, 0.1, 0.01]),
    finish=st.sampled_from([0.9, 0.3, 0.02]),
    seed=st.integers(0, 1000),
)
def test_every_record_holds_against_the_optimum(kind, loss, n, n_shards, alpha, finish, seed):
    weights = np.random.default_rng(seed).integers(0, 3, n).astype(float)
    weights[0] = 1.0
    case = make_case(kind, seed, n, loss, weights)
    best = case.optimum(alpha)
    solver = ConsensusADMM(n_shards, certify_every=1, finish=finish)
    run = begin(solver, case.problem, alpha, seed, tol=1e-5)
    for record in follow(run, 1e-5, 200):
        if record["certified"]:
            assert record["dual"] <= best.value * (1 + 1e-7) + 1e-12
            assert record["primal"] >= best.value * (1 - 1e-7)
    assert relative_gap(record) <= 1e-5
    value = primal(case.flat(run.weights()), case.written, alpha, case.problem.weights, None)
    assert value == pytest.approx(record["primal"], rel=1e-9)
    assert run.contradiction() is None


@pytest.mark.parametrize("name", ["chain", "multiclass", "multilabel", "tree", "permutation"])
def test_the_shards_duals_are_those_of_one_run(name):
    problem = problem_of(name)
    run = begin(ConsensusADMM(3, certify_every=1, finish=1e-9), problem, 0.05, tol=1e-12)
    for _ in range(4):
        run.step()
    rounds = run.run
    run._hand_over(rounds)
    assert run.finishing and np.allclose(run.run.loop.w, rounds.dual_w, atol=1e-9)
    assert run.run.dual <= rounds.best_dual + 1e-9
    each = [shard.loop for shard in rounds.engine.shards]
    assert run.run.loop.count == sum(loop.count for loop in each)
    joined = merged_duals(each)
    for loop in each:
        alone = merged_duals([loop])
        assert all(np.array_equal(array, alone[k]) for k, array in loop.to_arrays().items())
        assert set(alone["key"]) <= set(joined["key"])


@pytest.mark.parametrize("name", ["chain", "multilabel"])
def test_threads_change_no_bit(name):
    runs = []

    def start(n_jobs):
        solver = ConsensusADMM(2, finish=0.5)
        runs.append(begin(solver, problem_of(name), 0.05, n_jobs=n_jobs, tol=1e-6))
        return runs[-1]

    check_threads(start, 9, jobs=(1, 2, 4))
    assert all(run.finishing for run in runs)


@pytest.mark.parametrize("cut", [1, 2, 4, 7])
def test_a_checkpoint_continues_to_the_last_bit(cut, tmp_path):
    solver, alpha = ConsensusADMM(3, certify_every=2, finish=0.4), 0.05
    whole = begin(solver, problem_of("chain"), alpha, tol=1e-6)
    expected, over = [], []
    for _ in range(9):
        expected.append(whole.step())
        over.append(whole.finishing)
    assert not over[0] and over[6]
    first = begin(solver, problem_of("chain"), alpha, tol=1e-6)
    records = [first.step() for _ in range(cut)]
    fresh = begin(solver, problem_of("chain"), alpha, seed=7, tol=1e-6)
    rest = through_file(first, fresh, tmp_path / "run")
    assert rest.finishing == over[cut - 1]
    assert records + [rest.step() for _ in range(9 - cut)] == expected
    assert np.array_equal(rest.weights(), whole.weights())


@pytest.mark.parametrize("alphas", [(0.5, 0.05), (0.05, 0.5)])
@pytest.mark.parametrize("finish", [0.5, 1e-3])
def test_another_alpha_goes_on_from_the_same_duals(alphas, finish):
    problem = problem_of("chain")
    run = begin(ConsensusADMM(finish=finish), problem, alphas[0], tol=1e-2)
    follow(run, 1e-2, 200)
    run.continue_at(alphas[1])
    warm = follow(run, 1e-2, 400)
    cold = follow(begin(BCFW(), problem, alphas[1]), 1e-6)[-1]
    assert relative_gap(warm[-1]) <= 1e-2
    check_bounds(warm, cold, estimates=True)


def test_rounds_that_gain_too_little_end(monkeypatch):
    monkeypatch.setattr(relays, "MOST_ROUNDS", 6)
    run = begin(ConsensusADMM(certify_every=4, finish=1e-9), problem_of("chain"), 0.05, tol=1e-10)
    over = []
    for _ in range(12):
        run.step()
        over.append(run.finishing)
    assert over == sorted(over) and not any(over[:5]) and over[-1]


def test_wrong_settings_are_refused():
    problem = problem_of("chain")
    refused("finish is 0.0, expected > 0", begin, ConsensusADMM(finish=0.0), problem, 0.1)
    both = ConsensusADMM(finish=0.1, metric="spectral")
    refused("metric is 'spectral', expected 'identity' with finish", begin, both, problem, 0.1)


# -- the default --------------------------------------------------------------------------------


def test_weak_regularisation_takes_shards(posed):
    auto = [choose_solver(Auto(), posed, alpha) for alpha in (WEAK, STRONG)]
    assert [one.name for one in auto] == ["admm", "bcfw"]
    assert auto[0].get_params() == ConsensusADMM(2, finish=0.01).get_params()
    assert choose_solver(BCFW(), posed, WEAK).name == "bcfw"
    assert choose_solver(Auto(), posed).name == "bcfw"
    for more in ({"batch": 4}, {"steps": "pairwise"}, {"constraints": [WeightBounds("start")]}):
        made = choose_solver(Auto(**more), posed, WEAK)
        assert type(made) is BCFW and made.get_params() == Auto(**more).get_params()


@pytest.mark.parametrize(
    "surrogate, n, least",
    [("margin", 600, 100)]
    + [("crf", n, least) for n, least in [(10, 0.02), (600, 1.2), (2999, 5.998), (3600, 6)]],
)
def test_the_rule_is_the_printed_one(strips, surrogate, n, least):
    """The boundary of alpha, by the definition: ``.004 |g|^2 / b`` over 100, 6 or 6 n / 3000."""
    X, Y = (part * 6 for part in strips)
    made = structsolve.get_structure("chain").make_space(X[:n], Y[:n])
    problem = Problem(*made, surrogate=surrogate)
    g, b, _, _ = subgradient(problem, np.zeros(problem.dim), 1)
    border = 0.004 * float(g @ g) / b / least
    names = [
        choose_solver(Auto(), problem, border * c, jobs).name
        for c in (0.99, 1.01)
        for jobs in (1, 3)
    ]
    other = "bcfw" if surrogate == "margin" else "gbcfw"
    weak = "admm" if surrogate == "margin" else "lbfgs"
    assert names == [weak, weak, other, other]
    assert choose_solver(BCFW(), problem, 0.5 * border).name == other
    assert choose_solver(Auto(), problem).name == other


@pytest.mark.parametrize(
    "name, more, taken",
    [
        ("multiclass", {}, "smoothing"),  # drawn at random: no model separates them
        ("chain", {"surrogate": "crf"}, "gbcfw"),
        ("ordinal", {"parameters": {"thresholds": True}}, "interior-point"),
        ("chain", {"penalize_intercept": False}, None),
    ],
)
def test_what_has_a_solver_of_its_own(name, more, taken):
    problem = problem_of(name, 600, **more)
    if taken is None:
        assert choose_solver(Auto(), problem, WEAK).name == "bcfw"  # which says what to use
    else:
        assert choose_solver(Auto(), problem, WEAK).name == taken


@pytest.mark.parametrize(
    "edges, loss, taken",
    [
        ("none", "hamming", "bcfw"),  # exact steps
        ([(0, 1)], "hamming", "bcfw"),  # two groups, with steps of their own
        ([(0, 1), (1, 2)], "hamming", "cutting-plane"),
        ([(0, 1)], "zero-one", "cutting-plane"),  # which is no sum over the groups
    ],
)
def test_separate_labels_take_bcfw(edges, loss, taken):
    problem = problem_of("multilabel", 600, {"edges": edges}, loss=loss)
    assert choose_solver(Auto(), problem, 1e-9).name == taken
    assert choose_solver(Auto(), problem, 1e6).name == "bcfw"


def test_few_examples_and_many_weights_take_bcfw(strips):
    X, Y = strips
    chain = structsolve.get_structure("chain")
    for n, even, taken in (
        (199, False, "bcfw"),
        (200, False, "admm"),
        (499, True, "bcfw"),
        (500, True, "admm"),
    ):
        few = Problem(*chain.make_space(X[:n], Y[:n]))
        assert choose_solver(Auto(), few, WEAK, even=even).name == taken, n
    wide = [np.hstack([x, np.zeros((len(x), 20000))]) for x in X]
    wide[0][0, -1] = 1.0
    many = Problem(*structsolve.get_structure("chain").make_space(wide, Y))
    assert choose_solver(Auto(), many, WEAK).name == "bcfw"


def test_weights_with_two_numbers_each_in_the_features_take_shards(strips):
    """The boundary of the number of columns: empty ones add weights, and no numbers."""
    X, Y = strips

    def posed(more):
        wide = [sp.csr_matrix((x.data, x.indices, x.indptr), (len(y), 64 + more)) for x, y in rows]
        return Problem(*structsolve.get_structure("chain").make_space(wide, Y))

    rows = [(sp.csr_matrix(x), y) for x, y in zip(X, Y, strict=True)]
    plain = posed(0)
    width = posed(1).dim - plain.dim
    border = (plain.potentials.nbytes // 16 - plain.dim) // width
    for more, taken in ((border, "admm"), (border + 1, "bcfw")):
        problem = posed(more)
        assert problem.potentials.nbytes == plain.potentials.nbytes
        assert choose_solver(Auto(), problem, WEAK).name == taken


@pytest.mark.parametrize("kind", [sp.csr_matrix, np.asarray])
def test_smooth_surrogates_of_filled_features_take_quasi_newton_steps(strips, kind):
    """The boundary of the share of entries, in sparse and in dense features."""
    X, Y = strips
    rng = np.random.default_rng(0)
    size = sum(x.size for x in X)
    for share, taken in ((0.101, "lbfgs"), (0.099, "admm")):
        marks = np.zeros(size, dtype=bool)
        marks[rng.permutation(size)[: round(share * size)]] = True
        ends = np.cumsum([x.size for x in X])[:-1]
        rows = [m.reshape(x.shape) for m, x in zip(np.split(marks, ends), X)]
        made = [kind(np.where(m, 1.0 + x, 0.0)) for m, x in zip(rows, X)]
        posed = structsolve.get_structure("chain").make_space(made, Y)
        solver = choose_solver(Auto(), Problem(*posed, surrogate="crf"), 1e-9)
        assert solver.name == taken
        assert choose_solver(Auto(), Problem(*posed), 1e-9).name == "admm"
    assert choose_solver(BCFW(), Problem(*posed, surrogate="crf"), 1e-9).name == "gbcfw"
    few = structsolve.get_structure("chain").make_space([kind(x * 0) for x in X[:99]], Y[:99])
    assert choose_solver(Auto(), Problem(*few, surrogate="crf"), 1e-9).name == "gbcfw"


def test_quasi_newton_steps_need_no_more_than_a_few_examples():
    """Ten pictures of a hundred pixels: at most a tenth of the passes that GBCFW makes."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(10, 10, 3)) for _ in range(10)]
    Y = [(x[..., 0] + rng.normal(size=(10, 10)) > 0) + (x[..., 1] > 0.8) for x in X]
    model = StructuredSVM("grid", surrogate="crf", alpha=0.01).fit(X, Y)
    assert (model.solver_.name, model.stop_reason_) == ("lbfgs", "converged")
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        other = clone(model).set_params(solver="gbcfw", max_iter=10 * model.n_iter_).fit(X, Y)
    assert other.stop_reason_ == "max_iter"
    assert other.history_[-1]["dual"] <= model.history_[-1]["primal"]


@pytest.mark.parametrize("n", [90, 600])
def test_few_weights_take_cutting_planes_where_no_model_fits(n, monkeypatch):
    """Both sides of the least curvature, number of weights and share of examples with cuts."""
    monkeypatch.setattr(choose, "LEFT", 2.0)  # of labels without marginals, such as those of graphs
    rng = np.random.default_rng(0)
    for columns, shift, weak, taken in (
        (3, 0.5, 0.99, True),
        (3, 0.5, 1.01, False),
        (3, 9.0, 0.01, False),
        (15, 0.1, 0.99, True),
        (16, 0.1, 0.99, False),
    ):
        Y = rng.integers(2, size=(n, 5))
        X = rng.normal(size=(n, 5, columns)) + shift * Y[..., None]
        problem = Problem(*structsolve.get_structure("chain").make_space(X, Y))
        g, b, _, _ = subgradient(problem, np.zeros(problem.dim), 1)
        alpha = weak * 0.004 * float(g @ g) / b / 30
        sweep = BCFW(cached_passes=0).start(Start(problem, alpha, np.random.default_rng(0), 1))
        share = sweep.step()["cuts"] / n
        assert (problem.dim <= 40 and share >= 0.4 and weak < 1) == taken
        names = [choose_solver(Auto(), problem, alpha, jobs).name for jobs in (1, 3)]
        assert [name == "cutting-plane" for name in names] == [taken, taken]
        even = choose_solver(Auto(), problem, alpha, even=True).name
        assert even == names[0] or taken and even != "cutting-plane"


def test_few_weights_and_long_columns_of_classes_take_cutting_planes(monkeypatch):
    """Both sides of the number of weights, of rows for each, and of the share after a sweep."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=21_000)
    X = 0.3 * y[:, None] + rng.normal(size=(21_000, 2))
    problem = Problem(*structsolve.get_structure("multiclass").make_space(X, y))
    sweep = BCFW(cached_passes=0).start(Start(problem, 1e-4, np.random.default_rng(0), 1))
    share, rows = sweep.step()["cuts"] / problem.n, problem.n / problem.dim
    more = 1 + 1e-9
    for full, long, few, taken in (
        (share, rows, problem.dim, "cutting-plane"),
        (share * more, rows, problem.dim, "smoothing"),
        (share, rows * more, problem.dim, "smoothing"),
        (share, rows, problem.dim - 1, "smoothing"),
    ):
        monkeypatch.setattr(choose, "FULL_LONG", full)
        monkeypatch.setattr(choose, "LONG", long)
        monkeypatch.setattr(choose, "FEW_OF_CLASSES", few)
        names = [choose_solver(Auto(), problem, 1e-4, jobs).name for jobs in (1, 3)]
        assert names == [taken, taken]
        assert choose_solver(Auto(), problem, 1e-4, even=True).name == "bcfw"
    monkeypatch.undo()
    model = StructuredSVM("multiclass").fit(X, y)
    assert (model.solver_.name, model.stop_reason_) == ("cutting-plane", "converged")
    other = StructuredSVM("multiclass", solver="smoothing").fit(X, y)
    assert other.history_[-1]["dual"] <= model.history_[-1]["primal"]
    assert model.history_[-1]["dual"] <= other.history_[-1]["primal"]


def test_cutting_planes_of_the_default_reach_the_gap_before_bcfw():
    """Ten pictures of a hundred pixels, with 16 weights."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(10, 10, 3)) for _ in range(10)]
    Y = [(x[..., 0] + 0.5 * rng.normal(size=(10, 10)) > 0).astype(int) for x in X]
    for surrogate in ("margin", "slack"):
        model = StructuredSVM("grid", surrogate=surrogate, alpha=WEAK)
        model.fit(X, Y)
        assert (model.solver_.name, model.stop_reason_) == ("cutting-plane", "converged")
        other = clone(model).set_params(solver="bcfw")
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            other.fit(X, Y)
        assert other.history_[-1]["dual"] <= model.history_[-1]["primal"]
        assert model.history_[-1]["dual"] <= other.history_[-1]["primal"]


def test_quasi_newton_steps_of_the_default_reach_the_gap(strips):
    X, Y = strips
    one, three = (
        StructuredSVM("chain", surrogate="crf", alpha=1e-4, n_jobs=n).fit(X, Y) for n in (1, 3)
    )
    other = StructuredSVM("chain", surrogate="crf", alpha=1e-4, solver="admm").fit(X, Y)
    assert np.array_equal(one.flat_weights(), three.flat_weights())
    for model in (one, three):
        assert (model.solver_.name, model.solver_.steps) == ("lbfgs", 5)
        assert model.stop_reason_ == "converged"
        last = model.history_[-1]
        assert last["gap"] <= 0.01 * last["primal"]
        assert last["dual"] <= other.history_[-1]["primal"]
        assert other.history_[-1]["dual"] <= last["primal"]


def test_the_estimator_says_what_it_took(strips, caplog):
    X, Y = strips
    models = []
    with caplog.at_level(logging.INFO, "structsolve.solvers"):
        for n_jobs in (1, 3):
            model = StructuredSVM("chain", alpha=WEAK, tol=0.05, n_jobs=n_jobs)
            models.append(clone(model).fit(X, Y))
        StructuredSVM("chain", alpha=STRONG, n_jobs=3, max_iter=3, tol=1.0).fit(X, Y)
    lines = [line for line in caplog.messages if "solver='auto'" in line]
    text = "StructuredSVM: solver='auto' takes"
    assert lines == [
        f"{text} 'admm' over 2 shards, then 'bcfw' from a gap of 0.01 on",
        f"{text} 'admm' over 2 shards, then 'bcfw' from a gap of 0.01 on; "
        "1 of 3 threads is idle but for certificates",
        f"{text} 'bcfw'; 2 of 3 threads are idle but for certificates",
    ]
    one, three = models
    assert one.solver == clone(one).solver == one.get_params()["solver"] == "auto"
    assert one.solver_.name == "admm" and one.stop_reason_ == "converged"
    assert np.array_equal(one.flat_weights(), three.flat_weights())
    assert [r["primal"] for r in one.history_] == [r["primal"] for r in three.history_]
    best = StructuredSVM("chain", alpha=WEAK, tol=0.05, solver="bcfw").fit(X, Y)
    assert one.history_[-1]["primal"] >= best.history_[-1]["dual"]
    assert best.history_[-1]["primal"] >= one.history_[-1]["dual"]


def test_dual_variables_that_are_kept_are_those_of_bcfw(strips, tmp_path):
    X, Y = strips
    common = {"alpha": WEAK, "tol": 0.5}
    for more in ({"warm_start": True}, {"checkpoint": tmp_path / "a"}):
        model = StructuredSVM("chain", **common, **more).fit(X, Y)
        assert (model.solver, model.solver_.name) == ("auto", "bcfw")
    # A file of the solver that was the default before is one of the default's.
    again = StructuredSVM("chain", solver="bcfw", checkpoint=tmp_path / "a", **common).fit(X, Y)
    assert again.history_ and again.stop_reason_ == "converged"
    kernel = StructuredSVM("multiclass", kernel="rbf").fit([[0.0], [1.0], [3.0]], [0, 1, 0])
    assert kernel.solver_.name == "smo"
    assert not hasattr(StructuredSVM("chain"), "partial_fit")


def test_early_stopping_takes_passes_that_gain_evenly(strips, posed):
    X, Y = strips
    stopped = StructuredSVM("chain", alpha=WEAK, early_stopping=True, random_state=0).fit(X, Y)
    assert stopped.solver_.name == "admm" and stopped.score(X, Y) > 0.7
    whole = StructuredSVM("chain", alpha=WEAK, random_state=0).fit(X, Y)
    assert stopped.history_[-1]["primal"] >= whole.history_[-1]["dual"] * 0.9
    soft = Problem(posed.space, posed.examples, surrogate="crf")
    for name, problem in (("admm", posed), ("gbcfw", soft), ("lbfgs", soft)):
        even = name != "lbfgs"
        assert choose_solver(Auto(), problem, WEAK, even=even).name == name
    four = choose_solver(Auto(), posed, WEAK, even=True)
    assert four.get_params() == ConsensusADMM().get_params()
    assert choose_solver(Auto(), posed, STRONG, even=True).name == "bcfw"
    rng = np.random.default_rng(0)  # no model separates these classes
    drawn = rng.normal(size=(600, 40)), rng.integers(3, size=600)
    problem = Problem(*structsolve.get_structure("multiclass").make_space(*drawn))
    names = [choose_solver(Auto(), problem, 1e-4, even=even).name for even in (False, True)]
    assert names == ["smoothing", "bcfw"]


def test_its_settings_are_those_of_bcfw(strips, tmp_path):
    X, Y = strips
    model = StructuredSVM("chain", alpha=WEAK, tol=0.5).set_params(solver__max_cuts=7).fit(X, Y)
    assert type(model.solver_) is BCFW and model.solver_.max_cuts == 7
    model.save(tmp_path / "m")
    assert structsolve.load(tmp_path / "m").solver.max_cuts == 7
    plain = StructuredSVM("chain", alpha=STRONG).fit(X[:20], Y[:20])
    plain.save(tmp_path / "n")
    assert structsolve.load(tmp_path / "n").solver == "auto"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_it_trains_as_the_solver_that_it_names(structure):
    """The rule asks for cuts: searches of max-min begin at the last answers."""
    X, Y = structsolve.get_structure(structure).sample(0, n=150)
    given = {"surrogate": "max-min", "alpha": 0.01, "max_iter": 3}
    model = StructuredSVM(structure, **given).fit(X, Y)
    same_run(model, StructuredSVM(structure, solver=model.solver_, **given).fit(X, Y))
