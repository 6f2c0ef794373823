"""Projections of label sets without pairs: products of two-point simplices."""

cimport cython
from libc.math cimport INFINITY, exp, log1p
from libc.string cimport memset
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.algorithms.simplex_projection cimport square_slope, square_term
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout


cdef int _undefined(Py_ssize_t i, Py_ssize_t v, double score) except -1 with gil:
    raise ValueError(
        f"example {i}, label {v}: its score is {score}, so there are no marginals; expected a "
        "finite number, or -inf for a label that must be off; check that the weights are finite"
    )


cdef class LabelSetProjection(Projection):
    """Base of the projections of label sets: one number from 0 to 1 per label.

    Parameters
    ----------
    layout : PartLayout
        Layout of label sets without pairs.
    """

    cdef Py_ssize_t L, start, size

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        if "pair" in layout.shapes:
            raise ValueError(
                f"found scores of {layout.shapes['pair'][0]} pairs of labels, expected none: these "
                "projections take labels one by one"
            )
        self.L, self.start, self.n_states = layout.shapes["node"][0], layout.shared_size, 2
        self.size = self.start + layout.node_size
        self.work_bytes = 16 * self.L
        self.has_term = True

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.size

    cdef int check(self, Py_ssize_t i, const double* theta) except -1 nogil:
        cdef Py_ssize_t v
        for v in range(self.L):
            if not theta[self.start + v] < INFINITY:
                _undefined(i, v, theta[self.start + v])
        return 0


@cython.final
cdef class LabelSetSigmoids(LabelSetProjection):
    """Entropy: each label separately, ``1 / (1 + exp(-theta))``.

    Scores of -inf forbid a label; its marginal is exactly 0.

    Parameters
    ----------
    layout : PartLayout
    """

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.gibbs = self.has_samples = self.has_derivative = True

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t v
        cdef double x, e
        self.check(i, theta)
        memset(marginals, 0, self.size * sizeof(double))
        value[0] = 0
        for v in range(self.L):
            x = theta[self.start + v]
            # exp of a number of at most 0, so that nothing overflows.
            e = exp(-x if x > 0 else x)
            marginals[self.start + v] = 1 / (1 + e) if x > 0 else e / (1 + e)
            value[0] += log1p(e) + (x if x > 0 else 0.0)
        bound[0] = value[0]
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef double* off = <double*>work
        cdef Py_ssize_t v
        for v in range(self.L):
            off[v] = 1 - state[self.start + v]
        return entropy(self.L, state + self.start) + entropy(self.L, off)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef double* off_a = <double*>work
        cdef double* off_b = off_a + self.L
        cdef Py_ssize_t v
        cdef int stuck = 0
        cdef double total
        for v in range(self.L):
            off_a[v], off_b[v] = 1 - a[self.start + v], 1 - b[self.start + v]
        total = entropy_slope(self.L, a + self.start, b + self.start, gamma, &stuck)
        total += entropy_slope(self.L, off_a, off_b, gamma, &stuck)
        return slope_at(total, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* on = <double*>work
        cdef Py_ssize_t j, v
        self.check(i, theta)
        for v in range(self.L):
            on[v] = 1 / (1 + exp(-theta[self.start + v]))
        for j in range(n):
            for v in range(self.L):
                labels[j * self.L + v] = uniforms[j * self.L + v] < on[v]
        return 0

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Py_ssize_t v
        cdef double x, e
        self.check(i, theta)
        memset(out, 0, self.size * sizeof(double))
        for v in range(self.L):
            x = theta[self.start + v]
            e = exp(-x if x > 0 else x)
            out[self.start + v] = e / ((1 + e) * (1 + e)) * direction[self.start + v]
        return 0


@cython.final
cdef class LabelSetClip(LabelSetProjection):
    """Euclidean: the point of the cube nearest to ``theta``.

    Scores of -inf forbid a label; its part is exactly 0.

    Parameters
    ----------
    layout : PartLayout
    """

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.has_derivative = True

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t v
        cdef double x, on
        self.check(i, theta)
        memset(marginals, 0, self.size * sizeof(double))
        value[0] = 0
        for v in range(self.L):
            x = theta[self.start + v]
            on = 0.0 if x < 0 else 1.0 if x > 1 else x
            marginals[self.start + v] = on
            if on > 0:                          # -inf times 0 is no number
                value[0] += on * (x - on / 2)
        bound[0] = value[0]
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return square_term(self.L, state + self.start)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        return square_slope(self.L, a + self.start, b + self.start, gamma)

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Py_ssize_t v
        self.check(i, theta)
        memset(out, 0, self.size * sizeof(double))
        for v in range(self.start, self.start + self.L):
            if 0 < theta[v] < 1:
                out[v] = direction[v]
        return 0


@cython.final
cdef class LabelSetMaxMin(LabelSetProjection):
    """``max_mu min_nu`` of the Hamming loss and the scores, label by label.

    A label whose score is within [-c, c], c the cost, is on with probability 1/2
    (Nowak-Vila et al. 2020): ``max(0, theta, (theta + c) / 2)``.

    Parameters
    ----------
    cost : float
        Cost of one wrong label.
    layout : PartLayout
    """

    cdef double cost

    def __init__(self, double cost, PartLayout layout not None):
        super().__init__(layout)
        self.cost = cost

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t v
        cdef double x
        self.check(i, theta)
        memset(marginals, 0, self.size * sizeof(double))
        value[0] = 0
        for v in range(self.L):
            x = theta[self.start + v]
            if x >= self.cost:
                marginals[self.start + v] = 1
                value[0] += x
            elif x > -self.cost:
                marginals[self.start + v] = 0.5
                value[0] += (x + self.cost) / 2
        bound[0] = value[0]
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t v
        cdef double total = 0
        for v in range(self.start, self.start + self.L):
            total += min(state[v], 1 - state[v])
        return self.cost * total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t v
        cdef double total = 0
        for v in range(self.start, self.start + self.L):
            if a[v] + gamma * (b[v] - a[v]) < 0.5:
                total += b[v] - a[v]
            else:
                total -= b[v] - a[v]
        return self.cost * total
