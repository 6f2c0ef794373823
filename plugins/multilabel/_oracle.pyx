"""Label sets: graphs with one node per label, losses, and how much each label is worth."""

import numpy as np

from structsolve.operators cimport Loss

from structsolve.plugins.mrf._model cimport Model
from structsolve.plugins.mrf._oracle cimport Decoder, GraphOracle
from structsolve.plugins.mrf._shape cimport GraphShape


def label_set_shape(layout, label_offsets, edges):
    """Return the GraphShape of label sets: one graph, two states, states 0 without scores.

    Parameters
    ----------
    layout : structsolve.potentials.weight_layout.Layout
        Of a space of label sets.
    label_offsets : ndarray of int64
    edges : ndarray of shape (m, 2)
    """
    L = layout.node.shape[0]
    return GraphShape(
        label_offsets, edges, None, np.full(L, 2, np.int32), shared_size=layout.shared_size,
        row_size=layout.node_size, node_step=1, skip=1,
        pair_start=layout.starts.get("pair", 0), edge_step=4, row=2)


cdef class LabelSetOracle(GraphOracle):
    """The oracle of graphs; its max-marginals say what each label adds."""

    def __init__(self, GraphShape shape, *args):
        super().__init__(shape, *args)
        # Its own decoders give them, or the neighbours of what they find.
        self.has_max_marginals = True

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        # out[l] <- the best score with label l on, less the best with it off; by decoders without
        # max-marginals, with the other labels as predicted.
        cdef Model model
        cdef double* found
        cdef int* label
        cdef double value, bound
        cdef Py_ssize_t v
        if self.marginals != Decoder.NONE:
            self.node_marginals(i, theta, &found, &model, work)
            for v in range(model.n):
                out[v] = found[2 * v + 1] - found[2 * v]
        else:
            # Behind the scores is room for a second set of them.
            label = <int*>(work + self.scores_bytes)
            self.decode(i, theta, label, &value, &bound, work)
            model = self.shape.gather(i, theta, <double*>work,
                                      <double*>work + self.shape.max_unary)
            for v in range(model.n):
                out[v] = _worth(&model, label, v)
        for v in range(model.n, self.shape.row_size):
            out[v] = 0
        return 0


cdef double _worth(const Model* model, const int* label, Py_ssize_t v) noexcept nogil:
    # Score with v on less the score with v off, all else as labelled.
    cdef Py_ssize_t k, e, w
    cdef const double* table
    cdef double total = model.unary[2 * v + 1] - model.unary[2 * v]
    for k in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[k]
        w = model.ends[2 * e] + model.ends[2 * e + 1] - v
        table = model.pair + 4 * e
        if model.ends[2 * e] == v:
            total += table[2 + label[w]] - table[label[w]]
        else:
            total += table[2 * label[w] + 1] - table[2 * label[w]]
    return total


cdef class LabelSetLoss(Loss):
    """What the losses of label sets share.

    Parameters
    ----------
    labels : ndarray of int32 of shape (n * L,)
        Which labels are on, row by row.
    shape : GraphShape
    """

    cdef const int* labels
    cdef Py_ssize_t L, start
    cdef GraphShape shape
    cdef object owners

    def __init__(self, labels, GraphShape shape):
        cdef const int[::1] view = labels
        self.owners = labels
        self.labels = &view[0]
        self.shape, self.L, self.start = shape, shape.max_nodes, shape.node_start
        self.decomposes = True

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)


cdef class LabelSetHamming(LabelSetLoss):
    """Number of labels that are wrongly on or off, or its mean over the labels.

    Parameters
    ----------
    labels, shape
        As of LabelSetLoss.
    normalised : bool
        Divide by L.
    """

    cdef readonly double weight

    def __init__(self, labels, GraphShape shape, bint normalised=False):
        super().__init__(labels, shape)
        self.weight = 1.0 / self.L if normalised else 1.0
        self.averaged = normalised
        self.has_costs = True

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, wrong = 0
        cdef const int* truth = self.labels + i * self.L
        for v in range(self.L):
            wrong += truth[v] != label[v]
        return self.weight * wrong

    cdef double augment(self, Py_ssize_t i, double scale, double* theta) except? -1 nogil:
        # A label that is off costs 1 when it is turned on; one that is on saves 1.
        cdef Py_ssize_t v, on = 0
        cdef const int* truth = self.labels + i * self.L
        cdef double* row = theta + self.start
        scale *= self.weight
        for v in range(self.L):
            row[v] += scale * (1 - 2 * truth[v])
            on += truth[v]
        return scale * on

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # sum_v y_v + y'_v - 2 y_v y'_v, the same both ways.  Labels that are off have no part:
        # what a label costs when it is on is affine in nu, and so is the constant.
        cdef Py_ssize_t v
        cdef double on = 0
        cdef double* row = theta + self.start
        nu += self.start
        scale *= self.weight
        for v in range(self.L):
            row[v] += scale * (1 - 2 * nu[v])
            on += nu[v]
        return scale * on


cdef class LabelSetCount(LabelSetLoss):
    """Number of labels in a set and in the true set: what micro-F1 divides by."""

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, on = 0
        cdef const int* truth = self.labels + i * self.L
        for v in range(self.L):
            on += truth[v] + label[v]
        return on

    cdef double augment(self, Py_ssize_t i, double scale, double* theta) except? -1 nogil:
        cdef Py_ssize_t v, on = 0
        cdef const int* truth = self.labels + i * self.L
        cdef double* row = theta + self.start
        for v in range(self.L):
            row[v] += scale
            on += truth[v]
        return scale * on
