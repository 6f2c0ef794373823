"""LBFGS: optima of other programs, certificates, sparse weights, and rules for every solver."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from structsolve import Problem, StructuredSVM, get_structure
from structsolve.solvers import LBFGS
from structsolve.solvers.curvature import LONG, Curvature
from structsolve.solvers.run import Start


def classes(seed, n=60, columns=5):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, columns))
    X[np.arange(n), y] += 1
    return X, y


def sequences(seed, n=8, longest=3, columns=2):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n)
    X = [rng.normal(size=(length, columns)) for length in lengths]
    Y = [rng.integers(2, size=length) for length in lengths]
    Y[0][:] = 0
    Y[-1] = np.array([0, 1, 1])[: len(Y[-1])]
    return X, Y


def chain(ratio, **settings):
    return StructuredSVM(
        "chain", surrogate="crf", solver=LBFGS(l1_ratio=ratio), max_iter=1000, **settings
    )


@pytest.mark.filterwarnings("ignore:.penalty. was deprecated:FutureWarning")
@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0])
def test_the_optimum_of_logistic_regression(ratio, alpha):
    X, y = classes(1)
    model = StructuredSVM(
        "multiclass",
        surrogate="crf",
        solver=LBFGS(l1_ratio=ratio),
        alpha=alpha,
        fit_intercept=False,
        tol=1e-10,
        max_iter=1000,
    ).fit(X, y)
    assert model.stop_reason_ in ("converged", "settled")
    other = LogisticRegression(
        l1_ratio=ratio,
        penalty="elasticnet",
        solver="saga",
        C=1 / (alpha * len(y)),
        fit_intercept=False,
        tol=1e-8,
        max_iter=100_000,
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_["node"].T, other.coef_, atol=2e-4)
    if ratio == 1:
        assert ((other.coef_ == 0) <= (np.abs(model.coef_["node"].T) < 1e-5)).all()


def over_all_labels(problem, X, Y, alpha, ratio):
    """Return the objective of a chain of two classes, over all labels, as a smooth function."""
    space, dim = problem.space, problem.dim
    layout = space.layout

    def scores(w, x):
        block = {b.name: layout.view(w, b.name) for b in layout.blocks}
        table = []
        for y in itertools.product(range(2), repeat=len(x)):
            s = sum(x[t] @ block["node"][:, k] for t, k in enumerate(y))
            s += sum(block["transition"][a, b] for a, b in itertools.pairwise(y))
            table.append((y, s))
        return table

    def value(pair):
        w = np.ascontiguousarray(pair[:dim] - pair[dim:])
        total = 0.0
        for x, y in zip(X, Y):
            table = scores(w, np.column_stack([x, np.ones(len(x))]))
            total += logsumexp([s for _, s in table]) - dict(table)[tuple(y)]
        penalty = ratio * pair.sum() + 0.5 * (1 - ratio) * w @ w
        return total / len(X) + alpha * penalty

    return value


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_the_optimum_over_all_labels(ratio):
    X, Y = sequences(2)
    structure = get_structure("chain", start_end=False)
    space, examples = structure.make_space(X, Y)
    problem = Problem(space, examples, surrogate="crf")
    value = over_all_labels(problem, X, Y, 0.05, ratio)
    start = np.full(2 * problem.dim, 1e-3)
    best = minimize(value, start, method="L-BFGS-B", bounds=[(0, None)] * len(start), tol=1e-12)
    model = StructuredSVM(
        structure, surrogate="crf", solver=LBFGS(ratio), alpha=0.05, tol=1e-8, max_iter=1000
    ).fit(X, Y)
    last = model.history_[-1]
    assert last["dual"] <= best.fun + 1e-9
    assert last["primal"] == pytest.approx(best.fun, rel=1e-6)


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_a_pass_of_many_steps_is_these_steps(ratio):
    X, Y = sequences(3)
    space, examples = get_structure("chain").make_space(X, Y)

    def begun(steps):
        problem = Problem(space, examples, surrogate="crf")
        solver, rng = LBFGS(ratio, steps=steps), np.random.default_rng(0)
        return solver.start(Start(problem, 0.01, rng, tol=1e-6))

    one, four = begun(1), begun(4)
    for _ in range(60):
        record, calls = four.step(), 0
        for _ in range(4):
            alone = one.step()
            calls += alone["oracle_calls"]
            if alone["gap"] <= 1e-6 * alone["primal"] or alone["settled"]:
                break
        assert record == {**alone, "oracle_calls": calls}
        assert np.array_equal(one.weights(), four.weights())
        if alone["gap"] <= 1e-6 * alone["primal"] or alone["settled"]:
            return
    raise AssertionError(f"a gap of {record['gap']} is left")


def test_only_an_l1_norm_settles():
    """Columns of unequal sizes: the gap closes long after ten steps gain nearly nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    y = X[:, 0] + rng.normal(size=300) > 0
    X *= 10.0 ** -rng.uniform(0, 2, 20)
    for ratio, reason in ((0.0, "converged"), (1.0, "settled")):
        model = StructuredSVM("multiclass", surrogate="crf", solver=LBFGS(ratio), max_iter=1000)
        model.set_params(alpha=1e-6, tol=0.01).fit(X, y)
        assert model.stop_reason_ == reason
        primals = [record["primal"] for record in model.history_]
        slow = [k for k in range(10, len(primals)) if primals[k - 10] < primals[k] * 1.0001]
        assert slow and (ratio == 1 or slow[0] < len(primals) - 1)


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_certificates(ratio):
    for seed in range(10):
        X, Y = sequences(seed)
        model = chain(ratio, alpha=10.0 ** -(seed % 4), tol=1e-6).fit(X, Y)
        primals = [record["primal"] for record in model.history_]
        assert model.stop_reason_ == "converged" or (ratio == 1 and model.stop_reason_ == "settled")
        assert (np.diff(primals) <= 0).all()
        # No dual of any pass exceeds the primal of any pass.
        assert max(record["dual"] for record in model.history_) <= min(primals) * (1 + 1e-9)


