"""WeightLayout: the blocks of the weight vector w, and their offsets.

PartLayout has the offsets of parts in each example's theta (:mod:`structsolve.part_layout`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ..utils.arrays import padded
from ..utils.params import check_choice

KINDS = ("shared", "node", "edge")


@dataclass(frozen=True)
class Block:
    """A named block of parts that share one weight array.

    Parameters
    ----------
    name : str
        Name that users see, for example ``"transition"``.
    kind : {"shared", "node", "edge"}
        ``shared``: one weight per part, for all positions of all examples.
        ``node``: one row of parts per node, scored from the node's features.
        ``edge``: one row of parts per edge, scored from the edge's features.
    shape : tuple of int
        Shape of one row of parts, the states last: ``(K,)`` or ``(K, K)``.
    axes : tuple of str, optional
        Meaning of each axis of ``shape``; ``"class"`` axes are named by ``classes_``.
    symmetric : bool, default=False
        The last two axes are the states at both ends of an edge, and (t, s) is the same part as
        (s, t): only the weights with ``s <= t`` are read.
    unread : ndarray of bool of shape ``shape``, optional
        Further weights that no part reads, if nodes have fewer states than the table.

    Examples
    --------
    >>> Block("transition", "shared", (3, 3)).size     # rows of 3 are stored as 4
    12
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    axes: tuple[str, ...] = field(default=())
    symmetric: bool = False
    unread: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_choice(f"block {self.name!r}: kind", self.kind, KINDS)
        if not self.shape or any(int(s) < 1 for s in self.shape):
            raise ValueError(
                f"block {self.name!r}: shape is {self.shape}, expected positive integers"
            )
        if self.symmetric and (len(self.shape) < 2 or self.shape[-1] != self.shape[-2]):
            raise ValueError(
                f"block {self.name!r}: shape is {self.shape}, expected square tables where "
                "symmetric is True"
            )
        if self.unread is not None and np.shape(self.unread) != tuple(self.shape):
            raise ValueError(
                f"block {self.name!r}: unread has shape {np.shape(self.unread)}, expected "
                f"{self.shape}"
            )

    @property
    def stride(self) -> int:
        """Width of the last axis in memory, padding included."""
        return padded(self.shape[-1])

    @property
    def size(self) -> int:
        """Doubles in one row of parts, padding included."""
        return prod(self.shape[:-1]) * self.stride

    def unread_cells(self) -> np.ndarray:
        """Return the cells of one row that no part reads; they do not affect scores.

        Returns
        -------
        ndarray of bool of shape ``shape``
        """
        mask = np.zeros(self.shape, dtype=bool)
        if self.symmetric:
            mask |= np.tri(self.shape[-1], k=-1, dtype=bool)
        if self.unread is not None:
            mask |= self.unread
        return mask


