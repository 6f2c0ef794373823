"""Small valid data, models and files, which cases damage."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import inspect
import types
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import structsolve
import structsolve.plugins
from structsolve import ConditionalRiskMinimizer, HierarchicalSVM, StructuredSVM, registry
from structsolve.solvers import BCFW, GBCFW, SDCA, SGD, CuttingPlane

from . import extreme
from . import objects as made

_SUFFIXES = tuple(EXTENSION_SUFFIXES)
TREE = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")]


def flat(n: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of three classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 3)) + 2 * np.eye(3)[y], y


def strips(n: int = 6, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Chains of three classes."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, 3, int(rng.integers(1, 5))) for _ in range(n)]
    Y[0] = np.array([0, 1, 2])
    return [rng.normal(size=(len(y), 3)) + 2 * np.eye(3)[y] for y in Y], Y


def structures() -> list[str]:
    """Names of all structures that can draw examples."""
    names = []
    for name in registry.default().names("structures"):
        try:
            structsolve.get_structure(name).sample(0)
        except (NotImplementedError, TypeError, ValueError):
            continue
        names.append(name)
    return names


def leaves(n: int = 12) -> tuple[np.ndarray, list[str]]:
    """Points of the leaves of `TREE`."""
    rng = np.random.default_rng(0)
    y = [["b", "c", "d"][i % 3] for i in range(n)]
    return rng.normal(size=(n, 3)), y


def fits() -> list[tuple[Any, Any, Any]]:
    """Unfitted models of every solver, and data to fit them on."""
    X, y = flat()
    XS, YS = strips()
    XL, yl = leaves()
    quick = {"max_iter": 3, "tol": 0, "alpha": 0.1, "random_state": 0, "warm_start": True}
    sgd = {**quick, "solver": "sgd", "warm_start": False}
    return [
        (StructuredSVM("chain", solver=BCFW(), **quick), XS, YS),
        (StructuredSVM("multiclass", solver=BCFW(), **quick), X, y),
        (StructuredSVM("chain", solver=CuttingPlane(), **quick), XS, YS),
        (StructuredSVM("multiclass", solver=CuttingPlane(slack="n"), **quick), X, y),
        (StructuredSVM("chain", solver=SGD(), **quick), XS, YS),
        (StructuredSVM("chain", surrogate="crf", solver=GBCFW(), **quick), XS, YS),
        (StructuredSVM("multiclass", surrogate="max-min", solver=GBCFW(), **quick), X, y),
        (StructuredSVM("chain", surrogate="max-min", **quick), XS, YS),
        (StructuredSVM("multiclass", surrogate="crf", solver=SDCA(), **quick), X, y),
        (StructuredSVM("chain", surrogate="slack", **quick), XS, YS),
        (StructuredSVM("multiclass", kernel="rbf", **quick), X, y),
        (StructuredSVM("multiclass", **quick), sp.csr_matrix(X), y),
        (HierarchicalSVM(TREE, **quick), XL, yl),
        (HierarchicalSVM(TREE, sparse=True, **sgd), sp.csr_matrix(XL), yl),
        (ConditionalRiskMinimizer("multiclass", kernel="rbf"), X, y),
        (ConditionalRiskMinimizer("multiclass"), X, y),
    ]


@functools.cache
def fitted() -> list[tuple[Any, Any, Any]]:
    """Return the models of `fits`, fitted, and one of every other structure."""
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model, X, Y in fits():
            models.append((model.fit(X, Y), X, Y))
        for name in structures():
            structure = structsolve.get_structure(name)
            X, Y = structure.sample(0)
            models.append((StructuredSVM(structure, max_iter=2, alpha=0.1).fit(X, Y), X, Y))
    return models


@functools.cache
def compiled() -> list[types.ModuleType]:
    """All compiled modules of the package and its plugins."""
    modules = []
    # By their files: walking packages would import them, including those that need PyTorch.
    for package in (structsolve, structsolve.plugins):
        for folder in map(Path, package.__path__):
            for path in sorted(p for p in folder.rglob("*") if p.name.endswith(_SUFFIXES)):
                parts = [*path.parent.relative_to(folder).parts, path.name.split(".")[0]]
                modules.append(importlib.import_module(".".join([package.__name__, *parts])))
    return modules


@functools.cache
def live() -> dict[str, list[Any]]:
    """Return compiled objects of small models, by the names of their classes."""
    own = {m.__name__ for m in compiled()}
    seen: set[int] = set()
    objects: list[Any] = []
    stack: list[Any] = [model for model, _, _ in fitted()]
    for model, X, _ in fitted():
        with contextlib.suppress(Exception):  # networks of flows are no lists
            stack += made.operators(model.space_, model.space_.pack(X[:3]))
    stack += made.objects() + extreme.objects()
    skipped = (str, bytes, int, float, types.ModuleType, types.FunctionType, type)
    while stack and len(seen) < 200_000:
        value = stack.pop()
        if id(value) in seen or isinstance(value, skipped):
            continue
        seen.add(id(value))
        module = type(value).__module__ or ""
        if module in own and type(value).__name__ not in (
            "cython_function_or_method",
            "memoryview",
        ):
            objects.append(value)
        if module.startswith(("structsolve", "builtins")) or module in own:
            stack.extend(gc.get_referents(value))
    by_class: dict[str, list[Any]] = {}
    for value in objects:
        for kind in inspect.getmro(type(value)):
            if kind is not object:
                # Some names belong to two classes.
                for name in (kind.__name__, f"{kind.__module__}.{kind.__name__}"):
                    by_class.setdefault(name, []).append(value)
    return by_class
