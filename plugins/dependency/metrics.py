"""Scores of dependency trees, in Python and for ``structsolve score``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from structsolve.plugins.dependency.arcs import split_relations

__all__ = ["attachment_report"]


class TreeReport(dict):
    """Scores of trees: a dict that prints as a few lines.

    Examples
    --------
    >>> print(TreeReport(uas=0.75, las=0.5, exact=0.5, words=4, trees=2))
    right heads 0.7500 of 4 words
    right heads and relations 0.5000
    trees without an error 0.5000 of 2
    """

    def __str__(self) -> str:
        lines = [f"right heads {self['uas']:.4f} of {self['words']} words"]
        if "las" in self:
            lines.append(f"right heads and relations {self['las']:.4f}")
        if "without" in self:
            others = str(self["without"]).split("\n")[:-1]
            lines += [f"{line}, without punctuation" for line in others]
        return "\n".join([*lines, f"trees without an error {self['exact']:.4f} of {self['trees']}"])

    __repr__ = __str__


def attachment_report(
    y_true: Sequence[Any], y_pred: Sequence[Any], counted: Sequence[Any] | None = None
) -> TreeReport:
    """Return the share of words with the correct head, and of trees without an error.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences
        The head of each word, or its pair (head, relation), one sequence per sentence.
    counted : sequence of sequences of bool, optional
        The words that count, such as all but punctuation; by default all.

    Returns
    -------
    TreeReport
        ``uas`` (the unlabelled attachment score), ``exact``, ``words`` and ``trees``; of labelled
        trees also ``las``, the share of words with the correct head and relation.

    Raises
    ------
    ValueError
        For unequal lengths, and without any word.

    Examples
    --------
    >>> from structsolve.plugins.dependency import attachment_report
    >>> dict(attachment_report([[2, 0], [0, 1]], [[2, 0], [2, 0]]))
    {'uas': 0.5, 'exact': 0.5, 'words': 4, 'trees': 2}
    >>> attachment_report([[(2, "a"), (0, "b")]], [[(2, "b"), (0, "b")]])["las"]
    0.5
    """
    from structsolve.evaluation.metrics import paired  # heavy

    (heads, names), (guess, guess_names) = (split_relations(y) for y in (y_true, y_pred))
    true, pred, lengths = paired(heads, guess)
    kept = np.ones(len(true), dtype=bool)
    if counted is not None:
        given, _, _ = paired(counted, guess)
        kept = given.astype(bool)
    if not kept.any():
        raise ValueError("counted: found no word that counts, expected at least one")
    scores = {"uas": true == pred}
    if (names is None) != (guess_names is None):
        raise ValueError("y_true and y_pred: one has relations, expected them in both or neither")
    if names is not None:
        same, others, _ = paired(names, guess_names)
        scores["las"] = scores["uas"] & (same == others)
    wrong = np.repeat(np.arange(len(lengths)), lengths)[kept & ~[*scores.values()][-1]]
    return TreeReport(
        **{name: float(right[kept].mean()) for name, right in scores.items()},
        exact=(len(lengths) - len(np.unique(wrong))) / len(lengths),
        words=int(kept.sum()),
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
    guess = model.predict(data.X)
    scores = attachment_report(data.y, guess)
    counted = data.reader.counted()
    if 0 < sum(map(sum, counted)) < scores["words"]:
        scores["without"] = attachment_report(data.y, guess, counted)
    return scores
