"""The figures of the theory pages, `theory_*.png` beside this file.

`python docs/pictures/theory.py [NAME ...]`; each is computed as its page says.
"""

import itertools
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from scipy.special import logsumexp
from sklearn.preprocessing import normalize

import structsolve
from structsolve import ConditionalRiskMinimizer, ExtremeSVM, StructuredSVM, make_strips
from structsolve.plugins.mrf.relaxation.programs import local_rows
from structsolve.potentials.calls import score
from structsolve.search.psi import ProbLossPsi

BLUE, RED, GREEN, INK, PALE = "#0072b2", "#d55e00", "#009e73", "#333333", "#bbbbbb"


def panels(n=1):
    """Return a figure and its axes, without the frame's upper right half."""
    figure = Figure(figsize=(4.6 * n, 3.2), layout="constrained")
    axes = figure.subplots(1, n, squeeze=False)[0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def overview():
    """Primal and dual close in on the optimum, pass by pass."""
    train, _ = make_strips(n_train=200, n_test=1)
    model = StructuredSVM("chain", alpha=0.01, tol=1e-3).fit(train.pixels, train.labels)
    figure, (axes,) = panels()
    for name, color in (("primal", RED), ("dual", BLUE)):
        axes.plot(
            [r["pass"] for r in model.history_],
            [r[name] for r in model.history_],
            color=color,
            label=name,
        )
    axes.fill_between(
        [r["pass"] for r in model.history_],
        [r["dual"] for r in model.history_],
        [r["primal"] for r in model.history_],
        color=PALE,
        alpha=0.4,
        label="gap: the optimum lies here",
    )
    axes.set(xlabel="pass", ylabel="objective", ylim=(0, 2.5 * model.history_[-1]["primal"]))
    axes.legend(frameon=False)
    return figure


def bicriteria():
    """The 81 labels of a sentence as points of the plane, their hull, and contours of two psi."""
    rng = np.random.default_rng(44)
    X, Y = [rng.normal(size=(4, 2))], [rng.integers(0, 3, 4)]
    space, examples = structsolve.get_structure("chain").make_space(X, Y, classes=[0, 1, 2])
    problem = structsolve.Problem(space, examples, surrogate="slack")
    theta = space.layout.theta_views(
        score(problem.potentials, 0, 0.25 * rng.normal(size=problem.dim)), 4, 0
    )

    def total(y):
        ends = theta["start"][y[0]] + theta["end"][y[-1]]
        pairs = sum(theta["transition"][pair] for pair in zip(y, y[1:]))
        return ends + theta["node"][range(4), y].sum() + pairs

    labels = list(itertools.product(range(3), repeat=4))
    h = np.array([total(y) for y in labels]) - total(tuple(Y[0]))
    g = (np.array(labels) != Y[0]).sum(axis=1)
    figure, (axes,) = panels()
    axes.plot(h, g, "o", ms=4, color=PALE, label="labels")
    hull = ConvexHull(np.stack([h, g], axis=1)).vertices
    axes.fill(h[hull], g[hull], facecolor="none", edgecolor=INK, lw=1, label="hull")
    t = np.linspace(0.3, 5, 200)
    for name, psi, curve, color in (
        ("margin", h + g, lambda c: c - t, BLUE),
        ("slack", (1 + h) * g, lambda c: c / t - 1, RED),
    ):
        best = psi.argmax()
        axes.plot(curve(psi[best]), t, color=color, label=f"contour of {name}")
        axes.plot(h[best], g[best], "o", color=color)
    axes.set(
        xlabel="margin error h",
        ylabel="loss g",
        xlim=(h.min() - 0.3, h.max() + 4),
        ylim=(-0.2, 4.8),
    )
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    return figure


def probloss():
    """psi along h for three losses; beside it margin and slack for the loss 4."""
    psi, h = ProbLossPsi(), np.linspace(-9, 4, 200)
    figure, (left, right) = panels(2)
    for g, color in ((1.0, GREEN), (4.0, BLUE), (9.0, RED)):
        left.plot(h, [psi(float(x), g) for x in h], color=color, label=f"g = {g:g}")
    left.set(xlabel="margin error h", title="ProbLoss")
    right.plot(h, [psi(float(x), 4.0) for x in h], color=BLUE, label="ProbLoss")
    right.plot(h, h + 4, color=INK, label="margin")
    right.plot(h, 4 * (1 + h), "--", color=RED, label="slack")
    right.set(xlabel="margin error h", title="loss 4", ylim=(-6, 20))
    for axes in (left, right):
        axes.legend(frameon=False)
    return figure


def fenchel_young():
    """Losses of two classes by the score's lead, and the probability of the first."""
    lead = np.linspace(-4, 4, 400)
    figure, (left, right) = panels(2)
    left.plot(lead, np.maximum(0, 1 - lead), color=INK, label="margin")
    left.plot(lead, logsumexp([np.zeros(400), -lead], axis=0), color=BLUE, label="crf")
    p = np.clip((1 + lead) / 2, 0, 1)  # the projection of (lead, 0) onto the simplex
    largest = p * lead - (p**2 + (1 - p) ** 2) / 2
    left.plot(lead, largest + 0.5 - lead, color=RED, label="sparsemap")
    left.set(xlabel="score of the true class less the other's", title="loss")
    right.plot(lead, 1 / (1 + np.exp(-lead)), color=BLUE, label="crf")
    right.plot(lead, p, color=RED, label="sparsemap")
    right.plot(lead, lead > 0, color=INK, label="best label")
    right.set(xlabel="score of the true class less the other's", title="its probability")
    for axes in (left, right):
        axes.legend(frameon=False)
    return figure


def max_min():
    """Expected loss of three classes, .4 .3 .3, as the first score rises: where is its minimum?"""
    t, shares = np.linspace(-1.5, 2, 300), (0.4, 0.3, 0.3)
    v = np.stack([t, 0 * t, 0 * t])
    ordered = -np.sort(-v, axis=0)
    game = np.max([(ordered[:m].sum(axis=0) + m - 1) / m for m in (1, 2, 3)], axis=0)
    figure, (axes,) = panels()
    margin = sum(
        share * (np.max([v[k] + (k != y) for k in range(3)], axis=0) - v[y])
        for y, share in enumerate(shares)
    )
    for values, name, color in (
        (margin, "margin", INK),
        (sum(share * (game - v[y]) for y, share in enumerate(shares)), "max-min", RED),
    ):
        axes.plot(t, values, color=color, label=name)
        axes.plot(t[values.argmin()], values.min(), "o", color=color)
    axes.set(xlabel="lead of the first class", ylabel="expected loss", ylim=(0.5, 1.8))
    axes.legend(frameon=False)
    return figure


def least_risk():
    """Estimated risk of each answer along x; the least one is the prediction."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 150))
    y = np.digitize(x + rng.normal(scale=0.7, size=150), (-1, 1))
    settings = {"loss": "absolute", "alpha": 0.01, "kernel_params": {"gamma": 0.5}}
    model = ConditionalRiskMinimizer("ordinal", fit_intercept=False, **settings).fit(x[:, None], y)
    grid = np.linspace(-3, 3, 200)
    kernel = np.exp(-0.5 * (x[:, None] - x) ** 2)
    weights = np.linalg.solve(
        kernel + 150 * 0.01 * np.eye(150), np.exp(-0.5 * (x[:, None] - grid) ** 2)
    )
    risks = np.abs(y[:, None] - np.arange(3)).T @ weights
    figure, (axes,) = panels()
    for answer, color in enumerate((BLUE, GREEN, RED)):
        axes.plot(grid, risks[answer], color=color, label=f"answer {answer}")
        here = model.predict(grid[:, None]) == answer
        axes.plot(grid[here], np.full(here.sum(), -0.12), "s", ms=3, color=color)
    axes.set(xlabel="x (squares: the prediction)", ylabel="estimated risk")
    axes.legend(frameon=False)
    return figure


def relaxations():
    """Two coordinates of a triangle's polytopes: corners that are labelings, one that is none."""
    ends = np.array([[0, 1], [1, 2], [0, 2]])
    states = np.full(3, 2)
    A, high = local_rows(states, ends)
    # Sums over nodes of "is on", and over edges of "differ", which a labeling has at 0 or 2.
    n_parts = A.shape[1]
    on = np.zeros(n_parts)
    on[[1, 3, 5]] = 1
    differ = np.zeros(n_parts)
    for e in range(3):
        differ[6 + 4 * e + 1] = differ[6 + 4 * e + 2] = 1
    equal = np.zeros((3, n_parts))
    for v in range(3):
        equal[v, 2 * v : 2 * v + 2] = 1
    points = []
    for angle in np.linspace(0, 2 * np.pi, 181):
        c = -(np.cos(angle) * on + np.sin(angle) * differ)
        x = linprog(c, A_ub=A, b_ub=high, A_eq=equal, b_eq=np.ones(3)).x
        points.append((on @ x, differ @ x))
    labels = list(itertools.product((0, 1), repeat=3))
    corners = np.array([(sum(y), sum(y[u] != y[v] for u, v in ends)) for y in labels])
    figure, (axes,) = panels()
    axes.fill(*np.array(points).T, color=RED, alpha=0.25, label="local polytope")
    axes.fill([0, 1, 2, 3], [0, 2, 2, 0], color=BLUE, alpha=0.5, label="labelings and mixtures")
    axes.plot(*corners.T, "o", color=BLUE)
    axes.plot(1.5, 3, "o", color=RED)
    axes.text(1.6, 3, "all halves: no labeling", color=INK, va="center", fontsize=9)
    axes.set(
        xlabel="nodes that are on",
        ylabel="edges whose ends differ",
        xlim=(-0.2, 3.4),
        ylim=(-0.2, 3.3),
    )
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def inexact_margins():
    """Leave out features whose weights differ least: what is read, what is missed, the bound."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 40, 800)
    words = np.where(rng.random((800, 8)) < 0.5, y[:, None], rng.integers(40, size=(800, 8)))
    cells = (rng.exponential(size=6400), words.ravel(), np.arange(0, 6401, 8))
    X = normalize(sparse.csr_matrix(cells, (800, 40)).toarray())
    model = ExtremeSVM(solver="dual", surrogate="margin", alpha=0.01, tol=0.01).fit(X, y)
    W = model.decision_function(np.eye(40))
    errors = np.abs(X) * np.ptp(W, axis=1)  # at most, where the feature is left out
    order = np.argsort(errors, axis=1)
    sums = np.cumsum(np.take_along_axis(errors, order, axis=1), axis=1)
    exact, widths, rows = (X @ W).max(axis=1), np.linspace(0, 1, 21), np.arange(800)
    read, missed, told = [], [], []
    for epsilon in widths:
        out = sums <= epsilon
        kept = X.copy()
        kept[rows[:, None], order] *= ~out
        found = (kept @ W).argmax(axis=1)
        read.append((kept != 0).sum() / (X != 0).sum())
        missed.append((exact - (X @ W)[rows, found]).mean())
        told.append(np.where(out, sums, 0).max(axis=1).mean())
    figure, (axes,) = panels()
    axes.plot(widths, read, color=PALE, label="share of features read")
    axes.plot(widths, told, color=BLUE, label="may have missed (bound)")
    axes.plot(widths, missed, color=RED, label="missed")
    axes.set(xlabel="epsilon", ylabel="mean over rows")
    axes.legend(frameon=False)
    return figure


FIGURES = (
    overview,
    bicriteria,
    probloss,
    fenchel_young,
    max_min,
    least_risk,
    relaxations,
    inexact_margins,
)

if __name__ == "__main__":
    wanted = sys.argv[1:] or [draw.__name__ for draw in FIGURES]
    for draw in FIGURES:
        if draw.__name__ in wanted:
            draw().savefig(Path(__file__).with_name(f"theory_{draw.__name__}.png"), dpi=90)
