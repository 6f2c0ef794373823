"""Consensus ADMM over shards, each of which runs block-coordinate Frank-Wolfe on its examples.

Here the shards are parts of one problem, and threads share them; ``structsolve.dask`` has shards on
many machines.
"""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np

from ..utils.params import parameters
from .base import Solver
from .consensus_run import ConsensusRun
from .metric import check_features
from .problem import Problem
from .relay import RelayRun
from .run import Start


@parameters
class ConsensusADMM(Solver):
    """Consensus ADMM over shards (Boyd et al. 2011, section 7), with a certified gap.

    Every shard k has its own weights, which a penalty pulls towards the consensus z.  A round sends
    z out; the shard minimises ``rho/2 |w - z + y_k|^2 + sum_i u_i H_i(w)`` over its examples by one
    pass of block-coordinate steps, which start from its dual variables, and returns
    ``own_k = (1/rho) sum_i u_i Phi_i' p_i``: one vector down and one up.  As
    ``w_k = z - y_k + own_k``, the sums of ``own_k`` and of ``y_k`` are all that z needs,

        ``z+ = rho / (alpha + K rho) sum_k (w_k + y_k)``.

    Dual variables of the shards are feasible for the problem of all examples: the dual at
    ``sum_k rho own_k / alpha`` is a bound after every round, and one pass at z gives the primal.

    Shards agree on the weights of features that several shards have, each averaged over these
    (general form, section 7.2).  Where these are not most of all features, as with words, every
    shard minimises exactly over the weights of features that it alone has, and no vector of
    another holds them.

    In round 0 each shard trains separately for five passes (``rho = alpha / K``); z is then
    the mean of their models.

    In one process, threads run the shards: with ``n_jobs=4`` four shards run at a time and
    synchronise once a round.

    Parameters
    ----------
    n_shards : int, default=4
        Number of random parts of the examples in one process, at least the number of threads.  The
        result depends on it within ``tol``, but not on ``n_jobs``.  On a Dask cluster the
        estimator's ``n_shards`` is used.
    penalty : float, optional
        rho in units of ``alpha / K``.  By default the geometric mean of the curvatures of
        regulariser and loss, ``rho = sqrt(alpha L / K)``, with L a fixed share of ``|g|^2 / b`` of
        the mean surrogate's cut at w = 0, which scales as w does; at least 12 and the number of
        shards; from round 16 on changed threefold where the shards are further from the consensus
        than it moves, or much nearer (residual balancing, section 3.4.1).
    passes : int, default=1
        Passes with oracle calls per shard and round.
    certify_every : int, default=10
        Maximum number of rounds between two certificates: the next one is in the round in which
        the gap, at its last rate, which slows down, would reach the tolerance.
    metric : {"identity", "spectral", "auto"}, default="identity"
        Coordinates in which shards agree. "spectral" turns node features to the eigenvectors of
        their covariance and scales them (``structsolve.solvers.metric``):
        a fifth to a quarter fewer rounds where alpha is small, of dense rows, which take longer
        where features are sparse; at most 1024 features. "auto" is "spectral" where alpha is small
        and rows are not much sparser, which pays where rounds are messages between machines.
    finish : float, optional
        Relative gap at which rounds end, after 50 of them at the latest, in one process:
        :class:`BCFW` goes on in one thread from the dual variables of all shards.  By default
        never.  It pays for small ``tol``: the last rounds gain little (figures in
        ``docs/solvers``).

    Notes
    -----
    Rounds grow with the number of shards and, more so, where alpha is small.  With words as
    features one thread of :class:`BCFW` takes about as long as two threads (figures in
    ``docs/solvers``).  The intercept must be penalised, and weights cannot be constrained: for
    those, use :class:`CuttingPlane`.

    Examples
    --------
    >>> from structsolve import StructuredSVM, make_strips
    >>> from structsolve.solvers import ConsensusADMM
    >>> train, _ = make_strips(200, 10)
    >>> model = StructuredSVM("chain", solver=ConsensusADMM(n_shards=2), alpha=0.1, n_jobs=2)
    >>> model.fit(train.pixels, train.labels).stop_reason_
    'converged'
    """

    name = "admm"
    needs_dual = True
    needs_weights = True

    n_shards: int = 4
    penalty: float | None = None
    _: KW_ONLY
    passes: int = 1
    certify_every: int = 10
    metric: str = "identity"
    finish: float | None = None

    def start(self, start: Start) -> ConsensusRun | RelayRun:
        """Begin an optimisation over shards in this process; see :meth:`Solver.start`."""
        self.check(start.problem)
        return ConsensusRun(self, start) if self.finish is None else RelayRun(self, start)

    def check(self, problem: Problem) -> None:
        """Raise ValueError for wrong parameters and a problem that this solver cannot take."""
        for name in ("n_shards", "passes", "certify_every"):
            self.check_integer(name, 1)
        if self.penalty is not None and not 0 < self.penalty < np.inf:
            raise ValueError(f"ConsensusADMM: penalty is {self.penalty!r}, expected > 0")
        self.check_choice("metric", ("identity", "spectral", "auto"))
        if self.finish is not None:
            if not 0 < self.finish < np.inf:
                raise ValueError(f"ConsensusADMM: finish is {self.finish!r}, expected > 0")
            if self.metric != "identity":
                raise ValueError(
                    f"ConsensusADMM: metric is {self.metric!r}, expected 'identity' with finish: "
                    "BCFW goes on in the weights of the problem"
                )
        super().check(problem)
        if self.metric == "spectral":
            check_features(problem)
