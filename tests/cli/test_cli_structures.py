# The shell on hierarchies, trees, flows and conditional risk: the same answers as from Python.
import json
import re

import networkx as nx
import numpy as np
import pytest
from shell import fails, works
from sklearn.kernel_approximation import Nystroem, RBFSampler

import structsolve
from structsolve import ConditionalRiskMinimizer, HierarchicalSVM, LatentSVM, StructuredSVM
from structsolve.io.graphs import read_hierarchy, read_network
from structsolve.io.npz import read_npz, write_npz
from structsolve.plugins.dag import DagStructure
from structsolve.plugins.flow import FlowStructure

ANIMALS = "bird owl\nbird duck\nmammal cat  # purrs\nmammal\tdog\n\n# the end\n"
TREE = {"bird": ["owl", "duck"], "mammal": ["cat", "dog"]}
NUMBERS = "0 1\n0 2\n3 4\n3 5\n"
NETWORK = {"demand": {"s": -1, "t": 1}, "arcs": [["s", "a"], ["s", "b"], ["a", "t"], ["b", "t", 1]]}


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.array(["owl", "duck", "cat", "dog"])[2 * (X[:, 0] > 0) + (X[:, 1] > 0)]
    (tmp_path / "animals.txt").write_text(ANIMALS)
    (tmp_path / "numbers.edges").write_text(NUMBERS)
    (tmp_path / "network.json").write_text(json.dumps(NETWORK))
    write_npz(tmp_path / "leaves.npz", X, y)
    write_npz(tmp_path / "plain.npz", X)
    return tmp_path, X, y


def run(capsys, folder, file, *options):
    """Fit on a file; return what predict prints, and score as JSON."""
    model = folder / "m.structsolve"
    out = works(capsys, "fit", folder / file, "--model", model, *options)
    assert out.splitlines()[-1].split() == ["saved", str(model)]
    lines = works(capsys, "predict", model, folder / file).splitlines()
    return lines, json.loads(works(capsys, "score", model, folder / file, "--json")), model


# -- hierarchies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("listed", [False, True])
def test_rows_of_names(capsys, data, listed):
    folder, X, _ = data
    rows = [["bird", "owl"] if x > 0 else ["mammal", ""] for x in X[:, 0]]
    Y = rows if listed else np.where(np.array(rows) == "", None, np.array(rows, dtype=object))
    model, path = HierarchicalSVM(alpha=0.01).fit(X, Y).calibrate(X, Y), folder / "m.structsolve"
    model.save(path)
    given = ("predict", path, folder / "plain.npz")
    lines = works(capsys, *given).split("\n")[:-1]
    guess = [[name or "" for name in row] for row in model.predict(X)]
    assert lines == ["\t".join(row) for row in guess]
    lines = works(capsys, *given, "--marginals").split("\n")[:-1]
    for line, row, p in zip(lines, guess, model.predict_marginals(X), strict=True):
        cells = [f"{name}:{one:.6f}" for name, one in zip(model.classes_, p, strict=True)]
        assert line.split("\t") == [*row, *cells]
    lines = works(capsys, *given, "--kbest", "2").splitlines()
    told = [line for line in lines if line and not line.startswith("@")]
    kbest = [answer for answers in model.predict_kbest(X, 2) for answer, _ in answers]
    assert told == ["\t".join(name or "" for name in answer) for answer in kbest]


def test_single_leaves(capsys, data):
    folder, X, y = data
    given = ("--hierarchy", folder / "animals.txt", "--alpha", "0.01")
    lines, report, model = run(capsys, folder, "leaves.npz", *given)
    own = StructuredSVM(DagStructure(read_hierarchy(folder / "animals.txt"), "single-leaf"))
    assert lines == own.set_params(alpha=0.01).fit(X, y).predict(X).tolist()
    assert report["accuracy"] == np.mean(np.array(lines) == y)
    assert works(capsys, "predict", model, folder / "plain.npz").splitlines() == lines
    out = works(capsys, "predict", model, folder / "plain.npz", "--kbest", "2")
    assert out.startswith("@1\t") and out.count("@2\t") == len(X)
    out = works(capsys, "predict", model, folder / "plain.npz", "--marginals")
    assert all(cell in out for cell in ("\towl:", "\tdog:"))


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


