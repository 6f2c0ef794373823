# SequenceVectorizer and the chunking features.

import pickle
from fractions import Fraction

import numpy as np
import pytest
from checks import refused
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

from structsolve.features.vectorizer import SequenceVectorizer
from structsolve.utils.sparse import split_rows

DICTS = [
    [{"word": "Vienna", "len": 6, "first": True}, {"word": "waits", "len": 5.5}],
    [{"word": "Vienna", "len": 0}],
]


def stack(blocks):
    return np.vstack([b.toarray() if sparse.issparse(b) else b for b in blocks])


names = st.sampled_from(["a", "b", "c=x", "word", "é"])
values = st.one_of(
    st.floats(-9, 9), st.integers(-9, 9), st.booleans(), st.sampled_from(["x", "yy"])
)
items = st.dictionaries(names, values, max_size=4)


@given(st.lists(st.lists(items, min_size=1, max_size=4), min_size=1, max_size=5))
def test_same_as_dict_vectorizer(X):
    flat = [item for sequence in X for item in sequence]
    reference = DictVectorizer()
    ours = SequenceVectorizer()
    if not any(flat):
        return
    expected = reference.fit_transform(flat).toarray()
    blocks = ours.fit_transform(X)
    np.testing.assert_allclose(stack(blocks), expected, rtol=1e-12)
    assert [b.shape[0] for b in blocks] == [len(sequence) for sequence in X]
    assert ours.get_feature_names_out().tolist() == reference.get_feature_names_out().tolist()
    np.testing.assert_allclose(stack(ours.transform(X)), expected, rtol=1e-12)
    again = SequenceVectorizer.from_feature_names(ours.get_feature_names_out())
    np.testing.assert_allclose(stack(again.transform(X)), expected, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"alternate_sign": False}, {"input_type": "pair"}])
def test_same_as_feature_hasher(options):
    flat = [item for sequence in DICTS for item in sequence]
    hasher = FeatureHasher(16, **options)
    pairs = "input_type" in options
    expected = hasher.transform([list(d.items()) for d in flat] if pairs else flat).toarray()
    ours = SequenceVectorizer(hasher)
    np.testing.assert_allclose(stack(ours.fit_transform(DICTS)), expected)
    with pytest.raises(AttributeError, match="FeatureHasher keeps no feature names"):
        ours.get_feature_names_out()


def test_hashing_strings():
    X = [[["a", "b", "a"], ["c"]], [[]]]
    expected = FeatureHasher(8, input_type="string").transform(X[0] + X[1]).toarray()
    for kind in ("string", "dict"):
        rows = SequenceVectorizer(FeatureHasher(8, input_type=kind)).fit_transform(X)
        np.testing.assert_allclose(stack(rows), expected)


def test_strings_repeat_mix_with_dicts_and_stream():
    X = [[["a", "b", "a"], ("b",)], [{"a": 2.0}], [iter(["c"])]]
    vectorizer = SequenceVectorizer()
    rows = stack(vectorizer.fit_transform(iter(X)))
    assert rows.tolist() == [[2, 1, 0], [0, 1, 0], [2, 0, 0], [0, 0, 1]]
    unseen = vectorizer.transform([[["z", "c"]], [["z"]], [[]]])
    assert stack(unseen).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


def flat_features(name, value):
    """The docstring's table, written down once more."""
    if isinstance(value, str):
        return {f"{name}={value}": 1.0}
    if isinstance(value, dict):
        pairs = [flat_features(f"{name}:{key}", inner) for key, inner in value.items()]
    elif isinstance(value, (list, tuple, np.ndarray)) and not isinstance(value[0], str):
        pairs = [flat_features(f"{name}[{j}]", inner) for j, inner in enumerate(value)]
    elif isinstance(value, (list, tuple, set)):
        pairs = [flat_features(name, inner) for inner in value]
    else:
        return {name: float(value)}
    return {key: number for pair in pairs for key, number in pair.items()}


