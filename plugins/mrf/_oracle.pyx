# build: glue
"""Oracles of labelings of graphs, one for each decoder, with the k best and max-marginals."""

import numpy as np

from structsolve.utils.arrays import padded

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.operators cimport KBest, MaxMarginals, Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.mrf.elimination._elimination cimport (
    eliminate, eliminate_kbest, eliminate_marginals, elimination_bytes, largest_work,
)
from structsolve.plugins.mrf.elimination._plan cimport Plan, Plans
from structsolve.plugins.mrf.exact._search cimport exact, exact_bytes
from structsolve.plugins.mrf.local_search._expansion cimport expand, expand_bytes
from structsolve.plugins.mrf.messages._float_passes cimport dual_ascent, dual_ascent_bytes
from structsolve.plugins.mrf.elimination._gray_code cimport (
    cube_argmax, cube_bytes, cube_kbest, cube_marginals, cube_pays,
)
from structsolve.plugins.mrf.local_search._climb cimport climb, climb_bytes
from structsolve.plugins.mrf.messages._max_product cimport (
    forest_argmax, forest_bytes, forest_kbest, forest_kbest_bytes, forest_marginals,
)
from structsolve.plugins.mrf.tables._model cimport Model, edge_scores, other_end, score, scores_of
from structsolve.plugins.mrf.cuts._roof_duality cimport half_bytes, roof_bytes, roof_dual
from structsolve.plugins.mrf.tables._shape cimport GraphShape

# Steps of the search before an integer program takes over, seconds; before elimination does, its
# number of sums at most.
cdef double PATIENCE = 2.0 ** 30
# Iterations of TRW-S if a linear program's rounded answer is forbidden.
cdef int PASSES = 100
# Up to so many sums, elimination comes first.
cdef double CHEAP = 2.0 ** 14


cdef class GraphOracle(Oracle):
    """Base of the oracles of graphs: `work` begins with the scores of the example.

    Parameters
    ----------
    shape : GraphShape
    layout : PartLayout
    """

    cdef GraphShape shape

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.n_states = shape, shape.n_states


cdef bint _is_forest(GraphShape shape, Py_ssize_t i) noexcept nogil:
    # Whether every edge of example i leads to a parent.
    cdef Py_ssize_t v, edges = 0, first = shape.first_node(i)
    cdef Model model = shape.graph(i)
    for v in range(model.n):
        edges += shape.up_p[first + v] >= 0
    return edges == model.m


cdef class ForestOracle(GraphOracle):
    """The best labeling of graphs without cycles, by max-product.

    Parameters
    ----------
    shape : GraphShape
        Of forests.
    layout : PartLayout
    """

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(shape, layout)
        self.work_bytes = shape.scores_bytes + forest_bytes(shape.max_unary)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Py_ssize_t first = self.shape.first_node(i)
        forest_argmax(&model, self.shape.order_p + first, self.shape.up_p + first, label,
                      work + self.shape.scores_bytes)
        value[0] = bound[0] = score(&model, label)
        return 0


