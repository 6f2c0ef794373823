"""Scaling of the columns of node features for training, and its inverse on weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .given import is_sparse, refuse_infinite
from .packed import Examples
from .packing import sparsify
from .shared_rows import SharedRows, Table

KINDS = ("auto", False, True, "std", "max-abs")

# Columns differ in scale if their largest numbers do by this factor,
SCALES = 100
# apart from this share of them, such as pixels at the border,
FEW = 0.1
# and from those that are zero up to rounding, as projections give them: a share of the largest.
ROUNDING = 1e-13
# All columns are small beside the ones of an intercept if none exceeds this: "common", a kind that
# "auto" alone takes, divides all by the largest number.
SMALL = 0.1
COMMON = "common"


@dataclass
class ColumnScaling:
    """``x'_j = factors_j (x_j - shifts_j)`` for the columns of node features.

    Parameters
    ----------
    factors : ndarray of float64 of shape (n_features,)
        Above 0.
    shifts : ndarray of float64 of shape (n_features,), optional
        None if columns are not centred.
    kind : bool or str
        That of `scale_columns`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.potentials.weight_layout import Block, WeightLayout
    >>> layout = WeightLayout([Block("node", "node", (2,))], n_features=1, intercept=True)
    >>> scaling = ColumnScaling(np.array([0.5]), np.array([10.0]))
    >>> w = np.zeros(layout.dim)
    >>> layout.view(w, "node")[0] = [4.0, -4.0]          # x = 14 is 2 there, and scores 8
    >>> layout.view(scaling.folded(layout, w), "node").tolist()
    [[2.0, -2.0], [-20.0, 20.0]]
    """

    factors: np.ndarray
    shifts: np.ndarray | None = None
    kind: bool | str = True

    def folded(self, layout: Any, w: np.ndarray) -> np.ndarray:
        """Return the weights that give raw features the scores of w on scaled features.

        Parameters
        ----------
        layout : WeightLayout
            With an intercept, if columns are centred.
        w : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (dim,)
            A new one.
        """
        w = w.copy()
        rows = layout.node_block(w)
        rows[: len(self.factors)] *= self.factors[:, None]
        if self.shifts is not None:
            rows[-1] -= self.shifts @ rows[:-1]
        return w

    def unfolded(self, layout: Any, w: np.ndarray) -> np.ndarray:
        """Return the weights that give scaled features the scores of w on raw features.

        Parameters
        ----------
        layout : WeightLayout
        w : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (dim,)
            A new one.
        """
        w = w.copy()
        rows = layout.node_block(w)
        if self.shifts is not None:
            rows[-1] += self.shifts @ rows[:-1]
        rows[: len(self.factors)] /= self.factors[:, None]
        return w


def column_scales(nodes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that are not zero, from the smallest to the largest.

    Parameters
    ----------
    nodes : ndarray or scipy.sparse CSR of shape (n_nodes, n_features), or None

    Returns
    -------
    columns : ndarray of int
    scales : ndarray of float64
        The largest magnitude in each.
    """
    if nodes is None or not nodes.shape[0]:
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    scales = column_magnitudes(nodes)
    columns = np.flatnonzero(scales > ROUNDING * scales.max(initial=0.0))
    columns = columns[np.argsort(scales[columns], kind="stable")]
    return columns, scales[columns]


def column_magnitudes(nodes: Any) -> np.ndarray:
    """Return the largest magnitude in each column.

    Parameters
    ----------
    nodes : ndarray, CSR matrix or SharedRows of shape (n_nodes, n_features)

    Returns
    -------
    ndarray of float64 of shape (n_features,)
    """
    if isinstance(nodes, SharedRows):
        own = np.append(column_magnitudes(nodes.rows), np.ones(int(nodes.constant)))
        return np.outer(own, column_magnitudes(nodes.table.matrix)).ravel()
    if is_sparse(nodes):
        scales = np.zeros(nodes.shape[1])
        np.maximum.at(scales, nodes.indices, np.abs(nodes.data))
        return scales
    largest: np.ndarray = np.maximum(nodes.max(axis=0, initial=0), -nodes.min(axis=0, initial=0))
    return largest.astype(np.float64)


