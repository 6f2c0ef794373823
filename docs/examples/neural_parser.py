"""A parser with scores from a network: two layers of BiLSTM, and a perceptron for each arc.

Reads the English Web Treebank from the folder STRUCTSOLVE_DATA, or generates sentences.  Words and
gold tags are embedded; the scores of an arc's relations come from the states at its two ends, as in
Kiperwasser and Goldberg (2016).  Training uses the projective trees closest to the true ones.
Attachment counts all words: those with the right head, and with the right head and relation.

    STRUCTSOLVE_DATA=... python docs/examples/neural_parser.py --picture curves.png
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from neural_training import by_length, draw, experiment, options, report
from torch import nn

from structsolve.plugins.dependency import DependencyStructure, projectivize
from structsolve.plugins.dependency.conllu import ConlluSentence, read_conllu

STRUCTURE = DependencyStructure(projective=True, single_root=True, labelled=True)
LONGEST = 40  # words of a sentence in training
UNKNOWN, ROOT = 0, 1
#: Of heads alone, as `benchmarks/dependency.py` trains: projective trees, alpha .001.
LINEAR = [("margin", "-", "-", "85.13")]


def sentences(part, most):
    """Sentences of a part, their heads and their relations without subtypes."""
    folder = os.environ.get("STRUCTSOLVE_DATA")
    if folder is not None:
        path = Path(folder, "dep-ud-english-ewt", f"en_ewt-ud-{part}.conllu.gz")
        parsed = read_conllu(path)[0][:most]
        trees = [sentence.arcs(main=True) for sentence in parsed]
        return parsed, [tree["head"] for tree in trees], [tree["relation"] for tree in trees]
    rng = np.random.default_rng(len(part))
    parsed, heads, relations = [], [], []
    for _ in range(most or 80):  # adjectives, a noun and a verb behind it
        n = int(rng.integers(2, 6))
        words = [f"adjective{rng.integers(5)}" for _ in range(n - 2)] + ["noun", "runs"]
        parsed.append(ConlluSentence.of(words, ["ADJ"] * (n - 2) + ["NOUN", "VERB"]))
        heads.append(np.array([n - 1] * (n - 2) + [n, 0], dtype=np.int32))
        relations.append(["amod"] * (n - 2) + ["nsubj", "root"])
    return parsed, heads, relations


class Coder:
    """Maps words that occur twice, tags and relations to numbers."""

    def __init__(self, parsed, relations):
        self.counts = Counter(word.lower() for s in parsed for word in s.forms)
        kept = [word for word, count in self.counts.items() if count > 1]
        self.words = {word: number for number, word in enumerate(kept, 2)}
        self.tags = {tag: i for i, tag in enumerate(sorted({t for s in parsed for t in s.xpos}), 2)}
        self.relations = sorted({name for names in relations for name in names})

    def __call__(self, parsed, heads, relations):
        """Words and tags of sentences, each after a root, and labels, by length.

        A label is a head times the number of relations, plus the relation.
        """
        many = len(self.relations)
        return by_length(
            (
                np.array([ROOT] + [self.words.get(w.lower(), UNKNOWN) for w in sentence.forms]),
                np.array([ROOT] + [self.tags.get(t, UNKNOWN) for t in sentence.xpos]),
                np.asarray(head, dtype=np.int64) * many
                + [self.relations.index(name) for name in names],
            )
            for sentence, head, names in zip(parsed, heads, relations, strict=True)
        )


class Parser(nn.Module):
    """Scores, of shape (sentences, n + 1, n, relations): ``[head, word - 1, relation]``.

    In training a word is unknown with probability .25 / (.25 + its count).
    """

    def __init__(self, coder, hidden, arc=100, dropout=0.2):
        super().__init__()
        self.word = nn.Embedding(len(coder.words) + 2, 100)
        self.tag = nn.Embedding(len(coder.tags) + 2, 28)
        self.lstm = nn.LSTM(128, hidden, 2, batch_first=True, bidirectional=True, dropout=dropout)
        self.head, self.child = nn.Linear(2 * hidden, arc), nn.Linear(2 * hidden, arc)
        for layer in (self.head, self.child):  # large enough that tanh bends from the start: else
            nn.init.normal_(layer.weight, std=0.3)  # heads and words do not meet, nothing is learnt
        self.arc = nn.Linear(arc, len(coder.relations))
        self.dropout = nn.Dropout(dropout)
        counts = [np.inf] * 2 + [coder.counts[word] for word in coder.words]
        dropped = 0.25 / (0.25 + torch.tensor(counts))
        self.register_buffer("dropped", dropped)

    def forward(self, words, tags):
        if self.training:
            unknown = torch.rand(words.shape) < self.dropped[words]
            words = words.masked_fill(unknown, UNKNOWN)
        states = self.dropout(torch.cat([self.word(words), self.tag(tags)], dim=-1))
        states = self.dropout(self.lstm(states)[0])
        ends = self.head(states)[:, :, None] + self.child(states[:, 1:])[:, None]
        return self.arc(ends.tanh())


def main(argv=None):
    title = "A parser with scores from a network: English, attachment"
    parser = options(title, epochs=[3, 2], rates=[2e-3, 1e-3], nodes=400)
    parser.add_argument("--hidden", type=int, default=80, help="numbers of an LSTM's state")
    args = parser.parse_args(argv)
    parsed, heads, relations = sentences("train", args.most)
    kept = [i for i, sentence in enumerate(parsed) if len(sentence) <= LONGEST]
    parsed, relations = ([part[i] for i in kept] for part in (parsed, relations))
    others = {part: sentences(part, args.most) for part in ("dev", "test")}
    coder = Coder(parsed, [*relations, *(names for *_, more in others.values() for names in more)])
    heads = [projectivize(heads[i], single_root=True) for i in kept]
    data = {"train": coder(parsed, heads, relations)}
    data |= {part: coder(*several) for part, several in others.items()}
    print(f"{len(parsed)} sentences, {len(coder.words)} words, {len(coder.tags)} tags, ", end="")
    print(f"{len(coder.relations)} relations\n")
    measures = {"labelled attachment": 1, "attachment": len(coder.relations)}
    told = experiment(lambda: Parser(coder, args.hidden), STRUCTURE, data, measures, args)
    report(told, measures, LINEAR)
    if args.picture:
        draw(told, args.picture, "labelled attachment, %")


if __name__ == "__main__":
    main()
