"""Files as people have them, from the shell: tables, archives of several splits, rankings, bits."""

import contextlib
import gzip
import json
import os
import subprocess
import sys
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from data import data_file, needs_data
from shell import fails, works

import structsolve
from structsolve.cli.main import main
from structsolve.io import read_examples
from structsolve.io.archives import ArchiveReader
from structsolve.io.graphs import read_hierarchy
from structsolve.io.tables import TableReader

# What trains on each data set of STRUCTSOLVE_DATA without changes.
TRAINED = {
    "ocr-letters/letters.npz": "--option unpack=true --where fold=0",
    "ocr-letters/letter.data.gz": "--target 1 --option group=3 --option drop=0,2 --where 5=0",
    "seq-conll2000/test.txt.gz": "--features columns",
    "mc-iris/iris.csv.gz": "",
    "mc-iris/data.npz": "",
    "mc-letter/test.csv.gz": "",
    "mc-letter/data.npz": "--split train",
    "mc-segment/segment.csv.gz": "",
    "mc-segment/data.npz": "",
    "mc-vehicle/vehicle.csv.gz": "",
    "mc-vehicle/data.npz": "",
    "mc-wine/wine.csv.gz": "",
    "mc-wine/data.npz": "",
    "ord-abalone/abalone_ord.csv.gz": "--structure ordinal",
    "ord-stocks/stock_ord.csv.gz": "--structure ordinal",
    "ord-stocks/data.npz": "--structure ordinal",
    "ord-abalone/data.npz": "--structure ordinal",
    "ord-winequality-red/data.npz": "--structure ordinal",
    "ord-wisconsin/data.npz": "--structure ordinal",
    "ord-winequality-red/winequality-red.csv.gz": "--structure ordinal",
    "ord-wisconsin/wisconsin_breast_ord.csv.gz": "--structure ordinal",
    "rank-bodyfat/bodyfat.txt.gz": "--structure permutation",
    "rank-glass/glass.txt.gz": "--structure permutation",
    "rank-iris/iris.txt.gz": "--structure permutation",
    "rank-stock/stock.txt.gz": "--structure permutation",
    "rank-vehicle/vehicle.txt.gz": "--structure permutation",
    "rank-wine/wine.txt.gz": "--structure permutation",
    "rank-wisconsin/wisconsin.txt.gz": "--structure permutation",
    "rank-bodyfat/data.npz": "--structure permutation",
    "rank-glass/data.npz": "--structure permutation",
    "rank-iris/data.npz": "--structure permutation",
    "rank-stock/data.npz": "--structure permutation",
    "rank-vehicle/data.npz": "--structure permutation",
    "rank-wine/data.npz": "--structure permutation --target order",
    "rank-wisconsin/data.npz": "--structure permutation",
    "hmc-eisen-go/data.npz": "--structure dag --split train --missing mean",
    "hmc-enron/data.npz": "--structure dag --split test",
    "hmc-imclef07a/data.npz": "--structure dag --split test",
    "hmc-spo-fun/data.npz": "--structure dag --split valid --missing zero",
    "ml-bibtex/data.npz": "--structure multilabel --split train",
    "ml-emotions/data.npz": "--structure multilabel --split train",
    "ml-rcv1-subset1/data.npz": "--structure multilabel",
    "ml-scene/data.npz": "--structure multilabel --split test",
    "ml-yeast/data.npz": "--structure multilabel --split test",
    "mrf-snakes/snakes.npz": "--structure grid --split train",
    "ml-bibtex/bibtex-train.arff.gz": "--structure multilabel",
    "ml-emotions/emotions-train.arff.gz": "--structure multilabel",
    "ml-scene/scene-test.arff.gz": "--structure multilabel",
    "ml-yeast/yeast-test.arff.gz": "--structure multilabel",
    "hmc-imclef07a/ImCLEF07A_Test.arff.gz": "--structure dag",
    "hmc-enron/Enron_corr_test.arff.gz": "--structure dag",
    "hmc-eisen-go/eisen_GO.train.arff.gz": "--structure dag --missing mean",
    "hmc-spo-fun/spo_FUN.valid.arff.gz": "--structure dag --missing mean",
    "seq-protein-ss/sequences.fasta.gz": "--target {}/sampled.fasta.gz "
    "--option mask={}/mask.fasta.gz",
    "dep-ud-english-ewt/en_ewt-ud-dev.conllu.gz": "--structure dependency",
    "match-cars/pairs.npz": "--structure permutation",
    "match-cmu-house/landmarks.npz": "--structure permutation --option gap=30",
}


# Those that take at least a second to read.
SLOW = ("dep-ud", "seq-", "hmc-eisen", "hmc-enron")


