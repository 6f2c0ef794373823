"""Exact sums over the labelings of narrow graphs, by eliminating nodes one by one.

A step sums a node out: its *clique* is the node and the neighbours it then has.  The pass forward
leaves the node's conditional probabilities given these neighbours in the clique's table, and adds
the logarithms of the sums to the table of the first of them to go.  The pass back multiplies by
marginals of the neighbours, which that table then has.  Cliques have one entry per sum of the plan.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memset
from structsolve.algorithms.entropies cimport entropy, entropy_slope, logarithms, slope_at
from structsolve.algorithms.messages cimport draw, impossible
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table, ss_loops
from structsolve.utils.alignment cimport align

from structsolve.plugins.mrf.elimination._plan cimport WIDEST, Plan, Plans
from structsolve.plugins.mrf.tables._model cimport Model, other_end
from structsolve.plugins.mrf.tables._shape cimport GraphShape

# Entries of a vector: tables end at multiples, as exponentials are written in whole vectors.
cdef enum:
    LANES = 8

# Bytes of all examples' states up to which there are states: solvers keep one for each.
STATES = 2.0**30


cdef struct Clique:
    # A step's table, (size[width - 1], ..., size[0], K): neighbours count like digits.
    Py_ssize_t K, width, rows           # rows: labelings of the neighbours
    Py_ssize_t size[WIDEST]


cdef struct View:
    # Entries of another table that go with those of a clique.
    Py_ssize_t step                     # between states of the node
    Py_ssize_t stride[WIDEST]           # between states of each neighbour


cdef inline Py_ssize_t _padded(Py_ssize_t count) noexcept nogil:
    return (count + LANES - 1) // LANES * LANES


cdef Clique _clique(const Model* model, const Plan* plan, Py_ssize_t step) noexcept nogil:
    cdef Clique c
    cdef Py_ssize_t k, first = plan.scope_at[step]
    c.K, c.width, c.rows = model.states[plan.order[step]], plan.scope_at[step + 1] - first, 1
    for k in range(c.width):
        c.size[k] = model.states[plan.order[plan.scope[first + k]]]
        c.rows *= c.size[k]
    return c


cdef void _meet(double* table, double* other, const Clique* c, const View* view,
                bint back) noexcept nogil:
    # Adds to each entry of a clique's table that of the other table; `back`: the other way.
    # Digits that go through the other table evenly count as one.
    cdef Py_ssize_t size[WIDEST + 2]
    cdef Py_ssize_t stride[WIDEST + 2]
    cdef Py_ssize_t digit[WIDEST + 2]
    cdef Py_ssize_t width = 1, k, count
    size[0], stride[0], size[1], stride[1] = c.K, view.step, 1, 0
    for k in range(c.width):
        if view.stride[k] == stride[width - 1] * size[width - 1]:
            size[width - 1] *= c.size[k]
        else:
            size[width], stride[width] = c.size[k], view.stride[k]
            width += 1
    memset(digit, 0, sizeof(digit))
    count = size[0] * size[1]
    for outer in range(c.rows * c.K // count):
        _meet_block(table, other, size, stride, back)
        table += count
        for k in range(2, width):
            digit[k] += 1
            other += stride[k]
            if digit[k] < size[k]:
                break
            other -= digit[k] * stride[k]
            digit[k] = 0


cdef inline void _meet_block(double* table, double* other, const Py_ssize_t* size,
                             const Py_ssize_t* stride, bint back) noexcept nogil:
    # The two digits that count the fastest.
    cdef Py_ssize_t s, n = size[0], step = stride[0]
    for a in range(size[1]):
        if back and step == 1:
            for s in range(n):
                other[s] += table[s]
        elif back:
            for s in range(n):
                other[s * step] += table[s]
        elif step == 1:
            for s in range(n):
                table[s] += other[s]
        else:
            for s in range(n):
                table[s] += other[s * step]
        table += n
        other += stride[1]


cdef inline View _alone() noexcept nogil:
    # Scores of the node.
    cdef View view
    memset(&view, 0, sizeof(View))
    view.step = 1
    return view


cdef Py_ssize_t _digit_of(const Plan* plan, Py_ssize_t step, int node) noexcept nogil:
    # Which neighbour of a step a node is; -1 if it went before.
    cdef Py_ssize_t k
    for k in range(plan.scope_at[step], plan.scope_at[step + 1]):
        if plan.order[plan.scope[k]] == node:
            return k - plan.scope_at[step]
    return -1


cdef View _edge(const Model* model, Py_ssize_t e, int v, Py_ssize_t digit) noexcept nogil:
    # Cells of an edge between node v and a neighbour.
    cdef View view = _alone()
    if model.ends[2 * e] == v:
        view.step, view.stride[digit] = model.states[model.ends[2 * e + 1]], 1
    else:
        view.stride[digit] = model.states[v]
    return view


cdef View _below(const Model* model, const Plan* plan, Py_ssize_t step,
                 const Clique* c, Py_ssize_t parent) noexcept nogil:
    # Labelings of the neighbours of an earlier step, the first of which is the node `parent`
    # eliminates; c: the parent's clique.
    cdef View view = _alone()
    cdef Py_ssize_t k = plan.scope_at[parent], jump = c.K, j
    for j in range(plan.scope_at[step] + 1, plan.scope_at[step + 1]):
        while plan.scope[k] != plan.scope[j]:
            k += 1
        view.stride[k - plan.scope_at[parent]] = jump
        jump *= model.states[plan.order[plan.scope[j]]]
    return view


cdef inline Py_ssize_t _parent(const Plan* plan, Py_ssize_t step) noexcept nogil:
    if plan.scope_at[step] == plan.scope_at[step + 1]:
        return -1
    return plan.scope[plan.scope_at[step]]


cdef void _meet_parts(const Model* model, const Plan* plan, Py_ssize_t step, const Clique* c,
                      double* table, double* unary, double* pair, bint back) noexcept nogil:
    # The scores that enter a step's clique; `back`: marginals of the same parts, edges as in
    # cell_at.
    cdef int v = plan.order[step]
    cdef Py_ssize_t j, e, digit
    cdef View view = _alone()
    _meet(table, unary + model.unary_at[v], c, &view, back)
    for j in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[j]
        digit = _digit_of(plan, step, other_end(model, e, v))
        if digit >= 0:
            view = _edge(model, e, v, digit)
            _meet(table, pair + (model.cell_at[e] if back else model.pair_at[e]), c, &view, back)


cdef void _condition(const ss_loop_table* loops, const Clique* c, double* table, double* sums,
                     double* tops) noexcept nogil:
    # table <- probabilities of the node given its neighbours; sums <- logarithms of sums.
    cdef Py_ssize_t x, s, K = c.K, count = c.rows * K
    cdef double* row = table
    cdef double top, total
    for x in range(c.rows):
        top = -INFINITY
        for s in range(K):
            top = row[s] if row[s] > top else top
        tops[x] = top
        if top == -INFINITY:        # these neighbours forbid every state
            top = 0
        for s in range(K):
            row[s] -= top
        row += K
    loops.exp_rows(1, table, _padded(count), count, 0, table)
    row = table
    for x in range(c.rows):
        total = 0
        for s in range(K):
            total += row[s]
        sums[x] = total
        total = 1 / total if total > 0 else 0
        for s in range(K):
            row[s] *= total
        row += K
    logarithms(c.rows, sums, 0, sums)
    for x in range(c.rows):
        sums[x] += tops[x]


cdef bint valid_scores(const Model* model) noexcept nogil:
    cdef Py_ssize_t j, e
    cdef const double* table
    cdef bint valid = True
    for j in range(model.unary_at[model.n]):
        valid &= model.unary[j] < INFINITY
    for e in range(model.m):
        if e == 0 or model.pair_at[e] != model.pair_at[e - 1]:
            table = model.pair + model.pair_at[e]
            for j in range(model.cell_at[e + 1] - model.cell_at[e]):
                valid &= table[j] < INFINITY
    return valid


cdef void _sum_rows(const Clique* c, const double* table, double* sums) noexcept nogil:
    # Marginals of the neighbours.
    cdef Py_ssize_t x, s
    for x in range(c.rows):
        sums[x] = 0
        for s in range(x * c.K, (x + 1) * c.K):
            sums[x] += table[s]


cdef class EliminationSums(Projection):
    """Marginals of ``p(y) ~ exp <theta, mu(y)>`` on narrow graphs, and ``log sum_y exp <theta, mu(y)>``.

    The entropy projection.  Scores of -inf forbid a state or a pair of states; its marginals are
    exactly 0.  A state holds the marginals of nodes, of edges (as in cell_at) and of cliques.

    Parameters
    ----------
    plans : Plans
        Plans of the graphs of `shape`, one for each.
    shape : GraphShape
    layout : PartLayout
    some : bool, default=False
        Graphs may lack a plan; then only :meth:`state_of` and :meth:`pool` take them.
    """

    def __init__(self, Plans plans not None, GraphShape shape not None, PartLayout layout not None,
                 bint some=False):
        cdef Py_ssize_t g, i, step, first, total = 0
        cdef Py_ssize_t[::1] starts = np.zeros(len(shape.states) + shape.n_graphs + 1, dtype=np.intp)
        cdef Plan plan
        cdef Model model
        cdef Clique c
        super().__init__(layout)
        if plans.graphs is not shape:
            raise ValueError("plans: found those of other graphs, expected those of `shape`")
        if not (some or plans.most_entries < INFINITY):
            raise ValueError("plans: found graphs without one, expected a plan for each")
        self.shape, self.plans, self.n_states = shape, plans, shape.n_states
        self.loops = ss_loops(LANES)
        self.owners, self.starts, self.most_rows, self.most_state = starts, &starts[0], LANES, 1
        for g in range(shape.n_graphs):
            plan, model, first = plans.of(g), shape.graph(g), shape.first_node(g) + g
            starts[first] = model.unary_at[model.n] + model.cell_at[model.m]
            if not plan.entries > 0:
                starts[first + plan.n] = starts[first]
                continue
            for step in range(plan.n):
                c = _clique(&model, &plan, step)
                starts[first + step + 1] = starts[first + step] + _padded(c.rows * c.K)
                self.most_rows = max(self.most_rows, _padded(c.rows))
            self.most_state = max(self.most_state, starts[first + plan.n])
        for i in range(layout.n):
            total += self.places(i)[self.shape.graph(i).n]
        self.gibbs = self.has_samples = self.has_derivative = True
        self.has_state = self.has_term = 8.0 * total <= STATES
        # Scores; a state; two rows of the largest clique.
        self.work_bytes = 64 + shape.scores_bytes + 8 * (self.most_state + 2 * self.most_rows)

    cdef bint takes(self, Py_ssize_t i) noexcept nogil:
        return self.plan(i).entries > 0

    cdef Plan plan(self, Py_ssize_t i) noexcept nogil:
        return self.plans.of(0 if self.shape.one_graph else i)

    cdef const Py_ssize_t* places(self, Py_ssize_t i) noexcept nogil:
        # Where the cliques of example i start in a state, and its end.
        return self.starts + self.shape.first_node(i) + (0 if self.shape.one_graph else i)

    cdef double* room(self, char* work) noexcept nogil:
        # A state.
        return <double*>(align(work) + self.shape.scores_bytes)

    cdef int forward(self, Py_ssize_t i, const double* theta, double* state, double* value,
                     char* work) except -1 nogil:
        # Cliques of the state <- conditional probabilities; value <- the log-partition.
        cdef Model model = self.shape.gather(i, theta, <double*>align(work))
        cdef Plan plan = self.plan(i)
        cdef const Py_ssize_t* places = self.places(i)
        cdef double* sums = self.room(work) + self.most_state
        cdef Py_ssize_t step, parent
        cdef Clique c, above
        cdef View view
        value[0] = 0
        if not valid_scores(&model):
            impossible(i)
        memset(state, 0, places[model.n] * sizeof(double))
        for step in range(model.n):
            c = _clique(&model, &plan, step)
            _meet_parts(&model, &plan, step, &c, state + places[step], <double*>model.unary,
                        <double*>model.pair, False)
            _condition(self.loops, &c, state + places[step], sums, sums + self.most_rows)
            parent = _parent(&plan, step)
            if parent < 0:
                value[0] += sums[0]
            else:
                above = _clique(&model, &plan, parent)
                view = _below(&model, &plan, step, &above, parent)
                _meet(state + places[parent], sums, &above, &view, False)
        if not -INFINITY < value[0] < INFINITY:
            impossible(i)
        return 0

    cdef void backward(self, Py_ssize_t i, double* state, double* moved, char* work) noexcept nogil:
        # state <- marginals, from conditional probabilities of cliques; moved, if any, <- their
        # derivatives, from those of the logarithms of conditional probabilities.
        cdef Model model = self.shape.graph(i)
        cdef Plan plan = self.plan(i)
        cdef const Py_ssize_t* places = self.places(i)
        cdef double* sums = self.room(work) + self.most_state
        cdef double* gains = sums + self.most_rows
        cdef double* table
        cdef double* change
        cdef Py_ssize_t step, parent, x, s
        cdef Clique c, above
        cdef View view
        for step in range(model.n - 1, -1, -1):
            c = _clique(&model, &plan, step)
            table, change = state + places[step], NULL
            memset(sums, 0, c.rows * sizeof(double))
            memset(gains, 0, c.rows * sizeof(double))
            parent = _parent(&plan, step)
            if parent < 0:
                sums[0] = 1
            else:
                above = _clique(&model, &plan, parent)
                view = _below(&model, &plan, step, &above, parent)
                _meet(state + places[parent], sums, &above, &view, True)
                if moved != NULL:
                    _meet(moved + places[parent], gains, &above, &view, True)
            if moved != NULL:
                change = moved + places[step]
                for x in range(c.rows):
                    for s in range(x * c.K, (x + 1) * c.K):
                        change[s] = table[s] * (gains[x] + sums[x] * change[s])
                _meet_parts(&model, &plan, step, &c, change, moved,
                            moved + model.unary_at[model.n], True)
            for x in range(c.rows):
                for s in range(x * c.K, (x + 1) * c.K):
                    table[s] *= sums[x]
            _meet_parts(&model, &plan, step, &c, table, state, state + model.unary_at[model.n],
                        True)

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        if not self.has_state:
            return self.project(i, theta, state, value, bound, work)
        self.forward(i, theta, state, value, work)
        self.backward(i, state, NULL, work)
        bound[0] = value[0]
        return 0

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* state = self.room(work)
        self.forward(i, theta, state, value, work)
        self.backward(i, state, NULL, work)
        bound[0] = value[0]
        return self.pool(i, state, marginals)

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.places(i)[self.shape.graph(i).n]

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        cdef Model model = self.shape.graph(i)
        self.shape.scatter(i, state, state + model.unary_at[model.n], marginals)
        return 0

    cdef Py_ssize_t row_of(self, Py_ssize_t i, Py_ssize_t step, const int* label) noexcept nogil:
        # Where the row of a clique starts whose neighbours have these labels.
        cdef Model model = self.shape.graph(i)
        cdef Plan plan = self.plan(i)
        cdef Py_ssize_t k, row = 0
        cdef int u
        for k in range(plan.scope_at[step + 1] - 1, plan.scope_at[step] - 1, -1):
            u = plan.order[plan.scope[k]]
            row = row * model.states[u] + label[u]
        return self.places(i)[step] + row * model.states[plan.order[step]]

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Model model = self.shape.graph(i)
        cdef Plan plan = self.plan(i)
        cdef Py_ssize_t v, e
        cdef const int* ends
        cdef double* pair = state + model.unary_at[model.n]
        memset(state, 0, self.state_size(i) * sizeof(double))
        for v in range(model.n):
            state[model.unary_at[v] + label[v]] = 1
            if plan.entries > 0:
                state[self.row_of(i, v, label) + label[plan.order[v]]] = 1
        for e in range(model.m):
            ends = model.ends + 2 * e
            pair[model.cell_at[e] + label[ends[0]] * model.states[ends[1]] + label[ends[1]]] = 1
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        # Each clique's entropy of the node given its neighbours.
        cdef Model model = self.shape.graph(i)
        cdef Plan plan = self.plan(i)
        cdef const Py_ssize_t* places = self.places(i)
        cdef double* sums = <double*>align(work)
        cdef double total = 0
        cdef Py_ssize_t step
        cdef Clique c
        for step in range(model.n):
            c = _clique(&model, &plan, step)
            _sum_rows(&c, state + places[step], sums)
            total += entropy(c.rows * c.K, state + places[step]) - entropy(c.rows, sums)
        return total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        # If the probability of the neighbours' states leaves or reaches 0, so does that of the
        # whole clique, whose slope outweighs theirs.
        cdef Model model = self.shape.graph(i)
        cdef Plan plan = self.plan(i)
        cdef const Py_ssize_t* places = self.places(i)
        cdef double* sums = <double*>align(work)
        cdef double total = 0
        cdef Py_ssize_t step, start
        cdef int stuck = 0, ignored = 0
        cdef Clique c
        for step in range(model.n):
            c, start = _clique(&model, &plan, step), places[step]
            _sum_rows(&c, a + start, sums)
            _sum_rows(&c, b + start, sums + self.most_rows)
            total += entropy_slope(c.rows * c.K, a + start, b + start, gamma, &stuck)
            total -= entropy_slope(c.rows, sums, sums + self.most_rows, gamma, &ignored)
        return slope_at(total, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Model model = self.shape.graph(i)
        cdef Plan plan = self.plan(i)
        cdef double* state = self.room(work)
        cdef double value
        cdef Py_ssize_t step
        cdef int v
        self.forward(i, theta, state, &value, work)
        for j in range(n):
            for step in range(model.n - 1, -1, -1):
                v = plan.order[step]
                labels[v] = draw(model.states[v], state + self.row_of(i, step, labels), uniforms[v])
            labels += model.n
            uniforms += model.n
        return 0

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Room for a direction and for the derivatives of a state, after that of project()."""
        return self.work_bytes + 128 + self.shape.scores_bytes + 8 * self.most_state

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef double* state = self.room(work)
        cdef double* sums = state + self.most_state
        cdef char* more = align(work + self.work_bytes)
        cdef double* moved = <double*>(more + self.shape.scores_bytes)
        cdef double* change
        cdef double value
        cdef const double* table
        cdef Plan plan = self.plan(i)
        cdef const Py_ssize_t* places = self.places(i)
        cdef Py_ssize_t step, parent, x, s
        cdef Model model
        cdef Clique c, above
        cdef View view
        self.forward(i, theta, state, &value, work)
        model = self.shape.gather(i, direction, <double*>more)
        memset(moved, 0, places[model.n] * sizeof(double))
        for step in range(model.n):
            # Means of the direction's scores over earlier nodes, given the neighbours.
            c, table, change = _clique(&model, &plan, step), state + places[step], moved + places[step]
            _meet_parts(&model, &plan, step, &c, change, <double*>model.unary,
                        <double*>model.pair, False)
            for x in range(c.rows):
                sums[x] = 0
                for s in range(x * c.K, (x + 1) * c.K):
                    sums[x] += table[s] * change[s]
                for s in range(x * c.K, (x + 1) * c.K):
                    change[s] -= sums[x]
            parent = _parent(&plan, step)
            if parent >= 0:
                above = _clique(&model, &plan, parent)
                view = _below(&model, &plan, step, &above, parent)
                _meet(moved + places[parent], sums, &above, &view, False)
        self.backward(i, state, moved, work)
        self.shape.scatter(i, moved, moved + model.unary_at[model.n], out)
        return 0
