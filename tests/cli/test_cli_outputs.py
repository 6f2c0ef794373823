# Where the shell writes: inputs are never replaced, and what cannot be written is told in one line.
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from programs import in_fork
from shell import fails, works

from structsolve.io.npz import write_npz

TRAIN = "He PRP B\nran VBD I\n\nIt PRP B\n"
COMMAND = [sys.executable, "-m", "structsolve"]
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """The working folder, with data in every form, and a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.conll").write_text(TRAIN)
    for name in ("a.svm", "a.svmlight"):
        (tmp_path / name).write_text("1 1:1\n2 2:1\n")
    write_npz("a.npz", np.eye(2), np.arange(2))
    np.savez("costs.npz", costs=np.eye(2))
    works(capsys, "fit", "a.conll", "--model", "a.model", "--alpha", 0.1)
    works(capsys, "fit", "extreme", "a.svm", "--model", "many.model")
    return tmp_path


@pytest.mark.parametrize(
    "argv",
    [
        "fit a.conll --model a.conll",
        "fit a.npz --model a.model --validation a.model",
        "fit extreme a.svm --model a.svm",
        "fit extreme a.svm --model new --checkpoint new",
        "predict a.model a.conll --output a.conll",
        "predict a.model a.conll --output ./a.model",
        "predict many.model a.svm --output a.svm",
        "convert a.svmlight a.svmlight",
        "convert a.npz a.npz --rows 1",
        "decode costs.npz --output costs.npz",
        "prune many.model --float16 --data a.svm --error 0.5 --out a.svm",
    ],
)
def test_no_input_is_replaced(folder, capsys, argv):
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    fails(capsys, *argv.split(), match="found the file of .*; expected another")
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    "output, told",
    [
        (".", "found a folder"),
        ("", "--(model|output): found no text"),
        ("-", "found a standard stream"),
        ("/dev/stdout", "found a standard stream"),
        ("none/a", "found no folder"),
    ],
)
def test_outputs_that_are_no_files(folder, capsys, output, told):
    fails(capsys, "fit", "a.conll", "--model", output, match=f"{told}.*; expected")
    fails(capsys, "predict", "a.model", "a.conll", "--output", output, match=told)
    fails(capsys, "decode", "costs.npz", "--output", output, match=told)
    assert not os.path.exists("-")


@pytest.mark.parametrize("fit", ["fit", "fit extreme"])
def test_models_that_cannot_be_written_are_refused_before_data_are_read(folder, capsys, fit):
    before = {*folder.iterdir()}
    os.symlink("none/a", "dangling")
    os.symlink("circle", "circle")
    reader, writer = os.pipe()
    refused = {f"/dev/fd/{writer}": "a device or a pipe", "dangling": "no folder .*none; expected"}
    refused |= {"circle": "Too many levels|links", "n" * 300: "File name too long"}
    if os.path.exists("/dev/full"):  # where nobody, not even root, makes files in /proc
        refused |= {"/dev/full": "a device or a pipe", "/proc/a": "/proc cannot be written to"}
    fit = [*fit.split(), "none.svm", "--model"]
    for path, told in refused.items():
        fails(capsys, *fit, path, match=told)
    fails(capsys, *fit, "b", "--checkpoint", os.devnull, match="a device or a pipe")
    fails(capsys, "prune", "none", "--float16", "--out", os.devnull, match="a device or a pipe")
    os.close(reader)
    os.close(writer)
    assert {*folder.iterdir()} - before == {folder / "dangling", folder / "circle"}


def test_data_that_do_not_exist_and_long_lines(folder, capsys):
    line = "z" * 10**5
    for ending, before in (("svm", "1 1:1\n"), ("mrg", "(S (A a))\n"), ("ndjson", "")):
        with open(f"long.{ending}", "w") as file:
            file.write(f"{before}{line}\n")
        assert len(fails(capsys, "fit", f"long.{ending}", "--model", "b.model")) < 500
    for name in ("none", "none.conll"):
        fails(capsys, "fit", name, "--model", "b.model", match=f"error: {name}: No such file")


def test_pipes_as_outputs(folder, capsys):
    reader, writer = os.pipe()
    works(capsys, "predict", "a.model", "a.conll", "--output", f"/dev/fd/{writer}")
    os.close(writer)
    with open(reader) as pipe:
        assert pipe.read() == "B\nI\n\nB\n"


@needs_full
@pytest.mark.parametrize(
    "argv",
    ["predict a.model a.conll", "score a.model a.conll", "info a.model", "plugins", "--version"],
)
def test_full_disks(folder, argv):
    if argv == "--version":
        with open("/dev/full", "w") as full:
            done = subprocess.run([*COMMAND, argv], stdout=full, stderr=subprocess.PIPE, text=True)
        status, error = done.returncode, done.stderr
    else:
        onto = "import os, runpy; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); "
        run = onto + "runpy.run_module('structsolve', run_name='__main__')"
        status, _, error = in_fork(run, *argv.split())
    assert (status, error) == (2, "structsolve: error: output: No space left on device\n")


@needs_full
def test_full_disks_of_outputs(folder, capsys):
    full = "error: /dev/full: No space left on device"
    fails(capsys, "predict", "a.model", "a.conll", "--output", "/dev/full", match=full)
    (folder / "b").write_text("kept")
    (folder / "long.conll").write_text(TRAIN * 2000)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)); "
    run = limit + "import runpy; runpy.run_module('structsolve', run_name='__main__')"
    for argv in (
        ["predict", "a.model", "long.conll", "--output", "b"],
        ["convert", "a.conll", "b.npz"],
        ["fit", "a.conll", "--model", "b"],
    ):
        status, _, error = in_fork(run, *argv)
        name = "b" if "b" in argv else argv[-1]
        assert (status, error.splitlines()[-1]) == (
            2,
            f"structsolve: error: {name}: File too large",
        )
    assert (folder / "b").read_text() == "kept"
    assert not [path for path in folder.iterdir() if path.name.startswith((".", "b."))]


def test_a_closed_standard_output(folder):
    argv = [*COMMAND, "predict", "a.model", "a.conll", "--output", "labels.txt"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *argv], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "labels.txt").read_text() == "B\nI\n\nB\n"


def test_labels_of_ndjson_keep_their_form(capsys, tmp_path):
    """Small trees are no sequences, strings of states are, and matchings stay on one line."""

    def fit(x, y, *options):
        data, model = tmp_path / "data.ndjson", tmp_path / "model"
        data.write_text(json.dumps({"x": x, "y": y}) + "\n")
        works(capsys, "fit", data, "--model", model, *options)
        return model, data

    table = [[[1.0], [0.0]], [[0.0], [1.0]]]
    given = fit(table, {"tuple": ["S", "a", "b"]}, "--structure", "cky")
    assert len(json.loads(works(capsys, "predict", *given))) == 3
    assert works(capsys, "score", *given).startswith("score ")
    fails(capsys, "predict", *given, "--marginals", match="labels that are no sequences")
    given = fit(table, [0, 1], "--structure", "permutation")
    assert works(capsys, "predict", *given, "--kbest", "1").splitlines()[1] == "0 1"
    told = "score 1.0000, whole labels right 1.0000 of 1 examples\n"
    assert works(capsys, "score", *given) == told
    write_npz(tmp_path / "data.npz", [np.array(table)], [np.array([0, 1])])
    argv = ["fit", tmp_path / "data.npz", "--structure", "permutation", "--model", given[0]]
    assert "1 examples, 4 cells, 1 features" in works(capsys, *argv)
    for y in ([[0, 1]], [["a", "b"]]):
        given = fit([[[1.0], [0.0]]], y, "--structure", "grid")
        assert "accuracy 1.0000 of 2 labels" in works(capsys, "score", *given)
    given = fit("hht", "aab", "--estimator", "HiddenMarkovModel")
    assert "accuracy 1.0000 of 3 labels" in works(capsys, "score", *given)
    words = '{"x": ["h", "t"], "y": ["a", "b"]}\n'  # sequences of one length are no matrix
    given[1].write_text(2 * words)
    assert "accuracy 1.0000 of 4 labels" in works(capsys, "score", *given)
    assert works(capsys, "predict", *given, "--marginals").count(":") == 8
    given[1].write_text('{"x": "ht", "y": "ab"}\n{"x": "ht", "y": null}\n')
    fails(capsys, "score", *given, match="example 1 has no labels")
