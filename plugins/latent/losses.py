"""The task loss of classes as a loss of hidden states, against sets of allowed classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.operators import Loss
from structsolve.part_layout import PartLayout
from structsolve.plugins.latent.row_loss import RowLoss
from structsolve.plugins.latent.sets import Sets
from structsolve.structure.ask import ask_loss, make_layout
from structsolve.structure.base import Space
from structsolve.structure.calls import augment
from structsolve.structure.node_losses import NodeLoss


class SetLoss:
    """The loss of predicted states against partial labels.

    A state costs what its class costs. If several classes may be true, the cost is the smallest
    against any of them: zero within the set, and zero at nodes that allow all classes.

    Parameters
    ----------
    space : Space
        Space of the classes.
    examples : Examples
        Packed, with labels: classes.
    loss : str or loss object
        Loss of the classes.
    sets : Sets
        Sets of the classes.
    owner : ndarray of int of shape (n_states,)
        The class of each state.

    Raises
    ------
    ValueError
        If the loss has no costs per node and class, or is no cost matrix although labels are
        partial.
    """

    def __init__(self, space: Space, examples: Examples, loss: Any, sets: Sets, owner: np.ndarray):
        layout = make_layout(space, examples, training=True)
        native = ask_loss(space, loss)(layout)
        native.check_truths(examples.labels)
        name = loss if isinstance(loss, str) else type(loss).__name__
        if not native.decomposes:
            raise ValueError(
                f"loss={name!r} is no sum over the nodes of a {space.structure.name!r}, which "
                "LatentSVM needs; use loss='hamming', or costs of classes (CostMatrix)"
            )
        self.averaged, self.normalised, self.constants = native.averaged, False, None
        K, several = len(space.classes_), sets.latent()
        if isinstance(native, NodeLoss):
            matrix = native.cost_matrix[:K]
            least = np.stack([matrix[members].min(axis=0) for members in sets.table])
            self.rows, self.normalised = sets.rows, native.node_costs.normalised
        else:
            if len(several) and not hasattr(native, "cost_matrix"):
                raise ValueError(
                    f"loss={name!r} has no matrix of costs, which partial labels need; use "
                    "loss='hamming' or a CostMatrix, or give one label for every node"
                )
            least, self.constants = _node_costs(native, layout, examples, examples.labels, name, K)
            truths = examples.labels.copy()
            for k in range(K if len(several) else 0):
                truths[several] = k
                costs, _ = _node_costs(native, layout, examples, truths, name, K)
                nodes = several[sets.table[sets.rows[several], k]]
                least[nodes] = np.minimum(least[nodes], costs[nodes])
            self.rows = np.arange(len(least), dtype=np.int32)
        self.costs = np.ascontiguousarray(least[:, owner])

    def bind(self, space: Space) -> Any:
        """Return a factory for the native loss of the same examples.

        Parameters
        ----------
        space : Space
            Space of the states.

        Returns
        -------
        callable
            ``layout -> RowLoss``.
        """
        return lambda layout: RowLoss(
            self.costs, self.rows, self.constants, self.normalised, self.averaged, layout
        )


def _node_costs(
    loss: Loss, layout: PartLayout, examples: Examples, truths: np.ndarray, name: str, K: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each class costs at each node, and a constant per example."""
    stride, shared = layout.node_size, layout.shared_size
    rows, constants = [], np.zeros(examples.n)
    for i in range(examples.n):
        theta = np.zeros(layout.sizes(i)[0])
        truth = truths[examples.label_offsets[i] : examples.label_offsets[i + 1]]
        constants[i] = augment(loss, i, truth, 1.0, theta)
        length = int(examples.offsets[i + 1] - examples.offsets[i])
        nodes = theta[shared : shared + length * stride]
        if theta[:shared].any() or theta[shared + length * stride :].any():
            raise ValueError(
                f"loss={name!r} has costs of parts other than nodes (example {i}), which hidden "
                "states do not carry; use loss='hamming' or a CostMatrix"
            )
        rows.append(nodes.reshape(length, stride)[:, :K].copy())
    return np.concatenate(rows), constants
