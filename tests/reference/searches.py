"""The plane of labels (h, g): its points by enumeration, exact maxima, and five searches in Python.

A search sees a `Plane` through its lambda-oracle, `plane.ask(lam)`, which returns the row of *some*
point with the largest h + lam g (ties are broken at random), and answers with a `Found`.  The
slack searches maximise h g over h > 0, with h = 1 + m(y); `hull_search` maximises any `Psi`.

How exact they are (`python -m reference.search_counts`; 4000 random planes a line, the truth (1, 0)
and up to 12 points with ties; the share in which the best label found is not the best there is, and
calls of the oracle on average.  Where one misses it may lose all: value 0, the truth):

    points               Sarawagi-Gupta      binary   bisecting  convex hull      angular
    small integers         1.7 %  38     1.6 %  25   1.5 %  11    1.5 % 2.7        0  1.2
    g 0..5, h normal       2.7 %  38     2.4 %  25   2.4 %  12    2.4 % 2.8        0  2.0
    both normal            1.9 %  38     4.3 %  25   4.3 %  14    4.3 % 2.8        0  2.1
    all others h <= 0          0  38         0  25       0  33        0 2.5        0  0.6

All misses are labels above no edge of the hull: no lambda-oracle returns them.  The bounds always
hold; those of the binary and the hull search are the relaxed maximum.
"""

import heapq
import itertools
from dataclasses import dataclass, field

import numpy as np

# Two values of one maximum that differ by rounding only.
CLOSE = 1e-12
GOLDEN = (5**0.5 - 1) / 2


# ---- points and exact maxima ---------------------------------------------------------------------


def encodings(space, examples, i, size, loss="hamming"):
    """All labels of example i as (labels, rows, g): m(y) = rows(y) @ theta, theta of that size."""
    from structsolve.structure import calls
    from structsolve.structure.ask import ask_loss, ask_parts, make_layout

    layout, truth = make_layout(space, examples), examples.label(i)
    parts, native = ask_parts(space)(layout), ask_loss(space, loss)(layout)
    labels = np.ascontiguousarray(space.enumerate_labels(examples, i), dtype=np.int32)
    rows = np.zeros((len(labels) + 1, size))
    for row, label in zip(rows, [*labels, truth]):
        index, value = calls.encode(parts, i, np.ascontiguousarray(label, dtype=np.int32))
        np.add.at(row, index, value)
    g = np.array([calls.loss_value(native, i, truth, label) for label in labels])
    return labels, rows[:-1] - rows[-1], g


def points(space, examples, i, theta, loss="hamming", h0=0.0):
    """All labels of example i as (labels, h, g): h = m(y) + h0 and g the loss against the truth."""
    labels, rows, g = encodings(space, examples, i, len(theta), loss)
    return labels, rows @ theta + h0, g


def largest_h(h, g, most):
    """For each count c = 0 .. most the largest h of a point with g = c, -inf if there is none."""
    return np.array([np.max(h[g == c], initial=-np.inf) for c in range(most + 1)])


def integral_maximum(h, g, psi):
    """(row, value) of the best point."""
    values = psi.value(h, g)
    row = int(np.argmax(values))
    return row, float(values[row])


def upper_hull(h, g):
    """Rows of the upper hull in order of g: for each g it has the largest h (monotone chain).

    A vertical run is one vertex, its top; points inside an edge are left out.
    """
    rows = []
    for row in np.lexsort((-h, g)):
        if rows and g[row] == g[rows[-1]]:
            continue
        while len(rows) > 1:
            a, b = rows[-2], rows[-1]
            if (h[b] - h[a]) * (g[row] - g[a]) > (h[row] - h[a]) * (g[b] - g[a]):
                break
            rows.pop()
        rows.append(int(row))
    return rows


