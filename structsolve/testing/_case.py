"""One small data set, all its labels, and watched calls of its operators."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ..solvers import problem
from ..lp import constrained_oracle
from . import _calls

# Bytes on each side of memory that an operator is given, and what they hold: as a double the
# pattern is 1.4e306, so that reading beyond the end does not go unnoticed either.
GUARD, PATTERN = 256, 0x7F
UNTOUCHED = bytes([PATTERN]) * GUARD
# What rounding may do to a sum of parts.
TOLERANCE = 1e-9


class BrokenPromise(AssertionError):
    """A structure, or an operator that a plugin gives for it, does not do what it declares."""


class Guarded:
    """An array on a cache line of its own, between two guard zones.

    Parameters
    ----------
    size : int
    dtype : dtype
    fill : array or scalar
    """

    def __init__(self, size: int, dtype: Any, fill: Any = 0):
        n_bytes = int(size) * np.dtype(dtype).itemsize
        buffer = np.empty(n_bytes + 2 * GUARD + 64, dtype=np.uint8)
        buffer.fill(PATTERN)
        start = -buffer.__array_interface__["data"][0] % 64
        self._before = buffer[start : start + GUARD]
        self._after = buffer[start + GUARD + n_bytes : start + 2 * GUARD + n_bytes]
        self.array = buffer[start + GUARD : start + GUARD + n_bytes].view(dtype)
        self.array[...] = fill
        # Cython takes the address of the first entry, of empty arrays too.
        self.memory = buffer[start + GUARD : start + 2 * GUARD + n_bytes]
        self.memory = self.memory[: max(n_bytes, 16)].view(dtype)

    def damage(self) -> str:
        """Tell on which side the guard zone was written to, empty where on none."""
        for zone, where in ((self._before, "before its start"), (self._after, "beyond its end")):
            if zone.tobytes() != UNTOUCHED:
                return where
        return ""


def _agree(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Tell what ``np.allclose`` does, which takes several times as long on a few numbers."""
    same = found == expected
    if same.all():
        return True
    with np.errstate(invalid="ignore"):
        close = np.abs(found - expected) <= tolerance * (1 + np.abs(expected))
    return bool((same | (close & np.isfinite(expected))).all())


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 400 else f"{text[:400]}..."


