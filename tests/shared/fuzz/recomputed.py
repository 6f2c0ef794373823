"""Objectives of fitted models by enumeration of labels, and their optimum by convex programs.

Nothing here asks an oracle, a search or a projection: scores are those of all labels' parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from reference import fenchel_young as smooth
from reference import psi as psis
from reference.objectives import optimum
from reference.rescaled import enumerated_optimum
from reference.searches import encodings, integral_maximum, relaxed_maximum

from structsolve import Problem
from structsolve.potentials.calls import score
from structsolve.structure import calls
from structsolve.structure.losses import LabelCount

#: psi of each surrogate of one score and one loss.
PSI = {
    "margin": psis.margin(), "lp": psis.margin(), "slack": psis.slack(), "beta": psis.beta(0.25),
    "generalized": psis.generalized(1, 0.5), "log": psis.log(),
    "probloss": psis.convex_probloss(), "micro-f1": psis.micro_f1(),
}  # fmt: skip
#: Settings of those whose psi has some.
GIVEN = {"beta": {"beta": 0.25}, "generalized": {"alpha": 1, "beta": 0.5}}
#: Surrogates of other kinds.
OTHERS = ("crf", "sparsemap", "max-min", "unit-margin")
#: Labels of an example, at most; more are not written out.
MOST = 64


@dataclass
class Written:
    """Examples written out: of each label the parts as a function of w, and the loss.

    ``features[i]`` has row mu(y) - mu(y_i) of label y, times w its score less that of the truth;
    to it ``offsets[i]`` is added.  ``nodes[i]`` has the node parts of each label.
    """

    problem: Problem
    labels: list[np.ndarray]
    features: list[np.ndarray]
    offsets: list[np.ndarray]
    losses: list[np.ndarray]
    nodes: list[np.ndarray]
    truths: list[int]

    def primal(self, w: np.ndarray, alpha: float, name: str, relaxed: bool, l1: float = 0) -> float:
        """Return the objective at w: regulariser and weighted mean of the surrogate."""
        penalty = np.ones(len(w)) if self.problem.penalty is None else self.problem.penalty
        norm = alpha * (l1 * np.abs(penalty * w).sum() + (1 - l1) / 2 * float((penalty * w) @ w))
        scores = [F @ w + h for F, h in zip(self.features, self.offsets)]
        values = [self.surrogate(i, h, name, relaxed) for i, h in enumerate(scores)]
        return norm + float(self.problem.weights @ values)

    def surrogate(self, i: int, h: np.ndarray, name: str, relaxed: bool) -> float:
        """Return the surrogate's value if label y scores h[y] above the truth."""
        g = self.losses[i]
        if name == "crf":
            return smooth.crf_value(h)
        if name == "max-min":
            return smooth.max_min_value(h, smooth.loss_matrix(self.problem, i, self.labels[i]))
        if name == "sparsemap":
            truth = self.nodes[i][self.truths[i]]
            return smooth.sparsemap_value(h, self.nodes[i]) + truth @ truth / 2
        if name == "unit-margin":
            wrong = g > 0
            return max(0.0, (1 + h[wrong] / g[wrong]).max(initial=0.0))
        find = relaxed_maximum if relaxed else integral_maximum
        return float(find(h, g, PSI[name])[1])

    def optimum(self, alpha: float, name: str, relaxed: bool) -> float | None:
        """Return the minimum objective; None if no program finds it."""
        free = self.problem.penalty is not None and not self.problem.penalty.all()
        if free and name not in ("margin", "lp"):
            return None
        rows = list(zip([-F for F in self.features], self.offsets, self.losses))
        if name in ("margin", "lp"):
            plain = [(row, losses) for row, _, losses in rows]
            penalized = None if self.problem.penalty is None else self.problem.penalty > 0
            return optimum(plain, alpha, self.problem.weights, penalized).value
        if np.ptp(self.problem.weights) > 0:
            return None
        if name in PSI:
            return enumerated_optimum(rows, PSI[name], alpha, relaxed, tol=1e-7).value
        if name == "unit-margin":
            return None
        every = enumerate(self.labels)
        L = [smooth.loss_matrix(self.problem, i, labels) for i, labels in every]
        return smooth.optimum(name, self.features, self.truths, L, self.nodes, alpha)


def write_out(problem: Problem, loss: Any) -> Written | None:
    """Write out a problem; return None if an example has too many labels."""
    space, examples = problem.space, problem.examples
    written = Written(problem, [], [], [], [], [], [])
    for i in range(problem.n):
        labels = np.ascontiguousarray(space.enumerate_labels(examples, i), dtype=np.int32)
        if len(labels) > MOST:
            return None
        size, first = problem.task.layout.sizes(i)[0], space.layout.shared_size
        counted = isinstance(loss, LabelCount)
        _, rows, g = encodings(space, examples, i, size, loss)
        h0 = encodings(space, examples, i, size, "hamming")[2] if counted else np.zeros(len(g))
        of_w = np.stack([score(problem.potentials, i, e)[:size] for e in np.eye(problem.dim)])
        (truth,) = np.flatnonzero((labels == examples.label(i)).all(axis=1))
        count = int(examples.offsets[i + 1] - examples.offsets[i]) * space.layout.node_size
        # Of thresholds, the squares are those of the classes' probabilities.
        nodes = np.zeros((len(labels), size))
        for row, label in zip(nodes, labels):
            index, value = calls.encode(problem.parts, i, label)
            np.add.at(row, index, value)
        nodes = nodes[:, first : first + count]
        written.nodes.append(np.eye(len(rows)) if hasattr(space, "state_rows") else nodes)
        written.labels.append(labels)
        written.features.append(rows @ of_w.T)
        written.offsets.append(h0)
        written.losses.append(-g if counted else g)
        written.truths.append(int(truth))
    return written
