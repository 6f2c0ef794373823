"""Constraints on the weights: the same optimum by every solver, projections, refusals."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from constraint_cases import NAMED, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.objectives import primal
from solver_cases import K, begin, check_rising, follow, make_case, through_file

import structsolve
from structsolve import StructuredSVM
from structsolve.estimators.codec import revive
from structsolve.plugins.mrf import MRFStructure
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.solvers import (
    BCFW,
    SGD,
    CuttingPlane,
    LinearConstraint,
    SuperModular,
    WeightBounds,
    choose_solver,
)
from structsolve.solvers._polyhedron import Polyhedron, TooManyRows
from structsolve.solvers.weight_constraints import assemble

ALPHA = 0.02


@pytest.mark.parametrize("name", NAMED)
def test_block_coordinate_ascent_reaches_the_optimum_inside(name):
    case = make_case(seed=4, n=10)
    A, b = rows_of(case, NAMED[name])
    best = case.optimum(ALPHA, A=A, b=b)
    assert best.value > case.optimum(ALPHA).value * (1 + 1e-6)
    run = begin(BCFW(constraints=NAMED[name]), case.problem, ALPHA)
    history = []
    for _ in range(400):
        assert (A @ case.flat(run.loop.w) <= b + 1e-12).all()
        history.append(run.step())
        if history[-1]["certified"] and history[-1]["gap"] <= 1e-7 * history[-1]["primal"]:
            break
    check_rising(history, close=1e-11)
    w = case.flat(run.weights())
    assert (A @ w <= b + 1e-12).all()
    assert primal(w, case.written, ALPHA) == pytest.approx(best.value, rel=1e-6)
    assert all(r["dual"] <= best.value * (1 + 1e-8) for r in history)


@pytest.mark.parametrize("name", NAMED)
def test_subgradient_descent_comes_near_the_optimum_inside(name):
    case = make_case(seed=4, n=10)
    A, b = rows_of(case, NAMED[name])
    best = case.optimum(ALPHA, A=A, b=b)
    run = begin(SGD(constraints=NAMED[name]), case.problem, ALPHA)
    history = []
    for _ in range(400):
        history.append(run.step())
        assert (A @ case.flat(run.loop.last()) <= b + 1e-11).all()
        if "stepped_back" not in history[-1]:  # then the average begins anew
            assert (A @ case.flat(run.loop.averaged()) <= b + 1e-11).all()
    assert len([row for row in history if "stepped_back" in row]) < 3
    record = run.certify()
    assert (A @ case.flat(run.weights()) <= b + 1e-11).all()
    assert primal(case.flat(run.weights()), case.written, ALPHA) == pytest.approx(
        best.value, rel=0.01
    )
    assert record["dual"] <= best.value * (1 + 1e-8)
    assert record["dual"] >= best.value * 0.98


@pytest.mark.parametrize("slack", ["one", "n"])
def test_cutting_planes_ask_the_oracle_inside(slack):
    case = make_case(seed=4, n=10)
    A, b = rows_of(case, NAMED["preset"])
    run = begin(CuttingPlane(slack, constraints=NAMED["preset"]), case.problem, ALPHA)
    for _ in range(30):
        assert (A @ case.flat(run.next) <= b + 1e-13).all()
        run.step()


def test_unpenalised_weights_under_rows_by_sgd():
    case = make_case(seed=4, n=10, penalize=False)
    A, b = rows_of(case, NAMED["box"])
    run = begin(SGD(constraints=NAMED["box"]), case.problem, ALPHA)
    for _ in range(100):
        run.step()
    assert (A @ case.flat(run.loop.averaged()) <= b + 1e-11).all()
    value = primal(case.flat(run.weights()), case.written, ALPHA, None, case.penalized)
    assert value <= case.optimum(ALPHA, A=A, b=b).value * 1.05


@pytest.mark.parametrize("solver", [BCFW, SGD])
def test_runs_continue_bit_for_bit_from_files(solver, tmp_path):
    def fresh():
        problem = make_case(seed=4, n=10).problem
        return begin(solver(constraints=NAMED["infeasible-at-0"] + NAMED["preset"]), problem, ALPHA)

    run = fresh()
    for _ in range(7):
        run.step()
    other = through_file(run, fresh(), tmp_path / "run")
    for _ in range(5):
        run.step(), other.step()
    assert run.certify() == other.certify()


def test_paths_over_alpha_keep_the_rows():
    case = make_case(seed=4, n=10)
    A, b = rows_of(case, NAMED["infeasible-at-0"])
    run = begin(BCFW(constraints=NAMED["infeasible-at-0"]), case.problem, 0.1)
    follow(run, tol=1e-4, passes=50)
    run.continue_at(ALPHA)
    assert (A @ case.flat(run.loop.w) <= b + 1e-12).all()
    follow(run, tol=1e-7, passes=300)
    best = case.optimum(ALPHA, A=A, b=b)
    assert run.best_primal == pytest.approx(best.value, rel=1e-6)
    assert run.best_dual == pytest.approx(best.value, rel=1e-6)


def test_what_rows_leave_no_room_for_is_refused_in_a_sentence():
    case = make_case(n=3)
    for solver, message in (
        (SGD(projection=True, constraints=NAMED["signs"]), "leave projection=False"),
        (
            BCFW(constraints=[WeightBounds("start", 1), WeightBounds("start", upper=0)]),
            "contradict",
        ),
        (SGD(constraints=[WeightBounds("start", 1), WeightBounds("start", upper=0)]), "contradict"),
        (BCFW(constraints=[SuperModular("start")]), r"shape \(3,\), expected square tables"),
        (BCFW(constraints=[SuperModular("pairs")]), "unknown block 'pairs'"),
    ):
        refused(message, begin, solver, case.problem, 0.1)
    classes = make_case("classes").problem
    with pytest.raises(ValueError, match="steps is 'exact', which constraints"):
        begin(BCFW(steps="exact", constraints=WeightBounds("node", 0)), classes, 0.1)
    kernel = StructuredSVM(
        "multiclass", kernel="rbf", solver=BCFW(constraints=[WeightBounds("node", 0)])
    )
    refused("a kernel model does not have", kernel.fit, [[0.0], [1.0]], [0, 1])
    assert begin(BCFW(constraints=WeightBounds("node", 0)), classes, 0.1).exact is False
    with pytest.raises(TooManyRows, match="2001 rows that are connected"):
        Polyhedron(sp.csr_matrix(np.ones((2001, 1))), np.ones(2001), np.zeros(2001, bool))
    smooth = make_case(n=3).problem
    assert choose_solver(BCFW(constraints=NAMED["signs"]), smooth).name == "bcfw"


# Projections -------------------------------------------------------------------------------------


def second_differences(size):
    rows = np.zeros((size - 1, size - 1, size, size))
    for a, b in np.ndindex(size - 1, size - 1):
        rows[a, b, a, b] = rows[a, b, a + 1, b + 1] = -1
        rows[a, b, a, b + 1] = rows[a, b, a + 1, b] = 1
    return rows.reshape((size - 1) ** 2, size * size)


def check_nearest(rows, c, equal, w):
    """x is feasible, and w - x is a combination of tight rows with the right signs."""
    length = np.linalg.norm(rows, axis=1)
    A, c = rows / length[:, None], c / length
    body = Polyhedron(sp.csr_matrix(A), c, equal)
    x = body.nearest(w)
    close = 1e-12 * (1 + np.abs(w).max() + np.abs(c).max())
    excess = A @ x - c
    assert (np.where(equal, np.abs(excess), excess) <= close).all()
    # <w - x, y - x> <= 0 for all y inside; the charge of the multipliers proves it.
    assert (w - x) @ x == pytest.approx(body.charge, abs=1e3 * close * (1 + np.abs(w).max()))
    assert equal.any() or body.multipliers.min() >= 0
    return x


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_nearest_points_of_random_polyhedra(seed):
    rng = np.random.default_rng(seed)
    d, r = rng.integers(1, 6, 2)
    rows = rng.integers(-1, 2, (2 * r, d)).astype(float)
    rows = rows[rows.any(axis=1)]
    if not len(rows):
        return
    equal = rng.random(len(rows)) < 0.15
    c = rows @ rng.integers(-1, 2, d) + np.where(equal, 0, rng.integers(0, 2, len(rows)))
    x = check_nearest(rows, c, equal, rng.integers(-3, 4, d).astype(float))
    np.testing.assert_allclose(check_nearest(rows, c, equal, x), x, atol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_nearest_super_modular_tables(size):
    rng = np.random.default_rng(0)
    rows = second_differences(size)
    for scale in (1e-6, 1.0, 1e6):
        for _ in range(5):
            w = scale * rng.normal(size=size * size)
            check_nearest(rows, np.zeros(len(rows)), np.zeros(len(rows), bool), w)


# Rows --------------------------------------------------------------------------------------------


def test_super_modular_rows_of_tables_directed_or_not():
    for symmetric in (False, True):
        layout = WeightLayout([Block("pair", "shared", (4, 4), symmetric=symmetric)], 0)
        rows = assemble([SuperModular("pair")], layout)
        rng = np.random.default_rng(0)
        for _ in range(50):
            table = rng.normal(size=(4, 4))
            # Super-modular in half of the cases.
            table = (
                table.cumsum(0).cumsum(1)
                if rng.random() < 0.5
                else np.abs(table).cumsum(0).cumsum(1)
            )
            full = np.triu(table) + np.triu(table, 1).T if symmetric else table
            w = np.zeros(layout.dim)
            layout.view(w, "pair")[:] = np.triu(table) if symmetric else table
            least = (second_differences(4) @ full.ravel()).max()
            assert (rows.violation(w) > 1e-12) == (least > 1e-12)
        assert len(rows.c) == (6 if symmetric else 9)


def test_super_modular_rows_of_each_edge_and_of_each_feature():
    edges = [[0, 1], [1, 2], [0, 2]]
    X, Y = np.zeros((2, 3, 1)), [[0, 1, 1], [0, 0, 1]]
    space, _ = MRFStructure(edges, tables="per-edge").make_space(X, Y)
    assert assemble([SuperModular("pair")], space.layout).A.shape[0] == 3
    # For nodes with 2, 3 and 1 states, only the first edge has a second difference, in one row.
    space, _ = MRFStructure(edges, tables="per-edge", n_states=[2, 3, 1]).make_space(
        X, [[0, 1, 0], [1, 2, 0]]
    )
    rows = assemble([SuperModular("pair")], space.layout)
    assert len(rows.c) == 2 and not space.layout.unread("pair")[0, :2].any()
    assert space.layout.unread("pair")[0, 2].all() and space.layout.unread("pair")[1, 0, 1:].all()
    features = np.zeros((3, 2))
    X = [(x, features) for x in X]
    for directed, count in ((False, 2 * 1), (True, 2 * 1)):
        structure = MRFStructure(edges, tables="features", directed=directed)
        space, examples = structure.make_space(X, Y)
        assert len(assemble([SuperModular("pair")], space.layout, examples).c) == count


@pytest.mark.parametrize("solver", [BCFW, SGD, CuttingPlane])
@pytest.mark.parametrize("sparse", [False, True])
def test_negative_features_of_edges_are_refused_by_name(solver, sparse):
    graph, features = [[0, 1], [1, 2]], np.array([[1.0, 0.5], [0.2, 0.0]])
    worse = features.copy()
    worse[1, 1] = -0.25
    if sparse:
        features, worse = np.kron(features, np.eye(1, 12)), np.kron(worse, np.eye(1, 12))
    X = [(np.ones((3, 1)), graph, features), (np.ones((3, 1)), graph, worse)]
    model = StructuredSVM(
        MRFStructure(tables="features"), solver=solver(constraints=[SuperModular("pair")])
    )
    with pytest.raises(ValueError, match=r"example 1, edge 1: feature \d+ is -0.25; SuperModular"):
        model.fit(X, [[0, 1, 1], [0, 0, 1]])


def test_coefficients_of_weights_that_nothing_reads_are_refused_by_name():
    X, Y = [(np.ones((2, 1)), [[0, 1]])], [[0, 1]]
    rows = LinearConstraint({"pair": [[-1.0, 1.0], [1.0, -1.0]]}, upper=0)
    for solver in (BCFW, SGD, CuttingPlane):
        model = StructuredSVM(MRFStructure(), solver=solver(constraints=[rows]))
        with pytest.raises(
            ValueError, match=r"'pair' has the coefficient 1 at \[1, 0\].*symmetric, and \[0, 1\]"
        ):
            model.fit(X, Y)
        model.set_params(structure=MRFStructure(directed=True), tol=0.99).fit(X, Y)
    folded = LinearConstraint({"pair": sp.csr_matrix([[-1.0, 2.0, 0.0, -1.0]])}, upper=0)
    StructuredSVM(MRFStructure(), solver=BCFW(constraints=[folded])).fit(X, Y)
    shape = MRFStructure([[0, 1]], n_states=[1, 2])
    wide = LinearConstraint({"pair": [[0, 0], [0, 1]]}, upper=0)
    model = StructuredSVM(shape, solver=BCFW(constraints=[wide]))
    with pytest.raises(
        ValueError, match=r"at \[1, 1\], a weight.*no node or edge has these states"
    ):
        model.fit([np.ones((2, 1))], [[0, 1]])


def test_bounds_leave_weights_alone_that_nothing_reads():
    X, Y = [(np.ones((2, 1)), [[0, 1]])], [[0, 1]]
    solver = BCFW(constraints=[WeightBounds("pair", lower=0.25)])
    table = StructuredSVM(MRFStructure(), solver=solver).fit(X, Y).coef_["pair"]
    assert table[1, 0] == 0 and (table[np.triu_indices(2)] >= 0.25 - 1e-12).all()


def test_blocks_say_what_is_read():
    with pytest.raises(ValueError, match="expected square tables where symmetric"):
        Block("pair", "shared", (2, 3), symmetric=True)
    with pytest.raises(ValueError, match=r"unread has shape \(2,\), expected \(2, 2\)"):
        Block("pair", "shared", (2, 2), unread=np.zeros(2, bool))
    layout = WeightLayout([Block("edge", "edge", (2, 2), symmetric=True)], 1, n_edge_features=3)
    assert layout.unread("edge").shape == (3, 2, 2) and layout.unread("edge").sum() == 3
    assert K == 3  # what test_cutting_plane's rows are made for


def test_models_under_constraints_are_saved(tmp_path):
    X, Y = [(np.ones((2, 1)), [[0, 1]])], [[0, 1]]
    constraints = [
        SuperModular("pair"),
        WeightBounds("node", lower=-np.inf, upper=[[1.0, 2.0]] * 2),
        LinearConstraint({"pair": np.eye(2)}, upper=1.0),
    ]
    model = StructuredSVM(MRFStructure(), solver=BCFW(constraints=constraints)).fit(X, Y)
    model.save(tmp_path / "m")
    again = structsolve.load(tmp_path / "m")
    assert [type(c) for c in again.solver.constraints] == [type(c) for c in constraints]
    np.testing.assert_array_equal(again.fit(X, Y).coef_["pair"], model.coef_["pair"])
    with pytest.raises(ValueError, match="found the constraint 'Anything', expected one of"):
        revive({"__constraint__": "Anything", "params": {}})
