"""The pages of benchmarks/results: what is drawn from them is fresh, what is quoted is there."""

import os
import re
import runpy
import subprocess
import sys

import pytest
from doc_code import ROOT

RESULTS = ROOT / "benchmarks" / "results"

pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="installed without the checkout")


@pytest.fixture(scope="module")
def scripts():
    """The names in run_all.py and first_page.py."""
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    try:
        return {name: runpy.run_path(f"{folder}/{name}.py") for name in ("run_all", "first_page")}
    finally:
        sys.path.remove(folder)


def test_the_first_page_and_the_table_of_the_readme_are_drawn_from_the_pages(scripts):
    for path, text in scripts["first_page"]["pages"]().items():
        assert path.read_text("utf-8") == text, f"{path}: run python benchmarks/first_page.py"


def test_no_row_of_the_first_page_is_empty():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (RESULTS / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| ")
    ]
    assert len(rows) > 60
    assert [row for row in rows if "" in row[:1] + row[2:]] == []


def test_references_that_lead_nowhere_or_to_two_rows_are_refused(scripts):
    first_page = scripts["first_page"]
    table = "| a | s |\n| --- | --- |\n| x | {} |\n"
    texts = {"one": f"{table.format(2)}| xy | 3 |\n\n### below\n\n{table.format(8)}"}
    assert first_page["drawn"]("<<one#below; x; s>>, <<one; xy; s; %.0f>>", texts) == "8, 300"
    texts["two"] = f"2026-01-02\n{texts['one']}"  # no date below the heading: the section's
    assert first_page["drawn"]("<<two#below; date>>", texts) == "2026-01-02"
    del texts["two"]
    assert first_page["drawn"]("<<ratio: one; xy; s // one#below; x; s>>", texts) == "2.7x"
    for reference in (
        "two; x; s",
        "one; x; s",
        "one; z; s",
        "one; x; t",
        "one#no; x; s",
        "one; /z/",
    ):
        with pytest.raises(first_page["Missing"], match=re.escape(reference)):
            first_page["drawn"](f"<<{reference}>>", texts)


def test_every_script_has_a_page_and_every_section_a_script(scripts):
    pages = scripts["run_all"]["PAGES"]
    assert {f"{page}.md" for page in pages} | {"README.md"} == {
        p.name for p in RESULTS.glob("*.md")
    }
    assert set(scripts["run_all"]["PAPERS"]) <= set(scripts["run_all"]["PAGE_OF"])
    by_tests = {"faults", "kits", "kit faults", "fuzz"}
    for page, names in pages.items():
        section = re.compile(r"<!-- begin ([\w ]+) -->")
        sections = section.findall((RESULTS / f"{page}.md").read_text("utf-8"))
        assert set(sections) - by_tests <= set(names), page
        for name in names:
            folders = (ROOT / "benchmarks", ROOT / "docs" / "examples")
            paths = [
                folder / f"{name}.py" for folder in folders if (folder / f"{name}.py").exists()
            ]
            assert paths, name
            if paths[0].parent.name == "benchmarks":  # others: neural_training.py
                text = paths[0].read_text("utf-8")
                assert re.search(r"header\(|\"## ", text), f"{name} prints no title"


def test_a_section_is_put_in_its_place_and_the_text_around_it_stays(scripts, tmp_path):
    put, page = scripts["run_all"]["put"], tmp_path / "page.md"
    sections = [f"<!-- begin {name} -->\n{name}\n<!-- end {name} -->\n" for name in "ab"]
    page.write_text("# Title\n\n" + sections[0] + "\nA note.\n\n" + sections[1])
    new = sections[0].replace("\na\n", "\nnew\n")
    put(page, "a", new)
    assert page.read_text() == "# Title\n\n" + new + "\nA note.\n\n" + sections[1]
    put(page, "c", sections[0].replace("a -->", "c -->"))
    assert page.read_text().endswith("<!-- end c -->\n") and list(tmp_path.iterdir()) == [page]


