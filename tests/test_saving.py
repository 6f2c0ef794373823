"""Saved models: everything that prediction needs, nothing that executes."""

import json
import zipfile

import numpy as np
import pytest
from checks import refused, reloaded, same
from data import chains, classes

import structsolve
from structsolve import ClassWeights, CostMatrix, StructuredSVM
from structsolve.solvers import BCFW

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


def test_multiclass_with_feature_names(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = classes(20)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = StructuredSVM("multiclass").fit(frame, y)
    again = reloaded(model, tmp_path)
    assert again.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


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
