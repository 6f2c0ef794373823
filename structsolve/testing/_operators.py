"""Checks of the operators of one case against enumeration of all labels."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

from .. import problem, registry
from ..operators import Loss, Projection
from ..structure import NodeSpace
from . import _calls
from ._case import TOLERANCE, Case, Guarded


def check_parts(case: Case) -> None:
    """``difference`` is the difference of what ``encode`` gives."""
    for i in range(case.n):
        rows = case.rng.permutation(len(case.labels[i]))[:12]
        for a, b in product(rows, rows):
            truth, label = case.labels[i][a], case.labels[i][b]
            found = case.dense(i, *case.encode(i, label, truth))
            expected = case.mu[i][a] - case.mu[i][b]
            case.near(
                "Parts.difference",
                f"is encode(truth) - encode(label) for {truth} and {label}",
                i,
                found,
                expected,
            )
        if case.parts.indicator:
            _check_indicator(case, i)


def _check_indicator(case: Case, i: int) -> None:
    """Where ``indicator`` is declared, mu(y) is the y-th unit vector and nothing else."""
    for label, mu in zip(case.labels[i], case.mu[i]):
        expected = np.zeros_like(mu)
        if np.size(label) == 1:
            expected[np.ravel(label)[0]] = 1
        case.near(
            "Parts.indicator",
            f"declares labels that are single numbers y with mu(y) = e_y (label {label})",
            i,
            mu,
            expected,
        )


def _check_best(
    case: Case,
    what: str,
    i: int,
    kind: str,
    label: Any,
    value: float,
    scores: Any,
    exact: bool = True,
) -> None:
    """``label`` is one of all labels, attains the largest of ``scores``, and ``value`` is that."""
    row = case.find(i, label)
    if row is None:
        case.fail(what, f"returns a label of the example ({kind} theta)", i, label, "one listed")
    best = scores.max()
    if exact and not scores[row] >= best - TOLERANCE * (1 + abs(best)):
        case.fail(
            what,
            f"returns a label that attains the maximum ({kind} theta)",
            i,
            f"{label} with score {float(scores[row])!r}",
            f"score {float(best)!r}",
        )
    case.near(what, f"returns the value of its label ({kind} theta)", i, value, scores[row])


def check_oracle(case: Case) -> None:
    """Optimal, of the value it says, and the same however its scratch memory was left.

    An oracle that does not call itself exact may miss the maximum.
    """
    exact = case.oracle.exact
    for i in range(case.n):
        for kind, theta in case.thetas(i).items():
            label, value = case.argmax(i, theta)
            scores = case.mu[i] @ theta
            _check_best(case, "Oracle.argmax", i, kind, label, value, scores, exact)
            again, value_again = case.argmax(i, theta, garbage=0)
            if again.tolist() != label.tolist() or value_again != value:
                case.fail(
                    "Oracle.argmax",
                    f"gives the same answer twice, whatever its scratch memory held ({kind} theta)",
                    i,
                    (again, value_again),
                    (label, value),
                )


def check_kbest(case: Case) -> None:
    """The k best values of the enumeration, best first, on labels that differ."""
    if not case.oracle.has_kbest:
        return
    what = "Oracle.kbest"
    for i in range(case.n):
        n_labels = len(case.labels[i])
        for kind, theta in case.thetas(i).items():
            scores = case.mu[i] @ theta
            for k in sorted({1, 2, 3, n_labels, n_labels + 3}):
                labels, values = case.kbest(i, theta, k)
                rows = [case.find(i, label) for label in labels]
                if None in rows:
                    bad = labels[rows.index(None)]
                    case.fail(what, f"returns labels of the example (k={k})", i, bad, "one listed")
                if len(set(rows)) < len(rows):
                    case.fail(
                        what,
                        f"returns distinct labels (k={k}, {kind} theta)",
                        i,
                        labels,
                        "no label twice",
                    )
                if len(rows) != min(k, n_labels):
                    case.fail(
                        what,
                        f"finds k labels where there are k (k={k})",
                        i,
                        len(rows),
                        min(k, n_labels),
                    )
                if (np.diff(values) > TOLERANCE * (1 + np.abs(values[1:]))).any():
                    case.fail(
                        what,
                        f"returns the best first (k={k}, {kind} theta)",
                        i,
                        values,
                        "values that do not rise",
                    )
                case.near(
                    what, f"returns the values of its labels (k={k})", i, values, scores[rows]
                )
                top = np.sort(scores)[::-1][: len(rows)]
                case.near(what, f"returns the k best labels (k={k}, {kind} theta)", i, values, top)


def check_max_marginals(case: Case) -> None:
    """The best value of a label per state of a node."""
    if not case.oracle.has_max_marginals or not isinstance(case.space, NodeSpace):
        return
    for i in range(case.n):
        for kind, theta in case.thetas(i).items():
            found = case.max_marginals(i, theta)
            scores = case.mu[i] @ theta
            for v, s in np.ndindex(*found.shape):
                having = scores[case.labels[i][:, v] == s]
                if having.size:
                    case.near(
                        "Oracle.max_marginals",
                        f"gives the best value with state {s} at node {v} ({kind} theta)",
                        i,
                        found[v, s],
                        having.max(),
                    )


def check_counts(case: Case, extra: Any) -> None:
    """For each count the best value of a label that has it, under every loss that counts."""
    if not case.oracle.has_counts:
        return
    for i in range(case.n):
        for name, cost in _counting_costs(case, extra, i):
            counts = case.mu[i] @ cost
            for most in (int(counts.max()) + 2, int(counts.max()) // 2):
                for kind, theta in case.thetas(i).items():
                    _check_frontier(case, i, f"{name}, {kind} theta", theta, cost, counts, most)


def _counting_costs(case: Case, extra: Any, i: int) -> list[tuple[str, np.ndarray]]:
    """Return costs with values 0, 1, 2 ...: those of losses, from whichever side they count."""
    found = []
    for name, loss in _losses(case, extra):
        if not loss.decomposes:
            continue
        given = Guarded(len(case.padding[i]), np.float64)
        with case.promise(f"Loss {name!r}.augment", "answers without an exception", i):
            _calls.augment(loss, i, 1.0, given.memory)
        for side, what in ((1, "errors"), (-1, "agreements")):
            cost = side * given.array + 0.0
            if (cost >= 0).all() and (cost == np.floor(cost)).all() and cost.any():
                found.append((f"{what} of loss {name!r}", cost))
    block = case.layout.node
    if block is not None:
        cost = np.zeros(len(case.padding[i]))
        node = case.layout.theta_views(cost, *case.sizes(i))[block.name]
        node[...] = case.rng.integers(0, 4, node.shape)
        found.append(("integer costs of nodes", cost))
    return found


def _check_frontier(
    case: Case, i: int, kind: str, theta: np.ndarray, cost: np.ndarray, counts: Any, most: int
) -> None:
    what, scores = "Oracle.argmax_counts", case.mu[i] @ theta
    labels, values = case.counts(i, theta, cost, most)
    for c in range(most + 1):
        having = scores[counts == c]
        best = having.max() if having.size else -np.inf
        promise = f"gives the best value for count {c} of {most} ({kind})"
        case.near(what, promise, i, values[c], best)
        if not having.size:
            continue
        row = case.find(i, labels[c])
        if row is None:
            case.fail(what, f"returns labels of the example ({kind})", i, labels[c], "one listed")
        if counts[row] != c:
            promise = f"returns for count {c} a label that has it ({kind})"
            case.fail(what, promise, i, f"{labels[c]} with count {counts[row]}", c)
        case.near(what, f"returns labels of its values ({kind})", i, scores[row], values[c])


def check_constraints(case: Case) -> None:
    """Labels whose parts score -inf are avoided, as hard constraints at prediction need it."""
    space, block = case.space, case.layout.node
    if not isinstance(space, NodeSpace) or block.shape != (len(space.classes_),):
        return
    for i in range(case.n):
        theta = case.thetas(i)["random"]
        kept = case.labels[i][case.rng.integers(len(case.labels[i]))]
        node = case.layout.theta_views(theta, *case.sizes(i))[block.name]
        barred = case.rng.random(node.shape) < 0.4
        barred[np.arange(len(kept)), kept] = False
        node[barred] = -np.inf
        possible = ~np.array([barred[np.arange(len(y)), y].any() for y in case.labels[i]])
        scores = np.full(len(possible), -np.inf)
        finite = np.where(np.isinf(theta), 0, theta)
        scores[possible] = case.mu[i][possible] @ finite
        label, value = case.argmax(i, theta)
        exact = case.oracle.exact
        _check_best(case, "Oracle.argmax", i, "constrained", label, value, scores, exact)


def _losses(case: Case, extra: Any) -> list[tuple[Any, Any]]:
    """Return names and native objects of the losses that some plugin gives for the space."""
    names = [*registry.default().loss_names(), *getattr(case.space, "loss_names", ())]
    names += [] if extra in names else [extra]
    found = []
    for name in dict.fromkeys(names):
        with case.promise(f"Loss {name!r}", "is put together"):
            loss = registry.default().ask(
                "structsolve_loss", Loss, space=case.space, examples=case.examples, loss=name
            )
        if loss is not None:
            found.append((name, loss))
    return found


def check_losses(case: Case, extra: Any) -> None:
    """0 at the truth, never negative, and as its flags say."""
    for name, loss in _losses(case, extra):
        what = f"Loss {name!r}"
        for i in range(case.n):
            truth = case.examples.label(i)
            values = case.losses(what, loss, i)
            at_truth = float(values[case.row(i, truth)])
            if at_truth != 0:
                case.fail(f"{what}.value", "is 0 for the true label", i, at_truth, 0)
            if not np.isfinite(values).all() or values.min() < 0:
                case.fail(f"{what}.value", "is finite and at least 0", i, values, ">= 0")
            wrong = (case.labels[i] != truth).any(axis=1)
            if loss.zero_one and not (values == wrong).all():
                case.fail(
                    f"{what}.zero_one",
                    "is 1 for every label but the truth",
                    i,
                    values,
                    wrong.astype(float),
                )
            if loss.decomposes:
                _check_augment(case, what, loss, i, values)


def _check_augment(case: Case, what: str, loss: Any, i: int, values: np.ndarray) -> None:
    for scale in (1.0, -0.5):
        for kind, theta in case.thetas(i).items():
            if kind == "large":
                continue
            given = Guarded(len(theta), np.float64, theta)
            with case.promise(f"{what}.augment", "answers without an exception", i):
                const = _calls.augment(loss, i, scale, given.memory)
            if given.damage():
                case.fail(
                    f"{what}.augment",
                    "writes only into theta",
                    i,
                    f"a write {given.damage()}",
                    "writes within theta",
                )
            if np.any(given.array[case.padding[i]] != 0):
                case.fail(
                    f"{what}.augment", "never touches padding", i, given.array[case.padding[i]], 0
                )
            case.near(
                f"{what}.augment",
                f"adds {scale} times the loss to the score of every label",
                i,
                case.mu[i] @ (given.array - theta) + const,
                scale * values,
            )


def check_augmented_oracle(case: Case, loss: Any) -> None:
    """The most violated label under the loss that the structure trains with."""
    if not case.oracle.has_augmented:
        return
    native = problem.ask_loss(case.space, case.examples, loss)
    what = "Oracle.argmax_augmented"
    for i in range(case.n):
        values = case.losses(f"Loss {loss!r}", native, i)
        for kind, theta in case.thetas(i).items():
            label, value, found = case.argmax_augmented(i, theta)
            _check_best(case, what, i, kind, label, value, case.mu[i] @ theta + values)
            case.near(what, "returns the loss of its label", i, found, values[case.row(i, label)])


def check_projections(case: Case) -> None:
    """Marginals and values of the enumeration (entropy); gradients and convex hull (others)."""
    names = ["entropy", *getattr(case.space, "projections", ("euclidean",))]
    for name in dict.fromkeys(names):
        with case.promise(f"Projection {name!r}", "is put together"):
            projection = registry.default().ask(
                "structsolve_projection",
                Projection,
                space=case.space,
                examples=case.examples,
                regularizer=name,
            )
        if projection is None:
            continue
        what = f"Projection.project ({name})"
        for i in range(case.n):
            for kind, theta in case.thetas(i).items():
                mu, value = case.project(projection, name, i, theta)
                if not (np.isfinite(mu).all() and np.isfinite(value)):
                    case.fail(what, f"is finite ({kind} theta)", i, (mu, value), "finite numbers")
                if projection.gibbs:
                    _check_entropy(case, what, i, kind, theta, mu, value)
                elif kind != "large":
                    _check_hull(case, what, i, mu)
                if kind == "random":
                    _check_gradient(case, what, projection, name, i, theta, mu)


def _check_entropy(
    case: Case, what: str, i: int, kind: str, theta: np.ndarray, mu: np.ndarray, value: float
) -> None:
    scores = case.mu[i] @ theta
    top = scores.max()
    weights = np.exp(scores - top)
    case.near(
        what, f"returns the log-partition ({kind} theta)", i, value, top + np.log(weights.sum())
    )
    expected = (weights / weights.sum()) @ case.mu[i]
    worst = int(np.abs(mu - expected).argmax())
    if abs(mu[worst] - expected[worst]) > 1e-8:
        case.fail(
            what,
            f"returns the marginals of the Gibbs distribution ({kind} theta)",
            i,
            f"{float(mu[worst])!r} at position {worst} of theta",
            float(expected[worst]),
        )


def _check_hull(case: Case, what: str, i: int, mu: np.ndarray) -> None:
    from scipy.optimize import nnls

    # A convex combination of labels, as far as a small least-squares fit can tell.
    system = np.vstack([case.mu[i].T, np.ones(len(case.labels[i]))])
    _, distance = nnls(system, np.append(mu, 1.0))
    if distance > 1e-6:
        case.fail(what, "stays in the convex hull of the labels", i, f"distance {distance}", 0)


def _check_gradient(
    case: Case, what: str, projection: Any, name: str, i: int, theta: np.ndarray, mu: np.ndarray
) -> None:
    step = 1e-5
    for _ in range(3):
        towards = case.rng.normal(size=len(theta))
        towards[case.padding[i]] = 0
        up, down = (
            case.project(projection, name, i, theta + sign * step * towards)[1] for sign in (1, -1)
        )
        case.near(
            what,
            "returns the gradient of its value as marginals",
            i,
            mu @ towards,
            (up - down) / (2 * step),
            1e-5,
        )


def check_threads(case: Case) -> None:
    """Four threads at once get the answers that one gets."""
    tasks = [(i, theta) for i in range(case.n) for theta in case.thetas(i).values()]
    expected = [case.argmax(i, theta) for i, theta in tasks]
    begun = perf_counter()
    case.argmax(*tasks[0])
    # Native calls are over before another thread begins unless there are many.
    repeats = int(np.clip(0.02 / (perf_counter() - begun), 3, 100))

    def work(number: int) -> tuple[np.ndarray, float] | None:
        i, theta = tasks[number]
        return case.repeat_argmax(i, theta, *expected[number], repeats)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(work, range(len(tasks))))
    finally:
        sys.setswitchinterval(interval)
    for (i, _), answer, alone in zip(tasks, found, expected):
        if answer is not None:
            case.fail(
                "Oracle.argmax",
                "gives the same answers in four threads as in one",
                i,
                answer,
                alone,
            )
