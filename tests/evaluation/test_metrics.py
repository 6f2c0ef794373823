"""Metrics against a literal conlleval, scikit-learn, and manual cases."""

import gzip
import json
import pickle
import re

import numpy as np
import pytest
from checks import refused
from data import data_file, needs_data
from hypothesis import given, settings
from hypothesis import strategies as st

from structsolve import StructuredSVM
from structsolve.evaluation.metrics import (
    hamming_loss,
    make_token_scorer,
    sequence_error,
    token_report,
)
from structsolve.plugins.chain.metrics import (
    SCHEMES,
    make_span_scorer,
    span_f1,
    spans,
    tags_from_spans,
)

# ---- conlleval, rule by rule as in the Perl script, with its later rules for S ---------------

ENDS = set(
    map(
        tuple,
        [
            "BB",
            "BO",
            "IB",
            "IO",
            "EE",
            "EI",
            "EO",
            "BS",
            "IS",
            "ES",
            "EB",
            "SE",
            "SI",
            "SO",
            "SS",
            "SB",
        ],
    )
)
STARTS = set(
    map(
        tuple,
        [
            "BB",
            "IB",
            "OB",
            "OI",
            "EE",
            "EI",
            "OE",
            "BS",
            "IS",
            "ES",
            "OS",
            "EB",
            "SE",
            "SI",
            "SS",
            "SB",
        ],
    )
)


def split(tag):
    mark, _, kind = tag.partition("-")
    return mark, kind if mark != "O" else ""


def conlleval(truth, guess):
    """Return counts (correct, predicted, true) by type; walks both sides at once, as conlleval."""
    count = {}
    inside, last_true, last_guess = None, ("O", ""), ("O", "")
    rows = [
        pair
        for one, two in zip(truth, guess, strict=True)
        for pair in [*zip(one, two, strict=True), ("O", "O")]
    ]
    for one, two in rows:
        now_true, now_guess = split(one), split(two)
        end_true, end_guess = (
            (prev[0], now[0]) in ENDS or (prev[0] != "O" and prev[1] != now[1])
            for prev, now in ((last_true, now_true), (last_guess, now_guess))
        )
        start_true, start_guess = (
            (prev[0], now[0]) in STARTS or (now[0] != "O" and prev[1] != now[1])
            for prev, now in ((last_true, now_true), (last_guess, now_guess))
        )
        if inside is not None:
            if end_true and end_guess and last_true[1] == last_guess[1]:
                count.setdefault(inside, [0, 0, 0])[0] += 1
                inside = None
            elif end_true != end_guess or now_true[1] != now_guess[1]:
                inside = None
        if start_true and start_guess and now_true[1] == now_guess[1]:
            inside = now_true[1]
        if start_true:
            count.setdefault(now_true[1], [0, 0, 0])[2] += 1
        if start_guess:
            count.setdefault(now_guess[1], [0, 0, 0])[1] += 1
        last_true, last_guess = now_true, now_guess
    return count


def counts(report):
    return {
        kind: [row["correct"], row["predicted"], row["support"]]
        for kind, row in report["per_type"].items()
    }


TAG = st.one_of(
    st.just("O"), st.builds("{}-{}".format, st.sampled_from("BIES"), st.sampled_from(["A", "B-x"]))
)
PAIRS = st.lists(st.lists(st.tuples(TAG, TAG), max_size=7), min_size=1, max_size=4).filter(any)


@settings(deadline=None)
@given(PAIRS)
def test_spans_are_conllevals(pairs):
    truth, guess = ([[pair[side] for pair in one] for one in pairs] for side in (0, 1))
    report = span_f1(truth, guess)
    expected = conlleval(truth, guess)
    assert counts(report) == expected
    correct, predicted, support = np.sum([*expected.values(), [0, 0, 0]], axis=0)
    assert (report["correct"], report["predicted"], report["support"]) == (
        correct,
        predicted,
        support,
    )
    p, r = report["precision"], report["recall"]
    assert p == pytest.approx(correct / predicted if predicted else 0)
    assert r == pytest.approx(correct / support if support else 0)
    assert report["f1"] == pytest.approx(2 * p * r / (p + r) if p + r else 0)
    same = span_f1(truth, truth)
    assert same["f1"] == (1.0 if same["support"] else 0.0)


