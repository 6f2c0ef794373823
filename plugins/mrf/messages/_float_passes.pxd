# TRW-S whose passes are in single precision, and its bound in double precision.
from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.tables._table_kinds cimport mrf_table


cdef extern from "plugins/mrf/messages/passes.h" nogil:
    float MRF_PADDING
    ctypedef struct mrf_edge:
        int u, v, table
        float weight
        Py_ssize_t message
    ctypedef struct mrf_passes:
        Py_ssize_t n
        const int* states
        const Py_ssize_t* near_at
        const int* near
        const mrf_edge* edges
        const mrf_table* tables
        const float* pair
        const float* unary
        const float* share
        const Py_ssize_t* row_at
        Py_ssize_t width
        float* message
        float* own
        float* sent
        float* guess
        float* spare
        int* trial
    ctypedef double (*mrf_pass)(const mrf_passes* p, int forward) noexcept nogil
    mrf_pass mrf_pass_of(int lanes)
    int mrf_lanes(const char* name, int states)


# Bytes of `work` (8-byte aligned) for this model; only sizes are read, and whether edges share a
# table.
cdef Py_ssize_t dual_ascent_bytes(const Model* model) noexcept nogil
# label, value, bound <- see trws() of _trws.pxd, which takes over for forests and graphs with
# forbidden states or pairs; returns the number of iterations.  Unless phi is NULL, scores must be
# finite: phi <- an equivalent transformation of the scores, see Pass.phi, and phi_bound <-
# its bound.
cdef int dual_ascent(const Model* model, int max_iter, double tol, int* label, double* value,
                     double* bound, double* phi, Py_ssize_t phi_step, double* phi_bound,
                     char* work) noexcept nogil
# phi <- an equivalent transformation, from what dual_ascent() has left in `work`.
cdef void transformation(const Model* model, char* work, double* phi,
                         Py_ssize_t phi_step) noexcept nogil
