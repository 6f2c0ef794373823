"""Loaders of the benchmarks' data: OCR letters, CoNLL-2000, mc-letter, a generated sparse set.

Real sets are read from the folder named by the environment variable STRUCTSOLVE_DATA; the
generated one needs nothing.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

OCR_FOLDS = 10


def data_path(*parts: str) -> Path:
    """A file below STRUCTSOLVE_DATA; exits with one line that says what to do if it is missing."""
    root = os.environ.get("STRUCTSOLVE_DATA")
    if not root:
        raise SystemExit(
            "STRUCTSOLVE_DATA is not set: point it at the folder of data sets, for example\n"
            "    STRUCTSOLVE_DATA=../shared/data python benchmarks/bcfw_ocr.py"
        )
    path = Path(root, *parts)
    if not path.exists():
        raise SystemExit(f"{path} does not exist (STRUCTSOLVE_DATA={root})")
    return path


@dataclass(frozen=True)
class Words:
    """Words of the OCR set, packed: letter rows ``offsets[i]:offsets[i + 1]`` form word i."""

    pixels: np.ndarray  # (letters, 128) uint8, 0 or 1
    labels: np.ndarray  # (letters,) int32, 0..25
    offsets: np.ndarray  # (words + 1,) int64
    n_classes: int = 26

    @property
    def n_words(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_letters(self) -> int:
        return len(self.labels)

    @property
    def max_length(self) -> int:
        return int(np.diff(self.offsets).max())

    def csr(self, constant: bool = False) -> sp.csr_matrix:
        """All letters as one CSR matrix of ones; `constant` appends a column of ones."""
        pixels = self.pixels
        if constant:
            pixels = np.hstack([pixels, np.ones((len(pixels), 1), dtype=pixels.dtype)])
        return sp.csr_matrix(pixels, dtype=np.float64)

    def x_list(self, form: str = "csr", constant: bool = False) -> Any:
        """One "csr" matrix or "dense" array per word, or all "packed": structsolve.Sequences."""
        bounds = list(zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True))
        packed = self.csr(constant)
        if form == "packed":
            import structsolve

            return structsolve.Sequences(packed, np.diff(self.offsets))
        if form == "dense":
            dense = packed.toarray()
            return [dense[a:b] for a, b in bounds]
        if form == "csr":
            return [packed[a:b] for a, b in bounds]
        raise ValueError(f"form must be 'csr', 'dense' or 'packed', got {form!r}")

    def y_list(self, letters: bool = False) -> list[Any]:
        """One label sequence per word: int arrays, or lists of "a".."z" if `letters`."""
        labels: Any = self.labels
        if letters:
            labels = [chr(ord("a") + k) for k in labels]
        return [labels[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    def crfsuite_items(self, ends: bool = True) -> list[list[list[str]]]:
        """Attribute lists for python-crfsuite: pixels, a bias, and with `ends` BOS and EOS."""
        names = np.array([f"p{j}" for j in range(self.pixels.shape[1])])
        rows = [[*names[row.astype(bool)].tolist(), "bias"] for row in self.pixels]
        items = []
        for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            word = rows[a:b]
            if ends:
                word[0] = [*word[0], "BOS"]
                word[-1] = [*word[-1], "EOS"]
            items.append(word)
        return items

    def take(self, words: np.ndarray) -> Words:
        """The words of an index array or mask, repacked in that order."""
        words = np.flatnonzero(words) if words.dtype == bool else words
        lengths = np.diff(self.offsets)[words]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self.offsets[words] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Words(self.pixels[rows], self.labels[rows], offsets, self.n_classes)

    def repeat(self, times: int) -> Words:
        """The set `times` over, for scaling curves."""
        return self.take(np.tile(np.arange(self.n_words), times))

    def stretch(self, times: int) -> Words:
        """Words joined `times` at a time: longer chains from the same letters."""
        offsets = np.append(self.offsets[:-1:times], self.offsets[-1])
        return Words(self.pixels, self.labels, offsets, self.n_classes)


def ocr() -> tuple[Words, np.ndarray]:
    """All OCR words and the fold (0..9) of each."""
    with np.load(data_path("ocr-letters", "letters.npz"), allow_pickle=False) as data:
        words = Words(
            np.unpackbits(data["X"], axis=1),
            data["y"].astype(np.int32),
            data["offsets"].astype(np.int64),
        )
        return words, data["fold"].astype(int)


def ocr_split(fold: int = 0, train: str = "nine") -> tuple[Words, Words]:
    """Training and test words: `fold` is held out ("nine"), or alone trained on ("one")."""
    words, folds = ocr()
    held = words.take(folds == fold), words.take(folds != fold)
    if train == "nine":
        return held[1], held[0]
    if train == "one":
        return held
    raise ValueError(f"train must be 'nine' or 'one', got {train!r}")


def conll2000(part: str) -> tuple[list[list[tuple[str, str]]], list[list[str]]]:
    """CoNLL-2000 chunking, `part` "train" or "test": (word, tag) pairs and IOB chunk tags."""
    sentences, chunks = [], []
    with gzip.open(data_path("seq-conll2000", f"{part}.txt.gz"), "rt", encoding="utf-8") as file:
        for block in file.read().strip().split("\n\n"):
            rows = [line.split() for line in block.splitlines() if line.strip()]
            sentences.append([(word, tag) for word, tag, _ in rows])
            chunks.append([chunk for *_, chunk in rows])
    return sentences, chunks


def rare_names(
    n: int = 3400, n_test: int = 1300, seed: int = 0
) -> tuple[list[list[list[str]]], list[list[str]], list[list[list[str]]], list[list[str]]]:
    """Generated sentences with rare names of six types: attributes and BIO tags of both parts.

    As in WNUT-2017: one word in twenty is of a name, nearly all names of the test part are new, a
    sixth are in lower case, and so are titles of words that are none; endings and neighbours tell
    the type only often.
    """
    rng = np.random.default_rng(seed)
    syllables = [
        a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")
    ]

    def spell(many: int) -> str:
        return "".join(rng.choice(syllables, size=many))

    common = [spell(int(rng.integers(1, 4))) for _ in range(12_000)]
    rank = np.cumsum(1 / np.arange(3, len(common) + 3))
    types = ("person", "location", "corporation", "product", "creative-work", "group")
    share = np.array([0.34, 0.28, 0.11, 0.07, 0.07, 0.13])
    endings = {kind: [spell(1) for _ in range(6)] for kind in types}
    before = {kind: rng.choice(common[20:400], size=8) for kind in types}

    def sentence() -> tuple[list[str], list[str]]:
        words: list[str] = []
        tags: list[str] = []
        length = int(rng.integers(4, 34))
        while len(words) < length:
            if rng.random() >= 0.035:
                word = common[int(np.searchsorted(rank, rng.random() * rank[-1]))]
                words.append(word.title() if rng.random() < 0.06 else word)
                tags.append("O")
                continue
            kind = str(rng.choice(types, p=share))
            if rng.random() < 0.6:
                words.append(str(rng.choice(before[kind])))
                tags.append("O")
            for place in range(int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))):
                ending = str(rng.choice(endings[kind])) if rng.random() < 0.6 else spell(1)
                name = spell(int(rng.integers(1, 3))) + ending
                if rng.random() < 0.2:
                    name = common[int(rng.integers(len(common)))]
                words.append(name if rng.random() < 0.17 else name.title())
                tags.append(("I-" if place else "B-") + kind)
        return words, tags

    made = [sentence() for _ in range(n + n_test)]
    attributes = [chunking_attributes([(word,) for word in words]) for words, _ in made]
    labels = [tags for _, tags in made]
    return attributes[:n], labels[:n], attributes[n:], labels[n:]


def tagged_sentences(n: int, seed: int = 0, tags: int = 9) -> tuple[Any, list[np.ndarray]]:
    """Generated sentences of 8 to 32 words as structsolve.Sequences, and their tags.

    Tags follow one another as in a random chain.  Each of 5000 words is mostly of one tag, more
    frequent ones (as 1/rank) come first, and a sixth of all words are drawn whatever the tag.  A
    row has eight ones: the word and its ending with those of both neighbours, and both pairs of
    neighbours, hashed.
    """
    from structsolve import Sequences

    words, endings, pairs = 5000, 300, 1 << 14
    rng = np.random.default_rng(seed)
    lengths = rng.integers(8, 33, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    follow = rng.dirichlet(np.full(tags, 0.4), tags).cumsum(axis=1)[:, :-1]
    y = np.empty(offsets[-1], dtype=np.int32)
    now = rng.integers(tags, size=n)
    for place in range(lengths.max()):
        some = np.flatnonzero(lengths > place)
        now[some] = (rng.random(len(some))[:, None] > follow[now[some]]).sum(axis=1)
        y[offsets[some] + place] = now[some]
    rank = np.cumsum(1 / np.arange(3, words // tags + 3))
    drawn = np.searchsorted(rank, rng.random(len(y)) * rank[-1])
    kind = np.where(rng.random(len(y)) < 1 / 6, rng.integers(tags, size=len(y)), y)
    word = drawn * tags + kind
    edge = np.zeros(len(y) + 1, dtype=bool)
    edge[offsets] = True

    def beside(values: np.ndarray, none: int) -> list[np.ndarray]:
        before, after = np.roll(values, 1), np.roll(values, -1)
        before[edge[:-1]] = after[edge[1:]] = none
        return [values, before, after]

    ending = rng.integers(endings, size=words + tags)[word]
    columns, width = [], 0
    blocks = [*beside(word, words), *beside(ending, endings)]
    blocks += [(7919 * word + 104729 * other) % pairs for other in blocks[1:3]]
    for values in blocks:
        columns.append(values + width)
        width += int(values.max()) + 1
    indices = np.column_stack(columns).ravel()
    ends = np.arange(len(y) + 1) * len(columns)
    X = sp.csr_matrix((np.ones(len(indices)), indices, ends), shape=(len(y), width))
    return Sequences(X, lengths), np.split(y, offsets[1:-1])


def chunking_attributes(sentence: Sequence[tuple[str, ...]]) -> list[list[str]]:
    """Named binary attributes of each token: word, shape, affixes, tag, neighbours two away.

    Both sides of a benchmark get these; `conll_features` makes them.
    """
    from structsolve.plugins.chain.token_features import conll_features

    return conll_features(sentence)


def chunked_sentences(
    most: int | None = None, most_test: int | None = None
) -> tuple[list[list[list[str]]], list[list[str]], list[list[list[str]]], list[list[str]]]:
    """Attributes and chunk tags of CoNLL-2000's first training sentences and test sentences."""
    parts = (("train", most), ("test", most_test))
    (train, y), (test, y_test) = ([own[:n] for own in conll2000(part)] for part, n in parts)
    items, items_test = ([chunking_attributes(s) for s in part] for part in (train, test))
    return items, y, items_test, y_test