@pytest.mark.parametrize("ratio", [0.0, 0.2, 0.9, 1.0])
def test_duals_are_the_best_shares_of_a_cut(ratio):
    rng = np.random.default_rng(3)
    space, examples = get_structure("chain").make_space(*sequences(3))
    problem = Problem(space, examples, surrogate="crf")
    for _ in range(30):
        alpha = float(10 ** rng.uniform(-3, 1))
        run = LBFGS(l1_ratio=ratio).start(Start(problem, alpha, rng))
        g, b = rng.normal(size=problem.dim) * rng.integers(2, size=problem.dim), rng.uniform(-1, 3)
        l1, l2 = alpha * ratio, alpha * (1 - ratio)
        best = 0.0
        for t in np.linspace(0, 1, 501):
            beyond = np.maximum(np.abs(t * g) - l1, 0)
            if l2 == 0:
                conjugate = 0.0 if (beyond <= 0).all() else np.inf
            else:
                conjugate = beyond @ beyond / (2 * l2)
            best = max(best, t * b - conjugate)
        assert best - 1e-9 <= run._dual(g, b) <= best + 4e-3 * max(b, 0)


def inverse_by_pairs(pairs):
    """The inverse Hessian of BFGS from a multiple of the identity, as a matrix."""
    pairs = [(s, y) for s, y in pairs if s @ y > 1e-16 * (y @ y)]
    if not pairs:
        return None
    s, y = pairs[-1]
    inverse = s @ y / (y @ y) * np.eye(len(s))
    for s, y in pairs:
        left = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    return inverse


@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
def test_directions_have_the_curvature_among_the_free_weights(ratio):
    rng = np.random.default_rng(11)
    space, examples = get_structure("chain").make_space(*sequences(3))
    problem = Problem(space, examples, surrogate="crf")
    run = LBFGS(l1_ratio=ratio).start(Start(problem, 0.1, rng))
    usable = 0
    for case in range(300):
        free = slice(None)
        if ratio > 0:
            free = np.sort(rng.choice(problem.dim, rng.integers(1, problem.dim), replace=False))
        slopes = rng.normal(size=problem.dim)[free]
        moves = [rng.normal(size=problem.dim) for _ in range(case % 4)]
        turns = [move + 0.5 * rng.normal(size=problem.dim) for move in moves]
        if ratio > 0:  # some steps changed none of the weights that are free now
            for move in moves[:1]:
                move[free] *= rng.integers(2)
        inverse = inverse_by_pairs([(s[free], y[free]) for s, y in zip(moves, turns)])
        run.forget()
        for move, turn in zip(moves, turns):
            unit = 10.0 ** rng.integers(-150, 150)
            run._past.add(unit * move, unit * turn)
        expected = -slopes / np.linalg.norm(slopes) if inverse is None else -inverse @ slopes
        if ratio > 0:
            expected = np.where(expected * slopes < 0, expected, 0)
        usable += inverse is not None
        np.testing.assert_allclose(run._direction(slopes, free), expected, rtol=1e-7, atol=1e-9)
    assert 150 < usable < 300


@pytest.mark.parametrize("dim", [LONG - 1, LONG])
def test_long_vectors_are_kept_in_single_precision(dim):
    rng = np.random.default_rng(dim)
    past, double = Curvature(3, dim), Curvature(3, 1)
    assert past.dtype == (np.float32 if dim == LONG else np.float64)
    for _ in range(5):
        move = 10.0 ** rng.uniform(-3, 0, dim) * rng.normal(size=dim)
        turn = (1 + rng.random(dim)) * move
        past.add(1e-30 * move, 1e-30 * turn)  # squares are below the least single number
        double.add(1e-30 * move, 1e-30 * turn)
    assert len(past) == 3 and past.nbytes == 6 * dim * past.dtype.itemsize
    for free in (slice(None), np.flatnonzero(rng.random(dim) < 0.3)):
        slopes = 1e-25 * rng.normal(size=dim)[free]
        way, expected = past.direction(slopes, free), double.direction(slopes, free)
        assert way.dtype == np.float64 and way @ slopes < 0
        error = np.linalg.norm(way - expected) / np.linalg.norm(expected)
        assert error < (1e-5 if dim == LONG else 1e-12)
    # A checkpoint gives the same directions, to the bit; so does one of double precision.
    again, arrays = Curvature(3, dim), past.to_arrays()
    for dtype in (past.dtype, np.float64):
        moves, turns = (
            [arrays[f"{kind}_{k}"].astype(dtype) for k in range(3)] for kind in ("move", "turn")
        )
        again.restore(past.units, moves, turns)
        assert np.array_equal(again.direction(slopes, free), way)
    past.forget()
    np.testing.assert_allclose(np.linalg.norm(past.direction(slopes, free)), 1, rtol=1e-6)


