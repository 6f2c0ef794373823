"""info(): tables of the largest weights of each block, against named_weights."""

import json
from functools import partial

import numpy as np
import pytest
from checks import refused

from structsolve import HierarchicalSVM, StructuredSVM, make_strips
from structsolve.estimators.weights import NamedBlock
from structsolve.plugins.cky import CKYStructure
from structsolve.plugins.dag import DagStructure

STRUCTURES = ["chain", "tree", "grid", "mrf", "multilabel", "multiclass", "permutation", "ordinal"]


@pytest.fixture(scope="module", params=[*STRUCTURES, "dependency", DagStructure({"a": ["b"]})])
def model(request):
    structure = StructuredSVM(request.param)._structure_for(None)
    X, Y = structure.sample(0, n=6)
    return StructuredSVM(structure, max_iter=3, tol=1.0).fit(X, Y)


def test_all_weights_are_those_by_name(model):
    given = {}
    for block, names, weight in model.named_weights():
        given.setdefault(block, []).append((weight, *names))
    info = model.info(top=None)
    assert info.keys() == model.coef_.keys()
    for block, rows in info.items():
        assert sorted(tuple(row.values())[-1:] + tuple(row.values())[:-1] for row in rows) == (
            sorted(given.get(block, []))
        )
        weights = [row["weight"] for row in rows]
        assert weights == sorted(weights, reverse=True) and 0 not in weights
        assert len({tuple(row) for row in rows}) <= 1


@pytest.mark.parametrize("top", [1, 2, 5])
def test_the_largest_of_each_sign(model, top):
    for block, rows in model.info(top=top).items():
        weights = [row["weight"] for row in rows]
        values = np.sort(model.coef_[block].ravel())
        expected = [*values[values > 0][::-1][:top], *values[values < 0][:top][::-1]]
        assert weights == expected
    assert str(model.info(top=top)).count("...") <= len(model.coef_)


@pytest.mark.parametrize("values", [[0, 0, 0], [1, 1, 1, 1], [-1, 0, -1], [2, -3, 0, 2, -3, 1]])
@pytest.mark.parametrize("top", [1, 2, 3, 9, None])
def test_ties_and_zeros(values, top):
    values = np.array(values, dtype=float)
    block = NamedBlock("b", ("number",), [np.arange(len(values))], values)
    chosen = block.extremes(top)
    many = len(values) if top is None else top
    assert (values[chosen] > 0).sum() == min(many, (values > 0).sum())
    assert (values[chosen] < 0).sum() == min(many, (values < 0).sum())
    assert len(set(chosen.tolist())) == len(chosen) and (np.diff(values[chosen]) <= 0).all()


@pytest.mark.pandas
def test_text_frames_and_names():
    train, _ = make_strips(30, 1)
    model = StructuredSVM("chain", alpha=0.1, tol=1e-3).fit(train.pixels, train.labels)
    names = [f"pixel {j}" for j in range(64)]
    info = model.info(top=3, feature_names=names)
    lines = str(info).splitlines()
    assert lines[0] == "transition: from -> to, 100 of 100 weights are not 0"
    assert lines[4] == "       ..." and len([*info["transition"]]) == 6
    first = info["node"][0]
    assert first["feature"] in names and f"{first['feature']} -> {first['class']}" in str(info)
    assert json.loads(json.dumps(info)).keys() == info.keys() and repr(info) == str(info)
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(info["node"]).columns.tolist() == ["feature", "class", "weight"]
    refused("feature_names has 2 entries, expected 64", model.info, 3, ["a", "b"])
    for top in (0, 1.5, "x"):
        refused(f"top is {top!r}, expected an integer >= 1", model.info, top)


def test_sparse_weights():
    X, y = np.eye(4), np.array(["b", "c", "b", "c"])
    model = HierarchicalSVM({"a": ["b", "c"]}, sparse=True, max_iter=3).fit(X, y)
    rows = model.info(top=None)["node"]
    dense = model.coef_["node"].toarray()
    assert {row["weight"] for row in rows} == {*dense[dense != 0].tolist()}


def test_axes_have_names_and_one_title_each():
    X, y = np.eye(4), np.array(["b", "c", "b", "c"])
    info = HierarchicalSVM({"a": ["b", "c"]}, alpha=0.1).fit(X, y).info(top=None)
    assert {row["node"] for row in info["node"]} <= {"a", "b", "c"}
    structure = StructuredSVM("semi-markov")._structure_for(None)
    X, Y = structure.sample(0, n=6)
    model = StructuredSVM(structure, max_iter=3, tol=1.0).fit(X, Y)
    assert min(model.space_.axis_names["length"]) == 1
    assert {row["length"] for row in model.info(top=None)["length"]} <= {1, 2, 3, 4, 5}
    structure = CKYStructure(grammar=True)
    X, Y = structure.sample(0, n=6)
    info = StructuredSVM(structure, max_iter=3, tol=1.0).fit(X, Y).info(top=None)
    for rows in info.values():
        assert len({tuple(row) for row in rows}) <= 1
    assert "rule: class -> class 2 -> class 3" in str(info)


def test_an_axis_of_one_place_is_left_out():
    structure = StructuredSVM("path")._structure_for(None)
    model = StructuredSVM(structure, max_iter=3, tol=1.0).fit(*structure.sample(0, n=6))
    info = model.info(top=None)
    assert "node: feature, " in str(info) and all(
        set(row) == {"feature", "weight"} for row in info["node"]
    )


@pytest.mark.pandas
def test_names_given_are_not_those_of_training_in_another_order():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.eye(4, 2), columns=["a", "b"])
    model = StructuredSVM("multiclass").fit(X, [0, 1, 1, 1])
    for call in (model.info, model.named_weights):
        refused("found 'b' for feature 0, but it named", partial(call, feature_names=["b", "a"]))
        refused("feature_names is 'ab', expected a list", partial(call, feature_names="ab"))
        assert "up" in str(call(feature_names=iter(["up", "b"])))
