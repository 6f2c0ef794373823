"""A few cases of the fuzzer of layers: ``.ci/fuzz SECONDS torch jax`` runs more."""

import os
import re
import subprocess
import sys

import pytest
from doc_code import SHARED

pytest.importorskip("torch", reason="needs the extra [torch]")
pytest.importorskip("jax", reason="needs the extra [jax]")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in processes that fork")
def test_no_input_crashes():
    """One process for both, as each would import what they share."""
    work = [(target, range(25)) for target in ("torch", "jax")]
    script = f"from fuzz.worker import report; exit(report({work!r}))"
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=SHARED,
        env={**os.environ, "PYTHONPATH": str(SHARED), "OMP_NUM_THREADS": "1"},
    )
    assert process.returncode == 0, process.stdout + process.stderr[-2000:]
    told = re.findall(r"^(\w+) (\d+) (\d+)$", process.stdout, re.M)
    assert [target for target, *_ in told] == ["torch", "jax"]
    assert all(int(refused) < int(count) for _, count, refused in told)
