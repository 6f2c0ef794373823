"""Runs of the default solver whose gap others close: weak regularisation."""

import logging
import warnings

import numpy as np
import pytest
from checks import plugged, plugin_of, same_run
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from solver_cases import make_case

import structsolve
from structsolve import Named, Problem, StructuredSVM
from structsolve.plugins.multiclass import InteriorPoint
from structsolve.solvers import BCFW, Auto, Smoothing, closing
from structsolve.solvers.base import Solver
from structsolve.solvers.choose import begin
from structsolve.solvers.closing import ClosingRun
from structsolve.solvers.run import Run, Start, relative_gap


def fitted(structure, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return StructuredSVM(structure, **more).fit(X, y)


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("surrogate", ["margin", "crf"])
@pytest.mark.parametrize("alpha", [1e-2, 1e-4, 1e-6, 1e-8, 1e3])
def test_rows_of_classes_end_with_a_certificate_at_any_alpha(load, surrogate, alpha):
    model = fitted("multiclass", *load(return_X_y=True), surrogate=surrogate, alpha=alpha)
    assert model.stop_reason_ == "converged"
    assert relative_gap(model.history_[-1]) <= model.tol


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_features_of_any_scale(scale, caplog):
    X, y = load_iris(return_X_y=True)
    caplog.set_level(logging.INFO, "structsolve.solvers")
    model = fitted("multiclass", X * scale, y, alpha=1e-6 * scale**2)
    assert model.solver_.name == "interior-point" and model.score(X * scale, y) > 0.97
    assert "after pass 30 'interior-point' goes on from the best weights" in caplog.messages


@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_labels_that_share_parts(structure):
    rng, X, Y = np.random.default_rng(0), [], []
    directions = rng.normal(size=(6, 3))
    for _ in range(150):
        x = rng.normal(size=(int(rng.integers(3, 9)), 6))
        Y.append((x @ directions).argmax(axis=1))
        X.append(x if structure == "chain" else (x, np.arange(len(x)) - 1))
    model = fitted(structure, X, Y, alpha=1e-6)
    assert (model.stop_reason_, model.solver_.name) == ("converged", "smoothing")
    assert StructuredSVM(structure).fit(X, Y).solver_.name == "bcfw"


@pytest.mark.parametrize("kind", ["chain", "ties", "classes"])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("later", [[], [Smoothing()]])
def test_every_record_holds_against_the_optimum(kind, alpha, later, monkeypatch):
    monkeypatch.setattr(closing, "PASSES", 2)
    monkeypatch.setattr(closing, "LAST", 1)
    case = make_case(kind, 3, 7)
    best = case.optimum(alpha)
    start = Start(case.problem, alpha, np.random.default_rng(0), tol=0.0)
    run, names = ClosingRun(BCFW(certify_every=1), lambda: [Smoothing(), *later], start), set()
    for _ in range(12):
        record = run.step()
        names.add(run.solver.name)
        assert record["dual"] <= best.value * (1 + 1e-7)
        assert record["primal"] >= best.value * (1 - 1e-7)
        assert record["gap"] == pytest.approx(record["primal"] - record["dual"])
    assert names == {"bcfw", "smoothing"}
    assert record["primal"] == pytest.approx(case.problem.primal(run.weights(), alpha)[0])


class Stuck(InteriorPoint):
    """Ends in its first pass, as after rounding errors."""

    def start(self, start):
        run = super().start(start)
        step = run.step
        run.step = lambda: {**step(), "failed": "rounding"}
        return run


@pytest.mark.parametrize("later", [[], [Smoothing()]])
def test_the_next_goes_on_where_rounding_ends_one(later, monkeypatch):
    monkeypatch.setattr(closing, "PASSES", 2)
    monkeypatch.setattr(closing, "LAST", 1)
    X, y = load_iris(return_X_y=True)
    problem = Problem(*structsolve.get_structure("multiclass").make_space(X, y))
    start = Start(problem, 1e-6, np.random.default_rng(0), tol=1e-12)
    run, names = ClosingRun(BCFW(certify_every=1), lambda: [Stuck(), *later], start), []
    primals = []
    for _ in range(8):
        record = run.step()
        assert record.get("failed") is None
        assert record["primal"] == pytest.approx(problem.primal(run.weights(), 1e-6)[0])
        primals.append(record["primal"])
        names.append(run.solver.name)
    assert names[-1] == (later[0].name if later else "bcfw")
    assert "interior-point" in names and primals == sorted(primals, reverse=True)


def test_what_has_settings_or_early_stopping_trains_as_it_says():
    X, y = load_iris(return_X_y=True)
    problem = Problem(*structsolve.get_structure("multiclass").make_space(X, y))
    start = Start(problem, 1e-6, np.random.default_rng(0))
    assert isinstance(begin(BCFW(), start, Auto()), ClosingRun)
    for asked, alone in ((Auto(sampling="gap"), False), (BCFW(), False), (Auto(), True)):
        assert not isinstance(begin(BCFW(), start, asked, alone=alone), ClosingRun)
    plain = StructuredSVM("multiclass").fit(X, y)
    same_run(plain, StructuredSVM("multiclass", solver="bcfw").fit(X, y))


@pytest.mark.parametrize("kept", ["checkpoint", "warm_start"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_runs_that_are_kept_go_on_by_themselves(kept, tmp_path):
    X, y = load_iris(return_X_y=True)
    setting = {kept: tmp_path / "run.npz" if kept == "checkpoint" else True}
    model = StructuredSVM("multiclass", solver=Auto(), alpha=1e-6, max_iter=40, **setting)
    first = model.fit(X, y).history_[-1]["primal"]
    model.set_params(max_iter=60).fit(X, y)
    assert (model.n_iter_, model.solver_.name) == (60, "bcfw")
    assert model.history_[-1]["primal"] <= first


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_fitted_solver_has_made_a_pass():
    data = load_iris(return_X_y=True)
    for passes, name in ((closing.PASSES, "bcfw"), (closing.PASSES + 1, "interior-point")):
        model = StructuredSVM("multiclass", alpha=1e-6, max_iter=passes).fit(*data)
        assert (model.n_iter_, model.solver_.name) == (passes, name)


class Idle(Run):
    """Keeps what docs/write_solver.rst promises, and nothing else."""

    def __init__(self, start):
        self.given, self.w = start, np.zeros(start.problem.dim)

    def step(self):
        primal, calls = self.given.problem.primal(self.w, self.given.alpha)
        record = {"primal": primal, "dual": 0.0, "gap": primal, "certified": True}
        return {**record, "oracle_calls": calls}

    def weights(self):
        return self.w.copy()


def fitted_by_a_package(rule, start, **settings):
    """Fit iris where a package's solver declares the rule of all problems."""
    own = {"name": "own", "start": lambda self, given: start(given)}
    own[rule] = classmethod(lambda cls, problem: True)
    named = [Named("own", type("Own", (Solver,), own))]
    with plugged(plugin_of("own_solvers", structsolve_solvers=lambda: named)):
        model = StructuredSVM("multiclass", alpha=1e-6, max_iter=40, **settings)
        return model.fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("rule", ["suits", "closes"])
def test_what_start_returns_to_the_default_solver_is_checked(rule, monkeypatch):
    monkeypatch.setattr(InteriorPoint, "closes", Solver.closes)
    with pytest.raises(TypeError, match=r"^Own\(\): start\(\) returned None, expected a Run"):
        fitted_by_a_package(rule, lambda given: None)


@pytest.mark.parametrize("rule", ["suits", "closes"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_runs_of_packages_need_not_know_their_best_primal(rule):
    told = []
    model = fitted_by_a_package(rule, Idle, tol=1e-9, callbacks=[told.append])
    assert model.n_iter_ > 30 and model.solver_.name != "bcfw"
    assert min(r["primal"] for r in told if r["certified"]) == model.history_[-1]["primal"]
