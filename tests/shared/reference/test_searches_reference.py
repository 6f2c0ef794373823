"""The references of the bi-criteria surrogates and their maxima, against second methods."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull, QhullError

from . import psi as psis
from .chains import enumerate_examples, labelings
from .objectives import optimum
from .psi import Psi
from .rescaled import (
    affine_optimum,
    cut,
    enumerated_optimum,
    log_optimum,
    micro_f1_problem,
    rescaled_primal,
)
from .searches import edge_maximum, integral_maximum, relaxed_maximum, upper_hull

KINDS = ("integers", "counts", "normal", "h <= 0", "one point")
# What slack rescaling maximises where h = 1 + m(y).
PRODUCT = Psi("product", lambda h, g: h * g, lambda h, g: (g.copy(), h.copy()))


def random_plane(kind, rng):
    """(h, g) of up to 13 labels, the truth (1, 0) first."""
    n = 1 if kind == "one point" else rng.integers(1, 13)
    h, g = 1 + 2 * rng.normal(size=n), rng.integers(0, 6, n).astype(float)
    if kind == "integers":
        h = rng.integers(-4, 8, n).astype(float)
    elif kind == "normal":
        g = 3 * np.abs(rng.normal(size=n))
    elif kind == "h <= 0":
        h = -rng.integers(0, 5, n).astype(float)
    return np.append(1.0, h), np.append(0.0, g)


PSIS = [
    psis.margin(),
    psis.slack(),
    psis.generalized(0.5, 0),
    psis.generalized(0, 0),
    psis.generalized(0.5, 0.5),
    psis.generalized(2, 1),
    psis.beta(0.25),
    psis.beta(0.5),
    psis.beta(0.75),
    psis.log(),
    psis.probloss(),
    psis.convex_probloss(),
    psis.micro_f1(),
]
by_name = pytest.mark.parametrize("psi", PSIS, ids=lambda psi: psi.name)


def plane_points(psi, n, rng):
    """Random (h, g) with g > 0 (micro-F1: g < 0, h >= 0)."""
    h = rng.normal(size=n) * rng.choice([0.3, 3, 10], n)
    g = rng.exponential(2, n) * rng.choice([1, 0.05], n)
    return (np.abs(h), -g) if psi.name == "micro-f1" else (h, g)


def plane_for(psi, kind, rng):
    h, g = random_plane(kind, rng)
    if psi.name == "micro-f1":
        return np.abs(h), -np.abs(g) - 1
    return (h, g) if psi.name == "product" else (h - 1, g)


# ---- psi -----------------------------------------------------------------------------------------


@by_name
def test_slopes_by_finite_differences(psi):
    h, g = plane_points(psi, 400, np.random.default_rng(0))
    h[:20] = 0
    step = 1e-6 * np.minimum(np.abs(g), 1)
    dh, dg = psi.slopes(h, g)
    side = (psi.value(h + step, g) - psi.value(h - step, g)) / (2 * step)
    up = (psi.value(h, g + step) - psi.value(h, g - step)) / (2 * step)
    np.testing.assert_allclose(dh, side, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(dg, up, rtol=1e-4, atol=1e-5 * (1 + np.abs(up).max()))


def faults(psi, n, seed):
    """Where psi >= 0: how often it falls along h, along g, or fails quasi-concavity."""
    rng = np.random.default_rng(seed)
    (h, g), (h2, g2) = plane_points(psi, n, rng), plane_points(psi, n, rng)
    here, there, t = psi.value(h, g), psi.value(h2, g2), rng.random(n)
    more = rng.exponential(size=n) * rng.choice([1, 0.01], n)
    up = -g * rng.random(n) if psi.name == "micro-f1" else more
    close = 1e-9 * (1 + np.abs(here))
    inside = here >= 0
    along_h = inside & (psi.value(h + more, g) < here - close)
    along_g = inside & (psi.value(h, g + up) < here - close)
    least = np.minimum(here, there)
    middle = psi.value((1 - t) * h + t * h2, (1 - t) * g + t * g2)
    dips = (least >= 0) & (middle < least - 1e-9 * (1 + np.abs(least)))
    return along_h.sum(), along_g.sum(), dips.sum()


@by_name
def test_increasing_and_quasi_concave_where_not_negative(psi):
    assert faults(psi, 100_000, 0) == (0, 0, 0)


@pytest.mark.parametrize("alpha", [0, 0.25, 0.5, 1, 1.5, 2])
@pytest.mark.parametrize("beta", [0, 0.25, 0.5, 1, 1.5])
def test_the_range_of_generalized_scaling_is_exact(alpha, beta):
    """Every pair outside 0 <= alpha - beta <= 1 fails, none inside."""
    failed = any(faults(psis.generalized(alpha, beta), 100_000, 1))
    assert failed == (not 0 <= alpha - beta <= 1)


def test_points_of_no_loss_break_the_level_set_at_zero():
    """(h, 0) has psi = 0 however small h is: levels c > 0 are convex, c = 0 is not."""
    slack = psis.slack()
    assert slack.value(-5, 0) == 0 and slack.value(0, 1) == 1
    assert slack.value(-4, 0.2) < 0


@by_name
def test_convexity_in_h(psi):
    rng = np.random.default_rng(2)
    h, g = plane_points(psi, 50_000, rng)
    other, _ = plane_points(psi, 50_000, rng)
    middle, ends = psi.value((h + other) / 2, g), (psi.value(h, g) + psi.value(other, g)) / 2
    assert (middle <= ends + 1e-9 * (1 + np.abs(ends))).all() == psi.convex
    if psi.affine:
        np.testing.assert_allclose(middle, ends, rtol=1e-9, atol=1e-9)


def test_values_at_zero_margin_and_zero_loss():
    g = np.array([0.5, 1, 3])
    assert psis.log().value(0, g) == pytest.approx(np.log(2) * g)
    assert psis.probloss().value(0, g) == pytest.approx(g)
    assert psis.probloss().slopes(0, g)[0] == pytest.approx(np.sqrt(g))
    for psi in PSIS:
        if psi.name == "generalized:0,0":
            assert psi.value(0, 0) == 1  # 0 ** 0: h + 1, the truth included
            continue
        assert psi.value(0, 0) == 0
        with np.errstate(all="raise"):
            slopes = psi.slopes(np.array([-2.0, 0, 2]), np.zeros(3))
        assert not np.isnan(slopes).any()


# ---- maxima of a plane ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_hull_and_its_maximum(kind):
    rng = np.random.default_rng(3)
    for _ in range(60):
        h, g = random_plane(kind, rng)
        rows = upper_hull(h, g)
        assert (np.diff(g[rows]) > 0).all()
        assert g[rows[0]] == g.min() and g[rows[-1]] == g.max()
        # No point lies above; the height at each g by interpolation.
        assert (h <= np.interp(g, g[rows], h[rows]) + 1e-9).all()
        slopes = np.diff(h[rows]) / np.diff(g[rows])
        assert (np.diff(slopes) < 0).all()
        try:
            corners = set(ConvexHull(np.c_[h, g]).vertices)
        except QhullError:
            continue
        places = {(h[j], g[j]) for j in corners}
        assert all((h[j], g[j]) in places for j in rows)


@by_name
def test_relaxed_maximum_against_random_mixtures(psi):
    rng = np.random.default_rng(4)
    for kind in KINDS:
        for _ in range(8):
            h, g = plane_for(psi, kind, rng)
            (a, b, t), value = relaxed_maximum(h, g, psi)
            attained = psi.value((1 - t) * h[a] + t * h[b], (1 - t) * g[a] + t * g[b])
            assert attained == pytest.approx(value, rel=1e-12, abs=1e-12)
            assert value >= integral_maximum(h, g, psi)[1] - 1e-12 * (1 + abs(value))
            # All pairs on a fine grid, and mixtures of all points.
            grid = np.linspace(0, 1, 201)[:, None, None]
            pairs = psi.value(
                (1 - grid) * h + grid * h[:, None], (1 - grid) * g + grid * g[:, None]
            )
            q = rng.dirichlet(np.full(len(h), 0.3), 2000)
            top = max(pairs.max(), psi.value(q @ h, q @ g).max())
            if psi.name != "micro-f1" or value > 0:
                assert value >= top - 1e-9 * (1 + abs(top))
            assert value <= pairs.max() + 0.05 * (1 + abs(value))


def test_edge_maximum_in_closed_form():
    t, value = edge_maximum((4.0, 0.0), (0.0, 4.0), PRODUCT)
    assert (t, value) == (pytest.approx(0.5, abs=1e-6), pytest.approx(4.0, abs=1e-13))


# ---- training problems ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(10)
    lengths = (1, 2, 3)
    X = [rng.normal(size=(length, 2)) for length in lengths]
    Y = [rng.integers(0, 2, length) for length in lengths]
    sizes = [((labelings(len(y), 2) > 0).sum(axis=1), int((y > 0).sum())) for y in Y]
    return enumerate_examples(X, Y, 2), sizes


CONVEX = [psi for psi in PSIS if psi.convex]


@pytest.mark.parametrize("relaxed", [False, True], ids=["integral", "relaxed"])
@pytest.mark.parametrize("psi", CONVEX, ids=lambda psi: psi.name)
def test_enumerated_optimum(problem, psi, relaxed):
    entries, sizes = problem
    if psi.name == "micro-f1":
        entries = micro_f1_problem(entries, sizes)
    alpha = 0.1
    best = enumerated_optimum(entries, psi, alpha, relaxed)
    assert best.lower - 1e-9 <= best.value <= best.lower + 2e-8
    assert best.value == rescaled_primal(best.w, entries, psi, alpha, relaxed)
    rng = np.random.default_rng(11)
    for _ in range(20):
        w = best.w + rng.normal(size=best.w.shape) * rng.choice([1e-3, 0.1, 1])
        assert rescaled_primal(w, entries, psi, alpha, relaxed) >= best.value - 1e-8
        for entry in entries:  # the cut inequality
            value, slope = cut(best.w, entry, psi, relaxed)
            assert cut(w, entry, psi, relaxed)[0] >= value + slope @ (w - best.w) - 1e-9
    if psi.affine:
        w, value = affine_optimum(entries, psi, alpha, grid=16 if relaxed else 1)
        # On a grid it is a lower bound; 16 steps leave an error of 3e-3.
        assert value <= best.value + 1e-8 and value >= best.value - (5e-3 if relaxed else 1e-8)
        np.testing.assert_allclose(w, best.w, atol=0.1 if relaxed else 1e-4)
    elif psi.name == "log" and not relaxed:
        assert log_optimum(entries, alpha)[1] == pytest.approx(best.value, abs=1e-7)


def test_margin_is_the_objective_of_the_other_reference(problem):
    entries, _ = problem
    for relaxed in (False, True):
        best = enumerated_optimum(entries, psis.margin(), 0.2, relaxed)
        assert best.value == pytest.approx(optimum(entries, 0.2).value, abs=1e-8)


def test_raw_probloss_is_refused(problem):
    with pytest.raises(ValueError, match="probloss is not convex in h"):
        enumerated_optimum(problem[0], psis.probloss(), 0.1, False)
