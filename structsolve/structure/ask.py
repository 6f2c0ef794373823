"""The operators of a structure, as plugins give them."""

from __future__ import annotations

from typing import Any

from .. import registry
from ..examples.packed import Examples
from ..operators import Loss, Operator, Parts, Projection
from .base import Space


def ask_parts(space: Space, examples: Examples) -> Any:
    """Return the parts operator that a plugin gives for this space."""
    return required("structsolve_parts", Parts, space, examples=examples)


def ask_loss(space: Space, examples: Examples, loss: Any) -> Any:
    """Return the native loss called ``loss`` against the labels of ``examples``.

    An object with ``bind(space, examples)`` makes its own.
    """
    if hasattr(loss, "bind"):
        return loss.bind(space, examples)
    found = registry.default().ask(
        "structsolve_loss", Loss, space=space, examples=examples, loss=loss
    )
    if found is None:
        known = getattr(space, "loss_names", None) or registry.default().loss_names()
        raise ValueError(
            f"unknown loss {loss!r} for structure {space.structure.name!r}; known: {list(known)}, "
            "or a CostMatrix or ClassWeights object"
            f"{registry.default().broken_note()}"
        )
    return found


def ask_projection(space: Space, examples: Examples, regularizer: str) -> Any:
    """Return the projection called ``regularizer``."""
    return required(
        "structsolve_projection", Projection, space, examples=examples, regularizer=regularizer
    )


def required(hook: str, expected: type[Operator], space: Space, **arguments: Any) -> Any:
    """Return what the first plugin answers to ``hook``; raise ValueError where none does."""
    found = registry.default().ask(hook, expected, space=space, **arguments)
    if found is None:
        what = hook.removeprefix("structsolve_")
        name = arguments.get("regularizer")
        detail = f" {name!r}" if name is not None else ""
        # A space may know why there cannot be one.
        why = getattr(space, "no_projection", {}).get(name, "")
        raise ValueError(
            f"no plugin gives the {what}{detail} of structure {space.structure.name!r}"
            f"{': ' if why else ''}{why}{registry.default().broken_note()}"
        )
    return found
