"""The predicting half of StructuredSVM: decoding, scores, k best, named weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import registry
from ..examples.packed import Examples
from ..part_layout import PartLayout
from ..potentials.mercer import PRECOMPUTED, given_dense
from ..potentials.mercer_model import KernelModel
from ..structure.ask import make_layout
from .distribution import DistributionMixin

# Of one example: memory is taken for all of them at once.
MOST_LABELS = 1_000_000


class PredictionMixin(DistributionMixin):
    """Prediction from ``space_`` and ``_w``: flat weights, or a kernel model."""

    space_: Any
    classes_: np.ndarray
    _w: Any
    coef_: dict[str, np.ndarray]
    loss: Any
    oracle: Any
    n_jobs: int | None

    def predict(self, X: Any, allowed: Any = None, forbidden: Any = None) -> Any:
        """Return the best label of every example.

        Parameters
        ----------
        X : as for ``fit``
        allowed : list, optional
            Per example: one list of allowed labels per node, None for "all".
        forbidden : list of pairs, optional
            Transitions (label, next label) that must not occur ("chain").

        Returns
        -------
        Labels in the form of ``y``: an array for single nodes, a list of arrays for sequences.
        """
        layout, potentials, w = self._prepare(X)
        oracle = self._asked("oracle")(layout)
        masks = self.space_.mask(layout.examples, allowed, forbidden)
        labels, scores = _decode(potentials, oracle, w, masks, self.n_jobs)
        if masks:
            self._refuse_impossible(scores)
        return self.space_.unpack(labels, layout.examples)

    def decision_function(self, X: Any) -> Any:
        """Return, for every node and class, the score of the best label with that class there.

        For single nodes these are the class scores, of shape (n, K), or (n,) for two classes; for
        sequences a list of arrays of shape (length, K).  For label sets, of shape (n, L), what each
        label adds.
        """
        from .decode import node_rows

        layout, potentials, w = self._prepare(X)
        operator = self._power("max-marginals", layout)
        if operator is None:
            raise ValueError(
                f"decision_function needs max-marginals, which the oracle of structure "
                f"{self.space_.structure.name!r} does not give; use predict or predict_kbest"
            )
        rows, _ = node_rows(potentials, operator, w, {}, 1.0, self.n_jobs)
        scores = self.space_.unpack_scores(rows, layout.examples)
        if self.space_.structure.single_node and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict_kbest(
        self, X: Any, k: int, allowed: Any = None, forbidden: Any = None
    ) -> list[list[tuple[Any, float]]]:
        """Return the k best labels of every example with their scores, best first.

        Parameters
        ----------
        k : int
            From 1 to 1,000,000; fewer are returned where an example has fewer labels.

        Returns
        -------
        list of list of (label, score)
        """
        from .decode import decode_kbest

        if not isinstance(k, (int, np.integer)) or not 1 <= k <= MOST_LABELS:
            raise ValueError(f"k is {k!r}, expected an integer from 1 to {MOST_LABELS}")
        layout, potentials, w = self._prepare(X)
        operator = self._power("kbest", layout)
        if operator is None:
            name = self.space_.structure.name
            raise ValueError(
                f"the oracle of structure {name!r} has no k-best power"
                if self.oracle is None
                else f"oracle={self.oracle!r} has no k-best power; set_params(oracle=None) asks "
                f"that of structure {name!r}"
            )
        masks = self.space_.mask(layout.examples, allowed, forbidden)
        labels, scores = decode_kbest(potentials, operator, w, masks, int(k), self.n_jobs)
        answers = []
        for rows, values in zip(labels, scores):
            possible = np.isfinite(values)
            answers.append(
                [(self.space_.unpack_one(r), float(v)) for r, v in zip(rows[possible], values)]
            )
        if masks:
            self._refuse_impossible(np.array([len(a) or -np.inf for a in answers]))
        return answers

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return ``1 - mean loss per part``.

        The training loss is summed over the examples and divided by the number of parts that
        carry it (nodes), or of examples where the loss is a mean or a verdict per example. With
        "hamming" this is the accuracy over nodes. Labels not seen in training count as errors.
        """
        check_is_fitted(self, "space_")
        return self._score(self.space_, self._w, X, y, sample_weight)

    def named_weights(
        self, feature_names: Any = None, tolerance: float = 0.0
    ) -> list[tuple[str, tuple[Any, ...], float]]:
        """Return the weights by name, largest magnitude first.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the node features; ``feature_names_in_`` or numbers by default.
        tolerance : float
            Leave out weights of at most this magnitude.

        Returns
        -------
        list of (block, names, weight)
            ``("transition", ("B", "I"), 1.5)``, ``("node", ("word=the", "B"), 0.3)``.
        """
        check_is_fitted(self, "space_")
        if not self.coef_:
            raise ValueError(
                "a kernel model has no weights to name; dual_coef_ and support_ hold its dual "
                "variables"
            )
        names = feature_names
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        blocks = {b.name: b for b in self.space_.layout.blocks}
        found = []
        for name, values in self.coef_.items():
            block = blocks.get(name) or self.space_.layout.node
            axes = [
                self.classes_ if axis == "class" else np.arange(size)
                for axis, size in zip(block.axes or ("",) * len(block.shape), block.shape)
            ]
            if values.ndim > len(block.shape):
                rows = names if block.kind == "node" and names is not None else None
                if rows is not None and len(rows) != values.shape[0]:
                    raise ValueError(
                        f"feature_names has {len(rows)} entries, expected {values.shape[0]}"
                    )
                axes.insert(0, np.arange(values.shape[0]) if rows is None else np.asarray(rows))
            for index in np.argwhere(np.abs(values) > tolerance):
                key = tuple(
                    a[j].item() if hasattr(a[j], "item") else a[j] for a, j in zip(axes, index)
                )
                found.append((name, key, float(values[tuple(index)])))
        return sorted(found, key=lambda entry: -abs(entry[2]))

    # -- parts of the above ---------------------------------------------------------------------

    def _prepare(self, X: Any) -> tuple[PartLayout, Any, np.ndarray]:
        """Return where the parts of packed examples lie, potentials, and a vector for these."""
        if not hasattr(self, "space_"):
            check_is_fitted(self, "space_")  # which takes longer than to decode a sequence
        self._check_names(X)
        if isinstance(self._w, KernelModel):
            self._w.check_columns(X)
        examples = self.space_.pack(X)
        layout = make_layout(self.space_, examples)
        return layout, *self._bind(self.space_, self._w, examples, given_dense(X))

    def _bind(self, space: Any, w: Any, examples: Examples, dense: bool) -> tuple[Any, np.ndarray]:
        """Return potentials for packed examples, and the vector to score them with."""
        from ..potentials.linear import LinearPotentials

        if isinstance(w, KernelModel):
            return w.bind(space, examples, dense, self.n_jobs)
        return LinearPotentials(examples, space.layout, n_jobs=self.n_jobs), w

    def _score(self, space: Any, w: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        if isinstance(w, KernelModel):
            w.check_columns(X)
        examples = space.pack(X, y, sample_weight, unseen="extra")
        # The oracle of predict(), which may differ from the one that training asks.
        layout = make_layout(space, replace(examples, labels=None))
        potentials, w = self._bind(space, w, examples, given_dense(X))
        oracle = self._asked("oracle", space=space)(layout)
        labels, _ = _decode(potentials, oracle, w, {}, self.n_jobs)
        loss = self._asked("loss", self._scored_loss(space), space)(layout)
        from ..structure.loss_values import losses

        loss.check_truths(examples.labels)
        values = losses(loss, examples.labels, labels)
        sizes = np.ones(examples.n) if loss.averaged else np.diff(examples.label_offsets)
        weights = examples.sample_weight
        return float(1 - (weights @ values) / (weights @ sizes))

    def _scored_loss(self, space: Any) -> Any:
        return self.loss

    def _refuse_impossible(self, scores: np.ndarray) -> None:
        impossible = np.flatnonzero(scores == -np.inf)
        if impossible.size:
            raise ValueError(
                f"example {impossible[0]}: the constraints leave no label at all; allow more"
            )

    def _remember_names(self, X: Any) -> None:
        from sklearn.utils.validation import _get_feature_names

        frame = X if hasattr(X, "columns") else X[0] if isinstance(X, list) and X else None
        names = _get_feature_names(frame) if hasattr(frame, "columns") else None
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_names(self, X: Any) -> None:
        if hasattr(X, "columns") or hasattr(self, "feature_names_in_"):
            from sklearn.utils.validation import _check_feature_names

            frame = X if not isinstance(X, list) else (X[0] if X else X)
            _check_feature_names(self, frame, reset=False)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED  # type: ignore[attr-defined]
        tags.target_tags.required = True
        if registry.is_single_node(self.structure):  # type: ignore[attr-defined]
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
        return tags


def _decode(
    potentials: Any, oracle: Any, w: np.ndarray, masks: Any, n_jobs: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return all best labels, one after the other, and their scores."""
    if getattr(oracle, "batched", False):
        from .decode import decode_in_batches

        return decode_in_batches(potentials, oracle, w, masks)
    from .decode import decode

    return decode(potentials, oracle, w, masks, n_jobs)
