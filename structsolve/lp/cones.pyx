# build: glue
"""The best label in a cone of the label plane, for any structure with a polytope.

If a structure can list the k best labels of ``h + lam g``, they are checked first: the first one in
the cone is the best one there, and if there are fewer than k, these are all labels.  Otherwise the
best point of the polytope within the cone is found, which may be fractional: by some answers of a
relaxation, or by one linear program with two more rows.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy
from ..utils.alignment cimport align
from ..operators cimport Cone, ConeOracle, KBest, Oracle, Parts, Relaxation
from ..part_layout cimport PartLayout

from ..structure.base import ConePair

# Minimum number of labels worth checking before a program is solved; maximum bytes for labels.
FEWEST_LABELS: int = 4
MOST_BYTES: int = 1 << 24
# Maximum number of edges of a relaxation's polygon to try.
cdef int MOST_EDGES = 100


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


cdef struct Place:
    # A point of the polytope in the plane, and bounds on its rounding errors.
    double h
    double g
    double h_slack
    double g_slack


cdef struct Side:
    # A closed side of a cone: points with a h + b g >= 0 are within.
    double a
    double b


cdef inline double past(const Side* side, const Place* where, double* slack) noexcept nogil:
    # How far a point is within a side; negative: outside, beyond rounding if below -slack.
    slack[0] = fabs(side.a) * where.h_slack + fabs(side.b) * where.g_slack
    return side.a * where.h + side.b * where.g


cdef class RelaxedCones(ConeOracle):
    """The best point of a relaxation in a cone, by answers of the relaxation alone.

    Its points in the plane of (h, g) are a polygon.  If the best one lies outside of the cone, the
    best one inside lies where the border of the polygon crosses the side between: on an edge
    whose two ends are answers.  They are found by asking for the direction across the chord of the
    two nearest answers so far, until no point is beyond it (the dual of the side's row, maximised
    by Newton steps).

    Parameters
    ----------
    relaxation : Relaxation
        Must take scores of any sign, and be accurate.
    layout : PartLayout
    """

    cdef readonly Relaxation relaxation

    def __init__(self, Relaxation relaxation not None, PartLayout layout not None):
        super().__init__(layout)
        self.relaxation = relaxation
        # Scores, two points, a label; then the scratch memory of the relaxation.
        self.work_bytes = (24 * layout.max_theta + 4 * layout.max_label + 192
                           + relaxation.work_bytes)

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        cdef Side[2] sides
        cdef Place place
        cdef double slack, scale = max(1.0, cone.beta)
        cdef int k, kind = self._ask(i, theta, cost, cone, 1, cone.lam, mu, label, &place, work)
        if kind == 0:
            return 0
        sides[0].a, sides[0].b = -cone.beta / scale, 1 / scale
        sides[1].a, sides[1].b = 1, 0
        if cone.alpha < INFINITY:
            scale = max(1.0, cone.alpha)
            sides[1].a, sides[1].b = cone.alpha / scale, -1 / scale
        for k in range(2):
            if past(&sides[k], &place, &slack) < -slack:
                kind = self._cross(i, theta, cost, cone, &sides[k], mu, label, &place, work)
                # If the best point on this line is beyond the tip of the cone, all of the line is.
                if kind == 0 or past(&sides[1 - k], &place, &slack) < -slack:
                    return 0
                break
        value[0] = place.h + cone.lam * place.g
        if kind == 1 and not in_cone(cone, place.h, place.g, place.h_slack, place.g_slack):
            return 2
        return kind

    cdef int _cross(self, Py_ssize_t i, const double* theta, const double* cost, const Cone* cone,
                    const Side* side, double* mu, int* label, Place* place,
                    char* work) except -1 nogil:
        # From the best point, which is outside of a side, to the best one within.
        cdef double* left = <double*>align(work) + self.layout.max_theta
        cdef double* asked = left + self.layout.max_theta
        cdef int* other = <int*>(asked + self.layout.max_theta)
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef Place outer = place[0], inner, new
        cdef double out, within, t, a, b, share, slack
        cdef int known, kind
        memcpy(left, mu, size * sizeof(double))
        kind = self._ask(i, theta, cost, cone, side.a, side.b, mu, label, &inner, work)
        if kind == 0 or past(side, &inner, &slack) < -slack:
            return 0
        for _ in range(MOST_EDGES):
            out, within = past(side, &outer, &slack), max(past(side, &inner, &slack), 0)
            t = max(outer.h - inner.h + cone.lam * (outer.g - inner.g), 0) / (within - out)
            a, b = 1 + t * side.a, cone.lam + t * side.b
            known = self._ask(i, theta, cost, cone, a, b, asked, other, &new, work)
            slack = fabs(a) * (new.h_slack + outer.h_slack) + fabs(b) * (new.g_slack + outer.g_slack)
            if known == 0 or a * (new.h - outer.h) + b * (new.g - outer.g) <= slack:
                break
            if past(side, &new, &slack) >= -slack:
                inner, kind = new, known
                memcpy(mu, asked, size * sizeof(double))
                memcpy(label, other, self.layout.label_size(i) * sizeof(int))
            else:
                outer = new
                memcpy(left, asked, size * sizeof(double))
        out, within = past(side, &outer, &slack), past(side, &inner, &slack)
        place[0] = inner
        if within <= slack:
            return kind
        share = within / (within - out)
        place.h, place.g = mixed(outer.h, inner.h, share), mixed(outer.g, inner.g, share)
        place.h_slack = max(outer.h_slack, inner.h_slack)
        place.g_slack = max(outer.g_slack, inner.g_slack)
        for j in range(size):
            mu[j] = mixed(left[j], mu[j], share)
        return 2

    cdef int _ask(self, Py_ssize_t i, const double* theta, const double* cost, const Cone* cone,
                  double a, double b, double* mu, int* label, Place* place,
                  char* work) except -1 nogil:
        # mu <- the best point of a h + b g; returns 1 if it is a label, 2 if not, 0 without any.
        cdef double* scaled = <double*>align(work)
        cdef char* rest = align(<int*>(scaled + 3 * self.layout.max_theta)
                                + self.layout.max_label)
        cdef Py_ssize_t j, n = 0
        cdef double value, bound, h = 0, g = 0, h_size = fabs(cone.h0), g_size = fabs(cone.g0)
        cdef int kind
        for j in range(self.layout.theta_size(i)):
            # A forbidden part stays forbidden, whatever the sign of its factor.
            scaled[j] = a * theta[j] + b * cost[j] if theta[j] != -INFINITY else -INFINITY
        kind = self.relaxation.relax(i, scaled, mu, label, &value, &bound, rest)
        if value == -INFINITY:
            return 0
        for j in range(self.layout.theta_size(i)):
            if mu[j] != 0:
                h += theta[j] * mu[j]
                g += cost[j] * mu[j]
                h_size += fabs(theta[j] * mu[j])
                g_size += fabs(cost[j] * mu[j])
                n += 1
        place.h, place.h_slack = h + cone.h0, rounding(n, h_size)
        place.g, place.g_slack = g + cone.g0, rounding(n, g_size)
        return 1 if kind else 2


cdef inline double mixed(double first, double second, double share) noexcept nogil:
    return share * first + (1 - share) * second


cdef class PolytopeCones(ConeOracle):
    """The best label in a cone: the k best labels first, then the best point of the polytope.

    Parameters
    ----------
    oracle : Oracle
        Must be exact, or the k best prove nothing.
    kbest : KBest, or None
    parts : Parts
    relaxed : ConeOracle
        Answers where the k best do not.
    k : int
        Maximum number of labels to check before.
    layout : PartLayout

    Attributes
    ----------
    k : int
        Number of labels requested from ``kbest``; 0 for none.
    relaxed : ConeOracle
    """

    cdef readonly Py_ssize_t k
    cdef readonly ConeOracle relaxed
    cdef KBest kbest
    cdef Parts parts

    def __init__(self, Oracle oracle not None, KBest kbest, Parts parts not None,
                 ConeOracle relaxed not None, int k, PartLayout layout not None):
        super().__init__(layout)
        self.kbest, self.parts, self.relaxed = kbest, parts, relaxed
        self.k = self._affordable(k) if kbest is not None and oracle.exact else 0
        self.work_bytes = relaxed.work_bytes
        # Scores, values, entries of a label, labels; then the scratch memory of the k best.
        if self.k:
            own = (8 * (layout.max_theta + self.k) + 12 * parts.max_entries
                   + 4 * self.k * layout.max_label + 128)
            self.work_bytes = max(self.work_bytes, own + kbest.bytes_for(self.k))

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
        if self.k:
            kind = self._look_through(i, theta, cost, cone, label, value, work)
        if kind == 2:
            kind = self.relaxed.argmax_in_cone(i, theta, cost, cone, mu, label, value, work)
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
