"""A chain in plain Python equals the native chain, but is slower; its errors name the example."""

from collections import Counter

import numpy as np
import pytest
from checks import refused
from python_structures import PyChainSpace, PyChainStructure, py_chain

from structsolve import StructuredSVM, get_structure
from structsolve.lp.ask import ask_oracle
from structsolve.solvers.problem import Problem
from structsolve.structure import adapter, calls
from structsolve.structure.ask import ask_loss, ask_parts, ask_projection, make_layout
from structsolve.structure.losses import CostMatrix
from structsolve.surrogates import Slack
from structsolve.surrogates.calls import cut
from structsolve.surrogates.task import Task


@pytest.fixture(params=["plain", "edges", "bare"])
def setting(request):
    structure = PyChainStructure(*((False, False) if request.param == "bare" else (True, True)))
    X, Y = structure.sample(1, n=6, size=3)
    if request.param == "edges":
        rng = np.random.default_rng(0)
        X = [(x, rng.normal(size=(len(x) - 1, 2))) for x in X]
    native = get_structure("chain", **structure.get_params())
    return structure, native, X, Y


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
@pytest.mark.parametrize("loss", ["hamming", "zero-one"])
def test_same_optimum_and_predictions(setting, solver, loss):
    structure, native, X, Y = setting
    settings = {"solver": solver, "loss": loss, "alpha": 0.1, "tol": 1e-8, "max_iter": 500}
    ours = StructuredSVM(structure, **settings).fit(X, Y)
    theirs = StructuredSVM(native, **settings).fit(X, Y)
    assert ours.history_[-1]["primal"] == pytest.approx(theirs.history_[-1]["primal"], rel=1e-7)
    for block, weights in ours.coef_.items():
        np.testing.assert_allclose(weights, theirs.coef_[block], atol=1e-3)
    ours._model = theirs._model  # so that nothing but decoding can differ
    for answer, expected in zip(ours.predict(X), theirs.predict(X)):
        assert answer.tolist() == expected.tolist()
    for answer, expected in zip(ours.predict_marginals(X), theirs.predict_marginals(X)):
        np.testing.assert_allclose(answer, expected, atol=1e-9)
    for answer, expected in zip(ours.predict_kbest(X, 3), theirs.predict_kbest(X, 3)):
        np.testing.assert_allclose([v for _, v in answer], [v for _, v in expected], atol=1e-9)
    allowed = [[None] * len(y) for y in Y]
    allowed[0][0] = [Y[0][0]]
    assert ours.predict(X, allowed)[0].tolist() == theirs.predict(X, allowed)[0].tolist()


def test_operators_are_named_in_errors(setting):
    structure, _, X, Y = setting
    space, examples = structure.make_space(X, Y)
    layout, theta = make_layout(space, examples), np.zeros(1000)
    size = space.layout.theta_size(len(Y[2]), examples.edges is not None and len(Y[2]) - 1)
    assert layout.sizes(2) == (size, len(Y[2]))
    label = np.zeros(len(Y[2]), np.int32)
    oracle, parts = ask_oracle(space)(layout), ask_parts(space)(layout)
    projection = ask_projection(space, "entropy")(layout)
    assert oracle.n_states == parts.n_states == len(space.classes_)
    for call in (
        lambda i: calls.argmax(oracle, i, theta[:size]),
        lambda i: calls.encode(parts, i, label),
        lambda i: calls.project(projection, i, theta[:size]),
    ):
        call(2)
        refused("example 6 of 6", call, 6)
    with pytest.raises(ValueError, match="states from 0 to 3, expected 0 to 3 - 1"):
        calls.encode(parts, 2, np.maximum(label, 3 * (np.arange(len(label)) == 0)).astype(np.int32))


def bend(method, answer):
    """Return ``answer`` for example 3, otherwise the truth's."""
    right = getattr(PyChainSpace, method)

    def bent(self, examples, i, *arguments):
        if i != 3:
            return right(self, examples, i, *arguments)
        if isinstance(answer, Exception):
            raise answer
        return answer(right(self, examples, i, *arguments)) if callable(answer) else answer

    return {method: bent}


