"""Labels and marginals at given part scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.params import check_count
from ._loops import best_of, drawn, labels_of, marginals_of
from .binding import binding_of
from .products import jacobian_product
from .repeated import Repeated
from .scores import Scores
from .values import answer_of, sheet_of

#: Limit of labels per example: memory is allocated for all of them at once.
MOST_LABELS = 1_000_000


def argmax(
    space: Any, scores: Scores, *, oracle: Any = None, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best label of every example.

    Parameters
    ----------
    space : Space
    scores : Scores
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    labels : ndarray of int32 of shape (size of all labels,)
        Encoded by the space, concatenated.
    values : ndarray of float64 of shape (n,)
        Scores of the labels; -inf where no label is allowed.
    bounds : ndarray of float64 of shape (n,)
        Upper bounds of the score of any label; the values, where the oracle is exact.

    Raises
    ------
    ValueError, TypeError
        See :func:`value_and_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, argmax, score_space
    >>> trees = score_space("dependency")
    >>> arcs = np.array([3.0, 1.0, 0.0, 2.0])        # (0, 1), (2, 1), (0, 2), (1, 2)
    >>> labels, values, bounds = argmax(trees, Scores(arcs, examples=trees.pack_sizes([2])))
    >>> labels.tolist(), values.tolist()
    ([0, 1], [5.0])
    """
    return Best(space, scores, oracle).labels(n_jobs)