@needs_data
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith(SLOW) else [])
        for name in TRAINED
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_data_sets_as_they_lie(capsys, tmp_path, name):
    if ".arff" in name:
        pytest.importorskip("arff", reason="liac-arff is not installed")
    model, file = tmp_path / "m.structsolve", data_file(*name.split("/"))
    options = TRAINED[name].format(file.parent, file.parent).split()
    few = ["--rows", "4", "--max-iter", "1", "--alpha", "1"]
    told = works(capsys, "fit", file, "--model", model, *options, *few)
    assert "read      4 " in told
    # The model remembers how to read the same file again.
    chosen = [
        word
        for option, value in pairwise(options)
        if option in ("--split", "--where")
        for word in (option, value)
    ]
    out = works(capsys, "predict", model, file, *chosen, "--rows", "2")
    assert out.count("\n") >= 2


def test_tables(capsys, tmp_path):
    train, new, model = (tmp_path / name for name in ("a.csv", "b.csv", "m.structsolve"))
    train.write_text("size,colour,class\n1,red,a\n1.5,?,a\n-1,blue,b\n?,blue,b\n")
    fails(capsys, "fit", train, "--model", model, match="found 1 missing values .* --missing mean")
    works(capsys, "fit", train, "--model", model, "--missing", "mean", "--alpha", ".01")
    assert structsolve.load(model).n_features_in_ == 3
    # Columns are found by their names, and labels may be missing.
    new.write_text("colour,size\nred,2\nblue,?\ngreen,-3\n")
    assert works(capsys, "predict", model, new) == "a\nb\nb\n"
    new.write_text("colour\nred\n")
    fails(capsys, "predict", model, new, match="b.csv: features: found no column 'size'")
    new.write_text("colour,size\nred,2\nblue,big\n")
    fails(capsys, "predict", model, new, match="b.csv, line 3: found 'big'; expected a number")


def test_tables_without_names(tmp_path):
    path = tmp_path / "letters.data"
    path.write_text("1\tx\t7\t0\t1\t\n2\ty\t7\t1\t1\t\n3\tx\t8\t0\t0\t\n")
    reader = TableReader(target=1, group=2, drop=0)
    X, y = reader.fit(str(path))
    assert [x.tolist() for x in X] == [[[0, 1], [1, 1]], [[0, 0]]]
    assert [labels.tolist() for labels in y] == [["x", "y"], ["x"]]
    X, y = TableReader(target=1, group=2, where="2!=7").fit(str(path))
    assert len(X) == 1 and y[0].tolist() == ["x"]


def test_names_that_python_takes_for_numbers(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("size,code,class\n1,1_2,1_2\n2,12,12\n")
    reader = TableReader()
    X, y = reader.fit(str(path))
    assert y.tolist() == ["1_2", "12"] and reader.columns == [
        ["size", None],
        ["code", ["12", "1_2"]],
    ]
    assert X.tolist() == [[1, 0, 1], [2, 1, 0]]
    path.write_text("size,class\n1,99999999999999999998\n2,99999999999999999999\n")
    assert TableReader().fit(str(path))[1].tolist() == ["9" * 19 + "8", "9" * 20]
    path.write_text("1_1 1_2\n1_1 1_3\n")
    assert read_hierarchy(path) == {"1_1": ["1_2", "1_3"], "1_2": [], "1_3": []}


def test_cells_in_quotes_of_several_lines(tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text('size,class\n"1\n2",a\n12,b\n')
    reader = TableReader()
    assert reader.fit(str(path))[0].tolist() == [[1, 0], [0, 1]]
    assert reader.columns == [["size", ["1\n2", "12"]]]


def test_rankings(tmp_path):
    path = tmp_path / "ranks.txt.gz"
    with gzip.open(path, "wt") as file:
        file.write("A,ranking\n1,b>c>a\n2,a>b>c\n")
    reader = TableReader()
    X, y = reader.fit(str(path))
    assert y.tolist() == [[2, 0, 1], [0, 1, 2]] and reader.labels == ["a", "b", "c"]
    with gzip.open(path, "wt") as file:
        file.write("A,ranking\n1,b>a\n2,a>b>c\n")
    with pytest.raises(ValueError, match=r"line 2: found b>a; expected all of a, b, c"):
        TableReader(labels=["a", "b", "c"], columns=[["A", None]]).read(str(path))


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("a,b\n1,2\n1\n", {}, "line 3: found 1 cells; expected 2"),
        ("a,a\n1,2\n", {}, "line 1: found the name 'a' twice"),
        ("", {}, "found no examples"),
        ("a,b\n1,2\n", {"target": "c"}, "target: found no column 'c'; expected one of a, b"),
        ("a,b\n1,\n", {}, "line 2: found no label"),
        ("a,b\n1,2\n", {"where": "a=3"}, "found no examples left by where=a=3, of 1"),
        ("a;class\n2;x\n1,5;y\n", {}, "line 3: found '1,5'; expected numbers with decimal points"),
        ('a,b,c\n1,2,x\n\n1,"2,x\n3,4,y\n', {}, "line 4: found 2 cells; expected 3"),
        (f"a,b\n1,2\n1,{'z' * 140_000}\n1,2\n", {}, "line 3: found no table .field larger"),
    ],
)
def test_wrong_tables(tmp_path, text, options, message):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"wrong.csv.*{message}"):
        TableReader(**options).fit(str(path))


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(
        path,
        X_train_indptr=[0, 1, 2],
        X_train_indices=[0, 2],
        Y_train_indptr=[0, 1, 3],
        Y_train_indices=[1, 0, 1],
        shape_train=[2, 4, 3],
        X_test_indptr=[0, 0],
        X_test_indices=np.zeros(0, int),
        Y_test_indptr=[0, 0],
        Y_test_indices=np.zeros(0, int),
        shape_test=[1, 4, 3],
    )
    return str(path)


