"""Engines of shards: they call a method of each shard and add up the answers, in order."""

from __future__ import annotations

from typing import Any, Protocol

from ..solvers.shard import Answer, Order, add, grouped
from ..solvers.shard_engine import Engine
from .shard import RemoteShard


class RemoteEngine(Engine, Protocol):
    """The calls of distributed solvers to shards.

    The sum of answers has the same order for every engine and number of workers: four shards in the
    order of their numbers, then groups of four such sums.
    """

    def ask(self, method: str, *args: Any) -> Answer:
        """Call a method of every shard; return the sum of the answers.

        Parameters
        ----------
        method : str
            Of :class:`~structsolve.dask.shard.RemoteShard`, one that returns an ``Answer``.
        *args
            Its arguments.

        Returns
        -------
        Answer
        """
        ...

    def ask_now(self, method: str, *args: Any) -> Answer:
        """Call a method whose answer depends on the rounds made: lost shards make them again.

        Parameters
        ----------
        method : str
        *args

        Returns
        -------
        Answer
        """
        ...


class LocalEngine:
    """Shards in this process, one after the other; the same answers as from Dask, bit for bit.

    Parameters
    ----------
    shards : list of RemoteShard

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.dask.engine import LocalEngine
    >>> from structsolve.dask.shard import RemoteShard
    >>> space, examples = structsolve.get_structure("multiclass").make_space([[1.0], [2.0]], [0, 1])
    >>> problems = [structsolve.Problem(space, examples) for _ in range(2)]
    >>> shards = [RemoteShard(p, k, 4.0, 2.0, seed=0) for k, p in enumerate(problems)]
    >>> g, b, mean = LocalEngine(shards).ask("cut", np.zeros(shards[0].problem.dim)).sums
    >>> float(b), float(mean)
    (1.0, 1.0)
    """

    def __init__(self, shards: list[RemoteShard]):
        self.shards, self.n_shards = shards, len(shards)

    def ask(self, method: str, *args: Any) -> Answer:
        """Call a method of every shard; see :meth:`RemoteEngine.ask`.

        Parameters
        ----------
        method : str
        *args

        Returns
        -------
        Answer
        """
        return grouped([getattr(shard, method)(*args) for shard in self.shards], add)

    def ask_now(self, method: str, *args: Any) -> Answer:
        """Call a method of every shard; see :meth:`RemoteEngine.ask_now`.

        Parameters
        ----------
        method : str
        *args

        Returns
        -------
        Answer
        """
        return self.ask(method, *args)

    def step(self, order: Order) -> Answer:
        """Make a round; see :meth:`Engine.step`.

        Parameters
        ----------
        order : Order

        Returns
        -------
        Answer
        """
        return self.ask("step", order)

    def states(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the state of every shard.

        Returns
        -------
        list of tuple of dict
        """
        return [shard.state() for shard in self.shards]

    def restore(self, states: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        """Let every shard continue from a state.

        Parameters
        ----------
        states : list of tuple of dict
        """
        for shard, state in zip(self.shards, states):
            shard.restore(*state)
