from structsolve.abi_number cimport structsolve_abi_marker
cdef inline Py_ssize_t write_pair(int* index, double* value, Py_ssize_t n, Py_ssize_t start, Py_ssize_t true_part, Py_ssize_t part) noexcept nogil:
    index[n], value[n] = <int>(start + true_part), 1
    index[n + 1], value[n + 1] = <int>(start + part), -1
    return n + 2
