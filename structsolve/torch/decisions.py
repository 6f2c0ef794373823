"""Decisions as layers: derivatives of the best label by interpolation, or regret."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..batch import encode
from ..batch.answers import best_labels
from ..batch.padded import check_reduction
from . import decision_operators, operators
from ._second import once, sealed
from .decision_operators import OfOperators
from .layer import Backward, Given, Layer
from .loss import reduced, truths
from .masks import as_lengths
from .tensors import refuse_transformed


class Decision(Layer):
    """Base of layers that compute best labels.

    Parameters
    ----------
    structure : str or Structure
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads of native code.
    """

    def __init__(
        self, structure: Any, classes: Any = None, oracle: Any = None, n_jobs: int | None = None
    ):
        super().__init__(structure, classes, n_jobs)
        self.oracle = oracle

    @property
    def no_second(self) -> str:
        """Message of a second derivative."""
        return f"{self.label} has no second derivatives"

    def once(self, given: Given | OfOperators) -> Any:
        """Return the scores of a loss, whose second derivatives raise.

        Parameters
        ----------
        given : Given or OfOperators
            Operators raise by themselves.

        Returns
        -------
        sequence of Tensor
        """
        return once(self.no_second, given.tensors) if isinstance(given, Given) else given.tensors

    def batch(
        self, scores: Any, lengths: Any, examples: Any, mask: Any, graphs: Any, beside: Any = None
    ) -> Given | OfOperators:
        """Return a batch of scores, for graphs as calls of operators.

        Parameters
        ----------
        scores, lengths, examples, mask
            See :class:`StructuredLoss`.
        graphs : dict
        beside : Tensor or dict of str to Tensor, optional
            Other scores of the same call.

        Returns
        -------
        Given or OfOperators
        """
        if not operators.traced(scores, lengths, mask, beside):
            return self.read(scores, lengths, examples, mask, **graphs)
        operands = self.operands(scores, examples, graphs)
        return OfOperators(operands, as_lengths(lengths), as_lengths(mask))

    def best(self, given: Given | OfOperators, tensors: Any) -> list[torch.Tensor]:
        """Return the parts of the best labels at these scores.

        Parameters
        ----------
        given : Given or OfOperators
            The batch.
        tensors : sequence of Tensor
            Its scores, or others of the same shapes.

        Returns
        -------
        list of Tensor
            Shared blocks have one array for each example.  They have no derivative.
        """
        tensors = [t.detach() for t in tensors]
        if isinstance(given, OfOperators):
            return given.call(decision_operators.best_parts, tensors)
        scores = given.scores_of(tensors)
        labels = best_labels(given.space, scores, oracle=self.oracle, n_jobs=self.n_jobs)
        return given.tensors_of(encode(given.space, given.scores, labels))

    def encoded(self, given: Given | OfOperators, labels: Any) -> list[torch.Tensor]:
        """Return the parts of labels; see :meth:`best`.

        Parameters
        ----------
        given : Given or OfOperators
        labels : Tensor

        Returns
        -------
        list of Tensor
        """
        if isinstance(given, OfOperators):
            here = [t.detach() for t in given.tensors]
            return given.call(decision_operators.encoded, here, torch.as_tensor(labels))
        return given.tensors_of(encode(given.space, given.scores, truths(labels, given)))


class BlackboxDiff(Decision):
    """The best label, with the derivative of an interpolation (Vlastelica et al. 2020).

    Parameters
    ----------
    structure : str or Structure
    lam : float, default=10.0
        Length of the interpolation; larger values are smoother, but deviate more from the layer's
        values.
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads.

    Notes
    -----
    The backward pass subtracts the best labels at ``scores - lam * direction`` from those at the
    scores and divides by ``lam``: equation 4 of the paper, where costs are negative scores.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import BlackboxDiff
    >>> scores = torch.tensor([[1.0, 0.0, 0.5]], requires_grad=True)
    >>> best = BlackboxDiff("multiclass", lam=2.0)(scores)
    >>> best.tolist()
    [[1.0, 0.0, 0.0]]
    >>> best[0, 0].backward()
    >>> scores.grad.tolist()
    [[0.5, 0.0, -0.5]]
    """

    def __init__(
        self,
        structure: Any,
        lam: float = 10.0,
        classes: Any = None,
        oracle: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, oracle, n_jobs)
        check_positive(lam, "lam")
        self.lam = lam

    def forward(
        self,
        scores: Any,
        lengths: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> Any:
        """Return the parts of the best labels.

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
            In the form of the scores, but shared blocks have one array for each example.

        Raises
        ------
        ValueError, TypeError
            See :class:`StructuredLoss`.
        """
        given = self.batch(scores, lengths, examples, mask, graphs)
        if isinstance(given, OfOperators):
            answer = given.call(decision_operators.interpolated, given.tensors)
        else:
            answer = _Interpolated.apply(self, given, *given.tensors)
        return self.in_form(scores, answer)


class _Interpolated(Backward):
    """Best labels; the backward pass uses the difference to the interpolated ones."""

    @staticmethod
    def forward(ctx: Any, layer: BlackboxDiff, given: Given, *tensors: torch.Tensor) -> Any:
        best = layer.best(given, tensors)
        ctx.layer, ctx.given, ctx.best = layer, given, best
        ctx.save_for_backward(*tensors)
        return tuple(best)

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        layer, given, tensors = ctx.layer, ctx.given, ctx.saved_tensors
        for direction in directions:
            refuse_transformed(direction, layer.label)
        # A shared block has a direction for each example, so it is no longer shared.
        moved = [t - layer.lam * d for t, d in zip(tensors, directions)]
        gradients = []
        for shared, here, there in zip(given.shared, ctx.best, layer.best(given, moved)):
            gradient = (here - there) / layer.lam
            gradients.append(gradient.sum(0) if shared else gradient)
        return None, None, *sealed(layer.no_second, gradients, (*directions, *tensors))


class SPOPlus(Decision):
    """Loss of decisions: an upper bound of their regret (Elmachtoub and Grigas 2022).

    ``max_y <2 s - t, mu(y)> - <2 s - t, mu(y*)>`` of predicted scores s and true scores t, where y*
    is the best label at t.  Costs are negative scores.

    Parameters
    ----------
    structure : str or Structure
    reduction : {"mean", "sum", "none"}, default="mean"
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import SPOPlus
    >>> predicted = torch.tensor([[1.0, 0.0]], requires_grad=True)
    >>> loss = SPOPlus("multiclass")(predicted, torch.tensor([[0.0, 3.0]]))
    >>> loss.item()
    5.0
    >>> loss.backward()
    >>> predicted.grad.tolist()
    [[2.0, -2.0]]
    """

    def __init__(
        self,
        structure: Any,
        reduction: str = "mean",
        classes: Any = None,
        oracle: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, oracle, n_jobs)
        check_reduction(reduction)
        self.reduction = reduction

    def forward(
        self,
        scores: Any,
        true_scores: Any,
        labels: Any = None,
        lengths: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> torch.Tensor:
        """Return the loss of predicted scores.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
            Predicted scores; see :class:`StructuredLoss`, also for the others.
        true_scores : Tensor or dict of str to Tensor
            In the same form.
        labels : Tensor of int, optional
            The best labels at the true scores; computed by default.
        lengths : Tensor, array or list of int, optional
        examples : Examples, optional
        mask : Tensor or array of bool or int, optional
            Replaces lengths; of the shape of padded labels.
        **graphs : object

        Returns
        -------
        Tensor
            A number; of shape (examples,) without a reduction.

        Raises
        ------
        ValueError, TypeError
            See :class:`StructuredLoss`.
        """
        given = self.batch(scores, lengths, examples, mask, graphs, true_scores)
        true = self.batch(true_scores, lengths, examples, mask, graphs, scores)
        if true.names != given.names or any(
            a.shape != b.shape for a, b in zip(true.tensors, given.tensors)
        ):
            raise ValueError("true_scores: expected the blocks and shapes of scores")
        best = self.best(true, true.tensors) if labels is None else self.encoded(true, labels)
        mixed = [
            torch.where(s.isneginf(), s, 2 * s - t.detach().to(s))
            for s, t in zip(self.once(given), true.tensors)
        ]
        worst = self.best(given, mixed)
        regret = given.product(mixed, [w - b.to(w) for w, b in zip(worst, best)])
        return reduced(regret, self.reduction)


def check_positive(number: Any, name: str) -> None:
    """Refuse what is no number above 0.

    Parameters
    ----------
    number : object
    name : str
        For the message.

    Raises
    ------
    ValueError
    """
    real = isinstance(number, (int, float, np.integer, np.floating))
    if not real or isinstance(number, bool) or not 0 < number < np.inf:
        raise ValueError(f"{name} is {number!r}, expected a number above 0")
