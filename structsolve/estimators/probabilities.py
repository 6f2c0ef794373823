"""Numbers of the distribution of labels of StructuredSVM with surrogate "crf"."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..batch import Scores, least_loss
from ..batch.binding import binding_of
from ..batch.numbers import number
from ..batch.scores import Operators
from ..batch.values import sheet_of
from ..examples.given import listed
from ..examples.packed import Examples
from ..structure.pack import pack
from ..utils.suggest import a_type
from ..utils.values import equal, plain
from ._part_scores import write_scores
from .common import refuse_forced
from .distribution import DistributionMixin, if_crf
from .label_list import guarded
from .soft_labels import refuse_marginals


class ProbabilityMixin(DistributionMixin):
    """Log-probabilities, entropies, divergences and expected losses."""

    space_: Any
    classes_: np.ndarray
    oracle: Any
    _model: Any

    @if_crf
    def log_partition(self, X: Any, allowed: Any = None, forbidden: Any = None) -> np.ndarray:
        """Return the logarithm of the sum of ``exp(score)`` over all labels of every example.

        For models with surrogate "crf", as the following methods.

        Parameters
        ----------
        X : as for ``fit``
        allowed, forbidden : as for ``predict``
            The sum is over the labels that they leave: less the sum over all, it is the logarithm
            of their probability.

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        return self._number("log_partition", self._table(X, None, allowed, forbidden))

    @if_crf
    def log_proba(self, X: Any, y: Any) -> np.ndarray:
        """Return the log-probability of one label of every example.

        Parameters
        ----------
        X, y : as for ``fit``

        Returns
        -------
        ndarray of float64 of shape (n,)
            -inf for labels that the model does not predict: those unseen in training, forbidden
            neighbours, trees of another kind.

        Raises
        ------
        ValueError
            For labels of another shape; for labels that are void.

        Examples
        --------
        >>> from structsolve import StructuredSVM
        >>> X, y = [[-1.0], [1.0], [2.0]], ["a", "b", "b"]
        >>> model = StructuredSVM("multiclass", surrogate="crf", alpha=0.001).fit(X, y)
        >>> model.log_proba([[4.0], [4.0], [4.0]], ["b", "a", "c"]).round(1).tolist()
        [-0.0, -21.8, -inf]
        """
        scores, labels, unseen = self._labelled(X, y)
        answer = self._number("log_proba", scores, labels=labels)
        answer[unseen] = -np.inf
        return answer

    @if_crf
    def entropy(self, X: Any) -> np.ndarray:
        """Return the entropy of the labels of every example, in nats: how unsure the model is.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        return self._number("entropy", self._table(X))

    @if_crf
    def cross_entropy(self, X: Any, other: Any) -> np.ndarray:
        """Return ``-sum_y p(y) log q(y)`` of every example, q of another model.

        Parameters
        ----------
        X : as for ``fit``
        other : StructuredSVM
            Fitted, with the same structure and classes.

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        X = listed(X)
        return self._number("cross_entropy", self._table(X), other=self._table_of(other, X))

    @if_crf
    def kl_divergence(self, X: Any, other: Any) -> np.ndarray:
        """Return the Kullback-Leibler divergence of another model's labels from this model's.

        Parameters
        ----------
        X : as for ``fit``
        other : StructuredSVM
            See ``cross_entropy``.

        Returns
        -------
        ndarray of float64 of shape (n,)
            ``sum_y p(y) log(p(y) / q(y))``.
        """
        X = listed(X)
        return self._number("kl_divergence", self._table(X), other=self._table_of(other, X))

    @if_crf
    def expected_loss(self, X: Any, y: Any, loss: Any = None) -> np.ndarray:
        """Return the expected loss of one answer for every example.

        Parameters
        ----------
        X, y : as for ``fit``
        loss : str or loss object, optional
            The model's by default; linear in the parts of either label, or "zero-one".

        Returns
        -------
        ndarray of float64 of shape (n,)
            ``sum_y' p(y') loss(y, y')``.
        """
        scores, labels, unseen = self._labelled(X, y)
        if unseen.any():
            i = int(np.argmax(unseen))
            raise ValueError(f"example {i}: y holds a label unseen in training, expected an answer")
        loss = self._task_loss(self.space_) if loss is None else loss  # type: ignore[attr-defined]
        return self._number("expected_loss", scores, labels=labels, loss=loss)

    @if_crf
    def predict_least_loss(
        self, X: Any, loss: Any = None, allowed: Any = None, forbidden: Any = None
    ) -> Any:
        """Return the label of least expected loss of every example.

        For the Hamming loss it is that of the most probable class of each node, where labels may
        have them all at once.

        Parameters
        ----------
        X, allowed, forbidden : as for ``predict``
        loss : str or loss object, optional
            See ``expected_loss``.

        Returns
        -------
        In the form that ``predict`` returns.
        """
        self._require_fitted()
        self._refuse_hidden("predict_least_loss")
        scores = self._table(X, None, allowed, forbidden)
        loss = self._task_loss(self.space_) if loss is None else loss  # type: ignore[attr-defined]
        labels, _ = least_loss(self.space_, scores, loss, oracle=self.oracle, n_jobs=self.n_jobs)
        return guarded(self.space_.unpack(labels, scores.examples))

    # -- parts of the above ---------------------------------------------------------------------

    def _number(self, kind: str, scores: Scores, **given: Any) -> np.ndarray:
        return number(kind, self.space_, scores, n_jobs=self.n_jobs, **given)

    def _table(
        self, X: Any, examples: Examples | None = None, allowed: Any = None, forbidden: Any = None
    ) -> Scores:
        """Return the part scores of X, packed already or not, -inf at what is not allowed."""
        if examples is None:
            examples, dense = self._pack(X)  # type: ignore[attr-defined]
        else:
            dense = self._model.check_input(X)
        potentials, w = self._model.scores(examples, dense, self.n_jobs)
        masks = self._mask(self.space_, examples, allowed, forbidden)
        refuse_forced(masks)
        return part_scores(self.space_, examples, potentials, w, masks, self.n_jobs)

    def _labelled(self, X: Any, y: Any) -> tuple[Scores, np.ndarray, np.ndarray]:
        """Return part scores, encoded labels, and which examples have labels unseen in training."""
        self._require_fitted()
        self._refuse_hidden("a probability of labels")
        X, y = listed(X), listed(y, "y")
        if y is None:
            raise ValueError("y is None: expected answers, in the same form as for fit")
        refuse_marginals(self.space_.structure, y, "log_proba and expected_loss are of one answer")
        self._check_names(X)
        examples = pack(self.space_, X, y, unseen="extra")
        weights = examples.topology.get("node_weights")
        if weights is not None and (weights == 0).any():
            node = int(np.argmax(weights == 0))
            i = int(np.searchsorted(examples.offsets, node, side="right")) - 1
            raise ValueError(
                f"example {i}: y is void at node {node - examples.offsets[i]}, expected a label of "
                "every node: log_partition(X, allowed=...) sums over the others"
            )
        scores, labels = self._table(X, examples), examples.labels
        most = binding_of(self.space_, scores).parts().n_states or np.inf
        rows = np.flatnonzero(labels >= most)
        unseen = np.zeros(examples.n, dtype=bool)
        unseen[np.searchsorted(examples.label_offsets, rows, side="right") - 1] = True
        return scores, np.where(labels >= most, 0, labels), unseen

    def _table_of(self, other: Any, X: Any) -> Scores:
        """Return the part scores of another model."""
        if not isinstance(other, ProbabilityMixin):
            raise TypeError(f"other is {a_type(other)}, expected a fitted StructuredSVM")
        other._require_fitted()
        other.log_partition  # noqa: B018 - raises unless it is trained to give probabilities
        mine, theirs = (_described(model) for model in (self, other))
        unlike = [k for k in {**mine, **theirs} if not equal(mine.get(k), theirs.get(k))]
        if unlike:
            named = dict.fromkeys(["structure ", *unlike])
            expected, given = (
                ", ".join(f"{k}{one[k]!r}" for k in named if k in one) for one in (mine, theirs)
            )
            raise ValueError(f"other: found a model of {given}, expected one of {expected}")
        return other._table(X)

    def _refuse_hidden(self, what: str) -> None:
        """Refuse a model whose labels are not those of its space."""


