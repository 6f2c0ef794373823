"""Files of pipelines: steps of scikit-learn and of this package with their models, no pickle.

A file holds a tree of JSON values.  What JSON lacks is a dict of one key, its tag: ``array``,
``object`` and so on.  Objects are those of classes listed here or public transformers of the
package; estimators write and read themselves, by ``save`` and ``from_file``.  Nothing else is
imported, and no method of a file's choice is called.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .. import registry
from ..utils import container
from ..utils.arrays import part_of
from ..utils.sparse import refuse_broken
from .codec import TRANSIENT

#: Classes of scikit-learn that files may hold: their transforms check what they compute with.
KNOWN = {
    "sklearn.compose": "ColumnTransformer make_column_selector",
    "sklearn.decomposition": "IncrementalPCA PCA TruncatedSVD",
    "sklearn.feature_extraction": "DictVectorizer FeatureHasher",
    "sklearn.feature_extraction.text": (
        "CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer"
    ),
    "sklearn.feature_selection": (
        "RFE RFECV SelectFromModel SelectKBest SelectPercentile VarianceThreshold"
    ),
    "sklearn.impute": "MissingIndicator SimpleImputer",
    "sklearn.kernel_approximation": "Nystroem RBFSampler",
    # Models that choose features, and ends of pipelines.
    "sklearn.linear_model": (
        "ElasticNet Lasso LassoCV LinearRegression LogisticRegression Ridge RidgeClassifier"
    ),
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": (
        "Binarizer FunctionTransformer KBinsDiscretizer LabelBinarizer LabelEncoder MaxAbsScaler "
        "MinMaxScaler MultiLabelBinarizer Normalizer OneHotEncoder OrdinalEncoder "
        "PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler StandardScaler"
    ),
    "sklearn.random_projection": "GaussianRandomProjection SparseRandomProjection",
    "sklearn.svm": "LinearSVC LinearSVR",
}
_SCORES = "chi2 f_classif f_regression mutual_info_classif mutual_info_regression"
#: Of the process or of training, not of the file: they get the constructor's defaults.
_LEFT_OUT = (*TRANSIENT, "_sklearn_version", "_metadata_request")
#: Parameters by which a file could reach other files.
_FIXED = {"memory": None, "input": "content"}
_DTYPE = re.compile(r"[<>|=]?[biufSUO]\d{0,4}")
# Types of columns; an abstract one of NumPy has no dtype.
_ABSTRACT = (np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating)
_TYPES = {kind.__name__: kind for kind in (bool, int, float, str, object, *_ABSTRACT)}
_SPARSE = ("csr_matrix", "csr_array", "csc_matrix", "csc_array")
_ELSE = "save this pipeline by joblib or skops instead"


def save(pipeline: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted pipeline to one file, atomically; :func:`structsolve.load` reads it.

    The file holds numbers, text and arrays, no pickle.  Its steps may be pipelines, unions and
    column transformers of vectorizers, scalers, encoders and projections of scikit-learn
    (``structsolve.estimators.pipelines.KNOWN`` lists them), of transformers of this package, and
    of estimators with ``save`` and ``from_file``, ours or a plugin's.

    Parameters
    ----------
    pipeline : Pipeline, transformer or estimator
        Fitted.  For an estimator of this package it is the same as its ``save(path)``.
    path : path

    Raises
    ------
    ValueError
        For what only pickle could save; the message names the step, and what to do.

    Examples
    --------
    >>> import os, tempfile
    >>> import structsolve
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), structsolve.StructuredSVM("multiclass"))
    >>> _ = model.fit([[0.0], [1.0]], ["no", "yes"])
    >>> path = os.path.join(tempfile.mkdtemp(), "pipeline.structsolve")
    >>> structsolve.save(model, path)
    >>> structsolve.load(path).predict([[1.0]]).tolist()
    ['yes']
    """
    if _saves_itself(pipeline):
        pipeline.save(path)
        return
    writer = _Writer()
    tree = writer.object(pipeline, type(pipeline).__name__)
    check_is_fitted(pipeline)
    meta = {"pipeline": tree, "models": writer.models, "sklearn": sklearn.__version__}
    container.write(path, "model", meta, writer.arrays)


