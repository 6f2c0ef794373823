# Readers and writers: round trips, real files, and the error of every kind of broken file.
import gzip
import re

import numpy as np
import pytest
from checks import memory_below, refused
from data import data_file, needs_data
from hypothesis import example, given
from hypothesis import strategies as st
from small_files import put, same_folder

from structsolve.cli.main import main
from structsolve.io import FORMATS, _text, guess_format, read_examples
from structsolve.io._text import atomic_write
from structsolve.io.graphs import read_hierarchy, read_network
from structsolve.io.npz import read_npz
from structsolve.io.svmlight import read_svmlight
from structsolve.plugins.chain.conll import read_conll, write_conll
from structsolve.plugins.chain.crfsuite import escape, read_crfsuite, unescape, write_crfsuite


@pytest.mark.parametrize("name", ["x.conll", "x.conll.gz", "X.TXT", "x.iob2"])
def test_guess_conll(name):
    assert guess_format(name) == "conll"


def test_guess_covers_all_formats_and_refuses_others():
    for name, endings in {**FORMATS, "crfsuite": (".crf",), "fasta": (".fa",)}.items():
        assert all(guess_format("a" + ending) == name for ending in endings)
    refused(r"model\.bin: found no known ending.*conll.*\.npz", guess_format, "model.bin")
    with pytest.raises(
        ValueError, match="format: found 'xml'; expected one of svmlight, npz, .*crfsuite"
    ):
        read_examples("a.conll", format="xml")


def test_missing_file_stays_an_os_error():
    with pytest.raises(FileNotFoundError):
        read_examples("no/such/file.conll")


# CoNLL


def test_conll_columns_documents_and_byte_order_mark(tmp_path):
    text = "\ufeff-DOCSTART- -X- O\n\nHe\tPRP  B\r\nran VBD I\n \n\n-DOCSTART- -X- O\n# # O"
    X, Y = read_conll(put(tmp_path, "a.conll", text))
    assert X == [[["He", "PRP"], ["ran", "VBD"]], [["#", "#"]]]
    assert Y == [["B", "I"], ["O"]]


def test_conll_keeps_unicode_blanks_in_words(tmp_path):
    X, _ = read_conll(put(tmp_path, "a.conll", "1\u00a0000\u2009m CD O\n"))
    assert X == [[["1\u00a0000\u2009m", "CD"]]]


def test_conll_label_column_and_comment(tmp_path):
    path = put(tmp_path, "a.conll", "# id 1\nB He\n# x\n\n# two words here\nO Yes\n")
    X, Y = read_conll(path, label_column=0, comment="# ")
    assert (X, Y) == ([[["He"], ["x"]], [["Yes"]]], [["B", "#"], ["O"]])
    refused(r"line 2: found 2 columns .*as on line 1", read_conll, path)


def test_conll_without_labels_and_with_tabs(tmp_path):
    path = put(tmp_path, "a.conll", "New York\tNNP\nis\t\n")
    X, Y = read_conll(path, label_column=None, delimiter="\t")
    assert X == [[["New York", "NNP"], ["is", ""]]]
    assert Y is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found no examples; expected lines of columns"),
        ("\n \n", "found no examples"),
        ("a b C\nd E\n", r"line 2: found 2 columns \('d E'\); expected 3, as on line 1"),
        ("a b C\n\n# note\n", r"line 3: found 2 columns .*is it a comment.*comment='#'"),
        ("a\n", "line 1: found 1 column .*enough of them for label column 1"),
        (b"a b\nc \xff\n", r"line 2: found byte 0xff at position 3; expected UTF-8"),
        (b"a b\nc \0\n", "line 2: found a NUL character; expected text"),
        ("a b\n".encode("utf-16"), "line 1: found byte 0xff at position 1; expected UTF-8"),
    ],
)
def test_conll_faults(tmp_path, content, message):
    column = 1 if content == "a\n" else -1
    with pytest.raises(ValueError, match=rf"bad\.conll.*{message}"):
        read_conll(put(tmp_path, "bad.conll", content), label_column=column)


