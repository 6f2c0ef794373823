"""Losses of structures for networks: every surrogate, by its gradient at given scores."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..batch import value_and_gradient
from ..batch.padded import check_reduction
from ..batch.products import jacobian_product, smooth_projection
from ..utils.positional import positional_deprecated
from .host import Function, Given, as_array, call
from .linear import Linear
from .mapped import Mapped


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
        The task loss, for surrogates that use one; "auto" is the space's ``default_loss``.
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
    The value and its gradient are computed in one pass of native code on the CPU, by a
    callback of JAX: also under ``jit`` and ``grad``.  Without a reduction the gradient needs
    another pass.  Under ``vmap`` all batches are one call, whose messages count the examples of
    all; those of given graphs (``trees``, ``edges``, ``examples``) follow each other in the call.
    Computations use double precision; values have the type of the node scores, float32 for half
    precision.  Second derivatives, forward and backward, are products with the Jacobian of the
    marginals, for ``"crf"`` and ``"sparsemap"`` if the structure has it; otherwise, and for third
    derivatives, they raise.

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

    @positional_deprecated
    def __init__(
        self,
        structure: Any,
        surrogate: Any = "margin",
        loss: Any = "hamming",
        reduction: str = "mean",
        classes: Any = None,
        oracle: Any = None,
        *,
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
        labels = as_array(labels, "labels")
        if not jnp.issubdtype(labels.dtype, jnp.integer):
            raise ValueError(
                f"labels: found {labels.dtype}, expected integers, the numbers of classes"
            )
        value = self._reduced if self.reduction != "none" else self._each

        def of(given: Given, labels: Any) -> Any:
            return value(given)(given.arrays, labels, given.lengths)

        return self.compiled(value.__name__, of, given, labels)

    def _values(
        self, batch: Mapped, labels: Any, arrays: Any, weights: Any, each: bool = False
    ) -> tuple[np.ndarray, Any]:
        """Return values and gradients, as :func:`value_and_gradient` does, on the host."""
        return value_and_gradient(
            batch.batch.space,
            batch.scores(arrays),
            batch.labels(labels),
            self.surrogate,
            self.loss,
            oracle=self.oracle,
            weights=self._weights(batch, weights),
            n_jobs=self.n_jobs,
            each=each or bool(batch.lead),
        )

    def _weights(self, batch: Mapped, weights: Any) -> Any:
        if self.reduction == "mean":
            return np.full(batch.batch.places.examples.n, 1 / batch.n)
        return None if weights is None else batch.rows(weights).astype(np.float64)

    def _product(
        self,
        batch: Mapped,
        labels: Any,
        arrays: Any,
        directions: Any,
        weights: Any,
        each: bool = False,
    ) -> Any:
        """Return Hessians times directions, on the host."""
        scores, flat = batch.scores(arrays), batch.labels(labels)
        settings = (flat, self.surrogate, self.loss, self.oracle)
        return jacobian_product(
            batch.batch.space,
            scores,
            batch.scores(directions),
            smooth_projection(batch.batch.space, scores, *settings),
            weights=self._weights(batch, weights),
            each=each or bool(batch.lead),
            n_jobs=self.n_jobs,
        )

    @property
    def _no_third(self) -> str:
        name = getattr(self.surrogate, "name", self.surrogate)
        return f"structure {self.structure.name!r} with surrogate {name!r} has no third derivatives"

    def _reduced(self, given: Given) -> Any:
        """Return the function of one number, computed with its gradient."""
        like = given.like()

        def host(batch: Mapped, labels: Any, *arrays: Any) -> Any:
            values, gradient = self._values(batch, labels, arrays, None)
            numbers = batch.numbers(values)
            total = numbers.mean(-1) if self.reduction == "mean" else numbers.sum(-1)
            return total, *batch.apart(gradient, False)

        @jax.custom_jvp
        def both(arrays: Any, labels: Any, lengths: Any) -> Any:
            number = jax.ShapeDtypeStruct((), arrays[0].dtype)
            return call(given.host(host), (number, like), lengths, labels, *arrays)

        def product(batch: Mapped, labels: Any, arrays: Any, _: Any, directions: Any) -> Any:
            return batch.apart(self._product(batch, labels, arrays, directions, None), False)

        side = given.linear(product)
        hessian = Linear(side, side, like, like, self._no_third)  # symmetric

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
        like = given.like()
        numbers = jax.ShapeDtypeStruct((given.n,), given.arrays[0].dtype)

        def host(batch: Mapped, labels: Any, *arrays: Any) -> Any:
            return batch.numbers(self._values(batch, labels, arrays, None)[0])

        def along(batch: Mapped, labels: Any, arrays: Any, _: Any, directions: Any) -> Any:
            parts = self._values(batch, labels, arrays, None, each=True)[1]
            return (batch.inner(parts, directions),)

        def gradient(batch: Mapped, labels: Any, arrays: Any, _: Any, factors: Any) -> Any:
            return batch.apart(self._values(batch, labels, arrays, factors[0])[1], False)

        # Derivatives of both by the scores among the residuals: the Hessians of examples.
        def curve(batch: Mapped, labels: Any, arrays: Any, directions: Any, moves: Any) -> Any:
            parts = self._product(batch, labels, arrays, directions, None, each=True)
            return (batch.inner(parts, moves),)

        def curve_back(batch: Mapped, labels: Any, arrays: Any, way: Any, factors: Any) -> Any:
            return batch.apart(self._product(batch, labels, arrays, way, factors[0]), False)

        def weighed(batch: Mapped, labels: Any, arrays: Any, factors: Any, moves: Any) -> Any:
            return batch.apart(self._product(batch, labels, arrays, moves, factors[0]), False)

        forward, back = given.linear(curve), given.linear(curve_back)
        curvature = Linear(forward, back, like, (numbers,), self._no_third)
        side = given.linear(weighed)
        hessian = Linear(side, side, like, like, self._no_third)

        def moved(residuals: Any, tangents: Any, directions: Any) -> Any:
            return curvature((*residuals, *directions), given.moves(tangents))

        def moved_back(residuals: Any, tangents: Any, factors: Any) -> Any:
            return hessian((*residuals, *factors), given.moves(tangents))

        forward, back = given.linear(along), given.linear(gradient)
        slope = Linear(forward, back, like, (numbers,), self._no_third, moved, moved_back)

        @jax.custom_jvp
        def value(arrays: Any, labels: Any, lengths: Any) -> Any:
            return call(given.host(host), numbers, lengths, labels, *arrays)

        @value.defjvp
        def value_jvp(primals: Any, tangents: Any) -> Any:
            arrays, labels, lengths = primals
            (moves,) = slope(given.residuals(labels, lengths, arrays), tangents[0])
            return value(*primals), moves

        return value


def _inner(gradients: Any, tangents: Any, dtype: Any) -> Any:
    return sum((g * t).sum().astype(dtype) for g, t in zip(gradients, tangents))
