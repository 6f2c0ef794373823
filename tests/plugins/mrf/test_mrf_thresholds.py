"""Sizes of graphs on both sides of every threshold at which another algorithm takes over.

THRESHOLDS lists them with their values: a constant that changes, or a new one, fails here until the
sizes below are on both sides of it again.
"""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from graph_cases import Graph, all_scores, eliminated
from reference.cones import in_cone

from structsolve import ConePair
from structsolve.lp import make_backend
from structsolve.plugins import mrf
from structsolve.plugins.mrf import grid_edges
from structsolve.plugins.mrf.elimination._enumerated_cones import EnumeratedCones
from structsolve.plugins.mrf.relaxation.programs import Programs
from structsolve.structure import calls

# Constant: value, and the test below that has sizes on both of its sides.
THRESHOLDS = {
    # The tables over the first two-state nodes; nodes of two states that are enumerated so.
    "elimination/_gray_code.LOW": (9, "test_dense"),
    "elimination/_gray_code.CUBE": (20, "test_dense"),
    # Labelings in the time of one sum of elimination.
    "elimination/_gray_code.FASTER": (8, "test_enumeration_or_elimination"),
    # Sums up to which elimination comes first; labelings, and sums, up to which "auto" is exact.
    "_oracle.CHEAP": (2**14, "test_dense"),
    "decoders.FEW": (2**14, "test_dense"),
    # Labelings up to which max-marginals take as many sums as the k best; cones are enumerated.
    "decoders.MANY": (2**20, "test_wide"),
    "decoders.CONSTRAINED": (2**16, "test_cones"),
    # Sums of elimination, entries of its tables, those that the k best keep.
    "exact/search.MOST": (2**30, "test_wide"),
    "exact/search.TABLE": (2**22, "test_wide"),
    "decoders.KEPT": (2**23, "test_wide"),
    # Steps after which the search gives up, if elimination would not take fewer.
    "_oracle.PATIENCE": (2**30, "test_search_that_gives_up"),
    # Nodes of graphs that get a plan, of which fill is counted; neighbours in a plan.
    "elimination/_plan.MOST_NODES": (4096, "test_cycles"),
    "elimination/_plan.FEW_NODES": (1024, "test_cycles"),
    "elimination/_plan.WIDEST": (32, "test_neighbours_of_one_state"),
    # Two-state nodes whose roof duality has a bit for each.
    "cuts/_dense_roof.SMALL": (32, "test_cycles_with_chords"),
    # States: up to which "auto" tries a cut; from which passes know the kind of a table.
    "decoders.CUT_STATES": (4, "test_cuts"),
    "decoders.CUT_STATES_RELAXED": (8, "test_cuts"),
    "messages/_trws.FEW_STATES": (16, "test_states"),
    "messages/_float_passes.LINEAR_FROM": (128, "test_states"),
    "messages/_float_passes.QUADRATIC_FROM": (256, "test_states"),
    # Pairs of states of relaxations that are small.
    "relaxation/_dual.SMALL": (4096, "test_relaxations"),
    "relaxation/_dual.CELLS": (2**14, "test_relaxations"),
    # Labelings of the last nodes that cones score together.
    "elimination/_enumerated_cones.TABLE": (64, "test_cones"),
}
# Tolerances, numbers of rounds and what guards memory: other answers are right on both sides.
OTHERS = {
    "exact/_best_first": "SWEEPS FEW_SWEEPS LONGEST RARE MOST_STEPS",
    "exact/_cost_network": "ROUNDING ARCS EXISTS FEW CELLS",
    "relaxation/_dual": "PASSES SLOW LARGE SLACK ROUNDS SMALL_ROUNDS SMALL_TOL NOISE WHOLE",
    "relaxation/_dual_core": "LOOK ENOUGH LESS LONG NEVER",
    "elimination/_enumerated_cones": "ROUNDING",
    "elimination/_plan": "FILLED",
    "elimination/_sums": "LANES STATES",
    "graph_operators": "SUMS",
    "exact/_search": "ITERATIONS LESS SMALL",
    "local_search/_expansion": "ROUNDING",
    "messages/_float_passes": "STALLED PATIENCE CLOSE ROUNDING TOO_LARGE",
    "local_search/_climb": "ROUNDING LONGEST FORESTS ROUNDS STEPS",
    "cuts/_minimum_cut": "TOLERANCE REST ROUNDING MOST_PAIRS MOST_FLOWS",
    "_oracle": "PASSES",
    "cuts/_roof_duality": "DUST",
    "uai": "LARGEST_FACTOR LARGEST_TABLES ROUNDED",
    "_small_graph": "MOST",
    "cuts/_dense_model": "ROUNDING",
    "cuts/_dense_roof": "ROUNDING DUST ONE LARGE SPARSE WORDS",
    "exact/_small_degrees": "SUMS",
    "exact/_soft_consistency": "SHARE SLOW FORBIDDEN AGAIN DONE",
    "relaxation/_tree_reweighted": "CLOSE PASSES LOOK LEAST_STEP SCALINGS AGREED",
    "tables/_table_kinds": "SAME",
    "messages/_trws": "STALLED PATIENCE TURNS SPARE",
    "decode": "PROVEN SEARCHED",
    "decoders": "CUT_PAIRS RELAXED",
    "exact/search": "SLICE SPENT SPENT_EACH SHARE SUMS PATIENCE PATIENCE_EACH LONGEST",
    "relaxation/programs": "NEAR",
}
# One table and one per edge, in theta's own order or not, of one example and of several.
SOME = [
    ("shared", False, "one"),
    ("shared", True, "own"),
    ("per-edge", True, "one"),
    ("features", False, "own"),
]
CONSTANT = re.compile(r"^ *(?:cdef [\w ]+ )?([A-Z][A-Z_]+(?:, [A-Z_]+)*) = ([^#\n]+)", re.M)