def test_splits_of_sparse_labels(archive):
    X, y = ArchiveReader(split="train").read(archive)
    assert X.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]
    assert y.tolist() == [[0, 1, 0], [1, 1, 0]]
    X, y = ArchiveReader(split="test").read(archive)
    assert X.shape == (1, 4) and y.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, r"found the splits train, test; .*--split train"),
        ({"split": "dev"}, "found no split 'dev'; expected one of train, test"),
        ({"split": "train", "target": "z"}, "found no array 'z'"),
        ({"split": "train", "unpack": True}, "found no X of bytes"),
        ({"split": "train", "where": "fold=1"}, "found no values 'fold'"),
    ],
)
def test_wrong_archives(archive, options, message):
    with pytest.raises(ValueError, match=f"data.npz: .*{message}"):
        ArchiveReader(**options).read(archive)


def test_orders_become_ranks(tmp_path):
    path = str(tmp_path / "data.npz")
    order = np.array([[2, 0, 1], [0, 1, 2]])
    np.savez(path, X=np.eye(2), order=order)
    _, y = ArchiveReader().read(path)
    assert y.tolist() == [[1, 2, 0], [0, 1, 2]]  # label 2 comes first


@pytest.mark.parametrize(
    "options, message",
    [
        (["--solver", "bfcw"], "unknown solver 'bfcw'"),
        (["--surrogate", "hinge"], "unknown surrogate 'hinge'"),
        (["--alpha", "-1"], "alpha is -1.0, expected"),
        (["--tol", "nan"], "tol is nan"),
        (["--max-iter", "0"], "max_iter is 0"),
        (["--oracle", "ip"], "unknown lp backend 'ip'"),
        (
            ["--loss", "hammin"],
            r"--loss 'hammin': unknown .did you mean 'hamming'\?.; expected one of .*'hamming'",
        ),
        (
            ["--structure", "ordinal", "--loss", "asolute"],
            r"unknown .did you mean 'absolute'\?.; expected one of .*'absolute'",
        ),
        (["--estimator", "risk", "--loss", "hammin"], "--loss 'hammin': unknown"),
        (["--structure", "chain:forbidden=BIX"], r"scheme is 'BIX', expected one of \['BIO'"),
        (["--structure", "chain:sart=3"], "sart"),
        (["--structure", "multilabel:oracle=ip"], "ip"),
        (["--structure", "grid:neighbours=5"], "neighbours"),
        (["--kernel", "rbff"], "kernel is 'rbff', expected"),
        (["--estimator", "risk", "--kernel", "rbff"], "kernel is 'rbff', expected"),
        (
            ["--kernel", "rbf", "--kernel-param", "x=1"],
            r"expected some of \['gamma'",
        ),
        (["--kernel-param", "gamma=1"], "name a kernel, or leave them out"),
        (["--alphas", "1", "2", "--cv", "1"], "cv is 1, expected an integer >= 2"),
        (["--n-hidden", "0"], "n_hidden is 0, expected an integer of at least 1"),
        (["--window", "-1"], "--window -1: expected 0 or more"),
        (["--class-weight", "a"], "--class-weight 'a': expected CLASS=WEIGHT"),
        (["--n-jobs", "0"], "n_jobs is 0"),
        (["--cache-size", "-1"], "cache_size is -1"),
        (["--rows", "9:3"], "rows: found '9:3'"),
        (["--where", "fold"], "where: found 'fold'"),
        (["--option", "unpack"], "--option 'unpack': expected NAME=VALUE"),
        (["--option", "colour=3"], "option colour: unknown for npz data, which take split, target"),
    ],
)
def test_options_are_refused_before_data_are_read(capsys, tmp_path, options, message):
    path = tmp_path / "no-such-file.npz"
    fails(capsys, "fit", path, "--model", tmp_path / "m", *options, match=message)


