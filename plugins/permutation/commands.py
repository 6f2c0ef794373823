"""The scores of rankings that ``structsolve score`` prints; imports little."""

from __future__ import annotations

import argparse
from typing import Any


def figures(
    model: Any, data: Any, truth: list[Any], guess: list[Any], args: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Return the scores of rankings, for ``structsolve score``.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
        What the shell has read.
    truth, guess : list of list
        Rankings.
    args : Namespace
        Options of ``score``.

    Returns
    -------
    report : dict
        With ``rankings``, or empty for other labels.
    lines : list of str
        The same as text.
    """
    from structsolve.plugins.permutation.metrics import FIGURES, ranking_report  # heavy
    from structsolve.plugins.permutation.space import RankingSpace  # heavy

    space = getattr(model, "space_", None)
    if not isinstance(space, RankingSpace) or len(space.classes_) < 2:
        return {}, []
    scores = ranking_report(truth, guess)
    told = "  ".join(f"{name.replace('_', ' ')} {scores[name]:.4f}" for name in FIGURES)
    return {"rankings": scores}, [f"rankings: {told}"]
