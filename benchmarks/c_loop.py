"""The C peers: a plain BCFW loop, the hand-tuned floor, and Viterbi and forward loops.

Compiles c_loop.c and c_floor.c at run time with ``gcc -O3 -march=native`` into a temporary
folder and drives them through ctypes.  Run by itself it prints microseconds per word, the
duality gap reached (which shows that it is correct) and nanoseconds per cell of the recursions.

    STRUCTSOLVE_DATA=... python benchmarks/c_loop.py
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, table
from datasets import Words, ocr_split

PAD = 32
NEVER = -1e30
FLAGS = ["-O3", "-march=native", "-fopenmp-simd", "-fPIC", "-shared", "-std=gnu11"]
_i64, _f64 = ctypes.c_int64, ctypes.c_double
_pointer = ctypes.c_void_p


class _Plain(ctypes.Structure):
    _fields_ = [(name, _i64) for name in ("n", "D", "K", "max_length")]
    _fields_ += [(name, _pointer) for name in ("word", "indptr", "indices", "y")]
    _fields_ += [("alpha", _f64)]
    _fields_ += [(name, _pointer) for name in ("w", "node", "edge", "b", "avg")]
    _fields_ += [("b_mean", _f64), ("avg_b", _f64), ("steps", _i64), ("seed", ctypes.c_uint64)]


class _Floor(ctypes.Structure):
    _fields_ = [(name, _i64) for name in ("n", "D", "K", "max_length")]
    _fields_ += [(name, _pointer) for name in ("word", "indptr", "indices", "y")]
    _fields_ += [("alpha", _f64)]
    _fields_ += [(name, _pointer) for name in ("w", "blocks", "b")]
    _fields_ += [("b_mean", _f64), ("seed", ctypes.c_uint64)]


@cache
def library(name: str, *flags: str) -> Any:
    """Compile benchmarks/NAME.c and load it; the folder is removed at exit."""
    folder = tempfile.mkdtemp(prefix="structsolve-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, target = Path(__file__).with_name(f"{name}.c"), Path(folder, f"{name}.so")
    command = ["gcc", *FLAGS, *flags, str(source), "-o", str(target), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit("the C peers need gcc on the PATH") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"gcc failed: {' '.join(command)}\n{error.stderr}") from None
    loaded = ctypes.CDLL(str(target))
    results = {
        "c_loop": [
            "plain_steps",
            "plain_mean_hinge",
            "plain_error",
            "viterbi_textbook",
            "viterbi_jouter",
            "forward_scaled",
            "forward_logsumexp",
            "cpu_seconds",
        ],
        "c_floor": ["floor_steps", "floor_decode", "viterbi_floor", "forward_floor"],
    }
    for function in results[name]:
        getattr(loaded, function).restype = _f64
    return loaded


def _address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


def aligned(*shape: int) -> np.ndarray:
    """Zeros whose first byte lies on a 64-byte boundary."""
    size = int(np.prod(shape))
    raw = np.zeros(size + 8)
    start = (-raw.ctypes.data // 8) % 8
    return raw[start : start + size].reshape(shape)


class _Problem:
    """Packed words shared by both loops."""

    def __init__(self, words: Words, alpha: float, constant: bool) -> None:
        packed = words.csr(constant)
        self.words, self.alpha = words, alpha
        self.n, self.K, self.D = words.n_words, words.n_classes, packed.shape[1]
        self.word = np.ascontiguousarray(words.offsets, dtype=np.int64)
        self.indptr = packed.indptr.astype(np.int64)
        self.indices = packed.indices.astype(np.int32)
        self.y = np.ascontiguousarray(words.labels, dtype=np.int32)
        self.b = np.zeros(self.n)
        self.seconds = 0.0

    def _common(self) -> dict[str, Any]:
        names = ("word", "indptr", "indices", "y")
        arrays = {name: _address(getattr(self, name)) for name in names}
        return dict(
            n=self.n,
            D=self.D,
            K=self.K,
            max_length=self.words.max_length,
            alpha=self.alpha,
            b=_address(self.b),
            **arrays,
        )

    @property
    def packed_bytes(self) -> int:
        return self.word.nbytes + self.indptr.nbytes + self.indices.nbytes + self.y.nbytes


class PlainLoop(_Problem):
    """Plain BCFW, `average=True` with the weighted average of Lacoste-Julien et al.

    `tuned=True` compiles the number of states in and uses the vectorised Viterbi.
    """

    name = "plain C loop"

    def __init__(
        self,
        words: Words,
        alpha: float,
        constant: bool = False,
        average: bool = True,
        seed: int = 1,
        tuned: bool = False,
    ) -> None:
        super().__init__(words, alpha, constant)
        K = self.K
        if tuned:
            self.name = "tuned C loop"
        self.size = (self.D + K) * K
        self.w = np.zeros(self.size)
        self.avg = np.zeros(self.size) if average else None
        self.node, self.edge = np.zeros((words.n_letters, K)), np.zeros((self.n, K, K))
        self.state = _Plain(
            w=_address(self.w),
            avg=_address(self.avg),
            node=_address(self.node),
            edge=_address(self.edge),
            seed=seed,
            **self._common(),
        )
        self._lib = library("c_loop", *([f"-DSTATES={K}"] if tuned else []))

    def run(self, passes: float = 1) -> float:
        """CPU seconds of `passes` times n block steps."""
        seconds = self._lib.plain_steps(ctypes.byref(self.state), _i64(round(passes * self.n)))
        self.seconds += seconds
        return seconds

    def mean_hinge(self, w: np.ndarray) -> float:
        return self._lib.plain_mean_hinge(ctypes.byref(self.state), _pointer(_address(w)))

    def error(self, w: np.ndarray) -> float:
        return self._lib.plain_error(ctypes.byref(self.state), _pointer(_address(w)))

    def primal_dual(self) -> tuple[float, float]:
        """Best primal and dual of the last and of the averaged iterate (mean scaling)."""
        points = [(self.w, self.state.b_mean)]
        if self.avg is not None:
            points.append((self.avg, self.state.avg_b))
        half = [0.5 * self.alpha * float(w @ w) for w, _ in points]
        primal = min(h + self.mean_hinge(w) for h, (w, _) in zip(half, points, strict=True))
        dual = max(b - h for h, (_, b) in zip(half, points, strict=True))
        return primal, dual

    def check(self) -> None:
        """w must equal its definition from the duals; guards the peer against its own bugs."""
        x = self.words.csr(self.words.pixels.shape[1] < self.D)
        nodes = (x.T @ self.node).ravel()
        w = np.concatenate([nodes, self.edge.sum(axis=0).ravel()]) / (self.alpha * self.n)
        np.testing.assert_allclose(self.w, w, atol=1e-8 * np.abs(w).max())

    @property
    def dual_bytes(self) -> int:
        return self.node.nbytes + self.edge.nbytes


class FloorLoop(_Problem):
    """The lower limit: dense padded blocks, AVX-512 registers, no averaging."""

    name = "floor"

    def __init__(self, words: Words, alpha: float, constant: bool = False, seed: int = 1) -> None:
        super().__init__(words, alpha, constant)
        self.w = aligned(self.D + self.K, PAD)
        self.blocks = aligned(self.n, self.D + self.K, PAD)
        self.state = _Floor(
            w=_address(self.w), blocks=_address(self.blocks), seed=seed, **self._common()
        )
        self._lib = library("c_floor")
        self._judge = PlainLoop(words, alpha, constant, average=False)

    def run(self, passes: float = 1) -> float:
        seconds = self._lib.floor_steps(ctypes.byref(self.state), _i64(round(passes * self.n)))
        self.seconds += seconds
        return seconds

    def primal_dual(self) -> tuple[float, float]:
        w = np.ascontiguousarray(self.w[:, : self.K]).ravel()
        half = 0.5 * self.alpha * float(w @ w)
        return half + self._judge.mean_hinge(w), self.state.b_mean - half

    def decode(self) -> tuple[float, np.ndarray]:
        """CPU seconds of decoding every word, and the labels."""
        out = np.empty(self.words.n_letters, dtype=np.int32)
        return self._lib.floor_decode(ctypes.byref(self.state), _pointer(_address(out))), out


def per_word(loop: PlainLoop | FloorLoop, warm: int = 5, passes: int = 3, repeat: int = 5) -> float:
    """Median microseconds per word of a pass, after `warm` passes."""
    loop.run(warm)
    times = [loop.run(passes) for _ in range(repeat)]
    return 1e6 * float(np.median(times)) / (passes * loop.n)


def kernel_times(length: int, states: int, seconds: float = 0.2) -> dict[str, float]:
    """Nanoseconds per cell ((L-1) K^2 cells) of each C recursion, checked against one another."""
    plain, floor = library("c_loop"), library("c_floor")
    fast = library("c_loop", "-ffast-math")  # exp becomes libmvec's
    rng = np.random.default_rng(0)
    theta, T = rng.normal(size=(length, states)), rng.normal(size=(states, states))
    work, back = aligned(length + 3, max(states, PAD)), np.zeros((length, states), dtype=np.int32)
    path = np.zeros(length, dtype=np.int32)
    jobs = {
        "Viterbi textbook": (plain.viterbi_textbook, theta, T),
        "Viterbi j-outer": (plain.viterbi_jouter, theta, T),
        "forward log-sum-exp": (plain.forward_logsumexp, theta, T),
        "forward scaled": (plain.forward_scaled, theta, np.exp(T)),
        "forward scaled, -ffast-math": (fast.forward_scaled, theta, np.exp(T)),
    }
    if states <= PAD:
        wide, table_, table_exp = aligned(length, PAD), aligned(states, PAD), aligned(states, PAD)
        wide[:] = NEVER
        wide[:, :states], table_[:, :states], table_exp[:, :states] = theta, T, np.exp(T)
        jobs["Viterbi floor"] = (floor.viterbi_floor, wide, table_)
        jobs["forward floor"] = (floor.forward_floor, wide, table_exp)
    out, values = {}, {}
    cells = (length - 1) * states * states
    for name, (function, a, b) in jobs.items():
        extra = [_address(back), _address(path)] if name.startswith("Viterbi") else []
        pointers = [_pointer(v) for v in (_address(a), _address(b))]
        call = [
            *pointers,
            _i64(length),
            _i64(states),
            _pointer(_address(work)),
            *(_pointer(v) for v in extra),
        ]
        values[name] = function(*call)
        # ctypes costs about 1 us a call: time it on an empty chain and subtract
        empty = [*call[:2], _i64(1), *call[3:]]
        count = max(3, int(seconds / max(cells * 1e-9, 2e-6) / 10))

        def cost(arguments: list[Any], function: Any = function, count: int = count) -> float:
            best = np.inf
            for _ in range(15):
                with Clock() as clock:
                    for _ in range(count):
                        function(*arguments)
                best = min(best, clock.cpu / count)
            return best

        out[name] = 1e9 * (cost(call) - cost(empty)) / cells
    for kind in ("Viterbi", "forward"):
        same = [v for k, v in values.items() if k.startswith(kind)]
        np.testing.assert_allclose(same, same[0], rtol=1e-10)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passes", type=int, default=20)
    args = parser.parse_args()
    header("C peers: BCFW on OCR letters and dynamic-programming kernels")
    rows = []
    for title, split, c in (("1of10, C=1", "one", 1.0), ("9of10, C=.02", "nine", 0.02)):
        words, _ = ocr_split(0, split)
        for constant in (False, True):
            for make in (
                lambda w, a, k: PlainLoop(w, a, k, average=False),
                lambda w, a, k: PlainLoop(w, a, k, average=True),
                lambda w, a, k: PlainLoop(w, a, k, average=True, tuned=True),
                FloorLoop,
            ):
                loop = make(words, 1.0 / (c * words.n_words), constant)
                micro = per_word(loop)
                loop.run(max(0, args.passes - 20))
                primal, dual = loop.primal_dual()
                if isinstance(loop, PlainLoop):
                    loop.check()
                averaged = isinstance(loop, PlainLoop) and loop.avg is not None
                rows.append(
                    [
                        title,
                        loop.D,
                        loop.name + (", averaged" if averaged else ""),
                        micro,
                        primal / loop.alpha,
                        dual / loop.alpha,
                        f"{100 * (primal - dual) / primal:.2f} %",
                    ]
                )
    columns = ["problem", "features", "loop", "us per word", "primal", "dual", "gap, 20 passes"]
    print(table(columns, rows))
    rows = []
    for length, states in ((8, 26), (1000, 26), (100, 200)):
        rows += [
            [f"L={length} K={states}", name, t] for name, t in kernel_times(length, states).items()
        ]
    print(table(["chain", "kernel", "ns per cell"], rows))


if __name__ == "__main__":
    main()
