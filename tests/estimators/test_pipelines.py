"""Files of pipelines: the same predictions, no pickle, and nothing that executes code."""

import contextlib
import json

import numpy as np
import pytest
from checks import refused, same
from data import chains, classes
from pipeline_cases import NAMES, NUMBERS, TARGETS, TEXTS, inner, saved
from programs import in_fork
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    MultiLabelBinarizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import LinearSVC, LinearSVR

import structsolve
from structsolve import (
    ArcFeaturizer,
    ConditionalRiskMinimizer,
    ExtremeSVM,
    Named,
    NodeTransformer,
    SequenceVectorizer,
    StructuredSVM,
    StructuredSVMCV,
    TokenFeaturizer,
)
from structsolve.estimators.pipelines import KNOWN
from structsolve.features.importances import feature_importances
from structsolve.plugins.dependency.conllu import ConlluSentence
from structsolve.utils import container

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:sklearn"),
]

DICTS = [{"word": text.split()[0], "length": len(text)} for text in TEXTS]
SENTENCES = [
    [["He", "PRP"], ["ran", "VBD"]],
    [["It", "PRP"], ["the", "DT"], ["deficit", "NN"]],
    [["Yes", "UH"]],
]
TAGS = [["B", "V"], ["B", "O", "N"], ["O"]]
HOLES = np.where(NUMBERS > 1, np.nan, NUMBERS)
OURS = StructuredSVM("multiclass", alpha=0.1)
LINEAR = (ElasticNet, Lasso, LassoCV, LinearRegression, LinearSVR, Ridge, RidgeClassifier)
WORDS = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["c", "x"]] * 2, dtype=object)

