# Reads files into X and y for the shell, and stores the settings with the model.
from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from structsolve.cli.formats import guess, parameters, read_with_plugin, reads, settings
from structsolve.cli.missing import fill_values, filled
from structsolve.cli.steps import Steps
from structsolve.io import FORMATS, guess_format
from structsolve.io.select import parse_rows
from structsolve.io.svmlight import read_svmlight
from structsolve.structure.pack import structure_of
from structsolve.utils.arrays import n_rows


@dataclass
class Data:
    """Contents of a file: `X` in the model's form, `y`, and how tokens form sequences.

    Parameters
    ----------
    X : matrix, or list of them
    y : array or list, or None
        None if the file has no labels.
    weights : list of float, optional
        Weights of the examples.
    lengths : list of int, optional
        Lengths of sequences that a flat model gets as one matrix.
    reader : Reader, optional
        A plugin's, which has read the file.
    """

    X: Any
    y: Any
    weights: list[float] | None = None
    lengths: list[int] | None = None
    reader: Any = None

    @property
    def sequences(self) -> bool:
        """Whether an example is a sequence or a sentence."""
        return not hasattr(self.X, "shape")

    def split(self, flat: Sequence[Any]) -> list[Sequence[Any]]:
        """Split the predictions of a flat model into sequences.

        Parameters
        ----------
        flat : sequence
            One entry per token.

        Returns
        -------
        list of sequences
        """
        if self.lengths is None:
            return [flat]
        ends = np.cumsum(self.lengths).tolist()
        return [flat[end - n : end] for end, n in zip(ends, self.lengths, strict=True)]


