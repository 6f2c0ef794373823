"""Solvers: parameters, and runs that make passes and certificates."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import registry
from ..surrogates.given_marginals import holds_marginals
from ..utils.params import Params, check_choice
from .problem import Problem
from .run import Run, Start

# Solvers that take problems of any structure; of those that can, a refusal names all.
GENERAL = ("bcfw", "sgd", "cutting-plane")


class Solver(Params):
    """Parameters of an algorithm; :meth:`start` makes a run of it.

    Attributes
    ----------
    name : str
    free_coordinates : bool
        Can leave coordinates unpenalised.
    incremental : bool
        Can take steps on examples that are seen only once (``partial_fit``).
    minimises : bool
        Approaches the minimum of the objective; else records may lack a primal.
    needs_convex : bool
        Needs cuts that lie below the surrogate everywhere.
    needs_dual : bool
        Needs a surrogate with a dual, affine in the margin.
    needs_weights : bool
        Updates feature weights, which kernel models do not have.
    uses_gram : bool
        Uses the Gram matrices of the examples.
    takes_marginals : bool
        Needs only cuts, so that marginals may stand for labels.
    squared_norm : bool
        Penalises weights by their squared norm alone, so that training may turn the features:
        columns that occur in one row only become one.
    """

    name = "solver"
    free_coordinates = False
    incremental = False
    minimises = True
    needs_convex = False
    needs_dual = False
    needs_weights = False
    uses_gram = True
    takes_marginals = False
    squared_norm: bool = True

    @classmethod
    def suits(cls, problem: Any) -> bool:
        """Return whether it is known to train a problem sooner than others.

        ``BCFW`` and ``"auto"``, with all settings at their defaults, hand such a problem to it.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        bool
            False by default.
        """
        return False

    @classmethod
    def closes(cls, problem: Any) -> bool:
        """Return whether few of its passes close a gap that those of others leave open.

        ``"auto"`` hands a problem to it whose gap would take very many passes, at a small alpha.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        bool
            False by default.
        """
        return False

    def start(self, start: Start) -> Run:
        """Begin an optimisation.

        Parameters
        ----------
        start : Start

        Returns
        -------
        Run

        Raises
        ------
        ValueError
            If a parameter is not allowed, or :meth:`check` refuses the problem.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement start()")

    def check_choice(self, name: str, known: tuple[str, ...]) -> None:
        """Raise ValueError unless a parameter is one of ``known``.

        Parameters
        ----------
        name : str
            The parameter's.
        known : tuple of str
        """
        check_choice(f"{type(self).__name__}: {name}", getattr(self, name), known)

    def check_integer(self, name: str, least: int) -> None:
        """Raise ValueError unless a parameter is an integer of at least ``least``.

        Parameters
        ----------
        name : str
            The parameter's.
        least : int
        """
        value = getattr(self, name)
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(
                f"{type(self).__name__}: {name} is {value!r}, expected an integer >= {least}"
            )

    def check_kernel(self) -> None:
        """Raise ValueError if this solver cannot train a kernel model."""
        if self.needs_weights:
            raise ValueError(
                f"solver {self.name!r} moves weights of features, which a kernel model does not "
                "have; use solver='bcfw', or kernel=None on explicit features (Nystroem)"
            )

    def check(self, problem: Problem) -> None:
        """Raise ValueError for a problem that this solver cannot take.

        Parameters
        ----------
        problem : Problem
        """
        if not problem.potentials.has_weights:
            self.check_kernel()
        lacks = self._lacks(problem)
        if lacks:
            raise ValueError(f"solver {self.name!r} {lacks}; use {other_solvers(problem)}")

    @classmethod
    def _lacks(cls, problem: Problem) -> str:
        """Return what this class declares that it cannot take in a problem, or ""."""
        surrogate = problem.surrogate
        if holds_marginals(problem.examples) and not cls.takes_marginals:
            return "needs labels, at which its dual variables begin, and y holds marginals"
        if cls.needs_weights and not problem.potentials.has_weights:
            return "needs weights of features, which a kernel model does not have"
        for word, needed in (("affine", cls.needs_dual), ("convex", cls.needs_convex)):
            if needed and not getattr(surrogate, word):
                return (
                    f"needs a surrogate that is {word} in the margin, which "
                    f"{problem.surrogate_name!r} is not"
                )
        if problem.penalty is not None and not cls.free_coordinates:
            return "cannot leave the intercept unpenalised"
        return ""


def other_solvers(problem: Problem) -> str:
    """Return, as advice, which solvers of any structure take a problem, or what else to change.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    str
    """
    class_of = registry.default().class_of
    names = [n for n in GENERAL if not class_of("solvers", n)._lacks(problem)]
    if not names:
        return "solver='bcfw' and surrogate='margin'"  # others train no kernels
    if holds_marginals(problem.examples):
        names[:0] = ["auto", "lbfgs"] if problem.surrogate_name == "crf" else ["auto"]
    advice = "solver=" + " or ".join(map(repr, names))
    bias = problem.penalty is not None and problem.surrogate.affine
    return f"{advice}, or penalize_intercept=True" if bias else advice
