# cython: boundscheck=True, wraparound=True
"""The oracle of any structure with a polytope: a linear program per call, by any backend."""

import numpy as np

from libc.string cimport memcpy
from structsolve.operators cimport Cone, Oracle
from structsolve.potentials.linear cimport LinearPotentials
from .cones cimport as_array, program_in_cone


cdef class ProgramOracle(Oracle):
    """Labels and marginals by linear programs over the polytope that the structure declares.

    Parameters
    ----------
    space, examples : Space, Examples
    decoder : LinearDecoder

    Attributes
    ----------
    decoder : LinearDecoder
    batched : bool
        Examples are decoded faster many at once (:func:`decode_in_batches`).
    """

    def __init__(self, space, examples, decoder):
        self.space, self.examples, self.decoder = space, examples, decoder
        integer = decoder.backend.integer
        self.batched = decoder.backend.batch > 0
        self.exact = bool(integer or decoder.polytopes.exact)
        self.has_relaxed = self.has_constrained = not integer

    def limits(self, Py_ssize_t i):
        """Sizes of example i, for the checks of :mod:`structsolve.structure.calls`."""
        examples = self.examples
        if not 0 <= i < examples.n:
            raise ValueError(f"example {i} of {examples.n}: no such example")
        size = int(examples.label_offsets[i + 1] - examples.label_offsets[i])
        return self.theta_size(i), size, None

    cdef Py_ssize_t theta_size(self, Py_ssize_t i) except -1:
        offsets, edges = self.examples.offsets, self.examples.edge_offsets
        n_edges = 0 if edges is None else int(edges[i + 1] - edges[i])
        return self.space.layout.theta_size(int(offsets[i + 1] - offsets[i]), n_edges)

    cdef object flat(self, Py_ssize_t i, const double* theta):
        return as_array(theta, self.theta_size(i))

    cdef str empty(self, Py_ssize_t i):
        return (
            f"example {i}: the polytope of structure {self.space.structure.name!r} is empty, says "
            f"{self.decoder.backend.name!r}; check its rows, and that not every label is forbidden"
        )

    cdef int write(self, Py_ssize_t i, object found, int* label) except -1:
        offsets = self.examples.label_offsets
        cdef Py_ssize_t size = int(offsets[i + 1] - offsets[i])
        if found.shape != (size,):
            raise ValueError(
                f"example {i}: decode() of the polytope of structure {self.space.structure.name!r} "
                f"returned an array of shape {found.shape}, expected a label of {size} integers"
            )
        cdef const int[::1] view = found
        if size:
            memcpy(label, &view[0], size * sizeof(int))
        return 0

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef double bound
        return self.argmax_bounded(i, theta, label, value, &bound, work)

    cdef int argmax_bounded(self, Py_ssize_t i, const double* theta, int* label, double* value,
                            double* bound, char* work) except -1 nogil:
        with gil:
            scores = self.flat(i, theta)
            found = self.decoder.decode(i, scores)
            if found is None:
                if not np.isneginf(scores).any():
                    raise ValueError(self.empty(i))
                # What a masked example has when nothing is left; prediction says so.
                value[0] = bound[0] = -np.inf
                return 0
            self.write(i, found[0], label)
            value[0], bound[0] = found[1], found[1] if self.exact else found[2]
        return 0

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        with gil:
            found = self.decoder.relax(i, self.flat(i, theta))
            if found is None:
                raise ValueError(self.empty(i))
            return self.point(i, found, mu, label, value)

    cdef int point(self, Py_ssize_t i, object found, double* mu, int* label,
                   double* value) except -1:
        cdef const double[::1] view = found.mu
        memcpy(mu, &view[0], view.shape[0] * sizeof(double))
        value[0] = found.value
        if found.label is None:
            return 0
        self.write(i, found.label, label)
        return 1

    cdef int argmax_constrained(self, Py_ssize_t i, const double* theta, const double* cost,
                                const Cone* cone, double* mu, int* label, double* value,
                                char* work) except -1 nogil:
        with gil:
            offsets = self.examples.label_offsets
            return program_in_cone(self.decoder, i, self.flat(i, theta), self.flat(i, cost), cone,
                                   int(offsets[i + 1] - offsets[i]), mu, label, value)
