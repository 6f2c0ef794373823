"""Decisions as layers: derivatives of the best label by noise, interpolation, or regret."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..batch import encode
from ..batch.answers import best_labels
from ..batch.padded import check_reduction
from . import decision_operators, operators
from ._second import once, sealed
from .layer import Backward, Given, Layer
from .loss import truths
from .masks import as_lengths


class _Decision(Layer):
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
        self,
        structure: Any,
        classes: Any = None,
        oracle: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, n_jobs)
        self.oracle = oracle

    @property
    def no_second(self) -> str:
        """Message of a second derivative."""
        return f"{self.label} has no second derivatives"

    def best(self, given: Given, tensors: Any) -> list[torch.Tensor]:
        """Return the parts of the best labels at these scores.

        Parameters
        ----------
        given : Given
            The batch.
        tensors : sequence of Tensor
            Its scores, or others of the same shapes.

        Returns
        -------
        list of Tensor
            Shared blocks have one array for each example.
        """
        scores = given.scores_of(tensors)
        labels = best_labels(given.space, scores, oracle=self.oracle, n_jobs=self.n_jobs)
        return given.tensors_of(encode(given.space, given.scores, labels))


class PerturbedArgmax(_Decision):
    r"""Mean of best labels under noise: ``E[mu(argmax(scores + sigma Z))]`` (Berthet et al. 2020).

    Parameters
    ----------
    structure : str or Structure
    sigma : float, default=1.0
        Scale of the noise.
    n_samples : int, default=10
        Draws of the noise.
    noise : {"additive", "multiplicative"}, default="additive"
        "multiplicative": scores are multiplied by ``exp(sigma Z - sigma^2 / 2)``, which keeps their
        signs (Dalle et al. 2022).
    random_state : int, optional
        A seed gives the same noise at every call; by default torch's generator draws.
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads.

    Notes
    -----
    Z is standard normal.  The backward pass computes ``E[<direction, mu> Z] / sigma`` over the same
    draws, minus the mean of ``<direction, mu>``, which lowers the variance. :meth:`loss` is the
    Fenchel-Young loss of the same maximum.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import PerturbedArgmax
    >>> scores = torch.tensor([[1.0, 0.0, 0.0]], requires_grad=True)
    >>> shares = PerturbedArgmax("multiclass", n_samples=1000, random_state=0)(scores)
    >>> bool(shares[0, 0] > 0.5), round(shares.sum().item(), 4)
    (True, 1.0)
    """

    def __init__(
        self,
        structure: Any,
        sigma: float = 1.0,
        n_samples: int = 10,
        noise: str = "additive",
        random_state: int | None = None,
        classes: Any = None,
        oracle: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, oracle, n_jobs)
        _check_positive(sigma, "sigma")
        if not isinstance(n_samples, int) or n_samples < 1:
            raise ValueError(f"n_samples is {n_samples!r}, expected an integer of at least 1")
        if noise not in ("additive", "multiplicative"):
            raise ValueError(f"noise is {noise!r}, expected 'additive' or 'multiplicative'")
        self.sigma, self.n_samples, self.noise = sigma, n_samples, noise
        self.random_state = random_state

    def forward(
        self,
        scores: Any,
        lengths: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> Any:
        """Return the mean of the best labels' parts.

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
        given = self.read(scores, lengths, examples, mask, **graphs)
        return given.in_form(_Perturbed.apply(self, given, *given.tensors))

    def loss(
        self,
        scores: Any,
        labels: Any,
        lengths: Any = None,
        examples: Any = None,
        reduction: str = "mean",
        mask: Any = None,
        **graphs: Any,
    ) -> torch.Tensor:
        """Return ``E[max(scores + sigma Z)] - score of the truth``, a Fenchel-Young loss.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
            See :class:`StructuredLoss`, also for the others.
        labels : Tensor of int
        lengths : Tensor, array or list of int, optional
        examples : Examples, optional
        reduction : {"mean", "sum", "none"}, default="mean"
        mask : Tensor or array of bool or int, optional
            Replaces lengths; of the shape of padded labels.
        **graphs : object

        Returns
        -------
        Tensor
            For multiplicative noise, the scores of the best labels include the noise.

        Raises
        ------
        ValueError, TypeError
            See :class:`StructuredLoss`.
        """
        check_reduction(reduction)
        given = self.read(scores, lengths, examples, mask, **graphs)
        true = given.tensors_of(encode(given.space, given.scores, truths(labels, given)))
        tensors, total = once(self.no_second, given.tensors), 0  # type: Any, Any
        for draw in self.draws(given):
            noisy = self.perturb(tensors, draw)
            best = self.best(given, [t.detach() for t in noisy])
            total = total + given.product(noisy, best) / self.n_samples
        return _reduced(total - given.product(tensors, true), reduction)

    def perturb(self, tensors: Any, draw: Any) -> list[torch.Tensor]:
        """Return scores with noise.

        Parameters
        ----------
        tensors : sequence of Tensor
        draw : sequence of Tensor
            Z, of their shapes.

        Returns
        -------
        list of Tensor
        """
        if self.noise == "additive":
            return [t + self.sigma * z for t, z in zip(tensors, draw)]
        return [t * (self.sigma * z - self.sigma**2 / 2).exp() for t, z in zip(tensors, draw)]

    def draws(self, given: Given) -> Any:
        """Yield the noise of each sample.

        Parameters
        ----------
        given : Given

        Yields
        ------
        list of Tensor
            Z, of the shapes of the scores; of shared blocks one array for each example.
        """
        generator = None
        if self.random_state is not None:
            generator = torch.Generator().manual_seed(self.random_state)
        n, layout = given.places.examples.n, given.space.layout
        for _ in range(self.n_samples):
            draw = []
            for name, t in zip(given.names, given.tensors):
                each = (n, *t.shape) if layout.block(name).kind == "shared" else t.shape
                draw.append(torch.randn(each, generator=generator, dtype=t.dtype).to(t.device))
            yield draw


