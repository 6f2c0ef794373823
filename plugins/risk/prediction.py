"""The predicting half of ConditionalRiskMinimizer: risks, their least labels, weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.estimators.common import mean_score
from structsolve.estimators.label_list import guarded
from structsolve.examples.given import check_weights, is_sparse, listed
from structsolve.plugins.risk._decode import label_scores
from structsolve.plugins.risk.diagnostics import RiskDiagnostics
from structsolve.plugins.risk.joint import check_joint
from structsolve.plugins.risk.ridge import FeatureSmoother, JointSmoother, KernelSmoother
from structsolve.plugins.risk.shapes import refuse_weights
from structsolve.plugins.risk.targets import PartTargets, example_rows
from structsolve.potentials.mercer import Kernel, given_dense
from structsolve.potentials.mercer_model import PREDICTION_BYTES
from structsolve.structure.ask import make_layout
from structsolve.structure.pack import pack


class RiskPredictionMixin(RiskDiagnostics):
    """Prediction from the smoother's weights of training examples, and their targets."""

    joint_kernel: Any
    loss: Any
    feature_map_: Any
    _train_rows: Any
    _costs: Any

    def predict(self, X: Any) -> Any:
        """Return the label of least estimated risk of every example.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        Labels in the form of ``y``; scikit-learn's metrics refuse lists of label sequences: use
        :func:`structsolve.get_scorer`.
        """
        examples, labels, _ = self._decoded(X)
        return guarded(self._targets.unpack(labels, examples))

    def predict_with_risk(self, X: Any) -> tuple[Any, np.ndarray]:
        """Return the predictions and their estimated risks.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        labels : labels in the form of ``y``
        risks : ndarray of shape (n,)
        """
        examples, labels, risks = self._decoded(X)
        return self._targets.unpack(labels, examples), risks

    def conditional_risk(self, X: Any, y: Any) -> np.ndarray:
        """Return the estimated risk ``R(y_i | x_i)`` of predicting given labels.

        Parameters
        ----------
        X, y : as for ``fit``

        Returns
        -------
        ndarray of shape (n,)
        """
        X = listed(X)
        examples, features = self._new_rows(X)
        if not isinstance(self._targets, PartTargets):
            return self._targets.risks(self.weights(X), y)
        labelled = pack(self.space_, X, listed(y, "y"))
        refuse_weights(labelled, self._targets.examples, "training")
        theta, constants = self._scores(features, self.alpha_)
        parts = self._asked("parts")(make_layout(self.space_, labelled))
        return constants - label_scores(parts, theta, labelled.labels)

    def weights(self, X: Any) -> np.ndarray:
        """Return the weights ``w(x)`` of the training examples.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        ndarray of shape (n, n_training)

        Raises
        ------
        ValueError
            With a joint kernel, whose risks are no weighted sums of losses.
        """
        _, features = self._new_rows(listed(X))
        if self._joint is not None:
            raise ValueError("weights: with a joint kernel the risk is no weighted sum of losses")
        return self._smoother.weights(features, self.alpha_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return ``1 - mean loss per part``, as :meth:`StructuredSVM.score` does.

        For continuous labels, return minus the mean loss.

        Parameters
        ----------
        X, y : as for ``fit``
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        self._require_fitted()
        if not isinstance(self._targets, PartTargets):
            losses = self._targets.losses_of(self.predict(X), y)
            return -float(np.average(losses, weights=check_weights(sample_weight, len(losses))))
        X = listed(X)
        _, labels, _ = self._decoded(X)
        examples = pack(self.space_, X, listed(y, "y"), sample_weight, unseen="extra")
        loss = self._asked("loss", self.loss)(make_layout(self.space_, examples))
        return mean_score(loss, examples, labels)

    # -- parts of the above ---------------------------------------------------------------------

    def _is_mapped(self) -> bool:
        return "feature_map_" in self.__dict__

    def _rows(self, kernel: Kernel | None, examples: Any, X: Any) -> Any:
        return example_rows(kernel or Kernel("linear"), examples, given_dense(X))

    def _mapped(self, rows: Any, fit: bool = False) -> np.ndarray:
        map_ = self.feature_map_
        Z = map_.fit_transform(rows) if fit else map_.transform(rows)
        Z = Z.toarray() if is_sparse(Z) else np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or len(Z) != rows.shape[0] or not np.isfinite(Z).all():
            raise ValueError(
                f"feature_map gave an array of shape {Z.shape} for {rows.shape[0]} rows, "
                "expected finite numbers, one row each"
            )
        return Z

    def _new_rows(self, X: Any) -> tuple[Any, np.ndarray]:
        """Return packed examples, and their kernel values or features for the smoother."""
        self._require_fitted()
        self._check_names(X)
        kernel = self._kernel()
        if "gamma_" in self.__dict__:
            kernel = kernel.with_gamma(self.gamma_)
        if kernel is not None and kernel.precomputed:
            columns = np.shape(X)[-1] if np.ndim(X) else None
            if columns != self._targets.n:
                raise ValueError(
                    f"X: found {columns} features, expected {self._targets.n} kernel values, one "
                    "per training example (kernel='precomputed')"
                )
        examples = pack(self.space_, X)
        self._targets.check_shape(examples)
        rows = self._rows(kernel, examples, X)
        if self._is_mapped():
            return examples, self._mapped(rows)
        if kernel is None:
            return examples, rows.toarray() if is_sparse(rows) else rows
        if kernel.precomputed:
            return examples, rows
        K = np.empty((examples.n, self._targets.n))
        together = max(1, PREDICTION_BYTES // (8 * self._targets.n))
        for first in range(0, examples.n, together):
            some = slice(first, first + together)
            K[some] = kernel.matrix(
                rows[some], self._train_rows, lambda i, a=first: f"X, example {a + i}"
            )
        return examples, K

    def _decoded(self, X: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        X = listed(X)
        examples, features = self._new_rows(X)
        return examples, *self._decode(features, self.alpha_, examples)

    def _decode(self, features: np.ndarray, alpha: float, examples: Any) -> tuple[Any, np.ndarray]:
        if not isinstance(self._targets, PartTargets):
            return self._targets.decode(self._smoother.weights(features, alpha), self.n_jobs)
        return self._targets.decode(
            lambda first, last: self._scores(features[first:last], alpha), examples, self.n_jobs
        )

    def _scores(self, features: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Return part scores whose maximiser has the least risk, and constants."""
        if self._joint is not None:
            return self._joint_scores(self._joint, self._costs, features, alpha)
        if isinstance(self._smoother, FeatureSmoother):
            averages = self._smoother.averages(features, self._targets.mu_and_one, alpha)
            return self._targets.scores_of(averages[:, :-1], averages[:, -1])
        return self._targets.scores(self._smoother.weights(features, alpha))

    def _make_joint(self, smoother: KernelSmoother) -> JointSmoother:
        block = self.space_.layout.node
        if not isinstance(self._targets, PartTargets) or self._targets.sizes[0] != 1:
            raise ValueError(
                f"joint_kernel: structure {self.space_.structure.name!r} has no single node with "
                "parts per example, which a joint kernel needs"
            )
        # Labels of single leaves name classes, but scores belong to nodes.
        hierarchy = getattr(self.space_, "hierarchy", None)
        names = getattr(self.space_, "classes_", np.arange(block.shape[-1]))
        names = names if hierarchy is None else hierarchy.nodes
        B = check_joint(self.joint_kernel, names, int(np.prod(block.shape)))
        return JointSmoother(smoother, B)

    def _part_costs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return costs of the node's parts, without padding, and constants, per training label."""
        rows, constants = self._targets.costs()
        return rows[:, self._node_parts()], constants

    def _node_parts(self) -> np.ndarray:
        layout = self.space_.layout
        inside = np.zeros((*layout.node.shape[:-1], layout.node.stride), dtype=bool)
        inside[..., : layout.node.shape[-1]] = True
        return layout.shared_size + np.flatnonzero(inside)

    def _joint_scores(
        self, joint: JointSmoother, costs: Any, features: np.ndarray, alpha: float
    ) -> tuple[np.ndarray, np.ndarray]:
        rows, constants = costs
        theta = np.zeros((len(features), self._targets.size))
        theta[:, self._node_parts()] = -joint.averages(features, rows, alpha)
        weights = joint.smoother.weights(features, alpha)
        return theta, weights @ constants
