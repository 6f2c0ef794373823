"""Columns that occur in one row only, merged for training: the same optimum in fewer weights."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import structsolve
from structsolve.estimators import posing
from structsolve.potentials.calls import score
from structsolve.solvers import BCFW, LBFGS
from structsolve.structure.used_columns import (
    narrowed,
    widened,
    with_all_columns,
    with_used_columns,
)

WIDTH = 90
KINDS = ["multiclass", "multilabel", "dag", "chain"]


def rows_of(rng, n, dtype=np.float64, width=WIDTH):
    """Rows with entries in columns of their own, shared ones, and neither; some values are 0."""
    dense = np.zeros((n, width), dtype)
    free = rng.permutation(width)[: width // 2]
    for k in range(n):
        dense[k, free[k::n][: rng.integers(0, 4)]] = rng.normal(size=1) * [1, -2, 0.5][k % 3]
        some = rng.integers(0, width, rng.integers(0, 3))
        dense[k, some] = rng.normal(size=len(some))
    dense[:, rng.permutation(width)[:4]] = rng.integers(0, 2, (n, 4))
    X = sp.csr_matrix(dense)
    X.data[rng.random(X.nnz) < 0.1] = 0
    return X


def made(kind, rng, n=15, dtype=np.float64):
    """A structure, X and Y for it."""
    X = rows_of(rng, n, dtype)
    if kind == "multiclass":
        return kind, X, np.arange(n) % 3
    if kind == "chain":
        starts = range(0, n, 3)
        y = np.arange(n) % 2
        return kind, [X[k : k + 3] for k in starts], [y[k : k + 3] for k in starts]
    Y = rng.integers(0, 2, (n, 4))
    if kind == "multilabel":
        return structsolve.get_structure(kind, edges=[(0, 1)]), X, Y
    graph = nx.DiGraph([(0, 1), (0, 2), (1, 3)])
    return structsolve.get_structure("dag", hierarchy=graph, close=True), X, Y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_norms_and_rows_are_those_of_all_columns(kind, dtype):
    rtol = 1e-12 if dtype == np.float64 else 1e-6
    merges = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        structure, X, Y = made(kind, rng, dtype=dtype)
        space, examples = structsolve.get_structure(structure).make_space(X, Y)
        narrow, few = with_used_columns(space, examples)
        counts = np.bincount(examples.nodes.indices, minlength=WIDTH)
        assert few.nodes.shape[1] <= WIDTH / 2 and few.nodes.dtype == dtype
        merges += np.count_nonzero(counts) - few.nodes.shape[1]
        back = with_all_columns(narrow, few).nodes
        assert back.shape == examples.nodes.shape and back.has_sorted_indices
        np.testing.assert_array_equal(back.toarray(), examples.nodes.toarray())
        whole = structsolve.Problem(space, examples).potentials
        own = structsolve.Problem(narrow, few).potentials
        w, z = np.zeros(space.layout.dim), np.zeros(narrow.layout.dim)
        for v, layout in ((w, space.layout), (z, narrow.layout)):
            for block in layout.blocks:
                part = layout.view(v, block.name)
                part[...] = rng.normal(size=part.shape)
        wide = widened(narrow, z)
        assert wide @ wide == pytest.approx(z @ z, rel=rtol)
        np.testing.assert_allclose(narrowed(narrow, wide), z, rtol=0, atol=10 * rtol)
        shrunk = narrowed(narrow, w)
        assert shrunk @ shrunk <= w @ w * (1 + rtol)
        for i in range(examples.n):
            for large, small in ((wide, z), (w, shrunk)):
                np.testing.assert_allclose(
                    score(whole, i, large), score(own, i, small), rtol=0, atol=50 * rtol
                )
    assert merges > 20


def both(monkeypatch, kind, seed, **settings):
    """The model of merged columns and the model of all, of the same data."""
    models = []
    for merging in (True, False):
        with monkeypatch.context() as patch:
            if not merging:
                patch.setattr(posing, "with_used_columns", lambda space, rows, merge: (space, rows))
            structure, X, Y = made(kind, np.random.default_rng(seed))
            model = structsolve.StructuredSVM(structure, random_state=0, **settings).fit(X, Y)
            models.append(model)
    return (*models, X, Y)


@pytest.mark.parametrize("solver", ["bcfw", "sgd", "cutting-plane", "admm", "gbcfw", "lbfgs"])
@pytest.mark.parametrize("kind", KINDS)
def test_training_is_that_of_all_columns(monkeypatch, kind, solver):
    # Without equal scores SGD, too, takes the same steps.
    settings = {"surrogate": "crf"} if solver in ("gbcfw", "lbfgs", "sgd") else {}
    if settings and kind == "dag":
        settings, solver = {"surrogate": "sparsemap"}, "gbcfw"
    for seed, alpha in enumerate((0.3, 0.02, "auto")):
        merged, plain, X, _ = both(
            monkeypatch, kind, seed, solver=solver, alpha=alpha, tol=1e-9, max_iter=60, **settings
        )
        assert merged.alpha_ == pytest.approx(plain.alpha_, rel=1e-12)
        assert merged.n_features_in_ == WIDTH
        one, other = merged.history_[-1], plain.history_[-1]
        gap = max(one.get("gap") or 0, other.get("gap") or 0)
        assert one["primal"] == pytest.approx(other["primal"], rel=1e-6, abs=gap)
        a, b = merged.flat_weights(), plain.flat_weights()
        if one.get("gap") is None or solver == "sgd":
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
        else:  # alpha/2 ||a - b||^2 is at most twice the sum of the gaps
            gaps = max(one["gap"], 0) + max(other["gap"], 0)
            assert merged.alpha_ / 4 * (a - b) @ (a - b) <= gaps + 1e-9


@pytest.mark.parametrize("scaled", [False, "max-abs"])
def test_checkpoints_warm_starts_and_validation(monkeypatch, tmp_path, scaled):
    settings = {"alpha": 0.05, "tol": 1e-10, "max_iter": 300, "scale_features": scaled}
    merged, plain, X, Y = both(monkeypatch, "chain", 1, **settings)
    for form in ("run", "weights", "checkpoint", "validation"):
        model = structsolve.StructuredSVM("chain", random_state=0, **settings)
        if form == "checkpoint":
            model.set_params(checkpoint=str(tmp_path / "state"), max_iter=2).fit(X, Y)
            model.set_params(max_iter=300)
        elif form != "validation":
            model.set_params(warm_start=True, alpha=0.5).fit(X, Y)
            if form == "weights":
                model.set_params(solver="cutting-plane")
            model.set_params(alpha=0.05)
        if form == "validation":
            model.fit(X, Y, validation=(X, Y))
            assert model.history_[-1]["validation_score"] == plain.score(X, Y)
        else:
            model.fit(X, Y)
        for other in (merged, plain):
            np.testing.assert_allclose(model.flat_weights(), other.flat_weights(), atol=1e-4)


def test_what_is_merged():
    """Columns of one entry, where a row has several, and their squares keep all digits."""
    dense = np.zeros((6, 40))
    dense[0, :3] = [3.0, -4.0, 12.0]
    dense[1, 3:5] = [1.0, 1.0]
    dense[2, 5] = 2.0
    dense[3, 6:8] = [1e200, 1e200]
    dense[4, 8:10] = [1e-200, 1e-200]
    dense[:5, 10] = 1.0
    X = sp.csr_matrix(dense)
    space, examples = structsolve.get_structure("multiclass").make_space(X, [0, 1, 0, 1, 0, 1])
    narrow, few = with_used_columns(space, examples)
    expected = np.zeros((6, 8))
    expected[2, 0], expected[3, 1:3], expected[4, 3:5] = 2.0, 1e200, 1e-200
    expected[:5, 5] = 1.0
    expected[0, 6], expected[1, 7] = 13.0, np.sqrt(2)
    np.testing.assert_array_equal(few.nodes.toarray(), expected)
    np.testing.assert_array_equal(with_all_columns(narrow, few).nodes.toarray(), dense)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_an_l1_norm_merges_nothing(monkeypatch, ratio):
    solver = LBFGS(l1_ratio=ratio)
    settings = {"surrogate": "crf", "solver": solver, "alpha": 0.01, "tol": 1e-6}
    merged, plain, X, Y = both(monkeypatch, "chain", 3, **settings)
    assert not solver.squared_norm and LBFGS().squared_norm
    np.testing.assert_allclose(merged.flat_weights(), plain.flat_weights(), rtol=0, atol=1e-3)
    space, examples = structsolve.get_structure("chain").make_space(X, Y)
    used = np.unique(examples.nodes.indices)
    assert 0 < np.count_nonzero(merged.coef_["node"][used].any(axis=1)) < len(used)
    width = with_used_columns(space, examples, False)[1].nodes.shape[1]
    assert width == (len(used) if len(used) <= WIDTH / 2 else WIDTH)


def test_constraints_name_columns_before_merging():
    from structsolve.solvers.weight_constraints import WeightBounds

    structure, X, Y = made("multiclass", np.random.default_rng(0))
    solver = BCFW(constraints=[WeightBounds("node", lower=-0.01, upper=0.01)])
    model = structsolve.StructuredSVM(structure, solver=solver, alpha=1e-3).fit(X, Y)
    assert np.abs(model.coef_["node"]).max() <= 0.01 + 1e-9
