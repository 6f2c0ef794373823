"""Which weights shards hold: those of features that several shards have, and each shard's own.

A weight of a feature that one shard alone has needs no consensus (Boyd et al. 2011, section 7.2):
the shard minimises over it exactly, and no other shard and no message knows of it.  Where words are
features, most weights are of that kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..examples.given import is_sparse
from ..examples.shared_rows import SharedRows
from ..potentials.weight_layout import WeightLayout, moved, with_features
from .problem import Problem

# Shards hold only their own features if no more than this share of all is common to several.
PAYS = 0.75
# Weights per block of a vector.
BLOCK = 1 << 14


def blocks(n: int, size: int = 1) -> list[slice]:
    """Return slices of a vector that fit caches: several operations on each cost as much as one.

    Parameters
    ----------
    n : int
        Length of the vector.
    size : int, default=1
        Numbers per entry.

    Returns
    -------
    list of slice
    """
    step = max(BLOCK // size, 1)
    return [slice(k, min(k + step, n)) for k in range(0, n, step)]


def features_of(problem: Problem, picks: np.ndarray) -> np.ndarray:
    """Return which node features some examples have.

    Parameters
    ----------
    problem : Problem
    picks : ndarray of int64
        Indices of the examples.

    Returns
    -------
    ndarray of float64 of shape (n_features,)
        1 or 0; 1 for all features of dense rows.
    """
    X, layout = problem.examples.nodes, problem.space.layout
    if layout.node is None or not is_sparse(getattr(X, "rows", X)):
        return np.ones(layout.n_features)
    if isinstance(X, SharedRows):
        table = np.zeros((X.rows.shape[1] + X.constant, X.table.shape[1]))
        table[X.rows[picks].indices] = 1.0
        table[X.rows.shape[1] :] = 1.0
        return table.ravel()
    mask = np.zeros(layout.n_features)
    mask[X.indices[entries_of(problem, picks)]] = 1.0
    return mask


def entries_of(problem: Problem, picks: np.ndarray) -> np.ndarray:
    """Return which stored values of sparse node features are of some examples.

    Parameters
    ----------
    problem : Problem
    picks : ndarray of int64
        Indices of the examples.

    Returns
    -------
    ndarray of bool
    """
    mask = np.zeros(problem.n, dtype=bool)
    mask[picks] = True
    rows = np.repeat(mask, np.diff(problem.examples.offsets))
    return np.repeat(rows, np.diff(problem.examples.nodes.indptr))


class Common:
    """The weights on which shards agree: all but those of features that one shard alone has.

    Parameters
    ----------
    layout : WeightLayout
        Of all weights.
    features : ndarray of int64
        The features that several shards have, in order.
    holders : ndarray of float64
        The number of shards that hold each of these features.
    n_shards : int
        They hold all weights that are not of node features.

    Attributes
    ----------
    dim : int
        Length of vectors of these weights.
    counts : ndarray of shape (dim,), or int
        Number of shards that hold each weight; one number if all hold all.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.potentials.weight_layout import Block, WeightLayout
    >>> layout = WeightLayout([Block("node", "node", (8,))], n_features=5)
    >>> common = Common.of_counts(layout, np.array([1.0, 2.0, 1.0, 1.0, 2.0]), 2)
    >>> common.features.tolist(), common.dim, layout.dim
    ([1, 4], 16, 40)
    >>> common.spread(np.ones(16), np.zeros(40)).reshape(5, 8)[:, 0].tolist()
    [0.0, 1.0, 0.0, 0.0, 1.0]
    """

    def __init__(
        self, layout: WeightLayout, features: np.ndarray, holders: np.ndarray, n_shards: int
    ):
        self.whole, self.features, self.holders = layout, features, holders
        self.n_shards = n_shards
        last = np.arange(layout.n_features, layout.node_rows)
        self.rows = np.concatenate([features, last])
        self.layout = with_features(layout, len(features))
        self.dim = self.layout.dim
        self.counts: Any = n_shards
        if (holders < n_shards).any():
            self.counts = np.full(self.dim, float(n_shards))
            self.layout.node_block(self.counts)[: len(features)] = holders[:, None]

    @classmethod
    def of_counts(cls, layout: WeightLayout, counts: np.ndarray, n_shards: int) -> Common | None:
        """Return what shards have in common; None if that is most of all weights.

        Parameters
        ----------
        layout : WeightLayout
        counts : ndarray of shape (n_features,)
            Number of shards that have each feature.
        n_shards : int

        Returns
        -------
        Common or None
        """
        features = np.flatnonzero(counts > 1)
        if n_shards == 1 or layout.node is None or len(features) > PAYS * len(counts):
            return None
        return cls(layout, features, counts[features], n_shards)

    @classmethod
    def of_arrays(cls, layout: WeightLayout, arrays: dict[str, np.ndarray]) -> Common:
        """Return what :meth:`arrays` describes.

        Parameters
        ----------
        layout : WeightLayout
        arrays : dict of str to ndarray

        Returns
        -------
        Common
        """
        return cls(layout, arrays["features"], arrays["holders"], int(arrays["n_shards"]))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for checkpoints.

        Returns
        -------
        dict of str to ndarray
        """
        n_shards = np.array(self.n_shards)
        return {"features": self.features, "holders": self.holders, "n_shards": n_shards}

    def of_whole(self, w: np.ndarray) -> np.ndarray:
        """Return the common weights; see :meth:`spread`.

        Parameters
        ----------
        w : ndarray of shape (layout.dim,)

        Returns
        -------
        ndarray of shape (dim,)
        """
        return moved(w, self.whole, np.zeros(self.dim), self.layout, slice(None), self.rows)

    def spread(self, z: np.ndarray, w: np.ndarray, some: slice = slice(None)) -> np.ndarray:
        """Return all weights, of which these are common.

        Parameters
        ----------
        z : ndarray of shape (dim,)
        w : ndarray of shape (layout.dim,)
            Changed in place.
        some : slice, optional
            Of the rows that are common.

        Returns
        -------
        ndarray of shape (layout.dim,)
            ``w``.
        """
        return moved(z, self.layout, w, self.whole, self.rows[some], some)
