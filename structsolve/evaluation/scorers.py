"""Scores of label sequences and label sets by name, for ``scoring`` and ``score(metric=)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from structsolve import registry
from structsolve.structure.pack import pack, structure_of
from structsolve.structure.weighted_labels import WeightedLabels
from structsolve.utils.suggest import did_you_mean

from .metrics import TOKEN_METRICS, share_equal, token_score
from .tokens import in_sequence, node_weights_of, unweighted, weighs_nodes

__all__ = ["get_scorer", "get_scorer_names"]

#: Metrics of the core, of label sequences; label sets have some of the same names.
OURS = TOKEN_METRICS


def get_scorer(name: str) -> Callable[..., float]:
    """Return a score of label sequences or label sets by its name.

    scikit-learn's own names misread label sequences or refuse them; pass one of these as
    ``scoring`` to ``cross_val_score`` or ``GridSearchCV``, or its name as ``metric`` to an
    estimator's ``score``.

    Parameters
    ----------
    name : str
        One of `get_scorer_names`.  For sequences: by token ``"accuracy"``, ``"macro-f1"``,
        ``"micro-f1"``, ``"weighted-f1"`` (and the same with ``precision`` or ``recall``); by
        sequence ``"sequence-accuracy"``; by span, as conlleval counts, ``"span-f1"``,
        ``"span-precision"``, ``"span-recall"``.  For label sets: the same averages over labels,
        ``"samples-f1"`` over examples, ``"exact-match"``, and from scores ``"average-precision"``,
        ``"neg-coverage"``, ``"neg-ranking-loss"``; for hierarchies also ``"hierarchical-f1"``.

    Returns
    -------
    callable
        ``scorer(estimator, X, Y) -> float``, greater is better; it can be pickled.

    Raises
    ------
    ValueError
        For unknown names; the message lists the known ones.

    See Also
    --------
    structsolve.evaluation.metrics.make_token_scorer : With the classes that averages cover.
    structsolve.plugins.chain.metrics.make_span_scorer : With a scheme of tags, or one type of span.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from structsolve import StructuredSVM, get_scorer, make_strips
    >>> train, _ = make_strips(60, 1)
    >>> model = StructuredSVM("chain", alpha=0.01, tol=0.01)
    >>> scores = cross_val_score(
    ...     model, train.pixels, train.labels, cv=3, scoring=get_scorer("macro-f1")
    ... )
    >>> bool(scores.min() > 0.6)
    True
    """
    if not registry.default().has("metrics", name):
        raise ValueError(
            f"name is {name!r}{did_you_mean(name, get_scorer_names())}, expected one of "
            f"{', '.join(get_scorer_names())}. "
            "scoring also takes scikit-learn's names, for labels of one part or label sets"
        )
    return registry.default().make("metrics", name)


def make_scorer(name: str) -> Callable[..., float]:
    """Return a built-in scorer.

    Parameters
    ----------
    name : str
        One of ``OURS``.

    Returns
    -------
    callable
        The result of `get_scorer`.
    """
    return ByLabels(name)


class Weighted:
    """Base of scores that take ``sample_weight``: scikit-learn routes it to them on request."""

    _requested: Any = None

    def set_score_request(self, *, sample_weight: Any) -> Any:
        """Say whether searches pass ``sample_weight``, as for scikit-learn's scorers.

        Parameters
        ----------
        sample_weight : bool, str or None
            As for ``set_fit_request`` of estimators.

        Returns
        -------
        self
        """
        object.__setattr__(self, "_requested", sample_weight)  # dataclasses are frozen
        return self

    def get_metadata_routing(self) -> Any:
        """Return what `set_score_request` said, for scikit-learn.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
        """
        from sklearn.utils.metadata_routing import MetadataRequest  # heavy

        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._requested)
        return request


@dataclass(frozen=True)
class ByLabels(Weighted):
    """A metric of one name for label sequences and label sets.

    Parameters
    ----------
    name : str
        Of `TOKEN_METRICS`; for label sets, the metric ``label-sets:NAME`` of a plugin.
    """

    name: str

    def __call__(self, estimator: Any, X: Any, y: Any, **given: Any) -> float:
        """Score predictions.

        Parameters
        ----------
        estimator : estimator
        X, y : as for its ``fit``
        **given
            ``sample_weight``, if the metric takes it.

        Returns
        -------
        float
        """
        model, _ = final_model(estimator)
        structure, weights = structure_of(model), None
        if weighs_nodes(model, y):
            weights = node_weights_of(model, final_model(estimator, X)[1], y)
        whole = self.name == "sequence-accuracy"
        if not whole and any(getattr(one, "label_sets", False) for one in (structure, model)):
            scorer = registry.default().make("metrics", f"label-sets:{self.name}")
            return float(scorer(estimator, X, y, **given))
        answers = estimator.predict(X)
        if whole and structure is not None and not hasattr(model, "classes_"):
            return share_equal(y, answers, **given)  # of any length, such as paths
        if getattr(structure, "single_node", False) and getattr(answers, "ndim", 1) > 1:
            # Tables of levels: a row's path is one class.
            X = final_model(estimator, X)[1]
            both = (pack(model.space_, X, each, unseen="extra") for each in (y, answers))
            y, answers = (examples.labels for examples in both)
        if (name := getattr(structure, "node_labels", None)) is not None:  # of networkx graphs
            y = [dict(one.nodes(data=name)) if hasattr(one, "nodes") else one for one in y]
        true = unweighted(y)[0]
        if isinstance(answers, list) and len(answers) == len(true):
            # Graphs with named nodes, whose labels may be sequences in their order.
            answers = [
                [*one.values()] if isinstance(one, dict) and not isinstance(own, dict) else one
                for own, one in zip(true, answers, strict=True)
            ]
        true, pred = in_sequence(true, answers)
        if weights is not None:
            true = [WeightedLabels(*both) for both in zip(true, weights, strict=True)]
        return token_score(true, pred, self.name, **given)


def final_model(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the predictor within searches and pipelines, and X transformed for it.

    Parameters
    ----------
    estimator : estimator
    X : as for its ``predict``, optional

    Returns
    -------
    model, X : tuple
    """
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            if X is not None and len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator.steps[-1][1]
        else:
            return estimator, X


