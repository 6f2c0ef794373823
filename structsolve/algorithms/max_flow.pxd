# Maximum flow and minimum cut with real capacities, on memory that the caller hands in.

from structsolve.abi_number cimport structsolve_abi_marker

# A network in compressed rows.  Terminals are no nodes: each node has one signed number for them.
cdef struct Network:
    Py_ssize_t n                # nodes
    int* first                  # (n + 1,) where the arcs of each node start
    int* head                   # (2 m,) the node an arc leads to
    int* twin                   # (2 m,) the arc the other way, at the other end
    double* residual            # (2 m,) what the arc can still carry, >= 0; may be infinite
    double* terminal            # (n,) left from the source (> 0) or to the sink (< 0)
    int* work                   # (5 n,)

# Bytes of a network of n nodes and m pairs of arcs, and of what build_network() needs.
cdef Py_ssize_t max_flow_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
# Lays out a network of n nodes and m pairs in `memory` (8-byte aligned); contents are undefined.
cdef Network place_network(Py_ssize_t n, Py_ssize_t m, char* memory) noexcept nogil
# Pair j joins ends[2j] to ends[2j + 1] with capacity[2j] forwards, capacity[2j + 1] backwards;
# terminals are left to the caller.
cdef void build_network(Network* net, Py_ssize_t m, const int* ends,
                        const double* capacity) noexcept nogil
# Turns residuals into those of a maximum flow and returns its value, or INFINITY (and residuals
# of no use) where some path from source to sink has no bound.
cdef double max_flow(Network* net) noexcept nogil
# inside[v] <- 1 for the nodes that the source still reaches (the smallest source set of all
# minimum cuts), or, where `sink`, that still reach the sink (the smallest sink set).
cdef void cut_side(const Network* net, bint sink, signed char* inside) noexcept nogil
