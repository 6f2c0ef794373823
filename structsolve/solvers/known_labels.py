"""Compares answers with known labels: truths of other examples, and other answers.

Its own answers do not expose an oracle that never finds some label.  It is called at scores at
which a known label is best, and at the scores of the current weights: no label may score above the
bound, and none may be missing among the k best.
"""

from __future__ import annotations

import numpy as np

from ..operators import AugmentedOracle, KBest
from ..potentials.calls import score
from ..projections.choose import free_nodes
from ..structure import calls
from ..structure.base import Space
from ..structure.node_space import NodeSpace
from .problem import ROUNDING, Problem
from .questions import ask, bound_of, operators_of

# Parts of a label, and their values.
Parts = tuple[np.ndarray, np.ndarray]
# SAMPLED examples provide labels; at most TRIED labels of one size are scored at the weights.
SAMPLED, TRIED = 64, 16
# k of the k best.
RANKED = 4


class KnownLabels:
    """Labels that examples may have because other examples of the same size have them.

    Parameters
    ----------
    problem : Problem
        With labels.
    """

    def __init__(self, problem: Problem):
        self.problem, self.operators, self.turn = problem, operators_of(problem), 0
        n, examples = problem.n, problem.examples
        self.numbers = np.unique(np.linspace(0, n - 1, min(n, SAMPLED)).astype(int)).tolist()
        self.alike: dict[int, dict[bytes, np.ndarray]] = {}
        if self.operators and _tells_members(problem.space):
            for j in self.numbers:
                label = _native(examples.label(j))
                self.alike.setdefault(len(label), {})[label.tobytes()] = label

    def others(self, i: int) -> list[np.ndarray]:
        """Return labels of other examples that example ``i`` may have.

        Parameters
        ----------
        i : int

        Returns
        -------
        list of ndarray of int32
            Empty unless the space can check its labels.
        """
        problem, truth = self.problem, _native(self.problem.examples.label(i))
        alike, own = self.alike.get(len(truth), {}), truth.tobytes()
        labels = [label for key, label in alike.items() if key != own]
        return [z for z in labels[:TRIED] if problem.space.contains(z, problem.examples, i)]

    def fault(self, w: np.ndarray, count: int, asked: int) -> str | None:
        """Describe what operators miss for the next examples.

        Parameters
        ----------
        w : ndarray of shape (dim,)
            Current weights.
        count : int
            Number of examples.
        asked : int
            Number of labels of others, at most, that operators are asked for with each.

        Returns
        -------
        str or None
        """
        if not self.operators or not np.isfinite(w).all():
            return None
        for _ in range(min(count, len(self.numbers))):
            rounds, place = divmod(self.turn, len(self.numbers))
            self.turn += 1
            i = self.numbers[place]
            others = self.others(i)
            truth = _native(self.problem.examples.label(i))
            encoded = self._encoded(i, [truth, *others])
            fault = self._compare(w, i, truth, encoded)
            for j in range(min(asked, len(others))):
                label = others[(asked * rounds + j) % len(others)]
                for operator in self.operators:
                    told = encoded[label.tobytes()]
                    fault = fault or ask(operator, self.problem, i, label, told)
            if fault is not None:
                return f"example {i}: {fault}"
        return None

    def _encoded(self, i: int, labels: list[np.ndarray]) -> dict[bytes, Parts]:
        return {z.tobytes(): calls.encode(self.problem.task.parts, i, z) for z in labels}

    def _compare(
        self, w: np.ndarray, i: int, truth: np.ndarray, encoded: dict[bytes, Parts]
    ) -> str | None:
        """Compare the answers at these weights, the loss added, with known labels."""
        problem, task = self.problem, self.problem.task
        theta = score(problem.potentials, i, w)
        plain = theta.copy()
        constant = 0.0
        if task.loss.decomposes:
            constant = calls.augment(task.loss, i, truth, 1.0, theta)
        told = -np.inf
        if any(op is task.oracle or isinstance(op, KBest) for op in self.operators):
            answer, _, told = calls.argmax(task.oracle, i, theta)
            near = [z for z in self._near(i, _native(answer)) if z.tobytes() not in encoded]
            encoded = encoded | self._encoded(i, near)
        scores, size = _scores(theta, list(encoded.values()))
        best = float(scores.max())
        for operator in self.operators:
            if isinstance(operator, KBest):
                fault = _left_out(operator, i, theta, encoded, scores, ROUNDING * size)
                if fault is not None:
                    return fault
            elif operator is task.oracle:
                bound = told
            elif isinstance(operator, AugmentedOracle):
                bound = calls.argmax_augmented(operator, i, plain, truth)[1] - constant
            else:
                bound = bound_of(operator, i, theta, size)
            if not isinstance(operator, KBest) and bound < best - ROUNDING * size:
                return (
                    f"{type(operator).__name__} claims that no label scores more than {bound:g} at "
                    f"the current weights, but a known label scores {best:g}"
                )
        return None

    def _near(self, i: int, label: np.ndarray) -> list[np.ndarray]:
        """Return a label and some that differ in one node, as the next best labels often do."""
        space, labels = self.problem.space, [label]
        if not self.alike or not isinstance(space, NodeSpace):
            return labels
        K = len(space.classes_)
        for v in range(min(len(label), TRIED)):
            other = label.copy()
            other[v] = (label[v] + 1 + self.turn % max(K - 1, 1)) % K
            if space.contains(other, self.problem.examples, i):
                labels.append(other)
        return labels


def _scores(theta: np.ndarray, encoded: list[Parts]) -> tuple[np.ndarray, float]:
    """Return scores of labels, and the scale of their rounding."""
    which = np.repeat(np.arange(len(encoded)), [len(index) for index, _ in encoded])
    index, value = (np.concatenate(arrays) for arrays in zip(*encoded))
    scores = np.bincount(which, theta[index] * value, len(encoded))
    parts = np.bincount(which, np.abs(value), len(encoded)).max()
    largest = float(np.abs(theta).max(initial=0, where=np.isfinite(theta)))
    return scores, largest * (1 + float(parts))


def _left_out(
    operator: KBest,
    i: int,
    theta: np.ndarray,
    known: dict[bytes, Parts],
    scores: np.ndarray,
    slack: float,
) -> str | None:
    """Return a known label that should be among the k best and is missing."""
    labels, values = calls.kbest(operator, i, theta, RANKED)
    listed = {_native(label).tobytes() for label in labels}
    least = float(values[-1]) if len(values) == RANKED else -np.inf
    for key, value in zip(known, scores):
        if key not in listed and value > least + slack:
            return (
                f"{type(operator).__name__} omits a label that scores {value:g} from the {RANKED} "
                f"best; the listed ones score {np.round(values, 6).tolist()}"
            )
    return None


def _native(label: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(label, dtype=np.int32)


def _tells_members(space: Space) -> bool:
    """Whether an example's labels are known: the space has ``contains``, or its nodes are free."""
    own = type(space)
    if own.contains is not Space.contains or free_nodes(space):
        return True
    return isinstance(space, NodeSpace) and own.enumerate_labels is NodeSpace.enumerate_labels
