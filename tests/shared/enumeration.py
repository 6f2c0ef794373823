"""Compare operators of one example with an enumeration of its labels."""

import functools

import numpy as np
import pytest

from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import make_layout

NONE = -np.inf


def fill(views, kind, rng, huge):
    """Write scores of a kind into arrays by block name."""
    for name, view in views.items():
        if kind == "ties":
            view[...] = rng.integers(-1, 2, view.shape)
        elif kind == "huge":
            view[...] = rng.choice([-huge, huge, 0.0, huge - 0.5], view.shape)
        elif kind == "negative":
            view[...] = -rng.exponential(3, view.shape)
        elif kind != "equal":
            view[...] = rng.normal(size=view.shape) * (120 if kind == "wide" else 1)
        nodes = name == "node"
        if kind == "forbidden parts" or kind == ("forbidden" if nodes else "forbidden pairs"):
            view[rng.random(view.shape) < 0.3] = NONE
        if kind == "all forbidden" and nodes:
            view[rng.integers(len(view))] = NONE


class Enumerated:
    """Operators of one example, all its labels, and the parts of each as a row of ``matrix``.

    A subclass has ``views(theta)``, the ``size`` of theta, ``states`` of each node, and ``labels``
    in lexicographic order.
    """

    number = 0  # of the example
    huge = 1e4
    rounding = rounding_of_marginals = 1e-14

    powers = ("kbest", "max-marginals", "counts")

    def bind(self, space, examples):
        """Make all operators of an exact structure."""
        self.space, self.examples = space, examples
        self.layout = layout = make_layout(space, examples)
        self.oracle, self.parts = space.make_oracle()(layout), space.make_parts()(layout)
        for name in self.powers:
            setattr(self, name.replace("-", "_"), space.make_power(name)(layout))
        self.projection = space.make_projection("entropy")(layout)

    def theta(self, kind, rng):
        theta = np.zeros(self.size)
        fill(self.views(theta), kind, rng, self.huge)
        return theta

    def scores(self, theta):
        """Return the score of every label."""
        never = np.isneginf(theta)
        scores = self.matrix @ np.where(never, 0, theta)
        scores[self.matrix @ never > 0] = NONE
        return scores

    def rows(self, labels):
        """Return the rows of labels in the enumeration."""
        return np.ravel_multi_index(np.transpose(labels), self.states)

    def scale(self, theta):
        return 1 + np.abs(theta[np.isfinite(theta)]).max(initial=0)

    def close(self, theta):
        """Return a bound of the scores' rounding errors."""
        atol = self.rounding * self.scale(theta) * (len(self.states) + 1)
        return {"rtol": 1e-13, "atol": atol}

    def check(self, theta):
        scores = self.scores(theta)
        label, value = self.check_best(theta)
        for k in (1, 2, 7, len(scores) + 3):
            labels, values = self.check_kbest(theta, k)
            assert values[0] == value and (labels[0] == label).all()
        if len(labels) > 1:
            self.check_kbest(theta, 5, banned=labels[::2])
        if scores.max() > NONE:
            self.check_marginals(theta)
        else:
            with pytest.raises(ValueError, match="example 0: every labeling is forbidden"):
                calls.project(self.projection, self.number, theta)

    def check_best(self, theta):
        """Check the best label, and for every state of every node the best label that has it."""
        label, value = self.check_argmax(theta)
        scores, close = self.scores(theta), self.close(theta)
        best = calls.max_marginals(self.max_marginals, self.number, theta, max(self.states))
        np.testing.assert_allclose(best, self.best_of_states(scores, best.shape), **close)
        return label, value

    def check_argmax(self, theta):
        scores, close = self.scores(theta), self.close(theta)
        label, value, bound = calls.argmax(self.oracle, self.number, theta)
        assert bound == value
        np.testing.assert_allclose([value, scores[self.rows(label)]], scores.max(), **close)
        return label, value

    def best_of_states(self, scores, shape):
        """Check the best score for every state of every node."""
        having = [scores[self.labels[:, v] == s].max(initial=NONE) for v, s in np.ndindex(shape)]
        return np.reshape(having, shape)

    def check_kbest(self, theta, k, banned=()):
        """Check distinct labels, best first; if none is allowed, some label."""
        scores, close = self.scores(theta), self.close(theta)
        if len(banned):
            scores[self.rows(banned)] = NONE
        ranked = -np.sort(-scores[scores > NONE])[:k] if scores.max() > NONE else [NONE]
        labels, values = calls.kbest(self.kbest, self.number, theta, k, banned)
        np.testing.assert_allclose(values, ranked, **close)
        np.testing.assert_allclose(scores[self.rows(labels)], values, **close)
        assert (values[1:] <= values[:-1]).all()
        assert len(set(self.rows(labels))) == len(labels)
        return labels, values

    def check_counts(self, theta, cost, most):
        """Check the best label for each count, or zeros if there is none."""
        scores, counts, close = self.scores(theta), self.matrix @ cost, self.close(theta)
        labels, values = calls.argmax_counts(self.counts, self.number, theta, cost, most)
        for c in range(most + 1):
            best = scores[counts == c].max(initial=NONE)
            np.testing.assert_allclose(values[c], best, **close)
            if best == NONE:
                assert (labels[c] == 0).all()
                continue
            assert counts[self.rows(labels[c])] == c
            np.testing.assert_allclose(scores[self.rows(labels[c])], best, **close)
        return counts, labels, values

    def check_marginals(self, theta):
        _, marginals = self.check_distribution(theta, len(self.states))
        np.testing.assert_allclose(self.views(marginals)["node"].sum(axis=1), 1, rtol=1e-13)

    def check_distribution(self, theta, roundings=1):
        """Check the sum over labels and the marginals; return probabilities and marginals."""
        scores = self.scores(theta)
        marginals, value, bound = calls.project(self.projection, self.number, theta)
        assert bound == value
        if hasattr(self.projection, "log_partition"):
            assert value == self.projection.log_partition(self.number, theta)
        scale, top = self.scale(theta), scores.max()
        weights = np.exp(scores - top)
        total = top + np.log(weights.sum())
        np.testing.assert_allclose(value, total, rtol=1e-13, atol=1e-13 * scale)
        weights /= weights.sum()
        atol = self.rounding_of_marginals * scale * roundings
        np.testing.assert_allclose(marginals, weights @ self.matrix, rtol=1e-9, atol=atol)
        assert (marginals[np.isneginf(theta)] == 0).all()
        assert (marginals[(self.matrix == 0).all(axis=0)] == 0).all()  # padding too
        return weights, marginals

    def check_parts(self, rng, shortest=False):
        """Check parts of labels and of differences; `shortest`: without zeros and repetition."""

        def dense(entries):
            index, value = entries
            assert len(index) <= self.parts.max_entries
            return np.bincount(index, value, minlength=self.size)

        for row, other in rng.integers(len(self.labels), size=(10, 2)):
            label, truth = (np.ascontiguousarray(self.labels[j], np.int32) for j in (row, other))
            encoded = calls.encode(self.parts, self.number, label)
            assert (dense(encoded) == self.matrix[row]).all()
            apart = calls.difference(self.parts, self.number, truth, label)
            expected = self.matrix[other] - self.matrix[row]
            assert (dense(apart) == expected).all()
            assert not shortest or len(apart[0]) == np.count_nonzero(expected)
        assert calls.difference(self.parts, self.number, label, label)[0].size == 0