@pytest.mark.parametrize("rule", ["none", "rho:2", "maxmin", "learned"])
def test_fair_regularisation(capsys, data, rule):
    folder, X, y = data
    given = ("--hierarchy", folder / "animals.txt", "--alpha", "0.01", "--normalization", rule)
    lines, _, model = run(capsys, folder, "leaves.npz", *given)
    assert isinstance(structsolve.load(model), HierarchicalSVM)
    own = HierarchicalSVM(read_hierarchy(folder / "animals.txt"), normalization=rule, alpha=0.01)
    assert lines == own.fit(X, y).predict(X).tolist()


def test_hidden_states(capsys, data):
    folder, X, y = data
    given = ("--n-hidden", "2", "--alpha", "0.01", "--tol", "0.01")
    lines, report, model = run(capsys, folder, "leaves.npz", *given)
    own = LatentSVM("multiclass", n_hidden=2, alpha=0.01, tol=0.01).fit(X, y)
    assert lines == own.predict(X).tolist() and isinstance(structsolve.load(model), LatentSVM)
    assert report["accuracy"] == pytest.approx(own.score(X, y))
    out = works(capsys, "predict", model, folder / "plain.npz", "--marginals")
    assert all(cell in out for cell in ("\towl:", "\tdog:"))


@pytest.mark.parametrize("labels", [None, "closed", "leaf-union"])
def test_sets_of_labels(capsys, data, labels):
    folder, X, _ = data
    rng = np.random.default_rng(1)
    nodes = ["bird", "mammal", "owl", "duck", "cat", "dog"]
    hierarchy = read_hierarchy(folder / "animals.txt")
    assert list(hierarchy) == nodes
    Y = np.zeros((40, 6), dtype=int)
    Y[np.arange(40), 2 + rng.integers(0, 4, 40)] = 1
    write_npz(folder / "sets.npz", X, Y)
    given = ["--hierarchy", folder / "animals.txt", "--close", "--alpha", "0.05"]
    lines, report, model = run(
        capsys, folder, "sets.npz", *given, *(["--labels", labels] if labels else [])
    )
    own = StructuredSVM(DagStructure(hierarchy, labels or "closed", close=True), alpha=0.05)
    predicted = own.fit(X, Y).predict(X)
    expected = [",".join(n for n, on in zip(nodes, row) if on) for row in predicted]
    assert lines == expected
    closed = Y.copy()
    closed[:, 0], closed[:, 1] = Y[:, [2, 3]].max(axis=1), Y[:, [4, 5]].max(axis=1)
    assert report["accuracy"] == pytest.approx((closed == predicted).mean())
    assert list(report["per_class"]) == nodes
    out = works(capsys, "predict", model, folder / "plain.npz", "--kbest", "2").splitlines()
    assert out[1] == lines[0]
    fails(
        capsys, "predict", model, folder / "plain.npz", "--marginals", match="label sets have none"
    )


