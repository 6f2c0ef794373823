"""Local search for a labeling that no small change improves.

It combines iterated conditional modes (Besag 1986), joint changes of both ends of an edge, chains
of forced changes with the best prefix kept (Kernighan, Lin 1970), joint changes of a forest, and,
where something is forbidden, of a node with its neighbours.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from structsolve.plugins.mrf.messages._max_product cimport forest_move, move_bytes
from structsolve.plugins.mrf.tables._model cimport (
    GraphModel, Model, another_table, edge_scores, most_states, other_end, score, weight_of,
)

# Gains below this, in units of the scores, may be rounding and are ignored.
cdef double ROUNDING = 1e-13
cdef int LONGEST = 256              # maximum number of changes in a chain
cdef int FORESTS = 16               # maximum number of forests tried without a gain
cdef int ROUNDS = 1000              # guards against endless gains by rounding
# Chains and forests read the whole graph.  These are their maximum number of steps, in total and
# for each node score.
cdef double STEPS = 1e7, STEPS_EACH = 10


cdef struct Search:
    double margin
    double* field               # of all nodes: score of each state, given the neighbours' states
    double* one                 # fields of the two ends of an edge, without that edge
    double* two
    double* gain                # of the best change of each node, -INFINITY if none
    double steps                # left for chains and forests
    int* change                 # that change
    # Flags of values that a move may have made stale: the best state of a node, its best pairs
    # of states with neighbours, and `gain`.
    char* stale_state
    char* stale_pairs
    char* next_pairs
    char* stale_gain
    int* before                 # the fallback labeling
    int* held                   # the same for one forest
    char* forest                # memory of forest_move()
    int* node                   # changed in this chain, in order
    int* state                  # their states before
    char* locked


cdef Py_ssize_t climb_bytes(const Model* model) noexcept nogil:
    return ((model.unary_at[model.n] + 2 * most_states(model) + model.n) * sizeof(double)
            + (move_bytes(model) + 7) / 8 * 8 + (3 * model.n + 2 * LONGEST) * sizeof(int)
            + 5 * model.n)


cdef void _field(const Model* model, const int* label, int v, int skip, double* out) noexcept nogil:
    # Scores of the states of v, given its neighbours, less those across edge `skip`.
    cdef int k = model.states[v], s, e
    cdef Py_ssize_t j, step = 0
    cdef double weight
    cdef const double* row = model.unary + model.unary_at[v]
    for s in range(k):
        out[s] = row[s]
    for j in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[j]
        if e == skip:
            continue
        row = edge_scores(model, e, v, label[other_end(model, e, v)], &step)
        weight = weight_of(model, e)
        for s in range(k):
            out[s] += weight * row[s * step]


cdef inline void _mark(Search* search, int v) noexcept nogil:
    search.stale_state[v] = search.next_pairs[v] = search.stale_gain[v] = 1


cdef void _move(const Model* model, Search* search, int* label, int v, int state) noexcept nogil:
    # Change the state of v, and update the fields of its neighbours.
    cdef int e, w, t, before = label[v]
    cdef Py_ssize_t j, step = 0
    cdef const double* old
    cdef const double* new
    cdef double* field
    cdef double change, weight
    cdef bint afresh
    label[v] = state
    _mark(search, v)
    for j in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[j]
        w = other_end(model, e, v)
        old = edge_scores(model, e, w, before, &step)
        new = edge_scores(model, e, w, state, &step)
        field = search.field + model.unary_at[w]
        weight = weight_of(model, e)
        afresh = False
        for t in range(model.states[w]):
            change = weight * (new[t * step] - old[t * step])
            # -inf cannot be subtracted.
            afresh |= not fabs(change) < INFINITY
            field[t] += change
        if afresh:
            _field(model, label, w, -1, field)
        _mark(search, w)


cdef bint _single(const Model* model, Search* search, int* label) noexcept nogil:
    cdef Py_ssize_t v
    cdef int s, best
    cdef bint moved = False
    cdef const double* field
    for v in range(model.n):
        if not search.stale_state[v]:
            continue
        search.stale_state[v] = 0
        field = search.field + model.unary_at[v]
        best = label[v]
        for s in range(model.states[v]):
            if field[s] > field[best]:
                best = s
        if field[best] > field[label[v]] + search.margin:
            _move(model, search, label, <int>v, best)
            moved = True
    return moved


cdef void _without(const Model* model, Search* search, const int* label, int v, int e,
                   double* out) noexcept nogil:
    # Field of v less edge e: by subtraction if nothing is forbidden.
    cdef int s
    cdef const double* field = search.field + model.unary_at[v]
    cdef Py_ssize_t step = 0
    cdef const double* row = edge_scores(model, e, v, label[other_end(model, e, v)], &step)
    cdef double weight = weight_of(model, e)
    for s in range(model.states[v]):
        if row[s * step] == -INFINITY:
            _field(model, label, v, e, out)
            return
        out[s] = field[s] - weight * row[s * step]


cdef inline double _top(const double* row, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t s
    cdef double top = row[0]
    for s in range(1, size):
        top = row[s] if row[s] > top else top
    return top


cdef bint _pairs(const Model* model, Search* search, int* label) noexcept nogil:
    cdef Py_ssize_t e
    cdef int u, v, s, t, best_s, best_t
    cdef bint moved = False
    cdef double x, best, weight, largest = 0
    cdef const double* row
    cdef char* marks = search.next_pairs
    search.next_pairs, search.stale_pairs = search.stale_pairs, marks
    memset(search.next_pairs, 0, model.n)
    for e in range(model.m):
        u, v = model.ends[2 * e], model.ends[2 * e + 1]
        row = model.pair + model.pair_at[e]
        if another_table(model, e):
            largest = INFINITY
        if not (search.stale_pairs[u] or search.stale_pairs[v]):
            continue
        weight = weight_of(model, e)
        _without(model, search, label, u, <int>e, search.one)
        _without(model, search, label, v, <int>e, search.two)
        best_s, best_t = label[u], label[v]
        best = (search.one[best_s] + search.two[best_t]
                + weight * row[best_s * model.states[v] + best_t] + search.margin)
        if weight >= 0:
            # No pair of states beats the sum of the three maxima.
            if largest == INFINITY:
                largest = _top(row, <Py_ssize_t>model.states[u] * model.states[v])
            if (_top(search.one, model.states[u]) + _top(search.two, model.states[v])
                    + weight * largest <= best):
                continue
        for s in range(model.states[u]):
            for t in range(model.states[v]):
                x = search.one[s] + search.two[t] + weight * row[t]
                if x > best:
                    best, best_s, best_t = x, s, t
            row += model.states[v]
        if best_s != label[u]:
            _move(model, search, label, u, best_s)
            moved = True
        if best_t != label[v]:
            _move(model, search, label, v, best_t)
            moved = True
    return moved


cdef double _answers(const Model* model, Search* search, int* label, int v, int state) noexcept nogil:
    # Change v, then each neighbour to its best state; returns the score.
    cdef Py_ssize_t j
    cdef int w, t, best
    cdef const double* field
    _move(model, search, label, v, state)
    for j in range(model.near_at[v], model.near_at[v + 1]):
        w = other_end(model, model.near[j], v)
        field = search.field + model.unary_at[w]
        best = label[w]
        for t in range(model.states[w]):
            if field[t] > field[best]:
                best = t
        if best != label[w]:
            _move(model, search, label, w, best)
    return score(model, label)


cdef bint _stars(const Model* model, Search* search, int* label) noexcept nogil:
    # Change a node with the best answers of its neighbours, taken one by one: where nodes stand for
    # the states of others together, as in networks of larger factors, nothing less can change.
    cdef Py_ssize_t v, j, step = 0
    cdef int s, t, w, e, best
    cdef bint moved = False
    cdef double before = score(model, label), after, top, x, weight
    cdef const double* row
    cdef double* total = search.one
    for v in range(model.n):
        if search.steps < 0:
            break
        for s in range(model.states[v]):
            total[s] = model.unary[model.unary_at[v] + s]
        for j in range(model.near_at[v], model.near_at[v + 1]):
            e = model.near[j]
            w = other_end(model, e, <int>v)
            weight = weight_of(model, e)
            search.steps -= <double>model.states[v] * model.states[w]
            _without(model, search, label, w, e, search.two)
            for s in range(model.states[v]):
                row = edge_scores(model, e, w, s, &step)
                top = -INFINITY
                for t in range(model.states[w]):
                    x = weight * row[t * step] + search.two[t]
                    top = x if x > top else top
                total[s] += top
        best = label[v]
        for s in range(model.states[v]):
            if total[s] > total[best]:
                best = s
        if not total[best] > total[label[v]] + search.margin:
            continue
        memcpy(search.held, label, model.n * sizeof(int))
        after = _answers(model, search, label, <int>v, best)
        if after > before + search.margin:
            before, moved = after, True
            continue
        # Neighbours that touch each other had other answers.
        for j in range(model.near_at[v], model.near_at[v + 1]):
            w = other_end(model, model.near[j], v)
            if label[w] != search.held[w]:
                _move(model, search, label, w, search.held[w])
        _move(model, search, label, <int>v, search.held[v])
    return moved


cdef void _gain(const Model* model, Search* search, const int* label, int v) noexcept nogil:
    cdef const double* field = search.field + model.unary_at[v]
    cdef int s
    search.stale_gain[v] = 0
    search.gain[v] = -INFINITY
    for s in range(model.states[v]):
        if s != label[v] and field[s] > -INFINITY:
            if field[s] - field[label[v]] > search.gain[v]:
                search.gain[v], search.change[v] = field[s] - field[label[v]], s


cdef bint _chain(const Model* model, Search* search, int* label) noexcept nogil:
    # Make the best change of a node not yet changed, even if it is worse; keep the best prefix.
    cdef Py_ssize_t v, length = 0, kept = 0, j
    cdef int state = 0
    cdef double total = 0, top = search.margin, best
    search.steps -= <double>model.n * LONGEST / 8
    if search.steps < 0:
        return False
    for v in range(model.n):
        search.locked[v] = 0
        if search.stale_gain[v]:
            _gain(model, search, label, <int>v)
    while length < LONGEST:
        best = -INFINITY
        for v in range(model.n):
            if search.gain[v] > best and not search.locked[v]:
                best = search.gain[v]
                search.node[length] = <int>v
        if best == -INFINITY:
            break
        state = search.change[search.node[length]]
        search.state[length] = label[search.node[length]]
        search.locked[search.node[length]] = 1
        v = search.node[length]
        _move(model, search, label, <int>v, state)
        _gain(model, search, label, <int>v)
        for j in range(model.near_at[v], model.near_at[v + 1]):
            _gain(model, search, label, other_end(model, model.near[j], v))
        length += 1
        total += best
        if total > top:
            top, kept = total, length
    for j in range(length - 1, kept - 1, -1):
        _move(model, search, label, search.node[j], search.state[j])
    return kept > 0


cdef bint _forests(const Model* model, Search* search, int* label) noexcept nogil:
    cdef Py_ssize_t i, v
    cdef double before = score(model, label)
    memcpy(search.held, label, model.n * sizeof(int))
    for i in range(FORESTS):
        search.steps -= model.cell_at[model.m]
        if search.steps < 0:
            break
        forest_move(model, i * model.n / FORESTS, i & 1, label, search.forest)
        if score(model, label) > before + search.margin:
            for v in range(model.n):
                _field(model, label, <int>v, -1, search.field + model.unary_at[v])
                _mark(search, <int>v)
            return True
        memcpy(label, search.held, model.n * sizeof(int))
    return False


cdef double climb(const Model* model, int* label, char* work) noexcept nogil:
    cdef Search search
    cdef Py_ssize_t v, j, width = most_states(model)
    cdef int _
    cdef bint hard = False      # something is forbidden
    cdef double size = 0, before = score(model, label), after
    search.field = <double*>work
    search.one = search.field + model.unary_at[model.n]
    search.two = search.one + width
    search.gain = search.two + width
    search.forest = <char*>(search.gain + model.n)
    search.before = <int*>(search.forest + (move_bytes(model) + 7) / 8 * 8)
    search.held = search.before + model.n
    search.change = search.held + model.n
    search.node = search.change + model.n
    search.state = search.node + LONGEST
    search.locked = <char*>(search.state + LONGEST)
    search.stale_state = search.locked + model.n
    search.stale_pairs = search.stale_state + model.n
    search.next_pairs = search.stale_pairs + model.n
    search.stale_gain = search.next_pairs + model.n
    search.steps = max(STEPS, STEPS_EACH * model.unary_at[model.n])
    memset(search.stale_state, 1, 4 * model.n)
    memcpy(search.before, label, model.n * sizeof(int))
    for v in range(model.n):
        _field(model, label, <int>v, -1, search.field + model.unary_at[v])
        for j in range(model.unary_at[v], model.unary_at[v] + model.states[v]):
            if search.field[j] == -INFINITY:
                hard = True
            elif fabs(search.field[j]) > size:
                size = fabs(search.field[j])
    search.margin = ROUNDING * size
    for _ in range(ROUNDS):
        if not (_single(model, &search, label) or _pairs(model, &search, label)
                or (hard and _stars(model, &search, label)) or _chain(model, &search, label)
                or (model.weight == NULL and _forests(model, &search, label))):
            break
    after = score(model, label)
    if after >= before:
        return after
    memcpy(label, search.before, model.n * sizeof(int))     # the gains were rounding errors
    return before


def local_search(GraphModel model not None, label):
    """Return a labeling at least as good as the given one, and its score.

    Parameters
    ----------
    model : GraphModel
        Scores to maximise.
    label : array of int of shape (n,)
        The start.

    Returns
    -------
    label : ndarray of int of shape (n,)
        No change of one node, nor of both ends of one edge, improves it.
    value : float
        Its score.

    Examples
    --------
    >>> from structsolve.plugins.mrf.local_search._climb import local_search
    >>> from structsolve.plugins.mrf.tables._model import GraphModel
    >>> model = GraphModel([2, 2], [[0, 1]], [[0, 0], [0, 0]], [[[1, 0], [0, 2]]])
    >>> label, value = local_search(model, [0, 0])  # no single change helps
    >>> label.tolist(), value
    ([1, 1], 2.0)
    """
    cdef int[::1] view = model._label(label)
    cdef double[::1] work = np.zeros(climb_bytes(&model.model) // 8 + 1)
    cdef double value
    with nogil:
        value = climb(&model.model, &view[0], <char*>&work[0])
    return np.asarray(view), value
