"""The surrogate interface: one example's scores in, one cut out."""


cdef class Surrogate(Operator):
    """Turns the part scores of example i into a cut ``(p, b)`` and an upper bound.

    ``H_i(w) >= b - <theta_i(w), p>`` holds for every w, with equality at the scores given when
    ``exact``.  A surrogate never sees weights or features; a solver never sees labels.
    """

    cdef int cut(self, Py_ssize_t i, const double* theta, Cut* cut, char* work) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement cut()")

    cdef int simplex(self, Py_ssize_t i, double* b, int* truth) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement simplex()")
