"""Predict the word in the middle of a sentence from its neighbours: a class for every word.

Reads the English Web Treebank from the folder STRUCTSOLVE_DATA, or generates sentences.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

from structsolve import ExtremeSVM
from structsolve.plugins.dependency.conllu import read_conllu

SENTENCES = 500  # of the development part, read in a second; more is better


def sentences(part, most):
    """Sentences as lists of words in lower case."""
    folder = os.environ.get("STRUCTSOLVE_DATA")
    if folder is not None:
        path = Path(folder, "dep-ud-english-ewt", f"en_ewt-ud-{part}.conllu.gz")
        parsed, _ = read_conllu(path)
        return [[word.lower() for word in sentence.forms] for sentence in parsed[:most]]
    rng = np.random.default_rng(part == "dev")
    words = [f"{kind}{k}" for k in range(60) for kind in ("noun", "verb")]
    made = []
    for _ in range(most):
        topic = rng.integers(0, 60, 5) % 6 + 6 * rng.integers(10)  # words of one topic
        made.append(["the", words[2 * topic[0]], words[2 * topic[1] + 1], "a", words[2 * topic[2]]])
    return made


def features(sentence, i):
    """Neighbours of place i by position, pairs of neighbours, and the bag of other words."""
    near = {k: sentence[i + k] if 0 <= i + k < len(sentence) else "<>" for k in (-2, -1, 1, 2)}
    names = {f"{k}:{word}": 1.0 for k, word in near.items()}
    names |= {f"-2-1:{near[-2]} {near[-1]}": 1.0, f"-1+1:{near[-1]} {near[1]}": 1.0}
    names |= {f"+1+2:{near[1]} {near[2]}": 1.0}
    return names | {f"bag:{word}": 0.3 for k, word in enumerate(sentence) if k != i}


def rows(sentences, known):
    """Features and words of the places whose word is known."""
    places = [(s, i) for s in sentences for i, word in enumerate(s) if word in known]
    return [features(s, i) for s, i in places], [s[i] for s, i in places]


train = sentences("dev", SENTENCES)
counts = Counter(word for sentence in train for word in sentence if word[0].isalnum())
known = {word for word, count in counts.items() if count >= 2}
X, y = rows(train, known)
X_test, y_test = rows(sentences("test", SENTENCES // 5), known)

model = make_pipeline(DictVectorizer(dtype=np.float32), TfidfTransformer(), ExtremeSVM())
model.fit(X, y)
print(f"{len(y)} rows, {len(model.classes_)} words to tell apart")

best, scores = model[-1].predict_topk(model[:-1].transform(X_test), k=5)
first = np.mean(best[:, 0] == y_test)
fifth = np.mean((best == np.array(y_test)[:, None]).any(axis=1))
often = np.mean(np.array(y_test) == Counter(y).most_common(1)[0][0])
print(f"right at once {first:.3f}, among five {fifth:.3f}; the most frequent word {often:.3f}")
print(" ".join(f"{word}:{score:.2f}" for word, score in zip(best[0], scores[0], strict=True)))
