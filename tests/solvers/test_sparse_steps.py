"""Costs that follow non-zeros: sums of rises of the dual, columns without entries."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import structsolve
from structsolve.plugins.dag import DagStructure
from structsolve.solvers import BCFW, ConsensusADMM
from structsolve.solvers.run import Start
from structsolve.structure.used_columns import narrowed, widened, with_used_columns

KINDS = ["multiclass", "multilabel", "dag", "chain", "shared"]


def made(kind, rng, n=12, columns=9, ones=False):
    """Sparse rows with empty rows and columns, and their labels, for one kind of dual variables."""
    dense = rng.normal(size=(n, columns)) * (rng.random((n, columns)) < 0.4)
    dense[:, ::3] = 0
    dense[0] = 0
    X = sp.csr_matrix(np.sign(dense) if ones else dense)
    if kind == "multiclass":
        return kind, X, rng.integers(0, 4, n)
    if kind in ("chain", "shared"):
        ends = range(0, n, 3)
        y = rng.integers(0, 3, n)
        return "chain", [X[k : k + 3] for k in ends], [y[k : k + 3] for k in ends]
    Y = rng.integers(0, 2, (n, 4))
    if kind == "multilabel":
        return structsolve.get_structure(kind, edges="none"), X, Y
    for child, parent in ((3, 1), (3, 2), (1, 0), (2, 0)):
        Y[:, parent] |= Y[:, child]
    graph = nx.DiGraph([(0, 1), (0, 2), (1, 3), (2, 3)])
    return DagStructure(graph), X, Y


def started(kind, seed, solver, alpha):
    rng = np.random.default_rng(seed)
    structure, X, Y = made(kind, rng, ones=seed % 2 == 0)
    structure = structsolve.get_structure(structure)
    space, examples = structure.make_space(X, Y)
    problem = structsolve.Problem(space, examples, gram=kind != "shared")
    return solver.start(Start(problem, alpha, rng))


@pytest.mark.parametrize("steps", ["auto", "pairwise", "frank-wolfe"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_rises_of_the_dual_add_up(kind, batch, steps):
    for seed in range(6):
        run = started(kind, seed, BCFW(steps=steps, batch=batch), (1e-3, 0.1, 10.0)[seed % 3])
        for loop in [r.loop for r in getattr(run, "runs", [run])]:
            order = np.arange(loop.gaps.shape[0])
            for full in (True, False, True, False):
                loop.rise, before = 0.0, loop.b_total - loop.alpha / 2 * loop.w @ loop.w
                if hasattr(loop, "known_values"):
                    loop.run(
                        order,
                        int(full) * 2,
                        max_steps=5,
                        pairwise=steps != "frank-wolfe",
                        averaging=True,
                        batch=batch,
                    )
                else:
                    loop.run(order, full, 0.0)
                after = loop.b_total - loop.alpha / 2 * loop.w @ loop.w
                assert loop.rise >= 0
                assert loop.rise == pytest.approx(after - before, abs=1e-9 * max(1, abs(after)))


def test_a_shard_sums_its_rises():
    run = started("chain", 1, ConsensusADMM(n_shards=2), 0.01)
    for _ in range(3):
        run.step()
    for shard in run.engine.shards:
        loop = shard.loop
        before = loop.b_total - loop.alpha / 2 * loop.w @ loop.w
        shard._run(shard.picks, 1, 10, 0.0)
        after = loop.b_total - loop.alpha / 2 * loop.w @ loop.w
        assert loop.rise == pytest.approx(after - before, abs=1e-9)


def unfitted(kind, spread, solver="bcfw", **settings):
    """An estimator, data on a few columns or on the same ones among a hundred, and their places."""
    rng = np.random.default_rng(3)
    structure, X, Y = made(kind, rng, n=30, columns=10)
    rows = sp.vstack(X).tocsr() if isinstance(X, list) else X
    used = np.unique(rows.indices)
    places = np.sort(rng.choice(100, len(used), replace=False))

    def moved(rows):
        columns = np.searchsorted(used, rows.indices)
        columns, width = (places[columns], 100) if spread else (columns, len(used))
        return sp.csr_matrix((rows.data, columns, rows.indptr), (rows.shape[0], width))

    X = [moved(x) for x in X] if isinstance(X, list) else moved(X)
    settings = {"alpha": 0.05, "max_iter": 12, "random_state": 0} | settings
    return structsolve.StructuredSVM(structure, solver=solver, **settings), X, Y, places


def check_same(model, small, places):
    """The weights of columns at these places are those of the small model; all others are 0."""
    rows = model.space_.layout.node_block(model.flat_weights())
    kept = [*places, *range(100, len(rows))]
    own = small.space_.layout.node_block(small.flat_weights())
    np.testing.assert_array_equal(rows[kept], own)
    assert not np.delete(rows, kept, axis=0).any()
    start = model.space_.layout.node_start
    np.testing.assert_array_equal(model.flat_weights()[:start], small.flat_weights()[:start])
    for one, other in zip(model.history_, small.history_, strict=True):
        for name in ("primal", "dual", "oracle_calls", "validation_score"):
            assert one.get(name) == other.get(name)


@pytest.mark.parametrize("solver", ["bcfw", "sgd", "cutting-plane", "admm", "gbcfw", "lbfgs"])
@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "chain", "dag"])
def test_empty_columns_change_nothing(kind, solver):
    seen, settings = [], {"surrogate": "crf"} if solver in ("gbcfw", "lbfgs") else {}
    if settings and kind == "dag":
        settings, solver = {"surrogate": "sparsemap"}, "gbcfw"
    small, X, Y, _ = unfitted(kind, False, solver, **settings)
    small.fit(X, Y)
    settings["callbacks"] = [lambda record: seen.append(record["weights"]())]
    model, wide_X, _, places = unfitted(kind, True, solver, **settings)
    model.fit(wide_X, Y)
    check_same(model, small, places)
    np.testing.assert_array_equal(seen[-1], model.flat_weights())
    assert model.n_features_in_ == 100
    assert model.score(wide_X, Y) == small.score(X, Y)


@pytest.mark.parametrize("scaled", [False, "std", "max-abs"])
def test_checkpoints_warm_starts_and_validation_with_empty_columns(tmp_path, scaled):
    models = []
    for spread in (False, True):
        model, X, Y, places = unfitted("chain", spread, scale_features=scaled)
        file = str(tmp_path / f"state {spread}")
        model.set_params(checkpoint=file, max_iter=5).fit(X, Y)
        model.set_params(max_iter=12).fit(X, Y)
        models.append(model)
        # The run, then the weights alone, go on.
        model, *_ = unfitted("chain", spread, scale_features=scaled, warm_start=True, tol=1e-9)
        models.append(model.fit(X, Y).set_params(alpha=0.01).fit(X, Y))
        model, *_ = unfitted("chain", spread, scale_features=scaled, warm_start=True, tol=1e-9)
        models.append(model.fit(X, Y).set_params(solver="sgd", max_iter=1).fit(X, Y))
        model, *_ = unfitted("chain", spread, scale_features=scaled, early_stopping=True)
        models.append(model.fit(X, Y))
    for small, model in zip(models[:4], models[4:], strict=True):
        check_same(model, small, places)


@pytest.mark.parametrize("width", [100, 200])
def test_warm_starts_notice_other_columns(width):
    seen = []
    model, X, Y, places = unfitted("multiclass", True, warm_start=True)
    model.fit(X, Y)
    moved = sp.csr_matrix((X.data, width - 1 - X.indices, X.indptr), (X.shape[0], width))
    callbacks = [lambda record: seen.append(record["weights"]())]
    model.set_params(callbacks=callbacks).fit(moved, Y)
    assert seen[-1].shape == model.flat_weights().shape
    np.testing.assert_array_equal(seen[-1], model.flat_weights())
    assert model.coef_["node"][width - 1 - places].any(axis=1).all()
    # Columns in another order would be seen too: here the same entries are in other places.
    shifted = sp.csr_matrix((X.data, X.indices + width - 100, X.indptr), (X.shape[0], width))
    model.fit(shifted, Y)
    assert model.coef_["node"][places + width - 100].any(axis=1).all()
    np.testing.assert_array_equal(seen[-1], model.flat_weights())


@pytest.mark.parametrize("kind", ["multiclass", "chain", "dag"])
def test_operators_see_all_columns(kind):
    model, X, Y, places = unfitted(kind, True)
    space, examples = structsolve.get_structure(model.structure).make_space(X, Y)
    narrow, left = with_used_columns(space, examples)
    assert narrow.layout.n_features == len(places) and left.nodes.shape[1] == len(places)
    problem = structsolve.Problem(narrow, left)
    assert (problem.task.examples.nodes != examples.nodes).nnz == 0
    assert problem.task.examples.nodes.shape == examples.nodes.shape
    w = np.zeros(narrow.layout.dim)
    rows = narrow.layout.node_block(w)
    rows[...] = np.random.default_rng(0).normal(size=rows.shape)
    np.testing.assert_array_equal(narrowed(narrow, widened(narrow, w)), w)


def test_few_empty_columns_and_dense_rows_stay():
    rng = np.random.default_rng(0)
    for X in (sp.csr_matrix(np.eye(6)[:4]), np.eye(6, 3) + 1.0):
        y = rng.integers(0, 2, X.shape[0])
        space, examples = structsolve.get_structure("multiclass").make_space(X, y, classes=[0, 1])
        assert with_used_columns(space, examples)[0] is space
    empty = sp.csr_matrix((4, 6))
    model = structsolve.StructuredSVM("multiclass").fit(empty, [0, 1, 1, 1])
    assert model.coef_["node"].shape[0] >= 6 and model.predict(empty).tolist() == [1] * 4


def test_constraints_name_all_columns():
    from structsolve.solvers.weight_constraints import WeightBounds

    model, X, Y, places = unfitted("multiclass", True)
    unused = int(np.setdiff1d(np.arange(100), places)[0])
    bounds = [WeightBounds("node", lower=-0.01, upper=0.01)]
    model.set_params(solver=BCFW(constraints=bounds)).fit(X, Y)
    assert np.abs(model.coef_["node"]).max() <= 0.01 + 1e-9
    assert not model.coef_["node"][unused].any()
