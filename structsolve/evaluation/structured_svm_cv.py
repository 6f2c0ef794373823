"""StructuredSVMCV: alpha chosen by cross-validation along a path."""

from __future__ import annotations

import inspect
import numbers
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from structsolve import registry

from ..estimators.alpha import AUTO, refuse_without_effect
from ..estimators.common import generator_of
from ..estimators.fitting import TrainingData, indexed, take
from ..estimators.soft_labels import refuse_marginals
from ..estimators.structured_svm import StructuredSVM
from ..examples.given import check_weights, listed
from ..potentials.mercer import PRECOMPUTED
from ..structure.node_space import NodeSpace
from ..utils.arrays import n_rows
from ..utils.progress import Progress, stage
from .alpha_path import (
    DECADES,
    best_of,
    chosen_text,
    end_text,
    given_alphas,
    largest_alpha,
    paired,
)
from .alpha_walk import Walk
from .folds import given_folds, shuffled_folds
from .scorers import name_of, scorer_of

# Relative gap at which fits of folds end on a path of automatic values: their scores vary more from
# fold to fold.
FOLD_TOL = 0.01
# Parameters that estimators with a path set internally.
SET = ("alpha", "warm_start")
# Attributes of estimators with a path besides those of the plain one.
TOLD = ("alphas_", "alpha_", "scores_", "scoring_", "passes_")
# What a fitted one holds besides attributes in "_".
MODEL = ("_model", "_operators", "_run", "_stream")


def with_settings_of(base: type) -> Callable[[Any], Any]:
    """Let a constructor's ``**settings`` show as the keyword parameters of a base class.

    Parameters
    ----------
    base : type

    Returns
    -------
    callable
        A decorator.
    """

    def told(init: Any) -> Any:
        own = inspect.signature(init).parameters
        more = [
            p.replace(kind=p.KEYWORD_ONLY)
            for name, p in inspect.signature(base.__init__).parameters.items()  # type: ignore[misc]
            if name not in own and name not in SET
        ]
        named = [p for p in own.values() if p.kind is not p.VAR_KEYWORD]
        init.__signature__ = inspect.Signature([*named, *more])
        return init

    return told


