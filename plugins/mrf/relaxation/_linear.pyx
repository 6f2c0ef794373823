# build: glue
"""Relaxations of labelings of graphs with cycles."""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.operators cimport Relaxation
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.mrf.tables._model cimport Model, score, scores_of
from structsolve.plugins.mrf.cuts._roof_duality cimport half_bytes, roof_bytes, roof_dual
from structsolve.plugins.mrf.tables._shape cimport GraphShape


cdef class GraphRelaxation(Relaxation):
    """Base of the relaxations over the local polytope of graphs.

    Parameters
    ----------
    shape : GraphShape
    layout : PartLayout
    """

    cdef GraphShape shape

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.n_states = shape, shape.n_states

    cdef int write_label(self, Py_ssize_t i, const Model* model, const int* label, double* mu,
                         double* value, double* bound) noexcept nogil:
        # The answer for a labeling.
        value[0] = score(model, label)
        bound[0] = max(bound[0], value[0])
        self.shape.indicate(i, label, mu)
        return 1

    cdef int write_marginals(self, Py_ssize_t i, const Model* model, const double* nodes,
                             const double* pairs, double* mu, double* value,
                             double* bound) noexcept nogil:
        # The answer for marginals of nodes and of edges, in the model's layout.
        value[0] = _inner(model, nodes, pairs)
        bound[0] = max(bound[0], value[0])
        self.shape.scatter(i, nodes, pairs, mu)
        return 0


cdef class RoofRelaxation(GraphRelaxation):
    """Two states: half-integral answers of roof duality.

    Parameters
    ----------
    shape : GraphShape
        No node has more than two states.
    layout : PartLayout
    """

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(shape, layout)
        # Scores, marginals, half-integral states, and memory of the maximum flow.
        self.work_bytes = (shape.scores_bytes + shape.marginal_bytes
                           + half_bytes(shape.max_nodes, shape.max_edges)
                           + roof_bytes(shape.max_nodes, shape.max_edges))

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef double* nodes = <double*>(work + self.shape.scores_bytes)
        cdef double* pairs = nodes + self.shape.max_unary
        cdef char* rest = <char*>nodes + self.shape.marginal_bytes
        cdef signed char* state = <signed char*>rest
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef Py_ssize_t v
        cdef bint integral = True
        bound[0] = roof_dual(&model, state, state + model.n,
                             rest + half_bytes(self.shape.max_nodes, self.shape.max_edges))
        if bound[0] == -INFINITY:       # everything is forbidden: any labeling serves
            memset(label, 0, model.n * sizeof(int))
            return self.write_label(i, &model, label, mu, value, bound)
        for v in range(model.n):
            integral = integral and state[v] != 2
            label[v] = state[v]
        if integral:
            return self.write_label(i, &model, label, mu, value, bound)
        _half(&model, state, state + model.n, nodes, pairs)
        return self.write_marginals(i, &model, nodes, pairs, mu, value, bound)


cdef class LinearRelaxation(GraphRelaxation):
    """Any graph, by a solver of linear programs.

    Parameters
    ----------
    program : object
        ``relax(shape, i, unary, pair)`` -> marginals of nodes and of edges, and a bound, or None
        if every labeling is forbidden.
    shape : GraphShape
    layout : PartLayout
    """

    cdef object program

    def __init__(self, program, GraphShape shape not None, PartLayout layout not None):
        super().__init__(shape, layout)
        self.program = program
        self.work_bytes = shape.scores_bytes + shape.marginal_bytes

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef double* nodes = <double*>(work + self.shape.scores_bytes)
        cdef double* pairs = nodes + self.shape.max_unary
        cdef Model model = self.shape.gather(i, theta, <double*>work)
        cdef bint integral
        with gil:
            integral = self._ask(i, &model, nodes, pairs, label, bound)
        if integral:
            return self.write_label(i, &model, label, mu, value, bound)
        return self.write_marginals(i, &model, nodes, pairs, mu, value, bound)

    cdef bint _ask(self, Py_ssize_t i, const Model* model, double* nodes, double* pairs,
                   int* label, double* bound) except -1:
        answer = self.program.relax(self.shape, i, *scores_of(model))
        if answer is None:              # any labeling serves
            bound[0] = -INFINITY
            memset(label, 0, model.n * sizeof(int))
            return True
        bound[0] = answer[2]
        return _keep(model, answer[0], answer[1], nodes, pairs, label)


cdef bint _keep(const Model* model, node_marginals, pair_marginals, double* nodes, double* pairs,
                int* label) except -1:
    # Copy marginals; returns whether they are a labeling, then put in `label`.
    cdef const double[::1] node_view = node_marginals, pair_view = pair_marginals
    cdef Py_ssize_t v
    memcpy(nodes, &node_view[0], node_view.shape[0] * sizeof(double))
    if pair_view.shape[0]:
        memcpy(pairs, &pair_view[0], pair_view.shape[0] * sizeof(double))
    if not (np.isin(node_marginals, (0.0, 1.0)).all()
            and np.isin(pair_marginals, (0.0, 1.0)).all()):
        return False
    for v in range(model.n):
        label[v] = 0
        while nodes[model.unary_at[v] + label[v]] != 1:
            label[v] += 1
    return True


cdef double _inner(const Model* model, const double* nodes, const double* pairs) noexcept nogil:
    # <theta, mu>; parts that mu leaves out may score -inf.
    cdef double total = 0
    cdef Py_ssize_t j, e
    cdef const double* table
    for j in range(model.unary_at[model.n]):
        if nodes[j] != 0:
            total += nodes[j] * model.unary[j]
    for e in range(model.m):
        table = model.pair + model.pair_at[e] - model.cell_at[e]
        for j in range(model.cell_at[e], model.cell_at[e + 1]):
            if pairs[j] != 0:
                total += pairs[j] * table[j]
    return total


cdef void _half(const Model* model, const signed char* state, const signed char* pairing,
                double* nodes, double* pairs) noexcept nogil:
    # Marginals of a half-integral answer of roof duality, in the model's layout.
    cdef Py_ssize_t v, e, s, t, K
    cdef int a, b
    memset(nodes, 0, model.unary_at[model.n] * sizeof(double))
    memset(pairs, 0, model.cell_at[model.m] * sizeof(double))
    for v in range(model.n):
        if state[v] == 2:
            nodes[model.unary_at[v]] = nodes[model.unary_at[v] + 1] = 0.5
        else:
            nodes[model.unary_at[v] + state[v]] = 1
    for e in range(model.m):
        a, b = state[model.ends[2 * e]], state[model.ends[2 * e + 1]]
        K = model.states[model.ends[2 * e + 1]]
        if a != 2 and b != 2:
            pairs[model.cell_at[e] + a * K + b] = 1
        elif a != 2:
            pairs[model.cell_at[e] + a * K] = pairs[model.cell_at[e] + a * K + 1] = 0.5
        elif b != 2:
            pairs[model.cell_at[e] + b] = pairs[model.cell_at[e] + K + b] = 0.5
        else:
            for s in range(2):
                t = s ^ pairing[e]
                pairs[model.cell_at[e] + s * K + t] = 0.5
