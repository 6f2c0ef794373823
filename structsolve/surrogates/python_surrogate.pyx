# build: glue
"""A surrogate in plain Python behind the native interface, which checks its cuts."""

import reprlib

import numpy as np

from libc.math cimport fabs, isnan
from libc.string cimport memcpy
from libc.stdint cimport uint64_t
from .base cimport Cut, Surrogate
from ..structure.adapter cimport Vector, read_array


cdef class PythonSurrogate(Surrogate):
    """Cuts from the method ``cut`` of an object.

    Parameters
    ----------
    plain : CutSurrogate
    task : Task
    """

    cdef object plain, task

    def __init__(self, plain, task):
        super().__init__(task.layout)
        self.plain, self.task = plain, task
        self.n_states = task.parts.n_states
        self.max_entries = max(task.layout.max_theta, 1)
        self.affine, self.convex, self.exact = plain.affine, plain.convex, plain.exact

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        with gil:
            return self.ask(i, theta, truth, cut)

    cdef int ask(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut) except -1:
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef Vector point
        cdef double value, scale
        label = np.empty(self.layout.label_size(i), dtype=np.int32)
        cdef int[::1] view = label
        if view.shape[0]:
            memcpy(&view[0], truth, view.shape[0] * sizeof(int))
        try:
            answer = self.plain.cut(self.task, i, read_array(theta, size), label)
        except Exception as error:
            raise ValueError(
                f"example {i}: cut() of surrogate {type(self.plain).__name__} raised "
                f"{type(error).__name__}: {error}"
            ) from error
        expected = "(index, value, b)" if self.exact else "(index, value, b, bound)"
        if not isinstance(answer, tuple) or len(answer) != (3 if self.exact else 4):
            self.refuse(i, reprlib.repr(answer), f"a tuple {expected}")
        point = self.entries(i, answer[0], answer[1], size)
        numbers = self.numbers(i, answer[2:])
        cut.nnz, cut.b, cut.calls = point.n, numbers[0], 1
        cut.key = 1469598103934665603ULL
        for j in range(point.n):
            cut.index[j], cut.value[j] = point.entry[j].index, point.entry[j].value
            cut.key = mixed(mixed(cut.key, <double>point.entry[j].index), point.entry[j].value)
        cut.key = mixed(cut.key, cut.b)
        value = cut.b - point.dot(theta, &scale)
        if isnan(value):
            self.refuse(i, "a cut that is NaN at these scores", "a number")
        cut.bound = value if self.exact else <double>numbers[1]
        if cut.bound < value - 1e-9 * (1 + scale + fabs(cut.b)):
            self.refuse(i, f"the bound {cut.bound}", f"at least {value}, the value of its cut")
        cut.bound = max(cut.bound, value)
        return 0

    cdef object refuse(self, Py_ssize_t i, answer, expected):
        raise ValueError(
            f"example {i}: cut() of surrogate {type(self.plain).__name__} returned {answer}, "
            f"expected {expected}"
        )

    cdef Vector entries(self, Py_ssize_t i, given, values, Py_ssize_t size):
        cdef Vector point = Vector()
        cdef Py_ssize_t j
        cdef const long long[::1] index
        cdef const double[::1] value
        try:
            positions = np.asarray(given)
            numbers = np.ascontiguousarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            positions = numbers = np.zeros(())
        if (positions.ndim != 1 or positions.shape != numbers.shape
                or (positions.size and (positions.dtype.kind not in "iu" or positions.min() < 0
                                        or positions.max() >= size))
                or not np.isfinite(numbers).all()):
            self.refuse(i, f"the entries {reprlib.repr((given, values))}",
                        f"equally many positions below {size} and finite values")
        index, value = np.ascontiguousarray(positions, dtype=np.longlong), numbers
        for j in range(value.shape[0]):
            point.push(index[j], value[j])
        point.settle()
        return point

    cdef list numbers(self, Py_ssize_t i, given):
        try:
            numbers = [float(one) for one in given]
        except (TypeError, ValueError):
            numbers = [np.nan]
        if not np.isfinite(numbers).all():
            self.refuse(i, f"b and bound as {reprlib.repr(given)}", "finite numbers")
        return numbers


cdef uint64_t mixed(uint64_t key, double number) noexcept nogil:
    # FNV-1a: equal cuts have equal keys.
    cdef uint64_t bits
    number += 0.0  # -0 is 0
    memcpy(&bits, &number, 8)
    key = (key ^ (bits & 0xffffffffULL)) * 1099511628211ULL
    return (key ^ (bits >> 32)) * 1099511628211ULL
