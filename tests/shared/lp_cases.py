"""Structures and vectors for tests of linear programs."""

import networkx as nx
import numpy as np
from python_structures import PyChainSpace, PyChainStructure

import structsolve
from structsolve.plugins.chain.polytope import ChainPolytopes
from structsolve.structure import calls
from structsolve.structure.ask import ask_parts

TREE = {"a": ["b", "c"], "c": ["d", "e"]}

GRAPH = {"a": ["b", "c"], "b": ["d"], "c": ["d", "e"]}

NETWORK = nx.DiGraph()
NETWORK.add_nodes_from([("s", {"demand": -2}), ("t", {"demand": 2})])
NETWORK.add_edges_from([("s", "u"), ("s", "v"), ("u", "v"), ("u", "t"), ("v", "t")], capacity=2)

STRUCTURES = [
    ("chain", {}),
    ("chain", {"start_end": False, "transitions": False}),
    ("multiclass", {}),
    ("multilabel", {}),
    ("multilabel", {"edges": "none"}),
    ("mrf", {}),
    ("factor-graph", {}),
    ("factor-graph", {"factors": [(0, 1, 2), (2, 3), (1, 2)], "tables": "per-factor"}),
    ("permutation", {}),
    ("permutation", {"kind": "matching"}),
    ("tree", {}),
    ("semi-markov", {}),
    ("alignment", {}),
    ("alignment", {"kind": "ctc"}),
    ("dag", {"hierarchy": TREE}),
    ("dag", {"hierarchy": GRAPH}),
    ("dag", {"hierarchy": TREE, "labels": "single-leaf"}),
    ("dag", {"hierarchy": TREE, "labels": "leaf-union"}),
    ("dag", {"hierarchy": GRAPH, "labels": "leaf-union"}),
    ("dependency", {}),
    ("dependency", {"projective": True, "single_root": False}),
    ("dependency", {"labelled": True}),
    ("cky", {}),
    ("cky", {"grammar": True}),
    ("flow", {"network": NETWORK}),
]


def packed(name, params, seed=0, n=5, size=3):
    structure = structsolve.get_structure(name, **params)
    X, Y = structure.sample(seed, n=n, size=size)
    space, examples = structure.make_space(X, Y)
    return space, examples


def vectors(space, layout, i):
    """Return mu of every label, dense, and which entries of theta any label uses."""
    parts, labels = ask_parts(space)(layout), space.enumerate_labels(layout.examples, i)
    mu = np.zeros((len(labels), layout.sizes(i)[0]))
    for row, label in zip(mu, labels):
        index, value = calls.encode(parts, i, label)
        np.add.at(row, index, value)
    return labels, mu, (mu != 0).any(axis=0)


class FreePolytopes(ChainPolytopes):
    """The polytope of a Python chain without transitions: one simplex per node."""

    def __init__(self, layout, examples):
        super().__init__(layout, examples.offsets)


class FreeSpace(PyChainSpace):
    def polytopes(self, examples):
        return self.structure.kind(self.layout, examples)


class WithPolytopes(PyChainStructure):
    kind = FreePolytopes

    space_class = FreeSpace
