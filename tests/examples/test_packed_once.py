"""Training reads X and y once: nothing that make_space() has stacked is stacked again."""

import networkx as nx
import numpy as np
import pytest

import structsolve
from structsolve import ConditionalRiskMinimizer, HierarchicalSVM, StructuredSVM
from structsolve.plugins.dag import DagStructure
from structsolve.plugins.flow import FlowStructure
from structsolve.plugins.grid import GridStructure
from structsolve.plugins.mrf import MRFStructure
from structsolve.plugins.ordinal import OrdinalStructure
from structsolve.plugins.permutation import PermutationStructure

TREE = nx.DiGraph([("a", "b"), ("a", "c"), ("c", "d"), ("c", "e")])
DIAMOND = nx.DiGraph([("s", "u"), ("s", "v"), ("u", "t"), ("v", "t")])
DIAMOND.add_node("s", demand=-1)
DIAMOND.add_node("t", demand=1)

STRUCTURES = {
    "chain": "chain",
    "tree": "tree",
    "mrf": "mrf",
    "mrf with edge features": MRFStructure(tables="features"),
    "grid": GridStructure(contrast="absolute", by_direction=True),
    "multiclass": "multiclass",
    "multilabel": "multilabel",
    "ordinal": "ordinal",
    "thresholds": OrdinalStructure(thresholds=True),
    "dependency": "dependency",
    "alignment": "alignment",
    "ranking": PermutationStructure("ranking"),
    "matching": PermutationStructure("matching"),
    "label sets": DagStructure(TREE),
    "leaves": DagStructure(TREE, labels="single-leaf"),
    "flow": FlowStructure(DIAMOND),
}


class Counted:
    """An array that counts how often it is read as one, on a list that many of them share."""

    def __init__(self, array, reads):
        self.array, self.reads = np.asarray(array), reads
        self.shape, self.ndim, self.dtype = self.array.shape, self.array.ndim, self.array.dtype

    def __array__(self, dtype=None, copy=None):
        self.reads.append(self)
        return np.array(self.array, dtype=dtype)

    def __len__(self):
        return len(self.array)

    def __getitem__(self, i):
        self.reads.append(self)
        return self.array[i]


def counted(values, reads):
    """Return the same data in counted arrays: one, or lists and tuples of them."""
    if isinstance(values, (list, tuple)):
        return type(values)(counted(value, reads) for value in values)
    return Counted(values, reads)


def reads_of(call, X, y):
    """Return how often ``call(X, y)`` reads the arrays of X, and those of y."""
    reads_of_x, reads_of_y = [], []
    # A matrix of labels is compared with numbers, which a Counted cannot be.
    matrix = getattr(y, "ndim", 0) == 2
    call(counted(X, reads_of_x), y if matrix else counted(y, reads_of_y))
    assert reads_of_x and (matrix or reads_of_y)
    return len(reads_of_x), len(reads_of_y)


def forbid_packing(monkeypatch, space):
    def pack(*arguments, **options):
        raise AssertionError("training called pack(), which make_space() has done")

    monkeypatch.setattr(type(space), "pack", pack)


@pytest.mark.parametrize("name", STRUCTURES)
def test_fit_reads_what_make_space_reads(name, monkeypatch):
    structure = structsolve.get_structure(STRUCTURES[name])
    X, y = structure.sample(0, n=6)
    expected = reads_of(structure.make_space, X, y)
    space, _ = structure.make_space(X, y)
    assert expected == reads_of(space.pack, X, y)
    forbid_packing(monkeypatch, space)
    model = StructuredSVM(structure, max_iter=2, tol=10.0)
    assert reads_of(model.fit, X, y) == expected
    model.set_params(warm_start=True)
    assert reads_of(model.fit, X, y) == expected
    if name in ("multiclass", "label sets", "leaves", "chain"):
        risk = ConditionalRiskMinimizer(structure)
        if name == "chain":
            X, y = [x[:1] for x in X], [labels[:1] for labels in y]
        assert reads_of(risk.fit, X, y) == reads_of(structure.make_space, X, y)


@pytest.mark.parametrize("sparse", [False, True])
def test_hierarchies(sparse, monkeypatch):
    structure = DagStructure(TREE, labels="single-leaf")
    X, y = structure.sample(0, n=6)
    expected, _ = reads_of(structure.make_space, X, y)
    forbid_packing(monkeypatch, structure.make_space(X, y)[0])
    reads = []
    solver = "sgd" if sparse else "bcfw"
    model = HierarchicalSVM(TREE, sparse=sparse, solver=solver, max_iter=2, tol=10.0)
    model.fit(Counted(X, reads), y)
    assert len(reads) == expected
