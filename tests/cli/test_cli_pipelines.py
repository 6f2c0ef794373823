"""Pipelines in the shell: raw CoNLL columns and tables through their steps."""

import numpy as np
import pytest
from shell import fails, works
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

import structsolve
from structsolve import (
    ArcFeaturizer,
    ConditionalRiskMinimizer,
    ExtremeSVM,
    NodeTransformer,
    SequenceVectorizer,
    StructuredSVM,
    TokenFeaturizer,
)
from structsolve.cli.main import main
from structsolve.plugins.chain.conll import read_conll
from structsolve.plugins.chain.crfsuite import read_crfsuite
from structsolve.plugins.dependency.conllu import read_conllu

TAGGED = "He PRP B\nran VBD V\n\nIt PRP B\nthe DT O\ndeficit NN N\n"
PLAIN = "He PRP\nran VBD\n\nIt PRP\nthe DT\ndeficit NN\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tagged.conll").write_text(TAGGED)
    (tmp_path / "plain.conll").write_text(PLAIN)
    return tmp_path


def saved(made, X, y):
    made.fit(X, y)
    structsolve.save(made, "p.structsolve")
    return made


@pytest.mark.parametrize("features", ["template", "columns"])
def test_sentences_of_token_columns(folder, capsys, features):
    saved(
        make_pipeline(
            make_pipeline(TokenFeaturizer(features), SequenceVectorizer()),
            "passthrough",
            NodeTransformer(MaxAbsScaler()),
            StructuredSVM("chain", alpha=0.01, surrogate="crf"),
        ),
        *read_conll("tagged.conll"),
    )
    expected = TAGGED
    assert works(capsys, "predict", "p.structsolve", "plain.conll", "--columns") == expected
    assert "=PRP -> B" in works(capsys, "info", "p.structsolve")
    first = works(capsys, "predict", "p.structsolve", "plain.conll")
    assert first == "B\nV\n\nB\nO\nN\n"
    assert first == works(capsys, "predict", "p.structsolve", "tagged.conll")
    assert works(capsys, "predict", "p.structsolve", "plain.conll", "--rows", "1:") == "B\nO\nN\n"
    marginals = works(capsys, "predict", "p.structsolve", "plain.conll", "--marginals")
    assert marginals.startswith("B\tB:0.")
    assert works(capsys, "predict", "p.structsolve", "plain.conll", "--kbest", "2").count("@") == 4
    assert "accuracy 1.0000 of 5" in works(capsys, "score", "p.structsolve", "tagged.conll")
    fails(capsys, "score", "p.structsolve", "plain.conll", match="found no labels")
    (folder / "wide.conll").write_text("a b c d\n")
    line = fails(capsys, "predict", "p.structsolve", "wide.conll")
    assert "found 4 columns; expected 2 as in training, or 3" in line
    (folder / "table.csv").write_text("a,b\n1,2\n")
    line = fails(capsys, "predict", "p.structsolve", "table.csv")
    assert "table.csv: step TokenFeaturizer: X[0]" in line


def test_sentences_for_steps_that_take_others(folder, capsys):
    saved(
        make_pipeline(DictVectorizer(), StructuredSVM("multiclass")), [{"a": 1}, {"b": 1}], [0, 1]
    )
    fails(capsys, "predict", "p.structsolve", "plain.conll", match="conll: step DictVectorizer")


@pytest.fixture
def numbers():
    X = np.random.default_rng(0).normal(size=(20, 2))
    return X, np.where(X[:, 0] > 0, "up", "down")


