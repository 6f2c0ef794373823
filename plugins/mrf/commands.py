"""``structsolve decode``: the best labels of a complete model in a file, without training."""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

import numpy as np

from structsolve import registry
from structsolve.cli import messages
from structsolve.cli.options import UsageError, check_outputs
from structsolve.io._text import atomic_write, bad_line, number_of, text_lines

# Arrays of a Potts model that do not affect the energy: height and width.
ABOUT_PICTURES = ("size", "shape")

# Decoders that pass messages.
OF_MESSAGES = ("auto", "trws", "expansion")

# Parameters of decoders, which assignments do not have.
OF_GRAPHS = ("oracle", "max_iter", "time_limit")


def add_decode(parser: argparse.ArgumentParser) -> Any:
    """Find the best labels of a complete model in a file.

    Parameters
    ----------
    parser : ArgumentParser

    Returns
    -------
    callable
        Runs the command.
    """
    parser.add_argument("data", help="UAI model, .npz of energies or costs, text of costs")
    parser.add_argument("--evidence", metavar="FILE", help="observations, for UAI models")
    parser.add_argument("--target", metavar="NAME", help="the array of costs in an archive")
    parser.add_argument("--oracle", help="for graphs: exact, trws, lp, ...")
    parser.add_argument(
        "--max-iter", type=int, metavar="N", help="for graphs: iterations of message passing (100)"
    )
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="for exact: stop with the best so far"
    )
    parser.add_argument("--maximize", action="store_true", help="costs are scores")
    parser.add_argument(
        "--marginals", metavar="FILE", help="for graphs: write marginals, in UAI's form MAR"
    )
    parser.add_argument("--output", metavar="FILE", help="for the labels; default: standard output")
    parser.add_argument("--json", action="store_true", help="labels, value and bound as JSON")
    return decode


def decode(args: argparse.Namespace) -> None:
    """Print the best labels, their value, and a bound of the value of all labels.

    Parameters
    ----------
    args : Namespace
        Options of ``decode``.

    Raises
    ------
    ValueError
        For malformed files, and options that do not fit.
    """
    is_uai = args.data.lower().removesuffix(".gz").endswith(".uai")
    is_archive = args.data.lower().endswith(".npz")
    if args.evidence is not None and not is_uai:
        raise UsageError(f"--evidence is for UAI models (.uai); found {args.data}")
    if args.marginals is not None and not is_uai:
        raise UsageError(f"--marginals is for UAI models (.uai); found {args.data}")
    if is_uai and args.maximize:
        raise UsageError(f"--maximize is for costs; {args.data} holds factors of a probability")
    if args.target is not None and not is_archive:
        raise UsageError(f"--target is for archives (.npz); found {args.data}")
    if args.max_iter is not None and args.oracle not in (None, *OF_MESSAGES):
        raise UsageError(
            f"--max-iter is for --oracle {', '.join(OF_MESSAGES)}; found {args.oracle}"
        )
    outputs = {"--output": args.output, "--marginals": args.marginals}
    check_outputs({"the data": args.data, "--evidence": args.evidence}, outputs)
    about: dict[str, Any] = {}
    if is_uai:
        labels, value, bound = _of_uai(args, about)
    elif is_archive:
        labels, value, bound = _of_arrays(args)
    else:
        labels, value, bound = _assigned(_costs_of_text(args.data), args)
    if np.isinf(bound) and bound == value:
        where = "" if args.evidence is None else f" under {args.evidence}"
        raise ValueError(f"{args.data}: all labels are forbidden{where}, so that none is the best")
    if np.isinf(value):
        warnings.warn("found no allowed labels; use --oracle exact", stacklevel=2)
    proven = abs(bound - value) <= 1e-9 * max(1.0, abs(value))
    numbers = [int(label) for label in labels]
    if args.json:
        worth = None if np.isinf(value) else value
        answer = {"labels": numbers, "value": worth, "bound": bound, "proven": proven}
        answer |= about
        text = json.dumps(answer) + "\n"
    else:
        text = "".join(f"{label}\n" for label in numbers)
    if args.output is None:
        print(text, end="", file=messages.out())
    else:
        with atomic_write(args.output) as handle:
            handle.write(text)
        proof = ", proven" if proven else ""
        if about:
            sums = "exact" if about["exact_marginals"] else "an upper bound; marginals are relaxed"
            proof += f"\nlog partition {about['log_partition']:.10g}, {sums}"
        print(f"value {value:.10g}, bound {bound:.10g}{proof}", file=messages.out())


