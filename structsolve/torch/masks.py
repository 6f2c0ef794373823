"""Masks and ignored labels: the valid positions of a padded batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def as_mask(mask: Any) -> np.ndarray:
    """Return a mask as an array.

    Parameters
    ----------
    mask : Tensor or array of bool or int, of two or three axes
        Nonzero at valid positions.

    Returns
    -------
    ndarray of bool

    Raises
    ------
    ValueError
        For another type, or other axes.
    """
    if isinstance(mask, torch.Tensor):
        mask = mask.detach().cpu().numpy()
    array = np.asarray(mask)
    if array.dtype.kind not in "biu" or array.ndim not in (2, 3):
        raise ValueError(
            f"mask: found {array.dtype} of shape {array.shape}, expected bool, or 0 and 1, of the "
            "shape of padded labels"
        )
    return array != 0


def sizes_of(mask: np.ndarray, lengths: Any = None) -> np.ndarray:
    """Return the sizes of examples given by a mask.

    Parameters
    ----------
    mask : ndarray of bool of shape (n, longest) or (n, height, width)
    lengths : object
        Other sources of sizes.

    Returns
    -------
    ndarray of int of shape (n,) or (n, 2)

    Raises
    ------
    ValueError
        If positions of an example do not begin at 0 or have a hole, or if lengths are given too.
    """
    if lengths is not None:
        raise ValueError("mask: expected no lengths beside it, since it determines them")
    if mask.ndim == 2:
        sizes, inside = mask.sum(1), prefix(mask)
    else:
        tall, wide = np.asarray(mask.any(2)), np.asarray(mask.any(1))
        sizes = np.column_stack([tall.sum(1), wide.sum(1)])
        inside = prefix(tall)[:, :, None] & prefix(wide)[:, None]
    if not np.array_equal(inside, mask):
        place = tuple(np.argwhere(inside != mask)[0].tolist())
        raise ValueError(
            f"example {place[0]}: its mask is {mask[place]} at {list(place[1:])}, expected "
            "positions from 0 on without a hole"
        )
    return np.asarray(sizes)


def prefix(mask: np.ndarray) -> np.ndarray:
    """Return the mask of the same numbers of positions, from 0 on.

    Parameters
    ----------
    mask : ndarray of bool of shape (n, longest)

    Returns
    -------
    ndarray of bool
    """
    return np.arange(mask.shape[1]) < mask.sum(1)[:, None]


def known(labels: np.ndarray, ignored: int | None, lengths: Any, mask: Any) -> np.ndarray | None:
    """Return the positions whose labels count.

    Parameters
    ----------
    labels : ndarray of int of shape (n, longest), or of more axes
    ignored : int or None
        The label of missing positions.
    lengths : array of int, or None
    mask : Tensor or array, or None

    Returns
    -------
    ndarray of bool, or None
        None: the positions within lengths.
    """
    keep = None if mask is None else as_mask(mask)
    if ignored is None or not (holes := labels == ignored).any():
        return keep
    if keep is not None and keep.shape != labels.shape:
        return keep  # refused with the scores
    if lengths is None:
        return ~holes if keep is None else keep & ~holes
    if isinstance(lengths, torch.Tensor):
        lengths = lengths.detach().cpu().numpy()
    sizes = np.asarray(lengths)
    if labels.ndim != 2 or sizes.shape != (len(labels),):
        return keep
    inside = np.arange(labels.shape[1]) < sizes[:, None]
    return inside & ~holes if (inside & holes).any() else keep


def by_position(labels: Any, node: Any) -> bool:
    """Return whether padded labels have one for each position of node scores.

    Parameters
    ----------
    labels : ndarray or Tensor
    node : object
        Node scores, with one or two axes for each position.

    Returns
    -------
    bool
    """
    shape = getattr(node, "shape", ())
    return labels.ndim > 1 and labels.shape in (shape[:-1], shape[:-2])


def as_lengths(given: Any) -> torch.Tensor | None:
    """Return lengths, a mask or labels as a tensor, for operators.

    Parameters
    ----------
    given : Tensor, array or list of int, or None

    Returns
    -------
    Tensor or None
        Integers in 64 bits: in eight, 156 is -100, and torch hardly computes with unsigned ones.
    """
    if given is None:
        return None
    tensor = torch.as_tensor(given)
    whole = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
    return tensor.long() if whole else tensor


def kept_positions(labels: Any, ignored: int | None, lengths: Any, mask: Any) -> Any:
    """Return the positions whose labels count, as :func:`known` does, where values are not known.

    Parameters
    ----------
    labels : Tensor of int of shape (n, longest), or of more axes
    ignored : int or None
    lengths, mask : Tensor or None

    Returns
    -------
    Tensor of bool, or None
        None: the positions within lengths.

    Raises
    ------
    ValueError
        If there are lengths and a mask.
    """
    if lengths is not None and mask is not None:
        raise ValueError("mask: expected no lengths beside it, since it determines them")
    if ignored is None or (lengths is not None and (labels.ndim, lengths.ndim) != (2, 1)):
        return None if mask is None else mask != 0
    keep = labels != ignored
    if mask is not None:
        return keep & (mask != 0)
    if lengths is None:
        return keep
    positions = torch.arange(labels.shape[1], device=labels.device)
    return keep & (positions < lengths.to(labels.device)[:, None])


def moved_ahead(node: Any, labels: Any, keep: Any) -> Any:
    """Return a padded batch whose kept positions are the first ones, in their order.

    Parameters
    ----------
    node : Tensor of shape (n, longest, ...)
    labels, keep : Tensor of shape (n, longest)

    Returns
    -------
    node, labels : Tensor
    lengths : Tensor of shape (n,)
    """
    keep = keep.to(node.device)
    order = torch.argsort((~keep).to(torch.uint8), dim=1, stable=True)
    index = order.reshape(*order.shape, *[1] * (node.ndim - 2)).expand_as(node)
    ahead = labels.to(node.device).gather(1, order)
    return node.gather(1, index), ahead, keep.sum(1)
