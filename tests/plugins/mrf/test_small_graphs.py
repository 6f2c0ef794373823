"""Prediction on one small graph by one call answers as the general way does, ties included."""

import itertools

import networkx as nx
import numpy as np
import pytest
from checks import plugged, refused
from direct_cases import both, fitted_general

from structsolve import StructuredSVM, hookimpl
from structsolve.plugins.mrf import MRFSpace, MRFStructure, grid_edges
from structsolve.plugins.mrf._oracle import TRWSOracle
from structsolve.plugins.mrf._small_graph import small_graph
from structsolve.plugins.mrf.decoders import FEW
from structsolve.plugins.mrf.elimination._plan import Plans
from structsolve.structure.ask import make_layout

FORMS = (
    list,
    lambda edges: [tuple(e) for e in edges],
    lambda edges: np.array(edges).reshape(-1, 2),
    lambda edges: np.array(edges, dtype=np.int32).reshape(-1, 2),
)


def fitted(K, structure=None, n_features=6, **params):
    """A model with weights that are small integers, so that labelings tie."""
    rng = np.random.default_rng(K)
    X = [(rng.normal(size=(K + 1, n_features)), [[0, 1], [1, 0]][: int(K > 0)]) for _ in range(2)]
    Y = [np.arange(K + 1) % K] * 2
    model = StructuredSVM(structure or MRFStructure(), max_iter=1, tol=1.0, **params).fit(X, Y)
    draw(model, rng)
    return model


def draw(model, rng):
    space = model.space_
    w = np.zeros(space.layout.dim)
    for block in space.layout.blocks:
        view = space.layout.view(w, block.name)
        view[...] = rng.integers(-1, 2, view.shape)
    model._model = type(model._model)(space, w)


def random_edges(rng, n):
    """Edges of a random graph: any order and direction, some twice, isolated nodes."""
    pairs = np.array(list(itertools.combinations(range(n), 2))).reshape(-1, 2)
    kept = pairs[rng.random(len(pairs)) < rng.choice([0.2, 0.5, 1.0])]
    if len(kept) and rng.random() < 0.3:
        kept = np.concatenate([kept, kept[rng.integers(0, len(kept), 2)]])
    kept = rng.permutation(kept)
    flip = rng.random(len(kept)) < 0.5
    kept[flip] = kept[flip, ::-1]
    return kept.tolist()


def is_cheap(model, x, edges):
    """Whether the graph has edges, and is a forest or narrow."""
    space = model.space_
    shape = space.graphs(make_layout(space, space.pack([(x, edges)])))
    cheap = shape.forest or Plans(shape, FEW, FEW).most_entries <= FEW
    return len(edges) > 0 and bool(cheap)