def attribute_matrices(
    train: list[list[list[str]]], test: list[list[list[str]]]
) -> tuple[list[sp.csr_matrix], list[sp.csr_matrix], list[str]]:
    """CSR matrices of attribute lists; columns are the attributes seen in training.

    "bias" is dropped: our model has an intercept.
    """
    skip = {"bias"}
    column: dict[str, int] = {}
    for sentence in train:
        for row in sentence:
            for name in row:
                if name not in skip:
                    column.setdefault(name, len(column))

    def pack(sentences: list[list[list[str]]]) -> list[sp.csr_matrix]:
        matrices = []
        for sentence in sentences:
            rows = [sorted({column[a] for a in row if a in column}) for row in sentence]
            indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
            indices = np.fromiter((j for row in rows for j in row), dtype=np.int32)
            shape = (len(rows), len(column))
            matrices.append(sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape))
        return matrices

    return pack(train), pack(test), list(column)


def chunk_matrices(most: int | None = None, most_test: int | None = None) -> tuple[Any, ...]:
    """`chunked_sentences` with matrices in place of attributes."""
    items, y, test, y_test = chunked_sentences(most, most_test)
    X, X_test, _ = attribute_matrices(items, test)
    return X, y, X_test, y_test


def mc_letter(scale: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """mc-letter as X_train, y_train, X_test, y_test; `scale` maps 0..15 to [-1, 1]."""
    with np.load(data_path("mc-letter", "data.npz"), allow_pickle=False) as data:
        x, xt = data["X_train"].astype(np.float64), data["X_test"].astype(np.float64)
        if scale:
            x, xt = x / 7.5 - 1.0, xt / 7.5 - 1.0
        return x, data["y_train"].astype(int), xt, data["y_test"].astype(int)


def sparse_classes(
    n: int = 10_000,
    d: int = 20_000,
    nnz: int = 50,
    k: int = 1000,
    n_test: int = 2000,
    seed: int = 0,
) -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix, np.ndarray]:
    """A text-like problem: each class prefers 60 of d features, each row has `nnz` of them.

    Three tenths of a row come from its class and the rest from a background that all classes share
    (frequency falling as 1/rank); values are positive and rows have unit length.
    """
    rng = np.random.default_rng(seed)
    topics = rng.integers(d, size=(k, 60))
    background = 1.0 / np.arange(10, d + 10)
    background = np.cumsum(background / background.sum())
    rename = rng.permutation(d)
    total = n + n_test
    y = np.concatenate([rng.permutation(np.arange(n) % k), rng.integers(k, size=n_test)])
    own = 3 * nnz // 10
    columns = np.empty((total, nnz), dtype=np.int64)
    columns[:, :own] = np.take_along_axis(
        topics[y], rng.integers(topics.shape[1], size=(total, own)), axis=1
    )
    common = np.searchsorted(background, rng.random((total, nnz - own)))
    columns[:, own:] = rename[np.minimum(common, d - 1)]
    values = np.abs(rng.normal(size=(total, nnz))) + 0.1
    indptr = np.arange(total + 1) * nnz
    x = sp.csr_matrix((values.ravel(), columns.ravel(), indptr), shape=(total, d))
    x.sum_duplicates()
    x = sp.diags_array(1.0 / np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())) @ x
    x = sp.csr_matrix(x)
    return x[:n], y[:n], x[n:], y[n:]


