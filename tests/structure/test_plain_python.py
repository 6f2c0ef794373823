"""Losses and surrogates in plain Python: trained as the native ones, saved, loaded, refused."""

import numpy as np
import pytest
from checks import plugged, plugin_of, refused, reloaded
from python_structures import PyChainStructure, py_chain

from structsolve import Named, StructuredSVM, TaskLoss
from structsolve.structure import calls
from structsolve.surrogates import CutSurrogate, Slack


class WeighedHamming(TaskLoss):
    """The number of errors times a factor."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def loss(self, space, examples, i, truth, label):
        return self.weight * float((truth != label).sum())

    def loss_costs(self, space, examples, i, truth):
        return {"node": self.weight * (1 - np.eye(len(space.classes_))[truth])}, 0.0

    def costs(self, space, examples, i, nu, transposed):
        return {"node": self.weight * (1 - nu["node"])}, 0.0


class Squared(TaskLoss):
    """The squared number of errors, which is not a sum over parts."""

    averaged = takes_unseen = True

    def loss(self, space, examples, i, truth, label):
        return float((truth != label).sum()) ** 2


class PlainMargin(CutSurrogate):
    """Margin rescaling with the loss times a factor."""

    name = "plain-margin"

    def __init__(self, factor=1.0):
        self.factor = factor

    def cut(self, task, i, theta, truth):
        scores = theta.copy()
        calls.augment(task.loss, i, truth, self.factor, scores)
        label, _, _ = calls.argmax(task.oracle, i, scores)
        index, value = calls.difference(task.parts, i, truth, label)
        # In any order, some of them twice.
        index, value = np.append(index[::-1], index[:1]), np.append(value[::-1], value[:1])
        value[[-1, len(index) - 2][: len(index)]] *= 0.5
        return index, value, self.factor * calls.loss_value(task.loss, i, truth, label)


@pytest.fixture(scope="module")
def data():
    return PyChainStructure().sample(1, n=6, size=3)


@pytest.fixture(scope="module")
def hamming(data):
    return StructuredSVM("chain", alpha=0.1, tol=1e-6).fit(*data)


@pytest.fixture
def plugin():
    def structsolve_losses():
        return ["twice", Named("WeighedHamming", WeighedHamming, "errors")]

    def structsolve_surrogates():
        return [Named("plain-margin", PlainMargin, "margin")]

    def structsolve_loss(space, loss):
        return WeighedHamming(2.0).bind(space) if loss == "twice" else None

    module = plugin_of(
        "plain_python",
        structsolve_losses=structsolve_losses,
        structsolve_surrogates=structsolve_surrogates,
        structsolve_loss=structsolve_loss,
    )
    with plugged(module):
        yield


def primal(data, **settings):
    settings = {"alpha": 0.1, "tol": 1e-6, "structure": "chain"} | settings
    return StructuredSVM(**settings).fit(*data).history_[-1]["primal"]


@pytest.mark.parametrize("structure", ["chain", PyChainStructure()], ids=["native", "python"])
@pytest.mark.parametrize("surrogate", ["margin", "max-min", Slack(search="convex-hull")], ids=str)
def test_losses_train_as_native_ones(data, structure, surrogate):
    settings = {"structure": structure, "surrogate": surrogate, "tol": 1e-2, "max_iter": 60}
    expected = primal(data, **settings)
    assert primal(data, loss=WeighedHamming(), **settings) == pytest.approx(expected, rel=2e-2)


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
@pytest.mark.parametrize("structure", ["chain", PyChainStructure()], ids=["native", "python"])
def test_surrogates_train_as_native_ones(data, hamming, structure, solver):
    settings = {"structure": structure, "solver": solver, "max_iter": 300}
    expected = hamming.history_[-1]["primal"]
    assert primal(data, surrogate=PlainMargin(), **settings) == pytest.approx(expected, rel=1e-5)


def test_by_name_saved_and_loaded(data, plugin, tmp_path):
    X, Y = data
    expected = primal(data, loss=WeighedHamming(2.0))
    assert primal(data, loss="twice") == pytest.approx(expected, rel=1e-6)
    assert primal(data, surrogate="plain-margin:2") == pytest.approx(expected, rel=1e-5)
    for settings in (
        {"loss": WeighedHamming(2.0)},
        {"loss": "twice"},
        {"surrogate": PlainMargin(2.0)},
        {"surrogate": "plain-margin:2"},
    ):
        model = StructuredSVM("chain", alpha=0.1, **settings).fit(X, Y)
        again = reloaded(model, tmp_path)
        assert repr(again) == repr(model) and again.score(X, Y) == model.score(X, Y)
        assert again.fit(X, Y).history_[-1]["primal"] == model.history_[-1]["primal"]


def test_a_space_with_losses_by_name(data, hamming):
    structure = py_chain(losses={"double": WeighedHamming(2.0), "squared": Squared()})
    expected = primal(data, loss=WeighedHamming(2.0))
    assert primal(data, structure=structure, loss="double") == pytest.approx(expected, rel=1e-6)
    assert primal(data, structure=structure) == pytest.approx(hamming.history_[-1]["primal"])
    model = StructuredSVM(structure, loss="other")
    refused(r"unknown loss 'other' .*known: \['double', 'hamming', .*'squared'", model.fit, *data)
    refused("needs a loss that decomposes", model.set_params(loss="squared").fit, *data)
    model = StructuredSVM(structure).fit(*data).set_params(loss="squared")
    errors = [(a != b).sum() ** 2 for a, b in zip(model.predict(data[0]), data[1])]
    assert model.score(*data) == pytest.approx(1 - np.mean(errors))


def test_labels_that_training_did_not_see(data):
    X, Y = data
    strange = [np.where(np.arange(len(y)) == 0, 99, y) for y in Y]
    model = StructuredSVM("chain", loss=Squared(), surrogate="crf", max_iter=2, tol=1e3).fit(X, Y)
    assert model.score(X, strange) < 1
    model.set_params(loss=WeighedHamming())
    refused("example 0: WeighedHamming on structure 'chain' takes no", model.score, X, strange)


@pytest.mark.parametrize(
    "method, answer, message",
    [
        (
            "loss",
            None,
            r"example \d: loss\(\) of WeighedHamming on structure 'chain' returned None",
        ),
        ("loss", np.nan, "returned nan, expected a finite number"),
        ("loss_costs", 1, r"loss_costs\(\) of .*expected a pair \(costs, const\)"),
        ("loss_costs", ({"nodes": 1}, 0), "the block 'nodes', expected blocks of"),
    ],
)
def test_wrong_losses(data, method, answer, message):
    wrong = type("WeighedHamming", (WeighedHamming,), {method: lambda *_: answer})
    refused(message, StructuredSVM("chain", loss=wrong()).fit, *data)


@pytest.mark.parametrize(
    "exact, answer, message",
    [
        (True, None, r"example \d: cut\(\) of surrogate Wrong returned None, expected a tuple"),
        (True, ([0], [1.0], 0.0, 1.0), r"expected a tuple \(index, value, b\)"),
        (False, ([0], [1.0], 0.0), r"expected a tuple \(index, value, b, bound\)"),
        (True, ([-1], [1.0], 0.0), "equally many positions below"),
        (True, ([10**6], [1.0], 0.0), "equally many positions below"),
        (True, ([0, 1], [1.0], 0.0), "equally many positions below"),
        (True, ([0.5], [1.0], 0.0), "equally many positions below"),
        (True, ([0], [np.inf], 0.0), "equally many positions below"),
        (True, ([0], ["x"], 0.0), "equally many positions below"),
        (True, ([0], [1.0], np.nan), "expected finite numbers"),
        (True, ([0], [1.0], "x"), "expected finite numbers"),
        (False, ([0], [1.0], 1.0, 0.5), "the bound 0.5, expected at least 1.0, the value of its"),
    ],
)
def test_wrong_surrogates(data, exact, answer, message):
    def cut(self, *given):
        return answer

    wrong = type("Wrong", (CutSurrogate,), {"cut": cut, "exact": exact})
    refused(message, StructuredSVM("chain", surrogate=wrong()).fit, *data)


def test_bounds_of_surrogates_stay_open(data):
    def cut(self, *given):
        index, value, b = PlainMargin.cut(self, *given)
        return index, value, b, b - given[2][index] @ value + 0.25

    loose = type("Loose", (PlainMargin,), {"cut": cut, "exact": False})
    model = StructuredSVM("chain", surrogate=loose(), alpha=0.1, max_iter=30, tol=1e-9)
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(*data)
    assert model.history_[-1]["gap"] == pytest.approx(0.25, rel=0.05)


def test_what_a_surrogate_raises_names_the_example(data):
    class Fails(CutSurrogate):
        def cut(self, task, i, theta, truth):
            theta[0] = 1

    refused(r"example \d: cut\(\) of surrogate Fails raised .*read-only",
            StructuredSVM("chain", surrogate=Fails()).fit, *data)  # fmt: skip
