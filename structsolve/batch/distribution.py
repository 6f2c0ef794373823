"""Numbers of the distributions ``p(y) ~ exp <theta, mu(y)>`` of labels at given part scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._distribution import least_loss_of
from .answers import argmax, k_best
from .binding import binding_of
from .numbers import costly, gibbs, number
from .scores import Scores
from .values import sheet_of


def log_partition(space: Any, scores: Scores, *, n_jobs: int | None = None) -> np.ndarray:
    """Return ``log sum_y exp <theta, mu(y)>`` of every example.

    Parameters
    ----------
    space : Space
    scores : Scores
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    ValueError, TypeError
        See :func:`value_and_gradient`; also if the structure has no sum over its labels, or every
        label of an example is forbidden.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, log_partition, score_space
    >>> chain = score_space("chain", 2)
    >>> scores = Scores(np.zeros((4, 2)), examples=chain.pack_sizes([3, 1]))
    >>> np.exp(log_partition(chain, scores)).round(6).tolist()
    [8.0, 2.0]
    """
    return number("log_partition", space, scores, n_jobs=n_jobs)


def log_proba(space: Any, scores: Scores, labels: Any, *, n_jobs: int | None = None) -> np.ndarray:
    """Return the log-probability of one label of every example.

    Parameters
    ----------
    space : Space
    scores : Scores
    labels : ndarray of int of shape (size of all labels,)
        Encoded by the space, concatenated.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of float64 of shape (n,)
        -inf for a label that scores -inf, or is none of the space (heads that are no tree).

    Raises
    ------
    ValueError, TypeError
        See :func:`log_partition`; also for labels of another shape, and unknown states.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, log_proba, score_space
    >>> trees = score_space("dependency")
    >>> scores = Scores(np.zeros(8), examples=trees.pack_sizes([2, 2]))
    >>> np.exp(log_proba(trees, scores, np.array([0, 1, 2, 1]))).round(6).tolist()   # a cycle
    [0.5, 0.0]
    """
    return number("log_proba", space, scores, labels=labels, n_jobs=n_jobs)


def most_probable(
    space: Any, scores: Scores, k: int, *, n_jobs: int | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the k best labels of every example with their log-probabilities, best first.

    Parameters
    ----------
    space : Space
    scores : Scores
    k : int
    n_jobs : int, optional
        Threads.

    Returns
    -------
    labels : list of ndarray of int32 of shape (how many there are, size of the label)
        At most k.
    log_probas : list of ndarray of float64

    Raises
    ------
    ValueError, TypeError
        See :func:`log_partition` and :func:`k_best`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, most_probable, score_space
    >>> rows = score_space("multiclass", 3)
    >>> scores = Scores(np.log([[0.2, 0.5, 0.3]]), examples=rows.pack_sizes(1))
    >>> labels, logs = most_probable(rows, scores, 2)
    >>> labels[0].tolist(), np.exp(logs[0]).round(6).tolist()
    ([[1], [2]], [0.5, 0.3])
    """
    totals = log_partition(space, scores, n_jobs=n_jobs)
    labels, values = k_best(space, scores, k, n_jobs=n_jobs)
    return labels, [np.minimum(own - total, 0) for own, total in zip(values, totals)]


def entropy(space: Any, scores: Scores, *, n_jobs: int | None = None) -> np.ndarray:
    """Return the entropy ``-sum_y p(y) log p(y)`` of every example, in nats.

    Parameters
    ----------
    space : Space
    scores : Scores
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    ValueError, TypeError
        See :func:`log_partition`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, entropy, score_space
    >>> rows = score_space("multiclass", 4)
    >>> scores = Scores(np.zeros((1, 4)), examples=rows.pack_sizes(1))
    >>> np.exp(entropy(rows, scores)).round(6).tolist()
    [4.0]
    """
    return number("entropy", space, scores, n_jobs=n_jobs)


