"""Threaded loops for the numbers of distributions ``p(y) ~ exp <theta, mu(y)>``."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from ..algorithms.labelings cimport LabelingProjection
from ..operators cimport Loss, Oracle, Parts, Projection
from ..part_layout cimport PartLayout
from ..structure.answer_checks cimport check_numbers
from ..utils.alignment cimport align
from ._abreast cimport ABREAST_MOST, Abreast, Block, abreast_of
from ._passes cimport Pass, Room, by_size, data_of, number_of
from ._sheets cimport Sheet

from ._passes import in_rooms, over_ranges


cnp.import_array()


cdef enum Kind:
    LOG_PARTITION
    LOG_PROBA
    ENTROPY
    CROSS_ENTROPY
    DIVERGENCE
    EXPECTED_LOSS

KINDS = {"log_partition": LOG_PARTITION, "log_proba": LOG_PROBA, "entropy": ENTROPY,
         "cross_entropy": CROSS_ENTROPY, "kl_divergence": DIVERGENCE,
         "expected_loss": EXPECTED_LOSS}


cdef int _no_distribution(Py_ssize_t i, double total) except -1 with gil:
    why = ("every label is forbidden (its score is -inf), so the probabilities sum to 0; allow at "
           "least one label" if total == -INFINITY else f"the sum over labels is exp({total}): "
           "scores are too large")
    raise ValueError(f"example {i}: {why}")


cdef int _not_within(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: the cross-entropy is infinite and has no gradient: scores of -inf in "
        "'other' forbid parts that have a probability"
    )


cdef double log_partition(Projection projection, Py_ssize_t i, const double* theta, double* mu,
                          char* work) except? -1 nogil:
    # mu <- the marginals.
    cdef double ignored, total
    projection.project(i, theta, mu, &ignored, &total, work)
    if not isfinite(total):
        _no_distribution(i, total)
    check_numbers(projection, i, projection.layout.theta_size(i), mu)
    return total


cdef double inner(Py_ssize_t n, const double* mu, const double* theta) noexcept nogil:
    # A part without probability counts 0, even if its score is -inf.
    cdef Py_ssize_t j
    cdef double total = 0
    for j in range(n):
        if mu[j] != 0:
            total += mu[j] * theta[j]
    return total


cdef void _centre(Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t K, double* x) noexcept nogil:
    # Shifts K numbers of each row, such that the largest of all is 0.
    cdef double top = -INFINITY
    cdef Py_ssize_t r, s
    for r in range(rows):
        for s in range(K):
            top = max(top, x[r * stride + s])
    if top > -INFINITY:
        for r in range(rows):
            for s in range(K):
                x[r * stride + s] -= top


cdef class Numbers(Pass):
    """One number of the distribution of each example, and its gradient by the scores.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    scores : Sheet
    projection : Projection
        "entropy", of a Gibbs distribution.
    other : Sheet, optional
        The second scores of a cross-entropy or divergence.
    by_other : bool, default=False
        `scores` are the second ones, `other` the first.
    parts : Parts, optional
        For numbers of labels.
    labels, outside
        See :func:`again`.
    loss : Loss, optional
        Must have costs.
    """

    cdef Kind kind
    cdef bint by_other
    cdef Sheet other
    cdef Projection projection
    cdef LabelingProjection labeling    # the same, or None
    cdef Parts parts
    cdef Loss loss
    cdef object owners              # of these two
    cdef const int* labels          # NULL: none
    cdef const unsigned char* outside   # NULL: no example's label is
    cdef Py_ssize_t vector_size, entries
    cdef Abreast second             # those of the other scores; or None
    cdef double* values             # of numbers that are written beside gradients; or NULL
    cdef float[::1] table           # of pairs: what is expected beside the scores of nodes

    def __init__(self, kind, Sheet scores not None, Projection projection not None, *,
                 Sheet other=None, bint by_other=False, Parts parts=None, labels=None,
                 outside=None, Loss loss=None):
        self.kind, self.scores, self.projection = KINDS[kind], scores, projection
        self.labeling = projection if isinstance(projection, LabelingProjection) else None
        self.other, self.by_other, self.parts, self.loss = other, by_other, parts, loss
        if (self.kind in (CROSS_ENTROPY, DIVERGENCE) and other is None
                or self.kind in (LOG_PROBA, EXPECTED_LOSS) and (parts is None or labels is None)
                or self.kind == EXPECTED_LOSS and (loss is None or not loss.has_costs)):
            raise ValueError(f"kind is {kind!r}, whose operands are missing")
        self.vector_size = scores.layout.max_theta + 8
        self.entries = self.vector_size + (0 if parts is None else parts.max_entries)
        self.again(labels, outside)

    cdef int again(self, labels, outside) except -1:
        # Takes other labels, and what the sheets hold by now.
        cdef PartLayout layout = self.scores.layout
        self.owners, self.labels, self.outside = (labels, outside), NULL, NULL
        if labels is not None:
            self.labels = <const int*>data_of(labels, cnp.NPY_INT32,
                                              layout.label_offsets[layout.n], False)
        if outside is not None:
            self.outside = <const unsigned char*>data_of(outside, cnp.NPY_BOOL, layout.n, False)
        self.values = NULL
        return self.open_abreast()

    cdef int open_abreast(self) except -1:
        cdef Abreast bounded
        if self.kind == EXPECTED_LOSS:
            return 0
        self.lanes = abreast_of(self.projection, self.scores, self.lanes)
        if self.lanes is None or self.other is None:
            return 0
        self.second = abreast_of(self.projection, self.other, self.second)
        bounded = self.lanes if self.by_other else self.second
        if self.second is None or bounded.forbids:  # cross-entropies may be infinite
            self.lanes = self.second = None
            return 0
        table, other = (one.tables[: one.K**2] for one in (self.lanes, self.second))
        self.table = table - other if self.kind == DIVERGENCE else other
        return 0

    cdef int open_slopes(self) except -1:
        # Behind the table, what Abreast.covariances() needs.
        cdef Py_ssize_t K = self.lanes.K
        tables = self.lanes.tables
        table = tables[: K**2] if self.kind == ENTROPY else np.asarray(self.table)[: K**2]
        along = table * tables[K**2 : 2 * K**2]
        self.table = np.concatenate([table, along, along.reshape(K, K).T.ravel()])
        return 0

    def _piece(self, Py_ssize_t first, Py_ssize_t last, Room room not None):
        """Compute the numbers of the examples first .. last - 1."""
        cdef Py_ssize_t i = 0, n = last - first
        cdef const int64_t[::1] order
        if self.lanes is not None:
            order = self.lanes.order(first, last)
            with nogil:
                while i < n:
                    self.several(&order[i], min(self.lanes.count, n - i), self.values, room)
                    i += self.lanes.count
            return
        with nogil:
            for i in range(first, last):
                self.scores.read(i, &room.theta[0])
                self.values[i] = self.number(i, &room.theta[0], &room.dense[0], room)

    cdef int several(self, const int64_t* chains, Py_ssize_t n, double* out,
                     Room room) except -1 nogil:
        # Numbers of several chains side by side.
        cdef Block first, second
        cdef double logs[ABREAST_MOST]
        cdef Py_ssize_t k, i
        cdef char* memory = align(&room.work[0] + self.bytes)
        second.bad = second.forbidden = 0
        if self.second is not None:
            self.copy_second(&second, chains, n, memory)
        self.lanes.place(&first, chains, n, memory)
        if self.kind < ENTROPY:
            self.lanes.loops.partition(&first)
        else:
            self.lanes.loops.weigh(&first)
            if self.kind == ENTROPY:
                self.lanes.means(&first, logs)
            else:
                self.lanes.means_of(&first, &second, self.kind == DIVERGENCE, &self.table[0], logs)
            self.from_means(&first, &second, n, logs)
        for k in range(n):
            i = chains[k]
            if self.kind >= ENTROPY:
                out[i] = logs[k]
            elif self.kind == LOG_PARTITION:
                out[i] = self.lanes.log_partition(&first, k)
            else:
                out[i] = self.log_proba(&first, k, i)
            # Small differences of large numbers need doubles.
            if not fabs(out[i]) >= 1 or (first.bad | second.bad | second.forbidden) >> k & 1:
                self.scores.read(i, &room.theta[0])
                out[i] = self.number(i, &room.theta[0], &room.dense[0], room)
        return 0

    cdef double sum_alone(self, Py_ssize_t i, const double* theta, double* spare,
                          char* work) except? -1 nogil:
        # The log-partition; of labelings by a pass in one direction.
        cdef double total
        if self.labeling is None:
            return log_partition(self.projection, i, theta, spare, work)
        self.labeling.partition(i, theta, &total, work)
        if not isfinite(total):
            _no_distribution(i, total)
        return total

    cdef void centre(self, Py_ssize_t i, double* theta) noexcept nogil:
        # A number added to all scores of a node, or of a pair of nodes, changes scores and the
        # log-partition alike.  Without it, large ones cost no digits of their difference.
        cdef Py_ssize_t v, K, stride, shared = self.scores.layout.shared_size
        if self.labeling is None:
            return
        K, stride = self.labeling.base.K, self.labeling.base.stride
        if self.labeling.base.transition >= 0:
            _centre(K, stride, K, theta + self.labeling.base.transition)
        for v in range(self.scores.layout.nodes_of(i)):
            _centre(1, stride, K, theta + shared + v * stride)
        if self.labeling.base.edge_size:
            theta += self.scores.layout.edge_start(i)
            for v in range(self.scores.layout.edges_of(i)):
                _centre(K, stride, K, theta + v * self.labeling.base.edge_size)

    cdef double number(self, Py_ssize_t i, double* theta, double* mu,
                       Room room) except? -1 nogil:
        cdef Py_ssize_t j, n = self.scores.layout.theta_size(i)
        cdef double* more = &room.value[0]
        cdef char* work = &room.work[0]
        # The second scores have their own, since it keeps tables from one example to the next.
        cdef char* second = align(work + self.projection.work_bytes)
        cdef double const = 0, total
        if self.kind == EXPECTED_LOSS:
            const = self.costs(i, mu, more, room)
        if self.kind == LOG_PARTITION:
            return self.sum_alone(i, theta, mu, work)
        self.centre(i, theta)
        # A bound of each of the others would fail by rounding.
        if self.kind == LOG_PROBA:
            return min(0.0, self.score(i, theta, room) - self.sum_alone(i, theta, mu, work))
        total = log_partition(self.projection, i, theta, mu, work)
        if self.kind == ENTROPY:
            return max(0.0, total - inner(n, mu, theta))
        if self.kind == EXPECTED_LOSS:
            return max(0.0, inner(n, mu, more) + const)
        self.other.read(i, more)
        self.centre(i, more)
        if self.kind == CROSS_ENTROPY:
            const = -inner(n, mu, more)
            return const + self.sum_alone(i, more, mu, second)
        for j in range(n):
            if mu[j] != 0:
                const += mu[j] * (theta[j] - more[j])
        total = self.sum_alone(i, more, mu, second) - total
        return max(0.0, const + total)

    cdef int vector(self, Py_ssize_t i, const double* theta, double* dense,
                    Room room) except -1 nogil:
        # The gradient.
        cdef Py_ssize_t j, n = self.scores.layout.theta_size(i)
        cdef double* more = &room.value[0]
        cdef char* work = &room.work[0]
        if self.kind == LOG_PARTITION:
            log_partition(self.projection, i, theta, dense, work)
        elif self.kind == LOG_PROBA:
            self.log_proba_gradient(i, theta, dense, room)
        elif self.by_other:
            self.other.read(i, more)
            log_partition(self.projection, i, more, dense, work)
            self.check_within(i, dense, theta)
            memcpy(more, dense, n * sizeof(double))
            log_partition(self.projection, i, theta, dense, work)
            for j in range(n):
                dense[j] -= more[j]
        else:
            # J times the derivative by the marginals.  Forbidden parts have none, and do not move.
            if self.kind == EXPECTED_LOSS:
                self.costs(i, dense, more, room)
            elif self.kind == ENTROPY:
                for j in range(n):
                    more[j] = 0 if theta[j] == -INFINITY else -theta[j]
            else:
                self.other.read(i, more)
                for j in range(n):
                    if more[j] == -INFINITY:
                        log_partition(self.projection, i, theta, dense, work)
                        self.check_within(i, dense, more)
                        break
                for j in range(n):
                    more[j] = 0 if more[j] == -INFINITY else -more[j]
                    if self.kind == DIVERGENCE and theta[j] > -INFINITY:
                        more[j] += theta[j]
            self.projection.derivative(i, theta, more, dense, align(work))
            check_numbers(self.projection, i, n, dense)
        return 0

    cdef int slowly(self, Py_ssize_t i, Room room) except -1 nogil:
        # The number beside a gradient, in doubles.
        if self.values != NULL:
            self.scores.read(i, &room.theta[0])
            self.values[i] = self.number(i, &room.theta[0], &room.dense[0], room)
        return 0

    cdef int run_several(self, const int64_t* chains, Py_ssize_t n, double** sums,
                         Room room) except -1 nogil:
        cdef Block first, second
        cdef double values[ABREAST_MOST]
        cdef Py_ssize_t k, i
        cdef double weight, sign = -1 if self.kind == LOG_PROBA else 1
        cdef const float* pairs
        cdef double* shared
        cdef char* memory = align(&room.work[0] + self.bytes)
        second.bad = second.forbidden = 0
        if self.kind >= ENTROPY and not self.by_other:
            self.moves(&first, &second, chains, n, memory, values)
            sign = 1 if self.kind == DIVERGENCE else -1
        else:
            if self.second is not None:
                self.second.open(&second, chains, n, memory)
                self.second.sums(&second, True, True)
                self.second.keep(&second)
            self.lanes.open(&first, chains, n, memory)
            self.lanes.sums(&first, True, True)
            if self.second is not None:
                first.bad |= second.bad | first.forbidden
                self.lanes.subtract_kept(&first)
            for k in range(n):
                values[k] = (self.log_proba(&first, k, chains[k]) if self.kind == LOG_PROBA else
                             self.lanes.log_partition(&first, k))
        self.lanes.write(&first, chains, self.out)
        pairs = self.lanes.pairs(&first, chains, self.out)
        for k in range(n):
            i = chains[k]
            # No gradient of forbidden labels; gradients near 0 need doubles.
            if first.bad >> k & 1 or self.kind != LOG_PARTITION and not self.by_other and not (
                    1 <= fabs(values[k]) < INFINITY):
                self.run(i, i + 1, sums[k], room)
                self.lanes.to_each(i, self.out)
                self.slowly(i, room)
                continue
            if self.values != NULL:
                self.values[i] = values[k]
                if not fabs(self.values[i]) >= 1:
                    self.slowly(i, room)
            weight = 1 if self.weights == NULL else self.weights[i]
            shared = sums[k]
            if self.out.shared_step:
                shared = self.out.shared + i * self.out.shared_step
            self.lanes.weigh(&first, k, i, pairs, sign * weight, self.out, shared)
            if self.kind == LOG_PROBA:
                self.lanes.add_label(&first, k, i, self.label(i), weight, self.out, shared)
        return 0

    cdef void moves(self, Block* first, Block* second, const int64_t* chains, Py_ssize_t n,
                    char* memory, double* values) noexcept nogil:
        # Covariances with what a number is the expectation of, and numbers.
        if self.second is not None:
            self.copy_second(second, chains, n, memory)
        self.lanes.open(first, chains, n, memory)
        self.lanes.covariances(first, self.kind != CROSS_ENTROPY, self.kind == DIVERGENCE,
                               &self.table[0], values)
        self.from_means(first, second, n, values)
        first.bad |= second.bad | second.forbidden

    cdef void from_means(self, const Block* first, const Block* second, Py_ssize_t n,
                         double* values) noexcept nogil:
        # Entropies, cross-entropies or divergences <- expectations of scores.
        cdef Py_ssize_t k
        for k in range(n):
            if self.kind == ENTROPY:
                values[k] = first.logs[k] - values[k]
            elif self.kind == CROSS_ENTROPY:
                values[k] = second.logs[k] - values[k]
            else:
                values[k] = second.logs[k] + (values[k] - first.logs[k])

    cdef void copy_second(self, Block* second, const int64_t* chains, Py_ssize_t n,
                          char* memory) noexcept nogil:
        # Its log-partitions; its scores stay, behind the memory of the first.
        self.second.open(second, chains, n, memory)
        self.second.loops.forward(second)
        memcpy(self.second.spare(second), second.scores,
               second.L * second.K * self.lanes.count * sizeof(float))
        second.scores = self.second.spare(second)

    cdef double log_proba(self, const Block* b, Py_ssize_t lane, Py_ssize_t i) noexcept nogil:
        return -INFINITY if self.is_outside(i) else self.lanes.log_proba(b, lane, self.label(i))

    cdef bint is_outside(self, Py_ssize_t i) noexcept nogil:
        return self.outside != NULL and self.outside[i]

    cdef const int* label(self, Py_ssize_t i) noexcept nogil:
        return self.labels + self.parts.layout.label_offsets[i]

    cdef int check_within(self, Py_ssize_t i, const double* mu, const double* theta) except -1 nogil:
        cdef Py_ssize_t j
        for j in range(self.scores.layout.theta_size(i)):
            if mu[j] != 0 and theta[j] == -INFINITY:
                _not_within(i)
        return 0

    cdef Py_ssize_t encode(self, Py_ssize_t i, Room room) except -1 nogil:
        # The parts of the label, behind the vector in room.value.
        cdef const int* label = self.label(i)
        cdef Py_ssize_t k, n, size = self.scores.layout.theta_size(i)
        n = self.parts.encode(i, label, &room.index[0], &room.value[self.vector_size])
        for k in range(n):
            if not 0 <= room.index[k] < size:
                with gil:
                    raise ValueError(f"example {i}: its label has parts that the example lacks")
        return n

    cdef double score(self, Py_ssize_t i, const double* theta, Room room) except? -1 nogil:
        # -inf for a label outside of the space, too.
        cdef const double* value = &room.value[self.vector_size]
        cdef double total = 0
        cdef Py_ssize_t k
        if self.is_outside(i):
            return -INFINITY
        for k in range(self.encode(i, room)):
            if value[k] != 0:
                if theta[room.index[k]] == -INFINITY:
                    return -INFINITY
                total += value[k] * theta[room.index[k]]
        return total

    cdef int log_proba_gradient(self, Py_ssize_t i, const double* theta, double* dense,
                                Room room) except -1 nogil:
        # 0 where the label is forbidden: its probability is 0 for all such scores.
        cdef const double* value = &room.value[self.vector_size]
        cdef Py_ssize_t j, k, n = self.scores.layout.theta_size(i)
        if self.score(i, theta, room) == -INFINITY:
            memset(dense, 0, n * sizeof(double))
            return 0
        log_partition(self.projection, i, theta, dense, &room.work[0])
        for j in range(n):
            dense[j] = -dense[j]
        for k in range(self.encode(i, room)):
            dense[room.index[k]] += value[k]
        return 0

    cdef double costs(self, Py_ssize_t i, double* nu, double* out, Room room) except? -1 nogil:
        # out <- costs of true parts if the label is predicted; returns the constant.
        cdef const double* value = &room.value[self.vector_size]
        cdef Py_ssize_t k, n = self.scores.layout.theta_size(i)
        memset(nu, 0, n * sizeof(double))
        memset(out, 0, n * sizeof(double))
        for k in range(self.encode(i, room)):
            nu[room.index[k]] += value[k]
        cdef double const = self.loss.costs(i, nu, True, 1, out)
        check_numbers(self.loss, i, self.scores.layout.theta_size(i), out)
        return const


def again(Numbers numbers not None, labels=None, outside=None):
    """Take other labels, and what the sheets of the scores hold by now.

    Parameters
    ----------
    numbers : Numbers
    labels : ndarray of int32, optional
        Labels of all examples, concatenated and checked.
    outside : ndarray of bool, optional
        Examples whose label is none of the space: its probability is 0.
    """
    numbers.again(labels, outside)


def numbers_of(Numbers numbers not None, cnp.ndarray values not None, n_jobs, list rooms):
    """Compute numbers.

    Parameters
    ----------
    numbers : Numbers
    values : ndarray of float64 of shape (n,)
        Written.
    n_jobs, rooms
        See :func:`in_rooms`.
    """
    cdef PartLayout layout = numbers.scores.layout
    work_bytes = numbers.projection.work_bytes
    if numbers.other is not None:
        work_bytes += work_bytes + 64
    if numbers.lanes is not None:
        numbers.bytes = work_bytes
        work_bytes += numbers.lanes.bytes + 64
    numbers.values = <double*>data_of(values, cnp.NPY_DOUBLE, layout.n)
    in_rooms(numbers._piece, layout.examples.offsets, n_jobs, rooms, layout, work_bytes,
             entries=numbers.entries)
    numbers.values = NULL


def gradients_of(Numbers numbers not None, Sheet out not None, *, const double[::1] weights,
                 cnp.ndarray values, const int64_t[::1] bounds not None, n_jobs, list rooms):
    """Compute gradients by the scores, those of shared blocks summed or for each example.

    Parameters
    ----------
    numbers : Numbers
    out : Sheet
        Overwritten.
    weights : ndarray of shape (n,), or None
        Factors of the examples.
    values : ndarray of shape (n,), or None
        The numbers are written there.
    bounds, n_jobs, rooms
        See :func:`over_ranges`.
    """
    if values is not None and numbers.lanes is None:
        numbers_of(numbers, values, n_jobs, rooms)
    elif values is not None:
        numbers.values = <double*>data_of(values, cnp.NPY_DOUBLE, numbers.scores.layout.n)
    work = numbers.projection.work_bytes
    if numbers.kind >= ENTROPY and not numbers.by_other:
        work = max(2 * work + 64, numbers.projection.derivative_bytes())
        if numbers.lanes is not None:
            numbers.open_slopes()
    if numbers.lanes is not None:
        out.open_each(numbers.lanes.transition)
    numbers.out, numbers.weights = out, NULL if weights is None else &weights[0]
    over_ranges(numbers, bounds, n_jobs, rooms, work_bytes=work, entries=numbers.entries)


def least_loss_of(Sheet scores not None, Oracle oracle not None, Projection projection not None,
                  Loss loss not None, int[::1] labels not None, double[::1] values not None, *,
                  n_jobs, list rooms):
    """Compute the label of least expected loss of every example, and this loss.

    Parameters
    ----------
    scores : Sheet
    oracle : Oracle
    projection : Projection
    loss : Loss
        Must have costs.  It and the projection are bound to the same examples.
    labels : ndarray of int32
        Labels of all examples; overwritten, like `values`.
    values : ndarray of shape (n,)
    n_jobs, rooms
        See :func:`in_rooms`.
    """
    cdef PartLayout layout = scores.layout
    cdef int* out = &labels[0] if labels.shape[0] else NULL
    cdef bint sized = by_size(oracle)
    if not loss.has_costs:
        raise ValueError(f"{type(loss).__name__} has no costs")

    def piece(Py_ssize_t first, Py_ssize_t last, Room room):
        cdef double* theta = &room.theta[0]
        cdef double* costs = &room.value[0]
        cdef double const, value, bound
        cdef Py_ssize_t i, j, n
        with nogil:
            for i in range(first, last):
                n = layout.theta_size(i)
                scores.read(i, theta)
                log_partition(projection, i, theta, &room.dense[0], &room.work[0])
                memset(costs, 0, n * sizeof(double))
                const = loss.costs(i, &room.dense[0], False, 1, costs)
                check_numbers(loss, i, n, costs)
                for j in range(n):  # what is forbidden remains so
                    theta[j] = -INFINITY if theta[j] == -INFINITY else -costs[j]
                oracle.argmax(number_of(layout, i, sized), theta, out + layout.label_offsets[i],
                              &value, &bound, &room.work[0])
                values[i] = max(0.0, const - value)

    work_bytes = max(oracle.work_bytes, projection.work_bytes)
    in_rooms(piece, layout.examples.offsets, n_jobs, rooms, layout, work_bytes,
             entries=layout.max_theta + 8)
