"""The regularisation constant: as given, or computed from the training data for "auto"."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ..solvers.passes import example_subgradients, subgradient
from ..solvers.problem import Problem
from ..structure.losses import ClassWeights
from ..surrogates.given_marginals import holds_marginals
from ..utils.progress import stage
from .common import check_number
from .halves import wider

AUTO = "auto"
#: The value of "auto" for streamed or uninformative training sets.
UNKNOWN = 1e-3
# Number of examples whose subgradients estimate the size of the mean subgradient by chance; fewer
# if they would take more than this many numbers in all.
SAMPLE, FEWEST, NUMBERS = 100, 16, 10**7
# A subgradient whose square is this many times its size by chance needs no correction.
CLEAR = 13.0
# Number of label sets above which they count as fewer: the rule was found on sets of this size.
SETS = 400
# Of L nodes of a chain, L to this power count: found on letters, parts of speech, names and chunks.
ALIKE = 0.25
# With weights of classes, the constant of label sets that predicts best is so many times as large.
WIDER = 2.0
# Limits of the correction, and the number of examples below which it is left out.
LEAST, MOST, FEW = 0.2, 30.0, 10
# Parts of the subgradient below this share of its square are rounding.
ROUNDING = 1e-24


def is_auto(alpha: Any) -> bool:
    """Return whether the constant is computed from the data.

    Parameters
    ----------
    alpha : object
        The parameter of an estimator.

    Returns
    -------
    bool
    """
    return isinstance(alpha, str) and alpha == AUTO


def check_alpha(alpha: Any) -> None:
    """Raise ValueError unless alpha is "auto" or a finite number above 0.

    Parameters
    ----------
    alpha : object
    """
    if not is_auto(alpha):
        check_number("alpha", alpha, 0, True, f" or {AUTO!r}")


def default_alpha(problem: Problem, n_jobs: int = 1) -> float:
    """Return the value of "auto": ``||g||^2 / (R n) (13 / s)^2``.

    ``R`` is the mean surrogate at ``w = 0``, ``g`` the part of its subgradient there that belongs
    to weights of features, and ``n`` the number of nodes of all examples, multiplied by the
    examples' weights.  Intercepts and tables of labels alone are left out: their gradient reflects
    label frequencies, not features.  They count if there are no features.  ``s`` is ``||g||^2``
    divided by its value by chance, the variance of an example's subgradient over the number of
    examples: weak features get a larger alpha, strong ones a smaller alpha, from .2 to 30 times.
    The slope of the surrogate "slack" there grows with the loss, so alpha is divided by ``R`` once
    more if that is above 1.  Features ``t`` times as large make alpha ``t^2`` times as large,
    losses ``t`` times as large ``1 / t`` times.  Words of a sentence are alike, so that chains of
    ``L`` nodes on average count as ``L^.25`` nodes each, with "margin" and "crf".  More than 400
    label sets count as ``sqrt(400 n)``: the constant that predicts best falls by the root of their
    number; with the surrogate "margin" and a loss of class weights, as it is by default there,
    alpha is twice as large.  Of "crf" it is the constant of "margin", whose subgradient at 0 tells
    how well labels are separated; that of "crf", from uniform labels, is small whatever they are
    (:func:`ruling`).  Of weights with a metric (``Space.node_mix``) it is that of the same weights
    without one.  It takes one pass.

    The rule knows how strong features are, not how hard labels are to tell apart.  Of structures
    that say so (``Space.checks_alpha``: rankings of labels) it is therefore 8 times as large where
    halves of 40 to 250 examples then predict each other clearly better (``halves.py``).

    Parameters
    ----------
    problem : Problem
    n_jobs : int, default=1

    Returns
    -------
    float
        1e-3 if the surrogate at 0 is 0 or no feature separates labels.

    Notes
    -----
    ``||g||^2`` is taken to be at least its value by chance, which is measured on up to 100
    examples.  For fewer than ten examples, counted by weight, ``s`` is 13.

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.estimators.alpha import default_alpha
    >>> X, y = [[1.0], [-1.0]], ["a", "b"]
    >>> space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    >>> default_alpha(structsolve.Problem(space, examples))    # ||g||^2 = 2, R = 1, n = 2
    1.0
    """
    problem = ruling(problem)
    g, _, bounds, _ = subgradient(problem, np.zeros(problem.dim), n_jobs)
    value = float(problem.weights @ bounds)
    counts = effective(problem, *weighed(problem))
    square = feature_square(problem, g)
    del g  # as long as the weights, of which only few fit into memory
    each, steep = mean_square(problem), steepness(problem, value)
    alpha = alpha_of(square, each, value, *counts) / steep
    if getattr(problem.space, "checks_alpha", False):
        of_half = alpha_of(square, each, value, *(part / 2 for part in counts)) / steep
        alpha *= wider(problem, of_half, value, n_jobs)
    return alpha


def ruling(problem: Problem) -> Problem:
    """Return the problem that the rule looks at: for "crf" that of "margin" on the same examples.

    It has no metric of weights (``Space.node_mix``).  Its loss is the structure's own, since "crf"
    does not train with the one given.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Problem
        The given one where its labels are marginals, or have no best one under a loss.
    """
    problem = problem.without_metric()
    if problem.surrogate_name == "crf" and not holds_marginals(problem.examples):
        with suppress(ValueError):
            return problem.under("margin", getattr(problem.space, "default_loss", "hamming"))
    return problem


def feature_square(problem: Any, g: np.ndarray) -> float:
    """Return the squared norm of the part of g that belongs to weights of features.

    Parameters
    ----------
    problem : Problem
        Or one of shards.
    g : ndarray of shape (dim,)

    Returns
    -------
    float
        The squared norm of all of g if there are no such weights, or theirs is 0.
    """
    kernel = getattr(problem, "kernel", None) is not None
    layout = problem.potentials.layout if kernel else problem.space.layout
    whole = float(g @ g)
    # A copy of g would be the largest array here.
    kept = [(view, view.copy()) for view in _label_weights(g, layout, kernel)]
    for view, _ in kept:
        view[...] = 0
    square = _feature_square(problem, layout, g, kernel)
    for view, values in kept:
        view[...] = values
    return square if square > ROUNDING * whole else 2 * problem.regulariser(g, 1.0)


def _label_weights(g: np.ndarray, layout: Any, kernel: bool) -> list[np.ndarray]:
    views = [g[: layout.shared_size]]
    if not kernel and layout.node is not None and layout.intercept:
        views.append(layout.node_block(g)[-1])
    return views


def _feature_square(problem: Any, layout: Any, part: np.ndarray, kernel: bool) -> float:
    if kernel:
        sums = layout.node_block(part)[: problem.n_nodes].sum(axis=0)
        square: float = problem.potentials.squared_norm(part)
        # The intercept is a kernel of ones.
        return square - float(problem.space.layout.intercept) * float(sums @ sums)
    return float(part @ part)


def alpha_of(square: float, each: float, value: float, nodes: float, count: float) -> float:
    """Return the constant of the rule, or 1e-3 if that is not a positive number.

    Parameters
    ----------
    square, each : float
        ``||g||^2`` of :func:`default_alpha`, and the mean square of one example's subgradient.
    value, nodes, count : float
        ``R`` and ``n`` there, and the number of examples.

    Returns
    -------
    float
    """
    with np.errstate(all="ignore"):
        chance = max(each - square, 0.0) / count if count >= FEW else square / CLEAR
        square = np.maximum(np.float64(square), chance)
        doubt = np.clip((CLEAR * chance / square) ** 2, LEAST, MOST)
        alpha = float(doubt * square / (np.float64(value) * nodes))
    return alpha if np.isfinite(alpha) and alpha > 0 else UNKNOWN


def steepness(problem: Any, value: float) -> float:
    """Return how much steeper the surrogate is at ``w = 0`` than near its optimum.

    Parameters
    ----------
    problem : Problem
        Or one of shards.
    value : float
        The mean surrogate there.

    Returns
    -------
    float
        1 for all but "slack", and "margin" with weights of classes on label sets.
    """
    if problem.surrogate_name == "slack":
        return max(value, 1.0)
    wide = problem.surrogate_name == "margin" and problem.space.margin_loss is not None
    return 1 / WIDER if wide and isinstance(problem.given_loss, ClassWeights) else 1.0


def chosen_alpha(
    estimator: Any, problem: Any, rule: Callable[[Any, int], float] = default_alpha
) -> float:
    """Return the constant to train with; log its source if it is computed from the data.

    Parameters
    ----------
    estimator : estimator
        With ``alpha``, ``n_jobs`` and ``verbose``.
    problem : Problem
    rule : callable, optional
        Called with the problem and the number of threads.

    Returns
    -------
    float
    """
    if not is_auto(estimator.alpha):
        return float(estimator.alpha)
    alpha = rule(problem, estimator.n_jobs or 1)
    tell(estimator, alpha, "the scale of the data")
    return alpha


def tell(estimator: Any, alpha: float, source: str) -> None:
    """Log the value of "auto" in one line.

    Parameters
    ----------
    estimator : estimator
    alpha : float
    source : str
        The source of the value.
    """
    stage(
        int(getattr(estimator, "verbose", 0)),
        type(estimator).__name__,
        f"alpha={AUTO!r} is {alpha:.3g} by {source}; a number switches the rule off",
    )


def weighed(problem: Problem) -> tuple[float, float]:
    """Return the numbers of nodes and of examples; those of weight 2 count twice.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    nodes, examples : float
    """
    sizes, weights = np.diff(problem.examples.offsets), problem.examples.sample_weight
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        with np.errstate(over="ignore"):
            nodes, examples = float(sizes @ weights), float(weights.sum())
        # Weights of this size count as zero.
        if np.isfinite(nodes) and np.isfinite(examples) and examples > 0:
            return nodes, examples
    return float(sizes.sum()), float(len(sizes))


def effective(problem: Any, nodes: float, count: float) -> tuple[float, float]:
    """Return the numbers of nodes and examples that the rule takes.

    Parameters
    ----------
    problem : Problem
        Or one of shards.
    nodes, count : float
        As of :func:`weighed`.

    Returns
    -------
    nodes, examples : float
        Fewer than given for more than 400 label sets, and fewer nodes for chains.

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.estimators.alpha import effective
    >>> sets, chain = map(structsolve.get_structure, ("multilabel", "chain"))
    >>> problem = structsolve.Problem(*sets.make_space([[1.0], [0.0]], [[1, 0], [0, 1]]))
    >>> effective(problem, 100, 100), effective(problem, 1600, 1600)
    ((100.0, 100.0), (800.0, 800.0))
    >>> problem = structsolve.Problem(*chain.make_space([[[1.0], [0.0]]], [["a", "b"]]))
    >>> effective(problem, 1600, 100)
    (200.0, 100.0)
    """
    structure = problem.space.structure
    share = np.sqrt(SETS / max(count, SETS)) if structure.label_sets else 1.0
    if structure.alike_nodes and problem.surrogate_name in ("margin", "crf"):
        nodes = count * (nodes / count) ** ALIKE
    return float(nodes * share), float(count * share)


def refuse_without_effect(solver: Any) -> None:
    """Raise ValueError if alpha does not change what a solver learns.

    Parameters
    ----------
    solver : Solver

    Examples
    --------
    >>> from structsolve.estimators.alpha import refuse_without_effect
    >>> from structsolve.solvers import Perceptron
    >>> refuse_without_effect(Perceptron())
    Traceback (most recent call last):
    ValueError: alpha has no effect with solver 'perceptron', expected a solver that minimises \
the objective; choose max_iter, or early_stopping=True
    """
    if not getattr(solver, "minimises", True):
        raise ValueError(
            f"alpha has no effect with solver {solver.name!r}, expected a solver that minimises "
            "the objective; choose max_iter, or early_stopping=True"
        )


def mean_square(problem: Problem) -> float:
    """Return the mean square of the subgradient of one example at w = 0, by its feature part.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    float
        Of up to 100 examples, evenly spread, 0 if all have a weight of 0.
    """
    some = np.flatnonzero(problem.weights > 0)
    if not len(some):
        return 0.0
    most = min(SAMPLE, max(FEWEST, NUMBERS // max(problem.dim, 1)), len(some))
    some = some[np.linspace(0, len(some) - 1, most).astype(int)]
    measure = partial(feature_square, problem)
    squares = example_subgradients(problem, np.zeros(problem.dim), some, measure)
    return float(np.average(squares, weights=problem.weights[some]))
