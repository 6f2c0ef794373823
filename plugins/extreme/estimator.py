"""ExtremeSVM: a linear classifier for thousands to hundreds of thousands of classes."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from structsolve.estimators.alpha import tell
from structsolve.estimators.calibration import Calibration
from structsolve.estimators.common import OnlyIf, check_number, check_run_settings, generator_of
from structsolve.examples.given import check_weights, listed
from structsolve.examples.labels import all_classes
from structsolve.plugins.extreme.checks import (
    encode,
    read_classes,
    read_labels,
    read_rows,
    refuse_unknown,
)
from structsolve.plugins.extreme.fitted import FittedMixin
from structsolve.plugins.extreme.kept_rows import KeptRows
from structsolve.plugins.extreme.label_sets import form_of, read_label_sets
from structsolve.plugins.extreme.solvers.base import ExtremeProblem
from structsolve.plugins.extreme.solvers.rivals import make_rivals
from structsolve.plugins.extreme.training import (
    choose_solver,
    continued,
    fingerprint_of,
    is_incremental,
    own_alpha,
    refuse_unread_rivals,
    solver_of_label_sets,
    train,
    warn_lengths,
    warn_unfinished,
)
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils.parallel import effective_jobs
from structsolve.utils.params import check_types

# A weight of this share of the largest is none: float32 adds nothing of it.
NOTHING = 1e-30


def _is_incremental(model: ExtremeSVM) -> bool:
    if not is_incremental(model.solver):
        raise AttributeError(
            f"partial_fit needs a solver that resumes from weights, found solver={model.solver!r}: "
            "use solver='memoir', or 'auto', which keeps rows"
        )
    return True


class ExtremeSVM(FittedMixin, ClassifierMixin, BaseEstimator):
    """Linear classifier for very many classes over sparse features.

    Class c scores ``w_c . x``, plus an intercept if the solver learns one.  Minimises ``alpha/2
    ||W||^2 + sum_i s_i H_i(W)`` (or ``alpha/2 ||W||_1``), with the shares ``s_i`` of the examples,
    over a surrogate ``H`` of the true class and its strongest rivals.  Weights are kept by feature,
    without zeros.

    Parameters
    ----------
    surrogate : str or object, default="auto"
        "squared-hinge", "logistic", "margin", "crf", "max-min", ...; see the table below. "auto":
        the solver's preference.
    penalty : {"l2", "l1"}, default="l2"
        "l1" leaves out whole features of a class.
    rivals : str or RivalIndex, default="auto"
        How a solver finds the rivals of an example: "exact", "certified:EPS" (a scan that skips
        terms that cannot change a difference of scores by more than EPS), "random:K", "lsh:BITS",
        "graph", the name of a plugin's index, or a
        :class:`~structsolve.plugins.extreme.solvers.rivals.RivalIndex` object. "auto": the solver's
        preference.
    solver : str or ExtremeSolver, default="auto"
        "choice", "one-vs-some", "one-vs-rest", "softmax", "dual", "memoir" or an object with
        settings.
        "choice" trains with "one-vs-some", "softmax" or, up to 2^30 non-zeros times classes,
        "one-vs-rest", whichever errs least on held-out rows of the training set.
        "auto": "memoir" for ``penalty="l1"`` and :meth:`partial_fit` with a named surrogate, else
        by surrogate: "choice" for "auto" ("one-vs-some" with rivals), "one-vs-some" for
        "squared-hinge" and "logistic", "softmax" for "crf", "dual" for others and for objects.
        Rows of several labels: "one-vs-rest", beyond 2^34 non-zeros times labels "one-vs-some".
    alpha : float or "auto", default="auto"
        Regularisation constant. "auto": 1 over the number of examples (the sum of their weights),
        which is liblinear's C = 1, times the costs of losses of one-vs-rest (1/2) and one-vs-some;
        0 for solver "softmax", whose few passes regularise.
    tol : float, default=1e-2
        Relative gap at which solvers with a certificate stop.
    max_memory : float, optional
        Limit in bytes for training, without the data, and for results of
        :meth:`decision_function`.  Larger requests raise an error with an estimate before
        allocation.
    max_iter : int, default=20
        Maximum number of passes over the data.
    callbacks : list of callable, optional
        Each gets a copy of the record of a pass; returning True ends training.
    checkpoint : path, optional
        Training writes this file, and resumes from it if it exists.
    n_jobs : int or None, default=1
        Threads; -1 for all cores. Results do not depend on it.
    random_state : int, RandomState or None, default=0
    verbose : int, default=0
        1: progress; 2: a line per pass.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        If X was a data frame.
    coef_ : csr_matrix of float32 of shape (n_classes, n_features)
        Computed at each access because the model stores weights by feature.
    intercept_ : ndarray of float32 of shape (n_classes,)
        Zeros if the solver learns none.
    history_ : list of dict
        A record per pass: "primal" bound, "dual", "gap", "mean_epsilon" (what inexact rivals may
        have missed), "entries" (weights read in scans), "seconds" since the fit began; None if the
        solver does not compute a value. The gap also holds with inexact rivals.
    n_iter_ : int
        Records in ``history_``.
    stop_reason_ : str
        "tol", "max_iter", "callback" or "interrupted" (Ctrl-C keeps the model).
    solver_ : ExtremeSolver
        The solver that ran; not in files.
    settings_ : dict
        The values used for "auto", and the solver's choices.
    metadata_ : dict
        User data, kept in model files.

    Notes
    -----
    Capabilities of the solvers:

    =============  ========================================  ========  ===========  =======
    solver         surrogates                                penalty   partial_fit  gap
    =============  ========================================  ========  ===========  =======
    "choice"       "auto": that of the chosen solver         l2        "auto"       no
    "one-vs-some"  "squared-hinge", "logistic"               l2        no           pairs
    "one-vs-rest"  "squared-hinge"                           l2        no           yes
    "softmax"      "crf"                                     l2        no           no
    "dual"         "margin", "crf", "max-min", "sparsemap",  l2        no           yes
                   "squared-hinge"
    "memoir"       "margin", "crf", and others               l2, l1    yes          no
    =============  ========================================  ========  ===========  =======

    With ``solver="auto"``, :meth:`partial_fit` keeps rows and trains with "choice" on them.

    The gaps of "dual" and "one-vs-rest" cover all classes. The gap of "one-vs-some" covers only the
    pairs of rows and classes that it keeps; it does not bound the gap over all pairs.

    "one-vs-some" and "one-vs-rest" take rows of several labels: :meth:`predict` then returns the
    labels of positive scores in the form of y, and :meth:`score` the precision of the best label.

    Scale rows to norms around 1, as :class:`~sklearn.preprocessing.Normalizer` does: all solvers
    but "dual" have constants for such rows, and warn about others.  Rows without features score the
    intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve import ExtremeSVM
    >>> X = sparse.csr_matrix(np.repeat(np.eye(4), 3, axis=0))
    >>> y = np.repeat(["ape", "bee", "cat", "dog"], 3)
    >>> model = ExtremeSVM().fit(X, y)
    >>> model.predict(X[[0, 5, 9]]).tolist()
    ['ape', 'bee', 'dog']
    >>> classes, scores = model.predict_topk(X[:1] + 0.5 * X[3:4], k=2)
    >>> classes.tolist(), bool(scores[0, 0] > scores[0, 1])
    ([['ape', 'bee']], True)
    """

    classes_: np.ndarray
    n_features_in_: int
    settings_: dict[str, Any]
    _weights: Postings
    _calibration: Calibration | None
    #: Rows that `partial_fit` trains on again; None after `fit` and in loaded models.
    _kept: KeptRows | None = None

    def __init__(
        self,
        *,
        surrogate: Any = "auto",
        penalty: str = "l2",
        rivals: Any = "auto",
        solver: Any = "auto",
        alpha: Any = "auto",
        tol: float = 1e-2,
        max_memory: float | None = None,
        max_iter: int = 20,
        callbacks: Any = None,
        checkpoint: Any = None,
        n_jobs: int | None = 1,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.surrogate, self.penalty, self.rivals, self.solver = surrogate, penalty, rivals, solver
        self.alpha, self.tol, self.max_memory, self.max_iter = alpha, tol, max_memory, max_iter
        self.callbacks, self.checkpoint, self.n_jobs = callbacks, checkpoint, n_jobs
        self.random_state, self.verbose = random_state, verbose

    # -- training -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExtremeSVM:
        """Train.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Rows may be empty.
        y : array of shape (n,), or labels of each row
            Strings or integers, of at least two classes.  For several labels per row, or none:
            indicators of shape (n, n_classes), a data frame, array or sparse matrix, whose
            ``classes_`` are the names or numbers of columns; or a list of lists or sets of labels
            (lists of one length of 0 and 1 alone are indicators).
        sample_weight : array of shape (n,), optional
            Weight of each example in the mean; one of weight 0 is as if absent.

        Returns
        -------
        ExtremeSVM
            Itself.

        Raises
        ------
        ValueError
            If data or settings are wrong, or training would take more than ``max_memory``.
        """
        self._check_settings()
        X, y = listed(X), listed(y, "y")
        rows = read_rows(X, None, self.max_memory)
        weights = None if sample_weight is None else check_weights(sample_weight, rows.shape[0])
        form, sets = form_of(y), None
        if form is None:
            labels = read_labels(y, rows.shape[0])
            classes = read_classes(labels)
            numbers = encode(labels, classes)
        else:
            sets, classes = read_label_sets(y, form, rows.shape[0])
            some = np.diff(sets.indptr) > 0
            numbers = np.full(rows.shape[0], -1, np.int32)
            numbers[some] = sets.indices[sets.indptr[:-1][some]]
        self._train(rows, numbers, classes, weights, sets=sets)
        self._label_form = form
        self._remember_names(X)
        return self

    @OnlyIf(_is_incremental)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> ExtremeSVM:
        """Train on a batch of a stream of examples.

        By default (``solver`` and ``surrogate`` "auto", ``penalty="l2"``), rows are kept, and the
        model is trained on all of them as in :meth:`fit`.  Kept are up to 2^26 values (non-zeros,
        and 4 a row) of 8 bytes, half a gigabyte; beyond that, a uniform sample of the stream.
        Training waits until 5% of the kept rows are new, or any class is.  Rows that wait are not
        yet in the model.  A stream takes at most about 20 times as long as one fit of its rows if
        batches bring no new classes.  Pickles contain the rows, files do not.

        With ``solver="memoir"``, ``penalty="l1"`` or a named surrogate, and after :meth:`fit` or
        in a loaded model, no rows are kept.  MEMOIR then makes one pass over the batch from the
        current weights, in the memory of the model and at a larger error; classes are fixed.  Set
        ``alpha`` if the batches are parts of one data set: "auto" is 1 over the size of the first
        batch here.  No gap is computed, because past rows cannot be scanned again.  The record
        describes the batch: "primal" is its objective, on at most 1000 rows, and with
        ``Memoir(averaging=True)`` "expected_gap" bounds its objective from the weights at its
        start.

        Parameters
        ----------
        X, y : a batch, as for :meth:`fit`
        classes : sequence, optional
            All classes, in the first call; by default the classes of the first batch, and, where
            rows are kept, those of later batches.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        ExtremeSVM
            Itself.
        """
        self._check_settings()
        if self.checkpoint is not None:
            raise ValueError(
                "checkpoint is given, but partial_fit writes none: leave it out, or use fit"
            )
        X, y = listed(X), listed(y, "y")
        begun = self.__sklearn_is_fitted__()
        if form_of(y) is not None:
            raise ValueError(
                "y: found rows of several labels, but partial_fit takes one class per row: use fit"
            )
        if begun:
            self._check_names(X)
        rows = read_rows(X, self.n_features_in_ if begun else None, self.max_memory)
        labels = read_labels(y, rows.shape[0])
        if begun:
            known = self.classes_
            if classes is not None and not np.array_equal(read_classes(classes), known):
                raise ValueError(
                    f"classes is not the same as in the first call, which had {len(known)}: leave "
                    "it out, or train a new model"
                )
        else:
            known = read_classes(labels if classes is None else classes)
        numbers, keeps = encode(labels, known), self._keeps_rows(begun)
        if keeps and begun and classes is None and (numbers < 0).any():
            known = all_classes(known, labels)
            numbers = encode(labels, known)
        refuse_unknown(numbers, labels, "y", "name all classes in the first call, classes=")
        weights = None if sample_weight is None else check_weights(sample_weight, rows.shape[0])
        if keeps:
            self._keep(rows, numbers, known, weights)
        else:
            before = (self._weights, self.history_) if begun else None
            self._train(rows, numbers, known, weights, incremental=True, before=before)
        if not begun:
            self._remember_names(X)
        return self

    def _keeps_rows(self, begun: bool) -> bool:
        """Whether `partial_fit` trains on kept rows."""
        plain = self._is_auto("solver") and self._is_auto("surrogate") and self.penalty == "l2"
        return plain and (not begun or self._kept is not None)

    def _keep(self, X: sp.csr_matrix, y: np.ndarray, classes: np.ndarray, weights: Any) -> None:
        """Add rows to those kept, and train on them if enough are new."""
        old, history = self._kept, [] if self._kept is None else self.history_
        kept = KeptRows.of(X, y, weights, 0 if old is None else old.seen)
        if old is not None:
            kept = old.renumbered(self.classes_, classes).joined(kept)
        if old is None or kept.due or len(classes) > len(self.classes_):
            self._train(kept.X, kept.y, classes, kept.weight, before=(None, history))
            kept = kept.trained()
        self._kept = kept
        self.settings_ |= {"seen_rows": kept.seen, "kept_rows": len(kept.y)}

    def _train(
        self,
        X: sp.csr_matrix,
        y: np.ndarray,
        classes: np.ndarray,
        sample_weight: np.ndarray | None,
        *,
        incremental: bool = False,
        before: Any = None,
        sets: sp.csr_matrix | None = None,
    ) -> None:
        if sample_weight is not None:
            # Those of weight 0 are as if absent: solvers count rows, and draw some.
            kept = sample_weight > NOTHING * sample_weight.max()
            if not kept.all():
                X, y, sample_weight = read_rows(X[kept], X.shape[1]), y[kept], sample_weight[kept]
                sets = None if sets is None else sets[kept]
        solver, surrogate, rivals = self._chosen(X, len(classes), incremental, sets)
        # An example of weight 2 counts as two, also for alpha.
        total = len(y) if sample_weight is None else float(sample_weight.sum())
        alpha = own_alpha(solver, total) if self._is_auto("alpha") else float(self.alpha)
        if before is not None and incremental and "eta0" in self.settings_:
            solver = continued(solver, self.settings_)
            alpha = self.settings_["alpha"] if self._is_auto("alpha") else alpha
        if self._is_auto("alpha"):
            tell(self, alpha, "the number of examples")
        problem = ExtremeProblem(
            X,
            y,
            len(classes),
            alpha,
            surrogate=surrogate,
            penalty=self.penalty,
            rivals=rivals,
            sample_weight=sample_weight,
            max_iter=1 if incremental else int(self.max_iter),
            tol=float(self.tol),
            max_memory=self.max_memory,
            n_jobs=effective_jobs(self.n_jobs),
            seed=int(generator_of(self.random_state).integers(2**31)),
            start=None if before is None else before[0],
            labels=sets,
        )
        settings = {
            "solver": [solver.name, repr(solver)],
            "surrogate": repr(surrogate),
            "rivals": repr(rivals),
            "penalty": self.penalty,
            "seed": problem.seed,
        }
        file, streamed = None, incremental or before is not None
        if self.checkpoint is not None and not streamed:
            file = Checkpoint(self.checkpoint, fingerprint_of(problem, settings))
        result = train(solver, problem, self.callbacks, 0 if streamed else int(self.verbose), file)
        self._take(solver, problem, result, classes, [] if before is None else before[1])
        if not incremental:
            warn_unfinished(result, problem.tol, problem.max_iter)

    def _take(
        self,
        solver: Any,
        problem: ExtremeProblem,
        result: Any,
        classes: np.ndarray,
        before: list[dict[str, Any]],
    ) -> None:
        """Become the model that training has led to, after the records before it."""
        history = list(before)
        for record in result.history:
            history.append({**record, "pass": len(history) + 1})
        self._become_fitted(classes, result.weights)
        self._kept = None
        self.history_, self.n_iter_ = history, len(history)
        self.stop_reason_, self.solver_ = result.stop_reason, solver
        self.metadata_: dict[str, Any] = getattr(self, "metadata_", {})
        self.settings_ = {
            "solver": solver.name,
            "surrogate": getattr(problem.surrogate, "name", problem.surrogate),
            "alpha": problem.alpha,
            **result.settings,
        }
        if self.settings_["surrogate"] == "crf":
            # The training objective is a softmax over the unscaled scores.
            self._calibration = Calibration(1.0, -np.inf, len(classes))

    def _chosen(
        self, X: sp.csr_matrix, n_classes: int, incremental: bool, sets: sp.csr_matrix | None
    ) -> tuple[Any, Any, Any]:
        """Return the solver, the surrogate and the index of rivals for these examples."""
        given, asked = (self.solver, self.surrogate, self.penalty), not self._is_auto("rivals")
        if sets is None:
            solver, surrogate = choose_solver(*given, incremental, asked)
        else:
            size = float(X.nnz) * n_classes
            solver, surrogate = solver_of_label_sets(*given, asked, size)
        warn_lengths(solver, X)
        # Indexes store the weights: clone the user's index, which must not change.
        rivals = None
        if not self._is_auto("rivals"):
            refuse_unread_rivals(solver, self.rivals)
            rivals = clone(make_rivals(self.rivals), safe=False)
        return solver, surrogate, rivals

    def _is_auto(self, name: str) -> bool:
        value = getattr(self, name)
        return isinstance(value, str) and value == "auto"

    def _check_settings(self) -> None:
        check_run_settings(self)
        if not self._is_auto("alpha"):
            check_number("alpha", self.alpha, 0, True, " or 'auto'")
        if self.max_memory is not None:
            check_number("max_memory", self.max_memory, 0, True, " of bytes, or None")
        if not isinstance(self.penalty, str) or self.penalty not in ("l2", "l1"):
            raise ValueError(f"penalty is {self.penalty!r}, expected 'l2' or 'l1'")
        for name in ("surrogate", "rivals", "solver"):
            value = getattr(self, name)
            if value is None or isinstance(value, (bool, numbers.Number, type)):
                raise ValueError(f"{name} is {value!r}, expected 'auto', a name or an object")
        check_types(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        named = isinstance(self.solver, str) and self.solver in (
            "auto",
            "one-vs-rest",
            "one-vs-some",
        )
        tags.classifier_tags.multi_label = named or bool(getattr(self.solver, "several", False))
        return tags
