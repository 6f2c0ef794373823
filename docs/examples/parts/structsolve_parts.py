"""A plugin with a solver, a surrogate, a reader and a metric."""

import json

import numpy as np

from structsolve import Named, hookimpl
from structsolve.io.reader import Reader
from structsolve.potentials.calls import add, score
from structsolve.solvers.base import Solver
from structsolve.solvers.run import Run
from structsolve.structure import calls
from structsolve.surrogates import CutSurrogate
from structsolve.surrogates.calls import cut


class Subgradient(Solver):
    """Full subgradient steps of length 1 / (alpha t), averaged with more weight on late
    iterates."""

    name = "subgradient"
    needs_convex = True  # Solver.check refuses other surrogates
    needs_weights = True  # ... and kernels

    def start(self, start):
        self.check(start.problem)
        return SubgradientRun(start)


class SubgradientRun(Run):
    """Keeps its state in state(), so that a resumed run continues bit for bit."""

    def __init__(self, start):
        self.given, self.passes = start, 0
        self.w, self.mean, self.best_w = np.zeros((3, start.problem.dim))
        self.best_primal = np.inf

    def step(self):
        problem, alpha = self.given.problem, self.given.alpha
        slope, oracle_calls = alpha * self.w, 0
        for i in range(problem.n):
            theta = score(problem.potentials, i, self.w)
            answer = cut(problem.surrogate, i, theta, problem.examples.label(i))
            # The subgradient of H_i is minus the features at the cut; weights are sample_weight.
            add(problem.potentials, i, answer.index, answer.value, -problem.weights[i], slope)
            oracle_calls += answer.calls
        self.passes += 1
        self.w = self.w - slope / (alpha * self.passes)
        self.mean = self.mean + 2 / (self.passes + 1) * (self.w - self.mean)
        record = self.certify()
        record["oracle_calls"] += oracle_calls
        return record

    def certify(self):
        spent = self._keep_best([self.w, self.mean])
        told = {"primal": self.best_primal, "oracle_calls": spent}
        return {**told, "dual": None, "gap": None, "certified": False}

    def weights(self):
        return self.best_w.copy()

    def state(self):
        meta = {"passes": self.passes, "best_primal": self.best_primal}
        return meta, {"w": self.w, "mean": self.mean, "best_w": self.best_w}

    def restore(self, meta, arrays):
        self.passes, self.best_primal = meta["passes"], meta["best_primal"]
        self.w, self.mean, self.best_w = (arrays[name] for name in ("w", "mean", "best_w"))


class Perceptron(CutSurrogate):
    """The structured perceptron's: the best label against the true one, without a loss."""

    name = "perceptron"

    def cut(self, task, i, theta, truth):
        label, _, _ = calls.argmax(task.oracle, i, theta)
        index, value = calls.difference(task.parts, i, truth, label)
        return index, value, 0.0


class JsonLines(Reader):
    """{"x": {"name": number, ...}, "y": label} on each line."""

    endings = (".jsonl",)

    def __init__(self, names=None):
        self.names = names  # learned by fit; stored in model files

    def fit(self, path):
        self.names = sorted({name for line in self.examples(path) for name in line["x"]})
        return self.read(path)

    def read(self, path):
        lines = self.examples(path)
        X = np.array([[line["x"].get(name, 0.0) for name in self.names] for line in lines])
        labelled = all("y" in line for line in lines)
        return X, np.array([line["y"] for line in lines]) if labelled else None

    def examples(self, path):
        examples = []
        for line in self.lines(path):  # errors get the file and this line in front
            examples.append(json.loads(line))
            if not isinstance(examples[-1], dict) or not isinstance(examples[-1].get("x"), dict):
                raise ValueError(f"found {line[:40]!r}, expected {self.__doc__}")
        return examples


def exact_share(estimator, X, y):
    """Share of examples with all labels right."""
    pairs = list(zip(estimator.predict(X), y))
    return sum(np.array_equal(a, b) for a, b in pairs) / len(pairs)


@hookimpl
def structsolve_solvers():
    return [Named("subgradient", Subgradient, "full subgradient steps")]


@hookimpl
def structsolve_surrogates():
    return [Named("perceptron", Perceptron, "best label against the true one")]


@hookimpl
def structsolve_readers():
    return [Named("jsonl", JsonLines, "features by name, one example a line")]


@hookimpl
def structsolve_metrics():
    return [Named("exact-share", lambda: exact_share, "share of labels that are right as a whole")]
