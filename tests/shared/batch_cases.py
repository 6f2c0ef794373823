"""Batches of random scores and labels, of every structure that has spaces without features."""

from __future__ import annotations

import networkx as nx
import numpy as np

from structsolve import get_structure
from structsolve.batch import Scores, score_space

#: Surrogates of structures with marginals.
SURROGATES = ["margin", "slack", "crf", "sparsemap", "probloss", "unit-margin", "max-min"]


def _chain(rng, n, edge=False):
    space = score_space(get_structure("chain", start_end=bool(rng.integers(2))), 3, edge=edge)
    return space, space.pack_sizes(rng.integers(1, 5, n))


def _tree(rng, n, edge=False):
    space, sizes = score_space("tree", 3, edge=edge), rng.integers(1, 5, n)
    trees = [[int(rng.integers(-1, v)) if v else -1 for v in range(size)] for size in sizes]
    return space, space.pack_sizes(sizes, trees=trees)


def _rows(name, classes, **params):
    def make(rng, n):
        space = score_space(get_structure(name, **params), classes)
        return space, space.pack_sizes(n)

    return make


def _dependency(projective, relations=None):
    def make(rng, n):
        labelled = relations is not None
        structure = get_structure("dependency", projective=projective, labelled=labelled)
        space = score_space(structure, relations)
        return space, space.pack_sizes(rng.integers(1, 4, n))

    return make


def _cky(grammar):
    def make(rng, n):
        space = score_space(get_structure("cky", grammar=grammar), 2)
        return space, space.pack_sizes(rng.integers(1, 4, n))

    return make


def _segments(rng, n):
    structure = get_structure("semi-markov", max_length=int(rng.integers(1, 4)), outside=0)
    space = score_space(structure, 3)
    return space, space.pack_sizes(rng.integers(1, 5, n))


def _alignments(rng, n):
    space = score_space(get_structure("alignment", kind=str(rng.choice(["edit", "many-to-one"]))))
    others = rng.integers(1, 4, n)
    return space, space.pack_sizes(np.column_stack([others + rng.integers(0, 2, n), others]))


def _mrf(rng, n, edge=False, forest=True):
    structure = get_structure("mrf", tables="features" if edge else "shared", directed=edge)
    space, sizes = score_space(structure, 2, edge=edge), rng.integers(1, 5, n)
    edges = []
    for size in sizes:
        pairs = np.argwhere(np.triu(rng.random((size, size)) < 0.7, 1))
        if forest:
            pairs = np.array([[int(rng.integers(v)), v] for v in range(1, size)])
        edges.append(pairs.reshape(-1, 2))
    return space, space.pack_sizes(sizes, edges=edges)


def _one_graph(rng, n):
    structure = get_structure("mrf", edges=[[0, 1], [1, 2]], tables="per-edge", n_states=[2, 3, 2])
    space = score_space(structure)
    return space, space.pack_sizes([3] * n)


def _grid(rng, n, edge=False):
    space = score_space(get_structure("grid", by_direction=edge), 2, edge=edge)
    return space, space.pack_sizes(rng.integers(1, 3, (n, 2)))


def _matching(rng, n):
    space, rows = score_space("permutation"), rng.integers(1, 4, n)
    sizes = np.column_stack([rows, rows + rng.integers(0, 2, n)])
    barred = [None, *(rng.random(size) < 0.2 for size in sizes[1:])]
    for mask in barred[1:]:
        mask[np.arange(len(mask)), np.arange(len(mask))] = False
    return space, space.pack_sizes(sizes, forbidden=barred)


def _path(rng, n, edge=False):
    space = score_space(get_structure("path", monotone=True), edge=edge)
    return space, space.pack_sizes(rng.integers(1, 4, (n, 2)))


HIERARCHY = {"a": ["b", "c"], "d": ["e"]}


def network():
    """Two ways from s to t, and an arc between them."""
    graph = nx.DiGraph([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")])
    graph.add_node("s", demand=-1)
    graph.add_node("t", demand=1)
    return graph


#: From a generator and a number of examples to a space and its examples.
KINDS = {
    "chain": _chain,
    "chain with edges": lambda rng, n: _chain(rng, n, edge=True),
    "tree": _tree,
    "tree with edges": lambda rng, n: _tree(rng, n, edge=True),
    "segments": _segments,
    "alignments": _alignments,
    "multiclass": _rows("multiclass", 3),
    "dependency": _dependency(False),
    "projective": _dependency(True),
    "labelled": _dependency(False, 3),
    "labelled, projective": _dependency(True, 2),
    "spans": _cky(False),
    "grammar": _cky(True),
    "ordinal": _rows("ordinal", 4),
    "thresholds": _rows("ordinal", 4, thresholds=True),
    "ranking": _rows("permutation", 3),
    "matching": _matching,
    "closed sets": _rows("dag", None, hierarchy=HIERARCHY),
    "leaves": _rows("dag", None, hierarchy=HIERARCHY, labels="single-leaf"),
    "flow": _rows("flow", None, network=network()),
    "forests": _mrf,
    "forests with edges": lambda rng, n: _mrf(rng, n, edge=True),
    "graphs": lambda rng, n: _mrf(rng, n, forest=False),
    "one graph": _one_graph,
    "grid": _grid,
    "grid with edges": lambda rng, n: _grid(rng, n, edge=True),
    "paths": _path,
    "paths with edges": lambda rng, n: _path(rng, n, edge=True),
    "multilabel": _rows("multilabel", 3, edges="none"),
    "multilabel with pairs": _rows("multilabel", 3, edges=[[0, 1], [1, 2]]),
}


def random_batch(kind, rng, n=4, dtype=np.float64, padded=False):
    """Return a space, random scores with ties, and random labels."""
    space, examples = KINDS[kind](rng, n)

    def numbers(*shape):
        return rng.integers(-4, 5, shape).astype(dtype) / 2

    def rows(block, offsets):
        if block is None:
            return None, None
        if not padded:
            return numbers(int(offsets[-1]), *block.shape), None
        longest = int(np.diff(offsets).max()) + 1
        return numbers(n * longest, *block.shape), longest * np.arange(n)

    node, first = rows(space.layout.node, examples.offsets)
    edge, first_edge = rows(space.layout.edge, examples.edge_offsets)
    shared = {block.name: numbers(*block.shape) for block in space.layout.shared}
    labels = [space.enumerate_labels(examples, i) for i in range(n)]
    flat = np.concatenate([all_of[rng.integers(len(all_of))] for all_of in labels])
    return space, Scores(node, shared, edge, examples, first, first_edge), flat.astype(np.int32)


def theta_of(space, scores, layout, i):
    """Return the part scores of an example, flat and padded, as operators take them."""
    theta = np.zeros(layout.sizes(i)[0])
    examples = scores.examples
    edges = (
        examples.edge_offsets if space.layout.edge is not None else np.zeros(examples.n + 1, int)
    )
    nodes = examples.offsets
    views = space.layout.theta_views(
        theta, int(nodes[i + 1] - nodes[i]), int(edges[i + 1] - edges[i])
    )
    for block in space.layout.blocks:
        view = views[block.name]
        if block.kind == "shared":
            view[...] = (scores.shared or {}).get(block.name, 0)
        else:
            array, first = scores.node, nodes if scores.rows is None else scores.rows
            if block.kind == "edge":
                array, first = scores.edge, edges if scores.edge_rows is None else scores.edge_rows
            if array is not None:
                view[...] = array[first[i] : first[i] + len(view)].reshape(view.shape)
    return theta