class _Perturbed(Backward):
    """Mean of best labels under noise."""

    @staticmethod
    def forward(ctx: Any, layer: PerturbedArgmax, given: Given, *tensors: torch.Tensor) -> Any:
        kept = []
        for draw in layer.draws(given):
            kept.append((draw, layer.best(given, layer.perturb(tensors, draw))))
        ctx.layer, ctx.given, ctx.kept = layer, given, kept
        ctx.save_for_backward(*tensors)
        return tuple(sum(best) / len(kept) for best in zip(*(best for _, best in kept)))

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        layer, given, kept = ctx.layer, ctx.given, ctx.kept
        tensors = ctx.saved_tensors  # once: checkpointing frees them
        with torch.no_grad():
            gradients = _Perturbed.gradients(layer, given, kept, directions, tensors)
        return None, None, *sealed(layer.no_second, gradients, (*directions, *tensors))

    @staticmethod
    def gradients(
        layer: PerturbedArgmax, given: Given, kept: Any, directions: Any, tensors: Any
    ) -> list[torch.Tensor]:
        """Return the gradients from the draws of the noise and their best labels."""
        worths = [given.product(directions, best) for _, best in kept]
        # Subtract the mean of the other draws: Z has expectation 0, and the variance falls.
        total, n = sum(worths), len(kept)
        gradients: Any = [0] * len(given.tensors)
        for worth, (draw, _) in zip(worths, kept):
            if n > 1:
                worth = worth - (total - worth) / (n - 1)
            for k, (name, z) in enumerate(zip(given.names, draw)):
                gradients[k] = gradients[k] + given.weigh(name, worth, z) / (n * layer.sigma)
        gradients = [given.read_alone(name, g) for name, g in zip(given.names, gradients)]
        if layer.noise == "multiplicative":
            gradients = [
                torch.where(t == 0, torch.zeros_like(t), g / t) for g, t in zip(gradients, tensors)
            ]
        return gradients


class BlackboxDiff(_Decision):
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
        _check_positive(lam, "lam")
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
        if operators.traced(scores, lengths, mask):
            operands = self.operands(scores, examples, graphs)
            sizes = as_lengths(lengths), as_lengths(mask)
            answer = operators.call(decision_operators.interpolated, *operands, *sizes)
            return answer[0] if not isinstance(scores, dict) else dict(zip(scores, answer))
        given = self.read(scores, lengths, examples, mask, **graphs)
        return given.in_form(_Interpolated.apply(self, given, *given.tensors))


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
        # A shared block has a direction for each example, so it is no longer shared.
        moved = [(t - layer.lam * d).detach() for t, d in zip(tensors, directions)]
        gradients = []
        for name, here, there in zip(given.names, ctx.best, layer.best(given, moved)):
            gradient = (here - there) / layer.lam
            shared = given.space.layout.block(name).kind == "shared"
            gradients.append(gradient.sum(0) if shared else gradient)
        return None, None, *sealed(layer.no_second, gradients, (*directions, *tensors))


class SPOPlus(_Decision):
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
        given = self.read(scores, lengths, examples, mask, **graphs)
        true = self.read(true_scores, lengths, examples, mask, **graphs)
        if true.names != given.names or any(
            a.shape != b.shape for a, b in zip(true.tensors, given.tensors)
        ):
            raise ValueError("true_scores: expected the blocks and shapes of scores")
        if labels is None:
            best = self.best(true, true.tensors)
        else:
            flat = truths(labels, true)
            best = true.tensors_of(encode(true.space, true.scores, flat))
        mixed = [
            torch.where(s.isneginf(), s, 2 * s - t.detach().to(s))
            for s, t in zip(once(self.no_second, given.tensors), true.tensors)
        ]
        worst = self.best(given, [m.detach() for m in mixed])
        regret = given.product(mixed, [w - b.to(w) for w, b in zip(worst, best)])
        return _reduced(regret, self.reduction)


def _reduced(values: torch.Tensor, reduction: str) -> torch.Tensor:
    if reduction == "none":
        return values
    return values.mean() if reduction == "mean" else values.sum()


def _check_positive(number: Any, name: str) -> None:
    real = isinstance(number, (int, float, np.integer, np.floating))
    if not real or isinstance(number, bool) or not 0 < number < np.inf:
        raise ValueError(f"{name} is {number!r}, expected a number above 0")
