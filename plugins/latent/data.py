"""Packed examples of LatentSVM, with the states that their labels allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve.estimators.fitting import TrainingData
from structsolve.examples.labels import flatten, flatten_rows
from structsolve.examples.stacking import pieces
from structsolve.plugins.latent.candidates import Candidates
from structsolve.plugins.latent.sets import Sets
from structsolve.plugins.latent.states import numbers_of, owners


@dataclass
class LatentData(TrainingData):
    """Arguments of fit() with partial labels.

    Parameters
    ----------
    sets : Sets
        The classes that each node allows.
    n_hidden : ndarray of int of shape (n_classes,)
    loss : str or loss object
        Loss of states.
    first : ndarray of int32, optional
        Initial states.
    candidates : Candidates, optional
        The whole labels that each example allows, in place of ``sets`` and ``n_hidden``.
    """

    sets: Sets | None = None
    n_hidden: np.ndarray | None = None
    loss: Any = None
    first: np.ndarray | None = None
    candidates: Candidates | None = None


def unpacked(data: LatentData, labels: np.ndarray) -> Any:
    """Return completed labels in the form of y.

    Parameters
    ----------
    data : LatentData
    labels : ndarray of int32

    Returns
    -------
    labels in the form of y, numbers of states
    """
    shapes = data.examples.topology.get("shapes")
    if shapes is not None and len(labels) != sum(height * width for height, width in shapes):
        return pieces(labels, data.examples.offsets)  # void pixels were left out: no shape
    return (data.space if data.sets is None else numbers_of(data.space)).unpack(
        labels, data.examples
    )


def given_states(hidden: Any, data: LatentData) -> np.ndarray:
    """Return the initial states.

    Parameters
    ----------
    hidden : labels in the form of y, numbers of states
    data : LatentData

    Returns
    -------
    ndarray of int32

    Raises
    ------
    ValueError
        It names a state that the labels do not allow.
    """
    assert data.sets is not None
    offsets = data.examples.offsets
    try:
        if data.space.structure.single_node:
            flat = flatten_rows(hidden, data.examples.n)
        else:
            flat = flatten([np.ravel(states) for states in hidden], offsets)
    except (ValueError, TypeError) as error:
        raise ValueError(f"hidden: {error}") from None
    table = data.sets.table[:, owners(data.space)]
    if flat.dtype.kind not in "iu":
        raise ValueError(f"hidden holds {flat.dtype}, expected numbers of states")
    known = (flat >= 0) & (flat < table.shape[1])
    known[known] = table[data.sets.rows[known], flat[known]]
    wrong = np.flatnonzero(~known)
    if wrong.size:
        i = int(np.searchsorted(offsets, wrong[0], side="right")) - 1
        allowed = np.flatnonzero(table[data.sets.rows[wrong[0]]]).tolist()
        raise ValueError(
            f"hidden, example {i}, node {wrong[0] - offsets[i]}: state {flat[wrong[0]]}, expected "
            f"one that y allows: {allowed[:12]}"
        )
    return flat.astype(np.int32)
