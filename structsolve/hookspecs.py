"""The hooks that a plugin may implement.

They are called when a problem is made, never per example.  They return native objects, or Python
objects that adapters make native.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pluggy

if TYPE_CHECKING:
    from .examples.packed import Examples
    from .io.reader import Reader
    from .lp import Backend, Polytopes
    from .operators import Loss, Operator, Oracle, Parts, Projection
    from .part_layout import PartLayout
    from .protocols import Binder, Estimator, LossObject, Scorer, SurrogateObject
    from .search.base import Search
    from .solvers.base import Solver
    from .structure.base import Space, Structure

Made = TypeVar("Made", covariant=True)

hookspec = pluggy.HookspecMarker("structsolve")
hookimpl = pluggy.HookimplMarker("structsolve")

#: Hooks that the next major removes, and what to write instead.
FORMER = {"structsolve_loss_names": "list the names in structsolve_losses"}

#: Hooks whose answers were bound to examples at once in contract 1.0, by this argument.
BOUND_BEFORE = {"structsolve_max_min": "layout", "structsolve_polytope": "examples"}

#: The number of what structsolve.plugin and the hooks promise, ``MAJOR.MINOR``.
CONTRACT = "1.3"


@dataclass(frozen=True)
class Lazy:
    """An object of a module that is imported when the object is first used.

    As a factory of :class:`Named`, it makes no plugin import what a user may not need.

    Parameters
    ----------
    path : str
        ``"package.module:Name"``, of the module that defines the object.

    Raises
    ------
    ValueError
        If the path has another form.

    Examples
    --------
    >>> from structsolve.hookspecs import Lazy
    >>> Lazy("math:sqrt")(9)
    3.0
    """

    path: str

    def __post_init__(self) -> None:
        module, _, name = self.path.partition(":")
        if not module or not name.isidentifier():
            raise ValueError(f"path is {self.path!r}, expected 'package.module:Name'")

    def __call__(self, *arguments: Any, **params: Any) -> Any:
        return self.load()(*arguments, **params)

    def load(self) -> Any:
        """Import the module, and return the object.

        Returns
        -------
        object
        """
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(module), name)

    def imported(self) -> Any:
        """Return the object if its module is imported.

        Returns
        -------
        object or None
        """
        module, _, name = self.path.partition(":")
        return getattr(sys.modules.get(module), name, None)


@dataclass(frozen=True)
class Named(Generic[Made]):
    """A named object that a plugin provides.

    Parameters
    ----------
    name : str
        The name for users, without a colon, which separates distribution, name and arguments.
    factory : callable
        Makes the object from keyword arguments; a :class:`Lazy` one is imported at first use.
    summary : str
        One line for ``structsolve plugins``.

    Raises
    ------
    TypeError
        If the name is not a string, or the factory is not callable.
    ValueError
        If the name has a colon, as in "distribution:name".

    Examples
    --------
    >>> from structsolve import Named
    >>> Named("mine", dict, "an example").name
    'mine'
    """

    name: str
    factory: Callable[..., Made]
    summary: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name is {self.name!r}, expected a non-empty string")
        if ":" in self.name:
            raise ValueError(
                f"name is {self.name!r}, expected one without a colon: that divides a "
                "distribution, a name and arguments"
            )
        if not callable(self.factory):
            raise TypeError(f"factory of {self.name!r} is not callable: {self.factory!r}")


@hookspec
def structsolve_structures() -> Sequence[Named[Structure]]:
    """Return the structures that this plugin provides.

    Returns
    -------
    sequence of Named
        Factories take the structure's parameters and make a ``Structure``.

    Examples
    --------
    A complete plugin::

        from structsolve import Named, hookimpl

        @hookimpl
        def structsolve_structures():
            return [Named("ring", RingStructure, "cyclic sequences")]

    with the entry point ``[project.entry-points.structsolve]`` ``ring = "my_package.plugin"``.
    """
    return []


# Hooks for operators return a callable that takes a structsolve.part_layout.PartLayout and returns
# the operator for its examples: the operator's class, or a functools.partial of it.  They are
# called once per space.  With hookimpl(trylast=True) they declare what a class of spaces of your
# own has; without, they replace operators of others.  Spaces may have methods instead
# (make_oracle() ...).


@hookspec(firstresult=True)
def structsolve_oracle(space: Space) -> Binder[Oracle] | None:
    """Return a factory for the oracle of a space.

    Parameters
    ----------
    space : structsolve.Space

    Returns
    -------
    callable or None
        ``layout -> structsolve.operators.Oracle``; None lets other plugins answer.

    Examples
    --------
    A faster decoder for chains, in a separate package::

        from structsolve import hookimpl

        @hookimpl
        def structsolve_oracle(space):
            if space.structure.name == "chain":
                return MyViterbi     # a cdef subclass of Oracle; MyViterbi(layout) binds it
    """


@hookspec(firstresult=True)
def structsolve_power(space: Space, power: str) -> Binder[Operator] | None:
    """Return a factory for a power of a space.

    Parameters
    ----------
    space : structsolve.Space
    power : {"kbest", "max-marginals", "augmented", "relaxation", "cones", "counts"}
        The classes of these operators are in ``structsolve/operators.pxd``.

    Returns
    -------
    callable or None
        ``layout -> operator``; None lets other plugins answer.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_power(space, power):
            if space.structure.name == "ring" and power == "kbest":
                return RingKBest     # a cdef subclass of KBest
    """


@hookspec(firstresult=True)
def structsolve_parts(space: Space) -> Binder[Parts] | None:
    """Return a factory for the parts operator of a space.

    Parameters
    ----------
    space : structsolve.Space

    Returns
    -------
    callable or None
        ``layout -> structsolve.operators.Parts``; None lets other plugins answer.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_parts(space):
            if space.structure.name == "ring":
                return RingParts     # a cdef subclass of Parts
    """


@hookspec(firstresult=True)
def structsolve_projection(space: Space, regularizer: str) -> Binder[Projection] | None:
    """Return a factory for a projection of a space.

    Parameters
    ----------
    space : structsolve.Space
    regularizer : str
        Name of the projection, such as "entropy".

    Returns
    -------
    callable or None
        ``layout -> structsolve.operators.Projection``; None lets other plugins answer.  The factory
        may return None too, for examples without the projection.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_projection(space, regularizer):
            if space.structure.name == "ring" and regularizer == "entropy":
                return RingSumProduct     # a cdef subclass of Projection
    """


@hookspec(firstresult=True)
def structsolve_max_min(space: Space, loss: Loss, layout: PartLayout) -> Binder[Projection] | None:
    """Return a factory for ``argmax_mu min_nu nu' A mu + <theta, mu>`` in closed form.

    Without it, the max-min margin is computed over mixtures of labels, or by mirror prox.

    Parameters
    ----------
    space : structsolve.Space
    loss : structsolve.operators.Loss
        Bound to the same examples; A is the matrix of its costs.
    layout : structsolve.part_layout.PartLayout
        Of contract 1.0, where the answer was bound to it.

    Returns
    -------
    callable or None
        ``layout -> structsolve.operators.Projection``, whose G is the minimum over nu.  None lets
        other plugins answer.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_max_min(space, loss):
            if isinstance(loss, RingLoss):
                return partial(RingMaxMin, loss)     # a cdef subclass of Projection
    """


@hookspec(firstresult=True)
def structsolve_polytope(space: Space, examples: Examples) -> Binder[Polytopes] | None:
    """Return a factory for the polytopes of examples, so that any LP solver can decode.

    Parameters
    ----------
    space : structsolve.Space
    examples : structsolve.Examples
        Of contract 1.0, where the answer was bound to them.

    Returns
    -------
    callable or None
        ``layout -> structsolve.lp.Polytopes``; ``layout.examples`` are the examples.  None lets
        other plugins answer.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_polytope(space):
            if space.structure.name == "ring":
                return RingPolytopes     # a structsolve.lp.Polytopes, RingPolytopes(layout)
    """


@hookspec(firstresult=True)
def structsolve_loss(space: Space, loss: Any) -> Binder[Loss] | None:
    """Return a factory for a task loss of a space.

    Parameters
    ----------
    space : structsolve.Space
    loss : str or object
        The ``loss`` that the user gave.

    Returns
    -------
    callable or None
        ``layout -> structsolve.operators.Loss``; None lets other plugins answer.

    Examples
    --------
    One more loss for every structure with node labels::

        @hookimpl
        def structsolve_loss(space, loss):
            if loss == "ends-only" and space.structure.name == "chain":
                return EndsOnly     # a cdef subclass of Loss
    """


@hookspec
def structsolve_losses() -> Sequence[Named[LossObject] | str]:
    """Return losses by name: classes of loss objects, and the names of ``structsolve_loss``.

    Users pass a loss object as ``loss`` if the loss has parameters.  It is a
    ``structsolve.utils.params.Params``.  Its ``bind(space)`` returns a factory for the native
    loss, or ``structsolve_loss`` knows it.  Model files hold its parameters under the name that
    is declared here.

    Returns
    -------
    sequence of Named or str
        Factories take the loss object's parameters.  A string is a name without parameters.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_losses():
            return ["ends-only", Named("Ends", Ends, "errors at the ends, Ends:weight=2")]
    """
    return []


@hookspec
def structsolve_loss_names() -> Sequence[str]:
    """Return the names of ``structsolve_loss``: the former hook of contract 1.0.

    Returns
    -------
    sequence of str

    Examples
    --------
    ::

        @hookimpl
        def structsolve_loss_names():     # write structsolve_losses()
            return ["ends-only"]
    """
    return []


@hookspec
def structsolve_surrogates() -> Sequence[Named[SurrogateObject]]:
    """Return surrogates by name.

    Returns
    -------
    sequence of Named
        Factories take the arguments behind ``name:``, if any, and make an object whose
        ``bind(task)`` returns the native surrogate: in plain Python, a
        :class:`structsolve.surrogates.CutSurrogate`.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_surrogates():
            return [Named("margin", Margin, "margin rescaling")]
    """
    return []


@hookspec
def structsolve_solvers() -> Sequence[Named[Solver]]:
    """Return solvers by name.

    Returns
    -------
    sequence of Named
        Factories take the solver's parameters and make a solver.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_solvers():
            return [Named("my-solver", MySolver, "what it does")]
    """
    return []


@hookspec
def structsolve_searches() -> Sequence[Named[Search]]:
    """Return searches for the most violated label, by name.

    Returns
    -------
    sequence of Named
        Factories take the maximum number of oracle calls of one search and, if users give it, a
        tolerance.  They make a native ``structsolve.search.base.Search``.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_searches():
            return [Named("golden", GoldenSection, "golden sections of the label plane")]
    """
    return []


@hookspec
def structsolve_lp_backends() -> Sequence[Named[Backend]]:
    """Return solvers for the linear programs of structures that declare their polytope.

    Returns
    -------
    sequence of Named
        Factories take the arguments behind ``name:``, if any, and make a
        ``structsolve.lp.Backend``.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_lp_backends():
            return [Named("my-lp", MyBackend, "what it does")]
    """
    return []


@hookspec
def structsolve_readers() -> Sequence[Named[Reader]]:
    """Return readers of data files, by the names of their formats, for the shell.

    Returns
    -------
    sequence of Named
        Factories take the result of a reader's ``get_params()``, and make a
        ``structsolve.io.reader.Reader``.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_readers():
            return [Named("arff", ArffReader, "Weka's files: --format arff")]
    """
    return []


@hookspec
def structsolve_rival_indexes() -> Sequence[Named[Any]]:
    """Return indexes of rivals for very many classes, by name.

    Returns
    -------
    sequence of Named
        Factories take the arguments behind ``name:``, if any, and make a
        ``structsolve.plugins.extreme.solvers.rivals.RivalIndex``.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_rival_indexes():
            return [Named("my-index", MyIndex, "my-index:TREES, a forest of projections")]
    """
    return []


@hookspec
def structsolve_metrics() -> Sequence[Named[Scorer]]:
    """Return metrics by name, for ``score(X, y, metric=)`` and :func:`structsolve.get_scorer`.

    Returns
    -------
    sequence of Named
        Factories take the arguments behind ``name:``, if any, and make a scorer in scikit-learn's
        form: ``scorer(estimator, X, y) -> float``, greater is better.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_metrics():
            return [Named("first-right", lambda: first_right, "share of first labels")]
    """
    return []


@hookspec
def structsolve_estimators() -> Sequence[Named[Estimator]]:
    """Return estimators by the names of their classes.

    ``structsolve.NAME`` is the class, ``structsolve fit --estimator NAME`` trains it, and
    :func:`structsolve.load` reads its files by the class method
    ``from_file(meta, arrays, kernel)``: ``meta["estimator"]`` is the name, ``arrays`` hold what
    ``save`` wrote with :func:`structsolve.utils.container.write`.  Subclasses of
    :class:`structsolve.StructuredSVM` have both methods.  A class may choose by name the arrays
    that ``load(mmap=True)`` maps, ``mapped_arrays``, and the types of its arrays, ``array_types``,
    pairs of a pattern and a type, beside ``structsolve.estimators.codec.ARRAY_TYPES``.
    If the shell shall predict and score in another way, ``shell`` is the name of a module with
    ``predict(model, args)`` and ``score(model, args)``.

    Returns
    -------
    sequence of Named
        Factories are the classes, or :class:`structsolve.hookspecs.Lazy` ones.

    Examples
    --------
    ::

        @hookimpl
        def structsolve_estimators():
            return [Named("RingSVM", Lazy("my_package.estimator:RingSVM"), "rings of labels")]
    """
    return []
