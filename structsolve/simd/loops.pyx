"""The vector loops, compiled here once; other modules get their addresses from ``ss_loops``."""

from libc.stddef cimport ptrdiff_t


cdef extern from "structsolve/simd/loops_tables.h" nogil:
    const ss_loop_table* ss_table_for(ptrdiff_t width)


cdef const ss_loop_table* ss_loops(ptrdiff_t width) noexcept nogil:
    return ss_table_for(width)
