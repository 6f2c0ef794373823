"""Writes files of conditional risk minimisers: training labels, rows and the factorisation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from structsolve.estimators.codec import TRANSIENT
from structsolve.estimators.saving import describe
from structsolve.examples.given import is_sparse
from structsolve.plugins.risk import feature_maps
from structsolve.utils import container
from structsolve.utils.csr_arrays import csr_to_arrays


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, atomically.

    Parameters
    ----------
    model : ConditionalRiskMinimizer
    path : str or path-like

    Raises
    ------
    ValueError
        The message names the parameter that a file without pickle cannot hold.
    """
    map_meta, map_arrays = None, dict[str, np.ndarray]()
    named = isinstance(model.feature_map, str)
    if model._is_mapped():
        given = model.feature_map_ if named else model.feature_map
        map_meta, map_arrays = feature_maps.to_state(given, model.feature_map_)
    meta, arrays = describe(model, ("joint_kernel", "feature_map", *TRANSIENT))
    target_meta, target_arrays = model._targets.state()
    meta |= {
        "targets": target_meta,
        "alpha": model.alpha_,
        "feature_map": map_meta,
        "feature_map_named": model.feature_map if named else None,
        "kernel_bound": getattr(model, "kernel_bound_", None),
        "gamma": getattr(model, "gamma_", None),
    }
    parts = {"targets": target_arrays, "smoother": model._smoother.to_arrays(), "map": map_arrays}
    arrays |= {f"{part}_{k}": v for part, held in parts.items() for k, v in held.items()}
    rows = model._train_rows
    if is_sparse(rows):
        arrays |= csr_to_arrays(rows, "rows_")
    elif rows is not None:
        arrays["rows"] = rows
    if model._joint is not None:
        arrays["joint"] = model._joint.B
    if model._edge_names is not None:
        meta["edge_names"] = model._edge_names
    for name in ("cv_losses_", "feature_names_in_"):
        if hasattr(model, name):
            value = getattr(model, name)
            arrays[name] = np.asarray(value, dtype=str if value.dtype == object else None)
    container.write(path, "model", meta, arrays)
