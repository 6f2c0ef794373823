# The oracle of labelings of graphs: which decoder answers what.
from structsolve.operators cimport Cone, Oracle

from structsolve.plugins.mrf._model cimport Model
from structsolve.plugins.mrf._shape cimport GraphShape


cdef enum Decoder:
    NONE
    FOREST
    EXACT
    ROOF
    TRWS
    PROGRAM


cdef class GraphOracle(Oracle):
    cdef readonly GraphShape shape
    cdef Decoder search, relaxation, constraint, marginals
    cdef Py_ssize_t scores_bytes, decoder_bytes
    cdef object program
    cdef int max_iter

    cdef int decode(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil
    cdef int node_marginals(self, Py_ssize_t i, const double* theta, double** out, Model* model,
                            char* work) except -1 nogil
    cdef Py_ssize_t _half_bytes(self) noexcept nogil
    cdef void _roof(self, const Model* model, int* label, double* bound,
                    char* work) noexcept nogil
    cdef tuple _arrays(self, const Model* model)
    cdef int _ask_label(self, Py_ssize_t i, const Model* model, int* label,
                        double* bound) except -1
    cdef int _ask_best(self, Py_ssize_t i, const Model* model, int* label) except -1
    cdef bint _keep(self, const Model* model, object answer, double* node_mu,
                    int* label) except -1
    cdef bint _ask_marginals(self, Py_ssize_t i, const Model* model, double* node_mu,
                             int* label) except -1
    cdef int _ask_constrained(self, Py_ssize_t i, const Model* model, const Model* weights,
                              const Cone* cone, double* mu, int* label, double* value) except -1
