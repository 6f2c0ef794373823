"""Checkpoints: a run that was killed goes on as if it had not been."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from checks import refused, same_run, stopped_after
from data import chains

from structsolve import StructuredSVM
from structsolve.solvers import BCFW, SGD, CuttingPlane

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

    # The state after pass `stop` is never written: the run resumes from an earlier one.
    model = StructuredSVM("chain", max_iter=11, checkpoint=path, **settings)
    with pytest.raises(RuntimeError):
        model.set_params(callbacks=[stopped_after(stop)]).fit(X, Y)
    resumed = StructuredSVM("chain", max_iter=11, checkpoint=path, **settings).fit(X, Y)
    same_run(resumed, whole)


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
    same_run(resumed, whole)
    assert resumed.stop_reason_ == whole.stop_reason_


@pytest.mark.parametrize(
    "change", [{"alpha": 0.02}, {"loss": "normalized-hamming"}, {"random_state": 1}]
)
def test_a_checkpoint_of_something_else_is_refused(tmp_path, change):
    X, Y = chains(10)
    path = tmp_path / "run.checkpoint"
    settings = {"alpha": 0.01, "max_iter": 2, "checkpoint": path}
    StructuredSVM("chain", **settings).fit(X, Y)
    with pytest.raises(ValueError, match="belongs to other data or settings; delete it"):
        StructuredSVM("chain", **{**settings, **change}).fit(X, Y)
    with pytest.raises(ValueError, match="belongs to other data or settings"):
        StructuredSVM("chain", **settings).fit([x + 1 for x in X], Y)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    X, Y = chains(10)
    path = tmp_path / "run.checkpoint"
    StructuredSVM("chain", max_iter=2, checkpoint=path).fit(X, Y)
    path.write_bytes(path.read_bytes()[:-40])
    refused(r"run\.checkpoint", StructuredSVM("chain", max_iter=2, checkpoint=path).fit, X, Y)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork() and SIGKILL")
def test_killed_at_any_moment(tmp_path):
    """Runs are forked from one process that has everything imported: kills hit the training."""
    path, weights = tmp_path / "run.checkpoint", tmp_path / "weights"
    script = textwrap.dedent(f"""
        import os, sys, warnings; warnings.simplefilter("ignore")
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from data import chains
        from structsolve import StructuredSVM
        X, Y = chains(200, longest=10, noise=3)
        model = StructuredSVM("chain", alpha=1e-4, tol=0, max_iter=60, checkpoint={str(path)!r})
        for _ in sys.stdin:
            child = os.fork()
            if child == 0:
                model.fit(X, Y).coef_["node"].tofile({str(weights)!r})
                os._exit(0)
            print(child, flush=True)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """)
    rng = np.random.default_rng(0)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def run(kill=None):
        """How a run ended; it is killed after about so many times a third of a second."""
        process.stdin.write("\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        if kill:
            time.sleep(kill * (0.05 + 0.5 * rng.random()))
            with contextlib.suppress(ProcessLookupError):  # it was faster
                os.kill(child, signal.SIGKILL)
        return int(process.stdout.readline())

    ends = [run(kill=1) for _ in range(12)]
    later = 2
    while not path.exists() and later < 1000:  # on a busy machine
        ends.append(run(kill=later))
        later *= 2
    assert -signal.SIGKILL in ends and path.exists()
    assert run() == 0
    resumed = weights.read_bytes()
    path.unlink()
    assert run() == 0
    assert len(resumed) and resumed == weights.read_bytes()
    process.stdin.close()
    assert process.wait() == 0
