"""Files of extreme models: postings in arrays that can be mapped, written and read."""

from __future__ import annotations

import copy
import inspect
import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from structsolve import registry
from structsolve.estimators.calibration import Calibration
from structsolve.estimators.codec import (
    TRANSIENT,
    check_history,
    check_metadata,
    known_params,
    plain,
    revive,
)
from structsolve.plugins.extreme.label_sets import FORMS
from structsolve.plugins.extreme.solvers.base import ExtremeSolver
from structsolve.plugins.extreme.training import SOLVERS
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.utils import container
from structsolve.utils.params import check_types

if TYPE_CHECKING:
    from structsolve.plugins.extreme.estimator import ExtremeSVM

#: Arrays that ``load(path, mmap=True)`` maps.
MAPPED = ("postings_indptr", "postings_classes", "postings_weights")
_SOLVER = "__extreme_solver__"


def save(model: ExtremeSVM, path: str | os.PathLike[str], dtype: Any) -> None:
    """Write a fitted model to a file, atomically.

    Parameters
    ----------
    model : ExtremeSVM
    path : path
    dtype : {"float32", "float16"} or None
        dtype of the weights; None keeps that of the model.

    Raises
    ------
    ValueError
        For another dtype, and weights beyond float16.
    """
    postings = as_type(model._weights, dtype)
    meta = {
        "estimator": registry.default().called(model),
        "params": {
            name: _plain(value, name)
            for name, value in model.get_params(deep=False).items()
            if name not in TRANSIENT
        },
        "history": model.history_,
        "stop_reason": model.stop_reason_,
        "settings": model.settings_,
        "metadata": model.metadata_,
        "calibration": None,
        "uncalibrated": model._uncalibrated,
        "label_form": model._label_form,
    }
    own = model._calibration
    if own is not None:
        meta["calibration"] = [own.factor, own.rest, own.kept]
    arrays = {
        "postings_indptr": postings.indptr,
        "postings_classes": postings.classes,
        "postings_weights": postings.weights,
        "classes": model.classes_,
    }
    if postings.intercept is not None:
        arrays["postings_intercept"] = postings.intercept
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names_in"] = np.asarray(model.feature_names_in_, dtype=str)
    container.write(path, "model", meta, arrays)


def empty_bytes(model: ExtremeSVM) -> int:
    """Return the bytes that a file of the model would take without any weight.

    Parameters
    ----------
    model : ExtremeSVM

    Returns
    -------
    int
    """
    own = model._weights
    none = np.zeros(0, np.int32), np.zeros(0, own.weights.dtype)
    starts = np.zeros_like(own.indptr)
    bare = copy.copy(model)
    bare._weights = Postings(starts, *none, own.n_classes, own.intercept)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bare")
        save(bare, path, None)
        return os.path.getsize(path)


def as_type(postings: Postings, dtype: Any) -> Postings:
    """Return postings with weights of another type; refuse weights beyond its range.

    Parameters
    ----------
    postings : Postings
    dtype : {"float32", "float16"} or None
        None keeps it.

    Returns
    -------
    Postings

    Raises
    ------
    ValueError
        For another type, and weights beyond float16.
    """
    if dtype is None:
        return postings
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        raise ValueError(f"dtype is {dtype!r}, expected 'float32' or 'float16'") from None
    return postings if wanted == postings.weights.dtype else postings.as_type(wanted)


def _plain(value: Any, name: str) -> Any:
    """Return a parameter as JSON; an object that no plugin can recreate is stored as its name."""
    if type(value) in SOLVERS.values():
        params = {k: _plain(v, k) for k, v in value.get_params(False).items()}
        return {_SOLVER: value.name, "params": params}
    if isinstance(value, (np.floating, np.integer)):
        return value.item()
    try:
        return plain(value, name)
    except ValueError:
        own = getattr(value, "name", None)
        if name not in ("solver", "rivals") or not isinstance(own, str):
            raise
        # Prediction needs neither; a further fit needs the object.
        return own


def _revived(value: Any, name: str) -> Any:
    if not (isinstance(value, dict) and _SOLVER in value):
        kind = {"surrogate": "surrogates", "rivals": "rival_indexes"}.get(name)
        return revive(value, kind)
    if name != "solver" or value[_SOLVER] not in SOLVERS:
        raise ValueError(f"{name} is {value[_SOLVER]!r}, expected one of {list(SOLVERS)}")
    params = {
        k: _revived(v, "solver") if isinstance(v, dict) and _SOLVER in v else revive(v)
        for k, v in value["params"].items()
    }
    maker = SOLVERS[value[_SOLVER]]
    made: ExtremeSolver = maker(**known_params(maker, params, params))
    check_types(made, f"{made.name!r}: ")
    return made


def load(estimator: type[ExtremeSVM], meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the model of a file that :func:`save` wrote.

    Parameters
    ----------
    estimator : type
        ExtremeSVM.
    meta, arrays : dict
        Contents of the file.

    Returns
    -------
    ExtremeSVM

    Raises
    ------
    ValueError
        If parts of the file do not fit together.
    """
    known = set(inspect.signature(estimator).parameters) - set(TRANSIENT)
    unknown = sorted(set(meta["params"]) - known)
    if unknown:
        raise ValueError(f"it sets {unknown[0]!r}, which is no parameter that files may hold")
    model = estimator(**{k: _revived(v, k) for k, v in meta["params"].items()})
    model._check_settings()
    classes = arrays["classes"]
    form = meta.get("label_form")  # files of earlier versions have none
    if form not in (None, *FORMS):
        raise ValueError(f"its labels have the form {form!r}, expected {FORMS}")
    rising = np.sort(classes) if form == "array" else classes  # columns have an order of their own
    if classes.ndim != 1 or len(classes) < 2 or not (rising[1:] > rising[:-1]).all():
        raise ValueError("its classes do not rise: expected at least two, each once")
    postings = Postings(
        arrays["postings_indptr"],
        arrays["postings_classes"],
        arrays["postings_weights"],
        len(classes),
        arrays.get("postings_intercept"),
    )
    model._become_fitted(classes, postings)
    model.history_, model.stop_reason_ = check_history(meta["history"]), meta["stop_reason"]
    model.n_iter_ = len(model.history_)
    model.metadata_ = check_metadata(meta["metadata"])
    model.settings_ = dict(meta["settings"])
    model._calibration = _calibration(meta["calibration"], len(classes))
    model._uncalibrated = str(meta["uncalibrated"])
    model._label_form = form
    if "feature_names_in" in arrays:
        model.feature_names_in_ = arrays["feature_names_in"].astype(object)
        if model.feature_names_in_.shape != (model.n_features_in_,):
            raise ValueError(
                f"it names {model.feature_names_in_.size} features, expected {model.n_features_in_}"
            )
    return model


def _calibration(given: Any, n_classes: int) -> Calibration | None:
    if given is None:
        return None
    factor, rest, kept = given
    whole = type(kept) is int and 1 <= kept <= n_classes
    if not (whole and 0 < factor < np.inf and not np.isnan(rest) and rest < np.inf):
        raise ValueError(f"its calibration is {given!r}, expected a factor, a rest and a number")
    return Calibration(float(factor), float(rest), kept)
