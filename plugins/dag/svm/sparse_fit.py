"""How ``HierarchicalSVM(sparse=True)`` trains."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.estimators.alpha import UNKNOWN, is_auto
from structsolve.estimators.fitting import TrainingData, description_of, fingerprint_of_examples
from structsolve.estimators.structured_svm import StructuredSVM
from structsolve.examples.given import packed_bytes, refuse_infinite
from structsolve.plugins.dag.svm.class_weight import weighed_leaves
from structsolve.plugins.dag.svm.sparse_model import train
from structsolve.plugins.dag.svm.weights import node_weights, parse
from structsolve.solvers.checkpoint import Checkpoint


class SparseFitting(StructuredSVM):
    """StructuredSVM that also learns sparse weights of a tree's nodes."""

    normalization: str
    directional: bool
    slack: float | None
    log_node_weights_: np.ndarray
    sparse: bool

    def _scaling(self, space: Any, examples: Any) -> bool | str:
        return False if self.sparse else super()._scaling(space, examples)

    def _train_sparse(self, data: TrainingData, rng: np.random.Generator) -> Any:
        space, examples = data.space, data.examples
        if not space.single or not space.hierarchy.forest:
            given = "a node with several parents" if space.single else "label sets"
            raise ValueError(f"sparse=True: found {given}, expected one leaf per example of a tree")
        examples = weighed_leaves(self.class_weight, space, examples)
        refuse_infinite(examples.nodes, examples.offsets)
        weights = node_weights(space.hierarchy, self.normalization, self.directional, self.slack)
        stopped = False

        def after(record: dict[str, Any]) -> bool:
            nonlocal stopped
            answers = [call(dict(record)) for call in self.callbacks or ()]
            stopped = any(answer is True for answer in answers)
            return stopped

        self.alpha_ = UNKNOWN if is_auto(self.alpha) else float(self.alpha)
        ones, plain = np.ones(len(space.hierarchy)), self.normalization == "none"
        model, history = train(
            space.hierarchy,
            examples.nodes,
            examples.labels,
            scale=ones if plain else weights.sqrt,
            cost=ones if plain else weights.values,
            loss=self._sparse_loss(),
            alpha=self.alpha_,
            passes=int(self.max_iter),
            intercept=bool(self.fit_intercept),
            rng=rng,
            sample_weight=examples.sample_weight,
            after=after,
            checkpoint=self._sparse_checkpoint(space, examples),
        )
        self.log_node_weights_ = weights.log
        self.memory_ = {"examples": packed_bytes(examples.nodes), "weights": history[-1]["bytes"]}
        self._run = None
        self._become_fitted(space, model)
        self.history_, self.n_iter_ = history, len(history)
        self.stop_reason_ = "callback" if stopped else "max_iter"
        self.metadata_: dict[str, Any] = getattr(self, "metadata_", {})
        self._remember_names(data.X)
        return self

    def _sparse_checkpoint(self, space: Any, examples: Any) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        settings = {
            "loss": self._sparse_loss(),
            "alpha": self.alpha_,
            "intercept": bool(self.fit_intercept),
            "random_state": description_of(self.random_state),
            "normalization": repr((self.normalization, self.directional, self.slack)),
            # A graph's content, not its address: another process may resume.
            "nodes": [repr(name) for name in space.hierarchy.nodes.tolist()],
        }
        weights = [] if examples.sample_weight is None else [examples.sample_weight]
        more = [space.hierarchy.parent, *weights]
        return Checkpoint(self.checkpoint, fingerprint_of_examples(examples, settings, more))

    def _check_sparse(self, validated: bool) -> None:
        given = {
            "normalization": parse(self.normalization)[0] == "learned",
            "kernel": self.kernel is not None,
            "oracle": self.oracle is not None,
            "scale_features": self.scale_features not in (False, "auto"),
            "surrogate": getattr(self.surrogate, "name", self.surrogate) != "margin",
            "early_stopping": bool(self.early_stopping),
            "validation": validated,
            "warm_start": bool(self.warm_start),
            "penalize_intercept": not self.penalize_intercept,
        }
        for name, used in given.items():
            if used:
                raise ValueError(
                    f"{name} is {getattr(self, name, 'given')!r}, which sparse=True does not take: "
                    "leave it out, or use sparse=False"
                )
        if getattr(self.solver, "name", self.solver) not in ("auto", "sgd"):
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
