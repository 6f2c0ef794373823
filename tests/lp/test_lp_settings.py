"""Solvers of linear programs: settings, limits, statuses, and independence of n_jobs."""

import json

import cvxpy
import numpy as np
import pytest
from checks import refused
from lp_cases import GRAPH, NETWORK, TREE, packed, vectors
from sklearn.base import clone

import structsolve
from structsolve import StructuredSVM
from structsolve.estimators.codec import plain, revive
from structsolve.hookspecs import Named
from structsolve.lp import Answer, Backend, Cvxpy, Highs, LinearDecoder, ask_polytopes, make_backend
from structsolve.lp.ask import ask_oracle, ask_program_power
from structsolve.lp.base import Program
from structsolve.structure import calls
from structsolve.structure.ask import make_layout

# -- names and settings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, params",
    [
        ("lp:1e-9", {"tolerance": 1e-9, "integer": False}),
        ("lp:1e-8,time_limit=2,random_seed=3", {"time_limit": 2, "random_seed": 3}),
        ("ilp:mip_rel_gap=0.1", {"integer": True, "mip_rel_gap": 0.1}),
        ("cvxpy:clarabel", {"solver": "clarabel", "batch": None}),
        ("cvxpy:OSQP,eps_abs=1e-8,batch=0", {"solver": "OSQP", "eps_abs": 1e-8, "batch": 0}),
        ("cvxpy-ilp:scipy,time_limit=5", {"integer": True, "time_limit": 5}),
        ("cvxpy:SCS,verbose=true,warm_start=True", {"verbose": True, "warm_start": True}),
    ],
)
def test_names_carry_options(name, params):
    backend = make_backend(name)
    own = backend.get_params()
    assert {k: own[k] for k in params} == params
    assert make_backend(backend.label).label == backend.label
    again = clone(backend)
    assert again is not backend and again.get_params() == own


def test_what_the_solver_is_told():
    backend = Cvxpy("osqp", tolerance=1e-5, time_limit=2, max_iter=7)
    told = {"eps_abs": 1e-5, "eps_rel": 1e-5, "max_iter": 7, "time_limit": 2.0, "polishing": False}
    assert backend.solver_options() == told
    assert Cvxpy("GLPK", time_limit=0.5).solver_options() == {"tm_lim": 500}
    inner = {"limits/time": 3.0, "limits/gap": 0.1, "parallel/maxnthreads": 2}
    backend = Cvxpy("SCIP", time_limit=3, threads=2, **{"scip_params.limits/gap": 0.1})
    assert backend.solver_options() == {"scip_params": inner}
    assert Cvxpy("GUROBI", True).solver_options() == {"MIPGap": 0.0, "MIPGapAbs": 0.0}
    given = {"method": "highs"}
    options = Cvxpy("SCIPY", scipy_options=given).solver_options()
    options["scipy_options"].pop("method")
    assert given == {"method": "highs"}


