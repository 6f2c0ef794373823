"""Marginals of a batch of scores, differentiable."""

from __future__ import annotations

from typing import Any

import torch

from ..batch import marginals
from . import loss_operators, operators
from ._second import Jacobian
from .device import marginals_on_device, on_device_or_none
from .layer import Backward, Given, Layer


class Marginals(Layer):
    """Differentiable marginals of parts, of a Gibbs distribution or of SparseMAP.

    Parameters
    ----------
    structure : str or Structure
    projection : {"entropy", "euclidean"} or str, default="entropy"
        "entropy": the probabilities of parts under ``p(y) ~ exp(score of y)``.  "euclidean":
        SparseMAP (Niculae et al. 2018), most of which are 0.
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    n_jobs : int, optional
        Threads.

    Notes
    -----
    The backward pass multiplies by the Jacobian: for "entropy", the covariance of parts, by a
    second pass of sums; for "euclidean" by the active set.  Second derivatives raise.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import Marginals
    >>> scores = torch.zeros(1, 2, 2, requires_grad=True)
    >>> tables = {"node": scores, "transition": torch.tensor([[0.0, 0.0], [0.0, 2.0]]).log()}
    >>> Marginals("chain")(tables)["node"][0, 0].tolist()
    [0.0, 1.0]
    """

    def __init__(
        self,
        structure: Any,
        projection: str = "entropy",
        classes: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, n_jobs)
        self.projection = projection

    def forward(
        self,
        scores: Any,
        lengths: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> Any:
        """Return the marginals of a batch.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
            See :class:`StructuredLoss`, also for the others.
        lengths : Tensor, array or list of int, optional
        examples : Examples, optional
        mask : Tensor or array of bool or int, optional
            Replaces lengths; of the shape of padded labels.
        **graphs : object

        Returns
        -------
        Tensor or dict of str to Tensor
            In the form of the scores, but shared blocks have one array for each example. 0 beyond
            the end of an example.

        Raises
        ------
        ValueError, TypeError
            See :class:`StructuredLoss`; also if the structure has no such projection.
        """
        if operators.traced(scores, lengths, mask):
            answer = self.call(loss_operators.marginals, scores, lengths, mask, examples, graphs)
            return self.in_form(scores, answer)
        if self.projection == "entropy" and examples is None and not graphs:
            named = self.named(scores)
            batch = on_device_or_none(self, named, lengths, mask)
            here = None if batch is None else marginals_on_device(batch, named)
            if here is not None:
                return here if isinstance(scores, dict) else here["node"]
        given = self.read(scores, lengths, examples, mask, **graphs)
        return self.in_form(scores, _Marginals.apply(self, given, *given.tensors))


class _Marginals(Backward):
    """Marginals; the backward pass multiplies a direction by the symmetric Jacobian."""

    @staticmethod
    def forward(ctx: Any, layer: Marginals, given: Given, *tensors: torch.Tensor) -> Any:
        answer, _ = marginals(given.space, given.scores, layer.projection, n_jobs=layer.n_jobs)
        ctx.layer, ctx.given = layer, given
        ctx.save_for_backward(*tensors)  # they must not change until then
        return tuple(given.tensors_of(answer))

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        layer, given, tensors = ctx.layer, ctx.given, ctx.saved_tensors
        why = f"Marginals of structure {layer.structure.name!r} has no second derivatives"
        jacobian = Jacobian(given, layer.projection, layer.n_jobs, why)
        return None, None, *jacobian.times(directions, tensors)
