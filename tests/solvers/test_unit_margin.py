"""Margins of 1 in units of the loss, against enumeration and a convex program; variant (6.13)."""

import numpy as np
import pytest
from checks import refused
from reference.hierarchies import ancestors, as_dict, random_edges

import structsolve
from structsolve import CostMatrix, HierarchicalSVM, StructuredSVM
from structsolve.plugins.dag import DagStructure, PathCost
from structsolve.potentials.calls import score
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss
from structsolve.surrogates import calls as surrogate_calls
from structsolve.testing._case import Case


def ratios(problem, space, examples, i, theta, loss):
    """Return 1 + h / g of every wrong label, 0 for the truth, and the labels."""
    labels = space.enumerate_labels(examples, i)
    truth = examples.label(i)
    native, values = ask_loss(space, loss)(problem.task.layout), []
    for label in labels:
        index, value = calls.difference(problem.parts, i, truth, np.ascontiguousarray(label))
        g = calls.loss_value(native, i, truth, np.ascontiguousarray(label))
        values.append(1 - theta[index] @ value / g if g > 0 else 0.0)
    return labels, np.array(values)


def settings(rng):
    costs = rng.integers(1, 5, (3, 3)) * (1.0 - np.eye(3))
    edges = random_edges(rng, int(rng.integers(3, 9)), bool(rng.integers(2)))
    M = 1 + int(edges.max(initial=2))
    hierarchy = as_dict(M, edges)
    weights = rng.exponential(size=M) + 0.01
    leaves = DagStructure(hierarchy, labels="single-leaf")
    return [
        (structsolve.get_structure("multiclass"), CostMatrix(costs, classes=[0, 1, 2])),
        (structsolve.get_structure("chain"), "hamming"),
        (structsolve.get_structure("multilabel", edges="none"), "hamming"),
        (leaves, PathCost(weights)),
        (DagStructure(hierarchy), "hamming"),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_cuts_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    for structure, loss in settings(rng):
        X, Y = structure.sample(seed, n=4, size=3)
        classes = [0, 1, 2] if structure.name == "multiclass" else None
        space, examples = structure.make_space(X, Y, classes)
        problem = structsolve.Problem(space, examples, loss, "unit-margin")
        for step in range(6):
            w = rng.integers(-2, 3, problem.dim) * 1.0 if step % 2 else rng.normal(size=problem.dim)
            w *= 10.0 ** rng.integers(-2, 2) if step else 0.0
            for i in range(problem.n):
                theta = score(problem.potentials, i, w)
                labels, values = ratios(problem, space, examples, i, theta, loss)
                best = max(values.max(initial=0.0), 0.0)
                cut = surrogate_calls.cut(problem.surrogate, i, theta, examples.label(i))
                assert cut.bound == pytest.approx(best, rel=1e-12, abs=1e-12)
                assert cut.b - theta[cut.index] @ cut.value == pytest.approx(best, abs=1e-10)
                assert 1 <= cut.calls <= len(labels) + 1
                # A cut lies below everywhere.
                other = score(problem.potentials, i, rng.normal(size=problem.dim))
                _, there = ratios(problem, space, examples, i, other, loss)
                below = cut.b - other[cut.index] @ cut.value
                assert below <= max(there.max(initial=0.0), 0.0) + 1e-9


def reference_objective(X, y, paths, weights, alpha):
    """Solve (6.13) literally: every class is a flat one with the features of its path, divided."""
    import cvxpy as cp

    attributes = paths * np.sqrt(weights)
    w, total = cp.Variable((paths.shape[1], X.shape[1])), 0
    for x, truth in zip(X, y):
        terms = [0]
        for k in range(len(paths)):
            if k != truth:
                gap = attributes[k] - attributes[truth]
                terms.append(1 + (gap / np.linalg.norm(gap)) @ w @ x)
        total += cp.maximum(*terms)
    problem = cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + total / len(X)))
    return problem.solve(solver="CLARABEL")