# Each class that files may hold, with settings that change its state, and what it transforms.
TRANSFORMERS = [
    (ColumnTransformer([("s", StandardScaler(), [0, 2]), ("m", "passthrough", [1])]), NUMBERS),
    (ColumnTransformer([("s", MinMaxScaler(), slice(0, 2))], remainder=RobustScaler()), NUMBERS),
    (IncrementalPCA(2), NUMBERS),
    (PCA(2, whiten=True), NUMBERS),
    (PCA(0.9, random_state=np.random.RandomState(0)), NUMBERS),
    (TruncatedSVD(2, random_state=0), NUMBERS),
    (DictVectorizer(sort=False), DICTS),
    (DictVectorizer(dtype=np.float32, sparse=False), DICTS),
    (FeatureHasher(64), DICTS),
    (CountVectorizer(ngram_range=(1, 2), stop_words=["a"], dtype=np.int32), TEXTS),
    (CountVectorizer(vocabulary={"fish": 1, "bird": 0}), TEXTS),
    (CountVectorizer(vocabulary={"fish", "bird"}), TEXTS),
    (HashingVectorizer(n_features=32, analyzer="char_wb"), TEXTS),
    (TfidfVectorizer(sublinear_tf=True, analyzer="char", ngram_range=(1, 3)), TEXTS),
    (make_pipeline(CountVectorizer(), TfidfTransformer(norm="l1")), TEXTS),
    (SelectKBest(k=2), NUMBERS),
    (SelectPercentile(chi2), np.abs(NUMBERS)),
    (VarianceThreshold(0.1), NUMBERS),
    (SimpleImputer(strategy="median", add_indicator=True), HOLES),
    (SimpleImputer(missing_values="a", strategy="most_frequent"), WORDS),
    (MissingIndicator(), HOLES),
    (Nystroem(n_components=4, random_state=0), NUMBERS),
    (RBFSampler(n_components=4, random_state=0), NUMBERS),
    (FeatureUnion([("a", StandardScaler()), ("b", PCA(1))], n_jobs=1, verbose=True), NUMBERS),
    (make_union("passthrough", FunctionTransformer(np.exp)), NUMBERS),
    (Pipeline([("none", None), ("a", make_pipeline(MaxAbsScaler()))], verbose=False), NUMBERS),
    (Binarizer(threshold=0.5), NUMBERS),
    (FunctionTransformer(), NUMBERS),
    (FunctionTransformer(np.arcsinh, kw_args={"dtype": "float32"}), NUMBERS),
    (KBinsDiscretizer(3), NUMBERS),
    (MaxAbsScaler(), sparse.csr_matrix(NUMBERS)),
    (MinMaxScaler((-1, 2), clip=True), NUMBERS),
    (Normalizer("max"), NUMBERS),
    (OneHotEncoder(handle_unknown="ignore", drop="if_binary"), WORDS),
    (OneHotEncoder(min_frequency=3, handle_unknown="infrequent_if_exist"), WORDS),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), WORDS),
    (OrdinalEncoder(categories=[["c", "b", "a"], ["x", "y"]]), WORDS),
    (PolynomialFeatures(3, interaction_only=True), NUMBERS),
    (PowerTransformer(), NUMBERS),
    (QuantileTransformer(n_quantiles=10, output_distribution="normal"), NUMBERS),
    (RobustScaler(quantile_range=(10.0, 80.0)), NUMBERS),
    (StandardScaler(with_mean=False), sparse.csr_matrix(NUMBERS)),
    (StandardScaler(), NUMBERS.astype(np.float32)),
    (GaussianRandomProjection(3, random_state=0), NUMBERS),
    (SparseRandomProjection(3, random_state=0), NUMBERS),
    (LabelEncoder(), NAMES),
    (LabelEncoder(), np.array(NAMES, dtype=object)),
    (LabelBinarizer(), [3, 1, 2, 1]),
    (MultiLabelBinarizer(), [{"a", "b"}, {"c"}, set()]),
    (SequenceVectorizer(), [[["a", "b"], ["c"]], [{"a": 2, "w": "x"}]]),
    (SequenceVectorizer(FeatureHasher(16), empty=True), [[["a", "b"], ["c"]], []]),
    (NodeTransformer(PCA(2)), [NUMBERS[:10], NUMBERS[10:]]),
    (TokenFeaturizer("columns"), SENTENCES),
    (TokenFeaturizer(window=1), SENTENCES),
    (SelectFromModel(LogisticRegression(), threshold="0.9*mean", max_features=3), NUMBERS),
    (SelectFromModel(OURS, importance_getter=feature_importances), NUMBERS),
    (RFE(OURS, n_features_to_select=2, importance_getter=feature_importances), NUMBERS),
    (RFECV(LinearSVC(random_state=0), cv=2), NUMBERS),
    *((SelectFromModel(kind()), NUMBERS) for kind in LINEAR),
]
PIPELINES = [
    (make_pipeline(StandardScaler(), StructuredSVM("multiclass")), NUMBERS, TARGETS),
    (
        make_pipeline(
            make_union(StandardScaler(), PCA(2)), StructuredSVM("multiclass", surrogate="crf")
        ),
        NUMBERS,
        TARGETS,
    ),
    (make_pipeline(TfidfVectorizer(), StructuredSVM("multiclass")), TEXTS, NAMES),
    (make_pipeline(TfidfVectorizer(), ExtremeSVM()), TEXTS, NAMES),
    (make_pipeline(DictVectorizer(), ConditionalRiskMinimizer("multiclass")), DICTS, NAMES),
    (make_pipeline(MaxAbsScaler(), StructuredSVMCV("multiclass", cv=2)), NUMBERS, TARGETS),
    (
        make_pipeline(
            TokenFeaturizer(),
            make_pipeline(SequenceVectorizer(), NodeTransformer(MaxAbsScaler())),
            StructuredSVM("chain", alpha=0.01),
        ),
        SENTENCES,
        TAGS,
    ),
    (
        make_pipeline(ArcFeaturizer(n_bits=10), StructuredSVM("dependency", alpha=0.1)),
        [ConlluSentence.of(["He", "ran", "home"], ["PRON", "VERB", "ADV"])] * 2,
        [[2, 0, 2]] * 2,
    ),
]


def plain(value):
    """Lists of arrays for `same`, from any result of a step."""
    if sparse.issparse(value):
        value.sort_indices()
        return [value.data, value.indices, value.indptr, np.array(value.shape)]
    if hasattr(value, "features"):  # arcs
        return plain(value.features)
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


