"""Named features to matrices: CoNLL-2000's training sentences, by the usual calls of each library.

    python benchmarks/named_features.py

6 million features of the chunking template (``conll_features``, not timed), as lists of strings.
python-crfsuite's users call ``Trainer.append(items, labels)``, which packs and numbers them;
``ItemSequence(items)`` only copies the strings.  Ours is ``SequenceVectorizer().fit_transform``,
whose matrices training takes without a copy; predictions need ``transform``.  The second table has
the first call of a fresh process, on lists of strings and on dicts of features for tagging names.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

import pycrfsuite
from common import Clock, header, median_time
from datasets import conll2000
from latency import names

from structsolve import SequenceVectorizer
from structsolve.plugins.chain.token_features import conll_features

KINDS = {"lists": conll_features, "dicts": names}


def first_call(kind: str, side: str, sentences: int) -> float:
    """CPU seconds of one call, the first of this process."""
    words, labels = conll2000("train")
    items = [KINDS[kind](sentence) for sentence in words[:sentences]]
    with Clock() as clock:
        if side == "ours":
            SequenceVectorizer().fit_transform(items)
        else:
            trainer = pycrfsuite.Trainer(verbose=False)
            for sentence, sequence in zip(items, labels):
                trainer.append(sentence, sequence)
    return clock.cpu


def fresh(repeat: int) -> None:
    print("\nIn a fresh process, 5,000 sentences, CPU s:\n")
    print("| items | fit_transform | Trainer.append | share |\n| --- | --- | --- | --- |")
    for kind in KINDS:
        spent = [
            statistics.median(
                float(
                    subprocess.run(
                        [sys.executable, __file__, "--first", kind, side],
                        capture_output=True,
                        text=True,
                        check=True,
                    ).stdout
                )
                for _ in range(repeat)
            )
            for side in ("ours", "theirs")
        ]
        print(f"| {kind} | {spent[0]:.3f} | {spent[1]:.3f} | {spent[0] / spent[1]:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, in turn")
    options = parser.parse_args()
    if options.first:
        print(first_call(*options.first, 5000))
        return
    header("Matrices of named features")
    sentences, labels = conll2000("train")
    items = [conll_features(sentence) for sentence in sentences]
    features = sum(len(item) for sentence in items for item in sentence)
    print(f"{len(items)} sentences, {features} features")

    def appended() -> None:
        trainer = pycrfsuite.Trainer(verbose=False)
        for sentence, sequence in zip(items, labels):
            trainer.append(sentence, sequence)

    fitted = SequenceVectorizer().fit(items)
    calls = {
        "ItemSequence": lambda: [pycrfsuite.ItemSequence(sentence) for sentence in items],
        "Trainer.append": appended,
        "fit_transform (ours)": lambda: SequenceVectorizer().fit_transform(items),
        "transform (ours)": lambda: fitted.transform(items),
    }
    seconds = {name: median_time(call, options.repeat)[0] for name, call in calls.items()}
    print("\n| call | CPU s | of ItemSequence | of Trainer.append |\n| --- | --- | --- | --- |")
    for name, cpu in seconds.items():
        shares = [cpu / seconds[other] for other in ("ItemSequence", "Trainer.append")]
        print(f"| {name} | {cpu:.2f} | {shares[0]:.2f} | {shares[1]:.2f} |")
    fresh(options.repeat)


if __name__ == "__main__":
    main()
