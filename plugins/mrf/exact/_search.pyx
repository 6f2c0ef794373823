"""Exact search for the best labeling: roof duality and TRW-S first, then best-first search."""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from structsolve.plugins.mrf.exact._best_first cimport (
    Search, advance, free_search, lowest, make_search,
)
from structsolve.plugins.mrf.messages._float_passes cimport (
    dual_ascent, dual_ascent_bytes, transformation,
)
from structsolve.plugins.mrf.local_search._climb cimport climb, climb_bytes
from structsolve.plugins.mrf.tables._model cimport GraphModel, Model, most_states, score
from structsolve.plugins.mrf.cuts._roof_duality cimport roof_bytes, roof_dual

# Iterations of TRW-S before the search; fewer where tables have more cells than SMALL.
cdef int ITERATIONS = 20
cdef int LESS = 10
cdef Py_ssize_t SMALL = 2 ** 18


cdef inline Py_ssize_t _round_up(Py_ssize_t size) noexcept nogil:
    return (size + 7) / 8 * 8


cdef inline Py_ssize_t _half_bytes(const Model* model) noexcept nogil:
    return _round_up(model.n + model.m)


cdef Py_ssize_t exact_bytes(const Model* model) noexcept nogil:
    return (model.unary_at[model.n] * sizeof(double) + _half_bytes(model)
            + max(roof_bytes(model.n, model.m), _ascent_bytes(model)
                  + max(climb_bytes(model), _phi_bytes(model))))


cdef inline Py_ssize_t _ascent_bytes(const Model* model) noexcept nogil:
    return _round_up(dual_ascent_bytes(model))


cdef inline Py_ssize_t _phi_bytes(const Model* model) noexcept nogil:
    return 2 * model.m * most_states(model) * sizeof(double)


cdef double* _transformed(const Model* model, const Model* left, char* work) noexcept nogil:
    # The equivalent transformation by TRW-S, after _begin().
    cdef char* scratch = (work + model.unary_at[model.n] * sizeof(double) + _half_bytes(model))
    cdef double* phi = <double*>(scratch + _ascent_bytes(model))
    memset(phi, 0, _phi_bytes(model))
    transformation(left, scratch, phi, most_states(model))
    return phi


cdef bint _fix(const Model* model, const signed char* state, double* unary) noexcept nogil:
    # unary <- scores that forbid states ruled out by the relaxation; True: no choice is left.
    cdef Py_ssize_t v
    cdef bint decided = True
    memcpy(unary, model.unary, model.unary_at[model.n] * sizeof(double))
    for v in range(model.n):
        if state[v] == 2:
            decided = False
        elif model.states[v] == 2:
            unary[model.unary_at[v] + 1 - state[v]] = -INFINITY
    return decided


cdef bint _begin(const Model* model, Model* left, int* label, double* value, double* bound,
                 char* work) noexcept nogil:
    # label, value, bound as in exact(); left <- the model without states that are ruled out, with
    # scores in work.  Returns whether value is the maximum.
    cdef double* unary = <double*>work
    cdef signed char* half = <signed char*>(unary + model.unary_at[model.n])
    cdef char* scratch = <char*>half + _half_bytes(model)
    cdef Py_ssize_t v
    cdef bint binary = True
    cdef double top = INFINITY
    cdef int rounds = ITERATIONS if model.cell_at[model.m] <= SMALL else LESS
    left[0] = model[0]
    memset(label, 0, model.n * sizeof(int))
    for v in range(model.n):
        binary = binary and model.states[v] <= 2
    if binary:
        top = roof_dual(model, half, half + model.n, scratch)
        if top == -INFINITY:
            value[0] = bound[0] = top
            return True
        left.unary = unary
        if _fix(model, half, unary):
            for v in range(model.n):
                label[v] = half[v]
            bound[0] = value[0] = score(model, label)
            return True
    dual_ascent(left, rounds, 1e-12, label, value, bound, NULL, 0, NULL, scratch)
    bound[0] = min(bound[0], top)
    if value[0] == -INFINITY:
        memset(label, 0, model.n * sizeof(int))
    if value[0] < bound[0]:
        value[0] = climb(left, label, scratch + _ascent_bytes(model))
    if value[0] > -INFINITY:
        value[0] = score(model, label)
    if bound[0] <= value[0]:
        bound[0] = value[0]
        return True
    return False


