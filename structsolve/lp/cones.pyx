"""The best label in a cone of the label plane, for any structure with a polytope.

The k best labels of ``h + lam g`` come first, where an oracle gives them: the first in the cone is
the best one there, and where there are fewer than k, all have been seen.  Else two more rows keep
the linear program over the polytope within the cone; its answer may be fractional.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from ..utils.alignment cimport align
from ..operators cimport Cone, Oracle, Parts

from ..structure.base import ConePair

# Fewest labels worth looking through before a program is solved, and the memory they may take.
LEAST, BYTES = 4, 1 << 24


cdef bint in_cone(const Cone* cone, double h, double g, double h_slack,
                  double g_slack) noexcept nogil:
    # An infinite alpha asks for h >= 0 alone, of the twin too.
    cdef bint above = h >= -h_slack
    cdef double near
    if cone.alpha < INFINITY:
        near = g_slack + cone.alpha * h_slack
        above = g < cone.alpha * h - near if cone.twin else g <= cone.alpha * h + near
    near = g_slack + cone.beta * h_slack
    return above and (cone.beta * h <= g + near if cone.twin else cone.beta * h < g - near)


cdef object as_array(const double* theta, Py_ssize_t size):
    found = np.empty(size)
    cdef double[::1] view = found
    if size:
        memcpy(&view[0], theta, size * sizeof(double))
    return found


cdef int program_in_cone(object decoder, Py_ssize_t i, object scores, object costs,
                         const Cone* cone, Py_ssize_t label_size, double* mu, int* label,
                         double* value) except -1:
    cdef const double[::1] point
    cdef const int[::1] states
    cdef double h, g, h_slack, g_slack
    pair = ConePair(cone.h0, cone.g0, cone.lam, cone.alpha, cone.beta, bool(cone.twin))
    found = decoder.constrained(i, scores, costs, pair)
    if found is None:
        return 0
    # What is left out may score -inf.
    inside = found.mu != 0
    h_terms, g_terms = (part[inside] * found.mu[inside] for part in (scores, costs))
    h, g = float(h_terms.sum()) + cone.h0, float(g_terms.sum()) + cone.g0
    h_slack = rounding(h_terms.size, float(np.abs(h_terms).sum()) + abs(cone.h0))
    g_slack = rounding(g_terms.size, float(np.abs(g_terms).sum()) + abs(cone.g0))
    value[0] = h + cone.lam * g
    if found.mu.size:
        point = found.mu
        memcpy(mu, &point[0], point.shape[0] * sizeof(double))
    if found.label is None or not in_cone(cone, h, g, h_slack, g_slack):
        return 2
    if found.label.shape != (label_size,):
        raise ValueError(
            f"example {i}: decode() of the polytope returned an array of shape "
            f"{found.label.shape}, expected a label of {label_size} integers"
        )
    if label_size:
        states = found.label
        memcpy(label, &states[0], label_size * sizeof(int))
    return 1


def _sizes(layout, examples):
    # Doubles in theta, of every example; one more, so that an empty array has an address too.
    edges = 0 if examples.edge_offsets is None else np.diff(examples.edge_offsets)
    sizes = layout.theta_size(np.diff(examples.offsets), edges)
    return np.append(sizes, 0).astype(np.int64)


cdef class ConstrainedOracle(Oracle):
    """Another oracle, and ``argmax_constrained`` on top of it.

    Parameters
    ----------
    space, examples : Space, Examples
    oracle : Oracle
        Answers all other questions.
    parts : Parts
    decoder : LinearDecoder
    k : int
        Labels to look through before a program is solved, at most.

    Attributes
    ----------
    oracle : Oracle
    k : int
        Labels that it asks ``oracle.kbest`` for; 0 for none.
    programs : int
        Linear programs solved so far.
    """

    cdef readonly Oracle oracle
    cdef readonly Py_ssize_t k
    cdef readonly Py_ssize_t programs
    cdef Parts parts
    cdef object decoder, owners
    cdef const int64_t* size_of     # of every example: doubles in theta, integers in a label
    cdef const int64_t* length_of
    cdef Py_ssize_t longest, widest

    def __init__(self, space, examples, Oracle oracle, Parts parts, decoder, int k):
        all_sizes = _sizes(space.layout, examples)
        all_lengths = np.append(np.diff(examples.label_offsets), 0).astype(np.int64)
        cdef const int64_t[::1] sizes = all_sizes, lengths = all_lengths
        self.oracle, self.parts, self.decoder = oracle, parts, decoder
        self.size_of, self.length_of, self.owners = &sizes[0], &lengths[0], (sizes, lengths)
        self.has_kbest, self.has_max_marginals = oracle.has_kbest, oracle.has_max_marginals
        self.has_augmented, self.has_relaxed = oracle.has_augmented, oracle.has_relaxed
        self.has_counts, self.exact = oracle.has_counts, oracle.exact
        self.has_constrained = True
        self.longest, self.widest = int(all_lengths.max()), int(all_sizes.max())
        self.k = self._affordable(k) if oracle.has_kbest and oracle.exact else 0
        # Scores, values, entries of a label, labels; then what the k best need.
        self.work_bytes = oracle.work_bytes
        if self.k:
            own = (8 * (self.widest + self.k) + 12 * parts.max_entries
                   + 4 * self.k * self.longest + 128)
            self.work_bytes = max(self.work_bytes, own + oracle.kbest_bytes(self.k))

    def _affordable(self, k):
        # An oracle whose k best cost more than a program says how few are worth it.
        k = min(k, getattr(self.oracle, "kbest_worth", k))
        room = BYTES + 2 * self.oracle.work_bytes
        while k >= LEAST and self.oracle.kbest_bytes(k) + 4 * k * self.longest > room:
            k //= 2
        return k if k >= LEAST else 0

    def limits(self, Py_ssize_t i):
        """Sizes of example i, for the checks of :mod:`structsolve.structure.calls`."""
        told = getattr(self.oracle, "limits", None)
        return (None, None, None) if told is None else told(i)

    cdef int argmax_constrained(self, Py_ssize_t i, const double* theta, const double* cost,
                                const Cone* cone, double* mu, int* label, double* value,
                                char* work) except -1 nogil:
        cdef int kind = 2
        if self.k:
            kind = self._look_through(i, theta, cost, cone, label, value, work)
        if kind == 2:
            with gil:
                self.programs += 1
                kind = program_in_cone(self.decoder, i, as_array(theta, self.size_of[i]),
                                       as_array(cost, self.size_of[i]), cone, self.length_of[i],
                                       mu, label, value)
        return kind

    cdef int _look_through(self, Py_ssize_t i, const double* theta, const double* cost,
                           const Cone* cone, int* label, double* value, char* work) except -1 nogil:
        # As argmax_constrained(), of the k best; 2 where none of them is inside and there are more.
        cdef double* scaled = <double*>align(work)
        cdef double* values = scaled + self.widest
        cdef double* entry = values + self.k
        cdef int* index = <int*>(entry + self.parts.max_entries)
        cdef int* labels = index + self.parts.max_entries
        cdef char* rest = align(labels + self.k * self.longest)
        cdef Py_ssize_t length = self.length_of[i], found, n, j, t
        cdef double h, g, h_size, g_size
        for j in range(self.size_of[i]):
            scaled[j] = theta[j] + cone.lam * cost[j]
        found = self.oracle.kbest(i, scaled, self.k, labels, values, rest)
        for t in range(found):
            if values[t] == -INFINITY:
                continue
            n = self.parts.encode(i, labels + t * length, index, entry)
            h = g = h_size = g_size = 0
            for j in range(n):
                h += theta[index[j]] * entry[j]
                g += cost[index[j]] * entry[j]
                h_size += fabs(theta[index[j]] * entry[j])
                g_size += fabs(cost[index[j]] * entry[j])
            h, g = h + cone.h0, g + cone.g0
            if in_cone(cone, h, g, rounding(n, h_size + fabs(cone.h0)),
                       rounding(n, g_size + fabs(cone.g0))):
                memcpy(label, labels + t * length, length * sizeof(int))
                value[0] = h + cone.lam * g
                return 1
        return 2 if found == self.k else 0

    # -- what the other oracle answers ------------------------------------------------------------

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        return self.oracle.argmax(i, theta, label, value, work)

    cdef int argmax_bounded(self, Py_ssize_t i, const double* theta, int* label, double* value,
                            double* bound, char* work) except -1 nogil:
        return self.oracle.argmax_bounded(i, theta, label, value, bound, work)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        return self.oracle.kbest(i, theta, k, labels, values, work)

    cpdef Py_ssize_t kbest_bytes(self, Py_ssize_t k) except -1:
        return self.oracle.kbest_bytes(k)

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        return self.oracle.max_marginals(i, theta, out, work)

    cdef int argmax_augmented(self, Py_ssize_t i, const double* theta, int* label, double* value,
                              double* loss, char* work) except -1 nogil:
        return self.oracle.argmax_augmented(i, theta, label, value, loss, work)

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        return self.oracle.relax(i, theta, mu, label, value, work)

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        return self.oracle.argmax_counts(i, theta, cost, most, labels, values, work)

    cpdef Py_ssize_t counts_bytes(self, Py_ssize_t most) except -1:
        return self.oracle.counts_bytes(most)
