"""alpha="auto": its value, its invariances, and that explicit numbers keep their meaning."""

import gc
import logging
import warnings
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from checks import memory_below
from sklearn.base import clone

import structsolve
from structsolve import ConditionalRiskMinimizer, CostMatrix, ExtremeSVM, HierarchicalSVM, LatentSVM
from structsolve import StructuredSVM as SVM
from structsolve.estimators.alpha import UNKNOWN, default_alpha, feature_square
from structsolve.estimators.collapse import collapse
from structsolve.plugins.risk.own_alpha import EXPONENTS, ROWS
from structsolve.potentials.mercer import Kernel
from structsolve.solvers import SGD
from structsolve.solvers.problem import Problem
from structsolve.structure.pack import pack


def rows(n=60, d=4, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    return rng.normal(size=(K, d))[y] + rng.normal(size=(n, d)), y


def by_hand(X, y, loss=1.0, doubt=None):
    """||g||^2 / (R n) (13 / s)^2 of flat classes: at w = 0 the first wrong class is the worst."""
    n, K = len(y), y.max() + 1
    g = np.zeros((n, X.shape[1], K))
    for one, x, own in zip(g, X, y):
        one[:, own] += x
        one[:, 0 if own else 1] -= x
    square = (g.mean(axis=0) ** 2).sum()
    chance = ((g**2).sum(axis=(1, 2)).mean() - square) / n
    if doubt is None:
        square = max(square, chance)
        doubt = np.clip((13 * chance / square) ** 2, 0.2, 30)
    return square / (loss * n) * doubt


def test_it_is_the_formula():
    X, y = rows()
    assert SVM("multiclass").fit(X, y).alpha_ == pytest.approx(by_hand(X, y))
    costly = SVM("multiclass", loss=CostMatrix(5 * (1 - np.eye(3)))).fit(X, y)
    assert costly.alpha_ == pytest.approx(by_hand(X, y, 5.0))


def test_what_features_tell_decides_how_strong_it_is():
    # The same spread of features, with less and less label information in it.
    X, y = rows(90)
    noise = np.random.default_rng(1).normal(size=X.shape)
    for share in (1.0, 0.5, 0.2, 0.0):
        mixed = share * X + (1 - share) * noise
        assert SVM("multiclass").fit(mixed, y).alpha_ == pytest.approx(by_hand(mixed, y))
    # Too few examples show nothing of it.
    few = SVM("multiclass").fit(noise[:9], y[:9]).alpha_
    assert few == pytest.approx(by_hand(noise[:9], y[:9], doubt=1))


@pytest.mark.parametrize("scale", [1e-3, 7.0, 1e4])
def test_scales_of_features_and_losses_do_not_matter(scale):
    X, y = rows()
    settings = {"fit_intercept": False, "tol": 1e-7, "max_iter": 2000}
    plain = SVM("multiclass", **settings).fit(X, y)
    large = SVM("multiclass", **settings).fit(scale * X, y)
    assert large.alpha_ == pytest.approx(scale**2 * plain.alpha_)
    assert (large.predict(scale * X) == plain.predict(X)).all()
    loss = CostMatrix(scale * (1 - np.eye(3)))
    costly = SVM("multiclass", loss=loss, **settings).fit(X, y)
    assert costly.alpha_ == pytest.approx(plain.alpha_ / scale)
    assert (costly.predict(X) == plain.predict(X)).all()


def test_slack_is_steep_where_losses_are_large(recwarn):
    # 100 labels: at w = 0 the worst set turns all of them, with a slope of 100.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    Y = (X @ rng.normal(size=(20, 100)) + 3 * rng.normal(size=(300, 100)) > 10).astype(int)
    settings = {"tol": 0.05, "max_iter": 20}
    slack = SVM("multilabel", surrogate="slack", **settings).fit(X, Y)
    margin = SVM("multilabel", loss="hamming", **settings).fit(X, Y)
    assert slack.alpha_ == pytest.approx(100 * margin.alpha_)
    assert 0.2 * Y.sum() < slack.predict(X).sum() < 2 * Y.sum()
    assert not [one for one in recwarn if one.category is RuntimeWarning]


@pytest.mark.parametrize("n", [9, 10, 399, 400, 401, 1600])
@pytest.mark.parametrize("weight", [None, 2.0])
def test_more_than_400_label_sets_count_as_fewer(n, weight):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4))
    Y = (X[:, :3] + 3 * rng.normal(size=(n, 3)) > 0).astype(int)
    # Margins at w = 0: every label is wrong, its hinge is 1.
    g = X[:, :, None] * (2 * Y - 1)[:, None]
    square = (g.mean(axis=0) ** 2).sum()
    count = n * (weight or 1.0)
    size = count if count <= 400 else np.sqrt(400 * count)
    some = g[np.linspace(0, n - 1, min(n, 100)).astype(int)]
    chance = ((some**2).sum(axis=(1, 2)).mean() - square) / size if count >= 10 else square / 13
    square = max(square, chance)
    expected = square / (3 * size) * np.clip((13 * chance / square) ** 2, 0.2, 30)
    structure = structsolve.get_structure("multilabel", edges="none")
    space, examples = structure.make_space(X, Y)
    examples.sample_weight = None if weight is None else np.full(n, weight)
    assert default_alpha(Problem(space, examples)) == pytest.approx(expected)


