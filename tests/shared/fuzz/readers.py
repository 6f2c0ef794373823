"""Data files that are cut, mixed up, or have content that nobody writes."""

from __future__ import annotations

import gzip
import io
import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from structsolve.io import read_examples
from structsolve.io.graphs import read_hierarchy, read_network
from structsolve.io.npz import write_npz
from structsolve.plugins.mrf.uai import read_uai

from .base import Fault, Target, short

_CONLLU = (
    "# text = He ran\n1\tHe\the\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n2\tran\trun\tVERB\tVBD\t_\t0\troot"
    "\t_\t_\n\n1-2\tvamos\t_\t_\t_\t_\t_\t_\t_\t_\n1\tva\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
    "2\tnos\t_\tPRON\t_\t_\t1\tobj\t_\t_\n1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)
TEXTS = {
    "conll": ("a.txt", "He PRP B-NP\nran VBD B-VP\n\n-DOCSTART- x y\nYes UH O\n"),
    "conllu": ("a.conllu", _CONLLU),
    "crfsuite": ("a.crf", "B\tw=He\tn:2.5\nO\tw=ran\ta\\:b:1\n\nO\tx\n"),
    "svmlight": ("a.svm", "2 qid:1 1:0.5 3:1\n0 qid:1 2:1 # x\n1 qid:2 1:2\n"),
    "ndjson": ("a.ndjson", '{"x": [[0.5, 1], [2, 3]], "y": ["a", "b"]}\n'
               '{"x": [], "y": {"tuple": [1]}}\n'),
    "extreme": ("a.svm", "2,7 1:0.5 3:1e1 # x\n\n0 2:1\n"),
    "extreme header": ("a.txt", "3 4 9\n7,2 0:.5 3:1\n\n1 2:-1.25\n"),
    "uai": ("a.uai", "MARKOV 3\n2 3 2\n2\n2 1 0\n3 2 0 1\n6\n1 0 1 1 2 3\n12\n1 0 2 0 3 1"
                     " 0 0 1 1 2 3\n"),
    "hierarchy": ("a.tsv", "bird owl\nbird duck\ncat # no bird\n"),
    "hierarchy json": ("a.json", '{"r": ["a", "b"], "a": ["c"]}'),
    "hierarchy gml": ("a.gml", 'graph [ directed 1 node [ id 0 label "a" ] node [ id 1 label "b" ]'
                      " edge [ source 0 target 1 ] ]"),
    "network": ("a.json", '{"demand": {"s": -1, "t": 1}, "arcs": [["s", "t", 2], ["s", "t2"]]}'),
}  # fmt: skip
_PIECES = [
    b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\t", b" ", b":", b"#", b"-1", b"0",
    b"1e999", b"nan", b"99999999999999999999", b"9" * 5000, b"[" * 3000, b'"', b"\\", b"qid:",
    b"1-2", b"1.1", "\u2028\u00e9".encode(), b"null", b"true", b"2147483648", b"{}", b"]",
]  # fmt: skip


class Readers(Target):
    """Every reader of data files."""

    name = "readers"
    refusals = (ValueError,)

    def __init__(self, folder: str):
        self.folder = folder
        self.arrays = [_npz(folder, kind) for kind in ("dense", "csr", "sequences")]

    def run(self, rng: np.random.Generator) -> Any:
        """Read a damaged file; see the package."""
        kind = [*TEXTS, "npz"][int(rng.integers(len(TEXTS) + 1))]
        if kind == "npz":
            name, data = "a.npz", self.npz(rng)
        else:
            name, text = TEXTS[kind]
            data = text.encode()
            for _ in range(int(rng.integers(1, 4))):
                data = mixed(rng, data)
            if rng.random() < 0.15 and "gml" not in kind:
                data, name = gzip.compress(data, mtime=0), f"{name}.gz"
                if rng.random() < 0.5:
                    data = mixed(rng, data)
        path = os.path.join(self.folder, f"the-{name}")
        with open(path, "wb") as file:
            file.write(data)
        self.say(f"{kind}: {short(data, 700)}")
        try:
            if kind == "uai":
                return read_uai(path)
            if kind.startswith("hierarchy"):
                return read_hierarchy(path)
            if kind == "network":
                return read_network(path)
            return read_examples(path, kind.split()[0])
        except (ValueError, OSError) as error:
            if "the-a" not in str(error):
                raise Fault(f"{kind} {short(data)}: no file in {short(error)}") from None
            raise

    def npz(self, rng: np.random.Generator) -> bytes:
        arrays = dict(self.arrays[int(rng.integers(len(self.arrays)))])
        name = sorted(arrays)[int(rng.integers(len(arrays)))]
        array, way = arrays[name], int(rng.integers(8))
        if way == 0:
            del arrays[name]
        elif way == 1:
            arrays[name] = array[: len(array) // 2]
        elif way == 2:
            arrays[name] = array.astype([np.float64, np.int8, bool, str][int(rng.integers(4))])
        elif way == 3:
            arrays[name] = array[..., None]
        elif array.size and array.dtype.kind in "iuf":
            array = array.copy()
            pool = [-1, 0, 2**31 - 1, -(2**31), 5, 2**62]
            with np.errstate(all="ignore"):
                value = np.array(pool[int(rng.integers(len(pool)))]).astype(array.dtype)
            array.reshape(-1)[int(rng.integers(array.size))] = value
            arrays[name] = array
        buffer = io.BytesIO()
        (np.savez_compressed if rng.random() < 0.3 else np.savez)(buffer, **arrays)
        data = buffer.getvalue()
        return mixed(rng, data) if rng.random() < 0.3 else data


def _npz(folder: str, kind: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3))
    y = np.arange(6) % 3
    path = os.path.join(folder, "sound.npz")
    if kind == "sequences":
        write_npz(path, [X[:2], X[2:]], [y[:2], y[2:]])
    else:
        write_npz(path, sp.csr_matrix(X) if kind == "csr" else X, y)
    with np.load(path) as archive:
        return {name: archive[name] for name in archive}


def mixed(rng: np.random.Generator, data: bytes) -> bytes:
    if not data:
        return data
    a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    piece = _PIECES[int(rng.integers(len(_PIECES)))]
    ways = (
        lambda: data[:a] + piece + data[a:],
        lambda: data[:a] + piece + data[min(a + len(piece), len(data)) :],
        lambda: data[:a] + data[b:],
        lambda: data[:b] + data[a:],
        lambda: data[:a],
        lambda: data[:a] + bytes([int(rng.integers(256))]) + data[a + 1 :],
    )
    return ways[int(rng.integers(len(ways)))]()
