"""Every solver of ExtremeSVM reads its settings, or refuses them by name."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from extreme_cases import documents

from structsolve import ExtremeSVM
from structsolve.plugins.extreme.solvers.choice import SelfChoice
from structsolve.plugins.extreme.solvers.rivals import ExactRivals
from structsolve.plugins.extreme.solvers.softmax import SampledSoftmax

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SOLVERS = ["choice", "one-vs-some", "softmax", "dual", "memoir"]


@pytest.fixture(scope="module")
def data():
    return documents(60)


@pytest.mark.parametrize("solver", SOLVERS)
def test_memory_is_estimated_before_training(data, solver):
    model = ExtremeSVM(solver=solver, max_memory=100)
    refused(r"max_memory.*|training by Memoir may take", model.fit, *data)
    assert not hasattr(model, "history_")
    ExtremeSVM(solver=solver, max_memory=1e8, max_iter=1).fit(*data)


@pytest.mark.parametrize("solver", ["softmax", "choice", SampledSoftmax(), SelfChoice()])
@pytest.mark.parametrize("rivals", ["exact", "certified:.1", "random:3"])
def test_rivals_that_a_solver_does_not_ask(data, solver, rivals):
    model = ExtremeSVM(solver=solver, rivals=rivals)
    refused(
        rf"rivals is '{rivals}', which solver '\w+' does not take.*use solver", model.fit, *data
    )


@pytest.mark.parametrize("solver", ["one-vs-some", "dual", "memoir"])
def test_rivals_that_a_solver_asks(solver):
    X, y = documents(160, 40, 120)
    drawn = ExtremeSVM(solver=solver, rivals="random:1", max_iter=2).fit(X, y)
    best = ExtremeSVM(solver=solver, rivals="exact", max_iter=2).fit(X, y)
    assert (drawn.coef_ != best.coef_).nnz
    assert drawn.history_[0]["mean_epsilon"] is None
    assert best.history_[0]["mean_epsilon"] == 0 or solver == "dual"


class Liar(ExactRivals):
    """Claims that the worst rivals are the best."""

    name = "liar"

    def rivals(self, X, exclude, k, epsilon=None):
        ids, scores, bounds = super().rivals(X, exclude, self._weights.n_classes - 1)
        return ids[:, -k:], scores[:, -k:], bounds


@pytest.mark.parametrize("solver", ["one-vs-some", "dual", "memoir"])
def test_an_index_that_lies_is_named(solver):
    model = ExtremeSVM(solver=solver, rivals=Liar(), max_iter=2)
    refused("rival index 'liar'.* lies about its bound", model.fit, *documents(160, 40, 120))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"tol": -1.0}, "tol is -1.0"),
        ({"tol": np.nan}, "tol is nan"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"alpha": 0}, "alpha is 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"penalty": "l0"}, "penalty is 'l0'"),
        ({"surrogate": "hinge"}, "surrogate is 'hinge'|unknown surrogate 'hinge'"),
        ({"random_state": -1}, "random_state is -1"),
    ],
)
def test_settings_out_of_range(data, solver, settings, message):
    refused(message, ExtremeSVM(solver=solver).set_params(**settings).fit, *data)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_of_examples_out_of_range(data, solver):
    ones = np.ones(len(data[1]))
    for weights, message in (
        (-ones, "sample_weight of example 0 is -1.0"),
        (0 * ones, "sample_weight is zero for every example"),
        (np.nan * ones, "sample_weight of example 0 is nan"),
    ):
        refused(message, ExtremeSVM(solver=solver).fit, *data, sample_weight=weights)


@pytest.mark.parametrize("solver", ["one-vs-some", "dual", "memoir"])
def test_alpha_beyond_float32(data, solver):
    """Some silently led to weights of zero, or to NaN "for feature 0"."""
    message = "alpha is 1e-300: an example has a share|the first step is .* larger alpha"
    refused(message, ExtremeSVM(solver=solver, alpha=1e-300).fit, *data)
    heavy = np.ones(len(data[1]))
    heavy[0] = 1e40
    message = "an example has a share|the first step is"
    refused(message, ExtremeSVM(solver=solver).fit, *data, sample_weight=heavy)


@pytest.mark.parametrize("surrogate", ["margin", "squared-hinge", "crf", "max-min", "sparsemap"])
def test_dual_ascent_moves_at_any_alpha(surrogate):
    """Steps were measured by the share over alpha: below 1e-8 or so, none was large enough."""
    X, y = documents(60, noise=0)
    model = ExtremeSVM(solver="dual", surrogate=surrogate, alpha=1e-12, max_iter=5)
    assert model.fit(X, y).score(X, y) == 1


def test_examples_without_weight_to_speak_of_take_no_part(data):
    X, y = data
    weights = np.ones(len(y))
    weights[20:30] = 1e-50
    model = ExtremeSVM(solver="one-vs-some", alpha=0.02).fit(X, y, sample_weight=weights)
    weights[20:30] = 0
    other = ExtremeSVM(solver="one-vs-some", alpha=0.02).fit(X, y, sample_weight=weights)
    assert (model.coef_ != other.coef_).nnz == 0


def test_softmax_makes_no_more_passes_than_asked_for(data):
    for most, passes in ((1, 1), (2, 2), (20, 5)):
        assert ExtremeSVM(solver="softmax", max_iter=most).fit(*data).n_iter_ == passes


@pytest.mark.parametrize("solver", SOLVERS)
def test_sources_of_randomness(data, solver):
    models = [
        ExtremeSVM(solver=solver, random_state=state, max_iter=2).fit(*data)
        for state in (np.random.RandomState(3), np.random.RandomState(3))
    ]
    assert models[0].settings_["alpha"] == models[1].settings_["alpha"]
    assert (models[0].coef_ != models[1].coef_).nnz == 0


class Interrupted(SampledSoftmax):
    """Trains normally, and reports that Ctrl-C stopped it."""

    def fit(self, problem, after=None, checkpoint=None):
        result = super().fit(problem)
        result.stop_reason = "interrupted"
        return result


def test_an_interrupted_trial_is_no_choice(data):
    """It was once treated like any trial, and training on all rows began."""
    with pytest.raises(KeyboardInterrupt):
        ExtremeSVM(solver=SelfChoice(softmax=Interrupted())).fit(*data)


def test_a_trial_on_rows_without_features():
    X = sp.csr_matrix((np.ones(2, np.float32), [0, 1], [0, 1, 2, *[2] * 38]), shape=(40, 3))
    for seed in range(10):
        model = ExtremeSVM(solver=SelfChoice(n_train=2), random_state=seed)
        assert model.fit(X, np.arange(40) % 4).n_iter_ >= 1
