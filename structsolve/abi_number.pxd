# The number of the C interface, MAJOR.MINOR.  Every public .pxd cimports it, and so every module
# that is compiled against one of them carries the number of that day in its binary.  The registry
# takes modules of the same major and of no later minor; it looks before they are imported.
#
# Any edit of a declaration in a public .pxd needs a new number (tests/test_abi.py says so):
# * a pure addition, a minor.  Additions are: new files, functions, structs and classes; a method in
#   place of the first `_slot` of a class; a field of the same type in place of the first `_flag` or
#   `_room`; for what is made here and never subclassed outside, methods at the end.
# * anything else, a major: outside modules have the sizes of objects and the order of methods and
#   fields compiled in.
# `_slot`, `_flag` and `_room` are never called, read or overridden.
cdef extern from *:
    """
    #define STRUCTSOLVE_ABI_NUMBER "5.1"
    #if defined(__GNUC__)
    __attribute__((used))
    #endif
    static const char structsolve_abi_marker[] = "structsolve-c-abi=" STRUCTSOLVE_ABI_NUMBER ";";
    """
    const char* structsolve_abi_marker
