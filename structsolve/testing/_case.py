"""One small data set, all its labels, and checked calls of its operators."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NoReturn

import joblib
import numpy as np

from ..lp import ask_cones, ask_oracle
from ..structure import calls
from ..structure.ask import ask_loss, ask_parts, ask_power, make_layout
from ..structure.base import Space
from ..structure.node_space import NodeSpace
from ..structure.pack import learn_space, pack
from ..structure.task_loss import named_losses
from ._memory import Guarded, Room
from ._promise import TOLERANCE, BrokenPromise, agree, kind_of, short

# Scores that reveal most faults: slow checks use only these.
TELLING = ("random", "tied", "zero")


def _is_theta(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def _halved(labels: Any) -> Any:
    """Return labels with numbers of classes modulo 2."""
    if isinstance(labels, (list, tuple)):
        return type(labels)(_halved(label) for label in labels)
    whole = isinstance(labels, (int, np.integer)) or getattr(labels, "dtype", bool) in (int, "i4")
    return labels % 2 if whole else labels


def _same(drawn: Any, again: Any) -> bool:
    try:
        return bool(joblib.hash(drawn) == joblib.hash(again))
    except Exception:  # of objects that cannot be pickled
        return True


class Case:
    """A data set drawn from a structure, with its operators from plugins.

    Parameters
    ----------
    structure : Structure
    number : int
        Number of the case.
    seed, size : int
        Passed to ``structure.sample``; even seeds have an intercept.
    classes : sequence, optional
        Passed to ``make_space``.
    two : bool, default=False
        Reduce labels to two classes, even and odd ones.
    """

    space: Any
    learned: Any
    layout: Any
    examples: Any
    labels: list[np.ndarray]
    mu: list[np.ndarray]
    rows: list[dict[bytes, int]]

    #: Clock for the cost of an answer.
    clock: Callable[[], float] = staticmethod(perf_counter)
    #: The kit's call in messages, and its further arguments.
    kit, more = "check_structure(structure, ", ""

    def __init__(
        self,
        structure: Any,
        number: int,
        seed: int,
        size: int,
        classes: Any = None,
        two: bool = False,
    ):
        self.structure, self.number, self.seed, self.size = structure, number, seed, size
        self.classes, self.two = classes, two
        # Example and scores of the last call.
        self.latest: tuple[int | None, np.ndarray | None] = None, None
        self.rng = np.random.default_rng(seed)
        with self.promise("sample", "draws examples"):
            self.X, self.Y = self.draw(4, size)
            again = self.draw(4, size)
        if not _same((self.X, self.Y), again):
            promise = "draws the same examples again from the same random_state"
            self.fail("sample", promise, None, again[0], self.X)
        self.given = copy.deepcopy((self.X, self.Y))
        self._powers: dict[str, Any] = {}
        self._losses: dict[Any, Any] = {}
        self.rows = []  # per example: row of each label, by the label's bytes
        self.sums: dict[int, Any] = {}  # by example: what all labels share
        before = {k: id(v) for k, v in vars(structure).items()}
        self.intercept = seed % 2 == 0
        with self.promise("make_space", "accepts its own sample"):
            made = learn_space(structure, self.X, self.Y, classes, self.intercept)
        if not isinstance(made[1].topology, dict):
            promise, wrong = "gives a dict as topology", type(made[1].topology).__name__
            self.fail("make_space", promise, None, wrong, "a dict")
        self.space, self.learned = made
        if before != {k: id(v) for k, v in vars(structure).items()}:
            promise = "does not change the structure"
            self.fail(
                "make_space",
                promise,
                None,
                vars(structure),
                f"the attributes {sorted(before)} as they were",
            )
        with self.promise("pack", "accepts its own sample"):
            self.examples = pack(self.space, self.X, self.Y)
        with self.promise("losses", "is a dict of loss objects by name"):
            named_losses(self.space)
        self.layout = self.space.layout

    def begin(self, check: str) -> None:
        """Draw reproducibly per check, independent of earlier checks."""
        self.rng = np.random.default_rng([self.seed, *check.encode()])

    def draw(self, n: int, size: int) -> tuple[Any, Any]:
        """Return examples drawn from the structure."""
        X, Y = self.structure.sample(self.seed, n=n, size=size)
        return X, _halved(Y) if self.two else Y

    def first(self, n: int) -> tuple[Any, Any]:
        """Return the first examples of X and Y."""
        return self.X[:n], self.Y[:n]

    def copy_of(self, space: Any, examples: Any, X: Any, **operators: Any) -> Case:
        """Return a case on other data and operators that fails like this one."""
        other = copy.copy(self)
        other.space, other.examples, other.X, other.layout = space, examples, X, space.layout
        vars(other).update(operators)
        return other

    # -- failures ---------------------------------------------------------------------------------

    def fail(
        self, what: str, promise: str, i: int | None, actual: Any, expected: Any, cause: Any = None
    ) -> NoReturn:
        """Raise BrokenPromise."""
        where = "" if i is None else f", example {i}"
        where += "" if self.classes is None else f", {len(self.classes)} classes"
        where += ", labels modulo 2" if self.two else ""
        theta = self.latest[1] if self.latest[0] == i else None
        shown = short(actual), short(expected)
        if shown[0] == shown[1]:  # they differ in something not shown, such as their types
            shown = f"{shown[0]} of {kind_of(actual)}", f"{shown[1]} of {kind_of(expected)}"
        raise BrokenPromise(
            f"{self.structure!r}: {what} breaks a promise: it {promise} (case {self.number}, "
            f"random_state {self.seed}{where}). Found {shown[0]}, expected {shown[1]}. To see it "
            f"again: {self.again}",
            self.structure,
            i,
            theta,
            self,
        ) from cause

    @property
    def again(self) -> str:
        """The call that reproduces this case."""
        return f"{self.kit}n_cases=1, size={self.size}, random_state={self.seed}{self.more})"

    @contextlib.contextmanager
    def promise(self, what: str, promise: str, i: int | None = None) -> Iterator[None]:
        """Turn an exception from the structure's code into BrokenPromise."""
        try:
            yield
        except (BrokenPromise, KeyboardInterrupt):
            raise
        except Exception as error:
            actual = f"{type(error).__name__}: {error}"
            self.fail(what, promise, i, actual, "no exception", error)

    def near(
        self,
        what: str,
        promise: str,
        i: int,
        actual: Any,
        expected: Any,
        tolerance: float = TOLERANCE,
        *,
        quoted: tuple[Any, ...] = (),
    ) -> None:
        """Fail unless two numbers or arrays agree to rounding.

        Arrays for ``{}`` in the promise are passed separately, since formatting takes longer than
        the check.
        """
        actual, expected = np.asarray(actual), np.asarray(expected)
        if actual.shape != expected.shape or not agree(actual, expected, tolerance):
            self.fail(what, promise.format(*quoted) if quoted else promise, i, actual, expected)

    # -- labels and scores -----------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.examples.n

    def sizes(self, i: int) -> tuple[int, int]:
        """Return the numbers of nodes and edges."""
        examples = self.examples
        edges = 0
        if examples.edge_offsets is not None:
            edges = int(examples.edge_offsets[i + 1] - examples.edge_offsets[i])
        return int(examples.offsets[i + 1] - examples.offsets[i]), edges

    @property
    def lists_all_labelings(self) -> bool:
        """Whether NodeSpace lists the labels, which are then all labelings."""
        space = type(self.space)
        default = space.enumerate_labels is NodeSpace.enumerate_labels
        return default and space.contains is Space.contains

    def label_size(self, i: int) -> int:
        """Return the number of integers in a label."""
        return len(self.examples.label(i))

    def enumerate(self) -> None:
        """List all labels and their parts; check that the truth is among them."""
        self.part_layout = make_layout(self.space, self.examples, training=True)
        self.oracle = ask_oracle(self.space)(self.part_layout)
        self.parts = ask_parts(self.space)(self.part_layout)
        self.labels, self.mu, self.padding = [], [], []
        for i in range(self.n):
            what = "enumerate_labels"
            with self.promise(what, "lists all labels", i):
                rows = np.ascontiguousarray(
                    [*self.space.enumerate_labels(self.examples, i)], dtype=np.int32
                )
            size = self.label_size(i)
            if rows.ndim != 2 or rows.shape[1] != size or not len(rows):
                self.fail(what, "gives one label per row", i, rows.shape, f"(labels, {size})")
            if len(np.unique(rows, axis=0)) < len(rows):
                self.fail(what, "lists no label twice", i, rows.tolist(), "distinct rows")
            with self.promise("contains", "knows its labels", i):
                for row in rows:
                    if not self.space.contains(row, self.examples, i):
                        self.fail("contains", "is True of each label listed", i, False, row)
            self.labels.append(rows)
            self.rows.append({row.tobytes(): number for number, row in enumerate(rows)})
            truth = self.examples.label(i)
            if self.find(i, truth) is None:
                self.fail(what, "lists the true label", i, rows.tolist(), truth.tolist())
            inside = np.zeros(self.layout.theta_size(*self.sizes(i)), dtype=bool)
            for view in self.layout.theta_views(inside, *self.sizes(i)).values():
                view[...] = True
            self.padding.append(~inside)
            self.mu.append(np.array([self.dense(i, *self.encode(i, row)) for row in rows]))

    def power(self, name: str) -> Any:
        """Return the operator of a power, None if the structure lacks it."""
        if name not in self._powers:
            if name == "cones":
                # Every structure with a polytope has them.
                bound = ask_cones(self.space, self.oracle, self.parts, self.power("kbest"))
            else:
                bind = ask_power(self.space, name)
                bound = None if bind is None else bind(self.part_layout)
            self._powers[name] = bound
        return self._powers[name]

    def loss(self, loss: Any) -> Any:
        """Return the native loss of this name, bound to the examples."""
        key = loss if isinstance(loss, str) else id(loss)
        if key not in self._losses:
            native = ask_loss(self.space, loss)(self.part_layout)
            native.check_truths(self.examples.labels)
            self._losses[key] = native
        return self._losses[key]

    def find(self, i: int, label: np.ndarray) -> int | None:
        """Return the row of a label among all labels, None if it is not one of them."""
        return self.rows[i].get(np.asarray(label, dtype=np.int32).tobytes())

    def listed(self, what: str, i: int, label: np.ndarray, detail: str) -> int:
        """Return the row of a label that an operator returned; fail if it is no label."""
        row = self.find(i, label)
        if row is None:
            promise = f"returns a label of the example ({detail})"
            self.fail(what, promise, i, label, "one listed")
        return row

    def row(self, i: int, label: np.ndarray) -> int:
        """Return the row of a valid label."""
        row = self.find(i, label)
        assert row is not None
        return row

    def thetas(self, i: int, some: tuple[str, ...] | None = None) -> dict[str, np.ndarray]:
        """Return scores of several kinds, or of some of them, zero in the padding."""
        size = self.layout.theta_size(*self.sizes(i))
        kinds = {
            "random": self.rng.normal(size=size),
            "tied": self.rng.integers(-1, 2, size).astype(np.float64),
            "zero": np.zeros(size),
            "large": self.rng.normal(scale=1e4, size=size),
            "negative": -self.rng.exponential(size=size),
        }
        for theta in kinds.values():
            theta[self.padding[i]] = 0
        return kinds if some is None else {kind: kinds[kind] for kind in some}

    def dense(self, i: int, index: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Return sparse parts as a vector in theta's layout."""
        vector = np.zeros(self.layout.theta_size(*self.sizes(i)))
        np.add.at(vector, index, value)
        return vector

    # -- watched calls ---------------------------------------------------------------------------

    def call(
        self,
        what: str,
        i: int,
        function: Any,
        operator: Any,
        *arguments: Any,
        garbage: int = -1,
        promise: str = "answers without an exception",
    ) -> Any:
        """Return ``function(operator, i, *arguments)``, and check the memory it touched.

        Parameters
        ----------
        what : str
            The operator's class and method, for messages.
        i : int
        function : callable
            From :mod:`structsolve.structure.calls` or related modules.
        operator : Operator
        *arguments
            Arrays are copied between guard zones first.
        garbage : int, default=-1
            Value of each byte of scratch memory.
        promise : str
            Promise that an exception breaks.
        """
        room = Room(garbage)
        self.latest = i, next((x for x in arguments if _is_theta(x)), None)
        given = [
            Guarded(x.size, x.dtype, x.ravel()) if isinstance(x, np.ndarray) else None
            for x in arguments
        ]
        passed = [x if g is None else g.array.reshape(x.shape) for x, g in zip(arguments, given)]
        with self.promise(what, promise, i):
            answer = function(operator, i, *passed, room=room)
        for x, g in zip(arguments, given):
            if g is not None and g.array.tobytes() != np.ascontiguousarray(x).tobytes():
                self.fail(what, "does not change its arguments", i, g.array, x)
            if g is not None:
                self.undamaged(what, i, "its arguments", g)
        for name, g in room.given.items():
            self.undamaged(what, i, name, g)
        return answer

    def undamaged(self, what: str, i: int, name: str, guarded: Guarded) -> None:
        """Fail if memory outside an array was written."""
        if guarded.damage():
            size = f"{guarded.array.nbytes} bytes" if name == "work" else f"{name}"
            promise = f"writes only into the memory it is given ({name})"
            self.fail(what, promise, i, f"a write {guarded.damage()}", f"writes within {size}")

    def argmax(
        self, i: int, theta: np.ndarray, garbage: int = -1
    ) -> tuple[np.ndarray, float, float]:
        """Return the oracle's best label, its value and the bound."""
        return self.call("Oracle.argmax", i, calls.argmax, self.oracle, theta, garbage=garbage)

    def repeat_argmax(
        self, i: int, theta: np.ndarray, label: np.ndarray, value: float, repeats: int
    ) -> tuple[np.ndarray, float] | None:
        """Call repeatedly without the GIL; return a different answer, None if there is none."""
        return self.call(
            "Oracle.argmax",
            i,
            calls.repeat_argmax,
            self.oracle,
            theta,
            label,
            value,
            repeats,
            promise="answers without an exception in four threads",
        )

    def encode(
        self, i: int, label: np.ndarray, truth: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sparse parts of a label, or of the truth less the label; check positions."""
        what = "Parts.encode" if truth is None else "Parts.difference"
        labels = [label] if truth is None else [truth, label]
        function = calls.encode if truth is None else calls.difference
        index, value = self.call(what, i, function, self.parts, *labels)
        padding = self.padding[i]
        if len(index) and not 0 <= index.min() <= index.max() < len(padding):
            self.fail(what, "gives positions in theta", i, index, f"0 .. {len(padding) - 1}")
        if padding[index].any():
            bad = index[padding[index]]
            self.fail(what, "never touches padding", i, f"positions {bad}", "positions of parts")
        if not np.isfinite(value).all():
            self.fail(what, "gives finite values", i, value, "finite numbers")
        return index, value

    def losses(self, what: str, loss: Any, i: int, truth: np.ndarray | None = None) -> np.ndarray:
        """Return the loss of every label against ``truth``; by default the example's true label."""
        truth = self.examples.label(i) if truth is None else truth
        true_label, label = (Guarded(self.label_size(i), np.int32, truth) for _ in range(2))
        values = []
        for row in self.labels[i]:
            label.array[...] = row
            with self.promise(f"{what}.value", "answers without an exception", i):
                values.append(calls.loss_value(loss, i, true_label.array, label.array))
        return np.array(values)

    def augment(
        self, what: str, loss: Any, i: int, truth: np.ndarray, scale: float, theta: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return scores with a loss added to them, and the constant."""
        what = f"{what}.augment"
        true_label = Guarded(len(truth), np.int32, truth)
        given = Guarded(len(theta), np.float64, theta)
        with self.promise(what, "answers without an exception", i):
            const = calls.augment(loss, i, true_label.array, scale, given.array)
        self.undamaged(what, i, "theta", given)
        if np.any(given.array[self.padding[i]] != 0):
            self.fail(what, "never touches padding", i, given.array[self.padding[i]], 0)
        return given.array, const

    def project(
        self, projection: Any, name: str, i: int, theta: np.ndarray
    ) -> tuple[np.ndarray, float, float]:
        """Return marginals, value and bound of a projection."""
        what = f"Projection.project ({name})"
        marginals, value, bound = self.call(what, i, calls.project, projection, theta)
        if np.any(marginals[self.padding[i]] != 0):
            self.fail(what, "leaves padding zero", i, marginals[self.padding[i]], 0)
        return marginals, value, bound