class WeightLayout:
    """The offsets of a space's blocks in the weight vector ``w``.

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

    Raises
    ------
    ValueError
        If two blocks have one name, or two are of kind ``node`` or of kind ``edge``.

    Examples
    --------
    >>> layout = WeightLayout([Block("node", "node", (2,))], n_features=3, intercept=True)
    >>> layout.view(np.zeros(layout.dim), "node").shape
    (4, 2)
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
        self.shapes = {block.name: tuple(block.shape) for block in self.blocks}
        # In theta node rows start as in w; the start of edge rows depends on the example.
        self.theta_starts = dict(self.starts)
        if self.edge:
            self.starts[self.edge.name] = self.edge_start
            self.theta_starts[self.edge.name] = -1

    def view(self, w: np.ndarray, name: str) -> np.ndarray:
        """Return a block of ``w`` without its padding, as a view.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        name : str
            Name of the block.

        Returns
        -------
        ndarray
            Its shape is ``block.shape`` for shared blocks, ``(rows, *block.shape)`` for the
            others; the intercept is the last row of the node block.

        Raises
        ------
        ValueError
            For an unknown name.
        """
        block = self.block(name)
        rows = {"shared": None, "node": self.node_rows, "edge": self.edge_rows}[block.kind]
        return _view(w, block, self.starts[name], rows)

    def node_block(self, w: np.ndarray) -> np.ndarray:
        """Return the node block of ``w`` with its padding, as a view.

        Parameters
        ----------
        w : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (node_rows, node_size)
            A row for each feature; the intercept's is the last one.
        """
        rows = w[self.node_start :][: self.node_rows * self.node_size]
        return rows.reshape(self.node_rows, self.node_size)

    def block(self, name: str) -> Block:
        """Return the block of a name.

        Parameters
        ----------
        name : str

        Returns
        -------
        Block

        Raises
        ------
        ValueError
            For an unknown name.
        """
        for block in self.blocks:
            if block.name == name:
                return block
        raise ValueError(f"unknown block {name!r}; known: {[b.name for b in self.blocks]}")

    def unread(self, name: str) -> np.ndarray:
        """Return the weights of a block that no part reads; they do not affect scores.

        Parameters
        ----------
        name : str
            Name of the block.

        Returns
        -------
        ndarray of bool
            A read-only array of the shape that :meth:`view` gives.

        Examples
        --------
        >>> pair = Block("pair", "shared", (2, 2), symmetric=True)
        >>> WeightLayout([pair], n_features=0).unread("pair").tolist()
        [[False, False], [True, False]]
        """
        block = self.block(name)
        rows = {"shared": (), "node": (self.node_rows,), "edge": (self.edge_rows,)}[block.kind]
        return np.broadcast_to(block.unread_cells(), (*rows, *block.shape))

    def theta_views(self, theta: np.ndarray, n_nodes: int, n_edges: int) -> dict[str, np.ndarray]:
        """Split part scores (or marginals, or masks) of an example into views by block.

        Parameters
        ----------
        theta : ndarray of shape (theta_size(n_nodes, n_edges),)
        n_nodes, n_edges : int
            Nodes and edges of the example.

        Returns
        -------
        dict of str to ndarray
            Views without padding: of shape ``block.shape`` for shared blocks, else one row of that
            shape per node or edge.
        """
        node_end = self.shared_size + n_nodes * self.node_size
        starts = {"node": self.shared_size, "edge": node_end}
        rows = {"shared": None, "node": n_nodes, "edge": n_edges}
        return {
            b.name: _view(theta, b, starts.get(b.kind, self.starts[b.name]), rows[b.kind])
            for b in self.blocks
        }

    def theta_size(self, n_nodes: int, n_edges: int) -> int:
        """Return the number of doubles in the part scores of an example, padding included.

        Parameters
        ----------
        n_nodes, n_edges : int
            Nodes and edges of the example.

        Returns
        -------
        int
        """
        return self.shared_size + n_nodes * self.node_size + n_edges * self.edge_size

    def padded_scale(self, scale) -> np.ndarray:
        """Return checked factors of the node parts as one padded row.

        Parameters
        ----------
        scale : array of the node block's shape
            Finite, >= 0.

        Returns
        -------
        ndarray of float64 of shape (node_size,)
            Read-only.

        Raises
        ------
        ValueError
            If there are no node parts, or a factor is out of range; the message names its part.
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
            part = bad[0].tolist()
            raise ValueError(
                f"node_scale{part} is {given[tuple(part)]}, expected a finite factor >= 0"
            )
        full = np.zeros((*given.shape[:-1], self.node.stride))
        full[..., : given.shape[-1]] = given
        row = full.reshape(-1)
        row.flags.writeable = False
        return row


def _view(flat: np.ndarray, block: Block, start: int, rows: int | None) -> np.ndarray:
    """Return the block that begins at ``start`` without its padding, as a view."""
    shape = (*(() if rows is None else (rows,)), *block.shape[:-1], block.stride)
    return flat[start : start + prod(shape)].reshape(shape)[..., : block.shape[-1]]


def with_features(layout: WeightLayout, n_features: int) -> WeightLayout:
    """Return the layout for another number of node features.

    Parameters
    ----------
    layout : WeightLayout
    n_features : int

    Returns
    -------
    WeightLayout
    """
    return WeightLayout(layout.blocks, n_features, layout.n_edge_features, layout.intercept)


def moved(
    w: np.ndarray, layout: WeightLayout, z: np.ndarray, other: WeightLayout, into: Any, rows: Any
) -> np.ndarray:
    """Return z with the weights of w: shared blocks, edges, and some rows of the node block.

    Parameters
    ----------
    w, layout : ndarray and WeightLayout
        Weights, and their layout.
    z, other : ndarray and WeightLayout
        Weights to change in place, and their layout.
    into, rows : slice or ndarray of int
        Rows of the node block of z, and those of w.

    Returns
    -------
    ndarray
        z
    """
    z[: other.node_start] = w[: layout.node_start]
    z[other.edge_start :] = w[layout.edge_start :]
    other.node_block(z)[into] = layout.node_block(w)[rows]
    return z
