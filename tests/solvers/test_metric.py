"""Metrics of consensus ADMM: scores of transformed features, and where they are chosen."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from solver_cases import begin, follow, make_case, narrow

import structsolve
from structsolve import Problem
from structsolve.potentials.calls import score
from structsolve.solvers import ConsensusADMM
from structsolve.solvers.metric import DENSER, FLOOR, SpectralMetric, moments
from structsolve.solvers.run import relative_gap


def rows_of(n, d, seed=0, kind="normal"):
    """Return rows of features, some directions of which vary much more than others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(3, 0.2, d) @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    if kind == "sparse":
        X = sp.csr_matrix(X * (rng.random(X.shape) < 0.3))
    return X.astype(np.float32) if kind == "float32" else X


def problem_of(X, seed=0, weights=None, sizes=None, **more):
    """Return chains of the rows, of random lengths, with random labels."""
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    cuts = np.unique(rng.integers(0, n, n // 3)) if sizes is None else np.cumsum(sizes)[:-1]
    bounds = [0, *cuts[cuts > 0], n]
    parts = [X[a:b] for a, b in zip(bounds, bounds[1:])]
    Y = [rng.integers(0, 3, part.shape[0]) for part in parts]
    structure = structsolve.get_structure("chain")
    space, examples = structure.make_space(parts, Y, classes=np.arange(3))
    examples.sample_weight = None if weights is None else weights[: len(parts)]
    return Problem(space, examples, **more)


def metric_of(problem):
    return SpectralMetric.of_moments(problem.space.layout, moments(problem))


@pytest.mark.parametrize("kind", ["normal", "sparse", "float32"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("n", [5, 9000])
def test_turned_weights_score_turned_features_as_before(kind, scaled, n):
    X = rows_of(n, 6, 1, kind)
    scale = np.array([0.5, 2.0, 0.0]) if scaled else None
    problem = problem_of(X, node_scale=scale)
    metric = metric_of(problem)
    w = np.random.default_rng(2).normal(size=problem.dim)
    own = metric.turned(w)
    np.testing.assert_allclose(metric.model(own), w, atol=1e-12)
    turned = metric.potentials(problem)
    assert metric.potentials(problem) is turned and turned.dim == problem.dim
    assert turned.has_gram == problem.potentials.has_gram
    for i in (0, problem.n // 2, problem.n - 1):
        expected, got = score(problem.potentials, i, w), score(turned, i, own)
        np.testing.assert_allclose(got, expected, atol=1e-5 if kind == "float32" else 1e-10)
    # ... and ||w||^2 is that of the squares, which the dual divides by.
    assert own @ (own * metric.squares) == pytest.approx(w @ w)
    g = np.random.default_rng(3).normal(size=problem.dim)
    assert g @ own == pytest.approx(metric._times(np.linalg.inv(metric.turn).T, g) @ w)


@pytest.mark.parametrize("kind", ["normal", "sparse", "float32"])
def test_moments_are_those_of_weighted_nodes(kind):
    X = rows_of(9000, 5, 4, kind)
    rng = np.random.default_rng(0)
    problem = problem_of(X, weights=rng.integers(0, 3, 9000).astype(float))
    got = moments(problem)
    dense = X.toarray() if kind == "sparse" else X.astype(float)
    weights = np.repeat(problem.weights, np.diff(problem.examples.offsets))
    assert got.mass == pytest.approx(weights.sum())
    np.testing.assert_allclose(got.total, weights @ dense, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        got.second, dense.T @ (weights[:, None] * dense), rtol=1e-4, atol=1e-5
    )


def test_the_covariance_is_brought_nearer_to_a_ball():
    X = rows_of(2000, 6)
    problem = problem_of(X, sizes=np.ones(2000, int))
    metric = metric_of(problem)
    before = np.linalg.eigvalsh(np.cov(X.T))
    after = np.linalg.eigvalsh(np.cov((X @ metric.turn).T))
    # Powers of 1 - 2 * .3 of the eigenvalues.
    assert after[-1] / after[0] == pytest.approx((before[-1] / before[0]) ** 0.4, rel=1e-3)
    assert np.exp(np.log(metric.squares[metric.layout.node_start :]).mean()) == pytest.approx(1)


def test_directions_without_variance_stay_as_they_are():
    X = rows_of(300, 4)
    X = np.hstack([X, np.ones((300, 1)), np.zeros((300, 1)), 1e-3 * np.sqrt(FLOOR) * X[:, :1]])
    metric = metric_of(problem_of(X, sizes=np.ones(300, int)))
    for column in (4, 5):
        axis = np.eye(7)[column]
        np.testing.assert_allclose(metric.turn @ (metric.turn.T @ axis), axis, atol=1e-6)
    assert np.count_nonzero(np.isclose((metric.turn**2).sum(axis=0), 1, atol=1e-12)) == 3
    nothing = metric_of(problem_of(np.ones((9, 2)), sizes=np.ones(9, int)))
    np.testing.assert_array_equal(nothing.squares, 1)


def test_without_nodes_of_any_weight_it_is_the_regularisers_own():
    X, Y = [np.eye(2), np.zeros((0, 2))], [["a", "b"], []]
    structure = structsolve.get_structure("chain", empty=True)
    space, examples = structure.make_space(X, Y)
    examples.sample_weight = np.array([0.0, 1.0])
    problem = Problem(space, examples)
    np.testing.assert_array_equal(metric_of(problem).squares, 1)
    history = follow(begin(ConsensusADMM(metric="spectral"), problem, 0.1), 1e-3, 20)
    assert np.isfinite(history[-1]["primal"])


@pytest.mark.parametrize("scale", [1e-160, 1e-30, 1e30])
def test_the_scale_of_the_features_changes_nothing(scale):
    X = rows_of(200, 4)
    one, other = (metric_of(problem_of(x, sizes=np.ones(200, int))) for x in (X, X * scale))
    if scale > 1e-100:
        np.testing.assert_allclose(np.abs(other.turn), np.abs(one.turn), rtol=1e-6)
    assert np.isfinite(other.turn).all() and (other.squares > 0).all()


def test_problems_without_features_and_with_very_many_are_refused():
    words = "metric='spectral' needs node features, at most 1024, found 0"
    structure = structsolve.get_structure(
        "functions",
        features=lambda x, y: np.outer(np.arange(2) == y, x).ravel(),
        oracle=lambda w, x, y=None: 1 if y is None else 1 - y,
        loss=lambda y, z: float(y != z),
        dim=4,
    )
    problem = Problem(*structure.make_space(np.eye(2), [0, 1]))
    refused(words, begin, ConsensusADMM(metric="spectral"), problem, 0.1)
    begin(ConsensusADMM(metric="auto"), problem, 1e-9).step()
    wide = problem_of(sp.random(9, 1025, 0.1, format="csr", random_state=0))
    refused("found 1025", begin, ConsensusADMM(metric="spectral"), wide, 0.1)


def test_auto_takes_it_where_alpha_is_small_and_rows_are_not_sparse():
    def chosen(X, alpha):
        run = begin(ConsensusADMM(metric="auto"), problem_of(X), alpha)
        return run.step()["metric"]

    dense = rows_of(90, 5)
    assert chosen(dense, 10.0) == "identity" and chosen(dense, 1e-6) == "spectral"
    sparse = sp.random(400, 900, 0.5 / (12 * DENSER), format="csr", random_state=0)
    assert chosen(sparse, 1e-9) == "identity"
    assert chosen(sp.random(90, 1025, 0.9, format="csr", random_state=0), 1e-9) == "identity"


def test_fewer_rounds_where_features_vary_differently():
    """At a fixed penalty, with a certificate each round, to the same tolerance."""
    problem = narrow()
    rounds = {}
    for metric in ("identity", "spectral"):
        solver = ConsensusADMM(metric=metric, penalty=50.0, certify_every=1)
        history = follow(begin(solver, problem, 3e-3, tol=1e-2), 1e-2, 200)
        assert relative_gap(history[-1]) <= 1e-2
        rounds[metric] = len(history)
    assert rounds["spectral"] <= 0.6 * rounds["identity"], rounds


def test_a_run_that_is_broken_off_begins_anew_in_its_metric():
    case = make_case("chain", n=12)
    run = begin(ConsensusADMM(3, metric="spectral", certify_every=1), case.problem, 0.05)
    run.step()
    run.torn = True
    records = follow(run, 1e-3, 200)
    assert relative_gap(records[-1]) <= 1e-3
    best = case.optimum(0.05).value
    assert all(record["dual"] <= best * (1 + 1e-7) for record in records)
    assert run.memory()["examples"] > case.problem.potentials.nbytes
