cdef extern from *:
    """
    #define STRUCTSOLVE_ABI_NUMBER "5.0"
    #if defined(__GNUC__)
    __attribute__((used))
    #endif
    static const char structsolve_abi_marker[] = "structsolve-c-abi=" STRUCTSOLVE_ABI_NUMBER ";";
    """
    const char* structsolve_abi_marker
