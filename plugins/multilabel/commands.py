"""The scores of label sets that ``structsolve score`` prints; imports little."""

from __future__ import annotations

import argparse
from typing import Any


def report(model: Any, data: Any, args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the scores of ``structsolve score`` for label sets.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
        What the shell has read.
    args : Namespace
        Options of ``score``.

    Returns
    -------
    Report or None
        None for other labels.
    """
    from structsolve.plugins.multilabel.metrics import label_set_report  # heavy
    from structsolve.structure.pack import pack, structure_of  # heavy

    if not getattr(structure_of(model), "label_sets", False):
        return None
    space = model.space_
    examples = pack(space, data.X, data.y)
    truth = space.unpack(examples.labels, examples)
    hierarchy = getattr(space, "hierarchy", None)
    return label_set_report(truth, model.predict(data.X), model.classes_, hierarchy)
