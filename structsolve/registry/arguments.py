"""Arguments behind a name, as in ``"mrf:oracle=trws"``, and the objects made with them."""

from __future__ import annotations

import inspect
import re
from typing import Any

from ..utils.suggest import did_you_mean
from .plugin import one

# Commas between arguments; commas in brackets belong to lists.
_COMMA = re.compile(r",(?![^\[]*\])")


def create(kind: str, text: str, factory: Any, /, *arguments: Any, **params: Any) -> Any:
    """Make an object by a plugin's factory.

    Parameters
    ----------
    kind : str
        One of ``LISTS``.
    text : str
        The text that the user wrote, for the message.
    factory : callable
    *arguments, **params
        Arguments of the factory.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If the factory raises one, or does not take the arguments.
    RuntimeError
        If the factory raises anything else.
    TypeError
        When it returns None.
    """
    what = f"{one(kind)} {text!r}"
    try:
        made = factory(*arguments, **params)
    except ValueError:
        raise
    except TypeError as error:
        known = "" if "known: " in str(error) else _takes(factory, arguments, params)
        raise ValueError(f"{what}: {error}{known}") from error
    except Exception as error:
        raise RuntimeError(f"{what}: {type(error).__name__}: {error}") from error
    if made is None:
        raise TypeError(f"{what}: its plugin made None, expected an object")
    return made


def _takes(factory: Any, arguments: tuple[Any, ...], params: dict[str, Any]) -> str:
    """Describe the arguments of a factory that got unknown ones."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*arguments, **params)
    except TypeError:
        known = list(signature.parameters)
        near = "".join(did_you_mean(name, known) for name in params if name not in known)
        return f"{near}; expected some of {known}"
    return ""


def refuse_words(what: str, factory: Any, arguments: list[Any], params: dict[str, Any]) -> None:
    """Refuse words for switches, since any word, even "no" and "off", would count as true.

    Parameters
    ----------
    what : str
        Name of the object, for the message.
    factory : callable
        Arguments with the default True or False are switches.
    arguments : list
    params : dict of str to object

    Raises
    ------
    ValueError
        The message names the argument.
    """
    if not any(isinstance(value, str) for value in (*arguments, *params.values())):
        return  # fast path without inspecting the factory
    try:
        signature = inspect.signature(factory)
        given = signature.bind_partial(*arguments, **params).arguments
    except (TypeError, ValueError):
        return  # the factory refuses unknown arguments
    for name, value in given.items():
        switch = isinstance(signature.parameters[name].default, bool)
        if switch and isinstance(value, str):
            raise ValueError(f"{what}: {name} is {value!r}, expected true or false")


def arguments_of(what: str, text: str, rest: str) -> tuple[list[Any], dict[str, Any]]:
    """Read comma-separated arguments: values, then ``key=value``.

    Parameters
    ----------
    what, text : str
        Name of the object, and the text that the user wrote, for the message.
    rest : str
        The text after the name.

    Returns
    -------
    arguments : list
    params : dict of str to object

    Raises
    ------
    ValueError
        If an argument without a key follows one with a key, a key comes twice, or an argument
        is empty.

    Examples
    --------
    >>> from structsolve.registry.arguments import arguments_of
    >>> arguments_of("structure", "mrf:oracle=trws", "oracle=trws,directed=true")
    ([], {'oracle': 'trws', 'directed': True})
    >>> arguments_of("structure", "grid:void=[-1,255]", "void=[-1,255]")
    ([], {'void': [-1, 255]})
    """
    arguments: list[Any] = []
    params: dict[str, Any] = {}
    for part in _COMMA.split(rest):
        key, equals, word = part.partition("=")
        key, word = key.strip(), word.strip()
        if not equals and not params and key:
            arguments.append(value_of(key))
        elif not word or not key.isidentifier() or key in params:
            raise ValueError(
                f"{what} {text!r}: found {part.strip()!r}, expected one key=value for each, behind "
                "the arguments without a key"
            )
        else:
            params[key] = value_of(word)
    return arguments, params


def value_of(text: str) -> Any:
    """Convert a word to a number, True, False or None if possible; else return it unchanged.

    Parameters
    ----------
    text : str

    Returns
    -------
    int, float, bool, None, str, or list of these
        Lists are written in brackets.
    """
    if text.startswith("[") and text.endswith("]"):
        return [value_of(word.strip()) for word in text[1:-1].split(",") if word.strip()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    # Only lower case or Python's spelling: "NONE" may be the name of a solver.
    words = {"true": True, "false": False, "none": None}
    return text if text.isupper() else words.get(text.lower(), text)
