"""Oracles within a cone that need only a polytope, against enumeration; and all searches."""

import numpy as np
import pytest
from flow_cases import paths_network
from lp_cases import WithPolytopes
from python_structures import PyChainStructure
from reference.cones import in_cone
from reference.hierarchies import GRAPH, TREE, as_dict, random_edges
from search_cases import check_problem, random_chains

import structsolve
from structsolve import ConePair, StructuredSVM
from structsolve.lp import ask_cones, ask_oracle
from structsolve.lp.cones import RelaxedCones
from structsolve.lp.oracle import ProgramCones
from structsolve.plugins.dag import DagStructure
from structsolve.plugins.dependency import DependencyStructure
from structsolve.plugins.flow import FlowStructure
from structsolve.structure import calls
from structsolve.structure.ask import ask_parts, ask_power, make_layout
from structsolve.surrogates import Slack
from structsolve.testing import _relaxed, check_structure
from structsolve.testing._case import Case

DAGS = {
    "closed tree": {"hierarchy": TREE},
    "closed graph": {"hierarchy": GRAPH},
    "roots on": {"hierarchy": GRAPH, "roots": "on"},
    "unions in a tree": {"hierarchy": TREE, "labels": "leaf-union"},
    "unions in a graph": {"hierarchy": GRAPH, "labels": "leaf-union"},
    "leaves of a tree": {"hierarchy": TREE, "labels": "single-leaf"},
    "leaves of a graph": {"hierarchy": GRAPH, "labels": "single-leaf"},
}
SEARCHES = ("convex-hull", "angular", "bisecting", "binary", "sarawagi")


STRUCTURES = {
    "chain": lambda: structsolve.get_structure("chain"),
    "tree": lambda: structsolve.get_structure("tree"),
    "permutation": lambda: structsolve.get_structure("permutation"),
    "flow": lambda: FlowStructure(paths_network()),
    "python": WithPolytopes,
    **{name: (lambda given=given: DagStructure(**given)) for name, given in DAGS.items()},
    **{
        f"dependency {projective} {single}": (
            lambda p=projective, s=single: DependencyStructure(projective=p, single_root=s)
        )
        for projective in (True, False)
        for single in (True, False)
    },
}


def power(case, name):
    """Return the structure's own power, or None."""
    bind = ask_power(case.space, name)
    return None if bind is None else bind(case.oracle.layout)


def cones_of(case, k):
    return ask_cones(case.space, case.oracle, case.parts, power(case, "kbest"), k)


@pytest.mark.parametrize("k", [0, 4, 64])
@pytest.mark.parametrize("name", STRUCTURES)
def test_best_in_a_cone_by_enumeration(name, k):
    """Return random, tied and zero scores; sides of cones pass through labels."""
    for seed in range(2):
        case = Case(STRUCTURES[name](), seed, seed, 3)
        case.enumerate()
        own = power(case, "cones")
        coned = case._powers["cones"] = cones_of(case, k)
        if own is not None:
            assert name.startswith("leaves") and type(coned) is type(own)
        else:
            assert coned.k == (k if power(case, "kbest") is not None else 0)
            # Polytopes that are larger than the hull need programs.
            outer = name == "unions in a graph"
            assert type(coned.relaxed) is (ProgramCones if outer else RelaxedCones)
        _relaxed.check_constrained(case, "hamming")


def random_dag(given):
    def make(rng):
        kind = given.get("labels", "closed")
        edges = random_edges(rng, int(rng.integers(2, 7)), isinstance(given["hierarchy"], dict))
        M = 1 + int(edges.max(initial=0))
        structure = DagStructure(**{**given, "hierarchy": as_dict(M, edges)}, close=True)
        X, Y = structure.sample(int(rng.integers(1000)), n=3)
        assert kind in ("closed", "leaf-union", "single-leaf")
        return structure, X, Y

    return make


def random_sentences(projective, single):
    def make(rng):
        structure = DependencyStructure(projective=projective, single_root=single)
        return structure, *structure.sample(int(rng.integers(1000)), n=3, size=3)

    return make


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", DAGS)
def test_searches_on_hierarchies(name, search):
    graph = name == "unions in a graph"
    for seed in range(4):
        for loss in ("hamming", "leaf", "normalized-hamming"):
            # Unions in graphs are relaxed in training to more than the hull of the labels.
            hull, outer = search == "convex-hull", graph and search == "convex-hull"
            exact = ("label",) if search == "angular" else ("hull",) if hull else ()
            made = random_dag(DAGS[name])
            given = {"hull": hull, "outer": outer, "search": search, "relaxed": hull}
            check_problem(made, seed, "slack", loss, () if graph else exact, **given)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("single", [True, False])
def test_searches_on_sentences(projective, single, search):
    for seed in range(4):
        hull = search == "convex-hull"
        exact = ("label",) if search == "angular" else ("hull",) if hull else ()
        made = random_sentences(projective, single)
        check_problem(made, seed, "slack", "hamming", exact, hull, search=search, relaxed=hull)


