"""The path of alphas: where it begins and ends, from coarse to fine, and what it chooses."""

import numpy as np
import pytest
from data import chains, flat
from sklearn import datasets
from sklearn.base import clone

from structsolve import HierarchicalSVM, StructuredSVM, StructuredSVMCV
from structsolve.evaluation.alpha_path import best_of, is_over, largest_alpha, paired


def test_the_path_begins_where_weights_gain_a_hundredth_at_most():
    X, Y = chains(12, noise=1)
    rows, classes = flat(30)
    cases = [(StructuredSVM("chain", surrogate=s), X, Y) for s in ("margin", "crf")]
    cases += [(StructuredSVM("multiclass", loss="zero-one"), rows, classes)]
    cases += [(StructuredSVM("multiclass", scale_features=True), rows * [1, 100, 0.01], classes)]
    cases += [(HierarchicalSVM([("r", "a"), ("r", "s"), ("s", "b"), ("s", "c")]), rows, classes)]
    free = {"solver": "cutting-plane", "penalize_intercept": False, "fit_intercept": True}
    for model, given, y in cases:
        model.set_params(tol=1e-4, max_iter=500)
        data = model._read(given, y, None, None, model._generator())
        problem = model._posed(data)
        largest = largest_alpha(problem)
        start = problem.primal(np.zeros(problem.dim), 1.0)[0]
        primal = model.set_params(alpha=largest).fit(given, y).history_[-1]["primal"]
        assert 0.985 * start <= primal <= start
        smaller = model.set_params(alpha=largest / 100).fit(given, y).history_[-1]["primal"]
        assert smaller < 0.95 * start
    model = StructuredSVM("multiclass", **free)
    data = model._read(rows, classes, None, None, model._generator())
    assert largest_alpha(model._posed(data)) > 0


def test_without_a_gradient_the_path_begins_at_one():
    X, y = flat(20)
    kernel = StructuredSVMCV("multiclass", kernel="rbf", alphas=2, cv=2, tol=0.01).fit(X, y)
    assert kernel.alphas_[0] == 1.0
    zero = StructuredSVMCV("multiclass", fit_intercept=False, alphas=2, cv=2).fit(0 * X, y)
    assert zero.alphas_[0] == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_automatic_paths_end_when_scores_fall():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(160, 40)), rng.integers(3, size=160)
    X[np.arange(160), y] += 2.0
    model = StructuredSVMCV("multiclass", cv=4, tol=0.01, max_iter=10).fit(X, y)
    full = clone(model).set_params(patience=None).fit(X, y)
    count = len(model.alphas_)
    assert 4 <= count < 15 == len(full.alphas_)
    assert set(model.alphas_) < set(full.alphas_)
    # Starts differ and fits are cut short: the best scores are equal but for two rows of 160.
    chosen = model.scores_[:, model.alphas_ == model.alpha_].mean()
    assert full.scores_.mean(axis=0).max() - chosen <= 2 / 160
    listed = clone(model).set_params(alphas=full.alphas_).fit(X, y)
    assert len(listed.alphas_) == 15


class Curve:
    """A fold whose scores fall from a peak on both sides; keeps the alphas asked for."""

    def __init__(self, peak, slope):
        self.peak, self.slope, self.asked = peak, slope, []

    def score(self, alpha):
        return -self.slope * abs(np.log10(alpha) - self.peak)

    def score_at(self, alpha):
        self.asked.append(alpha)
        return self.score(alpha), 1, alpha, False


@pytest.mark.parametrize("count", [1, 2, 7, 8, 14, 15, 16, 22, 30, 31, 60])
@pytest.mark.parametrize("patience", [None, 1, 2])
def test_paths_go_from_coarse_to_fine(count, patience):
    rng = np.random.default_rng(count)
    alphas = np.geomspace(1e3, 1e-4, count)
    for _ in range(20):
        peak = rng.uniform(-4, 3)
        curves = [Curve(peak, slope) for slope in rng.uniform(1, 1.01, size=3)]
        model = StructuredSVMCV(patience=patience)
        tried, scores, passes, objectives = model._scores(curves, alphas, True)
        assert (np.diff(tried) < 0).all() and scores.shape == passes.shape == (3, len(tried))
        np.testing.assert_array_equal(objectives, np.tile(tried, (3, 1)))
        for curve, row in zip(curves, scores):
            assert len(curve.asked) == len(set(curve.asked)) and set(curve.asked) == set(tried)
            np.testing.assert_array_equal(row, [curve.score(a) for a in tried])
        # One peak: the best of all values is the best of those tried, and both beside it are tried.
        best = np.argmin(abs(np.log10(alphas) - peak))
        assert tried[best_of(scores, objectives)] == alphas[best]
        assert set(alphas[max(0, best - 1) : best + 2]) <= set(tried)
        if patience is None:
            assert len(tried) == count
        else:
            first = curves[0].asked[:2]
            assert len(first) < 2 or first[0] / first[1] >= min(10, (1e7) ** (1 / (count - 1))) / 4
            assert len(tried) <= min(count, 8 + 8 + 2 * np.log2(count))
    if (
        count == 15 and patience
    ):  # powers of ten, half of it where scores rise, then beside the best
        falls = Curve(0.5, 1)
        StructuredSVMCV(patience=patience)._scores([falls], alphas, True)
        powers = [3, 2, 1.5, 1, 0.5, 0, -0.5, -1.5][: 6 + patience]
        np.testing.assert_allclose(np.log10(falls.asked), powers)
    given, *_ = StructuredSVMCV()._scores([Curve(0, 1)], alphas, False)
    assert len(given) == count  # listed values are all tried


