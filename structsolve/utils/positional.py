"""Arguments that are given by name from now on, and were once taken by position."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def positional_deprecated(function: Function) -> Function:
    """Still take the arguments after ``*`` by position, with a warning.

    Parameters
    ----------
    function : callable
        Its arguments after ``*`` are in the order in which callers gave them.

    Returns
    -------
    callable
        With the signature of ``function``.

    Warns
    -----
    FutureWarning
        For arguments by position; it lists their names.

    Examples
    --------
    >>> import warnings
    >>> @positional_deprecated
    ... def scale(x, *, factor=2, shift=0):
    ...     return factor * x + shift
    >>> scale(1, factor=3)
    3
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     scale(1, 3, 4)
    7
    >>> print(told[0].message)
    scale() takes factor, shift by name; by position they will be refused in a later version
    """
    code = function.__code__
    most = code.co_argcount
    names = code.co_varnames[most : most + code.co_kwonlyargcount]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        late = args[most:]
        if not late or len(late) > len(names):
            return function(*args, **kwargs)
        told = ", ".join(names[: len(late)])
        name = function.__qualname__.removesuffix(".__init__")
        warnings.warn(
            f"{name}() takes {told} by name; by position they will be refused in a later version",
            FutureWarning,
            # Constructors of Params are wrapped once more.
            stacklevel=2 + hasattr(args[0], "_param_names"),
        )
        return function(*args[:most], **dict(zip(names, late, strict=False)), **kwargs)

    return call  # type: ignore[return-value]
