"""Scores of dependency trees, in Python and for ``structsolve score``."""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from structsolve.plugins.dependency.arcs import split_relations

__all__ = ["attachment_report"]


class TreeReport(dict):
    """Scores of trees: a dict that prints as a few lines.

    Examples
    --------
    >>> print(TreeReport(uas=0.75, exact=0.5, words=4, trees=2))
    right heads 0.7500 of 4 words
    trees without an error 0.5000 of 2
    """

    def __str__(self) -> str:
        lines = [f"right heads {self['uas']:.4f} of {self['words']} words"]
        if "las" in self:
            lines.append(f"right heads and relations {self['las']:.4f}")
        if "uas_without_punctuation" in self:
            share, words = self["uas_without_punctuation"], self["words_without_punctuation"]
            lines.append(f"right heads {share:.4f} of {words} words without punctuation")
        if "las_without_punctuation" in self:
            share = self["las_without_punctuation"]
            lines.append(f"right heads and relations {share:.4f} without punctuation")
        lines.append(f"trees without an error {self['exact']:.4f} of {self['trees']}")
        return "\n".join(lines)

    __repr__ = __str__


def attachment_report(
    y_true: Sequence[Any], y_pred: Sequence[Any], words: Sequence[Sequence[str]] | None = None
) -> TreeReport:
    """Return the share of words with the correct head, and of trees without an error.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences
        The head of each word, or its pair (head, relation), one sequence per sentence.
    words : sequence of sequences of str, optional
        The words, to score those other than punctuation too: as in the CoNLL-X task, punctuation
        is what has only characters of Unicode's category P.

    Returns
    -------
    TreeReport
        ``uas`` (the unlabelled attachment score), ``exact``, ``words`` and ``trees``; with `words`
        also ``uas_without_punctuation`` and ``words_without_punctuation``.  Of labelled trees also
        ``las``, the share of words with the correct head and relation, likewise.

    Raises
    ------
    ValueError
        For unequal lengths, without any word, and if a word is not a string.

    Examples
    --------
    >>> from structsolve.plugins.dependency import attachment_report
    >>> dict(attachment_report([[2, 0], [0, 1]], [[2, 0], [2, 0]]))
    {'uas': 0.5, 'exact': 0.5, 'words': 4, 'trees': 2}
    >>> report = attachment_report([[2, 0, 2]], [[2, 0, 1]], [["It", "rains", "."]])
    >>> report["uas_without_punctuation"]
    1.0
    >>> attachment_report([[(2, "a"), (0, "b")]], [[(2, "b"), (0, "b")]])["las"]
    0.5
    """
    from structsolve.evaluation.report import check_tokens, of_argument  # heavy
    from structsolve.evaluation.tokens import paired  # heavy

    with of_argument("y_true"):
        heads, names = split_relations(y_true)
    with of_argument("y_pred"):
        guess, guess_names = split_relations(y_pred)
    if (names is None) != (guess_names is None):
        raise ValueError("y_true and y_pred: one has relations, expected them in both or neither")
    true, pred, lengths = paired(heads, guess)
    scores = {"uas": true == pred}
    if names is not None:
        same, others, _ = paired(names, guess_names)
        scores["las"] = scores["uas"] & (same == others)
    wrong = np.repeat(np.arange(len(lengths)), lengths)[~[*scores.values()][-1]]
    report = TreeReport(
        **{name: float(right.mean()) for name, right in scores.items()},
        exact=(len(lengths) - len(np.unique(wrong))) / len(lengths),
        words=len(true),
        trees=len(lengths),
    )
    if words is not None:
        check_tokens(words, lengths.tolist(), name="words")
        for i, one in enumerate(words):
            if other := [word for word in one if not isinstance(word, str)]:
                raise ValueError(f"words[{i}]: found {other[0]!r}, expected a word, a string")
        counted = np.array([not _is_punctuation(word) for one in words for word in one])
        for name, right in scores.items():
            share = float(right[counted].mean()) if counted.any() else 0.0
            report[f"{name}_without_punctuation"] = share
        report["words_without_punctuation"] = int(counted.sum())
    return report


def _is_punctuation(word: str) -> bool:
    return all(unicodedata.category(character)[0] == "P" for character in word)


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
    words = [sentence.forms for sentence in data.reader.sentences]
    return attachment_report(data.y, model.predict(data.X), words)