@pytest.mark.parametrize("name", ["closed tree", "closed graph", "unions in a tree"])
def test_labels_alone(name):
    """relaxed=False asks for the k best if the hull does not determine the best label."""
    for seed in range(4):
        given = {"relaxed": False, "search": "convex-hull", "max_kbest": 200}
        for surrogate in ("slack", "log"):
            check_problem(random_dag(DAGS[name]), seed, surrogate, "hamming", ("label",), **given)


@pytest.mark.parametrize("name", ["chain", "tree", "dependency True True"])
def test_labels_alone_elsewhere(name):
    def make(rng):
        structure = STRUCTURES[name]()
        return structure, *structure.sample(int(rng.integers(1000)), n=3, size=3)

    for seed in range(3):
        given = {"relaxed": False, "search": "convex-hull", "max_kbest": 300}
        check_problem(make, seed, "slack", "hamming", ("label",), **given)


@pytest.mark.parametrize("name", ["closed tree", "closed graph", "leaves of a graph", "sentences"])
def test_searches_train(name):
    """All reach about the same objective, independent of the number of threads."""
    if name == "sentences":
        structure = DependencyStructure()
        X, Y = structure.sample(3, n=6, size=3)
    else:
        structure = DagStructure(**DAGS[name])
        X, Y = structure.sample(3, n=6)
    primals = {}
    for search in SEARCHES:
        settings = {"alpha": 0.1, "solver": "cutting-plane", "tol": 1e-3, "max_iter": 100}
        fits = [
            StructuredSVM(structure, surrogate=Slack(search=search), n_jobs=jobs, **settings)
            for jobs in (1, 2)
        ]
        one, two = (fit.fit(X, Y) for fit in fits)
        assert all(np.array_equal(one.coef_[b], two.coef_[b]) for b in one.coef_)
        primals[search] = one.history_[-1]["primal"]
        np.testing.assert_array_equal(
            np.concatenate([np.ravel(y) for y in one.predict(X)]),
            np.concatenate([np.ravel(y) for y in two.predict(X)]),
        )
    # The maximum over labels is at most that over their hull; bounds include missed labels.
    assert primals["angular"] <= primals["convex-hull"] * (1 + 2e-3)
    assert all(primals["angular"] <= value * (1 + 2e-3) for value in primals.values())


def test_outside_structures_get_it_for_their_polytope():
    make = WithPolytopes()
    X, Y = make.sample(0, n=4, size=3)
    model = StructuredSVM(make, surrogate=Slack(search="angular"), alpha=0.1).fit(X, Y)
    assert model.history_[-1]["calls_per_search"] >= 1
    check_structure(make, n_cases=1, solvers=())


@pytest.mark.parametrize("k", [0, 64])
@pytest.mark.parametrize("name", ["chain", "tree", "closed graph", "leaves of a tree"])
def test_forbidden_parts(name, k):
    """A score of -inf excludes a part, also if a program decides."""
    rng = np.random.default_rng(8)
    case = Case(STRUCTURES[name](), 0, 5, 3)
    case.enumerate()
    cones = cones_of(case, k)
    answers = set()
    for i in range(case.n):
        for _ in range(20):
            size = case.mu[i].shape[1]
            theta = np.where(case.padding[i], 0.0, rng.integers(-2, 3, size))
            barred = ~case.padding[i] & (rng.random(size) < 0.15)
            cost = np.where(case.padding[i], 0.0, rng.integers(0, 3, size))
            left = case.mu[i][:, barred].sum(axis=1) == 0
            cone = ConePair(1.0, 0.0, 0.5, float(rng.choice([2.0, np.inf])), 0.25, False)
            h, g = case.mu[i] @ theta + 1, case.mu[i] @ cost
            inside = left & in_cone(cone, h, g)
            given = np.where(barred, -np.inf, theta)
            answer = calls.argmax_in_cone(cones, i, given, cost, cone)
            answers.add(None if answer is None else answer[1] is None)
            if inside.any():
                best = (h + 0.5 * g)[inside].max()
                assert answer is not None and answer[2] >= best - 1e-6
                if answer[1] is not None:
                    assert inside[case.row(i, answer[1])] and answer[2] == pytest.approx(best)
            elif answer is not None:
                assert answer[1] is None
    assert False in answers


def test_no_polytope_no_cone():
    X, Y = PyChainStructure().sample(0)
    with pytest.raises(ValueError, match="'py-chain' does not have, nor a polytope to make one"):
        StructuredSVM(PyChainStructure(), surrogate=Slack(search="angular")).fit(X, Y)


def test_losses_that_do_not_decompose_are_refused():
    structure, X, Y = random_chains(np.random.default_rng(0))
    with pytest.raises(ValueError, match="search 'angular' needs a loss that decomposes"):
        StructuredSVM(structure, surrogate=Slack(search="angular"), loss="zero-one").fit(X, Y)


def test_few_labels_where_memory_is_dear():
    """The k best of a long chain would take much memory, so fewer are computed."""
    space, _ = structsolve.get_structure("chain").make_space([np.zeros((2, 1))], [[0, 1]])
    examples = space.pack([np.zeros((50_000, 1))])
    layout = make_layout(space, examples)
    oracle, parts = ask_oracle(space)(layout), ask_parts(space)(layout)
    cones = ask_cones(space, oracle, parts, ask_power(space, "kbest")(layout))
    assert cones.k < 64
    assert cones.work_bytes < 2**27