def test_many_weights_reach_the_optimum_and_go_on_bit_for_bit(tmp_path):
    rng = np.random.default_rng(8)
    X = sp.random(200, LONG // 3, 3e-4, "csr", random_state=8)
    y = rng.integers(0, 4, 200)
    model = StructuredSVM("multiclass", surrogate="crf", solver=LBFGS(), alpha=1e-3, tol=1e-8)
    whole = clone(model).fit(X, y)
    assert whole.flat_weights().size > LONG and whole.stop_reason_ == "converged"
    other = clone(model).set_params(solver="gbcfw", tol=1e-6, max_iter=3000).fit(X, y)
    ends = [m.history_[-1] for m in (whole, other)]
    assert ends[0]["primal"] == pytest.approx(ends[1]["primal"], rel=2e-6)
    path = tmp_path / "run"
    with pytest.warns(ConvergenceWarning):
        clone(model).set_params(max_iter=5, checkpoint=path).fit(X, y)
    resumed = clone(model).set_params(checkpoint=path).fit(X, y)
    assert np.array_equal(whole.flat_weights(), resumed.flat_weights())


def test_stronger_penalties_leave_fewer_weights():
    X, Y = sequences(4, n=30)
    counts = [
        chain(1.0, alpha=alpha, tol=1e-5).fit(X, Y).history_[-1]["nonzero"]
        for alpha in (1e-3, 1e-2, 1e-1, 10.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 0


def test_threads_weights_and_checkpoints(tmp_path):
    X, Y = sequences(5, n=20)
    plain = chain(0.5, alpha=0.01, tol=1e-9).fit(X, Y)
    threads = chain(0.5, alpha=0.01, tol=1e-9, n_jobs=3).fit(X, Y)
    assert np.array_equal(plain.flat_weights(), threads.flat_weights())
    # Two copies of an example equal an example of weight two.
    weights = np.ones(len(X))
    weights[1] = 2
    once = chain(0.5, alpha=0.01, tol=1e-9).fit(X, Y, sample_weight=weights)
    twice = chain(0.5, alpha=0.01, tol=1e-9).fit([*X, X[1]], [*Y, Y[1]])
    np.testing.assert_allclose(once.flat_weights(), twice.flat_weights(), atol=1e-4)
    # Killed after five passes, and resumed.
    path = tmp_path / "run"
    with pytest.warns(ConvergenceWarning):
        chain(0.5, alpha=0.01, tol=1e-9).set_params(max_iter=5, checkpoint=path).fit(X, Y)
    resumed = chain(0.5, alpha=0.01, tol=1e-9, checkpoint=path).fit(X, Y)
    assert np.array_equal(plain.flat_weights(), resumed.flat_weights())


def test_warm_starts_at_another_alpha():
    X, Y = sequences(6, n=20)
    model = chain(1.0, alpha=0.1, tol=1e-7, warm_start=True).fit(X, Y)
    model.set_params(alpha=0.01).fit(X, Y)
    cold = chain(1.0, alpha=0.01, tol=1e-7).fit(X, Y)
    assert model.history_[-1]["primal"] == pytest.approx(cold.history_[-1]["primal"], rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"surrogate": "margin"}, "needs a smooth surrogate, and 'margin'"),
        ({"surrogate": "sparsemap"}, "needs a smooth surrogate"),
        ({"surrogate": "max-min"}, "needs a smooth surrogate"),
        ({"surrogate": "probloss"}, "needs a surrogate that is convex|needs a smooth surrogate"),
        ({"solver": LBFGS(l1_ratio=1.5)}, "l1_ratio is 1.5, expected a number from 0 to 1"),
        ({"solver": LBFGS(memory=0)}, "memory is 0, expected an integer >= 1"),
        ({"solver": LBFGS(steps=0)}, "steps is 0, expected an integer >= 1"),
        ({"structure": "multiclass", "kernel": "rbf"}, "moves weights of features"),
    ],
)
def test_what_it_cannot_take(settings, match):
    X, Y = sequences(7)
    model = chain(0.0).set_params(**settings)
    if "structure" in settings:
        X, Y = classes(7)
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y)


def test_the_zero_model_where_features_say_nothing():
    X, Y = [np.zeros((2, 1))] * 4, [[0, 1], [1, 0], [0, 0], [1, 1]]
    model = chain(1.0, alpha=1.0).fit(X, Y)
    assert model.stop_reason_ == "converged" and not model.flat_weights().any()
