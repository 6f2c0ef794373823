"""Checks of the operators of one case against enumeration of all labels."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from time import perf_counter, thread_time
from typing import Any, TypeVar

import numpy as np

from ..lp import ask_oracle
from ..structure import calls
from ..structure.ask import make_layout
from ..structure.node_space import NodeSpace
from ..structure.pack import pack
from ._case import TELLING, Case
from ._losses import losses_of
from ._promise import TOLERANCE, BrokenPromise

# Number of labels compared with another; number of scores for which threads are compared with one.
PAIRS = 12
IN_THREADS = ("random",)
# Seconds of computation per thread, and the maximum number of calls in a row.
OVERLAP, MOST_REPEATS = 6e-3, 200_000
# Required average number of concurrent threads, and the maximum number of rounds.
AT_ONCE, MOST_ROUNDS = 1.5, 8

T = TypeVar("T")


def check_parts(case: Case) -> None:
    """``difference`` is the difference of two results of ``encode``."""
    for i in range(case.n):
        rows = case.rng.permutation(len(case.labels[i]))[:PAIRS]
        # In a ring, and each with itself: every label is the truth once, and the other label once.
        for a, b in [*zip(rows, np.roll(rows, 1)), *zip(rows, rows)]:
            truth, label = case.labels[i][a], case.labels[i][b]
            difference = case.dense(i, *case.encode(i, label, truth))
            expected = case.mu[i][a] - case.mu[i][b]
            promise = "is encode(truth) - encode(label) for {} and {}"
            case.near("Parts.difference", promise, i, difference, expected, quoted=(truth, label))
        if case.parts.indicator:
            _check_indicator(case, i)


def _check_indicator(case: Case, i: int) -> None:
    """If ``indicator`` is declared, mu(y) is the y-th unit vector."""
    for label, mu in zip(case.labels[i], case.mu[i]):
        expected = np.zeros_like(mu)
        if np.size(label) == 1:
            expected[np.ravel(label)[0]] = 1
        promise = "declares labels that are single numbers y with mu(y) = e_y (label {})"
        case.near("Parts.indicator", promise, i, mu, expected, quoted=(label,))


def check_best(
    case: Case,
    what: str,
    i: int,
    kind: str,
    answer: tuple[Any, float],
    scores: Any,
    *,
    exact: bool = True,
) -> None:
    """The label is one of all labels, attains the largest of ``scores``, and has that value."""
    label, value = answer
    row = case.listed(what, i, label, f"{kind} theta")
    best = scores.max()
    if exact and not scores[row] >= best - TOLERANCE * (1 + abs(best)):
        promise = f"returns a label that attains the maximum ({kind} theta)"
        better = f"score {float(best)!r}, of {case.labels[i][scores.argmax()].tolist()}"
        if case.lists_all_labelings:
            better += " (if that is no label, the space lacks contains(): all K^n are listed)"
        case.fail(what, promise, i, f"{label} with score {float(scores[row])!r}", better)
    case.near(what, f"returns the value of its label ({kind} theta)", i, value, scores[row])


def check_oracle(case: Case) -> None:
    """Answers are optimal, have the reported value, and are independent of scratch memory.

    An oracle that does not declare itself exact may miss the maximum, but its bound must hold.
    """
    exact = case.oracle.exact
    for i in range(case.n):
        for kind, theta in case.thetas(i).items():
            label, value, bound = case.argmax(i, theta)
            scores = case.mu[i] @ theta
            if not np.isfinite([value, bound]).all():
                promise = f"sets value and bound ({kind} theta)"
                case.fail("Oracle.argmax", promise, i, (value, bound), "finite numbers")
            try:
                check_best(case, "Oracle.argmax", i, kind, (label, value), scores, exact=exact)
            except BrokenPromise as broken:
                told = str(_with_counts(case, i, theta, broken))
                python = hasattr(case.space, "argmax") and hasattr(case.space, "parts")
                if python and "the maximum" in told and "Parts.encode" not in told:
                    both = " Scores are counted by parts(): it, or argmax(), is wrong. To see it"
                    told = told.replace(" To see it", both)
                broken.args = (told,)
                raise
            again, *same = case.argmax(i, theta, garbage=0)
            if again.tolist() != label.tolist() or same != [value, bound]:
                case.fail(
                    "Oracle.argmax",
                    f"gives the same answer twice, regardless of its scratch memory ({kind} theta)",
                    i,
                    (again, *same),
                    (label, value, bound),
                )
            _check_bound(case, i, kind, (value, bound), scores.max())


def _with_counts(case: Case, i: int, theta: np.ndarray, broken: BrokenPromise) -> BrokenPromise:
    """Name the parts as well, where the oracle counts those of its label otherwise than encode.

    The oracle's value changes with a score as often as it counts that part.
    """
    label, value, _ = case.argmax(i, theta)
    row = case.find(i, label)
    if row is None or not np.isfinite(value):
        return broken
    counts = np.zeros(len(theta))
    for k in np.flatnonzero(~case.padding[i]).tolist():
        moved = theta.copy()
        moved[k] += 1e-3 * (1 + abs(theta[k]))
        same, other, _ = case.argmax(i, moved)
        if same.tolist() != label.tolist():
            return broken
        counts[k] = (other - value) / (moved[k] - theta[k])
    encoded = case.mu[i][row]
    k = int(abs(counts - encoded).argmax())
    consistent = abs(counts @ theta - value) <= 1e-6 * (1 + abs(counts) @ abs(theta))
    if not consistent or abs(counts[k] - encoded[k]) < 1e-3:
        return broken  # the oracle's values are inconsistent
    starts = {name: start for name, start in case.oracle.layout.starts.items() if start <= k}
    block = max(starts, key=lambda name: starts[name], default="node")
    differ = (
        f" The oracle's value rises by {round(counts[k], 3):g} with theta[{k}] (block {block!r}), "
        f"which encode({label.tolist()}) counts {encoded[k]:g} times: one of the two is wrong."
    )
    told = str(broken).replace("Oracle.argmax breaks", "Oracle.argmax or Parts.encode breaks")
    broken.args = (told.replace(" To see it again", f"{differ} To see it again"),)
    return broken


def check_blindness(case: Case) -> None:
    """Answers do not depend on the true labels, which are missing in prediction."""
    with case.promise("pack", "packs X without labels"):
        bare = pack(case.space, case.X)
    others = replace(case.examples, labels=case.examples.labels.copy())
    for i in range(case.n):
        label = case.labels[i][case.rng.integers(len(case.labels[i]))]
        others.labels[others.label_offsets[i] : others.label_offsets[i + 1]] = label
    for examples, which in ((bare, "without labels"), (others, "with other labels")):
        with case.promise("Oracle", f"is bound to examples {which}"):
            oracle = ask_oracle(case.space)(make_layout(case.space, examples, training=True))
        for i in range(case.n):
            theta = case.thetas(i, ("random",))["random"]
            best = float((case.mu[i] @ theta).max())
            promise = f"answers for examples {which}: prediction has no truth"
            case.latest = i, theta
            with case.promise("Oracle.argmax", promise, i):
                value = calls.argmax(oracle, i, theta)[1]
            if not case.oracle.exact:
                best = case.argmax(i, theta)[1]
            promise = f"gives the same value for examples {which}: it does not look at the truth"
            case.near("Oracle.argmax", promise, i, value, best)


def _check_bound(case: Case, i: int, kind: str, answer: tuple[float, float], best: float) -> None:
    """No label exceeds the bound, and the bound of an exact oracle is the value."""
    (value, bound), what, exact = answer, "Oracle.argmax", case.oracle.exact
    if not bound >= best - TOLERANCE * (1 + abs(best)):
        promise = f"returns a bound that no label exceeds ({kind} theta)"
        case.fail(what, promise, i, bound, f"at least {float(best)!r}")
    if not bound >= value:
        case.fail(what, f"has a bound of at least its value ({kind} theta)", i, bound, value)
    if exact and bound != value:
        case.fail(what, f"is exact, so its bound is its value ({kind} theta)", i, bound, value)


def check_kbest(case: Case) -> None:
    """The k best values of the enumeration, best first, on distinct labels."""
    operator = case.power("kbest")
    if operator is None:
        return
    what = "KBest.kbest"
    for i in range(case.n):
        n_labels = len(case.labels[i])
        for kind, theta in case.thetas(i).items():
            scores = case.mu[i] @ theta
            for k in sorted({1, 2, 3, n_labels, n_labels + 3} if kind in TELLING else {3}):
                labels, values = case.call(what, i, calls.kbest, operator, theta, k)
                rows = [case.find(i, label) for label in labels]
                if None in rows:
                    bad = labels[rows.index(None)]
                    case.fail(what, f"returns labels of the example (k={k})", i, bad, "one listed")
                if len(set(rows)) < len(rows):
                    promise = f"returns distinct labels (k={k}, {kind} theta)"
                    case.fail(what, promise, i, labels, "no label twice")
                if len(rows) != min(k, n_labels):
                    promise = f"finds k labels if there are k (k={k})"
                    case.fail(what, promise, i, len(rows), min(k, n_labels))
                if (np.diff(values) > TOLERANCE * (1 + np.abs(values[1:]))).any():
                    promise = f"returns the best first (k={k}, {kind} theta)"
                    case.fail(what, promise, i, values, "values that do not rise")
                case.near(
                    what, f"returns the values of its labels (k={k})", i, values, scores[rows]
                )
                top = np.sort(scores)[::-1][: len(rows)]
                case.near(what, f"returns the k best labels (k={k}, {kind} theta)", i, values, top)


def check_max_marginals(case: Case) -> None:
    """The best value of a label per state of a node."""
    operator, block = case.power("max-marginals"), case.layout.node
    if operator is None or block is None or not isinstance(case.space, NodeSpace):
        return
    what, n_states = "MaxMarginals.max_marginals", block.shape[-1]
    for i in range(case.n):
        for kind, theta in case.thetas(i).items():
            best = case.call(what, i, calls.max_marginals, operator, theta, n_states)
            scores = case.mu[i] @ theta
            for v, s in np.ndindex(*best.shape):
                having = scores[case.labels[i][:, v] == s]
                if having.size:
                    promise = f"gives the best value with state {s} at node {v} ({kind} theta)"
                    case.near(what, promise, i, best[v, s], having.max())


def check_counts(case: Case, extra: Any) -> None:
    """The best value of a label for each count, for every loss with integer costs."""
    if case.power("counts") is None:
        return
    for i in range(case.n):
        for name, cost in _counting_costs(case, extra, i):
            counts = case.mu[i] @ cost
            for most in (int(counts.max()) + 2, int(counts.max()) // 2):
                for kind, theta in case.thetas(i, TELLING).items():
                    _check_frontier(case, i, f"{name}, {kind} theta", theta, cost, most)


def _counting_costs(case: Case, extra: Any, i: int) -> list[tuple[str, np.ndarray]]:
    """Return costs with values 0, 1, 2 ...: of losses, as errors or agreements, and random ones."""
    costs = []
    for name, loss in losses_of(case, extra):
        if not loss.decomposes:
            continue
        added, _ = case.augment(
            f"Loss {name!r}", loss, i, case.examples.label(i), 1.0, np.zeros(len(case.padding[i]))
        )
        for side, what in ((1, "errors"), (-1, "agreements")):
            cost = side * added + 0.0
            if (cost >= 0).all() and (cost == np.floor(cost)).all() and cost.any():
                costs.append((f"{what} of loss {name!r}", cost))
    block = case.layout.node
    if block is not None:
        cost = np.zeros(len(case.padding[i]))
        node = case.layout.theta_views(cost, *case.sizes(i))[block.name]
        node[...] = case.rng.integers(0, 4, node.shape)
        costs.append(("integer costs of nodes", cost))
    return costs


def _check_frontier(
    case: Case, i: int, kind: str, theta: np.ndarray, cost: np.ndarray, most: int
) -> None:
    what, scores, counts = "CountOracle.argmax_counts", case.mu[i] @ theta, case.mu[i] @ cost
    labels, values = case.call(
        what, i, calls.argmax_counts, case.power("counts"), theta, cost, most
    )
    for c in range(most + 1):
        having = scores[counts == c]
        best = having.max() if having.size else -np.inf
        promise = f"gives the best value for count {c} of {most} ({kind})"
        case.near(what, promise, i, values[c], best)
        if not having.size:
            continue
        row = case.listed(what, i, labels[c], kind)
        if counts[row] != c:
            promise = f"returns for count {c} a label that has it ({kind})"
            case.fail(what, promise, i, f"{labels[c]} with count {counts[row]}", c)
        case.near(what, f"returns labels of its values ({kind})", i, scores[row], values[c])


def check_constraints(case: Case) -> None:
    """Labels whose parts score -inf are avoided, as hard constraints at prediction need."""
    space, block = case.space, case.layout.node
    if not isinstance(space, NodeSpace) or block is None:
        return
    if block.shape != (len(space.classes_),):
        return
    for i in np.repeat(range(case.n), 2).tolist():
        theta = case.thetas(i, ("random",))["random"]
        kept = case.labels[i][case.rng.integers(len(case.labels[i]))]
        node = case.layout.theta_views(theta, *case.sizes(i))[block.name]
        barred = case.rng.random(node.shape) < 0.4
        barred[np.arange(len(kept)), kept] = False
        node[barred] = -np.inf
        possible = ~np.array([barred[np.arange(len(y)), y].any() for y in case.labels[i]])
        scores = np.full(len(possible), -np.inf)
        finite = np.where(np.isinf(theta), 0, theta)
        scores[possible] = case.mu[i][possible] @ finite
        label, value, _ = case.argmax(i, theta)
        exact = case.oracle.exact
        check_best(case, "Oracle.argmax", i, "constrained", (label, value), scores, exact=exact)


def check_augmented_oracle(case: Case, loss: Any) -> None:
    """The most violated label under a loss that the oracle supports: ``loss``, or another one."""
    operator = case.power("augmented")
    if operator is None:
        return
    known = [pair for pair in losses_of(case, loss) if operator.knows(pair[1])]
    if not known:
        return
    loss, native = next((pair for pair in known if pair[0] == loss), known[0])
    what = "AugmentedOracle.argmax"
    for i in range(case.n):
        truth = case.examples.label(i)
        values = case.losses(f"Loss {loss!r}", native, i)
        for kind, theta in case.thetas(i).items():
            label, value, cost = case.call(what, i, calls.argmax_augmented, operator, theta, truth)
            check_best(case, what, i, kind, (label, value), case.mu[i] @ theta + values)
            case.near(what, "returns the loss of its label", i, cost, values[case.row(i, label)])


def check_threads(case: Case) -> None:
    """Four concurrent threads get the same answers as one."""
    tasks = [(i, theta) for i in range(case.n) for theta in case.thetas(i, IN_THREADS).values()]
    tasks = (4 * tasks)[: max(4, len(tasks))]
    expected = [case.argmax(i, theta)[:2] for i, theta in tasks]
    # One native call ends before another thread begins; as many in a row overlap as take some
    # milliseconds, for every example as long: of a long one and short ones it runs alone.
    alone = [_seconds_of_call(case, *task, *answer) for task, answer in zip(tasks, expected)]
    span = max(OVERLAP, 3 * max(alone))
    repeats = [min(math.ceil(span / seconds), MOST_REPEATS) for seconds in alone]

    def work(number: int) -> tuple[tuple[np.ndarray, float] | None, float]:
        i, theta = tasks[number]
        begun = perf_counter()
        answer = case.repeat_argmax(i, theta, *expected[number], repeats[number])
        return answer, perf_counter() - begun

    for _ in range(MOST_ROUNDS):
        all_in_all = perf_counter()
        answers, seconds = zip(*_at_once(work, len(tasks)))
        if any(answer is not None for answer in answers):
            break
        # On a busy machine a thread may end before the next one gets a core: then repeat.
        if sum(seconds) > AT_ONCE * (perf_counter() - all_in_all):
            break
    for (i, _), answer, other in zip(tasks, answers, expected):
        if answer is not None:
            promise = "gives the same answers in four threads as in one"
            case.fail("Oracle.argmax", promise, i, answer, other)


def _seconds_of_call(
    case: Case, i: int, theta: np.ndarray, label: np.ndarray, value: float
) -> float:
    """Return the seconds of this thread that a call takes, or an eighth of all, if they are more.

    For oracles that sleep, the wall time counts.  A call that fails to repeat this answer in a
    single thread is left to the threads.
    """
    repeats = 3
    while True:
        own, all_in_all = thread_time(), perf_counter()
        case.repeat_argmax(i, theta, label, value, repeats)
        taken = max(thread_time() - own, (perf_counter() - all_in_all) / 8, 1e-9)
        if taken > OVERLAP / 8 or repeats >= MOST_REPEATS:
            return taken / repeats
        repeats *= 4


def _at_once(work: Callable[[int], T], count: int) -> list[T]:
    """Return ``work(0), ..., work(count - 1)`` from four threads that start at the same time."""
    start = Barrier(min(4, count), timeout=60)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(start.parties, initializer=start.wait) as pool:
            return list(pool.map(work, range(count)))
    finally:
        sys.setswitchinterval(interval)
