"""Training on marginals in place of labels: their parts, for smooth surrogates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structure.calls import project
from ._given_parts import GivenParts

# Where packed examples hold the rows of their nodes.
KEY = "marginals"
# Scores of impossible classes; their marginals are below what counts.
_LEAST, _NONE = 1e-300, 1e-200
# Marginals that the structure's labels cannot have differ by more.
_TOLERANCE = 1e-6


def holds_marginals(examples: Any) -> bool:
    """Return whether packed examples have marginals in place of labels.

    Parameters
    ----------
    examples : Examples or None

    Returns
    -------
    bool
    """
    return examples is not None and KEY in examples.topology


def given_parts(task: Any) -> GivenParts:
    """Return the parts of the distribution in which nodes have the given marginals.

    Of all such distributions it is the one of most entropy: nodes are independent.  Its parts are
    the marginals that the structure's own projection has at the logarithms as scores.

    Parameters
    ----------
    task : structsolve.surrogates.task.Task

    Returns
    -------
    GivenParts

    Raises
    ------
    ValueError
        If no distribution over the structure's labels has such marginals; it names the example.
    """
    projection, layout = task.projection("entropy"), task.layout
    rows, offsets = task.examples.topology[KEY], task.examples.offsets.tolist()
    logs = np.log(np.maximum(rows, _LEAST))
    first, width, n_classes = layout.starts["node"], layout.node_size, rows.shape[1]
    starts, indices, values = [0], [], []
    for i in range(layout.n):
        own = slice(offsets[i], offsets[i + 1])
        theta = np.zeros(layout.sizes(i)[0])
        nodes = slice(first, first + width * (own.stop - own.start))
        theta[nodes].reshape(-1, width)[:, :n_classes] = logs[own]
        marginals = project(projection, i, theta)[0]
        made = marginals[nodes].reshape(-1, width)[:, :n_classes]
        wrong = np.abs(made - rows[own]).max(axis=1, initial=0) > _TOLERANCE
        if wrong.any():
            v = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"y, example {i}, node {v}: found the marginals {rows[own][v].round(4).tolist()}, "
                f"which no labels of structure {task.space.structure.name!r} with independent "
                f"nodes have, expected some near {made[v].round(4).tolist()}"
            )
        marginals[nodes].reshape(-1, width)[:, :n_classes] = rows[own]
        (index,) = np.nonzero(marginals > _NONE)
        indices.append(index)
        values.append(marginals[index])
        starts.append(starts[-1] + len(index))
    index = np.concatenate([*indices, []]).astype(np.int32)
    return GivenParts(task.parts, np.array(starts), index, np.concatenate([*values, []]))
