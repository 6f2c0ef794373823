"""StructuredSVM.partial_fit between other calls: fit, files, changed settings, other columns."""

import warnings

import numpy as np
import pytest
from checks import refused, reloaded
from data import classes
from sklearn.base import clone

from structsolve import ExtremeSVM, StructuredSVM

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = classes(40)
MODEL = StructuredSVM("multiclass", solver="sgd", alpha=0.1, tol=1e-9, max_iter=20)
QUICK = [{}, *({"solver": name} for name in ("perceptron", "passive-aggressive", "arow"))]


@pytest.mark.parametrize("settings", QUICK, ids=str)
def test_a_fitted_model_goes_on_from_its_weights(settings, tmp_path):
    model = clone(MODEL).set_params(**settings).partial_fit(X, Y).fit(X, Y + 5)
    whole, loaded = clone(model).fit(X, Y + 5), reloaded(model, tmp_path)
    for other in (model, loaded):
        other.partial_fit(X[:1], Y[:1] + 5)
        assert other.classes_.tolist() == [5, 6, 7]
        assert [record["pass"] for record in other.history_] == [*range(1, whole.n_iter_ + 2)]
    assert np.array_equal(model.flat_weights(), loaded.flat_weights())
    moved = np.linalg.norm(model.flat_weights() - whole.flat_weights())
    assert moved < 0.05 * np.linalg.norm(whole.flat_weights())


def test_after_fit_nothing_is_left_of_an_earlier_stream():
    model = clone(MODEL).partial_fit(X, Y)
    assert model.fit(X[:, :2], Y % 2).partial_fit(X[:, :2], Y % 2).classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 2


def test_steps_count_on_over_fit_and_changed_settings():
    model = clone(MODEL).partial_fit(X, Y).partial_fit(X, Y)
    steps = [40, 80]
    for change in ({"alpha": 0.05}, {"solver": "perceptron"}, {"solver": "sgd"}):
        model.set_params(**change).partial_fit(X, Y)
        steps.append(model.history_[-1].get("steps"))
    assert steps == [40, 80, 120, None, 40]
    assert model.alpha_ == 0.05 and model.solver_.name == "sgd"
    fitted = clone(MODEL).fit(X, Y)
    before = fitted.history_[-1]["steps"]
    assert fitted.partial_fit(X, Y).history_[-1]["steps"] == before + 40


def test_other_classes_and_models_without_weights_are_refused():
    model = clone(MODEL).partial_fit(X, Y, classes=[2, 1, 0])
    weights = model.partial_fit(X, Y, classes=np.array([0, 1, 2])).flat_weights()
    for other in ([0, 1, 2, 3], 3):
        refused("expected those of the first call, .0, 1, 2.", model.partial_fit, X, Y, other)
    assert np.array_equal(model.flat_weights(), weights)
    kernel = StructuredSVM("multiclass", kernel="rbf", alpha=0.1).fit(X, Y)
    refused("no vector of weights", kernel.set_params(kernel=None, solver="sgd").partial_fit, X, Y)


@pytest.mark.pandas
def test_columns_keep_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = clone(MODEL).partial_fit(frame, Y).partial_fit(frame, Y)
    refused("feature names", model.partial_fit, frame[list("edcba")], Y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.partial_fit(X, Y)
    assert any("feature names" in str(warning.message) for warning in told)
    assert model.feature_names_in_.tolist() == list("abcde")


@pytest.mark.parametrize(
    ("name", "given"), [("early_stopping", True), ("callbacks", [print]), ("checkpoint", "never")]
)
def test_what_a_pass_over_a_batch_does_not_do_is_refused(name, given):
    told = f"{name} is given, but partial_fit"
    refused(told, clone(MODEL).set_params(**{name: given}).partial_fit, X, Y)
    if name == "checkpoint":
        refused(told, ExtremeSVM(checkpoint=given).partial_fit, X, Y)
