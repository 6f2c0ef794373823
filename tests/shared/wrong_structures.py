"""Structures that each break one promise, with the message they must be met with."""

import threading
import time

import numpy as np
import pytest
from python_structures import (
    PyChainSpace,
    PyChainStructure,
)
from reference.cones import in_cone


def collector():
    """Return a list, and functions that add wrong spaces (or structures) to it."""
    faults = []

    def wrong(message):
        """Collect a wrong space (or structure) with the message it must be met with."""

        def collect(cls):
            if not isinstance(cls, type) or issubclass(cls, PyChainSpace):
                members = {"space_class": cls}
                cls = type(f"Structure{cls.__name__}", (PyChainStructure,), members)
            faults.append(pytest.param(cls, message, id=cls.__name__.removeprefix("Structure")))
            return cls

        return collect

    def wrong_answers(base, *rows):
        """Collect spaces of class `base` by name, method, change of its answers, and message."""
        for name, method, change, message in rows:
            methods = {method: changed(getattr(base, method), change)}
            wrong(message)(type(name, (base,), methods))

    return faults, wrong, wrong_answers


def changed(method, change):
    """The method, its answers changed."""
    return lambda self, *given, **named: change(method(self, *given, **named))


WRONG, wrong, wrong_answers = collector()


wrong_answers(
    PyChainSpace,
    ("InvalidState", "argmax", lambda label: label + 1,
     r"Oracle.argmax .* answers without an exception.*states 0 \.\. 2"),
    ("KBestUnsorted", "kbest", lambda labels: labels[::-1],
     r"KBest.kbest .* returned label 2 with score .* behind .*, expected the best first"),
    ("PartsComplex", "parts", lambda mu: {**mu, "start": mu["start"] * 1j},
     r"Parts.encode .* answers without an exception.*not numeric \(complex numbers\)"),
    ("PartsOfWrongShape", "parts", lambda mu: {**mu, "start": np.ones(2)},
     r"Parts.encode .* answers without an exception.*shape \(2,\), expected \(3,\)"),
    ("ProjectionValueOff", "project", lambda pair: (pair[0], pair[1] + 0.01),
     r"Projection.project \(entropy\) .* returns the log-partition"),
    ("StateLosesAClass", "state", lambda pair: (pair[0], {"classes": pair[1]["classes"][:-1]}),
     r"space_from_state .* keeps the classes"),
    ("StateLosesTheIntercept", "state", lambda pair: ({**pair[0], "intercept": False}, pair[1]),
     r"space_from_state .* keeps the layout \(intercept\)"),
    ("StateNotPlain", "state", lambda pair: ({**pair[0], "classes": pair[1]["classes"]}, pair[1]),
     r"state .* returns values that JSON can hold.*not JSON serializable"),
    ("EnumeratesTwice", "enumerate_labels", lambda rows: np.repeat(rows, 2, axis=0),
     r"enumerate_labels .* lists no label twice"),
)  # fmt: skip


@wrong(r"Oracle.argmax breaks a promise: it returns a label that attains the maximum \(random")
class SecondBest(PyChainSpace):
    def argmax(self, examples, i, theta):
        return self.ranked(examples, i, theta)[0][:2][-1]


@wrong(r"Parts.indicator breaks a promise: it declares labels that are single numbers y")
class NotAnIndicator(PyChainSpace):
    indicator = True


@wrong(r"Oracle.argmax .* attains the maximum \(tied theta\)")
class WrongUnderTies(PyChainSpace):
    def argmax(self, examples, i, theta):
        labels, scores = self.ranked(examples, i, theta)
        tied = int(np.sum(scores == scores.max()))
        return labels[tied if 1 < tied < len(labels) else 0]


@wrong(r"Oracle.argmax .* gives the same answer twice")
class RandomUnderTies(PyChainSpace):
    rng = np.random.default_rng(0)

    def argmax(self, examples, i, theta):
        labels, scores = self.ranked(examples, i, theta)
        return self.rng.permutation(labels[: np.sum(scores == scores.max())])[0]


@wrong(r"Oracle.argmax .* attains the maximum \(constrained theta\).*score -inf")
class DeafToConstraints(PyChainSpace):
    def argmax(self, examples, i, theta):
        finite = {name: np.nan_to_num(array, neginf=0.0) for name, array in theta.items()}
        return super().argmax(examples, i, finite)


