"""Small data sets for tests, and real ones from STRUCTSOLVE_DATA."""

import os
from pathlib import Path

import numpy as np
import pytest

from structsolve import StructuredSVM

needs_data = pytest.mark.skipif(
    "STRUCTSOLVE_DATA" not in os.environ,
    reason="STRUCTSOLVE_DATA is not set: real data sets are not at hand",
)


def data_file(*parts):
    """Return the path of a real data set."""
    return Path(os.environ["STRUCTSOLVE_DATA"], *parts)


def chains(n=30, n_features=6, n_classes=3, longest=6, seed=0, noise=1.0):
    """Return random chains with learnable labels: X list of arrays, Y list of int arrays."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, n_features)) * 2
    jump = rng.dirichlet(np.ones(n_classes), n_classes)
    X, Y = [], []
    for _ in range(n):
        y = [int(rng.integers(n_classes))]
        for _ in range(int(rng.integers(0, longest))):
            y.append(int(rng.choice(n_classes, p=jump[y[-1]])))
        Y.append(np.array(y))
        X.append(centres[y] + noise * rng.normal(size=(len(y), n_features)))
    return X, Y


def fitted(X, Y, **settings):
    """Return a model of chains, trained far."""
    settings = {"alpha": 0.05, "tol": 1e-6, "max_iter": 500, **settings}
    return StructuredSVM("chain", **settings).fit(X, Y)


def classes(n=60, n_features=5, n_classes=3, seed=0):
    """Return random points in classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    centres = rng.normal(size=(n_classes, n_features)) * 2
    return centres[y] + rng.normal(size=(n, n_features)), y


def flat(n=60, seed=0):
    """Return rows of one of three classes named by letters."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return np.eye(3)[y] + rng.normal(size=(n, 3)), np.array(list("abc"))[y]


def ocr_letters():
    """Return OCR letters as (list of (length, 128) arrays, list of label arrays, fold per word)."""
    with np.load(data_file("ocr-letters", "letters.npz")) as data:
        X = np.unpackbits(data["X"], axis=1).astype(np.float64)
        y, offsets, fold = data["y"], data["offsets"], data["fold"]
    cut = offsets[1:-1]
    return np.split(X, cut), np.split(y, cut), fold
