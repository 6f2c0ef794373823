# Memory from malloc(), calloc() and realloc(), or a MemoryError that says what it was for.
from structsolve.abi_number cimport structsolve_abi_marker


cdef inline void* allocated(void* memory, const char* what) except NULL nogil:
    if memory == NULL:
        with gil:
            raise MemoryError("no memory for " + what.decode())
    return memory
