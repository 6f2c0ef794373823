# Messages of the shell: sizes, passes, times, errors; and the file of passes.
from __future__ import annotations

import csv
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from structsolve.io._text import atomic_write

_OWN: list[Any] = []


@contextmanager
def own_output() -> Iterator[None]:
    """Reserve standard output for the shell's own lines; others print to standard error."""
    _OWN.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _OWN.pop()


def out() -> Any:
    """Return the stream for the shell's own lines.

    Returns
    -------
    file
    """
    return _OWN[-1] if _OWN else sys.stdout


def write_history(path: str, history: Sequence[Mapping[str, Any]]) -> None:
    """Write ``history_`` as JSON, or as CSV with a column per key.

    Parameters
    ----------
    path : str
        JSON if it ends in ``.json``.
    history : sequence of mappings
    """
    with atomic_write(path) as handle:
        if path.endswith(".json"):
            json.dump(list(history), handle, indent=1, default=plain)
        else:
            keys = list(dict.fromkeys(key for one in history for key in one))
            writer = csv.DictWriter(handle, keys, lineterminator="\n")
            writer.writeheader()
            writer.writerows(history)


def say(what: str, text: str, start: float | None = None) -> None:
    """Print a finished step and its seconds.

    Parameters
    ----------
    what : str
        A word.
    text : str
    start : float, optional
        Of ``time.perf_counter``.
    """
    seconds = "" if start is None else f"  ({time.perf_counter() - start:.1f} s)"
    print(f"{what:<10}{text}{seconds}", flush=True, file=out())


def say_scores(model: Any) -> None:
    """Print the score of every fold for each alpha that was tried, and the alpha chosen.

    Parameters
    ----------
    model : StructuredSVMCV or HierarchicalSVMCV
        Fitted.
    """
    from structsolve.evaluation.alpha_path import chosen_text  # heavy

    for alpha, scores in zip(model.alphas_, model.scores_.T):
        known = [score for score in scores if not math.isnan(score)]
        folds = " ".join(f"{score:.4f}" for score in known)
        end = f"mean {scores.mean():.4f}" if len(known) == len(scores) else "behind"
        say("alpha", f"{alpha:<10.4g}folds {folds}  {end}")
    say("chosen", chosen_text(model.alphas_, model.scores_, model.alpha_, model.scoring_))


def size_text(data: Any, pictures: bool = True) -> str:
    """Return the size of data, in words.

    Parameters
    ----------
    data : Data
    pictures : bool, default=True
        Whether examples of three axes are pictures.

    Returns
    -------
    str
    """
    told = None if data.reader is None else data.reader.size_text(data.X)
    if told is not None:
        return str(told)
    blocks = data.X if data.sequences else [data.X]
    if isinstance(blocks[0], tuple):
        parts = [f"{len(blocks)} graphs"]
        blocks = [block[0] for block in blocks]
        rows = sum(block.shape[0] for block in blocks)
        return ", ".join([*parts, f"{rows} nodes", f"{blocks[0].shape[1]} features"])
    parts, rows = [], sum(math.prod(block.shape[:-1]) for block in blocks)
    kind = ("sequences", "rows")
    if blocks[0].ndim == 3:
        kind = ("pictures", "pixels") if pictures else ("examples", "cells")
    if data.sequences:
        parts.append(f"{len(blocks)} {kind[0]}")
    parts.append(f"{rows} {kind[1]}")
    return ", ".join([*parts, f"{blocks[0].shape[-1]} features"])


def passes_text(history: Sequence[Mapping[str, Any]]) -> str:
    """Return how training ended: passes, objectives and gap.

    Parameters
    ----------
    history : sequence of mappings

    Returns
    -------
    str
    """
    last = history[-1] if history else {}
    parts = [f"{len(history)} passes"]
    for name in ("primal", "dual"):
        if last.get(name) is not None and math.isfinite(last[name]):
            parts.append(f"{name} {last[name]:.6g}")
    share = relative_gap(last)
    if share is not None:
        shown = f"{100 * share:.{'2g' if share < 0.995 else '0f'}}"
        parts.append(f"gap {'' if last.get('certified', True) else '~'}{shown} %")
    return ", ".join(parts)


def relative_gap(record: Mapping[str, Any]) -> float | None:
    """Return the gap of a pass relative to its primal objective.

    Parameters
    ----------
    record : mapping
        An entry of ``history_``.

    Returns
    -------
    float or None
        None if either is unknown.

    Examples
    --------
    >>> relative_gap({"primal": 4.0, "gap": 1.0}), relative_gap({"primal": 4.0, "gap": None})
    (0.25, None)
    """
    gap, primal = record.get("gap"), record.get("primal")
    if gap is None or not primal or not math.isfinite(gap / primal):
        return None
    return gap / abs(primal)


def one_line(error: object) -> str:
    """Return an error as one line, with its type if the message may not suffice.

    Parameters
    ----------
    error : object
        An exception or a text.

    Returns
    -------
    str
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{'output' if error.filename is None else error.filename}: {error.strerror}"
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "not enough memory" + (f": {text}" if text else "")
    told = ValueError | TypeError | ImportError | Warning
    if isinstance(error, Exception) and not isinstance(error, told):
        text = f"{type(error).__name__}: {text} (-v shows the traceback)"
    return text or type(error).__name__


def plain(value: Any) -> Any:
    """Return a JSON value for a value that JSON cannot represent.

    Parameters
    ----------
    value : object

    Returns
    -------
    int, float, bool or str
        A NumPy number as a Python number; else the value's text.
    """
    return value.item() if hasattr(value, "item") else str(value)
