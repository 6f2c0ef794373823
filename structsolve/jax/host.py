"""Base of all functions: checks of a batch of arrays, and calls of native code on the host."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import registry
from ..batch.padded import Batch, Batches
from ..utils.suggest import a_type
from .callback import alike, callback
from .mapped import Mapped, one_by_one

#: Numbers of shared blocks' gradients that may be kept for each example.
MOST_APART = 1 << 20


class Function:
    """A function over a structure; caches by shape.

    Parameters
    ----------
    structure : str or Structure
    classes : int or sequence, optional
        Number of classes, or their names; by default the length of the last axis of the node
        scores.
    n_jobs : int, optional
        Threads of native code; results do not depend on it, bit for bit.
    """

    def __init__(self, structure: Any, classes: Any = None, n_jobs: int | None = None):
        structure = registry.get_structure(structure)
        self.structure, self.classes, self.n_jobs = structure, classes, n_jobs
        self._batches = Batches(structure, classes)
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_compiled": {}}

    def given(self, scores: Any, lengths: Any, examples: Any, graphs: dict[str, Any]) -> Given:
        """Check the shapes of a batch of scores.

        Parameters
        ----------
        scores : array or dict of str to array
        lengths : array or list of int, or None
        examples : Examples or None
        graphs : dict of str to object

        Returns
        -------
        Given

        Raises
        ------
        ValueError, TypeError
            If they do not fit.
        """
        return Given(self._batches, scores, lengths, examples, graphs)

    def compiled(self, key: Any, function: Callable[..., Any], given: Given, *more: Any) -> Any:
        """Call ``function(given, *more)``, which is compiled once for batches of one form.

        Parameters
        ----------
        key : hashable
            Equal for functions that do the same.
        function : callable
        given : Given
        *more : pytree of array

        Returns
        -------
        pytree of array
        """
        given.arrays, given.lengths, more = alike((given.arrays, given.lengths, more))
        if not given.free:
            return function(given, *more)

        def run(scores: Any, lengths: Any, *more: Any) -> Any:
            return function(self.given(scores, lengths, None, {}), *more)

        known = self._compiled.setdefault(key, jax.jit(run, inline=True))
        return known(given.in_form(given.arrays), given.lengths, *more)


class Given:
    """A batch whose arrays may be traced: then only their shapes are known.

    Parameters
    ----------
    batches : Batches
    scores : array or dict of str to array
    lengths : array or list of int, or None
        Traced lengths are only known when native code is called.
    examples : Examples or None
    graphs : dict of str to object

    Attributes
    ----------
    arrays : tuple of array
        The scores.
    lengths : array or None
    """

    def __init__(
        self, batches: Batches, scores: Any, lengths: Any, examples: Any, graphs: dict[str, Any]
    ):
        self.plain = not isinstance(scores, dict)
        named = {"node": scores} if self.plain else scores
        self.arrays = tuple(_array(array, name) for name, array in named.items())
        self.shapes = {name: array.shape for name, array in zip(named, self.arrays)}
        self.lengths = None if lengths is None else as_array(lengths, "lengths")
        self._batches, self._examples, self._graphs = batches, examples, graphs
        if not isinstance(self.lengths, jax.core.Tracer):
            self.batch(self.lengths)  # raises errors before the call

    def batch(self, lengths: Any, many: int = 1) -> Batch:
        """Return the batch with the positions of rows, for known lengths.

        Parameters
        ----------
        lengths : array or None
        many : int, default=1
            How many such batches it holds.

        Returns
        -------
        Batch
        """
        known = None if lengths is None else np.asarray(lengths)
        shapes = self.shapes
        if many != 1:
            shapes = {
                name: shape if shared else (many * shape[0], *shape[1:])
                for (name, shape), shared in zip(shapes.items(), self.shared)
            }
        return self._batches.read(shapes, known, self._examples, **self._graphs)

    def host(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a host function that takes the mapped axes of ``vmap``.

        Parameters
        ----------
        function : callable
            Takes a :class:`Mapped` batch and arrays; lengths are the first.

        Returns
        -------
        callable
        """

        # Without mapped axes and lengths all calls have the same; here are those that none has now.
        free: list[Mapped] = []

        def run(lead: tuple[int, ...], lengths: Any, *args: Any, out: Any = None) -> Any:
            if lead or lengths is not None:
                return function(Mapped(self, lead, lengths), *args)
            try:
                batch = free.pop()
            except IndexError:
                batch = Mapped(self, lead, lengths)
            batch.out = out
            answer = function(batch, *args)
            free.append(batch)  # not after an error
            return answer

        # Native code has no examples of given graphs but these.
        return run if self._examples is None and not self._graphs else one_by_one(run)

    @property
    def free(self) -> bool:
        """Whether all that native code needs to know may come with its call."""
        lead = self._batches.lead(self.shapes)
        packed = self.lengths is not None and lead is not None and len(lead) == 1
        return self._examples is None and not self._graphs and not packed

    @property
    def n(self) -> int:
        """The number of examples."""
        if self.lengths is not None:
            return len(self.lengths)
        if self._examples is not None:
            return int(self._examples.n)
        return int(self.shapes.get("node", self.arrays[0].shape)[0])

    @property
    def shared(self) -> list[bool]:
        """Whether each array is a block that all examples share."""
        blocks = self._batches.layout(self.shapes).blocks
        kinds = {block.name: block.kind for block in blocks}
        return [kinds.get(name) == "shared" for name in self.shapes]

    def like(self) -> tuple[Any, ...]:
        """Return shapes and types of the scores, for callbacks.

        Returns
        -------
        tuple of jax.ShapeDtypeStruct
        """
        return tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self.arrays)

    @property
    def apart(self) -> bool:
        """Whether gradients of each example fit beside its scores: padded rows, no large blocks."""
        lead, each = self._batches.lead(self.shapes), 0
        for shape, shared in zip(self.shapes.values(), self.shared):
            each += prod(shape) * self.n if shared else 0
        many = len(self.shapes) - sum(self.shared)  # rows of edges may be packed
        return lead is not None and len(lead) > 1 and many == 1 and each <= MOST_APART

    def each(self) -> tuple[Any, ...]:
        """Return :meth:`like`, but shared blocks with one array for each example.

        Returns
        -------
        tuple of jax.ShapeDtypeStruct
        """
        sizes = {block.name: len(block.shape) for block in self._batches.layout(self.shapes).blocks}
        return tuple(
            jax.ShapeDtypeStruct((self.n, *a.shape), a.dtype)
            if shared and a.ndim == sizes[name]  # else it has one for each example already
            else a
            for name, a, shared in zip(self.shapes, self.like(), self.shared)
        )

    def residuals(self, labels: Any, lengths: Any, arrays: Any) -> tuple[Any, ...]:
        """Return all arrays that derivatives depend on.

        Parameters
        ----------
        labels : array
        lengths : array or None
        arrays : sequence of array

        Returns
        -------
        tuple of array
        """
        return (*(a for a in (labels, lengths) if a is not None), *arrays)

    def linear(self, function: Callable[..., Any], labelled: bool = True) -> Callable[..., Any]:
        """Return a side of :class:`Linear` on the host; see :meth:`host`.

        Parameters
        ----------
        function : callable
            Takes a :class:`Mapped` batch, labels, scores, further residuals and arrays.
        labelled : bool, default=True
            There are labels among the residuals.

        Returns
        -------
        callable
            Takes sizes of mapped axes, what :meth:`residuals` returned, and arrays.
        """
        run, many = self.host(function), len(self.arrays)

        def side(lead: tuple[int, ...], residuals: Any, arrays: Any, out: Any) -> Any:
            rest = list(residuals)
            labels = rest.pop(0) if labelled else None
            lengths = None if self.lengths is None else rest.pop(0)
            return run(lead, lengths, labels, rest[:many], rest[many:], list(arrays), out=out)

        return side

    def moves(self, tangents: Any) -> list[Any]:
        """Return tangents of the scores from those of residuals; None is 0.

        Parameters
        ----------
        tangents : sequence of array or None

        Returns
        -------
        list of array
        """
        own = tangents[len(tangents) - len(self.arrays) :]
        return [jnp.zeros(a.shape, a.dtype) if t is None else t for t, a in zip(own, self.arrays)]

    def in_form(self, arrays: Any) -> Any:
        """Return arrays in the users' form: one array, or a dict by block.

        Parameters
        ----------
        arrays : sequence of array

        Returns
        -------
        array or dict of str to array
        """
        return arrays[0] if self.plain else dict(zip(self.shapes, arrays))


