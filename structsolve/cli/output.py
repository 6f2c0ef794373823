# Output of the shell: predictions, scores, plugins, passes, errors.
from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from structsolve.cli.messages import one_line, plain
from structsolve.evaluation.report import AVERAGES, FIGURES
from structsolve.registry.plugin import LISTS
from structsolve.structure.pack import structure_of
from structsolve.utils.values import is_whole, to_json

GIVES = ("oracle", "power", "parts", "projection", "loss", "max_min", "polytope")
_NO_COLUMNS = "have no line for them; predict_marginals in Python returns arrays, where it can"


def predictions(model: Any, data: Any, labels: Any = None) -> list[list[Any]]:
    """Return the model's labels as lists of Python values.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
    labels : optional
        Predictions of the model, if known.

    Returns
    -------
    list of list
        One list per sequence.
    """
    labels = model.predict(data.X) if labels is None else labels
    whole = data.sequences or getattr(structure_of(model), "label_rows", False)
    return as_lists(labels if whole else data.split(labels))


def as_lists(labels: Iterable[Any]) -> list[Any]:
    """Return label sequences as lists of Python values, label pictures row by row.

    Parameters
    ----------
    labels : iterable of arrays or sequences

    Returns
    -------
    list of list
    """
    return [one.ravel().tolist() if hasattr(one, "ravel") else [*one] for one in labels]


def are_structured(model: Any, labels: Any, y: Any = ()) -> bool:
    """Return whether labels are neither classes nor sequences or pictures of them: spans, trees.

    Parameters
    ----------
    model : estimator
        Fitted.
    labels : list or array
        One per example, as the model predicts them: sequences of classes are arrays or lists.
    y : list or array, optional
        Labels of a file, which may leave classes open.

    Returns
    -------
    bool
    """
    structure = structure_of(model)
    if getattr(structure, "label_axes", 1) == 2:
        return False
    if not hasattr(model, "classes_") and not getattr(structure, "label_rows", False):
        return True
    odd: tuple[type, ...] = (tuple,)
    if not getattr(structure, "single_node", False):
        odd += (str,)
    predicted, given = (one if isinstance(one, list) else [] for one in (labels, y))
    return any(map(is_whole, predicted + given)) or any(
        isinstance(one, odd) or (type(one) is list and not one) for one in predicted
    )


def whole_labels_text(model: Any, data: Any, args: argparse.Namespace, predicted: Any) -> str:
    """Return the score of labels that are compared as a whole, as a line or as JSON.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
    args : Namespace
        With ``json``.
    predicted : sequence of labels
        What the model predicts.

    Returns
    -------
    str
    """
    from structsolve.evaluation.metrics import share_equal  # heavy

    report = {
        "score": float(model.score(data.X, data.y)),
        "sequence_accuracy": share_equal(data.y, predicted),
        "examples": len(data.y),
    }
    if args.json:
        return json.dumps(report, indent=2)
    return (
        f"score {report['score']:.4f}, whole labels right {report['sequence_accuracy']:.4f} of "
        f"{len(data.y)} examples"
    )


def labels_text(model: Any, data: Any, args: argparse.Namespace) -> Iterator[str]:
    """Write one label per line, with an empty line between sequences.

    Label sets are lines with commas between labels, rows of numbers are lines with spaces, and
    labels of other forms (spans, trees) are lines of JSON.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
    args : Namespace
        With ``marginals`` and ``columns``.

    Yields
    ------
    str
        Pieces of the text.

    Raises
    ------
    ValueError
        For marginals of labels without marginals.
    """
    predicted = model.predict(data.X)
    if getattr(structure_of(model), "label_sets", False):
        sets = (one_label(model, row) for row in predicted)
        yield from _with_marginals(model, data, sets, args.marginals)
        return
    annotates = getattr(data.reader, "annotates", "")
    if are_structured(model, predicted) and annotates != "always":
        if args.marginals:
            raise ValueError(f"--marginals: labels that are no sequences of classes {_NO_COLUMNS}")
        yield from (to_json(label) + "\n" for label in predicted)
        return
    if is_level_table(model, predicted):
        rows = predicted.to_numpy() if hasattr(predicted, "to_numpy") else predicted
        yield from _with_marginals(model, data, map(_level_line, rows), args.marginals)
        return
    labels = predictions(model, data, predicted)
    if annotates == "always" or (annotates and args.columns):
        if args.marginals:
            raise ValueError("--marginals: they are not printed with the data's own columns")
        # A tree of one word is the name of its class.
        given = (one if type(one) is str else row for one, row in zip(predicted, labels))
        yield from data.reader.annotated([*given])
        return
    if getattr(structure_of(model), "label_rows", False):
        if args.marginals:
            raise ValueError(f"--marginals: labels that are rows of numbers {_NO_COLUMNS}")
        yield from (" ".join(map(str, row)) + "\n" for row in labels)
        return
    tables: Iterable[Any] = [None] * len(labels)
    if args.marginals:
        marginals = model.predict_marginals(data.X)
        tables = marginals if data.sequences else data.split(marginals)
    names = [str(name) for name in model.classes_]
    for i, (guess, table) in enumerate(zip(labels, tables, strict=True)):
        yield "\n" * (i > 0)
        if table is None:
            yield "".join(f"{label}\n" for label in guess)
            continue
        for label, row in zip(guess, table.reshape(-1, len(names)), strict=True):
            cells = (f"\t{name}:{p:.6f}" for name, p in zip(names, row, strict=True))
            yield f"{label}{''.join(cells)}\n"