@pytest.mark.parametrize("lengths", [[1] * 12, [4] * 12, [1, 2, 3, 30] * 3, [16] * 5])
def test_nodes_of_a_chain_count_as_fewer(lengths):
    rng, weights = np.random.default_rng(0), np.arange(1.0, len(lengths) + 1)
    Y = [rng.integers(0, 3, length) for length in lengths]
    X = [np.eye(3)[y] + rng.normal(size=(len(y), 3)) for y in Y]
    trees = [(x, np.arange(-1, len(x) - 1)) for x in X]
    for given in (None, weights):
        mean = np.average(lengths, weights=given)
        for surrogate, factor in (("margin", mean**0.75), ("crf", mean**0.75), ("slack", 1)):
            # Trees that are chains, of which the rule counts all nodes.
            alphas = []
            for structure, examples in (("chain", X), ("tree", trees)):
                settings = {"start_end": False} if structure == "chain" else {"root": False}
                made = structsolve.get_structure(structure, **settings)
                space, packed = made.make_space(examples, Y)
                packed.sample_weight = given
                alphas.append(default_alpha(Problem(space, packed, surrogate=surrogate)))
            assert alphas[0] == pytest.approx(factor * alphas[1])


@pytest.mark.parametrize("name", ["multiclass", "chain", "tree", "mrf", "multilabel"])
def test_random_fields_take_the_constant_of_margins(name):
    structure = structsolve.get_structure(name)
    space, packed = structure.make_space(*structure.sample(0, n=30))
    crf = Problem(space, packed, surrogate="crf")
    before = crf.surrogate
    assert default_alpha(crf) == default_alpha(Problem(space, packed))
    assert crf.surrogate is before and crf.surrogate_name == "crf"


def test_problems_under_another_surrogate_share_their_arrays():
    X, y = rows()
    crf = Problem(*structsolve.get_structure("multiclass").make_space(X, y), surrogate="crf")
    crf.weights = crf.weights * 0.5  # as of a shard
    margin = crf.under("margin", "zero-one")
    assert margin.potentials is crf.potentials and margin.weights is crf.weights
    assert margin.surrogate_name == "margin" and margin.surrogate is not crf.surrogate
    assert margin.loss.zero_one and margin.given_loss == "zero-one"
    with pytest.raises(ValueError, match="nothing"):
        crf.under("nothing", "hamming")


@pytest.mark.parametrize("loss", ["auto", "hamming", CostMatrix(100 * (1 - np.eye(3)))])
def test_losses_do_not_change_the_constant_of_random_fields(loss):
    X, y = rows()
    model = SVM("multiclass", surrogate="crf", loss=loss).fit(X, y)
    assert model.alpha_ == SVM("multiclass").fit(X, y).alpha_ == pytest.approx(by_hand(X, y))


def test_marginals_as_labels_have_a_constant_of_their_own():
    X, y = rows()
    soft = np.eye(3)[y] * 0.8 + 0.1 / 1.5
    model = SVM("multiclass", surrogate="crf").fit(X, soft)
    assert 0 < model.alpha_ < SVM("multiclass", surrogate="crf").fit(X, y).alpha_


def test_weights_count_as_rows_do():
    X, y = rows()
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    weighed = SVM("multiclass").fit(X, y, sample_weight=counts)
    repeated = SVM("multiclass").fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighed.alpha_ == pytest.approx(repeated.alpha_)
    chains = SVM("chain").fit([X[:20], X[20:]], [y[:20], y[20:]])
    twice = SVM("chain").fit([X[:20], X[20:]] * 2, [y[:20], y[20:]] * 2)
    assert twice.alpha_ == pytest.approx(chains.alpha_ / 2)


