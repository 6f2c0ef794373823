"""Checks beyond small cases: other layouts, few and many classes, larger labels, cost."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from ..lp import ask_oracle
from ..structure import calls
from ..structure.ask import ask_parts, ask_power, make_layout
from ..structure.node_space import NodeSpace
from ..structure.pack import learn_space
from ._case import Case
from ._promise import TOLERANCE, BrokenPromise

# Number of classes that fills two vectors of eight and part of a third, and the maximum number of
# labels.
MANY_CLASSES, MOST_LABELS = 19, 400
# Sizes to try, and the maximum seconds of a sample and an answer.
SIZES, LONGEST = (4, 7, 10, 13, 17), 0.01
# Exponent of the growth of time with size from which a warning is given.
POWER = 4.5


class SlowOperator(UserWarning):
    """The cost of an oracle grows steeply with the size of labels."""


def many_classes(structure: Any, seed: int) -> Case | None:
    """Return a case of few nodes with more classes than a vector holds; None if impossible.

    Parameters
    ----------
    structure : Structure
    seed : int
    """
    try:
        small = Case(structure, 0, seed, 2)
    except BrokenPromise:
        return None  # its parameters are for larger labels
    known = getattr(small.space, "classes_", None)
    if hasattr(small.space, "argmax"):
        return None  # in Python: no vectors
    if known is None or not isinstance(small.space, NodeSpace) or known.dtype.kind not in "iu":
        return None
    classes = np.union1d(known, np.arange(MANY_CLASSES))[:MANY_CLASSES]
    try:
        case = Case(structure, 0, seed, 2, classes=classes)
    except BrokenPromise:
        return None  # it takes none; check_options has checked that
    if len(case.space.classes_) != MANY_CLASSES:
        return None
    with case.promise("enumerate_labels", "lists all labels"):
        counts = [len([*case.space.enumerate_labels(case.examples, i)]) for i in range(case.n)]
    return case if max(counts) <= MOST_LABELS else None


def other_layouts(structure: Any, seed: int, size: int) -> Iterator[Case]:
    """Draw cases of other layouts: with two classes, and with the structure's ``layouts``.

    Parameters
    ----------
    structure : Structure
    seed, size : int
        See :class:`Case`.
    """
    for variant in (structure, *_variants(structure)):
        case = Case(variant, 0, seed, size)
        case.more = ", solvers=()"
        if variant is not structure:
            yield case
        known = getattr(case.space, "classes_", None)
        if not isinstance(case.space, NodeSpace) or known is None or len(known) == 2:
            continue
        try:
            few = Case(variant, 0, seed, size, two=True)
            few.enumerate()
        except BrokenPromise:
            continue  # its labels are no numbers of classes, or not all of them are allowed
        few.more = ", solvers=(), only=['layouts']"
        if len(few.space.classes_) == 2:
            yield few


def _variants(structure: Any) -> Iterator[Any]:
    """Return the structure with other values of the parameters in its ``layouts``."""
    own = {name: repr(getattr(structure, name)) for name in structure.layouts}
    # Values that the user changed stay: others may not fit the rest.
    tried = {n: v for n, v in structure.layouts.items() if own[n] in map(repr, v)}
    for values in product(*tried.values()):
        given = dict(zip(tried, values))
        variant = copy.copy(structure).set_params(**given)
        if all(own[name] == repr(value) for name, value in given.items()):
            continue
        try:
            variant.check_params()
        except ValueError:
            continue
        yield variant


def check_larger(case: Case) -> None:
    """Values belong to labels, and no other answer is better; also checks the cost.

    Labels are not enumerated: sizes grow until an answer takes long.
    """
    seconds: list[tuple[int, float]] = []
    for size in SIZES:
        begun = case.clock()
        with case.promise("sample", f"draws examples of size {size}"):
            X, Y = case.draw(3, size)
        drawn = case.clock() - begun
        with case.promise("make_space", f"accepts its own sample of size {size}"):
            space, examples = learn_space(case.structure, X, Y)
        layout = make_layout(space, examples)
        oracle, parts = ask_oracle(space)(layout), ask_parts(space)(layout)
        i = int(np.argmax(np.diff(examples.label_offsets)))
        larger = case.copy_of(space, examples, X, oracle=oracle, parts=parts)
        seconds.append((len(examples.label(i)), _check_answers(larger, i, size)))
        if max(seconds[-1][1], drawn) > LONGEST:
            break  # many samples enumerate labels
    _tell_cost(case, seconds)


def _check_answers(case: Case, i: int, size: int) -> float:
    """Compare answers with each other; return the seconds per answer."""
    theta_size = case.layout.theta_size(*case.sizes(i))
    inside = np.zeros(theta_size, dtype=bool)
    for view in case.layout.theta_views(inside, *case.sizes(i)).values():
        view[...] = True
    case.padding = [~inside if j == i else np.zeros(0, bool) for j in range(case.n)]
    told, encoded, took = [], [case.dense(i, *case.encode(i, case.examples.label(i)))], np.inf
    for _ in range(2):
        theta = case.rng.normal(size=theta_size)
        theta[~inside] = 0
        begun = case.clock()
        with case.promise("Oracle.argmax", f"answers for size {size}", i):
            calls.argmax(case.oracle, i, theta)
        took = min(took, case.clock() - begun)
        label, value, bound = case.argmax(i, theta)
        mu = case.dense(i, *case.encode(i, label))
        promise = f"returns the value of its label (size {size}, theta of {theta_size})"
        case.near("Oracle.argmax", promise, i, value, mu @ theta)
        if case.oracle.exact:
            _check_rankings(case, i, theta, value, size)
        told.append((theta, value, bound))
        encoded.append(mu)
    for theta, value, bound in told:
        best = max(float(mu @ theta) for mu in encoded)
        case.latest = i, theta
        if case.oracle.exact and value < best - TOLERANCE * (1 + abs(best)):
            promise = f"returns a label that attains the maximum (size {size})"
            case.fail("Oracle.argmax", promise, i, value, f"at least {best!r}")
        if bound < best - TOLERANCE * (1 + abs(best)):
            promise = f"returns a bound that no label exceeds (size {size})"
            case.fail("Oracle.argmax", promise, i, bound, f"at least {best!r}")
    return took


def _check_rankings(case: Case, i: int, theta: np.ndarray, value: float, size: int) -> None:
    """The k best and max-marginals agree with the oracle on the best value."""
    layout = make_layout(case.space, case.examples, training=True)
    for name, what in (("kbest", "KBest.kbest"), ("max-marginals", "MaxMarginals.max_marginals")):
        bind = ask_power(case.space, name)
        operator = None if bind is None else bind(layout)
        if operator is None or not isinstance(case.space, NodeSpace):
            continue
        if name == "kbest":
            best = case.call(what, i, calls.kbest, operator, theta, 2)[1][:1]
        elif case.layout.node is None:
            continue
        else:
            states = case.layout.node.shape[-1]
            margins = case.call(what, i, calls.max_marginals, operator, theta, states)
            best = margins.max(axis=1)
        promise = f"agrees with Oracle.argmax on the best value (size {size})"
        case.near(what, promise, i, best, np.full(len(best), value))


def _tell_cost(case: Case, seconds: list[tuple[int, float]]) -> None:
    """Warn if the time of an answer grows steeply, or is long for a small label."""
    (small, before), (large, after) = seconds[0], seconds[-1]
    if after <= LONGEST or large <= small:
        return
    power = np.log(after / max(before, 1e-6)) / np.log(large / max(small, 1))
    if power > POWER:
        warnings.warn(
            f"{case.structure!r}: Oracle.argmax takes {1e3 * before:.2g} ms for a label of {small} "
            f"entries and {1e3 * after:.2g} ms for {large}, which grows as the power {power:.1f} "
            "of the size: does it enumerate labels?",
            SlowOperator,
            stacklevel=4,
        )
