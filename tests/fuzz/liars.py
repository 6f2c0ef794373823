"""Oracles that miss the best label, and do not say so: a fit notices, or certifies what is true."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from python_structures import PyChainSpace, py_chain

from structsolve import Problem, StructuredSVM

from . import recomputed
from .base import Fault, Target


def lie(kind: str, p: float) -> Any:
    """Return an oracle of a kind that is wrong."""

    def argmax(self: Any, examples: Any, i: int, theta: Any) -> Any:
        ranked, _ = PyChainSpace.ranked(self, examples, i, theta)
        if kind == "never":  # one label is never found
            banned = ranked[0] * 0 + int(10 * p) % len(self.classes_)
            return ranked[0] if (ranked[0] != banned).any() or len(ranked) == 1 else ranked[1]
        if kind == "state":  # one state is not, where there is another
            wanted = [y for y in ranked if (y != 0).all()]
            return wanted[0] if wanted else ranked[0]
        if kind == "second":  # the second best at times, the same for the same scores
            odd = abs(hash(theta["node"].tobytes())) % 1000 < 1000 * p
            return ranked[1 if odd and len(ranked) > 1 else 0]
        if kind == "nodes":  # pairs are not looked at
            return theta["node"].argmax(axis=1).astype(ranked.dtype)
        return ranked[-1]  # "worst"

    return argmax


KINDS = ("never", "state", "second", "nodes", "worst")


class Liars(Target):
    """Fits of chains in Python.  It is asked for by name: no watch can see every lie."""

    name = "liars"
    refusals = (ValueError, TypeError)
    batch = 50
    listed = False

    def __init__(self, folder: str):
        pass

    def run(self, rng: np.random.Generator) -> None:
        """Fit with a liar; see the package."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            self.fit(rng)

    def fit(self, rng: np.random.Generator) -> None:
        kind, p = KINDS[int(rng.integers(len(KINDS)))], float(rng.choice([0.05, 0.3, 0.6]))
        structure = py_chain(argmax=lie(kind, p))
        X, Y = structure.sample(int(rng.integers(2**31)), n=int(rng.integers(2, 7)))
        solver = ("bcfw", "cutting-plane", "sgd", "admm")[int(rng.integers(4))]
        alpha, tol = float(10 ** rng.uniform(-2, 0)), float(rng.choice([1e-2, 1e-4]))
        self.say(f"a liar, {kind} {p}: {solver} {alpha} {tol}")
        model = StructuredSVM(structure, solver=solver, alpha=alpha, tol=tol, max_iter=100).fit(
            X, Y
        )
        record = model.history_[-1]
        if not record.get("certified"):
            raise ValueError("noticed")
        space, packed = structure.make_space(X, Y)
        written = recomputed.write_out(Problem(space, packed), "hamming")
        if written is None:
            return
        true = written.primal(model._model.weights, alpha, "margin", False)
        best = written.optimum(alpha, "margin", False)
        close = 1e-6 * (abs(true) + 1e-3)
        if record["primal"] < true - close:
            raise Fault(f"{kind} {p}: primal {record['primal']!r} certified, {true!r} is true")
        if record["dual"] > best + close:
            raise Fault(
                f"liar {kind} {p}: dual {record['dual']!r} certified, {best!r} is the optimum"
            )
