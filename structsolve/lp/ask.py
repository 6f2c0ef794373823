"""Oracles of structures by users' names, such as ``oracle="cvxpy:CLARABEL"``."""

from __future__ import annotations

import copy
from typing import Any

from structsolve.utils.suggest import a_type

from .. import registry
from ..operators import IntegralRelaxation, Oracle, Parts
from ..part_layout import PartLayout
from ..structure.ask import Bind, ask, ask_parts, ask_power, make_layout, required
from ..structure.base import Space
from .base import Backend, SettingsBackend
from .cones import PolytopeCones, RelaxedCones
from .constraints import ConstrainedPolytopes
from .decoder import LinearDecoder
from .highs import Highs
from .membership import check_labels
from .oracle import ProgramCones, ProgramOracle, ProgramRelaxation
from .polytope import Polytopes


def ask_polytopes(space: Any, examples: Any) -> Polytopes:
    """Return the polytopes that a plugin declares for this space.

    Parameters
    ----------
    space : Space
    examples : Examples
        Packed; one polytope each.

    Returns
    -------
    Polytopes

    Raises
    ------
    ValueError
        If the structure declares none.
    """
    return _required(space, make_layout(space, examples))


def _required(space: Space, layout: PartLayout) -> Polytopes:
    polytopes = declared_polytopes(space, layout)
    if polytopes is None:
        raise ValueError(
            f"structure {space.structure.name!r} declares no polytope for a linear program; use "
            f"oracle=None{registry.default().broken_note()}"
        )
    return polytopes


def declared_polytopes(space: Space, layout: PartLayout) -> Polytopes | None:
    """Return the polytopes that a plugin declares for the examples of a layout.

    Parameters
    ----------
    space : Space
    layout : PartLayout

    Returns
    -------
    Polytopes or None
        None if there are none.
    """
    bind = ask("structsolve_polytope", Polytopes, space, examples=layout.examples)
    return None if bind is None else bind(layout)


def ask_cones(space: Space, oracle: Oracle, parts: Parts, kbest: Any = None, k: int = 64) -> Any:
    """Return an operator that answers within a cone of the label plane, or None.

    Returns the structure's operator, if it has one.  A structure that declares its polytope gets
    :class:`~structsolve.lp.cones.PolytopeCones`: it checks the k best labels, if the structure has
    them, and then finds the best point of the polytope in the cone: by the oracle, if it is
    exact and every vertex is a label, else HiGHS solves the linear program with two more rows.

    Parameters
    ----------
    space : Space
    oracle, parts, kbest : Oracle, Parts, KBest or None
        Bound to the same examples.
    k : int, default=64
        Maximum number of labels to check; fewer if their memory would be large.

    Returns
    -------
    ConeOracle or None

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.lp import ask_cones, ask_oracle
    >>> from structsolve.structure.ask import ask_parts, make_layout
    >>> space, _ = structsolve.get_structure("chain").make_space([[[0.0]]], [["a"]])
    >>> layout = make_layout(space, space.pack([[[1.0]]]))
    >>> type(ask_cones(space, ask_oracle(space)(layout), ask_parts(space)(layout))).__name__
    'PolytopeCones'
    """
    own = ask_power(space, "cones")
    if own is not None:
        return own(oracle.layout)
    polytopes = declared_polytopes(space, oracle.layout)
    if polytopes is None:
        return None
    layout = oracle.layout
    relaxed: Any = None
    if oracle.exact and polytopes.exact:
        hull = IntegralRelaxation(lambda _: oracle, lambda _: parts, layout)
        relaxed = RelaxedCones(hull, layout)
    else:
        decoder = LinearDecoder(polytopes, Highs(), n_states=parts.n_states)
        relaxed = ProgramCones(decoder, layout)
    return PolytopeCones(oracle, kbest, parts, relaxed, k, layout)


