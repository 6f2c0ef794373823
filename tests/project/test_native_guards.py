"""Calls of compiled code that once crashed: each is refused, by name."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from data import chains, classes

import structsolve
from structsolve import StructuredSVM
from structsolve.estimators.decode import Room, decode, decode_kbest, draw, node_rows
from structsolve.lp import ask_oracle
from structsolve.plugins.dag import topological_order as walks
from structsolve.plugins.dag._closure import ClosureGraph
from structsolve.plugins.dag.svm.leaf_search import LeafSearch
from structsolve.plugins.dag.svm.sparse_tree import SparseTree
from structsolve.plugins.dependency._shape import first_fault
from structsolve.plugins.extreme.weights._strips import Strips
from structsolve.plugins.mrf import MRFStructure
from structsolve.plugins.mrf._oracle import ExactOracle, GraphKBest, GraphMaxMarginals
from structsolve.plugins.mrf.elimination._plan import Plans
from structsolve.plugins.mrf.tables._model import _scores
from structsolve.plugins.mrf.tables._shape import GraphShape
from structsolve.plugins.mrf.tables._table_kinds import recognize
from structsolve.potentials.calls import add, add_gram, dot, row_dot, row_score
from structsolve.potentials.features import FeatureRows, _check_values
from structsolve.potentials.mercer import Kernel
from structsolve.potentials.mercer_features import MercerRows
from structsolve.projections.double_oracle import DoubleOracle
from structsolve.search.exact import Counting
from structsolve.search.plane import LabelPlane
from structsolve.solvers import BCFW, GBCFW, SGD
from structsolve.solvers._bcfw import BlockLoop
from structsolve.solvers._cuts import CutStore
from structsolve.solvers._nslack import violated_cuts
from structsolve.solvers._polyhedron import Polyhedron
from structsolve.solvers._sgd import SGDLoop
from structsolve.solvers.passes import subgradient, surrogate_bounds
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss, ask_parts, ask_power, ask_projection, make_layout
from structsolve.structure.loss_values import losses

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
REFUSED = (ValueError, TypeError, OverflowError)


def ints(*numbers):
    return np.array(numbers, dtype=np.int32)


def longs(*numbers):
    return np.array(numbers, dtype=np.int64)


EDGES = longs(0, 1)
HALF = Polyhedron(sp.csr_matrix([[1.0, 0.0]]), np.zeros(1), np.zeros(1, bool))


def sums(counts, nodes):
    """Return arrays in the form of SparseTree.to_arrays."""
    one = np.ones(len(nodes), np.float32)
    node = np.array(nodes, np.uint16)
    return {"counts": longs(*counts), "node": node, "sum": one, "moment": one}


class Parts:
    """Return the objects of a chain's model, and runs of a few solvers."""

    def __init__(self):
        X, Y = chains(6)
        self.runs = {}
        for name, solver, surrogate in (
            ("block", BCFW(), "margin"),
            ("segment", GBCFW(), "crf"),
            ("sgd", SGD(), "margin"),
        ):
            model = StructuredSVM("chain", solver=solver, surrogate=surrogate, warm_start=True)
            model.set_params(max_iter=1, alpha=0.1, callbacks=None).fit(X, Y)
            if model._run is not None:
                self.runs[name] = model._run[1]
        flat = StructuredSVM("multiclass", warm_start=True, max_iter=1).fit(*classes(12))
        self.runs["simplex"] = flat._run[1]
        self.problem = self.runs["block"].given.problem
        self.space = self.problem.space
        self.layout = make_layout(self.space, self.problem.examples)
        self.oracle = ask_oracle(self.space)(self.layout)
        self.kbest = ask_power(self.space, "kbest")(self.layout)
        self.best = ask_power(self.space, "max-marginals")(self.layout)
        self.entropy = ask_projection(self.space, "entropy")(self.layout)
        self.parts = ask_parts(self.space)(self.layout)
        self.loss = ask_loss(self.space, "hamming")(self.layout)
        self.w = np.zeros(self.problem.dim)
        counts = ask_power(self.space, "counts")(self.layout)
        self.plane = LabelPlane(self.layout, self.oracle, self.parts, self.loss, None, None, counts)
        self.few = make_layout(self.space, self.space.pack(X[:1]))

    def game(self, labels, parts=None):
        return DoubleOracle(self.layout, self.oracle, self.loss, parts or self.parts, labels)


