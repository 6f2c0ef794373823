"""Solvers that need a licence, replaced by a stub that records its calls; statuses."""

import json
import sys
import types
import zipfile

import cvxpy
import numpy as np
import pytest
from checks import refused
from lp_cases import packed

import structsolve
from structsolve import StructuredSVM
from structsolve.lp import Cvxpy, LinearDecoder, ask_polytopes
from structsolve.lp.ask import ask_oracle
from structsolve.lp.solvers import SOLVERS
from structsolve.structure import calls
from structsolve.structure.ask import make_layout


class Recorder:
    """Answers by HiGHS under the name of another solver, and records its questions."""

    def __init__(self, monkeypatch, *names):
        self.calls, self.outcome, self.largest = [], None, 0
        real, installed = cvxpy.Problem.solve, cvxpy.installed_solvers()
        recorder = self

        def solve(problem, solver, warm_start, verbose, **options):
            recorder.calls.append((solver, warm_start, options))
            size = problem.variables()[0].size
            recorder.largest = max(recorder.largest, size)
            outcome = recorder.outcome
            if isinstance(outcome, Exception):
                raise outcome
            if callable(outcome):
                outcome(size)
            real(problem, solver="HIGHS")
            if isinstance(outcome, str):
                problem._status = outcome

        monkeypatch.setattr(cvxpy.Problem, "solve", solve)
        monkeypatch.setattr(cvxpy, "installed_solvers", lambda: [*installed, *names])
        monkeypatch.setattr("structsolve.lp.convex.mixed_integer", lambda name: True)

    @property
    def told(self):
        return [(solver, options) for solver, _, options in self.calls]


@pytest.mark.parametrize("solver", ["GUROBI", "MOSEK", "CPLEX", "XPRESS", "COPT", "CBC", "SCIP"])
def test_solvers_with_licences_are_told_their_settings(solver, monkeypatch):
    recorder = Recorder(monkeypatch, solver)
    X, y = np.eye(3), [0, 1, 2]
    traits = SOLVERS[solver]
    settings = {k: 2 for k in ("time_limit", "threads") if getattr(traits, k)}
    model = StructuredSVM("multiclass", tol=0.1).fit(X, y)
    model.set_params(oracle=Cvxpy(solver.lower(), **settings))
    assert model.predict(X).tolist() == y
    asked, options = recorder.told[0]
    assert asked == solver
    flat = json.dumps(options)
    for setting in settings:
        assert all(name.rpartition(".")[2] in flat for name in getattr(traits, setting))
    # Free licences take small programs alone: three rows of classes are not put together.
    assert recorder.largest == (3 if traits.licence else 9)


def test_fractional_answers_go_to_the_solver_that_was_asked(monkeypatch):
    recorder = Recorder(monkeypatch, "GUROBI")
    theta = np.zeros(20)
    theta[[1, 2, 5, 6, 9, 10]] = 1  # any two labels rather differ: three halves
    space, _ = structsolve.get_structure("multilabel").make_space(
        [[0.0]] * 2, [[0, 1, 1], [1, 0, 0]]
    )
    polytopes = ask_polytopes(space, space.pack([[1.0]]))
    for backend, asked in (
        (
            Cvxpy("GUROBI", TimeLimit=9),
            [{"TimeLimit": 9}, {"MIPGap": 0.0, "MIPGapAbs": 0.0, "TimeLimit": 9}],
        ),
        (Cvxpy("CLARABEL"), [{}]),  # it has none: HiGHS
        (Cvxpy("SCIPY"), [{}, {"scipy_options": {"mip_rel_gap": 0.0}}]),
    ):
        recorder.calls.clear()
        _, value, bound = LinearDecoder(polytopes, backend).decode(0, theta)
        assert value == 2.0 and bound >= 2.0
        assert recorder.told == [(backend.solver, options) for options in asked]


def test_a_licence_opens_one_environment_in_a_thread(monkeypatch):
    opened = []
    module = types.ModuleType("gurobipy")
    module.Env = lambda params: opened.append(params) or "environment"
    monkeypatch.setitem(sys.modules, "gurobipy", module)
    recorder = Recorder(monkeypatch, "GUROBI")
    licence = {"WLSSECRET": "hush", "LICENSEID": 1}
    model = _with_licence(np.eye(2), [0, 1]).set_params(oracle__licence=licence)
    model.predict(np.eye(2))
    assert opened == [licence]
    assert all(options["env"] == "environment" for _, options in recorder.told)


