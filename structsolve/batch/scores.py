"""Part scores of many examples as arrays: outputs of networks, and their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Scores:
    """Part scores of a batch of examples, by block; gradients and marginals have the same form.

    Each array is float32 or float64.  A score of -inf forbids its part.

    Parameters
    ----------
    node : ndarray of shape (rows, ...), or None
        Scores of the space's node block: one row, of the block's shape, for each node of all
        examples, one example after the other.  Rows of one number may be a flat array.
    shared : dict of str to ndarray, optional
        Blocks that all positions share (``"transition"``, ``"start"``, ...), of the block's shape;
        missing ones score 0.  There may be an array for each example, of shape (n, ...)
        with that of the block; then of each block that is given.
    edge : ndarray of shape (rows, ...), optional
        Scores of the edge block, one row per edge; they are 0 without it.
    examples : Examples
        Sizes and graphs of the examples, without features: by :meth:`structsolve.Space.pack_sizes`.
    rows, edge_rows : ndarray of int64 of shape (n,), optional
        First row of each example, in arrays with unused rows between examples: for a padded batch
        of shape (n, longest, K), reshaped to (n * longest, K), it is ``longest * np.arange(n)``.
        By default rows are contiguous.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, argmax, score_space
    >>> chain = score_space("chain", 3)
    >>> padded = np.zeros((2, 4, 3), np.float32)
    >>> padded[0, :2, 1] = padded[1, :, 2] = 1
    >>> sizes = chain.pack_sizes([2, 4])
    >>> scores = Scores(padded.reshape(8, 3), examples=sizes, rows=4 * np.arange(2))
    >>> argmax(chain, scores)[0].tolist()
    [1, 1, 2, 2, 2, 2]
    """

    node: np.ndarray | None = None
    shared: dict[str, np.ndarray] | None = None
    edge: np.ndarray | None = None
    examples: Any = None
    rows: np.ndarray | None = None
    edge_rows: np.ndarray | None = None

    # Set for a network's batch, whose sizes never change: it keeps their operators.
    places = None


@dataclass
class Operators:
    """What stands for the places of scores whose operators nobody else keeps.

    Parameters
    ----------
    space : Space
    binding : Binding, optional
        Made when it is first needed.
    """

    space: Any
    binding: Any = None

    #: Rows follow each other.
    index = None
