"""Losses, labels and marginals computed where scores lie, without a copy to the host.

A structure offers this by ``Space.device_operations()``.  All that these functions refuse (None)
goes to native code, which names what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from .masks import as_lengths, kept_positions, moved_ahead

_always: ContextVar[bool | None] = ContextVar("structsolve_on_device", default=None)


@contextmanager
def on_device(always: bool | None = True) -> Iterator[None]:
    """Set where layers compute chains' losses, marginals and best labels.

    Parameters
    ----------
    always : bool or None, default=True
        True: where the scores lie, also on the CPU, by operations of torch.  False: by native code
        on the CPU.  None, the rule without this context: on the device for large batches of scores
        that are not on the CPU.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import decode, on_device
    >>> scores = {"node": torch.eye(3)[None], "transition": torch.zeros(3, 3)}
    >>> with on_device():
    ...     decode("chain", scores).tolist()
    [[0, 1, 2]]
    """
    token = _always.set(always)
    try:
        yield
    finally:
        _always.reset(token)


class OnDevice:
    """A padded batch of scores on its device; see :func:`on_device_or_none`.

    Parameters
    ----------
    operations : module
        Of the structure.
    scores : dict of str to Tensor
        Doubles if the device has them.
    lengths, mask : Tensor or None
    labels : Tensor of int, optional
    ignored : int, optional
        The label of missing positions.

    Attributes
    ----------
    fits : Tensor of bool
        Whether sizes, scores and labels are valid: the one number that is copied to the host.
    """

    def __init__(
        self,
        operations: Any,
        scores: dict[str, torch.Tensor],
        lengths: Any,
        mask: Any,
        labels: torch.Tensor | None = None,
        ignored: int | None = None,
    ):
        self.operations, node = operations, scores["node"]
        self.n, longest, classes = node.shape
        self.fits = torch.ones((), dtype=torch.bool, device=node.device)
        states = node.new_zeros((self.n, longest), dtype=torch.int64) if labels is None else labels
        states = states.to(node.device)
        moved = [None if a is None else a.to(node.device) for a in (lengths, mask)]
        self.keep = kept_positions(states, ignored, *moved)
        if self.keep is not None:
            self.prefix = (self.keep[:, 1:] <= self.keep[:, :-1]).all()
            node, states, sizes = moved_ahead(node, states, self.keep)
            if "edge" in scores:
                self.fits = self.fits & self.prefix
        else:
            self.prefix = self.fits
            sizes = states.new_full((self.n,), longest) if moved[0] is None else moved[0]
        self.sizes = sizes.to(torch.int64)
        self.inside = torch.arange(longest, device=node.device) < self.sizes[:, None]
        fitting = [((self.sizes >= 1) & (self.sizes <= longest)).all()]
        if moved[0] is not None:
            fitting.append((moved[0] <= longest).all())
        self.scores = {**scores, "node": torch.where(self.inside[:, :, None], node, 0)}
        if "edge" in scores:
            pairs = self.inside[:, 1:, None, None]
            self.scores["edge"] = torch.where(pairs, scores["edge"], 0)
        fitting += [(t < torch.inf).all() for t in self.scores.values()]
        self.states = torch.where(self.inside, states, 0).to(torch.int64)
        fitting.append(((self.states >= 0) & (self.states < classes)).all())
        self.fits = torch.stack([self.fits, *fitting]).all()
        self.sizes = self.sizes.clamp(1, longest)
        self.states = self.states.clamp(0, classes - 1)

    def loss(self, surrogate: str) -> torch.Tensor | None:
        """Return the loss of every example.

        Parameters
        ----------
        surrogate : {"crf", "margin"}
            With the Hamming loss.

        Returns
        -------
        Tensor of shape (n,), or None
        """
        own = self.operations
        truth = own.score(self.scores, self.states, self.sizes)
        if surrogate == "crf":
            highest = own.log_partition(self.scores, self.sizes)
        else:
            cost = torch.ones_like(self.scores["node"]).scatter(2, self.states[:, :, None], 0)
            cost = torch.where(self.inside[:, :, None], cost, 0)
            higher = {**self.scores, "node": self.scores["node"] + cost}
            with torch.no_grad():
                labels, _ = own.best(higher, self.sizes)
            highest = own.score(higher, torch.where(self.inside, labels, 0), self.sizes)
        fits = self.fits & (truth > -1e29).all() & (highest > -1e29).all()
        return highest - truth if bool(fits) else None

    def best(self) -> torch.Tensor | None:
        """Return the best labels, -1 beyond the end and at positions that a mask leaves out.

        Returns
        -------
        Tensor of int64 of shape (n, longest), or None
        """
        with torch.no_grad():
            labels, values = self.operations.best(self.scores, self.sizes)
            if not bool(self.fits & (values > -torch.inf).all()):
                return None
            labels = torch.where(self.inside, labels, -1)
            if self.keep is None:
                return labels
            order = torch.argsort((~self.keep).to(torch.uint8), dim=1, stable=True)
            return torch.empty_like(labels).scatter(1, order, labels)


def on_device_or_none(
    layer: Any,
    named: dict[str, Any],
    lengths: Any,
    mask: Any,
    labels: Any = None,
    ignored: int | None = None,
) -> OnDevice | None:
    """Return a batch for its device, or None where native code computes it.

    Parameters
    ----------
    layer : Layer
    named : dict of str to Tensor
        Scores by block.
    lengths, mask : Tensor, array or list, or None
    labels : Tensor or array of int, optional
    ignored : int, optional

    Returns
    -------
    OnDevice or None
    """
    always, node = _always.get(), named.get("node")
    if always is False or not isinstance(node, torch.Tensor) or (always is None and node.is_cpu):
        return None
    tensors = [t for t in named.values() if isinstance(t, torch.Tensor) and t.is_floating_point()]
    if len(tensors) < len(named) or node.ndim != 3 or any(t.device != node.device for t in tensors):
        return None
    space = layer._batches.space({name: tuple(t.shape) for name, t in named.items()})
    operations = space.device_operations()
    if operations is None or (always is None and not operations.pays(tuple(node.shape))):
        return None
    n, longest, classes = node.shape
    shapes = {b.name: tuple(b.shape) for b in space.layout.blocks if b.kind == "shared"}
    shapes["node"] = (n, longest, *space.layout.node.shape)
    if space.layout.edge is not None:
        shapes["edge"] = (n, longest - 1, *space.layout.edge.shape)
    if any(0 in t.shape or shapes.get(name) != tuple(t.shape) for name, t in named.items()):
        return None
    given = [as_lengths(array) for array in (lengths, mask, labels)]
    for array, shape in zip(given, ((n,), (n, longest), (n, longest))):
        if array is not None and (array.shape != shape or array.is_floating_point()):
            return None
    wide = torch.float32 if node.device.type == "mps" else torch.float64
    scores = {name: tensor.to(wide) for name, tensor in named.items()}
    return OnDevice(operations, scores, given[0], given[1], given[2], ignored)


def marginals_on_device(batch: OnDevice, named: dict[str, torch.Tensor]) -> Any:
    """Return the marginals of a batch: the gradient of its partition function.

    Parameters
    ----------
    batch : OnDevice
    named : dict of str to Tensor
        The scores; shared blocks get one array for each example.

    Returns
    -------
    dict of str to Tensor, or None
    """
    leaves, n = {}, batch.n
    graph = torch.is_grad_enabled() and any(t.requires_grad for t in named.values())
    with torch.inference_mode(False), torch.enable_grad():
        for name, tensor in batch.scores.items():
            shared = name not in ("node", "edge")
            own = tensor.expand(n, *tensor.shape) if shared else tensor
            leaves[name] = own.clone() if graph else own.detach().clone().requires_grad_()
            if graph and not leaves[name].requires_grad:
                leaves[name].requires_grad_()
        total = batch.operations.log_partition(leaves, batch.sizes)
        if not bool(batch.fits & batch.prefix & (total > -1e29).all()):
            return None
        blocks = list(leaves.values())  # sentences of one word have no transition
        answer = torch.autograd.grad(
            total.sum(), blocks, create_graph=graph, materialize_grads=True
        )
    return {name: g.to(named[name].dtype) for name, g in zip(leaves, answer)}
