# First passes of dual ascent in single precision.
from structsolve.plugins.mrf.relaxation._dual_passes cimport Split


# Bytes for n nodes and m edges, rows of at most `width` states, a table for each edge or for all.
cdef Py_ssize_t singles_bytes(Py_ssize_t n, Py_ssize_t m, Py_ssize_t width, bint each,
                              bint symmetric) noexcept nogil
# Copies the graph of `split`, with scores of at most this magnitude, and its messages after a pass
# forward, to `work` (64-byte aligned).  `symmetric` tables are the same from either end.
cdef void place_singles(const Split* split, double largest, bint symmetric,
                        char* work) noexcept nogil
# Copies the messages of `split` again.
cdef void set_messages(const Split* split, char* work) noexcept nogil
# Passes back and forth; label <- the labeling of the second.  Returns a bound, up to rounding.
cdef double sweep_singles(char* work, const Split* split, int* label) noexcept nogil
# Copies the messages of the last pass to `split`, whose next pass must go back.
cdef void lift_singles(const char* work, Split* split) noexcept nogil
