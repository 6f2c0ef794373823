# Examples as JSON, one a line: what arrives, faults by line, and the shell on any structure.
import json

import numpy as np
import pytest
from checks import refused
from shell import fails, works
from sklearn.pipeline import make_pipeline

import structsolve
from structsolve import HiddenMarkovModel, SequenceVectorizer, StructuredSVM, get_structure
from structsolve.io import guess_format, read_examples
from structsolve.io.npz import write_npz
from structsolve.plugins.path import make_terrain_maps
from structsolve.utils.values import equal, plain


def put(path, X, Y=None):
    pairs = [{"x": x} for x in X] if Y is None else [{"x": x, "y": y} for x, y in zip(X, Y)]
    path.write_text("".join(json.dumps(plain(pair)) + "\n" for pair in pairs))
    return path


def text(path, content):
    path.write_text(content)
    return path


def test_numbers_become_arrays_and_other_examples_stay(tmp_path):
    path = tmp_path / "a.ndjson"
    assert guess_format(path) == "ndjson"
    X, y = read_examples(put(path, [[0.5, 1], [2, 3]], ["a", "b"]))
    np.testing.assert_array_equal(X, [[0.5, 1], [2, 3]])
    assert y == ["a", "b"]
    X, y = read_examples(put(path, [[1, 2]], [[0, 1]]))
    np.testing.assert_array_equal(y, [[0, 1]])
    X, y = read_examples(put(path, [[[1, 2]], [[3, 4], [5, 6]]], [["a"], ["b", "c"]]))
    assert [x.shape for x in X] == [(1, 2), (2, 2)] and y == [["a"], ["b", "c"]]
    X, y = read_examples(put(path, ["hht", ["h", "tt"], {"edges": [[0, 1]]}, [[1], [2, 3]]]))
    assert X == ["hht", ["h", "tt"], {"edges": [[0, 1]]}, [[1], [2, 3]]] and y is None
    X, y = read_examples(text(path, '\ufeff{"x": {"tuple": ["ab", [1]]}, "y": null}\r\n\n'))
    assert X == [("ab", [1])] and y == [None]
    X, y = read_examples(text(path, '{"x": {"tuple": 3}, "y": 1}\n'))
    assert X == [{"tuple": 3}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found no examples; expected an object a line"),
        ('{"x": 1}\n{"x": 1\n', "line 2: found no JSON"),
        ('{"x": 1}\n[1, 2]\n', r"line 2: found '\[1, 2\]'; expected an object"),
        ('{"y": 1}\n', "line 1: found '{\"y\": 1}'; expected an object"),
        ('{"x": 1, "z": 2}\n', "line 1: .*expected an object"),
        ('{"x": 1}\n{"x": 1, "y": 2}\n', "line 2: found a label y; expected one in all lines"),
        ('{"x": 1, "y": 2}\n\n{"x": 1}\n', "line 3: found no label y; expected one in all lines"),
        ('{"x": [1, 2]}\n{"x": [1]}\n', "found 1 numbers in example 1; expected 2 features"),
        ("[" * 100000 + "\n", "line 1: found no JSON"),
        ('{"x": 1}\n{"x": ' + "1" * 5000 + "}\n", "line 2: found no JSON"),
        ('{"x": 1}\n{"x": 2, "x": 3}\n', "line 2: found the key 'x' twice; expected each key once"),
        ('{"x": {"a": [{"b": 1, "c": 2, "b": 1}]}}\n', "line 1: found the key 'b' twice"),
    ],
)
def test_faults(tmp_path, content, message):
    path = text(tmp_path / "a.ndjson", content)
    refused(f"a.ndjson.*{message}", read_examples, path)


def test_null_is_a_missing_feature(capsys, tmp_path):
    for lines, given in (
        ('{"x": [1, null], "y": "a"}\n{"x": [1, 2], "y": "b"}\n', ["--structure", "multiclass"]),
        ('{"x": [[1, null]], "y": ["a"]}\n{"x": [[1, 2]], "y": ["b"]}\n', []),
    ):
        data, model = text(tmp_path / "a.ndjson", lines), tmp_path / "m"
        assert np.isnan(read_examples(data)[0][0]).tolist() in ([False, True], [[False, True]])
        works(capsys, "fit", data, "--model", model, "--missing", "zero", *given)
        works(capsys, "predict", model, data)
        fails(capsys, "fit", data, "--model", model, *given, match="1 missing|Input contains NaN")


@pytest.mark.parametrize("x", ['"hht"', '{"u": 1}', '["u", null]', '["u", "v"]'])
def test_rows_without_numbers_are_refused_as_features(capsys, tmp_path, x):
    data = text(tmp_path / "a.ndjson", f'{{"x": {x}, "y": "a"}}\n{{"x": [1, 2], "y": "b"}}\n')
    fit = ["fit", data, "--structure", "multiclass", "--model", tmp_path / "m"]
    fails(capsys, *fit, match="error: X: (dtype .* is not numeric|found rows of diff)")


