"""Surrogates for batches: tasks with the labels of one call, and answers without memory."""

from __future__ import annotations

import copy
import reprlib
from typing import Any

import numpy as np

from .. import registry
from ..lp.ask import without_warm_starts
from ..surrogates.task import Task


class LabelledTask(Task):
    """A task with the labels of one call, which records whether they were read."""

    own_labels: np.ndarray | None = None
    reads_labels = False

    @property
    def labels(self) -> np.ndarray | None:
        """The true labels of the call."""
        if not self.reads_labels:
            self.reads_labels = True
            self.own_labels = None if self.own_labels is None else self.own_labels.copy()
        return self.own_labels

    @labels.setter
    def labels(self, labels: np.ndarray | None) -> None:
        self.own_labels = labels

    def bind(self, surrogate: Any, labels: np.ndarray | None) -> Any:
        """Bind a surrogate, and record whether it reads labels.

        Parameters
        ----------
        surrogate : surrogate object
        labels : ndarray of int32, or None

        Returns
        -------
        Surrogate
        """
        self.own_labels, self.reads_labels = labels, False
        return surrogate.bind(self)


def made(surrogate: Any) -> Any:
    """Return a surrogate object whose answers do not depend on earlier ones.

    Parameters
    ----------
    surrogate : str or surrogate object

    Returns
    -------
    surrogate object

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(surrogate, str):
        surrogate = registry.default().make("surrogates", surrogate)
    if not hasattr(surrogate, "bind"):
        raise TypeError(
            f"surrogate is {reprlib.repr(surrogate)}, expected a name, such as 'margin', or an "
            "object of structsolve.surrogates"
        )
    if getattr(surrogate, "warm_start", False):
        surrogate = copy.copy(surrogate)
        surrogate.warm_start = False
    return surrogate


def cold(oracle: Any) -> Any:
    """Return a backend of linear programs whose answers do not depend on earlier ones.

    Parameters
    ----------
    oracle : str or structsolve.lp.Backend, or None

    Returns
    -------
    str or Backend, or None
    """
    return None if oracle is None else without_warm_starts(oracle)
