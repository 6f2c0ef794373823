"""Saving and loading of fitted models without pickle."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

import numpy as np

from . import container, registry
from .hierarchy.path_cost import PathCost
from .hierarchy.sparse_model import SparseModel
from .kernel import Kernel
from .kernel_model import KernelModel
from .losses import ClassWeights, CostMatrix
from .params import Params

_KINDS = ("structures", "surrogates", "solvers")
_LOSSES = {"CostMatrix": CostMatrix, "ClassWeights": ClassWeights, "PathCost": PathCost}
# What a loaded model can do without.
_TRANSIENT = ("callbacks", "checkpoint", "verbose")


def _plain(value: Any, name: str) -> Any:
    """Return a parameter as JSON-able values."""
    if isinstance(value, (CostMatrix, ClassWeights, PathCost)):
        params = {k: _plain(v, k) for k, v in value.get_params(deep=False).items()}
        return {"__loss__": type(value).__name__, "params": params}
    if isinstance(value, Params) and hasattr(value, "name"):
        for kind in _KINDS:
            if value.name in registry.default().names(kind):
                # A structure may have parameters that JSON knows no form of.
                saved = getattr(value, "saved_params", None) or partial(value.get_params, False)
                params = {k: _plain(v, k) for k, v in saved().items()}
                return {"__kind__": kind, "name": value.name, "params": params}
    if hasattr(value, "adj") and hasattr(value, "is_multigraph"):  # a networkx graph
        if value.is_multigraph():
            raise ValueError(f"parameter {name!r} is a multigraph, which cannot be saved")
        nodes = [[_plain(v, name), _plain(dict(d), name)] for v, d in value.nodes(data=True)]
        edges = [[_plain(e[:2], name), _plain(dict(e[2]), name)] for e in value.edges(data=True)]
        return {"__graph__": value.is_directed(), "nodes": nodes, "edges": edges}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {"__items__": [[_plain(k, name), _plain(v, name)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_plain(v, name) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    raise ValueError(
        f"parameter {name!r} is {value!r}, which cannot be saved without pickle; save coef_ "
        "instead, or use an object that a plugin registers by name"
    )


def _revive(value: Any) -> Any:
    if isinstance(value, list):
        return [_revive(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "__items__" in value:
        return {_revive(k): _revive(v) for k, v in value["__items__"]}
    if "__graph__" in value:
        import networkx as nx

        graph = nx.DiGraph() if value["__graph__"] else nx.Graph()
        for v, attributes in value["nodes"]:
            graph.add_node(_node(v), **_revive(attributes))
        for (u, v), attributes in value["edges"]:
            graph.add_edge(_node(u), _node(v), **_revive(attributes))
        return graph
    params = {k: _revive(v) for k, v in value["params"].items()}
    if "__loss__" in value:
        return _LOSSES[value["__loss__"]](**params)
    return registry.default().find(value["__kind__"], value["name"]).factory(**params)


def _node(value: Any) -> Any:
    # JSON has no tuples, and lists are no nodes.
    return tuple(_node(v) for v in value) if isinstance(value, list) else value


def _importable(function: Any) -> str:
    """Return ``module:name`` of a function that a program can import; refuse others."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    found: Any = sys.modules.get(str(module))
    for part in str(name).split("."):
        found = getattr(found, part, None)
    if found is not function or module == "__main__":
        raise ValueError(
            f"kernel is {function!r}, which cannot be saved without pickle: only functions that "
            "can be imported by their name can; or use a kernel that scikit-learn knows"
        )
    return f"{module}:{name}"


