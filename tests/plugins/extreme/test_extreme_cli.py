# Very many classes in the shell: fit extreme, predict --top, score, prune, and what is refused.
import gzip
import io
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from shell import works

import structsolve
from structsolve.cli.main import main
from structsolve.plugins.extreme.commands import macro_f1
from structsolve.plugins.extreme.reader import read_extreme


def fails(capsys, *argv, match):
    """Run, and expect one matching line on stderr and exit status 2."""
    status = main([str(arg) for arg in argv])
    lines = capsys.readouterr().err.splitlines()
    assert status == 2 and len(lines) == 1, lines
    assert lines[0].startswith("structsolve: error: ") and re.search(match, lines[0]), lines


def write_rows(path, n, seed, header=True, labels=12):
    """Return rows of two words of their class, numbered in tens, and one common word."""
    rng = np.random.default_rng(seed)
    first = int(not header)
    lines = [f"{n} {2 * labels + 5} {10 * labels}"] if header else []
    for k in rng.integers(0, labels, n).tolist():
        noise = 2 * labels + int(rng.integers(5))
        words = [2 * k, 2 * k + 1, noise]
        lines.append(f"{10 * k} " + " ".join(f"{word + first}:0.57735" for word in words))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A training and a test file, and a model of them."""
    folder = tmp_path_factory.mktemp("extreme")
    train = write_rows(folder / "train.txt", 300, 0)
    test = write_rows(folder / "test.txt", 60, 1)
    model = folder / "m.ss"
    assert main(["fit", "extreme", str(train), "--model", str(model)]) == 0
    return SimpleNamespace(folder=folder, train=train, test=test, model=model)


def rows(text):
    return [
        [(int(label), float(score)) for label, score in (cell.split(":") for cell in line.split())]
        for line in text.splitlines()
    ]


def test_files_called_as_commands(files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "extreme").write_text("a\tX\nb\tY\n\nb\tY\na\tX\n")
    works(capsys, "fit", "extreme", "--model", "fit", "--format", "conll")  # chains, of that file
    assert works(capsys, "predict", "fit", "extreme").split() == ["X", "Y", "Y", "X"]
    # If data follow, it is the command of two words, whatever files exist.
    works(capsys, "fit", "extreme", files.train, "--model", "m.ss")
    assert type(structsolve.load("m.ss")).__name__ == "ExtremeSVM"
    (tmp_path / "extreme").unlink()
    fails(capsys, "fit", "extreme", "--model", "m.ss", match="required: DATA|required: data")


def test_fit_prints_the_gap_that_it_compares_with_tol(tmp_path, capsys):
    """Small weights that are left out leave a gap of 100 % here, which was 1e+02 %, and "tol"."""
    path = tmp_path / "a.svm"
    path.write_text("0 1:1\n1 2:1\n2 3:1\n3 4:1\n")
    out = works(capsys, "fit", "extreme", path, "--model", tmp_path / "m")
    assert "gap 100 % (0 % before small weights are left out), tol" in out


def test_fit_predict_score(files, tmp_path, capsys):
    model = tmp_path / "m.ss"
    out = works(capsys, "fit", "extreme", files.train, "--model", model, "--history",
                tmp_path / "h.csv", "--n-jobs", 2, "--alpha", "0.01")  # fmt: skip
    assert re.search(r"^read +300 rows, 29 features, 12 classes  \(", out)
    assert re.search(r"\ntrained +[a-z-]+: \d+ passes.*\(", out)
    assert re.search(r"\nsaved +\S*m.ss: 12 classes, 29 features, 0\.\d+ MB\n", out)
    assert (tmp_path / "h.csv").read_text().startswith("pass,primal,dual,gap")
    X, y = read_extreme(files.test)
    ours = structsolve.ExtremeSVM(alpha=0.01).fit(*read_extreme(files.train))

    assert works(capsys, "predict", model, files.test).split() == [
        str(label) for label in ours.predict(X)
    ]
    labels, scores = ours.predict_topk(X, 3)
    best = rows(works(capsys, "predict", model, files.test, "--top", 3))
    assert [[label for label, _ in row] for row in best] == labels.tolist()
    np.testing.assert_allclose([[score for _, score in row] for row in best], scores, rtol=1e-5)
    assert works(capsys, "predict", model, files.test, "--top", 3, "--n-jobs", 2,
                 "--output", tmp_path / "out.txt") == ""  # fmt: skip
    assert rows((tmp_path / "out.txt").read_text()) == best
    assert len(rows(works(capsys, "predict", model, files.test, "--top", 99))[0]) == 12

    report = json.loads(works(capsys, "score", model, files.test, "--json"))
    assert report == {
        "error": 1 - ours.score(X, y),
        "error_top5": 1 - (ours.predict_topk(X, 5)[0] == y[:, None]).any(axis=1).mean(),
        "macro_f1": macro_f1(y, ours.predict(X)),
        "rows": 60,
    }
    assert re.fullmatch(
        r"error 0\.\d{4}, of the best 5 0\.\d{4}, macro-F1 [01]\.\d{4}, of 60 rows\n",
        works(capsys, "score", model, files.test),
    )


def test_macro_f1_is_that_of_scikit_learn():
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(0)
    for _ in range(100):
        y, guess = rng.integers(0, 9, (2, 20)) * 3
        expected = f1_score(y, guess, labels=np.unique(y), average="macro", zero_division=0)
        assert macro_f1(y, guess) == pytest.approx(expected)


def test_lines_without_labels_and_with_several(files, tmp_path, capsys, monkeypatch):
    plain = tmp_path / "plain.txt"
    lines = files.test.read_text().splitlines()
    plain.write_text("\n".join([lines[0], *(" " + line.split(" ", 1)[1] for line in lines[1:])]))
    expected = works(capsys, "predict", files.model, files.test)
    assert works(capsys, "predict", files.model, plain) == expected
    fails(capsys, "score", files.model, plain, match="plain.txt: found no labels; expected some")
    standard = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(plain.read_bytes())))
    monkeypatch.setattr(sys, "stdin", standard)
    assert works(capsys, "predict", files.model, "-") == expected

    several = tmp_path / "several.txt"
    several.write_text("2 29 120\n0,10 0:1 1:1\n20 4:1 5:1\n")
    out = works(capsys, "fit", "extreme", several, "--model", tmp_path / "s.ss")
    assert "3 rows, 29 features, 3 classes" in out
    fails(capsys, "fit", "extreme", several, "--model", tmp_path / "s.ss", "--labels", "one",
          match="several.txt, line 2: found 2 labels; expected one label")  # fmt: skip
    assert "of 3 rows" in works(capsys, "score", files.model, several)


@pytest.mark.parametrize("header", [True, False])
def test_a_model_reads_columns_as_its_training_file_had_them(files, tmp_path, capsys, header):
    train = write_rows(tmp_path / "train.svm", 300, 0, header)
    test = write_rows(tmp_path / "test.svm", 60, 1, header)
    model = tmp_path / "m.ss"
    works(capsys, "fit", "extreme", train, "--model", model)
    expected = works(capsys, "predict", files.model, files.test)
    assert works(capsys, "predict", model, test) == expected
    # A file with a header declares that it counts from 0; others count like the training file.
    assert works(capsys, "predict", model, files.test) == expected
    if header:
        test.write_text(test.read_text().split("\n", 1)[1])
        assert works(capsys, "predict", model, test) == expected


def test_svmlight_gzip_and_options(files, tmp_path, capsys):
    text = write_rows(tmp_path / "a.svm", 300, 0, header=False).read_bytes()
    packed = tmp_path / "a.svm.gz"
    packed.write_bytes(gzip.compress(text))
    model = tmp_path / "m.ss"
    out = works(capsys, "fit", "extreme", packed, "--model", model, "--n-features", 40, "--float16",
                "--solver", "dual", "--surrogate", "margin", "--alpha", "0.01", "--tol", "0.1",
                "--rivals", "exact", "--random-state", 3, "--max-memory", 500)  # fmt: skip
    assert "300 rows, 40 features" in out and "dual: " in out and "gap " in out
    loaded = structsolve.load(model)
    assert loaded.coef_.shape == (12, 40)
    assert (loaded.surrogate, loaded.alpha, loaded.random_state) == ("margin", 0.01, 3)
    assert (loaded.rivals, loaded.max_memory) == ("exact", 5e8)
    assert loaded.metadata_["shell"] == {"format": "extreme", "zero_based": False}


def test_models_from_python_with_names_for_classes(files, tmp_path, capsys):
    X, y = read_extreme(files.train)
    model = structsolve.ExtremeSVM().fit(X, y.astype(str))
    model.save(tmp_path / "m.ss")
    report = json.loads(works(capsys, "score", tmp_path / "m.ss", files.test, "--json"))
    assert report["error"] < 0.2
    works(capsys, "prune", tmp_path / "m.ss", "--error", 0, "--data", files.test,
          "--out", tmp_path / "s.ss")  # fmt: skip


def test_names_that_are_no_numbers_are_not_compared_with_those_of_files(files, tmp_path, capsys):
    """All labels counted as errors."""
    X, y = read_extreme(files.train)
    structsolve.ExtremeSVM().fit(X, [f"c{label}" for label in y]).save(tmp_path / "m.ss")
    told = "found labels such as .*, none of which the model has, whose classes are names"
    fails(capsys, "score", tmp_path / "m.ss", files.test, match=told)


@pytest.mark.parametrize("sparse", [False, True])
def test_label_sets_are_printed(files, tmp_path, capsys, sparse):
    X, y = read_extreme(files.train)
    y = sp.csr_matrix(np.eye(y.max() + 1)[y]) if sparse else [[label] for label in y]
    model = structsolve.ExtremeSVM().fit(X, y)
    model.save(tmp_path / "m.ss")
    lines = works(capsys, "predict", tmp_path / "m.ss", files.train).split("\n")[:-1]
    own = model.label_indicators(model.predict(X))
    expected = ["\t".join(map(str, model.classes_[row > 0])) for row in own]
    assert lines == expected and len({*lines}) > 5


def test_prune(files, tmp_path, capsys):
    small = tmp_path / "small.ss"
    size = files.model.stat().st_size
    out = works(capsys, "prune", files.model, "--mb", 0.9 * size / 1e6, "--out", small)
    assert re.fullmatch(r"read +\S+: 12 classes.* MB\nsaved +\S+small.ss: 12 classes.* MB\n", out)
    assert small.stat().st_size <= 0.9 * size
    works(capsys, "prune", files.model, "--error", 0, "--data", files.test, "--out", small)
    kept = structsolve.load(small)
    assert kept.coef_.nnz < structsolve.load(files.model).coef_.nnz
    assert kept.score(*read_extreme(files.test)) >= structsolve.load(files.model).score(
        *read_extreme(files.test)
    )
    assert works(capsys, "predict", small, files.test)  # the file's columns are known as before
    works(capsys, "prune", files.model, "--float16", "--out", small)
    assert small.stat().st_size < size


def test_help_names_the_commands(capsys):
    text = works(capsys, "--help")
    assert "fit extreme" in text and "prune" in text
    text = works(capsys, "fit", "extreme", "--help")
    assert text.startswith("usage: structsolve fit extreme [-h]") and "--rivals" in text
    assert "--kernel" in works(capsys, "fit", "--help")


@pytest.mark.parametrize("text", ["", "\n# none\n", "0 29 120\n"])
def test_files_without_a_row(files, tmp_path, capsys, text):
    empty, out = tmp_path / "empty.svm", tmp_path / "out.txt"
    empty.write_text(text)
    out.write_text("kept")
    told = "empty.svm: found no examples; expected lines"
    for options in ((), ("--top", 2), ("--output", out)):
        fails(capsys, "predict", files.model, empty, *options, match=told)
    fails(capsys, "score", files.model, empty, match="empty.svm: found no labels; expected some")
    fails(capsys, "fit", "extreme", empty, "--model", tmp_path / "no.model", match=told)
    assert out.read_text() == "kept" and {*tmp_path.iterdir()} == {empty, out}


def test_what_is_refused(files, tmp_path, capsys):
    model, out = files.model, tmp_path / "out.ss"
    fit = ("fit", "extreme")
    fails(capsys, *fit, files.train, "--model", tmp_path / "no/m.ss", match="no folder")
    fails(capsys, *fit, files.train, "--model", out, "--history", "h.txt", match="--history")
    fails(capsys, *fit, "none.svm", "--model", out, match="none.svm: No such file")
    fails(capsys, *fit, files.train, match="required: --model .*structsolve fit extreme --help")
    fails(capsys, *fit, files.train, "--model", out, "--solver", "x", match="'x'")
    fails(capsys, *fit, files.train, "--model", out, "--rivals", "certified:-1", match="epsilon")
    one = tmp_path / "one.svm"
    one.write_text("1 1:1\n1 2:1\n")
    fails(capsys, *fit, one, "--model", out, match="class")
    one.write_text("1 1:1\nx 2:1\n")
    fails(capsys, *fit, one, "--model", out, match="one.svm, line 2: found the label 'x'")
    one.write_text("1 99:1\n")
    fails(capsys, "predict", model, one, match="one.svm, line 1: found '99:1'; expected at most 29")
    fails(capsys, "predict", model, files.test, "--top", 0, match="--top: found 0; expected")
    fails(capsys, "predict", model, files.test, "--marginals", match="--marginals: an ExtremeSVM")
    fails(capsys, "predict", model, files.test, "--kbest", 2, match="--kbest.*--top K")
    fails(capsys, "predict", model, files.test, "--columns", match="--columns")
    fails(capsys, "predict", model, files.test, "--oracle", "lp", match="--oracle")
    fails(capsys, "predict", model, files.test, "--format", "conll", match="takes extreme or svm")
    whole = {"target": "a", "split": "test", "where": "a=1", "rows": "9", "option": "a=1"}
    for command in ("predict", "score"):  # their reader takes none of these
        for name, value in whole.items():
            told = f"--{name}: an ExtremeSVM reads files of rows whole"
            fails(capsys, command, model, files.test, f"--{name}", value, match=told)
    for option in (("--metric", "accuracy"), ("--scheme", "IOB2"), ("--suffix",), ("--errors", 3)):
        fails(capsys, "score", model, files.test, *option, match=f"{option[0]}: .*only errors and")
    fails(capsys, "prune", model, "--out", out, match="expected --mb, --error or --float16")
    fails(capsys, "prune", model, "--out", out, "--error", 0, match="--error and --data")
    fails(capsys, "prune", model, "--out", out, "--mb", 1, "--data", files.test, match="--error an")
    fails(capsys, "prune", model, "--out", out, "--mb", 1e-6, match="MB|mb")
    other = tmp_path / "other.ss"
    structsolve.StructuredSVM("multiclass").fit([[0.0], [1.0]], [0, 1]).save(other)
    fails(capsys, "prune", other, "--out", out, "--mb", 1, match="found a StructuredSVM; expected")
    fails(capsys, "predict", other, one, "--top", 2, match="--top: a StructuredSVM has none")
    assert not out.exists()
