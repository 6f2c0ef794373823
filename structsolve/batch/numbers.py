"""One number of every example's distribution of labels by its name, and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structure.ask import loss_advice
from . import _distribution, _sheets
from ._distribution import Numbers, gradients_of, numbers_of
from ._loops import check_labels
from .answers import argmax
from .binding import Binding
from .padded import Batch
from .repeated import Repeated
from .scores import Operators, Scores
from .values import answer_of, checked_weights, flat_labels, sheet_of


def number(
    kind: str,
    space: Any,
    scores: Scores,
    *,
    labels: Any = None,
    other: Scores | None = None,
    loss: Any = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return one number of every example's distribution.

    Parameters
    ----------
    kind : str
        Name of a function of :mod:`structsolve.batch`; the others are its arguments.
    space, scores, labels, other, loss, n_jobs

    Returns
    -------
    ndarray of float64 of shape (n,)
    """
    return Number(kind, space, scores, labels, other, loss).values(n_jobs)


def number_gradient(
    kind: str,
    space: Any,
    scores: Scores,
    *,
    labels: Any = None,
    other: Scores | None = None,
    loss: Any = None,
    weights: Any = None,
    each: bool = False,
    by_other: bool = False,
    values: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> Scores:
    """Return gradients of :func:`number` by the scores, or by the other ones.

    Parameters
    ----------
    kind, space, scores, labels, other, loss, n_jobs
        See :func:`number`.
    weights : ndarray of shape (n,), optional
        Factors of the examples.
    each : bool, default=False
        Shared blocks have one array for each example; else they are sums.
    by_other : bool, default=False
    values : ndarray of float64 of shape (n,), optional
        The numbers are written there; not with ``by_other``.

    Returns
    -------
    Scores
        In arrays like those of ``scores`` or ``other``.  The gradient of a log-probability of -inf
        is 0.

    Raises
    ------
    ValueError
        If the projection has no derivative, or a cross-entropy is infinite.
    """
    own = Number(kind, space, scores, labels, other, loss, by_other=by_other)
    answer: Any = own.gradient(weights, each=each, values=values, n_jobs=n_jobs)
    return answer


class Number(Repeated):
    """One number of every example's distribution at given scores.

    Parameters
    ----------
    kind, space, scores, labels, other, loss
        See :func:`number`.
    by_other : bool, default=False
        Gradients are those by the other scores.
    """

    def __init__(
        self,
        kind: str,
        space: Any,
        scores: Scores,
        labels: Any = None,
        other: Scores | None = None,
        loss: Any = None,
        *,
        by_other: bool = False,
    ):
        read = [one for one in (scores, other) if one is not None]
        super().__init__(space, scores, read[::-1] if by_other else read)
        binding, self.kind, self.by_other = self.binding, kind, by_other
        self.lasting = self.lasting and kind != "expected_loss"  # which may be of another loss
        # One less the probability of the label; its gradient is a factor times the logarithm's.
        self.zero_one = kind == "expected_loss" and not costly(binding, loss).has_costs
        self._kind = "log_proba" if self.zero_one else kind
        self._own, self._target = read[-1] if by_other else scores, None
        self.labelled = kind in ("log_proba", "expected_loss")
        operands = dict(zip(("labels", "outside"), self._labels(labels)))
        if self.labelled:
            operands["parts"] = binding.parts()
        if self._kind == "expected_loss":
            operands["loss"] = binding.loss(loss)
        if other is not None:
            operands |= {"other": self.sheets[1], "by_other": by_other}
        self.numbers = Numbers(self._kind, self.sheets[0], gibbs(binding), **operands)

    def again(self, blocks: Any, read: Any, labels: Any = None) -> bool:
        """Replace the scores and labels by others; see :meth:`Repeated.again`.

        Parameters
        ----------
        blocks : sequence of Block
        read : sequence of sequence of ndarray
            Arrays of the first scores, and of the second ones.
        labels : ndarray of int, optional

        Returns
        -------
        bool
        """
        same = Repeated.again(self, blocks, read[::-1] if self.by_other else read)
        if same:
            _distribution.again(self.numbers, *self._labels(labels))
        return same

    def _labels(self, labels: Any) -> tuple[Any, ...]:
        """Return checked labels, and which are outside of the space, for a number of labels."""
        if not self.labelled:
            return ()
        binding, labels = self.binding, flat_labels(labels)
        check_labels(binding.layout, labels, binding.parts().n_states)
        if self._kind == "log_proba":
            return labels, _outside(binding, labels)
        binding.space.check_labels(labels, binding.examples)
        return (labels,)

    def values(self, n_jobs: int | None) -> np.ndarray:
        """Return the numbers.

        Parameters
        ----------
        n_jobs : int or None

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        values = np.empty(self.n)
        numbers_of(self.numbers, values, n_jobs, self.binding.rooms)
        return -np.expm1(values) if self.zero_one else values

    def gradient(
        self,
        weights: Any = None,
        *,
        each: bool = False,
        values: np.ndarray | None = None,
        n_jobs: int | None = None,
        out: tuple[Batch, list[np.ndarray]] | None = None,
    ) -> Scores | None:
        """Return gradients, once for the same scores.

        Parameters
        ----------
        weights, each, values, n_jobs
            See :func:`number_gradient`.
        out : (Batch, list of ndarray), optional
            Written: arrays of this batch, without gaps between examples.

        Returns
        -------
        Scores, or None
            None: they are in ``out``.
        """
        binding, source = self.binding, self.sheets[0]
        weights = None if weights is None else checked_weights(weights, binding.layout.n)
        if self.zero_one:
            logs = np.empty(self.n)
            numbers_of(self.numbers, logs, n_jobs, binding.rooms)
            weights = -np.exp(logs) * (1 if weights is None else weights)
            if values is not None:
                values[:], values = -np.expm1(logs), None
        slope = self.kind in ("log_partition", "log_proba") or self.zero_one or self.by_other
        if not (slope or gibbs(binding).has_derivative):
            raise ValueError(
                f"structure {binding.space.structure.name!r}: {self.kind} has no gradient, because "
                "the structure's marginals have no derivative here"
            )
        if out is None:
            answer, target = answer_of(self._own, source, binding, each)
        else:
            batch, arrays = out
            answer, target = None, self._target
            if target is None or not _sheets.again(target, batch.blocks, arrays):
                each = each or bool(source.shared_step)
                given = batch.scores(arrays)
                target = sheet_of(given, binding, self._own, each=each, written=True)
                self._target = target
        run: dict[str, Any] = {"bounds": binding.bounds, "n_jobs": n_jobs, "rooms": binding.rooms}
        gradients_of(self.numbers, target, weights=weights, values=values, **run)
        return answer


def gibbs(binding: Binding) -> Any:
    """Return the projection that sums over labels.

    Parameters
    ----------
    binding : Binding

    Returns
    -------
    Projection

    Raises
    ------
    ValueError
        Where the structure has none.
    """
    projection = binding.projection("entropy")
    if not projection.gibbs:
        raise ValueError(
            f"structure {binding.space.structure.name!r} has no sum over its labels, which is "
            "#P-hard: its projection 'entropy' gives marginals, whose entropy is not that of "
            "labels; argmax, k_best and marginals exist"
        )
    if not projection.exact:
        raise ValueError(
            f"structure {binding.space.structure.name!r} has only a bound of the sum over labels "
            "of these examples, and relaxed marginals; argmax and marginals exist"
        )
    return projection


def costly(binding: Binding, loss: Any) -> Any:
    """Return a loss that has expectations: by costs of parts, or as 0/1.

    Parameters
    ----------
    binding : Binding
    loss : str or loss object

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        For other losses, naming those that fit.
    """
    bound = binding.loss(loss)

    def fits(one: Any) -> bool:
        return bool(one.has_costs or one.zero_one)

    if not fits(bound):
        raise ValueError(
            f"loss {loss!r} of structure {binding.space.structure.name!r} has no expectation by "
            f"marginals, because {bound} is not linear in the parts of either label; "
            f"{loss_advice(binding.space, binding.layout, fits)}"
        )
    return bound


def _outside(binding: Binding, labels: np.ndarray) -> np.ndarray | None:
    """Return which examples have labels outside of the space; None if none has."""
    space, examples = binding.space, binding.examples
    offsets = examples.label_offsets

    def fits(flat: np.ndarray) -> bool:
        try:
            space.check_labels(flat, examples)
        except ValueError:
            return False
        return True

    if fits(labels):
        return None
    blocks: Any = (
        (space.layout.node, examples.offsets),
        (space.layout.edge, examples.edge_offsets),
    )
    node, edge = (
        None if block is None else np.zeros((int(rows[-1]), *block.shape)) for block, rows in blocks
    )
    zeros: Any = Scores(node, None, edge, examples)
    zeros.places = Operators(space, binding)
    inside, _, _ = argmax(space, zeros)
    outside = np.zeros(examples.n, dtype=bool)
    ranges = [(0, examples.n)]
    while ranges:  # halves, until all labels of a range fit, or it is one example
        first, last = ranges.pop()
        own = slice(int(offsets[first]), int(offsets[last]))
        flat = inside.copy()
        flat[own] = labels[own]
        if fits(flat):
            continue
        if last - first == 1:
            outside[first] = True
        else:
            middle = (first + last) // 2
            ranges += [(first, middle), (middle, last)]
    return outside
