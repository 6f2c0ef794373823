"""Constituency trees: nested tuples and brackets, binary trees with marked classes, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

# The class of a span that only binarisation made, of a node "NP"; and of a chain of single
# children, "S" over "VP".
PARTIAL, CHAIN = "@", "+"
_TOKEN = re.compile(r"[()]|[^\s()]+")


def read_tree(text: str) -> tuple[Any, list[str]]:
    """Return the tree of brackets as nested tuples, and its words.

    Parameters
    ----------
    text : str
        ``(S (NP (D the) (N dog)) (V barks))``.  Brackets without a class around a tree, as in the
        Penn Treebank's files, are left out, and so are empty elements (``-NONE-``).

    Returns
    -------
    tree : str or tuple
        The class of a word, or a class and its children.
    words : list of str

    Raises
    ------
    ValueError
        If brackets do not match, or a node has neither a word nor children.

    Examples
    --------
    >>> read_tree("(S (NP (D the) (N dog)) (V barks))")
    (('S', ('NP', 'D', 'N'), 'V'), ['the', 'dog', 'barks'])
    """
    trees = list(read_trees(text))
    if len(trees) != 1:
        raise ValueError(f"found {len(trees)} trees in {text[:60]!r}, expected one")
    return trees[0]


def read_trees(text: str) -> Iterable[tuple[Any, list[str]]]:
    """Yield the trees of a text; see :func:`read_tree`.

    Parameters
    ----------
    text : str

    Yields
    ------
    tree, words
    """
    stack: list[list[Any]] = []
    words: list[str] = []
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token != ")":
            if not stack:
                raise ValueError(f"found {token!r} outside of brackets, expected '('")
            stack[-1].append(token)
        else:
            if not stack:
                raise ValueError("found ')' without its '('")
            node = _closed(stack.pop(), words)
            if stack:
                stack[-1].append(node)
            elif node is not None:
                yield node, words
                words = []
    if stack:
        raise ValueError(f"found {len(stack)} brackets that are not closed")


def _closed(items: list[Any], words: list[str]) -> Any:
    """Return a node of the items between two brackets; None for an empty element."""
    if len(items) == 2 and all(isinstance(x, str) and type(x) is str for x in items):
        if items[0] == "-NONE-":
            return None
        words.append(items[1])
        return _Leaf(items[0])
    given = [x for x in items if x is not None]
    named = bool(given) and type(given[0]) is str
    children = given[1:] if named else given
    if len(items) > 1 and not children:
        return None  # a node of empty elements
    wrong = [x for x in children if type(x) is str]
    if not children or wrong or (not named and len(children) > 1):
        raise ValueError(
            f"found a node of {items!r}, expected a class and a word, or a class and nodes"
        )
    return (given[0], *children) if named else children[0]


class _Leaf(str):
    """The class of a word, told from a word."""


def write_tree(tree: Any, words: Iterable[str]) -> str:
    """Return a tree in brackets.

    Parameters
    ----------
    tree : str or tuple
    words : iterable of str

    Returns
    -------
    str

    Examples
    --------
    >>> write_tree(("S", ("NP", "D", "N"), "V"), ["the", "dog", "barks"])
    '(S (NP (D the) (N dog)) (V barks))'
    """
    rest = iter(words)

    def text(node: Any) -> str:
        if isinstance(node, str):
            return f"({node} {next(rest)})"
        return f"({node[0]} {' '.join(map(text, node[1:]))})"

    return text(tree)


def spans_of(tree: Any) -> list[tuple[int, int, str]]:
    """Return the spans of a binary tree in preorder, after binarisation.

    Parameters
    ----------
    tree : str, tuple or list
        A class, or a class and its children.

    Returns
    -------
    list of (start, end, class)
        Of every word and of every pair of neighbours that are joined.

    Raises
    ------
    ValueError
        If a node is no class with children.

    Examples
    --------
    >>> spans_of(("S", "A", ("B", ("C", "D")), "E"))
    [(0, 3, 'S'), (0, 1, 'A'), (1, 3, '@S'), (1, 2, 'B+C+D'), (2, 3, 'E')]
    """
    spans: list[tuple[int, int, str]] = []
    _add_spans(tree, 0, spans)
    return spans


def _add_spans(tree: Any, start: int, spans: list[tuple[int, int, str]]) -> int:
    names = []
    while not isinstance(tree, str):
        if not isinstance(tree, (tuple, list)) or len(tree) < 2 or not isinstance(tree[0], str):
            raise ValueError(f"found the node {tree!r}, expected a class (a string) and children")
        names.append(tree[0])
        if len(tree) > 2:
            break
        tree = tree[1]
    else:
        names.append(tree)
        tree = (tree,)
    return _join(CHAIN.join(names), tree[1:], start, spans)


def _join(name: str, children: Any, start: int, spans: list[tuple[int, int, str]]) -> int:
    place = len(spans)
    spans.append((start, start + 1, name))
    if not children:
        return start + 1
    middle = _add_spans(children[0], start, spans)
    if len(children) == 2:
        end = _add_spans(children[1], middle, spans)
    else:
        own = name.rsplit(CHAIN, 1)[-1]
        end = _join(own if own.startswith(PARTIAL) else PARTIAL + own, children[1:], middle, spans)
    spans[place] = (start, end, name)
    return end


def tree_of(spans: Any) -> Any:
    """Return the tree of the spans of a binary tree, without marks.

    Parameters
    ----------
    spans : list of (start, end, class)
        In preorder.

    Returns
    -------
    str or tuple

    Examples
    --------
    >>> tree_of([(0, 3, "S"), (0, 1, "A"), (1, 3, "@S"), (1, 2, "B+C+D"), (2, 3, "E")])
    ('S', 'A', ('B', ('C', 'D')), 'E')
    """
    rest = iter(spans)

    def nodes(root: bool) -> list[Any]:
        start, end, name = next(rest)
        children: list[Any] = []
        if end > start + 1:
            children = [*nodes(False), *nodes(False)]
            if name.startswith(PARTIAL) and not root:
                return children
        first, *others = name.removeprefix(PARTIAL).split(CHAIN)[::-1]
        tree: Any = (first, *children) if children else first
        for above in others:
            tree = (above, tree)
        return [tree]

    return nodes(True)[0]


def length_of(tree: Any) -> int:
    """Return the number of words of a tree.

    Parameters
    ----------
    tree : str or tuple

    Returns
    -------
    int
    """
    return 1 if isinstance(tree, str) else sum(map(length_of, tree[1:]))


def brackets(tree: Any) -> list[tuple[int, int, str]]:
    """Return the spans of a tree's nodes with their classes, those of words left out.

    Parameters
    ----------
    tree : str or tuple

    Returns
    -------
    list of (start, end, class)

    Examples
    --------
    >>> brackets(("S", ("NP", "D", "N"), "V"))
    [(0, 2, 'NP'), (0, 3, 'S')]
    """
    found_spans: list[tuple[int, int, str]] = []

    def add(node: Any, start: int) -> int:
        if isinstance(node, str):
            return start + 1
        end = start
        for child in node[1:]:
            end = add(child, end)
        found_spans.append((start, end, node[0]))
        return end

    add(tree, 0)
    return found_spans


def make_treebank(n: int = 100, random_state: Any = None, longest: int = 12) -> list[str]:
    """Return random sentences with trees in brackets, from a small grammar of English.

    Prepositional phrases hang off nouns or verbs: which of them a preposition prefers depends on
    the preposition and the verb, so the words tell most, but not all attachments.

    Parameters
    ----------
    n : int, default=100
        Sentences.
    random_state : int or Generator, optional
    longest : int, default=12
        Words of a sentence, at least 5; longer ones are drawn again.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from structsolve.plugins.cky import make_treebank
    >>> make_treebank(1, random_state=0)[0].startswith("(S (NP")
    True
    """
    rng = np.random.default_rng(random_state)
    words = {
        "D": ["the", "a"],
        "N": ["dog", "man", "park", "telescope", "garden", "hat"],
        "V": ["saw", "liked", "put"],
        "of": ["of"],
        "with": ["with", "in"],
    }

    def word(name: str, kind: str | None = None) -> str:
        choices = words[kind or name]
        return f"({name} {choices[rng.integers(len(choices))]})"

    def noun_phrase(depth: int) -> str:
        base = f"(NP {word('D')} {word('N')})"
        kind = rng.random()
        if depth > 2 or kind < 0.55:
            return base
        preposition = word("P", "of" if kind < 0.85 else "with")
        return f"(NP {base} (PP {preposition} {noun_phrase(depth + 1)}))"

    def verb_phrase() -> str:
        parts = [word("V"), noun_phrase(1)]
        if rng.random() < 0.5:
            parts.append(f"(PP {word('P', 'with')} {noun_phrase(2)})")
        return f"(VP {' '.join(parts)})"

    made: list[str] = []
    while len(made) < n:
        tree = f"(S {noun_phrase(1)} {verb_phrase()})"
        if len(read_tree(tree)[1]) <= longest:
            made.append(tree)
    return made