def shell(capsys, data, *options):
    """Fit, predict and score by the shell; return the predictions, the score and the model."""
    model = data.with_suffix(".structsolve")
    works(capsys, "fit", data, "--model", model, "--alpha", "0.01", *options)
    lines = works(capsys, "predict", model, data).splitlines()
    return lines, json.loads(works(capsys, "score", model, data, "--json")), model


@pytest.mark.parametrize("name", ["alignment", "path", "semi-markov", "dependency", "chain"])
def test_structures_of_any_form(capsys, tmp_path, name):
    X, Y = get_structure(name).sample(0, n=12)
    data = put(tmp_path / "a.ndjson", X, Y)
    lines, report, path = shell(capsys, data, "--structure", name)
    model = StructuredSVM(name, alpha=0.01).fit(X, Y)
    guess = model.predict(X)
    if name == "chain":
        assert lines == "\n\n".join("\n".join(map(str, y)) for y in guess).split("\n")
        return
    assert all(equal(json.loads(line), plain(y)) for line, y in zip(lines, guess, strict=True))
    assert report["score"] == pytest.approx(model.score(X, Y), abs=1e-12)
    right = np.mean([equal(a, b) for a, b in zip(guess, Y)])
    assert report["sequence_accuracy"] == right
    assert model.score(X, Y, metric="sequence-accuracy") == right
    best = works(capsys, "predict", path, data, "--kbest", "1").splitlines()
    assert best[1::3] == lines and best[0].startswith("@1\t")
    fails(capsys, "predict", path, data, "--marginals", match="no sequences of classes")


def test_maps(capsys, tmp_path):
    X, Y, _ = make_terrain_maps(20, (4, 4), noise=0.05, monotone=True)
    data = put(tmp_path / "maps.ndjson", X, Y)
    lines, report, _ = shell(capsys, data, "--structure", "path:monotone=true")
    assert [*map(tuple, json.loads(lines[0])[:1])] == [(0, 0)] and report["score"] > 0.9


def test_alignments_in_archives(capsys, tmp_path):
    X, Y = get_structure("alignment").sample(0, n=12)
    write_npz(tmp_path / "a.npz", X, Y)
    lines, *_ = shell(capsys, tmp_path / "a.npz", "--structure", "alignment")
    guess = StructuredSVM("alignment", alpha=0.01).fit(X, Y).predict(X)
    assert [json.loads(line) for line in lines] == [y.tolist() for y in guess]


def test_hidden_markov_models(capsys, tmp_path):
    X, Y = ["hhtht", "tthtt", "hhhtt"], [[*"aaaaa"], [*"bbbbb"], [*"aaabb"]]
    known, path = put(tmp_path / "known.ndjson", X, Y), tmp_path / "m.structsolve"
    works(capsys, "fit", known, "--model", path, "--estimator", "HiddenMarkovModel")
    model = HiddenMarkovModel().fit(X, Y)
    guess = "\n\n".join("\n".join(y) for y in model.predict(X)) + "\n"
    assert works(capsys, "predict", path, known) == guess
    report = json.loads(works(capsys, "score", path, known, "--json"))
    assert report["accuracy"] == model.score(X, Y)
    first = works(capsys, "predict", path, known, "--marginals").splitlines()[0]
    assert first == "a\ta:{:.6f}\tb:{:.6f}".format(*model.predict_marginals(X)[0][0])

    hidden = put(tmp_path / "hidden.ndjson", X)
    two = ("--estimator", "HiddenMarkovModel:n_states=2")
    works(capsys, "fit", hidden, "--model", path, *two)
    np.testing.assert_array_equal(
        structsolve.load(path).transition_, HiddenMarkovModel(2).fit(X).transition_
    )
    fails(capsys, "fit", hidden, "--model", path, "--structure", "chain", match="found no labels")
    fails(capsys, "score", path, hidden, match="found no labels")


def test_pipelines_get_what_is_written(capsys, tmp_path):
    X = [[{"word": "a"}, {"word": "b"}], [{"word": "b"}]]
    Y = [["A", "B"], ["B"]]
    pipe = make_pipeline(SequenceVectorizer(), StructuredSVM("chain", alpha=0.01)).fit(X, Y)
    structsolve.save(pipe, tmp_path / "p.structsolve")
    data = put(tmp_path / "a.ndjson", X, Y)
    assert works(capsys, "predict", tmp_path / "p.structsolve", data) == "A\nB\n\nB\n"


@pytest.mark.parametrize("ragged", [[[1.0], [1.0, 2.0]], [[1.0, 2.0], [1.0]]])
@pytest.mark.parametrize("leading", [True, False])
def test_ragged_examples_are_named(capsys, tmp_path, ragged, leading):
    X, Y = [[[1.0], [2.0]], ragged], [["a", "b"], ["a", "b"]]
    data = put(tmp_path / "a.ndjson", X[::-1] if leading else X, Y)
    argv = ("fit", data, "--model", tmp_path / "m", "--structure", "chain")
    fails(capsys, *argv, match=f"X, example {int(not leading)}: found rows of different lengths")
