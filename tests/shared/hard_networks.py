"""Networks with many zeros: diagnosis, colouring, crosswords; factors, and files in UAI format.

Tests and benchmarks share them.  Each generator returns the numbers of states, and factors: pairs
of variables and a table of probabilities.
"""

import itertools
from pathlib import Path

import numpy as np


def diagnosis(rng, causes, findings, parents=4, observed=1.0, leak=0.01):
    """Two layers of two-state variables: rare causes, and findings that are noisy-or of some.

    A share of the findings is observed, as the causes drawn at random explain it.
    """
    factors = [((v,), _coin(0.01 + 0.2 * rng.random())) for v in range(causes)]
    truth = [rng.random() < table[1] for _, table in factors]
    for f in range(findings):
        of = np.sort(rng.choice(causes, size=min(causes, parents), replace=False))
        fails = rng.random(len(of)) * 0.8
        absent = np.array(
            [
                (1 - leak) * np.prod(np.where(on, fails, 1.0))
                for on in itertools.product((False, True), repeat=len(of))
            ]
        ).reshape((2,) * len(of))
        happens = rng.random() > absent[tuple(int(truth[v]) for v in of)]
        if rng.random() < observed:
            factors.append((tuple(of.tolist()), 1 - absent if happens else absent))
        else:
            scope = (*of.tolist(), causes + f)
            factors.append((scope, np.stack([absent, 1 - absent], axis=-1)))
    return [2] * (causes + findings), factors


def _coin(p):
    return np.array([1 - p, p])


def colouring(rng, n, degree, colours, weights=True):
    """A random graph whose ends differ; nodes prefer some colours where there are `weights`."""
    pairs = set()
    while len(pairs) < n * degree // 2:
        u, v = sorted(rng.choice(n, size=2, replace=False).tolist())
        pairs.add((u, v))
    apart = 1.0 - np.eye(colours)
    factors = [(pair, apart) for pair in sorted(pairs)]
    if weights:
        factors += [((v,), np.exp(rng.normal(size=colours))) for v in range(n)]
    return [colours] * n, factors


def crossword(rng, size, words, letters=6):
    """A square of words across and down from one list, which share a letter at each crossing."""
    common = np.arange(letters, 0, -1.0)
    listed = np.unique(rng.choice(letters, size=(words, size), p=common / common.sum()), axis=0)
    factors = [((v,), np.exp(rng.normal(size=len(listed)))) for v in range(2 * size)]
    for across, down in itertools.product(range(size), repeat=2):
        agree = listed[:, down, None] == listed[:, across]
        factors.append(((across, size + down), agree.astype(float)))
    return [len(listed)] * (2 * size), factors


def write(path, states, factors):
    """Write the network to a file in UAI format."""
    lines = [f"MARKOV {len(states)}", " ".join(map(str, states)), str(len(factors))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope, _ in factors]
    for _, table in factors:
        lines.append(" ".join([str(table.size), *(f"{entry:.9g}" for entry in table.ravel())]))
    Path(path).write_text("\n".join(lines) + "\n")
