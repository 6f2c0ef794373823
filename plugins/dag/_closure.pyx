"""Maximum closure of a directed acyclic graph: reductions, then a minimum cut of the rest.

The best closed set is the source side of a minimum cut in which arcs of infinite capacity lead from
children to parents (Picard 1976).  Two reductions come first, and are repeated:

* a node without open children is off if it adds nothing; else, if all its parents but one are
  on, it follows the remaining parent, which takes over its gain;
* a node that adds something and whose parents are all on is on.

Nodes are numbered parents first.
"""

import numpy as np

from structsolve.utils.arrays import check_numbers

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.utils.alignment cimport align
from structsolve.algorithms.minimum_cut cimport (
    Cut, CutGraph, build_cut_graph, cut_bytes, cut_graph_bytes, cut_side, place_cut, solve_cut,
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
    """A graph of n nodes, and its best closed set for any gains.

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
        cdef double[::1] memory = np.zeros(cut_graph_bytes(n, m) // 8 + 1)
        cdef int[::1] n_up = np.bincount(children, minlength=n + 1).astype(np.int32)
        cdef int[::1] n_down = np.bincount(parents, minlength=n + 1).astype(np.int32)
        np.asarray(ends)[:2 * m:2], np.asarray(ends)[1:2 * m:2] = children, parents
        self.n, self.m = n, m
        self.graph = build_cut_graph(n, m, &ends[0], <char*>&memory[0])
        self.n_up, self.n_down = &n_up[0], &n_down[0]
        self.owners = (memory, ends, n_up, n_down)
        # A cut and a saved flow; or reductions, ends, a graph and a cut.
        self.work_bytes = (cut_bytes(n, m) + cut_graph_bytes(n, m) + (2 * m + n) * 8 + 8 * m
                           + 24 * (n + 2) + 256)

    cdef void best(self, double* gain, signed char* on, char* work) noexcept nogil:
        cdef Py_ssize_t v, p, a, j, size = 0, m = 0
        cdef Reduction red = _reduce(self, gain, work)
        cdef int* ends = <int*>align(red.queued + self.n)
        cdef CutGraph graph
        cdef Cut cut
        for v in range(self.n):
            on[v] = red.state[v] == ON
            if red.state[v] == OPEN:
                red.target[v] = <int>size
                size += 1
                m += red.up[v]
        if size:
            j = 0
            for v in range(self.n):
                if red.state[v] != OPEN:
                    continue
                for a in range(self.graph.first[v], self.graph.first[v + 1]):
                    p = self.graph.ends[self.graph.arcs[a] ^ 1]
                    if self.graph.arcs[a] & 1 == 0 and red.state[p] == OPEN:
                        ends[2 * j], ends[2 * j + 1] = red.target[v], red.target[p]
                        j += 1
            work = align(ends + 2 * m)
            graph = build_cut_graph(size, m, ends, work)
            cut = place_cut(&graph, work + cut_graph_bytes(size, m))
            for j in range(m):
                cut.residual[2 * j], cut.residual[2 * j + 1] = INFINITY, 0
            for v in range(self.n):
                if red.state[v] == OPEN:
                    cut.terminal[red.target[v]] = gain[v]
            solve_cut(&cut)
            # The queue is no longer needed.
            cut_side(&cut, False, red.queued)
            for v in range(self.n):
                if red.state[v] == OPEN:
                    on[v] = red.queued[red.target[v]]
        for v in range(self.n):
            if red.state[v] == FOLLOWS:
                on[v] = on[red.target[v]]

    cdef void worths(self, const double* gain, signed char* on, double* worth,
                     char* work) noexcept nogil:
        # No reductions here: they give one best set only.
        cdef Py_ssize_t j, size = (2 * self.m + self.n) * sizeof(double)
        cdef double* saved = <double*>align(work)       # residuals, and terminals behind them
        cdef Cut cut = place_cut(&self.graph, <char*>saved + size)
        cdef double here
        for j in range(self.m):
            cut.residual[2 * j], cut.residual[2 * j + 1] = INFINITY, 0
        memcpy(cut.terminal, gain, self.n * sizeof(double))
        if solve_cut(&cut) == INFINITY:
            # A node that must be on is forbidden: no set is possible.
            for j in range(self.n):
                on[j] = worth[j] = 0
            return
        cut_side(&cut, False, on)
        memcpy(saved, cut.residual, 2 * self.m * sizeof(double))
        memcpy(saved + 2 * self.m, cut.terminal, self.n * sizeof(double))
        for j in range(self.n):
            # The additional flow with the node on the other side.
            memcpy(cut.residual, saved, 2 * self.m * sizeof(double))
            memcpy(cut.terminal, saved + 2 * self.m, self.n * sizeof(double))
            here = fabs(cut.terminal[j])
            cut.terminal[j] = -INFINITY if on[j] else INFINITY
            cut.value = 0
            if here < INFINITY:
                here += solve_cut(&cut)
            worth[j] = here if on[j] else -here


cdef Reduction _reduce(ClosureGraph graph, double* gain, char* work) noexcept nogil:
    cdef Reduction red
    cdef Py_ssize_t n = graph.n, v, p, a
    cdef const int* first = graph.graph.first
    cdef const int* arcs = graph.graph.arcs
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
            p = graph.graph.ends[arcs[a] ^ 1]
            if red.state[p] != OPEN:
                continue
            if arcs[a] & 1 == 0:
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
