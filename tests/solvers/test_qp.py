"""The quadratic program of a cutting-plane model against cvxpy; its lower bound against all."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from structsolve.solvers import qp, qp_forms
from structsolve.solvers.cut_model import Model


def make_model(seed, m=6, dim=5, groups=1, rows=0, equal=0, free=0, sparse=False, scale=1.0):
    rng = np.random.default_rng(seed)
    cuts = rng.normal(size=(m, dim)) * scale
    A = rng.normal(size=(rows, dim))
    feasible = rng.normal(size=dim)
    c = A @ feasible + np.where(np.arange(rows) < equal, 0, rng.random(rows) - 0.2)
    caps = rng.random(groups) + 0.1
    b = rng.random(m) * scale
    # Free coordinates that the cuts bound: each comes with its mirror image.
    for k in range(free):
        cuts[2 * k % m, k], cuts[(2 * k + 1) % m, k] = 1, -1
    model = Model(
        sp.csr_matrix(cuts) if sparse else cuts,
        b,
        rng.integers(0, groups, m),
        caps,
        0.3,
        sp.csr_matrix(A),
        c,
        np.arange(rows) < equal,
        np.arange(free),
        1e3,
    )
    model.scale = float(caps @ model.slacks(np.zeros(dim)))
    return model


def objective(model, w):
    inside = np.delete(w, model.free)
    return model.alpha / 2 * float(inside @ inside) + float(model.caps @ model.slacks(w))


def scaled(model):
    """The optimal value, and the model's scale is set to it, as near the end of a run.

    The value is that at the weights that cvxpy finds, so an upper bound however well it did.
    """
    import cvxpy as cp

    w, xi = cp.Variable(model.cuts.shape[1]), cp.Variable(len(model.caps), nonneg=True)
    inside = np.setdiff1d(np.arange(w.size), model.free)
    conditions = [model.b - model.cuts @ w <= xi[model.group]]
    if (~model.equal).any():  # cvxpy before 1.8 has no constraints without rows
        conditions += [model.A[~model.equal] @ w <= model.c[~model.equal]]
    if model.equal.any():
        conditions += [model.A[model.equal] @ w == model.c[model.equal]]
    if model.free.size:
        conditions += [cp.abs(w[model.free]) <= model.box]
    norm = cp.sum_squares(w[inside]) if inside.size else 0
    unit = cp.Parameter(nonneg=True)  # so that the program is compiled once for both scales
    task = cp.Problem(cp.Minimize(unit * (model.alpha / 2 * norm + model.caps @ xi)), conditions)

    def value():
        unit.value = 1 / model.scale
        try:
            task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        except cp.error.SolverError:
            reject()  # it asks for more than doubles have: nothing to compare with
        if w.value is None:
            reject()
        return objective(model, w.value)

    model.scale = max(value(), 1e-6 * model.scale)
    return value()


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 30),
    dim=st.sampled_from([1, 5, 150]),
    groups=st.sampled_from([1, 4]),
    rows=st.sampled_from([0, 0, 1, 3]),
    equal=st.sampled_from([0, 1]),
    free=st.sampled_from([0, 0, 1]),
    sparse=st.booleans(),
    scale=st.sampled_from([1e-2, 1.0, 1e2]),
)
def test_both_forms(seed, m, dim, groups, rows, equal, free, sparse, scale):
    """A form may give up on features of extreme size; programs it calls solved are solved."""
    free, rows = min(free, dim - 1), min(rows, dim)
    model = make_model(seed, m, dim, groups, rows, min(equal, rows), free, sparse, scale)
    value = scaled(model)
    size = model.scale
    for form in (qp_forms.gram_form, qp_forms.primal_form):
        x, w_free, status, settled = form(model)
        x, lower = qp.certify(model, x, w_free)
        assert lower <= value + 2e-5 * size
        if not settled:
            continue
        w = model.weights(x, w_free)
        assert objective(model, w) <= value + 5e-5 * size
        assert np.abs(model.A[model.equal] @ w - model.c[model.equal]).max(initial=0) <= 1e-6
        assert (model.A[~model.equal] @ w - model.c[~model.equal]).max(initial=0) <= 1e-6
        if not free or np.abs(w_free).max() < 0.9 * model.box:
            assert objective(model, w) - lower <= 5e-5 * size
    answer = qp.solve(model)
    assert answer.lower <= value + 2e-5 * size
    if not answer.at_box:
        assert objective(model, answer.w) - answer.lower <= 1.1e-4 * size


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    groups=st.sampled_from([1, 4]),
    rows=st.integers(0, 2),
    noise=st.sampled_from([0, 1e-6, 1e-2, 1.0, 100.0]),
)
def test_any_multipliers_prove_a_bound(seed, groups, rows, noise):
    """certify() gives a valid bound for any answer of a solver, even a wrong one."""
    model = make_model(seed, 8, 4, groups, rows, min(1, rows), free=1)
    value = scaled(model)
    x, w_free, *_ = qp_forms.primal_form(model)
    rng = np.random.default_rng(seed)
    wrong = x + noise * rng.normal(size=len(x))
    given_x = wrong.copy()
    feasible, lower = qp.certify(model, wrong, w_free * (1 + noise))
    np.testing.assert_array_equal(wrong, given_x)
    a = feasible[rows:]
    assert (a >= 0).all() and (feasible[:rows][~model.equal] >= 0).all()
    assert (np.bincount(model.group, a, groups) <= model.caps * (1 + 1e-12)).all()
    assert lower <= value + 1e-8
    if noise <= 1e-6 and np.abs(w_free).max() < 0.9 * model.box:
        assert lower >= value - 0.01 * max(value, 1)


def test_a_gram_matrix_that_the_caller_keeps():
    model = make_model(1, m=9, dim=200, rows=2, free=1)
    answers = qp_forms.gram_form(model)[0]
    M = np.vstack([-model.A.toarray(), model.cuts])
    M[:, model.free] = 0
    model.gram = M @ M.T
    np.testing.assert_allclose(qp_forms.gram_form(model)[0], answers, atol=1e-8)


def test_the_box_is_noticed():
    """One cut that a free weight satisfies at no cost: the weight runs to the box."""
    model = make_model(0, m=1, dim=3, free=1)
    model.b[:] = 1e6
    answer = qp.solve(model)
    assert answer.at_box and abs(answer.w[0]) == pytest.approx(model.box, rel=1e-6)
    assert answer.lower == 0


def test_contradictions():
    model = make_model(0, rows=2)
    model.A[1] = -model.A[0]
    model.c[:] = -1
    for m in (model, make_model(0, m=3, dim=300, rows=2)):
        m.A[1] = -m.A[0]
        m.c[:] = -1
        refused("no weights satisfy them all", qp.solve, m, error=qp.Contradiction)


@pytest.mark.parametrize("rows, equal, free", [(0, 0, 0), (3, 1, 0), (0, 0, 1), (2, 0, 1)])
def test_other_solvers_stand_in(monkeypatch, rows, equal, free):
    model = make_model(3, m=8, groups=2, rows=rows, equal=equal, free=free)
    value = qp.solve(model).lower
    monkeypatch.setattr(qp, "clarabel_answers", lambda model: iter(()))
    answer = qp.solve(model)
    assert answer.lower == pytest.approx(value, rel=1e-4) and answer.lower <= value * (1 + 1e-7)
    monkeypatch.setattr(
        qp,
        "cvxpy_answers",
        lambda model: iter([(np.full(8 + rows, np.nan), np.zeros(free), "lost", False)]),
    )
    refused(r"8 cuts \(\['lost'\]\); scale the features", qp.solve, model, error=ArithmeticError)


def test_a_poor_answer_is_taken_only_if_it_is_good(monkeypatch):
    """The gap decides, not the status."""
    model = make_model(5)
    x, w_free, *_ = qp_forms.primal_form(model)
    monkeypatch.setattr(qp, "cvxpy_answers", lambda model: iter(()))
    monkeypatch.setattr(
        qp, "clarabel_answers", lambda model: iter([(x, w_free, "MaxIterations", False)])
    )
    assert qp.solve(model).lower > 0
    monkeypatch.setattr(
        qp, "clarabel_answers", lambda model: iter([(0 * x, w_free, "Stalled", False)])
    )
    refused("Stalled", qp.solve, model, error=ArithmeticError)
