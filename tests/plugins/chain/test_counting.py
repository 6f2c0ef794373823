"""The best label for each count, natively and in Python, against enumeration."""

import numpy as np
import pytest
from chain_cases import VARIANTS, long_chain
from chain_cases import Case as ChainCase
from checks import refused
from enumeration import NONE
from hypothesis import given, settings
from hypothesis import strategies as st
from wrong_structures import Counting, CountingStructure

from structsolve import get_structure
from structsolve.plugins.chain._oracle import ChainCounts, ChainOracle
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss, ask_power, make_layout

SIZES = [(1, 1), (1, 4), (2, 1), (2, 2), (2, 9), (3, 3), (4, 2), (4, 5), (5, 1), (5, 3), (7, 2)]
KINDS = ["normal", "ties", "equal", "negative", "huge", "forbidden parts", "all forbidden"]
COSTS = ["errors", "agreements", "integers", "zeros", "fives", "far"]


def counts_of(space, layout):
    return ask_power(space, "counts")(layout)


class Case(ChainCase):
    """Chains with others before and after them, and costs of their states."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named, before=(1,))

    def cost(self, kind, rng):
        cost = np.zeros(self.size)
        node = self.views(cost)["node"]
        truth = rng.integers(self.k, size=self.length)
        if kind in ("errors", "agreements"):
            node[np.arange(self.length), truth] = 1
            node[...] = 1 - node if kind == "errors" else node
        elif kind != "zeros":
            node[...] = rng.integers(0, 4, node.shape)
            node *= 5 if kind == "fives" else 1
            if kind == "far":
                node[rng.random(node.shape) < 0.3] = 1e300
        return cost

    def check_counts(self, theta, cost, most):
        counts, labels, values = super().check_counts(theta, cost, most)
        if most >= counts.max():
            value = calls.argmax(self.oracle, 1, theta)[1]
            assert values.max() == value  # bit by bit: the same sums in the same order
        return counts, labels, values


@pytest.mark.parametrize("variant", VARIANTS)
def test_against_enumeration(variant):
    rng = np.random.default_rng(VARIANTS.index(variant))
    for length, k in SIZES:
        case = Case(length, k, *variant)
        for number, kind in enumerate(KINDS):
            # Every other one of the costs, so that all pairs with kinds occur over the sizes.
            for costs in COSTS[(number + length + k) % 2 :: 2]:
                most = int(rng.choice([0, 1, length, 3 * length, 16 * length]))
                case.check_counts(case.theta(kind, rng), case.cost(costs, rng), most)


def test_ties_go_to_the_smallest_state_last_position_first():
    rng = np.random.default_rng(1)
    for length, k in SIZES:
        case = Case(length, k)
        for kind in ("ties", "equal"):
            theta, cost = case.theta(kind, rng), case.cost("integers", rng)
            counts, labels, values = case.check_counts(theta, cost, 3 * length)
            for c in np.flatnonzero(values > NONE):
                tied = case.labels[(counts == c) & (case.scores(theta) == values[c])]
                np.testing.assert_array_equal(labels[c], tied[np.lexsort(tied.T)[0]])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(VARIANTS),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 20),
    st.sampled_from(KINDS),
    st.sampled_from(COSTS),
    st.integers(0, 2**32 - 1),
)
def test_any_chain(variant, length, k, most, kind, costs, seed):
    rng = np.random.default_rng(seed)
    case = Case(length, k, *variant)
    case.check_counts(case.theta(kind, rng), case.cost(costs, rng), most)


@pytest.mark.parametrize("k, length", [(26, 40), (9, 120), (33, 12), (1, 300), (2, 200)])
def test_long_chains(k, length):
    """Check the frontier against a program with full tables, and the unconstrained maximum."""
    rng = np.random.default_rng(k)
    layout, bound_to, theta, views = long_chain(k, length, 1.0, rng)
    oracle, counts = ChainOracle(bound_to), ChainCounts(bound_to)
    cost = np.zeros(theta.size)
    costs = layout.theta_views(cost, length, length - 1)["node"]
    costs[...] = rng.random(costs.shape) < 0.5
    labels, values = calls.argmax_counts(counts, 0, theta, cost, length)
    assert values.max() == calls.argmax(oracle, 0, theta)[1]
    best = np.full((length + 1, k), NONE)
    best[costs[0].astype(int), np.arange(k)] = views["start"] + views["node"][0]
    for v in range(1, length):
        step = (best[:, :, None] + views["transition"]).max(axis=1) + views["node"][v]
        best[:] = np.where(costs[v] > 0, np.vstack([np.full((1, k), NONE), step[:-1]]), step)
    np.testing.assert_allclose(values, (best + views["end"]).max(axis=1), rtol=1e-12)
    for c in np.flatnonzero(values > NONE):
        y = labels[c]
        assert costs[np.arange(length), y].sum() == c
        score = views["node"][np.arange(length), y].sum() + views["start"][y[0]]
        score += views["end"][y[-1]] + views["transition"][y[:-1], y[1:]].sum()
        assert score == pytest.approx(values[c], rel=1e-10)


def test_agreements_are_the_hamming_loss_turned_round():
    """Call it like a search: augment() subtracts 1 from each true state and returns the length."""
    structure = get_structure("chain")
    X, Y = [np.eye(3)], [[2, 0, 1]]
    space, examples = structure.make_space(X, Y)
    theta = np.random.default_rng(0).normal(size=space.layout.theta_size(3, 2))
    theta = np.where(np.arange(theta.size) % 4 == 3, 0, theta)
    cost = np.zeros_like(theta)
    layout = make_layout(space, examples)
    loss, oracle = ask_loss(space, "hamming")(layout), space.make_oracle()(layout)
    const = calls.augment(loss, 0, examples.label(0), 1.0, cost)
    labels, values = calls.argmax_counts(counts_of(space, layout), 0, theta, -cost, int(const))
    assert labels[-1].tolist() == Y[0]
    assert [(y != Y[0]).sum() for y in labels] == [3, 2, 1, 0]
    assert values.max() == calls.argmax(oracle, 0, theta)[1]


# ---- a structure in Python -----------------------------------------------------------------------


def test_a_python_structure_answers_the_same():
    rng = np.random.default_rng(2)
    X, Y = [rng.normal(size=(n, 2)) for n in (1, 3)], [[0], [1, 2, 0]]
    native, _ = get_structure("chain").make_space(X, Y)
    other, _ = CountingStructure().make_space(X, Y)
    operators = [
        counts_of(space, make_layout(space, space.pack(X, Y))) for space in (native, other)
    ]
    for i, length in enumerate((1, 3)):
        size = native.layout.theta_size(length, length - 1)
        for _ in range(30):
            theta, cost = np.zeros(size), np.zeros(size)
            views = native.layout.theta_views(theta, length, length - 1)
            for view in views.values():
                view[...] = rng.normal(size=view.shape)
            node = native.layout.theta_views(cost, length, length - 1)["node"]
            node[...] = rng.integers(0, 3, node.shape)
            (labels, values), (same, again) = (
                calls.argmax_counts(counts, i, theta, cost, 2 * length + 1) for counts in operators
            )
            np.testing.assert_allclose(values, again)
            np.testing.assert_array_equal(labels[values > NONE], same[values > NONE])


def test_a_python_answer_of_the_wrong_length_is_refused():
    class Short(CountingStructure):
        space_class = type("Short", (Counting,), {"argmax_counts": lambda *a: [None]})

    X, Y = [np.zeros((2, 1))], [[0, 1]]
    space, examples = Short().make_space(X, Y)
    theta = np.zeros(space.layout.theta_size(2, 1))
    with pytest.raises(ValueError, match="argmax_counts.* expected a list of 4 labels or None"):
        calls.argmax_counts(counts_of(space, make_layout(space, examples)), 0, theta, theta, 3)


# ---- multiclass ----------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 12), st.integers(0, 6), st.sampled_from(KINDS), st.integers(0, 2**32 - 1))
def test_multiclass(k, most, kind, seed):
    rng = np.random.default_rng(seed)
    space, _ = get_structure("multiclass").make_space(np.zeros((k, 1)), np.arange(k) % max(k, 1))
    counts = counts_of(space, make_layout(space, space.pack(np.zeros((2, 1)))))
    theta, cost = np.zeros((2, space.layout.theta_size(1, 0)))
    theta[:k] = rng.integers(-1, 2, k) if kind == "ties" else rng.normal(size=k)
    if "forbidden" in kind:
        theta[:k][rng.random(k) < (1 if kind == "all forbidden" else 0.4)] = NONE
    cost[:k] = rng.integers(0, 5, k)
    labels, values = calls.argmax_counts(counts, 1, theta, cost, most)
    for c in range(most + 1):
        inside = np.flatnonzero(cost[:k] == c)
        best = theta[inside].max(initial=NONE)
        assert values[c] == best
        assert labels[c, 0] == (inside[theta[inside] == best][0] if best > NONE else 0)


# ---- arguments -----------------------------------------------------------------------------------


def test_bad_arguments_are_refused():
    case = Case(3, 2, edges=True)
    theta, cost = np.zeros(case.size), np.zeros(case.size)

    def ask(cost=cost, most=3, theta=theta):
        return calls.argmax_counts(case.counts, 1, theta, cost, most)

    ask()
    for name in ("transition", "start", "end", "edge"):
        wrong = cost.copy()
        case.views(wrong)[name].flat[0] = 1
        refused(r"example 1: a part that is no state .* costs 1\.0", ask, wrong)
    for bad in (-1, 0.5, np.nan, np.inf):
        wrong = cost.copy()
        case.views(wrong)["node"][1, 1] = bad
        refused("cost: found values that are no counts", ask, wrong)
    refused("most is -1", ask, most=-1)
    for most in (2**31, 2**62):
        refused(f"most is {most}, .* fits into memory", case.counts.bytes_for, most)
    refused("theta", ask, theta=theta[:-1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["node", "transition", "start", "end", "edge"])
def test_nan_and_infinity_stay_in_memory(name, bad):
    rng = np.random.default_rng(3)
    case = Case(4, 5, edges=True)
    for _ in range(50):
        theta = case.theta("forbidden parts", rng)
        view = case.views(theta)[name]
        view[rng.random(view.shape) < 0.3] = bad
        labels, _ = calls.argmax_counts(case.counts, 1, theta, case.cost("integers", rng), 9)
        assert labels.min() >= 0 and labels.max() < 5
