"""A plugin that replaces only the oracle of chains: all their other operators stay."""

from functools import partial

import numpy as np
import pytest
from checks import plugged, plugin_of
from python_structures import PyChainSpace

from structsolve import StructuredSVM
from structsolve.hookspecs import hookimpl
from structsolve.structure.ask import POWERS, ask_power, make_layout
from structsolve.structure.python_operators import PythonOracle
from structsolve.surrogates import Slack

X = [np.random.default_rng(i).normal(size=(3, 2)) for i in range(6)]
Y = [np.random.default_rng(100 + i).integers(0, 2, 3) for i in range(6)]


@pytest.fixture
def replaced():
    """Labels that the plugin's oracle, in Python, has been asked for."""
    asked = []

    class Counted(PyChainSpace):
        def argmax(self, examples, i, theta):
            asked.append(i)
            return super().argmax(examples, i, theta)

    @hookimpl
    def structsolve_oracle(space):
        if space.structure.name == "chain":
            return partial(PythonOracle, Counted.of(space))

    module = plugin_of("another_oracle", structsolve_oracle=structsolve_oracle)
    with plugged(module, "another-oracle"):
        yield asked


SETTINGS = {
    "hamming": {},
    "zero-one": {"loss": "zero-one"},
    "counts": {"surrogate": Slack(search="exact")},
    "counts to one": {"surrogate": Slack(search="exact"), "loss": "zero-one"},
    "k best": {"surrogate": Slack(search="convex-hull", relaxed=False)},
    "cones": {"surrogate": Slack(search="angular")},
    "crf": {"surrogate": "crf"},
    "max-min": {"surrogate": "max-min"},
}


def trained():
    """For each of the settings: the primal, and predictions for X."""
    told = {}
    for name, settings in SETTINGS.items():
        settings = {"alpha": 0.1, "tol": 1e-6, "max_iter": 300, **settings}
        model = StructuredSVM("chain", random_state=0, **settings).fit(X, Y)
        told[name] = model.history_[-1]["primal"], model
    return told


def test_the_other_operators_stay(replaced):
    model = StructuredSVM("chain", alpha=0.1, tol=1e-3).fit(X, Y)
    assert replaced
    layout = make_layout(model.space_, model.space_.pack(X))
    missing = [name for name in POWERS if ask_power(model.space_, name) is None]
    assert missing == ["augmented", "relaxation", "cones"]  # as without the plugin
    for name in ("kbest", "max-marginals", "counts"):
        assert type(ask_power(model.space_, name)(layout)).__module__.endswith("chain._oracle")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_that_rests_on_them_works_alike(request):
    plain = trained()
    asked = request.getfixturevalue("replaced")
    for name, (primal, model) in trained().items():
        assert primal == pytest.approx(plain[name][0], rel=1e-4, abs=1e-9), name
        best, scores = model.predict_kbest(X, 3), model.decision_function(X)
        for x, answers, rows in zip(X, best, scores):
            labels, values = zip(*answers)
            assert len(labels) == 3 and values[0] >= values[1] >= values[2]
            assert labels[0].tolist() == model.predict([x])[0].tolist()
            assert rows.max() == pytest.approx(values[0])
        assert [m.shape for m in model.predict_marginals(X)] == [(3, 2)] * 6
    assert len(asked) > 100
