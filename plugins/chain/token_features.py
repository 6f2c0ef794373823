# Features of words for taggers, like those of CRFsuite's examples.
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise


def word_shape(word: str) -> str:
    """Return the classes of the characters of a word, runs shortened to two.

    Parameters
    ----------
    word : str

    Returns
    -------
    str
        ``X`` for upper case, ``x`` for other letters, ``d`` for digits; other characters unchanged.

    Examples
    --------
    >>> word_shape("McDonald's-2024")
    "XxXxx'x-dd"
    """
    shape = ""
    for c in word:
        if c.isalpha():
            c = "X" if c.isupper() else "x"
        elif c.isdigit():
            c = "d"
        if shape[-2:] != c + c:
            shape += c
    return shape


# Length of the longest prefix and suffix.
AFFIXES = 4


@lru_cache(maxsize=1 << 18)
def word_features(word: str) -> tuple[str, ...]:
    """Return features of a single word: lower case, shape, prefixes and suffixes of up to four
    characters, and flags.

    Parameters
    ----------
    word : str

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> word_features("No")
    ('lower=no', 'shape=Xx', 'pre1=N', 'suf1=o', 'pre2=No', 'suf2=No', 'title')
    """
    features = [f"lower={word.lower()}", f"shape={word_shape(word)}"]
    for n in range(1, min(AFFIXES, len(word)) + 1):
        features += [f"pre{n}={word[:n]}", f"suf{n}={word[-n:]}"]
    flags = {
        "title": word.istitle(),
        "upper": word.isupper(),
        "digit": any(map(str.isdigit, word)),
        "hyphen": "-" in word,
    }
    return (*features, *(name for name, on in flags.items() if on))


def conll_features(sentence: Sequence[Sequence[str]], window: int = 2) -> list[list[str]]:
    """Make features for chunking from one sentence of CoNLL columns.

    For every token: its `word_features`; words, tags and further columns up to `window` places
    away, pairs of neighbouring words, pairs and triples of neighbouring tags; and the ends of the
    sentence as ``__BOS__`` and ``__EOS__``.

    Parameters
    ----------
    sentence : sequence of sequences of str
        The columns of each token without its label: the word, then (if there are any) the
        part-of-speech tag and more.
    window : int, default=2
        Number of tokens on each side.

    Returns
    -------
    list of list of str
        Features of value 1, for `SequenceVectorizer`.

    Raises
    ------
    ValueError
        For a negative window, no tokens, or a token without columns.

    Examples
    --------
    >>> first, second = conll_features([["Oslo", "NNP"], ["calls", "VBZ"]], window=1)
    >>> first[-6:-3], second[-1]
    (['p[-1]=__BOS__', 'p[0]=NNP', 'p[1]=VBZ'], 'p[-1..1]=NNP|VBZ|__EOS__')
    """
    if window < 0:
        raise ValueError(f"window is {window}, expected at least 0")
    if not sentence or not all(sentence):
        raise ValueError("sentence: found no tokens, or one without columns; expected words")
    length = len(sentence)
    features = [["bias", *word_features(row[0])] for row in sentence]
    if length == 1:
        features[0].append("only")
    for c, column in enumerate(zip(*sentence, strict=True)):
        name = ("w", "p")[c] if c < 2 else f"c{c}"
        padded = ["__BOS__"] * window + list(column) + ["__EOS__"] * window
        grams = [(1, padded, -window, window)]
        if window:
            pairs = [f"{a}|{b}" for a, b in pairwise(padded)]
            reach = 1 if c == 0 else window
            grams.append((2, pairs, -reach, reach))
            if c == 1:
                triples = [f"{a}|{b}" for a, b in zip(pairs, padded[2:], strict=False)]
                grams.append((3, triples, -window, window))
        for size, values, low, high in grams:
            for k in range(low, high - size + 2):
                place = f"{name}[{k}]=" if size == 1 else f"{name}[{k}..{k + size - 1}]="
                start = window + k
                for row, value in zip(features, values[start : start + length], strict=True):
                    row.append(place + value)
    return features
