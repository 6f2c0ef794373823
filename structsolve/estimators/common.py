"""Shared parts of all estimators: settings, names of features, tags, the kernel, the score."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import registry
from ..examples.given import check_columns, edge_frame, first_frame, listed
from ..examples.packed import Examples
from ..operators import Loss
from ..potentials.mercer import PRECOMPUTED, Kernel
from ..solvers.checkpoint import Checkpoint
from ..structure.loss_values import losses
from ..utils.parallel import effective_jobs
from ..utils.suggest import a_type, names_parameters, no_parameter
from .operators import OperatorsMixin

#: Kind of object that a parameter names, so that set_params() reaches the object.
KINDS = {
    "structure": "structures",
    "surrogate": "surrogates",
    "loss": "losses",
    "solver": "solvers",
    "oracle": "lp_backends",
    "rivals": "rival_indexes",
}


class OnlyIf:
    """A method that exists only if a check of the model passes.

    Otherwise ``hasattr`` is False, and accessing the method raises the check's own message, which
    says what to do (scikit-learn's ``available_if`` hides it).

    Parameters
    ----------
    check : callable
        Takes the model; raises AttributeError if the method is unavailable.
    """

    def __init__(self, check: Callable[[Any], Any]):
        self.check = check

    def __call__(self, method: Callable[..., Any]) -> OnlyIf:
        """Take the method that it decorates; see the class."""
        self.method = method
        functools.update_wrapper(self, method)
        return self

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self.method
        self.check(model)
        return self.method.__get__(model, owner)


class LogProbaMixin:
    """The logarithms of what ``predict_proba`` returns, where the model has it."""

    predict_proba: Any

    @OnlyIf(lambda model: model.predict_proba)
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`, -inf for 0.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        array or list of arrays
            As of `predict_proba`.
        """
        given = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [*map(np.log, given)] if isinstance(given, list) else np.log(given)


class CommonMixin:
    """Pickling with plugins of a script, nested parameters, and names of features."""

    feature_names_in_: np.ndarray

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = names_parameters(cls.__init__)  # type: ignore[method-assign]

    def _keep(self, parameters: dict[str, Any]) -> None:
        """Set a constructor's parameters, its ``locals()``; a subclass declares only its own."""
        for name in parameters.keys() - {"self", "__class__"}:
            setattr(self, name, parameters[name])

    def __sklearn_is_fitted__(self) -> bool:
        raise NotImplementedError

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name, including ``structure__start_end=False`` if structure is a name.

        Parameters
        ----------
        **params
            Nested ones as ``outer__inner``. If ``outer`` is a name, such as ``structure="chain"``,
            the object that it names replaces it.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            For unknown parameters and names.
        """
        known = [*self.get_params(deep=False)] if params else []  # type: ignore[attr-defined]
        for key in params:
            if "__" not in key and key not in known:
                # Begins like scikit-learn's message.
                told = no_parameter(type(self).__name__, key, known)
                raise ValueError(f"Invalid parameter {key!r} for estimator {self!r}: {told}")
        named: dict[str, Any] = {}  # objects of names; nothing is set before all are made
        for key in list(params):
            outer, nested, inner = key.partition("__")
            name = params.get(outer, getattr(self, outer, None))
            if not (nested and outer in KINDS and isinstance(name, str)):
                continue
            made = named.get(outer) or registry.default().make(KINDS[outer], name)
            if not hasattr(made, "set_params"):
                raise ValueError(
                    f"{key}: {outer} {name!r} makes {a_type(made)}, which has no "
                    f"parameter {inner!r}"
                )
            named[outer] = made.set_params(**{inner: params.pop(key)})
        params.update(named)
        return super().set_params(**params)  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        # Workers of GridSearchCV and joblib load installed plugins; the pickle carries a script's.
        state: dict[str, Any] = super().__getstate__()  # type: ignore[misc]
        # The run kept for warm starts holds compiled loops: a copy starts from the weights.
        state = {name: value for name, value in state.items() if name != "_run"}
        carried = registry.carried_plugins()
        return {**state, "_plugins": carried} if carried else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        registry.adopt_plugins(state.pop("_plugins", []))
        super().__setstate__(state)  # type: ignore[misc]

    #: Names of the features of edges, where X held data frames of them in training.
    _edge_names: list[str] | None = None

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.utils.validation import check_is_fitted  # heavy, slow if fitted

            check_is_fitted(self)

    def _remember_names(self, X: Any) -> None:
        from sklearn.utils.validation import _get_feature_names  # heavy

        names = _get_feature_names(first_frame(X))
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        edges = edge_frame(X)
        self._edge_names = None if edges is None else list(map(str, edges.columns))

    def _check_names(self, X: Any) -> None:
        if "feature_names_in_" in self.__dict__ or hasattr(X, "columns"):
            from sklearn.utils.validation import _check_feature_names  # heavy

            _check_feature_names(self, first_frame(X), reset=False)
        if self._edge_names is not None:
            check_columns(edge_frame(X), self._edge_names, what="X, features of edges")


class EstimatorMixin(CommonMixin, OperatorsMixin):
    """Parts of an estimator with ``structure`` and ``kernel``; fitted, it has a ``space_``."""

    structure: Any
    kernel: Any
    kernel_params: Any
    cache_size: float = 200

    def __sklearn_is_fitted__(self) -> bool:
        return "space_" in self.__dict__

    def _kernel(self) -> Kernel | None:
        if self.kernel is None:
            if self.kernel_params is not None:
                raise ValueError(
                    f"kernel_params is {self.kernel_params!r}, but kernel is None: name a kernel, "
                    "or leave them out"
                )
            return None
        return Kernel(self.kernel, self.kernel_params, self.cache_size)

    def _mask(self, space: Any, examples: Examples, allowed: Any, forbidden: Any) -> dict[str, Any]:
        """Return the masks of scores for constraints on classes."""

        def table(rows: Any) -> Any:  # of a data frame: over one, loops visit names of columns
            if not hasattr(rows, "columns"):
                return rows
            check_columns(rows, getattr(space, "classes_", None), what="allowed")
            return rows.to_numpy()

        allowed = table(listed(allowed, "allowed"))
        if isinstance(allowed, (list, tuple)):
            allowed = [table(rows) for rows in allowed]
        sized = hasattr(allowed, "__len__") and not isinstance(allowed, (str, bytes, dict))
        if allowed is not None and not sized:
            raise ValueError(f"allowed is {allowed!r}, expected a list with one entry per example")
        return space.mask(examples, allowed, forbidden)

    def _by_class(self, rows: np.ndarray, combine: np.ufunc) -> np.ndarray:
        """Convert rows of one number per state into rows of one number per class."""
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.target_tags.required = True
        single, sets = registry.label_kind(self.structure)
        if single or sets:
            from sklearn.utils import ClassifierTags  # heavy

            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=single, multi_label=not single)
            tags.target_tags.multi_output, tags.target_tags.single_output = not single, single
        return tags


def mean_score(loss: Loss, examples: Examples, labels: np.ndarray) -> float:
    """Return ``1 - mean loss per part`` of decoded labels against those of the examples.

    Parameters
    ----------
    loss : Loss
        Bound to the examples.
    examples : Examples
        With labels; the mean uses their weights.
    labels : ndarray of int32
        Decoded, one after the other.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If there are no labels, or the loss has no value for one of them.
    """
    lost, total = score_sums(loss, examples, labels)
    if not total > 0:
        raise ValueError("y: every label is void or weighs nothing, expected some to score by")
    return 1 - lost / total


def score_sums(loss: Loss, examples: Examples, labels: np.ndarray) -> tuple[float, float]:
    """Return both sums of :func:`mean_score`, which can be added over parts of the data.

    Parameters
    ----------
    loss : Loss
    examples : Examples
    labels : ndarray of int32

    Returns
    -------
    lost : float
        Sum of the losses.
    total : float
        Total weight of the parts.

    Raises
    ------
    ValueError
        If there are no labels, or the loss has no value for one of them.
    """
    if examples.labels is None:
        raise ValueError("y is None: a score needs the true labels, in the same form as for fit")
    values = losses(loss, examples.labels, labels)
    sizes = getattr(loss, "sizes", None)  # if parts of a true label have different weights
    if sizes is None:
        sizes = np.ones(examples.n) if loss.averaged else np.diff(examples.label_offsets)
    weights = np.ones(examples.n) if examples.sample_weight is None else examples.sample_weight
    return float(weights @ values), float(weights @ sizes)


def check_number(name: str, value: Any, least: float, strict: bool, more: str = "") -> None:
    """Raise ValueError unless an argument is a finite number of at least ``least``.

    Parameters
    ----------
    name : str
    value : object
    least : float
    strict : bool
        Refuse ``least`` itself too.
    more : str, default=""
        Further expectations, for the message.
    """
    ok = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    try:
        ok = ok and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        ok = False
    if not ok or value < least or (strict and value == least):
        sign = ">" if strict else ">="
        raise ValueError(f"{name} is {value!r}, expected a finite number {sign} {least}{more}")


def check_run_settings(estimator: Any) -> None:
    """Check the arguments of every training run: tol, n_jobs, max_iter, callbacks and others.

    Parameters
    ----------
    estimator : estimator
        With these attributes.

    Raises
    ------
    ValueError, TypeError
        The message names the argument.
    """
    verbose, checkpoint, callbacks = estimator.verbose, estimator.checkpoint, estimator.callbacks
    if not isinstance(verbose, (bool, np.bool_, int, np.integer)):
        raise ValueError(f"verbose is {verbose!r}, expected an integer, True or False")
    if verbose < 0:
        raise ValueError(f"verbose is {verbose!r}, expected 0 or more")
    if isinstance(checkpoint, str) and not checkpoint:
        raise ValueError("checkpoint is '', expected None or a path")
    if not isinstance(checkpoint, (str, os.PathLike, Checkpoint, type(None))):
        raise TypeError(f"checkpoint is {checkpoint!r}, expected None or a path")
    check_number("tol", estimator.tol, 0, False)
    effective_jobs(estimator.n_jobs)
    max_iter = estimator.max_iter
    whole = isinstance(max_iter, (int, np.integer)) and not isinstance(max_iter, bool)
    if not whole or not 1 <= max_iter < 2**63:
        raise ValueError(f"max_iter is {max_iter!r}, expected an integer >= 1 and below 2**63")
    if not (
        callbacks is None
        or (isinstance(callbacks, (list, tuple)) and all(map(callable, callbacks)))
    ):
        raise TypeError(f"callbacks is {callbacks!r}, expected a list of functions")


def generator_of(seed: Any) -> np.random.Generator:
    """Return the generator for ``random_state``.

    Parameters
    ----------
    seed : None, int, RandomState or Generator

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    ValueError
        For anything else.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(2**31))
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state is {seed!r}, expected None, an integer >= 0 or a RandomState"
        ) from None


def refuse_forced(masks: dict[str, Any]) -> None:
    """Refuse masks that force parts, where sums or ranks of scores are requested.

    Parameters
    ----------
    masks : dict of str to ndarray
        Masks of a space.

    Raises
    ------
    ValueError
        If one holds inf.
    """
    if any(np.isposinf(mask).any() for mask in masks.values()):
        raise ValueError(
            "allowed forces labels on, which predict alone does; here it says which labels may be "
            "on, or which are off"
        )
