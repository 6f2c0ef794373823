"""The scores of one graph, checked and converted to flat arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structsolve.plugins.mrf.tables.graphs import check_edges
from structsolve.utils.arrays import real_array
from structsolve.utils.memory import refuse_too_large

# Array that may exceed the memory, and advice for the message.
TABLES = (
    "a table for each edge",
    "give a smaller graph or fewer states; 'trws' takes one table with weights, where all nodes "
    "have the same number of states",
)

# Sums of scores stay below this, and three times their size is still finite.
MOST = float(np.finfo(np.float64).max) / 4


class GraphScores(NamedTuple):
    """Scores of the states of nodes and of pairs of states of edges.

    Parameters
    ----------
    states : ndarray of int32 of shape (n,)
        Number of states of each node.
    ends : ndarray of int32 of shape (m, 2)
    unary : ndarray of float64 of shape (sum of states,)
    pair : ndarray of float64
        The table of shape (K, K) that all edges share, or their tables in one dimension, one
        after the other.
    weights : ndarray of float64 of shape (m,) or None
        Factors of the one table.
    """

    states: np.ndarray
    ends: np.ndarray
    unary: np.ndarray
    pair: np.ndarray
    weights: np.ndarray | None

    @property
    def shared(self) -> bool:
        """All edges have one table."""
        return self.pair.ndim == 2

    def tables(self) -> np.ndarray:
        """Return the tables of all edges, one after the other, with their weights.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            If they exceed the memory.
        """
        if not self.shared:
            return self.pair
        refuse_too_large(8.0 * len(self.ends) * self.pair.size, *TABLES)
        weights = np.ones(len(self.ends)) if self.weights is None else self.weights
        return (weights[:, None] * self.pair.ravel()).ravel()

    def finite(self) -> GraphScores:
        """Return scores with -inf replaced by less than any allowed labeling can lose.

        Returns
        -------
        GraphScores
        """
        if np.isfinite(self.unary).all() and np.isfinite(self.pair).all():
            return self
        floor = -3 * self.magnitude() or -1.0
        least = 1.0 if self.weights is None else float(self.weights.min(initial=1))
        return self._replace(
            unary=np.maximum(self.unary, floor), pair=np.maximum(self.pair, floor / min(least, 1))
        )

    def magnitude(self) -> float:
        """Return a bound of the magnitudes of labelings' finite scores.

        Returns
        -------
        float
        """
        nodes, pairs = largest(self.unary), largest(self.pair)
        if self.weights is not None:
            pairs *= float(max(self.weights.max(initial=0), -self.weights.min(initial=0)))
        return len(self.states) * nodes + len(self.ends) * pairs


def largest(x: np.ndarray) -> float:
    """Return the largest magnitude of scores that are not -inf.

    Parameters
    ----------
    x : ndarray

    Returns
    -------
    float
    """
    least = x.min(initial=0)
    least = least if least > -np.inf else x.min(initial=0, where=x > -np.inf)
    return float(max(x.max(initial=0), -least))


def graph_scores(
    unary: Any, edges: Any, pair: Any, directed: bool = False, weights: Any = None
) -> GraphScores:
    """Return checked scores.

    Parameters
    ----------
    unary, edges, pair, directed, weights
        See :func:`~structsolve.plugins.mrf.decode`.

    Returns
    -------
    GraphScores

    Raises
    ------
    ValueError
        If they do not match or exceed the memory, or if their sums may overflow.
    """
    # Data frames iterate over their columns.
    unary, pair = (x.to_numpy() if hasattr(x, "columns") else x for x in (unary, pair))
    scores = _read(unary, edges, pair, directed, weights)
    if not scores.magnitude() < MOST:
        raise ValueError(
            f"unary, pair, weights: scores of labelings may reach {scores.magnitude():.3g}, "
            f"expected less than {MOST:g}; divide them all by one number"
        )
    return scores


def _read(unary: Any, edges: Any, pair: Any, directed: bool, weights: Any) -> GraphScores:
    states, flat = _nodes(unary)
    ends = check_edges(edges, len(states), "edges", parallel=True)
    shared = len(ends) > 0 and _is_table(pair)
    factors = _weights(weights, len(ends), shared)
    if not shared:
        return GraphScores(states, ends, flat, _tables(pair, ends, states), None)
    table = _shared(pair, states, directed)
    if factors is not None and not np.isfinite(table).all() and not factors.min() > 0:
        e = int((~(factors > 0)).argmax())
        raise ValueError(
            f"weights of edge {e}: found {factors[e]}, expected more than 0 where the table "
            "forbids pairs with -inf"
        )
    width = len(table)
    if len(flat) == len(states) * width:  # no node has more states than the table
        return GraphScores(states, ends, flat, table, factors)
    # Nodes with fewer states need parts of the table.
    if factors is None:
        factors = np.ones(len(ends))
    refuse_too_large(8.0 * len(ends) * table.size, *TABLES)
    parts = [x * table[: states[u], : states[v]].ravel() for x, (u, v) in zip(factors, ends)]
    return GraphScores(states, ends, flat, np.concatenate(parts), None)


def _nodes(unary: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(unary, np.ndarray) and unary.ndim == 2 and unary.size and unary.dtype != object:
        table = _table(unary, 2, "unary") if unary.dtype.kind not in "biuf" else unary
        table = np.ascontiguousarray(table, dtype=np.float64)
        _check_finite(table, "unary of node")
        states = np.empty(len(table), dtype=np.int32)
        states.fill(table.shape[1])
        return states, _fixed(table)
    nodes = _each(unary, 1, "unary of node")
    if not nodes:
        raise ValueError("unary: found no nodes, expected at least one")
    return np.array([len(row) for row in nodes], dtype=np.int32), _joined(nodes, "unary of node")


def _fixed(table: np.ndarray) -> np.ndarray:
    """Return a flat read-only view, which models need not copy."""
    flat = table.reshape(-1)
    flat.flags.writeable = False
    return flat


def _weights(weights: Any, m: int, shared: bool) -> np.ndarray | None:
    if weights is None:
        return None
    factors = real_array(weights, "weights")
    if factors.shape != (m,):
        raise ValueError(f"weights: found shape {factors.shape}, expected ({m},), one per edge")
    if m and not shared:
        raise ValueError("weights: found a table per edge, expected one table for all edges")
    finite = np.isfinite(factors)
    if not finite.all():
        e = int(finite.argmin())
        raise ValueError(f"weights of edge {e}: found {factors[e]}, expected a finite number")
    return factors if m else None


def _check_finite(table: np.ndarray, where: str) -> None:
    # All rows of an array whose rows are numbered in messages.  The largest of NaN is NaN.
    if not table.max(initial=-np.inf) < np.inf:
        wrong = ~(table < np.inf).reshape(len(table), -1).all(axis=1)
        raise ValueError(
            f"{where} {int(wrong.argmax())}: found NaN or infinity, expected numbers, or -inf to "
            "forbid"
        )


def _table(values: Any, ndim: int, where: str, number: int | None = None) -> np.ndarray:
    """Return an array of numbers; those that have a number are checked by :func:`_joined`."""
    table = real_array(values, where if number is None else f"{where} {number}")
    if table.ndim != ndim or table.size == 0:
        where = where if number is None else f"{where} {number}"
        wanted = f"{ndim} dimension(s)" if table.ndim != ndim else "a score of at least one state"
        raise ValueError(f"{where}: found shape {table.shape}, expected {wanted}")
    if number is None and not (table < np.inf).all():
        raise ValueError(f"{where}: found NaN or infinity, expected numbers, or -inf to forbid")
    return table


def _each(rows: Any, ndim: int, where: str) -> list[np.ndarray]:
    """Return an array of numbers for each row; most are arrays already."""
    return [
        row
        if type(row) is np.ndarray and row.dtype.char == "d" and row.ndim == ndim and row.size
        else _table(row, ndim, where, i)
        for i, row in enumerate(rows)
    ]


def _joined(tables: list[np.ndarray], where: str) -> np.ndarray:
    """Return all entries, one table after the other; refuse infinity."""
    flat = np.concatenate([table.ravel() for table in tables])
    if not flat.max() < np.inf:
        for i, table in enumerate(tables):
            _table(table, table.ndim, f"{where} {i}")
    return flat


def _is_table(pair: Any) -> bool:
    """Return whether all edges share one table."""
    if isinstance(pair, np.ndarray):
        return pair.ndim == 2
    return len(pair) > 0 and np.ndim(pair[0]) == 1


def _shared(pair: Any, states: np.ndarray, directed: bool) -> np.ndarray:
    table = _table(pair, 2, "pair")
    if table.shape[0] != table.shape[1]:
        raise ValueError(f"pair: found shape {table.shape}, expected a square table")
    if not directed and not (table == table.T).all():
        s, t = np.argwhere(table != table.T)[0].tolist()
        raise ValueError(
            f"pair: the table of undirected edges is not symmetric: entry ({s}, {t}) is "
            f"{table[s, t]}, ({t}, {s}) is {table[t, s]}; give directed=True, or a "
            "table per edge"
        )
    K = int(states.max())
    if table.shape[0] < K:
        raise ValueError(
            f"pair: found shape {table.shape}, but node {int(states.argmax())} has {K} states"
        )
    return np.ascontiguousarray(table[:K, :K])


def _tables(pair: Any, ends: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the tables of all edges, one after the other."""
    if len(ends) == 0:
        return np.zeros(0)
    if len(pair) != len(ends):
        raise ValueError(f"pair: found {len(pair)} tables for {len(ends)} edges")
    whole = (len(ends), int(states[0]), int(states[0]))
    numbers = isinstance(pair, np.ndarray) and pair.dtype.kind in "biuf"
    if numbers and pair.shape == whole and (states == states[0]).all():
        tables = np.ascontiguousarray(pair, dtype=np.float64)
        _check_finite(tables, "pair of edge")
        return _fixed(tables)
    rows, shapes = _each(pair, 2, "pair of edge"), list(map(tuple, states[ends].tolist()))
    if [table.shape for table in rows] != shapes:
        e = next(e for e, shape in enumerate(shapes) if rows[e].shape != shape)
        u, v = ends[e].tolist()
        raise ValueError(
            f"pair of edge {e}: found shape {rows[e].shape}, expected {shapes[e]} for nodes "
            f"{u} and {v}"
        )
    return _joined(rows, "pair of edge")
