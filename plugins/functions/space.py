"""A structure defined by three plain functions, as in SVM-struct."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from structsolve.examples.given import check_lengths, is_sparse
from structsolve.examples.packed import Examples
from structsolve.plugins.functions.label_table import LabelTable, called
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure
from structsolve.utils.sparse import as_csr
from structsolve.utils.suggest import a_type


class FunctionStructure(Structure):
    """Any inputs and any labels, described by ``features``, ``oracle`` and ``loss``.

    Parameters
    ----------
    features : callable ``(x, y) -> vector``
        Joint feature vector: an array of shape (dim,), or a sparse matrix of one row or column.
    oracle : callable ``(w, x, y=None) -> label``
        With ``y`` (the true label, in training): a label that maximises
        ``loss(y, label) + w @ features(x, label)``. Without it: a label that maximises
        ``w @ features(x, label)``. ``w`` is a read-only array of shape (dim,).
    loss : callable ``(y_true, y_pred) -> float``
        At least 0, and 0 for the truth. The estimator's ``loss`` stays at its default.
    key : callable ``label -> hashable``, optional
        Equal for equal labels; identifies labels seen before. By default hashable labels are their
        own key, and the key of arrays, lists, sets and dicts is their contents.
    dim : int, optional
        Length of the feature vectors, checked; by default as in the first example.

    Notes
    -----
    X and y are lists of any objects. Training minimises
    ``alpha/2 ||w||^2 + mean_i max_y [loss(y_i, y) + w @ (features(x_i, y) - features(x_i, y_i))]``,
    and SVM-struct's ``C`` is ``alpha = 1 / C``. Distinct labels from the oracle are kept as long as
    their data. A fitted model predicts, but cannot be saved, since files without pickle cannot hold
    functions. Save ``coef_["weights"]`` instead.

    To check an oracle against brute force, define the methods ``sample`` and ``labels(x)`` (all
    labels of x) in a subclass, and pass it to :func:`structsolve.testing.check_structure`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import FunctionStructure, StructuredSVM
    >>> def features(x, y):                    # one copy of x per class
    ...     return np.outer(np.arange(3) == y, x).ravel()
    >>> def loss(y_true, y_pred):
    ...     return float(y_true != y_pred)
    >>> def oracle(w, x, y=None):
    ...     return max(range(3), key=lambda c: w @ features(x, c) + (y is not None and y != c))
    >>> X, Y = np.eye(3), [2, 0, 1]
    >>> model = StructuredSVM(FunctionStructure(features, oracle, loss), alpha=0.01).fit(X, Y)
    >>> model.predict(X)
    [2, 0, 1]
    >>> model.coef_["weights"].shape
    (9,)
    """

    name = "functions"

    def __init__(
        self,
        features: Callable[[Any, Any], Any],
        oracle: Callable[..., Any],
        loss: Callable[[Any, Any], float],
        key: Callable[[Any], Any] | None = None,
        dim: int | None = None,
    ):
        self.features = features
        self.oracle = oracle
        self.loss = loss
        self.key = key
        self.dim = dim

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[FunctionSpace, Examples]:
        """Check the functions on the first example, and pack the data.

        See :meth:`structsolve.Structure.make_space`. ``classes`` and ``fit_intercept`` are ignored.

        Raises
        ------
        TypeError
            If an argument of the structure is no function.
        ValueError
            If ``dim`` or the data does not fit; the message names the example.
        """
        for what in ("features", "oracle", "loss", "key"):
            given = getattr(self, what)
            if not callable(given) and (what != "key" or given is not None):
                raise TypeError(f"FunctionStructure: {what} is {given!r}, expected a callable")
        if self.dim is not None and (not isinstance(self.dim, (int, np.integer)) or self.dim < 1):
            raise ValueError(f"FunctionStructure: dim is {self.dim!r}, expected an integer >= 1")
        objects, labels = _pairs(X, Y)
        vector = called("features(x, y)", 0, self.features, objects[0], labels[0])
        if not is_sparse(vector) and np.ndim(vector) != 1:
            raise ValueError(
                f"example 0: features(x, y) returned {a_type(vector)} of shape "
                f"{np.shape(vector)}, expected one vector: an array of shape (dim,), or a sparse "
                "row or column"
            )
        dim = int(np.prod(vector.shape if is_sparse(vector) else np.shape(vector)))
        if dim < 1 or self.dim not in (None, dim):
            raise ValueError(
                f"example 0: features(x, y) returned {dim} numbers, expected "
                f"{'at least one' if self.dim is None else f'dim={self.dim}'}"
            )
        space = FunctionSpace(self, dim)
        examples = space._examples(objects, labels)
        # Training may never compute the loss of a true label, which is 0 by definition.
        space._loss(examples, 0, (examples.labels[0], examples.labels[0]))
        return space, examples

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> FunctionSpace:
        """Raise ValueError: functions cannot be saved."""
        raise ValueError(_NOT_SAVED)


_NOT_SAVED = (
    "structure 'functions' consists of Python functions, which cannot be saved without pickle; "
    'save model.coef_["weights"] (numpy.save) and keep the functions in your code'
)


class FunctionSpace(Space):
    """The space of a :class:`FunctionStructure`.

    An encoded label is the number of an object in a table of the examples.

    Parameters
    ----------
    structure : FunctionStructure
    dim : int
        Length of the feature vectors.
    """

    loss_names = ("hamming", "functions")
    loss_averaged = True
    can_be_saved = False
    structure: FunctionStructure

    def __init__(self, structure: FunctionStructure, dim: int):
        super().__init__(structure, WeightLayout([Block("weights", "shared", (dim,))], 0))
        self.dim = dim
        self._warned = False

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Pack lists of objects; see :meth:`Space.pack`."""
        objects, labels = (_objects(X, "X"), None) if Y is None else _pairs(X, Y)
        examples = self._examples(objects, labels)
        return examples

    def _examples(self, objects: list[Any], labels: list[Any] | None) -> Examples:
        """Pack objects with their labels, as numbers in a new table."""
        table = LabelTable(self.structure.key)
        examples = Examples(
            np.arange(len(objects) + 1, dtype=np.int64),
            # The identity distinguishes cuts of different sets of objects.
            topology={
                "objects": objects,
                "table": table,
                "memo": threading.local(),
                "identity": f"functions {id(table)}",
            },
        )
        if labels is not None:
            numbers = [table.number(y, i) for i, y in enumerate(labels)]
            examples.labels = np.array(numbers, dtype=np.int32)
        return examples

    def unpack(self, flat: np.ndarray, examples: Examples) -> list[Any]:
        """Return the label objects of numbers."""
        return [examples.topology["table"].objects[number] for number in flat]

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> Any:
        """Return the label object of a number."""
        return examples.topology["table"].objects[label[0]]

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Raise ValueError: functions cannot be saved."""
        raise ValueError(_NOT_SAVED)

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return the numbers of all labels, by the structure's method ``labels(x)``."""
        labels = getattr(self.structure, "labels", None)
        if labels is None:
            raise NotImplementedError(
                "FunctionStructure cannot list all labels; subclass it with a method labels(x)"
            )
        table = examples.topology["table"]
        numbers = [[table.number(y, i)] for y in labels(examples.topology["objects"][i])]
        return np.array(numbers, dtype=np.int32)

    # -- methods for the adapters ------------------------------------------------------------------

    def argmax(self, examples: Examples, i: int, theta: dict[str, np.ndarray]) -> list[int]:
        """Return the number of the oracle's label.

        Parameters
        ----------
        examples : Examples
        i : int
        theta : dict of str to ndarray

        Returns
        -------
        list of int
        """
        x = examples.topology["objects"][i]
        y = called("oracle(w, x)", i, self.structure.oracle, theta["weights"], x)
        return [self._number(examples, i, y)]

    def argmax_augmented(
        self, examples: Examples, i: int, theta: dict[str, np.ndarray], truth: np.ndarray
    ) -> np.ndarray:
        """Return the number of the loss-augmented oracle's label; warn if the truth is better.

        Parameters
        ----------
        examples : Examples
        i : int
        theta : dict of str to ndarray
        truth : ndarray of int32

        Returns
        -------
        ndarray of shape (1,)
        """
        w, x = theta["weights"], examples.topology["objects"][i]
        y = called(
            "oracle(w, x, y)", i, self.structure.oracle, w, x, self.unpack(truth, examples)[0]
        )
        answer = np.array([self._number(examples, i, y)])
        if not self._warned:
            value = self.loss(examples, i, truth, answer)
            value += self._score(examples, i, w, answer)
            least = self._score(examples, i, w, truth)
            if value < least - 1e-6 * (1 + abs(least)):
                self._warned = True
                warnings.warn(
                    f"example {i}: oracle(w, x, y) returned a label with loss + w @ features = "
                    f"{value:.6g}, less than the true label's {least:.6g}; an oracle that misses "
                    "the maximum makes the duality gap no certificate",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return answer

    def parts(self, examples: Examples, i: int, label: np.ndarray) -> dict[str, Any]:
        """Return the joint feature vector of a label, as indices and values.

        Parameters
        ----------
        examples : Examples
        i : int
        label : ndarray of int32

        Returns
        -------
        dict of str to tuple of ndarray
        """
        kind = "answer"
        if examples.labels is not None and label[0] == examples.label(i)[0]:
            kind = "truth"
        return {"weights": _remember(examples, kind, i, label[0], self._features)}

    def loss(self, examples: Examples, i: int, truth: np.ndarray, label: np.ndarray) -> float:
        """Return the loss of a label.

        Parameters
        ----------
        examples : Examples
        i : int
        truth, label : ndarray of int32

        Returns
        -------
        float
        """
        return _remember(examples, "loss", i, (int(truth[0]), int(label[0])), self._loss)

    def _number(self, examples: Examples, i: int, y: Any) -> int:
        if y is None:
            raise ValueError(f"example {i}: oracle returned None, expected a label")
        return examples.topology["table"].number(y, i)

    def _score(self, examples: Examples, i: int, w: np.ndarray, label: np.ndarray) -> float:
        index, values = self.parts(examples, i, label)["weights"]
        return float(w[index] @ values)

    def _loss(self, examples: Examples, i: int, numbers: tuple[int, int]) -> float:
        truth, y = self.unpack(np.array(numbers), examples)
        value = called("loss(y_true, y_pred)", i, self.structure.loss, truth, y)
        try:
            loss = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"example {i}: loss(y_true, y_pred) returned {value!r}, expected a number"
            ) from None
        # Losses such as 1 - F1 deviate from 0 by rounding.
        if loss < -1e-9 or (numbers[0] == numbers[1] and loss > 1e-9):
            of = "the true label" if numbers[0] == numbers[1] else "a label"
            raise ValueError(
                f"example {i}: loss(y_true, y_pred) returned {loss:g} for {of}, expected at least "
                "0, and 0 for the true label"
            )
        return loss

    def _features(self, examples: Examples, i: int, number: int) -> tuple[Any, Any]:
        x, y = examples.topology["objects"][i], examples.topology["table"].objects[number]
        vector = called("features(x, y)", i, self.structure.features, x, y)
        if is_sparse(vector):
            coo = vector.tocoo()
            coo.sum_duplicates()
            # Either the rows or the columns are all zeros.
            shape, index = vector.shape, np.sum(coo.coords, axis=0, dtype=np.int64)
            values = np.asarray(coo.data, dtype=np.float64)
            fits = sorted(shape) in ([self.dim], sorted([1, self.dim]))
        else:
            try:
                array = np.asarray(vector, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"example {i}: features(x, y) returned {vector!r}, expected an array of "
                    f"{self.dim} numbers ({error})"
                ) from None
            shape, fits = array.shape, array.shape == (self.dim,)
            index = np.flatnonzero(array)
            values = array.ravel()[index]
        if not fits:
            raise ValueError(
                f"example {i}: features(x, y) returned a vector of shape {shape}, expected "
                f"({self.dim},) as for the first example"
            )
        if not np.isfinite(values).all():
            raise ValueError(
                f"example {i}: features(x, y) holds NaN or infinity, expected finite numbers"
            )
        return index, values


def _remember(examples: Examples, kind: str, i: int, number: Any, compute: Any) -> Any:
    # The last result of each kind, per thread: a cut uses the same vectors several times.
    memo = examples.topology["memo"]
    held = getattr(memo, kind, None)
    if held is None or held[0] != (i, number):
        held = ((i, number), compute(examples, i, number))
        setattr(memo, kind, held)
    return held[1]


def _objects(values: Any, what: str) -> list[Any]:
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if is_sparse(values):
        values = as_csr(values, what)
        objects = [values[i : i + 1] for i in range(values.shape[0])]
    elif isinstance(values, (str, bytes, dict)) or not hasattr(values, "__getitem__"):
        raise ValueError(f"{what} is {a_type(values)}, expected a list with one object per example")
    else:
        objects = [values[i] for i in range(len(values))]
    if not objects:
        raise ValueError(f"{what} is empty: expected at least one example")
    return objects


def _pairs(X: Any, Y: Any) -> tuple[list[Any], list[Any]]:
    objects, labels = _objects(X, "X"), _objects(Y, "y")
    check_lengths(len(objects), len(labels))
    return objects, labels
