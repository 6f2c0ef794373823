"""A shard: some of the examples, their dual variables, and what it answers in a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..estimators.fitting import fingerprint_of
from ..solvers._bcfw import BlockLoop
from ..solvers.bcfw import SMALL_GAIN
from ..solvers.passes import subgradient
from ..solvers.problem import Problem
from ..solvers.watch import probe
from ..solvers.weight_constraints import assemble

# Rounds between two computations of a shard's share of w from its dual variables.
RESYNCHRONISE = 10
MAX_AGE = 10
ANY_AGE = np.iinfo(np.int32).max


@dataclass
class Answer:
    """What shards answer: arrays that are added up, and small things that each says for itself.

    Parameters
    ----------
    sums : tuple of ndarray or float
    each : list of dict
        One per shard, in the order of their numbers.
    """

    sums: tuple[Any, ...] = ()
    each: list[dict[str, Any]] = field(default_factory=list)


def add(answers: list[Answer]) -> Answer:
    """Return the sum of answers, in their order: a sum of floats depends on it.

    Parameters
    ----------
    answers : list of Answer

    Returns
    -------
    Answer
        Sums are empty where one of them is, which a shard's are that lags behind.
    """
    each = [one for answer in answers for one in answer.each]
    if any(not answer.sums for answer in answers):
        return Answer((), each)
    sums = [np.array(term, dtype=np.float64) for term in answers[0].sums]
    for answer in answers[1:]:
        for total, term in zip(sums, answer.sums):
            total += term
    return Answer(tuple(sums), each)


@dataclass
class Order:
    """What all shards do in a round of :class:`~structsolve.dask.ConsensusADMM`.

    Parameters
    ----------
    round : int
        From 0.
    z : ndarray of shape (dim,)
        The consensus.
    rho : float
        Weight of ``|w - z + y|^2 / 2``.
    passes : int
        Passes over the shard that call the oracle.
    relax : float
        Over-relaxation with which y follows.
    fresh : bool
        Begin again with the y that belongs to the shard's dual variables.
    """

    round: int
    z: np.ndarray
    rho: float
    passes: int
    relax: float
    fresh: bool


class Shard:
    """Part of the examples of a training problem, and its block-coordinate loop.

    In a round of consensus ADMM the shard minimises ``rho/2 |w - z + y|^2 + sum_i u_i H_i(w)``
    over its own examples, a little, by the passes of :class:`~structsolve.solvers.BCFW`: its loop
    runs with ``alpha = rho`` and weights ``z - y + own``, where ``own = (1/rho) sum_i u_i Phi_i'
    p_i`` comes from the dual variables.  These are feasible for the whole problem's dual whatever
    z and y are, so a certificate needs nothing but the sum of all ``own``.

    It counts its rounds.  One that is asked for a later round than its next says so, and is told
    the rounds that it has missed; one that is asked again gives the same answer.

    Parameters
    ----------
    problem : Problem
        Of its examples alone.
    number : int
        Which shard it is.
    total : float
        Weight of the examples of all shards; the problem's are shares of it from now on.
    own_total : float
        Weight of its own examples.
    seed : int
        Of the orders of the passes.
    max_cuts : int
        Cuts kept per example.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.dask.shard import Order, Shard
    >>> space, examples = structsolve.get_structure("multiclass").make_space([[1.0], [2.0]], [0, 1])
    >>> shard = Shard(structsolve.Problem(space, examples), 0, total=4.0, own_total=2.0, seed=0)
    >>> answer = shard.step(Order(0, np.zeros(shard.problem.dim), 1.0, 1, 1.6, False))
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
        self._begin(problem, number, seed, max_cuts)

    def _begin(self, problem: Problem, number: int, seed: int, max_cuts: int) -> None:
        self.problem, self.number, self.seed, self.max_cuts = problem, number, seed, max_cuts
        self.round = 0
        self.loop: Any = None
        self.y = self.own = self.z = np.zeros(0)
        self.estimate, self.calls, self.cached = 0.0, 0, 0

    # -- rounds -----------------------------------------------------------------------------------

    def step(self, order: Order) -> Answer:
        """Make a round of consensus ADMM.

        Parameters
        ----------
        order : Order

        Returns
        -------
        Answer
            Sums: ``own``, ``sum_i u_i b_i``, the gaps met.
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
        return Answer((self.own, self.loop.b_total, self.estimate), [told])

    def replay(self, orders: list[Order], base: Any = None) -> int:
        """Make the rounds that this shard has missed; return its next one.

        Parameters
        ----------
        orders : list of Order
            Of all rounds since ``base``.
        base : tuple of dict, optional
            A :meth:`state` to begin from, where the shard is not as far itself.

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

    def _step(self, order: Order) -> None:
        z, rho = order.z, order.rho
        if self.loop is None:
            self.loop = self._new_loop(rho)
            self.own, self.y = np.zeros_like(z), np.zeros_like(z)
        elif order.fresh:
            self.loop.rescale(rho)
            self.own = self.loop.w.copy()
            self.y = self.own.copy()
        else:
            reached = self.z - self.y + self.own
            self.y = self.y + order.relax * reached + (1 - order.relax) * self.z - z
            if self.round % RESYNCHRONISE == 0:
                self.loop.resynchronise()
                self.own = self.loop.w.copy()
        self.z = z
        base = z - self.y
        self.loop.w[:] = base + self.own
        rng = np.random.default_rng([self.seed, self.number, self.round])
        self.calls = self.cached = 0
        for _ in range(order.passes):
            self._pass(rng)
        self.own = self.loop.w - base

    def _new_loop(self, rho: float) -> BlockLoop:
        p = self.problem
        return BlockLoop(p.potentials, p.surrogate, p.labels, p.weights, rho, self.max_cuts)

    def _dual(self) -> float:
        w = self.loop.w
        return float(self.loop.b_total - 0.5 * self.loop.alpha * (w @ w))

    def _pass(self, rng: np.random.Generator) -> None:
        """Make one pass that calls the oracle, and cheap ones for as long as they pay."""
        loop, n = self.loop, self.problem.n
        before = self._dual()
        self.estimate, calls = loop.run(rng.permutation(n), 1, 30, True, MAX_AGE, 0.1, 0.0, False)
        self.calls += calls
        dual = self._dual()
        gain, small = (dual - before) / n, SMALL_GAIN * self.estimate
        order = rng.permutation(n)
        for _ in range(200):
            loop.run(order, 0, 30, True, ANY_AGE, 0.1, small, False)
            self.cached += 1
            before, dual = dual, self._dual()
            if dual - before <= 0.5 * gain * len(order):
                break
            order = rng.permutation(np.flatnonzero(loop.moved.view(bool)))

    # -- answers at fixed weights -----------------------------------------------------------------

    def values(self, candidates: list[np.ndarray], n_jobs: int = 1) -> Answer:
        """Return the shard's share of the mean surrogate at some weights.

        Parameters
        ----------
        candidates : list of ndarray of shape (dim,)
        n_jobs : int

        Returns
        -------
        Answer
            Sums: one array, a number per candidate.
        """
        values, calls = np.zeros(len(candidates)), 0
        for j, w in enumerate(candidates):
            bounds, spent = self.problem.bounds(w, n_jobs)
            values[j] = self.problem.weights @ bounds
            calls += spent
        return Answer((values,), [self._told(calls)])

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
        """Refuse constraints on w that do not mean what they should on these examples.

        Parameters
        ----------
        constraints : list
            Of objects as :class:`~structsolve.solvers.CuttingPlane` takes them.

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
        """Return what solvers need to know of the examples beside their answers.

        Returns
        -------
        Answer
            Each: ``n``, ``nbytes``, ``affine``, ``convex``, ``exact``, ``surrogate``,
            ``violation``, ``fingerprint``.
        """
        p = self.problem
        fact = {
            **self._told(0),
            "n": p.n,
            "nbytes": self.nbytes,
            "affine": bool(p.surrogate.affine),
            "convex": bool(p.surrogate.convex),
            "exact": bool(p.surrogate.exact),
            "surrogate": p.surrogate_name,
            "fingerprint": fingerprint_of(p, {}),
        }
        if fact["violation"] is None:
            fault = probe(p)
            fact["violation"] = None if fault is None else f"shard {self.number}, {fault}"
        return Answer((), [fact])

    def _told(self, calls: int) -> dict[str, Any]:
        violation = self.problem.violation
        if violation is not None:
            violation = f"shard {self.number}, {violation}"
        return {"number": self.number, "oracle_calls": calls, "violation": violation}

    # -- memory, pickles, checkpoints -------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the packed examples, the dual variables and the weights."""
        duals = 0 if self.loop is None else self.loop.nbytes + 6 * self.loop.w.nbytes
        return int(self.problem.potentials.nbytes + duals)

    def __sizeof__(self) -> int:
        # What dask.sizeof reads.
        return object.__sizeof__(self) + self.nbytes

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what :meth:`restore` continues from, bit for bit.

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
            "calls": self.calls,
            "cached": self.cached,
        }
        arrays = {f"cuts_{name}": array for name, array in self.loop.to_arrays().items()}
        arrays |= {"w": self.loop.w, "average": self.loop.average, "gaps": self.loop.gaps}
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
        self.estimate = meta["estimate"]
        self.calls, self.cached = meta["calls"], meta["cached"]
        self.loop = self._new_loop(meta["loop"]["alpha"])
        cuts = {k.removeprefix("cuts_"): v for k, v in arrays.items() if k.startswith("cuts_")}
        self.loop.restore(meta["loop"], cuts, arrays["w"], arrays["average"], arrays["gaps"])
        self.y, self.own, self.z = (arrays[k].copy() for k in ("y", "own", "z"))

    def __reduce__(self) -> Any:
        made_of = self.problem, self.number, self.seed, self.max_cuts
        return _revived, (made_of, self.state())


def _revived(made_of: tuple[Any, ...], state: tuple[Any, Any]) -> Shard:
    """Return the shard that a pickle is of, in the same state."""
    shard = Shard.__new__(Shard)
    shard._begin(*made_of)
    shard.restore(*state)
    return shard
