"""Fenchel-Young surrogates: H_i(w) = max_{mu in M} G(mu) - G(mu(y_i)) + <theta_i, mu - mu(y_i)>."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from ..utils.alignment cimport align
from ..operators cimport Parts, Projection
from ..part_layout cimport PartLayout
from ..structure.answer_checks cimport check_numbers
from .base cimport Cut, Surrogate

AT_TRUTH = ("zero", "state", "squares")


cdef class FenchelYoung(Surrogate):
    """One call of a projection: the CRF, SparseMAP, the max-min margin.

    The maximiser mu gives the cut ``H_i(w) >= b - <theta_i(w), mu(y_i) - mu>``, which holds for
    every w because mu does not depend on w.  Solvers that need only cuts can use it; solvers that
    evaluate G along a segment use its projection.

    Parameters
    ----------
    projection : Projection
        G is its regulariser.
    parts : Parts
        Bound to the same examples.
    at_truth : {"zero", "state", "squares"}, default="zero"
        Formula of ``-G(mu(y_i))``: 0; minus the projection's ``term`` of the truth's state; or
        half the square of the truth's node parts.
    concave : {"", "entropy", "euclidean"}, default=""
        The distance in which G is strongly concave with modulus 1: the l1 norm between
        distributions of labels, or the Euclidean norm between node parts; "" if it is not.
    state_rows : int, default=0
        Number of label probabilities at the start of the projection's states, if G is a
        function of these; 0 if node parts are probabilities.
    """

    def __init__(self, Projection projection not None, Parts parts not None,
                 str at_truth="zero", str concave="", Py_ssize_t state_rows=0):
        cdef PartLayout layout = projection.layout
        cdef Py_ssize_t longest = layout.max_theta, i
        super().__init__(layout)
        if at_truth not in AT_TRUTH:
            raise ValueError(f"at_truth is {at_truth!r}, expected one of {AT_TRUTH}")
        if at_truth == "state" and not (projection.has_state and projection.has_term):
            raise ValueError(
                f"at_truth is 'state', but {type(projection).__name__} has no states with term()"
            )
        self.projection, self.parts, self.n_states = projection, parts, parts.n_states
        self.at_truth, self.concave, self.state_rows = at_truth, concave, state_rows
        self.of_state, self.of_squares = at_truth == "state", at_truth == "squares"
        if self.of_state:
            for i in range(layout.n):
                longest = max(longest, projection.state_size(i))
        self.max_entries = max(layout.max_theta, parts.max_entries)
        self.exact = projection.exact
        # Scratch for the truth's offset, then the maximiser.
        self.vector_bytes = 8 * longest + 64
        self.work_bytes = self.vector_bytes + projection.work_bytes + 128

    def counts(self):
        """Return the numbers of answers and of iterations so far; None without iterations."""
        return self.projection.counts() if hasattr(self.projection, "counts") else None

    def allow(self, double gap):
        """Let the projection answer less exactly, if it can.

        Parameters
        ----------
        gap : float
            See :meth:`Surrogate.allow`.
        """
        if hasattr(self.projection, "allow"):
            self.projection.allow(gap)

    def memory_of_examples(self):
        """Return the projection's memory of its last answers, as arrays by name."""
        if hasattr(self.projection, "memory_of_examples"):
            return self.projection.memory_of_examples()
        return {}

    def remember(self, arrays):
        """Restore the result of ``memory_of_examples``."""
        if hasattr(self.projection, "remember"):
            self.projection.remember(arrays)

    cdef int add_truth(self, Py_ssize_t i, const int* truth, double coef, double* out, int* index,
                       double* value) except -1 nogil:
        cdef Py_ssize_t k, n = self.parts.encode(i, truth, index, value)
        for k in range(n):
            out[index[k]] += coef * value[k]
        return 0

    cdef double offset(self, Py_ssize_t i, const int* truth, int* index, double* value,
                       char* work) except? -1 nogil:
        cdef Py_ssize_t n = 0
        if self.of_squares:
            n = self.parts.encode(i, truth, index, value)
        return self.encoded_offset(i, truth, n, index, value, work)

    cdef double encoded_offset(self, Py_ssize_t i, const int* truth, Py_ssize_t n,
                               const int* index, const double* value,
                               char* work) except? -1 nogil:
        cdef double* dense = <double*>align(work)
        cdef double total = 0
        cdef Py_ssize_t k, first, last
        if self.of_state:
            self.projection.state_of(i, truth, dense)
            return -self.projection.term(i, dense, align(work + self.vector_bytes))
        if self.of_squares:
            first, last = self.layout.shared_size, self.layout.edge_start(i)
            # Add up values of the same part.
            for k in range(n):
                dense[index[k]] = 0
            for k in range(n):
                if first <= index[k] < last:
                    total += value[k] * (2 * dense[index[k]] + value[k])
                    dense[index[k]] += value[k]
        return 0.5 * total

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        cdef double* mu = <double*>align(work)
        cdef char* scratch = align(work + self.vector_bytes)
        cdef Py_ssize_t j, size = self.layout.theta_size(i), n
        cdef double value, bound, offset, score = 0
        cdef uint64_t key = 1469598103934665603ULL, bits
        n = self.parts.encode(i, truth, cut.index, cut.value)
        offset = self.encoded_offset(i, truth, n, cut.index, cut.value, work)
        self.projection.project(i, theta, mu, &value, &bound, scratch)
        for j in range(size):
            if mu[j] != 0:
                score += theta[j] * mu[j]
                memcpy(&bits, mu + j, sizeof(double))
                key = (key ^ bits ^ <uint64_t>j) * 1099511628211ULL
        cut.b = value - score + offset
        # p = mu(y_i) - mu
        for j in range(size):
            mu[j] = -mu[j]
        for j in range(n):
            mu[cut.index[j]] += cut.value[j]
        score = 0
        n = 0
        for j in range(size):
            if mu[j] != 0:
                cut.index[n], cut.value[n] = <int>j, mu[j]
                score += theta[j] * mu[j]
                n += 1
        cut.nnz, cut.key, cut.calls = n, key, 1
        cut.bound = cut.b - score + (bound - value)
        check_numbers(self.projection, i, 1, &cut.bound)
        return 0
