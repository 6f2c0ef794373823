"""Sets of very many classes: generated ones, and real ones from the folder STRUCTSOLVE_DATA.

small, mid, lshtc, dmoz, odp: documents under a web directory (`extreme_documents`).
words: the word in the middle of a sentence, from its neighbours: English EWT and CoNLL-2000 (Wall
Street Journal).  Classes are words seen at least twice in training; features are neighbours by
their place, pairs of neighbours, and the bag of the rest.  "words" has a share of the training rows
and 20,000 test rows, "words-all" all of them.
bibtex, rcv1-topics: sets of several labels, a row for every label as in MEMOIR's experiments.  The
copy of RCV1 names no topics, so its classes stand side by side, without their hierarchy.

    python benchmarks/extreme_data.py lshtc lshtc.npz   # X_indptr, X_indices, X_data, y, d, Xt_...
    python benchmarks/extreme_data.py words words.txt   # words.txt and words_test.txt, as text

Text is in the format of the extreme classification repository, which peers read.
"""

from __future__ import annotations

import argparse
import collections
import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from datasets import data_path, label_arrays
from extreme_documents import PRESETS, make_documents, unit_idf

REAL = ("words", "words-all", "bibtex", "rcv1-topics")


@dataclass(frozen=True)
class ExtremeSet:
    """Rows with one class each: CSR of float32 with int32 indices and int64 offsets, int32."""

    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray

    @property
    def n_classes(self) -> int:
        """The largest class number plus one; some numbers may have no row."""
        return int(max(self.y.max(), self.y_test.max())) + 1

    def __str__(self) -> str:
        sizes = np.bincount(self.y)
        sizes = sizes[sizes > 0]
        unseen = np.mean(~np.isin(self.y_test, self.y))
        return (
            f"{self.X.shape[0]} training and {self.X_test.shape[0]} test rows, {self.X.shape[1]} "
            f"features ({self.X.nnz / self.X.shape[0]:.1f} a row), {len(sizes)} classes of "
            f"{sizes.min()} to {sizes.max()} rows (median {np.median(sizes):.0f}); {unseen:.2%} of "
            "the test rows are of other classes"
        )

    def save(self, path: str | Path) -> None:
        """Write ``.npz``, or two files of text: `path`, and one with ``_test`` in its name."""
        path = Path(path)
        if path.suffix != ".npz":
            for rows, labels, name in (
                (self.X, self.y, path),
                (self.X_test, self.y_test, path.with_stem(path.stem + "_test")),
            ):
                write_rows(name, rows, labels, self.n_classes)
            return
        arrays = {
            f"{name}_{key}": getattr(rows, key)
            for name, rows in (("X", self.X), ("Xt", self.X_test))
            for key in ("indptr", "indices", "data")
        }
        begun = path.with_suffix(".new.npz")  # a file that is there is whole
        np.savez(begun, **arrays, d=self.X.shape[1], y=self.y, yt=self.y_test)
        begun.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> ExtremeSet:
        """Read what `save` wrote as ``.npz``."""
        with np.load(path, allow_pickle=False) as file:
            parts = dict(file)
        X, X_test = (
            sp.csr_matrix(
                tuple(parts[f"{name}_{key}"] for key in ("data", "indices", "indptr")),
                shape=(len(parts[f"{name}_indptr"]) - 1, int(parts["d"])),
            )
            for name in ("X", "Xt")
        )
        return _packed(X, parts["y"], X_test, parts["yt"])


def extreme_set(name: str, seed: int = 0) -> ExtremeSet:
    """The set with this name, or from an ``.npz`` file; only generated sets use `seed`."""
    if name.endswith(".npz"):
        return ExtremeSet.load(name)
    if name in PRESETS:
        return _packed(*make_documents(*PRESETS[name], seed=seed))
    if name == "words":
        return _share(words(), 100_000, 20_000)
    if name == "words-all":
        return words()
    if name in ("bibtex", "rcv1-topics"):
        return row_per_label("ml-bibtex" if name == "bibtex" else "ml-rcv1-subset1")
    raise ValueError(f"found {name!r}; expected {', '.join((*PRESETS, *REAL))} or an .npz file")


def _packed(
    X: sp.csr_matrix, y: np.ndarray, X_test: sp.csr_matrix, y_test: np.ndarray
) -> ExtremeSet:
    for part in (X, X_test):
        part.data = part.data.astype(np.float32, copy=False)
        part.indices = part.indices.astype(np.int32, copy=False)
        part.indptr = part.indptr.astype(np.int64, copy=False)
    return ExtremeSet(X, y.astype(np.int32), X_test, y_test.astype(np.int32))


def _share(data: ExtremeSet, rows: int, test_rows: int) -> ExtremeSet:
    """Some training rows, with classes that occur at least twice and the columns in use."""
    pick = np.random.default_rng(0).permutation(data.X.shape[0])[:rows]
    often = np.bincount(data.y[pick], minlength=data.n_classes) >= 2
    number = np.where(often, np.cumsum(often) - 1, -1)
    pick, test = pick[often[data.y[pick]]], np.flatnonzero(often[data.y_test])[:test_rows]
    X, X_test = data.X[pick], data.X_test[test]
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    return _packed(
        X[:, used].tocsr(), number[data.y[pick]], X_test[:, used].tocsr(), number[data.y_test[test]]
    )


