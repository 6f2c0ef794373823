"""Built-ins have no privileges: external copies of them are trained, saved and run alike."""

import ast
import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from checks import plugged, plugin_of, refused, reloaded, same
from data import chains, classes
from outside_cases import CASES, NETWORK, TREE
from shell import fails, works
from sklearn.base import clone, is_classifier

import structsolve
from structsolve import ConditionalRiskMinimizer, HierarchicalSVM, Named, StructuredSVM, registry
from structsolve.io.graphs import read_hierarchy
from structsolve.io.npz import write_npz
from structsolve.plugins.dependency.conllu import ConlluSentence, write_conllu
from structsolve.search import make_search
from structsolve.search.hull import ConvexHull
from structsolve.structure.node_losses import NodeCosts, NodeLoss
from structsolve.surrogates import Slack
from structsolve.utils.params import Params

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ANIMALS = "bird owl\nbird duck\nmammal cat\nmammal dog\n"


BOTH = pytest.mark.parametrize(
    "name, params",
    [
        pytest.param(name, params, id=f"{name}-{number}")
        for name, given in CASES.items()
        for number, params in enumerate(given)
    ],
)


def copy_of(name):
    """A class that differs only in its name."""
    original = registry.default().find("structures", name).factory
    made = {"name": f"outside-{name}", "__module__": __name__}
    return type(f"Outside{original.__name__}", (original,), made)


@pytest.fixture(autouse=True, scope="module")
def copies():
    """Return all copies, registered as an external plugin."""
    named = [Named(f"outside-{name}", copy_of(name), "a copy") for name in CASES]
    module = plugin_of("plugin_from_outside", structsolve_structures=lambda: named)
    with plugged(module, "copies"):
        yield


def test_no_structure_is_left_out():
    known = registry.default().names("structures")
    ours = [name for name in known if not name.startswith("outside-")]
    built_in = [
        name
        for name in ours
        if registry.default()
        .find("structures", name)
        .factory.__module__.startswith("structsolve.plugins.")
    ]
    # Functions have no examples of their own to compare.
    assert sorted(built_in) == sorted([*CASES, "functions"])