def cross_entropy(
    space: Any, scores: Scores, other: Scores, *, n_jobs: int | None = None
) -> np.ndarray:
    """Return the cross-entropy ``-sum_y p(y) log q(y)`` of every example, in nats.

    Parameters
    ----------
    space : Space
    scores, other : Scores
        Those of p and of q, of the same examples.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of float64 of shape (n,)
        inf where q gives probability 0 to a label that p does not.

    Raises
    ------
    ValueError, TypeError
        See :func:`log_partition`; also if the examples differ.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, cross_entropy, score_space
    >>> rows = score_space("multiclass", 2)
    >>> p, q = (Scores(np.array([x]), examples=rows.pack_sizes(1)) for x in ([0.0, 0], [0.0, 2]))
    >>> cross_entropy(rows, p, q).round(3).tolist()     # log(1 + exp(2)) - 1
    [1.127]
    """
    return number("cross_entropy", space, scores, other=other, n_jobs=n_jobs)


def kl_divergence(
    space: Any, scores: Scores, other: Scores, *, n_jobs: int | None = None
) -> np.ndarray:
    """Return the Kullback-Leibler divergence ``sum_y p(y) log(p(y) / q(y))`` of every example.

    Parameters
    ----------
    space : Space
    scores, other : Scores
        Those of p and of q, of the same examples.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    ValueError, TypeError
        See :func:`cross_entropy`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, kl_divergence, score_space
    >>> rows = score_space("multiclass", 2)
    >>> p, q = (Scores(np.array([x]), examples=rows.pack_sizes(1)) for x in ([0.0, 0], [0.0, 2]))
    >>> kl_divergence(rows, p, q).round(3).tolist(), kl_divergence(rows, p, p).tolist()
    ([0.434], [0.0])
    """
    return number("kl_divergence", space, scores, other=other, n_jobs=n_jobs)


def expected_loss(
    space: Any, scores: Scores, labels: Any, loss: Any = "hamming", *, n_jobs: int | None = None
) -> np.ndarray:
    """Return the expected loss of one label of every example: ``sum_y p(y) loss(label, y)``.

    Parameters
    ----------
    space : Space
    scores : Scores
    labels : ndarray of int of shape (size of all labels,)
        Predictions, encoded by the space, concatenated.
    loss : str or loss object, default="hamming"
        Linear in the parts of either label, or 0/1.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    ValueError, TypeError
        See :func:`log_partition`; also for labels outside of the space, and other losses, naming
        those that fit.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, expected_loss, score_space
    >>> chain = score_space("chain", 2)
    >>> scores = Scores(np.zeros((3, 2)), examples=chain.pack_sizes([3]))
    >>> expected_loss(chain, scores, np.array([0, 0, 1])).round(6).tolist()
    [1.5]
    """
    return number("expected_loss", space, scores, labels=labels, loss=loss, n_jobs=n_jobs)


def least_loss(
    space: Any,
    scores: Scores,
    loss: Any = "hamming",
    *,
    oracle: Any = None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the label of least expected loss of every example, and this loss.

    Parameters
    ----------
    space : Space
    scores : Scores
        Parts that score -inf are forbidden here, too.
    loss : str or loss object, default="hamming"
        See :func:`expected_loss`.
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    labels : ndarray of int32 of shape (size of all labels,)
        Encoded by the space, concatenated.
    losses : ndarray of float64 of shape (n,)

    Raises
    ------
    ValueError, TypeError
        See :func:`expected_loss`.

    Examples
    --------
    The best of three labels need not have the class that is most probable for its first node:

    >>> import numpy as np
    >>> from structsolve.batch import Scores, argmax, least_loss, score_space
    >>> chain = score_space("chain", 2)
    >>> table = np.log([[0.4, 1e-9], [0.3, 0.3]])
    >>> scores = Scores(np.zeros((2, 2)), {"transition": table}, examples=chain.pack_sizes([2]))
    >>> argmax(chain, scores)[0].tolist(), least_loss(chain, scores)[0].tolist()
    ([0, 0], [1, 0])
    """
    binding = binding_of(space, scores)
    bound, projection = costly(binding, loss), gibbs(binding)
    if not bound.has_costs:  # 0/1: the most probable label
        labels, values, _ = argmax(space, scores, oracle=oracle, n_jobs=n_jobs)
        totals = log_partition(space, scores, n_jobs=n_jobs)
        return labels, 0.0 - np.expm1(np.minimum(values - totals, 0))  # large scores are rounded
    labels = np.zeros(int(binding.examples.label_offsets[-1]), dtype=np.int32)
    values = np.empty(binding.layout.n)
    operators = sheet_of(scores, binding), binding.oracle(oracle), projection, bound
    least_loss_of(*operators, labels, values, n_jobs=n_jobs, rooms=binding.rooms)
    return labels, values
