"""CoNLL-U files: reading, errors by line, writing; features of arcs."""

import gzip
import zlib

import numpy as np
import pytest
from checks import refused
from shell import fails, works

from structsolve import StructuredSVM
from structsolve.io import guess_format, read_examples
from structsolve.plugins.dependency import ArcFeaturizer, attachment_report
from structsolve.plugins.dependency.conllu import ConlluSentence, read_conllu, write_conllu

TEXT = """# sent_id = 1
# text = I don't know.
1\tI\tI\tPRON\tPRP\t_\t4\tnsubj\t4:nsubj\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t4:aux\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t4:advmod\t_
4\tknow\tknow\tVERB\tVB\t_\t0\troot\t0:root\tSpaceAfter=No
4.1\tit\tit\tPRON\tPRP\t_\t_\t_\t4:obj\t_
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t4:punct\t_

# sent_id = 2
1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_

"""


def word(number, head, form="w"):
    return f"{number}\t{form}\t_\tX\t_\t_\t{head}\t_\t_\t_\n"


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_goes_round(tmp_path, packed):
    path = tmp_path / ("a.conllu.gz" if packed else "a.conllu")
    path.write_bytes(gzip.compress(TEXT.encode()) if packed else TEXT.encode())
    sentences, heads = read_conllu(path)
    assert [h.tolist() for h in heads] == [[4, 4, 4, 0, 4], [0]]
    assert sentences[0].forms == ["I", "do", "n't", "know", "."]
    assert sentences[0].xpos[:2] == ["PRP", "VBP"] and sentences[1].xpos == ["INTJ"]
    write_conllu(tmp_path / "b.conllu", sentences)
    assert (tmp_path / "b.conllu").read_text() == TEXT
    write_conllu(tmp_path / "c.conllu", sentences, heads)
    assert (tmp_path / "c.conllu").read_text() == TEXT


def test_other_heads(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(TEXT)
    sentences, _ = read_conllu(path)
    write_conllu(path, sentences, [[2, 4, 4, 0, 4], [0]])
    text = path.read_text()
    assert "1\tI\tI\tPRON\tPRP\t_\t2\t_\t_\t_\n" in text and "2-3\tdon't" in text
    assert text.count("\n") == TEXT.count("\n")
    again, heads = read_conllu(path)
    assert heads[0].tolist() == [2, 4, 4, 0, 4] and again[0].forms == sentences[0].forms
    refused("found 1 heads, expected 5", sentences[0].with_heads, [0])


def test_without_heads_and_without_a_last_line_end(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text((word(1, "_") + word(2, "_") + "\n" + word(1, "_")).rstrip("\n"))
    sentences, heads = read_conllu(path)
    assert heads is None and [len(s) for s in sentences] == [2, 1] and sentences[0].heads is None


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "found no examples"),
        ("# only\n\n", "found no examples"),
        ("1\ta\tb\n", "line 1: found 3 columns"),
        ("1 a _ X _ _ 0 _ _ _\n", "line 1: found 1 column .*expected 10 columns between tabs"),
        (word(1, 0) + word(3, 1), "line 2: found the number '3'; expected word 2"),
        (word(1, 0) + word("x", 1), "line 2: found the number 'x'"),
        (word(1, 0) + word(2, "a"), "line 2: found head 'a'"),
        (word(1, 0) + word(2, -1), "line 2: found head '-1'"),
        (word(1, 0) + word(2, 2), "line 2: found head 2, the word itself"),
        (word(1, 0) + word(2, 3) + "\n", "line 2: found head 3; expected 0 .the root. to 2"),
        (word(1, 0) + word(2, "_"), "line 2: found no head; expected one, as on line 1"),
        (word(1, 0) + "# late\n", "line 2: found a comment within a sentence"),
        (word("1-2", "_") + "\n", "line 2: found a sentence without words"),
    ],
)
def test_broken_files_are_refused_by_line(tmp_path, text, message):
    path = tmp_path / "bad.conllu"
    path.write_text(text)
    refused(f"bad.conllu.*{message}", read_conllu, path)


def toy(n=40, seed=0):
    """Return sentences in which determiners attach to the next noun, and nouns to the verb."""
    rng = np.random.default_rng(seed)
    sentences = []
    for _ in range(n):
        tags, heads = [], []
        verb = int(rng.integers(0, 3))
        for k in range(int(rng.integers(verb, 4)) + 1):
            if k == verb:
                tags.append("VERB")
            else:
                tags += ["DET", "NOUN"]
        root = tags.index("VERB") + 1
        for m, tag in enumerate(tags):
            heads.append({"VERB": 0, "DET": m + 2, "NOUN": root}[tag])
        words = [f"{tag}{rng.integers(5)}" for tag in tags]
        sentences.append(ConlluSentence.of(words, tags, heads=heads))
    return sentences


def test_a_parser_learns_from_features():
    sentences = toy()
    heads = [s.heads for s in sentences]
    featurizer = ArcFeaturizer(n_bits=14)
    arcs = featurizer.fit_transform(sentences[:30])
    model = StructuredSVM("dependency", alpha=0.01, max_iter=20, tol=0.1).fit(arcs, heads[:30])
    assert model.score(featurizer.transform(sentences[30:]), heads[30:]) > 0.95


