"""Multiclass: its operators against NumPy, and its forms of X and y."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from random_cases import class_scores
from reference.cones import in_cone
from scipy.special import logsumexp, softmax
from sklearn.exceptions import DataConversionWarning

from structsolve import ConePair
from structsolve.plugins.multiclass import MulticlassStructure
from structsolve.structure import calls
from structsolve.structure.ask import make_layout

KINDS = ["normal", "ties", "equal", "huge", "forbidden", "one left"]
WIDTHS = [*range(1, 35), 64, 100, 1000]


def objects(*entries):
    return np.fromiter(entries, dtype=object, count=len(entries))


def operators(k):
    space, _ = MulticlassStructure().make_space(np.zeros((1, 2)), [0], classes=range(k))
    layout = make_layout(space, space.pack(np.zeros((3, 2))))
    return (
        space,
        space.make_oracle()(layout),
        space.make_parts()(layout),
        space.make_projection("entropy")(layout),
    )


def power(oracle, space, name):
    return space.make_power(name)(oracle.layout)


@pytest.mark.parametrize("kind", KINDS)
def test_operators(kind):
    rng = np.random.default_rng(0)
    for k in WIDTHS:
        space, oracle, parts, projection = operators(k)
        best, some = (power(oracle, space, name) for name in ("max-marginals", "kbest"))
        for i in range(3):
            scores = class_scores(k, kind, rng)
            theta = np.zeros(space.layout.node_size)
            theta[:k] = scores
            label, value, bound = calls.argmax(oracle, i, theta)
            assert (label[0], value, bound) == (np.argmax(scores), scores.max(), scores.max())
            np.testing.assert_array_equal(calls.max_marginals(best, i, theta, k), scores[None])
            ranked = np.argsort(-scores, kind="stable")
            ranked = ranked[scores[ranked] > -np.inf]
            for n in (1, 2, 5, k, k + 3):
                labels, values = calls.kbest(some, i, theta, n)
                np.testing.assert_array_equal(labels[:, 0], ranked[:n])
                np.testing.assert_array_equal(values, scores[ranked[:n]])
            marginals, total, bound = calls.project(projection, i, theta)
            assert bound == total
            np.testing.assert_allclose(marginals[:k], softmax(scores), rtol=1e-13, atol=1e-300)
            assert total == pytest.approx(logsumexp(scores), rel=1e-14, abs=1e-14)
            assert not marginals[k:].any() and not marginals[:k][np.isneginf(scores)].any()
        index, value = calls.encode(parts, 0, np.array([k - 1], np.int32))
        assert index.tolist() == [k - 1] and value.tolist() == [1]
        truth = np.zeros(1, np.int32)
        index, value = calls.difference(parts, 0, truth, np.array([k - 1], np.int32))
        assert np.bincount(index, value, minlength=k)[0] == (k > 1)
        assert np.bincount(index, value, minlength=k)[k - 1] == (-1 if k > 1 else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_best_class_in_a_cone(kind):
    rng = np.random.default_rng(1)
    slopes = [0.0, 0.5, 1.0, 2.0, 3.0, np.inf]
    full = 0
    for k in [*range(1, 12), 64]:
        space, oracle, *_ = operators(k)
        cones = power(oracle, space, "cones")
        for _ in range(120):
            theta, cost = np.zeros((2, space.layout.node_size))
            theta[:k], cost[:k] = class_scores(k, kind, rng), rng.integers(0, 4, k)
            if rng.random() < 0.5:  # ties, and points on the sides
                theta[:k] = np.round(np.clip(theta[:k], -3, 3))
            beta, alpha = sorted(rng.choice(slopes, 2))
            beta = min(beta, 3.0)
            lam, h0, g0 = rng.choice([0, 0.5, 1, 4]), rng.integers(-1, 3), rng.integers(0, 2)
            cone = ConePair(h0, g0, lam, alpha, beta, bool(rng.random() < 0.5))
            h, g = theta[:k] + h0, cost[:k] + g0
            inside = np.flatnonzero(in_cone(cone, h, g))
            answer = calls.argmax_in_cone(cones, 0, theta, cost, cone)
            if inside.size == 0:
                assert answer is None
                continue
            full += 1
            mu, label, value = answer
            values = (h + lam * g)[inside]
            assert mu is None and value == values.max()
            assert label[0] == inside[np.argmax(values)]
    assert full > 100


@pytest.mark.parametrize("kind", KINDS)
def test_the_relaxation_is_the_simplex(kind):
    rng = np.random.default_rng(3)
    for k in WIDTHS:
        space, oracle, *_ = operators(k)
        theta = np.zeros(space.layout.node_size)
        theta[:k] = class_scores(k, kind, rng)
        mu, label, value, bound = calls.relax(power(oracle, space, "relaxation"), 0, theta)
        assert (label[0], value) == (np.argmax(theta[:k]), theta[:k].max())
        assert bound == value
        np.testing.assert_array_equal(mu, np.arange(len(theta)) == label[0])
        assert calls.argmax(oracle, 0, theta) == (label, value, value)


def test_bans():
    space, oracle, _, _ = operators(4)
    theta = np.array([1.0, 3.0, -np.inf, 2.0])
    kbest = power(oracle, space, "kbest")
    labels, values = calls.kbest(kbest, 0, theta, 3, banned=[[1], [1]])
    assert labels.ravel().tolist() == [3, 0] and values.tolist() == [2, 1]


@pytest.mark.parametrize("bad", [-np.inf, np.nan, np.inf])
def test_no_class_left(bad):
    space, oracle, _, projection = operators(3)
    theta = np.array([bad] * 3 + [0.0])
    refused("example 2: every class is forbidden", calls.project, projection, 2, theta)
    labels, _ = calls.kbest(power(oracle, space, "kbest"), 0, theta, 3)
    assert labels.min() >= 0 and labels.max() < 3


def test_bad_arguments_are_refused():
    _, oracle, parts, projection = operators(3)
    theta = np.zeros(4)
    for i in (-1, 3):
        refused(f"example {i}", calls.argmax, oracle, i, theta)
    for wrong in (np.zeros(3), np.zeros(5), np.zeros(4, np.float32)):
        refused("theta", calls.project, projection, 0, wrong)
    for label in (-1, 3):
        refused("states from", calls.encode, parts, 0, np.array([label], np.int32))


class TestSpace:
    X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])

    @pytest.mark.parametrize(
        "y",
        [
            ["b", "a", "b"],
            np.array(["b", "a", "b"], dtype=object),
            [4, 2, 4],
            np.array([4.0, 2.0, 4.0]),
            [True, False, True],
            np.array([4, 2, 4], dtype=object),
        ],
    )
    def test_round_trip(self, y):
        space, examples = MulticlassStructure().make_space(self.X, y)
        assert examples.labels.tolist() == [1, 0, 1] and examples.n == 3
        assert space.classes_.dtype != object
        assert space.unpack(examples.labels, examples).tolist() == np.asarray(y).tolist()
        rows = np.arange(6.0).reshape(3, 2)
        assert space.unpack_scores(rows, examples) is rows
        again = MulticlassStructure().space_from_state(*space.state())
        assert again.pack(self.X, y).labels.tolist() == [1, 0, 1]
        assert again.layout.dim == space.layout.dim

    @pytest.mark.parametrize(
        "X",
        [
            sp.csr_matrix(X),
            sp.csc_array(X),
            X.astype(np.float32),
            X.astype(int),
            X.tolist(),
            np.asfortranarray(X),
        ],
    )
    def test_forms_of_x(self, X):
        space, _ = MulticlassStructure().make_space(X, [0, 1, 0])
        nodes = space.pack(X).nodes
        np.testing.assert_array_equal(nodes.toarray() if sp.issparse(nodes) else nodes, self.X)
        assert space.layout.blocks[0].name == "node" and len(space.layout.blocks) == 1

    def test_data_frame(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(self.X, columns=["u", "v"])
        y = pandas.Series(["p", "q", "p"])
        space, examples = MulticlassStructure().make_space(frame, y)
        assert examples.labels.tolist() == [0, 1, 0]

    def test_column_vector(self):
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            space, _ = MulticlassStructure().make_space(self.X, [[1], [0], [1]])
        assert space.classes_.tolist() == [0, 1]

    @pytest.mark.parametrize(
        "y, message",
        [
            ([2.0, 1.25, 0.5], "y, example 1: Unknown label type: continuous: found 1.25"),
            ([[0, 1], [1, 0], [1, 1]], "y should be a 1d array"),
            ([0, [1, 0], 1], r"y, example 1: found \[1, 0\], expected one class per row"),
            (["a", "b", ["a", "b"]], r"y, example 2: found \['a', 'b'\], expected one class"),
            (None, "requires y to be passed, but the target y is None"),
            ([0, 1], "inconsistent numbers of samples: 3 rows of X, 2 labels"),
            ([0.0, np.inf, 1.0], "y, example 1: Input y contains infinity"),
            ([0.0, 1.0, np.nan], "y, example 2: Input y contains NaN"),
            ([1, 10**30, 2], "such as 10{30} of example 1, expected .* of 64 bits"),
            (np.array(["a", 1, "b"], dtype=object), r"Unknown label type: found \['int', 'str'\]"),
            ([b"a", b"b", b"c"], r"found \['bytes'\], such as b'a' of example 0"),
            (
                np.array([1, None, 2], dtype=object),
                r"found \['NoneType', 'int'\], such as None of example 1, expected .*LatentSVM",
            ),
            ([None, "a", "b"], r"such as None of example 0, .*LatentSVM takes None"),
            (objects((1, 2), (3, 4), (1, 2)), r"y, example 0: found \(1, 2\), expected one class"),
            (objects((1, 2), (3,), (1, 2)), r"y, example 0: found \(1, 2\), expected one class"),
            ([1, 2**63, 2], "y, example 1: found 9223372036854775808, a label that .* rounds"),
            (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "label type"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:invalid value")
    def test_bad_y(self, y, message):
        with pytest.raises(ValueError, match=message):
            MulticlassStructure().make_space(self.X, y)

    def test_unseen_labels(self):
        space, _ = MulticlassStructure().make_space(self.X, [0, 1, 0])
        refused("example 2: label .*7.* was not seen in training", space.pack, self.X, [0, 1, 7])
        assert space.pack(self.X, [0, 1, 7], unseen="extra").labels.tolist() == [0, 1, 2]

    def test_masks(self):
        space, _ = MulticlassStructure().make_space(self.X, ["a", "b", "c"])
        examples = space.pack(self.X)
        mask = space.mask(examples, allowed=[["a"], None, ["b", "c"]])["node"]
        expected = [[True, False, False], [True] * 3, [False, True, True]]
        assert (mask == 0).tolist() == expected
        assert np.isneginf(mask[~np.array(expected)]).all()
        assert space.mask(examples) == {}
        with pytest.raises(ValueError, match="forbidden transitions: multiclass has none"):
            space.mask(examples, forbidden=[("a", "b")])
        refused("example 0, node 0: allowed is", space.mask, examples, allowed=[["z"], None, None])
        refused("allowed has 1 entries, expected 3", space.mask, examples, allowed=[["a"]])

    def test_sample(self):
        X, y = MulticlassStructure().sample(0, n=5, size=4)
        assert X.shape == (5, 3) and y.shape == (5,) and y.max() < 4
        space, _ = MulticlassStructure().make_space(X, y)
        labels = space.enumerate_labels(space.pack(X), 0)
        assert labels.tolist() == [[s] for s in range(len(space.classes_))]
