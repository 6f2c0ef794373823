"""Parts of labels in the form of a batch's scores."""

from __future__ import annotations

from typing import Any

from ._encoding import write_parts
from ._loops import check_labels
from .binding import binding_of
from .scores import Scores
from .values import answer_of, flat_labels, sheet_of


def encode(space: Any, scores: Scores, labels: Any) -> Scores:
    """Return the parts ``mu(y)`` of one label of every example, which scores ``<theta, mu(y)>``.

    Parameters
    ----------
    space : Space
    scores : Scores
        Its arrays determine the form of the result.
    labels : ndarray of int32 of shape (size of all labels,)
        Encoded by the space, concatenated.

    Returns
    -------
    Scores
        In arrays like those of ``scores``, but given shared blocks have one array for each example,
        of shape (n, ...).

    Raises
    ------
    ValueError, TypeError
        See :func:`value_and_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, encode, score_space
    >>> chain = score_space("chain", 2)
    >>> scores = Scores(np.zeros((2, 2)), examples=chain.pack_sizes([2]))
    >>> encode(chain, scores, np.array([1, 0], np.int32)).node.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    binding = binding_of(space, scores)
    bound = binding.parts()
    labels = flat_labels(labels)
    check_labels(binding.layout, labels, bound.n_states)
    answer, target = answer_of(scores, sheet_of(scores, binding), binding, True)
    write_parts(target, bound, labels)
    return answer
