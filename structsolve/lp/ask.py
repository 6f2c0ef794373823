"""From the names that users write (``oracle="cvxpy:CLARABEL"``) to the oracle of a structure."""

from __future__ import annotations

from typing import Any

from .. import registry
from .backends import Backend
from .decoder import LinearDecoder
from .polytope import Polytopes


def ask_polytopes(space: Any, examples: Any) -> Polytopes:
    """Return the polytopes that a plugin declares for this space.

    Raises
    ------
    ValueError
        Where the structure declares none.
    """
    found = registry.default().ask(
        "structsolve_polytope", Polytopes, space=space, examples=examples
    )
    if found is None:
        raise ValueError(
            f"structure {space.structure.name!r} declares no polytope for a linear program; use "
            f"oracle=None{registry.default().broken_note()}"
        )
    return found


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
