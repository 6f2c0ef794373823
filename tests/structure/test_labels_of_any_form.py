"""Labels of external structures, such as spans, tuples and trees: in files, the shell, scores."""

import json
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from checks import refused
from shell import shell
from sklearn.base import BaseEstimator

import structsolve
from structsolve import AnyOf, LatentSVM, Named, StructuredSVM, get_scorer
from structsolve.io.npz import read_npz, write_npz
from structsolve.plugins.chain import ChainSpace, ChainStructure
from structsolve.utils.values import equal, from_text, to_json, to_text

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SEGMENTS = Path(__file__).parents[2] / "docs" / "examples" / "segments"


@pytest.fixture
def segments(monkeypatch, registered):
    """Spans as labels: lists of pairs (class, length)."""
    monkeypatch.syspath_prepend(str(SEGMENTS))
    import structsolve_segments

    registered(structsolve_structures=structsolve_segments.structsolve_structures)
    rng = np.random.default_rng(0)
    Y = [[("ab"[k % 2], int(n)) for k, n in enumerate(rng.integers(1, 4, 3))] for _ in range(12)]
    X = [np.repeat(np.eye(2)[["ab".index(c) for c, _ in y]], [n for _, n in y], 0) for y in Y]
    yield X, Y
    sys.modules.pop("structsolve_segments", None)


def random_label(rng, depth=3):
    kind = rng.integers(6 if depth else 3)
    if kind < 3:
        return [int(rng.integers(9)), "tuple"[: rng.integers(6)], float(rng.normal())][kind]
    parts = [random_label(rng, depth - 1) for _ in range(rng.integers(4))]
    return [parts, tuple(parts), {str(i): part for i, part in enumerate(parts)}][kind - 3]


def test_labels_come_back_from_files_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(300):
        label = random_label(rng, 4)
        assert from_text(to_text(label)) == label and equal(label, from_text(to_text(label)))
    path = tmp_path / "a.npz"
    for X in (np.eye(4), [np.eye(3), np.ones((2, 3)), np.eye(3), np.ones((1, 3))]):
        for _ in range(20):
            Y = [(random_label(rng), [random_label(rng)]) for _ in range(4)]
            write_npz(path, X, Y)
            again, labels = read_npz(path)
            assert labels == Y and len(again) == 4
    # Paths of cells on pictures are not label pictures.
    pictures = [np.zeros((3, 2, 1)), np.zeros((2, 2, 1))]
    for Y in (
        [[(0, 0), (1, 0)], [(0, 0)]],
        [[(0, 0), (1, 1)]] * 2,
        [[[0], [1, 2]], []],
        ["a", "b"],
    ):
        write_npz(path, pictures, Y)
        assert read_npz(path)[1] == Y
    wrong = [np.zeros((3, 1), int), np.zeros((2, 2), int)]
    refused("example 0: found labels of shape .3, 1.", write_npz, path, pictures, wrong)
    # A label per row is an array, as before.
    write_npz(path, [np.eye(2), np.ones((1, 2))], [["a", "b"], ["a"]])
    assert [y.tolist() for y in read_npz(path)[1]] == [["a", "b"], ["a"]]
    assert "y_json" not in np.load(path)
    refused("example 1: a set in a label", write_npz, path, np.eye(2), [("a", []), ({"b"}, [])])
    refused("example 1: found 1 labels", write_npz, path, [np.eye(2)] * 2, [["a", "b"], ["a"]])
    refused("y has 3 labels", write_npz, path, [np.eye(2)] * 2, [[("a", 2)]] * 3)
    np.savez(path, X=np.eye(2), y_json=np.array(["1"]))
    refused("found y_json of <U1 .1,.; expected 2 texts", read_npz, path)


def test_the_shell_trains_on_spans(tmp_path, capsys, segments):
    X, Y = segments
    train, model = tmp_path / "train.npz", tmp_path / "m.structsolve"
    write_npz(train, X, Y)
    options = ("--structure", "segments", "--alpha", "0.01")
    assert shell(capsys, "fit", train, "--model", model, *options)[0] == 0
    status, out, _ = shell(capsys, "predict", model, train)
    guess = [json.loads(line) for line in out.splitlines()]
    loaded = structsolve.load(model)
    assert status == 0 and all(map(equal, guess, loaded.predict(X)))
    status, out, _ = shell(capsys, "score", model, train, "--json")
    share = np.mean([equal(y, g) for y, g in zip(Y, guess)])
    report = json.loads(out)
    assert report["sequence_accuracy"] == share and report["examples"] == 12
    assert report["score"] == pytest.approx(loaded.score(X, Y))
    status, out, _ = shell(capsys, "score", model, train)
    assert f"whole labels right {share:.4f} of 12 examples" in out
    status, out, _ = shell(capsys, "score", model, train, "--metric", "sequence-accuracy")
    assert status == 0 and out.startswith(f"sequence-accuracy {share:.6g} of 12")
    status, _, err = shell(capsys, "predict", model, train, "--marginals")
    told = "--marginals: labels that are no sequences of classes have no line for them"
    assert status == 2 and told in err


class ChosenSpace(ChainSpace):
    def pack(self, X, Y=None, unseen="error"):
        rows = Y and [np.isin(np.arange(len(x)), [*y]).astype(int) for x, y in zip(X, Y)]
        return super().pack(X, rows, unseen)

    def unpack(self, flat, examples):
        rows = super().unpack(flat, examples)
        return [{int(v) for v in np.flatnonzero(row)} for row in rows]

    def unpack_one(self, label, examples, i):
        return {int(v) for v in np.flatnonzero(label)}


