"""Spaces without features, for scores that come from elsewhere."""

from __future__ import annotations

from typing import Any

from ..registry import get_structure


def score_space(structure: Any, classes: Any = None, *, edge: bool = False) -> Any:
    """Return a space of a structure, without features: its parts get their scores from elsewhere.

    Parameters
    ----------
    structure : str or Structure
    classes : int or sequence, optional
        How many classes there are, or their names: states of nodes, labels of sets, ordered
        classes, labels that are ranked.  Structures without classes take none.
    edge : bool, default=False
        Edges have scores of their own, one table for each, beside those that all share.

    Returns
    -------
    Space
        Its ``layout.blocks`` tell names and shapes of the scores, its ``pack_sizes()`` makes
        examples of sizes and graphs.

    Raises
    ------
    TypeError
        When ``structure`` is neither a name nor a structure.
    ValueError
        For an unknown structure, and what it does not allow.
    NotImplementedError
        Where a structure has no ``score_space()``.

    Examples
    --------
    >>> from structsolve.batch import score_space
    >>> chain = score_space("chain", ["noun", "verb"])
    >>> [(block.name, block.kind, block.shape) for block in chain.layout.blocks]
    [('transition', 'shared', (2, 2)), ('start', 'shared', (2,)), ('end', 'shared', (2,)),
    ('node', 'node', (2,))]
    >>> chain.pack_sizes([3, 1]).offsets.tolist()
    [0, 3, 4]
    """
    return get_structure(structure).score_space(classes, edge)
