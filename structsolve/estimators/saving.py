"""Files of fitted models, written."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np

from ..potentials.mercer_model import KernelModel
from ..utils import container
from .codec import importable, plain
from .hierarchy.sparse_model import SparseModel

# What a loaded model can do without.
_TRANSIENT = ("callbacks", "checkpoint", "verbose")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to ``path``, atomically; see :meth:`StructuredSVM.save`."""
    given = getattr(model, "saved_params", None) or partial(model.get_params, False)
    params = {
        k: None if k == "oracle" or (k == "kernel" and callable(v)) else plain(v, k)
        for k, v in given().items()
        if k not in _TRANSIENT
    }
    # A backend's name makes it again.
    params["oracle"] = getattr(model.oracle, "name", model.oracle)
    if callable(model.kernel):
        params["kernel"] = {"__function__": importable(model.kernel)}
    structure = model.space_.structure
    space_meta, arrays = model.space_.state()
    meta = {
        "estimator": type(model).__name__,
        "params": params,
        "structure": plain(structure, "structure"),
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
