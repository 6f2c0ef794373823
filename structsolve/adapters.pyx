"""Structures written in plain Python, behind the native operators: slower, never different.

A space may give the methods below instead of compiled operators.  ``theta``, ``mu`` and costs are
dicts of arrays by block name, without padding: shared blocks have the block's shape, the node and
edge blocks one row per node or edge.  A label is an array of small integers.

=========================================  =====================================================
``argmax(examples, i, theta)``             the best label
``kbest(examples, i, theta, k)``           optional: the k best labels, best first
``parts(examples, i, label)``              ``mu(label)`` as a dict; blocks left out are zero
``loss(examples, i, label)``               ``L(label, truth)``
``loss_costs(examples, i)``                optional: ``(costs, const)``, the loss as costs of parts
``argmax_augmented(examples, i, theta)``   optional: the most violated label, loss included
``project(examples, i, theta, name)``      optional: ``(mu, value)`` of the projection ``name``
=========================================  =====================================================

``sizes(examples, i)`` gives the number of nodes and edges where they are not those of the offsets.
"""

import numpy as np

from libc.string cimport memcpy
from .operators cimport Loss, Oracle, Parts, Projection


cdef class _Face:
    """Sizes of examples, and flat theta to named views and back."""

    cdef public object space, examples, layout

    def __init__(self, space, examples):
        self.space, self.examples, self.layout = space, examples, space.layout

    def sizes(self, Py_ssize_t i):
        examples = self.examples
        edges = examples.edge_offsets
        n_edges = 0 if edges is None else int(edges[i + 1] - edges[i])
        return int(examples.offsets[i + 1] - examples.offsets[i]), n_edges

    cdef object flat(self, Py_ssize_t i, const double* theta):
        n_nodes, n_edges = self.sizes(i)
        cdef Py_ssize_t size = self.layout.theta_size(n_nodes, n_edges)
        copy = np.empty(size)
        cdef double[::1] view = copy
        if size:
            memcpy(&view[0], theta, size * sizeof(double))
        return copy

    cdef object named(self, Py_ssize_t i, const double* theta):
        n_nodes, n_edges = self.sizes(i)
        return self.layout.theta_views(self.flat(i, theta), n_nodes, n_edges)

    def unnamed(self, Py_ssize_t i, parts, str what):
        """Flat array of a dict of parts; unknown blocks and wrong shapes are refused."""
        n_nodes, n_edges = self.sizes(i)
        flat = np.zeros(self.layout.theta_size(n_nodes, n_edges))
        views = self.layout.theta_views(flat, n_nodes, n_edges)
        if not isinstance(parts, dict):
            raise TypeError(
                f"example {i}: {what} returned {type(parts).__name__}, expected a dict of arrays "
                f"by block name {sorted(views)}"
            )
        for name, array in parts.items():
            if name not in views:
                raise ValueError(
                    f"example {i}: {what} returned the block {name!r}; known: {sorted(views)}"
                )
            array = np.asarray(array, dtype=np.float64)
            if array.shape != views[name].shape:
                raise ValueError(
                    f"example {i}: {what} returned block {name!r} of shape {array.shape}, expected "
                    f"{views[name].shape}"
                )
            views[name][...] = array
        return flat

    def label_size(self, Py_ssize_t i):
        offsets = self.examples.label_offsets
        return int(offsets[i + 1] - offsets[i])


cdef int _write(object label, Py_ssize_t size, Py_ssize_t i, str what, int* out) except -1:
    array = np.ascontiguousarray(label, dtype=np.int32).ravel()
    if array.size != size:
        raise ValueError(
            f"example {i}: {what} returned a label of {array.size} entries, expected {size}"
        )
    cdef const int[::1] view = array
    if size:
        memcpy(out, &view[0], size * sizeof(int))
    return 0


cdef object _read(const int* label, Py_ssize_t size):
    array = np.empty(size, dtype=np.int32)
    cdef int[::1] view = array
    if size:
        memcpy(&view[0], label, size * sizeof(int))
    return array


def _named_error(error, i, structure):
    return type(error)(f"example {i}: {structure}: {error}")


