"""Errors suggest the name that was meant, and tell beginners what to pass instead of their data."""

import inspect
import pickle

import numpy as np
import pytest
from checks import refused
from sklearn.base import clone

import structsolve
from structsolve import HierarchicalSVM, StructuredSVM, StructuredSVMCV, get_scorer, get_structure
from structsolve.cli.main import main
from structsolve.solvers import BCFW

x = np.arange(12.0).reshape(6, 2)
Y = [[0, 1, 0, 1, 0, 1]]


@pytest.mark.parametrize(
    "settings, meant",
    [
        ({"structure": "chian"}, "chain"),
        ({"structure": "Chain"}, "chain"),
        ({"surrogate": "margn"}, "margin"),
        ({"surrogate": "max_min"}, "max-min"),
        ({"surrogate": "cfr"}, "crf"),
        ({"surrogate": "hinge"}, "margin"),
        ({"structure": "sequence"}, "chain"),
        ({"solver": "bcwf"}, "bcfw"),
        ({"loss": "haming"}, "hamming"),
        ({"solver": BCFW(sampling="gaps")}, "gap"),
    ],
)
def test_names(settings, meant):
    refused(
        f"did you mean '{meant}'", StructuredSVM(**{"structure": "chain", **settings}).fit, [x], Y
    )


def test_scorers_and_metrics():
    refused("did you mean 'span-f1'", get_scorer, "span_f1")
    model = StructuredSVM("chain", alpha=1).fit([x], Y)
    refused("did you mean 'span-f1'", model.score, [x], Y, metric="span_F1")
    cv = StructuredSVMCV("chain", scoring="acuracy", cv=2)
    refused("did you mean 'accuracy'", cv.fit, [x, x], Y * 2)


@pytest.mark.parametrize("kind", [StructuredSVM, HierarchicalSVM, StructuredSVMCV])
def test_parameters_of_estimators(kind):
    with pytest.raises(TypeError, match=r"has no parameter 'maxiter' .did you mean 'max_iter'"):
        kind(maxiter=3)
    # Wrapped constructors show their parameters, copy and pickle as before.
    assert "max_iter" in inspect.signature(kind).parameters
    assert clone(kind(max_iter=7)).max_iter == pickle.loads(pickle.dumps(kind(max_iter=7))).max_iter


def test_parameters_of_other_libraries():
    with pytest.raises(TypeError, match=r"no parameter 'C' .take alpha = 1 / \(C n\) for n exam"):
        StructuredSVM("chain", C=1)
    with pytest.raises(TypeError, match="no parameter 'epochs' .take max_iter"):
        StructuredSVM("chain", epochs=3)
    refused(r"take alpha = 1 / \(C n\)", StructuredSVM("chain").set_params, C=1)
    # The cross-validation has no alpha.
    refused(r"no parameter 'C'; known", StructuredSVMCV, "chain", C=1, error=TypeError)


def test_parameters_of_parts():
    with pytest.raises(TypeError, match=r"BCFW has no parameter 'max_cut' .did you mean 'max_cuts"):
        BCFW(max_cut=3)
    refused("no parameter 'max_cut' .did you mean 'max_cuts'", BCFW().set_params, max_cut=3)
    refused("no parameter 'startend' .did you mean 'start_end'", get_structure, "chain", startend=1)
    refused(r"no parameter 'x'; known", BCFW().set_params, x=3)


def test_nothing_near():
    refused("unknown structure 'zzz'; known", get_structure, "zzz")


def test_one_sequence_alone():
    model = StructuredSVM("chain")
    refused("example 0: found 1 dim.*Pass a list of such matrices; one alone: .x.", model.fit, x, Y)
    refused("found 1 dim.*one alone: .x.", model.fit, x.tolist(), Y)
    refused("X has 1 examples and y has 6; .*labels of one sequence: .y.", model.fit, [x], Y[0])
    refused("found 1 dim.*one alone: .x.", model.fit([x], Y).predict, x)


def test_strings_as_labels():
    refused(
        "y, example 0 is the string 'ababab', expected a list",
        StructuredSVM("chain").fit,
        [x],
        ["ababab"],
    )
    refused("y is the str 'ababab', expected a list", StructuredSVM("multiclass").fit, x, "ababab")


def test_one_class_per_row_for_label_sets():
    refused(
        "For one class a row take structure 'multiclass'", StructuredSVM("multilabel").fit, x, Y[0]
    )


def test_grey_pictures():
    rng = np.random.default_rng(0)
    X, y = rng.random((5, 4, 3)), rng.integers(2, size=(5, 4, 3))
    model = StructuredSVM("grid", alpha=0.1).fit(X[..., None], y)
    for grey in (X, list(X)):
        ours = StructuredSVM("grid", alpha=0.1).fit(grey, y)
        np.testing.assert_array_equal(ours.coef_["node"], model.coef_["node"])
        np.testing.assert_array_equal(ours.predict(grey), model.predict(X[..., None]))


def test_names_of_the_module_and_options_of_the_shell(capsys):
    with pytest.raises(AttributeError, match="did you mean 'StructuredSVM'"):
        structsolve.StructuredSvm  # noqa: B018
    for option, meant in (
        ("--C=1", "(take --alpha = 1 / (C n) for n examples)"),
        ("--epochs", "(take --max-iter)"),
        ("--struture", "(did you mean '--structure'?)"),
        ("--xyzzy", "unrecognized arguments: --xyzzy (see"),
    ):
        assert main(["fit", "none.svm", "--model", "m", option]) == 2
        assert meant in capsys.readouterr().err
    for option in ("--missing=mean", "--hierarchy"):
        assert main(["predict", "m", "none.svm", option]) == 2
        assert f"{option} (an option of fit) (see" in capsys.readouterr().err
