"""``check_reader`` and ``check_metric``: checks of plugins' readers and metrics."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import registry
from ..estimators.structured_svm import StructuredSVM
from ..evaluation.scorers import get_scorer
from ..utils.arrays import n_rows
from ._declaration import equal
from ._promise import BrokenPromise, short

# Lines that are invalid in every format of numbers.
NOISE = b"\x00 : , ;; \xff\n{[<\n"


def check_reader(reader: Any, path: Any) -> None:
    """Check a reader of data files: its data, its state, and its errors for broken files.

    Parameters
    ----------
    reader : str or Reader
        A name, or a reader that has not read anything.
    path : str or Path
        A file of training data with labels.

    Raises
    ------
    BrokenPromise
        An AssertionError that says what was found and expected.
    TypeError
        If ``reader`` is neither a name nor a reader.

    Notes
    -----
    Checked are: as many labels as examples, the same data from ``fit`` and ``read`` and from a
    second ``read``, parameters that are JSON values and make a reader that reads the same (as model
    files do), ``endings`` and ``sniff``, and files that are missing, truncated, or noise: their
    error is an ``OSError``, a ``ValueError`` that names the file, or raised while
    :meth:`Reader.lines <structsolve.io.reader.Reader.lines>` is read, whose line the shell names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsolve.testing import check_reader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     _ = path.write_text("size,kind\\n1.5,a\\n-2,b\\n")
    ...     check_reader("csv", path)
    """
    reader = registry.default().object_of("readers", reader)
    what, path = f"reader {type(reader).__name__}", str(path)
    _check_endings(what, reader, path)
    with _told(what, "fit reads its training data"):
        X, y = reader.fit(path)
    n = n_rows(X)
    if y is None or n_rows(y) != n:
        _fail(what, "fit gives a label for each example", y if y is None else n_rows(y), n)
    before = copy.deepcopy(reader.get_params())
    for promise in ("read gives the same result as fit", "read gives the same result again"):
        with _told(what, "read accepts the training data after fit"):
            again = reader.read(path)
        if not equal(again, (X, y)):
            _fail(what, promise, again, (X, y))
    if reader.get_params() != before:
        _fail(what, "read does not change parameters", reader.get_params(), before)
    with _told(what, "parameters after fit are values that JSON can hold"):
        params = json.loads(json.dumps(before))
    with _told(what, "its parameters make a reader that reads for the model"):
        other = type(reader)(**params).read(path)
    if not equal(other, (X, y)):
        _fail(what, "stores all that it learned in its parameters", other, (X, y))
    _check_broken(what, reader, path)


def _check_endings(what: str, reader: Any, path: str) -> None:
    endings = reader.endings
    good = isinstance(endings, tuple) and all(
        isinstance(one, str) and one.startswith(".") and one == one.lower() for one in endings
    )
    if not good:
        _fail(what, "endings is a tuple, lower case, with the dot", endings, ('".name"',))
    with open(path, "rb") as file:
        head = file.read(4096)
    for given in (head, b"", NOISE):
        with _told(what, "sniff answers for any file"):
            answer = type(reader).sniff(path, given)
        if not isinstance(answer, (bool, np.bool_)):
            _fail(what, "sniff returns True or False", answer, "a bool")


def _check_broken(what: str, reader: Any, path: str) -> None:
    whole = Path(path).read_bytes()
    files = {
        "missing": None,
        "cut": whole[: len(whole) // 2],
        "noise": NOISE,
        "mixed": whole + NOISE,
    }
    with tempfile.TemporaryDirectory() as folder:
        for kind, content in files.items():
            broken = Path(folder, f"{kind}{''.join(Path(path).suffixes)}")
            if content is not None:
                broken.write_bytes(content)
            for name in ("fit", "read"):
                one = type(reader)(**copy.deepcopy(reader.get_params()))
                try:
                    getattr(one, name)(str(broken))
                except OSError:
                    continue
                except ValueError as error:
                    # The shell puts the last line of lines() in front of the error.
                    if broken.name in str(error) or one.place("") != "":
                        continue
                    promise = f"{name} names the file that it cannot read ({kind})"
                    _fail(what, promise, f"ValueError: {error}", broken.name, error)
                except Exception as error:
                    promise = f"{name} raises a ValueError for a file that is {kind}"
                    _fail(what, promise, f"{type(error).__name__}: {error}", "ValueError", error)
                if content is None:
                    _fail(what, f"{name} raises if there is no file", "no exception", "OSError")


def check_metric(metric: Any, structure: Any = "chain", random_state: int = 0) -> None:
    """Check a metric: greater is better, and it depends only on the given data.

    Parameters
    ----------
    metric : str or callable
        A name of :func:`structsolve.get_scorer`, or a scorer ``(estimator, X, y) -> float``.
    structure : str or Structure, default="chain"
        The structure of the labels.
    random_state : int
        Seed of the sample and of the model's weights.

    Raises
    ------
    BrokenPromise
        An AssertionError that says what was found and expected.

    Notes
    -----
    Checked are: a finite float, largest for the labels that the model predicts and less for some
    others, equal when repeated and for the examples in another order, and that neither data nor
    model change.

    Examples
    --------
    >>> from structsolve.testing import check_metric
    >>> check_metric("sequence-accuracy")
    """
    what = f"metric {metric!r}" if isinstance(metric, str) else f"metric {short(metric)}"
    scorer = get_scorer(metric) if isinstance(metric, str) else metric
    structure = registry.get_structure(structure)
    rng = np.random.default_rng(random_state)
    X, Y = structure.sample(random_state, n=12, size=4)
    model = StructuredSVM(structure, max_iter=50, tol=0.5).fit(X, Y)
    predicted, w = model.predict(X), model.flat_weights().copy()

    def score(x: Any, y: Any) -> float:
        given = copy.deepcopy((x, y))
        with _told(what, "answers for labels of the structure"):
            value = scorer(model, x, y)
        if not equal((x, y), given):
            _fail(what, "does not change X and y", (x, y), given)
        if not np.array_equal(model.flat_weights(), w):
            _fail(what, "does not change the model", model.flat_weights(), w)
        if not isinstance(value, (float, np.floating)) or not math.isfinite(value):
            _fail(what, "gives a finite float", value, "a float")
        return float(value)

    best = score(X, predicted)
    if score(X, predicted) != best:
        _fail(what, "gives the same twice", score(X, predicted), best)
    least = best
    for _ in range(8):
        order = rng.permutation(len(X))
        other = [predicted[int(i)] for i in order]
        shapes = [np.shape(a) == np.shape(b) for a, b in zip(other, predicted)]
        wrong = [a if fits else b for a, b, fits in zip(other, predicted, shapes)]
        for labels in (wrong, Y):
            labels = np.asarray(labels) if isinstance(predicted, np.ndarray) else labels
            if (value := score(X, labels)) > best + 1e-12:
                promise = "is largest for the predicted labels (greater is better)"
                _fail(what, promise, f"{value} for other labels", f"at most {best}")
            least = min(least, value)
    if least == best:
        _fail(what, "is less for other labels than for the predicted ones", least, "less")
    straight = score(X, Y)
    for first in range(1, len(X)):
        moved = [*range(first, len(X)), *range(first)]
        turned: Any = [X[i] for i in moved], [Y[i] for i in moved]
        if isinstance(Y, np.ndarray):
            turned = np.asarray(X)[moved], Y[moved]
        if abs(score(*turned) - straight) > 1e-9:
            _fail(what, "does not depend on the order of the examples", score(*turned), straight)


class _told:
    """Turns an exception into BrokenPromise."""

    def __init__(self, what: str, promise: str):
        self.what, self.promise = what, promise

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, BrokenPromise):
            actual = f"{type(error).__name__}: {error}"
            _fail(self.what, self.promise, actual, "no exception", error)


def _fail(what: str, promise: str, actual: Any, expected: Any, cause: Any = None) -> NoReturn:
    raise BrokenPromise(
        f"{what} breaks a promise: {promise}. Found {short(actual)}, expected {short(expected)}"
    ) from cause
