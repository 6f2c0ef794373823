"""Conditional risk minimisation against enumeration of labels and textbook ridge regression."""

import networkx as nx
import numpy as np
import pytest
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from risk_cases import CASES, sample
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge

import structsolve
from structsolve import ConditionalRiskMinimizer
from structsolve.plugins.multilabel import MultilabelStructure
from structsolve.plugins.risk import hierarchy_kernel
from structsolve.plugins.risk.ridge import FeatureSmoother, JointSmoother, KernelSmoother
from structsolve.structure.ask import ask_loss, make_layout
from structsolve.structure.loss_values import losses


def weighted_losses(model, X, y, x, weights, loss):
    """Return every label of the first of x, and its weighted loss against the training labels."""
    space = model.space_
    train, new = space.pack(X, y), space.pack(x)
    labels = space.enumerate_labels(new, 0)
    native = ask_loss(space, loss)(make_layout(space, train))
    risks = []
    for label in labels:
        flat = np.tile(label, train.n).astype(np.int32)
        risks.append(weights @ losses(native, train.labels, flat))
    return labels, np.array(risks)


def plain_weights(K, k, alpha, intercept):
    """Return weights as in the paper, from one linear system."""
    n = len(K)
    if not intercept:
        return np.linalg.solve(K + n * alpha * np.eye(n), k)
    H = np.eye(n) - 1 / n
    centred = k - k.mean() - K.mean(axis=0) + K.mean()
    w = np.linalg.solve(H @ K @ H + n * alpha * np.eye(n), centred)
    return w - w.mean() + 1 / n


@pytest.mark.parametrize("structure, loss", CASES, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_predictions_have_least_weighted_loss(structure, loss, intercept):
    rng = np.random.default_rng(0)
    for _ in range(12):
        n = int(rng.integers(4, 9))
        X, y = sample(structure, rng, n)
        alpha = float(10 ** rng.uniform(-6, 1))
        model = ConditionalRiskMinimizer(
            structure, loss=loss, alpha=alpha, fit_intercept=intercept, kernel_params={"gamma": 0.3}
        )
        model.fit(X, y)
        x, truth = sample(structure, rng, 5)
        predicted, risks = model.predict_with_risk(x)
        given = model.conditional_risk(x, predicted)
        weights = model.weights(x)
        rows = np.array(X).reshape(n, -1)
        K = np.exp(-0.3 * ((rows[:, None] - rows) ** 2).sum(-1))
        assert np.allclose(model.weights(X), [plain_weights(K, k, alpha, intercept) for k in K])
        for i in range(5):
            _, every = weighted_losses(model, X, y, x[i : i + 1], weights[i], loss)
            assert risks[i] == pytest.approx(every.min(), abs=1e-8 * max(1, np.abs(every).max()))
            assert given[i] == pytest.approx(risks[i], abs=1e-8 * max(1, np.abs(every).max()))
        # The risk of a given label, whichever it is.
        other = model.conditional_risk(x, truth)
        assert (other >= risks - 1e-8 * (1 + np.abs(risks))).all()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_weights(data):
    """Scores from arbitrary weights: negative, tied, zero, large; sums other than 1."""
    from structsolve.operators import Loss
    from structsolve.plugins.risk.targets import PartTargets

    structure, loss = data.draw(st.sampled_from(CASES))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    X, y = sample(structure, rng, 5)
    space, examples = structsolve.get_structure(structure).make_space(X, y)
    targets = PartTargets(space, examples, loss)
    assert isinstance(targets.loss, Loss)
    numbers = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e6, -1e6, 1e-9])
    weights = np.array(data.draw(st.lists(numbers, min_size=5, max_size=5)))
    theta, constants = targets.scores(weights[None])
    labels, risks = targets.decode(
        lambda a, z: (theta, constants), space.pack(X[:1]), data.draw(st.sampled_from([1, 2]))
    )
    model = ConditionalRiskMinimizer(structure)
    model.space_ = space
    every, values = weighted_losses(model, X, y, X[:1], weights, loss)
    scale = 1e-9 * max(1, np.abs(values).max(), np.abs(weights).max())
    assert risks[0] == pytest.approx(values.min(), abs=scale)
    row = int(np.flatnonzero((every == labels).all(axis=1))[0])
    assert values[row] == pytest.approx(values.min(), abs=scale)


