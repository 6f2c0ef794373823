"""Maps the oracle names that users write to decoders and operators of graphs."""

from __future__ import annotations

from functools import partial
from typing import Any

from structsolve.lp import make_backend
from structsolve.lp.cones import RelaxedCones
from structsolve.operators import IntegralRelaxation
from structsolve.plugins.mrf import _oracle
from structsolve.plugins.mrf.cuts import _oracle as cuts
from structsolve.plugins.mrf.cuts._minimum_cut import CutNetworks
from structsolve.plugins.mrf.elimination._enumerated_cones import EnumeratedCones
from structsolve.plugins.mrf.elimination._plan import Plans
from structsolve.plugins.mrf.exact.search import MOST, TABLE
from structsolve.plugins.mrf.relaxation import _linear
from structsolve.plugins.mrf.relaxation._dual import DualRelaxation
from structsolve.plugins.mrf.relaxation.programs import Programs
from structsolve.plugins.mrf.tables._shape import GraphParts

NAMES = ("auto", "exact", "mincut", "roof-duality", "trws", "expansion", "lp")

# Numbers of labelings: up to FEW "auto" is exact; up to CONSTRAINED cones are enumerated; up to
# MANY max-marginals take as many sums as the k best.
FEW, CONSTRAINED, MANY = 2.0**14, 2.0**16, 2.0**20
# Sums of elimination: up to FEW "auto" is exact; up to KEPT there are the k best, whose tables are
# kept, and max-marginals, where these are the sums for all states.
KEPT = 2.0**23
# States up to which "auto" tries a minimum cut before TRW-S, and before a linear relaxation; pairs
# of arcs at most, 64 bytes each.  benchmarks/learn_binary.py prints the ms of both by the number of
# states: the cut's time grows with the states, most of all under quadratic scores.
CUT_STATES, CUT_STATES_RELAXED, CUT_PAIRS = 4, 8, 2**22
# Gap, relative to the bound, at which the relaxation of large graphs stops.
RELAXED = 1e-3


def check_name(name: Any, argument: str = "oracle") -> None:
    """Refuse unknown names of decoders.

    Parameters
    ----------
    name : object
        The user's name.
    argument : str, default="oracle"
        Starts the message.

    Raises
    ------
    ValueError
    """
    if isinstance(name, str) and name in NAMES:
        return
    if isinstance(name, str) and _by_program(name):
        try:
            make_backend(name)
        except ValueError as error:
            raise ValueError(f"{argument}={name!r}: {error}") from error
        return
    raise ValueError(f"{argument} is {name!r}, expected one of {[*NAMES, 'cvxpy:SOLVER']}")


def algorithm_of(shape: Any, name: str, layout: Any) -> str:
    """Return the algorithm of the oracle ``name``, after a minimum cut if :func:`tries_cut`.

    Parameters
    ----------
    shape, name, layout
        See :func:`make_oracle`.

    Returns
    -------
    str
    """
    check_name(name)
    if name == "roof-duality" and not shape.binary:
        raise ValueError(
            f"oracle is 'roof-duality', which is for two states; a node has {shape.max_states}: "
            "use 'trws' or 'lp'"
        )
    if _by_program(name):
        return "program"
    if name == "mincut":
        return "mincut"
    if name in ("auto", "exact") and shape.forest:
        return "forest"
    if name == "exact" or (name == "auto" and _is_easy(shape, layout)):
        return "exact"
    if name in ("trws", "expansion"):
        return name
    return "roof-duality" if shape.binary else "expansion"


def _is_easy(shape: Any, layout: Any) -> bool:
    return shape.labelings <= FEW or graph_plans(shape, layout, FEW).most_entries <= FEW


def graph_plans(shape: Any, layout: Any, most: float, keep: bool = False) -> Plans:
    """Return plans of elimination, which all operators of the same examples share.

    Parameters
    ----------
    shape : GraphShape
    layout : PartLayout
    most : float
        Maximum number of sums for one graph.
    keep : bool, default=False
        Keep all tables, for the k best.

    Returns
    -------
    Plans
    """
    make = partial(Plans, shape, min(most, TABLE), most, keep)
    return layout.common((Plans, most, keep), lambda _: make())


