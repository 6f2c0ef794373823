"""Blocks of the weight vector, and where each lies in the flat ``w`` and in ``theta_i``."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from ..utils.arrays import padded

KINDS = ("shared", "node", "edge")


@dataclass(frozen=True)
class Block:
    """A named block of parts that share one weight array.

    Parameters
    ----------
    name : str
        What users see, for example ``"transition"``.
    kind : {"shared", "node", "edge"}
        ``shared``: one weight per part, the same at every position of every example.
        ``node``: one row of parts per node, scored from the node's features.
        ``edge``: one row of parts per edge, scored from the edge's features.
    shape : tuple of int
        Shape of one row of parts, the states last: ``(K,)`` or ``(K, K)``.
    axes : tuple of str, optional
        What each axis of ``shape`` runs over; ``"class"`` axes are named by ``classes_``.

    Examples
    --------
    >>> Block("transition", "shared", (3, 3)).size     # rows of 3 are stored as 4
    12
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    axes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"block {self.name!r}: kind is {self.kind!r}, expected one of {KINDS}")
        if not self.shape or any(int(s) < 1 for s in self.shape):
            raise ValueError(
                f"block {self.name!r}: shape is {self.shape}, expected positive integers"
            )

    @property
    def stride(self) -> int:
        """Storage width of the last axis."""
        return padded(self.shape[-1])

    @property
    def size(self) -> int:
        """Doubles that one row of parts takes, padding included."""
        return prod(self.shape[:-1]) * self.stride


class WeightLayout:
    """Where the blocks of a space lie in ``w`` and in ``theta_i``.

    Parameters
    ----------
    blocks : sequence of Block
        At most one of kind ``node`` and one of kind ``edge``.
    n_features, n_edge_features : int
        Columns of the node and edge features.
    intercept : bool
        Append one constant feature to the node features; it is the last row of the node block.

    Attributes
    ----------
    dim : int
        Doubles in ``w``, padding included.
    """

    def __init__(self, blocks, n_features: int, n_edge_features: int = 0, intercept: bool = False):
        self.blocks = tuple(blocks)
        by_kind = {kind: [b for b in self.blocks if b.kind == kind] for kind in KINDS}
        for kind in ("node", "edge"):
            if len(by_kind[kind]) > 1:
                names = [b.name for b in by_kind[kind]]
                raise ValueError(f"a space has at most one block of kind {kind!r}, found {names}")
        names = [b.name for b in self.blocks]
        if len(set(names)) < len(names):
            raise ValueError(f"block names must differ, found {names}")
        self.intercept = bool(intercept)
        self.n_features, self.n_edge_features = int(n_features), int(n_edge_features)
        self.shared = by_kind["shared"]
        self.node = by_kind["node"][0] if by_kind["node"] else None
        self.edge = by_kind["edge"][0] if by_kind["edge"] else None
        self.shared_size = -(-sum(b.size for b in self.shared) // 8) * 8
        self.node_rows = (self.n_features + self.intercept) if self.node else 0
        self.node_size = self.node.size if self.node else 0
        self.edge_rows = self.n_edge_features if self.edge else 0
        self.edge_size = self.edge.size if self.edge else 0
        self.node_start = self.shared_size
        node_end = self.node_start + self.node_rows * self.node_size
        self.edge_start = -(-node_end // 8) * 8
        self.dim = self.edge_start + self.edge_rows * self.edge_size
        self.starts = {}
        position = 0
        for block in self.shared:
            self.starts[block.name] = position
            position += block.size
        if self.node:
            self.starts[self.node.name] = self.node_start
        if self.edge:
            self.starts[self.edge.name] = self.edge_start

    def view(self, w: np.ndarray, name: str) -> np.ndarray:
        """Return block ``name`` of ``w`` without its padding, as a view.

        Shape ``block.shape`` for shared blocks, ``(rows, *block.shape)`` for the others; the
        intercept is the last row of the node block.
        """
        block = next((b for b in self.blocks if b.name == name), None)
        if block is None:
            raise ValueError(f"unknown block {name!r}; known: {[b.name for b in self.blocks]}")
        rows = {"shared": None, "node": self.node_rows, "edge": self.edge_rows}[block.kind]
        start = self.starts[name]
        size = block.size * (1 if rows is None else rows)
        shape = (*block.shape[:-1], block.stride)
        full = w[start : start + size].reshape(shape if rows is None else (rows, *shape))
        return full[..., : block.shape[-1]]

    def theta_views(self, theta: np.ndarray, n_nodes: int, n_edges: int) -> dict[str, np.ndarray]:
        """Split a flat ``theta_i`` (or marginals, or masks) into named views without padding."""
        views = {}
        for block in self.blocks:
            shape = (*block.shape[:-1], block.stride)
            if block.kind == "shared":
                start, rows = self.starts[block.name], None
            elif block.kind == "node":
                start, rows = self.shared_size, n_nodes
            else:
                start, rows = self.shared_size + n_nodes * self.node_size, n_edges
            size = block.size * (1 if rows is None else rows)
            full = theta[start : start + size].reshape(shape if rows is None else (rows, *shape))
            views[block.name] = full[..., : block.shape[-1]]
        return views

    def theta_size(self, n_nodes: int, n_edges: int) -> int:
        """Doubles in ``theta_i`` of an example with these many nodes and edges."""
        return self.shared_size + n_nodes * self.node_size + n_edges * self.edge_size

    def padded_scale(self, scale) -> np.ndarray:
        """Return factors of the node parts, checked, as one padded row that is not to be changed.

        Parameters
        ----------
        scale : array of the node block's shape
            Finite, >= 0.
        """
        if self.node is None:
            raise ValueError("node_scale needs a structure with node parts, this one has none")
        given = np.asarray(scale, dtype=np.float64)
        if given.shape != self.node.shape:
            raise ValueError(
                f"node_scale has shape {given.shape}, expected {self.node.shape}: one factor per "
                "node part"
            )
        bad = np.argwhere(~(np.isfinite(given) & (given >= 0)))
        if len(bad):
            where = bad[0].tolist()
            raise ValueError(
                f"node_scale{where} is {given[tuple(where)]}, expected a finite factor >= 0"
            )
        full = np.zeros((*given.shape[:-1], self.node.stride))
        full[..., : given.shape[-1]] = given
        row = full.reshape(-1)
        row.flags.writeable = False
        return row
