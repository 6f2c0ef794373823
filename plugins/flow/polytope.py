"""The polytope of flows: conservation at every node, capacities as bounds."""

from __future__ import annotations

import numpy as np

from structsolve.lp import Polytope, Polytopes
from structsolve.plugins.flow.network import Network


class FlowPolytopes(Polytopes):
    """One polytope for all examples: they share the network.

    Parameters
    ----------
    network : Network
    """

    exact = True
    note = "totally unimodular: every column has one 1 and one -1 (conservation of flow)"

    def __init__(self, network: Network):
        self.network = network

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example."""
        network = self.network
        return Polytope(
            network.incidence(),
            network.demand,
            network.demand,
            np.arange(network.m),
            lambda x: np.rint(x).astype(np.int32),
            upper=network.upper,
        )

    def key(self, i: int) -> str:
        """Return the key that examples with the same polytope share."""
        return "network"
