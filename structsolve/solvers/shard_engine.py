"""Engines run rounds on all shards; the one here uses threads of this process."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..utils.parallel import over_examples
from .base import Start
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
        if order.metric is not None:
            order.metric.potentials(self.given.problem)  # computed once, before the threads use it

        def steps(first: int, last: int, _: None) -> list[Answer]:
            return [self.shards[k].step(order) for k in range(first, last)]

        answers = over_examples(steps, each, self.given.n_jobs, lambda: None)
        return grouped([answer for some in answers for answer in some], add)

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
            shard.metric = self.shards[0].metric
            shard.restore(meta, arrays)
            shard.seed, shard.picks = meta["seed"], arrays["picks"]
