"""Checks of losses: their values, the scores they add, and their matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import registry
from ..operators import Loss
from ..structure import projection_calls
from ..structure.ask import ask
from ._case import Case

# Truths whose costs are compared with the loss.
TRUTHS = 4


def losses_of(case: Case, extra: Any) -> list[tuple[Any, Any]]:
    """Return names and native objects of the plugins' losses for the space."""
    names = [*registry.default().loss_names(), *getattr(case.space, "loss_names", ())]
    names += [] if extra in names else [extra]
    losses = []
    for name in dict.fromkeys(names):
        with case.promise(f"Loss {name!r}", "can be built"):
            bind = ask("structsolve_loss", Loss, case.space, loss=name)
            if bind is None:
                continue
            loss = bind(case.part_layout)
            loss.check_truths(case.examples.labels)
        losses.append((name, loss))
    return losses


def check_losses(case: Case, extra: Any) -> None:
    """Losses are 0 at the truth, never negative, and consistent with their flags."""
    for name, loss in losses_of(case, extra):
        check_loss(case, name, loss)


def check_loss(case: Case, name: Any, loss: Any) -> None:
    """Check one loss."""
    what = f"Loss {name!r}"
    for i in range(case.n):
        for truth in _truths(case, loss, i):
            _check_values(case, what, loss, i, truth)
        if loss.has_costs:
            _check_costs(case, name, loss, i)


def _truths(case: Case, loss: Any, i: int) -> list[np.ndarray]:
    """Return the example's label, and another one that the loss takes as true, if any."""
    examples, other = case.examples, case.labels[i][case.rng.integers(len(case.labels[i]))]
    labels = examples.labels.copy()
    labels[examples.label_offsets[i] : examples.label_offsets[i + 1]] = other
    try:
        loss.check_truths(labels)
    except ValueError:
        return [examples.label(i)]
    return [examples.label(i), other]


def _check_values(case: Case, what: str, loss: Any, i: int, truth: np.ndarray) -> None:
    values = case.losses(what, loss, i, truth)
    at_truth = float(values[case.row(i, truth)])
    if at_truth != 0:
        case.fail(f"{what}.value", "is 0 for the true label", i, at_truth, 0)
    if not np.isfinite(values).all() or values.min() < 0:
        case.fail(f"{what}.value", "is finite and at least 0", i, values, ">= 0")
    wrong = (case.labels[i] != truth).any(axis=1)
    if loss.zero_one and not (values == wrong).all():
        promise = "is 1 for every label except the truth"
        case.fail(f"{what}.zero_one", promise, i, values, wrong.astype(float))
    if not loss.decomposes:
        return
    for scale, theta in zip((1.0, -0.5), case.thetas(i, ("random", "tied")).values()):
        _check_augment(case, what, loss, i, truth, scale=scale, theta=theta, values=values)


def _check_augment(
    case: Case,
    what: str,
    loss: Any,
    i: int,
    truth: np.ndarray,
    *,
    scale: float,
    theta: np.ndarray,
    values: np.ndarray,
) -> None:
    augmented, const = case.augment(what, loss, i, truth, scale, theta)
    promise = f"adds {scale} times the loss to the score of every label"
    case.near(
        f"{what}.augment", promise, i, case.mu[i] @ (augmented - theta) + const, scale * values
    )


def _costs(
    case: Case, name: Any, loss: Any, i: int, nu: np.ndarray, transposed: bool = False
) -> tuple[np.ndarray, float]:
    """Return the scores that a loss adds at marginals nu, and the constant."""
    what = f"Loss {name!r}.costs"
    theta, const = case.call(what, i, projection_calls.costs, loss, nu, transposed, -0.5)
    if np.any(theta[case.padding[i]] != 0):
        case.fail(what, "never touches padding", i, theta[case.padding[i]], 0)
    return theta / -0.5, const / -0.5


def _check_costs(case: Case, name: Any, loss: Any, i: int) -> None:
    """``<mu(y), A mu(y')> + const = L(y, y')``: this truth, others, on average, transposed."""
    what, mu = f"Loss {name!r}.costs", case.mu[i]
    if (case.examples.label(i) >= 0).all():
        costs, const = _costs(case, name, loss, i, mu[case.row(i, case.examples.label(i))])
        promise = "gives every label's loss if nu is mu(truth)"
        values = case.losses(f"Loss {name!r}", loss, i)
        case.near(what, promise, i, mu @ costs + const, values)
    rows = case.rng.permutation(len(mu))[:TRUTHS]
    matrix = np.empty((len(mu), len(rows)))
    for j, row in enumerate(rows):
        costs, const = _costs(case, name, loss, i, mu[row])
        matrix[:, j] = mu @ costs + const
        values = case.losses(f"Loss {name!r}", loss, i, case.labels[i][row])
        case.near(what, f"is the loss at truth {row}", i, matrix[:, j], values)
    p = case.rng.dirichlet(np.ones(len(rows)))
    costs, const = _costs(case, name, loss, i, p @ mu[rows])
    case.near(what, "is linear in the truths' distribution", i, mu @ costs + const, matrix @ p)
    for row in case.rng.permutation(len(mu))[:TRUTHS]:
        costs, const = _costs(case, name, loss, i, mu[row], True)
        promise = "gives every truth's loss if nu is mu(prediction), transposed"
        case.near(what, promise, i, mu[rows] @ costs + const, matrix[row])
