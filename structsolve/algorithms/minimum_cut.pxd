# Minimum cuts with real capacities, in the caller's memory.
#
# How to use it.  Source and sink are not nodes: each node has one signed number `terminal`, the
# capacity from the source if positive, or to the sink if negative.  A node with both has their
# difference; the smaller of the two is a constant of the cut's value.  In terms of two states:
# terminal[v] is the cost of v on the sink's side minus that on the source's side.  Pair j costs
# capacity[2j] if ends[2j] is on the source's side and ends[2j + 1] on the sink's side, and
# capacity[2j + 1] the other way round.
#
#     cdef CutGraph graph = build_cut_graph(n, m, ends, graph_memory)     # once per graph
#     cdef Cut cut = place_cut(&graph, memory)                            # once per thread
#     load_cut(&cut, capacity, terminal, NULL)                            # cold, or
#     load_cut(&cut, capacity, terminal, flow)                            # warm: see save_flow()
#     value = solve_cut(&cut)
#     cut_side(&cut, False, inside)           # before the next load
#     save_flow(&cut, capacity, flow)         # m numbers, the start of the next cut
#
# Graphs are read only and shared by threads; the memory of a Cut belongs to one call.  A loop that
# writes residuals, terminals and `value = 0` itself needs neither load_cut() nor arrays for them;
# load_cut(&cut, cut.residual, cut.terminal, flow) then subtracts a flow.

from structsolve.abi_number cimport structsolve_abi_marker

# Arcs by node.  Arc 2j leads from ends[2j] to ends[2j + 1], and arc 2j + 1 back, so arc ^ 1 is the
# reverse arc.
cdef struct CutGraph:
    Py_ssize_t n, m             # nodes, pairs of arcs; n < 2**29, m < 2**30
    const int* ends             # (m, 2) the caller's, not copied
    int* first                  # (n + 1,) start of each node's arcs in `arcs`
    int* arcs                   # (2 m,) numbers of arcs
    int* place                  # (2 m,) position of each arc in `arcs`

cdef struct Cut:
    CutGraph graph
    double* residual            # (2 m,) residual capacity of each arc, >= 0; may be infinite
    double* terminal            # (n,) residual from the source (> 0) or to the sink (< 0)
    int* rows                   # (2 m,) for each of `arcs`: head and open directions, see the code
    int* tree                   # (n,) distance in the source's tree > 0, in the sink's < 0, or 0
    int* work                   # (7 n + 2,)
    int depth                   # of the trees: arcs of nodes at smaller distances are finished
    double value                # of the flow so far

# Sizes of `graph_memory`, a multiple of 8, and of `memory`, in bytes; both are 8-byte aligned.
cdef Py_ssize_t cut_graph_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
cdef Py_ssize_t cut_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
# Lists the arcs of each node in O(n + m).  `ends` (m, 2) must outlive the graph; parallel pairs and
# loops are allowed.
cdef CutGraph build_cut_graph(Py_ssize_t n, Py_ssize_t m, const int* ends,
                              char* graph_memory) noexcept nogil
# Lays out memory for residuals, whose contents are undefined.
cdef Cut place_cut(const CutGraph* graph, char* memory) noexcept nogil
# Sets residuals and terminals from capacities (2 m, >= 0, or infinite) and terminals (n; infinite
# for nodes with a given side), minus a flow (m; pair j carries flow[j] from ends[2j] to
# ends[2j + 1]; NULL for none).  Both may be the cut's own arrays, written before.  The flow may be
# any finite numbers: they are clipped to the capacities and to what all terminals together can give,
# and the excess or deficit of a node goes to its terminal.  The answer is the same; the closer the
# flow to a maximum flow, the sooner solve_cut() is done (Kohli, Torr 2005).
cdef void load_cut(Cut* cut, const double* capacity, const double* terminal,
                   const double* flow) noexcept nogil
# Turns residuals into those of a maximum flow.  Returns its value, which equals that of a minimum
# cut up to rounding, or INFINITY (with useless residuals) if some path from source to sink has no
# limit.
cdef double solve_cut(Cut* cut) noexcept nogil
# inside[v] <- 1 for the nodes that the source still reaches (the smallest source set of all
# minimum cuts) or, if `sink`, that still reach the sink (the smallest sink set); else 0.
cdef void cut_side(const Cut* cut, bint sink, signed char* inside) noexcept nogil
# flow[j] <- the flow of pair j after solve_cut(); 0 if both its capacities are infinite.
cdef void save_flow(const Cut* cut, const double* capacity, double* flow) noexcept nogil
# The value of the cut with these nodes on the source's side, from the arguments of load_cut().
cdef double cut_value(const CutGraph* graph, const double* capacity, const double* terminal,
                      const signed char* inside) noexcept nogil
