"""TRW-S whose passes are in single precision, with bounds in double precision.

Any messages define a bound.  So passes may round freely.  From time to time one pass in double
precision, starting from their messages, gives a bound that holds up to the rounding of
doubles; it is raised by that error.  If single precision ends close to an optimum, double precision
continues from there.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, frexp, ldexp
from structsolve.simd.loops cimport ss_loops

from structsolve.plugins.mrf.tables._model cimport (
    GraphModel, Model, breadth_first, magnitude, most_states, score, weight_of,
)
from structsolve.plugins.mrf.tables._table_kinds cimport (
    MRF_GENERAL, MRF_LINEAR, MRF_POTTS, mrf_table, one_table, table_kind,
)
from structsolve.plugins.mrf.messages._trws cimport (
    Pass, ascend, backward, forbids, forward, place_pass, start_pass, trws, trws_bytes,
)


# All in units of the scores.  The bound has converged in single precision when it moves by less
# than STALLED in PATIENCE iterations; if then it is CLOSE to the labeling, double precision goes on.
cdef double STALLED = 1e-7
cdef int PATIENCE = 10
cdef double CLOSE = 1e-5
# Error of sums of doubles, and tolerance when recognising kinds of tables.
cdef double ROUNDING = 1e-14
# From so many states on, messages of linear and of quadratic scores are faster in O(K) than by
# vectors of the table.
cdef int LINEAR_FROM = 128
cdef int QUADRATIC_FROM = 256
# Sums of scores from this size on do not fit single precision.
cdef double TOO_LARGE = 1e34


cdef struct Copy:
    # The scores in single precision, less a constant for each node or edge.
    mrf_passes passes
    mrf_pass run
    double scale                # of the copy, a power of two
    double added                # the sum of the constants
    double size                 # sum of the largest magnitudes of nodes and edges, without them


cdef inline Py_ssize_t _whole(Py_ssize_t size) noexcept nogil:
    return (size + 63) / 64 * 64


cdef int _lanes(const Model* model) noexcept nogil:
    return mrf_lanes(ss_loops(8).name, most_states(model))


cdef inline Py_ssize_t _padded(Py_ssize_t states, int lanes) noexcept nogil:
    return (states + lanes - 1) / lanes * lanes


cdef inline Py_ssize_t _message_size(const Model* model, Py_ssize_t e, int lanes) noexcept nogil:
    cdef int k = model.states[model.ends[2 * e]], other = model.states[model.ends[2 * e + 1]]
    return _padded(k if k > other else other, lanes)


cdef inline Py_ssize_t _copy_size(const Model* model, Py_ssize_t e, int lanes) noexcept nogil:
    # For an edge's table and its transpose.
    cdef Py_ssize_t k = model.states[model.ends[2 * e]], other = model.states[model.ends[2 * e + 1]]
    return k * _padded(other, lanes) + other * _padded(k, lanes)


cdef Py_ssize_t _shared(const Model* model) noexcept nogil:
    # Where among the messages in double precision, in bytes, those in single precision can lie so
    # that _bound(), from the first edge on, overwrites none that it has not read; -1 if nowhere.
    cdef Py_ssize_t e, start = 0, doubles = 0, floats = 0
    cdef int lanes = _lanes(model), k, other
    for e in range(model.m):
        k, other = model.states[model.ends[2 * e]], model.states[model.ends[2 * e + 1]]
        doubles += (k if k > other else other) * sizeof(double)
        floats += _message_size(model, e, lanes) * sizeof(float)
        start = max(start, doubles - floats)
    return start if start + floats <= doubles else -1


# The arrays of a copy, in memory order.
cdef enum:
    EDGES, TABLES, ROW_AT, SHARE, UNARY, MESSAGE, OWN, TRIAL, PAIR, ARRAYS


cdef Py_ssize_t _place(const Model* model, Copy* copy, char* work) noexcept nogil:
    # Place all arrays; returns their size.  For a NULL copy, only returns the size.
    cdef Py_ssize_t v, e, tables, rows = 0, messages = 0, cells = 0, widest = 0, total = 0, k
    cdef Py_ssize_t size[ARRAYS]
    cdef char* place[ARRAYS]
    cdef int lanes = _lanes(model)
    cdef bint shared = one_table(model)
    tables = min(model.m, 1) if shared else model.m
    for v in range(model.n):
        k = _padded(model.states[v], lanes)
        widest = max(widest, k)
        rows += k
    for e in range(model.m):
        messages += _message_size(model, e, lanes)
    for e in range(tables):
        cells += _copy_size(model, e, lanes)
    size[EDGES] = model.m * sizeof(mrf_edge)
    size[TABLES] = tables * sizeof(mrf_table)
    size[ROW_AT] = (model.n + 1) * sizeof(Py_ssize_t)
    size[SHARE] = model.n * sizeof(float)
    size[UNARY] = rows * sizeof(float)
    size[MESSAGE] = messages * sizeof(float) if _shared(model) < 0 else 0
    size[OWN] = 5 * widest * sizeof(float)      # and `sent`, `guess`, and the two rows of `spare`
    size[TRIAL] = model.n * sizeof(int)
    size[PAIR] = cells * sizeof(float)
    for k in range(ARRAYS):
        place[k] = work + total if copy != NULL else NULL
        total += _whole(size[k])
    if copy == NULL:
        return total
    copy.passes.edges, copy.passes.tables = <mrf_edge*>place[EDGES], <mrf_table*>place[TABLES]
    copy.passes.row_at, copy.passes.share = <Py_ssize_t*>place[ROW_AT], <float*>place[SHARE]
    copy.passes.unary, copy.passes.message = <float*>place[UNARY], <float*>place[MESSAGE]
    copy.passes.own = <float*>place[OWN]
    copy.passes.sent = copy.passes.own + widest
    copy.passes.guess = copy.passes.sent + widest
    copy.passes.spare = copy.passes.guess + widest
    copy.passes.trial, copy.passes.pair = <int*>place[TRIAL], <float*>place[PAIR]
    copy.passes.n, copy.passes.states = model.n, model.states
    copy.passes.near_at, copy.passes.near = model.near_at, model.near
    copy.passes.width = widest if rows == widest * model.n else 0
    copy.run = mrf_pass_of(lanes)
    return total


cdef double _highest(const double* row, Py_ssize_t size, double* lowest) noexcept nogil:
    cdef Py_ssize_t s
    cdef double top = row[0]
    lowest[0] = row[0]
    for s in range(1, size):
        top = row[s] if row[s] > top else top
        lowest[0] = row[s] if row[s] < lowest[0] else lowest[0]
    return top


cdef void _copy_tables(const Model* model, Copy* copy, double* largest) noexcept nogil:
    # Kinds of tables, and offsets of general ones.
    cdef Py_ssize_t e, cells = 0, messages = 0, tables
    cdef int lanes = _lanes(model), rows, columns
    cdef bint shared = one_table(model), negative = False, general
    cdef mrf_table* table
    cdef mrf_edge* edge
    cdef double top = 0, low = 0, weight
    for e in range(model.m):
        negative = negative or weight_of(model, e) < 0
    tables = min(model.m, 1) if shared else model.m
    for e in range(model.m):
        table = <mrf_table*>copy.passes.tables + (0 if shared else e)
        edge = <mrf_edge*>copy.passes.edges + e
        weight = weight_of(model, e)
        rows, columns = model.states[model.ends[2 * e]], model.states[model.ends[2 * e + 1]]
        if e < tables:
            table[0] = table_kind(model.pair + model.pair_at[e], rows, columns)
            general = table.kind == MRF_GENERAL or negative
            if not general and table.kind != MRF_POTTS:
                general = rows < (LINEAR_FROM if table.kind == MRF_LINEAR else QUADRATIC_FROM)
            if general:
                table.straight = cells
                table.turned = cells + rows * _padded(columns, lanes)
                cells += _copy_size(model, e, lanes)
            top = _highest(model.pair + model.pair_at[e], <Py_ssize_t>rows * columns, &low)
        edge.u, edge.v, edge.table = model.ends[2 * e], model.ends[2 * e + 1], 0 if shared else e
        edge.weight, edge.message = <float>weight, messages
        messages += _message_size(model, e, lanes)
        copy.added += weight * top
        copy.size += fabs(weight) * (top - low)
        largest[0] = max(largest[0], max(fabs(weight), 1) * (top - low))


cdef void _fill(const Model* model, Copy* copy) noexcept nogil:
    # The scores, scaled: the largest is at most 1, so that nothing overflows.
    cdef Py_ssize_t v, e, start = 0, s, t, width, tables
    cdef int lanes = _lanes(model), rows, columns, exponent = 0
    cdef double top, low = 0, largest = 0, scale
    cdef float* row
    cdef float* back
    cdef const double* source
    cdef mrf_table* table
    copy.added = copy.size = 0
    _copy_tables(model, copy, &largest)
    for v in range(model.n):
        top = _highest(model.unary + model.unary_at[v], model.states[v], &low)
        copy.added += top
        copy.size += top - low
        largest = max(largest, top - low)
        (<Py_ssize_t*>copy.passes.row_at)[v] = start
        start += _padded(model.states[v], lanes)
    (<Py_ssize_t*>copy.passes.row_at)[model.n] = start
    frexp(largest, &exponent)
    copy.scale = ldexp(1.0, -max(min(exponent, 120), -120))
    scale = copy.scale
    for v in range(model.n):
        source = model.unary + model.unary_at[v]
        row = <float*>copy.passes.unary + copy.passes.row_at[v]
        top = _highest(source, model.states[v], &low)
        for s in range(copy.passes.row_at[v + 1] - copy.passes.row_at[v]):
            row[s] = <float>((source[s] - top) * scale) if s < model.states[v] else MRF_PADDING
    tables = min(model.m, 1) if one_table(model) else model.m
    for e in range(tables):
        table = <mrf_table*>copy.passes.tables + e
        table.scaled_slope, table.scaled_cut = table.slope * scale, table.cut * scale
        if table.straight < 0:
            continue
        rows, columns = model.states[model.ends[2 * e]], model.states[model.ends[2 * e + 1]]
        source = model.pair + model.pair_at[e]
        top = _highest(source, rows * columns, &low)
        # Messages of padding must equal those of a state.
        width = _padded(columns, lanes)
        row = <float*>copy.passes.pair + table.straight
        for s in range(rows):
            for t in range(width):
                row[s * width + t] = <float>(
                    (source[s * columns + (t if t < columns else 0)] - top) * scale)
        width = _padded(rows, lanes)
        back = <float*>copy.passes.pair + table.turned
        for t in range(columns):
            for s in range(width):
                back[t * width + s] = <float>(
                    (source[(s if s < rows else 0) * columns + t] - top) * scale)
    for e in range(model.m):
        row = copy.passes.message + copy.passes.edges[e].message
        for s in range(_message_size(model, e, lanes)):
            row[s] = 0


cdef double _bound(const Model* model, const Copy* copy, Pass* state) noexcept nogil:
    # The bound of the messages after a pass forward, in double precision.
    cdef Py_ssize_t e
    cdef int s, k
    cdef double* message
    cdef const float* row
    cdef double unit = 1.0 / copy.scale
    for e in range(model.m):
        message = state.message + state.message_at[e]
        row = copy.passes.message + copy.passes.edges[e].message
        k = model.states[max(model.ends[2 * e], model.ends[2 * e + 1])]
        for s in range(k):                      # both rows may overlap
            state.own[s] = unit * row[s]
        for s in range(k):
            message[s] = state.own[s]
    return backward(model, state, NULL)


cdef Py_ssize_t dual_ascent_bytes(const Model* model) noexcept nogil:
    return _whole(trws_bytes(model)) + 64 + _place(model, NULL, NULL)


cdef int dual_ascent(const Model* model, int max_iter, double tol, int* label, double* value,
                     double* bound, double* phi, Py_ssize_t phi_step, double* phi_bound,
                     char* work) noexcept nogil:
    cdef Copy copy
    cdef Pass state
    cdef Py_ssize_t v
    cdef int done = 0, stalled = 0
    cdef double value_now, bound_now = INFINITY, reached = INFINITY, step
    cdef bint turned = False    # messages go to later nodes
    cdef bint forest
    cdef double slack = ROUNDING * magnitude(model)
    cdef char* rest = work + _whole(trws_bytes(model))
    # Vectors that cross cache lines take twice as long.
    rest += 63 - (<size_t>rest + 63) % 64
    state = place_pass(model, work)
    forest = model.m < model.n and breadth_first(model, NULL, state.order, state.rank)
    if forest or forbids(model) or not slack < ROUNDING * TOO_LARGE:
        done = trws(model, max_iter, tol, True, label, value, bound, work)
        if phi != NULL:
            if forest:      # one pass is exact, and messages are those of that pass
                for v in range(state.message_at[model.m]):
                    state.message[v] = 0
            state.phi, state.phi_step = phi, phi_step
            phi_bound[0] = backward(model, &state, NULL)
        return done
    _place(model, &copy, rest)
    start_pass(model, &state)
    if _shared(model) >= 0:
        rest = <char*>state.message + _shared(model)
        copy.passes.message = <float*>(rest + 63 - (<size_t>rest + 63) % 64)
    _fill(model, &copy)
    state.kinds, state.one_kind = copy.passes.tables, one_table(model)
    for v in range(model.n):
        (<float*>copy.passes.share)[v] = <float>state.share[v]
        label[v] = 0
    value[0], bound[0] = -INFINITY, INFINITY
    step = STALLED * copy.size
    while done < max_iter:
        bound_now = copy.added + copy.run(&copy.passes, 0) / copy.scale
        copy.run(&copy.passes, 1)
        done += 1
        value_now = score(model, copy.passes.trial)
        if value_now > value[0] or done == 1:
            value[0] = value_now
            for v in range(model.n):
                label[v] = copy.passes.trial[v]
        stalled += 1
        if bound_now < reached - step:
            reached, stalled = bound_now, 0
        if stalled >= PATIENCE or bound_now - value[0] <= step:
            break
    bound[0] = _bound(model, &copy, &state)
    if done < max_iter and tol < bound[0] - value[0] <= CLOSE * copy.size:
        forward(model, &state, True)
        done = ascend(model, &state, False, done, max_iter, tol, False, label, value, bound)
        turned = True
    if phi != NULL:
        if not turned:
            forward(model, &state, True)
        state.phi, state.phi_step = phi, phi_step
        phi_bound[0] = backward(model, &state, NULL)
        bound[0] = min(bound[0], phi_bound[0])
    bound[0] += slack
    if bound[0] <= value[0] + 2 * slack:            # equal up to rounding
        bound[0] = value[0]
    return done


cdef void transformation(const Model* model, char* work, double* phi,
                         Py_ssize_t phi_step) noexcept nogil:
    cdef Pass state = place_pass(model, work)
    forward(model, &state, True)
    state.phi, state.phi_step = phi, phi_step
    backward(model, &state, NULL)


def float_tree_reweighted(GraphModel model not None, int max_iter=1000, double tol=0.0,
                          bint reparametrize=False):
    """Like :func:`~structsolve.plugins.mrf.messages._trws.tree_reweighted`, but in single precision.

    Parameters
    ----------
    model : GraphModel
        Or a :class:`~structsolve.plugins.mrf._direct.WeightedModel`.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=0.0
        Stop once the bound exceeds the labeling's score by at most this.
    reparametrize : bool, default=False
        Also return an equivalent transformation; scores must be finite.

    Returns
    -------
    label : ndarray of int of shape (n,)
    value, bound : float
    n_iter : int
    phi : ndarray of shape (m, 2, K)
        With ``reparametrize``.

    Examples
    --------
    >>> from structsolve.plugins.mrf.messages._float_passes import float_tree_reweighted
    >>> from structsolve.plugins.mrf.tables._model import GraphModel
    >>> ends, pair = [[0, 1], [1, 2], [2, 0]], np.array([[1.0, 0], [0, 1]])
    >>> model = GraphModel([2, 2, 2], ends, [0, 1, 0.5, 0, 0.2, 0], pair)
    >>> label, value, bound, n_iter = float_tree_reweighted(model)
    >>> label.tolist(), value, bound
    ([1, 1, 1], 4.0, 4.0)
    """
    cdef double[:, :, ::1] phi
    label = np.zeros(model.model.n, np.intc)
    cdef int[::1] view = label
    cdef double[::1] work = np.zeros(dual_ascent_bytes(&model.model) // 8 + 1)
    cdef double value = 0, bound = 0, phi_bound = 0
    cdef double* phi_p = NULL
    cdef Py_ssize_t step = int(model.states.max())
    cdef int n_iter
    transformed = np.zeros((model.model.m + 1, 2, step))[:model.model.m]
    if reparametrize and model.model.m:
        phi = transformed
        phi_p = &phi[0, 0, 0]
    with nogil:
        n_iter = dual_ascent(&model.model, max_iter, tol, &view[0], &value, &bound, phi_p, step,
                             &phi_bound, <char*>&work[0])
    answer = label, value, bound, n_iter
    return (*answer, transformed) if reparametrize else answer
