"""What the inner loops of BCFW share: the iterate, its average, and the scalars of the state."""

import numpy as np

from ..utils.arrays import aligned_zeros


cdef class Loop:
    """Base of ``BlockLoop`` and ``SimplexLoop``.

    Parameters
    ----------
    potentials : LinearPotentials
    surrogate : Surrogate
    weights : ndarray of float64 of shape (n,)
        ``u_i``, the share of each example in the mean; they sum to 1.
    alpha : float
        Regularisation constant.
    max_cuts : int
        Cuts (or labels without weight) kept per example.
    """

    def __init__(self, LinearPotentials potentials, Surrogate surrogate, weights, double alpha,
                 Py_ssize_t max_cuts=50):
        self.potentials, self.surrogate, self.alpha = potentials, surrogate, alpha
        self.weights, self.max_cuts = weights, max_cuts
        self.w, self.average = aligned_zeros(potentials.dim), aligned_zeros(potentials.dim)
        self.gaps = np.zeros(potentials.n)
        self.moved = np.zeros(potentials.n, dtype=np.int8)
        self.w_view, self.average_view, self.gaps_view = self.w, self.average, self.gaps
        self.moved_view = self.moved

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
        """Scalars of the state, for checkpoints."""
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