def constants():
    """All constants of the plugin's sources that are numbers: ``room/file.NAME: value``."""
    known = {}
    folder = Path(mrf.__file__).parent
    for path in sorted(folder.rglob("*.p*")):
        if path.suffix in (".py", ".pyx", ".pxd"):
            for names, values in CONSTANT.findall(path.read_text()):
                # cdef int A = 1, B = 2: only the first is read here, and only numbers.
                values = re.split(r", [A-Z]", values)[0].replace("<", "~").strip()
                if re.fullmatch(r"[\d._e+*~, -]+", values):
                    for name, value in zip(names.split(", "), values.replace("~", "<").split(", ")):
                        known[f"{path.relative_to(folder).with_suffix('').as_posix()}.{name}"] = (
                            eval(value)
                        )
    return known


def test_every_constant_is_listed():
    known = constants()
    others = {f"{file}.{name}" for file, names in OTHERS.items() for name in names.split()}
    assert set(known) == set(THRESHOLDS) | others
    for name, (value, test) in THRESHOLDS.items():
        assert known[name] == value, f"{name}: choose sizes on both sides of it in {test}"
        assert test in globals()


def complete(n):
    return np.column_stack(np.triu_indices(n, 1))


def cycle(n):
    return np.column_stack([np.arange(n), np.roll(np.arange(n), -1)])


def best_of(graph, theta):
    """The best score of a narrow graph."""
    return eliminated(graph.states, graph.edges, *graph.scattered(theta))


def check_large(graph, theta):
    """The oracle's answer against elimination; an exact one has the best score."""
    label, value, bound = calls.argmax(graph.oracle, graph.number, theta)
    best, close = best_of(graph, theta), graph.close(theta)["atol"]
    unary, pair = graph.scattered(theta)
    reached = sum(unary[v][s] for v, s in enumerate(label))
    reached += sum(t[label[u], label[v]] for (u, v), t in zip(graph.edges, pair))
    assert abs(value - reached) <= close and bound >= best - close
    assert value >= best - close or not graph.oracle.exact
    return value == bound


