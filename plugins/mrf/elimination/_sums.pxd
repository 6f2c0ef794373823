# Exact sums over the labelings of narrow graphs.
from structsolve.operators cimport Projection
from structsolve.simd.loops cimport ss_loop_table

from structsolve.plugins.mrf.elimination._plan cimport Plan, Plans
from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.tables._shape cimport GraphShape

# Whether no score is NaN or inf.
cdef bint valid_scores(const Model* model) noexcept nogil


cdef class EliminationSums(Projection):
    cdef GraphShape shape
    cdef Plans plans
    cdef const ss_loop_table* loops
    cdef Py_ssize_t most_rows, most_state
    cdef const Py_ssize_t* starts
    cdef object owners

    cdef bint takes(self, Py_ssize_t i) noexcept nogil      # whether it has a plan
    cdef Plan plan(self, Py_ssize_t i) noexcept nogil
    cdef const Py_ssize_t* places(self, Py_ssize_t i) noexcept nogil
    cdef double* room(self, char* work) noexcept nogil
    cdef int forward(self, Py_ssize_t i, const double* theta, double* state, double* value,
                     char* work) except -1 nogil
    cdef void backward(self, Py_ssize_t i, double* state, double* moved,
                       char* work) noexcept nogil
    cdef Py_ssize_t row_of(self, Py_ssize_t i, Py_ssize_t step, const int* label) noexcept nogil
