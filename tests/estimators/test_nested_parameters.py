"""Parameters of an object given by name: ``structure__start_end`` if structure is "chain"."""

import numpy as np
import pytest
from checks import refused
from data import chains
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import structsolve
from structsolve import ConditionalRiskMinimizer, ExtremeSVM, Named, StructuredSVM

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_grid_search_reaches_structure_surrogate_and_solver():
    X, Y = chains(12)
    model = StructuredSVM("chain", surrogate="crf", solver="lbfgs", max_iter=3)
    grid = {"structure__start_end": [False, True], "solver__memory": [2, 5], "alpha": [0.1]}
    search = GridSearchCV(model, grid, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_
    assert best.structure.start_end is search.best_params_["structure__start_end"]
    assert best.solver.memory == search.best_params_["solver__memory"]
    assert (model.structure, model.solver) == ("chain", "lbfgs")  # as the user gave them
    cuts = StructuredSVM("chain", solver="bcfw").set_params(solver__max_cuts=7)
    assert cuts.solver.max_cuts == 7 and cuts.structure == "chain"
    margin = StructuredSVM("chain").set_params(surrogate__relaxed=False)
    assert margin.surrogate.relaxed is False


def test_grids_may_be_arrays():
    X, Y = chains(12)
    grid = {
        "loss": np.array(["hamming", "normalized-hamming"]),
        "surrogate": np.array(["slack"]),
        "solver": np.array(["bcfw"]),
        "max_iter": np.array([3]),
        "alpha": np.array([0.1]),
    }
    search = GridSearchCV(StructuredSVM("chain"), grid, cv=2, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 2


def test_arguments_are_kept_until_they_are_set():
    model = StructuredSVM("chain:transitions=false", loss="hamming")
    assert model.get_params()["structure"] == "chain:transitions=false"
    twin = clone(model).set_params(structure__start_end=False)
    assert model.structure == "chain:transitions=false"
    assert (twin.structure.start_end, twin.structure.transitions) == (False, False)
    assert twin.get_params()["structure__start_end"] is False
    again = clone(twin)
    assert again.structure is not twin.structure and again.structure.start_end is False
    # The outer one may change with the inner one, in any order.
    other = clone(model).set_params(structure__oracle="trws", structure="mrf")
    assert (other.structure.name, other.structure.oracle) == ("mrf", "trws")


def test_in_pipelines_and_other_estimators():
    risk = ConditionalRiskMinimizer("ordinal").set_params(structure__thresholds=False)
    assert risk.structure.thresholds is False
    steps = make_pipeline(StandardScaler(), StructuredSVM("chain"))
    steps.set_params(structuredsvm__structure__start_end=False)
    assert steps[-1].structure.start_end is False
    assert ExtremeSVM(rivals="random:3").set_params(rivals__k=5).rivals.k == 5


def test_what_cannot_be_set_is_named(registered):
    model = StructuredSVM("chain")
    refused("ChainStructure has no parameter 'starts'", model.set_params, structure__starts=1)
    refused("unknown solver 'newton'", model.set_params, solver="newton", solver__steps=1)
    refused("unknown loss 'auto'", model.set_params, loss__factor=2)
    assert model.get_params()["structure"] == "chain"
    registered(structsolve_solvers=lambda: [Named("bare", object, "no parameters")])
    message = "solver__steps: solver 'bare' makes an object, which has no parameter 'steps'"
    refused(message, model.set_params, solver="bare", solver__steps=1)
    assert structsolve.StructuredSVM().set_params(alpha=2.0).alpha == 2.0