def test_svmlight_labels_are_names_of_nodes(capsys, data):
    folder, X, _ = data
    rng = np.random.default_rng(2)
    leaves = rng.choice([1, 2, 4, 5], 40)
    rows = [" ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(x)) for x in X]
    single = "".join(f"{y} {row}\n" for y, row in zip(leaves, rows))
    (folder / "single.svm").write_text(single)
    given = ("--hierarchy", folder / "numbers.edges", "--alpha", "0.05")
    lines, _, _ = run(capsys, folder, "single.svm", *given)
    assert set(lines) <= {"1", "2", "4", "5"}
    sets = "".join(f"{y},{rng.choice([1, 5])} {row}\n" for y, row in zip(leaves, rows))
    (folder / "sets.svm").write_text(sets)
    lines, report, _ = run(capsys, folder, "sets.svm", *given, "--labels", "leaf-union", "--close")
    assert set(",".join(lines).split(",")) <= set("012345") and list(report["per_class"]) == list(
        "031245"
    )
    (folder / "wrong.svm").write_text(sets.replace(",", ".5,", 1))
    fails(
        capsys,
        "fit",
        folder / "wrong.svm",
        "--model",
        folder / "m",
        *given,
        "--labels",
        "closed",
        match="expected integers, names of nodes",
    )


@pytest.mark.parametrize("hierarchy", [False, True])
def test_label_sets_of_a_model_saved_from_python(capsys, data, hierarchy):
    folder, X, _ = data
    Y = (np.column_stack([X, -X]) > 0.5).astype(int)
    structure = "multilabel"
    if hierarchy:
        structure = DagStructure(nx.DiGraph([(0, 1), (0, 2), (3, 4), (3, 5)]), "closed", close=True)
    model = StructuredSVM(structure, alpha=0.05).fit(X, Y)
    model.save(folder / "own.structsolve")
    names = model.classes_
    rows = [
        ",".join(str(names[j]) for j in np.flatnonzero(y))
        + "".join(f" {j + 1}:{v!r}" for j, v in enumerate(x.tolist()))
        for x, y in zip(X, Y)
    ]
    (folder / "own.svm").write_text("\n".join(rows) + "\n")
    out = works(capsys, "predict", folder / "own.structsolve", folder / "own.svm").splitlines()
    predicted = model.predict(X)
    assert out == [",".join(str(n) for n, on in zip(names, row) if on) for row in predicted]
    report = json.loads(
        works(capsys, "score", folder / "own.structsolve", folder / "own.svm", "--json")
    )
    truth = model.space_.pack(X, Y).labels.reshape(Y.shape)
    assert report["accuracy"] == pytest.approx((truth == predicted).mean())


def test_validation_and_history(capsys, data):
    folder, _, _ = data
    given = ("--hierarchy", folder / "animals.txt", "--history", folder / "h.csv")
    out = works(
        capsys, "fit", folder / "leaves.npz", "--model", folder / "m", *given,
        "--validation", folder / "leaves.npz", "--normalization", "rho:2",
    )  # fmt: skip
    assert "validated score" in re.sub(" +", " ", out)
    assert (folder / "h.csv").read_text().startswith("pass")


FILES = {
    "pairs.json": '[["bird", "owl"], ["bird", "duck"], ["mammal", "cat"], ["mammal", "dog"]]',
    "children.json": json.dumps(TREE),
    "lines.tsv": ANIMALS.replace(" owl", "\towl"),
}


@pytest.mark.parametrize("name", [*FILES, "graph.gml", "graph.graphml"])
def test_forms_of_hierarchies(tmp_path, name):
    path = tmp_path / name
    if name in FILES:
        path.write_text(FILES[name])
    else:
        graph = nx.DiGraph([(p, c) for p, below in TREE.items() for c in below])
        (nx.write_gml if name.endswith("gml") and "graphml" not in name else nx.write_graphml)(
            graph, path
        )
    children = read_hierarchy(path)
    assert {k: v for k, v in children.items() if v} == TREE
    assert set(children) == {"bird", "mammal", "owl", "duck", "cat", "dog"}


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("h.txt", "a b c\n", "h.txt, line 1: found 3 names; expected a parent and a child"),
        ("h.txt", "a\t\tb\n", "h.txt, line 1: found 3 names"),
        ("h.txt", "# nothing\n", "found no nodes; expected a line"),
        ("h.txt", "a b\nb a\n", "cycle"),
        ("h.json", "{", "h.json, line 1: found no JSON"),
        ("h.json", '{"a": "b"}', "found 'b' below 'a'; expected a list of children"),
        ("h.json", '{"a": ["b"], "a": []}', "found the name 'a' twice"),
        ("h.json", "3", "found int; expected children by node"),
        ("h.json", '[["a"]]', r"edge 0: found \['a'\]; expected \[parent, child\]"),
        ("h.json", '[["a", null]]', "found the node None; expected a name"),
        ("h.gml", "graph [", "found no gml"),
        ("h.gml", 'graph [ node [ id 0 label "a" ] ]', "found Graph; expected a directed graph"),
        ("h.graphml", "<a>", "found no graphml"),
    ],
)
def test_wrong_hierarchies(capsys, data, name, text, message):
    folder, _, _ = data
    (folder / name).write_text(text)
    fails(
        capsys,
        "fit",
        folder / "leaves.npz",
        "--model",
        folder / "m",
        "--hierarchy",
        folder / name,
        match=message,
    )


def test_names_that_look_like_numbers(tmp_path):
    (tmp_path / "h").write_text("1 2\n1 03\n")
    assert read_hierarchy(tmp_path / "h") == {1: [2, 3], 2: [], 3: []}
    (tmp_path / "h").write_text("1 2\n1 02\n")
    assert read_hierarchy(tmp_path / "h") == {"1": ["2", "02"], "2": [], "02": []}