def restore(
    meta: dict[str, Any], arrays: dict[str, np.ndarray], model_of: Callable[..., Any]
) -> Any:
    """Return the pipeline of a file that :func:`save` wrote.

    Parameters
    ----------
    meta, arrays : dict
        Contents of the file.
    model_of : callable
        From the meta and arrays of an estimator's own file to the estimator.

    Returns
    -------
    Pipeline or transformer

    Warns
    -----
    UserWarning
        If another version of scikit-learn wrote the file.

    Raises
    ------
    ValueError
        For classes that are not listed, and values that do not fit.
    """
    if meta["sklearn"] != sklearn.__version__:
        warnings.warn(
            f"the file was written with scikit-learn {meta['sklearn']}, this is "
            f"{sklearn.__version__}: compare some predictions, then save it again",
            stacklevel=3,
        )
    return _Reader(meta["models"], arrays, model_of).value(meta["pipeline"])


def _saves_itself(value: Any) -> bool:
    return callable(getattr(type(value), "save", None)) and hasattr(type(value), "from_file")


def _package() -> Any:
    return importlib.import_module(__name__.partition(".")[0])


def _path_of(kind: type) -> str | None:
    """Return the public path of a class that files may hold."""
    name, package = kind.__name__, _package()
    if name in package.__all__ and getattr(package, name) is kind:
        return f"{package.__name__}:{name}"
    for module, names in KNOWN.items():
        listed = name in names.split() and kind.__module__.startswith("sklearn.")
        if listed and getattr(importlib.import_module(module), name, None) is kind:
            return f"{module}:{name}"
    return None


def _class_at(path: str) -> Any:
    module, _, name = path.partition(":")
    package = _package()
    kind = None
    if module == package.__name__ and name in package.__all__:
        kind = getattr(package, name)
        if not (isinstance(kind, type) and issubclass(kind, TransformerMixin)):
            kind = None
    elif name in KNOWN.get(module, "").split():
        kind = getattr(importlib.import_module(module), name, None)
    if kind is None:
        raise ValueError(f"it holds {path!r}, which is no class that files may hold")
    return kind


def _function_at(path: str) -> Any:
    """Return a ufunc of NumPy, or a score or importances of features."""
    module, _, name = path.partition(":")
    if module == "numpy" and isinstance(getattr(np, name, None), np.ufunc):
        return getattr(np, name)
    known = name in _SCORES.split() and module == "sklearn.feature_selection"
    if known or path == "structsolve.features.importances:feature_importances":
        return getattr(importlib.import_module(module), name)
    raise ValueError(f"it holds {path!r}, which is no function that files may hold")


