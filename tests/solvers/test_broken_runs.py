"""Runs of packages' solvers that answer with the wrong things: errors name the method."""

import numpy as np
import pytest

from structsolve import Problem, StructuredSVM, get_structure
from structsolve.solvers.base import Solver
from structsolve.solvers.closing import ClosingRun
from structsolve.solvers.run import Run, Start

X, Y = [np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]]
RECORD = {"primal": 1.0, "dual": None, "gap": None, "certified": False, "oracle_calls": 0}


class Broken(Run):
    def __init__(self, start, record=RECORD, weights=np.zeros):
        self.given, self.record, self.make = start, record, weights

    def step(self):
        return self.record

    def certify(self):
        return dict(RECORD)

    def weights(self):
        return self.make(self.given.problem.dim)


def fit_with(start, **settings):
    class Own(Solver):
        name = "own"

    Own.start = lambda self, given: start(given)
    return StructuredSVM("chain", solver=Own(), max_iter=2, **settings).fit(X, Y)


@pytest.mark.parametrize(
    "record, told",
    [
        (None, "None, expected a record"),
        ({"primal": 1.0}, "None as 'oracle_calls', expected a number"),
        ({**RECORD, "primal": "low"}, "'low' as 'primal', expected a number or None"),
        ({**RECORD, "gap": [1]}, "'gap', expected a number or None"),
    ],
)
def test_records_are_checked(record, told):
    with pytest.raises(TypeError, match=rf"Broken\.step\(\) returned.*{told}"):
        fit_with(lambda given: Broken(given, record))
    first = type("Own", (Solver,), {"start": lambda self, given: Broken(given, record)})()
    problem = Problem(*get_structure("chain").make_space(X, Y))
    run = ClosingRun(first, list, Start(problem, 1.0, np.random.default_rng(0)))
    with pytest.raises(TypeError, match=rf"Broken\.step\(\) returned.*{told}"):
        run.step()


@pytest.mark.parametrize(
    "weights",
    [
        lambda n: None,
        lambda n: np.zeros(n, np.float32),
        lambda n: np.zeros((1, n)),
        lambda n: np.zeros(n - 1),
    ],
)
def test_weights_are_checked(weights):
    with pytest.raises(TypeError, match=r"Broken\.weights\(\) returned .*expected float64"):
        fit_with(lambda given: Broken(given, dict(RECORD), weights))


@pytest.mark.parametrize("run", [None, 7])
def test_what_start_returns_is_checked(run):
    with pytest.raises(TypeError, match=rf"start\(\) returned {run}, expected a Run"):
        fit_with(lambda given: run)


@pytest.mark.parametrize("state", [None, {}, ({}, None), ([], {}), ({}, {}, {})])
def test_states_are_checked(tmp_path, state):
    start = type("Broken", (Broken,), {"state": lambda self: state})
    with pytest.raises(TypeError, match=r"Broken\.state\(\) returned .*expected a pair of dicts"):
        fit_with(start, checkpoint=tmp_path / "run.checkpoint")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_fitted_solver_is_the_given_one_whatever_its_run_holds():
    class Other(Broken):
        solver = "of a library"

    assert fit_with(lambda given: Other(given, dict(RECORD))).solver_.name == "own"
