# Rows of very many classes as a stream: values, chunks, headers, memory, and what is refused.
import gzip
import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from checks import memory_below, refused
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from small_files import put as put_file
from small_files import same_folder

from structsolve.io import read_examples
from structsolve.plugins.extreme import reader as extreme
from structsolve.plugins.extreme.predictions import prediction_lines, write_predictions
from structsolve.plugins.extreme.reader import read_extreme, read_svmlight_chunks


@pytest.fixture
def put(tmp_path):
    return lambda content, name="rows.txt": put_file(tmp_path, name, content)


def dense(path, **options):
    X, y = read_extreme(path, **options)
    assert X.dtype == np.float32 and X.indices.dtype == np.int32 and y.dtype == np.int64
    return X.toarray().tolist(), y.tolist()


# Numbers

numbers = st.one_of(
    st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[+-]?\.[0-9]{1,25}([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: f"{x:.9g}"),
    st.floats(-1e30, 1e30).map(repr),
    # Float64s beside the middle of two float32s, which one rounding more would bring there.
    st.builds(
        lambda k, tail: f"{2 * k + 1}.00000000186{tail:03}",
        st.integers(2**23, 2**24 - 1),
        st.integers(0, 999),
    ),
    st.integers(2**23, 2**24 - 1).map(lambda k: f"{2 * k}.9999999999999999999"),
)


@same_folder
@given(texts=st.lists(numbers, min_size=1, max_size=40))
def test_values_are_those_of_python_rounded_to_float32(put, texts):
    with np.errstate(over="ignore"):
        expected = np.array([float(text) for text in texts]).astype(np.float32)
    line = "1 " + " ".join(f"{k}:{text}" for k, text in enumerate(texts, 1)) + "\n"
    path = put(line)
    infinite = np.flatnonzero(~np.isfinite(expected))
    if len(infinite):
        field = f"{infinite[0] + 1}:{texts[infinite[0]]}"
        refused(f"line 1: found {re.escape(repr(field))}; expected", read_extreme, path)
        return
    X, _ = read_extreme(path)
    assert X.indices.tolist() == [*range(len(texts))]
    assert X.data.view(np.int32).tolist() == expected.view(np.int32).tolist()


@same_folder
@given(seed=st.integers(0, 2**32), zero_based=st.booleans())
def test_files_of_scikit_learn_come_back(tmp_path, seed, zero_based):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 30), rng.integers(1, 20)
    X = np.where(rng.random((n, d)) < 0.3, rng.normal(size=(n, d)), 0)
    y = rng.integers(-5, 9, n)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, comment="made up")
    theirs, labels = load_svmlight_file(
        str(path), n_features=d, zero_based=zero_based, dtype=np.float32
    )
    ours, classes = read_extreme(path, n_features=d, zero_based=zero_based)
    assert ours.shape == (n, d) and classes.tolist() == labels.tolist() == y.tolist()
    assert (ours != theirs).nnz == 0 and ours.nnz == theirs.nnz


# Lines and labels


def test_lines_with_and_without_header(put):
    text = "12 1:.5 3:1 # end\n\n# none\r\n7\t2:1e1\r\n-3.0\n4 1:2"
    assert dense(put(text)) == ([[0.5, 0, 1], [0, 10, 0], [0, 0, 0], [2, 0, 0]], [12, 7, -3, 4])
    assert dense(put("\ufeff" + text))[1] == [12, 7, -3, 4]
    assert dense(put("2 4 9\n7 0:1 3:1\n8 1:2\n")) == ([[1, 0, 0, 1], [0, 2, 0, 0]], [7, 8])
    assert dense(put("1 4 9\n7 1:1 4:1\n"), zero_based=False) == ([[1, 0, 0, 1]], [7])
    assert dense(put("7 1:1\n"), n_features=3, zero_based=True) == ([[0, 1, 0]], [7])
    assert dense(put("1 2 9\n7 1:1\n"), n_features=3) == ([[0, 1, 0]], [7])


def test_who_decides_whether_columns_count_from_0(put):
    def told(text, **options):
        return read_extreme(put(text), return_zero_based=True, **options)[2]

    assert not told("1 1:1\n") and told("1 1:1\n", zero_based=True)
    assert told("1 2 9\n1 1:1\n") and not told("1 2 9\n1 1:1\n", zero_based=False)


def test_a_row_for_each_label_of_a_line(put):
    text = "4 3 9\n7,2 0:1\n 1:1\n\n5,1,0 2:1 0:2\n\n\n"
    assert dense(put(text)) == (
        [[1, 0, 0], [1, 0, 0], [2, 0, 1], [2, 0, 1], [2, 0, 1]],
        [7, 2, 5, 1, 0],
    )
    ignored = [[1, 0, 0], [0, 1, 0], [0, 0, 0], [2, 0, 1]]
    assert dense(put(text), labels="ignore") == (ignored, [])
    assert dense(put("1:1\n5 2:1\n"), labels="ignore") == ([[1, 0], [0, 1]], [])
    refused("line 2: found 2 labels; expected one label", read_extreme, put(text), labels="one")
    text = "5 1:1\n1:1\n"
    refused("line 2: found no labels; expected one label", read_extreme, put(text), labels="one")
    refused("line 2: found no labels; expected a label", read_extreme, put(text))


