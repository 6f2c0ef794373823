"""Interior-point steps: Newton systems by brute force, other solvers' optima, certificates."""

import numpy as np
import pytest
import scipy.sparse as sp
import steady
from data import data_file, needs_data
from sklearn.exceptions import ConvergenceWarning

from structsolve import CostMatrix, StructuredSVM, get_structure
from structsolve.plugins.multiclass import InteriorPoint
from structsolve.plugins.multiclass.class_rows import ClassRows
from structsolve.plugins.ordinal import OrdinalStructure
from structsolve.solvers import BCFW, CuttingPlane, choose_solver
from structsolve.solvers.problem import Problem
from structsolve.solvers.run import Start
from structsolve.structure import calls
from structsolve.testing import check_solver

THRESHOLDS = OrdinalStructure(thresholds=True)


def rows(seed, n=30, K=4, d=3):
    """Return features with ties, and classes without gaps."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)) + (seed % 2) * rng.normal(size=(n, d))
    return X, np.append(np.arange(K), rng.integers(0, K, n - K))


def put_together(structure, X, y, loss="hamming", **settings):
    return Problem(*get_structure(structure).make_space(X, y), loss, **settings)


@pytest.mark.parametrize("structure", ["multiclass", THRESHOLDS])
def test_the_kit_of_solvers(structure):
    check_solver(InteriorPoint(), structure, size=6)


@pytest.mark.parametrize("structure", ["multiclass", "ordinal", THRESHOLDS])
def test_scores_sums_and_systems_by_brute_force(structure):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        K = 1 + seed % 5
        X, y = rows(seed, n=8, K=K)
        problem = put_together(
            structure, X, y, "zero-one" if structure == "multiclass" else "absolute"
        )
        classes = ClassRows(problem)
        n, m = len(X), classes.shared
        truths = classes.truths
        x = np.hstack([X, np.ones((n, 1))]) if problem.space.layout.intercept else X
        psi = np.array(
            [
                [
                    np.concatenate([a[:m], np.outer(x[i], a[m:]).ravel()])
                    for a in classes.A - classes.A[truths[i]]
                ]
                for i in range(n)
            ]
        )
        v, q = rng.normal(size=psi.shape[2]), rng.random((n, K))
        np.testing.assert_allclose(classes.scores(v), psi @ v, atol=1e-12)
        each = np.arange(K, dtype=np.int32)[:, None]
        given = truths.astype(np.int32)[:, None]
        losses = [[calls.loss_value(problem.loss, i, given[i], k) for k in each] for i in range(n)]
        np.testing.assert_allclose(classes.losses, losses, atol=1e-12)
        u = problem.weights
        np.testing.assert_allclose(
            classes.gather(q), np.einsum("i,ik,ikt->t", u, q, psi), atol=1e-12
        )
        D = rng.random((n, K)) ** 8
        away = psi - (np.einsum("ik,ikt->it", D, psi) / D.sum(axis=1)[:, None])[:, None]
        system = np.einsum("i,ik,iks,ikt->st", u, D, away, away)
        np.testing.assert_allclose(classes.matrix(D), system, atol=1e-12)
        # One class of each row outweighs all others; the others' small terms are not lost.
        D[np.arange(n), rng.integers(0, K, n)] += 1e12
        H = classes.matrix(D)
        spread = np.linalg.eigvalsh(H)
        assert spread.min() >= -1e-9 * max(1.0, spread.max()) and spread.max() < 1e4


@pytest.mark.parametrize("structure", ["multiclass", "ordinal", THRESHOLDS])
def test_optima_are_those_of_frank_wolfe(structure):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        K = 2 + seed % 4
        X, y = rows(seed, K=K)
        cost = rng.integers(0, 4, (K, K)) * (1.0 - np.eye(K))
        loss = ["hamming", CostMatrix(cost)][seed % 2]
        weights = rng.integers(0, 3, len(X)) if seed % 3 else None
        given = sp.csr_matrix(X) if seed % 4 == 1 else X
        settings = {"loss": loss, "alpha": 10.0 ** -(seed % 3), "tol": 1e-5, "max_iter": 500}
        by_blocks, model = (
            StructuredSVM(structure, solver=s, **settings).fit(given, y, sample_weight=weights)
            for s in (BCFW(max_steps=31), InteriorPoint())
        )
        assert by_blocks.solver_.name == "bcfw" and model.stop_reason_ == "converged"
        last, other = model.history_[-1], by_blocks.history_[-1]
        assert last["primal"] == pytest.approx(other["primal"], rel=1e-4, abs=1e-9)
        assert last["dual"] <= other["primal"] + 1e-9 and other["dual"] <= last["primal"] + 1e-9


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-6])
def test_gaps_close_in_few_passes_at_any_alpha(alpha):
    for seed in range(8):
        X, y = rows(seed, n=60, K=3 + seed % 3)
        model = StructuredSVM(THRESHOLDS, loss="absolute", alpha=alpha, tol=1e-8).fit(X, y)
        assert model.solver_.name == "interior-point" and model.stop_reason_ == "converged"
        assert len(model.history_) <= 40
        primals, duals = ([r[name] for r in model.history_] for name in ("primal", "dual"))
        assert (np.diff(primals) <= 0).all() and (np.diff(duals) >= 0).all()
        w = model.flat_weights()
        problem = put_together(THRESHOLDS, X, y, "absolute")
        assert problem.primal(w, alpha)[0] == pytest.approx(primals[-1], rel=1e-12)


def test_one_class_and_no_features_that_tell():
    one = StructuredSVM(THRESHOLDS, solver="interior-point").fit([[1.0], [2.0]], [4, 4])
    assert one.predict([[0.0]]).tolist() == [4] and one.history_[-1]["gap"] == 0
    X, y = np.zeros((6, 2)), [0, 1, 2] * 2
    assert StructuredSVM(THRESHOLDS, loss="absolute", tol=1e-6).fit(X, y).stop_reason_ == (
        "converged"
    )


def test_which_problems_are_handed_over():
    X, y = rows(0)
    problem = put_together(THRESHOLDS, X, y, "absolute")
    assert choose_solver(BCFW(), problem).name == "interior-point"
    for solver in (BCFW(steps="pairwise"), BCFW(sampling="gap"), BCFW(batch=4)):
        assert choose_solver(solver, problem) is solver
    for others in (
        put_together("ordinal", X, y, "absolute"),
        put_together("multiclass", X, y),
        put_together(THRESHOLDS, X, y, "absolute", surrogate="sparsemap"),
        put_together(THRESHOLDS, np.zeros((30, 4000)), y, "absolute"),
    ):
        assert choose_solver(BCFW(), others).name == "bcfw"


@pytest.mark.parametrize(
    ("structure", "settings"),
    [
        ("chain", {}),
        ("multiclass", {"surrogate": "slack"}),
        ("multiclass", {"surrogate": "sparsemap"}),
        ("multiclass", {"penalize_intercept": False}),
        ("multiclass", {"kernel": "rbf"}),
    ],
)
def test_what_it_cannot_take(structure, settings):
    X, y = rows(1)
    if structure == "chain":
        X, y = [X], [y]
    expected = "rows with one of K classes|intercept unpenalised|moves weights of features"
    with pytest.raises(ValueError, match=expected):
        StructuredSVM(structure, solver=InteriorPoint(), **settings).fit(X, y)


def test_runs_go_on_from_checkpoints(tmp_path):
    X, y = rows(3, n=50)
    settings = {"loss": "absolute", "alpha": 1e-3, "tol": 1e-9}
    plain = StructuredSVM(THRESHOLDS, **settings).fit(X, y)
    path = tmp_path / "run"
    with pytest.warns(ConvergenceWarning):
        StructuredSVM(THRESHOLDS, checkpoint=path, max_iter=5, **settings).fit(X, y)
    resumed = StructuredSVM(THRESHOLDS, checkpoint=path, n_jobs=2, **settings).fit(X, y)
    assert np.array_equal(plain.flat_weights(), resumed.flat_weights())
    run = InteriorPoint().start(
        Start(put_together(THRESHOLDS, X, y), 1e-3, np.random.default_rng(0))
    )
    meta, arrays = run.state()
    with pytest.raises(ValueError, match="q: found the shape"):
        run.restore(meta, {**arrays, "q": arrays["q"][1:]})
    with pytest.raises(ValueError, match="not above 0"):
        run.restore(meta, {**arrays, "s": arrays["s"] - 10})


def test_paths_over_alpha_and_warm_starts():
    X, y = rows(4, n=50)
    model = StructuredSVM(THRESHOLDS, loss="absolute", tol=1e-7, warm_start=True)
    for alpha in (1.0, 0.1, 1e-3):
        model.set_params(alpha=alpha).fit(X, y)
        cold = StructuredSVM(THRESHOLDS, loss="absolute", alpha=alpha, tol=1e-7).fit(X, y)
        assert model.history_[-1]["primal"] == pytest.approx(cold.history_[-1]["primal"], rel=1e-6)
    run = InteriorPoint().start(
        Start(put_together(THRESHOLDS, X, y, "absolute"), 1.0, np.random.default_rng(0))
    )
    run.step()
    run.continue_at(1e-3)
    for _ in range(30):
        record = run.step()
    assert record["primal"] == pytest.approx(model.history_[-1]["primal"], rel=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_it_tells_when_rounding_has_the_upper_hand():
    """At the limit of precision passes keep the result, and say why no further one helps."""
    X, y = rows(5, n=40)
    problem = put_together(THRESHOLDS, X, y, "absolute")
    run = InteriorPoint().start(Start(problem, 1e-3, np.random.default_rng(0), tol=-1.0))
    records = [run.step() for _ in range(100)]
    assert any("failed" in record for record in records)
    assert all("scale the features" in r["failed"] for r in records if "failed" in r)
    last = records[-1]
    assert last["gap"] <= 1e-10 * last["primal"] and np.isfinite(run.weights()).all()
    assert problem.primal(run.weights(), 1e-3)[0] == pytest.approx(last["primal"], rel=1e-12)


def test_steps_that_would_go_round_end():
    """Mehrotra's steps alone cycled through four points, at a gap of .021."""
    X = [[-2.99866803, -1.42592751], [-6.31969043, -3.60255735]]
    X += [[5.33084793, 1.52384583], [-3.73469187, -4.52676063]]
    model = StructuredSVM(
        "multiclass",
        loss=CostMatrix([[0, 1, 4], [2, 0, 0.5], [1, 3, 0]]),
        alpha=0.06134533107603021,
        tol=1e-6,
        solver="interior-point",
    ).fit(X, [0, 1, 2, 0])
    assert model.stop_reason_ == "converged" and len(model.history_) < 20
    other = model.history_[-1]["primal"]
    model.set_params(solver="cutting-plane", max_iter=500).fit(X, [0, 1, 2, 0])
    assert model.history_[-1]["primal"] == pytest.approx(other, rel=1e-5)


