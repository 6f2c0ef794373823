"""Flows of least separable piecewise-linear cost, convex or not: descent along residual cycles.

The cost of arc a is given by its kinks ``x_0 < x_1 < ...`` and the slopes between them.  Any move
from a flow to another is a sum of cycles of the residual network, whose one-sided derivatives add
up: where no cycle has a negative derivative the flow is a local minimum, and the global one where
all costs are convex.  Each step takes one such cycle and goes along it to the first point where
the cost no longer falls.  Where kinks lie close together a few cycles may come back again and
again, each as far as the next kink: every twelve cycles the sum of their moves is a direction too.

At a kink where slopes fall, up and down an arc at once would be such a cycle, and move nothing.
There both ways have the slope of the one above, and when nothing is left to gain that of the one
below: a cycle that takes some such arcs up and others down may be missed.  Descent hardly ever
ends at such kinks.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from structsolve.parallel import over_examples


cdef enum:
    TOGETHER = 12       # cycles, a multiple of the shortest periods


cdef struct Costs:
    Py_ssize_t n, m
    const int* ends
    const long long* first      # (m + 1,) where the kinks of each arc start
    const double* kinks
    double* slopes              # slopes[k]: between kinks k and k + 1; the last of an arc: unused


cdef struct State:
    double* y
    long long* place            # 2 k: at kink k; 2 k + 1: between k and k + 1 (of all kinks)


cdef inline double _right(const Costs* c, const State* s, Py_ssize_t a) noexcept nogil:
    cdef long long k = s.place[a] >> 1
    return c.slopes[k] if k < c.first[a + 1] - 1 else INFINITY


cdef inline double _left(const Costs* c, const State* s, Py_ssize_t a) noexcept nogil:
    cdef long long k = (s.place[a] - 1) >> 1
    return c.slopes[k] if s.place[a] > 2 * c.first[a] else -INFINITY


cdef void _locate(const Costs* c, State* s) noexcept nogil:
    # Places of the flows y, which are moved onto a kink that is within rounding.
    cdef Py_ssize_t a
    cdef long long low, high, middle
    for a in range(c.m):
        low, high = c.first[a], c.first[a + 1] - 1
        if s.y[a] <= c.kinks[low]:
            s.y[a], s.place[a] = c.kinks[low], 2 * low
            continue
        if s.y[a] >= c.kinks[high]:
            s.y[a], s.place[a] = c.kinks[high], 2 * high
            continue
        while high - low > 1:
            middle = (low + high) >> 1
            if c.kinks[middle] <= s.y[a]:
                low = middle
            else:
                high = middle
        s.place[a] = 2 * low + (s.y[a] > c.kinks[low])


cdef double _cost(const Costs* c, const State* s) noexcept nogil:
    # Above what the lowest kinks cost.
    cdef Py_ssize_t a
    cdef long long k
    cdef double total = 0
    for a in range(c.m):
        for k in range(c.first[a], c.first[a + 1] - 1):
            if c.kinks[k + 1] >= s.y[a]:
                total += c.slopes[k] * (s.y[a] - c.kinks[k])
                break
            total += c.slopes[k] * (c.kinks[k + 1] - c.kinks[k])
    return total


cdef inline double _along(const Costs* c, const State* s, Py_ssize_t a, bint below) noexcept nogil:
    # What more flow costs, as _cycle() sees it.
    cdef double right = _right(c, s, a), left = _left(c, s, a)
    return left if below and left > right else right


cdef inline double _against(const Costs* c, const State* s, Py_ssize_t a,
                            bint below) noexcept nogil:
    # What less flow costs.
    cdef double right = _right(c, s, a), left = _left(c, s, a)
    return -right if not below and left > right else -left


cdef Py_ssize_t _cycle(const Costs* c, const State* s, double least, bint below, double* dist,
                       int* via, int* seen, int* cycle) noexcept nogil:
    # A residual cycle (2 a: along arc a, 2 a + 1: against it) whose derivative is below -least;
    # returns its length, or 0.  Bellman and Ford from everywhere at once.
    cdef Py_ssize_t a, v, round_, length, u, z
    cdef double step, total, gain = least / (4 * c.n)
    cdef int stamp, r
    cdef bint moved
    for v in range(c.n):
        dist[v], via[v] = 0, -1
    for round_ in range(c.n + 1):
        moved = False
        for a in range(c.m):
            u, z = c.ends[2 * a], c.ends[2 * a + 1]
            step = _along(c, s, a, below)
            if dist[u] + step < dist[z] - gain:
                dist[z], via[z] = dist[u] + step, <int>(2 * a)
                moved = True
            step = _against(c, s, a, below)
            if dist[z] + step < dist[u] - gain:
                dist[u], via[u] = dist[z] + step, <int>(2 * a + 1)
                moved = True
        if not moved:
            return 0
        # A cycle of parents, as early as there is one.
        for v in range(c.n):
            seen[v] = -1
        for v in range(c.n):
            z, stamp = v, <int>v
            while z >= 0 and seen[z] < 0 and via[z] >= 0:
                seen[z] = stamp
                r = via[z]
                z = c.ends[2 * (r >> 1) + (r & 1)]
            if seen[z] != stamp or via[z] < 0:
                seen[z] = stamp if seen[z] < 0 else seen[z]
                continue
            length, total, u = 0, 0, z
            while True:
                r = via[u]
                cycle[length] = r
                length += 1
                total += (_against(c, s, r >> 1, below) if r & 1
                          else _along(c, s, r >> 1, below))
                u = c.ends[2 * (r >> 1) + (r & 1)]
                if u == z:
                    break
            if total < -least:
                return length
    return 0


cdef double _follow(const Costs* c, State* s, const int* cycle, Py_ssize_t length,
                    double least) noexcept nogil:
    # Along the cycle as long as the cost falls; returns how far.
    cdef Py_ssize_t j, a
    cdef long long k
    cdef double step, room, slope, moved = 0
    while True:
        step, slope = INFINITY, 0
        for j in range(length):
            a = cycle[j] >> 1
            if cycle[j] & 1:
                slope -= _left(c, s, a)
                k = (s.place[a] - 1) >> 1
                room = s.y[a] - c.kinks[k] if s.place[a] > 2 * c.first[a] else 0
            else:
                slope += _right(c, s, a)
                k = s.place[a] >> 1
                room = c.kinks[k + 1] - s.y[a] if k < c.first[a + 1] - 1 else 0
            step = min(step, room)
        if not slope < -least:
            return moved
        moved += step
        for j in range(length):
            a = cycle[j] >> 1
            if cycle[j] & 1:
                k = (s.place[a] - 1) >> 1
                if s.y[a] - step <= c.kinks[k] + 1e-15 * fabs(c.kinks[k]):
                    s.y[a], s.place[a] = c.kinks[k], 2 * k
                else:
                    s.y[a] -= step
                    s.place[a] = 2 * k + 1
            else:
                k = s.place[a] >> 1
                if s.y[a] + step >= c.kinks[k + 1] - 1e-15 * fabs(c.kinks[k + 1]):
                    s.y[a], s.place[a] = c.kinks[k + 1], 2 * (k + 1)
                else:
                    s.y[a] += step
                    s.place[a] = 2 * k + 1


cdef inline double _room(const Costs* c, const State* s, Py_ssize_t a, double speed) noexcept nogil:
    # How long the flow can change at this speed until the next kink.
    cdef long long k
    if speed > 0:
        k = s.place[a] >> 1
        return (c.kinks[k + 1] - s.y[a]) / speed if k < c.first[a + 1] - 1 else 0
    k = (s.place[a] - 1) >> 1
    return (c.kinks[k] - s.y[a]) / speed if s.place[a] > 2 * c.first[a] else 0


cdef void _drift(const Costs* c, State* s, double* speed, double least) noexcept nogil:
    # Along a circulation as long as the cost falls.
    cdef Py_ssize_t a
    cdef long long k
    cdef double size = 0, slope, step
    for a in range(c.m):
        size = max(size, fabs(speed[a]))
    if size == 0:
        return
    for a in range(c.m):
        # Up and down by as much, to rounding, is no change.
        speed[a] = speed[a] / size if fabs(speed[a]) > 1e-12 * size else 0
    while True:
        step, slope = INFINITY, 0
        for a in range(c.m):
            if speed[a] != 0:
                slope += speed[a] * (_right(c, s, a) if speed[a] > 0 else _left(c, s, a))
                step = min(step, _room(c, s, a, speed[a]))
        if not slope < -least:
            return
        for a in range(c.m):
            if speed[a] == 0:
                continue
            k = s.place[a] >> 1 if speed[a] > 0 else (s.place[a] - 1) >> 1
            if _room(c, s, a, speed[a]) <= step * (1 + 1e-14):
                k += speed[a] > 0
                s.y[a], s.place[a] = c.kinks[k], 2 * k
            else:
                s.y[a] += speed[a] * step
                s.place[a] = 2 * k + 1


cdef Py_ssize_t _descend(const Costs* c, State* s, double least, Py_ssize_t most, double* dist,
                         double* moves, int* via, int* seen, int* cycle) noexcept nogil:
    # Returns the number of cycles, -1 where `most` were not enough.
    cdef Py_ssize_t steps, length, j
    cdef double moved
    for steps in range(most):
        if steps % TOGETHER == 0:
            if steps:
                _drift(c, s, moves, least)
            memset(moves, 0, c.m * sizeof(double))
        length = _cycle(c, s, least, False, dist, via, seen, cycle)
        if length == 0:
            length = _cycle(c, s, least, True, dist, via, seen, cycle)
        if length == 0:
            return steps
        moved = _follow(c, s, cycle, length, least)
        for j in range(length):
            moves[cycle[j] >> 1] += -moved if cycle[j] & 1 else moved
    return -1


cdef void _convexify(const Costs* c, double* out, double* value, double* width,
                     long long* count) noexcept nogil:
    # Slopes of the largest convex functions below the costs: slopes are pooled while they fall.
    cdef Py_ssize_t a
    cdef long long k, j, top, at
    for a in range(c.m):
        top = 0
        for k in range(c.first[a], c.first[a + 1] - 1):
            width[top] = c.kinks[k + 1] - c.kinks[k]
            value[top], count[top] = c.slopes[k], 1
            while top > 0 and value[top - 1] > value[top]:
                value[top - 1] = (value[top - 1] * width[top - 1] + value[top] * width[top]) / (
                    width[top - 1] + width[top])
                width[top - 1] += width[top]
                count[top - 1] += count[top]
                top -= 1
            top += 1
        at = c.first[a]
        for j in range(top):
            for k in range(count[j]):
                out[at] = value[j]
                at += 1
        out[at] = 0


def least_absolute(ends, Py_ssize_t n_nodes, const long long[::1] first, const double[::1] kinks,
                   const long long[::1] item, const long long[::1] place,
                   const double[:, ::1] weights, const double[:, ::1] starts,
                   Py_ssize_t most=10000, n_jobs=1):
    """Flows of least ``sum_i w_i |y - y_i|``, for rows of weights of any sign.

    Parameters
    ----------
    ends : ndarray of int32 of shape (m, 2)
    n_nodes : int
    first : ndarray of int64 of shape (m + 1,)
        Where the kinks of each arc start.
    kinks : ndarray
        Of all arcs: its bounds and the distinct flows of the training labels, sorted.
    item, place : ndarray of int64 of shape (m * n,)
        Of each arc, training label by training label: the label's number, and the kink that is
        its flow.
    weights : ndarray of shape (t, n)
    starts : ndarray of shape (t, m)
        Flows to start from.
    most : int
        Cycles at most, a guard.

    Returns
    -------
    flows : ndarray of shape (t, m)
    excess : ndarray of shape (t,)
        By how much the cost may exceed the least; 0 (to rounding) where no weight is negative,
        infinite where ``most`` cycles did not even end the search for a bound.
    cycles : ndarray of int64 of shape (t,)
        -1 where ``most`` were not enough.
    """
    cdef Py_ssize_t t_rows = weights.shape[0], m = first.shape[0] - 1, n = weights.shape[1]
    cdef Py_ssize_t total = kinks.shape[0], n_items = item.shape[0]
    cdef const int[::1] end_view = np.ascontiguousarray(ends, dtype=np.int32).ravel()
    if starts.shape[0] != t_rows or starts.shape[1] != m or end_view.shape[0] != 2 * m:
        raise ValueError(f"found starts of shape ({starts.shape[0]}, {starts.shape[1]}), expected "
                         f"({t_rows}, {m})")
    if place.shape[0] != n_items or n_items != m * n or first[m] != total:
        raise ValueError(f"found {n_items} places, expected {m * n}")
    for what, values, limit in (("place", place, total), ("item", item, n),
                                ("ends", end_view, n_nodes)):
        found = np.asarray(values)
        if found.size and (found.min() < 0 or found.max() >= limit):
            raise ValueError(f"{what}: found {found.min()} to {found.max()}, expected 0 to "
                             f"{limit - 1}")
    if (np.diff(np.asarray(first)) < 1).any() or first[0] != 0:
        raise ValueError("first: expected rising numbers from 0, a kink at least per arc")
    flows, excess = np.array(starts), np.zeros(t_rows)
    cycles = np.zeros(t_rows, dtype=np.int64)
    cdef double[:, ::1] flow_view = flows
    cdef double[::1] excess_view = excess
    cdef long long[::1] cycle_view = cycles

    def scratch():
        return (np.zeros(4 * total + 4 * m + n_nodes + 8), np.zeros(total + m + 8, np.longlong),
                np.zeros(2 * n_nodes + 2 * m + n_nodes + 8, np.int32))

    def piece(Py_ssize_t begin, Py_ssize_t end, memory):
        cdef double[::1] numbers = memory[0]
        cdef long long[::1] places = memory[1]
        cdef int[::1] ints = memory[2]
        cdef Costs costs, convex
        cdef State state
        cdef double* own = &numbers[0]
        cdef double* hull = own + total
        cdef double* value = hull + total
        cdef double* width = value + total
        cdef double* best = width + total
        cdef double* moves = best + 2 * m
        cdef double* dist = moves + m
        cdef int* via = &ints[0]
        cdef int* seen = via + n_nodes
        cdef int* cycle = seen + n_nodes
        cdef Py_ssize_t t, i, a, side, used, spent
        cdef double slope, sum_, size, least, bound, cost, lowest
        cdef long long k
        costs.n, costs.m, costs.ends, costs.first = n_nodes, m, &end_view[0], &first[0]
        costs.kinks, costs.slopes = &kinks[0], own
        convex = costs
        convex.slopes = hull
        state.place = &places[0]
        with nogil:
            for t in range(begin, end):
                state.y = &flow_view[t, 0]
                sum_ = size = 0
                for i in range(n):
                    sum_ += weights[t, i]
                    size += fabs(weights[t, i])
                least = 1e-11 * size
                for k in range(total):
                    own[k] = 0
                for i in range(n_items):
                    own[place[i]] += 2 * weights[t, item[i]]
                for a in range(m):
                    slope = -sum_
                    for k in range(first[a], first[a + 1]):
                        slope += own[k]
                        own[k] = slope
                _convexify(&costs, hull, value, width, &places[m])
                memcpy(best, state.y, m * sizeof(double))
                # The least of the convex costs is a bound.
                _locate(&convex, &state)
                used = _descend(&convex, &state, least, most, dist, moves, via, seen, cycle)
                bound = _cost(&convex, &state) if used >= 0 else -INFINITY
                lowest = INFINITY
                for side in range(2):
                    if side == 1:
                        memcpy(best + m, state.y, m * sizeof(double))
                        memcpy(state.y, best, m * sizeof(double))
                    _locate(&costs, &state)
                    spent = _descend(&costs, &state, least, most, dist, moves, via, seen, cycle)
                    used = -1 if used < 0 or spent < 0 else used + spent
                    cost = _cost(&costs, &state)
                    if side == 1 and lowest <= cost:
                        memcpy(state.y, best + m, m * sizeof(double))
                    else:
                        lowest = cost
                    if used >= 0 and lowest <= bound + 1e-9 * fabs(bound) + least:
                        break
                excess_view[t], cycle_view[t] = max(lowest - bound, 0), used

    over_examples(piece, np.arange(t_rows + 1, dtype=np.int64) * (20 * m), n_jobs, scratch)
    return flows, excess, cycles
