"""Draws of labels, in scaled form and with logarithms, against enumeration; sums alone."""

import itertools

import numpy as np
import pytest

from structsolve.batch import Scores, log_partition, marginals, samples, score_space


def _case(kind, rng):
    """Scores of chains of 3, 1 and 2 nodes with two or three states."""
    K = 9 if kind == "wide row" else 3
    chain = score_space("chain", K, edge=kind == "edges")
    node, table = rng.normal(size=(6, K)), rng.normal(size=(K, K))
    shared = {"transition": table, "start": rng.normal(size=K), "end": rng.normal(size=K)}
    edge = rng.normal(size=(3, K, K)) if kind == "edges" else None
    if kind == "forbidden":
        table[0, 1] = table[1, 2] = node[0, 2] = -np.inf
    elif kind == "far apart":  # no exponentials: beyond SPAN
        table[:] *= 300
        node[:, 1] += 200
    elif kind == "alone":
        shared = {}
    return chain, Scores(node, shared, edge, examples=chain.pack_sizes([3, 1, 2]))


def _score(scores, first, edge, label):
    zeros = np.zeros((9, 9))
    table = scores.shared.get("transition", zeros)
    total = sum(scores.node[first + v, s] for v, s in enumerate(label))
    for v, pair in enumerate(itertools.pairwise(label)):
        total += table[pair] + (0 if scores.edge is None else scores.edge[edge + v][pair])
    ends = scores.shared.get("start", zeros[0]), scores.shared.get("end", zeros[0])
    return total + ends[0][label[0]] + ends[1][label[-1]]


KINDS = ("plain", "wide row", "edges", "forbidden", "far apart", "alone")


@pytest.mark.parametrize("kind", KINDS)
def test_draws_and_sums_are_those_of_enumeration(kind):
    chain, scores = _case(kind, np.random.default_rng(4))
    n = 4000
    drawn = samples(chain, scores, n, random_state=1)
    assert drawn.tobytes() == samples(chain, scores, n, random_state=1, n_jobs=3).tobytes()
    alone, (_, beside) = log_partition(chain, scores), marginals(chain, scores)
    np.testing.assert_allclose(alone, beside, rtol=1e-12)
    for i, (first, edge, size) in enumerate([(0, 0, 3), (3, 2, 1), (4, 2, 2)]):
        labels = [*itertools.product(range(scores.node.shape[1]), repeat=size)]
        values = np.array([_score(scores, first, edge, label) for label in labels])
        top = values.max()
        assert alone[i] == pytest.approx(top + np.log(np.exp(values - top).sum()), rel=1e-12)
        likely = np.exp(values - alone[i])
        own = drawn[:, first : first + size]
        share = np.array([(own == label).all(1).mean() for label in labels])
        assert share.sum() == pytest.approx(1)
        assert not share[likely == 0].any()
        spread = 5 * np.sqrt(likely * (1 - likely) / n) + 1e-9
        assert (np.abs(share - likely) <= spread + 2 / n).all()


def test_draws_follow_one_stream():
    """Each example has its part of it, so equal examples have different draws."""
    chain = score_space("chain", 4)
    scores = Scores(np.zeros((60, 4)), examples=chain.pack_sizes([20, 20, 20]))
    drawn = samples(chain, scores, 2, random_state=0).reshape(2, 3, 20)
    assert len({row.tobytes() for row in drawn.reshape(6, 20)}) == 6
