"""Second derivatives of layers: products with Hessians if available, else errors.

Backward passes with ``create_graph=True`` use this module.  Missing derivatives raise errors and
are never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ..batch.products import jacobian_product
from .layer import Given


class Gradient(torch.autograd.Function):
    """``sum_i factor_i g_i(scores)`` of the gradients of a loss: linear in the factors."""

    @staticmethod
    def forward(
        ctx: Any,
        layer: Any,
        given: Given,
        labels: np.ndarray,
        known: Any,
        factor: torch.Tensor,
        *tensors: torch.Tensor,
    ) -> Any:
        """Return the gradients; ``known`` are those of the reduced loss, or None."""
        ctx.layer, ctx.given, ctx.labels = layer, given, labels
        ctx.save_for_backward(factor, *tensors)
        if known is not None and not factor.ndim:
            return given.scaled(known, factor)
        _, gradient = layer.value(given, labels, layer.weights(given, factor))
        return tuple(given.tensors_of(gradient))

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        """Multiply by Hessians, or raise."""
        layer, given, labels = ctx.layer, ctx.given, ctx.labels
        projection = layer.projection(given, labels)
        factor, *tensors = ctx.saved_tensors
        by_factor = None
        if ctx.needs_input_grad[4]:
            by_factor = _Along.apply(layer, given, labels, projection, *directions, *tensors)
        hessian = Jacobian(given, projection, layer.n_jobs, layer.no_third, layer.weights)
        by_tensors = hessian.times(directions, tensors, factor)
        return None, None, None, None, by_factor, *by_tensors


class _Along(torch.autograd.Function):
    """``<g_i(scores), direction>`` of each example, reduced as the loss is."""

    @staticmethod
    def forward(
        ctx: Any, layer: Any, given: Given, labels: np.ndarray, projection: Any, *both: torch.Tensor
    ) -> Any:
        ctx.layer, ctx.given, ctx.labels, ctx.projection = layer, given, labels, projection
        ctx.save_for_backward(*both)
        _, gradient = layer.value(given, labels, None, each=True)
        directions = both[: len(both) // 2]
        return layer.reduced(given.product(directions, given.tensors_of(gradient)))

    @staticmethod
    def backward(ctx: Any, factor: torch.Tensor) -> Any:
        layer, given, both = ctx.layer, ctx.given, ctx.saved_tensors
        directions, tensors = both[: len(both) // 2], both[len(both) // 2 :]
        by_directions = Gradient.apply(layer, given, ctx.labels, None, factor, *tensors)
        hessian = Jacobian(given, ctx.projection, layer.n_jobs, layer.no_third, layer.weights)
        by_tensors = hessian.times(directions, tensors, factor)
        return None, None, None, None, *by_directions, *by_tensors


@dataclass(frozen=True)
class Jacobian:
    """Jacobians of the marginals of a batch, which are symmetric.

    Parameters
    ----------
    given : Given
    projection : str or Projection
    n_jobs : int or None
    why : str
        Error message of a derivative by the scores, or by the factor.
    weigh : callable, optional
        Function of ``(given, factor)`` that returns the factors of the examples as an array.
    each : bool, default=False
        Shared blocks of products have one array for each example.
    """

    given: Given
    projection: Any
    n_jobs: int | None
    why: str
    weigh: Any = None
    each: bool = False

    def times(self, directions: Any, tensors: Any, factor: torch.Tensor | None = None) -> Any:
        """Return products: linear in the directions.

        Parameters
        ----------
        directions, tensors : sequence of Tensor
        factor : Tensor, optional

        Returns
        -------
        tuple of Tensor
        """
        if torch.is_grad_enabled():
            tensors = sealed(self.why, tensors)
            if factor is not None:
                (factor,) = sealed(self.why, [factor])
        return _Product.apply(self, factor, *directions, *tensors)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, jacobian: Jacobian, factor: torch.Tensor | None, *both: torch.Tensor
    ) -> Any:
        directions, tensors = both[: len(both) // 2], both[len(both) // 2 :]
        # If directions have shared blocks for each example, so has the transpose.
        each = any(d.ndim > t.ndim for d, t in zip(directions, tensors))
        ctx.transpose, ctx.factor = replace(jacobian, each=each), factor
        ctx.save_for_backward(*tensors)
        given = jacobian.given
        answer = jacobian_product(
            given.space,
            given.scores,
            given.scores_of(directions),
            jacobian.projection,
            weights=None if factor is None else jacobian.weigh(given, factor),
            each=jacobian.each,
            n_jobs=jacobian.n_jobs,
        )
        return tuple(given.tensors_of(answer))

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        tensors = ctx.saved_tensors
        by_directions = ctx.transpose.times(directions, tensors, ctx.factor)
        return None, None, *by_directions, *[torch.zeros_like(t) for t in tensors]


def once(why: str, tensors: Any) -> Any:
    """Return tensors unchanged, for a layer whose gradient is a constant to autograd.

    Parameters
    ----------
    why : str
        Message of a second derivative.
    tensors : sequence of Tensor

    Returns
    -------
    tuple of Tensor
    """
    return _Once.apply(why, *tensors)


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, why: str, *tensors: torch.Tensor) -> Any:
        ctx.why = why
        ctx.save_for_backward(*tensors)
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        if not torch.is_grad_enabled():
            return None, *directions
        return None, *sealed(ctx.why, directions, ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        return tuple(None if t is None else t.view_as(t) for t in tangents)


def sealed(why: str, tensors: Any, sources: Any = ()) -> Any:
    """Return tensors whose derivatives raise.

    Parameters
    ----------
    why : str
        Their message.
    tensors : sequence of Tensor
    sources : sequence of Tensor
        Further tensors that they depend on, as gradients do.

    Returns
    -------
    tuple of Tensor
    """
    return _Sealed.apply(why, len(tensors), *tensors, *sources)


class _Sealed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, why: str, n: int, *tensors: torch.Tensor) -> Any:
        ctx.why = why
        return tuple(t.view_as(t) for t in tensors[:n])

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        raise NotImplementedError(ctx.why)
