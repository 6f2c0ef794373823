# build: glue
"""Flows of least separable piecewise-linear cost, convex or not: descent along residual cycles.

The cost of arc a is given by its kinks ``x_0 < x_1 < ...`` and the slopes between them.  Any move
between two flows is a sum of cycles of the residual network, whose costs add up.
If no cycle has a negative derivative, the flow is a local minimum, and the global one if all costs
are convex.  Descent chooses a cycle with a negative derivative and goes along it while the cost
falls.

If kinks are close together, such moves end at the next kink.  So steps of fixed lengths come
first, as in the scaling algorithms for convex flows: while there is a cycle along which a step of
delta lowers the cost, that step is taken; then delta shrinks.  Later, after every twelve cycles,
the sum of their moves is tried as a direction.

If costs are concave, increasing and decreasing an arc at once would be such a cycle, without any
move.  There both directions first get the derivative to the right, and when no cycle gains, that to
the left.  A cycle that increases some such arcs and decreases others may be missed, which is rare.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memset


cdef double FINEST = 1e-9       # steps of fixed length, as a share of the widest arc
cdef int IDLE = 64              # cycles without a gain beyond rounding that end the descent
cdef int TOGETHER = 12          # cycles whose sum is a direction: a multiple of many periods


cdef inline double _right(const Costs* c, const State* s, Py_ssize_t a) noexcept nogil:
    cdef long long k = s.place[a] >> 1
    return c.slopes[k] if k < c.first[a + 1] - 1 else INFINITY


cdef inline double _left(const Costs* c, const State* s, Py_ssize_t a) noexcept nogil:
    cdef long long k = (s.place[a] - 1) >> 1
    return c.slopes[k] if s.place[a] > 2 * c.first[a] else -INFINITY


cdef inline long long _kink_below(const Costs* c, Py_ssize_t a, double x) noexcept nogil:
    # The last kink of the arc that is at most x, without the arc's last kink.
    cdef long long low = c.first[a], high = c.first[a + 1] - 1, middle
    while high - low > 1:
        middle = (low + high) >> 1
        if c.kinks[middle] <= x:
            low = middle
        else:
            high = middle
    return low


cdef void _locate(const Costs* c, State* s) noexcept nogil:
    # place <- the places of the flows y, which are clipped to the bounds.
    cdef Py_ssize_t a
    cdef long long low, high
    for a in range(c.m):
        low, high = c.first[a], c.first[a + 1] - 1
        if s.y[a] <= c.kinks[low]:
            s.y[a], s.place[a] = c.kinks[low], 2 * low
        elif s.y[a] >= c.kinks[high]:
            s.y[a], s.place[a] = c.kinks[high], 2 * high
        else:
            low = _kink_below(c, a, s.y[a])
            s.place[a] = 2 * low + (s.y[a] > c.kinks[low])


cdef inline double _cost_at(const Costs* c, Py_ssize_t a, double x) noexcept nogil:
    cdef long long low = _kink_below(c, a, x)
    return c.levels[low] + c.slopes[low] * (x - c.kinks[low])


cdef double cost_of(const Costs* c, const State* s) noexcept nogil:
    cdef Py_ssize_t a
    cdef double total = 0
    for a in range(c.m):
        total += _cost_at(c, a, s.y[a])
    return total


cdef inline bint _bent(const Room* r, Py_ssize_t a) noexcept nogil:
    return r.up[a] + r.down[a] < 0


cdef inline double _more(const Room* r, Py_ssize_t a, bint below) noexcept nogil:
    # Cost of more flow in _cycle().
    return -r.down[a] if below and _bent(r, a) else r.up[a]


cdef inline double _less(const Room* r, Py_ssize_t a, bint below) noexcept nogil:
    return -r.up[a] if not below and _bent(r, a) else r.down[a]


cdef Py_ssize_t _any_cycle(const Costs* c, const Room* r, double least) noexcept nogil:
    # As _cycle(), with derivatives to the right, then, for concave costs, to the left.
    cdef Py_ssize_t a, length = _cycle(c, r, least, False)
    if length == 0:
        for a in range(c.m):
            if _bent(r, a):
                return _cycle(c, r, least, True)
    return length


cdef Py_ssize_t _cycle(const Costs* c, const Room* r, double least, bint below) noexcept nogil:
    # A residual cycle (2 a: along arc a, 2 a + 1: against it) that costs less than -least; returns
    # its length, or 0.  Bellman and Ford's algorithm from all nodes at once.
    cdef Py_ssize_t a, v, _, length, u, z
    cdef double total, gain = least / (4 * c.n)
    cdef double* dist = r.dist
    cdef int* via = r.via
    cdef int* seen = r.seen
    cdef int stamp, way
    cdef bint moved
    for v in range(c.n):
        dist[v], via[v] = 0, -1
    for _ in range(c.n + 1):
        moved = False
        for a in range(c.m):
            u, z = c.ends[2 * a], c.ends[2 * a + 1]
            if dist[u] + _more(r, a, below) < dist[z] - gain:
                dist[z], via[z] = dist[u] + _more(r, a, below), <int>(2 * a)
                moved = True
            if dist[z] + _less(r, a, below) < dist[u] - gain:
                dist[u], via[u] = dist[z] + _less(r, a, below), <int>(2 * a + 1)
                moved = True
        if not moved:
            return 0
        # Look for a cycle of parents after every round.
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
                total += _less(r, way >> 1, below) if way & 1 else _more(r, way >> 1, below)
                u = c.ends[2 * (way >> 1) + (way & 1)]
                if u == z:
                    break
            if total < -least:
                return length
    return 0


cdef double _follow(const Costs* c, State* s, const Room* r, Py_ssize_t length,
                    double least) noexcept nogil:
    # Move along the cycle while the cost falls; returns the gain.
    cdef Py_ssize_t j, a
    cdef long long k
    cdef double step, room, slope, gain = 0
    cdef const int* cycle = r.cycle
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
            r.moves[cycle[j] >> 1] += -step if cycle[j] & 1 else step
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


cdef inline double _until_kink(const Costs* c, const State* s, Py_ssize_t a,
                               double speed) noexcept nogil:
    cdef long long k
    if speed > 0:
        k = s.place[a] >> 1
        return (c.kinks[k + 1] - s.y[a]) / speed if k < c.first[a + 1] - 1 else 0
    k = (s.place[a] - 1) >> 1
    return (c.kinks[k] - s.y[a]) / speed if s.place[a] > 2 * c.first[a] else 0


cdef double _along_moves(const Costs* c, State* s, double* speed, double least) noexcept nogil:
    # Move along a circulation while the cost falls; returns the gain.
    cdef Py_ssize_t a
    cdef long long k
    cdef double size = 0, gain = 0, slope, step
    for a in range(c.m):
        size = max(size, fabs(speed[a]))
    if size == 0:
        return 0
    for a in range(c.m):
        # Moves that cancel up to rounding do not count.
        speed[a] = speed[a] / size if fabs(speed[a]) > 1e-12 * size else 0
    while True:
        step, slope = INFINITY, 0
        for a in range(c.m):
            if speed[a] != 0:
                slope += speed[a] * (_right(c, s, a) if speed[a] > 0 else _left(c, s, a))
                step = min(step, _until_kink(c, s, a, speed[a]))
        if not slope < -least:
            return gain
        gain -= slope * step
        for a in range(c.m):
            if speed[a] == 0:
                continue
            k = s.place[a] >> 1 if speed[a] > 0 else (s.place[a] - 1) >> 1
            if _until_kink(c, s, a, speed[a]) <= step * (1 + 1e-14):
                k += speed[a] > 0
                s.y[a], s.place[a] = c.kinks[k], 2 * k
            else:
                s.y[a] += speed[a] * step
                s.place[a] = 2 * k + 1


cdef Py_ssize_t _steps(const Costs* c, State* s, const Room* r, double delta, double least,
                       Py_ssize_t most) noexcept nogil:
    # Step along cycles on which a step of delta lowers the cost; returns their number.
    cdef Py_ssize_t a, j, taken, length
    cdef double here
    for taken in range(most):
        for a in range(c.m):
            here = _cost_at(c, a, s.y[a])
            r.up[a] = r.down[a] = INFINITY
            if s.y[a] + delta <= c.kinks[c.first[a + 1] - 1]:
                r.up[a] = (_cost_at(c, a, s.y[a] + delta) - here) / delta
            if s.y[a] - delta >= c.kinks[c.first[a]]:
                r.down[a] = (_cost_at(c, a, s.y[a] - delta) - here) / delta
        length = _any_cycle(c, r, least)
        if length == 0:
            return taken
        for j in range(length):
            a = r.cycle[j] >> 1
            s.y[a] += -delta if r.cycle[j] & 1 else delta
    return most


cdef void measure(Costs* c) noexcept nogil:
    cdef Py_ssize_t a
    cdef long long k
    cdef double level, widest = 0, highest = 0
    for a in range(c.m):
        level = c.levels[c.first[a]] = 0
        for k in range(c.first[a], c.first[a + 1] - 1):
            level += c.slopes[k] * (c.kinks[k + 1] - c.kinks[k])
            c.levels[k + 1] = level
            highest = max(highest, fabs(level))
        widest = max(widest, c.kinks[c.first[a + 1] - 1] - c.kinks[c.first[a]])
    c.widest, c.highest = widest, highest


cdef Py_ssize_t descend(const Costs* c, State* s, const Room* r, double least,
                        Py_ssize_t most) noexcept nogil:
    cdef Py_ssize_t a, taken = 0, length
    cdef int idle = 0, summed = 0
    cdef double delta = c.widest / 4, gain
    s.idle = False
    memset(r.moves, 0, c.m * sizeof(double))
    while delta > FINEST * c.widest and taken < most:
        # The slack keeps rounding of the costs from counting as a gain.
        taken += _steps(c, s, r, delta, least + 1e-14 * c.highest / delta,
                        min(most - taken, 4 * (c.m + 8)))
        delta /= 4
    _locate(c, s)
    for taken in range(taken, most):
        for a in range(c.m):
            r.up[a], r.down[a] = _right(c, s, a), -_left(c, s, a)
        length = _any_cycle(c, r, least)
        if length == 0:
            return taken
        gain = _follow(c, s, r, length, least)
        summed += 1
        if summed == TOGETHER:
            gain += _along_moves(c, s, r.moves, least)
            memset(r.moves, 0, c.m * sizeof(double))
            summed = 0
        # Rounding may split a kink in two; cycles between both would gain nothing forever.
        idle = idle + 1 if gain < 1e-15 * c.highest else 0
        if idle == IDLE:
            s.idle = True
            return taken
    return -1
