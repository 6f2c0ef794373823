"""Numbers of the distribution of a hidden Markov model's states, given the observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structsolve import batch
from structsolve.examples.given import listed
from structsolve.plugins.hidden_markov.prediction import StatePredictionMixin
from structsolve.utils.suggest import a_type


class StateNumbersMixin(StatePredictionMixin):
    """What :class:`~structsolve.StructuredSVM` with surrogate "crf" has, of p(states | X)."""

    def log_partition(self, X: Any) -> np.ndarray:
        """Return the log-probability of every sequence, whatever its states.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        ndarray of float64 of shape (n,)
            ``log_likelihood`` is their sum.
        """
        return self._number(batch.log_partition, X)

    def log_proba(self, X: Any, y: Any) -> np.ndarray:
        """Return the log-probability of the given states of every sequence, given the sequence.

        Parameters
        ----------
        X : list of sequences
        y : list
            All states.

        Returns
        -------
        ndarray of float64 of shape (n,)
            -inf for states that the model does not have.

        Examples
        --------
        >>> from structsolve import HiddenMarkovModel
        >>> X, Y = ["hht", "tth"], [["a", "a", "b"], ["b", "b", "a"]]
        >>> model = HiddenMarkovModel(smoothing=0.5).fit(X, Y)
        >>> model.log_proba(["hh", "hh"], [["a", "a"], ["a", "c"]]).round(2).tolist()
        [-0.27, -inf]
        """
        X = listed(X)
        codes, unseen = self._codes(X, y)
        answer = self._number(batch.log_proba, X, np.maximum(codes, 0))
        answer[unseen] = -np.inf
        return answer

    def entropy(self, X: Any) -> np.ndarray:
        """Return the entropy of the states of every sequence, in nats.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        return self._number(batch.entropy, X)

    def cross_entropy(self, X: Any, other: Any) -> np.ndarray:
        """Return ``-sum p log q`` over the states of every sequence, q of another model.

        Parameters
        ----------
        X : list of sequences
        other : HiddenMarkovModel
            Fitted, with the same states.

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        X = listed(X)
        return self._number(batch.cross_entropy, X, self._scores_of(other, X))

    def kl_divergence(self, X: Any, other: Any) -> np.ndarray:
        """Return the Kullback-Leibler divergence of another model's states from this model's.

        Parameters
        ----------
        X : list of sequences
        other : HiddenMarkovModel
            See ``cross_entropy``.

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        X = listed(X)
        return self._number(batch.kl_divergence, X, self._scores_of(other, X))

    def expected_loss(self, X: Any, y: Any, loss: Any = "hamming") -> np.ndarray:
        """Return the expected loss of the given states of every sequence.

        Parameters
        ----------
        X : list of sequences
        y : list
            All states.
        loss : str or loss object, default="hamming"
            A loss of ``"chain"``.

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        X = listed(X)
        codes, unseen = self._codes(X, y)
        if any(unseen):
            i = unseen.index(True)
            raise ValueError(
                f"y, example {i}: found a state that the model does not have, expected some of "
                f"{self.classes_.tolist()[:12]}"
            )
        return self._number(batch.expected_loss, X, codes, loss)

    def predict_least_loss(self, X: Any, loss: Any = "hamming") -> list[np.ndarray]:
        """Return the states of least expected loss of every sequence.

        Parameters
        ----------
        X : list of sequences
        loss : str or loss object, default="hamming"
            By default each is the most probable state at its position.

        Returns
        -------
        list of ndarray
        """
        X = listed(X)
        labels, _ = self._number(batch.least_loss, X, loss)
        return np.split(self.classes_[labels], self._given(X)[1][1:-1])

    def _number(self, call: Callable[..., Any], X: Any, *given: Any) -> Any:
        space, scores = self._scores(*self._given(X))
        try:
            return call(space, scores, *given, n_jobs=self.n_jobs)
        except ValueError:
            self._refuse_impossible(space, scores)
            raise

    def _codes(self, X: Any, y: Any) -> tuple[np.ndarray, list[bool]]:
        """Return numbers of states, -1 for unknown ones, and which sequences have such ones."""
        offsets = self._given(X)[1]
        number = {state: k for k, state in enumerate(self.classes_.tolist())}
        codes = np.array([number.get(state, -1) for state in self._known_states(y, offsets)], int)
        return codes, [bool((part < 0).any()) for part in np.split(codes, offsets[1:-1])]

    def _scores_of(self, other: Any, X: Any) -> batch.Scores:
        """Return the scores of another model."""
        if not isinstance(other, StateNumbersMixin):
            raise TypeError(f"other is {a_type(other)}, expected a fitted HiddenMarkovModel")
        check_is_fitted(other, "transition_")
        mine, theirs = (model.classes_.tolist() for model in (self, other))
        if mine != theirs:
            raise ValueError(
                f"other: found a model of the states {theirs[:12]}, expected one of {mine[:12]}"
            )
        space, scores = other._scores(*other._given(X))
        other._refuse_impossible(space, scores)
        return scores
