"""Hidden Markov models: states by counts, or by expectation and maximisation where hidden."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from structsolve import registry
from structsolve.estimators.codec import check_metadata, plain, revive
from structsolve.estimators.common import LogProbaMixin, generator_of
from structsolve.examples.given import check_named, first_frame, listed
from structsolve.plugins.hidden_markov.emissions import Categorical, Gaussian, log, normalized
from structsolve.plugins.hidden_markov.numbers import StateNumbersMixin
from structsolve.plugins.hidden_markov.states import checked_init, flat_states, pair_counts
from structsolve.utils import container
from structsolve.utils.masked import refuse_masked
from structsolve.utils.params import check_choice, check_types
from structsolve.utils.suggest import a_type

EMISSIONS = {"categorical": Categorical, "gaussian": Gaussian}


class HiddenMarkovModel(StateNumbersMixin, LogProbaMixin, BaseEstimator):
    """A hidden Markov model: a chain whose scores are log-probabilities.

    Known states are counted.  Hidden ones are estimated by Baum and Welch's algorithm, an
    expectation-maximisation whose expectations are marginals of the ``"chain"`` structure: no step
    decreases ``history_[t]["objective"]``, the log-likelihood plus what smoothing adds as prior.

    Parameters
    ----------
    n_states : int, optional
        Number of states; by default those of y.
    emission : {"categorical", "gaussian"}, default="categorical"
        Observations are symbols, or rows of numbers with a mean and a variance for each state.
    smoothing : float, default=.01
        Added to each count of first states, transitions and symbols.
    max_iter : int, default=100
        Largest number of steps of expectation-maximisation.
    tol : float, default=1e-4
        They stop when the objective gains less than this for each sequence.
    least_variance : float, default=1e-3
        Lower bound of variances, above 0.
    init : dict, optional
        First parameters, ``"start"``, ``"transition"``, and ``"table"`` or ``"means"`` and
        ``"variances"``; by default random ones, and those of known states.  Names of data frames
        and Series are compared.
    random_state : int, Generator or None, default=0
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The states: labels of y, else 0 to K - 1.
    start_ : ndarray of shape (K,)
    transition_ : ndarray of shape (K, K)
        ``transition_[s, t]`` is the probability of t after s.
    emission_ : Categorical or Gaussian
        With ``symbols`` and ``table`` of shape (K, symbols), or ``means`` and ``variances``.
    history_ : list of dict
        ``"log_likelihood"``, ``"objective"`` and ``"seconds"`` of each step, before its update.
    feature_names_in_ : ndarray, where X holds data frames

    Notes
    -----
    X is a list of sequences of symbols (strings or integers; a string is a sequence of letters), or
    of matrices with a row for each position.  y is None, or a list with the states of each
    sequence; None in place of a sequence's states, or of a state, hides it.

    Examples
    --------
    >>> from structsolve import HiddenMarkovModel
    >>> X = ["hhthh", "tthtt"]
    >>> model = HiddenMarkovModel(smoothing=0.1).fit(X, [["a"] * 5, ["b"] * 5])
    >>> model.predict(["hhhhttt"])[0].tolist()
    ['a', 'a', 'a', 'a', 'b', 'b', 'b']
    >>> hidden = HiddenMarkovModel(2).fit(X)
    >>> bool(hidden.history_[-1]["log_likelihood"] > hidden.history_[0]["log_likelihood"])
    True
    """

    def __init__(
        self,
        n_states: int | None = None,
        *,
        emission: str = "categorical",
        smoothing: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-4,
        least_variance: float = 1e-3,
        init: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ):
        self.n_states, self.emission, self.smoothing = n_states, emission, smoothing
        self.max_iter, self.tol, self.least_variance = max_iter, tol, least_variance
        self.init, self.random_state, self.n_jobs = init, random_state, n_jobs

    def fit(self, X: Any, y: Any = None) -> HiddenMarkovModel:
        """Estimate all probabilities.

        Parameters
        ----------
        X : list of sequences
        y : list, optional
            States; None hides them.

        Returns
        -------
        HiddenMarkovModel
            ``self``.

        Raises
        ------
        ValueError
            For settings and data that do not fit, and states whose probabilities sum to 0.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` steps do not suffice.
        """
        self._check_settings()
        before = dict(vars(self))
        try:
            return self._fit(listed(X), listed(y, "y"))
        except Exception:
            self.__dict__.clear()
            self.__dict__.update(before)  # what a fit leaves half done would answer
            raise

    def _fit(self, X: Any, y: Any) -> HiddenMarkovModel:
        refuse_masked(X, "X", "fill them in, x.filled(0.0)")
        refuse_masked(y, "y", "give None in place of states that are not known")
        emission = self._make_emission()
        flat, offsets = emission.read(X, learn=True)
        _check_feature_names(self, first_frame(X), reset=True)
        states = self._read_states(y, offsets)
        self.emission_, self.history_, self.n_iter_ = emission, [], 0
        K = len(self.classes_)
        known = np.eye(K)[np.maximum(states, 0)]
        if (states >= 0).all():
            if self.init:
                raise ValueError(
                    f"init: found {', '.join(map(repr, self.init))}, but y has all states, which "
                    "are counted without steps from first parameters; leave init out"
                )
            self._update(flat, known, offsets, pair_counts(states, offsets, K))
            self._refuse_empty()
            self.history_.append(self._record(self.log_likelihood(X), time.perf_counter()))
            return self
        rng = generator_of(self.random_state)
        self._start(flat, states, offsets, rng)
        forbidden = np.where((states >= 0)[:, None] & (known == 0), -np.inf, 0.0)
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            began = time.perf_counter()
            nodes, pairs, likelihood = self._expect(flat, offsets, forbidden)
            self.history_.append(self._record(float(likelihood.sum()), began))
            last = [record["objective"] for record in self.history_[-2:]]
            if len(last) == 2 and last[1] - last[0] < self.tol * len(likelihood):
                return self
            self._update(flat, nodes, offsets, pairs)
        warnings.warn(
            f"stopped after max_iter={self.max_iter} steps; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
        return self

    def _check_settings(self) -> None:
        check_types(self)
        for name, least in (("smoothing", 0), ("tol", 0), ("max_iter", 1)):
            value = getattr(self, name)
            if not np.isfinite(value) or value < least:
                raise ValueError(f"{name} is {value!r}, expected a finite number >= {least}")
        if not 0 < self.least_variance < np.inf:
            raise ValueError(
                f"least_variance is {self.least_variance!r}, expected a finite number above 0"
            )
        if self.init is not None and not isinstance(self.init, dict):
            raise ValueError(f"init is {a_type(self.init)}, expected a dict of arrays")
        if self.n_states is not None and self.n_states < 1:
            raise ValueError(f"n_states is {self.n_states!r}, expected an integer of at least 1")
        check_choice("emission", self.emission, EMISSIONS)

    def _make_emission(self) -> Any:
        gaussian = self.emission == "gaussian"
        return Gaussian(self.least_variance) if gaussian else Categorical(self.smoothing)

    def _record(self, likelihood: float, began: float) -> dict[str, float]:
        prior = self.emission_.prior()
        if self.smoothing:
            tables = log(self.start_).sum() + log(self.transition_).sum()
            prior += self.smoothing * float(tables)
        seconds = time.perf_counter() - began
        return {"log_likelihood": likelihood, "objective": likelihood + prior, "seconds": seconds}

    def _read_states(self, y: Any, offsets: np.ndarray) -> np.ndarray:
        """Return numbers of states, -1 for hidden ones; learn ``classes_``."""
        flat = flat_states([None] * (len(offsets) - 1) if y is None else y, offsets)
        hidden = np.array([label is None for label in flat])
        if hidden.all():
            if self.n_states is None:
                raise ValueError("n_states is None, expected a number: y has no state")
            self.classes_ = np.arange(self.n_states)
            return np.full(len(flat), -1)
        states = np.full(len(flat), -1)
        given = np.array([label for label in flat if label is not None])
        self.classes_, numbers = np.unique(given, return_inverse=True)
        if self.n_states not in (None, len(self.classes_)):
            raise ValueError(
                f"n_states is {self.n_states}, but y has {len(self.classes_)} states: "
                f"{self.classes_.tolist()[:12]}; leave n_states out"
            )
        states[~hidden] = numbers.ravel()
        return states

    def _start(
        self, flat: np.ndarray, states: np.ndarray, offsets: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Set first parameters: of ``init``, of known states, random ones."""
        K = len(self.classes_)
        nodes = self.emission_.start(flat, K, rng)
        known = states >= 0
        if known.any():
            # What is hidden may be any state, so that known ones decide.
            nodes = np.where(known[:, None], np.eye(K)[np.maximum(states, 0)], nodes / len(nodes))
        self.emission_.fit(flat, nodes)
        pairs = rng.dirichlet(np.ones(K), size=K) + pair_counts(states, offsets, K)
        self.transition_ = normalized(pairs, None)
        first = rng.dirichlet(np.ones(K))
        first = first + np.bincount(states[offsets[:-1]][known[offsets[:-1]]], minlength=K)
        self.start_ = first / first.sum()
        shapes = {"start": (K,), "transition": (K, K)}
        shapes |= {name: getattr(self.emission_, name).shape for name in self.emission_.names
                   if name != "symbols"}  # fmt: skip
        names = {"start": (self.classes_, None), "transition": (self.classes_, self.classes_)}
        inputs = getattr(self.emission_, "symbols", getattr(self, "feature_names_in_", None))
        for name, value in (self.init or {}).items():
            rows, columns = names.get(name, (self.classes_, inputs))
            check_named(value, rows, columns, f"init: {name!r}", "in the model")
            value = checked_init(name, value, shapes)
            if name in ("start", "transition"):
                setattr(self, name + "_", value)
            else:
                setattr(self.emission_, name, value)

    def _update(
        self, flat: np.ndarray, nodes: np.ndarray, offsets: np.ndarray, pairs: np.ndarray
    ) -> None:
        """Set the most likely parameters of expected counts."""
        self.emission_.fit(flat, nodes)
        first = nodes[offsets[:-1]].sum(axis=0) + self.smoothing
        self.start_ = first / first.sum()
        before = getattr(self, "transition_", None) if self.history_ else None
        self.transition_ = normalized(pairs + self.smoothing, before)

    def _refuse_empty(self) -> None:
        for what, table in (
            ("is seen only as the last of a sequence, so its transitions", self.transition_),
            ("never emits a symbol, so the probabilities of its symbols",
             getattr(self.emission_, "table", np.ones((1, 1)))),
        ):  # fmt: skip
            empty = np.flatnonzero(table.sum(axis=1) == 0)
            if empty.size:
                name = self.classes_.tolist()[empty[0]]
                raise ValueError(f"state {name!r} {what} sum to 0; give smoothing above 0")

    # -- files ----------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to a file, for :func:`structsolve.load`.

        Parameters
        ----------
        path : path
        """
        check_is_fitted(self, "transition_")
        params = {k: plain(v, k) for k, v in self.get_params().items()}
        meta = {
            "estimator": registry.default().called(self),
            "by": registry.default().source_of("estimators", self),
            "params": params,
            "history": self.history_,
            "metadata": getattr(self, "metadata_", {}),
        }
        arrays = {name: getattr(self.emission_, name) for name in self.emission_.names}
        arrays |= {"classes": self.classes_, "start": self.start_, "transition": self.transition_}
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in"] = np.asarray(self.feature_names_in_, dtype=str)
        container.write(path, "model", meta, arrays)

    @classmethod
    def from_file(
        cls, meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any
    ) -> HiddenMarkovModel:
        """Return the fitted model of a file.

        Parameters
        ----------
        meta, arrays : dict
            As :meth:`save` wrote them.
        kernel : object
            Not used.

        Returns
        -------
        HiddenMarkovModel
        """
        model = cls(**{name: revive(value) for name, value in meta["params"].items()})
        model._check_settings()
        model.emission_ = model._make_emission()
        for name in model.emission_.names:
            setattr(model.emission_, name, arrays[name])
        model.classes_, model.start_ = arrays["classes"], arrays["start"]
        model.transition_, model.history_ = arrays["transition"], list(meta["history"])
        model.n_iter_ = len(model.history_)
        model.metadata_ = check_metadata(meta.get("metadata", {}))
        K = len(model.classes_)
        rows = {len(getattr(model.emission_, name)) for name in model.emission_.names[-1:]}
        if model.start_.shape != (K,) or model.transition_.shape != (K, K) or rows != {K}:
            raise ValueError(f"arrays: expected tables of {K} states")
        if "feature_names_in" in arrays:
            model.feature_names_in_ = arrays["feature_names_in"].astype(object)
            shape = np.shape(getattr(model.emission_, "means", 0))[1:]
            if model.feature_names_in_.shape != shape:
                raise ValueError(f"feature_names_in: expected the shape {shape}")
        return model
