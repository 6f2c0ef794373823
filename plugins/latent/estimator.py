"""LatentSVM: classes with hidden states, and partial labels."""

from __future__ import annotations

import contextlib
import numbers
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from structsolve.estimators.fitting import (
    constraint_rows,
    description_of,
    fingerprint_of_examples,
    packed_validation,
)
from structsolve.estimators.structured_svm import StructuredSVM
from structsolve.estimators.warm_start import warm_weights
from structsolve.examples.given import listed
from structsolve.examples.packed import Examples
from structsolve.plugins.latent.candidates import (
    CandidateCompleter,
    holds_candidates,
    read_candidates,
)
from structsolve.plugins.latent.data import LatentData, given_states, unpacked
from structsolve.plugins.latent.initial import STARTS, first_states, possible
from structsolve.plugins.latent.losses import SetLoss
from structsolve.plugins.latent.prediction import HiddenPredictionMixin
from structsolve.plugins.latent.rounds import Completer, Descent, Rounds
from structsolve.plugins.latent.sets import Given, sets_of, split
from structsolve.plugins.latent.states import check_n_hidden, has_states, with_classes
from structsolve.potentials.mercer import given_dense
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.solvers.choose import choose_solver
from structsolve.solvers.driver import Outcome
from structsolve.solvers.problem import Problem
from structsolve.solvers.run import Start, relative_gap, started
from structsolve.structure.base import Space
from structsolve.structure.pack import learn_space
from structsolve.utils.params import check_choice, check_count


