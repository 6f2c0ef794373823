# Tables of pairs of states whose scores are functions of the distance of the states.
from structsolve.plugins.mrf.tables._model cimport Model


cdef extern from "plugins/mrf/tables/transforms.h" nogil:
    enum:
        MRF_GENERAL
        MRF_POTTS
        MRF_LINEAR
        MRF_QUADRATIC
    ctypedef struct mrf_table:
        int kind
        double same, slope, cut
        Py_ssize_t straight, turned
        float scaled_slope, scaled_cut
    void mrf_linear_double(int K, const double* x, double slope, double* out)
    void mrf_quadratic_double(int K, const double* x, double slope, double* out, double* begin,
                              double* tip)


# Whether all edges have the same table.
cdef bint one_table(const Model* model) noexcept nogil
# The kind of the table; `straight` and `turned` are -1.
cdef mrf_table table_kind(const double* table, int rows, int columns) noexcept nogil