def with_block(block, change):
    return lambda mu: {**mu, block: change(mu[block])}


@pytest.mark.parametrize(
    "method, answer, message",
    [
        ("argmax", ZeroDivisionError("boom"), r"argmax\(\) of .*'py-chain' raised ZeroDivisionErr"),
        ("argmax", ValueError("example 3: own words"), "^example 3: own words$"),
        ("argmax", [0], "returned .*, expected a label of 3 integers, as label_offsets"),
        ("argmax", None, "returned None, expected a label of 3 integers"),
        ("argmax", [0.0, 1.5, 0.0], "expected a label of 3 integers"),
        ("argmax", [[0, 1], 2], "expected a label of 3 integers"),
        ("argmax", [0, 7, 0], r"expected states 0 \.\. 2"),
        ("argmax", [0, -1, 0], r"expected states 0 \.\. 2"),
        ("parts", [1, 2], "returned list, expected a dict of arrays by block name"),
        ("parts", {"nodes": 1}, r"returned the block 'nodes', expected blocks of \['end', 'node'"),
        ("parts", with_block("node", np.transpose), None),
        ("parts", with_block("start", lambda a: a[:2]), r"shape \(2,\), expected \(3,\)"),
        ("parts", with_block("start", lambda a: ["x", 1, 2]), "block 'start' that is not numeric"),
        ("parts", with_block("node", lambda a: a * np.nan), "with NaN or infinity"),
        ("parts", with_block("start", lambda a: ([3], [1.0])), "1-D indices below 3"),
        ("parts", with_block("start", lambda a: ([1], [1.0, 2.0])), "equally long"),
    ],
)
def test_errors_name_the_example(method, answer, message):
    X, Y = PyChainStructure().sample(1, n=6, size=3)
    X[3], Y[3] = np.zeros((3, 3)), np.array([0, 1, 2])
    structure = py_chain(**bend(method, answer))
    if message is None:
        X[3], Y[3] = X[3][:2], Y[3][:2]
        message = r"block 'node' of shape \(3, 2\), expected \(2, 3\)"
    with pytest.raises(ValueError, match=message) as caught:
        StructuredSVM(structure).fit(X, Y)
    assert str(caught.value).startswith("example 3:")


@pytest.mark.parametrize(
    "answer, message",
    [
        (lambda pair: pair[0], r"\(\) .* returned {.*, expected a pair \(marginals, value\)"),
        (lambda pair: (pair[0], "x"), "returned 'x', expected a number"),
        (lambda pair: (pair[0], np.inf), "returned inf, expected a finite number"),
    ],
)
def test_errors_of_projections(answer, message):
    X, Y = PyChainStructure().sample(1, n=6, size=3)
    model = StructuredSVM(py_chain(**bend("project", answer))).fit(X, Y)
    refused(f"(?s)example 3: project.*{message}", model.predict_marginals, X)


def test_scores_are_read_only():
    def argmax(self, examples, i, theta):
        theta["node"][0] = 0

    X, Y = PyChainStructure().sample(1, n=6, size=3)
    refused("example .: .*read-only", StructuredSVM(py_chain(argmax=argmax)).fit, X, Y)


def test_scores_may_be_kept():
    kept = []

    def argmax(self, examples, i, theta):
        kept.append((theta, {name: array.copy() for name, array in theta.items()}))
        return PyChainSpace.argmax(self, examples, i, theta)

    X, Y = PyChainStructure().sample(1, n=6, size=3)
    StructuredSVM(py_chain(argmax=argmax), max_iter=2, tol=1e3).fit(X, Y)
    for theta, copy in kept:
        for name in copy:
            np.testing.assert_array_equal(theta[name], copy[name])


def in_any_order(array):
    """Return a block as a pair with descending indices, each twice."""
    index = np.flatnonzero(array)[::-1]
    return np.repeat(index, 2).tolist(), np.repeat(array.ravel()[index] / 2, 2)


FORMS = {
    "pairs": lambda a: (np.flatnonzero(a), a[a != 0]),
    "pairs of 32 bits": lambda a: (np.flatnonzero(a).astype(np.int32), a[a != 0]),
    "pairs in any order": in_any_order,
    "pairs with zeros": lambda a: (np.arange(a.size), a.ravel()),
    "lists": lambda a: a.tolist(),
    "integers": lambda a: a.astype(int),
    "single precision": lambda a: a.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "every other number": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
}


