"""The max-min oracle by mirror prox: a saddle point over any structure's projection."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from ..operators cimport Loss, Oracle, Parts, Projection
from ..part_layout cimport PartLayout
from .game cimport MaxMinGame
from .rows cimport NodeRows

from ..utils.arrays import aligned_zeros

# Vectors of one answer, in the layout of theta.
cdef enum:
    VECTORS = 20

# Initial and maximum step size, in units of 1 / (largest cost of the truth's parts).
cdef double FIRST_STEP = 2
cdef double LONGEST_STEP = 16


cdef struct Point:
    # A pair (mu, nu), the dual points that project to them, and the projections' values; how far
    # these may be below the maximum.
    double* dual_mu
    double* dual_nu
    double* mu
    double* nu
    double value_mu, value_nu
    double missed

cdef struct Gradient:
    # The gradients of the game, theta + A' nu and A mu, and the constants of the loss.
    double* mu
    double* nu
    double constant_mu, constant_nu


cdef class SaddleProx(MaxMinGame):
    """``argmax_mu G(mu) + <theta, mu>`` with ``G(mu) = min_nu nu' A mu``, mu and nu in M.

    Mirror prox (Nemirovski 2004; Nowak-Vila et al. 2020, section 5.3): from (mu, nu) a half step
    along the gradients, then a full step along the gradients at the half step.  Points are stored
    as the dual points that project to them, so any projection can be used.  The step is halved
    until ``eta <F(z') - F(z), z' - z+> <= D(z', z) + D(z+, z')`` holds, which needs no constant.
    The answer is the better of the average and the last half step; two oracle calls certify it:
    ``max_mu F(mu, nu) - min_nu F(mu, nu)``.

    Parameters
    ----------
    layout : PartLayout
    projection : Projection
        Projection of mu, and of nu if ``rows`` is None.
    oracle : Oracle
        Its bounds certify answers.
    loss : Loss
        Must have ``costs``.
    parts : Parts
    labels : ndarray of int32
        True labels, concatenated: accuracy is relative to the surrogate's value.
    rows : NodeRows, optional
        Projection of nu over the node rows alone, if the loss depends only on them and every node
        may take any state independently.
    max_iter : int, default=10
    tol : float, default=1e-4
    warm_start : bool, default=True
        Keep every example's last dual points and its step: two vectors like theta.
    widest : float, default=4.0
        Maximum spread of the dual points at the start of an answer.  They grow with every step;
        from far outside the polytope, many steps would pass before marginals leave its border.
    """

    cdef readonly Projection projection
    cdef object starts, steps
    cdef double[::1] start_view, step_view
    cdef int64_t[::1] start_offsets
    cdef double widest

    def __init__(self, PartLayout layout not None, Projection projection not None,
                 Oracle oracle not None, Loss loss not None, Parts parts not None, labels,
                 NodeRows rows=None, int max_iter=10, double tol=1e-4, bint warm_start=True,
                 double widest=4.0):
        cdef Py_ssize_t i
        super().__init__(layout, oracle, loss, parts, labels, rows, max_iter, tol, warm_start,
                         VECTORS, projection.work_bytes)
        self.projection, self.widest = projection, widest
        sizes = np.zeros(layout.n + 1, np.int64)
        if warm_start:
            for i in range(layout.n):
                sizes[i + 1] = 2 * layout.theta_size(i)
        self.start_offsets = np.cumsum(sizes)
        self.starts = aligned_zeros(int(self.start_offsets[layout.n]) + 8)
        self.steps = np.zeros(layout.n)  # 0: no answer yet
        self.start_view, self.step_view = self.starts, self.steps

    def memory_of_examples(self):
        """Return the end of each example's last answer.

        See :meth:`MaxMinGame.memory_of_examples`.
        """
        return {"starts": self.starts, "steps": self.steps} if self.warm_start else {}

    cdef int project_point(self, Py_ssize_t i, Point* point, char* work) except -1 nogil:
        """mu, nu <- the projections of the dual points."""
        cdef char* scratch = self.more(work)
        cdef double bound_mu, bound_nu
        self.projection.project(i, point.dual_mu, point.mu, &point.value_mu, &bound_mu, scratch)
        if self.rows is None:
            self.projection.project(i, point.dual_nu, point.nu, &point.value_nu, &bound_nu, scratch)
        else:
            self.rows.project(i, point.dual_nu, point.nu, &point.value_nu, &bound_nu, scratch)
        point.missed = bound_mu - point.value_mu + bound_nu - point.value_nu
        return 0

    cdef int set_gradient(self, Py_ssize_t i, const double* theta, const double* mu,
                          const double* nu, Gradient* out) except -1 nogil:
        cdef Py_ssize_t size = self.layout.theta_size(i)
        memcpy(out.mu, theta, size * sizeof(double))
        memset(out.nu, 0, size * sizeof(double))
        out.constant_mu = self.loss.costs(i, nu, True, 1.0, out.mu)
        out.constant_nu = self.loss.costs(i, mu, False, 1.0, out.nu)
        return 0

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t size = self.layout.theta_size(i), j
        cdef Point here, half, full
        cdef Gradient at_here, at_half
        cdef double* mean_mu = self.vector(work, 16)
        cdef double* mean_nu = self.vector(work, 17)
        cdef double* sum_mu = self.vector(work, 18)
        cdef double* sum_nu = self.vector(work, 19)
        cdef double eta = FIRST_STEP * self.unit[i], mass = 0, truth, lhs, rhs, noise
        cdef double* start = NULL
        cdef int t, k, halved
        here.dual_mu, here.dual_nu = self.vector(work, 0), self.vector(work, 1)
        here.mu, here.nu = self.vector(work, 2), self.vector(work, 3)
        half.dual_mu, half.dual_nu = self.vector(work, 4), self.vector(work, 5)
        half.mu, half.nu = self.vector(work, 6), self.vector(work, 7)
        full.dual_mu, full.dual_nu = self.vector(work, 8), self.vector(work, 9)
        full.mu, full.nu = self.vector(work, 10), self.vector(work, 11)
        at_here.mu, at_here.nu = self.vector(work, 12), self.vector(work, 13)
        at_half.mu, at_half.nu = self.vector(work, 14), self.vector(work, 15)
        memset(sum_mu, 0, size * sizeof(double))
        memset(sum_nu, 0, size * sizeof(double))
        memset(here.dual_mu, 0, size * sizeof(double))
        memset(here.dual_nu, 0, size * sizeof(double))
        if self.warm_start:
            start = &self.start_view[self.start_offsets[i]]
            if self.step_view[i] > 0:
                eta = self.step_view[i]
                memcpy(here.dual_mu, start, size * sizeof(double))
                memcpy(here.dual_nu, start + size, size * sizeof(double))
                self.shorten(i, here.dual_mu)
                self.shorten(i, here.dual_nu)
        truth = self.score_of(i, theta, self.labels + self.layout.label_offsets[i], work)
        self.project_point(i, &here, work)
        self.set_gradient(i, theta, here.mu, here.nu, &at_here)
        value[0], bound[0] = -INFINITY, INFINITY
        self.spent_view[2 * i] += 1
        if start != NULL and self.step_view[i] > 0:
            self.certify(i, theta, here.mu, &at_here, marginals, value, bound, work)
            if self.enough(i, value[0], bound[0], truth):
                return 0
        for t in range(self.max_iter):
            if t > 0:
                self.set_gradient(i, theta, here.mu, here.nu, &at_here)
            for halved in range(60):
                for j in range(size):
                    half.dual_mu[j] = here.dual_mu[j] + eta * at_here.mu[j]
                    half.dual_nu[j] = here.dual_nu[j] - eta * at_here.nu[j]
                self.project_point(i, &half, work)
                self.set_gradient(i, theta, half.mu, half.nu, &at_half)
                for j in range(size):
                    full.dual_mu[j] = here.dual_mu[j] + eta * at_half.mu[j]
                    full.dual_nu[j] = here.dual_nu[j] - eta * at_half.nu[j]
                self.project_point(i, &full, work)
                lhs = 0
                for j in range(size):
                    lhs += (at_half.nu[j] - at_here.nu[j]) * (half.nu[j] - full.nu[j])
                    lhs -= (at_half.mu[j] - at_here.mu[j]) * (half.mu[j] - full.mu[j])
                rhs = distance(size, &half, &here) + distance(size, &full, &half)
                # Distances far below 1 are differences of larger numbers, and only as accurate as
                # the projections: without this test, no step would be short enough.
                noise = 1e-12 * (1 + fabs(half.value_mu) + fabs(half.value_nu))
                noise += 4 * (here.missed + half.missed + full.missed)
                if eta * lhs <= rhs + noise:
                    break
                eta /= 2
            mass += eta
            for j in range(size):
                sum_mu[j] += eta * half.mu[j]
                sum_nu[j] += eta * half.nu[j]
            here, full = full, here
            # Check whenever the number of iterations has doubled, and at the end.
            k = t + 1
            if k & (k - 1) == 0 or k == self.max_iter:
                self.certify(i, theta, half.mu, &at_half, marginals, value, bound, work)
                if t > 0:
                    for j in range(size):
                        mean_mu[j], mean_nu[j] = sum_mu[j] / mass, sum_nu[j] / mass
                    self.set_gradient(i, theta, mean_mu, mean_nu, &at_half)
                    self.certify(i, theta, mean_mu, &at_half, marginals, value, bound, work)
                if self.enough(i, value[0], bound[0], truth):
                    break
            eta = min(1.25 * eta, LONGEST_STEP * self.unit[i])
        self.spent_view[2 * i + 1] += t + 1 if t < self.max_iter else t
        if self.warm_start:
            self.step_view[i] = eta
            memcpy(start, here.dual_mu, size * sizeof(double))
            memcpy(start + size, here.dual_nu, size * sizeof(double))
        return 0

    cdef void shorten(self, Py_ssize_t i, double* dual) noexcept nogil:
        """Shrink a dual point of the last answer to the spread ``widest``."""
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef double low = 0, high = 0
        for j in range(size):
            low, high = min(low, dual[j]), max(high, dual[j])
        if high - low > self.widest:
            for j in range(size):
                dual[j] *= self.widest / (high - low)

    cdef int certify(self, Py_ssize_t i, const double* theta, const double* mu,
                     const Gradient* gradient, double* marginals, double* value, double* bound,
                     char* work) except -1 nogil:
        """Raise the value by ``min_nu F(mu, nu)`` and lower the bound by ``max_mu F(mu, nu)``."""
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef double attained, upper, linear = 0
        self.oracle.argmax(i, gradient.mu, self.label(work), &attained, &upper, self.scratch(work))
        bound[0] = min(bound[0], upper + gradient.constant_mu)
        for j in range(size):
            linear += theta[j] * mu[j]
        attained = linear + gradient.constant_nu + self.least(i, gradient.nu, work)
        if attained > value[0]:
            value[0] = attained
            memcpy(marginals, mu, size * sizeof(double))
        bound[0] = max(bound[0], value[0])
        return 0


cdef double distance(Py_ssize_t size, const Point* to, const Point* start) noexcept nogil:
    """Return the Bregman distances of mu and of nu, summed, by the values at the dual points."""
    cdef double total = start.value_mu - to.value_mu + start.value_nu - to.value_nu
    cdef Py_ssize_t j
    for j in range(size):
        total -= (start.dual_mu[j] - to.dual_mu[j]) * to.mu[j]
        total -= (start.dual_nu[j] - to.dual_nu[j]) * to.nu[j]
    return total
