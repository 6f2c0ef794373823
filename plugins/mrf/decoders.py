"""Which decoder answers what: from the names that users write to the oracle of a set of graphs."""

from __future__ import annotations

from typing import Any

NAMES = ("auto", "exact", "roof-duality", "trws", "lp")

# "auto" looks for the best labeling where there are no more than this; the constrained oracle
# enumerates more.
FEW, CONSTRAINED = 2.0**14, 2.0**16


def check_name(name: Any, argument: str = "oracle") -> None:
    """Raise ValueError unless ``name`` is a decoder's."""
    if name in NAMES:
        return
    if isinstance(name, str) and name.startswith("cvxpy:"):
        from structsolve.lp.convex import check_solver

        check_solver(name.removeprefix("cvxpy:"), argument)
        return
    raise ValueError(f"{argument} is {name!r}, expected one of {[*NAMES, 'cvxpy:SOLVER']}")


def make_oracle(shape: Any, name: str, oracle_class: Any = None, max_iter: int = 100) -> Any:
    """Return the oracle called ``name`` for the graphs of ``shape``.

    Parameters
    ----------
    shape : GraphShape
    name : str
    oracle_class : type, optional
        A subclass of GraphOracle.
    max_iter : int
        Of "trws".
    """
    from structsolve.plugins.mrf._oracle import GraphOracle
    from structsolve.plugins.mrf.programs import programs

    check_name(name)
    if name == "roof-duality" and not shape.binary:
        raise ValueError(
            f"oracle is 'roof-duality', which is for two states; a node has {shape.max_states}: "
            "use 'trws' or 'lp'"
        )
    if name == "lp" or name.startswith("cvxpy:"):
        search = relaxation = constraint = "program"
        program = programs(name)
    else:
        if name in ("auto", "exact") and shape.forest:
            search = "forest"
        elif name == "exact" or (name == "auto" and shape.labelings <= FEW):
            search = "exact"
        else:
            search = "roof-duality" if shape.binary and name != "trws" else "trws"
        # The linear relaxation and constraints are there whatever finds labelings.
        relaxation = "forest" if shape.forest else "roof-duality" if shape.binary else "program"
        constraint = "exact" if shape.labelings <= CONSTRAINED else "program"
        program = programs("lp")
    if oracle_class is None:
        oracle_class = GraphOracle
    return oracle_class(shape, search, relaxation, constraint, program, max_iter)
