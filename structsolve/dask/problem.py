"""A training problem with remote examples, for drivers and solvers."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..potentials.mixed import mixed_rows
from ..potentials.model import LinearModel
from ..solvers.problem import penalty_of, with_rows
from ..solvers.shard import Answer
from ..structure.base import Space
from .engine import RemoteEngine


class RemoteSurrogate:
    """Facts about the shards' surrogates.

    Parameters
    ----------
    affine, convex, exact : bool
        See :class:`structsolve.surrogates.base.Surrogate`.
    """

    def __init__(self, affine: bool, convex: bool, exact: bool):
        self.affine, self.convex, self.exact = affine, convex, exact

    def counts(self) -> None:
        """Only shards count searches."""

    def shortfalls(self) -> None:
        """Only shards count inexact answers."""

    def memory_of_examples(self) -> dict[str, Any]:
        """Return nothing: warm starts of searches stay on the shards.

        Returns
        -------
        dict
        """
        return {}

    def remember(self, memory: dict[str, Any]) -> None:
        """Ignore the memory.

        Parameters
        ----------
        memory : dict of str to ndarray
        """

    def allow(self, missed: float) -> None:
        """Leave the exactness of relaxations unchanged.

        Parameters
        ----------
        missed : float
        """


class RemoteProblem:
    """``alpha/2 ||w||^2 + sum_i u_i H_i(w)`` over the examples of all shards.

    Parameters
    ----------
    engine : RemoteEngine
    space : Space
    facts : list of dict
        Facts that each shard reports (:meth:`structsolve.dask.shard.RemoteShard.facts`).
    penalize_intercept : bool, default=True

    Attributes
    ----------
    n : int
        Examples of all shards.
    n_nodes : int
        ... and their nodes.
    weighed : tuple of float
        Numbers of nodes and examples; those of weight 2 count twice.
    dim : int
    violation : str or None
        Invalid bounds that shards reported, with shard and example.
    """

    #: Watches need examples, so shards run their own.
    task = SimpleNamespace(labels=None)
    examples = None

    def __init__(
        self,
        engine: RemoteEngine,
        space: Space,
        facts: list[dict[str, Any]],
        penalize_intercept: bool = True,
    ):
        self.engine, self.space = engine, space
        self.dim = space.layout.dim
        self.n = sum(fact["n"] for fact in facts)
        self.n_nodes = sum(fact["nodes"] for fact in facts)
        nodes, examples = zip(*(fact["weighed"] for fact in facts), strict=True)
        self.weighed = float(sum(nodes)), float(sum(examples))
        self.nbytes = sum(fact["nbytes"] for fact in facts)
        self.penalty = penalty_of(space.layout, penalize_intercept)
        self.potentials = SimpleNamespace(has_weights=True, nbytes=self.nbytes)
        self.surrogate_name = facts[0]["surrogate"]
        self.given_loss = facts[0]["loss"]
        self.surrogate = RemoteSurrogate(
            all(fact["affine"] for fact in facts),
            all(fact["convex"] for fact in facts),
            all(fact["exact"] for fact in facts),
        )
        told = [fact["violation"] for fact in facts if fact["violation"] is not None]
        self.violation: str | None = told[0] if told else None

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
        return 0.5 * alpha * float((w if self.penalty is None else w * self.penalty) @ w)

    def model(self, w: np.ndarray) -> LinearModel:
        """Return the model that scores examples as w does.

        Parameters
        ----------
        w : ndarray of shape (dim,)

        Returns
        -------
        LinearModel
        """
        mix, layout = self.space.node_mix, self.space.layout
        if mix is not None and layout.node is not None:
            w = with_rows(layout, w, partial(mixed_rows, M=mix, stride=layout.node.stride))
        return LinearModel(self.space, w)

    def heard(self, answer: Answer) -> int:
        """Collect the shards' violations; return the oracle calls they spent.

        Parameters
        ----------
        answer : Answer

        Returns
        -------
        int
        """
        for one in answer.each:
            if self.violation is None and one.get("violation") is not None:
                self.violation = one["violation"]
        return sum(one["oracle_calls"] for one in answer.each)

    def missed(self, w: np.ndarray, n_jobs: int = 1) -> float:
        """Return how much of the objective at w is what searches and oracles may have missed.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        n_jobs : int

        Returns
        -------
        float
        """
        if self.surrogate.exact:
            return 0.0
        return max(0.0, float(self.engine.ask("missed", w, n_jobs).sums[0]))
