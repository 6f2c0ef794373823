# build: glue
# cython: boundscheck=True, wraparound=True
"""Structures written in plain Python, behind the native operators: slower, never different.

A space may give the methods below instead of compiled operators.  ``theta`` is a dict of read-only
arrays by block name, without padding: shared blocks have the block's shape, the node and edge
blocks one row per node or edge.  Parts, marginals and costs are given back in the same form;
blocks left out are zero, and a pair ``(flat indices, values)`` may stand for an array with few
entries.  A label is an array of integers, ``label_offsets`` says how many.

=========================================  =====================================================
``argmax(examples, i, theta)``             the best label; ties broken in a fixed way
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
cost, most)``                              ``<cost, mu> = count``, None where there is none
``polytopes(examples)``                    optional: :class:`structsolve.lp.Polytopes`, for
                                           decoding by linear programs
``project(examples, i, theta, name)``      optional: ``(mu, value)`` of the projection ``name``, see
                                           :mod:`structsolve.structure.python_projection` for more
=========================================  =====================================================

A space whose ``argmax`` may miss the maximum gives ``argmax_bounded(examples, i, theta)`` as well,
which returns ``(label, bound)``.
A space with its own ``loss`` says in ``loss_names`` what it may be called (default
``("hamming",)``), one with ``project`` the ``projections`` it knows (default ``("entropy",)``).
A :class:`~structsolve.NodeSpace` needs neither: the node losses are there already.
A space whose labels are single numbers y with ``mu(y) = e_y`` may say ``indicator = True``: solvers
then take exact steps.  ``structsolve.testing`` holds an example of a whole structure, and checks
yours.
"""

import reprlib

import numpy as np

from libc.string cimport memcpy
from ..operators cimport (
    AugmentedOracle, Cone, ConeOracle, CountOracle, KBest, Loss, Operator, Oracle, Parts,
    Relaxation,
)
from ..part_layout cimport PartLayout

from .base import ConePair, NodeSpace


