# build: glue
# cython: boundscheck=True, wraparound=True
"""Shared by the operators of Python structures: pass scores out, check labels and parts coming in.

The checks are cheap enough for every call.  Results are cached: the parts of the last labels, which
an oracle scores and a cut then needs; and the parts and costs of true labels, as long as their
examples exist.
"""

import reprlib

import numpy as np

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.math cimport fabs, isfinite
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memcmp, memcpy, memset
from structsolve.utils.allocate cimport allocated
from structsolve.utils.new_array cimport view_of
from ..operators cimport Operator
from ..part_layout cimport PartLayout

from .node_space import NodeSpace

cnp.import_array()

cdef enum:
    SLOTS = 16              # number of cached labels, by example
    MOST_AXES = 31
    ROOM = 64

# Maximum bytes of true labels' parts in the cache for one batch of examples.
TRUTH_BYTES: int = 1 << 28

cdef enum Kind:
    SHARED, NODE, EDGE


cdef int _rising(const void* a, const void* b) noexcept nogil:
    cdef const Entry* x = <const Entry*>a
    cdef const Entry* y = <const Entry*>b
    if x.index != y.index:
        return -1 if x.index < y.index else 1
    return -1 if x.order < y.order else 1


cdef class Vector:
    """Sparse parts, by position in theta."""

    def __dealloc__(self):
        free(self.entry)

    cdef int push(self, Py_ssize_t index, double value) except -1:
        if self.n == self.room:
            self.room = 2 * self.room if self.room else ROOM
            self.entry = <Entry*>allocated(
                realloc(self.entry, self.room * sizeof(Entry)), b"the parts of a label")
        self.entry[self.n].index, self.entry[self.n].value = <int>index, value
        self.entry[self.n].order = <int>self.n
        self.n += 1
        return 0

    cdef int settle(self) except -1:
        # Sort, add up duplicates, drop zeros.
        cdef Py_ssize_t j, n = 0
        cdef bint rising = True
        for j in range(1, self.n):
            rising = rising and self.entry[j - 1].index < self.entry[j].index
        if not rising:
            qsort(self.entry, self.n, sizeof(Entry), _rising)
        for j in range(self.n):
            if n and self.entry[n - 1].index == self.entry[j].index:
                self.entry[n - 1].value += self.entry[j].value
                continue
            if n and self.entry[n - 1].value == 0:
                n -= 1
            self.entry[n] = self.entry[j]
            n += 1
        if n and self.entry[n - 1].value == 0:
            n -= 1
        self.n = n
        return 0

    cdef double dot(self, const double* theta, double* scale=NULL) noexcept nogil:
        # <theta, mu>; scale <- the sum of the finite magnitudes.
        cdef Py_ssize_t j
        cdef double total = 0, one, size = 0
        for j in range(self.n):
            one = theta[self.entry[j].index] * self.entry[j].value
            total += one
            if isfinite(one):
                size += fabs(one)
        if scale != NULL:
            scale[0] = size
        return total

    cdef int spread(self, double* out, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t j
        memset(out, 0, size * sizeof(double))
        for j in range(self.n):
            out[self.entry[j].index] = self.entry[j].value
        return 0


cdef class Memo:
    """Cache of the operators of one space and one batch of examples.

    Parameters
    ----------
    space : Space
        Kept alive, so no other object gets its id.
    """

    def __init__(self, space):
        self.space, self.truths, self.room = space, {}, TRUTH_BYTES
        self.recent = [None] * SLOTS


cdef class Place:
    """Position of a block in theta, and the shape of its arrays."""

    cdef object name
    cdef tuple shape
    cdef Kind kind
    cdef int ndim
    cdef Py_ssize_t start, width, stride, rows
    cdef cnp.npy_intp dims[MOST_AXES]
    cdef cnp.npy_intp strides[MOST_AXES]

    def __init__(self, block, starts):
        cdef int axis
        self.name, self.shape = block.name, tuple(block.shape)
        self.kind = {"shared": SHARED, "node": NODE, "edge": EDGE}[block.kind]
        self.width, self.stride = block.shape[-1], block.stride
        self.rows = block.size // block.stride
        self.start, self.ndim = starts[block.name], len(block.shape)
        if self.ndim >= MOST_AXES:
            raise ValueError(
                f"block {block.name!r} has {self.ndim} axes, expected at most {MOST_AXES - 1}"
            )
        # A row of nodes or edges comes first; shared blocks have none.
        size = 8
        for axis in reversed(range(self.ndim)):
            self.dims[axis + 1], self.strides[axis + 1] = block.shape[axis], size
            size *= block.stride if axis == self.ndim - 1 else block.shape[axis]
        self.strides[0] = size

    cdef object view(self, cnp.ndarray flat, Py_ssize_t start, Py_ssize_t rows):
        cdef cnp.npy_intp dims[MOST_AXES]
        cdef int skip = 1 if self.kind == SHARED else 0, ndim = self.ndim + 1 - skip
        memcpy(dims, self.dims, sizeof(dims))
        dims[0] = rows
        return view_of(
            flat, ndim, dims + skip, self.strides + skip, cnp.PyArray_BYTES(flat) + 8 * start, 0)


cdef class Adapter:
    """Converts flat theta to named arrays, and named arrays to sparse parts; raises clear errors.

    Parameters
    ----------
    space : Space
    layout : PartLayout
        Its examples are passed to the methods.
    owner : object, optional
        Object with the methods, which then get the space as first argument.  Default: the space.
    """

    def __init__(self, space, PartLayout layout not None, owner=None):
        self.space, self.examples, self.sizes = space, layout.examples, layout
        self.owner = space if owner is None else owner
        self.first = (layout.examples,) if owner is None else (space, layout.examples)
        self.of = f"structure {space.structure.name!r}"
        if owner is not None:
            self.of = f"{type(owner).__name__} on {self.of}"
        self.n_states = len(space.classes_) if isinstance(space, NodeSpace) else None
        self.places = tuple([Place(block, layout.starts) for block in space.layout.blocks])
        # The memo must not hold the layout: a cycle would keep all examples in memory.
        self.memo = layout.common((Memo, id(space)), lambda _: Memo(space))

    cdef object ask(self, str method, Py_ssize_t i, tuple rest):
        try:
            return getattr(self.owner, method)(*self.first, i, *rest)
        except Exception as error:
            if isinstance(error, ValueError) and str(error).startswith(f"example {i}:"):
                raise
            raise ValueError(
                f"example {i}: {method}() of {self.of} raised {type(error).__name__}: {error}"
            ) from error

    cdef object refuse(self, str method, Py_ssize_t i, answer, expected):
        raise ValueError(
            f"example {i}: {method}() of {self.of} returned {answer}, expected {expected}"
        )

    cdef object flat(self, Py_ssize_t i, const double* theta):
        return read_array(theta, self.sizes.theta_size(i))

    cdef dict named(self, Py_ssize_t i, flat):
        cdef Place place
        cdef dict views = {}
        cdef Py_ssize_t nodes = self.sizes.nodes_of(i), edges = self.sizes.edges_of(i)
        cdef Py_ssize_t edge_start = self.sizes.edge_start(i)
        for place in self.places:
            if place.kind == EDGE:
                views[place.name] = place.view(flat, edge_start, edges)
            else:
                views[place.name] = place.view(flat, place.start, nodes)
        return views

    cdef tuple pair(self, str method, Py_ssize_t i, answer, expected):
        try:
            first, second = answer
        except (TypeError, ValueError):
            self.refuse(method, i, reprlib.repr(answer), expected)
        return first, self.number(method, i, second)

    cdef double number(self, str method, Py_ssize_t i, answer) except? -1:
        cdef double value
        try:
            value = float(answer)
        except (TypeError, ValueError):
            self.refuse(method, i, reprlib.repr(answer), "a number")
        if not isfinite(value):
            self.refuse(method, i, value, "a finite number")
        return value

    cdef int read_label(self, str method, Py_ssize_t i, answer, int* out) except -1:
        # A fast path for arrays and lists of integers, a slow one for everything else.
        cdef Py_ssize_t size = self.sizes.label_size(i), j
        cdef long long state, most = 0x7fffffff
        cdef int kind, overflow
        cdef bint fits = True
        cdef const int[::1] checked
        cdef list given
        cdef void* data
        if self.n_states is not None:
            most = <long long>self.n_states - 1
        if cnp.PyArray_CheckExact(answer):
            kind = cnp.PyArray_TYPE(answer)
            if ((kind == cnp.NPY_INT32 or kind == cnp.NPY_INT64) and cnp.PyArray_ISCARRAY_RO(answer)
                    and cnp.PyArray_SIZE(answer) == size):
                data = cnp.PyArray_DATA(answer)
                for j in range(size):
                    state = (<int32_t*>data)[j] if kind == cnp.NPY_INT32 else (<int64_t*>data)[j]
                    fits = fits and 0 <= state <= most
                    out[j] = <int>state
                if fits:
                    return 0
        elif type(answer) is list and len(<list>answer) == size:
            given = answer
            for j in range(size):
                fits = PyLong_CheckExact(given[j])
                if not fits:
                    break
                state = PyLong_AsLongLongAndOverflow(given[j], &overflow)
                fits = overflow == 0 and 0 <= state <= most
                if not fits:
                    break
                out[j] = <int>state
            if fits:
                return 0
        checked = self._label(method, i, answer, size)
        if size:
            memcpy(out, &checked[0], size * sizeof(int))
        return 0

    def _label(self, str method, i, answer, size):
        try:
            array = np.asarray(answer).ravel()
        except ValueError:
            array = np.asarray(None)
        if array.dtype.kind not in "iub" and array.size or array.size != size:
            said = ", as label_offsets of the examples say" if array.size != size else ""
            self.refuse(method, i, reprlib.repr(answer), f"a label of {size} integers{said}")
        label = np.ascontiguousarray(array, dtype=np.int32)
        if self.n_states is not None and size and not (
                0 <= array.min() <= array.max() < self.n_states):
            self.refuse(method, i, reprlib.repr(answer), f"states 0 .. {self.n_states - 1}")
        if not np.array_equal(label, array):
            self.refuse(method, i, reprlib.repr(answer), "integers that fit 32 bits")
        return label

    cdef Vector gather(self, str method, Py_ssize_t i, parts):
        cdef Vector vector = Vector()
        cdef Place place
        cdef Py_ssize_t seen = 0, rows, start
        if not isinstance(parts, dict):
            self.refuse(method, i, type(parts).__name__,
                        f"a dict of arrays by block name {self._names()}")
        for place in self.places:
            given = (<dict>parts).get(place.name)
            if given is None and place.name not in <dict>parts:
                continue
            seen += 1
            rows, start = place.rows, place.start
            if place.kind == NODE:
                rows *= self.sizes.nodes_of(i)
            elif place.kind == EDGE:
                rows *= self.sizes.edges_of(i)
                start = self.sizes.edge_start(i)
            _take(self, vector, method, i, place, given, start, rows)
        if seen < len(<dict>parts):
            strange = [name for name in parts if name not in self._names()]
            self.refuse(method, i, f"the block {strange[0]!r}", f"blocks of {self._names()}")
        vector.settle()
        return vector

    def _names(self):
        return sorted([(<Place>place).name for place in self.places])

    def _array(self, str method, i, Place place not None, given):
        # The array of a block, in C order.
        shape = {SHARED: (), NODE: (self.sizes.nodes_of(i),), EDGE: (self.sizes.edges_of(i),)}
        try:
            _refuse_complex(given)
            array = np.ascontiguousarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            self.refuse(method, i, f"block {place.name!r} that is not numeric ({error})", "numbers")
        expected = shape[place.kind] + place.shape
        if np.shape(given) != expected:
            self.refuse(method, i, f"block {place.name!r} of shape {np.shape(given)}", expected)
        return array

    def _pair_of_arrays(self, str method, i, Place place not None, given, size):
        try:
            _refuse_complex(given[1])
            index, value = np.asarray(given[0]), np.ascontiguousarray(given[1], dtype=np.float64)
        except (TypeError, ValueError) as error:
            self.refuse(method, i, f"block {place.name!r} that is not numeric ({error})", "numbers")
        if index.ndim != 1 or index.shape != value.shape or (
                index.size and index.dtype.kind not in "iu"):
            self._refuse_pair(method, i, place, given, size)
        return np.ascontiguousarray(index, dtype=np.int64), value

    def _refuse_pair(self, str method, i, Place place not None, given, size):
        self.refuse(method, i, f"block {place.name!r} as the pair {reprlib.repr(given)}",
                    f"equally long 1-D indices below {size} and values")

    cdef Vector costs(self, str method, Py_ssize_t i, answer):
        costs, const = self.pair(method, i, answer, "a pair (costs, const)")
        cdef Vector known = self.gather(method, i, costs)
        known.const = const
        return known

    cdef int dense(self, str method, Py_ssize_t i, parts, double* out) except -1:
        self.gather(method, i, parts).spread(out, self.sizes.theta_size(i))
        return 0

    cdef object label_array(self, Py_ssize_t i, const int* label):
        cdef cnp.npy_intp size = self.sizes.label_size(i)
        array = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_INT32)
        memcpy(cnp.PyArray_DATA(array), label, size * sizeof(int))
        return array

    cdef Vector parts_of(self, Py_ssize_t i, const int* label):
        cdef Vector known = self.memo.recent[i % SLOTS]
        if known is not None and known.i == i and _same(self, known, i, label):
            return known
        cdef list truths = self.memo.truths.get("parts")
        known = None if truths is None else truths[i]
        if known is not None and _same(self, known, i, label):
            return known
        known = self.gather("parts", i, self.ask("parts", i, (self.label_array(i, label),)))
        _name(self, known, i, label)
        self.memo.recent[i % SLOTS] = known
        return known

    cdef Vector truth_of(self, str method, Py_ssize_t i, const int* truth):
        # Parts of a true label; or by another method, its costs and their constant.
        key = method if method == "parts" else (id(self.owner), method)
        cdef list truths = self.memo.truths.get(key)
        cdef Vector known = None
        cdef Py_ssize_t size
        if truths is None:
            # The owner is kept with its id.
            truths = [None] * self.sizes.n + [self.owner]
            self.memo.truths[key] = truths
        known = truths[i]
        if known is not None and _same(self, known, i, truth):
            return known
        if method == "parts":
            known = self.parts_of(i, truth)
        else:
            known = self.costs(method, i, self.ask(method, i, (self.label_array(i, truth),)))
            _name(self, known, i, truth)
        size = 160 + known.room * sizeof(Entry) + PyBytes_GET_SIZE(known.label)
        if truths[i] is None and size <= self.memo.room:
            self.memo.room -= size
            truths[i] = known
        return known