@st.composite
def chunked(draw):
    """Draw a length and chunks that fit into it."""
    length, chunks, start = draw(st.integers(1, 9)), [], 0
    while start < length:
        size = draw(st.integers(1, length - start))
        if draw(st.booleans()):
            chunks.append((start, start + size, draw(st.sampled_from(["A", "B", ""]))))
        start += size
    return length, chunks


@settings(deadline=None)
@given(chunked(), st.sampled_from(SCHEMES[1:]))
def test_every_scheme_is_read_back(case, scheme):
    length, chunks = case
    tags = tags_from_spans(chunks, length, scheme)
    assert len(tags) == length
    assert spans(tags) == chunks
    assert span_f1([tags], [tags], scheme)["correct"] == len(chunks)
    sides = span_f1([tags, tags], [tags, ["O"] * length], scheme)
    assert (sides["support"], sides["predicted"]) == (2 * len(chunks), len(chunks))


@pytest.mark.parametrize(
    "scheme, tags",
    [
        ("IOB1", "I-A I-A B-A I-B O I-A"),
        ("IOB2", "B-A I-A B-A B-B O B-A"),
        ("IOE1", "I-A E-A I-A I-B O I-A"),
        ("IOE2", "I-A E-A E-A E-B O E-A"),
        ("IOBES", "B-A E-A S-A S-B O S-A"),
        ("BIOES", "B-A E-A S-A S-B O S-A"),
        ("BIO", "B-A I-A B-A B-B O B-A"),
    ],
)
def test_schemes_by_hand(scheme, tags):
    chunks = [(0, 2, "A"), (2, 3, "A"), (3, 4, "B"), (5, 6, "A")]
    assert tags_from_spans(reversed(chunks), 6, scheme) == tags.split()
    assert spans(tags.split()) == chunks


# Spans of type k as patterns over the tags of a sequence, each with a blank: an independent way.
PATTERNS = {"IOB2": "B-k (I-k )*", "IOE2": "(I-k )*E-k ", "IOBES": "S-k |B-k (I-k )*E-k "}


def matched(tags, scheme):
    """Return the spans of a strict reading, by regular expressions."""
    text = "".join(f"{tag} " for tag in tags)
    return {
        (text[: match.start()].count(" "), text[: match.end()].count(" "), kind)
        for kind in "AB"
        for match in re.finditer(PATTERNS[scheme].replace("k", kind), text)
    }


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(PATTERNS)), chunked())
def test_strict_schemes_are_patterns(data, scheme, case):
    """Predictions may be broken in any way, with the marks of the scheme."""
    length, chunks = case
    truth = tags_from_spans([(a, b, kind or "A") for a, b, kind in chunks], length, scheme)
    marks = set("".join(PATTERNS[scheme].replace("k", "").split())) & set("BIES")
    tag = st.sampled_from(["O", *(f"{mark}-{kind}" for mark in sorted(marks) for kind in "AB")])
    guess = data.draw(st.lists(tag, min_size=length, max_size=length))
    report = span_f1([truth], [guess], scheme)
    true, predicted = matched(truth, scheme), matched(guess, scheme)
    assert (report["support"], report["predicted"]) == (len(true), len(predicted))
    assert report["correct"] == len(true & predicted)


