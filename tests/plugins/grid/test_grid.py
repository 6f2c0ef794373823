"""Label pictures: forms of input, edges and their features, predictions, files, refusals."""

import numpy as np
import pytest
from checks import check_oracle, refused, reloaded, same
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import LatentSVM, StructuredSVM, WeightedLabels
from structsolve.plugins.grid import GridStructure
from structsolve.plugins.grid.contrast import (
    CONTRASTS,
    edge_features,
    mean_squared_contrast,
    n_columns,
)
from structsolve.plugins.grid.space import n_edges
from structsolve.plugins.mrf import MRFStructure, grid_edges
from structsolve.structure.ask import make_layout
from structsolve.testing import check_structure
from structsolve.utils import container, memory

SETTINGS = [
    {},
    {"neighbours": 8, "directed": True},
    {"by_direction": True},
    {"contrast": ["absolute", "gaussian"]},
    {"contrast": ["ends", "difference"], "by_direction": True, "directed": True, "neighbours": 8},
]


@pytest.mark.parametrize("params", [SETTINGS[0], SETTINGS[3], SETTINGS[4]], ids=str)
def test_conformance(params):
    # Training equals that of graphs; test_equals_a_graph_with_edges_of_its_own compares them.
    check_structure(GridStructure(**params, oracle="exact"), n_cases=1, solvers=("bcfw",))


@pytest.mark.parametrize("oracle", ["auto", "trws", "roof-duality"])
def test_conformance_of_inexact_oracles(oracle):
    check_oracle(GridStructure(neighbours=8, oracle=oracle), range(1))


