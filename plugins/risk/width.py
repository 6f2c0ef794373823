"""Width of the Gaussian kernel that conditional risk takes by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.given import is_sparse

#: Rows whose distances are measured, evenly spread.
ROWS = 256
#: Up to so many independent columns distances tell near rows from far ones.
FEW = 20.0


def widening(rows: Any) -> float:
    """Return the factor of gamma "scale" for rows whose distances are nearly all alike.

    Squared distances between rows of d independent columns vary by ``sqrt(2 / d)`` of their mean.
    The more columns, such as words, the less one pair is nearer than another; a kernel of width
    "scale" is then the same for all pairs, and predicts like the class frequencies.  The factor is
    ``20 / d`` for the d that measured distances have, at most 1.

    Parameters
    ----------
    rows : ndarray or CSR of shape (n, n_features)

    Returns
    -------
    float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> widening(rng.normal(size=(200, 5))), round(widening(rng.normal(size=(200, 2000))), 2)
    (1.0, 0.01)
    """
    n = rows.shape[0]
    some = rows[np.unique(np.linspace(0, n - 1, ROWS).astype(int))]
    some = some.toarray() if is_sparse(some) else some
    largest = np.abs(some).max(initial=0)
    some = (some - some.mean(axis=0)) / (largest or 1.0)
    products = some @ some.T
    squares = products.diagonal()
    pairs = np.triu_indices(len(some), 1)
    distances = (squares[:, None] + squares - 2 * products)[pairs]
    mean, spread = float(distances.mean()) if len(pairs[0]) else 0.0, float(np.std(distances))
    return min(1.0, FEW * spread**2 / (2 * mean**2)) if mean > 0 and spread > 0 else 1.0
