"""The return type of ``predict`` for answers of several labels: a list that metrics refuse.

scikit-learn has no target of label sequences.  Its metrics read rows of one length as label sets,
and a mean over positions or a share of faultless rows is then taken for an F1 or an accuracy.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


class LabelList(list):
    """A list of labels with several parts each, which scikit-learn's metrics do not misread.

    It is a list in all else: ``numpy.asarray`` makes a matrix of rows of one length, and slices and
    ``list(y)`` are plain lists, which nobody guards.

    Examples
    --------
    >>> from sklearn.metrics import f1_score
    >>> from structsolve.estimators.label_list import LabelList
    >>> answers = LabelList([[0, 1], [1, 0]])
    >>> len(answers), answers == [[0, 1], [1, 0]]
    (2, True)
    >>> f1_score([[1, 1], [1, 0]], answers, average="macro")
    Traceback (most recent call last):
    ValueError: labels of several parts, such as label sequences, are no target of ...
    """

    def __len__(self) -> int:
        # Most metrics compare the lengths first, before they look at what y_true holds.
        _refuse_metrics()
        return super().__len__()

    @property
    def __array__(self) -> Any:
        # Others make arrays first.  To all who are not refused, a list has no such attribute.
        _refuse_metrics()
        raise AttributeError("__array__")


def guarded(answers: Any) -> Any:
    """Return answers of several parts each as a ``LabelList``, others as they are.

    Parameters
    ----------
    answers : list or ndarray
        As a space unpacks labels.

    Returns
    -------
    LabelList, list or ndarray
    """
    if type(answers) is list and answers and isinstance(answers[0], (np.ndarray, list, tuple)):
        return LabelList(answers)
    return answers


def _refuse_metrics() -> None:
    """Raise where a function of sklearn.metrics asks: by itself, or by helpers of scikit-learn."""
    # Splitters and transformers ask for lengths as well, and may: only the caller tells.
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sklearn."):
        if frame.f_globals["__name__"].startswith("sklearn.metrics."):
            raise ValueError(
                "labels of several parts, such as label sequences, are no target of scikit-learn's "
                "metrics: rows of one length would be taken for label sets. Give "
                'scoring=structsolve.get_scorer("macro-f1"), or another of its names '
                '("accuracy", "sequence-accuracy", "span-f1", ...), or leave scoring out; '
                "structsolve.evaluation.metrics has the figures by themselves"
            )
        frame = frame.f_back  # type: ignore[assignment]
