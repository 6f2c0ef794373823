"""Multi-label sets of many labels: documents of several labels from a seed, and real ones.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/extreme_label_data.py bibtex set.npz

A generated document has one to five labels.  Some are siblings of the first one, others come from
the whole directory by their frequency.  Each of its words is drawn as in ``extreme_documents.py``,
for one of its labels.  A tenth of the labels is lost, because editors forget some.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from datasets import label_arrays
from extreme_documents import MIX, SUBJECTS, Directory, Language, unit_idf, zipf

REAL = {"bibtex": "ml-bibtex", "rcv1-topics": "ml-rcv1-subset1"}
#: Labels, words, training documents, test documents and mean tokens.
GENERATED = {"labels": (1000, 30_000, 10_000, 5_000, 80)}

Rows = tuple[sp.csr_matrix, sp.csr_matrix]


def label_sets(name: str, seed: int = 0) -> tuple[Rows, Rows]:
    """Training and test rows of unit length with their indicators; only generated sets use `seed`.

    Labels without a training row are left out.
    """
    X, Y, X_test, Y_test = generated(*GENERATED[name], seed) if name in GENERATED else real(name)
    X, X_test = unit_idf(X, X_test)
    used = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    return (X, Y[:, used].tocsr()), (X_test, Y_test[:, used].tocsr())


def real(name: str) -> tuple[sp.csr_matrix, ...]:
    """Rows and indicators of a set; one without a split is cut in random halves."""
    parts = label_arrays(REAL[name])
    sets: list[sp.csr_matrix] = []
    for part in ("_train", "_test") if "shape_train" in parts else ("",):
        rows, *widths = parts[f"shape{part}"]
        for what, width in zip("XY", widths, strict=True):
            indices = parts[f"{what}{part}_indices"].astype(np.int32)
            values = parts.get(f"{what}{part}_data", np.ones(len(indices))).astype(np.float32)
            indptr = parts[f"{what}{part}_indptr"]
            sets.append(sp.csr_matrix((values, indices, indptr), shape=(rows, width)))
    if len(sets) == 2:
        # The order of the rows is that of their days: halves in this order differ.
        order = np.random.default_rng(0).permutation(sets[0].shape[0])
        halves = np.array_split(order, 2)
        sets = [part[rows] for rows in halves for part in sets]
    return tuple(sets)


def generated(
    labels: int, words: int, docs: int, test: int, tokens: int, seed: int
) -> tuple[sp.csr_matrix, ...]:
    """Counts of words as log(1 + count), and indicators: X, Y, X_test, Y_test."""
    rng = np.random.default_rng(seed)
    n, language, directory = docs + test, Language(rng, words), Directory.draw(rng, labels)
    own = language.topics(labels, 40)
    subjects = language.topics((directory.group[-1] + 1) * SUBJECTS, 60)
    tops = language.topics(directory.top[-1] + 1, 1000)
    share = rng.permutation((1.0 + np.arange(labels)) ** -0.75)
    first, other = rng.choice(labels, (2, n, 5), p=share / share.sum())
    near = directory.sibling(rng, np.repeat(first[:, :1], 5, axis=1).ravel()).reshape(n, 5)
    sets = np.where(rng.random((n, 5)) < 0.6, near, other)
    sets[:, 0] = first[:, 0]
    size = 1 + rng.choice(5, n, p=(0.3, 0.3, 0.2, 0.12, 0.08))

    lengths = np.maximum(8, rng.lognormal(np.log(tokens) - 0.32, 0.8, n)).astype(np.int64)
    document = np.repeat(np.arange(n), lengths)
    source = rng.choice(len(MIX), document.size, p=MIX)
    of = sets[document, (rng.random(document.size) * size[document]).astype(np.int64)]
    subject = directory.group[of] * SUBJECTS + (of + document) % SUBJECTS
    rare = language.topics(n, 5, 0.6)
    word = language.draw(document.size, 1.05)
    topics = [
        (tops, directory.top[of]),
        (subjects, subject),
        (own, of),
        (own, directory.sibling(rng, of)),
        (rare, document),
    ]
    for k, (table, row) in enumerate(topics, 1):
        here = np.flatnonzero(source == k)
        word[here] = table[row[here], zipf(rng, table.shape[1], here.size, 0.9)]
    X = sp.csr_matrix((np.ones(word.size, np.float32), (document, word)), shape=(n, words))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    told = (np.arange(5) < size[:, None]) & (rng.random((n, 5)) < 0.9)
    told[np.arange(n), np.where(told.any(axis=1), told.argmax(axis=1), 0)] = True
    row, place = np.nonzero(told)
    Y = sp.csr_matrix((np.ones(len(row), np.float32), (row, sets[row, place])), shape=(n, labels))
    Y.data[:] = 1
    Y.sum_duplicates()
    Y.data[:] = 1
    return X[:docs], Y[:docs], X[docs:], Y[docs:]


def save(path: str | Path, sets: tuple[Rows, Rows]) -> None:
    """Write both matrices of both parts to one ``.npz``."""
    arrays = {}
    for part, pair in zip(("train", "test"), sets, strict=True):
        for what, matrix in zip("XY", pair, strict=True):
            for key in ("data", "indices", "indptr", "shape"):
                arrays[f"{part}_{what}_{key}"] = np.asarray(getattr(matrix, key))
    begun = Path(path).with_suffix(".new.npz")  # a file that is there is whole
    np.savez(begun, **arrays)
    begun.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=(*GENERATED, *REAL))
    parser.add_argument("path")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    sets = label_sets(args.name, args.seed)
    save(args.path, sets)
    (X, Y), (X_test, _) = sets
    print(
        f"{X.shape[0]} training and {X_test.shape[0]} test rows, {X.shape[1]} features, "
        f"{Y.shape[1]} labels, {Y.nnz / X.shape[0]:.2f} a row"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
