"""Solvers: parameters, and runs that make passes and certificates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..surrogates.given_marginals import holds_marginals
from ..utils.params import Params, check_choice
from .problem import Problem
from .run import Run, Start


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
        surrogate = problem.surrogate
        if holds_marginals(problem.examples) and not self.takes_marginals:
            raise ValueError(
                f"solver {self.name!r} needs labels, at which its dual variables begin, and y "
                "holds marginals; use solver='auto', 'lbfgs', 'cutting-plane' or 'sgd'"
            )
        if not problem.potentials.has_weights:
            self.check_kernel()
        if self.needs_dual and not surrogate.affine:
            others = "'sgd' or 'cutting-plane'" if surrogate.convex else "'sgd'"
            raise ValueError(
                f"solver {self.name!r} needs a surrogate that is affine in the margin, which "
                f"{problem.surrogate_name!r} is not; use solver={others}"
            )
        if self.needs_convex and not surrogate.convex:
            raise ValueError(
                f"solver {self.name!r} needs a surrogate that is convex in the margin, which "
                f"{problem.surrogate_name!r} is not; use solver='sgd'"
            )
        if problem.penalty is not None and not self.free_coordinates:
            raise ValueError(
                f"solver {self.name!r} cannot leave the intercept unpenalised; use "
                "solver='cutting-plane' or 'sgd', or penalize_intercept=True"
            )
