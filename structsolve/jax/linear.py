"""Linear functions in native code, with their transposes, for derivatives of any mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .host import call


@dataclass(eq=False)
class Linear:
    """A function of arrays that is linear in some of them; the others are residuals.

    Parameters
    ----------
    forward, backward : callable
        On the host: ``(residuals, arrays)`` to arrays; each is the other's transpose.
    like_in, like_out : tuple of jax.ShapeDtypeStruct
        Types of the arrays on both sides.
    why : str
        Error message for missing derivatives by a residual.
    moved, moved_back : callable, optional
        ``(residuals, tangents, arrays)`` to the derivative of both by the residuals; zero tangents
        are None.
    """

    forward: Callable[[Any, Any], Any]
    backward: Callable[[Any, Any], Any]
    like_in: tuple[Any, ...]
    like_out: tuple[Any, ...]
    why: str
    moved: Callable[[Any, Any, Any], Any] | None = None
    moved_back: Callable[[Any, Any, Any], Any] | None = None

    def __call__(self, residuals: Any, arrays: Any) -> tuple[Any, ...]:
        """Return the function's value.

        Parameters
        ----------
        residuals, arrays : sequence of array

        Returns
        -------
        tuple of array
        """
        args = (*residuals, *(a.astype(s.dtype) for a, s in zip(arrays, self.like_in)))
        return tuple(_linear.bind(*args, op=self, back=False))


_linear = Primitive("structsolve_linear")
_linear.multiple_results = True


def _sides(op: Linear, back: bool) -> tuple[Any, Any]:
    return (op.like_out, op.like_in) if back else (op.like_in, op.like_out)


def _split(args: Any, op: Linear, back: bool) -> tuple[list[Any], list[Any]]:
    many = len(args) - len(_sides(op, back)[0])
    return list(args[:many]), list(args[many:])


@_linear.def_impl
def _run(*args: Any, op: Linear, back: bool) -> Any:
    many = len(args) - len(_sides(op, back)[0])
    host = op.backward if back else op.forward
    answer = call(lambda *a: tuple(host(a[:many], a[many:])), _sides(op, back)[1], *args)
    return list(answer)


@_linear.def_abstract_eval
def _shapes(*_: Any, op: Linear, back: bool) -> Any:
    return [jax.core.ShapedArray(s.shape, s.dtype) for s in _sides(op, back)[1]]


def _jvp(args: Any, tangents: Any, op: Linear, back: bool) -> Any:
    out = _linear.bind(*args, op=op, back=back)
    residuals, arrays = _split(args, op, back)
    by_residuals, by_arrays = _split(tangents, op, back)
    moves = []
    if not all(type(t) is ad.Zero for t in by_arrays):
        given = [ad.instantiate_zeros(t) for t in by_arrays]
        moves.append(_linear.bind(*residuals, *given, op=op, back=back))
    # Integers have no tangents; those of arrays must not be lost.
    known = [None if _is_zero(t) else t for t in by_residuals]
    if any(t is not None for t in known):
        moved = op.moved_back if back else op.moved
        if moved is None:
            raise NotImplementedError(op.why)
        moves.append(moved(residuals, known, arrays))
    if not moves:
        return out, [ad.Zero.from_primal_value(o) for o in out]
    return out, [sum(each[1:], each[0]) for each in zip(*moves)]


def _is_zero(tangent: Any) -> bool:
    return type(tangent) is ad.Zero or tangent.dtype == jax.dtypes.float0


def _transpose(cotangents: Any, *args: Any, op: Linear, back: bool) -> Any:
    residuals, arrays = _split(args, op, back)
    if any(ad.is_undefined_primal(r) for r in residuals):
        raise NotImplementedError(op.why)
    given = [ad.instantiate_zeros(c) for c in cotangents]
    answer = _linear.bind(*residuals, *given, op=op, back=not back)
    return [None] * len(residuals) + list(answer)


def _batch(args: Any, dims: Any, op: Linear, back: bool) -> Any:
    mapped = [jnp.moveaxis(a, d, 0) for a, d in zip(args, dims) if d is not None]

    def one(each: Any) -> Any:
        own = iter(each)
        every = [a if d is None else next(own) for a, d in zip(args, dims)]
        return tuple(_linear.bind(*every, op=op, back=back))

    answer = jax.lax.map(one, tuple(mapped))  # sequential, like all callbacks
    return list(answer), [0] * len(answer)


ad.primitive_jvps[_linear] = _jvp
ad.primitive_transposes[_linear] = _transpose
batching.primitive_batchers[_linear] = _batch
mlir.register_lowering(_linear, mlir.lower_fun(_run, multiple_results=True))