class _Writer:
    """Values as JSON, their arrays, and the files of models, by number."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.models: list[dict[str, Any]] = []

    def value(self, value: Any, place: str) -> Any:
        """Return a parameter or a fitted attribute; ``place`` says where it is, for errors."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return None
        if kind in (list, tuple, set, frozenset):
            # Names of steps come before them, in pairs.
            named = kind is tuple and len(value) > 1 and isinstance(value[0], str)
            within = f"step {value[0]!r} of {place}" if named else place
            ordered = value if kind in (list, tuple) else sorted(value, key=repr)
            items = [self.value(one, within) for one in ordered]
            return items if kind is list else {kind.__name__: items}
        if kind is slice:
            return {"slice": [value.start, value.stop, value.step]}
        if kind is dict and all(type(key) is str for key in value):
            return {"dict": {key: self.value(one, place) for key, one in value.items()}}
        if isinstance(value, dict):
            items = [[self.value(k, place), self.value(v, place)] for k, v in value.items()]
            return {"items": items}
        if hasattr(value, "to_numpy") and getattr(value, "ndim", 0) == 1:  # names of columns
            value = value.to_numpy()
        if isinstance(value, (np.ndarray, np.generic)):
            return self._numbers(value, place)
        if kind.__name__ in _SPARSE and kind.__module__.startswith("scipy."):
            parts = [self._stored(part) for part in (value.data, value.indices, value.indptr)]
            return {"sparse": [kind.__name__, [int(n) for n in value.shape], *parts]}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, type) and value in _TYPES.values():
            return {"type": value.__name__}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"type": np.dtype(value).str}
        estimator = isinstance(value, (BaseEstimator, TransformerMixin)) or _saves_itself(value)
        if estimator or _path_of(kind) is not None:
            return self.object(value, place)
        return self._function(value, place)

    def _stored(self, array: np.ndarray) -> int:
        number = len(self.arrays)
        # Products of another memory order may differ in their last bits.
        self.arrays[f"array{number}"] = np.copy(array, order="K")
        return number

    def _numbers(self, value: Any, place: str) -> Any:
        if value.dtype == object:
            items = [self.value(one, place) for one in value.ravel().tolist()]
            return {"objects": [list(value.shape), items]}
        if np.ma.isMaskedArray(value) or value.dtype.kind not in "biufSUmM":
            raise ValueError(f"{place} is an array of {value.dtype}: {_ELSE}")
        if isinstance(value, np.generic) and value.dtype.kind in "biufU" and value.itemsize <= 8:
            return {"scalar": [value.dtype.str, value.item()]}
        return {"array": [self._stored(value), isinstance(value, np.generic)]}

    def _function(self, value: Any, place: str) -> Any:
        name = getattr(value, "__name__", "")
        for module in ("numpy", "sklearn.feature_selection", "structsolve.features.importances"):
            try:
                if _function_at(f"{module}:{name}") is value:
                    return {"function": f"{module}:{name}"}
            except ValueError:
                continue
        raise ValueError(
            f"{place} is {value!r}, which cannot be saved without pickle: files hold functions of "
            f"NumPy only (np.log1p, ...). Do its work before the pipeline, or in a class with save "
            f"and from_file that a plugin declares (structsolve_estimators), or {_ELSE}"
        )

    def object(self, value: Any, place: str) -> Any:
        """Return a transformer or an estimator."""
        kind = type(value)
        if _saves_itself(value):
            return {"model": self._model(value, place)}
        path = _path_of(kind)
        if path is None:
            hint = f"{_ELSE}, or write a plugin's class with save and from_file"
            if hasattr(kind, "fit") and "refit" in inspect.signature(kind).parameters:
                hint = "save its best_estimator_ (in a pipeline, put that in its place)"
            raise ValueError(
                f"{place} is a {kind.__module__}.{kind.__qualname__}, which "
                f"structsolve.save does not know: {hint}"
            )
        given = value.__getstate__() if isinstance(value, BaseEstimator) else vars(value)
        state = {k: v for k, v in given.items() if k not in _LEFT_OUT}
        if "estimator_" in state and _saves_itself(state["estimator_"]):
            # Files of our models hold fitted ones only; training clones what it is given.
            state["estimator"] = state["estimator_"]
        for name, only in _FIXED.items():
            if state.pop(name, only) != only:
                raise ValueError(
                    f"{place}: {name} is {getattr(value, name)!r}, which files must not hold; "
                    f"set_params({name}={only!r}) before"
                )
        parts = {k: self.value(v, f"{k} of {place}") for k, v in state.items()}
        return {"object": [path, parts]}

    def _model(self, value: Any, place: str) -> int:
        """Return the number of an estimator's own file among the models."""
        number = len(self.models)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.structsolve")
            try:
                value.save(path)
                meta, arrays = container.read(path, "model")
                registry.default().class_of("estimators", meta["estimator"], meta.get("by", ""))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise ValueError(f"{place} ({type(value).__name__}): {error}") from error
        self.models.append(meta)
        self.arrays |= {f"model{number}_{name}": array for name, array in arrays.items()}
        return number


