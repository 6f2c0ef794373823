"""The batches of ``vmap`` as one batch: leading axes of arrays become examples."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import numpy as np


class Mapped:
    """All batches of one host call, as one batch of native code.

    Parameters
    ----------
    given : Given
        One of the batches.
    lead : tuple of int
        Sizes of the mapped axes; () without ``vmap``.
    lengths : ndarray or None
        All arrays have the mapped axes first, of these sizes or 1.

    Attributes
    ----------
    batch : Batch
        With ``prod(lead)`` times as many examples.
    kept : dict
        What the function that has this batch keeps from call to call.
    out : list of ndarray, or None
        Arrays of the results.
    """

    def __init__(self, given: Any, lead: tuple[int, ...], lengths: Any):
        self.lead, self.shapes = lead, tuple(given.shapes.values())
        self.kept: dict[Any, Any] = {}
        self.out: Any = None
        flat = None if lengths is None else self.rows(lengths)
        self.batch = given.batch(flat, prod(lead))
        self.blocks = self.batch.blocks
        #: Number of examples of one batch.
        self.n = self.batch.places.examples.n // max(prod(lead), 1)

    def rows(self, array: Any) -> np.ndarray:
        """Return an array whose mapped axes are part of its first axis.

        Parameters
        ----------
        array : ndarray

        Returns
        -------
        ndarray
        """
        if not self.lead:
            return np.asarray(array)
        own = array.shape[len(self.lead) :]
        wide = np.broadcast_to(array, (*self.lead, *own))
        return wide.reshape(prod(self.lead) * own[0], *own[1:])

    def labels(self, labels: Any) -> np.ndarray:
        """Return true labels, one after the other.

        Parameters
        ----------
        labels : ndarray of int

        Returns
        -------
        ndarray of int32
        """
        return self.batch.places.labels(self.rows(labels)).astype(np.int32)

    def arrays(self, arrays: Any) -> list[np.ndarray]:
        """Return arrays in the form of the scores for the one batch.

        Parameters
        ----------
        arrays : sequence of ndarray
            Shared blocks may have one array for each example.

        Returns
        -------
        list of ndarray
            Shared blocks are those of each example if they differ between the batches.
        """
        k, answer = len(self.lead), []
        if not k:
            return list(arrays)
        for block, array in zip(self.blocks, arrays):
            own = array.shape[k:]
            if block.kind != "shared" or len(own) > len(block.shape):
                answer.append(self.rows(array))
            elif array.shape[:k] == (1,) * k:
                answer.append(array.reshape(own))
            else:
                wide = np.broadcast_to(array, (*self.lead, *own)).reshape(-1, 1, *own)
                every = np.broadcast_to(wide, (len(wide), self.n, *own))
                answer.append(every.reshape(-1, *own))
        return answer

    def target(self, first: int = 0) -> Any:
        """Return where native code may write results in the form of the scores.

        Parameters
        ----------
        first : int, default=0
            Their first array in ``out``.

        Returns
        -------
        (Batch, list of ndarray), or None
        """
        if self.out is None or not self.batch.places.whole:
            return None
        return self.batch, self.out[first : first + len(self.blocks)]

    def scores(self, arrays: Any) -> Any:
        """Return arrays as scores for native code.

        Parameters
        ----------
        arrays : sequence of ndarray

        Returns
        -------
        Scores
        """
        return self.batch.scores(self.arrays(arrays))

    def apart(self, answer: Any, each: bool) -> tuple[np.ndarray, ...]:
        """Return the arrays of every batch from those of the one.

        Parameters
        ----------
        answer : Scores
            If there are mapped axes, its shared blocks are those of each example.
        each : bool
            They remain so; else they are sums.

        Returns
        -------
        tuple of ndarray
        """
        arrays: list[Any] = self.parts(answer)
        if not self.lead:
            return tuple(arrays)
        for k, (block, array, shape) in enumerate(zip(self.blocks, arrays, self.shapes)):
            if block.kind != "shared" or len(shape) > len(block.shape):
                arrays[k] = array.reshape(*self.lead, *shape)
            else:
                array = array.reshape(*self.lead, self.n, *shape)
                arrays[k] = array if each else array.sum(len(self.lead))
        return tuple(arrays)

    def parts(self, answer: Any) -> list[np.ndarray]:
        """Return native code's answer in the form of :meth:`arrays`.

        Parameters
        ----------
        answer : Scores

        Returns
        -------
        list of ndarray
        """
        shapes = [(prod(self.lead) * shape[0], *shape[1:]) for shape in self.shapes]
        return self.batch.arrays(answer, shapes)

    def inner(self, parts: Any, arrays: Any) -> np.ndarray:
        """Return ``<part, array>`` of every example.

        Parameters
        ----------
        parts : Scores
            Native code's answer; its shared blocks are those of each example.
        arrays : sequence of ndarray

        Returns
        -------
        ndarray of shape (..., n)
        """
        return self.numbers(self.batch.inner(self.parts(parts), self.arrays(arrays)))

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """Return numbers of the examples of every batch.

        Parameters
        ----------
        values : ndarray of shape (all examples,)

        Returns
        -------
        ndarray of shape (..., n)
        """
        return values.reshape(*self.lead, self.n) if self.lead else values


def one_by_one(host: Callable[..., Any]) -> Callable[..., Any]:
    """Return a host function that takes the batches of ``vmap`` in sequence, for given graphs.

    Parameters
    ----------
    host : callable
        Takes the sizes of mapped axes, and arrays.

    Returns
    -------
    callable
    """

    def run(lead: tuple[int, ...], *args: Any, out: Any = None) -> Any:
        if not lead:
            return host(lead, *args, out=out)
        answers = []
        for index in np.ndindex(*lead):

            def own(array: Any, index: Any = index) -> Any:
                return array[tuple(min(i, s - 1) for i, s in zip(index, array.shape))]

            answers.append(host((), *jax.tree.map(own, args)))
        return jax.tree.map(lambda *a: np.stack(a).reshape((*lead, *np.shape(a[0]))), *answers)

    return run
