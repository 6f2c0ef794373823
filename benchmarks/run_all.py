"""Runs the benchmarks one after another and writes their output into the pages of ``results/``.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py
    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py --paper
    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py --only gap_ocr decode
    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py --paper --check

With ``--check`` each run is only started: it is ended after a minute, or the seconds given, and
one line says what came of it.  It runs on a copy of the scripts, so no page or picture changes.

A section has the command, the commit, the date and the duration; text between sections stays, and
so do sections of benchmarks that were left out or that failed.  What failed, or was not reached
when a run was interrupted, is named at the end as the ``--only`` of another run, and makes the exit
status 1.  At the end the first page and the README's table are drawn anew.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from environments import ready

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "docs" / "examples"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: The sections of each page of ``results/``, in order; those of no script are written by tests.
PAGES = {
    "sequences": (
        "c_loop",
        "bcfw_ocr",
        "gap_ocr",
        "accuracy_ocr",
        "decode",
        "chunking",
        "quality",
        "surrogates_conll",
        "semi_markov",
        "reports",
        "named_features",
        "sparse_crf",
        "quick_solvers",
        "end_to_end",
        "outside_chain",
        "python_plugin",
    ),
    "one_call": ("latency", "batch", "torch_layers", "jax_layers", "distributions"),
    "networks": ("neural_parser", "neural_ocr"),
    "classes": (
        "multiclass",
        "likelihood",
        "kernels",
        "ordinal",
        "sparse_rows",
        "sparse_steps",
        "scaling",
    ),
    "settings": (
        "defaults",
        "chosen_alpha",
        "alpha_path",
        "alpha_search",
        "likelihood_alpha",
        "solver_auto",
        "early_stopping",
        "cut_steps",
    ),
    "cores": ("jobs", "cores", "shards", "distributed_model", "memory"),
    "label_sets": (
        "multilabel",
        "slack_margin",
        "multilabel_defaults",
        "searches",
        "search_figures",
        "roof",
    ),
    "rankings": ("rankings", "assignment", "sinkhorn", "matching"),
    "graphs": (
        "decoders",
        "uai",
        "graph_marginals",
        "exact",
        "cuts",
        "decode_grids",
        "trws",
        "energy_time",
        "superpixels",
        "snakes",
        "learn_binary",
    ),
    "max_min": ("m4n_table", "m4n_steps", "projections_ocr", "max_min_oracle", "derivatives"),
    "hierarchies": (
        "hierarchical_svm",
        "shared_weights",
        "hierarchical_levels",
        "norms",
        "hierarchical_sets",
        "ecrm_hierarchies",
        "ecrm_nodes",
        "large_hierarchy",
        "closure",
    ),
    "trees_flows": (
        "dependency",
        "parsers",
        "alignment",
        "cky",
        "flows",
        "paths",
        "latent",
        "hidden_markov",
        "lp_backends",
    ),
    "extreme": (
        "extreme",
        "extreme_labels",
        "extreme_stream",
        "extreme_dual",
        "extreme_memoir",
        "extreme_inexact",
        "extreme_rivals",
    ),
    "growth": ("growth",),
    "checks": ("build_seconds", "environments"),
}
#: Arguments of each run of a script, where that is not one run without any.
ARGUMENTS = {
    "multiclass": ["", "--defaults --only mc-", "--defaults --only dense"],
    "flows": ["", "--curve", "--scale"],
    "shards": ["--cuts"],
    "build_seconds": ["--command"],
    "parsers": ["--sentences 3000"],
    "chunking": ["--no-surrogates", "--learners"],
    "extreme": [
        "--sets small mid lshtc words bibtex rcv1-topics",
        "--sets odp --peers pecos omikuji",
    ],
    "extreme_memoir": ["--sets mid lshtc"],
    "extreme_inexact": [
        "--sets small mid",
        "--sets lshtc --systems 'MEMOIR l2, published' 'MEMOIR l1, published'"
        " 'MEMOIR LSH, published' 'MEMOIR l2, divided' 'MEMOIR l2, corrected'"
        " 'MEMOIR l1, corrected' ExtremeSVM RecallTree",
        "--sets lshtc --systems 'one-vs-rest, ours' 'Crammer and Singer, ours' PD-Sparse"
        " 'liblinear, sampled'",
    ],
    "hierarchical_svm": [
        "--sets unbalanced balanced graph --features 250 --more 8000 --seeds 6",
        "--sets imclef07a --seeds 5",
        "--sets balanced --seeds 3 --methods flat HSVM NHSVM SSVM",
    ],
    "shared_weights": ["--sets unbalanced", "--features 30 --seeds 2 --more 500"],
    "torch_layers": ["--threads 1 2 4"],
    "neural_parser": [
        "--runs margin ProbLoss --seeds 0 1 2 3 4 5 6 7 --picture docs/pictures/neural_parser.png"
    ],
    "neural_ocr": ["--picture docs/pictures/neural_ocr.png"],
    "m4n_table": ["m4n.jsonl"],
    "slack_margin": [
        "slack_margin.jsonl --sets rcv1-subset1 spo-fun eisen-go",
        "slack_margin.jsonl --sets bibtex",
    ],
}
#: Those that stand beside the papers' tables and figures; others stand beside the field's tools.
PAPERS = (
    "searches",
    "search_figures",
    "multilabel",
    "slack_margin",
    "chunking",
    "surrogates_conll",
    "hierarchical_svm",
    "shared_weights",
    "norms",
    "large_hierarchy",
    "neural_parser",
    "m4n_table",
    "m4n_steps",
    "projections_ocr",
    "max_min_oracle",
    "ecrm_hierarchies",
    "ecrm_nodes",
    "flows",
    "extreme_memoir",
    "extreme_inexact",
    "learn_binary",
    "snakes",
)
PAGE_OF = {name: page for page, names in PAGES.items() for name in names}


@cache
def commit() -> str:
    """The commit of the checkout, with a star if files had changed since; nothing without git."""
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=8", "--dirty=*", "--exclude=*"],
        cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return f"{described.stdout.strip()}, " if described.returncode == 0 else ""


@contextlib.contextmanager
def group(command: list[str], **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that ends at the end of the block, with all that it has started."""
    with subprocess.Popen(
        command, stderr=subprocess.STDOUT, text=True, start_new_session=True, **settings
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def output(command: list[str]) -> list[str] | None:
    """The lines that a script prints, without its comments; None if it failed."""
    lines = []
    with group(command, stdout=subprocess.PIPE, env=os.environ | ONE_THREAD) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        process.wait()
    return None if process.returncode else [s for s in lines if not s.startswith("<!--")]


def called(name: str) -> tuple[str, Path]:
    """The Python and the script of a benchmark; examples of the docs need torch."""
    script = HERE / f"{name}.py"
    if script.exists():
        return sys.executable, script
    return str(ready("layers")), EXAMPLES / script.name


def run(name: str) -> str | None:
    """The section of the report that a script makes; None if one of its runs failed."""
    python, script = called(name)
    text, runs, minutes = "", ARGUMENTS.get(name, [""]), []
    for arguments in runs:
        start = time.time()
        lines = output([python, str(script), *shlex.split(arguments)])
        if lines is None:
            return None
        if text and lines[0].startswith("## "):
            del lines[0]  # the title again
        text += "\n\n" * bool(text) + "".join(lines).strip()
        minutes.append(f"{(time.time() - start) / 60:.1f}")
    first = f"python {script.relative_to(HERE.parent).as_posix()} {runs[0]}".strip()
    shown = ", ".join(f"`{one}`" for one in (first, *runs[1:]))
    stamp = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
    note = f"{shown}, {commit()}{stamp}, {' and '.join(minutes)} min"
    return f"<!-- begin {name} -->\n{note}\n\n{text}\n<!-- end {name} -->\n"


def put(page: Path, name: str, section: str) -> None:
    """Write a section in the place of its old one, or at the end of the page."""
    old = page.read_text("utf-8") if page.exists() else f"# {page.stem}\n"
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    before, begun, rest = old.partition(begin)
    text = before + section + rest.partition(end)[2] if begun else f"{old}\n{section}"
    new = page.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(page)


def started(command: list[str], folder: Path, seconds: float) -> tuple[bool, str]:
    """Whether a command ended well or still ran after so many seconds, and what to tell of it."""
    environment = os.environ | ONE_THREAD | {"TMPDIR": str(folder)}
    if "STRUCTSOLVE_DATA" in environment:
        environment["STRUCTSOLVE_DATA"] = os.path.abspath(environment["STRUCTSOLVE_DATA"])
    begun, status = time.time(), None
    settings = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL}
    with tempfile.TemporaryFile("w+", errors="replace") as told:
        limit = contextlib.suppress(subprocess.TimeoutExpired)
        with group(command, stdout=told, **settings) as process, limit:
            status = process.wait(seconds)
        told.seek(0)
        text = told.read()
    if status or "Traceback (most recent call last)" in text:
        lines = re.sub(r"(?m)^Versions: .*", "", text).strip().splitlines() or [f"status {status}"]
        return False, "FAILED: " + next((s for s in lines[::-1] if "Error" in s), lines[-1])
    odd = re.findall(r"\| *(?:nan|failed)\b|.*(?:skipped|not installed).*", text)
    lines = ["running at the limit" if status is None else f"ended, {time.time() - begun:.0f} s"]
    return True, "\n    ".join([*lines, *odd])


