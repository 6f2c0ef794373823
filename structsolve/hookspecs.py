"""The hooks a plugin may implement.  They are called when a problem is put together, never per
example; what they return is native, or a Python object that the adapters make native."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pluggy

hookspec = pluggy.HookspecMarker("structsolve")
hookimpl = pluggy.HookimplMarker("structsolve")


@dataclass(frozen=True)
class Named:
    """Something a plugin brings, by name.

    Parameters
    ----------
    name : str
        What users write.
    factory : callable
        Makes the object from keyword arguments.
    summary : str
        One line for ``structsolve plugins``.
    """

    name: str
    factory: Callable[..., Any]
    summary: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name is {self.name!r}, expected a non-empty string")
        if not callable(self.factory):
            raise TypeError(f"factory of {self.name!r} is not callable: {self.factory!r}")


@hookspec
def structsolve_structures() -> Sequence[Named]:
    """Return the structures this plugin brings.

    Example of a whole plugin::

        from structsolve import Named, hookimpl

        @hookimpl
        def structsolve_structures():
            return [Named("ring", RingStructure, "cyclic sequences")]

    with the entry point ``[project.entry-points.structsolve]`` ``ring = "my_package.plugin"``.
    """
    return []


@hookspec(firstresult=True)
def structsolve_oracle(space: Any, examples: Any) -> Any:
    """Return the oracle of ``space`` on ``examples``, or None to let others answer.

    Example: a faster decoder for chains, in a package of its own::

        from structsolve import hookimpl

        @hookimpl
        def structsolve_oracle(space, examples):
            if space.structure.name == "chain":
                return MyViterbi(space, examples)     # a cdef subclass of Oracle
    """


@hookspec(firstresult=True)
def structsolve_parts(space: Any, examples: Any) -> Any:
    """Return the Parts operator of ``space`` on ``examples``, or None.

    Example::

        @hookimpl
        def structsolve_parts(space, examples):
            if isinstance(space, RingSpace):
                return RingParts(space, examples)     # a cdef subclass of Parts
    """


@hookspec(firstresult=True)
def structsolve_projection(space: Any, examples: Any, regularizer: str) -> Any:
    """Return the projection named ``regularizer`` ("entropy", "euclidean", ...), or None.

    Example::

        @hookimpl
        def structsolve_projection(space, examples, regularizer):
            if isinstance(space, RingSpace) and regularizer == "entropy":
                return RingSumProduct(space, examples)     # a cdef subclass of Projection
    """


@hookspec(firstresult=True)
def structsolve_max_min(space: Any, examples: Any, loss: Any, potentials: Any) -> Any:
    """Return ``argmax_mu min_nu nu' A mu + <theta, mu>`` for a native loss in closed form, or None.

    It is a ``Projection`` whose G is the minimum over nu.  Without an answer the max-min margin is
    sought among mixtures of labels, or by mirror prox.

    Example::

        @hookimpl
        def structsolve_max_min(space, examples, loss, potentials):
            if isinstance(space, RingSpace) and isinstance(loss, RingLoss):
                return RingMaxMin(space, examples, loss)     # a cdef subclass of Projection
    """


@hookspec(firstresult=True)
def structsolve_polytope(space: Any, examples: Any) -> Any:
    """Return the polytopes of ``space`` on ``examples``, so that any LP solver may decode, or None.

    Example::

        @hookimpl
        def structsolve_polytope(space, examples):
            if isinstance(space, RingSpace):
                return RingPolytopes(space, examples)     # a structsolve.lp.Polytopes
    """


@hookspec(firstresult=True)
def structsolve_loss(space: Any, examples: Any, loss: Any) -> Any:
    """Return the loss ``loss`` (a name or an object) against the labels of ``examples``, or None.

    Example: one more loss for every structure with node labels::

        @hookimpl
        def structsolve_loss(space, examples, loss):
            if loss == "ends-only" and space.structure.name == "chain":
                return EndsOnly(examples)     # a cdef subclass of Loss
    """


@hookspec
def structsolve_loss_names() -> Sequence[str]:
    """Return the names that ``structsolve_loss`` understands, for messages and listings.

    Example::

        @hookimpl
        def structsolve_loss_names():
            return ["ends-only"]
    """
    return []


@hookspec
def structsolve_surrogates() -> Sequence[Named]:
    """Return surrogates by name; a factory takes no argument and makes a Surrogate description.

    Example::

        @hookimpl
        def structsolve_surrogates():
            return [Named("margin", Margin, "margin rescaling")]
    """
    return []


@hookspec
def structsolve_solvers() -> Sequence[Named]:
    """Return solvers by name.

    Example::

        @hookimpl
        def structsolve_solvers():
            return [Named("my-solver", MySolver, "what it does")]
    """
    return []


@hookspec
def structsolve_lp_backends() -> Sequence[Named]:
    """Return solvers for the linear programs of structures that declare their polytope.

    Example::

        @hookimpl
        def structsolve_lp_backends():
            return [Named("my-lp", MyBackend, "what it does")]
    """
    return []
