"""Compare operators of one sentence with an enumeration of its trees."""

import functools

import numpy as np
import pytest
from checks import refused
from reference.programs import best_vertex

from structsolve.lp.ask import ask_oracle
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_parts, ask_power, ask_projection, make_layout

exactly = functools.partial(pytest.approx, rel=1e-12, abs=1e-12)


def near(told, expected):
    """Same result as ``told == exactly(expected)``, but faster."""
    return (np.abs(told - expected) <= 1e-12 * np.maximum(1, np.abs(expected))).all()


def drawn(rng, kind, size, barred=0.3):
    """Return scores of a kind."""
    return {
        "random": lambda: rng.normal(size=size),
        "tied": lambda: rng.integers(-1, 2, size).astype(float),
        "zero": lambda: np.zeros(size),
        "wide": lambda: rng.normal(size=size) * 10 ** rng.uniform(0, 4),
        "barred": lambda: np.where(rng.random(size) < barred, -np.inf, rng.integers(-2, 3, size)),
        # Sums of three span less than RANGE of _linear.pyx, or more.
        "far": lambda: rng.choice([0, -199.5, -200.5, -320.0], size),
    }[kind]()


def bound(space, examples):
    """Return a layout, and oracle, k best and projection bound to it."""
    layout = make_layout(space, examples)
    binds = ask_oracle(space), ask_power(space, "kbest"), ask_projection(space, "entropy")
    return layout, *(bind(layout) for bind in binds)


class Trees:
    """All labels of a sentence, the parts of each as a row of ``mu``, and its operators."""

    def __init__(self, space, examples):
        self.space, self.examples = space, examples
        self.layout, self.oracle, self.kbest, self.projection = bound(space, examples)
        self.labels = space.enumerate_labels(examples, 0)
        self.parts, self.size = ask_parts(space)(self.layout), self.layout.sizes(0)[0]
        self.mu = np.zeros((len(self.labels), self.size))
        for row, label in zip(self.mu, self.labels):
            np.add.at(row, *calls.encode(self.parts, 0, label))
        self.places = {label.tobytes(): row for row, label in enumerate(self.labels)}

    def totals(self, theta):
        """Return the score of every label."""
        finite = np.where(np.isfinite(theta), theta, 0)
        return self.mu @ finite + np.where(self.mu @ ~np.isfinite(theta) > 0, -np.inf, 0)

    def rows(self, labels):
        return [self.places[label.tobytes()] for label in labels]

    def check_best(self, theta, k):
        totals = self.totals(theta)
        if totals.max(initial=-np.inf) == -np.inf:
            refused("example 0: no tree is possible", calls.argmax, self.oracle, 0, theta)
            refused("example 0: no tree is possible", calls.kbest, self.kbest, 0, theta, 2)
            return
        label, value, bound = calls.argmax(self.oracle, 0, theta)
        assert value == bound == exactly(totals.max())
        assert totals[self.rows([label])[0]] == exactly(value)
        expected = np.sort(totals[totals > -np.inf])[::-1][:k]
        labels, values = calls.kbest(self.kbest, 0, theta, k)
        assert len(labels) == len(expected) == len(np.unique(labels, axis=0))
        assert near(values, expected) and near(totals[self.rows(labels)], values)

    def check_sums(self, theta, towards):
        """Check the sum over labels, marginals, and their derivatives along a direction."""
        if self.totals(theta).max(initial=-np.inf) == -np.inf:
            refused("example 0: no tree is possible", calls.project, self.projection, 0, theta)
            return
        value, p = self.probabilities(theta)
        marginals, log_sum, bound = calls.project(self.projection, 0, theta)
        assert log_sum == bound == exactly(value)
        np.testing.assert_allclose(marginals, p @ self.mu, 0, 1e-9)
        along = self.mu @ towards
        moved = projection_calls.derivative(self.projection, 0, theta, towards)
        np.testing.assert_allclose(moved, (p * (along - p @ along)) @ self.mu, 0, 1e-8)

    def probabilities(self, theta):
        """Return the logarithm of the sum over labels, and the probability of each."""
        totals = self.totals(theta)
        p = np.exp(totals - totals.max())
        return totals.max() + np.log(p.sum()), p / p.sum()

    def check_samples(self, theta, uniforms):
        _, p = self.probabilities(theta)
        labels = projection_calls.sample(self.projection, 0, theta, uniforms)
        check_frequencies(np.bincount(self.rows(labels), minlength=len(p)), p)

    def check_polytope(self, polytopes, theta):
        """Check that the best corner is the best label."""
        polytope = polytopes(self.space, self.examples).build(0)
        label, value, _ = calls.argmax(self.oracle, 0, theta)
        x, best = best_vertex(polytope, theta)
        assert best == pytest.approx(value, abs=1e-7)
        assert polytope.decode(x).tolist() == label.tolist()
        assert polytope.marginals(x, len(theta)) @ theta == pytest.approx(value)


def check_frequencies(counts, p):
    """Check how often labels were drawn, against their probabilities."""
    n = counts.sum()
    assert not counts[p == 0].any()
    deviation = (counts / n - p) / np.sqrt(np.maximum(p * (1 - p), 1e-9) / n)
    assert np.abs(deviation[p > 1e-3]).max() < 5


def check_memory(theta, given, *case):
    """Check that operators write no more than they ask for, and nothing into theta."""
    from structsolve.testing._case import Room

    for function, operator, *others in given:
        room = Room(-91)
        function(operator, 0, theta.array, *others, room=room)
        assert "work" in room.given
        for name, guarded in (("theta", theta), *room.given.items()):
            assert not guarded.damage(), (function.__name__, *case, name)


def check_memory_of(space, examples, uniforms, ks, rng, *case):
    """Check so all operators bound to one example."""
    from structsolve.testing._case import Guarded

    layout, oracle, kbest, projection = bound(space, examples)
    size = layout.sizes(0)[0]
    theta = Guarded(size, np.float64, rng.normal(size=size))
    given = [(calls.argmax, oracle), *((calls.kbest, kbest, k) for k in ks)]
    given += [(calls.project, projection), (projection_calls.sample, projection, uniforms)]
    given += [(projection_calls.derivative, projection, rng.normal(size=size))]
    check_memory(theta, given, *case)