def test_no_random_fit_stands_still():
    """A sample of `.ci/steady`."""
    for seed in range(150):
        given, settings = steady.case(seed)
        model, still = steady.fit(given, settings)
        assert not still, (seed, model.stop_reason_, model.history_[-1])


@pytest.mark.parametrize(
    "spoil, turns",
    [
        (lambda X: X, False),
        (lambda X: X + 3.0, False),
        (lambda X: X + 1e4, True),  # nearly mixtures of the thresholds
        (lambda X: X * [1e4, 1, 1], True),
        (lambda X: np.hstack([X, X[:, :1] + 1e-5 * X[:, 1:2]]), True),
        (lambda X: np.hstack([X, 0 * X]), True),
    ],
)
def test_directions_are_turned_where_products_lose_digits(spoil, turns):
    X, y = rows(3, n=60)
    problem = put_together(THRESHOLDS, spoil(X), y, "absolute")
    classes = ClassRows(problem)
    assert (classes.turned() is not classes) == turns
    run = InteriorPoint().start(Start(problem, 1e-3, np.random.default_rng(0)))
    last = [run.step() for _ in range(30)][-1]
    assert last["gap"] <= 1e-8 * last["primal"]
    other = CuttingPlane().start(Start(problem, 1e-3, np.random.default_rng(0)))
    least = [other.step() for _ in range(200)][-1]
    assert least["dual"] <= last["primal"] * (1 + 1e-9)
    assert last["dual"] <= least["primal"] * (1 + 1e-9)


