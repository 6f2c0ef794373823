# The shell, as users call it: main(argv), what it prints, what it writes, and its exit status.
import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checks import refused
from data import data_file, needs_data
from shell import fails, works

import structsolve
from structsolve.cli.main import main
from structsolve.io.npz import write_npz
from structsolve.plugins.chain.crfsuite import write_crfsuite

TRAIN = """He PRP B-NP
reckons VBZ B-VP
the DT B-NP
current JJ I-NP
account NN I-NP

The DT B-NP
deficit NN I-NP
will MD B-VP
narrow VB I-VP
. . O

It PRP B-NP
narrows VBZ B-VP
. . O
"""
PLAIN = "He PRP\nnarrows VBZ\n. .\n\nIt PRP\n. .\n"


@pytest.fixture
def tagged(tmp_path):
    path = tmp_path / "train.conll"
    path.write_text(TRAIN)
    return path


@pytest.fixture
def model(tmp_path, tagged, capsys):
    path = tmp_path / "chunks.structsolve"
    assert main(["fit", str(tagged), "--model", str(path), "--alpha", "0.01"]) == 0
    capsys.readouterr()
    return path


def test_version_and_help(capsys):
    assert works(capsys, "--version") == f"structsolve {structsolve.__version__}\n"
    text = works(capsys, "--help")
    assert all(
        name in text for name in ("demo", "fit", "predict", "score", "info", "plugins", "bench")
    )
    assert "--checkpoint" in works(capsys, "fit", "--help")