cdef int _take(Adapter self, Vector vector, str method, Py_ssize_t i, Place place, given,
               Py_ssize_t start, Py_ssize_t rows) except -1:
    # Entries of a block of `rows` rows that begins at `start`.
    cdef bint pair = type(given) is tuple and len(<tuple>given) == 2
    cdef Py_ssize_t r, j, k, n, end, stride = place.stride, width = place.width
    cdef const double* row
    cdef double value, finite = 0
    if pair:
        index, values = <tuple>given
        if not (_plain(index, cnp.NPY_INT64) and _plain(values, cnp.NPY_DOUBLE)
                and cnp.PyArray_NDIM(index) == 1 and cnp.PyArray_NDIM(values) == 1
                and cnp.PyArray_SIZE(index) == cnp.PyArray_SIZE(values)):
            index, values = self._pair_of_arrays(method, i, place, given, rows * width)
        row, n = <const double*>cnp.PyArray_DATA(values), cnp.PyArray_SIZE(values)
        for j in range(n):
            k = (<const int64_t*>cnp.PyArray_DATA(index))[j]
            if not 0 <= k < rows * width:
                self._refuse_pair(method, i, place, given, rows * width)
            finite += row[j] - row[j]
            vector.push(start + k // width * stride + k % width, row[j])
    else:
        if not (_plain(given, cnp.NPY_DOUBLE) and _fits(self, place, given, i)):
            given = self._array(method, i, place, given)
        row = <const double*>cnp.PyArray_DATA(given)
        for r in range(rows):
            k = 0
            while k < width:
                # Mostly zeros: eight at a time.
                if width - k >= 8 and not (
                        (row[k] != 0) | (row[k + 1] != 0) | (row[k + 2] != 0)
                        | (row[k + 3] != 0) | (row[k + 4] != 0) | (row[k + 5] != 0)
                        | (row[k + 6] != 0) | (row[k + 7] != 0)):
                    k += 8
                    continue
                end = min(k + 8, width)
                for j in range(k, end):
                    value = row[j]
                    if value != 0:
                        finite += value - value
                        vector.push(start + r * stride + j, value)
                k = end
            row += width
    if finite != 0:
        self.refuse(method, i, f"block {place.name!r} with NaN or infinity", "finite numbers")
    return 0


cdef bint _fits(Adapter self, Place place, array, Py_ssize_t i):
    cdef int axis, ndim = cnp.PyArray_NDIM(array), skip = 0 if place.kind == SHARED else 1
    cdef cnp.npy_intp* dims = cnp.PyArray_DIMS(array)
    if ndim != place.ndim + skip:
        return False
    if place.kind == NODE and dims[0] != self.sizes.nodes_of(i):
        return False
    if place.kind == EDGE and dims[0] != self.sizes.edges_of(i):
        return False
    for axis in range(place.ndim):
        if dims[axis + skip] != place.dims[axis + 1]:
            return False
    return True


cdef bint _same(Adapter self, Vector known, Py_ssize_t i, const int* label):
    return memcmp(PyBytes_AS_STRING(known.label), label,
                  self.sizes.label_size(i) * sizeof(int)) == 0


cdef int _name(Adapter self, Vector vector, Py_ssize_t i, const int* label) except -1:
    cdef Py_ssize_t size = self.sizes.label_size(i) * sizeof(int)
    vector.i, vector.label = i, PyBytes_FromStringAndSize(<const char*>label, size)
    return 0


cdef int _refuse_complex(given) except -1:
    # NumPy would drop the imaginary part with a warning.
    if isinstance(given, np.ndarray) and given.dtype.kind == "c":
        raise TypeError("complex numbers")
    return 0


cdef bint _plain(array, int kind):
    # Whether it is an array of this kind whose memory can be read directly.
    return (cnp.PyArray_CheckExact(array) and cnp.PyArray_TYPE(array) == kind
            and cnp.PyArray_ISCARRAY_RO(array))


cdef Adapter adapt(Operator operator, space, PartLayout layout, owner=None):
    cdef Adapter adapter = Adapter(space, layout, owner)
    Operator.__init__(operator, layout)
    operator.n_states = adapter.n_states or 0
    return adapter


cdef object read_array(const double* x, Py_ssize_t size):
    cdef cnp.npy_intp n = size
    copy = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_DOUBLE)
    memcpy(cnp.PyArray_DATA(copy), x, size * sizeof(double))
    cnp.PyArray_CLEARFLAGS(copy, cnp.NPY_ARRAY_WRITEABLE)
    return copy
