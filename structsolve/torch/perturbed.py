"""The mean of best labels under noise as a layer, and its loss."""

from __future__ import annotations

from typing import Any

import torch

from ..batch.padded import check_reduction
from ..utils.params import check_choice, check_count
from ..utils.positional import positional_deprecated
from . import perturbed_operators
from ._second import sealed
from .decision_operators import OfOperators
from .decisions import Decision, check_positive
from .layer import Backward, Given
from .loss import reduced


class PerturbedArgmax(Decision):
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

    @positional_deprecated
    def __init__(
        self,
        structure: Any,
        sigma: float = 1.0,
        n_samples: int = 10,
        *,
        noise: str = "additive",
        random_state: int | None = None,
        classes: Any = None,
        oracle: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, oracle, n_jobs)
        check_positive(sigma, "sigma")
        check_count("n_samples", n_samples)
        check_choice("noise", noise, ("additive", "multiplicative"))
        self.sigma, self.n_samples, self.noise = sigma, int(n_samples), noise
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
        given = self.batch(scores, lengths, examples, mask, graphs)
        noise = self.noise_of(given)
        if isinstance(given, OfOperators):
            both = given.call(perturbed_operators.perturbed, given.tensors, noise)
            return self.in_form(scores, both[: len(noise)])
        return self.in_form(scores, _Perturbed.apply(self, given, noise, *given.tensors))

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
        given = self.batch(scores, lengths, examples, mask, graphs)
        true, noise = self.encoded(given, labels), self.noise_of(given)
        best = self.samples(given, given.tensors, noise)
        # The score of a best label with its noise: <t + sigma z, mu>, or <t, factor mu>.
        added: Any = 0
        if self.noise == "additive":
            sums = [(z * b).mean(0) for z, b in zip(noise, best)]
            added = self.sigma * given.product(sums, [torch.ones_like(s) for s in sums])
        else:
            best = [self.factor(z) * b for z, b in zip(noise, best)]
        parts = [b.mean(0) - t for b, t in zip(best, true)]
        tensors = self.once(given)
        return reduced(given.product(tensors, parts) + added, reduction)

    def factor(self, noise: torch.Tensor) -> torch.Tensor:
        """Return the factors of multiplicative noise.

        Parameters
        ----------
        noise : Tensor
            Z.

        Returns
        -------
        Tensor
        """
        return (self.sigma * noise - self.sigma**2 / 2).exp()

    def noise_of(self, given: Given | OfOperators) -> list[torch.Tensor]:
        """Return the noise of all samples.

        Parameters
        ----------
        given : Given or OfOperators

        Returns
        -------
        list of Tensor
            Z of each sample, of the shapes of the scores; of shared blocks for each example.
        """
        seed = torch.randint(2**62, ()) if self.random_state is None else self.random_state
        if isinstance(given, Given):
            return self.drawn(given, seed)
        here = [t.detach() for t in given.tensors]
        return given.call(perturbed_operators.noise, here, torch.as_tensor(seed))

    def drawn(self, given: Given, seed: Any) -> list[torch.Tensor]:
        """Return the noise of a seed; see :meth:`noise_of`.

        Parameters
        ----------
        given : Given
        seed : Tensor or int

        Returns
        -------
        list of Tensor
        """
        generator, answer = torch.Generator().manual_seed(int(seed)), []
        for shared, t in zip(given.shared, given.tensors):
            shape = (self.n_samples, *([given.n] if shared else []), *t.shape)
            answer.append(torch.randn(shape, generator=generator, dtype=t.dtype).to(t.device))
        return answer

    def samples(self, given: Given | OfOperators, tensors: Any, noise: Any) -> list[torch.Tensor]:
        """Return the parts of the best labels of all samples.

        Parameters
        ----------
        given : Given or OfOperators
        tensors : sequence of Tensor
        noise : sequence of Tensor

        Returns
        -------
        list of Tensor
            Of the shapes of the noise; without derivatives.
        """
        tensors = [t.detach() for t in tensors]
        if isinstance(given, OfOperators):
            answer: list[torch.Tensor] = given.call(perturbed_operators.perturbed, tensors, noise)
            return answer[len(noise) :]
        each = []
        for draw in zip(*noise):
            if self.noise == "additive":
                noisy = [t + self.sigma * z for t, z in zip(tensors, draw)]
            else:
                noisy = [t * self.factor(z) for t, z in zip(tensors, draw)]
            each.append(self.best(given, noisy))
        return [torch.stack(best) for best in zip(*each)]

    def gradients(
        self, given: Given, noise: Any, best: Any, directions: Any, tensors: Any
    ) -> list[torch.Tensor]:
        """Return the gradients by the scores, from those by the means.

        Parameters
        ----------
        given : Given
        noise, best : sequence of Tensor
            Of all samples.
        directions, tensors : sequence of Tensor

        Returns
        -------
        list of Tensor
        """
        n, gradients = self.n_samples, []
        worths = torch.stack([given.product(directions, own) for own in zip(*best)])
        if n > 1:
            # Subtract the mean of the other draws: Z has expectation 0, and the variance falls.
            worths = worths - (worths.sum(0) - worths) / (n - 1)
        for name, draws, t in zip(given.names, noise, tensors):
            total: Any = sum(given.weigh(name, own, z) for own, z in zip(worths, draws))
            gradient = given.read_alone(name, total / (n * self.sigma))
            if self.noise == "multiplicative":
                gradient = torch.where(t == 0, torch.zeros_like(t), gradient / t)
            gradients.append(gradient)
        return gradients


class _Perturbed(Backward):
    """Mean of best labels under noise."""

    @staticmethod
    def forward(
        ctx: Any, layer: PerturbedArgmax, given: Given, noise: Any, *tensors: torch.Tensor
    ) -> Any:
        best = layer.samples(given, tensors, noise)
        ctx.layer, ctx.given, ctx.kept = layer, given, (noise, best)
        ctx.save_for_backward(*tensors)
        return tuple(b.mean(0) for b in best)

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        layer, tensors = ctx.layer, ctx.saved_tensors  # once: checkpointing frees them
        with torch.no_grad():
            gradients = layer.gradients(ctx.given, *ctx.kept, directions, tensors)
        return None, None, None, *sealed(layer.no_second, gradients, (*directions, *tensors))
