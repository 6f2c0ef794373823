"""Hierarchies of labels: fair weights of their nodes, and the shared Frobenius norm."""

from ...structure.hierarchy import Hierarchy
from ...structure.path_cost import PathCost
from .norms import shared_norm
from .shared import shared_weights
from .weights import NodeWeights, node_weights

__all__ = ["Hierarchy", "NodeWeights", "PathCost", "node_weights", "shared_norm", "shared_weights"]
