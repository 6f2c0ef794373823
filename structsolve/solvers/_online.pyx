"""Steps of online learners over examples, with a lazy average of the weights."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int64_t
from ..operators cimport Oracle, Parts
from ..potentials.features cimport FeatureRows, Row
from ..potentials.linear cimport NODE, SHARED, LinearPotentials, Place
from ..potentials.mixed cimport MixedPotentials
from ..potentials.shared cimport SharedPotentials, TableArrays
from ..surrogates.base cimport Cut, Surrogate
from ._batches cimport doubles, integers
from ._loop cimport check_order, first_label

from ..utils.arrays import aligned_zeros

# Share of the terms of a cut's value that rounding may leave: steps often end at the value 0.
cdef double ROUNDING = 1e-12

cdef enum Rule:
    PERCEPTRON
    FIRST           # passive-aggressive, with slacks or with squared slacks
    SECOND
    CONFIDENCE      # AROW


cdef class OnlineLoop:
    """State and inner loop: a step costs the non-zeros of its example, for any ``dim``.

    The average of the iterates after each of t visits is ``w - lag / t``: a change in visit s counts
    ``s - 1`` times in ``lag``.

    Parameters
    ----------
    dim : int
        Length of w.
    rule : int
        See the enum.
    size : float
        C of passive-aggressive steps, r of AROW.
    """

    cdef LinearPotentials potentials
    cdef SharedPotentials shared    # the same, or None
    cdef Surrogate surrogate
    cdef Oracle oracle
    cdef Parts parts
    cdef const double[::1] weights
    cdef const int[::1] labels
    cdef const int* truths
    cdef readonly object w, lag, variance
    cdef double[::1] w_view, lag_view, variance_view
    cdef double* z                  # zeros between visits
    cdef double* theta
    cdef double* g                  # Phi' p of a visit, and where it is not zero
    cdef int64_t* where
    cdef int* label
    cdef char* work
    cdef Cut cut
    cdef object owners
    cdef Py_ssize_t n, dim, axis, stride    # nodes' parts that share their touched entries
    cdef Rule rule
    cdef double size
    cdef public int64_t t

    def __init__(self, Py_ssize_t dim, int rule, double size):
        self.dim, self.rule, self.size = dim, <Rule>rule, size
        self.w, self.lag = aligned_zeros(dim), aligned_zeros(dim)
        self.w_view, self.lag_view = self.w, self.lag
        if rule == CONFIDENCE:
            self.variance = np.ones(dim)
            self.variance_view = self.variance

    def bind(self, problem):
        """Set the examples.

        Parameters
        ----------
        problem : Problem
        """
        cdef LinearPotentials potentials = problem.potentials
        cdef Py_ssize_t bytes_, longest = 0, most
        if potentials.dim != self.dim:
            raise ValueError(
                f"the new examples have {potentials.dim} weights, the run {self.dim}; make them with "
                "the same space"
            )
        self.potentials, self.surrogate, self.weights = potentials, problem.surrogate, problem.weights
        self.labels, self.oracle, self.parts = problem.labels, problem.oracle, problem.parts
        self.truths = first_label(potentials, self.surrogate, problem.labels, problem.weights)
        self.n = potentials.n
        for rows in (potentials.nodes, potentials.edges):
            if rows is not None:
                longest = max(longest, rows.max_row_nnz)
        most = max(self.surrogate.max_entries, self.parts.max_entries) + 1
        bytes_ = max(self.surrogate.work_bytes, self.oracle.work_bytes)
        owners = []
        self.z, self.theta = doubles(self.dim, owners), doubles(potentials.max_theta, owners)
        self.cut.value, self.cut.index = doubles(most, owners), integers(most, owners)
        self.axis = self.stride = 1
        self.shared = None
        if isinstance(potentials, MixedPotentials):
            self.axis = (<MixedPotentials>potentials).size
            self.stride = (<MixedPotentials>potentials).stride
        elif isinstance(potentials, SharedPotentials):
            self.shared = potentials
            self.axis, longest = self.shared.table.width, self.shared.rows.max_row_nnz
        most = min(self.dim, most * self.axis * (longest + 1))
        self.g, self.where = doubles(most, owners), <int64_t*>doubles(most, owners)
        self.label = integers(self.parts.layout.max_label, owners)
        self.work = <char*>doubles(bytes_ // 8 + 16, owners)
        self.owners = owners

    def averaged(self):
        """Return the average of the iterates (a copy)."""
        return self.w - self.lag / max(self.t, 1)

    def state(self):
        """Return the arrays of the state, for checkpoints."""
        arrays = {"w": self.w, "lag": self.lag}
        return arrays if self.variance is None else arrays | {"variance": self.variance}

    def run(self, const int64_t[::1] order not None):
        """Visit the examples of ``order``; return violations and oracle calls.

        Parameters
        ----------
        order : ndarray of int64

        Returns
        -------
        violations : int
            Examples on which w moved.
        calls : int
        """
        cdef Py_ssize_t k
        cdef long violations = 0, calls = 0
        check_order(order, self.n)
        with nogil:
            for k in range(order.shape[0]):
                self.t += 1
                if self.weights[order[k]] > 0:
                    violations += self._visit(order[k])
                    calls += self.cut.calls
        return violations, calls

    cdef int _visit(self, Py_ssize_t i) except -1 nogil:
        """Take the step of an example; return whether there is one."""
        cdef Cut* cut = &self.cut
        cdef const int* truth = self.truths + self.parts.layout.label_offsets[i]
        cdef double share = self.n * self.weights[i], more = 0, value, bound, square = 0, step
        cdef double terms, score
        cdef double* w = &self.w_view[0]
        cdef Py_ssize_t j, n
        cut.nnz = 0
        self.potentials.score(i, w, 1.0, self.theta)
        if self.rule == PERCEPTRON:
            self.oracle.argmax(i, self.theta, self.label, &value, &bound, self.work)
            cut.nnz = self.parts.difference(i, truth, self.label, cut.index, cut.value)
            cut.calls = 1
        else:
            self.surrogate.cut(i, self.theta, truth, cut, self.work)
            more, terms = cut.b, fabs(cut.b)
            for j in range(cut.nnz):
                score = self.theta[cut.index[j]] * cut.value[j]
                more -= score
                terms += fabs(score)
            if not more > ROUNDING * terms:
                return 0
        if cut.nnz == 0:
            return 0
        n = self._direction(i, cut)
        if self.rule == CONFIDENCE:
            for j in range(n):
                square += self.variance_view[self.where[j]] * self.g[j] * self.g[j]
            step = more / (square + self.size / share)
        elif self.rule == PERCEPTRON:
            step = share
        else:
            for j in range(n):
                square += self.g[j] * self.g[j]
            if self.rule == SECOND:
                step = more / (square + 0.5 / (self.size * share))
            else:
                step = self.size * share if more > self.size * share * square else more / square
        self._move(n, step, self.size / share)
        return 1

    cdef void _move(self, Py_ssize_t n, double step, double r) noexcept nogil:
        """w += step Sigma g, and Sigma^-1 += g^2 / r."""
        cdef Py_ssize_t j, k
        cdef double change, sigma, late = self.t - 1
        for j in range(n):
            k, change = self.where[j], step * self.g[j]
            if self.rule == CONFIDENCE:
                sigma = self.variance_view[k]
                change *= sigma
                self.variance_view[k] = sigma * r / (r + sigma * self.g[j] * self.g[j])
            self.w_view[k] += change
            self.lag_view[k] += late * change

    cdef Py_ssize_t _direction(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        """g = Phi' p, without its zeros; return their number."""
        cdef Py_ssize_t k, s, first, n = 0
        cdef const TableArrays* table
        cdef Place place
        self.potentials.add(i, cut.nnz, cut.index, cut.value, 1.0, self.z)
        for k in range(cut.nnz):
            place = self.potentials._place(i, cut.index[k])
            if place.kind == SHARED:
                n = self._take(place.row, n)
            elif self.shared is not None:
                table = &self.shared.table.arrays
                for s in range(table.starts[place.row], table.starts[place.row + 1]):
                    n = self._take_row(self.shared.rows, i, table.columns[s], n)
            elif place.kind == NODE:
                first = self.potentials.node_start + place.col - place.col % self.stride
                for s in range(first, first + self.axis):
                    n = self._take_row(self.potentials.nodes,
                                       self.potentials.offsets[i] + place.row, s, n)
            else:
                n = self._take_row(self.potentials.edges,
                                   self.potentials.edge_offsets[i] + place.row,
                                   self.potentials.edge_start + place.col, n)
        return n

    cdef Py_ssize_t _take_row(self, FeatureRows rows, Py_ssize_t row, Py_ssize_t first,
                              Py_ssize_t n) noexcept nogil:
        """Take the entries of z that a row of features changed in one column."""
        cdef Row x = rows._row(row)
        cdef Py_ssize_t j
        for j in range(x.n):
            n = self._take(first + (j if x.index == NULL else x.index[j]) * rows.stride, n)
        if rows.intercept != 0:
            n = self._take(first + rows.n_cols * rows.stride, n)
        return n

    cdef inline Py_ssize_t _take(self, Py_ssize_t place, Py_ssize_t n) noexcept nogil:
        """Move an entry of z to g, unless it is zero, as after the first time."""
        if self.z[place] != 0:
            self.g[n], self.where[n], self.z[place] = self.z[place], place, 0
            n += 1
        return n
