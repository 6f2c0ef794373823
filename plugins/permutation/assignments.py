"""Assignments of rows to distinct columns: the base of the spaces of rankings and matchings.

Compiled modules are imported where operators are made: listing structures needs none of them.
"""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.structure.base import Space
from structsolve.structure.losses import ClassWeights, CostMatrix


class AssignmentSpace(Space):
    """The base of rankings and matchings: labels give rows distinct columns.

    Parameters
    ----------
    structure : PermutationStructure
    layout : WeightLayout
        A node block of shape (K, K), of labels and ranks; or a node block "pair" of shape (1,).
    """

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return all assignments of an example that use no forbidden pair."""
        allowed = self.allowed(examples, i)
        rows, cols = allowed.shape
        columns = np.array(list(permutations(range(cols), rows)), dtype=np.int32)
        return columns[allowed[np.arange(rows), columns].all(axis=1)]

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> np.ndarray:
        """Return one ranking, or the columns of one matching."""
        return label.astype(np.int64)

    def allowed(self, examples: Examples, i: int) -> np.ndarray:
        """Return the pairs of an example that labels may use.

        Parameters
        ----------
        examples : Examples
        i : int

        Returns
        -------
        ndarray of bool of shape (rows, cols)
        """
        raise NotImplementedError


def bind_loss(space: AssignmentSpace, loss: Any) -> Any:
    """Return a factory for a loss of assignments.

    Parameters
    ----------
    space : AssignmentSpace
    loss : str, CostMatrix or ClassWeights

    Returns
    -------
    callable or None
        None for an unknown loss.
    """
    if isinstance(loss, (CostMatrix, ClassWeights)):
        return partial(_bind_table_loss, loss)
    if loss == "zero-one":
        from structsolve.structure.node_losses import ZeroOneLoss

        return ZeroOneLoss
    from structsolve.plugins.permutation._losses import AssignmentLoss

    if loss in ("hamming", "normalized-hamming"):
        return partial(AssignmentLoss, "hamming", loss != "hamming")
    return partial(AssignmentLoss, "footrule", False) if loss == "spearman" else None


def _bind_table_loss(loss: CostMatrix | ClassWeights, layout: Any) -> Any:
    """Return a loss with costs of ranks or columns, which must be the same in all examples."""
    from structsolve.plugins.permutation._losses import AssignmentLoss

    matching = "pair" in layout.shapes
    cols = layout.examples.topology["cols"] if matching else np.array(layout.shapes["node"][:1])
    other = np.flatnonzero(cols != cols[0])
    if other.size:
        raise ValueError(
            f"example {other[0]}: found {cols[other[0]]} columns, expected {cols[0]} as in "
            "example 0: a cost matrix of columns needs the same columns in all examples"
        )
    return AssignmentLoss(loss.cost(np.arange(int(cols[0]))), loss.normalized, layout)