@same_folder
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 12),
    block=st.integers(1, 60),
    header=st.booleans(),
    labels=st.sampled_from(["each", "ignore"]),
)
def test_chunks_and_blocks_of_any_size_give_the_same_rows(put, seed, rows, block, header, labels):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 25)), int(rng.integers(1, 9))
    X = np.where(rng.random((n, d)) < 0.4, rng.integers(1, 9, (n, d)), 0)
    sets = [rng.choice(9, rng.integers(not header, 4), replace=False).tolist() for _ in range(n)]
    lines = [f"{n} {d} 9"] if header else []
    for row, own in zip(X.tolist(), sets, strict=True):
        pairs = [f"{k + (not header)}:{value}" for k, value in enumerate(row) if value]
        rng.shuffle(pairs)
        lines.append(" ".join([",".join(map(str, own)), *pairs]))
        if rng.random() < 0.2:
            lines.append("# a note")
    end = "\n" * int(not lines[-1] or rng.random() < 0.5)
    path = put("\n".join(lines) + end)
    old, extreme._BLOCK = extreme._BLOCK, block
    try:
        chunks = [*read_svmlight_chunks(path, rows, n_features=d, labels=labels)]
    finally:
        extreme._BLOCK = old
    each = [(row, label) for row, s in zip(X.tolist(), sets, strict=True) for label in s]
    if labels == "each":
        assert all(0 < len(y) == x.shape[0] for x, y in chunks)
        expected = [row for row, _ in each]
        assert [label for _, y in chunks for label in y.tolist()] == [label for _, label in each]
    else:
        expected = X.tolist()
        assert [x.shape[0] for x, _ in chunks] == [rows] * (n // rows) + [n % rows] * (n % rows > 0)
    assert [row for x, _ in chunks for row in x.toarray().tolist()] == expected
    for x, _ in chunks:
        x.check_format()
        assert all((np.diff(x[i].indices) > 0).all() for i in range(x.shape[0]))


def test_chunks_end_early_where_lines_are_long(put, monkeypatch):
    monkeypatch.setattr(extreme, "_PAIRS", 10)
    monkeypatch.setattr(extreme, "_BLOCK", 8)
    path = put("".join(f"{k} 1:1 2:1 3:1 4:1\n" for k in range(7)))
    chunks = [*read_svmlight_chunks(path, n_features=4)]
    assert [y.tolist() for _, y in chunks] == [[0, 1, 2], [3, 4, 5], [6]]


def test_memory_is_that_of_a_chunk(put, monkeypatch):
    monkeypatch.setattr(extreme, "_BLOCK", 2**14)
    path = put("".join(f"{k} 1:1 2:0.5 3:1 4:1.5\n" for k in range(60_000)))
    assert path.stat().st_size > 1_400_000
    with memory_below(400_000):
        total = sum(x.nnz for x, _ in read_svmlight_chunks(path, 500, n_features=4))
    assert total == 240_000


def test_gzip_standard_input_and_the_format_by_name(put, monkeypatch):
    text = b"3 1:1\n4 2:1\n"
    expected = ([[1, 0], [0, 1]], [3, 4])
    assert dense(put(gzip.compress(text), "a.svm.gz")) == expected
    standard = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(text)))
    monkeypatch.setattr(sys, "stdin", standard)
    assert dense("-") == expected
    X, y = read_examples(put(text), "extreme", n_features=5)
    assert X.shape == (2, 5) and y.tolist() == [3, 4]