@pytest.mark.parametrize(("made", "X"), TRANSFORMERS, ids=lambda one: type(one).__name__)
def test_a_transformer_does_the_same_again(made, X, tmp_path):
    made = clone(made)
    y = TARGETS if getattr(X, "shape", ())[:1] == TARGETS.shape else None
    made.fit(X) if y is None or "Label" in type(made).__name__ else made.fit(X, y)
    path = saved(made, tmp_path)
    again = structsolve.load(path)
    structsolve.save(again, tmp_path / "q.structsolve")
    assert (tmp_path / "q.structsolve").read_bytes() == path.read_bytes()
    assert type(again) is type(made) and shown(again) == shown(made.set_params(**kept(made)))
    expected = plain(made.transform(X))
    given = plain(again.transform(X))
    if isinstance(made, IncrementalPCA):  # its axes are a view: pickles round differently, too
        np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-12)
    else:
        same(given, expected)
    if hasattr(made, "get_feature_names_out"):
        with contextlib.suppress(ValueError, AttributeError):
            assert list(made.get_feature_names_out()) == list(again.get_feature_names_out())
    clone(again)


def shown(made):
    """The text of a step; the items of sets, whose order is that of hashes, are sorted in it."""
    params = made.get_params(deep=False)
    sets = {k: sorted(v) for k, v in params.items() if isinstance(v, (set, frozenset))}
    return repr(clone(made).set_params(**sets)) if sets else repr(made)


def kept(made):
    """Parameters that files do not hold, as they come back."""
    params = made.get_params(deep=False)
    own = {"n_jobs": None, "verbose": 0 if isinstance(made, RFE) else False}
    if isinstance(params.get("random_state"), np.random.RandomState):
        own["random_state"] = None
    return {k: v for k, v in own.items() if k in params}


def test_every_listed_class_has_a_case():
    seen = {type(step).__name__ for made, _ in TRANSFORMERS for step in [made, *inner(made)]}
    seen.add("make_column_selector")  # it selects columns of data frames, below
    assert seen >= {name for names in KNOWN.values() for name in names.split()}


@pytest.mark.parametrize(("made", "X", "y"), PIPELINES)
def test_a_pipeline_predicts_the_same_again(made, X, y, tmp_path):
    made = clone(made).fit(X, y)
    path = saved(made, tmp_path)
    for again in (structsolve.load(path), structsolve.load(path, mmap=True)):
        same(plain(again.predict(X)), plain(made.predict(X)))
    again = structsolve.load(path)
    assert [name for name, _ in again.steps] == [name for name, _ in made.steps]
    again.fit(X, y)  # it can be trained again


def test_a_new_process_predicts_the_same(tmp_path):
    made = make_pipeline(TfidfVectorizer(), PCA(2), StructuredSVM("multiclass")).fit(TEXTS, NAMES)
    path = saved(made, tmp_path)
    code = (
        "import json, sys, structsolve; p = structsolve.load(sys.argv[1]);"
        "print(json.dumps([p.predict(sys.argv[2:]).tolist(),"
        "p.decision_function(sys.argv[2:]).tolist()]))"
    )
    status, out, error = in_fork(code, path, *TEXTS)
    assert status == 0, error
    expected = [made.predict(TEXTS).tolist(), made.decision_function(TEXTS).tolist()]
    assert json.loads(out) == expected


class Shifter(TransformerMixin, BaseEstimator):
    """Of a package, with files of its own."""

    def fit(self, X, y=None):
        self.shift_ = np.mean(X, axis=0)
        return self

    def transform(self, X):
        return X - self.shift_

    def save(self, path):
        container.write(path, "model", {"estimator": "Shifter"}, {"shift": self.shift_})

    @classmethod
    def from_file(cls, meta, arrays, kernel):
        made = cls()
        made.shift_ = arrays["shift"]
        return made


def test_a_plugins_transformer_writes_itself(tmp_path, registered):
    made = make_pipeline(Shifter(), StructuredSVM("multiclass")).fit(NUMBERS, TARGETS)
    path = tmp_path / "p.structsolve"
    refused("step 'shifter' of .*Shifter", structsolve.save, made, path)
    registered("mine", structsolve_estimators=lambda: [Named("Shifter", Shifter, "moves rows")])
    structsolve.save(made, path)
    same(structsolve.load(path).predict(NUMBERS), made.predict(NUMBERS))
    structsolve.save(made[0], path)
    same(structsolve.load(path).shift_, made[0].shift_)


class Shifted(StructuredSVM):
    """A model with fewer parameters than its base, and one more."""

    def __init__(self, structure="multiclass", alpha=0.1, shift=1.0):
        super().__init__(structure, alpha=alpha)
        self.shift = shift


