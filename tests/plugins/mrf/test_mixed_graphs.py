"""Easy graphs in a batch with a hard one are decoded as they are alone."""

import numpy as np

from structsolve.batch import Scores, argmax, score_space


def test_easy_graphs_beside_a_hard_one():
    space, rng = score_space("mrf:tables=features", 3), np.random.default_rng(0)
    graphs = [(n, np.argwhere(np.triu(np.ones((n, n)), 1))) for n in (5, 5, 5, 5, 5, 5)]
    graphs += [(4, np.array([[0, 1], [1, 2], [2, 3]]))]
    hard = 18, np.argwhere(np.triu(np.ones((18, 18)), 1))
    for _ in range(10):
        n, m = (sum(sizes) for sizes in zip(*((n, len(edges)) for n, edges in graphs)))
        node, pair = rng.normal(size=(n + 18, 3)), 2 * rng.normal(size=(m + 153, 3, 3))
        alone, mixed = (
            argmax(space, Scores(node[:rows], None, pair[:tables], examples=examples))
            for rows, tables, examples in (
                (n, m, _packed(space, graphs)),
                (None, None, _packed(space, [*graphs, hard])),
            )
        )
        np.testing.assert_array_equal(mixed[0][:n], alone[0])
        for mine, other in zip(mixed[1:], alone[1:]):
            np.testing.assert_array_equal(mine[: len(graphs)], other)


def _packed(space, graphs):
    return space.pack_sizes([n for n, _ in graphs], edges=[edges for _, edges in graphs])
