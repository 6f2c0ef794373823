# What the adapters of Python structures share.
from ..operators cimport Operator
from ..part_layout cimport PartLayout


cdef class Adapter:
    cdef object space, examples, layout, n_states
    cdef PartLayout sizes

    # A copy of theta, read-only.
    cdef object flat(self, Py_ssize_t i, const double* theta)
    # Its blocks by name.
    cdef object named(self, Py_ssize_t i, flat)
    # Raises the ValueError for an answer of the wrong kind.
    cdef object refuse(self, str method, Py_ssize_t i, answer, expected)
    # Answers, checked: a pair whose second is a number, a number, a label as int32.
    cdef tuple pair(self, str method, Py_ssize_t i, answer, expected)
    cdef object number(self, str method, Py_ssize_t i, answer)
    cdef object label(self, str method, Py_ssize_t i, answer)
    # Named parts as positions in theta and their values, without zeros; as a flat vector.
    cdef tuple entries(self, str method, Py_ssize_t i, parts)
    cdef object dense(self, str method, Py_ssize_t i, parts)
    # <theta, mu(label)>; parts that a label lacks may score -inf.
    cdef object score(self, Py_ssize_t i, flat, label)

# Binds an operator that calls methods of a space.
cdef Adapter adapt(Operator operator, space, PartLayout layout)
# A read-only copy, which the space may keep; and the way back.
cdef object read_array(const double* x, Py_ssize_t size)
cdef int write_array(object array, double* out) except -1
cdef int copy_label(object label, int* out) except -1
cdef object label_array(Adapter adapter, Py_ssize_t i, const int* label)
