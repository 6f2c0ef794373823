"""Derivatives of projections on small random cases: covariances by enumeration, differences."""

import itertools

import networkx as nx
import numpy as np
import pytest
from checks import refused
from edge_structures import EdgeChain, EdgeTree
from flow_cases import wide_network
from forest_cases import FORESTS
from reference.hierarchies import GRAPH, TREE

from structsolve import registry
from structsolve.operators import Projection
from structsolve.plugins.alignment import AlignmentStructure
from structsolve.plugins.chain import ChainStructure
from structsolve.plugins.dag import DagStructure
from structsolve.plugins.dependency import DependencyStructure
from structsolve.plugins.flow import FlowStructure
from structsolve.plugins.multilabel import MultilabelStructure
from structsolve.plugins.ordinal import OrdinalStructure
from structsolve.plugins.permutation import PermutationStructure
from structsolve.plugins.tree import TreeStructure
from structsolve.projections.active_set import ActiveSet
from structsolve.projections.rows import RowSoftmax
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask, make_layout
from structsolve.testing._case import Case

KINDS = ["normal", "ties", "zero", "wide", "huge", "forbidden"]


def instance(structure, seed, size=3):
    case = Case(registry.get_structure(structure), 0, seed, size)
    case.enumerate()
    return case


def projection_of(case, name="entropy"):
    return ask("structsolve_projection", Projection, case.space, regularizer=name)(case.part_layout)


def scores(case, i, kind, rng):
    """Part scores of a kind, 0 in the padding, that leave a label; and what all labels score."""
    n = len(case.padding[i])
    theta = rng.normal(size=n) * {"wide": 30, "huge": 1e4}.get(kind, 1)
    if kind in ("ties", "zero"):
        theta = rng.integers(-1, 2, n) * float(kind == "ties")
    theta[case.padding[i]] = 0
    if kind == "forbidden":
        kept = case.mu[i][rng.integers(len(case.mu[i]))] != 0
        theta[(rng.random(n) < 0.3) & ~kept & ~case.padding[i]] = -np.inf
    with np.errstate(invalid="ignore"):
        return theta, np.where(case.mu[i] != 0, case.mu[i] * theta, 0).sum(axis=1)


def towards(case, i, rng):
    direction = rng.normal(size=len(case.padding[i]))
    direction[case.padding[i]] = 0
    return direction


def covariance(case, i, total, direction):
    """Return the covariance of the parts with the direction, for probabilities exp total."""
    p = np.exp(total - total.max())
    p /= p.sum()
    along = case.mu[i] @ direction
    return (p * (along - p @ along)) @ case.mu[i]


# -- entropy -------------------------------------------------------------------------------------

GIBBS = [
    "multiclass",
    OrdinalStructure(),
    OrdinalStructure(thresholds=True),
    MultilabelStructure(edges=[]),
    "chain",
    ChainStructure(start_end=False),
    ChainStructure(transitions=False),
    EdgeChain(),
    EdgeChain(transitions=False),
    "tree",
    TreeStructure(transitions=False),
    TreeStructure(root=False),
    EdgeTree(),
    *FORESTS,
    "semi-markov",
    *map(AlignmentStructure, ("edit", "many-to-one", "ctc")),
    *(DependencyStructure(*flags) for flags in itertools.product((False, True), repeat=2)),
    DagStructure(TREE),
    DagStructure(TREE, roots="on"),
    DagStructure(TREE, labels="leaf-union"),
    DagStructure(TREE, labels="single-leaf"),
    DagStructure(nx.DiGraph(GRAPH), labels="single-leaf"),
]


def named(value):
    """Return an id for a parameter that is the same in every process, unlike repr of a graph."""
    return getattr(value, "name", None) or str(value)


@pytest.mark.parametrize("structure", GIBBS, ids=named)
def test_entropies_against_enumeration(structure):
    rng = np.random.default_rng(0)
    for seed in range(3):
        case = instance(structure, seed, 4 if isinstance(structure, DependencyStructure) else 3)
        projection = projection_of(case)
        assert projection.has_derivative and projection.gibbs
        for i in range(case.n):
            for kind in KINDS:
                theta, total = scores(case, i, kind, rng)
                if kind == "forbidden" and case.mu[i].min() < 0:
                    continue  # thresholds: parts count down
                direction = towards(case, i, rng)
                moved = projection_calls.derivative(projection, i, theta, direction)
                expected = covariance(case, i, total, direction)
                np.testing.assert_allclose(moved, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "structure",
    [
        "chain",
        "tree",
        "semi-markov",
        EdgeChain(),
        *(DependencyStructure(*flags) for flags in itertools.product((False, True), repeat=2)),
    ],
    ids=repr,
)
def test_scores_of_any_size(structure):
    """Marginals that underflow: in the scaled form, with logarithms, and in between."""
    rng = np.random.default_rng(1)
    for seed in range(4):
        case = instance(structure, seed)
        projection = projection_of(case)
        for scale in (50, 120, 140, 200, 400, 800):
            theta, total = scores(case, 0, "normal", rng)
            theta, total = theta * scale, total * scale
            direction = towards(case, 0, rng)
            moved = projection_calls.derivative(projection, 0, theta, direction)
            expected = covariance(case, 0, total, direction)
            np.testing.assert_allclose(moved, expected, rtol=1e-8, atol=1e-9)


