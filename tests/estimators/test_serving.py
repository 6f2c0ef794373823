"""One answer at a time, 50,000 times: memory does not grow; threads share a model."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from outside_cases import CASES

import structsolve
from structsolve import ExtremeSVM, StructuredSVM, get_structure

PAGE = 4096


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def model_of(name, **params):
    structure = get_structure(name, **params)
    X, Y = structure.sample(0, n=20, size=5)
    return StructuredSVM(structure, alpha=0.1, max_iter=50, tol=0.1).fit(X, Y), X


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method", "given"),
    [
        ("chain", "predict", ()),
        ("multiclass", "predict", ()),
        ("mrf", "predict", ()),
        ("chain", "predict_kbest", (3,)),
        ("chain", "predict_marginals", ()),
    ],
)
def test_fifty_thousand_answers_leave_no_byte(name, method, given):
    model, X = model_of(name)
    ask = getattr(model, method)

    def answers(n):
        for i in range(n):
            ask(X[i % 20 : i % 20 + 1], *given)
        gc.collect()
        return sys.getallocatedblocks(), resident() if sys.platform == "linux" else 0

    for _ in range(3):
        answers(5000)
    counted = np.array([answers(n) for n in (2000, 17_000, 17_000, 17_000)])
    blocks, grown = np.diff(counted, axis=0).T
    # Interned numbers and caches of the interpreter; a leak of one object per call is 51,000.
    assert blocks.sum() < 100
    # Arrays of NumPy and native memory: a leak of 16 bytes per call is 272,000 in every round. One
    # round alone may meet a huge page, 2 MiB, where NumPy once asked for these.
    assert grown.min() < 50 * PAGE, grown


@pytest.mark.parametrize("name", sorted(CASES))
def test_threads_share_a_model(name):
    model, X = model_of(name, **CASES[name][0])
    model.predict(X[:1])
    expected = [model.predict(X[i : i + 1]) for i in range(20)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda i: model.predict(X[i % 20 : i % 20 + 1]), range(200)))
    for i, answer in enumerate(answers):
        assert str(answer) == str(expected[i % 20])


def test_a_file_answers_as_the_model_did(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 4
    for model in (StructuredSVM("multiclass").fit(X, y), ExtremeSVM(max_iter=3).fit(X, y)):
        model.save(tmp_path / "model.structsolve")
        loaded = structsolve.load(tmp_path / "model.structsolve")
        together = loaded.predict(X)
        assert [loaded.predict(X[i : i + 1])[0] for i in range(60)] == together.tolist()
