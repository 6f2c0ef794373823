"""Training problems with a bi-criteria surrogate, over enumerated labels, and their optimum.

A problem is a list, one entry an example, of (differences, losses) as in `reference.objectives`, or
of (differences, offsets, losses): label y has h = offsets(y) - <w, differences(y)> and g =
losses(y).  The offset is 0 but in micro-F1, where it is the Hamming distance.  The objective is

    alpha/2 |w|^2 + (1/n) sum_i max psi(h, g)

over the labels (integral), or over the convex hull of each example's points (h, g) (relaxed).
"""

from dataclasses import dataclass

import numpy as np

from .searches import integral_maximum, relaxed_maximum


@dataclass(frozen=True)
class RescaledOptimum:
    """w, its objective, and a proven lower bound of the optimum."""

    w: np.ndarray
    value: float
    lower: float
    iterations: int


def _entry(entry):
    differences, *offsets, losses = entry
    return differences, offsets[0] if offsets else np.zeros(len(losses)), losses


def micro_f1_problem(problem, sizes):
    """Make (differences, Hamming) into what `psi.micro_f1` takes.

    `sizes` holds for each example the pair (|y| of every label, |y_i|).
    """
    return [
        (differences, hamming, -(np.asarray(every, float) + truth))
        for (differences, hamming), (every, truth) in zip(problem, sizes, strict=True)
    ]


def cut(w, entry, psi, relaxed):
    """(value, slope) of one example's surrogate at w: a subgradient, where psi is convex in h."""
    differences, offsets, g = _entry(entry)
    h = offsets - differences @ w
    if relaxed:
        (a, b, t), value = relaxed_maximum(h, g, psi)
    else:
        a, value = integral_maximum(h, g, psi)
        b, t = a, 0.0
    dh, _ = psi.slopes((1 - t) * h[a] + t * h[b], (1 - t) * g[a] + t * g[b])
    return value, -float(dh) * ((1 - t) * differences[a] + t * differences[b])


def rescaled_primal(w, problem, psi, alpha, relaxed):
    """The objective at w."""
    return float(alpha / 2 * w @ w + np.mean([cut(w, entry, psi, relaxed)[0] for entry in problem]))


def enumerated_optimum(problem, psi, alpha, relaxed, tol=1e-8, max_iter=2000):
    """The optimum, to `tol` times its value, by cutting planes with an exact inner maximum.

    Every mixture of labels is convex in w where psi is convex in h, hence so is their supremum: the
    cuts are valid for the relaxed problem too, though psi is not concave over mixtures.  Each step
    adds one cut an example and minimises the model exactly, so that the model's minimum is a proof.
    """
    if not psi.convex:
        raise ValueError(f"{psi.name} is not convex in h: its objective has no certified optimum")
    n, size = len(problem), _entry(problem[0])[0].shape[1]
    rows, levels, owners = [], [], []
    w, best, lower = np.zeros(size), (np.inf, np.zeros(size)), -np.inf
    for iteration in range(1, max_iter + 1):
        values = []
        for i, entry in enumerate(problem):
            value, slope = cut(w, entry, psi, relaxed)
            values.append(value)
            rows.append(slope)
            levels.append(value - slope @ w)
            owners.append(i)
        objective = float(alpha / 2 * w @ w + np.mean(values))
        best = min(best, (objective, w), key=lambda pair: pair[0])
        if best[0] - lower <= tol * max(abs(best[0]), 1e-3):
            return RescaledOptimum(best[1], best[0], lower, iteration)
        w, lower = _minimise(np.array(rows), np.array(levels), np.array(owners), alpha, n)
    raise ValueError(f"no optimum in {max_iter} steps: {best[0]} and {lower}")


def _minimise(rows, levels, owners, alpha, n):
    """(w, dual bound) of the model: max over cuts of level + <row, w> for each example."""
    import clarabel
    from scipy import sparse

    d = rows.shape[1]
    quadratic = sparse.diags_array(np.r_[np.full(d, alpha), np.zeros(n)]).tocsc()
    linear = np.r_[np.zeros(d), np.full(n, 1 / n)]
    owner = np.zeros((len(rows), n))
    owner[np.arange(len(rows)), owners] = -1
    A = sparse.csc_array(np.hstack([rows, owner]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.NonnegativeConeT(len(rows))]
    answer = clarabel.DefaultSolver(quadratic, linear, A, -levels, cones, settings).solve()
    # The bound that the multipliers prove, made exactly feasible: of each example they sum to 1/n.
    z = np.maximum(answer.z, 0)
    totals = np.bincount(owners, z, n)
    z = z / (n * totals[owners])
    slope = z @ rows
    return np.asarray(answer.x)[:d], float(z @ levels - slope @ slope / (2 * alpha))


def affine_optimum(problem, psi, alpha, grid=1):
    """The optimum over mixtures of two labels with weights t/grid, in one quadratic program.

    For psi = a(g) h + b(g) only.  `grid=1` leaves the labels themselves: the integral problem,
    exactly.  A finer grid comes to the relaxed problem from below, with an error of its square.
    """
    import cvxpy as cp

    w = cp.Variable(_entry(problem[0])[0].shape[1])
    xi = cp.Variable(len(problem))
    rows = []
    for i, entry in enumerate(problem):
        differences, offsets, g = _entry(entry)
        first, second = np.triu_indices(len(g), 1 if len(g) > 1 else 0)
        for t in np.arange(grid + 1) / grid:
            mixed = (1 - t) * g[first] + t * g[second]
            slope = (1 - t) * differences[first] + t * differences[second]
            offset = (1 - t) * offsets[first] + t * offsets[second]
            a, _ = psi.slopes(np.zeros_like(mixed), mixed)
            rows.append(cp.multiply(a, offset - slope @ w) + psi.value(0 * mixed, mixed) <= xi[i])
    task = cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + cp.sum(xi) / len(problem)), rows)
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return w.value, float(task.value)


def log_optimum(problem, alpha):
    """The integral optimum of g log(exp(h) + 1), by cvxpy's own calculus."""
    import cvxpy as cp

    w = cp.Variable(_entry(problem[0])[0].shape[1])
    terms = []
    for entry in problem:
        differences, offsets, g = _entry(entry)
        terms.append(cp.max(cp.multiply(g, cp.logistic(offsets - differences @ w))))
    task = cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + sum(terms) / len(problem)))
    task.solve(solver=cp.CLARABEL)
    return w.value, float(task.value)
