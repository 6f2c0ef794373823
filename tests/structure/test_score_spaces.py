"""Spaces and examples without features equal those of the same data with features."""

import numpy as np
import pytest
from batch_cases import HIERARCHY, network
from checks import plugged, refused

from structsolve import Examples, FunctionStructure, get_structure
from structsolve.batch import Scores, argmax, score_space, value_and_gradient

RNG = np.random.default_rng(0)


def tables(X):
    """Sizes of tables of pairs, and whether pairs have no features."""
    sizes = [x.shape[:2] for x in X]
    return sizes, {"forbidden": [np.isnan(x).all(axis=2) for x in X]}


def sentences(X):
    sizes = [x.shape[1] for x in X]
    arcs = [np.argwhere(~np.isnan(x).all(axis=2).T & ~np.eye(*x.shape[:2], -1, bool).T) for x in X]
    heads = np.concatenate([pairs[:, 1] for pairs in arcs])
    modifiers = np.concatenate([pairs[:, 0] + 1 for pairs in arcs])
    return sizes, {"heads": heads, "modifiers": modifiers, "n_arcs": [len(a) for a in arcs]}


# How sizes and graphs are read from X, and classes from a space.
SIZES = {
    "chain": lambda X: ([len(x) for x in X], {}),
    "tree": lambda X: ([len(x[0]) for x in X], {"trees": [x[1] for x in X]}),
    "mrf": lambda X: ([len(x[0]) for x in X], {"edges": [x[1] for x in X]}),
    "grid": lambda X: ([x.shape[:2] for x in X], {}),
    "alignment": lambda X: ([x.shape[:2] for x in X], {}),
    "matching": tables,
    "dependency": sentences,
    "spans": lambda X: ([len(x) for x in X], {}),
    "rows": lambda X: (len(X), {}),
}
CASES = [
    ("chain", {"transitions": False}, "chain", True),
    ("tree", {}, "tree", True),
    ("semi-markov", {"max_length": 3}, "chain", True),
    ("mrf", {"directed": True}, "mrf", True),
    ("mrf", {"tables": "features"}, "mrf", True),
    ("mrf", {"edges": [[0, 1], [2, 1]], "tables": "per-edge"}, "chain", True),
    ("mrf", {"edges": [[0, 1], [2, 1]], "n_states": [2, 2, 3]}, "chain", False),
    ("factor-graph", {"factors": [(0, 1, 2), (2, 1)]}, "chain", True),
    ("factor-graph", {"factors": [(0, 1, 2)], "n_states": [2, 2, 3]}, "chain", False),
    ("grid", {"neighbours": 8}, "grid", True),
    ("grid", {"by_direction": True}, "grid", True),
    ("permutation", {"kind": "matching"}, "matching", False),
    ("permutation", {"kind": "ranking"}, "rows", True),
    ("alignment", {}, "alignment", False),
    ("dependency", {}, "dependency", False),
    ("dependency", {"labelled": True}, "dependency", True),
    ("cky", {}, "spans", True),
    ("cky", {"grammar": True}, "spans", True),
    ("multiclass", {}, "rows", True),
    ("ordinal", {}, "rows", True),
    ("ordinal", {"thresholds": True}, "rows", True),
    ("multilabel", {}, "rows", True),
    ("multilabel", {"edges": "none"}, "rows", True),
    ("dag", {"hierarchy": HIERARCHY, "labels": "leaf-union"}, "rows", False),
    ("dag", {"hierarchy": HIERARCHY, "labels": "single-leaf"}, "rows", False),
    ("flow", {"network": network()}, "rows", False),
]


@pytest.mark.parametrize(("name", "params", "sizes", "classes"), CASES)
def test_the_same_with_and_without_features(name, params, sizes, classes):
    structure = get_structure(name, **params)
    for seed in range(5):
        X, Y = structure.sample(seed)
        space, examples = structure.make_space(X, Y)
        edge = space.layout.edge is not None
        bare = score_space(structure, list(space.classes_) if classes else None, edge=edge)
        assert [(b.name, b.kind, b.shape) for b in bare.layout.blocks] == [
            (b.name, b.kind, b.shape) for b in space.layout.blocks
        ]
        given, topology = SIZES[sizes](X)
        packed = bare.pack_sizes(given, **topology)
        assert packed.nodes is None and packed.edges is None and packed.labels is None
        for what in ("offsets", "label_offsets"):
            np.testing.assert_array_equal(getattr(packed, what), getattr(examples, what))
        if edge:
            np.testing.assert_array_equal(packed.edge_offsets, examples.edge_offsets)
        for key, value in examples.topology.items():
            if isinstance(value, (np.ndarray, bool)):
                np.testing.assert_array_equal(packed.topology[key], value)
        if name == "dependency":
            mine, arcs = packed.topology["arcs"], examples.topology["arcs"]
            assert mine.heads.tolist() == arcs.heads.tolist()
            assert mine.modifiers.tolist() == arcs.modifiers.tolist()
        # Both spaces answer alike.
        node = RNG.normal(size=(int(examples.offsets[-1]), *space.layout.node.shape))
        one, two = Scores(node, examples=packed), Scores(node, examples=examples)
        first, second = argmax(bare, one), argmax(space, two)
        assert first[0].tolist() == second[0].tolist()
        np.testing.assert_allclose(first[1], second[1])
        values = [
            value_and_gradient(s, x, examples.labels)[0] for s, x in ((bare, one), (space, two))
        ]
        np.testing.assert_allclose(*values)


