"""Shards: parts of the examples with their dual variables, and their answers in a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..utils.arrays import part_of
from ._bcfw import BlockLoop
from .bcfw_run import SMALL_GAIN
from .held import Common, blocks
from .metric import SpectralMetric
from .places import Place, places
from .problem import Problem
from .run import pieces

# Rounds between recomputations of a shard's share of w from its dual variables.
RESYNCHRONISE = 10
# Over-relaxation of the update of y.
RELAX = 1.9
MAX_AGE = 10
ANY_AGE = np.iinfo(np.int32).max
# Answers per group in the tree of sums.
GROUP = 4
# Cached passes continue while a visit gains this share of an oracle visit's dual increase.
PAYS = 0.5
# What a checkpoint holds as it is.
KEPT = ("estimate", "spread", "calls", "cached")


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
        Maps a list of at most 4 items to their sum.

    Returns
    -------
    object

    Examples
    --------
    >>> from structsolve.solvers.shard import grouped
    >>> grouped([str(i) for i in range(6)], lambda some: f"({'+'.join(some)})")
    '((0+1+2+3)+(4+5))'
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
    fresh : bool
        Reset y to the value for the shard's dual variables.
    metric : SpectralMetric, optional
        Coordinates of z and of all later vectors; given in round 0.
    common : Common, optional
        The weights that z and all later vectors hold, if they are not all; given in round 0.
    alpha : float
        Regularisation constant, for weights that one shard alone has.
    keep : bool
        Keep these as they are before this round: no others gave a lower objective.
    """

    round: int
    z: np.ndarray
    rho: float
    passes: int
    fresh: bool
    metric: SpectralMetric | None = None
    common: Common | None = None
    alpha: float = 1.0
    keep: bool = False

    @property
    def scale(self) -> float:
        """The factor of features that one shard alone has: rho then is alpha for their weights."""
        return float(np.float32(np.sqrt(self.rho / self.alpha)))


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
    >>> answer = shard.step(Order(0, np.zeros(problem.dim), 1.0, 1, False))
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
        self.place: Place | None = None
        self.potentials = problem.potentials
        self.scale = self.factor = 1.0
        self.y = self.own = self.z = np.zeros(0)
        # Of the weights that no other shard has, and those that were kept.
        self.square, self.kept, self.kept_round = 0.0, np.zeros(0), -1
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
            Sums: ``own``, ``sum_i u_i b_i``, the gaps met, ``|w - z|^2``, and the square of the
            weights that the shard alone has.
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
        own = self.own if self.place is None else self.place.gathered(self.own)
        terms = own, self.loop.b_total, self.estimate, self.spread, self.square
        return Answer(terms, [told])

    def _step(self, order: Order) -> None:
        # Updates are in place and in blocks: vectors may be huge, and dominate the cost of a round.
        if self.round == 0:
            self.metric = order.metric
            if order.common is not None and self.place is None:
                (self.place,) = places(self.problem, order.common, [self.picks])
        z, rho = order.z, order.rho
        z = z if self.place is None else self.place.chosen(z)
        if order.keep:
            self.kept, self.kept_round = self.alone(), order.round
        if self.loop is None:
            self.loop = self._new_loop(rho, order.scale)
            self.own, self.y = np.zeros_like(z), np.zeros_like(z)
        elif order.fresh:
            self._rescale(order)
            self._read(self.own)
            self.y[:] = self.own
        else:
            # y += RELAX w + (1 - RELAX) z - z+, where w = z - y + own.
            for some in blocks(len(z)):
                y = self.y[some]
                y *= 1 - RELAX
                y += RELAX * self.own[some]
                y += self.z[some]
                y -= z[some]
            if self.round % RESYNCHRONISE == 0:
                self.loop.resynchronise()
                self._read(self.own)
        self.z = z
        for part, where in self._pieces():
            np.subtract(z[where], self.y[where], out=part)
            part += self.own[where]
        rng = np.random.default_rng([self.seed, self.number, self.round])
        self.calls = self.cached = 0
        for _ in range(order.passes):
            self._pass(rng)
        self.spread = 0.0
        for part, where in self._pieces():
            own = self.own[where]
            np.subtract(part, z[where], out=own)
            self.spread += float(own @ own)
            own += self.y[where]
        if self.place is not None:
            # As the dual variables give them: rho / alpha of the loop's, in units of the scale.
            alone = self.place.alone(self.loop.w)
            self.factor = order.rho / (order.alpha * self.scale)
            self.square = self.factor**2 * float(alone @ alone)

    def _pieces(self) -> list[tuple[np.ndarray, slice]]:
        """Return the parts of the loop's w on which shards agree, and their places in z."""
        w = self.loop.w
        whole = [(w, slice(0, len(w)))] if self.place is None else self.place.pieces(w)
        return [
            (part[some], slice(where.start + some.start, where.start + some.stop))
            for part, where in whole
            for some in blocks(len(part))
        ]

    def _read(self, into: np.ndarray) -> None:
        for part, where in self._pieces():
            into[where] = part

    def alone(self) -> np.ndarray:
        """Return the weights that the shard alone has, after its last round.

        Returns
        -------
        ndarray
            A new array; empty if shards hold all weights.
        """
        if self.place is None or self.loop is None:
            return np.zeros(0)
        return self.factor * self.place.alone(self.loop.w)

    def known_values(self, w: np.ndarray) -> np.ndarray:
        """Return the lower bounds of every H_i at w from the kept cuts.

        Parameters
        ----------
        w : ndarray of shape (dim,)
            Weights of the problem.

        Returns
        -------
        ndarray of shape (n,)
        """
        if self.metric is not None:
            w = self.metric.turned(w)
        return self.loop.known_values(w if self.place is None else self.place.local(w, self.scale))

    def _new_loop(self, rho: float, scale: float) -> BlockLoop:
        p = self.problem
        if self.place is not None:
            self.scale, self.potentials = scale, self.place.potentials(scale)
        elif self.metric is not None:
            self.potentials = self.metric.potentials(p)
        return BlockLoop(self.potentials, p.surrogate, p.labels, p.weights, rho, self.max_cuts)

    def _rescale(self, order: Order) -> None:
        """Keep the dual variables, and change rho."""
        old, before, scale = self.loop, self.scale, order.scale
        if self.place is None or scale == before:
            old.rescale(order.rho)
            return
        arrays = old.to_arrays()
        if old.short:
            # Cuts are kept by weights.
            alone = self.place.is_alone(arrays["index"])
            arrays["value"] = arrays["value"] * np.where(alone, scale / before, 1.0)
        self.loop = self._new_loop(order.rho, scale)
        counters = old.counters() | {"alpha": order.rho}
        self.loop.restore(counters, arrays, old.w, old.average, old.gaps)
        self.loop.resynchronise()

    def _dual(self) -> float:
        w = self.loop.w
        return float(self.loop.b_total - 0.5 * self.loop.alpha * (w @ w))

    def _pass(self, rng: np.random.Generator) -> None:
        """Make one pass that calls the oracle, then cached passes while they pay."""
        n = len(self.picks)
        before = self._dual()
        self.estimate, calls = self._run(rng.permutation(self.picks), 1, MAX_AGE, 0.0)
        self.calls += calls
        # Cuts that make room for others lower the dual, which is no rise of a step.
        gain, small = (self._dual() - before) / n, SMALL_GAIN * self.estimate
        for _ in range(200):
            order = rng.permutation(np.flatnonzero(self.loop.moved.view(bool)))
            self._run(order, 0, ANY_AGE, small)
            self.cached += 1
            if self.loop.rise <= PAYS * gain * len(order):
                break

    def _run(
        self, order: np.ndarray, calls: int, max_age: int, min_gain: float
    ) -> tuple[float, int]:
        total, spent, self.loop.rise = 0.0, 0, 0.0
        for some in pieces(order):
            gap, used = self.loop.run(some, calls, max_age=max_age, min_gain=min_gain)
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
        meta |= {"loop": self.loop.counters(), **{name: getattr(self, name) for name in KEPT}}
        arrays = {f"cuts_{name}": array for name, array in self.loop.to_arrays().items()}
        arrays |= {"w": self.loop.w, "average": self.loop.average, "gaps": self.loop.gaps}
        if self.metric is not None:
            arrays["turn"] = self.metric.turn
        if self.place is not None:
            meta |= {"scale": self.scale, "factor": self.factor, "square": self.square}
            meta["kept_round"] = self.kept_round
            arrays |= self.place.common.arrays()
            arrays["kept"] = self.kept
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
        for name in KEPT:
            setattr(self, name, meta[name])
        turn = arrays.get("turn")
        if turn is None:
            self.metric = None
        elif self.metric is None or not np.array_equal(turn, self.metric.turn):
            self.metric = SpectralMetric(self.problem.space.layout, turn)
        if "features" in arrays and self.place is None:
            common = Common.of_arrays(self.problem.space.layout, arrays)
            (self.place,) = places(self.problem, common, [self.picks])
        if self.place is not None:
            self.kept = arrays["kept"].copy()
            self.factor, self.square = meta["factor"], meta["square"]
            self.kept_round = meta["kept_round"]
        self.loop = self._new_loop(meta["loop"]["alpha"], meta.get("scale", 1.0))
        vectors = arrays["w"], arrays["average"], arrays["gaps"]
        self.loop.restore(meta["loop"], part_of(arrays, "cuts_"), *vectors)
        self.y, self.own, self.z = (arrays[k].copy() for k in ("y", "own", "z"))
