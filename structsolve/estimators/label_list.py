"""The return type of ``predict`` for examples of several labels: a list that metrics refuse.

scikit-learn has no target type for label sequences.  Its metrics read rows of one length as label
sets and would report a wrong F1 or accuracy.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


class LabelList(list):
    """A list of labels with several parts each, which scikit-learn's metrics refuse.

    Otherwise it is a list: ``numpy.asarray`` makes a matrix of rows of one length.  Slices and
    ``list(y)`` are plain lists, which metrics accept.

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
        # Most metrics compare the lengths before they inspect y_true.
        _refuse_metrics()
        return super().__len__()

    @property
    def __array__(self) -> Any:
        # Others make arrays first.  For other callers, a list has no such attribute.
        _refuse_metrics()
        raise AttributeError("__array__")


def guarded(answers: Any) -> Any:
    """Return labels of several parts each as a ``LabelList``, others unchanged.

    Parameters
    ----------
    answers : list or ndarray
        Labels unpacked by a space.

    Returns
    -------
    LabelList, list or ndarray
    """
    if type(answers) is list and answers and isinstance(answers[0], (np.ndarray, list, tuple)):
        return LabelList(answers)
    return answers


def _refuse_metrics() -> None:
    """Raise if a function of sklearn.metrics is the caller, directly or through its helpers."""
    # Splitters and transformers may ask for lengths: only the caller distinguishes them.
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sklearn."):
        if frame.f_globals["__name__"].startswith("sklearn.metrics."):
            raise ValueError(
                "labels of several parts, such as label sequences, are no target of scikit-learn's "
                "metrics: rows of one length would be read as label sets. Use "
                'scoring=structsolve.get_scorer("macro-f1"), or another of its names '
                '("accuracy", "sequence-accuracy", "span-f1", ...), or leave scoring out; '
                "structsolve.evaluation.metrics has the metrics as functions"
            )
        frame = frame.f_back  # type: ignore[assignment]
