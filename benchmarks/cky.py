"""Trees over spans, forward and backward: negative log-likelihoods beside torch-struct's.

TreeCRF of torch-struct has scores of spans with classes, SentCFG those of rules over words.  Ours
take the same scores.  Sentences of one length, float32, one thread.  Wall times are medians over
rounds in which both take turns; the difference is the largest of losses and gradients.

    python benchmarks/cky.py [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from common import header, structsolve_or_none, table
from environments import enter, missing


def medians(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median milliseconds of calls that take turns, after one call each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(taken) for name, taken in times.items()}


def learn(torch: Any, inputs: list[Any], loss: Callable[[], Any]) -> list[Any]:
    """Values and gradients."""
    values = loss()
    return [values.detach(), *torch.autograd.grad(values.sum(), inputs)]


def row(name: str, took: dict[str, float], far: float) -> list[str]:
    """A row of the table."""
    ours, peer = took["ours"], took["torch-struct"]
    return [name, f"{ours:.2f}", f"{peer:.1f}", f"{peer / ours:.0f}", f"{far:.0e}"]


def of_spans(torch: Any, n: int, words: int, classes: int, rounds: int) -> list[str]:
    """Scores of spans with classes."""
    from torch_struct import TreeCRF

    from structsolve.torch import StructuredLoss

    scores = torch.randn(n, words, words, classes, requires_grad=True)
    layer, labels = (
        StructuredLoss("cky", "crf", reduction="none"),
        _chains(torch, n, words, classes),
    )
    lengths = [words] * n

    def ours() -> Any:
        return learn(torch, [scores], lambda: layer(scores, labels, lengths))

    def peer() -> Any:
        def loss() -> Any:
            k = torch.arange(words)
            truth = scores[:, k, -1, 0].sum(1) + scores[:, k[:-1], k[:-1], 0].sum(1)
            return TreeCRF(scores).partition - truth

        return learn(torch, [scores], loss)

    took = medians({"ours": ours, "torch-struct": peer}, rounds)
    far = max(float((a - b).abs().max()) for a, b in zip(ours(), peer(), strict=True))
    return row(f"spans: {n} sentences of {words} words, {classes} classes", took, far)


def _chains(torch: Any, n: int, words: int, classes: int) -> Any:
    """Labels of trees that take off one word after the other, all of class 0."""
    label = []
    for i in range(words):
        first = i * words - i * (i - 1) // 2
        label += [first] if i == words - 1 else [first, first + words - i - 1]
    return torch.tensor(label).repeat(n, 1) * classes


def of_rules(torch: Any, n: int, words: int, classes: int, rounds: int) -> list[str]:
    """A grammar: half of the classes are of words, the others of longer spans."""
    from torch_struct import SentCFG

    from structsolve import get_structure
    from structsolve.torch import StructuredLoss

    half = classes // 2
    terms = torch.randn(n, words, half, requires_grad=True)
    rules = torch.randn(half, classes, classes, requires_grad=True)
    listed = [(a, b, c) for a in range(half) for b in range(classes) for c in range(classes)]
    structure = get_structure("cky", grammar=True, rules=listed)
    layer = StructuredLoss(structure, "crf", classes=classes, reduction="none")
    barred = torch.full((n, words, words, classes), -float("inf"))
    barred[..., :half] = 0
    word = torch.arange(words)
    labels, lengths = _chains(torch, n, words, classes), [words] * n
    # The words of the true tree have the first class of words.
    labels[:, [*range(1, 2 * words - 1, 2), 2 * words - 2]] += half

    def ours() -> Any:
        table = barred.clone()
        table[:, word, word, :half] = -float("inf")
        table[:, word, word, half:] = terms
        given = {"node": table, "rule": rules.reshape(-1)}
        return learn(torch, [terms, rules], lambda: layer(given, labels, lengths))

    def peer() -> Any:
        def loss() -> Any:
            truth = terms[:, :, 0].sum(1) + rules[0, half, 0] * (words - 2) + rules[0, half, half]
            each = rules.expand(n, -1, -1, -1)
            return SentCFG((terms, each, torch.zeros(n, half))).partition - truth

        return learn(torch, [terms, rules], loss)

    took = medians({"ours": ours, "torch-struct": peer}, rounds)
    far = max(float((a - b).abs().max()) for a, b in zip(ours(), peer(), strict=True))
    name = f"grammar: {n} sentences of {words} words, {classes} classes, {len(listed)} rules"
    return row(name, took, far)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="short sentences")
    args = parser.parse_args()
    enter("layers")
    header("Trees over spans")
    print(missing("layers"), end="")
    if structsolve_or_none() is None:
        return
    import torch

    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = [(32, 10, 10)] if args.quick else [(32, 10, 10), (32, 20, 30)]
    rows = [of_spans(torch, *size, args.rounds) for size in sizes]
    sizes = [(8, 8, 8)] if args.quick else [(8, 8, 8), (8, 12, 12)]
    rows += [of_rules(torch, *size, args.rounds) for size in sizes]
    columns = ["", "ours, ms", "torch-struct, ms", "its / ours", "difference"]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
