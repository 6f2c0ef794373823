"""Data with many classes, and an external solver, for tests of ExtremeSVM."""

import numpy as np
import scipy.sparse as sp
from scipy import sparse

from structsolve.plugins.extreme.solvers.base import ExtremeResult, ExtremeSolver
from structsolve.plugins.extreme.weights.postings import Postings


def documents(n=120, n_classes=12, n_features=60, seed=0, noise=0.1):
    """Return rows of words, of unit length: some of the row's class, some of any; CSR, float32."""
    rng = np.random.default_rng(seed)
    own = np.random.default_rng(1).permutation(n_features)[: 3 * n_classes].reshape(n_classes, 3)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = np.zeros((n, n_features), np.float32)
    for i, c in enumerate(y):
        X[i, rng.choice(own[c], 2)] += 1 + rng.random(2)
        X[i, rng.integers(0, n_features, 3)] += rng.random(3)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    wrong = rng.random(n) < noise
    wrong[:n_classes] = False
    y[wrong] = rng.integers(0, n_classes, wrong.sum())
    return sp.csr_matrix(X), y


class Plain(ExtremeSolver):
    """Gradient descent on dense weights, squared hinge of one class against the rest.

    Written with what the base class says alone, as an outsider's solver would be.
    """

    name = "plain"
    incremental = True

    def __init__(self, steps: int = 30, intercept: bool = False):
        self.steps = steps
        self.intercept = intercept

    def fit(self, problem, after=None, checkpoint=None):
        X = problem.X.toarray().astype(np.float64)
        X = np.hstack([X, np.full((len(X), 1), float(self.intercept))])
        Y = np.where(problem.y[:, None] == np.arange(problem.n_classes), 1.0, -1.0)
        share, alpha = problem.shares[:, None], problem.alpha
        W, history = np.zeros((X.shape[1], problem.n_classes)), []
        if problem.start is not None:
            W[:-1] = problem.start.to_matrix().toarray()
        content = None if checkpoint is None else checkpoint.read()
        if content is not None:
            history, W = content[0]["history"], content[1]["W"]
        step = 1 / (2 * np.linalg.eigvalsh(X.T @ (share * X)).max() + alpha)
        reason = "max_iter"
        try:
            while len(history) < problem.max_iter and reason == "max_iter":
                for _ in range(self.steps):
                    lack = np.maximum(0, 1 - Y * (X @ W))
                    W = W - step * (alpha * W - 2 * X.T @ (share * Y * lack))
                lack = np.maximum(0, 1 - Y * (X @ W))
                primal = alpha / 2 * (W**2).sum() + (share * lack**2).sum()
                record = dict.fromkeys(("dual", "gap"))
                record |= {"pass": len(history) + 1, "primal": float(primal)}
                record |= {"mean_epsilon": 0.0, "entries": 0, "seconds": 0.0}
                history.append(record)
                if after is not None and after(record):
                    reason = "callback"
                if checkpoint is not None:
                    meta = {"history": list(history)}
                    checkpoint.write(lambda meta=meta, W=W: (meta, {"W": W}))
        except KeyboardInterrupt:
            reason = "interrupted"
        intercept = W[-1].astype(np.float32) if self.intercept else None
        weights = Postings.from_matrix(sp.csr_matrix(W[:-1]), intercept)
        return ExtremeResult(weights, history, reason, {"steps": self.steps})


def rows(rng, n, d, density=0.4):
    """Return sparse rows of rounded numbers: ties, repeated rows and empty ones are common."""
    X = sparse.random(n, d, density, format="csr", dtype=np.float32, random_state=rng)
    X.data = np.round(2 * X.data - 1, 1).astype(np.float32)
    X.eliminate_zeros()
    X = X[rng.integers(0, n, n)]
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int64)
    return X


def rows_of(rng, n, d, density=0.4, integers=False):
    """CSR rows of float32, some empty; small integers make ties and exact sums."""
    X = sp.random(n, d, density, "csr", np.float32, rng)
    if integers:
        X.data[:] = rng.integers(-2, 3, X.nnz)
    else:
        X.data -= np.float32(0.4)
    return X


def sums(weights, X):
    """Return scores of all classes, added up in float32 in the order of the features."""
    W, dense = weights.to_matrix().toarray(), X.toarray()
    S = np.zeros((X.shape[0], weights.n_classes), np.float32)
    if weights.intercept is not None:
        S += weights.intercept
    for f in range(X.shape[1]):
        S += dense[:, f, None] * W[f]
    return S


def best(S, k, exclude=None):
    """Return the k best columns of each row, lowest first on ties, and their values."""
    S = S.copy()
    if exclude is not None:
        out = np.flatnonzero(exclude >= 0)
        S[out, exclude[out]] = -np.inf
    ids = np.argsort(-S, axis=1, kind="stable")[:, :k].astype(np.int32)
    values = np.take_along_axis(S, ids, 1)
    ids[values == -np.inf] = -1
    room = ((0, 0), (0, k - ids.shape[1]))
    return np.pad(ids, room, constant_values=-1), np.pad(values, room, constant_values=-np.inf)