def test_gzip_by_content_and_when_cut_short(tmp_path):
    lines = "".join(f"w{i} X\n" for i in range(5000))
    packed = gzip.compress(lines.encode())
    X, _ = read_conll(put(tmp_path, "named-plain.conll", packed))
    assert len(X[0]) == 5000
    with pytest.raises(ValueError, match=r"cut\.conll\.gz, line \d+: found broken gzip data"):
        read_conll(put(tmp_path, "cut.conll.gz", packed[: len(packed) // 2]))
    with pytest.raises(ValueError, match="broken gzip data"):
        read_conll(put(tmp_path, "rot.conll.gz", packed[:500] + b"\0" * 40 + packed[540:]))
    with pytest.raises(ValueError, match=r"found b'w0' as its first bytes; expected gzip"):
        read_conll(put(tmp_path, "plain.conll.gz", lines))


words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zs", "Zl", "Zp"]), min_size=1)


rows = st.tuples(words.filter(lambda word: word != "-DOCSTART-"), words, words)


@same_folder
@given(st.lists(st.lists(rows, min_size=1), min_size=1))
def test_conll_round_trip(tmp_path, data):
    sentences = [[list(row[:2]) for row in rows] for rows in data]
    labels = [[row[2] for row in rows] for rows in data]
    path = tmp_path / "a.conll"
    write_conll(path, sentences, labels)
    assert read_conll(path) == (sentences, labels)


@pytest.mark.parametrize("row", [["a b"], [""], ["-DOCSTART-"], ["a\n"]])
def test_conll_refuses_what_it_cannot_hold(tmp_path, row):
    refused("expected no blanks", write_conll, tmp_path / "a.conll", [[row]], [["O"]])


@pytest.mark.parametrize("write", [write_conll, write_crfsuite])
def test_other_numbers_of_labels_than_of_tokens_are_refused(tmp_path, write):
    for Y in ([["O"]], [["O"]] * 3):
        refused("X has 2 examples and y has", write, tmp_path / "a", [[["a"]]] * 2, Y)
    refused("example 1: found 2 labels, expected 1", write, "a", [[["a"]]] * 2, [["O"], ["O", "O"]])


@needs_data
@pytest.mark.parametrize(("part", "n", "tokens"), [("train", 8936, 211727), ("test", 2012, 47377)])
def test_conll2000(part, n, tokens):
    X, Y = read_examples(data_file("seq-conll2000", f"{part}.txt.gz"))
    assert (len(X), sum(map(len, Y))) == (n, tokens)
    assert {len(row) for rows in X for row in rows} == {2}


# CRFsuite


def test_crfsuite_attributes(tmp_path):
    path = put(
        tmp_path,
        "a.crfsuite",
        "B\tw=a\t__BOS__\tlen:2\tlen:0.5\\n\n".replace("\\n", "")
        + "I\ttime=10\\:30:-1e1\tdir=c\\:\\\\x\todd\\n\tempty:\r\n\n\nO\n",
    )
    X, Y = read_crfsuite(path)
    assert X == [
        [
            {"w=a": 1.0, "__BOS__": 1.0, "len": 2.5},
            {"time=10:30": -10.0, "dir=c:\\x": 1.0, "odd\\n": 1.0, "empty": 1.0},
        ],
        [{}],
    ]
    assert Y == [["B", "I"], ["O"]]


def test_crfsuite_weights(tmp_path):
    path = put(tmp_path, "a.crf", "@weight:2.5\nA\tx\n\nB\ty\n")
    _, Y, weights = read_crfsuite(path, return_weights=True)
    assert (Y, weights) == ([["A"], ["B"]], [2.5, 1.0])
    refused(r"line 1: .*'@weight:2.5'.*return_weights=True", read_crfsuite, path)
    plain = put(tmp_path, "b.crf", "A\tx\n")
    assert read_crfsuite(plain, return_weights=True)[2] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found no examples"),
        ("A\tx:1\nB\ty:one\n", r"line 2: found the attribute 'y:one'; expected name:number"),
        ("A\tx:nan\n", "line 1: found the attribute 'x:nan'"),
        ("A\tx:1_0\n", "line 1: found the attribute 'x:1_0'"),
        ("A\tx:1:2\n", "line 1: found the attribute 'x:1:2'"),
        ("A\t:1\n", "line 1: found the attribute ':1'"),
        ("A:1\tx\n", "line 1: found 'A:1' before the first tab; expected a label"),
        ("\tx\n", "line 1: found '' before the first tab"),
        ("@include\tx\n", "line 1: found the declaration '@include'"),
        (b"A\tx\nB\t\xc3\n", "line 2: found byte 0xc3"),
    ],
)
def test_crfsuite_faults(tmp_path, content, message):
    refused(rf"bad\.crf.*{message}", read_crfsuite, put(tmp_path, "bad.crf", content))


@given(st.text(st.sampled_from("a\\:=é")))
@example("\\:")
@example("\\\\:")
@example("a\\")
def test_escapes_undo_each_other(text):
    assert unescape(escape(text)) == text


names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), min_size=1)
labels = names.filter(lambda text: not text.startswith("@") and text.strip())
numbers = st.floats(allow_nan=False, allow_infinity=False)


