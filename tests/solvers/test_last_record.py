"""The last record of a fit belongs to the returned weights, however training ended."""

import numpy as np
import pytest
from data import chains

import structsolve
from structsolve import StructuredSVM
from structsolve.plugins.mrf import MRFStructure
from structsolve.solvers import BCFW
from structsolve.solvers.problem import Problem

X, Y = chains(25)
RNG = np.random.default_rng(0)
ROWS, CLASSES = RNG.normal(size=(30, 3)), np.arange(30) % 3
SURROGATES = {
    "bcfw": ("margin", "crf", "sparsemap", "slack", "unit-margin", "lp"),
    "gbcfw": ("crf", "sparsemap"),
    "sdca": ("crf", "sparsemap"),
    "cutting-plane": ("margin", "crf", "slack", "log", "probloss"),
    "sgd": ("margin", "crf", "slack", "log", "probloss"),
    "lbfgs": ("crf",),
    "smoothing": ("margin",),
    "interior-point": ("margin", "crf"),
    "admm": ("margin", "crf", "sparsemap", "slack"),
}
CASES = [(solver, surrogate) for solver, known in SURROGATES.items() for surrogate in known]


def interrupt(record):
    if record["pass"] >= 4:
        raise KeyboardInterrupt


ENDS = {
    "max_iter": {"max_iter": 7, "tol": 0},
    "converged": {"max_iter": 300, "tol": 0.05},
    "callback": {"tol": 0, "callbacks": [lambda record: record["pass"] >= 3]},
    "interrupted": {"tol": 0, "callbacks": [interrupt]},
    "early_stopping": {"tol": 0, "early_stopping": True, "n_iter_no_change": 2},
}


def recomputed(model, X, y, alpha=0.01):
    """Return the objective at the weights of a model, computed from its examples only."""
    space, examples = structsolve.get_structure(model.structure).make_space(X, y)
    problem = Problem(space, examples, model._scored_loss(space), model.surrogate)
    return problem.primal(model.flat_weights(), alpha)[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("solver", "surrogate"), CASES)
def test_primal_and_weights_belong_together(solver, surrogate, end):
    structure = "multiclass" if solver == "interior-point" else "chain"
    given, labels = (ROWS, CLASSES) if structure == "multiclass" else (X, Y)
    settings = {"max_iter": 30, "alpha": 0.01, "random_state": 0, **ENDS[end]}
    model = StructuredSVM(structure, surrogate=surrogate, solver=solver, **settings)
    held_out = (given[20:], labels[20:]) if end == "early_stopping" else None
    if held_out:
        given, labels = given[:20], labels[:20]
    model.fit(given, labels, validation=held_out)
    last = model.history_[-1]
    assert last["primal"] == pytest.approx(recomputed(model, given, labels), rel=1e-9)
    if last["gap"] is not None:
        assert last["certified"] and last["gap"] == pytest.approx(last["primal"] - last["dual"])
    elif last["dual"] is None:
        assert not last["certified"]


def by_formulas(model):
    """Return the objective of rows of one class, computed by the formulas only."""
    scores, w = model.decision_function(ROWS), model.flat_weights()
    away = scores - scores[np.arange(30), CLASSES][:, None]
    loss = 1 - np.eye(3)[CLASSES]
    each = {
        "margin": (loss + away).max(axis=1),
        "slack": (loss * (1 + away)).max(axis=1),
        "crf": np.log(np.exp(away).sum(axis=1)),
    }
    return 0.005 * w @ w + each[model.surrogate].mean()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("solver", "surrogate"), [case for case in CASES if case[1] in ("margin", "slack", "crf")]
)
def test_primals_by_formulas(solver, surrogate, end):
    settings = {"max_iter": 30, "alpha": 0.01, "random_state": 0, **ENDS[end]}
    model = StructuredSVM("multiclass", surrogate=surrogate, solver=solver, **settings)
    held_out = (ROWS[:9], CLASSES[:9]) if end == "early_stopping" else None
    model.fit(ROWS, CLASSES, validation=held_out)
    assert model.history_[-1]["primal"] == pytest.approx(by_formulas(model), rel=1e-9)


@pytest.mark.parametrize("averaging", [True, False])
def test_warm_starts_and_averages(averaging):
    model = StructuredSVM("chain", solver=BCFW(averaging=averaging), alpha=0.01, warm_start=True)
    for alpha, tol in ((0.1, 0.1), (0.01, 0.5), (0.01, 1e-3)):
        model.set_params(alpha=alpha, tol=tol).fit(X, Y)
        last = model.history_[-1]["primal"]
        assert last == pytest.approx(recomputed(model, X, Y, alpha), rel=1e-9)


def test_rows_of_kernels():
    model = StructuredSVM("multiclass", kernel="rbf", solver="smo", tol=0.1).fit(ROWS, CLASSES)
    scores = model.decision_function(ROWS)
    true = scores[np.arange(30), CLASSES]
    hinge = (scores + 1 - np.eye(3)[CLASSES]).max(axis=1) - true
    last = model.history_[-1]
    assert last["dual"] <= last["primal"] and hinge.mean() < last["primal"]


def test_validation_alone_changes_no_weights():
    """Without early stopping it is a report; with it, the last record is that of the best score."""
    settings = {"alpha": 1e-4, "tol": 1e-6, "max_iter": 60, "solver": BCFW(certify_every=1)}
    plain = StructuredSVM("chain", **settings).fit(X[:15], Y[:15])
    watched = StructuredSVM("chain", **settings).fit(X[:15], Y[:15], validation=(X[15:], Y[15:]))
    assert np.array_equal(plain.flat_weights(), watched.flat_weights())
    assert watched.history_[-1]["validation_score"] == watched.score(X[15:], Y[15:])
    assert watched.history_[-1]["primal"] == plain.history_[-1]["primal"]


def test_a_second_interrupt_leaves_an_estimate(monkeypatch):
    def again(*_):
        raise KeyboardInterrupt

    def first(record):
        monkeypatch.setattr(Problem, "primal", again)
        raise KeyboardInterrupt

    model = StructuredSVM("chain", callbacks=[first]).fit(X, Y)
    assert model.stop_reason_ == "interrupted" and model.history_[-1]["certified"] is False


def test_whose_dual_it_is():
    rng = np.random.default_rng(0)
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    graphs = [(rng.normal(size=(3, 2)), edges) for _ in range(6)]
    labels = [np.array([0, 1, i % 2]) for i in range(6)]
    settings = {"max_iter": 5, "tol": 1}
    exact = StructuredSVM(MRFStructure(oracle="exact"), **settings).fit(graphs, labels)
    relaxed = StructuredSVM(MRFStructure(oracle="trws"), surrogate="slack", **settings).fit(
        graphs, labels
    )
    assert "dual_of" not in exact.history_[-1]
    assert relaxed.history_[-1]["dual_of"] == "relaxation"


def test_large_raw_features_get_advice():
    """With a single scale, too, like pixels."""
    y = np.arange(30) % 3
    settings = {"max_iter": 3, "tol": 1e-9, "alpha": 1e-6}
    for X, told in ((100 * ROWS, "columns of X are large"), (ROWS, "")):
        with pytest.warns(UserWarning, match="relative gap") as caught:
            StructuredSVM("multiclass", **settings).fit(X, y)
        text = str(caught[0].message)
        assert told in text and ("StandardScaler" in text) == bool(told)
