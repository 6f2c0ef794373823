"""The loop around a run: passes, time, progress, callbacks, early stopping, checkpoints, Ctrl-C."""

from __future__ import annotations

import logging
import math
import reprlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..lp.base import GaveUp
from ..structure.used_columns import widened
from ..utils.progress import Progress
from .checkpoint import Checkpoint, Content, check_records, check_state
from .run import Run, record_of, relative_gap
from .watch import Watch

logger = logging.getLogger("structsolve.solvers")

# Share of the last gap that relaxations may miss of the objective.
ALLOWED = 0.1


@dataclass
class Outcome:
    """Weights, history, and why a run ended.

    Parameters
    ----------
    w : ndarray of shape (dim,)
    history : list of dict
        The record of each pass.
    reason : {"converged", "settled", "contradicted", "failed", "max_iter", "early_stopping", \
        "interrupted", "callback"}
    """

    w: np.ndarray
    history: list[dict[str, Any]]
    reason: str


@dataclass
class Validation:
    """A validation score of each certified pass, for early stopping.

    Parameters
    ----------
    score : callable
        From weights to their score; larger is better.
    patience : int
        Stop after this many certified passes without improvement, and return the weights of the
        best score; 0 never stops, and returns those of the last pass.
    """

    score: Callable[[np.ndarray], float]
    patience: int = 0


def drive(
    run: Run,
    max_iter: int,
    tol: float,
    *,
    verbose: int = 0,
    description: str = "fit",
    callbacks: list[Callable[[dict[str, Any]], Any]] | None = None,
    validation: Validation | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    fingerprint: str = "",
) -> Outcome:
    """Make passes until the relative gap is below ``tol``, or the run ends otherwise.

    Parameters
    ----------
    run : Run
    max_iter : int
        Maximum passes, including those of a resumed checkpoint.
    tol : float
        Stop when ``gap <= tol * primal`` is certified.
    verbose : int
        0: silent; more: a line of progress, or one per pass, with the time that is left by the
        course of the gap.
    description : str
        Prefix of the progress line.
    callbacks : list of callable
        Each gets the record of a pass, with ``weights`` (a function that returns a copy of the
        best weights); returning True ends training.
    validation : Validation, optional
        Score the weights of each certified pass; optionally stop when the score no longer improves.
    checkpoint : path or Checkpoint, optional
        Resume from this file if it exists; write it during training. A failed write does not end
        training: a warning and ``checkpoint_error`` in the records report it.
    fingerprint : str
        Identifies problem and settings; a checkpoint with a different fingerprint is refused.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        If the checkpoint is damaged, or belongs to other data or settings; it names the file.
    TypeError
        If ``callbacks`` is not a list of functions.
    """
    if callbacks is not None and not (
        isinstance(callbacks, (list, tuple)) and all(map(callable, callbacks))
    ):
        raise TypeError(f"callbacks is {callbacks!r}, expected a list of functions")
    file = checkpoint
    if file is not None and not isinstance(file, Checkpoint):
        file = Checkpoint(file, fingerprint)
    course = _Course(run, max_iter, tol, validation, file)
    history = course.history
    with Progress(verbose, max_iter, description, len(history), tol) as progress:
        try:
            while course.continues:
                record = course.make_pass()
                if record is None:
                    break
                progress.update(record)
                if callbacks:
                    with progress.aside():
                        answers = [c({**record, "weights": course.weights}) for c in callbacks]
                    if any(answer is True for answer in answers):
                        course.reason = "callback"
                course.save(record)
        except KeyboardInterrupt:
            course.reason = "interrupted"
            if history or run.weights().any():
                logger.warning("interrupted after %d passes: keeping the best model", len(history))
    if file is not None:
        file.close()
    return course.outcome()


