"""Weights of the nodes of a hierarchy that make its regularisation fair to short and long paths.

The penalty ``sum ||U_n||^2 / alpha_n`` treats classes with short and long paths from the root alike
if the weights ``alpha`` sum to one over every leaf and its ancestors.  This module has the rules
that use only the hierarchy; :mod:`structsolve.plugins.dag.svm.shared` learns the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve.plugins.dag.hierarchy import Hierarchy, as_hierarchy
from structsolve.plugins.dag.svm import programs

#: Largest sum over a leaf and its ancestors on a directed acyclic graph, by default.
DAG_SLACK = 1.5


@dataclass(frozen=True)
class NodeWeights:
    """Weights of nodes, kept as logarithms because they may underflow.

    Parameters
    ----------
    log : ndarray of shape (n_nodes,)
        Logarithms of the weights; -inf for weights that are zero.

    Examples
    --------
    >>> tiny = NodeWeights(np.array([-1000.0]))
    >>> tiny.values.tolist(), bool(tiny.sqrt[0] > 0)
    ([0.0], True)
    """

    log: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """The weights; they may underflow to 0."""
        return np.exp(self.log)

    @property
    def sqrt(self) -> np.ndarray:
        """Square roots of the weights: the factors of the node scores."""
        return np.exp(0.5 * self.log)

    @classmethod
    def of(cls, values: Any) -> NodeWeights:
        """Make node weights from their values.

        Parameters
        ----------
        values : array of shape (n_nodes,)
            At least 0.

        Returns
        -------
        NodeWeights
        """
        values = np.asarray(values, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return cls(np.log(values))


def node_weights(
    hierarchy: Any,
    normalization: str = "rho:2",
    directional: bool = False,
    slack: float | None = None,
) -> NodeWeights:
    """Return weights of the nodes of a hierarchy by a rule that needs no data.

    Parameters
    ----------
    hierarchy : Hierarchy or networkx DiGraph
        Edges go from parent to child.
    normalization : str
        "none": all weights are 1 (plain hierarchical SVM). "rho:RHO" with RHO > 1: the weights
        of least ``sum alpha^RHO``; near RHO = 1 a node and its copy count as one. "maxmin": the
        weights whose smallest is largest.
    directional : bool, default=False
        Require that no child weighs less than a parent, so leaves get most of the weight.
    slack : float, optional
        The sum over a leaf and its ancestors lies in ``[1, slack]``: 1 on trees and 1.5 on other
        graphs by default.

    Returns
    -------
    NodeWeights

    Raises
    ------
    ValueError
        For an unknown rule, the rule "learned", a slack that no weights meet, and where
        ``normalization="none"`` takes no notice of the others.

    Examples
    --------
    >>> import networkx as nx
    >>> tree = nx.DiGraph([("root", "a"), ("root", "b"), ("b", "b1"), ("b", "b2")])
    >>> node_weights(tree, "maxmin").values.round(3).tolist()      # root, a, b, b1, b2
    [0.333, 0.667, 0.333, 0.333, 0.333]
    >>> node_weights(tree, "rho:2").values.round(3).tolist()
    [0.625, 0.375, 0.25, 0.125, 0.125]
    """
    hierarchy = as_hierarchy(hierarchy)
    kind, rho = parse(normalization)
    if kind == "learned":
        raise ValueError("normalization='learned' needs data: use HierarchicalSVM")
    top = _largest_sum(slack, hierarchy.forest)
    if kind == "none":
        for name, given in (("directional", bool(directional)), ("slack", slack is not None)):
            if given:
                raise ValueError(
                    f"{name} is given, but normalization='none' has no weights of nodes: leave it "
                    "out, or use another normalization"
                )
        return NodeWeights(np.zeros(len(hierarchy)))
    has_closed_form = hierarchy.forest and top == 1
    if kind == "maxmin":
        # In the closed form no child weighs less than its parent.
        if has_closed_form:
            return _maxmin_tree(hierarchy)
        return NodeWeights.of(programs.maxmin(hierarchy, bool(directional), top))
    if has_closed_form and not directional:
        return _rho_tree(hierarchy, rho)
    return NodeWeights.of(programs.power(hierarchy, rho, bool(directional), top))


def parse(normalization: Any) -> tuple[str, float]:
    """Return the kind of a normalization and its rho.

    Parameters
    ----------
    normalization : str
        As for :func:`node_weights`, or "learned".

    Returns
    -------
    kind : {"none", "rho", "maxmin", "learned"}
    rho : float
        0 if the kind has none.

    Raises
    ------
    ValueError
        For any other normalization.

    Examples
    --------
    >>> parse("rho:1.5")
    ('rho', 1.5)
    """
    kind, _, number = str(normalization).partition(":")
    if kind in ("none", "maxmin", "learned") and not number:
        return kind, 0.0
    try:
        rho = float(number) if kind == "rho" else 0.0
    except ValueError:
        rho = 0.0
    if not 1 < rho < np.inf:
        raise ValueError(
            f"normalization is {normalization!r}, expected 'none', 'rho:RHO' with RHO > 1 (such as "
            "'rho:2'), 'maxmin' or 'learned'"
        )
    return kind, rho


def _largest_sum(slack: Any, is_tree: bool) -> float:
    """Return the largest sum over a leaf and its ancestors."""
    if slack is None:
        return 1.0 if is_tree else DAG_SLACK
    number = isinstance(slack, (int, float, np.integer, np.floating))
    if not number or not 1 <= slack < np.inf:
        raise ValueError(f"slack is {slack!r}, expected a finite number >= 1")
    return float(slack)


def _rho_tree(hierarchy: Hierarchy, rho: float) -> NodeWeights:
    """Return the weights of least ``sum alpha^rho`` on a tree, in closed form and log space.

    A subtree whose paths each have the sum r costs ``C r^rho``.  Its root takes the share
    ``t / (1 + t)`` with ``t = S^(1 / (rho - 1))``, where S is the sum of its children's C; C is
    that share to the power ``rho - 1``.  The code keeps D, the logarithm of the share: near ``rho =
    1`` it stays moderate, while C tends to 1 and the weights to 0.
    """
    parent, e = hierarchy.parent, rho - 1
    D = np.zeros(len(hierarchy))  # log share of the root of each subtree; leaves take all
    rest = np.zeros(len(hierarchy))  # log share that it leaves to its children
    is_leaf = np.zeros(len(hierarchy), dtype=bool)
    is_leaf[hierarchy.leaves] = True
    largest = np.full(len(hierarchy), -np.inf)
    total = np.zeros(len(hierarchy))
    for level in reversed(hierarchy.levels):
        inner = level[~is_leaf[level]]
        log_t = largest[inner] + np.log(total[inner]) / e
        D[inner] = -np.logaddexp(0, -log_t)
        rest[inner] = -np.logaddexp(0, log_t)
        below = level[parent[level] >= 0]
        above = parent[below]
        np.maximum.at(largest, above, D[below])
        np.add.at(total, above, np.exp(e * (D[below] - largest[above])))
    return NodeWeights(_spend(hierarchy, D, rest))


def _maxmin_tree(hierarchy: Hierarchy) -> NodeWeights:
    """Return the fairest weights on a tree: the smallest is largest, then the next, and so on.

    A node whose longest path down has h nodes, itself included, takes 1 / h of the sum that its
    ancestors left.  (The linear program determines no more than the smallest weight.)  No child
    weighs less than its parent.
    """
    parent = hierarchy.parent
    height = np.ones(len(hierarchy))
    for level in reversed(hierarchy.levels):
        below = level[parent[level] >= 0]
        np.maximum.at(height, parent[below], height[below] + 1)
    with np.errstate(divide="ignore"):
        rest = np.log1p(-1 / height)  # -inf at leaves, which have no children
    return NodeWeights(_spend(hierarchy, -np.log(height), rest))


def _spend(hierarchy: Hierarchy, share: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return log weights, top down: a node takes its share of the sum that its ancestors left."""
    left = np.zeros(len(hierarchy))
    for level in hierarchy.levels:
        below = level[hierarchy.parent[level] >= 0]
        above = hierarchy.parent[below]
        left[below] = left[above] + rest[above]
    return left + share
