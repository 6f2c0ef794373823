"""The best labeling in a cone of the label plane, by enumeration of all labelings."""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy
from structsolve.operators cimport Cone, ConeOracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.mrf.tables._model cimport (
    Model, edge_scores, magnitude, other_end, score,
)
from structsolve.plugins.mrf.tables._shape cimport GraphShape

# Error of sums in another order than in score(), in units of the scores.
cdef double ROUNDING = 1e-14
# Maximum number of labelings of the last nodes to score together.
cdef Py_ssize_t TABLE = 64


cdef inline Py_ssize_t _split(const Model* model, Py_ssize_t* size) noexcept nogil:
    # First of the nodes that are scored together, and the number of their labelings.
    cdef Py_ssize_t v = model.n
    size[0] = 1
    while v and size[0] * model.states[v - 1] <= TABLE:
        v -= 1
        size[0] *= model.states[v]
    return v


cdef Py_ssize_t _bytes(const Model* model) noexcept nogil:
    cdef Py_ssize_t n = model.n, size, depths = _split(model, &size) + 1
    return (2 * depths * (model.unary_at[n] + 1) + 4 * size) * sizeof(double) + n * sizeof(int)


cdef inline bint _allowed(double h, double g, const Cone* cone) noexcept nogil:
    cdef double high = cone.alpha * h
    if cone.alpha == INFINITY:          # the product would be NaN if h = 0
        high = INFINITY if h >= 0 else -INFINITY
    if cone.twin:
        return cone.beta * h <= g and g < high
    return cone.beta * h < g and g <= high


cdef void _condition(const Model* model, int v, int s, const double* scores,
                     double* out) noexcept nogil:
    # out <- scores of the nodes after v if v has state s.
    cdef int e, w, t
    cdef Py_ssize_t j, step = 0, after = model.unary_at[v + 1]
    cdef const double* row
    memcpy(out + after, scores + after, (model.unary_at[model.n] - after) * sizeof(double))
    for j in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[j]
        w = other_end(model, e, v)
        if w < v:
            continue
        row = edge_scores(model, e, w, s, &step)
        for t in range(model.states[w]):
            out[model.unary_at[w] + t] += row[t * step]


cdef void _inner(const Model* model, Py_ssize_t begin, double* out) noexcept nogil:
    # out <- scores of edges among nodes from `begin` on, for all their labelings; the state of the
    # last node changes slowest.
    cdef Py_ssize_t w, j, i, size = 1, period, step = 0
    cdef int e, x, t
    cdef double* block
    cdef const double* row
    out[0] = 0
    for w in range(begin, model.n):
        for t in range(model.states[w] - 1, -1, -1):
            block = out + t * size
            for i in range(size):
                block[i] = out[i]
        for j in range(model.near_at[w], model.near_at[w + 1]):
            e = model.near[j]
            x = other_end(model, e, w)
            if x < begin or x > w:
                continue
            period = 1
            for i in range(begin, x):
                period *= model.states[i]
            for t in range(model.states[w]):
                block = out + t * size
                row = edge_scores(model, e, x, t, &step)
                for i in range(size):
                    block[i] += row[i / period % model.states[x] * step]
        size *= model.states[w]


cdef void _outer(const Model* model, Py_ssize_t begin, double sum, const double* scores,
                 const double* inner, Py_ssize_t total, double* out) noexcept nogil:
    # out <- scores of all labelings of these nodes, given their scores and those of their edges.
    cdef Py_ssize_t w, i, size = 1
    cdef int t, k
    cdef double* block
    cdef double x
    out[0] = sum
    for w in range(begin, model.n):
        k = model.states[w]
        for t in range(k - 1, -1, -1):
            block = out + t * size
            x = scores[model.unary_at[w] + t]
            for i in range(size):
                block[i] = out[i] + x
        size *= k
    for i in range(total):
        out[i] += inner[i]