def test_long_chains_against_differences():
    rng = np.random.default_rng(2)
    # Eight states fill their rows, without padding.
    for k, length in ((2, 300), (5, 90), (8, 60), (26, 40)):
        X = [np.zeros((n, 1)) for n in (length, 1)]
        Y = [np.zeros(len(x), int) for x in X]
        space, _ = ChainStructure().make_space(X, Y, classes=range(k))
        layout = make_layout(space, space.pack(X))
        projection = space.make_projection("entropy")(layout)
        for i in (0, 1):
            parts = np.zeros((2, layout.sizes(i)[0]))
            for row, spread in zip(parts, (1.5, 1)):
                for view in space.layout.theta_views(row, len(X[i]), 0).values():
                    view[...] = rng.normal(size=view.shape) * spread
            theta, direction = parts
            moved = projection_calls.derivative(projection, i, theta, direction)
            step = 1e-5
            ends = [calls.project(projection, i, theta + x * direction)[0] for x in (step, -step)]
            expected = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=1e-7)


# -- others: differences to both sides, which agree but at a kink ----------------------------------

OTHERS = [
    ("entropy", PermutationStructure("ranking"), 2e-5),
    ("entropy", PermutationStructure("matching"), 2e-5),
    ("euclidean", PermutationStructure("ranking"), 1e-6),
    ("euclidean", PermutationStructure("matching"), 1e-6),
    ("euclidean", "multiclass", 1e-6),
    ("euclidean", OrdinalStructure(thresholds=True), 1e-6),
    ("euclidean", MultilabelStructure(edges=[]), 1e-6),
    ("euclidean", DagStructure(TREE), 1e-6),
]
OVER_ORACLES = [
    "chain",
    "tree",
    "dependency",
    DependencyStructure(labelled=True),
    MultilabelStructure(edges=[]),
    MultilabelStructure(edges="tree"),
    "mrf",
    "grid",
    "permutation",
    DagStructure(TREE),
    DagStructure(TREE, labels="leaf-union"),
    FlowStructure(wide_network()),
]


def compare(case, projection, i, theta, direction, step, off):
    """Return whether differences determine a derivative; refuse another."""
    here, ahead, behind = (
        calls.project(projection, i, theta + x * direction)[0] for x in (0, step, -step)
    )
    right, left = (ahead - here) / step, (here - behind) / step
    if np.abs(right - left).max() > 100 * off:
        return False
    moved = projection_calls.derivative(projection, i, theta, direction)
    np.testing.assert_allclose(moved, (left + right) / 2, rtol=0, atol=off)
    other = towards(case, i, np.random.default_rng(3))
    turned = projection_calls.derivative(projection, i, theta, other)
    assert turned @ direction == pytest.approx(moved @ other, abs=1e-6)
    return True


@pytest.mark.parametrize("name, structure, off", OTHERS, ids=named)
def test_closed_forms_against_differences(name, structure, off):
    rng, told = np.random.default_rng(3), []
    for seed in range(4):
        case = instance(structure, seed)
        projection = projection_of(case, name)
        for i in range(case.n):
            for kind in ("normal", "ties", "zero", "forbidden"):
                theta, _ = scores(case, i, kind, rng)
                if kind == "forbidden" and case.mu[i].min() < 0:
                    continue
                direction = towards(case, i, rng)
                told.append(compare(case, projection, i, theta, direction, 1e-5, off))
    assert np.mean(told) > 0.4


@pytest.mark.parametrize("structure", OVER_ORACLES, ids=named)
def test_active_sets_against_differences(structure):
    rng, told = np.random.default_rng(4), []
    for seed in range(3):
        case = instance(structure, seed)
        projection = ActiveSet(case.oracle, case.parts, tol=1e-12)
        for i in range(case.n):
            for _ in range(3):
                theta, _ = scores(case, i, "normal", rng)
                direction = towards(case, i, rng)
                told.append(compare(case, projection, i, theta, direction, 1e-5, 1e-5))
    assert np.mean(told) > 0.5


def test_active_sets_where_few_labels_say_little():
    """In the middle of a square two labels may have all weight; both sides still change."""
    case = instance(MultilabelStructure(edges=[]), 0, 4)
    own = projection_of(case, "euclidean")
    over_oracle = ActiveSet(case.oracle, case.parts)
    rng = np.random.default_rng(5)
    for i in range(case.n):
        for _ in range(20):
            theta = np.zeros(len(case.padding[i]))
            theta[~case.padding[i]] = rng.choice([0.25, 0.5, 0.75, -1, 2], (~case.padding[i]).sum())
            direction = towards(case, i, rng)
            np.testing.assert_allclose(
                projection_calls.derivative(over_oracle, i, theta, direction),
                projection_calls.derivative(own, i, theta, direction),
                atol=1e-8,
            )


def test_the_call_refuses_what_does_not_fit():
    case = instance("chain", 0)
    projection = projection_of(case)
    theta = np.zeros(len(case.padding[0]))
    for bad, message in ((theta[1:], "direction"), (theta + np.nan, "direction: found NaN")):
        refused(message, projection_calls.derivative, projection, 0, theta, bad)
    forbidden = np.where(case.padding[0], 0, -np.inf)
    refused(
        "example 0: every labeling", projection_calls.derivative, projection, 0, forbidden, theta
    )
    rows = RowSoftmax(2, case.part_layout)
    refused("has_derivative = False", projection_calls.derivative, rows, 0, theta, theta)
