"""Losses of chains under JAX's vmap: a mapped loss of one sentence against a batch of sentences.

A conditional random field's loss and gradients of 32 sentences of up to 50 words and 26 tags, under
jit: one batch, the loss of one sentence under ``jax.vmap``, and one call for each sentence; then
one batch without jit, and its loss alone.  Wall times are minima over rounds in which all take
turns.

    python benchmarks/jax_layers.py
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table
from environments import enter, missing


def ways(jax: Any, args: argparse.Namespace) -> dict[str, Any]:
    """The same loss and gradients, by several ways."""
    from structsolve.jax import StructuredLoss

    jnp, rng = jax.numpy, np.random.default_rng(0)
    n, longest, k = args.batch, args.length, args.states
    node = jnp.asarray(rng.normal(size=(n, longest, k)), jnp.float32)
    pairs = jnp.asarray(rng.normal(size=(k, k)), jnp.float32)
    labels = jnp.asarray(rng.integers(k, size=(n, longest)))
    lengths = jnp.asarray(rng.integers(1, longest + 1, size=n))
    loss = StructuredLoss("chain", "crf")

    def batch(node: Any, pairs: Any) -> Any:
        return loss({"node": node, "transition": pairs}, labels, lengths)

    def one(node: Any, labels: Any, length: Any, pairs: Any) -> Any:
        return batch_of(node[None], labels[None], length[None], pairs)

    def batch_of(node: Any, labels: Any, lengths: Any, pairs: Any) -> Any:
        return loss({"node": node, "transition": pairs}, labels, lengths)

    def mapped(node: Any, pairs: Any) -> Any:
        return jax.vmap(one, (0, 0, 0, None))(node, labels, lengths, pairs).mean()

    def single(node: Any, pairs: Any) -> Any:
        each = [one(node[i], labels[i], lengths[i], pairs) for i in range(n)]
        return jnp.stack(each).mean()

    named = {"one batch": batch, "vmap": mapped, "a call per sentence": single}
    functions = {name: jax.jit(jax.value_and_grad(f, (0, 1))) for name, f in named.items()}
    functions["one batch, without jit"] = jax.value_and_grad(batch, (0, 1))
    functions["its loss alone, without jit"] = lambda *given: (batch(*given), ())
    return {n: lambda f=f: jax.block_until_ready(f(node, pairs)) for n, f in functions.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--states", type=int, default=26)
    parser.add_argument("--rounds", type=int, default=50)
    args = parser.parse_args()
    enter("layers")
    header("JAX layers")
    print(missing("layers"), end="")
    if structsolve_or_none() is None:
        return
    import jax

    warnings.filterwarnings("ignore", category=UserWarning)
    calls = ways(jax, args)
    answers = {name: call() for name, call in calls.items()}
    took = {name: float("inf") for name in calls}
    for _ in range(args.rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            took[name] = min(took[name], time.perf_counter() - start)
    print(f"{args.batch} sentences, float32, jax {jax.__version__}, forward and backward\n")
    first = answers["one batch"]
    rows = []
    for name, (value, grads) in answers.items():
        differ = max(
            float(abs(a - b).max())
            for a, b in zip((value, *grads), (first[0], *first[1][: len(grads)]))
        )
        rows.append(
            [
                name,
                f"{1e3 * took[name]:.2f}",
                f"{took[name] / took['one batch']:.1f}",
                f"{differ:.0e}",
            ]
        )
    print(table(["", "ms", "of one batch", "difference"], rows))


if __name__ == "__main__":
    main()
