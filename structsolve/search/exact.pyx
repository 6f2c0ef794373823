# build: glue
# cython: auto_pickle=True
"""Exact search by counting: if the loss is a count, the best label for each count."""

import numpy as np

from ..utils.arrays import check_numbers, checked_array

from libc.math cimport INFINITY, fabs, floor
from libc.string cimport memcpy, memmove
from ..utils.alignment cimport align
from .base cimport Outcome, Search
from .envelope cimport common_unit
from .plane cimport LabelPlane
from .view cimport Point, View
from .psi cimport Psi


# Largest count of a node; time grows with its square.
cdef double MOST = 1000


cdef bint _by_two(LabelPlane plane) noexcept nogil:
    # Whether to use the two best labels: for the 0-1 loss without a counting oracle.
    return (plane.g_loss.zero_one and plane.kbest is not None and plane.h_loss is None
            and plane.counts is None)


cdef class Counting(Search):
    """The exact maximiser over labels of any psi that grows with h, for losses that are counts.

    A counting oracle (chains: dynamic programming in O(L^2 K^2)) gives the label of largest h for
    each value of the loss; one of them is best.  For the 0-1 loss these are the truth and the best
    other label, found among the two best.  Such a call counts as one.

    Parameters
    ----------
    max_calls : int, default=50
    tol : float, default=1e-9
        Unused, because the answer is exact.
    """

    def __init__(self, int max_calls=50, double tol=1e-9):
        super().__init__(max_calls, tol)
        self.name, self.counting = "exact", True

    cpdef Py_ssize_t extra_bytes(self, LabelPlane plane, object labels=None) except -1:
        """Return the bytes for labels, values and scratch of the counting oracle.

        See :meth:`Search.extra_bytes`. The true ``labels`` of all examples are required: their
        largest loss count decides.

        Raises
        ------
        ValueError
            If there are no labels, the loss does not decompose (the 0-1 loss need not), its values
            are not multiples of a unit, or it has costs on other parts than nodes.
        """
        cdef Py_ssize_t i, most = 0
        cdef double unit, offset
        cdef double[::1] theta = np.zeros(plane.layout.max_theta + 8)
        cdef char[::1] work = np.zeros(plane.work_bytes + 64, dtype=np.int8)
        cdef const int[::1] truths
        cdef View* view
        if _by_two(plane):
            return plane.kbest.bytes_for(2) + 64
        if not plane.g_loss.decomposes:
            raise ValueError(
                f"search 'exact' needs a loss that decomposes over the nodes, or the 0-1 loss with "
                f"an oracle that has k-best; {plane.g_loss} does not decompose; use "
                "search='convex-hull'"
            )
        if plane.states == 0:
            raise ValueError(
                "search 'exact' needs a loss on nodes, which this structure does not have; use "
                "search='convex-hull'"
            )
        if labels is None:
            raise ValueError(
                "search 'exact' needs the true labels when it is made, and examples have none; use "
                "search='convex-hull'"
            )
        if plane.counts is None:
            raise ValueError(
                "search 'exact' needs an oracle that counts, which the plane does not have; use "
                "search='convex-hull'"
            )
        checked_array(labels, np.int32, "labels", plane.layout.label_offsets[plane.layout.n])
        check_numbers(labels, plane.oracle.n_states or 2**31 - 1, "labels")
        truths = labels if len(labels) else np.zeros(1, dtype=np.int32)
        for i in range(plane.layout.n):
            view = plane.begin(i, &theta[0], &truths[0] + plane.layout.label_offsets[i], &work[0])
            most = max(most, self._counts(plane, view, &unit, &offset))
        plane.most_counts = most
        return (4 * (most + 1) * plane.layout.max_label + 8 * (most + 1)
                + plane.counts.bytes_for(most) + 256)

    cdef Py_ssize_t _counts(self, LabelPlane plane, View* view, double* unit,
                            double* offset) except -1 nogil:
        # Write g as offset + unit * <scaled, mu> with integer view.scaled; returns the most.
        cdef Py_ssize_t i = view.i, v, s, stride = plane.layout.node_size
        cdef Py_ssize_t first = plane.layout.shared_size, size = plane.layout.theta_size(i)
        cdef Py_ssize_t n = plane.layout.offsets[i + 1] - plane.layout.offsets[i], most = 0
        cdef double* row
        cdef double least, largest, count, top
        plane.need_costs(view)
        memcpy(view.scaled, view.costs, size * sizeof(double))
        offset[0], unit[0], top = view.g_const, INFINITY, 0
        for v in range(n):
            row = view.scaled + first + v * stride
            least = row[0]
            for s in range(1, plane.states):
                least = min(least, row[s])
            offset[0] += least
            for s in range(plane.states):
                row[s] -= least
                if row[s] > 0:
                    top = max(top, row[s])
        for v in range(n):
            row = view.scaled + first + v * stride
            for s in range(plane.states):
                if row[s] <= 1e-12 * top:
                    row[s] = 0
                else:
                    unit[0] = common_unit(unit[0], row[s], 1e-9 * top)
        for v in range(size):
            if (v < first or v >= first + n * stride) and view.scaled[v] != 0:
                with gil:
                    raise ValueError(
                        f"example {i}: search 'exact' needs a loss on the nodes alone; this one "
                        "costs other parts too; use search='convex-hull'"
                    )
        for v in range(n):
            row = view.scaled + first + v * stride
            largest = 0
            for s in range(plane.states):
                count = floor(row[s] / unit[0] + 0.5)
                if count > MOST or fabs(row[s] - count * unit[0]) > 1e-6 * unit[0]:
                    with gil:
                        raise ValueError(
                            f"example {i}: search 'exact' needs a loss that counts; a cost of "
                            f"{row[s]:g} is no small multiple of what the others have in common; "
                            "use search='convex-hull'"
                        )
                row[s] = count
                largest = max(largest, count)
            most += <Py_ssize_t>largest
        if unit[0] == INFINITY:
            unit[0] = 0
        return most

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        if _by_two(plane):
            self._two_best(plane, view, psi, align(work))
        else:
            self._each_count(plane, view, psi, lam, work)
        out.lam = lam
        self.settle(view, psi, out)
        out.bound = out.label_bound = out.value
        return 0

    cdef int _two_best(self, LabelPlane plane, View* view, Psi psi, char* scratch) except -1 nogil:
        # Add the two best labels to the points: one of them is the best wrong label.
        cdef Py_ssize_t length = plane.layout.label_size(view.i), j, n
        cdef const int* labels = plane.label_of(view, view.n)
        cdef double[2] values
        cdef bint known
        cdef Point point
        n = plane.ask_kbest(view, 0, 2, plane.label_of(view, view.n), values, scratch)
        for j in range(n):
            if values[j] == -INFINITY:
                continue
            # They are contiguous, starting at the first free slot.
            memmove(plane.label_of(view, view.n), labels + j * length, length * sizeof(int))
            plane.place(view, view.n, &point)
            self.keep(plane, view, psi, &point, &known)
        return 0

    cdef int _each_count(self, LabelPlane plane, View* view, Psi psi, double lam,
                         char* work) except -1 nogil:
        # Add the best label for each count to the points.
        cdef double unit, offset, value, h, best = -INFINITY
        cdef Py_ssize_t most = self._counts(plane, view, &unit, &offset), c, j, pick = -1
        cdef Py_ssize_t length = plane.layout.label_size(view.i), size
        cdef double* values = <double*>align(work)
        cdef int* labels = <int*>align((values + most + 1))
        cdef char* scratch = align((labels + (most + 1) * length))
        cdef const double* theta = view.theta
        cdef bint known
        cdef Point point
        if most > plane.most_counts:
            with gil:
                raise ValueError(
                    f"example {view.i}: the loss counts up to {most} against this truth; search "
                    f"'exact' was made for labels with counts up to {plane.most_counts}"
                )
        if plane.h_loss is not None:
            size = plane.layout.theta_size(view.i)
            for j in range(size):
                view.mu[j] = view.theta[j] + view.shifts[j]
            theta = view.mu
        plane.counts.argmax_counts(view.i, theta, view.scaled, most, labels, values, scratch)
        view.calls += 1
        for c in range(most + 1):
            if values[c] > -INFINITY:
                h = values[c] - view.truth_score + view.h_const
                value = psi.value(h, offset + unit * c)
                if pick < 0 or value > best:
                    best, pick = value, c
        if pick >= 0:
            memcpy(plane.label_of(view, view.n), labels + pick * length, length * sizeof(int))
            plane.place(view, view.n, &point)
            self.keep(plane, view, psi, &point, &known)
        return 0
