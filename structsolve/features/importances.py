"""Importances of features, for scikit-learn's feature selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.sparse import as_csr


def feature_importances(model: Any) -> np.ndarray:
    """Return the norm of the weights of each feature, over all classes.

    An ``importance_getter`` for ``RFE``, ``RFECV`` and ``SelectFromModel``, which cannot read a
    dict ``coef_``.  They select columns of a plain 2-D X: structures "multiclass", "ordinal" and
    "multilabel", and :class:`~structsolve.HierarchicalSVM`.

    Parameters
    ----------
    model : StructuredSVM, HierarchicalSVM or LatentSVM
        Fitted, without a kernel.

    Returns
    -------
    ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        If the model has a kernel, and so no weights of features.

    Examples
    --------
    >>> from sklearn.feature_selection import RFE
    >>> from structsolve import StructuredSVM
    >>> from structsolve.features.importances import feature_importances
    >>> X, y = [[0.1, 2.0], [0.0, -2.0], [-0.1, 1.0]], [1, 0, 1]
    >>> model = StructuredSVM("multiclass")
    >>> selection = RFE(model, n_features_to_select=1, importance_getter=feature_importances)
    >>> selection.fit(X, y).support_.tolist()
    [False, True]
    """
    weights = model.coef_.get("node")
    if weights is None:
        raise ValueError(
            f"{type(model).__name__} has no weights of features; a kernel's weights belong to "
            "training examples: leave kernel out"
        )
    if hasattr(weights, "tocsr"):
        squares = as_csr(weights, "coef_").multiply(weights).sum(axis=1)
        return np.sqrt(np.asarray(squares, dtype=np.float64)).ravel()
    return np.sqrt((weights.reshape(len(weights), -1) ** 2).sum(axis=1))