ARFF = """% a comment
@relation 'animals -C 2'
@attribute barks {0,1}
@attribute meows {0,1}
@attribute size numeric
@attribute coat {short,long}
@data
"""


def arff_file(tmp_path, text, name="toy-train.arff"):
    pytest.importorskip("arff", reason="liac-arff is not installed")
    from structsolve.io.arff import ArffReader

    path = tmp_path / name
    path.write_text(text)
    return str(path), ArffReader


def test_arff_dense_and_sparse(tmp_path):
    path, ArffReader = arff_file(tmp_path, ARFF + "1,0,2.5,short\n0,1,?,long\n")
    X, y = ArffReader().fit(path)
    np.testing.assert_array_equal(X, [[2.5, 1, 0], [np.nan, 0, 1]])
    assert y.tolist() == [[1, 0], [0, 1]]  # the first two, as MEKA's relation says
    path, _ = arff_file(tmp_path, ARFF + "{0 1, 2 2.5}\n{1 1, 3 long}\n")
    X, y = ArffReader().fit(path)
    assert X.toarray().tolist() == [[2.5, 1, 0], [0, 0, 1]] and y.tolist() == [[1, 0], [0, 1]]
    # An XML file beside the data names the labels.
    (tmp_path / "toy.xml").write_text(
        '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="meows"/></labels>'
    )
    X, y = ArffReader(rows=1).fit(path)
    assert y.tolist() == [0] and X.toarray().tolist() == [[1, 2.5, 1, 0]]
    _, y = ArffReader(target="coat", where="barks=0").fit(path)
    assert y.tolist() == ["long"]


def test_arff_sparse_rows_with_missing_words(tmp_path):
    head = "@relation t\n@attribute a {x,y}\n@attribute b numeric\n@attribute c {p,q}\n@data\n"
    path, ArffReader = arff_file(tmp_path, head + "{0 ?, 1 ?}\n{0 y, 2 q}\n")
    X, y = ArffReader().fit(path)
    np.testing.assert_array_equal(X.toarray(), [[np.nan] * 3, [0, 1, 0]])
    assert y.tolist() == ["p", "q"]


def test_arff_sparse_rows_omit_the_first_value(tmp_path):
    head = "@relation x\n@attribute a {1,0}\n@attribute class {1_1,1_2}\n@data\n"
    path, ArffReader = arff_file(tmp_path, head + "{0 0}\n{1 1_2}\n")
    X, y = ArffReader().fit(path)
    assert X.toarray().tolist() == [[0, 1], [1, 0]] and y.tolist() == ["1_1", "1_2"]
    path, _ = arff_file(tmp_path, head + "0,1_1\n1,1_2\n")
    assert ArffReader().fit(path)[0].tolist() == [[0], [1]]


def test_info_of_models_of_arff_has_names_of_attributes(tmp_path, capsys):
    head = "@relation r\n@attribute size numeric\n@attribute kind {bird,cat}\n"
    head += "@attribute big {0,1}\n@attribute class {a,b}\n@data\n"
    names = {"size", "kind=bird", "kind=cat", "big"}
    for rows in ("3,bird,1,a\n1,cat,0,b\n", "{0 3, 2 1}\n{0 1, 1 cat, 3 b}\n"):
        path, _ = arff_file(tmp_path, head + rows)
        works(capsys, "fit", path, "--model", tmp_path / "m")
        tables = json.loads(works(capsys, "info", tmp_path / "m", "--top", "0", "--json"))
        text = json.dumps(tables)
        assert all(json.dumps(name) in text for name in names)


def test_options_of_a_reader_that_have_a_name_of_their_own(tmp_path, capsys):
    """The default of --label-column replaced --option label_column, silently."""
    path = tmp_path / "a.conll"
    path.write_text("# a comment of six words here\n1 He PRON\n2 ran VERB\n")
    options = ("--option", "comment=#", "--option", "label_column=0")
    works(capsys, "fit", path, "--model", tmp_path / "m", *options)
    assert set(works(capsys, "predict", tmp_path / "m", path).split()) == {"1", "2"}
    works(capsys, "fit", path, "--model", tmp_path / "m", "--comment", "#")
    assert set(works(capsys, "predict", tmp_path / "m", path).split()) == {"PRON", "VERB"}


