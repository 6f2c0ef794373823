"""Smaller models: thresholds below which weights are left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from structsolve.plugins.extreme.weights.postings import Postings

# Bytes of padding in a file, whose arrays begin at multiples of 64.
_MOVED = 256
# Bisection steps for the threshold that an allowed rise of the error permits.
_STEPS = 12


def threshold_keeping(postings: Postings, number: int) -> float:
    """Return the least threshold at which at most ``number`` weights are larger.

    Parameters
    ----------
    postings : Postings
    number : int
        At least 0.

    Returns
    -------
    float
    """
    if postings.nnz <= number:
        return 0.0
    sizes = np.abs(postings.weights)
    return float(np.partition(sizes, len(sizes) - number - 1)[len(sizes) - number - 1])


def prune_to_size(postings: Postings, most: float, empty: int) -> Postings:
    """Drop the smallest weights until a file of the rest takes at most ``most`` bytes.

    Parameters
    ----------
    postings : Postings
    most : float
        Bytes.
    empty : int
        Bytes of a file without any weight.

    Returns
    -------
    Postings

    Raises
    ------
    ValueError
        If a model without any weight would take more.
    """
    width = postings.weights.dtype.itemsize
    fixed = empty + _MOVED
    if most < fixed:
        raise ValueError(
            f"mb is {most / 1e6:.3g}, but without any weight {postings.n_features} features and "
            f"{postings.n_classes} classes take {fixed / 1e6:.3g} MB: ask for more"
        )
    return postings.pruned(threshold_keeping(postings, int((most - fixed) // (4 + width))))


def prune_to_error(
    postings: Postings, error_of: Callable[[Postings], float], allowed: float
) -> Postings:
    """Drop as many small weights as possible without raising the error by more than allowed.

    Parameters
    ----------
    postings : Postings
    error_of : callable
        From postings to their error.
    allowed : float
        Largest rise of the error, >= 0.

    Returns
    -------
    Postings
    """
    most = error_of(postings) + allowed
    best, low, high = postings, 0.0, 1.0
    sizes = np.sort(np.abs(postings.weights))
    # Bisect the share of weights left out; errors mostly rise with it.  The result was measured.
    for _ in range(_STEPS):
        share = 0.5 * (low + high)
        place = int(share * len(sizes))
        tried = postings.pruned(float(sizes[place])) if len(sizes) else postings
        if error_of(tried) <= most:
            low, best = share, tried
        else:
            high = share
    return best