@pytest.mark.parametrize("path", ["m.structsolve", "p.structsolve"])
def test_subclasses_with_fewer_parameters_come_back(tmp_path, registered, path):
    registered("mine", structsolve_estimators=lambda: [Named("Shifted", Shifted, "a test")])
    model = Shifted(shift=2.0).fit(NUMBERS, TARGETS)
    structsolve.save(make_pipeline(model) if path[0] == "p" else model, tmp_path / path)
    loaded = structsolve.load(tmp_path / path)
    same(loaded.predict(NUMBERS), model.predict(NUMBERS))
    assert (loaded if path[0] == "m" else loaded[0]).shift == 2.0


def test_files_of_models_stay(tmp_path):
    X, Y = chains(10)
    model = StructuredSVM("chain", max_iter=3).fit(X, Y)
    model.save(tmp_path / "a")
    structsolve.save(model, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    same(structsolve.load(tmp_path / "b").predict(X), model.predict(X))


def test_scalars_types_and_memory_orders_come_back(tmp_path):
    scaler = StandardScaler().fit(NUMBERS)
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(3, 4))
    scaler.extra_ = {
        "scalars": [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("é"), np.uint64(2**63)],
        "types": [np.float32, np.str_, float, object, np.dtype("f4"), np.dtype("O")],
        "numbers": [float("nan"), float("inf"), -0.0, 2**70, None, True, "text"],
        (1, "pair"): ({1, 2}, frozenset("ab"), slice(1, None, 2), (), [], {}),
        "arrays": [whole, whole.T, whole[::2], np.array(["a", "bc"]), np.float64(2), np.array(3)],
        "dates": [np.datetime64("2020-01-02"), np.array(["2020-01-02"], "M8[D]")],
        "objects": np.array([["a", None], [1, np.array([1.0])]], dtype=object),
        "sparse": [sparse.random(4, 3, 0.5, format=f, random_state=0) for f in ("csr", "csc")],
        "sparse arrays": [sparse.csr_array(np.eye(2)), sparse.csc_array(np.eye(2))],
    }
    again = structsolve.load(saved(scaler, tmp_path)).extra_
    assert repr(again) == repr(scaler.extra_)
    for one, other in zip(again["arrays"], scaler.extra_["arrays"]):
        assert type(one) is type(other) and one.dtype == other.dtype
        assert np.isfortran(one) == np.isfortran(other)
    for name in ("sparse", "sparse arrays"):
        for one, other in zip(again[name], scaler.extra_[name]):
            assert type(one) is type(other)
            same(one.toarray(), other.toarray())


@pytest.mark.pandas
def test_columns_of_data_frames_by_their_index(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = classes(20)
    frame = pd.DataFrame(X, columns=list("abcde"))
    some = ColumnTransformer([("some", StandardScaler(), frame.columns[1:3])])
    both = make_union(some, PCA(2)).set_output(transform="pandas")
    model = make_pipeline(both, StructuredSVM("multiclass")).fit(frame, y)
    again = structsolve.load(saved(model, tmp_path))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again[0].get_feature_names_out().tolist() == both.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    "kind", [np.number, np.floating, "float64", [np.integer, float], object], ids=str
)
def test_selectors_of_columns_come_back(tmp_path, kind):
    selector = make_column_selector("^[ab]", dtype_include=kind, dtype_exclude=np.int16)
    columns = ColumnTransformer([("some", StandardScaler(), [0])]).fit(NUMBERS)
    columns.transformers = [("some", StandardScaler(), selector)]
    again = structsolve.load(saved(columns, tmp_path)).transformers[0][2]
    assert type(again) is make_column_selector and vars(again) == vars(selector)


@pytest.mark.pandas
def test_a_pipeline_with_a_selector_of_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(NUMBERS, columns=list("abcde")).assign(word=["a", "b"] * 15)
    chosen = [
        ("n", StandardScaler(), make_column_selector(dtype_include=np.number)),
        ("w", OneHotEncoder(), make_column_selector("word")),
    ]
    model = make_pipeline(ColumnTransformer(chosen), OURS).fit(frame, TARGETS)
    again = structsolve.load(saved(model, tmp_path))
    same(again.decision_function(frame), model.decision_function(frame))
    same(clone(again).fit(frame, TARGETS).predict(frame), model.predict(frame))
