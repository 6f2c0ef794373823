"""A labeling problem on a graph: scores of nodes and edges as raw arrays, and their sum."""

import numpy as np

from structsolve.plugins.mrf.tables.graphs import check_edges

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

from structsolve.plugins.mrf.tables._near cimport sort_edges


cdef int most_states(const Model* model) noexcept nogil:
    cdef Py_ssize_t v
    cdef int most = 1
    for v in range(model.n):
        most = model.states[v] if model.states[v] > most else most
    return most


cdef double score(const Model* model, const int* label) noexcept nogil:
    cdef double total = 0, x
    cdef Py_ssize_t v, e
    cdef int s, t
    for v in range(model.n):
        total += model.unary[model.unary_at[v] + label[v]]
    for e in range(model.m):
        s, t = label[model.ends[2 * e]], label[model.ends[2 * e + 1]]
        x = model.pair[model.pair_at[e] + s * model.states[model.ends[2 * e + 1]] + t]
        total += x if model.weight == NULL else model.weight[e] * x
    return total


cdef double magnitude(const Model* model) noexcept nogil:
    cdef Py_ssize_t v, j
    cdef double total = 0, most = 0
    for v in range(model.n):
        most = 0
        for j in range(model.unary_at[v], model.unary_at[v + 1]):
            if model.unary[j] > -INFINITY and fabs(model.unary[j]) > most:
                most = fabs(model.unary[j])
        total += most
    for v in range(model.m):
        if another_table(model, v):
            most = 0
            for j in range(model.pair_at[v], model.pair_at[v] + model.cell_at[v + 1]
                           - model.cell_at[v]):
                if model.pair[j] > -INFINITY and fabs(model.pair[j]) > most:
                    most = fabs(model.pair[j])
        total += most * fabs(weight_of(model, v))
    return total


cdef bint breadth_first(const Model* model, const int* group, int* order, int* up) noexcept nogil:
    cdef Py_ssize_t root, head = 0, tail = 0, v, k
    cdef int e, w
    cdef bint forest = True
    for v in range(model.n):
        up[v] = -2
    for root in range(model.n):
        if up[root] != -2 or (group != NULL and group[root] < 0):
            continue
        up[root] = -1
        order[tail] = <int>root
        tail += 1
        while head < tail:
            v = order[head]
            head += 1
            for k in range(model.near_at[v], model.near_at[v + 1]):
                e = model.near[k]
                w = other_end(model, e, v)
                if group != NULL and group[w] < 0:
                    continue
                if up[w] == -2:
                    up[w] = e
                    order[tail] = w
                    tail += 1
                elif up[v] != e and up[w] != e:
                    forest = False
    return forest


cdef tuple scores_of(const Model* model):
    # For examples, whose edges have no weights.
    unary = np.empty(model.unary_at[model.n])
    pair = np.empty(model.cell_at[model.m])
    cdef double[::1] view = unary
    cdef Py_ssize_t e
    memcpy(&view[0], model.unary, unary.nbytes)
    if pair.size:
        view = pair
    for e in range(model.m):
        memcpy(&view[model.cell_at[e]], model.pair + model.pair_at[e],
               (model.cell_at[e + 1] - model.cell_at[e]) * sizeof(double))
    return unary, pair


def _integers(name, values):
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: found dtype {array.dtype}, expected integers")
    if array.size and (array.max() > 2**30 or array.min() < -(2**30)):
        raise ValueError(f"{name}: found {array.max()} to {array.min()}, expected at most 2**30")
    return array.astype(np.int64)


def _joined(name, item, values, shapes):
    """All scores, one array after the other, of a list with an array per item."""
    parts = [np.asarray(part, dtype=np.float64) for part in values]
    if len(parts) != len(shapes):
        raise ValueError(
            f"{name}: found {len(parts)} arrays, expected {len(shapes)}, one per {item}"
        )
    for i, (part, shape) in enumerate(zip(parts, map(tuple, shapes.tolist()))):
        if part.shape != shape:
            raise ValueError(f"{name} of {item} {i}: found shape {part.shape}, expected {shape}")
    return np.concatenate([part.ravel() for part in parts]) if parts else np.zeros(0)


def _scores(name, item, values, starts):
    """One flat array of scores, checked, of as many items as have starts."""
    # Read-only arrays need no copy.
    fixed = values.dtype == np.float64 and values.flags.c_contiguous and not values.flags.writeable
    flat = values if fixed else np.array(values, dtype=np.float64)
    size = starts[len(starts) - 1]
    if flat.size != size:
        raise ValueError(f"{name}: found {flat.size} scores, expected {size} for these states")
    if not flat.max(initial=-np.inf) < np.inf:      # the largest of NaN is NaN
        position = int((~(flat < np.inf)).argmax())
        i = int(np.searchsorted(starts, position, side="right")) - 1
        raise ValueError(
            f"{name} of {item} {i}: found {flat[position]}, expected finite scores, or -inf to "
            "forbid"
        )
    return flat


def _is_flat(values):
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype != object


