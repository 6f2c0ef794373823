"""The grid of two sequences, and the parts of alignments: pairs, and items left alone."""

from functools import partial

import numpy as np

cimport cython
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout


cdef class GridShape:
    """Sizes of the sequences of examples, and what a kind of alignment allows.

    Parameters
    ----------
    layout : PartLayout
        Layout of an alignment space: a row of scores for each pair, a label for each item.  The
        topology of its examples has "seconds", the first partner of each example, and "repeats",
        for each partner whether it equals the one before, or None.
    kind : str
        "edit", "many-to-one" or "ctc".

    Raises
    ------
    ValueError
        If sizes do not fit each other.
    """

    def __init__(self, PartLayout layout not None, str kind):
        cdef Py_ssize_t i, n, m
        topology = layout.examples.topology
        cdef const int64_t[::1] seconds = np.ascontiguousarray(topology["seconds"], np.int64)
        repeats = topology.get("repeats")
        self.repeated = np.zeros(0, np.int8) if repeats is None or kind != "ctc" else (
            np.ascontiguousarray(repeats, np.int8))
        self.n, self.offsets = layout.n, layout.label_offsets
        self.owners = (layout.owners, seconds)
        if seconds.shape[0] != self.n + 1 or self.repeated.shape[0] not in (0, seconds[self.n]):
            raise ValueError("seconds and repeats do not fit the examples")
        self.seconds = &seconds[0]
        for i in range(self.n):
            n, m = layout.label_size(i), seconds[i + 1] - seconds[i]
            if n < 1 or m < 1 or layout.nodes_of(i) != n * m:
                raise ValueError(
                    f"example {i}: found {layout.nodes_of(i)} pairs, {n} items and {m} partners, "
                    "expected a pair for each of at least one item and one partner"
                )
            self.max_others = max(self.max_others, m)
            self.max_nodes = max(self.max_nodes, 3 * (n + 1) * (m + 2))
        self.max_items = layout.max_label
        self.grid.gaps, self.grid.stays, self.grid.jumps = (
            kind != "many-to-one", kind != "edit", kind == "edit")
        self.grid.pairs = layout.shared_size
        self.grid.gap = layout.starts.get("gap", -1)
        self.grid.skip = self.grid.gap + 1 if kind == "edit" else -1
        self.grid.repeats = NULL


cdef GridShape grid_shape(PartLayout layout, str kind):
    return layout.common((GridShape, kind), partial(GridShape, kind=kind))


@cython.final
cdef class AlignmentParts(Parts):
    """Pairs, and the numbers of items and partners left alone.

    Parameters
    ----------
    kind : str
        See :class:`GridShape`.
    layout : PartLayout
        Layout of an alignment space.
    """

    cdef GridShape shape

    def __init__(self, str kind, PartLayout layout not None):
        super().__init__(layout)
        self.shape = grid_shape(layout, kind)
        self.n_states = self.shape.max_others + 1
        self.max_entries = 2 * self.shape.max_items + 2

    cdef Py_ssize_t write(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                          double* value) noexcept nogil:
        # A label that is NULL has no parts.
        cdef Grid g = grid_of(self.shape, i)
        cdef Py_ssize_t v, k = 0, side, state, alone = 0 if label != NULL else g.m
        cdef const int* both[2]
        both[0], both[1] = truth, label
        for v in range(g.n):
            if label != NULL and truth[v] == label[v]:
                continue
            for side in range(1 if label == NULL else 2):
                state = both[side][v]
                if state > g.m or state < 1 and g.gap < 0:
                    continue
                if state > 0:
                    alone += 2 * side - 1
                index[k] = <int>(g.pairs + v * g.m + state - 1 if state > 0 else g.gap)
                value[k] = 1 - 2 * side
                k += 1
        if g.skip >= 0 and alone != 0:
            index[k], value[k] = <int>g.skip, alone
            k += 1
        return k

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        return self.write(i, label, NULL, index, value)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        return self.write(i, truth, label, index, value)