@pytest.fixture(scope="module")
def plain():
    X, Y = PyChainStructure().sample(1, n=6, size=3)
    return StructuredSVM(PyChainStructure(), alpha=0.1).fit(X, Y)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_parts(plain, form):
    def parts(self, examples, i, label):
        dense = PyChainSpace.parts(self, examples, i, label)
        return {name: FORMS[form](array) for name, array in reversed(dense.items())}

    X, Y = PyChainStructure().sample(1, n=6, size=3)
    model = StructuredSVM(py_chain(parts=parts), alpha=0.1).fit(X, Y)
    assert model.history_[-1]["primal"] == plain.history_[-1]["primal"]


# Ascending except at one place: the first, one in between, the last.
@pytest.mark.parametrize("index", [[2, 0, 2], [0, 2, 1, 2], [0, 1, 2, 0]])
def test_parts_are_sorted_and_summed(index):
    def parts(self, examples, i, label):
        return {"node": (index, np.full(len(index), 0.25))}

    X, Y = PyChainStructure().sample(1, n=6, size=3)
    space, examples = py_chain(parts=parts).make_space(X, Y)
    layout = make_layout(space, examples)
    places, values = calls.encode(ask_parts(space)(layout), 0, examples.label(0))
    expected = sorted(set(index))
    assert places.tolist() == [layout.starts["node"] + k for k in expected]
    assert values.tolist() == [0.25 * index.count(k) for k in expected]


@pytest.mark.parametrize(
    "form", [np.array, list, tuple, lambda y: np.array(y, np.int64), lambda y: np.repeat(y, 2)[::2]]
)
def test_forms_of_labels(plain, form):
    def argmax(self, *given):
        return form(PyChainSpace.argmax(self, *given).tolist())

    X, Y = PyChainStructure().sample(1, n=6, size=3)
    model = StructuredSVM(py_chain(argmax=argmax), alpha=0.1).fit(X, Y)
    assert model.history_[-1]["primal"] == plain.history_[-1]["primal"]


class TestAskedOnce:
    """A cut needs one label and its parts; truths and their costs are computed once."""

    @pytest.mark.parametrize("most, times", [(1 << 20, 1), (0, 9)])
    def test_calls(self, monkeypatch, most, times):
        monkeypatch.setattr(adapter, "TRUTH_BYTES", most)
        calls = Counter()

        def counted(method, function):
            def counting(self, examples, i, *given):
                label = given[-1] if method == "parts" else ()
                true = method == "parts" and np.array_equal(label, examples.label(i))
                calls["truth" if true else method] += 1
                return function(self, examples, i, *given)

            return counting

        methods = {
            "argmax": lambda self, *_: [2, 2, 2],
            "parts": PyChainSpace.parts,
            "loss": TestOwnLoss.loss,
            "loss_costs": TestOwnLoss.loss_costs,
        }
        structure = py_chain(
            loss_names=("double",), **{name: counted(name, f) for name, f in methods.items()}
        )
        X, Y = [np.ones((3, 1))] * 2, [[0, 1, 2], [1, 1, 0]]
        truths = np.array(Y, dtype=np.int32)
        problem = Problem(*structure.make_space(X, Y), loss="double")
        theta = np.zeros(problem.task.layout.max_theta)
        for _ in range(9):
            for i in range(2):
                cut(problem.surrogate, i, theta, truths[i])
        # Nine cuts of two examples; a label that is repeated at once is not requested again.
        assert calls["argmax"] == calls["loss"] == 18
        assert calls["truth"] == calls["loss_costs"] == 2 * times
        assert calls["parts"] <= 18


