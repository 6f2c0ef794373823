"""Reports of spans: strict schemes by a scanner of tokens, averages, suffixes, lists of errors."""

import json
import pickle
import random

import pytest
from checks import refused

from structsolve.cli.main import main
from structsolve.evaluation.metrics import token_report
from structsolve.evaluation.report import FIGURES
from structsolve.plugins.chain.metrics import make_span_scorer, span_f1, spans
from structsolve.plugins.chain.spans import tags_from_spans

# The marks of each scheme, and when a token begins a span, goes on, or ends the span before it, by
# the two marks and whether their types agree: the rules of seqeval's strict mode, in words.
SCANNERS = {
    "IOB1": (
        "BI",
        lambda p, c, same: (
            (c == "I" and (p in "OB" or not same)) or (c == "B" and p != "O" and same)
        ),
        lambda p, c, same: c == "I" and p in "BI" and same,
        lambda p, c, same: c == "O" or (c == "B" and (p == "I" or same)) or (c == "I" and not same),
    ),
    "IOB2": (
        "BI",
        lambda p, c, same: c == "B",
        lambda p, c, same: c == "I" and p in "BI" and same,
        lambda p, c, same: True,
    ),
    "IOE1": (
        "IE",
        lambda p, c, same: c in "IE" and (p in "OE" or not same),
        lambda p, c, same: p == "I" and c in "IE" and same,
        lambda p, c, same: p == "E" and c in "IE" and same or p == "I" and (c == "O" or not same),
    ),
    "IOE2": (
        "IE",
        lambda p, c, same: c in "IE" and (p in "OE" or not same),
        lambda p, c, same: p == "I" and c in "IE" and same,
        lambda p, c, same: p == "E",
    ),
    "IOBES": (
        "BIES",
        lambda p, c, same: c in "BS",
        lambda p, c, same: p in "BI" and c in "IE" and same,
        lambda p, c, same: p in "ES",
    ),
}
SCANNERS["BILOU"] = SCANNERS["IOBES"]


def scanned(tags, scheme):
    """Return the strict spans of one sequence, token by token."""
    _, opens, goes_on, ends = SCANNERS[scheme]
    read = [(tag[0], tag[2:]) for tag in ["O", *tags, "O"]]
    if scheme == "BILOU":
        read = [({"L": "E", "U": "S"}.get(mark, mark), kind) for mark, kind in read]
    marks = [mark for mark, _ in read]

    def holds(rule, i):
        return rule(marks[i - 1], marks[i], read[i - 1][1] == read[i][1])

    answer, i = set(), 1
    while i < len(read):
        if not holds(opens, i):
            i += 1
            continue
        start, i = i, i + 1
        while i < len(read) and holds(goes_on, i):
            i += 1
        if holds(ends, i):
            answer.add((start - 1, i - 1, read[start][1]))
    return answer


def noise(rng, marks, length):
    kinds = ["A", "B-x", "C"]
    return [
        "O" if rng.random() < 0.3 else f"{rng.choice(marks)}-{rng.choice(kinds)}"
        for _ in range(length)
    ]


def cases(marks, n=300):
    rng = random.Random(0)
    for _ in range(n):
        truth = [noise(rng, marks, rng.randint(1, 8)) for _ in range(rng.randint(1, 4))]
        guess = [
            [tag if rng.random() < 0.5 else other for tag, other in zip(one, noise(rng, marks, 9))]
            for one in truth
        ]
        yield truth, guess


def turned(sequences):
    return [
        [tag if tag == "O" else f"{tag[2:]}-{tag[0]}" for tag in sequence] for sequence in sequences
    ]


def ratio(above, below):
    return above / below if below else 0.0


