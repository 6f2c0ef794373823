"""The max-min oracle by double oracle: a game between labels that oracles have returned."""

import numpy as np

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset
from ..operators cimport Loss, Oracle, Parts
from ..part_layout cimport PartLayout
from .game cimport MaxMinGame
from .matrix_game cimport Tableau, add_mover, add_reply, begin, solve, strategies, tableau_bytes
from .rows cimport NodeRows

from ..structure.calls import check_label
from ..utils.arrays import aligned_zeros

# Vectors of one answer, in the layout of theta.
cdef enum:
    MU = 0
    COSTS = 1
    PURE = 2
    PURE_COSTS = 3
    VECTORS = 4

# Maximum number of labels per side, in small and in large examples, the latter in a large and in a
# small data set; tables of losses have so many numbers; free places at the start of an answer;
# number of answers after which a label without weight is dropped.
cdef enum:
    LEAST_PLACES = 16
    MANY_PLACES = 64
    MOST_PLACES = 128
    LOSSES = 1 << 25
    FREE_PLACES = 6
    MAX_AGE = 2


cdef struct Moves:
    # Labels of each side, `size` numbers each; losses[k * most + l] of nu's label l against mu's
    # label k; number of answers since a label had weight; number of labels per side.
    int* mu
    int* nu
    double* losses
    int* ages
    int64_t* counts
    Py_ssize_t most, size

cdef struct Answer:
    # State of one answer: the tableau, scores of mu's labels, positive payoffs, the strategies of
    # mu and nu, whether mu's labels are in the tableau.
    Tableau table
    double* scores
    double* payoffs
    double* alpha
    double* beta
    int* present
    double floor, unit