def test_a_kernel_measures_in_its_own_space():
    X, y = rows()
    plain = SVM("multiclass").fit(X, y)
    assert SVM("multiclass", kernel="linear").fit(X, y).alpha_ == pytest.approx(plain.alpha_)
    assert 0 < SVM("multiclass", kernel="rbf").fit(X, y).alpha_ < 1


@pytest.mark.parametrize("kernel", [None, "linear"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_square_of_the_feature_part_leaves_the_gradient_as_it_is(kernel, intercept):
    X, y = rows()
    chain = structsolve.get_structure("chain")
    space, examples = chain.make_space([X[:20], X[20:]], [y[:20], y[20:]], None, intercept)
    problem = Problem(space, examples, kernel=kernel and Kernel(kernel, None))
    g = np.random.default_rng(0).normal(size=problem.dim)
    layout, before, part = space.layout, g.copy(), g.copy()
    square = feature_square(problem, g)
    assert np.array_equal(g, before)
    if kernel is None:
        part[: layout.shared_size] = 0
        if intercept:
            layout.node_block(part)[-1] = 0
        assert square == float(part @ part)
        g[:] = 0
        layout.view(g, "transition")[:] = 2.0
        assert feature_square(problem, g) == float(g @ g)


def test_it_holds_few_vectors_as_long_as_the_weights():
    rng, n = np.random.default_rng(0), 40
    X = sp.random(n, 200_000, 1e-4, "csr", random_state=rng)
    space, examples = structsolve.get_structure("multiclass").make_space(X, np.arange(n) % 4)
    problem = Problem(space, examples)
    default_alpha(problem)
    # The weights 0, the partial sum of a cut, and the cut.
    with memory_below(3.2 * 8 * problem.dim):
        default_alpha(problem)


def test_the_run_is_gone_before_the_model_is_made(monkeypatch):
    runs, finish = [], SVM._finish

    def drive(self, run, *rest):
        runs.append(weakref.ref(run))
        return own(self, run, *rest)

    def finished(self, *rest, **more):
        gc.collect()
        runs.append(runs[-1]() is None)
        return finish(self, *rest, **more)

    own = SVM._drive
    monkeypatch.setattr(SVM, "_drive", drive)
    monkeypatch.setattr(SVM, "_finish", finished)
    X, y = rows()
    for settings in ({}, {"surrogate": "crf"}, {"solver": "admm"}):
        SVM("multiclass", **settings).fit(X, y)
        assert runs.pop() is True
    SVM("multiclass", warm_start=True).fit(X, y)
    assert runs.pop() is False


def test_threads_and_other_ways_give_the_same():
    X, y = rows(400, 6, 4)
    one = SVM("multiclass").fit(X, y)
    assert SVM("multiclass", n_jobs=3).fit(X, y).alpha_ == one.alpha_
    assert SVM("multiclass", solver="cutting-plane").fit(X, y).alpha_ == one.alpha_
    assert SVM("multiclass", solver="sgd").fit(X, y).alpha_ == one.alpha_


def test_classes_that_cancel_get_what_chance_would_leave():
    X = np.array([[1.0, 1], [-1, -1], [1, -1], [-1, 1]] * 25)
    y = np.array([0, 0, 1, 1] * 25)
    model = SVM("multiclass", fit_intercept=False).fit(X, y)
    # Every example's own subgradient has the square 4, R is 1, n is 100, and s is 1.
    assert model.alpha_ == pytest.approx(30 * 4 / 100**2)
    assert SVM("multiclass", fit_intercept=False).fit(0 * X, y).alpha_ == UNKNOWN


def test_numbers_mean_what_they_meant(caplog):
    X, y = rows()
    model = SVM("multiclass", alpha=0.01, verbose=0)
    with caplog.at_level(logging.INFO, logger="structsolve"):
        assert model.fit(X, y).alpha_ == 0.01
        assert not [line for line in caplog.messages if "alpha" in line and "auto" in line]
        auto = SVM("multiclass").fit(X, y)
    told = [line for line in caplog.messages if "alpha" in line and "auto" in line]
    assert len(told) == 1 and f"{auto.alpha_:.3g}" in told[0]
    assert auto.get_params()["alpha"] == clone(auto).alpha == "auto"
    same = SVM("multiclass", alpha=auto.alpha_).fit(X, y)
    assert np.array_equal(same.flat_weights(), auto.flat_weights())
    path = SVM("multiclass").path(X, y, [0.1, 0.01])
    assert [one.alpha_ for one in path] == [0.1, 0.01]
    for wrong in ("best", 0, -1.0, np.nan, None):
        with pytest.raises(ValueError, match="alpha is .*'auto'"):
            SVM("multiclass", alpha=wrong).fit(X, y)


@pytest.mark.parametrize("kind", [ConditionalRiskMinimizer, ExtremeSVM])
def test_other_estimators_tell_theirs_too(kind, caplog):
    X, y = rows()
    with caplog.at_level(logging.INFO, logger="structsolve"):
        kind(alpha=0.01).fit(X, y)
        assert "auto" not in caplog.text
        model = kind().fit(X, y)
    used = model.settings_["alpha"] if kind is ExtremeSVM else model.alpha_
    told = [line for line in caplog.messages if "alpha='auto'" in line]
    assert len(told) == 1 and f"{used:.3g}" in told[0] and kind.__name__ in told[0]


def test_batches_do_not_tell_how_many_there_are():
    X, y = rows()
    model = SVM("multiclass", solver="sgd").partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    model.partial_fit(X[30:], y[30:])
    given = SVM("multiclass", solver="sgd", alpha=UNKNOWN)
    given.partial_fit(X[:30], y[:30], classes=[0, 1, 2]).partial_fit(X[30:], y[30:])
    assert model.alpha_ == UNKNOWN
    assert np.array_equal(model.flat_weights(), given.flat_weights())


def test_files_keep_it(tmp_path, monkeypatch):
    X, y = rows()
    model = SVM("multiclass").fit(X, y)
    model.save(tmp_path / "new")
    loaded = structsolve.load(tmp_path / "new")
    assert loaded.alpha == "auto" and loaded.alpha_ == model.alpha_
    old = SVM("multiclass", alpha=1e-3).fit(X, y)
    del old.alpha_  # as of a version that knew numbers alone
    old.save(tmp_path / "old")
    assert structsolve.load(tmp_path / "old").alpha_ == 1e-3


def test_training_goes_on_from_a_checkpoint(tmp_path):
    X, y = rows()
    whole = SVM("multiclass", tol=1e-6).fit(X, y)
    stop = [lambda record: record["pass"] == 3]
    SVM("multiclass", tol=1e-6, callbacks=stop, checkpoint=tmp_path / "c").fit(X, y)
    rest = SVM("multiclass", tol=1e-6, checkpoint=tmp_path / "c").fit(X, y)
    assert np.array_equal(rest.flat_weights(), whole.flat_weights())


def test_kin():
    X, y = rows()
    tree = {"root": ["a", "b"], "a": [], "b": ["c", "d"], "c": [], "d": []}
    leaves = np.array(["a", "c", "d"])[y]
    for settings in ({}, {"normalization": "learned"}):
        model = HierarchicalSVM(tree, **settings).fit(X, leaves)
        number = HierarchicalSVM(tree, alpha=model.alpha_, **settings).fit(X, leaves)
        assert model.alpha_ != UNKNOWN
        assert np.array_equal(model.flat_weights(), number.flat_weights())
    assert HierarchicalSVM(tree, sparse=True).fit(X, leaves).alpha_ == UNKNOWN
    latent = LatentSVM("multiclass", n_hidden=2).fit(X, y)
    number = LatentSVM("multiclass", n_hidden=2, alpha=latent.alpha_).fit(X, y)
    assert np.array_equal(latent.flat_weights(), number.flat_weights())


def test_shards_together_give_what_one_problem_gives():
    pytest.importorskip("dask")
    from structsolve.dask.engine import LocalEngine
    from structsolve.dask.estimator import _alpha_of
    from structsolve.dask.problem import RemoteProblem
    from structsolve.dask.shard import RemoteShard

    X, y = rows()
    counts = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    structure = structsolve.get_structure("multiclass")
    space, _ = structure.make_space(X, y)
    shards = []
    for k, some in enumerate((slice(0, 25), slice(25, None))):
        part = pack(space, X[some], y[some], counts[some])
        total, own = counts.sum(), counts[some].sum()
        shards.append(RemoteShard(Problem(space, part), k, total, own, seed=0))
    engine = LocalEngine(shards)
    problem = RemoteProblem(engine, space, engine.ask("facts").each)
    assert _alpha_of(problem, 1) == pytest.approx(
        default_alpha(Problem(space, pack(space, X, y, counts)))
    )


# -- models that say nothing -----------------------------------------------------------------------


def test_labels_that_are_rare_do_not_raise_it():
    # Intercepts describe how often labels occur; the information of features decides.
    X, y = rows(100)
    rare = np.concatenate([np.full(90, 0), y[90:]])
    with_it, without = SVM("multiclass"), SVM("multiclass", fit_intercept=False)
    assert with_it.fit(X, rare).alpha_ == pytest.approx(without.fit(X, rare).alpha_)


@pytest.mark.parametrize(
    ("structure", "alpha", "message"),
    [
        ("multiclass", 1e6, "predicts 0 alone for 100"),
        ("multilabel", 1e3, "predicts 0 labels a row"),
    ],
)
def test_models_that_have_collapsed_warn(structure, alpha, message):
    X, y = rows(200)
    y = (X[:, 0] > np.quantile(X[:, 0], 0.8)).astype(int)
    X, Y = 0.01 * X, y if structure == "multiclass" else np.column_stack([y, y[::-1]])
    with pytest.warns(RuntimeWarning, match=f"{message}.* 'margin' may bound the loss badly"):
        SVM(structure, alpha=alpha).fit(X, Y)
    never_convex = {"surrogate": "probloss:0", "solver": "sgd", "loss": "hamming"}
    with pytest.warns(RuntimeWarning, match="'probloss' may have led to a poor local optimum"):
        SVM(structure, alpha=alpha, **never_convex).fit(X, Y)


def test_steps_of_sgd_are_named_where_they_are_too_large():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 50))
    y = (X @ rng.normal(size=(50, 8)) > 0).astype(int)
    few = {"surrogate": "probloss", "alpha": 1e-5, "max_iter": 2}
    with pytest.warns(RuntimeWarning, match=r"predicts 0 labels.*SGD\(t0=1e5\)"):
        SVM("multilabel", solver="sgd", **few).fit(X, y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        SVM("multilabel", solver=SGD(t0=1e5), **few).fit(X, y)
    assert not [one for one in told if one.category is RuntimeWarning]


def test_five_times_as_many_labels_are_told():
    X, y = rows(200)
    Y = np.zeros((200, 12), dtype=int)
    Y[np.arange(200), y] = 1
    model = SVM("multilabel").fit(X, Y)
    problem, w = Problem(model.space_, pack(model.space_, X, Y)), model.flat_weights()
    assert collapse(problem, w) == ""
    model.space_.layout.node_block(w)[-1, :] += 1e3  # intercepts
    assert collapse(problem, w).startswith("predicts 12 labels a row for 100 training")


def test_models_that_have_learned_do_not(recwarn):
    X, y = rows(200)
    SVM("multiclass").fit(X, y)
    SVM("chain").fit([X[i : i + 5] for i in range(0, 200, 5)], y.reshape(40, 5).tolist())
    SVM("multilabel").fit(X, np.column_stack([y == 0, y == 1]).astype(int))
    SVM("multiclass").path(X, y, [1e9, 1e-2])  # which begins with models of nothing
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]


