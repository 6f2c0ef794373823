"""Losses of structures for networks: every surrogate, by its gradient at given scores."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..batch import value_and_gradient
from ..batch.padded import check_reduction
from ..batch.products import jacobian_product, smooth_projection
from .host import Function, Given, call
from .linear import Linear


class StructuredLoss(Function):
    """A surrogate of a structure as a loss of a network's scores.

    Parameters
    ----------
    structure : str or Structure
        ``"chain"``, ``"dependency"``, ..., or an object with its settings.
    surrogate : str or surrogate object, default="margin"
        See :class:`~structsolve.StructuredSVM`: ``"crf"``, ``"sparsemap"``, ``"max-min"``,
        ``"slack"``, ``"probloss"``, ...
    loss : str or loss object, default="hamming"
        The task loss, for surrogates that use one.
    reduction : {"mean", "sum", "none"}, default="mean"
        Over the examples of a batch.
    classes : int or sequence, optional
        Number of classes, or their names; by default the length of the last axis of the node
        scores.
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads of native code; results do not depend on it, bit for bit.

    Notes
    -----
    The value and its gradient are computed in one pass of native code on the CPU, by
    ``jax.pure_callback``: also under ``jit`` and ``grad``, and under ``vmap`` sequentially.
    Without a reduction the gradient needs another pass.  Computations use double precision; values
    have the type of the node scores, float32 for half precision.  Second derivatives, forward and
    backward, are products with the Jacobian of the marginals, for ``"crf"`` and ``"sparsemap"`` if
    the structure has it; otherwise, and for third derivatives, they raise.

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
            See :class:`structsolve.torch.StructuredLoss`: node scores, (examples, longest, K)
            padded or (rows, K) packed; or a dict of blocks with ``"node"``.
        labels : array of int
            True labels as numbers of classes, of the shape of the node scores without their last
            axis, or packed.  Heads of words count from 1, 0 is the root.
        lengths : array of int, optional
            Size of each example.  Rows beyond are not read.
        examples : Examples, optional
            Sizes and graphs, as ``pack_sizes()`` of the structure's space makes them; then no
            lengths.  Not traced.
        **graphs : object
            Further arguments that the structure's ``pack_sizes()`` takes: ``trees``, ``edges``.
            Not traced.

        Returns
        -------
        array
            A number; of shape (examples,) without a reduction.

        Raises
        ------
        ValueError
            For shapes that do not fit.  Errors that only native code finds, such as NaN scores, are
            raised by JAX as ``JaxRuntimeError`` with the same message.
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

    def _host(
        self, given: Given, labels: Any, lengths: Any, arrays: Any, weights: Any, each: bool = False
    ) -> Any:
        """Return values and gradients by the arrays, on the host."""
        batch = given.batch(lengths)
        flat = batch.places.labels(labels).astype(np.int32)
        values, gradient = value_and_gradient(
            batch.space,
            batch.scores(arrays),
            flat,
            self.surrogate,
            self.loss,
            oracle=self.oracle,
            weights=self._weights(batch, weights),
            n_jobs=self.n_jobs,
            each=each,
        )
        return values, tuple(batch.arrays(gradient, [a.shape for a in arrays]))

    def _weights(self, batch: Any, weights: Any) -> Any:
        n = batch.places.examples.n
        if self.reduction == "mean":
            return np.full(n, 1 / n)
        return None if weights is None else np.asarray(weights, np.float64)

    def _product(
        self, given: Given, labels: Any, lengths: Any, both: Any, weights: Any, each: bool = False
    ) -> Any:
        """Return Hessians times directions, on the host; ``both`` are scores and directions."""
        batch = given.batch(lengths)
        arrays, directions = _halves(both)
        scores = batch.scores(arrays)
        flat = batch.places.labels(labels).astype(np.int32)
        settings = (flat, self.surrogate, self.loss, self.oracle)
        answer = jacobian_product(
            batch.space,
            scores,
            batch.scores(directions),
            smooth_projection(batch.space, scores, *settings),
            weights=self._weights(batch, weights),
            each=each,
            n_jobs=self.n_jobs,
        )
        return tuple(batch.arrays(answer, [a.shape for a in arrays]))

    @property
    def _no_third(self) -> str:
        name = getattr(self.surrogate, "name", self.surrogate)
        return f"structure {self.structure.name!r} with surrogate {name!r} has no third derivatives"

    def _reduced(self, given: Given) -> Any:
        """Return the function of one number, computed with its gradient."""
        like, read = given.like(), given.read

        @jax.custom_jvp
        def both(arrays: Any, labels: Any, lengths: Any) -> Any:
            def host(labels: Any, lengths: Any, *arrays: Any) -> Any:
                values, gradients = self._host(given, labels, lengths, arrays, None)
                total = values.mean() if self.reduction == "mean" else values.sum()
                return total, gradients

            number = jax.ShapeDtypeStruct((), arrays[0].dtype)
            return call(host, (number, like), labels, lengths, *arrays)

        def product(residuals: Any, directions: Any) -> Any:
            labels, lengths, arrays = read(residuals)
            return self._product(given, labels, lengths, (*arrays, *directions), None)

        hessian = Linear(product, product, like, like, self._no_third)  # symmetric

        @both.defjvp
        def both_jvp(primals: Any, tangents: Any) -> Any:
            arrays, labels, lengths = primals
            number, gradients = answer = both(arrays, labels, lengths)
            second = hessian(given.residuals(labels, lengths, arrays), tangents[0])
            return answer, (_inner(gradients, tangents[0], number.dtype), second)

        @jax.custom_jvp
        def value(arrays: Any, labels: Any, lengths: Any) -> Any:
            return both(arrays, labels, lengths)[0]

        @value.defjvp
        def value_jvp(primals: Any, tangents: Any) -> Any:
            number, gradients = both(*primals)
            return number, _inner(gradients, tangents[0], number.dtype)

        return value

    def _each(self, given: Given) -> Any:
        """Return the function of a value per example; its gradient is a separate call."""
        like, read = given.like(), given.read
        numbers = jax.ShapeDtypeStruct((given.n,), given.arrays[0].dtype)

        def along(residuals: Any, directions: Any) -> Any:
            labels, lengths, arrays = read(residuals)
            parts = self._host(given, labels, lengths, arrays, None, each=True)[1]
            return (given.batch(lengths).inner(parts, directions),)

        def gradient(residuals: Any, factors: Any) -> Any:
            labels, lengths, arrays = read(residuals)
            return self._host(given, labels, lengths, arrays, factors[0])[1]

        # Derivatives of both by the scores among the residuals: the Hessians of examples.
        def curve(residuals: Any, moves: Any) -> Any:
            labels, lengths, both = read(residuals)
            parts = self._product(given, labels, lengths, both, None, each=True)
            return (given.batch(lengths).inner(parts, moves),)

        def curve_back(residuals: Any, factors: Any) -> Any:
            labels, lengths, both = read(residuals)
            return self._product(given, labels, lengths, both, factors[0])

        def weighed(residuals: Any, moves: Any) -> Any:
            labels, lengths, (*arrays, factors) = read(residuals)
            return self._product(given, labels, lengths, (*arrays, *moves), factors)

        curvature = Linear(curve, curve_back, like, (numbers,), self._no_third)
        hessian = Linear(weighed, weighed, like, like, self._no_third)

        def moved(residuals: Any, tangents: Any, directions: Any) -> Any:
            return curvature((*residuals, *directions), given.moves(tangents))

        def moved_back(residuals: Any, tangents: Any, factors: Any) -> Any:
            return hessian((*residuals, *factors), given.moves(tangents))

        slope = Linear(
            along, gradient, like, (numbers,), self._no_third, moved=moved, moved_back=moved_back
        )

        @jax.custom_jvp
        def value(arrays: Any, labels: Any, lengths: Any) -> Any:
            def host(labels: Any, lengths: Any, *arrays: Any) -> Any:
                return self._host(given, labels, lengths, arrays, None)[0]

            return call(host, numbers, labels, lengths, *arrays)

        @value.defjvp
        def value_jvp(primals: Any, tangents: Any) -> Any:
            arrays, labels, lengths = primals
            (moves,) = slope(given.residuals(labels, lengths, arrays), tangents[0])
            return value(*primals), moves

        return value


def _halves(both: Any) -> tuple[Any, Any]:
    return both[: len(both) // 2], both[len(both) // 2 :]


def _inner(gradients: Any, tangents: Any, dtype: Any) -> Any:
    return sum((g * t).sum().astype(dtype) for g, t in zip(gradients, tangents))
