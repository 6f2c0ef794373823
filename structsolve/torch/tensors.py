"""Tensors of scores as arrays for native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch._C import _functorch

#: Types of scores that native code reads directly; others are converted to float32.
DOUBLES = (torch.float32, torch.float64)

# Checks for transformed tensors; older torch lacks some.
_TELL = ("is_functorch_wrapped_tensor", "is_legacy_batchedtensor")
_TRANSFORMED = [getattr(_functorch, name) for name in _TELL if hasattr(_functorch, name)]


def checked_dtype(tensor: Any, name: str) -> torch.dtype:
    """Return the type of a block's scores.

    Parameters
    ----------
    tensor : Tensor
    name : str
        Of the block, for the message.

    Returns
    -------
    dtype

    Raises
    ------
    TypeError
        For anything but a tensor of floats.
    """
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
        kind = tensor.dtype if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise TypeError(f"scores: the block {name!r} is {kind}, expected a tensor of floats")
    return tensor.dtype


def as_array(tensor: torch.Tensor, label: str = "a layer") -> np.ndarray:
    """Return a tensor of floats as a contiguous array, if possible without a copy.

    Parameters
    ----------
    tensor : Tensor
    label : str
        Name of the layer, for messages.

    Returns
    -------
    ndarray of float32 or float64

    Raises
    ------
    NotImplementedError
        See :func:`refuse_transformed`.
    """
    refuse_transformed(tensor, label)
    if tensor.dtype not in DOUBLES:
        tensor = tensor.float()
    array: np.ndarray = tensor.contiguous().numpy(force=True)
    return array


def is_transformed(tensor: Any) -> bool:
    """Return whether a tensor is one of torch.func, vmap or vectorize=True.

    Parameters
    ----------
    tensor : object

    Returns
    -------
    bool
    """
    return isinstance(tensor, torch.Tensor) and any(tells(tensor) for tells in _TRANSFORMED)


def refuse_transformed(tensor: Any, label: str) -> None:
    """Refuse the transformed tensors of torch.func, vmap and vectorize=True.

    Parameters
    ----------
    tensor : object
    label : str
        Name of the layer, for messages.

    Raises
    ------
    NotImplementedError
    """
    if is_transformed(tensor):
        raise NotImplementedError(
            f"{label} takes tensors of numbers, not those of torch.func, vmap and vectorize=True; "
            "use torch.autograd.grad, with create_graph=True for second derivatives"
        )
