"""The local polytope of the graphs of a set of examples, one variable per state and joint state."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp import LocalPolytopes


class GraphPolytopes(LocalPolytopes):
    """Node and edge marginals; one graph for all examples is one polytope.

    Parameters
    ----------
    shape : GraphShape
    layout : PartLayout
        Layout of the same examples.
    """

    def __init__(self, shape: Any, layout: Any):
        super().__init__(exact=bool(shape.forest))
        self.shape, self.layout = shape, layout

    def key(self, i: int) -> Any:
        """Return the key that examples with the same graph share."""
        states, ends = self.shape.graph_of(i)
        return states.tobytes(), ends.tobytes()

    def graph(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of states and edges of an example."""
        return self.shape.graph_of(i)

    def parts(self, i: int) -> np.ndarray:
        """Return the part of each variable, in theta; -1 for none."""
        # Scores that number the parts show each variable's part; without a part it scores 0.
        size = self.layout.sizes(i)[0]
        _, _, unary, pair = self.shape.model(i, np.arange(1.0, size + 1))
        return np.concatenate([unary, pair]).astype(np.int64) - 1
