"""The relaxation of graphs of any number of states: dual ascent, then a primal-dual method."""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.operators cimport Relaxation
from structsolve.part_layout cimport PartLayout
from structsolve.utils.alignment cimport align

from structsolve.plugins.mrf.relaxation._dual_core cimport (
    Core, build_core, core_bytes, lift_core, place_core, solve_core,
)
from structsolve.plugins.mrf.relaxation._dual_float cimport (
    lift_singles, place_singles, set_messages, singles_bytes, sweep_singles,
)
from structsolve.plugins.mrf.relaxation._dual_passes cimport (
    Split, clear_split, place_split, split_bytes, split_score, sweep,
)
from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.tables._shape cimport GraphShape

# Passes forward and back before the primal-dual method, and between its rounds on small graphs; the
# method comes earlier if STALL passes close less than SLOW of the gap.
cdef int PASSES = 40, MORE = 3, STALL = 5
cdef double SLOW = 0.2
# Larger graphs run passes in single precision, between passes in double precision, if the largest
# score is between 1 / LARGE and LARGE; these passes end when the gap is ENOUGH of the stopping gap.
cdef double LARGE = 1e30, ENOUGH = 0.95
# Active states are within SLACK of the gap of the best; each further round doubles SLACK.
cdef double SLACK = 0.03
cdef int ROUNDS = 4, STEPS = 200
# Graphs of up to this number of parts are solved further, if necessary by a linear program.
cdef Py_ssize_t SMALL = 4096
cdef int SMALL_ROUNDS = 6, SMALL_STEPS = 1500
cdef double SMALL_TOL = 1e-9
# Maximum number of parts of edges for the primal-dual method.
cdef Py_ssize_t CELLS = 1 << 14
# Rounding error of bounds, relative to their summands.
cdef double NOISE = 1e-14
# ... and of marginals that are recognised as a labeling.
cdef double WHOLE = 1e-6


# State of one answer.
cdef struct Search:
    bint small, single          # few parts; whether passes in single precision help
    bint fractional             # mu holds the best point, which is no labeling
    double tol, noise           # gap at which to stop; rounding of the bound
    double largest, rough, floor, never     # see _measure()
    double value, bound
    char* room                  # of passes in single precision


