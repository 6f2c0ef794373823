"""Max-product on graphs without cycles: best labeling and max-marginals, exact."""

from libc.math cimport INFINITY
from libc.string cimport memcpy

from structsolve.plugins.mrf._model cimport Model


cdef Py_ssize_t forest_bytes(Py_ssize_t max_unary) noexcept nogil:
    return 2 * max_unary * sizeof(double)


cdef inline double _pair(const Model* model, Py_ssize_t e, Py_ssize_t v, Py_ssize_t s,
                         Py_ssize_t t) noexcept nogil:
    # Score of edge e where its end v has state s and the other end t.
    cdef Py_ssize_t columns = model.states[model.ends[2 * e + 1]]
    if model.ends[2 * e] == v:
        return model.pair[model.pair_at[e] + s * columns + t]
    return model.pair[model.pair_at[e] + t * columns + s]


cdef inline double _message(const Model* model, Py_ssize_t e, Py_ssize_t v, const double* belief,
                            Py_ssize_t t) noexcept nogil:
    # Best of v's beliefs and edge e where the other end has state t.
    cdef double best = -INFINITY, found
    cdef Py_ssize_t s
    for s in range(model.states[v]):
        found = belief[s] + _pair(model, e, v, s, t)
        if found > best:
            best = found
    return best


cdef void _upward(const Model* model, const int* order, const int* up,
                  double* belief) noexcept nogil:
    # belief <- best score of the subtree of each node per state, its own included.
    cdef Py_ssize_t k, v, parent, t
    cdef int e
    memcpy(belief, model.unary, model.unary_at[model.n] * sizeof(double))
    for k in range(model.n - 1, -1, -1):
        v = order[k]
        e = up[v]
        if e < 0:
            continue
        parent = model.ends[2 * e] + model.ends[2 * e + 1] - v
        for t in range(model.states[parent]):
            belief[model.unary_at[parent] + t] += _message(
                model, e, v, belief + model.unary_at[v], t)


cdef void forest_argmax(const Model* model, const int* order, const int* up, int* label,
                        char* work) noexcept nogil:
    # Of equal states the first, given the parent's.
    cdef double* belief = <double*>work
    cdef const double* own
    cdef double best, found
    cdef Py_ssize_t k, v, s, t = 0
    cdef int e
    _upward(model, order, up, belief)
    for k in range(model.n):
        v = order[k]
        e = up[v]
        own = belief + model.unary_at[v]
        if e >= 0:
            t = label[model.ends[2 * e] + model.ends[2 * e + 1] - v]
        label[v] = 0
        best = -INFINITY
        for s in range(model.states[v]):
            found = own[s] + (_pair(model, e, v, s, t) if e >= 0 else 0.0)
            if found > best:
                best = found
                label[v] = <int>s


cdef void forest_marginals(const Model* model, const int* order, const int* up, double* out,
                           char* work) noexcept nogil:
    # With a root's belief goes all that is not in its subtree, its parent's message included.
    cdef double* belief = <double*>work
    cdef double* rest = belief + model.unary_at[model.n]     # of the parent, without v's subtree
    cdef Py_ssize_t k, j, v, parent, s, t, d, child
    cdef int e
    cdef double found, best, total
    _upward(model, order, up, belief)
    # Trees are independent: to each, the best of the others is added.
    total = 0
    for k in range(model.n):
        v = order[k]
        if up[v] < 0:
            best = -INFINITY
            for s in range(model.states[v]):
                best = max(best, belief[model.unary_at[v] + s])
            total += best
    memcpy(out, belief, model.unary_at[model.n] * sizeof(double))
    for k in range(model.n):
        v = order[k]
        e = up[v]
        if e < 0:
            continue
        parent = model.ends[2 * e] + model.ends[2 * e + 1] - v
        for t in range(model.states[parent]):
            # Without v's message; by subtraction, unless infinities forbid it.
            found = _message(model, e, v, belief + model.unary_at[v], t)
            if found > -INFINITY:
                rest[t] = out[model.unary_at[parent] + t] - found
            else:
                rest[t] = _without(model, up, belief, out, parent, v, t)
        for s in range(model.states[v]):
            best = -INFINITY
            for t in range(model.states[parent]):
                best = max(best, rest[t] + _pair(model, e, v, s, t))
            out[model.unary_at[v] + s] = belief[model.unary_at[v] + s] + best
    _add_other_trees(model, order, up, belief, total, out)


cdef double _without(const Model* model, const int* up, const double* belief, const double* out,
                     Py_ssize_t v, Py_ssize_t skipped, Py_ssize_t s) noexcept nogil:
    # Best of all but the subtree of one child, with v in state s: its score, the other children's
    # messages, and what comes from above.
    cdef double total = model.unary[model.unary_at[v] + s], above
    cdef Py_ssize_t k, w
    cdef int e
    for k in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[k]
        w = model.ends[2 * e] + model.ends[2 * e + 1] - v
        if w != skipped and up[w] == e:
            total += _message(model, e, w, belief + model.unary_at[w], s)
    if up[v] >= 0:
        # out = belief + above; where the belief is -inf by the skipped child alone, `above` is
        # lost, so it is made again.
        above = belief[model.unary_at[v] + s]
        if above > -INFINITY:
            total += out[model.unary_at[v] + s] - above
        else:
            w = model.ends[2 * up[v]] + model.ends[2 * up[v] + 1] - v
            above = -INFINITY
            for k in range(model.states[w]):
                above = max(above, _without(model, up, belief, out, w, v, k)
                            + _pair(model, up[v], v, s, k))
            total += above
    return total


cdef void _add_other_trees(const Model* model, const int* order, const int* up,
                           const double* belief, double total, double* out) noexcept nogil:
    # `total` is the best of all trees: to out of one tree, total less its own best is added.
    cdef Py_ssize_t k = 0, j, v, s, root, at
    cdef double own, others
    while k < model.n:
        root = order[k]
        j = k + 1
        while j < model.n and up[order[j]] >= 0:     # breadth first: a tree is one range
            j += 1
        own = -INFINITY
        for s in range(model.states[root]):
            own = max(own, belief[model.unary_at[root] + s])
        if own > -INFINITY:
            others = total - own
        else:
            others = 0      # nothing is possible in this tree, whatever the others do
        for at in range(k, j):
            v = order[at]
            for s in range(model.states[v]):
                out[model.unary_at[v] + s] += others
        k = j
