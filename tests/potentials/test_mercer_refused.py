"""Kernels that are none, settings that cannot be, and what kernels do not have."""

import numpy as np
import pytest
from checks import refused
from data import chains, classes
from sklearn.metrics.pairwise import rbf_kernel

import structsolve
from structsolve import StructuredSVM


def fit(X, y, structure="multiclass", **options):
    return StructuredSVM(structure, **options).fit(X, y)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kernel": "gauss"}, "kernel is 'gauss', expected a callable or one of"),
        ({"kernel": 3}, "kernel is 3, expected a name, a callable or None"),
        ({"kernel": "rbf", "kernel_params": [1]}, "kernel_params is"),
        ({"kernel": "rbf", "kernel_params": {"gama": 1}}, "kernel 'rbf' with kernel_params"),
        ({"kernel": "rbf", "kernel_params": {"gamma": -1}}, "found an eigenvalue of at most"),
        (
            {"kernel": "precomputed", "kernel_params": {"gamma": 1}},
            "a precomputed kernel takes none",
        ),
        ({"kernel_params": {"gamma": 1}}, "kernel is None"),
        ({"kernel": "rbf", "cache_size": -1}, "cache_size is -1"),
        ({"kernel": "rbf", "cache_size": "big"}, "cache_size is 'big'"),
        ({"kernel": "rbf", "solver": "sgd"}, "solver 'sgd' moves weights of features"),
        ({"kernel": "rbf", "solver": "cutting-plane"}, "solver 'cutting-plane' moves weights"),
        ({"kernel": "rbf", "penalize_intercept": False}, "penalize_intercept=False"),
        ({"kernel": "precomputed"}, "found 60 rows of 5 kernel values"),
        ({"kernel": lambda A, B: A @ B.T * np.nan}, "gave nan for example 0, node 0 with"),
        ({"kernel": lambda A, B: A @ B.T[:, :-1]}, "gave an array of shape"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), "a")}, "expected real numbers"),
        ({"kernel": lambda A, B: A @ np.eye(5, k=1) @ B.T}, "is not symmetric"),
        ({"kernel": lambda A, B: -A @ B.T}, "not positive semi-definite"),
        ({"kernel": "additive_chi2"}, "kernel 'additive_chi2'"),
        ({"kernel": "sigmoid", "kernel_params": {"gamma": 5.0, "coef0": -3}}, "semi-definite"),
    ],
)
def test_settings_that_cannot_be(options, message):
    X, y = classes()
    refused(message, fit, X, y, **options)


def test_matrices_that_are_no_kernels():
    X, y = classes(700, seed=1)
    K = rbf_kernel(X)
    wrong = K.copy()
    wrong[650, 3] += 1e-3
    with pytest.raises(
        ValueError, match="not symmetric: .* for example 3, node 0 with example 650"
    ):
        fit(wrong, y, kernel="precomputed")
    indefinite = K - 2 * np.eye(700)
    refused("gives -1 for example 0, node 0 with itself", fit, indefinite, y, kernel="precomputed")
    indefinite = K - 0.9 * np.ones_like(K)
    refused("found an eigenvalue of at most", fit, indefinite, y, kernel="precomputed")
    with pytest.raises(ValueError, match="NaN .example 2, row 0"):
        nan = K.copy()
        nan[2, 5] = np.nan
        fit(nan, y, kernel="precomputed")
    fit(K.astype(np.float32), y, kernel="precomputed", tol=0.1)
    with pytest.raises(ValueError, match="early_stopping cannot split a precomputed kernel"):
        fit(K, y, kernel="precomputed", early_stopping=True)


def test_curvature_below_zero_met_in_training():
    """Training detects what the checks cannot see."""
    X, y = classes(900)

    def turns(A, B):
        values = rbf_kernel(A, B)
        # Indefinite among the nodes that the check skips.
        return values if len(A) == len(B) else values - 2.0 * (A @ B.T)

    refused("not positive semi-definite", fit, X, y, kernel=turns, alpha=1e-3)


