# build: glue
"""Predictions of a few short examples by one call, for the latency of a single one."""

from sys import modules

import numpy as np

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from structsolve.utils.allocate cimport allocated
from structsolve.utils.new_array cimport new_array
cimport numpy as cnp

from ..operators cimport KBest, Operator, Oracle, Projection
from ..potentials.features cimport CSR_F32, CSR_F64, CSR_ONES, DENSE_F32, DENSE_F64
from ..structure.answer_checks cimport check_numbers
from ..simd.loops cimport ss_loop_table, ss_loops

from ..examples.packed import Examples
from ..examples.packing import DENSITY
from ..structure.ask import make_layout
from ..structure.base import inherits
from ..structure.node_space import NodeSpace

cnp.import_array()

ctypedef fused real:
    float
    double

cdef enum:
    LINE = 64
    LONGEST = 128       # most nodes of an example
    MOST_VALUES = 8192  # below it, packing counts the zeros of all values, as is done here
    MOST_BYTES = 1 << 24  # of room for one example

cdef double _DENSITY = DENSITY

cdef struct Counted:
    int storage             # of the rows; -1: no example was counted
    Py_ssize_t size         # stored values
    Py_ssize_t different    # those that are not zero, or not one in CSR


cdef class Direct:
    """Answers of short examples by a linear model, without packed arrays: the base of those below.

    Where an operator depends only on the sizes of examples, one for every size is bound in advance;
    else the space makes one for the example.  Calls change nothing, so threads may share an object.

    Parameters
    ----------
    model : LinearModel
        With weights that are not too large.
    bind : callable
        ``layout -> operator``.
    """

    cdef readonly object model
    cdef Operator native      # None: make_oracle(topology, nodes) gives one
    cdef object make_oracle
    cdef const double[::1] w
    cdef cnp.ndarray classes
    cdef const ss_loop_table* loops
    cdef Py_ssize_t shared_size, node_size, node_start, n_columns, theta_bytes
    cdef double intercept
    cdef bint single

    def __init__(self, model, bind: "Callable[[PartLayout], Operator]"):
        space, layout = model.space, model.space.layout
        classes = getattr(space, "classes_", None)
        self.single = space.structure.single_node
        self.make_oracle = self._maker(space, bind)
        if not ((self._plain(space) or self.make_oracle)
                and layout.node is not None and layout.edge is None
                and type(classes) is np.ndarray and classes.ndim == 1 and not classes.dtype.hasobject
                and model.bounded):
            raise ValueError(f"structure {space.structure.name!r} or the model needs packed examples")
        self.model, self.w = model, model.weights
        self.classes = np.ascontiguousarray(classes)
        longest = 1 if self.single else LONGEST
        if self.make_oracle is None:
            sizes = np.arange(longest + 1, dtype=np.int64)
            native = bind(make_layout(space, Examples(np.cumsum(sizes))))
            if getattr(native, "batched", False) or native.layout is None:
                raise ValueError(f"{type(native).__name__} does not decode one example at a time")
            self.native = native
        self.shared_size, self.node_size = layout.shared_size, layout.node_size
        self.node_start, self.n_columns = layout.node_start, layout.n_features
        self.intercept = 1.0 if layout.intercept else 0.0
        self.loops = ss_loops(layout.node_size)
        # Like Room in decode.pyx.
        most = layout.shared_size + longest * layout.node_size
        self.theta_bytes = (8 * (most + 8) + LINE - 1) // LINE * LINE

    def answers(self, X, Py_ssize_t k=1):
        """Return the answer of each example, as users get it.

        Parameters
        ----------
        X : as users give it
        k : int, default=1
            The number of labels of an example, for those that give many.

        Returns
        -------
        list, or ndarray, or None
            None for anything but a few short, finite arrays or CSR matrices, and where an error is
            to be raised: the general way decides.
        """
        cdef list rows
        cdef tuple pair, arrays
        cdef Operator native = self.native
        cdef object answer = None
        cdef Py_ssize_t i, n, work_bytes
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
        cdef void* block = NULL
        try:
            if self.make_oracle is not None:
                native = self.make_oracle(pair[1], pair[0].shape[0])
                if native is None:
                    return None
            work_bytes = (self._work_bytes(native, k) + LINE - 1) // LINE * LINE
            if work_bytes + self._room(k) > MOST_BYTES:
                return None
            block = allocated(
                malloc(self.theta_bytes + work_bytes + self._room(k) + 2 * LINE), b"one example")
            for i in range(n):
                answer = self._one(native, given[i], counted.storage, <double*>(
                    (<uintptr_t>block + LINE - 1) // LINE * LINE), work_bytes, k)
                if answer is None:
                    return None
                answers[i] = answer
        except Exception:
            return None     # the general way raises it, and names the example
        finally:
            free(block)
        return answer if self.single else answers

    def _maker(self, space, bind):
        """Return what makes the operator of one example; None if one serves all."""
        return None

    def _plain(self, space):
        """Return whether sizes are all of an example, and its answers what _one() makes of them."""
        return space.plain_rows and not self.single and (
            inherits(space, NodeSpace, "unpack_one", "unpack_scores")
            and not getattr(space, "state_rows", 0))

    cdef Py_ssize_t _work_bytes(self, Operator native, Py_ssize_t k) except -1:
        return native.work_bytes

    cdef Py_ssize_t _room(self, Py_ssize_t k) noexcept:
        """Return the bytes that _one() needs after the work space of its operator."""
        return 0

    cdef object _one(self, Operator native, tuple arrays, int storage, double* theta,
                     Py_ssize_t work_bytes, Py_ssize_t k):
        """Return the answer of one example, or None; the work space lies after theta."""
        return None

    cdef void _score(self, tuple arrays, int storage, Py_ssize_t row, Py_ssize_t nodes,
                     double* theta) noexcept:
        """Write the scores of some nodes, from a row on."""
        cdef cnp.ndarray values = arrays[len(arrays) - 1], first = arrays[0]
        cdef bint csr = len(arrays) > 1
        cdef const int32_t* starts = <const int32_t*>first.data if csr else NULL
        cdef const int32_t* columns = <const int32_t*>(<cnp.ndarray>arrays[1]).data if csr else NULL
        cdef Py_ssize_t v, n = self.n_columns, start, width = values.itemsize
        cdef const double* W = &self.w[self.node_start]
        cdef const char* data = values.data
        with nogil:
            memcpy(theta, &self.w[0], self.shared_size * sizeof(double))
            for v in range(nodes):
                start = starts[row + v] if csr else (row + v) * n
                self.loops.score[storage](
                    starts[row + v + 1] - start if csr else n, columns + start if csr else NULL,
                    data + start * width, W, self.node_size, self.node_size, self.intercept,
                    W + n * self.node_size, theta + self.shared_size + v * self.node_size)

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
            if not (cnp.PyArray_CheckExact(array) and cnp.PyArray_ISCARRAY_RO(array)
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
        elif cnp.PyArray_ISCARRAY_RO(values) and values.ndim == 2 and values.shape[1] == self.n_columns:
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

    cdef cnp.ndarray _unnamed(self, Py_ssize_t nodes):
        """Return an array for the classes of a label."""
        cdef cnp.npy_intp length = nodes
        return new_array(self.classes.dtype, 1, &length, NULL, NULL, 0)

    cdef bint _name(self, const int* label, Py_ssize_t nodes, cnp.ndarray names, Py_ssize_t row):
        """Write the classes of a label from a row on; return whether all its numbers have one."""
        cdef Py_ssize_t v, item = self.classes.itemsize
        for v in range(nodes):
            if not 0 <= label[v] < self.classes.shape[0]:
                return False
            memcpy(names.data + (row + v) * item, self.classes.data + label[v] * item, item)
        return True


cdef class DirectLabels(Direct):
    """The best label of each example, by an oracle."""

    def _maker(self, space, bind):
        return space.unpacked_oracle(bind)

    def _plain(self, space):
        return space.plain_rows

    cdef Py_ssize_t _room(self, Py_ssize_t k) noexcept:
        return LONGEST * sizeof(int)

    cdef object _one(self, Operator native, tuple arrays, int storage, double* theta,
                     Py_ssize_t work_bytes, Py_ssize_t k):
        cdef Oracle oracle = native
        cdef Py_ssize_t row, nodes = _nodes(arrays), each = 1 if self.single else nodes
        cdef Py_ssize_t number = 0 if self.native is None else each - 1
        cdef char* work = <char*>theta + self.theta_bytes
        cdef int* label = <int*>(work + work_bytes)
        cdef double value = 0, bound = 0
        cdef cnp.ndarray answer = self._unnamed(nodes)
        for row in range(0, nodes, each):
            self._score(arrays, storage, row, each, theta)
            with nogil:
                memset(label, 0, each * sizeof(int))
                oracle.argmax(number, theta, label, &value, &bound, work)
            if value == -INFINITY or not self._name(label, each, answer, row):
                return None
        return answer


cdef class DirectBest(Direct):
    """The k best labels of each example with their scores."""

    cdef Py_ssize_t _work_bytes(self, Operator native, Py_ssize_t k) except -1:
        return (<KBest?>native).bytes_for(k)

    cdef Py_ssize_t _room(self, Py_ssize_t k) noexcept:
        return k * (sizeof(double) + LONGEST * sizeof(int))

    cdef object _one(self, Operator native, tuple arrays, int storage, double* theta,
                     Py_ssize_t work_bytes, Py_ssize_t k):
        cdef KBest best = native
        cdef Py_ssize_t j, many, nodes = _nodes(arrays)
        cdef char* work = <char*>theta + self.theta_bytes
        cdef double* values = <double*>(work + work_bytes)
        cdef int* labels = <int*>(values + k)
        cdef cnp.ndarray named
        cdef list answer = []
        self._score(arrays, storage, 0, nodes, theta)
        with nogil:
            many = best.kbest(nodes - 1, theta, k, labels, values, work)
        for j in range(many):
            if not isfinite(values[j]):
                continue
            named = self._unnamed(nodes)
            if not self._name(labels + j * nodes, nodes, named, 0):
                return None
            answer.append((named, values[j]))
        return answer or None


cdef class DirectMarginals(Direct):
    """The marginals of the nodes of each example, by a projection."""

    cdef Py_ssize_t _room(self, Py_ssize_t k) noexcept:
        return self.theta_bytes

    cdef object _one(self, Operator native, tuple arrays, int storage, double* theta,
                     Py_ssize_t work_bytes, Py_ssize_t k):
        cdef Projection projection = native
        cdef Py_ssize_t v, nodes = _nodes(arrays)
        cdef char* work = <char*>theta + self.theta_bytes
        cdef double* mu = <double*>(work + work_bytes)
        cdef double value = 0, bound = 0
        cdef cnp.npy_intp[2] shape = [nodes, self.classes.shape[0]]
        cdef cnp.ndarray answer = cnp.PyArray_SimpleNew(2, shape, cnp.NPY_DOUBLE)
        self._score(arrays, storage, 0, nodes, theta)
        with nogil:
            projection.project(nodes - 1, theta, mu, &value, &bound, work)
            check_numbers(projection, 0, self.shared_size + nodes * self.node_size, mu)
        for v in range(nodes):
            memcpy(answer.data + v * shape[1] * sizeof(double),
                   mu + self.shared_size + v * self.node_size, shape[1] * sizeof(double))
        return answer


cdef Py_ssize_t _nodes(tuple arrays):
    return (<cnp.ndarray>arrays[0]).shape[0] - (len(arrays) > 1)


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
    """Return how many values are not the usual one; -1 if one is not finite, or beyond 1e100."""
    cdef Py_ssize_t j, unlike = 0, finite = 0
    cdef real up = <real>1.8e208 if real is double else <real>1
    for j in range(n):
        unlike += x[j] != usual
        finite += x[j] * up * <real>0 == 0
    return unlike if finite == n else -1
