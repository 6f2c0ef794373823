# build: glue
"""The best label in a cone of the label plane, for any structure with a polytope.

If a structure can list the k best labels of ``h + lam g``, they are checked first: the first one in
the cone is the best one there, and if there are fewer than k, these are all labels.  Otherwise two
more rows keep the linear program over the polytope within the cone; its answer may be fractional.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy
from ..utils.alignment cimport align
from ..operators cimport Cone, ConeOracle, KBest, Oracle, Parts
from ..part_layout cimport PartLayout

from ..structure.base import ConePair

# Minimum number of labels worth checking before a program is solved; maximum bytes for labels.
FEWEST_LABELS: int = 4
MOST_BYTES: int = 1 << 24


cdef bint in_cone(const Cone* cone, double h, double g, double h_slack,
                  double g_slack) noexcept nogil:
    # With an infinite alpha the side is h >= 0, also if `twin` is set.
    cdef bint above = h >= -h_slack
    cdef double near
    if cone.alpha < INFINITY:
        near = g_slack + cone.alpha * h_slack
        above = g < cone.alpha * h - near if cone.twin else g <= cone.alpha * h + near
    near = g_slack + cone.beta * h_slack
    return above and (cone.beta * h <= g + near if cone.twin else cone.beta * h < g - near)


cdef object as_array(const double* theta, Py_ssize_t size):
    copied = np.empty(size)
    cdef double[::1] view = copied
    if size:
        memcpy(&view[0], theta, size * sizeof(double))
    return copied


cdef int write_label(Py_ssize_t i, object decoded, Py_ssize_t size, int* label) except -1:
    cdef const int[::1] view
    if decoded.shape != (size,):
        raise ValueError(
            f"example {i}: decode() of the polytope returned an array of shape {decoded.shape}, "
            f"expected a label of {size} integers"
        )
    if size:
        view = decoded
        memcpy(label, &view[0], size * sizeof(int))
    return 0


cdef int program_in_cone(object decoder, Py_ssize_t i, object scores, object costs,
                         const Cone* cone, Py_ssize_t label_size, double* mu, int* label,
                         double* value) except -1:
    cdef const double[::1] point
    cdef double h, g, h_slack, g_slack
    pair = ConePair(cone.h0, cone.g0, cone.lam, cone.alpha, cone.beta, bool(cone.twin))
    best = decoder.constrained(i, scores, costs, pair)
    if best is None:
        return 0
    # Parts that mu leaves out may score -inf.
    inside = best.mu != 0
    h_terms, g_terms = (part[inside] * best.mu[inside] for part in (scores, costs))
    h, g = float(h_terms.sum()) + cone.h0, float(g_terms.sum()) + cone.g0
    h_slack = rounding(h_terms.size, float(np.abs(h_terms).sum()) + abs(cone.h0))
    g_slack = rounding(g_terms.size, float(np.abs(g_terms).sum()) + abs(cone.g0))
    value[0] = h + cone.lam * g
    if best.mu.size:
        point = best.mu
        memcpy(mu, &point[0], point.shape[0] * sizeof(double))
    if best.label is None or not in_cone(cone, h, g, h_slack, g_slack):
        return 2
    write_label(i, best.label, label_size, label)
    return 1


cdef class PolytopeCones(ConeOracle):
    """The best label in a cone: the k best labels first, then a linear program.

    Parameters
    ----------
    oracle : Oracle
        Must be exact, or the k best prove nothing.
    kbest : KBest, or None
    parts : Parts
    decoder : LinearDecoder
    k : int
        Maximum number of labels to check before a program is solved.
    layout : PartLayout

    Attributes
    ----------
    k : int
        Number of labels requested from ``kbest``; 0 for none.
    programs : int
        Linear programs solved so far.
    """

    cdef readonly Py_ssize_t k
    cdef readonly Py_ssize_t programs
    cdef KBest kbest
    cdef Parts parts
    cdef object decoder

    def __init__(self, Oracle oracle not None, KBest kbest, Parts parts not None, decoder,
                 int k, PartLayout layout not None):
        super().__init__(layout)
        self.kbest, self.parts, self.decoder = kbest, parts, decoder
        self.k = self._affordable(k) if kbest is not None and oracle.exact else 0
        # Scores, values, entries of a label, labels; then the scratch memory of the k best.
        if self.k:
            own = (8 * (layout.max_theta + self.k) + 12 * parts.max_entries
                   + 4 * self.k * layout.max_label + 128)
            self.work_bytes = own + kbest.bytes_for(self.k)

    def _affordable(self, k):
        # If the k best cost more than a program, their operator says which k is worth it.
        k = min(k, getattr(self.kbest, "worth", k))
        room = MOST_BYTES + 2 * self.kbest.bytes_for(1)
        while k >= FEWEST_LABELS and self.kbest.bytes_for(k) + 4 * k * self.layout.max_label > room:
            k //= 2
        return k if k >= FEWEST_LABELS else 0

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        cdef int kind = 2
        cdef Py_ssize_t size = self.layout.theta_size(i)
        if self.k:
            kind = self._look_through(i, theta, cost, cone, label, value, work)
        if kind == 2:
            with gil:
                self.programs += 1
                kind = program_in_cone(self.decoder, i, as_array(theta, size),
                                       as_array(cost, size), cone, self.layout.label_size(i), mu,
                                       label, value)
        return kind

    cdef int _look_through(self, Py_ssize_t i, const double* theta, const double* cost,
                           const Cone* cone, int* label, double* value, char* work) except -1 nogil:
        # As argmax_in_cone(), among the k best; 2 if none is inside and there are more labels.
        cdef double* scaled = <double*>align(work)
        cdef double* values = scaled + self.layout.max_theta
        cdef double* entry = values + self.k
        cdef int* index = <int*>(entry + self.parts.max_entries)
        cdef int* labels = index + self.parts.max_entries
        cdef char* rest = align(labels + self.k * self.layout.max_label)
        cdef Py_ssize_t length = self.layout.label_size(i), size, n, j, t
        cdef double h, g, h_size, g_size
        for j in range(self.layout.theta_size(i)):
            scaled[j] = theta[j] + cone.lam * cost[j]
        size = self.kbest.kbest(i, scaled, self.k, labels, values, rest)
        for t in range(size):
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
        return 2 if size == self.k else 0