@pytest.mark.parametrize("loss", ["hamming", "hierarchical", "leaf"])
@pytest.mark.parametrize("intercept", [True, False])
def test_hierarchies(loss, intercept):
    """Label sets under a tree and (Hamming, leaves) under a graph with two parents."""
    from structsolve.plugins.dag import DagStructure

    rng = np.random.default_rng(12)
    tree = nx.DiGraph([(0, 1), (0, 2), (1, 3), (1, 4)])
    graph = nx.DiGraph([(0, 2), (1, 2), (2, 3), (0, 4)])
    for number in range(20):
        structure = DagStructure(graph if number % 2 and loss != "hierarchical" else tree)
        X = rng.normal(size=(8, 2))
        space, _ = structure.make_space(X, np.zeros((8, 5)))
        labels = space.enumerate_labels(space.pack(X), 0)
        Y = labels[rng.integers(0, len(labels), 8)]
        alpha = float(10 ** rng.uniform(-6, 1))
        model = ConditionalRiskMinimizer(
            structure, loss=loss, alpha=alpha, fit_intercept=intercept
        ).fit(X, Y)
        x = rng.normal(size=(3, 2))
        _, risks = model.predict_with_risk(x)
        for i, weights in enumerate(model.weights(x)):
            _, every = weighted_losses(model, X, Y, x[i : i + 1], weights, loss)
            assert risks[i] == pytest.approx(every.min(), abs=1e-8 * max(1, np.abs(every).max()))


def test_ridge_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    X, x, T = rng.normal(size=(9, 3)), rng.normal(size=(4, 3)), rng.normal(size=(9, 2))
    K, k = X @ X.T, x @ X.T
    expected = KernelRidge(alpha=9 * 0.1, kernel="linear").fit(X, T).predict(x)
    assert np.allclose(KernelSmoother(K, False).weights(k, 0.1) @ T, expected)
    assert np.allclose(FeatureSmoother(X, False).averages(x, T, 0.1), expected)
    # With an intercept: ridge on centred features, in both forms.
    centred = KernelRidge(alpha=9 * 0.1).fit(X - X.mean(0), T - T.mean(0))
    expected = centred.predict(x - X.mean(0)) + T.mean(0)
    for smoother, rows in ((KernelSmoother(K, True), k), (FeatureSmoother(X, True), x)):
        weights = smoother.weights(rows, 0.1)
        assert np.allclose(weights @ T, expected) and np.allclose(weights.sum(axis=1), 1)


@pytest.mark.parametrize("intercept", [True, False])
def test_leaving_one_out_is_training_without_it(intercept):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(8, 3))
    alpha, T = 0.05, rng.normal(size=(8, 2))
    K = X @ X.T
    for smoother in (KernelSmoother(K, intercept), FeatureSmoother(X, intercept)):
        left_out = smoother.left_out(alpha)
        for i in range(8):
            rest = np.arange(8) != i
            # The penalty n alpha is kept.
            small = KernelSmoother(K[np.ix_(rest, rest)], intercept)
            expected = small.weights(K[i : i + 1, rest], alpha * 8 / 7)
            assert left_out[i, i] == 0
            assert np.allclose(left_out[i, rest] @ T[rest], expected @ T[rest])


def test_alphas_are_chosen_by_held_out_loss():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    alphas = [1e-6, 1e-3, 1e-1, 10.0]
    model = ConditionalRiskMinimizer(alphas=alphas).fit(X, y)
    expected = []
    for alpha in alphas:
        wrong = 0
        for i in range(60):
            rest = np.arange(60) != i
            one = ConditionalRiskMinimizer(alpha=alpha * 60 / 59).fit(X[rest], y[rest])
            wrong += one.predict(X[i : i + 1])[0] != y[i]
        expected.append(wrong / 60)
    assert model.cv_losses_ == pytest.approx(expected)
    assert model.alpha_ == alphas[int(np.flatnonzero(np.isclose(expected, min(expected)))[-1])]
    folds = ConditionalRiskMinimizer(alphas=alphas, cv=4).fit(X, y)
    fold = np.arange(60) // 15
    for alpha, held_out in zip(alphas, folds.cv_losses_):
        wrong = 0
        for k in range(4):
            one = ConditionalRiskMinimizer(alpha=alpha).fit(X[fold != k], y[fold != k])
            wrong += (one.predict(X[fold == k]) != y[fold == k]).sum()
        assert held_out == pytest.approx(wrong / 60)
    for one, alpha in zip(model.path(X, y, alphas), alphas):
        alone = ConditionalRiskMinimizer(alpha=alpha).fit(X, y)
        assert one.alpha_ == alpha and (one.predict(X) == alone.predict(X)).all()