def test_the_core_names_structures_only_as_defaults():
    # Defaults of arguments and of the shell.
    allowed = {
        "registry/__init__.py": {"chain"},
        "dask/estimator.py": {"chain"},
        "estimators/structured_svm.py": {"chain"},
        "evaluation/structured_svm_cv.py": {"chain"},
        "cli/commands.py": {"chain", "multiclass"},
        # Names in other libraries.
        "utils/suggest.py": {"chain", "dag", "grid", "mrf", "permutation"},
        # The module of pytorch-crf, which is for chains.
        "torch/output_layer.py": {"chain"},
        # Orders of examples.
        "solvers/bcfw.py": {"permutation"},
        "solvers/bcfw_run.py": {"permutation"},
        "solvers/gbcfw.py": {"permutation"},
        "solvers/sgd.py": {"permutation"},
        # Objects used by the kits if their author names none.
        "testing/_backends.py": {"chain", "tree"},
        "testing/_hosts.py": {"chain"},
        "testing/_searches.py": {"chain"},
        "testing/_solvers.py": {"chain"},
        "testing/_surrogates.py": {"chain"},
    }
    core = Path(structsolve.__file__).parent
    named = {}
    for path in core.rglob("*.py"):
        place = path.relative_to(core).as_posix()
        if place.startswith("plugins/"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # "path" is the name of many arguments, too.
            if isinstance(node, ast.Constant) and node.value in CASES.keys() - {"path"}:
                named.setdefault(place, set()).add(node.value)
    assert named == allowed


# -- from Python ----------------------------------------------------------------------------------


def pair(name, params):
    """The built-in and its copy."""
    return structsolve.get_structure(name, **params), structsolve.get_structure(
        f"outside-{name}", **params
    )


def outcome(ask):
    """Return the result of a call, or its error with the original's name for the copy's."""
    try:
        return ask()
    except (ValueError, TypeError, RuntimeError, AttributeError) as error:
        text = str(error).replace("outside-", "").replace("Outside", "")
        return f"{type(error).__name__}: {text}"


def same_answers(one, other, X, y):
    same(one.predict(X), other.predict(X))
    same(one.score(X, y), other.score(X, y))
    for ask in (
        lambda model: model.decision_function(X),
        lambda model: model.predict_kbest(X, 3),
        lambda model: model.predict_marginals(X),
        lambda model: model.sample(X, 2, random_state=0),
        lambda model: model.set_params(oracle="lp").predict(X),
        lambda model: model.set_params(oracle=None).classes_.tolist(),
        lambda model: model.named_weights(),
    ):
        same(outcome(partial(ask, one)), outcome(partial(ask, other)))


@BOTH
def test_training_scoring_and_files(tmp_path, name, params):
    structures = pair(name, params)
    X, y = structures[0].sample(1, n=12)
    models = [StructuredSVM(one, alpha=0.05, max_iter=8, random_state=3) for one in structures]
    assert is_classifier(models[0]) == is_classifier(models[1])
    for model in models:
        model.fit(X, y)
    assert models[1].space_.structure.name == f"outside-{name}"
    same(models[0].coef_, models[1].coef_)
    for key in ("primal", "dual", "oracle_calls"):
        same(*([record.get(key) for record in model.history_] for model in models))
    loaded = []
    for number, model in enumerate(models):
        model.save(tmp_path / f"{number}.structsolve")
        loaded.append(structsolve.load(tmp_path / f"{number}.structsolve"))
    assert type(loaded[1].space_.structure) is type(structures[1])
    same(models[1].predict(X), loaded[1].predict(X))
    same_answers(*models, X, y)
    same_answers(*loaded, X, y)


@BOTH
@pytest.mark.parametrize(
    "settings",
    [
        {"surrogate": "crf"},
        {"surrogate": "max-min"},
        {"surrogate": "slack"},
        {"surrogate": "lp"},
        {"loss": "zero-one"},
        {"loss": "normalized-hamming", "solver": "sgd"},
        {"solver": "cutting-plane", "oracle": "lp"},
    ],
    ids=str,
)
def test_settings_of_training(name, params, settings):
    structures = pair(name, params)
    X, y = structures[0].sample(2, n=6)

    def weights(structure):
        return StructuredSVM(structure, alpha=0.1, max_iter=3, **settings).fit(X, y).coef_

    same(*(outcome(partial(weights, one)) for one in structures))


@BOTH
def test_conditional_risk(tmp_path, name, params):
    structures = pair(name, params)
    X, y = structures[0].sample(4, n=8)
    models = [ConditionalRiskMinimizer(one, alpha=0.1) for one in structures]
    assert is_classifier(models[0]) == is_classifier(models[1])

    def predictions(model):
        model.fit(X, y)
        again = reloaded(model, tmp_path)
        assert type(again.space_.structure) is type(model.structure)
        return model.predict(X), again.predict(X), model.score(X, y)

    same(*(outcome(partial(predictions, model)) for model in models))


@pytest.mark.parametrize("name", ["multiclass", "ordinal"])
@pytest.mark.parametrize("estimator", [StructuredSVM, ConditionalRiskMinimizer])
def test_single_nodes_are_classes_to_scikit_learn(name, estimator):
    X, y = classes(30)
    for structure in (name, f"outside-{name}", structsolve.get_structure(f"outside-{name}")):
        model = clone(estimator(structure, alpha=0.1))
        assert is_classifier(model) and is_classifier(model.fit(X, y))
    assert not is_classifier(estimator("outside-chain"))
    assert not is_classifier(estimator("no-such-structure"))


@pytest.mark.parametrize("normalization", ["none", "rho:2", "maxmin", "learned"])
def test_fairly_penalised_hierarchies(tmp_path, normalization):
    X, number = classes(40, n_classes=4)
    y = np.array(["owl", "duck", "cat", "dog"])[number]
    models = [
        HierarchicalSVM(TREE, normalization=normalization, structure_name=name, alpha=0.05)
        for name in (None, "dag", "outside-dag")
    ]
    for model in models:
        assert is_classifier(model.fit(X, y))
        again = reloaded(model, tmp_path)
        assert again.space_.structure.name == model.structure.name
        same(model.predict(X), again.predict(X))
    assert [model.structure.name for model in models] == ["dag", "dag", "outside-dag"]
    for model in models[1:]:
        same(models[0].coef_, model.coef_)
        same(models[0].score(X, y), model.score(X, y))


def test_a_hierarchy_needs_a_structure_that_takes_one():
    with pytest.raises(ValueError, match="structure_name is 'chain', expected a structure that"):
        HierarchicalSVM(TREE, structure_name="chain").fit([[0.0], [1.0]], ["owl", "cat"])
    message = "unknown structure 'dagg' .did you mean 'dag'.*; known: .*'outside-dag'"
    with pytest.raises(ValueError, match=message):
        HierarchicalSVM(TREE, structure_name="dagg").fit([[0.0], [1.0]], ["owl", "cat"])


# -- the shell ------------------------------------------------------------------------------------


def shell_data(folder, name):
    """Write a file of examples and the structure's description; return options for it."""
    X, number = classes(30, n_classes=4)
    (folder / "animals.txt").write_text(ANIMALS)
    (folder / "network.json").write_text(json.dumps(NETWORK))
    if name == "dependency":
        rng = np.random.default_rng(0)
        structure = structsolve.get_structure(name)
        _, heads = structure.sample(0, n=10)
        sentences = []
        for tree in heads:
            forms = [f"w{rng.integers(4)}" for _ in tree]
            tags = [f"T{rng.integers(3)}" for _ in tree]
            sentences.append(ConlluSentence.of(forms, tags, heads=tree))
        write_conllu(folder / "data.conllu", sentences)
        return folder / "data.conllu", []
    if name == "cky":
        lines = ["(S (NP (D a) (N b)) (V c))", "(S (D a) (VP (V c) (NP (D a) (N b))))"] * 5
        (folder / "data.mrg").write_text("\n".join(lines) + "\n")
        return folder / "data.mrg", []
    path = folder / "data.npz"
    if name in ("chain", "tree", "mrf", "grid", "semi-markov"):
        write_npz(path, *structsolve.get_structure(name).sample(3, n=8))
    elif name == "flow":
        write_npz(path, X, np.where(X[:, :1] > 0, [1, 0, 1, 0], [0, 1, 0, 1]))
        return path, ["--network", folder / "network.json"]
    elif name == "dag":
        write_npz(path, X, np.array(["owl", "duck", "cat", "dog"])[number])
        return path, ["--hierarchy", folder / "animals.txt"]
    elif name == "multilabel":
        write_npz(path, X, (X[:, :3] > 0).astype(int))
    elif name == "permutation":
        write_npz(path, X, np.argsort(X[:, :3], axis=1))
    else:
        write_npz(path, X, number)
    return path, []


# These have no files.
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"path", "alignment", "factor-graph"}))
@pytest.mark.parametrize("estimator", ["margin", "risk"])
def test_the_shell(capsys, tmp_path, name, estimator):
    data, options = shell_data(tmp_path, name)

    def run(structure):
        model = tmp_path / f"{structure}.structsolve"
        given = ["--estimator", estimator, "--alpha", "0.05", "--structure", structure, *options]
        status = structsolve_main("fit", data, "--model", model, *given)
        out, err = capsys.readouterr()
        if status:
            return err.replace("outside-", "").replace("Outside", "")
        assert re.search(rf"^trained +{structure}, ", out, re.M), out
        assert structsolve.load(model).space_.structure.name == structure
        answers = []
        for command in (
            ["predict", model, data],
            ["predict", model, data, "--kbest", "2"],
            ["predict", model, data, "--marginals"],
            ["score", model, data],
            ["score", model, data, "--json"],
        ):
            status = structsolve_main(*command)
            out, err = capsys.readouterr()
            answers.append((status, out, err.replace("outside-", "")))
        assert answers[0][0] == answers[3][0] == 0 and answers[0][1]
        return answers

    one, other = run(name), run(f"outside-{name}")
    assert one == other
    if estimator == "margin":
        assert not isinstance(one, str), one


