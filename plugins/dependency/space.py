"""Dependency trees: arborescences over the words of a sentence below an artificial root."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.packed import Examples
from structsolve.examples.stacking import pieces
from structsolve.plugins.dependency._shape import first_fault
from structsolve.plugins.dependency.arcs import (
    Arcs,
    as_pairs,
    check_heads,
    check_trees,
    split_relations,
    stack_arcs,
)
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.params import parameters


@parameters
class DependencyStructure(Structure):
    """Trees over the words of a sentence, scored arc by arc.

    Parameters
    ----------
    projective : bool, default=False
        Trees without crossing arcs only (Eisner's algorithm, O(n^3)).  By default all trees
        (maximum spanning arborescences, O(n^2)).
    single_root : bool, default=True
        The root has exactly one child, as in Universal Dependencies.
    labelled : bool, optional
        Arcs have relations ("nsubj", "obj").  By default if those of y have; layers need True.

    Notes
    -----
    Y is a list with the heads of each sentence: for every word the number of its head, words from
    1, and 0 for the root, as CoNLL files count.  For labelled trees it has a pair (head, relation)
    for every word; predictions are arrays with the fields "head" and "relation".

    X is an :class:`~structsolve.plugins.dependency.Arcs`, which holds one row of features (dense or
    CSR) for every candidate arc of every sentence, or a list with one array of shape
    ``(n + 1, n, n_features)`` per sentence of n words: entry ``[h, m - 1]`` are the features of the
    arc from head h to word m.  Arcs whose features are all NaN are not candidates, nor are arcs
    from a word to itself.  :class:`~structsolve.plugins.dependency.ArcFeaturizer` makes features of
    sentences.  There is no intercept without relations:
    it would be the same for every tree.

    Losses: "hamming" (words with the wrong head), "normalized-hamming" (their share, 1 minus the
    unlabelled attachment score), "zero-one".  Of labelled trees "hamming" counts wrong relations
    as well (its share is 1 minus the labelled attachment score); "unlabelled-hamming" and
    "normalized-unlabelled-hamming" do not.

    Marginals are those of arcs, tables ``[h, m - 1]`` again, or of arcs with relations, tables
    ``[h, m - 1, relation]`` in the order of ``classes_``: by inside and outside sums where trees
    are projective, else by the matrix-tree theorem.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> near = [np.array([[[float(h == 0), abs(h - m)] for m in (1, 2, 3)] for h in range(4)])]
    >>> model = StructuredSVM("dependency", alpha=0.01).fit(near, [[0, 1, 2]])
    >>> model.predict(near)[0].tolist()
    [0, 1, 2]
    >>> model.predict_marginals(near)[0].sum(axis=0).round(6).tolist()
    [1.0, 1.0, 1.0]
    >>> pairs = [[(0, "root"), (1, "mod"), (2, "mod")]]
    >>> StructuredSVM("dependency", alpha=0.01).fit(near, pairs).predict(near)[0].tolist()
    [(0, 'root'), (1, 'mod'), (2, 'mod')]
    """

    name = "dependency"
    file_format = "conllu"
    layouts = {"labelled": (None, True)}

    projective: bool = False
    single_root: bool = True
    labelled: bool | None = None

    def make_featurizer(self, **params: Any) -> Any:
        """Return a featurizer of sentences, from its state or from arguments as ``n_bits``."""
        from structsolve.plugins.dependency.features import ArcFeaturizer  # heavy: scikit-learn

        return ArcFeaturizer.of_state(params) if "coarse" in params else ArcFeaturizer(**params)

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[DependencySpace, Examples]:
        """Learn the space from training data, and pack these.

        See :meth:`structsolve.Structure.make_space`. ``classes`` are all relations.
        """
        self.check_params()
        arcs, names, intercept = stack_arcs(X), None, False
        heads, relations = split_relations(Y)
        if relations is None and classes is not None:
            raise ValueError("classes: y has heads only, expected pairs (head, relation)")
        if relations is None and self.labelled:
            raise ValueError("y has heads only, expected pairs (head, relation): labelled trees")
        if relations is not None:
            if self.labelled is False:
                raise ValueError("y has relations, expected heads only: labelled is False")
            flat = labels.flatten(relations, arcs.word_offsets)
            names, intercept = labels.learn_classes(flat, classes), fit_intercept
        space = DependencySpace(self, arcs.features.shape[1], names, intercept)
        trees = None if Y is None else (heads, relations)
        return space, space._examples(arcs, trees, strict=True)

    def score_space(self, classes: Any = None, edge: bool = False) -> DependencySpace:
        """Return a space without features: one score per arc, or one for each of its relations."""
        self.check_params()
        packing.no_edges(edge, self.name)
        if not self.labelled:
            # Layers then know that the last axis of a batch's scores is that of words.
            if classes is not None:
                raise ValueError("classes: dependency trees have none without labelled=True")
            return DependencySpace(self, 0)
        return DependencySpace(self, 0, labels.class_names(classes, self.name))

    def check_params(self) -> None:
        """Refuse parameters that are not True or False; see :meth:`Structure.check_params`."""
        for name in ("projective", "single_root", "labelled"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)) and (name, value) != ("labelled", None):
                raise ValueError(f"{name} is {value!r}, expected True or False")

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> DependencySpace:
        """Rebuild a space from what its ``state()`` returned."""
        classes = arrays.get("classes")
        return DependencySpace(self, state["n_features"], classes, state["intercept"])

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return n small random examples, some of them with missing arcs."""
        rng = np.random.default_rng(random_state)
        X, Y = [], []
        for i in range(n):
            words = int(rng.integers(1, size + 1))
            y = draw_tree(words, rng, self.projective, self.single_root)
            x = rng.integers(-2, 3, (words + 1, words, 2)).astype(float)
            if i % 2:
                barred = rng.random((words + 1, words)) < 0.2
                barred[y, np.arange(words)] = False
                x[barred] = np.nan
            X.append(x)
            Y.append(y)
        if self.labelled:
            # The first sentences have all relations, so that any two of them have.
            drawn = [np.array(["mod", "obj"])[rng.integers(0, 2, len(y))] for y in Y]
            drawn[0][0] = "obj"
            drawn[1 % n][-1] = "mod"
            Y = [as_pairs(y, names) for y, names in zip(Y, drawn)]
        return X, Y


def draw_tree(n: int, rng: np.random.Generator, projective: bool, single_root: bool) -> np.ndarray:
    """Return the heads of a random tree over n words; every tree may come.

    Parameters
    ----------
    n : int
    rng : Generator
    projective, single_root : bool
        See :class:`DependencyStructure`.

    Returns
    -------
    ndarray of int32 of shape (n,)
    """
    heads = np.zeros(n, dtype=np.int32)
    if not projective:
        order = rng.permutation(n) + 1
        for k in range(1, n):  # below a word before it, or the root
            above = rng.integers(int(single_root), k + 1)
            heads[order[k] - 1] = order[above - 1] if above else 0
        return heads
    spans = [(1, n + 1, 0)]  # words without a head yet, and the word that they hang on
    while spans:
        begin, end, head = spans.pop()
        while begin < end:
            stop = end if head == 0 and single_root else int(rng.integers(begin + 1, end + 1))
            top = int(rng.integers(begin, stop))
            heads[top - 1] = head
            spans += [(begin, top, top), (top + 1, stop, top)]
            begin = stop
    return heads


def all_trees(n: int, projective: bool = False, single_root: bool = False) -> np.ndarray:
    """Return the heads of all trees over n words, for small n.

    Parameters
    ----------
    n : int
        Words: up to 6 or so.
    projective, single_root : bool, default=False
        See :class:`DependencyStructure`.

    Returns
    -------
    ndarray of int32 of shape (trees, n)

    Examples
    --------
    >>> from structsolve.plugins.dependency.space import all_trees
    >>> len(all_trees(3)), len(all_trees(3, projective=True)), len(all_trees(3, single_root=True))
    (16, 12, 9)
    """
    offsets = np.array([0, n], dtype=np.int64)
    rows = np.array(list(product(range(n + 1), repeat=n)), dtype=np.int32)
    rows = rows[(rows != np.arange(1, n + 1)).all(axis=1)]
    kept = [first_fault(row, offsets, single_root, projective) is None for row in rows]
    return rows[kept]


class DependencySpace(Space):
    """One row of the block "arc" for each candidate arc, word by word.

    A label is a number for every word: its head or, if trees are labelled, its head times the
    number of relations, plus the number of its relation among ``classes_``.

    Parameters
    ----------
    structure : DependencyStructure
    n_features : int
        Number of features of an arc.
    classes : ndarray, optional
        Sorted relations.
    intercept : bool, default=False
        Relations have a constant feature.
    """

    structure: DependencyStructure

    def __init__(
        self,
        structure: DependencyStructure,
        n_features: int,
        classes: Any = None,
        intercept: bool = False,
    ):
        self.labelled = classes is not None
        self.width = 1 if classes is None else len(classes)
        block = Block("arc", "node", (self.width,), ("class" if self.labelled else "score",))
        super().__init__(structure, WeightLayout([block], n_features, 0, intercept))
        if self.labelled:
            self.classes_ = classes

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Check and stack arcs and trees; see :meth:`structsolve.Space.pack`.

        ``unseen="extra"``, for scoring, accepts any tree, even one that cannot be predicted.

        Raises
        ------
        ValueError
            The message names the example and the word.
        """
        arcs = stack_arcs(X, self.layout.n_features)
        trees = None if Y is None else split_relations(Y)
        return self._examples(arcs, trees, strict=unseen == "error")

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return sentences of given numbers of words, without features of their arcs.

        See :meth:`structsolve.Space.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of int
            Words of each sentence.
        **topology
            ``heads``, ``modifiers`` and ``n_arcs``, as in :class:`Arcs`, where not all arcs are
            candidates; here they must be sorted by sentence, modifier and head.

        Returns
        -------
        Examples
            A sentence of n words has n rows of scores for each word, by rising head.
        """
        packing.no_topology({*topology} - {"heads", "modifiers", "n_arcs"})
        words = np.diff(packing.size_offsets(sizes, "numbers of words"))
        heads = topology.get("heads")
        size = float((words.astype(float) ** 2).sum())
        if heads is None:
            refuse_too_large(16 * size, f"{size:g} arcs", "give shorter sentences, or heads=")
        rows = int(size) if heads is None else np.size(heads)
        # Row numbers as features show whether Arcs reordered them.
        arcs = Arcs(np.arange(float(rows))[:, None], words, **topology)
        if heads is not None and (np.diff(arcs.features[:, 0]) < 0).any():
            raise ValueError("arcs: expected them in order: by sentence, modifier and head")
        arcs.features = arcs.features[:, :0]
        examples = self._examples(arcs, None, strict=False)
        examples.nodes = None
        return examples

    def _examples(self, arcs: Arcs, trees: Any, strict: bool) -> Examples:
        """Combine stacked arcs and trees, heads and relations; strict: what can be predicted."""
        features = packing.as_features(arcs.features)
        examples = Examples(arcs.offsets, features, label_offsets=arcs.word_offsets)
        examples.topology = {"arcs": arcs}
        # A resumed run must have the same sentences and candidates; features do not determine
        # them.
        pruned = "" if arcs.complete else (arcs.starts.tobytes() + arcs.heads.tobytes()).hex()
        examples.topology["identity"] = arcs.n_words.tobytes().hex() + pruned
        if trees is not None:
            offsets = examples.label_offsets
            Y, relations = trees
            if (relations is not None) != self.labelled:
                kinds = ("heads only", "pairs (head, relation)")
                raise ValueError(
                    f"y has {kinds[not self.labelled]}, expected {kinds[self.labelled]} as in "
                    "training"
                )
            heads = check_heads(
                Y,
                offsets,
                strict and self.structure.single_root,
                strict and self.structure.projective,
            )
            if strict:
                self._check_candidates(heads, examples)
            examples.labels = heads
            if relations is not None:
                flat, unseen = labels.flatten(relations, offsets), None if strict else self.width
                states = labels.encode(flat, self.classes_, offsets, unseen)
                known = heads * self.width + states
                sizes = np.repeat(arcs.n_words + 1, arcs.n_words)
                examples.labels = np.where(
                    states < self.width, known, sizes * self.width + heads
                ).astype(np.int32)
        return examples

    def heads_of(self, flat: np.ndarray) -> np.ndarray:
        """Return the heads of encoded labels; ``flat % width`` are the numbers of relations.

        Parameters
        ----------
        flat : ndarray of int
            Labels that can be predicted.

        Returns
        -------
        ndarray of int
        """
        return flat // self.width if self.labelled else flat

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse heads that are no tree of this kind, and arcs outside the candidates."""
        structure, heads = self.structure, self.heads_of(flat)
        check_trees(heads, examples.label_offsets, structure.single_root, structure.projective)
        self._check_candidates(heads, examples)

    def _check_candidates(self, heads: np.ndarray, examples: Examples) -> None:
        """Refuse a tree with an arc outside the candidates."""
        arcs: Arcs = examples.topology["arcs"]
        if arcs.complete:
            return
        width = int(arcs.n_words.max()) + 1
        word = np.repeat(np.arange(len(arcs.starts) - 1), np.diff(arcs.starts))
        given = word * width + arcs.heads
        wanted = np.arange(len(heads)) * width + heads
        missing = ~np.isin(wanted, given)
        if missing.any():
            row = int(np.argmax(missing))
            i = int(np.searchsorted(examples.label_offsets, row, side="right")) - 1
            raise ValueError(
                f"example {i}, word {row - examples.label_offsets[i] + 1}: its true head "
                f"{heads[row]} is no candidate; expected the arcs of y among those of X"
            )

    def unpack(self, flat: np.ndarray, examples: Examples) -> list[np.ndarray]:
        """Return encoded labels in the form users give Y."""
        if self.labelled:
            flat = as_pairs(self.heads_of(flat), self.classes_[flat % self.width])
        return pieces(flat, examples.label_offsets)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> np.ndarray:
        """Return one encoded label in the form users give it."""
        if self.labelled:
            return as_pairs(self.heads_of(label), self.classes_[label % self.width])
        return label.copy()

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> list[np.ndarray]:
        """Return scores or marginals of arcs, or of their relations, as a table per sentence."""
        arcs: Arcs = examples.topology["arcs"]
        row = (self.width,) if self.labelled else ()
        values, heads, modifiers = np.asarray(flat).reshape(-1, *row), arcs.heads, arcs.modifiers
        tables = []
        for n, start, stop in zip(arcs.n_words, arcs.offsets[:-1], arcs.offsets[1:]):
            table = np.zeros((n + 1, n, *row))
            table[heads[start:stop], modifiers[start:stop] - 1] = values[start:stop]
            tables.append(table)
        return tables

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every label of a small example."""
        arcs: Arcs = examples.topology["arcs"][i]
        n = int(arcs.n_words[0])
        allowed = np.zeros((n + 1, n), dtype=bool)
        allowed[arcs.heads, arcs.modifiers - 1] = True
        trees = all_trees(n, self.structure.projective, self.structure.single_root)
        trees = trees[allowed[trees, np.arange(n)].all(axis=1)]
        if not self.labelled:
            return trees
        names = np.array(list(product(range(self.width), repeat=n)), dtype=np.int32)
        return (trees[:, None] * np.int32(self.width) + names).reshape(-1, n)

    def of_kind(self, operator: Any) -> Any:
        """Return a factory for an operator of the structure's kind of trees.

        Parameters
        ----------
        operator : type
            Takes ``projective``, ``single_root`` and a layout.

        Returns
        -------
        callable
        """
        return partial(operator, self.structure.projective, self.structure.single_root)
