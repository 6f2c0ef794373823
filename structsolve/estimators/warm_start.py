"""Starts of training from weights known before, and paths over alpha, each from the last."""

from __future__ import annotations

from reprlib import repr as brief
from typing import Any

import numpy as np
from sklearn.base import clone

from ..solvers.problem import Problem
from ..solvers.run import Start
from ..structure.used_columns import narrowed
from ..utils.arrays import real_array
from .alpha import UNKNOWN, is_auto, refuse_without_effect


def start_of(model: Any, problem: Problem, rng: np.random.Generator, space: Any) -> Start:
    """Return the start of a run, at the model's weights if it has them and ``warm_start``.

    Parameters
    ----------
    model : StructuredSVM
        With ``alpha_``.
    problem : Problem
    rng : numpy.random.Generator
    space : Space
        That of all columns.

    Returns
    -------
    Start
    """
    w, scaling = warm_weights(model, space), problem.examples.scaling
    if w is not None and scaling is not None:
        w = scaling.unfolded((problem.space.whole or problem.space).layout, w)
    w = None if w is None else problem.solver_weights(narrowed(problem.space, w))
    return Start(problem, model.alpha_, rng, model.n_jobs or 1, w, float(model.tol))


def warm_weights(model: Any, space: Any) -> np.ndarray | None:
    """Return the weights of a fitted model for a space with the same blocks and classes.

    Parameters
    ----------
    model : StructuredSVM
    space : Space

    Returns
    -------
    ndarray of shape (space.layout.dim,), or None
    """
    if not model.warm_start or not hasattr(model, "coef_") or model.kernel is not None:
        return None
    old: Any = model.space_
    same = (
        space.layout.dim == old.layout.dim
        and space.layout.blocks == old.layout.blocks
        and np.array_equal(getattr(space, "classes_", 0), getattr(old, "classes_", 0))
    )
    return model._model.weights if same else None


def stream_start(model: Any, problem: Problem) -> Start:
    """Return the start of a run of :meth:`StructuredSVM.partial_fit`, at the weights if fitted.

    Parameters
    ----------
    model : StructuredSVM
    problem : Problem
        Of the batch.

    Returns
    -------
    Start
    """
    alpha = UNKNOWN if is_auto(model.alpha) else float(model.alpha)
    rng, w, steps = model._generator(), None, 0
    if model.__sklearn_is_fitted__():
        w = problem.solver_weights(model.flat_weights())
        steps = model.history_[-1].get("steps", 0) if model.history_ else 0
    return Start(problem, alpha, rng, model.n_jobs or 1, w, float(model.tol), steps)


def refuse_other_classes(space: Any, classes: Any) -> None:
    """Refuse classes that are not those of a space, in any order.

    Parameters
    ----------
    space : Space
    classes : sequence, or None

    Raises
    ------
    ValueError
    """
    known = getattr(space, "classes_", None)
    if classes is None or known is None or (np.ndim(classes) == 1 and {*classes} == {*known}):
        return
    raise ValueError(
        f"classes is {classes!r}, expected those of the first call, {brief(known.tolist())}: "
        "leave it out, or train a new model"
    )


class AlphaPathMixin:
    """Paths over alpha, for :class:`~structsolve.StructuredSVM`."""

    def path(
        self: Any, X: Any, y: Any, alphas: Any, sample_weight: Any = None, validation: Any = None
    ) -> list[Any]:
        """Train for several values of alpha, each started from the solution before it.

        Parameters
        ----------
        X, y : as for :meth:`fit`
        alphas : sequence of float
            Trained from the largest to the smallest, the best order for warm starts.
        sample_weight, validation : as for :meth:`fit`

        Returns
        -------
        list of StructuredSVM
            One fitted model per alpha, in the order of ``alphas``.
        """
        try:
            alphas = [float(a) for a in real_array([*alphas], "alphas")]
        except (TypeError, ValueError):
            raise ValueError(f"alphas is {alphas!r}, expected a list of numbers above 0") from None
        refuse_without_effect(self._solver())
        worker = clone(self).set_params(warm_start=True, checkpoint=None, alpha=UNKNOWN)
        worker._check_settings()
        worker._check_combination(validation is not None)
        data = worker._read(X, y, sample_weight, validation, worker._generator())
        fitted = {}
        for alpha in sorted(set(alphas), reverse=True):
            worker.set_params(alpha=alpha)
            worker._check_settings()
            worker._train(data, worker._generator())
            model = clone(self).set_params(alpha=alpha)
            model._become_fitted(worker.space_, worker._model)
            model._take_extra_arrays(worker._extra_arrays())
            for name in ("alpha_", "history_", "n_iter_", "stop_reason_", "feature_names_in_"):
                if hasattr(worker, name):
                    setattr(model, name, getattr(worker, name))
            model._edge_names = worker._edge_names
            fitted[alpha] = model
        return [fitted[a] for a in alphas]
