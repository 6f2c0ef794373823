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


# Hooks for operators give a callable that takes a structsolve.part_layout.PartLayout and returns
# the operator for its examples: its class itself, or a functools.partial of it.  They are asked
# once per space.  A structure of your own needs none of them: its space has methods
# (make_oracle() and so on); hooks are for serving other people's structures.


@hookspec(firstresult=True)
def structsolve_oracle(space: Any) -> Any:
    """Return what binds an oracle of ``space``, or None to let others answer.

    Example: a faster decoder for chains, in a package of its own::

        from structsolve import hookimpl

        @hookimpl
        def structsolve_oracle(space):
            if space.structure.name == "chain":
                return MyViterbi     # a cdef subclass of Oracle; MyViterbi(layout) binds it
    """


@hookspec(firstresult=True)
def structsolve_power(space: Any, power: str) -> Any:
    """Return what binds the operator of a power of ``space``, or None.

    Powers are ``"kbest"``, ``"max-marginals"``, ``"augmented"``, ``"relaxation"``, ``"cones"`` and
    ``"counts"``; their classes are in ``structsolve/operators.pxd``.

    Example::

        @hookimpl
        def structsolve_power(space, power):
            if space.structure.name == "ring" and power == "kbest":
                return RingKBest     # a cdef subclass of KBest
    """


@hookspec(firstresult=True)
def structsolve_parts(space: Any) -> Any:
    """Return what binds the Parts operator of ``space``, or None.

    Example::

        @hookimpl
        def structsolve_parts(space):
            if space.structure.name == "ring":
                return RingParts     # a cdef subclass of Parts
    """


@hookspec(firstresult=True)
def structsolve_projection(space: Any, regularizer: str) -> Any:
    """Return what binds the projection called ``regularizer``, such as "entropy", or None.

    Example::

        @hookimpl
        def structsolve_projection(space, regularizer):
            if space.structure.name == "ring" and regularizer == "entropy":
                return RingSumProduct     # a cdef subclass of Projection
    """


@hookspec(firstresult=True)
def structsolve_max_min(space: Any, loss: Any, layout: Any) -> Any:
    """Return ``argmax_mu min_nu nu' A mu + <theta, mu>`` for a native loss in closed form, or None.

    It is a ``Projection`` whose G is the minimum over nu, for the examples of ``layout``.  Without
    an answer the max-min margin is sought among mixtures of labels, or by mirror prox.

    Example::

        @hookimpl
        def structsolve_max_min(space, loss, layout):
            if isinstance(loss, RingLoss):
                return RingMaxMin(loss, layout)     # a cdef subclass of Projection
    """


@hookspec(firstresult=True)
def structsolve_polytope(space: Any, examples: Any) -> Any:
    """Return the polytopes of ``space`` on ``examples``, so that any LP solver may decode, or None.

    Example::

        @hookimpl
        def structsolve_polytope(space, examples):
            if space.structure.name == "ring":
                return RingPolytopes(space, examples)     # a structsolve.lp.Polytopes
    """


@hookspec(firstresult=True)
def structsolve_loss(space: Any, loss: Any) -> Any:
    """Return what binds the task loss ``loss`` (a name or an object) of ``space``, or None.

    Example: one more loss for every structure with node labels::

        @hookimpl
        def structsolve_loss(space, loss):
            if loss == "ends-only" and space.structure.name == "chain":
                return EndsOnly     # a cdef subclass of Loss
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
def structsolve_losses() -> Sequence[Named]:
    """Return classes of loss objects, so that models trained with them can be saved.

    A loss object is what users give as ``loss`` where a name does not say enough.  It is a
    ``structsolve.utils.params.Params``, and has ``bind(space)``, which returns what binds the
    native loss to a layout; or ``structsolve_loss`` knows it.  Model files hold its parameters,
    under the name that is declared here.

    Example::

        @hookimpl
        def structsolve_losses():
            return [Named("EndsOnly", EndsOnly, "errors at the ends of sequences")]
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
def structsolve_searches() -> Sequence[Named]:
    """Return searches for the most violated label, by name.

    A factory takes the most oracle calls of one search, and, where users give it, a tolerance.  It
    makes a native ``structsolve.search.base.Search``.

    Example::

        @hookimpl
        def structsolve_searches():
            return [Named("golden", GoldenSection, "golden sections of the label plane")]
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