class Listed(Enumerated):
    """Labels that are not all combinations of states."""

    rounding, rounding_of_marginals = 1e-13, 1e-12
    powers = ("kbest",)

    @functools.cached_property
    def places(self):
        return {tuple(label): j for j, label in enumerate(self.labels.tolist())}

    def rows(self, labels):
        if np.ndim(labels) == 1:
            return self.places[tuple(labels)]
        return [self.places[tuple(label)] for label in np.asarray(labels).tolist()]

    def check_best(self, theta):
        return self.check_argmax(theta)

    def check_marginals(self, theta):
        """Check the marginals, and their derivative along a direction."""
        weights, _ = self.check_distribution(theta)
        direction = np.random.default_rng(0).normal(size=self.size)
        direction[(self.matrix == 0).all(axis=0)] = 0
        along = self.matrix @ direction
        moved = projection_calls.derivative(self.projection, self.number, theta, direction)
        covariance = (weights * (along - weights @ along)) @ self.matrix
        np.testing.assert_allclose(moved, covariance, rtol=1e-8, atol=1e-8 * self.scale(theta))

    def check_samples(self, rng):
        """Check that labels are drawn with their probabilities."""
        theta = self.theta("normal", rng)
        p = np.exp(self.scores(theta))
        size = 20000
        drawn = projection_calls.sample(self.projection, 0, theta, rng.random((size, self.n)))
        share = np.bincount(self.rows(drawn), minlength=len(p)) / size
        np.testing.assert_allclose(share, p / p.sum(), atol=4 * 0.5 / np.sqrt(size))
