"""Saved models: everything that prediction needs, nothing that executes code."""

import json
import zipfile

import numpy as np
import pytest
from checks import refused, reloaded, same
from data import chains, classes
from sklearn.kernel_approximation import Nystroem

import structsolve
from structsolve import (
    ClassWeights,
    ConditionalRiskMinimizer,
    CostMatrix,
    HierarchicalSVM,
    StructuredSVM,
)
from structsolve.solvers import BCFW
from structsolve.utils import container

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("labels", [np.array([3, 5, 8]), np.array(["ä", "B-x", "O"])])
def test_chain_round_trip(tmp_path, intercept, labels):
    X, Y = chains(10)
    Y = [labels[y] for y in Y]
    model = StructuredSVM(
        structsolve.get_structure("chain", start_end=False),
        loss=ClassWeights({labels.tolist()[0]: 2.0}),
        solver=BCFW(sampling="gap"),
        fit_intercept=intercept,
        max_iter=4,
    ).fit(X, Y)
    model.metadata_ = {"source": "test", "numbers": [1, 2.5]}
    again = reloaded(model, tmp_path)
    assert repr(again) == repr(model)
    assert again.history_ == model.history_
    assert again.metadata_ == model.metadata_
    assert again.classes_.dtype == model.classes_.dtype
    same(dict(again.coef_), dict(model.coef_))
    same(again.predict_marginals(X), model.predict_marginals(X))
    again.save(tmp_path / "n.structsolve")


def test_edge_features_and_cost_matrix(tmp_path):
    X, Y = chains(10)
    X = [(x, np.ones((len(x) - 1, 2))) for x in X]
    model = StructuredSVM("chain", loss=CostMatrix(1 - np.eye(3)), max_iter=3).fit(X, Y)
    again = reloaded(model, tmp_path)
    assert [y.tolist() for y in again.predict(X)] == [y.tolist() for y in model.predict(X)]
    assert again.score(X, Y) == model.score(X, Y)


@pytest.mark.pandas
def test_multiclass_with_feature_names(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = classes(20)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = StructuredSVM("multiclass").fit(frame, y)
    again = reloaded(model, tmp_path)
    assert again.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


@pytest.mark.pandas
@pytest.mark.parametrize("kind", [range, np.arange, lambda n: tuple(np.arange(n)), "index"])
def test_parameters_in_any_kind_of_list(kind, tmp_path):
    X, y = classes(20)
    if kind == "index":
        kind = pytest.importorskip("pandas").RangeIndex
    model = StructuredSVM(structsolve.get_structure("ordinal", classes=kind(3))).fit(X, y)
    again = reloaded(model, tmp_path)
    assert again.structure.classes == [0, 1, 2]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_cannot_be_saved_says_so(tmp_path):
    X, Y = chains(5)

    class Odd(BCFW):
        name = "odd"

    model = StructuredSVM("chain", solver=Odd(), max_iter=2).fit(X, Y)
    refused("'solver' .* cannot be saved without pickle", model.save, tmp_path / "m.structsolve")
    assert not (tmp_path / "m.structsolve").exists()


def test_a_missing_structure_is_named(tmp_path):
    X, Y = chains(5)
    path = tmp_path / "m.structsolve"
    StructuredSVM(structsolve.get_structure("chain"), max_iter=2).fit(X, Y).save(path)
    edit = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            edit[name] = archive.read(name)
    key = next(n for n in edit if n.endswith(".json"))
    text = edit[key].decode().replace('"name": "chain"', '"name": "helix"')
    text = text.replace('"name":"chain"', '"name":"helix"')
    assert "helix" in text and json.loads(text)
    edit[key] = text.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in edit.items():
            archive.writestr(name, data)
    refused("unknown structure 'helix'|damaged|checksum", structsolve.load, path)


def forged(path, change):
    """Rewrite a model file, with its checksums, after a change of its content."""
    meta, arrays = container.read(path, "model")
    change(meta, arrays)
    container.write(path, "model", meta, arrays)


def test_settings_of_solvers_that_went_are_read_over(tmp_path):
    path = tmp_path / "m.structsolve"
    X, y = classes(20)
    model = StructuredSVM("multiclass", solver=BCFW(max_cuts=7), max_iter=2).fit(X, y)
    model.save(path)
    forged(path, lambda m, a: m["params"]["solver"]["params"].update(cached_gain=0.5))
    loaded = structsolve.load(path)
    assert loaded.solver.max_cuts == 7 and not hasattr(loaded.solver, "cached_gain")
    assert list(loaded.predict(X)) == list(model.predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, a: m["params"].update(checkpoint="x"), "sets 'checkpoint'"),
        (lambda m, a: m["params"].update(callbacks=[1]), "sets 'callbacks'"),
        (lambda m, a: m["params"].update(max_iter=-1), "max_iter is -1"),
        (lambda m, a: m["params"].update(alpha=None), "alpha is None"),
        (lambda m, a: m["params"].update(oracle=3), "oracle is 3"),
        (lambda m, a: m["params"].update(loss=None), "loss is None"),
        (lambda m, a: m["space"].update(n_features=-1), "n_features is -1"),
        (lambda m, a: m["space"].update(n_features=2**30), "far more than it holds"),
        (lambda m, a: m.update(history=3), "history"),
        (lambda m, a: m.pop("space"), "space"),
        (lambda m, a: m["params"].update(solver=m["structure"]), "expected one of solvers"),
        (lambda m, a: a["coef_node"].fill(np.nan), "NaN or infinity"),
        (lambda m, a: a.pop("coef_intercept"), "intercept"),
        (lambda m, a: [a.pop(k) for k in list(a) if k.startswith("coef")], "no weights"),
    ],
)
def test_what_a_file_may_set_is_a_list(tmp_path, saved, change, message):
    path = tmp_path / "m.structsolve"
    path.write_bytes(saved)
    forged(path, change)
    refused(f"m.structsolve' cannot be loaded: .*{message}", structsolve.load, path)


