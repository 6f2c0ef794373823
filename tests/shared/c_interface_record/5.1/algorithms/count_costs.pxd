from structsolve.abi_number cimport structsolve_abi_marker
cdef int count_steps(Py_ssize_t i, const double* cost, Py_ssize_t shared, Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride, Py_ssize_t extra, Py_ssize_t most, int* steps) except -1 nogil
cdef int check_most(Py_ssize_t most, Py_ssize_t nodes, Py_ssize_t K, Py_ssize_t stride) except -1