def check(names: list[str], seconds: float) -> list[str]:
    """Start every run of some scripts in a copy of the checkout; return those that fail."""
    failed = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as copy:
        for path in HERE.parent.iterdir():
            if path.name in ("benchmarks", "docs"):
                shutil.copytree(path, Path(copy, path.name))
            else:
                Path(copy, path.name).symlink_to(path)
        for name in names:
            python, script = called(name)
            for arguments in ARGUMENTS.get(name, [""]):
                call = [python, str(script.relative_to(HERE.parent)), *shlex.split(arguments)]
                well, told = started(call, Path(copy), seconds)
                print(f"{name} {arguments}".strip() + f": {told}", flush=True)
                if not well and name not in failed:
                    failed.append(name)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="*", choices=list(PAGE_OF), default=list(PAGE_OF))
    which.add_argument("--paper", action="store_true", help="those beside the papers' tables")
    which.add_argument("--peers", action="store_true", help="those beside the field's tools")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of pages")
    parser.add_argument(
        "--check", nargs="?", type=float, const=60.0, metavar="SECONDS",
        help="only start each run, end it after so many seconds (60), write no page",
    )  # fmt: skip
    args = parser.parse_args()
    names = args.only
    if args.paper or args.peers:
        names = [name for name in PAGE_OF if (name in PAPERS) == args.paper]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if args.check:
        failed = check(names, args.check)
        print(f"{len(names) - len(failed)} of {len(names)} scripts start")
        return 1 if failed else 0
    args.output.mkdir(parents=True, exist_ok=True)
    commit()  # before this run changes pages and pictures
    left = list(names)
    try:
        for name in names:
            section = run(name)
            if section is not None:
                put(args.output / f"{PAGE_OF[name]}.md", name, section)
                left.remove(name)
        if args.output == HERE / "results":
            subprocess.run([sys.executable, str(HERE / "first_page.py")], check=True)
    finally:
        if left:
            print(f"left: python benchmarks/run_all.py --only {' '.join(left)}", flush=True)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
