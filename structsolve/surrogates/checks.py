"""What surrogates ask of an oracle and a loss before they are bound to them."""

from __future__ import annotations

from typing import Any

import numpy as np


def use_relaxation(relaxed: bool | None, oracle: Any, loss: Any, structure: str) -> bool:
    """Tell whether the oracle's relaxation is asked instead of its labels."""
    if relaxed is None:
        return bool(oracle.has_relaxed and not oracle.exact and loss.decomposes)
    if relaxed and not oracle.has_relaxed and not oracle.exact:
        raise ValueError(
            f"relaxed=True needs an oracle that solves a relaxation, which structure {structure!r} "
            "does not have; use relaxed=False"
        )
    return bool(relaxed and oracle.has_relaxed)


def refuse_wrong_truths(problem: Any) -> None:
    """Refuse a task loss that is not 0 at the truth."""
    from ..structure.loss_values import losses

    examples = problem.examples
    found = losses(problem.loss, examples.labels, examples.label_offsets)
    wrong = np.flatnonzero(found != 0)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"example {i}: the loss of the true label is {found[i]:g}, expected 0; a bi-criteria "
            "surrogate weighs losses that are 0 at the truth and positive elsewhere"
        )