cdef class PythonOracle(Oracle):
    """An oracle that calls the space's ``argmax``."""

    cdef _Face face

    def __init__(self, space, examples):
        self.face = _Face(space, examples)
        self.has_kbest = hasattr(space, "kbest")
        self.has_augmented = hasattr(space, "argmax_augmented") and examples.labels is not None

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        with gil:
            flat = self.face.flat(i, theta)
            space = self.face.space
            n_nodes, n_edges = self.face.sizes(i)
            views = self.face.layout.theta_views(flat, n_nodes, n_edges)
            answer = _call(space.argmax, "argmax", space, i, self.face.examples, i, views)
            _write(answer, self.face.label_size(i), i, "argmax", label)
            value[0] = _score(self.face, i, flat, answer)
        return 0

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Py_ssize_t j, size, found
        with gil:
            flat = self.face.flat(i, theta)
            space = self.face.space
            n_nodes, n_edges = self.face.sizes(i)
            views = self.face.layout.theta_views(flat, n_nodes, n_edges)
            answers = list(_call(space.kbest, "kbest", space, i, self.face.examples, i, views, k))
            size = self.face.label_size(i)
            found = min(len(answers), k)
            for j in range(found):
                _write(answers[j], size, i, "kbest", labels + j * size)
                values[j] = _score(self.face, i, flat, answers[j])
        return found

    cdef int argmax_augmented(self, Py_ssize_t i, const double* theta, int* label, double* value,
                              double* loss, char* work) except -1 nogil:
        with gil:
            flat = self.face.flat(i, theta)
            space = self.face.space
            n_nodes, n_edges = self.face.sizes(i)
            views = self.face.layout.theta_views(flat, n_nodes, n_edges)
            answer = _call(space.argmax_augmented, "argmax_augmented", space, i,
                           self.face.examples, i, views)
            _write(answer, self.face.label_size(i), i, "argmax_augmented", label)
            loss[0] = _call(space.loss, "loss", space, i, self.face.examples, i,
                            np.asarray(answer))
            value[0] = _score(self.face, i, flat, answer) + loss[0]
        return 0


def _call(method, str name, space, Py_ssize_t i, *arguments):
    """Call a plugin's Python method; its exceptions name the example and the structure."""
    try:
        return method(*arguments)
    except Exception as error:
        raise ValueError(
            f"example {i}: {name}() of structure {space.structure.name!r} raised "
            f"{type(error).__name__}: {error}"
        ) from error


def _score(_Face face, Py_ssize_t i, flat, label):
    parts = _call(face.space.parts, "parts", face.space, i, face.examples, i, np.asarray(label))
    return float(flat @ face.unnamed(i, parts, "parts"))


cdef class PythonParts(Parts):
    """Parts from the space's ``parts``."""

    cdef _Face face

    def __init__(self, space, examples):
        self.face = _Face(space, examples)
        layout = space.layout
        largest = max((layout.theta_size(*self.face.sizes(i)) for i in range(examples.n)),
                      default=layout.shared_size)
        self.max_entries = max(largest, 1)

    cdef object vector(self, Py_ssize_t i, const int* label):
        space = self.face.space
        label_array = _read(label, self.face.label_size(i))
        parts = _call(space.parts, "parts", space, i, self.face.examples, i, label_array)
        return self.face.unnamed(i, parts, "parts")

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        with gil:
            return _sparse(self.vector(i, label), index, value)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        with gil:
            return _sparse(self.vector(i, truth) - self.vector(i, label), index, value)


cdef Py_ssize_t _sparse(object flat, int* index, double* value) except -1:
    cdef Py_ssize_t n = 0, j
    cdef const double[::1] view = flat
    for j in range(view.shape[0]):
        if view[j] != 0:
            index[n] = <int>j
            value[n] = view[j]
            n += 1
    return n


cdef class PythonLoss(Loss):
    """The loss that a space computes itself."""

    cdef _Face face

    def __init__(self, space, examples):
        self.face = _Face(space, examples)
        self.decomposes = hasattr(space, "loss_costs")
        self.averaged = bool(getattr(space, "loss_averaged", False))

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        with gil:
            space = self.face.space
            array = _read(label, self.face.label_size(i))
            return _call(space.loss, "loss", space, i, self.face.examples, i, array)

    cdef double augment(self, Py_ssize_t i, double scale, double* theta) except? -1 nogil:
        cdef const double[::1] costs
        cdef Py_ssize_t j
        with gil:
            space = self.face.space
            parts, const = _call(space.loss_costs, "loss_costs", space, i, self.face.examples, i)
            costs = self.face.unnamed(i, parts, "loss_costs")
            for j in range(costs.shape[0]):
                theta[j] += scale * costs[j]
            return scale * const


cdef class PythonProjection(Projection):
    """A projection from the space's ``project``."""

    cdef _Face face
    cdef object name

    def __init__(self, space, examples, str name):
        self.face = _Face(space, examples)
        self.name = name

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     char* work) except -1 nogil:
        cdef const double[::1] mu
        with gil:
            space = self.face.space
            parts, total = _call(space.project, "project", space, i, self.face.examples, i,
                                 self.face.named(i, theta), self.name)
            mu = self.face.unnamed(i, parts, "project")
            value[0] = total
            if mu.shape[0]:
                memcpy(marginals, &mu[0], mu.shape[0] * sizeof(double))
        return 0
