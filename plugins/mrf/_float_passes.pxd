# TRW-S whose passes are in single precision, and its bound in double precision.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read, and whether edges share a
# table.
cdef Py_ssize_t dual_ascent_bytes(const Model* model) noexcept nogil
# label, value, bound <- as of trws() of _trws.pxd, which also takes over forests and graphs that
# forbid something, and returns the number of iterations.  Unless phi is NULL, which takes finite
# scores: phi <- an equivalent transformation of the scores, as Pass.phi has it, and phi_bound <-
# the bound that it gives.
cdef int dual_ascent(const Model* model, int max_iter, double tol, int* label, double* value,
                     double* bound, double* phi, Py_ssize_t phi_step, double* phi_bound,
                     char* work) noexcept nogil
