# build: glue
"""The base of the dual solvers' inner loops: the iterate, its average, the scalars of the state."""

import numpy as np

from ..utils.arrays import aligned_zeros


cdef const int* first_label(PartLayout layout, const int[::1] labels) except? NULL:
    if labels is None:
        raise ValueError("the examples have no labels, which training needs")
    if labels.shape[0] != layout.label_offsets[layout.n]:
        raise ValueError(
            f"labels has {labels.shape[0]} entries, the examples have "
            f"{layout.label_offsets[layout.n]}"
        )
    return &labels[0] if labels.shape[0] else NULL


cdef class DualLoop:
    """Base of ``BlockLoop``, ``SimplexLoop`` and ``SegmentLoop``.

    Parameters
    ----------
    potentials : LinearPotentials
    surrogate : Surrogate
    labels : ndarray of int32
        True labels, one after the other.
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
        self.truths = first_label(surrogate.layout, self.labels)
        self.weights, self.max_cuts = weights, max_cuts
        self.w, self.average = aligned_zeros(potentials.dim), aligned_zeros(potentials.dim)
        self.gaps = np.zeros(potentials.n)
        self.moved = np.zeros(potentials.n, dtype=np.int8)
        self.w_view, self.average_view, self.gaps_view = self.w, self.average, self.gaps
        self.moved_view = self.moved

    cdef const int* truth(self, Py_ssize_t i) noexcept nogil:
        return self.truths + self.surrogate.layout.label_offsets[i]

    def average_pass(self, before, Py_ssize_t visits):
        """Take the present w into the average with the weight of ``visits`` steps.

        For passes run without averaging: ``before`` is w as it was before the pass.
        """
        self.average += self.average_mass * (self.w - before)
        self.average_mass += visits * self.steps_done + visits * (visits + 1) // 2
        self.steps_done += visits

    def forget_average(self):
        """Begin the average of the iterates anew."""
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

    def continue_from(self, counters, w, average, gaps):
        """Take over the iterate and the scalars of a checkpoint."""
        self.w[:], self.average[:], self.gaps[:] = w, average, gaps
        self.b_total, self.alpha = counters["b_total"], counters["alpha"]
        self.average_mass, self.steps_done = counters["average_mass"], counters["steps_done"]