def test_strict_scheme():
    truth = [["B-A", "I-A", "O"], ["B-A", "B-A"]]
    guess = [["B-A", "I-A", "I-B"], ["I-A", "B-A"]]
    loose, strict = span_f1(truth, guess), span_f1(truth, guess, "IOB2")
    assert (loose["predicted"], loose["correct"]) == (4, 3)
    assert (strict["predicted"], strict["correct"]) == (2, 2)
    with pytest.raises(ValueError, match=r"y_true\[1\]\[0\] is 'I-A', which IOB2 does not allow"):
        span_f1([truth[0], guess[1]], truth, "IOB2")
    # A boundary between sequences is not a boundary between chunks.
    assert span_f1([["I-A"], ["I-A"]], [["I-A"], ["B-A"]], "IOB1")["predicted"] == 1


def test_other_names_of_the_prefixes():
    assert spans(["B-A", "M-A", "L-A", "U-A", "U-A", "O", "O-A"]) == [
        (0, 3, "A"),
        (3, 4, "A"),
        (4, 5, "A"),
    ]
    names = {"L": "E", "U": "S", "M": "I"}
    for marks in ("LLI", "BML", "UMU", "IUL", "MBU"):
        own = [f"{mark}-A" for mark in marks]
        assert spans(own) == spans([f"{names.get(mark, mark)}-A" for mark in marks])
    assert spans(["B", "I", "O", "I"]) == [(0, 2, ""), (3, 4, "")]
    assert spans([]) == [] and tags_from_spans([], 0) == []


@needs_data
def test_conll2000():
    text = gzip.decompress(data_file("seq-conll2000", "test.txt.gz").read_bytes()).decode()
    truth = [
        [line.split()[2] for line in block.splitlines()] for block in text.strip().split("\n\n")
    ]
    rng = np.random.default_rng(0)
    every = sorted({tag for one in truth for tag in one})
    guess = [[rng.choice(every) if rng.random() < 0.1 else tag for tag in one] for one in truth]
    report = span_f1(truth, guess)
    assert report["support"] == 23852  # as published for the shared task
    assert counts(report) == conlleval(truth, guess)
    assert span_f1(truth, truth, "IOB2")["f1"] == 1.0


# ---- tokens and sequences --------------------------------------------------------------------

LABELS = st.sampled_from([st.sampled_from(["x", "y", "zed"]), st.integers(-1, 3)])


@settings(deadline=None)
@given(st.data(), LABELS, st.sampled_from([list, tuple, np.array]))
def test_token_figures(data, label, make):
    pairs = data.draw(
        st.lists(st.lists(st.tuples(label, label), min_size=1, max_size=5), min_size=1, max_size=4)
    )
    truth, guess = ([make([pair[side] for pair in one]) for one in pairs] for side in (0, 1))
    flat = [pair for one in pairs for pair in one]
    wrong = [sum(a != b for a, b in one) for one in pairs]
    report = token_report(truth, guess)
    assert report["support"] == len(flat)
    assert report["accuracy"] == pytest.approx(1 - sum(wrong) / len(flat))
    assert report["micro"]["f1"] == pytest.approx(report["accuracy"])
    assert list(report["per_class"]) == sorted({name for pair in flat for name in pair})
    for name, row in report["per_class"].items():
        hit = sum(a == b == name for a, b in flat)
        chosen, present = (sum(pair[side] == name for pair in flat) for side in (1, 0))
        assert row == {
            "precision": pytest.approx(hit / chosen if chosen else 0),
            "recall": pytest.approx(hit / present if present else 0),
            "f1": pytest.approx(2 * hit / (chosen + present)),
            "support": present,
        }
        assert type(name) in (str, int) and type(row["support"]) is int
    assert report["macro"]["f1"] == pytest.approx(
        np.mean([row["f1"] for row in report["per_class"].values()])
    )
    assert hamming_loss(truth, guess) == pytest.approx(sum(wrong) / len(flat))
    assert hamming_loss(truth, guess, "count") == pytest.approx(np.mean(wrong))
    assert hamming_loss(truth, guess, "sequence") == pytest.approx(
        np.mean([w / len(one) for w, one in zip(wrong, pairs, strict=True)])
    )
    assert sequence_error(truth, guess) == pytest.approx(np.mean([w > 0 for w in wrong]))


