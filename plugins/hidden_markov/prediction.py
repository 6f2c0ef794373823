"""The predicting half of HiddenMarkovModel: states, their probabilities, and drawn sequences."""

from __future__ import annotations

from bisect import bisect
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from structsolve import batch
from structsolve.estimators.common import generator_of
from structsolve.estimators.weights import NamedBlock, WeightTables, names_of_features
from structsolve.evaluation.tokens import check_kinds
from structsolve.examples.given import first_frame, listed
from structsolve.plugins.hidden_markov.emissions import cumulated, log
from structsolve.plugins.hidden_markov.states import flat_states
from structsolve.utils.masked import refuse_masked


class StatePredictionMixin:
    """Prediction of states by the chain of a fitted model."""

    classes_: np.ndarray
    start_: np.ndarray
    transition_: np.ndarray
    emission_: Any
    n_jobs: int | None

    def _scores(self, flat: np.ndarray, offsets: np.ndarray) -> tuple[Any, batch.Scores]:
        space = batch.score_space("chain", self.classes_)
        shared = {"transition": log(self.transition_), "start": log(self.start_)}
        examples = space.pack_sizes(np.diff(offsets))
        return space, batch.Scores(self.emission_.log_scores(flat), shared, examples=examples)

    def _expect(
        self, flat: np.ndarray, offsets: np.ndarray, forbidden: Any = 0.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return probabilities of states, expected transitions, and log-likelihoods."""
        space, scores = self._scores(flat, offsets)
        assert scores.node is not None
        scores.node += forbidden
        try:
            marginals, values = batch.marginals(space, scores, n_jobs=self.n_jobs)
        except ValueError:
            self._refuse_impossible(space, scores)
            raise
        assert marginals.node is not None and marginals.shared is not None
        return marginals.node, marginals.shared["transition"].sum(axis=0), values

    def _refuse_impossible(self, space: Any, scores: batch.Scores) -> None:
        bounds = batch.argmax(space, scores, n_jobs=self.n_jobs)[2]
        if not (bounds > -np.inf).all():
            raise ValueError(
                f"X, example {int((bounds == -np.inf).argmax())}: the model gives it the "
                "probability 0; fit with smoothing above 0"
            )

    def _given(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "transition_")
        X = listed(X)
        refuse_masked(X, "X", "fill them in, x.filled(0.0)")
        _check_feature_names(self, first_frame(X), reset=False)
        return self.emission_.read(X, learn=False)

    def log_likelihood(self, X: Any) -> float:
        """Return the log-probability of all sequences, whatever their states.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        float
            The sum of natural logarithms (of densities, for "gaussian").
        """
        return float(self._expect(*self._given(X))[2].sum())

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log-likelihood of X, or the share of right states.

        Parameters
        ----------
        X : list of sequences
        y : list, optional
            True states.

        Returns
        -------
        float
        """
        if y is None:
            return self.log_likelihood(X)
        X = listed(X)
        true = self._known_states(y, self._given(X)[1])
        guessed = np.concatenate(self.predict(X)).tolist()
        return float(np.mean([bool(a == b) for a, b in zip(guessed, true)]))

    def _known_states(self, y: Any, offsets: np.ndarray) -> list[Any]:
        """Return the states of all sequences, none of which may be hidden."""
        true = flat_states(listed(y, "y"), offsets)
        hidden = [label is None for label in true]
        if any(hidden):
            i = int(np.searchsorted(offsets, hidden.index(True), side="right")) - 1
            raise ValueError(f"y, example {i}: found None in place of a state, expected all states")
        first, state = np.asarray(true[:1]).item(), self.classes_[0].item()
        check_kinds(first, state, "y", "the model has states")
        return true

    def predict(self, X: Any) -> list[np.ndarray]:
        """Return the most likely states of every sequence.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        list of ndarray
        """
        flat, offsets = self._given(X)
        space, scores = self._scores(flat, offsets)
        labels, _, bounds = batch.argmax(space, scores, n_jobs=self.n_jobs)
        if not (bounds > -np.inf).all():
            self._refuse_impossible(space, scores)
        return np.split(self.classes_[labels], offsets[1:-1])

    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """Return the probability of each state at every position, given the sequence.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        list of ndarray of shape (length, K)
        """
        flat, offsets = self._given(X)
        return np.split(self._expect(flat, offsets)[0], offsets[1:-1])

    #: The chain's name for the same.
    predict_marginals = predict_proba

    def predict_kbest(
        self, X: Any, k: int, probabilities: bool = False
    ) -> list[list[tuple[np.ndarray, float]]]:
        """Return the k most likely sequences of states, with their log-probabilities.

        Parameters
        ----------
        X : list of sequences
        k : int
        probabilities : bool, default=False
            Return their probabilities, given the sequence.

        Returns
        -------
        list of list of (ndarray, float)
            Of states and observations together, best first.
        """
        flat, offsets = self._given(X)
        space, scores = self._scores(flat, offsets)
        labels, values = batch.k_best(space, scores, k, n_jobs=self.n_jobs)
        if any(each[0] == -np.inf for each in values):
            self._refuse_impossible(space, scores)
        if probabilities:
            totals = batch.log_partition(space, scores, n_jobs=self.n_jobs)
            values = [np.exp(np.minimum(own - z, 0)) for own, z in zip(values, totals)]
        return [list(zip(self.classes_[one], each.tolist())) for one, each in zip(labels, values)]

    def info(self, top: int | None = 20, feature_names: Any = None) -> WeightTables:
        """Return the largest probabilities of states, transitions and symbols, or means, variances.

        Parameters
        ----------
        top : int or None, default=20
            The number of each, of means also of the most negative; None: all that are not 0.
        feature_names : sequence of str, optional
            Names of the columns of X; ``feature_names_in_`` or numbers by default.

        Returns
        -------
        WeightTables
            A dict of tables, which prints as text.

        Examples
        --------
        >>> from structsolve import HiddenMarkovModel
        >>> model = HiddenMarkovModel(smoothing=0).fit(["hht", "tt"], [["a", "a", "b"], ["b", "b"]])
        >>> print(model.info()["transition"][0])
        {'from': 'b', 'to': 'b', 'weight': 1.0}
        """
        check_is_fitted(self, "transition_")
        emission, states = self.emission_, self.classes_
        blocks = [
            NamedBlock("start", ("state",), [states], self.start_),
            NamedBlock("transition", ("from", "to"), [states, states], self.transition_),
        ]
        if hasattr(emission, "symbols"):
            axes, names = ("state", "symbol"), emission.symbols
            blocks.append(NamedBlock("emission", axes, [states, names], emission.table))
            return WeightTables(blocks, top, "probabilities")
        size = emission.means.shape[1]
        names = names_of_features(self, feature_names)
        names = np.arange(size) if names is None else np.asarray(names)
        if len(names) != size:
            raise ValueError(f"feature_names has {len(names)} entries, expected {size}")
        for name in emission.names:
            values = getattr(emission, name)
            blocks.append(NamedBlock(name, ("state", "feature"), [states, names], values))
        return WeightTables(blocks, top, "numbers")

    def sample(self, lengths: Any, random_state: Any = None) -> tuple[list[Any], list[np.ndarray]]:
        """Draw sequences.

        Parameters
        ----------
        lengths : sequence of int
            Length of each sequence, at least 0.
        random_state : int, Generator or None, optional

        Returns
        -------
        X : list of ndarray
        states : list of ndarray
        """
        check_is_fitted(self, "transition_")
        given = np.asarray(lengths)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError(
                f"lengths is {lengths!r}, expected a list with an integer for each sequence"
            )
        if given.size and given.min() < 0:
            i = int(given.argmin())
            raise ValueError(f"lengths, example {i}: found {given[i]}, expected at least 0")
        rng = generator_of(random_state)
        *below, start = cumulated(np.vstack([self.transition_, self.start_]))
        draw = self.emission_.drawer(rng)
        X, Y = [], []
        for length in given.tolist():
            states: list[int] = []
            for number in rng.random(length).tolist():
                states.append(bisect(below[states[-1]] if states else start, number))
            numbers = np.array(states, dtype=np.int64)
            X.append(draw(numbers))
            Y.append(self.classes_[numbers])
        return X, Y
