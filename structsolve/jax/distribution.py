"""Numbers of the distribution of labels at a batch of scores, differentiable."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..batch import least_loss
from ..batch.number_methods import NumberMethods
from ..batch.numbers import Number
from .answers import labels_from
from .host import Function, Given, as_array, call
from .linear import Linear
from .mapped import Mapped


class Distribution(NumberMethods[jax.Array], Function):
    """The distribution ``p(y) ~ exp(score of y)`` of a structure's labels.

    The methods take scores, lengths, examples and graphs as :class:`StructuredLoss` does, and
    return a number for each example, of shape (n,).

    Parameters
    ----------
    structure : str or Structure
        With a sum over its labels: :doc:`/probabilities`.
    loss : str or loss object, default="hamming"
        For expected losses.
    classes : int or sequence, optional
        See :class:`StructuredLoss`.
    n_jobs : int, optional
        Threads.

    Notes
    -----
    Numbers are differentiable by all scores, in both modes; second derivatives raise: take those of
    ``StructuredLoss(structure, "crf")``, the negative of ``log_proba``.  A log-probability of -inf
    has the gradient 0; an infinite cross-entropy has none, and raises.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from structsolve.jax import Distribution
    >>> tables = {"node": jnp.zeros((1, 3, 2)), "transition": jnp.zeros((2, 2))}
    >>> jnp.exp(Distribution("chain").entropy(tables)).round(3).tolist()
    [8.0]
    """

    def least_loss(
        self, scores: Any, lengths: Any = None, examples: Any = None, **graphs: Any
    ) -> jax.Array:
        """Return the label of least expected loss of every example.

        Parameters
        ----------
        scores : array or dict of str to array
        lengths : array of int, optional
        examples : Examples, optional
        **graphs : object
            See :class:`StructuredLoss`.

        Returns
        -------
        array of int32
            Of the shape of labels, -1 beyond the end of an example.
        """
        given = self.given(scores, lengths, examples, graphs)

        def least(batch: Mapped, arrays: Any, _: Any) -> np.ndarray:
            own = batch.batch.space, batch.scores(arrays), self.loss
            return least_loss(*own, n_jobs=self.n_jobs)[0]

        return self.compiled("least loss", lambda given: labels_from(given, least), given)

    def _of(
        self,
        kind: str,
        scores: Any,
        lengths: Any,
        *,
        labels: Any = None,
        other: Any = None,
        examples: Any = None,
        **graphs: Any,
    ) -> jax.Array:
        given, others = self.given(scores, lengths, examples, graphs), None
        if other is not None:
            second = self.given(other, lengths, examples, graphs)
            if second.shapes != given.shapes:
                raise ValueError(
                    f"other: found blocks of shapes {second.shapes}, expected {given.shapes}"
                )
            others = dict(zip(second.shapes, second.arrays))
        labels = None if labels is None else as_array(labels, "labels")

        def of(given: Given, others: Any, labels: Any) -> Any:
            second = () if others is None else tuple(others[name] for name in given.shapes)
            function = self._function(kind, given, bool(second), labels is not None)
            return function((*given.arrays, *second), labels, given.lengths)

        return self.compiled(kind, of, given, others, labels)

    def _number(
        self,
        kind: str,
        batch: Mapped,
        labels: Any,
        arrays: Any,
        others: Any,
        *,
        by_other: bool = False,
    ) -> Number:
        """Return the number at these scores: the one of the last call, if it takes them."""
        labels = None if labels is None else batch.batch.places.labels(batch.rows(labels))
        known = batch.kept.get(by_other)
        if known is None or not known.again(batch.blocks, (arrays, others), labels):
            scores = batch.scores(arrays), labels, batch.scores(others) if others else None
            known = Number(kind, batch.batch.space, *scores, self.loss, by_other=by_other)
            batch.kept[by_other] = known
        return known

    def _function(self, kind: str, given: Given, two: bool, labelled: bool) -> Any:
        """Return the function of scores and second scores, labels, lengths."""
        k, numbers = len(given.arrays), jax.ShapeDtypeStruct((given.n,), given.arrays[0].dtype)

        def host(batch: Mapped, labels: Any, *arrays: Any) -> Any:
            own = self._number(kind, batch, labels, arrays[:k], arrays[k:])
            return batch.numbers(own.values(self.n_jobs))

        ways = (False, True) if two else (False,)

        def gradients(batch: Mapped, weights: Any, each: bool, *rest: Any) -> list[Any]:
            run = {"weights": weights, "each": each or bool(batch.lead), "n_jobs": self.n_jobs}
            numbers = (self._number(kind, batch, *rest, by_other=way) for way in ways)
            return [own.gradient(**run) for own in numbers]

        def along(batch: Mapped, labels: Any, arrays: Any, others: Any, moves: Any) -> Any:
            parts = gradients(batch, None, True, labels, arrays, others)
            inner = [batch.inner(p, moves[k * j : k * j + k]) for j, p in enumerate(parts)]
            return (sum(inner),)

        def back(batch: Mapped, labels: Any, arrays: Any, others: Any, factors: Any) -> Any:
            weights = batch.rows(factors[0]).astype(np.float64)
            parts = gradients(batch, weights, False, labels, arrays, others)
            return tuple(array for part in parts for array in batch.apart(part, False))

        slope = Linear(
            given.linear(along, labelled),
            given.linear(back, labelled),
            given.like() * (2 if two else 1),
            (numbers,),
            f"{kind} of structure {self.structure.name!r} has no second derivatives",
        )

        def both_host(batch: Mapped, labels: Any, *arrays: Any) -> Any:
            answer: list[Any] = [np.empty(batch.batch.places.examples.n)]
            run: dict[str, Any] = {"values": answer[0], "each": True, "n_jobs": self.n_jobs}
            for way in ways:
                own = self._number(kind, batch, labels, arrays[:k], arrays[k:], by_other=way)
                out = batch.target(len(answer))
                part = own.gradient(**run, out=out)
                answer += out[1] if part is None else batch.apart(part, True)
                run["values"] = None
            return batch.numbers(answer[0]), *answer[1:]

        @jax.custom_jvp
        def both(arrays: Any, labels: Any, lengths: Any) -> Any:
            like = numbers, list(given.each() * (2 if two else 1))
            return call(given.host(both_host), like, lengths, labels, *arrays)

        @both.defjvp
        def both_jvp(primals: Any, tangents: Any) -> Any:
            raise NotImplementedError(slope.why)

        @jax.custom_jvp
        def value(arrays: Any, labels: Any, lengths: Any) -> Any:
            return call(given.host(host), numbers, lengths, labels, *arrays)

        @value.defjvp
        def value_jvp(primals: Any, tangents: Any) -> Any:
            arrays, labels, lengths = primals
            if given.apart:  # one pass for the number and its gradient
                answer, parts = both(*primals)
                each = [(g * t).reshape(given.n, -1).sum(1) for g, t in zip(parts, tangents[0])]
                return answer, sum(each).astype(numbers.dtype)
            (moves,) = slope(given.residuals(labels, lengths, arrays), tangents[0])
            return value(*primals), moves

        return value