class Case:
    """A data set drawn from a structure, with the operators that plugins give for it.

    Parameters
    ----------
    structure : Structure
    number : int
        Counts cases; every other one has an intercept.
    seed, size : int
        Handed to ``structure.sample``.
    """

    labels: list[np.ndarray]
    mu: list[np.ndarray]
    rows: list[dict[bytes, int]]

    def __init__(self, structure: Any, number: int, seed: int, size: int):
        self.structure, self.number, self.seed = structure, number, seed
        self.rng = np.random.default_rng(seed)
        with self.promise("sample", "draws examples"):
            self.X, self.Y = structure.sample(seed, n=4, size=size)
        self.given = copy.deepcopy((self.X, self.Y))
        self.rows = []  # of each example: which row of its labels a label is, by its bytes
        before = {k: id(v) for k, v in vars(structure).items()}
        self.intercept = number % 2 == 0
        with self.promise("make_space", "accepts its own sample"):
            self.space = structure.make_space(self.X, self.Y, fit_intercept=self.intercept)
        if before != {k: id(v) for k, v in vars(structure).items()}:
            self.fail(
                "make_space",
                "does not change the structure",
                None,
                vars(structure),
                f"the attributes {sorted(before)} as they were",
            )
        with self.promise("pack", "accepts its own sample"):
            self.examples = self.space.pack(self.X, self.Y)
        self.layout = self.space.layout

    # -- saying what is wrong --------------------------------------------------------------------

    def fail(
        self, what: str, promise: str, i: int | None, found: Any, expected: Any, cause: Any = None
    ) -> NoReturn:
        """Raise BrokenPromise."""
        where = "" if i is None else f", example {i}"
        raise BrokenPromise(
            f"{self.structure!r}: {what} breaks a promise: it {promise} (case {self.number}, "
            f"random_state {self.seed}{where}). Found {_short(found)}, expected {_short(expected)}"
        ) from cause

    @contextlib.contextmanager
    def promise(self, what: str, promise: str, i: int | None = None) -> Iterator[None]:
        """Turn an exception of the structure's code into BrokenPromise."""
        try:
            yield
        except (BrokenPromise, KeyboardInterrupt):
            raise
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
            self.fail(what, promise, i, found, "no exception", error)

    def near(
        self,
        what: str,
        promise: str,
        i: int,
        found: Any,
        expected: Any,
        tolerance: float = TOLERANCE,
        quoted: tuple[Any, ...] = (),
    ) -> None:
        """Fail unless two numbers or arrays agree to rounding.

        Arrays that the promise quotes, where it has ``{}``, are given apart: to put them into words
        takes longer than to check that the promise is kept.
        """
        found, expected = np.asarray(found), np.asarray(expected)
        if found.shape != expected.shape or not _agree(found, expected, tolerance):
            self.fail(what, promise.format(*quoted) if quoted else promise, i, found, expected)

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

    def label_size(self, i: int) -> int:
        """Return the number of integers in a label."""
        return len(self.examples.label(i))

    def enumerate(self) -> None:
        """List all labels and their parts; check that the truth is among them."""
        self.oracle = problem.ask_oracle(self.space, self.examples)
        self.parts = problem.ask_parts(self.space, self.examples)
        self.coned = constrained_oracle(self.space, self.examples, self.oracle, self.parts)
        self.labels, self.mu, self.padding = [], [], []
        for i in range(self.n):
            what = "enumerate_labels"
            with self.promise(what, "lists all labels", i):
                rows = np.ascontiguousarray(
                    self.space.enumerate_labels(self.examples, i), dtype=np.int32
                )
            size = self.label_size(i)
            if rows.ndim != 2 or rows.shape[1] != size or not len(rows):
                self.fail(what, "gives one label per row", i, rows.shape, f"(labels, {size})")
            if len(np.unique(rows, axis=0)) < len(rows):
                self.fail(what, "lists no label twice", i, rows.tolist(), "distinct rows")
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

    def find(self, i: int, label: np.ndarray) -> int | None:
        """Return the row of a label among all labels, None where it is not one of them."""
        return self.rows[i].get(np.asarray(label, dtype=np.int32).tobytes())

    def row(self, i: int, label: np.ndarray) -> int:
        """Return the row of a label that is known to be one of all labels."""
        row = self.find(i, label)
        assert row is not None
        return row

    def thetas(self, i: int) -> dict[str, np.ndarray]:
        """Return scores of several kinds, zero in the padding."""
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
        return kinds

    def dense(self, i: int, index: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Return sparse parts as a vector in theta's layout."""
        vector = np.zeros(self.layout.theta_size(*self.sizes(i)))
        np.add.at(vector, index, value)
        return vector

    # -- watched calls ---------------------------------------------------------------------------

    def _call(
        self, what: str, i: int, theta: np.ndarray | None, out: dict[str, Guarded], call: Any
    ):
        """Run ``call(memory of theta, memory of each output)`` and look at what it touched."""
        given = Guarded(0 if theta is None else len(theta), np.float64)
        if theta is not None:
            given.array[...] = theta
        with self.promise(what, "answers without an exception", i):
            answer = call(given.memory, *(guarded.memory for guarded in out.values()))
        if theta is not None and given.array.tobytes() != theta.tobytes():
            self.fail(what, "leaves theta as it is", i, given.array, theta)
        for name, guarded in {"theta": given, **out}.items():
            if guarded.damage():
                size = f"{guarded.array.nbytes} bytes" if name == "work" else f"{name}"
                self.fail(
                    what,
                    f"writes only into the memory it is given ({name})",
                    i,
                    f"a write {guarded.damage()}",
                    f"writes within {size}",
                )
        return answer

    def _work(self, n_bytes: int, garbage: int) -> Guarded:
        return Guarded(n_bytes, np.int8, np.int8(garbage))

    def argmax(self, i: int, theta: np.ndarray, garbage: int = -1) -> tuple[np.ndarray, float]:
        """Return the oracle's best label and its value."""
        out = {
            "label": Guarded(self.label_size(i), np.int32, -7),
            "value": Guarded(1, np.float64, np.nan),
            "work": self._work(self.oracle.work_bytes, garbage),
        }
        self._call(
            "Oracle.argmax", i, theta, out, lambda *memory: _calls.argmax(self.oracle, i, *memory)
        )
        return out["label"].array.copy(), float(out["value"].array[0])

    def repeat_argmax(
        self, i: int, theta: np.ndarray, label: np.ndarray, value: float, repeats: int
    ) -> tuple[np.ndarray, float] | None:
        """Ask over and over without the GIL; return an answer that differs, None where none did."""
        given = Guarded(len(theta), np.float64, theta)
        expected = Guarded(len(label), np.int32, label)
        found = Guarded(len(label), np.int32)
        values = Guarded(1, np.float64)
        work = self._work(self.oracle.work_bytes, -1)
        with self.promise("Oracle.argmax", "answers without an exception in four threads", i):
            same = _calls.repeat_argmax(
                self.oracle,
                i,
                given.memory,
                len(label),
                expected.memory,
                value,
                found.memory,
                values.memory,
                work.memory,
                repeats,
            )
        return None if same else (found.array, float(values.array[0]))

    def argmax_augmented(self, i: int, theta: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return the most violated label, its value and its loss."""
        out = {
            "label": Guarded(self.label_size(i), np.int32, -7),
            "value": Guarded(1, np.float64, np.nan),
            "loss": Guarded(1, np.float64, np.nan),
            "work": self._work(self.oracle.work_bytes, -1),
        }
        self._call(
            "Oracle.argmax_augmented",
            i,
            theta,
            out,
            lambda *memory: _calls.argmax_augmented(self.oracle, i, *memory),
        )
        value, loss = out["value"].array[0], out["loss"].array[0]
        return out["label"].array.copy(), float(value), float(loss)

    def argmax_bounded(self, i: int, theta: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return a label, its value and the bound."""
        out = {
            "label": Guarded(self.label_size(i), np.int32, -7),
            "value": Guarded(1, np.float64, np.nan),
            "bound": Guarded(1, np.float64, np.nan),
            "work": self._work(self.oracle.work_bytes, -1),
        }
        self._call(
            "Oracle.argmax_bounded",
            i,
            theta,
            out,
            lambda *memory: _calls.argmax_bounded(self.oracle, i, *memory),
        )
        value, bound = out["value"].array[0], out["bound"].array[0]
        return out["label"].array.copy(), float(value), float(bound)

    def relax(self, i: int, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, float]:
        """Return the maximiser over the relaxation, its label if it is one's, and its value."""
        what = "Oracle.relax"
        out = {
            "mu": Guarded(len(theta), np.float64, np.nan),
            "label": Guarded(self.label_size(i), np.int32, -7),
            "value": Guarded(1, np.float64, np.nan),
            "work": self._work(self.oracle.work_bytes, -1),
        }
        integral = self._call(
            what, i, theta, out, lambda *memory: _calls.relax(self.oracle, i, *memory)
        )
        if integral not in (0, 1):
            self.fail(what, "returns 1 for a label, else 0", i, integral, "0 or 1")
        label = out["label"].array.copy() if integral else None
        return out["mu"].array.copy(), label, float(out["value"].array[0])

    def argmax_constrained(
        self, i: int, theta: np.ndarray, cost: np.ndarray, cone: Any
    ) -> tuple[int, np.ndarray, np.ndarray, float]:
        """Return the kind of the answer, mu (of kind 2), the label (of kind 1), and the value."""
        what = "Oracle.argmax_constrained"
        oracle, costs = self.coned, Guarded(len(cost), np.float64, cost)
        out = {
            "mu": Guarded(len(theta), np.float64, np.nan),
            "label": Guarded(self.label_size(i), np.int32, -7),
            "value": Guarded(1, np.float64, np.nan),
            "work": self._work(oracle.work_bytes, -1),
        }
        kind = self._call(
            what,
            i,
            theta,
            out,
            lambda theta, *memory: _calls.argmax_constrained(
                oracle, i, theta, costs.memory, cone, *memory
            ),
        )
        if kind not in (0, 1, 2):
            self.fail(what, "returns a kind of answer", i, kind, "0, 1 or 2")
        if costs.array.tobytes() != cost.tobytes():
            self.fail(what, "leaves the costs as they are", i, costs.array, cost)
        return kind, out["mu"].array, out["label"].array, float(out["value"].array[0])

    def kbest(self, i: int, theta: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels and their values."""
        size = self.label_size(i)
        with self.promise("Oracle.kbest_bytes", "answers without an exception", i):
            n_bytes = self.oracle.kbest_bytes(k)
        out = {
            "labels": Guarded(k * size, np.int32, -7),
            "values": Guarded(k, np.float64, np.nan),
            "work": self._work(n_bytes, -1),
        }
        found = self._call(
            "Oracle.kbest",
            i,
            theta,
            out,
            lambda theta, *memory: _calls.kbest(self.oracle, i, theta, k, *memory),
        )
        if not 0 <= found <= k:
            self.fail("Oracle.kbest", "returns how many labels there are", i, found, f"0 .. {k}")
        return out["labels"].array.reshape(k, size)[:found], out["values"].array[:found]

    def max_marginals(self, i: int, theta: np.ndarray) -> np.ndarray:
        """Return the best value per node and state, padding cut off."""
        block = self.layout.node
        n_nodes = self.sizes(i)[0]
        out = {
            "out": Guarded(n_nodes * block.stride, np.float64, np.nan),
            "work": self._work(self.oracle.work_bytes, -1),
        }
        self._call(
            "Oracle.max_marginals",
            i,
            theta,
            out,
            lambda *memory: _calls.max_marginals(self.oracle, i, *memory),
        )
        return out["out"].array.reshape(n_nodes, block.stride)[:, : block.shape[-1]]

    def counts(
        self, i: int, theta: np.ndarray, cost: np.ndarray, most: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best label and its value for each count."""
        size = self.label_size(i)
        with self.promise("Oracle.counts_bytes", "answers without an exception", i):
            n_bytes = self.oracle.counts_bytes(most)
        given = Guarded(len(cost), np.float64, cost)
        out = {
            "labels": Guarded((most + 1) * size, np.int32, -7),
            "values": Guarded(most + 1, np.float64, np.nan),
            "work": self._work(n_bytes, -1),
        }
        self._call(
            "Oracle.argmax_counts",
            i,
            theta,
            out,
            lambda theta, *memory: _calls.argmax_counts(
                self.oracle, i, theta, given.memory, most, *memory
            ),
        )
        if given.array.tobytes() != cost.tobytes():
            self.fail("Oracle.argmax_counts", "leaves the costs as they are", i, given.array, cost)
        return out["labels"].array.reshape(most + 1, size), out["values"].array

    def encode(
        self, i: int, label: np.ndarray, truth: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sparse parts of a label, or of the truth less the label; check positions."""
        what = "Parts.encode" if truth is None else "Parts.difference"
        labels = [label] if truth is None else [truth, label]
        inputs = [Guarded(len(row), np.int32, row) for row in labels]
        most = self.parts.max_entries
        out = {
            "index": Guarded(most, np.int32, -7),
            "value": Guarded(most, np.float64, np.nan),
        }
        call = _calls.encode if truth is None else _calls.difference
        n = self._call(
            what,
            i,
            None,
            out,
            lambda _, *memory: call(self.parts, i, *(row.memory for row in inputs), *memory),
        )
        if not 0 <= n <= most:
            self.fail(what, "returns at most max_entries entries", i, n, f"0 .. {most}")
        for row, given in zip(labels, inputs):
            if given.array.tobytes() != np.ascontiguousarray(row).tobytes():
                self.fail(what, "leaves the label as it is", i, given.array, row)
        index, value = out["index"].array[:n], out["value"].array[:n]
        padding = self.padding[i]
        if n and not 0 <= index.min() <= index.max() < len(padding):
            self.fail(what, "gives positions in theta", i, index, f"0 .. {len(padding) - 1}")
        if padding[index].any():
            bad = index[padding[index]]
            self.fail(what, "never touches padding", i, f"positions {bad}", "positions of parts")
        if not np.isfinite(value).all():
            self.fail(what, "gives finite values", i, value, "finite numbers")
        return index, value

    def losses(self, what: str, loss: Any, i: int) -> np.ndarray:
        """Return the loss of every label."""
        values = []
        given = Guarded(self.label_size(i), np.int32)
        for label in self.labels[i]:
            given.array[...] = label
            with self.promise(f"{what}.value", "answers without an exception", i):
                values.append(_calls.loss_value(loss, i, given.memory))
        return np.array(values)

    def project(
        self, projection: Any, name: str, i: int, theta: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return marginals and value of a projection."""
        what = f"Projection.project ({name})"
        out = {
            "marginals": Guarded(len(theta), np.float64, np.nan),
            "value": Guarded(1, np.float64, np.nan),
            "work": self._work(projection.work_bytes, -1),
        }
        self._call(what, i, theta, out, lambda *memory: _calls.project(projection, i, *memory))
        marginals = out["marginals"].array.copy()
        if np.any(marginals[self.padding[i]] != 0):
            self.fail(what, "leaves padding zero", i, marginals[self.padding[i]], 0)
        return marginals, float(out["value"].array[0])
