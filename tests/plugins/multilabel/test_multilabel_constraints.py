"""Label sets with labels fixed at prediction: forced on or off, against all sets."""

import numpy as np
import pytest
from checks import refused

from structsolve import StructuredSVM
from structsolve.plugins.multilabel import MultilabelStructure

CASES = [("none", "exact"), ("tree", "exact"), ("full", "exact"), ("full", "ilp")]


def data(seed, n=12, L=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    # Labels that come together, so that pairs matter.
    first = X @ rng.normal(size=3) > 0
    Y = np.column_stack([first ^ (rng.random(n) < 0.15) for _ in range(L)])
    return X, Y.astype(int)


def score(model, x, labels):
    """Of one set, by the definition."""
    coef = model.coef_
    total = float((x @ coef["node"] + coef["intercept"]) @ labels)
    for (a, b), table in zip(model.space_.edges_, coef.get("pair", ())):
        total += table[labels[a], labels[b]]
    return total


@pytest.mark.parametrize("edges, oracle", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_against_all_sets(edges, oracle, seed):
    X, Y = data(seed)
    model = StructuredSVM(MultilabelStructure(edges), alpha=0.05, tol=0.05).fit(X, Y)
    if oracle == "ilp":
        model.set_params(oracle=oracle)
    rng = np.random.default_rng(seed)
    allowed, sets = [], np.indices((2,) * 4).reshape(4, -1).T
    for i in range(len(X)):
        decided = rng.integers(-1, 2, 4)
        kind = i % 3
        if kind == 0:
            allowed.append({k: bool(on) for k, on in enumerate(decided.tolist()) if on >= 0})
        else:
            allowed.append(np.flatnonzero(decided).tolist() if kind == 1 else None)
    answers = model.predict(X, allowed=allowed)
    for x, limit, answer in zip(X, allowed, answers):
        if limit is None:
            possible = sets
        elif isinstance(limit, dict):
            possible = sets[[all(row[k] == on for k, on in limit.items()) for row in sets]]
        else:
            possible = sets[[set(np.flatnonzero(row)) <= set(limit) for row in sets]]
        assert answer.tolist() in possible.tolist()
        best = max(score(model, x, row) for row in possible)
        assert score(model, x, answer) == pytest.approx(best, abs=1e-9)


def test_what_is_refused():
    X, Y = data(0)
    model = StructuredSVM(MultilabelStructure("tree"), alpha=0.05, tol=0.05).fit(X, Y)
    none = [None] * (len(X) - 1)
    refused("allowed has 11 entries, expected 12", model.predict, X, none)
    refused("example 0: allowed names the label 9; known are", model.predict, X, [[9], *none])
    refused("example 0: allowed is 3, expected a list", model.predict, X, [3, *none])
    for names in ([True, False, True, False], [[0], [1]]):
        refused("example 0: allowed names the label (True|.0.);", model.predict, X, [names, *none])
    refused("example 0: allowed has 'off' for the label 1", model.predict, X, [{1: "off"}, *none])
    refused("allowed is 'a', expected a list with one entry per example", model.predict, X, "a")
    refused("label sets have none; use allowed", model.predict, X, None, [(0, 1)])
    refused("which predict alone does", model.predict_kbest, X, 2, [{0: True}, *none])
    if hasattr(model, "predict_marginals"):
        refused("which predict alone does", model.predict_marginals, X, allowed=[{0: 1}, *none])
    for (best, _), *_ in model.predict_kbest(X, 2, [{0: False}, *none])[:1]:
        assert best[0] == 0
