"""Linear functions in native code, with their transposes, for derivatives of any mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .callback import mapped_first, types
from .host import call


@dataclass(eq=False)
class Linear:
    """A function of arrays that is linear in some of them; the others are residuals.

    Parameters
    ----------
    forward, backward : callable
        On the host: ``(lead, residuals, arrays, out)`` to a tuple of arrays, which may be those of
        out; each is the other's transpose.  lead are the sizes of the axes of ``vmap``, which all
        arrays have first; residuals may have 1.
    like_in, like_out : tuple of jax.ShapeDtypeStruct
        Types of the arrays on both sides.
    why : str
        Error message for missing derivatives by a residual.
    moved, moved_back : callable, optional
        ``(residuals, tangents, arrays)`` to the derivative of both by the residuals; zero tangents
        are None.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
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
        return tuple(_linear.bind(*args, op=self, back=False, lead=()))


_linear = Primitive("structsolve_linear")
_linear.multiple_results = True


def _sides(op: Linear, back: bool) -> tuple[Any, Any]:
    return (op.like_out, op.like_in) if back else (op.like_in, op.like_out)


def _split(args: Any, op: Linear, back: bool) -> tuple[list[Any], list[Any]]:
    many = len(args) - len(_sides(op, back)[0])
    return list(args[:many]), list(args[many:])


@_linear.def_impl
def _run(*args: Any, op: Linear, back: bool, lead: tuple[int, ...]) -> Any:
    many = len(args) - len(_sides(op, back)[0])
    host = op.backward if back else op.forward
    like = tuple(jax.ShapeDtypeStruct((*lead, *s.shape), s.dtype) for s in _sides(op, back)[1])

    def run(lead: Any, *a: Any, out: Any) -> Any:
        return host(lead, a[:many], a[many:], out)

    return list(call(run, like, *args, mapped=len(lead)))


@_linear.def_abstract_eval
def _shapes(*args: Any, op: Linear, back: bool, lead: tuple[int, ...]) -> Any:
    return types(_sides(op, back)[1], args, lead)


def _jvp(args: Any, tangents: Any, op: Linear, back: bool, lead: tuple[int, ...]) -> Any:
    out = _linear.bind(*args, op=op, back=back, lead=lead)
    residuals, arrays = _split(args, op, back)
    by_residuals, by_arrays = _split(tangents, op, back)
    moves = []
    if not all(type(t) is ad.Zero for t in by_arrays):
        given = [ad.instantiate_zeros(t) for t in by_arrays]
        moves.append(_linear.bind(*residuals, *given, op=op, back=back, lead=lead))
    # Integers have no tangents; those of arrays must not be lost.
    known = [None if _is_zero(t) else t for t in by_residuals]
    if any(t is not None for t in known):
        moved = op.moved_back if back else op.moved
        if moved is None:
            raise NotImplementedError(op.why)
        moves.append(_mapped(moved, (residuals, known, arrays), lead))
    if not moves:
        return out, [ad.Zero.from_primal_value(o) for o in out]
    return out, [sum(each[1:], each[0]) for each in zip(*moves)]


def _mapped(function: Any, args: Any, lead: tuple[int, ...]) -> Any:
    """Call a function of one batch for the batches of all mapped axes."""
    if not lead:
        return function(*args)
    once = [[a is not None and a.shape[0] < lead[0] for a in some] for some in args]
    own = [[a[0] if o else a for a, o in zip(some, flags)] for some, flags in zip(args, once)]
    axes = [[None if o or a is None else 0 for a, o in zip(*two)] for two in zip(args, once)]
    return jax.vmap(lambda *some: _mapped(function, some, lead[1:]), tuple(axes))(*own)


def _is_zero(tangent: Any) -> bool:
    return type(tangent) is ad.Zero or tangent.dtype == jax.dtypes.float0


def _transpose(cotangents: Any, *args: Any, op: Linear, back: bool, lead: tuple[int, ...]) -> Any:
    residuals, arrays = _split(args, op, back)
    if any(ad.is_undefined_primal(r) for r in residuals):
        raise NotImplementedError(op.why)
    given = [ad.instantiate_zeros(c) for c in cotangents]
    answer = _linear.bind(*residuals, *given, op=op, back=not back, lead=lead)
    return [None] * len(residuals) + list(answer)


def _batch(args: Any, dims: Any, op: Linear, back: bool, lead: tuple[int, ...]) -> Any:
    size, first = mapped_first(args, dims)
    residuals, arrays = _split(first, op, back)
    arrays = [jnp.broadcast_to(a, (size, *a.shape[1:])) for a in arrays]
    answer = _linear.bind(*residuals, *arrays, op=op, back=back, lead=(size, *lead))
    return answer, [0] * len(answer)


ad.primitive_jvps[_linear] = _jvp
ad.primitive_transposes[_linear] = _transpose
batching.primitive_batchers[_linear] = _batch
mlir.register_lowering(_linear, mlir.lower_fun(_run, multiple_results=True))
