"""Exact search for the best labeling, by branch and bound on the messages of TRW-S."""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memcpy

from structsolve.plugins.mrf._local_search cimport climb, climb_bytes
from structsolve.plugins.mrf._model cimport (
    GraphModel, Model, edge_scores, magnitude, other_end, score,
)
from structsolve.plugins.mrf._roof_duality cimport roof_bytes, roof_dual
from structsolve.plugins.mrf._trws cimport Pass, backward, place_pass, trws, trws_bytes

# Smaller gains, in units of the scores, may be rounding errors.
cdef double ROUNDING = 1e-14
# Iterations of message passing before the search; FEW_ITERATIONS for up to FEW labelings.
cdef int ITERATIONS = 200
cdef int FEW_ITERATIONS = 10
cdef double FEW = 65536
# A first search of this many partial labelings follows them: often enough, in a fifth of the time.
cdef int FIRST_ITERATIONS = 20
cdef long long FIRST_NODES = 10_000


cdef inline Py_ssize_t _round_up(Py_ssize_t size) noexcept nogil:
    return (size + 7) / 8 * 8


cdef Py_ssize_t exact_bytes(const Model* model) noexcept nogil:
    cdef Py_ssize_t scratch = climb_bytes(model), other = roof_bytes(model.n, model.m)
    scratch = other if other > scratch else scratch
    return (_round_up(scratch) + _round_up(trws_bytes(model))
            + (4 * model.unary_at[model.n] + model.n + 1) * sizeof(double)
            + _round_up(model.n * (2 * sizeof(int) + 1) + model.m))


cdef struct Branches:
    # Partial labelings: a prefix of the current one, and a state of the next node.
    double* bound               # of each state of each node, -INFINITY once it is explored
    double* value               # scores of the prefix with this state
    double* open                # messages that its nodes receive from later ones
    double* rest                # bound on what later nodes add, without messages
    int* label


cdef void _expand(const Model* model, const Pass* state, Branches* tree, int v) noexcept nogil:
    # Bounds for all states of v, given those before it.
    cdef int k = model.states[v], s, e, u, t
    cdef Py_ssize_t first = model.unary_at[v], j, step = 0
    cdef double* value = tree.value + first
    cdef double* open = tree.open + first
    cdef double before = 0, messages = 0
    cdef const double* row
    if v:
        before = tree.value[model.unary_at[v - 1] + tree.label[v - 1]]
        messages = tree.open[model.unary_at[v - 1] + tree.label[v - 1]]
    for s in range(k):
        value[s] = before + model.unary[first + s]
        open[s] = messages
    for j in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[j]
        u = other_end(model, e, v)
        row = state.message + state.message_at[e]
        if u > v:
            for s in range(k):
                open[s] += row[s]
            continue
        t = tree.label[u]
        for s in range(k):
            open[s] -= row[t]
        row = edge_scores(model, e, v, t, &step)
        for s in range(k):
            value[s] += row[s * step]
    for s in range(k):
        tree.bound[first + s] = value[s] + open[s] + tree.rest[v + 1]


cdef bint _search(const Model* model, const Pass* state, Branches* tree, double margin,
                  long long node_limit, int* label, double* value,
                  double* bound) noexcept nogil:
    # Depth first in the order of the nodes, the state of the best bound first.
    cdef Py_ssize_t n = model.n, v = 0, w
    cdef long long nodes = 0
    cdef int s, best
    cdef double top
    cdef double* bounds
    _expand(model, state, tree, 0)
    while v >= 0:
        bounds = tree.bound + model.unary_at[v]
        best = 0
        for s in range(1, model.states[v]):
            if bounds[s] > bounds[best]:
                best = s
        # A branch already taken, or forbidden, has a bound of -INFINITY.
        if not bounds[best] > value[0] + margin or bounds[best] == -INFINITY:
            v -= 1
            continue
        if nodes >= node_limit:
            top = value[0]
            for w in range(v + 1):
                for s in range(model.states[w]):
                    top = max(top, tree.bound[model.unary_at[w] + s])
            bound[0] = min(top, bound[0])
            return False
        nodes += 1
        bounds[best] = -INFINITY
        tree.label[v] = best
        if v < n - 1:
            v += 1
            _expand(model, state, tree, <int>v)
            continue
        top = score(model, tree.label)
        if top > value[0]:
            value[0] = top
            memcpy(label, tree.label, n * sizeof(int))
    bound[0] = value[0]
    return True


cdef bint _fix(const Model* model, const signed char* state, double* unary) noexcept nogil:
    # unary <- scores that forbid states ruled out by the relaxation; True: no choice is left.
    cdef Py_ssize_t v
    cdef bint decided = True
    memcpy(unary, model.unary, model.unary_at[model.n] * sizeof(double))
    for v in range(model.n):
        if state[v] == 2:
            decided = False
        elif model.states[v] == 2:
            unary[model.unary_at[v] + 1 - state[v]] = -INFINITY
    return decided


