"""Thousands of random cases in a plain loop.

Where all that hypothesis would draw is the seed of a generator and a few settings, it has nothing
to make smaller, and costs more than what is tested.
"""

import functools
import itertools
import os
import zlib

import numpy as np


def random_cases(n, /, **settings):
    """Run a test n times, with a new ``seed=`` and each combination of settings in turn.

    As of hypothesis, cases are the same in every run, unless ``STRUCTSOLVE_HYPOTHESIS=random``
    asks for others.  What a case that fails was given is printed.

    Parameters
    ----------
    n : int
    **settings : sequences
        Values of the test's other arguments.
    """
    every = list(itertools.product(*settings.values()))

    def decorate(test):
        @functools.wraps(test)
        def run():
            drawn = os.environ.get("STRUCTSOLVE_HYPOTHESIS") == "random"
            fixed = None if drawn else zlib.crc32(test.__qualname__.encode())
            seeds = np.random.default_rng(fixed).integers(2**32, size=max(n, len(every)))
            for seed, values in zip(seeds.tolist(), itertools.cycle(every)):
                given = dict(zip(settings, values), seed=seed)
                try:
                    test(**given)
                except BaseException:
                    print(f"{test.__name__}(**{given!r})")
                    raise

        del run.__wrapped__  # pytest would ask for the arguments of the test itself
        return run

    return decorate


def class_scores(k, kind, rng):
    """Return scores of k classes of a kind; some are allowed."""
    scores = rng.normal(size=k) * 2
    if kind == "ties":
        scores = rng.integers(-1, 2, k).astype(float)
    elif kind == "equal":
        scores[:] = 0.3
    elif kind == "huge":
        scores = rng.choice([-1e4, 1e4, 0.5, 9999.7], k)
    elif kind == "forbidden":
        scores[rng.random(k) < 0.5] = -np.inf
        scores[rng.integers(k)] = 0.25
    elif kind == "one left":
        scores[np.arange(k) != rng.integers(k)] = -np.inf
    return scores
