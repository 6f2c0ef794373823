# The label plane of one example: its labels as points (h, g), reached through a lambda-oracle.
from libc.stdint cimport int64_t
from ..operators cimport Loss, Oracle, Parts
from ..potentials.linear cimport LinearPotentials

from .view cimport Point, View


cdef class LabelPlane:
    cdef readonly Py_ssize_t work_bytes, max_entries, longest
    cdef readonly bint relaxed, exact, decomposes, zero_one
    cdef readonly LinearPotentials potentials
    cdef readonly Oracle oracle
    cdef readonly Parts parts
    cdef readonly Loss g_loss, h_loss
    cdef readonly double sign
    cdef readonly Py_ssize_t width          # entries of a fractional point
    cdef readonly Py_ssize_t states         # of a node; 0 where there are no nodes
    cdef const int* labels
    cdef const int64_t* label_offsets
    cdef object owners
    cdef int mode
    cdef Py_ssize_t scratch_bytes

    cdef View* begin(self, Py_ssize_t i, const double* theta, char* work) except NULL nogil
    cdef Py_ssize_t label_size(self, Py_ssize_t i) noexcept nogil
    cdef int* label_of(self, View* view, int slot) noexcept nogil
    cdef int place(self, View* view, int slot, Point* out) except -1 nogil
    cdef int ask(self, View* view, double lam, int slot, Point* out) except -1 nogil
    cdef int ask_constrained(self, View* view, double lam, double alpha, double beta, bint twin,
                             int slot, Point* out) except -1 nogil
    cdef void move(self, View* view, Point* point, int slot) noexcept nogil
    cdef Py_ssize_t ask_kbest(self, View* view, double lam, Py_ssize_t k, int* labels,
                              double* values, char* scratch) except -1 nogil
    cdef int need_costs(self, View* view) except -1 nogil
    cdef int fractional(self, View* view, int slot, Point* out) except -1 nogil
    cdef Py_ssize_t entries(self, View* view, const Point* point, double coef, Py_ssize_t n,
                            int* index, double* value) except -1 nogil
