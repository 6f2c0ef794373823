"""Scores of dependency trees, in Python and for ``structsolve score``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

__all__ = ["attachment_report"]


class TreeReport(dict):
    """Scores of trees: a dict that prints as two lines.

    Examples
    --------
    >>> print(TreeReport(uas=0.75, exact=0.5, words=4, trees=2))
    right heads 0.7500 of 4 words
    trees without an error 0.5000 of 2
    """

    def __str__(self) -> str:
        return (
            f"right heads {self['uas']:.4f} of {self['words']} words\n"
            f"trees without an error {self['exact']:.4f} of {self['trees']}"
        )

    __repr__ = __str__


def attachment_report(y_true: Sequence[Any], y_pred: Sequence[Any]) -> TreeReport:
    """Return the share of words with the correct head, and of trees without an error.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of int
        The head of each word, one sequence per sentence.

    Returns
    -------
    TreeReport
        ``uas`` (the unlabelled attachment score), ``exact``, ``words`` and ``trees``.

    Raises
    ------
    ValueError
        For unequal lengths, and without any word.

    Examples
    --------
    >>> from structsolve.plugins.dependency import attachment_report
    >>> dict(attachment_report([[2, 0], [0, 1]], [[2, 0], [2, 0]]))
    {'uas': 0.5, 'exact': 0.5, 'words': 4, 'trees': 2}
    """
    from structsolve.evaluation.metrics import paired  # heavy

    true, pred, lengths = paired(y_true, y_pred)
    right = true == pred
    exact = sum(list(y) == list(z) for y, z in zip(y_true, y_pred))
    return TreeReport(
        uas=float(right.mean()),
        exact=exact / len(lengths),
        words=len(true),
        trees=len(lengths),
    )


def report(model: Any, data: Any, args: argparse.Namespace) -> TreeReport | None:
    """Return the scores of ``structsolve score`` for files of trees.

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
    TreeReport or None
        None for other files.
    """
    from structsolve.plugins.dependency.reader import ConlluReader  # heavy

    if not isinstance(data.reader, ConlluReader):
        return None
    return attachment_report(data.y, model.predict(data.X))
