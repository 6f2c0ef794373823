# Costs of a graph's states and pairs of states, kept equivalent while a search narrows them.
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

from structsolve.plugins.mrf.tables._model cimport Model


cdef enum:
    ARCS = 0                    # queues
    EXISTS = 1
    FEW = 2
    CELLS = 256                 # most cells of a table that an elimination makes


cdef struct Change:
    Py_ssize_t place            # in Network.x
    double before


cdef struct Elimination:
    int node
    int edges                   # number of edges before
    Py_ssize_t slot[4]          # places in `near` that it changed, -1: none
    int before[4]               # the edges there before


# Everything changes with the search but the tables.  The cost of a labeling is `low`, the costs
# of its states, and of its pairs: each table's cell less `x` of both states at phi_at.
cdef struct Network:
    const Model* model
    Py_ssize_t n
    int edges                   # those of the model, then those that eliminations made
    int most_edges
    const int* states
    const Py_ssize_t* unary_at
    int* ends
    Py_ssize_t* cell_at
    Py_ssize_t* phi_at
    double* cells
    double* x                   # costs of states, then amounts moved from tables to states
    int64_t* stamp              # the level at which it was last recorded
    char* alive                 # states
    int* size                   # states left of each node
    const Py_ssize_t* near_at
    int* near                   # edges of nodes, -1: merged into another
    int* rank                   # number of a node's elimination, -1: not eliminated
    double low                  # lower bound of all costs
    double high                 # cost of the best labeling, or infinite
    double margin, unit         # differences below are rounding; least useful gain
    double most                 # magnitude of all costs
    double pruned               # `low` when states were last compared with `high`
    double work                 # steps
    int blame                   # edge of the last conflict, -1: none
    double* weight              # number of conflicts of each edge
    # Records to go back.
    int64_t level
    Change* changes
    Py_ssize_t n_changes, room
    int* removed                # nodes and states
    Py_ssize_t n_removed
    Elimination* eliminations
    int n_eliminations
    # Queues of nodes: for arc consistency, existential consistency, elimination.
    int* queue[3]
    char* waits[3]
    Py_ssize_t head[3]
    Py_ssize_t count[3]
    char* lost                  # nodes that lost a state since they were last sent
    double* from_v
    double* to_w
    double* total
    void* blocks[24]
    int n_blocks


# A network of the model's costs, NULL without memory.
cdef Network* make_network(const Model* model) noexcept nogil
cdef void free_network(Network* net) noexcept nogil
cdef void assign(Network* net, int v, int s) noexcept nogil
# Undo all but the first changes, removals and eliminations.
cdef void undo(Network* net, Py_ssize_t changes, Py_ssize_t removed,
               int eliminations) noexcept nogil


cdef inline bint is_open(const Network* net, int v) noexcept nogil:
    return net.rank[v] < 0 and net.size[v] > 1


cdef inline int across(const Network* net, int e, int v) noexcept nogil:
    return net.ends[2 * e] + net.ends[2 * e + 1] - v


cdef inline double cell_cost(const Network* net, int e, int v, Py_ssize_t s,
                         Py_ssize_t t) noexcept nogil:
    # Cost of e for state s of v and t of its other end.
    cdef int w = across(net, e, v)
    if net.ends[2 * e] == v:
        return (net.cells[net.cell_at[e] + s * net.states[w] + t] - net.x[net.phi_at[e] + s]
                - net.x[net.phi_at[e] + net.states[v] + t])
    return (net.cells[net.cell_at[e] + t * net.states[v] + s] - net.x[net.phi_at[e] + t]
            - net.x[net.phi_at[e] + net.states[w] + s])


cdef inline void push(Network* net, int q, int v) noexcept nogil:
    cdef Py_ssize_t place
    if not net.waits[q][v]:
        net.waits[q][v] = 1
        place = net.head[q] + net.count[q]
        net.queue[q][place if place < net.n else place - net.n] = v
        net.count[q] += 1


cdef inline void set_cost(Network* net, Py_ssize_t place, double value) noexcept nogil:
    # Write to x, recorded once per level.
    if net.level and net.stamp[place] != net.level:
        if net.n_changes == net.room:
            net.room = 2 * net.room + 1024
            # Without memory for the record, the process cannot continue.
            net.changes = <Change*>realloc(net.changes, net.room * sizeof(Change))
        net.changes[net.n_changes].place = place
        net.changes[net.n_changes].before = net.x[place]
        net.n_changes += 1
        net.stamp[place] = net.level
    net.x[place] = value


cdef inline void normalise(Network* net, int w) noexcept nogil:
    # Move what all states of a node cost to the bound.
    cdef Py_ssize_t first = net.unary_at[w], t
    cdef double least = INFINITY
    for t in range(first, first + net.states[w]):
        if net.alive[t] and net.x[t] < least:
            least = net.x[t]
    if least != 0 and least < INFINITY:
        for t in range(first, first + net.states[w]):
            if net.alive[t]:
                set_cost(net, t, net.x[t] - least)
        net.low += least


cdef inline void remove_state(Network* net, int v, int s) noexcept nogil:
    net.alive[net.unary_at[v] + s] = 0
    net.size[v] -= 1
    net.removed[2 * net.n_removed] = v
    net.removed[2 * net.n_removed + 1] = s
    net.n_removed += 1
    net.lost[v] = 1
    push(net, ARCS, v)
    if net.size[v] > 0:
        normalise(net, v)
