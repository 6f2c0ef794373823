"""Second derivatives: products with Jacobians of marginals, the Hessians of smooth surrogates."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..surrogates._fenchel_young import FenchelYoung
from ._loops import derivatives
from .binding import Binding, binding_of
from .scores import Scores
from .values import answer_of, checked_weights, flat_labels, sheet_of


def hessian_product(
    space: Any,
    scores: Scores,
    directions: Scores,
    labels: Any,
    surrogate: Any = "crf",
    loss: Any = "hamming",
    *,
    oracle: Any = None,
    weights: Any = None,
    n_jobs: int | None = None,
) -> Scores:
    """Return Hessians of a smooth surrogate by the scores times a direction.

    Parameters
    ----------
    space : Space
    scores : Scores
    directions : Scores
        In arrays like those of ``scores``; blocks that are None are 0.
    labels : ndarray of int of shape (size of all labels,)
        True labels, encoded by the space, concatenated.
    surrogate : str or surrogate object, default="crf"
        A smooth one; as of :func:`value_and_gradient`, as are the others.
    loss : str or loss object, default="hamming"
        "auto" is that of the space, its ``default_loss``.
    oracle : str or structsolve.lp.Backend, optional
    weights : array of shape (n,), optional
    n_jobs : int, optional

    Returns
    -------
    Scores
        ``weights[i] * H_i direction``, in arrays like those of ``scores``; for shared blocks the
        sum over the examples.

    Raises
    ------
    ValueError, TypeError
        See :func:`value_and_gradient`; also if the surrogate is not smooth, or the structure's
        marginals have no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.batch import Scores, hessian_product, score_space
    >>> rows = score_space("multiclass", 2)
    >>> scores = Scores(np.zeros((1, 2)), examples=rows.pack_sizes(1))
    >>> hessian_product(rows, scores, Scores(np.array([[1.0, 0.0]])), np.array([0])).node.tolist()
    [[0.25, -0.25]]
    """
    run = partial(
        jacobian_product, space, scores, directions, weights=weights, each=False, n_jobs=n_jobs
    )
    bind = partial(smooth_projection, space, scores, labels, surrogate, loss, oracle)
    return binding_of(space, scores).named(run, bind)


def smooth_projection(
    space: Any, scores: Scores, labels: Any, surrogate: Any, loss: Any, oracle: Any = None
) -> Any:
    """Return the projection that is a surrogate's gradient, if it has derivatives.

    Parameters
    ----------
    space, scores, labels, surrogate, loss, oracle
        See :func:`hessian_product`.

    Returns
    -------
    Projection

    Raises
    ------
    ValueError
        Where there is none.
    """
    binding = binding_of(space, scores)
    bound: Any = binding.surrogate(surrogate, loss, oracle, flat_labels(labels))
    smooth = type(bound) is FenchelYoung
    if smooth and bound.projection.has_derivative:
        return bound.projection
    name = surrogate if isinstance(surrogate, str) else getattr(surrogate, "name", surrogate)
    why = "its marginals have no derivative here" if smooth else "the surrogate is not smooth"
    raise ValueError(
        f"structure {space.structure.name!r} with surrogate {name!r} has no second derivatives: "
        f"{why} (surrogate='crf' has them if the structure has marginals)"
    )


def jacobian_product(
    space: Any,
    scores: Scores,
    directions: Scores,
    projection: Any,
    *,
    weights: Any = None,
    each: bool = False,
    n_jobs: int | None = None,
) -> Scores:
    """Return Jacobians of marginals, which are symmetric, times directions.

    Parameters
    ----------
    space : Space
    scores : Scores
    directions : Scores
        Shared blocks may have one array for all examples, or one for each.
    projection : str or Projection
    weights : ndarray of shape (n,), optional
        Factors of the examples.
    each : bool, default=False
        The answer's shared blocks have one array for each example; else they are sums.
    n_jobs : int, optional

    Returns
    -------
    Scores

    Raises
    ------
    ValueError, TypeError
        See :func:`structsolve.batch.marginals_vjp`.
    """
    binding: Binding = binding_of(space, scores)
    bound = binding.projection(projection) if isinstance(projection, str) else projection
    if not bound.has_derivative:
        raise ValueError(
            f"structure {space.structure.name!r} has no derivative of its projection "
            f"{projection!r}: its marginals are not differentiable here"
        )
    if weights is not None:
        weights = checked_weights(weights, binding.layout.n)
    source, along = sheet_of(scores, binding), sheet_of(directions, binding, scores)
    answer, target = answer_of(scores, source, binding, each)
    rooms, bounds = binding.rooms, binding.bounds
    run: dict[str, Any] = {"bounds": bounds, "n_jobs": n_jobs, "rooms": rooms}
    derivatives(source, along, target, bound, weights=weights, **run)
    return answer
