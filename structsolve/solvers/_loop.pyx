# build: glue
"""The base of the dual solvers' inner loops: the iterate, its average, the scalars of the state."""

import numpy as np

from ..utils.arrays import (
    aligned_zeros, check_counts, check_finite, check_numbers, checked_array,
)

from libc.stdlib cimport calloc, free, realloc
from ..utils.allocate cimport allocated


cdef const int* first_label(LinearPotentials potentials, Surrogate surrogate, labels,
                            weights=None, w=None) except? NULL:
    if potentials is None or surrogate is None or surrogate.layout is None:
        raise ValueError("potentials, surrogate: found None, or one that is bound to no examples")
    cdef PartLayout layout = surrogate.layout
    if layout.n != potentials.n or layout.max_theta > potentials.max_theta:
        raise ValueError(
            f"the surrogate is of {layout.n} examples with up to {layout.max_theta} scores, the "
            f"potentials of {potentials.n} with {potentials.max_theta}"
        )
    if labels is None:
        raise ValueError("the examples have no labels, which training needs")
    size = layout.label_offsets[layout.n]
    # The spare entry of checked_array would not outlive the call.
    if checked_array(labels, np.int32, "labels", size) is not labels:
        return NULL
    check_numbers(labels, surrogate.n_states or 2**31, "labels")
    if weights is not None and np.shape(weights) != (potentials.n,):
        raise ValueError(f"weights: found shape {np.shape(weights)}, expected ({potentials.n},)")
    if w is not None and w.shape[0] != potentials.dim:
        raise ValueError(f"w: found {w.shape[0]} entries, expected {potentials.dim}")
    cdef const int[::1] view = labels
    return &view[0]


cdef int check_order(const int64_t[::1] order, Py_ssize_t n) except -1:
    cdef Py_ssize_t k
    for k in range(order.shape[0]):
        if not 0 <= order[k] < n:
            check_numbers(order, n, "order")
    return 0


cdef class DualLoop:
    """Base of ``BlockLoop``, ``SegmentLoop`` and ``ExactLoop``.

    Parameters
    ----------
    potentials : LinearPotentials
    surrogate : Surrogate
    labels : ndarray of int32
        True labels, concatenated.
    weights : ndarray of float64 of shape (n,)
        ``u_i``, the share of each example in the mean; they sum to 1.
    alpha : float
        Regularisation constant.
    max_cuts : int
        Cuts (or labels without weight) kept per example.
    """

    def __init__(self, LinearPotentials potentials not None, Surrogate surrogate not None, labels,
                 weights, double alpha, Py_ssize_t max_cuts=50):
        self.potentials, self.surrogate, self.alpha = potentials, surrogate, alpha
        self.labels = labels
        self.truths = first_label(potentials, surrogate, labels, weights)
        self.weights, self.max_cuts = weights, max_cuts
        self.w, self.average = aligned_zeros(potentials.dim), aligned_zeros(potentials.dim)
        self.gaps = np.zeros(potentials.n)
        self.moved = np.zeros(potentials.n, dtype=np.int8)
        self.w_view, self.average_view, self.gaps_view = self.w, self.average, self.gaps
        self.moved_view = self.moved

    cdef Py_ssize_t size_of(self, Py_ssize_t i) noexcept nogil:
        return self.potentials.theta_size(i)

    cdef const int* truth(self, Py_ssize_t i) noexcept nogil:
        return self.truths + self.surrogate.layout.label_offsets[i]

    def average_pass(self, before, Py_ssize_t visits):
        """Add the current w to the average with the weight of ``visits`` steps.

        For passes run without averaging: ``before`` is w as it was before the pass.
        """
        self.average += self.average_mass * (self.w - before)
        self.average_mass += visits * self.steps_done + visits * (visits + 1) // 2
        self.steps_done += visits

    def forget_average(self):
        """Restart the average of the iterates."""
        self.average[:] = 0
        self.average_mass = 0
        self.steps_done = 0

    def rescale(self, double alpha):
        """Keep the dual variables and change alpha; w follows from them."""
        self.alpha = alpha
        self.resynchronise()

    def counters(self):
        """Return the scalars of the state, for checkpoints."""
        return {"b_total": self.b_total, "average_mass": self.average_mass,
                "steps_done": self.steps_done, "alpha": self.alpha}

    def check_sizes(self, n, w):
        """Refuse the checkpoint of another problem."""
        if n != self.potentials.n or w.shape != self.w.shape:
            raise ValueError(
                f"the checkpoint has {n} examples and {w.shape[0]} weights, this problem "
                f"{self.potentials.n} and {self.w.shape[0]}"
            )

    def check_parts(self, counts, parts, values, sizes, str what):
        """Refuse dual variables of a checkpoint that are not a number for each of some parts.

        ``counts`` of each example, ``parts`` and ``values`` of one after the other, parts below
        ``sizes``, of each example or one for all.
        """
        check_counts(counts, len(parts), f"counts of {what}")
        owners, most = np.repeat(np.arange(self.potentials.n), counts), np.max(sizes, initial=0)
        check_numbers(parts, most, what)
        ends = np.broadcast_to(sizes, counts.shape)[owners]
        if len(values) != len(parts) or (parts >= ends).any():
            raise ValueError("the checkpoint has dual variables of another problem")
        if np.unique(owners * most + parts).size != len(parts):
            raise ValueError(f"{what}: found one twice for an example")
        check_finite({f"values of {what}": values})

    def continue_from(self, counters, w, average, gaps):
        """Restore the iterate and the scalars of a checkpoint."""
        if w.shape != self.w.shape or average.shape != w.shape or gaps.shape != self.gaps.shape:
            raise ValueError(
                f"found weights of shape {w.shape}, average of {average.shape} and gaps of "
                f"{gaps.shape}, expected {self.w.shape}, {self.w.shape} and {self.gaps.shape}"
            )
        check_finite({"w": w, "average": average})
        self.w[:], self.average[:], self.gaps[:] = w, average, gaps
        self.b_total, self.alpha = counters["b_total"], counters["alpha"]
        self.average_mass, self.steps_done = counters["average_mass"], counters["steps_done"]