def test_tables_of_numbers(folder, capsys, numbers):
    X, y = numbers
    made = saved(
        make_pipeline(SimpleImputer(), StandardScaler(), StructuredSVM("multiclass")), X, y
    )
    expected = "".join(f"{label}\n" for label in made.predict(X))
    rows = [f"{a!r},{b!r}" for a, b in X.tolist()]
    (folder / "bare.csv").write_text("\n".join(rows))
    (folder / "named.csv").write_text("u,v\n" + "\n".join(rows))
    labelled = "\n".join(f"{row},{label}" for row, label in zip(rows, y))
    (folder / "labelled.csv").write_text("u,v,class\n" + labelled)
    (folder / "last.csv").write_text(labelled)
    np.savez("rows.npz", X=X)
    for name in ("bare.csv", "named.csv", "labelled.csv", "last.csv", "rows.npz"):
        assert works(capsys, "predict", "p.structsolve", name) == expected
    score = f"accuracy {made.score(X, y):.4f} of 20"
    for name in ("labelled.csv", "last.csv"):
        assert score in works(capsys, "score", "p.structsolve", name)
    (folder / "holes.csv").write_text("u,v\n?,1\n2,\n")
    predicted = made.predict([[np.nan, 1], [2, np.nan]])
    expected = "".join(f"{label}\n" for label in predicted)
    assert works(capsys, "predict", "p.structsolve", "holes.csv") == expected
    (folder / "wide.csv").write_text("1,2,3,4\n")
    fails(capsys, "predict", "p.structsolve", "wide.csv", match="found 3 columns.*expected 2")
    (folder / "words.csv").write_text("1,a\n2,b\n")
    fails(capsys, "predict", "p.structsolve", "words.csv", match=r"words\.csv: step SimpleImputer")


def test_tables_of_words(folder, capsys):
    X = np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object)
    made = make_pipeline(OneHotEncoder(), TruncatedSVD(2), StructuredSVM("multiclass"))
    saved(made, X, [0, 1, 0])
    (folder / "words.csv").write_text("a,x\nb,y\na,y\n")
    assert works(capsys, "predict", "p.structsolve", "words.csv") == "0\n1\n0\n"
    (folder / "words.csv").write_text("u,v\na,x\n")
    assert (
        works(capsys, "predict", "p.structsolve", "words.csv", "--option", "header=true") == "0\n"
    )


CODES = np.array(
    [["08", "3", 1.5], ["11", "", 0.5], ["08", "4", 0.0], ["11", "3", 1.0]], dtype=object
)
ENCODED = (
    (OneHotEncoder(handle_unknown="ignore"), [0, 1]),
    (make_pipeline("passthrough", OneHotEncoder(handle_unknown="ignore")), slice(0, 2)),
)


@pytest.mark.parametrize(("encoder", "places"), ENCODED)
def test_words_that_look_like_numbers(folder, capsys, encoder, places):
    steps = make_column_transformer((encoder, places), (StandardScaler(), [2]), ("drop", []))
    model = StructuredSVM("multiclass", alpha=0.01)
    made = saved(make_pipeline(steps, model), CODES, [*"abcd"])
    (folder / "codes.csv").write_text("".join(f"{a},{b},{c}\n" for a, b, c in CODES))
    assert made.predict(CODES).tolist() == [*"abcd"]
    assert works(capsys, "predict", "p.structsolve", "codes.csv") == "a\nb\nc\nd\n"


def test_missing_words_are_what_training_took_for_them(folder, capsys):
    (folder / "words.csv").write_text("8,x\nNA,y\n?,x\n")
    for imputer, missing in (
        (SimpleImputer(strategy="most_frequent"), np.nan),
        (SimpleImputer(strategy="most_frequent", missing_values="?"), "NA"),
    ):
        X = np.array([["8", "x"], [missing, "y"], ["8", "y"], ["8", "x"]], dtype=object)
        made = saved(
            make_pipeline(
                imputer, OneHotEncoder(), TruncatedSVD(2), StructuredSVM("multiclass", alpha=0.01)
            ),
            X,
            [0, 1, 1, 0],
        )
        expected = "".join(f"{label}\n" for label in made.predict(X[[0, 1, 0]]))
        assert works(capsys, "predict", "p.structsolve", "words.csv") == expected
    X = np.array([["8"], [None], ["NA"]], dtype=object)
    saved(make_pipeline(OneHotEncoder(), StructuredSVM("multiclass", alpha=0.01)), X, [0, 1, 2])
    (folder / "words.csv").write_text("8\n?\nNA\n")
    option = "--option", "delimiter=,"
    assert works(capsys, "predict", "p.structsolve", "words.csv", *option) == "0\n1\n2\n"


def test_named_words_and_truths_as_written(folder, capsys):
    rows = [{"k": "1", "on": True}, {"k": "2", "on": False}, {"k": "1", "on": False}]
    saved(make_pipeline(DictVectorizer(), StructuredSVM("multiclass", alpha=0.01)), rows, [*"abc"])
    (folder / "named.csv").write_text("k,on\n1,True\n2,False\n1,False\n")
    assert works(capsys, "predict", "p.structsolve", "named.csv") == "a\nb\nc\n"


