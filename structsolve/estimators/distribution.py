"""Distributions of labels of StructuredSVM: marginals, probabilities, samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import EstimatorMixin, OnlyIf, refuse_forced
from .decode import draw, node_rows

# Memory limit of samples.
MOST_BYTES = 2**33


def _is_crf(model: Any) -> bool:
    if getattr(model.surrogate, "name", model.surrogate) == "crf":
        return True
    raise AttributeError(
        "predict_proba needs surrogate='crf', which is trained to give probabilities; "
        "predict_marginals gives the marginals of any model"
    )


class DistributionMixin(EstimatorMixin):
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
        :doc:`probabilities`). A model trained with surrogate "margin" is not calibrated; ``scale``
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
        layout, potentials, w = self._prepare(X)  # type: ignore[attr-defined]
        space = self.space_
        if projection == "euclidean":
            native = self._asked("euclidean")(layout)
        else:
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

    @OnlyIf(_is_crf)
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class at every node, for models with surrogate "crf".

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        Array of shape (n, K) for single nodes, in the order of ``classes_``; of shape (n, L) for
        label sets; a list of arrays (length, K) for sequences.
        """
        return self.predict_marginals(X)

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
        if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ValueError(f"n_samples is {n_samples!r}, expected an integer >= 1")
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
