"""Scores of constituency trees, in Python and for ``structsolve score``."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from structsolve.plugins.cky.trees import brackets, length_of, read_tree

__all__ = ["bracket_report"]


class BracketReport(dict):
    """Scores of trees: a dict that prints as two lines.

    Examples
    --------
    >>> scores = {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "exact": 0.0, "trees": 1}
    >>> print(BracketReport(scores))
    brackets: precision 1.0000, recall 0.5000, F1 0.6667
    trees without an error 0.0000 of 1
    """

    def __str__(self) -> str:
        return (
            f"brackets: precision {self['precision']:.4f}, recall {self['recall']:.4f}, "
            f"F1 {self['f1']:.4f}\n"
            f"trees without an error {self['exact']:.4f} of {self['trees']}"
        )

    __repr__ = __str__


def bracket_report(
    y_true: Sequence[Any], y_pred: Sequence[Any], labelled: bool = True
) -> BracketReport:
    """Return precision, recall and F1 of brackets: spans of nodes above words, with classes.

    As evalb counts them: a pair of a span and a class as often as it occurs, in all trees together.

    Parameters
    ----------
    y_true, y_pred : sequence of trees
        Nested tuples, or brackets.
    labelled : bool, default=True
        Classes count; if False, spans alone.

    Returns
    -------
    BracketReport
        ``precision``, ``recall``, ``f1``, ``exact`` (the share of trees without an error, classes
        of words included) and ``trees``.

    Raises
    ------
    ValueError
        For unequal numbers of trees or words.

    Examples
    --------
    >>> from structsolve.plugins.cky import bracket_report
    >>> true, guess = ("S", ("NP", "D", "N"), "V"), ("S", "D", ("VP", "N", "V"))
    >>> bracket_report([true], [guess])["f1"]
    0.5
    """
    for name, trees in (("y_true", y_true), ("y_pred", y_pred)):
        unsized = getattr(trees, "ndim", 1) == 0 or not hasattr(trees, "__len__")
        if isinstance(trees, str) or unsized:
            raise ValueError(f"{name}: found {trees!r}, expected a list of trees")
    if len(y_true) != len(y_pred) or not len(y_true):
        raise ValueError(
            f"y_true has {len(y_true)} trees and y_pred has {len(y_pred)}; expected the same number"
        )
    same = given = guessed = exact = 0
    for i, pair in enumerate(zip(y_true, y_pred, strict=True)):
        true, guess = (read_tree(t)[0] if isinstance(t, str) and "(" in t else t for t in pair)
        sizes = []
        for name, tree in (("y_true", true), ("y_pred", guess)):
            try:
                sizes.append(length_of(tree))
            except ValueError as error:
                raise ValueError(f"{name}: example {i}: {error}") from None
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"y_true[{i}] has {sizes[0]} words and y_pred[{i}] has {sizes[1]}; expected the "
                "same number in both"
            )
        one, two = (Counter(b if labelled else b[:2] for b in brackets(t)) for t in (true, guess))
        same += (one & two).total()
        given += one.total()
        guessed += two.total()
        exact += _nodes(true) == _nodes(guess)
    precision, recall = (same / max(total, 1) for total in (guessed, given))
    return BracketReport(
        precision=precision,
        recall=recall,
        f1=2 * same / max(given + guessed, 1),
        exact=exact / len(y_true),
        trees=len(y_true),
    )


def _nodes(tree: Any) -> list[tuple[Any, ...]]:
    """Return the class and number of children of each node, in an order that tells trees apart."""
    nodes, todo = [], [tree]  # no recursion: trees are as deep as sentences are long
    while todo:
        name, *children = [node] if isinstance(node := todo.pop(), str) else node
        nodes.append((name, len(children)))
        todo += children
    return nodes


def report(model: Any, data: Any, args: argparse.Namespace) -> BracketReport | None:
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
    BracketReport or None
        None for other files.
    """
    from structsolve.plugins.cky.reader import BracketReader  # heavy

    if not isinstance(data.reader, BracketReader):
        return None
    return bracket_report(data.y, model.predict(data.X))
