"""Constituency trees: binary trees over the spans of a sentence, with classes."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.given import check_labels_of
from structsolve.examples.packed import Examples
from structsolve.examples.stacking import pieces
from structsolve.plugins.cky.spans import Spans, places_of, stack_spans
from structsolve.plugins.cky.treebank import derived_classes, draw_spans
from structsolve.plugins.cky.trees import length_of, read_tree, spans_of, tree_of
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure
from structsolve.utils.memory import refuse_too_large


class CKYStructure(Structure):
    """Binary trees over the spans of a sentence, each with a class.

    Parameters
    ----------
    grammar : bool, default=False
        A span's class depends on the classes of its two parts: each rule has a weight, O(n^3 R).
        By default spans are scored one by one, O(n^3).
    rules : list of (parent, left, right), optional
        The classes that may be joined, with ``grammar``; by default all K^3.

    Notes
    -----
    Y has a tree for each sentence: a class for a word, a tuple of a class and its children for
    more, ``("S", ("NP", "D", "N"), "V")``; or brackets, ``"(S (NP (D the) (N dog)) (V barks))"``.
    Nodes of more than two children are made binary, with the class ``"@S"`` for what is left of S;
    a chain of single children becomes one class, ``"S+VP"``.  Predictions have neither.

    X is a list with an array of shape ``(n, n, n_features)`` per sentence of n words: entry
    ``[i, j]``, ``i <= j``, are the features of the span from word i to word j, the others are not
    read; or :class:`~structsolve.plugins.cky.Spans`, which holds the rows of all spans, dense or
    CSR, as :class:`~structsolve.plugins.cky.SpanFeaturizer` makes them of words.

    Losses: "hamming" (spans that the true tree does not have with this class, words included),
    "normalized-hamming" (their share), "zero-one".

    Marginals are those of spans with classes, tables ``[i, j, class]``.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> X = [np.array([[[i, j, j - i] for j in range(3)] for i in range(3)], dtype=float)]
    >>> model = StructuredSVM("cky", alpha=0.01).fit(X, [("S", ("NP", "D", "N"), "V")])
    >>> model.predict(X)[0]
    ('S', ('NP', 'D', 'N'), 'V')
    """

    name = "cky"
    layouts = {"grammar": (False, True)}

    def __init__(self, grammar: bool = False, rules: Any = None):
        self.grammar = grammar
        self.rules = rules

    def check_params(self) -> None:
        """Refuse other values; see :meth:`Structure.check_params`."""
        if not isinstance(self.grammar, (bool, np.bool_)):
            raise ValueError(f"grammar is {self.grammar!r}, expected True or False")
        if self.rules is None:
            return
        if not self.grammar:
            raise ValueError("rules: give grammar=True")
        seen = set()
        for r, rule in enumerate(self.rules):
            whole = isinstance(rule, (tuple, list)) and len(rule) == 3
            if not whole or tuple(rule) in seen:
                raise ValueError(
                    f"rules[{r}] is {rule!r}, expected a triple (parent, left, right), each once"
                )
            seen.add(tuple(rule))
        if not seen:
            raise ValueError("rules is empty, expected at least one")

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[CKYSpace, Examples]:
        """Learn classes from trees and rules, and pack the data.

        See :meth:`structsolve.Structure.make_space`.
        """
        self.check_params()
        spans = stack_spans(X)
        encoded = _all_spans(Y, spans.n_words)
        flat = np.array([name for tree in encoded for *_, name in tree])
        if classes is None and self.rules is not None:
            classes = np.unique([*flat, *(name for rule in self.rules for name in rule)])
        names = labels.learn_classes(flat, classes)
        space = CKYSpace(self, spans.features.shape[1], names, fit_intercept)
        examples = space._examples(spans, encoded, strict=True)
        space.check_labels(examples.labels, examples)
        return space, examples

    def score_space(self, classes: Any = None, edge: bool = False) -> CKYSpace:
        """Return a space without features: a score for each span and class, and for rules."""
        self.check_params()
        packing.no_edges(edge, self.name)
        return CKYSpace(self, 0, labels.class_names(classes, self.name), False)

    def space_from_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> CKYSpace:
        """Rebuild a space from what its ``state()`` returned."""
        classes = arrays["classes"]
        if classes.dtype.kind != "U" or classes.ndim != 1:
            what = f"{classes.dtype} of shape {classes.shape}"
            raise ValueError(f"classes: found {what}, expected names of nodes in one dimension")
        return CKYSpace(self, state["n_features"], classes, state["intercept"])

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return n small random examples."""
        self.check_params()
        rng = np.random.default_rng(random_state)
        rules = [*product("AB", repeat=3)] if self.rules is None else [*map(tuple, self.rules)]
        names = {name for rule in rules for name in rule}
        X, Y = [], []
        for i in range(n):
            words = int(rng.integers(1, size + 1)) if i else max(2, min(size, 3))
            while not derived_classes(words, rules)[words]:
                words -= 1
            X.append(rng.integers(-2, 3, (words, words, 2)).astype(float))
            Y.append(tree_of(draw_spans(words, rules, rng)))
        if {name for y in Y for *_, name in spans_of(y)} != names and self.rules is None:
            Y[0] = ("A", *["AB"[k % 2] for k in range(length_of(Y[0]))])
        return X, Y


