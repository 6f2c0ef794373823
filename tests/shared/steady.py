"""Random small fits by interior-point and Newton steps; none may stall.

``python -m steady [FITS [FIRST]]`` from the folder of tests, or `.ci/steady`: a table of how they
ended, and every fit that ended short of its tolerance.
"""

import sys
import warnings
from collections import Counter

import numpy as np

from structsolve import CostMatrix, StructuredSVM
from structsolve.plugins.ordinal import OrdinalStructure

SURROGATES = ("margin", "crf")
# Below this share of the features' products, alpha is lost in their rounding errors.
RESOLVED = 2e-16


def case(seed):
    """Return the arguments of a fit, and those of its model."""
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    n = int(rng.integers(K, 5 * K + 10)) if rng.random() < 0.7 else K
    X = rng.normal(size=(n, d))
    kind = rng.integers(6)
    if kind == 1:  # ties
        X = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == 2:  # duplicates, of different labels
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == 3:  # a column of zeros
        X[:, rng.integers(d)] = 0
    elif kind == 4:
        X = np.zeros((n, d))
    elif kind == 5:  # columns of different scales
        X *= 10.0 ** rng.integers(-3, 4, d)
    if rng.random() < 0.4:
        X *= 10.0 ** rng.integers(-6, 7)
    if rng.random() < 0.3:  # a large mean
        X = X + rng.normal() * 10.0 ** rng.integers(0, 5)
    y = np.append(np.arange(K), rng.integers(0, K, n - K))
    cost = rng.integers(0, 5, (K, K)).astype(float) if seed % 2 else 4 * rng.random((K, K))
    cost *= 10.0 ** rng.integers(-2, 3) if rng.random() < 0.3 else 1
    np.fill_diagonal(cost, 0)
    structure = ["multiclass", "ordinal", OrdinalStructure(thresholds=True)][rng.integers(3)]
    plain = "hamming" if structure == "multiclass" else "absolute"
    weights = None
    if rng.random() < 0.3:
        weights = rng.integers(0, 3, n).astype(float)
        if seed % 3 == 0:  # orders of magnitude apart
            weights *= 10.0 ** np.random.default_rng([seed, 1]).uniform(-6, 4, n)
        weights[0] = 1
    model = {
        "structure": structure,
        "surrogate": SURROGATES[int(rng.random() < 0.3)],
        "loss": [plain, "zero-one", CostMatrix(cost)][rng.integers(3)],
        "alpha": 10.0 ** rng.uniform(-9, 3),
        "tol": 10.0 ** rng.integers(-7, -1),
        "solver": "interior-point",
    }
    return (X, y, weights), model


def fit(given, settings):
    """Return the fitted model, and whether it stalled although double precision allows progress."""
    X, y, weights = given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = StructuredSVM(**settings).fit(X, y, sample_weight=weights)
    if model.stop_reason_ == "converged":
        return model, False
    size = 1 + float(np.square(X).sum(axis=1).max())
    resolved = settings["alpha"] * settings["tol"] >= RESOLVED * size
    return model, resolved or model.stop_reason_ != "failed"


def main(fits=20_000, first=0):
    ended, bad = Counter(), 0
    for seed in range(first, first + fits):
        given, settings = case(seed)
        model, still = fit(given, settings)
        kind = settings["structure"]
        kind = kind if isinstance(kind, str) else "thresholds"
        ended[kind, settings["surrogate"], model.stop_reason_] += 1
        if model.stop_reason_ != "converged":
            last, bad = model.history_[-1], bad + still
            told = "STANDS STILL" if still else "beyond double precision"
            print(
                f"{seed}: {told}: {kind} {settings['surrogate']} {model.stop_reason_} after "
                f"{last['pass']} passes, primal {last['primal']:.3g}, gap {last['gap']:.3g}, "
                f"tol {settings['tol']:g}, alpha {settings['alpha']:.2g}, "
                f"largest feature {np.abs(given[0]).max():.2g}; {last.get('failed')}"
            )
    for name, count in sorted(ended.items()):
        print(*name, count, sep="\t")
    print(f"{bad} of {fits} stand still")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