@pytest.mark.parametrize("scheme", SCANNERS)
def test_strict_spans_and_averages_by_a_scanner(scheme):
    marks = "BILU" if scheme == "BILOU" else SCANNERS[scheme][0]
    for truth, guess in cases(marks):
        report = span_f1(truth, guess, scheme, broken="drop")
        true, pred = (
            {(i, *span) for i, tags in enumerate(side) for span in scanned(tags, scheme)}
            for side in (truth, guess)
        )
        rows = {}
        for kind in sorted({span[3] for span in true | pred}):
            t, p = ({span for span in side if span[3] == kind} for side in (true, pred))
            shares = [ratio(len(t & p), len(p)), ratio(len(t & p), len(t))]
            rows[kind] = [*shares, ratio(2 * len(t & p), len(t) + len(p)), len(t)]
        listed = {
            kind: [row[f] for f in (*FIGURES, "support")]
            for kind, row in report["per_type"].items()
        }
        assert listed == rows
        assert (report["correct"], report["predicted"]) == (len(true & pred), len(pred))
        assert (
            report["micro"]["f1"]
            == report["f1"]
            == ratio(2 * len(true & pred), len(true) + len(pred))
        )
        for j, figure in enumerate(FIGURES):
            each = [row[j] for row in rows.values()]
            assert report["macro"][figure] == pytest.approx(ratio(sum(each), len(each)))
            weighed = sum(row[3] * row[j] for row in rows.values())
            assert report["weighted"][figure] == pytest.approx(ratio(weighed, len(true)))
        assert report == span_f1(turned(truth), turned(guess), scheme, broken="drop", suffix=True)


def test_suffixes_without_a_scheme():
    for truth, guess in cases("BIES", 100):
        assert span_f1(truth, guess) == span_f1(turned(truth), turned(guess), suffix=True)
    assert spans(["A-x-B", "A-x-I", "B"], suffix=True) == [(0, 2, "A-x"), (2, 3, "")]
    refused(r"tags\[0\]\[0\] is 'B-A', not a chunk tag.*as in 'NP-B'", spans, ["B-A"], suffix=True)


THIRDS = (2 / 3, 0.4, 8 / 15, 3)
SEVENTHS = (6 / 7, 0.9, 13 / 15, 4)


@pytest.mark.parametrize(
    "scheme, guess, expected",
    [  # F1 (micro, macro, weighted) as seqeval 1.2.2 prints it, and the number of predicted spans
        ("conll", "B-A I-A I-B O B-A B-A", SEVENTHS),
        ("IOB1", "I-A I-A I-B O I-A B-A", SEVENTHS),
        ("IOB2", "B-A I-A I-B O B-A B-A", THIRDS),
        ("IOE2", "I-A E-A I-B O E-A E-A", THIRDS),
        ("IOBES", "B-A E-A I-B O S-A S-A", THIRDS),
        ("BILOU", "B-A L-A L-B O U-A U-A", THIRDS),
        ("IOE1", "I-A I-A I-B O E-A I-A", SEVENTHS),  # of which seqeval misses the last but one
    ],
)
def test_numbers_by_hand(scheme, guess, expected):
    chunks = [(0, 2, "A"), (2, 3, "B"), (4, 5, "A")]
    truth = tags_from_spans(chunks, 6, "IOB2" if scheme == "conll" else scheme)
    report = span_f1([truth], [guess.split()], scheme)
    means = [report[mean]["f1"] for mean in ("micro", "macro", "weighted")]
    assert [*means, report["predicted"]] == pytest.approx(expected)


def test_report_as_a_table_json_and_pickle():
    report = span_f1([["B-A", "O", "B-B"]], [["B-A", "B-A", "O"]])
    table = [line.split() for line in str(report).splitlines()]
    assert table[4] == ["all", "0.5000", "0.5000", "0.5000", "2"]
    assert table[5] == ["macro", "mean", "0.2500", "0.5000", "0.3333", "2"]
    assert table[6] == ["weighted", "mean", "0.2500", "0.5000", "0.3333", "2"]
    assert json.loads(json.dumps(report)) == report
    again = pickle.loads(pickle.dumps(report))
    assert again == report and again.errors() == report.errors()
    empty = span_f1([["O"]], [["O"]])
    assert [empty[mean]["f1"] for mean in ("micro", "macro", "weighted")] == [0, 0, 0]
    assert empty.errors() == [] and str(empty.errors()) == ""


