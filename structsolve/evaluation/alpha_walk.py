"""The walk along a path over alpha: which values are fitted, in which folds, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .alpha_path import a_decade, best_of, exceeds, is_over, paired

# Folds behind by this many standard errors of the difference decide for all.
BEHIND = 2.0


class Walk:
    """Scores of folds at the alphas tried so far.

    Without patience all values are fitted in all folds.  With it, those are tried that are a power
    of ten apart, half of it where scores rise, then those at half the distance on both sides of the
    best, and so on.  The first folds, three of five, lead; the others follow at values that are
    not clearly behind the best there, and at the one that is chosen.

    Parameters
    ----------
    n_alphas, n_folds : int
    score_at : callable
        Maps a range of folds and the number of an alpha to a list of score, passes, objective and
        whether the fit was cut short.
    patience : int
        See :class:`~structsolve.StructuredSVMCV`; 0 for None.
    """

    def __init__(
        self, n_alphas: int, n_folds: int, score_at: Callable[[range, int], list], patience: int
    ):
        self.n_alphas, self.n_folds, self.patience = n_alphas, n_folds, patience
        self._score_at = score_at
        self._columns: dict[int, list[tuple[float, int, float, bool]]] = {}
        self.leading = max(3, (n_folds + 1) // 2) if patience else n_folds

    def run(self) -> None:
        """Walk to the end."""
        if not self.patience:
            for k in range(self.n_alphas):
                self._fit(k)
            return
        step = a_decade(self.n_alphas)
        self._descend(step)
        while step > 1:
            step //= 2
            best = self._best()
            for k in (best - step, best + step):
                if 0 <= k < self.n_alphas and k not in self._columns:
                    self._fit(k)
            self._follow()
        # One that the leading folds had ruled out may be best by those that followed elsewhere.
        while (known := len(self._columns[k := self._best()])) < self.n_folds:
            self._columns[k] += self._score_at(range(known, self.n_folds), k)

    def _best(self) -> int:
        scores, _, objectives, _ = self.table()
        return self.tried[best_of(paired(scores), objectives)]

    @property
    def tried(self) -> list[int]:
        """Numbers of the alphas tried, in ascending order."""
        return sorted(self._columns)

    def table(self) -> Any:
        """Return scores, passes, objectives and fits cut short; NaN where a fold did not follow.

        Returns
        -------
        ndarray of float64 of shape (4, n_folds, n_alphas tried)
        """
        table = np.full((4, self.n_folds, len(self._columns)), np.nan)
        for place, k in enumerate(self.tried):
            table[:, : len(self._columns[k]), place] = np.array(self._columns[k], float).T
        return table

    def _descend(self, step: int) -> None:
        """Try smaller and smaller alphas until their scores have fallen."""
        k = 0
        while k < self.n_alphas:
            self._fit(k)
            leading = slice(0, self.leading)
            best = self.tried[int(np.argmax(self.table()[0, leading].mean(axis=0).round(12)))]
            if self._over(leading, best, step):
                self._follow()
                if self._over(slice(None), best, step):
                    return
            if k == best > 0:  # scores rise
                k += max(1, step // 2)
            else:
                k = best + step if best < k < best + step else k + step
        self._follow()

    def _over(self, folds: slice, best: int, step: int) -> bool:
        # Nearer ones than a power of ten may score below the best by chance.
        far = [j <= best or j >= best + step for j in self.tried]
        scores, _, objectives, cut = self.table()[:, :, far]
        rows = slice(0, self.leading)
        return is_over(paired(scores[folds]), objectives[rows], self.patience, cut[rows] == 1)

    def _fit(self, k: int) -> None:
        self._columns[k] = self._score_at(range(min(self.leading, self.n_folds)), k)

    def _follow(self) -> None:
        """Fit the other folds at all values that may be best."""
        leading = self.table()[0, : self.leading]
        best = leading[:, int(np.argmax(leading.mean(axis=0).round(12)))]
        for place, k in enumerate(self.tried):
            known = len(self._columns[k])
            if known < self.n_folds and not exceeds(best - leading[:, place], BEHIND):
                self._columns[k] += self._score_at(range(known, self.n_folds), k)