numbers = st.one_of(st.floats(-9, 9), st.integers(-9, 9), st.booleans())
many = st.one_of(
    st.lists(numbers, min_size=1, max_size=3),
    st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=3, unique=True),
    st.sets(st.sampled_from(["x", "y"]), min_size=1),
    st.lists(st.floats(-9, 9), min_size=1, max_size=3).map(np.array),
)
nested = st.recursive(
    st.one_of(values, many), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=6
)


@given(st.lists(st.dictionaries(names, nested, max_size=3), min_size=1, max_size=4))
def test_nested_values(sequence):
    expected = []
    for item in sequence:
        row = {}
        for name, value in item.items():
            for key, number in flat_features(name, value).items():
                row[key] = row.get(key, 0.0) + number
        expected.append(row)
    reference = DictVectorizer()
    wanted = reference.fit_transform(expected).toarray()
    ours = SequenceVectorizer()
    np.testing.assert_allclose(stack(ours.fit_transform([sequence])), wanted, atol=1e-12)
    assert ours.get_feature_names_out().tolist() == reference.get_feature_names_out().tolist()
    np.testing.assert_allclose(stack(ours.transform([sequence])), wanted, atol=1e-12)


def test_many_features_and_equal_names():
    # Beyond several growths of the table; a name that is also a name with a text.
    X = [[[f"f{k % 30011}", f"g={k % 7}"], {"g": str(k % 11), "n": k % 3}] for k in range(40000)]
    flat = [item if isinstance(item, dict) else dict.fromkeys(item, 1) for s in X for item in s]
    reference = DictVectorizer()
    expected = reference.fit_transform(flat)
    ours = SequenceVectorizer()
    rows = sparse.vstack(ours.fit_transform(X))
    assert abs(rows - expected).max() == 0
    assert ours.get_feature_names_out().tolist() == reference.get_feature_names_out().tolist()
    unsorted = SequenceVectorizer(DictVectorizer(sort=False))
    rows = sparse.vstack(unsorted.fit_transform(X[:9]))
    expected = (reference := DictVectorizer(sort=False)).fit_transform(flat[:18])
    order = [unsorted.vectorizer_.vocabulary_[name] for name in reference.feature_names_]
    assert abs(rows[:, order] - expected).max() == 0


@pytest.mark.parametrize("size", [0, 1, 5, 31, 32, 33, 64, 65, 100])
def test_dicts_of_every_kind_of_value_beyond_the_steps_of_reading(size):
    rng = np.random.default_rng(size)
    kinds = [True, 1, -3, 2**62, 2**70, 1.5, "text", np.float32(2), Fraction(1, 2), ["u", "v"]]
    for _ in range(30):
        X = [
            [{f"f{k}": kinds[rng.integers(len(kinds))] for k in rng.permutation(size)}]
            for _ in range(4)
        ]
        flat = [
            {**d, **{k: float(v) for k, v in d.items() if isinstance(v, Fraction)}}
            for d in (s[0] for s in X)
        ]
        expected = (reference := DictVectorizer()).fit_transform(flat).toarray()
        ours = SequenceVectorizer()
        np.testing.assert_array_equal(stack(ours.fit_transform(X)), expected)
        assert ours.get_feature_names_out().tolist() == reference.get_feature_names_out().tolist()


def test_a_dict_that_its_own_values_change():
    class Clears(Fraction):
        def __float__(self):
            item.clear()
            return 2.0

    item = {"a": 1.0, "b": Clears(1), "c": "text", **{f"d{k}": k for k in range(40)}}
    refused(
        r"X\[0\]\[0\]: the dict changed", SequenceVectorizer().fit, [[item]], error=RuntimeError
    )
    item = {"a": 1.0, "b": Clears(1), "c": "text"}
    rows = SequenceVectorizer().fit_transform([[item]])
    assert rows[0].toarray().tolist() == [[1.0, 2.0, 1.0]]


