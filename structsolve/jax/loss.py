"""Losses of structures for networks: every surrogate, by its gradient at given scores."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..batch import value_and_gradient
from ..batch.padded import check_reduction
from .host import Function, Given, call


class StructuredLoss(Function):
    """A surrogate of a structure as a loss of scores that a network computes.

    Parameters
    ----------
    structure : str or Structure
        ``"chain"``, ``"dependency"``, ..., or an object with its settings.
    surrogate : str or surrogate object, default="margin"
        As of :class:`~structsolve.StructuredSVM`: ``"crf"``, ``"sparsemap"``, ``"max-min"``,
        ``"slack"``, ``"probloss"``, ...
    loss : str or loss object, default="hamming"
        The task loss, for surrogates that know one.
    reduction : {"mean", "sum", "none"}, default="mean"
        Over the examples of a batch.
    classes : int or sequence, optional
        How many classes there are, or their names; by default as many as the last axis of the node
        scores has.
    oracle : str or structsolve.lp.Backend, optional
        A solver of linear programs in place of the structure's own oracle.
    n_jobs : int, optional
        Threads of native code; no bit of the loss or its gradient depends on it.

    Notes
    -----
    The value and its gradient are taken in one pass of native code on the CPU, by
    ``jax.pure_callback``: under ``jit`` and ``grad`` as well, and under ``vmap`` one after the
    other.  Without a reduction the gradient is a pass of its own.  Everything inside is double
    precision; values have the type of the node scores.  There are no second derivatives.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from structsolve.jax import StructuredLoss
    >>> loss = StructuredLoss("chain")
    >>> scores = jnp.zeros((2, 3, 2))                           # 2 sentences, 3 words, 2 classes
    >>> labels, lengths = jnp.array([[0, 1, 1], [1, 0, -100]]), jnp.array([3, 2])
    >>> value, gradient = jax.jit(jax.value_and_grad(loss))(scores, labels, lengths)
    >>> float(value), gradient[1].tolist()
    (2.5, [[0.5, -0.5], [-0.5, 0.5], [0.0, 0.0]])
    """

    def __init__(
        self,
        structure: Any,
        surrogate: Any = "margin",
        loss: Any = "hamming",
        reduction: str = "mean",
        classes: Any = None,
        oracle: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(structure, classes, n_jobs)
        check_reduction(reduction)
        self.surrogate, self.loss, self.oracle = surrogate, loss, oracle
        self.reduction = reduction

    def __call__(
        self, scores: Any, labels: Any, lengths: Any = None, examples: Any = None, **graphs: Any
    ) -> jax.Array:
        """Return the loss of a batch.

        Parameters
        ----------
        scores : array or dict of str to array
            As of :class:`structsolve.torch.StructuredLoss`: node scores, (examples, longest, K)
            padded or (rows, K) packed; or a dict of blocks with ``"node"``.
        labels : array of int
            True labels as numbers of classes, of the shape of the node scores without their last
            axis, or packed.  Heads of words count from 1, 0 is the root.
        lengths : array of int, optional
            Size of each example.  What lies beyond is not read.
        examples : Examples, optional
            Sizes and graphs, as ``pack_sizes()`` of the structure's space makes them; then no
            lengths.  Not traced.
        **graphs : object
            What else the structure needs, as its ``pack_sizes()`` takes it: ``trees``, ``edges``.
            Not traced.

        Returns
        -------
        array
            A number; of shape (examples,) without a reduction.

        Raises
        ------
        ValueError
            For shapes that do not fit.  What only native code can tell, such as scores that are
            NaN, is raised by JAX as its ``JaxRuntimeError`` with the same sentence.
        TypeError
            For arrays of another type.
        """
        given = self.given(scores, lengths, examples, graphs)
        labels = jnp.asarray(labels)
        if not jnp.issubdtype(labels.dtype, jnp.integer):
            raise ValueError(
                f"labels: found {labels.dtype}, expected integers, the numbers of classes"
            )
        value = self._reduced if self.reduction != "none" else self._each
        answer: jax.Array = value(given)(given.arrays, labels, given.lengths)
        return answer

    def _host(self, given: Given, labels: Any, lengths: Any, arrays: Any, weights: Any) -> Any:
        """Return values and gradients by the arrays, on the host."""
        batch = given.batch(lengths)
        flat = batch.places.labels(labels).astype(np.int32)
        n = batch.places.examples.n
        if self.reduction == "mean":
            weights = np.full(n, 1 / n)
        values, gradient = value_and_gradient(
            batch.space,
            batch.scores(arrays),
            flat,
            self.surrogate,
            self.loss,
            oracle=self.oracle,
            weights=None if weights is None else np.asarray(weights, np.float64),
            n_jobs=self.n_jobs,
        )
        return values, tuple(batch.arrays(gradient, [a.shape for a in arrays]))

    def _reduced(self, given: Given) -> Any:
        """Return the function of one number; its gradient comes with its value."""
        like = given.like()

        def both(arrays: Any, labels: Any, lengths: Any) -> Any:
            def host(labels: Any, lengths: Any, *arrays: Any) -> Any:
                values, gradients = self._host(given, labels, lengths, arrays, None)
                total = values.mean() if self.reduction == "mean" else values.sum()
                return total, gradients

            number = jax.ShapeDtypeStruct((), arrays[0].dtype)
            return call(host, (number, like), labels, lengths, *arrays)

        @jax.custom_vjp
        def value(arrays: Any, labels: Any, lengths: Any) -> Any:
            return both(arrays, labels, lengths)[0]

        def backward(gradients: Any, factor: Any) -> Any:
            return tuple((g * factor).astype(g.dtype) for g in gradients), None, None

        value.defvjp(both, backward)
        return value

    def _each(self, given: Given) -> Any:
        """Return the function of a value for each example; its gradient is a call of its own."""
        like, n = given.like(), given.n

        def values(arrays: Any, labels: Any, lengths: Any) -> Any:
            def host(labels: Any, lengths: Any, *arrays: Any) -> Any:
                return self._host(given, labels, lengths, arrays, None)[0]

            each = jax.ShapeDtypeStruct((n,), arrays[0].dtype)
            return call(host, each, labels, lengths, *arrays)

        def forward(arrays: Any, labels: Any, lengths: Any) -> Any:
            return values(arrays, labels, lengths), (arrays, labels, lengths)

        def backward(kept: Any, factors: Any) -> Any:
            def host(labels: Any, lengths: Any, factors: Any, *arrays: Any) -> Any:
                return self._host(given, labels, lengths, arrays, factors)[1]

            arrays, labels, lengths = kept
            return call(host, like, labels, lengths, factors, *arrays), None, None

        value = jax.custom_vjp(values)
        value.defvjp(forward, backward)
        return value
