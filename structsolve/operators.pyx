# build: glue
"""Base classes of the native operators of structures, which the loops call."""

from libc.string cimport memset
from structsolve.part_layout cimport PartLayout

ABI: str = structsolve_abi_marker.decode().split("=")[1].rstrip(";")


cdef int _missing(object operator, str method) except -1 with gil:
    raise NotImplementedError(
        f"{type(operator).__module__}.{type(operator).__qualname__} does not implement {method}()"
    )


cdef class Operator:
    """Base of all operators: the examples they are bound to, and the size of scratch memory.

    Parameters
    ----------
    layout : PartLayout
        Sizes of the examples, and how the structure packed them.

    Attributes
    ----------
    layout : PartLayout
    work_bytes : int
        Bytes of scratch memory that one call needs; the caller allocates it once per thread.
    n_states : int
        Integers of a label are less than this; 0 if there is no limit, or it is unknown.
    """

    def __init__(self, PartLayout layout not None):
        self.layout = layout

    cdef void _slot0(self) noexcept nogil: pass
    cdef void _slot1(self) noexcept nogil: pass
    cdef void _slot2(self) noexcept nogil: pass
    cdef void _slot3(self) noexcept nogil: pass
    cdef void _slot4(self) noexcept nogil: pass
    cdef void _slot5(self) noexcept nogil: pass
    cdef void _slot6(self) noexcept nogil: pass
    cdef void _slot7(self) noexcept nogil: pass


cdef class Oracle(Operator):
    """Maximises ``<theta, mu(y)>`` over the labels of one example.

    Compiled plugins subclass it (``from structsolve.operators cimport Oracle``) and override
    ``argmax``, which gives the label, its value, and an upper bound of all scores.  The
    contract is in ``operators.pxd``.

    Parameters
    ----------
    layout : PartLayout

    Attributes
    ----------
    exact : bool
        ``argmax`` finds the maximum: its bound equals the value.
    """

    def __cinit__(self, *args, **kwargs):
        self.exact = True

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        return _missing(self, "argmax")


cdef class KBest(Operator):
    """The k best labels of one example: the power ``"kbest"``.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        return _missing(self, "kbest")

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        """Return the bytes of scratch memory that ``k`` labels take.

        Parameters
        ----------
        k : int

        Returns
        -------
        int
        """
        return self.work_bytes


cdef class MaxMarginals(Operator):
    """Best values with one node held fixed: the power ``"max-marginals"``.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        return _missing(self, "max_marginals")


cdef class AugmentedOracle(Operator):
    """The most violated label, by an oracle that includes the loss: the power ``"augmented"``.

    Parameters
    ----------
    layout : PartLayout
    """

    def knows(self, Loss loss not None):
        """Return whether ``argmax`` includes ``loss``; it is not called for other losses.

        Subclasses of structures with several losses override it.

        Parameters
        ----------
        loss : Loss
            The task loss, bound to the same examples.

        Returns
        -------
        bool
            True by default.
        """
        return True

    cdef int argmax(self, Py_ssize_t i, const double* theta, const int* truth, int* label,
                    double* value, double* loss, char* work) except -1 nogil:
        return _missing(self, "argmax")


cdef class Relaxation(Operator):
    """Maximiser over a polytope around the labels: the power ``"relaxation"``.

    Parameters
    ----------
    layout : PartLayout
    """

    def allow(self, double gap):
        """Allow answers to end once the bound exceeds the value by at most this.

        Training calls it before a pass, which needs no accuracy beyond its own gap.  The base class
        ignores it; subclasses whose accuracy costs time override it.

        Parameters
        ----------
        gap : float
            In units of the scores; 0 for full accuracy.
        """

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        return _missing(self, "relax")


cdef class ConeOracle(Operator):
    """The best label in a cone of the label plane: the power ``"cones"``.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil:
        return _missing(self, "argmax_in_cone")


cdef class CountOracle(Operator):
    """The best label for each value of an integer cost: the power ``"counts"``.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        return _missing(self, "argmax_counts")

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t most) except -1:
        """Return the bytes of scratch memory that counts up to ``most`` take.

        Parameters
        ----------
        most : int

        Returns
        -------
        int
        """
        return self.work_bytes