@pytest.mark.parametrize("normalization", ["none", "rho:2", "maxmin"])
def test_the_variant_of_the_thesis(normalization):
    rng = np.random.default_rng(4)
    hierarchy = {"r": ["a", "b"], "a": ["c", "d"], "d": ["e", "f", "g"]}
    X = rng.normal(size=(24, 4))
    names = np.array(["b", "c", "e", "f", "g"])
    y = names[(X @ rng.normal(size=(4, 5))).argmax(axis=1)]
    loss = PathCost(np.ones(8)) if normalization == "none" else "auto"
    model = HierarchicalSVM(
        hierarchy, normalization=normalization, surrogate="unit-margin", loss=loss, alpha=0.05,
        tol=1e-6, max_iter=3000, fit_intercept=False,
    ).fit(X, y)  # fmt: skip
    nodes = model.nodes_.tolist()
    edges = [(nodes.index(p), nodes.index(c)) for p, cs in hierarchy.items() for c in cs]
    above = ancestors(len(nodes), np.array(edges))
    paths = np.array([[v in above[nodes.index(n)] for v in range(len(nodes))] for n in names])
    truths = np.searchsorted(names, y)
    expected = reference_objective(X, truths, paths * 1.0, model.node_weights_, 0.05)
    assert model.history_[-1]["primal"] == pytest.approx(expected, rel=1e-5)
    assert model.history_[-1]["dual"] <= expected * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane", "sgd"])
def test_solvers_agree(solver):
    structure = structsolve.get_structure("chain")
    X, Y = structure.sample(1, n=6, size=3)
    given = {"alpha": 0.2, "surrogate": "unit-margin"}
    best = StructuredSVM(structure, **given, tol=1e-7, max_iter=2000).fit(X, Y)
    best = best.history_[-1]["primal"]
    model = StructuredSVM(structure, **given, solver=solver, tol=1e-4, max_iter=1000)
    fits = [model.set_params(n_jobs=jobs).fit(X, Y).coef_ for jobs in (1, 2)]
    assert all(np.array_equal(fits[0][b], fits[1][b]) for b in fits[0])
    assert model.history_[-1]["primal"] == pytest.approx(
        best, rel=0.05 if solver == "sgd" else 1e-3
    )


def test_tiny_weights_of_deep_nodes():
    """rho close to 1: lengths of differences underflow long before their ratios do."""
    chain = {f"n{j}": [f"n{j + 1}", f"l{j + 1}"] for j in range(8)}
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.array([f"l{j}" for j in range(1, 9)])[(X[:, 0] * 3).astype(int) % 8]
    for rho in ("rho:2", "rho:1.5"):
        model = HierarchicalSVM(chain, normalization=rho, surrogate="unit-margin", alpha=0.1)
        model.fit(X, y)
        assert np.isfinite(model.history_[-1]["primal"])
        assert np.isfinite(model.coef_["node"]).all()
    # If they underflow, there is nothing to divide by.
    model.set_params(normalization="rho:1.05")
    refused("has the loss 0, so its margin cannot be divided by it", model.fit, X, y)


def test_what_is_refused():
    X, Y = structsolve.get_structure("chain").sample(0)
    with pytest.raises(ValueError, match="'unit-margin' needs a loss that decomposes"):
        StructuredSVM("chain", surrogate="unit-margin", loss="zero-one").fit(X, Y)
    graph = {"a": ["c"], "b": ["c", "d"]}
    case = Case(DagStructure(graph, labels="leaf-union"), 0, 0, 3)
    with pytest.raises(ValueError, match="may miss it; use surrogate='margin'"):
        structsolve.Problem(case.space, case.examples, "hamming", "unit-margin")
    # One of the two wrong classes costs nothing.
    costs = CostMatrix([[0, 0, 1], [1, 0, 1], [1, 1, 0]])
    with pytest.raises(ValueError, match="example 0: a label other than the truth has the loss 0"):
        X, y = np.array([[1.0], [-1.0], [2.0]]), [0, 1, 2]
        StructuredSVM("multiclass", surrogate="unit-margin", loss=costs, alpha=1e-3).fit(X, y)
