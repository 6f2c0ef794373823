"""Rows in any unit: programs answer alike, as solvers' tolerances are absolute."""

import itertools

import numpy as np
import pytest
from checks import refused
from scipy import sparse

from structsolve import StructuredSVM
from structsolve.lp import Highs, LabelConstraint, LinearDecoder, Polytope, Polytopes, make_backend
from structsolve.lp.polytope import bound_of

EVERY = np.array(list(itertools.product((0, 1), repeat=6)))


class Within(Polytopes):
    """Sets of six items within a budget; a second row, in units of 1, says nothing."""

    def __init__(self, costs, budget):
        A = sparse.csr_matrix(np.stack([costs, np.ones(6)]))
        high = np.array([budget, 6.0])
        self.polytope = Polytope(A, np.full(2, -np.inf), high, np.arange(6), lambda x: x)

    def build(self, i):
        return self.polytope


@pytest.mark.parametrize("unit", [1e-250, 1e-12, 1e-7, 1.0, 1e7, 1e16, 1e250])
@pytest.mark.parametrize(
    "backend", ["lp", "ilp", "cvxpy:CLARABEL", "cvxpy:OSQP", "cvxpy:SCIPY", "cvxpy-ilp:HIGHS"]
)
def test_the_unit_of_a_row_does_not_matter(unit, backend):
    rng = np.random.default_rng(0)
    for _ in range(4):
        costs, scores = rng.integers(1, 10, 6), rng.integers(-2, 6, 6).astype(float)
        polytopes = Within(costs * unit, (costs.sum() // 2 + 0.5) * unit)
        decoder = LinearDecoder(polytopes, make_backend(backend))
        best = (EVERY @ scores)[EVERY @ costs <= costs.sum() // 2].max()
        label, value, bound = decoder.decode(0, scores)
        assert value == pytest.approx(best, abs=1e-6) == scores @ label
        assert bound >= best - 1e-6
        relaxed = decoder.relax(0, scores)
        if relaxed.dual is not None:  # in the units of the rows as they were given
            assert bound_of(polytopes.polytope, scores, relaxed.dual) == pytest.approx(
                relaxed.value, abs=1e-4
            )


@pytest.mark.parametrize("backend", ["lp", "ilp", "cvxpy:CLARABEL"])
def test_small_coefficients_beside_large_ones_count(backend):
    """A program's answer may break them by less than tolerances; the label may not."""
    rng = np.random.default_rng(0)
    for factor in (1e6, 1e8):
        for _ in range(10):
            costs = rng.integers(1, 10, 6) * np.array([1, factor])[rng.permutation([0, 1] * 3)]
            budget = costs[costs >= factor].min() + costs[costs < factor].sum() // 2 + 0.5
            scores = rng.integers(-2, 6, 6).astype(float)
            decoder = LinearDecoder(Within(costs, budget), make_backend(backend))
            label, value, _ = decoder.decode(0, scores)
            assert label @ costs <= budget
            best = (EVERY @ scores)[EVERY @ costs <= budget].max()
            assert value == pytest.approx(best, abs=1e-6)


def test_rows_that_no_unit_helps_are_refused():
    for mixed in (np.geomspace(1, 1e20, 6), np.geomspace(1e-9, 1e16, 6)):
        decoder = LinearDecoder(Within(mixed, 1.0), Highs())
        message = "example 0: HiGHS refuses the rows of a polytope, with coefficients of size"
        refused(message, decoder.decode, 0, np.ones(6))


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_constraints_hold_in_any_unit(unit):
    X, y = [np.eye(3)[[0, 1, 0, 1]]] * 4, [["a", "b", "a", "b"]] * 4
    at_most = [LabelConstraint({"node": [0, unit, 0]}, upper=most * unit) for most in (1, 2)]
    model = StructuredSVM("chain", alpha=0.01, tol=0.1, oracle=Highs(constraints=[at_most[1]]))
    model = model.fit([*X, np.eye(3)[[2]]], [*y, ["c"]])
    model.set_params(oracle=Highs(constraints=[at_most[0]]))
    assert {(labels == "b").sum() for labels in model.predict(X)} == {1}
    message = "example 0: the true label breaks constraint 0: found"
    refused(message, model.fit, [*X, np.eye(3)[[2]]], [*y, ["c"]])
