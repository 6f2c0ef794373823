"""Stochastic subgradient steps over examples, with w = scale * v and lazy averages."""

import numpy as np

from libc.math cimport INFINITY, pow, sqrt
from libc.stdint cimport int64_t
from ..potentials.linear cimport LinearPotentials
from ..surrogates.base cimport Cut, Surrogate
from ._batches cimport BatchLoop, doubles, integers
from ._loop cimport check_order, first_label
from ._polyhedron cimport Polyhedron
from ._team cimport Team

from ..utils.arrays import aligned_zeros, check_finite, check_numbers

# Memory of one thread.
cdef struct Space:
    double* theta
    char* work


cdef class SGDLoop(BatchLoop):
    """State and inner loop of SGD: a step costs the non-zeros of its example, for any ``dim``.

    ``w = scale * v`` on penalised coordinates, so that shrinking is one multiplication.  With
    weights ``c_t`` of the iterates and ``S_t = sum_{k<=t} c_k scale_k`` their weighted sum is
    ``S_T v_T - sum_k S_{k-1} change_k``: the second vector, ``lag``, changes only where v does.
    Free coordinates (outside the norm) neither shrink nor take the same step; there are few of
    them, and each step touches them all.

    Parameters
    ----------
    dim : int
        Length of w.
    free : ndarray of int64
        Coordinates outside the norm.
    alpha : float
        Regularisation constant.
    t0 : float
        The step size after t steps is ``1 / (alpha (t + t0))``, that of the free coordinates
        ``1 / sqrt(t + t0)``.
    """

    cdef LinearPotentials potentials
    cdef Surrogate surrogate
    cdef const double[::1] weights
    cdef const int[::1] labels
    cdef const int* truths
    cdef readonly object v, lag, free_sum, free
    cdef double[::1] v_view, lag_view, free_sum_view, before
    cdef const int64_t[::1] free_view
    cdef double[::1] u, scratch
    cdef Space* spaces              # of each thread
    cdef Cut* cuts                  # of each slot
    cdef Py_ssize_t n_spaces, n_cuts
    cdef object owners, cut_owners
    cdef Py_ssize_t dim, n
    cdef double scale, scale_sum, mass, norm
    cdef readonly double alpha, t0
    cdef readonly int64_t t
    # Number of steps that ended outside of the ball.
    cdef readonly int64_t projections
    # The feasible set of w; None: unconstrained.
    cdef readonly Polyhedron feasible
    # Arguments and results of run().
    cdef double power, radius, total, constant
    cdef bint averaging
    cdef long calls

    def __init__(self, Py_ssize_t dim, free, double alpha, double t0=0):
        self.dim, self.alpha, self.t0 = dim, alpha, t0
        self.v, self.lag = aligned_zeros(dim), aligned_zeros(dim)
        check_numbers(free, dim, "free")
        self.free, self.free_sum = np.asarray(free, dtype=np.int64), np.zeros(len(free))
        self.v_view, self.lag_view = self.v, self.lag
        self.free_view, self.free_sum_view = self.free, self.free_sum
        self.before = np.zeros(len(free))
        self.scale = 1

    def bind(self, LinearPotentials potentials not None, Surrogate surrogate not None, labels,
             weights):
        """Set the examples.

        Parameters
        ----------
        potentials : LinearPotentials
        surrogate : Surrogate
        labels : ndarray of int32
            True labels, concatenated.
        weights : ndarray of float64 of shape (n,)
            ``u_i``; they sum to 1.
        """
        self.potentials, self.surrogate, self.weights = potentials, surrogate, weights
        self.labels = labels
        if potentials.dim != self.dim:
            raise ValueError(f"found potentials of {potentials.dim} weights, expected {self.dim}")
        self.truths = first_label(potentials, surrogate, labels, weights)
        self.n = potentials.n
        self.u = aligned_zeros(potentials.max_theta + 8)
        self.scratch = aligned_zeros(potentials.scratch_size)
        self.n_spaces = self.n_cuts = 0
        self.reserve(self.n, 1, 1)

    def reserve(self, Py_ssize_t n, Py_ssize_t threads, Py_ssize_t batch):
        """Allocate memory for examples, threads, and steps of a batch; see the base."""
        cdef Py_ssize_t k, entries = self.surrogate.max_entries + 1
        BatchLoop.reserve(self, n, threads, batch)
        if threads > self.n_spaces:
            owners = []
            self.spaces = <Space*>doubles(threads * sizeof(Space) // 8, owners)
            for k in range(threads):
                self.spaces[k].theta = doubles(self.potentials.max_theta, owners)
                self.spaces[k].work = <char*>doubles(self.surrogate.work_bytes // 8 + 16, owners)
            self.owners, self.n_spaces = owners, threads
        if self.n_slots > self.n_cuts:
            owners = []
            # Cuts of two threads lie in different cache lines, but for the first and last of them.
            self.cuts = <Cut*>doubles(self.n_slots * sizeof(Cut) // 8 + 1, owners)
            for k in range(self.n_slots):
                self.cuts[k].value = doubles(entries, owners)
                self.cuts[k].index = integers(entries, owners)
            self.cut_owners, self.n_cuts = owners, self.n_slots

    def constrain(self, Polyhedron feasible not None):
        """Project w onto a polyhedron after each step from now on."""
        feasible.check(self.v.shape)
        self.feasible = feasible
        self.set_weights(self.last())

    def set_weights(self, w):
        """Start from w, or from the nearest point that the constraints allow."""
        self.v[:] = w if self.feasible is None else self.feasible.nearest(w)
        self.scale = 1

    def restart(self, w, double t0):
        """Start from w with the step sizes after t0 steps; restart the average.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        t0 : float
        """
        self.set_weights(w)
        self.t, self.t0 = 0, t0
        self.forget_average()

    def last(self):
        """Return the last iterate (a copy)."""
        return self.v * self.scale

    def averaged(self):
        """Return the average of the iterates, or None before the first."""
        if self.mass == 0:
            return None
        total = self.scale_sum * self.v - self.lag
        total[self.free] = self.free_sum
        return total / self.mass

    def forget_average(self):
        """Restart the average."""
        self.lag[:] = 0
        self.free_sum[:] = 0
        self.scale_sum = self.mass = 0

    def state(self):
        """Return scalars and arrays of the state, for checkpoints."""
        scalars = {"t": self.t, "t0": self.t0, "scale": self.scale,
                   "scale_sum": self.scale_sum, "mass": self.mass,
                   "projections": self.projections}
        return scalars, {"v": self.v, "lag": self.lag, "free_sum": self.free_sum}

    def restore(self, scalars, arrays):
        """Continue from a checkpoint."""
        check_finite({name: arrays[name] for name in ("v", "lag", "free_sum")})
        if arrays["v"].shape != self.v.shape or arrays["lag"].shape != self.v.shape or (
                arrays["free_sum"].shape != self.free_sum.shape):
            raise ValueError(
                f"the checkpoint has {arrays['v'].shape[0]} weights, this problem "
                f"{self.v.shape[0]}"
            )
        self.v[:], self.lag[:] = arrays["v"], arrays["lag"]
        self.free_sum[:] = arrays["free_sum"]
        self.t, self.t0, self.scale = scalars["t"], scalars["t0"], scalars["scale"]
        self.projections = scalars["projections"]
        self.scale_sum, self.mass = scalars["scale_sum"], scalars["mass"]

    def run(self, const int64_t[::1] order not None, double power, bint averaging, double radius,
            Py_ssize_t batch=1, Team team=None):
        """Take a step on each example of ``order``.

        Parameters
        ----------
        order : ndarray of int64
        power : float
            Iterate t has the weight t^power in the average.
        averaging : bool
        radius : float
            Project the penalised part of w on the ball of this radius; 0 for none.
        batch : int, default=1
            Number of examples whose cuts are taken at the same w; their steps follow sequentially.
        team : Team, optional
            Threads that share the cuts of a batch, made for this loop.

        Returns
        -------
        total : float
            Sum of ``u_i H_i(w)``, each at the w of its cut.
        constant : float
            Sum of ``u_i b_i``, those of the cuts; less, under constraints ``A w <= c``, what ``<c,
            nu>`` is at the multipliers of the projections, so that it still belongs to what the
            iterates move by.
        calls : int
            Oracle calls.
        """
        check_order(order, self.n)
        self.reserve(self.n, 1 if team is None else team.size, batch)
        if radius > 0:
            inside = self.v.copy()
            inside[self.free] = 0
            self.norm = inside @ inside
        self.power, self.averaging, self.radius = power, averaging, radius
        self.total = self.constant = self.calls = 0
        self.visit_all(order, batch, team)
        return self.total, self.constant, self.calls

    cdef Py_ssize_t size_of(self, Py_ssize_t i) noexcept nogil:
        return self.potentials.theta_size(i)

    cdef int propose(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil:
        """Take a cut at the current w."""
        cdef Cut* cut = &self.cuts[slot]
        cdef double* theta = self.spaces[thread].theta
        cut.nnz = cut.calls = 0
        if self.weights[i] > 0:
            self.potentials.score(i, &self.v_view[0], self.scale, theta)
            self.surrogate.cut(i, theta, self.truths + self.surrogate.layout.label_offsets[i], cut,
                               self.spaces[thread].work)
        return 0

    cdef int take(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil:
        """Take the step of an example: shrink w, and add its cut."""
        cdef double tau, shrink, eta, coef, weight, ratio, along = 0, square = 0, old = self.scale
        cdef double share = self.n * self.weights[i], radius = self.radius
        cdef double* v = &self.v_view[0]
        cdef bint averaging = self.averaging
        cdef Py_ssize_t j, f, n_free = self.free_view.shape[0]
        cdef Cut* cut = &self.cuts[slot]
        self.calls += cut.calls
        if share > 0:
            # The true label makes it 0.
            self.total += self.weights[i] * max(cut.bound, 0)
            self.constant += self.weights[i] * cut.b
        if radius > 0 and cut.nnz:
            self._products(i, cut, &along, &square)
        self.t += 1
        tau = self.t + self.t0
        eta = 1 / (self.alpha * tau)
        shrink = 1 - 1 / tau
        for f in range(n_free):
            self.before[f] = v[self.free_view[f]] * self.scale
        if shrink > 0:
            self.scale *= shrink
        else:
            # The first step does not depend on the start.
            for j in range(self.dim):
                v[j] = 0
            self.scale = 1
            self.norm = 0
            old = INFINITY
        for f in range(n_free):
            v[self.free_view[f]] = self.before[f] / self.scale
        if cut.nnz:
            coef = eta * share / self.scale
            self.potentials.add(i, cut.nnz, cut.index, cut.value, coef, v)
            if averaging and self.scale_sum > 0:
                self.potentials.add(i, cut.nnz, cut.index, cut.value, coef * self.scale_sum,
                                    &self.lag_view[0])
            for f in range(n_free):
                j = self.free_view[f]
                ratio = (v[j] - self.before[f] / self.scale) / coef
                along -= ratio * self.before[f]
                square -= ratio * ratio
                v[j] = (self.before[f] + share * ratio / sqrt(tau)) / self.scale
            self.norm += coef * (2 * along / old + coef * square)
        if radius > 0 and self.norm * self.scale * self.scale > radius * radius:
            self.projections += 1
            ratio = radius / (sqrt(self.norm) * self.scale)
            self.scale *= ratio
            for f in range(n_free):
                v[self.free_view[f]] /= ratio
        if self.feasible is not None:
            ratio = self.feasible.project(v, self.scale, False,
                                          &self.lag_view[0] if averaging else NULL, self.scale_sum)
            self.constant -= self.alpha * tau * ratio / self.n
        if averaging:
            weight = pow(self.t, self.power)
            self.mass += weight
            self.scale_sum += weight * self.scale
            for f in range(n_free):
                self.free_sum_view[f] += weight * self.scale * v[self.free_view[f]]
        if self.scale < 1e-6:
            self._rescale()
        return 0

    cdef void _products(self, Py_ssize_t i, const Cut* cut, double* along,
                        double* square) noexcept nogil:
        """along, square += <w, Phi' p> and ||Phi' p||^2."""
        cdef Py_ssize_t k
        cdef double* u = &self.u[0]
        self.potentials.add_gram(i, cut.nnz, cut.index, cut.value, 1.0, u, &self.scratch[0])
        along[0] += self.scale * self.potentials.dot(i, cut.nnz, cut.index, cut.value,
                                                     &self.v_view[0])
        for k in range(cut.nnz):
            square[0] += u[cut.index[k]] * cut.value[k]
        self.potentials.clear_gram(i, cut.nnz, cut.index, u)

    cdef void _rescale(self) noexcept nogil:
        """Set v to w and scale to 1; the average is unchanged."""
        cdef Py_ssize_t j
        for j in range(self.dim):
            self.v_view[j] *= self.scale
        self.norm *= self.scale * self.scale
        self.scale_sum /= self.scale
        self.scale = 1
