"""One graph whose scores are arrays: TRW-S, equivalent transformations and their certificate."""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memset

from structsolve.plugins.mrf.local_search._expansion cimport expand, expand_bytes
from structsolve.plugins.mrf.messages._float_passes cimport dual_ascent, dual_ascent_bytes
from structsolve.plugins.mrf.local_search._climb cimport climb, climb_bytes
from structsolve.plugins.mrf.tables._model cimport (
    GraphModel, Model, most_states, other_end, weight_of)

from structsolve.utils.arrays import real_array


cdef class WeightedModel(GraphModel):
    """A model of a graph, with a factor for the table of each edge.

    Only this module and float_tree_reweighted() accept it.

    Parameters
    ----------
    states, ends, unary, pair
        See :class:`~structsolve.plugins.mrf.tables._model.GraphModel`.
    weights : ndarray of shape (m,), optional
        1 by default.
    """

    cdef object weights

    def __init__(self, states, ends, unary, pair, weights=None):
        cdef const double[::1] view
        if weights is not None and self.model.m:
            self.weights = np.ascontiguousarray(weights, dtype=np.float64)
            view = self.weights
            if view.shape[0] != self.model.m:
                raise ValueError(
                    f"weights: found {len(view)} numbers, expected {self.model.m}, one per edge"
                )
            self.model.weight = &view[0]

    cdef const double[:, :, ::1] _phi(self, phi):
        # Return phi checked, with a spare row, so that it has an address.
        width = int(self.states.max())
        phi = real_array(phi, "phi")
        if phi.shape != (self.model.m, 2, width):
            raise ValueError(
                f"phi: found shape {phi.shape}, expected {(self.model.m, 2, width)}: a row for "
                "each end of each edge"
            )
        if not np.isfinite(phi).all():
            raise ValueError("phi: found NaN or infinity, expected finite numbers")
        return np.concatenate([phi, np.zeros((1, 2, width))])