def test_labels_that_are_one_number_but_two_texts(tmp_path, capsys):
    """Codes 01 and 1 were merged; a model of such labels reads those of other files as texts."""
    path, model = tmp_path / "a.csv", tmp_path / "m"
    path.write_text("x,class\n5,01\n-5,1\n6,01\n-6,1\n")
    assert read_examples(path)[1].tolist() == ["01", "1", "01", "1"]
    works(capsys, "fit", path, "--model", model)
    path.write_text("x,class\n5,01\n7,01\n")
    assert works(capsys, "predict", model, path) == "01\n01\n"
    assert json.loads(works(capsys, "score", model, path, "--json"))["accuracy"] == 1
    assert read_examples(path)[1].tolist() == [1, 1]
    others = {"1 2 01": ["1", "2", "01"], "1.0 1 2": [1, 1, 2], "+1 -1": [1, -1]}
    for cells, labels in others.items():
        path.write_text("x,class\n" + "".join(f"0,{cell}\n" for cell in cells.split()))
        assert read_examples(path)[1].tolist() == labels
    path, ArffReader = arff_file(
        tmp_path, "@relation r\n@attribute x numeric\n@attribute class {01,1}\n@data\n1,01\n2,1\n"
    )
    assert ArffReader().fit(path)[1].tolist() == ["01", "1"]


def test_arff_of_large_numbers(tmp_path):
    head = "@relation x\n@attribute a numeric\n@attribute class numeric\n@data\n"
    path, ArffReader = arff_file(tmp_path, head + "0,1e300\n1,2\n")
    assert ArffReader().fit(path)[1].tolist() == [1e300, 2]


def test_arff_with_a_hierarchy(tmp_path):
    head = "@relation x\n@attribute a numeric\n@attribute class hierarchical 1,1/2,1/2/3,4\n@data\n"
    path, ArffReader = arff_file(tmp_path, head + "0,1/2/3@4\n1,1\n")
    reader = ArffReader()
    _, y = reader.fit(path)
    assert reader.hierarchy == {"1": ["1/2"], "1/2": ["1/2/3"], "1/2/3": [], "4": []}
    assert y.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]
    path, _ = arff_file(tmp_path, head.replace("1,1/2,1/2/3,4", "root/a,a/b,root/c,c/b") + "0,b\n")
    reader = ArffReader()
    _, y = reader.fit(path)
    assert reader.hierarchy == {"a": ["b"], "b": [], "c": ["b"]} and y.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    "text, message",
    [
        (ARFF, "found no examples"),
        (ARFF + "1,0,big,short\n", "line 8"),
        (ARFF + "1,0\n", "line 8: found no ARFF"),
        (ARFF + "1,0,2,short\n" + "1" * 140_000 + ",0,2,short\n", "line 9: found no ARFF"),
        ("@relation x\n@attribute s string\n@attribute y {0,1}\n@data\na,1\n", "'s' is STRING"),
        ("\n \n", "found no examples; expected ARFF"),
    ],
)
def test_wrong_arff(tmp_path, text, message):
    path, ArffReader = arff_file(tmp_path, text)
    with pytest.raises(ValueError, match=f"toy-train.arff.*{message}"):
        ArffReader().fit(path)


def test_fasta(capsys, tmp_path):
    x, y, mask, model = (tmp_path / name for name in ("x.fasta", "y.fasta", "z.fasta", "m"))
    x.write_text(">p\nAC\nA\n>q\nCC\n>r\nA\n")
    y.write_text(">p SET=train\nHEH\n>q SET=test\nEE\n>r SET=train\nH\n")
    mask.write_text(">p\n110\n>q\n11\n>r\n1\n")
    options = ["--target", y, "--option", f"mask={mask}", "--option", "window=1"]
    told = works(capsys, "fit", x, "--model", model, "--split", "train", *options)
    assert "read      2 sequences, 3 rows, 6 features" in told
    assert works(capsys, "predict", model, x, "--split", "test").count("\n") == 2
    y.write_text(">p SET=train\nHE\n")
    fails(
        capsys, "fit", x, "--model", model, "--rows", "1", *options, match="found 2 letters of 'p'"
    )
    y.write_text(">p\nHEH\n>q\nEE\n")
    fit = "fit", x, "--model", model
    fails(capsys, *fit, *options, match="y.fasta: found no labels of 'r'; expected those of all")
    x.write_text(">p 1\nAC\n>p 2\nAA\n")
    fails(capsys, *fit, *options, match="x.fasta, line 3: found the name 'p' twice")
    x.write_text("AC\n")
    fails(capsys, *fit, match="x.fasta, line 1: found 'AC'; expected a header")