def make_backend(oracle: Any) -> Backend:
    """Return the backend called ``oracle``; a backend object is returned unchanged.

    Parameters
    ----------
    oracle : str or Backend
        ``"lp"``, ``"ilp"``, ``"cvxpy:SOLVER"``, ``"cvxpy-ilp:SOLVER"``, or a plugin's name;
        with options: ``"lp:1e-9,time_limit=2"``, ``"cvxpy:OSQP,eps_abs=1e-8"``.

    Returns
    -------
    Backend

    Raises
    ------
    TypeError
        If ``oracle`` is neither, or a plugin returns anything but a backend.
    ValueError
        If no plugin has a backend of this name, or its solver is not installed or refuses an
        option.

    Examples
    --------
    >>> from structsolve.lp import make_backend
    >>> make_backend("lp").name, make_backend("cvxpy:CLARABEL").solver
    ('lp', 'CLARABEL')
    """
    backend = oracle
    if isinstance(oracle, str):
        backend = registry.default().make("lp_backends", oracle)
        if not isinstance(backend, Backend):
            raise TypeError(
                f"the LP backend {oracle!r} is {a_type(backend)}, expected a structsolve.lp.Backend"
            )
    if not isinstance(backend, Backend):
        raise TypeError(
            f"oracle is {oracle!r}, expected None, a name (known: "
            f"{registry.default().names('lp_backends')}) or a structsolve.lp.Backend"
        )
    backend.check()
    return backend


def without_warm_starts(oracle: Any) -> Backend:
    """Return a backend whose programs start anew, so that answers depend only on their scores.

    If there are several optima, a warm start may find another one than a fresh start.  Checkpoints
    do not store the ends of programs, so training that must resume bit for bit has no warm starts.

    Parameters
    ----------
    oracle : str or Backend

    Returns
    -------
    Backend
        A copy.

    Raises
    ------
    TypeError, ValueError
        See :func:`make_backend`.

    Examples
    --------
    >>> from structsolve.lp.ask import without_warm_starts
    >>> without_warm_starts("lp").warm
    False
    """
    backend = copy.copy(make_backend(oracle))
    if isinstance(backend, SettingsBackend):
        backend.warm_start = False
    else:
        backend.warm = False
    return backend


def ask_oracle(space: Space, oracle: Any = None) -> Bind:
    """Return a factory for the oracle: a plugin's, or that of an LP backend.

    Parameters
    ----------
    space : Space
    oracle : str or Backend, optional
        A solver of linear programs over the structure's polytope, instead of its oracle.
        Programs start warm in training.

    Returns
    -------
    callable
        From a PartLayout to the Oracle of its examples.

    Raises
    ------
    ValueError
        If no plugin gives an oracle, or the backend is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.lp import ask_oracle
    >>> from structsolve.structure.ask import make_layout
    >>> from structsolve.structure.calls import argmax
    >>> space, _ = structsolve.get_structure("multiclass").make_space([[0.0]] * 2, ["a", "b"])
    >>> oracle = ask_oracle(space, "lp")(make_layout(space, space.pack([[1.0]])))
    >>> label, value, bound = argmax(oracle, 0, np.array([1.0, 3.0]))
    >>> label.tolist(), value, bound
    ([1], 3.0, 3.0)
    """
    if oracle is None:
        return required("structsolve_oracle", Oracle, space)
    backend = make_backend(oracle)
    return lambda layout: ProgramOracle(
        space.structure.name, _decoder(space, backend, layout), layout
    )


def ask_program_power(space: Space, oracle: Any, power: str) -> Bind | None:
    """Return a factory for a power by an LP backend: "relaxation" and "cones", of linear programs.

    Parameters
    ----------
    space : Space
    oracle : str or Backend
    power : str
        A key of :data:`structsolve.structure.ask.POWERS`.

    Returns
    -------
    callable or None
        From a PartLayout to the operator; None for other powers, and for integer programs.
    """
    backend = make_backend(oracle)
    if backend.integer or power not in ("relaxation", "cones"):
        return None
    if power == "cones":
        return lambda layout: ProgramCones(_decoder(space, backend, layout), layout)
    return lambda layout: ProgramRelaxation(
        space.structure.name, _decoder(space, backend, layout), layout
    )


def _decoder(space: Space, backend: Backend, layout: PartLayout) -> LinearDecoder:
    # All operators of the same examples share one: programs are built once.
    def make(layout: PartLayout) -> LinearDecoder:
        examples = layout.examples
        polytopes = _required(space, layout)
        # Scores compare with any labels.
        truths, parts = examples.labels if layout.training else None, ask_parts(space)(layout)
        if truths is not None:
            check_labels(space.structure.name, polytopes, parts, truths)
        if backend.constraints is not None:
            polytopes = ConstrainedPolytopes(polytopes, backend.constraints, space, examples)
            if truths is not None:
                polytopes.check_truths(parts, truths)
        return LinearDecoder(polytopes, backend, layout.training, parts.n_states)

    return layout.common((LinearDecoder, backend), make)
