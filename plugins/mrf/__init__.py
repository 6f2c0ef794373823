"""Labelings of graphs (pairwise Markov random fields) as a plugin."""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.mrf.decode import Decoding, decode
from structsolve.plugins.mrf.graphs import grid_edges
from structsolve.plugins.mrf.reparametrization import (
    ArcConsistency,
    arc_consistent,
    reparametrization_bound,
)
from structsolve.plugins.mrf.space import MRFSpace, MRFStructure

__all__ = [
    "ArcConsistency",
    "Decoding",
    "MRFSpace",
    "MRFStructure",
    "arc_consistent",
    "decode",
    "grid_edges",
    "reparametrization_bound",
]


@hookimpl
def structsolve_structures():
    return [Named("mrf", MRFStructure, "labelings of graphs: scores of nodes and of edges")]