@pytest.mark.parametrize("maximize", [False, True])
def test_decode_assignments(capsys, tmp_path, maximize):
    rng = np.random.default_rng(0)
    path, text = tmp_path / "costs.npz", tmp_path / "costs.txt"
    for _ in range(10):
        costs = rng.integers(0, 4, (4, 4))
        np.savez(path, a=costs, b=costs[:1], n=np.arange(3))
        text.write_text("4\n" + " ".join(map(str, costs.ravel().tolist())) + "\n")
        orders = [sum(costs[i, j] for i, j in enumerate(p)) for p in permutations(range(4))]
        best = max(orders) if maximize else min(orders)
        more = ["--maximize"] if maximize else []
        for argv in ([path, "--target", "a"], [text]):
            answer = json.loads(works(capsys, "decode", *argv, "--json", *more))
            assert answer["value"] == answer["bound"] == best and answer["proven"]
            assert sum(costs[i, j] for i, j in enumerate(answer["labels"])) == best
    fails(capsys, "decode", path, match="--target names one of a, b")
    text.write_text("1 2\n3\n")
    fails(capsys, "decode", text, match="costs.txt: expected a matrix of costs")


def test_decode_energies(capsys, tmp_path):
    rng = np.random.default_rng(1)
    path, edges = tmp_path / "grid.npz", np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    for _ in range(10):
        unary, weights = rng.integers(0, 5, (4, 3)), rng.integers(0, 3, 4)
        np.savez(path, unary=unary, edges=edges, weights=weights)

        def energy(y, unary=unary, weights=weights):
            pays = [w * (y[i] != y[j]) for (i, j), w in zip(edges, weights, strict=True)]
            return unary[range(4), list(y)].sum() + sum(pays)

        least = min(map(energy, product(range(3), repeat=4)))
        answer = json.loads(works(capsys, "decode", path, "--json", "--oracle", "exact"))
        assert answer["value"] == pytest.approx(least) and answer["bound"] <= least + 1e-9
        assert energy(answer["labels"]) == pytest.approx(least)


def test_decode_uai(capsys, tmp_path):
    path, evidence, out = (tmp_path / name for name in ("a.uai", "a.evid", "labels.txt"))
    path.write_text("MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n.3 .7\n4\n.9 .1\n.2 .8\n")
    evidence.write_text("1 0 0\n")
    assert works(capsys, "decode", path) == "1\n1\n"
    told = works(capsys, "decode", path, "--evidence", evidence, "--output", out)
    assert told == f"value {np.log(0.27):.10g}, bound {np.log(0.27):.10g}, proven\n"
    assert out.read_text() == "0\n0\n"
    fails(capsys, "decode", tmp_path / "a.npz", "--evidence", evidence, match="is for UAI models")
    limited = works(capsys, "decode", path, "--oracle", "exact", "--time-limit", 60, "--json")
    assert json.loads(limited)["proven"]
    fails(capsys, "decode", path, "--time-limit", 60, match="time_limit is 60.0, which is for")
    costs = tmp_path / "costs.txt"
    costs.write_text("1 2\n2 1\n")
    fails(capsys, "decode", costs, "--time-limit", 60, match="--time-limit is for graphs")


@needs_data
@pytest.mark.parametrize(
    "name, options",
    [
        ("uai-grids/Grids_11.uai.gz", ["--oracle", "exact"]),
        ("uai-objectdetection/ObjectDetection_28.uai.gz", ["--oracle", "trws"]),
        ("uai-segmentation/Segmentation_11.uai.gz", []),
        ("lap-orlib/assign.npz", ["--target", "cost100"]),
    ],
)
def test_decode_data_sets(capsys, name, options):
    answer = json.loads(works(capsys, "decode", data_file(*name.split("/")), "--json", *options))
    assert answer["value"] == pytest.approx(answer["bound"], rel=0.1)
    if name.startswith("lap"):
        assert answer["value"] == 305


@needs_data
def test_hierarchies_as_they_lie():
    children = read_hierarchy(data_file("hier-rcv1-topics", "rcv1.taxonomy.gz"))
    assert len(children) == 104 and children["Root"] == ["CCAT", "ECAT", "GCAT", "MCAT"]


