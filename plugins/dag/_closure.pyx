"""Maximum closure of a directed acyclic graph: reductions, then a minimum cut of the rest.

The best closed set is the source side of a minimum cut where arcs of infinite capacity lead from
children to parents (Picard 1976).  Before that two reductions are repeated:

* a node without open children is off where it adds nothing; else, if all its parents but one are
  on, it follows that one, which takes over its gain;
* a node that adds something and whose parents are all on is on.

Nodes are numbered parents first.
"""

import numpy as np

from structsolve.utils.arrays import check_numbers

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.utils.alignment cimport align
from structsolve.algorithms.max_flow cimport (
    Network, build_network, cut_side, max_flow, max_flow_bytes, place_network,
)

cdef enum State:
    OPEN = 0
    ON = 1
    OFF = 2
    FOLLOWS = 3


# State of the reductions.
cdef struct Reduction:
    int* up             # open parents
    int* down           # open children
    int* target         # the parent that a node follows; new numbers of open nodes
    int* queue          # (n + 1,) nodes to visit, a ring buffer
    signed char* state
    signed char* queued
    Py_ssize_t begin, end


@cython.final
cdef class ClosureGraph:
    """A graph of n nodes, whose best closed sets are sought at any gains.

    Parameters
    ----------
    n : int
    children, parents : ndarray of int32 of shape (m,)
        The ends of arcs.
    """

    def __init__(self, Py_ssize_t n, children, parents):
        cdef Py_ssize_t m = len(children)
        if n < 0 or len(parents) != m:
            raise ValueError(f"found {n} nodes, {m} children and {len(parents)} parents")
        check_numbers(children, n, "children")
        check_numbers(parents, n, "parents")
        cdef int[::1] ends = np.zeros(2 * m + 1, np.int32)
        cdef double[::1] capacity = np.zeros(2 * m + 1)
        cdef double[::1] memory = np.zeros(max_flow_bytes(n, m) // 8 + 2)
        cdef int[::1] n_up = np.bincount(children, minlength=n + 1).astype(np.int32)
        cdef int[::1] n_down = np.bincount(parents, minlength=n + 1).astype(np.int32)
        np.asarray(ends)[:2 * m:2], np.asarray(ends)[1:2 * m:2] = children, parents
        np.asarray(capacity)[:2 * m:2] = np.inf
        self.n, self.m = n, m
        self.template = place_network(n, m, <char*>&memory[0])
        build_network(&self.template, m, &ends[0], &capacity[0])
        self.n_up, self.n_down = &n_up[0], &n_down[0]
        self.owners = (memory, n_up, n_down)
        # A network and a saved flow; or reductions, ends and capacities, and a network.
        self.work_bytes = 2 * max_flow_bytes(n, m) + 24 * m + 24 * (n + 2) + 256

    cdef void best(self, double* gain, signed char* on, char* work) noexcept nogil:
        cdef Py_ssize_t v, p, a, size = 0, m = 0
        cdef Reduction red = _reduce(self, gain, work)
        cdef double* capacity = <double*>align(red.queued + self.n)
        cdef int* ends
        cdef Network net
        for v in range(self.n):
            on[v] = red.state[v] == ON
            if red.state[v] == OPEN:
                red.target[v] = <int>size
                size += 1
                m += red.up[v]
        if size:
            ends = <int*>(capacity + 2 * m)
            net = place_network(size, m, align(ends + 2 * m))
            m = 0
            for v in range(self.n):
                if red.state[v] != OPEN:
                    continue
                net.terminal[red.target[v]] = gain[v]
                for a in range(self.template.first[v], self.template.first[v + 1]):
                    p = self.template.head[a]
                    if self.template.residual[a] > 0 and red.state[p] == OPEN:
                        ends[2 * m], ends[2 * m + 1] = red.target[v], red.target[p]
                        capacity[2 * m], capacity[2 * m + 1] = INFINITY, 0
                        m += 1
            build_network(&net, m, ends, capacity)
            max_flow(&net)
            # The queue is no longer needed.
            cut_side(&net, False, red.queued)
            for v in range(self.n):
                if red.state[v] == OPEN:
                    on[v] = red.queued[red.target[v]]
        for v in range(self.n):
            if red.state[v] == FOLLOWS:
                on[v] = on[red.target[v]]

    cdef void worths(self, const double* gain, signed char* on, double* worth,
                     char* work) noexcept nogil:
        # Without reductions, which give one best set only.
        cdef Network net = self.template
        cdef Py_ssize_t j, size = (2 * self.m + self.n) * sizeof(double)
        cdef double* saved
        cdef double flow, here
        net.residual = <double*>align(work)
        net.terminal = net.residual + 2 * self.m
        saved = net.terminal + self.n
        net.work = <int*>(saved + 2 * self.m + self.n)
        memcpy(net.residual, self.template.residual, 2 * self.m * sizeof(double))
        memcpy(net.terminal, gain, self.n * sizeof(double))
        flow = max_flow(&net)
        if flow == INFINITY:
            # A node that must be on is forbidden: no set is possible.
            for j in range(self.n):
                on[j] = worth[j] = 0
            return
        cut_side(&net, False, on)
        memcpy(saved, net.residual, size)
        for j in range(self.n):
            # The additional flow with the node on the other side.
            memcpy(net.residual, saved, size)
            here = fabs(net.terminal[j])
            net.terminal[j] = -INFINITY if on[j] else INFINITY
            if here < INFINITY:
                here += max_flow(&net)
            worth[j] = here if on[j] else -here


cdef Reduction _reduce(ClosureGraph graph, double* gain, char* work) noexcept nogil:
    cdef Reduction red
    cdef Py_ssize_t n = graph.n, v, p, a
    cdef const int* first = graph.template.first
    cdef const int* head = graph.template.head
    cdef const double* upwards = graph.template.residual
    red.up = <int*>align(work)
    red.down = red.up + n
    red.target = red.down + n
    red.queue = red.target + n
    red.state = <signed char*>(red.queue + n + 1)
    red.queued = red.state + n
    memcpy(red.up, graph.n_up, n * sizeof(int))
    memcpy(red.down, graph.n_down, n * sizeof(int))
    memset(red.state, OPEN, n)
    memset(red.queued, 1, n)
    for v in range(n):
        red.queue[v] = <int>(n - 1 - v)
    red.begin, red.end = 0, n
    while red.begin != red.end:
        v = red.queue[red.begin]
        red.begin = red.begin + 1 if red.begin < n else 0
        red.queued[v] = 0
        if red.state[v] != OPEN:
            continue
        if red.down[v] == 0 and gain[v] <= 0:
            red.state[v] = OFF
        elif red.up[v] == 0 and gain[v] > 0:
            red.state[v] = ON
        elif red.down[v] == 0 and red.up[v] == 1 and gain[v] > 0:
            red.state[v] = FOLLOWS
        else:
            continue
        for a in range(first[v], first[v + 1]):
            p = head[a]
            if red.state[p] != OPEN:
                continue
            if upwards[a] > 0:
                red.down[p] -= 1
                if red.state[v] == FOLLOWS:
                    red.target[v] = <int>p
                    gain[p] += gain[v]
            else:
                red.up[p] -= 1
            if not red.queued[p]:
                red.queued[p] = 1
                red.queue[red.end] = <int>p
                red.end = red.end + 1 if red.end < n else 0
    return red
