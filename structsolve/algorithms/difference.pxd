# Parts of a truth minus those of a label, for `Parts.difference`.

from structsolve.abi_number cimport structsolve_abi_marker


cdef inline Py_ssize_t write_pair(int* index, double* value, Py_ssize_t n, Py_ssize_t start,
                                  Py_ssize_t true_part, Py_ssize_t part) noexcept nogil:
    # In the block that begins at `start`, truth and label have one part each.  Writes entries n and
    # n + 1; returns n + 2.
    index[n], value[n] = <int>(start + true_part), 1
    index[n + 1], value[n + 1] = <int>(start + part), -1
    return n + 2
