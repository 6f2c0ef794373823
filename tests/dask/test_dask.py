"""DaskStructuredSVM on a local cluster: neither workers nor killed workers change any bit."""

import multiprocessing
import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from programs import fuzzed
from solver_cases import word_data

from structsolve import SequenceVectorizer, StructuredSVM, get_structure
from structsolve.solvers import CuttingPlane

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
import dask.bag as db  # noqa: E402
from distributed.utils import get_mp_context  # noqa: E402

from structsolve.dask import (  # noqa: E402
    ConsensusADMM,
    DaskStructuredSVM,
    cluster,
    data,
    estimator,
    fit_vectorizer,
    plugins,
)
from structsolve.dask.consensus import ShardedConsensusRun  # noqa: E402
from structsolve.dask.engine import LocalEngine  # noqa: E402
from structsolve.dask.problem import RemoteProblem  # noqa: E402
from structsolve.solvers.driver import drive  # noqa: E402
from structsolve.solvers.run import Start  # noqa: E402


@pytest.fixture(scope="module")
def client():
    # A busy machine restarts workers slowly; other workers are not given up for that.
    waits = ("deploy.lost-worker-timeout", "comm.timeouts.connect", "comm.timeouts.tcp")
    patient = {f"distributed.{name}": "20 minutes" for name in (*waits, "scheduler.worker-ttl")}
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    # Each start of a worker is a fork, where that is known, which has what takes seconds to import.
    if "forkserver" in multiprocessing.get_all_start_methods():
        patient["distributed.worker.multiprocessing-method"] = "forkserver"
        with dask.config.set(patient):
            context = get_mp_context()
        context.set_forkserver_preload(["distributed", "sklearn.feature_extraction"])
    with (
        dask.config.set(patient),
        distributed.LocalCluster(n_workers=3, memory_limit=0, **options) as processes,
        distributed.Client(processes) as one,
    ):
        yield one


def chains(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 6), 4)) for _ in range(n)]
    Y = [np.array(["a", "b", "c"])[np.argmax(x[:, :3] + 0.5 * x[:, 1:], axis=1)] for x in X]
    return X, Y


def words():
    X, Y = word_data("chain", 60)
    return X, [np.array(["a", "b", "c"])[y] for y in Y]


def lazily(values, pieces=6):
    bounds = np.linspace(0, data.size_of(values), pieces + 1).astype(int)
    return [dask.delayed(values[a:b], traverse=False) for a, b in zip(bounds, bounds[1:])]


