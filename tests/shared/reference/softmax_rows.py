"""Sampled softmax regression, step by step on dense weights, as the papers' reader would write it.

What is drawn at random is drawn by the same counter-based numbers.  Up to 256 rows in turn share a
block, so that each comes 16 times a pass.
"""

from __future__ import annotations

import numpy as np

MASK = (1 << 64) - 1


def draw(seed: int, row: int, purpose: int) -> int:
    z = (seed + 0x9E3779B97F4A7C15 * (2 * int(row) + purpose + 1)) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def rounded(part: np.ndarray, own: int, tau: float, uniform: float) -> np.ndarray:
    """Systematic sampling: entries below tau become tau or 0, with the same mean."""
    result, passed, following = np.zeros_like(part), 0.0, tau * uniform
    for j, p in enumerate(part):
        if j == own or tau == 0:
            result[j] = p
            continue
        passed += min(p, tau)
        if passed >= following:
            following += tau
            result[j] = max(p, tau)
        elif p >= tau:
            result[j] = p
    return result


def train(X, y, weights, intercept, head, block, dense, batch, tau, seed, orders, rates, alpha):
    """Dense weights (features x classes) after passes over rows in given orders."""
    X = np.asarray(X.todense(), np.float64)
    W = np.zeros((X.shape[1], len(intercept)))
    blocks = (len(intercept) - head) // block if block else 0
    sharing = max(1, min(256, X.shape[0] // 16 // max(blocks, 1)))
    losses = []
    for number, order in enumerate(orders):
        n, total, drawn_by = len(order), 0.0, draw(seed, number, 7)
        for first in range(0, n, batch):
            rows = order[first : first + batch]
            eta = rates[number] + (rates[number + 1] - rates[number]) * first / n
            steps = []
            for place, i in enumerate(rows, first):
                classes = np.arange(head)
                more = np.zeros(head)
                if blocks:
                    base = head + (draw(drawn_by, place // sharing, 0) >> 11) % blocks * block
                    classes = np.concatenate([classes, np.arange(base, base + block)])
                    more = np.concatenate([more, np.full(block, np.log(blocks))])
                known = np.flatnonzero(classes == y[i])
                if len(known):
                    more[known] = 0
                    own = known[0]
                else:
                    own, classes, more = len(classes), np.append(classes, y[i]), np.append(more, 0)
                scores = X[i] @ W[:, classes] + intercept[classes] + more
                top = scores.max()
                part = np.exp(scores - top)
                total += weights[i] * (top + np.log(part.sum()) - scores[own])
                part /= part.sum()
                part[own] -= 1
                uniform = (draw(drawn_by, i, 1) >> 40) / 2**24
                inside = part if own < len(part) - 1 or len(known) else part[:-1]
                few = rounded(inside, own, tau, uniform)
                if len(few) < len(part):
                    few = np.append(few, part[-1])
                steps.append((i, classes, part, few))
            W *= 1 - min(eta * alpha * len(rows), 0.5)
            for i, classes, part, few in steps:
                for f in np.flatnonzero(X[i]):
                    gradient = part if dense[f] else few
                    W[f, classes] -= eta * weights[i] * X[i, f] * gradient
        losses.append(total / n)
    return W, losses
