"""The best labeling of one graph with given scores, by any decoder, and its bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.part_layout import PartLayout
from structsolve.plugins.mrf.decoders import make_oracle
from structsolve.plugins.mrf.graph_operators import common_graphs
from structsolve.plugins.mrf.graphs import check_edges
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.calls import argmax


class Decoding(NamedTuple):
    """The answer of :func:`decode`.

    Parameters
    ----------
    label : ndarray of int of shape (nodes,)
    value : float
        Its score; -inf where every labeling is forbidden.
    bound : float
        No labeling scores more: ``bound - value`` is 0 where the label is known to be the best.
    """

    label: np.ndarray
    value: float
    bound: float


def decode(
    unary: Any,
    edges: Any,
    pair: Any,
    directed: bool = False,
    oracle: str = "auto",
    max_iter: int = 100,
) -> Decoding:
    """Find a labeling of a graph with a large score, and an upper bound of all scores.

    Parameters
    ----------
    unary : array of shape (nodes, K), or list of arrays
        Score of each state of each node; a list where nodes have different numbers of states.
    edges : array of int of shape (m, 2)
    pair : array of shape (K, K) or (m, K, K), or list of m arrays
        Score of the states at both ends: one table for all edges, or one per edge, its rows for the
        states of the edge's first node.  -inf forbids a pair, or (in ``unary``) a state.
    directed : bool, default=False
        The one table may be asymmetric, its rows being for the first node of each edge.
    oracle : str, default="auto"
        As in :class:`~structsolve.plugins.mrf.MRFStructure`.
    max_iter : int, default=100
        Iterations of "trws" at most.

    Returns
    -------
    Decoding

    Raises
    ------
    ValueError
        When scores, edges or the decoder do not fit each other.

    Examples
    --------
    >>> from structsolve.plugins.mrf import decode
    >>> unary, agree = [[0, 1], [0.5, 0], [0.2, 0]], [[1, 0], [0, 1]]
    >>> best = decode(unary, [[0, 1], [1, 2], [2, 0]], agree)
    >>> best.label.tolist(), best.value, best.bound
    ([1, 1, 1], 4.0, 4.0)
    """
    nodes = [_table(row, 1, f"unary of node {v}") for v, row in enumerate(unary)]
    if not nodes:
        raise ValueError("unary: found no nodes, expected at least one")
    states = np.array([len(row) for row in nodes], dtype=np.int32)
    ends = check_edges(edges, len(nodes), "edges")
    tables = _tables(pair, ends, states, directed)
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1:
        raise ValueError(f"max_iter is {max_iter!r}, expected an integer of at least 1")
    K = int(states.max())
    blocks = WeightLayout([Block("node", "node", (K,)), Block("pair", "edge", (K, K))], 1, 1)
    examples = Examples(
        np.array([0, len(nodes)], dtype=np.int64),
        edge_offsets=np.array([0, len(ends)], dtype=np.int64),
    )
    theta = np.zeros(blocks.theta_size(len(nodes), len(ends)))
    views = blocks.theta_views(theta, len(nodes), len(ends))
    for row, scores in zip(views["node"], nodes):
        row[: len(scores)] = scores
    for cell, table in zip(views["pair"], tables):
        cell[: table.shape[0], : table.shape[1]] = table
    layout = PartLayout(blocks, examples)
    shape = common_graphs(layout, ends, states, one_graph=True)
    return Decoding(*argmax(make_oracle(shape, oracle, int(max_iter), layout), 0, theta))


def _table(values: Any, ndim: int, where: str) -> np.ndarray:
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: found no array of numbers ({error})") from None
    if table.ndim != ndim or table.size == 0:
        raise ValueError(f"{where}: found shape {table.shape}, expected {ndim} dimension(s)")
    if not (table < np.inf).all():
        raise ValueError(f"{where}: found NaN or infinity, expected numbers, or -inf to forbid")
    return table


def _tables(pair: Any, ends: np.ndarray, states: np.ndarray, directed: bool) -> list[np.ndarray]:
    """Return a table per edge, of the right shapes."""
    if len(ends) == 0:
        return []
    shared = isinstance(pair, np.ndarray) and pair.ndim == 2
    if not shared and not isinstance(pair, np.ndarray):
        shared = len(pair) > 0 and np.ndim(pair[0]) == 1
    if shared:
        table = _table(pair, 2, "pair")
        if table.shape[0] != table.shape[1]:
            raise ValueError(f"pair: found shape {table.shape}, expected a square table")
        if not directed and not np.array_equal(table, table.T):
            s, t = np.argwhere(table != table.T)[0].tolist()
            raise ValueError(
                f"pair: the table of undirected edges is not symmetric: entry ({s}, {t}) is "
                f"{table[s, t]}, ({t}, {s}) is {table[t, s]}; give directed=True, or a "
                "table per edge"
            )
        if table.shape[0] < states.max():
            raise ValueError(
                f"pair: found shape {table.shape}, but node {int(states.argmax())} has "
                f"{states.max()} states"
            )
        return [table[: states[u], : states[v]] for u, v in ends]
    if len(pair) != len(ends):
        raise ValueError(f"pair: found {len(pair)} tables for {len(ends)} edges")
    tables = [_table(table, 2, f"pair of edge {e}") for e, table in enumerate(pair)]
    for e, (table, (u, v)) in enumerate(zip(tables, ends)):
        if table.shape != (states[u], states[v]):
            raise ValueError(
                f"pair of edge {e}: found shape {table.shape}, expected "
                f"{(int(states[u]), int(states[v]))} for nodes {u} and {v}"
            )
    return tables
