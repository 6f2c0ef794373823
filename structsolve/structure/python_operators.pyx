# build: glue
# cython: boundscheck=True, wraparound=True
"""Native operators for structures in plain Python: slower, with the same results.

A space may define the methods below instead of compiled operators.  ``theta`` is a dict of
read-only arrays by block name, without padding: shared blocks have the block's shape, the node and
edge blocks one row per node or edge.  Parts, marginals and costs are returned in the same form.
Omitted blocks are zero, and a pair ``(flat indices, values)``, in any order, may replace an array
with few entries; values of repeated indices add up.  A label is an array or a list of integers;
``label_offsets`` determines its length.

Results that depend only on a label are computed once for all operators: ``parts`` and
``loss_costs`` of the truth, and ``parts`` of a predicted label.

=========================================  =====================================================
``argmax(examples, i, theta)``             the best label, ties broken in a fixed way; or a tuple
                                           ``(label, value)``, which is compared with what its
                                           parts score, and saves asking for them in prediction
``kbest(examples, i, theta, k)``           optional: the k best labels, best first
``parts(examples, i, label)``              ``mu(label)``
``loss(examples, i, truth, label)``        ``L(label, truth)``
``loss_costs(examples, i, truth)``         optional: ``(costs, const)``, the loss as costs of parts
``costs(examples, i, nu, transposed)``     optional: ``(costs, const)`` of predictions, where truths
                                           have the marginals nu; transposed: of truths
``argmax_augmented(examples, i, theta,     optional: the most violated label, the space's own ``loss``
truth)``                                   included; not asked where users name another loss
``relax(examples, i, theta)``              optional: ``(mu, label or None)``, the maximiser over a
                                           polytope around the labels; its label where it is one
``argmax_constrained(examples, i, theta,   optional: ``(mu, label or None)`` with the largest
cost, cone)``                              ``h + lam g`` in a :class:`~structsolve.ConePair`, or None
``argmax_counts(examples, i, theta,        optional: for each count 0 .. most the best label with
cost, most)``                              ``<cost, mu> = count``, None if there is none
``polytopes(examples)``                    optional: :class:`structsolve.lp.Polytopes`, for
                                           decoding by linear programs
``project(examples, i, theta, name)``      optional: ``(mu, value)`` of the projection ``name``, see
                                           :mod:`structsolve.structure.python_projection` for more
=========================================  =====================================================

A space whose ``argmax`` may miss the maximum also defines ``argmax_bounded(examples, i, theta)``,
which returns ``(label, bound)``.  A space with its own ``loss`` lists the loss's names in
``loss_names`` (default ``("hamming",)``), one with ``project`` lists ``projections`` (default
``("entropy",)``).  A :class:`~structsolve.NodeSpace` needs neither, since it has the node losses.
A space whose labels are single numbers y with ``mu(y) = e_y`` may set ``indicator = True``: solvers
then take exact steps.  ``structsolve.testing`` contains an example of a structure, and checks
yours.
"""

import reprlib

import numpy as np

from libc.math cimport INFINITY, NAN, fabs, isnan
from ..operators cimport (
    AugmentedOracle, Cone, ConeOracle, CountOracle, KBest, Loss, Oracle, Parts, Relaxation,
)
from ..part_layout cimport PartLayout
from .adapter cimport Adapter, Vector, adapt

from .base import ConePair

cdef extern from "Python.h":
    bint PySequence_Check(object o)

cdef enum:
    # If parts are not needed otherwise, this many values of argmax() are compared with them, and
    # then one in this many.
    COMPARED = 64


cdef class PythonOracle(Oracle):
    """An oracle that calls the space's ``argmax``, or its ``argmax_bounded``."""

    cdef Adapter adapter
    cdef Py_ssize_t claims
    cdef bint needs_parts

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)
        self.exact = not hasattr(space, "argmax_bounded")
        # Cuts need the parts of each label anyway, so its score is free.
        self.needs_parts = layout.training

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef double claimed = NAN, upper = 0
        with gil:
            method = "argmax" if self.exact else "argmax_bounded"
            named = self.adapter.named(i, self.adapter.flat(i, theta))
            answer = self.adapter.ask(method, i, (named,))
            if not self.exact:
                answer, upper = self.adapter.pair(method, i, answer, "a pair (label, bound)")
            elif self.has_value(i, answer):
                answer, claimed = self.claim(i, answer)
            self.adapter.read_label(method, i, answer, label)
            value[0] = claimed
            if isnan(claimed) or self.compares():
                value[0] = self.score(i, theta, label, claimed)
            # Tolerate rounding; the watch reports a bound below the label's value.
            bound[0] = value[0] if self.exact else upper
            if not bound[0] < value[0] - 1e-6 * (1 + fabs(value[0])):
                bound[0] = max(bound[0], value[0])
        return 0

    cdef tuple claim(self, Py_ssize_t i, object answer):
        # -inf is the value of a label that a constraint forbids.
        if getattr(answer[1], "ndim", 0) == 0 and answer[1] == -INFINITY:
            return answer
        return self.adapter.pair("argmax", i, answer, "a pair (label, value)")

    cdef bint has_value(self, Py_ssize_t i, object answer):
        # (label, value), unless it is a label of two numbers.
        if type(answer) is not tuple or len(<tuple>answer) != 2:
            return False
        return PySequence_Check((<tuple>answer)[0]) or self.layout.label_size(i) != 2

    cdef bint compares(self):
        self.claims += 1
        return self.needs_parts or self.claims <= COMPARED or self.claims % COMPARED == 0

    cdef double score(self, Py_ssize_t i, const double* theta, const int* label,
                      double claimed) except? -1:
        cdef double scale, value = self.adapter.parts_of(i, label).dot(theta, &scale)
        # Sums in another order differ a little; -inf is -inf.
        if not (isnan(claimed) or claimed == value or fabs(claimed - value) <= 1e-6 * (1 + scale)):
            self.adapter.refuse("argmax", i, f"the value {claimed:.9g} with its label",
                                f"{value:.9g}, what its parts() score")
        return value


