"""JAX arrays as tests give them."""

import pytest

pytest.importorskip("jax", reason="needs the extra [jax]")

from contextlib import suppress
from functools import cache

import jax.numpy as jnp
import numpy as np

# JAX makes a context for each graph, which takes longer than to write a small graph into it.
with suppress(ImportError, AttributeError):  # of JAX's own: other releases may lack them
    from jax._src.interpreters import mlir

    mlir.make_ir_context = cache(mlir.make_ir_context)


def arrays(case):
    return {name: jnp.asarray(t.detach().numpy()) for name, t in case.scores.items()}


def given(case):
    """Return the example's sizes as an array; graphs are unchanged."""
    more = dict(case.given)
    lengths = more.pop("lengths", None)
    return (None if lengths is None else jnp.asarray(np.asarray(lengths))), more
