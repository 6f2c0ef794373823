"""The base of surrogates whose cut is that of one label: operators, and writing of cuts."""

import numpy as np

from ..part_layout cimport PartLayout
from ..search.view cimport rounding_of
from ..structure.label_key cimport label_key


cdef class OneLabel(Surrogate):
    """Holds the operators, and writes entries and key of a label's cut.

    Parameters
    ----------
    layout : PartLayout
    oracle, parts, loss : Oracle, Parts, Loss
        The structure's operators, bound to the same examples.
    """

    def __init__(self, PartLayout layout not None, Oracle oracle not None, Parts parts not None,
                 Loss loss not None):
        super().__init__(layout)
        self.oracle, self.parts, self.loss = oracle, parts, loss
        self.n_states = oracle.n_states
        self.max_entries = parts.max_entries
        self.exact = oracle.exact
        self.theta_bytes = 8 * layout.max_theta + 64
        self.shortfall_owner = np.zeros(layout.n)
        self.shortfall_view = self.shortfall_owner

    def shortfalls(self):
        """Return the excess of known labels' scores over the oracle's bounds; see the base."""
        return self.shortfall_owner

    cdef void note(self, Py_ssize_t i, const double* theta, double shortfall,
                   double scale) noexcept nogil:
        if shortfall > self.shortfall_view[i] and shortfall > 1e-6 * scale + rounding_of(
                theta, self.layout.theta_size(i)):
            self.shortfall_view[i] = shortfall

    cdef double point_to(self, Py_ssize_t i, const double* theta, const int* truth,
                         const int* label, Cut* cut) except? -1 nogil:
        cdef Py_ssize_t j
        cdef double margin = 0
        cut.nnz = self.parts.difference(i, truth, label, cut.index, cut.value)
        for j in range(cut.nnz):
            margin -= theta[cut.index[j]] * cut.value[j]
        cut.key = label_key(label, self.layout.label_size(i))
        return margin