def test_labels_choose_the_classes():
    truth, guess = [["O", "A", "B"]], [["O", "A", "A"]]
    report = token_report(truth, guess, labels=["B", "A", "C"])
    assert list(report["per_class"]) == ["B", "A", "C"]
    assert report["accuracy"] == pytest.approx(2 / 3)
    assert report["micro"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2}
    for bad in ([], [1], [["A"]], ["A", "A"]):
        refused("labels is", token_report, truth, guess, labels=bad)


def test_what_is_accepted():
    # Empty sequences, arrays of objects, integral floats, read-only rows of an array.
    assert hamming_loss([[], ["a"]], [np.array([], dtype=float), np.array(["b"], object)]) == 1
    assert sequence_error([[], [1]], [(), (2,)]) == 0.5
    rows = np.arange(6).reshape(2, 3)
    rows.setflags(write=False)
    assert hamming_loss(rows, rows.astype(float)) == 0
    assert hamming_loss([[True, False]], [[1, 1]]) == 0.5
    assert span_f1(iter([["O"]]), [["O"]])["f1"] == 0


@pytest.mark.parametrize(
    "truth, guess, words",
    [
        ([[1], [1, 2]], [[1], [1]], r"y_true\[1\] has 2 labels and y_pred\[1\] has 1"),
        ([[1]], [[1], [1]], "y_true has 1 sequences and y_pred has 2"),
        ([], [], "holds no labels"),
        ([[]], [[]], "holds no labels"),
        (["ab", "c"], ["ab", "c"], r"y_true\[0\] is 'ab'; expected a sequence"),
        ("ab", "ab", "y_true is a str"),
        (None, [[1]], "y_true is a NoneType"),
        ([1, 2], [1, 2], r"y_true\[0\] is 1; expected a sequence.*\[labels\]"),
        (np.array([1, 2]), np.array([1, 2]), r"y_true\[0\] is .*expected a sequence"),
        ([np.array(3)], [[3]], r"y_true\[0\]"),
        ([np.eye(2)], [np.eye(2)], r"y_true\[0\] is"),
        ([["a"]], [[1]], "strings in both or integers in both"),
        ([["a", "b"]], [["a", 1]], r"y_pred\[0\]\[1\] is 1; expected a string"),
        ([[1], [2, "b"]], [[1], [2, 3]], r"y_true\[1\]\[1\] is 'b'; expected strings only"),
        ([[1.0], [2.5]], [[1], [2]], r"y_true\[1\]\[0\] is 2.5"),
        ([[1, float("nan")]], [[1, 2]], r"y_true\[0\]\[1\] is nan"),
        ([[1, None]], [[1, 2]], r"y_true\[0\]\[1\] is None"),
        ([[[1], [2]]], [[1, 2]], r"y_true\[0\]\[0\] is \[1\]"),
    ],
)
def test_bad_input(truth, guess, words):
    for score in (token_report, hamming_loss, sequence_error, span_f1):
        refused(words, score, truth, guess)


def test_bad_tags_and_names():
    with pytest.raises(ValueError, match=r"y_pred\[1\]\[1\] is 'NP', not a chunk tag"):
        span_f1([["O"], ["O", "O"]], [["O"], ["O", "NP"]])
    refused(r"y_true\[0\]\[0\] is 1, not a chunk tag", span_f1, [[1]], [[1]])
    refused(r"tags\[0\]\[1\]", spans, ["O", "x"])
    refused(r"one of \['conll', 'IOB1'", span_f1, [["O"]], [["O"]], "BOI")
    refused(r"average is .* one of \['token'", hamming_loss, [["O"]], [["O"]], "macro")
    refused("only reads", tags_from_spans, [], 1, "conll")
    for chunk in ([(0, 0, "A")], [(0, 2, "A"), (1, 3, "A")], [(2, 4, "A")], [(-1, 1, "A")]):
        refused("is empty, overlaps", tags_from_spans, chunk, 3)