# -- trees and graphs -----------------------------------------------------------------------------


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


# -- flows and conditional risk -------------------------------------------------------------------


def flows(X):
    return np.where(X[:, :1] > 0, [1, 0, 1, 0], [0, 1, 0, 1])


def test_flows(capsys, data):
    folder, X, _ = data
    write_npz(folder / "flows.npz", X, flows(X))
    given = ("--network", folder / "network.json", "--alpha", "0.01")
    lines, report, model = run(capsys, folder, "flows.npz", *given)
    own = StructuredSVM(FlowStructure(read_network(folder / "network.json")), alpha=0.01)
    predicted = own.fit(X, flows(X)).predict(X)
    assert lines == [" ".join(map(str, row)) for row in predicted.tolist()]
    assert report["accuracy"] == np.mean(predicted == flows(X))
    blocks = works(capsys, "predict", model, folder / "plain.npz", "--kbest", "2").split("\n\n")
    assert [block.splitlines()[0].split() for block in blocks if block.strip()]
    fails(
        capsys,
        "predict",
        model,
        folder / "plain.npz",
        "--marginals",
        match="rows of numbers have none",
    )


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_continuous_flows(capsys, data, loss):
    folder, X, _ = data
    Y = 0.75 * flows(X) + 0.25 * (1 - flows(X))
    write_npz(folder / "flows.npz", X, Y)
    graph = read_network(folder / "network.json")
    nx.write_gml(graph, folder / "network.gml")
    given = ("--network", folder / "network.gml", "--estimator", "risk", "--loss", loss)
    lines, report, model = run(capsys, folder, "flows.npz", *given)
    own = ConditionalRiskMinimizer(FlowStructure(graph), loss=loss).fit(X, Y)
    printed = np.array([[float(v) for v in line.split()] for line in lines])
    np.testing.assert_array_equal(printed, own.predict(X))
    assert report == {"loss": pytest.approx(-own.score(X, Y)), "examples": 40}
    out = works(capsys, "score", model, folder / "flows.npz")
    assert re.fullmatch(rf"mean {loss} loss \S+ of 40 examples\n", out)


def test_conditional_risk_of_classes_and_hierarchies(capsys, data):
    folder, X, y = data
    for options, structure in (
        ((), "multiclass"),
        (
            ("--hierarchy", folder / "animals.txt"),
            DagStructure(read_hierarchy(folder / "animals.txt"), "single-leaf"),
        ),
    ):
        lines, report, model = run(
            capsys, folder, "leaves.npz", "--estimator", "risk", "--alpha", "0.01",
            "--kernel", "rbf", "--kernel-param", "gamma=0.5", *options,
        )  # fmt: skip
        own = ConditionalRiskMinimizer(structure, alpha=0.01, kernel_params={"gamma": 0.5})
        assert lines == own.fit(X, y).predict(X).tolist()
        assert 0.5 < report["accuracy"] <= 1
        for options in (("--kbest", "2"), ("--marginals",), ("--oracle", "lp")):
            fails(
                capsys,
                "predict",
                model,
                folder / "plain.npz",
                *options,
                match=f"{options[0]}: a ConditionalRiskMinimizer has none",
            )


@pytest.mark.parametrize(
    "options, params",
    [
        (["--alphas", "0.001", "0.1", "10"], {"alphas": [0.001, 0.1, 10.0]}),
        (["--alphas", "0.001", "10", "--cv", "4"], {"alphas": [0.001, 10.0], "cv": 4}),
        (
            ["--feature-map", "nystroem:7", "--kernel", "poly", "--kernel-param", "degree=2"],
            {"kernel": None, "feature_map": Nystroem("poly", degree=2, n_components=7)},
        ),
        (
            ["--feature-map", "rff:9", "--kernel-param", "gamma=0.3"],
            {"kernel": None, "feature_map": RBFSampler(gamma=0.3, n_components=9)},
        ),
        (["--joint-kernel"], {"joint_kernel": True}),
    ],
)
def test_settings_of_conditional_risk(capsys, data, options, params):
    folder, X, y = data
    hierarchy = read_hierarchy(folder / "animals.txt")
    Y = np.array([[node == leaf or leaf in hierarchy[node] for node in hierarchy] for leaf in y])
    Y = Y.astype(int)
    write_npz(folder / "sets.npz", X, Y)
    given = ("--hierarchy", folder / "animals.txt", "--estimator", "risk", *options)
    lines, _, _ = run(capsys, folder, "sets.npz", *given)
    params = dict(params)
    if "feature_map" in params:
        params["feature_map"].set_params(random_state=0)
    if "joint_kernel" in params:
        params["joint_kernel"] = hierarchy
    own = ConditionalRiskMinimizer(DagStructure(hierarchy, "closed"), **params).fit(X, Y)
    names = list(hierarchy)
    predicted = own.predict(X)
    assert lines == [",".join(n for n, on in zip(names, row) if on) for row in predicted]


