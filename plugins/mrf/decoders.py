"""Which decoder answers what: from the names that users write to the oracle of a set of graphs."""

from __future__ import annotations

from typing import Any

NAMES = ("auto", "exact", "roof-duality")

# "auto" enumerates the labelings where there are no more than this; "exact" and the constrained
# oracle have more patience.
FEW, MANY = 2.0**14, 2.0**20
CONSTRAINED = 2.0**16


def check_name(name: Any, argument: str = "oracle") -> None:
    """Raise ValueError unless ``name`` is a decoder's."""
    if name not in NAMES:
        raise ValueError(f"{argument} is {name!r}, expected one of {list(NAMES)}")


def make_oracle(shape: Any, name: str, oracle_class: Any = None) -> Any:
    """Return the oracle called ``name`` for the graphs of ``shape``.

    Parameters
    ----------
    shape : GraphShape
    name : str
    oracle_class : type, optional
        A subclass of GraphOracle.
    """
    from ._oracle import GraphOracle

    if oracle_class is None:
        oracle_class = GraphOracle
    check_name(name)
    if name == "roof-duality" and not shape.binary:
        raise ValueError(
            f"oracle is 'roof-duality', which is for two states; a node has {shape.max_states}: "
            "use 'trws' or 'lp'"
        )
    relaxation = "forest" if shape.forest else "roof-duality" if shape.binary else None
    constraint = "walk" if shape.labelings <= CONSTRAINED else None
    if shape.forest and name in ("auto", "exact"):
        search = "forest"
    elif name == "exact" or (name == "auto" and shape.labelings <= FEW):
        if shape.labelings > MANY:
            raise ValueError(
                f"oracle is 'exact', but an example has {shape.labelings:.3g} labelings; at most "
                f"{MANY:.3g} can be looked through: use 'auto'"
            )
        search = "walk"
    else:
        search = relaxation = "roof-duality"
    return oracle_class(shape, search, relaxation, constraint)
