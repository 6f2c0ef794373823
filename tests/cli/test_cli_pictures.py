"""Trees, graphs and pictures in the shell."""

# The shell on hierarchies, trees, flows and conditional risk: the same answers as from Python.
import json

import numpy as np
import pytest
from shell import fails, run, works

import structsolve
from structsolve import LatentSVM, StructuredSVM
from structsolve.io.npz import read_npz, write_npz


def test_hidden_states_of_pixels(capsys, tmp_path):
    rng = np.random.default_rng(0)
    Y = [np.kron(rng.integers(0, 2, (3, 3)), np.ones((4, 4), int)) for _ in range(4)]
    X = [y[..., None] + rng.normal(size=(12, 12, 1)) for y in Y]
    write_npz(tmp_path / "pictures.npz", X, Y)
    given = ("--structure", "grid", "--n-hidden", "2", "--alpha", "0.1", "--tol", "0.1")
    _, report, model = run(capsys, tmp_path, "pictures.npz", *given)
    own = LatentSVM("grid", n_hidden=2, alpha=0.1, tol=0.1).fit(X, Y)
    assert len(own.rounds_) > 1 and isinstance(structsolve.load(model), LatentSVM)
    assert report["accuracy"] == pytest.approx(own.score(X, Y))


@pytest.mark.parametrize("form", ["parents", "edges", "features"])
def test_trees(capsys, tmp_path, form):
    structure = structsolve.get_structure("tree")
    X, Y = structure.sample(3, n=8, size=4)
    if form == "edges":
        X = [
            (x, np.array([[p, v] for v, p in enumerate(parents) if p >= 0]).reshape(-1, 2))
            for x, parents in X
        ]
    if form == "features":
        X = [(x, parents, np.ones((int((parents >= 0).sum()), 1))) for x, parents in X]
    write_npz(tmp_path / "trees.npz", X, Y)
    again, labels = read_npz(tmp_path / "trees.npz")
    for one, other in zip(X, again):
        assert len(one) == len(other)
        assert all(np.array_equal(a, b) for a, b in zip(one, other))
    assert all(np.array_equal(a, b) for a, b in zip(Y, labels))
    lines, report, model = run(
        capsys, tmp_path, "trees.npz", "--structure", "tree", "--alpha", "0.05"
    )
    own = StructuredSVM("tree", alpha=0.05).fit(X, Y).predict(X)
    blocks = "\n".join(lines).split("\n\n")
    assert blocks == ["\n".join(map(str, y.tolist())) for y in own]
    assert report["accuracy"] == pytest.approx(np.mean(np.concatenate(own) == np.concatenate(Y)))
    assert "sequence_error" in report
    out = works(capsys, "predict", model, tmp_path / "trees.npz", "--marginals")
    assert len(out.split("\n\n")) == len(X)


def test_graphs(capsys, tmp_path):
    structure = structsolve.get_structure("mrf")
    X, Y = structure.sample(3, n=6, size=3)
    write_npz(tmp_path / "graphs.npz", X, Y)
    lines, _, _ = run(capsys, tmp_path, "graphs.npz", "--structure", "mrf", "--alpha", "0.1")
    own = StructuredSVM("mrf", alpha=0.1).fit(X, Y).predict(X)
    assert [line for line in lines if line] == [str(s) for y in own for s in y.tolist()]


