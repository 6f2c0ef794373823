"""Best labelings of narrow graphs, exactly, by eliminating one node after the other."""

from __future__ import annotations

import math
from operator import itemgetter

import numpy as np

from structsolve.plugins.mrf._model import GraphModel

_MOST_AXES = 30  # of a NumPy array in any version, with one to spare


def eliminate(model: GraphModel, max_entries: int = 2**22) -> tuple[np.ndarray, float]:
    """Return the best labeling of a graph of small width.

    Nodes are maximised out one after the other (Bertele, Brioschi 1972): in the order given, or the
    one whose neighbours have the fewest labelings first, whichever is cheaper.  Time and
    memory grow with the largest table on the way: a grid of ``k`` columns needs about
    ``states ** (k + 1)`` entries, however long it is, a tree next to none.

    Parameters
    ----------
    model : GraphModel
        Any number of states.
    max_entries : int, default=2**22
        Largest table that is allowed.

    Returns
    -------
    label : ndarray of int of shape (n,)
        A best labeling.
    value : float
        Its score; -inf where everything is forbidden.

    Raises
    ------
    ValueError
        When a larger table is needed.

    Examples
    --------
    >>> from structsolve.plugins.mrf._model import GraphModel
    >>> from structsolve.plugins.mrf.elimination import eliminate
    >>> apart = [[0, 1], [1, 0]]
    >>> model = GraphModel([2] * 3, [[0, 1], [1, 2]], [[0, 0.5], [0, 0], [0, 0]], [apart] * 2)
    >>> label, value = eliminate(model)
    >>> label.tolist(), value
    ([1, 0, 1], 2.5)
    """
    states = model.states.tolist()
    n = len(states)
    near: list[set[int]] = [set() for _ in range(n)]
    tables: list[list[tuple[tuple[int, ...], np.ndarray]]] = [[] for _ in range(n)]
    for (u, v), start in zip(model.ends.tolist(), model.pair_at):
        near[u].add(v)
        near[v].add(u)
        table = model.pair[start : start + states[u] * states[v]].reshape(states[u], states[v])
        tables[u].append(((u, v), table))
        tables[v].append(tables[u][-1])
    orders = (_order(states, near, greedy) for greedy in (True, False))
    order, largest = min(orders, key=itemgetter(1))
    if largest > max_entries:
        raise ValueError(
            f"model: found a graph that needs a table of {largest:.3g} entries, expected at most "
            f"max_entries={max_entries}; use branch_and_bound"
        )
    choices = []
    for v, others in order:
        best, choice = _maximise(model, v, others, tables[v], states)
        choices.append((v, others, choice))
        for w in others:
            tables[w] = [entry for entry in tables[w] if v not in entry[0]]
            tables[w].append((others, best))
    label = np.zeros(n, dtype=np.intc)
    for v, others, choice in reversed(choices):
        entry = 0
        for w in others:
            entry = entry * states[w] + int(label[w])
        label[v] = choice[entry // 8] >> (7 - entry % 8) & 1 if states[v] == 2 else choice[entry]
    return label, float(model.score(label))


def _order(
    states: list[int], near: list[set[int]], greedy: bool
) -> tuple[list[tuple[int, tuple[int, ...]]], float]:
    """Each node with its neighbours when it is eliminated, and the size of the largest table."""
    near = [set(others) for others in near]
    weight = [math.prod(states[w] for w in others) for others in near]
    left = set(range(len(states)))
    order = []
    largest = 1.0
    while left:
        v = min(left, key=lambda v: (weight[v], v)) if greedy else min(left)
        left.remove(v)
        others = tuple(sorted(near[v]))
        order.append((v, others))
        largest = max(largest, weight[v] * states[v])
        if len(others) >= _MOST_AXES:
            return order, math.inf
        for w in others:
            near[w] |= near[v] - {w}
            near[w].discard(v)
        for w in others:
            weight[w] = math.prod(states[x] for x in near[w])
    return order, largest


def _maximise(
    model: GraphModel,
    v: int,
    others: tuple[int, ...],
    tables: list[tuple[tuple[int, ...], np.ndarray]],
    states: list[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Table of the neighbours without v, and the best state of v (bits where there are two)."""
    order = (v, *others)
    total = np.zeros([states[w] for w in order])
    total += model.unary[model.unary_at[v] : model.unary_at[v + 1]].reshape(-1, *[1] * len(others))
    for scope, table in tables:
        place = {w: axis for axis, w in enumerate(scope)}
        axes = [place[w] for w in order if w in place]
        shape = [states[w] if w in place else 1 for w in order]
        total += table.transpose(axes).reshape(shape)
    best = total[0]
    if states[v] == 2:
        return np.maximum(best, total[1]), np.packbits(total[1] > best)
    choice = np.zeros(best.shape, dtype=np.int32)
    for s in range(1, states[v]):
        choice[total[s] > best] = s
        best = np.maximum(best, total[s])
    return best, choice.ravel()
