"""A few cases of the fuzzer of layers: ``.ci/fuzz SECONDS torch jax`` runs more."""

import os

import pytest
from programs import fuzzed

pytest.importorskip("torch", reason="needs the extra [torch]")
pytest.importorskip("jax", reason="needs the extra [jax]")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in processes that fork")
def test_no_input_crashes():
    """One process for both, as each would import what they share."""
    work = [(target, range(25)) for target in ("torch", "jax")]
    told = fuzzed(work)
    assert [target for target, *_ in told] == ["torch", "jax"]
    assert all(refused < count for _, count, refused in told)
