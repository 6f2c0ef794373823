"""What a fitted ExtremeSVM has beside predictions: weights, smaller weights, files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from structsolve.estimators.common import check_number
from structsolve.plugins.extreme import files
from structsolve.plugins.extreme.prediction import NO_PROBABILITIES, ExtremePredictionMixin
from structsolve.plugins.extreme.pruning import prune_to_error, prune_to_size
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.utils.parallel import effective_jobs


class FittedMixin(ExtremePredictionMixin):
    """Weights and files of :class:`~structsolve.ExtremeSVM`."""

    def _become_fitted(self, classes: np.ndarray, weights: Postings) -> None:
        self.classes_, self._weights = classes, weights
        self.n_features_in_ = weights.n_features
        self._calibration = None
        self._uncalibrated = NO_PROBABILITIES

    def __sklearn_is_fitted__(self) -> bool:
        return "_weights" in self.__dict__

    # -- weights --------------------------------------------------------------------------------

    @property
    def coef_(self) -> sp.csr_matrix:
        """The weights, a row per class."""
        self._require_fitted()
        return self._weights.to_matrix().T.tocsr()

    @property
    def intercept_(self) -> np.ndarray:
        """The intercepts, one per class."""
        self._require_fitted()
        given = self._weights.intercept
        return np.zeros(len(self.classes_), np.float32) if given is None else np.array(given)

    # -- smaller models, files ------------------------------------------------------------------

    def sparsify(
        self,
        mb: float | None = None,
        error: float | None = None,
        X: Any = None,
        y: Any = None,
        dtype: Any = None,
    ) -> Any:
        """Drop small weights to reach a size on disk, or until the error rises by a given amount.

        Without ``mb`` and ``error`` no weight is dropped.  Calibration is lost, except with "crf":
        call :meth:`calibrate` afterwards.

        Parameters
        ----------
        mb : float, optional
            Maximum size in megabytes of the file that :meth:`save` writes.
        error : float, optional
            Maximum rise of the error on ``X, y``, such as .001.
        X, y : examples, optional
            Held-out examples for ``error``.
        dtype : {"float32", "float16"}, optional
            dtype of the kept weights; unchanged by default.

        Returns
        -------
        ExtremeSVM
            Itself.

        Examples
        --------
        >>> import numpy as np
        >>> from structsolve import ExtremeSVM
        >>> X = np.eye(3) + 0.01
        >>> model = ExtremeSVM().fit(X, ["a", "b", "c"])
        >>> before = model.coef_.nnz
        >>> model.sparsify(error=0.0, X=X, y=["a", "b", "c"]).coef_.nnz < before
        True
        """
        self._require_fitted()
        if mb is not None and error is not None:
            raise ValueError("sparsify takes mb= or error=, found both: leave one out")
        if mb is None and error is None:
            self._weights = files.as_type(self._weights, dtype)
            return self
        if error is None:
            check_number("mb", mb, 0, True)
            if X is not None or y is not None:
                raise ValueError("X and y belong to error=; leave them out with mb=")
            weights = files.as_type(self._weights, dtype)
            weights = prune_to_size(weights, 1e6 * float(mb or 0), files.empty_bytes(self))
        else:
            check_number("error", error, 0, False)
            if X is None or y is None:
                raise ValueError("error= needs X and y, held-out examples to measure it on")
            rows = self._read(X)
            jobs = effective_jobs(self.n_jobs)

            def error_of(tried: Postings) -> float:
                best = tried.top(rows, 1, n_jobs=jobs)[0][:, 0]
                return float(1 - np.mean(self._right(best, y)))

            weights = prune_to_error(files.as_type(self._weights, dtype), error_of, float(error))
        calibration = self._calibration
        self._become_fitted(self.classes_, weights)
        if self.settings_["surrogate"] == "crf":
            self._calibration = calibration
        elif calibration is not None:
            self._uncalibrated = "sparsify() changed the scores: call calibrate(X, y) again"
        return self

    def save(self, path: str | os.PathLike[str], dtype: Any = None) -> None:
        """Write the model to a file that :func:`structsolve.load` reads; no pickle inside.

        ``structsolve.load(path, mmap=True)`` maps the weights into memory instead of reading them.

        Parameters
        ----------
        path : path
        dtype : {"float32", "float16"}, optional
            dtype of the weights in the file; unchanged by default.

        Raises
        ------
        ValueError
            If only pickle could save a parameter, or weights exceed float16; names the parameter.
        """
        self._require_fitted()
        files.save(self, path, dtype)

    #: Types of its files' arrays, and those that ``load(path, mmap=True)`` maps.
    array_types = (
        ("postings_(indptr|classes)", "integers"),
        ("postings_.*", "floating-point numbers"),
    )
    mapped_arrays = files.MAPPED
    #: The module of its ``predict`` and ``score`` in the shell.
    shell = "structsolve.plugins.extreme.commands"

    @classmethod
    def from_file(
        cls, meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any = None
    ) -> Any:
        """Return the model of a file, from its contents; :func:`structsolve.load` calls it.

        Parameters
        ----------
        meta : dict
            The file's numbers and names.
        arrays : dict of str to ndarray
        kernel : None
            It has none.

        Returns
        -------
        ExtremeSVM

        Raises
        ------
        ValueError
            If parts of the file do not fit together.
        """
        return files.load(cls, meta, arrays)