@wrong(r"Oracle.argmax .* returns the value of its label")
class WrongValue(PyChainSpace):
    scored = False

    def argmax(self, examples, i, theta):
        label = super().argmax(examples, i, theta)
        self.scored = True
        return label

    def parts(self, examples, i, label):
        mu = super().parts(examples, i, label)
        if self.scored:
            self.scored = False
            mu["node"] = 2 * mu["node"]
        return mu


@wrong(r"Oracle.argmax .* returns a label of the example")
class InvalidLabel(PyChainSpace):
    def enumerate_labels(self, examples, i):
        rows = super().enumerate_labels(examples, i)
        truth = examples.label(i)
        return rows[(rows == truth).all(axis=1) | (rows[:, 0] != truth[0])]

    def argmax(self, examples, i, theta):
        truth = examples.label(i)
        return np.where(np.arange(len(truth)) == 0, truth[0], (truth + 1) % 3)


@wrong(r"Oracle.argmax .* answers without an exception.*read-only")
class WritesIntoTheta(PyChainSpace):
    def argmax(self, examples, i, theta):
        theta["node"] += 1.0
        return super().argmax(examples, i, theta)


@wrong(r"Oracle.argmax .* in four threads as in one")
class SharedWorkspace(PyChainSpace):
    def argmax(self, examples, i, theta):
        self.held = self.__dict__.setdefault("main", threading.get_ident()), i, theta
        if threading.get_ident() != self.main:
            time.sleep(1e-4)
        _, _, held = self.held
        length = len(examples.label(i))
        if held["node"].shape[0] != length:
            return np.zeros(length, dtype=int)
        return super().argmax(examples, i, held)


class Powers(PyChainSpace):
    """Bounds, a relaxation and cones, by enumeration: all as they should be."""

    def argmax(self, examples, i, theta):
        return self.ranked(examples, i, theta)[0][:2][-1]  # the second best

    def argmax_bounded(self, examples, i, theta):
        return self.argmax(examples, i, theta), self.best(examples, i, theta)

    def best(self, examples, i, theta):
        return self.ranked(examples, i, theta)[1].max()

    def relax(self, examples, i, theta):
        label = self.ranked(examples, i, theta)[0][0]
        return self.parts(examples, i, label), label

    def argmax_constrained(self, examples, i, theta, cost, cone):
        labels = self.enumerate_labels(examples, i)
        h = cone.h0 + np.array([self.score(examples, i, theta, y) for y in labels])
        g = cone.g0 + np.array([self.score(examples, i, cost, y) for y in labels])
        allowed = self.in_cone(h, g, cone)
        if not allowed.any():
            return None
        label = labels[np.where(allowed, h + cone.lam * g, -np.inf).argmax()]
        return self.parts(examples, i, label), label

    def in_cone(self, h, g, cone):
        return in_cone(cone, h, g)


class PowersStructure(PyChainStructure):
    space_class = Powers


wrong_answers(
    Powers,
    ("RelaxHidesALabel", "relax", lambda pair: (pair[0], None),
     r"Relaxation.relax .* says if mu is that of a label"),
    ("RelaxOutside", "relax", lambda pair: ({**pair[0], "node": 1.5 * pair[0]["node"]}, None),
     r"Relaxation.relax .* keeps the sums that all labels share \(node"),
    ("ConeIgnored", "in_cone", np.ones_like,
     r"ConeOracle.argmax_in_cone .* returns a label in the cone"),
    ("ConeAlwaysEmpty", "argmax_constrained", lambda answer: None,
     r"ConeOracle.argmax_in_cone .* finds a label if the cone has one"),
)  # fmt: skip


@wrong(r"Oracle.argmax .* returns a bound that no label exceeds")
class BoundTooLow(Powers):
    def best(self, examples, i, theta):
        return self.score(examples, i, theta, self.argmax(examples, i, theta))


@wrong(r"Oracle.argmax .* answers without an exception")
class BoundMissing(Powers):
    def argmax_bounded(self, examples, i, theta):
        return self.argmax(examples, i, theta)


@wrong(r"Relaxation.relax .* attains at least the best label's score")
class RelaxBelow(Powers):
    def relax(self, examples, i, theta):
        label = self.ranked(examples, i, theta)[0][-1]
        return self.parts(examples, i, label), label