@pytest.mark.parametrize("kernel", ["rbf", None])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("labels", [3, 40])
def test_folds_are_training_without_them(kernel, intercept, labels):
    """With fewer labels than examples indicators are averaged, otherwise weights are computed."""
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(30, 4)), rng.integers(0, 2, (30, labels))
    options = {"kernel": kernel, "fit_intercept": intercept, "loss": "hamming"}
    if kernel is not None:  # by default that of all rows, for folds, too
        options["kernel_params"] = {"gamma": 0.25}
    structure = MultilabelStructure(edges="none")
    alphas = [1e-3, 1e-2, 1e-1, 1.0]
    model = ConditionalRiskMinimizer(structure, alphas=alphas, cv=3, **options).fit(X, Y)
    fold = np.arange(30) // 10
    for alpha, held_out in zip(alphas, model.cv_losses_):
        wrong = 0
        for k in range(3):
            one = ConditionalRiskMinimizer(structure, alpha=alpha, **options)
            one.fit(X[fold != k], Y[fold != k])
            wrong += (one.predict(X[fold == k]) != Y[fold == k]).sum()
        assert held_out == pytest.approx(wrong / 30)


def test_joint_ridge_solves_its_problem():
    """Compare with the linear system over all pairs of example and part."""
    rng = np.random.default_rng(5)
    n, q, alpha = 5, 4, 0.03
    X, T = rng.normal(size=(n, 3)), rng.normal(size=(n, q))
    x = rng.normal(size=(2, 3))
    B = rng.normal(size=(q, q))
    B = B @ B.T
    K = X @ X.T
    A = np.linalg.solve(np.kron(K, B) + n * alpha * np.eye(n * q), T.ravel()).reshape(n, q)
    averages = JointSmoother(KernelSmoother(K, False), B).averages(x @ X.T, T, alpha)
    assert np.allclose(averages, x @ X.T @ A @ B)
    apart = JointSmoother(KernelSmoother(K, True), np.eye(q)).averages(x @ X.T, T, alpha)
    assert np.allclose(apart, KernelSmoother(K, True).weights(x @ X.T, alpha) @ T)


def test_joint_kernel_of_a_hierarchy():
    rng = np.random.default_rng(6)
    X, Y = sample("multilabel", rng, 20)
    graph = nx.DiGraph([(0, 1), (0, 2)])
    structure = structsolve.get_structure("multilabel").set_params(edges="none")
    apart = ConditionalRiskMinimizer(structure, joint_kernel=np.eye(3)).fit(X, Y)
    plain = ConditionalRiskMinimizer(structure).fit(X, Y)
    for a, b in zip(apart.predict_with_risk(X), plain.predict_with_risk(X)):
        assert np.allclose(a, b)
    joint = ConditionalRiskMinimizer(
        structure, joint_kernel=graph, alphas=[1e-3, 1e-1], cv=4, kernel_params={"gamma": 1.0}
    ).fit(X, Y)
    assert joint.predict(X).shape == Y.shape and len(joint.cv_losses_) == 2
    fold, wrong = np.arange(20) // 5, 0.0
    for k in range(4):
        one = clone(joint).set_params(alphas=None, alpha=1e-3).fit(X[fold != k], Y[fold != k])
        wrong += (one.predict(X[fold == k]) != Y[fold == k]).sum()
    assert joint.cv_losses_[0] == pytest.approx(wrong / 20)
    star = nx.star_graph(2)
    assert np.linalg.eigvalsh(np.eye(3) + nx.to_numpy_array(star)).min() < -0.4
    for kind in ("normalized", "clipped"):
        assert np.linalg.eigvalsh(hierarchy_kernel(star, kind=kind)).min() > -1e-12
    with pytest.raises(ValueError, match="eigenvalue"):
        bad = np.eye(3) + nx.to_numpy_array(star)
        ConditionalRiskMinimizer(structure, joint_kernel=bad).fit(X, Y)
    with pytest.raises(ValueError, match="no node 2"):
        ConditionalRiskMinimizer(structure, joint_kernel=nx.path_graph(2)).fit(X, Y)
    with pytest.raises(ValueError, match="found str, expected a matrix of numbers or a graph"):
        ConditionalRiskMinimizer(structure, joint_kernel="graph").fit(X, Y)
    of_dict = hierarchy_kernel({0: [1, 2]}, [2, 0, 1])
    assert (of_dict == hierarchy_kernel(graph, [2, 0, 1])).all()