cdef class ExactOracle(GraphOracle):
    """The best labeling of any graph.

    Max-product solves graphs without cycles.  Small dense two-state graphs are enumerated.  Narrow
    graphs are solved by elimination: at once if that is cheap, else if the search has not been
    faster.  Otherwise an integer program answers.

    Parameters
    ----------
    program : object
        ``best(shape, i, unary, pair) -> label``.
    plans : Plans
        Plans of the graphs of `shape`.
    shape : GraphShape
    layout : PartLayout
    """

    cdef object program
    cdef Plans plans

    def __init__(self, program, Plans plans not None, GraphShape shape not None,
                 PartLayout layout not None):
        super().__init__(shape, layout)
        self.program, self.plans = program, plans
        # Some examples may be small with two states, others not.
        self.work_bytes = shape.scores_bytes + max(
            cube_bytes(shape.max_nodes, 0), shape.largest(climb_bytes),
            shape.largest(exact_bytes), largest_work(plans, shape, 0),
            forest_bytes(shape.max_unary))

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef char* rest = work + self.shape.scores_bytes
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Plan plan = self.plans.of(0 if self.shape.one_graph else i)
        cdef double patience = min(PATIENCE, plan.entries) if plan.entries > 0 else PATIENCE
        cdef Py_ssize_t first = self.shape.first_node(i)
        if _is_forest(self.shape, i):
            forest_argmax(&model, self.shape.order_p + first, self.shape.up_p + first, label, rest)
        elif cube_pays(&model, plan.entries):
            cube_argmax(&model, label, value, rest)
        elif 0 < plan.entries <= CHEAP:
            eliminate(&model, &plan, label, rest)
        elif exact(&model, patience, label, value, bound, rest):
            if value[0] == -INFINITY:
                memset(label, 0, model.n * sizeof(int))
        elif plan.entries > 0:
            eliminate(&model, &plan, label, rest)
        else:
            with gil:
                self._ask(i, &model, label)
            climb(&model, label, rest)      # programs have tolerances
        value[0] = bound[0] = score(&model, label)
        return 0

    cdef int _ask(self, Py_ssize_t i, const Model* model, int* label) except -1:
        cdef const int[::1] view = self.program.best(self.shape, i, *scores_of(model))
        memcpy(label, &view[0], model.n * sizeof(int))
        return 0


cdef class EasyFirstOracle(ExactOracle):
    """The best labeling of easy graphs, whatever graphs are beside them; else another's answer.

    Parameters
    ----------
    other : Oracle
    few : float
        Labelings up to which a graph is easy; so it is without cycles, and if it has a plan.
    program, plans, shape, layout
        See :class:`ExactOracle`.
    """

    cdef Oracle other
    cdef const signed char[::1] easy        # of each graph

    def __init__(self, Oracle other not None, double few, program, Plans plans not None,
                 GraphShape shape not None, PartLayout layout not None):
        cdef Py_ssize_t g, v, most = 0
        cdef signed char[::1] easy = np.zeros(shape.n_graphs + 1, dtype=np.int8)
        cdef double labelings
        cdef Model model
        cdef Plan plan
        super().__init__(program, plans, shape, layout)
        for g in range(shape.n_graphs):
            model, plan, labelings = shape.graph(g), plans.of(g), 1
            for v in range(model.n):
                labelings = min(labelings * model.states[v], few + 1)
            if not (plan.entries > 0 or labelings <= few or _is_forest(shape, g)):
                continue
            easy[g] = 1
            most = max(most, forest_bytes(model.unary_at[model.n]), climb_bytes(&model),
                       exact_bytes(&model), cube_bytes(model.n, 0) if labelings <= few else 0,
                       elimination_bytes(&plan, &model) if plan.entries > 0 else 0)
        self.easy, self.other, self.exact = easy, other, False
        self.work_bytes = max(other.work_bytes, shape.scores_bytes + most)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        if self.easy[0 if self.shape.one_graph else i]:
            return ExactOracle.argmax(self, i, theta, label, value, bound, work)
        return self.other.argmax(i, theta, label, value, bound, work)


cdef class RoofOracle(GraphOracle):
    """Two states: the linear relaxation by roof duality, rounded, and improved by local search.

    Parameters
    ----------
    shape : GraphShape
        No node has more than two states.
    layout : PartLayout
    """

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(shape, layout)
        self.exact = False
        self.work_bytes = shape.scores_bytes + max(
            half_bytes(shape.max_nodes, shape.max_edges)
            + roof_bytes(shape.max_nodes, shape.max_edges), shape.largest(climb_bytes))

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef char* rest = work + self.shape.scores_bytes
        cdef signed char* state = <signed char*>rest
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Py_ssize_t v
        cdef bint whole = True
        bound[0] = roof_dual(&model, state, state + model.n,
                             rest + half_bytes(self.shape.max_nodes, self.shape.max_edges))
        if bound[0] > -INFINITY:
            for v in range(model.n):
                whole = whole and state[v] != 2
                label[v] = state[v]
        else:
            memset(label, 0, model.n * sizeof(int))
        if not whole:
            _round(&model, state, label)
        value[0] = climb(&model, label, rest)
        bound[0] = max(bound[0], value[0])
        return 0


