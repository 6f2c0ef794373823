"""The loop around a run: passes, time, progress, callbacks, early stopping, checkpoints, Ctrl-C."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..utils import container
from ..utils.progress import Progress
from .base import Run, relative_gap
from .watch import Watch

logger = logging.getLogger("structsolve.solvers")

# A checkpoint is written when this many times the duration of the last write have gone by.
CHECKPOINT_PAUSE = 20


@dataclass
class Outcome:
    """Weights, history, and why a run ended.

    Parameters
    ----------
    w : ndarray of shape (dim,)
    history : list of dict
        The record of each pass.
    reason : {"converged", "settled", "contradicted", "max_iter", "early_stopping", \
        "interrupted", "callback"}
    """

    w: np.ndarray
    history: list[dict[str, Any]]
    reason: str


@dataclass
class Validation:
    """Early stopping on a validation score.

    Parameters
    ----------
    score : callable
        From weights to their score; larger is better.
    patience : int
        Stop after so many certified passes without improvement; 0 never stops.
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
    checkpoint: str | Path | None = None,
    fingerprint: str = "",
) -> Outcome:
    """Make passes until the gap is below ``tol`` (relative), or something else ends the run.

    Parameters
    ----------
    run : Run
    max_iter : int
        Passes at most, those of a resumed checkpoint included.
    tol : float
        Stop when ``gap <= tol * primal`` is certified.
    verbose : int
        0: silent; more: a line of progress, or one per pass.
    description : str
        What the line of progress begins with.
    callbacks : list of callable
        Each gets the record of a pass, with ``weights`` (a function that returns a copy of the
        best weights); returning True ends training.
    validation : Validation, optional
        Keep the weights of the best score, and stop when it no longer improves.
    checkpoint : path, optional
        Resume from this file if it exists; write it as training goes on.
    fingerprint : str
        Identifies problem and settings; a checkpoint with another one is refused.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        When the checkpoint belongs to other data or settings.
    """
    history: list[dict[str, Any]] = []
    best_score, best_w, stale = -np.inf, None, 0
    if checkpoint is not None and Path(checkpoint).exists():
        meta, arrays = container.read(checkpoint, "checkpoint")
        if meta["fingerprint"] != fingerprint:
            raise ValueError(
                f"checkpoint {str(checkpoint)!r} belongs to other data or settings; delete it or "
                "name another file to start afresh"
            )
        history, stale = meta["history"], meta["stale"]
        best_score = meta["best_score"]
        best_w = arrays.pop("best_validation_w", None)
        run.given.problem.surrogate.remember(
            {k: arrays.pop(f"surrogate_{k}") for k in _memory(run) if f"surrogate_{k}" in arrays}
        )
        run.restore(meta["run"], arrays)

    def save(checkpoint: str | Path) -> None:
        meta, arrays = run.state()
        arrays = dict(arrays) | {f"surrogate_{k}": v for k, v in _memory(run).items()}
        if best_w is not None:
            arrays["best_validation_w"] = best_w
        outer = {
            "fingerprint": fingerprint,
            "history": history,
            "run": meta,
            "stale": stale,
            "best_score": best_score,
        }
        container.write(checkpoint, "checkpoint", outer, arrays)

    reason = _ended(history, tol) or "max_iter"
    watch = Watch(run, history[-1].get("violation") if history else None)
    written_at, write_seconds = -np.inf, 0.0
    with Progress(verbose, max_iter, description, initial=len(history)) as progress:
        try:
            while len(history) < max_iter and reason == "max_iter":
                begun = time.perf_counter()
                counts = run.given.problem.surrogate.counts()
                record = run.step()
                if len(history) + 1 == max_iter and not record.get("certified"):
                    calls = record["oracle_calls"]
                    record.update(run.certify())
                    record["oracle_calls"] += calls
                record = {"pass": len(history) + 1, **record}
                record["seconds"] = time.perf_counter() - begun
                if counts is not None:
                    searches, calls = run.given.problem.surrogate.counts()
                    record["calls_per_search"] = (calls - counts[1]) / max(searches - counts[0], 1)
                evaluated = record.pop("evaluated", record.get("certified"))
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
                        answers = [c({**record, "weights": run.weights}) for c in callbacks]
                    if any(answer is True for answer in answers):
                        reason = "callback"
                now = time.perf_counter()
                done = reason != "max_iter" or len(history) >= max_iter
                if checkpoint is not None and (
                    done or now - written_at >= CHECKPOINT_PAUSE * write_seconds
                ):
                    save(checkpoint)
                    written_at = time.perf_counter()
                    write_seconds = written_at - now
        except KeyboardInterrupt:
            reason = "interrupted"
            logger.warning("interrupted after %d passes: keeping the best model", len(history))
    w = best_w if validation is not None and best_w is not None else run.weights()
    return Outcome(w, history, reason)


def _memory(run: Run) -> dict[str, np.ndarray]:
    return run.given.problem.surrogate.memory_of_examples()


def _ended(history: list[dict[str, Any]], tol: float) -> str | None:
    """Return why a run ends after these passes; None where it goes on."""
    if not history:
        return None
    last = history[-1]
    gap, told = relative_gap(last), last.get("violation") is not None
    if gap is not None and gap <= tol and (told or last.get("certified")):
        return "contradicted" if told else "converged"
    if last.get("settled"):
        return "contradicted" if told else "settled"
    return None