cdef class ExactLoop(DualLoop):
    """Base of ``SimplexLoop``, ``BoxLoop`` and ``HullLoop``: exact steps, one node per example."""

    cdef long visit(self, Py_ssize_t i, bint full, double min_gain) except -1 nogil:
        """Move one example's dual variable; return the oracle calls."""
        return 0

    cdef void fetch(self, const int64_t* order, Py_ssize_t left) noexcept nogil:
        """Prefetch the data of visits to come; order[0] is next, of `left`."""

    def run(self, const int64_t[::1] order not None, bint full, double min_gain=0.0):
        """Visit the examples of ``order``; return the sum of gaps met and the oracle calls.

        Parameters
        ----------
        order : ndarray of int64
            Examples to visit.
        full : bool
            Look at all parts; else at those that a full visit kept.
        min_gain : float
            Smallest gap that is worth a step.
        """
        cdef Py_ssize_t k, size = order.shape[0]
        cdef long calls = 0
        cdef double total = 0
        check_order(order, self.potentials.n)
        with nogil:
            for k in range(size):
                self.fetch(&order[k], size - k)
                calls += self.visit(order[k], full, min_gain)
                if full:
                    total += self.weights[order[k]] * self.gaps_view[order[k]]
        return total, calls

    def row_norms(self):
        """Return the squared norm of each example's row, 0 for examples without one."""
        norms, spare = aligned_zeros(self.potentials.n), np.zeros(self.potentials.nodes.n_cols + 1)
        cdef double[::1] out = norms, dense = spare
        cdef int64_t first
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.potentials.n):
                first = self.potentials.offsets[i]
                if first == self.potentials.offsets[i + 1]:
                    continue
                if self.potentials.has_gram:
                    out[i] = self.potentials.node_gram[self.potentials.gram_offsets[i]]
                else:
                    self.potentials.nodes.gram_row(first, first, first + 1, &dense[0], &out[i])
        return norms


cdef class ListLoop(ExactLoop):
    """Base of the exact loops that keep a list of entries for each dual variable."""

    def __cinit__(self, LinearPotentials potentials not None, *arguments, **named):
        self.n = potentials.n
        self.blocks = <Block*>allocated(calloc(self.n + 1, sizeof(Block)), b"dual variables")

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.blocks != NULL:
            for i in range(self.n):
                free(self.blocks[i].entries)
            free(self.blocks)

    cdef int make_room(self, Py_ssize_t i, Py_ssize_t wanted) except -1 nogil:
        cdef Block* block = &self.blocks[i]
        if wanted > block.capacity:
            block.entries = <Entry*>allocated(
                realloc(block.entries, wanted * sizeof(Entry)), b"a dual variable")
            block.capacity = <int>wanted
        return 0

    @property
    def nbytes(self):
        """Bytes of the dual variables, spare capacity included."""
        cdef Py_ssize_t i, total = self.n * sizeof(Block)
        for i in range(self.n):
            total += self.blocks[i].capacity * sizeof(Entry)
        return total

    @property
    def count(self):
        """Number of entries kept."""
        cdef Py_ssize_t i, total = 0
        for i in range(self.n):
            total += self.blocks[i].count
        return total

    def to_arrays(self):
        """Return the dual variables as arrays, for checkpoints."""
        cdef Py_ssize_t i, j, c = 0
        total = self.count
        counts = np.empty(self.n, dtype=np.int64)
        values, indices = np.empty(total), np.empty(total, np.int32)
        cdef int64_t[::1] counts_view = counts
        cdef double[::1] value = values
        cdef int[::1] index = indices
        for i in range(self.n):
            counts_view[i] = self.blocks[i].count
            for j in range(self.blocks[i].count):
                value[c] = self.blocks[i].entries[j].value
                index[c] = self.blocks[i].entries[j].index
                c += 1
        return {"counts": counts, self.names[0]: values, self.names[1]: indices}

    def read_arrays(self, arrays, w, sizes, str what):
        """Take the dual variables of a checkpoint; see ``check_parts`` for sizes and what."""
        cdef Py_ssize_t i, j, c = 0
        counts = arrays.get("counts", np.zeros(0, dtype=np.int64))
        self.check_sizes(counts.shape[0], w)
        if self.names[1] not in arrays:
            raise ValueError("the checkpoint was made with other steps")
        values, indices = (arrays[name] for name in self.names)
        self.check_parts(counts, indices, values, sizes, what)
        cdef const int64_t[::1] counts_view = counts
        cdef const double[::1] value = values
        cdef const int[::1] index = indices
        for i in range(self.n):
            self.make_room(i, counts_view[i])
            self.blocks[i].count = <int>counts_view[i]
            for j in range(counts_view[i]):
                self.blocks[i].entries[j].value = value[c]
                self.blocks[i].entries[j].index = index[c]
                c += 1
