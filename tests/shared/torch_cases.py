"""Padded batches of random scores as tensors, and the score of any label, explicit in torch."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pytest

from structsolve import get_structure
from structsolve.batch import score_space
from structsolve.plugins.dependency.space import all_trees

torch = pytest.importorskip("torch", reason="torch is not installed (extra [torch])")


def hamming(a, b):
    return float(np.sum(np.not_equal(a, b)))


@dataclass
class Case:
    """A batch: its scores require gradients; ``score(i, y)`` is that of a label of example i."""

    structure: Any
    scores: dict[str, torch.Tensor]
    labels: torch.Tensor
    score: Any
    every: list[list[tuple[int, ...]]]
    truths: list[tuple[int, ...]]
    given: dict[str, Any] = field(default_factory=dict)
    loss: Any = hamming


def tensor(rng, *shape):
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def pick(rng, every, shape):
    """Return random truths, and the same in a padded tensor with -100 where there is no label."""
    truths = [one[rng.integers(len(one))] for one in every]
    labels = torch.full(shape, -100)
    for i, truth in enumerate(truths):
        labels[i].view(-1)[: len(truth)] = torch.tensor(truth)
    return labels, truths


def product(sizes):
    return list(itertools.product(*map(range, sizes)))


def chain(rng, n=3, K=3, longest=3):
    lengths = rng.integers(1, longest + 1, n)
    scores = {
        "node": tensor(rng, n, longest, K),
        "transition": tensor(rng, K, K),
        "start": tensor(rng, K),
        "end": tensor(rng, K),
        "edge": tensor(rng, n, longest - 1, K, K),
    }

    def score(i, y):
        s = scores["start"][y[0]] + scores["end"][y[-1]]
        s = s + sum(scores["node"][i, t, k] for t, k in enumerate(y))
        for t, (a, b) in enumerate(itertools.pairwise(y)):
            s = s + scores["transition"][a, b] + scores["edge"][i, t, a, b]
        return s

    every = [product([K] * length) for length in lengths]
    given = {"lengths": torch.tensor(lengths)}
    return Case("chain", scores, *_swap(pick(rng, every, (n, longest)), score, every), given)


def tree(rng, n=3, K=2, longest=4):
    lengths = rng.integers(1, longest + 1, n)
    parents = [[int(rng.integers(-1, v)) if v else -1 for v in range(size)] for size in lengths]
    scores = {
        "node": tensor(rng, n, longest, K),
        "transition": tensor(rng, K, K),
        "root": tensor(rng, K),
    }

    def score(i, y):
        s = sum(scores["node"][i, t, k] for t, k in enumerate(y))
        for v, p in enumerate(parents[i]):
            s = s + (scores["root"][y[v]] if p < 0 else scores["transition"][y[p], y[v]])
        return s

    every = [product([K] * length) for length in lengths]
    given = {"lengths": lengths, "trees": parents}
    return Case("tree", scores, *_swap(pick(rng, every, (n, longest)), score, every), given)


def segments(rng, n=3, K=2, longest=3):
    lengths = rng.integers(1, longest + 1, n)
    shapes = {"transition": (K, K), "start": (K,), "end": (K,), "length": (2, K)}
    scores = {"node": tensor(rng, n, longest, 3, K)}
    scores |= {name: tensor(rng, *shape) for name, shape in shapes.items()}
    structure = get_structure("semi-markov", max_length=2)

    def score(i, y):
        begins = [v for v, state in enumerate(y) if state < K]
        s = scores["start"][y[0]] + scores["end"][y[begins[-1]]]
        s = s + sum(scores["node"][i, v, 0, state % K] for v, state in enumerate(y))
        for a, b in zip(begins, [*begins[1:], len(y)]):
            s = s + scores["node"][i, a, 1, y[a]] + scores["node"][i, b - 1, 2, y[a]]
            s = s + scores["length"][b - a - 1, y[a]]
        for a, b in itertools.pairwise(begins):
            s = s + scores["transition"][y[a], y[b]]
        return s

    space = structure.score_space(K)
    sizes = space.pack_sizes(lengths)
    every = [list(map(tuple, space.enumerate_labels(sizes, i).tolist())) for i in range(n)]
    given = {"lengths": torch.tensor(lengths)}
    cases = _swap(pick(rng, every, (n, longest)), score, every)
    return Case(structure, scores, *cases, given, lambda a, b: hamming(*np.mod([a, b], K)))


def alignments(rng, n=3, kind="edit"):
    sizes = rng.integers(1, 4, (n, 2))
    scores = {"node": tensor(rng, n, *sizes.max(axis=0)), "gap": tensor(rng, 2)}

    def score(i, y):
        pairs = [(v, j - 1) for v, j in enumerate(y) if j]
        alone = len(y) - len(pairs), int(sizes[i, 1]) - len(pairs)
        s = scores["gap"][0] * alone[0] + scores["gap"][1] * alone[1]
        return s + sum(scores["node"][i, v, j] for v, j in pairs)

    structure = get_structure("alignment")
    space = structure.score_space()
    packed = space.pack_sizes(sizes)
    every = [list(map(tuple, space.enumerate_labels(packed, i).tolist())) for i in range(n)]
    longest = int(sizes[:, 0].max())
    given = {"lengths": sizes}
    return Case(structure, scores, *_swap(pick(rng, every, (n, longest)), score, every), given)


def dependency(rng, n=3, longest=4, projective=False):
    lengths = rng.integers(1, longest + 1, n)
    scores = {"node": tensor(rng, n, longest + 1, longest)}

    def score(i, y):
        return sum(scores["node"][i, head, m] for m, head in enumerate(y))

    every = [list(map(tuple, all_trees(int(size), projective, True))) for size in lengths]
    structure = get_structure("dependency", projective=projective)
    given = {"lengths": lengths.tolist()}
    return Case(structure, scores, *_swap(pick(rng, every, (n, longest)), score, every), given)


def projective(rng, n=3):
    return dependency(rng, n, projective=True)


def labelled(rng, n=3, K=2, longest=3):
    lengths = rng.integers(1, longest + 1, n)
    scores = {"node": tensor(rng, n, longest + 1, longest, K)}

    def score(i, y):
        return sum(scores["node"][i, label // K, m, label % K] for m, label in enumerate(y))

    space = score_space("dependency:labelled=true", K)
    examples = space.pack_sizes(lengths)
    every = [list(map(tuple, space.enumerate_labels(examples, i).tolist())) for i in range(n)]
    given = {"lengths": lengths.tolist()}
    picked = _swap(pick(rng, every, (n, longest)), score, every)
    return Case("dependency:labelled=true", scores, *picked, given)


def grammar(rng, n=3, K=2, longest=3):
    lengths = rng.integers(1, longest + 1, n)
    lengths[0] = longest
    scores = {"node": tensor(rng, n, longest, longest, K), "rule": tensor(rng, K, K, K)}
    space = score_space("cky:grammar=true", K)
    examples = space.pack_sizes(lengths)

    def score(i, y):
        spans = space.spans(np.array([k for k in y if k >= 0]))
        total = sum(scores["node"][i, a, b - 1, c] for a, b, c in spans)
        for p, (a, b, c) in enumerate(spans):
            if b > a + 1:
                right = p + 2 * (spans[p + 1][1] - a)
                total = total + scores["rule"][c, spans[p + 1][2], spans[right][2]]
        return total

    every = [list(map(tuple, space.enumerate_labels(examples, i).tolist())) for i in range(n)]
    picked = _swap(pick(rng, every, (n, 2 * longest - 1)), score, every)
    given = {"lengths": lengths.tolist()}
    # Spans of a tree that the other has not.
    return Case("cky:grammar=true", scores, *picked, given, lambda a, b: len({*a} - {*b}))


def multiclass(rng, n=4, K=3):
    scores = {"node": tensor(rng, n, K)}
    every = [product([K])] * n
    labels, truths = pick(rng, every, (n, 1))

    def score(i, y):
        return scores["node"][i, y[0]]

    return Case("multiclass", scores, labels[:, 0], score, every, truths)


def multilabel(rng, n=3, L=3):
    edges = [[0, 1], [1, 2]]
    scores = {"node": tensor(rng, n, L), "pair": tensor(rng, 2, 2, 2)}

    def score(i, y):
        s = sum(scores["node"][i, v] for v in range(L) if y[v])
        return s + sum(scores["pair"][e, y[a], y[b]] for e, (a, b) in enumerate(edges))

    every = [product([2] * L)] * n
    structure = get_structure("multilabel", edges=edges)
    return Case(structure, scores, *_swap(pick(rng, every, (n, L)), score, every))


def mrf(rng, n=3, K=2, longest=3):
    sizes = rng.integers(1, longest + 1, n)
    edges = [[[int(rng.integers(v)), v] for v in range(1, size)] for size in sizes]
    scores = {"node": tensor(rng, n, longest, K), "pair": tensor(rng, n, longest - 1, K, K)}

    def score(i, y):
        s = sum(scores["node"][i, v, k] for v, k in enumerate(y))
        return s + sum(scores["pair"][i, e, y[a], y[b]] for e, (a, b) in enumerate(edges[i]))

    every = [product([K] * size) for size in sizes]
    structure = get_structure("mrf", tables="features", directed=True)
    given = {"lengths": sizes, "edges": edges}
    return Case(structure, scores, *_swap(pick(rng, every, (n, longest)), score, every), given)


def grid(rng, n=3, K=2, side=2):
    """Pictures of several sizes in one padded tensor."""
    sizes = rng.integers(1, side + 1, (n, 2))
    sizes[0] = side, side
    scores = {"node": tensor(rng, n, side, side, K), "pair": tensor(rng, K, K)}
    places = [[(r, c) for r in range(h) for c in range(w)] for h, w in sizes]

    def pair(a, b):
        return scores["pair"][min(a, b), max(a, b)]

    def score(i, y):
        labels = dict(zip(places[i], y))
        s = sum(scores["node"][i, r, c, k] for (r, c), k in labels.items())
        for (r, c), k in labels.items():
            s = s + sum(
                pair(k, labels[near]) for near in ((r, c + 1), (r + 1, c)) if near in labels
            )
        return s

    every = [product([K] * len(place)) for place in places]
    truths = [one[rng.integers(len(one))] for one in every]
    labels = torch.full((n, side, side), -100)
    for i, truth in enumerate(truths):
        for (r, c), k in zip(places[i], truth):
            labels[i, r, c] = k
    return Case("grid", scores, labels, score, every, truths, {"lengths": sizes})


def matching(rng, n=3, most=3):
    rows = rng.integers(1, most + 1, n)
    columns = np.minimum(rows + rng.integers(0, 2, n), most)
    scores = {"node": tensor(rng, n, most, most)}

    def score(i, y):
        return sum(scores["node"][i, a, b] for a, b in enumerate(y))

    every = [
        list(itertools.permutations(range(c), r)) for r, c in zip(rows.tolist(), columns.tolist())
    ]
    structure = get_structure("permutation", kind="matching")
    given = {"lengths": np.column_stack([rows, columns])}
    return Case(structure, scores, *_swap(pick(rng, every, (n, most)), score, every), given)


def ranking(rng, n=2, K=3):
    scores = {"node": tensor(rng, n, K, K)}

    def score(i, y):
        return sum(scores["node"][i, k, rank] for k, rank in enumerate(y))

    every = [list(itertools.permutations(range(K)))] * n
    return Case("permutation", scores, *_swap(pick(rng, every, (n, K)), score, every))


def closed(rng, n=3):
    """Sets under a hierarchy in which b and c lie below a."""
    scores = {"node": tensor(rng, n, 3)}

    def score(i, y):
        return torch.stack([scores["node"][i, v] * y[v] for v in range(3)]).sum()

    every = [[y for y in product([2] * 3) if y[0] or not (y[1] or y[2])]] * n
    structure = get_structure("dag", hierarchy={"a": ["b", "c"]})
    return Case(structure, scores, *_swap(pick(rng, every, (n, 3)), score, every))


def thresholds(rng, n=4, K=3):
    scores = {"node": tensor(rng, n, 1), "threshold": tensor(rng, K - 1)}

    def score(i, y):
        return y[0] * scores["node"][i, 0] - scores["threshold"][: y[0]].sum()

    every = [product([K])] * n
    labels, truths = pick(rng, every, (n, 1))
    structure = get_structure("ordinal", thresholds=True, classes=range(K))
    return Case(structure, scores, labels[:, 0], score, every, truths)


def flow(rng, n=3):
    """The three paths from s to t over a and b."""
    graph = nx.DiGraph([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")])
    nx.set_node_attributes(graph, {"s": -1, "t": 1}, "demand")
    structure = get_structure("flow", network=graph)
    arcs = list(graph.edges)
    scores = {"node": tensor(rng, n, 5)}

    def score(i, y):
        return torch.stack([scores["node"][i, e] * y[e] for e in range(5)]).sum()

    paths = [[("s", "a"), ("a", "t")], [("s", "b"), ("b", "t")]]
    paths.append([("s", "a"), ("a", "b"), ("b", "t")])
    every = [[tuple(int(arc in path) for arc in arcs) for path in paths]] * n
    return Case(structure, scores, *_swap(pick(rng, every, (n, 5)), score, every))


def _swap(picked, score, every):
    labels, truths = picked
    return labels, score, every, truths


#: Structures with probabilities of labels, and those without.
WITH = (
    chain,
    segments,
    alignments,
    tree,
    dependency,
    projective,
    labelled,
    grammar,
    mrf,
    grid,
    multiclass,
    multilabel,
    closed,
    thresholds,
)
GIBBS = {make.__name__: make for make in WITH}
CASES = GIBBS | {make.__name__: make for make in (matching, ranking, flow)}


def crf(case, i):
    every = torch.stack([torch.as_tensor(case.score(i, y)) for y in case.every[i]])
    return torch.logsumexp(every, 0) - case.score(i, case.truths[i])


def margin(case, i):
    every = [case.score(i, y) + case.loss(y, case.truths[i]) for y in case.every[i]]
    return torch.stack(every).max() - case.score(i, case.truths[i])
