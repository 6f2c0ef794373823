"""Last layers of networks: modules whose parameters are the scores that all examples share."""

from __future__ import annotations

from typing import Any

import torch

from ..batch import score_space
from ..utils.params import check_choice, check_count
from ..utils.positional import positional_deprecated
from .decoding import decode
from .loss import StructuredLoss
from .masks import as_mask


class OutputLayer(StructuredLoss):
    """A structure's loss with parameters for the blocks that all examples share.

    For chains these are the tables ``transition``, ``start`` and ``end``; for trees ``transition``
    and ``root``, of graphs and pictures ``pair``.  They start at 0.

    Parameters
    ----------
    structure : str or Structure
    classes : int or sequence, optional
        Number of classes, or their names; None for structures without classes.
    surrogate : str or surrogate object, default="crf"
        See :class:`StructuredLoss`, also for the others.
    loss : str or loss object, default="hamming"
    reduction : {"mean", "sum", "none"}, default="mean"
    oracle : str or structsolve.lp.Backend, optional
    n_jobs : int, optional
    ignore_index : int or None, default=-100

    Attributes
    ----------
    shared : ParameterDict
        Parameters by block name.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import OutputLayer
    >>> layer = OutputLayer("chain", 3)
    >>> sorted(layer.state_dict())
    ['shared.end', 'shared.start', 'shared.transition']
    >>> scores, labels = torch.zeros(2, 4, 3), torch.tensor([[0, 1, 1, 2], [2, 1, -100, -100]])
    >>> layer(scores, labels).backward()           # the mean of 4 log 3 and 2 log 3
    >>> [round(g, 3) for g in layer.shared["start"].grad.tolist()]
    [-0.167, 0.333, -0.167]
    >>> layer.decode(scores, mask=labels != -100).shape
    torch.Size([2, 4])
    """

    @positional_deprecated
    def __init__(
        self,
        structure: Any,
        classes: Any = None,
        surrogate: Any = "crf",
        loss: Any = "hamming",
        reduction: str = "mean",
        oracle: Any = None,
        *,
        n_jobs: int | None = None,
        ignore_index: int | None = -100,
    ):
        super().__init__(structure, surrogate, loss, reduction, classes, oracle, n_jobs=n_jobs)
        self.ignore_index = ignore_index
        blocks = score_space(self.structure, classes).layout.blocks
        self.shared = torch.nn.ParameterDict(
            {b.name: torch.nn.Parameter(torch.zeros(b.shape)) for b in blocks if b.kind == "shared"}
        )

    def scores(self, scores: Any) -> Any:
        """Return scores with the shared ones, for other layers of the structure.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
            Scores of the network; blocks in it replace the parameters.

        Returns
        -------
        dict of str to Tensor
        """
        return {**self.shared, **(scores if isinstance(scores, dict) else {"node": scores})}

    def named(self, scores: Any) -> dict[str, Any]:
        """Return scores by block, with the parameters.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor

        Returns
        -------
        dict of str to Tensor
        """
        return self.scores(scores)

    def decode(self, scores: Any, *args: Any, **settings: Any) -> torch.Tensor:
        """Return the best labels; see :func:`decode`.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
        *args, **settings : object
            Lengths, examples, mask, ... of :func:`decode`.

        Returns
        -------
        Tensor of int64
            -1 beyond the end of an example.
        """
        settings.setdefault("oracle", self.oracle)
        return decode(self, scores, *args, **settings)


class CRF(torch.nn.Module):
    """A conditional random field of sequences, compatible with pytorch-crf.

    Names, arguments, initial values and ``state_dict`` match ``torchcrf.CRF``; the loops are ours.

    Parameters
    ----------
    num_tags : int
    batch_first : bool, default=False
        Emissions, tags and masks have the axis of sentences first, else that of words.
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    transitions : Parameter of shape (num_tags, num_tags)
        Scores from the tag before to the next.
    start_transitions, end_transitions : Parameter of shape (num_tags,)

    Notes
    -----
    A mask may have holes: the other words are then adjacent.  Tags of -100 are holes.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import CRF
    >>> crf = CRF(3, batch_first=True)
    >>> scores, tags = torch.randn(2, 4, 3), torch.tensor([[0, 1, 1, 2], [2, 1, 0, 0]])
    >>> mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    >>> loss = -crf(scores, tags, mask=mask, reduction="mean")
    >>> loss.backward()
    >>> [len(best) for best in crf.decode(scores, mask)]
    [4, 2]
    """

    def __init__(self, num_tags: int, batch_first: bool = False, n_jobs: int | None = None):
        super().__init__()
        check_count("num_tags", num_tags)
        num_tags = int(num_tags)
        self.num_tags, self.batch_first = num_tags, batch_first
        self.start_transitions = torch.nn.Parameter(torch.empty(num_tags))
        self.end_transitions = torch.nn.Parameter(torch.empty(num_tags))
        self.transitions = torch.nn.Parameter(torch.empty(num_tags, num_tags))
        self._loss = StructuredLoss("chain", "crf", "hamming", "none", num_tags, n_jobs=n_jobs)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters, uniform between -0.1 and 0.1."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            torch.nn.init.uniform_(parameter, -0.1, 0.1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_tags={self.num_tags})"

    def scores(self, emissions: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return scores for other layers: ``Marginals("chain")(crf.scores(emissions))``.

        Parameters
        ----------
        emissions : Tensor

        Returns
        -------
        dict of str to Tensor
            With the axis of sentences first.
        """
        return {
            "node": self._first(emissions),
            "transition": self.transitions,
            "start": self.start_transitions,
            "end": self.end_transitions,
        }

    def forward(
        self,
        emissions: torch.Tensor,
        tags: torch.Tensor,
        mask: torch.Tensor | None = None,
        reduction: str = "sum",
    ) -> torch.Tensor:
        """Return the log-likelihood of tags; its negative is a loss.

        Parameters
        ----------
        emissions : Tensor of shape (words, sentences, num_tags)
            (sentences, words, num_tags) with ``batch_first``.
        tags : Tensor of int of shape (words, sentences)
        mask : Tensor of bool or int of shape (words, sentences), optional
            Not 0 if there is a word.
        reduction : {"sum", "mean", "token_mean", "none"}, default="sum"
            Over the sentences; "token_mean" divides the sum by the number of words.

        Returns
        -------
        Tensor

        Raises
        ------
        ValueError, TypeError
            See :class:`StructuredLoss`.
        """
        check_choice("reduction", reduction, ("sum", "mean", "token_mean", "none"))
        tags, mask = self._first(tags), None if mask is None else self._first(mask)
        each = -self._loss(self.scores(emissions), tags, mask=mask)
        if reduction == "none":
            return each
        if reduction == "token_mean":
            there = tags != self._loss.ignore_index
            words = there if mask is None else there & (mask.to(tags.device) != 0)
            return each.sum() / words.sum()
        return each.sum() if reduction == "sum" else each.mean()

    def decode(self, emissions: torch.Tensor, mask: torch.Tensor | None = None) -> list[list[int]]:
        """Return the best tags of every sentence.

        Parameters
        ----------
        emissions : Tensor
            As of :meth:`forward`.
        mask : Tensor of bool or int, optional

        Returns
        -------
        list of list of int
            As long as the sentence.
        """
        first = None if mask is None else self._first(mask)
        best = decode(self._loss, self.scores(emissions), mask=first).cpu()
        if first is None:
            return [row.tolist() for row in best]
        there = torch.from_numpy(as_mask(first))
        return [row[own].tolist() for row, own in zip(best, there)]

    def _first(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if self.batch_first else tensor.transpose(0, 1)
