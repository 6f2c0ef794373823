"""Ordinal: operators of the threshold model against enumeration, labels in order, training."""

import numpy as np
import pytest
from checks import LOSS, refused, reloaded
from scipy.special import logsumexp, softmax
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import ConePair, CostMatrix, StructuredSVM
from structsolve.algorithms.simplex_projection import project_simplex
from structsolve.batch import Scores, argmax, k_best, marginals, score_space, value_and_gradient
from structsolve.plugins.ordinal import OrdinalSpace, OrdinalStructure, ThresholdSpace
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_loss, ask_parts, make_layout
from structsolve.testing import check_structure


def with_thresholds(k, n=3):
    space, _ = OrdinalStructure(thresholds=True).make_space(np.zeros((n, 2)), [0] * n, range(k))
    return space, make_layout(space, space.pack(np.zeros((n, 2)), np.arange(n) % k))


def class_scores(space, theta):
    views = space.layout.theta_views(theta, 1, 0)
    k = np.arange(len(space.classes_))
    steps = np.append(0, np.cumsum(views.get("threshold", [])))
    return k * views["node"][0, 0] - steps


def draw(space, rng, kind):
    theta = np.zeros(space.layout.theta_size(1, 0))
    for view in space.layout.theta_views(theta, 1, 0).values():
        view[...] = rng.integers(-1, 2, view.shape) if kind == "tied" else rng.normal(
            scale={"normal": 1, "huge": 1e4, "zero": 0}[kind], size=view.shape
        )  # fmt: skip
    return theta


@pytest.mark.parametrize("thresholds", [False, True])
@pytest.mark.parametrize("loss", ["absolute", "zero-one"])
def test_conformance(thresholds, loss):
    only = LOSS if loss == "zero-one" else None
    check_structure(OrdinalStructure(thresholds), loss=loss, n_cases=3, size=4, only=only)


@pytest.mark.parametrize("kind", ["normal", "tied", "huge", "zero"])
def test_operators_on_thresholds(kind):
    rng = np.random.default_rng(0)
    for k in [*range(1, 12), 33]:
        space, layout = with_thresholds(k)
        oracle, parts = space.make_oracle()(layout), space.make_parts()(layout)
        powers = {n: space.make_power(n)(layout) for n in ("kbest", "relaxation", "cones")}
        assert space.make_power("max-marginals") is None
        soft, hard = (space.make_projection(n)(layout) for n in ("entropy", "euclidean"))
        assert soft.gibbs and soft.has_state and not hard.gibbs
        for _ in range(10):
            theta = draw(space, rng, kind)
            s = class_scores(space, theta)
            label, value, bound = calls.argmax(oracle, 1, theta)
            assert s[label[0]] == pytest.approx(s.max(), rel=1e-12) == value == bound
            labels, values = calls.kbest(powers["kbest"], 0, theta, k + 2)
            assert sorted(labels.ravel()) == list(range(k))
            np.testing.assert_allclose(values, np.sort(s)[::-1], rtol=1e-12, atol=1e-9)
            mus = [np.zeros(len(theta)) for _ in range(k)]
            for y, mu in enumerate(mus):
                index, entries = calls.encode(parts, 2, np.array([y], np.int32))
                np.add.at(mu, index, entries)
                assert mu @ theta == pytest.approx(s[y], rel=1e-12, abs=1e-9)
            mu, label, value, bound = calls.relax(powers["relaxation"], 0, theta)
            assert s[label[0]] == pytest.approx(value, rel=1e-12) and bound == value
            np.testing.assert_array_equal(mu, mus[label[0]])
            cone = ConePair(0.0, 1.0, 0.5, np.inf, 0.0, False)
            inside = np.flatnonzero(s >= 0)  # class 0 scores 0
            answer = calls.argmax_in_cone(powers["cones"], 0, theta, np.zeros(len(theta)), cone)
            assert answer[1][0] in inside and answer[2] == pytest.approx(s.max() + 0.5)
            p, value, _ = projection_calls.project_state(soft, 0, theta)
            np.testing.assert_allclose(p[:k], softmax(s), atol=1e-9)
            assert value == pytest.approx(logsumexp(s), rel=1e-12, abs=1e-12)
            mu, value, bound = calls.project(soft, 0, theta)
            assert value == pytest.approx(logsumexp(s), rel=1e-12, abs=1e-12) == bound
            np.testing.assert_allclose(mu, softmax(s) @ np.array(mus), atol=1e-7)
            p, value, _ = projection_calls.project_state(hard, 0, theta)
            np.testing.assert_allclose(p[:k], project_simplex(s), atol=1e-9)
            assert value == pytest.approx(p[:k] @ s - p @ p / 2, rel=1e-9, abs=1e-9)