cdef bint exact(const Model* model, double steps, int* label, double* value, double* bound,
                char* work) noexcept nogil:
    cdef Model left
    cdef Search* search
    cdef bint proven = _begin(model, &left, label, value, bound, work)
    if proven:
        return True
    search = make_search(&left, label, _transformed(model, &left, work), most_states(model))
    if search == NULL:
        return False
    proven = advance(search, steps)
    bound[0] = min(bound[0], -lowest(search))
    if -search.net.high > value[0]:
        memcpy(label, search.best, model.n * sizeof(int))
        value[0] = score(model, label)
    free_search(search)
    if proven or bound[0] < value[0]:
        bound[0] = value[0]
    return proven


cdef class ExactSearch:
    """Search for the best labeling of a graph, in slices of work.

    Parameters
    ----------
    model : GraphModel
        Any number of states.
    label : array of int of shape (n,), optional
        A labeling to start from.  By default the first call of `advance` gets one by roof duality
        and TRW-S, often with a proof.

    Examples
    --------
    >>> from structsolve.plugins.mrf.exact._search import ExactSearch
    >>> from structsolve.plugins.mrf.tables._model import GraphModel
    >>> apart = [[0, 1], [1, 0]]
    >>> unary = [[0, 0.5], [0, 0], [0, 0]]
    >>> model = GraphModel([2] * 3, [[0, 1], [1, 2], [2, 0]], unary, [apart] * 3)
    >>> search = ExactSearch(model)
    >>> search.advance(1e6)
    True
    >>> search.value, search.bound, int(search.label[0])
    (2.5, 2.5, 1)
    """

    cdef GraphModel model
    cdef Model left             # without states that are ruled out
    cdef object work            # its scores
    cdef bint begun
    cdef int[::1] first
    cdef double first_bound
    cdef Search* search         # NULL: the first labeling is the best

    def __cinit__(self, GraphModel model not None, label=None):
        cdef const Model* given = &model.model
        self.model, self.left, self.first_bound = model, given[0], INFINITY
        self.first = model._label(np.zeros(given.n, np.intc) if label is None else label)
        if label is None:
            # Not zeros: unused pages take no memory.
            self.work = np.empty(exact_bytes(given) // 8 + 1)
        else:
            self._search(NULL)

    cdef _search(self, const double* phi):
        with nogil:
            self.search = make_search(&self.left, &self.first[0], phi, most_states(&self.left))
        if self.search == NULL:
            raise MemoryError("no memory for the costs of a graph")

    def _begin(self):
        cdef double[::1] work = self.work
        cdef bint proven
        cdef double value
        with nogil:
            proven = _begin(&self.model.model, &self.left, &self.first[0], &value,
                            &self.first_bound, <char*>&work[0])
        self.begun = True
        if not proven:
            self._search(_transformed(&self.model.model, &self.left, <char*>&work[0]))

    def __dealloc__(self):
        free_search(self.search)

    def advance(self, double steps):
        """Search further.

        Parameters
        ----------
        steps : float
            Cells of tables to read, about.

        Returns
        -------
        bool
            Whether the best labeling is proven.
        """
        cdef bint proven = True
        if self.search == NULL and not self.begun:
            self._begin()
        if self.search != NULL:
            with nogil:
                proven = advance(self.search, steps)
        return proven

    cdef const int* _best(self) noexcept nogil:
        return self.search.best if self.search != NULL else &self.first[0]

    @property
    def label(self):
        """ndarray of int: The best labeling met."""
        label = np.zeros(self.model.model.n, np.intc)
        cdef int[::1] view = label
        memcpy(&view[0], self._best(), self.model.model.n * sizeof(int))
        return label

    @property
    def steps(self):
        """float: Cells of tables that were read."""
        return self.search.net.work if self.search != NULL else 0.0

    @property
    def value(self):
        """float: Its score; -inf if none was met."""
        return score(&self.model.model, self._best())

    @property
    def bound(self):
        """float: Upper bound of all scores, up to rounding."""
        bound = self.first_bound
        if self.search != NULL:
            bound = min(bound, -lowest(self.search))
        return max(bound, self.value)
