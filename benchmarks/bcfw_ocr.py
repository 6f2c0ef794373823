"""Microseconds per word of a BCFW pass on OCR letters, its growth, and the memory it takes.

Nine folds (6251 words), the 128 pixels and a constant as 129 binary CSR features, no start or
end tables, C = .02.  Ours against the plain C loop, the tuned C loop and the floor (c_loop.py).
Growth: CPU time of a pass over 1/8 to 4 times the words, and over the same letters joined to
words 1 to 8 times as long; the slope of a straight line through the logarithms is printed.
Memory: bytes beyond the input lists, in a separate process, for 1 and 10 times the words.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from c_loop import FloorLoop, PlainLoop
from common import Clock, header, one_thread, ratio, structsolve_or_none, table
from datasets import Words, ocr_split
from ours import chain_svm, oracle_passes, plain_bcfw, uncertified

C = 0.02


def alpha_of(words: Words) -> float:
    return 1.0 / (C * words.n_words)


class OurLoop:
    """Our estimator with the methods of the C loops."""

    def __init__(self, structsolve: Any, words: Words, plain: bool) -> None:
        self.structsolve, self.words, self.plain, self.n = structsolve, words, plain, words.n_words
        self.name = "ours, plain BCFW" if plain else "ours, default solver"
        self.x, self.y = words.x_list("packed", constant=True), words.y_list()
        self.model: Any = None

    def fit(self, passes: int) -> float:
        """CPU seconds of a fit of `passes` passes, packing included."""
        make = plain_bcfw if self.plain else uncertified
        self.model = chain_svm(
            self.structsolve, alpha_of(self.words), passes, intercept=False, solver=make()
        )
        gc.collect()
        with Clock() as clock:
            self.model.fit(self.x, self.y)
        return clock.cpu

    def micro_per_word(self, passes: int = 10, repeat: int = 3) -> float:
        """Median of (time of warm + `passes` passes) - (time of warm passes).

        Divided by the oracle calls of these passes; a solver with a cache makes fewer.
        """
        out = []
        for _ in range(repeat):
            short, calls = self.fit(5), oracle_passes(self.model, self.n)
            more = self.fit(5 + passes) - short
            out.append(more / (oracle_passes(self.model, self.n) - calls))
        return 1e6 * float(np.median(out)) / self.n


def c_micro(loop: PlainLoop | FloorLoop, passes: int, repeat: int) -> float:
    loop.run(5)
    return 1e6 * float(np.median([loop.run(passes) for _ in range(repeat)])) / (passes * loop.n)


def side_by_side(structsolve: Any, words: Words, repeat: int) -> None:
    rows = []
    loops: list[Any] = [
        PlainLoop(words, alpha_of(words), True),
        PlainLoop(words, alpha_of(words), True, tuned=True),
        FloorLoop(words, alpha_of(words), True),
    ]
    times = [c_micro(loop, 5, 2 * repeat + 1) for loop in loops]
    sizes = [loops[0].dual_bytes, loops[1].dual_bytes, loops[2].blocks.nbytes]
    if structsolve:
        for plain in (True, False):
            loop = OurLoop(structsolve, words, plain)
            loops.append(loop)
            times.append(loop.micro_per_word(repeat=repeat))
            sizes.append(None)
        # the machine's speed may have changed: the peers run once more
        times[:3] = [min(a, c_micro(b, 5, repeat)) for a, b in zip(times, loops[:3], strict=False)]
    for loop, micro, size in zip(loops, times, sizes, strict=True):
        rows.append(
            [
                loop.name,
                micro,
                ratio(times[0], micro),
                ratio(times[1], micro),
                ratio(times[2], micro),
                f"{size / 2**20:.0f} MB" if size else "see below",
            ]
        )
    print(
        table(
            [
                "loop (averaged, but the floor)",
                "us per word",
                "plain C / this",
                "tuned C / this",
                "floor / this",
                "duals",
            ],
            rows,
        )
    )


def slope(sizes: list[float], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(structsolve: Any, words: Words) -> None:
    eighth = words.n_words // 8
    by_words = [words.take(np.arange(eighth * m)) for m in (1, 2, 4, 8)]
    by_words += [words.repeat(m) for m in (2, 4)]
    by_length = [words.stretch(m) for m in (1, 2, 4, 8)]
    makers: dict[str, Any] = {
        "plain C loop": lambda w: c_micro(PlainLoop(w, alpha_of(w), True), 3, 3) * w.n_words
    }
    if structsolve:
        makers["ours, plain BCFW"] = lambda w: (
            OurLoop(structsolve, w, True).micro_per_word(5, 1) * w.n_words
        )
        makers["ours, default solver"] = lambda w: (
            OurLoop(structsolve, w, False).micro_per_word(5, 1) * w.n_words
        )
    rows = []
    for name, make in makers.items():
        a = [make(w) for w in by_words]
        b = [make(w) / w.n_words for w in by_length]
        per_word = [f"{t / w.n_words:.1f}" for t, w in zip(a, by_words, strict=True)]
        lengths = [w.n_letters / w.n_words for w in by_length]
        per_letter = [f"{t / length:.2f}" for t, length in zip(b, lengths, strict=True)]
        rows.append(
            [
                name,
                " ".join(per_word),
                slope([w.n_words for w in by_words], a),
                " ".join(per_letter),
                slope(lengths, b),
            ]
        )
    print(
        "words: "
        + " ".join(str(w.n_words) for w in by_words)
        + "; letters a word: "
        + " ".join(f"{w.n_letters / w.n_words:.1f}" for w in by_length)
        + "\n"
    )
    print(
        table(
            ["loop", "us per word", "exponent, words", "us per letter", "exponent, letters"], rows
        )
    )


def status_bytes(key: str) -> int:
    """A size from /proc/self/status (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def memory_child(times: int, plain: bool, trace: bool) -> None:
    """In a child process: bytes of a fit above the input, as JSON on the last line."""
    import tracemalloc

    one_thread()
    warnings.simplefilter("ignore")
    structsolve = structsolve_or_none()
    words = ocr_split(0, "nine")[0].repeat(times)
    loop = OurLoop(structsolve, words, plain)
    small = OurLoop(structsolve, words.take(np.arange(20)), plain)
    small.fit(2)  # imports and lazy set-up are not memory of the problem
    gc.collect()
    if trace:
        tracemalloc.start()
        loop.fit(12)
        peak = tracemalloc.get_traced_memory()[1]
    else:
        # Memory that the allocator kept after it was freed would hide the memory of the fit.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        before = status_bytes("VmRSS")
        loop.fit(12)
        peak = status_bytes("VmHWM") - before
    packed = words.csr(True)
    print(
        json.dumps(
            {
                "peak": peak,
                "packed": packed.indices.nbytes
                + packed.indptr.nbytes
                + words.labels.nbytes
                + words.offsets.nbytes,
                "own": getattr(loop.model, "memory_", None),
            }
        )
    )


def memory(structsolve: Any) -> None:
    words, _ = ocr_split(0, "nine")
    plain = PlainLoop(words, 1.0, True)
    mb = 2.0**20
    print(
        f"plain C loop: packed examples {plain.packed_bytes / mb:.1f} MB (no copy of the ones), "
        f"part-space duals {plain.dual_bytes / mb:.1f} MB; n copies of w would be "
        f"{words.n_words * plain.w.nbytes / mb:.0f} MB\n"
    )
    if not structsolve:
        return
    rows = []
    for kind in (True, False):
        for times in (1, 10):
            got = []
            for trace in (False, True):
                command = [sys.executable, __file__, "--memory-child", str(times)]
                command += ["--plain"] * kind + ["--trace"] * trace
                run = subprocess.run(command, capture_output=True, text=True, check=True)
                got.append(json.loads(run.stdout.splitlines()[-1]))
            duals = times * plain.dual_bytes
            rows.append(
                [
                    "plain BCFW" if kind else "default solver",
                    f"{times}x",
                    got[0]["packed"] / mb,
                    duals / mb,
                    got[0]["peak"] / mb,
                    got[1]["peak"] / mb,
                    (2 * got[0]["packed"] + duals) / mb,
                    json.dumps(got[0]["own"]),
                ]
            )
    print(
        table(
            [
                "ours",
                "words",
                "packed MB",
                "dense duals MB",
                "peak RSS over input MB",
                "peak tracemalloc MB",
                "target: at most",
                "own accounting",
            ],
            rows,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--skip", nargs="*", default=[], choices=["growth", "memory"])
    parser.add_argument("--memory-child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--trace", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory_child:
        memory_child(args.memory_child, args.plain, args.trace)
        return
    header("BCFW pass on OCR letters (nine folds, 129 binary features)")
    structsolve = structsolve_or_none()
    words, _ = ocr_split(0, "nine")
    side_by_side(structsolve, words, args.repeat)
    if "growth" not in args.skip:
        growth(structsolve, words)
    if "memory" not in args.skip:
        memory(structsolve)


if __name__ == "__main__":
    main()
