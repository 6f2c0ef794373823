"""Packing of the data that users give by a structure, checked for what a plugin may return."""

from __future__ import annotations

import copy
from inspect import signature
from typing import Any

import numpy as np

from ..examples.given import check_weights
from ..examples.packed import Examples
from ..utils.masked import refuse_masked
from ..utils.params import check_types
from ..utils.suggest import a_type
from .base import Space


def learn_space(
    structure: Any,
    X: Any,
    Y: Any,
    classes: Any = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
) -> tuple[Space, Examples]:
    """Return a structure's space on training data, and the packed data with their weights.

    Parameters
    ----------
    structure : Structure
    X, Y, classes, fit_intercept
        As for :meth:`structsolve.Structure.make_space`.
    sample_weight : array of shape (n,), optional

    Returns
    -------
    Space, Examples

    Raises
    ------
    TypeError
        If ``make_space()`` returns anything but a space and packed examples.
    ValueError
        If a weight is no finite number of at least 0, or none is above 0; for masked entries.
    """
    check_types(structure, f"structure {structure.name!r}: ")
    _refuse_masked(structure, X, Y)
    given: dict[str, Any] = {}
    if sample_weight is not None and "sample_weight" in signature(structure.make_space).parameters:
        given["sample_weight"] = sample_weight
    answer = structure.make_space(X, Y, classes, fit_intercept, **given)
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Examples)):
        kinds = [type(part).__name__ for part in answer] if isinstance(answer, tuple) else None
        raise TypeError(
            f"structure {structure.name!r}: make_space() returned "
            f"{f'a tuple of {kinds}' if kinds else f'{a_type(answer)} alone'}, expected "
            "(space, examples): the space, and the Examples that its pack(X, Y) gives"
        )
    space, examples = answer
    return space, _settled(structure.name, examples, Y, check_weights(sample_weight, examples.n))


def structure_of(model: Any) -> Any:
    """Return the structure of a fitted model; None for estimators that have none.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    Structure or None
    """
    return getattr(getattr(model, "space_", None), "structure", None)


def pack(
    space: Space, X: Any, Y: Any = None, sample_weight: Any = None, unseen: str = "error"
) -> Examples:
    """Return users' data packed by a space, with labels, offsets and weights in the loops' form.

    Parameters
    ----------
    space : Space
    X, Y, unseen
        As for :meth:`structsolve.Space.pack`.
    sample_weight : array of shape (n,), optional

    Returns
    -------
    Examples

    Raises
    ------
    TypeError
        If the plugin's ``pack()`` returns anything else.
    ValueError
        If X, Y or a weight is wrong or masked, or ``pack()`` returns no labels for Y.
    """
    _refuse_masked(space.structure, X, Y)
    examples = space.pack(X, Y, unseen=unseen)
    name = space.structure.name
    if not isinstance(examples, Examples):
        raise TypeError(
            f"structure {name!r}: pack() returned {type(examples).__name__}, expected Examples"
        )
    weights = None if sample_weight is None else check_weights(sample_weight, examples.n)
    return _settled(name, examples, Y, weights)


def _refuse_masked(structure: Any, X: Any, Y: Any) -> None:
    refuse_masked(X, "X", "fill them in, x.filled(0.0)")
    void = ", and name that label void, void=255" if hasattr(structure, "void") else ""
    refuse_masked(Y, "y", f"give labels there, y.filled(255){void}")


def _settled(name: str, given: Examples, Y: Any, weights: Any) -> Examples:
    """Return a plugin's examples with weights, its labels as int32 and its offsets as int64."""
    if Y is not None and given.labels is None:
        raise ValueError(
            f"structure {name!r}: make_space() or pack() gave no labels, expected those of y"
        )
    changed = {} if weights is given.sample_weight else {"sample_weight": weights}
    for what, dtype in _INTEGERS.items():
        own = getattr(given, what)
        settled = _integers(own, dtype)
        if settled is not own:
            changed[what] = settled
    if not changed:  # a copy takes a tenth of predicting one example
        return given
    examples = copy.copy(given)
    vars(examples).update(changed)
    return examples


# Objects, which compare several times as fast as types of scalars do.
_INTEGERS = {
    "labels": np.dtype(np.int32),
    "offsets": np.dtype(np.int64),
    "label_offsets": np.dtype(np.int64),
    "edge_offsets": np.dtype(np.int64),
}


def _integers(given: Any, dtype: Any) -> Any:
    """Return integers in the loops' form; leave anything else to the checks."""
    if given is None:
        return None
    if type(given) is np.ndarray and given.dtype == dtype:
        return given if given.flags.c_contiguous else np.ascontiguousarray(given)
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        return given
    if array.dtype.kind not in "iub" and array.size:
        return given
    converted = np.ascontiguousarray(array, dtype=dtype)
    return converted if np.array_equal(converted, array) else given