cdef class DualRelaxation(Relaxation):
    """The best point of the local polytope, up to a gap given by the bound.

    Sequential dual ascent (TRW-S) comes first, mostly in single precision on larger graphs.  If
    labeling and bound do not meet, nearly best states make a smaller linear
    program; a primal-dual method solves it roughly from the last one's point, its point is moved
    onto the local polytope, its messages go back to all states, and so on.

    An answer depends only on the scores and on the gap given to :meth:`allow`: messages of earlier
    calls hardly help.

    Parameters
    ----------
    finish : Relaxation
        Answers if a small graph has a gap above 1e-9, and if no point was found that avoids
        forbidden parts.
    tol : float
        Stopping gap on larger graphs, relative to the bound.
    shape : GraphShape
    layout : PartLayout
    """

    cdef GraphShape shape
    cdef Relaxation finish
    cdef double tol, allowed
    cdef Py_ssize_t split_at, core_at, singles_at, width, states, cells

    def __init__(self, Relaxation finish not None, double tol, GraphShape shape not None,
                 PartLayout layout not None):
        super().__init__(layout)
        self.finish, self.tol, self.shape, self.n_states = finish, tol, shape, shape.n_states
        self.width = shape.row
        self.states = shape.max_nodes * ((shape.max_states + 3) // 4 * 4)
        self.cells = min(CELLS, shape.max_edges * shape.max_states * self.states // shape.max_nodes)
        # Scores if not read from theta; messages; the smaller program.
        self.split_at = (8 * layout.max_theta + 127) // 64 * 64
        self.core_at = self.split_at + (
            split_bytes(shape.max_nodes, shape.max_edges, self.width) + 127) // 64 * 64
        self.singles_at = self.core_at + (core_bytes(
            shape.max_nodes, shape.max_edges, self.width, self.states,
            self.cells) + 127) // 64 * 64
        self.work_bytes = max(finish.work_bytes, 64 + self.singles_at + singles_bytes(
            shape.max_nodes, shape.max_edges, self.width, shape.edge_step != 0, shape.symmetric))

    def allow(self, double gap):
        """Stop at this gap if it is wider; see the base."""
        self.allowed = gap

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef Split split
        cdef Core core
        cdef Search search
        cdef char* room = align(work)
        cdef bint fractional
        cdef double least
        self._begin(i, theta, room, &split, &search)
        place_core(&core, split.n, split.m, self.width, self.states, self.cells,
                   room + self.core_at)
        self._solve(i, &split, &core, &search, mu, label)
        bound[0] = search.bound
        if search.bound < search.floor:     # any allowed labeling scores more: there is none
            memset(label, 0, split.n * sizeof(int))
            search.fractional, bound[0] = False, -INFINITY
        fractional = search.fractional and not self._whole(i, mu, label)
        if fractional:
            value[0] = self._inner(i, theta, mu)
        else:
            value[0] = self._score(i, &split, theta, label)
            self.shape.indicate(i, label, mu)
        if bound[0] > -INFINITY and (value[0] == -INFINITY or (
                search.small and bound[0] - value[0] > search.tol)):
            fractional = not self.finish.relax(i, theta, mu, label, value, &least, work)
            bound[0] = min(bound[0], least)
        if bound[0] < value[0] + search.noise:      # equal up to rounding
            bound[0] = value[0]
        return not fractional

    cdef bint _whole(self, Py_ssize_t i, const double* mu, int* label) noexcept nogil:
        # Is the point a labeling up to rounding?
        cdef Model graph = self.shape.graph(i)
        cdef const double* row = mu + self.shape.node_start
        cdef Py_ssize_t v
        cdef int s
        for v in range(graph.n):
            label[v] = -1
            for s in range(graph.states[v]):
                if row[s] > 1 - WHOLE:
                    label[v] = s
            if label[v] < 0:
                return False
            row += self.shape.node_step
        return True

    cdef void _begin(self, Py_ssize_t i, const double* theta, char* room, Split* split,
                     Search* search) noexcept nogil:
        # The graph, and its scores with finite ones in place of -inf.
        cdef Model graph = self.shape.graph(i)
        cdef Py_ssize_t e, j, size = self.shape.theta_size(i), parts
        cdef int s, t
        cdef bint forbidden
        cdef double* scores = <double*>room
        cdef double* row
        split.node_step, split.table_step = self.shape.node_step, self.shape.edge_step
        split.node, split.table = theta + self.shape.node_start, theta + self.shape.pairs_of(i)
        if self.shape.symmetric:
            memcpy(scores, theta, size * sizeof(double))
            for e in range(graph.m if self.shape.edge_step else 1):
                row = scores + self.shape.pairs_of(i) + e * self.shape.edge_step
                for s in range(self.shape.max_states):
                    for t in range(s):
                        row[s * self.width + t] = row[t * self.width + s]
            split.node = scores + self.shape.node_start
            split.table = scores + self.shape.pairs_of(i)
        place_split(split, &graph, self.width, room + self.split_at)
        forbidden = _measure(split, search)
        if forbidden:
            if not self.shape.symmetric:
                memcpy(scores, theta, size * sizeof(double))
                split.node = scores + self.shape.node_start
                split.table = scores + self.shape.pairs_of(i)
            for j in range(size):
                if scores[j] == -INFINITY:
                    scores[j] = search.never
        parts = 0
        for e in range(graph.m):
            parts += graph.states[graph.ends[2 * e]] * graph.states[graph.ends[2 * e + 1]]
        search.small = parts <= SMALL
        search.single = not (search.small or forbidden) and 1 / LARGE < search.largest < LARGE
        search.room = room + self.singles_at
        clear_split(split)

    cdef void _solve(self, Py_ssize_t i, Split* split, Core* core, Search* search, double* mu,
                     int* label) noexcept nogil:
        cdef int r, fits, rounds = SMALL_ROUNDS if search.small else ROUNDS
        cdef double slack, value = -INFINITY, x
        search.bound, search.value, search.fractional = INFINITY, -INFINITY, False
        for r in range(rounds + 1):
            if search.single:
                value = self._ascend_in_singles(split, search, r == 0, value, label)
            else:
                value = self._ascend(split, search, MORE if r else PASSES, value, label)
            if search.bound - search.value <= search.tol or r == rounds:
                break
            slack = SLACK * (search.bound - search.value) * (1 << r)
            fits = 30
            while fits and not build_core(core, split, label, slack):
                slack, fits = 0.7 * slack, fits - 1
            if not fits:        # too many states are nearly best
                break
            solve_core(core, 0.3 * search.tol, search.bound - search.tol - core.base,
                       SMALL_STEPS if search.small else STEPS)
            value = _round(split, core, value, label)
            if value > search.value:
                search.value, search.fractional = value, False
            x = core.base + core.value
            if x > search.value and search.bound - search.value > search.tol:
                search.value, search.fractional = x, True
                self._write(i, split, core, mu)
            lift_core(core, split)

    cdef double _ascend(self, Split* split, Search* search, int passes, double value,
                        int* label) noexcept nogil:
        # Passes until the gap is closed or they are slow; returns the score of the best labeling.
        cdef int k
        cdef double x, before = INFINITY
        for k in range(passes):
            if k % STALL == 0:
                if before - search.bound < SLOW * (search.bound - search.value):
                    break
                before = search.bound
            sweep(split, False)
            x = sweep(split, True)
            search.noise = NOISE * (fabs(x) + search.rough)
            search.bound = min(search.bound, x + search.noise)
            search.tol = max(2 * search.noise, (SMALL_TOL if search.small else self.tol)
                             * max(fabs(x), 0.01 * search.rough))
            search.tol = max(search.tol, self.allowed)
            x = split_score(split, split.trial)
            if x > value or value == -INFINITY:
                value = x
                memcpy(label, split.trial, split.n * sizeof(int))
            if value > search.value:
                search.value, search.fractional = value, False
            if search.bound - search.value <= search.tol:
                break
        return value

    cdef double _ascend_in_singles(self, Split* split, Search* search, bint first, double value,
                                   int* label) noexcept nogil:
        # As _ascend(), with passes in single precision before the last one.
        cdef int k
        cdef double x, bound, before = INFINITY
        if first:
            value = self._ascend(split, search, 1, value, label)
            if search.bound - search.value <= search.tol:
                return value
            place_singles(split, search.largest, self.shape.symmetric, search.room)
        else:
            set_messages(split, search.room)
        for k in range(PASSES):
            bound = sweep_singles(search.room, split, split.trial)
            x = split_score(split, split.trial)
            if x > value:
                value = x
                memcpy(label, split.trial, split.n * sizeof(int))
            if bound - max(value, search.value) <= ENOUGH * search.tol:
                break
            if k % STALL == 0:
                if before - bound < SLOW * (bound - max(value, search.value)):
                    break
                before = bound
        lift_singles(search.room, split)
        if value > search.value:
            search.value, search.fractional = value, False
        return self._ascend(split, search, 1, value, label)

    cdef double _score(self, Py_ssize_t i, const Split* split, const double* theta,
                       const int* label) noexcept nogil:
        cdef const double* table = theta + self.shape.pairs_of(i)
        cdef double total = 0
        cdef Py_ssize_t v, e
        for v in range(split.n):
            total += theta[self.shape.node_start + v * self.shape.node_step + label[v]]
        for e in range(split.m):
            total += table[e * self.shape.edge_step + self.shape.cell(label, split.ends + 2 * e)]
        return total

    cdef double _inner(self, Py_ssize_t i, const double* theta, const double* mu) noexcept nogil:
        # <theta, mu>; parts that mu leaves out may score -inf.
        cdef double total = 0
        cdef Py_ssize_t j
        for j in range(self.shape.theta_size(i)):
            if mu[j] != 0:
                total += mu[j] * theta[j]
        return total

    cdef void _write(self, Py_ssize_t i, const Split* split, const Core* core,
                     double* mu) noexcept nogil:
        # mu <- the best point of the smaller program.
        cdef Py_ssize_t f = 0, e, v, u, a, b, ka, kb, columns
        cdef int[2] pair
        cdef double* table = mu + self.shape.pairs_of(i)
        cdef double* row
        cdef double each
        memset(mu, 0, self.shape.theta_size(i) * sizeof(double))
        for v in range(split.n):
            row = mu + self.shape.node_start + v * self.shape.node_step
            u = core.slot[v]
            if u < 0:
                row[core.label[v]] = 1
                continue
            for a in range(core.state_at[u], core.state_at[u] + core.count[u]):
                row[core.state[a]] = core.best[a]
        for e in range(split.m):
            u, v = core.slot[split.ends[2 * e]], core.slot[split.ends[2 * e + 1]]
            ka, kb = core.count[u] if u >= 0 else 1, core.count[v] if v >= 0 else 1
            columns = (kb + 3) // 4 * 4
            row = table + e * self.shape.edge_step
            for a in range(ka):
                pair[0] = (core.state[core.state_at[u] + a] if u >= 0
                           else core.label[split.ends[2 * e]])
                for b in range(kb):
                    pair[1] = (core.state[core.state_at[v] + b] if v >= 0
                               else core.label[split.ends[2 * e + 1]])
                    if u >= 0 and v >= 0:
                        each = core.best[core.states + core.cell_at[f] + a * columns + b]
                    elif u >= 0:
                        each = core.best[core.state_at[u] + a]
                    else:
                        each = core.best[core.state_at[v] + b] if v >= 0 else 1
                    if self.shape.symmetric and pair[0] > pair[1]:
                        row[pair[1] * self.width + pair[0]] += each
                    else:
                        row[pair[0] * self.width + pair[1]] += each
            f += u >= 0 and v >= 0


cdef bint _measure(const Split* split, Search* search) noexcept nogil:
    # The largest magnitude, sums of ranges and of smallest scores, and a score too low for any
    # allowed state or pair to make up for; returns whether something is forbidden.
    cdef Py_ssize_t v
    cdef double least = 0, low, top
    cdef bint forbidden = False
    search.rough = search.floor = search.largest = 0
    for v in range(split.n):
        _range(split, 1, split.node + v * split.node_step, split.states[v], &low, &top, &forbidden)
        search.rough += top - low
        search.floor += low
        search.largest = max(search.largest, max(fabs(low), fabs(top)))
        least = min(least, low)
    for v in range(split.m):
        if v == 0 or split.table_step or _unlike(split, v):
            _range(split, split.states[split.ends[2 * v]], split.table + v * split.table_step,
                   split.states[split.ends[2 * v + 1]], &low, &top, &forbidden)
        search.rough += top - low
        search.floor += low
        search.largest = max(search.largest, max(fabs(low), fabs(top)))
        least = min(least, low)
    search.never = least - 2 * search.rough - 1
    return forbidden


cdef bint _unlike(const Split* split, Py_ssize_t e) noexcept nogil:
    # Whether an edge reads other states of a shared table than the edge before it.
    return (split.states[split.ends[2 * e]] != split.states[split.ends[2 * e - 2]]
            or split.states[split.ends[2 * e + 1]] != split.states[split.ends[2 * e - 1]])


cdef void _range(const Split* split, Py_ssize_t rows, const double* x, Py_ssize_t columns,
                 double* low, double* top, bint* forbidden) noexcept nogil:
    # The smallest and the largest finite score.
    split.loops.range(rows, x, split.width, columns, INFINITY, low, top)
    if low[0] == -INFINITY:
        forbidden[0] = True
        split.loops.range(rows, x, split.width, columns, -INFINITY, low, top)
    if not low[0] <= top[0]:        # nothing is allowed
        low[0] = top[0] = 0


cdef double _round(Split* split, const Core* core, double value, int* label) noexcept nogil:
    # The most probable states of the smaller program, if that labeling is better.
    cdef Py_ssize_t i, a, best
    cdef double x
    memcpy(split.trial, core.label, split.n * sizeof(int))
    for i in range(core.n):
        best = core.state_at[i]
        for a in range(best, best + core.count[i]):
            best = a if core.best[a] > core.best[best] else best
        split.trial[core.node[i]] = core.state[best]
    x = split_score(split, split.trial)
    if x > value:
        value = x
        memcpy(label, split.trial, split.n * sizeof(int))
    return value
