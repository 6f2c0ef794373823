"""The best labeling of one small graph that was not packed, for the latency of a prediction."""

from structsolve.examples.stacking import distinct_pairs

cimport numpy as cnp
from libc.stdlib cimport calloc, free
from structsolve.utils.allocate cimport allocated
from structsolve.operators cimport Oracle

from structsolve.plugins.mrf.elimination._elimination cimport eliminate, elimination_bytes
from structsolve.plugins.mrf.elimination._plan cimport Plan, free_plan, make_plan
from structsolve.plugins.mrf.messages._max_product cimport forest_argmax, forest_bytes
from structsolve.plugins.mrf.tables._model cimport Model, breadth_first, score
from structsolve.plugins.mrf.tables._near cimport sort_edges
from structsolve.plugins.mrf.tables._shape cimport GraphShape

cnp.import_array()

cdef enum:
    MOST = 256      # nodes, and edges


cdef class SmallGraph(Oracle):
    """The best labeling of one graph, made by :func:`small_graph`."""

    cdef GraphShape places      # of another graph: where scores lie
    cdef cnp.ndarray ends
    cdef Model model
    cdef Plan plan
    cdef void* memory
    cdef int* order
    cdef int* up
    cdef bint forest

    def __dealloc__(self):
        free(self.memory)
        free_plan(&self.plan)

    cdef bint take(self, Py_ssize_t n, double most_entries) except -1:
        # Index the graph; False if it is not cheap.
        cdef Py_ssize_t m = self.ends.shape[0], K = self.places.n_states, v, needed
        cdef Py_ssize_t step = self.places.node_step
        cdef Py_ssize_t* starts
        cdef int* states
        self.memory = allocated(
            calloc(2 * n + m + 2 + (3 * n + 2 * m + 1) // 2, sizeof(Py_ssize_t)), b"a graph")
        starts = <Py_ssize_t*>self.memory
        states = <int*>(starts + 2 * n + 2 + m)
        self.order, self.up = states + n, states + 2 * n
        for v in range(n):
            # Rows of nodes keep their padding, which no state reads.
            starts[v + 1], states[v] = (v + 1) * step, <int>K
        self.model.n, self.model.m = n, m
        self.model.states, self.model.ends = states, <const int*>self.ends.data
        self.model.unary_at, self.model.near_at = starts, starts + n + 1
        self.model.pair_at, self.model.near = starts + 2 * n + 2, states + 3 * n
        sort_edges(n, m, self.model.ends, starts + n + 1, states + 3 * n)
        self.forest = breadth_first(&self.model, NULL, self.order, self.up)
        needed = forest_bytes(n * step)
        if not self.forest:
            make_plan(&self.model, most_entries, most_entries, False, &self.plan)
            if self.plan.entries == 0:
                return False
            needed = elimination_bytes(&self.plan, &self.model)
        self.work_bytes = (8 * K * K + 63) // 64 * 64 + needed
        return True

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Model model = self.model
        cdef Py_ssize_t K = self.places.n_states, s, t
        cdef const double* table = theta + self.places.pair_start
        cdef double* pair = <double*>work
        cdef char* rest = work + (8 * K * K + 63) // 64 * 64
        for s in range(K):
            for t in range(K):
                if self.places.symmetric and t < s:
                    pair[s * K + t] = table[t * self.places.row + s]
                else:
                    pair[s * K + t] = table[s * self.places.row + t]
        model.unary, model.pair = theta + self.places.node_start, pair
        if self.forest:
            forest_argmax(&model, self.order, self.up, label, rest)
        else:
            eliminate(&model, &self.plan, label, rest)
        value[0] = bound[0] = score(&model, label)
        return 0


def small_graph(GraphShape places not None, double most_entries, edges, Py_ssize_t n):
    """Return an oracle of one graph, or None if the graph is to be packed.

    Parameters
    ----------
    places : GraphShape
        Of any graph whose edges share a table and whose nodes have all states.
    most_entries : float
        Maximum number of sums of elimination.
    edges : list of pairs, or ndarray of int of shape (m, 2)
    n : int
        Number of nodes.

    Returns
    -------
    Oracle or None
    """
    cdef SmallGraph oracle
    if places.edge_rows or places.edge_step or places.skip:
        raise ValueError("places: found tables by edge or label sets, expected one table for all")
    pairs = distinct_pairs(edges, n) if n <= MOST else None
    if pairs is None or len(pairs) > MOST:
        return None
    oracle = SmallGraph.__new__(SmallGraph)
    oracle.places, oracle.ends = places, pairs
    return oracle if oracle.take(n, most_entries) else None