@same_folder
@given(
    st.lists(st.lists(st.tuples(labels, st.dictionaries(names, numbers)), min_size=1), min_size=1)
)
@example([[("\\", {"\\": 1.0, ":": 2.0, "a\\:": -0.0})]])
def test_crfsuite_round_trip(tmp_path, data):
    X = [[item for _, item in rows] for rows in data]
    Y = [[label for label, _ in rows] for rows in data]
    write_crfsuite(tmp_path / "a.crf", X, Y)
    assert read_crfsuite(tmp_path / "a.crf") == (X, Y)


@pytest.mark.parametrize(
    ("label", "item"), [("", {}), (" ", {}), ("@A", ["x"]), ("A", {"a\tb": 1}), ("A\n", ["x"])]
)
def test_crfsuite_refuses_what_it_cannot_hold(tmp_path, label, item):
    with pytest.raises(ValueError, match="example 0: CRFsuite's format cannot hold"):
        write_crfsuite(tmp_path / "a.crf", [[item]], [[label]])
    assert list(tmp_path.iterdir()) == []


def test_crfsuite_values(tmp_path):
    path = tmp_path / "a.crf"
    item = {"a": np.float32(0.5), "b": np.int64(3), "c": False, "d": np.True_}
    write_crfsuite(path, [[item, {}]], [["A", "\xa0"]])
    assert path.read_text("utf-8") == "A\ta:0.5\tb:3.0\tc:0.0\td\n\xa0\n"
    assert read_crfsuite(path) == ([[item, {}]], [["A", "\xa0"]])
    for wrong in ({"a": np.nan}, {"a": "text"}, {"a": None}, {"": 2}, [""], {5: 1}):
        refused("example 1: found the feature", write_crfsuite, path, [[{}], [wrong]], ["A", "A"])
    refused("example 1: found an empty", write_crfsuite, path, [[{}], []], ["A", []])


def test_crfsuite_reads_what_python_crfsuite_means(tmp_path):
    path = put(tmp_path, "a.crf", "A\tx\ty:2\nB\tx\n")
    X, _ = read_crfsuite(path)
    pycrfsuite = pytest.importorskip("pycrfsuite")
    assert pycrfsuite.ItemSequence(X[0]).items() == X[0]


# svmlight


def test_svmlight_plain_and_multilabel(tmp_path):
    X, y = read_examples(put(tmp_path, "a.svm", "# c\n2 1:0.5 3:1 # x\n\n-1 2:1\n"))
    assert X.toarray().tolist() == [[0.5, 0, 1], [0, 1, 0]]
    assert (y.tolist(), y.dtype.kind) == ([2, -1], "i")
    _, y = read_svmlight(put(tmp_path, "b.svm", "1,3 1:1\n 1:2\n"), multilabel=True)
    assert y == [(1.0, 3.0), ()]


