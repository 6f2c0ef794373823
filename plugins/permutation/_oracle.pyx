"""Best assignments: the oracle, and many problems of one size in one call."""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_INCREF, PyTypeObject
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from structsolve.utils.allocate cimport allocated
from structsolve.operators cimport Oracle
from structsolve.part_layout cimport PartLayout
from structsolve.utils.alignment cimport align

from structsolve.plugins.permutation._jonker_volgenant cimport (
    Assignment, assignment_bound, assignment_bytes, assignment_in, load_scores, solve_assignment,
    solve_tiny,
)
from structsolve.plugins.permutation._shape cimport PairShape, no_assignment, pair_shape

from structsolve.utils.arrays import aligned_zeros

cdef extern from "numpy/arrayobject.h":
    object PyArray_Scalar(void* data, cnp.dtype descr, object base)

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t size)

cnp.import_array()

# Problems of so many scores are solved before other threads could take over.
cdef Py_ssize_t BRIEF = 1024


cdef int _best_assignment(PairShape shape, Py_ssize_t i, const double* theta, int* label,
                          double* value, char* work) except -1 nogil:
    cdef Py_ssize_t rows = shape.n_rows(i), cols = shape.n_cols(i), stride = shape.stride(i), r
    cdef const unsigned char* forbidden = shape.forbidden(i)
    cdef Assignment task
    if (rows == 1 or cols <= 3) and solve_tiny(rows, cols, theta, stride, forbidden, label, value):
        return 0
    task = assignment_in(rows, cols, work)
    load_scores(&task, theta, stride, -1, forbidden)
    if not solve_assignment(&task):
        return no_assignment(i)
    value[0] = 0
    for r in range(rows):
        label[r] = task.column[r]
        value[0] += theta[r * stride + label[r]]
    return 0


@cython.final
cdef class AssignmentOracle(Oracle):
    """The assignment of rows to columns of largest total score; over all assignments.

    Scores of -inf forbid a pair.

    Parameters
    ----------
    layout : PartLayout
        Layout of rankings or matchings.
    """

    cdef PairShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = pair_shape(layout)
        self.n_states = self.shape.max_cols
        self.work_bytes = assignment_bytes(self.shape.max_rows, self.shape.max_cols) + 64

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        _best_assignment(self.shape, i, theta, label, value, work)
        bound[0] = value[0]
        return 0


cdef bint _solve(Assignment* task, const double* scores, double sign, int64_t* columns,
                 double* u, double* v, double* value, double* bound) noexcept nogil:
    # One problem with its prices; False if no assignment is possible.
    cdef Py_ssize_t r, c
    load_scores(task, scores, task.cols, sign, NULL)
    if not solve_assignment(task):
        return False
    value[0] = 0
    for r in range(task.rows):
        c = task.column[r]
        columns[r] = c
        value[0] += scores[r * task.cols + c]
        u[r] = sign * (task.cost[r * task.ld + c] - task.v[c])
    for c in range(task.cols):
        v[c] = sign * task.v[c]
    bound[0] = sign * assignment_bound(task)
    return True


def solve_one(scores, bint maximize, double largest, type kind not None):
    """Solve one problem without the overhead of a batch, which takes longer than a small one.

    Parameters
    ----------
    scores : object
    maximize : bool
    largest : float
    kind : type
        Of the result: a tuple of columns, value, row_prices, column_prices, bound.

    Returns
    -------
    tuple, or None
        None if `scores` are no plain array of numbers, of at least as many columns as rows, within
        `largest`, and if no assignment is possible: :func:`solve_batch` and its caller serve these.
    """
    cdef cnp.ndarray given, columns, u, v
    cdef cnp.npy_intp rows, cols, k
    cdef double value, bound, sign = -1.0 if maximize else 1.0
    cdef const double* x
    cdef Assignment task
    cdef char* memory
    cdef cnp.dtype double_type
    cdef bint fits = True
    if not (cnp.PyArray_CheckExact(scores) and (<cnp.ndarray>scores).ndim == 2
            and cnp.PyArray_TYPE(scores) <= cnp.NPY_LONGDOUBLE):
        return None
    given = <cnp.ndarray>scores
    if not (cnp.PyArray_TYPE(given) == cnp.NPY_DOUBLE and cnp.PyArray_ISCARRAY_RO(given)):
        given = cnp.PyArray_FROM_OTF(scores, cnp.NPY_DOUBLE, cnp.NPY_ARRAY_CARRAY_RO
                                     | cnp.NPY_ARRAY_FORCECAST)
    rows, cols, x = given.shape[0], given.shape[1], <const double*>given.data
    for k in range(rows * cols):
        fits &= -largest <= x[k] <= largest
    if not (fits and 1 <= rows <= cols):
        return None
    columns = cnp.PyArray_EMPTY(1, &rows, cnp.NPY_INT64, 0)
    u = cnp.PyArray_EMPTY(1, &rows, cnp.NPY_DOUBLE, 0)
    v = cnp.PyArray_EMPTY(1, &cols, cnp.NPY_DOUBLE, 0)
    memory = <char*>allocated(malloc(assignment_bytes(rows, cols) + 64), b"an assignment")
    task = assignment_in(rows, cols, align(memory))
    memset(task.v, 0, task.ld * sizeof(double))
    if rows * cols <= BRIEF:
        fits = _solve(&task, x, sign, <int64_t*>columns.data, <double*>u.data, <double*>v.data,
                      &value, &bound)
    else:
        with nogil:
            fits = _solve(&task, x, sign, <int64_t*>columns.data, <double*>u.data,
                          <double*>v.data, &value, &bound)
    free(memory)
    if not fits:
        return None
    double_type = cnp.PyArray_DescrFromType(cnp.NPY_DOUBLE)
    made = PyType_GenericAlloc(<PyTypeObject*>kind, 5)  # tuple.__new__ takes longer
    for k, item in enumerate((columns, PyArray_Scalar(&value, double_type, None), u, v,
                              PyArray_Scalar(&bound, double_type, None))):
        Py_INCREF(item)
        PyTuple_SET_ITEM(made, k, item)
    return made


def solve_batch(const double[:, :, ::1] scores not None, bint maximize):
    """Solve several problems; the input is not checked.

    Parameters
    ----------
    scores : array of shape (n, rows, cols), 1 <= rows <= cols
    maximize : bool

    Returns
    -------
    columns, values, row_prices, column_prices, bounds : ndarray
        See :class:`~structsolve.plugins.permutation.Assigned`, with n as the first axis.
    failed : int
        Number of the first problem without an assignment, -1 if all have one.
    """
    cdef Py_ssize_t n = scores.shape[0], rows = scores.shape[1], cols = scores.shape[2], i
    columns, values, bounds = np.empty((n, rows), dtype=np.int64), np.empty(n), np.empty(n)
    row_prices, column_prices = np.empty((n, rows)), np.empty((n, cols))
    cdef double[::1] memory = aligned_zeros(assignment_bytes(rows, cols) // 8 + 1)
    cdef int64_t[:, ::1] column = columns
    cdef double[::1] value = values, bound = bounds
    cdef double[:, ::1] u = row_prices, v = column_prices
    cdef double sign = -1.0 if maximize else 1.0
    cdef Py_ssize_t failed = -1
    cdef Assignment task = assignment_in(rows, cols, <char*>&memory[0])
    with nogil:
        for i in range(n):
            if not _solve(&task, &scores[i, 0, 0], sign, &column[i, 0], &u[i, 0], &v[i, 0],
                          &value[i], &bound[i]):
                failed = i
                break
    return columns, values, row_prices, column_prices, bounds, failed
