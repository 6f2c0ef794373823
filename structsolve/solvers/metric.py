"""SpectralMetric: rescaled weights, in which directions of low feature variance keep up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..examples.given import is_sparse
from ..potentials.linear import LinearPotentials
from ..potentials.make import linear_potentials
from ..potentials.weight_layout import WeightLayout
from .problem import Problem

# Maximum number of features for a metric, because rows become dense.
MOST_FEATURES = 1024
# Weights along an eigenvector of the features' covariance are scaled by its eigenvalue to this
# power, chosen by trials on OCR letters, where 0 takes a quarter more rounds.
POWER = -0.3
# Directions with eigenvalues below this share of the largest are not scaled: features are constant
# there, as an intercept is, or nearly zero.
FLOOR = 1e-3
# "auto" is "spectral" if the loss curves this much more than the regulariser (otherwise, rounds are
# few with any metric)
WEAK = 300.0
# and dense rows take at most this many times the bytes of the packed examples.
DENSER = 8
# Rows per block.
ROWS = 4096


class Moments(NamedTuple):
    """Sums over nodes, weighted by the weights of their examples.

    Parameters
    ----------
    mass : float
        Sum of the weights.
    total : ndarray of shape (n_features,)
        Sum of the features x.
    second : ndarray of shape (n_features, n_features)
        Sum of ``x x'``.
    """

    mass: float
    total: np.ndarray
    second: np.ndarray


class SpectralMetric:
    """Coordinates w' of weights that make the covariance of node features more isotropic.

    The node block's rows are ``turn @ w'``; other weights are the same.  Scores are those of ``w'``
    on features ``X @ turn``, and ``||w||^2`` is the sum of ``squares * w'^2``.

    Parameters
    ----------
    layout : WeightLayout
    turn : ndarray of float64 of shape (n_features, n_features)
        An orthogonal matrix times a diagonal one.

    Attributes
    ----------
    squares : ndarray of shape (layout.dim,)
        Squared lengths of the columns of ``turn`` for the node block, 1 elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.solvers.metric import SpectralMetric, moments
    >>> X, y = [[0.0, 1.0], [0.0, 9.0], [1.0, 5.0]], [0, 1, 1]
    >>> space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    >>> problem = structsolve.Problem(space, examples)
    >>> metric = SpectralMetric.of_moments(space.layout, moments(problem))
    >>> w = np.arange(float(problem.dim))
    >>> np.allclose(metric.model(metric.turned(w)), w)
    True
    """

    def __init__(self, layout: WeightLayout, turn: np.ndarray):
        self.layout, self.turn = layout, turn
        lengths = (turn * turn).sum(axis=0)
        self.squares = np.ones(layout.dim)
        self._rows(self.squares)[:] = lengths[:, None]
        self._inverse = turn.T / lengths[:, None]
        self._made: tuple[Any, Any] = None, None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": (None, None)}

    @classmethod
    def of_moments(cls, layout: WeightLayout, given: Moments) -> SpectralMetric:
        """Return the metric for the feature covariance of all shards.

        Parameters
        ----------
        layout : WeightLayout
        given : Moments

        Returns
        -------
        SpectralMetric
        """
        mass = given.mass or 1.0  # 0 if all examples with nodes have weight 0
        mean = given.total / mass
        covariance = given.second / mass - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance)
        most = max(float(values[-1]), 0.0)
        if most == 0:
            return cls(layout, np.eye(len(values)))
        # Logarithms relative to the largest eigenvalue avoid under- and overflow.
        varied = values > FLOOR * most
        logs = np.log(values[varied] / most)
        factors = np.ones(len(values))
        factors[varied] = np.exp(POWER * (logs - logs.mean()))
        return cls(layout, vectors * factors)

    def potentials(self, problem: Problem) -> LinearPotentials:
        """Return the potentials of w' on the problem's examples; the last result is cached.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        LinearPotentials
        """
        known, made = self._made
        if known is not problem:
            made = self._potentials(problem)
            self._made = problem, made
        return made

    def _potentials(self, problem: Problem) -> LinearPotentials:
        examples, name = problem.examples, problem.space.structure.name
        nodes = np.empty(examples.nodes.shape)
        for rows in _blocks(len(nodes)):
            nodes[rows] = examples.nodes[rows] @ self.turn
        turned, gram = replace(examples, nodes=nodes), problem.potentials.has_gram
        return linear_potentials(self.layout, turned, name, gram, **problem.metric)

    def model(self, w: np.ndarray) -> np.ndarray:
        """Return the weights for the original features.

        Parameters
        ----------
        w : ndarray of shape (dim,)
            Weights in the metric's coordinates.

        Returns
        -------
        ndarray of shape (dim,)
            A new array.
        """
        return self._times(self.turn, w)

    def turned(self, w: np.ndarray) -> np.ndarray:
        """Return weights in the metric's coordinates; see :meth:`model`.

        Parameters
        ----------
        w : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (dim,)
            A new array.
        """
        return self._times(self._inverse, w)

    def _times(self, matrix: np.ndarray, w: np.ndarray) -> np.ndarray:
        w = w.copy()
        rows = self._rows(w)
        rows[:] = matrix @ rows
        return w

    def _rows(self, w: np.ndarray) -> np.ndarray:
        """Return a view of the node block's rows, without the intercept's."""
        return self.layout.node_block(w)[: self.layout.n_features]


def _suits(layout: WeightLayout) -> bool:
    return layout.node is not None and 0 < layout.n_features <= MOST_FEATURES


def check_features(problem: Problem) -> None:
    """Refuse problems without node features, or with too many for a metric.

    Parameters
    ----------
    problem : Problem

    Raises
    ------
    ValueError
    """
    layout = problem.space.layout
    if not _suits(layout):
        count = 0 if layout.node is None else layout.n_features
        raise ValueError(
            f"metric='spectral' needs node features, at most {MOST_FEATURES}, found {count}; use "
            "metric='identity'"
        )


def choose_metric(
    kind: str, problem: Problem, bend: float, ask: Callable[[], Moments]
) -> SpectralMetric | None:
    """Return the metric of the consensus, or None for that of the regulariser.

    Parameters
    ----------
    kind : {"identity", "spectral", "auto"}
    problem : Problem
    bend : float
        Curvature of the loss in units of alpha.
    ask : callable
        Returns the moments of the node features.

    Returns
    -------
    SpectralMetric or None
    """
    layout = problem.space.layout
    if kind == "auto" and _suits(layout) and bend >= WEAK:
        pays = turned_bytes(problem.n_nodes, layout) <= DENSER * problem.potentials.nbytes
    else:
        pays = kind == "spectral"
    return SpectralMetric.of_moments(layout, ask()) if pays else None


def turned_bytes(n_nodes: int, layout: WeightLayout) -> int:
    """Return the bytes of turned features, which are dense.

    Parameters
    ----------
    n_nodes : int
    layout : WeightLayout

    Returns
    -------
    int
    """
    return 8 * n_nodes * layout.n_features


def moments(problem: Problem) -> Moments:
    """Return the moments of the features of all nodes.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Moments
    """
    examples = problem.examples
    weights = np.repeat(problem.weights, np.diff(examples.offsets))
    n = problem.space.layout.n_features
    total, second = np.zeros(n), np.zeros((n, n))
    for rows in _blocks(len(weights)):
        X = examples.nodes[rows]
        X = X.toarray() if is_sparse(X) else X
        weighted = X * weights[rows, None]
        total += weighted.sum(axis=0)
        second += weighted.T @ X
    return Moments(float(weights.sum()), total, second)


def _blocks(n: int) -> list[slice]:
    return [slice(k, min(k + ROWS, n)) for k in range(0, n, ROWS)]
