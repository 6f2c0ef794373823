"""Projections and losses that each break one promise, beside those that keep them all."""

import numpy as np
from python_structures import PyChainSpace, PyChainStructure
from wrong_structures import collector

PROJECTIONS, wrong, wrong_answers = collector()


class Chances(PyChainSpace):
    """Probabilities of all labels as states, their term, slope and samples: as they should be."""

    projections = ("entropy",)

    def chances(self, examples, i, theta):
        labels = self.enumerate_labels(examples, i)
        scores = np.array([self.score(examples, i, theta, y) for y in labels])
        weights = np.exp(scores - scores.max())
        return weights / weights.sum(), scores.max() + np.log(weights.sum())

    def project_state(self, examples, i, theta, name):
        return self.chances(examples, i, theta)

    def state_of(self, examples, i, label, name):
        labels = self.enumerate_labels(examples, i)
        return (labels == label).all(axis=1).astype(float)

    def pool(self, examples, i, state, name):
        labels = self.enumerate_labels(examples, i)
        mus = [PyChainSpace.parts(self, examples, i, y) for y in labels]
        return {block: sum(p * mu[block] for p, mu in zip(state, mus)) for block in mus[0]}

    def term(self, examples, i, state, name):
        return -sum(p * np.log(p) for p in state if p > 0)

    def slope(self, examples, i, a, b, gamma, name):
        p, d = (1 - gamma) * a + gamma * b, b - a
        with np.errstate(divide="ignore"):
            return -sum(x * y for x, y in zip(d, np.log(p)) if x)

    def draw(self, examples, i, theta, uniforms):
        labels = self.enumerate_labels(examples, i)
        below = np.cumsum(self.chances(examples, i, theta)[0])
        return labels[np.minimum(np.searchsorted(below, uniforms[:, 0]), len(labels) - 1)]

    def derivative(self, examples, i, theta, direction, name):
        p, _ = self.chances(examples, i, theta)
        labels = self.enumerate_labels(examples, i)
        along = np.array([self.score(examples, i, direction, y) for y in labels])
        return self.pool(examples, i, p * (along - p @ along), name)


class ChancesStructure(PyChainStructure):
    space_class = Chances


wrong_answers(
    Chances,
    ("StateOfAnotherLabel", "state_of", lambda state: state[::-1],
     r"Projection.pool \(entropy\) .* gives mu\(y\) for the state of the label"),
    ("StateNotFinite", "state_of", lambda state: state * np.nan,
     r"Projection.state_of \(entropy\) .* answers without an exception.*finite numbers"),
    ("StateOfAnotherTheta", "project_state", lambda pair: (pair[0][::-1], pair[1]),
     r"Projection.project_state \(entropy\) .* pools to the marginals of project\(\)"),
    ("StateValueOff", "project_state", lambda pair: (pair[0], pair[1] + 1),
     r"Projection.project_state \(entropy\) .* gives the value of project\(\)"),
    ("SamplesTooFew", "draw", lambda labels: labels[1:],
     r"Projection.sample \(entropy\) .* answers without an exception.*labels"),
    ("DerivativeTwice", "derivative", lambda parts: {k: 2 * v for k, v in parts.items()},
     r"Projection.derivative \(entropy\) .* gives the covariance of the parts"),
)  # fmt: skip


class Bounded(Chances):
    """The same, with a bound that is not tight."""

    exact_projections = False

    def project(self, examples, i, theta, name):
        return *super().project(examples, i, theta, name), 1e6

    def project_state(self, examples, i, theta, name):
        return *super().project_state(examples, i, theta, name), 1e6


class BoundedStructure(PyChainStructure):
    space_class = Bounded


@wrong(r"Projection.project \(entropy\) .* returns an upper bound of the maximum")
class ProjectionBoundTooLow(Bounded):
    def project(self, examples, i, theta, name):
        mu, value, _ = super().project(examples, i, theta, name)
        return mu, value - 1, value - 0.5

    def chances(self, examples, i, theta):
        p, value = super().chances(examples, i, theta)
        return p, value - 1


@wrong(r"Projection.pool \(entropy\) .* is linear in the state")
class StateNotLinear(Chances):
    def pool(self, examples, i, state, name):
        return super().pool(examples, i, state**2, name)


@wrong(r"Projection.term \(entropy\) .* gives the value at the maximiser")
class TermTwice(Chances):
    def term(self, examples, i, state, name):
        return 2 * super().term(examples, i, state, name)

    def slope(self, examples, i, a, b, gamma, name):
        return 2 * super().slope(examples, i, a, b, gamma, name)


@wrong(r"Projection.term \(entropy\) .* is 0 for a single label")
class TermOffAtLabels(Chances):
    def term(self, examples, i, state, name):
        return super().term(examples, i, state, name) + (state.max() == 1) * (len(state) > 3)


@wrong(r"Projection.slope \(entropy\) .* is the derivative of term\(\)")
class SlopeOfTheEnd(Chances):
    def slope(self, examples, i, a, b, gamma, name):
        return super().slope(examples, i, a, b, min(gamma, 0.5), name)