cdef class DoubleOracle(MaxMinGame):
    """``argmax_mu G(mu) + <theta, mu>`` with ``G(mu) = min_nu nu' A mu``, mu and nu in M.

    mu and nu are mixtures of labels.  The game between the labels so far is a small matrix game,
    which the simplex method solves; against its mixtures both sides request a better label from
    their oracles, until there is none (McMahan et al. 2003; Fathony et al. 2018).  Their values
    certify every round: ``max_mu F(mu, nu) - min_nu F(mu, nu)``.  Labels are kept from one answer
    to the next: scores change little, and losses not at all.

    Parameters
    ----------
    layout : PartLayout
    oracle : Oracle
    loss : Loss
        Must have ``costs``.
    parts : Parts
    labels : ndarray of int32
        True labels, concatenated: accuracy is relative to the surrogate's value.
    rows : NodeRows, optional
        Projection of nu over the node rows alone, if the loss depends only on them and every node
        may take any state independently.
    max_iter : int, default=10
        Maximum number of oracle calls of mu per answer.
    tol : float, default=1e-4
    warm_start : bool, default=True
        Keep every example's labels.
    """

    cdef object atoms, losses, ages, sizes
    cdef int[::1] atom_view, age_view
    cdef double[::1] loss_view
    cdef int64_t[::1] size_view, most, atom_offsets, loss_offsets, age_offsets
    cdef Py_ssize_t widest, longest, answer_bytes

    def __init__(self, PartLayout layout not None, Oracle oracle not None, Loss loss not None,
                 Parts parts not None, labels, NodeRows rows=None, int max_iter=10, double tol=1e-4,
                 bint warm_start=True):
        cdef Py_ssize_t i
        n = layout.n
        thetas = np.array([layout.theta_size(i) for i in range(n)], np.int64)
        most = _places(thetas)
        lengths = np.array([layout.label_size(i) for i in range(n)], np.int64)
        self.most = most
        self.widest = int(most.max()) if n else LEAST_PLACES
        self.longest = layout.max_label if n else 1
        self.answer_bytes = 8 * self.widest * (self.widest + 4) + tableau_bytes(self.widest)
        more = self.answer_bytes
        if not warm_start:
            more += 8 * self.widest * (self.longest + self.widest + 2) + 64
        super().__init__(layout, oracle, loss, parts, labels, rows, max_iter, tol, warm_start,
                         VECTORS, more)
        kept = warm_start * np.ones(n, np.int64)
        for name, each in (("atom", 2 * most * lengths), ("loss", most * most), ("age", 2 * most)):
            offsets = np.zeros(n + 1, np.int64)
            np.cumsum(kept * each, out=offsets[1:])
            if name == "atom":
                self.atom_offsets, self.atoms = offsets, np.zeros(int(offsets[n]) + 1, np.int32)
            elif name == "loss":
                self.loss_offsets, self.losses = offsets, aligned_zeros(int(offsets[n]) + 8)
            else:
                self.age_offsets, self.ages = offsets, np.zeros(int(offsets[n]) + 1, np.int32)
        self.sizes = np.zeros((n, 2), np.int64)
        self.atom_view, self.age_view, self.loss_view = self.atoms, self.ages, self.losses
        self.size_view = self.sizes.reshape(-1)

    def memory_of_examples(self):
        """Return the labels kept for each example's next answer.

        See :meth:`MaxMinGame.memory_of_examples`.
        """
        if not self.warm_start:
            return {}
        return {"atoms": self.atoms, "losses": self.losses, "ages": self.ages, "sizes": self.sizes}

    def remember(self, arrays):
        """Restore the result of ``memory_of_examples``; see :meth:`MaxMinGame.remember`.

        Raises
        ------
        ValueError
            If an array is missing or does not fit, or holds invalid or too many labels.
        """
        sizes, atoms = arrays.get("sizes"), arrays.get("atoms")
        if self.warm_start and sizes is not None and atoms is not None:
            if sizes.shape != self.sizes.shape or atoms.shape != self.atoms.shape:
                raise ValueError("the memory of answers is that of other examples")
            if (sizes < 0).any() or (sizes > np.asarray(self.most)[:, None]).any():
                raise ValueError("the checkpoint has more labels per example than the memory holds")
            for i in range(self.layout.n):
                size = self.layout.sizes(i)[1]
                for side in range(2):
                    first = self.atom_offsets[i] + side * self.most[i] * size
                    for j in range(sizes[i, side]):
                        check_label(self.parts, i, atoms[first + j * size:first + (j + 1) * size])
        super().remember(arrays)

    cdef Moves moves(self, Py_ssize_t i, char* memory) noexcept nogil:
        cdef Moves moves
        moves.most = self.most[i]
        moves.size = self.layout.label_size(i)
        if self.warm_start:
            moves.mu = &self.atom_view[self.atom_offsets[i]]
            moves.losses = &self.loss_view[self.loss_offsets[i]]
            moves.ages = &self.age_view[self.age_offsets[i]]
            moves.counts = &self.size_view[2 * i]
        else:
            moves.counts = <int64_t*>memory
            moves.losses = <double*>(moves.counts + 2)
            moves.mu = <int*>(moves.losses + moves.most * moves.most)
            moves.ages = moves.mu + 2 * moves.most * moves.size
            moves.counts[0] = moves.counts[1] = 0
        moves.nu = moves.mu + moves.most * moves.size
        return moves

    cdef Answer answer(self, Py_ssize_t i, char* memory) noexcept nogil:
        cdef Answer answer
        cdef Py_ssize_t most = self.most[i]
        answer.scores = <double*>memory
        answer.alpha = answer.scores + most
        answer.beta = answer.alpha + most
        answer.payoffs = answer.beta + most
        answer.present = <int*>(answer.payoffs + most * most)
        begin(&answer.table, most, <char*>(answer.payoffs + most * most + most))
        answer.floor, answer.unit = 0, self.unit[i]
        return answer

    cdef double costs_of(self, Py_ssize_t i, const int* label, bint transposed,
                         char* work) except? -1 nogil:
        """PURE_COSTS <- A or A' times mu(label); returns the constant."""
        cdef double* pure = self.vector(work, PURE)
        cdef double* costs = self.vector(work, PURE_COSTS)
        cdef Py_ssize_t size = self.layout.theta_size(i)
        memset(pure, 0, size * sizeof(double))
        memset(costs, 0, size * sizeof(double))
        self.add_label(i, label, 1, pure, work)
        return self.loss.costs(i, pure, transposed, 1.0, costs)

    cdef int add_label(self, Py_ssize_t i, const int* label, double weight, double* out,
                       char* work) except -1 nogil:
        """out += weight mu(label)."""
        cdef double* value = self.entry_values(work)
        cdef int* index = <int*>(value + self.entries)
        cdef Py_ssize_t k, n = self.parts.encode(i, label, index, value)
        for k in range(n):
            out[index[k]] += weight * value[k]
        return 0

    cdef Py_ssize_t store(self, Py_ssize_t i, Moves* moves, bint side, const int* label,
                          char* work) except -2 nogil:
        """Return the number of a side's label (0: mu), added if new; -1 if no place is free."""
        cdef int* own = moves.nu if side else moves.mu
        cdef int* others = moves.mu if side else moves.nu
        cdef Py_ssize_t j, new = moves.counts[side], size = moves.size, most = moves.most
        cdef double constant
        for j in range(new):
            if memcmp(own + j * size, label, size * sizeof(int)) == 0:
                return j
        if new == most:
            return -1
        memcpy(own + new * size, label, size * sizeof(int))
        moves.ages[side * most + new] = 0
        moves.counts[side] += 1
        constant = self.costs_of(i, own + new * size, side, work)
        for j in range(moves.counts[1 - side]):
            moves.losses[j * most + new if side else new * most + j] = constant + self.score_of(
                i, self.vector(work, PURE_COSTS), others + j * size, work)
        return new

    cdef bint add_move(self, Py_ssize_t i, const double* theta, Moves* moves, Answer* answer,
                       bint side, const int* label, char* work) except -1 nogil:
        """Add a label to a side's moves; return False if it is there already, or has no place."""
        cdef Py_ssize_t before = moves.counts[side], j, k
        cdef bint below = False
        k = self.store(i, moves, side, label, work)
        if k < 0 and self.make_room(moves, side, answer.beta if side else answer.alpha):
            self.set_up_game(i, theta, moves, answer, work)
            before = moves.counts[side]
            k = self.store(i, moves, side, label, work)
        if k < 0 or (k < before and (side or answer.present[k])):
            return False
        if side:
            answer.beta[k] = 0
            for j in range(moves.counts[0]):
                below |= self.set_payoff(moves, answer, j, k)
            if below:
                self.set_up_game(i, theta, moves, answer, work)
                return True
            add_reply(&answer.table, <int>k, answer.payoffs + k, moves.most)
            return True
        answer.scores[k] = self.score_of(i, theta, moves.mu + k * moves.size, work)
        answer.present[k], answer.alpha[k] = 1, 0
        for j in range(moves.counts[1]):
            below |= self.set_payoff(moves, answer, k, j)
        if below:
            self.set_up_game(i, theta, moves, answer, work)
            return True
        add_mover(&answer.table, <int>k, answer.payoffs + k * moves.most)
        return True

    cdef bint set_payoff(self, const Moves* moves, Answer* answer, Py_ssize_t k,
                         Py_ssize_t l) noexcept nogil:
        """Set the payoff of k against l; return True if it is below 1: the floor is too high."""
        cdef Py_ssize_t cell = k * moves.most + l
        answer.payoffs[cell] = 2 + (
            moves.losses[cell] + answer.scores[k] - answer.floor) * answer.unit
        return answer.payoffs[cell] < 1

    cdef int set_up_game(self, Py_ssize_t i, const double* theta, Moves* moves, Answer* answer,
                         char* work) except -1 nogil:
        """Set up the game between the labels so far, at the current scores."""
        cdef Py_ssize_t k, l, m = moves.counts[0], q = moves.counts[1], most = moves.most
        cdef double low = 0, high = 0, top = -INFINITY
        begin(&answer.table, most, <char*>answer.table.a)
        for k in range(m):
            answer.scores[k] = self.score_of(i, theta, moves.mu + k * moves.size, work)
            top = max(top, answer.scores[k])
            for l in range(q):
                low = min(low, moves.losses[k * most + l])
                high = max(high, moves.losses[k * most + l])
        # Labels with scores too low for any loss are left out, so that payoffs have one magnitude.
        answer.floor = top + low
        for k in range(m):
            answer.present[k] = answer.scores[k] + 2 * (high - low) + 1 / answer.unit >= top
            if answer.present[k]:
                answer.floor = min(answer.floor, answer.scores[k] + low)
        for l in range(q):
            add_reply(&answer.table, <int>l, answer.payoffs + l, most)
        for k in range(m):
            for l in range(q):
                self.set_payoff(moves, answer, k, l)
            if answer.present[k]:
                add_mover(&answer.table, <int>k, answer.payoffs + k * most)
        return 0

    cdef void solve_game(self, const Moves* moves, Answer* answer) noexcept nogil:
        """alpha, beta <- strategies of both sides."""
        cdef Py_ssize_t k
        solve(&answer.table)
        if not strategies(&answer.table, moves.counts[0], moves.counts[1], answer.alpha,
                          answer.beta):
            # Scores are not finite: both sides play their first label.
            for k in range(moves.counts[0]):
                answer.alpha[k] = 1 if k == 0 else 0
            for k in range(moves.counts[1]):
                answer.beta[k] = 1 if k == 0 else 0

    cdef bint respond_nu(self, Py_ssize_t i, const double* theta, Moves* moves, Answer* answer,
                         double* marginals, double* value, char* work) except -1 nogil:
        """Add nu's best label against mu's mixture; return False if it is there already.

        If the mixture is the best so far, its value and marginals become the answer.
        """
        cdef Py_ssize_t k, size = self.layout.theta_size(i)
        cdef double* mu = self.vector(work, MU)
        cdef double* costs = self.vector(work, COSTS)
        cdef double attained = 0
        memset(mu, 0, size * sizeof(double))
        memset(costs, 0, size * sizeof(double))
        for k in range(moves.counts[0]):
            if answer.alpha[k] > 0:
                attained += answer.alpha[k] * answer.scores[k]
                self.add_label(i, moves.mu + k * moves.size, answer.alpha[k], mu, work)
        attained += self.loss.costs(i, mu, False, 1.0, costs)
        attained += self.least(i, costs, work)
        if attained > value[0] or not isfinite(value[0]):
            value[0] = attained
            memcpy(marginals, mu, size * sizeof(double))
        return self.add_move(i, theta, moves, answer, 1, self.label(work), work)

    cdef int respond_mu(self, Py_ssize_t i, const double* theta, const Moves* moves,
                        const Answer* answer, double* bound, char* work) except -1 nogil:
        """label() <- mu's best label against nu's mixture; its bound holds for the saddle point."""
        cdef Py_ssize_t k, size = self.layout.theta_size(i)
        cdef double* nu = self.vector(work, MU)
        cdef double* costs = self.vector(work, COSTS)
        cdef double value, upper, constant
        memset(nu, 0, size * sizeof(double))
        memcpy(costs, theta, size * sizeof(double))
        for k in range(moves.counts[1]):
            if answer.beta[k] > 0:
                self.add_label(i, moves.nu + k * moves.size, answer.beta[k], nu, work)
        constant = self.loss.costs(i, nu, True, 1.0, costs)
        self.oracle.argmax(i, costs, self.label(work), &value, &upper, self.scratch(work))
        bound[0] = min(bound[0], upper + constant)
        return 0

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef const int* true_label = self.labels + self.layout.label_offsets[i]
        cdef char* memory = self.more(work)
        cdef Answer answer = self.answer(i, memory)
        cdef Moves moves = self.moves(i, memory + self.answer_bytes)
        cdef double truth = self.score_of(i, theta, true_label, work)
        cdef bint grown = False, replied = False
        cdef int t = 0
        value[0], bound[0] = -INFINITY, INFINITY
        if moves.counts[0] == 0:
            # Start with the best response to the truth, which is the label of margin rescaling.
            moves.counts[1] = 0
            self.store(i, &moves, 1, true_label, work)
            answer.beta[0] = 1
            self.respond_mu(i, theta, &moves, &answer, bound, work)
            self.store(i, &moves, 0, self.label(work), work)
        self.set_up_game(i, theta, &moves, &answer, work)
        self.solve_game(&moves, &answer)
        while True:
            replied = self.respond_nu(i, theta, &moves, &answer, marginals, value, work)
            if replied:
                self.solve_game(&moves, &answer)
            if t == self.max_iter or (t > 0 and not (grown or replied)):
                break
            self.respond_mu(i, theta, &moves, &answer, bound, work)
            t += 1
            bound[0] = max(bound[0], value[0])
            grown = self.add_move(i, theta, &moves, &answer, 0, self.label(work), work)
            if self.enough(i, value[0], bound[0], truth):
                break
            if grown:
                self.solve_game(&moves, &answer)
        bound[0] = max(bound[0], value[0])
        self.spent_view[2 * i] += 1
        self.spent_view[2 * i + 1] += t
        if self.warm_start:
            self.forget(&moves, 0, answer.alpha)
            self.forget(&moves, 1, answer.beta)
        return 0

    cdef void forget(self, Moves* moves, bint side, double* weights) noexcept nogil:
        """Drop labels without weight for MAX_AGE answers, and the lightest if places are few."""
        cdef int* ages = moves.ages + side * moves.most
        cdef Py_ssize_t j, k = 0, least
        while k < moves.counts[side]:
            ages[k] = 0 if weights[k] > 0 else ages[k] + 1
            if ages[k] > MAX_AGE and moves.counts[side] > 1:
                self.drop(moves, side, k, weights)
            else:
                k += 1
        while moves.counts[side] > moves.most - FREE_PLACES:
            least = 0
            for j in range(moves.counts[side]):
                if weights[j] < weights[least] or (
                        weights[j] == weights[least] and ages[j] > ages[least]):
                    least = j
            self.drop(moves, side, least, weights)

    cdef bint make_room(self, Moves* moves, bint side, double* weights) noexcept nogil:
        """Drop all labels without weight; return False if there are none."""
        cdef Py_ssize_t k = 0, before = moves.counts[side]
        while k < moves.counts[side]:
            if weights[k] > 0:
                k += 1
            else:
                self.drop(moves, side, k, weights)
        return moves.counts[side] < before

    cdef void drop(self, Moves* moves, bint side, Py_ssize_t k, double* weights) noexcept nogil:
        """Drop label k; the last label takes its place."""
        cdef int* own = moves.nu if side else moves.mu
        cdef int* ages = moves.ages + side * moves.most
        cdef Py_ssize_t j, last = moves.counts[side] - 1, size = moves.size, most = moves.most
        moves.counts[side] = last
        if k == last:
            return
        memcpy(own + k * size, own + last * size, size * sizeof(int))
        ages[k], weights[k] = ages[last], weights[last]
        for j in range(moves.counts[1 - side]):
            if side:
                moves.losses[j * most + k] = moves.losses[j * most + last]
            else:
                moves.losses[k * most + j] = moves.losses[last * most + j]


def _places(sizes):
    # A mixture of labels may need as many as there are scores: without a place for each, bounds
    # stay open.  Large data sets have room for as much as two vectors of scores.
    least = np.clip(np.sqrt(2.0 * sizes), LEAST_PLACES, MANY_PLACES)
    room = min(MOST_PLACES, np.sqrt(LOSSES / max(len(sizes), 1)))
    return np.maximum(least, np.minimum(np.sqrt(32.0 * sizes), room)).astype(np.int64)
