"""
Dependency parsing
==================

Every word gets a head, and the heads form a tree. Arcs are scored by their tags and by how far they
reach; the best tree is found exactly (:doc:`/dependency`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import StructuredSVM
from structsolve.plugins.dependency import ArcFeaturizer
from structsolve.plugins.dependency.conllu import ConlluSentence

# %%
# A grammar: noun phrases with adjectives, verbs, and prepositions attached to either.
rng = np.random.default_rng(0)


def phrase(words, heads):
    """Add a noun phrase; return its noun."""
    size = len(words)
    n = rng.integers(0, 3)
    noun = size + n + 2
    words += [("the", "DET"), *[(rng.choice(["old", "red", "big"]), "ADJ")] * n]
    heads += [noun] * (n + 1) + [None]
    words.append((rng.choice(["dog", "man", "house", "telescope"]), "NOUN"))
    return noun


def sentence():
    """A subject, a verb, an object, and sometimes a preposition with its noun."""
    words, heads = [], []
    subject = phrase(words, heads)
    words.append((rng.choice(["sees", "likes"]), "VERB"))
    heads.append(0)
    verb = len(words)
    target = phrase(words, heads)
    heads[subject - 1] = heads[target - 1] = verb
    if rng.random() < 0.7:
        words.append(("with", "ADP"))
        heads.append(None)
        last = len(words)
        noun = phrase(words, heads)
        heads[last - 1] = noun
        heads[noun - 1] = verb if words[noun - 1][0] == "telescope" else target
    return ConlluSentence.of(*zip(*words), heads=heads), np.array(heads)


data = [sentence() for _ in range(200)]
sentences, heads = zip(*data)
X = ArcFeaturizer(n_bits=14).fit_transform(sentences)
parser = StructuredSVM("dependency", surrogate="crf", alpha=0.001, tol=0.05, max_iter=20)
parser.fit(X[:100], heads[:100])
print(f"heads that are right: {parser.score(X[100:], heads[100:]):.1%}")

# %%
# One sentence: the best tree, with the probability of each of its arcs.
i = 100 + int(np.argmax([len(h) for h in heads[100:]]))
words = [*sentences[i].forms]
best, chances = parser.predict(X[i : i + 1])[0], parser.predict_marginals(X[i : i + 1])[0]
figure, axes = plt.subplots(figsize=(10, 3.6), layout="constrained")
for m, h in enumerate(best, start=1):
    color = "#0072B2" if h == heads[i][m - 1] else "#D55E00"
    width, top = abs(h - m) / 2, 0.2 + 0.32 * abs(h - m)
    turn = np.linspace(0, np.pi, 60)
    axes.plot((h + m) / 2 + width * np.cos(turn), top * np.sin(turn), color=color, linewidth=1.2)
    axes.annotate(
        f"{chances[h, m - 1]:.2f}", ((h + m) / 2, top), ha="center", va="bottom", fontsize=7
    )
for k, word in enumerate(["root", *words]):
    axes.text(k, -0.12, word, ha="center", va="top", fontsize=9, weight="bold" if k == 0 else None)
axes.set(ylim=(-0.5, None))
axes.axis("off")
