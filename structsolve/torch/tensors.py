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
        For anything but a dense tensor of floats.
    """
    given = isinstance(tensor, torch.Tensor)
    dense = given and tensor.layout == torch.strided
    if not dense or not tensor.is_floating_point():
        kind = tensor.dtype if dense else tensor.layout if given else type(tensor).__name__
        raise TypeError(f"scores: the block {name!r} is {kind}, expected a tensor of floats")
    return tensor.dtype


def as_arrays(tensors: Any, label: str = "a layer") -> list[np.ndarray]:
    """Return tensors of floats as contiguous arrays, if possible without a copy.

    Parameters
    ----------
    tensors : iterable of Tensor
        Those of a GPU are copied to pinned memory, all at once.
    label : str
        Name of the layer, for messages.

    Returns
    -------
    list of ndarray of float32 or float64

    Raises
    ------
    NotImplementedError
        See :func:`refuse_transformed`.
    """
    hosts, devices = [], set()
    for tensor in tensors:
        refuse_transformed(tensor, label)
        if tensor.dtype not in DOUBLES:
            tensor = tensor.float()
        if _on_gpu(tensor):
            devices.add(tensor.device)
            tensor = _pinned_like(tensor).copy_(tensor.detach(), non_blocking=True)
        hosts.append(tensor.contiguous())
    for device in devices:
        torch.cuda.current_stream(device).synchronize()
    return [tensor.numpy(force=True) for tensor in hosts]


def as_tensor(array: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    """Return an array as a tensor of another's type, on its device.

    Parameters
    ----------
    array : ndarray
    like : Tensor

    Returns
    -------
    Tensor
        To a GPU, the copy from pinned memory goes on while the host does.
    """
    tensor = torch.from_numpy(array)
    if like.is_cpu and tensor.dtype == like.dtype:
        return tensor
    if _on_gpu(like):
        tensor = _pinned_like(tensor).copy_(tensor)
    return tensor.to(like.device, like.dtype, non_blocking=_on_gpu(like))


def _on_gpu(tensor: torch.Tensor) -> bool:
    return tensor.is_cuda


def _pinned_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)


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
