"""Losses that are sums over the nodes of a labeling; chains, classes and graphs share them."""

import numpy as np

from libc.stdint cimport int64_t
from ..operators cimport Loss


cdef object _labels_of(Py_ssize_t i, const int64_t* offsets, Py_ssize_t n):
    if not 0 <= i < n:
        raise ValueError(f"example {i} of {n}: expected 0 to {n - 1}")
    return offsets[i + 1] - offsets[i]


cdef class NodeLoss(Loss):
    """``sum_v cost[y_iv, y_v]``, or its mean over the nodes.

    Parameters
    ----------
    labels : ndarray of int32
        True states of all nodes.
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example.
    cost : array of shape (rows, K), rows >= K
        ``cost[a, b]``: loss of predicting b where a is true.
    shared_size, stride : int
        Where node rows start in ``theta_i``, and their padded width.
    normalised : bool, default=False
        Divide by the number of nodes of the example.
    zero_one : bool, default=False
        Examples have one node, and the costs are 1 for every label but the truth.
    """

    cdef const int* labels
    cdef const int64_t* offsets
    cdef const double* cost
    cdef Py_ssize_t n, n_states, shared_size, stride
    cdef const double* transposed_cost
    cdef bint normalised, hamming, ones_off_diagonal
    cdef readonly object cost_matrix
    cdef object owners

    def __init__(self, labels, offsets, cost, Py_ssize_t shared_size, Py_ssize_t stride,
                 bint normalised=False, bint zero_one=False):
        cdef const int[::1] label_view = labels
        cdef const int64_t[::1] offset_view = offsets
        cdef const double[:, ::1] cost_view = np.ascontiguousarray(cost, dtype=np.float64)
        self.owners = (labels, offsets, cost_view)
        self.labels = &label_view[0] if label_view.shape[0] else NULL
        self.offsets = &offset_view[0]
        self.n = offset_view.shape[0] - 1
        self.n_states = cost_view.shape[1]
        self.cost = &cost_view[0, 0]
        self.cost_matrix = np.asarray(cost_view)
        self.shared_size, self.stride, self.normalised = shared_size, stride, normalised
        # A label beyond the states (not seen in training) has a row of costs, but no column.
        known = label_view.shape[0] == 0 or np.asarray(label_view).max() < self.n_states
        square = np.asarray(cost_view)[:self.n_states]
        self.ones_off_diagonal = bool((square == 1 - np.eye(self.n_states)).all())
        self.hamming = known and self.ones_off_diagonal
        cdef const double[:, ::1] turned = np.ascontiguousarray(square.T)
        self.owners += (turned,)
        self.transposed_cost = &turned[0, 0]
        self.decomposes = True
        self.has_costs = True
        self.averaged = normalised or zero_one
        self.zero_one = zero_one

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        size = _labels_of(i, self.offsets, self.n)
        return self.shared_size + size * self.stride, size, self.n_states

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, first = self.offsets[i], n = self.offsets[i + 1] - first
        cdef double total = 0
        for v in range(n):
            total += self.cost[self.labels[first + v] * self.n_states + label[v]]
        return total / n if self.normalised else total

    cdef double augment(self, Py_ssize_t i, double scale, double* theta) except? -1 nogil:
        cdef Py_ssize_t v, s, first = self.offsets[i], n = self.offsets[i + 1] - first
        cdef double* row = theta + self.shared_size
        cdef const double* cost
        if self.normalised:
            scale /= n
        if self.hamming:
            # Taking it from the true state costs one operation a node instead of K.
            for v in range(n):
                row[self.labels[first + v]] -= scale
                row += self.stride
            return scale * n
        for v in range(n):
            cost = self.cost + self.labels[first + v] * self.n_states
            for s in range(self.n_states):
                row[s] += scale * cost[s]
            row += self.stride
        return 0

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t v, s, t, n = self.offsets[i + 1] - self.offsets[i], K = self.n_states
        cdef double* row = theta + self.shared_size
        cdef const double* given = nu + self.shared_size
        # Rows of what is summed over: truths where nu has those, else predictions.
        cdef const double* cost = self.transposed_cost if transposed else self.cost
        cdef const double* line
        cdef double weight
        if self.normalised:
            scale /= n
        if self.ones_off_diagonal:
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
    """1 for every labeling that differs from the truth in any node."""

    cdef const int* labels
    cdef const int64_t* offsets
    cdef Py_ssize_t n
    cdef object owners

    def __init__(self, labels, offsets):
        cdef const int[::1] label_view = labels
        cdef const int64_t[::1] offset_view = offsets
        self.owners = (labels, offsets)
        self.labels = &label_view[0] if label_view.shape[0] else NULL
        self.offsets = &offset_view[0]
        self.n = offset_view.shape[0] - 1
        self.zero_one = True
        self.averaged = True

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return None, _labels_of(i, self.offsets, self.n), None

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        cdef Py_ssize_t v
        for v in range(self.offsets[i], self.offsets[i + 1]):
            if self.labels[v] != label[v - self.offsets[i]]:
                return 1
        return 0


NODE_LOSSES = ("hamming", "normalized-hamming", "zero-one", "cost-matrix", "class-weights")


def make_node_loss(space, examples, loss):
    """Return the native loss called ``loss`` for a space whose labels are states of nodes.

    Parameters
    ----------
    space : Space
        With one node block of shape (K,) and ``classes_``.
    examples : Examples
        With labels; the extra state K stands for a label that was not seen in training.
    loss : str or structsolve.structure.losses.CostMatrix or structsolve.structure.losses.ClassWeights

    Returns
    -------
    Loss or None
        None when the name is not one of ours, so that other plugins may answer.
    """
    from .losses import ClassWeights, CostMatrix, LabelCount

    K = len(space.classes_)
    layout = space.layout
    hamming = np.vstack([1 - np.eye(K), np.ones((1, K))])
    if isinstance(loss, (CostMatrix, ClassWeights)):
        cost, normalised = loss.cost(space.classes_), loss.normalized
        unseen = np.flatnonzero(examples.labels == K)
        if unseen.size:
            raise ValueError(
                f"{type(loss).__name__} has no costs for a label that was not seen in training; "
                "score with loss='hamming' or drop these examples"
            )
    elif isinstance(loss, LabelCount):
        cost, normalised = loss.cost(space.classes_), False
    elif loss in ("hamming", "normalized-hamming"):
        cost, normalised = hamming, loss != "hamming"
    elif loss == "zero-one" and space.structure.single_node:
        # One node is the whole label: the loss has costs of classes, as "hamming" does.
        return NodeLoss(examples.labels, examples.label_offsets, hamming, layout.shared_size,
                        layout.node_size, zero_one=True)
    elif loss == "zero-one":
        return ZeroOneLoss(examples.labels, examples.label_offsets)
    else:
        return None
    return NodeLoss(examples.labels, examples.label_offsets, cost, layout.shared_size,
                    layout.node_size, normalised)