def pictures(n=6, seed=0, shapes=((3, 4), (2, 3), (4, 1)), n_classes=2, n_features=2):
    """Return noisy pictures whose rows tend to agree."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for k in range(n):
        shape = shapes[k % len(shapes)]
        y = np.repeat(rng.integers(0, n_classes, (shape[0], 1)), shape[1], axis=1)
        y = np.where(rng.random(shape) < 0.9, y, rng.integers(0, n_classes, shape))
        X.append(np.eye(n_classes, n_features)[y] + 0.5 * rng.normal(size=(*shape, n_features)))
        Y.append(y)
    return X, Y


# -- edges --------------------------------------------------------------------------------------


def written_edges(height, width, neighbours):
    """Return all pairs of touching cells, sorted, by looking at all of them."""
    cells = [(r, c) for r in range(height) for c in range(width)]
    return sorted(
        (a * width + b, r * width + c)
        for a, b in cells
        for r, c in cells
        if (a, b) < (r, c)
        and max(abs(a - r), abs(b - c)) == 1
        and (neighbours == 8 or a == r or b == c)
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.sampled_from([4, 8]))
def test_edges_join_all_cells_that_touch(height, width, neighbours):
    edges = grid_edges(height, width, neighbours)
    assert sorted(map(tuple, edges.tolist())) == written_edges(height, width, neighbours)
    assert n_edges(np.array([[height, width]]), neighbours)[0] == len(edges)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_edge_features_are_those_of_their_ends(data):
    height, width = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    neighbours, by_direction = data.draw(st.sampled_from([4, 8])), data.draw(st.booleans())
    names = data.draw(st.lists(st.sampled_from(list(CONTRASTS)), unique=True))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.normal(size=(height, width, 2))
    if data.draw(st.booleans()):
        x = rng.integers(0, 256, (height, width, 2)).astype(np.uint8)
    edges = grid_edges(height, width, neighbours)
    columns = n_columns(names, 2, neighbours // 2 if by_direction else 1)
    out = np.zeros((len(edges), columns))
    edge_features(x, names, neighbours, by_direction, 1.5, out)
    flat = x.reshape(-1, 2).astype(float)
    block = n_columns(names, 2)
    for (u, v), row in zip(edges, out):
        step = flat[v] - flat[u]
        values = {
            "difference": step,
            "absolute": abs(step),
            "gaussian": [np.exp(-(step @ step) / 3.0)],
            "ends": [*flat[u], *flat[v]],
        }
        expected = np.concatenate([[1.0], *(values[name] for name in names)])
        direction = 0
        if by_direction:
            direction = {1: 0, width: 1, width + 1: 2, width - 1: 3}[int(v - u)]
            if width == 1 or (width == 2 and v - u == 1):  # steps that are the same there
                direction = int(u // width != v // width)
                direction += 2 * int(direction == 1 and v - u == 1 and width == 2)
        whole = np.zeros(columns)
        whole[direction * block : (direction + 1) * block] = expected
        assert np.allclose(row, whole)


def test_scale_of_the_gaussian_contrast():
    X, Y = pictures()
    steps = [
        np.square(x.reshape(-1, 2)[e[:, 0]] - x.reshape(-1, 2)[e[:, 1]]).sum(axis=1)
        for x in X
        for e in [grid_edges(*x.shape[:2], 8)]
    ]
    assert mean_squared_contrast(X, 8) == pytest.approx(np.concatenate(steps).mean())
    assert mean_squared_contrast([np.ones((2, 2, 1))], 4) == 1
    model = StructuredSVM(GridStructure(8, contrast="gaussian"), tol=0.1).fit(X, Y)
    assert model.space_.contrast_scale_ == pytest.approx(np.concatenate(steps).mean())
    assert model.coef_["pair"].shape == (2, 2, 2)


# -- the same model as a graph's ----------------------------------------------------------------


@pytest.mark.parametrize("shapes", [((3, 4), (2, 3), (4, 1)), ((3, 3),)], ids=["many", "one"])
@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_equals_a_graph_with_edges_of_its_own(params, shapes):
    X, Y = pictures(shapes=shapes)
    structure = GridStructure(**params)
    model = StructuredSVM(structure, alpha=0.01, tol=0.01).fit(X, Y)
    features = structure.tables == "features"
    graphs = []
    for i, x in enumerate(X):
        edges = grid_edges(*x.shape[:2], structure.neighbours)
        graphs.append((x.reshape(-1, 2), edges))
        if features:
            examples = model.space_.pack([x])
            rows = examples.edges
            graphs[i] += (rows.toarray() if hasattr(rows, "toarray") else rows,)
    plain = MRFStructure(tables=structure.tables, directed=structure.directed)
    own = StructuredSVM(plain, alpha=0.01, tol=0.01).fit(graphs, [y.ravel() for y in Y])
    for name in own.coef_:
        assert np.allclose(model.coef_[name], own.coef_[name], atol=1e-10)
    predicted = model.predict(X)
    assert [p.shape for p in predicted] == [y.shape for y in Y]
    assert [p.ravel().tolist() for p in predicted] == [p.tolist() for p in own.predict(graphs)]
    assert model.score(X, Y) == own.score(graphs, [y.ravel() for y in Y])


def test_one_array_is_a_list_of_pictures():
    X, Y = pictures(shapes=((3, 4),))
    model = StructuredSVM("grid", alpha=0.01, tol=0.01).fit(X, Y)
    cube = StructuredSVM("grid", alpha=0.01, tol=0.01).fit(np.array(X), np.array(Y))
    same(dict(model.coef_), dict(cube.coef_))
    predicted = cube.predict(np.array(X))
    assert predicted.shape == (6, 3, 4) and isinstance(model.predict(X), list)
    assert (predicted == np.array(model.predict(X))).all()
    layout = make_layout(model.space_, model.space_.pack(X))
    assert model.space_.graphs(layout).one_graph
    objects = np.empty(2, dtype=object)
    objects[:] = pictures(2)[0]
    assert [p.shape for p in model.predict(objects)] == [(3, 4), (2, 3)]
    bytes_ = StructuredSVM("grid", tol=0.1).fit([np.uint8(50 * abs(x)) for x in X], Y)
    assert bytes_.score([np.uint8(50 * abs(x)) for x in X], Y) > 0.4
    single = GridStructure(contrast="absolute").make_space([np.float32(x) for x in X], Y)[1]
    assert single.edges.dtype == np.float32


def test_strings_and_unseen_labels():
    X, Y = pictures()
    names = [np.array(["sky", "sea"])[y] for y in Y]
    model = StructuredSVM("grid", alpha=0.01, tol=0.05).fit(X, [y.tolist() for y in names])
    assert model.classes_.tolist() == ["sea", "sky"]
    assert model.predict(X)[0].dtype.kind == "U"
    assert model.score(X, names) > 0.8
    assert model.score(X[:1], [np.full((3, 4), "ship")]) == 0
    refused("example 0: label 'ship' was not seen", model.space_.pack, X[:1], [[["ship"] * 4] * 3])


def test_marginals_scores_and_the_best_labelings():
    X, Y = pictures(shapes=((1, 4), (3, 1)))
    crf = StructuredSVM("grid", surrogate="crf", alpha=0.1, tol=0.01).fit(X, Y)
    marginals = crf.predict_proba(X)
    assert [m.shape for m in marginals] == [(*y.shape, 2) for y in Y]
    assert all(np.allclose(m.sum(axis=2), 1) for m in marginals)
    rows = X[::2]
    assert crf.predict_marginals(np.array(rows)).shape == (3, 1, 4, 2)
    best = crf.predict_kbest(X, 2)
    assert (best[1][0][0] == crf.predict(X)[1]).all() and best[1][1][0].shape == (3, 1)
    assert crf.decision_function(X)[1].shape == (3, 1, 2)
    assert crf.sample(X, 1)[0][1].shape == (3, 1)
    loops, labels = pictures(shapes=((2, 2),))
    model = StructuredSVM("grid", tol=0.1).fit(loops, labels)
    assert all(np.allclose(m.sum(axis=2), 1) for m in model.predict_marginals(loops))


def test_constraints_in_pictures():
    X, Y = pictures(shapes=((2, 3),))
    model = StructuredSVM("grid", tol=0.05).fit(X, Y)
    free = np.ones((2, 3, 2), dtype=bool)
    free[0, 1, 0] = False
    rows = [[None, [1], None], [None, None, [0, 1]]]
    expected = model.predict(X, allowed=[free] * 6)
    assert all(p[0, 1] == 1 for p in expected)
    same(expected, model.predict(X, allowed=[rows] * 6))
    same(expected, model.predict(X, allowed=[[p for row in rows for p in row]] * 6))
    same(model.predict(X), model.predict(X, allowed=[None] * 6))
    assert all(len(np.unique(p)) == 1 for p in model.predict(X, forbidden=[(0, 1)]))
    refused("example 0, pixel .0, 0.: allowed leaves", model.predict, X, allowed=[~free] * 6)
    refused("example 0: allowed has the shape", model.predict, X, allowed=[free[:1]] * 6)
    refused("example 0: allowed is no picture of 2 rows", model.predict, X, allowed=[[[None]]] * 6)
    refused("allowed has 1 entries, expected 6", model.predict, X, allowed=[free])
    contrast = StructuredSVM(GridStructure(contrast="absolute"), tol=0.3).fit(X, Y)
    refused("forbidden pairs need one table", contrast.predict, X, forbidden=[(0, 1)])
    narrow = StructuredSVM("grid", tol=0.1).fit(np.zeros((1, 2, 1, 1)), [[[1], [0]]])
    column = narrow.predict(np.zeros((1, 2, 1, 1)), allowed=[[[0], [1]]])
    assert column.tolist() == [[[0], [1]]]


def test_clone_search_save_and_jobs(tmp_path):
    X, Y = pictures(9)
    structure = GridStructure(8, contrast=["gaussian", "absolute"], by_direction=True, void=9)
    model = clone(StructuredSVM(structure, tol=0.1, max_iter=5)).fit(X, Y)
    loaded = reloaded(model, tmp_path)
    same(loaded.predict(X), model.predict(X))
    assert loaded.space_.contrast_scale_ == model.space_.contrast_scale_
    assert loaded.structure.void == 9
    meta, arrays = container.read(tmp_path / "m.structsolve", "model")
    meta["structure"]["params"]["contrast_scale"] = 2.0  # of earlier versions; arrays have it, too
    container.write(tmp_path / "m.structsolve", "model", meta, arrays)
    same(structsolve.load(tmp_path / "m.structsolve").predict(X), model.predict(X))
    loaded.n_jobs = 2
    same(loaded.predict(X), model.predict(X))
    grid = {"structure__contrast": [None, "gaussian"], "alpha": [0.1]}
    search = GridSearchCV(StructuredSVM(GridStructure(), tol=0.3), grid, cv=3).fit(X, Y)
    assert search.best_score_ > 0.5
    cube = GridSearchCV(StructuredSVM("grid", tol=0.3), {"alpha": [0.1, 0.01]}, cv=2)
    X, Y = map(np.array, pictures(shapes=((2, 2),)))
    assert cube.fit(X, Y).predict(X).shape == Y.shape
    assert structsolve.get_structure("grid:neighbours=8,contrast=gaussian").neighbours == 8


# -- void pixels, weights -----------------------------------------------------------------------


@pytest.mark.parametrize("shapes", [((3, 3),), ((3, 3), (2, 4))], ids=["one size", "sizes"])
@pytest.mark.parametrize("params", SETTINGS[:4], ids=str)
def test_void_pixels_count_for_nothing(params, shapes):
    X, Y = pictures(shapes=shapes)
    rng = np.random.default_rng(1)
    Y = [np.where(rng.random(y.shape) < 0.3, 255, y) for y in Y]
    structure = GridStructure(**params, void=255, oracle="exact")
    model = StructuredSVM(structure, alpha=0.05, tol=1e-3).fit(X, Y)
    graphs, labels = [], []
    for x, y in zip(X, Y):
        edges = grid_edges(*y.shape, structure.neighbours)
        keep = y.ravel() != 255
        stay = keep[edges].all(axis=1)
        parts = [x.reshape(-1, 2)[keep], (np.cumsum(keep) - 1)[edges[stay]]]
        if structure.tables == "features":
            rows = model.space_.pack([x]).edges
            rows = rows.toarray() if hasattr(rows, "toarray") else rows
            parts.append(rows[stay])
        graphs.append(tuple(parts))
        labels.append(y.ravel()[keep])
    plain = MRFStructure(tables=structure.tables, directed=structure.directed, oracle="exact")
    own = StructuredSVM(plain, alpha=0.05, tol=1e-3).fit(graphs, labels)
    for name in own.coef_:
        assert np.allclose(model.coef_[name], own.coef_[name], atol=1e-9)
    predicted = model.predict(X)
    assert not any((p == 255).any() for p in predicted)
    right = [(p == y)[y != 255] for p, y in zip(predicted, Y)]
    assert model.score(X, Y) == pytest.approx(np.concatenate(right).mean())
    assert model.score(X, Y, metric="accuracy") == pytest.approx(np.concatenate(right).mean())
    assert model.score(X, Y, metric="sequence-accuracy") == np.mean([one.all() for one in right])


def test_weights_of_pixels():
    X, Y = pictures(shapes=((2, 2),))
    weights = np.array([[1.0, 0.0], [0.0, 0.0]])
    model = StructuredSVM("grid", alpha=0.01, tol=0.1)
    model.fit(X, [WeightedLabels(y, weights) for y in Y])
    scored = model.score(X, [WeightedLabels(y, weights) for y in Y])
    right = [p[0, 0] == y[0, 0] for p, y in zip(model.predict(X), Y)]
    assert scored == pytest.approx(np.mean(right))
    refused("y, example 0: weights have the shape", model.fit, X, [WeightedLabels(Y[0], [1.0])] * 6)
    refused("y, example 0: found the shape", model.fit, X, [WeightedLabels(Y[0][:1], weights)] * 6)
    words = np.full(weights.shape, "a")
    refused("y, example 0: weights are no numbers .*, expected one finite number", model.fit, X,
            [WeightedLabels(Y[0], words)] * 6)  # fmt: skip


# -- bad input ----------------------------------------------------------------------------------

OK = np.zeros((2, 3, 1))
NAN = np.where(np.arange(6).reshape(2, 3, 1) == 4, np.nan, 0.0)


@pytest.mark.parametrize(
    "X, message",
    [
        ([], "X is empty: expected at least one picture"),
        (None, "X is a NoneType, expected a list of pictures"),
        ("abc", "X is a str"),
        (np.zeros((2, 3, 1, 1, 1)), r"\(2, 3, 1, 1, 1\), expected \(n, height, .*alone: \[x\]"),
        (np.zeros((2, 3)), r"shape \(2, 3\), expected .*one picture alone: \[x\]"),
        ([OK, np.zeros(3)], r"example 1: found the shape \(3,\), expected .*one picture alone"),
        ([OK, np.zeros((2, 3, 2))], "example 1: found 2 features per pixel, expected 1 as in the"),
        ([OK, np.zeros((0, 3, 1))], "example 1: found the shape .* at least one pixel"),
        ([OK, np.zeros((2, 3, 0))], "example 1: found the shape .* at least one pixel and one"),
        ([OK, NAN], r"Input contains NaN .example 1, pixel .1, 1., feature 0."),
        ([OK, OK + np.inf], "Input contains infinity .example 1, pixel .0, 0."),
        ([OK, [[1, 2], [3]]], "example 1: no picture of real numbers"),
        ([OK, [[["a"]]]], "example 1: no picture of real numbers"),
        ([OK, OK * 1j], "example 1: no picture of real numbers"),
        ([OK, None], "X, example 1 is None, expected a picture"),
        ([OK, {}], "example 1: no picture of real numbers|example 1: found the shape"),
    ],
    ids=range(16),
)
def test_bad_pictures(X, message):
    Y = [np.zeros((2, 3), int)] * (0 if X is None else len(X))
    refused(message, StructuredSVM("grid").fit, X, Y)


@pytest.mark.parametrize(
    "y, message",
    [
        (None, "y is None: grid requires y"),
        (7, "y is an int, expected a list of label pictures"),
        ([np.zeros((2, 3), int)], "X has 2 examples and y has 1"),
        (
            [[[0] * 3] * 2, [[0] * 2] * 3],
            r"y, example 1: found the shape \(3, 2\), expected \(2, 3",
        ),
        ([[[0] * 3] * 2, [0] * 6], r"example 1: found the shape \(6,\), expected \(2, 3\)"),
        ([[[0] * 3] * 2, [[0, 0, 0], [0]]], "example 1: found .*expected .2, 3."),
        ([[[0] * 3] * 2, [[0, 1, 1], [1, -1, 1]]], r"example 1, pixel \(1, 1\): y holds -1"),
        ([[[0] * 3] * 2, [[0, 1, 1], [1, None, 1]]], r"pixel \(1, 1\): Input y contains None"),
        ([[[0] * 3] * 2, [[0, 1, 1], [1, np.nan, 1]]], r"pixel \(1, 1\): Input y contains NaN"),
        ([[[0] * 3] * 2, [[0, 1, 1], [1, 0.5, 1]]], "Unknown label type|labels of types"),
        ([[["a"] * 3] * 2, [[0, 1, 1], [1, 0, 1]]], "y mixes strings and numbers"),
        ([[[0] * 3] * 2, None], r"y, example 1 is None, expected a label picture of shape \(2, 3"),
    ],
    ids=range(12),
)
def test_bad_label_pictures(y, message):
    refused(message, StructuredSVM("grid").fit, [OK, OK], y)


@pytest.mark.parametrize(
    "params, message",
    [
        ({"neighbours": 6}, r"neighbours is 6, expected one of \[4, 8\]"),
        ({"contrast": "gauss"}, "contrast is 'gauss', expected None, one of"),
        ({"contrast": ["ends", "ends"]}, "contrast is .*, expected"),
        ({"contrast": 3}, "contrast is 3, expected"),
        ({"directed": "no"}, "directed is 'no', expected True or False"),
        ({"by_direction": 2}, "by_direction is 2, expected True or False"),
        ({"oracle": "magic"}, "oracle is 'magic'"),
        ({"predict_oracle": "magic"}, "predict_oracle is 'magic'"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"void": {0: 1}}, "void is {0: 1}, expected a label"),
    ],
    ids=str,
)
def test_bad_parameters(params, message):
    refused(message, StructuredSVM(GridStructure(**params)).fit, [OK], [np.zeros((2, 3), int)])


def test_void_everywhere_and_other_features():
    model = StructuredSVM(GridStructure(void=-1), tol=0.5)
    Y = [np.array([[0, 1, 0]] * 2), np.full((2, 3), -1)]
    refused("y, example 1: all 6 pixels are void.*leave the example out", model.fit, [OK, OK], Y)
    refused("all labels are void", model.fit, [OK, OK], [Y[1], Y[1]])
    model.fit([OK], Y[:1])
    assert 0 <= model.score([OK, OK], Y) <= 1
    refused("found 2 features per pixel, expected 1 as in training", model.predict, [[[[0, 0]]]])


def test_one_pixel_and_pictures_without_edges():
    X, Y = [np.array([[[-1.0]]]), np.array([[[1.0]]])], [[[0]], [[1]]]
    for params in SETTINGS:
        model = StructuredSVM(GridStructure(**params), alpha=0.01).fit(X, Y)
        assert [p.tolist() for p in model.predict(X)] == Y
        more = model.predict([np.ones((2, 2, 1))])[0]  # other sizes than in training
        assert more.tolist() == [[1, 1], [1, 1]]
    alone = StructuredSVM("grid").fit(X, [[[3]], [[3]]])
    assert alone.predict(X)[0].tolist() == [[3]]


def test_arrays_larger_than_memory(monkeypatch):
    X, Y = [np.zeros((30, 30, 3))], [np.arange(900).reshape(30, 30) % 2]
    monkeypatch.setattr(memory, "memory_limit", lambda: 30_000)
    refused(
        "X: 1 pictures with 1740 edges of 0 features would take .* GB, more than the 3e-05 GB",
        StructuredSVM("grid").fit,
        X,
        Y,
    )
    monkeypatch.setattr(memory, "memory_limit", lambda: 120_000)
    refused(
        "1740 edges of 7 features would take",
        StructuredSVM(GridStructure(contrast="ends")).fit,
        X,
        Y,
    )
    structure = GridStructure(contrast="gaussian")
    refused("scores of the largest graph.*would take", StructuredSVM(structure).fit, X, Y)
    monkeypatch.setattr(memory, "memory_limit", lambda: None)
    assert StructuredSVM("grid", max_iter=1, tol=9).fit(X, Y).score(X, Y) >= 0


def test_sizes_are_known_before_memory_is_filled():
    model = StructuredSVM("grid", tol=0.5).fit([OK], [np.zeros((2, 3), int)])
    side = 10**7  # 800 TB, of one number
    X, Y = (
        [OK, np.broadcast_to(0.0, (side, side, 1))],
        [OK[..., 0], np.broadcast_to(0, (side, side))],
    )
    message = (
        r"X: 2 pictures, the largest of shape \(10000000, .*\(example 1\), would take 8e\+05 GB"
    )
    refused(message, model.fit, X, Y)
    refused(message, model.predict, X)
    for side in (10**7, 2**40, np.int64(2**40)):
        refused(f"height {side}, width {side}: .* would take", grid_edges, side, side)


def test_masks_are_refused():
    ones, y = np.ma.masked_equal([[[1.0], [2.0]]], 1.0), np.ma.masked_equal([[0, 9]], 9)
    model = StructuredSVM(GridStructure(void=9), tol=0.5)
    in_x = r"X, example 1: found a masked array with 1 masked entry.* x.filled\(0.0\)"
    in_y = r"y, example 1: .* 1 masked entry.*y.filled\(255\), and name that label void"
    refused(in_x, model.fit, [ones.filled(0.0), ones], [y.filled(9)] * 2)
    refused(in_y, model.fit, [ones.data] * 2, [y.filled(9), y])
    refused(in_y, model.fit, [ones.data] * 2, [y.data, WeightedLabels(y, np.ones((1, 2)))])
    model.fit([ones.data], [y.filled(9)])
    model.fit([np.ma.array(ones.data)], [np.ma.array(y.data)])  # nothing is masked
    refused(in_x, model.predict, [ones.data, ones])
    refused(in_y, model.score, [ones.data] * 2, [y.data, y])
    rows = np.ma.masked_equal(np.eye(3), 1.0)
    refused("X: .* 3 masked entries", StructuredSVM("multiclass").fit, rows, [0, 1, 2])
    refused(
        in_x, StructuredSVM("mrf").fit, [(p[0], [[0, 1]]) for p in (ones.data, ones)], [[0, 1]] * 2
    )
    for n_hidden in (1, 2):
        latent = LatentSVM(GridStructure(void=9), n_hidden=n_hidden)
        refused(in_x, latent.fit, [ones.data, ones], [y.filled(9)] * 2)
        refused(in_y, latent.fit, [ones.data] * 2, [y.filled(9), y])