def _solver(kind: str) -> Any:
    """Return the solver for this kind of instances, from a structure's plugin."""
    known = registry.default()
    for name in known.names("structures"):
        factory: Any = known.find("structures", name).factory
        if kind in getattr(factory, "instances", ()):
            return factory.solve_instance
    raise UsageError(f"no plugin has a structure that solves instances of kind {kind!r}")


def _options(args: argparse.Namespace) -> dict[str, Any]:
    own = {name: getattr(args, name) for name in OF_GRAPHS}
    given = {name: value for name, value in own.items() if value is not None}
    return {"oracle": "auto", "max_iter": 100, **given}


def _of_uai(args: argparse.Namespace, about: dict[str, Any]) -> tuple[Any, float, float]:
    """Return the best labels; `about`: what there is to say about marginals, which are written."""
    from structsolve.plugins.mrf.decode import marginals_of  # heavy
    from structsolve.plugins.mrf.tables.scores import graph_scores
    from structsolve.plugins.mrf.uai import read_uai

    model = read_uai(args.data, args.evidence)
    if args.marginals is not None:
        if model.constant == -np.inf:
            raise ValueError(f"{args.data}: probability 0, so no marginals: check the evidence")
        marginals = marginals_of(graph_scores(model.unary, model.ends, model.pair))
        rows = marginals.unary[: model.n_variables]
        words = [" ".join([str(len(row)), *(f"{p:.10g}" for p in row)]) for row in rows]
        with atomic_write(args.marginals) as handle:
            handle.write("\n".join(["MAR", " ".join([str(len(rows)), *words]), ""]))
        about["log_partition"] = marginals.log_partition + model.constant
        about["exact_marginals"] = marginals.exact
    labels, value, bound = _solver("graph")(model.unary, model.ends, model.pair, **_options(args))
    return labels[: model.n_variables], value + model.constant, bound + model.constant


def _of_arrays(args: argparse.Namespace) -> tuple[Any, float, float]:
    """Energies ``unary``, ``edges``, ``weights`` of a Potts model, or a matrix of costs."""
    from structsolve.io.npz import load_arrays  # heavy

    arrays = load_arrays(args.data)
    if {"unary", "edges"} <= {*arrays} and args.target is None:
        _refuse_others(args.data, arrays, ("unary", "edges", "weights", *ABOUT_PICTURES))
        sign = 1.0 if args.maximize else -1.0
        unary, edges = sign * arrays["unary"].astype(np.float64), arrays["edges"]
        states = unary.shape[1] if unary.ndim == 2 else 0
        weights = arrays.get("weights", np.ones(len(edges))).astype(np.float64)
        # Neighbours that differ pay costs; neighbours that agree get scores.
        table = np.eye(states) if args.maximize else np.eye(states) - 1.0
        labels, value, bound = _solver("graph")(
            unary, edges, table, weights=weights, **_options(args)
        )
        return labels, sign * value, sign * bound
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    target = args.target or (matrices[0] if len(matrices) == 1 else None)
    if target not in matrices:
        raise ValueError(
            f"{args.data}: found {f'no matrix {target!r}' if target else 'no unary and edges'}; "
            f"--target names one of {', '.join(matrices) or 'none'}"
        )
    if args.target is None:
        _refuse_others(args.data, arrays, (target,), f"; --target {target} reads only that array")
    return _assigned(arrays[target], args)


def _refuse_others(path: str, arrays: Any, known: tuple[str, ...], hint: str = "") -> None:
    """Refuse arrays that may be part of the model but would be ignored."""
    others = [name for name in arrays if name not in known]
    if others:
        raise ValueError(
            f"{path}: found {', '.join(others)}, expected only {', '.join(known)}: decode would "
            f"ignore the others and solve another model{hint}"
        )


def _assigned(costs: Any, args: argparse.Namespace) -> tuple[Any, float, float]:
    for name in OF_GRAPHS:
        if getattr(args, name) is not None:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} is for graphs; the best assignment is always proven")
    return _solver("assignment")(costs, maximize=args.maximize)


def _costs_of_text(path: str) -> np.ndarray:
    """Numbers of rows and columns of equal count n, then the costs (OR-Library), or rows."""
    rows: list[list[float]] = []
    for number, line in text_lines(path):
        words = line.replace(",", " ").split()
        try:
            if words:
                rows.append([number_of(word) for word in words])
        except ValueError:
            raise bad_line(path, number, repr(line[:40]), "numbers") from None
    flat = np.array([value for row in rows for value in row])
    if len(rows) > 1 and len(rows[0]) == 1 and flat[0] > 0 and len(flat) == 1 + flat[0] ** 2:
        n = int(flat[0])
        return flat[1:].reshape(n, n)
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError(f"{path}: expected a matrix of costs, or n and then n times n costs")
    return np.array(rows)
