"""Losses of structures as PyTorch layers, forward and backward: pytorch-crf and torch-struct.

Chains: a conditional random field, the margin and decoding, on batches of 32 sentences of up to 50
words and 26 tags, with new lengths at every call, as in training; the same with the same lengths
at every call, of as many words, in the same turns; a short sentence, decoded by the structure's
name.  torch-struct has chains too, on tables of pairs of tags; it is timed on sentences of one
length.  Dependency trees: the negative log-likelihood of 32 sentences of 20 words, projective and
not, without and with relations of arcs, against the partition function of torch-struct.  Wall
times are medians over rounds in which all take turns, each for a few successive calls, as in
training; losses and gradients are compared.

    python benchmarks/torch_layers.py --threads 1 2 4
"""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from common import header, structsolve_or_none, table
from environments import enter, missing

#: Calls per turn; seconds after which a call gets no more turns.
CALLS, SECONDS = 10, 3


def medians(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each call; slow calls have fewer turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    draw = random.Random(0)
    for _ in range(rounds):
        # In another order each round: what follows a large peer finds cold memory.
        for name, call in draw.sample([*calls.items()], len(calls)):
            if sum(times[name]) > SECONDS:
                continue
            call()
            for _ in range(CALLS):
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(taken) for name, taken in times.items()}


def far(ours: Any, theirs: Any) -> str:
    """Largest difference of losses and gradients."""
    return f"{max(float((a - b).abs().max()) for a, b in zip(ours, theirs)):.0e}"


class Chains:
    """One batch of emissions, and the parameters of pytorch-crf."""

    def __init__(self, torch: Any, n: int, length: int, states: int):
        from torchcrf import CRF

        self.torch = torch
        self.crf = CRF(states, batch_first=True)
        self.emissions = torch.randn(n, length, states, requires_grad=True)
        self.tags = torch.randint(0, states, (n, length))
        drawn = torch.randint(1, length + 1, (500, n))
        drawn[:, 0] = length  # pytorch-crf and torch-struct need one sentence of full length
        self.fresh = itertools.cycle(drawn)
        self.next = lambda: next(self.fresh)
        words = drawn.sum(1).float()
        self.held = drawn[int((words - words.mean()).abs().argmin())]
        self.scores = {
            "node": self.emissions,
            "transition": self.crf.transitions,
            "start": self.crf.start_transitions,
            "end": self.crf.end_transitions,
        }

    def mask(self) -> Any:
        """The mask of the next lengths."""
        return self.torch.arange(self.tags.shape[1]) < self.next()[:, None]

    def hold(self) -> None:
        """Take the same lengths at every call from now on, of an average number of words."""
        self.next = lambda: self.held

    def learn(self, loss: Callable[[], Any]) -> Any:
        """Loss and gradients of all scores."""
        for tensor in self.scores.values():
            tensor.grad = None
        value = loss()
        value.backward()
        return [value.detach(), *(tensor.grad for tensor in self.scores.values())]

    def peer(self) -> Any:
        mask = self.mask()
        return self.learn(lambda: -self.crf(self.emissions, self.tags, mask, reduction="mean"))

    def peer_decode(self) -> Any:
        with self.torch.no_grad():
            return self.crf.decode(self.emissions, self.mask())

    def torch_struct(self) -> Any:
        from torch_struct import LinearChainCRF

        crf, states = self.crf, self.emissions.shape[2]

        def loss() -> Any:
            # Tables [later tag, earlier tag] of each pair of neighbours, as torch-struct has them.
            later = self.emissions[:, 1:, :, None] + crf.transitions.t()
            first = (self.emissions[:, 0] + crf.start_transitions)[:, None, None, :]
            tables = self.torch.cat([later[:, :1] + first, later[:, 1:]], 1)
            end = crf.end_transitions[:, None].expand(states, states)
            tables = self.torch.cat([tables[:, :-1], (tables[:, -1] + end)[:, None]], 1)
            chain = LinearChainCRF(tables)
            parts = chain.struct.to_parts(self.tags, states).to(tables)
            return -chain.log_prob(parts).mean()

        return self.learn(loss)