def test_columns_of_features_stay():
    """Saved parsers store weights by column: another hash would read other features' weights."""
    words, tags = ["the", "dog", "saw", "a", "cat"], ["DET", "NOUN", "VERB", "DET", "NOUN"]
    sentence = ConlluSentence.of(words, tags, heads=[2, 3, 0, 5, 3])
    columns = ArcFeaturizer(n_bits=20).fit([sentence]).transform([sentence]).features.indices
    assert len(columns) == 629
    assert zlib.crc32(columns.astype("<i8").tobytes()) == 4256489838


def test_features_of_arcs():
    sentences = toy(5)
    featurizer = ArcFeaturizer(n_bits=18).fit(sentences)
    arcs = featurizer.transform(sentences)
    assert arcs.features.shape == (sum(len(s) ** 2 for s in sentences), 2**18)
    for i, sentence in enumerate(sentences):
        alone = featurizer.transform([sentence])
        assert (alone.features != arcs[i].features).nnz == 0
    rows = [r.indices.tolist() for r in arcs[0].features]
    assert all(len(r) == len(set(r)) for r in rows) and len(set(map(frozenset, rows))) == len(rows)
    assert (np.diff(arcs.features.indptr) >= 20).all()
    # Models are saved with weights of these columns: another hash would be another model.
    assert zlib.crc32(arcs.features.indices.astype("<i4").tobytes()) == 3375525945
    # Sorted and without repetition, as its flags claim.
    matrix = arcs.features.copy()
    matrix.has_canonical_format = False
    matrix.sum_duplicates()
    assert (matrix.data == 1).all() and matrix.nnz == arcs.features.nnz


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ArcFeaturizer(n_bits=0).fit(toy(1)), "n_bits is 0"),
        (lambda: ArcFeaturizer(n_bits="a").fit(toy(1)), "n_bits is 'a'"),
        (lambda: ArcFeaturizer(tags="x").fit(toy(1)), "tags is 'x'"),
        (lambda: ArcFeaturizer().fit([]), "X is empty"),
        (lambda: ArcFeaturizer().fit([["a"]]), "example 0: found list"),
        (lambda: ArcFeaturizer().fit("abc"), "X is a str"),
    ],
)
def test_what_is_no_sentence_is_refused(make, message):
    refused(message, make)


def test_the_shell_trains_a_parser(tmp_path, capsys):
    sentences = toy()
    names = ("a.conllu", "b.conllu", "c.conllu", "m.structsolve")
    train, new, out, model = (tmp_path / name for name in names)
    write_conllu(train, sentences[:30])
    write_conllu(new, [s.with_heads([0] * len(s)) for s in sentences[30:]])
    fit = ("fit", train, "--structure", "dependency", "--model", model, "--alpha", "0.01")
    assert "30 sentences" in works(capsys, *fit)
    works(capsys, "predict", model, new, "--output", out)
    parsed, heads = read_conllu(out)
    right = [(h == s.heads).mean() for h, s in zip(heads, sentences[30:])]
    assert np.mean(right) > 0.9 and parsed[0].forms == sentences[30].forms
    told = works(capsys, "score", model, train)
    assert "right heads 1.0000" in told and "words without punctuation" in told
    assert '"uas": 1.0' in works(capsys, "score", model, train, "--json")
    assert "@2\t" in works(capsys, "predict", model, new, "--kbest", "2")
    fails(capsys, "predict", model, new, "--marginals")
    told = "such as 'dependency'.*'conll' reads their columns"
    fails(capsys, "fit", train, "--structure", "chain", "--model", model, match=told)


def test_the_ending_of_a_file_says_that_it_has_trees(tmp_path, capsys):
    path, out = tmp_path / "a.conllu.gz", tmp_path / "b.conllu.gz"
    write_conllu(path, toy()[:30])
    assert guess_format(path) == "conllu"
    sentences, heads = read_examples(path)
    same = read_conllu(path)
    assert sentences == same[0] and all(map(np.array_equal, heads, same[1]))
    trained = works(capsys, "fit", path, "--model", tmp_path / "m", "--alpha", "0.01")
    assert "30 sentences" in trained and "dependency" in trained
    works(capsys, "predict", tmp_path / "m", path, "--output", out)
    assert out.read_bytes()[:2] == b"\x1f\x8b" and len(read_conllu(out)[0]) == 30


def test_attachment_without_punctuation():
    truth, guess = [[2, 0, 2, 2], [0, 1]], [[2, 0, 4, 3], [2, 0]]
    words = [["It", "costs", "$", "..."], ["“", "—"]]
    report = attachment_report(truth, guess, words)
    assert (report["uas_without_punctuation"], report["words_without_punctuation"]) == (2 / 3, 3)
    assert str(report).splitlines()[1] == "right heads 0.6667 of 3 words without punctuation"
    assert attachment_report(truth[1:], guess[1:], words[1:])["uas_without_punctuation"] == 0
    with pytest.raises(ValueError, match=r"words\[1\] is \['a'\]; expected 2 tokens"):
        attachment_report(truth, guess, [words[0], ["a"]])
    for other in (None, float("nan"), 3):
        with pytest.raises(ValueError, match=rf"words\[1\]: found {other!r}, expected a word"):
            attachment_report(truth, guess, [words[0], ["a", other]])