# ---- scorers ---------------------------------------------------------------------------------


def sequence_tagger():
    """An estimator that predicts its parameter wherever x is positive, else O."""
    from sklearn.base import BaseEstimator

    class Tagger(BaseEstimator):
        def __init__(self, tag="O"):
            self.tag = tag

        def fit(self, X, y):
            self.fitted_ = True
            return self

        def predict(self, X):
            return [[self.tag if value > 0 else "O" for value in x[:, 0]] for x in X]

    return Tagger()


def test_scorers_in_a_grid_search():
    from sklearn.model_selection import GridSearchCV, KFold

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 1)) for n in (1, 2, 3, 4, 5, 6)]
    Y = [["B-A" if value > 0 else "O" for value in x[:, 0]] for x in X]
    search = GridSearchCV(
        sequence_tagger(),
        {"tag": ["O", "I-A", "B-B", "B-A"]},
        cv=KFold(2),
        error_score="raise",
        refit="span",
        scoring={
            "span": make_span_scorer(),
            "token": make_token_scorer("macro-f1"),
            "whole": make_token_scorer("sequence-accuracy"),
            "b": make_span_scorer("recall", span_type="B", scheme="IOB2"),
        },
    )
    search.fit(X, Y)
    assert search.best_params_ == {"tag": "B-A"} and search.best_score_ == 1
    assert search.cv_results_["mean_test_token"][3] == 1
    assert search.cv_results_["mean_test_whole"][0] < 1
    assert not search.cv_results_["mean_test_b"].any()
    assert 0 < search.cv_results_["mean_test_span"][1] < 1


def test_scorers_pickle_and_refuse_unknown_names():
    scorer = pickle.loads(pickle.dumps(make_span_scorer("precision")))
    tagger = sequence_tagger().set_params(tag="B-A")
    X = [np.array([[1.0], [1.0]])]
    assert scorer(tagger, X, [["B-A", "O"]]) == 0.5
    assert make_token_scorer("accuracy")(tagger, X, [["B-A", "O"]]) == 0.5
    assert make_token_scorer("macro-f1", labels=["B-A"])(tagger, X, [["B-A", "O"]]) == (
        pytest.approx(2 / 3)
    )
    refused("'f1', 'precision'", make_span_scorer, "f2")
    refused(r"one of \['conll'", make_span_scorer, scheme="BOI")
    # One class per row.
    rows, y = np.array([[1.0], [2.0], [-1.0]]), ["a", "a", "b"]
    classes = StructuredSVM("multiclass", alpha=0.01).fit(rows, y)
    assert classes.score(rows, y, metric="macro-f1") == 1
    assert classes.score(rows, ["a", "b", "b"], metric="accuracy") == pytest.approx(2 / 3)
    refused(r"mean 'macro-f1'.*of \['accuracy', 'sequence-acc", make_token_scorer, "f1")


# ---- tables ----------------------------------------------------------------------------------


def test_reports_print_tables():
    truth, guess = [["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]]
    report = token_report(truth, guess)
    lines = str(report).splitlines()
    assert lines[0].split() == ["precision", "recall", "f1", "support"]
    assert [line.split()[0] for line in lines[1:5]] == ["B-NP", "B-VP", "I-NP", "O"]
    assert lines[1].split()[1:] == ["0.5000", "1.0000", "0.6667", "1"]
    assert "accuracy 0.7500" in lines and repr(report) == str(report)
    assert len({len(line) for line in lines[:5]}) == 1
    assert json.loads(json.dumps(report)) == report == pickle.loads(pickle.dumps(report))
    spans = str(span_f1(truth, guess)).splitlines()
    assert spans[4].split() == ["all", "0.5000", "0.5000", "0.5000", "2"]
    assert "per_type" not in "".join(spans)
    assert str(span_f1([["O"]], [["O"]])).splitlines()[2].split()[0] == "all"
