"""Code shared by neural_parser.py and neural_ocr.py: batches, stages of surrogates, a report.

A network is trained from random weights with the margin.  From these weights, the margin and
ProbLoss both continue, as in the thesis.  The CRF is trained from random weights over as many
epochs.
"""

import argparse
import copy
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from scipy.stats import ttest_1samp

from structsolve.torch import StructuredLoss, decode

#: Name of a run: the surrogates of its two stages.
RUNS = {
    "margin": ("margin", "margin"),
    "ProbLoss": ("margin", "probloss"),
    "CRF": ("crf", "crf"),
}


def by_length(examples):
    """Groups of examples of equal length, so that nothing is padded.

    Takes tuples of arrays, labels last; returns a list of tuples of tensors.
    """
    groups = {}
    for example in examples:
        groups.setdefault(len(example[-1]), []).append(example)
    return [
        tuple(torch.from_numpy(np.stack(arrays)) for arrays in zip(*groups[length], strict=True))
        for length in sorted(groups)
    ]


def batches(groups, nodes, rng=None):
    """Batches of a number of nodes, or up to an example more; in random order with a generator."""
    picked = []
    for group in groups:
        n, length = group[-1].shape
        order = np.arange(n) if rng is None else rng.permutation(n)
        picked += [(group, part) for part in np.array_split(order, -(-n * length // nodes))]
    if rng is not None:
        rng.shuffle(picked)
    for group, part in picked:
        yield tuple(tensor[torch.from_numpy(part)] for tensor in group)


def right(network, structure, groups, part=1):
    """Share of right labels, divided by `part` without remainder, over all nodes, in percent."""
    network.eval()
    good = total = 0
    with torch.no_grad():
        for *inputs, labels in batches(groups, 1000):
            good += int((decode(structure, network(*inputs)) // part == labels // part).sum())
            total += labels.numel()
    return 100 * good / total


@dataclass
class Stage:
    """A trained network and its training curve, with a point for each epoch."""

    network: torch.nn.Module
    curve: list = field(default_factory=list)

    def figures(self, test, structure, divisors):
        """The curve, and the best epoch's scores: on development data, and by divisor on test."""
        dev, weights = max(self.curve, key=lambda point: point[0])
        network = copy.deepcopy(self.network)
        network.load_state_dict(weights)
        scores = [right(network, structure, test, part) for part in divisors]
        return {"curve": [share for share, _ in self.curve], "best": [dev, *scores]}


def train(start, surrogate, number, structure, data, args, seed):
    """Epochs of Adam from a stage's last weights; the rate of stage 1 falls linearly to 0."""
    epochs, rate = args.epochs[number], args.rates[number]
    network, curve = copy.deepcopy(start.network), list(start.curve)
    loss = StructuredLoss(structure, surrogate, reduction="sum")
    optimizer = torch.optim.Adam(network.parameters(), betas=(0.9, 0.95), fused=True)
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    clock = time.process_time()
    for epoch in range(epochs):
        network.train()
        several = list(batches(data["train"], args.nodes, rng))
        for step, (*inputs, labels) in enumerate(several):
            done = (epoch + step / len(several)) / epochs
            optimizer.param_groups[0]["lr"] = rate - done * rate if number else rate
            value = loss(network(*inputs), labels) / labels.numel()
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
        share = right(network, structure, data["dev"])
        curve.append((share, copy.deepcopy(network.state_dict())))
    clock = (time.process_time() - clock) / epochs
    shares = " ".join(f"{share:.2f}" for share, _ in curve[-epochs:])
    print(f"- seed {seed}, {surrogate}: {shares} % right, {clock:.1f} s an epoch", flush=True)
    return Stage(network, curve)


def experiment(make, structure, data, measures, args):
    """All runs from all seeds: name -> figures for each seed, after those of the file to join."""
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, one thread.  On development data, after each epoch:\n")
    told = {name: [] for name in args.runs}
    for seed in args.seeds:
        torch.manual_seed(seed)
        begin, firsts = Stage(make()), {}
        for name in args.runs:
            first, second = RUNS[name]
            if first not in firsts:
                firsts[first] = train(begin, first, 0, structure, data, args, seed)
            stage = train(firsts[first], second, 1, structure, data, args, seed)
            told[name].append(stage.figures(data["test"], structure, measures.values()))
    if args.join:
        joined = Path(args.join)
        others = json.loads(joined.read_text()) if joined.exists() else {}
        told = {name: others.get(name, []) + several for name, several in told.items()}
        joined.write_text(json.dumps(told))
    return told


def options(title, **defaults):
    """Print a title; return the options that both scripts have."""
    print(f"## {title}\n")
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--epochs", type=int, nargs=2, help="of each stage")
    parser.add_argument("--rates", type=float, nargs=2, help="of each stage; the second falls to 0")
    parser.add_argument("--nodes", type=int, help="words or letters of a batch")
    parser.add_argument("--most", type=int, default=None, help="examples of each part")
    parser.add_argument("--picture", help="a file for the curves")
    parser.add_argument(
        "--join", help="a file of other seeds' figures, reported and kept with these"
    )
    parser.set_defaults(**defaults)
    return parser


def report(told, measures, linear, error=False):
    """Print a table of the shares of right, or wrong, labels on development and test data.

    Measures are names and divisors of labels; the first one is also that of the curves.
    """

    def shown(values):
        values = 100 - values if error else values
        return f"{values.mean():.2f} ({' '.join(f'{value:.2f}' for value in values)})"

    best = {name: np.array([one["best"] for one in several]).T for name, several in told.items()}
    columns = [f"{next(iter(measures))}, dev", *(f"{what}, test" for what in measures)]
    print(f"\n| scores | surrogate | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 2)}")
    for row in linear if "STRUCTSOLVE_DATA" in os.environ else []:
        print(f"| linear | {' | '.join(row)} |")
    for name, figures in best.items():
        print(f"| network | {name} | {' | '.join(map(shown, figures))} |")
    for name in [name for name in best if name != "margin"]:
        print(f"\n{name}, points more right than the margin, by seed:\n")
        for column, more in zip(columns, best[name] - best["margin"], strict=True):
            print(f"- {column}: {paired(more)} ({' '.join(f'{one:+.2f}' for one in more)})")
    print(f"\nCPU: {time.process_time() / 60:.1f} min in all")


def paired(more):
    """Mean of differences, with standard error and a t-test if there are several."""
    if len(more) == 1:
        return f"{more[0]:+.2f}"
    error, p = more.std(ddof=1) / len(more) ** 0.5, ttest_1samp(more, 0).pvalue
    return f"{more.mean():+.3f}, standard error {error:.3f}, p = {p:.3f}"


def draw(told, path, what, error=False):
    """Curves on development data: a thin line for each seed, a thick one for their mean."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    for (name, several), colour in zip(told.items(), ("C0", "C3", "C2"), strict=False):
        curves = np.array([one["curve"] for one in several])
        curves = 100 - curves if error else curves
        epochs = np.arange(1, curves.shape[1] + 1)
        axes.plot(epochs, curves.T, color=colour, lw=0.6, alpha=0.6)
        axes.plot(epochs, curves.mean(axis=0), "o-", color=colour, ms=3, label=name)
    axes.set(xlabel="epoch", xticks=epochs, ylabel=f"{what}, development data")
    if error:
        axes.set_yscale("log")
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which("{x:g}")
    axes.legend()
    figure.savefig(path, dpi=110)
