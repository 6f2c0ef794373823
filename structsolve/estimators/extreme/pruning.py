"""Smaller models: thresholds below which weights are left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...extreme.postings import Postings

# Bytes of a file beside those of the arrays that grow with the model, per array and in all.
_HEADS = 4096
# Halvings of the range of thresholds that a loss of accuracy allows.
_STEPS = 12


def file_bytes(n_weights: int, n_features: int, n_classes: int, width: int) -> int:
    """Return about how many bytes a model takes on disk.

    Parameters
    ----------
    n_weights, n_features, n_classes : int
    width : int
        Bytes of a weight: 4 or 2.

    Returns
    -------
    int
    """
    return n_weights * (4 + width) + 8 * (n_features + 1) + 4 * n_classes + _HEADS


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


def prune_to_size(postings: Postings, most: float, overhead: int) -> Postings:
    """Leave out the smallest weights so that a file of the rest takes at most so many bytes.

    Parameters
    ----------
    postings : Postings
    most : float
        Bytes.
    overhead : int
        Bytes of the file beside the weights.

    Returns
    -------
    Postings

    Raises
    ------
    ValueError
        When a model without any weight would take more.
    """
    width = postings.weights.dtype.itemsize
    fixed = overhead + file_bytes(0, postings.n_features, postings.n_classes, width)
    if most < fixed:
        raise ValueError(
            f"mb is {most / 1e6:.3g}, but without any weight {postings.n_features} features and "
            f"{postings.n_classes} classes take {fixed / 1e6:.3g} MB: ask for more"
        )
    return postings.pruned(threshold_keeping(postings, int((most - fixed) // (4 + width))))


def prune_to_error(
    postings: Postings, error_of: Callable[[Postings], float], allowed: float
) -> Postings:
    """Leave out as many small weights as do not raise an error by more than what is allowed.

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
    # The share of weights left out, which errors mostly rise with: what is returned was measured.
    for _ in range(_STEPS):
        share = 0.5 * (low + high)
        place = int(share * len(sizes))
        tried = postings.pruned(float(sizes[place])) if len(sizes) else postings
        if error_of(tried) <= most:
            low, best = share, tried
        else:
            high = share
    return best