def test_version_and_help_load_nothing_heavy():
    code = (
        "import sys, structsolve.cli.main as c; c.main(['--version']); c.main(['fit', '--help']);"
        "print([m for m in ('sklearn', 'scipy', 'cvxpy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_module_runs_and_status_reaches_the_shell():
    command = [sys.executable, "-m", "structsolve"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run([*command, "fit", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["train"], "invalid choice: 'train'"),
        (["fit", "a.conll"], "required: --model .*structsolve fit --help"),
        (
            ["fit", "a.conll", "--model", "m", "--alpha", "x"],
            "--alpha: found 'x', expected a number or auto",
        ),
        (["fit", "no.conll", "--model", "m"], "no.conll: No such file or directory"),
        (["fit", "a.bin", "--model", "m"], "a.bin: found no known ending"),
        (["fit", "a.conll", "--model", "no/folder/m"], "no/folder/m: found no folder"),
        (["fit", "a.npz", "--model", "m", "--features", "attrs"], "--features is for conll data"),
        (["fit", "a.conll", "--model", "m", "--history", "h.txt"], r"ending \.csv or \.json"),
        (["predict", "no.structsolve", "a.conll"], "no.structsolve"),
        (["predict", "m", "a", "--kbest", "2", "--marginals"], "not allowed with argument"),
        (["bench", "--words", "0"], "words: found 0; expected at least 1"),
        (["bench", "--states", "1"], "states: found 1; expected at least 2"),
        (["bench", "--passes", "0"], "passes: found 0; expected at least 1"),
        (["bench", "--seed", "-1"], "--seed: found '-1'; expected a whole number from 0 up"),
        (["demo", "--seed", "-1"], "--seed: found '-1'; expected a whole number from 0 up"),
    ],
)
def test_usage_errors(capsys, tmp_path, monkeypatch, argv, message):
    monkeypatch.chdir(tmp_path)
    fails(capsys, *argv, match=message)


@pytest.mark.parametrize("place", ["before", "after"])
def test_verbose_shows_the_traceback(capsys, place):
    argv = ["predict", "no.structsolve", "a.conll"]
    assert main(["-v", *argv] if place == "before" else [*argv, "-v"]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("structsolve: error: ")


@pytest.mark.parametrize("place", ["before", "after"])
def test_verbose_shows_progress(capsys, tagged, place):
    argv = ["fit", str(tagged), "--model", str(tagged.with_name("m")), "--alpha", "0.01"]
    assert main(["-v", *argv] if place == "before" else [*argv, "-v"]) == 0
    assert "chain pass 1/" in capsys.readouterr().err


def test_unexpected_errors_name_their_type(capsys, monkeypatch):
    def broken():
        raise KeyError("oops")

    monkeypatch.setattr(structsolve, "list_plugins", broken, raising=False)
    assert "KeyError: 'oops' (-v shows the traceback)" in fails(capsys, "plugins")


def test_interrupt(capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(structsolve, "list_plugins", interrupted, raising=False)
    assert main(["plugins"]) == 130
    assert capsys.readouterr().err == "structsolve: interrupted\n"


def test_interrupt_while_numpy_is_imported(tmp_path):
    # Not by the signal, which runs in the background ignore.
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt\n")
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    module, name = re.search(r'^structsolve = "([\w.]+):(\w+)"', declared, re.M).groups()
    script = f"import sys; from {module} import {name}; sys.exit({name}())"
    for start in (["-c", script], ["-m", "structsolve"]):
        argv = [sys.executable, *start, "plugins"]
        done = subprocess.run(
            argv, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (130, "structsolve: interrupted\n")


def test_plugins(capsys):
    lines = works(capsys, "plugins").splitlines()
    assert lines[0].split() == ["PLUGIN", "FROM", "STATUS", "DECLARES"]
    text = "\n".join(lines)
    assert "structures: chain" in text
    assert "multiclass" in text


def test_fit_and_predict_chunks(capsys, tmp_path, tagged):
    path = tmp_path / "m.structsolve"
    out = works(capsys, "fit", tagged, "--model", path, "--alpha", 0.01)
    assert "read      3 sequences, 13 rows" in out
    assert "trained   chain, margin, bcfw:" in out
    assert "gap" in out
    out = works(capsys, "predict", path, tagged)
    gold = [line.split()[-1] if line else "" for line in TRAIN.splitlines()]
    assert out.splitlines() == gold
    plain = tmp_path / "plain.txt"
    plain.write_text(PLAIN)
    assert works(capsys, "predict", path, plain).splitlines()[:1] == ["B-NP"]
    written = tmp_path / "out.conll"
    works(capsys, "predict", path, plain, "--columns", "--output", written)
    rows = [line.split() for line in written.read_text().splitlines()]
    assert [len(row) for row in rows] == [3, 3, 3, 0, 3, 3]
    assert [row[:2] for row in rows if row] == [line.split() for line in PLAIN.split("\n") if line]
    works(capsys, "predict", path, tagged, "--columns", "--output", written)
    assert [len(line.split()) for line in written.read_text().splitlines()][:2] == [4, 4]


def test_standard_input(model):
    command = [sys.executable, "-m", "structsolve", "predict", str(model), "-"]
    done = subprocess.run(command, input=PLAIN.encode(), capture_output=True, check=True)
    assert len(done.stdout.decode().splitlines()) == 6


def test_marginals_and_kbest(capsys, model, tagged):
    lines = works(capsys, "predict", model, tagged, "--marginals").splitlines()
    label, *cells = lines[0].split("\t")
    table = dict(cell.rsplit(":", 1) for cell in cells)
    assert set(table) == {"B-NP", "B-VP", "I-NP", "I-VP", "O"}
    assert sum(map(float, table.values())) == pytest.approx(1, abs=1e-4)
    assert label == "B-NP"
    assert main(["predict", str(model), str(tagged), "--marginals"]) == 0
    assert "--marginals: the model was not trained to give prob" in capsys.readouterr().err

    text = works(capsys, "predict", model, tagged, "--kbest", 3)
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    assert [block[0].split("\t")[0] for block in blocks] == ["@1", "@2", "@3"] * 3
    scores = [float(block[0].split("\t")[1]) for block in blocks[:3]]
    assert scores == sorted(scores, reverse=True)
    assert blocks[0][1:] == ["B-NP", "B-VP", "B-NP", "I-NP", "I-NP"]
    assert "--kbest: found 0" in fails(capsys, "predict", model, tagged, "--kbest", 0)


def test_info(capsys, model, tagged, tmp_path):
    text = works(capsys, "info", model, "--top", "1")
    assert text.startswith("transition: from -> to, ") and text.count("...") == 5
    tables = json.loads(works(capsys, "info", model, "--top", "0", "--json"))
    assert "=" in tables["node"][0]["feature"]
    own = structsolve.load(model).coef_
    assert {name: len(rows) for name, rows in tables.items()} == {
        name: np.count_nonzero(block) for name, block in own.items()
    }
    assert "--top: found -1; expected at least 0" in fails(capsys, "info", model, "--top", "-1")
    assert "is not a structsolve file" in fails(capsys, "info", tagged)
    unnamed = structsolve.StructuredSVM("multiclass").fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    unnamed.save(tmp_path / "rows.structsolve")
    assert "0 -> " in works(capsys, "info", tmp_path / "rows.structsolve")
    table, rows = tmp_path / "animals.csv", tmp_path / "animals"
    table.write_text("legs,colour,class\n2,red,bird\n4,grey,cat\n")
    works(capsys, "fit", table, "--model", rows)
    tables = json.loads(works(capsys, "info", rows, "--top", "0", "--json"))
    assert {row["feature"] for row in tables["node"]} == {"legs", "colour=grey", "colour=red"}
    table.write_text("2,red,bird\n4,grey,cat\n")
    works(capsys, "fit", table, "--model", rows)
    tables = json.loads(works(capsys, "info", rows, "--top", "0", "--json"))
    assert {row["feature"] for row in tables["node"]} == {"0", "1=grey", "1=red"}
    many = structsolve.ExtremeSVM(max_iter=1).fit(np.eye(4), [0, 1, 2, 3])
    many.save(tmp_path / "many.structsolve")
    assert "info: an ExtremeSVM has no weights" in fails(
        capsys, "info", tmp_path / "many.structsolve"
    )


def test_score(capsys, model, tagged, tmp_path):
    out = works(capsys, "score", model, tagged)
    assert "accuracy 1.0000 of 13 labels" in out
    assert "spans (conll): precision 1.0000  recall 1.0000  f1 1.0000" in out
    report = json.loads(works(capsys, "score", model, tagged, "--json"))
    assert report["accuracy"] == 1.0
    assert report["sequence_error"] == 0.0
    assert report["spans"]["f1"] == 1.0
    plain = tmp_path / "plain.conll"
    plain.write_text(PLAIN)
    assert "plain.conll: found no labels" in fails(capsys, "score", model, plain)


def test_labels_with_dashes_are_no_chunk_tags(capsys, tmp_path):
    path, model = tmp_path / "steps.conll", tmp_path / "steps.structsolve"
    path.write_text("w 1-a\nx 2-b\n\nw 1-a\n")
    works(capsys, "fit", path, "--model", model, "--alpha", 0.01)
    out = works(capsys, "score", model, path)
    assert "accuracy 1.0000 of 3 labels" in out and "spans" not in out
    for option in (("--suffix",), ("--scheme", "IOB2")):
        told = f"{option[0]} is for chunk tags such as .*; found the label 1-a"
        fails(capsys, "score", model, path, *option, match=told)


def test_options_without_effect_beside_others_are_refused(capsys, model, tagged, tmp_path):
    for option in (("--errors", 2), ("--scheme", "IOB2"), ("--suffix",)):
        told = f"{option[0]}: --metric accuracy prints one score alone; .* leave out one"
        fails(capsys, "score", model, tagged, "--metric", "accuracy", *option, match=told)
    fit, out = ("fit", tagged, "--model", tmp_path / "m", "--features"), tmp_path / "a.crfsuite"
    told = "window is 3, which is for features 'template'; found features 'columns'"
    fails(capsys, *fit, "columns", "--window", 3, match=told)
    fails(capsys, *fit, "columns", "--option", "window=3", match=told)
    fails(capsys, *fit, "columns", "--window", 2, match=told.replace("3", "2"))  # the default
    told = r"--option columns=3: found columns=2 in .*, where the reader learns it; leave it out"
    fails(capsys, *fit, "columns", "--option", "columns=3", match=told)
    works(capsys, *fit, "columns", "--option", "columns=2")
    told = "window is 3, which is for features 'template'; found features 'columns'"
    fails(capsys, "convert", tagged, out, "--option", "window=3", match=told)
    told = "--window and --option window: expected one of them"
    for window in (2, 3):
        fails(capsys, *fit, "template", "--window", window, "--option", "window=1", match=told)
    works(capsys, "convert", tagged, out, "--option", "features=template")
    assert "w[0]=reckons" in out.read_text()
    sets = tmp_path / "a.svm"
    sets.write_text("0,1 1:1\n1 1:2\n")
    works(capsys, "fit", sets, "--structure", "multilabel", "--model", tmp_path / "m")
    told = "--errors: labels of .*a.svm are no sequences or classes"
    fails(capsys, "score", tmp_path / "m", sets, "--errors", 2, match=told)


def test_data_unlike_training(capsys, model, tmp_path):
    wide = tmp_path / "wide.conll"
    wide.write_text("a b c d\n")
    line = fails(capsys, "predict", model, wide)
    assert "wide.conll: found 4 columns; expected 2 as in training, or 3 with labels" in line
    line = fails(capsys, "predict", model, wide, "--format", "crfsuite")
    assert "found crfsuite data; this model was trained on conll data" in line
    objects = tmp_path / "a.ndjson"  # no columns, though it has lines
    objects.write_text('{"x": ["a", "b"]}\n')
    line = fails(capsys, "predict", model, objects)
    assert "found ndjson data; this model was trained on conll data" in line
    short = tmp_path / "short.conll"
    short.write_text("a b\nc\n")
    assert "short.conll, line 2: found 1 column ('c')" in fails(capsys, "predict", model, short)


def test_model_cut_short(capsys, model, tagged):
    content = model.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        model.write_bytes(content[:size])
        assert str(model) in fails(capsys, "predict", model, tagged)


@pytest.mark.parametrize("features", ["columns", "attrs"])
def test_other_features(capsys, tmp_path, tagged, features):
    path = tmp_path / "m.structsolve"
    argv = ["fit", tagged, "--model", path, "--features", features]
    works(capsys, *argv, "--label-column", -1, "--alpha", 0.01)
    assert len(works(capsys, "predict", path, tagged).splitlines()) == 15


def test_fit_options(capsys, tmp_path, tagged):
    names = ("a.structsolve", "history.csv", "history.json", "state")
    model, table, passes, state = (tmp_path / name for name in names)
    common = ["--alpha", 0.01, "--tol", 1e-4, "--no-intercept", "--random-state", 3]
    out = works(
        *(capsys, "fit", tagged, "--model", model, *common, "--history", table),
        *("--validation", tagged, "--checkpoint", state, "--structure", "chain"),
    )
    assert "validated score 1.0000" in out
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {"primal", "dual", "gap", "seconds"} <= set(rows[0])
    works(capsys, "fit", tagged, "--model", model, *common, "--history", passes)
    assert len(json.loads(passes.read_text())) == len(rows)
    loaded = structsolve.load(model)
    assert loaded.fit_intercept is False
    assert loaded.metadata_["shell"]["format"] == "conll"


def test_kernels(capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    np.savez(tmp_path / "rings.npz", X=X, y=(np.hypot(*X.T) < 1).astype(int))
    model = str(tmp_path / "m")
    fit = ("fit", str(tmp_path / "rings.npz"), "--model", model, "--kernel")
    works(capsys, *fit, "poly", "--kernel-param", "degree=2", "--kernel-param", "gamma=0.5")
    fitted = structsolve.load(model)
    assert fitted.kernel_params == {"degree": 2, "gamma": 0.5}
    assert fitted.score(X, np.hypot(*X.T) < 1) > 0.9
    assert "expected NAME=VALUE" in fails(capsys, *fit, "rbf", "--kernel-param", "gamma")
    assert "kernel is 'gauss'" in fails(capsys, *fit, "gauss")


@pytest.mark.parametrize("option", ["--structure", "--surrogate", "--solver", "--loss"])
def test_unknown_names_list_the_known(capsys, tmp_path, tagged, option):
    line = fails(capsys, "fit", tagged, "--model", tmp_path / "m", option, "nonsense")
    assert "nonsense" in line
    known = {"--structure": "chain", "--surrogate": "margin", "--solver": "bcfw"}
    assert known.get(option, "hamming") in line
    assert not (tmp_path / "m").exists()


def test_bad_alpha(capsys, tmp_path, tagged):
    assert "alpha" in fails(capsys, "fit", tagged, "--model", tmp_path / "m", "--alpha", 0)


def test_structure_without_sequences_on_sequences(capsys, tmp_path, tagged):
    path = tmp_path / "m.structsolve"
    works(capsys, "fit", tagged, "--model", path, "--structure", "multiclass", "--alpha", 0.01)
    lines = works(capsys, "predict", path, tagged).splitlines()
    assert [i for i, line in enumerate(lines) if not line] == [5, 11]
    assert "sequences with an error" in works(capsys, "score", path, tagged)


def test_crfsuite_with_weights(capsys, tmp_path):
    data, path = tmp_path / "a.crfsuite", tmp_path / "m.structsolve"
    write_crfsuite(data, [[["a", "b"], ["c"]], [["a"]]], [["X", "Y"], ["X"]])
    data.write_text("@weight:2\n" + data.read_text())
    works(capsys, "fit", data, "--model", path, "--alpha", 0.01)
    assert works(capsys, "predict", path, data) == "X\nY\n\nX\n"


def test_svmlight_keeps_the_columns_of_training(capsys, tmp_path):
    train, test = tmp_path / "a.svm", tmp_path / "b.svm"
    train.write_text("1 1:1\n1 1:2\n2 3:1\n2 2:1 3:2\n")
    test.write_text("1 1:3\n1 1:1\n")
    path = tmp_path / "m.structsolve"
    works(capsys, "fit", train, "--model", path, "--alpha", 0.01)
    assert works(capsys, "predict", path, test) == "1\n1\n"
    test.write_text("1 9:1\n")
    assert "b.svm, line 1: found '9:1'; expected at most 3" in fails(capsys, "predict", path, test)
    assert "accuracy 1.0000 of 4 labels" in works(capsys, "score", path, train)


def test_npz_sequences_with_integer_labels(capsys, tmp_path):
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, n) for n in (3, 1, 4, 5)]
    data, path = tmp_path / "a.npz", tmp_path / "m.structsolve"
    write_npz(data, [np.eye(3)[labels] for labels in y], y)
    works(capsys, "fit", data, "--model", path, "--alpha", 0.001)
    out = works(capsys, "predict", path, data)
    assert [block.split() for block in out.split("\n\n")] == [list(map(str, one)) for one in y]
    bare = tmp_path / "bare.npz"
    write_npz(bare, [np.eye(3)[labels] for labels in y])
    assert works(capsys, "predict", path, bare) == out
    assert "found no labels" in fails(capsys, "fit", bare, "--model", path)


def test_model_saved_from_python(capsys, tmp_path, tagged):
    X, y = np.eye(4)[[0, 1, 2, 0]], ["a", "b", "c", "a"]
    path, data = tmp_path / "m.structsolve", tmp_path / "a.npz"
    structsolve.StructuredSVM("multiclass", alpha=0.01).fit(X, y).save(path)
    write_npz(data, X)
    assert works(capsys, "predict", path, data).split() == y
    assert "trained on arrays, from Python" in fails(capsys, "predict", path, tagged)


def test_metadata_of_users_and_the_shell_do_not_meet(capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    model = structsolve.StructuredSVM("multilabel", alpha=0.01).fit(X, (X[:, :2] > 0).astype(int))
    model.metadata_ = {"format": "v1", "columns": "abc", "shell": 3}
    model.save(tmp_path / "m")
    rows = [" ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x)) for x in X.tolist()]
    (tmp_path / "a.svm").write_text("".join(f"0,1 {row}\n" for row in rows))
    out = works(capsys, "predict", tmp_path / "m", tmp_path / "a.svm").splitlines()
    assert out == [",".join(str(j) for j in np.flatnonzero(row)) for row in model.predict(X)]


def test_the_ending_is_another(capsys, tmp_path):
    X, y = np.eye(4)[[0, 1, 2, 0]], np.array([0, 1, 2, 0])
    write_npz(tmp_path / "a.npz", X, y)
    path = tmp_path / "m"
    works(capsys, "fit", tmp_path / "a.npz", "--model", path, "--structure", "multiclass")
    (tmp_path / "a.svm").write_text("0 1:1\n1 2:1\n2 3:1\n0 1:1\n")
    assert works(capsys, "predict", path, tmp_path / "a.svm") == works(
        capsys, "predict", path, tmp_path / "a.npz"
    )
    (tmp_path / "a.data").write_bytes((tmp_path / "a.npz").read_bytes())
    assert "give --format npz" in fails(capsys, "predict", path, tmp_path / "a.data")
    works(capsys, "predict", path, tmp_path / "a.data", "--format", "npz")


def test_bench(capsys):
    out = works(
        *(capsys, "bench", "--words", 30, "--length", 4, "--features", 10, "--states", 3),
        *("--passes", 2, "--dense"),
    )
    assert "30 words of 4 letters, 10 dense features, 3 states" in out
    assert out.count("words/s") == 2


def test_demo(capsys, tmp_path):
    out = works(capsys, "demo", "--quick", "--output", tmp_path / "demo")
    table = [
        line for line in out.splitlines() if line.startswith(("multiclass", "chain", "Linear"))
    ]
    errors = {line.split("  ")[0]: float(line.split("  ", 1)[1].split()[0]) for line in table}
    assert errors["chain"] < 0.6 * errors["multiclass"]
    assert "loaded again: the same predictions" in out
    assert (tmp_path / "demo" / "digits.structsolve").exists()
    pytest.importorskip("matplotlib")
    for name in ("convergence.png", "strips.png"):
        assert (tmp_path / "demo" / name).read_bytes().startswith(b"\x89PNG")


def test_demo_images_are_apart():
    from structsolve import make_strips

    train, test = make_strips(50, 50, seed=1)
    again, _ = make_strips(50, 50, seed=1)
    np.testing.assert_array_equal(train.images[7], again.images[7])
    assert {len(x) for x in train.labels} <= set(range(5, 11))
    steps = np.concatenate([np.diff(y) % 10 for y in train.labels + test.labels])
    assert set(steps.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "a"])
def test_numbers_of_strips_that_are_none(wrong):
    from structsolve import make_strips

    refused("n_train is .*, expected an integer of at least 1", make_strips, wrong, 1)
    refused("n_test is .*, expected an integer of at least 1", make_strips, 1, wrong)


@needs_data
def test_conll2000_from_the_shell(capsys, tmp_path):
    from structsolve.plugins.chain.conll import read_conll, write_conll

    X, Y = read_conll(data_file("seq-conll2000", "test.txt.gz"))
    train, test, path = (
        tmp_path / "train.conll",
        tmp_path / "test.conll",
        tmp_path / "m.structsolve",
    )
    write_conll(train, X[:700], Y[:700])
    write_conll(test, X[700:900], Y[700:900])
    works(capsys, "fit", train, "--model", path, "--alpha", 1e-3, "--tol", 0.05)
    report = json.loads(works(capsys, "score", path, test, "--json"))
    assert report["accuracy"] > 0.92
    assert report["spans"]["f1"] > 0.85


def test_label_sets(capsys, tmp_path):
    train, test = tmp_path / "a.svm", tmp_path / "b.svm"
    train.write_text("0,2 1:1 2:0.5\n1 2:1\n0 1:1\n 1:-1 2:-1\n")
    path = tmp_path / "m.structsolve"
    out = works(capsys, "fit", train, "--structure", "multilabel", "--model", path, "--alpha", 0.01)
    assert "trained   multilabel" in out
    assert works(capsys, "predict", path, train) == "0,2\n1\n0\n\n"
    assert "accuracy 1.0000 of 12 labels" in works(capsys, "score", path, train)
    test.write_text("0,3 1:1\n")
    message = "b.svm, example 0: found the label 3; expected integers 0 to 2"
    assert message in fails(capsys, "score", path, test)
    first = works(capsys, "predict", path, train, "--marginals").splitlines()[0].split("\t")
    marginals = structsolve.load(path).predict_marginals([[1, 0.5]])[0]
    assert first == ["0,2", *(f"{i}:{p:.6f}" for i, p in enumerate(marginals))]


@pytest.mark.parametrize("features", ["template", "columns"])
def test_models_of_earlier_releases_keep_their_settings(capsys, tmp_path, tagged, features):
    path, old = tmp_path / "m.structsolve", tmp_path / "old.structsolve"
    window = ["--window", 1] if features == "template" else []
    fit = ("fit", tagged, "--model", path, "--features", features, *window)
    works(capsys, *fit, "--alpha", 0.01)
    model = structsolve.load(path)
    shell = model.metadata_["shell"]
    model.metadata_ = {"shell": {"format": shell["format"], **shell["reader"]}}
    model.save(old)
    assert works(capsys, "predict", old, tagged) == works(capsys, "predict", path, tagged)
    assert works(capsys, "predict", old, tagged, "--columns").startswith("He PRP B-NP B-NP")
