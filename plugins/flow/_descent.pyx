"""Flows of least separable piecewise-linear cost, convex or not: descent along residual cycles.

The cost of arc a is given by its kinks ``x_0 < x_1 < ...`` and the slopes between them.  Any move
from a flow to another is a sum of cycles of the residual network, and what they cost adds up.
Where no cycle has a negative derivative the flow is a local minimum, and the global one where all
costs are convex: descent takes one such cycle and goes along it as long as the cost falls.

Where kinks lie close together that would be a walk from kink to kink.  So steps of fixed lengths
come first, as in the scaling algorithms for convex flows: while there is a cycle along which a
step of delta lowers the cost, that step is taken; then delta shrinks.

Where costs are concave, up and down an arc at once would be such a cycle, and move nothing.  There
both ways have the cost of the one above, and when nothing is left to gain that of the one below: a
cycle that takes some such arcs up and others down may be missed.  Descent hardly ever ends there.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

from structsolve.parallel import over_examples


cdef struct Costs:
    Py_ssize_t n, m
    const int* ends
    const long long* first      # (m + 1,) where the kinks of each arc start
    const double* kinks
    double* slopes              # slopes[k]: between kinks k and k + 1; the last of an arc: unused
    double* levels              # costs at the kinks, above what the lowest one of the arc costs


cdef double FINEST = 1e-9       # steps of fixed length, as a share of the widest arc
cdef int IDLE = 64              # cycles that gain no more than rounding before descent ends


# What the search for a cycle needs.
cdef struct Room:
    double* up                  # (m,) costs of more flow
    double* down                # (m,)
    double* dist                # (n,)
    int* via
    int* seen
    int* cycle                  # (n,) what it finds


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


cdef inline double _cost_at(const Costs* c, Py_ssize_t a, double x) noexcept nogil:
    cdef long long low = c.first[a], high = c.first[a + 1] - 1, middle
    while high - low > 1:
        middle = (low + high) >> 1
        if c.kinks[middle] <= x:
            low = middle
        else:
            high = middle
    return c.levels[low] + c.slopes[low] * (x - c.kinks[low])


cdef double _cost(const Costs* c, const State* s) noexcept nogil:
    cdef Py_ssize_t a
    cdef double total = 0
    for a in range(c.m):
        total += _cost_at(c, a, s.y[a])
    return total


cdef bint _seen(double* up, double* down, Py_ssize_t m, bint below) noexcept nogil:
    # Costs of more and of less flow, as _cycle() sees them; is there an arc where both are below 0?
    cdef Py_ssize_t a
    cdef bint bent = False
    for a in range(m):
        if up[a] + down[a] < 0:
            bent = True
            if below:
                up[a] = -down[a]
            else:
                down[a] = -up[a]
    return bent


cdef Py_ssize_t _cycle(const Costs* c, const Room* r, double least) noexcept nogil:
    # A residual cycle (2 a: along arc a, 2 a + 1: against it) that costs less than -least; returns
    # its length, or 0.  Bellman and Ford from everywhere at once.
    cdef Py_ssize_t a, v, round_, length, u, z
    cdef double total, gain = least / (4 * c.n)
    cdef double* dist = r.dist
    cdef int* via = r.via
    cdef int* seen = r.seen
    cdef int stamp, way
    cdef bint moved
    for v in range(c.n):
        dist[v], via[v] = 0, -1
    for round_ in range(c.n + 1):
        moved = False
        for a in range(c.m):
            u, z = c.ends[2 * a], c.ends[2 * a + 1]
            if dist[u] + r.up[a] < dist[z] - gain:
                dist[z], via[z] = dist[u] + r.up[a], <int>(2 * a)
                moved = True
            if dist[z] + r.down[a] < dist[u] - gain:
                dist[u], via[u] = dist[z] + r.down[a], <int>(2 * a + 1)
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
                way = via[z]
                z = c.ends[2 * (way >> 1) + (way & 1)]
            if seen[z] != stamp or via[z] < 0:
                seen[z] = stamp if seen[z] < 0 else seen[z]
                continue
            length, total, u = 0, 0, z
            while True:
                way = via[u]
                r.cycle[length] = way
                length += 1
                total += r.down[way >> 1] if way & 1 else r.up[way >> 1]
                u = c.ends[2 * (way >> 1) + (way & 1)]
                if u == z:
                    break
            if total < -least:
                return length
    return 0


cdef double _follow(const Costs* c, State* s, const int* cycle, Py_ssize_t length,
                    double least) noexcept nogil:
    # Along the cycle as long as the cost falls; returns by how much.
    cdef Py_ssize_t j, a
    cdef long long k
    cdef double step, room, slope, gain = 0
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
            return gain
        gain -= slope * step
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


cdef Py_ssize_t _steps(const Costs* c, State* s, const Room* r, double delta, double least,
                       Py_ssize_t most) noexcept nogil:
    # Cycles along which a step of delta lowers the cost; returns how many were taken.
    cdef Py_ssize_t a, j, taken, length = 0
    cdef int side
    cdef double here
    for taken in range(most):
        for side in range(2):
            for a in range(c.m):
                here = _cost_at(c, a, s.y[a])
                r.up[a] = r.down[a] = INFINITY
                if s.y[a] + delta <= c.kinks[c.first[a + 1] - 1]:
                    r.up[a] = (_cost_at(c, a, s.y[a] + delta) - here) / delta
                if s.y[a] - delta >= c.kinks[c.first[a]]:
                    r.down[a] = (_cost_at(c, a, s.y[a] - delta) - here) / delta
            if not _seen(r.up, r.down, c.m, side) and side:
                break
            length = _cycle(c, r, least)
            if length:
                break
        if length == 0:
            return taken
        for j in range(length):
            a = r.cycle[j] >> 1
            s.y[a] += -delta if r.cycle[j] & 1 else delta
    return most


cdef Py_ssize_t _descend(Costs* c, State* s, const Room* r, double least,
                         Py_ssize_t most) noexcept nogil:
    # Returns the number of cycles, -1 where `most` were not enough.
    cdef Py_ssize_t a, taken = 0, length = 0
    cdef int side, idle = 0
    cdef long long k
    cdef double widest = 0, highest = 0, delta
    for a in range(c.m):
        c.levels[c.first[a]] = 0
        for k in range(c.first[a], c.first[a + 1] - 1):
            c.levels[k + 1] = c.levels[k] + c.slopes[k] * (c.kinks[k + 1] - c.kinks[k])
            highest = max(highest, fabs(c.levels[k + 1]))
        widest = max(widest, c.kinks[c.first[a + 1] - 1] - c.kinks[c.first[a]])
    delta = widest / 4
    while delta > FINEST * widest and taken < most:
        # Rounding of the costs is not to be taken for a gain.
        taken += _steps(c, s, r, delta, least + 1e-14 * highest / delta, most - taken)
        delta /= 4
    _locate(c, s)
    for taken in range(taken, most):
        for side in range(2):
            for a in range(c.m):
                r.up[a], r.down[a] = _right(c, s, a), -_left(c, s, a)
            if not _seen(r.up, r.down, c.m, side) and side:
                break
            length = _cycle(c, r, least)
            if length:
                break
        if length == 0:
            return taken
        # Kinks that rounding has made of one: cycles go on between them, and gain nothing.
        idle = idle + 1 if _follow(c, s, r.cycle, length, least) < 1e-14 * highest else 0
        if idle == IDLE:
            return taken
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
        return (np.zeros(5 * total + 4 * m + n_nodes + 8), np.zeros(total + m + 8, np.longlong),
                np.zeros(3 * n_nodes + 8, np.int32))

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
        cdef double* levels = width + total
        cdef double* best = levels + total
        cdef Room room
        cdef Py_ssize_t t, i, a, side, used, spent
        cdef double slope, sum_, size, least, bound, cost, lowest
        cdef long long k
        costs.n, costs.m, costs.ends, costs.first = n_nodes, m, &end_view[0], &first[0]
        costs.kinks, costs.slopes = &kinks[0], own
        convex = costs
        costs.levels = convex.levels = levels
        convex.slopes = hull
        room.up = best + 2 * m
        room.down = room.up + m
        room.dist = room.down + m
        room.via = &ints[0]
        room.seen = room.via + n_nodes
        room.cycle = room.seen + n_nodes
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
                used = _descend(&convex, &state, &room, least, most)
                bound = _cost(&convex, &state) if used >= 0 else -INFINITY
                lowest = INFINITY
                for side in range(2):
                    if side == 1:
                        memcpy(best + m, state.y, m * sizeof(double))
                        memcpy(state.y, best, m * sizeof(double))
                    spent = _descend(&costs, &state, &room, least, most)
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