def test_no_features_at_all():
    assert SequenceVectorizer().fit_transform([[[]], [{}]])[0].shape == (1, 0)
    for kind in ("dict", "pair", "string"):
        hasher = FeatureHasher(8, input_type=kind)
        assert SequenceVectorizer(hasher).fit_transform([[[]]])[0].nnz == 0


def test_whole_items_are_given_as_they_are():
    class Keeps(Upper):
        def transform(self, X):
            self.items_ = X
            return np.zeros((len(X), 1))

    vectorizer = SequenceVectorizer(Keeps())
    vectorizer.fit_transform([[{"a": "x", "b": None}], [["p", "p", ("q", 2)], iter(["r"])]])
    assert vectorizer.vectorizer_.items_ == [{"a": "x", "b": None}, {"p": 2, "q": 2}, {"r": 1}]


def test_lists_of_strings_as_values():
    X = [[{"tags": ["x", "y"], "n": 2}, {"tags": ["y"]}]]
    expected = DictVectorizer().fit_transform(X[0]).toarray()
    np.testing.assert_allclose(stack(SequenceVectorizer().fit_transform(X)), expected)


def test_vectorisers_that_must_see_whole_items():
    inner = make_pipeline(DictVectorizer(), TfidfTransformer())
    flat = [item for sequence in DICTS for item in sequence]
    expected = clone(inner).fit_transform(flat).toarray()
    ours = SequenceVectorizer(inner)
    np.testing.assert_allclose(stack(ours.fit_transform(DICTS)), expected)
    np.testing.assert_allclose(stack(ours.transform(DICTS)), expected)
    assert len(ours.get_feature_names_out()) == expected.shape[1]


def test_dtype_and_dense_output():
    blocks = SequenceVectorizer(DictVectorizer(dtype=np.float32)).fit_transform(DICTS)
    assert blocks[0].dtype == np.float32
    dense = SequenceVectorizer(DictVectorizer(sparse=False)).fit_transform(DICTS)
    assert all(isinstance(block, np.ndarray) for block in dense)


def test_scikit_learn_manners():
    vectorizer = SequenceVectorizer(FeatureHasher(32))
    copy = clone(vectorizer)
    assert copy.get_params()["vectorizer__n_features"] == 32
    copy.set_params(vectorizer__n_features=64)
    assert copy.fit_transform(DICTS)[0].shape == (2, 64)
    assert vectorizer.vectorizer.n_features == 32
    assert "FeatureHasher" in repr(copy)
    with pytest.raises(NotFittedError):
        SequenceVectorizer().transform(DICTS)
    inner = DictVectorizer()
    SequenceVectorizer(inner).fit(DICTS)
    assert not hasattr(inner, "vocabulary_")


class Widths(BaseEstimator):
    """Replaces an estimator of sequences: counts columns."""

    def fit(self, X, y=None):
        self.width_ = X[0].shape[1]
        return self

    def predict(self, X):
        return [x.shape for x in X]


