"""Engines run rounds on all shards; the one here uses threads of this process."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..utils.parallel import over_examples
from .held import Common, features_of
from .places import places
from .run import Start
from .shard import Answer, Order, Shard, add, grouped


class Engine(Protocol):
    """Holds the shards, runs rounds on all of them, and adds up their answers in order.

    Attributes
    ----------
    n_shards : int
    """

    n_shards: int

    def step(self, order: Order) -> Answer:
        """Make a round on every shard.

        Parameters
        ----------
        order : Order

        Returns
        -------
        Answer
            The sum of the shards' answers, in the order of their numbers.
        """
        ...

    def states(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the state of every shard, for checkpoints.

        Returns
        -------
        list of tuple of dict
            Meta and arrays of each shard.
        """
        ...

    def restore(self, states: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        """Restore the state of every shard.

        Parameters
        ----------
        states : list of tuple of dict
            Result of :meth:`states`.
        """
        ...


class ThreadEngine:
    """Runs the shards of one problem in threads.

    Parameters
    ----------
    start : Start
        Its random generator assigns examples to shards.
    n_shards : int
        Maximum number of shards; each shard has at least one example.
    """

    def __init__(self, start: Start, n_shards: int):
        problem, self.given = start.problem, start
        self.n_shards = min(n_shards, problem.n)
        seed = int(start.rng.integers(2**31))
        parts = np.array_split(start.rng.permutation(problem.n), self.n_shards)
        self.shards = [Shard(problem, k, np.sort(part), seed) for k, part in enumerate(parts)]

    def step(self, order: Order) -> Answer:
        """Make a round; see :meth:`Engine.step`.

        Parameters
        ----------
        order : Order

        Returns
        -------
        Answer
        """
        each = np.arange(self.n_shards + 1)
        # What shards share is computed once, before the threads use it.
        if order.metric is not None:
            order.metric.potentials(self.given.problem)
        if order.common is not None:
            self._place(order.common)
        if self.shards[0].place is not None and (order.fresh or order.round == 0):
            self.shards[0].place.potentials(order.scale)

        def steps(first: int, last: int, _: None) -> list[Answer]:
            return [self.shards[k].step(order) for k in range(first, last)]

        answers = over_examples(steps, each, self.given.n_jobs, lambda: None)
        return grouped([answer for some in answers for answer in some], add)

    def holders(self) -> np.ndarray:
        """Return how many shards have each node feature.

        Returns
        -------
        ndarray of float64 of shape (n_features,)
        """
        return np.sum([features_of(self.given.problem, s.picks) for s in self.shards], axis=0)

    def whole(self, common: Common, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return all weights of the problem.

        Parameters
        ----------
        common : Common
        z : ndarray of shape (common.dim,)
        w : ndarray of shape (dim,)
            Changed in place; 0 for features that no shard has.

        Returns
        -------
        ndarray of shape (dim,)
            ``w``.
        """
        step = -(-len(common.rows) // self.n_shards)

        def fill(first: int, last: int, _: None) -> None:
            for k in range(first, last):
                common.spread(z, w, slice(k * step, (k + 1) * step))
                shard = self.shards[k]
                if shard.place is not None:
                    shard.place.insert(shard.loop.w, shard.factor, w)

        over_examples(fill, np.arange(self.n_shards + 1), self.given.n_jobs, lambda: None)
        return w

    def _place(self, common: Common) -> None:
        parts = [shard.picks for shard in self.shards]
        for shard, place in zip(self.shards, places(self.given.problem, common, parts)):
            shard.place = place

    def states(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the state of every shard; see :meth:`Engine.states`.

        Returns
        -------
        list of tuple of dict
        """
        states = []
        for shard in self.shards:
            meta, arrays = shard.state()
            states.append(({**meta, "seed": shard.seed}, arrays | {"picks": shard.picks}))
        return states

    def restore(self, states: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        """Restore the state of every shard; see :meth:`Engine.restore`.

        Parameters
        ----------
        states : list of tuple of dict
        """
        for shard, (meta, arrays) in zip(self.shards, states):
            shard.seed, shard.picks = meta["seed"], arrays["picks"]
        arrays = states[0][1]
        if "features" in arrays:
            self._place(Common.of_arrays(self.given.problem.space.layout, arrays))
        for shard, (meta, arrays) in zip(self.shards, states):
            shard.metric = self.shards[0].metric
            shard.restore(meta, arrays)