def unlike(nodes: Any, sparse: bool = False) -> tuple[tuple[int, float], ...] | None:
    """Return a small and the largest column if columns differ in scale.

    Parameters
    ----------
    nodes : ndarray or scipy.sparse CSR of shape (n_nodes, n_features), or None
    sparse : bool, default=False
        Judge features that are mostly zeros, too: their rare columns may be as they should.

    Returns
    -------
    pair of (int, float), or None
        Two columns with the largest magnitude in each. A tenth of the columns may be smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.examples.scaling import unlike
    >>> X = np.array([[1.0, 50.0], [-2.0, 90.0]])
    >>> unlike(X), unlike(X * [1, 3])
    (None, ((0, 2.0), (1, 270.0)))
    """
    if is_sparse(nodes) and not sparse:
        return None
    columns, scales = column_scales(nodes)
    if not scales.size:
        return None
    low = int(FEW * (scales.size - 1))
    if not scales[-1] > SCALES * scales[low] or (not sparse and is_sparse(sparsify(nodes))):
        return None
    return tuple((int(columns[k]), float(scales[k])) for k in (low, -1))


def scale_columns(examples: Examples, layout: Any, name: str, kind: bool | str) -> Examples:
    """Return examples with scaled columns of node features, and with the scaling.

    Uses scikit-learn's StandardScaler and MaxAbsScaler on all nodes, weighted like their examples.

    Parameters
    ----------
    examples : Examples
    layout : WeightLayout
    name : str
        Name of the structure, for messages.
    kind : {True, "std", "max-abs", "common"}
        Divide by the standard deviation, or by the largest magnitude, of each column or ("common")
        of all.  True is "max-abs" for
        sparse features and for dense ones that are mostly zeros, else "std". "std" centres dense
        columns if the layout has an intercept, which absorbs the shift.

    Returns
    -------
    Examples
        Their ``scaling`` is a :class:`ColumnScaling`.

    Raises
    ------
    ValueError
        If nodes have no features, or naming the example of a feature that is not finite.
    """
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler  # heavy

    if kind == COMMON and isinstance(examples.nodes, SharedRows):
        return _scale_shared(examples)
    nodes = sparsify(examples.nodes)
    nodes = nodes.tocsr() if is_sparse(nodes) else nodes
    if nodes is None or layout.node is None:
        raise ValueError(
            f"scale_features is {kind!r}, but nodes of structure {name!r} have no features; leave "
            "it False"
        )
    refuse_infinite(nodes, examples.offsets)
    weights = None
    if examples.sample_weight is not None:
        weights = np.repeat(examples.sample_weight, np.diff(examples.offsets))
    if kind == "std" or (kind is True and not is_sparse(nodes)):
        centre = bool(layout.intercept) and not is_sparse(nodes)
        scaler = StandardScaler(with_mean=centre)
        with np.errstate(over="ignore", invalid="ignore"):
            scaler.fit(nodes, sample_weight=weights)
        shifts = scaler.mean_.astype(np.float64) if centre else None
    else:
        scaler, shifts = MaxAbsScaler(), None
        scaler.fit(nodes if weights is None else nodes[weights > 0])
        if kind == COMMON:
            scaler.scale_ = np.full_like(scaler.scale_, scaler.max_abs_.max())
    scales = np.asarray(scaler.scale_, dtype=np.float64)
    nodes = scaler.set_output(transform="default").transform(nodes)  # whatever the user's default
    return replace(examples, nodes=nodes, scaling=ColumnScaling(1 / scales, shifts, kind))


def _scale_shared(examples: Examples) -> Examples:
    """Return examples whose nodes share rows of features, all divided by the largest number."""
    shared, weights = examples.nodes, examples.sample_weight
    refuse_infinite(shared.rows, np.arange(examples.n + 1))
    kept = shared.rows if weights is None else shared.rows[weights > 0]
    factor = 1 / column_magnitudes(SharedRows(kept, shared.table, shared.constant)).max()
    table = Table(shared.table.matrix * factor)
    scaling = ColumnScaling(np.full(shared.shape[1], factor), None, COMMON)
    return replace(examples, nodes=SharedRows(shared.rows, table, shared.constant), scaling=scaling)
