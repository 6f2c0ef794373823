# Tables of a kernel model's rows, on which pair steps are taken.
from libc.stdint cimport int64_t
from ..potentials.mercer_features cimport MercerRows


cdef extern from "structsolve/simd/pair_rows.h" nogil:
    ctypedef struct ss_move:
        double slope, curvature, inverse, least, most
    ctypedef struct ss_pair_table:
        Py_ssize_t best_row(Py_ssize_t ld, Py_ssize_t labels, const double* score,
                            const double* mass, const double* curvature, const double* inverse,
                            double* gain) noexcept nogil
        Py_ssize_t best_partner(Py_ssize_t n, const double* k, double bias, const double* high,
                                const double* low, const double* high_mass,
                                const double* low_mass, const double* curvature,
                                const double* inverse, const ss_move* a, double* gain, double* x,
                                double* y) noexcept nogil
        double mass_gap(Py_ssize_t ld, Py_ssize_t labels, const double* score,
                        const double* mass) noexcept nogil


cdef class PairTables:
    cdef readonly Py_ssize_t size, labels, ld
    cdef MercerRows rows
    cdef const ss_pair_table* loops
    cdef const int64_t[::1] chosen
    cdef double[:, ::1] score, mass     # one row per label
    cdef double[::1] share, curvature, inverse

    cdef void place(self, Py_ssize_t p, double share, double norm) noexcept nogil
    cdef Py_ssize_t run(self, Py_ssize_t most, double least, double goal) noexcept nogil
    cdef bint _pair(self, double least) noexcept nogil
    cdef void _shift(self, Py_ssize_t p, const double* k, Py_ssize_t high, Py_ssize_t low,
                     double y) noexcept nogil
    cdef const double* _kernel_row(self, Py_ssize_t p) noexcept nogil
    cdef double gap(self) noexcept nogil
    cdef bint awake(self, Py_ssize_t p, double room) noexcept nogil
