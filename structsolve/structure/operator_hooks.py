"""Hooks of operators for plugins that declare where their operators are.

A hook of one operator is a line, one of several a table; whatever else a plugin answers is a
function.  All are hooks as ``structsolve.hookimpl`` marks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from typing import Any

from ..hookspecs import Lazy, hookimpl
from ..operators import IntegralRelaxation

#: Makes a factory, ``layout -> operator``, of an operator that takes more than a layout.
MakeFactory = Callable[[Any, Any], Callable[..., Any]]


class OperatorHooks:
    """Makes the hooks with which a plugin declares the operators of its spaces.

    They answer for these spaces alone, and import an operator when it is asked for: listing
    structures needs none.

    Parameters
    ----------
    package : str
        Has the modules of the operators; the plugin's ``__name__``.
    spaces : type
        The class of the spaces.

    Examples
    --------
    >>> from structsolve.plugins.tree import TreeSpace, TreeStructure
    >>> from structsolve.structure.operator_hooks import OperatorHooks
    >>> hooks = OperatorHooks("structsolve.plugins.tree", TreeSpace)
    >>> structsolve_oracle = hooks.operator("_oracle:TreeOracle")
    >>> space, _ = TreeStructure().make_space(*TreeStructure().sample(0))
    >>> structsolve_oracle(space).__name__
    'TreeOracle'
    >>> structsolve_oracle("a space of another plugin")
    """

    def __init__(self, package: str, spaces: type) -> None:
        self.package, self.spaces = package, spaces

    def hookimpl(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        """Mark a function as the hook's answer for these spaces.

        Parameters
        ----------
        answer : callable
            Takes a space and the further arguments of the hook.

        Returns
        -------
        callable
            Returns None for spaces of others.
        """

        @wraps(answer)
        def answer_for_ours(space: Any, *asked: Any) -> Any:
            return answer(space, *asked) if isinstance(space, self.spaces) else None

        return hookimpl(answer_for_ours, trylast=True)

    def operator(self, home: str, bind: MakeFactory | None = None) -> Callable[..., Any]:
        """Return a hook of one operator: the oracle, the parts, the polytopes.

        Parameters
        ----------
        home : str
            ``"module:Name"`` of the operator, below the package.
        bind : callable, optional
            ``(space, operator) -> factory``; without it the operator takes a layout.

        Returns
        -------
        callable
        """
        return self.hookimpl(lambda space: self._bound(space, home, bind))

    def powers(
        self, homes: Mapping[str, str], bind: MakeFactory | None = None, integral: bool = False
    ) -> Callable[..., Any]:
        """Return the hook of powers.

        Parameters
        ----------
        homes : mapping of str to str
            Where each operator is, by the name of the power.
        bind : callable, optional
            See :meth:`operator`.
        integral : bool, default=False
            The corners of the relaxation are labels: the oracle answers it.

        Returns
        -------
        callable
        """

        def power_of(space: Any, power: str) -> Any:
            if integral and power == "relaxation":
                return integral_relaxation(space)
            return self._bound(space, homes.get(power), bind)

        return self.hookimpl(power_of)

    def projections(
        self, homes: Mapping[str, str], bind: MakeFactory | None = None
    ) -> Callable[..., Any]:
        """Return the hook of projections.

        Parameters
        ----------
        homes : mapping of str to str
            Where each operator is, by the name of the regularizer.
        bind : callable, optional
            See :meth:`operator`.

        Returns
        -------
        callable
        """
        return self.hookimpl(
            lambda space, regularizer: self._bound(space, homes.get(regularizer), bind)
        )

    def _bound(self, space: Any, home: str | None, bind: MakeFactory | None) -> Any:
        if home is None:
            return None
        operator = _load(f"{self.package}.{home}")
        return operator if bind is None else bind(space, operator)


@cache
def _load(path: str) -> Any:
    return Lazy(path).load()


def with_space(space: Any, operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return a factory for an operator that takes the space and a layout.

    Parameters
    ----------
    space : Space
    operator : callable

    Returns
    -------
    callable
    """
    return partial(operator, space)


def with_examples(space: Any, operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return a factory for an operator that takes the space and packed examples.

    Parameters
    ----------
    space : Space
    operator : callable

    Returns
    -------
    callable
    """
    return lambda layout: operator(space, layout.examples)


def integral_relaxation(space: Any) -> Callable[..., Any]:
    """Return a factory for a relaxation whose corners are labels: the oracle answers it.

    Parameters
    ----------
    space : Space

    Returns
    -------
    callable
    """
    return partial(IntegralRelaxation, space.make_oracle(), space.make_parts())
