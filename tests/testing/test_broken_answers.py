"""Wrong answers of plugins and LP backends are refused or reported before use."""

import numpy as np
import pytest
from checks import refused
from python_structures import PyChainSpace, PyChainStructure
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from structsolve import ConditionalRiskMinimizer, Named, StructuredSVM, get_structure, registry
from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.lp import Highs, Polytope, ask_oracle
from structsolve.lp.base import Answer, Backend, Program
from structsolve.plugins.chain import ChainStructure
from structsolve.solvers import BCFW
from structsolve.solvers.bcfw_run import BCFWRun
from structsolve.solvers.run import contradicts
from structsolve.structure.ask import make_layout
from structsolve.structure.calls import argmax


def sequences(rng, n=6, d=3):
    X = [rng.normal(size=(4, d)) for _ in range(n)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


PACKS = {
    "a column too few": (lambda e: setattr(e, "nodes", e.nodes[:, :1]), "nodes: found 1 columns"),
    "rows too few": (lambda e: setattr(e, "nodes", e.nodes[:3]), r"nodes: found the shape \(3, 3"),
    "no nodes": (lambda e: setattr(e, "nodes", None), "nodes: found the shape None"),
    "labels too few": (lambda e: setattr(e, "labels", e.labels[:1]), r"labels: found int32 \(1,\)"),
    "labels of floats": (lambda e: setattr(e, "labels", e.labels + 0.5), "labels: found float64"),
    "no labels": (lambda e: setattr(e, "labels", None), "no labels, expected those of y"),
    "labels of 40 bits": (
        lambda e: setattr(e, "labels", e.labels.astype(np.int64) << 40),
        "labels: found int64",
    ),
    "wild offsets": (lambda e: setattr(e, "offsets", 1000 * e.offsets), "nodes: found the shape"),
    "falling offsets": (
        lambda e: setattr(e, "offsets", e.offsets[::-1].copy()),
        "offsets: found numbers that fall",
    ),
    "offsets of floats": (
        lambda e: setattr(e, "label_offsets", e.offsets + 0.5),
        "label_offsets: found float64",
    ),
}


@pytest.mark.parametrize("what", PACKS)
def test_packed_arrays_that_do_not_fit(monkeypatch, what):
    X, y = sequences(np.random.default_rng(0))
    spoil, message = PACKS[what]
    expected = rf"structure 'chain': make_space\(\) or pack\(\) gave .*{message}"
    model = StructuredSVM("chain", max_iter=2, tol=1e3).fit(X, y)
    pack, make_space = type(model.space_).pack, ChainStructure.make_space

    def packed(self, X, y=None, unseen="error"):
        examples = pack(self, X, y, unseen)
        spoil(examples)
        return examples

    def made(self, X, y, classes=None, fit_intercept=True):
        space, examples = make_space(self, X, y, classes, fit_intercept)
        spoil(examples)
        return space, examples

    monkeypatch.setattr(type(model.space_), "pack", packed)
    refused(expected, model.score, X, y)
    monkeypatch.setattr(ChainStructure, "make_space", made)
    refused(expected, StructuredSVM("chain", max_iter=2).fit, X, y)


SETTLED = {
    "labels of a list": lambda e: setattr(e, "labels", e.labels.tolist()),
    "wide labels": lambda e: setattr(e, "labels", e.labels.astype(np.int64)),
    "labels of truth values": lambda e: setattr(e, "labels", e.labels.astype(bool)),
    "labels with gaps": lambda e: setattr(e, "labels", np.repeat(e.labels, 2)[::2]),
    "small offsets": lambda e: setattr(e, "label_offsets", e.offsets.astype(np.int32)),
    "offsets of a list": lambda e: setattr(e, "offsets", e.offsets.tolist()),
    "weights of its own": lambda e: setattr(e, "sample_weight", np.arange(-1.0, e.n)),
}


def spoilt(method, spoil):
    def wrong(self, *given, **named):
        answer = method(self, *given, **named)
        spoil(answer[1] if isinstance(answer, tuple) else answer)
        return answer

    return wrong


@pytest.mark.parametrize("what", SETTLED)
def test_labels_offsets_and_weights_are_the_librarys(monkeypatch, what):
    X, y = sequences(np.random.default_rng(0))
    weights = np.arange(1.0, 7.0)
    model = StructuredSVM("chain", max_iter=2, tol=1e3).fit(X, y, weights)
    scores = model.score(X, y), model.score(X, y, weights)
    for where, method in ((ChainStructure, "make_space"), (type(model.space_), "pack")):
        monkeypatch.setattr(where, method, spoilt(getattr(where, method), SETTLED[what]))
    again = StructuredSVM("chain", max_iter=2, tol=1e3).fit(X, y, weights)
    np.testing.assert_array_equal(again.flat_weights(), model.flat_weights())
    assert (again.score(X, y), again.score(X, y, weights)) == scores


class OwnPack(PyChainSpace):
    """Packs without sample weights, in lists."""

    def pack(self, X, Y=None, unseen="error"):
        examples = self.stack(X)
        known = self.classes_.tolist()
        labels = None if Y is None else [known.index(one) for y in Y for one in y]
        return Examples(examples.offsets.tolist(), examples.nodes, labels)


class OwnPackStructure(PyChainStructure):
    space_class = OwnPack


def test_grids_over_structures_that_know_no_weights():
    X, y = sequences(np.random.default_rng(0))
    model = StructuredSVM(OwnPackStructure(), max_iter=2, tol=1e3)
    search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert model.fit(X, y, np.arange(1.0, 7.0)).score(X, y, None) == model.score(X, y, np.ones(6))
    assert model.score(X, y, [1, 0, 0, 0, 0, 0]) == model.score(X[:1], y[:1])


def test_examples_that_fit_pass():
    space, _ = ChainStructure().make_space(*sequences(np.random.default_rng(1)))
    space.pack(*sequences(np.random.default_rng(1))).check(space.layout, "chain")
    refused("expected int64", Examples(np.zeros((2, 2), np.int64)).check, space.layout, "chain")


class Given(Backend):
    """Returns what it is told to."""

    def __init__(self, answer):
        self.name, self.answer = "given", answer

    def program(self, polytope):
        class Own(Program):
            def solve(own, c, upper=None, start=None, sides=None):
                return self.answer(polytope)

        return Own()


@pytest.mark.parametrize("structure", ["chain", "multiclass", "permutation"])
@pytest.mark.parametrize(
    "answer, message",
    [
        (lambda p: None, "is empty, says 'given'"),
        (lambda p: Answer(np.full(p.size, np.nan), None), "entries that are not finite"),
        (lambda p: Answer(np.zeros(99), None), r"an array of shape \(99,\)"),
        (lambda p: Answer(np.zeros(p.size), None), "away from the rows"),
        (lambda p: Answer(np.full(p.size, 7.0), None), "away from the rows"),
        (lambda p: 5, "example 0: LP backend 'given' answered with an int, expected an Answer"),
        (lambda p: {}["x"], r"example 0: solve\(\) of LP backend 'given' raised KeyError: 'x'"),
    ],
)
def test_backends_that_answer_wrongly(structure, answer, message):
    rng = np.random.default_rng(2)
    X, y = sequences(rng)
    if structure == "multiclass":
        X, y = np.concatenate(X), np.concatenate(y)
    if structure == "permutation":
        X, y = rng.normal(size=(6, 3)), np.array([rng.permutation(3) for _ in range(6)])
    refused(message, StructuredSVM(structure, oracle=Given(answer), max_iter=2).fit, X, y)
    model, backend = StructuredSVM(structure, max_iter=2, tol=1).fit(X, y), Given(answer)
    backend.batch = 1000
    refused(message, model.set_params(oracle=backend).predict, X)


def test_a_dual_above_the_primal_is_no_convergence():
    record = {"primal": 0.6, "dual": 0.99, "gap": -0.39, "certified": True}
    assert contradicts(record)
    for change in ({"gap": 0.1}, {"certified": False}, {"gap": -1e-9}, {"gap": None}):
        assert not contradicts(record | change)


def test_a_dual_above_the_primal_is_told():
    class Liar(BCFW):
        def start(self, start):
            class LiarRun(BCFWRun):
                def certify(self):
                    record = BCFWRun.certify(self)
                    return {**record, "dual": 2 * record["primal"], "gap": -record["primal"]}

            return LiarRun(self, start)

    with pytest.warns(RuntimeWarning, match="the dual objective is .*above the primal one"):
        model = StructuredSVM("multiclass", solver=Liar()).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert model.stop_reason_ == "contradicted" and not model.history_[-1]["certified"]


@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e-12, 1e9])
@pytest.mark.parametrize("oracle", ["lp", "ilp", "cvxpy:CLARABEL"])
def test_programs_do_not_mind_the_scale_of_scores(oracle, scale):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(30, 4)), np.array([rng.permutation(4) for _ in range(30)])
    # At the default tol two rankings of an example tie but for 3e-15.
    model = StructuredSVM("permutation", alpha=0.1, tol=1e-3).fit(X, Y)
    expected = model.predict(X)
    for view in model.coef_.values():
        view *= scale
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.set_params(oracle=oracle).predict(X), expected)