def test_convert(capsys, tmp_path):
    table, model = tmp_path / "a.csv", tmp_path / "m"
    table.write_text("u,v,class\n1,0,3\n0,2,4\n0,5,4\n")
    for name in ("b.npz", "b.svmlight"):
        out = tmp_path / name
        assert "3 rows, 2 features" in works(capsys, "convert", table, out)
        works(capsys, "fit", out, "--model", model, "--alpha", ".01")
        assert works(capsys, "predict", model, out).split() == ["3", "4", "4"]
    words = tmp_path / "c.conll"
    words.write_text("a x\nb y\n\nb y\n")
    works(capsys, "convert", words, tmp_path / "c.crfsuite", "--rows", "1")
    assert (tmp_path / "c.crfsuite").read_text() == "x\tc0=a\ny\tc0=b\n"
    fails(capsys, "convert", words, tmp_path / "c.svmlight", match="found sequences")
    exact, sets = tmp_path / "exact.svmlight", tmp_path / "sets.csv"
    table.write_text("a,b,y\n0.30000000000000004,5e-324,1.5\n1,0,2\n")
    works(capsys, "convert", table, exact)
    assert exact.read_text() == "1.5 1:0.30000000000000004 2:5e-324\n2 1:1\n"
    sets.write_text("a,p,q\n0,0,0\n.5,1,1\n")
    works(capsys, "convert", sets, exact, "--target", "p,q")
    assert exact.read_text() == " 1:0\n0,1 1:0.5\n"
    for text in ("a,y\n1,p>q\n2,q>p\n", "a,p,q\n1,3,5\n"):
        sets.write_text(text)
        target = ["--target", "p,q"] * ("3" in text)
        fails(capsys, "convert", sets, exact, *target, match="holds a number a row or label sets")
    fails(capsys, "convert", table, tmp_path / "c.crfsuite", match="only conll data")
    fails(capsys, "convert", table, tmp_path / "c.doc", match="expected an ending of .npz")


def test_label_sets_without_a_structure_are_told_which_to_give(tmp_path, capsys):
    data = tmp_path / "sets.npz"
    np.savez(data, X=np.eye(4), Y=np.array([[1, 0], [0, 1], [1, 1], [0, 0]]))
    assert main(["fit", str(data), "--model", str(tmp_path / "m")]) != 0
    assert "found 2 labels a row; expected --structure multilabel" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="terminals of this kind are POSIX's")
@pytest.mark.parametrize("quiet", [False, True])
def test_terminals_get_a_progress_bar(tmp_path, quiet):
    import pty

    table = tmp_path / "a.csv"
    table.write_text("u,v,class\n1,0,a\n0,2,b\n0,5,b\n")
    argv = ["fit", table, "--model", tmp_path / "m", *(["--quiet"] if quiet else [])]
    ours, theirs = pty.openpty()
    with (
        open(ours, "rb", buffering=0) as screen,
        subprocess.Popen(
            [sys.executable, "-m", "structsolve", *map(str, argv)],
            stdout=subprocess.PIPE,
            stderr=theirs,
        ) as run,
    ):
        os.close(theirs)
        shown = b""
        # The end of a terminal is an error on Linux, and empty elsewhere.
        with contextlib.suppress(OSError):
            while part := screen.read(4096):
                shown += part
        told = run.communicate()[0]
    assert run.returncode == 0 and told.startswith(b"read      3 rows, 2 features")
    assert (b"\r" in shown and b"primal" in shown) != quiet, shown


