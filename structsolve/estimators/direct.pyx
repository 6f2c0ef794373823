# build: glue
"""Prediction of a few short dense examples by one call, for the latency of a single one."""

import numpy as np

from cpython.ref cimport Py_INCREF, PyTypeObject
from libc.math cimport INFINITY
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
cimport numpy as cnp

from ..operators cimport Oracle
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


cdef class Direct:
    """The labels of short dense examples by a linear model, without packed arrays.

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
        if not ((space.plain_rows or self.make_oracle) and layout.node is not None and layout.edge is None
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
            None for anything but a few short, finite, dense arrays, and where an error is to be
            raised: the general way decides.
        """
        cdef list rows
        cdef tuple pair
        cdef Oracle oracle = self.oracle
        cdef cnp.ndarray x, answer = None
        cdef Py_ssize_t i, n, size = 0, filled = 0, nodes = 0
        cdef int kind = -1
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
        for i in range(n):
            if not cnp.PyArray_CheckExact(rows[i]):
                return None
            x = rows[i]
            if i == 0:
                kind = cnp.PyArray_TYPE(x)
            if not (cnp.PyArray_TYPE(x) == kind and (kind == cnp.NPY_DOUBLE or kind == cnp.NPY_FLOAT)
                    and PyArray_ISCARRAY_RO(x) and x.ndim == 2 and x.shape[1] == self.n_columns
                    and 0 < x.shape[0] and (self.single or x.shape[0] <= LONGEST)):
                return None
            size += x.shape[0] * self.n_columns
            if size >= MOST_VALUES:
                return None
            if kind == cnp.NPY_DOUBLE:
                nodes = _filled(x.shape[0] * self.n_columns, <const double*>x.data)
            else:
                nodes = _filled(x.shape[0] * self.n_columns, <const float*>x.data)
            if nodes < 0:
                return None
            filled += nodes
        # Packing keeps others as CSR, whose scores are rounded in another order.
        if filled <= <Py_ssize_t>(_DENSITY * size):
            return None
        if self.make_oracle is not None:
            try:
                oracle = self.make_oracle(pair[1], x.shape[0])
            except Exception:
                return None     # as below
            if oracle is None:
                return None
        cdef list answers = [None] * n
        cdef void* block = malloc(self.theta_bytes + oracle.work_bytes + LONGEST * 4 + 3 * LINE)
        if block == NULL:
            raise MemoryError()
        try:
            for i in range(n):
                x = rows[i]
                answer = self._one(oracle, x, kind, <double*>(
                    (<uintptr_t>block + LINE - 1) // LINE * LINE))
                if answer is None:
                    return None
                answers[i] = answer
        except Exception:
            return None     # the general way raises it, and names the example
        finally:
            free(block)
        return answer if self.single else answers

    cdef cnp.ndarray _one(self, Oracle oracle, cnp.ndarray x, int kind, double* theta):
        cdef Py_ssize_t v, s, first, nodes = x.shape[0], item = self.classes.itemsize
        cdef Py_ssize_t values = self.n_columns * (8 if kind == cnp.NPY_DOUBLE else 4)
        cdef Py_ssize_t each = 1 if self.single else nodes
        cdef Py_ssize_t number = 0 if self.oracle is None else each - 1
        cdef cnp.npy_intp length = nodes
        cdef const double* W = &self.w[self.node_start]
        cdef char* work = <char*>theta + self.theta_bytes
        cdef int* label = <int*>(work + (oracle.work_bytes + LINE - 1) // LINE * LINE)
        cdef double value = 0, bound = 0
        cdef cnp.dtype descr = self.classes.dtype
        Py_INCREF(descr)  # the new array owns this reference
        cdef cnp.ndarray answer = PyArray_NewFromDescr(
            <PyTypeObject*>cnp.ndarray, descr, 1, &length, NULL, NULL, 0, None)
        for first in range(0, nodes, each):
            with nogil:
                memcpy(theta, &self.w[0], self.shared_size * sizeof(double))
                for v in range(each):
                    label[v] = 0
                    self.loops.score[0 if kind == cnp.NPY_DOUBLE else 1](
                        self.n_columns, NULL, x.data + (first + v) * values, W, self.node_size,
                        self.node_size, self.intercept, W + self.n_columns * self.node_size,
                        theta + self.shared_size + v * self.node_size)
                oracle.argmax(number, theta, label, &value, &bound, work)
            if value == -INFINITY:
                return None
            for v in range(each):
                s = label[v]
                if not 0 <= s < self.classes.shape[0]:
                    return None
                memcpy(answer.data + (first + v) * item, self.classes.data + s * item, item)
        return answer


cdef Py_ssize_t _filled(Py_ssize_t n, const real* x) noexcept nogil:
    """Return how many values are not zero; -1 if one is not finite."""
    cdef Py_ssize_t j, filled = 0, finite = 0
    for j in range(n):
        filled += x[j] != 0
        finite += x[j] - x[j] == 0
    return filled if finite == n else -1
