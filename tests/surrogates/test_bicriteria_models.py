"""Models with bi-criteria surrogates: names, parameters, files, checkpoints, batches, refusals."""

import numpy as np
import pytest
from checks import refused, reloaded, same, same_run, stopped_after
from data import chains
from python_structures import SubsetStructure, py_chain
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import CostMatrix, StructuredSVM
from structsolve.search import make_search
from structsolve.search.psi import GeneralizedPsi
from structsolve.solvers import BCFW, SGD, CuttingPlane
from structsolve.surrogates import Beta, BiCriteria, Generalized, Log, MicroF1, ProbLoss, Slack

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::RuntimeWarning"
)
X, Y = chains(12, n_features=3, longest=4)
TAGS = [np.where(y == 0, "O", "B") for y in Y]


def fit(surrogate, structure="chain", labels=Y, **settings):
    settings = {"max_iter": 4, "alpha": 0.1, **settings}
    return StructuredSVM(structure, surrogate=surrogate, **settings).fit(X, labels)


# ---- names and parameters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, twin",
    [
        ("slack", Slack()),
        ("beta", Beta()),
        ("beta:0.25", Beta(0.25)),
        ("generalized:1,0.5", Generalized(1, 0.5)),
        ("generalized:0.5", Generalized(0.5)),
        ("log", Log()),
        ("probloss", ProbLoss()),
        ("probloss:0", ProbLoss(False)),
        ("micro-f1:O", MicroF1("O")),
    ],
)
def test_names(name, twin):
    labels = TAGS if name == "micro-f1:O" else Y
    for solver in ("sgd", "cutting-plane"):
        if name == "probloss:0" and solver == "cutting-plane":
            continue
        one, two = (fit(s, labels=labels, solver=solver) for s in (name, twin))
        np.testing.assert_array_equal(one.coef_["node"], two.coef_["node"])


@pytest.mark.parametrize(
    "name, message",
    [
        ("slaack", r"unknown surrogate 'slaack' .did you mean 'slack'\?.; known: .*'slack'"),
        ("bi-criteria", "unknown surrogate 'bi-criteria'"),
        ("beta:x", "beta is 'x', expected a number"),
        ("beta:2", "beta=2, expected a number from 0 to 1"),
        ("beta:nan", "beta=nan, expected a number from 0 to 1"),
        ("generalized:1,2", "0 <= alpha - beta <= 1"),
        ("generalized:a,b", "alpha is 'a', expected a number"),
        ("slack:1", "surrogate 'slack:1'"),
        ("beta:0.5,1", "surrogate 'beta:0.5,1'"),
        ("slack:1,2,3,4,5,6,7,8,9", "surrogate 'slack:1,2,3,4,5,6,7,8,9'"),
        ("micro-f1", "background is None, expected the class that does not count"),
        ("micro-f1:Q", "background is 'Q', expected the class that does not count"),
    ],
)
def test_wrong_names(name, message):
    refused(message, fit, name)


@pytest.mark.parametrize(
    "surrogate",
    [Slack(search="exact", max_calls=7), Generalized(1, 0.25), Beta(0.5, relaxed=False), Log(),
     ProbLoss(False), MicroF1("O"), BiCriteria(GeneralizedPsi(1, 0.5)),
     Slack(search=make_search("convex-hull"))],
    ids=lambda s: s.name,
)  # fmt: skip
def test_parameters_and_clones(surrogate):
    assert (
        type(surrogate)(**surrogate.get_params(deep=False)).get_params() == surrogate.get_params()
    )
    model = StructuredSVM("chain", surrogate=surrogate, solver="sgd", max_iter=2)
    copy = clone(model)
    assert copy.surrogate is not surrogate
    labels = TAGS if surrogate.name == "micro-f1" else Y
    one, two = model.fit(X, labels), copy.fit(X, labels)
    np.testing.assert_array_equal(one.coef_["node"], two.coef_["node"])
    model.set_params(surrogate__max_calls=9)
    assert surrogate.max_calls == 9