def test_set_params_checks_as_the_constructor_does():
    backend = Cvxpy("OSQP").set_params(eps_abs=1e-8, tolerance=1e-7)
    assert backend.solver_options()["eps_abs"] == 1e-8
    refused("tolerance is 7", backend.set_params, tolerance=7)
    assert backend.tolerance == 1e-7
    model = StructuredSVM("multiclass", oracle=Highs()).set_params(oracle__time_limit=3)
    assert model.oracle.time_limit == 3

    class Plain(Backend):
        def __init__(self, depth=1):
            self.depth = depth

    assert Plain().set_params(depth=2).get_params() == {"depth": 2}
    refused("has no parameter 'width'", Plain().set_params, width=1)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Highs(tolerance=True), "tolerance is True, expected a number from 1e-10"),
        (lambda: Highs(time_limit=-1), "time_limit is -1, expected seconds"),
        (lambda: Highs(threads=0.5), "threads is 0.5, expected an integer"),
        (lambda: Cvxpy("OSQP", batch=-1), "batch is -1, expected rows"),
        (lambda: Cvxpy("OSQP", threads=2), "threads: no such setting of OSQP is known"),
        (lambda: Cvxpy("MOSEK", licence={}), "licence is for GUROBI; MOSEK reads"),
        (lambda: make_backend("lp:time_limt=3"), "HiGHS refuses the option time_limt=3"),
        (lambda: make_backend("lp:1e-9,1e-8"), "lp:1e-9,1e-8.*positional"),
        (lambda: make_backend("cvxpy-ilp:CLARABEL"), "CLARABEL solves no integer programs; of"),
        (lambda: make_backend("cvxpy:,eps_abs=1"), r"'cvxpy:,eps_abs=1': found ''"),
        (lambda: make_backend("cvxpy:Nobody"), "'cvxpy:NOBODY', but cvxpy finds no such solver"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    refused(message, make)


@pytest.mark.parametrize("oracle", ["cvxpy:OSQP,eps_ab=1e-8", "cvxpy:CLARABEL,tol=1"])
def test_options_that_a_solver_refuses_are_named(oracle):
    model = StructuredSVM("multiclass", oracle=oracle)
    refused("example 0: .* refuses its options .*(eps_ab|tol)", model.fit, np.eye(2), [0, 1])


def test_files_keep_the_settings_and_no_licence(tmp_path):
    path = tmp_path / "m.structsolve"
    X, y = np.eye(3), [0, 1, 2]
    for oracle in (
        Highs(tolerance=1e-8, random_seed=3, constraints=[({"node": [1.0, 1, 1]}, 1.0, 1.0)]),
        Cvxpy("SCIPY", integer=True, batch=5, scipy_options={"presolve": True}),
        "cvxpy:OSQP,eps_abs=1e-8",
    ):
        StructuredSVM("multiclass", oracle=oracle, tol=0.1).fit(X, y).save(path)
        again = structsolve.load(path)
        assert again.predict(X).tolist() == y
        if isinstance(oracle, str):
            assert again.oracle == oracle
        else:
            revived, params = again.oracle.get_params(), oracle.get_params()
            assert type(again.oracle) is type(oracle)
            assert json.dumps(revived) == json.dumps(params)


def test_files_name_no_other_files():
    backend = Highs(log_file="mine.log", random_seed=3)
    saved = plain(backend, "oracle")
    assert "log_file" not in saved["params"] and saved["params"]["random_seed"] == 3
    assert revive(saved, "lp_backends").options == {"random_seed": 3}
    saved["params"]["log_file"] = "/etc/passwd"
    refused("it sets 'log_file' of a solver", revive, saved, "lp_backends")


def test_a_backend_that_no_plugin_makes_is_saved_by_name(tmp_path):
    class Own(Highs):
        name = "nobody-makes-me"

    model = StructuredSVM("multiclass", tol=0.1).fit(np.eye(2), [0, 1]).set_params(oracle=Own())
    model.save(tmp_path / "m.structsolve")
    assert structsolve.load(tmp_path / "m.structsolve").oracle == "nobody-makes-me"


# -- limits and tolerances: what is certified holds -----------------------------------------------

LIMITED = [
    Highs(simplex_iteration_limit=4),
    Highs(time_limit=0.0),
    Highs(integer=True, time_limit=0.0),
    Highs(tolerance=0.01),
    Cvxpy("CLARABEL", max_iter=4),
    Cvxpy("HIGHS", simplex_iteration_limit=3),
    Cvxpy("HIGHS", integer=True, time_limit=0.0),
    Cvxpy("SCS", max_iters=20),
    Cvxpy("OSQP", eps_abs=1e-3, eps_rel=1e-3),
]


@pytest.fixture(scope="module")
def trained():
    structure = structsolve.get_structure("chain")
    X, Y = structure.sample(0, n=6, size=3)
    best = StructuredSVM(structure, alpha=0.1, tol=1e-6, max_iter=500).fit(X, Y)
    return structure, X, Y, best


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate", "ignore:stopped after")
@pytest.mark.parametrize("oracle", LIMITED[:2] + LIMITED[5:], ids=lambda backend: backend.label)
def test_training_under_a_limit_claims_no_more_than_holds(oracle, trained):
    structure, X, Y, best = trained
    model = StructuredSVM(structure, alpha=0.1, oracle=oracle, max_iter=3).fit(X, Y)
    for record in model.history_:
        assert record["dual"] <= best.history_[-1]["primal"] + 1e-9
        assert record["primal"] >= best.history_[-1]["dual"] - 1e-9
        assert record["gap"] == pytest.approx(record["primal"] - record["dual"])
        assert "violation" not in record
    assert model.history_[-1]["certified"]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("oracle", LIMITED, ids=lambda backend: backend.label)
@pytest.mark.parametrize("name", ["multilabel", "permutation"])
def test_bounds_of_limited_programs_hold(name, oracle):
    rng = np.random.default_rng(7)
    space, examples = packed(name, {}, n=2)
    layout = make_layout(space, examples)
    program = ask_oracle(space, oracle)(layout)
    bind = ask_program_power(space, oracle, "relaxation")
    relaxation = None if bind is None else bind(layout)
    assert not program.exact
    for i in range(examples.n):
        labels, mu, used = vectors(space, layout, i)
        for scale in (0, 2, 100):
            theta = np.where(used, rng.integers(-scale, scale + 1, used.size), 0.0)
            label, value, bound = calls.argmax(program, i, theta)
            row = np.flatnonzero((labels == label).all(axis=1))
            assert value == pytest.approx(mu[row[0]] @ theta, abs=1e-9)
            assert bound >= (mu @ theta).max() - 1e-9
            if relaxation is not None:
                point, _, value, bound = calls.relax(relaxation, i, theta)
                assert bound >= max(value, (mu @ theta).max()) - 1e-9
                assert value == pytest.approx(point @ theta, abs=1e-6)


def test_a_generous_limit_changes_nothing(trained):
    structure, X, Y, _ = trained
    fits = [
        StructuredSVM(structure, alpha=0.1, solver="cutting-plane", oracle=oracle, tol=0.05).fit(
            X, Y
        )
        for oracle in (Highs(tolerance=1e-7), Highs(time_limit=1000.0))
    ]
    last = [fit.history_[-1] for fit in fits]
    assert last[1]["primal"] == pytest.approx(last[0]["primal"], rel=0.05)
    assert fits[1].stop_reason_ == "converged"


def test_time_limits_count_each_program_alone():
    polytope = ask_polytopes(*packed("permutation", {}, n=1)).build(0)
    program = Highs(time_limit=50).program(polytope)
    for _ in range(3):  # HiGHS' clock runs on
        before = program.highs.getRunTime()
        assert not program.solve(np.ones(polytope.size)).limited
        assert program.highs.getOptionValue("time_limit")[1] == before + 50
    assert before > 0


# -- solvers that may be missing, against enumeration ---------------------------------------------

TRIED = {
    "chain": ("chain", {}),
    "label sets": ("multilabel", {}),
    "closed sets": ("dag", {"hierarchy": GRAPH}),
    "leaf unions": ("dag", {"hierarchy": GRAPH, "labels": "leaf-union"}),
    "unions on trees": ("dag", {"hierarchy": TREE, "labels": "leaf-union"}),
    "permutation": ("permutation", {}),
    "paths": ("flow", {"network": NETWORK}),
}
OPTIONAL = ["SCS", "OSQP", "ECOS", "CVXOPT", "PDLP", "CBC", "GLPK", "SCIP", "GUROBI", "MOSEK"]
WHOLE = ["HIGHS", "SCIPY", "CBC", "GLPK", "SCIP", "GUROBI"]


def needed(name):
    if name not in cvxpy.installed_solvers():
        pytest.skip(f"cvxpy finds no {name} here")


@pytest.mark.parametrize(
    "oracle", [f"cvxpy:{s}" for s in OPTIONAL] + [f"cvxpy-ilp:{s}" for s in WHOLE]
)
def test_every_solver_finds_the_best_labels(oracle):
    needed(oracle.partition(":")[2])
    for name, params in TRIED.values():
        rng = np.random.default_rng(11)
        space, examples = packed(name, params, n=1)
        layout = make_layout(space, examples)
        program = ask_oracle(space, oracle)(layout)
        _, mu, used = vectors(space, layout, 0)
        for scale in (0, 1, 50):
            theta = np.where(used, rng.integers(-scale, scale + 1, used.size), 0.0)
            best = (mu @ theta).max()
            try:
                _, value, bound = calls.argmax(program, 0, theta)
            except ValueError as error:
                if "licence" in str(error) or "cannot be loaded" in str(error):
                    pytest.skip(str(error))
                raise
            assert value == pytest.approx(best, abs=1e-6 * (1 + scale))
            assert bound >= best - 1e-9


def test_bounds_of_variables_are_no_rows():
    space, examples = packed("permutation", {}, n=1)
    polytope = ask_polytopes(space, examples).build(0)
    program = Cvxpy("HIGHS").program(polytope)
    upper = polytope.upper.copy()
    upper[0] = 0
    for top, rows in ((None, polytope.A.shape[0]), (upper, polytope.A.shape[0] + 1)):
        program.solve(np.arange(9.0), top)
        data = program._problem(top, None).get_problem_data("HIGHS")[0]
        if data["lower_bounds"] is None:
            pytest.skip("this cvxpy gives HiGHS bounds as rows")
        assert data["A"].shape == (rows, polytope.size)
    half = np.full(polytope.size, 0.5)
    assert program.solve(np.arange(9.0), half).x.max() == pytest.approx(0.5)


# -- threads, batches and warm starts -------------------------------------------------------------


@pytest.mark.parametrize(
    "oracle", ["lp", "cvxpy:HIGHS,batch=40", "cvxpy-ilp:SCIPY,batch=0", "cvxpy:OSQP"]
)
def test_threads_and_batches_do_not_change_predictions(oracle):
    structure = structsolve.get_structure("multilabel")
    rng = np.random.default_rng(4)
    X, Y = rng.integers(-1, 2, (13, 3)).astype(float), rng.integers(0, 2, (13, 3))
    model = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(X, Y).set_params(oracle=oracle)
    alone = model.predict(X)
    assert model.set_params(n_jobs=3).predict(X).tolist() == alone.tolist()


@pytest.mark.parametrize("oracle", ["cvxpy:OSQP,warm_start=True", "cvxpy:SCS,warm_start=True"])
def test_warm_starts_depend_on_the_example_alone(oracle, trained):
    structure, X, Y, _ = trained
    settings = {"oracle": oracle, "solver": "cutting-plane", "alpha": 0.1, "tol": 0.1}
    fits = [StructuredSVM(structure, n_jobs=n, **settings).fit(X[:4], Y[:4]) for n in (1, 2)]
    assert all(np.array_equal(fits[0].coef_[k], fits[1].coef_[k]) for k in fits[0].coef_)


def test_warm_starts_are_taken_where_the_solver_has_them():
    space, examples = packed("permutation", {}, n=1, size=5)
    polytope = ask_polytopes(space, examples).build(0)
    c = np.random.default_rng(0).normal(size=polytope.size)
    program = Cvxpy("OSQP", warm_start=True).program(polytope)
    cold = program.solve(c)
    steps = program.problems["", False].solver_stats.num_iters
    warm = program.solve(c, start=cold.start)
    assert program.problems["", False].solver_stats.num_iters < steps
    assert warm.x == pytest.approx(cold.x, abs=1e-5)
    assert Cvxpy("OSQP").program(polytope).solve(c).start is None
    cold = LinearDecoder(ask_polytopes(space, examples), Highs(warm_start=False), warm=True)
    assert not cold.warm


class Fails(Program):
    def __init__(self, message):
        self.message = message

    def solve(self, c, upper=None, start=None, sides=None):
        if self.message:
            raise ValueError(self.message)
        return Answer(None, None, None, None, True)


class Own(Backend):
    """An external backend: ends before it has a point, or fails."""

    name, accurate = "own", False

    def __init__(self, message="", ends_early=True):
        self.message, self.ends_early = message, ends_early

    def program(self, polytope):
        return Fails(self.message)


@pytest.mark.filterwarnings("ignore:stopped after")
def test_backends_from_outside_may_end_early_or_fail(registered):
    registered("own-lp", structsolve_lp_backends=lambda: [Named("own", Own, "never finds any")])
    X, y = np.eye(3), [0, 1, 2]
    model = StructuredSVM("multiclass", oracle="own", max_iter=2).fit(X, y)
    assert model.history_[-1]["gap"] > 0
    assert model.history_[-1]["dual"] <= 1
    # No limit was requested: HiGHS failed.
    model = StructuredSVM("multiclass", oracle=Own(ends_early=False), max_iter=50).fit(X, y)
    assert model.stop_reason_ == "converged" and model.history_[-1]["certified"]
    model = StructuredSVM("multiclass", oracle=Own("out of paper"))
    refused(r"example \d: out of paper", model.fit, X, y)