@pytest.mark.parametrize("structure", ["multiclass", "ordinal", THRESHOLDS])
def test_newton_steps_of_random_fields(structure):
    """Optima equal those of L-BFGS, for any mean and scale of the features."""
    for seed in range(6):
        X, y = rows(seed, K=2 + seed % 4)
        alpha = 10.0 ** -(seed % 4)
        plain = StructuredSVM(structure, surrogate="crf", alpha=alpha, tol=1e-9)
        newton = plain.set_params(solver="interior-point").fit(X, y)
        assert newton.stop_reason_ == "converged" and len(newton.history_) < 20
        w, last = newton.flat_weights(), newton.history_[-1]
        other = StructuredSVM(
            structure, surrogate="crf", alpha=alpha, solver="lbfgs", tol=1e-9, max_iter=2000
        ).fit(X, y)
        assert last["primal"] == pytest.approx(other.history_[-1]["primal"], rel=1e-6)
        problem = put_together(structure, X, y, surrogate="crf")
        assert problem.primal(w, alpha)[0] == pytest.approx(last["primal"], rel=1e-12)
        raw = newton.set_params(tol=1e-5).fit(1e3 * X + 1e4, y)
        assert raw.stop_reason_ == "converged"


@needs_data
def test_random_fields_on_thresholds_of_real_rows():
    """Frank-Wolfe steps reached max_iter with gaps of 5.6 to 8 % and more."""
    with np.load(data_file("ord-machine", "data.npz")) as file:
        X, y = file["X"].astype(float), np.unique(file["y"], return_inverse=True)[1]
    for given in (X, (X - X.mean(axis=0)) / X.std(axis=0)):
        for alpha in (1e-2, 1e-3, 1e-6):
            model = StructuredSVM(THRESHOLDS, surrogate="crf", alpha=alpha).fit(given, y)
            assert model.solver_.name == "interior-point" and model.stop_reason_ == "converged"
            assert len(model.history_) <= 15


@pytest.mark.parametrize("surrogate", ["margin", "crf"])
@pytest.mark.parametrize("seed", range(6))
def test_weights_that_are_orders_of_magnitude_apart(seed, surrogate):
    """The central path follows them, so steps stay long."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 6
    weights = 10.0 ** rng.uniform(-6, 4, 60)
    settings = {"solver": "interior-point", "surrogate": surrogate, "alpha": 1e-6, "tol": 1e-5}
    model = StructuredSVM("multiclass", **settings).fit(X, y, sample_weight=weights)
    assert model.stop_reason_ == "converged" and model.n_iter_ <= 45
