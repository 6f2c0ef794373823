"""Numbers of distributions of chains: torch-struct and SynJax, on one thread.

Log-probability, entropy, cross-entropy, divergence (also with gradients), marginals, the best
label, the five best, and samples, of 32 sentences of 50 words and 26 tags in float32.  Both sides
have their scores ready: ours are words' scores and one table of pairs of tags, the peers' are a
table for every pair of neighbours.  Functions of JAX are compiled by ``jax.jit`` before.  Times are
process CPU milliseconds, the minimum over rounds in which all take turns; numbers are compared.
A peer that cannot be imported is named with the reason.

    python benchmarks/distributions.py
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table
from environments import enter, missing

#: Seconds after which a call gets no more turns; labels of a list of the best.
SECONDS, K = 4, 5
Calls = dict[str, Callable[[], Any]]


def scores(rng: Any, args: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Scores of words, and of pairs of tags."""
    node = rng.normal(size=(args.batch, args.length, args.states)).astype(np.float32)
    return node, rng.normal(size=(args.states, args.states)).astype(np.float32)


def torch_calls(args: argparse.Namespace) -> tuple[Calls, Calls]:
    """Ours and torch-struct's."""
    import torch
    from torch_struct import LinearChainCRF

    from structsolve.batch import Scores, k_best, score_space
    from structsolve.torch import Distribution, Marginals, Sample, decode

    torch.set_num_threads(1)
    rng, k = np.random.default_rng(0), args.states
    own, theirs = [], []
    for _ in range(2):
        node, pairs = map(torch.from_numpy, scores(rng, args))
        later = node[:, 1:, :, None] + pairs.t()  # [later tag, earlier tag]
        first = node[:, :1, None, :].expand(-1, 1, k, -1)
        tables = torch.cat([later[:, :1] + first, later[:, 1:]], 1).contiguous()
        own.append({"node": node.requires_grad_(), "transition": pairs.requires_grad_()})
        theirs.append(tables.detach().requires_grad_())
    p, q, chains = own[0], own[1], Distribution("chain")
    tags = torch.from_numpy(rng.integers(k, size=(args.batch, args.length)))
    parts = LinearChainCRF.struct.to_parts(tags, k).float()
    space = score_space("chain", k)
    flat = [t.detach().numpy() for t in p.values()]
    sizes = space.pack_sizes([args.length] * args.batch)
    given = Scores(flat[0].reshape(-1, k), {"transition": flat[1]}, examples=sizes)
    marginals, sample = Marginals("chain"), Sample("chain", n=K, random_state=0)

    def peer(name: str, *rest: Any) -> Callable[[], Any]:
        def call() -> Any:
            chain = LinearChainCRF(theirs[0])
            value = getattr(chain, name)
            arguments = [LinearChainCRF(theirs[1]) if one is q else one for one in rest]
            return value(*arguments) if callable(value) else value

        return call

    def still(call: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with torch.no_grad():
                return call()

        return run

    def learn(call: Callable[[], Any], leaves: Any) -> Callable[[], Any]:
        def run() -> Any:
            value = call()
            torch.autograd.grad(value.sum(), leaves)
            return value.detach()

        return run

    ours: Calls = {
        "log-probability": lambda: chains.log_proba(p, tags),
        "log-partition": lambda: chains.log_partition(p),
        "entropy": lambda: chains.entropy(p),
        "cross-entropy": lambda: chains.cross_entropy(p, q),
        "divergence": lambda: chains.kl_divergence(p, q),
        "marginals": lambda: marginals(p)["node"],
        "best label": lambda: decode(marginals, p),
        f"{K} best labels": lambda: np.array(k_best(space, given, K)[1]),
        f"{K} samples": lambda: sample(p),
    }
    others: Calls = {
        "log-probability": peer("log_prob", parts),
        "log-partition": peer("partition"),
        "entropy": peer("entropy"),
        "cross-entropy": peer("cross_entropy", q),
        "divergence": peer("kl", q),
        "marginals": lambda: _words(peer("marginals")()),
        "best label": lambda: LinearChainCRF.struct.from_parts(peer("argmax")())[0],
        f"{K} best labels": lambda: peer("kmax", K)().t(),
        f"{K} samples": peer("sample", (K,)),
    }
    alone = {"marginals", "best label", f"{K} best labels", f"{K} samples"}
    both = [*p.values()], [theirs[0]], [*p.values(), *q.values()], theirs
    for name in ("log-probability", "entropy", "divergence"):
        leaves = both[2:] if name == "divergence" else both[:2]
        ours[f"{name} and gradient"] = learn(ours[name], leaves[0])
        others[f"{name} and gradient"] = learn(others[name], leaves[1])
    # torch-struct finds marginals and labels by derivatives, which it needs to follow.
    still_ours = {n: c if "gradient" in n else still(c) for n, c in ours.items()}
    needed = {*alone, *(n for n in ours if "gradient" in n)}
    return still_ours, {n: c if n in needed else still(c) for n, c in others.items()}


def _words(tables: Any) -> Any:
    """Marginals of words, from those of pairs of neighbours [later, earlier]."""
    import torch

    return torch.cat([tables[:, :1].sum(2), tables.sum(3)], 1).detach()


def jax_calls(args: argparse.Namespace) -> tuple[Calls, Calls]:
    """Ours and SynJax's."""
    os.environ["JAXTYPING_DISABLE"] = "1"  # its checks of types refuse the classes of today
    import jax
    import synjax

    from structsolve.batch import Scores, k_best, samples, score_space
    from structsolve.jax import Distribution, Marginals, decode

    jnp, k, rng = jax.numpy, args.states, np.random.default_rng(0)
    own, theirs = [], []
    for _ in range(2):
        node, pairs = scores(rng, args)
        tables = node[:, :, None, :] + pairs  # [earlier tag, tag]; the first has one earlier tag
        tables[:, 0] = node[:, 0, None, :]
        own.append({"node": jnp.asarray(node), "transition": jnp.asarray(pairs)})
        theirs.append(jnp.asarray(tables))
    tags = rng.integers(k, size=(args.batch, args.length))
    earlier = np.concatenate([np.zeros((args.batch, 1), int), tags[:, :-1]], 1)
    parts = jnp.asarray(np.eye(k, dtype=np.float32)[earlier][..., None]
                        * np.eye(k, dtype=np.float32)[tags][:, :, None])  # fmt: skip
    chains, marginals, key = Distribution("chain"), Marginals("chain"), jax.random.PRNGKey(0)
    space = score_space("chain", k)
    sizes = space.pack_sizes([args.length] * args.batch)
    flat = np.asarray(own[0]["node"]).reshape(-1, k)
    given = Scores(flat, {"transition": np.asarray(own[0]["transition"])}, examples=sizes)

    def ready(function: Any, operands: Any, learn: bool = False) -> Callable[[], Any]:
        if learn:
            total = jax.value_and_grad(
                lambda *a: (function(*a).sum(), function(*a))[0], range(len(operands))
            )
            compiled = jax.jit(lambda *a: total(*a))
            return lambda: jax.block_until_ready(compiled(*operands))[0]
        compiled = jax.jit(function)
        return lambda: jax.block_until_ready(compiled(*operands))

    chain = synjax.LinearChainCRF
    numbers = {
        "log-probability": (
            lambda p: chains.log_proba(p, tags), lambda t: chain(t).log_prob(parts)
        ),
        "log-partition": (chains.log_partition, lambda t: chain(t).log_partition()),
        "entropy": (chains.entropy, lambda t: chain(t).entropy()),
        "cross-entropy": (chains.cross_entropy, lambda t, u: chain(t).cross_entropy(chain(u))),
        "divergence": (chains.kl_divergence, lambda t, u: chain(t).kl_divergence(chain(u))),
        "marginals": (lambda p: marginals(p)["node"], lambda t: chain(t).marginals().sum(2)),
        "best label": (
            lambda p: decode(marginals, p), lambda t: chain(t).argmax().sum(2).argmax(-1)
        ),
    }  # fmt: skip
    ours, others = {}, {}
    for name, (mine, peer) in numbers.items():
        n = 2 if name in ("cross-entropy", "divergence") else 1
        ours[name], others[name] = ready(mine, own[:n]), ready(peer, theirs[:n])
        if name in ("log-probability", "entropy", "divergence"):
            ours[f"{name} and gradient"] = ready(mine, own[:n], True)
            others[f"{name} and gradient"] = ready(peer, theirs[:n], True)
    ours[f"{K} best labels"] = lambda: np.array(k_best(space, given, K)[1])
    others[f"{K} best labels"] = ready(lambda t: chain(t).top_k(K)[1].T, theirs[:1])
    ours[f"{K} samples"] = lambda: samples(space, given, K, 0)
    others[f"{K} samples"] = ready(lambda t: chain(t).sample(key, K), theirs[:1])
    return ours, others


def fastest(calls: Calls, rounds: int) -> dict[str, float]:
    """Fewest CPU milliseconds of each call; slow calls have fewer turns."""
    least: dict[str, float] = {}
    spent = dict.fromkeys(calls, 0.0)
    for _ in range(rounds):
        for name, call in calls.items():
            if spent[name] > SECONDS:
                continue
            call()  # not counted: the first call after a peer's takes up to twice as long
            start = time.process_time()
            call()
            took = time.process_time() - start
            spent[name] += took
            least[name] = min(1e3 * took, least.get(name, np.inf))
    return least


def rows(calls: tuple[Calls, Calls], args: argparse.Namespace) -> list[list[str]]:
    """One row for each number."""
    ours, theirs = calls
    both = {(name, who): c for who, own in enumerate(calls) for name, c in own.items()}
    took = fastest(both, args.rounds)  # type: ignore[arg-type]
    answer = []
    for name in ours:
        if "samples" in name:
            apart = ""
        else:
            first, second = (c[name]() for c in (ours, theirs))
            first, second = (
                np.asarray(x.detach() if hasattr(x, "detach") else x, np.float64)
                for x in (first, second)
            )
            apart = f"{np.abs(first - second).max() / max(1, np.abs(second).max()):.0e}"
        mine, peer = took[name, 0], took[name, 1]
        answer.append([name, f"{mine:.2f}", f"{peer:.2f}", f"{peer / mine:.0f}", apart])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--states", type=int, default=26)
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args()
    enter("layers")
    header("Distributions")
    print(missing("layers"))
    if structsolve_or_none() is None:
        return
    warnings.filterwarnings("ignore")
    if hasattr(os, "sched_setaffinity"):  # one thread, also of what XLA does
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(
        f"{args.batch} chains of {args.length} nodes and {args.states} states, float32, one "
        "thread; the difference is the largest, over the largest number\n"
    )
    for peer, calls in (("torch_struct", torch_calls), ("synjax", jax_calls)):
        name = {"torch_struct": "torch-struct", "synjax": "SynJax"}[peer]
        print(f"### Against {name}\n")
        try:
            made = calls(args)
        except ImportError as error:
            print(f"not compared, because it cannot be imported: {error}\n")
            continue
        print(
            table(["", "ours, ms", f"{name}, ms", "ratio", "difference"], rows(made, args)) + "\n"
        )


if __name__ == "__main__":
    main()
