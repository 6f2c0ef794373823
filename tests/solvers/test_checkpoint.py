"""Checkpoints: a killed run resumes as if it had never stopped."""

import copy
import errno
import itertools
import os
import signal
import subprocess
import sys
import textwrap

import networkx as nx
import numpy as np
import pytest
from checks import refused, same, same_run, stopped_after
from data import chains, classes
from doc_code import SHARED
from scipy import sparse
from sklearn.base import clone

from structsolve import CostMatrix, HierarchicalSVM, StructuredSVM, WeightedLabels, get_structure
from structsolve.lp import Highs, LabelConstraint
from structsolve.plugins.chain.space import ChainStructure
from structsolve.plugins.latent import LatentSVM
from structsolve.solvers import BCFW, SGD, CuttingPlane
from structsolve.utils import container

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SOLVERS = [
    BCFW(),
    BCFW(sampling="gap", steps="frank-wolfe", max_cuts=4, averaging=False),
    CuttingPlane(),
    CuttingPlane(slack="n"),
    SGD(),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("stop", [1, 4, 7])
def test_resuming_is_bit_for_bit(tmp_path, solver, stop):
    X, Y = chains(30)
    settings = {"solver": solver, "alpha": 0.01, "tol": 0, "random_state": 3}
    whole = StructuredSVM("chain", max_iter=11, **settings).fit(X, Y)
    path = tmp_path / "run.checkpoint"

    # The state after pass `stop` is never written, so the run resumes from an earlier one.
    model = StructuredSVM("chain", max_iter=11, checkpoint=path, **settings)
    with pytest.raises(RuntimeError):
        model.set_params(callbacks=[stopped_after(stop)]).fit(X, Y)
    resumed = StructuredSVM("chain", max_iter=11, checkpoint=path, **settings).fit(X, Y)
    same_run(resumed, whole)


@pytest.mark.parametrize(
    ("solver", "oracle"),
    [
        (BCFW(), "lp"),
        (SGD(), "lp"),
        (CuttingPlane(), Highs()),
        (CuttingPlane(), "cvxpy:HIGHS,warm_start=true"),
    ],
    ids=str,
)
def test_programs_of_labels_that_tie_resume_bit_for_bit(tmp_path, solver, oracle):
    """Programs that start warm may find another best label; with a checkpoint none does."""
    rng = np.random.default_rng(1)
    X, Y = rng.integers(-1, 2, (10, 2)).astype(float), rng.integers(0, 2, (10, 3))
    settings = {"solver": solver, "oracle": oracle, "alpha": 0.03, "tol": 0, "max_iter": 6}
    fits = []
    for stop in (None, 2, 4):
        model = StructuredSVM("multilabel", checkpoint=tmp_path / f"{stop}", **settings)
        if stop is not None:
            with pytest.raises(RuntimeError):
                clone(model).set_params(callbacks=[stopped_after(stop)]).fit(X, Y)
        fits.append(model.fit(X, Y))
    for resumed in fits[1:]:
        same_run(resumed, fits[0])


def test_a_finished_checkpoint_can_be_extended(tmp_path):
    X, Y = chains(30)
    path = tmp_path / "run.checkpoint"
    settings = {"alpha": 0.01, "tol": 0, "solver": BCFW(certify_every=1)}
    StructuredSVM("chain", max_iter=5, checkpoint=path, **settings).fit(X, Y)
    longer = StructuredSVM("chain", max_iter=9, checkpoint=path, **settings).fit(X, Y)
    whole = StructuredSVM("chain", max_iter=9, **settings).fit(X, Y)
    same_run(longer, whole)


def test_early_stopping_resumes(tmp_path):
    X, Y = chains(60, noise=3)
    path = tmp_path / "run.checkpoint"
    settings = {
        "alpha": 1e-3,
        "tol": 0,
        "early_stopping": True,
        "n_iter_no_change": 3,
        "max_iter": 40,
        "solver": BCFW(certify_every=1),
    }
    whole = StructuredSVM("chain", **settings).fit(X, Y)
    with pytest.raises(RuntimeError):
        StructuredSVM("chain", checkpoint=path, callbacks=[stopped_after(3)], **settings).fit(X, Y)
    resumed = StructuredSVM("chain", checkpoint=path, **settings).fit(X, Y)
    again = StructuredSVM("chain", checkpoint=path, **settings).fit(X, Y)  # has ended
    for model in (resumed, again):
        same_run(model, whole)
        assert model.stop_reason_ == whole.stop_reason_ == "early_stopping"


@pytest.mark.parametrize(
    "change", [{"alpha": 0.02}, {"loss": "normalized-hamming"}, {"random_state": 1}]
)
def test_a_checkpoint_of_something_else_is_refused(tmp_path, change):
    X, Y = chains(10)
    path = tmp_path / "run.checkpoint"
    settings = {"alpha": 0.01, "max_iter": 2, "checkpoint": path}
    StructuredSVM("chain", **settings).fit(X, Y)
    with pytest.raises(ValueError, match="other data or settings; delete it .* earlier release"):
        StructuredSVM("chain", **{**settings, **change}).fit(X, Y)
    with pytest.raises(ValueError, match="belongs to other data or settings"):
        StructuredSVM("chain", **settings).fit([x + 1 for x in X], Y)


class Noted(ChainStructure):
    """Packs more than features and labels, as a package may whose labels depend on it."""

    name = "noted"
    notes: object = None

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        space, examples = super().make_space(X, Y, classes, fit_intercept)
        examples.topology["notes"] = self.notes
        return space, examples


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([np.ones(2), np.zeros(1)], [np.ones(2), np.ones(1)]),
        ([np.ones(2), np.ones(1)], [np.ones(1), np.ones(2)]),
        ({"budget": (3, 4)}, {"budget": (3, 5)}),
        (sparse.csr_matrix(np.eye(2)), sparse.csr_matrix(np.eye(2)[::-1])),
        (np.array([[1], "a"], dtype=object), np.array([[2], "a"], dtype=object)),
    ],
    ids=["values", "shapes", "dict", "sparse", "objects"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_all_that_a_package_packs_is_known(tmp_path, monkeypatch, first, second, weighted):
    X, Y = chains(10)
    if weighted:
        Y[0] = WeightedLabels(Y[0], np.arange(len(Y[0])) + 1)
    settings = {"alpha": 0.01, "tol": 0.1}
    saved = StructuredSVM(Noted(), checkpoint=tmp_path / "run.checkpoint", **settings)
    warm = StructuredSVM(Noted(), warm_start=True, **settings)
    monkeypatch.setattr(Noted, "notes", first)
    saved.fit(X, Y)
    run = warm.fit(X, Y)._run
    monkeypatch.setattr(Noted, "notes", copy.deepcopy(first))
    saved.fit(X, Y)
    assert warm.fit(X, Y)._run == run
    monkeypatch.setattr(Noted, "notes", second)
    refused("belongs to other data or settings", saved.fit, X, Y)
    assert warm.fit(X, Y)._run != run


@pytest.mark.parametrize("estimator", [StructuredSVM, LatentSVM])
def test_constraints_on_labels_are_known_by_their_rows(tmp_path, estimator):
    X, Y = chains(10)

    def fit(most, **settings):
        rows = lambda examples, i: [LabelConstraint({"node": [0, 1, 1]}, upper=most)]  # noqa: E731
        oracle = Highs(constraints=rows)  # a new function, as in another process
        return estimator("chain", oracle=oracle, alpha=0.01, max_iter=1, **settings).fit(X, Y)

    path = tmp_path / "run.checkpoint"
    fit(8, checkpoint=path)
    fit(8, checkpoint=path)
    refused("belongs to other data or settings", fit, 9, checkpoint=path)


def test_large_costs_are_known_by_every_number(tmp_path):
    """An object whose ``repr`` omits most of it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat(np.arange(40), 2)[:60]
    cost = 1.0 - np.eye(len(set(y)))
    path = tmp_path / "run.checkpoint"
    settings = {"alpha": 0.1, "max_iter": 1, "checkpoint": path}
    StructuredSVM("multiclass", loss=CostMatrix(cost), **settings).fit(X, y)
    StructuredSVM("multiclass", loss=CostMatrix(cost.copy()), **settings).fit(X, y)
    other = cost.copy()
    other[15, 14] = 0.5
    refused(
        "belongs to other data or settings",
        StructuredSVM("multiclass", loss=CostMatrix(other), **settings).fit,
        X,
        y,
    )


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
@pytest.mark.parametrize("sparse", [False, True])
def test_generators_resume_where_they_stood(tmp_path, kind, sparse):
    """Another process has its own generator, at another address."""
    X, y = leaves()
    path, seeds = tmp_path / "run.checkpoint", [kind(3) for _ in range(3)]
    settings = {"sparse": sparse, "solver": "sgd", "alpha": 0.01, "max_iter": 6, "tol": 0}
    whole = HierarchicalSVM(TREE, random_state=seeds[0], **settings).fit(X, y)
    model = HierarchicalSVM(TREE, random_state=seeds[1], checkpoint=path, **settings)
    with pytest.raises(RuntimeError):
        model.set_params(callbacks=[stopped_after(3)]).fit(X, y)
    resumed = HierarchicalSVM(TREE, random_state=seeds[2], checkpoint=path, **settings).fit(X, y)
    dense = [getattr(m.coef_["node"], "toarray", m.coef_["node"].copy)() for m in (whole, resumed)]
    np.testing.assert_array_equal(*dense)


@pytest.mark.parametrize("estimator", [HierarchicalSVM, StructuredSVM])
def test_a_graph_is_known_by_what_it_holds(tmp_path, estimator):
    """Another process has its own copy of the hierarchy, at another address."""
    graph = nx.DiGraph([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d"), ("b", "e")])
    X, y = classes(40)
    y = np.array(["c", "d", "e"])[y]
    if estimator is StructuredSVM:
        y = [{leaf, *nx.ancestors(graph, leaf)} for leaf in y]
    path = tmp_path / "run.checkpoint"

    def fit(tree, **settings):
        structure = get_structure("dag", hierarchy=tree)
        tree = tree if estimator is HierarchicalSVM else structure
        settings |= {"alpha": 0.01, "tol": 0, "solver": BCFW(certify_every=1)}
        return estimator(tree, **settings).fit(X, y)

    fit(graph, max_iter=2, checkpoint=path)
    same_run(fit(graph.copy(), max_iter=4, checkpoint=path), fit(graph, max_iter=4))
    other = graph.copy()
    other.add_edge("b", "f")
    refused("belongs to other data or settings", fit, other, max_iter=4, checkpoint=path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    X, Y = chains(10)
    path = tmp_path / "run.checkpoint"
    StructuredSVM("chain", max_iter=2, checkpoint=path).fit(X, Y)
    path.write_bytes(path.read_bytes()[:-40])
    refused(r"run\.checkpoint", StructuredSVM("chain", max_iter=2, checkpoint=path).fit, X, Y)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork() and SIGKILL")
def test_killed_at_any_line(tmp_path):
    """Runs are forked from one process that has everything imported, and kill themselves.

    At lines of what drives, writes and reads drawn at random: a clock would kill elsewhere on a
    slower or busier machine.
    """
    path, weights, count = tmp_path / "run.checkpoint", tmp_path / "weights", tmp_path / "count"
    script = textwrap.dedent(f"""
        import os, signal, sys, warnings; warnings.simplefilter("ignore")
        sys.path.insert(0, {str(SHARED)!r})
        from data import chains
        from structsolve import StructuredSVM
        from structsolve.solvers import checkpoint, driver
        from structsolve.utils import atomic, container
        checkpoint.PAUSE = 0  # write after every pass
        WATCHED = [module.__file__ for module in (checkpoint, driver, atomic, container)]
        X, Y = chains(50, longest=10, noise=3)
        StructuredSVM("chain", max_iter=1).fit(X, Y)  # imports what it needs
        model = StructuredSVM("chain", alpha=1e-4, tol=0, max_iter=24, checkpoint={str(path)!r})
        lines = 0

        def trace(frame, event, argument):
            global lines
            if frame.f_code.co_filename not in WATCHED:
                return None
            if event == "line":
                lines += 1
                if lines == last:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        for given in sys.stdin:
            last = int(given)
            child = os.fork()
            if child == 0:
                sys.settrace(trace)
                model.fit(X, Y)
                sys.settrace(None)
                model.coef_["node"].tofile({str(weights)!r})
                open({str(count)!r}, "w").write(str(lines))
                os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def run(last=0):
        """Return how a run ended; it is killed at this line, if any."""
        process.stdin.write(f"{last}\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    assert run() == 0
    whole, lines = weights.read_bytes(), int(count.read_text())
    path.unlink()
    weights.unlink()
    # Together they are shorter than the run, so none reaches its end.
    last = np.random.default_rng(0).integers(1, lines // 16, 16)
    assert {run(line) for line in last} == {-signal.SIGKILL}
    assert 1 < len(container.read(path, "checkpoint")[0]["content"]["history"]) < 24
    assert run() == 0
    assert len(whole) and weights.read_bytes() == whole
    process.stdin.close()
    assert process.wait() == 0


# ---- hierarchies -------------------------------------------------------------------------------

TREE = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")]


def leaves(n=40):
    X, y = classes(n)
    return X, np.array(["b", "c", "d"])[y]


@pytest.mark.parametrize("stop", [1, 6, 12])
@pytest.mark.parametrize("solver", [BCFW(), CuttingPlane()], ids=repr)
def test_learned_node_weights_resume_bit_for_bit(tmp_path, solver, stop):
    X, y = leaves()
    settings = {"normalization": "learned", "alpha": 0.01, "max_iter": 5, "tol": 1e-5}
    settings |= {"solver": solver, "max_alternations": 4}
    whole = HierarchicalSVM(TREE, **settings).fit(X, y)
    assert {record["alternation"] for record in whole.history_} == {1, 2, 3, 4}
    path = tmp_path / "run.checkpoint"
    model = HierarchicalSVM(TREE, checkpoint=path, **settings)
    passes = itertools.count(1)
    with pytest.raises(RuntimeError):
        model.set_params(callbacks=[lambda r: stopped_after(stop)({"pass": next(passes)})])
        model.fit(X, y)
    resumed = HierarchicalSVM(TREE, checkpoint=path, **settings).fit(X, y)
    same_run(resumed, whole)
    same(resumed.log_node_weights_, whole.log_node_weights_)
    refused(
        "belongs to other data",
        HierarchicalSVM(TREE, checkpoint=path, **{**settings, "alpha": 0.1}).fit,
        X,
        y,
    )


@pytest.mark.parametrize("stop", [1, 4])
def test_sparse_weights_resume_bit_for_bit(tmp_path, stop):
    X, y = leaves()
    X = sparse.csr_matrix(X)
    settings = {"sparse": True, "solver": "sgd", "alpha": 0.01, "max_iter": 7, "random_state": 3}
    whole = HierarchicalSVM(TREE, **settings).fit(X, y)
    path = tmp_path / "run.checkpoint"
    model = HierarchicalSVM(TREE, checkpoint=path, callbacks=[stopped_after(stop)], **settings)
    with pytest.raises(RuntimeError):
        model.fit(X, y)
    resumed = HierarchicalSVM(TREE, checkpoint=path, **settings).fit(X, y)
    assert len(resumed.history_) == 7
    same(resumed.coef_["node"].toarray(), whole.coef_["node"].toarray())
    refused(
        "belongs to other data",
        HierarchicalSVM(TREE, checkpoint=path, **{**settings, "random_state": 1}).fit,
        X,
        y,
    )


# ---- disks and files that refuse ---------------------------------------------------------------


def test_a_full_disk_does_not_end_training(tmp_path, monkeypatch):
    X, Y = chains(10)
    settings = {"max_iter": 4, "tol": 0, "alpha": 0.1}
    whole = StructuredSVM("chain", **settings).fit(X, Y)

    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(container, "write", full)
    with pytest.warns(RuntimeWarning) as told:
        model = StructuredSVM("chain", checkpoint=tmp_path / "c", **settings).fit(X, Y)
    texts = [str(w.message) for w in told if "checkpoint" in str(w.message)]
    assert len(texts) == 2 and "training goes on" in texts[0] and "last write failed" in texts[1]
    assert "No space left" in model.history_[-1]["checkpoint_error"]
    same(dict(model.coef_), dict(whole.coef_))


def test_a_folder_that_is_not_there_is_told_before_training(tmp_path):
    X, Y = chains(10)
    model = StructuredSVM("chain", checkpoint=tmp_path / "no" / "c", callbacks=[stopped_after(1)])
    refused("there is no folder", model.fit, X, Y, error=FileNotFoundError)


def changed(path, change):
    """Rewrite a checkpoint, with its checksums, after a change of its content."""
    meta, arrays = container.read(path, "checkpoint")
    change(meta["content"], arrays)
    container.write(path, "checkpoint", meta, arrays)


def put(name, place, value):
    def change(meta, arrays):
        arrays[name].reshape(-1)[place] = value

    return change


def wrap(name):
    """Counts with the same sum, by overflow of 2^64."""

    def change(meta, arrays):
        arrays[name][:4] = [2**62, 2**62, 2**62, 2**62]
        arrays[name][4:] = 0
        arrays[name][4] = sum(len(arrays[other]) for other in ("cuts_weight",))

    return change


def drop(name):
    return lambda meta, arrays: arrays.pop(name)


def say(name, value):
    return lambda meta, arrays: meta["run"].update({name: value})


FAULTS = [
    (BCFW(), "margin", wrap("cuts_counts"), "counts"),
    (BCFW(), "margin", put("cuts_index", 0, 10**6), "cuts of another example"),
    (BCFW(), "margin", put("cuts_weight", 0, np.nan), "NaN"),
    (BCFW(), "margin", drop("average"), "average"),
    (BCFW(), "margin", say("rng", {}), "state must be for"),
    (BCFW(), "margin", say("passes", "x"), "passes is 'x'"),
    (BCFW(), "margin", say("steps_done", 2**63), "steps_done"),
    (BCFW(), "margin", lambda m, a: m.update(history=[1]), "record 0 of its history"),
    (BCFW(), "margin", lambda m, a: a.update(w=a["w"][:3]), "and 3 weights"),
    (BCFW(), "max-min", put("surrogate_atoms", 0, 10**6), "states from 0 to 1000000"),
    (BCFW(), "max-min", put("surrogate_sizes", 0, 10**6), "more labels per example"),
    (BCFW(), "max-min", drop("surrogate_losses"), "losses"),
    (BCFW(), "slack", put("surrogate_labels", 0, 77), "impossible labels"),
    (CuttingPlane(), "margin", put("cuts_group", 0, 7), "groups of the cuts"),
    (CuttingPlane(), "margin", put("cuts_G", 0, np.nan), "NaN"),
    (CuttingPlane(), "margin", put("cuts_b", 0, 1e300), "b of the cuts is up to 1e\\+300"),
    (CuttingPlane(), "margin", lambda m, a: a.update(cuts_G=a["cuts_G"][:1]), "cuts have shape"),
    (CuttingPlane(), "margin", lambda m, a: a.update(w=a["w"][:3]), "w has shape"),
    (CuttingPlane(), "margin", say("groups", 10**6), "groups is 1000000"),
    (CuttingPlane(), "margin", say("box", -1.0), "box is -1.0"),
    (CuttingPlane(slack="n"), "margin", put("cuts_indptr", -1, 0), "the cuts: .*broken"),
    (CuttingPlane(slack="n"), "margin", put("cuts_indices", 0, 10**6), "the cuts: .*broken"),
    (SGD(), "margin", lambda m, a: a.update(lag=a["lag"][:1]), "lag|weights"),
    (SGD(), "margin", say("t", 2**70), "t is"),
]


@pytest.fixture(scope="module")
def run_files(tmp_path_factory):
    """Return a file for each solver and surrogate, made once."""
    X, Y = chains(12)
    folder, made = tmp_path_factory.mktemp("runs"), {}

    def file(solver, surrogate):
        key = repr(solver), surrogate
        if key not in made:
            path = folder / f"{len(made)}.checkpoint"
            model = StructuredSVM(
                "chain", solver=solver, surrogate=surrogate, checkpoint=path, alpha=0.1, tol=0
            )
            model.set_params(max_iter=2).fit(X, Y)
            made[key] = model, path.read_bytes()
        return made[key]

    return file, X, Y


@pytest.mark.parametrize(("solver", "surrogate", "change", "message"), FAULTS)
def test_faults_inside_are_refused_by_name(tmp_path, run_files, solver, surrogate, change, message):
    file, X, Y = run_files
    model, content = file(solver, surrogate)
    path = tmp_path / "run.checkpoint"
    path.write_bytes(content)
    changed(path, change)
    model = clone(model).set_params(checkpoint=path, max_iter=3)
    refused(rf"(?s)run\.checkpoint.*{message}|{message}.*run\.checkpoint", model.fit, X, Y)


def test_counts_of_the_exact_steps_that_wrap(tmp_path):
    X, y = classes(12)
    path = tmp_path / "run.checkpoint"
    settings = {"checkpoint": path, "alpha": 0.1, "tol": 0}
    StructuredSVM("multiclass", max_iter=2, **settings).fit(X, y)

    def change(meta, arrays):
        arrays["cuts_counts"][:4] = 2**62
        arrays["cuts_counts"][4:] = 0
        arrays["cuts_counts"][4] = len(arrays["cuts_y"])

    changed(path, change)
    refused(
        r"run\.checkpoint.*counts of labels",
        StructuredSVM("multiclass", max_iter=3, **settings).fit,
        X,
        y,
    )