@pytest.mark.parametrize("structure, loss", CASES, ids=str)
def test_surrogate_is_above_the_loss_and_tight(structure, loss):
    rng = np.random.default_rng(7)
    X, y = sample(structure, rng, 12)
    x, truth = sample(structure, rng, 8)
    model = ConditionalRiskMinimizer(structure, loss=loss, alpha=0.1).fit(X, y)
    examples = model.space_.pack(x, truth)
    native = ask_loss(model.space_, loss)(make_layout(model.space_, examples))
    predicted = model.space_.pack(x, model.predict(x)).labels
    true = losses(native, examples.labels, predicted)
    before = true - 1e-9
    for rho in (1e-9, 1e-3, 0.1, 1.0, 10.0, 1e3):
        bounds = model.surrogate_loss(x, truth, rho)
        assert (bounds >= before - 1e-6).all()
        before = bounds
        weights = model.weights(x)
        for i in range(3 if rho == 0.1 else 0):
            labels, risks = weighted_losses(model, X, y, x[i : i + 1], weights[i], loss)
            own = model.space_.pack(x[i : i + 1], truth[i : i + 1])
            bound = ask_loss(model.space_, loss)(make_layout(model.space_, own))
            values = [losses(bound, own.labels, np.array(v))[0] for v in labels]
            assert bounds[i] == pytest.approx((values + (risks.min() - risks) / rho).max())
    assert np.allclose(model.surrogate_loss(x, truth, 1e-7), true, atol=1e-6)


def test_risk_bound_holds():
    rng = np.random.default_rng(8)
    below = 0
    for _ in range(10):
        X = rng.uniform(size=(300, 1))
        y = (X[:, 0] + 0.2 * rng.normal(size=300) > 0.5).astype(int)
        train, test = slice(0, 100), slice(100, None)
        model = ConditionalRiskMinimizer(fit_intercept=False, alpha=50.0)
        model.fit(X[train], y[train])
        bound = model.risk_bound(X[train], y[train], rho=5.0)
        assert bound.kappa == 1 and bound.max_loss == 1 and bound.n == 100
        nu = 1 / 50 + (1 / 50) ** 1.5
        assert bound.stability == pytest.approx(4 * nu / (5 * 100))
        assert bound.training_loss == pytest.approx(1 - model.score(X[train], y[train]))
        assert bound.surrogate >= bound.training_loss
        below += 1 - model.score(X[test], y[test]) <= bound.bound
    assert below == 10
    refused("fit_intercept=False", ConditionalRiskMinimizer().fit(X, y).risk_bound, X, y)
    for wrong in ({"rho": 0}, {"delta": 1.0}):
        refused(next(iter(wrong)), model.risk_bound, X[train], y[train], **wrong)


