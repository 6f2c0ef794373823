# Graphs of packed examples, and offsets of the parts of their labelings in theta.
from libc.stdint cimport int64_t

from structsolve.plugins.mrf.tables._model cimport Model


ctypedef Py_ssize_t (*BytesOf)(const Model*) noexcept nogil


cdef class GraphShape:
    cdef readonly Py_ssize_t n                  # examples
    cdef readonly Py_ssize_t n_graphs           # one per example, or one for all
    cdef readonly Py_ssize_t n_states           # most states of a node in the space
    cdef readonly Py_ssize_t max_nodes, max_edges, max_states, max_unary
    cdef readonly Py_ssize_t max_pair           # most pair scores of a graph
    cdef readonly Py_ssize_t max_cells          # pair marginals, a table per edge
    cdef readonly bint one_table                # all edges have the same scores, stored once
    cdef readonly Py_ssize_t cyclic             # the first graph with a cycle, -1 on forests
    cdef readonly bint one_graph                # all examples have the same graph
    cdef readonly bint binary                   # no node has more than two states
    cdef readonly double labelings              # most labelings of any example
    cdef readonly object ends                   # (m, 2), all graphs' one after the other
    cdef readonly object states                 # of all nodes
    # Bytes that gather() needs for scores, and scatter() for marginals, multiples of 64.
    cdef Py_ssize_t scores_bytes, marginal_bytes
    # Part of node v's state s: node_start + v * node_step + s - skip, none where s < skip.
    cdef Py_ssize_t node_start, node_step, skip
    # Part of states s, t at both ends of edge e: e * edge_step + s * row + t behind the edges'
    # start, which is pair_start, or the end of the node rows where there are edge features.
    cdef Py_ssize_t pair_start, edge_step, row
    cdef bint edge_rows                         # one row of theta per edge
    cdef bint symmetric                         # s and t are exchanged where s > t
    cdef Py_ssize_t row_size, edge_size
    cdef const int64_t* rows                    # the layout's: rows of nodes in theta
    cdef const int64_t* offset                  # the layout's: nodes of graphs
    cdef const int64_t* edge_offset             # NULL if there is one graph
    cdef const int* states_p
    cdef const int* ends_p
    cdef const int* near_p
    cdef const int* order_p                     # nodes from roots to leaves
    cdef const int* up_p                        # edge to the parent, -1 at roots
    cdef const Py_ssize_t* unary_p
    cdef const Py_ssize_t* pair_p
    cdef const Py_ssize_t* cell_p
    cdef const Py_ssize_t* near_at_p
    cdef object owners                          # not the layout, which holds this shape

    cdef Py_ssize_t first_node(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t first_edge(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t pairs_of(self, Py_ssize_t i) noexcept nogil
    # Maximum over the graphs of an algorithm's memory.
    cdef Py_ssize_t largest(self, BytesOf bytes_of) noexcept
    # Model of example i, without scores.
    cdef Model graph(self, Py_ssize_t i) noexcept nogil
    # ... with scores from theta, copied to `scores`: of nodes, and max_unary behind, of edges.
    cdef Model gather(self, Py_ssize_t i, const double* theta, double* scores) noexcept nogil
    # mu <- marginals of nodes and of pairs (as in cell_at), added up into theta's.
    cdef void scatter(self, Py_ssize_t i, const double* unary, const double* pair,
                      double* mu) noexcept nogil
    cdef Py_ssize_t cell(self, const int* label, const int* ends) noexcept nogil
    # mu <- mu(label), dense.
    cdef void indicate(self, Py_ssize_t i, const int* label, double* mu) noexcept nogil
