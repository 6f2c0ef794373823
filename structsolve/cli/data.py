# How the shell turns a file into X and y, and keeps what it needs to do so again with the model.
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

FEATURES = ("template", "columns", "attrs")


def _structures_for(file_format: str) -> str:
    """The names of the structures whose data a format holds, for messages."""
    from structsolve import registry

    known = registry.default()
    names = [
        name
        for name in known.names("structures")
        if getattr(known.find("structures", name).factory, "file_format", None) == file_format
    ]
    return " or ".join(map(repr, names)) or "one of a plugin"


@dataclass
class Data:
    """What a file holds: `X` ready for the model, `y` (or None), and how tokens form sequences."""

    X: Any
    y: Any
    weights: list[float] | None = None
    rows: Any = None
    lengths: list[int] | None = None
    sentences: list[Any] | None = None

    @property
    def sequences(self) -> bool:
        return isinstance(self.X, list) or self.sentences is not None

    def split(self, flat: Sequence[Any]) -> list[Sequence[Any]]:
        """Cut what a flat model predicted back into sequences."""
        if self.lengths is None:
            return [flat]
        ends = np.cumsum(self.lengths).tolist()
        return [flat[end - n : end] for end, n in zip(ends, self.lengths, strict=True)]


@dataclass
class Recipe:
    """The settings that read a file, saved as the model's metadata."""

    format: str
    features: str | None = None
    window: int = 2
    label_column: int = -1
    columns: int | None = None
    comment: str | None = None
    zero_based: bool = False
    n_features: int | None = None
    flat: bool = False
    label_sets: bool = False
    n_labels: int | None = None
    vectorizer: dict[str, Any] | None = None
    structure: str | None = None
    featurizer: dict[str, Any] | None = None
    named: bool = False

    def metadata(self) -> dict[str, Any]:
        """A dict for JSON, without what is left at its default, under a key of its own."""
        kept = {f.name: f.default for f in fields(self)}
        own = {k: v for k, v in asdict(self).items() if k == "format" or v != kept[k]}
        return {"shell": own}

    @classmethod
    def of_model(cls, model: Any, path: str, format: str | None) -> Recipe:
        """The recipe saved with `model`, or a plain one for a model that Python code saved."""
        from structsolve.io import FORMATS, guess_format

        # What else the metadata hold is the user's.
        saved = (getattr(model, "metadata_", None) or {}).get("shell")
        saved = saved if isinstance(saved, dict) else {}
        known = {f.name for f in fields(cls)}
        recipe = cls(**{"format": "", **{k: v for k, v in saved.items() if k in known}})
        if not saved:
            structure = model.space_.structure
            recipe.flat = getattr(structure, "single_node", False)
            recipe.label_sets = getattr(structure, "label_sets", False)
            recipe.named = hasattr(structure, "hierarchy")
            recipe.n_labels = len(model.classes_) if recipe.label_sets else None
        if format is None and path.endswith(FORMATS["npz"] + FORMATS["svmlight"]):
            format = guess_format(path)
        found = format or recipe.format or guess_format(path)
        if found == "npz" and format is None and path != "-":  # whose ending says something else
            raise ValueError(
                f"{path}: this model was trained on npz data, and the ending is another; give "
                "--format npz, or that of the file"
            )
        if found != recipe.format and {found, recipe.format} & {"conll", "crfsuite", "conllu"}:
            trained = f"{recipe.format} data" if recipe.format else "arrays, from Python"
            raise ValueError(
                f"{path}: found {found} data; this model was trained on {trained}, and knows no "
                "names of features to match"
            )
        recipe.format = found
        if recipe.n_features is None:
            recipe.n_features = getattr(model, "n_features_in_", None)
        return recipe

    def fit(self, path: str) -> Data:
        """Read training data; learns the number of columns and the names of features."""
        data = self._read(path, fit=True)
        if data.y is None:
            raise ValueError(f"{path}: found no labels; expected an array y")
        return self._flatten(data)

    def read(self, path: str) -> Data:
        """Read data for a fitted model, with or without labels."""
        return self._flatten(self._read(path, fit=False))

    def _read(self, path: str, fit: bool) -> Data:
        from structsolve.io import read_examples

        if self.format == "conll":
            return self._conll(path, fit)
        if self.format == "conllu":
            return self._conllu(path, fit)
        if self.format == "crfsuite":
            from structsolve.io.crfsuite import read_crfsuite

            X, y, weights = read_crfsuite(path, return_weights=True)
            return Data(self._vectorize(X, fit), y, weights)
        if self.format == "svmlight" and self.label_sets:
            return self._label_sets(path, fit)
        if self.format == "svmlight":
            X, y = read_examples(
                path, "svmlight", n_features=self.n_features, zero_based=self.zero_based
            )
            if fit:
                self.n_features = (X[0] if isinstance(X, list) else X).shape[1]
            return Data(X, y)
        return Data(*read_examples(path, self.format))

    def _conllu(self, path: str, fit: bool) -> Data:
        """Read trees; the structure's own featurizer makes arcs of their words."""
        from structsolve import get_structure
        from structsolve.io.conllu import read_conllu

        sentences, heads = read_conllu(path)
        structure: Any = get_structure(self.structure) if self.structure else None
        if getattr(structure, "file_format", None) != "conllu":
            raise ValueError(
                f"{path}: conllu data are sentences with trees; found structure "
                f"{self.structure!r}, expected one for them, such as {_structures_for('conllu')}"
            )
        featurizer = structure.make_featurizer(**(self.featurizer or {}))
        if fit:
            self.featurizer = featurizer.fit(sentences).get_state()
        return Data(featurizer.transform(sentences), heads, sentences=sentences)

    def _label_sets(self, path: str, fit: bool) -> Data:
        """Read labels between commas, which are numbers of columns of an indicator matrix."""
        from structsolve.io.svmlight import read_svmlight

        X, sets = read_svmlight(
            path,
            n_features=self.n_features,
            zero_based=self.zero_based,
            multilabel=True,
            sequences=False,
        )
        numbers = np.array([label for labels in sets for label in labels])
        rows = np.repeat(np.arange(len(sets)), [len(labels) for labels in sets])
        if self.named:  # they are names of a hierarchy's nodes
            if fit:
                self.n_features = X.shape[1]
            if (numbers != np.rint(numbers)).any():
                at = int(np.argmax(numbers != np.rint(numbers)))
                raise ValueError(
                    f"{path}, example {rows[at]}: found the label {numbers[at]:g}; expected "
                    "integers, names of nodes"
                )
            return Data(X, [[int(label) for label in labels] for labels in sets])
        if fit:
            self.n_features = X.shape[1]
            self.n_labels = int(numbers.max(initial=0)) + 1
        assert self.n_labels is not None
        known = (numbers >= 0) & (numbers < self.n_labels) & (numbers == np.rint(numbers))
        if not known.all():
            at = int(np.argmin(known))
            raise ValueError(
                f"{path}, example {rows[at]}: found the label {numbers[at]:g}; expected integers "
                f"0 to {self.n_labels - 1}"
            )
        y = np.zeros((len(sets), self.n_labels), dtype=np.int64)
        y[rows, numbers.astype(np.int64)] = 1
        return Data(X, y)

    def _conll(self, path: str, fit: bool) -> Data:
        from structsolve.io.conll import read_conll, split_labels

        sentences, _ = read_conll(path, label_column=None, comment=self.comment)
        width = len(sentences[0][0])
        if fit:
            self.columns = width - 1
            if not -width <= self.label_column < width or width < 2:
                raise ValueError(
                    f"{path}: found {width} columns; expected a word and a label in column "
                    f"{self.label_column}"
                )
        assert self.columns is not None
        if width not in (self.columns, self.columns + 1):
            raise ValueError(
                f"{path}: found {width} columns; expected {self.columns} as in training, or "
                f"{self.columns + 1} with labels"
            )
        y = None
        rows = [[list(row) for row in rows] for rows in sentences]
        if width > self.columns:
            y = split_labels(sentences, self.label_column)
        return Data(self._vectorize(map(self._features, sentences), fit), y, rows=rows)

    def _features(self, sentence: list[list[str]]) -> list[Any]:
        from structsolve.features.token_features import conll_features
        from structsolve.io.crfsuite import parse_attribute

        if self.features == "template":
            return conll_features(sentence, self.window)
        if self.features == "columns":
            return [["bias", *(f"c{c}={value}" for c, value in enumerate(row))] for row in sentence]
        return [[parse_attribute(field) for field in row] for row in sentence]

    def _vectorize(self, X: Any, fit: bool) -> list[Any]:
        from structsolve.features.vectorizer import SequenceVectorizer

        if not fit:
            assert self.vectorizer is not None
            return SequenceVectorizer.from_feature_names(self.vectorizer["features"]).transform(X)
        vectorizer = SequenceVectorizer()
        rows = vectorizer.fit_transform(X)
        self.vectorizer = {"features": vectorizer.get_feature_names_out().tolist()}
        return rows

    def _flatten(self, data: Data) -> Data:
        if not self.flat or not data.sequences or isinstance(data.X[0], tuple):
            return data
        from scipy import sparse

        data.lengths = [x.shape[0] for x in data.X]
        if data.weights is not None:
            data.weights = np.repeat(data.weights, data.lengths).tolist()
        data.X = (sparse.vstack if sparse.issparse(data.X[0]) else np.concatenate)(data.X)
        data.y = None if data.y is None else np.concatenate(data.y)
        return data
