# Pipelines in the shell: the steps before the model, and what their first one takes.
from __future__ import annotations

import contextlib
import importlib
import warnings
from typing import Any

import numpy as np

from structsolve.cli.options import UsageError
from structsolve.utils.suggest import a_type


class Steps:
    """The steps of a pipeline before its model.

    Parameters
    ----------
    steps : list of transformer
        Fitted.
    first : transformer or estimator
        The one that gets the data.
    """

    def __init__(self, steps: list[Any], first: Any) -> None:
        self.steps, self.first = steps, first

    def read(self, reader: Any, path: str) -> tuple[Any, Any]:
        """Read what is written in a file.

        Parameters
        ----------
        reader : Reader
            With a method ``raw``.
        path : str

        Returns
        -------
        X, y
        """
        grouped = getattr(reader, "group", None) is not None  # a table of sequences
        first = getattr(self.first, "vectorizer_", self.first) if grouped else self.first
        columns: Any = getattr(first, "n_features_in_", None)
        if hasattr(first, "feature_names_in_"):
            columns = first.feature_names_in_.tolist()
        elif hasattr(first, "feature_names_"):  # DictVectorizer: "name" or "name=value"
            names = (name.partition(first.separator)[0] for name in first.feature_names_)
            columns = [*dict.fromkeys(names)]
        elif hasattr(first, "build_analyzer"):  # a vectorizer of texts
            columns = 1
        words = _words_of(first)
        if words:
            listed = range(columns) if isinstance(columns, int) else columns
            columns = [(name, words[j]) if j in words else name for j, name in enumerate(listed)]
        return reader.raw(path, columns)

    def transform(self, data: Any, path: str) -> Any:
        """Return X for the model.

        Parameters
        ----------
        data : Data
        path : str
            For messages.

        Returns
        -------
        X

        Raises
        ------
        ValueError
            If a step does not take the data; it names the file and the step.
        """
        X = self._as_taken(data)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            for step in self.steps:
                try:
                    X = step.transform(X)
                except (ValueError, TypeError, AttributeError, IndexError) as error:
                    raise ValueError(f"{path}: step {type(step).__name__}: {error}") from error
        return X

    def _as_taken(self, data: Any) -> Any:
        """The rows of a table as texts, dicts or a frame, if the first step takes these."""
        X, columns = data.X, getattr(data.reader, "columns", None)
        if not isinstance(columns, list):
            return X
        names = [name for name, _ in columns]
        if not isinstance(X, np.ndarray):
            if hasattr(self.first, "vectorizer_") and all(isinstance(name, str) for name in names):
                return [[dict(zip(names, row, strict=True)) for row in x.tolist()] for x in X]
            return X
        if hasattr(self.first, "build_analyzer"):
            return [str(text) for text in X[:, 0]]
        if hasattr(self.first, "input_type") or hasattr(self.first, "feature_names_"):
            return [dict(zip(names, row, strict=True)) for row in X.tolist()]
        if hasattr(self.first, "feature_names_in_"):
            with contextlib.suppress(ImportError):
                return importlib.import_module("pandas").DataFrame(X, columns=names).infer_objects()
        return X


def split(model: Any, path: str) -> tuple[Any, Steps | None]:
    """Return the model of a file, and the steps before it if it is a pipeline.

    Parameters
    ----------
    model : Pipeline or estimator
        As loaded.
    path : str
        For messages.

    Returns
    -------
    model : estimator
    steps : Steps or None

    Raises
    ------
    UsageError
        If a pipeline ends in no estimator of ours.
    """
    *steps, last = _unnested(model)
    if not hasattr(last, "predict"):
        raise UsageError(f"{path}: found {a_type(model)} that ends in no model")
    if last is model:
        return model, None
    first = (steps or [last])[0]
    while hasattr(first, "transformer_list"):
        first = next(iter(_unnested(first.transformer_list[0][1])), last)
    return last, Steps(steps, first)


def _words_of(first: Any) -> dict[int, list[Any]]:
    """The columns that a step takes as words, also where all are numbers, with words it knows."""
    if hasattr(first, "categories_"):  # an encoder
        known = [list(values) for values in first.categories_]
        return {j: v for j, v in enumerate(known) if any(isinstance(word, str) for word in v)}
    if hasattr(first, "feature_names_"):  # DictVectorizer
        parts = [name.partition(first.separator) for name in first.feature_names_]
        numbers = {name for name, separator, _ in parts if not separator}
        names = dict.fromkeys(name for name, *_ in parts)
        return {j: [] for j, name in enumerate(names) if name not in numbers}
    if hasattr(first, "build_analyzer"):
        return {0: []}
    if hasattr(first, "statistics_"):  # an imputer
        texts = [isinstance(value, str) for value in first.statistics_.tolist()]
        return {j: [first.missing_values] for j, text in enumerate(texts) if text}
    words: dict[int, list[Any]] = {}
    for name, step, _ in getattr(first, "transformers_", ()):
        inner = next(iter(_unnested(step)), None) if step != "drop" else None
        indices = first._transformer_to_input_indices[name]
        places = np.atleast_1d(np.arange(first.n_features_in_)[indices])
        words |= {int(places[j]): known for j, known in _words_of(inner).items()}
    return words


def _unnested(step: Any) -> list[Any]:
    """The steps of a pipeline and of those in it, but those that pass data on."""
    if step is None or step == "passthrough":
        return []
    if not hasattr(step, "steps"):
        return [step]
    return [one for _, inner in step.steps for one in _unnested(inner)]