def _all_spans(Y: Any, n_words: np.ndarray) -> list[list[tuple[int, int, str]]]:
    """Return the spans of all trees, checked against the lengths of sentences."""
    check_labels_of(Y, len(n_words), "a list with a tree per sentence")
    made = []
    for i, tree in enumerate(Y):
        try:
            if isinstance(tree, str) and "(" in tree:
                tree, _ = read_tree(tree)
            spans = spans_of(tree)
        except ValueError as error:
            raise ValueError(f"y, example {i}: {error}") from None
        if spans[0][1] != n_words[i]:
            raise ValueError(
                f"example {i}: X has {n_words[i]} words and the tree of y {spans[0][1]}; expected "
                "as many"
            )
        made.append(spans)
    return made


class CKYSpace(Space):
    """One row of the block "span" for each span, and the block "rule" with a grammar.

    A label has the row of each span of the tree times the number of classes, plus that of its
    class, in the order of rows, which is preorder.

    Parameters
    ----------
    structure : CKYStructure
    n_features : int
        Number of features of a span.
    classes : ndarray
        Sorted.
    intercept : bool
    """

    structure: CKYStructure

    def __init__(self, structure: CKYStructure, n_features: int, classes: Any, intercept: bool):
        self.classes_, self.width = classes, len(classes)
        blocks = [Block("span", "node", (self.width,), ("class",))]
        self.rules = None
        if structure.grammar:
            rules, shape = self._rules(structure.rules)
            blocks.insert(0, Block("rule", "shared", shape, ("class",) * len(shape)))
            # Behind parent, left and right child comes the rule's place in theta.
            self.rules = rules
            stride = blocks[0].stride
            places = np.arange(len(rules))
            if len(shape) == 3:
                places = places // self.width * stride + places % self.width
            self.rules = np.column_stack([rules, places]).astype(np.int32)
        super().__init__(structure, WeightLayout(blocks, n_features, 0, intercept))

    def _rules(self, given: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        K = self.width
        if given is None:
            return np.array(list(product(range(K), repeat=3))), (K, K, K)
        number = {name: k for k, name in enumerate(self.classes_.tolist())}
        for r, rule in enumerate(given):
            for name in rule:
                if name not in number:
                    raise ValueError(
                        f"rules[{r}]: the class {name!r} is unknown, expected one of "
                        f"{self.classes_.tolist()}"
                    )
        return np.array([[number[name] for name in rule] for rule in given]), (len(given),)

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Check and stack spans and trees; see :meth:`structsolve.Space.pack`."""
        spans = stack_spans(X, self.layout.n_features)
        encoded = None if Y is None else _all_spans(Y, spans.n_words)
        return self._examples(spans, encoded, strict=unseen == "error")

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return sentences of given numbers of words; see :meth:`structsolve.Space.pack_sizes`."""
        packing.no_topology(topology)
        words = np.diff(packing.size_offsets(sizes, "numbers of words"))
        size = float((words.astype(float) ** 2).sum() / 2)
        refuse_too_large(16 * size, f"{size:g} spans", "give shorter sentences")
        rows = int((words * (words + 1) // 2).sum())
        examples = self._examples(Spans(np.zeros((rows, 0)), words), None, False)
        examples.nodes = None
        return examples

    def _examples(self, spans: Spans, encoded: Any, strict: bool) -> Examples:
        offsets = np.concatenate([[0], np.cumsum(2 * spans.n_words - 1)]).astype(np.int64)
        features = packing.as_features(spans.features)
        examples = Examples(spans.offsets.astype(np.int64), features, label_offsets=offsets)
        examples.topology = {"identity": spans.n_words.tobytes().hex()}
        if encoded is None:
            return examples
        names = np.array([name for tree in encoded for *_, name in tree])
        unseen = None if strict else self.width
        states = labels.encode(names, self.classes_, offsets, unseen)
        words = np.repeat(spans.n_words, 2 * spans.n_words - 1)
        i, j = np.array([span[:2] for tree in encoded for span in tree]).T
        row = i * words - i * (i - 1) // 2 + words - j
        known = row * self.width + states
        behind = words * (words + 1) // 2 * self.width + row
        examples.labels = np.where(states < self.width, known, behind).astype(np.int32)
        return examples

    def spans(self, label: np.ndarray) -> list[tuple[int, int, str]]:
        """Return the spans of an encoded label.

        Parameters
        ----------
        label : ndarray of int32

        Returns
        -------
        list of (start, end, class)
            In preorder.
        """
        start, last = places_of((len(label) + 1) // 2)
        rows, names = label // self.width, self.classes_[label % self.width]
        ends = last[rows] + 1
        return list(zip(start[rows].tolist(), ends.tolist(), names.tolist(), strict=True))

    def contains(self, label: np.ndarray, examples: Examples, i: int) -> bool:
        """Return whether spans are those of a binary tree of the grammar."""
        return self._is_tree(label) and self._unknown_rule(label) is None

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse labels that are no trees of the grammar; see :meth:`Space.check_labels`."""
        for i, label in enumerate(pieces(flat, examples.label_offsets)):
            if not self._is_tree(label):
                super().check_labels(flat, examples)
            rule = self._unknown_rule(label)
            if rule is not None:
                raise ValueError(
                    f"example {i}: the true tree joins by {rule!r} (parent, left, right), expected "
                    "only rules of the parameter `rules`; add this one, or leave the example out"
                )

    def _is_tree(self, label: np.ndarray) -> bool:
        n = (len(label) + 1) // 2
        if label.min() < 0 or label.max() >= n * (n + 1) // 2 * self.width:
            return False
        start, last = places_of(n)
        rows = label // self.width
        # In preorder: the next span to begin, by a stack of ends of right children.
        stack = [(0, n)]
        for i0, j0 in zip(start[rows].tolist(), (last[rows] + 1).tolist()):
            if not stack:
                return False
            begin, end = stack.pop()
            if i0 != begin or (end > 0 and j0 != end) or (end < 0 and not j0 < -end):
                return False
            if end < 0:
                stack.append((j0, -end))
            if j0 > i0 + 1:
                stack.append((i0, -j0))  # a left child, which ends before j0
        return not stack

    @cached_property
    def _allowed(self) -> set[tuple[int, ...]]:
        rules: Any = self.rules
        return {tuple(rule) for rule in rules[:, :3].tolist()}

    def _unknown_rule(self, label: np.ndarray) -> tuple[Any, ...] | None:
        """Return the classes of a tree's first rule that the grammar lacks."""
        if self.rules is None:
            return None
        start, last = places_of((len(label) + 1) // 2)
        rows, states = label // self.width, (label % self.width).tolist()
        begins, ends = start[rows].tolist(), (last[rows] + 1).tolist()
        for p, (i0, j0) in enumerate(zip(begins, ends)):
            if j0 > i0 + 1:
                rule = states[p], states[p + 1], states[p + 2 * (ends[p + 1] - i0)]
                if rule not in self._allowed:
                    return tuple(self.classes_[[*rule]].tolist())
        return None

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> Any:
        """Return the tree of an encoded label."""
        return tree_of(self.spans(label))

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> list[np.ndarray]:
        """Return scores or marginals of spans as a table ``[i, j, class]`` per sentence."""
        values, tables = np.asarray(flat).reshape(-1, self.width), []
        for first, stop in zip(examples.offsets[:-1], examples.offsets[1:]):
            n = int(np.sqrt(2 * (stop - first)))
            tables.append(np.zeros((n, n, self.width)))
            tables[-1][places_of(n)] = values[first:stop]
        return tables

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every label of a small example."""
        n = (int(examples.label_offsets[i + 1] - examples.label_offsets[i]) + 1) // 2
        trees = np.array([sorted(tree) for tree in _shapes(n, 0, n)])
        names = np.array(list(product(range(self.width), repeat=2 * n - 1)))
        every = (trees[:, None] * self.width + names).reshape(-1, 2 * n - 1).astype(np.int32)
        if self.rules is None:
            return every
        return every[[self.contains(label, examples, i) for label in every]]

    def bound(self, operator: Any) -> Any:
        """Return a factory for an operator with the rules.

        Parameters
        ----------
        operator : type
            Takes ``rules`` and a layout.

        Returns
        -------
        callable
        """
        return partial(operator, self.rules)


def _shapes(n: int, i: int, j: int) -> list[list[int]]:
    """Return the rows of the spans of each binary tree over the words i .. j - 1."""
    own = i * n - i * (i - 1) // 2 + n - j
    if j == i + 1:
        return [[own]]
    return [
        [own, *left, *right]
        for k in range(i + 1, j)
        for left in _shapes(n, i, k)
        for right in _shapes(n, k, j)
    ]
