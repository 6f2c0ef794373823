from structsolve.abi_number cimport structsolve_abi_marker
cdef struct CutGraph:
    Py_ssize_t n, m
    const int* ends
    int* first
    int* arcs
    int* place
cdef struct Cut:
    CutGraph graph
    double* residual
    double* terminal
    int* rows
    int* tree
    int* work
    int depth
    double value
cdef Py_ssize_t cut_graph_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
cdef Py_ssize_t cut_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
cdef CutGraph build_cut_graph(Py_ssize_t n, Py_ssize_t m, const int* ends, char* graph_memory) noexcept nogil
cdef Cut place_cut(const CutGraph* graph, char* memory) noexcept nogil
cdef void load_cut(Cut* cut, const double* capacity, const double* terminal, const double* flow) noexcept nogil
cdef double solve_cut(Cut* cut) noexcept nogil
cdef void cut_side(const Cut* cut, bint sink, signed char* inside) noexcept nogil
cdef void save_flow(const Cut* cut, const double* capacity, double* flow) noexcept nogil
cdef double cut_value(const CutGraph* graph, const double* capacity, const double* terminal, const signed char* inside) noexcept nogil