cdef class TRWSOracle(GraphOracle):
    """Any number of states: dual ascent, its best labeling improved by local search.

    Parameters
    ----------
    max_iter : int
    expands : bool
        Run alpha-expansions before local search.
    shape : GraphShape
    layout : PartLayout
    """

    cdef int max_iter
    cdef readonly bint expands

    def __init__(self, int max_iter, bint expands, GraphShape shape not None,
                 PartLayout layout not None):
        super().__init__(shape, layout)
        self.exact, self.max_iter, self.expands = False, max_iter, expands
        self.work_bytes = shape.scores_bytes + max(
            shape.largest(climb_bytes), shape.largest(dual_ascent_bytes),
            shape.largest(expand_bytes) if expands else 0)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef char* rest = work + self.shape.scores_bytes
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        dual_ascent(&model, self.max_iter, 1e-12, label, value, bound, NULL, 0, NULL, rest)
        if value[0] == -INFINITY:
            memset(label, 0, model.n * sizeof(int))
        if value[0] < bound[0]:
            if self.expands:
                expand(&model, label, rest)
            value[0] = climb(&model, label, rest)
        bound[0] = max(bound[0], value[0])
        return 0


cdef class LinearOracle(GraphOracle):
    """The linear relaxation by a solver of linear programs, rounded, improved by local search.

    Parameters
    ----------
    program : object
        ``decode(shape, i, unary, pair) -> label, bound``.
    shape : GraphShape
    layout : PartLayout
    """

    cdef object program

    def __init__(self, program, GraphShape shape not None, PartLayout layout not None):
        super().__init__(shape, layout)
        self.exact, self.program = False, program
        self.work_bytes = shape.scores_bytes + max(
            shape.largest(climb_bytes), shape.largest(dual_ascent_bytes))

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef char* rest = work + self.shape.scores_bytes
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef double other
        with gil:
            self._ask(i, &model, label, bound)
        value[0] = climb(&model, label, rest)
        if value[0] == -INFINITY < bound[0]:    # the rounded labeling is forbidden
            dual_ascent(&model, PASSES, 1e-12, label, value, &other, NULL, 0, NULL, rest)
            if value[0] == -INFINITY:
                memset(label, 0, model.n * sizeof(int))
            value[0] = climb(&model, label, rest)
            bound[0] = min(bound[0], other)
        bound[0] = max(bound[0], value[0])
        return 0

    cdef int _ask(self, Py_ssize_t i, const Model* model, int* label, double* bound) except -1:
        cdef const int[::1] view
        answer, bound[0] = self.program.decode(self.shape, i, *scores_of(model))
        view = np.ascontiguousarray(answer, dtype=np.int32)
        memcpy(label, &view[0], model.n * sizeof(int))
        return 0


def _plans_of(plans, shape):
    # Plans of the shape's graphs, None if these are forests.
    if plans is None and not shape.forest:
        raise ValueError("plans: found None, expected those of `shape`, as it has cycles")
    if plans is not None and not plans.most_entries < INFINITY:
        raise ValueError("plans: found graphs without one, expected a plan for each")
    return None if shape.forest else plans


