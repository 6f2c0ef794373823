# Costs that are counts, for programs over (node, state, count).

from structsolve.abi_number cimport structsolve_abi_marker

# steps (n, K) <- costs of node states as integers, most + 1 for larger ones.  `cost` has theta's
# layout: `shared` doubles, n rows of `stride`, `extra` doubles; 0 except for node states.
cdef int count_steps(Py_ssize_t i, const double* cost, Py_ssize_t shared, Py_ssize_t n,
                     Py_ssize_t K, Py_ssize_t stride, Py_ssize_t extra, Py_ssize_t most,
                     int* steps) except -1 nogil
# Raises ValueError unless one score for each of so many nodes, states and counts fits into memory.
cdef int check_most(Py_ssize_t most, Py_ssize_t nodes, Py_ssize_t K,
                    Py_ssize_t stride) except -1