def test_texts_that_look_like_numbers(folder, capsys):
    texts = CountVectorizer(token_pattern=r"[^ ]+")
    made = make_pipeline(texts, StructuredSVM("multiclass", alpha=0.01))
    saved(made, ["12", "12.0", "?"], [0, 1, 2])
    (folder / "texts.csv").write_text("12\n12.0\n?\n")
    option = "--option", "delimiter=,"
    assert works(capsys, "predict", "p.structsolve", "texts.csv", *option) == "0\n1\n2\n"


@pytest.mark.parametrize(
    "first", [TfidfVectorizer(), make_union(CountVectorizer(), CountVectorizer(analyzer="char"))]
)
def test_tables_of_texts(folder, capsys, first):
    saved(
        make_pipeline(first, StructuredSVM("multiclass")),
        ["red fish", "blue, bird", "bird", "fish"],
        ["f", "b", "b", "f"],
    )
    (folder / "texts.csv").write_text('text,class\n"a blue, bird",b\nfish,f\n')
    assert works(capsys, "predict", "p.structsolve", "texts.csv") == "b\nf\n"
    assert "1.0000 of 2" in works(capsys, "score", "p.structsolve", "texts.csv")
    (folder / "texts.csv").write_text("text\nfish\n")
    option = "--option", "delimiter=,", "--option", "header=true"
    assert works(capsys, "predict", "p.structsolve", "texts.csv", *option) == "f\n"
    (folder / "texts.csv").write_text('"a blue, bird"\nfish\n')
    assert works(capsys, "predict", "p.structsolve", "texts.csv", "--option", "delimiter=,") == (
        "b\nf\n"
    )


@pytest.mark.parametrize("first", [DictVectorizer(), FeatureHasher(64)])
def test_tables_of_named_columns(folder, capsys, first):
    rows = [{"legs": 2.0, "colour": "red"}, {"legs": 4.0, "colour": "grey"}]
    saved(make_pipeline(first, StructuredSVM("multiclass")), rows, ["bird", "cat"])
    (folder / "named.csv").write_text("class,colour,legs\nbird,red,2\ncat,grey,4\ncat,grey,4\n")
    assert works(capsys, "predict", "p.structsolve", "named.csv") == "bird\ncat\ncat\n"
    assert "1.0000 of 3" in works(capsys, "score", "p.structsolve", "named.csv")
    (folder / "named.csv").write_text("legs,colour\n2,red\n")
    assert works(capsys, "predict", "p.structsolve", "named.csv") == "bird\n"


@pytest.mark.pandas
def test_tables_of_numbers_with_pandas(folder, capsys):
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"u": [0.0, 1.0, 2.0], "v": [3.0, 0.0, 1.0], "w": [1.0, 1.0, 0.0]})
    steps = make_column_transformer((StandardScaler(), ["v", "w"]), ("passthrough", ["u"]))
    made = saved(make_pipeline(steps, StructuredSVM("multiclass", alpha=0.01)), rows, [*"aba"])
    rows[["w", "u", "v"]].assign(label=[*"aba"]).to_csv("t.csv", index=False)
    answer = "\n".join(made.predict(rows)) + "\n"
    assert works(capsys, "predict", "p.structsolve", "t.csv") == answer


@pytest.mark.pandas
def test_tables_with_pandas(folder, capsys):
    pd = pytest.importorskip("pandas")
    from sklearn.compose import ColumnTransformer

    frame = pd.DataFrame({"legs": [2, 4, 4], "colour": ["red", "grey", "grey"]})
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["legs"]), ("w", OneHotEncoder(), ["colour"])]
    )
    saved(make_pipeline(columns, StructuredSVM("multiclass")), frame, ["bird", "cat", "cat"])
    (folder / "a.csv").write_text("class,colour,legs\nbird,red,2\ncat,grey,4\n")
    assert works(capsys, "predict", "p.structsolve", "a.csv") == "bird\ncat\n"


