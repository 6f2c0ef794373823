"""Quick learners without an objective: averaged perceptron, passive-aggressive steps, AROW."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structure.losses import ClassWeights
from ..utils.params import parameters
from ._online import OnlineLoop
from .base import Solver
from .problem import Problem
from .run import RestartedRun, Start, checked_weights, pieces, rng_state, set_rng_state


class Online(Solver):
    """Base of the learners that step on one example after the other and minimise no objective.

    There is no certificate: records have no ``primal``, ``dual`` or ``gap``, and ``alpha`` has no
    effect. They have ``violations``, the number of examples on which the weights moved, and
    ``change``, that of the weights in the pass relative to their norm. Training ends, "settled",
    after a pass without violations, or with a change of at most ``tol``.
    """

    incremental = True
    free_coordinates = True
    minimises = False
    needs_weights = True
    uses_gram = False
    averaging: bool = True
    #: Whether steps depend on the loss.
    reads_loss: bool = True

    def rule(self) -> tuple[int, float]:
        """Return the number of the rule in the compiled loop, and its constant.

        Returns
        -------
        rule : int
        size : float
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement rule()")

    def start(self, start: Start) -> OnlineRun:
        """Begin training; see :meth:`Solver.start`."""
        for name in {"C", "r"} & self.get_params().keys():
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(
                    f"{type(self).__name__}: {name} is {value!r}, expected a number > 0"
                )
        self.check(start.problem)
        return OnlineRun(self, start)


@parameters
class Perceptron(Online):
    """The averaged structured perceptron (Collins 2002).

    A visit adds the parts of the true label and subtracts those of the best one.  The model is the
    average of the weights after each visit.  Neither loss nor surrogate matters, so that weights
    of classes and of nodes are refused, and surrogates other than the default: the model gives no
    probabilities.  Weights of examples scale their steps.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X, y = [[-3.0], [-2.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = StructuredSVM("multiclass", solver="perceptron").fit(X, y)
    >>> model.predict(X).tolist(), model.stop_reason_, model.history_[-1]["violations"]
    ([0, 0, 1, 1], 'settled', 0)
    """

    name = "perceptron"
    reads_loss = False

    def rule(self) -> tuple[int, float]:
        """Return the rule of the compiled loop; see :meth:`Online.rule`."""
        return 0, 1.0


@parameters
class PassiveAggressive(Online):
    """Passive-aggressive steps (Crammer et al. 2006).

    A visit takes the surrogate's cut, for the margin that of the most violated label, and moves the
    weights as little as makes its value zero.

    Parameters
    ----------
    C : float, default=1.0
        Largest step (PA-I), times the weight of an example relative to the mean.
    squared : bool, default=False
        PA-II: squared slacks, which damp steps instead of bounding them.
    averaging : bool, default=True
        The model is the average of the weights after each visit, else the last ones.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = StructuredSVM("multiclass", solver="passive-aggressive").fit(X, y)
    >>> model.predict(X).tolist()
    [0, 0, 1, 1]
    """

    name = "passive-aggressive"

    C: float = 1.0
    squared: bool = False
    averaging: bool = True

    def rule(self) -> tuple[int, float]:
        """Return the rule of the compiled loop; see :meth:`Online.rule`."""
        return (2 if self.squared else 1), float(self.C)


@parameters
class AROW(Online):
    """Adaptive regularisation of weights (Crammer et al. 2009), with diagonal variances.

    As :class:`PassiveAggressive`, but each weight has a variance, which shrinks with every step on
    it: frequent features settle, rare ones still move far.  The model has the last weights.

    Parameters
    ----------
    r : float, default=100.0
        How little a violation counts: larger values make smaller steps, and variances shrink later.
        An example's own is r divided by its weight relative to the mean.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = StructuredSVM("multiclass", solver="arow").fit(X, y)
    >>> model.predict(X).tolist()
    [0, 0, 1, 1]
    """

    name = "arow"
    # Variances belong to columns: training may not turn these.
    squared_norm = False
    averaging = False

    r: float = 100.0

    def rule(self) -> tuple[int, float]:
        """Return the rule of the compiled loop; see :meth:`Online.rule`."""
        return 3, float(self.r)


class OnlineRun(RestartedRun):
    """One training by :class:`Online`.

    Parameters
    ----------
    solver : Online
    start : Start
    """

    def __init__(self, solver: Online, start: Start):
        self.solver, self.given = solver, start
        self.loop = OnlineLoop(start.problem.dim, *solver.rule())
        if start.w is not None:
            self.loop.w[:] = start.w
        self.move_to(start.problem)

    def move_to(self, problem: Problem) -> None:
        """Continue on other examples with the same weights.

        Parameters
        ----------
        problem : Problem
            A problem of the same space.

        Raises
        ------
        ValueError
            If the problem has another number of weights, or a loss that the solver does not read.
        """
        if not self.solver.reads_loss:
            _refuse_weights(self.solver, problem)
        self.loop.bind(problem)
        self.given.problem = problem

    def step(self) -> dict[str, Any]:
        """Visit every example once, in random order."""
        before, given = self.weights(), self.given
        violations = calls = 0
        for some in pieces(given.rng.permutation(given.problem.n)):
            moved, used = self.loop.run(some)
            violations, calls = violations + moved, calls + used
        w = self.weights()
        change = float(np.linalg.norm(w - before) / max(np.linalg.norm(w), 1e-300))
        record = self.certify() | {"oracle_calls": calls, "violations": violations}
        if not violations or change <= given.tol:
            record["settled"] = True
        return record | {"change": change}

    def certify(self) -> dict[str, Any]:
        """Return a record without a certificate."""
        nothing = {"primal": None, "dual": None, "gap": None, "certified": False}
        return nothing | {"evaluated": True, "oracle_calls": 0}

    def weights(self) -> np.ndarray:
        """Return a copy of the model's weights."""
        return self.loop.averaged() if self.solver.averaging else self.loop.w.copy()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        return {"rng": rng_state(self.given.rng), "t": int(self.loop.t)}, self.loop.state()

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        own = self.loop.state()
        for array, restored in zip(own.values(), checked_weights(self, arrays, own)):
            array[:] = restored
        self.loop.t = meta["t"]
        set_rng_state(self.given.rng, meta["rng"])


def _refuse_weights(solver: Online, problem: Problem) -> None:
    """Raise ValueError for weights of classes or nodes, part of the loss, and for a surrogate."""
    culprit = ""
    if "node_weights" in problem.examples.topology:
        culprit = "y holds WeightedLabels"
    elif (
        isinstance(problem.given_loss, ClassWeights)
        and problem.given_loss is not problem.space.margin_loss
    ):
        culprit = "class_weight or loss=ClassWeights(...) weighs errors on nodes"
    elif problem.surrogate_name != "margin":
        culprit = f"surrogate is {problem.surrogate_name!r}"
    if culprit:
        raise ValueError(
            f"{culprit}, but solver {solver.name!r} depends on neither loss nor surrogate, "
            "expected the default; use 'passive-aggressive' or 'arow', or sample_weight"
        )