@pytest.mark.parametrize("layout", SOME, ids=str)
@pytest.mark.parametrize("n", [3, 8, 9, 10, 12, 13, 14, 15])
def test_dense(layout, n):
    """Two states: elimination, then cubes; tables for some nodes, then for all."""
    rng = np.random.default_rng(n)
    edges = complete(n)[rng.random(n * (n - 1) // 2) < 0.95]
    graph = Graph([2] * n, edges, "exact", *layout)
    for kind in ("normal", "ties", "forbidden parts"):
        theta = graph.theta(kind, rng)
        graph.check_best(theta)
        for k in (1, 2, 100):
            graph.check_kbest(theta, k)
    auto = Graph([2] * n, edges, "auto", *layout)
    assert auto.oracle.exact == (n <= 14)
    value, bound = auto.answer(theta)
    best = auto.scores(theta).max()
    assert value <= bound and bound >= best - auto.close(theta)["atol"]


@pytest.mark.parametrize("layout", SOME, ids=str)
@pytest.mark.parametrize("n", [7, 8, 9, 10])
def test_dense_of_three_states(layout, n):
    """2^14 labelings, and as many sums of elimination, are between 7 and 10 nodes."""
    rng = np.random.default_rng(n)
    for oracle in ("exact", "auto"):
        graph = Graph([3] * n, complete(n), oracle, *layout)
        assert graph.oracle.exact == (oracle == "exact" or n <= 8)
        theta = graph.theta("normal", rng)
        value, bound = graph.answer(theta)
        best, close = graph.scores(theta).max(), graph.close(theta)["atol"]
        assert bound >= best - close and (value >= best - close or not graph.oracle.exact)
    if n == 8:
        graph.check_best(theta)
        graph.check_kbest(theta, 50)


@pytest.mark.parametrize("layout", [SOME[0], SOME[3]], ids=str)
@pytest.mark.parametrize("n", [20, 21])
def test_wide(layout, n):
    """Cubes, then elimination; max-marginals of 20 nodes, not of 21."""
    rng = np.random.default_rng(n)
    graph = Graph([2] * n, complete(n), "exact", *layout)
    theta = graph.theta("normal", rng)
    if n == 20:
        graph.check_best(theta)
    else:
        assert graph.max_marginals is None
        value, bound = graph.answer(theta)
        assert value == bound == pytest.approx(graph.scores(theta).max(), abs=1e-10)
    graph.check_kbest(theta, 20)


@pytest.mark.parametrize("layout", [*SOME, ("shared", True, "void")], ids=str)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("n", range(3, 10))
def test_enumeration_or_elimination(layout, K, n):
    """Cycles have 2^n labelings, and about 4 n sums; complete graphs as many sums as labelings."""
    rng = np.random.default_rng(n)
    for edges in (cycle(n), complete(n)):
        graph = Graph([K] * n, edges, "exact", *layout)
        for kind in ("normal", "ties", "forbidden parts"):
            theta = graph.theta(kind, rng)
            graph.check_best(theta)
            graph.check_kbest(theta, 20)


@pytest.mark.parametrize("layout", SOME, ids=str)
@pytest.mark.parametrize("n, K", [(20, 2), (21, 2), (300, 2), (40, 5)])
def test_max_marginals_of_narrow_graphs(layout, n, K):
    """Beyond 2^20 labelings, if elimination for every state is cheap: each best by elimination."""
    rng = np.random.default_rng(n)
    graph = Graph([K] * n, cycle(n), "exact", *layout)
    theta = graph.theta("normal", rng)
    margins = calls.max_marginals(graph.max_marginals, graph.number, theta, K)
    unary, pair = graph.scattered(theta)
    for v in rng.integers(n, size=5):
        for s in range(K):
            fixed = np.array(unary)
            fixed[v, np.arange(fixed.shape[1]) != s] = -np.inf
            best = eliminated(graph.states, graph.edges, fixed, pair)
            assert margins.reshape(n, K)[v, s] == pytest.approx(best, abs=1e-9)


def test_what_is_too_wide_has_no_k_best():
    """2^23 sums are kept, of complete graphs of 22 nodes; of 24 nodes a table has 2^23 entries."""
    rng = np.random.default_rng(0)
    for n in (22, 23, 24):
        graph = Graph([2] * n, complete(n), "exact", *SOME[0])
        assert (graph.kbest is None) == (n > 22)
    theta = graph.theta("normal", rng)
    unary, pair = graph.scattered(theta)
    best = -np.inf
    for s in range(2):  # of the last node, apart: the others' labelings fit the memory
        rest = unary[: n - 1] + pair[0][:, s]
        scores = all_scores((2,) * (n - 1), complete(n - 1), rest, pair)
        best = max(best, unary[n - 1][s] + scores.max())
    _, value, bound = calls.argmax(graph.oracle, graph.number, theta)
    assert value == bound == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("layout", [*SOME, ("shared", True, "void")], ids=str)
@pytest.mark.parametrize("n", [31, 32, 33])
def test_cycles_with_chords(layout, n):
    rng = np.random.default_rng(n)
    edges = np.concatenate([cycle(n), [(0, n // 2), (n // 3, n - 2)]])
    for oracle in ("exact", "roof-duality", "auto", "trws"):
        graph = Graph([2] * n, edges, oracle, *layout)
        for kind in ("normal", "ties"):
            check_large(graph, graph.theta(kind, rng))


@pytest.mark.parametrize("layout", [SOME[0], SOME[3]], ids=str)
@pytest.mark.parametrize("n", [1024, 1025, 4096, 4097])
def test_cycles(layout, n):
    rng = np.random.default_rng(n)
    graph = Graph([2] * n, cycle(n), "exact", *layout)
    check_large(graph, graph.theta("normal", rng))


@pytest.mark.parametrize("layout", SOME, ids=str)
def test_search_that_gives_up(layout):
    """Scores of equal and of unequal states alone: elimination takes fewer steps."""
    rng = np.random.default_rng(3)
    for side in (8, 9):
        graph = Graph([2] * side**2, grid_edges(side, side), "exact", *layout)
        theta = graph.theta("normal", rng)
        graph.views(theta)["node"][...] = 0
        pair = graph.views(theta)["pair"]
        pair[..., 1, 1], pair[..., 1, 0] = pair[..., 0, 0], pair[..., 0, 1]
        check_large(graph, theta)


@pytest.mark.parametrize("layout", SOME, ids=str)
def test_integer_programs_read_their_tables(layout):
    rng = np.random.default_rng(4)
    graph = Graph([3] * 6, complete(6), "exact", *layout)
    shape = graph.space.graphs(graph.bound)
    theta = graph.theta("normal", rng)
    states, ends, unary, pair = shape.model(graph.number, theta)
    label = Programs(partial(make_backend, "lp")).best(shape, graph.number, unary, pair)
    assert graph.scores(theta)[graph.rows(label)] == pytest.approx(graph.scores(theta).max())


@pytest.mark.parametrize("layout", [SOME[0], SOME[2], ("shared", True, "void")], ids=str)
@pytest.mark.parametrize("n", [31, 32, 33])
def test_neighbours_of_one_state(layout, n):
    """Neighbours in a plan are counted, whatever choice they have."""
    rng = np.random.default_rng(n)
    edges = [(0, 1), (1, 2), (0, 2)] + [(0, 3 + j) for j in range(n)]
    graph = Graph([2, 3, 2] + [1] * n, edges, "exact", *layout)
    theta = graph.theta("normal", rng)
    graph.check_best(theta)
    graph.check_kbest(theta, 5)


@pytest.mark.parametrize("layout", SOME, ids=str)
@pytest.mark.parametrize("K", [3, 4, 5, 8, 9, 15, 16, 17])
def test_cuts(layout, K):
    """Super-modular tables, where "auto" tries a minimum cut first, and where it does not."""
    rng = np.random.default_rng(K)
    n = 16
    for oracle in ("auto", "mincut"):
        graph = Graph([K] * n, np.concatenate([grid_edges(2, 8), [(0, 15)]]), oracle, *layout)
        theta = graph.theta("normal", rng)
        views = graph.views(theta)
        close = -np.minimum(np.abs(np.subtract.outer(np.arange(K), np.arange(K))), K).astype(float)
        views["pair"][..., :K, :K] = close * rng.integers(1, 4)
        check_large(graph, theta)
        if oracle == "auto":
            relaxation = graph.power("relaxation")
            _, _, value, bound = calls.relax(relaxation, graph.number, theta)
            assert value == pytest.approx(best_of(graph, theta), rel=2e-3, abs=1e-9)
            assert bound >= best_of(graph, theta) - graph.close(theta)["atol"]


@pytest.mark.parametrize("layout", [SOME[0], SOME[3]], ids=str)
@pytest.mark.parametrize("K", [2, 3, 7, 8, 9, 15, 16, 17, 127, 128, 255, 256, 257])
def test_states(layout, K):
    """Widths of vectors, of the choices that elimination keeps, of tables whose kind is known."""
    rng = np.random.default_rng(K)
    distance = np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(float)
    for power in (0, 1, 2):
        # Passes know the kind of a table from 128 or 256 states, elimination counts to 256.
        for oracle in ("exact", "trws")[1 if K in (127, 128, 255) else 0 : 1 if K == 257 else 2]:
            graph = Graph([K] * 3, complete(3), oracle, *layout)
            theta = graph.theta("normal", rng)
            if power:
                graph.views(theta)["pair"][..., :K, :K] = -np.minimum(distance**power, 9.0)
            check_large(graph, theta)
            if oracle == "exact" and K < 20 and power == 0:
                graph.check_best(theta)
                graph.check_kbest(theta, 30)


@pytest.mark.parametrize("layout", SOME, ids=str)
@pytest.mark.parametrize("width", [12, 13, 48, 49])
def test_relaxations(layout, width):
    """Up to 4096 pairs of states a relaxation is small; about as many cells are kept open."""
    rng = np.random.default_rng(width)
    K = 7
    graph = Graph([K] * (4 * width), grid_edges(4, width), "auto", *layout)
    assert (49 * graph.m > 4096, 49 * graph.m > 2**14) == (width > 12, width > 48)
    theta = graph.theta("normal", rng)
    mu, label, value, bound = calls.relax(graph.power("relaxation"), graph.number, theta)
    best = best_of(graph, theta)
    assert bound >= best - graph.close(theta)["atol"]
    assert value <= bound and value == pytest.approx(mu @ theta, rel=1e-9)


@pytest.mark.parametrize("layout", SOME, ids=str)
@pytest.mark.parametrize("n", [5, 6, 7, 16, 17])
def test_cones(layout, n):
    """Up to 2^16 labelings are enumerated, the last six nodes of two states together."""
    rng = np.random.default_rng(n)
    graph = Graph([2] * n, complete(n) if n < 10 else grid_edges(1, n), "auto", *layout)
    own = graph.power("cones")
    assert isinstance(own, EnumeratedCones) == (n <= 16)
    theta, cost = np.zeros(graph.size), np.zeros(graph.size)
    for view in graph.views(theta).values():
        view[...] = rng.integers(-2, 3, view.shape)
    graph.views(cost)["node"][...] = rng.integers(0, 2, graph.views(cost)["node"].shape)
    scores, costs = graph.scores(theta), graph.scores(cost)
    for _ in range(6):
        h0 = float(-rng.choice(scores))
        cone = ConePair(h0, 0.0, 1.0, float(rng.choice([1, 2, np.inf])), 0.5, False)
        inside = in_cone(cone, scores + h0, costs)
        answer = calls.argmax_in_cone(own, graph.number, theta, cost, cone)
        if n <= 16 and not inside.any():
            assert answer is None
        elif inside.any():
            mu, label, value = answer
            best = (scores + h0 + costs)[inside].max()
            assert value >= best - 1e-6 and (value == best or n > 16)
            assert label is None or inside[graph.rows(label)]
