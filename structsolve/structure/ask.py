"""Calls to structures: the space of training data, and operators for any examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import abi, registry
from ..examples.packed import Examples
from ..hookspecs import BOUND_BEFORE
from ..operators import (
    AugmentedOracle,
    ConeOracle,
    CountOracle,
    KBest,
    Loss,
    MaxMarginals,
    Operator,
    Parts,
    Projection,
    Relaxation,
)
from ..part_layout import PartLayout
from ..protocols import LossObject
from ..utils.params import check_types
from ..utils.suggest import a_type, did_you_mean
from .base import Space
from .losses import ClassWeights, CostMatrix
from .task_loss import named_losses

#: Powers that a structure may have, and their operators.
POWERS: dict[str, type[Operator]] = {
    "kbest": KBest,
    "max-marginals": MaxMarginals,
    "augmented": AugmentedOracle,
    "relaxation": Relaxation,
    "cones": ConeOracle,
    "counts": CountOracle,
}

# Examples may lack what others have, such as a graph without cycles.
_MAY_LACK = ("structsolve_power", "structsolve_projection", *BOUND_BEFORE)

#: Makes an operator from the layout of packed examples.
Bind = Callable[[PartLayout], Any]


def make_layout(space: Space, examples: Examples, training: bool = False) -> PartLayout:
    """Return the part layout of packed examples.

    Parameters
    ----------
    space : Space
    examples : Examples
        Packed by ``space``; features and labels may be missing.
    training : bool, default=False
        Whether these are training examples, on which operators may answer differently.

    Returns
    -------
    PartLayout

    Raises
    ------
    ValueError
        If the packed arrays do not fit together; compiled loops do not check them.
    """
    examples.check(space.layout, space.structure.name, columns=False, features=False)
    return PartLayout(space.layout, examples, training)


def ask(hook: str, expected: type, space: Space, **arguments: Any) -> Bind | None:
    """Return the first factory of a plugin.

    Parameters
    ----------
    hook : str
    expected : type
        Class of the operator.
    space : Space
    **arguments
        Further arguments of the hook.

    Returns
    -------
    callable or None
        ``layout -> operator``; None if no plugin has one.  The call raises TypeError when the
        operator is not an ``expected``, and ImportError when it was compiled against another C API.

    Raises
    ------
    TypeError
        If a plugin returns something that is not callable.
    """
    given = {"space": space, **arguments}
    made = registry.default().ask(hook, Callable, **given)
    if made is None:
        return None

    known: set[type] = set()

    def bind(layout: PartLayout) -> Any:
        try:
            operator = made(layout)
        except Exception as error:
            blamed = registry.default().blamed(hook, error)
            if blamed is error:
                raise
            raise blamed from error
        if operator is None and hook in _MAY_LACK:
            return None
        if type(operator) not in known:
            registry.default().check_answer(hook, operator, expected, given)
            known.add(type(operator))
        return operator

    return bind


def required(hook: str, expected: type[Operator], space: Space, **arguments: Any) -> Bind:
    """Return a factory for an operator, or raise an error if no plugin has one.

    Parameters
    ----------
    hook : str
    expected : type
    space : Space
    **arguments
        See :func:`ask`.

    Returns
    -------
    callable
        ``layout -> operator``.

    Raises
    ------
    ValueError
        Where no plugin gives one.
    """
    bind = ask(hook, expected, space, **arguments)
    if bind is None:
        what = hook.removeprefix("structsolve_")
        name = arguments.get("regularizer")
        detail = f" {name!r}" if name is not None else ""
        own = {"oracle": "argmax() or make_oracle()", "parts": "parts() or make_parts()"}.get(what)
        lacks = f", and its {type(space).__name__} has no {own}" if own else ""
        # A space may give a reason.
        why = getattr(space, "no_projection", {}).get(name, "")
        raise ValueError(
            f"no plugin gives the {what}{detail} of structure {space.structure.name!r}{lacks}"
            f"{': ' if why else ''}{why}{registry.default().broken_note()}"
        )
    return bind


def ask_parts(space: Space) -> Bind:
    """Return a factory for the parts operator of a space.

    Parameters
    ----------
    space : Space

    Returns
    -------
    callable
        ``layout -> Parts``.

    Raises
    ------
    ValueError
        Where no plugin gives one.
    """
    return required("structsolve_parts", Parts, space)


def ask_power(space: Space, power: str) -> Bind | None:
    """Return a factory for a power of a space.

    Parameters
    ----------
    space : Space
    power : str
        A key of ``POWERS``.

    Returns
    -------
    callable or None
        ``layout -> operator``; None if the space has no such power.  The callable returns None for
        examples that lack the power although others of the space have it.
    """
    return ask("structsolve_power", POWERS[power], space, power=power)


def ask_projection(space: Space, regularizer: str) -> Bind:
    """Return a factory for the projection called ``regularizer``.

    Parameters
    ----------
    space : Space
    regularizer : str
        Name of the regularizer, such as "entropy".

    Returns
    -------
    callable
        ``layout -> Projection``; raises ValueError for examples that have none.

    Raises
    ------
    ValueError
        Where no plugin gives one.
    """
    bind = required("structsolve_projection", Projection, space, regularizer=regularizer)

    def bound(layout: PartLayout) -> Any:
        projection = bind(layout)
        if projection is None:
            raise ValueError(
                f"structure {space.structure.name!r} has no projection {regularizer!r} for these "
                "examples, only for others: its plugin declines"
            )
        return projection

    return bound


def ask_loss(space: Space, loss: Any) -> Bind:
    """Return a factory for a task loss.

    Parameters
    ----------
    space : Space
    loss : str or object
        The user's loss, "auto" for the space's ``default_loss``; an object with ``bind(space)``
        makes the loss.  A plugin's class of such objects is named with its arguments:
        "night-shift:factor=2".

    Returns
    -------
    callable
        ``layout -> Loss``; the call raises ImportError for one compiled against another C API.

    Raises
    ------
    ValueError
        If no plugin has the loss for this space.
    """
    if isinstance(loss, str) and loss == "auto":
        loss = getattr(space, "default_loss", "hamming")
    if isinstance(loss, LossObject) and not isinstance(loss, type):
        check_types(loss, f"loss {type(loss).__name__}: ")
        bind: Bind = loss.bind(space)
        name = type(loss).__name__
        if not callable(bind):
            raise TypeError(
                f"loss {name}: bind(space) returned {a_type(bind)}, expected a callable that takes "
                "a layout and returns a structsolve.operators.Loss"
            )

        def bind_fresh(layout: PartLayout) -> Any:
            native = bind(layout)
            abi.refuse_stale(native)
            if not isinstance(native, Loss):
                raise TypeError(
                    f"loss {name}: what bind(space) returned made {a_type(native)}, expected a "
                    "structsolve.operators.Loss"
                )
            return native

        return bind_fresh
    loss = str(loss) if isinstance(loss, str) else loss  # which compiled code takes, not numpy.str_
    made = None if isinstance(loss, type) else ask("structsolve_loss", Loss, space, loss=loss)
    if made is None and isinstance(loss, str) and _is_made_by_name(loss):
        return ask_loss(space, registry.default().make("losses", loss))
    if made is None:
        kinds = [kind for kind, one in _LOSS_OBJECTS.items() if _gives(space, one(space))]
        objects = f", or a {' or '.join(kinds)} object" if kinds else ""
        name = loss.__name__ if isinstance(loss, type) else str(loss).partition(":")[0]
        if isinstance(loss, type) or name in registry.default().names("losses"):
            objects += f". {name} is a class: give an object, loss={name}(...)"
        raise ValueError(
            f"unknown loss {loss!r} for structure {space.structure.name!r}"
            f"{did_you_mean(loss, loss_names(space))}; known: {loss_names(space)}{objects}"
            f"{registry.default().broken_note()}"
        )
    return made


def _is_made_by_name(text: str) -> bool:
    """Return whether a name, optionally with arguments, names a class of losses.

    CostMatrix and ClassWeights are given only as objects.
    """
    plugins = registry.default()
    name = plugins.split("losses", text)[0]
    return name.rpartition(":")[2] in {*plugins.names("losses")} - {*_LOSS_OBJECTS}


def loss_names(space: Space) -> list[str]:
    """Return the names of the losses that a space has.

    Parameters
    ----------
    space : Space

    Returns
    -------
    list of str
        Sorted; the names that plugins declare and for which one has a loss of this space.

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.structure.ask import loss_names
    >>> space, _ = structsolve.get_structure("multiclass").make_space([[0.0]] * 2, ["a", "b"])
    >>> loss_names(space)
    ['hamming', 'normalized-hamming', 'zero-one']
    """
    own = (*named_losses(space), *getattr(space, "loss_names", ()))
    names = {*own, *registry.default().loss_names()}
    return sorted(name for name in names if _gives(space, name))


def loss_advice(space: Space, layout: PartLayout, fits: Callable[[Loss], bool]) -> str:
    """Return advice on suitable losses, for messages.

    Parameters
    ----------
    space : Space
    layout : PartLayout
    fits : callable
        Returns whether a loss is suitable.

    Returns
    -------
    str
        "use loss='hamming'", or other suitable losses, or that there is none.
    """
    names = [name for name in loss_names(space) if fits(ask_loss(space, name)(layout))]
    if not names:
        return f"no loss of structure {space.structure.name!r} is: {loss_names(space)}"
    names = ["hamming"] if "hamming" in names else names
    return f"use loss={' or '.join(map(repr, names))}"


# Loss objects for messages, on a space of this many classes.
_LOSS_OBJECTS: dict[str, Callable[[Space], Any]] = {
    "CostMatrix": lambda space: CostMatrix(np.zeros((len(getattr(space, "classes_", "")),) * 2)),
    "ClassWeights": lambda space: ClassWeights({}),
}


def _gives(space: Space, loss: Any) -> bool:
    """Return whether a plugin has this loss for a space."""
    try:
        return ask("structsolve_loss", Loss, space, loss=loss) is not None
    except (ValueError, TypeError, RuntimeError):
        return False