def structsolve_main(*argv):
    from structsolve.cli.main import main

    return main([str(arg) for arg in argv])


def test_files_that_structures_are_made_of(capsys, tmp_path):
    data, options = shell_data(tmp_path, "flow")
    model = tmp_path / "m.structsolve"
    works(capsys, "fit", data, "--model", model, *options)
    # Ours come before others.
    assert structsolve.load(model).space_.structure.name == "flow"
    line = fails(capsys, "fit", data, "--model", model, "--structure", "outside-flow")
    assert "structure outside-flow needs --network FILE" in line
    line = fails(capsys, "fit", data, "--model", model, "--structure", "outside-chain", *options)
    assert "--network is for structure flow or outside-flow; found outside-chain" in line


def test_the_shell_penalises_fairly(capsys, tmp_path):
    data, options = shell_data(tmp_path, "dag")
    lines = []
    for name in ("dag", "outside-dag"):
        model = tmp_path / f"{name}.structsolve"
        given = ["--structure", name, "--normalization", "rho:2", *options]
        works(capsys, "fit", data, "--model", model, *given)
        assert structsolve.load(model).space_.structure.name == name
        lines.append(works(capsys, "predict", model, data))
    assert lines[0] == lines[1] and set(lines[0].split()) <= set(read_hierarchy(options[1]))


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_continuous_flows_of_a_copy(capsys, tmp_path, loss):
    data, options = shell_data(tmp_path, "flow")
    outs = []
    for name in ("flow", "outside-flow"):
        model = tmp_path / "m.structsolve"
        given = ["--structure", name, "--estimator", "risk", "--loss", loss, *options]
        works(capsys, "fit", data, "--model", model, *given)
        outs.append(works(capsys, "score", model, data))
        assert outs[-1].startswith(f"mean {loss} loss ")
    assert outs[0] == outs[1]


