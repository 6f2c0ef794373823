"""What a solver is: parameters, and a run that makes passes and knows its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..utils.params import Params
from .problem import Problem


@dataclass
class Start:
    """What a run starts from.

    Parameters
    ----------
    problem : Problem
    alpha : float
        Regularisation constant.
    rng : numpy.random.Generator
        All randomness of the run.
    n_jobs : int
    w : ndarray of shape (dim,), optional
        Weights to start from, where the solver can use them.
    tol : float
        Relative gap at which the driver will stop; a run may certify when it comes near.
    """

    problem: Problem
    alpha: float
    rng: np.random.Generator
    n_jobs: int = 1
    w: np.ndarray | None = None
    tol: float = 1e-3


class Run:
    """State of one optimisation; the driver calls :meth:`step` once per pass.

    ``step`` returns a dict with ``primal`` (of what :meth:`weights` returns), ``dual``, ``gap``
    (absolute; None where the theory gives none), ``certified`` (False for an estimate made
    while w moved) and ``oracle_calls``; a solver may add keys of its own.

    Attributes
    ----------
    given : Start
        What the run was started from; its problem is that of the present examples.
    """

    given: Start

    def step(self) -> dict[str, Any]:
        """Make one pass over the data."""
        raise NotImplementedError

    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap at fixed weights."""
        raise NotImplementedError

    def weights(self) -> np.ndarray:
        """Return the best weights so far (a copy)."""
        raise NotImplementedError

    def memory(self) -> dict[str, int]:
        """Return the bytes held, by purpose; empty where a run does not keep count."""
        return {}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs: JSON-able values, and arrays."""
        raise NotImplementedError

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from what :meth:`state` returned, bit for bit."""
        raise NotImplementedError


class Solver(Params):
    """Parameters of an algorithm; :meth:`start` makes a run of it."""

    name = "solver"
    #: Can it leave coordinates unpenalised?
    free_coordinates = False
    #: Can it take steps on examples that it will not see again (``partial_fit``)?
    incremental = False
    #: Does it need cuts that lie below the surrogate everywhere, or even a dual?
    needs_convex = False
    needs_dual = False
    #: Does it move weights of features, which a kernel model does not have?
    needs_weights = False
    #: Do its steps read the Gram matrices of the examples?
    uses_gram = True

    def start(self, start: Start) -> Run:
        """Begin an optimisation."""
        raise NotImplementedError(f"{type(self).__name__} does not implement start()")

    def check_kernel(self) -> None:
        """Refuse, in one sentence, to train a kernel model where this solver cannot."""
        if self.needs_weights:
            raise ValueError(
                f"solver {self.name!r} moves weights of features, which a kernel model does not "
                "have; use solver='bcfw', or kernel=None on explicit features (Nystroem)"
            )

    def check(self, problem: Problem) -> None:
        """Refuse, in one sentence, a problem that this solver cannot take."""
        surrogate = problem.surrogate
        if not problem.potentials.has_weights:
            self.check_kernel()
        if self.needs_dual and not surrogate.affine:
            others = "'sgd' or 'cutting-plane'" if surrogate.convex else "'sgd'"
            raise ValueError(
                f"solver {self.name!r} needs a surrogate that is affine in the margin, which "
                f"{problem.surrogate_name!r} is not; use solver={others}"
            )
        if self.needs_convex and not surrogate.convex:
            raise ValueError(
                f"solver {self.name!r} needs a surrogate that is convex in the margin, which "
                f"{problem.surrogate_name!r} is not; use solver='sgd'"
            )
        if problem.penalty is not None and not self.free_coordinates:
            raise ValueError(
                f"solver {self.name!r} cannot leave the intercept unpenalised; use "
                "solver='cutting-plane' or 'sgd', or penalize_intercept=True"
            )


def relative_gap(record: dict[str, Any]) -> float | None:
    """Return gap / primal of a record, None where there is no gap."""
    gap, primal = record.get("gap"), record.get("primal")
    if gap is None or primal is None:
        return None
    return gap / max(abs(primal), 1e-300)


def contradicts(record: dict[str, Any]) -> bool:
    """Tell whether a certified dual objective lies above the primal one by more than rounding.

    Then an oracle does not maximise, or a surrogate, loss or parts do not belong together.
    """
    gap, primal = record.get("gap"), record.get("primal")
    if not record.get("certified") or gap is None or primal is None:
        return False
    return gap < -1e-3 * max(abs(primal), abs(primal - gap))


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the generator's state as JSON-able values."""
    return dict(rng.bit_generator.state)


def set_rng_state(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Put a generator into a state that :func:`rng_state` returned."""
    rng.bit_generator.state = state