MODELS = {
    "classes": lambda: StructuredSVM("multiclass", max_iter=2),
    "kernel": lambda: StructuredSVM("multiclass", kernel="rbf", max_iter=2),
    "risk": lambda: ConditionalRiskMinimizer(alphas=[0.1, 1.0]),
    "map": lambda: ConditionalRiskMinimizer(
        kernel=None, feature_map=Nystroem(n_components=3, random_state=0)
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["U8", "M8[s]", "c16"])
def test_arrays_of_another_type_are_refused_by_name(tmp_path, name, kind):
    """With one list for all models; names of classes may be words or dates."""
    X, y = classes(20)
    path = tmp_path / "m.structsolve"
    MODELS[name]().fit(X, y).save(path)
    meta, arrays = container.read(path, "model")
    for entry, array in arrays.items():
        changed = np.zeros(array.shape, dtype=kind)
        if entry == "space_classes" and kind != "c16":
            continue
        container.write(path, "model", meta, arrays | {entry: changed})
        refused(f"cannot be loaded: {entry} holds .*, expected", structsolve.load, path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    X, Y = chains(10)
    path = tmp_path_factory.mktemp("saved") / "m.structsolve"
    StructuredSVM("chain", max_iter=2).fit(X, Y).save(path)
    return path.read_bytes()


def test_a_file_does_not_set_the_number_of_threads(tmp_path, saved):
    path = tmp_path / "m.structsolve"
    path.write_bytes(saved)
    forged(path, lambda m, a: m["params"].update(n_jobs=10**6))
    assert structsolve.load(path).n_jobs == StructuredSVM().n_jobs


@pytest.mark.parametrize("place", [-1, 1])
def test_sparse_weights_whose_rows_lie(tmp_path, place):
    X, y = classes(12)
    path = tmp_path / "m.structsolve"
    model = HierarchicalSVM([(0, 1), (0, 2), (2, 3), (2, 4)], sparse=True, solver="sgd")
    model.set_params(max_iter=2).fit(X, np.array([1, 3, 4])[y]).save(path)
    forged(path, lambda m, a: a["sparse_indptr"].__setitem__(place, 0 if place < 0 else 10**6))
    refused("cannot be loaded: its weights: the sparse matrix is broken", structsolve.load, path)