cdef class GraphModel:
    """A pairwise model of the labelings of one graph, with scores to maximise.

    Parameters
    ----------
    states : array of int of shape (n,)
        Number of states of each node, at least 1.
    ends : array of int of shape (m, 2)
        Both end nodes of each edge; no loops, no edge twice in either direction.
    unary : list of arrays, or one flat array
        Scores of each node's states; -inf forbids a state.
    pair : list of arrays, or one array
        For each edge (u, v) a table of shape ``(states[u], states[v])``; -inf forbids a pair.  An
        array of one dimension holds all tables one after the other, one of two dimensions is
        the table that all edges share.

    Attributes
    ----------
    unary_at : ndarray
        Start of each node's scores in ``unary``, then the end.
    cell_at : ndarray
        Start of each edge's table if every edge has one, then the end.
    pair_at : ndarray
        Start of each edge's table in ``pair``: ``cell_at``, or 0 for a table that all
        edges share.
    near_at, near : ndarray
        The edges of each node, by compressed rows.

    Examples
    --------
    >>> from structsolve.plugins.mrf.tables._model import GraphModel
    >>> model = GraphModel([2, 2], [[0, 1]], [[0, 1], [0, 2]], [[[4, 0], [0, 0.5]]])
    >>> model.score([1, 1]), model.score([0, 0])
    (3.5, 4.0)
    """

    def __cinit__(self, states, ends, unary, pair, *more, **named):
        # Further arguments of subclasses.
        if (more or named) and type(self) is GraphModel:
            raise TypeError(
                "GraphModel() takes states, ends, unary and pair; found "
                f"{len(more) + len(named)} more: {[*more, *named]}"
            )
        if not (isinstance(states, np.ndarray) and states.dtype == np.intc):
            states = _integers("states", states)
        if states.ndim != 1 or states.size == 0:
            raise ValueError(
                f"states: found shape {states.shape}, expected at least one node in 1-D"
            )
        n = states.size
        self.states = states.astype(np.intc)
        self.ends = check_edges(ends, n, "ends", parallel=True)
        m = len(self.ends)
        self.unary_at, self.near_at = np.zeros(n + 1, np.intp), np.zeros(n + 1, np.intp)
        self.cell_at, self.near = np.zeros(m + 1, np.intp), np.zeros(2 * m, np.intc)
        width = self._index(n, m)
        self.pair_at = self.cell_at
        if not _is_flat(unary):
            unary = _joined("unary", "node", unary, self.states[:, None])
        self.unary = _scores("unary", "node", unary, self.unary_at)
        if isinstance(pair, np.ndarray) and pair.ndim == 2 and m:
            if not width or pair.shape != (width, width):
                self._refuse(pair.shape)
            self.pair_at = np.zeros(m + 1, dtype=np.intp)
            self.pair = _scores("pair", "edge", pair.ravel(), np.array([0, pair.size]))
        else:
            if not _is_flat(pair):
                pair = _joined("pair", "edge", pair, self.states[self.ends])
            self.pair = _scores("pair", "edge", pair, self.cell_at)
        # Read-only: checked values cannot change.
        for array in (self.states, self.ends, self.unary_at, self.pair_at, self.cell_at, self.unary,
                      self.pair, self.near, self.near_at):
            array.flags.writeable = False
        self._point(n, m)

    def _index(self, Py_ssize_t n, Py_ssize_t m):
        """Set the starts of scores and the edges of each node; return the states of all, or 0."""
        cdef const int[::1] states = self.states, ends = self.ends.ravel()
        cdef Py_ssize_t[::1] unary_at = self.unary_at, cell_at = self.cell_at
        cdef Py_ssize_t[::1] near_at = self.near_at
        cdef int[::1] near = self.near
        cdef Py_ssize_t v, e
        cdef int width = states[0]
        for v in range(n):
            if not 1 <= states[v] <= 2**30:
                raise ValueError(
                    f"states of node {v}: found {states[v]}, expected at least 1, at most 2**30"
                )
            unary_at[v + 1] = unary_at[v] + states[v]
            width = width if states[v] == width else 0
        for e in range(m):
            cell_at[e + 1] = cell_at[e] + <Py_ssize_t>states[ends[2 * e]] * states[ends[2 * e + 1]]
        if m:
            sort_edges(n, m, &ends[0], &near_at[0], &near[0])
        return width

    def _refuse(self, shape):
        """Refuse a table that does not fit the states of the ends of all edges."""
        shapes = self.states[self.ends]
        other = (shapes != shape).any(axis=1)
        if other.any():
            e = int(other.argmax())
            raise ValueError(
                f"pair of edge {e}: found shape {shape}, expected {tuple(shapes[e].tolist())}"
            )

    def _point(self, Py_ssize_t n, Py_ssize_t m):
        cdef const int[::1] states = self.states, ends = self.ends.ravel(), near = self.near
        cdef const Py_ssize_t[::1] unary_at = self.unary_at, pair_at = self.pair_at
        cdef const Py_ssize_t[::1] cell_at = self.cell_at, near_at = self.near_at
        cdef const double[::1] unary = self.unary, pair = self.pair
        self.model.n, self.model.m = n, m
        self.model.states = &states[0]
        self.model.unary_at, self.model.pair_at = &unary_at[0], &pair_at[0]
        self.model.cell_at, self.model.near_at = &cell_at[0], &near_at[0]
        self.model.unary = &unary[0]
        self.model.ends = &ends[0] if m else NULL
        self.model.pair = &pair[0] if m else NULL
        self.model.near = &near[0] if m else NULL

    cdef int[::1] _label(self, label) except *:
        array = _integers("label", label)
        if array.shape != self.states.shape:
            raise ValueError(f"label: found shape {array.shape}, expected ({self.model.n},)")
        wrong = (array < 0) | (array >= self.states)
        if wrong.any():
            v = int(wrong.argmax())
            raise ValueError(
                f"label of node {v}: found {array[v]}, expected 0 to {self.states[v] - 1}"
            )
        return array.astype(np.intc)

    def score(self, label):
        """Score of a labeling, -inf if it is forbidden.

        Parameters
        ----------
        label : array of int of shape (n,)
            State of each node.

        Returns
        -------
        float
            The sum of the scores of its states and pairs.
        """
        cdef int[::1] view = self._label(label)
        return score(&self.model, &view[0])
