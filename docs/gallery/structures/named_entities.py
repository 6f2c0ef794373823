"""
Named entities with hard BIO rules
==================================

Tags of named entities must form whole spans: no ``I-PER`` after an ``O``. A tagger of single words
breaks this rule. A chain learns the rule, and :class:`~structsolve.plugins.chain.ChainStructure`
with the name of the scheme enforces it, in training and in prediction (:doc:`/named_entities`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import SequenceVectorizer, StructuredSVM
from structsolve.plugins.chain import ChainStructure
from structsolve.plugins.chain.metrics import span_f1

# %%
# Generated sentences: names of people and places share words, such as "Paris" in "Paris Hilton".
rng = np.random.default_rng(0)
FIRST, LAST = ["Anna", "Paris", "Sydney", "Carl"], ["Hilton", "Berg", "York", "Stone"]
PLACES = [["New", "York"], ["Paris"], ["Stone", "Hill"], ["Sydney"], ["Berg"]]
OTHERS = [
    "went",
    "to",
    "saw",
    "in",
    "met",
    "and",
    "the",
    "old",
    "red",
    "house",
    "with",
    "from",
    "near",
]


def sentence():
    """Words and their tags."""
    words, tags = [], []
    for _ in range(rng.integers(3, 6)):
        kind = rng.integers(3)
        if kind == 0:
            span, name = [rng.choice(FIRST), rng.choice(LAST)][: rng.integers(1, 3)], "PER"
        elif kind == 1:
            span, name = PLACES[rng.integers(len(PLACES))], "LOC"
        words += span if kind < 2 else []
        tags += [f"{'BI'[k > 0]}-{name}" for k in range(len(span))] if kind < 2 else []
        fill = rng.choice(OTHERS, rng.integers(1, 3)).tolist()
        words, tags = words + fill, tags + ["O"] * len(fill)
    return words, tags


def features(words):
    """Words and their neighbours; three words of ten are unknown and have only shapes."""
    known = [word if rng.random() < 0.7 else "?" for word in words]
    return [
        {"word": word, "before": before, "capital": words[k].istitle()}
        for k, (word, before) in enumerate(zip(known, ["", *known]))
    ]


data = [sentence() for _ in range(160)]
X, Y = SequenceVectorizer().fit_transform([features(w) for w, _ in data]), [t for _, t in data]
train, test = slice(0, 40), slice(40, 160)

# %%
# Single words, a chain, and a chain with rules.
structures = {
    "words alone": ChainStructure(transitions=False),
    "chain": ChainStructure(),
    "chain with rules": ChainStructure(forbidden="BIO"),
}
models = {name: StructuredSVM(s, alpha=0.1, tol=0.01) for name, s in structures.items()}
guesses = {name: m.fit(X[train], Y[train]).predict(X[test]) for name, m in models.items()}


def broken(tags):
    """How many tags continue a span that did not begin."""
    before = np.r_[["O"], tags[:-1]]
    return sum(t[:2] == "I-" and b[2:] != t[2:] for b, t in zip(before, tags))


# %%
# Left: broken spans. Right: the transitions, grey if a rule forbids them.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
bars = {name: sum(map(broken, rows)) for name, rows in guesses.items()}
left.bar(list(bars), list(bars.values()), color="#D55E00", width=0.5)
for k, (name, rows) in enumerate(guesses.items()):
    score = span_f1(Y[test], [list(row) for row in rows])["f1"]
    left.annotate(f"{bars[name]} broken\nF1 {score:.3f}", (k, bars[name]), ha="center", va="bottom")
left.set(title="Broken spans in 120 sentences", ylim=(0, 1.2 * max(bars.values()) + 1))
left.spines[["top", "right"]].set_visible(False)
tags = models["chain with rules"].classes_.tolist()
table = np.ma.array(models["chain with rules"].coef_["transition"])
for a, before in enumerate(tags):
    for b, tag in enumerate(tags):
        if tag[:2] == "I-" and before[2:] != tag[2:]:
            table[a, b] = np.ma.masked
picture = right.imshow(table, cmap=plt.get_cmap("PuOr").with_extremes(bad="#999999"))
limit = abs(table).max()
picture.set_clim(-limit, limit)
right.set(xticks=range(5), yticks=range(5), xticklabels=tags, yticklabels=tags, xlabel="next tag")
figure.colorbar(picture, label="weight of the transition")
