"""Alignments as PyTorch layers, beside torch's ctc_loss and torch-struct's AlignmentCRF.

CTC: frames and labels of one length in all examples, the loss of torch and the log-partition of our
layer, which takes scores less those of the blank; losses and gradients are compared.  Edits: the
log-partition of tables of pairs beside that of torch-struct, which counts every order of the same
edits, so that its value is another; only the times are compared.  Milliseconds of CPU time, medians
over rounds in which both take turns.

    pip install torch torch-struct
    python benchmarks/alignment.py
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from common import header, structsolve_or_none, table


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


def log_partition(torch: Any, layer: Any, pairs: Any, more: dict[str, Any]) -> Any:
    """The layer's log-partitions: its loss of one alignment, and the score of that."""
    n, items, m = pairs.shape
    partner = torch.arange(items).clamp(max=m - 1)  # for edits all are in pairs
    score = pairs[:, torch.arange(items), partner].sum(1)
    return layer({"node": pairs, **more}, (partner + 1).expand(n, items)) + score


def ctc(torch: Any, layer: Any, n: int, frames: int, m: int, rounds: int) -> list[Any]:
    """The row of CTC; class 0 is the blank, and all labels differ from their neighbours."""
    logits = torch.randn(n, frames, 30, requires_grad=True)
    labels = torch.randint(1, 15, (n, m))
    labels[:, 1::2] += 15
    sizes = torch.full((n,), frames), torch.full((n,), m)

    def ours() -> Any:
        logp = logits.log_softmax(2)
        pairs = logp.gather(2, labels[:, None].expand(n, frames, m)) - logp[:, :, :1]
        return -(log_partition(torch, layer, pairs, {}) + logp[:, :, 0].sum(1)).mean()

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


def edits(torch: Any, layer: Any, n: int, items: int, rounds: int) -> list[Any]:
    """The row of edits of two sequences of one length."""
    from torch_struct import AlignmentCRF

    pairs = torch.randn(n, items, items, requires_grad=True)
    gap = torch.zeros(2)

    def ours() -> Any:
        return log_partition(torch, layer, pairs, {"gap": gap}).mean()

    def peer() -> Any:
        alone = torch.zeros_like(pairs)
        return AlignmentCRF(torch.stack([alone, pairs, alone], 3)).partition.mean()

    calls = {"ours": partial(learn, pairs, ours), "peer": partial(learn, pairs, peer)}
    took, _ = turns(calls, rounds)
    return row_of(f"edits, {items} by {items}", "torch-struct", took, "")


def row_of(title: str, peer: str, took: dict[str, float], far: str) -> list[Any]:
    """A row of the table."""
    ours, theirs = took["ours"], took["peer"]
    return [title, f"{ours:.2f}", peer, f"{theirs:.2f}", f"{theirs / ours:.1f}", far]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    header("Alignments")
    structsolve = structsolve_or_none()
    if structsolve is None:
        return
    try:
        import torch
        import torch_struct  # noqa: F401
    except ImportError as error:
        print(f"{error}: pip install torch torch-struct")
        return
    from structsolve.torch import StructuredLoss

    warnings.filterwarnings("ignore", category=UserWarning)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = {
        kind: StructuredLoss(
            structsolve.get_structure("alignment", kind=kind), "crf", reduction="none"
        )
        for kind in ("ctc", "edit")
    }
    n, rounds = args.batch, args.rounds
    rows = [
        *(ctc(torch, layers["ctc"], n, *size, rounds) for size in ((50, 10), (200, 40))),
        *(edits(torch, layers["edit"], n, size, rounds) for size in (10, 30)),
    ]
    print(f"batches of {n}, float32, torch {torch.__version__} on one thread\n")
    print(table(["", "ours, ms", "peer", "its ms", "peer / ours", "difference"], rows))


if __name__ == "__main__":
    main()
