"""Best simple paths in graphs with cycles, and the k best by Yen's algorithm.

If no step scores above 0, Dijkstra's algorithm; else Bellman and Ford's.  If a cycle scores above
0, walks have no best one, and the best simple path is NP-hard.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.algorithms.lawler_heap cimport Candidate, pop, push

from structsolve.plugins.path._shape cimport PathShape

# Gains below this share of the largest score are rounding errors of sums around a cycle.
cdef double ROUNDING = 1e-13


cdef int _refuse_cycle(PathShape shape, Py_ssize_t i, int p, const int* before) except -1 with gil:
    walk = []
    while p >= 0 and p not in walk:
        walk.append(p)
        p = before[p]
    cycle = walk[walk.index(p):] if p in walk else walk
    names = [shape.name(i, shape.nodes[shape.offsets[i] + q]) for q in reversed(cycle)]
    raise ValueError(
        f"example {i}: a cycle of {len(names)} nodes has a positive score, which is a negative cost "
        f"({names[:12]}), so the k best paths cannot be found; keep costs at 0 or above, by "
        "features of at least 0 and constraints=[WeightBounds('node', upper=0)] of the solver, or "
        "give a DAG or a grid with monotone=True"
    )


cdef Py_ssize_t search_bytes(PathShape shape) noexcept nogil:
    return 16 * shape.max_nodes + (shape.max_edges + 1) * <Py_ssize_t>sizeof(Candidate)


cdef bint best_simple_path(PathShape shape, Py_ssize_t i, const double* steps, int start,
                           double* value, int* via, char* work) noexcept nogil:
    cdef Py_ssize_t p, k, n = shape.places_of(i)
    cdef const int* first = shape.first_of(i)
    cdef const int* targets = shape.targets_of(i)
    cdef double* best = <double*>work
    cdef Candidate* heap = <Candidate*>(best + shape.max_nodes)
    cdef int* before = <int*>(heap + shape.max_edges + 1)
    cdef int* into = before + shape.max_nodes
    cdef int last = <int>n - 1, v
    cdef double largest = 0, above = 0
    for p in range(n):
        best[p], before[p] = -INFINITY, -1
    for k in range(first[n]):
        above = max(above, steps[k])
        if steps[k] > -INFINITY:
            largest = max(largest, fabs(steps[k]))
    best[start] = 0
    if above <= 0:
        _dijkstra(first, targets, steps, start, last, best, before, into, heap)
    else:
        v = _bellman_ford(n, first, targets, steps, ROUNDING * largest, best, before, into)
        if v >= 0:
            via[0] = v
            return False
    value[0] = best[last]
    if value[0] > -INFINITY:
        v = last
        while v != start:
            via[before[v]] = into[v]
            v = before[v]
    return True


cdef inline const int* _before(PathShape shape, char* work) noexcept nogil:
    return <int*>(work + 8 * shape.max_nodes + (shape.max_edges + 1) * sizeof(Candidate))


cdef void _dijkstra(const int* first, const int* targets, const double* steps, int start, int last,
                    double* best, int* before, int* into, Candidate* heap) noexcept nogil:
    cdef Py_ssize_t k, size = 0
    cdef Candidate item
    cdef int v
    cdef double score
    item.value, item.path, item.v, item.s = 0, 0, start, 0
    push(heap, &size, item)
    while size:
        item = pop(heap, &size)
        v = item.v
        if v == last:
            break
        if item.value < best[v]:
            continue
        for k in range(first[v], first[v + 1]):
            score = best[v] + steps[k]
            if score > best[targets[k]]:
                best[targets[k]], before[targets[k]], into[targets[k]] = score, v, <int>k
                item.value, item.v = score, targets[k]
                push(heap, &size, item)


cdef int _bellman_ford(Py_ssize_t n, const int* first, const int* targets, const double* steps,
                       double least, double* best, int* before, int* into) noexcept nogil:
    # A place on or behind a cycle of positive score, or -1.
    cdef Py_ssize_t p, k, turn
    cdef int gained = -1
    for turn in range(n):
        gained = -1
        for p in range(n):
            if best[p] == -INFINITY:
                continue
            for k in range(first[p], first[p + 1]):
                if best[p] + steps[k] > best[targets[k]] + least:
                    best[targets[k]] = best[p] + steps[k]
                    before[targets[k]], into[targets[k]] = <int>p, <int>k
                    gained = targets[k]
        if gained < 0:
            break
    return gained


# A path that may be the next answer: it follows answers before it up to step `branch`.
cdef struct Path:
    double value
    int branch, size


cdef Py_ssize_t _path_bytes(PathShape shape) noexcept nogil:
    return (sizeof(Path) + shape.max_nodes * sizeof(int) + 7) // 8 * 8


cdef Py_ssize_t yen_bytes(PathShape shape, Py_ssize_t k) noexcept:
    return (search_bytes(shape) + 8 * shape.max_edges + 8 * shape.max_nodes + 64
            + (2 * k + 2) * _path_bytes(shape))


cdef inline int* _taken(Path* path) noexcept nogil:
    return <int*>(path + 1)


cdef void _write(PathShape shape, Py_ssize_t i, const double* steps, const int* via,
                 Path* path) noexcept nogil:
    # The rest of the path from via, behind the steps it has, and its value.
    cdef int p = 0, last = <int>shape.places_of(i) - 1
    cdef int j
    for j in range(path.size):
        p = shape.targets_of(i)[_taken(path)[j]]
    while p != last:
        _taken(path)[path.size] = via[p]
        path.size += 1
        p = shape.targets_of(i)[via[p]]
    path.value = 0
    for j in range(path.size):
        path.value += steps[_taken(path)[j]]


cdef void _keep(char* pool, Py_ssize_t* size, Py_ssize_t most, Py_ssize_t room,
                const Path* new) noexcept nogil:
    # In place of the worst if the pool is full.
    cdef Py_ssize_t j, place = size[0]
    if place == most:
        for j in range(place):
            if place == most or (<Path*>(pool + j * room)).value < (
                    <Path*>(pool + place * room)).value:
                place = j
        if (<Path*>(pool + place * room)).value >= new.value:
            return
    else:
        size[0] += 1
    memcpy(pool + place * room, new, room)


cdef Py_ssize_t k_simple_paths(PathShape shape, Py_ssize_t i, const double* steps, Py_ssize_t k,
                               int* labels, double* values, char* work) except -1 nogil:
    cdef Py_ssize_t room = _path_bytes(shape), size = 0, count = 0, j, b, e, n = shape.places_of(i)
    cdef Py_ssize_t m = shape.first_of(i)[n]
    cdef const int* targets = shape.targets_of(i)
    cdef double* left = <double*>(work + (search_bytes(shape) + 63) // 64 * 64)
    cdef char* answers = <char*>(left + shape.max_edges)
    cdef char* pool = answers + k * room
    cdef Path* new = <Path*>(pool + k * room)
    cdef Path* own
    cdef int* via = <int*>(<char*>new + room)
    cdef int* passed = via + shape.max_nodes
    cdef double score
    cdef int p
    if not best_simple_path(shape, i, steps, 0, &score, via, work):
        return _refuse_cycle(shape, i, via[0], _before(shape, work))
    if score == -INFINITY:
        return 0
    new.branch = new.size = 0
    _write(shape, i, steps, via, new)
    _keep(pool, &size, k, room, new)
    while count < k and size:
        b = 0
        for j in range(1, size):
            if (<Path*>(pool + j * room)).value > (<Path*>(pool + b * room)).value:
                b = j
        own = <Path*>(answers + count * room)
        memcpy(own, pool + b * room, room)
        size -= 1
        memcpy(pool + b * room, pool + size * room, room)
        p = 0
        for j in range(own.size):
            via[p] = _taken(own)[j]
            p = targets[via[p]]
        shape.follow(i, via, labels + count * shape.nodes_of(i))
        # A larger value is equal up to rounding.
        values[count] = min(own.value, values[count - 1]) if count else own.value
        count += 1
        if count == k:
            break
        # Paths that leave this answer first at step j, and have none of the others' steps there.
        memset(passed, 0, n * sizeof(int))
        p = 0
        for j in range(own.size):
            if j >= own.branch:
                for e in range(m):
                    left[e] = -INFINITY if passed[targets[e]] else steps[e]
                for b in range(count):
                    new = <Path*>(answers + b * room)
                    for e in range(j + 1):
                        if e == j and e < new.size:
                            left[_taken(new)[e]] = -INFINITY
                        elif e >= new.size or _taken(new)[e] != _taken(own)[e]:
                            break
                new = <Path*>(pool + k * room)
                if not best_simple_path(shape, i, left, p, &score, via, work):
                    return _refuse_cycle(shape, i, via[0], _before(shape, work))
                if score > -INFINITY:
                    new.branch = new.size = <int>j
                    memcpy(_taken(new), _taken(own), j * sizeof(int))
                    _write(shape, i, steps, via, new)
                    _keep(pool, &size, k - count, room, new)
            passed[p] = 1
            p = targets[_taken(own)[j]]
    return count