def get_scorer_names() -> list[str]:
    """Return the names for `get_scorer`: the core's, then those of plugins.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from structsolve.evaluation.scorers import get_scorer_names
    >>> "span-f1" in get_scorer_names()
    True
    """
    others = registry.default().names("metrics")
    return [*OURS, *(name for name in others if name not in (*OURS, "label-sets"))]


def scorer_of(scoring: Any, plain: bool) -> Callable[..., float] | None:
    """Return the scorer of an estimator's ``scoring``.

    Parameters
    ----------
    scoring : str, callable or None
        A name of :func:`get_scorer`, or scikit-learn's.
    plain : bool
        y is one label a row, or a matrix of 0 and 1: scikit-learn's names take precedence. They are
        refused for all other y, which scikit-learn misreads.

    Returns
    -------
    callable or None
        ``scorer(estimator, X, y) -> float``; None for the estimator's ``score``.

    Raises
    ------
    ValueError
        For unknown names, and names that do not fit y.

    Examples
    --------
    >>> scorer_of("f1_macro", plain=False)
    Traceback (most recent call last):
    ValueError: scoring is 'f1_macro', which does not fit labels such as these; expected None, a \
callable, or one of accuracy, ...
    """
    if scoring is None or callable(scoring):
        return scoring
    from sklearn import metrics  # heavy

    theirs = isinstance(scoring, str) and scoring in metrics.get_scorer_names()
    if theirs and plain:
        return metrics.get_scorer(scoring)
    if registry.default().has("metrics", scoring):
        return get_scorer(scoring)
    names = get_scorer_names()
    also = metrics.get_scorer_names() if plain else []
    wrong = did_you_mean(scoring, [*names, *also])
    if theirs:
        wrong = ", which does not fit labels such as these"
    more = ", or a name of scikit-learn's" if plain else ""
    raise ValueError(
        f"scoring is {scoring!r}{wrong}; expected None, a callable, or one of "
        f"{', '.join(names)}{more}"
    )


def name_of(scoring: Any, loss: Any) -> str:
    """Return the name of the score of ``scoring``.

    Parameters
    ----------
    scoring : str, callable or None
    loss : str or loss object
        Loss of the estimator, whose ``score`` is one minus the mean loss.

    Returns
    -------
    str

    Examples
    --------
    >>> name_of(None, "hamming"), name_of("micro-f1", "hamming")
    ('1 - mean loss (hamming)', 'micro-f1')
    """
    if scoring is None:
        return f"1 - mean loss ({loss if isinstance(loss, str) else type(loss).__name__})"
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))