def test_tolerances_of_programs():
    assert registry.default().make("lp_backends", "lp:1e-9").tolerance == 1e-9
    assert registry.default().make("lp_backends", "ilp:1e-9").integer
    for bad in ("lp:x", "lp:-1", "ilp:0"):
        refused("expected a number from 1e-10 to 1", registry.default().make, "lp_backends", bad)
    with pytest.raises(TypeError):
        Highs(True)


@pytest.mark.parametrize("backend", ["lp:0.1", "lp:0.01", "ilp:0.1", "lp", "ilp"])
def test_bounds_hold_where_programs_are_solved_loosely(backend):
    rng = np.random.default_rng(0)
    X, Y = sequences(rng)
    space, examples = ChainStructure().make_space(X, Y)
    layout = make_layout(space, examples)
    own, program = ask_oracle(space)(layout), ask_oracle(space, backend)(layout)
    assert program.exact == (not backend.startswith("lp:"))
    for i in range(20):
        theta = np.zeros(space.layout.theta_size(4, 0))
        for view in space.layout.theta_views(theta, 4, 0).values():
            # Labels that differ by less than the tolerance.
            view[...] = rng.normal(size=view.shape).round(1)
            view += 1e-3 * rng.normal(size=view.shape)
        best = argmax(own, i % len(X), theta)[1]
        label, value, bound = argmax(program, i % len(X), theta)
        assert bound >= best - 1e-9
        assert bound >= value
        if program.exact:
            assert value == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"low": np.array([np.nan])}, "holds NaN"),
        ({"A": sparse.csr_matrix(np.array([[np.inf, 1.0]]))}, "an infinite number"),
        ({"A": np.ones((1, 2))}, "A is ndarray, expected a scipy.sparse matrix"),
        ({"parts": np.array([0, -5])}, "parts holds -5"),
    ],
)
def test_polytopes_that_are_none(change, message):
    given = {
        "A": sparse.csr_matrix(np.ones((1, 2))),
        "low": np.ones(1),
        "high": np.ones(1),
        "parts": np.arange(2),
        "decode": np.rint,
    }
    refused(message, Polytope, **given | change)
    with pytest.raises(ValueError, match="parts holds 1, expected places in theta, which has 1"):
        Polytope(**given).scores(np.zeros(1))


