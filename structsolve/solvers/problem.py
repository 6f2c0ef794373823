"""Training problems: examples, potentials, structure operators and surrogate.

Plugins are called here, once; solver loops stay in native code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import registry
from ..examples.packed import Examples
from ..examples.packing import sparsify
from ..potentials.calls import score
from ..potentials.linear import LinearPotentials
from ..potentials.make import kernel_potentials, linear_potentials
from ..potentials.mercer import Kernel
from ..potentials.mercer_model import KernelModel
from ..potentials.model import LinearModel, Model
from ..potentials.weight_layout import WeightLayout
from ..search import SearchResult, trace
from ..structure.base import Space
from ..structure.calls import encode
from ..structure.used_columns import widened, with_all_columns
from ..surrogates.calls import cut
from ..surrogates.given_marginals import holds_marginals
from ..surrogates.task import Task, bind_surrogate
from ..utils.memory import refuse_too_large
from ..utils.params import check_types
from ..utils.positional import positional_deprecated
from .passes import surrogate_bounds

# Relative difference below which scores are equal: linear programs are not more accurate.
ROUNDING = 1e-6


class Problem:
    """``alpha/2 ||w||^2 + sum_i u_i H_i(w)`` on packed examples, with ``sum u = 1``.

    Parameters
    ----------
    space : Space
    examples : Examples
        With labels.
    loss : str or loss object
    surrogate : str or surrogate object
    penalize_intercept : bool, default=True
        False leaves the last row of the node block out of ``||w||^2``.
    gram : bool, default=True
        Let the potentials keep Gram matrices, up to the size of the packed features and of one
        number per node and state.
    kernel : Kernel, optional
        Compares nodes in place of the inner product of their features; w then holds dual variables
        (:mod:`structsolve.potentials.mercer_features`).
    dense : bool, default=False
        Pass features to the kernel as a dense array, even if packing made them sparse.
    oracle : str or structsolve.lp.Backend, optional
        A solver of linear programs over the structure's polytope, to replace its oracle.
    node_scale : array of the node block's shape, optional
        Factors of the node parts' scores; the penalty applies to w before multiplication.

    Attributes
    ----------
    potentials : LinearPotentials
    task : Task
        The operators of the surrogate: :attr:`oracle`, :attr:`parts`, :attr:`loss` and the powers.
    labels : ndarray of int32
        True labels of the examples, concatenated.
    surrogate : Surrogate
        The native surrogate.
    weights : ndarray of shape (n,)
        ``u_i``.
    n, n_nodes : int
        Numbers of examples and of their nodes.
    node_scale : array or None
        As given.
    dim : int
        Length of w.
    penalty : ndarray of shape (dim,) or None
        0 for coordinates left unpenalised, else 1; None when all are penalised.
    given_loss : str or loss object
        As given.
    adds_up : bool
        Of parts that share nothing, the surrogate is the sum of the surrogates of each.
    violation : str or None
        The first bound of the surrogate that cannot hold, with its example.

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.solvers.problem import Problem
    >>> structure = structsolve.get_structure("multiclass")
    >>> X, y = [[0.0], [1.0]], ["a", "b"]
    >>> space, examples = structure.make_space(X, y)
    >>> problem = Problem(space, examples, loss="hamming")
    >>> problem.n, problem.weights.tolist()
    (2, [0.5, 0.5])
    """

    @positional_deprecated
    def __init__(
        self,
        space: Space,
        examples: Examples,
        loss: Any = "hamming",
        surrogate: Any = "margin",
        *,
        penalize_intercept: bool = True,
        gram: bool = True,
        kernel: Kernel | None = None,
        dense: bool = False,
        oracle: Any = None,
        node_scale: Any = None,
    ):
        if kernel is not None and examples.nodes is not None:
            kernel = kernel.fitted(examples.nodes)
        self._given = space, examples
        self._settings = {
            "loss": loss,
            "surrogate": surrogate,
            "penalize_intercept": penalize_intercept,
            "gram": gram,
            "kernel": kernel,
            "dense": dense,
            "oracle": oracle,
            "node_scale": node_scale,
        }
        # Operators get the space's arrays, dense if the user's are dense, and all columns.
        packed = with_all_columns(space, examples)
        if kernel is None:
            _refuse_wide((space.whole or space).layout)
            examples = replace(examples, nodes=sparsify(examples.nodes))
        examples = replace(examples, edges=sparsify(examples.edges))
        self.space, self.examples = space, examples
        self.kernel, self.backend = kernel, oracle
        self.potentials = _potentials(space, examples, self._settings)
        self.task = Task(space, packed, loss, oracle)
        self.oracle, self.parts, self.loss = self.task.oracle, self.task.parts, self.task.loss
        self.labels = self.task.labels
        surrogate = registry.default().object_of("surrogates", surrogate)
        self.surrogate_name = getattr(surrogate, "name", type(surrogate).__name__)
        check_types(surrogate, f"surrogate {self.surrogate_name!r}: ")
        if holds_marginals(examples) and not getattr(surrogate, "takes_marginals", False):
            raise ValueError(
                f"surrogate {self.surrogate_name!r} needs labels, and y holds marginals; use "
                "surrogate='crf' or 'sparsemap', or the most probable labels"
            )
        self.given_loss = loss
        self.adds_up = bool(getattr(surrogate, "adds_up", False)) and self.loss.decomposes
        self.surrogate: Any = bind_surrogate(surrogate, self.task)
        self.weights = _shares(examples)
        self.n, self.n_nodes = examples.n, int(examples.offsets[-1])
        self.dim, self.node_scale = self.potentials.dim, node_scale
        self.violation: str | None = None
        self.penalty = penalty_of(space.layout, penalize_intercept)

    def __reduce__(self) -> Any:
        # Operators are compiled objects, bound to memory: another process binds new ones to the
        # same examples and names.  A script's plugins are pickled too.
        return _rebuilt, (self._given, self._settings, self.weights, registry.carried_plugins())

    def on(self, space: Space, examples: Examples) -> Problem:
        """Return the problem of another space and examples, with the same settings.

        Parameters
        ----------
        space : Space
        examples : Examples
            As many; they keep their weights.

        Returns
        -------
        Problem
        """
        problem = Problem(space, examples, **self._settings)
        problem.weights = self.weights
        return problem

    def without_metric(self) -> Problem:
        """Return the problem whose regulariser is ``||w||^2``, whatever :attr:`Space.node_mix` is.

        Returns
        -------
        Problem
        """
        if self.space.node_mix is None:
            return self
        space = copy.copy(self.space)
        space.node_mix = None
        return self.on(space, self.examples)

    @property
    def metric(self) -> dict[str, Any]:
        """``node_scale`` and ``node_mix`` of potentials that are to be made for this problem."""
        return {"node_scale": self.node_scale, "node_mix": self.space.node_mix}

    def model_weights(self, w: np.ndarray) -> np.ndarray:
        """Return the weights that score new examples, without ``node_scale`` or a metric.

        Parameters
        ----------
        w : ndarray of shape (dim,)
            Weights of a solver.

        Returns
        -------
        ndarray of shape (dim,)
        """
        return self._with_rows(w, inverse=False)

    def model(self, w: np.ndarray) -> Model:
        """Return the model that scores raw examples as a solver's w scores packed ones.

        Parameters
        ----------
        w : ndarray of shape (dim,)
            Weights of a solver.

        Returns
        -------
        Model
        """
        if self.kernel is not None:
            return KernelModel.of(self, w)
        w, scaling = widened(self.space, self.model_weights(w)), self.examples.scaling
        space = self.space.whole or self.space
        return LinearModel(space, w if scaling is None else scaling.folded(space.layout, w))

    def solver_weights(self, w: np.ndarray) -> np.ndarray:
        """Return a solver's weights for the weights of a model; see :meth:`model_weights`.

        Parameters
        ----------
        w : ndarray of shape (dim,)
            Weights that score examples without ``node_scale``.

        Returns
        -------
        ndarray of shape (dim,)
            0 if the factor is 0.
        """
        return self._with_rows(w, inverse=True)

    def _with_rows(self, w: np.ndarray, inverse: bool) -> np.ndarray:
        if self.potentials.plain_nodes:
            return w
        change = partial(self.potentials.model_rows, inverse=inverse)
        return with_rows(self.potentials.layout, w, change)

    def regulariser(self, w: np.ndarray, alpha: float) -> float:
        """Return ``alpha/2 ||w||^2`` over the penalised coordinates.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        alpha : float

        Returns
        -------
        float
        """
        if self.penalty is None:
            return 0.5 * alpha * self.potentials.squared_norm(w)
        return 0.5 * alpha * float((w * self.penalty) @ w)

    def trace(self, i: int, w: Any) -> SearchResult:
        """Search one example with a bi-criteria surrogate, and return the trace.

        Parameters
        ----------
        i : int
            Index of the example.
        w : ndarray of shape (dim,), or fitted StructuredSVM
            Weights.

        Returns
        -------
        SearchResult

        Raises
        ------
        ValueError
            If the surrogate does not search, or a kernel model is given.

        Examples
        --------
        >>> import numpy as np
        >>> import structsolve
        >>> X, Y = [[[1.0], [-1.0]]], [["a", "b"]]
        >>> space, examples = structsolve.get_structure("chain").make_space(X, Y)
        >>> problem = structsolve.Problem(space, examples, surrogate="slack")
        >>> result = problem.trace(0, np.zeros(problem.dim))
        >>> result.label.tolist(), result.value, result.calls
        ([1, 0], 2.0, 1)
        """
        if hasattr(w, "flat_weights"):
            w = w.flat_weights()
        theta = score(self.potentials, i, np.asarray(w, dtype=np.float64))
        return trace(self.surrogate, i, theta, self.examples.label(i))

    def bounds(self, w: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, int]:
        """Return upper bounds of every H_i at w.

        Parameters
        ----------
        w : ndarray of float64 of shape (dim,)
        n_jobs : int

        Returns
        -------
        bounds : ndarray of shape (n,)
        calls : int
            Oracle calls spent.
        """
        bounds, calls = surrogate_bounds(self, w, n_jobs)
        return self.checked_bounds(w, bounds), calls

    def missed(self, w: np.ndarray, n_jobs: int = 1) -> float:
        """Return how much of the objective at w inexact searches and oracles may have missed.

        Parameters
        ----------
        w : ndarray of float64 of shape (dim,)
        n_jobs : int

        Returns
        -------
        float
            0 if all are exact. No solver can close the gap below it.
        """
        if self.surrogate.exact:
            return 0.0
        values = np.empty(self.n)
        bounds, _ = surrogate_bounds(self, w, n_jobs, values)
        return max(0.0, float(self.weights @ (bounds - values)))

    def checked_bounds(self, w: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Return bounds of every H_i, raised to 0, the value of the true label.

        The first bound below 0 by more than rounding is noted in :attr:`violation`.

        Parameters
        ----------
        w : ndarray of shape (dim,)
            Weights of the bounds.
        bounds : ndarray of shape (n,)
            Changed in place.

        Returns
        -------
        ndarray of shape (n,)
            ``bounds``.
        """
        if not bounds.size or not bounds.min() < 0:
            return bounds
        if self.violation is None:
            i = int(np.argmin(bounds))
            theta = score(self.potentials, i, w)
            truth = self.examples.label(i)
            answer = cut(self.surrogate, i, theta, truth)
            size = abs(answer.b) + float(np.abs(theta[answer.index]) @ np.abs(answer.value))
            # The term that a projection adds to the scores has the size of the parts.
            where, parts = encode(self.parts, i, truth)
            # If the true label has probability 1, only the difference of two large scores remains.
            large = float(parts @ parts + np.abs(theta[where]) @ np.abs(parts))
            if bounds[i] < -ROUNDING * (size + ROUNDING * large):
                self.violation = (
                    f"example {i}: the bound of the surrogate {self.surrogate_name!r} is "
                    f"{bounds[i]:g}, but the true label makes it at least 0"
                )
        return np.maximum(bounds, 0, out=bounds)

    def _sharing(self) -> Problem:
        # A shallow copy: copy.copy() would make all of it again, as for another process.
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def weighing(self, kept: np.ndarray) -> Problem:
        """Return the same problem with weights of 0 for all other examples; arrays are shared.

        Parameters
        ----------
        kept : ndarray of int
            Numbers of examples.

        Returns
        -------
        Problem
        """
        other = self._sharing()
        weights = np.zeros(self.n)
        weights[kept] = self.weights[kept]
        other.weights = weights / weights.sum()
        return other

    def under(self, surrogate: str, loss: Any) -> Problem:
        """Return the same problem with another surrogate and loss; arrays are shared.

        Parameters
        ----------
        surrogate : str
        loss : str or loss object

        Returns
        -------
        Problem

        Raises
        ------
        ValueError
            If the surrogate does not take the structure or the loss.
        """
        other = self._sharing()
        made = registry.default().make("surrogates", surrogate)
        other._settings = {**self._settings, "surrogate": surrogate, "loss": loss}
        packed = with_all_columns(*self._given)
        other.task = Task(self.space, packed, loss, self._settings["oracle"])
        other.given_loss, other.loss = loss, other.task.loss
        other.surrogate_name, other.surrogate = surrogate, bind_surrogate(made, other.task)
        other.adds_up = bool(getattr(made, "adds_up", False)) and other.loss.decomposes
        return other

    def primal(self, w: np.ndarray, alpha: float, n_jobs: int = 1) -> tuple[float, int]:
        """Return the objective at w.

        Parameters
        ----------
        w : ndarray of float64 of shape (dim,)
        alpha : float
        n_jobs : int

        Returns
        -------
        value : float
            An upper bound if the surrogate is inexact.
        calls : int
            Oracle calls spent.
        """
        bounds, calls = self.bounds(w, n_jobs)
        return self.regulariser(w, alpha) + float(self.weights @ bounds), calls


