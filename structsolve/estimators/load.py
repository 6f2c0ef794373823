"""Reads files of fitted models."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..potentials.mercer_model import KernelModel
from ..potentials.model import LinearModel, Model
from ..utils import container
from ..utils.arrays import check_finite
from .alpha import is_auto
from .codec import check_arrays, check_history, check_metadata, part_of, revive_params
from .common import check_number
from .extreme import files as extreme_files
from .extreme_svm import ExtremeSVM
from .hierarchical_svm import HierarchicalSVM
from .hierarchy.sparse_model import SparseModel
from .latent_svm import LatentSVM
from .risk import loading as risk_files
from .structured_svm import StructuredSVM

ESTIMATORS: dict[str, type[StructuredSVM]] = {
    kind.__name__: kind for kind in (StructuredSVM, HierarchicalSVM, LatentSVM)
}
MODELS: tuple[type[Model], ...] = (LinearModel, KernelModel, SparseModel)


def load(path: str | os.PathLike[str], kernel: Any = None, mmap: bool = False) -> Any:
    """Load a model that ``save`` of an estimator wrote.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        The kernel of a model trained with a function, of which files hold only the name.
    mmap : bool, default=False
        Map the weights of an :class:`ExtremeSVM` into memory, read-only: processes share them, and
        the system can reclaim the memory. The file is still read once, to compare its checksums.
        Other estimators are loaded as usual.

    Returns
    -------
    StructuredSVM, ConditionalRiskMinimizer, HierarchicalSVM, LatentSVM or ExtremeSVM

    Raises
    ------
    ValueError
        If the file is truncated, damaged, of another program or a newer format, or needs a
        structure that no installed plugin provides.

    Examples
    --------
    >>> import structsolve, tempfile, os
    >>> model = structsolve.StructuredSVM("multiclass").fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "m.structsolve"))
    ...     structsolve.load(os.path.join(folder, "m.structsolve")).predict([[1.0]]).tolist()
    ['yes']
    """
    meta, arrays = container.read(path, "model", extreme_files.MAPPED if mmap else ())
    try:
        return _revived(meta, arrays, kernel)
    # Any exception is due to the file; the error names it.
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {kind}{error}") from error


def _revived(meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any) -> Any:
    check_arrays(arrays)
    if meta["estimator"] == "ConditionalRiskMinimizer":
        return risk_files.load(meta, arrays, kernel)
    if meta["estimator"] == "ExtremeSVM":
        return extreme_files.load(ExtremeSVM, meta, arrays)
    if meta["estimator"] not in ESTIMATORS:
        raise ValueError(f"it holds a {meta['estimator']}, which this version does not know")
    made = ESTIMATORS[meta["estimator"]]
    params, space = revive_params(meta, arrays, kernel, made)
    model = made(**params)
    model._check_settings()
    kind = next((kind for kind in MODELS if part_of(arrays, f"{kind.key}_")), None)
    if kind is None:
        raise ValueError("it holds no weights")
    check_finite(part_of(arrays, f"{kind.key}_"))
    learned = kind.from_arrays(space, part_of(arrays, f"{kind.key}_"), model._kernel())
    model._become_fitted(space, learned)
    model.history_, model.stop_reason_ = check_history(meta["history"]), meta["stop_reason"]
    model.n_iter_ = len(model.history_)
    _take_alpha(model, meta.get("alpha"))
    model.metadata_ = check_metadata(meta["metadata"])
    model._take_extra_arrays(part_of(arrays, "fitted_"))
    if "feature_names_in" in arrays:
        model.feature_names_in_ = arrays["feature_names_in"].astype(object)
    return model


def _take_alpha(model: Any, alpha: Any) -> None:
    """Set the values that a model was trained with; older files hold them only as parameters."""
    if alpha is None and is_auto(model.alpha):
        return
    alpha = model.alpha if alpha is None else alpha
    check_number("alpha", alpha, 0, True)
    model.alpha_ = float(alpha)
