"""Writes and reads the contents of files of fitted models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import registry
from ..lp.base import Backend
from ..utils import container
from ..utils.arrays import check_finite, part_of
from .alpha import is_auto
from .codec import (
    KIND_OF,
    TRANSIENT,
    check_history,
    check_metadata,
    importable,
    plain,
    revive_params,
)
from .common import check_number


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, atomically; see :meth:`StructuredSVM.save`.

    Parameters
    ----------
    model : StructuredSVM
    path : path
    """
    meta, arrays = describe(model, TRANSIENT)
    if "oracle" in meta["params"]:  # subclasses may leave it out
        meta["params"]["oracle"] = _oracle(model.oracle)
    meta |= {"history": model.history_, "stop_reason": model.stop_reason_}
    # The value of "auto"; untrained models have none.
    meta["alpha"] = getattr(model, "alpha_", None)
    if hasattr(model, "factor_"):
        meta["factor"] = model.factor_
    learned = model._model
    arrays |= {f"{learned.key}_{k}": v for k, v in learned.to_arrays().items()}
    arrays |= {f"fitted_{k}": v for k, v in model._extra_arrays().items()}
    if model._edge_names is not None:
        meta["edge_names"] = model._edge_names
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names_in"] = np.asarray(model.feature_names_in_, dtype=str)
    container.write(path, "model", meta, arrays)


def restore(
    estimator: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any
) -> Any:
    """Return the model whose file :func:`save` wrote; see :meth:`StructuredSVM.from_file`.

    Parameters
    ----------
    estimator : type
        StructuredSVM, or a subclass.
    meta, arrays, kernel
        As of ``from_file``.

    Returns
    -------
    StructuredSVM
    """
    params, space = revive_params(meta, arrays, kernel, estimator)
    model = estimator(**params)
    model._check_settings()
    kind = next((kind for kind in model._models if part_of(arrays, f"{kind.key}_")), None)
    if kind is None:
        raise ValueError("it holds no weights")
    check_finite(part_of(arrays, f"{kind.key}_"))
    learned = kind.from_arrays(space, part_of(arrays, f"{kind.key}_"), model._kernel())
    model._become_fitted(space, learned)
    model.history_, model.stop_reason_ = check_history(meta["history"]), meta["stop_reason"]
    model.n_iter_ = len(model.history_)
    _take_alpha(model, meta.get("alpha"))
    if "factor" in meta:
        check_number("factor", meta["factor"], 0, True)
        model.factor_ = float(meta["factor"])
    model.metadata_ = check_metadata(meta["metadata"])
    model._take_extra_arrays(part_of(arrays, "fitted_"))
    if "feature_names_in" in arrays:
        model.feature_names_in_ = arrays["feature_names_in"].astype(object)
    if "edge_names" in meta:
        model._edge_names = [str(name) for name in meta["edge_names"]]
    return model


def _take_alpha(model: Any, alpha: Any) -> None:
    """Set the values that a model was trained with; older files hold them only as parameters."""
    if alpha is None and is_auto(model.alpha):
        return
    alpha = model.alpha if alpha is None else alpha
    check_number("alpha", alpha, 0, True)
    model.alpha_ = float(alpha)


def _oracle(oracle: Any) -> Any:
    """Return a backend with its settings, or only its name if no plugin makes it."""
    if isinstance(oracle, Backend) and registry.default().name_of("lp_backends", oracle) is None:
        return oracle.name
    return plain(oracle, "oracle")


def _sources(params: dict[str, Any]) -> dict[str, str]:
    """Return the distributions that provide named objects, by parameter, except ours.

    The structure's distribution is stored with its parameters.
    """
    sources = {
        name: registry.default().source_of_name(kind, params[name])
        for name, kind in KIND_OF.items()
        if name != "structure" and isinstance(params.get(name), str)
    }
    return {name: source for name, source in sources.items() if source}


def describe(model: Any, left_out: Sequence[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the common contents of the files of all estimators.

    Parameters
    ----------
    model : estimator
    left_out : sequence of str
        Parameters that files do not hold.

    Returns
    -------
    meta : dict
        JSON-able.
    arrays : dict of str to ndarray

    Raises
    ------
    ValueError
        The message names a parameter that cannot be saved without pickle.
    """
    given = getattr(model, "saved_params", None) or partial(model.get_params, False)
    by_name = ("oracle", *(["kernel"] if callable(model.kernel) else []))
    params = {
        k: None if k in by_name else plain(v, k) for k, v in given().items() if k not in left_out
    }
    if callable(model.kernel):
        params["kernel"] = {"__function__": importable(model.kernel)}
    space_meta, space_arrays = model.space_.state()
    meta = {
        "estimator": registry.default().called(model),
        "params": params,
        "structure": plain(model.space_.structure, "structure"),
        "space": space_meta,
        "metadata": getattr(model, "metadata_", {}),
        "from": _sources(model.get_params(deep=False)),
        "by": registry.default().source_of("estimators", model),
    }
    return meta, {f"space_{k}": v for k, v in space_arrays.items()}