def test_svmlight_sequences_and_columns_of_test_data(tmp_path):
    path = put(tmp_path, "a.svm.gz", gzip.compress(b"1 qid:4 1:1\n2 qid:4 2:1\n1 qid:2 1:3\n"))
    X, y = read_svmlight(path, n_features=5)
    assert [x.shape for x in X] == [(2, 5), (1, 5)]
    assert [labels.tolist() for labels in y] == [[1, 2], [1]]
    flat, _ = read_svmlight(path, sequences=False)
    assert flat.shape == (3, 2)
    zero, _ = read_svmlight(put(tmp_path, "z.svm", "1 0:1 2:1\n"), zero_based=True)
    assert zero.shape == (1, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found no examples"),
        ("# only a comment\n", "found no examples"),
        ("1 1:1\none 1:1\n", "line 2: found the label 'one'; expected a number"),
        ("1 1:1\n1 2:x\n", "line 2: found '2:x'; expected column:number"),
        ("1 1:1\n1 2\n", "line 2: found '2'; expected column:number"),
        ("1 1:nan\n", "line 1: found '1:nan'; expected column:number, finite"),
        ("1 1:2 # a_b\n1 1:1_0\n", "line 2: found '1:1_0'; expected column:number, finite"),
        ("1_0 1:1\n", "line 1: found the label '1_0'; expected a number"),
        ("1 2:1\n1 0:1\n", "line 2: found '0:1'; expected columns that count from 1"),
        ("1 2:1 1:1\n", "line 1: found '1:1'; expected a column after 2"),
        ("1 qid:1 1:1\n1 1:1\n", "line 2: found no qid; expected a qid on all lines"),
        ("1 qid:x 1:1\n", "line 1: found 'qid:x'; expected qid:integer"),
        ("1 7:1\n", "line 1: found '7:1'; expected at most 6 columns"),
        ("1 1:1\n1 99999999999:3\n", "line 2: found '99999999999:3'; expected columns up to 21"),
        ("1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:1\n", "qid 1 in 2 separate places"),
        (gzip.compress(b"1 1:1\n" * 9999)[:-20], r"line \d+: found broken gzip"),
        (b"1 1:1\n\xff\n", "line 2: found byte 0xff"),
        (f"{2**53 + 1} 1:1\n{2**53} 2:1\n", r"found a label of 2\*\*53 or beyond"),
        ("-1e30 1:1\n", r"found a label of 2\*\*53 or beyond"),
        ("1 1:1\nnan 1:1\n", "line 2: found the label 'nan'; expected a number"),
    ],
)
def test_svmlight_faults(tmp_path, content, message):
    refused(rf"bad\.svm.*{message}", read_svmlight, put(tmp_path, "bad.svm", content), n_features=6)


def test_svmlight_sequences_need_a_qid(tmp_path):
    refused("found no qid", read_svmlight, put(tmp_path, "a.svm", "1 1:1\n"), sequences=True)


def test_svmlight_byte_order_mark_and_largest_labels(tmp_path):
    X, y = read_svmlight(put(tmp_path, "a.svm", f"\ufeff{2**53 - 1} 1:1\r\n{2 - 2**53} 2:1\r\n"))
    assert y.tolist() == [2**53 - 1, 2 - 2**53]
    assert X.toarray().tolist() == [[1, 0], [0, 1]]


# npz


@pytest.mark.parametrize("name", ["a.txt.gz", "A.TXT.GZ"])
def test_text_is_compressed_if_the_name_says_so(tmp_path, name):
    path = tmp_path / name
    with atomic_write(path) as handle:
        handle.writelines(["ä\n", "b\n"])
    assert gzip.decompress(path.read_bytes()) == "ä\nb\n".encode()
    with pytest.raises(RuntimeError), atomic_write(path) as handle:
        handle.write("new")
        raise RuntimeError
    assert [line for _, line in _text.text_lines(path)] == ["ä", "b"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = put(tmp_path, "a.txt", "old")
    with pytest.raises(RuntimeError), atomic_write(path) as handle:
        handle.write("new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# ---- lines without end, and errors that name the file ------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.crf", "a.svm", "a.conllu", "a.json"])
