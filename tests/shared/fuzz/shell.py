"""The shell: arguments and files of every kind; it prints a line, never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from typing import Any

import numpy as np

from structsolve.cli.main import main
from structsolve.io.npz import write_npz

from . import readers
from .base import Fault, Target, short

_VALUES = [
    "", "x", "0", "1", "-1", "2.5", "nan", "inf", "1e-3", "1e400", "10", "1,2", "a:b", "no-file",
    "chain", "multiclass", "crf", "margin", "sgd", "bcfw", "\0", "é", "zero-one", "csv", "conll",
]  # fmt: skip
_OPTIONS = {
    "fit": [
        "--structure", "--alpha", "--alphas", "--max-iter", "--tol", "--loss", "--solver",
        "--surrogate", "--format", "--n-jobs", "--random-state", "--validation", "--scoring",
        "--kernel", "--kernel-param", "--oracle", "--checkpoint", "--class-weight", "--labels",
        "--scale-features", "--missing", "--where", "--rows", "--split", "--target", "--features",
        "--window", "--label-column", "--cv", "--early-stopping", "--history", "--no-such",
        "--estimator", "--hierarchy", "--feature-map", "--n-hidden", "--normalization",
        "--no-scale-features",
    ],
    "predict": [
        "--output", "--format", "--kbest", "--marginals", "--oracle", "--top", "--n-jobs",
        "--columns", "--rows", "--where", "--split", "--target", "--option",
    ],
    "score": ["--metric", "--format", "--n-jobs", "--oracle", "--scheme", "--rows", "--target"],
    "convert": ["--format", "--target", "--split", "--where", "--rows", "--option"],
    "decode": [
        "--evidence", "--target", "--oracle", "--max-iter", "--maximize", "--output", "--json",
    ],
    "plugins": ["--json", "x"],
}  # fmt: skip


class Shell(Target):
    """Commands on files that are valid, damaged, or of another kind."""

    name = "shell"
    refusals = (ValueError,)
    batch = 50
    commands = ("fit", "predict", "score", "convert", "plugins")

    def __init__(self, folder: str):
        self.folder = folder
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(8, 3)), np.arange(8) % 2
        self.files = {"plain.npz": self.path("plain.npz"), "strips.npz": self.path("strips.npz")}
        write_npz(self.files["plain.npz"], X, y)
        write_npz(self.files["strips.npz"], [X[:3], X[3:]], [y[:3], y[3:]])
        for name, text in readers.TEXTS.values():
            self.files[name] = self.path(name)
            with open(self.files[name], "w", encoding="utf-8") as file:
                file.write(text)
        for data, model in (("plain.npz", "rows.model"), ("strips.npz", "chains.model")):
            given = ["fit", self.files[data], "--model", self.path(model), "--max-iter", "2"]
            self.files[model] = self.path(model)
            self.call(given)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def call(self, argv: list[str]) -> Any:
        """Return the status of a command, with its output on stderr."""
        errors = io.StringIO()
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(errors),
        ):
            warnings.simplefilter("ignore")
            try:
                status = main(argv)
            except SystemExit as end:
                status = end.code
        return status, errors.getvalue()

    def argv(self, rng: np.random.Generator) -> list[str]:
        """Return a command: mostly valid, with invalid options."""
        command = self.commands[int(rng.integers(len(self.commands)))]
        names = sorted(self.files)
        data = self.damaged(rng, self.files[names[int(rng.integers(len(names)))]])
        given = [command, data] if command != "plugins" else [command]
        if command in ("predict", "score"):
            models = [name for name in names if name.endswith(".model")]
            model = self.files[models[int(rng.integers(len(models)))]]
            given.insert(1, self.damaged(rng, model))
        if command == "fit":
            given += ["--max-iter", "2", "--model", self.path("new.model")]
        if command == "convert":
            given.append(self.path("new.npz"))
        return given + self.options(rng, command)

    def options(self, rng: np.random.Generator, command: str) -> list[str]:
        given: list[str] = []
        for _ in range(int(rng.integers(3))):
            given.append(_OPTIONS[command][int(rng.integers(len(_OPTIONS[command])))])
            if rng.random() < 0.85:
                value = _VALUES[int(rng.integers(len(_VALUES)))]
                if given[-1] in ("--model", "--output", "--checkpoint", "--history", "--evidence"):
                    value = self.path("out") if value else ""
                given.append(value)
        return given

    def damaged(self, rng: np.random.Generator, path: str) -> str:
        """Return a file, or a copy with something else in it."""
        if rng.random() < 0.5:
            return path
        with open(path, "rb") as file:
            data = readers.mixed(rng, file.read())
        other = self.path(f"bad-{os.path.basename(path)}")
        with open(other, "wb") as file:
            file.write(data)
        return other

    def run(self, rng: np.random.Generator) -> None:
        """Give one command; see the package."""
        argv = self.argv(rng)
        told = short([each.replace(self.folder, ".") for each in argv], 500)
        self.say(f"structsolve {told}")
        status, errors = self.call(argv)
        if "Traceback" in errors:
            raise Fault(f"{told}: {errors[-300:]}")
        for word in ("IndexError", "KeyError", "AttributeError", "AssertionError", "UnboundLocal"):
            if word in errors:
                raise Fault(f"{told}: {errors[-300:]}")
        if status:
            raise ValueError(f"status {status}")


class Decode(Shell):
    """``structsolve decode`` of UAI models, archives and texts of costs."""

    name = "decode"
    batch = 100

    def __init__(self, folder: str):
        self.folder = folder
        rng = np.random.default_rng(0)
        edges = np.array([[0, 1], [1, 2], [0, 2]])
        self.arrays: list[dict[str, Any]] = [
            {"unary": rng.normal(size=(3, 2)), "edges": edges, "weights": rng.normal(size=3)},
            {"unary": rng.normal(size=(3, 2)), "edges": edges},
            {"costs": rng.normal(size=(3, 4))},
        ]  # fmt: skip

    def argv(self, rng: np.random.Generator) -> list[str]:
        way = int(rng.integers(5))
        if way == 0:
            name, text = readers.TEXTS["uai"]
            path = self.write(name, text.encode())
        elif way == 1:
            path = self.write("costs.txt", b"1 2 3\n0 1 2\n")
        else:
            arrays = dict(self.arrays[int(rng.integers(len(self.arrays)))])
            if rng.random() < 0.7:
                name = sorted(arrays)[int(rng.integers(len(arrays)))]
                arrays[name] = self.changed(rng, arrays[name])
            if rng.random() < 0.1:
                arrays["more"] = np.zeros(2)
            buffer = io.BytesIO()
            np.savez(buffer, **arrays)
            path = self.write("model.npz", buffer.getvalue())
        if rng.random() < 0.4:
            path = self.damaged(rng, path)
        return ["decode", path, *self.options(rng, "decode")]

    def write(self, name: str, data: bytes) -> str:
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def changed(self, rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
        """Return an array of another type or shape, or with another number."""
        pool: list[Any] = [-1, 0, 7, 2**31, -(2**62), np.nan, np.inf, -np.inf, 1e308]
        copy = array.copy()
        with np.errstate(all="ignore"):
            number = np.array(pool[int(rng.integers(len(pool)))]).astype(array.dtype)
        copy.reshape(-1)[int(rng.integers(copy.size))] = number
        ways = (
            copy, copy, array[:1], array[..., None], array.astype(str), array.ravel(), array[:0],
            array.astype(np.float32), array.astype(object).astype("S"), array.T,
        )  # fmt: skip
        return ways[int(rng.integers(len(ways)))]
