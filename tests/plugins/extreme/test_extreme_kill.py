"""ExtremeSVM killed by SIGKILL, between passes and during a write: same bits as without."""

import os

import pytest
from doc_code import SHARED
from programs import in_fork

# Each run is a child of one process that has imported everything; it kills itself.
SCRIPT = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
path, tests = sys.argv[1:]
sys.path.insert(0, tests)
from extreme_cases import documents
from structsolve import ExtremeSVM
from structsolve.plugins.extreme.solvers.memoir import Memoir
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils import container

X, y = documents(n_classes=40, n_features=120)
Checkpoint.due = lambda self: True  # in the rhythm of the disk else
PASSES = 5
CASES = {
    "dual": {"surrogate": "margin", "alpha": 0.003},
    "dual, softmax": {"surrogate": "crf", "solver": "dual", "rivals": "certified:.1"},
    "memoir": {"solver": "memoir"},
    "memoir, mean of iterates": {"solver": Memoir(averaging=True, k=2), "surrogate": "crf"},
    "memoir, l1": {"penalty": "l1", "rivals": "lsh:16", "alpha": 1e-5},
}


def fit(settings, callbacks=(), **more):
    settings = {"tol": 1e-9, "max_iter": PASSES, **settings, **more}
    return ExtremeSVM(callbacks=list(callbacks), **settings).fit(X, y)


def told(model):
    history = [{k: v for k, v in r.items() if k != "seconds"} for r in model.history_]
    w = model.coef_
    return history, w.data.tobytes(), w.indices.tobytes(), w.indptr.tobytes()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def killed(settings, end, amid_write):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if amid_write:
        replace, writes = os.replace, []

        def last(*names):
            writes.append(names)
            return die() if len(writes) == end else replace(*names)

        container.os.replace = last
        fit(settings, checkpoint=path)
    else:
        fit(settings, [lambda record: record["pass"] == end and die()], checkpoint=path)
    os._exit(0)


KILLS = [(2, False), (PASSES, False), (1, True), (3, True)]
for name, settings in CASES.items():
    whole = told(fit(settings))
    for end, amid_write in KILLS:
        case = name, end, amid_write
        status = killed(settings, end, amid_write)
        assert status == -signal.SIGKILL, (case, status)
        assert os.path.exists(path) == (end > 1), case
        passes = []
        assert told(fit(settings, [passes.append], checkpoint=path)) == whole, case
        assert len(passes) == PASSES - end + 1, (case, len(passes))
        os.remove(path)
print("same")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork() and SIGKILL")
def test_a_killed_run_goes_on_bit_for_bit(tmp_path):
    status, out, error = in_fork(SCRIPT, tmp_path / "run", SHARED)
    assert (out, status) == ("same\n", 0), error