cdef class PythonParts(Parts):
    """Parts from the space's ``parts``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)
        self.max_entries = max(layout.max_theta, 1)
        self.indicator = bool(getattr(space, "indicator", False))

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        with gil:
            return write(self.adapter.parts_of(i, label), index, value)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        with gil:
            # The label comes first: its parts are cached from the last call.
            away = self.adapter.parts_of(i, label)
            return write_difference(self.adapter.truth_of("parts", i, truth), away, index, value)


cdef Py_ssize_t write(Vector mu, int* index, double* value) noexcept:
    cdef Py_ssize_t j
    for j in range(mu.n):
        index[j], value[j] = mu.entry[j].index, mu.entry[j].value
    return mu.n


cdef Py_ssize_t write_difference(Vector home, Vector away, int* index, double* value) noexcept:
    cdef Py_ssize_t h = 0, a = 0, n = 0
    cdef int first, second
    while h < home.n or a < away.n:
        first = home.entry[h].index if h < home.n else 0x7fffffff
        second = away.entry[a].index if a < away.n else 0x7fffffff
        index[n], value[n] = min(first, second), 0
        if first <= second:
            value[n] = home.entry[h].value
            h += 1
        if second <= first:
            value[n] -= away.entry[a].value
            a += 1
        n += value[n] != 0
    return n


cdef class PythonLoss(Loss):
    """The loss of a space's methods, or a :class:`~structsolve.TaskLoss` on a space.

    Parameters
    ----------
    space : Space
    owner : TaskLoss, or None
        Object with the methods; None: the space.
    layout : PartLayout
    """

    cdef Adapter adapter

    def __init__(self, space, owner, PartLayout layout):
        self.adapter = adapt(self, space, layout, owner)
        if owner is None:
            owner = space
            self.averaged = bool(getattr(space, "loss_averaged", False))
            self.takes_unseen = True
        else:
            self.averaged = bool(owner.averaged)
            self.takes_unseen = bool(owner.takes_unseen)
        self.decomposes = hasattr(owner, "loss_costs")
        self.has_costs = hasattr(owner, "costs")

    def __str__(self):
        has = {"loss_costs": self.decomposes, "costs": self.has_costs}
        lacks = " and ".join(f"{method}()" for method, defined in has.items() if not defined)
        own = self.adapter.owner is self.adapter.space
        name = "loss()" if own else type(self.adapter.owner).__name__
        return f"{name}, without {lacks}," if lacks else name

    def check_truths(self, labels):
        """Refuse labels unseen in training, if the loss does not support them.

        See :meth:`Loss.check_truths`.
        """
        if self.takes_unseen or not self.n_states:
            return
        beyond = np.flatnonzero(np.asarray(labels) >= self.n_states)
        if beyond.size:
            offsets = self.layout.examples.label_offsets
            i = int(np.searchsorted(offsets, beyond[0], side="right")) - 1
            raise ValueError(
                f"example {i}: {self.adapter.of} takes no label that was not seen in training "
                "(takes_unseen)"
            )

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        with gil:
            answer = self.adapter.ask("loss", i, (self.adapter.label_array(i, truth),
                                                  self.adapter.label_array(i, label)))
            return self.adapter.number("loss", i, answer)

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        with gil:
            return add(self.adapter.truth_of("loss_costs", i, truth), scale, theta)

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        with gil:
            named = self.adapter.named(i, self.adapter.flat(i, nu))
            answer = self.adapter.ask("costs", i, (named, bool(transposed)))
            return add(self.adapter.costs("costs", i, answer), scale, theta)


cdef double add(Vector cost, double scale, double* theta) noexcept:
    # Adds costs to scores; returns their constant.
    cdef Py_ssize_t j
    for j in range(cost.n):
        theta[cost.entry[j].index] += scale * cost.entry[j].value
    return scale * cost.const


cdef class PythonKBest(KBest):
    """The space's ``kbest``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Py_ssize_t n = 0, size = self.layout.label_size(i)
        cdef double scale = 0
        with gil:
            named = self.adapter.named(i, self.adapter.flat(i, theta))
            answers = self.adapter.ask("kbest", i, (named, k))
            if not hasattr(answers, "__len__"):
                self.adapter.refuse("kbest", i, repr(answers), "a list of labels")
            seen = set()
            for answer in answers[:k]:
                self.adapter.read_label("kbest", i, answer, labels)
                values[n] = self.adapter.parts_of(i, labels).dot(theta, &scale)
                if n and values[n] > values[n - 1] + 1e-6 * (1 + scale):
                    self.adapter.refuse("kbest", i, f"label {n + 1} with score {values[n]:.9g} "
                                        f"behind one with {values[n - 1]:.9g}", "the best first")
                label = (<char*>labels)[:size * sizeof(int)]
                if label in seen:
                    self.adapter.refuse("kbest", i, f"{answer!r} twice", "different labels")
                seen.add(label)
                labels += size
                n += 1
        return n