def is_level_table(model: Any, labels: Any) -> bool:
    """Return whether labels are rows of names, one row an example.

    Parameters
    ----------
    model : estimator
        Fitted.
    labels : array, list or data frame
        As `predict` returns them.

    Returns
    -------
    bool
    """
    structure = structure_of(model)
    if not getattr(structure, "single_node", False) or getattr(structure, "label_rows", False):
        return False
    if isinstance(labels, list):
        return any(isinstance(row, (list, tuple)) or getattr(row, "ndim", 0) for row in labels)
    return getattr(labels, "ndim", 1) == 2


def _with_marginals(model: Any, data: Any, labels: Iterable[str], marginals: bool) -> Iterator[str]:
    """Yield a line per example, maybe with the probabilities of all labels behind it."""
    tables = model.predict_marginals(data.X) if marginals else repeat(())
    names = [str(name) for name in model.classes_]
    for label, table in zip(labels, tables):
        cells = (f"\t{name}:{p:.6f}" for name, p in zip(names, table))
        yield f"{label}{''.join(cells)}\n"


def _level_line(row: Any) -> str:
    """Return a row of names as a line; None and NaN end shorter paths."""
    return "\t".join("" if name is None or name != name else str(name) for name in row)


def one_label(model: Any, label: Any) -> str:
    """Return a label that is no sequence as one line.

    Parameters
    ----------
    model : estimator
        Fitted.
    label : object
        As `predict` returns it.

    Returns
    -------
    str
    """
    structure = structure_of(model)
    if getattr(structure, "label_sets", False):
        return ",".join(str(name) for name, on in zip(model.classes_, label, strict=True) if on)
    if getattr(structure, "label_rows", False):
        return " ".join(map(str, label.tolist()))
    if is_level_table(model, [label]):
        return _level_line(label)
    if isinstance(label, (list, tuple)) or getattr(label, "ndim", 0) > 0:
        return to_json(label)
    return str(label)


def kbest_text(model: Any, data: Any, k: int) -> Iterator[str]:
    """Write for each example and rank a line ``@rank TAB score``, then the labels.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
    k : int
        Maximum number of ranks.

    Yields
    ------
    str
    """
    best = model.predict_kbest(data.X, k)
    structured = are_structured(model, [labels for answers in best for labels, _ in answers])
    rows = getattr(structure_of(model), "label_rows", False)
    for i, answers in enumerate(best):
        for rank, (labels, score) in enumerate(answers, 1):
            lines = (
                [to_json(labels)]
                if structured
                else [str(label) for label in as_lists([labels])[0]]
                if data.sequences and not rows
                else [one_label(model, labels)]
            )
            head = "\n" if i or rank > 1 else ""
            yield f"{head}@{rank}\t{score:.6f}\n" + "".join(line + "\n" for line in lines)


def report_text(
    report: Mapping[str, Any], args: argparse.Namespace, more: Sequence[str] = ()
) -> str:
    """Return a table of the metrics of each label, then of all; or JSON.

    Parameters
    ----------
    report : mapping
        As `token_report` or `label_set_report` returns it, maybe with ``sequence_error`` and
        ``hierarchical``; without ``per_class``, its own text.
    args : Namespace
        With ``json``.
    more : sequence of str
        Lines below the others.

    Returns
    -------
    str
    """
    if args.json:
        return json.dumps(report, indent=2, default=plain)
    if "per_class" not in report:
        return str(report)
    rows = {str(label): row for label, row in report["per_class"].items()}
    rows |= {title: report[name] for name, title in AVERAGES.items() if name in report}
    width = max(14, *(len(label) + 2 for label in rows))
    lines = ["label".ljust(width) + "".join(f"{name:>10}" for name in (*FIGURES, "support"))]
    for label, row in rows.items():
        figures = "".join(f"{row[name]:>10.4f}" for name in FIGURES)
        lines.append(f"{label:<{width}}{figures}{row['support']:>10}")
    lines += ["", f"accuracy {report['accuracy']:.4f} of {report['support']} labels"]
    if "exact_match" in report:
        lines.append(f"sets without an error {report['exact_match']:.4f}")
    if "sequence_error" in report:
        lines.append(f"sequences with an error {report['sequence_error']:.4f}")
    return "\n".join([*lines, *more])


def plugins_text(plugins: Iterable[Mapping[str, Any]]) -> str:
    """Return a table of plugins: their declarations, or why they were not loaded.

    Parameters
    ----------
    plugins : iterable of mappings
        As `structsolve.list_plugins` returns them.

    Returns
    -------
    str

    Examples
    --------
    >>> print(plugins_text([{"name": "chain", "distribution": "mine", "version": "1.0",
    ...                      "status": "loaded", "structures": ["chain"], "losses": ["a", "b"]}]))
    PLUGIN  FROM      STATUS  DECLARES
    chain   mine 1.0  loaded  structures: chain
                              losses: a, b
    """
    table = [("PLUGIN", "FROM", "STATUS", "DECLARES")]
    for plugin in plugins:
        source = " ".join(str(plugin.get(key) or "") for key in ("distribution", "version"))
        lines = [
            f"{kind.replace('_', ' ')}: {', '.join(plugin[kind])}"
            for kind in LISTS
            if plugin.get(kind)
        ]
        gives = [part for part in GIVES if plugin.get(f"gives_{part}")]
        if gives:
            lines.append(f"gives: {', '.join(gives)}")
        if plugin.get("error"):
            lines.insert(0, one_line(plugin["error"]))
        first, *rest = lines or ["nothing"]
        table.append((str(plugin["name"]), source.strip(), str(plugin.get("status") or ""), first))
        table += [("", "", "", line) for line in rest]
    widths = [max(len(row[c]) for row in table) for c in range(3)]
    return "\n".join("  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in table)
