"""Linear programs over declared polytopes: backends, native oracles, enumeration."""

import threading

import numpy as np
import pytest
from checks import in_threads, refused, same
from hypothesis import given, settings
from hypothesis import strategies as st
from lp_cases import STRUCTURES, FreePolytopes, WithPolytopes, packed, vectors
from python_structures import PyChainStructure
from reference.cones import in_cone
from scipy import sparse
from sklearn.base import clone

import structsolve
from structsolve import StructuredSVM
from structsolve.hookspecs import Named
from structsolve.lp import (
    Backend,
    Cvxpy,
    Highs,
    LinearDecoder,
    Polytope,
    Polytopes,
    ask_polytopes,
    convex_program,
    make_backend,
)
from structsolve.lp.ask import ask_oracle, ask_program_power
from structsolve.lp.polytope import block_diagonal, bound_of
from structsolve.structure import calls
from structsolve.structure.ask import ask_power, make_layout
from structsolve.structure.base import ConePair
from structsolve.testing import BrokenPromise, check_backend, check_structure

BACKENDS = ["lp", "ilp", "cvxpy:CLARABEL", "cvxpy:HIGHS", "cvxpy:SCIPY"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name, params", STRUCTURES)
def test_backends_agree_with_enumeration_and_the_native_oracle(name, params, backend):
    rng = np.random.default_rng(1)
    space, examples = packed(name, params)
    layout = make_layout(space, examples)
    native, oracle = ask_oracle(space)(layout), ask_oracle(space, backend)(layout)
    relaxation, other_relaxation = (
        None if bind is None else bind(layout)
        for bind in (
            ask_program_power(space, backend, "relaxation"),
            ask_power(space, "relaxation"),
        )
    )
    assert (relaxation is None) == (backend == "ilp")
    for i in range(examples.n):
        labels, mu, used = vectors(space, layout, i)
        for scale in (0, 1, 3, 100):
            theta = np.where(used, rng.integers(-scale, scale + 1, used.size), 0.0)
            best = (mu @ theta).max()
            label, value, bound = calls.argmax(oracle, i, theta)
            row = np.flatnonzero((labels == label).all(axis=1))
            assert row.size == 1
            assert value == pytest.approx(mu[row[0]] @ theta, abs=1e-9)
            assert value == pytest.approx(best, abs=1e-6 * (1 + scale))
            assert bound >= best - 1e-9
            if native.exact:
                assert value == pytest.approx(calls.argmax(native, i, theta)[1], abs=1e-6)
            if relaxation is None:
                continue
            point, label, value, bound = calls.relax(relaxation, i, theta)
            assert bound >= value
            assert value == pytest.approx(point @ theta, abs=1e-5 * (1 + scale))
            assert value >= best - 1e-6 * (1 + scale)
            if oracle.exact:
                assert value == pytest.approx(best, abs=1e-5 * (1 + scale))
            if other_relaxation is not None and not native.exact:
                other = calls.relax(other_relaxation, i, theta)[2]
                assert value == pytest.approx(other, abs=1e-5 * (1 + scale))


@pytest.mark.parametrize("solver", convex_program.COMPILED)
@pytest.mark.parametrize("integer", [False, True])
def test_programs_compiled_once_answer_as_cvxpy_does(monkeypatch, solver, integer):
    if integer and solver not in ("HIGHS", "SCIPY"):
        pytest.skip("no integer programs")
    space, examples = packed("multilabel", {})
    polytope, backend = ask_polytopes(space, examples).build(0), Cvxpy(solver, integer)
    quick, slow = backend.program(polytope), backend.program(polytope)
    rng = np.random.default_rng(3)
    for k in range(12):
        c, upper = (
            rng.normal(scale=10.0 ** (k % 3), size=polytope.A.shape[1]),
            polytope.upper.copy(),
        )
        upper[0] = 0
        # Bounds come between, and change nothing afterwards.
        bounds = upper if k % 4 == 3 else None
        with monkeypatch.context() as patch:
            patch.setattr(convex_program, "COMPILED", ())
            expected = slow.solve(c, bounds)
        answer = quick.solve(c, bounds)
        same([*answer[:2], *answer[3:]], [*expected[:2], *expected[3:]])
    assert quick.compiled and slow.compiled is None


def test_forbidden_parts():
    rng = np.random.default_rng(2)
    space, examples = packed("chain", {})
    layout = make_layout(space, examples)
    oracles = [ask_oracle(space, name)(layout) for name in ("lp", "ilp", "cvxpy:CLARABEL")]
    for i in range(examples.n):
        _, mu, used = vectors(space, layout, i)
        for _ in range(10):
            theta = np.where(used, rng.normal(size=used.size), 0.0)
            theta[used & (rng.random(used.size) < 0.2)] = -np.inf
            with np.errstate(invalid="ignore"):
                scores = np.where(mu > 0, mu * theta, 0).sum(axis=1)
            for oracle in oracles:
                _, value, _ = calls.argmax(oracle, i, theta)
                assert value == pytest.approx(scores.max(), abs=1e-6)
    with pytest.raises(ValueError, match="example 0: found scores that are NaN"):
        LinearDecoder(ask_polytopes(space, examples), Highs()).relax(
            0, np.full(layout.sizes(0)[0], np.nan)
        )


@pytest.mark.parametrize("backend", ["lp", "cvxpy:CLARABEL"])
@pytest.mark.parametrize("name", ["chain", "multiclass", "permutation"])
def test_constrained_programs_are_at_least_the_best_label_in_the_cone(name, backend):
    rng = np.random.default_rng(3)
    space, examples = packed(name, {}, n=3)
    layout = make_layout(space, examples)
    cones = ask_program_power(space, backend, "cones")(layout)
    seen = set()
    for i in range(examples.n):
        _, mu, used = vectors(space, layout, i)
        for _ in range(15):
            theta = np.where(used, rng.integers(-3, 4, used.size), 0.0)
            cost = np.where(used, rng.integers(0, 3, used.size), 0.0)
            sides = [(2.0, 0.5), (np.inf, 1.0)][rng.integers(2)]
            cone = ConePair(1.0, 0.5, float(rng.integers(1, 4)), *sides, False)
            h, g = mu @ theta + cone.h0, mu @ cost + cone.g0
            inside = in_cone(cone, h, g, tol=0)
            answer = calls.argmax_in_cone(cones, i, theta, cost, cone)
            seen.add(None if answer is None else answer[1] is None)
            if inside.any():
                assert answer is not None
                assert answer[2] >= (h + cone.lam * g)[inside].max() - 1e-5
            if answer is not None:
                point = mu[0] * 0 + answer[0] if answer[0] is not None else None
                if point is not None:
                    value = point @ (theta + cone.lam * cost) + cone.h0 + cone.lam * cone.g0
                    assert answer[2] == pytest.approx(value, abs=1e-5)
    assert len(seen) > 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_bounds_hold_for_any_dual_and_are_tight_at_the_optimal_one(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6), rng.integers(0, 5)
    A = sparse.csr_matrix(rng.integers(-1, 2, (m, n)).astype(float))
    inside = A @ rng.random(n)
    low = np.where(rng.random(m) < 0.3, -np.inf, inside - rng.random(m))
    high = np.where(rng.random(m) < 0.3, np.inf, inside + rng.random(m))
    equal = rng.random(m) < 0.3
    low[equal] = high[equal] = inside[equal]
    polytope = Polytope(A, low, high, np.arange(n), lambda x: x)
    c = rng.normal(size=n)
    answer = Highs().program(polytope).solve(c)
    assert bound_of(polytope, c, answer.dual) == pytest.approx(c @ answer.x, abs=1e-7)
    assert bound_of(polytope, c, rng.normal(size=m)) >= c @ answer.x - 1e-9


@pytest.mark.parametrize("solver", ["CLARABEL", "HIGHS", "SCIPY"])
def test_duals_of_cvxpy_are_those_of_highs(solver):
    rng = np.random.default_rng(4)
    for _ in range(10):
        A = sparse.csr_matrix(rng.normal(size=(3, 4)))
        inside = A @ rng.random(4)
        low, high = inside - [0, 1, 1], inside + [0, 1, 1]
        low[2], high[1] = -np.inf, np.inf
        polytope = Polytope(A, low, high, np.arange(4), lambda x: x)
        c = rng.normal(size=4)
        answer = Cvxpy(solver).program(polytope).solve(c)
        if answer.dual is not None:
            assert bound_of(polytope, c, answer.dual) == pytest.approx(c @ answer.x, abs=1e-5)


@pytest.mark.parametrize("oracle", ["ilp", "cvxpy-ilp:HIGHS", "cvxpy-ilp:SCIPY"])
def test_integer_programs_keep_only_the_integer_variables_integral(oracle):
    half = sparse.csr_matrix(np.full((1, 4), 2.0))
    for integer, best in (([1, 0, 1, 0], 2.5), ([0, 0, 0, 1], 2.5), ([1, 1, 1, 1], 2.0)):
        polytope = Polytope(half, [0.0], [5.0], np.arange(4), lambda x: x, integer=integer)
        answer = make_backend(oracle).program(polytope).solve(np.ones(4))
        assert answer.x.sum() == pytest.approx(best)


def test_training_by_programs_reaches_the_same_optimum():
    structure = structsolve.get_structure("chain")
    X, Y = structure.sample(0, n=6, size=3)
    native = StructuredSVM(structure, alpha=0.1, tol=1e-6, max_iter=500).fit(X, Y)
    for solver, oracle in (("bcfw", "lp"), ("cutting-plane", "lp"), ("bcfw", "cvxpy:CLARABEL")):
        model = StructuredSVM(
            structure, alpha=0.1, solver=solver, oracle=oracle, tol=1e-5, max_iter=500
        ).fit(X, Y)
        last, best = model.history_[-1], native.history_[-1]
        assert last["primal"] == pytest.approx(best["primal"], rel=1e-4)
        assert last["dual"] <= best["primal"] + 1e-9
        distance = sum(((model.coef_[k] - native.coef_[k]) ** 2).sum() for k in model.coef_)
        assert distance <= 2 * (last["primal"] - best["dual"]) / 0.1 + 1e-9


def test_training_on_a_relaxation_reaches_that_of_the_native_relaxation():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6, 2))
    Y = rng.integers(0, 2, (6, 4))
    settings = {"alpha": 0.3, "solver": "cutting-plane", "tol": 1e-5, "max_iter": 500}
    roof = structsolve.get_structure("multilabel", oracle="roof-duality")
    native = StructuredSVM(roof, **settings).fit(X, Y)
    model = StructuredSVM("multilabel", oracle="lp", **settings).fit(X, Y)
    assert model.history_[-1]["primal"] == pytest.approx(native.history_[-1]["primal"], rel=1e-4)


