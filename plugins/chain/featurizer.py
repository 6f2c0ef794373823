"""Features of tokens as a step of pipelines, and for the shell's reader of CoNLL columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from structsolve.examples.given import listed
from structsolve.plugins.chain.crfsuite import parse_attribute
from structsolve.plugins.chain.token_features import conll_features
from structsolve.utils.params import check_choice

FEATURES = ("columns", "template", "attrs")


class TokenFeaturizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Turn sentences of token columns into named features, for ``SequenceVectorizer``.

    The first step of a pipeline for raw CoNLL columns, which ``structsolve.save`` can write and
    ``structsolve predict`` run.

    Parameters
    ----------
    features : {"template", "columns", "attrs"}, default="template"
        Those of ``conll_features``, a feature for the value of each column, or columns that are
        CRFsuite's attributes, ``name[:value]``.
    window : int, default=2
        For the template, the number of tokens on either side.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> from structsolve import TokenFeaturizer
    >>> TokenFeaturizer("columns").fit_transform([[["He", "PRP"], ["ran", "VBD"]]])
    [[['bias', 'c0=He', 'c1=PRP'], ['bias', 'c0=ran', 'c1=VBD']]]
    """

    def __init__(self, features: str = "template", window: int = 2) -> None:
        self.features = features
        self.window = window

    def fit(self, X: Sequence[Any], y: Any = None) -> TokenFeaturizer:
        """Learn the number of columns.

        Parameters
        ----------
        X : list of list of list of str
            Columns of the tokens of each sentence, as ``read_conll`` returns them.
        y : ignored

        Returns
        -------
        TokenFeaturizer
            Itself.

        Raises
        ------
        ValueError
            For an unknown kind of features, and sentences without tokens.
        """
        check_choice("features", self.features, FEATURES)
        X = _sentences(X)
        sized = hasattr(X, "__len__") and len(X) > 0 and hasattr(X[0], "__len__")
        if not sized or len(X[0]) == 0 or not isinstance(X[0][0], (list, tuple)):
            raise ValueError("X: expected sentences, lists of tokens: lists of columns")
        self.n_features_in_ = len(X[0][0])
        return self

    def transform(self, X: Sequence[Any]) -> list[Any]:
        """Return the features of every token.

        Parameters
        ----------
        X : list of list of list of str

        Returns
        -------
        list of list of list of str
            ``"attrs"``: of pairs of a name and a value.

        Raises
        ------
        ValueError
            For another number of columns than in training, and what are no strings.
        """
        check_is_fitted(self)
        X = _sentences(X)
        for i, sentence in enumerate(X):
            if self.features == "template" and not len(sentence):
                raise ValueError(f"X[{i}]: found no tokens, expected at least one")
            for t, token in enumerate(sentence):
                columns = isinstance(token, (list, tuple))
                if not columns or len(token) != self.n_features_in_:
                    given = f"{len(token)} columns" if columns else repr(token)
                    raise ValueError(
                        f"X[{i}], token {t}: found {given}, expected {self.n_features_in_} columns"
                    )
                for cell in token:
                    if not isinstance(cell, str):
                        raise ValueError(f"X[{i}], token {t}: found {cell!r}, expected a string")
        return [features_of(sentence, self.features, self.window) for sentence in X]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.no_validation = True
        return tags


def _sentences(X: Any) -> Any:
    """Return X, of which no sentence is a data frame, whose items are names of columns."""
    X = listed(X)
    listing = X if hasattr(X, "__iter__") else ()
    if any(hasattr(given, "columns") for given in (X, *listing)):
        raise ValueError(
            "X: found a data frame, expected sentences, lists of tokens: lists of columns; of the "
            "frame of a sentence pass its values.tolist()"
        )
    return X


def features_of(sentence: Sequence[Sequence[str]], features: str, window: int) -> list[Any]:
    """Return the features of the tokens of a sentence.

    Parameters
    ----------
    sentence : sequence of sequences of str
    features, window
        See :class:`TokenFeaturizer`.

    Returns
    -------
    list of list

    Examples
    --------
    >>> features_of([["w=a", "len:2"]], "attrs", 0)
    [[('w=a', 1.0), ('len', 2.0)]]
    """
    if features == "template":
        return conll_features(sentence, window)
    if features == "columns":
        return [["bias", *(f"c{c}={value}" for c, value in enumerate(row))] for row in sentence]
    return [[parse_attribute(field) for field in row] for row in sentence]
