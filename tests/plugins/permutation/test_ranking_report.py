"""Kendall's and Spearman's correlations of rankings, against scipy and by hand."""

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import cross_val_score

from structsolve import StructuredSVM, get_scorer
from structsolve.cli.main import main
from structsolve.plugins.permutation import ranking_report


@pytest.mark.parametrize("K", [2, 3, 6])
def test_correlations_are_scipys(K):
    rng = np.random.default_rng(K)
    true, pred = (np.argsort(rng.random((40, K)), axis=1) for _ in range(2))
    pred[::3] = true[::3]
    weight = rng.integers(0, 3, 40)
    for w in (None, weight):
        report = ranking_report(true, pred.tolist(), w)
        for name, figure in (("kendall_tau", stats.kendalltau), ("spearman_rho", stats.spearmanr)):
            each = [figure(a, b).statistic for a, b in zip(true, pred)]
            assert report[name] == pytest.approx(np.average(each, weights=w))
        assert report["exact"] == pytest.approx(np.average((true == pred).all(axis=1), weights=w))


def test_ends_and_text():
    assert ranking_report([[0, 1, 2]], [[2, 1, 0]])["kendall_tau"] == -1
    report = ranking_report([[0, 1, 2], [0, 1, 2]], [[0, 1, 2], [0, 2, 1]])
    assert str(report).splitlines() == [
        "kendall tau 0.6667",
        "spearman rho 0.7500",
        "exact 0.5000",
        "rankings 2",
    ]


def test_bad_rankings_are_refused():
    for true, pred, told in [
        ([[0, 1]], [[0, 0]], "example 0: the ranking"),
        ([[0, 1]], [[0, 1, 2]], "has 3 ranks, expected 2"),
        ([[0, 1]], [[0, 1], [0, 1]], "inconsistent numbers of samples"),
        ([[0]], [[0]], "y_true has 1 rankings of 1 labels; expected one or more, of two labels"),
        ([[0, np.nan]], [[0, 1]], "entry 1 is nan"),
    ]:
        with pytest.raises(ValueError, match=told):
            ranking_report(true, pred)


def test_scorers_and_the_shell(capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    ranks = np.argsort(np.argsort(-X @ rng.normal(size=(2, 3)), axis=1), axis=1)
    model = StructuredSVM("permutation", alpha=0.01, tol=0.01).fit(X, ranks)
    report = ranking_report(ranks, model.predict(X))
    assert model.score(X, ranks, metric="kendall-tau") == report["kendall_tau"] > 0.5
    scores = cross_val_score(model, X, ranks, cv=3, scoring=get_scorer("spearman-rho"))
    assert scores.mean() > 0.5
    other = StructuredSVM("multiclass", alpha=0.1).fit(X, ranks[:, 0])
    with pytest.raises(ValueError, match="metric 'kendall-tau' needs rankings"):
        other.score(X, ranks[:, 0], metric="kendall-tau")
    np.savez(tmp_path / "data.npz", X=X, y=ranks)
    path = str(tmp_path / "model")
    command = ["fit", str(tmp_path / "data.npz"), "--structure", "permutation", "--model", path]
    assert main([*command, "--alpha", "0.01"]) == 0
    capsys.readouterr()
    assert main(["score", path, str(tmp_path / "data.npz")]) == 0
    assert "rankings: kendall tau " in capsys.readouterr().out


def test_bad_weights_are_refused():
    for weight, told in [([1], "has shape"), ([-1, 2], "example 0 is -1"), ([0, 0], "is zero")]:
        with pytest.raises(ValueError, match=f"sample_weight.* {told}"):
            ranking_report([[0, 1], [1, 0]], [[0, 1], [0, 1]], weight)