def edge_maximum(first, second, psi):
    """(t, value) of the best point (1 - t) first + t second of a segment, to about 1e-14.

    A dense grid, then ever finer ones around its best point: no unimodality is taken for granted.
    """
    (h0, g0), (h1, g1) = first, second
    low, high, best_point = 0.0, 1.0, (0.0, -np.inf)
    while high - low > 1e-10:
        grid = np.linspace(low, high, 257)
        values = psi.value(h0 + grid * (h1 - h0), g0 + grid * (g1 - g0))
        best = int(np.argmax(values))
        if values[best] > best_point[1]:
            best_point = float(grid[best]), float(values[best])
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 256)]
    return best_point


def relaxed_maximum(h, g, psi):
    """((row, row, t), value) over the convex hull, for any psi that rises with h.

    It looks at every edge of the upper hull and at nothing else: no lambda, no oracle.
    """
    rows = upper_hull(h, g)
    best = (rows[0], rows[0], 0.0), float(psi.value(h[rows[0]], g[rows[0]]))
    for a, b in itertools.pairwise(rows):
        t, value = edge_maximum((h[a], g[a]), (h[b], g[b]), psi)
        if value > best[1]:
            best = (a, b, t), value
    return best


# ---- the lambda-oracle and what a search answers -------------------------------------------------


class Plane:
    """Points behind a lambda-oracle that counts its calls and breaks ties at random.

    `truth` is the row of the true label, which every search knows without asking.
    """

    def __init__(self, h, g, rng=None, truth=None):
        self.h, self.g = np.asarray(h, float), np.asarray(g, float)
        self.rng = np.random.default_rng(rng)
        self.truth, self.calls, self.path = truth, 0, []

    def _pick(self, rows, scores, lam):
        self.calls += 1
        top = scores.max()
        tied = rows[scores >= top - 1e-14 * abs(top)]
        row = int(self.rng.choice(tied))
        self.path.append({"lam": lam, "h": self.h[row], "g": self.g[row]})
        return row

    def ask(self, lam):
        """Row of a point with the largest h + lam g; at lam = inf of one with the largest g."""
        scores = self.g if np.isinf(lam) else self.h + lam * self.g
        return self._pick(np.arange(len(self.h)), scores, lam)

    def ask_cone(self, lam, alpha, beta, twin):
        """The same among beta h < g <= alpha h (twin: beta h <= g < alpha h), None where empty.

        An infinite alpha asks for h >= 0, its strict twin for h > 0.
        """
        h, g = self.h, self.g
        if np.isinf(alpha):
            inside = h > 0 if twin else h >= 0
        else:
            inside = g < alpha * h if twin else g <= alpha * h
        inside = inside & ((g >= beta * h) if twin else (g > beta * h))
        rows = np.flatnonzero(inside)
        return self._pick(rows, (h + lam * g)[rows], lam) if rows.size else None

    def product(self, row):
        """h g where h > 0, else 0: what slack rescaling maximises."""
        return max(self.h[row], 0.0) * self.g[row]


@dataclass
class Found:
    """Row of the best label (None: no label seen), its value, an upper bound of the maximum."""

    row: int | None
    value: float
    bound: float
    calls: int
    mixture: tuple | None = None  # (row, row, t) where a fractional maximiser is better
    path: list = field(default_factory=list)


def _found(plane, row, value, bound, mixture=None):
    return Found(row, value, max(value, bound), plane.calls, mixture, plane.path)


class _Best:
    """The best label seen, by h g; the truth is known from the start."""

    def __init__(self, plane):
        self.plane, self.row, self.value = plane, plane.truth, 0.0
        self.bound = np.inf

    def see(self, row, lam):
        """Take note of the oracle's answer, and of the bound K^2/(4 lam) it proves."""
        plane = self.plane
        if self.row is None or plane.product(row) > self.value:
            self.row, self.value = row, plane.product(row)
        top = max(plane.h[row] + lam * plane.g[row], 0.0)
        self.bound = min(self.bound, top**2 / (4 * lam))

    def answer(self):
        return _found(self.plane, self.row, self.value, self.bound)


# ---- slack rescaling: h > 0, maximise h g --------------------------------------------------------


