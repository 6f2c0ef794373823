"""Dependency parsers of the index: UDPipe beside ours on English, trained on the same sentences.

Both get words and gold tags of dep-ud-english-ewt and no other column; training sentences have at
most 40 words.  UDPipe's parser is a network over transitions, ours is first-order and linear, with
projective trees.  Times are CPU seconds from text of CoNLL-U to a model, and from text to heads: of
the test set, and of its first sentences one by one (µs, median).  UAS is on all words of the test
set, with punctuation.  The number of UDPipe's passes is an option; nothing is chosen by scores.

    STRUCTSOLVE_DATA=... python benchmarks/parsers.py --iterations 10
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, quiet, table
from datasets import data_path
from dependency import LONGEST, attachment
from environments import enter

Parse = Callable[[str], list[np.ndarray]]
#: UDPipe's defaults but for the passes, the transitions' lookahead, and the columns that it sees.
OPTIONS = "embedding_feats=0;embedding_upostag=20;structured_interval=0;use_gold_tags=1"


def text_of(part: str, most: int | None = None, longest: int | None = None) -> str:
    """Words, tags and trees of a part of the treebank, as CoNLL-U."""
    path = data_path("dep-ud-english-ewt", f"en_ewt-ud-{part}.conllu.gz")
    kept = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    for block in blocks:
        rows = [line.split("\t") for line in block.split("\n") if line[0].isdigit()]
        rows = [row for row in rows if row[0].isdigit()]
        if longest is None or len(rows) <= longest:
            lines = [
                "\t".join([*row[:2], "_", row[3], "_", "_", *row[6:8], "_", "_"]) for row in rows
            ]
            kept.append("\n".join(lines) + "\n\n")
    return "".join(kept[:most])


def ours(alpha: float, passes: int) -> Callable[[str], Parse]:
    """From text to a model, a function from text to heads."""
    from structsolve import StructuredSVM
    from structsolve.plugins.dependency import ArcFeaturizer, DependencyStructure, projectivize
    from structsolve.plugins.dependency.conllu import read_conllu

    folder = tempfile.mkdtemp()

    def read(text: str) -> Any:
        path = Path(folder, "text.conllu")
        path.write_text(text, encoding="utf-8")
        return read_conllu(path)

    def train(text: str) -> Parse:
        sentences, heads = read(text)
        featurizer = ArcFeaturizer(n_bits=22).fit(sentences)
        model = StructuredSVM(
            DependencyStructure(True, True), alpha=alpha, max_iter=passes, random_state=0
        )
        trees = [projectivize(y, single_root=True) for y in heads]
        model.fit(featurizer.transform(sentences), trees)
        return lambda text: model.predict(featurizer.transform(read(text)[0]))

    return train


def udpipe(iterations: int) -> Callable[[str], Parse]:
    """The same of UDPipe."""
    from ufal.udpipe import InputFormat, Model, ProcessingError, Sentence, Sentences, Trainer

    def read(text: str) -> Any:
        reader, error = InputFormat.newInputFormat("conllu"), ProcessingError()
        sentences, sentence = Sentences(), Sentence()
        reader.setText(text)
        while reader.nextSentence(sentence, error):
            sentences.append(sentence)
            sentence = Sentence()
        return sentences

    def train(text: str) -> Parse:
        error, none = ProcessingError(), Trainer.NONE
        options = f"iterations={iterations};{OPTIONS}"
        given = read(text), Sentences(), none, none, options, error
        with quiet():
            trained = Trainer.train("morphodita_parsito", *given)
        if error.occurred():
            raise SystemExit(error.message)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            path.write_bytes(bytes(trained))
            model = Model.load(str(path))

        def parse(text: str) -> list[np.ndarray]:
            answer = []
            for sentence in read(text):
                model.parse(sentence, Model.DEFAULT)
                answer.append(np.array([word.head for word in list(sentence.words)[1:]]))
            return answer

        return parse

    return train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, help="train on the first so many only")
    parser.add_argument("--iterations", type=int, default=10, help="passes of UDPipe")
    parser.add_argument("--passes", type=int, default=6, help="passes of ours")
    parser.add_argument("--alpha", type=float, default=1e-3, help="of ours")
    args = parser.parse_args()
    enter("udpipe")
    header("Parsers of the index")
    warnings.simplefilter("ignore")
    train, test = text_of("train", args.sentences, LONGEST), text_of("test")
    rows = [block.split("\n") for block in test.strip().split("\n\n")]
    truth = [np.array([int(line.split("\t")[6]) for line in lines]) for lines in rows]
    alone = [block + "\n\n" for block in test.strip().split("\n\n")][:300]
    measured = []
    for name, begin in (
        (f"ours, {args.passes} passes", ours(args.alpha, args.passes)),
        (f"UDPipe, {args.iterations} passes", udpipe(args.iterations)),
    ):
        with Clock() as fit:
            parse = begin(train)
        with Clock() as many:
            heads = parse(test)
        single = []
        for text in alone:
            with Clock() as clock:
                parse(text)
            single.append(1e6 * clock.cpu)
        score, speed = attachment(heads, truth), len(truth) / many.cpu
        row = [name, f"{fit.cpu:.1f}", f"{score:.2f}", f"{speed:.0f}"]
        measured.append([*row, f"{np.median(single):.0f}"])
        print(f"<!-- {measured[-1]} -->", flush=True)
    columns = ["parser", "train CPU s", "UAS test", "sentences/s", "one sentence, µs"]
    many = train.count("\n\n")
    print(f"{many} sentences, {len(truth)} to test\n\n{table(columns, measured)}")


if __name__ == "__main__":
    main()
