"""The places of a shard's weights: its features, renumbered, and which of them it alone has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..potentials.linear import LinearPotentials
from ..potentials.make import linear_potentials
from ..potentials.weight_layout import moved, with_features
from .held import Common, blocks, entries_of
from .problem import Problem


class Held:
    """The features of examples, renumbered for the shards that hold them.

    Parameters
    ----------
    problem : Problem
    size : int
        Features of a shard, at most.
    indices : ndarray of int32
        Number of the feature of each stored value, in its shard.
    alone : ndarray of bool
        Whether that shard alone has the feature.
    """

    def __init__(self, problem: Problem, size: int, indices: np.ndarray, alone: np.ndarray):
        self.problem, self.layout = problem, with_features(problem.space.layout, size)
        X = problem.examples.nodes
        # Rows have their columns in order: first those of features that the shard alone has.
        entries = np.arange(len(indices), dtype=np.int64)
        ordered = sparse.csr_matrix((entries, indices, X.indptr), shape=(X.shape[0], size))
        ordered.sort_indices()
        self.indices, self.alone = ordered.indices, alone[ordered.data]
        self.data = X.data[ordered.data]
        # One times a scale, which has single precision, is exact.
        self.dtype = np.float32 if (X.data == 1).all() else np.float64
        self._made: tuple[float, Any] = 0.0, None

    def potentials(self, scale: float) -> LinearPotentials:
        """Return the potentials of the shards' weights; the last result is cached.

        Parameters
        ----------
        scale : float
            Factor of features that a shard alone has.

        Returns
        -------
        LinearPotentials
        """
        if self._made[0] != scale:
            problem = self.problem
            examples, name = problem.examples, problem.space.structure.name
            data = (self.data * np.where(self.alone, scale, 1.0)).astype(self.dtype)
            shape = examples.nodes.shape[0], self.layout.n_features
            nodes = sparse.csr_matrix((data, self.indices, examples.nodes.indptr), shape=shape)
            nodes.has_sorted_indices = nodes.has_canonical_format = True
            scaled, gram = replace(examples, nodes=nodes), problem.potentials.has_gram
            made = linear_potentials(self.layout, scaled, name, gram, **problem.metric)
            self._made = scale, made
        return self._made[1]


class Place:
    """The places of a shard's weights in those of the problem.

    The shard's w has shared blocks first, then the rows of the features that it alone has, those of
    common features, the intercept, and edges.

    Parameters
    ----------
    held : Held
    common : Common
    features : ndarray of int64
        The features that the shard alone has.
    rows : ndarray of int64
        The features of ``common`` that it has.
    """

    def __init__(self, held: Held, common: Common, features: np.ndarray, rows: np.ndarray):
        self.common, self.features, self.held = common, features, held
        self.potentials = held.potentials
        self.all = len(rows) == len(common.features)
        last = np.arange(len(common.features), common.layout.node_rows)
        self.rows = np.concatenate([rows, last])
        # Of the shard's share of z.
        self.layout = with_features(common.layout, len(rows))
        layout = held.layout
        self.head = layout.node_start
        self.tail = self.head + (layout.n_features - len(rows)) * layout.node_size

    def pieces(self, w: np.ndarray) -> list[tuple[np.ndarray, slice]]:
        """Return the parts of the shard's w on which shards agree, with their places in z.

        Parameters
        ----------
        w : ndarray

        Returns
        -------
        list of tuple
            Views and slices.
        """
        end = self.head + self.layout.node_rows * self.layout.node_size
        rows = w[self.tail :][: end - self.head]
        edges = w[self.held.layout.edge_start :], slice(self.layout.edge_start, self.layout.dim)
        return [(w[: self.head], slice(0, self.head)), (rows, slice(self.head, end)), edges]

    def alone(self, w: np.ndarray) -> np.ndarray:
        """Return a view of the weights in the shard's w that it alone has.

        Parameters
        ----------
        w : ndarray

        Returns
        -------
        ndarray
        """
        return w[self.head :][: len(self.features) * self.held.layout.node_size]

    def is_alone(self, index: np.ndarray) -> np.ndarray:
        """Return which places in the shard's w are of features that it alone has.

        Parameters
        ----------
        index : ndarray of int

        Returns
        -------
        ndarray of bool
        """
        return (index >= self.head) & (index < self.tail)

    def chosen(self, z: np.ndarray) -> np.ndarray:
        """Return those of the common weights that the shard has.

        Parameters
        ----------
        z : ndarray of shape (common.dim,)

        Returns
        -------
        ndarray
        """
        if self.all:
            return z
        return moved(
            z, self.common.layout, np.zeros(self.layout.dim), self.layout, slice(None), self.rows
        )

    def gathered(self, own: np.ndarray) -> np.ndarray:
        """Return a vector of the shard in the places of the common weights; see :meth:`chosen`.

        Parameters
        ----------
        own : ndarray

        Returns
        -------
        ndarray of shape (common.dim,)
        """
        if self.all:
            return own
        return moved(
            own, self.layout, np.zeros(self.common.dim), self.common.layout, self.rows, slice(None)
        )

    def insert(self, own: np.ndarray, factor: float, w: np.ndarray) -> None:
        """Put the weights that the shard alone has into those of the problem.

        Parameters
        ----------
        own : ndarray
            The shard's w.
        factor : float
            Times its weights.
        w : ndarray of shape (dim,)
            Changed in place.
        """
        into = self.common.whole.node_block(w)
        rows = self.alone(own).reshape(-1, into.shape[1])
        for some in blocks(len(rows), into.shape[1]):
            into[self.features[some]] = factor * rows[some]

    def local(self, w: np.ndarray, scale: float) -> np.ndarray:
        """Return the shard's w for weights of the problem.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        scale : float
            As of :meth:`Held.potentials`.

        Returns
        -------
        ndarray
        """
        own = np.zeros(self.held.layout.dim)
        z = self.chosen(self.common.of_whole(w))
        for part, where in self.pieces(own):
            part[:] = z[where]
        self.alone(own)[:] = self.common.whole.node_block(w)[self.features].ravel() / scale
        return own


def places(problem: Problem, common: Common, parts: Sequence[np.ndarray]) -> list[Place]:
    """Return the places of shards' weights.

    Parameters
    ----------
    problem : Problem
    common : Common
    parts : sequence of ndarray
        Indices of each shard's examples.

    Returns
    -------
    list of Place
    """
    X, n_features = problem.examples.nodes, problem.space.layout.n_features
    rank = np.full(n_features, -1)
    rank[common.features] = np.arange(len(common.features))
    each = []
    for part in parts:
        entries, mask = entries_of(problem, part), np.zeros(n_features, dtype=bool)
        mask[X.indices[entries]] = True
        alone, several = np.flatnonzero(mask & (rank < 0)), np.flatnonzero(mask & (rank >= 0))
        each.append((entries, alone, several))
    size = max(len(alone) + len(several) for _, alone, several in each)
    indices = np.empty_like(X.indices)
    for entries, alone, several in each:
        number = np.empty(n_features, dtype=indices.dtype)
        number[alone] = np.arange(len(alone))
        number[several] = np.arange(size - len(several), size)
        indices[entries] = number[X.indices[entries]]
    held = Held(problem, size, indices, rank[X.indices] < 0)
    return [Place(held, common, alone, rank[several]) for _, alone, several in each]