def binary_search(plane, low=1e-4, high=1e4, tolerance=1e-6):
    """Minimise (1/4) max_y (h/lam + lam g)^2 over lam by the sign of its slope, g - h/lam^2.

    The oracle is asked at lam^2.  The bound it proves is that of the *relaxed* maximum, and it is
    tight there; the best label seen may miss the integral one.
    """
    best = _Best(plane)
    while high > low * (1 + tolerance):
        lam = np.sqrt(low * high)
        row = plane.ask(lam**2)
        best.see(row, lam**2)
        if plane.g[row] <= plane.h[row] / lam**2:
            low = lam
        else:
            high = lam
    return best.answer()


def sarawagi_gupta_search(plane, xi, low=1e-6, high=1e6, tolerance=1e-6):
    """Most violated label under slack xi > 0: max h - xi/g, by golden section over log(lam).

    F(lam) = max h + lam g - 2 sqrt(xi lam) >= h - xi/g for every label and lam: where its minimum
    is not positive, no label is violated.  `value` is h - xi/g of the best label seen.
    """
    row, value, bound = None, -np.inf, np.inf

    def ask(t):
        nonlocal row, value, bound
        lam = np.exp(t)
        seen = plane.ask(lam)
        h, g = plane.h[seen], plane.g[seen]
        if g > 0 and h > 0 and h - xi / g > value:
            row, value = seen, h - xi / g
        bound = min(bound, h + lam * g - 2 * np.sqrt(xi * lam))
        return h + lam * g - 2 * np.sqrt(xi * lam)

    a, b = np.log(low), np.log(high)
    left, right = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    at_left, at_right = ask(left), ask(right)
    while b - a > tolerance:
        if at_left <= at_right:
            b, right, at_right = right, left, at_left
            left = b - GOLDEN * (b - a)
            at_left = ask(left)
        else:
            a, left, at_left = left, right, at_right
            right = a + GOLDEN * (b - a)
            at_right = ask(right)
    return _found(plane, row, value, bound)


def bisecting_search(plane, start=1.0, tolerance=1e-9, largest=1e12):
    """Algorithm 1: boxes H and G that the maximiser must lie in, and an interval L of lam.

    Two stops are not in the paper: L narrower than `tolerance` (a point of h <= 0 at one end never
    empties a box), and lam beyond `largest` (labels of g = 0 alone keep it doubling).
    """
    best = _Best(plane)
    box_h, box_g, interval, ends = [-np.inf, np.inf], [-np.inf, np.inf], [0.0, np.inf], [None, None]
    lam = start
    while True:
        row = plane.ask(lam)
        best.see(row, lam)
        h, g = plane.h[row], plane.g[row]
        for box, pair in ((box_h, (h, lam * g)), (box_g, (g, h / lam))):
            box[:] = max(box[0], min(pair)), min(box[1], max(pair))
        side = 0 if g <= h / lam else 1
        interval[side], ends[side] = lam, row
        lam = 2 * lam if np.isinf(interval[1]) else sum(interval) / 2
        same = None not in ends and len({(plane.h[e], plane.g[e]) for e in ends}) == 1
        narrow = np.isfinite(interval[1]) and np.ptp(interval) <= tolerance * interval[1]
        if box_h[0] > box_h[1] or box_g[0] > box_g[1] or same or narrow or lam > largest:
            return best.answer()


def angular_search(plane, start, tolerance=1e-9):
    """Algorithm 2, exact: a queue of angles; the constrained oracle answers for each.

    `start` is lam0 = (largest h) / (largest g).  An angle is (alpha, beta, twin); its bound is that
    of its parent, K^2 / (4 lam), until it has been asked itself.
    """
    best = _Best(plane)
    order = itertools.count()
    queue = [(-np.inf, next(order), np.inf, 0.0, False)]
    bound = 0.0
    while queue:
        bound, _, alpha, beta, twin = heapq.heappop(queue)
        if -bound <= (1 + tolerance) * best.value:
            break
        bound = 0.0
        lam = start if beta == 0 or np.isinf(alpha) else 1 / np.sqrt(alpha * beta)
        row = plane.ask_cone(lam, alpha, beta, twin)
        if row is None:
            continue
        best.see(row, lam)
        h, g = plane.h[row], plane.g[row]
        top = (h + lam * g) ** 2 / (4 * lam)
        with np.errstate(divide="ignore"):
            slopes = np.divide(g, h), np.divide(h, lam**2 * g)
        upper, lower = (max(slopes), 1 / lam, True), (1 / lam, min(slopes), False)
        for one, two, flag in (upper, lower):
            one, two = min(one, alpha), max(two, beta)
            if one > two:
                heapq.heappush(queue, (-top, next(order), one, two, flag))
    return _found(plane, best.row, best.value, (1 + tolerance) * best.value)