@wrong(r"Relaxation.relax .* returns the mu of its label")
class RelaxOfAnotherLabel(Powers):
    def relax(self, examples, i, theta):
        mu, _ = super().relax(examples, i, theta)
        return mu, self.ranked(examples, i, theta)[0][-1]


@wrong(r"Relaxation.relax .* has no negative parts \(node")
class RelaxNegative(Powers):
    def relax(self, examples, i, theta):
        mu, label = super().relax(examples, i, theta)
        node = mu["node"].copy()
        node[0, :2] += (-1.5, 1.5)
        return {**mu, "node": node}, None


@wrong(r"ConeOracle.argmax_in_cone .* returns a label in the cone")
class ConeWithClosedSides(Powers):
    def in_cone(self, h, g, cone):
        return super().in_cone(h, g, cone) | super().in_cone(
            h, g, cone._replace(twin=not cone.twin)
        )


@wrong(r"ConeOracle.argmax_in_cone .* attains the best value in the cone")
class ConeWithoutLambda(Powers):
    def argmax_constrained(self, examples, i, theta, cost, cone):
        return super().argmax_constrained(examples, i, theta, cost, cone._replace(lam=0.0))


@wrong(r"ConeOracle.argmax_in_cone .* (a point in the closed|attains the best value in the) cone")
class ConeOfAPointOutside(Powers):
    def argmax_constrained(self, examples, i, theta, cost, cone):
        best = self.ranked(examples, i, theta)[0][0]
        return self.parts(examples, i, best), None


@wrong(r"KBest.kbest .* answers without an exception.*twice, expected different labels")
class KBestTwice(PyChainSpace):
    def kbest(self, examples, i, theta, k):
        labels = super().kbest(examples, i, theta, k)
        return labels[[0, 0, *range(1, len(labels))]][:k]


@wrong(r"KBest.kbest .* returns the k best labels")
class KBestSkips(PyChainSpace):
    def kbest(self, examples, i, theta, k):
        labels = super().kbest(examples, i, theta, 10**6)
        return labels[[0, *range(2, len(labels)), 1]][:k]


@wrong(r"KBest.kbest .* finds k labels if there are k")
class KBestTooFew(PyChainSpace):
    def kbest(self, examples, i, theta, k):
        return super().kbest(examples, i, theta, min(k, 2))


class Counting(PyChainSpace):
    """The best label for each count, by enumeration."""

    def argmax_counts(self, examples, i, theta, cost, most):
        ranked, _ = self.ranked(examples, i, theta)
        counts = cost["node"][np.arange(ranked.shape[1]), ranked].sum(axis=1)
        return [next(iter(ranked[counts == c]), None) for c in range(most + 1)]


class CountingStructure(PyChainStructure):
    space_class = Counting


@wrong(r"CountOracle.argmax_counts .* best value for count \d of \d+ \(agreements of loss")
class CountsByRank(Counting):
    def argmax_counts(self, examples, i, theta, cost, most):
        best = super().argmax_counts(examples, i, theta, cost, most)
        worst = super().argmax_counts(examples, i, {k: -v for k, v in theta.items()}, cost, most)
        return [best[0], *worst[1:]]


@wrong(r"CountOracle.argmax_counts .* gives the best value for count 0 of \d+")
class CountsAtMost(Counting):
    def argmax_counts(self, examples, i, theta, cost, most):
        return super().argmax_counts(examples, i, theta, cost, most + 1)[1:]


@wrong(r"CountOracle.argmax_counts .* returns for count \d a label that has it")
class CountsOfAnotherLabel(Counting):
    def argmax_counts(self, examples, i, theta, cost, most):
        best = super().argmax_counts(examples, i, theta, cost, most)
        scores = [None if y is None else self.score(examples, i, theta, y) for y in best]
        for c in range(1, most + 1):
            if scores[c] is not None and scores[c] == scores[c - 1]:
                best[c] = best[c - 1]
        return best


@wrong(r"Parts.difference .* is encode\(truth\) - encode\(label\)")
class PartsChange(PyChainSpace):
    asked = 0

    def parts(self, examples, i, label):
        self.asked += 1
        mu = super().parts(examples, i, label)
        if self.asked % 5 == 0:
            mu.pop("start")
        return mu


@wrong(r"Oracle.argmax .* attains the maximum")
class PartsOfAnotherScore(PyChainSpace):
    def ranked(self, examples, i, theta, k):
        turned = {**theta, "transition": theta["transition"].T.copy()}
        return super().ranked(examples, i, turned, k)


