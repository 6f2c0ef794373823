"""HierarchicalSVMCV: alpha chosen by cross-validation along a path."""

from __future__ import annotations

from typing import Any

from structsolve.evaluation.structured_svm_cv import PathMixin, with_settings_of
from structsolve.plugins.dag.svm.estimator import HierarchicalSVM


class HierarchicalSVMCV(PathMixin, HierarchicalSVM):
    """:class:`HierarchicalSVM` whose ``alpha`` is chosen as by :class:`StructuredSVMCV`.

    Parameters
    ----------
    hierarchy : networkx.DiGraph, mapping or array of shape (m, 2)
    alphas, cv, scoring, patience, refit : as of StructuredSVMCV
    normalization, directional, slack, labels, close, structure_name : as of HierarchicalSVM
        With normalization "learned" there are no warm starts.
    loss, class_weight, surrogate, solver, oracle, max_iter, tol, max_alternations : as there
    sparse : bool, default=False
        As there; ``alphas`` must then be a list.
    fit_intercept, penalize_intercept : as there
    scale_features, kernel, kernel_params, cache_size, early_stopping : as there
    validation_fraction, n_iter_no_change : as there
    callbacks, checkpoint, n_jobs, random_state, verbose : as of StructuredSVMCV

    Attributes
    ----------
    alpha_, alphas_, scores_, scoring_, passes_ : as of StructuredSVMCV
    coef_, node_weights_, history_, ... : as of HierarchicalSVM

    Examples
    --------
    >>> from structsolve import HierarchicalSVMCV
    >>> animals = [("bird", "owl"), ("bird", "duck"), ("mammal", "cat")]
    >>> X, y = [[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]] * 4, ["owl", "duck", "cat"] * 4
    >>> model = HierarchicalSVMCV(animals, cv=2).fit(X, y)
    >>> model.predict([[1.0, 2.0]]).tolist(), float(model.scores_.max())
    (['duck'], 1.0)
    """

    kind = HierarchicalSVM

    @with_settings_of(HierarchicalSVM)
    def __init__(
        self,
        hierarchy: Any = None,
        *,
        alphas: Any = "path",
        cv: Any = None,
        scoring: Any = None,
        patience: int | None = 1,
        refit: bool = True,
        **settings: Any,
    ):
        super().__init__(hierarchy, **settings)
        self._set(alphas, cv, scoring, patience, refit)
