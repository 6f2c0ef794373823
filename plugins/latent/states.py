"""Spaces of hidden states: each class of a space is repeated once per state."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from structsolve.structure.base import Space
from structsolve.structure.node_space import NodeSpace
from structsolve.utils.memory import refuse_too_large


def check_n_hidden(n_hidden: Any, classes: np.ndarray) -> np.ndarray:
    """Return the number of hidden states of each class.

    Parameters
    ----------
    n_hidden : int, dict or sequence of int
        One number for all classes, or numbers by class or in the order of ``classes``.
    classes : ndarray of shape (K,)

    Returns
    -------
    ndarray of int of shape (K,)

    Raises
    ------
    ValueError
        If a class lacks a number, a number lacks a class, or one is below 1.

    Examples
    --------
    >>> check_n_hidden({"a": 1, "b": 3}, np.array(["a", "b"])).tolist()
    [1, 3]
    """
    names = classes.tolist()
    if isinstance(n_hidden, dict):
        given = {k.item() if isinstance(k, np.generic) else k: v for k, v in n_hidden.items()}
        strange, missing = (
            [k for k in given if k not in names],
            [c for c in names if c not in given],
        )
        if strange or missing:
            raise ValueError(
                f"n_hidden has {f'{strange}, no classes of y' if strange else ''}"
                f"{' and ' if strange and missing else ''}"
                f"{f'no number for the classes {missing} of y' if missing else ''}; expected one "
                f"for each of {names[:12]}"
            )
        numbers = [given[c] for c in names]
    elif isinstance(n_hidden, (list, tuple, np.ndarray)):
        numbers = list(n_hidden)
        if len(numbers) != len(names):
            raise ValueError(
                f"n_hidden has {len(numbers)} numbers, expected {len(names)}: one for each of the "
                f"classes {names[:12]} of y"
            )
    else:
        numbers = [n_hidden] * len(names)
    for name, number in zip(names, numbers):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            where = "" if number is n_hidden else f" for class {name!r}"
            raise ValueError(f"n_hidden is {number!r}{where}, expected an integer of at least 1")
    total = float(sum(map(int, numbers)))
    refuse_too_large(16 * total, f"n_hidden: {total:g} states", "use fewer hidden states")
    return np.array(numbers, dtype=np.int64)


def has_states(space: Space) -> bool:
    """Return whether labels give every node a class with a score of its own.

    Parameters
    ----------
    space : Space

    Returns
    -------
    bool
    """
    node = space.layout.node
    return (
        isinstance(space, NodeSpace)
        and node is not None
        and tuple(node.shape) == (len(space.classes_),)
    )


def with_classes(space: Space, classes: np.ndarray) -> Space:
    """Return a space on the same data with other classes.

    Parameters
    ----------
    space : Space
    classes : ndarray
        A class may be repeated consecutively, once for each of its states. Labels
        are then decoded to classes, and classes are encoded as their first state.

    Returns
    -------
    Space

    Raises
    ------
    ValueError
        If the structure fixes the number of states.
    """
    if np.array_equal(classes, space.classes_):
        return space
    if getattr(space.structure, "n_states", None) is not None:
        raise ValueError(
            f"n_hidden: structure {space.structure.name!r} has n_states="
            f"{space.structure.n_states!r}, which leaves no room for hidden states; leave n_states "
            "out, or use n_hidden=1"
        )
    state, arrays = space.state()
    cause: Exception | None = None
    try:
        made = space.structure.space_from_state(state, {**arrays, "classes": classes})
        if np.array_equal(made.classes_, classes) and has_states(made):
            return made
    except Exception as error:  # of a plugin, in any way
        cause = error
    raise ValueError(
        f"n_hidden: structure {space.structure.name!r} has a fixed number of states, "
        f"{len(space.classes_)}: its space_from_state does not take {len(classes)} classes, one "
        "for each hidden state; use n_hidden=1"
    ) from cause


def owners(space: Space) -> np.ndarray:
    """Return the number of the class of each state.

    Parameters
    ----------
    space : Space
        Space of states.

    Returns
    -------
    ndarray of int64 of shape (n_states,)
    """
    names = space.classes_
    return np.cumsum(np.concatenate([[False], names[1:] != names[:-1]]))


def of_classes(space: Space) -> Space:
    """Return the space of the classes of a space of states.

    Parameters
    ----------
    space : Space

    Returns
    -------
    Space
    """
    owner = owners(space)
    return with_classes(space, space.classes_[np.searchsorted(owner, np.arange(owner[-1] + 1))])


def numbers_of(space: Space) -> Any:
    """Return the space with numbers as names of its states, if it has states.

    Parameters
    ----------
    space : Space

    Returns
    -------
    Space
    """
    if not has_states(space):
        return space
    numbers = copy.copy(space)
    numbers.classes_ = np.arange(len(space.classes_))
    return numbers
