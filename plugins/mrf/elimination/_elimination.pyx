"""Best labelings of narrow graphs, exactly, by eliminating nodes one by one.

A node is maximised out (Bertele, Brioschi 1972): a table holds the best score of the node and of
all earlier nodes for each labeling of its neighbours, which then become neighbours of each other.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.algorithms.lawler_heap cimport Candidate, pop, push, runner_up

from structsolve.plugins.mrf.elimination._plan cimport WIDEST, Plan, Plans
from structsolve.plugins.mrf.tables._model cimport GraphModel, Model, edge_scores, other_end, score
from structsolve.plugins.mrf.tables._shape cimport GraphShape

cdef struct Input:
    const double* now       # row of the states of the eliminated node
    Py_ssize_t[WIDEST] move     # to the next labeling, if that neighbour changes last


cdef Py_ssize_t elimination_bytes(const Plan* plan, const Model* model) noexcept nogil:
    cdef Py_ssize_t v, most = 1, doubles, edges = 0
    for v in range(plan.n):
        most = max(most, model.states[v])
        edges = max(edges, plan.scope_at[v + 1] - plan.scope_at[v])
    # Tables; a row per neighbour and one for the node; tables of pairs, one row per state, and
    # one for the first neighbour; sums.
    doubles = plan.doubles + (edges + 2) * most + (edges + 1) * most * most
    return (doubles * 8 + plan.choice_at[plan.n]
            + plan.n * <Py_ssize_t>(2 * sizeof(int) + sizeof(Input)) + 255) // 64 * 64


cdef struct Room:
    # Arrays of a plan in the work memory.
    double* tables
    double* rows
    double* pairs
    double* firsts
    double* sums
    unsigned char* choices
    int* waiting        # the first table waiting for a step, -1: none
    int* behind         # the next one after each
    Input* inputs       # of one step; any number of tables may wait for it


cdef Room _room_in(const Plan* plan, const Model* model, char* work) noexcept nogil:
    cdef Room room
    cdef Py_ssize_t v, most = 1, edges = 0
    for v in range(plan.n):
        most = max(most, model.states[v])
        edges = max(edges, plan.scope_at[v + 1] - plan.scope_at[v])
    room.tables = <double*>work
    room.rows = room.tables + plan.doubles
    room.pairs = room.rows + (edges + 1) * most
    room.firsts = room.pairs + edges * most * most
    room.sums = room.firsts + most * most
    room.choices = <unsigned char*>(room.sums + most)
    room.inputs = <Input*>(room.choices + plan.choice_at[plan.n])
    room.waiting = <int*>(room.inputs + plan.n)
    room.behind = room.waiting + plan.n
    return room


cdef bint _forward(const Model* model, const Plan* plan, Room* room) noexcept nogil:
    # All tables; False if every labeling is forbidden.
    cdef Py_ssize_t step, w
    memset(room.choices, 0, plan.choice_at[plan.n])
    for step in range(plan.n):
        room.waiting[step] = -1
    for step in range(plan.n):
        if _maximise(model, plan, step, room) == -INFINITY:
            return False
        if plan.scope_at[step + 1] > plan.scope_at[step]:
            w = plan.scope[plan.scope_at[step]]
            room.behind[step] = room.waiting[w]
            room.waiting[w] = <int>step
    return True


cdef double eliminate(const Model* model, const Plan* plan, int* label, char* work) noexcept nogil:
    cdef Room room = _room_in(plan, model, work)
    cdef Py_ssize_t step, k, entry, K
    cdef const unsigned char* choice
    cdef int v, w
    if not _forward(model, plan, &room):
        memset(label, 0, plan.n * sizeof(int))
        return -INFINITY
    for step in range(plan.n - 1, -1, -1):
        v = plan.order[step]
        K = model.states[v]
        entry = 0
        for k in range(plan.scope_at[step + 1] - 1, plan.scope_at[step] - 1, -1):
            w = plan.order[plan.scope[k]]
            entry = entry * model.states[w] + label[w]
        choice = room.choices + plan.choice_at[step]
        if K == 1:
            label[v] = 0
        elif K == 2:
            label[v] = choice[entry // 8] >> (entry % 8) & 1
        elif K <= 256:
            label[v] = choice[entry]
        else:
            label[v] = (<const int*>choice)[entry]
    return score(model, label)


cdef void eliminate_marginals(const Model* model, const Plan* plan, double* out, double* unary,
                              int* label, char* work) noexcept nogil:
    # The best labeling with each state, one after the other, if none before has it and is the best.
    cdef Model fixed = model[0]
    cdef Py_ssize_t v, first, s, K, part
    cdef double best, value
    fixed.unary = unary
    memcpy(unary, model.unary, model.unary_at[model.n] * sizeof(double))
    for part in range(model.unary_at[model.n]):
        out[part] = -INFINITY
    best = eliminate(model, plan, label, work)
    if best == -INFINITY:
        return
    for v in range(model.n):
        out[model.unary_at[v] + label[v]] = best
    for v in range(model.n):
        first, K = model.unary_at[v], model.states[v]
        for part in range(first, first + K):
            if out[part] == best:
                continue
            for s in range(K):
                unary[first + s] = -INFINITY
            unary[part] = model.unary[part]
            value = eliminate(&fixed, plan, label, work)
            out[part] = value
            if value == best:
                for s in range(model.n):
                    out[model.unary_at[s] + label[s]] = best
        memcpy(unary + first, model.unary + first, K * sizeof(double))


cdef void _sums_given(const Model* model, const Plan* plan, Py_ssize_t step, const int* label,
                      const Room* room) noexcept nogil:
    # room.sums <- the best score of each state of a step, given the labels of later ones, without
    # the scores among these.
    cdef int v = plan.order[step], u
    cdef Py_ssize_t K = model.states[v], s, k, stride, jump, entry
    cdef const double* row
    memcpy(room.sums, model.unary + model.unary_at[v], K * sizeof(double))
    for k in range(model.near_at[v], model.near_at[v + 1]):
        u = other_end(model, model.near[k], v)
        if _goes_after(plan, step, u):
            row = edge_scores(model, model.near[k], v, label[u], &stride)
            for s in range(K):
                room.sums[s] += row[s * stride]
    u = room.waiting[step]
    while u >= 0:
        entry, jump = 0, K
        for k in range(plan.scope_at[u] + 1, plan.scope_at[u + 1]):
            entry += jump * label[plan.order[plan.scope[k]]]
            jump *= model.states[plan.order[plan.scope[k]]]
        row = room.tables + plan.table_at[u] + entry
        for s in range(K):
            room.sums[s] += row[s]
        u = room.behind[u]


cdef inline bint _goes_after(const Plan* plan, Py_ssize_t step, int node) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(plan.scope_at[step], plan.scope_at[step + 1]):
        if plan.order[plan.scope[k]] == node:
            return True
    return False


cdef Py_ssize_t elimination_kbest_bytes(const Plan* plan, const Model* model,
                                        Py_ssize_t k) noexcept nogil:
    return (elimination_bytes(plan, model) + k * plan.n * <Py_ssize_t>sizeof(Candidate)
            + k * <Py_ssize_t>sizeof(int) + 64)


cdef Py_ssize_t eliminate_kbest(const Model* model, const Plan* plan, Py_ssize_t k, int* labels,
                                double* values, char* work) noexcept nogil:
    # Lawler's partition: a set agrees with an answer in the steps after one, and has a worse state
    # there; earlier steps follow from the tables.
    cdef Room room = _room_in(plan, model, work)
    cdef Candidate* sets = <Candidate*>(work + elimination_bytes(plan, model))
    cdef int* first = <int*>(sets + k * plan.n)
    cdef Py_ssize_t n = plan.n, n_sets = 0, count = 0, step
    cdef Candidate item
    cdef double top, now
    cdef int* label = labels
    if not _forward(model, plan, &room):
        return 0
    item.path, item.v, item.s = -1, <int>n, 0
    while True:
        # The next answer: the best label of the set `item`.
        label = labels + count * n
        if item.path >= 0:
            memcpy(label, labels + item.path * n, n * sizeof(int))
            label[plan.order[item.v]] = item.s
        for step in range(item.v - 1, -1, -1):
            _sums_given(model, plan, step, label, &room)
            label[plan.order[step]] = _first_best(room.sums, model.states[plan.order[step]])
        values[count] = score(model, label)
        if count and values[count] > values[count - 1]:
            values[count] = values[count - 1]       # equal up to rounding
        first[count] = min(item.v, <int>n - 1)
        count += 1
        if count == k:
            return count
        item.path = <int>count - 1
        for step in range(first[count - 1], -1, -1):
            _sums_given(model, plan, step, label, &room)
            item.v = <int>step
            item.s = <int>runner_up(model.states[plan.order[step]], room.sums, NULL, NULL, 0, 0,
                                    label[plan.order[step]], &top, &now)
            if top > -INFINITY:
                item.value = values[count - 1] - now + top
                push(sets, &n_sets, item)
        if not n_sets:
            return count
        item = pop(sets, &n_sets)


cdef inline int _first_best(const double* sums, Py_ssize_t K) noexcept nogil:
    cdef Py_ssize_t s, best = 0
    for s in range(1, K):
        if sums[s] > sums[best]:
            best = s
    return <int>best


cdef double _maximise(const Model* model, const Plan* plan, Py_ssize_t step,
                      Room* room) noexcept nogil:
    """The table of one step; returns its largest entry.

    Neighbours count like digits, the first to go the fastest.  Row a of room.rows has the scores of
    the node's states plus those of its pairs with neighbours a and later ones.  Most time is spent
    on blocks of the first neighbours, in which only the incoming tables change.
    """
    cdef int v = plan.order[step], u, a, other
    cdef Py_ssize_t K = model.states[v], width = plan.scope_at[step + 1] - plan.scope_at[step]
    cdef const int* scope = plan.scope + plan.scope_at[step]
    cdef double* out = room.tables + plan.table_at[step]
    cdef unsigned char* choice = room.choices + plan.choice_at[step]
    cdef int[WIDEST] digit, size
    cdef double* pair[WIDEST]       # of each neighbour: rows of the node's states; NULL
    cdef Input* inputs = room.inputs
    cdef int n_inputs = 0, run = width, c0
    cdef Py_ssize_t k, s, t, x = 0, position, place, stride, jump, length = 1, block = 1
    cdef double top = -INFINITY
    cdef double* rows = room.rows
    cdef double* pairs = room.pairs
    cdef double* firsts = room.firsts
    cdef const double* row
    for k in range(width):
        digit[k], size[k], pair[k] = 0, model.states[plan.order[scope[k]]], NULL
    for position in range(model.near_at[v], model.near_at[v + 1]):
        u = other_end(model, model.near[position], v)
        for k in range(width):
            if plan.order[scope[k]] != u:
                continue
            if pair[k] == NULL:
                pair[k] = pairs
                pairs += size[k] * K
                memset(pair[k], 0, size[k] * K * sizeof(double))
            for t in range(size[k]):
                row = edge_scores(model, model.near[position], v, t, &stride)
                for s in range(K):
                    pair[k][t * K + s] += row[s * stride]
    # One block covers the first `run` neighbours: those after the first have no pair, and
    # all incoming tables include them.
    for k in range(1, width):
        if pair[k] != NULL:
            run = min(run, <int>k)
    u = room.waiting[step]
    while u >= 0:
        place = plan.scope_at[u] + 1
        for k in range(run):
            if place + k == plan.scope_at[u + 1] or plan.scope[place + k] != scope[k]:
                run = <int>k
                break
        u = room.behind[u]
    for k in range(run):
        block *= size[k]
    c0 = size[0] if run else 1
    length = block // c0
    u = room.waiting[step]
    while u >= 0:
        # Its first neighbour is this node; the others are some of ours, in the same order.
        inputs[n_inputs].now = room.tables + plan.table_at[u]
        place, stride, jump = plan.scope_at[u] + 1 + run, K * block, 0
        for k in range(run, width):
            if place < plan.scope_at[u + 1] and plan.scope[place] == scope[k]:
                inputs[n_inputs].move[k] = stride - jump
                jump += stride * (size[k] - 1)
                stride *= size[k]
                place += 1
            else:
                inputs[n_inputs].move[k] = -jump
        n_inputs += 1
        u = room.behind[u]
    memcpy(rows + width * K, model.unary + model.unary_at[v], K * sizeof(double))
    for a in range(<int>width - 1, run - 1, -1):
        _add_row(rows, pair[a], 0, a, K)
    while True:
        # firsts: rows of the node's states for each state of the first neighbour of the block.
        for a in range(c0):
            for s in range(K):
                firsts[a * K + s] = rows[run * K + s]
                if run and pair[0] != NULL:
                    firsts[a * K + s] += pair[0][a * K + s]
        if K == 2 and c0 == 2 and n_inputs == 1 and length % 4 == 0:
            top = max(top, _halve(firsts, inputs[0].now, length, out + x, choice + x // 8))
        else:
            top = max(top, _reduce(firsts, c0, K, inputs, n_inputs, length, room.sums, x, out, choice))
        x += block
        a = run
        while a < width:
            digit[a] += 1
            if digit[a] < size[a]:
                break
            digit[a] = 0
            a += 1
        if a == width:
            return top
        for other in range(n_inputs):
            inputs[other].now += inputs[other].move[a]
        while a >= run:
            _add_row(rows, pair[a], digit[a], a, K)
            a -= 1


cdef inline double _larger(double x, double y) noexcept nogil:
    return x if x > y else y


cdef double _halve(const double* firsts, const double* now, Py_ssize_t length, double* out,
                   unsigned char* choice) noexcept nogil:
    # _reduce() for nodes of two states and one table, eight entries at a time.
    cdef double a = firsts[0], b = firsts[1], c = firsts[2], d = firsts[3], top = -INFINITY
    cdef Py_ssize_t x, k
    cdef double p, q, r, s
    cdef int bits
    for x in range(length // 4):
        bits = 0
        for k in range(4):
            p, q = now[4 * k] + a, now[4 * k + 1] + b
            r, s = now[4 * k + 2] + c, now[4 * k + 3] + d
            bits |= ((q > p) | (s > r) << 1) << 2 * k
            p, r = _larger(q, p), _larger(s, r)
            out[2 * k], out[2 * k + 1] = p, r
            top = _larger(top, _larger(p, r))
        choice[x] = <unsigned char>bits
        now += 16
        out += 8
    return top


cdef double _reduce(const double* firsts, int c0, Py_ssize_t K, const Input* inputs, int n_inputs,
                    Py_ssize_t length, double* sums, Py_ssize_t x, double* out,
                    unsigned char* choice) noexcept nogil:
    # Entries x .. x + c0 length - 1 of a table: the best state each; returns the largest.
    cdef Py_ssize_t s, behind = 0
    cdef double best, top = -INFINITY
    cdef const double* row
    cdef int a, other, c
    for k in range(length):
        for a in range(c0):
            for s in range(K):
                sums[s] = firsts[a * K + s]
            for other in range(n_inputs):
                row = inputs[other].now + behind
                for s in range(K):
                    sums[s] += row[s]
            best, c = sums[0], 0
            for s in range(1, K):
                if sums[s] > best:
                    best, c = sums[s], <int>s
            out[x] = best
            top = best if best > top else top
            if K == 2:
                choice[x >> 3] |= <unsigned char>(c << (x & 7))
            elif K > 256:
                (<int*>choice)[x] = c
            elif K > 1:
                choice[x] = <unsigned char>c
            x += 1
            behind += K
    return top


cdef inline void _add_row(double* rows, const double* table, int state, Py_ssize_t a,
                          Py_ssize_t K) noexcept nogil:
    # Row a: row a + 1, and the scores of the pair with neighbour a in its state.
    cdef double* row = rows + a * K
    cdef Py_ssize_t s
    for s in range(K):
        row[s] = row[K + s] if table == NULL else row[K + s] + table[state * K + s]


cdef Py_ssize_t largest_work(Plans plans, GraphShape shape, Py_ssize_t k) except -1:
    cdef Py_ssize_t g, size, most = 0
    cdef Plan plan
    cdef Model model
    if plans.graphs is not shape:
        raise ValueError("plans: found those of other graphs, expected those of `shape`")
    if k and not plans.keep:
        raise ValueError("plans: made without keep=True, expected it for the k best labelings")
    for g in range(shape.n_graphs):
        plan = plans.of(g)
        if plan.entries > 0:
            model = shape.graph(g)
            size = elimination_bytes(&plan, &model)
            most = max(most, elimination_kbest_bytes(&plan, &model, k) if k else size)
    return most


def best_labelings(GraphModel model not None, double most_table, double most_entries,
                   Py_ssize_t k=1):
    """Eliminate the nodes of one model.

    Parameters
    ----------
    model : GraphModel
    most_table, most_entries : float
        See :class:`Plans`.
    k : int, default=1
        Number of labelings.

    Returns
    -------
    labels : ndarray of int of shape (at most k, n), or None
        The best ones; None if no plan keeps these limits.
    values : ndarray
        Their scores; -inf if all are forbidden.
    """
    cdef Plans plans = Plans(model, most_table, most_entries, k > 1)
    cdef Plan plan = plans.of(0)
    cdef Py_ssize_t count = 1
    if not plan.entries > 0:
        return None, np.empty(0)
    labels, values = np.zeros((k, model.model.n), np.intc), np.full(k, -INFINITY)
    cdef int[:, ::1] view = labels
    cdef double[::1] value_view = values
    cdef char[::1] work = np.empty(elimination_kbest_bytes(&plan, &model.model, k), dtype=np.int8)
    with nogil:
        if k == 1:
            value_view[0] = eliminate(&model.model, &plan, &view[0, 0], &work[0])
        else:
            count = eliminate_kbest(&model.model, &plan, k, &view[0, 0], &value_view[0], &work[0])
    count = max(count, 1)
    return labels[:count], values[:count]
