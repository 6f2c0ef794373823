"""Max-product on graphs without cycles, exact: best labeling, max-marginals, the k best.

It also gives the best labeling of an induced forest of any graph, given its other nodes (Hamze, de
Freitas 2004).  Tables keep the model's sizes: one node may have two states, another a thousand.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.algorithms.lawler_heap cimport Candidate, pop, push, runner_up

from structsolve.plugins.mrf.tables._model cimport (
    Model, breadth_first, edge_scores, other_end, score,
)


cdef Py_ssize_t forest_bytes(Py_ssize_t max_unary) noexcept nogil:
    return 3 * max_unary * sizeof(double)


cdef inline double _message(const Model* model, int e, Py_ssize_t v, const double* belief,
                            Py_ssize_t t) noexcept nogil:
    # Best of v's beliefs plus edge e, given state t of the other end.
    cdef double best = -INFINITY, x
    cdef Py_ssize_t s, step = 0
    cdef const double* row = edge_scores(model, e, v, t, &step)
    for s in range(model.states[v]):
        x = belief[s] + row[s * step]
        best = x if x > best else best
    return best


cdef void _upward(const Model* model, const int* order, Py_ssize_t count, const int* up,
                  double* belief) noexcept nogil:
    # belief, scores of the nodes in `order` -> best score of the subtree of each, per state.
    cdef Py_ssize_t k, v, parent, t
    cdef int e
    for k in range(count - 1, -1, -1):
        v = order[k]
        e = up[v]
        if e < 0:
            continue
        parent = other_end(model, e, v)
        for t in range(model.states[parent]):
            belief[model.unary_at[parent] + t] += _message(
                model, e, v, belief + model.unary_at[v], t)


cdef inline int _best_state(const Model* model, const int* up, Py_ssize_t v, const double* belief,
                            const int* label) noexcept nogil:
    # The first best state of v, given its parent's; its current state if none is possible.
    cdef const double* own = belief + model.unary_at[v]
    cdef const double* row = NULL
    cdef double x, top = -INFINITY
    cdef Py_ssize_t s, step = 0
    cdef int best = label[v]
    if up[v] >= 0:
        row = edge_scores(model, up[v], v, label[other_end(model, up[v], v)], &step)
    for s in range(model.states[v]):
        x = own[s] + row[s * step] if row != NULL else own[s]
        if x > top:
            best, top = <int>s, x
    return best


cdef void _downward(const Model* model, const int* order, Py_ssize_t count, const int* up,
                    const double* belief, int* label) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(count):
        label[order[k]] = _best_state(model, up, order[k], belief, label)


cdef void forest_argmax(const Model* model, const int* order, const int* up, int* label,
                        char* work) noexcept nogil:
    cdef double* belief = <double*>work
    memcpy(belief, model.unary, model.unary_at[model.n] * sizeof(double))
    memset(label, 0, model.n * sizeof(int))
    _upward(model, order, model.n, up, belief)
    _downward(model, order, model.n, up, belief, label)


cdef void forest_marginals(const Model* model, const int* order, const int* up, double* out,
                           char* work) noexcept nogil:
    # out gathers for every state its score and the messages of all children and of the parent:
    # finite ones as a sum, infinite ones as a count, so that one message can be subtracted.
    cdef Py_ssize_t width = model.unary_at[model.n], k, v, parent, s, t, j, step = 0
    cdef double* belief = <double*>work
    cdef double* rest = belief + width                      # parent's belief without v's subtree
    cdef int* never = <int*>(rest + width)                  # number of -inf messages
    cdef double message, best, total = 0
    cdef const double* row
    cdef int e
    for j in range(width):
        belief[j], never[j] = model.unary[j], model.unary[j] == -INFINITY
        out[j] = 0 if never[j] else belief[j]
    for k in range(model.n - 1, -1, -1):
        v = order[k]
        e = up[v]
        if e < 0:
            total += _top(model, v, belief)
            continue
        parent = other_end(model, e, v)
        for t in range(model.states[parent]):
            j = model.unary_at[parent] + t
            message = _message(model, e, v, belief + model.unary_at[v], t)
            belief[j] += message
            _gather(message, out + j, never + j)
    for k in range(model.n):
        v = order[k]
        e = up[v]
        if e < 0:
            # The best of all other trees, which what follows hands on to the whole tree.
            best = _top(model, v, belief)
            for s in range(model.states[v] if best > -INFINITY else 0):
                out[model.unary_at[v] + s] += total - best
            continue
        parent = other_end(model, e, v)
        for t in range(model.states[parent]):
            j = model.unary_at[parent] + t
            message = _message(model, e, v, belief + model.unary_at[v], t)
            if message > -INFINITY:
                rest[t] = -INFINITY if never[j] else out[j] - message
            else:
                rest[t] = -INFINITY if never[j] > 1 else out[j]
        for s in range(model.states[v]):
            row, best = edge_scores(model, e, parent, s, &step), -INFINITY
            for t in range(model.states[parent]):
                best = max(best, rest[t] + row[t * step])
            j = model.unary_at[v] + s
            _gather(best, out + j, never + j)
    for j in range(width):
        if never[j]:
            out[j] = -INFINITY


cdef inline void _gather(double x, double* total, int* never) noexcept nogil:
    if x > -INFINITY:
        total[0] += x
    else:
        never[0] += 1


cdef inline double _top(const Model* model, Py_ssize_t v, const double* belief) noexcept nogil:
    cdef double best = -INFINITY
    cdef Py_ssize_t s
    for s in range(model.states[v]):
        best = max(best, belief[model.unary_at[v] + s])
    return best


# -- the k best ----------------------------------------------------------------------------------

cdef Py_ssize_t forest_kbest_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary,
                                   Py_ssize_t k) noexcept nogil:
    return forest_bytes(max_unary) + k * max_nodes * sizeof(Candidate) + 64


cdef Py_ssize_t forest_kbest(const Model* model, const int* order, const int* up, Py_ssize_t k,
                             int* labels, double* values, char* work) noexcept nogil:
    # Lawler's partition, as in structsolve.algorithms.max_product: all labelings but the answers
    # so far fall into disjoint sets.  The labelings of a set agree with answer `path` before
    # position v and have state s there, or a state after s.  A heap holds the best of every
    # set.
    cdef Py_ssize_t n = model.n, size = 0, count, j, v, step, state
    cdef double* belief = <double*>work
    cdef Candidate* heap = <Candidate*>(work + forest_bytes(model.unary_at[n]))
    cdef const double* row
    cdef const int* path
    cdef int* label = labels
    cdef double top, now
    cdef Candidate item
    forest_argmax(model, order, up, label, work)
    values[0] = score(model, label)
    if values[0] == -INFINITY:
        return 1
    item.v = 0
    for count in range(1, k):
        # The rest after a position is the best given the states before: only the state at the
        # position matters.
        for j in range(item.v, n):
            v, row, step = order[j], NULL, 1
            if up[v] >= 0:
                row = edge_scores(model, up[v], v, label[other_end(model, up[v], v)], &step)
            state = runner_up(model.states[v], belief + model.unary_at[v], row, NULL, step, 0,
                              label[v], &top, &now)
            if top > -INFINITY:
                item.value, item.path = values[count - 1] + (top - now), <int>(count - 1)
                item.v, item.s = <int>j, <int>state
                push(heap, &size, item)
        if size == 0:
            return count
        item = pop(heap, &size)
        label += n
        path = labels + item.path * n
        memcpy(label, path, n * sizeof(int))
        label[order[item.v]] = item.s
        # A choice depends only on the parent's state: below an unchanged state nothing changes.
        for j in range(item.v + 1, n):
            v = order[j]
            if up[v] >= 0 and label[other_end(model, up[v], v)] != path[other_end(model, up[v], v)]:
                label[v] = _best_state(model, up, v, belief, label)
        # The same scores, summed in another order, may differ in the last bit.
        values[count] = min(score(model, label), values[count - 1])
    return k


# -- an induced forest ---------------------------------------------------------------------------

cdef struct Induced:
    double* own                 # score of each node's states with the best of its subtree
    int* group                  # union-find over trees
    int* seen                   # by group: the last node that had a neighbour in it
    int* order                  # parents before children
    int* up                     # edge to the parent, -1 at roots, -2 outside of the forest
    Py_ssize_t size             # nodes


cdef Py_ssize_t move_bytes(const Model* model) noexcept nogil:
    return model.unary_at[model.n] * sizeof(double) + 4 * model.n * sizeof(int)


cdef inline int _find(int* group, int v) noexcept nogil:
    while group[v] != v:
        group[v] = group[group[v]]
        v = group[v]
    return v


cdef void _choose(const Model* model, Induced* forest, Py_ssize_t start,
                  bint backwards) noexcept nogil:
    # A node joins unless two of its neighbours are in one tree; group -1: outside of the forest.
    cdef Py_ssize_t i, j
    cdef int v, w, root
    cdef bint free
    forest.size = 0
    for i in range(model.n):
        forest.group[i] = forest.seen[i] = -1
    for i in range(model.n):
        v = <int>((start + (model.n - i if backwards else i)) % model.n)
        free = True
        for j in range(model.near_at[v], model.near_at[v + 1]):
            w = other_end(model, model.near[j], v)
            if forest.group[w] >= 0:
                root = _find(forest.group, w)
                if forest.seen[root] == v:
                    free = False
                    break
                forest.seen[root] = v
        if not free:
            continue
        forest.group[v] = v
        forest.size += 1
        for j in range(model.near_at[v], model.near_at[v + 1]):
            w = other_end(model, model.near[j], v)
            if forest.group[w] >= 0:
                forest.group[_find(forest.group, w)] = v


cdef void forest_move(const Model* model, Py_ssize_t start, bint backwards, int* label,
                      char* work) noexcept nogil:
    cdef Induced forest
    cdef Py_ssize_t i, j, step = 0
    cdef int v, w, s, k
    cdef double* own
    cdef const double* row
    forest.own = <double*>work
    forest.group = <int*>(forest.own + model.unary_at[model.n])
    forest.seen = forest.group + model.n
    forest.order = forest.seen + model.n
    forest.up = forest.order + model.n
    _choose(model, &forest, start, backwards)
    breadth_first(model, forest.group, forest.order, forest.up)
    for i in range(forest.size):
        v = forest.order[i]
        k = model.states[v]
        own = forest.own + model.unary_at[v]
        for s in range(k):
            own[s] = model.unary[model.unary_at[v] + s]
        for j in range(model.near_at[v], model.near_at[v + 1]):
            w = other_end(model, model.near[j], v)
            if forest.group[w] < 0:
                row = edge_scores(model, model.near[j], v, label[w], &step)
                for s in range(k):
                    own[s] += row[s * step]
    _upward(model, forest.order, forest.size, forest.up, forest.own)
    _downward(model, forest.order, forest.size, forest.up, forest.own, label)
