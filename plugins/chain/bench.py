# structsolve bench: speed of training and decoding chains of a given size on this machine.
from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

import structsolve
from structsolve.cli import messages
from structsolve.utils.sparse import split_rows


def make_chains(
    words: int, length: int, features: int, states: int, seed: int = 0, dense: bool = False
) -> tuple[list[Any], list[np.ndarray]]:
    """Make sequences of labels from a Markov chain, with noisy binary features of the labels.

    Parameters
    ----------
    words, length, features, states : int
        Number of sequences, and of tokens, features and labels in each.
    seed : int, default=0
    dense : bool, default=False
        Arrays instead of CSR matrices.

    Returns
    -------
    X : list of matrices of shape (length, features)
    Y : list of ndarray of int

    Raises
    ------
    ValueError
        The message names a size that is too small.

    Examples
    --------
    >>> X, Y = make_chains(3, 4, 10, 5)
    >>> [x.shape for x in X], [len(y) for y in Y]
    ([(4, 10), (4, 10), (4, 10)], [4, 4, 4])
    """
    sizes = {"words": words, "length": length, "features": features, "states": states}
    for name, value in sizes.items():
        if value < 1 + (name == "states"):
            raise ValueError(f"{name}: found {value}; expected at least {1 + (name == 'states')}")
    rng = np.random.default_rng(seed)
    leads = rng.dirichlet(np.full(states, 0.3), size=states + 1).cumsum(axis=1)
    labels = np.empty((words, length), np.int64)
    state = np.full(words, states)
    for t in range(length):
        drawn = rng.random(words)[:, None] > leads[state]
        labels[:, t] = state = np.minimum(drawn.sum(axis=1), states - 1)
    prototypes = rng.random((states, features)) < 0.25
    flips = rng.random((words * length, features)) < 0.15
    rows = (prototypes[labels.ravel()] ^ flips).astype(np.float64)
    X = split_rows(
        rows if dense else sparse.csr_matrix(rows), np.arange(0, words * length + 1, length)
    )
    return X, list(labels)


def run_bench(
    *,
    words: int = 2000,
    length: int = 8,
    features: int = 128,
    states: int = 26,
    passes: int = 5,
    n_jobs: int = 1,
    seed: int = 0,
    dense: bool = False,
) -> dict[str, float]:
    """Time training passes and decoding, and print them.

    Parameters
    ----------
    words, length, features, states, seed, dense
        As for `make_chains`.
    passes : int, default=5
    n_jobs : int, default=1

    Returns
    -------
    dict of str to float
        Words per second of ``train`` (a pass) and ``decode``.
    """
    if passes < 1:
        raise ValueError(f"passes: found {passes}; expected at least 1")
    X, Y = make_chains(words, length, features, states, seed, dense)
    print(
        f"{words} words of {length} letters, {features} {'dense' if dense else 'CSR'} features, "
        f"{states} states, n_jobs={n_jobs}",
        file=messages.out(),
    )
    model = structsolve.StructuredSVM(
        structure="chain", max_iter=passes, tol=0.0, n_jobs=n_jobs, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few passes are not meant to converge
        start = time.perf_counter()
        model.fit(X, Y)
        total = time.perf_counter() - start
    per_pass = [max(one["seconds"], 1e-9) for one in model.history_]
    decode = min(_timed(model.predict, X) for _ in range(3))
    for name, seconds in (("train, a pass", np.mean(per_pass)), ("decode", decode)):
        speed = f"{words / seconds:>12,.0f} words/s{words * length / seconds:>14,.0f} letters/s"
        print(f"{name:<14}{speed}{seconds / words * 1e6:>10.2f} µs/word", file=messages.out())
    print(f"{'fit':<14}{total:>12.3f} s total, {len(per_pass)} passes", file=messages.out())
    return {"train": float(words / np.mean(per_pass)), "decode": words / decode}


def _timed(function: Any, *args: Any) -> float:
    start = time.perf_counter()
    function(*args)
    return max(time.perf_counter() - start, 1e-9)  # some clocks have a coarse resolution