class PathMixin:
    """Mixin: chooses alpha by cross-validation, and trains with it."""

    #: The plain estimator.
    kind: ClassVar[type[StructuredSVM]]
    alphas: Any
    cv: Any
    scoring: Any
    patience: int | None
    refit: bool
    # Attributes of the estimators that use the mixin.
    alpha: Any
    loss: Any
    tol: float
    warm_start: Any
    n_jobs: int | None
    random_state: Any
    verbose: int
    get_params: Any
    _require_fitted: Any

    def _set(self, alphas: Any, cv: Any, scoring: Any, patience: Any, refit: bool) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.patience = patience
        self.refit = refit
        del self.alpha, self.warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Choose alpha, then train with it on all examples.

        Parameters
        ----------
        X, y : as for ``fit`` of the plain estimator
        sample_weight : array of shape (n,), optional
            Weights in training and, if ``scoring`` is None, in the scores.
        groups : array of shape (n,), optional
            For splitters that keep groups together, such as ``GroupKFold``; refused if ``cv`` is a
            number.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            If a setting is not allowed, or a fold has rows out of range or a score that is not
            finite.

        Warns
        -----
        UserWarning
            If the best alpha is the largest or the smallest of those tried.
        """
        X, y = indexed(listed(X)), indexed(listed(y, "y"), "y")
        given = given_alphas(self.alphas)
        automatic = isinstance(given, int)
        plain = self._plain(AUTO if automatic else 1.0)
        self._check(plain)
        scorer = scorer_of(self.scoring, _is_plain(plain, y))
        rng = plain._generator()
        seeds = generator_of(self.random_state)
        data = plain._read(X, y, sample_weight, None, rng)
        text = "folds are scored by them; choose alpha by hand, or by validation=(X, labels)"
        refuse_marginals(data.space.structure, y, text)
        if isinstance(given, int):
            largest = largest_alpha(_posed(plain, data), self.n_jobs or 1)
            alphas: list[float] = np.geomspace(largest, largest * 10.0**-DECADES, given).tolist()
        else:
            alphas = given
        self.scoring_ = name_of(self.scoring, plain._scored_loss(data.space))
        tol = max(self.tol, FOLD_TOL) if automatic else self.tol
        parts = self._folds(X, y, sample_weight, groups, data, scorer, seeds=seeds, tol=tol)
        folds = list(parts)
        self.alphas_, self.scores_, self.passes_, objectives = self._scores(
            folds, np.array(alphas), automatic
        )
        best = best_of(paired(self.scores_), objectives)
        self.alpha_ = float(self.alphas_[best])
        told = chosen_text(self.alphas_, self.scores_, self.alpha_, self.scoring_)
        stage(int(self.verbose), "alpha path", told)
        if text := end_text(self.alphas_, best, automatic and plain.kernel is None):
            warnings.warn(text, stacklevel=2)
        self._forget()
        if self.refit:
            plain.set_params(alpha=self.alpha_)._train(data, rng)
            settings = plain.get_params(deep=False)
            self.__dict__.update({k: v for k, v in vars(plain).items() if k not in settings})
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model of the chosen alpha; it loads as the plain estimator.

        Parameters
        ----------
        path : path
        """
        self._require_fitted()
        plain = self._plain(self.alpha_)
        given = plain.get_params(deep=False)
        own = {*TOLD, *self.get_params(deep=False)}
        plain.__dict__.update(
            {k: v for k, v in vars(self).items() if k not in own and k not in given}
        )
        plain.save(path)

    @property
    def partial_fit(self) -> Any:
        """Not available: folds need all examples at once."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit; use the plain estimator's")

    @property
    def path(self) -> Any:
        """Not available: ``fit`` follows a path, with its scores in ``scores_``."""
        raise AttributeError(f"{type(self).__name__} has no path; use the plain estimator's")

    # -- parts of fit ---------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop the model of an earlier fit, which is none of this one's alpha."""
        for name in [*vars(self)]:
            if name in MODEL or (name.endswith("_") and name not in TOLD):
                delattr(self, name)

    def _plain(self, alpha: float | str) -> Any:
        """Return the plain estimator with these settings."""
        names = set(inspect.signature(self.kind.__init__).parameters) - {"self", *SET}
        return self.kind(
            alpha=alpha, **{name: clone(getattr(self, name), safe=False) for name in names}
        )

    def _check_settings(self) -> None:
        given_alphas(self.alphas)
        self._check(self._plain(1.0))

    def _check(self, plain: Any) -> None:
        plain._check_settings()
        plain._check_combination(False)
        refuse_without_effect(plain._solver())
        if plain.kernel == PRECOMPUTED:
            raise ValueError(
                "kernel is 'precomputed', whose columns folds would have to select too; give the "
                "kernel by name or as a function"
            )
        if isinstance(self.cv, numbers.Integral) and (self.cv < 2 or isinstance(self.cv, bool)):
            raise ValueError(f"cv is {self.cv!r}, expected an integer >= 2, a splitter or folds")
        patience = self.patience
        whole = isinstance(patience, numbers.Integral) and not isinstance(patience, bool)
        if patience is not None and not (whole and patience >= 1):
            raise ValueError(f"patience is {patience!r}, expected None or an integer >= 1")

    def _folds(
        self,
        X: Any,
        y: Any,
        weights: Any,
        groups: Any,
        data: TrainingData,
        scorer: Any,
        *,
        seeds: np.random.Generator,
        tol: float,
    ) -> Iterator[_Fold]:
        n, space = n_rows(X), data.space
        if weights is not None:
            weights = check_weights(weights, n)
        classes = y if is_classifier(self) and _one_label_each(y) else None
        if self.cv is None or isinstance(self.cv, numbers.Integral):
            splits = shuffled_folds(
                int(self.cv or 5), n, classes, int(seeds.integers(2**31)), groups
            )
        else:
            splits = given_folds(self.cv, n, y, groups)
        for fold, (train, test) in enumerate(splits):
            for which, rows in (("training", train), ("test", test)):
                if weights is not None and not weights[rows].any():
                    raise ValueError(f"sample_weight is zero for all {which} rows of fold {fold}")
            worker = self._plain(1.0).set_params(
                n_jobs=1,
                callbacks=None,
                checkpoint=None,
                verbose=max(0, int(self.verbose) - 1),
                tol=tol,
                random_state=int(seeds.integers(2**31)),
            )
            if worker.scale_features == AUTO:  # folds do as all examples
                scaling = data.examples.scaling
                worker._scales_as = False if scaling is None else scaling.kind
            learns = getattr(worker, "normalization", None) == "learned"
            worker.set_params(warm_start=not (learns or getattr(worker, "sparse", False)))
            # Structures that need all classes also get those missing in a fold's training rows.
            if getattr(space.structure, "classes", ()) is None and hasattr(worker, "structure"):
                classed = registry.get_structure(space.structure, classes=space.classes_.tolist())
                worker.set_params(structure=classed)
            # So do weights, losses and forbidden pairs that name a rare class.
            if isinstance(space, NodeSpace):
                worker._every_class = space.classes_.tolist()
            yield _Fold(
                fold,
                worker,
                (take(X, train), take(y, train), None if weights is None else weights[train]),
                (take(X, test), take(y, test), None if weights is None else weights[test]),
                scorer,
            )

    def _scores(
        self, folds: list[_Fold], alphas: np.ndarray, automatic: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the alphas tried, and scores, passes and objectives of every fold at each."""
        from joblib import Parallel, delayed  # heavy

        threads = Parallel(n_jobs=self.n_jobs, require="sharedmem")
        progress = Progress(int(self.verbose), len(alphas), "alpha path")

        def score_at(which: range, k: int) -> list[tuple[float, int, float, bool]]:
            alpha = float(alphas[k])
            told = threads(delayed(folds[number].score_at)(alpha) for number in which)
            if which.start == 0:  # those that follow are at values told
                mean = float(np.mean([score for score, *_ in told]))
                progress.update({"alpha": alpha, "score": mean})
            return list(told)

        walk = Walk(len(alphas), len(folds), score_at, int(self.patience or 0) * automatic)
        with warnings.catch_warnings(), threads, progress:
            # Only the warning of the kept model counts; scores may come from interrupted fits.
            warnings.simplefilter("ignore", ConvergenceWarning)
            walk.run()
        scores, passes, objectives, _ = walk.table()
        return alphas[walk.tried], scores, np.nan_to_num(passes).astype(int), objectives


class _Fold:
    """One split: follows the path, with a warm start from each solution."""

    def __init__(self, number: int, worker: Any, train: Any, test: Any, scorer: Any):
        self.number, self.worker, self.train, self.test = number, worker, train, test
        self.scorer = scorer
        self.data: Any = None

    def score_at(self, alpha: float) -> tuple[float, int, float, bool]:
        """Train with alpha; return the held-out score, passes, objective, and whether cut short."""
        worker = self.worker
        worker.alpha = alpha
        rng = worker._generator()
        if self.data is None:
            X, y, weights = self.train
            self.data, self.train = worker._read(X, y, weights, None, rng), None
        worker._train(self.data, rng)
        if worker.stop_reason_ == "interrupted":
            raise KeyboardInterrupt
        X, y, weights = self.test
        if self.scorer is None:
            score = worker.score(X, y, weights)
        else:
            score = self.scorer(worker, X, y)
        if not (isinstance(score, numbers.Real) and np.isfinite(float(score))):
            raise ValueError(
                f"scoring returned {score!r} at alpha={alpha:g} on the test rows of fold "
                f"{self.number}, expected a finite number"
            )
        told = worker.history_[-1].get("primal")
        objective, cut = float("nan" if told is None else told), worker.stop_reason_ == "max_iter"
        return float(score), int(worker.n_iter_), objective, cut


def _posed(plain: Any, data: Any) -> Any:
    """Return the problem whose weights at strong regularisation determine the path's start."""
    if getattr(plain, "sparse", False):
        raise ValueError(
            "sparse=True keeps no vector of all weights, which automatic alphas need; list "
            "them, such as alphas=[1e-4, 1e-5, 1e-6]"
        )
    if getattr(plain, "normalization", None) == "learned":
        # Node weights near the start of learning.
        return clone(plain).set_params(normalization="rho:2")._posed(replace(data))
    return plain._posed(data)


def _one_label_each(y: Any) -> bool:
    """Return whether the labels of examples are not sequences, sets or rows themselves."""
    if len(getattr(y, "shape", (0,))) != 1:  # a column holds one each, as in scikit-learn
        return y.shape[1:] == (1,) and not hasattr(y, "tocsr")
    first = next(iter(y), None) if hasattr(y, "__iter__") else None
    return isinstance(first, (str, bytes)) or not hasattr(first, "__len__")


def _is_plain(estimator: Any, y: Any) -> bool:
    """Return whether y suits scikit-learn's scores: one label per row, or rows of 0 and 1."""
    structure = estimator._structure_for(y)
    indicators = getattr(structure, "label_sets", False) and len(getattr(y, "shape", ())) == 2
    return bool(structure.single_node or indicators)


class StructuredSVMCV(PathMixin, StructuredSVM):
    """:class:`StructuredSVM` whose ``alpha`` is chosen by cross-validation along a path.

    Each fold goes from strong to weak regularisation with warm starts: "bcfw" keeps its dual
    variables, "cutting-plane" its cuts, others their weights. Then the model is trained on all
    examples with the alpha of the best mean score (:func:`~structsolve.evaluation.\
alpha_path.best_of`).

    Parameters
    ----------
    structure : str or Structure, default="chain"
    alphas : {"path"}, int or sequence of float, default="path"
        Values to try. "path": from 15 over seven powers of ten; a number: from that many. They
        start at the alpha of practically zero weights (:func:`~structsolve.evaluation.alpha_path.\
largest_alpha`), which takes scales of features and hierarchies into account. They
        are tried a power of ten apart, half of it where scores rise, then those between on both
        sides of the best. Fits of folds then end at a relative gap of 1 % (``tol`` if that is
        more), of listed values at ``tol``.
    cv : int, splitter or iterable, optional
        Folds, 5 by default: rows are shuffled by ``random_state``, and stratified if y is one class
        a row. A splitter, or pairs of training and test rows, are used unchanged. On a path of
        automatic values half of them lead, three at least; the others follow at the values that
        are not behind the best of the leading ones by two standard errors of the difference.
    scoring : str or callable, optional
        ``score`` of the model by default; a name of :func:`~structsolve.get_scorer`; scikit-learn's
        names if y is one label a row or a matrix of 0 and 1; or
        ``scorer(estimator, X, y) -> float``.
    patience : int or None, default=1
        End a path of automatic values when this many in a row, a power of ten apart, score more
        than a standard error below the best, once the best is above the initial plateau
        (:func:`~structsolve.evaluation.alpha_path.is_over`); None tries all values in their order.
        Listed values are all tried.
    refit : bool, default=True
        If False, only scores are computed, without a final model.
    surrogate, loss, class_weight, solver, oracle, max_iter, tol : as of StructuredSVM
    fit_intercept, penalize_intercept : as there
    scale_features, kernel, kernel_params, cache_size, early_stopping : as there
    validation_fraction, n_iter_no_change : as there
    callbacks, checkpoint : as there
        Used only by the final training.
    n_jobs : int or None, default=1
        Threads for folds, and for passes of the final training; the result does not depend on it.
    random_state : as there
    verbose : int, default=0
        1: the path and the final training; 2: also every fit.

    Attributes
    ----------
    alpha_ : float
        The value chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The values tried, the largest first.
    scores_ : ndarray of shape (n_folds, n_alphas)
        NaN where a fold did not follow, since the leading ones had ruled the value out.
    scoring_ : str
        Name of the score, such as ``"1 - mean loss (hamming)"``.
    passes_ : ndarray of int of shape (n_folds, n_alphas)
        Passes that each fit took, 0 where there was none.
    coef_, classes_, history_, ... : as of StructuredSVM

    Examples
    --------
    >>> from structsolve import StructuredSVMCV, make_strips
    >>> train, test = make_strips(n_train=60, n_test=40)
    >>> model = StructuredSVMCV("chain", alphas=[1, 0.1, 0.01], cv=3, tol=0.01)
    >>> model.fit(train.pixels, train.labels).alpha_ in model.alphas_
    True
    >>> model.scores_.shape, model.score(test.pixels, test.labels) > 0.7
    ((3, 3), True)
    """

    kind = StructuredSVM

    @with_settings_of(StructuredSVM)
    def __init__(
        self,
        structure: Any = "chain",
        *,
        alphas: Any = "path",
        cv: Any = None,
        scoring: Any = None,
        patience: int | None = 1,
        refit: bool = True,
        **settings: Any,
    ):
        super().__init__(structure, **settings)
        self._set(alphas, cv, scoring, patience, refit)
