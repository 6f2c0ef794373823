"""Readers, metrics and searches that each break one promise, with the message."""

import os
import tempfile

import numpy as np
from kit_collector import collector

from structsolve.io.reader import Reader
from structsolve.search.hull import ConvexHull
from structsolve.search.scalar import Binary, Bisecting
from structsolve.testing import check_metric, check_reader, check_search

KITS, _ = collector()

ROWS = tempfile.NamedTemporaryFile("w+", suffix=".rows")  # noqa: SIM115  it goes with the process
ROWS.write("1 a\n2 b\n3 a\n")
ROWS.flush()


class Rows(Reader):
    """A number and a label on each line."""

    endings = (".rows",)

    def __init__(self, shift=None):
        self.shift = shift

    def fit(self, path):
        self.shift = 1.0
        return self.read(path)

    def read(self, path):
        try:
            with open(path, encoding="utf-8") as file:
                rows = [line.split() for line in file]
            return [[float(row[0]) + self.shift] for row in rows], [row[1] for row in rows]
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path}: {error}") from None


def reader(message, **methods):
    """Collect a reader with other methods or attributes."""
    name = "Reader" + "".join(
        part.title() for key in methods for part in (key, getattr(methods[key], "__name__", ""))
    )
    name = name.replace("<Lambda>", "")

    def make():
        return type(name, (Rows,), methods)()

    KITS.append((check_reader, f"{name}{len(KITS)}", make, (ROWS.name,), {}, message))


def keeps_elsewhere(self, path):
    self.other = 2.0
    return Rows.fit(self, path)


def forgets(self, path):
    X, y = Rows.read(self, path)
    return [[row[0] + getattr(self, "other", 0.0)] for row in X], y


def learns(self, path):
    self.shift += 1e-9
    return Rows.read(self, path)


def bare(self, path):
    with open(path, "rb") as file:
        return [[float(line.split()[0]) + self.shift] for line in file], list("aba")


def nameless(self, path):
    try:
        return bare(self, path)
    except (ValueError, IndexError):
        raise ValueError("a line is broken") from None


def silent(self, path):
    return Rows.read(self, path) if os.path.exists(path) else ([], [])


reader(r"fit gives a label for each example", fit=lambda self, path: ([[1.0], [2.0]], ["a"]))
reader(r"fit gives a label for each example", fit=lambda self, path: ([[1.0], [2.0]], None))
reader(r"stores all that it learned in its parameters", fit=keeps_elsewhere, read=forgets)
reader(r"read gives the same result as fit|does not change parameters", read=learns)
reader(r"raises a ValueError for a file that is (cut|noise)|names the file", read=bare)
reader(r"names the file that it cannot read", read=nameless)
reader(r"raises if there is no file", read=silent)
reader(r"endings is a tuple, lower case, with the dot", endings=(".ROWS",))
reader(r"endings is a tuple", endings=".rows")
reader(r"sniff returns True or False", sniff=classmethod(lambda cls, path, head: None))


def metric(message, structure="chain"):
    """Collect a scorer."""

    def collect(function):
        KITS.append((check_metric, function.__name__, lambda: function, (structure,), {}, message))
        return function

    return collect


def _right(model, X, y):
    return float(np.mean([np.mean(np.equal(a, b)) for a, b in zip(model.predict(X), y)]))


@metric(r"greater is better")
def LessIsBetter(model, X, y):
    return 1 - _right(model, X, y)


@metric(r"gives a finite float")
def MetricOfAll(model, X, y):
    return np.array([_right(model, X, y)])


@metric(r"gives a finite float")
def MetricNotFinite(model, X, y):
    return float("nan")


@metric(r"answers for labels of the structure.*(Type|Value)Error")
def MetricOfNumbers(model, X, y):
    return float(np.mean(model.predict(X)[0] - y))


@metric(r"gives the same twice")
def MetricAtRandom(model, X, y):
    return _right(model, X, y) + float(np.random.default_rng().normal())


@metric(r"does not depend on the order")
def MetricOfTheFirst(model, X, y):
    return _right(model, X[:1], y[:1])


@metric(r"does not depend on the order")
def MetricOfOne(model, X, y):
    return float(np.array_equal(model.predict(X[:1])[0], y[0]))


@metric(r"is less for other labels than for the predicted ones")
def MetricOfNothing(model, X, y):
    return float(len(X))


@metric(r"does not change X and y")
def MetricCorrects(model, X, y):
    value = _right(model, X, y)
    y[0] = model.predict(X[:1])[0]
    return value


@metric(r"does not change X and y")
def MetricSorts(model, X, y):
    value = _right(model, X, y)
    for label in y:
        label.sort()
    return value


@metric(r"does not change the model")
def MetricFits(model, X, y):
    value = _right(model, X, y)
    model.fit(X, [label[::-1] for label in y])
    return value


def search(message, structure="chain"):
    """Collect a search."""

    def collect(kind):
        KITS.append((check_search, kind.__name__, kind, (structure,), {}, message))
        return kind

    return collect


@search(r"makes at most max_calls oracle calls")
class SearchOfOneCall(ConvexHull):
    max_calls = 1


@search(r"is fractional, so it finds the best mixture|no mixture exceeds|returns a label")
class SearchOfMixtures(Bisecting):
    fractional = True


@search(r"gives a bound that no label exceeds|counts, so it finds the best label")
class SearchThatCounts(Binary):
    counting = True


@search(r"names itself if it refuses")
class SearchWithoutAName(Bisecting):
    def extra_bytes(self, plane, labels=None):
        raise ValueError("not this one")


@search(r"is bound to a task, or refuses it with a ValueError.*RuntimeError")
class SearchThatRaises(ConvexHull):
    def extra_bytes(self, plane, labels=None):
        raise RuntimeError("no memory")


@search(r"keeps (name|max_calls|tol) in a copy")
class SearchCopiedHalf(ConvexHull):
    def __init__(self, max_calls=7):
        super().__init__(max_calls)

    def __reduce__(self):
        return type(self), (9,)

    def __deepcopy__(self, memo):
        return type(self)(9)
