"""Files of conditional risk minimisers: the training labels, the rows, the factorisation."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np

from .. import container, persistence
from ..packing import is_sparse
from . import feature_maps
from .ridge import FeatureSmoother, KernelSmoother
from .targets import PartTargets


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to ``path``, atomically."""
    map_meta, map_arrays = None, dict[str, np.ndarray]()
    if model.feature_map is not None:
        map_meta, map_arrays = feature_maps.to_state(model.feature_map, model.feature_map_)
    params = {
        k: None if k == "kernel" and callable(v) else persistence._plain(v, k)
        for k, v in model.get_params(deep=False).items()
        if k not in ("joint_kernel", "feature_map")
    }
    if callable(model.kernel):
        params["kernel"] = {"__function__": persistence._importable(model.kernel)}
    space_meta, space_arrays = model.space_.state()
    target_meta, target_arrays = model._targets.state()
    meta = {
        "estimator": type(model).__name__,
        "params": params,
        "structure": persistence._plain(model.space_.structure, "structure"),
        "space": space_meta,
        "targets": target_meta,
        "alpha": model.alpha_,
        "feature_map": map_meta,
        "metadata": getattr(model, "metadata_", {}),
        "kernel_bound": getattr(model, "kernel_bound_", None),
    }
    arrays = {f"space_{k}": v for k, v in space_arrays.items()}
    arrays |= {f"targets_{k}": v for k, v in target_arrays.items()}
    arrays |= {f"smoother_{k}": v for k, v in model._smoother.to_arrays().items()}
    arrays |= {f"map_{k}": v for k, v in map_arrays.items()}
    rows = model._train_rows
    if is_sparse(rows):
        arrays |= {f"rows_{k}": getattr(rows, k) for k in ("data", "indices", "indptr")}
        arrays["rows_shape"] = np.array(rows.shape)
    elif rows is not None:
        arrays["rows"] = rows
    if model._joint is not None:
        joint = model._joint
        arrays["joint"] = (joint.vectors * joint.values) @ joint.vectors.T
    for name in ("cv_losses_", "feature_names_in_"):
        if hasattr(model, name):
            value = getattr(model, name)
            arrays[name] = np.asarray(value, dtype=str if value.dtype == object else None)
    container.write(path, "model", meta, arrays)


def revive(meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any) -> Any:
    """Rebuild a model from what :func:`save` wrote."""
    from .estimator import ConditionalRiskMinimizer

    params = dict(meta["params"])
    function = persistence._kernel(params.pop("kernel", None), kernel)
    params = {k: persistence._revive(v) for k, v in params.items()}
    model = ConditionalRiskMinimizer(kernel=function, joint_kernel=arrays.get("joint"), **params)
    if meta.get("feature_map") is not None:
        model.feature_map, model.feature_map_ = feature_maps.of_state(
            meta["feature_map"], persistence._part(arrays, "map_")
        )
    structure = persistence._revive(meta["structure"])
    space = structure.space_from_state(meta["space"], persistence._part(arrays, "space_"))
    make = getattr(space, "targets_from_state", None) or partial(PartTargets.of_state, space)
    targets = make(model.loss, meta["targets"], persistence._part(arrays, "targets_"))
    smoother = KernelSmoother if model.kernel is not None else FeatureSmoother
    made = smoother.of_arrays(persistence._part(arrays, "smoother_"), bool(model.fit_intercept))
    if made.n != targets.n:
        raise ValueError(f"it holds weights of {made.n} examples and {targets.n} labels")
    rows: Any = arrays.get("rows")
    if "rows_data" in arrays:
        import scipy.sparse as sp

        parts = tuple(arrays[f"rows_{k}"] for k in ("data", "indices", "indptr"))
        rows = sp.csr_matrix(parts, shape=tuple(int(s) for s in arrays["rows_shape"]))
        rows.check_format(full_check=True)
    if rows is not None and model.kernel is not None and rows.shape[0] != targets.n:
        raise ValueError(f"it holds features of {rows.shape[0]} examples and {targets.n} labels")
    model._become_fitted(space, targets, made, rows)
    model.alpha_ = float(meta["alpha"])
    model.metadata_ = meta.get("metadata", {})
    if meta["kernel_bound"] is not None:
        model.kernel_bound_ = float(meta["kernel_bound"])
    if "cv_losses_" in arrays:
        model.cv_losses_ = arrays["cv_losses_"]
    if "feature_names_in_" in arrays:
        model.feature_names_in_ = arrays["feature_names_in_"].astype(object)
    return model
