# The shell on hierarchies, trees, flows and conditional risk: the same answers as from Python.
import json
import re

import networkx as nx
import numpy as np
import pytest
from shell import fails, run, works

import structsolve
from structsolve import ConditionalRiskMinimizer, HierarchicalSVM, LatentSVM, StructuredSVM
from structsolve.io.graphs import read_hierarchy, read_network
from structsolve.io.npz import write_npz
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


@pytest.mark.parametrize("rule", ["none", "rho:2", "maxmin", "learned"])
def test_fair_regularisation(capsys, data, rule):
    folder, X, y = data
    given = ("--hierarchy", folder / "animals.txt", "--alpha", "0.01", "--normalization", rule)
    lines, _, model = run(capsys, folder, "leaves.npz", *given)
    assert isinstance(structsolve.load(model), HierarchicalSVM)
    own = HierarchicalSVM(read_hierarchy(folder / "animals.txt"), normalization=rule, alpha=0.01)
    assert lines == own.fit(X, y).predict(X).tolist()
    if rule != "none":  # the class takes files, too
        named = ("--estimator", f"HierarchicalSVM:normalization={rule}")
        assert run(capsys, folder, "leaves.npz", *given[:4], *named)[0] == lines
    fit = ("fit", folder / "leaves.npz", "--model", model, *given[:2], "--estimator")
    fails(capsys, *fit, "ExtremeSVM", match="--hierarchy: --estimator ExtremeSVM has no such")
    chosen = ("--alphas", "0.01", "10", "--cv", "2")
    assert run(capsys, folder, "leaves.npz", *given[:2], *given[4:], *chosen)[0] == lines


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
    out = works(capsys, "predict", model, folder / "plain.npz", "--marginals").splitlines()
    marginals = own.predict_marginals(X[:1])[0]
    assert out[0].split("\t")[1:] == [f"{name}:{p:.6f}" for name, p in zip(nodes, marginals)]


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
        match="rows of numbers have no line",
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
            {"kernel": "poly", "kernel_params": {"degree": 2}, "feature_map": "nystroem:7"},
        ),
        (
            ["--feature-map", "rff:9", "--kernel-param", "gamma=0.3"],
            {"kernel_params": {"gamma": 0.3}, "feature_map": "rff:9"},
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
        (["--estimator", "risk", "--scale-features"], "--scale-features: --est"),
        (["--joint-kernel"], "--joint-kernel is for conditional risk"),
        (["--feature-map", "rff:3"], "--feature-map is for conditional risk"),
        (["--estimator", "risk", "--joint-kernel"], "--joint-kernel is for hierarchies; give"),
        (["--estimator", "risk", "--cv", "3"], "--cv chooses among --alphas; found none"),
        (["--estimator", "risk", "--alpha", "1", "--alphas", "1"], "expected one of them"),
        (["--estimator", "risk", "--alphas", "0"], "alphas"),
        (["--estimator", "risk", "--feature-map", "rff"], "'nystroem:N' or 'rff:N'"),
        (["--estimator", "risk", "--feature-map", "pca:3"], "'nystroem:N' or 'rff:N'"),
        (["--estimator", "risk", "--feature-map", "rff:0"], "'nystroem:N' or 'rff:N'"),
        (
            ["--estimator", "risk", "--feature-map", "rff:3", "--kernel", "poly"],
            "is for kernel 'rbf', with only gamma",
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
        (
            ["--structure", "dag:labels=closed", "--hierarchy", "h", "--labels", "closed"],
            "--labels and --structure dag:labels=closed: expected one of them",
        ),
        (
            ["--structure", "dag:labels=closed", "--hierarchy", "animals.txt"],
            r"y: found shape .*, expected \(40, 6\): one column per node of the hierarchy",
        ),
        (
            ["--estimator", "HierarchicalSVM:labels=closed", "--hierarchy", "animals.txt"],
            r"y: found shape .*, expected \(40, 6\): one column per node of the hierarchy",
        ),
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
