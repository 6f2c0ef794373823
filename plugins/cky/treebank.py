"""Random trees: a made-up treebank, and the spans of trees by rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.plugins.cky.trees import read_tree


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


def derived_classes(n: int, rules: list[tuple[str, str, str]]) -> list[set[str]]:
    """Return the classes of the trees over 0, 1, ... n words.

    Parameters
    ----------
    n : int
    rules : list of (parent, left, right)
        Words have any class of them.

    Returns
    -------
    list of set of str
    """
    derived = [set(), {name for rule in rules for name in rule}]
    for m in range(2, n + 1):
        pairs = [(derived[k], derived[m - k]) for k in range(1, m)]
        derived.append({p for p, a, b in rules if any(a in u and b in v for u, v in pairs)})
    return derived


def draw_spans(
    n: int, rules: list[tuple[str, str, str]], rng: np.random.Generator
) -> list[tuple[int, int, str]]:
    """Return the spans of a random binary tree, in preorder; every tree may come.

    Parameters
    ----------
    n : int
        Words; some tree over them must have a class.
    rules : list of (parent, left, right)
    rng : Generator

    Returns
    -------
    list of (start, end, class)
    """
    derived, spans = derived_classes(n, rules), []
    todo = [(0, n, sorted(derived[n])[rng.integers(len(derived[n]))])]
    while todo:
        i, j, name = todo.pop()
        spans.append((i, j, name))
        ways = [
            (k, a, b)
            for k in range(i + 1, j)
            for parent, a, b in rules
            if parent == name and a in derived[k - i] and b in derived[j - k]
        ]
        if ways:
            k, a, b = ways[rng.integers(len(ways))]
            todo += [(k, j, b), (i, k, a)]
    return spans