class _Course:
    """The passes of a run, from a checkpoint on, and why they end."""

    def __init__(
        self,
        run: Run,
        max_iter: int,
        tol: float,
        validation: Validation | None,
        file: Checkpoint | None,
    ):
        self.run, self.max_iter, self.tol = run, max_iter, tol
        self.validation, self.file = validation, file
        self.history: list[dict[str, Any]] = []
        self.best_score, self.stale = -np.inf, 0
        self.best_w: np.ndarray | None = None
        content = None if file is None else file.read()
        # Blamed for errors of a pass.
        self.resumed = None if content is None else file
        if file is not None and content is not None:
            with file.blame():
                self._resume(*content)
        last = self.history[-1] if self.history else {}
        ended = _ended(self.history, tol) or "max_iter"
        self.reason = "early_stopping" if self.stalled else ended
        # Whether the last record is that of the run's weights.
        self.evaluated = last.get("certified")
        self.watch = Watch(run, last.get("violation"))

    # -- checkpoints ----------------------------------------------------------------------------

    def _resume(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        run = self.run
        self.history[:], self.stale = check_records(meta["history"]), int(meta["stale"])
        self.best_score = float(meta["best_score"])
        self.best_w = arrays.pop("best_validation_w", None)
        dim = run.weights().shape
        if self.best_w is not None and (
            self.best_w.shape != dim or self.best_w.dtype != np.float64
        ):
            raise ValueError(f"best_validation_w has shape {self.best_w.shape}, expected {dim}")
        names = {k: f"surrogate_{k}" for k in self._memory()}
        memory = {k: arrays.pop(name) for k, name in names.items() if name in arrays}
        self.surrogate.remember(memory)
        check_state((meta["run"], arrays), _state_of(run))
        run.restore(meta["run"], arrays)

    def _state(self) -> Content:
        meta, arrays = _state_of(self.run)
        arrays = arrays | {f"surrogate_{k}": v for k, v in self._memory().items()}
        if self.best_w is not None:
            arrays["best_validation_w"] = self.best_w
        outer = {"history": self.history, "run": meta, "stale": self.stale}
        return outer | {"best_score": self.best_score}, arrays

    def _memory(self) -> dict[str, np.ndarray]:
        return self.surrogate.memory_of_examples()

    def save(self, record: dict[str, Any]) -> None:
        """Write the checkpoint if it is due or the passes have ended."""
        if self.file is not None and (not self.continues or self.file.due()):
            self.file.write(self._state)
            if self.file.error is not None:
                record["checkpoint_error"] = self.file.error

    # -- passes ---------------------------------------------------------------------------------

    @property
    def surrogate(self) -> Any:
        return self.run.given.problem.surrogate

    @property
    def continues(self) -> bool:
        return len(self.history) < self.max_iter and self.reason == "max_iter"

    @property
    def stalled(self) -> bool:
        """Whether the validation score no longer improves."""
        patience = 0 if self.validation is None else self.validation.patience
        return bool(patience) and self.stale >= patience

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights of all columns."""
        return widened(self.run.given.problem.space, self.run.weights())

    def make_pass(self) -> dict[str, Any] | None:
        """Make a pass and return its record; None if a linear program gave up."""
        begun, counts = time.perf_counter(), self.surrogate.counts()
        _allow(self.run, self.history)
        try:
            record = record_of(self.run, _blamed(self.run.step, self.resumed))
        except GaveUp as error:
            if not self.history:
                raise
            self.history[-1]["failed"], self.reason = str(error), "failed"
            self.evaluated = False
            return None
        last = len(self.history) + 1 == self.max_iter
        if last and not record.get("certified"):
            calls = record["oracle_calls"]
            record.update(_blamed(self.run.certify, self.resumed))
            record["oracle_calls"] += calls
        record = {"pass": len(self.history) + 1, **record}
        record["seconds"] = time.perf_counter() - begun
        if counts is not None:
            searches, calls = self.surrogate.counts()
            record["calls_per_search"] = (calls - counts[1]) / max(searches - counts[0], 1)
        self.evaluated = record.pop("evaluated", record.get("certified"))
        told = [record.get(name) for name in ("primal", "dual", "gap")]
        if not all(value is None or math.isfinite(value) for value in told):
            record["certified"] = self.evaluated = False
            record["failed"] = (
                "the objective is not finite: features, losses or alpha are too large or too "
                "small for floating-point numbers"
            )
        self.watch.judge(record, self.tol, last)
        self.history.append(record)
        self.reason = _ended(self.history, self.tol) or self.reason
        if self.validation is not None and self.evaluated:
            self._validate(self.validation, record)
        return record

    def _validate(self, validation: Validation, record: dict[str, Any]) -> None:
        w = self.run.weights()
        record["validation_score"] = validation.score(w)
        if record["validation_score"] > self.best_score:
            self.best_score, self.best_w, self.stale = record["validation_score"], w, 0
            return
        self.stale += 1
        if self.stalled:
            self.reason = "early_stopping"

    def outcome(self) -> Outcome:
        """Return the weights to keep; the last record becomes theirs."""
        run, w = self.run, _weights_of(self.run)
        if self.validation is not None and self.validation.patience and self.best_w is not None:
            self.evaluated = self.evaluated and np.array_equal(w, self.best_w)
            w = self.best_w
        self.surrogate.allow(0.0)
        if not np.isfinite(w).all():
            raise ValueError(
                f"training led to weights that are not finite in pass {len(self.history)}; scale "
                "the features or the losses to values around 1, or use a larger alpha"
            )
        last = self.history[-1] if self.history else {}
        if self.history and (self.reason == "interrupted" or not self.evaluated):
            _evaluate(run, w, last)
        if last.get("dual") is not None and not self.surrogate.exact:
            last["dual_of"] = "relaxation"  # which may lie above the optimum over labels
        if self.reason == "max_iter" and last.get("certified") and not self.surrogate.exact:
            last["missed"] = run.given.problem.missed(w, run.given.n_jobs)
        return Outcome(w, self.history, self.reason)


def _evaluate(run: Run, w: np.ndarray, record: dict[str, Any]) -> None:
    """Make the last record that of the returned weights."""
    problem, given = run.given.problem, run.given
    if run.streams or record["primal"] is None or not np.isfinite(record["primal"]):
        return  # earlier batches are gone; there is no objective; overflow is already reported
    primal, calls = getattr(run, "best_primal", np.inf), 0
    try:
        if not (np.isfinite(primal) and np.array_equal(w, run.best_w)):
            primal, calls = problem.primal(w, given.alpha, given.n_jobs)
    except (KeyboardInterrupt, GaveUp):  # a second interrupt: the record stays an estimate
        record["certified"] = False
        return
    dual = record["dual"]
    record["primal"], record["gap"] = primal, None if dual is None else primal - dual
    record["oracle_calls"] += calls
    record["certified"] = dual is not None and record.get("violation") is None


def _allow(run: Run, history: list[dict[str, Any]]) -> None:
    """Let relaxations miss a share of the last pass's gap, which checkpoints store too."""
    gap = history[-1].get("gap") if history else None
    run.given.problem.surrogate.allow(ALLOWED * max(gap, 0.0) if gap is not None else 0.0)


def _blamed(step: Callable[[], dict[str, Any]], file: Checkpoint | None) -> dict[str, Any]:
    """Make a pass; if it fails after a resume, say that the checkpoint may be damaged."""
    try:
        return step()
    except (ValueError, ArithmeticError) as error:
        if file is None or isinstance(error, GaveUp):
            raise
        raise ValueError(
            f"{error} (training continued from checkpoint {file.path!r}; if it is damaged, delete "
            "it to start afresh)"
        ) from error


def _weights_of(run: Run) -> np.ndarray:
    w, dim = np.asarray(run.weights()), run.given.problem.dim
    if w.dtype != np.float64 or w.shape != (dim,):
        raise TypeError(
            f"{type(run).__name__}.weights() returned {w.dtype} of shape {w.shape}, expected "
            f"float64 ({dim},)"
        )
    return w


def _state_of(run: Run) -> Content:
    state = run.state()
    pair = isinstance(state, tuple) and len(state) == 2
    if not (pair and all(isinstance(part, dict) for part in state)):
        raise TypeError(
            f"{type(run).__name__}.state() returned {reprlib.repr(state)}, expected a pair of "
            "dicts: what JSON can hold, and arrays"
        )
    return state


def _ended(history: list[dict[str, Any]], tol: float) -> str | None:
    """Return why a run ends after these passes; None if it continues."""
    if not history:
        return None
    last = history[-1]
    if last.get("failed") is not None:
        return "failed"
    gap, told = relative_gap(last), last.get("violation") is not None
    if gap is not None and gap <= tol and (told or last.get("certified")):
        return "contradicted" if told else "converged"
    if last.get("settled"):
        return "contradicted" if told else "settled"
    return None