# -- losses and searches from outside -------------------------------------------------------------


class Times(Params):
    """The number of errors times a factor."""

    def __init__(self, factor=2.0):
        self.factor = factor

    def bind(self, space):
        K = len(space.classes_)
        return partial(NodeLoss, NodeCosts(self.factor * (1 - np.eye(K)), name="times"))


def test_losses_from_outside_are_saved(registered, tmp_path):
    X, Y = chains(12)
    model = StructuredSVM("chain", loss=Times(3.0), max_iter=4).fit(X, Y)
    with pytest.raises(ValueError, match="parameter 'loss' is .* cannot be saved without pickle"):
        model.save(tmp_path / "m.structsolve")
    module = registered("more-losses", structsolve_losses=lambda: [Named("times", Times, "more")])
    row = next(r for r in structsolve.list_plugins() if r["name"] == "more-losses")
    assert row["losses"] == ["times"]
    for one in (model, ConditionalRiskMinimizer(loss=Times(0.5)).fit(*classes(20))):
        again = reloaded(one, tmp_path)
        assert isinstance(again.loss, Times) and again.loss.factor == one.loss.factor
        data = (X, Y) if one is model else classes(20)
        assert again.score(*data) == one.score(*data)
        same(again.predict(data[0]), one.predict(data[0]))
    registry.default().unregister(module)
    with pytest.raises(ValueError, match="unknown loss 'times'; known: .*'CostMatrix'"):
        structsolve.load(tmp_path / "m.structsolve")


def test_the_core_declares_its_losses_and_searches():
    known = registry.default()
    assert {"ClassWeights", "CostMatrix", "PathCost"} <= set(known.names("losses"))
    assert {"angular", "binary", "bisecting", "convex-hull", "exact", "sarawagi"} <= set(
        known.names("searches")
    )


def test_searches_from_outside_are_used(registered, tmp_path):
    asked = []

    def golden(max_calls, tol=1e-9):
        asked.append((max_calls, tol))
        return ConvexHull(max_calls, tol)

    registered("more-searches", structsolve_searches=lambda: [Named("golden", golden, "a hull")])
    assert make_search("golden", 20, 1e-3).max_calls == 20 and asked == [(20, 1e-3)]
    X, Y = chains(10)
    one, other = (
        StructuredSVM("chain", surrogate=Slack(search=name), max_iter=3).fit(X, Y)
        for name in ("convex-hull", "golden")
    )
    assert len(asked) > 1
    same(one.coef_, other.coef_)
    other.save(tmp_path / "m.structsolve")
    assert structsolve.load(tmp_path / "m.structsolve").surrogate.search == "golden"
    refused("unknown search 'silver'; known: .*'golden'", make_search, "silver")


def test_what_is_no_search_is_refused(registered):
    registered(
        "wrong-search", structsolve_searches=lambda: [Named("none", lambda *_: object(), "none")]
    )
    with pytest.raises(TypeError, match="returned object from structsolve_searches, expected"):
        make_search("none")
    refused("search is 3, expected a name", make_search, 3)
