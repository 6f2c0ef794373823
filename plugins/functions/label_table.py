"""Numbers of labels that are any objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class LabelTable:
    """Label objects by number; labels with equal keys share a number.

    Parameters
    ----------
    key : callable or None
        See :class:`FunctionStructure`.

    Examples
    --------
    >>> table = LabelTable(None)
    >>> [table.number(y, 0) for y in ("a", [1, 2], "a", [1, 2])]
    [0, 1, 0, 1]
    """

    def __init__(self, key: Callable[[Any], Any] | None):
        self.objects: list[Any] = []
        self._key = default_key if key is None else key
        self._numbers: dict[Any, int] = {}
        self._lock = threading.Lock()

    def number(self, label: Any, i: int) -> int:
        """Return the number of a label; a label with a new key gets a new one.

        Parameters
        ----------
        label : object
        i : int
            Its example, for messages.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the key function raises, or its result is not hashable.
        """
        key = called("key(y)", i, self._key, label)
        try:
            with self._lock:
                number = self._numbers.setdefault(key, len(self.objects))
                if number == len(self.objects):
                    # A copy: the owner of an array or list may write into it later.
                    own = isinstance(label, (np.ndarray, list))
                    self.objects.append(label.copy() if own else label)
        except TypeError:
            raise ValueError(
                f"example {i}: key(y) returned {key!r}, which is not hashable"
            ) from None
        return number


def default_key(label: Any) -> Any:
    """Return a hashable object that is equal for equal labels.

    Parameters
    ----------
    label : object
        Hashable, or an array, list, tuple, set or dict.

    Returns
    -------
    object

    Raises
    ------
    TypeError
        For any other label.

    Examples
    --------
    >>> import numpy as np
    >>> default_key("a"), default_key([0, [1, 2]])
    ('a', (0, (1, 2)))
    >>> default_key(np.array([0, 1], dtype=np.int8)) == default_key(np.array([0, 1]))
    True
    """
    try:
        hash(label)
        return label
    except TypeError:
        pass
    if isinstance(label, np.ndarray):
        if label.dtype.kind in "iub":
            label = label.astype(np.int64)
        if label.dtype.kind != "O":
            return label.shape, label.dtype.str, label.tobytes()
        label = label.tolist()
    if isinstance(label, (list, tuple)):
        return tuple(default_key(part) for part in label)
    if isinstance(label, set):
        return frozenset(label)
    if isinstance(label, dict):
        return frozenset((name, default_key(part)) for name, part in label.items())
    raise TypeError(
        f"a label of type {type(label).__name__} cannot be hashed; give FunctionStructure a key="
    )


def called(what: str, i: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a user's function returns.

    Parameters
    ----------
    what : str
        The call, for messages.
    i : int
        Its example, for messages.
    function : callable
    *arguments : object

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If the function raises anything.
    """
    try:
        return function(*arguments)
    except Exception as error:
        raise ValueError(f"example {i}: {what} raised {type(error).__name__}: {error}") from error