def test_the_chosen_alpha_is_told(capsys, data):
    folder, X, y = data
    out = works(
        capsys, "fit", folder / "leaves.npz", "--model", folder / "m", "--estimator", "risk",
        "--alphas", "0.001", "0.1", "10",
    )  # fmt: skip
    own = ConditionalRiskMinimizer(alphas=[0.001, 0.1, 10.0]).fit(X, y)
    told = f"alpha {own.alpha_:g}, held-out loss {own.cv_losses_.min():.4g}"
    assert f"conditional risk: {told}" in out


@pytest.mark.parametrize(
    "options, message",
    [
        (["--alphas", "path", "1"], "--alphas: path excludes other values"),
        (
            ["--estimator", "risk", "--alphas", "path"],
            "--alphas: path excludes .* --estimator risk",
        ),
        (
            ["--estimator", "risk", "--scale-features"],
            "--scale-features: --est",
        ),
        (["--joint-kernel"], "--joint-kernel is for conditional risk"),
        (["--feature-map", "rff:3"], "--feature-map is for conditional risk"),
        (["--estimator", "risk", "--joint-kernel"], "--joint-kernel is for hierarchies; give"),
        (["--estimator", "risk", "--cv", "3"], "--cv chooses among --alphas; found none"),
        (["--estimator", "risk", "--alpha", "1", "--alphas", "1"], "expected one of them"),
        (["--estimator", "risk", "--alphas", "0"], "alphas"),
        (["--estimator", "risk", "--feature-map", "rff"], "expected nystroem:N or rff:N"),
        (["--estimator", "risk", "--feature-map", "pca:3"], "expected nystroem:N or rff:N"),
        (["--estimator", "risk", "--feature-map", "rff:0"], "expected nystroem:N or rff:N"),
        (
            ["--estimator", "risk", "--feature-map", "rff:3", "--kernel", "poly"],
            "is for kernel rbf, with only gamma",
        ),
        (["--labels", "closed"], "--labels is for hierarchies; give --hierarchy FILE"),
        (["--close"], "--close is for hierarchies"),
        (["--normalization", "rho:2"], "--normalization is for hierarchies"),
        (["--estimator", "hierarchical"], "--estimator hierarchical is for hierarchies"),
        (["--structure", "dag"], "structure dag needs --hierarchy FILE"),
        (["--structure", "flow"], "structure flow needs --network FILE"),
        (["--structure", "chain", "--hierarchy", "h"], "--hierarchy is for structure dag"),
        (["--structure", "dag", "--hierarchy", "h", "--network", "n"], "--network is for str"),
        (["--hierarchy", "h", "--network", "n"], "expected one of them"),
        (["--hierarchy", "no.txt"], "no.txt: No such file"),
        (["--network", "no.gml"], "no.gml: No such file"),
        (["--network", "no.txt"], "found no known ending; expected one of .json"),
        (["--estimator", "risk", "--solver", "sgd"], "--solver: --estimator risk has none"),
        (["--estimator", "risk", "--max-iter", "3"], "--max-iter: --estimator risk has none"),
        (["--estimator", "risk", "--tol", "3"], "--tol: --estimator risk has none"),
        (["--kernel", "rbf", "--kernel-param", "gamma=x"], "gamma is 'x', expected a number"),
        (["--estimator", "risk", "--kernel-param", "gamma=x"], "gamma is 'x', expected a number"),
        (["--estimator", "risk", "--history", "h.csv"], "--history: --estimator risk has none"),
        (
            ["--estimator", "risk", "--validation", "leaves.npz"],
            "trains without validation; use score",
        ),
        (
            ["--n-hidden", "2", "--kernel", "rbf"],
            "--kernel: --n-hidden trains a LatentSVM, which has",
        ),
        (
            ["--n-hidden", "2", "--early-stopping"],
            "--early-stopping: --n-hidden trains a LatentSVM",
        ),
        (["--n-hidden", "0"], "n_hidden is 0, expected an integer of at least 1"),
        (["--n-hidden", "2", "--estimator", "risk"], "--n-hidden: --estimator risk has none"),
        (
            ["--n-hidden", "2", "--hierarchy", "animals.txt", "--normalization", "none"],
            "--n-hidden and --normalization: expected one of them",
        ),
        (
            ["--n-hidden", "2", "--hierarchy", "animals.txt"],
            "n_hidden is 2, expected 1 for .* structures whose nodes have no classes",
        ),
        (["--estimator", "best"], "unknown estimator 'best'"),
        (["--estimator", "ExtremeSVM", "--normalization", "rho:2"], "--normalization"),
        (["--estimator", "ExtremeSVM", "--oracle", "lp"], "--oracle: --estimator ExtremeSVM"),
        (["--hierarchy", "animals.txt", "--normalization", "rho:0"], "rho:0"),
        (["--hierarchy", "numbers.edges"], "the label 'cat', which is no node"),
        (["--network", "bad.json"], "found no list 'arcs'"),
        (["--network", "twice.json"], "arc 1: found .* again"),
        (["--network", "short.json"], r"arc 0: found \['s'\]"),
        (["--network", "demand.json"], "demand is 3; expected numbers by the names"),
        (["--network", "text.json"], "expected a (finite )?number"),
    ],
)
def test_usage_errors(capsys, data, monkeypatch, options, message):
    folder, _, _ = data
    monkeypatch.chdir(folder)
    (folder / "bad.json").write_text("{}")
    (folder / "twice.json").write_text('{"arcs": [["s", "t"], ["s", "t"]]}')
    (folder / "short.json").write_text('{"arcs": [["s"]]}')
    (folder / "demand.json").write_text('{"demand": 3, "arcs": [["s", "t"]]}')
    (folder / "text.json").write_text('{"demand": {"s": "x"}, "arcs": [["s", "t"]]}')
    fails(capsys, "fit", "leaves.npz", "--model", "m.structsolve", *options, match=message)


