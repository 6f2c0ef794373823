"""Distributions of label sets of a forest by sum-product in O(M), and of single leaves.

Closed sets: a node is on, given its parent, with odds from its own score and the subtrees below it;
the entropy is a sum of entropies of such choices, a function of the marginals.

Unions of paths: a node that is on has a child on.  Its children are decided in their order; once
one is on the later ones are free, before that one of the rest must be on.  Behind the marginals,
the *state* holds for every node the probability that its parent is on while neither it nor a
sibling before it is on.  With it the entropy is again a sum of entropies of choices.
"""

cimport cython
from libc.math cimport INFINITY, exp, log, log1p
from libc.string cimport memcpy, memset
from structsolve.utils.alignment cimport align
from structsolve.algorithms.entropies cimport slope_at
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dag._leaf_oracle cimport leaf_scores, of_leaves
from structsolve.plugins.dag._shape cimport HierarchyShape, no_marginals


cdef inline double _softplus(double x) noexcept nogil:
    return x + log1p(exp(-x)) if x > 0 else log1p(exp(x))


cdef inline double _sigmoid(double x) noexcept nogil:
    cdef double e
    if x > 0:
        return 1 / (1 + exp(-x))
    e = exp(x)
    return e / (1 + e)


cdef inline double _either(double r, double z) noexcept nogil:
    # log((1 + e^r)(1 + e^z) - 1): log-odds that at least one of two sides is on.
    cdef double top
    if r == -INFINITY:
        return z
    if z == -INFINITY:
        return r
    top = max(max(r, z), r + z)
    return top + log(exp(r - top) + exp(z - top) + exp(r + z - top))


cdef inline double _share(double z, double r) noexcept nogil:
    # Probability of a child of log-odds z, given that a child among those of log-odds r is on.
    cdef double p
    if r == -INFINITY:
        return 0
    p = exp(_softplus(-r) - _softplus(-z))
    return p if p < 1 else 1.0


