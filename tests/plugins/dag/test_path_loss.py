"""The loss between leaves of normalised hierarchies, against its definition."""

import networkx as nx
import numpy as np
import pytest
from checks import refused
from reference.hierarchies import brute_paths, random_dag, random_tree

import structsolve
from structsolve import Block, Examples, StructuredSVM
from structsolve.part_layout import PartLayout
from structsolve.plugins.dag import DagStructure, Hierarchy, PathCost, node_weights
from structsolve.plugins.dag._path_loss import PathCosts, PathLoss
from structsolve.structure import calls
from structsolve.testing import check_structure


def path_loss(hierarchy, alpha, n=1):
    """The loss of n examples."""
    layout = PartLayout([Block("node", "node", (len(hierarchy),))], Examples(np.arange(n + 1)))
    return PathLoss(PathCosts(hierarchy, alpha), layout)


def leaf_label(leaf):
    return np.array([leaf], dtype=np.int32)


@pytest.mark.parametrize("seed", range(60))
def test_values_and_augmented_scores(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 16))
    hierarchy = random_dag(rng, n) if seed % 3 == 2 else random_tree(rng, n, forest=seed % 3 == 1)
    alpha = rng.exponential(size=n) * 10.0 ** rng.integers(-6, 6) * (rng.random(n) < 0.8)
    paths, leaves = brute_paths(hierarchy), hierarchy.leaves
    costs = np.sqrt(np.abs(paths[:, None] - paths[None]) @ alpha)
    loss = path_loss(hierarchy, alpha, len(leaves))
    loss.check_truths(leaves.astype(np.int32))
    assert loss.decomposes and loss.averaged and not loss.zero_one
    theta = np.zeros(loss.layout.sizes(0)[0])
    theta[:n] = rng.normal(size=n)
    # The root of a difference of sums: half of the digits.
    atol = 1e-7 * np.sqrt(alpha.sum())
    for i, truth in enumerate(leaves):
        values = [calls.loss_value(loss, i, leaf_label(truth), leaf_label(leaf)) for leaf in leaves]
        np.testing.assert_allclose(values, costs[i], rtol=1e-9, atol=atol)
        assert values[i] == 0
        out = theta.copy()
        assert calls.augment(loss, i, leaf_label(truth), 2.0, out) == 0
        assert (out - theta)[leaves] == pytest.approx(2 * np.array(values), rel=1e-9, abs=1e-12)
        inner = np.setdiff1d(np.arange(len(theta)), leaves)
        assert out[inner].tolist() == theta[inner].tolist()
        assert out[truth] == theta[truth]


def test_unit_sums_differ_by_what_is_below_the_common_ancestor():
    tree = Hierarchy(nx.balanced_tree(2, 3, create_using=nx.DiGraph))
    alpha = node_weights(tree, "rho:2").values
    below = 1 - alpha[0]
    value = calls.loss_value(
        path_loss(tree, alpha), 0, leaf_label(tree.leaves[0]), leaf_label(tree.leaves[-1])
    )
    assert value == pytest.approx(np.sqrt(2 * below))


TREE = nx.DiGraph([("r", "a"), ("r", "b"), ("b", "c"), ("b", "d"), ("d", "e"), ("d", "f")])
GRAPH = nx.DiGraph([("r", "a"), ("r", "b"), ("s", "b"), ("s", "c"), ("b", "d"), ("b", "e")])


@pytest.mark.parametrize("graph", [TREE, GRAPH], ids=["tree", "graph"])
def test_conformance(graph):
    weights = node_weights(graph, "rho:2").values
    structure = DagStructure(graph, labels="single-leaf")
    check_structure(structure, loss=PathCost(weights), n_cases=2)


def test_slack_rescaling_takes_it():
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.array(["a", "c", "e", "f"])[np.arange(20) % 4]
    structure = DagStructure(TREE, labels="single-leaf")
    loss = PathCost(node_weights(TREE, "maxmin").values)
    model = StructuredSVM(structure, surrogate="slack", loss=loss, alpha=0.1).fit(X, y)
    assert model.stop_reason_ == "converged"


def test_refusals():
    tree = Hierarchy(TREE)
    refused("weights has shape", PathCosts, tree, [1.0])
    refused("finite", PathCosts, tree, np.full(7, -1.0))
    for labels in ([0], [8], [-1], [[1]]):
        with pytest.raises(ValueError, match="one leaf for each example"):
            path_loss(tree, np.ones(7)).check_truths(np.array(labels, dtype=np.int32))
    # A path unseen in training has none of the nodes.
    weights = np.arange(1.0, 8)
    loss, unseen = path_loss(tree, weights), np.array([7], dtype=np.int32)
    loss.check_truths(unseen)
    costs = np.zeros(loss.layout.sizes(0)[0])
    assert calls.augment(loss, 0, unseen, 1.0, costs) == 0
    for leaf in tree.leaves.tolist():
        above = [leaf, *nx.ancestors(nx.DiGraph(tree.edges.tolist()), leaf)]
        expected = np.sqrt(weights[above].sum())
        assert calls.loss_value(loss, 0, unseen, np.array([leaf], np.int32)) == expected
        assert costs[leaf] == expected
    model = StructuredSVM(DagStructure(TREE), loss=PathCost(np.ones(7)))
    refused("single-leaf", model.fit, [[1.0]], [["r", "a"]])
    assert "PathCost" in repr(structsolve.plugins.dag.PathCost([1.0]))