def row_per_label(folder: str) -> ExtremeSet:
    """A multi-label set; a set without a split is cut in half."""
    parts = label_arrays(folder)
    sets = []
    for part in ("_train", "_test") if "shape_train" in parts else ("",):
        rows, features, labels = parts[f"shape{part}"]
        indices = parts[f"X{part}_indices"].astype(np.int32)
        values = parts.get(f"X{part}_data", np.ones(len(indices))).astype(np.float32)
        X = sp.csr_matrix((values, indices, parts[f"X{part}_indptr"]), shape=(rows, features))
        sets.append((X, parts[f"Y{part}_indptr"], parts[f"Y{part}_indices"].astype(np.int32)))
    if len(sets) == 1:
        X, indptr, labels = sets[0]
        half = X.shape[0] // 2
        cut = indptr[half]
        sets = [(X[:half], indptr[: half + 1], labels[:cut])]
        sets.append((X[half:], indptr[half:] - cut, labels[cut:]))
    (X, y), (X_test, y_test) = (
        (X[np.repeat(np.arange(X.shape[0]), np.diff(indptr))], labels) for X, indptr, labels in sets
    )
    X, X_test = unit_idf(X, X_test)
    return _packed(X, y, X_test, y_test)


def words(least: int = 2) -> ExtremeSet:
    """The word in the middle of a sentence; classes and features have at least `least` rows."""
    english, journal = "dep-ud-english-ewt/en_ewt-ud-{}.conllu.gz", "seq-conll2000/{}.txt.gz"
    train, test = (
        [*sentences(english.format(part), 1), *sentences(journal.format(part), 0)]
        for part in ("train", "test")
    )
    count = collections.Counter(w for s in train for w in s if w[:1].isalnum())
    classes = {w: k for k, w in enumerate(sorted(w for w, c in count.items() if c >= least))}
    columns: dict[str, int] = {}
    X, y = word_rows(train, classes, columns, grow=True)
    X_test, y_test = word_rows(test, classes, columns, grow=False)
    X, X_test = unit_idf(X, X_test, least)
    return _packed(X, y, X_test, y_test)


def sentences(file: str, column: int) -> Iterator[list[str]]:
    """Words of a CoNLL file in lower case, numbers as "0"."""
    sentence: list[str] = []
    with gzip.open(data_path(file), "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if column == 1 and line.startswith("# "):  # a comment of CoNLL-U
                continue
            if not line.strip():
                if sentence:
                    yield sentence
                sentence = []
                continue
            cells = line.split("\t" if "\t" in line else " ")
            if len(cells) > column and (column == 0 or cells[0].isdigit()):
                word = cells[column].lower()
                sentence.append("0" if word[:1].isdigit() else word)
    if sentence:
        yield sentence


def neighbours(sentence: list[str], i: int) -> Iterator[tuple[str, float]]:
    """Named features of place `i`, and their values; "<>" is beyond the ends."""
    near = {o: sentence[i + o] if 0 <= i + o < len(sentence) else "<>" for o in range(-3, 4)}
    for o, value in ((-3, 0.5), (-2, 0.7), (-1, 1.0), (1, 1.0), (2, 0.7), (3, 0.5)):
        yield f"{o}:{near[o]}", value
    yield f"-2-1:{near[-2]} {near[-1]}", 1.0
    yield f"+1+2:{near[1]} {near[2]}", 1.0
    yield f"-1+1:{near[-1]} {near[1]}", 1.0
    for k, word in enumerate(sentence):
        if k != i and word.isalpha() and len(word) > 3:
            yield f"b:{word}", 0.3


def word_rows(
    sentences: Iterable[list[str]], classes: dict[str, int], columns: dict[str, int], grow: bool
) -> tuple[sp.csr_matrix, np.ndarray]:
    """A row for each word that is a class; `columns` of new features are added with `grow`."""
    indptr, indices, data, y = [0], [], [], []
    for sentence in sentences:
        for i, word in enumerate(sentence):
            if word not in classes:
                continue
            row = {}
            for name, value in neighbours(sentence, i):
                k = columns.setdefault(name, len(columns)) if grow else columns.get(name)
                if k is not None:
                    row[k] = value
            indices += row.keys()
            data += row.values()
            indptr.append(len(indices))
            y.append(classes[word])
    arrays = np.asarray(data, np.float32), np.asarray(indices, np.int32), np.asarray(indptr)
    return sp.csr_matrix(arrays, shape=(len(y), len(columns))), np.asarray(y, np.int32)


def write_rows(path: str | Path, X: sp.csr_matrix, y: np.ndarray, n_classes: int) -> None:
    """Write the extreme classification repository's text: a header, then a line for each row."""
    ends = X.indptr.tolist()
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {n_classes}\n")
        for label, start, end in zip(y.tolist(), ends, ends[1:]):
            pairs = zip(X.indices[start:end].tolist(), X.data[start:end].tolist())
            file.write(" ".join([str(label), *(f"{k}:{value:.9g}" for k, value in pairs)]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=(*PRESETS, *REAL))
    parser.add_argument("out", help="an .npz file, or text")
    parser.add_argument("--seed", type=int, default=0, help="of a generated set")
    args = parser.parse_args()
    data = extreme_set(args.name, args.seed)
    data.save(args.out)
    print(f"{args.out}: {data}")


if __name__ == "__main__":
    main()
