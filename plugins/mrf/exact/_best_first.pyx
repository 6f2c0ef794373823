"""Exact search that is anytime: hybrid best-first search on a network of costs.

Dives go depth first from the open node of the lowest bound; after some failures a dive ends, and
what it has left becomes open nodes (Allouche, de Givry, Katsirelos, Schiex, Zytnicki 2015).  The
next node has few states and many conflicts (Boussemart, Hemery, Lecoutre, Sais 2004), that of the
last conflict first (Lecoutre, Sais, Tabary, Vidal 2009).  Before a first labeling, it is the node
whose states differ most in cost.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from structsolve.plugins.mrf.exact._cost_network cimport (
    Network, assign, free_network, is_open, make_network, remove_state, undo,
)
from structsolve.plugins.mrf.local_search._climb cimport climb, climb_bytes
from structsolve.plugins.mrf.tables._model cimport Model, score
from structsolve.plugins.mrf.exact._small_degrees cimport complete
from structsolve.plugins.mrf.exact._soft_consistency cimport (
    AGAIN, FORBIDDEN, propagate, shorten, sweep, transform, wake,
)

# Rounds of messages before the search.
cdef int SWEEPS = 30
# From messages of TRW-S, so many and one for each NODES, MORE at most.
cdef int FEW_SWEEPS = 3, NODES = 32, MORE = 20
# Failures after which a dive ends, at most; while replays are within these shares of all choices.
cdef long long LONGEST = 16384
cdef double RARE = 0.05, OFTEN = 0.1
# Steps kept for open nodes; then dives no longer end.
cdef Py_ssize_t MOST_STEPS = 2 ** 22


cdef Search* make_search(const Model* model, const int* label, const double* phi,
                         Py_ssize_t phi_step) noexcept nogil:
    cdef Search* search = <Search*>calloc(1, sizeof(Search))
    cdef Py_ssize_t n = model.n, width = model.unary_at[model.n]
    cdef Network* net
    cdef double value
    cdef int i
    if search == NULL:
        return NULL
    search.net = net = make_network(model)
    search.levels = <Level*>malloc((n + 2) * sizeof(Level))
    search.path = <Choice*>malloc((width + 1) * sizeof(Choice))
    search.best = <int*>calloc(n + 1, sizeof(int))
    search.trial = <int*>calloc(n + 1, sizeof(int))
    search.scratch = <char*>malloc(climb_bytes(model) + 8)
    search.blocks = [search.levels, search.path, search.best, search.trial, search.scratch]
    for i in range(5):
        if search.blocks[i] == NULL or net == NULL:
            free_search(search)
            return NULL
    search.last = -1
    search.allowed = 1
    search.next_level = 1
    value = score(model, label)
    if value > -INFINITY:
        net.high = -value
        memcpy(search.best, label, n * sizeof(int))
    shorten(net)
    search.sweeps = SWEEPS
    if phi != NULL:
        search.sweeps = <int>min(MORE, FEW_SWEEPS + n / NODES)
        transform(net, phi, phi_step)
    return search


cdef void free_search(Search* search) noexcept nogil:
    cdef int i
    if search == NULL:
        return
    free_network(search.net)
    for i in range(5):
        free(search.blocks[i])
    free(search.steps)
    free(search.heap)
    free(search)


cdef inline bint _before(const Open* a, const Open* b) noexcept nogil:
    return a.low < b.low or (a.low == b.low and a.depth > b.depth)


cdef void _open(Search* search, double low, Py_ssize_t step, int depth) noexcept nogil:
    cdef Py_ssize_t i = search.n_open, up
    cdef Open new
    if low >= search.net.high - search.net.margin:
        return
    new.low, new.step, new.depth = low, step, depth
    if i == search.open_room:
        search.open_room = 2 * search.open_room + 256
        search.heap = <Open*>realloc(search.heap, search.open_room * sizeof(Open))
    search.n_open += 1
    while i > 0:
        up = (i - 1) >> 1
        if not _before(&new, search.heap + up):
            break
        search.heap[i] = search.heap[up]
        i = up
    search.heap[i] = new


cdef Open _take(Search* search) noexcept nogil:
    cdef Open first = search.heap[0], last
    cdef Py_ssize_t i = 0, j
    search.n_open -= 1
    last = search.heap[search.n_open]
    while True:
        j = 2 * i + 1
        if j >= search.n_open:
            break
        if j + 1 < search.n_open and _before(search.heap + j + 1, search.heap + j):
            j += 1
        if not _before(search.heap + j, &last):
            break
        search.heap[i] = search.heap[j]
        i = j
    search.heap[i] = last
    return first


cdef Py_ssize_t _step(Search* search, Choice choice, Py_ssize_t before) noexcept nogil:
    if search.n_steps == search.step_room:
        search.step_room = 2 * search.step_room + 256
        search.steps = <Step*>realloc(search.steps, search.step_room * sizeof(Step))
    search.steps[search.n_steps].choice = choice
    search.steps[search.n_steps].before = before
    search.n_steps += 1
    return search.n_steps - 1


cdef void _enter(Search* search, Choice choice) noexcept nogil:
    # A new level, to which back() returns.
    cdef Network* net = search.net
    cdef Level* level = search.levels + search.depth
    level.choice = choice
    level.low, level.pruned, level.level = net.low, net.pruned, net.level
    level.changes, level.removed = net.n_changes, net.n_removed
    level.eliminations, level.path = net.n_eliminations, search.length
    net.level = search.next_level
    search.next_level += 1
    search.depth += 1


cdef void _back(Search* search) noexcept nogil:
    cdef Network* net = search.net
    cdef Level* level
    search.depth -= 1
    level = search.levels + search.depth
    undo(net, level.changes, level.removed, level.eliminations)
    net.low, net.pruned, net.level = level.low, level.pruned, level.level
    search.length = level.path


cdef bint _make(Search* search, Choice choice) noexcept nogil:
    # Without propagation; False if the choice is impossible.
    cdef Network* net = search.net
    search.path[search.length] = choice
    search.length += 1
    search.choices += 1
    if not net.alive[net.unary_at[choice.node] + choice.state]:
        return not choice.takes
    if choice.takes:
        assign(net, choice.node, choice.state)
    else:
        remove_state(net, choice.node, choice.state)
    return net.size[choice.node] > 0


cdef bint _resume(Search* search) noexcept nogil:
    # Go to the best open node; False if it has no labeling that is better.
    cdef Open node = _take(search)
    cdef Choice none
    cdef Py_ssize_t i
    cdef bint possible = True
    none.node, none.state, none.takes = -1, 0, False
    _enter(search, none)
    i = node.step
    while i >= 0:
        possible = _make(search, search.steps[i].choice) and possible
        search.replayed += 1
        i = search.steps[i].before
    # Queues are empty only after propagate().
    possible = propagate(search.net) and possible
    search.floor = node.low
    return possible


cdef double _regret(const Network* net, int v) noexcept nogil:
    # By how much the second cheapest state costs more than the cheapest.
    cdef double first = INFINITY, second = INFINITY, x
    cdef Py_ssize_t s
    for s in range(net.unary_at[v], net.unary_at[v] + net.states[v]):
        if net.alive[s]:
            x = net.x[s]
            if x < first:
                second, first = first, x
            elif x < second:
                second = x
    return second - first


cdef int _next_node(Search* search) noexcept nogil:
    # -1: all nodes have one state or are eliminated.
    cdef Network* net = search.net
    cdef Py_ssize_t j
    cdef int v, e, best = -1
    cdef double weight, x, least = INFINITY
    if search.last >= 0 and is_open(net, search.last):
        return search.last
    for v in range(net.n):
        if not is_open(net, v):
            continue
        if net.high == INFINITY:
            x = -_regret(net, v)
            if x < least:
                least, best = x, v
            continue
        weight = 1
        for j in range(net.near_at[v], net.near_at[v + 1]):
            e = net.near[j]
            if e >= 0 and is_open(net, net.ends[2 * e] + net.ends[2 * e + 1] - v):
                weight += net.weight[e]
        x = net.size[v] / weight
        if x < least:
            least, best = x, v
    net.work += net.n
    return best


cdef int _next_state(const Search* search, int v) noexcept nogil:
    # The cheapest, that of the best labeling on ties.
    cdef const Network* net = search.net
    cdef Py_ssize_t first = net.unary_at[v]
    cdef int s, best = search.best[v]
    if not net.alive[first + best]:
        best = -1
    for s in range(net.states[v]):
        if net.alive[first + s] and (best < 0 or net.x[first + s] < net.x[first + best]):
            best = s
    return best


cdef void _improve(Search* search) noexcept nogil:
    # All nodes are decided: keep the labeling, improved by local search, if it is the best.
    cdef Network* net = search.net
    cdef Py_ssize_t i
    cdef double value, better
    complete(net, search.trial)
    value = score(net.model, search.trial)
    if -value >= net.high:
        return
    search.unclimbed -= 1
    if search.unclimbed < 0:
        # After a local search without a gain, twice as many labelings do without.
        better = climb(net.model, search.trial, search.scratch)
        search.idle = 0 if better > value else 2 * search.idle + 1
        search.unclimbed = search.idle
        value = better
    net.high = -value
    memcpy(search.best, search.trial, net.n * sizeof(int))
    for i in range(search.depth):
        search.levels[i].pruned = -INFINITY


cdef void _leave(Search* search) noexcept nogil:
    # End a dive: what it has left becomes open nodes.
    cdef Py_ssize_t last = -1, i, j = 0
    cdef Choice other
    for i in range(1, search.depth):
        while j < search.levels[i].path:
            last = _step(search, search.path[j], last)
            j += 1
        other = search.levels[i].choice
        other.takes = False
        _open(search, max(search.floor, search.levels[i].low), _step(search, other, last), <int>i)
    while search.depth:
        _back(search)


cdef inline void _blame(Search* search, Choice choice) noexcept nogil:
    if not search.possible:
        search.last = choice.node
        if search.net.blame >= 0:
            search.net.weight[search.net.blame] += 1


cdef void _fail(Search* search) noexcept nogil:
    cdef Network* net = search.net
    cdef Choice choice
    if search.depth == 1:
        _back(search)
        search.dives = False
        return
    search.fails += 1
    # Failures cost less than a way back to what is left.
    if search.fails > max(search.allowed, search.depth / 2) and search.n_steps < MOST_STEPS:
        _leave(search)
        search.dives = False
        return
    choice = search.levels[search.depth - 1].choice
    _back(search)
    choice.takes = False
    search.possible = _make(search, choice)
    search.possible = propagate(net) and search.possible
    _blame(search, choice)


cdef bint advance(Search* search, double steps) noexcept nogil:
    cdef Network* net = search.net
    cdef double end = net.work + steps
    cdef Choice choice
    cdef int state
    while search.sweeps and net.work < end:
        state = sweep(net)
        search.sweeps = search.sweeps - 1 if state == AGAIN else 0
        if state == FORBIDDEN:
            return True
        if not search.sweeps:
            wake(net)
            if not propagate(net):
                return True
            _open(search, net.low, -1, 0)
    if search.sweeps:
        return False
    while net.work < end:
        if not search.dives:
            if not search.n_open or search.heap[0].low >= net.high - net.margin:
                return True
            if search.replayed > OFTEN * search.choices and search.allowed < LONGEST:
                search.allowed *= 2
            elif search.replayed < RARE * search.choices and search.allowed > 1:
                search.allowed /= 2
            search.fails = 0
            search.dives = True
            search.possible = _resume(search)
        elif not search.possible:
            _fail(search)
        else:
            choice.node = _next_node(search)
            if choice.node < 0:
                _improve(search)
                search.possible = False
                continue
            choice.state, choice.takes = _next_state(search, choice.node), True
            _enter(search, choice)
            _make(search, choice)
            search.possible = propagate(net)
            _blame(search, choice)
    return not search.dives and (not search.n_open or search.heap[0].low >= net.high - net.margin)


cdef double lowest(const Search* search) noexcept nogil:
    # The bounds of a dive rise with its levels.
    cdef double low = INFINITY
    if search.sweeps:
        return min(search.net.low, search.net.high)
    if search.n_open:
        low = search.heap[0].low
    if search.dives:
        low = min(low, max(search.floor, search.levels[1].low if search.depth > 1
                           else search.net.low))
    return min(low, search.net.high)