def test_jobs_do_not_change_the_answer():
    structure = structsolve.get_structure("chain")
    X, Y = structure.sample(1, n=8, size=3)
    settings = {"oracle": "lp", "solver": "cutting-plane", "alpha": 0.1}
    fits = [StructuredSVM(structure, n_jobs=jobs, **settings).fit(X, Y) for jobs in (1, 2)]
    assert all(np.array_equal(fits[0].coef_[k], fits[1].coef_[k]) for k in fits[0].coef_)


@pytest.mark.parametrize("oracle", ["cvxpy:CLARABEL", "cvxpy:HIGHS"])
def test_batches_decode_as_single_programs_do(oracle):
    structure = structsolve.get_structure("chain")
    X, Y = structure.sample(2, n=30, size=3)
    # At the default tol two labels of an example without features tie but for 1e-15.
    model = StructuredSVM(structure, alpha=0.1, tol=1e-3).fit(X, Y)
    expected = model.predict(X)
    model.set_params(oracle=oracle)
    assert [y.tolist() for y in model.predict(X)] == [y.tolist() for y in expected]
    allowed = [[[0, 1]] * len(x) for x in X]
    masked = model.predict(X, allowed=allowed)
    model.set_params(oracle=None)
    assert [y.tolist() for y in model.predict(X, allowed=allowed)] == [y.tolist() for y in masked]
    model.set_params(oracle=oracle)
    with pytest.raises(ValueError, match="example .*: the constraints leave no label"):
        model.predict(X, forbidden=[(a, b) for a in range(3) for b in range(3)])