def test_what_cannot_be_is_refused():
    pictures, partly = np.zeros((2, 2, 2, 1)), [[[1, 2], [2, 1]], [[1, 9], [2, 1]]]
    void = ConditionalRiskMinimizer("grid:void=9", kernel="linear").fit(pictures, partly[:1] * 2)
    refused("y, example 1: found void nodes", void.fit, pictures, partly)
    rng = np.random.default_rng(10)
    X, y = sample("chain", rng, 5)
    refused("'zero-one'.*not linear", ConditionalRiskMinimizer("chain", loss="zero-one").fit, X, y)
    longer = [*X, rng.normal(size=(3, 2))]
    model = ConditionalRiskMinimizer("chain").fit(X, y)
    refused("example 5: found 3 nodes.*one shape", clone(model).fit, longer, [*y, [0, 1, 2]])
    refused("example 0: found 3 nodes, expected 2", model.predict, [rng.normal(size=(3, 2))])
    X, y = [[0.0], [1.0]], [0, 1]
    for settings_, message in (
        ({"alpha": 0}, "alpha: found 0"),
        ({"alphas": []}, "alphas is"),
        ({"alphas": [1, np.nan]}, "alphas: found nan"),
        ({"cv": 1}, "cv is 1"),
        ({"alphas": [1.0], "cv": 3}, "at most the 2"),
        ({"feature_map": RBFSampler()}, "kernel=None"),
        ({"kernel": "nonsense"}, "kernel is 'nonsense'"),
        ({"kernel": None, "kernel_params": {}}, "kernel_params"),
        ({"joint_kernel": np.eye(2), "alphas": [1.0]}, "set cv="),
        ({"joint_kernel": np.eye(5)}, r"expected \(2, 2\)"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"loss": "nonsense"}, "unknown loss"),
    ):
        refused(message, ConditionalRiskMinimizer(**settings_).fit, X, y)
    with pytest.raises(ValueError, match="one per training example"):
        model = ConditionalRiskMinimizer(kernel="precomputed").fit(np.eye(2), y)
        model.predict(np.eye(3))
    refused("joint kernel", ConditionalRiskMinimizer(joint_kernel=np.eye(2)).fit(X, y).weights, X)


def test_threads_and_chunks_change_nothing(monkeypatch):
    from structsolve.plugins.risk import targets

    rng = np.random.default_rng(11)
    X, Y = sample("multilabel", rng, 40)
    model = ConditionalRiskMinimizer("multilabel").fit(X, Y)
    expected, risks = model.predict_with_risk(X)
    monkeypatch.setattr(targets, "AVERAGE_BYTES", 8 * 40 * 7)
    again = model.set_params(n_jobs=3).predict_with_risk(X)
    assert (again[0] == expected).all() and np.allclose(again[1], risks)


def test_files_keep_the_joint_kernel_as_given(tmp_path):
    rng = np.random.default_rng(1)
    X, Y, A = rng.normal(size=(9, 4)), rng.integers(2, size=(9, 5)), rng.normal(size=(5, 5))
    structure = structsolve.get_structure("multilabel", edges="none")
    model = ConditionalRiskMinimizer(structure, joint_kernel=A @ A.T, alpha=1e-3).fit(X, Y)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(structsolve.load(tmp_path / "m").joint_kernel, A @ A.T)


def test_joint_kernel_of_single_leaves():
    from structsolve.plugins.dag import DagStructure

    tree = nx.DiGraph([("r", "a"), ("r", "b")])
    structure = DagStructure(tree, labels="single-leaf")
    model = ConditionalRiskMinimizer(structure, joint_kernel=tree, alpha=1e-3)
    y = ["a", "b", "a", "b"]
    assert model.fit(np.diag([3.0, -3, 3, -3]) + np.eye(4), y).predict(np.eye(4)).shape == (4,)


def test_labels_of_many_parts_are_encoded_whole():
    """More than 64 parts per label, the initial size of memory."""
    from structsolve.plugins.risk._decode import encoded
    from structsolve.structure.ask import ask_parts
    from structsolve.structure.calls import encode

    rng = np.random.default_rng(0)
    lengths = (200, 1, 130, 77)
    X = [rng.normal(size=(n, 2)) for n in lengths]
    Y = [rng.integers(0, 3, n) for n in lengths]
    space, examples = structsolve.get_structure("chain").make_space(X, Y)
    parts = ask_parts(space)(make_layout(space, examples))
    data, indices, indptr = encoded(parts, examples.labels)
    assert indptr[-1] > 64 * len(X) and len(data) == len(indices) == indptr[-1]
    for i in range(len(X)):
        index, value = encode(parts, i, examples.label(i))
        assert np.array_equal(indices[indptr[i] : indptr[i + 1]], index)
        assert np.array_equal(data[indptr[i] : indptr[i + 1]], value)


@pytest.mark.parametrize("structure", ["multiclass", "multilabel", "permutation"])
def test_weights_of_examples_in_scores(structure):
    rng = np.random.default_rng(3)
    X, y = sample(structure, rng, 8)
    model = ConditionalRiskMinimizer(structure, alpha=1.0).fit(X, y)
    weight = np.arange(8) % 3
    often = np.repeat(np.arange(8), weight)
    assert model.score(X, y, weight) == pytest.approx(model.score(X[often], y[often]))
    refused("expected a finite number", model.score, X, y, -weight)
