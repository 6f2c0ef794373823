"""Files as people have them, from the shell: tables, archives of several splits, rankings, bits."""

import gzip
import os
import sys
from itertools import pairwise

import numpy as np
import pytest
from data import data_file, needs_data
from programs import in_fork
from shell import fails, works

import structsolve
from structsolve.cli.main import main
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
    path.write_text("1\tx\t7\t0\t1\n2\ty\t8\t1\t1\n3\tx\t7\t0\t0\n")
    with pytest.raises(ValueError, match="line 3: found '7' in column 2 again, after another"):
        reader.fit(str(path))


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
    path.write_text('\nsize,class\n"1\n2",a\n \n"1\n \n2",a\n12,b\n')
    reader = TableReader()
    assert reader.fit(str(path))[0].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert reader.columns == [["size", ["1\n \n2", "1\n2", "12"]]]


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
        (["--kernel", "rbf", "--kernel-param", "x=1"], r"expected some of \['gamma'"),
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


def test_nodes_of_an_archive_in_another_order_are_refused(tmp_path, capsys):
    train, test, model = (tmp_path / name for name in ("train.npz", "test.npz", "model"))
    edges, names = np.array([[0, -1], [1, 0], [2, 0]]), np.array(["top", "left", "right"])
    X, Y = np.array([[1.0], [-1.0]] * 5), np.array([[1, 1, 0], [1, 0, 1]] * 5)
    np.savez(train, X=X, Y=Y, edges=edges, node_names=names)
    works(capsys, "fit", train, "--model", model, "--structure", "dag")
    works(capsys, "score", model, train)
    np.savez(test, X=X, Y=Y[:, ::-1], edges=edges, node_names=names[::-1])
    told = "test.npz: node_names are not those of training, in order: number 0 is 'right', expected"
    assert told in fails(capsys, "score", model, test)


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
    table.write_text("a,b,class\n1,,0\n2,3,1\n")
    works(capsys, "convert", table, tmp_path / "c.npz")
    assert np.isnan(np.load(tmp_path / "c.npz")["X"]).tolist() == [[False, True], [False, False]]
    fails(capsys, "convert", table, exact, match="svmlight holds no missing features; .npz does")
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
    run = (
        f"import os; os.dup2(os.open({os.ttyname(theirs)!r}, os.O_RDWR | os.O_NOCTTY), 2)\n"
        "from structsolve.cli.main import main; exit(main())"
    )
    status, told, _ = in_fork(run, *argv)
    os.set_blocking(ours, False)
    shown = b""
    with open(ours, "rb", buffering=0) as screen:
        while part := screen.read(4096):
            shown += part
    os.close(theirs)
    assert status == 0 and told.startswith("read      3 rows, 2 features")
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


def test_standard_input_that_cannot_be_read_is_named(capsys, monkeypatch, tmp_path):
    model = tmp_path / "m"
    fails(capsys, "fit", "-", "--format", "npz", "--model", model, match="not read from standard")
    monkeypatch.setattr(sys, "stdin", None)
    fails(capsys, "fit", "-", "--format", "conll", "--model", model, match="input is closed")