def test_products_are_products():
    space, examples = packed("chain", {})
    first, second = (ask_polytopes(space, examples).build(i) for i in (0, 1))
    product = block_diagonal([first, second])
    assert product.A.shape == tuple(np.add(first.A.shape, second.A.shape))
    refused("no label of its own", product.decode, np.zeros(product.size))


class Slow(Backend):
    """An external backend: tries every vertex, by enumeration of 0-1 points."""

    name = "slow"
    calls = 0

    def program(self, polytope):
        backend = self

        class Program(structsolve.lp.Program):
            def solve(self, c, upper=None, start=None, sides=None):
                type(backend).calls += 1
                points = np.indices((2,) * polytope.size).reshape(polytope.size, -1).T
                rows = points @ polytope.A.T.toarray()
                fits = ((polytope.low - 1e-9 <= rows) & (rows <= polytope.high + 1e-9)).all(axis=1)
                best = points[fits][(points[fits] @ c).argmax()]
                return structsolve.lp.Answer(best.astype(float), None)

        return Program()


def test_a_plugin_brings_a_backend(registered):
    named = [Named("slow", Slow, "looks at every point")]
    registered("slow-lp", structsolve_lp_backends=lambda: named)
    X, y = np.eye(3), ["a", "b", "c"]
    model = StructuredSVM("multiclass", oracle="slow", alpha=0.1).fit(X, y)
    assert Slow.calls > 0
    assert model.predict(X).tolist() == y
    listed = [p for p in structsolve.list_plugins() if p["name"] == "slow-lp"]
    assert listed[0]["lp_backends"] == ["slow"]


