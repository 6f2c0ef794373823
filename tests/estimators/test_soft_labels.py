"""Training on marginals: the labels' problem at 0 and 1, a mixture of it elsewhere."""

import itertools

import numpy as np
import pytest
from checks import refused
from data import chains, classes
from scipy.special import logsumexp

import structsolve
from structsolve import Problem, StructuredSVM, StructuredSVMCV
from structsolve.estimators.soft_labels import SoftLabels
from structsolve.operators import Parts
from structsolve.potentials.calls import score
from structsolve.structure.calls import encode
from structsolve.surrogates._given_parts import GivenParts
from structsolve.surrogates.calls import cut

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
K = 3
ROWS = ("multiclass", "ordinal")


def parents(L):
    return np.array([-1, *((v - 1) // 2 for v in range(1, L))])


def case(name, n=6, rng=None):
    """Data of a structure, and random marginals; some are 0 or 1."""
    rng = np.random.default_rng(0) if rng is None else rng
    sizes = [1] * n if name in ROWS else rng.integers(1, 4, size=n).tolist()
    if name == "factor-graph":
        sizes = [3] * n
    X = [rng.normal(size=(size, 2)) for size in sizes]
    soft = [rng.dirichlet(np.ones(K), size=size) for size in sizes]
    soft[0][0] = [0, 1, 0]
    soft[1][0] = [0.5, 0.5, 0]
    if name == "tree":
        X = [(x, parents(len(x))) for x in X]
    if name == "mrf":  # each node with the next one, and the last with the first
        X = [(x, [[v, (v + 1) % len(x)] for v in range(len(x)) if len(x) > 1]) for x in X]
    if name == "grid":
        X, soft = ([table[:, None] for table in tables] for tables in (X, soft))
    if name in ROWS:
        return np.concatenate(X), np.concatenate(soft)
    return X, soft


def problem_of(name, X, soft, surrogate="crf"):
    params = {"factors": [[0, 1, 2], [2, 0]]} if name == "factor-graph" else {}
    structure = structsolve.get_structure(name, **params)
    y = SoftLabels(structure, soft)
    space, examples = structure.make_space(X, y.labels, y.classes)
    hard = Problem(space, examples, surrogate=surrogate)
    y.settle(examples)
    return hard, Problem(space, examples, surrogate=surrogate)


@pytest.mark.parametrize("surrogate", ["crf", "sparsemap"])
@pytest.mark.parametrize("name", [*ROWS, "chain", "tree", "mrf", "grid", "factor-graph"])
def test_a_cut_is_the_mixture_of_those_of_all_labels(name, surrogate):
    rng = np.random.default_rng(1)
    X, soft = case(name)
    hard, problem = problem_of(name, X, soft, surrogate)
    tables = [row[None] for row in soft] if name in ROWS else [t.reshape(-1, K) for t in soft]
    for w in (
        np.zeros(problem.dim),
        rng.normal(size=problem.dim),
        9 * rng.normal(size=problem.dim),
    ):
        for i, table in enumerate(tables):
            theta = score(problem.potentials, i, w)
            given = np.zeros(len(theta))
            for label in itertools.product(range(K), repeat=len(table)):
                share = np.prod([table[v, k] for v, k in enumerate(label)])
                index, value = encode(hard.parts, i, np.array(label, np.int32))
                np.add.at(given, index, share * value)
            truth = hard.examples.label(i)
            answer, of_label = (cut(p.surrogate, i, theta, truth) for p in (problem, hard))
            p, q = np.zeros(len(theta)), np.zeros(len(theta))
            np.add.at(p, answer.index, answer.value)
            np.add.at(q, of_label.index, of_label.value)
            known = np.zeros(len(theta))
            index, value = encode(hard.parts, i, truth)
            np.add.at(known, index, value)
            # The gradient is marginals minus given ones.
            np.testing.assert_allclose(p, q + given - known, atol=1e-9)
            nodes = slice(problem.task.layout.starts["node"], None)
            offset = 0.0
            if surrogate == "sparsemap":
                offset = 0.5 * float(given[nodes] @ given[nodes] - known[nodes] @ known[nodes])
            expected = of_label.bound + float(theta @ (known - given)) + offset
            assert answer.bound == pytest.approx(expected, abs=1e-8)
            assert answer.bound >= -1e-9


def objective(name, X, soft, w, alpha, problem):
    """By brute force: the mean of log Z - <mu, theta>, and the penalty."""
    total = 0.0
    for i, table in enumerate([row[None] for row in soft] if name == "multiclass" else soft):
        theta = score(problem.potentials, i, w)
        scores, shares = [], []
        for label in itertools.product(range(K), repeat=len(table)):
            index, value = encode(problem.task.parts, i, np.array(label, np.int32))
            scores.append(float(theta[index] @ value))
            shares.append(np.prod([table[v, k] for v, k in enumerate(label)]))
        total += logsumexp(scores) - float(np.dot(shares, scores))
    return total / len(X) + 0.5 * alpha * float(w @ w)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "cutting-plane", "sgd"])
@pytest.mark.parametrize("name", ["multiclass", "chain", "tree", "mrf"])
def test_certificates_hold(name, solver):
    X, soft = case(name)
    _, problem = problem_of(name, X, soft)
    model = StructuredSVM(name, surrogate="crf", solver=solver, alpha=0.1, max_iter=200, tol=1e-4)
    model.fit(X, soft)
    best = StructuredSVM(name, surrogate="crf", solver="lbfgs", alpha=0.1, tol=1e-9, max_iter=500)
    best.fit(X, soft)
    optimum = objective(name, X, soft, best.flat_weights(), 0.1, problem)
    assert best.history_[-1]["primal"] == pytest.approx(optimum, rel=1e-9)
    for record in model.history_:
        if record.get("certified"):
            assert record["dual"] <= optimum * (1 + 1e-9) <= record["primal"] * (1 + 1e-6)
    last = model.history_[-1]
    assert last["primal"] == pytest.approx(optimum, rel=0.05 if solver == "sgd" else 1e-3)
    assert model.solver_.name == ("lbfgs" if solver == "auto" else solver)
    for _ in range(20):  # no other weights are better
        w = best.flat_weights() + 0.1 * np.random.default_rng(2).normal(size=problem.dim)
        assert objective(name, X, soft, w, 0.1, problem) > optimum


@pytest.mark.parametrize("surrogate", ["crf", "sparsemap"])
@pytest.mark.parametrize("name", ["multiclass", "chain", "tree"])
def test_zeros_and_ones_are_labels(name, surrogate):
    rng = np.random.default_rng(3)
    X, soft = case(name, 12, rng)
    tables = soft if name != "multiclass" else [soft]
    hard = [table.argmax(axis=1) for table in tables]
    ones = [np.eye(K)[labels] for labels in hard]
    if name == "multiclass":
        hard, ones = hard[0], ones[0]
    assert len(np.unique(np.concatenate([np.atleast_1d(y) for y in hard]))) == K
    solver = "lbfgs" if surrogate == "crf" else "cutting-plane"
    models = [
        StructuredSVM(name, surrogate=surrogate, solver=solver, alpha=0.05, tol=1e-8, max_iter=2000)
        for _ in range(2)
    ]
    models[0].fit(X, hard)
    models[1].fit(X, ones)
    assert models[1].history_[-1]["primal"] == pytest.approx(
        models[0].history_[-1]["primal"], rel=1e-6
    )
    np.testing.assert_allclose(models[1].flat_weights(), models[0].flat_weights(), atol=1e-3)


def test_a_row_is_a_mixture_of_weighted_rows():
    X, soft = case("multiclass", 8)
    model = StructuredSVM("multiclass", surrogate="crf", alpha=0.05, solver="lbfgs", tol=1e-10)
    model.set_params(max_iter=500).fit(X, soft)
    again = StructuredSVM("multiclass", surrogate="crf", alpha=0.05, solver="lbfgs", tol=1e-10)
    again.set_params(max_iter=500).fit(
        np.repeat(X, K, axis=0), np.tile(np.arange(K), len(X)), sample_weight=soft.ravel()
    )
    np.testing.assert_allclose(model.flat_weights(), again.flat_weights(), atol=1e-4)


def test_weights_of_examples_count():
    X, soft = case("chain")
    twice = StructuredSVM("chain", surrogate="crf", alpha=0.1, tol=1e-8).fit(
        X + X[:1], soft + soft[:1]
    )
    weighed = StructuredSVM("chain", surrogate="crf", alpha=0.1, tol=1e-8)
    weighed.fit(X, soft, sample_weight=[2, *[1] * (len(X) - 1)])
    np.testing.assert_allclose(weighed.flat_weights(), twice.flat_weights(), atol=1e-4)


def test_distillation_recovers_the_teacher():
    X, y = classes(60)
    teacher = StructuredSVM("multiclass", surrogate="crf", alpha=0.01).fit(X, y)
    given = teacher.predict_marginals(X)
    student = StructuredSVM("multiclass", surrogate="crf", alpha=1e-7, tol=1e-6, max_iter=1000)
    student.fit(X, given)
    assert student.classes_.tolist() == [*range(len(teacher.classes_))]
    np.testing.assert_allclose(student.predict_marginals(X), given, atol=1e-3)


def test_distillation_of_sequences():
    X, Y = chains(30)
    teacher = StructuredSVM("chain", surrogate="crf", alpha=0.05).fit(X, Y)
    given = teacher.predict_marginals(X)
    student = StructuredSVM("chain", surrogate="crf", alpha=1e-4, max_iter=300).fit(X, given)
    apart = np.abs(np.concatenate(student.predict_marginals(X)) - np.concatenate(given))
    assert apart.mean() < 0.02
    # Nodes of a teacher without transitions are independent: nothing is lost.
    bare = structsolve.get_structure("chain", transitions=False, start_end=False)
    teacher = StructuredSVM(bare, surrogate="crf", alpha=0.05).fit(X, Y)
    given = teacher.predict_marginals(X)
    student = StructuredSVM("chain", surrogate="crf", alpha=1e-7, tol=1e-7, max_iter=2000)
    again = student.fit(X, given).predict_marginals(X)
    np.testing.assert_allclose(np.concatenate(again), np.concatenate(given), atol=1e-2)


def test_forms_of_y():
    X, soft = case("chain")
    fitted = [
        StructuredSVM("chain", surrogate="crf", max_iter=20).fit(given, y).flat_weights()
        for given, y in (
            (X, soft),
            (X, [table.tolist() for table in soft]),
            (X, tuple(soft)),
            (structsolve.Sequences(np.concatenate(X), [len(x) for x in X]), soft),
            (X, [table * (1 + 1e-7) for table in soft]),
        )
    ]
    for w in fitted[1:]:
        np.testing.assert_allclose(w, fitted[0], atol=1e-5)
    X, soft = case("multiclass")
    both = [StructuredSVM("multiclass", surrogate="crf").fit(X, y) for y in (soft, soft.tolist())]
    np.testing.assert_allclose(*(model.flat_weights() for model in both))
    # Sequences of one length, and an array of objects.
    rng = np.random.default_rng(2)
    X, soft = rng.normal(size=(4, 3, 2)), rng.dirichlet(np.ones(K), (4, 3))
    objects = np.empty(4, dtype=object)
    objects[:] = list(soft)
    for y in (soft, objects, soft.tolist()):
        again = StructuredSVM("chain", surrogate="crf", alpha=0.1).fit(X, y)
        wanted = StructuredSVM("chain", surrogate="crf", alpha=0.1).fit(list(X), list(soft))
        np.testing.assert_array_equal(again.flat_weights(), wanted.flat_weights())


def test_settings_go_on_with_marginals(tmp_path):
    X, soft = case("chain")
    labels = [table.argmax(axis=1) for table in soft]
    model = StructuredSVM(
        "chain", surrogate="crf", solver="lbfgs", scale_features=True, n_jobs=2, early_stopping=True
    ).fit(X, soft, validation=(X, labels))
    assert "validation_score" in model.history_[-1] or model.n_iter_
    path = tmp_path / "state"
    whole = StructuredSVM("chain", surrogate="crf", solver="lbfgs", tol=1e-9, max_iter=6).fit(
        X, soft
    )
    part = StructuredSVM(
        "chain", surrogate="crf", solver="lbfgs", tol=1e-9, max_iter=3, checkpoint=path
    ).fit(X, soft)
    part.set_params(max_iter=6).fit(X, soft)
    np.testing.assert_array_equal(part.flat_weights(), whole.flat_weights())
    part.set_params(max_iter=3)
    other = [table[:, ::-1].copy() for table in soft]
    other[2] = soft[2]
    refused("checkpoint|other", part.fit, X, other)


@pytest.mark.parametrize(("surrogate", "taken"), [("crf", "lbfgs"), ("sparsemap", "cutting-plane")])
def test_auto_takes_a_solver_that_goes_on_with_marginals(surrogate, taken, tmp_path):
    X, soft = case("chain")
    labels = [table.argmax(axis=1) for table in soft]
    settings = dict(surrogate=surrogate, alpha=0.1, tol=1e-9)
    plain = StructuredSVM("chain", **settings).fit(X, soft)
    assert plain.solver_.name == taken
    stopped = StructuredSVM("chain", early_stopping=True, **settings)
    assert stopped.fit(X, soft, validation=(X, labels)).solver_.name == taken
    (last,) = StructuredSVM("chain", **settings).path(X, soft, [0.1])
    warm = StructuredSVM("chain", warm_start=True, **settings).fit(X, soft)
    path = tmp_path / "state"
    part = StructuredSVM("chain", checkpoint=path, **settings).set_params(max_iter=2).fit(X, soft)
    part.set_params(max_iter=100).fit(X, soft)
    for model in (last, warm, warm.fit(X, soft), part):
        np.testing.assert_allclose(model.flat_weights(), plain.flat_weights(), atol=1e-3)


def test_marginals_and_kernels_exclude_each_other():
    X, soft = case("chain")
    model = StructuredSVM("chain", surrogate="crf", kernel="rbf")
    refused(".*kernel is 'rbf', and marginals and kernels exclude each other", model.fit, X, soft)


def test_names_are_no_classes_of_a_student():
    X, soft = case("chain")
    student = StructuredSVM("chain", surrogate="crf", alpha=0.1, early_stopping=True)
    numbers = [table.argmax(axis=1) for table in soft]
    names = [np.array(list("abc"))[y] for y in numbers]
    text = r"y: found names, .*'[abc]'.* 0 to K - 1: pass np.searchsorted\(teacher.classes_, y\)"
    refused(text, student.fit, X, soft, validation=(X, names))
    student.fit(X, soft, validation=(X, numbers))
    refused(text, student.score, X, names)
    refused(text, student.score, X, [y.tolist() for y in names])
    teacher = np.array(list("abc"))
    assert student.score(X, [np.searchsorted(teacher, y) for y in names]) > 0


LONG = int(np.argmax([len(table) for table in case("chain")[1]]))
BAD = [
    ([[0.5, 0.4, 0]], "found marginals of sum 0.9, expected 1"),
    ([[1.5, -0.5, 0]], r"found the marginals \[1.5, -0.5, 0.0\], expected finite numbers"),
    ([[np.nan, 0.5, 0.5]], ".*expected finite numbers of at least 0"),
    ([[np.inf, 0.5, 0.5]], ".*expected finite numbers of at least 0"),
]


@pytest.mark.parametrize(("rows", "message"), BAD)
def test_rows_that_are_no_distributions(rows, message):
    X, soft = case("chain")
    soft[LONG][1] = rows[0]
    model = StructuredSVM("chain", surrogate="crf")
    refused(f"y, example {LONG}, node 1: {message}", model.fit, X, soft)
    X, soft = case("multiclass")
    soft[3] = rows[0]
    model = StructuredSVM("multiclass", surrogate="crf")
    refused(f"y, example 3: {message}", model.fit, X, soft)


def test_shapes_that_do_not_fit():
    X, soft = case("chain")
    model = StructuredSVM("chain", surrogate="crf")
    wide = [*soft[:2], np.full((len(soft[2]), 4), 0.25), *soft[3:]]
    refused("y, example 2: found marginals of 4 classes, expected 3", model.fit, X, wide)
    long = [*soft[:2], np.concatenate([soft[2], soft[2]]), *soft[3:]]
    refused("2", model.fit, X, long)
    refused("X has 6 examples and y has 5", model.fit, X, soft[:-1])
    ragged = [table.tolist() for table in soft]
    ragged[LONG][1] = [0.5, 0.5]
    refused(f"y, example {LONG}: found rows", model.fit, X, ragged)


def test_pairs_that_no_labels_have():
    X, soft = case("chain")
    barred = structsolve.get_structure("chain", forbidden=[(0, 1)])
    soft = [np.tile([0.5, 0.5, 0.0], (len(table), 1)) for table in soft]
    model = StructuredSVM(barred, surrogate="crf")
    refused(
        "node [01]: found the marginals .* which no labels of structure 'chain'", model.fit, X, soft
    )


@pytest.mark.parametrize("surrogate", ["margin", "slack", "max-min", "log", "probloss"])
def test_surrogates_that_need_labels(surrogate):
    X, soft = case("chain")
    model = StructuredSVM("chain", surrogate=surrogate)
    refused(f"surrogate '{surrogate}' needs labels.*use surrogate='crf'", model.fit, X, soft)


@pytest.mark.parametrize("solver", ["bcfw", "gbcfw", "admm"])
def test_solvers_that_need_labels(solver):
    X, soft = case("chain")
    model = StructuredSVM("chain", surrogate="crf", solver=solver)
    refused(f"solver '{solver}' needs labels.*'lbfgs'", model.fit, X, soft)


def test_whatever_else_needs_labels():
    X, soft = case("chain")
    labels = [table.argmax(axis=1) for table in soft]
    text = "y holds marginals, expected labels"
    model = StructuredSVM("chain", surrogate="crf")
    refused(text, StructuredSVM("chain", surrogate="crf", class_weight="balanced").fit, X, soft)
    refused(text, StructuredSVM("chain", surrogate="crf", early_stopping=True).fit, X, soft)
    refused(text, StructuredSVM("chain", surrogate="crf", solver="sgd").partial_fit, X, soft)
    refused(text, StructuredSVMCV("chain", surrogate="crf", cv=2).fit, X, soft)
    refused(text, model.fit, X, labels, validation=(X, soft))
    model.fit(X, soft)
    refused(text, model.score, X, soft)
    refused(text, model.score, X, soft, metric="accuracy")
    # Other structures' labels may be rows of numbers.
    sets = (np.arange(12).reshape(4, 3) % 2).astype(float)
    StructuredSVM("multilabel", max_iter=2).fit(np.eye(4), sets)


def test_given_parts_are_checked():
    X, soft = case("chain", 2)
    _, problem = problem_of("chain", X, soft)
    parts, n = problem.parts, problem.n
    size = problem.task.layout.sizes(0)[0]
    one = np.ones(1)
    assert isinstance(problem.surrogate.parts, GivenParts) and isinstance(parts, Parts)
    for starts, index, message in (
        ([0, 1, 2], [0], "starts end at 2"),
        ([1, 1, 1], [0], "expected 0 to 1"),
        ([0, 2, 1], [0], "decrease"),
        ([0, 1, 1], [size], "no part"),
        ([0, 1, 1], [-1], "no part"),
    ):
        args = np.array(starts), np.array(index, np.int32), one
        refused(message, GivenParts, parts, *args)
    made = GivenParts(parts, np.array([0, *[1] * n]), np.array([2], np.int32), one)
    index, value = encode(made, 0, problem.examples.label(0))
    assert index.tolist() == [2] and value.tolist() == [1.0]


@pytest.mark.parametrize("name", ["multiclass", "chain", "tree"])
def test_data_frames_are_no_marginals(name):
    frame = pytest.importorskip("pandas").DataFrame
    X, soft = case(name)
    y, where = (frame(soft), "y") if name == "multiclass" else ([*map(frame, soft)], "y, example 0")
    told = f"^{where}: found a data frame of 3 columns, expected one class per row, or marginals"
    refused(told, StructuredSVM(name, surrogate="crf").fit, X, y)
    if name == "multiclass":
        told = "y should be a 1d array.* Expected one class per row"
        refused(told, StructuredSVM("ordinal").fit, X, y)
