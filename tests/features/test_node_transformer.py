"""NodeTransformer: row transformers on lists of sequences, against manual stacking."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from data import chains
from sklearn import config_context
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from structsolve import NodeTransformer, Sequences, StructuredSVM


@pytest.mark.parametrize("transformer", [StandardScaler(), RBFSampler(random_state=0)])
def test_it_is_the_transformer_of_stacked_rows(transformer):
    X, _ = chains(8)
    rows = np.concatenate(X)
    expected = transformer.fit(rows).transform(rows)
    made = NodeTransformer(transformer)
    for sequences in (made.fit_transform(X), made.fit(X).transform(X)):
        assert [len(x) for x in sequences] == [len(x) for x in X]
        np.testing.assert_array_equal(np.concatenate(sequences), expected)
    packed = made.transform(Sequences(rows, [len(x) for x in X]))
    np.testing.assert_array_equal(packed.features, expected)
    assert len(packed) == 8
    pairs = made.transform([(x, i) for i, x in enumerate(X)])
    assert [pair[1] for pair in pairs] == list(range(8))
    np.testing.assert_array_equal(np.concatenate([pair[0] for pair in pairs]), expected)


@pytest.mark.pandas
def test_columns_of_data_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    X, _ = chains(8)
    names = [f"f{j}" for j in range(X[0].shape[1])]
    frames = [pd.DataFrame(x, columns=names) for x in X]
    made = NodeTransformer(StandardScaler()).fit(frames)
    assert made.feature_names_in_.tolist() == made.get_feature_names_out().tolist() == names
    np.testing.assert_array_equal(made.transform(frames)[0], made.fit_transform(frames)[0])
    for turned in ([x[names[::-1]] for x in frames], [(x[names[::-1]], 0) for x in frames]):
        refused("Feature names must be in the same order", made.transform, turned)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        made.transform(X)
    assert not hasattr(made.fit(X), "feature_names_in_")


@pytest.mark.pandas
def test_a_default_of_data_frames_changes_nothing():
    pytest.importorskip("pandas")
    X, y = chains(8)
    expected = NodeTransformer(StandardScaler()).fit_transform(X)
    settings = {"alpha": 0.1, "scale_features": "std"}
    weights = StructuredSVM("chain", **settings).fit(X, y).coef_["node"]
    with config_context(transform_output="pandas"):
        for made, given in zip(NodeTransformer(StandardScaler()).fit_transform(X), expected):
            assert isinstance(made, np.ndarray) and np.array_equal(made, given)
        fitted = StructuredSVM("chain", **settings).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_["node"], weights)


def test_dense_rows_stay_dense_whatever_share_is_zero():
    X = [np.eye(3), np.array([[0.0, 0.0, 2.0]]), np.ones((2, 3))]
    made = NodeTransformer(StandardScaler()).fit(X)
    expected = StandardScaler().fit(np.concatenate(X))
    for x, together in zip(X, made.transform(X)):
        np.testing.assert_array_equal(together, expected.transform(x))
        np.testing.assert_array_equal(made.transform([x])[0], together)
    assert NodeTransformer(StandardScaler()).fit_transform(X[:2])[0].shape == (3, 3)


def test_sparse_rows_and_labels():
    X, y = chains(12)
    sequences = NodeTransformer(MaxAbsScaler()).fit_transform([sp.csr_matrix(x) for x in X])
    assert all(sp.issparse(x) for x in sequences)
    made = NodeTransformer(LinearDiscriminantAnalysis())
    rows, flat = np.concatenate(X), np.concatenate(y)
    expected = LinearDiscriminantAnalysis().fit(rows, flat).transform(rows)
    np.testing.assert_allclose(np.concatenate(made.fit(X, y).transform(X)), expected)
    assert list(made.get_feature_names_out()) == [
        "lineardiscriminantanalysis0", "lineardiscriminantanalysis1"]  # fmt: skip


def test_a_transformer_gets_labels_where_each_node_has_one():
    X, y = chains(12)
    made = NodeTransformer(SelectKBest(k=2)).fit(X, y).transformer_
    expected = SelectKBest(k=2).fit(np.concatenate(X), np.concatenate(y))
    np.testing.assert_array_equal(made.scores_, expected.scores_)
    spans = [[(0, 1, "a")], *([] for _ in X[1:])]
    for no_labels in (spans, [[], *y[1:]], [[1, [2]], *y[1:]]):
        NodeTransformer(StandardScaler()).fit_transform(X, no_labels)
        refused("requires y", NodeTransformer(SelectKBest(k=2)).fit, X, no_labels)


def test_nystroem_on_all_nodes_is_the_kernel_model():
    X, y = chains(15)
    n = sum(map(len, X))
    options = {"alpha": 0.05, "tol": 1e-9, "max_iter": 3000}
    nystroem = Nystroem(gamma=0.1, n_components=n, random_state=0)
    pipe = make_pipeline(NodeTransformer(nystroem), StructuredSVM("chain", **options)).fit(X, y)
    model = StructuredSVM("chain", kernel="rbf", kernel_params={"gamma": 0.1}, **options).fit(X, y)
    last, best = pipe[-1].history_[-1], model.history_[-1]
    assert last["primal"] == pytest.approx(best["primal"], rel=1e-6)
    search = GridSearchCV(pipe, {"nodetransformer__transformer__n_components": [2, 10]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.5


def test_masked_entries_are_refused():
    masked = np.ma.masked_equal([[0.0], [1.0]], 0)
    scaler = NodeTransformer(StandardScaler()).fit([[[0.0], [1.0]]])
    for call in (scaler.fit, scaler.fit_transform, scaler.transform):
        refused("X, example 0: found a masked array", call, [masked])
    refused("features: found a masked array", Sequences, masked, [2])
    weights = np.ma.masked_equal([0, 1], 0)
    model = StructuredSVM("multiclass")
    refused("sample_weight: found a masked array", model.fit, [[0.0], [1.0]], [0, 1], weights)


def test_what_is_no_list_of_matrices():
    refused("X is a ndarray, expected a list", NodeTransformer(StandardScaler()).fit, np.eye(3))
    with pytest.raises(ValueError, match="example 1: found 3 features, expected 2"):
        NodeTransformer(StandardScaler()).fit([np.ones((1, 2)), np.ones((1, 3))])
