"""Oracles and relaxations that silently miss the best: fits notice, or certify true claims."""

from __future__ import annotations

from typing import Any

import numpy as np
from python_structures import PyChainSpace, py_chain

from structsolve import Problem, StructuredSVM, get_structure, registry
from structsolve.lp import Highs

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


def lying_relaxation(kind: str, p: float) -> Any:
    """Return chains whose oracle is right, and whose relaxation is wrong."""
    wrong = lie(kind, p)

    def bounded(self: Any, examples: Any, i: int, theta: Any) -> Any:
        labels, scores = self.ranked(examples, i, theta)
        return labels[0], scores.max()

    def relax(self: Any, examples: Any, i: int, theta: Any) -> Any:
        label = wrong(self, examples, i, theta)
        return self.parts(examples, i, label), label

    return py_chain(argmax_bounded=bounded, relax=relax)


class Misses(Highs):
    """HiGHS that avoids one variable where possible, and proves no bound."""

    p = 0.5

    def program(self, polytope: Any) -> Any:
        inner, p = super().program(polytope), self.p

        class Bent(type(inner)):  # type: ignore[misc]
            def __init__(self) -> None:
                pass

            def solve(self, c: Any, upper: Any = None, start: Any = None, sides: Any = None) -> Any:
                bent = np.array(c, dtype=float)
                bent[int(p * len(bent))] -= 10 * (
                    1 + np.abs(bent[np.isfinite(bent)]).max(initial=0)
                )
                answer = inner.solve(bent, upper, start, sides)
                return None if answer is None else answer._replace(dual=None, bound=None)

        return Bent()


class Liars(Target):
    """Fits with oracles and relaxations that lie.

    It is asked for by name: no watch can see every lie.
    """

    name = "liars"
    refusals = (ValueError, TypeError)
    batch = 50
    listed = False

    def __init__(self, folder: str):
        pass

    def run(self, rng: np.random.Generator) -> None:
        """Fit with a liar; see the package."""
        kind, p = KINDS[int(rng.integers(len(KINDS)))], float(rng.choice([0.05, 0.3, 0.6]))
        who, surrogate = ("oracle", "relaxation", "program")[int(rng.integers(3))], "margin"
        settings: dict[str, Any] = {}
        structure = py_chain(argmax=lie(kind, p))
        if who != "oracle":
            surrogate = ("margin", "lp", "slack")[int(rng.integers(3))]
            more = {} if surrogate == "lp" else {"relaxed": True}
            settings["surrogate"] = registry.default().make("surrogates", surrogate, **more)
            structure = lying_relaxation(kind, p)
        if who == "program":
            settings["oracle"], structure = Misses(), get_structure("permutation")
            settings["oracle"].p = p
        X, Y = structure.sample(int(rng.integers(2**31)), n=int(rng.integers(2, 7)))
        solver = ("bcfw", "cutting-plane", "sgd", "admm")[int(rng.integers(4))]
        alpha, tol = float(10 ** rng.uniform(-2, 0)), float(rng.choice([1e-2, 1e-4]))
        told = f"{who}, {kind} {p}, {surrogate}, {solver}"
        self.say(f"a liar, {told} {alpha} {tol}")
        model = StructuredSVM(
            structure, solver=solver, alpha=alpha, tol=tol, max_iter=100, **settings
        ).fit(X, Y)
        record = model.history_[-1]
        if not record.get("certified"):
            raise ValueError("noticed")
        space, packed = structure.make_space(X, Y)
        written = recomputed.write_out(Problem(space, packed), "hamming")
        if written is None:
            return
        true = written.primal(model._model.weights, alpha, surrogate, who != "oracle")
        best = written.optimum(alpha, surrogate, who != "oracle")
        close = 1e-6 * (abs(true) + 1e-3)
        if record["primal"] < true - close:
            raise Fault(f"{told}: primal {record['primal']!r} certified, {true!r} is true")
        if best is not None and record["dual"] > best + close:
            raise Fault(f"{told}: dual {record['dual']!r} certified, {best!r} is the optimum")
