"""Integer costs of node states, read from part costs; others are refused."""

from libc.math cimport INFINITY, floor


cdef int check_most(Py_ssize_t most, Py_ssize_t nodes, Py_ssize_t K, Py_ssize_t stride) except -1:
    # Computed in Python integers, which do not overflow.
    wanted = 8 * int(nodes) * (int(most) + 1) * int(stride)
    if most < 0 or most >= 2**31 - 2 or wanted > 2**48:
        raise ValueError(
            f"most is {most}, expected at least 0 and few enough counts that one score for each of "
            f"{nodes} nodes, {K} states and all counts fits into memory"
        )
    return 0


cdef int _no_count(Py_ssize_t i, Py_ssize_t v, Py_ssize_t s, double cost) except -1 with gil:
    raise ValueError(
        f"example {i}, node {v}, state {s}: the cost is {cost}, which is no count; expected an "
        "integer of at least 0 (shift the costs of the node, or count agreements)"
    )


cdef int _not_on_nodes(Py_ssize_t i, double cost) except -1 with gil:
    raise ValueError(
        f"example {i}: a part that is no state of a node costs {cost}, expected 0: counts are "
        "those of nodes"
    )


cdef int count_steps(Py_ssize_t i, const double* cost, Py_ssize_t shared, Py_ssize_t n,
                     Py_ssize_t K, Py_ssize_t stride, Py_ssize_t extra, Py_ssize_t most,
                     int* steps) except -1 nogil:
    cdef Py_ssize_t v, s, behind = shared + n * stride
    cdef double x
    for s in range(shared):
        if cost[s] != 0:
            return _not_on_nodes(i, cost[s])
    for s in range(behind, behind + extra):
        if cost[s] != 0:
            return _not_on_nodes(i, cost[s])
    cost += shared
    for v in range(n):
        for s in range(K):
            x = cost[v * stride + s]
            if not (x >= 0 and x < INFINITY and floor(x) == x):
                return _no_count(i, v, s, x)
            steps[v * K + s] = <int>x if x <= most else <int>(most + 1)
    return 0
