"""The default width of the Gaussian kernel, where distances are nearly all alike."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import euclidean_distances

from structsolve import ConditionalRiskMinimizer
from structsolve.plugins.risk.width import widening


def texts(n: int, words: int = 1500) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of unit length with some words of their labels, and more of all; rare labels."""
    rng = np.random.default_rng(n)
    Y = (rng.random((n, 30)) < 0.05).astype(int)
    own = Y[:, np.arange(words) % 30] == 1
    X = rng.random((n, words)) < np.where(own, 0.15, 0.02)
    return sp.csr_matrix(X / np.sqrt(X.sum(axis=1, keepdims=True))), Y


@pytest.mark.parametrize("seed", range(40))
def test_the_factor_is_that_of_the_distances_whatever_unit_and_storage(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(2, 40), rng.integers(1, 400))) + rng.normal()
    X *= rng.random(X.shape) < rng.choice([0.3, 1.0])
    distances = euclidean_distances(X, squared=True)[np.triu_indices(len(X), 1)]
    columns = 2 * distances.mean() ** 2 / distances.var() if distances.var() > 1e-20 else 0.0
    expected = min(1.0, 20 / columns) if columns else 1.0
    for given in (X, 1e6 * X, 1e-6 * X, sp.csr_matrix(X)):
        assert widening(given) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("X", [np.ones((5, 3)), np.zeros((4, 1)), np.ones((1, 2)), np.eye(3)])
def test_rows_without_a_spread_leave_it(X):
    assert widening(X) == 1.0


def test_texts_are_predicted_better_than_by_the_scale_alone():
    (X, Y), (new, truth) = texts(300), texts(400)
    wide = ConditionalRiskMinimizer("multilabel").fit(X, Y)
    plain = ConditionalRiskMinimizer("multilabel", kernel_params={"gamma": "scale"}).fit(X, Y)
    assert wide.gamma_ == pytest.approx(plain.gamma_ * widening(X), rel=1e-12)
    assert wide.gamma_ < 0.2 * plain.gamma_
    f1 = [f1_score(truth, model.predict(new), average="micro") for model in (wide, plain)]
    assert f1[0] > f1[1] + 0.05
    dense = ConditionalRiskMinimizer("multilabel").fit(X.toarray(), Y)
    assert dense.gamma_ == pytest.approx(wide.gamma_, rel=1e-12)