def chain_calls(batch: Chains, args: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Calls on chains, ours by name and threads."""
    from structsolve.torch import StructuredLoss, decode

    def learn(layer: Any, same: bool = False) -> Any:
        lengths = batch.held if same else batch.next()
        return batch.learn(lambda: layer(batch.scores, batch.tags, lengths))

    def best(structure: Any, n: int, same: bool = False) -> Any:
        with batch.torch.no_grad():
            return decode(structure, batch.scores, batch.held if same else batch.next(), n_jobs=n)

    calls: dict[str, Callable[[], Any]] = {}
    for n in args.threads:
        for name in ("crf", "margin"):
            layer = StructuredLoss("chain", name, n_jobs=n)
            calls[f"{name} {n}"] = functools.partial(learn, layer)
            calls[f"{name}, same {n}"] = functools.partial(learn, layer, True)
        calls[f"layer {n}"] = functools.partial(best, layer, n)
        calls[f"layer, same {n}"] = functools.partial(best, layer, n, True)
        calls[f"decode {n}"] = functools.partial(best, "chain", n)
    return calls | {"pytorch-crf": batch.peer, "its decode": batch.peer_decode}


def same_labels(ours: Any, theirs: Any) -> str:
    """Share of labels that differ."""
    rows = [(row[row >= 0].tolist(), own) for row, own in zip(ours, theirs)]
    differ = sum(a != b for row, own in rows for a, b in zip(row, own, strict=True))
    return f"{differ / sum(len(own) for _, own in rows):.0e}"


def chains(args: argparse.Namespace, torch: Any) -> list[list[str]]:
    """Rows on chains."""
    batch = Chains(torch, args.batch, args.length, args.states)
    calls, one = chain_calls(batch, args), args.threads[0]
    took = medians(calls, args.rounds)
    batch.hold()
    same = far(calls[f"crf {one}"](), batch.peer())
    decoded = same_labels(calls[f"decode {one}"](), batch.peer_decode())
    rows = [
        _row("CRF", "crf", args, took, "pytorch-crf", same),
        _row("CRF, the same lengths", "crf, same", args, took, "pytorch-crf", same),
        _row("margin", "margin", args, took, "pytorch-crf", ""),
        _row("margin, the same lengths", "margin, same", args, took, "pytorch-crf", ""),
        _row("decoding, by layer", "layer", args, took, "its decode", decoded),
        _row("decoding, the same lengths", "layer, same", args, took, "its decode", decoded),
        _row("decoding, by name", "decode", args, took, "its decode", decoded),
    ]
    if not args.quick:
        full = torch.full((args.batch,), args.length)
        batch.next = lambda: full
        calls["torch-struct"] = batch.torch_struct
        took = medians(calls, args.rounds)
        same = far(calls[f"crf {one}"](), batch.torch_struct())
        rows.append(_row("CRF, full lengths", "crf", args, took, "torch-struct", same))
    short = Chains(torch, 1, 6, 9)
    calls = chain_calls(short, args)
    took = medians(calls, args.rounds)
    decoded = same_labels(calls[f"decode {one}"](), short.peer_decode())
    rows.append(_row("one sentence of 6 words, CRF", "crf", args, took, "pytorch-crf", ""))
    rows.append(
        _row("one sentence of 6 words, by name", "decode", args, took, "its decode", decoded)
    )
    return rows


def trees(args: argparse.Namespace, torch: Any) -> list[list[str]]:
    """Rows on dependency trees, unlabelled and labelled."""
    return [*_trees(args, torch, 0), *_trees(args, torch, args.relations)]


def _trees(args: argparse.Namespace, torch: Any, relations: int) -> list[list[str]]:
    from torch_struct import DependencyCRF, NonProjectiveDependencyCRF

    from structsolve import get_structure
    from structsolve.torch import StructuredLoss

    n, words = args.batch, args.words
    # torch-struct: [head, word], the diagonal scores the root; ours: [head or root, word].
    row = (relations,) if relations else ()
    arcs = torch.randn(n, words, words, *row, requires_grad=True)
    word = torch.arange(words)
    root = arcs.detach()[:, word, word][:, None]
    table = torch.cat([root, arcs.detach()], 1).requires_grad_()
    heads = word.repeat(n, 1)  # the head of each word is the word before

    def learn(scores: Any, loss: Callable[[], Any]) -> Any:
        scores.grad = None
        value = loss()
        value.backward()
        return [value.detach(), scores.grad]

    def in_their_form(answer: Any) -> Any:
        value, gradient = answer
        gradient = gradient[:, 1:].clone()
        gradient[:, word, word] = answer[1][:, 0]
        return [value, gradient]

    rows = []
    for projective, kind in ((True, DependencyCRF), (False, NonProjectiveDependencyCRF)):
        structure = get_structure(
            "dependency", projective=projective, single_root=False, labelled=relations > 0
        )

        def peer(kind: Any = kind) -> Any:
            def loss() -> Any:
                taken = arcs[..., 0] if relations else arcs
                truth = taken[:, heads[0] - 1, word][:, 1:].sum(1) + taken[:, 0, 0]
                # torch-struct sums over relations where trees are projective.
                summed = relations and kind is NonProjectiveDependencyCRF
                scores = arcs.logsumexp(3) if summed else arcs
                return (kind(scores, multiroot=True).partition - truth).mean()

            return learn(arcs, loss)

        calls: dict[str, Callable[[], Any]] = {"torch-struct": peer}
        for jobs in args.threads:
            layer = StructuredLoss(structure, "crf", n_jobs=jobs)

            def ours(layer: Any = layer) -> Any:
                return learn(table, lambda: layer(table, heads * max(relations, 1)))

            calls[f"trees {jobs}"] = ours
        took = medians(calls, args.rounds)
        title = "projective trees" if projective else "trees"
        title += f", {relations} relations" if relations else ""
        same = far(in_their_form(calls[f"trees {args.threads[0]}"]()), peer())
        rows.append(_row(title, "trees", args, took, "torch-struct", same))
    return rows


def _row(
    title: str, ours: str, args: argparse.Namespace, took: dict[str, float], peer: str, same: str
) -> list[str]:
    first = took[f"{ours} {args.threads[0]}"]
    return [
        title,
        *(f"{took[f'{ours} {n}']:.2f}" for n in args.threads),
        peer,
        f"{took[peer]:.2f}",
        f"{took[peer] / first:.1f}",
        same,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--states", type=int, default=26)
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--relations", type=int, default=37)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--quick", action="store_true", help="without torch-struct's chains")
    args = parser.parse_args()
    enter("layers")
    header("PyTorch layers")
    print(missing("layers"), end="")
    if structsolve_or_none() is None:
        return
    import torch

    warnings.filterwarnings("ignore", category=UserWarning)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(
        f"{args.batch} examples; chains of up to {args.length} nodes and {args.states} states, "
        f"sentences of {args.words} words; float32, torch {torch.__version__} on one thread, "
        "forward and backward but for decoding; the difference is the largest of losses and "
        "gradients, the share of other labels for decoding\n"
    )
    threads = [f"ours, {n} thread{'s' * (n > 1)}, ms" for n in args.threads]
    columns = ["", *threads, "peer", "its ms", "peer / ours", "difference"]
    print(table(columns, [*chains(args, torch), *trees(args, torch)]))


if __name__ == "__main__":
    main()
