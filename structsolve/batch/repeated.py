"""What native code needs for scores of a batch, kept for the next ones of the same shapes."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from .. import registry
from ._sheets import again
from .binding import binding_of, fingerprint
from .scores import Scores
from .values import sheet_of


class Repeated:
    """Scores of a batch, checked for native code, which other scores may replace.

    Nobody else may have it meanwhile: threads have one each.

    Parameters
    ----------
    space : Space
    scores : Scores
    read : sequence of Scores, optional
        The scores that native code reads, of the same examples; by default ``scores``.
    """

    def __init__(self, space: Any, scores: Scores, read: Any = None):
        self.binding = binding_of(space, scores)
        self.n = self.binding.layout.n
        self.sheets = [
            _sheet_beside(one, scores, self.binding) for one in ([scores] if read is None else read)
        ]
        places: Any = scores.places
        #: The operators are the same as long as plugins are, and rows those of the arrays.
        self.lasting = places is not None and places.index is None

    def again(self, blocks: Any, read: Any) -> bool:
        """Replace the scores by others, which the caller keeps until the next ones.

        Parameters
        ----------
        blocks : sequence of Block
        read : sequence of sequence of ndarray
            The arrays of these blocks, for each of the scores that native code reads.

        Returns
        -------
        bool
            False: they need another object.

        Raises
        ------
        ValueError
            For scores that are no numbers.
        """
        if not self.lasting or self.binding.version != registry.default().version:
            return False
        return all(map(again, self.sheets, repeat(blocks), read))


def _sheet_beside(given: Scores, scores: Scores, binding: Any) -> Any:
    """Return a sheet of scores that must be of the same examples as others."""
    first, second = given.examples, scores.examples
    if first is not second and _sizes_of(first) != _sizes_of(second):
        raise ValueError(
            "other: its examples have other sizes or graphs than those of the first scores; "
            "expected scores of the same examples"
        )
    return sheet_of(given, binding)


def _sizes_of(examples: Any) -> Any:
    """Return sizes and graphs in a form that can be compared."""
    if examples is None:
        return None
    topology = examples.topology.get("identity", examples.topology)
    offsets = examples.offsets, examples.edge_offsets, examples.label_offsets
    return [fingerprint(one) for one in (*offsets, topology)]
