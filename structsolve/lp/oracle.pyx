# build: glue
# cython: boundscheck=True, wraparound=True
"""The oracle of any structure with a polytope: a linear program per call, by any backend."""

import numpy as np

from libc.string cimport memcpy
from ..operators cimport Cone, ConeOracle, Oracle, Relaxation
from ..part_layout cimport PartLayout
from .cones cimport as_array, program_in_cone, write_label


def empty(decoder, str structure, Py_ssize_t i):
    """Return the error message for an example whose program is infeasible.

    Parameters
    ----------
    decoder : LinearDecoder
    structure : str
    i : int

    Returns
    -------
    str
    """
    if decoder.backend.constraints is not None:
        return f"example {i}: no label satisfies the constraints of {decoder.backend.label!r}"
    return (
        f"example {i}: the polytope of structure {structure!r} is empty, says "
        f"{decoder.backend.label!r}; check its rows, and that not every label is forbidden"
    )


cdef class ProgramOracle(Oracle):
    """Labels by linear programs over the polytope that the structure declares.

    Parameters
    ----------
    structure : str
        For messages.
    decoder : LinearDecoder
    layout : PartLayout

    Attributes
    ----------
    decoder : LinearDecoder
    batched : bool
        Whether decoding many examples at once is faster
        (:func:`structsolve.estimators.decode.decode_in_batches`).
    """

    def __init__(self, str structure, decoder, PartLayout layout not None):
        super().__init__(layout)
        self.structure, self.decoder = structure, decoder
        self.batched = decoder.backend.batch > 0
        whole = decoder.backend.integer or decoder.polytopes.exact
        self.exact = bool(whole and decoder.backend.accurate)

    cdef object flat(self, Py_ssize_t i, const double* theta):
        return as_array(theta, self.layout.theta_size(i))

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        with gil:
            scores = self.flat(i, theta)
            answer = self.decoder.decode(i, scores)
            if answer is None:
                if not np.isneginf(scores).any():
                    raise ValueError(empty(self.decoder, self.structure, i))
                # Masks have left no label; prediction reports it.
                value[0] = bound[0] = -np.inf
                return 0
            write_label(i, answer[0], self.layout.label_size(i), label)
            value[0], bound[0] = answer[1], answer[1] if self.exact else answer[2]
        return 0


cdef class ProgramRelaxation(Relaxation):
    """Marginals by linear programs, which may be fractional.

    Parameters
    ----------
    structure, decoder, layout
        See :class:`ProgramOracle`.
    """

    cdef readonly object decoder
    cdef str structure

    def __init__(self, str structure, decoder, PartLayout layout not None):
        super().__init__(layout)
        self.structure, self.decoder = structure, decoder

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef const double[::1] view
        with gil:
            answer = self.decoder.relax(i, as_array(theta, self.layout.theta_size(i)))
            if answer is None:
                raise ValueError(empty(self.decoder, self.structure, i))
            view = answer.mu
            memcpy(mu, &view[0], view.shape[0] * sizeof(double))
            value[0], bound[0] = answer.value, max(answer.value, answer.bound)
            if answer.label is None:
                return 0
            write_label(i, answer.label, self.layout.label_size(i), label)
        return 1


cdef class ProgramCones(ConeOracle):
    """The best label in a cone, by a program with two more rows.

    Parameters
    ----------
    decoder : LinearDecoder
    layout : PartLayout
    """

    cdef readonly object decoder

    def __init__(self, decoder, PartLayout layout not None):
        super().__init__(layout)
        self.decoder = decoder

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        cdef Py_ssize_t size = self.layout.theta_size(i)
        with gil:
            return program_in_cone(self.decoder, i, as_array(theta, size), as_array(cost, size),
                                   cone, self.layout.label_size(i), mu, label, value)
