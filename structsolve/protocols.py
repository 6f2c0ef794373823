"""What hooks, methods of structures and entry points give, where no base class says it.

All other answers are objects of a class: ``structsolve.operators``, ``Polytopes``, ``Reader`` ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    import argparse

    import numpy as np

    from .operators import Loss
    from .part_layout import PartLayout
    from .surrogates.base import Surrogate

Bound = TypeVar("Bound", covariant=True)


class Binder(Protocol[Bound]):
    """Makes an operator for packed examples: a class, a ``functools.partial`` of it, a function.

    All hooks and methods for operators return one: ``Binder[Oracle]``, ``Binder[Polytopes]`` ...
    """

    def __call__(self, layout: PartLayout, /) -> Bound | None:
        """Return the operator of the examples.

        Parameters
        ----------
        layout : PartLayout
            Their sizes; ``layout.examples`` are the examples.

        Returns
        -------
        object or None
            None for examples that lack what others have; not for an oracle, parts or a loss.
        """


@runtime_checkable
class LossObject(Protocol):
    """What users give as ``loss`` if it has parameters: a ``Params``, such as a ``TaskLoss``."""

    def bind(self, space: Any) -> Binder[Loss]:
        """Return a factory for the native loss.

        Parameters
        ----------
        space : Space

        Returns
        -------
        callable
            ``layout -> structsolve.operators.Loss``.
        """


@runtime_checkable
class SurrogateObject(Protocol):
    """What users give as ``surrogate``, or its name makes: a ``Params``."""

    def bind(self, task: Any) -> Surrogate:
        """Return the native surrogate.

        Parameters
        ----------
        task : structsolve.surrogates.task.Task

        Returns
        -------
        structsolve.surrogates.base.Surrogate
        """


class Scorer(Protocol):
    """A metric: what a factory of ``structsolve_metrics`` makes; a scorer of scikit-learn."""

    def __call__(self, estimator: Any, X: Any, y: Any, /) -> float:
        """Score predictions.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X, y : data as users give it

        Returns
        -------
        float
            Greater is better.
        """


@runtime_checkable
class Estimator(Protocol):
    """A class of ``structsolve_estimators``, and its objects.

    Optional attributes: ``array_types``, ``mapped_arrays`` and ``shell``, the name of a
    :class:`ShellModule`.
    """

    def fit(self, X: Any, y: Any) -> Any:
        """Train.

        Parameters
        ----------
        X, y : data as users give it

        Returns
        -------
        estimator
            The same.
        """

    def predict(self, X: Any) -> Any:
        """Return labels in the form of y.

        Parameters
        ----------
        X : data as users give it

        Returns
        -------
        list or ndarray
        """

    def save(self, path: Any) -> None:
        """Write a file with ``meta["estimator"]``, by ``structsolve.utils.container.write``.

        Parameters
        ----------
        path : path
        """

    @classmethod
    def from_file(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any) -> Any:
        """Return the fitted model of a file.

        Parameters
        ----------
        meta, arrays : dict
            As ``save`` wrote them.
        kernel : callable or None
            The argument of :func:`structsolve.load`.

        Returns
        -------
        estimator
        """


@runtime_checkable
class ShellModule(Protocol):
    """The module that an estimator names as ``shell``."""

    def predict(self, model: Any, args: argparse.Namespace) -> None:
        """Do what ``structsolve predict`` does with such a model.

        Parameters
        ----------
        model : estimator
        args : Namespace
        """

    def score(self, model: Any, args: argparse.Namespace) -> None:
        """Do what ``structsolve score`` does with such a model.

        Parameters
        ----------
        model : estimator
        args : Namespace
        """


@runtime_checkable
class FitOptions(Protocol):
    """A module of the entry points ``structsolve_fit``: an estimator's options of the shell.

    ``ABOUT`` says what they are for, in errors; ``OWN`` are their names.  ``CHOSEN_BY`` may name
    one that stands for ``--estimator NAME``, and ``trained_text(model)`` make the line "trained".
    """

    ABOUT: str
    OWN: Sequence[str]

    def add_options(self, group: Any) -> None:
        """Add the options of ``OWN``.

        Parameters
        ----------
        group : argument group of argparse
        """

    def check(self, args: argparse.Namespace, hierarchy: bool) -> None:
        """Refuse options that do not fit, before data are read.

        Parameters
        ----------
        args : Namespace
        hierarchy : bool
            Whether a hierarchy is given, or comes with the data.
        """

    def make_model(self, args: argparse.Namespace, structure: Any) -> Any:
        """Return the estimator.

        Parameters
        ----------
        args : Namespace
        structure : Structure or str

        Returns
        -------
        estimator or None
        """


class Command(Protocol):
    """A function of the entry points ``structsolve_commands``."""

    def __call__(self, parser: argparse.ArgumentParser, /) -> Callable[[argparse.Namespace], None]:
        """Add the options of a command, and return the function that runs it.

        Parameters
        ----------
        parser : ArgumentParser

        Returns
        -------
        callable
        """


@runtime_checkable
class Featurizer(Protocol):
    """What ``Structure.make_featurizer`` returns."""

    def fit(self, sentences: Any) -> Any:
        """Learn features.

        Parameters
        ----------
        sentences : list

        Returns
        -------
        object
            The same.
        """

    def transform(self, sentences: Any) -> Any:
        """Return X.

        Parameters
        ----------
        sentences : list

        Returns
        -------
        X
        """

    def get_state(self) -> dict[str, Any]:
        """Return the arguments of ``make_featurizer`` that make it again.

        Returns
        -------
        dict
        """


class DeviceOperations(Protocol):
    """What ``Space.device_operations`` returns: functions of torch for padded sequences.

    ``structsolve/plugins/chain/_device.py`` says what they take and return.
    """

    pays: Callable[..., bool]
    log_partition: Callable[..., Any]
    best: Callable[..., Any]
    score: Callable[..., Any]


def require(given: Any, protocol: type, what: str) -> None:
    """Refuse an object that lacks members of a protocol.

    Parameters
    ----------
    given : object
        Of a plugin: an object, a class or a module.
    protocol : type
        One of this file.
    what : str
        The object, for the message.

    Raises
    ------
    TypeError
        The message names what is missing.

    Examples
    --------
    >>> import math
    >>> from structsolve.protocols import LossObject, require
    >>> require(math, LossObject, "loss 'mine'")
    Traceback (most recent call last):
    TypeError: loss 'mine' has no bind, expected what structsolve.plugin.LossObject has
    """
    members = {*vars(protocol), *getattr(protocol, "__annotations__", ())}
    missing = sorted(m for m in members if not m.startswith("_") and not hasattr(given, m))
    if missing:
        raise TypeError(
            f"{what} has no {', '.join(missing)}, expected what structsolve.plugin."
            f"{protocol.__name__} has"
        )
