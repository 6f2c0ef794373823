"""Labels of a batch of scores: the best ones, and samples."""

from __future__ import annotations

from typing import Any

import torch
from torch.library import custom_op

from ..batch import samples
from ..batch.answers import best_labels
from ..batch.padded import kept
from ..batch.places import PADDING
from . import operators
from .decision_operators import sample
from .device import on_device_or_none
from .layer import Given, Layer
from .masks import as_mask


def decode(
    structure: Any,
    scores: Any,
    lengths: Any = None,
    examples: Any = None,
    *,
    classes: Any = None,
    oracle: Any = None,
    n_jobs: int | None = None,
    mask: Any = None,
    **graphs: Any,
) -> torch.Tensor:
    """Return the best label of every example.

    Parameters
    ----------
    structure : str, Structure or layer
        A layer of this package provides its structure, classes and caches.
    scores : Tensor or dict of str to Tensor
        See :class:`StructuredLoss`, also for lengths, examples and graphs.
    lengths : Tensor, array or list of int, optional
    examples : Examples, optional
    classes : int or sequence, optional
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads.
    mask : Tensor or array of bool or int, optional
        In place of lengths, of the shape of padded labels; sequences may have holes.
    **graphs : object
        Further arguments of the structure.

    Returns
    -------
    Tensor of int64
        Of the shape of labels, -1 beyond the end of an example; on the device of the scores.

    Raises
    ------
    ValueError, TypeError
        See :class:`StructuredLoss`; also if every label of an example is forbidden.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import decode
    >>> scores = torch.tensor([[[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]])
    >>> decode("chain", {"node": scores, "transition": -3 * torch.eye(2)}, lengths=[2]).tolist()
    [[1, 0, -1]]
    """
    layer = structure
    if operators.traced(scores, lengths, mask):
        if not isinstance(layer, Layer):
            raise NotImplementedError(
                "decode: torch.compile, torch.export and torch.func take a layer, not a "
                "structure: decode(layer, ...) of a StructuredLoss or OutputLayer"
            )
        return layer.call(best_labels_of, scores, lengths, mask, examples, graphs, oracle)
    if not isinstance(layer, Layer):
        layer = kept(Layer, structure, classes, n_jobs)
    if oracle is None and examples is None and not graphs:
        batch = on_device_or_none(layer, layer.named(scores), lengths, mask)
        best = None if batch is None else batch.best()
        if best is not None:
            return best
    keep = None
    if mask is not None and lengths is None:
        keep = as_mask(mask)
        scores, lengths = layer.without_holes(scores, keep, **graphs)
        mask = None
    given = layer.read(scores, lengths, examples, mask, **graphs)
    flat = best_labels(given.space, given.scores, oracle=oracle, n_jobs=layer.n_jobs)
    if keep is None or not given.places.packed:
        return given.labels(flat)
    labels = torch.full(keep.shape, PADDING)
    labels[torch.from_numpy(keep)] = torch.from_numpy(flat).long()
    return labels.to(given.tensors[0].device)


@custom_op("structsolve::decode", mutates_args=())
def best_labels_of(
    layer: int,
    tensors: operators.Tensors,
    names: str,
    lengths: torch.Tensor | None,
    mask: torch.Tensor | None,
    oracle: str | None,
) -> torch.Tensor:
    """Return the best labels.

    Parameters
    ----------
    layer : int
        Number of the layer.
    tensors : list of Tensor
        Scores.
    names : str
        Their blocks, a name on each line.
    lengths : Tensor or None
    mask : Tensor or None
    oracle : str or None

    Returns
    -------
    Tensor
    """
    scores = dict(zip(names.split("\n"), tensors))
    return decode(operators.layers[layer], scores, lengths, mask=mask, oracle=oracle)


best_labels_of.register_fake(operators.labels_like)
operators.derivatives[best_labels_of] = lambda *_: None, operators.no_more


class Sample(Layer):
    """Labels drawn from ``p(y) ~ exp(score of y)``.

    Parameters
    ----------
    structure : str or Structure
    n : int, default=1
        Labels per example.
    random_state : int, Generator or None
        A seed gives the same labels at every call.
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    n_jobs : int, optional
        Threads; the labels do not depend on it.

    Notes
    -----
    Samples have no derivative, but their log-probability has:
    ``-StructuredLoss(structure, "crf", reduction="none")(scores, sample)``.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import Sample
    >>> Sample("chain", n=5, random_state=0)(torch.zeros(2, 3, 4)).shape
    torch.Size([5, 2, 3])
    """

    def __init__(
        self,
        structure: Any,
        n: int = 1,
        random_state: Any = None,
        classes: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, n_jobs)
        self.n, self.random_state = n, random_state

    def forward(
        self,
        scores: Any,
        lengths: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> torch.Tensor:
        """Return samples of a batch.

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
        Tensor of int64 of shape (n, ...), where ... is that of labels
            -1 beyond the end of an example.

        Raises
        ------
        ValueError, TypeError
            See :class:`StructuredLoss`; also if the structure has no samples.
        """
        if operators.traced(scores, lengths, mask):
            return self.call(sample, scores, lengths, mask, examples, graphs)
        return self.draw(self.read(scores, lengths, examples, mask, **graphs))

    def draw(self, given: Given) -> torch.Tensor:
        """Return samples of a checked batch.

        Parameters
        ----------
        given : Given

        Returns
        -------
        Tensor of int64
        """
        drawn = samples(given.space, given.scores, self.n, self.random_state, n_jobs=self.n_jobs)
        return given.labels(drawn)
