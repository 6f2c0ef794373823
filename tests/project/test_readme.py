"""The README: its two commands and every snippet run unchanged."""

import re
from pathlib import Path

import pytest
from doc_code import NEW, ROOT, TRAIN, fenced, in_a_shell, in_this_process, run_session
from programs import in_fork

import structsolve

README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.exists(), reason="installed without the checkout")


def test_two_commands_stand_at_the_top():
    commands = [code for _, code in fenced(README, "sh")][:2]
    assert all(code.count("\n") == 1 for code in commands)
    assert commands[0].rstrip().endswith('pip install -e ".[plot]" && structsolve demo')
    assert "&& pytest -n auto" in commands[1]
    first_heading_below = README.read_text(encoding="utf-8").index("\n## ")
    assert README.read_text(encoding="utf-8").index(commands[1]) < first_heading_below


def test_it_is_short_and_has_one_picture_and_a_table_of_peers():
    text = README.read_text(encoding="utf-8")
    assert text.count("\n") < 200 and text.count("\n![") == 1
    assert (ROOT / re.search(r"\n!\[.*\]\((.*)\)", text)[1]).is_file()
    assert "| task | structsolve | peer |" in text


def test_ci_runs_the_test_command_from_between_the_markers():
    text = README.read_text(encoding="utf-8")
    marked = re.search(r"<!-- test-command -->\n```sh\n(.*)\n```\n<!-- /test-command -->", text)
    assert marked and marked.group(1) + "\n" == [code for _, code in fenced(README, "sh")][1]
    assert "<!-- test-command -->" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "line, code",
    [pytest.param(*block, id=f"line {block[0]}") for block in fenced(README, "python")],
)
def test_python_snippets(line, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "import torch" in code:
        pytest.importorskip("torch", reason="needs the extra [torch]")
    space = {"__name__": "readme"}
    exec(compile("\n" * (line - 1) + code, str(README), "exec"), space)
    if "FunctionStructure" in space:
        weights = abs(space["model"].coef_["weights"])
        assert weights[:2].min() > 3 * weights[2]


def test_first_block_in_the_folder_that_the_first_command_leaves(tmp_path):
    if not Path(structsolve.__file__).is_relative_to(ROOT):
        pytest.skip("the command leaves an editable install; this one is a wheel")
    _, code = next(fenced(README, "python"))
    # Python started in the checkout imports structsolve from there; files are written elsewhere.
    program = f"import structsolve, os\nos.chdir({str(tmp_path)!r})\n{code}"
    status, _, error = in_fork(program, folder=ROOT)
    assert status == 0, error


def test_shell_session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    program = iter([in_a_shell])  # the first command in a shell, as a user does
    (tmp_path / "train.conll").write_text(TRAIN)
    (tmp_path / "new.conll").write_text(NEW)
    for line, session in fenced(README, "console"):
        where = f"README.md, line {line}"
        run_session(session, tmp_path, where, lambda *a: next(program, in_this_process)(*a))


def test_links_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (ROOT / target).exists(), f"{name}: {target}"
