"""Sequential tree-reweighted message passing, TRW-S (Kolmogorov 2006), for maximisation.

An upper bound on the score of every labeling, which never rises from one iteration to the next and
never falls below the linear relaxation.  Each pass also gives a labeling.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from structsolve.simd.loops cimport ss_loop_table, ss_loops

from structsolve.plugins.mrf.tables._model cimport (
    GraphModel, Model, another_table, breadth_first, edge_scores, magnitude, most_states, other_end,
    score, weight_of,
)
from structsolve.plugins.mrf.tables._table_kinds cimport (
    MRF_GENERAL, MRF_LINEAR, MRF_POTTS, mrf_linear_double, mrf_quadratic_double, mrf_table,
)

# The bound has converged when it moves by less than STALLED, in units of the model's scores, in
# PATIENCE iterations.
cdef double STALLED = 1e-9
cdef int PATIENCE = 10
# If something is forbidden, a bound at rest may only mean that messages have not spread: a pass
# moves along chains of rising nodes.  Then other orders are tried, so many in a row without change.
cdef int TURNS = 5
# Spare doubles after the messages, for callers that store others there, at a cache line's start.
cdef int SPARE = 8
# Up to this number of states, general messages are faster than linear and quadratic ones.
cdef int FEW_STATES = 16


cdef inline int _wider(const Model* model, Py_ssize_t e) noexcept nogil:
    cdef int k = model.states[model.ends[2 * e]], other = model.states[model.ends[2 * e + 1]]
    return k if k > other else other


cdef Py_ssize_t trws_bytes(const Model* model) noexcept nogil:
    cdef Py_ssize_t e, doubles = model.n + 5 * most_states(model) + SPARE
    for e in range(model.m):
        doubles += _wider(model, e)
    return (doubles + model.m + 1) * 8 + 4 * model.n * sizeof(int)


cdef Pass place_pass(const Model* model, char* work) noexcept nogil:
    cdef Pass state
    cdef Py_ssize_t e
    cdef int most = most_states(model)
    state.message_at = <Py_ssize_t*>work
    state.message_at[0] = 0
    for e in range(model.m):
        state.message_at[e + 1] = state.message_at[e] + _wider(model, e)
    state.share = <double*>(state.message_at + model.m + 1)
    state.own = state.share + model.n
    state.sent = state.own + most
    state.zeros = state.sent + most
    state.envelope = state.zeros + most
    state.message = state.envelope + 2 * most
    state.kinds, state.phi = NULL, NULL
    for e in range(most):
        state.zeros[e] = 0
    state.by_four = ss_loops(4) if most >= 4 else NULL
    state.by_eight = ss_loops(8) if most >= 4 else NULL
    state.order = <int*>(state.message + state.message_at[model.m] + SPARE)
    state.rank = state.order + model.n
    state.trial = state.rank + model.n
    state.before = state.trial + model.n
    return state


cdef void start_pass(const Model* model, Pass* state) noexcept nogil:
    _prepare(model, state, False)


cdef void _prepare(const Model* model, Pass* state, bint forest) noexcept nogil:
    cdef Py_ssize_t v, j
    for j in range(state.message_at[model.m]):
        state.message[j] = 0
    for v in range(model.n):
        if forest:
            state.rank[state.order[v]] = <int>v
        else:
            state.order[v] = state.rank[v] = <int>v
        state.share[v] = 1
    if not forest:
        share_out(model, state.rank, state.share)


cdef void share_out(const Model* model, const int* rank, double* share) noexcept nogil:
    cdef Py_ssize_t v, j
    cdef int ahead, behind
    for v in range(model.n):
        ahead = behind = 0
        for j in range(model.near_at[v], model.near_at[v + 1]):
            if rank[other_end(model, model.near[j], <int>v)] > rank[v]:
                ahead += 1
            else:
                behind += 1
        ahead = behind if behind > ahead else ahead
        share[v] = 1.0 / ahead if ahead else 1


cdef inline double _gather(const Model* model, Pass* state, int v, bint turning) noexcept nogil:
    # own <- scores of v with all messages, less their maximum, which is returned.  While _turn()
    # sends back, some messages go from v to later nodes, and are none of its own.
    cdef int k = model.states[v], s, w
    cdef Py_ssize_t j
    cdef double top = -INFINITY
    cdef double* own = state.own
    cdef const double* row = model.unary + model.unary_at[v]
    for s in range(k):
        own[s] = row[s]
    for j in range(model.near_at[v], model.near_at[v + 1]):
        w = other_end(model, model.near[j], v)
        if turning and state.trial[w] >= state.trial[v] and state.rank[w] >= state.rank[v]:
            continue
        row = state.message + state.message_at[model.near[j]]
        for s in range(k):
            own[s] += row[s]
    for s in range(k):
        top = own[s] if own[s] > top else top
    if top > -INFINITY:
        for s in range(k):
            own[s] -= top
    return top


cdef inline const ss_loop_table* _loops(const Pass* state, int width) noexcept nogil:
    if width % 4:
        return NULL
    return state.by_four if width % 8 else state.by_eight


cdef inline double _send(const Model* model, Pass* state, int e, int v) noexcept nogil:
    # Replace the message along edge e by that of v, less its maximum, which is returned.  A state
    # without support stays impossible: -inf is never subtracted.
    cdef int k = model.states[v], w = other_end(model, e, v), s, t
    cdef int size = model.states[w]
    cdef double* message = state.message + state.message_at[e]
    cdef double* sent = state.sent
    cdef const double* row = model.pair + model.pair_at[e]
    cdef const ss_loop_table* loops
    cdef const mrf_table* kind
    cdef double share = state.share[v], top = -INFINITY, best, x, weight = 1, same
    for s in range(k):
        sent[s] = share * state.own[s] - message[s] if state.own[s] > -INFINITY else -INFINITY
    kind = NULL
    if state.kinds != NULL:
        kind = state.kinds + (0 if state.one_kind else e)
        weight = weight_of(model, e)
        if weight < 0 or (kind.kind != MRF_POTTS and k <= FEW_STATES):
            kind = NULL
    if kind != NULL and kind.kind != MRF_GENERAL:
        for s in range(k):
            top = sent[s] if sent[s] > top else top
        if kind.kind == MRF_POTTS:
            same, best = weight * row[0], top + weight * row[1]
            for s in range(k):
                x = sent[s] + same
                message[s] = best if best > x else x
        else:
            same, x = weight * kind.same, weight * kind.slope
            best = top - weight * kind.cut
            if kind.kind == MRF_LINEAR or x == 0:
                mrf_linear_double(k, sent, x, message)
            else:
                mrf_quadratic_double(k, sent, x, message, state.envelope, state.envelope + k)
            for s in range(k):
                message[s] = (best if best > message[s] else message[s]) + same
    elif model.weight != NULL:
        _send_weighted(model, e, v, sent, message)
    elif model.ends[2 * e] == v:
        loops = _loops(state, size)
        if loops != NULL:
            loops.maxplus(k, sent, row, size, size, state.zeros, message)
        else:
            for t in range(size):
                message[t] = -INFINITY
            for s in range(k):
                x = sent[s]
                for t in range(size):
                    best = x + row[t]
                    message[t] = best if best > message[t] else message[t]
                row += size
    else:
        loops = _loops(state, k)
        if loops != NULL:
            loops.maxdots(size, row, k, k, sent, message)
        else:
            for t in range(size):
                best = -INFINITY
                for s in range(k):
                    x = sent[s] + row[s]
                    best = x if x > best else best
                message[t] = best
                row += k
    top = -INFINITY
    for t in range(size):
        top = message[t] if message[t] > top else top
    if top > -INFINITY:
        for t in range(size):
            message[t] -= top
    if state.phi != NULL:
        _transform(model, state, e, v)
    return top


cdef void _send_weighted(const Model* model, int e, int v, const double* sent,
                         double* message) noexcept nogil:
    cdef int k = model.states[v], w = other_end(model, e, v), s, t
    cdef int size = model.states[w], step = 1, jump = size
    cdef const double* row = model.pair + model.pair_at[e]
    cdef double weight = model.weight[e], x, best
    if model.ends[2 * e] == w:
        step, jump = k, 1
    for t in range(size):
        best = -INFINITY
        for s in range(k):
            x = sent[s] + weight * row[s * jump + t * step]
            best = x if x > best else best
        message[t] = best


cdef void _transform(const Model* model, const Pass* state, int e, int v) noexcept nogil:
    # The message takes the share of v that is sent and the edge's scores; the receiver gets it.
    cdef int w = other_end(model, e, v), s
    cdef double* mine = state.phi + 2 * e * state.phi_step
    cdef double* theirs = mine
    if model.ends[2 * e] == v:
        theirs += state.phi_step
    else:
        mine += state.phi_step
    for s in range(model.states[v]):
        mine[s] = -state.sent[s]
    for s in range(model.states[w]):
        theirs[s] = state.message[state.message_at[e] + s]


cdef double backward(const Model* model, Pass* state, double* rest) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef int v, e
    cdef double bound = 0
    for i in range(model.n - 1, -1, -1):
        v = state.order[i]
        bound += _gather(model, state, v, False)
        if bound == -INFINITY:
            return bound
        for j in range(model.near_at[v], model.near_at[v + 1]):
            e = model.near[j]
            if state.rank[other_end(model, e, v)] < i:
                bound += _send(model, state, e, v)
                if bound == -INFINITY:
                    return bound
        if rest != NULL:
            rest[i] = bound
    return bound


cdef void forward(const Model* model, Pass* state, bint send) noexcept nogil:
    # trial <- each node's best state given the earlier nodes' states and the later ones' messages;
    # where `send`, messages to later nodes follow.
    cdef Py_ssize_t i, j, step = 0
    cdef int v, e, s, t, k, best
    cdef double weight
    cdef double* scores = state.sent
    cdef const double* row
    for i in range(model.n):
        v = state.order[i]
        k = model.states[v]
        row = model.unary + model.unary_at[v]
        for s in range(k):
            scores[s] = row[s]
        for j in range(model.near_at[v], model.near_at[v + 1]):
            e = model.near[j]
            t = other_end(model, e, v)
            if state.rank[t] > i:
                row = state.message + state.message_at[e]
                for s in range(k):
                    scores[s] += row[s]
            else:
                row = edge_scores(model, e, v, state.trial[t], &step)
                weight = weight_of(model, e)
                for s in range(k):
                    scores[s] += weight * row[s * step]
        best = 0
        for s in range(1, k):
            if scores[s] > scores[best]:
                best = s
        state.trial[v] = best
        if send:
            _gather(model, state, v, False)
            for j in range(model.near_at[v], model.near_at[v + 1]):
                e = model.near[j]
                if state.rank[other_end(model, e, v)] > i:
                    _send(model, state, e, v)


cdef bint forbids(const Model* model) noexcept nogil:
    cdef Py_ssize_t e, k, size
    for k in range(model.unary_at[model.n]):
        if model.unary[k] == -INFINITY:
            return True
    for e in range(model.m):
        if not another_table(model, e):
            continue
        size = <Py_ssize_t>model.states[model.ends[2 * e]] * model.states[model.ends[2 * e + 1]]
        for k in range(size):
            if model.pair[model.pair_at[e] + k] == -INFINITY:
                return True
    return False


cdef void _turn(const Model* model, Pass* state, uint64_t* seed) noexcept nogil:
    """Continue in another order, after a pass forward: breadth first, later random orders.

    Messages go to later nodes.  Any messages give a bound: those along edges whose direction
    changes are sent back, from the last node on.
    """
    cdef Py_ssize_t i, j
    cdef int v, w, e
    for i in range(model.n):
        state.before[i] = state.order[i]
    if seed[0] == 0:
        breadth_first(model, NULL, state.order, state.trial)
    for i in range(model.n - 1 if seed[0] else 0, 0, -1):
        seed[0] = seed[0] * 6364136223846793005ULL + 1442695040888963407ULL
        j = (seed[0] >> 33) % <uint64_t>(i + 1)
        state.order[i], state.order[j] = state.order[j], state.order[i]
    seed[0] += 1
    for i in range(model.n):
        state.trial[state.order[i]] = state.rank[state.order[i]]
        state.rank[state.order[i]] = <int>i
    share_out(model, state.rank, state.share)
    for i in range(model.n - 1, -1, -1):
        v = state.before[i]
        _gather(model, state, v, True)
        for j in range(model.near_at[v], model.near_at[v + 1]):
            e = model.near[j]
            w = other_end(model, e, v)
            if state.trial[w] < i and state.rank[v] < state.rank[w]:
                _send(model, state, e, v)


cdef int trws(const Model* model, int max_iter, double tol, bint turns, int* label, double* value,
              double* bound, char* work) noexcept nogil:
    cdef Pass state = place_pass(model, work)
    # Breadth first, one neighbour of a node of a forest comes earlier and all others later.
    cdef bint forest = model.m < model.n and breadth_first(model, NULL, state.order, state.rank)
    cdef Py_ssize_t v
    _prepare(model, &state, forest)
    value[0], bound[0] = -INFINITY, INFINITY
    for v in range(model.n):
        label[v] = 0
    return ascend(model, &state, forest, 0, max_iter, tol, turns, label, value, bound)


cdef int ascend(const Model* model, Pass* state, bint forest, int done, int max_iter, double tol,
                bint turns, int* label, double* value, double* bound) noexcept nogil:
    cdef Py_ssize_t v
    cdef int stalled = 0, turned = 0
    cdef uint64_t seed = 0
    cdef double bound_now, value_now, reached = INFINITY, step = STALLED * magnitude(model)
    while done == 0 or done < max_iter:
        bound_now = backward(model, state, NULL)
        if bound_now < bound[0]:
            bound[0] = bound_now
        if bound_now == -INFINITY:
            return done + 1
        forward(model, state, not forest)
        done += 1
        value_now = score(model, state.trial)
        if value_now > value[0] or done == 1:
            value[0] = value_now
            for v in range(model.n):
                label[v] = state.trial[v]
        stalled += 1
        if bound[0] < reached - step:
            reached, stalled, turned = bound[0], 0, 0
        if bound[0] - value[0] <= tol or forest:
            break
        if stalled < PATIENCE and (done != PATIENCE or value[0] > -INFINITY):
            continue
        # The bound does not move, or moves slowly and there is no labeling yet.
        if turns and turned < TURNS and done < max_iter and forbids(model):
            turned, stalled = turned + 1, 0
            _turn(model, state, &seed)
        elif stalled >= PATIENCE:
            break
    if bound[0] < value[0] or forest:           # equal up to rounding
        bound[0] = value[0]
    return done


def tree_reweighted(GraphModel model not None, int max_iter=1000, double tol=0.0):
    """Return a good labeling, and a bound on the score of the best one.

    Parameters
    ----------
    model : GraphModel
        Any number of states; nodes are visited in the given order, and if something is
        forbidden also in other orders, once the bound no longer moves.
    max_iter : int, default=1000
        Maximum number of iterations, each a pass over the nodes and a pass back; at least one.
    tol : float, default=0.0
        Stop once the bound exceeds the labeling's score by at most this.

    Returns
    -------
    label : ndarray of int of shape (n,)
        The best labeling met.
    value : float
        Its score; -inf if no allowed one was met.
    bound : float
        Upper bound of all scores; -inf if all labelings are forbidden.
    n_iter : int
        Number of iterations.

    Examples
    --------
    >>> from structsolve.plugins.mrf.messages._trws import tree_reweighted
    >>> from structsolve.plugins.mrf.tables._model import GraphModel
    >>> model = GraphModel([2, 3], [[0, 1]], [[0, 1], [0, 2, 0]], [[[4, 0, 0], [0, 0.5, 0]]])
    >>> label, value, bound, n_iter = tree_reweighted(model)
    >>> label.tolist(), value, bound
    ([0, 0], 4.0, 4.0)
    """
    if not tol >= 0 or tol == INFINITY:
        raise ValueError(f"tol: found {tol}, expected a finite number >= 0")
    if max_iter < 1:
        raise ValueError(f"max_iter: found {max_iter}, expected at least 1")
    label = np.zeros(model.model.n, np.intc)
    cdef int[::1] view = label
    cdef double[::1] work = np.zeros(trws_bytes(&model.model) // 8 + 1)
    cdef double value = 0, bound = 0
    cdef int n_iter
    with nogil:
        n_iter = trws(&model.model, max_iter, tol, True, &view[0], &value, &bound, <char*>&work[0])
    return label, value, bound, n_iter
