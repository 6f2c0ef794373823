"""Initial states of training: random, or clusters of the features of each class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from structsolve.examples.given import is_sparse
from structsolve.examples.packed import Examples
from structsolve.lp import ask_oracle
from structsolve.plugins.latent.sets import Sets
from structsolve.structure import calls
from structsolve.structure.ask import make_layout
from structsolve.structure.base import Space

STARTS = ("kmeans", "random")
# Number of rows that are clustered; all rows then join the nearest cluster.
MOST_ROWS = 10_000
# Rounds in which nodes with partial labels join the nearest allowed class.
ROUNDS = 5


def first_states(
    how: str, examples: Examples, sets: Sets, n_hidden: np.ndarray, seed: int
) -> np.ndarray:
    """Return an allowed state for each node.

    Parameters
    ----------
    how : {"kmeans", "random"}
        Clusters of the node features of each class; or any allowed state, uniformly.
    examples : Examples
    sets : Sets
        Sets of the classes.
    n_hidden : ndarray of int of shape (n_classes,)
        Hidden states of each class.
    seed : int

    Returns
    -------
    ndarray of int32 of shape (n_nodes,)
    """
    rng = np.random.default_rng(seed)
    if how == "random" or examples.nodes is None:
        return _random(sets.lifted(np.repeat(np.arange(len(n_hidden)), n_hidden)), rng)
    nodes = examples.nodes
    classes = _nearest_classes(nodes, sets)
    first = np.cumsum(n_hidden) - n_hidden
    states = first[classes]
    for k in np.flatnonzero(n_hidden > 1):
        members = np.flatnonzero(classes == k)
        if len(members):
            states[members] += _clusters(nodes, members, int(n_hidden[k]), rng)
    return states.astype(np.int32)


def possible(space: Space, examples: Examples, sets: Sets, states: np.ndarray) -> np.ndarray:
    """Return states, those of labels that the space does not contain replaced by the nearest.

    Parameters
    ----------
    space : Space
    examples : Examples
    sets : Sets
        Sets of the states.
    states : ndarray of int32 of shape (n_nodes,)

    Returns
    -------
    ndarray of int32
        Unchanged for examples without a possible label.
    """
    node, K = space.layout.node, sets.table.shape[1]
    if type(space).contains is Space.contains or node is None or node.shape != (K,):
        return states
    cuts = [slice(a, b) for a, b in zip(examples.offsets[:-1], examples.offsets[1:])]
    wrong = [i for i, cut in enumerate(cuts) if not space.contains(states[cut], examples, i)]
    if not wrong:
        return states
    layout, answer = make_layout(space, examples), states.copy()
    oracle = ask_oracle(space)(layout)
    for i in wrong:
        theta, given = np.zeros(layout.sizes(i)[0]), states[cuts[i]]
        nodes = theta[layout.shared_size :][: layout.node_size * len(given)]
        allowed = np.where(sets.table[sets.rows[cuts[i]]], 0.0, -np.inf)
        nodes.reshape(-1, layout.node_size)[:, :K] = allowed + np.eye(K)[given]
        label, value, _ = calls.argmax(oracle, i, theta)
        if value > -np.inf:
            answer[cuts[i]] = label
    return answer


def _random(sets: Sets, rng: np.random.Generator) -> np.ndarray:
    sizes = sets.sizes
    # The members of each set come first, in their order.
    order = np.argsort(~sets.table, axis=1, kind="stable")
    pick = (rng.random(len(sets.rows)) * sizes[sets.rows]).astype(np.int64)
    return order[sets.rows, pick].astype(np.int32)


def _nearest_classes(nodes: Any, sets: Sets) -> np.ndarray:
    """Return a class for each node: the allowed one with the nearest mean."""
    share = sets.table / sets.sizes[:, None]
    classes = np.argmax(sets.table[sets.rows], axis=1)
    several = sets.latent()
    if not len(several):
        return classes
    weights = share[sets.rows]
    forbidden = ~sets.table[sets.rows[several]]
    for _ in range(ROUNDS):
        mass = np.maximum(weights.sum(axis=0), 1e-300)
        means = np.asarray((nodes.T @ weights).T) / mass[:, None]
        distance = (means**2).sum(axis=1) - 2 * np.asarray(nodes[several] @ means.T)
        distance[forbidden] = np.inf
        nearest = np.argmin(distance, axis=1)
        if np.array_equal(classes[several], nearest):
            break
        classes[several] = nearest
        weights[several] = np.eye(len(mass))[nearest]
    return classes


def _clusters(nodes: Any, members: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    from sklearn.cluster import KMeans  # heavy
    from sklearn.exceptions import ConvergenceWarning  # heavy

    if len(members) <= k:
        return np.arange(len(members))
    if is_sparse(nodes):  # KMeans takes indices of 32 bits alone
        nodes = nodes[members]  # a copy
        nodes.indices, nodes.indptr = nodes.indices.astype(np.int32), nodes.indptr.astype(np.int32)
        members = np.arange(len(members))
    some = members
    if len(members) > MOST_ROWS:
        some = np.sort(rng.choice(members, MOST_ROWS, replace=False))
    means = KMeans(k, n_init=3, random_state=int(rng.integers(2**31)))
    # Sums over rows would depend on the number of threads.
    with warnings.catch_warnings(), threadpool_limits(1):
        # Fewer distinct rows than clusters: some stay empty.
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(nodes[some])
        return np.asarray(means.predict(nodes[members]))