def test_grid_search_into_surrogates():
    model = StructuredSVM("chain", surrogate=Beta(), alpha=0.1, max_iter=3)
    grid = {"surrogate__beta": [0.0, 0.5], "surrogate__relaxed": [None, False]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert search.best_estimator_.surrogate.beta in (0.0, 0.5)
    names = GridSearchCV(model, {"surrogate": ["slack", "margin", Beta(0.25)]}, cv=2).fit(X, Y)
    assert np.isfinite(names.cv_results_["mean_test_score"]).all()


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "surrogate",
    ["slack", "beta:0.25", "micro-f1:O", Slack(search="exact", relaxed=False), Beta(0.75, tol=1e-6),
     MicroF1("O"), ProbLoss(False)],
    ids=repr,
)  # fmt: skip
def test_save_and_load(tmp_path, surrogate):
    model = fit(surrogate, labels=TAGS, solver="sgd")
    other = reloaded(model, tmp_path)
    assert repr(other.surrogate) == repr(surrogate)
    same(model.predict(X), other.predict(X))
    other.partial_fit(X, TAGS)


@pytest.mark.parametrize(
    "surrogate",
    [BiCriteria(GeneralizedPsi(1, 0.5)), Slack(search=make_search("exact"))],
    ids=["psi", "search"],
)
def test_objects_that_cannot_be_saved_say_so(tmp_path, surrogate):
    with pytest.raises(ValueError, match="cannot be saved without pickle; save coef_ instead"):
        fit(surrogate).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("stop", [1, 4])
@pytest.mark.parametrize("solver", [BCFW(), CuttingPlane("n"), CuttingPlane(), SGD()], ids=repr)
@pytest.mark.parametrize(
    "surrogate",
    ["slack", Slack(relaxed=False, search="convex-hull"), Slack(search="sarawagi"), "beta:0.5"],
    ids=repr,
)
def test_resuming_warm_searches_is_bit_for_bit(tmp_path, surrogate, solver, stop):
    settings = {"solver": solver, "tol": 0, "random_state": 3, "max_iter": 7, "alpha": 0.01}
    whole = fit(surrogate, **settings)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(RuntimeError):
        fit(surrogate, checkpoint=path, callbacks=[stopped_after(stop)], **settings)
    resumed = fit(surrogate, checkpoint=path, **settings)
    same_run(resumed, whole)


def test_a_wrong_memory_is_refused():
    structure = structsolve.get_structure("chain")
    surrogate = structsolve.Problem(*structure.make_space(X, Y), surrogate="slack").surrogate
    good = {k: v.copy() for k, v in surrogate.memory_of_examples().items()}
    surrogate.remember(good)
    for name in good:
        refused(f"lacks '{name}'", surrogate.remember, {k: v for k, v in good.items() if k != name})
        refused(f"lacks '{name}'", surrogate.remember, good | {name: good[name][:-1]})
    for name, wrong in (("labels", 3), ("labels", -1), ("held", 17), ("held", -1)):
        bad = good | {name: np.full_like(good[name], wrong)}
        refused("impossible labels", surrogate.remember, bad)


# ---- batches, history, jobs ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "surrogate", ["slack", "probloss:0", Slack(search="exact"), "log"], ids=repr
)
def test_partial_fit(surrogate):
    model = StructuredSVM("chain", surrogate=surrogate, solver="sgd", alpha=0.1)
    for start in range(0, 12, 4):
        model.partial_fit(X[start : start + 4], Y[start : start + 4], classes=[0, 1, 2])
    whole = StructuredSVM("chain", surrogate=surrogate, solver="sgd", alpha=0.1, max_iter=20).fit(
        X, Y
    )
    assert model.score(X, Y) >= whole.score(X, Y) - 0.4
    assert np.isfinite(model.coef_["node"]).all()


def test_calls_per_search_are_in_the_history():
    for solver in ("bcfw", "cutting-plane", "sgd"):
        model = fit("slack", solver=solver)
        assert all(1 <= record["calls_per_search"] <= 50 for record in model.history_)
        assert all(
            r["calls_per_search"] == 1 for r in fit(Slack(search="exact"), solver=solver).history_
        )
        assert "calls_per_search" not in fit("margin", solver=solver).history_[0]
    cold = fit(Slack(warm_start=False, relaxed=True), max_iter=10, tol=0).history_
    warm = fit(Slack(relaxed=True), max_iter=10, tol=0).history_
    assert warm[-1]["calls_per_search"] < cold[-1]["calls_per_search"] - 1


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane", "sgd"])
def test_jobs_change_nothing(solver):
    one, two = (fit("slack", solver=solver, n_jobs=jobs, max_iter=6) for jobs in (1, 3))
    same_run(one, two)


