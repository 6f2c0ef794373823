# Places in work memory begin at 64 bytes, the line of a cache and the widest vector.

from structsolve.abi_number cimport structsolve_abi_marker

cdef inline char* align(void* p) noexcept nogil:
    return <char*>p + -<size_t>p % 64