class TestOwnValue:
    """``argmax`` may return the score of its label."""

    @staticmethod
    def structure(wrong=0.0, calls=None):
        def argmax(self, examples, i, theta):
            labels, scores = self.scores(examples, i, theta)
            return labels[scores.argmax()], scores.max() + wrong

        def parts(self, examples, i, label):
            calls.append(i)
            return PyChainSpace.parts(self, examples, i, label)

        return py_chain(argmax=argmax, **({} if calls is None else {"parts": parts}))

    def test_training_and_prediction(self, plain):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        calls = []
        model = StructuredSVM(self.structure(calls=calls), alpha=0.1).fit(X, Y)
        assert model.history_[-1]["primal"] == plain.history_[-1]["primal"]
        del calls[:]
        many = X * 100
        for answer, expected in zip(model.predict(many), plain.predict(many)):
            assert answer.tolist() == expected.tolist()
        assert 64 <= len(calls) < 100  # the first ones, and one of 64
        allowed = [[None] * len(y) for y in Y]
        allowed[0][0] = [Y[0][0]]
        assert model.predict(X, allowed)[0][0] == Y[0][0]

    @pytest.mark.parametrize("wrong", [1e-3, -np.inf, np.inf, np.nan])
    def test_wrong_values(self, plain, wrong):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        model = StructuredSVM(self.structure(wrong), alpha=0.1)
        message = r"example \d: argmax\(\) of structure 'py-chain' returned .*expected "
        refused(message, model.fit, X, Y)
        model.space_ = type(self.structure(wrong).make_space(X, Y)[0]).of(plain.space_)
        model._model = plain._model
        refused(message, model.predict, X)

    def test_labels_of_two_numbers_are_no_pairs(self):
        X, Y = [np.eye(2)] * 4, [[0, 1], [1, 0], [1, 1], [0, 0]]

        def argmax(self, *given):
            return tuple(PyChainSpace.argmax(self, *given).tolist())

        model = StructuredSVM(py_chain(argmax=argmax), max_iter=3, tol=1e3).fit(X, Y)
        assert len(model.predict(X)[0]) == 2


class TestOwnLoss:
    """A space with its own loss, with and without costs."""

    @staticmethod
    def loss(self, examples, i, truth, label):
        return 2.0 * np.sum(label != truth)

    @staticmethod
    def loss_costs(self, examples, i, truth):
        return {"node": 2.0 - 2.0 * np.eye(len(self.classes_))[truth]}, 0.0

    def test_trains_as_the_native_loss(self):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        structure = py_chain(loss=self.loss, loss_costs=self.loss_costs, loss_names=("double",))
        ours = StructuredSVM(structure, loss="double", alpha=0.1, tol=1e-8).fit(X, Y)
        from structsolve import CostMatrix

        cost = CostMatrix(2 - 2 * np.eye(3))
        theirs = StructuredSVM("chain", loss=cost, alpha=0.1, tol=1e-8).fit(X, Y)
        assert ours.history_[-1]["primal"] == pytest.approx(theirs.history_[-1]["primal"], rel=1e-6)

    def test_without_costs_margin_says_what_it_needs(self):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        structure = py_chain(loss=self.loss, loss_names=("double",))
        refused("needs a loss that decomposes", StructuredSVM(structure, loss="double").fit, X, Y)

    @pytest.mark.parametrize(
        "answer, message",
        [
            (None, r"loss\(\) .* returned None, expected a number"),
            (np.nan, r"loss\(\) .* returned nan, expected a finite number"),
        ],
    )
    def test_wrong_values(self, answer, message):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        structure = py_chain(
            loss=lambda *_: answer, loss_costs=self.loss_costs, loss_names=("double",)
        )
        refused(f"example .: {message}", StructuredSVM(structure, loss="double").fit, X, Y)

    def test_wrong_costs(self):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        structure = py_chain(loss=self.loss, loss_costs=lambda *_: 1, loss_names=("double",))
        with pytest.raises(ValueError, match=r"example .: .*expected a pair \(costs, const\)"):
            StructuredSVM(structure, loss="double").fit(X, Y)


