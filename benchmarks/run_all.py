"""Runs the benchmarks one after another and writes their output into the pages of ``results/``.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py
    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py --paper
    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py --only gap_ocr decode

A section has the command, the commit, the date and the duration; text between sections stays, and
so do sections of benchmarks that were left out.  A failure is written into its section and makes
the exit status 1.  At the end the first page and the README's table are drawn anew.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "docs" / "examples"
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
    "classes": ("multiclass", "kernels", "ordinal", "sparse_rows", "sparse_steps", "scaling"),
    "settings": (
        "defaults",
        "chosen_alpha",
        "alpha_path",
        "alpha_search",
        "solver_auto",
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
ARGUMENTS = {
    "shards": ["--cuts"],
    "parsers": ["--sentences", "600", "--iterations", "5"],
    "torch_layers": ["--threads", "1", "2", "4"],
    "neural_parser": [
        *("--runs", "margin", "ProbLoss", "--seeds", *"01234567"),
        *("--picture", "docs/pictures/neural_parser.png"),
    ],
    "neural_ocr": ["--picture", "docs/pictures/neural_ocr.png"],
    "m4n_table": ["m4n.jsonl"],
    "slack_margin": ["slack_margin.jsonl"],
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


def commit() -> str:
    """The commit of the checkout, with a star if files have changed since; nothing without git."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=*", "--exclude=*"],
        cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return f"{described.stdout.strip()}, " if described.returncode == 0 else ""


def run(name: str, arguments: list[str]) -> tuple[str, bool]:
    """One section of the report, and whether the script succeeded."""
    folder = HERE if (HERE / f"{name}.py").exists() else EXAMPLES
    script = folder / f"{name}.py"
    command = [sys.executable, str(script), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = time.time()
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    minutes = (time.time() - start) / 60
    shown = " ".join(["python", script.relative_to(HERE.parent).as_posix(), *arguments])
    stamp = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
    note = f"`{shown}`, {commit()}{stamp}, {minutes:.1f} min"
    if process.returncode:
        note += f", **failed with status {process.returncode}**"
    text = "".join(line for line in lines if not line.startswith("<!--")).strip()
    return f"<!-- begin {name} -->\n{note}\n\n{text}\n<!-- end {name} -->\n", not process.returncode


def put(page: Path, name: str, section: str) -> None:
    """Write a section in the place of its old one, or at the end of the page."""
    old = page.read_text("utf-8") if page.exists() else f"# {page.stem}\n"
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    before, begun, rest = old.partition(begin)
    text = before + section + rest.partition(end)[2] if begun else f"{old}\n{section}"
    new = page.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="*", choices=list(PAGE_OF), default=list(PAGE_OF))
    which.add_argument("--paper", action="store_true", help="those beside the papers' tables")
    which.add_argument("--peers", action="store_true", help="those beside the field's tools")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of pages")
    args = parser.parse_args()
    names = args.only
    if args.paper or args.peers:
        names = [name for name in PAGE_OF if (name in PAPERS) == args.paper]
    args.output.mkdir(parents=True, exist_ok=True)
    good = True
    for name in names:
        section, succeeded = run(name, ARGUMENTS.get(name, []))
        good &= succeeded
        put(args.output / f"{PAGE_OF[name]}.md", name, section)
    if args.output == HERE / "results":
        subprocess.run([sys.executable, str(HERE / "first_page.py")], check=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
