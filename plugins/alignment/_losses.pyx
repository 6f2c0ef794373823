# build: glue
"""Items with a wrong partner: their number, or their share."""

cimport cython
from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.alignment._grid cimport Grid, GridShape, grid_of, grid_shape


@cython.final
cdef class PartnerLoss(Loss):
    """Items of the first sequence whose partner, or lack of one, is not the true one.

    Parameters
    ----------
    normalised : bool
        Divide by the number of items.
    kind : str
        See :class:`~structsolve.plugins.alignment._grid.GridShape`.
    layout : PartLayout
        Layout of an alignment space.
    """

    cdef GridShape shape

    def __init__(self, bint normalised, str kind, PartLayout layout not None):
        super().__init__(layout)
        self.shape = grid_shape(layout, kind)
        self.n_states = self.shape.max_others + 1
        self.averaged = normalised
        self.decomposes = self.has_costs = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Grid g = grid_of(self.shape, i)
        cdef Py_ssize_t v
        cdef double total = 0
        for v in range(g.n):
            total += truth[v] != label[v]
        return total / g.n if self.averaged else total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        # 1 less what the true pair has; an item without partner costs what its pairs have.
        cdef Grid g = grid_of(self.shape, i)
        cdef Py_ssize_t v, j
        cdef double constant = 0
        cdef double* row = theta + g.pairs
        if self.averaged:
            scale /= g.n
        for v in range(g.n):
            if 1 <= truth[v] <= g.m:
                row[truth[v] - 1] -= scale
            if truth[v]:
                constant += scale
            else:
                for j in range(g.m):
                    row[j] += scale
            row += g.m
        return constant

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # An item is right by its pair, or by having none on either side.
        cdef Grid g = grid_of(self.shape, i)
        cdef Py_ssize_t j
        cdef double constant = 0, paired
        cdef const double* given = nu + g.pairs
        cdef double* row = theta + g.pairs
        if self.averaged:
            scale /= g.n
        for v in range(g.n):
            paired = 0
            for j in range(g.m):
                paired += given[j]
            for j in range(g.m):
                row[j] += scale * (1 - paired - given[j])
            constant += scale * paired
            row += g.m
            given += g.m
        return constant