@wrong(r"Projection.slope \(entropy\) .* falls along a segment")
class SlopeRisesInTheEnd(Chances):
    def slope(self, examples, i, a, b, gamma, name):
        return (
            abs(super().slope(examples, i, a, b, gamma, name))
            if gamma == 1
            else (super().slope(examples, i, a, b, gamma, name))
        )


@wrong(r"Projection.sample \(entropy\) .* draws labels with their probabilities")
class SamplesTooSoft(Chances):
    def draw(self, examples, i, theta, uniforms):
        return super().draw(examples, i, {k: 0.7 * v for k, v in theta.items()}, uniforms)


@wrong(r"Projection.sample \(entropy\) .* draws the same twice")
class SamplesOfTheirOwn(Chances):
    rng = np.random.default_rng(0)

    def draw(self, examples, i, theta, uniforms):
        return super().draw(examples, i, theta, self.rng.random(uniforms.shape))


@wrong(r"Projection.derivative \(entropy\) .* gives a symmetric Jacobian")
class DerivativeOfNodesAlone(Chances):
    def derivative(self, examples, i, theta, direction, name):
        nodes = {"node": direction["node"]}
        zeros = {k: np.zeros_like(v) for k, v in direction.items()}
        return super().derivative(examples, i, theta, {**zeros, **nodes}, name)


class Concave(PyChainSpace):
    """A projection that is no entropy: the oracle itself, whose G is zero."""

    projections = ("none",)

    def project(self, examples, i, theta, name):
        label = self.argmax(examples, i, theta)
        return self.parts(examples, i, label), self.score(examples, i, theta, label)

    def term(self, examples, i, state, name):
        return 0.0

    def slope(self, examples, i, a, b, gamma, name):
        return 0.0

    def derivative(self, examples, i, theta, direction, name):
        return {block: 0 * x for block, x in direction.items()}


class ConcaveStructure(PyChainStructure):
    space_class = Concave


@wrong(r"Projection.slope \(none\) .* rises from the maximiser towards no label")
class NotTheMaximiser(Concave):
    def project(self, examples, i, theta, name):
        label = self.ranked(examples, i, theta)[0][:2][-1]
        return self.parts(examples, i, label), self.score(examples, i, theta, label)


@wrong(r"Projection.project_state \(none\) .* has a bound that no mixture exceeds")
class NotTheMaximum(Concave):
    exact_projections = False

    def project(self, examples, i, theta, name):
        label = self.ranked(examples, i, theta)[0][-1]
        value = self.score(examples, i, theta, label)
        return self.parts(examples, i, label), value, value


@wrong(r"Projection.derivative \(none\) .* gives the change of the marginals along a direction")
class DerivativeOfSomethingElse(Concave):
    def derivative(self, examples, i, theta, direction, name):
        return direction


@wrong(r"Projection.term \(none\) .* is concave")
class TermConvex(Concave):
    def term(self, examples, i, state, name):
        return sum((x * (x - 1)).sum() for x in [state["node"]])


class Matrix(PyChainSpace):
    """A loss with its own matrix: every error costs twice its true class, plus one."""

    loss_names = ("own",)

    def table(self):
        K = len(self.classes_)
        return (1 - np.eye(K)) * (1 + 2 * np.arange(K))[:, None]

    def loss(self, examples, i, truth, label):
        return float(self.table()[truth, label].sum())

    def loss_costs(self, examples, i, truth):
        return {"node": self.table()[truth]}, 0.0

    def costs(self, examples, i, nu, transposed):
        table = self.table()
        return {"node": nu["node"] @ (table.T if transposed else table)}, 0.0


class MatrixStructure(PyChainStructure):
    space_class = Matrix


wrong_answers(
    Matrix,
    ("MatrixWithAWrongConstant", "costs", lambda pair: (pair[0], 0.5),
     r"Loss 'own'.costs .* gives every label's loss"),
)  # fmt: skip


@wrong(r"Loss 'own'.costs .* transposed")
class MatrixNotTurned(Matrix):
    def costs(self, examples, i, nu, transposed):
        return super().costs(examples, i, nu, False)


@wrong(r"Loss 'own'.costs .* gives every label's loss if nu is mu\(truth\)")
class MatrixTurned(Matrix):
    def costs(self, examples, i, nu, transposed):
        return super().costs(examples, i, nu, not transposed)


@wrong(r"Loss 'own'.costs .* is the loss at truth")
class MatrixOfThisTruth(Matrix):
    def costs(self, examples, i, nu, transposed):
        return {"node": self.table()[examples.label(i)]}, 0.0


@wrong(r"Loss 'own'.costs .* is linear in the truths' distribution")
class MatrixNotLinear(Matrix):
    def costs(self, examples, i, nu, transposed):
        return super().costs(examples, i, {k: v**2 for k, v in nu.items()}, transposed)
