"""A shard on a worker: its own problem, answers at fixed weights, memory, pickles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.alpha import mean_square, ruling, weighed
from ..estimators.fitting import fingerprint_of
from ..solvers.held import features_of
from ..solvers.metric import moments
from ..solvers.passes import subgradient
from ..solvers.problem import Problem
from ..solvers.shard import Answer, Order, Shard
from ..solvers.watch import probe
from ..solvers.weight_constraints import assemble


class RemoteShard(Shard):
    """A :class:`~structsolve.solvers.shard.Shard` with the problem of only its examples.

    A shard that has missed rounds replays them (:meth:`replay`).

    Parameters
    ----------
    problem : Problem
        The problem of only its examples.
    number : int
        Number of the shard.
    total : float
        Weight of the examples of all shards; the problem's are shares of it from now on.
    own_total : float
        Weight of its own examples.
    seed : int
        Seed of the orders of the passes.
    max_cuts : int
        Cuts kept per example.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.dask.shard import RemoteShard
    >>> from structsolve.solvers.shard import Order
    >>> space, examples = structsolve.get_structure("multiclass").make_space([[1.0], [2.0]], [0, 1])
    >>> problem = structsolve.Problem(space, examples)
    >>> shard = RemoteShard(problem, 0, total=4.0, own_total=2.0, seed=0)
    >>> answer = shard.step(Order(0, np.zeros(shard.problem.dim), 1.0, 1, False))
    >>> shard.round, answer.each[0]["behind"] is None, shard.problem.weights.tolist()
    (1, True, [0.25, 0.25])
    """

    def __init__(
        self,
        problem: Problem,
        number: int,
        total: float,
        own_total: float,
        seed: int,
        max_cuts: int = 50,
    ):
        problem.weights = problem.weights * (own_total / total)
        super().__init__(problem, number, np.arange(problem.n), seed, max_cuts)

    def replay(self, orders: list[Order], base: Any = None) -> int:
        """Make the missed rounds; return the number of the next one.

        Parameters
        ----------
        orders : list of Order
            Orders of all rounds since ``base``.
        base : tuple of dict, optional
            A :meth:`state` to start from, if the shard is further behind.

        Returns
        -------
        int
        """
        if base is not None and base[0]["round"] > self.round:
            self.restore(*base)
        for order in orders:
            if order.round == self.round:
                self._step(order)
                self.round += 1
        return self.round

    # -- answers at fixed weights -----------------------------------------------------------------

    def values(
        self, candidates: list[np.ndarray], n_jobs: int = 1, round: int | None = None
    ) -> Answer:
        """Return the shard's share of the mean surrogate at some weights.

        Parameters
        ----------
        candidates : list of ndarray of shape (dim,)
        n_jobs : int
        round : int, optional
            The candidates are the weights on which shards agree; the shard adds those that it alone
            has after so many rounds.

        Returns
        -------
        Answer
            Sums: one array, a number per candidate; the square of the weights added.
        """
        if round not in (None, self.round):
            return self._late()
        values, calls = np.zeros(len(candidates)), 0
        for j, w in enumerate(candidates):
            if round is not None and self.place is not None:
                w = self.place.common.spread(w, np.zeros(self.problem.dim))
                self.place.insert(self.loop.w, self.factor, w)
            bounds, spent = self.problem.bounds(w, n_jobs)
            values[j] = self.problem.weights @ bounds
            calls += spent
        return Answer((values, self.square), [self._told(calls)])

    def alone_after(self, round: int) -> Answer:
        """Return the weights that the shard alone has.

        Parameters
        ----------
        round : int
            After so many rounds: all so far, or those before the last ``keep`` of an order.

        Returns
        -------
        Answer
            Each: ``features`` and ``weights``.
        """
        if round not in (self.round, self.kept_round):
            return self._late()
        weights = self.alone() if round == self.round else self.kept
        place: Any = self.place
        return Answer((), [{**self._told(0), "features": place.features, "weights": weights}])

    def _late(self) -> Answer:
        return Answer((), [{**self._told(0), "behind": self.round}])

    def holders(self) -> Answer:
        """Return which node features the shard has.

        Returns
        -------
        Answer
            Sums: 1 or 0 for each feature.
        """
        return Answer((features_of(self.problem, self.picks),), [self._told(0)])

    def cut(self, w: np.ndarray, n_jobs: int = 1) -> Answer:
        """Return the shard's share of a cut of the mean surrogate.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        n_jobs : int

        Returns
        -------
        Answer
            Sums: g, b, and the share of the mean surrogate at w.
        """
        g, b, bounds, calls = subgradient(self.problem, w, n_jobs)
        bounds = self.problem.checked_bounds(w, bounds)
        return Answer((g, b, float(self.problem.weights @ bounds)), [self._told(calls)])

    def moments(self) -> Answer:
        """Return the shard's share of the moments of the node features.

        Returns
        -------
        Answer
            Sums: as of :func:`structsolve.solvers.metric.moments`.
        """
        return Answer(moments(self.problem), [self._told(0)])

    def missed(self, w: np.ndarray, n_jobs: int = 1) -> Answer:
        """Return the shard's share of what searches may have missed at w.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        n_jobs : int

        Returns
        -------
        Answer
        """
        return Answer((self.problem.missed(w, n_jobs),), [self._told(0)])

    def check_constraints(self, constraints: Any) -> Answer:
        """Refuse constraints on w that are invalid for these examples.

        Parameters
        ----------
        constraints : list
            Objects as :class:`~structsolve.solvers.CuttingPlane` takes them.

        Returns
        -------
        Answer

        Raises
        ------
        ValueError, TypeError
        """
        assemble(constraints, self.problem.space.layout, self.problem.examples)
        return Answer((), [self._told(0)])

    def facts(self) -> Answer:
        """Return the facts about the examples that solvers need.

        Returns
        -------
        Answer
            Each: ``n``, ``nodes``, ``weighed``, ``nbytes``, ``affine``, ``convex``,
            ``exact``, ``surrogate``, ``violation``, ``fingerprint``.
        """
        p = self.problem
        fact = {
            **self._told(0),
            "n": p.n,
            "nodes": p.n_nodes,
            "weighed": weighed(p),
            "nbytes": self.nbytes,
            "affine": bool(p.surrogate.affine),
            "convex": bool(p.surrogate.convex),
            "exact": bool(p.surrogate.exact),
            "surrogate": p.surrogate_name,
            "loss": p.given_loss,
            "fingerprint": fingerprint_of(p, {}),
        }
        if fact["violation"] is None:
            fault = probe(p)
            fact["violation"] = None if fault is None else f"shard {self.number}, {fault}"
        return Answer((), [fact])

    def at_zero(self, n_jobs: int = 1) -> Answer:
        """Return the shard's shares of what the rule for alpha looks at, at w = 0.

        Parameters
        ----------
        n_jobs : int

        Returns
        -------
        Answer
            Sums: the subgradient, the mean surrogate, the mean square of an example's subgradient.
        """
        ruled = ruling(self.problem)
        g, _, bounds, calls = subgradient(ruled, np.zeros(ruled.dim), n_jobs)
        value, share = float(ruled.weights @ bounds), float(ruled.weights.sum())
        return Answer((g, value, share * mean_square(ruled)), [self._told(calls)])

    def _told(self, calls: int) -> dict[str, Any]:
        violation = self.problem.violation
        if violation is not None:
            violation = f"shard {self.number}, {violation}"
        return {"number": self.number, "oracle_calls": calls, "violation": violation}

    # -- memory, pickles --------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the packed examples, the dual variables and the weights."""
        own, turned = self.problem.potentials, self.potentials
        features = own.nbytes + (0 if turned is own else turned.nbytes)
        return int(features + super().nbytes)

    def __sizeof__(self) -> int:
        # dask.sizeof reads this.
        return object.__sizeof__(self) + self.nbytes

    def __reduce__(self) -> Any:
        made_of = self.problem, self.number, 1.0, 1.0, self.seed, self.max_cuts
        return _revived, (made_of, self.state())


def _revived(made_of: tuple[Any, ...], state: tuple[Any, Any]) -> RemoteShard:
    """Return the shard of a pickle, in the same state."""
    shard = RemoteShard(*made_of)
    shard.restore(*state)
    return shard