@pytest.mark.parametrize(
    ("name", "classes", "edge", "message"),
    [
        ("chain", None, False, "structure 'chain': classes is None, expected their number"),
        ("chain", 0, False, "classes is 0, expected their number"),
        ("chain", "noun", False, "classes is 'noun', expected their number"),
        ("chain", ["b", "a"], False, "expected them sorted: the scores of class k"),
        ("tree", ["a", "a"], False, "expected distinct"),
        ("multiclass", 3, True, "edge is True, but structure 'multiclass' has no scores of edges"),
        ("dependency", 3, False, "classes: dependency trees have none without labelled=True"),
        ("mrf", 3, True, "tables of structure 'mrf' do not differ .* give it tables='features'"),
        ("grid", 3, True, "tables of structure 'grid' do not differ .* by_direction=True"),
        ("multilabel:edges=tree", 3, False, "edges is 'tree', .* pairs chosen by training labels"),
        ("permutation:kind=matching", 3, False, "classes: matchings have none"),
        ("ringz", 3, False, "unknown structure 'ringz'"),
    ],
)
def test_bad_spaces(name, classes, edge, message):
    refused(message, score_space, name, classes, edge=edge)


def test_other_bad_spaces():
    with pytest.raises(
        ValueError, match=r"classes: found \[0, 1, 2\], expected 0 to 3 as n_states"
    ):
        score_space(get_structure("mrf", n_states=4), 3)
    with pytest.raises(ValueError, match=r"classes: found \[0, 1\], expected \['low', 'high'\]"):
        score_space(get_structure("ordinal", classes=["low", "high"]), 2)
    with pytest.raises(ValueError, match="classes: expected those of the hierarchy"):
        score_space(get_structure("dag", hierarchy=HIERARCHY), ["x"])
    with pytest.raises(ValueError, match="classes: flows have none"):
        score_space(get_structure("flow", network=network()), 2)
    with pytest.raises(NotImplementedError, match="FunctionStructure does not implement score_"):
        score_space(FunctionStructure(len, len, len))
    assert score_space(get_structure("ordinal", classes=["low", "high"])).classes_.tolist() == [
        "low",
        "high",
    ]


@pytest.mark.parametrize(
    ("name", "classes", "sizes", "topology", "message"),
    [
        ("chain", 2, [2, 0], {}, "example 1: lengths: found 0, expected at least 1"),
        ("chain", 2, 3, {}, r"lengths: found int64 of shape \(\), expected one integer per"),
        ("chain", 2, [1.5], {}, r"lengths: found float64 of shape \(1,\)"),
        ("multiclass", 2, [1, 1], {}, r"sizes is \[1, 1\], expected the number of examples"),
        ("multiclass", 2, 0, {}, "sizes is 0, expected the number of examples"),
        ("tree", 2, [2], {}, "trees: found None, expected one for each of 1"),
        ("tree", 2, [2], {"trees": [[1, 0]]}, "example 0"),
        ("mrf", 2, [2], {}, "edges: found None, expected those of each of 1 graphs"),
        ("tree", 2, [2], {"trees": 3}, "trees: found 3, expected one for each of 1"),
        ("mrf", 2, [2], {"edges": 3}, "edges: found 3, expected those of each of 1 graphs"),
        ("dependency", None, [10**9], {}, r"1e\+18 arcs would take"),
        ("mrf", 2, [2], {"edges": [[[0, 2]]]}, "example 0, edges: edge 0 is"),
        ("grid", 2, [3], {}, r"sizes: found int64 of shape \(1,\), expected integers \(n, 2\)"),
        ("grid", 2, [[2, 3], [0, 2]], {}, "example 1: height and width: found 0"),
        ("alignment", None, [[10**9, 10**9]], {}, r"1e\+18 scores would take .*smaller examples"),
        ("permutation", None, [[3, 2]], {}, "example 0"),
        (
            "permutation",
            None,
            [[2, 2]],
            {"forbidden": [np.zeros(4, bool)]},
            r"forbidden: found bool of shape \(4,\), expected bool of shape \(2, 2\)",
        ),
        ("dependency", None, [2], {"heads": [0, 0], "modifiers": [2, 1]}, "expected them in order"),
        ("dependency", None, [2], {"heads": [0]}, "expected both or neither"),
    ],
)
def test_bad_sizes(name, classes, sizes, topology, message):
    with pytest.raises(ValueError, match=message):
        score_space(name, classes).pack_sizes(sizes, **topology)


def test_topology_that_a_structure_does_not_take():
    for name, sizes in (("chain", [1]), ("multiclass", 1), ("grid", [[1, 1]]), ("dependency", [1])):
        space = score_space(name, None if name == "dependency" else 2)
        with pytest.raises(TypeError, match=r"pack_sizes\(\) got \['trees'\], which the structure"):
            space.pack_sizes(sizes, trees=[])


def test_new_plugins_are_asked():
    from structsolve import hookimpl

    space = score_space("chain", 2)
    scores = Scores(np.array([[0.0, 1.0]]), examples=space.pack_sizes([1]))
    assert argmax(space, scores)[0].tolist() == [1]

    class Other:
        @hookimpl(tryfirst=True)
        def structsolve_oracle(self, space):
            def bind(layout):
                raise ValueError("asked of another oracle")

            return bind

    with plugged(Other(), "other"), pytest.raises(ValueError, match="asked of another oracle"):
        argmax(space, scores)
    assert argmax(space, scores)[0].tolist() == [1]


def test_no_examples():
    space = score_space("chain", 2)
    empty = Examples(np.zeros(1, np.int64))
    scores = Scores(np.zeros((0, 2)), {"start": np.ones(2)}, examples=empty)
    values, gradient = value_and_gradient(space, scores, np.zeros(0, np.int32))
    assert values.shape == (0,) and gradient.shared["start"].tolist() == [0, 0]
    assert argmax(space, scores)[0].shape == (0,)
