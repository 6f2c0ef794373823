"""Columns of unlike scale: when ``scale_features="auto"`` scales them, and warnings otherwise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..examples.given import is_sparse
from ..examples.packed import Examples
from ..examples.scaling import COMMON, SMALL, column_scales
from ..examples.scaling import unlike as unlike_columns
from ..utils.progress import stage
from .alpha import is_auto
from .fitting import TrainingData

# Columns that all exceed this slow solvers down: alpha and the step sizes suit numbers around 1.
# An alpha that suits them leaves an intercept and scores of pairs without weights.
LARGE = 10


def settled_scaling(model: Any, space: Any, examples: Examples) -> bool | str:
    """Return ``scale_features``, or what its "auto" comes to; log that where it is True.

    Parameters
    ----------
    model : StructuredSVM
    space : Space
    examples : Examples
        Packed, those of training.

    Returns
    -------
    bool or str
        For "auto", True if alpha is "auto", too, and dense columns differ in scale or all are large
        beside the ones of an intercept; "common" if all are small, or sparse and large. False with
        a kernel, and with constraints, which bound weights of unscaled columns.
    """
    if model.scale_features != "auto":
        return model.scale_features
    free = model.kernel is None and not getattr(model._solver(examples), "constraints", None)
    if not (free and is_auto(model.alpha) and space.layout.node is not None):
        return False
    nodes, weights = examples.nodes, examples.sample_weight
    if nodes is not None and weights is not None and not np.all(weights):
        nodes = nodes[np.repeat(weights > 0, np.diff(examples.offsets))]
    unlike, large = _unlike_text(nodes), False
    text = unlike
    if not unlike:
        text, large = _size_text(nodes, space.layout)
    if text:
        why = f"scale_features='auto' is True, as {text}; False switches the rule off"
        stage(int(model.verbose), type(model).__name__, why)
    one_by_one = bool(unlike) or (large and not is_sparse(nodes))
    return one_by_one or (COMMON if text else False)


def warn_of_scales(model: Any, data: TrainingData) -> None:
    """Warn if ``alpha="auto"`` leaves small columns without weights.

    Parameters
    ----------
    model : StructuredSVM
        Fitted; see :func:`~structsolve.estimators.endings.warn_of_end`.
    data : TrainingData
    """
    text = "" if data.examples.scaling is not None else _unlike_text(data.examples.nodes)
    if text:
        text = f"{text}, and alpha='auto' is that of the largest: {_remedy(model, data)}"
        warnings.warn(text, UserWarning, stacklevel=4)


def slow_columns(model: Any, data: TrainingData) -> str:
    """Return a hint if scales of columns may have kept training from its optimum.

    Parameters
    ----------
    model : StructuredSVM
    data : TrainingData

    Returns
    -------
    str
        Empty if columns are alike or were scaled.
    """
    if data.examples.scaling is not None:
        return ""
    nodes = data.examples.nodes
    text, large = _unlike_text(nodes, sparse=True), False
    if not text:
        text, large = _size_text(nodes, data.space.layout)
    if large or not text:
        _, scales = column_scales(nodes)
        if scales.size < 2 or scales[0] <= LARGE:
            return ""
        text = f"columns of X are large (each reaches {scales[0]:.3g} or more)"
    return f"{text}, which slows training down: {_remedy(model, data)}"


def _unlike_text(nodes: Any, sparse: bool = False) -> str:
    """Name two unlike columns, in words; empty if there are none."""
    pair = unlike_columns(nodes, sparse)
    if pair is None:
        return ""
    (low, small), (high, large) = pair
    return (
        f"columns of X differ in scale (column {low} reaches {small:.3g}, column {high} "
        f"{large:.3g})"
    )


def _size_text(nodes: Any, layout: Any) -> tuple[str, bool]:
    """Tell, in words, that all columns are large or small beside what counts as 1, and if large."""
    columns, scales = column_scales(nodes)
    if not columns.size or not (layout.intercept or layout.shared):
        return "", False
    large = bool(scales[0] > LARGE)
    if large:
        size = f"large (each reaches {scales[0]:.3g} or more)"
    elif scales[-1] <= SMALL:
        size = f"small (none exceeds {scales[-1]:.3g})"
    else:
        return "", False
    what = "beside the intercept and scores of pairs, which count as 1"
    return f"columns of X are {size} {what}", large


def _remedy(model: Any, data: TrainingData) -> str:
    scaler = "MaxAbsScaler()" if is_sparse(data.examples.nodes) else "StandardScaler()"
    if not (data.space.structure.single_node or data.space.structure.label_sets):
        scaler = f"NodeTransformer({scaler})"
    option = ", or set scale_features=True" if "scale_features" in model.get_params() else ""
    return f"put {scaler} before the model{option}"