def _potentials(space: Space, examples: Examples, settings: dict[str, Any]) -> LinearPotentials:
    given, scale = (space.layout, examples, space.structure.name), settings["node_scale"]
    if settings["kernel"] is None:
        gram = settings["gram"]
        return linear_potentials(*given, gram, node_scale=scale, node_mix=space.node_mix)
    own = {name: settings[name] for name in ("kernel", "dense", "penalize_intercept")}
    return kernel_potentials(*given, **own, node_scale=scale, node_mix=space.node_mix)


def _shares(examples: Examples) -> np.ndarray:
    """Return the weights of the examples, with a sum of 1."""
    given = examples.sample_weight
    weights = np.ones(examples.n) if given is None else np.asarray(given, dtype=np.float64)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        weights = weights / weights.max()
        total = weights.sum()
    return weights / total


def with_rows(
    layout: WeightLayout, w: np.ndarray, change: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return a copy of weights whose rows of the node block are changed.

    Parameters
    ----------
    layout : WeightLayout
    w : ndarray of shape (dim,)
    change : callable
        Of the rows.

    Returns
    -------
    ndarray of shape (dim,)
    """
    changed = w.copy()
    rows = layout.node_block(changed)
    rows[...] = change(rows)
    return changed


def penalty_of(layout: WeightLayout, penalize_intercept: bool) -> np.ndarray | None:
    """Return the mask of the penalised weights.

    Parameters
    ----------
    layout : WeightLayout
    penalize_intercept : bool
        False leaves the last row of the node block out.

    Returns
    -------
    ndarray of shape (layout.dim,), or None
        0 for coordinates left out, else 1; None when none is.
    """
    if penalize_intercept or not layout.intercept or layout.node is None:
        return None
    penalty = np.ones(layout.dim)
    last = layout.node_start + (layout.node_rows - 1) * layout.node_size
    penalty[last : last + layout.node_size] = 0
    return penalty


def _rebuilt(
    given: tuple[Space, Examples], settings: dict[str, Any], weights: np.ndarray, plugins: list[Any]
) -> Problem:
    """Return a problem made from the same arguments and example weights as another."""
    registry.adopt_plugins(plugins)
    problem = Problem(*given, **settings)
    problem.weights = weights
    return problem


def _refuse_wide(layout: Any) -> None:
    """Refuse more weights than fit memory twice: those of training and the model's."""
    columns = layout.n_features or 0
    what = f"X: weights of {columns} columns"
    advice = "number columns without gaps, or hash their names to fewer"
    if columns**2 < layout.dim:
        what = f"y: {layout.dim:.3g} weights for {columns} columns and the parts of labels"
        advice = "train on fewer classes, such as without rare ones, or on smaller labels"
    refuse_too_large(16.0 * layout.dim, what, advice)
