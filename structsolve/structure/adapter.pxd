# Calls of Python methods by operators: part scores out, labels and parts in, all checked.
from ..operators cimport Operator
from ..part_layout cimport PartLayout

cdef struct Entry:
    double value
    int index
    int order


# Sparse parts by position in theta: ascending positions, no zeros.
cdef class Vector:
    cdef Py_ssize_t n
    cdef Entry* entry
    cdef double const
    cdef Py_ssize_t room, i
    cdef bytes label                # the label of these parts

    cdef int push(self, Py_ssize_t index, double value) except -1
    cdef int settle(self) except -1
    cdef double dot(self, const double* theta, double* scale=*) noexcept nogil
    cdef int spread(self, double* out, Py_ssize_t size) noexcept nogil


# Cache shared by operators of the same examples.
cdef class Memo:
    cdef object space
    cdef list recent
    cdef dict truths
    cdef Py_ssize_t room            # bytes left for truths


cdef class Adapter:
    cdef object space, examples, owner, n_states
    cdef tuple first, places
    cdef PartLayout sizes
    cdef Memo memo
    cdef str of

    # Calls a method of the owner; the example and further arguments follow the first ones.
    cdef object ask(self, str method, Py_ssize_t i, tuple rest)
    # A read-only copy of theta, and its blocks by name.
    cdef object flat(self, Py_ssize_t i, const double* theta)
    cdef dict named(self, Py_ssize_t i, flat)
    # Raises the ValueError for an invalid answer.
    cdef object refuse(self, str method, Py_ssize_t i, answer, expected)
    # Checked answers: a pair whose second item is a number; a number; a label.
    cdef tuple pair(self, str method, Py_ssize_t i, answer, expected)
    cdef double number(self, str method, Py_ssize_t i, answer) except? -1
    cdef int read_label(self, str method, Py_ssize_t i, answer, int* out) except -1
    # Parts by block name; the same in theta's layout, zeros elsewhere.
    cdef Vector gather(self, str method, Py_ssize_t i, parts)
    # An answer (costs, const).
    cdef Vector costs(self, str method, Py_ssize_t i, answer)
    cdef int dense(self, str method, Py_ssize_t i, parts, double* out) except -1
    # mu of a label, computed once; for true labels, cached as long as the examples exist.
    cdef Vector parts_of(self, Py_ssize_t i, const int* label)
    cdef Vector truth_of(self, str method, Py_ssize_t i, const int* truth)
    cdef object label_array(self, Py_ssize_t i, const int* label)


# Binds an operator that calls methods of a space, or of another owner on it.
cdef Adapter adapt(Operator operator, space, PartLayout layout, owner=*)
cdef object read_array(const double* x, Py_ssize_t size)
