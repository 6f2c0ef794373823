# The number of the C interface, MAJOR.MINOR.  Every public .pxd cimports it, so every module that
# is compiled against one of them carries the number of its build in its binary.  The registry
# accepts modules of the same major and of no later minor; it checks them before their import.
#
# Any edit of a declaration in a public .pxd needs a new number (tests/registry/test_abi.py checks it):
# * a pure addition needs a minor number.  Additions are: new files, functions, structs and classes;
#   a method in place of the first `_slot` of a class; a field of the same type in place of the
#   first `_flag` or `_room`; methods at the end of classes that only structsolve makes and
#   subclasses.
# * anything else needs a major number, because outside modules have the sizes of objects and the
#   order of methods and fields compiled in.
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
