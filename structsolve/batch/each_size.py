"""Operators bound to one example of each size: batches of new sizes then need no others."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import registry
from ..examples.packed import Examples
from ..lp.ask import ask_oracle
from ..operators import Oracle
from ..structure.ask import make_layout
from ..structure.node_losses import NodeLoss
from ..surrogates._fenchel_young import FenchelYoung
from ..surrogates._margin import MarginRescaling
from ..surrogates.base import Surrogate
from ..surrogates.fenchel_young import CRF
from ..surrogates.margin import Margin
from ..surrogates.task import Asked, Task
from ._passes import EachSize
from ._sheets import extremes

# Nodes of the longest example, and its part scores: operators are bound in a small part of the time
# that larger ones take, and scratch memory is that of the longest.
LONGEST, MOST_SCORES = 256, 1 << 16


class OfEachSize:
    """Operators of a structure that reads nothing of examples but their sizes.

    Threads share them, like those of batches that come again; if two bind one, either will do.

    Parameters
    ----------
    space : Space
    """

    def __init__(self, space: Any):
        self.space, self.longest = space, LONGEST
        self.examples = EachSize(np.cumsum(np.arange(LONGEST + 1)))
        self._bound: dict[Any, Any] = {}

    def oracle(self) -> Oracle | None:
        """Return the oracle for prediction.

        Returns
        -------
        Oracle, or None
            None: a batch needs its own.
        """
        if "oracle" not in self._bound:
            self._bound["oracle"] = _or_none(self._oracle)
        return self._bound["oracle"]

    def _oracle(self) -> Oracle | None:
        bound: Oracle = ask_oracle(self.space)(make_layout(self.space, self.examples))
        return bound if bound.layout.examples is self.examples else None

    def surrogate(self, surrogate: str, loss: str) -> tuple[int, Surrogate] | None:
        """Return a surrogate, whose loss refuses no labels that the structure has.

        Parameters
        ----------
        surrogate, loss : str

        Returns
        -------
        n_states : int
            Labels are less.
        surrogate : Surrogate
            Instead of both None: a batch needs its own.
        """
        key = surrogate, loss
        if key not in self._bound:
            self._bound[key] = _or_none(lambda: self._surrogate(surrogate, loss))
        bound: tuple[int, Surrogate] | None = self._bound[key]
        return bound

    def _surrogate(self, surrogate: str, loss: str) -> tuple[int, Surrogate] | None:
        own = registry.default().make("surrogates", surrogate)
        if type(own) not in (CRF, Margin):  # others may have a memory of examples, or read labels
            return None
        layout = make_layout(self.space, self.examples, training=True)
        task = Task(self.space, self.examples, layout=layout, asked=Asked(self.space, loss))
        bound = own.bind(task)
        fits = type(bound) in (FenchelYoung, MarginRescaling) and type(task.loss) is NodeLoss
        return (task.parts.n_states, bound) if fits and bound.layout is layout else None


def _or_none(bind: Any) -> Any:
    """Return an operator, or None if it is not for examples of each size."""
    try:
        return bind()
    except Exception:  # that of the batch raises what concerns it
        return None


def of_each_size(space: Any, examples: Examples, kept: Any) -> OfEachSize | None:
    """Return the operators of each size, if examples differ by their sizes alone.

    Parameters
    ----------
    space : Space
    examples : Examples
    kept : Kept

    Returns
    -------
    OfEachSize, or None
    """
    if (
        examples.topology
        or examples.edge_offsets is not None
        or examples.label_offsets is not examples.offsets
    ):
        return None
    each: OfEachSize | None = kept.once("each size", lambda: _made(space))
    if each is None:
        return None
    least, largest = extremes(examples.offsets)
    return each if least > 0 and largest <= each.longest else None


def _made(space: Any) -> OfEachSize | None:
    layout = space.layout
    scores = layout.shared_size + LONGEST * layout.node_size
    alike = space.plain_rows and not space.structure.single_node
    return OfEachSize(space) if alike and scores <= MOST_SCORES else None
