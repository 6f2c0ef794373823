"""LatentSVM, weighted labels, ExtremeSVM and DaskStructuredSVM, given odd data and settings."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import scipy.sparse as sp

from structsolve import ExtremeSVM, LatentSVM, StructuredSVM, WeightedLabels
from structsolve.testing import BrokenPromise

from . import extreme, seeds
from .api import odd
from .base import Target, judged, short

_NUMBERS: list[Any] = [0, -1, 1, 2, 2.5, 1e-300, 1e300, 10**30, np.nan, np.inf, "x", None, True, []]
_FLOATS = [1e-3, 0.1, 1.0]


class _Users(Target):
    """Fit an estimator and use it, with something odd in one or two places."""

    refusals = (ValueError, TypeError, NotImplementedError, BrokenPromise)
    batch = 50
    settings: dict[str, list[Any]]
    calls: tuple[str, ...] = ("predict", "score")

    def __init__(self, folder: str):
        self.data = self.examples()

    def examples(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def make(self, settings: dict[str, Any]) -> Any:
        raise NotImplementedError

    def run(self, rng: np.random.Generator) -> None:
        """Make a model, fit it, and use it; see the package."""
        settings: dict[str, Any] = {"max_iter": 2}
        for key in rng.choice(sorted(self.settings), int(rng.integers(3)), replace=False):
            pool = self.settings[str(key)]
            settings[str(key)] = pool[int(rng.integers(len(pool)))]
        fitted, asked = list(self.data), list(self.data)
        for given in (fitted, asked):
            if rng.random() < 0.5:
                place = int(rng.integers(2))
                given[place] = odd(rng, given[place])
        call = self.calls[int(rng.integers(len(self.calls)))]
        told = f"{settings} fit({short(fitted, 300)}), {call}({short(asked, 300)})"
        self.say(f"{self.name}: {told}")
        try:
            model = self.make(settings).fit(*fitted)
            if hasattr(model, call):  # not every surrogate has probabilities
                getattr(model, call)(*asked[: 2 if call == "score" else 1])
        except TypeError as error:
            raise judged(error) from None


class Latent(_Users):
    """Classes of bags, and chains with some unknown states."""

    name = "latent"
    settings = {
        "alpha": _NUMBERS, "max_rounds": _NUMBERS, "tol": _NUMBERS, "max_iter": _NUMBERS[:5],
        "loss": ["x", None, 3, "zero-one", "hamming", np.eye(2)], "random_state": _NUMBERS,
        "solver": ["x", None, 3, "sgd", "bcfw", "cutting-plane"], "n_jobs": [0, "x", 2],
        "n_init": _NUMBERS[:5], "n_hidden": [*_NUMBERS[:6], [1, 2, 1], {0: 2}],
        "init": ["x", "random"],
        "surrogate": ["x", None, "crf", "slack"], "oracle": ["x", "lp"],
    }  # fmt: skip

    def examples(self) -> tuple[Any, Any]:
        return seeds.strips()

    def make(self, settings: dict[str, Any]) -> Any:
        return LatentSVM("chain", **{"n_hidden": 2, "max_rounds": 2, **settings})


class Weighted(_Users):
    """Labels whose nodes have weights."""

    name = "weighted"
    settings = {
        "alpha": _NUMBERS, "loss": ["x", "zero-one", "hamming", "normalized-hamming"],
        "class_weight": ["balanced", "x", {0: 2.0}, {0: -1}, {7: 1}, 3, None],
        "surrogate": ["crf", "slack", "max-min", "margin", "micro-f1"],
    }  # fmt: skip

    def examples(self) -> tuple[Any, Any]:
        return seeds.strips()

    def make(self, settings: dict[str, Any]) -> Any:
        return StructuredSVM("chain", **settings)

    def run(self, rng: np.random.Generator) -> None:
        X, Y = self.examples()
        pairs = []
        for y in Y:
            weights: Any = rng.random(len(y))
            given = [y, odd(rng, weights) if rng.random() < 0.1 else weights]
            if rng.random() < 0.05:
                given[0] = odd(rng, y)
            try:
                pairs.append(WeightedLabels(*given))
            except TypeError as error:
                raise judged(error) from None
        self.data = X, pairs
        super().run(rng)


class Extreme(_Users):
    """Very many classes, although here a few."""

    name = "extreme"
    calls = ("predict", "score", "predict_topk", "predict_proba")
    settings = {
        "alpha": _NUMBERS, "max_iter": [*_NUMBERS[:5], 2**63], "tol": _NUMBERS,
        "random_state": _NUMBERS,
        "solver": ["x", None, 3, "dual", "memoir", "one-vs-some", "softmax"],
        "surrogate": ["x", None, 3, "crf", "margin", "max-min", "sparsemap"],
        "rivals": ["x", None, 3, "certified:.05", "certified:x", "exact", "sampled:2", "lsh:8"],
        "n_jobs": [0, -5, 2.5, "x", 2], "penalty": ["x", None, "l1", 3], "max_memory": _NUMBERS,
    }  # fmt: skip

    def examples(self) -> tuple[Any, Any]:
        X, y = extreme.documents()
        return X, y.astype(np.int64)

    def make(self, settings: dict[str, Any]) -> Any:
        return ExtremeSVM(**settings)

    def run(self, rng: np.random.Generator) -> None:
        X, y = self.examples()
        way = int(rng.integers(5))
        if way == 1:
            self.data = X.toarray(), y
        elif way == 2:
            self.data = sp.coo_matrix(X), [[int(k)] for k in y]
        elif way == 3:
            X.indices[int(rng.integers(X.nnz))] = int(rng.choice([-1, 6, 2**31 - 1]))
            self.data = X, y
        else:
            self.data = X, y
        super().run(rng)


class Dask(_Users):
    """Chains in partitions, on workers that are threads of this process."""

    name = "dask"
    batch, limit = 20, 60
    calls = ("predict", "score")
    settings = {
        "alpha": _NUMBERS, "tol": _NUMBERS, "n_shards": _NUMBERS[:6], "random_state": _NUMBERS[:5],
        "structure": ["x", None, 3, "multiclass", "tree"], "max_iter": _NUMBERS[:5],
        "loss": ["x", None, "zero-one", "hamming", np.eye(2)], "n_jobs": [0, "x", 2],
        "solver": ["x", None, 3, "sgd", "bcfw", "cutting-plane", "admm"], "oracle": ["x", "lp"],
        "surrogate": ["x", None, "crf", "slack", "sparsemap"], "penalize_intercept": [False, "x"],
    }  # fmt: skip
    client: Any = None

    def examples(self) -> tuple[Any, Any]:
        return seeds.strips(12)

    def run(self, rng: np.random.Generator) -> None:
        import distributed  # its threads do not outlive a fork: made in the process of the batch

        if Dask.client is None:
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
            Dask.client = distributed.Client(processes=False, memory_limit=0, **options)
        self.pieces = int(rng.integers(1, 4))
        super().run(rng)

    def make(self, settings: dict[str, Any]) -> Any:
        from structsolve.dask import DaskStructuredSVM

        model = DaskStructuredSVM("chain", **{"n_shards": 2, "client": self.client, **settings})
        pieces = self.pieces

        class Lazy:
            """Return the model and its data, in partitions if they can be split."""

            def fit(self, X: Any, y: Any) -> Any:
                model.fit(lazily(X, pieces), lazily(y, pieces))
                return self

            def predict(self, X: Any) -> Any:
                return model.predict(lazily(X, pieces))

            def score(self, X: Any, y: Any) -> Any:
                return model.score(lazily(X, pieces), lazily(y, pieces))

        return Lazy()


def lazily(values: Any, pieces: int) -> Any:
    """Return delayed pieces of a list or array; anything else unchanged."""
    import dask

    if not isinstance(values, list) and getattr(values, "ndim", 0) == 0:
        return values
    bounds = np.linspace(0, len(values), pieces + 1).astype(int)
    return [dask.delayed(values[a:b], traverse=False) for a, b in zip(bounds, bounds[1:])]
