"""The oracle of labelings of graphs: which decoder answers what, on scores taken from theta."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.lp.cones cimport in_cone, rounding
from structsolve.operators cimport Cone, Oracle

from structsolve.plugins.mrf._constrained cimport argmax_constrained, constrained_bytes
from structsolve.plugins.mrf._trws cimport trws, trws_bytes
from structsolve.plugins.mrf._branch_and_bound cimport exact, exact_bytes
from structsolve.plugins.mrf._forest cimport (
    forest_argmax, forest_bytes, forest_kbest, forest_kbest_bytes, forest_marginals,
)
from structsolve.plugins.mrf._gray_code cimport (
    cube_argmax, cube_fits, gray_bytes, gray_kbest, gray_kbest_bytes, gray_marginals,
)
from structsolve.plugins.mrf._local cimport climb, climb_bytes
from structsolve.plugins.mrf._model cimport Model, magnitude, score
from structsolve.plugins.mrf._roof cimport half_integral_score, roof_bytes, roof_dual
from structsolve.plugins.mrf._shape cimport GraphShape

DECODERS = {None: NONE, "forest": FOREST, "exact": EXACT, "roof-duality": ROOF, "trws": TRWS,
            "program": PROGRAM}


# More labelings than this are not looked through, one by one, for max-marginals or the k best.
cdef double MANY = 1 << 20
# Partial labelings that branch and bound looks at before it leaves the rest to an integer program.
cdef long long PATIENCE = 3_000_000


cdef class GraphOracle(Oracle):
    """Maximises scores of labelings of graphs by the decoders it is told to use.

    Parameters
    ----------
    shape : GraphShape
    search : {"forest", "exact", "roof-duality", "trws", "program"}
        Finds labelings.  "forest": max-product; "exact": enumeration of small two-state graphs, else
        branch and bound, and where that takes too long what ``program.best`` gives; "roof-duality": the relaxation, rounded; "trws": dual ascent; "program": what
        ``program.decode`` gives.  The last three are improved by local search.
    relaxation : {None, "forest", "roof-duality", "program"}
        Solves the linear program over the local polytope.
    constraint : {None, "exact", "program"}
        Answers ``argmax_constrained``: by enumeration, or a linear program with two more rows.
    program : object
        ``decode(shape, i, unary, pair) -> label, bound``, ``best(shape, i, unary, pair) -> label``;
        ``relax(shape, i, unary, pair) -> unary marginals, pair marginals``;
        ``constrained(shape, i, unary, pair, cost_unary, cost_pair, cone)`` -> the same or None.
    max_iter : int, default=100
        Of "trws".
    """

    def __init__(self, GraphShape shape, search, relaxation=None, constraint=None, program=None,
                 int max_iter=100):
        cdef Model model
        cdef Py_ssize_t i
        self.shape, self.program, self.max_iter = shape, program, max_iter
        self.search, self.relaxation = DECODERS[search], DECODERS[relaxation]
        self.constraint = DECODERS[constraint]
        self.exact = self.search in (FOREST, EXACT)
        self.marginals = NONE
        if self.search == FOREST or (self.exact and shape.labelings <= MANY):
            self.marginals = self.search
        self.has_relaxed = self.relaxation != NONE
        self.has_constrained = self.constraint != NONE
        self.has_max_marginals = self.has_kbest = self.marginals != NONE
        # Scores of nodes and edges; twice, for costs or marginals.
        self.scores_bytes = 8 * (shape.max_unary + shape.max_pair) + 128
        asked = (self.search, self.relaxation, self.constraint)
        self.decoder_bytes = 64 + 8 * shape.max_unary    # room for max-marginals
        if FOREST in asked:
            self.decoder_bytes = max(self.decoder_bytes, 8 * shape.max_unary
                                     + forest_bytes(shape.max_unary))
        if self.search == EXACT:     # one example may be small and of two states, others not
            self.decoder_bytes = max(self.decoder_bytes, 8 * shape.max_unary
                                     + gray_bytes(shape.max_nodes, shape.max_unary))
        if ROOF in asked:
            self.decoder_bytes = max(self.decoder_bytes, self._half_bytes()
                                     + roof_bytes(shape.max_nodes, shape.max_edges))
        for i in range(min(shape.n, 1) if shape.one_graph else shape.n):
            model = shape.graph(i)
            self.decoder_bytes = max(self.decoder_bytes, self._half_bytes() + climb_bytes(&model))
            if self.search == EXACT:
                self.decoder_bytes = max(self.decoder_bytes, exact_bytes(&model) + 64)
            if self.constraint == EXACT:
                self.decoder_bytes = max(self.decoder_bytes, constrained_bytes(&model) + 64)
            if TRWS in asked:
                self.decoder_bytes = max(self.decoder_bytes, trws_bytes(&model) + 64)
        self.work_bytes = 2 * self.scores_bytes + self.decoder_bytes + 256

    cdef Py_ssize_t _half_bytes(self) noexcept nogil:
        # States and pairings of a half-integral answer, up to a multiple of 64.
        return ((self.shape.max_nodes + self.shape.max_edges + 63) // 64) * 64 + 64

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef double bound
        return self.decode(i, theta, label, value, &bound, work)

    cdef int argmax_bounded(self, Py_ssize_t i, const double* theta, int* label, double* value,
                            double* bound, char* work) except -1 nogil:
        return self.decode(i, theta, label, value, bound, work)

    cdef int decode(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef double* unary = <double*>work
        cdef char* rest = work + 2 * self.scores_bytes
        cdef Model model = self.shape.gather(i, theta, unary, unary + self.shape.max_unary)
        cdef Py_ssize_t first = self.shape.first_node(i)
        if self.search == FOREST:
            forest_argmax(&model, self.shape.order_p + first, self.shape.up_p + first, label, rest)
            value[0] = score(&model, label)
        elif self.search == EXACT:
            if cube_fits(&model):
                cube_argmax(&model, label, value, rest)
            elif not exact(&model, PATIENCE, label, value, bound, rest):
                with gil:
                    self._ask_best(i, &model, label)
                climb(&model, label, rest)      # programs have tolerances
            elif value[0] == -INFINITY:
                memset(label, 0, model.n * sizeof(int))
            value[0] = score(&model, label)
        else:
            if self.search == ROOF:
                self._roof(&model, label, bound, rest)
            elif self.search == TRWS:
                trws(&model, self.max_iter, 1e-12, label, value, bound, rest)
                if value[0] == -INFINITY:
                    memset(label, 0, model.n * sizeof(int))
            else:
                with gil:
                    self._ask_label(i, &model, label, bound)
            climb(&model, label, rest)
            value[0] = score(&model, label)
            bound[0] = max(bound[0], value[0])
            return 0
        bound[0] = value[0]
        return 0

    cdef void _roof(self, const Model* model, int* label, double* bound,
                    char* work) noexcept nogil:
        cdef signed char* state = <signed char*>work
        cdef Py_ssize_t v
        cdef bint whole = True
        bound[0] = roof_dual(model, state, state + model.n, work + self._half_bytes())
        if bound[0] > -INFINITY:
            for v in range(model.n):
                whole = whole and state[v] != 2
                label[v] = state[v]
        else:
            memset(label, 0, model.n * sizeof(int))
        if not whole:
            _round(model, state, label)

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        cdef double* unary = <double*>work
        cdef double* node_mu = <double*>(work + self.scores_bytes)
        cdef char* rest = work + 2 * self.scores_bytes
        cdef signed char* state = <signed char*>rest
        cdef Model model = self.shape.gather(i, theta, unary, unary + self.shape.max_unary)
        cdef Py_ssize_t first = self.shape.first_node(i), v
        cdef bint whole = True
        if self.relaxation == FOREST:
            forest_argmax(&model, self.shape.order_p + first, self.shape.up_p + first, label, rest)
        elif self.relaxation == ROOF:
            value[0] = roof_dual(&model, state, state + model.n, rest + self._half_bytes())
            for v in range(model.n):
                whole = whole and state[v] != 2
                label[v] = state[v]
            if value[0] == -INFINITY:       # nothing is possible: any labeling will do
                whole = True
                memset(label, 0, model.n * sizeof(int))
            elif not whole:
                _half(&model, state, state + model.n, node_mu, node_mu + self.shape.max_unary)
        else:
            with gil:
                whole = self._ask_marginals(i, &model, node_mu, label)
        if whole:
            value[0] = score(&model, label)
            self.shape.indicate(i, label, mu)
            return 1
        value[0] = _inner(&model, node_mu, node_mu + self.shape.max_unary)
        self.shape.scatter(i, node_mu, node_mu + self.shape.max_unary, mu)
        return 0

    cdef int argmax_constrained(self, Py_ssize_t i, const double* theta, const double* cost,
                                const Cone* cone, double* mu, int* label, double* value,
                                char* work) except -1 nogil:
        cdef double* unary = <double*>work
        cdef double* second = <double*>(work + self.scores_bytes)
        cdef char* rest = work + 2 * self.scores_bytes
        cdef Model model = self.shape.gather(i, theta, unary, unary + self.shape.max_unary)
        cdef Model weights = self.shape.gather(i, cost, second, second + self.shape.max_unary)
        cdef int kind = 0
        cdef double h, g
        if self.constraint == EXACT:
            if not argmax_constrained(&model, cone.h0, &weights, cone.g0, cone.lam, cone.alpha,
                                      cone.beta, cone.twin, label, &h, &g, rest):
                return 0
            value[0] = h + cone.lam * g
            return 1
        with gil:
            kind = self._ask_constrained(i, &model, &weights, cone, mu, label, value)
        return kind

    cdef int node_marginals(self, Py_ssize_t i, const double* theta, double** out, Model* model,
                            char* work) except -1 nogil:
        # out <- max-marginals as model.unary, somewhere in work.
        cdef double* unary = <double*>work
        cdef char* rest = work + 2 * self.scores_bytes
        cdef Py_ssize_t first = self.shape.first_node(i)
        model[0] = self.shape.gather(i, theta, unary, unary + self.shape.max_unary)
        out[0] = <double*>rest
        rest += 8 * self.shape.max_unary
        if self.marginals == FOREST:
            forest_marginals(model, self.shape.order_p + first, self.shape.up_p + first, out[0],
                             rest)
        else:
            gray_marginals(model, out[0], rest)
        return 0

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef Model model
        cdef double* found
        cdef Py_ssize_t v, s
        self.node_marginals(i, theta, &found, &model, work)
        for v in range(model.n):
            for s in range(self.shape.row_size):
                out[s] = found[model.unary_at[v] + s] if s < model.states[v] else -INFINITY
            out += self.shape.row_size
        return 0

    cpdef Py_ssize_t kbest_bytes(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t nodes = self.shape.max_nodes, unary = self.shape.max_unary, needed
        if self.marginals == FOREST:
            needed = forest_kbest_bytes(nodes, unary, k)
        else:
            needed = gray_kbest_bytes(nodes, unary, k)
        return 2 * self.scores_bytes + 256 + needed

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef double* unary = <double*>work
        cdef char* rest = work + 2 * self.scores_bytes
        cdef Model model = self.shape.gather(i, theta, unary, unary + self.shape.max_unary)
        cdef Py_ssize_t first = self.shape.first_node(i), count
        if self.marginals == FOREST:
            return forest_kbest(&model, self.shape.order_p + first, self.shape.up_p + first, k,
                                labels, values, rest)
        count = gray_kbest(&model, k, labels, values, rest)
        if count:
            return count
        memset(labels, 0, model.n * sizeof(int))        # nothing is possible, as argmax says
        values[0] = -INFINITY
        return 1

    # -- decoders that are Python --------------------------------------------------------------

    cdef tuple _arrays(self, const Model* model):
        # Copies: a decoder may keep them.
        unary = np.empty(model.unary_at[model.n])
        pair = np.empty(model.pair_at[model.m])
        cdef double[::1] view = unary
        memcpy(&view[0], model.unary, unary.nbytes)
        if pair.size:
            view = pair
            memcpy(&view[0], model.pair, pair.nbytes)
        return unary, pair

    cdef int _ask_label(self, Py_ssize_t i, const Model* model, int* label,
                        double* bound) except -1:
        cdef const int[::1] view
        found, bound[0] = self.program.decode(self.shape, i, *self._arrays(model))
        view = np.ascontiguousarray(found, dtype=np.int32)
        memcpy(label, &view[0], model.n * sizeof(int))
        return 0

    cdef int _ask_best(self, Py_ssize_t i, const Model* model, int* label) except -1:
        cdef const int[::1] view = self.program.best(self.shape, i, *self._arrays(model))
        memcpy(label, &view[0], model.n * sizeof(int))
        return 0

    cdef bint _keep(self, const Model* model, object answer, double* node_mu,
                    int* label) except -1:
        # Copy marginals; returns whether they are a labeling's, then in `label`.
        cdef Py_ssize_t v
        cdef const double[::1] nodes, pairs
        if answer is None:      # nothing is possible: any labeling will do
            memset(label, 0, model.n * sizeof(int))
            return True
        nodes, pairs = answer
        memcpy(node_mu, &nodes[0], nodes.shape[0] * sizeof(double))
        if pairs.shape[0]:
            memcpy(node_mu + self.shape.max_unary, &pairs[0], pairs.shape[0] * sizeof(double))
        if not (np.isin(answer[0], (0.0, 1.0)).all() and np.isin(answer[1], (0.0, 1.0)).all()):
            return False
        for v in range(model.n):
            label[v] = 0
            while nodes[model.unary_at[v] + label[v]] != 1:
                label[v] += 1
        return True

    cdef bint _ask_marginals(self, Py_ssize_t i, const Model* model, double* node_mu,
                             int* label) except -1:
        answer = self.program.relax(self.shape, i, *self._arrays(model))
        return self._keep(model, answer, node_mu, label)

    cdef int _ask_constrained(self, Py_ssize_t i, const Model* model, const Model* weights,
                              const Cone* cone, double* mu, int* label, double* value) except -1:
        from structsolve.structure.base import ConePair

        pair = ConePair(cone.h0, cone.g0, cone.lam, cone.alpha, cone.beta, bool(cone.twin))
        answer = self.program.constrained(self.shape, i, *self._arrays(model),
                                          *self._arrays(weights), pair)
        if answer is None:
            return 0
        marginals = np.zeros(self.shape.max_unary + self.shape.max_pair)
        cdef double h, g
        cdef Py_ssize_t n = model.n + model.m
        cdef double[::1] view = marginals
        cdef double* pairs = &view[0] + self.shape.max_unary
        if self._keep(model, answer, &view[0], label):
            h, g = score(model, label) + cone.h0, score(weights, label) + cone.g0
            # A label on a strict side is still a point of the relaxation.
            if in_cone(cone, h, g, rounding(n, magnitude(model) + fabs(cone.h0)),
                       rounding(n, magnitude(weights) + fabs(cone.g0))):
                value[0] = h + cone.lam * g
                return 1
        value[0] = (_inner(model, &view[0], pairs) + cone.h0
                    + cone.lam * (_inner(weights, &view[0], pairs) + cone.g0))
        self.shape.scatter(i, &view[0], pairs, mu)
        return 2


cdef double _inner(const Model* model, const double* nodes, const double* pairs) noexcept nogil:
    # <theta, mu>; what mu leaves out may score -inf.
    cdef double total = 0
    cdef Py_ssize_t j
    for j in range(model.unary_at[model.n]):
        if nodes[j] != 0:
            total += nodes[j] * model.unary[j]
    for j in range(model.pair_at[model.m]):
        if pairs[j] != 0:
            total += pairs[j] * model.pair[j]
    return total


cdef void _half(const Model* model, const signed char* state, const signed char* pairing,
                double* nodes, double* pairs) noexcept nogil:
    # Marginals of a half-integral answer of roof duality, in the model's layout.
    cdef Py_ssize_t v, e, s, t, K
    cdef int a, b
    memset(nodes, 0, model.unary_at[model.n] * sizeof(double))
    memset(pairs, 0, model.pair_at[model.m] * sizeof(double))
    for v in range(model.n):
        if state[v] == 2:
            nodes[model.unary_at[v]] = nodes[model.unary_at[v] + 1] = 0.5
        else:
            nodes[model.unary_at[v] + state[v]] = 1
    for e in range(model.m):
        a, b = state[model.ends[2 * e]], state[model.ends[2 * e + 1]]
        K = model.states[model.ends[2 * e + 1]]
        if a != 2 and b != 2:
            pairs[model.pair_at[e] + a * K + b] = 1
        elif a != 2:
            pairs[model.pair_at[e] + a * K] = pairs[model.pair_at[e] + a * K + 1] = 0.5
        elif b != 2:
            pairs[model.pair_at[e] + b] = pairs[model.pair_at[e] + K + b] = 0.5
        else:
            for s in range(2):
                t = s ^ pairing[e]
                pairs[model.pair_at[e] + s * K + t] = 0.5


cdef double _gain(const Model* model, const int* label, Py_ssize_t v, int s) noexcept nogil:
    # Score of state s at node v and of its edges, the neighbours as labelled (-1: left out).
    cdef double total = model.unary[model.unary_at[v] + s]
    cdef Py_ssize_t k, e, w, K
    for k in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[k]
        w = model.ends[2 * e] + model.ends[2 * e + 1] - v
        if label[w] < 0:
            continue
        K = model.states[model.ends[2 * e + 1]]
        if model.ends[2 * e] == v:
            total += model.pair[model.pair_at[e] + s * K + label[w]]
        else:
            total += model.pair[model.pair_at[e] + label[w] * K + s]
    return total


cdef void _round(const Model* model, const signed char* state, int* label) noexcept nogil:
    # Nodes that roof duality leaves open, one after the other.
    cdef Py_ssize_t v
    for v in range(model.n):
        if state[v] == 2:
            label[v] = -1
    for v in range(model.n):
        if state[v] == 2:
            label[v] = 0 if _gain(model, label, v, 0) >= _gain(model, label, v, 1) else 1
