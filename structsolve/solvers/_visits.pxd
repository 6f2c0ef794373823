# Visits of BCFW: oracle calls and line searches at a fixed w.
from libc.stdint cimport int64_t
from ..surrogates.base cimport Cut
from ._cuts cimport CutHead, CutStore
from ._loop cimport DualLoop


# Memory of one thread.  z_buffer, u, seen, scratch and z are zeros between calls.
cdef struct Space:
    double* theta
    double* u
    double* z_buffer
    double* z               # like w; only without kept Gram matrices
    double* scratch
    double* value           # of a cut
    int* index
    double* merged_value    # of a mixture of cuts
    int* merged_index
    double* scored
    double* slopes
    double* drift
    char* seen
    char* work
    CutHead** heads

# One visit, which proposes a change of p_i with n_changed entries.
cdef struct Visit:
    bint skipped            # nothing to do
    bint moved              # the cuts have the weights of the whole step
    bint open               # ... or wait for their share of it, and to be pruned
    int calls
    Py_ssize_t n_changed
    double gap
    double b_change, square     # <p, K_ii p> of the change
    double rise                 # of the dual by the whole step, per weight of the example
    double gamma                # share of the step that was taken
    double* value
    int* index
    double* before              # weights of the cuts before the step
    double[6] padding           # no cache line is of two threads

# Arguments of run().
cdef struct Settings:
    int max_calls, max_steps, max_age
    bint pairwise, averaging
    double inner_tol, min_gain


cdef class VisitLoop(DualLoop):
    cdef public CutStore cuts
    # Cuts are kept as Phi' p, dense: their entries are those of w.
    cdef readonly bint short
    cdef Settings settings
    cdef Space* spaces          # of each thread
    cdef Visit* visits          # of each slot
    cdef Py_ssize_t n_spaces, n_visits
    cdef object owners, visit_owners

    cdef void _change(self, Visit* visit, Py_ssize_t i, Space* space, Py_ssize_t m) noexcept nogil
    cdef double _slope(self, Py_ssize_t i, CutHead* head, const double* w) noexcept nogil
    cdef double _slope_now(self, Py_ssize_t i, CutHead* head, const double* theta) noexcept nogil
    cdef void _shorten(self, Py_ssize_t i, Cut* cut, Space* space) noexcept nogil
    cdef bint _known(self, Py_ssize_t m, const Cut* cut, CutHead** heads) noexcept nogil
    cdef int _insert(self, Py_ssize_t i, const Cut* cut, Space* space) except -1 nogil
    cdef void _gram_row(self, Py_ssize_t i, Py_ssize_t row, Space* space) noexcept nogil
    cdef void _gram_row_through_features(self, Py_ssize_t i, Py_ssize_t row, double* gram,
                                         Py_ssize_t side, Space* space) noexcept nogil
    cdef void _update_scores(self, Visit* visit, Py_ssize_t i, Space* space, Py_ssize_t m,
                             double share) noexcept nogil
    cdef Py_ssize_t _merge(self, CutHead* head, double coef, Py_ssize_t n, int* merged,
                           Space* space) noexcept nogil
    cdef void _merged(self, Py_ssize_t n, const int* merged, double* value,
                      Space* space) noexcept nogil
    cdef int _drop_one(self, Py_ssize_t i, Py_ssize_t m, Space* space) except -1 nogil
    cdef void expect(self, Py_ssize_t i) noexcept nogil