class TestAugmentedOracles:
    """``argmax_augmented`` includes the space's own loss, and is used with this loss only."""

    @staticmethod
    def squared(space, examples, i, truth, label):
        return float((np.asarray(label) != truth).sum()) ** 2

    @staticmethod
    def most_violated(space, examples, i, theta, truth):
        space.calls += 1
        labels = space.enumerate_labels(examples, i)
        values = [
            space.score(examples, i, theta, y) + space.loss(examples, i, truth, y) for y in labels
        ]
        return labels[int(np.argmax(values))]

    def structure(self, **methods):
        return py_chain(
            argmax_augmented=self.most_violated,
            loss=self.squared,
            loss_names=("squared",),
            **({"calls": 0} | methods),
        )

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("surrogate", ["margin", "slack"])
    @pytest.mark.parametrize("loss", ["hamming", "zero-one", CostMatrix(1 - np.eye(3))], ids=str)
    def test_other_losses_go_the_ordinary_way(self, surrogate, loss):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        # The same calls give the same weights: some passes show this as well as the optimum does.
        settings = {"loss": loss, "surrogate": surrogate, "alpha": 0.1, "tol": 1e-6, "max_iter": 12}
        ours = StructuredSVM(self.structure(), **settings).fit(X, Y)
        theirs = StructuredSVM(PyChainStructure(), **settings).fit(X, Y)
        assert ours.space_.calls == 0
        assert ours.history_[-1]["primal"] == pytest.approx(theirs.history_[-1]["primal"], rel=1e-9)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("surrogate", ["margin", "slack"])
    def test_the_own_loss_is_maximised_by_it(self, surrogate):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        settings = {"loss": "squared", "surrogate": surrogate, "alpha": 0.1, "max_iter": 3}
        assert StructuredSVM(self.structure(), **settings).fit(X, Y).space_.calls > 0

    @pytest.mark.parametrize("surrogate", ["margin", "slack"])
    def test_losses_that_nothing_can_maximise(self, surrogate):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        structure = self.structure(kbest=property())  # the 0-1 loss needs k best
        with pytest.raises(ValueError, match="ZeroOneLoss does not decompose and .* no k-best"):
            StructuredSVM(structure, loss="zero-one", surrogate=surrogate).fit(X, Y)

    def test_counting_needs_another_loss(self):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        model = StructuredSVM(self.structure(), loss="squared", surrogate=Slack(search="exact"))
        refused("'exact' needs an oracle that answers for every count", model.fit, X, Y)

    def test_which_loss_it_knows(self):
        X, Y = PyChainStructure().sample(1, n=6, size=3)
        own, other = (
            Task(*self.structure().make_space(X, Y), loss) for loss in ("squared", "hamming")
        )
        augmented = own.power("augmented")
        assert augmented.knows(own.loss) and not augmented.knows(other.loss)
        assert not augmented.knows(ask_loss(other.space, "squared")(other.layout))


def test_native_objects_come_from_the_hooks():
    X, Y = PyChainStructure().sample(1, n=6, size=3)
    space, examples = PyChainStructure().make_space(X, Y)
    problem = Problem(space, examples)
    assert type(problem.oracle).__name__ == "PythonOracle"
    assert type(problem.task.power("kbest")).__name__ == "PythonKBest"
    assert problem.task.power("augmented") is None
    assert type(ask_loss(space, "hamming")(problem.task.layout)).__name__ == "NodeLoss"


def test_projections_may_decline():
    X, Y = PyChainStructure().sample(1, n=6, size=3)

    def project(self, examples, i, theta, name):
        return None if i == 3 else PyChainSpace.project(self, examples, i, theta, name)

    model = StructuredSVM(py_chain(project=project)).fit(X, Y)
    assert len(model.predict_marginals(X[:3])) == 3
    message = "example 3: structure 'py-chain' has no projection 'entropy' of this example"
    refused(message, model.predict_marginals, X)
    refused(message, StructuredSVM(py_chain(project=project), surrogate="crf").fit, X, Y)
    # Compiled ones decline when they are bound.
    native = PyChainSpace.make_projection
    structure = py_chain(
        project=property(),
        make_projection=lambda self, name: (
            (lambda layout: None) if name == "entropy" else native(self, name)
        ),
    )
    model = StructuredSVM(structure).fit(X, Y)
    refused("no projection 'entropy' for these examples", model.predict_marginals, X)
    refused(
        "no projection 'entropy' for these", StructuredSVM(structure, surrogate="crf").fit, X, Y
    )