def test_in_a_pipeline():
    pipeline = make_pipeline(SequenceVectorizer(), Widths()).fit(DICTS, [[0, 1], [0]])
    assert pipeline.predict(DICTS) == [(2, 4), (1, 4)]
    assert clone(pipeline).fit(DICTS).predict([[["len"]]]) == [(1, 4)]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([], ValueError, "X: found no sequences"),
        ("abc", TypeError, r"X: found 'abc' \(str\); expected a list of sequences"),
        ({"a": 1}, TypeError, "X: found .* expected a list of sequences"),
        (3, TypeError, r"X: found 3 \(int\)"),
        ([[["a"]], []], ValueError, r"X\[1\]: found an empty sequence"),
        ([{"a": 1}], TypeError, r"X\[0\]: found .*\(dict\); expected a sequence"),
        ([["a", "b"]], TypeError, r"X\[0\]\[0\]: found 'a' \(str\); expected a dict or a list"),
        ([[["a"], 3]], TypeError, r"X\[0\]\[1\]: found 3 \(int\)"),
        ([[["a"]], [["b"], ["c", 3]]], ValueError, r"X\[1\]\[1\]: found the feature 3 \(int\)"),
        ([[["a"]], [{3: 1}]], ValueError, r"X\[1\]\[0\]: found the feature \(3, 1\)"),
        ([[["a", ["b"]]]], ValueError, r"X\[0\]\[0\]: found the feature \['b'\] \(list\)"),
        ([[{"a": [["b"]]}]], ValueError, r"X\[0\]\[0\]: found the feature \('a', \[\['b'\]\]\)"),
        (
            [[{"a": None}]],
            ValueError,
            r"\('a', None\).*; expected .* a name \(string\) with a number",
        ),
        (
            [[{"a": bytearray(b"x")}]],
            ValueError,
            r"X\[0\]\[0\]: found the feature \('a', bytearray",
        ),
        ([[{"a": 1j}]], ValueError, r"X\[0\]\[0\]: found the feature \('a', 1j\)"),
        ([[{"a": 10**400}]], ValueError, r"X\[0\]\[0\]: found the feature \('a', 1000"),
        ([[{"a": {1, 2}}]], ValueError, r"X\[0\]\[0\]: found the feature \('a', \{1, 2\}\)"),
        ([[{"a": ["b", 2]}]], ValueError, r"X\[0\]\[0\]: found the feature \('a', \['b', 2\]\)"),
        ([[{"a": {"b": None}}]], ValueError, r"found the feature \('a', \{'b': None\}\)"),
        ([[{"a": {3: "b"}}]], ValueError, r"found the feature \('a', \{3: 'b'\}\)"),
        ([[{"a": np.eye(2)}]], ValueError, r"X\[0\]\[0\]: found the feature \('a', array"),
    ],
)
def test_faults(X, error, message):
    with pytest.raises(error, match=message):
        SequenceVectorizer().fit(X)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, np.asarray])
def test_split_rows(kind):
    dense = np.arange(12.0).reshape(4, 3) % 5
    matrix = kind(dense)
    blocks = split_rows(matrix, [0, 1, 1, 4])
    assert [b.shape for b in blocks] == [(1, 3), (0, 3), (3, 3)]
    assert type(blocks[0]) is type(matrix)
    np.testing.assert_array_equal(stack(blocks), dense)
    if sparse.issparse(matrix):
        for block in blocks:
            block.check_format(full_check=True)
        assert np.shares_memory(blocks[2].data, matrix.data)
        assert (blocks[2] @ np.ones(3)).tolist() == dense[1:].sum(axis=1).tolist()
        blocks[0].data[:] = 7  # a view, but the shapes and the counts are the block's own
        assert blocks[2].nnz == np.count_nonzero(dense[1:])


