# build: glue
# cython: boundscheck=True, wraparound=True
"""Native operator for projections in plain Python.

A space that defines ``project`` may define more methods, with the conventions of
:mod:`structsolve.structure.python_operators`.  ``name`` is the projection's name.  A *state* is a
dict of arrays by block name, like marginals.  The states of a space with ``state_of`` are flat
arrays, linear in the distribution of labels.

=================================================  ==================================================
``project(examples, i, theta, name)``              ``(mu, value)``, or ``(mu, value, bound)`` where
                                                   the maximum may be missed: the space then says
                                                   ``exact_projections = False``; None declines:
                                                   there is none of this example
``draw(examples, i, theta, uniforms)``             labels drawn from ``p(y) ~ exp <theta, mu(y)>``,
                                                   one per row of ``uniforms``
``term(examples, i, state, name)``                 G at a state
``slope(examples, i, a, b, gamma, name)``          its derivative at ``(1 - gamma) a + gamma b``
                                                   towards ``b``; needed with ``term``
``state_of(examples, i, label, name)``             the state of a label
``project_state(examples, i, theta, name)``        ``(state, value)``, or with the bound
``pool(examples, i, state, name)``                 the marginals of a state
``derivative(examples, i, theta, direction, ...)`` with ``name`` last: what the marginals gain along
                                                   ``direction``, which has the form of theta
=================================================  ==================================================

"entropy" means the entropy of the distribution of labels, unless the space sets ``gibbs = False``.
"""

import reprlib

import numpy as np

from libc.string cimport memcpy
from ..operators cimport Projection
from ..part_layout cimport PartLayout
from .adapter cimport Adapter, adapt, read_array


cdef class PythonProjection(Projection):
    """A projection from the space's ``project`` and related methods.

    Parameters
    ----------
    space : Space
    name : str
        Of the projection, such as "entropy".
    layout : PartLayout
    """

    cdef Adapter adapter
    cdef str name
    cdef object own_sizes
    cdef const long long* size

    def __cinit__(self, space, *args):
        self.exact = getattr(space, "exact_projections", True)

    def __init__(self, space, str name, PartLayout layout):
        cdef const long long[::1] view
        self.adapter = adapt(self, space, layout)
        self.name = name
        self.gibbs = name == "entropy" and getattr(space, "gibbs", True)
        self.has_state = hasattr(space, "state_of")
        self.has_term = hasattr(space, "term") and hasattr(space, "slope")
        self.has_samples = name == "entropy" and hasattr(space, "draw")
        self.has_derivative = hasattr(space, "derivative")
        if self.has_state:
            sizes = [self._own_size(i) for i in range(layout.n)]
        else:
            sizes = [layout.theta_size(i) for i in range(layout.n)]
        self.own_sizes = view = np.array([*sizes, 0], dtype=np.longlong)
        self.size = &view[0]

    def _own_size(self, i):
        # Doubles in a state of example i, from a label's state.
        label = np.zeros(self.layout.label_size(i), dtype=np.int32)
        if self.adapter.examples.labels is not None:
            label = np.array(self.adapter.examples.label(i), dtype=np.int32)
        return np.size(self.adapter.ask("state_of", i, (label, self.name)))

    cdef tuple solution(self, str method, Py_ssize_t i, const double* theta):
        # (marginals or state, value, bound)
        named = self.adapter.named(i, self.adapter.flat(i, theta))
        answer = self.adapter.ask(method, i, (named, self.name))
        if answer is None:
            raise ValueError(
                f"example {i}: {self.adapter.of} has no projection {self.name!r} of this example: "
                f"{method}() returned None"
            )
        expected = "a pair (marginals, value)" if self.exact else "(marginals, value, bound)"
        if not isinstance(answer, (tuple, list)) or len(answer) != (2 if self.exact else 3):
            self.adapter.refuse(method, i, reprlib.repr(answer), expected)
        value = self.adapter.number(method, i, answer[1])
        bound = value if self.exact else self.adapter.number(method, i, answer[2])
        return answer[0], value, max(value, bound)

    cdef int write_state(self, str method, Py_ssize_t i, answer, double* out) except -1:
        # A checked state of the space.
        cdef const double[::1] state
        try:
            array = np.ascontiguousarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            self.adapter.refuse(method, i, reprlib.repr(answer), "an array of numbers")
        if array.shape != (self.own_sizes[i],) or not np.isfinite(array).all():
            self.adapter.refuse(method, i, f"a state of shape {array.shape}",
                                f"{self.own_sizes[i]} finite numbers")
        state = array
        if array.size:
            memcpy(out, &state[0], array.nbytes)
        return 0

    cdef object given(self, Py_ssize_t i, const double* state):
        flat = read_array(state, self.state_size(i))
        return flat if self.has_state else self.adapter.named(i, flat)

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        with gil:
            parts, value[0], bound[0] = self.solution("project", i, theta)
            self.adapter.dense("project", i, parts, marginals)
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return <Py_ssize_t>self.size[i]

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        if not self.has_state:
            return self.project(i, theta, state, value, bound, work)
        with gil:
            answer, value[0], bound[0] = self.solution("project_state", i, theta)
            self.write_state("project_state", i, answer, state)
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        with gil:
            encoded = self.adapter.label_array(i, label)
            answer = self.adapter.ask("state_of", i, (encoded, self.name))
            self.write_state("state_of", i, answer, state)
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        with gil:
            parts = self.adapter.ask("pool", i, (self.given(i, state), self.name))
            self.adapter.dense("pool", i, parts, marginals)
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        with gil:
            answer = self.adapter.ask("term", i, (self.given(i, state), self.name))
            return self.adapter.number("term", i, answer)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef double value
        with gil:
            first, second = self.given(i, a), self.given(i, b)
            answer = self.adapter.ask("slope", i, (first, second, gamma, self.name))
            try:
                value = float(answer)
            except (TypeError, ValueError):
                self.adapter.refuse("slope", i, reprlib.repr(answer), "a number")
            if value != value:
                self.adapter.refuse("slope", i, value, "a number, infinite at gamma 0 and 1 alone")
            return value

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Py_ssize_t j, size
        with gil:
            size = self.layout.label_size(i)
            numbers = read_array(uniforms, n * size).reshape(n, size)
            named = self.adapter.named(i, self.adapter.flat(i, theta))
            answers = self.adapter.ask("draw", i, (named, numbers))
            if not hasattr(answers, "__len__") or len(answers) != n:
                self.adapter.refuse("draw", i, reprlib.repr(answers), f"{n} labels")
            for j, answer in enumerate(answers):
                self.adapter.read_label("draw", i, answer, labels + j * size)
        return 0

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        with gil:
            named = self.adapter.named(i, self.adapter.flat(i, theta))
            along = self.adapter.named(i, self.adapter.flat(i, direction))
            parts = self.adapter.ask("derivative", i, (named, along, self.name))
            self.adapter.dense("derivative", i, parts, out)
        return 0