def test_a_line_without_end_is_refused(tmp_path, name, monkeypatch):
    """A small gzip file may contain one, and would fill the memory."""
    monkeypatch.setattr(_text, "LINE_LIMIT", 10_000)
    path = put(tmp_path, f"{name}.gz", gzip.compress(b"1 1:1 " * 2_000_000))
    if name == "a.json":
        path = put(tmp_path, name, gzip.compress(b"[" * 12_000_000))
    reader = read_hierarchy if name == "a.json" else read_examples
    with memory_below(5_000_000):
        refused(r"line 1: found more than 10000 bytes", reader, path)


@pytest.mark.parametrize("name", ["a.conll", "a.crf", "a.svm", "a.conllu"])
def test_lines_that_end_in_cr_alone_are_refused(tmp_path, name):
    """They were one line: one example of one token."""
    for content in ("1 1:1\r2 1:2", "\ufeff1 1:1\r2 1:2\r"):
        refused(r"line 1: found line ends of CR alone", read_examples, put(tmp_path, name, content))


@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("deep.json", b"[" * 100_000, read_hierarchy),
        ("digits.json", b'{"a": ["b"], "b": [' + b"9" * 5000 + b"]}", read_hierarchy),
        ("deep.json", b'{"arcs": ' + b"[" * 100_000, read_network),
        ("a.svm", b"1 " + b"9" * 5000 + b":1\n", read_examples),
        ("a.npz", b"PK\x05\x06" + b"\0" * 18, read_examples),
    ],
)
def test_errors_name_the_file(tmp_path, name, content, reader):
    path = put(tmp_path, name, content)
    refused(re.escape(name), reader, path)


class TestUnreadArrays:
    """Unsupported input is refused, because an answer without it would be another problem's."""

    @pytest.mark.parametrize("name", ["pair", "sample_weight", "edgess"])
    def test_read_npz(self, tmp_path, name):
        np.savez(tmp_path / "x.npz", X=np.eye(3), y=[0, 1, 2], **{name: np.eye(3)})
        with pytest.raises(ValueError, match=f"found the arrays {name}, which would not be read"):
            read_npz(tmp_path / "x.npz")

    @pytest.mark.parametrize("name", ["pair", "sample_weight", "edges"])
    def test_archives_of_other_names(self, tmp_path, name):
        np.savez(tmp_path / "x.npz", X=np.eye(3), y=[0, 1, 2], **{name: np.eye(3)})
        with pytest.raises(ValueError, match=f"found (the arrays )?{name}"):
            read_examples(tmp_path / "x.npz")

    @pytest.mark.parametrize("name", ["pair", "constant"])
    def test_decode(self, tmp_path, capsys, name):
        energies = {"unary": np.eye(2), "edges": [[0, 1]], "weights": [1.0]}
        np.savez(tmp_path / "x.npz", size=[1, 2], **energies)
        assert main(["decode", str(tmp_path / "x.npz")]) == 0
        np.savez(tmp_path / "x.npz", **energies, **{name: np.eye(2)})
        assert main(["decode", str(tmp_path / "x.npz")]) == 2
        assert f"found {name}, expected only unary" in capsys.readouterr().err
        np.savez(tmp_path / "x.npz", costs=np.eye(2), **{name: np.ones(3)})
        assert main(["decode", str(tmp_path / "x.npz")]) == 2
        assert main(["decode", str(tmp_path / "x.npz"), "--target", "costs"]) == 0


def test_a_table_of_words_below_names(tmp_path):
    path = tmp_path / "mushrooms.csv"
    path.write_text("Class,cap,odour\np,x,n\ne,b,n\n")
    X, y = read_examples(path)
    assert (X.tolist(), y.tolist()) == ([[0, 1, 1], [1, 0, 1]], ["p", "e"])
    for rows in ("p,y,n\ne,b,n\n", "class,a\nclass,b\n"):  # values, no names
        path.write_text(rows)
        assert len(read_examples(path)[1]) == 2
