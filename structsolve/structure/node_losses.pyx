"""Losses that are sums over the nodes of a labeling, shared by chains, classes and graphs."""

from functools import partial

import numpy as np

from libc.stdint cimport int64_t
from ..operators cimport Loss
from ..part_layout cimport PartLayout

from .losses import ClassWeights, CostMatrix, LabelCount, refuse_costs


cdef class NodeCosts:
    """Costs of predicted states against true states, checked and stored once.

    Parameters
    ----------
    cost : array of shape (rows, K)
        At least K rows.  ``cost[a, b]``: loss of predicting b for true state a.  Row K, if any, is for labels unseen
        in training.
    normalised : bool, default=False
        Divide by the number of nodes of the example.
    zero_one : bool, default=False
        Examples have one node, and all costs except the truth's are 1.
    name : str, default="hamming"
        Name of the loss in messages.
    advice : str, default="score with loss='hamming' or drop these examples"
        Advice in the message about labels without a row.
    """

    def __init__(self, cost, bint normalised=False, bint zero_one=False, str name="hamming",
                 str advice="score with loss='hamming' or drop these examples"):
        cdef const double[:, ::1] view = np.ascontiguousarray(cost, dtype=np.float64)
        cdef const double[:, ::1] turned
        if view.shape[1] < 1 or view.shape[0] < view.shape[1]:
            raise ValueError(
                f"cost has the shape {np.shape(cost)}, expected at least as many rows as columns, "
                "and one column"
            )
        self.K, self.normalised, self.zero_one = view.shape[1], normalised, zero_one
        self.name, self.advice = name, advice
        self.cost, self.cost_matrix = &view[0, 0], np.asarray(view)
        square = self.cost_matrix[:self.K]
        self.ones_off_diagonal = bool((square == 1 - np.eye(self.K)).all())
        self.hamming = self.ones_off_diagonal and bool((self.cost_matrix[self.K:] == 1).all())
        turned = np.ascontiguousarray(square.T)
        self.transposed = &turned[0, 0]
        self.owners = (view, turned)


cdef int check_states(NodeCosts costs, PartLayout layout, labels) except -1:
    if labels is None:
        raise ValueError("labels: found None, expected the true states of all nodes")
    cdef const int[::1] view = labels
    cdef Py_ssize_t i, v, rows = costs.cost_matrix.shape[0]
    if view.shape[0] != layout.label_offsets[layout.n]:
        raise ValueError(
            f"labels: found {view.shape[0]} states, expected {layout.label_offsets[layout.n]}"
        )
    for i in range(layout.n):
        for v in range(layout.label_offsets[i], layout.label_offsets[i + 1]):
            if 0 <= view[v] < rows:
                continue
            if view[v] != costs.K:
                raise ValueError(
                    f"example {i}: found the state {view[v]}, expected 0 to {costs.K - 1}"
                )
            raise ValueError(
                f"example {i}: loss {costs.name} has no costs for a label that was not seen in "
                f"training; {costs.advice}"
            )
    return 0