@dataclass
class Recipe:
    """The settings that read a file, saved as the model's metadata.

    Parameters
    ----------
    format : str
    zero_based, n_features
        Settings for svmlight data, see `read_svmlight`.
    flat : bool
        Whether the model gets tokens, not sequences.
    label_sets, n_labels
        Whether labels are sets, and their number.
    named : bool
        Whether labels are names of a hierarchy's nodes.
    reader : dict, optional
        Parameters of the reader, for formats of plugins.
    pictures : bool
        Whether examples are pictures.
    missing : {"mean", "zero"}, optional
        Replacement for missing features: the means of columns in training, or 0.
    fill : list of float, optional
        The replacement values.
    selecting : dict, optional
        Parameters of readers that select examples of a file; not saved.
    steps : Steps, optional
        Steps of a pipeline before its model; not saved.
    """

    format: str
    zero_based: bool = False
    n_features: int | None = None
    flat: bool = False
    label_sets: bool = False
    n_labels: int | None = None
    named: bool = False
    reader: dict[str, Any] | None = None
    pictures: bool = False
    missing: str | None = None
    fill: list[float] | None = None
    selecting: dict[str, Any] | None = None
    steps: Steps | None = None

    def metadata(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, for JSON.

        Returns
        -------
        dict
            With the single key ``shell``.
        """
        kept = {f.name: f.default for f in fields(self)}
        own = {k: v for k, v in asdict(self).items() if k == "format" or v != kept[k]}
        own = {k: v for k, v in own.items() if k not in ("selecting", "steps")}
        return {"shell": own}

    @classmethod
    def of_model(
        cls,
        model: Any,
        path: str,
        format: str | None,
        given: dict[str, Any] | None = None,
        steps: Steps | None = None,
    ) -> Recipe:
        """Return the recipe saved with a model, or a default one for models saved by Python code.

        Parameters
        ----------
        model : estimator
            Fitted.
        path : str
            The file to read.
        format : str or None
            None: guess it.
        given : dict, optional
            Parameters of the reader, which replace those of training.
        steps : Steps, optional
            Of the pipeline that the model ends.

        Returns
        -------
        Recipe

        Raises
        ------
        ValueError
            For a format that does not fit the model.
        """
        # The rest of the metadata is the user's.
        saved = (getattr(model, "metadata_", None) or {}).get("shell")
        saved = saved if isinstance(saved, dict) else {}
        known = {f.name for f in fields(cls)}
        recipe = cls(**{"format": "", **{k: v for k, v in saved.items() if k in known}})
        if not saved:
            structure = structure_of(model)
            recipe.flat = getattr(structure, "single_node", False)
            recipe.label_sets = getattr(structure, "label_sets", False)
            recipe.named = hasattr(structure, "hierarchy")
            recipe.pictures = getattr(structure, "label_axes", 1) == 2
            recipe.n_labels = len(model.classes_) if recipe.label_sets else None
        # Endings that no other format has, whatever the model was trained on.
        if format is None and path.endswith((*FORMATS["npz"], *FORMATS["svmlight"], ".ndjson")):
            format = guess_format(path)
        chosen = format or recipe.format or guess(path)
        if chosen == "npz" and format is None and path != "-":  # not the ending of npz
            raise ValueError(
                f"{path}: this model was trained on npz data, but the ending is another; give "
                "--format npz, or the file's format"
            )
        factory = reads(chosen)
        named = [getattr(one, "named_features", False) for one in (factory, reads(recipe.format))]
        if chosen != recipe.format and any(named) and not hasattr(steps and factory, "raw"):
            trained = f"{recipe.format} data" if recipe.format else "arrays, from Python"
            raise ValueError(
                f"{path}: found {chosen} data; this model was trained on {trained}, and has no "
                "names of features to match"
            )
        # Parameters that a reader learned apply to the files that it reads.
        kept = recipe.reader if chosen == recipe.format else None
        if kept is None and chosen == recipe.format and factory is not None:
            # Earlier releases saved the parameters of some readers beside the others.
            kept = {name: saved[name] for name in parameters(factory) if name in saved}
        if not saved:
            kept = _known_names(factory, steps.first if steps else model, model, recipe)
        recipe.format = chosen
        recipe.reader, recipe.selecting = settings(chosen, given, kept)
        recipe.steps = steps
        if recipe.n_features is None:
            recipe.n_features = getattr(steps.first if steps else model, "n_features_in_", None)
        return recipe

    def fit(self, path: str, labelled: bool = True) -> Data:
        """Read training data; learn the number of columns and the names of features.

        Parameters
        ----------
        path : str
        labelled : bool, default=True
            Refuse files without labels.

        Returns
        -------
        Data

        Raises
        ------
        ValueError
            For malformed files and for files without labels.
        """
        data = self._read(path, fit=True)
        if data.y is None and labelled:
            raise ValueError(f"{path}: found no labels; expected some to learn from")
        self.fill = fill_values(data.X, self.missing)
        data.X = filled(path, data.X, self.fill)
        return self._flatten(data)

    def read(self, path: str) -> Data:
        """Read data for a fitted model, with or without labels.

        Parameters
        ----------
        path : str

        Returns
        -------
        Data

        Raises
        ------
        ValueError
            For malformed files, and columns or labels other than in training.
        """
        data = self._read(path, fit=False)
        data.X = data.X if self.steps is None else self.steps.transform(data, path)
        data.X = filled(path, data.X, self.fill)
        return self._flatten(data)

    def _read(self, path: str, fit: bool) -> Data:
        if self.format != "svmlight":
            params = {**(self.reader or {}), **(self.selecting or {})}
            X, y, reader, learned = read_with_plugin(self.format, params, path, fit, self.steps)
            self.reader = learned if fit else self.reader
            self._check_pictures(path, X)
            return Data(X, y, getattr(reader, "weights", None), reader=reader)
        rows = (self.selecting or {}).get("rows")
        data = self._svmlight(path, fit, parse_rows(rows))
        if rows and not n_rows(data.X):
            raise ValueError(f"{path}: found no examples left by rows={rows}")
        return data

    def _check_pictures(self, path: str, X: Any) -> None:
        if self.pictures and self.format == "npz" and not isinstance(X, list):
            raise ValueError(
                f"{path}: `shapes` is missing, the height and width of each picture; write the "
                "file by structsolve.io.npz.write_npz"
            )

    def _svmlight(self, path: str, fit: bool, rows: slice) -> Data:
        if self.label_sets:
            return self._label_sets(path, fit, rows)
        X, y = read_svmlight(path, n_features=self.n_features, zero_based=self.zero_based)
        X, y = X[rows], None if y is None else y[rows]
        if fit:
            self.n_features = (X[0] if isinstance(X, list) else X).shape[1]
        return Data(X, y)

    def _label_sets(self, path: str, fit: bool, chosen: slice) -> Data:
        """Read comma-separated labels: column numbers of an indicator matrix."""
        X, sets = read_svmlight(
            path,
            n_features=self.n_features,
            zero_based=self.zero_based,
            multilabel=True,
            sequences=False,
        )
        X, sets = X[chosen], sets[chosen]
        numbers = np.array([label for labels in sets for label in labels])
        rows = np.repeat(np.arange(len(sets)), [len(labels) for labels in sets])
        if fit:
            self.n_features = X.shape[1]
            self.n_labels = None if self.named else int(numbers.max(initial=0)) + 1
        known, expected = numbers == np.rint(numbers), "integers, names of nodes"
        if not self.named and self.n_labels is not None:
            known &= (numbers >= 0) & (numbers < self.n_labels)
            expected = f"integers 0 to {self.n_labels - 1}"
        if not known.all():
            wrong = int(np.argmin(known))
            raise ValueError(
                f"{path}, example {rows[wrong]}: found the label {numbers[wrong]:g}; expected "
                f"{expected}"
            )
        if self.named:  # labels are names of a hierarchy's nodes
            return Data(X, [[int(label) for label in labels] for labels in sets])
        assert self.n_labels is not None
        y = np.zeros((len(sets), self.n_labels), dtype=np.int64)
        y[rows, numbers.astype(np.int64)] = 1
        return Data(X, y)

    def _flatten(self, data: Data) -> Data:
        if not self.flat or not data.sequences or any(getattr(x, "ndim", 0) != 2 for x in data.X):
            return data
        data.lengths = [x.shape[0] for x in data.X]
        if data.weights is not None:
            data.weights = np.repeat(data.weights, data.lengths).tolist()
        data.X = (sparse.vstack if sparse.issparse(data.X[0]) else np.concatenate)(data.X)
        data.y = None if data.y is None else np.concatenate(data.y)
        return data


def _known_names(factory: Any, first: Any, model: Any, recipe: Recipe) -> dict[str, Any]:
    """Parameters of a reader by the names of features and labels of a model from Python."""
    # Not every command reads tables.
    from structsolve.io.tables import TableReader

    features = getattr(first, "feature_names_in_", None)
    columns = getattr(getattr(model, "space_", None), "label_columns", None)
    labels = np.asarray(getattr(model, "classes_", ()) if columns is None else columns)
    kept: dict[str, Any] = {}
    if features is not None and factory is TableReader:
        kept["columns"] = [[name, None] for name in features.tolist()]
    takes = parameters(factory)
    if features is not None and "feature_names" in takes:
        kept["feature_names"] = features.tolist()
    if kept:  # columns go by these names, which the arrays of the reader lack
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
    sets = "hierarchy" in takes and recipe.label_sets and not recipe.named
    if labels.dtype.kind == "U" and (sets or factory is TableReader):
        kept["labels"] = labels.tolist()
    return kept