def ascend(WeightedModel model not None, int max_iter, bint expands, bint transform):
    """Return a labeling by TRW-S and local search, and a bound.

    Parameters
    ----------
    model : WeightedModel
    max_iter : int
    expands : bool
        Run alpha-expansions before local search.
    transform : bool
        Also return an equivalent transformation; scores must be finite.

    Returns
    -------
    label : ndarray of int of shape (n,)
    value, bound : float
    phi : ndarray of shape (m, 2, K) or None
    """
    cdef Py_ssize_t needed = max(dual_ascent_bytes(&model.model), climb_bytes(&model.model))
    if expands:
        needed = max(needed, expand_bytes(&model.model))
    cdef Py_ssize_t step = most_states(&model.model)
    label = np.zeros(model.model.n, dtype=np.intc)
    cdef int[::1] label_view = label
    # Not zeros: unused pages take no memory.
    cdef double[::1] work = np.empty(needed // 8 + 1)
    cdef double[:, :, ::1] phi
    cdef double* phi_p = NULL
    cdef double value = 0, bound = 0, unused = 0
    spare = np.zeros((model.model.m + 1, 2, step)) if transform else None
    if transform and model.model.m:
        phi = spare
        phi_p = &phi[0, 0, 0]
    with nogil:
        dual_ascent(&model.model, max_iter, 1e-12, &label_view[0], &value, &bound, phi_p, step,
                    &unused, <char*>&work[0])
        if value == -INFINITY:
            memset(&label_view[0], 0, model.model.n * sizeof(int))
        if value < bound:
            if expands:
                expand(&model.model, &label_view[0], <char*>&work[0])
            value = climb(&model.model, &label_view[0], <char*>&work[0])
    return label, value, max(bound, value), spare[:len(spare) - 1] if transform else None


cdef void _node(const Model* model, Py_ssize_t v, const double[:, :, ::1] phi,
                double* out) noexcept nogil:
    # Transformed scores of a node.
    cdef Py_ssize_t j, e, s
    cdef int end
    for s in range(model.states[v]):
        out[s] = model.unary[model.unary_at[v] + s]
    for j in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[j]
        end = model.ends[2 * e] != v
        for s in range(model.states[v]):
            out[s] += phi[e, end, s]


cdef inline double _cell(const Model* model, Py_ssize_t e, const double[:, :, ::1] phi,
                         Py_ssize_t s, Py_ssize_t t) noexcept nogil:
    # Transformed score of a pair of states.
    cdef const double* table = model.pair + model.pair_at[e]
    return (weight_of(model, e) * table[s * model.states[model.ends[2 * e + 1]] + t]
            - phi[e, 0, s] - phi[e, 1, t])


cdef double _best_cell(const Model* model, Py_ssize_t e,
                       const double[:, :, ::1] phi) noexcept nogil:
    cdef double top = -INFINITY
    cdef Py_ssize_t s, t
    for s in range(model.states[model.ends[2 * e]]):
        for t in range(model.states[model.ends[2 * e + 1]]):
            top = max(top, _cell(model, e, phi, s, t))
    return top


def transformed_bound(WeightedModel model not None, phi):
    """Return the sum of the maxima of nodes and edges after an equivalent transformation.

    Parameters
    ----------
    model : WeightedModel
    phi : ndarray of shape (m, 2, K)

    Returns
    -------
    float
    """
    cdef const double[:, :, ::1] view = model._phi(phi)
    cdef double[::1] row = np.empty(view.shape[2])
    cdef double bound = 0, top
    cdef Py_ssize_t v, e, s
    with nogil:
        for v in range(model.model.n):
            _node(&model.model, v, view, &row[0])
            top = row[0]
            for s in range(1, model.model.states[v]):
                top = max(top, row[s])
            bound += top
        for e in range(model.model.m):
            bound += _best_cell(&model.model, e, view)
    return bound


cdef bint _supported(const Model* model, Py_ssize_t e, Py_ssize_t v, Py_ssize_t s,
                     const double[:, :, ::1] phi, const double[::1] least,
                     const unsigned char* kept) noexcept nogil:
    # Whether state s of v has a maximal pair with a remaining state of the other end of e.
    cdef Py_ssize_t w = other_end(model, e, v), t
    for t in range(model.states[w]):
        if kept[model.unary_at[w] + t]:
            if model.ends[2 * e] == v:
                if _cell(model, e, phi, s, t) >= least[e]:
                    return True
            elif _cell(model, e, phi, t, s) >= least[e]:
                return True
    return False


def maximal_states(WeightedModel model not None, phi, double tol):
    """Return the maximal states that arc consistency leaves, and a labeling by them.

    Parameters
    ----------
    model : WeightedModel
    phi : ndarray of shape (m, 2, K)
    tol : float
        Scores within this of the maximum count as maximal.

    Returns
    -------
    kept : ndarray of bool of shape (sum of states,)
    label : ndarray of int of shape (n,) or None
        A labeling by maximal states and pairs; None if none was found.
    """
    cdef const double[:, :, ::1] view = model._phi(phi)
    cdef Model* m = &model.model
    cdef double[::1] row = np.empty(view.shape[2]), least = np.empty(m.m + 1)
    marks = np.zeros(m.unary_at[m.n], dtype=np.uint8)
    cdef unsigned char[::1] kept = marks
    cdef int[::1] queue = np.empty(m.n, dtype=np.intc)
    cdef unsigned char[::1] waits = np.ones(m.n, dtype=np.uint8)
    answer = np.zeros(m.n, dtype=np.intc)
    cdef int[::1] label = answer
    cdef Py_ssize_t v, w, e, s, j, head = 0, count = m.n
    cdef double top
    cdef bint changed, whole = True
    with nogil:
        for v in range(m.n):
            _node(m, v, view, &row[0])
            top = row[0]
            for s in range(1, m.states[v]):
                top = max(top, row[s])
            for s in range(m.states[v]):
                kept[m.unary_at[v] + s] = row[s] >= top - tol and row[s] > -INFINITY
            queue[v] = <int>v
        for e in range(m.m):
            top = _best_cell(m, e, view)
            least[e] = top - tol if top > -INFINITY else INFINITY
        while count:
            v = queue[head]
            head, count = (head + 1) % m.n, count - 1
            waits[v] = 0
            changed = False
            for s in range(m.states[v]):
                if not kept[m.unary_at[v] + s]:
                    continue
                for j in range(m.near_at[v], m.near_at[v + 1]):
                    if not _supported(m, m.near[j], v, s, view, least, &kept[0]):
                        kept[m.unary_at[v] + s] = 0
                        changed = True
                        break
            if not changed:
                continue
            for j in range(m.near_at[v], m.near_at[v + 1]):
                w = other_end(m, m.near[j], v)
                if not waits[w]:
                    waits[w] = 1
                    queue[(head + count) % m.n] = <int>w
                    count += 1
        # Each node takes its first state that agrees with those before.
        for v in range(m.n):
            for s in range(m.states[v]):
                if kept[m.unary_at[v] + s] and _agrees(m, v, s, view, least, label):
                    label[v] = <int>s
                    break
            else:
                whole = False
                break
    return marks.astype(bool), answer if whole else None


cdef bint _agrees(const Model* model, Py_ssize_t v, Py_ssize_t s, const double[:, :, ::1] phi,
                  const double[::1] least, const int[::1] label) noexcept nogil:
    cdef Py_ssize_t j, e, w
    cdef double x
    for j in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[j]
        w = other_end(model, e, v)
        if w < v:
            x = (_cell(model, e, phi, s, label[w]) if model.ends[2 * e] == v
                 else _cell(model, e, phi, label[w], s))
            if not x >= least[e]:
                return False
    return True
