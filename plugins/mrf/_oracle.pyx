# build: glue
"""Oracles of labelings of graphs, one for each way of decoding, on scores taken from theta."""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.operators cimport Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.mrf._branch_and_bound cimport exact, exact_bytes
from structsolve.plugins.mrf._forest cimport forest_argmax, forest_bytes
from structsolve.plugins.mrf._gray_code cimport cube_argmax, cube_fits, gray_bytes
from structsolve.plugins.mrf._local cimport climb, climb_bytes
from structsolve.plugins.mrf._model cimport Model, score, scores_of
from structsolve.plugins.mrf._roof cimport half_bytes, roof_bytes, roof_dual
from structsolve.plugins.mrf._shape cimport GraphShape
from structsolve.plugins.mrf._trws cimport trws, trws_bytes


# Partial labelings that branch and bound looks at before it leaves the rest to an integer program.
cdef long long PATIENCE = 3_000_000


cdef class GraphOracle(Oracle):
    """What the oracles of graphs share: scores of one example lie in front of their memory.

    Parameters
    ----------
    shape : GraphShape
    layout : PartLayout
    """

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.n_states = shape, shape.n_states

    cdef Py_ssize_t climb_bytes(self) noexcept:
        cdef Py_ssize_t g, needed = 0
        cdef Model model
        for g in range(self.shape.n_graphs):
            model = self.shape.graph(g)
            needed = max(needed, climb_bytes(&model))
        return needed


cdef class ForestOracle(GraphOracle):
    """The best labeling of graphs without cycles, by max-product.

    Parameters
    ----------
    shape : GraphShape
        Of forests.
    layout : PartLayout
    """

    def __init__(self, GraphShape shape, PartLayout layout):
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
    """The best labeling of any graph: by enumeration of small two-state graphs, else by search.

    Where branch and bound takes too long, an integer program answers.

    Parameters
    ----------
    program : object
        ``best(shape, i, unary, pair) -> label``.
    shape : GraphShape
    layout : PartLayout
    """

    cdef object program

    def __init__(self, program, GraphShape shape, PartLayout layout):
        cdef Model model
        cdef Py_ssize_t g, needed
        super().__init__(shape, layout)
        self.program = program
        # One example may be small and of two states, others not.
        needed = max(gray_bytes(shape.max_nodes, shape.max_unary), self.climb_bytes())
        for g in range(shape.n_graphs):
            model = shape.graph(g)
            needed = max(needed, exact_bytes(&model))
        self.work_bytes = shape.scores_bytes + needed

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef char* rest = work + self.shape.scores_bytes
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        if cube_fits(&model):
            cube_argmax(&model, label, value, rest)
        elif not exact(&model, PATIENCE, label, value, bound, rest):
            with gil:
                self._ask(i, &model, label)
            climb(&model, label, rest)      # programs have tolerances
        elif value[0] == -INFINITY:
            memset(label, 0, model.n * sizeof(int))
        value[0] = bound[0] = score(&model, label)
        return 0

    cdef int _ask(self, Py_ssize_t i, const Model* model, int* label) except -1:
        cdef const int[::1] view = self.program.best(self.shape, i, *scores_of(model))
        memcpy(label, &view[0], model.n * sizeof(int))
        return 0


cdef class RoofOracle(GraphOracle):
    """Two states: the linear relaxation by roof duality, rounded, and improved by local search.

    Parameters
    ----------
    shape : GraphShape
        No node has more than two states.
    layout : PartLayout
    """

    def __init__(self, GraphShape shape, PartLayout layout):
        super().__init__(shape, layout)
        self.exact = False
        self.work_bytes = shape.scores_bytes + max(
            half_bytes(shape.max_nodes, shape.max_edges)
            + roof_bytes(shape.max_nodes, shape.max_edges), self.climb_bytes())

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
        climb(&model, label, rest)
        value[0] = score(&model, label)
        bound[0] = max(bound[0], value[0])
        return 0


cdef class TRWSOracle(GraphOracle):
    """Any number of states: dual ascent, its best labeling improved by local search.

    Parameters
    ----------
    max_iter : int
    shape : GraphShape
    layout : PartLayout
    """

    cdef int max_iter

    def __init__(self, int max_iter, GraphShape shape, PartLayout layout):
        cdef Model model
        cdef Py_ssize_t g, needed
        super().__init__(shape, layout)
        self.exact, self.max_iter = False, max_iter
        needed = self.climb_bytes()
        for g in range(shape.n_graphs):
            model = shape.graph(g)
            needed = max(needed, trws_bytes(&model))
        self.work_bytes = shape.scores_bytes + needed

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef char* rest = work + self.shape.scores_bytes
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        trws(&model, self.max_iter, 1e-12, label, value, bound, rest)
        if value[0] == -INFINITY:
            memset(label, 0, model.n * sizeof(int))
        climb(&model, label, rest)
        value[0] = score(&model, label)
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

    def __init__(self, program, GraphShape shape, PartLayout layout):
        super().__init__(shape, layout)
        self.exact, self.program = False, program
        self.work_bytes = shape.scores_bytes + self.climb_bytes()

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        with gil:
            self._ask(i, &model, label, bound)
        climb(&model, label, work + self.shape.scores_bytes)
        value[0] = score(&model, label)
        bound[0] = max(bound[0], value[0])
        return 0

    cdef int _ask(self, Py_ssize_t i, const Model* model, int* label, double* bound) except -1:
        cdef const int[::1] view
        answer, bound[0] = self.program.decode(self.shape, i, *scores_of(model))
        view = np.ascontiguousarray(answer, dtype=np.int32)
        memcpy(label, &view[0], model.n * sizeof(int))
        return 0


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
