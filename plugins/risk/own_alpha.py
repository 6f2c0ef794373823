"""``alpha="auto"`` of conditional risk: the alpha that best predicts rows left out.

All alphas share the factorisation, so trying them costs less than the factorisation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from structsolve.estimators.alpha import is_auto, tell
from structsolve.plugins.risk.targets import PartTargets

#: Default for continuous labels, for which no loss of parts compares predictions left out.
PLAIN = 1e-2
#: Powers of ten to try, in units of the mean eigenvalue times n (for "rbf" 1).
EXPONENTS = np.arange(-1.0, -7.1, -0.5)
#: Number of rows that are left out, one at a time.
ROWS = 512


def chosen_alpha(model: Any) -> float:
    """Return ``model.alpha``, or for "auto" the best alpha for rows left out.

    The criterion is the mean loss, for label sets micro-F1: if most labels are rare, predicting
    none may have the least Hamming loss.  Of equal alphas the largest is taken.  Joint kernels are
    ignored, since leaving one row out would cost a factorisation.

    Parameters
    ----------
    model : ConditionalRiskMinimizer
        With its factorisation.

    Returns
    -------
    float
    """
    if not is_auto(model.alpha):
        return float(model.alpha)
    targets, smoother = model._targets, model._smoother
    unit = float(smoother.values.sum()) / smoother.n
    measured = np.isfinite(unit) and unit > 0
    if not isinstance(targets, PartTargets) or targets.n < 3 or not measured:
        tell(model, PLAIN, "default, as no rows left out can be compared")
        return PLAIN
    rows, examples = np.arange(targets.n), targets.examples
    if targets.sizes[0] == 1 and targets.n > ROWS:
        # Examples of one node have the same oracle: the first ones can stand for those left out.
        rows = np.random.default_rng(0).permutation(targets.n)[:ROWS]
        first = examples.label_offsets[: ROWS + 1]
        examples = replace(
            examples,
            offsets=examples.offsets[: ROWS + 1],
            label_offsets=first,
            labels=examples.labels[: first[-1]],
            nodes=None,
            sample_weight=None,
        )
    places = _places(targets.examples.label_offsets, rows)
    truth = targets.examples.labels[places]
    sets = getattr(model.space_.structure, "label_sets", False)
    scores = []
    alphas = (unit * 10.0**EXPONENTS).tolist()
    with smoother.one_factorisation():
        for alpha in alphas:
            weights = smoother.left_out(alpha, rows)
            predicted, _ = targets.decode(
                lambda a, b, weights=weights: targets.scores(weights[a:b]), examples, model.n_jobs
            )
            if sets:
                scores.append(
                    2 * float((predicted * truth).sum()) / max(float((predicted + truth).sum()), 1)
                )
            else:
                labels = targets.examples.labels.copy()
                labels[places] = predicted
                scores.append(-float(targets.losses(labels)[rows].mean()))
    chosen = alphas[int(np.argmax(scores))]
    tell(model, chosen, f"{len(rows)} rows, each left out")
    return chosen


def _places(offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the positions of the labels of some examples, concatenated."""
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in rows.tolist()])