@pytest.mark.parametrize(
    "oracle, error, message",
    [
        ("simplex", ValueError, r"unknown lp backend 'simplex'; known: \['cvxpy', 'cvxpy-ilp',"),
        ("cvxpy", ValueError, "'cvxpy' needs the name of a solver"),
        ("cvxpy:NONE", ValueError, "cvxpy finds no such solver; installed: "),
        (3, TypeError, "oracle is 3, expected None, a name"),
    ],
)
def test_unknown_backends_are_refused(oracle, error, message):
    with pytest.raises(error, match=message):
        StructuredSVM("multiclass", oracle=oracle).fit(np.eye(2), [0, 1])


def test_structures_without_a_polytope_are_refused():
    with pytest.raises(ValueError, match="structure 'py-chain' declares no polytope"):
        StructuredSVM(PyChainStructure(), oracle="lp").fit([[[1.0]], [[2.0]]], [[0], [1]])


def test_backends_pass_through_clone_save_and_load(tmp_path):
    model = StructuredSVM("multiclass", oracle=Cvxpy("CLARABEL"), alpha=0.1, tol=0.1)
    assert clone(model).oracle.solver == "CLARABEL"
    model.fit(np.eye(3), [0, 1, 2]).save(tmp_path / "m.structsolve")
    again = structsolve.load(tmp_path / "m.structsolve")
    assert again.oracle.get_params() == model.oracle.get_params()
    assert again.predict(np.eye(3)).tolist() == [0, 1, 2]


def test_sizes_that_do_not_fit_are_refused():
    A, one = sparse.csr_matrix(np.ones((1, 2))), np.ones(1)
    with pytest.raises(ValueError, match=r"low has the shape \(2,\), expected \(1,\)"):
        Polytope(A, np.ones(2), one, np.arange(2), None)
    refused("parts has the shape", Polytope, A, one, one, np.arange(3), None)
    with pytest.raises(ValueError, match="upper is not finite"):
        Polytope(A, one, one, np.arange(2), None, upper=np.array([1, np.inf]))


def test_threads_share_a_decoder():
    space, examples = packed("permutation", {}, n=4, size=4)
    decoder = LinearDecoder(ask_polytopes(space, examples), Highs(), warm=True)
    size = make_layout(space, examples).sizes(0)[0]
    thetas = np.random.default_rng(6).normal(size=(40, size))
    alone = [decoder.decode(0, theta)[1] for theta in thetas]
    values = {}

    def work(k):
        values[k] = [decoder.decode(k, theta)[1] for theta in thetas]

    in_threads(work, range(4))
    assert all(values[k] == pytest.approx(alone) for k in range(4))