def test_scorers_of_averages():
    from sklearn.base import BaseEstimator

    class Echo(BaseEstimator):
        def fit(self, X, Y):
            return self

        def predict(self, X):
            return X

    truth, guess = [["A-B", "O", "B-B"]], [["A-B", "A-B", "O"]]
    report = span_f1(truth, guess, suffix=True)
    for average in ("micro", "macro", "weighted"):
        scorer = make_span_scorer("precision", average=average, suffix=True)
        assert scorer(Echo(), guess, truth) == report[average]["precision"]
    refused(r"average is 'samples', expected one of \['micro'", make_span_scorer, average="samples")
    with pytest.raises(ValueError, match=r"broken is 'keep', expected one of \['refuse', 'drop'\]"):
        span_f1(truth, guess, broken="keep")


def test_errors_of_every_kind():
    words = [
        ["Ada", "Byron", "met", "Charles", "Babbage", "of", "London", "in", "Turin"],
        ["Rain", "fell"],
    ]
    truth = [["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC"], ["O", "B-X"]]
    guess = [["B-PER", "O", "O", "B-LOC", "I-LOC", "O", "B-PER", "I-PER", "O"], ["B-X", "O"]]
    errors = span_f1(truth, guess).errors(words, context=2)
    assert [error[:-1] for error in errors] == [
        (0, 0, 2, "wrong border", (0, 2, "PER"), (0, 1, "PER")),
        (0, 3, 5, "wrong class", (3, 5, "PER"), (3, 5, "LOC")),
        (0, 6, 8, "wrong class and border", (6, 7, "LOC"), (6, 8, "PER")),
        (0, 8, 9, "missing", (8, 9, "LOC"), None),
        (1, 0, 1, "spurious", None, (0, 1, "X")),
        (1, 1, 2, "missing", (1, 2, "X"), None),
    ]
    assert [error.context for error in errors] == [
        "[Ada Byron] met Charles ...",
        "... Byron met [Charles Babbage] of London ...",
        "... Babbage of [London in] Turin",
        "... London in [Turin]",
        "[Rain] fell",
        "Rain [fell]",
    ]
    text = str(errors).splitlines()
    assert text[0] == "example 0, 0:2, wrong border: true PER 0:2, predicted PER 0:1"
    assert text[6] == "example 0, 8:9, missing: true LOC 8:9, predicted -"
    assert span_f1(truth, guess).errors()[0].context == ""


@pytest.mark.parametrize("scheme", ["conll", "IOB2"])
def test_every_wrong_span_is_one_error(scheme):
    for truth, guess in cases("BI", 200):
        report = span_f1(truth, guess, scheme, broken="drop")
        errors = report.errors(truth, context=0)
        for side, wrong in (("true", report["support"]), ("predicted", report["predicted"])):
            listed = [(e.example, *getattr(e, side)) for e in errors if getattr(e, side)]
            assert len(listed) == len({*listed}) == wrong - report["correct"]
            if scheme == "conll":
                source = truth if side == "true" else guess
                assert all((a, b, kind) in spans(source[i]) for i, a, b, kind in listed)
        for e in errors:
            assert e.true != e.predicted and e.context == (
                "... " * (e.start > 0)
                + f"[{' '.join(truth[e.example][e.start : e.end])}]"
                + " ..." * (e.end < len(truth[e.example]))
            )
            if e.true and e.predicted:
                assert max(e.true[0], e.predicted[0]) < min(e.true[1], e.predicted[1])
        # No error is left of each side that overlap.
        alone = {side: [e for e in errors if e.kind == side] for side in ("missing", "spurious")}
        for one in alone["missing"]:
            for other in alone["spurious"]:
                apart = one.end <= other.start or other.end <= one.start
                assert one.example != other.example or apart


