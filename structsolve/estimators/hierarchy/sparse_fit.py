"""Fit, predict and score of ``HierarchicalSVM(sparse=True)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...examples.packed import Examples
from ...examples.packing import packed_bytes, refuse_infinite
from ...utils.parallel import effective_jobs
from ..structured_svm import StructuredSVM
from .sparse_model import SparseModel, train
from .weights import node_weights, parse


class SparseFitting(StructuredSVM):
    """StructuredSVM that also predicts with the sparse weights of a tree's nodes."""

    normalization: str
    directional: bool
    slack: float | None
    log_node_weights_: np.ndarray

    def _fit_sparse(self, X: Any, y: Any, sample_weight: Any, validation: Any) -> Any:
        self._check_settings()
        self._check_sparse(validation)
        space, examples = self._learn_space(X, y, None, sample_weight)
        if not space.single or not space.hierarchy.forest:
            given = "a node with several parents" if space.single else "label sets"
            raise ValueError(f"sparse=True: found {given}, expected one leaf per example of a tree")
        _finite(examples)
        weights = node_weights(space.hierarchy, self.normalization, self.directional, self.slack)
        stopped = False

        def after(record: dict[str, Any]) -> bool:
            nonlocal stopped
            answers = [call(dict(record)) for call in self.callbacks or ()]
            stopped = any(answer is True for answer in answers)
            return stopped

        ones, plain = np.ones(len(space.hierarchy)), self.normalization == "none"
        model, history = train(
            space.hierarchy,
            examples.nodes,
            examples.labels,
            scale=ones if plain else weights.sqrt,
            cost=ones if plain else weights.values,
            loss=self._sparse_loss(),
            alpha=float(self.alpha),
            passes=int(self.max_iter),
            intercept=bool(self.fit_intercept),
            rng=self._generator(),
            sample_weight=examples.sample_weight,
            after=after,
        )
        self.log_node_weights_ = weights.log
        self.memory_ = {"examples": packed_bytes(examples.nodes), "weights": history[-1]["bytes"]}
        self._become_sparse(space, model)
        self.history_, self.n_iter_ = history, len(history)
        self.stop_reason_ = "callback" if stopped else "max_iter"
        self.metadata_: dict[str, Any] = getattr(self, "metadata_", {})
        self._remember_names(X)
        return self

    def _check_sparse(self, validation: Any) -> None:
        given = {
            "normalization": parse(self.normalization)[0] == "learned",
            "kernel": self.kernel is not None,
            "oracle": self.oracle is not None,
            "surrogate": getattr(self.surrogate, "name", self.surrogate) != "margin",
            "early_stopping": bool(self.early_stopping),
            "validation": validation is not None,
            "warm_start": bool(self.warm_start),
            "checkpoint": self.checkpoint is not None,
            "penalize_intercept": not self.penalize_intercept,
        }
        for name, used in given.items():
            if used:
                raise ValueError(
                    f"{name} is {getattr(self, name, 'given')!r}, which sparse=True does not take: "
                    "leave it out, or use sparse=False"
                )
        if getattr(self.solver, "name", self.solver) != "sgd":
            raise ValueError(
                f"solver is {self.solver!r}, expected 'sgd': dual variables would fill the memory "
                "that sparse=True saves"
            )

    def _sparse_loss(self) -> str:
        plain = self.normalization == "none"
        known = {"auto": "hamming" if plain else "path", "zero-one": "zero-one"}
        if plain:
            known["hamming"] = "hamming"
        if isinstance(self.loss, str) and self.loss in known:
            return known[self.loss]
        raise ValueError(
            f"loss is {self.loss!r}, expected 'auto', 'zero-one' or, without normalization, "
            "'hamming': those that sparse=True knows"
        )

    def _become_sparse(self, space: Any, model: SparseModel) -> None:
        self.space_, self._w, self._run = space, model, None
        self.coef_, self.classes_ = model.coef, space.classes_
        self.n_features_in_ = space.layout.n_features

    def predict(self, X: Any, allowed: Any = None, forbidden: Any = None) -> Any:
        """Return the best label of every example, as :meth:`StructuredSVM.predict` does.

        Parameters
        ----------
        X : as for ``fit``
        allowed, forbidden : optional
            Constraints, which ``sparse=True`` does not take.

        Returns
        -------
        Labels in the form of ``y``.

        Raises
        ------
        ValueError
            When constraints are given with ``sparse=True``, or a feature is not finite.
        """
        check_is_fitted(self)
        if not isinstance(self._w, SparseModel):
            return super().predict(X, allowed, forbidden)
        if allowed is not None or forbidden is not None:
            raise ValueError(
                "sparse=True predicts without constraints; leave out allowed, forbidden"
            )
        examples = _finite(self.space_.pack(X))
        labels, _ = self._w.predict(examples.nodes, effective_jobs(self.n_jobs))
        return self.space_.unpack(labels, examples)

    def _score(self, space: Any, w: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        if not isinstance(w, SparseModel):
            return super()._score(space, w, X, y, sample_weight)
        examples = _finite(space.pack(X, y, sample_weight, unseen="extra"))
        labels, _ = w.predict(examples.nodes, effective_jobs(self.n_jobs))
        return float(np.average(labels == examples.labels, weights=examples.sample_weight))

    def _bind(self, space: Any, w: Any, examples: Any, dense: bool) -> tuple[Any, np.ndarray]:
        if isinstance(w, SparseModel):
            raise ValueError("a model with sparse=True gives predict and score alone")
        return super()._bind(space, w, examples, dense)


def _finite(examples: Examples) -> Examples:
    """Return the examples; ValueError names the first one with NaN or infinity."""
    X = examples.nodes
    if not np.isfinite(X.data if hasattr(X, "tocsr") else X).all():
        refuse_infinite(X, examples.offsets)
    return examples
