# Checks of what operators of packages wrote: labels that exist, finite numbers.
from libc.math cimport INFINITY
from structsolve.operators cimport Operator


cdef inline int check_answer(Operator operator, Py_ssize_t i, const int* label,
                             Py_ssize_t n_states) except -1 nogil:
    # Parts and losses read tables at these integers.
    cdef Py_ssize_t j
    for j in range(operator.layout.label_size(i) if n_states > 0 else 0):
        if not 0 <= label[j] < n_states:
            with gil:
                raise ValueError(
                    f"example {i}: {type(operator).__name__} answered with a label whose integer "
                    f"{j} is {label[j]}, expected 0 to {n_states - 1}; "
                    "structsolve.testing.check_structure finds the cause"
                )
    return 0


cdef inline int check_allowed(Py_ssize_t i, double best) except -1 nogil:
    # Of the best score: margins between labels that are all forbidden mean nothing.
    if best == -INFINITY:
        with gil:
            raise ValueError(
                f"example {i}: every label is forbidden (its score is -inf), its true one too; "
                "allow at least the true label, and check that the weights are finite"
            )
    return 0


cdef inline int not_finite(Operator operator, Py_ssize_t i, double number) except -1 with gil:
    raise ValueError(
        f"example {i}: {type(operator).__name__} answered with {number}, expected finite numbers; "
        "structsolve.testing.check_structure finds the cause"
    )


cdef inline int check_numbers(Operator operator, Py_ssize_t i, Py_ssize_t n,
                             const double* numbers) except -1 nogil:
    # Of a projection: later sums would hide which example has them.
    cdef Py_ssize_t j, finite = 0
    for j in range(n):
        finite += numbers[j] - numbers[j] == 0
    if finite < n:
        for j in range(n):
            if not numbers[j] - numbers[j] == 0:
                return not_finite(operator, i, numbers[j])
    return 0