class ChosenStructure(ChainStructure):
    """Labels are sets: the numbers of the rows that are chosen."""

    name = "chosen"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        space, _ = super().make_space(X, [[0] * len(x) for x in X], [0, 1], fit_intercept)
        space.__class__ = ChosenSpace
        return space, space.pack(X, Y)

    def space_from_state(self, state, arrays):
        space = super().space_from_state(state, arrays)
        space.__class__ = ChosenSpace
        return space


def test_the_shell_writes_sets_as_lists_and_compares_them_without_order(
    tmp_path, capsys, registered
):
    assert equal({1, 2}, [2, 1]) and equal([[(1, "a")]], [{(1, "a")}])
    assert equal(np.array([2, 1]), {1, 2}) and not equal({1, 2}, [1, 1])
    assert not equal({1}, {1, 2}) and not equal({1}, 1) and not equal([1, 2], [2, 1])
    assert to_json([{"b", "a"}, (np.int64(1),)]) == '[["a", "b"], [1]]'
    refused("a complex in a label", to_json, {1j}, error=TypeError)
    registered(structsolve_structures=lambda: [Named("chosen", ChosenStructure)])
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in rng.integers(2, 5, 20)]
    Y = [[int(v) for v in np.flatnonzero(x[:, 0] > 0)][::-1] for x in X]
    data, model = tmp_path / "a.ndjson", tmp_path / "m.structsolve"
    data.write_text("".join(to_json({"x": x, "y": y}) + "\n" for x, y in zip(X, Y)))
    options = ("--structure", "chosen", "--alpha", "0.01", "--model", model)
    assert shell(capsys, "fit", data, *options)[0] == 0
    answers = structsolve.load(model).predict(X)
    status, out, _ = shell(capsys, "predict", model, data)
    assert status == 0 and [*map(json.loads, out.splitlines())] == [sorted(y) for y in answers]
    status, out, _ = shell(capsys, "predict", model, data, "--kbest", 1)
    assert status == 0 and out.splitlines()[1] == str(sorted(answers[0]))
    status, out, _ = shell(capsys, "score", model, data, "--json")
    share = np.mean([set(y) == answer for y, answer in zip(Y, answers)])
    assert status == 0 and json.loads(out)["sequence_accuracy"] == share > 0.5


def test_whole_labels_of_every_kind_are_counted(segments):
    scorer = get_scorer("sequence-accuracy")
    X, Y = segments
    model = StructuredSVM("segments", max_iter=2).fit(X, Y)
    share = np.mean([equal(a, b) for a, b in zip(Y, model.predict(X))])
    assert scorer(model, X, Y) == pytest.approx(share)
    assert scorer(model, X, Y) == model.score(X, Y, metric="sequence-accuracy")
    rows, classes = structsolve.get_structure("multiclass").sample(0, n=6)
    model = StructuredSVM("multiclass", max_iter=2).fit(rows, classes)
    share = np.mean(model.predict(rows) == classes)
    assert scorer(model, rows, classes) == pytest.approx(share)
    pictures, labels = structsolve.get_structure("grid").sample(0, n=6)
    model = StructuredSVM("grid", max_iter=2).fit(pictures, labels)
    share = np.mean([np.array_equal(a, b) for a, b in zip(labels, model.predict(pictures))])
    assert scorer(model, pictures, labels) == pytest.approx(share)
    truth = [("S", ("NP", 1)), ("S", ("VP", 1)), "S"]

    class Parser(BaseEstimator):
        def predict(self, X):
            return [["S", ["NP", 1]], ("S", ("NP", 1)), ("S",)]

    assert scorer(Parser(), [0, 1, 2], truth) == pytest.approx(1 / 3)
    refused("y has 1 labels; expected 3, as X has rows", scorer, Parser(), [0, 1, 2], truth[:1])


class SpanSpace(ChainSpace):
    """Chains whose users see spans (class, length)."""

    def flatten(self, Y, offsets):
        return np.array([c for spans in Y for c, size in spans for _ in range(size)])

    def unpack(self, flat, examples):
        each = super().unpack(flat, examples)
        return [[(c, len([*same])) for c, same in groupby(y.tolist())] for y in each]


class SpanStructure(ChainStructure):
    name = "spans"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        words = [[c for c, size in spans for _ in range(size)] for spans in Y]
        space, _ = super().make_space(X, words, classes, fit_intercept)
        space.__class__ = SpanSpace
        return space, space.pack(X, Y)

    def space_from_state(self, state, arrays):
        space = super().space_from_state(state, arrays)
        space.__class__ = SpanSpace
        return space


def test_latent_states_below_spans(segments, registered):
    X, Y = segments
    registered(structsolve_structures=lambda: [Named("spans", SpanStructure)])
    merged = [[(c, sum(n for _, n in same)) for c, same in groupby(y, lambda s: s[0])] for y in Y]
    model = LatentSVM("spans", n_hidden=2, alpha=0.01, max_rounds=5).fit(X, merged)
    assert model.predict(X) == merged
    assert len(model.state_classes_) == 4
    # External structures whose nodes have no classes: whole labels, or candidates for them.
    whole = [
        AnyOf([y, Y[0]]) if map(len, (X[i], X[0])) and len(X[i]) == len(X[0]) else y
        for i, y in enumerate(Y)
    ]
    for labels in (Y, whole):
        model = LatentSVM("segments", alpha=0.01).fit(X, labels)
        assert model.predict(X) == Y and model.hidden_ == Y
    # Sets of classes are still sets, and wrong labels are reported as before.
    words = [["a", ("a", "b"), "b"]] * 4
    LatentSVM("chain", max_rounds=2).fit([np.eye(3)[:, :2]] * 4, words)
    refused("example 0", LatentSVM("chain").fit, [np.eye(2)], [["a", ("a", "b"), "b"]])
