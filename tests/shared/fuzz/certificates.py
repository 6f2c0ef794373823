"""Fits of small random problems, whose certificates are recomputed by enumeration of labels.

A record that is ``certified`` promises: ``primal`` is no less than the objective at the weights
that are returned, ``dual`` no more than the optimum, ``gap`` their difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve import Problem, StructuredSVM, registry
from structsolve.solvers.driver import ALLOWED
from structsolve.structure.ask import loss_names
from structsolve.structure.losses import LabelCount

from . import objects, recomputed
from .base import Fault, Target

#: Settings of solvers besides their defaults.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "bcfw": [
        {"steps": "frank-wolfe"}, {"batch": 2}, {"averaging": False}, {"sampling": "gap"},
        {"cached_passes": 0}, {"max_cuts": 2}, {"certify_every": 1},
    ],
    "cutting-plane": [{"slack": "n"}],
    "gbcfw": [{"averaging": False}, {"batch": 2}],
    "sgd": [{"averaging": "none"}, {"projection": True}, {"batch": 2}],
    "lbfgs": [{"l1_ratio": 0.5}, {"memory": 2}, {"steps": 4}],
    "admm": [{"n_shards": 2}, {"metric": "spectral"}],
    "sdca": [{"batch": 2}],
    "passive-aggressive": [{"squared": True}, {"averaging": False}],
}  # fmt: skip


class Unchecked(ValueError):
    """There is nothing to recompute: the case counts as refused."""


class Certificates(Target):
    """Fits of every structure, surrogate, loss and solver."""

    name = "certificates"
    refusals = (ValueError, TypeError, NotImplementedError)
    batch, limit = 50, 200

    def __init__(self, folder: str):
        self.structures = objects.structures()
        self.surrogates = [*recomputed.PSI, *recomputed.OTHERS]
        self.solvers = registry.default().names("solvers")

    def run(self, rng: np.random.Generator) -> None:
        """Fit, and recompute the last record; see the package."""
        structure = pick(rng, self.structures)
        X, Y = examples(rng, structure)
        space, packed = structure.make_space(X, Y)
        surrogate, relaxed = pick(rng, self.surrogates), bool(rng.integers(2))
        losses = loss_names(space)
        settings: dict[str, Any] = {
            "alpha": float(10 ** rng.uniform(-3, 1)),
            "max_iter": int(rng.choice([1, 3, 30, 300])),
            "tol": float(rng.choice([1e-2, 1e-4, 1e-7])),
            "random_state": 0,
        }
        if rng.random() < 0.2:
            settings["penalize_intercept"] = False
        name, options, count = "", {}, None
        if rng.random() < 0.5:
            name = pick(rng, self.solvers)
            options = pick(rng, [{}, *SETTINGS.get(name, [])])
            settings["solver"] = registry.default().make("solvers", name, **options)
        if surrogate in recomputed.PSI and surrogate not in ("margin", "lp"):
            more = {"relaxed": relaxed, **recomputed.GIVEN.get(surrogate, {})}
            if surrogate == "micro-f1":
                sets = structure.name in ("multilabel", "dag") or not hasattr(space, "classes_")
                count = LabelCount(None if sets else space.classes_[0])
                more["background"] = count.background
            given = registry.default().make("surrogates", surrogate, **more)
        else:
            given = registry.default().make("surrogates", surrogate)
        if surrogate != "crf" and rng.random() < 0.7:
            settings["loss"] = pick(rng, losses)
        weights = rng.integers(1, 4, len(Y)).astype(float) if rng.random() < 0.2 else None
        told = f"{structure!r} {len(Y)} {surrogate} {relaxed} {settings} {weights}"
        self.say(told)
        model = StructuredSVM(structure, surrogate=given, **settings)
        if rng.random() < 0.15:
            model.set_params(warm_start=True, max_iter=2)
            model.fit(X, Y, sample_weight=weights)
            model.set_params(max_iter=settings["max_iter"])
        model.fit(X, Y, sample_weight=weights)
        packed.sample_weight = weights
        problem = Problem(
            model.space_, packed, loss=model._task_loss(space), surrogate=given,
            penalize_intercept=model.penalize_intercept,
        )  # fmt: skip
        written = recomputed.write_out(problem, model._task_loss(space) if count is None else count)
        if written is None:
            raise Unchecked("too many labels")
        exact = bool(problem.oracle.exact) and surrogate != "lp"
        full, l1 = bool(rng.random() < 0.5), options.get("l1_ratio", 0)
        faults = check(model, written, surrogate, relaxed, l1, exact, full)
        if faults:
            record = model.history_[-1]
            raise Fault(f"{'; '.join(faults)}; {told}; {model.stop_reason_}, {record}")


def check(
    model: Any, written: Any, surrogate: str, relaxed: bool, l1: float, exact: bool, full: bool
) -> list[str]:
    """Compare the last record of a model with all labels; return its wrong claims."""
    record, w = model.history_[-1], written.problem.solver_weights(model._model.weights)
    if not record.get("certified") or record.get("primal") is None:
        raise Unchecked("no certificate")
    primal, gap, dual = record["primal"], record.get("gap"), record.get("dual")
    true = written.primal(w, model.alpha, surrogate, relaxed, l1)
    # Rounding, and that of searches, which stop at 1e-9 of the possible gain.
    close = 1e-7 * (abs(true) + np.abs(w).max(initial=0) + 1e-3)
    if surrogate in ("sparsemap", "max-min"):  # whose values are those of convex programs
        close += 1e-7
    missed = record.get("missed", 0)
    if surrogate == "max-min":  # its answers may miss a share of the last passes' gap
        missed += ALLOWED * max((r.get("gap") or 0) for r in model.history_[-2:]) + 1e-4 * abs(true)
    faults = []
    if not primal >= true - close:
        faults.append(f"primal {primal!r} below the objective {true!r} of the weights")
    if exact and abs(primal - true) > 100 * close + missed:
        faults.append(f"primal {primal!r} is not the objective {true!r} of the weights")
    if gap is not None and dual is not None:
        if abs(gap - (primal - dual)) > close:
            faults.append(f"gap {gap!r} is not {primal!r} - {dual!r}")
        if exact and dual > true + close:
            faults.append(f"dual {dual!r} above the objective {true!r} of the weights")
        if exact and full and not l1 and not faults:
            best = written.optimum(model.alpha, surrogate, relaxed)
            if best is not None and dual > best + close + 1e-6 * abs(best):
                faults.append(f"dual {dual!r} above the optimum {best!r}")
    return faults


def examples(rng: np.random.Generator, structure: Any) -> tuple[Any, Any]:
    """Return examples of a structure; some have ties, some features far from 1."""
    X, Y = structure.sample(int(rng.integers(2**31)), n=int(rng.integers(2, 7)))
    kind, scale = rng.random(), float(10 ** rng.uniform(-2, 2))
    if all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in X):
        if kind < 0.3:
            X = [np.round(x) for x in X]
        elif kind < 0.5:
            X = [x * scale for x in X]
    return X, Y


def pick(rng: np.random.Generator, values: Any) -> Any:
    """One of them."""
    return values[int(rng.integers(len(values)))]