# What is refused


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "found no examples; expected lines"),
        ("# nothing\n\n", "found no examples"),
        ("1 1:2\nx 1:2\n", "line 2: found the label 'x'; expected a class"),
        ("1,a 1:2\n", "line 1: found the label 'a'"),
        ("1, 1:2\n", "line 1: found the label ''"),
        ("1.5 1:2\n", "found the label '1.5'; expected a class, which is a whole number"),
        ("nan 1:2\n", "found the label 'nan'"),
        ("99999999999999999999 1:2\n", "found the label '99999999999999999999'"),
        ("1 qid:3 1:2\n", "line 1: found 'qid:3'; expected column:number"),
        ("1 2\n", "found '2'; expected column:number"),
        ("1 1:\n", "found '1:'"),
        ("1 1:2:3\n", "found '1:2:3'"),
        ("1 :2\n", "found ':2'"),
        ("1 1:2,5\n", "found '1:2,5'"),
        ("1 1:0x10\n", "found '1:0x10'"),
        ("1 1:1_0\n", "found '1:1_0'"),
        ("1 1:2e\n", "found '1:2e'"),
        ("1 1:-\n", "found '1:-'"),
        ("1 1:.\n", "found '1:.'"),
        ("1 1:nan\n", "found '1:nan'"),
        ("1 1:1e39\n", "found '1:1e39'; expected column:number, finite as float32"),
        ("1 1:1e9999999999999\n", "finite as float32"),
        ("1 0:1\n", "found '0:1'; expected columns that count from 1"),
        ("1 2147483648:1\n", "found '2147483648:1'; expected at most 2147483647 columns"),
        ("1 99999999999999999999:1\n", "expected at most 2147483647 columns"),
        ("1\n1 3:1 2:2 3:2\n", "line 2: found the column 3 twice; expected each column once"),
        ("1 1:1 1:1\n", "line 1: found the column 1 twice"),
        (b"1 1:2\n1 \xff:2\n", r"line 2: found '\\\\xff:2'"),
        (b"1 1:2\0\n", r"line 1: found '1:2\\x00'"),
        ("2 3 4\n1 0:1\n4 0:1\n", "line 3: found the label '4'; .*0 to 3 by the header"),
        ("2 3 4\n1 0:1\n-1 0:1\n", "line 3: found the label '-1'"),
        ("2 3 4\n1 0:1\n1 3:1\n", "line 3: found '3:1'; expected at most 3 columns"),
        ("2 3 4\n1 0:1\n", "line 2: found the end after 1 rows; expected 2 rows"),
        ("1 3 4\n1 0:1\n\n1 0:1\n", "line 4: found another row; expected the header's 1 rows"),
        ("1 0 4\n1\n", "line 1: found 0 features; expected 1 to"),
        ("1 99999999999 4\n1\n", "line 1: found 99999999999 features"),
        ("1 2 " + "9" * 5000 + "\n1\n", "line 1: found a number of 5000 digits; expected sizes"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("block", [1, 2**22])
def test_malformed_lines_are_named(put, monkeypatch, text, message, block):
    monkeypatch.setattr(extreme, "_BLOCK", block)
    path = put(text)
    with pytest.raises(ValueError, match=message) as error:
        read_extreme(path)
    assert str(error.value).startswith(str(path))


def test_widths_that_do_not_fit_and_wrong_arguments(put):
    refused("line 2: found '3:1'; expected at most 2 columns",
            read_extreme, put("1 2:1\n1 3:1\n"), n_features=2)  # fmt: skip
    refused("line 1: found 3 features; expected at most 2, as in training",
            read_extreme, put("1 3 4\n1 0:1\n"), n_features=2)  # fmt: skip
    # Before anything is read.
    refused("rows: found 0; expected a whole number", read_svmlight_chunks, "none", rows=0)
    refused("labels: found 'all'; expected one of each, one", read_svmlight_chunks, "none",
            labels="all")  # fmt: skip
    refused("n_features: found 0; expected 1 to", read_svmlight_chunks, "none", n_features=0)


def test_broken_gzip_and_endless_lines(put, monkeypatch):
    packed = gzip.compress(b"".join(b"%d 1:%d\n" % (k, k * k) for k in range(5000)))
    refused(r"line \d+: found broken gzip data", read_extreme, put(packed[:-9], "a.gz"))
    refused("expected gzip data", read_extreme, put("1 1:1\n", "a.gz"))
    monkeypatch.setattr(extreme, "LINE_LIMIT", 20)
    monkeypatch.setattr(extreme, "_BLOCK", 16)
    refused("line 2: found over 20 bytes; expected the end of the line",
            read_extreme, put("1 1:1\n1 1:" + "1" * 40 + "\n"))  # fmt: skip
    with pytest.raises(FileNotFoundError):
        read_extreme("no/such/file.svm")


# Predictions


def test_predictions_are_lines_of_labels_and_scores(tmp_path):
    labels, scores = np.array([[3, 1], [2, 0]]), np.array([[2, 0.5], [1.25, -np.inf]], np.float32)
    assert [*prediction_lines(labels, scores)] == ["3:2\t1:0.5\n", "2:1.25\n"]
    assert [*prediction_lines(labels)] == ["3\t1\n", "2\t0\n"]
    assert [*prediction_lines(["a", "b"], [1, 2])] == ["a:1\n", "b:2\n"]
    path = tmp_path / "out.txt"
    write_predictions(path, [(labels, scores), (labels[:1], scores[:1])])
    assert path.read_text() == "3:2\t1:0.5\n2:1.25\n3:2\t1:0.5\n"
    with pytest.raises(ValueError):
        write_predictions(path, [(labels, scores[:1])])
    assert path.read_text().count("\n") == 3