def test_folders_of_pictures(capsys, tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    folder, labels, model = (tmp_path / name for name in ("x", "y", "m"))
    folder.mkdir()
    labels.mkdir()
    rng = np.random.default_rng(0)
    truth = []
    for i in range(3):
        y = rng.integers(0, 2, (4, 5 + i)).astype(np.uint8)
        truth.append(y.ravel().tolist())
        x = np.stack([255 * y, 255 - 255 * y, 0 * y], axis=2)
        Image.fromarray(x).save(folder / f"{i}.png")
        picture = Image.fromarray(y)
        if i == 1:  # a palette's colours say nothing
            picture = picture.convert("P")
            picture.putdata(y.ravel().tolist())
            picture.putpalette([9, 9, 9, 200, 0, 0])
        picture.save(labels / f"{i}.png")
    options = ["--structure", "grid", "--alpha", ".01"]
    told = works(capsys, "fit", folder, "--model", model, "--target", labels, *options)
    assert "read      3 pictures, 72 pixels, 3 features" in told
    out = works(capsys, "predict", model, folder, "--rows", "1:")
    assert [list(map(int, part.split())) for part in out.strip().split("\n\n")] == truth[1:]
    assert "accuracy 1.0000" in works(capsys, "score", model, folder)

    fit = ["fit", folder, "--model", model, *options]
    fails(capsys, *fit, match="x: found no labels; expected some")
    fails(capsys, *fit, "--target", tmp_path / "z", match="z: expected a folder of pictures")
    Image.fromarray(y[:2]).save(labels / "2.png")
    fails(capsys, *fit, "--target", labels, match="2.png: found 2 x 7 labels; expected 4 x 7")
    Image.fromarray(x).save(labels / "2.png")
    fails(capsys, *fit, "--target", labels, match=r"2.png: found colours \(RGB\)")
    (labels / "2.png").unlink()
    fails(capsys, *fit, "--target", labels, match="y: found no labels of .*2.png")
    (folder / "2.png").write_text("none")
    fails(capsys, *fit, match="2.png: found no picture")


def test_what_leaves_nothing_to_train_on(capsys, tmp_path):
    table = tmp_path / "header.csv"
    table.write_text("a,b,class\n")
    fails(capsys, "fit", table, "--model", tmp_path / "m", match="found one line, of words only")
    archive = tmp_path / "plain.npz"
    np.savez(archive, X=np.eye(2), y=[0, 1])
    fit = ("fit", archive, "--model", tmp_path / "m")
    fails(capsys, *fit, "--rows", "5:9", match=r"no examples left by rows=5:9")
    fails(capsys, *fit, "--split", "train", match="the file has no splits")
    rows = tmp_path / "rows.svm"
    rows.write_text("0 1:1\n1 2:1\n")
    fails(capsys, "fit", rows, "--model", tmp_path / "m", "--rows", "5:9", match="left by rows=5:9")


def test_formats_of_one_structure_train_it(capsys, tmp_path):
    trees = "(S (NP (DT the) (NN dog)) (VP (VBD ran)))\n(S (NP (DT a) (NN cat)) (VP (VBD sat)))\n"
    (tmp_path / "a.mrg").write_text(trees)
    works(capsys, "fit", tmp_path / "a.mrg", "--model", tmp_path / "m")
    assert works(capsys, "predict", tmp_path / "m", tmp_path / "a.mrg") == trees


@pytest.mark.parametrize("labels, told", [("__", True), ("_X", False)])
def test_one_label_everywhere_is_told(capsys, tmp_path, labels, told):
    (tmp_path / "a.conll").write_text("".join(f"{k}\tw\t{y}\n" for k, y in enumerate(labels)))
    assert main(["fit", str(tmp_path / "a.conll"), "--model", str(tmp_path / "m")]) == 0
    err = capsys.readouterr().err
    assert ("found the same label everywhere, '_'; --label-column" in err) == told


def test_without_memory_an_error_of_one_line_blames_nobody(tmp_path, monkeypatch, capsys):
    def full(*args):
        raise MemoryError("Unable to allocate 7.28 TiB")

    (tmp_path / "a.conll").write_text("He PRP B-NP\n\nran VBD B-VP\n")
    monkeypatch.setattr("structsolve.plugins.chain.readers.features_of", full)
    argv = "fit", tmp_path / "a.conll", "--model", tmp_path / "m.structsolve"
    fails(capsys, *argv, match="error: not enough memory: Unable to allocate 7.28 TiB$")


def test_a_number_of_errors_to_list_is_not_negative(capsys):
    for text in ("-2", "x", "1.5"):
        fails(capsys, "score", "m", "d", "--errors", text, match="--errors: found .*from 0 up")


def test_class_weights_of_names_that_look_like_numbers(tmp_path, capsys):
    path, model = tmp_path / "a.conll", tmp_path / "m.structsolve"
    path.write_text("x 1_2\ny 3\n\nx 1_2\n")
    works(capsys, "fit", path, "--model", model, "--class-weight", "3=2", "1_2=0.5")
    assert structsolve.load(model).class_weight == {"3": 2.0, "1_2": 0.5}
    fails(capsys, "fit", path, "--model", model, "--class-weight", "3=1_0", match="CLASS=WEIGHT")
    rows = tmp_path / "a.svm"
    rows.write_text("1 1:1\n2 1:2\n")
    works(capsys, "fit", rows, "--model", model, "--class-weight", "2=2")
    assert structsolve.load(model).class_weight == {2: 2.0}


def test_decode_refuses_options_of_other_models(tmp_path, capsys):
    costs, graph = tmp_path / "costs.txt", tmp_path / "a.uai"
    costs.write_text("1 2\n2 1\n")
    graph.write_text("MARKOV\n1\n2\n1\n1 0\n2\n 1 2\n")
    for option in (("--oracle", "exact"), ("--max-iter", 5)):
        fails(capsys, "decode", costs, *option, match=f"{option[0]} is for graphs")
        assert works(capsys, "decode", graph, *option) == "1\n"
    fails(capsys, "decode", graph, "--maximize", match="--maximize is for costs")
    for path in (costs, graph):
        fails(capsys, "decode", path, "--target", "a", match="--target is for archives")
    costs.write_text("1_0 2\n2 1\n")
    fails(capsys, "decode", costs, match="line 1: found .*expected numbers")
    graph.write_text("MARKOV\n1\n2\n1\n1 0\n2\n 1_0 2\n")
    fails(capsys, "decode", graph, match="line 7: found '1_0'; expected entry 0")


def test_standard_input_that_cannot_be_read_is_named(capsys, monkeypatch, tmp_path):
    model = tmp_path / "m"
    fails(capsys, "fit", "-", "--format", "npz", "--model", model, match="not read from standard")
    monkeypatch.setattr(sys, "stdin", None)
    fails(capsys, "fit", "-", "--format", "conll", "--model", model, match="input is closed")
