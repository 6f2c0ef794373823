"""Which decoder answers what: from the names that users write to the operators of graphs.

Compiled modules are imported where operators are made: checking names needs none of them.
"""

from __future__ import annotations

from typing import Any

NAMES = ("auto", "exact", "roof-duality", "trws", "lp")

# "auto" looks for the best labeling where there are no more than this; the oracle in a cone
# enumerates more, and for max-marginals or the k best even more are looked through.
FEW, CONSTRAINED, MANY = 2.0**14, 2.0**16, 2.0**20


def check_name(name: Any, argument: str = "oracle") -> None:
    """Raise ValueError unless ``name`` is a decoder's."""
    if name in NAMES:
        return
    if isinstance(name, str) and name.startswith("cvxpy:"):
        from structsolve.lp.convex import check_solver

        check_solver(name.removeprefix("cvxpy:"), argument)
        return
    raise ValueError(f"{argument} is {name!r}, expected one of {[*NAMES, 'cvxpy:SOLVER']}")


def searches(shape: Any, name: str) -> str:
    """Return how the oracle called ``name`` finds labelings of the graphs of ``shape``.

    Parameters
    ----------
    shape : GraphShape
    name : str

    Returns
    -------
    {"forest", "exact", "roof-duality", "trws", "program"}
    """
    check_name(name)
    if name == "roof-duality" and not shape.binary:
        raise ValueError(
            f"oracle is 'roof-duality', which is for two states; a node has {shape.max_states}: "
            "use 'trws' or 'lp'"
        )
    if _by_program(name):
        return "program"
    if name in ("auto", "exact") and shape.forest:
        return "forest"
    if name == "exact" or (name == "auto" and shape.labelings <= FEW):
        return "exact"
    return "roof-duality" if shape.binary and name != "trws" else "trws"


def make_oracle(shape: Any, name: str, max_iter: int, layout: Any) -> Any:
    """Return the oracle called ``name``.

    Parameters
    ----------
    shape : GraphShape
    name : str
    max_iter : int
        Of "trws".
    layout : PartLayout
    """
    from structsolve.plugins.mrf import _oracle

    search = searches(shape, name)
    if search == "forest":
        return _oracle.ForestOracle(shape, layout)
    if search == "exact":
        return _oracle.ExactOracle(_programs("lp", layout), shape, layout)
    if search == "roof-duality":
        return _oracle.RoofOracle(shape, layout)
    if search == "trws":
        return _oracle.TRWSOracle(max_iter, shape, layout)
    return _oracle.LinearOracle(_programs(name, layout), shape, layout)


def make_power(shape: Any, name: str, power: str, layout: Any) -> Any:
    """Return the operator of a power beside the oracle called ``name``, or None.

    The k best labels and max-marginals are there where the oracle is exact: on forests, and where
    labelings can be looked through.  The linear relaxation and its cones are always there.

    Parameters
    ----------
    shape, name, layout
        As of :func:`make_oracle`.
    power : str
    """
    if power in ("kbest", "max-marginals"):
        from structsolve.plugins.mrf._powers import GraphKBest, GraphMaxMarginals

        search = searches(shape, name)
        if search == "forest" or (search == "exact" and shape.labelings <= MANY):
            return (GraphKBest if power == "kbest" else GraphMaxMarginals)(shape, layout)
    elif power in ("relaxation", "cones"):
        from structsolve.plugins.mrf import _relaxation

        by_program = _by_program(name)
        programs = _programs(name if by_program else "lp", layout)
        if power == "cones":
            if by_program or shape.labelings > CONSTRAINED:
                return _relaxation.LinearCones(programs, shape, layout)
            return _relaxation.EnumeratedCones(shape, layout)
        if by_program or not (shape.forest or shape.binary):
            return _relaxation.LinearRelaxation(programs, shape, layout)
        if shape.forest:
            return _relaxation.ForestRelaxation(shape, layout)
        return _relaxation.RoofRelaxation(shape, layout)
    return None


def _by_program(name: str) -> bool:
    return name == "lp" or name.startswith("cvxpy:")


def _programs(name: str, layout: Any) -> Any:
    # One for all operators of the same examples: programs are put together once.
    from structsolve.plugins.mrf.programs import Programs, programs

    return layout.common((Programs, name), lambda _: programs(name))