@pytest.mark.parametrize("seed", [13, 93, 166])
def test_scores_that_cancel_are_no_curvature(seed):
    """All pairs of a matching are alike: w is 0, up to rounding."""
    rng = np.random.default_rng(seed)
    n, rows, scale = int(rng.integers(1, 6)), int(rng.integers(1, 4)), 10.0 ** rng.integers(0, 6)
    X = [np.broadcast_to(scale * rng.normal(size=2), (rows, rows, 2)).copy() for _ in range(n)]
    Y = [rng.permutation(rows) for _ in range(n)]
    options = {"kernel": "linear", "surrogate": "sparsemap", "loss": "spearman", "max_iter": 15}
    model = fit(X, Y, "permutation", alpha=10.0 ** rng.integers(-4, 1), **options)
    assert abs(model.history_[-1]["primal"] - 0.5 * np.mean([rows - 1])) < 1e-5


def test_kernels_that_fail_in_the_middle_of_training():
    X, y = classes(300)
    calls = []

    def late(A, B):
        calls.append(len(A))
        values = rbf_kernel(A, B)
        if len(B) == 300 and len(A) < 300:
            values[1, 7] = np.inf
        return values

    def fails(A, B):
        if len(B) == 300 and len(A) < 300:
            raise RuntimeError("no more")
        return rbf_kernel(A, B)

    def stops(A, B):
        if len(B) == 300 and len(A) < 300 and not calls:
            calls.append(1)
            raise KeyboardInterrupt
        return rbf_kernel(A, B)

    # With a given alpha, because "auto" asks for kernel values before training.
    refused("gave inf for example .* with example 7, node 0", fit, X, y, kernel=late, alpha=1e-3)
    refused("no more", fit, X, y, kernel=fails, alpha=1e-3, error=RuntimeError)
    calls.clear()
    model = fit(X, y, kernel=stops, alpha=1e-3)
    assert model.stop_reason_ == "interrupted"
    assert model.score(X, y) > 0.5


def test_rows_that_do_not_fit_at_prediction():
    X, y = classes()
    K = rbf_kernel(X)
    model = fit(K, y, kernel="precomputed")
    refused("expected 60, one column per node of the training data", model.predict, K[:, :7])
    refused("expected 60, one column per node", model.score, K[:, :7], y)
    C, Y = chains(10)
    rows = np.concatenate(C)
    K = rbf_kernel(rows)
    parts = np.split(K, np.cumsum([len(c) for c in C])[:-1])
    model = fit(parts, Y, "chain", kernel="precomputed")
    refused("X, example 1: found 3 features.*expected", model.predict, [parts[0], parts[1][:, :3]])
    model = fit(X, y, kernel="rbf")
    refused("5 features|expecting", model.predict, X[:, :3])
    refused("NaN", model.predict, np.full((1, 5), np.nan))


def test_structures_without_nodes_refuse():
    def oracle(w, x, y=None):
        return int(w[0] < 0)

    structure = structsolve.FunctionStructure(
        lambda x, y: np.ones(1) * (x == y), oracle, lambda a, b: float(a != b)
    )
    with pytest.raises(ValueError, match="has no node features that a kernel could compare"):
        StructuredSVM(structure, kernel="rbf").fit([0, 1], [0, 1])
    roads = {"edges": [[0, 1], [1, 2]], "edge_features": [[1.0], [2.0]]}
    risk = structsolve.ConditionalRiskMinimizer("path", alpha=0.1)
    for model in (risk, *(StructuredSVM("path", kernel=name) for name in ("rbf", "poly"))):
        with pytest.raises(ValueError, match="kernel '.*': X has nodes without features to comp"):
            model.fit([roads] * 2, [[0, 1, 2]] * 2)


def test_partial_fit_refuses():
    with pytest.raises(ValueError, match="solver 'sgd' moves weights"):
        StructuredSVM("multiclass", kernel="rbf", solver="sgd").partial_fit(*classes())
