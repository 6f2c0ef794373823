"""Base classes of the native operators: what a structure declares, as the loops call it."""

ABI = structsolve_abi_marker.decode().split("=")[1].rstrip(";")


cdef int _missing(object operator, str method) except -1 with gil:
    raise NotImplementedError(
        f"{type(operator).__module__}.{type(operator).__qualname__} does not implement {method}()"
    )


cdef class Operator:
    """What oracles, parts, losses and projections share: the size of their scratch memory.

    Attributes
    ----------
    work_bytes : int
        Bytes of scratch memory that one call needs; the caller allocates it once per thread.
    """


cdef class Oracle(Operator):
    """Maximises ``<theta, mu(y)>`` over the labels of one example.

    Compiled plugins subclass it (``from structsolve.operators cimport Oracle``) and override
    ``argmax``; all else is an optional power, announced by its ``has_...`` flag.  The contract is
    in ``operators.pxd``.

    Attributes
    ----------
    exact : bool
        ``argmax`` finds the maximum.  Where it may not, ``argmax_bounded`` must be there too.
    has_kbest, has_max_marginals, has_augmented, has_relaxed, has_constrained, has_counts : bool
        Is there ``kbest``, ``max_marginals``, ``argmax_augmented``, ``relax``,
        ``argmax_constrained``, ``argmax_counts``?
    """

    def __cinit__(self, *args, **kwargs):
        self.exact = True

    cdef int argmax_bounded(self, Py_ssize_t i, const double* theta, int* label, double* value,
                            double* bound, char* work) except -1 nogil:
        if not self.exact:
            return _missing(self, "argmax_bounded")
        self.argmax(i, theta, label, value, work)
        bound[0] = value[0]
        return 0

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        return _missing(self, "relax")

    cdef int argmax_constrained(self, Py_ssize_t i, const double* theta, const double* cost,
                                const Cone* cone, double* mu, int* label, double* value,
                                char* work) except -1 nogil:
        return _missing(self, "argmax_constrained")

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        return _missing(self, "argmax_counts")

    cpdef Py_ssize_t counts_bytes(self, Py_ssize_t most) except -1:
        return self.work_bytes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        return _missing(self, "argmax")

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        return _missing(self, "kbest")

    cpdef Py_ssize_t kbest_bytes(self, Py_ssize_t k) except -1:
        return self.work_bytes

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        return _missing(self, "max_marginals")

    cdef int argmax_augmented(self, Py_ssize_t i, const double* theta, int* label, double* value,
                              double* loss, char* work) except -1 nogil:
        return _missing(self, "argmax_augmented")


cdef class Parts(Operator):
    """Encodes labels as sparse indicator vectors ``mu(y)`` of their parts.

    Attributes
    ----------
    max_entries : int
        Largest number of entries that ``difference`` or ``encode`` can write.
    indicator : bool
        A label is one number y and ``mu(y) = e_y``: solvers may use steps on the simplex.
    """

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        return _missing(self, "encode")

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        # The plain way for structures that only encode; it cancels nothing.
        cdef Py_ssize_t first = self.encode(i, truth, index, value)
        cdef Py_ssize_t second = self.encode(i, label, index + first, value + first), j
        for j in range(first, first + second):
            value[j] = -value[j]
        return first + second


cdef class Loss(Operator):
    """``L(y, y_i)`` against the true labels of the examples it is bound to.

    Attributes
    ----------
    decomposes : bool
        ``L(y, y_i) = <c_i, mu(y)> + const_i``: it can be added to the part scores.
    zero_one : bool
        It is 1 for every label but the truth.
    averaged : bool
        It is a mean or a verdict for the whole example, not a sum over its parts.
    has_costs : bool
        ``L(y, y') = <mu(y), A mu(y')> + const`` for any prediction y and truth y', and ``costs``
        applies A.
    """

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        _missing(self, "costs")
        return -1

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        _missing(self, "value")
        return -1

    cdef double augment(self, Py_ssize_t i, double scale, double* theta) except? -1 nogil:
        _missing(self, "augment")
        return -1


cdef class Projection(Operator):
    """Maximises ``G(mu) + <theta, mu>`` over the marginal polytope, for a concave G.

    Compiled plugins override ``project``; all else is optional, announced by a flag.  The contract
    is in ``operators.pxd``.

    Attributes
    ----------
    gibbs : bool
        G is the entropy of the distribution of labels: marginals are exact expectations, and the
        value is the log-partition.
    exact : bool
        ``project`` finds the maximum.  Where it may not, ``project_bounded`` must be there too.
    has_state : bool
        G is a function of more than the marginals: ``state_size``, ``project_state``, ``state_of``
        and ``pool`` are there.
    has_term : bool
        Are there ``term`` and ``slope``, G and its derivative along a segment?
    has_samples : bool
        Is there ``sample``?
    """

    def __cinit__(self, *args, **kwargs):
        self.exact = True

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     char* work) except -1 nogil:
        return _missing(self, "project")

    cdef int project_bounded(self, Py_ssize_t i, const double* theta, double* marginals,
                             double* value, double* bound, char* work) except -1 nogil:
        if not self.exact:
            return _missing(self, "project_bounded")
        self.project(i, theta, marginals, value, work)
        bound[0] = value[0]
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return 0

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        if self.has_state:
            return _missing(self, "project_state")
        return self.project_bounded(i, theta, state, value, bound, work)

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        return _missing(self, "state_of")

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        return _missing(self, "pool")

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        _missing(self, "term")
        return -1

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        _missing(self, "slope")
        return -1

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        return _missing(self, "sample")