def test_pictures_that_are_rows_of_pixels_are_refused(capsys, tmp_path):
    structure = structsolve.get_structure("grid")
    write_npz(tmp_path / "pictures.npz", *structure.sample(3, n=6, size=3))
    np.savez(tmp_path / "rows.npz", X=np.eye(4), y=np.array([0, 1, 1, 0]))
    given = ("--structure", "grid", "--model", tmp_path / "m", "--tol", "0.5")
    missing = "rows.npz: `shapes` is missing.*write_npz"
    fails(capsys, "fit", tmp_path / "rows.npz", *given, match=missing)
    works(capsys, "fit", tmp_path / "pictures.npz", *given)
    fails(capsys, "predict", tmp_path / "m", tmp_path / "rows.npz", match=missing)


def test_unknown_arguments_of_structures_list_what_there_is(capsys, tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.eye(4), y=np.array([0, 1, 1, 0]))
    given = ("--structure", "grid:neighbors=8", "--model", tmp_path / "m")
    message = r"'neighbors' .did you mean 'neighbours'.*known: \['neighbours', .*'max_iter'\]"
    fails(capsys, "fit", tmp_path / "rows.npz", *given, match=message)


@pytest.mark.parametrize(
    ("options", "setting", "scaled"),
    [
        ([], "auto", True),
        (["--alpha", "0.1"], "auto", False),
        (["--scale-features"], True, False),
        (["--scale-features", "std"], "std", False),
        (["--no-scale-features"], False, False),
    ],
)
def test_columns_of_unlike_scale(capsys, caplog, tmp_path, options, setting, scaled):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) * [1, 1e3, 1], rng.integers(2, size=40)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    with caplog.at_level("INFO", "structsolve"):
        works(capsys, "fit", tmp_path / "rows.npz", "--model", tmp_path / "m", *options)
    assert structsolve.load(tmp_path / "m").scale_features == setting
    assert ("scale_features='auto' is True" in caplog.text) is scaled
