"""Predictions of ExtremeSVM: best classes with scores, scores of chosen classes, probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from structsolve.estimators.calibration import KEPT, Calibration, fit_calibration
from structsolve.estimators.common import CommonMixin, LogProbaMixin, OnlyIf
from structsolve.examples.given import check_weights, listed
from structsolve.plugins.extreme.checks import (
    check_k,
    encode,
    read_labels,
    read_rows,
    refuse_large,
    refuse_unknown,
    some_rows,
)
from structsolve.plugins.extreme.label_sets import as_form, form_of, read_label_sets
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.utils.arrays import n_rows
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.parallel import effective_jobs

# Scores of all classes are computed for this many bytes of class numbers at a time.
_BLOCK = 2**26
# Chosen classes are scored one by one if they are fewer than one in this many.
_SOME = 8
NO_PROBABILITIES = (
    "scores of this surrogate are no probabilities: once fitted, call calibrate(X, y) with "
    "held-out examples, or train with surrogate='crf'"
)


Model = TypeVar("Model", bound="ExtremePredictionMixin")


class ExtremePredictionMixin(LogProbaMixin, CommonMixin):
    """Scores and probabilities of a fitted model's classes."""

    classes_: np.ndarray
    n_features_in_: int
    surrogate: Any
    max_memory: float | None
    n_jobs: int | None
    _weights: Postings
    _calibration: Calibration | None
    _uncalibrated: str
    _label_form: str | None = None

    # -- prediction -----------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Return the best class of every example; of equal ones, the first in ``classes_``.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        ndarray of shape (n,)
            For models of several labels per row: the labels of positive scores, in the form of
            ``y`` in training.
        """
        if self._label_form is not None:
            return self._predict_sets(self._read(X))
        alone = self._best_of_one(X)
        if alone >= 0:
            return self.classes_[alone : alone + 1].copy()
        best = self._top(self._read(X), 1)[0][:, 0]
        return self.classes_[best]

    def _best_of_one(self, X: Any) -> int:
        """The best class of one plain sparse row; -1 for anything that needs to be checked."""
        kept = self.__dict__
        if type(X) not in (sp.csr_matrix, sp.csr_array) or "feature_names_in_" in kept:
            return -1
        columns, values, weights = X.indices, X.data, kept.get("_weights")
        if (
            weights is None
            or X.shape != (1, weights.n_features)
            or columns.dtype != np.int32
            or values.dtype not in (np.float32, np.float64)
            or not (columns.ndim == values.ndim == 1 and len(X.indptr) == 2)
            or not (columns.flags.c_contiguous and values.flags.c_contiguous)
            or not X.indptr[0] == 0 <= X.indptr[1] == len(values) == len(columns)
        ):
            return -1
        return weights.best_class(columns, values)

    def _predict_sets(self, X: sp.csr_matrix) -> Any:
        """Labels of positive scores, in the form of y."""
        form, size, parts = self._label_form, len(self.classes_), []
        assert form is not None
        for first, last in self._blocks(X.shape[0], 8 * size):
            numbers, scores = self._top(some_rows(X, first, last), size)
            row, place = np.nonzero(scores > 0)
            ones = np.ones(len(row), np.float32)
            shape = last - first, size
            parts.append(sp.csr_matrix((ones, (row, numbers[row, place])), shape=shape))
        labels = sp.vstack(parts, format="csr") if parts else sp.csr_matrix((0, size))
        labels.sort_indices()
        return as_form(labels, form, self.classes_)

    def predict_topk(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best classes of every example with their scores, best first.

        Parameters
        ----------
        X : as for :meth:`fit`
        k : int, default=5
            From 1 to the number of classes.

        Returns
        -------
        classes : ndarray of shape (n, k)
        scores : ndarray of float32 of shape (n, k)

        Examples
        --------
        >>> from structsolve import ExtremeSVM
        >>> model = ExtremeSVM().fit([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], [3, 5, 7])
        >>> model.predict_topk([[1.0, 0.4]], k=2)[0].tolist()
        [[3, 5]]
        """
        X = self._read(X)
        k = check_k(k, len(self.classes_))
        numbers, scores = self._top(X, k)
        return self.classes_[numbers], scores

    def decision_function(self, X: Any, classes: Any = None) -> np.ndarray:
        """Return the scores of all classes, or of the given ones.

        Parameters
        ----------
        X : as for :meth:`fit`
        classes : sequence, optional
            Names of m classes, in any order.

        Returns
        -------
        ndarray of float32 of shape (n, n_classes), or (n, m)
            Of shape (n,) for a model of two classes, one per row, if ``classes`` is None: the
            difference of their scores.

        Raises
        ------
        ValueError
            If a class is unknown, or when the result would not fit in memory.
        """
        X = self._read(X)
        if classes is None:
            chosen = np.arange(len(self.classes_), dtype=np.int32)
        else:
            labels = read_labels(classes, len(classes))
            chosen = encode(labels, self.classes_, "classes")
            refuse_unknown(chosen, labels, "classes", "name those of classes_")
        refuse_too_large(
            4.0 * X.shape[0] * len(chosen),
            f"scores of {X.shape[0]} examples and {len(chosen)} classes",
            "call predict_topk(X, k) for the best, name classes=, or give fewer examples at a time",
            self.max_memory,
            half=True,
        )
        scores = np.empty((X.shape[0], len(chosen)), np.float32)
        # For many classes, a scan of all is faster than a search for each.
        some = _SOME * len(chosen) < len(self.classes_)
        for first, last in self._blocks(X.shape[0], 8 * len(chosen if some else self.classes_)):
            rows, own = some_rows(X, first, last), scores[first:last]
            if some:
                own[:] = self._weights.scores(rows, np.tile(chosen, (last - first, 1)))
                continue
            numbers, sorted_scores = self._top(rows, len(self.classes_))
            every = np.empty(sorted_scores.shape, np.float32)
            np.put_along_axis(every, numbers.astype(np.int64), sorted_scores, axis=1)
            own[:] = every if classes is None else every[:, chosen]
        if classes is None and len(chosen) == 2 and self._label_form is None:
            return scores[:, 1] - scores[:, 0]
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; classes unseen in training count as errors.

        For models of several labels per row: the precision of the best label, the share of rows
        that have it (:func:`~structsolve.plugins.extreme.metrics.precision_at_k` with k = 1).

        Parameters
        ----------
        X, y, sample_weight : as for :meth:`fit`

        Returns
        -------
        float
        """
        X, y = self._read(X), listed(y, "y")
        right = self._right(self._top(X, 1)[0][:, 0], y)
        weights = check_weights(sample_weight, X.shape[0])
        return float(np.average(right, weights=weights))

    def _right(self, best: np.ndarray, y: Any) -> np.ndarray:
        """Whether a class of each row, by number, is among its classes."""
        if not self.label_sets:
            return best == encode(read_labels(y, len(best)), self.classes_)
        labels = self._sets(y, len(best))
        return np.asarray(labels[np.arange(len(best)), best]).ravel() > 0

    def _sets(self, y: Any, n: int) -> sp.csr_matrix:
        form = form_of(y, self._label_form)
        if form is None:
            raise ValueError(
                "y: found one class per row, but the model was trained on rows of several labels: "
                "give indicators or lists of labels"
            )
        return read_label_sets(y, form, n, self.classes_)[0]

    @property
    def label_sets(self) -> bool:
        """Whether rows have several labels, so that scorers by name compare sets."""
        return self._label_form is not None

    def label_indicators(self, y: Any) -> np.ndarray:
        """Return which labels rows have, of a model of several labels per row.

        Parameters
        ----------
        y : as for :meth:`fit`

        Returns
        -------
        ndarray of int32 of shape (n, n_classes)
            0 and 1.  Labels unseen in training are left out.
        """
        return self._sets(y, n_rows(y)).toarray().astype(np.int32)

    def _read(self, X: Any) -> sp.csr_matrix:
        self._require_fitted()
        self._check_names(X)
        rows = read_rows(X, self.n_features_in_, self.max_memory)
        refuse_large(rows, self._weights.most)
        return rows

    def _top(self, X: sp.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._weights.top(X, k, n_jobs=effective_jobs(self.n_jobs))[:2]

    @staticmethod
    def _blocks(n: int, width: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows of ``width`` bytes that fill a block."""
        size = max(1, _BLOCK // max(width, 1))
        for first in range(0, n, size):
            yield first, min(first + size, n)

    # -- probabilities --------------------------------------------------------------------------

    def calibrate(
        self: Model, X: Any, y: Any, sample_weight: Any = None, kept: int = KEPT
    ) -> Model:
        """Fit probabilities to held-out examples: a softmax over the best classes of each.

        Parameters
        ----------
        X, y, sample_weight : as for :meth:`fit`
            Not the training examples, whose scores are overconfident. Examples of classes unseen in
            training are left out.
        kept : int, default=20
            Number of best classes per example with a probability of their own.

        Returns
        -------
        ExtremeSVM
            Itself.
        """
        X = self._read(X)
        if self._label_form is not None:
            raise ValueError(
                "calibrate: the model was trained on rows of several labels, whose probabilities "
                "do not sum to one; use decision_function(X)"
            )
        if isinstance(kept, (int, np.integer)):
            kept = min(kept, len(self.classes_))
        kept = check_k(kept, len(self.classes_), "kept")
        labels = read_labels(y, X.shape[0])
        numbers = encode(labels, self.classes_)
        weights = check_weights(sample_weight, X.shape[0]) * (numbers >= 0)
        if not weights.sum() > 0:
            raise ValueError(
                f"y: none of {len(numbers)} examples is of a class that was there in training"
            )
        ids, scores = self._top(X, kept)
        hits = ids == numbers[:, None]
        places = np.where(hits.any(axis=1), hits.argmax(axis=1), kept)
        used = weights > 0
        self._calibration = fit_calibration(
            scores[used], places[used], len(self.classes_), weights[used]
        )
        return self

    def _check_calibrated(self) -> None:
        fitted = self.__sklearn_is_fitted__()
        if fitted and self._calibration is None:
            raise AttributeError(f"predict_proba is not available: {self._uncalibrated}")
        if not fitted and getattr(self.surrogate, "name", self.surrogate) != "crf":
            raise AttributeError(f"predict_proba is not available: {NO_PROBABILITIES}")

    @OnlyIf(_check_calibrated)
    def predict_proba(self, X: Any, k: int | None = None) -> Any:
        """Return probabilities of classes, for calibrated models and ``surrogate="crf"``.

        Parameters
        ----------
        X : as for ``fit``
        k : int, optional
            Only the k best classes of every row, at most as many as are kept: all with "crf", else
            those of ``calibrate(kept=)``.

        Returns
        -------
        ndarray of shape (n, n_classes), or with ``k`` a CSR matrix of that shape
            Classes that are not kept share the rest evenly.
        """
        X = self._read(X)
        calibration = self._calibration
        assert calibration is not None
        n, n_classes, kept = X.shape[0], len(self.classes_), calibration.kept
        if k is None:
            refuse_too_large(
                8.0 * n * n_classes,
                f"probabilities of {n} examples and {n_classes} classes",
                f"call predict_proba(X, k) with k up to {kept} for the best alone, or give fewer "
                "examples at a time",
                self.max_memory,
                half=True,
            )
        else:
            k = check_k(k, kept)
        whole = np.empty((n, n_classes) if k is None else (n, k))
        columns = np.empty((n, k or 0), np.int32)
        for first, last in self._blocks(n, 24 * kept):
            ids, scores = self._top(some_rows(X, first, last), kept)
            shares, rest = calibration.probabilities(scores)
            if k is None:
                whole[first:last] = rest[:, None] / max(n_classes - kept, 1)
                np.put_along_axis(whole[first:last], ids.astype(np.int64), shares, axis=1)
            else:
                columns[first:last], whole[first:last] = ids[:, :k], shares[:, :k]
        if k is None:
            return whole
        starts = np.arange(0, n * k + 1, k)
        answer = sp.csr_matrix((whole.ravel(), columns.ravel(), starts), shape=(n, n_classes))
        answer.sort_indices()
        return answer