class Best(Repeated):
    """The best label of every example at given scores.

    Parameters
    ----------
    space, scores, oracle
        See :func:`argmax`.
    """

    def __init__(self, space: Any, scores: Scores, oracle: Any = None):
        super().__init__(space, scores)
        self.lasting = self.lasting and (oracle is None or isinstance(oracle, str))
        self.oracle = self.binding.oracle(oracle)

    def labels(
        self, n_jobs: int | None, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return labels, values and bounds; see :func:`argmax`.

        Parameters
        ----------
        n_jobs : int or None
        out : ndarray of int32, optional
            For the labels.

        Returns
        -------
        labels, values, bounds : ndarray
        """
        binding = self.binding
        values, bounds = np.empty(self.n), np.empty(self.n)
        if out is None:
            out = np.empty(int(binding.examples.label_offsets[-1]), np.int32)
        out.fill(0)
        labels_of(self.sheets[0], self.oracle, out, values, bounds, n_jobs, binding.rooms)
        return out, values, bounds

    def allowed(self, n_jobs: int | None, out: np.ndarray | None = None) -> np.ndarray:
        """Return labels; refuse an example all of whose labels score -inf.

        Parameters
        ----------
        n_jobs, out
            See :meth:`labels`.

        Returns
        -------
        ndarray of int32
        """
        labels, _, bounds = self.labels(n_jobs, out)
        if -np.inf in bounds:  # by the bound: inexact oracles may miss allowed labels
            raise ValueError(
                f"example {np.flatnonzero(bounds == -np.inf)[0]}: every label is forbidden (its "
                "score is -inf), so there is no best one; allow at least one label"
            )
        return labels


def best_labels(
    space: Any, scores: Scores, *, oracle: Any = None, n_jobs: int | None = None
) -> np.ndarray:
    """Return the labels of :func:`argmax`; refuse an example all of whose labels score -inf.

    For layers, which return neither values nor bounds.

    Parameters
    ----------
    space, scores, oracle, n_jobs
        See :func:`argmax`.

    Returns
    -------
    ndarray of int32 of shape (size of all labels,)

    Raises
    ------
    ValueError, TypeError
        See :func:`argmax`; also if every label of an example is forbidden.
    """
    return Best(space, scores, oracle).allowed(n_jobs)


def marginals(
    space: Any, scores: Scores, projection: str = "entropy", *, n_jobs: int | None = None
) -> tuple[Scores, np.ndarray]:
    """Return the marginals of every example: ``argmax_mu G(mu) + <theta, mu>``.

    Parameters
    ----------
    space : Space
    scores : Scores
    projection : {"entropy", "euclidean"} or str, default="entropy"
        G: the entropy of labels (marginals of a Gibbs distribution), minus half the square of the
        node parts (SparseMAP), or another of a plugin.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    marginals : Scores
        In arrays like those of ``scores``, but given shared blocks have one array for each example,
        of shape (n, ...).
    values : ndarray of float64 of shape (n,)
        The maximum; for "entropy" ``log sum_y exp <theta, mu(y)>``.

    Raises
    ------
    ValueError, TypeError
        See :func:`value_and_gradient`; also if the structure has no such projection.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, marginals, score_space
    >>> rows = score_space("multiclass", 2)
    >>> scores = Scores(np.array([[0.0, np.log(3)]]), examples=rows.pack_sizes(1))
    >>> answer, values = marginals(rows, scores)
    >>> answer.node.round(6).tolist(), np.exp(values).round(6).tolist()
    ([[0.25, 0.75]], [4.0])
    """
    binding = binding_of(space, scores)
    bound, n = binding.projection(projection), binding.layout.n
    source, values = sheet_of(scores, binding), np.empty(n)
    answer, target = answer_of(scores, source, binding, True)
    marginals_of(source, target, bound, values, n_jobs, binding.rooms)
    return answer, values


def marginals_vjp(
    space: Any,
    scores: Scores,
    directions: Scores,
    projection: str = "entropy",
    *,
    n_jobs: int | None = None,
) -> Scores:
    """Return the gradient by the scores, from a gradient by the marginals.

    Parameters
    ----------
    space : Space
    scores : Scores
    directions : Scores
        Gradient by the marginals, in arrays as :func:`marginals` gives them; blocks that are None
        are 0.
    projection : str, default="entropy"
        See :func:`marginals`.
    n_jobs : int, optional
        Threads; results do not depend on it, bit for bit.

    Returns
    -------
    Scores
        ``J_i' direction_i`` with the Jacobian ``J_i = d mu_i / d theta_i``, in arrays like those of
        ``scores``; for shared blocks the sum over the examples.

    Raises
    ------
    ValueError, TypeError
        See :func:`marginals`; also if the projection has no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, marginals_vjp, score_space
    >>> rows = score_space("multiclass", 2)
    >>> scores = Scores(np.zeros((1, 2)), examples=rows.pack_sizes(1))
    >>> marginals_vjp(rows, scores, Scores(np.array([[1.0, 0.0]]))).node.tolist()
    [[0.25, -0.25]]
    """
    return jacobian_product(space, scores, directions, projection, n_jobs=n_jobs)


def k_best(
    space: Any, scores: Scores, k: int, *, n_jobs: int | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the k best labels of every example, best first.

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
    values : list of ndarray of float64
        Scores of the labels; a single one of -inf where no label is allowed.

    Raises
    ------
    ValueError, TypeError
        See :func:`value_and_gradient`; also if the structure has no k best labels.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, k_best, score_space
    >>> rows = score_space("multiclass", 3)
    >>> labels, values = k_best(rows, Scores(np.eye(1, 3), examples=rows.pack_sizes(1)), 2)
    >>> labels[0].tolist(), values[0].tolist()
    ([[0], [1]], [1.0, 0.0])
    """
    check_count("k", k, MOST_LABELS)
    binding = binding_of(space, scores)
    bound = binding.kbest()
    sheet = sheet_of(scores, binding)
    return best_of(sheet, bound, k, n_jobs, binding.rooms)


def samples(
    space: Any, scores: Scores, n: int = 1, random_state: Any = None, *, n_jobs: int | None = None
) -> np.ndarray:
    """Return labels drawn from ``p(y) ~ exp <theta, mu(y)>``, for every example.

    Parameters
    ----------
    space : Space
    scores : Scores
    n : int, default=1
        Labels per example.
    random_state : int, Generator or None, optional
        Equal numbers give equal labels, with any number of threads.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of int32 of shape (n, size of all labels)
        As the space encodes them, one example after the other.

    Raises
    ------
    ValueError, TypeError
        See :func:`value_and_gradient`; also if the structure has no samples.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, samples, score_space
    >>> rows = score_space("multiclass", 2)
    >>> scores = Scores(np.array([[0.0, 1.0]]), examples=rows.pack_sizes(1))
    >>> float(samples(rows, scores, 100_000, random_state=0).mean().round(2))    # 1 / (1 + exp(-1))
    0.73
    """
    check_count("n", n, MOST_LABELS)
    binding = binding_of(space, scores)
    bound = binding.projection("entropy")
    if not bound.has_samples:
        raise ValueError(
            f"structure {space.structure.name!r} cannot draw labels: its projection 'entropy' has "
            "no samples"
        )
    try:
        seed = int(np.random.default_rng(random_state).integers(2**63))
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state is {random_state!r}, expected None, an integer >= 0 or a Generator"
        ) from None
    sheet = sheet_of(scores, binding)
    return drawn(sheet, bound, n, seed, n_jobs, binding.rooms)