class LatentSVM(HiddenPredictionMixin, StructuredSVM):
    """Predictor of classes with hidden states, or with partial training labels.

    Every class has ``n_hidden`` states, and the structure labels nodes with states. A training
    label allows states: those of its class, of several classes, or all. Minimises ``alpha/2 ||w||^2
    + mean_i [max_s (L(y_i, s) + <w, psi(x_i, s)>) - max_{h allowed by y_i} <w, psi(x_i, h)>]`` (Yu
    and Joachims 2009) by the concave-convex procedure: rounds that complete the labels under the
    current weights, then train on them. The objective never rises, and every round is a convex
    problem with a certified gap; the result of all rounds is a local optimum.

    Parameters
    ----------
    structure : str or Structure, default="chain"
        Hidden states and sets of classes need one whose labels give nodes classes ("chain", "tree",
        "mrf", "grid", "multiclass", ...); :class:`AnyOf` works for all.
    n_hidden : int, dict or sequence of int, default=1
        Number of hidden states: of every class, by class, or in the order of ``classes_``. 1: no
        hidden states, for partial labels.
    init : {"kmeans", "random"}, default="kmeans"
        Initial states: clusters of the node features of each class, or uniformly random. Nodes that
        allow several classes start with the one of the nearest mean features ("kmeans"). Whole
        labels start with the first candidate, or a random one.
    n_init : int, default=1
        Number of starts; the one of least objective is kept.
    max_rounds : int, default=50
        Maximum number of rounds from each start.
    surrogate : str or object, default="margin"
        As in :class:`StructuredSVM`, like all parameters below without a description. Other
        surrogates are minimised over completions in the same way.
    loss : str or object, default="auto"
        "auto": that of the structure, as there. Loss of classes, a sum over nodes. States cost what
        their classes cost; if several classes are allowed, the cost is the smallest against any of
        them: zero within the set.
    solver : str or Solver, default="bcfw"
        As there.
    oracle : str or structsolve.lp.Backend, optional
        As there.
    alpha : float or "auto", default="auto"
        As there.
    max_iter : int, default=100
        Maximum number of passes of each round.
    tol : float, default=1e-3
        Relative gap of the last rounds; the first rounds are solved less exactly. Rounds end when
        no state changes, or when a round lowers the objective by less than a tenth of ``tol``.
    fit_intercept : bool, default=True
        As there, per state.
    penalize_intercept : bool, default=True
        As there.
    warm_start : bool, default=False
        A further ``fit`` starts from the current weights and the best completion under them.
    callbacks : list of callable, optional
        As there.
    checkpoint : path, optional
        As there; a run resumes within its round.
    n_jobs : int or None, default=1
        As there.
    random_state : int, RandomState or None, default=0
        As there.
    verbose : int, default=0
        As there.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_hidden_ : ndarray of int of shape (n_classes,)
        Hidden states of each class.
    state_classes_ : ndarray of shape (n_states,)
        The class of each state, in the order of ``coef_``: each class once per state.
    hidden_ : array, or list of arrays
        The states that complete the training labels, in the form of :meth:`predict_hidden`, without
        void nodes; for whole labels (:class:`AnyOf`), those that were taken. Not in files.
    objectives_ : list of float
        The final objective of each start.
    history_ : list of dict
        As in :class:`StructuredSVM`, for the start that was kept. Each record has the number of its
        ``"round"``; the last record of each round also has ``"objective"`` (the upper bound of the
        objective at the new weights and completion, which never rises), ``"moved"`` (nodes whose
        state changed), and for inexact oracles ``"missed"`` (the part of the objective that is due
        to their bounds).
    stop_reason_ : str
        "converged": no state changes, and the last problem is solved to ``tol``. "settled": states
        change, but a round gained less than a tenth of ``tol``. Others as in
        :class:`StructuredSVM`.

    Notes
    -----
    Kernels and early stopping are not available: train on explicit features
    (:class:`sklearn.kernel_approximation.Nystroem`), and pass ``validation`` for scores.

    Examples
    --------
    Both classes have two modes, which no line separates:

    >>> from structsolve import LatentSVM
    >>> X = [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]] * 5
    >>> y = ["same", "same", "other", "other"] * 5
    >>> model = LatentSVM("multiclass", n_hidden=2, alpha=0.01).fit(X, y)
    >>> model.score(X, y)
    1.0
    >>> model.state_classes_.tolist(), len(set(model.predict_hidden(X[:2]).tolist()))
    (['other', 'other', 'same', 'same'], 2)

    A partial label is a list of the allowed labels, or None for all:

    >>> X = [[[-1.0], [1.0], [0.9]], [[1.0], [-0.8]]]
    >>> Y = [["off", ["off", "on"], "on"], ["on", None]]
    >>> [y.tolist() for y in LatentSVM("chain", alpha=0.01).fit(X, Y).predict(X)]
    [['off', 'on', 'on'], ['on', 'off']]
    """

    # Methods of StructuredSVM that this class lacks.
    kernel = None
    kernel_params = None
    early_stopping = False
    validation_fraction = 0.1
    n_iter_no_change = 5

    def __init__(
        self,
        structure: Any = "chain",
        *,
        n_hidden: Any = 1,
        init: str = "kmeans",
        n_init: int = 1,
        max_rounds: int = 50,
        surrogate: Any = "margin",
        loss: Any = "auto",
        solver: Any = "bcfw",
        oracle: Any = None,
        alpha: float | str = "auto",
        max_iter: int = 100,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        penalize_intercept: bool = True,
        warm_start: bool = False,
        callbacks: Any = None,
        checkpoint: Any = None,
        n_jobs: int | None = 1,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self._keep(locals())
        self.n_hidden, self.init, self.n_init, self.max_rounds = n_hidden, init, n_init, max_rounds

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None, hidden: Any = None
    ) -> LatentSVM:
        """Train.

        Parameters
        ----------
        X : in the form of the structure
        y : in the form of the structure
            Classes; the entry of a node may also be a list, set or array of the classes that are
            allowed, or None for all. An entry of y may be :class:`AnyOf`: candidates for the whole
            label of an example.
        sample_weight : array of shape (n,), optional
            Weight of each example in the mean.
        validation : tuple (X, y), optional
            Full labels, scored after each certified pass: ``"validation_score"`` in ``history_``.
            They do not affect training.
        hidden : optional
            Initial states, numbers in the form of :meth:`predict_hidden`; then there is one start.

        Returns
        -------
        LatentSVM
            Itself.
        """
        self._check_settings()
        rng = self._generator()
        data = self._read(X, y, sample_weight, validation, rng)
        if hidden is not None:
            if data.sets is None:
                raise ValueError("hidden: y has whole labels, which have no hidden states")
            data.first = given_states(hidden, data)
        return self._train(data, rng)

    @property
    def partial_fit(self) -> Any:
        """Not available: completion needs all examples at once."""
        raise AttributeError("LatentSVM has no partial_fit: it completes all labels at once")

    @property
    def rounds_(self) -> list[dict[str, Any]]:
        """The records of ``history_`` that end a round."""
        return [record for record in self.history_ if "objective" in record]

    # -- parts of fit ---------------------------------------------------------------------------

    def _check_settings(self) -> None:
        super()._check_settings()
        if isinstance(self.n_hidden, numbers.Integral):
            check_count("n_hidden", self.n_hidden)
        check_choice("init", self.init, STARTS)
        for name in ("n_init", "max_rounds"):
            check_count(name, getattr(self, name))

    def _read(
        self, X: Any, y: Any, sample_weight: Any, validation: Any, rng: np.random.Generator
    ) -> LatentData:
        X, y = listed(X), listed(y, "y")
        structure = self._structure_for(y)
        y = y.to_numpy() if hasattr(y, "to_numpy") else y
        if holds_candidates(y):
            return self._read_whole(structure, X, y, sample_weight, validation)
        axes = 0 if structure.single_node else structure.label_axes
        plain: Any = None
        try:
            given = split(y, axes, getattr(structure, "void", None))
            plain, examples = self._learn(structure, X, given, sample_weight)
        except Exception as error:
            # Labels of other forms, such as spans, may look like sets of classes.
            given = Given(y, set(), {}, [], axes)
            with contextlib.suppress(Exception):
                plain, examples = self._learn(structure, X, given, sample_weight)
            if plain is None and str(error).startswith("classes"):
                raise ValueError(
                    f"{error}: y takes no sets of classes; where several labels are possible, give "
                    "AnyOf([label, label])"
                ) from error
            if plain is None:
                raise
        if not has_states(plain):
            # What looks like sets of classes is a part of such labels.
            learned = None if given.nodes else (plain, examples)
            return self._read_whole(structure, X, y, sample_weight, validation, learned)
        n_hidden = check_n_hidden(self.n_hidden, plain.classes_)
        owner = np.repeat(np.arange(len(n_hidden)), n_hidden)
        space = with_classes(plain, plain.classes_[owner])
        sets = sets_of(given, X, plain, examples)
        known = space is plain and not len(sets.latent())
        loss = self._task_loss(plain)
        loss = loss if known else SetLoss(plain, examples, loss, sets, owner)
        first = np.cumsum(n_hidden) - n_hidden
        states = first[examples.labels].astype(np.int32)
        states = possible(space, examples, sets.lifted(owner), states)
        examples = replace(examples, labels=states)
        held_out = packed_validation(self, space, validation, X)
        return LatentData(space, examples, X, given_dense(X), held_out, sets, n_hidden, loss)

    def _read_whole(
        self,
        structure: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation: Any,
        learned: tuple[Space, Examples] | None = None,
    ) -> LatentData:
        """Return the data where whole labels, or candidates for them, are known."""
        if not (isinstance(self.n_hidden, numbers.Integral) and self.n_hidden == 1):
            raise ValueError(
                f"n_hidden is {self.n_hidden!r}, expected 1 for whole labels (AnyOf) and for "
                f"structures whose nodes have no classes; structure: {structure.name!r}"
            )
        intercept, candidates = bool(self.fit_intercept), None
        if holds_candidates(y):
            space, examples, candidates = read_candidates(structure, X, y, intercept, sample_weight)
        elif learned is not None:
            space, examples = learned
        else:
            space, examples = learn_space(structure, X, y, None, intercept, sample_weight)
        held_out = packed_validation(self, space, validation, X)
        return LatentData(
            space,
            examples,
            X,
            given_dense(X),
            held_out,
            loss=self._task_loss(space),
            candidates=candidates,
        )

    def _learn(self, structure: Any, X: Any, given: Given, sample_weight: Any) -> tuple[Any, Any]:
        classes = None
        if getattr(structure, "n_states", None) is None:  # if set, it determines the classes
            classes = given.classes()
        intercept = bool(self.fit_intercept)
        return learn_space(structure, X, given.full, classes, intercept, sample_weight)

    def _train(self, data: Any, rng: np.random.Generator) -> LatentSVM:
        solver, w = self._solver(), warm_weights(self, data.space)
        if not getattr(solver, "minimises", True):
            raise ValueError(
                f"solver is {solver.name!r}, expected one that minimises the objective, which each "
                "round has to lower; use solver='bcfw' or 'sgd'"
            )
        gram = getattr(solver, "uses_gram", True)
        problem = self._latent_problem(data, data.examples, gram)
        self._choose_alpha(problem)
        jobs = self.n_jobs or 1
        completer = self._completer(data, problem, jobs)
        latent = completer is not None
        fingerprint, file = "", None
        if self.checkpoint is not None:
            fingerprint = self._fingerprint(data, problem, solver)
            file = Checkpoint(self.checkpoint, fingerprint)

        def begin(w: np.ndarray | None, tol: float) -> Any:
            start = Start(problem, self.alpha_, rng, jobs, w, tol)
            self.solver_ = choose_solver(solver, problem)
            return started(self.solver_, start)

        def inner(run: Any, tol: float) -> Outcome:
            outcome = self._drive(run, data.held_out, fingerprint, tol, file)
            # Not the weights of the best score: the objective must not rise.
            return replace(outcome, w=run.weights())

        def first(seed: int) -> np.ndarray:
            if data.first is not None:
                return data.first
            if isinstance(completer, CandidateCompleter):
                given = seed == seeds[0] and self.init != "random"
                labels = data.examples.labels.copy()
                return labels if given else completer.at_random(labels, seed)
            if not latent:
                return data.examples.labels.copy()
            states = first_states(self.init, data.examples, data.sets, data.n_hidden, seed)
            return possible(data.space, data.examples, completer.sets, states)

        one = not latent or data.first is not None or w is not None
        seeds = rng.integers(2**31, size=1 if one else int(self.n_init)).tolist() if latent else [0]
        rounds = Rounds(
            problem,
            completer,
            begin,
            inner,
            alpha=self.alpha_,
            tol=float(self.tol),
            max_rounds=int(self.max_rounds),
            n_jobs=jobs,
            checkpoint=file,
            constrained=bool(getattr(solver, "constraints", None)),
        )
        best = rounds.descend(first, seeds, w)
        self.memory_ = rounds.run.memory()
        self.objectives_ = rounds.objectives
        outcome = Outcome(best.w, best.history, best.reason)
        self._finish(data.space, outcome, problem.model(best.w), warn=False)
        self.hidden_ = unpacked(data, best.labels)
        self._remember_names(data.X)
        self._warn(best)
        return self

    def _latent_problem(self, data: LatentData, examples: Examples, gram: bool) -> Problem:
        return self._problem_of(data.space, examples, data.loss, gram=gram, dense=data.dense)

    def _completer(self, data: LatentData, problem: Problem, jobs: int) -> Any:
        """Return what completes labels; None if all are complete."""
        if data.candidates is not None:
            rivals = self._latent_problem(data, data.candidates.rivals, gram=False)
            return CandidateCompleter(problem, rivals, data.candidates, jobs)
        if data.sets is None or data.n_hidden is None:
            return None
        states = data.sets.lifted(np.repeat(np.arange(len(data.n_hidden)), data.n_hidden))
        return Completer(problem, states, jobs) if len(states.latent()) else None

    def _fingerprint(self, data: LatentData, problem: Problem, solver: Any) -> str:
        settings = self._settings(solver, data.space) | {
            "structure": description_of(data.space.structure),
            "classes": repr(getattr(data.space, "classes_", None)),
            "init": [self.init, int(self.n_init)],
            "alpha": [self.alpha_, float(self.tol)],
        }
        more = [problem.weights, *constraint_rows(problem)]
        if data.sets is not None and data.n_hidden is not None:
            more += [data.sets.rows, data.sets.table, data.n_hidden]
        if data.candidates is not None:
            more += [data.candidates.owner, *data.candidates.labels]
        if data.first is not None:
            more.append(data.first)
        return fingerprint_of_examples(data.examples, settings, more)

    def _warn(self, best: Descent) -> None:
        if best.reason != "max_iter" or not best.history:
            return
        last = best.history[-1]
        scale = max(abs(best.objective), 1e-300)
        gap, missed = relative_gap(last), last.get("missed", 0.0) / scale
        warnings.warn(
            f"stopped after {last['round']} rounds, max_rounds is {self.max_rounds}; the last "
            f"moved {last.get('moved', 0)} states"
            + ("" if gap is None else f" and ended with a relative gap of {gap:.2g}")
            + f", tol is {self.tol:g}; "
            + (
                f"{missed:.2g} of the objective is what oracles may have missed, which no further "
                "round closes: use another oracle"
                if missed > 0.5 * self.tol
                else "raise max_rounds, max_iter or tol"
            ),
            ConvergenceWarning,
            stacklevel=4,
        )
