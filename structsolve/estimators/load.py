"""Reads files of fitted models."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import registry
from ..protocols import Estimator, require
from ..utils import container
from .codec import check_arrays
from .pipelines import restore


def load(path: str | os.PathLike[str], kernel: Any = None, mmap: bool = False) -> Any:
    """Load a model or a pipeline that its ``save`` or :func:`structsolve.save` wrote.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        The kernel of a model trained with a function, of which files hold only the name.
    mmap : bool, default=False
        Map the weights of an :class:`ExtremeSVM` into memory, read-only: processes share them, and
        the system can reclaim the memory. The file is still read once, to compare its checksums.
        Other estimators are loaded as usual, unless they name ``mapped_arrays``.

    Returns
    -------
    estimator
        Of the class that wrote the file, which a plugin declares by ``structsolve_estimators``; or
        the pipeline with all its steps.

    Raises
    ------
    ValueError
        If the file is truncated, damaged, of another program or a newer format, or needs an
        estimator or a structure that no installed plugin provides.

    Examples
    --------
    >>> import structsolve, tempfile, os
    >>> model = structsolve.StructuredSVM("multiclass").fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "m.structsolve"))
    ...     structsolve.load(os.path.join(folder, "m.structsolve")).predict([[1.0]]).tolist()
    ['yes']
    """
    meta, arrays = container.read(path, "model", _mapped if mmap else ())
    try:
        if "pipeline" in meta:
            return restore(meta, arrays, partial(_model_of, kernel=kernel))
        return _model_of(meta, arrays, kernel)
    # Any exception is due to the file; the error names it.
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {kind}{error}") from error


def _model_of(meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any) -> Any:
    estimator = _class_of(meta)
    if not hasattr(estimator, "transform"):  # a step of pipelines
        require(estimator, Estimator, f"estimator {meta['estimator']!r}")
    check_arrays(arrays, getattr(estimator, "array_types", ()))
    made = estimator.from_file(meta, arrays, kernel)
    if not isinstance(made, estimator):
        text = f"from_file of {meta['estimator']!r} returned {made!r}, expected a fitted model"
        raise TypeError(text)
    return made


def _class_of(meta: dict[str, Any]) -> Any:
    return registry.default().class_of("estimators", meta["estimator"], meta.get("by", ""))


def _mapped(meta: dict[str, Any]) -> Sequence[str]:
    if "pipeline" in meta:
        return [f"model{i}_{name}" for i, own in enumerate(meta["models"]) for name in _mapped(own)]
    with contextlib.suppress(ValueError):  # an unknown estimator is reported later
        return getattr(_class_of(meta), "mapped_arrays", ())
    return ()