def _described(model: Any) -> dict[str, Any]:
    """Describe what models with the same labels and parts have in common."""
    structure, layout = model.space_.structure, model.space_.layout
    given: Any = getattr(structure, "saved_params", None) or getattr(structure, "get_params", dict)
    kinds = (str, bool, int, float, list, tuple, dict, type(None))
    plainly = {f"{k}=": plain(v) for k, v in given().items() if "__" not in k}
    settings = {k: v for k, v in plainly.items() if isinstance(v, kinds)}
    known = {"classes ": model.classes_.tolist()} if hasattr(model, "classes_") else {}
    parts = {block.name: block.shape for block in layout.blocks}
    return {"structure ": structure.name, **settings, **known, "parts ": parts}


def part_scores(
    space: Any, examples: Any, potentials: Any, w: np.ndarray, masks: Any, n_jobs: Any
) -> Scores:
    """Return the part scores of packed examples as arrays.

    Parameters
    ----------
    space : Space
    examples : Examples
    potentials : LinearPotentials
    w : ndarray of float64 of shape (dim,)
    masks : dict of str to ndarray
        Added to the scores, by block name.
    n_jobs : int or None

    Returns
    -------
    Scores
    """
    layout, edge = space.layout, None
    node = np.empty((int(examples.offsets[-1]), *layout.node.shape))
    if layout.edge is not None:
        edge = np.empty((int(examples.edge_offsets[-1]), *layout.edge.shape))
    shared = {block.name: np.empty(block.shape) for block in layout.shared}
    scores: Any = Scores(node, shared, edge, examples)
    scores.places = Operators(space)  # the space keeps no operators of X
    sheet = sheet_of(scores, binding_of(space, scores), written=True)
    write_scores(potentials, w, sheet, n_jobs)
    for name, mask in masks.items():
        if name == layout.node.name:
            rows = node.reshape(len(node), -1)
            rows += mask[:, : rows.shape[1]]
        else:
            shared[name] += mask
    return scores