def test_probabilities_that_are_tiny_stay_apart():
    """States hold probabilities one by one: differences of pooled thresholds would be 0."""
    space, layout = with_thresholds(4)
    soft = space.make_projection("entropy")(layout)
    theta = np.zeros(9)
    theta[8] = -60.0
    p, value, _ = projection_calls.project_state(soft, 0, theta)
    np.testing.assert_allclose(p[:4], np.exp([0, -60, -120, -180]), rtol=1e-12)
    label = projection_calls.state_of(soft, 0, np.array([3], np.int32))
    slope = projection_calls.slope(soft, 0, p, label, 0.0)
    assert slope + theta[8] * 3 == pytest.approx(0, abs=1e-9)


def test_thresholds_of_minus_infinity_are_refused():
    # A class above such a threshold scores +inf, so that no label is the best and none has a share.
    space = score_space(OrdinalStructure(thresholds=True), 4)
    for direction, where in ((0.0, 0), (1.5, 1), (0.0, 2), (-np.inf, 1)):
        thresholds = np.arange(3.0)
        thresholds[where] = -np.inf
        scores = Scores(np.full((2, 1), direction), {"threshold": thresholds})
        scores.examples = space.pack_sizes(2)
        for call in (argmax, marginals, lambda *given: k_best(*given, 9)):
            refused("example 0: by its thresholds a class scores inf", call, space, scores)
        refused("by its thresholds", value_and_gradient, space, scores, np.array([0, 3]), "crf")
    scores.shared["threshold"] = np.arange(3.0)  # no class above the first
    assert argmax(space, scores)[0].tolist() == [0, 0]
    assert [len(labels) for labels in k_best(space, scores, 9)[0]] == [1, 1]


@pytest.mark.parametrize("loss", ["absolute", "normalized-absolute", "hamming", "zero-one", "any"])
def test_losses(loss):
    rng = np.random.default_rng(0)
    for k in (1, 2, 3, 6):
        cost = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
        if loss == "normalized-absolute":
            cost /= max(k - 1, 1)
        elif loss in ("hamming", "zero-one"):
            cost = 1 - np.eye(k)
        elif loss == "any":
            cost = rng.integers(0, 9, (k, k)) * (1.0 - np.eye(k))
        for thresholds in (False, True):
            X, y = np.zeros((5, 2)), rng.integers(0, k, 5)
            space, examples = OrdinalStructure(thresholds).make_space(X, y, range(k))
            layout = make_layout(space, examples)
            native = ask_loss(space, CostMatrix(cost) if loss == "any" else loss)(layout)
            native.check_truths(layout.examples.labels)
            parts = ask_parts(space)(layout)
            assert native.decomposes and native.has_costs
            assert native.zero_one == (loss == "zero-one")
            mus = np.zeros((k, space.layout.theta_size(1, 0)))
            for j in range(k):
                np.add.at(mus[j], *calls.encode(parts, 0, np.array([j], np.int32)))
            for i, truth in enumerate(y):
                true_label = np.array([truth], np.int32)
                values = [
                    calls.loss_value(native, i, true_label, np.array([j], np.int32))
                    for j in range(k)
                ]
                np.testing.assert_allclose(values, cost[truth])
                theta = np.zeros(mus.shape[1])
                const = calls.augment(native, i, true_label, 2.0, theta)
                np.testing.assert_allclose(mus @ theta + const, 2 * cost[truth], atol=1e-12)
            p = rng.dirichlet(np.ones(k))
            costs, const = projection_calls.costs(native, 0, p @ mus)
            np.testing.assert_allclose(mus @ costs + const, p @ cost, atol=1e-12)
            costs, const = projection_calls.costs(native, 0, p @ mus, transposed=True)
            np.testing.assert_allclose(mus @ costs + const, cost @ p, atol=1e-12)