@pytest.mark.parametrize("oracle", ["auto", "exact"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("K", [1, 2, 3, 5, 8])
def test_answers_on_random_graphs(K, directed, oracle):
    structure = MRFStructure(directed=directed, oracle=oracle)
    model, rng = fitted(K, structure), np.random.default_rng(K + 10 * directed)
    both(model, [(np.ones((2, 6)), [[0, 1]])], direct=True)
    answers = 0
    for trial in range(150):
        if trial % 10 == 0:
            draw(model, rng)
        n = int(rng.integers(1, 10))
        edges = random_edges(rng, n)
        x = rng.integers(1, 3, (n, 6)).astype(rng.choice([np.float32, np.float64]))
        if trial % 3 == 0:
            x = rng.normal(size=(n, 6))
        direct = is_cheap(model, x, edges)
        answers += direct
        both(model, [(x, FORMS[trial % len(FORMS)](edges))], direct=direct)
        if n <= 5 and K <= 3:
            _is_best(model, x, edges)
    assert 20 < answers <= 150


def _is_best(model, x, edges):
    space, w = model.space_, model._model.weights
    rows = x @ space.layout.view(w, "node")[:-1] + space.layout.view(w, "node")[-1]
    table = space.layout.view(w, "pair")
    if not model.structure.directed:
        table = np.triu(table) + np.triu(table, 1).T

    def total(y):
        return sum(rows[v, s] for v, s in enumerate(y)) + sum(table[y[a], y[b]] for a, b in edges)

    y = model.predict([(x, edges)])[0]
    each = itertools.product(range(len(space.classes_)), repeat=len(x))
    assert total(y) == pytest.approx(max(map(total, each)), abs=1e-4)


def test_both_sides_of_the_limits():
    rng = np.random.default_rng(0)
    model = fitted(2, n_features=2)
    for n in (127, 128, 129):
        path = [[v, v + 1] for v in range(n - 1)]
        both(model, [(rng.normal(size=(n, 2)), path)], direct=n <= 128)
    for m in (255, 256, 257):
        edges = [[0, 1], [1, 2], [2, 0]] * 85 + [[0, 1]] * (m - 255)
        both(model, [(rng.normal(size=(3, 2)), edges)], direct=m <= 256)
    seen = set()
    for K, n in itertools.product((2, 3, 4), range(3, 15)):
        model = fitted(K, n_features=2)
        both(model, [(np.ones((2, 2)), [[0, 1]])], direct=True)
        for edges in (list(map(list, itertools.combinations(range(n), 2))), grid_edges(3, n)):
            x = rng.normal(size=(int(np.max(edges)) + 1, 2))
            direct = is_cheap(model, x, edges)
            both(model, [(x, edges)], direct=direct)
            seen.add((len(edges) > 40, direct))
    assert {direct for _, direct in seen} == {True, False}


def test_other_input_takes_the_general_way():
    model, rng = fitted(3), np.random.default_rng(1)
    x, square = rng.normal(size=(4, 6)), [[0, 1], [1, 2], [2, 3], [3, 0]]
    both(model, [(x, square)], direct=True)
    holed = x.copy()
    holed[2, 3] = np.nan
    array = np.array(square)
    unusual = [
        (holed, square), (x.tolist(), square), (x[:, :5], square), (x[:3], square), (x[:0], []),
        (np.zeros((4, 6)), square), (x[::2], [[0, 1]]), (x.astype(int), square), (x, []),
        (x, np.zeros((0, 2), int)), (x, array.astype(float)), (x, array[:, ::-1]), (x, array > 0),
        (x, array.astype(np.uint64)), (x, array.astype(str)), (x, array.T), (x, array[None]),
        (x, np.ma.masked_equal(array, 3)), (x, [[0, 0]]), (x, [[0, 4]]), (x, [[0, -1]]),
        (x, [[0, 1], [2]]), (x, [[0, 1.0]]), (x, [[0, 0.5]]), (x, [0, 1]), (x, "edges"), (x, None),
        (x, [[True, False]]), (x, [[0, 2**40]]), (x, tuple(map(tuple, square))), (x,),
        (x, square, np.ones((4, 1))), [x, square], x, None, (), nx.cycle_graph(4),
    ]  # fmt: skip
    for one in unusual:
        both(model, [one], direct=False)
        both(model, [(x, square), one], direct=False)
    for whole in ([], (x, square), ((x, square),), [(x, square)] * 2, np.stack([x, x])):
        both(model, whole, direct=False)


def test_what_else_takes_the_general_way():
    rng = np.random.default_rng(2)
    x, square = rng.normal(size=(4, 6)), [[0, 1], [1, 2], [2, 3], [3, 0]]
    for params in ({"oracle": "trws"}, {"predict_oracle": "lp"}):
        both(fitted(3, MRFStructure(**params)), [(x, square)], direct=False)
    both(fitted(3, MRFStructure(n_states=3)), [(x, square)], direct=True)
    both(fitted(3, MRFStructure(oracle="trws", predict_oracle="exact")), [(x, square)], direct=True)
    both(fitted(3, MRFStructure(void=2)), [(x, square)], direct=True)
    one = StructuredSVM(MRFStructure(edges=square), max_iter=1, tol=1.0)
    both(one.fit([x], [[0, 1, 2, 0]]), [x], direct=False)
    rows = StructuredSVM(MRFStructure(tables="features"), max_iter=1, tol=1.0)
    X = [(x, square, np.ones((4, 1)))]
    both(rows.fit(X, [[0, 1, 2, 0]]), X, direct=False)
    both(fitted(3), [(x, square)], direct=True)
    both(fitted(3, oracle="lp"), [(x, square)], direct=False)


def test_the_oracle_of_another_plugin_is_asked():
    class Narrow:
        @hookimpl(wrapper=True)
        def structsolve_oracle(self, space):
            bind = yield

            def other(layout):
                shape = space.graphs(layout)
                return bind(layout) if shape.forest else TRWSOracle(10, False, shape, layout)

            return other if isinstance(space, MRFSpace) else bind

    x, square = np.ones((4, 6)), [[0, 1], [1, 2], [2, 3], [3, 0]]
    plugin = Narrow()
    with plugged(plugin, "narrow"):
        both(fitted(3), [(x, square)], direct=False)
    both(fitted(3), [(x, square)], direct=True)


def test_places_of_other_tables_are_refused():
    square = [[0, 1], [1, 2], [2, 3], [3, 0]]
    space = MRFStructure(edges=square, tables="per-edge").score_space(2)
    shape = space.graphs(make_layout(space, space.pack_sizes([4])))
    refused("one table for all", small_graph, shape, FEW, square, 4)
    space = MRFStructure().score_space(2)
    shape = space.graphs(make_layout(space, space.pack_sizes([4], edges=[square])))
    assert small_graph(shape, FEW, square, 4).layout is None
    assert small_graph(shape, FEW, square, 3) is None
    assert small_graph(shape, 3, square, 4) is None
    for n in (-1, 0, 257):
        assert small_graph(shape, FEW, square, n) is None


def test_a_model_without_the_call_is_the_same_one():
    model, x = fitted(3), np.random.default_rng(3).normal(size=(4, 6))
    X = [(x, [[0, 1], [1, 2], [2, 0]])]
    assert fitted_general(model)._direct("oracle", X) is None
    both(model, X, direct=True)