class OwnLoss(PyChainSpace):
    loss_names = ("own",)

    def loss(self, examples, i, truth, label):
        return float(np.sum(label != truth))

    def loss_costs(self, examples, i, truth):
        return {"node": 1.0 - np.eye(len(self.classes_))[truth]}, 0.0


class OwnLossStructure(PyChainStructure):
    space_class = OwnLoss


wrong_answers(
    OwnLoss,
    ("LossAtTruth", "loss", lambda value: 1.0 + value,
     r"Loss 'own'.value .* is 0 for the true label"),
    ("LossNegative", "loss", lambda value: -value, r"Loss 'own'.value .* is finite and at least 0"),
    ("LossDoesNotDecompose", "loss", lambda value: value**2,
     r"Loss 'own'.augment .* adds 1.0 times the loss to the score of every label"),
    ("LossWithAWrongConstant", "loss_costs", lambda pair: (pair[0], 1.0),
     r"Loss 'own'.augment .* adds 1.0 times the loss"),
)  # fmt: skip


@wrong(r"Loss 'own'.value .* is 0 for the true label")
class LossOfTheLabelsPacked(OwnLoss):
    def loss(self, examples, i, truth, label):
        return super().loss(examples, i, examples.label(i), label)

    def loss_costs(self, examples, i, truth):
        return super().loss_costs(examples, i, examples.label(i))


@wrong(r"AugmentedOracle.argmax .* attains the maximum")
class AugmentedWithoutLoss(OwnLoss):
    def argmax_augmented(self, examples, i, theta, truth):
        return self.argmax(examples, i, theta)


@wrong(r"Projection.project \(entropy\) .* returns the marginals of the Gibbs distribution")
class ProjectionTooSoft(PyChainSpace):
    def project(self, examples, i, theta, name):
        _, value = super().project(examples, i, theta, name)
        soft = {name: 0.5 * array for name, array in theta.items()}
        return super().project(examples, i, soft, name)[0], value


@wrong(r"Projection.project \(entropy\) .* answers without an exception")
class ProjectionOverflows(PyChainSpace):
    def project(self, examples, i, theta, name):
        mu, value = super().project(examples, i, theta, name)
        with np.errstate(over="ignore"):
            return mu, np.log(np.exp(value))


class OtherProjection(PyChainSpace):
    """A projection by another name: the oracle itself, whose regulariser is zero."""

    projections = ("none",)

    def project(self, examples, i, theta, name):
        label = self.argmax(examples, i, theta)
        return self.parts(examples, i, label), self.score(examples, i, theta, label)


class OtherProjectionStructure(PyChainStructure):
    space_class = OtherProjection


wrong_answers(
    OtherProjection,
    ("ProjectionGradientOff", "project", lambda pair: (pair[0], 2 * pair[1]),
     r"Projection.project \(none\) .* returns the gradient of its value"),
    ("ProjectionOutside", "project",
     lambda pair: ({**pair[0], "node": 2 * pair[0]["node"]}, pair[1]),
     r"Projection.project \(none\) .* stays in the convex hull"),
)  # fmt: skip


class Enumerates(PyChainStructure):
    """Right, but slow.  Its clock counts labels: a hundredth of a millisecond each."""

    seconds = 0.0

    class CountingSpace(PyChainSpace):
        def scores(self, examples, i, theta):
            labels, scores = super().scores(examples, i, theta)
            Enumerates.seconds += 1e-5 * len(labels)
            return labels, scores

    space_class = CountingSpace

    @staticmethod
    def clock():
        return Enumerates.seconds


#: What is right, but slow.
SLOW = [pytest.param(Enumerates, "SlowOperator: .* grows as the power", id="Enumerates")]


@wrong(r"an operator .* leaves packed examples as they are \(nodes, in the checks 'oracle'\)")
class ArgmaxScalesFeatures(PyChainSpace):
    def argmax(self, examples, i, theta):
        examples.nodes *= 1.001
        return super().argmax(examples, i, theta)


@wrong(r"an operator .* leaves packed examples as they are \(labels, in the checks 'oracle'\)")
class ArgmaxWritesLabels(PyChainSpace):
    def argmax(self, examples, i, theta):
        examples.labels[0] = 1 - examples.labels[0] % 2
        return super().argmax(examples, i, theta)
