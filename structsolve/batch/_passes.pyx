"""Threaded passes over the examples of a batch, and the memory of their threads."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from ..operators cimport Operator
from ..part_layout cimport PartLayout
from ._abreast cimport ABREAST_MOST

from ..examples.packed import Examples
from ..utils.arrays import aligned_zeros
from ..utils.parallel import NODES_PER_CALL, native_calls, over_examples


cnp.import_array()


cdef enum:
    KEPT_BYTES = 1 << 22    # larger memory is not cached: its use takes longer than mapping it

cdef Py_ssize_t MOST_NODES = NODES_PER_CALL


class EachSize(Examples):
    """One example of each size from 1, in order: operators bound to them serve any batch."""


cdef bint by_size(Operator operator):
    """Return whether an operator knows examples by their sizes, not by their place in a batch."""
    return operator.layout is not None and type(operator.layout.examples) is EachSize


cdef void* data_of(cnp.ndarray array, int kind, Py_ssize_t size, bint written=True) except? NULL:
    if (cnp.PyArray_TYPE(array) != kind or cnp.PyArray_SIZE(array) != size
            or not (cnp.PyArray_ISCARRAY(array) if written else cnp.PyArray_ISCARRAY_RO(array))):
        raise ValueError(f"found {array.dtype} of shape {np.shape(array)}, expected {size} numbers")
    return cnp.PyArray_DATA(array)


cdef class Room:
    """Memory of one thread: part scores, a vector like them, entries of a cut, scratch.

    Parameters
    ----------
    layout : PartLayout
    work_bytes : int
        Scratch memory of the operator.
    entries : int, default=0
    smaller : Room, optional
        The new one is as large, too, so that batches in turn do not replace it.
    """

    def __init__(self, PartLayout layout not None, Py_ssize_t work_bytes, Py_ssize_t entries=0,
                 Room smaller=None):
        cdef Py_ssize_t size = layout.max_theta + 8, words = work_bytes // 8 + 16
        entries += 1
        if smaller is not None:
            size = max(size, smaller.theta.shape[0])
            words = max(words, smaller.work.shape[0] // 8)
            entries = max(entries, smaller.index.shape[0])
        self.theta, self.dense = aligned_zeros(size), aligned_zeros(size)
        self.value, self.index = aligned_zeros(entries), np.zeros(entries, np.int32)
        self.work = aligned_zeros(words).view(np.int8)

    cdef bint holds(self, PartLayout layout, Py_ssize_t work_bytes, Py_ssize_t entries):
        """Whether it is large enough; as of ``__init__``."""
        return (self.theta.shape[0] >= layout.max_theta + 8
                and self.work.shape[0] >= work_bytes // 8 * 8 + 128
                and self.index.shape[0] > entries)


cdef class Pass:
    """A pass that writes one vector for each example: its rows, and the sum of the shared blocks.

    If the output has shared blocks for each example, they are written instead of their sum.
    """

    cdef int vector(self, Py_ssize_t i, const double* theta, double* dense,
                    Room room) except -1 nogil:
        return 0

    cdef int run(self, Py_ssize_t first, Py_ssize_t last, double* sums, Room room) except -1 nogil:
        cdef double* theta = &room.theta[0]
        cdef double* dense = &room.dense[0]
        cdef Py_ssize_t i, j, shared = self.scores.layout.shared_size
        cdef double weight = 1
        for i in range(first, last):
            self.scores.read(i, theta)
            self.vector(i, theta, dense, room)
            if self.weights != NULL:
                weight = self.weights[i]
            self.out.write(i, dense, weight)
            if self.out.shared_step:  # each example has its own shared blocks
                for j in range(shared):
                    self.out.shared[i * self.out.shared_step + j] = weight * dense[j]
            else:
                for j in range(shared):
                    sums[j] += weight * dense[j]
        return 0

    cdef int run_several(self, const int64_t* chains, Py_ssize_t n, double** sums,
                         Room room) except -1 nogil:
        return 0

    cdef int run_abreast(self, const int64_t[::1] bounds, Py_ssize_t first, Py_ssize_t last,
                         double[:, ::1] sums, Room room) except -1:
        # The ranges first .. last - 1.
        cdef const int64_t[::1] order = self.lanes.order(bounds[first], bounds[last])
        cdef double* own[ABREAST_MOST]
        cdef Py_ssize_t i = 0, k, n, owner, many = order.shape[0]
        with nogil:
            while i < many:
                n = min(self.lanes.count, many - i)
                for k in range(n):
                    owner = first
                    while bounds[owner + 1] <= order[i + k]:
                        owner += 1
                    own[k] = &sums[owner, 0]
                self.run_several(&order[i], n, own, room)
                i += n
        return 0


def over_ranges(Pass shared not None, const int64_t[::1] bounds not None, n_jobs, list rooms,
                *, Py_ssize_t work_bytes, Py_ssize_t entries):
    """Run a pass.  Each range of examples has its own sum, so threads do not change the result.

    Parameters
    ----------
    shared : Pass
    bounds : ndarray of int64 of shape (ranges + 1,)
        First example of each range with its own sum of shared blocks, and the end.
    n_jobs, rooms
        See :func:`in_rooms`.
    work_bytes, entries
        See :class:`Room`.
    """
    cdef PartLayout layout = shared.scores.layout
    cdef Py_ssize_t k, j, size = layout.shared_size, n = bounds.shape[0] - 1, many = NODES_PER_CALL
    cdef double[:, ::1] sums = np.zeros((n + 1, size + 1))
    if shared.lanes is not None:
        shared.bytes = work_bytes
        work_bytes += shared.lanes.bytes + 64
    offsets = layout.examples.offsets

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef Py_ssize_t k, a, z
        if shared.lanes is not None:
            shared.run_abreast(bounds, first, last, sums, room)
            return
        if layout.offsets[bounds[last]] - layout.offsets[bounds[first]] <= many:
            with nogil:
                for k in range(first, last):
                    shared.run(bounds[k], bounds[k + 1], &sums[k, 0], room)
            return
        for k in range(first, last):
            for a, z in native_calls(offsets, bounds[k], bounds[k + 1]):
                with nogil:
                    shared.run(a, z, &sums[k, 0], room)

    in_rooms(piece, offsets[np.asarray(bounds)], n_jobs, rooms, layout, work_bytes, entries=entries)
    if shared.out.shared_step:
        shared.out.store(shared.out.shared)
        return
    for k in range(n):
        for j in range(size):
            sums[n, j] += sums[k, j]
    shared.out.store(&sums[n, 0])


def in_rooms(piece, offsets, n_jobs, list rooms, PartLayout layout not None, Py_ssize_t work_bytes,
             *, Py_ssize_t entries=0):
    """Run a piece of work over examples, in cached memory.

    Parameters
    ----------
    piece, offsets, n_jobs
        See :func:`structsolve.utils.parallel.over_examples`.
    rooms : list
        Free memory; the call may add more.
    layout, work_bytes, entries
        See :class:`Room`.
    """
    cdef list used = []
    cdef Py_ssize_t size = 16 * layout.max_theta + work_bytes + 12 * entries, n = len(offsets) - 1

    def take():
        used.append(_room(rooms, layout, work_bytes, entries))
        return used[len(used) - 1]

    # As over_examples() would; `offsets` count the nodes of the layout.
    if n_jobs is None and n > 0 and layout.offsets[layout.n] <= MOST_NODES:
        piece(0, n, take())
    else:
        over_examples(piece, offsets, n_jobs, take)
    if size <= KEPT_BYTES:
        rooms.extend(used)


cdef Room _room(list rooms, PartLayout layout, Py_ssize_t work_bytes, Py_ssize_t entries):
    cdef Room room = None
    try:
        room = rooms.pop()
    except IndexError:  # another thread may have taken the last one
        pass
    if room is None or not room.holds(layout, work_bytes, entries=entries):
        room = Room(layout, work_bytes, entries, room)
    return room
