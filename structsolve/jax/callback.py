"""Calls of functions of NumPy arrays from compiled and mapped functions of JAX.

On the CPU, XLA calls them over its own memory; elsewhere JAX copies arrays to the host and back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from ..batch._xla import handler, number_of

_TARGET = "structsolve_host"
# Where types have the axes of shard_map over which arrays vary.
_AXES = "manual_axis_type" if hasattr(jax.core.ShapedArray, "manual_axis_type") else "vma"
_vary: Any = getattr(jax.lax, "pvary", None)  # before JAX 0.6, types do not have them
if hasattr(jax.lax, "pcast"):
    _vary = partial(jax.lax.pcast, to="varying")


def callback(write: Callable[..., None], like: Any, arrays: Any) -> list[Any]:
    """Call a function of NumPy arrays.

    Parameters
    ----------
    write : callable
        Takes a list of arrays for the results, and one of the arrays, which it may read until it
        returns.  Under ``vmap`` all have one more axis, the first, of size 1 where they are not
        mapped.
    like : sequence of jax.ShapeDtypeStruct
        Types of the results.
    arrays : sequence of array

    Returns
    -------
    list of array
    """
    own = tuple(types(like, arrays))
    if not NATIVE:
        return _elsewhere(*arrays, write=write, like=own)
    return list(_host.bind(*arrays, write=write, like=own))


def types(like: Any, arrays: Any, lead: tuple[int, ...] = ()) -> list[Any]:
    """Return the types of results of a function of arrays.

    Parameters
    ----------
    like : sequence of jax.ShapeDtypeStruct
    arrays : sequence of array, or of their types
    lead : tuple of int, default=()
        Axes before those of each.

    Returns
    -------
    list of jax.core.ShapedArray
    """
    own = {}
    if _axes(*arrays):  # all over the same axes
        first = _type(arrays[0])
        place = NamedSharding(first.sharding.mesh, PartitionSpec())
        own = {_AXES: getattr(first, _AXES), "sharding": place}
    return [jax.core.ShapedArray((*lead, *s.shape), s.dtype, **own) for s in like]


def alike(arrays: Any) -> Any:
    """Let all arrays vary over the axes of ``shard_map`` that one of them varies over.

    Parameters
    ----------
    arrays : pytree of array

    Returns
    -------
    pytree of array
    """
    axes = _axes(*jax.tree.leaves(arrays))

    def vary(a: Any) -> Any:
        rest = tuple(axes - _axes(a))
        return a if not rest else _vary(a, rest)

    return jax.tree.map(vary, arrays) if axes else arrays


def mapped_first(arrays: Any, dims: Any) -> tuple[int, list[Any]]:
    """Return arrays whose first axis is that of ``vmap``, of size 1 where they are not mapped.

    Parameters
    ----------
    arrays : sequence of array
    dims : sequence of int or None
        The mapped axis of each.

    Returns
    -------
    size : int
        Of the mapped axis.
    first : list of array
    """
    size = next(a.shape[d] for a, d in zip(arrays, dims) if d is not None)
    return size, [a[None] if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(arrays, dims)]


def _axes(*arrays: Any) -> frozenset[Any]:
    """Return the axes of ``shard_map`` over which some array varies."""
    if _vary is None:
        return frozenset()
    kinds = [getattr(_type(a), _AXES) for a in arrays]
    return frozenset().union(*(getattr(kind, "varying", kind) for kind in kinds))


def _type(a: Any) -> Any:
    return a if isinstance(a, jax.core.ShapedArray) else jax.typeof(a)


_host = Primitive(_TARGET)
_host.multiple_results = True
_host.def_abstract_eval(lambda *_, write, like: like)


@partial(jax.jit, static_argnames=("write", "like"))
def _compiled(*arrays: Any, write: Any, like: Any) -> Any:
    return _host.bind(*arrays, write=write, like=like)


@_host.def_impl
def _run(*arrays: Any, write: Any, like: Any) -> Any:
    with jax.disable_jit(False):
        return _compiled(*arrays, write=write, like=like)


def _batch(arrays: Any, dims: Any, write: Any, like: Any) -> Any:
    size, first = mapped_first(arrays, dims)
    own = tuple(types(like, first, (size,)))
    return _host.bind(*first, write=write, like=own), [0] * len(like)


def _lower(ctx: Any, *arrays: Any, write: Any, like: Any) -> Any:
    # XLA keeps callbacks as long as what it compiled, which is then stored nowhere.
    ctx.module_context.add_host_callback(write)
    return _rule(ctx, *arrays, function=np.int64(number_of(write)))


def _elsewhere(*arrays: Any, write: Any, like: Any) -> Any:
    def run(*given: np.ndarray) -> list[np.ndarray]:
        lead = np.broadcast_shapes(*(g.shape[: g.ndim - a.ndim] for g, a in zip(given, arrays)))
        out = [np.empty((*lead, *s.shape), s.dtype) for s in like]
        write(out, list(given))
        return out

    return _copied(run, like, arrays)


def _version() -> int:
    """Return the minor version of XLA's interface 0.x."""
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text("utf-8")
    parts = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header))
    if parts.pop("MAJOR") != "0":
        raise ValueError("an interface that we do not know")
    return int(parts["MINOR"])


try:
    import jax.experimental.buffer_callback  # before JAX 0.6, XLA keeps no functions

    jax.ffi.register_ffi_target(_TARGET, handler(_version()), platform="cpu")
    _rule = jax.ffi.ffi_lowering(_TARGET)
except (AttributeError, ImportError, KeyError, OSError, TypeError, ValueError):
    NATIVE = False
else:
    NATIVE = True
    batching.primitive_batchers[_host] = _batch
    mlir.register_lowering(_host, _lower, platform="cpu")
    mlir.register_lowering(_host, mlir.lower_fun(_elsewhere, multiple_results=True))


def _copied(run: Callable[..., list[Any]], like: Any, arrays: Any) -> list[Any]:
    """Call a function by JAX's own callback.

    JAX calls from threads of its own, which do not know of ``jax.enable_x64(True)`` and round
    doubles to single precision, in both directions; so doubles go as pairs of integers.
    """
    wide = [s.dtype == np.float64 for s in like]
    halves = [
        jax.ShapeDtypeStruct((*s.shape, 2), np.uint32) if two else s for s, two in zip(like, wide)
    ]
    kinds = [a.dtype for a in arrays]

    def typed(*given: Any) -> list[np.ndarray]:
        own = [np.asarray(a, order="C") for a in given]
        own = [a.view(t)[..., 0] if t == np.float64 else a for a, t in zip(own, kinds)]
        answers = [np.asarray(a, s.dtype, order="C") for a, s in zip(run(*own), like)]
        return [a[..., None].view(np.uint32) if two else a for a, two in zip(answers, wide)]

    given = [
        jax.lax.bitcast_convert_type(a, jnp.uint32) if a.dtype == np.float64 else a for a in arrays
    ]
    answers = jax.pure_callback(typed, halves, *given, vmap_method="expand_dims")
    return [
        jax.lax.bitcast_convert_type(a, jnp.float64) if two else a for a, two in zip(answers, wide)
    ]
