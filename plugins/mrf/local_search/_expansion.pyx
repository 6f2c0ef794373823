"""Alpha-expansion: all nodes at once may switch to one state (Boykov et al. 2001).

The best such move is a minimum cut where ``t(x, y) + t(a, a) >= t(x, a) + t(a, y)`` for the states
x, y of both ends of an edge and the move's state a, as for Potts tables and all metrics.  Where
this fails, t(x, a) and t(a, y) are each lowered by half of the deficit: no move then seems better
than it is (Rother, Kumar, Kolmogorov, Blake 2005), and the score of staying is exact.
The cut of each state starts from its last flow (Kohli, Torr 2005).
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.algorithms.minimum_cut cimport (
    Cut, CutGraph, build_cut_graph, cut_bytes, cut_graph_bytes, cut_side, load_cut, place_cut,
    solve_cut,
)

from structsolve.plugins.mrf.tables._model cimport GraphModel, Model, magnitude, score, weight_of

# Gains below this, in units of the model's scores, may be rounding: they are ignored.
cdef double ROUNDING = 1e-14


cdef inline Py_ssize_t _whole(Py_ssize_t size) noexcept nogil:
    return (size + 7) / 8 * 8


cdef int _most_states(const Model* model) noexcept nogil:
    cdef Py_ssize_t v
    cdef int most = 1
    for v in range(model.n):
        most = max(most, model.states[v])
    return most


cdef Py_ssize_t expand_bytes(const Model* model) noexcept nogil:
    return (_most_states(model) * model.m * sizeof(double)
            + cut_graph_bytes(model.n, model.m) + _whole(cut_bytes(model.n, model.m))
            + model.n * sizeof(int) + model.n + 8)


# The table of a move: `low` where both ends keep their states, `both` where both change, `down`
# and `right` where the first or the second alone does.
cdef inline void _edge(const Model* model, Py_ssize_t e, double* low, double* right, double* down,
                       double* both, const int* label, int a) noexcept nogil:
    cdef int u = model.ends[2 * e], v = model.ends[2 * e + 1], K = model.states[v]
    cdef int s = a if a < model.states[u] else label[u], t = a if a < K else label[v]
    cdef const double* table = model.pair + model.pair_at[e]
    cdef double weight = weight_of(model, e)
    low[0] = weight * table[label[u] * K + label[v]]
    right[0] = weight * table[label[u] * K + t]
    down[0] = weight * table[s * K + label[v]]
    both[0] = weight * table[s * K + t]


cdef void _forbidding(double low, double right, double down, double both, double* first,
                      double* second, double* terminals, int u, int v) noexcept nogil:
    # As in _load(), where some of right, down and both are -inf.  An end that may not change at all
    # has the terminal -INFINITY, which no addition changes.
    first[0] = second[0] = 0
    if both == -INFINITY:
        # Either end alone may change, unless it is forbidden.
        if terminals[u] + down > -INFINITY and terminals[v] + right > -INFINITY:
            if terminals[u] + down <= terminals[v] + right:
                terminals[u] = -INFINITY
            else:
                terminals[v] = -INFINITY
        terminals[u] += down - low
        terminals[v] += right - low
        return
    first[0] = INFINITY if down == -INFINITY else 0
    second[0] = INFINITY if right == -INFINITY else 0
    if down == right:
        terminals[u] += (both - low) / 2
        terminals[v] += (both - low) / 2
    elif right == -INFINITY:
        terminals[u] += down - low
        terminals[v] += both - down
    else:
        terminals[u] += both - right
        terminals[v] += right - low


cdef bint _load(const Model* model, const int* label, int a, const double* flow,
                Cut* cut) noexcept nogil:
    # The network of a move: nodes on the source's side change.  Returns whether any may gain.
    cdef double* terminal = cut.terminal
    cdef double* residual = cut.residual
    cdef Py_ssize_t v, e
    cdef int u, w
    cdef double low = 0, right = 0, down = 0, both = 0, D
    cdef const double* row
    cdef bint gains = False
    for v in range(model.n):
        row = model.unary + model.unary_at[v]
        terminal[v] = row[a] - row[label[v]] if a < model.states[v] else 0
    for e in range(model.m):
        u, w = model.ends[2 * e], model.ends[2 * e + 1]
        residual[2 * e] = residual[2 * e + 1] = 0
        if label[u] == a and label[w] == a:
            continue
        _edge(model, e, &low, &right, &down, &both, label, a)
        D = (low - right) + (both - down)
        if not fabs(D) < INFINITY:
            _forbidding(low, right, down, both, residual + 2 * e, residual + 2 * e + 1, terminal,
                        u, w)
            continue
        terminal[u] += ((down - low) + (both - right)) / 2
        terminal[w] += ((right - low) + (both - down)) / 2
        if D > 0:
            residual[2 * e] = residual[2 * e + 1] = D / 2
    for v in range(model.n):
        gains = gains or terminal[v] > 0
    if gains and flow != NULL:
        load_cut(cut, residual, terminal, flow)
    return gains


cdef double expand(const Model* model, int* label, char* work) noexcept nogil:
    cdef int K = _most_states(model), a = 0, unchanged = 0
    cdef double* flow = <double*>work
    cdef char* rest = work + K * model.m * sizeof(double)
    cdef CutGraph graph = build_cut_graph(model.n, model.m, model.ends, rest)
    cdef char* memory = rest + cut_graph_bytes(model.n, model.m)
    cdef Cut cut
    cdef int* trial = <int*>(memory + _whole(cut_bytes(model.n, model.m)))
    cdef signed char* inside = <signed char*>(trial + model.n)
    cdef double value = score(model, label), value_now, margin
    cdef double sent
    cdef Py_ssize_t v, e
    cdef bint changed
    if value == -INFINITY or K == 1:
        return value
    margin = ROUNDING * magnitude(model)
    memset(flow, 0, K * model.m * sizeof(double))
    while unchanged < K:
        cut = place_cut(&graph, memory)
        changed = _load(model, label, a, flow + a * model.m, &cut)
        if changed:
            solve_cut(&cut)
            for e in range(model.m):
                sent = (cut.residual[2 * e + 1] - cut.residual[2 * e]) / 2
                flow[a * model.m + e] = sent if fabs(sent) < INFINITY else 0
            cut_side(&cut, False, inside)
            for v in range(model.n):
                trial[v] = a if inside[v] and a < model.states[v] else label[v]
            value_now = score(model, trial)
            changed = value_now > value + margin
            if changed:
                value = value_now
                memcpy(label, trial, model.n * sizeof(int))
        unchanged = 1 if changed else unchanged + 1
        a = (a + 1) % K
    return value


def expansion(GraphModel model not None, label, weights=None):
    """Return a labeling at least as good as the given one, and its score.

    Parameters
    ----------
    model : GraphModel
        Scores to maximise.
    label : array of int of shape (n,)
        The start.
    weights : array of shape (m,), optional
        Factors of the edges' tables.

    Returns
    -------
    label : ndarray of int of shape (n,)
        If the moves are super-modular, no move to one state improves it.
    value : float
        Its score.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.mrf.local_search._expansion import expansion
    >>> from structsolve.plugins.mrf.tables._model import GraphModel
    >>> ends, unary = [[0, 1], [1, 2], [0, 2]], [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
    >>> model = GraphModel([3, 3, 3], ends, unary, [2 * np.eye(3)] * 3)
    >>> label, value = expansion(model, [0, 0, 0])  # no change of one or two nodes helps
    >>> label.tolist(), value
    ([1, 1, 1], 8.0)
    """
    cdef Model weighted = model.model
    cdef const double[::1] factors
    if weights is not None and model.model.m:
        factors = np.ascontiguousarray(weights, dtype=np.float64)
        weighted.weight = &factors[0]
    cdef int[::1] view = model._label(label)
    cdef double[::1] work = np.empty(expand_bytes(&weighted) // 8 + 1)
    cdef double value
    with nogil:
        value = expand(&weighted, &view[0], <char*>&work[0])
    return np.asarray(view), value