def test_sequences_of_rows(folder, capsys, numbers):
    X, y = numbers
    chains, labels = [X[:8], X[8:]], [y[:8], y[8:]]
    made = saved(
        make_pipeline(NodeTransformer(StandardScaler()), StructuredSVM("chain")), chains, labels
    )
    lines = [f"{i // 8 if i < 16 else 1},{a!r},{b!r}" for i, (a, b) in enumerate(X.tolist())]
    (folder / "chains.csv").write_text("s,u,v\n" + "\n".join(lines))
    expected = "\n".join("".join(f"{one}\n" for one in row) for row in made.predict(chains))
    given = works(capsys, "predict", "p.structsolve", "chains.csv", "--option", "group=s")
    assert given == expected


def test_sequences_of_named_features(folder, capsys):
    (folder / "a.crfsuite").write_text("B\tw=a\tlen:2\nI\tw=b\n\nB\tw=a\n")
    X, y = read_crfsuite("a.crfsuite")
    saved(make_pipeline(SequenceVectorizer(), StructuredSVM("chain", alpha=0.01)), X, y)
    assert works(capsys, "predict", "p.structsolve", "a.crfsuite") == "B\nI\n\nB\n"


@pytest.mark.parametrize("vectorizer", [None, FeatureHasher(64)])
def test_sequences_of_named_columns(folder, capsys, vectorizer):
    X = [[{"w": "1", "n": 1.0}, {"w": "2", "n": 2.0}], [{"w": "2", "n": 0.0}]]
    if vectorizer is not None:
        X = [[{**token, "w": "v" + token["w"]} for token in x] for x in X]
    made = make_pipeline(SequenceVectorizer(vectorizer), StructuredSVM("chain", alpha=0.001))
    saved(made, X, [[*"AB"], ["C"]])
    rows = [f"{s},{t['n']},{t['w']},{t['n']}\n" for s, x in enumerate(X) for t in x]
    (folder / "t.csv").write_text("s,n,w,class\n" + "".join(rows))
    given = works(capsys, "predict", "p.structsolve", "t.csv", "--option", "group=s")
    assert given == "A\nB\n\nC\n"


def test_rows_for_conditional_risk(folder, capsys, numbers):
    X, y = numbers
    made = saved(make_pipeline(StandardScaler(), ConditionalRiskMinimizer("multiclass")), X, y)
    (folder / "a.csv").write_text("".join(f"{a!r},{b!r}\n" for a, b in X.tolist()))
    expected = "".join(f"{label}\n" for label in made.predict(X))
    assert works(capsys, "predict", "p.structsolve", "a.csv") == expected


def test_sentences_with_trees(folder, capsys):
    text = "".join(
        f"{i}\t{word}\t_\t{tag}\t_\t_\t{head}\t_\t_\t_\n"
        for i, (word, tag, head) in enumerate(
            [("He", "PRON", 2), ("ran", "VERB", 0), ("home", "ADV", 2)], 1
        )
    )
    (folder / "a.conllu").write_text(text + "\n")
    sentences, heads = read_conllu("a.conllu")
    saved(
        make_pipeline(ArcFeaturizer(n_bits=10), StructuredSVM("dependency", alpha=0.01)),
        sentences,
        heads,
    )
    again = works(capsys, "predict", "p.structsolve", "a.conllu", "--format", "conllu")
    assert again.split() == text.split()


def test_what_the_shell_does_not_run(folder, capsys, numbers):
    saved(make_pipeline(StandardScaler(), ExtremeSVM()), *numbers)
    fails(capsys, "predict", "p.structsolve", "a.csv", match="ends in an ExtremeSVM.*from Python")
    saved(make_pipeline(StandardScaler()), *numbers)
    fails(capsys, "predict", "p.structsolve", "a.csv", match="that ends in no model")


def test_info_of_pipelines(folder, capsys):
    X, y = [{"legs": 2.0, "wings": 1.0}, {"legs": 4.0}] * 5, ["bird", "cat"] * 5
    model = saved(make_pipeline(DictVectorizer(), StructuredSVM("multiclass", alpha=0.01)), X, y)
    assert "wings -> bird" in works(capsys, "info", "p.structsolve")
    model = make_pipeline(FeatureHasher(4), StructuredSVM("multiclass", alpha=0.01))
    saved(model, X, y)
    assert main(["info", "p.structsolve"]) == 0
    out, err = capsys.readouterr()
    assert "node: feature -> class" in out
    assert "features have numbers" in err and "pipeline[-1].info(feature_names=...)" in err