@pytest.mark.parametrize(
    "outcome, message",
    [
        (cvxpy.error.SolverError("Model too large for size-limited license"), "more than the size"),
        (RuntimeError("err_missing_license_file(1008)"), "MOSEK finds no valid licence: err_miss"),
        (ImportError("libmosek.so"), "MOSEK is installed, but cannot be loaded: libmosek"),
        (TypeError("unexpected keyword 'eps'"), "MOSEK refuses its options {}"),
        ("unbounded", "MOSEK says that the program is unbounded"),
        ("infeasible", "the polytope of structure 'multiclass' is empty, says 'cvxpy:MOSEK'"),
    ],
)
@pytest.mark.parametrize("batch", [0, 1000])
def test_statuses_are_sentences_that_name_the_example(outcome, message, batch, monkeypatch):
    recorder = Recorder(monkeypatch, "MOSEK")
    model = StructuredSVM("multiclass", tol=0.1).fit(np.eye(2), [0, 1])
    model.set_params(oracle=Cvxpy("MOSEK", batch=batch))
    recorder.outcome = outcome
    refused(f"example 0: .*{message}", model.predict, np.eye(2))
    recorder.outcome = None
    assert model.predict(np.eye(2)).tolist() == [0, 1]


@pytest.mark.parametrize("batch", [0, 1000])
@pytest.mark.parametrize(
    "outcome, message",
    [
        (cvxpy.error.SolverError("no luck"), "MOSEK gave up on a program of 2 variables and 1 row"),
        ("who knows", "MOSEK gave up on a program of 2 variables and 1 rows: who knows"),
    ],
)
def test_what_a_solver_gives_up_on_is_solved_by_highs(outcome, message, batch, monkeypatch, caplog):
    recorder = Recorder(monkeypatch, "MOSEK")
    model = StructuredSVM("multiclass", tol=0.1).fit(np.eye(2), [0, 1])
    model.set_params(oracle=Cvxpy("MOSEK", batch=batch))
    recorder.outcome = outcome
    with caplog.at_level("WARNING", "structsolve.lp"):
        assert model.predict(np.eye(2)).tolist() == [0, 1]
    assert message in caplog.text


@pytest.mark.parametrize("outcome", ["user_limit", "optimal_inaccurate", "infeasible_inaccurate"])
def test_answers_in_doubt_are_solved_again(outcome, monkeypatch):
    recorder = Recorder(monkeypatch, "MOSEK")
    recorder.outcome = outcome
    space, examples = packed("permutation", {}, n=1)
    layout = make_layout(space, examples)
    theta = np.random.default_rng(0).normal(size=layout.sizes(0)[0])
    own = calls.argmax(ask_oracle(space)(layout), 0, theta)
    answer = calls.argmax(ask_oracle(space, "cvxpy:MOSEK")(layout), 0, theta)
    assert answer[1] == pytest.approx(own[1]) and answer[2] == answer[1]
    assert answer[0].tolist() == own[0].tolist()


def test_programs_too_large_for_a_licence_are_solved_one_by_one(monkeypatch):
    recorder = Recorder(monkeypatch, "GUROBI")

    def limit(size):
        if size > 10:
            raise cvxpy.error.SolverError("Solver 'GUROBI' failed.")

    X, Y = structsolve.get_structure("permutation").sample(0, n=9, size=3)
    model = StructuredSVM("permutation", alpha=0.1).fit(X, Y)
    expected = model.predict(X)
    recorder.outcome = limit
    for batch in (None, 1000):
        predicted = model.set_params(oracle=Cvxpy("GUROBI", batch=batch)).predict(X)
        np.testing.assert_array_equal(predicted, expected)
    monkeypatch.setitem(SOLVERS, "GUROBI", SOLVERS["GUROBI"].__class__(licence=(8, 8)))
    recorder.outcome = cvxpy.error.SolverError("Solver 'GUROBI' failed.")
    message = "example 0: a program of 9 variables and 6 rows is more than the size-limited licence"
    refused(message, model.predict, X)


def _with_licence(X, y):
    model = StructuredSVM("multiclass", tol=0.1).fit(X, y)
    return model.set_params(oracle=Cvxpy("gurobi", licence={"WLSSECRET": "hush"}))


def test_files_hold_no_licence(tmp_path):
    path, X, y = tmp_path / "m.structsolve", np.eye(3), [0, 1, 2]
    model = _with_licence(X, y)
    model.save(path)
    assert b"hush" not in path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            assert all(b"hush" not in archive.read(name) for name in archive.namelist())
    assert structsolve.load(path).oracle.licence is None
    assert "hush" not in repr(model.oracle) and "hush" not in repr(model)