def call(host: Any, like: Any, *arrays: Any, mapped: int = 0) -> Any:
    """Call native code on the host, also from compiled and mapped functions.

    Parameters
    ----------
    host : callable
        Takes the sizes of mapped axes, NumPy arrays, and ``out``: arrays that it may write to and
        return.  It returns an array, or a sequence of them.  Under ``vmap`` there is one call for
        all batches: all arrays have the mapped axes first, of size 1 where they are not mapped.
    like : pytree of jax.ShapeDtypeStruct
        Types of the result.
    *arrays : array or None
    mapped : int, default=0
        Number of mapped axes that the arrays have already.

    Returns
    -------
    pytree of array
    """
    axes: list[Any] = [None if a is None else a.ndim - mapped for a in arrays]
    missing = [k for k, axis in enumerate(axes) if axis is None]
    least = next(axis for axis in axes if axis is not None)
    leaves, form = jax.tree.flatten(like)

    def write(out: list[np.ndarray], given: list[np.ndarray]) -> None:
        own: list[Any] = [*given]
        for k in missing:
            own.insert(k, None)
        lead: tuple[int, ...] = ()
        if given[0].ndim > least:
            sizes = [a.shape[: a.ndim - axis] for a, axis in zip(own, axes) if a is not None]
            lead = np.broadcast_shapes(*sizes)
        answer = host(lead, *own, out=out)
        for place, array in zip(out, (answer,) if isinstance(answer, np.ndarray) else answer):
            if array is not place:
                place[...] = array

    return form.unflatten(callback(write, leaves, [a for a in arrays if a is not None]))


def _array(array: Any, name: str) -> Any:
    """Return scores as a JAX array of floats, of 32 or 64 bits."""
    if not hasattr(array, "dtype") or not jnp.issubdtype(array.dtype, jnp.floating):
        kind = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"scores: the block {name!r} is {kind}, expected an array of floats")
    array = as_array(array, f"scores: the block {name!r}")
    return array if array.dtype in (jnp.float32, jnp.float64) else array.astype(jnp.float32)


def as_array(given: Any, name: str) -> Any:
    """Return an argument as a JAX array.

    Parameters
    ----------
    given : array
    name : str
        For the message.

    Returns
    -------
    array

    Raises
    ------
    TypeError
        For what JAX takes for no array.
    """
    try:
        return jnp.asarray(given)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {a_type(given)}, expected an array of numbers") from None