cdef class Parts(Operator):
    """Encodes labels as sparse indicator vectors ``mu(y)`` of their parts.

    Parameters
    ----------
    layout : PartLayout

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
        # For structures that only encode; equal parts are not cancelled.
        cdef Py_ssize_t first = self.encode(i, truth, index, value)
        cdef Py_ssize_t second = self.encode(i, label, index + first, value + first), j
        for j in range(first, first + second):
            value[j] = -value[j]
        return first + second


cdef class Loss(Operator):
    """``L(y, truth)``: the cost of predicting y if another label is true.

    Parameters
    ----------
    layout : PartLayout

    Attributes
    ----------
    decomposes : bool
        ``L(y, truth) = <c, mu(y)> + const``: it can be added to the part scores.
    zero_one : bool
        1 for every label but the truth.
    averaged : bool
        A mean or 0/1 for the whole example, not a sum over its parts.
    takes_unseen : bool
        An integer of a truth may be ``n_states``: a label unseen in training.
    has_costs : bool
        ``L(y, y') = <mu(y), A mu(y')> + const`` for any prediction y and truth y', and ``costs``
        applies A.
    sizes : ndarray of float64 of shape (n,), optional
        Weight of each example in scores; by default the entries of its label, or 1 if the loss is
        ``averaged``.
    """

    def __str__(self):
        return type(self).__name__

    def check_truths(self, labels):
        """Refuse true labels without a value of this loss; called once, before any other method.

        Parameters
        ----------
        labels : ndarray of int32
            Encoded labels of all examples, concatenated.

        Raises
        ------
        ValueError
            The message names the example.
        """

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        _missing(self, "value")
        return -1

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        _missing(self, "augment")
        return -1

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        _missing(self, "costs")
        return -1


cdef class Projection(Operator):
    """Maximises ``G(mu) + <theta, mu>`` over the marginal polytope, for a concave G.

    Compiled plugins override ``project``; everything else is optional, and declared by flags.  The
    contract is in ``operators.pxd``.

    Parameters
    ----------
    layout : PartLayout

    Attributes
    ----------
    gibbs : bool
        G is the entropy of the distribution of labels: marginals are exact expectations, and the
        value is the log-partition.  If ``exact`` is False, G is a bound of that entropy over a
        relaxation of the polytope: marginals are relaxed, and the bound exceeds the log-partition.
    exact : bool
        ``project`` finds the maximum: its bound equals the value.
    has_state : bool
        G is a function of more than the marginals: it has ``state_size``, ``project_state``,
        ``state_of`` and ``pool``.
    has_term : bool
        It has ``term`` and ``slope``, G and its derivative along a segment.
    has_samples : bool
        It has ``sample``.
    has_derivative : bool
        It has ``derivative``, the marginals' Jacobian times a direction.
    """

    def __cinit__(self, *args, **kwargs):
        self.exact = True

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        return _missing(self, "project")

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return 0 if self.has_state else self.layout.theta_size(i)

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        if self.has_state:
            return _missing(self, "project_state")
        return self.project(i, theta, state, value, bound, work)

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

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        return _missing(self, "derivative")

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes of scratch memory that ``derivative`` takes.

        Returns
        -------
        int
        """
        return self.work_bytes


cdef class IntegralRelaxation(Relaxation):
    """The relaxation over the hull of the ``mu(y)`` itself: the answer is the oracle's label.

    A space gives ``partial(IntegralRelaxation, self.make_oracle(), self.make_parts())``.

    Parameters
    ----------
    make_oracle, make_parts : callable
        Bind an exact oracle, and the parts, to a layout.
    layout : PartLayout
    """

    cdef Oracle oracle
    cdef Parts parts
    cdef Py_ssize_t oracle_bytes

    def __init__(self, make_oracle, make_parts, PartLayout layout not None):
        super().__init__(layout)
        self.oracle, self.parts = make_oracle(layout), make_parts(layout)
        self.n_states = self.oracle.n_states
        # The entries of mu follow the oracle's memory.
        self.oracle_bytes = (self.oracle.work_bytes + 63) // 64 * 64
        self.work_bytes = self.oracle_bytes + 12 * self.parts.max_entries

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef double* entry = <double*>(work + self.oracle_bytes)
        cdef int* index = <int*>(entry + self.parts.max_entries)
        cdef Py_ssize_t k
        self.oracle.argmax(i, theta, label, value, bound, work)
        memset(mu, 0, self.layout.theta_size(i) * sizeof(double))
        for k in range(self.parts.encode(i, label, index, entry)):
            mu[index[k]] += entry[k]
        return 1