@pytest.fixture(scope="module")
def made():
    return Parts()


CASES = {
    "tails beyond the nodes": lambda p: walks.compressed(1, EDGES, EDGES),
    "more tails than heads": lambda p: walks.compressed(2, EDGES, EDGES[:1]),
    "children beyond the nodes": lambda p: walks.topological_order(
        ints(0, 1, 1), ints(9), ints(0, 1)
    ),
    "numbers of parents": lambda p: walks.topological_order(ints(0, 1, 1), ints(1), ints(0, 0)),
    "rows that fall": lambda p: walks.leaf_lines(ints(1, 0), ints(0), ints(0), ints(0)),
    "leaves beyond the nodes": lambda p: walks.leaf_lines(ints(0, 0), ints(), ints(0), ints(7)),
    "no parents": lambda p: walks.share_out(ints(0), None, ints(), ints(0, 0)),
    "fewer rows": lambda p: walks.share_out(ints(0, 1), ints(0), ints(), ints(0, 0)),
    "columns": lambda p: walks.add_ancestors(
        np.ones((2, 9), np.int32), ints(0), ints(0, 0), ints()
    ),
    "order": lambda p: walks.first_open(np.ones((2, 1), np.int32), ints(5), ints(0, 0), ints()),
    "barren": lambda p: walks.first_barren(np.ones((2, 1), np.int32), ints(0, 1, 2), ints(0, 1)),
    "a node of a tree": lambda p: SparseTree(
        ints(-1), np.ones(1), np.ones(1), "hamming", 1
    ).restore(1, sums([1], [5])),
    "the spare root": lambda p: SparseTree(ints(-1), np.ones(1), np.ones(1), "hamming", 1).restore(
        1, sums([1], [0])
    ),
    "a node twice": lambda p: SparseTree(ints(-1, 0), np.ones(2), np.ones(2), "hamming", 1).restore(
        1, sums([2], [1, 1])
    ),
    "counts that wrap": lambda p: SparseTree(
        ints(-1), np.ones(1), np.ones(1), "hamming", 5
    ).restore(1, sums([2**62, 2**62, 2**62, 2**62, 1], [1])),
    "a search without nodes": lambda p: LeafSearch(ints()),
    "a search for a truth beyond": lambda p: LeafSearch(ints(-1, 0)).best_leaf(np.ones(2), 2),
    "no graphs": lambda p: Plans(None, 1.0, 1.0),
    "no starts": lambda p: _scores("x", "item", np.ones(2), [], []),
    "labels of a count": lambda p: Counting().extra_bytes(p.plane, ints(1)),
    "no oracle that counts": lambda p: Counting().extra_bytes(
        LabelPlane(p.layout, p.oracle, p.parts, p.loss), p.problem.labels
    ),
    "labels of a count beyond the states": lambda p: Counting().extra_bytes(
        p.plane, np.full_like(p.problem.labels, 99)
    ),
    "labels of a game beyond the states": lambda p: p.game(np.full_like(p.problem.labels, 99)),
    "a game on other examples": lambda p: p.game(p.problem.labels, ask_parts(p.space)(p.few)),
    "no offsets of sentences": lambda p: first_fault(ints(1, 1, 1), longs(), True, True),
    "offsets before the heads": lambda p: first_fault(ints(0, 1), longs(-1, 0, 2), True, True),
    "few indices": lambda p: _check_values(np.ones(3), ints(2), 3, 1),
    "weights of other problems": lambda p: p.runs["block"].loop.known_values(p.w[:1]),
    "negative nodes": lambda p: ClosureGraph(-1, ints(2, 2), ints(1, 2)),
    "arcs beyond the nodes": lambda p: ClosureGraph(2, ints(7), ints(0)),
    "lists of 2^62 examples": lambda p: CutStore(2**62),
    "graphs without edges": lambda p: GraphShape(p.layout, np.zeros((0, 2)), 2, False),
    "blocks of other rows": lambda p: FeatureRows(np.ones((3, 2))).gram_blocks(
        longs(0, 99), longs(0, 4), np.zeros(4)
    ),
    "blocks beyond the memory": lambda p: FeatureRows(np.ones((3, 2))).gram_blocks(
        longs(0, 3), longs(0, 9), np.zeros(4)
    ),
    "no offsets": lambda p: FeatureRows(np.ones((3, 2))).gram_blocks(None, longs(0), np.zeros(4)),
    "negative room": lambda p: Room(p.problem.potentials, -(10**6)),
    "few weights": lambda p: decode(p.problem.potentials, p.oracle, p.w[:2], {}),
    "no values": lambda p: add(p.problem.potentials, 0, ints(0), None, 1.0, p.w.copy()),
    "no values to multiply": lambda p: dot(p.problem.potentials, 0, ints(0), None, p.w),
    "no values for a Gram matrix": lambda p: add_gram(
        p.problem.potentials, 0, ints(0), None, 1.0, np.zeros(p.layout.sizes(0)[0])
    ),
    "no weights": lambda p: decode(p.problem.potentials, p.oracle, None, {}),
    "other examples": lambda p: decode(p.problem.potentials, ask_oracle(p.space)(p.few), p.w, {}),
    "masks of other nodes": lambda p: decode(
        p.problem.potentials, p.oracle, p.w, {"node": np.zeros((1, 3))}
    ),
    "losses of labels beyond the states": lambda p: p.plane.largest_loss(
        np.full_like(p.problem.labels, 2**31 - 1)
    ),
    "rows that are no matrix": lambda p: Polyhedron(np.zeros(0), np.zeros(0), np.zeros(0, bool)),
    "fewer right sides than rows": lambda p: Polyhedron(
        sp.csr_matrix(np.eye(2)), np.zeros(1), np.zeros(2, bool)
    ),
    "the nearest of few weights": lambda p: HALF.nearest(np.zeros(1)),
    "steps inside another space": lambda p: SGDLoop(7, longs(), 1.0).constrain(HALF),
    "blocks inside another space": lambda p: p.runs["block"].loop.constrain(HALF),
    "the time of no labels": lambda p: calls.seconds_per_call(
        p.kbest, 0, np.zeros(p.layout.sizes(0)[0]), 1, 0
    ),
    "k below 1": lambda p: decode_kbest(p.problem.potentials, p.kbest, p.w, {}, 0),
    "no samples": lambda p: draw(p.problem.potentials, p.entropy, p.w, -1, scale=1.0, seed=0),
    "states of max-marginals": lambda p: node_rows(
        p.problem.potentials, p.best, p.w, {}, state_rows=3
    ),
    "neither of both": lambda p: node_rows(p.problem.potentials, p.oracle, p.w, {}),
    "few weights in a pass": lambda p: surrogate_bounds(p.problem, p.w[:2]),
    "no weights in a pass": lambda p: subgradient(p.problem, None),
    "few slacks": lambda p: violated_cuts(p.problem, p.w, p.w, np.zeros(1), 0.0),
    "labels beyond the states": lambda p: losses(
        p.loss, p.problem.labels, np.full_like(p.problem.labels, 99)
    ),
    "memory too small": lambda p: calls.argmax(
        p.oracle, 0, np.zeros(p.layout.sizes(0)[0]), lambda name, n, dtype: np.zeros(0, dtype)
    ),
    "a label of parts outside": lambda p: calls.check_label(
        p.parts, 0, np.full(p.layout.sizes(0)[1], 99, np.int32)
    ),
    "a loop on labels beyond the states": lambda p: BlockLoop(
        p.problem.potentials,
        p.problem.surrogate,
        np.full_like(p.problem.labels, 99),
        p.problem.weights,
        0.1,
    ),
    "a loop on few weights of examples": lambda p: BlockLoop(
        p.problem.potentials, p.problem.surrogate, p.problem.labels, p.problem.weights[:1], 0.1
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_calls_that_crashed_are_refused(made, case):
    with pytest.raises(REFUSED):
        CASES[case](made)


@pytest.mark.parametrize("order", [longs(-1), longs(10**6), None])
def test_loops_refuse_examples_that_do_not_exist(made, order):
    rest = {"block": (1,), "segment": ("search", 0, False), "simplex": (True,)}
    assert set(rest) == set(made.runs)
    for name, run in made.runs.items():
        with pytest.raises(REFUSED):
            run.loop.run(order, *rest[name])


@pytest.mark.parametrize("oracle", ["lp", "exact"])
def test_programs_refuse_scores_that_are_not_numbers(oracle):
    """HiGHS continues with NaN forever."""
    structure = structsolve.get_structure("mrf", oracle=oracle)
    X, Y = structure.sample(0)
    space, examples = structure.make_space(X, Y)
    layout = make_layout(space, examples)
    theta = np.zeros(layout.sizes(0)[0])
    theta[1] = np.nan
    answer = None
    try:
        answer = calls.argmax(ask_oracle(space)(layout), 0, theta)
    except ValueError as error:
        assert "NaN" in str(error)
    assert answer is None or oracle == "exact"  # which enumerates


def test_weights_too_many_for_their_file(made):
    """Sizes are compared before memory is allocated."""
    kind = type(made.problem.model(made.w))
    space = structsolve.get_structure("chain").space_from_state(
        {"n_features": 2**30, "n_edge_features": None, "intercept": True}, {"classes": np.arange(3)}
    )
    refused("far more than it holds", kind.from_arrays, space, {"node": np.zeros((2, 3))}, None)


def test_sparse_rows_beyond_the_features():
    tree = SparseTree(ints(-1, 0, 0), np.ones(3), np.ones(3), "hamming", 2)
    M = sp.csr_matrix(np.eye(2))
    with pytest.raises(REFUSED):
        tree.run(M.indptr, ints(0, 9), M.data, ints(1, 2), longs(0, 1), alpha=0.1)


def test_plans_of_other_graphs_and_tables_without_states():
    from_graphs = []
    for size in (3, 5):
        X = [(np.zeros((size, 1)), [[i, (i + 1) % size] for i in range(size)])] * (size - 2)
        space, examples = MRFStructure(n_states=2).make_space(X, [[0] * size] * (size - 2))
        layout = make_layout(space, examples)
        from_graphs.append((space.graphs(layout), layout))
    (small, _), (large, layout) = from_graphs
    with pytest.raises(ValueError, match="plans: found those of other graphs"):
        ExactOracle(None, Plans(small, 100, 100), large, layout)
    with pytest.raises(ValueError, match="plans: made without keep=True"):
        GraphKBest(Plans(large, 100, 100), large, layout)
    for kind in (GraphKBest, GraphMaxMarginals):
        refused("plans: found None, expected those of `shape`", kind, None, large, layout)
        with pytest.raises(ValueError, match="plans: found graphs without one"):
            kind(Plans(large, 1, 1, True), large, layout)
    for shape in ((0, 1), (1, 0)):
        refused("table: found shape .* expected at least one state", recognize, np.zeros(shape))


def test_weights_of_kernel_rows_have_their_size():
    X = np.arange(6.0).reshape(3, 2)
    rows = MercerRows(X @ X.T, Kernel("precomputed"), np.arange(4), 4)
    for function, rest in ((row_score, ()), (row_dot, (ints(0),))):
        refused("W: found", function, rows, 1, *rest, np.zeros(0))
        assert not np.any(function(rows, 1, *rest, np.zeros(rows.weights_size)))


@pytest.mark.parametrize("sizes", [(0, 3, 3), (2**62, 3, 3), (1, -1, 3), (1, 2**60, 1), (1, 3, -1)])
def test_strips_of_no_class_or_of_sizes_that_wrap(sizes):
    refused("k from 1, longest and n_rows from 0", Strips, *sizes)
