"""The predicting half of StructuredSVM: decoding, scores, k best, named weights."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from .. import registry
from ..batch.answers import MOST_LABELS
from ..examples.given import listed
from ..examples.packed import Examples
from ..part_layout import PartLayout
from ..potentials.linear import LinearPotentials
from ..potentials.model import LinearModel, Model
from ..structure.ask import make_layout
from ..structure.base import inherits
from ..structure.pack import pack
from ..utils.params import check_count
from .common import mean_score, refuse_forced
from .decode import decode, decode_in_batches, decode_kbest, node_rows, refuse_impossible
from .direct import Direct, DirectBest, DirectLabels, DirectMarginals
from .label_list import guarded
from .probabilities import ProbabilityMixin
from .soft_labels import refuse_marginals
from .weights import WeightTables, named_blocks

# Per operator, with its name if it has one, its answers for a few short examples, and methods of
# the general way that they stand for: not where a class has its own.
_DIRECT: dict[str, tuple[str | None, type[Direct], tuple[str, ...]]] = {
    "oracle": (None, DirectLabels, ("_best_labels",)),
    "kbest": (None, DirectBest, ("_prepare", "_power", "_mask")),
    "projection": ("entropy", DirectMarginals, ("_prepare", "_mask", "_by_class")),
}


class PredictionMixin(ProbabilityMixin):
    """Prediction from ``space_`` and ``_model``, which scores parts."""

    space_: Any
    classes_: np.ndarray
    _model: Model
    coef_: dict[str, np.ndarray]
    loss: Any
    oracle: Any
    n_jobs: int | None

    def predict(self, X: Any, allowed: Any = None, forbidden: Any = None) -> Any:
        """Return the best label of every example.

        Parameters
        ----------
        X : as for ``fit``
        allowed : list, optional
            Per example: one list of allowed labels per node, None for "all". For label sets, the
            labels that may be on; "multilabel" takes {label: True, other: False} as well.
        forbidden : list of pairs or str, optional
            Transitions (label, next label) that must not occur ("chain", "tree"); of chains also
            (None, first label), (last label, None), or the name of a scheme of chunk tags, "BIO".

        Returns
        -------
        Labels in the form of ``y``: an array for single nodes, a list of arrays for sequences,
        which scikit-learn's metrics refuse: use :func:`structsolve.get_scorer`.
        """
        if allowed is None and forbidden is None:
            answers = self._direct("oracle", X)
            if answers is not None:
                return guarded(answers)
        examples, dense = self._pack(X)
        space = self.space_
        labels = self._best_labels(self._model, space, examples, dense, allowed, forbidden)
        return guarded(space.unpack(labels, examples))

    def decision_function(self, X: Any) -> Any:
        """Return, for every node and class, the score of the best label with that class there.

        For single nodes these are the class scores, of shape (n, K), or (n,) for two classes; for
        sequences a list of arrays of shape (length, K).  For label sets, of shape (n, L), the gain
        of each label.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        ndarray, or list of ndarray

        Raises
        ------
        ValueError
            If the oracle has no max-marginals.
        """
        rows, examples = self._class_rows(X)
        scores = self.space_.unpack_scores(rows, examples)
        if self.space_.structure.single_node and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def _class_rows(self, X: Any, method: str = "decision_function") -> tuple[np.ndarray, Examples]:
        """Return for every node the best score with each class there, and the packed examples."""
        layout, potentials, w = self._prepare(X)
        operator = self._power("max-marginals", layout)
        if operator is None:
            lack = self._lack("max-marginals", "does not give", layout)
            others = (
                "predict does"
                if self._power("kbest", layout) is None
                else ("predict and predict_kbest do")
            )
            raise ValueError(f"{method} needs max-marginals, which {lack}; {others} not need them")
        rows, _ = node_rows(potentials, operator, w, {}, n_jobs=self.n_jobs)
        return self._by_class(rows, np.maximum), layout.examples

    def predict_kbest(
        self,
        X: Any,
        k: int,
        allowed: Any = None,
        forbidden: Any = None,
        *,
        probabilities: bool = False,
    ) -> list[list[tuple[Any, float]]]:
        """Return the k best labels of every example with their scores, best first.

        Parameters
        ----------
        X, allowed, forbidden : as for ``predict``
        k : int
            From 1 to 1,000,000; fewer are returned where an example has fewer labels.
        probabilities : bool, default=False
            Return probabilities instead of scores, for models with surrogate "crf"; those among the
            labels that ``allowed`` and ``forbidden`` leave.

        Returns
        -------
        list of list of (label, score)
        """
        if probabilities and not hasattr(self, "log_partition"):
            raise ValueError(
                "probabilities=True needs surrogate='crf', which is trained to give probabilities"
            )
        plain = allowed is None and forbidden is None and not probabilities
        if plain and type(k) is int and 1 <= k <= MOST_LABELS:
            answers = self._direct("kbest", X, k)
            if answers is not None:
                return answers
        X = listed(X)
        totals = self.log_partition(X, allowed, forbidden) if probabilities else None
        check_count("k", k, MOST_LABELS)
        layout, potentials, w = self._prepare(X)
        operator = self._power("kbest", layout)
        if operator is None:
            raise ValueError(self._lack("kbest", "has no k-best power", layout))
        masks = self._mask(self.space_, layout.examples, allowed, forbidden)
        refuse_forced(masks)
        labels, scores = decode_kbest(potentials, operator, w, masks, int(k), self.n_jobs)
        if totals is not None:
            scores = [np.exp(np.minimum(own - t, 0)) for own, t in zip(scores, totals)]
        answers = []
        for i, (rows, values) in enumerate(zip(labels, scores)):
            possible = np.isfinite(values)
            answers.append(
                [
                    (self.space_.unpack_one(r, layout.examples, i), float(v))
                    for r, v in zip(rows[possible], values)
                ]
            )
        refuse_impossible(np.array([len(a) or -np.inf for a in answers], dtype=float))
        return answers

    def score(self, X: Any, y: Any, sample_weight: Any = None, metric: Any = None) -> float:
        """Return ``1 - mean loss per part``, or another metric by its name.

        The training loss is summed over the examples and divided by the number of parts that carry
        it (nodes), or of examples if the loss is a mean or 0/1 per example. With "hamming" this is
        the accuracy over nodes, which is high for label sets and hierarchies with rare labels:
        ``metric="micro-f1"`` or ``"hierarchical-f1"`` are more informative there. Labels not seen
        in training count as errors.

        Parameters
        ----------
        X, y : as for ``fit``
        sample_weight : array of shape (n,), optional
        metric : str, optional
            A name of :func:`structsolve.get_scorer`, or of a plugin.

        Returns
        -------
        float
            At most 1.
        """
        self._require_fitted()
        X, y = listed(X), listed(y, "y")
        refuse_marginals(self.space_.structure, y, "scores compare them with predictions")
        if metric is not None:
            if not isinstance(metric, str):
                raise TypeError(f"metric is {metric!r}, expected a name, such as 'micro-f1'")
            scorer = registry.default().make("metrics", metric)
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            value = scorer(self, X, y, **weights)
            try:
                return float(value)
            except (TypeError, ValueError):
                raise TypeError(
                    f"metric {metric!r}: its scorer returned {value!r}, expected a number"
                ) from None
        self._check_names(X)
        dense = self._model.check_input(X)
        examples = pack(self.space_, X, y, sample_weight, unseen="extra")
        return self._score(self._model, self.space_, examples, dense)

    def named_weights(
        self, feature_names: Any = None, tolerance: float = 0.0
    ) -> list[tuple[str, tuple[Any, ...], float]]:
        """Return the weights by name, largest magnitude first.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the node features; ``feature_names_in_`` or numbers by default.
        tolerance : float
            Leave out weights of at most this magnitude.

        Returns
        -------
        list of (block, names, weight)
            ``("transition", ("B", "I"), 1.5)``, ``("node", ("word=the", "B"), 0.3)``.
        """
        self._require_fitted()
        entries = [
            (block.name, names, weight)
            for block in named_blocks(self, feature_names)
            for names, weight in block.entries(np.flatnonzero(np.abs(block.values) > tolerance))
        ]
        return sorted(entries, key=lambda entry: -abs(entry[2]))

    def info(self, top: int | None = 20, feature_names: Any = None) -> WeightTables:
        """Return the most positive and the most negative weights of each block.

        Parameters
        ----------
        top : int or None, default=20
            The number of each; None: all that are not 0.
        feature_names : sequence of str, optional
            As of :meth:`named_weights`.

        Returns
        -------
        WeightTables
            A dict of tables by block, which prints as text.

        Examples
        --------
        >>> from structsolve import StructuredSVM
        >>> X, Y = [[[1.0, 0.0], [0.0, 1.0]]] * 3, [["a", "b"]] * 3
        >>> model = StructuredSVM("chain", alpha=0.1, fit_intercept=False).fit(X, Y)
        >>> info = model.info(top=1, feature_names=["up", "down"])
        >>> print(info)
        transition: from -> to, ...
        node: feature -> class, 4 of 4 weights are not 0
            ...  up -> a
        ...
        >>> info["transition"][0]["from"], info["transition"][0]["to"]
        ('a', 'b')
        """
        self._require_fitted()
        return WeightTables(named_blocks(self, feature_names), top)

    # -- parts of the above ---------------------------------------------------------------------

    def _pack(self, X: Any) -> tuple[Examples, bool]:
        """Return checked and packed examples, and whether their features are dense."""
        self._require_fitted()
        X = listed(X)
        self._check_names(X)
        dense = self._model.check_input(X)
        return pack(self.space_, X), dense

    def _direct(self, what: str, X: Any, k: int = 1) -> Any:
        """Return answers for a few short examples by one call; None for the general way.

        Parameters
        ----------
        what : {"oracle", "kbest", "projection"}
            The operator that gives them.
        X, k
            As for :meth:`Direct.answers`.
        """
        kept = self.__dict__.get("_operators")
        if kept is None or kept.space is not self.space_ or self.oracle is not None:
            return None
        if type(self.n_jobs) is not int or self.n_jobs != 1 or hasattr(self, "feature_names_in_"):
            return None
        first = X[0] if type(X) is list and X else X
        if type(first) is tuple and first:  # with a topology
            first = first[0]
        if type(first) is not np.ndarray and not hasattr(first, "indptr"):
            return None
        model, direct = kept.direct.get(what, (None, None))
        if model is not self._model:
            model, direct = self._model, None
            name, kind, general = _DIRECT[what]
            own = ("_pack", "_asked", "_check_names", "_require_fitted", *general)
            if type(model) is LinearModel and inherits(self, PredictionMixin, *own):
                with suppress(Exception):  # the general way raises it
                    direct = kind(model, self._asked(what, name))
            kept.direct[what] = model, direct
        return None if direct is None else direct.answers(X, k)

    def _lack(self, power: str, lacks: str, layout: PartLayout) -> str:
        """Describe which oracle lacks a power and why; ``lacks`` is the verb of the clause."""
        own = f"the oracle of structure {self.space_.structure.name!r}"
        if self.oracle is not None:
            backend = f"oracle={self.oracle!r} {lacks}"
            if self._power(power, layout, own=True) is not None:
                return f"{backend}; set_params(oracle=None) asks {own}"
            own, lacks = f"{backend}, and {own}", f"{lacks} either"
        why = getattr(self.space_, "no_powers", {}).get(power)
        return f"{own} {lacks}{f': {why}' if why else ''}"

    def _prepare(self, X: Any) -> tuple[PartLayout, LinearPotentials, np.ndarray]:
        """Return the part layout of packed examples, potentials, and their weights."""
        examples, dense = self._pack(X)
        layout = make_layout(self.space_, examples)
        return layout, *self._model.scores(examples, dense, self.n_jobs)

    def _best_labels(
        self,
        model: Model,
        space: Any,
        examples: Examples,
        dense: bool,
        allowed: Any = None,
        forbidden: Any = None,
        *,
        layout: PartLayout | None = None,
    ) -> np.ndarray:
        """Return the best labels of packed examples, one after the other."""
        constrained = allowed is not None or forbidden is not None
        labels = model.best_labels(examples, constrained, self.n_jobs)
        if labels is not None:
            return labels
        oracle = self._asked("oracle", space=space)(layout or make_layout(space, examples))
        potentials, w = model.scores(examples, dense, self.n_jobs)
        masks = self._mask(space, examples, allowed, forbidden) if constrained else {}
        decoding = decode_in_batches if getattr(oracle, "batched", False) else decode
        labels, scores = decoding(potentials, oracle, w, masks, self.n_jobs)
        refuse_impossible(scores)
        return labels

    def _score(self, model: Model, space: Any, examples: Examples, dense: bool) -> float:
        """Return the score of packed examples with labels."""
        layout = make_layout(space, examples)  # oracle and loss may share what they make of it
        labels = self._best_labels(model, space, examples, dense, layout=layout)
        loss = self._asked("loss", self._scored_loss(space), space)(layout)
        return mean_score(loss, examples, labels)

    def _task_loss(self, space: Any) -> Any:
        """Return the loss of training, for "auto" that of the space."""
        surrogate = getattr(self, "surrogate", None)
        own = getattr(space, "margin_loss", None)
        automatic = isinstance(self.loss, str) and self.loss == "auto"
        if automatic and own is not None and getattr(surrogate, "name", surrogate) == "margin":
            return own
        return self._scored_loss(space)

    def _scored_loss(self, space: Any) -> Any:
        automatic = isinstance(self.loss, str) and self.loss == "auto"
        return getattr(space, "default_loss", "hamming") if automatic else self.loss

    def _state_names(self) -> np.ndarray:
        """Return the names of the states of a node for its weights."""
        return self.classes_
