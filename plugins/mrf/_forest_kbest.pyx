"""The k best labelings of a graph without cycles, by halving (Yanover and Weiss 2003).

Each labeling found is the best of its part of all labelings.  Max-marginals within the part say
what its next best labeling is worth, and a node and a state by which that one differs.  There the
part is split: the half with that state has the next best labeling, the other half keeps its own.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from structsolve.plugins.mrf._forest cimport forest_argmax, forest_bytes, forest_marginals
from structsolve.plugins.mrf._model cimport Model, score


cdef struct Part:
    double next_value           # of its second best labeling, -INFINITY if there is none
    Py_ssize_t node, state      # that one has, and the best one has not


cdef Py_ssize_t forest_kbest_bytes(Py_ssize_t max_unary, Py_ssize_t k) noexcept nogil:
    return (2 * max_unary * sizeof(double) + forest_bytes(max_unary)
            + k * (sizeof(Part) + max_unary) + 64)


cdef void _look(const Model* model, const int* order, const int* up, const signed char* closed,
                const int* label, Part* part, double* unary, char* work) noexcept nogil:
    # The second best of a part, of which `label` is the best.
    cdef Model within = model[0]
    cdef double* best = unary + model.unary_at[model.n]
    cdef Py_ssize_t v, s, at
    _restrict(model, closed, unary)
    within.unary = unary
    forest_marginals(&within, order, up, best, work)
    part.next_value = -INFINITY
    for v in range(model.n):
        at = model.unary_at[v]
        for s in range(model.states[v]):
            if s != label[v] and best[at + s] > part.next_value:
                part.next_value, part.node, part.state = best[at + s], v, s


cdef void _restrict(const Model* model, const signed char* closed, double* unary) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(model.unary_at[model.n]):
        unary[j] = -INFINITY if closed[j] else model.unary[j]


cdef Py_ssize_t forest_kbest(const Model* model, const int* order, const int* up, Py_ssize_t k,
                             int* labels, double* values, char* work) noexcept nogil:
    cdef Model within = model[0]
    cdef Py_ssize_t width = model.unary_at[model.n], n = model.n, count, j, t, s, at
    cdef double* unary = <double*>work
    cdef Part* parts = <Part*>(unary + 2 * width)
    cdef char* scratch = <char*>(parts + k)
    cdef signed char* closed = <signed char*>(scratch + forest_bytes(width))
    cdef int* label
    cdef double value
    memset(closed, 0, width)
    forest_argmax(model, order, up, labels, scratch)
    values[0] = score(model, labels)
    if values[0] == -INFINITY:
        return 1
    for count in range(1, k):
        # The part of the answer before has no second best yet; the one it was split from is stale.
        t = count - 1
        _look(model, order, up, closed + t * width, labels + t * n, parts + t, unary, scratch)
        j = 0
        for t in range(1, count):
            if parts[t].next_value > parts[j].next_value:
                j = t
        if parts[j].next_value == -INFINITY:
            return count
        at = model.unary_at[parts[j].node]
        memcpy(closed + count * width, closed + j * width, width)
        for s in range(model.states[parts[j].node]):
            if s != parts[j].state:
                closed[count * width + at + s] = 1
        closed[j * width + at + parts[j].state] = 1
        label = labels + count * n
        _restrict(model, closed + count * width, unary)
        within.unary = unary
        forest_argmax(&within, order, up, label, scratch)
        value = score(model, label)
        # Sums of the same scores in another order may differ in the last bit.
        values[count] = min(value, values[count - 1])
        _look(model, order, up, closed + j * width, labels + j * n, parts + j, unary, scratch)
    return k