cdef class Adapter:
    """Turns flat theta into named arrays and named arrays into sparse parts; names errors.

    Parameters
    ----------
    space : Space
    layout : PartLayout
        The methods of ``space`` are given its examples.
    """

    def __init__(self, space, PartLayout layout not None):
        self.space, self.examples, self.sizes = space, layout.examples, layout
        self.layout = space.layout
        self.n_states = len(space.classes_) if isinstance(space, NodeSpace) else None

    cdef object flat(self, Py_ssize_t i, const double* theta):
        return read_array(theta, self.sizes.theta_size(i))

    cdef object named(self, Py_ssize_t i, flat):
        return self.layout.theta_views(flat, self.sizes.nodes_of(i), self.sizes.edges_of(i))

    def ask(self, str method, Py_ssize_t i, *arguments):
        """Call a method of the space.

        Parameters
        ----------
        method : str
        i : int
            Number of the example.
        *arguments
            Its further arguments.

        Returns
        -------
        object
            The answer, not checked.

        Raises
        ------
        ValueError
            When the method raises anything; the error names the example.
        """
        try:
            return getattr(self.space, method)(self.examples, i, *arguments)
        except Exception as error:
            if isinstance(error, ValueError) and str(error).startswith(f"example {i}:"):
                raise
            raise ValueError(
                f"example {i}: {method}() of structure {self.space.structure.name!r} raised "
                f"{type(error).__name__}: {error}"
            ) from error

    cdef object refuse(self, str method, Py_ssize_t i, answer, expected):
        raise ValueError(
            f"example {i}: {method}() of structure {self.space.structure.name!r} returned "
            f"{answer}, expected {expected}"
        )

    cdef tuple pair(self, str method, Py_ssize_t i, answer, expected):
        try:
            first, second = answer
        except (TypeError, ValueError):
            self.refuse(method, i, reprlib.repr(answer), expected)
        return first, self.number(method, i, second)

    cdef object number(self, str method, Py_ssize_t i, answer):
        try:
            value = float(answer)
        except (TypeError, ValueError):
            self.refuse(method, i, reprlib.repr(answer), "a number")
        if not np.isfinite(value):
            self.refuse(method, i, value, "a finite number")
        return value

    cdef object label(self, str method, Py_ssize_t i, answer):
        cdef Py_ssize_t size = self.sizes.label_size(i)
        try:
            array = np.asarray(answer).ravel()
        except ValueError:
            array = np.asarray(None)
        if array.dtype.kind not in "iub" and array.size or array.size != size:
            self.refuse(method, i, reprlib.repr(answer), f"a label of {size} integers")
        label = np.ascontiguousarray(array, dtype=np.int32)
        if self.n_states is not None and size and not (
                0 <= array.min() <= array.max() < self.n_states):
            self.refuse(method, i, reprlib.repr(answer), f"states 0 .. {self.n_states - 1}")
        if not np.array_equal(label, array):
            self.refuse(method, i, reprlib.repr(answer), "integers that fit 32 bits")
        return label

    cdef tuple entries(self, str method, Py_ssize_t i, parts):
        rows = {"node": self.sizes.nodes_of(i), "edge": self.sizes.edges_of(i)}
        starts = {"node": self.sizes.shared_size, "edge": self.sizes.edge_start(i)}
        blocks = {block.name: block for block in self.layout.blocks}
        if not isinstance(parts, dict):
            self.refuse(method, i, type(parts).__name__,
                        f"a dict of arrays by block name {sorted(blocks)}")
        indices, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for name, given in parts.items():
            if name not in blocks:
                self.refuse(method, i, f"the block {name!r}", f"blocks of {sorted(blocks)}")
            block = blocks[name]
            shape = block.shape if block.kind == "shared" else (rows[block.kind], *block.shape)
            index, value = self._nonzero(method, i, name, given, shape)
            start = starts.get(block.kind, self.layout.starts[name])
            indices.append(start + index // shape[-1] * block.stride + index % shape[-1])
            values.append(value)
        return np.concatenate(indices), np.concatenate(values)

    def _nonzero(self, str method, Py_ssize_t i, name, given, shape):
        # Flat positions and values of one block that are not zero.
        pair = isinstance(given, tuple) and len(given) == 2
        try:
            index = np.asarray(given[0] if pair else [])
            array = np.asarray(given[1] if pair else given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            self.refuse(method, i, f"block {name!r} that is not numeric ({error})", "numbers")
        if not pair:
            if array.shape != shape:
                self.refuse(method, i, f"block {name!r} of shape {array.shape}", shape)
            index = np.flatnonzero(array)
            value = array.ravel()[index]
        else:
            value = array
            index = index if index.size else index.astype(np.int64)
            if index.ndim != 1 or index.shape != value.shape or index.dtype.kind not in "iu" or (
                index.size and not 0 <= index.min() <= index.max() < int(np.prod(shape))
            ):
                self.refuse(method, i, f"block {name!r} as the pair {reprlib.repr(given)}",
                            f"equally long 1-D indices below {int(np.prod(shape))} and values")
        if not np.isfinite(value).all():
            self.refuse(method, i, f"block {name!r} with NaN or infinity", "finite numbers")
        return index.astype(np.int64), value

    cdef object dense(self, str method, Py_ssize_t i, parts):
        positions, values = self.entries(method, i, parts)
        mu = np.zeros(self.sizes.theta_size(i))
        np.add.at(mu, positions, values)
        return mu

    cdef object score(self, Py_ssize_t i, flat, label):
        index, value = self.entries("parts", i, self.ask("parts", i, label))
        return float(flat[index] @ value)


cdef Adapter adapt(Operator operator, space, PartLayout layout):
    # Bind an operator that calls methods of a space.
    cdef Adapter adapter = Adapter(space, layout)
    Operator.__init__(operator, layout)
    operator.n_states = adapter.n_states or 0
    return adapter


cdef object read_array(const double* x, Py_ssize_t size):
    copy = np.empty(size)
    cdef double[::1] view = copy
    if size:
        memcpy(&view[0], x, size * sizeof(double))
    copy.flags.writeable = False
    return copy


cdef int write_array(object array, double* out) except -1:
    cdef const double[::1] view = array
    if view.shape[0]:
        memcpy(out, &view[0], view.shape[0] * sizeof(double))
    return 0


cdef int copy_label(object label, int* out) except -1:
    cdef const int[::1] view = label
    if view.shape[0]:
        memcpy(out, &view[0], view.shape[0] * sizeof(int))
    return 0


cdef object label_array(Adapter adapter, Py_ssize_t i, const int* label):
    array = np.empty(adapter.sizes.label_size(i), dtype=np.int32)
    cdef int[::1] view = array
    if view.shape[0]:
        memcpy(&view[0], label, view.shape[0] * sizeof(int))
    return array


cdef class PythonOracle(Oracle):
    """An oracle that calls the space's ``argmax``, or its ``argmax_bounded``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)
        self.exact = not hasattr(space, "argmax_bounded")

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        with gil:
            flat = self.adapter.flat(i, theta)
            method = "argmax" if self.exact else "argmax_bounded"
            answer, upper = self.adapter.ask(method, i, self.adapter.named(i, flat)), -np.inf
            if not self.exact:
                answer, upper = self.adapter.pair(method, i, answer, "a pair (label, bound)")
            answer = self.adapter.label(method, i, answer)
            copy_label(answer, label)
            value[0] = self.adapter.score(i, flat, answer)
            bound[0] = max(upper, value[0])
        return 0


cdef class PythonParts(Parts):
    """Parts from the space's ``parts``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)
        self.max_entries = max(layout.max_theta, 1)
        self.indicator = bool(getattr(space, "indicator", False))

    cdef tuple vector(self, Py_ssize_t i, const int* label):
        parts = self.adapter.ask("parts", i, label_array(self.adapter, i, label))
        return self.adapter.entries("parts", i, parts)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        with gil:
            positions, values = self.vector(i, label)
            return _sparse(positions, values, index, value)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        with gil:
            away, away_values = self.vector(i, label)
            home, home_values = self.vector(i, truth)
            return _sparse(np.concatenate([home, away]),
                           np.concatenate([home_values, -away_values]), index, value)


cdef Py_ssize_t _sparse(object positions, object values, int* index, double* value) except -1:
    # Sums what is given twice, leaves zeros out.
    positions, inverse = np.unique(positions, return_inverse=True)
    totals = np.zeros(len(positions))
    np.add.at(totals, inverse, values)
    cdef const double[::1] total = totals
    cdef const long long[::1] position = positions.astype(np.longlong)
    cdef Py_ssize_t n = 0, j
    for j in range(total.shape[0]):
        if total[j] != 0:
            index[n] = <int>position[j]
            value[n] = total[j]
            n += 1
    return n


cdef class PythonLoss(Loss):
    """The loss that a space computes itself."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)
        self.decomposes = hasattr(space, "loss_costs")
        self.has_costs = hasattr(space, "costs")
        self.averaged = bool(getattr(space, "loss_averaged", False))

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        with gil:
            answer = self.adapter.ask("loss", i, label_array(self.adapter, i, truth),
                                   label_array(self.adapter, i, label))
            return self.adapter.number("loss", i, answer)

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        with gil:
            answer = self.adapter.ask("loss_costs", i, label_array(self.adapter, i, truth))
            return self.add("loss_costs", i, answer, scale, theta)

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        with gil:
            named = self.adapter.named(i, self.adapter.flat(i, nu))
            answer = self.adapter.ask("costs", i, named, bool(transposed))
            return self.add("costs", i, answer, scale, theta)

    cdef double add(self, str method, Py_ssize_t i, object answer, double scale,
                    double* theta) except? -1:
        """Add an answer (costs, const) to scores; return the constant."""
        cdef const double[::1] cost
        cdef const long long[::1] position
        cdef Py_ssize_t j
        parts, const = self.adapter.pair(method, i, answer, "a pair (costs, const)")
        positions, values = self.adapter.entries(method, i, parts)
        cost, position = values, positions.astype(np.longlong)
        for j in range(cost.shape[0]):
            theta[position[j]] += scale * cost[j]
        return scale * const


cdef class PythonKBest(KBest):
    """The space's ``kbest``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Py_ssize_t n = 0
        with gil:
            flat = self.adapter.flat(i, theta)
            answers = self.adapter.ask("kbest", i, self.adapter.named(i, flat), k)
            if not hasattr(answers, "__len__"):
                self.adapter.refuse("kbest", i, repr(answers), "a list of labels")
            for answer in answers[:k]:
                answer = self.adapter.label("kbest", i, answer)
                copy_label(answer, labels + n * <Py_ssize_t>len(answer))
                values[n] = self.adapter.score(i, flat, answer)
                n += 1
        return n


cdef class PythonAugmented(AugmentedOracle):
    """The space's ``argmax_augmented``; it knows the space's ``loss`` and no other."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)

    def knows(self, Loss loss not None):
        """Tell whether ``loss`` is the space's own ``loss``.

        Parameters
        ----------
        loss : Loss

        Returns
        -------
        bool
        """
        return isinstance(loss, PythonLoss) and (
            (<PythonLoss>loss).adapter.space is self.adapter.space)

    cdef int argmax(self, Py_ssize_t i, const double* theta, const int* truth, int* label,
                    double* value, double* loss, char* work) except -1 nogil:
        with gil:
            flat, true_label = self.adapter.flat(i, theta), label_array(self.adapter, i, truth)
            answer = self.adapter.ask("argmax_augmented", i, self.adapter.named(i, flat), true_label)
            answer = self.adapter.label("argmax_augmented", i, answer)
            copy_label(answer, label)
            loss[0] = self.adapter.number("loss", i, self.adapter.ask("loss", i, true_label, answer))
            value[0] = self.adapter.score(i, flat, answer) + loss[0]
        return 0


cdef class PythonRelaxation(Relaxation):
    """The space's ``relax``."""

    cdef Adapter adapter

    def __init__(self, space, PartLayout layout):
        self.adapter = adapt(self, space, layout)

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef int integral
        with gil:
            flat = self.adapter.flat(i, theta)
            answer = self.adapter.ask("relax", i, self.adapter.named(i, flat))
            integral = _vertex(self.adapter, "relax", i, flat, answer, mu, label, value)
            bound[0] = value[0]
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
            flat, flat_cost = self.adapter.flat(i, theta), self.adapter.flat(i, cost)
            pair = ConePair(cone.h0, cone.g0, cone.lam, cone.alpha, cone.beta, bool(cone.twin))
            answer = self.adapter.ask("argmax_constrained", i, self.adapter.named(i, flat),
                                   self.adapter.named(i, flat_cost), pair)
            if answer is None:
                return 0
            integral = _vertex(self.adapter, "argmax_constrained", i, flat + cone.lam * flat_cost,
                               answer, mu, label, value)
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
            flat, flat_cost = self.adapter.flat(i, theta), self.adapter.flat(i, cost)
            answers = self.adapter.ask("argmax_counts", i, self.adapter.named(i, flat),
                                    self.adapter.named(i, flat_cost), most)
            if not hasattr(answers, "__len__") or len(answers) != most + 1:
                self.adapter.refuse("argmax_counts", i, reprlib.repr(answers),
                                 f"a list of {most + 1} labels or None")
            for answer in answers:
                values[c] = -np.inf
                if answer is not None:
                    answer = self.adapter.label("argmax_counts", i, answer)
                    copy_label(answer, labels + c * size)
                    values[c] = self.adapter.score(i, flat, answer)
                c += 1
        return 0


cdef int _vertex(Adapter adapter, str method, Py_ssize_t i, object flat, object answer, double* mu,
                 int* label, double* value) except -1:
    # Write down an answer (mu, label or None); tell whether there is a label.
    try:
        parts, integral = answer
    except (TypeError, ValueError):
        adapter.refuse(method, i, reprlib.repr(answer), "a pair (mu, label or None)")
    dense = adapter.dense(method, i, parts)
    write_array(dense, mu)
    value[0] = float(dense[dense != 0] @ flat[dense != 0])
    if integral is None:
        return 0
    copy_label(adapter.label(method, i, integral), label)
    return 1


#: Powers of Python spaces: their name, the method that gives each, its operator.
POWERS = {
    "kbest": ("kbest", PythonKBest),
    "augmented": ("argmax_augmented", PythonAugmented),
    "relaxation": ("relax", PythonRelaxation),
    "cones": ("argmax_constrained", PythonCones),
    "counts": ("argmax_counts", PythonCounts),
}
