"""Block-coordinate Frank-Wolfe: the loop over examples, in part space, without the GIL."""

import numpy as np

from libc.stdint cimport int64_t
from ._cuts cimport CutHead, CutStore, cut_index
from ._loop cimport check_order
from ._polyhedron cimport Polyhedron
from ._team cimport Team
from ._visits cimport Visit, VisitLoop


cdef class BlockLoop(VisitLoop):
    """State and inner loop of BCFW (Lacoste-Julien et al. 2013; Osokin et al. 2016).

    The dual variable of example i is a convex combination of cuts of past oracle calls,
    ``p_i = sum_j a_j p_ij`` (the truth, p = 0, has the rest of the weight), and
    ``w = (1/alpha) sum_i u_i Phi_i' p_i``.  A visit scores the example once, asks the surrogate for
    a cut, and moves weight between cuts by line searches; inside the visit the scores are kept up
    to date by ``K_ii = Phi_i Phi_i'``, so further steps and oracle calls touch no feature.

    If w is much shorter than the scores of the largest example (pictures whose pixels share a few
    weights), cuts are kept as ``Phi_i' p_ij``: cheap passes then cost a few numbers per cut, not
    one per pixel.
    """

    # The feasible set of w; None: unconstrained.
    cdef readonly Polyhedron feasible
    cdef double gap_total
    cdef long calls_total

    def constrain(self, Polyhedron feasible not None):
        """Keep w inside a polyhedron ``A w <= c`` from now on.

        The dual has one more block, the multipliers ``nu >= 0`` of the rows: ``w = v - A' nu /
        alpha`` with v as above, and ``- <c, nu>`` in the objective.  Its exact maximisation is the
        projection of v onto the polyhedron, which follows every step.
        """
        feasible.check(self.w.shape)
        self.feasible = feasible
        self.feasible.project(&self.w_view[0], 1, False, NULL, 0)

    def run(self, const int64_t[::1] order not None, int max_calls, *, int max_steps=30,
            bint pairwise=True, int max_age=10, double inner_tol=0.1, double min_gain=0.0,
            bint averaging=False, Py_ssize_t batch=1, Team team=None):
        """Visit the examples of ``order``; return the sum of gaps met and the oracle calls.

        Parameters
        ----------
        order : ndarray of int64
            Examples to visit.
        max_calls : int
            Oracle calls per visit; 0: only cached cuts.
        max_steps : int, default=30
            Line searches after each call.
        pairwise : bool, default=True
            Move weight from the worst cut to the best; else from all cuts to the best.
        max_age : int, default=10
            Visits that a cut of weight 0 stays in the cache.
        inner_tol : float, default=0.1
            A visit ends when its gap is below this share of the gap it began with.
        min_gain : float, default=0
            Smallest gap within the kept cuts that is worth a line search.
        averaging : bool, default=False
            Keep the average of the iterates, weighted by t.
        batch : int, default=1
            Number of examples visited at the same w; their steps follow sequentially.
        team : Team, optional
            Threads that share the visits of a batch, made for this loop.
        """
        check_order(order, self.potentials.n)
        self.reserve(self.potentials.n, 1 if team is None else team.size, batch)
        self.settings.max_calls, self.settings.max_steps = max_calls, max_steps
        self.settings.pairwise, self.settings.max_age = pairwise, max_age
        self.settings.inner_tol, self.settings.min_gain = inner_tol, min_gain
        self.settings.averaging = averaging
        self.gap_total = self.calls_total = 0
        self.cheap = max_calls == 0
        self.visit_all(order, batch, team)
        return self.gap_total, self.calls_total

    def resynchronise(self):
        """Recompute w, and the sum of b, from the dual variables: rounding does not add up."""
        cdef Py_ssize_t i, j, m
        cdef Visit* visit = self.visits
        self.w[:] = 0
        self.b_total = 0
        with nogil:
            for i in range(self.potentials.n):
                visit.gamma = 1
                m = self.cuts.heads(i, self.spaces.heads)
                for j in range(m):
                    visit.before[j] = 0
                self._change(visit, i, self.spaces, m)
                self._apply(visit, i, False)
        if self.feasible is not None:
            self.feasible.project(&self.w_view[0], 1, False, NULL, 0)

    def known_values(self, const double[::1] w not None):
        """Return the lower bounds of every H_i at w from the kept cuts.

        Parameters
        ----------
        w : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (n,)
            At least 0.
        """
        cdef Py_ssize_t i, j, m
        cdef double value
        cdef CutHead** heads = self.spaces.heads
        if w.shape[0] != self.potentials.dim:
            raise ValueError(f"w: found {w.shape[0]} entries, expected {self.potentials.dim}")
        values = np.zeros(self.potentials.n)
        cdef double[::1] out = values
        with nogil:
            for i in range(self.potentials.n):
                m = self.cuts.heads(i, heads)
                for j in range(m):
                    value = self._slope(i, heads[j], &w[0])
                    out[i] = max(out[i], value)
        return values

    @property
    def count(self):
        """Number of cuts kept."""
        return self.cuts.count

    @property
    def nbytes(self):
        """Bytes of the kept cuts."""
        return self.cuts.nbytes

    def to_arrays(self):
        """Return the dual variables as arrays, for checkpoints."""
        return self.cuts.to_arrays()

    def restore(self, counters, arrays, w, average, gaps):
        """Continue from a checkpoint."""
        cdef Py_ssize_t i, j, k, m
        cdef CutHead** heads = self.spaces.heads
        if "key" not in arrays:
            raise ValueError("the checkpoint was made with other steps")
        cdef CutStore cuts = CutStore.from_arrays(arrays)
        self.check_sizes(cuts.n, w)
        for i in range(cuts.n):
            if cuts.lists[i].count > self.max_cuts:
                raise ValueError(
                    f"the checkpoint keeps {cuts.lists[i].count} cuts for example {i}, max_cuts "
                    f"is {self.max_cuts}"
                )
            m = cuts.heads(i, heads)
            for j in range(m):
                if self.short and heads[j].nnz != self.potentials.dim:
                    raise ValueError(f"the checkpoint has cuts of another kind, of example {i}")
                for k in range(heads[j].nnz):
                    if not 0 <= cut_index(heads[j])[k] < (
                            self.potentials.dim if self.short else self.potentials.theta_size(i)):
                        raise ValueError(f"the checkpoint has cuts of another example {i}")
        self.continue_from(counters, w, average, gaps)
        self.cuts = cuts
        for i in range(cuts.n):
            m = self.cuts.heads(i, heads)
            cuts.gram_room(i)
            for j in range(m):
                self._gram_row(i, j, self.spaces)

    cdef int take(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil:
        """Take the step that a visit proposed, as far as the dual rises at the current w."""
        cdef Visit* visit = &self.visits[slot]
        cdef bint averaging = self.settings.averaging
        # Also if the step is zero now: the next pass may take it.
        self.moved_view[i] = visit.moved
        if not visit.skipped:
            if self.settings.max_calls > 0:
                self.gaps_view[i] = visit.gap
                self.calls_total += visit.calls
            visit.gamma, visit.open = 1, True
            if visit.moved:
                if self.damped:
                    self._damp(visit, i)
                if visit.gamma > 0:
                    self.rise += self.weights[i] * visit.rise
                    self._apply(visit, i, averaging)
                    if self.feasible is not None:
                        self.feasible.project(&self.w_view[0], 1, True,
                                              &self.average_view[0] if averaging else NULL,
                                              self.average_mass)
            if averaging:
                self.steps_done += 1
                self.average_mass += self.steps_done
        self.gap_total += self.weights[i] * self.gaps_view[i]
        return 0

    cdef void _damp(self, Visit* visit, Py_ssize_t i) noexcept nogil:
        """Set the share of a step that leads to the maximum of the dual on its way, and its rise."""
        cdef Py_ssize_t j
        cdef double rise = visit.b_change
        cdef double curvature = self.weights[i] / self.alpha * visit.square
        if self.short:
            for j in range(visit.n_changed):
                rise -= visit.value[j] * self.w_view[visit.index[j]]
        else:
            rise -= self.potentials.dot(i, visit.n_changed, visit.index, visit.value,
                                        &self.w_view[0])
        if rise <= 0:
            visit.gamma = 0
        elif rise < curvature:
            visit.gamma = rise / curvature
        visit.rise = visit.gamma * (rise - 0.5 * visit.gamma * curvature)

    cdef void _apply(self, Visit* visit, Py_ssize_t i, bint averaging) noexcept nogil:
        """Change w (and the average) once, for all steps of a visit."""
        cdef Py_ssize_t j, n = visit.n_changed
        cdef double share = visit.gamma * (self.weights[i] / self.alpha), change
        self.b_total += visit.gamma * self.weights[i] * visit.b_change
        if self.short:
            for j in range(n):
                change = share * visit.value[j]
                self.w_view[visit.index[j]] += change
                if averaging:
                    self.average_view[visit.index[j]] += self.average_mass * change
            return
        self.potentials.add(i, n, visit.index, visit.value, share, &self.w_view[0])
        if averaging:
            # sum_t t w_t = T(T+1)/2 w_T - sum_t (mass before t) change_t.
            self.potentials.add(i, n, visit.index, visit.value, share * self.average_mass,
                                &self.average_view[0])
