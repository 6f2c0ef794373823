"""The k best assignments and max-marginals against enumeration, and what uses them."""

from itertools import permutations

import numpy as np
import pytest
from checks import refused
from permutation_cases import KINDS, matchings, rankings, scores_of

from structsolve import Block, Examples, StructuredSVM
from structsolve.part_layout import PartLayout
from structsolve.plugins.permutation._murty import AssignmentKBest, AssignmentMaxMarginals
from structsolve.plugins.permutation._oracle import AssignmentOracle
from structsolve.structure import calls
from structsolve.surrogates import Slack


def table(scores, ranking=False, before=0):
    """(layout, number of the example, theta) of scores; other examples may come before."""
    rows, cols = scores.shape
    if ranking:
        examples = Examples(np.arange(2), label_offsets=np.array([0, rows]))
        layout = PartLayout([Block("node", "node", (rows, cols))], examples)
        theta = np.zeros((rows, layout.node_size // rows))
        theta[:, :cols] = scores
        return layout, 0, theta.ravel()
    sizes = [(1, 3)] * before + [(rows, cols)]
    examples = Examples(
        np.cumsum([0] + [r * c for r, c in sizes]),
        label_offsets=np.cumsum([0] + [r for r, _ in sizes]),
    )
    examples.topology.update(cols=np.array([c for _, c in sizes]), forbidden=None)
    return PartLayout([Block("pair", "node", (1,))], examples), before, scores.ravel().copy()


def every(rows, cols):
    return np.array(list(permutations(range(cols), rows)), dtype=np.int32)


def check(scores, k, ranking=False, before=0):
    """Check the k best values on distinct labels, and the best value with each pair."""
    rows, cols = scores.shape
    layout, i, theta = table(scores, ranking, before)
    labels = every(rows, cols)
    totals = scores[np.arange(rows), labels].sum(axis=1)
    possible = np.isfinite(totals)
    best, marginals = AssignmentKBest(layout), AssignmentMaxMarginals(layout)
    if not possible.any():
        refused(f"example {i}: no assignment is possible", calls.kbest, best, i, theta, k)
        message = f"example {i}: no assignment is possible"
        refused(message, calls.max_marginals, marginals, i, theta, layout.node_size)
        return
    near = {"rtol": 0, "atol": 1e-12 * rows * np.abs(scores[np.isfinite(scores)]).max()}
    answers, values = calls.kbest(best, i, theta, k)
    np.testing.assert_allclose(values, np.sort(totals[possible])[::-1][:k], **near)
    assert len({tuple(row) for row in answers.tolist()}) == len(answers)
    assert answers[0].tolist() == calls.argmax(AssignmentOracle(layout), i, theta)[0].tolist()
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(scores[np.arange(rows), answers].sum(axis=1), values, **near)
    out = calls.max_marginals(marginals, i, theta, layout.node_size).reshape(rows, -1)[:, :cols]
    expected = np.full((rows, cols), -np.inf)
    np.maximum.at(expected, (np.arange(rows)[None, :], labels), totals[:, None])
    np.testing.assert_allclose(out, expected, **near)
    assert out.max() == values[0]


@pytest.mark.parametrize("kind", KINDS)
def test_against_enumeration(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for case in range(120):
        rows = int(rng.integers(1, 6))
        cols = rows + (0 if case % 3 == 0 else int(rng.integers(0, 4 if rows < 5 else 2)))
        scores = scores_of(rng, kind, rows, cols)
        if case % 2:
            scores[rng.random(scores.shape) < rng.random()] = -np.inf
        k = int(rng.choice([1, 2, 3, 7, 30, 1000]))
        check(scores, k, ranking=rows == cols and case % 4 < 2, before=case % 5)


def test_many_columns():
    # Beyond the solver for small problems; a few rows among many unused columns.
    rng = np.random.default_rng(0)
    for kind in ("normal", "ties", "few"):
        check(scores_of(rng, kind, 2, 70), 200)


def test_forbidden_pairs():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(3, 4))
    mask = rng.random((3, 4)) < 0.3
    layout, i, theta = table(scores)
    layout.examples.topology["forbidden"] = mask.astype(np.uint8).ravel()
    labels, values = calls.kbest(AssignmentKBest(layout), i, theta, 50)
    totals = np.where(mask, -np.inf, scores)[np.arange(3), every(3, 4)].sum(axis=1)
    np.testing.assert_allclose(values, np.sort(totals[np.isfinite(totals)])[::-1])
    assert not mask[np.arange(3), labels].any()


def test_large_problems_agree_with_one_that_bars_the_best():
    # The second best differs from the best in some row: forbid each of its pairs in turn.
    rng = np.random.default_rng(2)
    for rows, cols in ((40, 40), (30, 45), (70, 80)):
        scores = rng.integers(0, 50, (rows, cols)).astype(float)
        layout, i, theta = table(scores)
        labels, values = calls.kbest(AssignmentKBest(layout), i, theta, 2)
        second = -np.inf
        for r in range(rows):
            barred = scores.copy()
            barred[r, labels[0, r]] = -np.inf
            second = max(second, calls.kbest(AssignmentKBest(layout), i, barred.ravel(), 1)[1][0])
        assert values[1] == second


@pytest.fixture(scope="module", params=["ranking", "matching"])
def data(request):
    return rankings(n=8) if request.param == "ranking" else matchings(n=8)


def test_models_list_the_k_best_and_score_each_pair(data):
    X, Y = data
    model = StructuredSVM("permutation", alpha=0.01, tol=0.1).fit(X, Y)
    ranked, tables = model.predict_kbest(X, 3), model.decision_function(X)
    for answers, best, given in zip(ranked, model.predict(X), tables):
        rows, cols = given.shape
        assert answers[0][0].tolist() == best.tolist()
        assert len(answers) == min(3, len(every(rows, cols)))
        for label, value in answers:
            # The best with any of its pairs scores at least as much.
            assert (given[np.arange(rows), label] >= value - 1e-9).all()
        assert given.max() == pytest.approx(answers[0][1])


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
def test_zero_one_loss_closes(data, solver):
    surrogates = ["margin", Slack(search="exact"), Slack(relaxed=False)]
    primal = []
    for surrogate in surrogates:
        model = StructuredSVM("permutation", surrogate=surrogate, loss="zero-one", solver=solver)
        model.set_params(alpha=0.1, tol=1e-2, max_iter=500).fit(*data)
        assert model.history_[-1]["gap"] <= 1e-2 * model.history_[-1]["primal"]
        primal.append(model.history_[-1]["primal"])
    # With a loss of 0 or 1, slack rescaling is margin rescaling.
    np.testing.assert_allclose(primal, primal[0], rtol=2e-2)


def test_slack_over_labels_closes(data):
    surrogate = Slack(relaxed=False, max_kbest=64)
    model = StructuredSVM("permutation", surrogate=surrogate, alpha=0.1, tol=1e-3)
    model.set_params(max_iter=500).fit(*data)
    assert model.history_[-1]["gap"] <= 1e-3 * model.history_[-1]["primal"]
