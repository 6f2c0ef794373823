"""Files of fitted models, read."""

from __future__ import annotations

import os
from typing import Any

from ..potentials.mercer import Kernel
from ..potentials.mercer_model import KernelModel
from ..utils import container
from .codec import kernel_of, part_of, revive
from .hierarchical_svm import HierarchicalSVM
from .hierarchy.sparse_model import SparseModel
from .risk import loading as risk_files
from .structured_svm import StructuredSVM


def load(path: str | os.PathLike[str], kernel: Any = None) -> Any:
    """Load a model that :meth:`StructuredSVM.save` wrote.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        The kernel of a model trained with a function of one's own: files hold its name only.

    Returns
    -------
    StructuredSVM

    Raises
    ------
    ValueError
        When the file is cut short, damaged, not one of ours, written by a newer format, or needs
        a structure that no installed plugin brings.

    Examples
    --------
    >>> import structsolve, tempfile, os
    >>> model = structsolve.StructuredSVM("multiclass").fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "m.structsolve"))
    ...     structsolve.load(os.path.join(folder, "m.structsolve")).predict([[1.0]]).tolist()
    ['yes']
    """
    kinds = {kind.__name__: kind for kind in (StructuredSVM, HierarchicalSVM)}
    meta, arrays = container.read(path, "model")
    try:
        if meta["estimator"] == "ConditionalRiskMinimizer":
            return risk_files.load(meta, arrays, kernel)
        if meta["estimator"] not in kinds:
            raise ValueError(f"it holds a {meta['estimator']}, which this version does not know")
        params = dict(meta["params"])
        function = kernel_of(params.pop("kernel", None), kernel)
        kind = kinds[meta["estimator"]]
        model = kind(kernel=function, **{k: revive(v) for k, v in params.items()})
        structure = revive(meta["structure"])
        space = structure.space_from_state(meta["space"], part_of(arrays, "space_"))
        if any(k.startswith("sparse_") for k in arrays):
            model._become_sparse(space, SparseModel.from_arrays(space, part_of(arrays, "sparse_")))
        elif model.kernel is None:
            model._become_fitted(space, part_of(arrays, "coef_"))
        else:
            made = Kernel(model.kernel, model.kernel_params, model.cache_size)
            fitted = KernelModel.from_arrays(made, part_of(arrays, "kernel_"), space.layout)
            model._become_fitted(space, None, fitted)
        model.history_, model.stop_reason_ = meta["history"], meta["stop_reason"]
        model.n_iter_ = len(model.history_)
        model.metadata_ = meta["metadata"]
        model._take_extra_arrays(part_of(arrays, "fitted_"))
        if "feature_names_in" in arrays:
            model.feature_names_in_ = arrays["feature_names_in"].astype(object)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from error
    return model