def test_what_is_only_started_is_ended_with_its_children_and_told(scripts, tmp_path, monkeypatch):
    started, alive = scripts["run_all"]["started"], tmp_path / "alive"
    os.mkfifo(alive)
    child = f"f = open({str(alive)!r}, 'w', 1); print(1, file=f)\n"
    child += "import time; time.sleep(60); print(2, file=f)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    files = []

    class Popen(subprocess.Popen):
        def wait(self, timeout=None):
            if timeout == 9:  # the limit is over once the child runs
                files.append(alive.open())
                assert files[0].readline() == "1\n"
                raise subprocess.TimeoutExpired(self.args, timeout)
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    run = [sys.executable, "-c"]
    assert started([*run, parent], tmp_path, 9) == (True, "running at the limit")
    with files[0] as file:
        assert file.read() == ""  # the child's end is closed: it has died
    for code, error in (
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import atexit; atexit.register(print, 'Versions: 1'); exit('no data')", "no data"),
        ("import sys; sys.exit(3)", "status 3"),
    ):
        assert started([*run, code], tmp_path, 99) == (False, f"FAILED: {error}")
    well, told = started([*run, "print('| a | nan |\\n(POT skipped)')"], tmp_path, 99)
    assert well and told.startswith("ended, ") and told.endswith("\n    | nan\n    (POT skipped)")


def test_a_script_of_an_interrupted_run_ends_with_its_children(scripts, tmp_path, monkeypatch):
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    child = f"f = open({str(alive)!r}, 'w'); import time; time.sleep(60); print(2, file=f)"
    parent = f"import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', {child!r}])"
    parent += "; print(1, flush=True); c.wait()"
    files = []

    def interrupt(*given, **named):  # as SIGTERM does
        files.append(alive.open())  # once the child runs
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.print", interrupt)
    with pytest.raises(KeyboardInterrupt):
        scripts["run_all"]["output"]([sys.executable, "-c", parent])
    with files[0] as file:
        assert file.read() == ""  # the child's end is closed: it has died


def test_a_check_of_scripts_writes_no_page(scripts):
    before = {path: path.stat().st_mtime_ns for path in RESULTS.iterdir()}
    command = [sys.executable, str(RESULTS.parent / "run_all.py"), "--check", "999", "--only"]
    done = subprocess.run(
        [*command, "distributed_model"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("distributed_model: ended, ")
    assert done.stdout.endswith("\n1 of 1 scripts start\n")
    assert {path: path.stat().st_mtime_ns for path in RESULTS.iterdir()} == before


DOCS = sorted(path for folder in ("", "theory") for path in (ROOT / "docs" / folder).glob("*.rst"))


def quoted(text):
    """Numbers with decimals, of a time or in per cent, without code, literals, formulas."""
    text = re.sub(r"(?m)^\s*\.\. math::.*(\n+[ ]{3,}.*)*|:math:`[^`]*`", "", text)
    text = re.sub(r"(?m)^\s*(>>>|\.\.\. ).*(\n(?!\s*$).*)*", "", text)
    text = re.sub(r"(?s)```.*?```|(?<!`)`[^`\n]+`(?!`)", "", text)
    number = r"(?<![\w.-])(\d*\.\d+(?![\w.])|\d+(?=\s(?:ms|us|µs|s|seconds|minutes|%)(?!\w)))"
    return re.findall(number, re.sub(r"``[^`]*``", "", text))


def pages_quoted():
    """Pages of the docs that name pages of the results, and these; the README, and all."""
    for path in DOCS:
        named = re.findall(r"benchmarks/results/(\w+\.md)", path.read_text("utf-8"))
        if named:
            yield pytest.param(path, sorted(set(named)), id=path.stem)
    every = [path.name for path in sorted(RESULTS.glob("*.md")) if path.stem != "README"]
    yield pytest.param(ROOT / "README.md", every, id="README")


MEASURED = r"\d (?:ms|us|µs|s|seconds|minutes)\b(?! a)|\d times (?:as|the speed|its speed)"


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.stem)
def test_pages_of_the_docs_with_measured_figures_name_the_page_of_the_results(path):
    text = path.read_text("utf-8")
    prose = re.sub(r"(?ms)^\.\. code-block::.*?(?=^\S)", "", text)
    prose = re.sub(r"``[^`]*``", "", re.sub(r"(?m)^\s*(>>>|\.\.\.) .*(\n(?!\s*$).*)*", "", prose))
    if re.search(MEASURED, " ".join(prose.split())):
        assert re.search(r"benchmarks/results/\w+\.md", text)


@pytest.mark.parametrize("path, named", list(pages_quoted()))
def test_every_figure_of_the_docs_is_on_the_page_that_they_name(path, named):
    text = "".join((RESULTS / name).read_text("utf-8") for name in named)
    have = [float(n) for n in re.findall(r"(?<![\w.])\d*\.?\d+(?:e[-+]?\d+)?", text)]
    missing = []
    for number in quoted(path.read_text("utf-8")):
        # Rounded, and shares as per cent.
        half = 0.5000001 * 10.0 ** -len(number.partition(".")[2])
        if not any(
            abs(scale * value - float(number)) <= half for value in have for scale in (1, 100)
        ):
            missing.append(number)
    assert missing == []
