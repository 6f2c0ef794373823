"""Shards: parts of the examples with their dual variables, and their answers in a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._bcfw import BlockLoop
from .base import pieces
from .bcfw import SMALL_GAIN
from .metric import SpectralMetric
from .problem import Problem

# Rounds between recomputations of a shard's share of w from its dual variables.
RESYNCHRONISE = 10
MAX_AGE = 10
ANY_AGE = np.iinfo(np.int32).max
# Answers per group in the tree of sums.
GROUP = 32
# Cached passes continue while a visit gains this share of an oracle visit's dual increase.
PAYS = 0.5


@dataclass
class Answer:
    """The answer of one or more shards: summed arrays, and small values per shard.

    Parameters
    ----------
    sums : tuple of ndarray or float
    each : list of dict
        One per shard, in the order of their numbers.
    """

    sums: tuple[Any, ...] = ()
    each: list[dict[str, Any]] = field(default_factory=list)


def add(answers: list[Answer]) -> Answer:
    """Return the sum of answers in the given order, on which floating-point sums depend.

    Parameters
    ----------
    answers : list of Answer

    Returns
    -------
    Answer
        ``sums`` is empty if that of any answer is, as for a shard that lags behind.
    """
    each = [one for answer in answers for one in answer.each]
    if any(not answer.sums for answer in answers):
        return Answer((), each)
    sums = [np.array(term, dtype=np.float64) for term in answers[0].sums]
    for answer in answers[1:]:
        for total, term in zip(sums, answer.sums):
            total += term
    return Answer(tuple(sums), each)


def grouped(items: list[Any], total: Any) -> Any:
    """Return the sum of items, computed in groups if there are many.

    Parameters
    ----------
    items : list
    total : callable
        Maps a list of at most 32 items to their sum.

    Returns
    -------
    object

    Examples
    --------
    >>> from structsolve.solvers.shard import grouped
    >>> grouped([str(i) for i in range(34)], lambda some: f"({'+'.join(some[:2])}..)")
    '((0+1..)+(32+33..)..)'
    """
    while len(items) > GROUP:
        items = [total(items[k : k + GROUP]) for k in range(0, len(items), GROUP)]
    return total(items)


@dataclass
class Order:
    """The work of all shards in a round of :class:`~structsolve.solvers.ConsensusADMM`.

    Parameters
    ----------
    round : int
        Number of the round, from 0.
    z : ndarray of shape (dim,)
        The consensus weights.
    rho : float
        Weight of ``|w - z + y|^2 / 2``.
    passes : int
        Number of passes over the shard that call the oracle.
    relax : float
        Over-relaxation of the update of y.
    fresh : bool
        Reset y to the value for the shard's dual variables.
    metric : SpectralMetric, optional
        Coordinates of z and of all later vectors; given in round 0.
    """

    round: int
    z: np.ndarray
    rho: float
    passes: int
    relax: float
    fresh: bool
    metric: SpectralMetric | None = None


class Shard:
    """Some of the examples of a training problem, and a block-coordinate loop over them.

    In a round of consensus ADMM the shard approximately minimises
    ``rho/2 |w - z + y|^2 + sum_i u_i H_i(w)`` over its examples by passes of
    :class:`~structsolve.solvers.BCFW`.  Its loop runs with ``alpha = rho`` and weights
    ``z - y + own``, where ``own = (1/rho) sum_i u_i Phi_i' p_i`` comes from the dual variables.
    These are feasible for the whole problem's dual for any z and y, so a certificate needs only the
    sum of all ``own``.

    A shard counts its rounds.  If an order is for a round later than the next one, the answer
    reports the lag; for a repeated order, the shard returns the same answer.

    Parameters
    ----------
    problem : Problem
        Shards of one process share it.
    number : int
        Index of the shard.
    picks : ndarray of int64
        Indices of the shard's examples.
    seed : int
        Seed of the orders of the passes.
    max_cuts : int
        Maximum number of cuts kept per example.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.solvers.shard import Order, Shard
    >>> space, examples = structsolve.get_structure("multiclass").make_space([[1.0], [2.0]], [0, 1])
    >>> problem = structsolve.Problem(space, examples)
    >>> shard = Shard(problem, 0, np.array([1]), seed=0)
    >>> answer = shard.step(Order(0, np.zeros(problem.dim), 1.0, 1, 1.6, False))
    >>> shard.round, answer.each[0]["behind"] is None, answer.each[0]["oracle_calls"]
    (1, True, 1)
    """

    def __init__(
        self, problem: Problem, number: int, picks: np.ndarray, seed: int, max_cuts: int = 50
    ):
        self.problem, self.number, self.picks = problem, number, picks
        self.seed, self.max_cuts = seed, max_cuts
        self.round = 0
        self.loop: Any = None
        self.metric: SpectralMetric | None = None
        self.potentials = problem.potentials
        self.y = self.own = self.z = np.zeros(0)
        self.estimate, self.spread, self.calls, self.cached = 0.0, 0.0, 0, 0

    # -- rounds -----------------------------------------------------------------------------------

    def step(self, order: Order) -> Answer:
        """Make a round of consensus ADMM.

        Parameters
        ----------
        order : Order

        Returns
        -------
        Answer
            Sums: ``own``, ``sum_i u_i b_i``, the gaps met, ``|w - z|^2``.
        """
        if self.round not in (order.round, order.round + 1):
            return Answer((), [{"number": self.number, "behind": self.round}])
        if self.round == order.round:
            self._step(order)
            self.round += 1
        told = {
            "number": self.number,
            "behind": None,
            "oracle_calls": self.calls,
            "cached_passes": self.cached,
            "cuts": self.loop.count,
        }
        return Answer((self.own, self.loop.b_total, self.estimate, self.spread), [told])

    def _step(self, order: Order) -> None:
        # Updates are in place: vectors may be huge, and they dominate the cost of a round.
        z, rho, relax = order.z, order.rho, order.relax
        if self.loop is None:
            self.metric = order.metric
            self.loop = self._new_loop(rho)
            self.own, self.y = np.zeros_like(z), np.zeros_like(z)
        elif order.fresh:
            self.loop.rescale(rho)
            self.own[:] = self.y[:] = self.loop.w
        else:
            # y += relax w + (1 - relax) z - z+, where w = z - y + own.
            self.y *= 1 - relax
            self.y += relax * self.own
            self.y += self.z
            self.y -= z
            if self.round % RESYNCHRONISE == 0:
                self.loop.resynchronise()
                self.own[:] = self.loop.w
        self.z, w = z, self.loop.w
        np.subtract(z, self.y, out=w)
        w += self.own
        rng = np.random.default_rng([self.seed, self.number, self.round])
        self.calls = self.cached = 0
        for _ in range(order.passes):
            self._pass(rng)
        np.subtract(w, z, out=self.own)
        self.spread = float(self.own @ self.own)
        self.own += self.y

    def _new_loop(self, rho: float) -> BlockLoop:
        p = self.problem
        self.potentials = p.potentials if self.metric is None else self.metric.potentials(p)
        return BlockLoop(self.potentials, p.surrogate, p.labels, p.weights, rho, self.max_cuts)

    def _dual(self) -> float:
        w = self.loop.w
        return float(self.loop.b_total - 0.5 * self.loop.alpha * (w @ w))

    def _pass(self, rng: np.random.Generator) -> None:
        """Make one pass that calls the oracle, then cached passes while they pay."""
        n = len(self.picks)
        before = self._dual()
        self.estimate, calls = self._run(rng.permutation(self.picks), 1, MAX_AGE, 0.0)
        self.calls += calls
        dual = self._dual()
        gain, small = (dual - before) / n, SMALL_GAIN * self.estimate
        for _ in range(200):
            order = rng.permutation(np.flatnonzero(self.loop.moved.view(bool)))
            self._run(order, 0, ANY_AGE, small)
            self.cached += 1
            before, dual = dual, self._dual()
            if dual - before <= PAYS * gain * len(order):
                break

    def _run(
        self, order: np.ndarray, calls: int, max_age: int, min_gain: float
    ) -> tuple[float, int]:
        total, spent = 0.0, 0
        for some in pieces(order):
            gap, used = self.loop.run(some, calls, 30, True, max_age, 0.1, min_gain, False)
            total += gap
            spent += used
        return total, spent

    # -- memory, checkpoints ----------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the dual variables and the weights."""
        return 0 if self.loop is None else int(self.loop.nbytes + 6 * self.loop.w.nbytes)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the state from which :meth:`restore` continues bit for bit.

        Returns
        -------
        meta : dict
        arrays : dict of str to ndarray
            Empty before the first round.
        """
        meta: dict[str, Any] = {"round": self.round}
        if self.loop is None:
            return meta, {}
        meta |= {
            "loop": self.loop.counters(),
            "estimate": self.estimate,
            "spread": self.spread,
            "calls": self.calls,
            "cached": self.cached,
        }
        arrays = {f"cuts_{name}": array for name, array in self.loop.to_arrays().items()}
        arrays |= {"w": self.loop.w, "average": self.loop.average, "gaps": self.loop.gaps}
        if self.metric is not None:
            arrays["turn"] = self.metric.turn
        return meta, arrays | {"y": self.y, "own": self.own, "z": self.z}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from :meth:`state`.

        Parameters
        ----------
        meta, arrays : dict
        """
        self.round = int(meta["round"])
        if not arrays:
            self.loop = None
            return
        self.estimate, self.spread = meta["estimate"], meta["spread"]
        self.calls, self.cached = meta["calls"], meta["cached"]
        turn = arrays.get("turn")
        if turn is None:
            self.metric = None
        elif self.metric is None or not np.array_equal(turn, self.metric.turn):
            self.metric = SpectralMetric(self.problem.space.layout, turn)
        self.loop = self._new_loop(meta["loop"]["alpha"])
        cuts = {k.removeprefix("cuts_"): v for k, v in arrays.items() if k.startswith("cuts_")}
        self.loop.restore(meta["loop"], cuts, arrays["w"], arrays["average"], arrays["gaps"])
        self.y, self.own, self.z = (arrays[k].copy() for k in ("y", "own", "z"))
