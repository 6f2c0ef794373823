"""Model and checkpoint files with valid checksums and invalid content."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import os
import tempfile
import warnings
import zipfile
import zlib
from typing import Any

import numpy as np

import structsolve
from structsolve import StructuredSVM
from structsolve.utils import container

from . import seeds
from .base import Fault, Target, short

_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 3, 2**31, 2**62, 2**63, 10**30, 0.5, -0.0, float("nan"),
    float("inf"), -float("inf"), 1e308, "", "x", "chain", "../x", "\0", [], {}, [[]], [None],
    {"": 0}, {"__kind__": "solvers", "name": "bcfw", "params": {}}, {"__items__": [[0, 1]]},
    {"__kind__": "structures", "name": "chain", "params": {"x": 1}}, {"__graph__": True},
    {"__function__": "os:system"}, "x" * 5000,
]  # fmt: skip


@functools.cache
def _originals(kind: str) -> list[tuple[Any, dict[str, np.ndarray], Any]]:
    """Content of valid files, and what is needed to use them."""
    contents: list[tuple[Any, dict[str, np.ndarray], Any]] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "a")
        if kind == "model":
            for model, X, Y in seeds.fitted():
                model.save(path)
                contents.append((*container.read(path, "model"), (X, Y)))
            return contents
        for model, X, Y in seeds.fits():
            if "checkpoint" not in model.get_params():
                continue
            model.set_params(checkpoint=path, warm_start=False)
            model.fit(X, Y)
            contents.append((*container.read(path, "checkpoint"), (model, X, Y)))
            os.unlink(path)
    return contents


class Models(Target):
    """Model files: `load`, then the methods of the loaded model."""

    name = "models"
    kind = "model"
    refusals = (ValueError,)

    def __init__(self, folder: str):
        self.path = os.path.join(folder, "a-file.structsolve")
        self.originals = _originals(self.kind)

    def run(self, rng: np.random.Generator) -> None:
        """Damage a file, and use it; see the package."""
        meta, arrays, use = self.originals[int(rng.integers(len(self.originals)))]
        meta, arrays = copy.deepcopy(meta), {k: v.copy() for k, v in arrays.items()}
        told = [_damage(rng, meta, arrays) for _ in range(int(rng.integers(1, 3)))]
        self.say(f"{self.kind} {_name(use)}: {'; '.join(told)}")
        try:
            container.write(self.path, self.kind, meta, arrays)
        except (TypeError, ValueError):
            return  # JSON has no such key
        if rng.random() < 0.1:
            told.append(_bytes(rng, self.path))
            self.say(f"{self.kind} {_name(use)}: {'; '.join(told)}")
        try:
            self.use(use)
        except (ValueError, OSError) as error:
            if "a-file" not in str(error):
                raise Fault(f"{'; '.join(told)}: no name of the file in {short(error)}") from None
            raise
        except Fault as fault:
            raise Fault(f"{'; '.join(told)}: {fault}") from None
        except Exception as error:
            raise Fault(f"{'; '.join(told)}: {type(error).__name__}: {short(error)}") from error

    def use(self, given: Any) -> None:
        X, Y = given
        model = structsolve.load(self.path)
        if model.get_params(deep=False).get("checkpoint") or model.n_jobs == 10**6:
            raise Fault("a file has set checkpoint or n_jobs")
        try:
            model.predict(X)
            model.score(X, Y)
            if isinstance(model, StructuredSVM):
                model.save(self.path)
        except (ValueError, NotImplementedError):
            pass  # what it predicts is no matter of the file
        except TypeError as error:
            raise Fault(f"{type(error).__name__}: {error}") from error


class Checkpoints(Models):
    """Checkpoints: `fit` that resumes from them."""

    name = "checkpoints"
    kind = "checkpoint"

    def use(self, given: Any) -> None:
        model, X, Y = given
        model = structsolve.StructuredSVM.__new__(type(model))
        model.__init__(**given[0].get_params(deep=False))
        model.set_params(checkpoint=self.path, max_iter=4, callbacks=None)
        model.fit(X, Y)


def _name(use: Any) -> str:
    return short(use[0], 90) if len(use) == 3 else ""


def _damage(rng: np.random.Generator, meta: Any, arrays: dict[str, np.ndarray]) -> str:
    """Change one entry, in place; return what was done."""
    if arrays and rng.random() < 0.55:
        name = sorted(arrays)[int(rng.integers(len(arrays)))]
        way = int(rng.integers(12))
        array = arrays[name]
        if way == 0:
            del arrays[name]
        elif way == 1:
            arrays["extra"] = array
        elif way == 2:
            arrays[name] = array.ravel()[: array.size // 2]
        elif way == 3:
            arrays[name] = np.concatenate([array.ravel(), array.ravel()])
        elif way == 4:
            kind = [np.float32, np.int64, np.int8, bool, str][rng.integers(5)]
            with contextlib.suppress(OverflowError, ValueError):  # of words that are no numbers
                arrays[name] = array.astype(kind)
        elif way == 5:
            arrays[name] = np.asarray(array)[..., None]
        elif way == 6:
            arrays[name] = np.zeros(0, array.dtype)
        elif way == 7:
            other = sorted(arrays)[int(rng.integers(len(arrays)))]
            arrays[name] = arrays[other]
        elif array.size and array.dtype.kind in "biuf":
            flat = array.reshape(-1).copy()
            place = int(rng.integers(flat.size))
            pool = [-1, 0, 1, 2**31 - 1, -(2**31), 2**62, -(2**62), 7, 1e300]
            if array.dtype.kind == "f":
                pool += [float("nan"), float("inf"), -float("inf")]
            with np.errstate(all="ignore"):
                value = pool[int(rng.integers(len(pool)))]
                flat[place] = np.array(value).astype(array.dtype)
                if way == 8 and flat.size > 1 and flat.dtype != bool:  # sums stay what they are
                    flat[place - 1] -= flat[place]
            arrays[name] = flat.reshape(array.shape)
            return f"{name}[{place}] = {value}"
        return f"{name}: way {way}"
    places = [place for place in _places(meta) if place]
    place = places[int(rng.integers(len(places)))]
    inner = meta
    for key in place[:-1]:
        inner = inner[key]
    key, way = place[-1], rng.random()
    if way < 0.15 and isinstance(inner, dict):
        del inner[key]
        return f"{place} left out"
    if way < 0.2 and isinstance(inner, dict):
        inner[["checkpoint", "callbacks", "n_jobs", "x"][int(rng.integers(4))]] = 10**6
        return f"{place}: something more"
    if way < 0.22:
        deep: Any = []
        for _ in range(400):
            deep = [deep]
        inner[key] = deep
        return f"{place} = a deep list"
    # A copy: the next damage may change it.
    value = copy.deepcopy(_VALUES[int(rng.integers(len(_VALUES)))])
    if isinstance(inner[key], int) and rng.random() < 0.5:
        value = inner[key] + int(rng.choice([-1, 1, 2**30, 2**60]))
    inner[key] = value
    return f"{place} = {short(value, 60)}"


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [place]
    if isinstance(value, dict):
        for key in value:
            places += _places(value[key], (*place, key))
    elif isinstance(value, list):
        for key in range(min(len(value), 4)):
            places += _places(value[key], (*place, key))
    return places


def _bytes(rng: np.random.Generator, path: str) -> str:
    """Damage what the container says about its parts; checksums are valid again."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["structsolve.json"])
    way = int(rng.integers(6))
    if way == 0:
        parts["structsolve.json"] = b"[" * 100_000
    elif way == 1 and manifest["arrays"]:
        entry = manifest["arrays"][int(rng.integers(len(manifest["arrays"])))]
        name = ["name", "shape", "dtype", "crc32"][int(rng.integers(4))]
        entry[name] = _VALUES[int(rng.integers(len(_VALUES)))]
        parts["structsolve.json"] = json.dumps(manifest).encode()
    elif way == 2:
        name = ["format", "format_version", "kind", "arrays", "meta"][int(rng.integers(5))]
        manifest[name] = _VALUES[int(rng.integers(len(_VALUES)))]
        parts["structsolve.json"] = json.dumps(manifest).encode()
    elif way == 3 and manifest["arrays"]:
        # An array that declares more than it holds.
        header = io.BytesIO()
        shape = [(10**12,), (-2, -3), (0, 2**62), (2**40, 2**40)][int(rng.integers(4))]
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": shape}
        )
        data = header.getvalue() + b"\0" * 48
        parts["arrays/0.npy"] = data
        manifest["arrays"][0] |= {"shape": list(shape), "dtype": "<f8", "crc32": zlib.crc32(data)}
        parts["structsolve.json"] = json.dumps(manifest).encode()
    else:
        name = sorted(parts)[int(rng.integers(len(parts)))]
        data = bytearray(parts[name])
        if data:
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        parts[name] = bytes(data)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return f"bytes, way {way}"