cdef bint _branches(const Model* model, Branches* tree, int iterations, long long node_limit,
                    double top, double margin, int* label, double* value, double* bound,
                    char* messages, char* scratch) noexcept nogil:
    # Compute messages by so many iterations, then search with them; `top` bounds all scores.
    cdef Pass state
    trws(model, iterations, 0, False, label, value, bound, messages)
    if bound[0] == -INFINITY or bound[0] <= value[0]:
        return True
    bound[0] = min(top, bound[0])
    value[0] = climb(model, label, scratch)
    state = place_pass(model, messages)
    backward(model, &state, tree.rest)
    tree.rest[model.n] = 0
    return _search(model, &state, tree, margin, node_limit, label, value, bound)


cdef bint exact(const Model* model, long long node_limit, int* label, double* value,
                double* bound, char* work) noexcept nogil:
    cdef Model reduced = model[0]
    cdef Branches tree
    cdef Py_ssize_t n = model.n, width = model.unary_at[n], v
    cdef double* unary = <double*>work
    cdef double* rest = unary + width
    cdef bint binary = True, proven
    cdef double top = INFINITY, margin, count, first
    cdef int* kept
    cdef signed char* half
    cdef char* messages
    cdef char* scratch
    tree.value = rest + n + 1
    tree.open = tree.value + width
    tree.bound = tree.open + width
    tree.rest = rest
    tree.label = <int*>(tree.bound + width)
    kept = tree.label + n
    half = <signed char*>(kept + n)
    messages = work + ((4 * width + n + 1) * sizeof(double)
                       + _round_up(n * (2 * sizeof(int) + 1) + model.m))
    scratch = messages + _round_up(trws_bytes(model))
    for v in range(n):
        label[v] = 0
        binary &= model.states[v] <= 2
    if binary:
        top = bound[0] = roof_dual(model, half, half + n, scratch)
        if top == -INFINITY:
            value[0] = top
            return True
        proven = _fix(model, half, unary)
        reduced.unary = unary
        if proven:
            for v in range(n):
                label[v] = half[v]
            bound[0] = value[0] = score(model, label)
            return True
    count = 1
    for v in range(n):
        if not binary or half[v] == 2:
            count *= model.states[v]
    margin = ROUNDING * magnitude(model)
    if count <= FEW:
        return _branches(&reduced, &tree, FEW_ITERATIONS, node_limit, top, margin, label, value,
                         bound, messages, scratch)
    if node_limit <= FIRST_NODES:
        return _branches(&reduced, &tree, ITERATIONS, node_limit, top, margin, label, value, bound,
                         messages, scratch)
    if _branches(&reduced, &tree, FIRST_ITERATIONS, FIRST_NODES, top, margin, label, value, bound,
                 messages, scratch):
        return True
    # Keep the result of the first search if the second ends with less.
    first = value[0]
    memcpy(kept, label, n * sizeof(int))
    proven = _branches(&reduced, &tree, ITERATIONS, node_limit, min(top, bound[0]), margin, label,
                       value, bound, messages, scratch)
    if first > value[0]:
        value[0] = first
        memcpy(label, kept, n * sizeof(int))
        bound[0] = max(bound[0], first)
    return proven


def branch_and_bound(GraphModel model not None, long long node_limit=10_000_000):
    """Return the best labeling, or a good one and a bound if the search gives up.

    Parameters
    ----------
    model : GraphModel
        Any number of states.
    node_limit : int, default=10_000_000
        Maximum number of partial labelings to explore.

    Returns
    -------
    label : ndarray of int of shape (n,)
        The best labeling met.
    value : float
        Its score; -inf if all are forbidden, or no allowed one was met.
    bound : float
        Upper bound of all scores, up to rounding.
    proven : bool
        Whether the labeling is known to be the best.

    Examples
    --------
    >>> from structsolve.plugins.mrf._branch_and_bound import branch_and_bound
    >>> from structsolve.plugins.mrf._model import GraphModel
    >>> apart = [[0, 1], [1, 0]]
    >>> unary = [[0, 0.5], [0, 0], [0, 0]]
    >>> model = GraphModel([2] * 3, [[0, 1], [1, 2], [2, 0]], unary, [apart] * 3)
    >>> label, value, bound, proven = branch_and_bound(model)
    >>> int(label[0]), value, bound, proven
    (1, 2.5, 2.5, True)
    """
    if node_limit < 0:
        raise ValueError(f"node_limit: found {node_limit}, expected at least 0")
    label = np.zeros(model.model.n, np.intc)
    cdef int[::1] view = label
    cdef double[::1] work = np.zeros(exact_bytes(&model.model) // 8 + 1)
    cdef double value = 0, bound = 0
    cdef bint proven
    with nogil:
        proven = exact(&model.model, node_limit, &view[0], &value, &bound, <char*>&work[0])
    return label, value, bound, proven