class TestLabels:
    X = np.arange(8.0).reshape(4, 2)

    @pytest.mark.parametrize(
        "y",
        [[2, 4, 3, 2], [2.0, 4.0, 3.0, 2.0], np.array([2, 4, 3, 2], dtype=object), [-1, 1, 0, 1]],
    )
    def test_integers(self, y):
        for thresholds, cls in ((False, OrdinalSpace), (True, ThresholdSpace)):
            structure = OrdinalStructure(thresholds)
            space, examples = structure.make_space(self.X, y)
            assert type(space) is cls and len(space.classes_) == 3
            assert examples.labels.tolist() == [int(a - min(y)) for a in y]
            assert space.unpack(examples.labels, examples).tolist() == list(y)
            again = structure.space_from_state(*space.state())
            assert again.pack(self.X, y).labels.tolist() == examples.labels.tolist()
            assert again.layout.blocks == space.layout.blocks

    def test_order_is_that_of_the_given_classes(self):
        y = ["low", "high", "mid", "low"]
        order = ["low", "mid", "high", "highest"]
        for thresholds in (False, True):
            space, examples = OrdinalStructure(thresholds, order).make_space(self.X, y)
            assert space.classes_.tolist() == order
            assert examples.labels.tolist() == [0, 2, 1, 0]
            assert space.unpack(examples.labels, examples).tolist() == y
            assert space.pack(self.X, [*y[:3], "?"], unseen="extra").labels[3] == 4
        space, _ = OrdinalStructure(classes=[10, 20, 50]).make_space(self.X, [10, 50, 20, 10])
        assert space.pack(self.X, [10, 50, 20, 10]).labels.tolist() == [0, 2, 1, 0]

    @pytest.mark.parametrize(
        "y, classes, message",
        [
            (
                [1, 2, 5, 7],
                None,
                "found no label 3 between 2 and 5, expected integers without gaps",
            ),
            ([-3.0, 0.0, 1.0, 1.0], None, "found no label -2 between -3.0 and 0.0"),
            (list("abca"), None, "strings .* whose order is not known; pass Ord"),
            (list("abca"), ["b", "a"], "classes: found no 'c' among"),
            ([1, 2, 3, 9], [1, 2, 3], "classes: found no 9 among"),
            ([1, 2, 3, 3], [1, 2, 2, 3], "classes must be a flat list without repetition"),
            ([0.5, 1.5, 2.0, 3.0], None, "Unknown label type"),
            ([1, 2, 3], None, "inconsistent numbers of samples"),
            (None, None, "requires y"),
        ],
    )
    def test_bad_labels(self, y, classes, message):
        with pytest.raises(ValueError, match=message):
            OrdinalStructure(classes=classes).make_space(self.X, y)

    @pytest.mark.pandas
    def test_an_ordered_categorical_has_its_order(self):
        pd = pytest.importorskip("pandas")
        for y, order in (("abca", "bcad"), ([2, 9, 5, 2], [5, 2, 9, 7])):
            kinds = pd.CategoricalDtype(list(order), ordered=True)
            series = pd.Series(list(y), dtype=kinds, index=[7, 3, 5, 1])
            for told in (series, series.array):
                space, examples = OrdinalStructure().make_space(self.X, told)
                assert space.classes_.tolist() == list(order)
                assert examples.labels.tolist() == [list(order).index(one) for one in y]
                model = StructuredSVM("ordinal", alpha=0.1).fit(self.X, told)
                given = StructuredSVM(OrdinalStructure(classes=list(order)), alpha=0.1)
                given.fit(self.X, list(y))
                np.testing.assert_array_equal(model.coef_["node"], given.coef_["node"])
                given.fit(self.X, told)
                turned = StructuredSVM(OrdinalStructure(classes=list(order)[::-1]))
                with pytest.raises(ValueError, match="y: found ordered categories .* in the order"):
                    turned.fit(self.X, told)
        with pytest.raises(ValueError, match="whose order is not known"):
            OrdinalStructure().make_space(self.X, pd.Categorical(list("abca")))

    def test_classes_of_partial_fit_come_in_any_order(self):
        space, _ = OrdinalStructure().make_space(self.X, [1, 1, 5, 1], [5, 1, 2])
        assert space.classes_.tolist() == [1, 2, 5]
        with pytest.raises(ValueError, match="whose order is not known"):
            OrdinalStructure().make_space(self.X, list("abab"), ["b", "a"])
        space, _ = OrdinalStructure(classes=["b", "a"]).make_space(self.X, list("abab"), ["a", "b"])
        assert space.classes_.tolist() == ["b", "a"]
        with pytest.raises(ValueError, match="classes: found no 9 among"):
            OrdinalStructure().make_space(self.X, [1, 2, 3, 9], [1, 2, 3])

    def test_unseen_labels(self):
        for thresholds in (False, True):
            space, _ = OrdinalStructure(thresholds).make_space(self.X, [1, 2, 3, 1])
            refused("example 3: label 4 was not seen in training", space.pack, self.X, [1, 2, 3, 4])
            examples = space.pack(self.X, [1, 2, 3, 4], unseen="extra")
            layout = make_layout(space, examples)
            hamming = ask_loss(space, "hamming")(layout)
            hamming.check_truths(examples.labels)
            value = calls.loss_value(hamming, 3, examples.label(3), np.zeros(1, np.int32))
            assert value == 1
            theta = np.zeros(layout.sizes(3)[0])
            assert calls.augment(hamming, 3, examples.label(3), 2.0, theta) == 2
            assert not theta.any()
            for loss in ("absolute", "normalized-absolute", CostMatrix(1 - np.eye(3))):
                native = ask_loss(space, loss)(layout)
                with pytest.raises(ValueError, match="example 3: loss .* not seen in training"):
                    native.check_truths(examples.labels)

    def test_masks(self):
        space, _ = OrdinalStructure().make_space(self.X, [0, 1, 2, 0])
        examples = space.pack(self.X)
        assert (space.mask(examples, allowed=[[1], None, None, None])["node"][0] == 0).sum() == 1
        space, _ = OrdinalStructure(True).make_space(self.X, [0, 1, 2, 0])
        assert space.mask(space.pack(self.X)) == {}
        with pytest.raises(ValueError, match="allowed: ordinal classes on thresholds"):
            space.mask(space.pack(self.X), allowed=[[1], None, None, None])


