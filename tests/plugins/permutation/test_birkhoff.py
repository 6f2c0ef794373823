"""Projections onto the polytope of assignments: bounds, feasibility, optimality, extreme scores."""

import cvxpy as cp
import numpy as np
import pytest
from checks import refused

from structsolve import Block, Examples
from structsolve.part_layout import PartLayout
from structsolve.plugins.permutation._projections import AssignmentProjection
from structsolve.structure import calls

NAMES = ["entropy", "euclidean"]


def table_layout(rows, cols, forbidden=None):
    """Return one table of pairs, as matchings have."""
    examples = Examples(
        np.array([0, rows * cols]),
        label_offsets=np.array([0, rows]),
        topology={"cols": np.array([cols]), "forbidden": forbidden},
    )
    return PartLayout([Block("pair", "node", (1,))], examples)


def ranking_layout(size):
    """Return one square with padded rows, as rankings have."""
    examples = Examples(np.array([0, 1]), label_offsets=np.array([0, size]))
    return PartLayout([Block("node", "node", (size, size))], examples)


def project(theta, name, forbidden=None, ranking=False):
    """Return marginals, value and bound of one table of scores."""
    rows, cols = theta.shape
    mask = None if forbidden is None else forbidden.ravel().astype(np.uint8)
    layout = ranking_layout(rows) if ranking else table_layout(rows, cols, mask)
    padded = np.zeros(layout.sizes(0)[0]).reshape(rows, -1)
    padded[:, :cols] = theta
    mu, value, bound = calls.project(AssignmentProjection(name, layout), 0, padded.ravel())
    mu = mu.reshape(padded.shape)
    assert (mu[:, cols:] == 0).all()
    return mu[:, :cols], value, bound


def regulariser(mu, name):
    if name == "euclidean":
        return -0.5 * (mu**2).sum()
    return -(mu[mu > 0] * np.log(mu[mu > 0])).sum()


def check(theta, name, forbidden=None, tolerance=1e-9):
    """Check a point of the polytope, its value, and a gap that proves it optimal."""
    mu, value, bound = project(theta, name, forbidden)
    barred = np.isneginf(theta) if forbidden is None else forbidden | np.isneginf(theta)
    finite = np.where(barred, 0, theta)
    size = max(1.0, abs(value), np.abs(finite).max() * len(theta))
    assert np.isfinite(mu).all() and mu.min() >= 0 and (mu[barred] == 0).all()
    np.testing.assert_allclose(mu.sum(axis=1), 1, atol=1e-11)
    columns = mu.sum(axis=0)
    if theta.shape[0] == theta.shape[1]:
        np.testing.assert_allclose(columns, 1, atol=1e-11)
    assert columns.max() <= 1 + 1e-11
    said = (finite * mu).sum() + regulariser(mu, name)
    np.testing.assert_allclose(value, said, rtol=0, atol=1e-12 * size)
    assert 0 <= bound - value <= tolerance * size
    return mu, value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["normal", "scaled", "ties", "lognormal"])
def test_certificates(kind, name):
    rng = np.random.default_rng(0)
    for _ in range(400):
        rows = int(rng.integers(1, 8))
        cols = rows + int(rng.integers(0, 4)) * int(rng.integers(0, 2))
        theta = {
            "normal": rng.normal(size=(rows, cols)),
            "scaled": rng.normal(size=(rows, cols)) * 10.0 ** rng.integers(-3, 5),
            "ties": rng.integers(-1, 2, (rows, cols)) * 10.0 ** rng.integers(0, 5),
            "lognormal": np.exp(4 * rng.normal(size=(rows, cols))),
        }[kind]
        forbidden = None
        if rng.random() < 0.3:
            forbidden = rng.random((rows, cols)) < 0.3
            forbidden[np.arange(rows), rng.permutation(cols)[:rows]] = False
        check(theta, name, forbidden)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("column", [0, -1])
def test_pairs_forbidden_in_one_column_alone(column, name):
    rng = np.random.default_rng(3)
    for _ in range(60):
        n = int(rng.integers(2, 7))
        theta = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-1, 4)
        forbidden = np.zeros((n, n), dtype=bool)
        forbidden[rng.permutation(n)[: int(rng.integers(1, n))], column] = True
        check(theta, name, forbidden)


