"""The margin smoothed: tau log sum_y exp((L(y, y_i) + <theta_i, mu(y) - mu(y_i)>) / tau)."""

from libc.string cimport memset
from ..utils.alignment cimport align
from ..operators cimport Loss, Parts, Projection
from ..structure.answer_checks cimport check_numbers
from .base cimport Cut, Surrogate


cdef class SoftMargin(Surrogate):
    """Mixtures of a margin's cuts, weighed by their values at a temperature.

    The probabilities of labels are those of ``exp(value / temperature)``.  Each mixture is a cut of
    the margin, so it gives a dual of the margin itself; the bound is the smooth function, at most
    ``temperature * log(number of labels)`` above the margin.

    Parameters
    ----------
    projection : Projection
        Onto the marginals of ``exp(score)``, exact, with ``gibbs``.
    parts : Parts
    loss : Loss
        One that decomposes over the parts.

    Attributes
    ----------
    temperature : float
        In units of the loss; 1 until it is set.
    """

    cdef readonly Projection projection
    cdef readonly Parts parts
    cdef Loss loss
    cdef Py_ssize_t row_bytes
    cdef public double temperature

    def __init__(self, Projection projection not None, Parts parts not None, Loss loss not None):
        super().__init__(projection.layout)
        if not (projection.gibbs and projection.exact and loss.decomposes):
            raise ValueError(
                f"{type(projection).__name__} and {type(loss).__name__}: expected exact marginals of "
                "labels and a loss that decomposes over their parts"
            )
        self.projection, self.parts, self.loss, self.temperature = projection, parts, loss, 1.0
        self.n_states, self.exact = parts.n_states, False
        self.max_entries = max(self.layout.max_theta, parts.max_entries)
        # Rows of losses, of scores and of marginals.
        self.row_bytes = 8 * (self.layout.max_theta + 8) + 64
        self.work_bytes = 3 * self.row_bytes + projection.work_bytes + 128

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        cdef Py_ssize_t j, n, size = self.layout.theta_size(i), filled = 0
        cdef double* b = <double*>align(work)
        cdef double* scores = <double*>align(work + self.row_bytes)
        cdef double* mu = <double*>align(work + 2 * self.row_bytes)
        cdef double value, bound, constant, right = 0, heat = 1.0 / self.temperature
        memset(b, 0, size * sizeof(double))
        constant = self.loss.augment(i, truth, 1.0, b)
        for j in range(size):
            scores[j] = (b[j] + theta[j]) * heat
        self.projection.project(i, scores, mu, &value, &bound,
                                align(work + 3 * self.row_bytes))
        n = self.parts.encode(i, truth, cut.index, cut.value)
        cut.b = constant
        for j in range(size):
            if mu[j] != 0:
                cut.b += b[j] * mu[j]
            mu[j] = -mu[j]
        for j in range(n):
            mu[cut.index[j]] += cut.value[j]
            right += theta[cut.index[j]] * cut.value[j]
        for j in range(size):
            if mu[j] != 0:
                cut.index[filled], cut.value[filled] = <int>j, mu[j]
                filled += 1
        cut.nnz, cut.key, cut.calls = filled, 0, 1
        cut.bound = self.temperature * value + constant - right
        check_numbers(self.projection, i, 1, &cut.bound)
        return 0
