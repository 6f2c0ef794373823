"""Invalid true labels are refused before training: contains(), and rows of polytopes."""

import numpy as np
import pytest
from checks import refused
from lp_cases import STRUCTURES, packed, vectors
from scipy import sparse

from structsolve import Block, Examples, NodeSpace, Structure, StructuredSVM, WeightLayout
from structsolve.examples import labels, packing
from structsolve.lp import Polytope, Polytopes
from structsolve.lp.ask import ask_polytopes
from structsolve.lp.membership import broken_row
from structsolve.structure.ask import make_layout
from structsolve.testing import BrokenPromise, check_structure

MOST = 2


class Budget(Structure):
    """At most MOST of the nodes of an example are 1."""

    name = "budget"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        nodes, offsets = packing.stack_rows(X)
        flat = labels.flatten(Y, offsets)
        space = self.space_class(self, labels.learn_classes(flat, classes), nodes.shape[1])
        return space, Examples(offsets, nodes, space.encode(flat, offsets))

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        X = [rng.integers(-2, 3, (size, 2)).astype(float) for _ in range(n)]
        return X, [rng.permutation([1] * min(MOST, size) + [0] * (size - MOST)) for _ in X]


class BudgetSpace(NodeSpace):
    def __init__(self, structure, classes, n_features):
        block = Block("node", "node", (2,), ("class",))
        super().__init__(structure, WeightLayout([block], n_features, 0, True), classes)

    def stack(self, X):
        nodes, offsets = packing.stack_rows(X, self.layout.n_features)
        return Examples(offsets, nodes)

    def parts(self, examples, i, label):
        return {"node": np.eye(2)[label]}

    def argmax(self, examples, i, theta):
        gain = theta["node"][:, 1] - theta["node"][:, 0]
        label = np.zeros(len(gain), int)
        best = np.argsort(-gain)[:MOST]
        label[best[gain[best] > 0]] = 1
        return label


class Told(BudgetSpace):
    def contains(self, label, examples, i):
        return label.sum() <= MOST


class Rows(BudgetSpace):
    argmax = None

    def make_oracle(self):
        return None

    def make_polytopes(self):
        return lambda layout: BudgetPolytopes(layout.examples)


class BudgetPolytopes(Polytopes):
    exact = True

    def __init__(self, examples):
        self.lengths = np.diff(examples.offsets)

    def key(self, i):
        return int(self.lengths[i])

    def build(self, i):
        n = int(self.lengths[i])
        one_each = sparse.kron(np.eye(n), np.ones((1, 2)))
        budget = np.tile([0.0, 1.0], n)[None]
        A = sparse.vstack([one_each, sparse.csr_matrix(budget)]).tocsr()
        parts = np.arange(2 * n)
        low, high = np.r_[np.ones(n), 0], np.r_[np.ones(n), MOST]
        return Polytope(A, low, high, parts, lambda x: x.reshape(n, 2).argmax(1).astype(np.int32))


def structure(space_class):
    made = Budget()
    made.space_class = space_class
    return made


def data():
    X, Y = Budget().sample(0, n=6, size=4)
    return X, [*Y[:4], np.ones(4, int), Y[5]]


@pytest.mark.parametrize(
    "space_class, oracle", [(Told, None), (Rows, "lp"), (Rows, "cvxpy:CLARABEL")]
)
def test_refused_by_example(space_class, oracle):
    X, Y = data()
    message = "example 4: the true label is no label of structure 'budget'"
    for solver in ("bcfw", "sgd", "cutting-plane"):
        model = StructuredSVM(structure(space_class), oracle=oracle, solver=solver, max_iter=3)
        refused(message, model.fit, X, Y)
        del model
    Y[4] = np.array([0, 1, 1, 0])
    model = StructuredSVM(structure(space_class), alpha=0.1, oracle=oracle).fit(X, Y)
    assert all(label.sum() <= MOST for label in model.predict(X))
    # Scoring accepts test labels of any kind: an invalid one is an error of the prediction.
    assert model.score(X[4:5], [np.ones(4, int)]) <= 0.5


def test_labels_listed_are_those_contained():
    X, Y = Budget().sample(0)
    space, examples = structure(Told).make_space(X, Y)
    assert len(space.enumerate_labels(examples, 0)) == 7
    space.contains = lambda label, *rest: int(label.sum() <= MOST)
    assert len(space.enumerate_labels(examples, 0)) == 7


@pytest.mark.parametrize(
    "method, answer, message",
    [
        ("contains", lambda *args: None, r"contains\(\) of structure 'budget' returned None"),
        ("contains", lambda *args: [][0], r"contains\(\) of structure 'budget' raised IndexError"),
        ("stack", lambda *args: None, r"structure 'budget': stack\(\) returned a NoneType"),
        ("argmax", None, r"its Wrong has no argmax\(\) or make_oracle\(\)"),
        ("parts", None, r"its Wrong has no parts\(\) or make_parts\(\)"),
    ],
)
def test_mistakes_are_told_by_the_name_of_the_method(monkeypatch, method, answer, message):
    if answer is None:
        monkeypatch.delattr(BudgetSpace, method)
    made = structure(type("Wrong", (Told,), {method: answer} if answer else {}))
    X, Y = Budget().sample(0)
    space, examples = made.make_space(X, Y)
    told = (TypeError, ValueError)
    if method == "contains":
        refused(f"example 0: {message}", space.enumerate_labels, examples, 0, error=told)
    if method == "stack":
        refused(message, space.pack, X, Y, error=told)
    else:
        refused(message, StructuredSVM(made).fit, X, Y, error=told)


class Kept(Budget):
    space_class = Told


class Silent(Budget):
    space_class = BudgetSpace


class Wrong(Budget):
    class space_class(Told):
        def contains(self, label, examples, i):
            return label.sum() < MOST

        def enumerate_labels(self, examples, i):
            grid = np.indices((2,) * int(np.diff(examples.offsets)[i]), dtype=np.int32)
            rows = grid.reshape(len(grid), -1).T
            return rows[rows.sum(1) <= MOST]


def test_kit():
    quick = {"n_cases": 2, "solvers": (), "only": ["oracle"]}
    check_structure(Kept(), **quick)
    with pytest.raises(BrokenPromise, match=r"the space lacks contains\(\): all K\^n are listed"):
        check_structure(Silent(), **quick)
    with pytest.raises(BrokenPromise, match="contains breaks a promise: it is True of each label"):
        check_structure(Wrong(), **quick)


@pytest.mark.parametrize("name, params", STRUCTURES)
def test_no_label_of_a_shipped_structure_is_refused(name, params):
    space, examples = packed(name, params)
    polytopes, layout = ask_polytopes(space, examples), make_layout(space, examples)
    for i in range(3):
        polytope = polytopes.build(i)
        for mu in vectors(space, layout, i)[1][:200]:
            assert broken_row(polytope, mu) is None


def test_shared_and_several_parts_tell_nothing():
    one = np.ones(1)
    A = sparse.csr_matrix(np.ones((1, 2)))

    def decode(x):
        return x.astype(np.int32)

    assert broken_row(Polytope(A, one, one, np.array([0, 1]), decode), np.ones(2)) == 0
    assert broken_row(Polytope(A, one, one, np.array([0, 0]), decode), np.ones(2)) is None
    assert broken_row(Polytope(A, one, one, np.array([0, -1]), decode), np.ones(2)) is None
    several = np.array([[0, 2], [1, -1]])
    assert broken_row(Polytope(A, one, one, several, decode), np.ones(3)) is None
    assert broken_row(Polytope(A, -one, one, np.array([0, 1]), decode), np.zeros(2)) is None