cdef bint _argmax(const Model* first, const Model* second, const Cone* cone, int* label,
                  double* h, double* g, char* work) noexcept nogil:
    # The labeling with the largest h + lam g in the cone, h = h0 + score(first) and
    # g = g0 + score(second); False if there is none.  Both models have the same nodes, states
    # and edges.  Labelings with h or g of -inf are never allowed.
    #
    # Depth first over all but the last nodes; each depth keeps the scores of later nodes given the
    # states so far, so that a labeling costs only its last nodes.
    cdef Py_ssize_t n = first.n, width = first.unary_at[n], v = 0, size, i, j, part
    cdef Py_ssize_t begin = _split(first, &size)
    cdef double* sum_h = <double*>work          # of the states so far, before node v
    cdef double* sum_g = sum_h + begin + 1
    cdef double* given_h = sum_g + begin + 1    # (begin + 1, width)
    cdef double* given_g = given_h + (begin + 1) * width
    cdef double* inner_h = given_g + (begin + 1) * width
    cdef double* inner_g = inner_h + size
    cdef double* all_h = inner_g + size
    cdef double* all_g = all_h + size
    cdef int* trial = <int*>(all_g + size)
    cdef double near_h, near_g, exact_h, exact_g, top = -INFINITY
    cdef double lam = cone.lam, alpha = cone.alpha, beta = cone.beta
    cdef double slack_h = ROUNDING * (magnitude(first) + fabs(cone.h0))
    cdef double slack_g = ROUNDING * (magnitude(second) + fabs(cone.g0))
    cdef double slack = slack_h + fabs(lam) * slack_g, slack_high, slack_low
    cdef bint exists = False
    slack_low = slack_g + fabs(beta) * slack_h
    slack_high = slack_g + fabs(alpha) * slack_h if alpha < INFINITY else INFINITY
    _inner(first, begin, inner_h)
    _inner(second, begin, inner_g)
    memcpy(given_h, first.unary, width * sizeof(double))
    memcpy(given_g, second.unary, width * sizeof(double))
    sum_h[0], sum_g[0] = cone.h0, cone.g0
    trial[0] = -1
    while v >= 0:
        if v < begin:
            trial[v] += 1
            if trial[v] == first.states[v]:
                v -= 1
                continue
            part = v * width + first.unary_at[v] + trial[v]
            sum_h[v + 1], sum_g[v + 1] = sum_h[v] + given_h[part], sum_g[v] + given_g[part]
            if sum_h[v + 1] == -INFINITY or sum_g[v + 1] == -INFINITY:
                continue
            part = v * width
            _condition(first, <int>v, trial[v], given_h + part, given_h + part + width)
            _condition(second, <int>v, trial[v], given_g + part, given_g + part + width)
            v += 1
            trial[v] = -1
            continue
        _outer(first, begin, sum_h[v], given_h + v * width, inner_h, size, all_h)
        _outer(second, begin, sum_g[v], given_g + v * width, inner_g, size, all_g)
        for i in range(size):
            near_h, near_g = all_h[i], all_g[i]
            # -inf never passes.
            if not near_h + lam * near_g + slack > top:
                continue
            if not near_g >= beta * near_h - slack_low:
                continue
            if alpha < INFINITY and not near_g <= alpha * near_h + slack_high:
                continue
            part = i
            for j in range(begin, n):
                trial[j] = <int>(part % first.states[j])
                part /= first.states[j]
            exact_h, exact_g = cone.h0 + score(first, trial), cone.g0 + score(second, trial)
            if (exact_h > -INFINITY and exact_g > -INFINITY and exact_h + lam * exact_g > top
                    and _allowed(exact_h, exact_g, cone)):
                exists = True
                top = exact_h + lam * exact_g
                h[0], g[0] = exact_h, exact_g
                memcpy(label, trial, n * sizeof(int))
        v -= 1
    return exists


cdef class EnumeratedCones(ConeOracle):
    """The best labeling in a cone, of few labelings.

    Parameters
    ----------
    shape : GraphShape
    layout : PartLayout
    """

    cdef GraphShape shape

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.n_states = shape, shape.n_states
        self.work_bytes = 2 * shape.scores_bytes + shape.largest(_bytes)

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        cdef char* second = work + self.shape.scores_bytes
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Model weights = self.shape.gather(i, cost, <double*>second)
        cdef double h, g
        if not _argmax(&model, &weights, cone, label, &h, &g, second + self.shape.scores_bytes):
            return 0
        value[0] = h + cone.lam * g
        return 1
