"""Base of all functions: checks of a batch of arrays, and calls of native code on the host."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import registry
from ..batch.padded import Batch, Batches


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
        if isinstance(structure, str):
            structure = registry.default().make("structures", structure)
        self.structure, self.classes, self.n_jobs = structure, classes, n_jobs
        self._batches = Batches(structure, classes)

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
        self.lengths = None if lengths is None else jnp.asarray(lengths)
        self._batches, self._examples, self._graphs = batches, examples, graphs
        if not isinstance(self.lengths, jax.core.Tracer):
            self.batch(self.lengths)  # raises errors before the call

    def batch(self, lengths: Any) -> Batch:
        """Return the batch with the positions of rows, for known lengths.

        Parameters
        ----------
        lengths : array or None

        Returns
        -------
        Batch
        """
        known = None if lengths is None else np.asarray(lengths)
        return self._batches.read(self.shapes, known, self._examples, **self._graphs)

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

    def read(self, residuals: Any) -> tuple[Any, Any, Any]:
        """Return labels, lengths and arrays from the result of :meth:`residuals`.

        Parameters
        ----------
        residuals : sequence of array
            More may follow.

        Returns
        -------
        labels : array
        lengths : array or None
        arrays : list of array
        """
        labels, *rest = residuals
        lengths = None if self.lengths is None else rest.pop(0)
        return labels, lengths, rest

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
        return [jnp.zeros_like(a) if t is None else t for t, a in zip(own, self.arrays)]

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


def call(host: Any, like: Any, *arrays: Any) -> Any:
    """Call native code on the host, also from compiled and mapped functions.

    Parameters
    ----------
    host : callable
        Takes and returns NumPy arrays.
    like : pytree of jax.ShapeDtypeStruct
        Types of the result.
    *arrays : array or None

    Returns
    -------
    pytree of array
    """

    def run(*given: Any) -> Any:
        answer = host(*(None if a is None else np.asarray(a) for a in given))
        return jax.tree.map(lambda a, shape: np.asarray(a, shape.dtype), answer, like)

    return jax.pure_callback(run, like, *arrays, vmap_method="sequential")


def _array(array: Any, name: str) -> Any:
    """Return scores as a JAX array of floats, of 32 or 64 bits."""
    if not hasattr(array, "dtype") or not jnp.issubdtype(array.dtype, jnp.floating):
        kind = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"scores: the block {name!r} is {kind}, expected an array of floats")
    array = jnp.asarray(array)
    return array if array.dtype in (jnp.float32, jnp.float64) else array.astype(jnp.float32)
