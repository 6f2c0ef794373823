"""Euclidean projection over any oracle, by an active set of labels (SparseMAP)."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset
from ..algorithms.messages cimport impossible
from ..utils.alignment cimport align
from ..utils.arrays import padded
from ..operators cimport Oracle, Parts, Projection
from ..part_layout cimport PartLayout

# Maximum number of labels with weight.
cdef enum:
    MAX_ACTIVE = 64

# The derivative is taken at this distance from theta; accuracy of the answer there.
cdef double NUDGE = 1e-6, FINE = 1e-12


cdef struct Active:
    # Layout of the work memory: parts, score and weight of each active label.
    double* tilted
    double* dense
    int* labels
    int* index
    double* values
    double* gram            # inner products of their node parts
    double* system
    double* score
    double* weight
    double* best
    Py_ssize_t* nnz
    char* scratch


cdef class ActiveSet(Projection):
    """``max_mu <theta, mu> - ||mu||^2 / 2``, where the norm is over the node parts.

    Fully corrective Frank-Wolfe, like Wolfe's nearest-point method (Niculae et al. 2018): the
    oracle gives the label of steepest ascent, and the weights of all labels so far are optimised.
    It ends when the label's ascent is at most ``tol``, relative to the square; an exact oracle has
    then proved the bound.

    The marginals are piecewise linear in theta.  They depend on the weights of the active labels,
    which solve a linear system with the labels' scores on the right-hand side.  If scores tie,
    some labels that could have weight have none.  So the derivative is taken at a point near theta
    without ties.  Between kinks it is the same there; at a kink it is a one-sided derivative.

    Parameters
    ----------
    oracle : Oracle
    parts : Parts
        Bound to the same examples.
    max_iter : int, default=100
        Maximum number of oracle calls per answer.
    tol : float, default=1e-9
        Relative accuracy.
    """

    cdef Oracle oracle
    cdef Parts parts
    cdef Py_ssize_t longest, entries, label_bytes, theta_bytes, index_bytes, value_bytes
    cdef const signed char[::1] real    # of shared blocks, a row of nodes, one of edges: no padding
    cdef readonly int max_iter
    cdef readonly double tol

    def __cinit__(self, *args, **kwargs):
        self.exact = False

    def __init__(self, Oracle oracle not None, Parts parts not None, int max_iter=100,
                 double tol=1e-9):
        cdef PartLayout layout = oracle.layout
        super().__init__(layout)
        if max_iter < 1:
            raise ValueError(f"max_iter is {max_iter}, expected at least 1")
        if not 0 <= tol < 1:
            raise ValueError(f"tol is {tol}, expected a number from 0 to 1")
        self.oracle, self.parts, self.n_states = oracle, parts, oracle.n_states
        self.max_iter, self.tol = max_iter, tol
        self.longest = max(layout.max_label, 1)
        self.entries = max(parts.max_entries, 1)
        self.label_bytes = (4 * self.longest * (MAX_ACTIVE + 1) + 63) // 64 * 64
        self.index_bytes = (4 * self.entries * (MAX_ACTIVE + 1) + 63) // 64 * 64
        self.value_bytes = (8 * self.entries * (MAX_ACTIVE + 1) + 63) // 64 * 64
        self.theta_bytes = (8 * layout.max_theta + 63) // 64 * 64 + 64
        self.work_bytes = (
            2 * self.theta_bytes + self.label_bytes + self.index_bytes + self.value_bytes
            + 8 * (MAX_ACTIVE + 2) * (2 * MAX_ACTIVE + 16) + oracle.work_bytes + 256
        )
        self.has_term = self.has_derivative = True
        self.real = _real(layout)

    cdef Active _lay_out(self, char* work) noexcept nogil:
        cdef Active a
        a.tilted = <double*>align(work)
        a.dense = <double*>(<char*>a.tilted + self.theta_bytes)
        a.labels = <int*>(<char*>a.dense + self.theta_bytes)
        a.index = <int*>(<char*>a.labels + self.label_bytes)
        a.values = <double*>(<char*>a.index + self.index_bytes)
        a.gram = <double*>(<char*>a.values + self.value_bytes)
        a.system = a.gram + (MAX_ACTIVE + 1) * (MAX_ACTIVE + 1)
        a.score = a.system + (MAX_ACTIVE + 2) * (MAX_ACTIVE + 3)
        a.weight = a.score + MAX_ACTIVE + 2
        a.best = a.weight + MAX_ACTIVE + 2
        a.nnz = <Py_ssize_t*>(a.best + MAX_ACTIVE + 2)
        a.scratch = align(a.nnz + MAX_ACTIVE + 2)
        return a

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Active active = self._lay_out(work)
        self._search(i, theta, marginals, value, bound, self.tol, &active)
        return 0

    cdef Py_ssize_t _search(self, Py_ssize_t i, const double* theta, double* marginals,
                            double* value, double* bound, double tol,
                            Active* active) except -1 nogil:
        """Compute the answer of project(); return the number of active labels at the end."""
        cdef double* tilted = active.tilted
        cdef double* dense = active.dense
        cdef int* labels = active.labels
        cdef int* index = active.index
        cdef double* values = active.values
        cdef double* gram = active.gram
        cdef double* system = active.system
        cdef double* score = active.score
        cdef double* weight = active.weight
        cdef double* best = active.best
        cdef char* scratch = active.scratch
        cdef Py_ssize_t* nnz = active.nnz
        cdef Py_ssize_t size = self.layout.theta_size(i), m = 0, j, k, q, n, call
        cdef Py_ssize_t first = self.layout.shared_size, length = self.layout.label_size(i)
        cdef Py_ssize_t last = self.layout.edge_start(i)
        cdef double top, upper, here, square, linear
        cdef bint known
        memset(dense, 0, size * sizeof(double))
        memset(marginals, 0, size * sizeof(double))
        bound[0], value[0] = INFINITY, -INFINITY
        for call in range(self.max_iter):
            memcpy(tilted, theta, size * sizeof(double))
            linear = square = 0
            for j in range(m):
                linear += weight[j] * score[j]
            for j in range(first, last):
                tilted[j] -= marginals[j]
                square += marginals[j] * marginals[j]
            self.oracle.argmax(i, tilted, labels + m * self.longest, &top, &upper, scratch)
            if m == 0 and not top > -INFINITY:
                impossible(i)
            if m:
                # The largest <theta - mu_N, y - mu> of a label bounds the gap.
                here = linear - square
                value[0] = linear - square / 2
                bound[0] = min(bound[0], value[0] + max(upper - here, 0))
                # A label below its bound may not ascend, and would come again.
                if top - here <= tol * (square + fabs(linear) * 1e-3):
                    break
                known = False
                for j in range(m):
                    k = 0
                    while k < length and (
                            labels[j * self.longest + k] == labels[m * self.longest + k]):
                        k += 1
                    known = known or k == length
                if known:
                    break
            nnz[m] = self.parts.encode(i, labels + m * self.longest, index + m * self.entries,
                                       values + m * self.entries)
            score[m] = 0
            for k in range(nnz[m]):
                score[m] += theta[index[m * self.entries + k]] * values[m * self.entries + k]
                dense[index[m * self.entries + k]] += values[m * self.entries + k]
            for j in range(m + 1):
                here = 0
                for k in range(nnz[j]):
                    q = index[j * self.entries + k]
                    if first <= q < last:
                        here += dense[q] * values[j * self.entries + k]
                gram[m * (MAX_ACTIVE + 1) + j] = gram[j * (MAX_ACTIVE + 1) + m] = here
            for k in range(nnz[m]):
                dense[index[m * self.entries + k]] = 0
            weight[m] = 1 if m == 0 else 0
            m += 1
            m = self._optimise_weights(m, gram, score, weight, best, system, labels, index, values,
                                       nnz)
            if m == MAX_ACTIVE:
                # Without room for another label, the lightest is dropped.
                q = 0
                for j in range(1, m):
                    if weight[j] < weight[q]:
                        q = j
                m = self._drop(q, m, gram, score, weight, labels, index, values, nnz)
                here = 0
                for j in range(m):
                    here += weight[j]
                for j in range(m):
                    weight[j] /= here
            memset(marginals, 0, size * sizeof(double))
            for j in range(m):
                for k in range(nnz[j]):
                    marginals[index[j * self.entries + k]] += (
                        weight[j] * values[j * self.entries + k])
        else:
            linear = square = 0
            for j in range(m):
                linear += weight[j] * score[j]
            for j in range(first, last):
                square += marginals[j] * marginals[j]
            value[0] = linear - square / 2
            if self.max_iter == 1:
                # One label gives no bound yet.
                memcpy(tilted, theta, size * sizeof(double))
                for j in range(first, last):
                    tilted[j] -= marginals[j]
                self.oracle.argmax(i, tilted, labels + m * self.longest, &top, &upper, scratch)
                bound[0] = value[0] + max(upper - (linear - square), 0)
            bound[0] = max(bound[0], value[0])
        return m

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes for scores near theta, and marginals there."""
        return self.work_bytes + 2 * self.theta_bytes

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef double* nudged = <double*>align(work)
        cdef double* marginals = <double*>(<char*>nudged + self.theta_bytes)
        cdef Active a = self._lay_out(<char*>marginals + self.theta_bytes)
        cdef Py_ssize_t size = self.layout.theta_size(i), m, j, k, q
        cdef double value, bound
        for j in range(size):
            # Padding stays 0.
            k = j
            if j >= self.layout.edge_start(i):
                k = self.layout.shared_size + self.layout.node_size + (j - self.layout.edge_start(i)) % self.layout.edge_size
            elif j >= self.layout.shared_size:
                k = self.layout.shared_size + (j - self.layout.shared_size) % self.layout.node_size
            nudged[j] = theta[j] + (NUDGE * _noise(j) if self.real[k] else 0.0)
        m = self._search(i, nudged, marginals, &value, &bound, min(self.tol, FINE), &a)
        for j in range(m):
            a.score[j] = 0
            for k in range(a.nnz[j]):
                q = j * self.entries + k
                a.score[j] += direction[a.index[q]] * a.values[q]
        self._affine_maximiser(m, a.gram, a.score, 0, a.best, a.system)
        memset(out, 0, size * sizeof(double))
        for j in range(m):
            for k in range(a.nnz[j]):
                q = j * self.entries + k
                out[a.index[q]] += a.best[j] * a.values[q]
        return 0

    cdef Py_ssize_t _optimise_weights(self, Py_ssize_t m, double* gram, double* score,
                                      double* weight, double* best, double* system, int* labels,
                                      int* index, double* values,
                                      Py_ssize_t* nnz) noexcept nogil:
        """Optimise the weights of m labels and drop those at zero; return the number left."""
        cdef Py_ssize_t j, k, leaving
        cdef double step, ratio, total = 0
        while m > 1:
            self._affine_maximiser(m, gram, score, 1, best, system)
            step, leaving = 1, -1
            for j in range(m):
                if best[j] <= 1e-14:
                    ratio = weight[j] / (weight[j] - best[j]) if weight[j] > best[j] else 0
                    if ratio < step or leaving < 0:
                        step, leaving = min(ratio, step), j
            for j in range(m):
                weight[j] += step * (best[j] - weight[j])
            if leaving < 0:
                break
            weight[leaving] = 0
            # Drop others at zero too, the newest last: one label stays.
            k = 0
            while k < m:
                if weight[k] <= 0 and m > 1:
                    m = self._drop(k, m, gram, score, weight, labels, index, values, nnz)
                else:
                    k += 1
        # Rounding that leaves the hull by a share of large scores makes wrong bounds.
        for j in range(m):
            total += weight[j]
        for j in range(m):
            weight[j] /= total
        return m

    cdef Py_ssize_t _drop(self, Py_ssize_t leaving, Py_ssize_t m, double* gram, double* score,
                          double* weight, int* labels, int* index, double* values,
                          Py_ssize_t* nnz) noexcept nogil:
        """Drop a label; the last one takes its place.  Return the number of labels left."""
        cdef Py_ssize_t j, last = m - 1
        if leaving != last:
            score[leaving], weight[leaving], nnz[leaving] = score[last], weight[last], nnz[last]
            memcpy(labels + leaving * self.longest, labels + last * self.longest, self.longest * 4)
            memcpy(index + leaving * self.entries, index + last * self.entries, self.entries * 4)
            memcpy(values + leaving * self.entries, values + last * self.entries, self.entries * 8)
            for j in range(last):
                gram[leaving * (MAX_ACTIVE + 1) + j] = gram[last * (MAX_ACTIVE + 1) + j]
            gram[leaving * (MAX_ACTIVE + 1) + leaving] = gram[last * (MAX_ACTIVE + 1) + last]
            for j in range(last):
                gram[j * (MAX_ACTIVE + 1) + leaving] = gram[leaving * (MAX_ACTIVE + 1) + j]
        return last

    cdef void _affine_maximiser(self, Py_ssize_t m, const double* gram, const double* score,
                                double total, double* best, double* A) noexcept nogil:
        """best <- argmax of score' x - x' gram x / 2 over sum x = total, by elimination.

        The diagonal is increased slightly, because labels may be affinely dependent in their node
        parts.  A constant of all scores does not change x, and is left out: it would only round.
        """
        cdef Py_ssize_t side = m + 2, j, k, q, pivot
        cdef double largest, factor, trace = 0, swap
        for j in range(m):
            trace = max(trace, gram[j * (MAX_ACTIVE + 1) + j])
        for j in range(m):
            for k in range(m):
                A[j * side + k] = gram[j * (MAX_ACTIVE + 1) + k]
            A[j * side + j] += 1e-12 * trace
            A[j * side + m], A[j * side + m + 1] = 1, score[j] - score[0]
            A[m * side + j] = 1
        A[m * side + m], A[m * side + m + 1] = 0, total
        for j in range(m + 1):
            pivot, largest = j, fabs(A[j * side + j])
            for k in range(j + 1, m + 1):
                if fabs(A[k * side + j]) > largest:
                    pivot, largest = k, fabs(A[k * side + j])
            if largest == 0:
                continue
            if pivot != j:
                for q in range(j, m + 2):
                    swap = A[j * side + q]
                    A[j * side + q] = A[pivot * side + q]
                    A[pivot * side + q] = swap
            for k in range(j + 1, m + 1):
                factor = A[k * side + j] / A[j * side + j]
                if factor != 0:
                    for q in range(j, m + 2):
                        A[k * side + q] -= factor * A[j * side + q]
        for j in range(m, -1, -1):
            swap = A[j * side + m + 1]
            for k in range(j + 1, m + 1):
                swap -= A[j * side + k] * best[k]
            swap = swap / A[j * side + j] if A[j * side + j] != 0 else 0
            best[j] = swap      # best[m] is the multiplier

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return -0.5 * self._inner(i, state, state)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef double aa = self._inner(i, a, a), ab = self._inner(i, a, b)
        cdef double bb = self._inner(i, b, b)
        return -((1 - gamma) * (ab - aa) + gamma * (bb - ab))

    cdef double _inner(self, Py_ssize_t i, const double* a, const double* b) noexcept nogil:
        cdef Py_ssize_t j, first = self.layout.shared_size
        cdef Py_ssize_t last = self.layout.edge_start(i)
        cdef double total = 0
        for j in range(first, last):
            total += a[j] * b[j]
        return total


def _real(PartLayout layout not None):
    # Mark the doubles of the shared blocks, a row of nodes and a row of edges that are not padding.
    real = np.zeros(layout.shared_size + layout.node_size + layout.edge_size + 1, np.int8)
    for name, (*axes, count) in layout.shapes.items():      # negative indices are not checked here
        start, width = layout.starts[name], padded(count)
        if start < 0:
            start = layout.shared_size + layout.node_size
        rows = real[start : start + int(np.prod(axes)) * width].reshape(-1, width)
        rows[:, :count] = 1
    return real


cdef inline double _noise(Py_ssize_t j) noexcept nogil:
    # A number from -1 to 1; sums and differences of a few are distinct (finaliser of SplitMix64).
    cdef uint64_t x = (<uint64_t>j + 1) * <uint64_t>0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return <double>((x ^ (x >> 31)) >> 11) * (2.0 / 9007199254740992.0) - 1