class Upper(TransformerMixin, BaseEstimator):
    """A user's vectoriser: the number of features, and of capitals in their names."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.array([[len(d), sum(c.isupper() for c in "".join(d))] for d in X], float)


def test_any_transformer_of_dicts():
    assert stack(SequenceVectorizer(Upper()).fit_transform([[["aB", "C"]], [[]]])).tolist() == [
        [2, 2],
        [0, 0],
    ]


def random_item(rng):
    """Return a random item: strings, some repeated and some unknown, or a dict of values."""
    # Items of more than 64 features are sorted by SciPy.
    names = [f"w{k}" for k in rng.integers(0, 40, rng.choice([0, 1, 5, 30, 64, 65, 200]))]
    if rng.random() < 0.5:
        return names
    values = [1, 0, -2.5, True, "text", ["p", "q", "p"], [0.5, 2.0], {"a": 3, "b": "c"}]
    return {name: values[rng.integers(len(values))] for name in names}


@pytest.mark.parametrize(
    "options", [{}, {"dtype": np.float32, "separator": ":"}, {"sparse": False}]
)
def test_few_sequences_are_as_those_of_many(options):
    rng = np.random.default_rng(0)
    X = [[random_item(rng) for _ in range(rng.integers(1, 6))] for _ in range(200)]
    vectorizer = SequenceVectorizer(DictVectorizer(**options)).fit(X[:100])
    whole = vectorizer.transform(X)
    for few in (1, 8, 9):
        for i in range(0, len(X) - few, few):
            for expected, matrix in zip(whole[i : i + few], vectorizer.transform(X[i : i + few])):
                assert type(matrix) is type(expected) and matrix.dtype == expected.dtype
                if options.get("sparse") is False:
                    assert np.array_equal(matrix, expected)
                    continue
                assert matrix.shape == expected.shape and matrix.has_canonical_format
                arrays = matrix.data, matrix.indices, matrix.indptr
                for array, other in zip(arrays, (expected.data, expected.indices, expected.indptr)):
                    assert np.array_equal(array, other)
                # Claims made without a check are true.
                assert sparse.csr_matrix(arrays, matrix.shape).has_canonical_format


@pytest.mark.parametrize("separator", ["=", "", "é€", "𝄞"])
def test_names_of_any_characters_are_those_of_dict_vectorizer(separator):
    # Names and texts of all widths of characters, with the separator inside, joined in many ways.
    rng = np.random.default_rng(0)
    letters = ["\0", "a", "b", "=", "é", "€", "𝄞", "0123456789" * 3]

    def word():
        return "".join(letters[k] for k in rng.integers(len(letters), size=rng.integers(4)))

    items = [{word(): word() if rng.random() < 0.7 else 1 for _ in range(6)} for _ in range(400)]
    theirs = DictVectorizer(separator=separator)
    expected = theirs.fit_transform(items[:200]).toarray()
    ours = SequenceVectorizer(DictVectorizer(separator=separator))
    assert np.array_equal(stack(ours.fit_transform([items[:200]])), expected)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert np.array_equal(stack(ours.transform([items])), theirs.transform(items).toarray())
    joined = [[theirs.feature_names_[j] for j in np.flatnonzero(row)] for row in expected]
    assert np.array_equal(stack(ours.transform([joined])), expected > 0)


def test_columns_follow_a_changed_vocabulary():
    vectorizer = SequenceVectorizer().fit([[["a", "b", "c"]]])
    assert stack(vectorizer.transform([[["a", "c"]]])).tolist() == [[1, 0, 1]]
    vectorizer.vectorizer_.restrict([1, 2], indices=True)
    assert stack(vectorizer.transform([[["a", "c"]]])).tolist() == [[0, 1]]
    vectorizer.vectorizer_.vocabulary_["d"] = 2
    assert stack(vectorizer.transform([[["c", "d"]]])).tolist() == [[0, 1, 1]]
    assert stack(vectorizer.fit([[["d", "e"]]]).transform([[["e"]]])).tolist() == [[0, 1]]
    copied = pickle.loads(pickle.dumps(vectorizer))
    assert "_columns" not in vars(copied)
    assert stack(copied.transform([[["e"]]])).tolist() == [[0, 1]]


@given(st.lists(st.lists(items, min_size=1, max_size=4), min_size=1, max_size=5), st.integers(1, 6))
def test_rare_features_are_left_out(X, least):
    whole = SequenceVectorizer().fit(X)
    names = whole.get_feature_names_out().tolist()
    own = [DictVectorizer().fit([item]).vocabulary_ for x in X for item in x if item]
    kept = [name for name in names if sum(name in item for item in own) >= least]
    vectorizer = SequenceVectorizer(min_freq=least)
    if names and not kept:
        refused(f"min_freq is {least}, but no feature occurs more often", vectorizer.fit, X)
        return
    blocks = vectorizer.fit_transform(X)
    assert vectorizer.get_feature_names_out().tolist() == kept
    expected = SequenceVectorizer.from_feature_names(kept).transform(X)
    np.testing.assert_array_equal(stack(blocks), stack(expected))
    np.testing.assert_array_equal(stack(vectorizer.transform(X)), stack(expected))
    again = SequenceVectorizer(DictVectorizer(sort=False), min_freq=least).fit(X)
    assert sorted(again.get_feature_names_out()) == kept


def test_strings_and_refusals_of_min_freq():
    X = [[["a", "b", "a"]], [["b", "c"]]]
    assert SequenceVectorizer(min_freq=2).fit(X).get_feature_names_out().tolist() == ["a", "b"]
    for least in (0, 1.5, None):
        wrong = SequenceVectorizer(min_freq=least)
        refused(f"min_freq is {least!r}, expected an integer of at least 1", wrong.fit, X)
    hashed = SequenceVectorizer(FeatureHasher(8, input_type="string"), min_freq=2)
    refused("min_freq is 2, expected 1 with a FeatureHasher", hashed.fit, X)


@given(st.lists(st.lists(items, min_size=1, max_size=4), min_size=1, max_size=5))
def test_bytes_are_text_in_utf_8(X):
    def encoded(value):
        return value.encode() if isinstance(value, str) else value

    bytes_ = [[{encoded(n): encoded(v) for n, v in item.items()} for item in x] for x in X]
    if not any(item for x in X for item in x):
        return
    ours, theirs = SequenceVectorizer(), SequenceVectorizer()
    np.testing.assert_array_equal(stack(ours.fit_transform(bytes_)), stack(theirs.fit_transform(X)))
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


def test_bytes_in_lists_pairs_and_nested_dicts():
    X = [[[b"a", "a", (b"n", 2.0)], {"t": [b"x", "y"], "d": {b"e": b"f"}}]]
    texts = [[["a", "a", ("n", 2.0)], {"t": ["x", "y"], "d": {"e": "f"}}]]
    for make in (SequenceVectorizer, lambda: SequenceVectorizer(DictVectorizer(sort=False))):
        ours, theirs = make(), make()
        np.testing.assert_array_equal(
            stack(ours.fit_transform(X)), stack(theirs.fit_transform(texts))
        )
        assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()

    class Whole(DictVectorizer):
        pass

    plain = [[[b"a", "a"], ["b"]]]
    assert stack(SequenceVectorizer(Whole()).fit_transform(plain)).tolist() == [[2, 0], [0, 1]]
    for wrong in ([b"\xff"], {b"\xff": 1.0}, {"a": b"\xff"}, {"a": {b"\xff": 1}}):
        refused(r"X\[0\]\[0\]: found b'\\xff' \(bytes\), expected UTF-8", ours.fit, [[wrong]])
    refused(r"X: found b'ab' \(bytes\); expected a list", ours.fit, b"ab", error=TypeError)
    refused(r"X\[0\]: found b'ab' \(bytes\)", ours.fit, [b"ab"], error=TypeError)
    refused(r"X\[0\]\[0\]: found b'ab' \(bytes\)", ours.fit, [[b"ab"]], error=TypeError)


def test_iterators_are_read_once():
    X = [[["a"], ["b"]], [["a"]]]
    once = (iter([iter(item) for item in x]) for x in X)
    vectorizer = SequenceVectorizer()
    expected = vectorizer.fit_transform(X)
    np.testing.assert_array_equal(stack(vectorizer.fit_transform(once)), stack(expected))
    for kind in (None, FeatureHasher(4, input_type="string"), DictVectorizer(sort=False)):
        again = SequenceVectorizer(kind)
        refused(
            "found no sequences.*an iterator can be read only once: pass a list", again.fit, once
        )
        refused(r"X\[0\]: found an empty sequence.*only once", again.fit, [iter([])])
