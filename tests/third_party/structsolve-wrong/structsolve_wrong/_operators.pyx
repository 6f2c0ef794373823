# cython: boundscheck=False, wraparound=False
"""Operators of single nodes, and searches, with a fault each."""

import time

from libc.math cimport INFINITY, NAN, exp, log

from structsolve.operators cimport Loss, Oracle, Parts, Projection
from structsolve.part_layout cimport PartLayout
from structsolve.search.base cimport Outcome, Search
from structsolve.search.plane cimport LabelPlane
from structsolve.search.psi cimport Psi
from structsolve.search.view cimport View

FAULTS = ("none", "value", "work", "scribble", "theta", "label", "shared", "stale", "padding",
          "entries", "exception", "state", "below")


cdef class WrongOracle(Oracle):
    """Right, except for its fault."""

    cdef Py_ssize_t K
    cdef int fault
    cdef Py_ssize_t shared

    def __init__(self, str fault, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.fault = layout.shapes["node"][0], FAULTS.index(fault)
        self.n_states = self.K
        self.work_bytes = 8

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t s, best = 0
        cdef double* wild = <double*>theta
        for s in range(self.K):
            if theta[s] > theta[best]:
                best = s
        if self.fault == 6:         # keeps what changes during a call in the object
            self.shared = best
            with gil:
                time.sleep(1e-4)    # long enough for another thread on a busy machine
            best = self.shared
        label[0] = <int>best
        value[0] = theta[best]
        if self.fault == 1:
            value[0] += 1
        elif self.fault == 2:
            work[self.work_bytes + 3] = 1
        elif self.fault == 3:
            work[-1] = 1
        elif self.fault == 4:
            wild[best] += 1
        elif self.fault == 5:
            label[1] = 0
        elif self.fault == 7 and (<double*>work)[0] == 0:   # believes that work holds zeros
            label[0] = <int>((best + 1) % self.K)
        elif self.fault == 10:
            with gil:
                raise RuntimeError("no label today")
        elif self.fault >= 11:      # no states
            label[0] = 1000000 if self.fault == 11 else -1000000
        bound[0] = value[0]
        return 0


cdef class WrongParts(Parts):
    """Right, except for its fault."""

    cdef Py_ssize_t K
    cdef int fault

    def __init__(self, str fault, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.fault = layout.shapes["node"][0], FAULTS.index(fault)
        self.n_states = self.K
        self.max_entries = 2

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        index[0] = label[0]
        value[0] = 1
        if self.fault == 8:         # the first position after the states
            index[1] = <int>self.K
            value[1] = 1
            return 2
        if self.fault == 9:
            index[2] = index[1] = label[0]
            value[2] = value[1] = 0
            return 3
        return 1


cdef class WrongSearch(Search):
    """One call of the oracle; right if settled is 1."""

    cdef int settled, point
    cdef double share, nan

    def __init__(self, int max_calls=50, double tol=1e-9, *, int settled=1, int point=0,
                 double share=0, bint nan=False):
        super().__init__(max_calls, tol)
        self.name = "wrong"
        self.settled, self.point, self.share, self.nan = settled, point, share, NAN if nan else 0

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        cdef bint known
        self.visit(plane, view, psi, 1.0, &known)
        out.lam = 1
        if self.settled:
            self.settle(view, psi, out)
            out.first += self.point
            out.share += self.share
            out.label_bound += self.nan
        return 0


cdef class WrongProjection(Projection):
    """The probabilities of the classes, wrong for example 1."""

    cdef Py_ssize_t K
    cdef bint nan, infinite, label, moved

    def __init__(self, str fault, PartLayout layout not None):
        super().__init__(layout)
        self.K = self.n_states = layout.shapes["node"][0]
        self.gibbs = self.exact = self.has_term = self.has_samples = self.has_derivative = True
        self.nan, self.infinite = fault == "marginals", fault == "partition"
        self.label, self.moved = fault == "draw", fault == "derivative"

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t s
        cdef double total = 0
        for s in range(self.K):
            marginals[s] = exp(theta[s])
            total += marginals[s]
        for s in range(self.K):
            marginals[s] /= total
        value[0] = bound[0] = log(total)
        if i == 1 and self.nan:
            marginals[0] = NAN
        if i == 1 and self.infinite:
            value[0] = bound[0] = INFINITY
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t s
        cdef double total = 0
        for s in range(self.K):
            if state[s] > 0:
                total -= state[s] * log(state[s])
        return total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t s
        cdef double total = 0
        for s in range(self.K):
            if a[s] != b[s]:
                total -= (b[s] - a[s]) * (log((1 - gamma) * a[s] + gamma * b[s]) + 1)
        return total

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Py_ssize_t k
        for k in range(n):
            labels[k] = 1000000 if i == 1 and self.label else 0
        return 0

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Py_ssize_t s
        for s in range(self.K):
            out[s] = NAN if i == 1 and self.moved else 0
        return 0

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        return 0


cdef class WrongLoss(Loss):
    """0 or 1, but for example 1."""

    cdef double wrong
    cdef bint of_costs

    def __init__(self, str fault, PartLayout layout not None):
        super().__init__(layout)
        self.decomposes = self.averaged = self.has_costs = True
        self.wrong = {"nan loss": NAN, "infinite loss": INFINITY}.get(fault, 1)
        self.of_costs = fault == "costs"

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        if truth[0] == label[0]:
            return 0
        return self.wrong if i == 1 else 1

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        theta[truth[0]] -= scale
        return scale

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        if i == 1 and self.of_costs:
            theta[0] = NAN
        return scale