def test_pictures(capsys, tmp_path):
    structure = structsolve.get_structure("grid", neighbours=8, contrast="gaussian")
    X, Y = structure.sample(3, n=6, size=3)
    path = tmp_path / "pictures.npz"
    write_npz(path, X, Y)
    named = "grid:neighbours=8,contrast=gaussian"
    lines, _, _ = run(capsys, tmp_path, "pictures.npz", "--structure", named, "--alpha", "0.1")
    own = StructuredSVM(structure, alpha=0.1).fit(X, Y).predict(X)
    blocks = "\n".join(lines).split("\n\n")
    assert [block.split() for block in blocks] == [[str(s) for s in y.ravel()] for y in own]
    pixels = sum(y.size for y in Y)
    out = works(capsys, "fit", path, "--structure", named, "--model", tmp_path / "p.structsolve")
    assert f"6 pictures, {pixels} pixels, 2 features" in out
    (again, labels), cube = read_npz(path), np.array(X[:1])
    for one, other in zip([*X, *Y], [*again, *labels], strict=True):
        assert np.array_equal(one, other)
    write_npz(path, X, [np.where(y == y.flat[0], 9, y) if y.size > 1 else y for y in Y])
    model, counted = tmp_path / "v.structsolve", sum((y != y.flat[0]).sum() for y in Y)
    counted += sum(y.size == 1 for y in Y)
    own = StructuredSVM(structsolve.get_structure("grid", void=9), alpha=0.1).fit(*read_npz(path))
    own.save(model)
    report = json.loads(works(capsys, "score", model, path, "--json"))
    assert report["support"] == counted and "9" not in report["per_class"]
    assert report["accuracy"] == pytest.approx(own.score(*read_npz(path)))
    write_npz(path, cube)
    (picture,), nothing = read_npz(path)
    assert np.array_equal(picture, cube[0]) and nothing is None
    with pytest.raises(ValueError, match="example 0: found labels of shape .1,.; expected"):
        write_npz(path, cube, [[0]])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"shapes": np.array([[2, 2]])}, "found shapes of 4 pixels; expected .* of 6 pixels"),
        ({"shapes": np.array([[-2, -3]])}, "heights and widths of at least 1"),
        ({"shapes": np.array([[2**62, 4], [2, 3]])}, "heights and widths of at least 1"),
        ({"shapes": np.ones((2, 2))}, "shapes of float64"),
        ({"shapes": np.zeros((0, 2), int)}, "found shapes of 0 pixels"),
        ({"offsets": np.array([0, 6])}, "shapes and more; expected pictures or graphs"),
        ({"y": np.zeros((6, 2), int)}, r"y of shape \(6, 2\); expected a label for each pixel"),
    ],
)
def test_wrong_pictures(tmp_path, change, message):
    arrays = {"X": np.ones((6, 2)), "y": np.arange(6) % 2, "shapes": np.array([[2, 3]])}
    np.savez(tmp_path / "p.npz", **{**arrays, **change})
    with pytest.raises(ValueError, match=message):
        read_npz(tmp_path / "p.npz")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"offsets": None}, "found parents and no offsets"),
        ({"parents": np.zeros(2)}, r"found parents of shape \(2,\); expected 5 integers"),
        ({"parents": np.full(5, 9)}, "parent 9, expected -1"),
        ({"edges": np.zeros((1, 2), int)}, "found neither or both of parents and edges"),
        ({"parents": None, "edge_features": np.ones((1, 1))}, "found no parents or edges"),
        ({"parents": None, "edges": np.zeros((1, 2), int)}, "edges and no edge_offsets"),
        ({"parents": None, "edges": np.zeros(3, int)}, r"edges of shape \(3,\)"),
        (
            {"parents": None, "edges": np.zeros((1, 2), int), "edge_offsets": np.array([0, 2, 1])},
            "edge_offsets that do not fit",
        ),
        ({"edge_features": np.ones((2, 1))}, "edge_features of shape .* one row for 3 edges"),
    ],
)
def test_wrong_trees(capsys, tmp_path, change, message):
    arrays = {
        "X": np.ones((5, 2)),
        "y": np.arange(5) % 2,
        "offsets": np.array([0, 3, 5]),
        "parents": np.array([-1, 0, 0, -1, 0]),
        **change,
    }
    np.savez(tmp_path / "t.npz", **{k: v for k, v in arrays.items() if v is not None})
    fails(
        capsys,
        "fit",
        tmp_path / "t.npz",
        "--model",
        tmp_path / "m",
        "--structure",
        "tree",
        match=message,
    )


def test_pictures_that_are_rows_of_pixels_are_refused(capsys, tmp_path):
    structure = structsolve.get_structure("grid")
    write_npz(tmp_path / "pictures.npz", *structure.sample(3, n=6, size=3))
    np.savez(tmp_path / "rows.npz", X=np.eye(4), y=np.array([0, 1, 1, 0]))
    given = ("--structure", "grid", "--model", tmp_path / "m", "--tol", "0.5")
    missing = "rows.npz: `shapes` is missing.*write_npz"
    fails(capsys, "fit", tmp_path / "rows.npz", *given, match=missing)
    works(capsys, "fit", tmp_path / "pictures.npz", *given)
    fails(capsys, "predict", tmp_path / "m", tmp_path / "rows.npz", match=missing)