@pytest.mark.parametrize("name", NAMES)
def test_convex_programs(name):
    rng = np.random.default_rng(1)
    for rows, cols in ((1, 1), (1, 3), (2, 2), (3, 3), (3, 5), (4, 4), (2, 6)):
        theta = 2 * rng.normal(size=(rows, cols))
        x = cp.Variable((rows, cols), nonneg=True)
        G = cp.sum(cp.entr(x)) if name == "entropy" else -0.5 * cp.sum_squares(x)
        sums = cp.sum(x, axis=0)
        limits = [cp.sum(x, axis=1) == 1, sums == 1 if rows == cols else sums <= 1]
        program = cp.Problem(cp.Maximize(G + cp.sum(cp.multiply(theta, x))), limits)
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
        mu, value, _ = project(theta, name)
        np.testing.assert_allclose(value, program.value, atol=1e-7)
        np.testing.assert_allclose(mu, x.value, atol=1e-4)


def test_uniform():
    for name in NAMES:
        mu, _ = check(np.zeros((5, 5)), name)
        np.testing.assert_allclose(mu, 0.2, atol=1e-9)
        mu, _ = check(np.full((2, 4), 1e4), name)
        np.testing.assert_allclose(mu, 0.25, atol=1e-9)


def test_single_pairs():
    for name in NAMES:
        mu, value = check(np.array([[-3.0]]), name)
        assert mu == 1 and value == -3 - (name == "euclidean") / 2
    # One row is a softmax, or a point of the simplex.
    theta = np.array([[0.0, 1.0, -1.0]])
    np.testing.assert_allclose(check(theta, "entropy")[0], np.exp(theta) / np.exp(theta).sum())
    np.testing.assert_allclose(check(theta, "euclidean")[0], [[0, 1, 0]], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_extreme_scores(name):
    rng = np.random.default_rng(3)
    triangle = np.where(np.tri(6), 0.0, -1e4)
    for theta in (
        1e4 * rng.normal(size=(6, 6)),
        1e8 * rng.normal(size=(4, 6)),
        1e4 * rng.integers(-1, 2, (8, 8)),
        triangle,
        -triangle,
        np.where(np.eye(5), 1e4, -1e4),
        np.where(np.eye(5), -1e4, 1e4),
        1e-300 * rng.normal(size=(3, 3)),
    ):
        check(np.asarray(theta, dtype=float), name, tolerance=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_forbidden_pairs(name):
    # A table that allows one assignment only; scores of -inf as from a mask.
    theta = np.zeros((4, 4))
    theta[np.triu_indices(4, 1)] = -np.inf
    mu, _ = check(theta, name)
    np.testing.assert_allclose(mu, np.eye(4), atol=1e-9)
    barred = np.eye(3, dtype=bool)
    mu, _ = check(np.zeros((3, 3)), name, barred)
    np.testing.assert_allclose(mu, (1 - np.eye(3)) / 2, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_larger(name):
    rng = np.random.default_rng(4)
    for rows, cols in ((40, 40), (20, 45)):
        for scale in (1, 30, 1e4):
            check(scale * rng.normal(size=(rows, cols)), name, tolerance=1e-7)


def test_padding_changes_nothing():
    theta = np.random.default_rng(5).normal(size=(5, 5))
    for name in NAMES:
        a, b = project(theta, name), project(theta, name, ranking=True)
        assert (a[0] == b[0]).all() and a[1:] == b[1:]


def test_refused():
    projection = AssignmentProjection("entropy", table_layout(2, 2))
    with pytest.raises(ValueError, match="example 0: no assignment is possible"):
        calls.project(projection, 0, np.full(4, -np.inf))
    with pytest.raises(ValueError, match="example 0: no assignment is possible"):
        calls.project(projection, 0, np.full(4, np.nan))
    refused("theta: found 3 entries, expected 4", calls.project, projection, 0, np.zeros(3))
    refused("example 1 of 1", calls.project, projection, 1, np.zeros(4))
    refused("regularizer is 'tsallis'", AssignmentProjection, "tsallis", table_layout(2, 2))
