"""Distributions of labels of StructuredSVM: marginals, probabilities, samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..examples.given import listed
from ..structure.pack import pack
from ..utils.params import check_count
from .calibration import fit_calibration
from .common import EstimatorMixin, LogProbaMixin, OnlyIf, refuse_forced
from .decode import draw, node_rows

# Memory limit of samples.
MOST_BYTES = 2**33


def _has_probabilities(model: Any) -> bool:
    if getattr(model.surrogate, "name", model.surrogate) == "crf" or hasattr(model, "factor_"):
        return True
    raise AttributeError(
        "predict_proba needs surrogate='crf', which is trained to give probabilities, or one class "
        "per example and calibrate(X, y) on held-out examples; predict_marginals gives the "
        "marginals of any model"
    )


def if_crf(method: Any) -> Any:
    """Return a method that exists for models with surrogate "crf" alone.

    Parameters
    ----------
    method : callable

    Returns
    -------
    OnlyIf
    """

    def check(model: Any) -> bool:
        if getattr(model.surrogate, "name", model.surrogate) == "crf":
            return True
        raise AttributeError(
            f"{method.__name__} needs surrogate='crf', which is trained to give probabilities; "
            "predict_marginals gives the marginals of any model"
        )

    return OnlyIf(check)(method)


class DistributionMixin(LogProbaMixin, EstimatorMixin):
    """Marginals and samples from ``space_`` and ``_model``."""

    space_: Any
    surrogate: Any
    n_jobs: int | None
    random_state: Any

    def predict_marginals(
        self,
        X: Any,
        scale: float = 1.0,
        allowed: Any = None,
        forbidden: Any = None,
        projection: str = "entropy",
    ) -> Any:
        """Return the marginal probability of every class at every node.

        With the projection "entropy" they belong to the Gibbs distribution
        ``p(y) ~ exp(scale * score(y))`` (on permutations: to the distribution whose marginals have
        the largest entropy; on wide graphs with cycles they are relaxed marginals, see
        :doc:`/probabilities`). A model trained with surrogate "margin" is not calibrated; ``scale``
        sharpens or flattens it.

        Parameters
        ----------
        X : as for ``fit``
        scale : float, default=1.0
            Factor of all scores.
        allowed, forbidden : as for ``predict``
        projection : {"entropy", "euclidean"}
            "euclidean": SparseMAP, the point of the marginal polytope nearest to the node scores;
            most classes get exactly zero.

        Returns
        -------
        Array of shape (n, K) for single nodes, a list of arrays (length, K) for sequences.
        """
        plain = allowed is None and forbidden is None and type(scale) is float and scale == 1
        if plain and projection == "entropy":
            answers = self._direct("projection", X)  # type: ignore[attr-defined]
            if answers is not None:
                return answers
        layout, potentials, w = self._prepare(X)  # type: ignore[attr-defined]
        space = self.space_
        native = self._asked("projection", projection)(layout)
        masks = self._mask(space, layout.examples, allowed, forbidden)
        refuse_forced(masks)
        rows, _ = node_rows(
            potentials,
            native,
            w,
            masks,
            scale=float(scale),
            n_jobs=self.n_jobs,
            state_rows=getattr(space, "state_rows", 0) if native.has_state else 0,
        )
        return space.unpack_scores(self._by_class(rows, np.add), layout.examples)

    def calibrate(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit probabilities of one class per example to held-out examples, for `predict_proba`.

        They are a softmax of the classes' scores times a factor, ``factor_``, of the largest
        likelihood; predictions stay the same.  The next ``fit`` forgets it.

        Parameters
        ----------
        X, y, sample_weight : as for ``fit``
            Not the training examples, whose scores are overconfident.  Classes unseen in training
            are left out.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            If labels are not one class per example, or none of y is known.

        Examples
        --------
        >>> from structsolve import StructuredSVM
        >>> X, y = [[-1.0], [1.0], [2.0]], ["a", "b", "b"]
        >>> model = StructuredSVM("multiclass", alpha=0.1).fit(X, y)
        >>> proba = model.calibrate([[-0.5], [0.5], [0.2]], ["a", "b", "a"]).predict_proba(X)
        >>> proba.sum(axis=1).round(6).tolist(), model.predict(X).tolist()
        ([1.0, 1.0, 1.0], ['a', 'b', 'b'])
        """
        self._require_fitted()
        X, y = listed(X), listed(y, "y")
        space = self.space_
        if not space.structure.single_node:
            raise ValueError(
                f"calibrate: labels of structure {space.structure.name!r} are not one class per "
                "example; use surrogate='crf' for probabilities"
            )
        if y is None:
            raise ValueError("y is None: expected labels, in the same form as for fit")
        examples = pack(space, X, y, sample_weight, unseen="extra")
        rows, _ = self._class_rows(X, "calibrate")
        marks = np.zeros_like(rows)
        inside = np.flatnonzero(examples.labels < rows.shape[1])
        marks[inside, examples.labels[inside]] = 1
        scores, marks = (space.unpack_scores(each, examples) for each in (rows, marks))
        weight = examples.sample_weight
        if weight is None:
            weight = np.ones(len(scores))
        used = (marks.any(axis=1)) & (weight > 0)
        if not used.any():
            raise ValueError(f"y: none of {len(scores)} examples is of a class known from training")
        order = np.argsort(-scores[used], axis=1, kind="stable")
        places = np.take_along_axis(marks[used], order, axis=1).argmax(axis=1)
        best_first = np.take_along_axis(scores[used], order, axis=1)
        fitted = fit_calibration(best_first, places, scores.shape[1], weight[used])
        self.factor_ = fitted.factor
        return self

    @OnlyIf(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class at every node.

        For models with surrogate "crf", and those that :meth:`calibrate` has fitted.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        Array of shape (n, K) for single nodes, in the order of ``classes_``; of shape (n, L) for
        label sets; a list of arrays (length, K) for sequences.
        """
        return self.predict_marginals(X, getattr(self, "factor_", 1.0))

    def sample(
        self, X: Any, n_samples: int = 1, scale: float = 1.0, random_state: Any = None
    ) -> Any:
        """Draw labels from ``p(y) ~ exp(scale * score(y))``, exactly and independently.

        Parameters
        ----------
        X : as for ``fit``
        n_samples : int, default=1
            Labels per example.
        scale : float, default=1.0
            Factor of all scores.
        random_state : int, RandomState, Generator or None, optional
            The model's by default.

        Returns
        -------
        list
            Per draw, labels in the form that ``predict`` returns.

        Examples
        --------
        >>> from structsolve import StructuredSVM
        >>> X, y = [[-1.0], [1.0], [2.0]], ["a", "b", "b"]
        >>> model = StructuredSVM("multiclass", surrogate="crf", alpha=0.001).fit(X, y)
        >>> [labels.tolist() for labels in model.sample([[-4.0], [4.0]], 3)]
        [['a', 'b'], ['a', 'b'], ['a', 'b']]
        """
        check_count("n_samples", n_samples)
        layout, potentials, w = self._prepare(X)  # type: ignore[attr-defined]
        projection = self._asked("projection", "entropy")(layout)
        if not projection.has_samples:
            relaxed = projection.gibbs and not projection.exact
            raise ValueError(
                f"structure {self.space_.structure.name!r} draws no samples"
                + (" of these examples, whose marginals are relaxed" if relaxed else "")
                + "; sampling needs a projection 'entropy' with sample()"
            )
        size = int(layout.examples.label_offsets[-1])
        if 4 * size * n_samples > MOST_BYTES:
            raise ValueError(
                f"n_samples is {n_samples}, which at {size} integers each takes more than "
                f"{MOST_BYTES >> 30} GiB; draw fewer at a time"
            )
        rng = self._generator(random_state)  # type: ignore[attr-defined]
        flat = draw(
            potentials,
            projection,
            w,
            int(n_samples),
            scale=float(scale),
            seed=int(rng.integers(2**31)),
            n_jobs=self.n_jobs,
        )
        return [self.space_.unpack(labels, layout.examples) for labels in flat]