def label_arrays(folder: str) -> dict[str, np.ndarray]:
    """The arrays of a multi-label set, with each label in its column."""
    with np.load(data_path(folder, "data.npz"), allow_pickle=False) as file:
        parts = dict(file)
    if folder == "ml-rcv1-subset1":
        # The second half of this copy lacks the first label: the others lie one column early.
        half = parts["Y_indptr"][parts["shape"][0] // 2]
        parts["Y_indices"] = parts["Y_indices"] + (np.arange(len(parts["Y_indices"])) >= half)
    return parts


def multilabel(
    name: str, most: int | None = None, scale: bool = True
) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """A multi-label set as X_train, Y_train, X_test, Y_test; `most` keeps the most frequent labels.

    `scale` gives dense features mean 0 and deviation 1 on the training rows, and sparse ones (all
    word counts here) rows of unit length; a set without a split is cut in half.
    """
    parts = label_arrays(f"ml-{name}")
    arrays = []
    for part in ("_train", "_test") if "shape_train" in parts else ("",):
        n, d, labels = parts[f"shape{part}"]

        def csr(which: str, width: int, part: str = part, n: int = n) -> sp.csr_matrix:
            indices, indptr = parts[f"{which}{part}_indices"], parts[f"{which}{part}_indptr"]
            values = parts.get(f"{which}{part}_data", np.ones(len(indices)))
            return sp.csr_matrix((values.astype(float), indices.astype(int), indptr), (n, width))

        x = parts[f"X{part}"] if f"X{part}" in parts else csr("X", d)
        arrays += [x, csr("Y", labels).toarray().astype(int)]
    if len(arrays) == 2:
        x, y = arrays
        half = x.shape[0] // 2
        arrays = [x[:half], y[:half], x[half:], y[half:]]
    x, y, xt, yt = arrays
    if scale and sp.issparse(x):
        from sklearn.preprocessing import normalize

        x, xt = normalize(x), normalize(xt)
    elif scale:
        mean, deviation = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
        x, xt = (x - mean) / deviation, (xt - mean) / deviation
    if most is not None:
        keep = np.sort(np.argsort(-y.sum(axis=0), kind="stable")[:most])
        y, yt = y[:, keep], yt[:, keep]
    return x, y, xt, yt


@dataclass(frozen=True)
class Hierarchical:
    """A set whose labels form a hierarchy: nodes, edges (parent, child), features and label sets.

    Rows of Y are closed under ancestors; a column per node.  Roots are the children of the files'
    root node, which is on in every example and has no column.
    """

    nodes: np.ndarray
    edges: np.ndarray
    X: np.ndarray
    Y: sp.csr_matrix
    X_test: np.ndarray
    Y_test: sp.csr_matrix

    def children(self) -> dict[str, list[str]]:
        """The hierarchy as structsolve takes it, its nodes in the order of the columns."""
        children: dict[str, list[str]] = {name: [] for name in self.nodes.tolist()}
        for parent, child in self.nodes[self.edges].tolist():
            children[parent].append(child)
        return children


def hierarchical(name: str, most: int | None = None, valid: bool = True) -> Hierarchical:
    """The set ``hmc-NAME``; `most` keeps the first training rows, `valid` adds those of validation.

    Missing features get the mean of the training rows, and all are scaled to mean 0, deviation 1.
    """
    with np.load(data_path(f"hmc-{name}", "data.npz"), allow_pickle=False) as data:
        parts = dict(data)
    M = len(parts["node_names"])
    rows = [parts["X_train"].astype(float), parts["X_test"].astype(float)]
    sets = []
    for part in ("train", "valid", "test"):
        if f"X_{part}" in parts:
            indices, indptr = parts[f"Y_{part}_indices"].astype(int), parts[f"Y_{part}_indptr"]
            made = sp.csr_matrix((np.ones(len(indices)), indices, indptr), (len(indptr) - 1, M))
            sets.append(made.astype(np.int32))
    x, y = rows[0], sets[0]
    if "X_valid" in parts and valid:
        x, y = np.vstack([x, parts["X_valid"]]), sp.vstack(sets[:2]).tocsr()
    x, y = x[:most], y[:most]
    mean = np.nan_to_num(np.nanmean(x, axis=0))
    deviation = np.nanstd(x, axis=0)
    deviation[~(deviation > 1e-9)] = 1
    scaled = [np.nan_to_num((part - mean) / deviation) for part in (x, rows[1])]
    child, parent = parts["edges"].astype(int).T
    edges = np.column_stack([parent, child])[parent >= 0]
    return Hierarchical(parts["node_names"], edges, scaled[0], y, scaled[1], sets[-1])
