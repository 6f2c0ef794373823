"""Shards on the workers of a Dask cluster: rounds, and recovery of shards of lost workers."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

from ..solvers.shard import Answer, Order, add, grouped
from .shard import RemoteShard

# Maximum number of consecutive worker losses in one round.
MOST_LOSSES = 100
# Methods whose answers have vectors: sums of these are made on the workers.
VECTORS = ("step", "cut", "at_zero", "holders")
# Bytes of arguments up to which each task gets a copy; larger ones are results of tasks.
SMALL = 100_000
# Bytes for scheduler and shards beside the packed examples.
ROOM = 1.2


def find_client(client: Any) -> Any:
    """Return the user's client, or else the current one.

    Parameters
    ----------
    client : distributed.Client, optional

    Returns
    -------
    distributed.Client

    Raises
    ------
    ImportError
        If distributed is not installed.
    ValueError
        If there is no client, or its cluster has no workers.
    TypeError
        If ``client`` is anything else.
    """
    try:
        # Need not be installed.
        import distributed
    except ImportError as error:
        raise ImportError(
            "structsolve.dask needs dask and distributed; pip install 'structsolve-learn"
            "[distributed]'"
        ) from error
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ValueError(
                "there is no Dask client: start one, client = distributed.Client(), which makes a "
                "local cluster, or distributed.Client('tcp://scheduler:8786')"
            ) from error
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client is {client!r}, expected a distributed.Client or None")
    if client.status != "running":
        raise ValueError(f"the Dask client is {client.status}, expected a running one")
    if not workers_of(client):
        raise ValueError(
            "the Dask cluster has no workers yet; client.wait_for_workers(1) waits for one"
        )
    return client


def workers_of(client: Any) -> dict[str, dict[str, Any]]:
    """Return the scheduler's information about its workers, by address, in order.

    Parameters
    ----------
    client : distributed.Client

    Returns
    -------
    dict of str to dict
    """
    # Not client.scheduler_info(): between its two steps a heartbeat of the client may put a summary
    # without workers in the place of what was asked for.
    workers = client.sync(client.scheduler.identity)["workers"]
    return {address: workers[address] for address in sorted(workers)}


def gathered(client: Any, futures: list[Any], what: str) -> list[Any]:
    """Return results; explain repeated deaths of workers.

    Parameters
    ----------
    client : distributed.Client
    futures : list of Future
    what : str
        Name of the computation, for the message.

    Returns
    -------
    list

    Raises
    ------
    MemoryError
        If several workers died of one task.
    """
    from distributed.scheduler import KilledWorker  # need not be installed

    try:
        return client.gather(futures)
    except KilledWorker as error:
        limits = {w.get("memory_limit") or 0 for w in workers_of(client).values()}
        shown = ", ".join(f"{limit / 1e9:.3g} GB" for limit in sorted(limits)) or "unknown"
        raise MemoryError(
            f"{what} killed several workers, most often for lack of memory "
            f"(memory_limit of the workers: {shown}): use a larger n_shards, more workers or a "
            "higher memory_limit"
        ) from error


def refuse_too_large(client: Any, needed: int, instead: str = "") -> None:
    """Raise MemoryError if the shards do not fit the memory of all workers.

    Parameters
    ----------
    client : distributed.Client
    needed : int
        Bytes of the packed examples of all shards.
    instead : str, default=""
        An alternative that needs less, for the message.
    """
    limits = [worker.get("memory_limit") or 0 for worker in workers_of(client).values()]
    if all(limits) and ROOM * needed > sum(limits):
        raise MemoryError(
            f"the shards hold {needed / 1e9:.3g} GB of packed examples, and the memory_limit of "
            f"the {len(limits)} workers is {sum(limits) / 1e9:.3g} GB in all: use more workers, or "
            f"give them more memory{instead}"
        )


class DaskEngine:
    """A :class:`~structsolve.dask.engine.RemoteEngine` whose shards are futures on workers.

    Arguments go to the scheduler once a round, and from worker to worker, so tasks can be repeated
    anywhere.  A shard changes in place.  When its worker dies, Dask rebuilds it elsewhere from its
    partition; it then reports that it is behind, and receives the rounds since the last checkpoint.

    Parameters
    ----------
    client : distributed.Client
    shards : list of Future
        Futures of :class:`~structsolve.dask.shard.RemoteShard`, in the order of their numbers.
    """

    def __init__(self, client: Any, shards: list[Any]):
        self.client, self.shards, self.n_shards = client, shards, len(shards)
        self.log: list[Order] = []
        self.base: list[Any] = [None] * len(shards)
        self._locate()

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
        what = f"{method}() of a shard"
        sent = self._send(args)
        futures = [self._submit(k, _called, method, sent) for k in range(self.n_shards)]
        if method not in VECTORS:
            return grouped(gathered(self.client, futures, what), add)
        # A tree of sums: a worker adds those of its own shards first.
        total = grouped(futures, lambda some: self.client.submit(_added, some, pure=False))
        return gathered(self.client, [total], what)[0]

    def step(self, order: Order) -> Answer:
        """Make a round; see :meth:`Engine.step`.

        Parameters
        ----------
        order : Order

        Returns
        -------
        Answer
        """
        self.log.append(order)
        return self._surely("step", (order,), self.log[:-1])

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
        return self._surely(method, args, self.log)

    def _surely(self, method: str, args: tuple[Any, ...], orders: list[Order]) -> Answer:
        """Ask until no shard is behind these rounds."""
        for _ in range(MOST_LOSSES):
            answer = self.ask(method, *args)
            behind = [one["number"] for one in answer.each if one.get("behind") is not None]
            if not behind:
                return answer
            self._catch_up(behind, orders)
        raise RuntimeError(
            f"{method}(): workers were lost {MOST_LOSSES} times, shards never caught up"
        )

    def states(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the state of every shard, from which lost shards will restart.

        Returns
        -------
        list of tuple of dict
        """
        rounds = self.log[-1].round + 1 if self.log else None
        for _ in range(MOST_LOSSES):
            futures = [self._submit(k, _state) for k in range(self.n_shards)]
            states = gathered(self.client, futures, "state() of a shard")
            behind = [
                k for k, (meta, _) in enumerate(states) if rounds not in (None, meta["round"])
            ]
            if not behind:
                break
            self._catch_up(behind, self.log)
        else:
            raise RuntimeError(f"workers were lost {MOST_LOSSES} times, shards never caught up")
        if rounds is not None:
            self.base, self.log = states, []
        return states

    def restore(self, states: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        """Let every shard continue from a state.

        Parameters
        ----------
        states : list of tuple of dict
        """
        self.base, self.log = states, []
        self._catch_up(list(range(self.n_shards)), [])

    def _catch_up(self, numbers: list[int], orders: list[Order]) -> None:
        self._locate()
        sent = self.client.submit(_sent, tuple(orders), pure=False)
        futures = []
        for k in numbers:
            base = self.client.submit(_sent, self.base[k], pure=False)
            futures.append(self._submit(k, _replayed, base, sent))
        gathered(self.client, futures, "the rounds of a shard that was lost")

    def _send(self, args: tuple[Any, ...]) -> Any:
        """Return arguments for tasks; large ones are sent once."""
        if sum(len(frame) for frame in pickled(args)) < SMALL:
            return args
        return self.client.submit(_sent, args, pure=False)

    def _locate(self) -> None:
        """Record the workers of the shards: tasks prefer them, but may run elsewhere."""
        holders = self.client.who_has(self.shards)
        self.where = [list(holders.get(shard.key, ())) for shard in self.shards]

    def _submit(self, k: int, function: Any, *args: Any) -> Any:
        pinned = {"workers": self.where[k], "allow_other_workers": True} if self.where[k] else {}
        return self.client.submit(function, self.shards[k], *args, pure=False, **pinned)


def pickled(args: tuple[Any, ...]) -> list[Any]:
    """Return serialised arguments.

    Parameters
    ----------
    args : tuple

    Returns
    -------
    list of bytes-like
    """
    buffers: list[Any] = []
    head = pickle.dumps(args, 5, buffer_callback=lambda b: buffers.append(b.raw()))
    return [head, *buffers]


# The functions below run on workers.


def _sent(value: Any) -> Any:
    """Return the client's data as a result of a task, which can be recomputed, unlike scatters."""
    return value


def _called(shard: RemoteShard, method: str, args: tuple[Any, ...]) -> Answer:
    answer = getattr(shard, method)(*args)
    # Answers may be views of arrays that the shard's next round changes.
    return replace(answer, sums=tuple(_copied(term) for term in answer.sums))


def _copied(term: Any) -> Any:
    return term.copy() if hasattr(term, "copy") else term


def _added(answers: list[Answer]) -> Answer:
    return add(answers)


def _state(shard: RemoteShard) -> tuple[dict[str, Any], dict[str, Any]]:
    meta, arrays = shard.state()
    return meta, {name: array.copy() for name, array in arrays.items()}


def _replayed(shard: RemoteShard, base: Any, orders: tuple[Order, ...]) -> int:
    return shard.replay(list(orders), base)
