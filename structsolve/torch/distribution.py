"""Numbers of the distribution of labels at a batch of scores, differentiable."""

from __future__ import annotations

from typing import Any

import torch

from ..batch import least_loss
from ..batch.number_methods import NumberMethods
from ..batch.numbers import number, number_gradient
from . import distribution_operators, operators
from ._second import sealed
from .layer import Backward, Given, Layer
from .loss import as_labels, truths
from .tensors import DOUBLES, refuse_transformed


class Distribution(NumberMethods[torch.Tensor], Layer):
    """The distribution ``p(y) ~ exp(score of y)`` of a structure's labels.

    The methods take scores, lengths, examples, masks, graphs as :class:`StructuredLoss` does, and
    return a number for each example, of shape (n,).

    Parameters
    ----------
    structure : str or Structure
        With a sum over its labels: :doc:`/probabilities`.
    loss : str or loss object, default="hamming"
        For expected losses.
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    n_jobs : int, optional
        Threads.

    Notes
    -----
    Numbers are differentiable by all scores; for second derivatives take
    ``StructuredLoss(structure, "crf")``, the negative of ``log_proba``.  A log-probability of -inf
    has the gradient 0; an infinite cross-entropy has none, and raises ValueError.
    :class:`Marginals`, :func:`decode` and :class:`Sample` are the rest of the distribution.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import Distribution
    >>> chains, scores = Distribution("chain"), torch.zeros(1, 3, 2, requires_grad=True)
    >>> chains.entropy(scores).exp().round(decimals=3).tolist()
    [8.0]
    >>> chains.log_proba(scores, torch.tensor([[0, 1, 1]])).exp().tolist()
    [0.125]
    """

    def least_loss(
        self,
        scores: Any,
        lengths: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> torch.Tensor:
        """Return the label of least expected loss of every example.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
        lengths : Tensor, array or list of int, optional
        examples : Examples, optional
        mask : Tensor or array of bool or int, optional
        **graphs : object
            See :class:`StructuredLoss`.

        Returns
        -------
        Tensor of int64
            Of the shape of labels, -1 beyond the end of an example.
        """
        if operators.traced(scores, lengths, mask):
            operator = distribution_operators.least_loss
            return self.call(operator, scores, lengths, mask, examples, graphs)
        return self.least(self.read(scores, lengths, examples, mask, **graphs))

    def least(self, given: Given) -> torch.Tensor:
        """Return :meth:`least_loss` of a checked batch.

        Parameters
        ----------
        given : Given

        Returns
        -------
        Tensor of int64
        """
        labels, _ = least_loss(given.space, given.scores, self.loss, n_jobs=self.n_jobs)
        return given.labels(labels)

    def _of(
        self,
        kind: str,
        scores: Any,
        lengths: Any,
        *,
        labels: Any = None,
        other: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> torch.Tensor:
        others = [] if other is None else self._beside(other, scores)
        if operators.traced(scores, lengths, mask, labels, *others):
            more = kind, others, None if labels is None else torch.as_tensor(labels)
            operator = distribution_operators.number
            return self.call(operator, scores, lengths, mask, examples, graphs, *more)
        given = self.read(scores, lengths, examples, mask, **graphs)
        return _Number.apply(self, given, kind, labels, *given.tensors, *others)

    def _beside(self, other: Any, scores: Any) -> list[torch.Tensor]:
        """Return the second scores, in the order of the first ones."""
        own, named = self.named(scores), self.named(other)
        shapes = [{name: tuple(t.shape) for name, t in given.items()} for given in (named, own)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"other: found blocks of shapes {shapes[0]}, expected {shapes[1]}")
        return [t if (t := named[name]).dtype in DOUBLES else t.float() for name in own]

    def values(self, given: Given, kind: str, labels: Any, others: Any) -> torch.Tensor:
        """Return numbers without a derivative.

        Parameters
        ----------
        given : Given
        kind : str
        labels : Tensor, array or None
        others : list of Tensor
            The second scores, if any.

        Returns
        -------
        Tensor of shape (n,)
        """
        operands = self._operands(given, labels, others)
        values = number(kind, given.space, given.scores, **operands)
        like = given.tensors[0]
        return torch.from_numpy(values).to(like.device, like.dtype)

    def gradients(
        self,
        given: Given,
        kind: str,
        labels: Any,
        others: Any,
        factor: torch.Tensor,
        *,
        needed: tuple[bool, bool] = (True, True),
    ) -> list[Any]:
        """Return gradients by the scores, then by the second ones.

        Parameters
        ----------
        given : Given
        kind : str
        labels : Tensor, array or None
        others : list of Tensor
            The second scores, if any.
        factor : Tensor of shape (n,)
        needed : tuple of bool, default=(True, True)
            Whether those by the scores, and by the second ones, are needed.

        Returns
        -------
        list of Tensor, or None if not needed
        """
        refuse_transformed(factor, self.label)
        operands = self._operands(given, labels, others)
        operands["weights"] = factor.detach().cpu().double().expand(given.n).numpy()
        both, answer = [given.tensors, others], []
        for by_other, tensors in enumerate(both if len(others) else both[:1]):
            if not needed[by_other]:
                answer += [None] * len(tensors)
                continue
            own = number_gradient(
                kind, given.space, given.scores, by_other=bool(by_other), **operands
            )
            answer += [g.to(t.device, t.dtype) for g, t in zip(given.tensors_of(own), tensors)]
        return answer

    def _operands(self, given: Given, labels: Any, others: Any) -> dict[str, Any]:
        return {
            "labels": None if labels is None else truths(as_labels(labels), given),
            "other": given.scores_of(others) if len(others) else None,
            "loss": self.loss,
            "n_jobs": self.n_jobs,
        }

    def no_second(self, kind: str) -> str:
        """Return the message of a second derivative.

        Parameters
        ----------
        kind : str

        Returns
        -------
        str
        """
        return (
            f"{kind} of structure {self.structure.name!r} has no second derivatives; those of "
            "StructuredLoss(structure, 'crf') and Marginals exist"
        )


class _Number(Backward):
    """A number of each example."""

    @staticmethod
    def forward(
        ctx: Any, layer: Distribution, given: Given, kind: str, labels: Any, *both: torch.Tensor
    ) -> Any:
        ctx.layer, ctx.given, ctx.kind, ctx.labels = layer, given, kind, labels
        ctx.save_for_backward(*both)  # they must not change until then
        return layer.values(given, kind, labels, both[len(given.tensors) :])

    @staticmethod
    def backward(ctx: Any, factor: torch.Tensor) -> Any:
        layer, both, k = ctx.layer, ctx.saved_tensors, len(ctx.given.tensors)
        operands = ctx.given, ctx.kind, ctx.labels, both[k:], factor
        if torch.is_grad_enabled():
            gradients: Any = layer.gradients(*operands)
            gradients = sealed(layer.no_second(ctx.kind), gradients, [factor, *both])
        else:
            by = ctx.needs_input_grad[4:]
            gradients = layer.gradients(*operands, needed=(any(by[:k]), any(by[k:])))
        return None, None, None, None, *gradients
