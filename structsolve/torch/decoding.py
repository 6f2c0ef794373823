"""Labels of a batch of scores: the best ones."""

from __future__ import annotations

from typing import Any

import torch

from ..batch import argmax
from .layer import Layer


def decode(
    structure: Any,
    scores: Any,
    lengths: Any = None,
    examples: Any = None,
    *,
    classes: Any = None,
    oracle: Any = None,
    n_jobs: int | None = None,
    **graphs: Any,
) -> torch.Tensor:
    """Return the best label of every example.

    Parameters
    ----------
    structure : str, Structure or layer
        A layer of this package lends its structure, classes and what it keeps by shape.
    scores : Tensor or dict of str to Tensor
        As of :class:`StructuredLoss`, as are lengths, examples and graphs.
    lengths : Tensor, array or list of int, optional
    examples : Examples, optional
    classes : int or sequence, optional
    oracle : str or structsolve.lp.Backend, optional
        A solver of linear programs in place of the structure's own oracle.
    n_jobs : int, optional
        Threads.
    **graphs : object
        What else the structure needs.

    Returns
    -------
    Tensor of int64
        Of the shape that labels have, -1 beyond the end of an example; on the device of the scores.

    Raises
    ------
    ValueError, TypeError
        As of :class:`StructuredLoss`.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import decode
    >>> scores = torch.tensor([[[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]])
    >>> decode("chain", {"node": scores, "transition": -3 * torch.eye(2)}, lengths=[2]).tolist()
    [[1, 0, -1]]
    """
    layer = structure if isinstance(structure, Layer) else Layer(structure, classes, n_jobs)
    given = layer.read(scores, lengths, examples, **graphs)
    flat, _, _ = argmax(given.space, given.scores, oracle=oracle, n_jobs=layer.n_jobs)
    return given.labels(flat)
