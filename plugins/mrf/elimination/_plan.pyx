# build: glue
"""Orders to eliminate the nodes of graphs, and offsets of the tables of each step.

Plans are made once per graph, before scores are known.  A few rules give orders, and the order that
compares the fewest sums is taken.
"""

import numpy as np

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from structsolve.utils.allocate cimport allocated

from structsolve.plugins.mrf.tables._model cimport GraphModel, Model, other_end
from structsolve.plugins.mrf.tables._shape cimport GraphShape

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define ss_bits(x) __builtin_popcountll(x)
    #else
    static int ss_bits(unsigned long long x) { int n = 0; for (; x; x &= x - 1) n++; return n; }
    #endif
    """
    int ss_bits(uint64_t x) nogil

# Maximum number of nodes of a graph with a plan; of a graph whose fill is counted; squared nodes for
# one sum, beyond which fill is not counted if other orders fail.
cdef enum:
    MOST_NODES = 4096
    FEW_NODES = 1024
    FILLED = 4

# Rules for orders.
cdef enum Rule:
    GIVEN       # as nodes are numbered
    WEIGHT      # fewest labelings of the neighbours first
    FILL        # fewest new neighbours first


cdef struct Graph:
    # The rest of a graph: neighbours as bits.
    Py_ssize_t n, words
    uint64_t* near
    uint64_t* left
    double* weight      # labelings of each node's neighbours
    Py_ssize_t* fill    # pairs of neighbours that are not adjacent


cdef inline uint64_t* _row(const Graph* graph, Py_ssize_t v) noexcept nogil:
    return graph.near + v * graph.words


cdef void _measure(Graph* graph, const Model* model, Py_ssize_t v, bint fill) noexcept nogil:
    # weight and fill of v.
    cdef const uint64_t* row = _row(graph, v)
    cdef const uint64_t* other
    cdef Py_ssize_t k, j, u, degree = 0, known = 0
    cdef uint64_t bits
    graph.weight[v] = 1
    for k in range(graph.words):
        degree += ss_bits(row[k])
    for k in range(graph.words):
        bits = row[k]
        while bits:
            u = 64 * k + ss_bits((bits & -bits) - 1)
            bits &= bits - 1
            graph.weight[v] *= model.states[u]
            if fill:
                other = _row(graph, u)
                for j in range(graph.words):
                    known += ss_bits(row[j] & other[j])
    graph.fill[v] = (degree * (degree - 1) - known) // 2


cdef double _simulate(Graph* graph, const Model* model, Rule rule, double most_table,
                      double most_entries, int* order) noexcept nogil:
    """order <- an order by a rule; returns the sums that it compares.

    Infinite if one table, or all together, are too large.
    """
    cdef Py_ssize_t n = graph.n, W = graph.words, step, v, u, k, best, e, degree
    cdef double total = 0
    cdef uint64_t bits
    cdef uint64_t* row
    cdef uint64_t* other
    cdef bint fill = rule == FILL, better
    memset(graph.near, 0, n * W * sizeof(uint64_t))
    memset(graph.left, 0, W * sizeof(uint64_t))
    for e in range(model.m):
        u, v = model.ends[2 * e], model.ends[2 * e + 1]
        _row(graph, u)[v >> 6] |= <uint64_t>1 << (v & 63)
        _row(graph, v)[u >> 6] |= <uint64_t>1 << (u & 63)
    for v in range(n):
        graph.left[v >> 6] |= <uint64_t>1 << (v & 63)
        _measure(graph, model, v, fill)
    for step in range(n):
        best = -1
        for k in range(W):
            bits = graph.left[k]
            while bits:
                v = 64 * k + ss_bits((bits & -bits) - 1)
                bits &= bits - 1
                if best < 0:
                    best = v
                elif rule == GIVEN:
                    break
                else:
                    better = graph.weight[v] < graph.weight[best]
                    if rule == FILL and graph.fill[v] != graph.fill[best]:
                        better = graph.fill[v] < graph.fill[best]
                    best = v if better else best
            if rule == GIVEN and best >= 0:
                break
        v = best
        order[step] = <int>v
        total += graph.weight[v] * model.states[v]
        row = _row(graph, v)
        degree = 0
        for k in range(W):
            degree += ss_bits(row[k])
        if degree > WIDEST or graph.weight[v] > most_table or total > most_entries:
            return INFINITY
        graph.left[v >> 6] &= ~(<uint64_t>1 << (v & 63))
        for k in range(W):
            bits = row[k]
            while bits:
                u = 64 * k + ss_bits((bits & -bits) - 1)
                bits &= bits - 1
                other = _row(graph, u)
                for e in range(W):
                    other[e] |= row[e]
                other[u >> 6] &= ~(<uint64_t>1 << (u & 63))
                other[v >> 6] &= ~(<uint64_t>1 << (v & 63))
        _update(graph, model, row, fill)
    return total


cdef void _update(Graph* graph, const Model* model, const uint64_t* row, bint fill) noexcept nogil:
    # Update the neighbours of an eliminated node; for fill, their neighbours too.
    cdef Py_ssize_t k, u
    cdef uint64_t bits
    for k in range(graph.words):
        bits = row[k]
        while bits:
            u = 64 * k + ss_bits((bits & -bits) - 1)
            bits &= bits - 1
            _measure(graph, model, u, fill)
    if not fill:
        return
    for u in range(graph.n):
        if graph.left[u >> 6] >> (u & 63) & 1:
            for k in range(graph.words):
                if _row(graph, u)[k] & row[k]:
                    _measure(graph, model, u, True)
                    break


cdef double _least_entries(const Model* model, int* seen) noexcept nogil:
    """A lower bound of the sums that any order compares.

    Their logarithms count each state once, and each edge when its first end is eliminated: the mean
    of the logarithms bounds that of the sums.
    """
    cdef Py_ssize_t v, j
    cdef int w, least, known = 1
    cdef double total = 0, size = 0     # the logarithm of `known`
    for v in range(model.n):
        seen[v] = -1
    for v in range(model.n):
        if model.states[v] != known:
            known, size = model.states[v], log(model.states[v])
        total += size
        for j in range(model.near_at[v], model.near_at[v + 1]):
            w = other_end(model, model.near[j], v)
            if w > v and seen[w] != v:
                seen[w] = <int>v
                least = model.states[w]
                total += size if least >= known else log(least)
    return (1 - 1e-9) * model.n * exp(total / model.n)


cdef double _best_order(Graph* graph, const Model* model, double most_table, double most_entries,
                        int* order, int* trial) noexcept nogil:
    # order <- the cheapest of all rules'; returns its cost, infinite if none is possible.
    cdef double best = INFINITY, cost
    cdef int rule
    if _least_entries(model, trial) > most_entries:
        return INFINITY
    for rule in range(3):
        if rule == FILL and (graph.n > FEW_NODES or (
                best == INFINITY and <double>graph.n * graph.n > FILLED * most_entries)):
            continue
        cost = _simulate(graph, model, <Rule>rule, most_table, min(most_entries, best), trial)
        if cost < best:
            best = cost
            memcpy(order, trial, graph.n * sizeof(int))
    return best


cdef Py_ssize_t _scopes(Graph* graph, const Model* model, const int* order, int* position,
                        Py_ssize_t* scope_at, int* scope) noexcept nogil:
    # scope <- the steps that eliminate each step's neighbours, rising; NULL: only counts them.
    cdef Py_ssize_t n = graph.n, W = graph.words, step, v, e, k, size = 0, first
    cdef uint64_t bits
    cdef uint64_t* row
    cdef uint64_t* other
    for step in range(n):
        position[order[step]] = <int>step
    # Nodes are numbered by their steps: the lowest bit of a row is eliminated first.
    memset(graph.near, 0, n * W * sizeof(uint64_t))
    for e in range(model.m):
        k, v = position[model.ends[2 * e]], position[model.ends[2 * e + 1]]
        step, v = min(k, v), max(k, v)
        _row(graph, step)[v >> 6] |= <uint64_t>1 << (v & 63)
    for step in range(n):
        row = _row(graph, step)
        if scope != NULL:
            scope_at[step] = size
        first = -1
        for k in range(W):
            bits = row[k]
            while bits:
                v = 64 * k + ss_bits((bits & -bits) - 1)
                bits &= bits - 1
                if scope != NULL:
                    scope[size] = <int>v
                size += 1
                if first < 0:
                    first = v
        if first >= 0:
            # The remaining nodes are neighbours of each other: the first one has all others.
            other = _row(graph, first)
            for k in range(W):
                other[k] |= row[k]
            other[first >> 6] &= ~(<uint64_t>1 << (first & 63))
    if scope != NULL:
        scope_at[n] = size
    return size


cdef Py_ssize_t _place(const Model* model, const int* order, const Py_ssize_t* scope_at,
                       const int* scope, Py_ssize_t* table_at, Py_ssize_t* choice_at,
                       Py_ssize_t* size, int* live, bint keep) noexcept nogil:
    """Place choices, and tables in the first gap that is large enough; returns doubles.

    `keep`: tables are never overwritten.
    """
    cdef Py_ssize_t n = model.n, step, k, j, count = 0, most = 0, end, gap
    cdef Py_ssize_t K
    choice_at[0] = 0
    for step in range(n):
        size[step] = 1
        for k in range(scope_at[step], scope_at[step + 1]):
            size[step] *= model.states[order[scope[k]]]
        K = model.states[order[step]]
        choice_at[step + 1] = choice_at[step] + (
            (size[step] + 7) // 8 if K == 2 else size[step] * (1 if K <= 256 else 4) if K > 2 else 0)
        # 4-byte choices at multiples of 4.
        choice_at[step + 1] = (choice_at[step + 1] + 7) // 8 * 8
        # `live`: steps whose tables wait, by offset.
        end = 0
        gap = count
        for k in range(count):
            if table_at[live[k]] - end >= size[step]:
                gap = k
                break
            end = table_at[live[k]] + size[live[k]]
        table_at[step] = end
        most = max(most, end + size[step])
        for k in range(count, gap, -1):
            live[k] = live[k - 1]
        live[gap] = <int>step
        count += 1
        # Free the tables used by this step; one without neighbours is a number, added at once.
        j = count if keep else 0
        for k in range(0 if keep else count):
            if live[k] == step:
                if scope_at[step + 1] > scope_at[step]:
                    live[j] = live[k]
                    j += 1
            elif scope[scope_at[live[k]]] != step:
                live[j] = live[k]
                j += 1
        count = j
    return most


cdef int make_plan(const Model* model, double most_table, double most_entries, bint keep,
                   Plan* plan) except -1 nogil:
    cdef Py_ssize_t n = model.n, W = (n + 63) // 64, size
    cdef Graph graph
    cdef Py_ssize_t* starts
    cdef int* position
    cdef int* order
    cdef char* memory
    memset(plan, 0, sizeof(Plan))
    plan.n = n
    if n > MOST_NODES:
        return 0
    memory = <char*>allocated(
        malloc((n * W + W + 3 * n) * sizeof(uint64_t) + 3 * n * sizeof(int)), b"a graph's nodes")
    graph.n, graph.words = n, W
    graph.near = <uint64_t*>memory
    graph.left = graph.near + n * W
    graph.weight = <double*>(graph.left + W)
    graph.fill = <Py_ssize_t*>(graph.weight + n)
    position = <int*>(graph.fill + 2 * n)       # behind the sizes of tables
    order = position + n
    plan.entries = _best_order(&graph, model, most_table, most_entries, order, order + n)
    if plan.entries == INFINITY:
        plan.entries = 0
        free(memory)
        return 0
    size = _scopes(&graph, model, order, position, NULL, NULL)
    starts = <Py_ssize_t*>malloc(3 * (n + 1) * sizeof(Py_ssize_t) + (size + n) * sizeof(int))
    if starts == NULL:
        free(memory)
        raise MemoryError("no memory for a plan")
    plan.scope_at, plan.table_at, plan.choice_at = starts, starts + n + 1, starts + 2 * n + 2
    plan.order = <int*>(starts + 3 * n + 3)
    plan.scope = plan.order + n
    memcpy(<int*>plan.order, order, n * sizeof(int))
    _scopes(&graph, model, order, position, starts, <int*>plan.scope)
    plan.doubles = _place(model, order, starts, plan.scope, starts + n + 1, starts + 2 * n + 2,
                          graph.fill + n, order + n, keep)
    free(memory)
    return 0


def is_wide(GraphModel model not None, double most):
    """Return whether all orders, and enumeration, take more than ``most`` sums, if it is plain.

    Parameters
    ----------
    model : GraphModel
    most : float

    Returns
    -------
    bool
        False also where only a plan could tell.
    """
    cdef Py_ssize_t v
    cdef double labelings = 1
    for v in range(model.model.n):
        labelings *= model.model.states[v]
        if labelings > most:
            break
    else:
        return False
    cdef int[::1] seen = np.empty(model.model.n, np.intc)
    return model.model.n > MOST_NODES or _least_entries(&model.model, &seen[0]) > most


cdef void free_plan(Plan* plan) noexcept nogil:
    free(<void*>plan.scope_at)


cdef class Plans:
    """Plans of some graphs, if their cost is within limits.

    Parameters
    ----------
    graphs : GraphShape or GraphModel
    most_table : float
        Maximum number of entries of a table.
    most_entries : float
        Maximum number of sums to compare for one graph.
    keep : bool, default=False
        Keep all tables, for the k best.

    Attributes
    ----------
    most_entries : float
        Maximum number of sums of any graph; infinite if one has no plan.
    """

    def __cinit__(self, graphs, double most_table, double most_entries, bint keep=False):
        cdef GraphShape shape = graphs if isinstance(graphs, GraphShape) else None
        cdef GraphModel single = None if shape is not None else graphs
        if shape is None and single is None:
            raise TypeError("graphs is None, expected a GraphShape or a GraphModel")
        cdef Py_ssize_t g, count = 1 if shape is None else shape.n_graphs
        cdef Model model
        self.plans = <Plan*>allocated(calloc(count + 1, sizeof(Plan)), b"plans")
        self.graphs, self.keep, self.count = graphs, keep, count
        for g in range(count):
            model = single.model if shape is None else shape.graph(g)
            make_plan(&model, most_table, most_entries, keep, &self.plans[g])
            self.most_entries = max(self.most_entries, self.plans[g].entries or INFINITY)

    def __dealloc__(self):
        cdef Py_ssize_t g
        for g in range(self.count):
            free_plan(&self.plans[g])
        free(self.plans)

    cdef Plan of(self, Py_ssize_t g) noexcept nogil:
        return self.plans[g]
