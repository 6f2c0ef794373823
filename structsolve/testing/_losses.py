"""Checks of losses: their values, what they add to scores, and their matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import registry
from ..operators import Loss
from . import _calls
from ._case import Case, Guarded

# Truths whose costs are compared with the loss bound to them.
TRUTHS = 6


def losses_of(case: Case, extra: Any) -> list[tuple[Any, Any]]:
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
    for name, loss in losses_of(case, extra):
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
            if loss.has_costs:
                _check_costs(case, name, loss, i, values)


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


def _costs(
    case: Case, name: Any, loss: Any, i: int, nu: np.ndarray, transposed: bool = False
) -> tuple[np.ndarray, float]:
    """Return the scores that a loss adds at marginals nu, and the constant."""
    what = f"Loss {name!r}.costs"
    given, theta = Guarded(len(nu), np.float64, nu), Guarded(len(nu), np.float64)
    with case.promise(what, "answers without an exception", i):
        const = _calls.costs(loss, i, given.memory, transposed, -0.5, theta.memory)
    if given.damage() or theta.damage() or given.array.tobytes() != nu.tobytes():
        where = given.damage() or theta.damage() or "into nu"
        case.fail(what, "writes only into theta", i, f"a write {where}", "writes within theta")
    if np.any(theta.array[case.padding[i]] != 0):
        case.fail(what, "never touches padding", i, theta.array[case.padding[i]], 0)
    return theta.array / -0.5, const / -0.5


def _check_costs(case: Case, name: Any, loss: Any, i: int, values: np.ndarray) -> None:
    """``<mu(y), A mu(y')> + const = L(y, y')``: for this truth, for others, on average, turned."""
    what, mu = f"Loss {name!r}.costs", case.mu[i]
    if (case.examples.label(i) >= 0).all():
        costs, const = _costs(case, name, loss, i, mu[case.row(i, case.examples.label(i))])
        promise = "gives every label's loss where nu is mu(truth)"
        case.near(what, promise, i, mu @ costs + const, values)
    rows = case.rng.permutation(len(mu))[:TRUTHS]
    matrix = np.empty((len(mu), len(rows)))
    for j, row in enumerate(rows):
        costs, const = _costs(case, name, loss, i, mu[row])
        matrix[:, j] = mu @ costs + const
        _check_against_truth(case, name, i, row, matrix[:, j])
    p = case.rng.dirichlet(np.ones(len(rows)))
    costs, const = _costs(case, name, loss, i, p @ mu[rows])
    case.near(what, "is linear in the truths' distribution", i, mu @ costs + const, matrix @ p)
    for row in case.rng.permutation(len(mu))[:TRUTHS]:
        costs, const = _costs(case, name, loss, i, mu[row], True)
        promise = "gives what truths cost a prediction, transposed"
        case.near(what, promise, i, mu[rows] @ costs + const, matrix[row])


def _check_against_truth(case: Case, name: Any, i: int, row: int, found: np.ndarray) -> None:
    # The loss against another truth: that of examples with another label.
    examples = case.examples
    labels = examples.labels.copy()
    first, last = examples.label_offsets[i], examples.label_offsets[i + 1]
    labels[first:last] = case.labels[i][row]
    changed = replace(examples, labels=labels)
    with case.promise(f"Loss {name!r}", "is put together"):
        loss = registry.default().ask(
            "structsolve_loss", Loss, space=case.space, examples=changed, loss=name
        )
    expected = case.losses(f"Loss {name!r}", loss, i)
    case.near(f"Loss {name!r}.costs", f"is the loss at truth {row}", i, found, expected)
