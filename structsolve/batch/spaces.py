"""Spaces without features, for scores computed elsewhere."""

from __future__ import annotations

from typing import Any

from ..registry import get_structure


def score_space(structure: Any, classes: Any = None, *, edge: bool = False) -> Any:
    """Return a space of a structure without features, for scores computed elsewhere.

    Parameters
    ----------
    structure : str or Structure
    classes : int or sequence, optional
        Number of classes, or their names: states of nodes, labels of sets, ordered classes, ranked
        labels. None for structures without classes.
    edge : bool, default=False
        Each edge has its own table of scores, in addition to the shared ones.

    Returns
    -------
    Space
        ``layout.blocks`` has the names and shapes of the scores; ``pack_sizes()`` makes examples
        from sizes and graphs.

    Raises
    ------
    TypeError
        If ``structure`` is neither a name nor a structure.
    ValueError
        For an unknown structure, and arguments that it does not allow.
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