def _kernel(value: Any, given: Any) -> Any:
    """Return the kernel of a model file: a name, or the function that the caller of load gives."""
    named = value["__function__"] if isinstance(value, dict) else None
    if named is None and given is not None:
        raise ValueError(f"it was trained with kernel={value!r}: leave kernel out of load()")
    if named is None:
        return value
    if not callable(given):
        module, _, name = named.partition(":")
        raise ValueError(
            f"its kernel is the function {named!r}, which files do not hold: import {module} and "
            f"give load(..., kernel={module}.{name})"
        )
    if Kernel(given).name != named:
        raise ValueError(f"its kernel is {named!r}, but kernel is {Kernel(given).name!r}")
    return given


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to ``path``, atomically; see :meth:`StructuredSVM.save`."""
    given = getattr(model, "saved_params", None) or partial(model.get_params, False)
    params = {
        k: None if k == "oracle" or (k == "kernel" and callable(v)) else _plain(v, k)
        for k, v in given().items()
        if k not in _TRANSIENT
    }
    # A backend's name makes it again.
    params["oracle"] = getattr(model.oracle, "name", model.oracle)
    if callable(model.kernel):
        params["kernel"] = {"__function__": _importable(model.kernel)}
    structure = model.space_.structure
    space_meta, arrays = model.space_.state()
    meta = {
        "estimator": type(model).__name__,
        "params": params,
        "structure": _plain(structure, "structure"),
        "space": space_meta,
        "history": model.history_,
        "stop_reason": model.stop_reason_,
        "metadata": getattr(model, "metadata_", {}),
    }
    arrays = {f"space_{k}": v for k, v in arrays.items()}
    if isinstance(model._w, (KernelModel, SparseModel)):
        prefix = "kernel" if isinstance(model._w, KernelModel) else "sparse"
        arrays |= {f"{prefix}_{k}": v for k, v in model._w.to_arrays().items()}
    else:
        arrays |= {f"coef_{k}": v for k, v in model.coef_.items()}
    arrays |= {f"fitted_{k}": v for k, v in model._extra_arrays().items()}
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names_in"] = np.asarray(model.feature_names_in_, dtype=str)
    container.write(path, "model", meta, arrays)


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def load(path: str | os.PathLike[str], kernel: Any = None) -> Any:
    """Load a model that :meth:`StructuredSVM.save` wrote.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        The kernel of a model trained with a function of one's own: files hold its name only.

    Returns
    -------
    StructuredSVM

    Raises
    ------
    ValueError
        When the file is cut short, damaged, not one of ours, written by a newer format, or needs
        a structure that no installed plugin brings.

    Examples
    --------
    >>> import structsolve, tempfile, os
    >>> model = structsolve.StructuredSVM("multiclass").fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "m.structsolve"))
    ...     structsolve.load(os.path.join(folder, "m.structsolve")).predict([[1.0]]).tolist()
    ['yes']
    """
    from .estimator import StructuredSVM
    from .hierarchical import HierarchicalSVM

    kinds = {kind.__name__: kind for kind in (StructuredSVM, HierarchicalSVM)}
    meta, arrays = container.read(path, "model")
    try:
        if meta["estimator"] == "ConditionalRiskMinimizer":
            from .risk.files import revive

            return revive(meta, arrays, kernel)
        if meta["estimator"] not in kinds:
            raise ValueError(f"it holds a {meta['estimator']}, which this version does not know")
        params = dict(meta["params"])
        function = _kernel(params.pop("kernel", None), kernel)
        kind = kinds[meta["estimator"]]
        model = kind(kernel=function, **{k: _revive(v) for k, v in params.items()})
        structure = _revive(meta["structure"])
        space = structure.space_from_state(meta["space"], _part(arrays, "space_"))
        if any(k.startswith("sparse_") for k in arrays):
            model._become_sparse(space, SparseModel.from_arrays(space, _part(arrays, "sparse_")))
        elif model.kernel is None:
            model._become_fitted(space, _part(arrays, "coef_"))
        else:
            made = Kernel(model.kernel, model.kernel_params, model.cache_size)
            fitted = KernelModel.from_arrays(made, _part(arrays, "kernel_"), space.layout)
            model._become_fitted(space, None, fitted)
        model.history_, model.stop_reason_ = meta["history"], meta["stop_reason"]
        model.n_iter_ = len(model.history_)
        model.metadata_ = meta["metadata"]
        model._take_extra_arrays(_part(arrays, "fitted_"))
        if "feature_names_in" in arrays:
            model.feature_names_in_ = arrays["feature_names_in"].astype(object)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from error
    return model
