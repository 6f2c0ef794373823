"""The margin of labels that share no parts, smoothed: tau log sum_y exp((b_y + theta_y) / tau)."""

from ..algorithms.simplex_projection cimport softmax
from ..simd.loops cimport ss_loops
from ..utils.alignment cimport align
from .base cimport Cut, Surrogate


cdef class SoftMargin(Surrogate):
    """Mixtures of a margin's cuts, weighed by their values at a temperature.

    The probabilities are those of ``exp(value / temperature)``.  Each mixture is a cut of the
    margin, so it gives a dual of the margin itself; the bound is the smooth function, at most
    ``temperature * log(K)`` above the margin.

    Parameters
    ----------
    margin : Surrogate
        With ``has_simplex``.
    n_labels : int
        K, without padding.

    Attributes
    ----------
    temperature : float
        In units of the loss; 1 until it is set.
    """

    cdef Surrogate margin
    cdef Py_ssize_t n_labels, row_bytes
    cdef public double temperature

    def __init__(self, Surrogate margin not None, Py_ssize_t n_labels):
        super().__init__(margin.layout)
        if not margin.has_simplex or not 0 < n_labels <= self.layout.max_theta:
            raise ValueError(
                f"n_labels is {n_labels}: expected labels that share no parts, each an entry of "
                f"at most {self.layout.max_theta}, and a margin that lists their losses"
            )
        self.margin, self.n_labels, self.temperature = margin, n_labels, 1.0
        self.n_states, self.exact = margin.n_states, False
        self.max_entries = n_labels
        # Rows of losses, of scores and of probabilities, with room for vectors' padding.
        self.row_bytes = 8 * (self.layout.max_theta + 8) + 64
        self.work_bytes = 3 * self.row_bytes + 64

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        cdef Py_ssize_t y, K = self.n_labels
        cdef Py_ssize_t stride = (K + 7) // 8 * 8
        cdef double* b = <double*>align(work)
        cdef double* scores = <double*>align(work + self.row_bytes)
        cdef double* p = <double*>align(work + 2 * self.row_bytes)
        cdef double value
        cdef int right
        self.margin.simplex(i, truth, b, &right)
        for y in range(K):
            scores[y] = (b[y] + theta[y] - theta[right]) / self.temperature
        softmax(i, K, stride, ss_loops(stride), scores, p, &value)
        cut.b = 0
        for y in range(K):
            cut.b += p[y] * b[y]
            cut.index[y], cut.value[y] = <int>y, -p[y]
        cut.value[right] += 1
        cut.nnz, cut.key, cut.calls = K, 0, 1
        cut.bound = self.temperature * value
        return 0
