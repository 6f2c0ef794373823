"""Parameters by name for structures, losses, surrogates and solvers, as in scikit-learn."""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .positional import positional_deprecated
from .suggest import did_you_mean, names_parameters, no_parameter

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda made: made  # Python 3.10 lacks it


Made = TypeVar("Made")

# Types that constructors declare, in words for messages.
_EXPECTED = {"bool": "True or False", "int": "an integer", "float": "a number", "str": "a string"}


# Loops count in 32 bits.
MOST_INT = 2**31 - 1


def check_types(made: Any, where: str = "") -> None:
    """Refuse arguments of another type than the constructor declares: bool, int, float, str.

    The object checks other types and ranges; integers have 32 bits.  Defaults always pass, and None
    if declared.

    Parameters
    ----------
    made : object
        With one attribute per argument of its constructor.
    where : str, default=""
        The beginning of messages.

    Raises
    ------
    ValueError
        The message names the argument, what was found and what was expected.

    Examples
    --------
    >>> from structsolve.solvers import BCFW
    >>> from structsolve.utils.params import check_types
    >>> check_types(BCFW(averaging="no"), "BCFW: ")
    Traceback (most recent call last):
        ...
    ValueError: BCFW: averaging is 'no', expected True or False
    """
    for name, kinds, default in _declared(made.__class__):
        value = getattr(made, name, default)
        if value is default or any(_is_of(value, kind) for kind in kinds):
            if (
                isinstance(value, numbers.Integral)
                and "int" in kinds
                and abs(int(value)) > MOST_INT
            ):
                expected = f"an integer from {-MOST_INT} to {MOST_INT}"
                raise ValueError(f"{where}{name} is {value!r}, expected {expected}")
            continue
        words = " or ".join(_EXPECTED.get(kind, kind) for kind in kinds)
        raise ValueError(f"{where}{name} is {value!r}, expected {words}")


def check_count(name: str, value: Any, largest: int | None = None) -> None:
    """Raise ValueError unless an argument is an integer of at least 1, and at most ``largest``.

    Parameters
    ----------
    name : str
    value : object
    largest : int, optional
    """
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < 1 or (largest is not None and value > largest):
        bounds = "of at least 1" if largest is None else f"from 1 to {largest}"
        raise ValueError(f"{name} is {value!r}, expected an integer {bounds}")


def check_choice(name: str, value: Any, known: Iterable[Any]) -> None:
    """Raise ValueError, with the nearest choice, unless an argument is one of ``known``.

    Parameters
    ----------
    name : str
    value : object
    known : iterable of object
    """
    choices = [*known]
    if isinstance(value, np.ndarray) or value not in choices:  # arrays compare entries
        hint = did_you_mean(value, choices)
        raise ValueError(f"{name} is {value!r}{hint}, expected one of {choices}")


@functools.cache
def _declared(made: type) -> list[tuple[str, list[str], Any]]:
    if made.__init__ is object.__init__:  # type: ignore[misc]
        return []
    declared = []
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):  # compiled, without a signature
        return []
    for p in parameters:
        said = p.annotation
        kinds = said if isinstance(said, str) else getattr(said, "__name__", "")
        alternatives = [kind.strip() for kind in kinds.split("|")]
        if set(alternatives) <= {*_EXPECTED, "None"}:
            declared.append((p.name, alternatives, p.default))
    return declared


def _is_of(value: Any, kind: str) -> bool:
    if kind == "bool":  # 0 and 1 as well, as NumPy and JSON may have them
        return isinstance(value, (bool, np.bool_)) or (
            isinstance(value, numbers.Integral) and value in (0, 1)
        )
    if kind == "int":
        return isinstance(value, (numbers.Integral, np.bool_))
    if kind == "float":
        return isinstance(value, numbers.Real)
    return isinstance(value, str) if kind == "str" else value is None


def cloned_transformer(name: str, value: Any) -> Any:
    """Return a clone of an argument that is a transformer in scikit-learn's sense.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : object

    Returns
    -------
    transformer
        Not fitted.

    Raises
    ------
    TypeError
        For anything else, a class too.
    """
    from sklearn.base import clone  # heavy

    needed = ("fit", "transform", "get_params")
    if isinstance(value, type) or not all(hasattr(value, method) for method in needed):
        raise TypeError(
            f"{name} is {value!r}, expected a transformer with fit(), transform() and get_params()"
        )
    return clone(value)


@functools.lru_cache(1024)  # a signature takes as long as a pass over small data
def _names_in(init: Callable[..., None]) -> tuple[str, ...]:
    parameters = inspect.signature(init).parameters.values()
    return tuple(p.name for p in parameters if p.name != "self" and p.kind != p.VAR_KEYWORD)


class Params:
    """``get_params`` / ``set_params`` / ``repr`` from the constructor's signature.

    It follows scikit-learn's protocol, so ``clone`` and ``GridSearchCV`` reach into nested
    objects (``structure__start_end``), without importing scikit-learn.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = names_parameters(cls.__init__)  # type: ignore[method-assign]

    @classmethod
    def _param_names(cls) -> list[str]:
        return [] if cls.__init__ is object.__init__ else [*_names_in(cls.__init__)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments.

        Parameters
        ----------
        deep : bool, default=True
            Include those of nested objects, as ``outer__inner``.

        Returns
        -------
        dict of str to object
        """
        params: dict[str, Any] = {}
        for name in self._param_names():
            value = getattr(self, name)
            params[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params.update((f"{name}__{k}", v) for k, v in value.get_params().items())
        return params

    def set_params(self, **params: Any) -> Params:
        """Set arguments by name.

        Parameters
        ----------
        **params
            Nested ones as ``outer__inner``.

        Returns
        -------
        Params
            Itself.

        Raises
        ------
        ValueError
            For an unknown name.
        """
        known = self._param_names()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise ValueError(no_parameter(type(self).__name__, name, known))
            if inner:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={getattr(self, k)!r}" for k in self._param_names())
        return f"{type(self).__name__}({arguments})"


@dataclass_transform(eq_default=False)
def parameters(cls: type[Made]) -> type[Made]:
    """Make the constructor of a class of :class:`Params` from its annotated attributes.

    Arguments after ``_: KW_ONLY`` are still taken by position, with a warning.

    Parameters
    ----------
    cls : type

    Returns
    -------
    type
        The same class.

    Examples
    --------
    >>> from structsolve.utils.params import Params, parameters
    >>> @parameters
    ... class Rule(Params):
    ...     steps: int = 1
    ...     rate: float = 0.5
    >>> Rule(2, rate=0.1)
    Rule(steps=2, rate=0.1)
    """
    made: Any = dataclass(eq=False, repr=False)(cls)
    made.__init__ = names_parameters(positional_deprecated(made.__init__))
    return made
