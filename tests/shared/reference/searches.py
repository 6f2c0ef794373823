"""The plane of labels (h, g): its points by enumeration, and exact maxima over them."""

import numpy as np

STEPS = np.linspace(0, 1, 257)


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
    """(t, value) of the best point (1 - t) first + t second of a segment, to about 1e-14."""
    (h0, g0), (h1, g1) = first, second
    shares, values = edge_maxima(np.array([h0, h1]), np.array([g0, g1]), psi)
    return float(shares[0]), float(values[0])


def edge_maxima(h, g, psi):
    """`edge_maximum` of the segments between neighbours, all at once: (t, value) of each.

    A dense grid, then ever finer ones around its best point: no unimodality is taken for granted.
    """
    h0, g0, dh, dg = h[:-1, None], g[:-1, None], np.diff(h)[:, None], np.diff(g)[:, None]
    every = np.arange(len(dh))
    low, high = np.zeros(len(dh)), np.ones(len(dh))
    shares, best = np.zeros(len(dh)), np.full(len(dh), -np.inf)
    width = 1.0
    while width > 1e-10:
        grid = low[:, None] + (high - low)[:, None] * STEPS
        values = psi.value(h0 + grid * dh, g0 + grid * dg)
        top = values.argmax(axis=1)
        highest = values[every, top]
        better = highest > best
        shares = np.where(better, grid[every, top], shares)
        best = np.where(better, highest, best)
        low = grid[every, np.maximum(top - 1, 0)]
        high = grid[every, np.minimum(top + 1, len(STEPS) - 1)]
        width = (high - low).max()
    return shares, best


def relaxed_maximum(h, g, psi):
    """((row, row, t), value) over the convex hull, for any psi that rises with h.

    It looks at every edge of the upper hull and at nothing else: no lambda, no oracle.
    """
    rows = upper_hull(h, g)
    best = (rows[0], rows[0], 0.0), float(psi.value(h[rows[0]], g[rows[0]]))
    if len(rows) > 1:
        shares, values = edge_maxima(np.asarray(h, float)[rows], np.asarray(g, float)[rows], psi)
        edge = int(values.argmax())
        if values[edge] > best[1]:
            best = (rows[edge], rows[edge + 1], float(shares[edge])), float(values[edge])
    return best
