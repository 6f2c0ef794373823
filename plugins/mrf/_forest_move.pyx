"""The best labeling of an induced forest, given the other nodes (Hamze, de Freitas 2004)."""

from libc.math cimport INFINITY

from structsolve.plugins.mrf._model cimport Model


cdef struct Forest:
    double* own                 # of the states of each node: with the best of its subtree
    int* group                  # union-find, to tell trees apart
    int* seen                   # by group: the last node that had a neighbour in it
    int* order                  # parents before children
    int* up                     # edge to the parent, -1 at roots, -2 outside of the forest
    Py_ssize_t size


cdef Py_ssize_t forest_bytes(const Model* model) noexcept nogil:
    return model.unary_at[model.n] * sizeof(double) + 4 * model.n * sizeof(int)


cdef inline int _other(const Model* model, int e, int v) noexcept nogil:
    return model.ends[2 * e] + model.ends[2 * e + 1] - v


cdef inline int _find(int* group, int v) noexcept nogil:
    while group[v] != v:
        group[v] = group[group[v]]
        v = group[v]
    return v


cdef void _choose(const Model* model, Forest* forest, Py_ssize_t start,
                  bint backwards) noexcept nogil:
    # A node joins unless two of its neighbours are in one tree: group -1 stays outside.
    cdef Py_ssize_t i, j
    cdef int v, w, root
    cdef bint free
    for i in range(model.n):
        forest.group[i] = forest.seen[i] = -1
    for i in range(model.n):
        v = <int>((start + (model.n - i if backwards else i)) % model.n)
        free = True
        for j in range(model.near_at[v], model.near_at[v + 1]):
            w = _other(model, model.near[j], v)
            if forest.group[w] >= 0:
                root = _find(forest.group, w)
                if forest.seen[root] == v:
                    free = False
                    break
                forest.seen[root] = v
        if not free:
            continue
        forest.group[v] = v
        for j in range(model.near_at[v], model.near_at[v + 1]):
            w = _other(model, model.near[j], v)
            if forest.group[w] >= 0:
                forest.group[_find(forest.group, w)] = v


cdef void _arrange(const Model* model, Forest* forest) noexcept nogil:
    cdef Py_ssize_t root, begin = 0, j
    cdef int v, w, e
    forest.size = 0
    for root in range(model.n):
        forest.up[root] = -2
    for root in range(model.n):
        if forest.group[root] < 0 or forest.up[root] != -2:
            continue
        forest.up[root] = -1
        forest.order[forest.size] = <int>root
        forest.size += 1
        while begin < forest.size:
            v = forest.order[begin]
            begin += 1
            for j in range(model.near_at[v], model.near_at[v + 1]):
                e = model.near[j]
                w = _other(model, e, v)
                if forest.group[w] >= 0 and forest.up[w] == -2:
                    forest.up[w] = e
                    forest.order[forest.size] = w
                    forest.size += 1


cdef inline const double* _row(const Model* model, int e, int v, int state,
                               Py_ssize_t* step) noexcept nogil:
    # Scores of edge e for all states of v, `step` apart, given the state of its other end.
    if model.ends[2 * e] == v:
        step[0] = model.states[_other(model, e, v)]
        return model.pair + model.pair_at[e] + state
    step[0] = 1
    return model.pair + model.pair_at[e] + state * model.states[v]


cdef void forest_move(const Model* model, Py_ssize_t start, bint backwards, int* label,
                      char* work) noexcept nogil:
    cdef Forest forest
    cdef Py_ssize_t i, j, step = 0
    cdef int v, w, e, s, t, k, best
    cdef double top, x
    cdef double* own
    cdef double* parent
    cdef const double* row
    forest.own = <double*>work
    forest.group = <int*>(forest.own + model.unary_at[model.n])
    forest.seen = forest.group + model.n
    forest.order = forest.seen + model.n
    forest.up = forest.order + model.n
    _choose(model, &forest, start, backwards)
    _arrange(model, &forest)
    for i in range(forest.size):
        v = forest.order[i]
        k = model.states[v]
        own = forest.own + model.unary_at[v]
        for s in range(k):
            own[s] = model.unary[model.unary_at[v] + s]
        for j in range(model.near_at[v], model.near_at[v + 1]):
            w = _other(model, model.near[j], v)
            if forest.group[w] < 0:
                row = _row(model, model.near[j], v, label[w], &step)
                for s in range(k):
                    own[s] += row[s * step]
    for i in range(forest.size - 1, -1, -1):
        v = forest.order[i]
        e = forest.up[v]
        if e < 0:
            continue
        w = _other(model, e, v)
        own, parent = forest.own + model.unary_at[v], forest.own + model.unary_at[w]
        for t in range(model.states[w]):
            row = _row(model, e, v, t, &step)
            top = -INFINITY
            for s in range(model.states[v]):
                x = own[s] + row[s * step]
                top = x if x > top else top
            parent[t] += top
    for i in range(forest.size):
        v = forest.order[i]
        e = forest.up[v]
        own = forest.own + model.unary_at[v]
        best, top = label[v], -INFINITY
        if e >= 0:
            row = _row(model, e, v, label[_other(model, e, v)], &step)
        for s in range(model.states[v]):
            x = own[s] + row[s * step] if e >= 0 else own[s]
            if x > top:
                best, top = s, x
        label[v] = best
