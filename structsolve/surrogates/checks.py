"""Checks of oracle and loss before a surrogate is bound to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structure.loss_values import losses


def pick_relaxation(relaxed: bool | None, task: Any) -> Any:
    """Return the relaxation that a surrogate maximises over.

    Parameters
    ----------
    relaxed : bool, optional
        Whether to relax. By default, if the oracle may miss the best label and the loss decomposes.
    task : Task

    Returns
    -------
    Relaxation or None
        None: the maximum is over labels.

    Raises
    ------
    ValueError
        If ``relaxed`` is True and the structure has no relaxation.
    """
    oracle, wanted = task.oracle, relaxed
    if wanted is None:
        wanted = not oracle.exact and task.loss.decomposes
    relaxation = task.power("relaxation") if wanted else None
    if relaxed and relaxation is None and not oracle.exact:
        raise ValueError(
            "relaxed=True needs an oracle that solves a relaxation, which structure "
            f"{task.space.structure.name!r} does not have; use relaxed=False"
        )
    return relaxation


def refuse_wrong_truths(task: Any) -> None:
    """Refuse a task loss that is not 0 at the truth, if truths are known.

    Parameters
    ----------
    task : Task

    Raises
    ------
    ValueError
        The message names the first such example and its loss.
    """
    if task.labels is None:
        return
    values = losses(task.loss, task.labels, task.labels)
    wrong = np.flatnonzero(values != 0)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"example {i}: the loss of the true label is {values[i]:g}, expected 0; a bi-criteria "
            "surrogate weighs losses that are 0 at the truth and positive elsewhere"
        )