# -- the conformance kit: polytopes that each get one thing wrong ---------------------------------


class Silent(FreePolytopes):
    def __init__(self, layout, examples):
        super().__init__(layout, examples)
        self.note = ""


class OneKey(FreePolytopes):
    def key(self, i):
        return 0


class Decoded(FreePolytopes):
    def build(self, i):
        from dataclasses import replace

        polytope = super().build(i)
        return replace(polytope, decode=lambda x: polytope.decode(x)[::-1].copy())


class Cut(FreePolytopes):
    def build(self, i):
        from dataclasses import replace

        polytope = super().build(i)
        upper = polytope.upper.copy()
        upper[0] = 0
        return replace(polytope, upper=upper)


class Fractional(FreePolytopes):
    """Without the rows of the first node: all its states may be on at once."""

    def build(self, i):
        from dataclasses import replace

        polytope = super().build(i)
        low, high = polytope.low.copy(), polytope.high.copy()
        low[0], high[0] = 0, 1.5
        return replace(polytope, low=low, high=high)


def test_declared_polytopes_pass():
    check_structure(WithPolytopes(), n_cases=2, solvers=())


@pytest.mark.parametrize(
    "kind, message",
    [
        (Silent, "has a note"),
        (OneKey, "key breaks a promise: it is shared only by equal polytopes"),
        (Decoded, "decode breaks a promise|decode\\(\\) tells which"),
        (Cut, "contains every label"),
        (Fractional, "is exact: its vertices are labels|no integral points except labels"),
    ],
)
def test_wrong_polytopes_are_caught(kind, message):
    structure = type("Wrong", (WithPolytopes,), {"kind": kind})()
    refused(message, check_structure, structure, n_cases=2, solvers=(), error=BrokenPromise)


class NoPolytopes:
    pass


def test_a_hook_that_returns_something_else_is_named(registered):
    def polytope(space):
        return (lambda layout: NoPolytopes()) if space.structure.name == "multiclass" else None

    registered("wrong-polytope", structsolve_polytope=polytope)
    model = StructuredSVM("multiclass", oracle="lp")
    message = "returned NoPolytopes from structsolve_polytope"
    refused(message, model.fit, np.eye(2), [0, 1], error=TypeError)


def test_polytopes_is_abstract():
    with pytest.raises(NotImplementedError, match="does not implement build"):
        Polytopes().build(0)


@pytest.mark.parametrize("solver", ["SCS", "OSQP", "HIGHS", "CLARABEL"])
def test_what_was_solved_before_does_not_change_an_answer(solver):
    A = sparse.kron(sparse.eye(3), np.ones((1, 3)), format="csr")
    polytope = Polytope(A, np.ones(3), np.ones(3), np.arange(9), lambda x: x)
    tied, other = np.zeros(9), np.random.default_rng(0).normal(size=9)
    alone = Cvxpy(solver).program(polytope).solve(tied).x
    program = Cvxpy(solver).program(polytope)
    program.solve(other)
    assert np.array_equal(program.solve(tied).x, alone)


def test_another_user_of_highs_in_the_same_thread():
    highspy = pytest.importorskip("highspy")
    answers = []

    def work():
        own = highspy.Highs()
        own.setOptionValue("output_flag", False)
        own.setOptionValue("threads", 2)
        own.addVar(0, 1)
        own.run()
        one = np.ones(1)
        simplex = Polytope(sparse.csr_matrix(np.ones((1, 2))), one, one, np.arange(2), None)
        answers.append(Highs().program(simplex).solve(np.array([1.0, 2.0])).x.tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [[0.0, 1.0]]


class Nothing(Backend):
    """A backend whose program() forgets to return."""

    name = "nothing"

    def program(self, polytope):
        pass


def test_no_program_is_named_with_its_backend():
    message = r"program\(\) of LP backend 'nothing' returned None, expected a .*lp.Program"
    model = StructuredSVM("chain", oracle=Nothing(), max_iter=1)
    refused(message, model.fit, *structsolve.get_structure("chain").sample(0))
    refused(message, check_backend, Nothing(), error=BrokenPromise)
