# build: glue
"""Prediction of a few short examples by one call, for the latency of a single one."""

from sys import modules

import numpy as np

from cpython.ref cimport Py_INCREF, PyTypeObject
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
cimport numpy as cnp

from ..operators cimport Oracle
from ..potentials.features cimport CSR_F32, CSR_F64, CSR_ONES, DENSE_F32, DENSE_F64
from ..simd.loops cimport ss_loop_table, ss_loops

from ..examples.packed import Examples
from ..examples.packing import DENSITY
from ..structure.ask import make_layout

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(PyTypeObject* subtype, cnp.dtype descr, int ndim,
                                cnp.npy_intp* shape, cnp.npy_intp* strides, void* data, int flags,
                                object like)
    bint PyArray_ISCARRAY_RO(cnp.ndarray array)

ctypedef fused real:
    float
    double

cdef enum:
    LINE = 64
    LONGEST = 128       # most nodes of an example
    MOST_VALUES = 8192  # below it, packing counts the zeros of all values, as is done here

cdef double _DENSITY = DENSITY

cdef struct Counted:
    int storage             # of the rows; -1: no example was counted
    Py_ssize_t size         # stored values
    Py_ssize_t different    # those that are not zero, or not one in CSR


cdef class Direct:
    """The labels of short examples by a linear model, without packed arrays.

    Where an oracle depends only on the sizes of examples, one for every size is bound in advance;
    else the space makes one for the example.  Calls change nothing, so threads may share an object.

    Parameters
    ----------
    model : LinearModel
        With finite weights.
    bind : callable
        ``layout -> oracle``.
    """

    cdef readonly object model
    cdef Oracle oracle          # None: make_oracle(topology, nodes) gives one
    cdef object make_oracle
    cdef const double[::1] w
    cdef cnp.ndarray classes
    cdef const ss_loop_table* loops
    cdef Py_ssize_t shared_size, node_size, node_start, n_columns, theta_bytes
    cdef double intercept
    cdef bint single

    def __init__(self, model, bind: "Callable[[PartLayout], Oracle]"):
        space, layout = model.space, model.space.layout
        classes = getattr(space, "classes_", None)
        self.make_oracle = space.unpacked_oracle(bind)
        if not ((space.plain_rows or self.make_oracle)
                and layout.node is not None and layout.edge is None
                and type(classes) is np.ndarray and classes.ndim == 1 and not classes.dtype.hasobject
                and np.isfinite(model.weights).all()):
            raise ValueError(f"structure {space.structure.name!r} or the model needs packed examples")
        self.model, self.w = model, model.weights
        self.classes = np.ascontiguousarray(classes)
        self.single = space.structure.single_node
        longest = 1 if self.single else LONGEST
        if self.make_oracle is None:
            sizes = np.arange(longest + 1, dtype=np.int64)
            oracle = bind(make_layout(space, Examples(np.cumsum(sizes))))
            if getattr(oracle, "batched", False) or oracle.layout is None:
                raise ValueError(f"{type(oracle).__name__} does not decode one example at a time")
            self.oracle = oracle
        self.shared_size, self.node_size = layout.shared_size, layout.node_size
        self.node_start, self.n_columns = layout.node_start, layout.n_features
        self.intercept = 1.0 if layout.intercept else 0.0
        self.loops = ss_loops(layout.node_size)
        # Like Room in decode.pyx.
        most = layout.shared_size + longest * layout.node_size
        self.theta_bytes = (8 * (most + 8) + LINE - 1) // LINE * LINE

    def labels(self, X):
        """Return the best labels, as the space unpacks them.

        Parameters
        ----------
        X : as users give it

        Returns
        -------
        list of ndarray, or ndarray, or None
            None for anything but a few short, finite arrays or CSR matrices, and where an error is
            to be raised: the general way decides.
        """
        cdef list rows
        cdef tuple pair, arrays
        cdef Oracle oracle = self.oracle
        cdef cnp.ndarray answer = None
        cdef Py_ssize_t i, n
        cdef Counted counted = Counted(-1, 0, 0)
        if self.single:
            rows = [X]
        elif type(X) is list:
            rows = X
        else:
            return None
        n = len(rows)
        if self.make_oracle is not None:
            # Of several examples, the others may decide which oracle is bound to them.
            if n != 1 or type(rows[0]) is not tuple or len(<tuple>rows[0]) != 2:
                return None
            pair = rows[0]
            rows = [pair[0]]
        cdef list given = [None] * n, answers = [None] * n
        for i in range(n):
            arrays = self._arrays(rows[i])
            if arrays is None or not self._count(arrays, &counted):
                return None
            given[i] = arrays
        if counted.storage <= DENSE_F32:
            # Packing keeps others as CSR, whose scores are rounded in another order.
            if counted.different <= <Py_ssize_t>(_DENSITY * counted.size):
                return None
        elif counted.different == 0:
            counted.storage = CSR_ONES
        if self.make_oracle is not None:
            try:
                oracle = self.make_oracle(pair[1], pair[0].shape[0])
            except Exception:
                return None     # as below
            if oracle is None:
                return None
        cdef void* block = malloc(self.theta_bytes + oracle.work_bytes + LONGEST * 4 + 3 * LINE)
        if block == NULL:
            raise MemoryError()
        try:
            for i in range(n):
                answer = self._one(oracle, given[i], counted.storage, <double*>(
                    (<uintptr_t>block + LINE - 1) // LINE * LINE))
                if answer is None:
                    return None
                answers[i] = answer
        except Exception:
            return None     # the general way raises it, and names the example
        finally:
            free(block)
        return answer if self.single else answers

    cdef tuple _arrays(self, x):
        """Return the array, or the indptr, indices and data of a CSR matrix; None for others."""
        cdef cnp.ndarray starts
        if cnp.PyArray_CheckExact(x):
            return (x,)
        scipy = modules.get("scipy.sparse")
        if scipy is None or not (type(x) is scipy.csr_matrix or type(x) is scipy.csr_array):
            return None
        arrays = (x.indptr, x.indices, x.data)
        for array in arrays:
            if not (cnp.PyArray_CheckExact(array) and PyArray_ISCARRAY_RO(array)
                    and (<cnp.ndarray>array).ndim == 1):
                return None
        starts = arrays[0]
        return arrays if x.shape == (starts.shape[0] - 1, self.n_columns) else None

    cdef bint _count(self, tuple arrays, Counted* counted):
        """Count the values of an example, which must be finite and stored like those before."""
        cdef cnp.ndarray starts, columns, values = arrays[len(arrays) - 1]
        cdef bint csr = len(arrays) > 1, wide = cnp.PyArray_TYPE(values) == cnp.NPY_DOUBLE
        cdef int storage = (CSR_F64 if wide else CSR_F32) if csr else DENSE_F64 if wide else DENSE_F32
        cdef Py_ssize_t n, rows, different
        if not (wide or cnp.PyArray_TYPE(values) == cnp.NPY_FLOAT) or not (
                counted.storage == -1 or counted.storage == storage):
            return False
        if csr:
            starts, columns = arrays[0], arrays[1]
            n, rows = values.shape[0], starts.shape[0] - 1
        elif PyArray_ISCARRAY_RO(values) and values.ndim == 2 and values.shape[1] == self.n_columns:
            rows = values.shape[0]
            n = rows * self.n_columns
        else:
            return False
        counted.storage = storage
        counted.size += n
        if rows < 1 or not (self.single or rows <= LONGEST) or counted.size >= MOST_VALUES:
            return False
        if csr and not (
                cnp.PyArray_TYPE(starts) == cnp.NPY_INT32 and columns.shape[0] == n
                and cnp.PyArray_TYPE(columns) == cnp.NPY_INT32
                and _canonical(rows, n, <const int32_t*>starts.data, <const int32_t*>columns.data,
                               self.n_columns)):
            return False
        if wide:
            different = _unlike(n, <const double*>values.data, csr)
        else:
            different = _unlike(n, <const float*>values.data, csr)
        counted.different += different
        return different >= 0

    cdef cnp.ndarray _one(self, Oracle oracle, tuple arrays, int storage, double* theta):
        cdef cnp.ndarray values = arrays[len(arrays) - 1], first = arrays[0]
        cdef bint csr = len(arrays) > 1
        cdef const int32_t* starts = <const int32_t*>first.data if csr else NULL
        cdef const int32_t* columns = <const int32_t*>(<cnp.ndarray>arrays[1]).data if csr else NULL
        cdef Py_ssize_t v, s, row, nodes = first.shape[0] - csr, item = self.classes.itemsize
        cdef Py_ssize_t n = self.n_columns, start, each = 1 if self.single else nodes
        cdef Py_ssize_t number = 0 if self.oracle is None else each - 1, width = values.itemsize
        cdef cnp.npy_intp length = nodes
        cdef const double* W = &self.w[self.node_start]
        cdef char* work = <char*>theta + self.theta_bytes
        cdef int* label = <int*>(work + (oracle.work_bytes + LINE - 1) // LINE * LINE)
        cdef double value = 0, bound = 0
        cdef cnp.dtype descr = self.classes.dtype
        Py_INCREF(descr)  # the new array owns this reference
        cdef cnp.ndarray answer = PyArray_NewFromDescr(
            <PyTypeObject*>cnp.ndarray, descr, 1, &length, NULL, NULL, 0, None)
        for row in range(0, nodes, each):
            with nogil:
                memcpy(theta, &self.w[0], self.shared_size * sizeof(double))
                for v in range(each):
                    label[v] = 0
                    start = starts[row + v] if csr else (row + v) * n
                    self.loops.score[storage](
                        starts[row + v + 1] - start if csr else n, columns + start if csr else NULL,
                        values.data + start * width, W, self.node_size,
                        self.node_size, self.intercept, W + n * self.node_size,
                        theta + self.shared_size + v * self.node_size)
                oracle.argmax(number, theta, label, &value, &bound, work)
            if value == -INFINITY:
                return None
            for v in range(each):
                s = label[v]
                if not 0 <= s < self.classes.shape[0]:
                    return None
                memcpy(answer.data + (row + v) * item, self.classes.data + s * item, item)
        return answer


cdef bint _canonical(Py_ssize_t rows, Py_ssize_t n, const int32_t* starts, const int32_t* columns,
                     Py_ssize_t n_columns) noexcept nogil:
    """Return whether CSR arrays fit together, with strictly rising columns in each row."""
    cdef Py_ssize_t v, j
    cdef int64_t previous
    if starts[0] != 0 or starts[rows] != n:
        return False
    for v in range(rows):
        if not starts[v] <= starts[v + 1] <= n:
            return False
        previous = -1
        for j in range(starts[v], starts[v + 1]):
            if columns[j] <= previous:
                return False
            previous = columns[j]
        if previous >= n_columns:
            return False
    return True


cdef Py_ssize_t _unlike(Py_ssize_t n, const real* x, real usual) noexcept nogil:
    """Return how many values are not the usual one; -1 if one is not finite."""
    cdef Py_ssize_t j, unlike = 0, finite = 0
    for j in range(n):
        unlike += x[j] != usual
        finite += x[j] - x[j] == 0
    return unlike if finite == n else -1
