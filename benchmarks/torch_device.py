"""Chains whose scores lie on a GPU: computed there, or copied to compiled code on the CPU.

A conditional random field's loss with gradients, and decoding, of batches of sentences of up to 50
words, by both ways of ``structsolve.torch.on_device``.  Wall times are minima over rounds in which
both take turns; losses, gradients and labels are compared.  The last line has the least number of
pairs of labels per position (sentences x tags^2) from which the device wins, for the rule in
``plugins/chain/_device.py``.  Without a GPU both ways run on the CPU, to try the script.

    pip install torch
    python benchmarks/torch_device.py
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from common import header, structsolve_or_none, table


def seconds(torch: Any, device: str, ways: dict[str, Any], rounds: int) -> dict[str, float]:
    """Least seconds of each way."""
    took = {name: float("inf") for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            start = time.perf_counter()
            call()
            if device != "cpu":
                torch.cuda.synchronize()
            took[name] = min(took[name], time.perf_counter() - start)
    return took


def batch(torch: Any, args: argparse.Namespace, n: int, states: int) -> tuple[Any, Any]:
    """The loss with gradients, and decoding, of one batch."""
    from structsolve.torch import StructuredLoss, decode, on_device

    shapes = {"node": (n, args.length, states), "transition": (states, states)}
    scores = {
        name: torch.randn(shape, device=args.device, requires_grad=True)
        for name, shape in shapes.items()
    }
    labels = torch.randint(0, states, (n, args.length), device=args.device)
    lengths = torch.randint(1, args.length + 1, (n,))
    layer = StructuredLoss("chain", "crf")

    def learn(here: bool) -> Any:
        with on_device(here):
            value = layer(scores, labels, lengths)
            return [value.detach(), *torch.autograd.grad(value, list(scores.values()))]

    def best(here: bool) -> Any:
        with on_device(here), torch.no_grad():
            return [decode(layer, scores, lengths).double()]

    return learn, best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="cuda where there is one, else cpu")
    parser.add_argument("--batches", type=int, nargs="+", default=[8, 32, 128, 512, 2048])
    parser.add_argument("--states", type=int, nargs="+", default=[5, 26, 100])
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    header("Chains on the device")
    if structsolve_or_none() is None:
        return
    try:
        import torch
    except ImportError as error:
        print(f"{error}: pip install torch")
        return
    args.device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if args.device == "cuda" else args.device
    print(f"{name}; float32, torch {torch.__version__}; ms there, and by compiled code\n")
    torch.manual_seed(0)
    rows, wins = [], []
    for states in args.states:
        for n in args.batches:
            row = [str(states), str(n), str(n * states**2)]
            for task, call in zip(("loss", "labels"), batch(torch, args, n, states)):
                ways = {"there": lambda f=call: f(True), "copied": lambda f=call: f(False)}
                far = max(float((a - b).abs().max()) for a, b in zip(call(True), call(False)))
                took = seconds(torch, args.device, ways, args.rounds)
                row += [f"{1e3 * took['there']:.2f}", f"{1e3 * took['copied']:.2f}", f"{far:.0e}"]
                if task == "loss":
                    wins.append((n * states**2, took["there"] < took["copied"]))
            rows.append(row)
    columns = ["tags", "sentences", "pairs", "loss", "copied", "far", "labels", "copied", "far"]
    print(table(columns, rows))
    lost = max((pairs for pairs, won in wins if not won), default=0)
    least = min((pairs for pairs, won in wins if won and pairs > lost), default=None)
    print(f"\nThe device wins from {least} pairs on." if least else "\nThe device never wins.")


if __name__ == "__main__":
    main()
