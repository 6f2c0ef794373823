"""The loop around a run: passes, time, progress, callbacks, early stopping, checkpoints, Ctrl-C."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..lp.base import GaveUp
from ..structure.used_columns import widened
from ..utils.progress import Progress
from .base import Run, relative_gap
from .checkpoint import Checkpoint, check_records, check_state
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
    history: list[dict[str, Any]] = []
    best_score, best_w, stale = -np.inf, None, 0
    file = checkpoint
    if file is not None and not isinstance(file, Checkpoint):
        file = Checkpoint(file, fingerprint)
    content = None if file is None else file.read()
    if file is not None and content is not None:
        with file.blame():
            meta, arrays = content
            history, stale = check_records(meta["history"]), int(meta["stale"])
            best_score = float(meta["best_score"])
            best_w = arrays.pop("best_validation_w", None)
            dim = run.weights().shape
            if best_w is not None and (best_w.shape != dim or best_w.dtype != np.float64):
                raise ValueError(f"best_validation_w has shape {best_w.shape}, expected {dim}")
            run.given.problem.surrogate.remember(
                {
                    k: arrays.pop(f"surrogate_{k}")
                    for k in _memory(run)
                    if f"surrogate_{k}" in arrays
                }
            )
            check_state((meta["run"], arrays), run.state())
            run.restore(meta["run"], arrays)

    def state() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        meta, arrays = run.state()
        arrays = dict(arrays) | {f"surrogate_{k}": v for k, v in _memory(run).items()}
        if best_w is not None:
            arrays["best_validation_w"] = best_w
        outer = {"history": history, "run": meta, "stale": stale, "best_score": best_score}
        return outer, arrays

    def weights() -> np.ndarray:
        return widened(run.given.problem.space, run.weights())

    reason = _ended(history, tol) or "max_iter"
    evaluated = bool(history) and history[-1].get("certified")
    watch = Watch(run, history[-1].get("violation") if history else None)
    with Progress(verbose, max_iter, description, len(history), tol) as progress:
        try:
            while len(history) < max_iter and reason == "max_iter":
                begun = time.perf_counter()
                counts = run.given.problem.surrogate.counts()
                _allow(run, history)
                try:
                    record = _blamed(run.step, file if content is not None else None)
                except GaveUp as error:
                    if not history:
                        raise
                    history[-1]["failed"], reason, evaluated = str(error), "failed", False
                    break
                if len(history) + 1 == max_iter and not record.get("certified"):
                    calls = record["oracle_calls"]
                    record.update(_blamed(run.certify, file if content is not None else None))
                    record["oracle_calls"] += calls
                record = {"pass": len(history) + 1, **record}
                record["seconds"] = time.perf_counter() - begun
                if counts is not None:
                    searches, calls = run.given.problem.surrogate.counts()
                    record["calls_per_search"] = (calls - counts[1]) / max(searches - counts[0], 1)
                evaluated = record.pop("evaluated", record.get("certified"))
                if any(_overflown(record.get(name)) for name in ("primal", "dual", "gap")):
                    record["certified"], evaluated = False, False
                    record["failed"] = (
                        "the objective is not finite: features, losses or alpha are too large or "
                        "too small for floating-point numbers"
                    )
                watch.judge(record, tol)
                history.append(record)
                reason = _ended(history, tol) or reason
                if validation is not None and evaluated:
                    w = run.weights()
                    record["validation_score"] = validation.score(w)
                    if record["validation_score"] > best_score:
                        best_score, best_w, stale = record["validation_score"], w, 0
                    else:
                        stale += 1
                        if validation.patience and stale >= validation.patience:
                            reason = "early_stopping"
                progress.update(record)
                if callbacks:
                    with progress.aside():
                        answers = [c({**record, "weights": weights}) for c in callbacks]
                    if any(answer is True for answer in answers):
                        reason = "callback"
                done = reason != "max_iter" or len(history) >= max_iter
                if file is not None and (done or file.due()):
                    file.write(state)
                    if file.error is not None:
                        record["checkpoint_error"] = file.error
        except KeyboardInterrupt:
            reason = "interrupted"
            logger.warning("interrupted after %d passes: keeping the best model", len(history))
    if file is not None:
        file.close()
    w = run.weights()
    if validation is not None and validation.patience and best_w is not None:
        evaluated = evaluated and np.array_equal(w, best_w)
        w = best_w
    run.given.problem.surrogate.allow(0.0)
    if not np.isfinite(w).all():
        raise ValueError(
            f"training led to weights that are not finite in pass {len(history)}; scale the "
            "features or the losses to values around 1, or use a larger alpha"
        )
    last = history[-1] if history else {}
    if history and (reason == "interrupted" or not evaluated):
        _evaluate(run, w, last)
    if last.get("dual") is not None and not run.given.problem.surrogate.exact:
        last["dual_of"] = "relaxation"  # which may lie above the optimum over labels
    if reason == "max_iter" and last.get("certified") and not run.given.problem.surrogate.exact:
        last["missed"] = run.given.problem.missed(w, run.given.n_jobs)
    return Outcome(w, history, reason)


def _evaluate(run: Run, w: np.ndarray, record: dict[str, Any]) -> None:
    """Make the last record that of the returned weights."""
    problem, given = run.given.problem, run.given
    if run.streams or not np.isfinite(record["primal"]):
        return  # earlier batches are gone; overflow is already reported
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


def _memory(run: Run) -> dict[str, np.ndarray]:
    return run.given.problem.surrogate.memory_of_examples()


def _overflown(value: Any) -> bool:
    return value is not None and not np.isfinite(value)


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