def make_oracle(shape: Any, name: str, max_iter: int, layout: Any) -> Any:
    """Return the oracle called ``name``.

    Parameters
    ----------
    shape : GraphShape
    name : str
        The user's name.
    max_iter : int
        Maximum number of iterations of TRW-S.
    layout : PartLayout

    Returns
    -------
    structsolve.operators.Oracle

    Raises
    ------
    ValueError
        If the decoder is unknown, or does not take these graphs.
    """
    algorithm = algorithm_of(shape, name, layout)
    if algorithm == "forest":
        return _oracle.ForestOracle(shape, layout)
    if algorithm == "exact":
        plans = graph_plans(shape, layout, FEW if name == "auto" else MOST)
        return _oracle.ExactOracle(_programs("lp", layout), plans, shape, layout)
    if algorithm == "mincut":
        return cuts.CutOracle(_networks(shape, layout), layout)
    if algorithm == "program":
        return _oracle.LinearOracle(_programs(name, layout), shape, layout)
    if algorithm == "roof-duality":
        oracle = _oracle.RoofOracle(shape, layout)
    else:
        oracle = _oracle.TRWSOracle(max_iter, algorithm == "expansion", shape, layout)
    if name != "auto":
        return oracle
    if tries_cut(shape.max_states, shape.max_edges):
        oracle = cuts.CutFirstOracle(oracle, _networks(shape, layout), layout)
    if shape.n_graphs == 1:
        return oracle
    plans = graph_plans(shape, layout, FEW)
    return _oracle.EasyFirstOracle(oracle, FEW, _programs("lp", layout), plans, shape, layout)


def make_power(shape: Any, name: str, power: str, layout: Any) -> Any:
    """Return the operator of a power for the oracle ``name``.

    The k best labels and max-marginals exist if the oracle is exact, on forests and other narrow
    graphs.  The linear relaxation always exists, and answers within cones by it unless labelings
    are few, or :func:`cone_program` names a solver of programs.

    Parameters
    ----------
    shape, name, layout
        See :func:`make_oracle`.
    power : {"kbest", "max-marginals", "relaxation", "cones"}

    Returns
    -------
    structsolve.operators.Operator or None
    """
    if power in ("kbest", "max-marginals"):
        return _make_ranking(shape, algorithm_of(shape, name, layout), power, layout)
    if power == "cones":
        if shape.labelings <= CONSTRAINED:
            return EnumeratedCones(shape, layout)
        return RelaxedCones(make_power(shape, name, "relaxation", layout), layout)
    if name == "mincut":
        oracle = partial(cuts.CutOracle, _networks(shape, layout))
        return IntegralRelaxation(oracle, partial(GraphParts, shape), layout)
    linear = _programs(name if _by_program(name) else "lp", layout)
    if _by_program(name):
        return _linear.LinearRelaxation(linear, shape, layout)
    if shape.forest:
        oracle, parts = partial(_oracle.ForestOracle, shape), partial(GraphParts, shape)
        return IntegralRelaxation(oracle, parts, layout)
    if shape.binary:
        return _with_cut(_linear.RoofRelaxation(shape, layout), shape, name, layout)
    finish = _linear.LinearRelaxation(linear, shape, layout)
    return _with_cut(DualRelaxation(finish, RELAXED, shape, layout), shape, name, layout)


def cone_program(shape: Any, name: str) -> str | None:
    """Return the LP backend for cones of the label plane.

    Parameters
    ----------
    shape, name
        See :func:`make_oracle`.

    Returns
    -------
    str or None
        None where labelings are few, or the relaxation is accurate for scores of any sign.
    """
    if _by_program(name):
        return name
    alone = shape.labelings <= CONSTRAINED or (name != "mincut" and (shape.forest or shape.binary))
    return None if alone else "lp"


def _with_cut(relaxation: Any, shape: Any, name: str, layout: Any) -> Any:
    """The relaxation, preceded by a minimum cut where one may suffice."""
    if name != "auto" or not tries_cut(shape.max_states, shape.max_edges, CUT_STATES_RELAXED):
        return relaxation
    return cuts.CutFirstRelaxation(relaxation, _networks(shape, layout), layout)


def tries_cut(states: int, edges: int, most: int = CUT_STATES) -> bool:
    """Return whether "auto" tries a minimum cut, which requires super-modular scores.

    Parameters
    ----------
    states, edges : int
        Most states of a node, and edges of a graph.
    most : int
        States of a node up to which it does.

    Returns
    -------
    bool
    """
    return states <= most and edges * (states - 1) ** 2 <= CUT_PAIRS


def _networks(shape: Any, layout: Any) -> CutNetworks:
    # All operators of the same examples share them.
    return layout.common(CutNetworks, lambda _: CutNetworks(shape, layout.training))


def _make_ranking(shape: Any, algorithm: str, power: str, layout: Any) -> Any:
    """The operator of k best or max-marginals, None if not supported."""
    if algorithm not in ("forest", "exact"):
        return None
    plans = None
    if algorithm == "exact":
        # Max-marginals eliminate once for each state.
        sums = KEPT if power == "kbest" or shape.labelings <= MANY else KEPT / shape.max_unary
        plans = graph_plans(shape, layout, KEPT, keep=power == "kbest")
        if plans.most_entries > sums:
            return None
    if power == "kbest":
        return _oracle.GraphKBest(plans, shape, layout)
    return _oracle.GraphMaxMarginals(plans, shape, layout)


def _by_program(name: str) -> bool:
    return name == "lp" or name.startswith(("lp:", "cvxpy:"))


def _programs(name: str, layout: Any) -> Any:
    # All operators of the same examples share them: programs are built once.
    return layout.common((Programs, name), lambda _: Programs(partial(make_backend, name)))
