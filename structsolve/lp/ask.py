"""From the names that users write (``oracle="cvxpy:CLARABEL"``) to the oracle of a structure."""

from __future__ import annotations

from typing import Any

from .. import registry
from ..examples.packed import Examples
from ..operators import Oracle
from ..structure.ask import required
from ..structure.base import Space
from .base import Backend
from .highs import Highs
from .decoder import LinearDecoder
from .polytope import Polytopes


def ask_polytopes(space: Any, examples: Any) -> Polytopes:
    """Return the polytopes that a plugin declares for this space.

    Raises
    ------
    ValueError
        Where the structure declares none.
    """
    found = _declared(space, examples)
    if found is None:
        raise ValueError(
            f"structure {space.structure.name!r} declares no polytope for a linear program; use "
            f"oracle=None{registry.default().broken_note()}"
        )
    return found


def _declared(space: Any, examples: Any) -> Polytopes | None:
    """The polytopes of a structure that declares some."""
    return registry.default().ask("structsolve_polytope", Polytopes, space=space, examples=examples)


def constrained_oracle(space: Any, examples: Any, oracle: Any, parts: Any, k: int = 64) -> Any:
    """Return an oracle that also answers within a cone of the label plane.

    That is ``oracle`` itself where it does, or where the structure declares no polytope.  Else the
    k best labels are looked through, if it has them, and then HiGHS solves the linear program over
    the polytope with two more rows.

    Parameters
    ----------
    space, examples : Space, Examples
    oracle : Oracle
    parts : Parts
    k : int, default=64
        Labels that are looked through at most; fewer where their memory would be large.

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.lp import constrained_oracle
    >>> from structsolve.lp.ask import ask_oracle
    >>> from structsolve.structure.ask import ask_parts
    >>> space = structsolve.get_structure("chain").make_space([[[0.0]]], [["a"]])
    >>> examples = space.pack([[[1.0]]])
    >>> oracle, parts = ask_oracle(space, examples), ask_parts(space, examples)
    >>> more = constrained_oracle(space, examples, oracle, parts)
    >>> oracle.has_constrained, more.has_constrained
    (False, True)
    """
    if oracle.has_constrained:
        return oracle
    polytopes = _declared(space, examples)
    if polytopes is None:
        return oracle
    from .cones import ConstrainedOracle

    decoder = LinearDecoder(polytopes, Highs())
    return ConstrainedOracle(space, examples, oracle, parts, decoder, k)


def make_backend(oracle: Any) -> Backend:
    """Return the backend called ``oracle``; a backend object passes through.

    Examples
    --------
    >>> from structsolve.lp import make_backend
    >>> make_backend("lp").name, make_backend("cvxpy:CLARABEL").solver
    ('lp', 'CLARABEL')
    """
    if isinstance(oracle, Backend):
        return oracle
    if not isinstance(oracle, str):
        raise TypeError(
            f"oracle is {oracle!r}, expected None, a name (known: "
            f"{registry.default().names('lp_backends')}) or a structsolve.lp.Backend"
        )
    found = registry.default().make("lp_backends", oracle)
    if not isinstance(found, Backend):
        raise TypeError(
            f"the LP backend {oracle!r} is a {type(found).__name__}, expected a "
            "structsolve.lp.Backend"
        )
    return found


def program_oracle(space: Any, examples: Any, oracle: Any) -> Any:
    """Return an oracle that decodes by the LP backend ``oracle``.

    Programs start warm where examples have labels: that is training.
    """
    from .oracle import ProgramOracle

    backend = make_backend(oracle)
    warm = examples.labels is not None
    decoder = LinearDecoder(ask_polytopes(space, examples), backend, warm)
    return ProgramOracle(space, examples, decoder)


def ask_oracle(space: Space, examples: Examples, oracle: Any = None) -> Any:
    """Return the oracle that a plugin gives for this space, or that of an LP backend."""
    if oracle is not None:
        return program_oracle(space, examples, oracle)
    return required("structsolve_oracle", Oracle, space, examples=examples)
