"""CTC as a PyTorch layer, forward and backward, beside torch's ctc_loss.

Frames and labels of one length in all examples; the layer of alignments takes scores less those of
the blank.  Losses and gradients are compared.  Milliseconds of CPU time, medians over rounds in
which both take turns.  torch-struct's AlignmentCRF is left out: it needs genbmm, which no package
index has.

    python benchmarks/alignment.py
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from common import header, structsolve_or_none, table
from environments import enter, missing


def learn(scores: Any, loss: Callable[[], Any]) -> tuple[float, Any]:
    """The value and the gradient of the scores."""
    scores.grad = None
    value = loss()
    value.backward()
    return float(value.detach()), scores.grad.clone()


def turns(calls: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], list[Any]]:
    """Median milliseconds of each call, and the last answers."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        answers = []
        for name, call in calls.items():
            start = time.process_time()
            answers.append(call())
            took[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(times) for name, times in took.items()}, answers


def log_partition(torch: Any, layer: Any, pairs: Any) -> Any:
    """The layer's log-partitions: its loss of one alignment, and the score of that."""
    n, items, m = pairs.shape
    partner = torch.arange(items).clamp(max=m - 1)
    score = pairs[:, torch.arange(items), partner].sum(1)
    return layer({"node": pairs}, (partner + 1).expand(n, items)) + score


def ctc(torch: Any, layer: Any, n: int, frames: int, m: int, rounds: int) -> list[Any]:
    """The row of CTC; class 0 is the blank, and all labels differ from their neighbours."""
    logits = torch.randn(n, frames, 30, requires_grad=True)
    labels = torch.randint(1, 15, (n, m))
    labels[:, 1::2] += 15
    sizes = torch.full((n,), frames), torch.full((n,), m)

    def ours() -> Any:
        logp = logits.log_softmax(2)
        pairs = logp.gather(2, labels[:, None].expand(n, frames, m)) - logp[:, :, :1]
        return -(log_partition(torch, layer, pairs) + logp[:, :, 0].sum(1)).mean()

    def peer() -> Any:
        logp = logits.log_softmax(2).transpose(0, 1)
        loss = torch.nn.functional.ctc_loss(logp, labels, *sizes, blank=0, reduction="none")
        return loss.mean()

    calls = {"ours": partial(learn, logits, ours), "peer": partial(learn, logits, peer)}
    took, answers = turns(calls, rounds)
    far = max(
        abs(answers[0][0] - answers[1][0]), float((answers[0][1] - answers[1][1]).abs().max())
    )
    return row_of(f"CTC, {frames} frames, {m} labels", "torch's ctc_loss", took, f"{far:.0e}")


def row_of(title: str, peer: str, took: dict[str, float], far: str) -> list[Any]:
    """A row of the table."""
    ours, theirs = took["ours"], took["peer"]
    return [title, f"{ours:.2f}", peer, f"{theirs:.2f}", f"{theirs / ours:.1f}", far]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    enter("layers")
    header("Alignments")
    print(missing("layers"), end="")
    structsolve = structsolve_or_none()
    if structsolve is None:
        return
    import torch

    from structsolve.torch import StructuredLoss

    torch.manual_seed(0)
    torch.set_num_threads(1)
    structure = structsolve.get_structure("alignment", kind="ctc")
    layer = StructuredLoss(structure, "crf", reduction="none")
    sizes = ((50, 10), (200, 40))
    rows = [ctc(torch, layer, args.batch, *size, args.rounds) for size in sizes]
    print(f"batches of {args.batch}, float32, torch {torch.__version__} on one thread\n")
    print(table(["", "ours, ms", "peer", "its ms", "peer / ours", "difference"], rows))


if __name__ == "__main__":
    main()
