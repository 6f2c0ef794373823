"""Compiled callables with the arguments of their docstrings, and something else in one place."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import extreme, seeds
from .base import Fault, Target, short

_TYPES = {
    "float64": np.float64, "float32": np.float32, "int32": np.int32, "int64": np.int64,
    "uint64": np.uint64, "uint8": np.uint8, "int8": np.int8, "bool": np.bool_,
}  # fmt: skip
_NUMBERS = [0, 1, -1, 2, 3, 7, 100, -(2**31), 2**31 - 1, 2**62, -(2**63), 2**63 - 1, 2**64]
_FLOATS = [0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, float("inf"), -float("inf"), float("nan")]
# Named in a docstring, but belonging to a layout, potentials or problem that hold them.
_OPERANDS = {
    "oracle", "operator", "parts", "loss", "projection", "potentials", "surrogate", "kbest",
    "rows", "layout", "problem", "search", "psi", "plane", "truths", "masks",
}  # fmt: skip
# Types of parameters that no docstring names.
_BY_NAME = {
    **dict.fromkeys(("w", "average", "gaps", "before", "weights", "values"), "ndarray of float64"),
    **dict.fromkeys(("order", "indptr", "offsets"), "ndarray of int64"),
    **dict.fromkeys(("indices", "columns", "label", "truth"), "ndarray of int32"),
}
# Numbers of repetitions: a large one takes a long time, which is not a fault.
_TIMES = {"max_calls", "max_steps", "repeat", "repeats", "max_iter", "most", "passes", "shape"}
# Threads wait for each other: a single one waits forever.
_ALONE = {"threads": 1, "thread": 0}


class Natives(Target):
    """Functions, classes and methods of compiled modules, found by introspection."""

    name = "natives"
    # Answers of compiled code to nonsense; only a crash or a hang is a fault.
    refusals = (Exception,)

    def __init__(self, folder: str):
        self.live = seeds.live()
        self.targets = _targets()
        self.sound = extreme.sound()

    def run(self, rng: np.random.Generator) -> Any:
        """Make one call; see the package."""
        label, owner, call, documented = self.targets[int(rng.integers(len(self.targets)))]
        key: Any = call
        if owner is not None:
            objects = self.live[owner]
            target = objects[int(rng.integers(len(objects)))]
            key, call = (type(target), call), getattr(target, call)
        try:
            parameters = inspect.signature(call).parameters.values()
        except (TypeError, ValueError):
            parameters = ()
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        by_name = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        if inspect.isclass(call) or not names:
            names = list(documented)
        known = self.sound.get(key)
        if known and rng.random() < 0.9:
            names = names if len(names) == len(known) else [f"_{i}" for i in range(len(known))]
            arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in known]
        else:
            arguments = self._sound(rng, names, documented)
        wrong = []
        for _ in range(int(rng.choice([0, 1, 1, 1, 2, 3]))):
            if names:
                position = int(rng.integers(len(names)))
                arguments[position] = _broken(rng, arguments[position])
                wrong.append(names[position])
        for position, name in enumerate(names):
            if name in _TIMES and isinstance(arguments[position], (int, float)):
                arguments[position] = min(arguments[position], 100)
            arguments[position] = _ALONE.get(name, arguments[position])
        told = f"{label}({', '.join(f'{n}={short(a, 60)}' for n, a in zip(names, arguments))})"
        self.say(told)
        try:
            pairs = list(zip(names, arguments))
            named = {n: a for n, a in pairs if n in by_name}
            call(*(a for n, a in pairs if n not in named), **named)
        except SystemError as error:
            raise Fault(f"{told}: {error}") from error

    def _sound(self, rng: np.random.Generator, names: list[str], documented: dict[str, str]) -> Any:
        """Return arguments that fit together, as far as docstrings tell."""
        given: dict[str, Any] = {}
        sizes = [0, 1, 2, 3, 4, 8, 12]
        for name in names:  # objects first: sizes follow from them
            text = documented.get(name, "")
            value = self._object(rng, name, text)
            if value is not None:
                given[name] = value
                sizes += _sizes(rng, value)
        return [
            given[name]
            if name in given
            else self._plain(rng, name, documented.get(name, ""), sizes)
            for name in names
        ]

    def _object(self, rng: np.random.Generator, name: str, text: str) -> Any:
        kinds = [kind for kind in re.findall(r"[A-Z]\w+", text) if kind in self.live]
        if not kinds and name in _OPERANDS:
            kinds = [kind for kind in ("Operator", "LinearPotentials", "PartLayout", "Surrogate")]
        kinds = [kind for kind in kinds if kind in self.live]
        if not kinds:
            return None
        objects = self.live[kinds[int(rng.integers(len(kinds)))]]
        return objects[int(rng.integers(len(objects)))]

    def _plain(self, rng: np.random.Generator, name: str, text: str, sizes: list[int]) -> Any:
        if not text:
            text = _BY_NAME.get(name, "")
        if "csr_matrix" in text or "sparse matrix" in text:
            shape = [sizes[-1 - int(rng.integers(min(len(sizes), 6)))] for _ in range(2)]
            if rng.random() < 0.7:
                shape[1] = 6  # as the weights in `seeds`
            return sp.random(*shape, 0.5, "csr", np.float32, rng)
        if "ndarray" in text or "array" in text:
            kind = re.search(rf"\b({'|'.join(_TYPES)})\b", text)
            dtype = _TYPES[kind[1]] if kind else np.float64
            size: Any = sizes[-1 - int(rng.integers(min(len(sizes), 6)))]
            if re.search(r"shape \(\w+, \w", text):
                size = (size, int(rng.integers(0, 4)))
            if "label" in name or "truth" in name:
                dtype = np.int32
            array = rng.integers(0, 3, size).astype(dtype)
            if np.dtype(dtype).kind == "f":
                array = (array + rng.normal(size=size)).astype(dtype)
            return array
        if "callable" in text:
            return None if rng.random() < 0.7 else _room
        if "bool" in text:
            return bool(rng.integers(2))
        if "float" in text:
            return float(rng.random())
        if "str" in text or "{" in text:
            choices = re.findall(r'"([\w-]+)"', text) or ["x"]
            return choices[int(rng.integers(len(choices)))]
        if "list" in text or "tuple" in text or "iterable" in text:
            return [rng.normal(size=(2, 3)) for _ in range(int(rng.integers(3)))]
        return int(rng.integers(0, 4))


def _room(name: str, size: int, dtype: Any) -> np.ndarray:
    return np.zeros(size // 2, dtype)


def _sizes(rng: np.random.Generator, value: Any) -> list[int]:
    """Sizes of arrays that belong to an object's first examples."""
    layout = getattr(value, "layout", value)
    sizes: list[int] = []
    try:
        sizes += list(layout.sizes(0)) * 2
    except Exception:
        sizes.append(3)
    for name in ("n", "dim", "n_states"):
        if isinstance(getattr(value, name, None), int):
            sizes.append(getattr(value, name))
    return sizes


