"""Labelings of graphs by enumeration, and the local polytope as a linear program."""

import itertools

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from structsolve.plugins.mrf.elimination._elimination import best_labelings
from structsolve.plugins.mrf.exact._search import ExactSearch
from structsolve.plugins.mrf.tables._model import GraphModel

KINDS = ["normal", "ties", "tenths", "huge", "zeros", "mixed", "forbidden", "frustrated"]
NONE = -np.inf


def random_model(rng, most_nodes, most_states, kind):
    """A random graph, with edges in any direction and order."""
    n = int(rng.integers(1, most_nodes + 1))
    least = 1 if rng.random() < 0.3 else most_states
    states = rng.integers(least, most_states + 1, n)
    pairs = list(itertools.combinations(range(n), 2))
    rng.shuffle(pairs)
    if kind != "frustrated":
        pairs = pairs[: int(rng.integers(0, len(pairs) + 1))]
    ends = [pair[:: (1, -1)[rng.integers(2)]] for pair in pairs]
    unary = [scores(rng, kind, (k,)) * (0.2 if kind == "frustrated" else 1) for k in states]
    return GraphModel(states, ends, unary, [scores(rng, kind, states[list(uv)]) for uv in ends])


def scores(rng, kind, shape):
    if kind == "ties":
        return rng.integers(-2, 3, shape) * 1.0
    if kind == "tenths":  # sums of them are equal but for rounding
        return rng.integers(-9, 10, shape) / 10
    if kind == "huge":
        return rng.normal(size=shape) * 10.0 ** rng.integers(-3, 7)
    if kind == "mixed":
        return rng.normal(size=shape) * 10.0 ** rng.integers(-3, 7, shape)
    if kind == "zeros":
        return rng.integers(-1, 2, shape) * (rng.random(shape) < 0.3)
    if kind == "forbidden":
        return np.where(rng.random(shape) < 0.25, NONE, rng.integers(-3, 4, shape))
    return rng.normal(size=shape)


def size(model):
    """Return the largest finite score or 1, the scale of differences."""
    values = np.abs(np.concatenate([model.unary, model.pair]))
    return 1 + values[np.isfinite(values)].max(initial=0)


def tables(model):
    """Return scores of every node, and of every edge as a matrix."""
    shapes = model.states[model.ends]
    return (
        np.split(model.unary, model.unary_at[1:-1]),
        [
            model.pair[a:b].reshape(shape)
            for a, b, shape in zip(model.pair_at, model.pair_at[1:], shapes)
        ],
    )


def enumerate_labels(model):
    """All labelings and their scores."""
    labels = np.indices(model.states).reshape(len(model.states), -1).T
    return labels, scores_of(model, labels)


def scores_of(model, labels):
    """Return scores of labelings, one per row."""
    unary, pair = tables(model)
    total = sum(row[labels[:, v]] for v, row in enumerate(unary))
    for (u, v), table in zip(model.ends, pair):
        total = total + table[labels[:, u], labels[:, v]]
    return total


def relaxation(model):
    """Return the maximum over the local polytope, by HiGHS; -inf if it is empty."""
    n, n_unary = len(model.states), len(model.unary)
    scores = np.concatenate([model.unary, model.pair])
    never = np.isneginf(scores)
    # A node's marginals sum to 1; an edge's sum to those of its ends, which are subtracted.
    plus, minus = [(np.repeat(np.arange(n), model.states), np.arange(n_unary))], []
    used = n
    for (u, v), first_pair in zip(model.ends.tolist(), model.pair_at.tolist()):
        first, second = model.states[u], model.states[v]
        index = np.arange(first * second)
        for own, node, count in ((index // second, u, first), (index % second, v, second)):
            plus.append((used + own, n_unary + first_pair + index))
            minus.append((used + np.arange(count), model.unary_at[node] + np.arange(count)))
            used += count
    rows, columns = (np.concatenate(part) for part in zip(*plus, *minus))
    values = np.ones(len(rows))
    values[sum(len(part) for part, _ in plus) :] = -1
    # SciPy before 1.15 takes indices of 32 bits only.
    places = rows.astype(np.int32), columns.astype(np.int32)
    A = sparse.csc_array((values, places), shape=(used, len(scores)))
    right = (np.arange(used) < n).astype(float)
    answer = milp(
        -np.where(never, 0, scores),
        constraints=LinearConstraint(A, right, right),
        bounds=Bounds(0, np.where(never, 0.0, 1.0)),
    )
    assert answer.status in (0, 2), answer
    return NONE if answer.status == 2 else -answer.fun


def half_integral_score(model, state, pairing=None):
    """Return the score of a half-integral point; edges between half nodes as given, or the best."""
    counts, state = model.states.tolist(), np.asarray(state).tolist()
    unary, pair = model.unary.tolist(), model.pair.tolist()
    half = [k == 2 and s == 2 for k, s in zip(counts, state)]
    total = 0.0
    for start, s, between in zip(model.unary_at.tolist(), state, half):
        total += (unary[start] + unary[start + 1]) / 2 if between else unary[start + s]
    for e, ((u, v), start) in enumerate(zip(model.ends.tolist(), model.pair_at.tolist())):
        k = counts[v]
        if half[u] and half[v]:
            equal, other = (
                (pair[start] + pair[start + 3]) / 2,
                (pair[start + 1] + pair[start + 2]) / 2,
            )
            total += max(equal, other) if pairing is None else (equal, other)[pairing[e]]
        elif half[u]:
            total += (pair[start + state[v]] + pair[start + k + state[v]]) / 2
        elif half[v]:
            total += (pair[start + k * state[u]] + pair[start + k * state[u] + 1]) / 2
        else:
            total += pair[start + k * state[u] + state[v]]
    return total


def half_integral_scores(model, states):
    """The same for points in rows, with the best edges."""
    unary, pair = tables(model)
    with_half = [np.append(row, row.mean()) if len(row) == 2 else row for row in unary]
    total = sum(row[states[:, v]] for v, row in enumerate(with_half))
    for (u, v), table in zip(model.ends, pair):
        full = table
        if table.shape[0] == 2:
            full = np.vstack([full, full.mean(axis=0)])
        if table.shape[1] == 2:
            full = np.column_stack([full, full.mean(axis=1)])
        if table.shape == (2, 2):
            equal, other = (table[0, 0] + table[1, 1]) / 2, (table[0, 1] + table[1, 0]) / 2
            full[2, 2] = max(equal, other)
        total = total + full[states[:, u], states[:, v]]
    return total


def fewest_halves(model, value, close):
    """Return the minimum number of half nodes in a half-integral optimum."""
    choices = [3 if k == 2 else 1 for k in model.states]
    states = np.indices(choices).reshape(len(choices), -1).T
    best = half_integral_scores(model, states) >= value - close
    return (states[best] == 2).sum(axis=1).min()


def eliminate(model):
    """The best labeling and its score, by elimination."""
    labels, values = best_labelings(model, most_table=2.0**22, most_entries=np.inf)
    return labels[0], float(values[0])


def exact_search(model, steps=2.0**40):
    """The best labeling, or a good one and a bound if the search gives up; whether it is proven."""
    search = ExactSearch(model)
    proven = search.advance(0) or search.advance(steps)
    return search.label, search.value, search.bound, proven
