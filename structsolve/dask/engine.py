"""Where shards live: something that calls a method of each and adds the answers up, in order."""

from __future__ import annotations

from typing import Any, Protocol

from .shard import Answer, Order, Shard, add

# More answers than these are added up in groups first: a tree of sums.
GROUP = 32


class Engine(Protocol):
    """What the distributed solvers ask of the place where the shards are.

    The sum of answers has one order, whatever an engine is and however many workers it has: up
    to 32 shards in the order of their numbers, more of them in groups of 32, then the groups.

    Attributes
    ----------
    n_shards : int
    """

    n_shards: int

    def ask(self, method: str, *args: Any) -> Answer:
        """Call a method of every shard; return the sum of the answers.

        Parameters
        ----------
        method : str
            Of :class:`~structsolve.dask.shard.Shard`, one that returns an ``Answer``.
        *args
            Its arguments.

        Returns
        -------
        Answer
        """
        ...

    def step(self, order: Order) -> Answer:
        """Make a round on every shard, also on those that were lost and have to catch up.

        Parameters
        ----------
        order : Order

        Returns
        -------
        Answer
        """
        ...

    def states(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the state of every shard, for checkpoints; lost shards begin there from now on.

        Returns
        -------
        list of tuple of dict
            Meta and arrays of each.
        """
        ...

    def restore(self, states: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        """Let every shard continue from a state.

        Parameters
        ----------
        states : list of tuple of dict
            As :meth:`states` returned them.
        """
        ...


def grouped(items: list[Any], total: Any) -> Any:
    """Return the sum of items, in groups where there are many.

    Parameters
    ----------
    items : list
    total : callable
        From a list of at most 32 items to their sum.

    Returns
    -------
    object

    Examples
    --------
    >>> from structsolve.dask.engine import grouped
    >>> grouped([str(i) for i in range(34)], lambda some: f"({'+'.join(some[:2])}..)")
    '((0+1..)+(32+33..)..)'
    """
    while len(items) > GROUP:
        items = [total(items[k : k + GROUP]) for k in range(0, len(items), GROUP)]
    return total(items)


class LocalEngine:
    """Shards in this process, one after the other: the same answers as from Dask, bit for bit.

    Parameters
    ----------
    shards : list of Shard

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.dask.engine import LocalEngine
    >>> from structsolve.dask.shard import Shard
    >>> space, examples = structsolve.get_structure("multiclass").make_space([[1.0], [2.0]], [0, 1])
    >>> shards = [Shard(structsolve.Problem(space, examples), k, 4.0, 2.0, seed=0) for k in (0, 1)]
    >>> g, b, mean = LocalEngine(shards).ask("cut", np.zeros(shards[0].problem.dim)).sums
    >>> float(b), float(mean)
    (1.0, 1.0)
    """

    def __init__(self, shards: list[Shard]):
        self.shards, self.n_shards = shards, len(shards)

    def ask(self, method: str, *args: Any) -> Answer:
        """Call a method of every shard; see :meth:`Engine.ask`.

        Parameters
        ----------
        method : str
        *args

        Returns
        -------
        Answer
        """
        return grouped([getattr(shard, method)(*args) for shard in self.shards], add)

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
