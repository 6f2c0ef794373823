"""Labels that no pair connects: steps of their own, the same optimum as joint steps."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_cases import begin, check_rising, check_sums, follow, through_file

import structsolve
from structsolve.plugins.multilabel.labels import label_groups
from structsolve.solvers import BCFW
from structsolve.solvers.problem import Problem

GRAPHS = {
    "none": "none",
    "groups": [[0, 2], [2, 5], [1, 4]],
    "two of two": [[0, 1], [2, 3]],
    "a cycle": [[0, 1], [1, 2], [0, 2], [3, 5]],
}


def problem(edges, n=12, L=6, seed=0, storage="dense", weights=None, intercept=True, **settings):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7)
    X[:2] = X[2:4]  # repeated, with other labels
    Y = rng.integers(0, 2, (n, L))
    Y[:, 0] = 0  # never on
    X = sp.csr_matrix(X) if storage == "csr" else X.astype(np.float32 if storage == "f32" else None)
    structure = structsolve.get_structure("multilabel", edges=edges)
    space, examples = structure.make_space(X, Y, fit_intercept=intercept)
    examples.sample_weight = weights
    return Problem(space, examples, **settings)


def enumerated(given, w, alpha):
    """The objective at w, from all label sets of every row."""
    space, total = given.space, 0.0
    node = space.layout.view(w, "node")
    table = space.layout.view(w, "pair") if len(space.edges_) else np.zeros((0, 2, 2))
    X, L = given.examples.nodes, len(space.classes_)
    X = X.toarray() if sp.issparse(X) else X
    X = np.hstack([X, np.ones((len(X), 1))]) if space.layout.intercept else X

    def score(x, y):
        pairs = sum(t[y[u], y[v]] for t, (u, v) in zip(table, space.edges_.tolist()))
        return x @ node @ y + pairs

    for x, u, truth in zip(X, given.weights, given.examples.labels.reshape(-1, L)):
        every = np.array(list(itertools.product((0, 1), repeat=L)))
        total += u * max(score(x, y) - score(x, truth) + (y != truth).sum() for y in every)
    return 0.5 * alpha * w @ w + total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", ["dense", "f32", "csr"])
@pytest.mark.parametrize("graph", list(GRAPHS))
def test_steps_of_their_own_and_joint_steps_meet(graph, storage, weighted):
    weights = np.arange(12) % 4 / 2 if weighted else None
    posed = problem(GRAPHS[graph], storage=storage, weights=weights)
    ends = []
    for steps in ("auto", "pairwise"):
        run = begin(BCFW(steps=steps), posed, 0.05)
        history = follow(run, tol=1e-6)
        assert history[-1]["certified"] and history[-1]["gap"] <= 1e-6 * history[-1]["primal"]
        check_rising(history)
        ends.append(history[-1]["primal"])
        assert ends[-1] == pytest.approx(enumerated(posed, run.weights(), 0.05), rel=1e-9)
    assert ends[0] == pytest.approx(ends[1], rel=2e-6)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    L=st.integers(1, 70),
    sampling=st.sampled_from(["permutation", "uniform", "gap"]),
    max_cuts=st.sampled_from([2, 50]),
    cached_passes=st.sampled_from([0, 3, 200]),
    averaging=st.booleans(),
    loss=st.sampled_from(["hamming", "normalized-hamming"]),  # its alpha is in units of 1 / L
    alpha=st.sampled_from([1.0, 0.05]),
)
def test_exact_steps_whatever_they_keep(seed, L, alpha, loss, **options):
    posed = problem("none", 12, L, seed, loss=loss)
    alpha *= L if loss != "hamming" else 1
    run = begin(BCFW(steps="exact", **options), posed, alpha, seed)
    history = follow(run, tol=1e-3, passes=5000)
    assert history[-1]["certified"]
    assert -1e-12 <= history[-1]["gap"] <= 1e-3 * history[-1]["primal"]
    check_rising(history)
    check_sums(run, atol=1e-9)


def test_the_gap_of_the_sum_ends_a_run():
    """A group that matters little need not reach the share of its own."""
    open_ends = 0
    for seed in range(40):
        posed = problem(GRAPHS["groups"], n=30, seed=seed)
        run = begin(BCFW(), posed, 0.05, seed)
        run.given.tol = 1e-2
        last = follow(run, tol=1e-2)[-1]
        assert last["gap"] == pytest.approx(sum(record["gap"] for record in run.records))
        value = posed.primal(run.weights(), 0.05)[0]
        assert last["primal"] == pytest.approx(value, rel=1e-9) and last["dual"] <= value
        open_ends += any(record["gap"] > 1e-2 * record["primal"] for record in run.records)
    assert open_ends >= 3


@pytest.mark.parametrize("edges", ["none", [[0, 1]]])
def test_rows_without_features(edges):
    """Their block of the dual is linear."""
    space, examples = structsolve.get_structure("multilabel", edges=edges).make_space(
        np.zeros((3, 2)), np.eye(3, 4, dtype=int), fit_intercept=False
    )
    last = follow(begin(BCFW(), Problem(space, examples), 0.1))[-1]
    assert last["primal"] == pytest.approx(last["dual"])
    assert edges != "none" or last["primal"] == 4.0


@pytest.mark.parametrize("graph", ["none", "groups"])
def test_checkpoint(graph, tmp_path):
    posed = problem(GRAPHS[graph], 40)
    straight, broken = (begin(BCFW(), posed, 1e-2, tol=1e-3) for _ in range(2))
    for _ in range(4):
        record = straight.step()
    broken.step()
    broken.step()
    again = through_file(broken, begin(BCFW(), posed, 1e-2, tol=1e-3), tmp_path / "run")
    again.step()
    assert again.step() == record
    np.testing.assert_array_equal(again.weights(), straight.weights())
    assert again.memory().keys() == straight.memory().keys() >= {"examples", "duals", "weights"}
    with pytest.raises((ValueError, KeyError)):
        through_file(straight, begin(BCFW(steps="pairwise"), posed, 1e-2), tmp_path / "run")


def test_damaged_dual_variables_are_refused():
    run = begin(BCFW(), problem("none"), 0.1)
    run.step()
    meta, arrays = run.state()
    for bad, message in (
        (arrays["cuts_duals"] + 2, "below 0 or above 1"),
        (arrays["cuts_duals"][:, :3], r"of shape \(12, 3\), this problem \(12, 6\)"),
        (arrays["cuts_duals"] * np.nan, "duals"),
        (arrays["cuts_duals"][:5], "5 examples"),
    ):
        refused(message, run.restore, meta, {**arrays, "cuts_duals": bad})


@pytest.mark.parametrize("graph", ["none", "groups"])
def test_a_path_over_alpha_goes_on_from_the_dual(graph):
    posed = problem(GRAPHS[graph])
    run = begin(BCFW(), posed, 1.0)
    follow(run)
    run.continue_at(0.05)
    fresh = follow(begin(BCFW(), posed, 0.05))[-1]
    assert follow(run)[-1]["primal"] == pytest.approx(fresh["primal"], rel=1e-6)


def test_what_is_split():
    """Other losses and surrogates, kernels and given steps keep joint problems."""
    sets = [
        (problem([[0, 1]]), True),
        (problem([[0, 1]], loss="normalized-hamming"), False),
        (problem([[0, 1]], surrogate="slack"), False),
        (problem("full"), False),
        (problem("none"), False),
    ]
    for posed, split in sets:
        assert hasattr(begin(BCFW(), posed, 1.0), "runs") == split
    assert not hasattr(begin(BCFW(steps="pairwise"), sets[0][0], 1.0), "runs")
    assert begin(BCFW(), problem("none"), 1.0).exact
    assert not begin(BCFW(), problem("none", surrogate="slack"), 1.0).exact


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_groups_by_search(edges):
    edges = np.array([e for e in edges if e[0] != e[1]], dtype=int).reshape(-1, 2)
    sizes, of_label = label_groups(edges, 7)
    reach = np.eye(7, dtype=bool)
    for _ in range(7):
        for u, v in edges.tolist():
            reach[u] = reach[v] = reach[u] | reach[v]
        reach |= reach.T
    alone = ~np.isin(np.arange(7), edges)
    for u, v in itertools.combinations(range(7), 2):
        assert (of_label[u] == of_label[v]) == (reach[u, v] or (alone[u] and alone[v]))
    np.testing.assert_array_equal(sizes, np.bincount(of_label))