def _broken(rng: np.random.Generator, value: Any) -> Any:
    """Return something else for an argument."""
    if isinstance(value, np.ndarray) and rng.random() < 0.8:
        ways = (
            lambda: None,
            lambda: value[: len(value) // 2].copy(),
            lambda: value[:0].copy(),
            lambda: np.concatenate([value, value, value]),
            lambda: value.astype(np.float32),
            lambda: value.astype(np.int64),
            lambda: value.astype(np.int32),
            lambda: value.astype(object),
            lambda: np.repeat(value, 2)[::2],
            lambda: value.reshape(-1, 1),
            lambda: value.tolist(),
            lambda: _filled(value, rng.choice(_FLOATS)),
            lambda: _filled(value, rng.choice([-1, 2**31 - 1, -(2**31), 3, 100])),
        )
        return ways[int(rng.integers(len(ways)))]()
    if sp.issparse(value) and rng.random() < 0.8:
        value = value.copy()
        array = getattr(value, rng.choice(["indptr", "indices", "data"]))
        array[rng.integers(0, len(array), min(len(array), 1))] = rng.choice([-1, 2**31 - 1, 0, 7])
        return value
    if isinstance(value, (int, float)) and rng.random() < 0.8:
        pool = _NUMBERS if isinstance(value, int) and rng.random() < 0.8 else _FLOATS
        return pool[int(rng.integers(len(pool)))]
    pool = [None, "x", 3, 1.5, [], {}, object(), np.zeros(0), np.zeros(3), np.zeros((2, 2))]
    return pool[int(rng.integers(len(pool)))]


def _filled(value: np.ndarray, number: Any) -> np.ndarray:
    copy = value.copy()
    if copy.size:
        copy[copy.size // 2] = np.asarray(number).astype(copy.dtype)
    return copy


def _documented(text: str | None) -> dict[str, str]:
    """The parameters of a numpydoc text, and what stands for their types."""
    types: dict[str, str] = {}
    block = re.search(
        r"Parameters\s*\n\s*-+\n(.*?)(?:\n\s*\n\s*[A-Z]\w+\s*\n\s*-+\n|\Z)", text or "", re.S
    )
    for line in (block[1] if block else "").splitlines():
        entry = re.match(r"\s*([\w, *]+) : (.+)", line)
        if entry:
            names = [name.strip(" *") for name in entry[1].split(",")]
            # "index, value : ndarray of int32 and of float64"
            kinds = entry[2].split(" and of ")
            kinds = [kinds[0], *("ndarray of " + k for k in kinds[1:])]
            types.update(zip(names, kinds if len(kinds) == len(names) else [entry[2]] * len(names)))
    return types


def _class_doc(kind: type) -> str:
    texts = (base.__doc__ or "" for base in inspect.getmro(kind))
    return next((text for text in texts if "Parameters" in text), "")


def _targets() -> list[tuple[str, str | None, Any, dict[str, str]]]:
    """Label, class of the object that has the method, the callable or its name, its parameters."""
    live, targets = seeds.live(), []
    for module in seeds.compiled():
        for name, value in sorted(vars(module).items()):
            if name.startswith("__") or getattr(value, "__module__", None) != module.__name__:
                continue
            label = f"{module.__name__}.{name}"
            if inspect.isclass(value):
                targets.append((label, None, value, _documented(_class_doc(value))))
                for key in sorted(vars(value)):
                    method = getattr(value, key)
                    if key.startswith("_") or not callable(method):
                        continue
                    if label in live:
                        documented = _documented(method.__doc__)
                        targets.append((f"{label}.{key}", label, key, documented))
            elif callable(value):
                targets.append((label, None, value, _documented(value.__doc__)))
    return targets
