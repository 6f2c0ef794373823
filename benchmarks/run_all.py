"""Runs the benchmarks one after another and collects their output in RESULTS.md.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py
    STRUCTSOLVE_DATA=../shared/data python benchmarks/run_all.py --only gap_ocr decode

A benchmark that was left out keeps its old section.  Each section has the command, the date and the
duration; a failure is written into its section and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "docs" / "examples"
SCRIPTS = {
    "c_loop": [],
    "bcfw_ocr": [],
    "gap_ocr": [],
    "latency": [],
    "batch": [],
    "python_plugin": [],
    "accuracy_ocr": [],
    "decode": [],
    "multiclass": [],
    "kernels": [],
    "ordinal": [],
    "rankings": [],
    "sparse_rows": [],
    "sparse_steps": [],
    "scaling": [],
    "alpha_path": [],
    "alpha_search": [],
    "chosen_alpha": [],
    "defaults": [],
    "cut_steps": [],
    "jobs": [],
    "cores": [],
    "solver_auto": [],
    "outside_chain": [],
    "quality": [],
    "searches": [],
    "surrogates_conll": [],
    "multilabel": [],
    "multilabel_defaults": [],
    "roof": [],
    "snakes": [],
    "learn_binary": [],
    "cuts": [],
    "decode_grids": [],
    "superpixels": [],
    "decoders": [],
    "uai": [],
    "exact": [],
    "trws": [],
    "energy_time": [],
    "named_features": [],
    "sparse_crf": [],
    "lp_backends": [],
    "assignment": [],
    "sinkhorn": [],
    "derivatives": [],
    "matching": [],
    "dependency": [],
    "projections_ocr": [],
    "max_min_oracle": [],
    "closure": [],
    "hierarchical_svm": [],
    "hierarchical_sets": [],
    "ecrm_hierarchies": [],
    "flows": [],
    "large_hierarchy": [],
    "latent": [],
    "extreme": [],
    "extreme_labels": [],
    "extreme_stream": [],
    "extreme_dual": [],
    "extreme_memoir": [],
    "extreme_rivals": [],
    "cky": [],
    "torch_layers": ["--threads", "1", "2", "4"],
    "jax_layers": [],
    "neural_parser": ["--picture", "docs/pictures/neural_parser.png"],
    "neural_ocr": ["--picture", "docs/pictures/neural_ocr.png"],
    "m4n_table": ["m4n.jsonl"],
}
PREFACE = """# Results

Written by `benchmarks/run_all.py`; see `benchmarks/README.md` for what each script compares.  Times
are process CPU seconds unless called wall.  Both sides of a comparison are from one run,
unless a note below the heading says that it was run in parts.
"""


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
    note = f"`{shown}`, {stamp}, {minutes:.1f} min"
    if process.returncode:
        note += f", **failed with status {process.returncode}**"
    text = "".join(line for line in lines if not line.startswith("<!--")).strip()
    return f"<!-- begin {name} -->\n{note}\n\n{text}\n<!-- end {name} -->\n", not process.returncode


def old_sections(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    pattern = r"<!-- begin ([\w ]+) -->\n.*?<!-- end \1 -->\n"
    return {m.group(1): m.group(0) for m in re.finditer(pattern, path.read_text(), re.DOTALL)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(SCRIPTS), default=list(SCRIPTS))
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    args = parser.parse_args()
    sections = old_sections(args.output)
    good = True
    for name in args.only:
        sections[name], succeeded = run(name, SCRIPTS[name])
        good &= succeeded
        # Other sections stay, after those of this run.
        keys = [*SCRIPTS, *(key for key in sections if key not in SCRIPTS)]
        ordered = [sections[key] for key in keys if key in sections]
        args.output.write_text("\n".join([PREFACE, *ordered]))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
