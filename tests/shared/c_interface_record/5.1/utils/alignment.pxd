from structsolve.abi_number cimport structsolve_abi_marker
cdef inline char* align(void* p) noexcept nogil:
    return <char*>p + -<size_t>p % 64
