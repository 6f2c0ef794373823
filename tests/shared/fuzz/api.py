"""Public calls: estimators with odd data and settings, and inconsistent sparse matrices."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

import structsolve
from structsolve import ConditionalRiskMinimizer, HierarchicalSVM, Sequences, StructuredSVM
from structsolve.testing import BrokenPromise

from . import seeds
from .base import Fault, Target, short

ODD: list[Any] = [
    None, 0, 1, -1, 3, 2.5, float("nan"), "x", "", [], [[]], [None], {}, (), [1, [2]], [[1], 2],
    np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 2, 2)), np.float64(1), object(),
    np.array(["a", "b"]), np.array([1, None], dtype=object), np.array([[1, 2], [3, 4]], complex),
    np.array(5), np.array([np.nan, 1]), np.array([2**62, -(2**62)]), b"x", True, range(3),
    np.array(["2020-01-01"], dtype="M8[D]"), [np.zeros((2, 3)), np.zeros((2, 4))], "abc" * 100,
]  # fmt: skip
_SETTINGS: dict[str, list[Any]] = {
    "alpha": [0, -1, np.nan, np.inf, 1e-300, 1e300, "x", None, True, 10**400],
    "tol": [-1, np.nan, "x", None, 1e300],
    "max_iter": [0, -1, 2.5, "x", None, 2],
    "n_jobs": [0, -5, 2.5, "x", 2],
    "loss": ["x", None, 3, "zero-one", "hamming", "normalized-hamming", np.eye(2)],
    "surrogate": ["x", None, 3, "slack", "crf", "sparsemap", "max-min", "margin"],
    "solver": ["x", None, 3, "sgd", "bcfw", "gbcfw", "sdca", "cutting-plane"],
    "kernel": ["x", 3, "rbf", "poly", "precomputed", lambda a, b: np.nan],
    "random_state": [-1, "x", 1.5, 2**70],
    "oracle": ["x", 3, "highs"],
    "fit_intercept": [None, 3, False],
    "early_stopping": [True],
    "warm_start": [True],
    "validation_fraction": [0, 1, np.nan, "x"],
}
# Errors that calls may raise besides ValueError and a clear TypeError.
_TOLD = (ValueError, TypeError, NotImplementedError, BrokenPromise)


def _estimators() -> list[tuple[str, Any, Any, Any]]:
    X, y = seeds.flat()
    XS, YS = seeds.strips()
    XL, yl = seeds.leaves()
    models = [
        ("HierarchicalSVM", lambda **k: HierarchicalSVM(seeds.TREE, **k), XL, yl),
        ("ConditionalRiskMinimizer", lambda **k: ConditionalRiskMinimizer("multiclass"), X, y),
    ]
    for name in seeds.structures():
        structure = structsolve.get_structure(name)
        XX, YY = structure.sample(0)
        models.append((name, lambda s=structure, **k: StructuredSVM(s, **k), XX, YY))
    models.append(("chain", lambda **k: StructuredSVM("chain", **k), XS, YS))
    return models


class Api(Target):
    """``fit``, ``predict``, ``score`` and related calls, of every structure."""

    name = "api"
    refusals = _TOLD

    def __init__(self, folder: str):
        self.estimators = _estimators()
        self.fitted = seeds.fitted()

    def run(self, rng: np.random.Generator) -> Any:
        """Make one call; see the package."""
        return self.train(rng) if rng.random() < 0.4 else self.use(rng)

    def train(self, rng: np.random.Generator) -> Any:
        name, make, X, Y = self.estimators[int(rng.integers(len(self.estimators)))]
        settings = {"max_iter": 2}
        if rng.random() < 0.6 and name != "ConditionalRiskMinimizer":
            for key in rng.choice(sorted(_SETTINGS), int(rng.integers(1, 3)), replace=False):
                settings[str(key)] = _SETTINGS[key][int(rng.integers(len(_SETTINGS[key])))]
        given = [X, Y]
        if rng.random() < 0.6:
            place = int(rng.integers(2))
            given[place] = odd(rng, given[place])
        weights = odd(rng, np.ones(len(Y))) if rng.random() < 0.1 else None
        self.say(f"{name}.fit({short(given, 400)}, {weights!r}) {settings!r}")
        return make(**settings).fit(*given, sample_weight=weights)

    def use(self, rng: np.random.Generator) -> Any:
        model, X, Y = self.fitted[int(rng.integers(len(self.fitted)))]
        calls = {
            "predict": (X,), "score": (X, Y), "decision_function": (X,), "predict_marginals": (X,),
            "predict_kbest": (X, 2), "sample": (X, 2), "predict_proba": (X,), "risk": (X,),
            "predict_log_proba": (X,), "partial_fit": (X, Y), "log_likelihood": (X, Y),
        }  # fmt: skip
        names = [name for name in calls if hasattr(model, name)]
        name = names[int(rng.integers(len(names)))]
        given = list(calls[name])
        place = int(rng.integers(len(given)))
        given[place] = odd(rng, given[place])
        self.say(f"{short(model, 80)}.{name}({short(given, 600)})")
        if name == "predict_kbest" and isinstance(given[1], int) and given[1] > 1000:
            given[1] = 5
        return getattr(model, name)(*given)


def odd(rng: np.random.Generator, value: Any) -> Any:
    """Return something else, or the value with something odd in it."""
    if rng.random() < 0.35:
        return ODD[int(rng.integers(len(ODD)))]
    if isinstance(value, (int, float)):
        return [0, -1, 10**9, 2**63, 2.5, None, "x", np.nan][int(rng.integers(8))]
    if isinstance(value, np.ndarray) and value.dtype != object:
        ways = (
            lambda: value[: len(value) // 2],
            lambda: value[:, :1] if value.ndim > 1 else value[:, None],
            lambda: value.astype(object),
            lambda: value.astype(str),
            lambda: value.astype(np.float32),
            lambda: value.T,
            lambda: _holding(rng, value, [np.nan, np.inf, -np.inf, 1e308, -1, 10**6]),
            lambda: np.asfortranarray(value)[::-1],
            lambda: value.tolist(),
            lambda: sp.coo_matrix(np.atleast_2d(value)),
            lambda: np.ma.masked_array(value, value == value.flat[0]) if value.size else value,
        )
        return ways[int(rng.integers(len(ways)))]()
    if isinstance(value, (list, tuple)) and len(value):
        place = int(rng.integers(len(value)))
        inner = odd(rng, value[place])
        return [*value[:place], inner, *value[place + 1 :]]
    return value[: value.shape[0] // 2] if hasattr(value, "shape") else value


def _holding(rng: np.random.Generator, value: np.ndarray, pool: list[Any]) -> np.ndarray:
    copy = value.copy()
    if copy.dtype.kind in "US" or not copy.size:
        return copy
    with np.errstate(all="ignore"):
        odd = np.array(pool[int(rng.integers(len(pool)))]).astype(copy.dtype)
    copy.reshape(-1)[int(rng.integers(copy.size))] = odd
    return copy


class Sparse(Target):
    """Sparse matrices with inconsistent arrays, in every place for a matrix."""

    name = "sparse"
    refusals = (ValueError, TypeError)

    def __init__(self, folder: str):
        X, y = seeds.flat()
        XL, yl = seeds.leaves()
        dense = np.where(X > 0, X, 0)
        quick = {"max_iter": 2, "alpha": 0.1}
        self.dense = dense
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat = StructuredSVM("multiclass", **quick).fit(dense, y)
            chain = StructuredSVM("chain", **quick).fit([dense], [y])
            tree = HierarchicalSVM(
                seeds.TREE, sparse=True, solver="sgd", normalization="none", **quick
            ).fit(sp.csr_matrix(XL), yl)
        crm = ConditionalRiskMinimizer("multiclass", kernel="rbf").fit(dense, y)
        offsets = [4, 4, 4]
        self.uses = [
            lambda M: StructuredSVM("multiclass", **quick).fit(M, y),
            lambda M: StructuredSVM("multiclass", kernel="rbf", **quick).fit(M, y),
            lambda M: StructuredSVM("chain", **quick).fit([M], [y]),
            lambda M: StructuredSVM("chain", **quick).fit(Sequences(M, offsets), np.split(y, 3)),
            lambda M: StructuredSVM("multilabel", **quick).fit(dense, M),
            lambda M: HierarchicalSVM(seeds.TREE, **quick).fit(dense, M),
            lambda M: ConditionalRiskMinimizer("multiclass").fit(M, y),
            flat.predict,
            lambda M: flat.score(M, y),
            lambda M: chain.predict([M]),
            tree.predict,
            crm.predict,
        ]

    def run(self, rng: np.random.Generator) -> None:
        """Pass one matrix to one call; see the package."""
        kind = ["csr", "csc", "bsr", "coo", "dia", "lil"][int(rng.integers(6))]
        M = sp.csr_matrix(self.dense).asformat(kind)
        names = [n for n in ("indptr", "indices", "data", "row", "col", "offsets") if hasattr(M, n)]
        name = names[int(rng.integers(len(names)))] if names else "data"
        array, way = np.array(getattr(M, name)), int(rng.integers(6))
        pool = [-1, 0, 3, 2**31 - 1, -(2**31), array.shape[0], 12]
        number = pool[int(rng.integers(len(pool)))]
        if array.dtype != object and array.size:
            if way < 3:
                array.reshape(-1)[int(rng.integers(array.size))] = number
            elif way == 3:
                array = array[: len(array) // 2].copy()
            elif way == 4:
                array = array.astype([np.float32, np.int8, bool][int(rng.integers(3))])
            else:
                array = array[:0]
            setattr(M, name, array)
        use = int(rng.integers(len(self.uses)))
        self.say(f"use {use} of {kind}: {name} way {way}, {number}")
        try:
            self.uses[use](M)
        except (IndexError, KeyError, OverflowError, MemoryError, AttributeError) as error:
            raise Fault(f"use {use} of {kind}, {name}: {type(error).__name__}: {error}") from error
