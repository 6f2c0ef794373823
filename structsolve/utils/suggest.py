"""Did you mean ...? The nearest known name, and other libraries' names of our settings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

#: Settings of other libraries, in terms of ours.
ELSEWHERE = {
    "C": "alpha = 1 / (C n) for n examples",
    "c2": "alpha = 2 c2 / n for n examples",
    "lambda": "alpha",
    "lam": "alpha",
    "reg": "alpha",
    "regularization": "alpha",
    "epochs": "max_iter",
    "max_epochs": "max_iter",
    "max_iterations": "max_iter",
    "n_iter": "max_iter",
    "eps": "tol",
    "tolerance": "tol",
    "seed": "random_state",
    "inference_method": "oracle",
    "model": "structure",
}

#: Other libraries' names of our structures, surrogates and metrics.
NAMES = {
    "sequence": "chain",
    "hmm": "chain",
    "graph": "mrf",
    "image": "grid",
    "ranking": "permutation",
    "matching": "permutation",
    "hierarchy": "dag",
    "hinge": "margin",
    "logistic": "crf",
    "softmax": "crf",
    "f1": "macro-f1",
}


def a_type(value: Any) -> str:
    """Return the name of a value's type behind "a" or "an", for messages.

    Parameters
    ----------
    value : object

    Returns
    -------
    str

    Examples
    --------
    >>> a_type(3), a_type([])
    ('an int', 'a list')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the name nearest to an unknown one.

    Parameters
    ----------
    name : object
        The unknown name.
    known : iterable of str

    Returns
    -------
    str
        Empty if no name is near.

    Examples
    --------
    >>> did_you_mean("chian", ["chain", "tree"])
    " (did you mean 'chain'?)"
    >>> did_you_mean("span_F1", ["span-f1", "accuracy"]), did_you_mean("x", ["chain"])
    (" (did you mean 'span-f1'?)", '')
    >>> did_you_mean("cfr", ["crf"]), did_you_mean("hinge", ["margin"])
    (" (did you mean 'crf'?)", " (did you mean 'margin'?)")
    """
    folded, given = {_folded(one): one for one in known}, _folded(name)
    near = [NAMES[given]] if NAMES.get(given) in folded else []
    near += get_close_matches(given, folded, n=1, cutoff=0.7) if given else []
    near += [one for one in folded if sorted(one) == sorted(given)]
    return f" (did you mean {folded[near[0]]!r}?)" if near else ""


def no_parameter(owner: str, name: str, known: list[str]) -> str:
    """Return the message for an unknown parameter of an object.

    Parameters
    ----------
    owner : str
        The object that lacks it.
    name : str
    known : list of str

    Returns
    -------
    str

    Examples
    --------
    >>> no_parameter("BCFW", "max_cut", ["max_age", "max_cuts"])
    "BCFW has no parameter 'max_cut' (did you mean 'max_cuts'?); known: ['max_age', 'max_cuts']"
    >>> no_parameter("StructuredSVM", "C", ["alpha"])
    "StructuredSVM has no parameter 'C' (take alpha = 1 / (C n) for n examples); known: ['alpha']"
    """
    ours = ELSEWHERE.get(name, "")
    meant = ours.split(" ")[0] in known
    hint = f" (take {ours})" if meant else did_you_mean(name, known)
    return f"{owner} has no parameter {name!r}{hint}; known: {known}"


def names_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """Add a suggestion to a constructor's TypeError for unknown parameters.

    Parameters
    ----------
    init : function
        An ``__init__``.

    Returns
    -------
    function
        The same, with the same signature.
    """
    parameters = list(inspect.signature(init).parameters.values())[1:]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return init
    known = [p.name for p in parameters]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in known:
                raise TypeError(no_parameter(type(self).__name__, name, known))
        init(self, *args, **kwargs)

    return checked


def _folded(name: Any) -> str:
    return str(name).lower().replace("_", "-")
