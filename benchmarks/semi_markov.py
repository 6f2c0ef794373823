"""Segmentations: chunking beside a chain of tags on the same features, layers beside torch-struct.

CoNLL-2000 chunking, the attributes of `chunking.py`: a chain over IOB2 tags, with the Hamming loss,
and segments, with the loss of tokens and with that of spans, by BCFW; CPU seconds of training and
of tagging the test set (the best of `--repeat` turns), and span F1.

The layer: the negative log-likelihood of a batch of segmentations and its gradients, in float32,
beside the partition function of torch-struct's SemiMarkovCRF, whose tables of a score for each
length and pair of classes are made of the same scores; milliseconds of CPU time, medians over
rounds in which both take turns.

    STRUCTSOLVE_DATA=... python benchmarks/semi_markov.py
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import chunk_matrices
from environments import enter, missing

RUNS = {
    "chain of tags": ("chain", "hamming"),
    "segments, tokens' loss": ("semi-markov", "hamming"),
    "segments, spans' loss": ("semi-markov", "span"),
}


def chunking(structsolve: Any, repeat: int, passes: int) -> None:
    """Print F1 and CPU seconds of both structures."""
    from structsolve.plugins.chain.metrics import span_f1

    X, y, X_test, y_test = chunk_matrices()
    best: dict[str, list[float]] = {}
    for _ in range(repeat):
        for name, (structure, loss) in RUNS.items():
            model = structsolve.StructuredSVM(
                structure, loss=loss, solver="bcfw", alpha=1 / (0.1 * len(X)), max_iter=passes,
                tol=0, random_state=0,
            )  # fmt: skip
            with Clock() as fit:
                model.fit(X, y)
            with Clock() as tag:
                guess = model.predict(X_test)
            now = [fit.cpu, tag.cpu, 100 * span_f1(y_test, guess)["f1"]]
            best[name] = [*np.minimum(now[:2], best.get(name, now)[:2]), now[2]]
    chain = best["chain of tags"]
    rows = [
        [name, f"{f1:.2f}", f"{fit:.2f}", f"{fit / chain[0]:.2f}", f"{tag:.3f}",
         f"{tag / chain[1]:.2f}"]
        for name, (fit, tag, f1) in best.items()
    ]  # fmt: skip
    print(f"CoNLL-2000, {passes} passes over {len(X)} sentences, {len(X_test)} to tag\n")
    print(table(["", "span F1", "fit, s", "/ chain", "tag, s", "/ chain"], rows))


def peer_tables(torch: Any, scores: dict[str, Any], most: int) -> Any:
    """torch-struct's potentials [start, length, next class, class] of the same segmentations."""
    node = scores["node"]
    n, length, _, K = node.shape
    sums = torch.cat([node.new_zeros(n, 1, K), node[:, :, 0].cumsum(1)], 1)
    tables = []
    for size in range(1, most + 1):
        # Segments of a size, by their first token; beyond the end there are none.
        count = length - size + 1
        own = sums[:, size:] - sums[:, :-size] + node[:, :count, 1] + node[:, size - 1 :, 2]
        own = own + scores["length"][size - 1]
        own = torch.cat([own[:, :1] + scores["start"], own[:, 1:]], 1)
        inner = own[:, :-1, None, :] + scores["transition"].t()
        # Behind the last segment there is one class.
        last = own.new_full((n, 1, K, K), -1e9)
        last[:, 0, 0] = own[:, -1] + scores["end"]
        rest = own.new_full((n, size - 1, K, K), -1e9)
        tables.append(torch.cat([inner, last, rest], 1))
    none = torch.full_like(tables[0], -1e9)
    return torch.stack([none, *tables], 2)


def peer_value(torch: Any, scores: dict[str, Any], labels: Any, most: int) -> Any:
    """The mean negative log-likelihood of segments of one token each, by torch-struct."""
    from torch_struct import SemiMarkovCRF

    node, (n, length) = scores["node"], labels.shape
    truth = node.sum(2)[torch.arange(n)[:, None], torch.arange(length), labels].sum(1)
    truth = truth + scores["length"][0][labels].sum(1)
    truth = truth + scores["transition"][labels[:, :-1], labels[:, 1:]].sum(1)
    truth = truth + scores["start"][labels[:, 0]] + scores["end"][labels[:, -1]]
    return (SemiMarkovCRF(peer_tables(torch, scores, most)).partition - truth).mean()


def learn(scores: dict[str, Any], loss: Callable[[], Any]) -> list[Any]:
    """The loss and the gradients of all scores."""
    for tensor in scores.values():
        tensor.grad = None
    value = loss()
    value.backward()
    return [value.detach(), *(tensor.grad for tensor in scores.values())]


def layers(structsolve: Any, args: argparse.Namespace) -> None:
    """Print milliseconds of the layer and of torch-struct."""
    import torch

    from structsolve.torch import StructuredLoss

    warnings.filterwarnings("ignore", category=UserWarning)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = []
    for K, most in ((4, 4), (8, 6)):
        n, length = args.batch, args.length
        shapes: dict[str, tuple[int, ...]] = {
            "transition": (K, K), "start": (K,), "end": (K,), "length": (most, K),
            "node": (n, length, 3, K),
        }  # fmt: skip
        scores = {name: torch.randn(*shape, requires_grad=True) for name, shape in shapes.items()}
        labels = torch.randint(0, K, (n, length))  # segments of one token
        layer = StructuredLoss(structsolve.get_structure("semi-markov", max_length=most), "crf")
        calls = (
            partial(layer, scores, labels),
            partial(peer_value, torch, scores, labels, most),
        )
        took: list[list[float]] = [[], []]
        for _ in range(args.rounds):
            answers = []
            for call, times in zip(calls, took):
                start = time.process_time()
                answers.append(learn(scores, call))
                times.append(1e3 * (time.process_time() - start))
        far = max(float((a - b).abs().max()) for a, b in zip(*answers))
        mine, theirs = map(statistics.median, took)
        rows.append(
            [f"{K} classes, up to {most} tokens", f"{mine:.2f}", f"{theirs:.1f}",
             f"{theirs / mine:.0f}", f"{far:.0e}"]
        )  # fmt: skip
    print(f"layers, {args.batch} sequences of {args.length} tokens, torch {torch.__version__}\n")
    print(table(["", "ours, ms", "torch-struct, ms", "peer / ours", "difference"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--layers-only", action="store_true", help="without CoNLL-2000")
    args = parser.parse_args()
    enter("layers")
    header("Segmentations")
    print(missing("layers"), end="")
    structsolve = structsolve_or_none()
    if structsolve is None:
        return
    if not args.layers_only:
        chunking(structsolve, args.repeat, args.passes)
    layers(structsolve, args)


if __name__ == "__main__":
    main()
