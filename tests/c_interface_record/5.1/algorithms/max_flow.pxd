from structsolve.abi_number cimport structsolve_abi_marker
cdef struct Network:
    Py_ssize_t n
    int* first
    int* head
    int* twin
    double* residual
    double* terminal
    int* work
cdef Py_ssize_t max_flow_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
cdef Network place_network(Py_ssize_t n, Py_ssize_t m, char* memory) noexcept nogil
cdef void build_network(Network* net, Py_ssize_t m, const int* ends, const double* capacity) noexcept nogil
cdef double max_flow(Network* net) noexcept nogil
cdef void cut_side(const Network* net, bint sink, signed char* inside) noexcept nogil
