# Dual block-coordinate ascent for any number of states: an upper bound and a labeling.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t trws_bytes(const Model* model) noexcept nogil
# label, value <- the best labeling found, -INFINITY where none is possible or none was found;
# bound <- at least the score of every labeling.  Stops once bound - value <= tol, when the bound
# no longer moves, or after max_iter iterations (one is enough on forests, where the answer is
# exact).  Returns how many it took.
cdef int trws(const Model* model, int max_iter, double tol, int* label, double* value,
              double* bound, char* work) noexcept nogil