def plane(n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, np.argmax(X[:, :3], axis=1)


def svm(**settings):
    return DaskStructuredSVM("chain", **{"alpha": 0.01, "n_shards": 5, **settings})


def test_it_agrees_with_one_machine(client):
    X, Y = chains()
    model = svm(alpha=0.1).fit(lazily(X), lazily(Y))
    one = StructuredSVM("chain", alpha=0.1, tol=1e-4).fit(X, Y)
    assert model.stop_reason_ == "converged" and model.solver_.name == "admm"
    last, best = model.history_[-1], one.history_[-1]
    assert best["dual"] * (1 - 1e-9) <= last["primal"] <= best["primal"] * (1 + 0.0101)
    assert last["dual"] <= best["primal"] * (1 + 1e-9)
    assert model.classes_.tolist() == ["a", "b", "c"]
    local = model.to_local()
    assert type(local) is StructuredSVM and local.history_ == model.history_
    expected = local.predict(X)
    predicted = [y for part in dask.compute(*model.predict(lazily(X))) for y in part]
    assert all(np.array_equal(a, b) for a, b in zip(predicted, expected))
    score = model.score(lazily(X), lazily(Y))
    assert hasattr(score, "compute")
    assert score.compute() == pytest.approx(local.score(X, Y), abs=1e-12)


class Killer:
    """A callback that stops a worker, before some rounds and in the middle of others.

    Which one that is in the middle of a round depends on who is the first to end its part of it.
    """

    def __init__(self, client, before, within, folder):
        self.client, self.before, self.within = client, before, within
        self.folder, self.killed = folder, []

    def __call__(self, record):
        number = record["pass"]
        if number not in (*self.before, *self.within):
            return
        self.client.wait_for_workers(3)  # one that died before is there again
        if number in self.before:
            pids = self.client.run(os.getpid)
            os.kill(pids[sorted(pids)[number % len(pids)]], signal.SIGKILL)
            (self.folder / f"{number}").touch()
        else:
            self.client.run(dies_in_its_next_round(str(self.folder / f"{number}")))
        self.killed.append(number)


def dies_in_its_next_round(path):
    """Return the function for workers to run; the first to create the file at this path dies."""

    def arm():
        import os
        import signal

        from structsolve.dask.shard import RemoteShard

        step = RemoteShard.step

        def last(self, order):
            answer = step(self, order)
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return answer
            os.kill(os.getpid(), signal.SIGKILL)

        RemoteShard.step = last

    return arm


def in_process(X, Y, n_shards, rounds, alpha=0.01, pieces=6, metric="auto"):
    """Return the same training without a cluster."""
    bounds = np.linspace(0, len(X), pieces + 1).astype(int)
    parts = [(X[a:b], Y[a:b], None) for a, b in zip(bounds, bounds[1:])]
    settings = {"structure": "chain", "fit_intercept": True, "plugins": []}
    raw = [
        data.assemble(k, [parts[p] for p, _, _ in own], [piece[1:] for piece in own])
        for k, own in enumerate(data.plan(pieces, n_shards))
    ]
    facts = [data.learn(own, k, settings) for k, own in enumerate(raw)]
    classes, space = data.union(facts), facts[0]["space"]
    if classes is not None:
        space = data.widen(raw[0], classes, settings)
    made = {"space": space, "plugins": [], "loss": "hamming", "surrogate": "margin"}
    made |= {"penalize_intercept": True, "oracle": None, "gram": True, "seed": 0}
    totals = [(float(len(X)), fact["weight"]) for fact in facts]
    engine = LocalEngine([data.build(own, k, totals[k], made) for k, own in enumerate(raw)])
    problem = RemoteProblem(engine, space, engine.ask("facts").each)
    start = Start(problem, alpha, np.random.default_rng(0), 1, None, 0.0)
    run = ShardedConsensusRun(ConsensusADMM(metric=metric), start)
    return drive(run, rounds, 0.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "make, n_shards, rounds, before, within, checkpoint, metric",
    [
        (chains, 5, 8, (1, 5), (3,), False, "auto"),
        (chains, 5, 5, (2,), (), True, "spectral"),
        (chains, 5, 5, (1,), (3,), False, "spectral"),
        (chains, 35, 3, (), (), False, "auto"),
        (words, 5, 7, (1, 5), (3,), False, "auto"),
        (words, 5, 5, (2,), (), True, "auto"),
    ],
)
def test_neither_workers_nor_their_death_change_a_bit(
    client, make, n_shards, rounds, before, within, checkpoint, metric, tmp_path
):
    X, Y = make()
    expected = in_process(X, Y, n_shards, rounds, metric=metric)
    folder = tmp_path / "killed"
    folder.mkdir()
    killer = Killer(client, before, within, folder)
    path = tmp_path / "run" if checkpoint else None
    model = svm(client=client, n_shards=n_shards, max_iter=rounds, tol=0.0, checkpoint=path)
    solver = "admm" if metric == "auto" else ConsensusADMM(metric=metric)
    model.set_params(callbacks=[killer], solver=solver).fit(lazily(X), lazily(Y))
    assert sorted(killer.killed) == sorted((*before, *within))
    assert sorted(os.listdir(folder)) == [f"{number}" for number in sorted(killer.killed)]
    assert np.array_equal(model.to_local().flat_weights(), expected.w)
    for name in ("primal", "dual", "oracle_calls"):
        assert [r[name] for r in model.history_] == [r[name] for r in expected.history]
    client.wait_for_workers(3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_checkpoint_continues_to_the_last_bit(client, tmp_path):
    X, Y = (lazily(values) for values in chains())
    settings = {"client": client, "tol": 0.0}
    expected = in_process(*chains(), 5, 6)
    path = tmp_path / "run"
    svm(max_iter=3, checkpoint=path, **settings).fit(X, Y)
    rest = svm(max_iter=6, checkpoint=path, **settings).fit(X, Y)
    assert np.array_equal(rest.to_local().flat_weights(), expected.w)
    with pytest.raises(ValueError, match="checkpoint"):
        svm(max_iter=6, alpha=0.02, checkpoint=path, **settings).fit(X, Y)


def test_bags_of_pairs_and_the_union_of_classes(client):
    X, Y = chains()
    order = np.argsort([y[0] for y in Y], kind="stable")  # the first shards lack classes
    Y = [np.array(["a"] * len(Y[i])) if k < 12 else Y[i] for k, i in enumerate(order)]
    X = [X[i] for i in order]
    pairs = db.from_sequence(list(zip(X, Y)), npartitions=6)
    model = svm(client=client, tol=0.05).fit(pairs)
    assert model.classes_.tolist() == ["a", "b", "c"]
    bag = db.from_sequence(X, npartitions=6)
    predicted = model.predict(bag).compute()
    assert all(np.array_equal(a, b) for a, b in zip(predicted, model.to_local().predict(X)))
    assert model.score(pairs).compute() == pytest.approx(model.to_local().score(X, Y))


def test_arrays_and_weights(client):
    X, y = plane()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    model = DaskStructuredSVM("multiclass", n_shards=4, alpha=0.1, client=client)
    lazy = da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=30)
    model.fit(*lazy, sample_weight=da.from_array(weight, chunks=45))
    one = StructuredSVM("multiclass", alpha=0.1, tol=1e-4).fit(X, y, sample_weight=weight)
    assert model.history_[-1]["primal"] == pytest.approx(one.history_[-1]["primal"], rel=0.0101)
    predicted = model.predict(lazy[0])
    assert isinstance(predicted, da.Array) and predicted.dtype == model.classes_.dtype
    assert np.array_equal(predicted.compute(), model.to_local().predict(X))
    assert model.score(*lazy).compute() == pytest.approx(np.mean(predicted.compute() == y))


def test_columns_of_data_frames_keep_their_names(client):
    """Columns in another order were read as they came."""
    frames = pytest.importorskip("dask.dataframe", reason="needs pandas and pyarrow")
    import pandas as pd

    X, y = plane()
    names = [f"x{k}" for k in range(X.shape[1])]
    lazy = frames.from_pandas(pd.DataFrame(X, columns=names), npartitions=2)
    labels = frames.from_pandas(pd.Series(y), npartitions=2)
    model = DaskStructuredSVM("multiclass", n_shards=2, alpha=0.1, client=client)
    model.fit(lazy, labels)
    assert model.to_local().feature_names_in_.tolist() == names
    predicted = np.concatenate(dask.compute(*model.predict(lazy)))
    assert model.score(lazy, labels).compute() == pytest.approx(np.mean(predicted == y))
    for lost in (
        lambda: dask.compute(*model.predict(lazy[names[::-1]])),
        lambda: model.score(lazy[names[::-1]], labels).compute(),
    ):
        refused("in the same order", lost)


def test_label_sets_and_sparse_partitions(client):
    X, _ = plane()
    Y = (X[:, :3] > 0).astype(int)
    model = DaskStructuredSVM("multilabel", n_shards=3, alpha=0.05, tol=0.02, client=client)
    model.fit([dask.delayed(sp.coo_matrix(X), traverse=False)], lazily(Y, 1))
    predicted = model.predict(da.from_array(X, chunks=((30, 0, 60), 5)))
    assert predicted.shape == (90, 3)
    assert np.array_equal(predicted.compute(), model.to_local().predict(X))


def test_rankings_have_smooth_weights(client):
    X, _ = plane(300)
    scores = X @ np.random.default_rng(1).normal(size=(5, 4))
    Y = (-scores - np.random.default_rng(2).normal(size=(300, 4))).argsort(axis=1).argsort(axis=1)
    model = DaskStructuredSVM("permutation", n_shards=3, alpha=0.001, client=client)
    model.fit(lazily(X), lazily(Y))
    smooth = get_structure("permutation", weights="smooth")
    one = StructuredSVM(smooth, alpha=0.001, tol=1e-4, max_iter=1000).fit(X, Y)
    last, best = model.history_[-1], one.history_[-1]
    assert best["dual"] * (1 - 1e-9) <= last["primal"] <= best["primal"] * (1 + 0.0101)
    assert (
        np.abs(model.coef_["node"] - one.coef_["node"]).max()
        < 0.1 * np.abs(one.coef_["node"]).max()
    )


def test_tables_of_levels_whose_shards_have_other_paths(client):
    X, y = plane()
    Y = np.array([["a", "x"], ["b", "y"], ["b", "z"]])[np.sort(y)]
    model = DaskStructuredSVM("dag", n_shards=3, alpha=0.1, client=client)
    model.fit(lazily(X), lazily(Y))
    assert model.classes_.tolist() == ["x", "y", "z"]
    predicted = model.predict(da.from_array(X, chunks=((30, 0, 60), 5)))
    assert predicted.shape == (90, 2)
    assert np.array_equal(predicted.compute(), model.to_local().predict(X))


def test_free_intercepts_and_other_surrogates_use_cutting_planes(client):
    X, y = plane()
    lazy = lazily(X), lazily(y)
    settings = {"n_shards": 3, "alpha": 0.2, "client": client}
    model = DaskStructuredSVM("multiclass", penalize_intercept=False, **settings).fit(*lazy)
    one = StructuredSVM(
        "multiclass", alpha=0.2, penalize_intercept=False, solver="cutting-plane"
    ).fit(X, y)
    assert model.solver_.name == "cutting-plane" and model.stop_reason_ == "converged"
    assert model.history_[-1]["primal"] == pytest.approx(one.history_[-1]["primal"], rel=0.0101)
    other = DaskStructuredSVM("multiclass", surrogate="probloss", **settings).fit(*lazy)
    assert other.solver_.name == "cutting-plane"


def test_names_of_features_are_learned_over_partitions(client):
    sentences = [[["a", "b"], ["c"]], [["d"]], [{"e": 2.0}], [["a"]]]
    bag = db.from_sequence(sentences, npartitions=3)
    fit, one = fit_vectorizer(bag, client=client), SequenceVectorizer().fit(sentences)
    assert fit.get_feature_names_out().tolist() == one.get_feature_names_out().tolist()
    for mine, theirs in zip(fit.transform(sentences), one.transform(sentences)):
        assert np.array_equal(mine.toarray(), theirs.toarray())
    often = fit_vectorizer(bag, SequenceVectorizer(min_freq=2), client)
    assert often.get_feature_names_out().tolist() == ["a"]


@pytest.mark.parametrize(
    "X, y, settings, words",
    [
        ([np.zeros((2, 3))], [np.zeros(2)], {}, "X is a list of ndarray, expected a dask bag"),
        ("features", None, {}, "shard 1 has 4 features, shard 0 has 5"),
        ("empty", None, {}, "shard 1 has no examples"),
        ("lengths", None, {}, "a partition has 4 examples and 3 labels"),
        ("labels", None, {}, "numbers as labels"),
        ("no labels", None, {}, "X holds a ndarray, expected pairs .*y is missing"),
        ("nan", None, {}, "shard 1: .*NaN|shard 1: .*nan|shard 1: .*finite"),
        ("good", None, {"solver": "sgd"}, "solver is 'sgd', expected one of"),
        ("good", None, {"n_shards": 0}, "n_shards is 0"),
        ("good", None, {"random_state": None}, "random_state is None"),
        ("good", None, {"solver": CuttingPlane(slack="n")}, "slack is 'n'"),
        ("good", None, {"solver": ConsensusADMM(penalty=0.0)}, "penalty is 0.0"),
        ("good", None, {"checkpoint": 1}, "checkpoint is 1, expected None or a path"),
        ("good", None, {"loss": np.eye(2)}, "(?s)unknown loss array.*or a CostMatrix"),
        ("good", None, {"loss": "none"}, "unknown loss 'none'"),
    ],
)
def test_errors_say_what_is_wrong_and_where(client, X, y, settings, words):
    a, b = (np.arange(20.0).reshape(4, 5) % 3, np.array([0, 1, 0, 1]))
    second = {
        "features": (a[:, :4], b),
        "empty": (a[:0], b[:0]),
        "lengths": (a, b[:3]),
        "labels": (a, b.astype(str)),
        "nan": (a * np.nan, b),
        "good": (a, b),
        "no labels": a,
    }
    if isinstance(X, str):
        X = [dask.delayed((a, b), traverse=False), dask.delayed(second[X], traverse=False)]
    model = DaskStructuredSVM("multiclass", **{"n_shards": 2, "client": client, **settings})
    refused(words, model.fit, X, y, error=(ValueError, TypeError))


def test_without_a_client_or_with_something_else(monkeypatch):
    def none():
        raise ValueError("No global client")

    monkeypatch.setattr(distributed, "get_client", none)
    X, Y = (lazily(values) for values in chains())
    with pytest.raises(ValueError, match="there is no Dask client: start one"):
        svm().fit(X, Y)
    with pytest.raises(TypeError, match="client is 'tcp://x', expected a distributed.Client"):
        svm(client="tcp://x").fit(X, Y)


def test_shards_that_do_not_fit_are_refused(client, monkeypatch):
    workers = {"a": {"memory_limit": 1000}, "b": {"memory_limit": 1000}}
    monkeypatch.setattr(cluster, "workers_of", lambda client: workers)
    with pytest.raises(MemoryError, match="memory_limit of the 2 workers is 2e-06 GB"):
        cluster.refuse_too_large(client, 5000)
    cluster.refuse_too_large(client, 1000)
    workers["b"]["memory_limit"] = 0  # no limit
    cluster.refuse_too_large(client, 5000)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_that_a_metric_makes_dense_are_counted(client, monkeypatch):
    asked = []
    monkeypatch.setattr(estimator, "refuse_too_large", lambda _, *rest: asked.append(rest))
    X, Y = chains()
    for metric in ("identity", "spectral"):
        solver = ConsensusADMM(metric=metric)
        svm(client=client, solver=solver, max_iter=1).fit(lazily(X), lazily(Y))
    assert len(asked) == 3
    needed, instead = asked[2]
    dense = 8 * sum(map(len, X)) * X[0].shape[1]
    assert needed > asked[1][0] and needed >= 2 * dense and "metric='identity'" in instead
    workers = {"a": {"memory_limit": needed}}
    monkeypatch.setattr(cluster, "workers_of", lambda client: workers)
    with pytest.raises(MemoryError, match="more memory, or ConsensusADMM.metric='identity'"):
        cluster.refuse_too_large(client, needed, instead)


def test_tasks_that_kill_workers_are_told_as_memory(monkeypatch):
    class Client:
        def gather(self, futures):
            raise distributed.scheduler.KilledWorker("x", None, 3)

    monkeypatch.setattr(cluster, "workers_of", lambda client: {"a": {"memory_limit": 2e9}})
    with pytest.raises(MemoryError, match="step.. of a shard killed several .*2 GB.*n_shards"):
        cluster.gathered(Client(), [], "step() of a shard")


def test_a_worker_that_lacks_a_plugin_is_named(client, monkeypatch):
    here = {**plugins.loaded(), "snakes": ("structsolve-snakes", "1.2")}
    monkeypatch.setattr(client, "run", lambda *args, **more: {"tcp://w": plugins.loaded()})
    plugins.check_workers(client)
    theirs = plugins.loaded()
    monkeypatch.setattr(client, "run", lambda *args, **more: {"tcp://w": theirs})
    monkeypatch.setattr(plugins, "loaded", lambda: here)
    words = r"worker tcp://w lacks the plugin 'snakes' \(structsolve-snakes 1.2\)"
    refused(words, plugins.check_workers, client)
    failed = {"tcp://w": ModuleNotFoundError("No module named 'structsolve'")}
    monkeypatch.setattr(client, "run", lambda *args, **more: failed)
    refused("worker tcp://w cannot load structsolve", plugins.check_workers, client)


def test_workers_are_seen_while_the_client_refreshes_its_summary(client, monkeypatch):
    async def refreshed(n_workers=0):
        client._scheduler_identity = await client.scheduler.identity(n_workers=0)

    monkeypatch.setattr(client, "_update_scheduler_info", refreshed)
    assert not client.scheduler_info()["workers"]  # what others read meanwhile
    assert len(cluster.workers_of(client)) == 3


def test_shards_are_built_while_no_worker_is_there(client, monkeypatch):
    X, Y = chains()
    model = svm(client=client).fit(lazily(X), lazily(Y))
    monkeypatch.setattr(estimator, "workers_of", lambda client: {})
    again = svm(client=client).fit(lazily(X), lazily(Y))
    np.testing.assert_equal(again.coef_, model.coef_)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in processes that fork")
def test_no_input_crashes():
    """A few cases of the fuzzer: ``.ci/fuzz SECONDS dask`` runs more."""
    ((target, count, refused),) = fuzzed([("dask", range(20))])
    assert target == "dask" and refused < count == 20
