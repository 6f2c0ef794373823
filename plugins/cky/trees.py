"""Constituency trees: nested tuples and brackets, binary trees with marked classes, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# The class of a span that only binarisation made, of a node "NP"; and of a chain of single
# children, "S" over "VP".
PARTIAL, CHAIN = "@", "+"
_TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)  # a no-break space is part of its word


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

    Raises
    ------
    ValueError
        See :func:`read_tree`.  Its attribute ``line`` is the number of the line.
    """
    place = [0]
    try:
        yield from _trees(text, place)
    except ValueError as error:
        told: Any = error
        told.line = text.count("\n", 0, place[0]) + 1
        raise


def _trees(text: str, place: list[int]) -> Iterable[tuple[Any, list[str]]]:
    """Yield the trees; ``place[0]`` is the position of what is read, or of what is not closed."""
    stack: list[list[Any]] = []
    words: list[str] = []
    first = 0
    for match in _TOKEN.finditer(text):
        token, place[0] = match[0], match.start()
        if token == "(":
            first = first if stack else place[0]
            stack.append([])
        elif token != ")":
            if not stack:
                raise ValueError(f"found {token[:60]!r} outside of brackets, expected '('")
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
        place[0] = first
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
        Their brackets become ``-LRB-`` and ``-RRB-``, as in the Penn Treebank's files.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        For other numbers of words than the tree has, for what is no tree, and for classes and
        words that are empty or hold spaces, and classes with brackets.

    Examples
    --------
    >>> write_tree(("S", ("NP", "D", "N"), "V"), ["the", "dog", "barks"])
    '(S (NP (D the) (N dog)) (V barks))'
    """
    words, size = list(words), length_of(tree)
    if len(words) != size:
        raise ValueError(f"words: found {len(words)}, expected {size}, as the tree has")
    rest, parts = (word.replace("(", "-LRB-").replace(")", "-RRB-") for word in words), []
    todo: list[tuple[str | None, Any]] = [(None, tree)]  # text or nodes, the last one next
    while todo:
        text, node = todo.pop()
        if text is not None:
            parts.append(text)
        elif isinstance(node, str):
            parts.append(f"({_token(node)} {_token(next(rest))})")
        else:
            parts.append(f"({_token(node[0])}")
            todo.append((")", None))
            for child in reversed(node[1:]):
                todo += [(None, child), (" ", None)]
    return "".join(parts)


def _token(name: str) -> str:
    if _TOKEN.fullmatch(name) is None or name in "()":
        raise ValueError(f"found {name!r}, expected a class or word without spaces and brackets")
    return name


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
        If a node is no class with children, or a class has a mark of binary trees.

    Examples
    --------
    >>> spans_of(("S", "A", ("B", ("C", "D")), "E"))
    [(0, 3, 'S'), (0, 1, 'A'), (1, 3, '@S'), (1, 2, 'B+C+D'), (2, 3, 'E')]
    """
    # No recursion: a branching to one side is as deep as the sentence is long.
    opened: list[tuple[int, bool, str]] = []  # start, whether it is joined, class
    todo: list[tuple[str | None, Any]] = [(None, tree)]  # nodes; classes and children, if partial
    words = 0
    while todo:
        name, children = todo.pop()
        if name is None:
            name, children = _unfold(children)
        opened.append((words, bool(children), name))
        if not children:
            words += 1
            continue
        own = name.rsplit(CHAIN, 1)[-1]
        others = own if own.startswith(PARTIAL) else PARTIAL + own, children[1:]
        todo += [(None, children[1]) if len(children) == 2 else others, (None, children[0])]
    spans: list[tuple[int, int, str]] = []
    ends: list[int] = []  # of spans behind whose parents come
    for start, joined, name in reversed(opened):
        if joined:
            ends.pop()  # that of the left part
        else:
            ends.append(start + 1)
        spans.append((start, ends[-1], name))
    return spans[::-1]


def _unfold(tree: Any) -> tuple[str, Any]:
    """Return the class of a chain of single children, and what is below it."""
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
    for name in names:
        if CHAIN in name or name.startswith(PARTIAL):
            raise ValueError(
                f"found the class {str(name)!r}, expected one without {CHAIN!r} that does not "
                f"begin with {PARTIAL!r}: these mark classes of binary trees"
            )
    return CHAIN.join(names), tree[1:]


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
    parts: list[list[Any]] = []  # nodes of spans behind whose parents come
    for place, (start, end, name) in reversed([*enumerate(spans)]):
        children = [*parts.pop(), *parts.pop()] if end > start + 1 else []
        if children and place and name.startswith(PARTIAL):
            parts.append(children)
            continue
        first, *others = name.removeprefix(PARTIAL).split(CHAIN)[::-1]
        tree: Any = (first, *children) if children else first
        for above in others:
            tree = (above, tree)
        parts.append([tree])
    return parts[0][0]


def length_of(tree: Any) -> int:
    """Return the number of words of a tree.

    Parameters
    ----------
    tree : str or tuple

    Returns
    -------
    int

    Raises
    ------
    ValueError
        For a node that is no class, and no class with children.
    """
    todo, words = [tree], 0
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            words += 1
        elif isinstance(node, (tuple, list)) and len(node) > 1 and isinstance(node[0], str):
            todo += node[1:]
        else:
            raise ValueError(f"found the node {node!r}, expected a class, or a class and children")
    return words


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
    todo: list[tuple[Any, int | None]] = [
        (tree, None)
    ]  # nodes; again with a start, behind children
    end = 0
    while todo:
        node, start = todo.pop()
        if isinstance(node, str):
            end += 1
        elif start is not None:
            found_spans.append((start, end, node[0]))
        else:
            todo.append((node, end))
            todo += [(child, None) for child in reversed(node[1:])]
    return found_spans
