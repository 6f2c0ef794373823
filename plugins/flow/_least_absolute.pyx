# build: glue
"""Flows of least weighted absolute distance to training flows, for weights of any sign.

The loss is piecewise linear in each arc's flow, with kinks at the training flows; negative weights
make it concave there.  The largest convex function below it gives a bound and a start.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy
from structsolve.plugins.flow._cycle_canceling cimport (
    Costs, Room, State, cost_of, descend, measure
)

from structsolve.utils.parallel import over_examples


cdef void _convexify(const Costs* c, double* out, double* value, double* width,
                     long long* count) noexcept nogil:
    # Slopes of the largest convex functions below the costs: falling slopes are pooled.
    cdef Py_ssize_t a
    cdef long long k, j, top, segment
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
        segment = c.first[a]
        for j in range(top):
            for k in range(count[j]):
                out[segment] = value[j]
                segment += 1
        out[segment] = 0


cdef Py_ssize_t _best_item(const Costs* c, Py_ssize_t n, const long long* item,
                           const long long* place, double* sums) noexcept nogil:
    # The training flow of least cost; sums <- the costs of all.
    cdef Py_ssize_t i, best = 0
    for i in range(n):
        sums[i] = 0
    for i in range(c.m * n):
        sums[item[i]] += c.levels[place[i]]
    for i in range(n):
        if sums[i] < sums[best]:
            best = i
    return best


def least_absolute(ends, Py_ssize_t n_nodes, const long long[::1] first not None,
                   const double[::1] kinks not None, const long long[::1] item not None,
                   const long long[::1] place not None, *, const double[:, ::1] weights not None,
                   const double[:, ::1] starts not None, Py_ssize_t most=10000, n_jobs=1):
    """Return flows that minimise ``sum_i w_i |y - y_i|``, for rows of weights of any sign.

    Parameters
    ----------
    ends : ndarray of int32 of shape (m, 2)
    n_nodes : int
    first : ndarray of int64 of shape (m + 1,)
        Start of the kinks of each arc.
    kinks : ndarray
        For each arc its bounds and the distinct flows of the training labels, sorted.
    item, place : ndarray of int64 of shape (m * n,)
        For each arc and training label: the label's number, and the kink that is
        its flow.
    weights : ndarray of shape (t, n)
    starts : ndarray of shape (t, m)
        Flows to start from.
    most : int, default=10000
        Maximum number of cycles, a guard.
    n_jobs : int, default=1
        Threads over the rows.

    Returns
    -------
    flows : ndarray of shape (t, m)
    excess : ndarray of shape (t,)
        Upper bound on the cost above the optimum; 0 (up to rounding) where no weight is
        negative, infinite if ``most`` cycles were not enough for a bound.
    cycles : ndarray of int64 of shape (t,)
        -1 if ``most`` were not enough.
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
        array = np.asarray(values)
        if array.size and (array.min() < 0 or array.max() >= limit):
            raise ValueError(f"{what}: found {array.min()} to {array.max()}, expected 0 to "
                             f"{limit - 1}")
    if (np.diff(np.asarray(first)) < 1).any() or first[0] != 0:
        raise ValueError("first: expected rising numbers from 0, with at least one kink per arc")
    flows, excess = np.array(starts), np.zeros(t_rows)
    cycles = np.zeros(t_rows, dtype=np.int64)
    cdef double[:, ::1] flow_view = flows
    cdef double[::1] excess_view = excess
    cdef long long[::1] cycle_view = cycles

    def scratch():
        return (np.zeros(5 * total + 5 * m + n_nodes + n + 8), np.zeros(total + m + 8, np.longlong),
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
        room.moves = room.down + m
        room.dist = room.moves + m
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
                # The minimum of the convex costs is a bound.
                measure(&convex)
                used = descend(&convex, &state, &room, least, most)
                bound = -INFINITY if used < 0 or state.idle else cost_of(&convex, &state)
                lowest = INFINITY
                measure(&costs)
                # Starts: the bound's flow, the given start, and the best training flow.
                for side in range(3):
                    if side == 2:
                        i = _best_item(&costs, n, &item[0], &place[0], room.dist + n_nodes)
                        if room.dist[n_nodes + i] >= lowest:
                            break
                    if side:
                        memcpy(best + m, state.y, m * sizeof(double))
                        if side == 1:
                            memcpy(state.y, best, m * sizeof(double))
                        else:
                            for a in range(m):
                                state.y[a] = kinks[place[a * n + i]]
                    spent = descend(&costs, &state, &room, least, most)
                    used = -1 if used < 0 or spent < 0 else used + spent
                    cost = cost_of(&costs, &state)
                    if side and lowest <= cost:
                        memcpy(state.y, best + m, m * sizeof(double))
                    else:
                        lowest = cost
                    if used >= 0 and lowest <= bound + 1e-9 * fabs(bound) + least:
                        break
                excess_view[t], cycle_view[t] = max(lowest - bound, 0), used

    over_examples(piece, np.arange(t_rows + 1, dtype=np.int64) * (20 * m), n_jobs, scratch)
    return flows, excess, cycles
