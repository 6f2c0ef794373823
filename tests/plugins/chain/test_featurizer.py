"""Features of tokens: shapes of words, the template, and tokens that are none."""
# SequenceVectorizer and the chunking features.

import pytest
from checks import refused
from data import data_file, needs_data
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

from structsolve import TokenFeaturizer
from structsolve.features.vectorizer import SequenceVectorizer
from structsolve.plugins.chain.token_features import conll_features, word_features, word_shape


def test_words():
    assert word_shape("U.S.") == "X.X."
    assert word_shape("ÄÖé-1999") == "XXx-dd"
    assert word_features("a-1") == (
        *("lower=a-1", "shape=x-d", "pre1=a", "suf1=1", "pre2=a-", "suf2=-1"),
        *("pre3=a-1", "suf3=a-1", "digit", "hyphen"),
    )


def test_template_by_hand():
    first, second = conll_features([["Oslo", "NNP", "x"], ["calls", "VBZ", "y"]], window=2)
    assert "bias" in first
    for feature in (
        *("w[-2]=__BOS__", "w[0]=Oslo", "w[1]=calls", "w[2]=__EOS__", "w[-1..0]=__BOS__|Oslo"),
        *("p[0]=NNP", "p[-2..-1]=__BOS__|__BOS__", "p[0..1]=NNP|VBZ", "p[0..2]=NNP|VBZ|__EOS__"),
        *("c2[0]=x", "c2[1]=y", "c2[0..1]=x|y", "title", "shape=Xxx", "suf4=Oslo"),
    ):
        assert feature in first
    assert "w[-1]=Oslo" in second
    assert "p[-2..0]=__BOS__|NNP|VBZ" in second
    assert len(set(first)) == len(first)


def test_template_edges():
    assert "only" in conll_features([["Yes"]])[0]
    alone = conll_features([["Yes", "UH"]], window=0)[0]
    assert [f for f in alone if f[:2] in ("w[", "p[")] == ["w[0]=Yes", "p[0]=UH"]
    for bad in ([], [["a"], []]):
        refused("sentence: found no tokens, or one without columns", conll_features, bad)


@needs_data
def test_conll2000_features():
    from structsolve.plugins.chain.conll import read_conll

    X, _ = read_conll(data_file("seq-conll2000", "test.txt.gz"))
    items = [conll_features(sentence) for sentence in X[:200]]
    blocks = SequenceVectorizer().fit_transform(items)
    flat = [dict.fromkeys(item, 1.0) for sentence in items for item in sentence]
    expected = DictVectorizer().fit_transform(flat)
    assert (sparse.vstack(blocks) != expected).nnz == 0


@pytest.mark.parametrize("features", ["template", "columns", "attrs"])
def test_tokens_that_are_no_strings(features):
    made = TokenFeaturizer(features).fit([[["a", "b"]]])
    for cell in (None, 3, b"a"):
        refused(rf"X\[1\], token 0: found {cell!r}", made.transform, [[["a", "b"]], [["a", cell]]])
    for no_sentences in (iter([["a"]]), None, [None], [3]):
        refused("X: expected sentences", made.fit, no_sentences)
    if features == "template":
        refused(r"X\[1\]: found no tokens", made.transform, [[["a", "b"]], []])


@pytest.mark.pandas
def test_data_frames_are_no_sentences():
    """Their items are the names of columns."""
    pandas = pytest.importorskip("pandas")
    names = pandas.MultiIndex.from_tuples([("a", "x"), ("b", "y")])
    for frame in (pandas.DataFrame([["a", "b"]]), pandas.DataFrame([["a", "b"]], columns=names)):
        for X in (frame, [frame], [[["a", "b"]], frame]):
            refused("X: found a data frame, expected sentences", TokenFeaturizer().fit, X)
        refused("X: found a data frame", TokenFeaturizer().fit([[["a", "b"]]]).transform, [frame])
        with pytest.raises(TypeError, match=r"of a data frame, its to_dict\('records'\)"):
            SequenceVectorizer().fit([frame])
        with pytest.raises(TypeError, match="expected a list of sequences"):
            SequenceVectorizer().fit(frame)