cdef class PythonAugmented(AugmentedOracle):
    """The space's ``argmax_augmented``, which includes only the space's ``loss``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)

    def knows(self, Loss loss not None):
        """Return whether ``loss`` is the space's ``loss``; see :meth:`AugmentedOracle.knows`."""
        return isinstance(loss, PythonLoss) and (
            (<PythonLoss>loss).adapter.owner is self.adapter.space)

    cdef int argmax(self, Py_ssize_t i, const double* theta, const int* truth, int* label,
                    double* value, double* loss, char* work) except -1 nogil:
        with gil:
            named = self.adapter.named(i, self.adapter.flat(i, theta))
            true_label = self.adapter.label_array(i, truth)
            answer = self.adapter.ask("argmax_augmented", i, (named, true_label))
            self.adapter.read_label("argmax_augmented", i, answer, label)
            answer = self.adapter.ask("loss", i, (self.adapter.label_array(i, truth),
                                                  self.adapter.label_array(i, label)))
            loss[0] = self.adapter.number("loss", i, answer)
            value[0] = self.adapter.parts_of(i, label).dot(theta) + loss[0]
        return 0


cdef class PythonRelaxation(Relaxation):
    """The space's ``relax``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        with gil:
            named = self.adapter.named(i, self.adapter.flat(i, theta))
            answer = self.adapter.ask("relax", i, (named,))
            point, integral = vertex(self.adapter, "relax", i, answer, label)
            (<Vector>point).spread(mu, self.layout.theta_size(i))
            bound[0] = value[0] = (<Vector>point).dot(theta)
            return integral


cdef class PythonCones(ConeOracle):
    """The space's ``argmax_constrained``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        with gil:
            named = self.adapter.named(i, self.adapter.flat(i, theta))
            named_cost = self.adapter.named(i, self.adapter.flat(i, cost))
            pair = ConePair(cone.h0, cone.g0, cone.lam, cone.alpha, cone.beta, bool(cone.twin))
            answer = self.adapter.ask("argmax_constrained", i, (named, named_cost, pair))
            if answer is None:
                return 0
            point, integral = vertex(self.adapter, "argmax_constrained", i, answer, label)
            (<Vector>point).spread(mu, self.layout.theta_size(i))
            value[0] = (<Vector>point).dot(theta) + cone.lam * (<Vector>point).dot(cost)
            value[0] += cone.h0 + cone.lam * cone.g0
            return 1 if integral else 2


cdef class PythonCounts(CountOracle):
    """The space's ``argmax_counts``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        cdef Py_ssize_t c = 0, size = self.layout.label_size(i)
        with gil:
            named = self.adapter.named(i, self.adapter.flat(i, theta))
            named_cost = self.adapter.named(i, self.adapter.flat(i, cost))
            answers = self.adapter.ask("argmax_counts", i, (named, named_cost, most))
            if not hasattr(answers, "__len__") or len(answers) != most + 1:
                self.adapter.refuse("argmax_counts", i, reprlib.repr(answers),
                                    f"a list of {most + 1} labels or None")
            for answer in answers:
                values[c] = -INFINITY
                if answer is not None:
                    self.adapter.read_label("argmax_counts", i, answer, labels + c * size)
                    values[c] = self.adapter.parts_of(i, labels + c * size).dot(theta)
                c += 1
        return 0


cdef tuple vertex(Adapter adapter, str method, Py_ssize_t i, object answer, int* label):
    # (mu, whether a label is written) of an answer (mu, label or None).
    try:
        parts, integral = answer
    except (TypeError, ValueError):
        adapter.refuse(method, i, reprlib.repr(answer), "a pair (mu, label or None)")
    point = adapter.gather(method, i, parts)
    if integral is not None:
        adapter.read_label(method, i, integral, label)
    return point, integral is not None


#: Powers of Python spaces: name, method, operator.
POWERS: dict = {
    "kbest": ("kbest", PythonKBest),
    "augmented": ("argmax_augmented", PythonAugmented),
    "relaxation": ("relax", PythonRelaxation),
    "cones": ("argmax_constrained", PythonCones),
    "counts": ("argmax_counts", PythonCounts),
}