def test_arguments_of_errors():
    report = span_f1([["B-A", "O"]], [["O", "O"]])
    for tokens, told in [
        ("text", "tokens is a str; expected 1 sequences of tokens"),
        ([], "tokens is a list; expected 1 sequences"),
        ([["one"]], r"tokens\[0\] is \['one'\]; expected 2 tokens, as y_true\[0\] has labels"),
        (["ab"], r"tokens\[0\] is 'ab'; expected 2 tokens"),
    ]:
        refused(told, report.errors, tokens)
    with pytest.raises(ValueError, match="context is -1, expected a number of tokens >= 0"):
        report.errors([["a", "b"]], context=-1)


def test_errors_of_spans_take_all_words():
    words = [["Ada", "left", "York", "in", "May"], ["no", "spans"]]
    report = span_f1([[(0, 1, "PER"), (2, 3, "LOC")], []], [[(0, 1, "PER")], []])
    (error,) = report.errors(words, context=1)
    assert error.context == "... left [York] in ..."
    (error,) = pickle.loads(pickle.dumps(report)).errors(words, context=1)
    assert error.context == "... left [York] in ..."
    with pytest.raises(ValueError, match=r"tokens\[0\] is .*; expected at least 3 tokens"):
        report.errors([["Ada", "left"], ["no"]])


def test_errors_of_tokens():
    report = token_report([["D", "N", "V"], ["N"]], [["D", "V", "V"], ["D"]])
    assert [tuple(error) for error in report.errors([["the", "run", "was"], ["it"]], 1)] == [
        (0, 1, 2, "wrong class", "N", "V", "the [run] was"),
        (1, 0, 1, "wrong class", "N", "D", "[it]"),
    ]
    assert token_report([[1, 2]], [[1, 3]]).errors()[0][4:] == (2, 3, "")


def test_the_shell_lists_errors(capsys, tmp_path):
    data = tmp_path / "train.conll"
    data.write_text("Ada A B-PER\nleft A O\n\nHe B O\nsaw B O\nYork B B-LOC\n")
    model = tmp_path / "model"
    assert main(["fit", str(data), "--model", str(model), "--alpha", "0.01"]) == 0
    data.write_text("Ada A B-LOC\nleft A O\n\nHe B O\nsaw B O\nYork B O\n")
    capsys.readouterr()
    assert main(["score", str(model), str(data), "--errors", "1"]) == 0
    out = capsys.readouterr().out
    assert "macro mean" in out and "errors: 2\nexample 0, 0:1, wrong class: true LOC 0:1" in out
    assert out.rstrip().endswith("[Ada] left")
    assert main(["score", str(model), str(data), "--errors", "5", "--json"]) == 0
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert errors[1]["context"] == "He saw [York]" and errors[1]["predicted"] == [2, 3, "LOC"]


def test_errors_of_rows_are_not_listed(capsys, tmp_path):
    """The option was ignored, silently."""
    data, model = tmp_path / "a.csv", tmp_path / "model"
    data.write_text("x,class\n1,a\n-1,b\n")
    assert main(["fit", str(data), "--model", str(model)]) == 0
    assert main(["score", str(model), str(data), "--errors", "1"]) == 2
    assert "--errors lists errors of sequences" in capsys.readouterr().err


def test_spans_of_both_sides():
    chunks = [[(0, 1, "A"), (1, 2, "A"), (2, 5, "B")], [(0, 1, "B")]]
    for settings in ({"suffix": True}, {"scheme": "IOBES"}, {"scheme": "IOE1"}):
        assert span_f1(chunks, [chunks[0], []], **settings)["recall"] == 0.75
    for truth, guess in ((chunks, chunks[:1]), (chunks[:1], chunks)):
        refused("y_pred has .; expected the same number", span_f1, truth, guess)
    for wrong in ([(0, 2, "B"), (1, 3, "B")], ["B-A"]):
        with pytest.raises(ValueError, match=r"y_pred\[1\]: expected spans"):
            span_f1(chunks, [chunks[0], wrong])