class _Reader:
    """The inverse of :class:`_Writer`, which trusts nothing."""

    def __init__(
        self,
        models: list[dict[str, Any]],
        arrays: dict[str, np.ndarray],
        model_of: Callable[..., Any],
    ) -> None:
        self.models, self.arrays, self.model_of = models, arrays, model_of

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if not isinstance(value, dict):
            return value
        ((tag, content),) = value.items()
        read = getattr(self, f"_read_{tag}", None)
        if read is None:
            raise ValueError(f"it holds a value of an unknown kind {tag!r}")
        return read(content)

    def _read_tuple(self, items: Any) -> Any:
        return tuple(self.value(items))

    def _read_set(self, items: Any) -> Any:
        return set(self.value(items))

    def _read_frozenset(self, items: Any) -> Any:
        return frozenset(self.value(items))

    def _read_slice(self, ends: Any) -> Any:
        start, stop, step = ends
        return slice(start, stop, step)

    def _read_dict(self, items: Any) -> Any:
        return {key: self.value(one) for key, one in items.items()}

    def _read_items(self, items: Any) -> Any:
        return {self.value(key): self.value(one) for key, one in items}

    def _read_array(self, content: Any) -> Any:
        number, alone = content
        array = self.arrays[f"array{number}"]
        return array[()] if alone else array

    def _read_objects(self, content: Any) -> Any:
        shape, items = content
        made = np.empty(len(items), dtype=object)
        for i, one in enumerate(items):
            made[i] = self.value(one)
        return made.reshape(shape)

    def _read_sparse(self, content: Any) -> Any:
        from scipy import sparse  # heavy

        name, (rows, columns), *numbers = content
        if name not in _SPARSE:
            raise ValueError(f"it holds a sparse matrix of an unknown kind {name!r}")
        data, indices, indptr = (self.arrays[f"array{number}"] for number in numbers)
        made = getattr(sparse, name)((data, indices, indptr), shape=(rows, columns))
        refuse_broken(made, "a matrix of the file")
        return made

    def _read_scalar(self, content: Any) -> Any:
        dtype, item = content
        return self._read_dtype(dtype).type(item)

    def _read_dtype(self, text: Any) -> Any:
        if not _DTYPE.fullmatch(text):
            raise ValueError(f"it holds the dtype {text!r}, which files must not")
        return np.dtype(text)

    def _read_type(self, text: Any) -> Any:
        return _TYPES[text] if text in _TYPES else self._read_dtype(text).type

    def _read_function(self, path: Any) -> Any:
        return _function_at(path)

    def _read_model(self, number: Any) -> Any:
        return self.model_of(self.models[number], part_of(self.arrays, f"model{number}_"))

    def _read_object(self, content: Any) -> Any:
        path, parts = content
        kind = _class_at(path)
        state = {}
        for name, default in _parameters(kind).items():
            if name not in parts:
                if default is inspect.Parameter.empty:
                    raise ValueError(f"{kind.__name__}: found no {name}")
                state[name] = default
        for name, one in parts.items():
            if name in (*_LEFT_OUT, *_FIXED) or callable(getattr(kind, name, None)):
                raise ValueError(f"{kind.__name__}: it sets {name!r}, which files must not")
            state[name] = self.value(one)
        made = kind.__new__(kind)
        made.__dict__.update(state)
        if hasattr(kind, "_parameter_constraints"):
            made._validate_params()
        if "vocabulary_" in state:
            _check_vocabulary(made)
        return made


def _parameters(kind: Any) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(kind).parameters.items()}


def _check_vocabulary(made: Any) -> None:
    """Refuse columns of words that are not 0, 1, ...: compiled code takes them as they are."""
    columns = np.array(list(made.vocabulary_.values()))
    known = columns.dtype.kind == "i" or not columns.size
    if not known or not np.array_equal(np.sort(columns), np.arange(len(columns))):
        raise ValueError(
            f"{type(made).__name__}: the columns of its vocabulary are not 0 to {len(columns) - 1}"
        )