def test_functions_with_an_oracle_that_knows_the_loss():
    structure = SubsetStructure()
    objects, labels = structure.sample(0)
    # Without k-best, the part below the hull remains in the gap of labels.
    for surrogate in (Slack(relaxed=True), Beta(0.5, relaxed=True), Log(relaxed=True)):
        model = StructuredSVM(
            structure, surrogate=surrogate, solver="cutting-plane", tol=1e-5, max_iter=300
        )
        model.fit(objects, labels)
        last = model.history_[-1]
        assert last["certified"] and last["gap"] <= 1e-5 * max(last["primal"], 1)
        assert len(model.predict(objects)) == len(labels)


# ---- what is refused -----------------------------------------------------------------------------

PAIRS = [
    (
        "bcfw",
        "log",
        "affine in the margin, which 'log' is not; use solver='sgd' or 'cutting-plane'",
    ),
    ("bcfw", "probloss", "affine in the margin, which 'probloss' is not"),
    ("bcfw", "probloss:0", "affine in the margin, which 'probloss' is not; use solver='sgd'"),
    (
        "cutting-plane",
        "probloss:0",
        "convex in the margin, which 'probloss' is not; use solver='sgd'",
    ),
]


@pytest.mark.parametrize("solver, surrogate, message", PAIRS)
def test_solvers_refuse_in_one_sentence(solver, surrogate, message):
    with pytest.raises(ValueError, match=message) as caught:
        fit(surrogate, solver=solver)
    assert "\n" not in str(caught.value)


def best(self, examples, i, theta, truth):
    labels = self.enumerate_labels(examples, i)
    return labels[
        np.argmax(
            [
                self.score(examples, i, theta, y) + abs(self.loss(examples, i, truth, y))
                for y in labels
            ]
        )
    ]


@pytest.mark.parametrize(
    "loss, message",
    [
        (lambda wrong: -wrong, "the loss of a label is -[1-4].*, expected at least 0"),
        (lambda wrong: 1 + wrong, "the loss of the true label is 1, expected 0"),
        (lambda wrong: np.nan, "expected a finite number"),
        (lambda wrong: np.inf if wrong else 0, "expected a finite number"),
        (lambda wrong: "many", "expected a number"),
    ],
)
def test_wrong_losses(loss, message):
    def method(self, examples, i, truth, label):
        return loss(float((np.asarray(label) != truth).sum()))

    for solver in ("bcfw", "sgd", "cutting-plane"):
        with pytest.raises(ValueError, match="example [0-9]+: .*" + message):
            fit("slack", py_chain(loss=method, argmax_augmented=best), solver=solver)


def test_losses_that_the_searches_cannot_weigh():
    def method(self, examples, i, truth, label):
        return float((np.asarray(label) != truth).sum()) ** 2

    with pytest.raises(
        ValueError, match="need a loss that decomposes over the parts, or the 0-1 loss"
    ):
        fit("slack", py_chain(loss=method))
    model = fit("slack", py_chain(loss=method, argmax_augmented=best))
    assert np.isfinite(model.history_[-1]["primal"])
    refused(
        "made for a loss that is a sum over nodes",
        fit,
        "probloss",
        loss="normalized-hamming",
        solver="sgd",
    )
    refused("diagonal", fit, "slack", loss=CostMatrix(np.ones((3, 3))))


def test_scores_that_overflow():
    """Features of 1e200: scores are finite, products may not be; no crash, and no NaN is kept."""
    huge = [1e200 * x for x in X]
    for solver in ("bcfw", "cutting-plane", "sgd"):
        try:
            model = StructuredSVM("chain", surrogate="slack", solver=solver, max_iter=2).fit(
                huge, Y
            )
        except (ValueError, FloatingPointError, OverflowError):
            continue
        assert not np.isnan(model.coef_["node"]).any()