def noisy(n=200, k=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    u = X @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=n)
    return X, np.searchsorted(np.linspace(-2, 2, k - 1), u)


class TestEstimator:
    def test_thresholds_learn_what_is_ordered(self):
        X, y = noisy()
        model = StructuredSVM(OrdinalStructure(True), loss="absolute", alpha=0.01, tol=1e-3)
        model.fit(X[:150], y[:150])
        off = np.abs(model.predict(X[150:]) - y[150:])
        assert off.mean() < 0.35 and off.max() <= 2
        assert model.score(X[150:], y[150:]) == pytest.approx(1 - off.mean())
        b = model.coef_["threshold"]
        assert (np.diff(b) > 0).all()
        u = X @ model.coef_["node"][:, 0]
        np.testing.assert_array_equal(model.predict(X), np.searchsorted(b, u))
        p = model.predict_marginals(X[:7], scale=2.0)
        s = np.arange(5) * u[:7, None] - np.append(0, np.cumsum(b))
        np.testing.assert_allclose(p, softmax(2 * s, axis=1), atol=1e-9)
        assert [a[0] for a in model.predict_kbest(X[:7], 2)[0]][0] == model.predict(X[:7])[0]
        refused("decision_function needs max-marginals", model.decision_function, X)
        names = {block for block, *_ in model.named_weights()}
        assert names == {"threshold", "node"}

    def test_scores_of_their_own(self, tmp_path):
        X, y = noisy()
        model = StructuredSVM("ordinal", loss="absolute", alpha=0.01, tol=1e-3).fit(X, y)
        assert np.abs(model.predict(X) - y).mean() < 0.4
        assert model.decision_function(X).shape == model.predict_marginals(X).shape == (200, 5)
        path = tmp_path / "m.structsolve"
        model.save(path)
        np.testing.assert_array_equal(structsolve.load(path).predict(X), model.predict(X))

    @pytest.mark.parametrize("thresholds", [False, True])
    def test_saved_and_loaded(self, thresholds, tmp_path):
        X, y = noisy(60)
        names = np.array(["e", "d", "c", "b", "a"])
        model = StructuredSVM(
            OrdinalStructure(thresholds, list(names)), loss="absolute", max_iter=5, tol=0.5
        ).fit(X, names[y])
        loaded = reloaded(model, tmp_path)
        assert loaded.classes_.tolist() == list(names)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))

    @pytest.mark.parametrize("structure", ["ordinal", OrdinalStructure(True)])
    def test_grid_search(self, structure):
        X, y = noisy(90, 3)
        search = GridSearchCV(
            StructuredSVM(structure, loss="absolute", tol=0.05), {"alpha": [0.01, 1.0]}, cv=3
        ).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_score_ > 0.5
        assert search.predict(X).shape == (90,)
        if structure != "ordinal":
            search = GridSearchCV(
                StructuredSVM(structure, loss="absolute", tol=0.5),
                {"structure__thresholds": [False, True]},
                cv=2,
            ).fit(X, y)
            assert set(search.cv_results_["param_structure__thresholds"]) == {False, True}

    def test_solvers_agree(self):
        X, y = noisy(40, 4)
        for structure in (OrdinalStructure(), OrdinalStructure(True)):
            primals = [
                StructuredSVM(structure, loss="absolute", alpha=0.1, solver=s, tol=1e-6)
                .fit(X, y).history_[-1]["primal"]
                for s in ("bcfw", "cutting-plane")
            ]  # fmt: skip
            assert primals[0] == pytest.approx(primals[1], rel=1e-4)

    def test_one_class(self):
        for thresholds in (False, True):
            model = StructuredSVM(OrdinalStructure(thresholds), loss="absolute", max_iter=3)
            assert model.fit([[1.0], [2.0]], [4, 4]).predict([[0.0]]).tolist() == [4]
