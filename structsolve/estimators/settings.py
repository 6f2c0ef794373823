"""Checks of StructuredSVM's settings, each alone and together."""

from __future__ import annotations

import numbers
from typing import Any

from ..examples.scaling import KINDS
from ..utils.params import check_count, check_types
from .alpha import check_alpha
from .class_weight import check_class_weight
from .common import check_number, check_run_settings


def check_settings(model: Any) -> None:
    """Refuse settings of a wrong type or range.

    Parameters
    ----------
    model : StructuredSVM

    Raises
    ------
    ValueError
        It names the setting.
    """
    check_run_settings(model)
    check_alpha(model.alpha)
    check_number("cache_size", model.cache_size, 0, False)
    check_class_weight(model.class_weight)
    if not any(model.scale_features is kind or model.scale_features == kind for kind in KINDS):
        raise ValueError(f"scale_features is {model.scale_features!r}, expected one of {KINDS}")
    fraction: float = model.validation_fraction
    if isinstance(fraction, bool) or not isinstance(fraction, numbers.Real) or not 0 < fraction < 1:
        raise ValueError(f"validation_fraction is {fraction!r}, expected a number between 0 and 1")
    check_count("n_iter_no_change", model.n_iter_no_change)
    check_types(model)


def check_combination(model: Any, validated: bool) -> None:
    """Refuse settings that exclude each other.

    Parameters
    ----------
    model : StructuredSVM
    validated : bool
        fit() got a validation set.

    Raises
    ------
    ValueError
        It names one of them.
    """
    kernel = model._kernel()
    if kernel is not None and model.scale_features not in (False, "auto"):
        raise ValueError(
            f"scale_features is {model.scale_features!r}, but a kernel model has no weights to "
            "fold factors into; put a scaler before the model"
        )
    if kernel is not None and kernel.precomputed and model.early_stopping and not validated:
        raise ValueError(
            "early_stopping cannot split a precomputed kernel; give fit validation=(X, y), "
            "X with one column per training node"
        )
