"""Numbers of the distribution of states of hidden Markov models, against all their sequences."""

import itertools

import numpy as np
from checks import refused

from structsolve import CostMatrix, HiddenMarkovModel

X, Y = ["hht", "tthh", "h"], [list("aab"), list("bbaa"), list("a")]
COSTS = np.array([[0, 1], [5, 0]])


def distribution(model, x):
    """All sequences of states, and their probabilities together with the observations."""
    codes = [model.emission_.symbols.tolist().index(symbol) for symbol in x]
    every = [*itertools.product(range(2), repeat=len(x))]
    values = []
    for states in every:
        p = model.start_[states[0]] * np.prod(model.emission_.table[states, codes])
        values.append(p * np.prod([model.transition_[pair] for pair in zip(states, states[1:])]))
    return every, np.array(values)


def test_numbers_against_all_sequences_of_states():
    model, other = (HiddenMarkovModel(smoothing=s).fit(X, Y) for s in (0.3, 2.0))
    costs = CostMatrix(COSTS, classes=["a", "b"])
    likely = model.predict_kbest(X, 99, probabilities=True)
    given = [
        model.log_partition(X), model.log_proba(X, Y), model.entropy(X),
        model.cross_entropy(X, other), model.kl_divergence(X, other),
        model.expected_loss(X, Y), model.expected_loss(iter(X), iter(Y), costs),
        model.expected_loss(X, model.predict_least_loss(X, costs), costs),
    ]  # fmt: skip
    for i, x in enumerate(X):
        (every, p), (_, q) = (distribution(one, x) for one in (model, other))
        total, p, q = np.log(p.sum()), p / p.sum(), q / q.sum()
        truth = tuple("ab".index(state) for state in Y[i])
        risks = p @ [[sum(COSTS[pair] for pair in zip(a, y)) for y in every] for a in every]
        wrong = [sum(a != b for a, b in zip(truth, y)) for y in every]
        expected = [
            total, np.log(p[every.index(truth)]), -p @ np.log(p), -p @ np.log(q),
            p @ np.log(p / q), p @ wrong, risks[every.index(truth)], risks.min(),
        ]  # fmt: skip
        np.testing.assert_allclose([number[i] for number in given], expected, rtol=1e-9)
        np.testing.assert_allclose([value for _, value in likely[i]], np.sort(p)[::-1], rtol=1e-9)


def test_answers_outside_of_the_model():
    model, bare = HiddenMarkovModel(smoothing=0.3).fit(X, Y), HiddenMarkovModel(smoothing=0)
    unseen = [list("aac"), *Y[1:]]
    assert np.isneginf(model.log_proba(X, unseen)).tolist() == [True, False, False]
    bare.fit(["ab", "ba"], [list("xy"), list("yx")])
    assert bare.log_proba(["ab"], [["x", "x"]])[0] == -np.inf
    refused("y, example 0: found a state that", model.expected_loss, X, unseen)
    refused("y, example 0: found None in place", model.log_proba, X, [None, *Y[1:]])
    refused("holds labels such as 1 and the model", model.log_proba, X, [[1] * len(x) for x in X])
    refused("X, example 1: the model gives it the probability 0", bare.entropy, ["ab", "aa"])
    refused("other is an int", model.kl_divergence, X, 3, error=TypeError)
    refused(r"other: found a model of the states \['x', 'y'\]", model.cross_entropy, X, bare)
