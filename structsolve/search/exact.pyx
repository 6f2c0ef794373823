# cython: auto_pickle=True
"""Exact search by counting: for a loss that counts, the best label of every count is asked for."""

import numpy as np

from libc.math cimport INFINITY, fabs, floor
from libc.string cimport memcpy
from ..utils.alignment cimport align
from .base cimport Found, Search
from .envelope cimport common_unit
from .plane cimport LabelPlane
from .view cimport Point, View
from .psi cimport Psi


# Largest count of a node; the work grows with its square.
cdef double MOST = 1000


cdef class Counting(Search):
    """The exact integral maximiser of every psi that grows with h, for losses that count.

    An oracle with ``argmax_counts`` (chains: dynamic programming in O(L^2 K^2)) gives the label of
    largest h for each value of the loss; one of them is best.  Such a call counts as one.

    Parameters
    ----------
    max_calls : int, default=50
    tol : float, default=1e-9
        Of no use here.
    """

    def __init__(self, int max_calls=50, double tol=1e-9):
        super().__init__(max_calls, tol)
        self.name, self.counting = "exact", True

    cpdef Py_ssize_t extra_bytes(self, LabelPlane plane) except -1:
        """Labels, values and scratch of the counting oracle, for the largest count there is.

        Raises
        ------
        ValueError
            When the loss of an example is no multiple of a unit, or lies on parts other than nodes.
        """
        cdef Py_ssize_t i, most = 0
        cdef double unit, offset
        cdef double[::1] theta = np.zeros(plane.potentials.max_theta + 8)
        cdef char[::1] work = np.zeros(plane.work_bytes + 64, dtype=np.int8)
        if plane.states == 0:
            raise ValueError(
                "search 'exact' needs a loss on nodes, which this structure does not have; use "
                "search='convex-hull'"
            )
        for i in range(plane.potentials.n):
            view = plane.begin(i, &theta[0], &work[0])
            most = max(most, self._counts(plane, view, &unit, &offset))
        return (4 * (most + 1) * plane.longest + 8 * (most + 1)
                + plane.oracle.counts_bytes(most) + 256)

    cdef Py_ssize_t _counts(self, LabelPlane plane, View* view, double* unit,
                            double* offset) except -1 nogil:
        """Write g as ``offset + unit * <scaled, mu>`` with integer ``view.scaled``; the largest."""
        cdef Py_ssize_t i = view.i, v, s, stride = plane.potentials.node_size
        cdef Py_ssize_t first = plane.potentials.shared_size, size = plane.potentials.theta_size(i)
        cdef Py_ssize_t n = plane.potentials.offsets[i + 1] - plane.potentials.offsets[i], most = 0
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

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Found* out,
                 char* work) except -1 nogil:
        cdef double unit, offset, value, h, best = -INFINITY
        cdef Py_ssize_t most = self._counts(plane, view, &unit, &offset), c, j, pick = -1
        cdef Py_ssize_t length = plane.label_size(view.i), size
        cdef double* values = <double*>align(work)
        cdef int* labels = <int*>align((values + most + 1))
        cdef char* scratch = align((labels + (most + 1) * length))
        cdef const double* theta = view.theta
        cdef bint known
        cdef Point found
        if plane.h_loss is not None:
            size = plane.potentials.theta_size(view.i)
            for j in range(size):
                view.mu[j] = view.theta[j] + view.shifts[j]
            theta = view.mu
        plane.oracle.argmax_counts(view.i, theta, view.scaled, most, labels, values, scratch)
        view.calls += 1
        for c in range(most + 1):
            if values[c] > -INFINITY:
                h = values[c] - view.truth_score + view.h_const
                value = psi.value(h, offset + unit * c)
                if pick < 0 or value > best:
                    best, pick = value, c
        if pick >= 0:
            memcpy(plane.label_of(view, view.n), labels + pick * length, length * sizeof(int))
            plane.place(view, view.n, &found)
            self.keep(plane, view, psi, &found, &known)
        out.lam = lam
        self.settle(view, psi, out)
        out.bound = out.label_bound = out.value
        return 0