cdef class NodeLoss(Loss):
    """``sum_v cost[truth_v, y_v]``, or its mean over the nodes.

    Parameters
    ----------
    costs : NodeCosts
    layout : PartLayout
        Has a node block of shape (K,); labels have one state per node.
    """

    cdef readonly NodeCosts node_costs
    cdef const double* cost
    cdef const int64_t* offsets
    cdef Py_ssize_t shared_size, stride
    cdef bint normalised, hamming

    def __init__(self, NodeCosts costs not None, PartLayout layout not None):
        super().__init__(layout)
        self.node_costs, self.cost = costs, costs.cost
        self.normalised, self.hamming = costs.normalised, costs.hamming
        self.offsets, self.n_states = layout.label_offsets, costs.K
        self.shared_size, self.stride = layout.shared_size, layout.node_size
        self.decomposes = True
        self.has_costs = True
        self.averaged = costs.normalised or costs.zero_one
        self.zero_one = costs.zero_one
        self.takes_unseen = len(costs.cost_matrix) > costs.K

    @property
    def cost_matrix(self):
        """Costs, an array of shape (rows, K): ``[truth, prediction]``."""
        return self.node_costs.cost_matrix

    def check_truths(self, labels):
        """Refuse true labels that have no row of costs; see :meth:`Loss.check_truths`."""
        check_states(self.node_costs, self.layout, labels)

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, n = self.offsets[i + 1] - self.offsets[i]
        cdef double total = 0
        for v in range(n):
            total += self.cost[truth[v] * self.n_states + label[v]]
        return total / max(n, 1) if self.normalised else total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v, s, n = self.offsets[i + 1] - self.offsets[i]
        cdef double* row = theta + self.shared_size
        cdef const double* cost
        if self.normalised:
            scale /= max(n, 1)
        if self.hamming:
            # Subtracting from the true state takes one operation per node instead of K.  Labels
            # unseen in training have no state.
            for v in range(n):
                if truth[v] < self.n_states:
                    row[truth[v]] -= scale
                row += self.stride
            return scale * n
        for v in range(n):
            cost = self.cost + truth[v] * self.n_states
            for s in range(self.n_states):
                row[s] += scale * cost[s]
            row += self.stride
        return 0

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t v, s, t, n = self.offsets[i + 1] - self.offsets[i], K = self.n_states
        cdef double* row = theta + self.shared_size
        cdef const double* given = nu + self.shared_size
        # Rows to sum over: truths if nu are marginals of truths, else predictions.
        cdef const double* cost = self.node_costs.transposed if transposed else self.cost
        cdef const double* line
        cdef double weight
        if self.normalised:
            scale /= max(n, 1)
        if self.node_costs.ones_off_diagonal:
            # A = 1 1' - I, and the marginals of a node sum to 1.
            for v in range(n * self.stride):
                row[v] -= scale * given[v]
            return scale * n
        for v in range(n):
            for t in range(K):
                weight, line = scale * given[t], cost + t * K
                for s in range(K):
                    row[s] += weight * line[s]
            row += self.stride
            given += self.stride
        return 0


cdef class ZeroOneLoss(Loss):
    """1 for every labeling that differs from the truth in any entry.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef const int64_t* offsets

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.offsets = layout.label_offsets
        self.zero_one = self.averaged = self.takes_unseen = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v
        for v in range(self.offsets[i + 1] - self.offsets[i]):
            if truth[v] != label[v]:
                return 1
        return 0


def hamming_costs(Py_ssize_t K):
    """Return the costs of the Hamming loss.

    Parameters
    ----------
    K : int
        Number of states.

    Returns
    -------
    ndarray of float64 of shape (K + 1, K)
        1 for every error; row K is for labels unseen in training.
    """
    refuse_costs(K)
    costs = np.ones((K + 1, K))
    np.fill_diagonal(costs, 0)
    return costs


def make_node_loss(space, loss):
    """Return a factory for the loss named ``loss``, for a space whose labels are states of nodes.

    Parameters
    ----------
    space : Space
        Has one node block of shape (K,) and ``classes_``.
    loss : str, CostMatrix or ClassWeights
        Only losses by name accept labels unseen in training.

    Returns
    -------
    callable or None
        ``layout -> Loss``; None if the name is unknown here, since another plugin may provide it.
    """
    K = len(space.classes_)
    if isinstance(loss, (CostMatrix, ClassWeights)):
        costs = NodeCosts(loss.cost(space.classes_), loss.normalized, name=type(loss).__name__)
    elif isinstance(loss, LabelCount):
        costs = NodeCosts(loss.cost(space.classes_), name=type(loss).__name__)
    elif not isinstance(loss, str):
        return None
    elif loss in ("hamming", "normalized-hamming"):
        costs = NodeCosts(hamming_costs(K), loss != "hamming", name=loss)
    elif loss == "zero-one" and space.structure.single_node:
        # For one node the loss has costs of classes, like "hamming".
        costs = NodeCosts(hamming_costs(K), zero_one=True, name=loss)
    elif loss == "zero-one":
        return ZeroOneLoss
    else:
        return None
    return partial(NodeLoss, costs)