# ---- any quasi-concave psi -----------------------------------------------------------------------


class _Vertices:
    """Labels found, in order of g, one for each g (the highest), concave as hulls are."""

    def __init__(self, plane, psi):
        self.plane, self.psi, self.rows = plane, psi, []

    def add(self, row):
        """Insert a label; leave out what lies on or below the hull of the others."""
        h, g = self.plane.h, self.plane.g
        rows = np.array([*self.rows, row])
        self.rows = [int(rows[j]) for j in upper_hull(h[rows], g[rows])]

    def best(self):
        """Position of the best vertex, of equals the first."""
        return int(np.argmax(self.psi.value(self.plane.h[self.rows], self.plane.g[self.rows])))

    def direction(self):
        """Next lam: the tangent at the best vertex, or the edge to a neighbour that lies above."""
        h, g = self.plane.h[self.rows], self.plane.g[self.rows]
        t = self.best()
        lam = float(self.psi.tangent(h[t], g[t]))
        for k in (t - 1, t + 1):
            if 0 <= k < len(h):
                above = g[k] > g[t] if np.isinf(lam) else h[k] + lam * g[k] > h[t] + lam * g[t]
                if above or np.isnan(lam):
                    return max(-(h[k] - h[t]) / (g[k] - g[t]), 0.0)
        return lam if lam >= 0 else 0.0

    def fractional(self):
        """Best mixture on the two edges at the best vertex, as ((row, row, t), value)."""
        h, g, t = self.plane.h, self.plane.g, self.best()
        mixture = None
        for k in (t - 1, t + 1):
            if 0 <= k < len(self.rows):
                a, b = self.rows[t], self.rows[k]
                mix, value = edge_maximum((h[a], g[a]), (h[b], g[b]), self.psi)
                if mixture is None or value > mixture[1]:
                    mixture = (a, b, mix), value
        return mixture


def hull_search(plane, psi, start=()):
    """Algorithm 4, exact for the relaxed maximum of a quasi-concave psi that rises with h and g.

    The truth is a vertex from the start (in slack rescaling the first answers may all have
    psi < 0, where the tangent has no meaning); `start` are rows found in an earlier search.  The
    stop compares values.  `value` and `row` are of the best label seen, `bound` of the hull.
    """
    vertices = _Vertices(plane, psi)
    seen = [*start] if plane.truth is None else [plane.truth, *start]
    for row in seen:
        vertices.add(row)
    lam = np.inf if len(vertices.rows) < 2 else vertices.direction()
    while True:
        row = plane.ask(lam)
        h, g = plane.h, plane.g
        known = vertices.rows
        if np.isinf(lam):
            better = not known or g[row] > g[known].max()
        else:
            values = h[known] + lam * g[known]
            scale = np.abs(h[known]) + lam * np.abs(g[known])
            own = h[row] + lam * g[row]
            better = not known or own > values.max() + CLOSE * (scale.max() + abs(own))
        vertices.add(row)
        seen.append(row)
        # A call at lam = inf proves nothing: the tangent at the best may be another, and of labels
        # with the largest g the answer need not be the one with the largest h.
        if not better and np.isfinite(lam):
            break
        following = vertices.direction()
        lam = 0.0 if np.isinf(lam) and np.isinf(following) else following
    best = max(seen, key=lambda r: psi.value(h[r], g[r]))
    value = float(psi.value(h[best], g[best]))
    mixture = vertices.fractional()
    if mixture is None or mixture[1] <= value * (1 + CLOSE):
        return _found(plane, best, value, value)
    return _found(plane, best, value, mixture[1], mixture[0])