@pytest.mark.parametrize("answer", [None, ZeroDivisionError("no")])
def test_factories_that_make_nothing(monkeypatch, answer):
    def factory():
        if answer is not None:
            raise answer
        return answer

    named = Named("nothing", factory, "")
    monkeypatch.setattr(registry.Registry, "find", lambda self, kind, name: named)
    refused("structure 'nothing': ", get_structure, "nothing", error=(TypeError, RuntimeError))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("twice", [False, True])
def test_tiny_alphas_of_conditional_risk(intercept, twice):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    if twice:
        X, y = np.tile(X, (2, 1)), np.tile(y, 2)
    for alpha in (1e-300, 1e-20, 1e-16):
        model = ConditionalRiskMinimizer(alpha=alpha, fit_intercept=intercept).fit(X, y)
        _, risks = model.predict_with_risk(X)
        assert model.score(X, y) > 0.9 and np.abs(risks).max() < 2


@pytest.mark.parametrize("drop", [lambda space, _: space, lambda space, _: (space, None)])
def test_make_space_without_examples(monkeypatch, drop):
    make_space = ChainStructure.make_space
    monkeypatch.setattr(ChainStructure, "make_space", lambda *a: drop(*make_space(*a)))
    X, y = sequences(np.random.default_rng(0))
    with pytest.raises(
        TypeError, match=r"make_space\(\) returned .*, expected \(space, examples\)"
    ):
        StructuredSVM("chain").fit(X, y)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("edges", [False, True])
def test_structures_see_features_as_users_gave_them(wrap, edges):
    """With any share of zeros: in training, prediction and scores."""
    kinds = set()

    def argmax(self, examples, i, theta):
        kinds.update(type(X) for X in (examples.nodes, examples.edges) if X is not None)
        return PyChainSpace.argmax(self, examples, i, theta)

    def stack(self, X):
        nodes, offsets = packing.stack_rows([x[0] for x in X] if edges else X)
        if not edges:
            return Examples(offsets, nodes)
        edge_rows, starts = packing.stack_rows([x[1] for x in X], min_rows=0)
        return Examples(offsets, nodes, edge_offsets=starts, edges=edge_rows)

    class Structure(PyChainStructure):
        space_class = type("Space", (PyChainSpace,), {"argmax": argmax, "stack": stack})

    X, y = [wrap(np.eye(8)[:3])] * 4, [[0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 1]]
    if edges:
        X = [(x, wrap(np.eye(8)[:2])) for x in X]
    model = StructuredSVM(Structure(), max_iter=2, tol=1e3).fit(X, y)
    model.score(X, y)
    assert kinds == {type(wrap(np.eye(2)))}
    native = StructuredSVM("chain", max_iter=2, tol=1e3).fit(X, y)
    np.testing.assert_allclose(model.flat_weights(), native.flat_weights(), atol=1e-12)
