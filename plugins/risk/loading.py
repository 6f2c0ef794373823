"""Reads files of conditional risk minimisers."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.estimators.alpha import AUTO
from structsolve.estimators.class_weight import weighed_loss
from structsolve.estimators.codec import check_metadata, revive_params
from structsolve.plugins.risk import feature_maps
from structsolve.plugins.risk.ridge import FeatureSmoother, KernelSmoother
from structsolve.plugins.risk.targets import PartTargets
from structsolve.utils.arrays import check_finite, part_of
from structsolve.utils.csr_arrays import csr_from_arrays


def load(estimator: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any) -> Any:
    """Return the model of a file that :func:`structsolve.plugins.risk.saving.save` wrote.

    Parameters
    ----------
    estimator : type
        ConditionalRiskMinimizer.
    meta : dict
        The file's numbers and names.
    arrays : dict of str to ndarray
    kernel : callable, optional
        The kernel, if the file names a function.

    Returns
    -------
    ConditionalRiskMinimizer

    Raises
    ------
    ValueError
        If parts of the file do not fit together.
    """
    params, space = revive_params(meta, arrays, kernel, estimator)
    model = estimator(joint_kernel=arrays.get("joint"), feature_map=None, **params)
    model._check_settings()
    if meta.get("feature_map") is not None:
        model.feature_map, model.feature_map_ = feature_maps.of_state(
            meta["feature_map"], part_of(arrays, "map_")
        )
    if meta.get("feature_map_named") is not None:
        model.feature_map = str(meta["feature_map_named"])
        model._check_settings()
    elif meta.get("feature_map_auto"):  # as files before had it
        model.feature_map = AUTO
    own = getattr(space, "targets_from_state", lambda *_: None)
    state = model.loss, meta["targets"], part_of(arrays, "targets_")
    targets = own(*state)
    if targets is None:
        targets = PartTargets.of_state(space, *state)
    if model.class_weight is not None:
        loss = weighed_loss(model.class_weight, model.loss, space, targets.examples)
        targets = PartTargets(space, targets.examples, loss)
    by_features = model.kernel is None or model._is_mapped()
    smoother = FeatureSmoother if by_features else KernelSmoother
    check_finite(part_of(arrays, "smoother_"))
    fitted = smoother.of_arrays(part_of(arrays, "smoother_"), bool(model.fit_intercept))
    if fitted.n != targets.n:
        raise ValueError(f"it holds weights of {fitted.n} examples and {targets.n} labels")
    rows: Any = arrays.get("rows")
    if "rows_data" in arrays:
        rows = csr_from_arrays(arrays, "rows_")
    if rows is not None and not by_features and rows.shape[0] != targets.n:
        raise ValueError(f"it holds features of {rows.shape[0]} examples and {targets.n} labels")
    model._become_fitted(space, targets, fitted, rows)
    model.alpha_ = float(meta["alpha"])
    model.metadata_ = check_metadata(meta.get("metadata", {}))
    if meta["kernel_bound"] is not None:
        model.kernel_bound_ = float(meta["kernel_bound"])
    if meta.get("gamma") is not None:  # older files have none
        model.gamma_ = float(meta["gamma"])
    if "cv_losses_" in arrays:
        model.cv_losses_ = arrays["cv_losses_"]
    if "feature_names_in_" in arrays:
        model.feature_names_in_ = arrays["feature_names_in_"].astype(object)
    if "edge_names" in meta:
        model._edge_names = [str(name) for name in meta["edge_names"]]
    return model