# -- conditional risk ------------------------------------------------------------------------------


def test_rows_left_out_choose_for_conditional_risk():
    X, y = rows(40)
    X = X / 3
    model = ConditionalRiskMinimizer().fit(X, y)
    unit = float(model._smoother.values.sum()) / len(y)
    alphas = (unit * 10.0**EXPONENTS).tolist()
    assert model.alpha_ in alphas
    same = ConditionalRiskMinimizer(alphas=alphas).fit(X, y)
    assert same.alpha_ == model.alpha_
    assert model.get_params()["alpha"] == clone(model).alpha == "auto"
    assert ConditionalRiskMinimizer(alpha=0.3).fit(X, y).alpha_ == 0.3
    with pytest.raises(ValueError, match="alpha"):
        ConditionalRiskMinimizer(alpha="best").fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", None])
def test_some_rows_left_out_are_rows_of_all(kernel):
    X, y = rows(30)
    smoother = ConditionalRiskMinimizer(kernel=kernel).fit(X, y)._smoother
    some = np.array([7, 3, 29])
    assert np.allclose(smoother.left_out(0.1, some), smoother.left_out(0.1)[some], atol=1e-12)


def test_many_rows_are_chosen_from():
    X, y = rows(ROWS + 200)
    model = ConditionalRiskMinimizer().fit(X, y)
    best = max(one.score(X, y) for one in ConditionalRiskMinimizer().path(X, y, [1e-1, 1e-3]))
    assert model.score(X, y) > best - 0.1


def test_label_sets_are_not_left_empty():
    # With one label in twenty, predicting none has the smallest Hamming loss at strong penalties.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    Y = (X @ rng.normal(size=(10, 20)) > 5.5).astype(int)
    assert Y.mean() < 0.1
    strong = ConditionalRiskMinimizer("multilabel", alpha=1e-1).fit(X, Y)
    assert strong.predict(X).sum() < 0.1 * Y.sum()
    assert ConditionalRiskMinimizer("multilabel").fit(X, Y).predict(X).sum() > 0.5 * Y.sum()
