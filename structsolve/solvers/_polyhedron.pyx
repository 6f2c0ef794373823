"""Euclidean projection of weights onto ``A w <= c``: by an active-set method, warm-started.

The dual of ``min |x - w|^2 / 2, A x <= c`` is ``max_{m >= 0} <m, A w - c> - |A' m|^2 / 2``, with
``x = w - A' m``: non-negative least squares with one variable per row (Lawson, Hanson 1974).  Rows
that share no coordinate, directly or through others, are separate problems.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t

# A row (of length 1) within this distance of the span of others is treated as redundant.
cdef double DEPENDENT = 1e-11
# A violation below this, relative to the weights and the right side, is rounding.
cdef double ROUNDING = 4e-16
# Maximum number of rows of a component: its Gram matrix and factor are dense, 32 MB each.
MOST_ROWS = 2000


class TooManyRows(ValueError):
    """A component has too many rows for projections."""


cdef class Polyhedron:
    """``{w : A w <= c}``, and ``A w = c`` in some rows.

    Parameters
    ----------
    A : scipy.sparse CSR of shape (r, dim)
        Rows of length 1.
    c : ndarray of shape (r,)
    equal : ndarray of bool of shape (r,)

    Raises
    ------
    TooManyRows
        If a component has more than 2000 rows.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> half = Polyhedron(sp.csr_matrix([[1.0, 0.0]]), np.zeros(1), np.zeros(1, bool))
    >>> half.nearest(np.array([2.0, 3.0])).tolist()
    [0.0, 3.0]
    """

    def __init__(self, A, c, equal):
        import scipy.sparse as sp  # heavy
        from scipy.sparse.csgraph import connected_components  # heavy

        if not sp.issparse(A) or A.ndim != 2 or not np.shape(c) == np.shape(equal) == A.shape[:1]:
            raise ValueError(
                f"A, c, equal: found shapes {np.shape(A)}, {np.shape(c)} and {np.shape(equal)}, "
                "expected a sparse matrix, and a number and a bool for each of its rows"
            )
        r, self.dim = A.shape
        self.n_rows = r
        A = A.tocsr()
        # Rows and coordinates are the nodes of one graph.
        owner = connected_components(sp.bmat([[None, A != 0], [(A != 0).T, None]]), False)[1][:r]
        owner = np.unique(owner, return_inverse=True)[1]
        count = int(owner.max(initial=-1)) + 1
        order = np.argsort(owner, kind="stable")
        sizes = np.bincount(owner, minlength=count)
        if r and sizes.max() > MOST_ROWS:
            raise TooManyRows(
                f"constraints has {sizes.max()} rows that are connected by the weights they share, "
                f"expected at most {MOST_ROWS} for projections; use solver=CuttingPlane("
                "constraints=...)"
            )
        A = A[order]
        A.sort_indices()
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.first = first
        # Gram matrices are dense and stored one after another.
        blocks = np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64)
        products = (A @ A.T).tocoo()
        k = owner[order][products.row]
        gram = np.zeros(blocks[count] + 1)
        gram[blocks[k] + (products.row - first[k]) * sizes[k] + products.col - first[k]] = (
            products.data)
        self.gram_at, self.gram = blocks[:count], gram
        self.indptr, self.indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
        self.data = np.append(A.data, 0.0)
        self.c = np.append(np.asarray(c, dtype=np.float64)[order], 0.0)
        self.equal = np.append(np.asarray(equal, dtype=bool)[order], False).view(np.int8)
        most = int(sizes.max(initial=0)) + 1
        self.mu, self.moved = np.zeros(r + 1), np.zeros(r + 1)
        self.multipliers = np.asarray(self.mu)[:r]
        self.distance, self.solution = np.zeros(most), np.zeros(most)
        self.factor = np.zeros(most * most)
        self.chosen, self.barred = np.zeros(most, np.int64), np.zeros(most, np.int8)

    def nearest(self, w):
        """Return the nearest point of the polyhedron.

        Parameters
        ----------
        w : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (dim,)
        """
        out = np.array(w, dtype=np.float64)
        self.check(out.shape)
        cdef double[::1] view = out
        if self.n_rows:
            with nogil:
                self.project(&view[0], 1, False, NULL, 0)
        return out

    def check(self, shape):
        """Refuse weights of another shape than the rows have."""
        if tuple(shape) != (self.dim,):
            raise ValueError(f"w: found shape {tuple(shape)}, the rows have {self.dim} weights")

    def restore(self, multipliers):
        """Continue from the multipliers of a checkpoint."""
        if np.shape(multipliers) != (self.n_rows,) or not np.isfinite(multipliers).all():
            raise ValueError(
                f"the checkpoint has multipliers of shape {np.shape(multipliers)}, expected "
                f"({self.n_rows},)"
            )
        self.multipliers[:] = multipliers

    @property
    def charge(self):
        """``<c, multipliers>``."""
        return float(np.asarray(self.c)[: self.n_rows] @ self.multipliers)

    cdef double project(self, double* w, double scale, bint again, double* other,
                        double share) noexcept nogil:
        cdef Py_ssize_t k, j, l, p, first, r
        cdef const double* gram
        cdef double value, size, most, charge = 0, change
        for k in range(self.first.shape[0] - 1):
            first, r = self.first[k], self.first[k + 1] - self.first[k]
            gram = &self.gram[self.gram_at[k]]
            most = 0
            for j in range(r):
                value, size = 0, fabs(self.c[first + j])
                for p in range(self.indptr[first + j], self.indptr[first + j + 1]):
                    change = self.data[p] * w[self.indices[p]] * scale
                    value += change
                    size += fabs(change)
                value -= self.c[first + j]
                if again:
                    for l in range(r):
                        value += gram[j * r + l] * self.mu[first + l]
                        size += fabs(gram[j * r + l] * self.mu[first + l])
                self.distance[j] = value
                most = size if size > most else most
                self.moved[first + j] = -self.mu[first + j] if again else 0
            if r == 1:
                value = self.distance[0]
                self.mu[first] = value if value > 0 or self.equal[first] else 0
            else:
                self._multipliers(first, r, gram, most)
            for j in range(r):
                charge += self.c[first + j] * self.mu[first + j]
                change = -(self.moved[first + j] + self.mu[first + j]) / scale
                if change == 0:
                    continue
                for p in range(self.indptr[first + j], self.indptr[first + j + 1]):
                    w[self.indices[p]] += change * self.data[p]
                    if other != NULL:
                        other[self.indices[p]] += share * change * self.data[p]
        return charge

    cdef void _multipliers(self, Py_ssize_t first, Py_ssize_t r, const double* gram,
                           double size) noexcept nogil:
        # mu <- argmax <mu, distance> - mu' gram mu / 2 of a component, mu >= 0 except for
        # equations.  Starts from the multipliers that were not 0 after the last call.
        cdef double* mu = &self.mu[first]
        cdef const char* equal = &self.equal[first]
        cdef int64_t* chosen = &self.chosen[0]
        cdef Py_ssize_t n = 0, j, k, entered = -1, last, kept, rounds
        cdef double value, step, best
        cdef double* z = &self.solution[0]
        for j in range(r):
            self.barred[j] = 0
            mu[j] = mu[j] if equal[j] or mu[j] > 0 else 0
            if mu[j] != 0 or equal[j]:
                chosen[n] = j
                n += 1
        for rounds in range(20 * r + 50):
            while True:
                n = self._factorise(n, r, gram, mu)
                for k in range(n):
                    z[k] = self.distance[chosen[k]]
                self._solve(n, r, z, True)
                self._solve(n, r, z, False)
                # Move as far as no multiplier becomes negative.
                step, last = 1, -1
                for k in range(n):
                    j = chosen[k]
                    if z[k] <= 0 and not equal[j]:
                        value = mu[j] / (mu[j] - z[k]) if mu[j] > 0 else 0
                        if last < 0 or value < step:
                            step, last = value, k
                for k in range(n):
                    j = chosen[k]
                    mu[j] = z[k] if last < 0 else mu[j] + step * (z[k] - mu[j])
                if last < 0:
                    break
                if chosen[last] == entered:
                    self.barred[entered] = 1    # violated only by rounding
                mu[chosen[last]] = 0
                kept = 0
                for k in range(n):
                    j = chosen[k]
                    if equal[j] or mu[j] > 0:
                        chosen[kept] = j
                        kept += 1
                    else:
                        mu[j] = 0
                n = kept
            if entered >= 0 and not self.barred[entered]:
                for j in range(r):
                    self.barred[j] = 0
            # Find the most violated row.
            entered, best = -1, ROUNDING * size
            for j in range(r):
                if mu[j] != 0 or equal[j] or self.barred[j]:
                    continue
                value = self.distance[j]
                for k in range(n):
                    value -= gram[j * r + chosen[k]] * mu[chosen[k]]
                if value > best:
                    entered, best = j, value
            if entered < 0:
                return
            # Its products with the chosen rows, solved with their factor.
            value = 1
            for k in range(n):
                z[k] = gram[entered * r + chosen[k]]
            self._solve(n, r, z, True)
            for k in range(n):
                value -= z[k] * z[k]
            if value > DEPENDENT:
                chosen[n] = entered
                n += 1
                continue
            # The chosen rows span it, so it replaces the first whose multiplier reaches 0.
            self._solve(n, r, z, False)
            step, last = 0, -1
            for k in range(n):
                j = chosen[k]
                if z[k] > DEPENDENT and not equal[j] and (last < 0 or mu[j] < step * z[k]):
                    step, last = mu[j] / z[k], k
            if last < 0:
                self.barred[entered] = 1
                continue
            for k in range(n):
                mu[chosen[k]] -= step * z[k]
            mu[chosen[last]], mu[entered] = 0, step
            chosen[last] = entered

    cdef Py_ssize_t _factorise(self, Py_ssize_t n, Py_ssize_t r, const double* gram,
                               double* mu) noexcept nogil:
        # factor <- the Cholesky factor of the chosen rows' Gram matrix.  Drops rows that others
        # span; returns the number of rows left.
        cdef double* L = &self.factor[0]
        cdef int64_t* chosen = &self.chosen[0]
        cdef Py_ssize_t j, k, l, q, kept = 0
        cdef double value
        for k in range(n):
            j = chosen[k]
            for l in range(kept):
                value = gram[j * r + chosen[l]]
                for q in range(l):
                    value -= L[kept * r + q] * L[l * r + q]
                L[kept * r + l] = value / L[l * r + l]
            value = gram[j * r + j]
            for l in range(kept):
                value -= L[kept * r + l] * L[kept * r + l]
            if value <= DEPENDENT:
                mu[j] = 0
                continue
            L[kept * r + kept] = sqrt(value)
            chosen[kept] = j
            kept += 1
        return kept

    cdef void _solve(self, Py_ssize_t n, Py_ssize_t r, double* z, bint forwards) noexcept nogil:
        # z <- factor^-1 z, or factor'^-1 z.
        cdef const double* L = &self.factor[0]
        cdef Py_ssize_t k, l
        if forwards:
            for k in range(n):
                for l in range(k):
                    z[k] -= L[k * r + l] * z[l]
                z[k] /= L[k * r + k]
        else:
            for k in range(n - 1, -1, -1):
                for l in range(k + 1, n):
                    z[k] -= L[l * r + k] * z[l]
                z[k] /= L[k * r + k]