cdef class GraphKBest(KBest):
    """The k best labelings: by max-product for forests, else by elimination.

    Small two-state graphs are enumerated where that is faster.

    Parameters
    ----------
    plans : Plans or None
        Plans that keep their tables; None for forests.
    shape : GraphShape
    layout : PartLayout
    """

    cdef GraphShape shape
    cdef Plans plans

    def __init__(self, Plans plans, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.n_states, self.plans = shape, shape.n_states, _plans_of(plans, shape)
        self.work_bytes = self.bytes_for(1)

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t nodes = self.shape.max_nodes, unary = self.shape.max_unary
        if self.plans is None:
            return self.shape.scores_bytes + forest_kbest_bytes(nodes, unary, k)
        return self.shape.scores_bytes + max(
            largest_work(self.plans, self.shape, k), cube_bytes(nodes, k),
            forest_kbest_bytes(nodes, unary, k))

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef char* rest = work + self.shape.scores_bytes
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Py_ssize_t first = self.shape.first_node(i), count
        cdef Plan plan
        if self.plans is None or _is_forest(self.shape, i):
            return forest_kbest(&model, self.shape.order_p + first, self.shape.up_p + first, k,
                                labels, values, rest)
        plan = self.plans.of(0 if self.shape.one_graph else i)
        if cube_pays(&model, plan.entries):
            return cube_kbest(&model, k, labels, values, rest)
        count = eliminate_kbest(&model, &plan, k, labels, values, rest)
        if count:
            return count
        memset(labels, 0, model.n * sizeof(int))    # all labelings are forbidden, as in argmax()
        values[0] = -INFINITY
        return 1


cdef class GraphMaxMarginals(MaxMarginals):
    """The best score for each state of each node; see :class:`GraphKBest`.

    States that a node lacks score -inf.  Rows have the width of the space's states, padded.

    Parameters
    ----------
    plans : Plans or None
        None for forests.
    shape : GraphShape
    layout : PartLayout
    """

    cdef GraphShape shape
    cdef Plans plans
    cdef Py_ssize_t stride

    def __init__(self, Plans plans, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.n_states, self.plans = shape, shape.n_states, _plans_of(plans, shape)
        self.stride = padded(shape.n_states)
        needed = forest_bytes(shape.max_unary)
        if self.plans is not None:
            # Scores that fix a state, and a labeling.
            needed = 8 * (shape.max_unary + shape.max_nodes) + max(
                largest_work(plans, shape, 0), cube_bytes(shape.max_nodes, 0))
        # Scores, max-marginals in the model's layout, and the algorithm's memory.
        self.work_bytes = shape.scores_bytes + 8 * shape.max_unary + needed

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef double* best = <double*>(work + self.shape.scores_bytes)
        cdef char* rest = <char*>(best + self.shape.max_unary)
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Py_ssize_t first = self.shape.first_node(i), v, s
        cdef Plan plan
        cdef double* fixed = <double*>rest
        if self.plans is None:
            forest_marginals(&model, self.shape.order_p + first, self.shape.up_p + first, best,
                             rest)
        else:
            plan = self.plans.of(0 if self.shape.one_graph else i)
            rest += 8 * (self.shape.max_unary + self.shape.max_nodes)
            if cube_pays(&model, plan.entries):
                cube_marginals(&model, best, rest)
            else:
                eliminate_marginals(&model, &plan, best, fixed,
                                    <int*>(fixed + self.shape.max_unary), rest)
        for v in range(model.n):
            for s in range(self.stride):
                out[s] = best[model.unary_at[v] + s] if s < model.states[v] else -INFINITY
            out += self.stride
        return 0


cdef double _gain(const Model* model, const int* label, Py_ssize_t v, int s) noexcept nogil:
    # Score of state s at node v and of its edges to labelled neighbours (-1: not labelled).
    cdef double total = model.unary[model.unary_at[v] + s]
    cdef Py_ssize_t k, step = 0
    cdef int e, w
    for k in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[k]
        w = other_end(model, e, v)
        if label[w] >= 0:
            total += edge_scores(model, e, v, label[w], &step)[s * step]
    return total


cdef void _round(const Model* model, const signed char* state, int* label) noexcept nogil:
    # Label the nodes that roof duality leaves at one half, one by one.
    cdef Py_ssize_t v
    for v in range(model.n):
        if state[v] == 2:
            label[v] = -1
    for v in range(model.n):
        if state[v] == 2:
            label[v] = 0 if _gain(model, label, v, 0) >= _gain(model, label, v, 1) else 1