@cython.final
cdef class ForestSumProduct(Projection):
    """Entropy of distributions of closed sets, or of unions of paths, of a forest.

    Scores of -inf forbid a label and its descendants.

    Parameters
    ----------
    shape : HierarchyShape
        A forest whose labels are sets.
    layout : PartLayout
    """

    cdef HierarchyShape shape

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        if shape.single or not shape.forest:
            raise ValueError("found another structure, expected label sets of a forest")
        self.shape = shape
        self.n_states = shape.n_states
        # Log-odds, log-odds of the siblings from each on, and a state.
        self.work_bytes = 8 * (3 * shape.M + shape.size + 1) + 64
        self.gibbs = self.has_term = self.has_samples = self.has_derivative = True
        self.has_state = shape.union

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.shape.size + (self.shape.M if self.shape.union else 0)

    # -- sums ------------------------------------------------------------------------------------

    cdef inline Py_ssize_t _children(self, Py_ssize_t p, const int** child) noexcept nogil:
        # The children of node p; those of M are the roots.
        if p == self.shape.M:
            child[0] = self.shape.roots
            return self.shape.n_roots
        child[0] = self.shape.child + self.shape.child_first[p]
        return self.shape.child_first[p + 1] - self.shape.child_first[p]

    cdef double _gather(self, Py_ssize_t i, const double* theta, double* odds,
                        double* rest) except? -1 nogil:
        # odds[v] <- log-odds of v with its subtree; rest[v] <- log-odds that v or a sibling after
        # it is on (unions only).  Returns the log-partition.
        cdef Py_ssize_t M = self.shape.M, j, k, v, n
        cdef const int* child
        cdef double total = 0
        for v in range(M):
            if not theta[v] < INFINITY:
                no_marginals(i, v, theta[v])
        for j in range(M, -1, -1):
            v = self.shape.order[j - 1] if j else M
            n = self._children(v, &child)
            total = -INFINITY if self.shape.union and n else 0.0
            for k in range(n - 1, -1, -1):
                if self.shape.union:
                    total = _either(total, odds[child[k]])
                    rest[child[k]] = total
                elif v == M and self.shape.roots_on:
                    total += odds[child[k]]
                else:
                    total += _softplus(odds[child[k]])
            if v < M:
                odds[v] = theta[v] + total
        if not total > -INFINITY:
            no_marginals(i, -1, total)
        return total

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t M = self.shape.M, j, k, p, v, n
        cdef double* odds = <double*>align(work)
        cdef double* rest = odds + M
        cdef double* none = state + self.shape.size
        cdef const int* child
        cdef double above, left
        value[0] = bound[0] = self._gather(i, theta, odds, rest)
        memset(state, 0, self.state_size(i) * sizeof(double))
        for j in range(-1, M):
            p = self.shape.order[j] if j >= 0 else M
            n = self._children(p, &child)
            above = state[p] if p < M else 1.0
            left = above
            for k in range(n):
                v = child[k]
                if self.shape.union:
                    state[v] = above * _share(odds[v], rest[child[0]])
                    left *= (exp(rest[child[k + 1]] - rest[v])
                             if k + 1 < n and rest[v] > -INFINITY else 0.0)
                    none[v] = left
                elif p == M and self.shape.roots_on:
                    state[v] = 1
                else:
                    state[v] = above * _sigmoid(odds[v])
        return 0

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* state = <double*>align(work) + 2 * self.shape.M
        if not self.shape.union:
            return self.project_state(i, theta, marginals, value, bound, work)
        self.project_state(i, theta, state, value, bound, work)
        memcpy(marginals, state, self.shape.size * sizeof(double))
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        memcpy(marginals, state, self.shape.size * sizeof(double))
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Py_ssize_t M = self.shape.M, j, k, p, n
        cdef const int* child
        cdef bint none
        memset(state, 0, self.state_size(i) * sizeof(double))
        for j in range(-1, M):
            p = self.shape.order[j] if j >= 0 else M
            n = self._children(p, &child)
            none = p == M or label[p]
            for k in range(n):
                state[child[k]] = label[child[k]]
                none = none and not label[child[k]]
                if self.shape.union:
                    state[self.shape.size + child[k]] = none
        return 0

    # -- the entropy -----------------------------------------------------------------------------

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t M = self.shape.M, j, k, p, v, n
        cdef const int* child
        cdef double above, before, on, total = 0
        cdef const double* none = state + self.shape.size
        for j in range(-1, M):
            p = self.shape.order[j] if j >= 0 else M
            n = self._children(p, &child)
            above = state[p] if p < M else 1.0
            before = above
            for k in range(n):
                v = child[k]
                if self.shape.union:
                    on = before - none[v]
                    total += _choice(on, none[v])
                    total += _choice(state[v] - on, above - before - (state[v] - on))
                    before = none[v]
                else:
                    total += _choice(state[v], above - state[v])
        return total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t M = self.shape.M, S = self.shape.size, j, k, p, v, n
        cdef const int* child
        cdef double above_a, above_b, before_a, before_b, on_a, on_b, total = 0
        cdef int stuck = 0
        for j in range(-1, M):
            p = self.shape.order[j] if j >= 0 else M
            n = self._children(p, &child)
            above_a = a[p] if p < M else 1.0
            above_b = b[p] if p < M else 1.0
            before_a, before_b = above_a, above_b
            for k in range(n):
                v = child[k]
                if self.shape.union:
                    on_a, on_b = before_a - a[S + v], before_b - b[S + v]
                    total += _bend(on_a, a[S + v], on_b, b[S + v], gamma, &stuck)
                    total += _bend(a[v] - on_a, above_a - before_a - (a[v] - on_a),
                                   b[v] - on_b, above_b - before_b - (b[v] - on_b), gamma, &stuck)
                    before_a, before_b = a[S + v], b[S + v]
                else:
                    total += _bend(a[v], above_a - a[v], b[v], above_b - b[v], gamma, &stuck)
        return slope_at(total, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Py_ssize_t M = self.shape.M, t, j, k, p, v, m
        cdef double* odds = <double*>align(work)
        cdef double* rest = odds + M
        cdef const int* child
        cdef int* label
        cdef double chance
        cdef bint free
        self._gather(i, theta, odds, rest)
        for t in range(n):
            label = labels + t * M
            for j in range(-1, M):
                p = self.shape.order[j] if j >= 0 else M
                m = self._children(p, &child)
                free = not self.shape.union
                for k in range(m):
                    v = child[k]
                    chance = _sigmoid(odds[v])
                    if not free:
                        # The last possible one must be on, even if rounding changes its chance.
                        chance = _share(odds[v], rest[v]) if k + 1 < m and (
                            rest[child[k + 1]] > -INFINITY) else odds[v] > -INFINITY
                    if p == M and self.shape.roots_on:
                        chance = 1
                    label[v] = (p == M or label[p]) and uniforms[t * M + v] < chance
                    free = free or label[v]
        return 0

    # -- the derivative --------------------------------------------------------------------------

    # The Jacobian is the covariance of the nodes: with f the sum of the direction over the nodes
    # that are on, a node of probability p gains p (E[f | node on] - E[f]).

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes for two means per node in addition to those of project()."""
        return self.work_bytes + 8 * 2 * (self.shape.M + 1) + 64

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Py_ssize_t M = self.shape.M, j, k, p, v, n
        cdef double* odds = <double*>align(work)
        cdef double* rest = odds + M
        cdef double* state = rest + M
        cdef double* below = <double*>align(work + self.work_bytes)     # over v's subtree, v on
        cdef double* above = below + M + 1          # over all else, v on, less E[f]
        cdef const int* child
        cdef double value, bound, free, some, chance
        self.project_state(i, theta, state, &value, &bound, work)
        for j in range(M, -1, -1):
            p = self.shape.order[j - 1] if j else M
            n = self._children(p, &child)
            # Of the children from k on: where they may all be off, and where one must be on.
            free = some = 0
            for k in range(n - 1, -1, -1):
                v = child[k]
                chance = self._chance(p, odds[v])
                if self.shape.union:
                    some += _share(odds[v], rest[v]) * (below[v] + free - some)
                free += chance * below[v]
            below[p] = some if self.shape.union else free
            # The sum beside a child that is on has no condition.
            above[p] = free
            if p < M:
                below[p] += direction[p]
                above[p] += direction[p]
        memset(out, 0, self.shape.size * sizeof(double))
        # above[p] holds the sum over the children of p; now add the rest.
        above[M] -= below[M]
        for j in range(-1, M):
            p = self.shape.order[j] if j >= 0 else M
            n = self._children(p, &child)
            for k in range(n):
                v = child[k]
                value = above[p] - self._chance(p, odds[v]) * below[v]
                out[v] = state[v] * (below[v] + value)
                above[v] += value
        return 0

    cdef inline double _chance(self, Py_ssize_t p, double odds) noexcept nogil:
        # The probability of a child of p where no sibling must be on.
        if p == self.shape.M and self.shape.roots_on and not self.shape.union:
            return 1
        return _sigmoid(odds)


cdef inline double _choice(double on, double off) noexcept nogil:
    # (on + off) times the entropy of the choice.
    if not (on > 0 and off > 0):
        return 0
    return -on * log(on / (on + off)) - off * log(off / (on + off))


cdef inline double _bend(double on_a, double off_a, double on_b, double off_b, double gamma,
                         int* stuck) noexcept nogil:
    # The derivative of _choice() along the segment from a to b.
    cdef double on, off, mass, d_on, d_off
    # Rounding may make differences of probabilities negative.
    on_a, off_a = max(on_a, 0.0), max(off_a, 0.0)
    on_b, off_b = max(on_b, 0.0), max(off_b, 0.0)
    d_on, d_off = on_b - on_a, off_b - off_a
    on, off = (1 - gamma) * on_a + gamma * on_b, (1 - gamma) * off_a + gamma * off_b
    mass = on + off
    if not mass > 0:
        # At an end where the choice has probability 0: near it the masses are in proportion.
        on, off, mass = d_on, d_off, d_on + d_off
        if mass == 0:
            return 0
    mass = mass if mass > 0 else -mass
    on, off = on if on > 0 else -on, off if off > 0 else -off
    return _pull(d_on, on / mass, stuck) + _pull(d_off, off / mass, stuck)


cdef inline double _pull(double step, double share, int* stuck) noexcept nogil:
    if step == 0:
        return 0
    if not share > 0:
        stuck[0] += 1
        return 0
    return -step * log(share)


# -- single leaves -------------------------------------------------------------------------------

cdef int _no_leaf(Py_ssize_t i, double best) except -1 with gil:
    raise ValueError(
        f"example {i}: the best score of a leaf is {best}, so there are no marginals; expected a "
        "finite number; check that the weights are finite and that some leaf is allowed"
    )


@cython.final
cdef class LeafSoftmax(Projection):
    """Entropy over single leaves: a softmax of their scores; inner nodes add up their leaves.

    Parameters
    ----------
    shape : HierarchyShape
        Its labels are single leaves.
    layout : PartLayout
    """

    cdef HierarchyShape shape

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape = of_leaves(self, shape, 1)
        self.gibbs = self.has_term = self.has_samples = self.has_derivative = True

    cdef double _weigh(self, Py_ssize_t i, const double* theta, double* weight) except? -1 nogil:
        # weight[leaf] <- its probability; returns the log-partition.
        cdef double top = -INFINITY, total = 0
        cdef Py_ssize_t j, v
        leaf_scores(self.shape, theta, weight)
        for j in range(self.shape.n_leaves):
            v = self.shape.leaves[j]
            if not weight[v] <= top:                # NaN passes
                top = weight[v]
        if not -INFINITY < top < INFINITY:
            _no_leaf(i, top)
        for j in range(self.shape.n_leaves):
            v = self.shape.leaves[j]
            weight[v] = exp(weight[v] - top)
            total += weight[v]
        for j in range(self.shape.n_leaves):
            weight[self.shape.leaves[j]] /= total
        return top + log(total)

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* weight = <double*>align(work)
        value[0] = bound[0] = self._weigh(i, theta, weight)
        self._gather(weight, marginals)
        return 0

    cdef void _gather(self, const double* weight, double* marginals) noexcept nogil:
        # marginals <- the sums of the weights of leaves along their lines.
        cdef Py_ssize_t j
        cdef int v, leaf, cursor = 0
        memset(marginals, 0, self.shape.size * sizeof(double))
        for j in range(self.shape.n_leaves):
            leaf = self.shape.leaves[j]
            if self.shape.forest:
                marginals[leaf] = weight[leaf]
                continue
            v = self.shape.start(leaf, &cursor)
            while v >= 0:
                marginals[v] += weight[leaf]
                v = self.shape.next(v, &cursor)
        if self.shape.forest:
            for j in range(self.shape.M - 1, -1, -1):
                v = self.shape.order[j]
                if self.shape.parent[v] >= 0:
                    marginals[self.shape.parent[v]] += marginals[v]

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t j
        cdef double x, total = 0
        for j in range(self.shape.n_leaves):
            x = state[self.shape.leaves[j]]
            if x > 0:
                total -= x * log(x)
        return total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t j, v
        cdef int stuck = 0
        cdef double x, total = 0
        for j in range(self.shape.n_leaves):
            v = self.shape.leaves[j]
            if a[v] == b[v]:
                continue
            x = (1 - gamma) * a[v] + gamma * b[v]
            if x > 0:
                total -= (b[v] - a[v]) * log(x)
            else:
                stuck = 1
        return slope_at(total, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* weight = <double*>align(work)
        cdef Py_ssize_t k, j
        cdef double left
        self._weigh(i, theta, weight)
        for k in range(n):
            left = uniforms[k]
            labels[k] = -1
            for j in range(self.shape.n_leaves):
                # The last possible leaf takes the rounding error.
                if weight[self.shape.leaves[j]] > 0:
                    labels[k] = self.shape.leaves[j]
                    left -= weight[labels[k]]
                    if left < 0:
                        break
        return 0

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes with a second row of node scores."""
        return self.work_bytes + 8 * self.shape.M + 64

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef double* weight = <double*>align(work)
        cdef double* moved = <double*>align(work + self.work_bytes)
        cdef Py_ssize_t j
        cdef double mean = 0
        cdef int leaf
        self._weigh(i, theta, weight)
        leaf_scores(self.shape, direction, moved)
        for j in range(self.shape.n_leaves):
            leaf = self.shape.leaves[j]
            mean += weight[leaf] * moved[leaf]
        for j in range(self.shape.n_leaves):
            leaf = self.shape.leaves[j]
            weight[leaf] *= moved[leaf] - mean
        self._gather(weight, out)
        return 0