def test_folds_that_follow_change_no_choice():
    """The first folds decide alone only where the others could not change it."""
    rng = np.random.default_rng(0)
    alphas, spared, lost = np.geomspace(1e3, 1e-4, 15), 0, 0.0
    for _ in range(300):
        count = int(rng.integers(4, 12))
        peak, noise = rng.uniform(-3, 2), rng.choice([0.0, 0.05, 0.3])
        curves = [Curve(peak, 1 + noise * rng.normal()) for _ in range(count)]
        for curve in curves:
            curve.peak += noise * rng.normal()
        model = StructuredSVMCV()
        tried, scores, passes, objectives = model._scores(curves, alphas, True)
        leading = max(3, (count + 1) // 2)
        filled, head = ~np.isnan(scores), scores[:leading]
        assert filled[:leading].all() and (filled[leading:] == filled[-1]).all()
        np.testing.assert_array_equal(filled, passes == 1)
        np.testing.assert_array_equal(filled, ~np.isnan(objectives))
        for curve, row in zip(curves, scores):
            assert sorted(curve.asked, reverse=True) == tried[~np.isnan(row)].tolist()
        short = head[:, [np.argmax(head.mean(axis=0).round(12))]] - head
        behind = [one.mean() > 2 * error_of(one) + 1e-9 for one in short.T]
        np.testing.assert_array_equal(filled[-1], ~np.array(behind))
        whole = np.array([[curve.score(a) for a in tried] for curve in curves])
        guess = paired(scores)
        np.testing.assert_array_equal(guess[filled], whole[filled])
        chosen = best_of(guess, objectives)
        assert filled[:, chosen].all()
        lost += whole.mean(axis=0).max() - whole[:, chosen].mean()
        spared += (~filled).sum()
        if noise == 0:
            assert tried[chosen] == alphas[np.argmin(abs(np.log10(alphas) - peak))]
    assert spared > 3000 and lost / 300 < 2e-3


def error_of(values):
    return values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0


def test_the_best_and_the_end_of_random_paths():
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(2000):
        shape = rng.integers(1, 5), rng.integers(1, 12)
        scores = rng.integers(4, size=shape) / 4
        objectives = 10.0 ** -np.sort(rng.integers(4, size=shape))
        if rng.random() < 0.3:
            scores[:, shape[1] // 2 :] = scores[:, [shape[1] // 2]]
        best, mean = best_of(scores, objectives), scores.mean(axis=0)
        count = len(mean)
        beside = [mean[max(k - 1, 0)] + mean[min(k + 1, count - 1)] for k in range(count)]
        equal = [k for k in range(count) if mean[k] > mean.max() - 1e-9]
        moved = [k for k in equal if (objectives[:, k] <= 0.9 * objectives[:, 0]).all()]
        equal = moved or equal
        equal = [k for k in equal if beside[k] > max(beside[i] for i in equal) - 1e-9]
        assert best == equal[len(equal) // 2]
        first = int(np.argmax(mean > mean.max() - 1e-9))
        lost = scores[:, [first]] - scores
        risen = lost[:, 0].mean() > 2 * error_of(lost[:, 0]) + 1e-9
        shares = objectives[:, -3:] / objectives[:, :1]
        fitted = shares[:, -2:].max() <= 0.01
        cut = rng.random(shape) < rng.choice([0, 0.9])
        spent = cut[:, -2:].all() and shares.max() <= 0.9
        long = 2 if risen or spent else 4
        over = shape[1] - 1 - first >= long
        if over:
            falls = [lost[:, k].mean() > error_of(lost[:, k]) + 1e-9 for k in range(-long, 0)]
            over = spent or risen and fitted
            over = over or all(falls) and shares.max() <= (0.9 if risen else 0.5)
        assert is_over(scores, objectives, 2, cut) == over
        ended += over
    assert ended > 100


def test_no_dip_of_the_plateau_ends_a_path():
    rng = np.random.default_rng(0)
    drop = np.linspace(1, 0.92, 8)
    for _ in range(200):
        # Scores that fall in all folds alike, from the first or from a bump above it.
        plateau = 0.8 + 0.05 * rng.random((3, 1)) - 0.01 * rng.random((3, 8)).cumsum(axis=1)
        plateau[:, rng.integers(3)] += 0.02 * rng.integers(2)
        for cut in (None, np.ones((3, 8), bool)):
            given = [None if cut is None else cut[:, :k] for k in range(9)]
            drops = [np.tile(drop[:k], (3, 1)) for k in range(9)]
            assert not any(is_over(plateau[:, :k], drops[k], 3, given[k]) for k in range(1, 9))
    # Without a rise, a long fall of fitted rows is an end, a short one is not.
    fall = np.tile(0.9 - 0.05 * np.arange(8.0), (3, 1))
    assert not is_over(fall[:, :6], np.tile(0.1 ** np.arange(6), (3, 1)), 3)
    assert is_over(fall, np.tile(0.1 ** np.arange(8.0), (3, 1)), 3)
    assert not is_over(fall, np.full((3, 8), np.nan), 3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["digits", "wine", "iris"])
def test_real_sets_choose_no_worse_than_a_grid_does(name):
    """A sample of benchmarks/chosen_alpha.py."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(2).permutation(len(X))[:900]
    train, test = np.split(order, [int(0.7 * len(order))])
    X = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-9)
    model = StructuredSVMCV("multiclass", cv=3, tol=0.01).fit(X[train], y[train])
    assert len(model.alphas_) >= 8
    plain, grid = StructuredSVM("multiclass", tol=0.01), np.geomspace(10, 1e-5, 13)
    best = max(m.score(X[test], y[test]) for m in plain.path(X[train], y[train], grid))
    error = max(best * (1 - best), 1 / len(test)) ** 0.5 / len(test) ** 0.5
    assert model.score(X[test], y[test]) >= best - error
